# SPDX-License-Identifier: BSD-3-Clause
"""The test suite of `urnic wire` with rxe as the device under test."""
import json
import subprocess
import sys
from pathlib import Path

from bench import test

ADDR, RETRY = "10.77.0.9", 6  # rxe takes 7 for endless (DEV-01)
# What rxe keeps; the rest of the report card is noted, not judged.
KEEPS = {"ACK-03", "ACK-05", "ACK-06", "ACK-07", "ACK-08", "ICRC-01", "ICRC-08", "RD-09", "RD-12", "RSP-02", "RSP-20",
         "RTX-01", "RTX-05", "TMR-04", "TMR-05", "RNR-05"}


def start(t, *command, until):
    """A program that says `until` on a line of its log. Beside others in one namespace af_packet's fanout group can
    be taken (doc/traps.md): another process has better luck."""
    for _ in range(5):
        child = t.spawn(*command)
        for line in child.stdout:
            if until in line:
                return child
        child.wait()
    return None


def missed(card):
    """What rxe should keep, and the card doesn't say it does."""
    failed = [f"{r['case']} {r['rule']}: {r['text']}" for r in card["results"]
              if r["verdict"] == "FAIL" and r["rule"] in KEEPS]
    seen = {r["rule"] for r in card["results"] if r["verdict"] == "PASS"}
    return failed + [f"{rule} was not seen" for rule in sorted(KEEPS - seen)]


@test("wire-suite", "the report card of `urnic wire --suite` with rxe as the device", tap=False)
def wire_suite(t):
    t.cable.record(None)  # what the bump does to packets is nobody's mistake
    bad = t.cable.bad_icrc
    for command in ("link add w0 mtu 9000 type veth peer name w1 mtu 9000", "link set w0 up", "link set w1 up"):
        subprocess.run(["ip", *command.split()], check=True)
    sock = str(Path(t.daemon.socket).with_name("tester.sock"))
    daemon = start(t, t.build / "app/urnicd/urnicd", "--foreground", "--socket", sock, "--port",
                   "dpdk:net_af_packet0,iface=w0", "--addr", ADDR + "/24", until="serving")
    t.check(daemon, "the tester's urnicd does not start")
    traffic = f"exec {sys.executable} {Path(__file__).with_name('suite_traffic.py')} %s " \
              f"{t.build / 'tests/interop/peer_urnic'} {sock} {ADDR} {RETRY}"
    # Again for the fanout group, as above, and where a guest without a core has broken a limit of time.
    for _ in range(5):
        child = t.urnic("wire", "--suite", "--json", "-q", "--limit", 20, "dpdk:net_af_packet0,iface=w1",
                        "dpdk:net_af_packet1,iface=tap0", "--client-a", traffic % "near", "--client-b", traffic % "far",
                        "--timeout", 14, "--retry", RETRY, "--settle", 0)
        status, text = t.output(child, 300)
        card = next((json.loads(x) for x in text.splitlines() if x.startswith('{"type":"suite"')), None)
        missing = missed(card) if card else [f"exit status {status}: {text[-600:]}"]
        if not missing:
            break
    t.cable.bad_icrc = bad  # those that the bump has damaged
    subprocess.run(["ip", "link", "del", "w0"], check=True)
    t.check(not missing, *missing)
    for r in card["results"]:
        if r["verdict"] == "FAIL":
            t.deviates(r["rule"], f"{r['case']}: {r['text']}")
    return f"{card['passed']} passed, {card['failed']} failed, {card['untested']} untested"
