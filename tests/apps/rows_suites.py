# SPDX-License-Identifier: BSD-3-Clause
"""Test suites of others: that of rdma-core, which Debian ships as documentation."""
import gzip
import os
import re
import shutil

from row import LOCAL, Row

SUITE = "/usr/share/doc/rdma-core/tests"
PASSED_AT_LEAST = 65  # rdma_rxe of Linux 6.1 passes fewer


def unpack(rig):
    """The suite as a package of Python that can be run; Debian compresses its larger files."""
    to = f"{rig.folder}/tests"
    if not os.path.exists(to):
        os.mkdir(to)
        for name in os.listdir(SUITE):
            path = os.path.join(SUITE, name)
            if name.endswith(".gz"):
                with gzip.open(path) as packed, open(os.path.join(to, name[:-3]), "wb") as f:
                    shutil.copyfileobj(packed, f)
            elif os.path.isfile(path):
                shutil.copy(path, to)
    return {}


def passed(_, result):
    ok = len(re.findall(r"\.\.\. ok$", result.output, re.M))
    bad = re.findall(r"^(.*) \.\.\. (?:FAIL|ERROR)$", result.output, re.M)
    if bad:
        return f"{ok} tests passed, these failed: " + "; ".join(bad)
    return "" if ok >= PASSED_AT_LEAST else f"only {ok} tests passed"


def rows():
    command = ["/usr/bin/python3", "tests/run_tests.py", "--dev", "{cdev}", "--port", "1", "--gid", "{gid}", "-v"]
    yield Row("rdma-core's tests", command, expect=r"^OK \(skipped=\d+\)", prepare=unpack, check=passed, seconds=180,
              topologies=LOCAL, quick=True, octets=1_000_000, lint=False)
    twice = " & ".join(["%s >log%d 2>&1" % (" ".join(command), n) for n in (1, 2)])
    yield Row("rdma-core's tests, twice at once",
              ["sh", "-c", twice + "& wait; tail -n 1 log1 log2; grep -q '^OK' log1 && grep -q '^OK' log2"],
              expect=r"^OK \(skipped=\d+\)", prepare=unpack, seconds=300, topologies=("one",), octets=1_000_000, lint=False)
