#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""urnic drill as a program: exit codes, JSON, recordings, and the example of its manual.

    test_drill_cli.py URNIC SOURCE_ROOT
"""
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

URNIC, ROOT = sys.argv[1], Path(sys.argv[2])
PASS = b"# REQ-10: passes\nqp A rc\n"
FAIL = b"qp A rc\n> ack\n"
WRONG = b"qp A rc\n< ack va 5\n"
# The acknowledgement comes before the statement that takes the WRITE, and has its time.
ORDER = b"qp A rc\nmr M 4K\nremote R 4K\npost A write from M,10 to R\n< ack psn 0\n> write_only\ncqe A success\n"


def drill(*args, text=b""):
    return subprocess.run([URNIC, "drill", *map(str, args)], input=text, capture_output=True, timeout=60)


def check(what, got, want):
    if got != want:
        sys.exit(f"{what}: expected {want!r}, got {got!r}")


def reports(*args, text):
    said = drill("--json", *args, text=text).stdout.decode()
    return [json.loads(x) for x in said.splitlines()]


def exit_codes(tmp):
    for text, want in ((PASS, 0), (FAIL, 1), (WRONG, 2), (b"", 2), (b"qp A rc\n< ack cut 0\n> ack", 1)):
        check(f"exit code of {text}", drill("-", text=text).returncode, want)
    check("no script", drill().returncode, 2)
    check("no such file", drill(tmp / "none").returncode, 2)
    check("no script in a directory", drill(tmp).returncode, 2)
    (tmp / "fail.drill").write_bytes(FAIL)
    (tmp / "other.txt").write_bytes(WRONG)
    check("a directory", drill(tmp).returncode, 1)
    check("its summary", drill(tmp).stdout.splitlines()[-1], b"0 passed, 1 failed (0 packets, 0 checks)")
    check("recording to a full device", drill("--record", "/dev/full", "-", text=PASS).returncode, 1)


def as_json():
    script, total = reports("-", text=PASS)
    check("rules", (script["rules"], script["purpose"], script["verdict"]), ("REQ-10", "passes", "pass"))
    check("summary", (total["type"], total["pass"], total["fail"]), ("summary", 1, 0))
    script, total = reports("-", text=FAIL)
    check("fail", (script["verdict"], script["line"], script["expected"]), ("fail", 2, "> ack"))
    script, total = reports("-", text=WRONG)
    check("wrong", (script["line"], script["column"], script["what"]), (2, 7, "'< ack' takes no 'va'"))
    script, total = reports("-", text=b"# \xff: what\n" + FAIL)
    check("octets that are no UTF-8", script["purpose"], "?: what")
    script, total = reports("--check", "-", text=PASS)
    check("only read", (script["verdict"], total["pass"]), ("pass", 1))


# A kind of request that the queue pair doesn't allow, and another one after it that gets no answer.
BEHIND = b"""qp A rc access lw,rr
mr M 4K
< write_only psn 0 va M rkey M len 8 ackreq
< write_only psn 1 va M rkey M len 8 ackreq
> nak_inv psn 0
event A qp_req_err
"""


def recordings(tmp):
    file = tmp / "run.pcapng"
    for text, ops in ((ORDER, ["10", "17"] * 3), (BEHIND, ["10", "17", "10"] * 3),
                      ((ROOT / "tests/drill/rtx/rtx_01_nak_middle.drill").read_bytes(), None)):
        check("recorded", drill("--record", file, "-", text=text).returncode, 0)
        said = subprocess.run(["tshark", "-r", file, "-T", "fields", "-e", "frame.time_epoch", "-e",
                               "infiniband.bth.opcode", "-e", "frame.comment"],
                              capture_output=True, text=True, check=True, timeout=60).stdout
        rows = [x.split("\t") for x in said.splitlines()]
        times = [float(x[0]) for x in rows]
        check("times in order", times, sorted(times))
        check("each packet has its statement", [x for x in rows if not x[2]], [])
        if ops:
            check("the order of the wire", [x[1] for x in rows], ops)
        for command, wanted in (("lint", "0 violations, 0 undecidable"), ("replay", " 0 differ")):
            said = subprocess.run([URNIC, command, file], capture_output=True, text=True, timeout=60).stdout
            if wanted not in said:
                sys.exit(f"{command} of a recording: {said}")


def kept(tmp):
    """The first run starts a recording: without a run, the file stays unchanged."""
    file = tmp / "kept.pcapng"
    file.write_bytes(b"an older one")
    for args, text in ((["-"], WRONG), ([tmp / "none"], b""), (["--check", "-"], PASS)):
        drill("--record", file, *args, text=text)
        check(f"the recording, {args}", file.read_bytes(), b"an older one")
    check("a file that can't be written", drill("--record", tmp / "no" / "file", "-", "-", text=PASS).returncode, 2)


def manual(tmp):
    text = (ROOT / "doc/drill.md").read_text()
    blocks = [re.sub("^    ", "", x, flags=re.M)
              for x in re.findall(r"(?:^    .*\n|^\n(?=    ))+", text, re.M)]
    script, said = blocks[0].strip("\n").split("\n\n")[:2]
    file = tmp / "write.drill"
    file.write_text(script + "\n")
    check("the manual's example", drill(file).stdout.decode().strip(), said.split("\n", 1)[1].strip())
    file.write_text(script.replace("+0 > write_middle psn 1", "+0 > write_middle psn 2") + "\n")
    got = drill(file).stdout.decode().replace(f"{tmp}/", "").rsplit("\n", 2)[0]
    shown = re.search(r"fail   write.drill.*?\n\n", text, re.S).group(0)
    check("the manual's failure", got, shown.replace("\n    ", "\n").strip())


with tempfile.TemporaryDirectory(prefix="urnic-drill-") as name:
    exit_codes(Path(name))
    as_json()
    recordings(Path(name))
    kept(Path(name))
    manual(Path(name))
