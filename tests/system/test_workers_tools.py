#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What is per device stays so on a device of four workers: counters, lists of queue pairs and processes, congestion
control, addresses, captures (all frames once, in time order, every iCRC right), the end of the daemon while
queue pairs are busy.

usage: test_workers_tools.py URNICD URNIC
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import check_capture

URNICD, URNIC = (os.path.abspath(p) for p in sys.argv[1:3])
DIR = tempfile.mkdtemp(prefix="urnic-workers-")
ENV = dict(os.environ, URNIC_SOCKET=os.path.join(DIR, "sock"))
CLIENTS = 4
started = []


def check(ok, text):
    if not ok:
        raise SystemExit(f"FAIL: {text}")


def begin(*args, sign=None):
    log = os.path.join(DIR, f"{len(started)}.log")
    with open(log, "w", encoding="utf-8") as f:
        p = subprocess.Popen(args, env=ENV, stdout=f, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    started.append(p)
    until = time.monotonic() + 30
    while sign:
        with open(log, encoding="utf-8") as f:
            text = f.read()
        if sign in text:
            break
        check(p.poll() is None and time.monotonic() < until, f"{args}: no '{sign}':\n{text}")
        time.sleep(0.05)
    return p


def urnic(*args):
    r = subprocess.run([URNIC, *args], env=ENV, capture_output=True, text=True, timeout=30, check=False)
    check(r.returncode == 0, f"urnic {args}: {r}")
    return r.stdout


def stat(device, *more):
    return json.loads(urnic("stat", device, "--all", "--json", *more))


def wait_for(what, text):
    until = time.monotonic() + 30
    while not what():
        check(time.monotonic() < until, text)
        time.sleep(0.1)


def busy():
    return [q for q in stat("urn0", "--qps")["qps"] if q["tx_bytes"] > 1000000]


def times(path):
    with open(path, "rb") as f:
        data = f.read()
    return [int.from_bytes(body[4:8], "little") << 32 | int.from_bytes(body[8:12], "little")
            for kind, body in check_capture.blocks(data) if kind == 6]


def captures():
    path = os.path.join(DIR, "all.pcapng")
    before = stat("urn0")["counters"]
    urnic("capture", "--device", "urn0", "--for", "1", "--snaplen", "128", "--json", path)
    after = stat("urn0")["counters"]
    at = times(path)
    check(len(at) > 1000 and at == sorted(at), f"{len(at)} packets, out of order")
    check(len(at) <= sum(after[k] - before[k] for k in ("port_rx_frames", "port_tx_frames")),
          f"more frames than there were: {len(at)} {before} {after}")


def main():
    link = "mem:l,rate=400M,queue=4M"
    daemon = begin(URNICD, "--foreground", "--socket", ENV["URNIC_SOCKET"], "--seed", "1",
                   "--device", f"name=urn0,port={link},addr=10.0.0.1/24,workers=4",
                   "--device", "name=urn1,port=mem:l,addr=10.0.0.2/24,workers=4", sign="serving at")
    begin(URNIC, "perf", "--server", "--device", "urn1", sign="waiting")
    for _ in range(CLIENTS):
        begin(URNIC, "perf", "10.0.0.2", "--device", "urn0", "--size", "64K", "--time", "60", "--wait", "event")
    wait_for(lambda: len(busy()) == CLIENTS, "not all clients write")

    qps = busy()
    check(len({q["qpn"] for q in qps}) == CLIENTS, f"numbers: {qps}")
    check({q["qpn"] >> 21 for q in qps} == {0, 1, 2, 3}, f"each client is on a worker of its own: {qps}")
    counters = stat("urn0")["counters"]
    check(counters["contexts"] == CLIENTS and counters["qps"] >= CLIENTS, f"sums: {counters}")
    check(counters["steer_right"] > 0 and counters["steer_moved"] > 0, f"steering: {counters}")
    check(counters["port_up"] == 1 and counters["rx_bad_qpn"] == 0, f"{counters}")
    processes = json.loads(urnic("stat", "urn0", "--processes", "--json"))["processes"]
    check(len(processes) == CLIENTS and all(p["qps"] >= 1 for p in processes), f"{processes}")

    shown = json.loads(urnic("top", "--once", "--interval", "0.5", "--json").splitlines()[0])
    check({q["qpn"] >> 21 for q in shown["qps"] if q["tx"] > 0} == {0, 1, 2, 3}, f"urnic top: {shown}")

    urnic("cc", "urn0", "dcqcn")
    wait_for(lambda: all(q["cc"] == "dcqcn" for q in busy()), "congestion control of all queue pairs")
    one = hex(qps[-1]["qpn"])
    urnic("cc", "urn0", "none", "--qp", one)
    wait_for(lambda: [q["cc"] for q in busy()].count("none") == 1, "congestion control of one queue pair")

    captures()

    gids = urnic("info")
    check("10.0.0.1" in gids, gids)
    daemon.send_signal(signal.SIGTERM)
    check(daemon.wait(20) == 0, "the daemon's status")


try:
    main()
finally:
    for process in started:
        if process.poll() is None:
            process.terminate()
            process.wait(20)
    shutil.rmtree(DIR, ignore_errors=True)
