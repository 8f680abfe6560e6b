#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A device of several workers on a DPDK port with several queues, which spread frames by their flow and know nothing
of queue pairs: each frame still reaches its worker. Files are copied between two devices, each copy by a context and
so on a worker of its own; the interface is taken away and comes back; a port with more queues than workers is refused.

    test_dpdk_queues.py URNICD URNIC          (as root, with DPDK; else skipped)
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

URNICD, URNIC = sys.argv[1], sys.argv[2]
DIR = tempfile.mkdtemp(prefix="urnic-queues-")
NEAR, FAR = f"urnic-qa{os.getpid()}", f"urnic-qb{os.getpid()}"
COPIES, SIZE = 4, 4 << 20
failed = []
started = []  # every process: none outlives the test


def check(ok, what):
    print(("ok   " if ok else "FAIL ") + what, flush=True)
    if not ok:
        failed.append(what)


def call(*command, timeout=60, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False,
                          stdin=subprocess.DEVNULL, **options)


def start(ns, log, *command):
    with open(f"{DIR}/{log}.log", "w", encoding="utf-8") as out:
        p = subprocess.Popen(["ip", "netns", "exec", ns, *command], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                             env={**os.environ, "URNIC_SOCKET": f"{DIR}/{log.split('-')[0]}"})
    started.append(p)
    return p


def stop(p):
    p.terminate()
    try:
        return p.wait(20)
    except subprocess.TimeoutExpired:
        p.kill()
        return p.wait()


def log(name):
    with open(f"{DIR}/{name}.log", encoding="utf-8") as f:
        return f.read()


def until(ok, seconds=20):
    end = time.monotonic() + seconds
    while not ok() and time.monotonic() < end:
        time.sleep(0.05)
    return ok()


def daemon(ns, name, *args):
    """urnicd at the socket DIR/name. Returns it once it serves or has ended."""
    path = f"{DIR}/{name}"
    if os.path.exists(path):
        os.unlink(path)
    p = start(ns, name, URNICD, "--foreground", "--socket", path, *args)
    until(lambda: os.path.exists(path) or p.poll() is not None)
    return p


def counters(name):
    r = call(URNIC, "stat", "--json", "--socket", f"{DIR}/{name}")
    return json.loads(r.stdout)["counters"] if r.returncode == 0 else {}


def veth():
    """A pair of interfaces, one in each namespace."""
    for words in (("-n", NEAR, "link", "add", "v0", "type", "veth", "peer", "name", "v1", "netns", FAR),
                  ("-n", NEAR, "link", "set", "v0", "up"), ("-n", FAR, "link", "set", "v1", "up")):
        if call("ip", *words).returncode:
            return False
    return True


def copies(address, what, ns=FAR):
    """Files to `address`, all at once; each `urnic copy` is a context of its own."""
    shutil.rmtree(f"{DIR}/there", ignore_errors=True)
    os.makedirs(f"{DIR}/there")
    server = start(ns, "far-serve", URNIC, "serve", "-C", f"{DIR}/there")
    time.sleep(0.5)
    clients = [start(NEAR, f"near-copy{i}", URNIC, "copy", "-q", f"{DIR}/file{i}", f"{address}:file{i}")
               for i in range(COPIES)]
    for i, c in enumerate(clients):
        try:
            status = c.wait(60)
        except subprocess.TimeoutExpired:
            status = "none"
        same = status == 0 and call("cmp", f"{DIR}/file{i}", f"{DIR}/there/file{i}").returncode == 0
        check(same, f"{what}: file {i} {status} {log(f'near-copy{i}')}")
    stop(server)


def queues(name, sentence):
    said = until(lambda: sentence in log(name))
    check(said, f"the log of {name} says \"{sentence}\" {'' if said else log(name)}")


def af_packet(qpairs, workers, sentence):
    """The kernel spreads frames over the rings by their flow (PACKET_FANOUT)."""
    spec = ",qpairs=" + qpairs if qpairs else ""
    near = daemon(NEAR, "near", "--device", f"name=urn0,port=dpdk:net_af_packet0,iface=v0{spec},addr=10.9.9.1/24,"
                                            f"workers={workers}")
    far = daemon(FAR, "far", "--device", f"name=urn0,port=dpdk:net_af_packet0,iface=v1{spec},addr=10.9.9.2/24,"
                                         f"workers={workers}")
    for name in ("near", "far"):
        queues(name, sentence)
    copies("10.9.9.2", f"qpairs={qpairs}, workers={workers}")
    got = counters("near")
    check(got.get("steer_moved", 0) > 0 and got.get("steer_right", 0) > 0, f"frames came to both workers {got}")
    if qpairs == "2" and workers == 2:
        taken_away("near")
        application()
    check(stop(near) == 0 and stop(far) == 0, "both daemons end with status 0")


def taken_away(name):
    """The interface is removed under both workers, and another one of its name takes its place."""
    call("ip", "-n", NEAR, "link", "del", "v0")
    check(until(lambda: "is gone" in log(name)), "the interface goes")
    check(veth() and until(lambda: "is back" in log(name)) and until(lambda: "is back" in log("far")),
          f"and comes back {log(name)}")
    copies("10.9.9.2", "over the new interface")


def application():
    """An engine in the program, whose frames any worker may get."""
    server = start(FAR, "far-perf", URNIC, "perf", "--server")
    until(lambda: "waiting" in log("far-perf"))
    r = call("ip", "netns", "exec", NEAR, URNIC, "perf", "10.9.9.2",
             env={**os.environ, "URNIC_ENGINE": "application", "URNIC_SOCKET": f"{DIR}/near"})
    check(r.returncode == 0, f"a program with an engine of its own {r.stderr}")
    stop(server)


def tap():
    """Frames that the kernel sends through the tap come by all its queues; the peer uses the kernel's end."""
    near = daemon(NEAR, "near", "--device", "name=urn0,port=dpdk:net_tap0,iface=qt0,addr=10.9.8.1/24,workers=4")
    queues("near", "4 of 4 workers have a queue")
    call("ip", "-n", NEAR, "addr", "add", "10.9.8.2/24", "dev", "qt0")
    far = daemon(NEAR, "far", "--port", "udp:qt0,addr=10.9.8.2")
    copies("10.9.8.2", "net_tap with 4 queues", NEAR)
    check(stop(near) == 0 and stop(far) == 0, "both daemons end with status 0")


def refused():
    p = daemon(NEAR, "near", "--device",
               "name=urn0,port=dpdk:net_af_packet0,iface=v0,qpairs=3,addr=10.9.9.1/24,workers=2")
    check(stop(p) == 1 and "3 queues take a device of as many workers (workers=4)" in log("near"),
          f"more queues than workers {log('near')}")
    for spec, sentence in (("net_null0", "2 of 2 workers have a queue"), ("net_ring0", "1 of 2 workers have a queue")):
        p = daemon(NEAR, "near", "--device", f"name=urn0,port=dpdk:{spec},addr=10.9.9.1/24,workers=2")
        queues("near", sentence)
        said = [line for line in log("near").splitlines() if re.search(r"\b(error|warn)\b", line)]
        check(not said and stop(p) == 0, f"{spec} is served without a complaint {said}")


def main():
    if os.geteuid() or call("ip", "netns", "add", NEAR).returncode or call("ip", "netns", "add", FAR).returncode:
        print("needs root and network namespaces: skipped")
        return 77
    call("ip", "-n", NEAR, "link", "set", "lo", "up")
    if not veth():
        print("no veth here: skipped")
        return 77
    for i in range(COPIES):
        with open(f"{DIR}/file{i}", "wb") as f:
            f.write(os.urandom(SIZE))
    refused()
    af_packet("2", 2, "2 of 2 workers have a queue")
    af_packet("2", 4, "2 of 4 workers have a queue, the others get their frames from them")
    tap()
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        status = main()
    finally:
        for process in started:
            process.kill()
        for namespace in (NEAR, FAR):
            call("ip", "netns", "del", namespace)
        shutil.rmtree(DIR, ignore_errors=True)
    sys.exit(status)
