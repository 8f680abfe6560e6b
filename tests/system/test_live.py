#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""DCQCN of a running daemon draws the simulator's curves: the scenario two-flows-live is run by
scripts/live, and by `urnic sim` with the start of the second flow that the live run had.

usage: test_live.py URNICD URNIC SOURCE

CC-10, CC-12, CC-19: what the two flows get, second by second once both run, is within a quarter of the
link of what is simulated; in the end both have about half of it, held there by their limiters.

A gigabit against the clock needs most of two cores. A run in which others had the processors too says
nothing, so it is repeated; exit status 77 when there was no quiet one.
"""
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile

TRIES = 6
QUIET_TRIES = 2  # that must have failed
BUSY = 0.08  # part of the machine that others may have
LINK = 0.926  # Gb/s of payload


def used():
    """Seconds of processor time: of all, of our children, and what there was."""
    with open("/proc/stat", encoding="ascii") as f:
        v = [int(x) / os.sysconf("SC_CLK_TCK") for x in f.readline().split()[1:9]]
    mine = resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(v) - v[3] - v[4], mine.ru_utime + mine.ru_stime, sum(v)


def others(before, after):
    everyone, mine, capacity = (b - a for a, b in zip(before, after))
    return (everyone - mine) / capacity


def lines(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def mean(samples, flow, begin, end):
    v = [s["gbps"][flow] for s in samples if begin <= s["t_us"] / 1e6 < end]
    return sum(v) / len(v)


def differs(live, sim):
    """What is not as it should be, or None."""
    a = [d for d in live if d["type"] == "sample"]
    b = [d for d in sim if d["type"] == "sample"]
    figures = {d["name"]: d["value"] for d in live if d["type"] == "figure"}
    if not figures["marks"] or not figures["cnps"]:
        return "no marks, or no CNPs"
    if None in a[-1]["limit_gbps"] or max(a[-1]["limit_gbps"]) > 0.8 * LINK:
        return f"not held by a limiter: {a[-1]['limit_gbps']}"
    if mean(a, 0, 0, 0.4) < 0.6 * LINK:
        return f"flow 0 alone has {mean(a, 0, 0, 0.4):.2f} Gb/s"
    for begin in (1, 1.5, 2):
        for flow in 0, 1:
            got, want = (mean(x, flow, begin, begin + 0.5) for x in (a, b))
            if abs(got - want) > LINK / 4:
                return f"flow {flow} from {begin} s on: {got:.2f} Gb/s, simulated {want:.2f}"
    share = [mean(a, flow, 2, 2.5) for flow in (0, 1)]
    if min(share) < 0.6 * max(share):
        return f"the shares stay unequal: {share}"
    return None


def ends_what_it_started(urnicd, source, tmp):
    """When the tools can't go on, the daemon is ended, too."""
    wrapper, pid = os.path.join(tmp, "urnicd"), os.path.join(tmp, "pid")
    with open(wrapper, "w", encoding="utf-8") as f:
        f.write(f"#!/bin/sh\necho $$ >{pid}\nexec {urnicd} \"$@\"\n")
    os.chmod(wrapper, 0o755)
    r = subprocess.run([os.path.join(source, "scripts/live")], env=dict(os.environ, URNICD=wrapper, URNIC="/bin/false"),
                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False, timeout=100)
    with open(pid, encoding="utf-8") as f:
        daemon = int(f.read())
    if r.returncode != 1 or "no 'waiting'" not in r.stderr:
        return f"without tools: {r.returncode}, {r.stderr}"
    try:
        os.kill(daemon, 0)
    except ProcessLookupError:
        return None
    os.kill(daemon, signal.SIGKILL)
    return "the daemon was left behind"


def main():
    urnicd, urnic, source = sys.argv[1:]
    env = dict(os.environ, URNICD=urnicd, URNIC=urnic)
    scenario = os.path.join(source, "app/urnic/scenarios/two-flows-live.sim")
    with tempfile.TemporaryDirectory() as tmp:
        left = ends_what_it_started(urnicd, source, tmp)
        if left:
            print(left)
            return 1
        out, sim, svg = (os.path.join(tmp, name) for name in ("live.jsonl", "sim.jsonl", "live.svg"))
        quiet = 0
        for _ in range(TRIES):
            before = used()
            subprocess.run([os.path.join(source, "scripts/live"), "--time", "2.5", "-o", out],
                           env=env, check=True, timeout=200)
            busy = others(before, used())
            live = lines(out)
            subprocess.run([urnic, "sim", "-q", scenario, "-s", f"start={live[0]['set']['start']}",
                            "-o", sim, "--points", out, "-p", svg], check=True, timeout=60)
            why = differs(live, lines(sim))
            if not why:
                break
            print(f"{why}; others used {busy:.0%} of the machine")
            quiet += busy < BUSY
            if quiet == QUIET_TRIES:
                break
        with open(svg, encoding="utf-8") as f:
            dots = f.read().count("<circle")
        # One for each sample of each flow, and one in the legend.
        want = 2 * sum(d["type"] == "sample" for d in live) + 1
        if dots != want:
            why, quiet = f"{dots} dots drawn, not {want}", QUIET_TRIES
    print(why or "ok")
    return 0 if not why else 1 if quiet == QUIET_TRIES else 77


if __name__ == "__main__":
    sys.exit(main())
