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


# What may fail, and why.
KNOWN = {
    "Test resize CQ": "it shrinks a queue before its sends have completed",
}


def passed(_, result):
    ok = len(re.findall(r"\.\.\. ok$", result.output, re.M))
    runs = len(re.findall(r"^Ran \d+ tests", result.output, re.M))
    bad = [name for name in re.findall(r"^(.*) \.\.\. (?:FAIL|ERROR)$", result.output, re.M)
           if not any(name.startswith(known) for known in KNOWN)]
    if bad:
        return f"{ok} tests passed, these failed: " + "; ".join(bad)
    return "" if runs and ok >= runs * PASSED_AT_LEAST else f"{runs} runs, {ok} tests passed"


def rows():
    command = ["/usr/bin/python3", "tests/run_tests.py", "--dev", "{cdev}", "--port", "1", "--gid", "{gid}", "-v"]
    yield Row("rdma-core's tests", command, prepare=unpack, check=passed, seconds=180, topologies=LOCAL, quick=True,
              octets=1_000_000, lint=False, status=None)
    twice = " & ".join("%s >log%d 2>&1" % (" ".join(command), n) for n in (1, 2))
    yield Row("rdma-core's tests, twice at once", ["sh", "-c", twice + " & wait; cat log1 log2"], prepare=unpack,
              check=passed, seconds=300, topologies=("one",), octets=1_000_000, lint=False)
