# SPDX-License-Identifier: BSD-3-Clause
"""Packet scripts on the wire: those of tests/drill that say `wire`, at rxe."""
import json
import subprocess
from pathlib import Path

import guest
from bench import Failure, test
from t_connect import wait_listening

TOP = Path(__file__).resolve().parents[2]
PORT = "dpdk:net_af_packet0,iface=tap0"
KNOWN = Path(__file__).with_name("rxe-drill.txt")  # what rxe of the guest's kernel fails


def known(t):
    """Scripts that fail, and their rules; a line that names a series of kernels is about that one."""
    lines = (x.split("#")[0].split() for x in KNOWN.read_text().splitlines())
    return {x[0]: x[1] for x in lines if x and t.guest.release.startswith(tuple(x[2:] or [""]))}


def run_scripts(t, server, port, scripts):
    """Verdicts of the scripts for this program at the other end: {script: report}."""
    said = subprocess.run(
        [t.build / "app/urnic/urnic", "drill", "--json", "--port", PORT, "--addr", "10.77.0.99/24", "--peer",
         f"{guest.ADDR4}:{port}", "--server", server, *scripts],
        cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=900)
    reports = [json.loads(x) for x in said.stdout.splitlines()]
    reports = {r["script"]: r for r in reports if r["type"] == "script" and r["verdict"] != "skip"}
    if not reports:
        raise Failure(f"no script ran: {said.stderr[-300:]}")
    return reports


def verdicts(t, server, port):
    """Of all scripts. What fails unexpectedly runs once more: rxe's timers run on an emulated machine that
    may stand still for longer than they last."""
    expected = known(t)
    reports = run_scripts(t, server, port, ["tests/drill"])
    again = [s for s, r in reports.items() if r["verdict"] != "pass" and s not in expected]
    if again:
        reports.update(run_scripts(t, server, port, again))
    return reports


def judge(t, reports):
    expected = known(t)
    passed, surprises = 0, []
    for script, r in reports.items():
        if r["verdict"] == "pass":
            passed += 1
            if script in expected:
                surprises.append(f"{script} passes now")
        elif r["verdict"] == "fail":
            rule = expected.get(script, (r["rules"].split() or ["DEV-01"])[0])
            t.deviates(rule, f"{Path(script).stem}:{r['line']}: {r['what']} {r['fields']}")
            if script not in expected:
                surprises.append(f"{script}:{r['line']}: {r['what']} {r['fields']} {r['got']}")
        else:
            surprises.append(f"{script}:{r['line']}: {r['verdict']}: {r['what']}")
    t.equal(surprises, [], "not as tests/interop/rxe-drill.txt says")
    return f"{passed} of {len(reports)} scripts pass, the others fail as known"


@test("drill", "DEV-01: the packet scripts for the wire judge rxe's responder", provokes=("*",), tap=False)
def drill(t):
    flush = " flush" if t.kernel() >= (6, 2) else ""
    conn = t.guest.connect(f"exec drill_target {guest.ADDR4} 7174{flush}")
    stream = conn.makefile("r")
    t.equal(stream.readline().strip(), "ready", "the program in the guest")
    try:
        return judge(t, verdicts(t, "target", 7174))
    finally:
        conn.shutdown(2)
        conn.close()


@test("drill-rping", "DEV-01: packet scripts in the place of rping's client judge rxe's requester", provokes=("*",), tap=False)
def drill_rping(t):
    # -P: a server for one client after the other
    conn = t.guest.connect(f"exec rping -s -P -a {guest.ADDR4} -p 7175 -S 4000")
    wait_listening(t, "rping")
    try:
        return judge(t, verdicts(t, "rping", 7175))
    finally:
        conn.shutdown(2)
        conn.close()


@test("drill-ucmatose", "DEV-01: a packet script in the place of ucmatose's client", provokes=("*",), tap=False)
def drill_ucmatose(t):
    conn = t.guest.connect(f"exec ucmatose -b {guest.ADDR4} -c 1 -C 5 -S 100 -p 7176")
    wait_listening(t, "ucmatose")
    try:
        return judge(t, verdicts(t, "ucmatose", 7176))
    finally:
        conn.shutdown(2)
        conn.close()
