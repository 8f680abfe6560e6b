#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""udp: ports on two hosts with `urnic wire` between their cables, which loses, doubles, mixes up, damages and marks
packets: the contents of all operations stay right, and DCQCN slows down for marks and recovers.

    test_udp_wire.py URNICD URNIC WORKERS LIVE_ENDS|marks     (as root, with DPDK; else skipped)

LIVE_ENDS is the program that makes the traffic and checks its contents: it runs over a wire that does anything but mark.
With `marks` the wire only marks: rates are measured, so this should run alone.
"""
import json
import os
import subprocess
import sys
import time

from udp_rig import DIR, URNIC, WORKERS, cable, call, check, counters, daemon, end, give, ip, log_of, make_hosts
from udp_rig import run, serves, soon, start, urnic

LIVE_ENDS = os.path.abspath(sys.argv[4])
MARKED = sys.argv[4] == "marks"
BAD = ["drop roce prob 1%", "duplicate roce prob 1%", "reorder 3 roce prob 1%", "corrupt random roce prob 0.5%"]
MARKS = "mark data until 5s"  # of the first frame on; a new queue pair has the line rate
CC = "dcqcn:paper,timer=10ms,ai=20M"  # a pause of the machine is no recovery
LINE = 10e9  # bit/s, of veth


def make_network():
    """Host a - w0 [host w] w1 - host b."""
    if not make_hosts("a", "b", "w"):
        return False
    call("w", "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1")
    for n, at in (("a", "w0"), ("b", "w1")):
        cable(n, "v0", "w", at)
        ip("w", "link", "set", at, "up")
        # The wire takes frames as they come: no trains, no checksums that a card would have filled in.
        for where, interface in ((n, "v0"), ("w", at)):
            for feature in ("tx", "rx", "tso", "gso", "gro", "tx-udp-segmentation"):
                call(where, "ethtool", "-K", interface, feature, "off")
    give("a", 1)
    give("b", 2)
    return True


def wire(*rules):
    """Neighbouring af_packet ports in one namespace sometimes take each other's number: see doc/traps.md."""
    for _ in range(5):
        log = f"{DIR}/wire.log"
        open(log, "w", encoding="utf-8").close()
        words = [w for r in rules for w in ("-R", r)]
        p = start("w", URNIC, "wire", "--mtu", "9000", "dpdk:net_af_packet0,iface=w0", "dpdk:net_af_packet1,iface=w1", *words,
                  log=log)
        soon(lambda p=p: p.poll() is not None or "forwarding" in log_of("wire"), 20)
        if p.poll() is None:
            return p
    return None


def live(n, engine="daemon"):
    """Contents over a bad wire."""
    before = {h: counters(h, h) for h in ("a", "b")}
    r = subprocess.run([LIVE_ENDS], capture_output=True, text=True, check=False, timeout=180,
                       env=dict(os.environ, LIVE_A=f"{DIR}/a.sock", LIVE_B=f"{DIR}/b.sock", LIVE_WORKERS=WORKERS,
                                LIVE_A_ENGINE=engine, LIVE_B_ENGINE=engine, CK_DEFAULT_TIMEOUT="150"))
    check(r.returncode == 0, f"the live sample, engine={engine}, workers={n}: " + (r.stdout[-500:] if r.returncode else ""))
    for h in ("a", "b"):
        after = counters(h, h)
        again, wrong, right, moved = (after.get(k, 0) - before[h].get(k, 0) for k in
                                      ("tx_retransmit", "rx_bad_qpn", "steer_right", "steer_moved"))
        check(again > 0 and wrong == 0, f"... host {h} sends {again} packets again, none comes for an unknown queue pair")
        if n > 1:
            check(right > 100 * moved, f"... {right} packets came to the right worker at once, {moved} did not")


def rate():
    """The slowest queue pair's at host a, bit/s; None while there is none."""
    r = urnic("a", "a", "cc", "urn0", "--qps", "--json")
    found = [q["rate"] or LINE for line in r.stdout.splitlines() if line.strip() for q in json.loads(line).get("qps", [])]
    return min(found) if found else None


def more_marks():
    """Does host b see any within a second?"""
    before = counters("b", "b").get("np_ecn_marked_roce_packets", 0)
    time.sleep(1)
    return counters("b", "b").get("np_ecn_marked_roce_packets", 0) > before


def marked():
    """CC-03, CC-10, CC-19: marks become CNPs, these lower the rate; without marks it rises again."""
    before = {h: counters(h, h) for h in ("a", "b")}
    server = serves("b", "b", "7472")
    check(soon(lambda: urnic("a", "a", "perf", "10.30.0.2", "-n", "1").returncode == 0, 20), "a server over a wire that marks")
    client = start("a", "env", f"URNIC_SOCKET={DIR}/a.sock", URNIC, "perf", "10.30.0.2", "-o", "write", "-s", "64K", "-t", "60",
                   log=f"{DIR}/client.log")
    began, seen = time.monotonic(), []

    def sample(reached):
        now = rate()
        if now:
            seen.append((time.monotonic() - began, now))
        return client.poll() is not None or (now and reached(now))
    fell = soon(lambda: sample(lambda r: r < LINE / 4), 20)
    check(soon(lambda: not more_marks(), 60), "marks come to an end")
    rose = fell and soon(lambda: sample(lambda r: r > LINE / 2), 40)
    running = client.poll() is None
    shown = ", ".join(f"{t:.1f} s {r / 1e6:.0f} Mb/s" for t, r in seen[:: max(1, len(seen) // 12)] + seen[-1:])
    check(fell and running, "the rate falls to less than a quarter for marks: " + shown)
    check(rose and running, "... and recovers to more than a half without")
    end(client)
    end(server)
    got = {h: {k: counters(h, h).get(k, 0) - before[h].get(k, 0) for k in
               ("np_ecn_marked_roce_packets", "np_cnp_sent", "rp_cnp_handled")} for h in ("a", "b")}
    check(got["b"]["np_ecn_marked_roce_packets"] >= got["b"]["np_cnp_sent"] > 0, f"marks are seen, CNPs sent: {got['b']}")
    check(0 < got["a"]["rp_cnp_handled"] <= got["b"]["np_cnp_sent"], f"... and handled: {got['a']}")


def main():
    if not make_network():
        print("needs root, to make network namespaces")
        return 77
    between = wire(MARKS) if MARKED else wire(*BAD)
    if not between:
        if "libdpdk-dev" in log_of("wire"):
            print("no DPDK in this build: skipped")
            return 77
        check(False, "urnic wire runs: " + log_of("wire")[-500:])
        return 1
    daemons = [daemon(n, n, "--device", "port=udp:v0,cc=" + CC) for n in ("a", "b")]
    running = all(d.poll() is None for d in daemons)
    check(running, "the daemons start" + ("" if running else ": " + log_of("a")[-300:]))
    if MARKED:
        marked()
    else:
        live(int(WORKERS))
        if WORKERS == "1":
            live(1, "application")
    check(all(d.poll() is None for d in daemons), "the daemons have lived through it")
    return 0


run(main, ("a", "b", "wire"))
