#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""One NIC and one address for the kernel and urnicd (kernel=tap0): TCP and RoCE at the same time, both right; a
daemon that is killed and started again; a cable that is pulled; an interface that can't be had.

    test_kernel_tap.py URNICD URNIC          (as root, with DPDK; else skipped)
"""
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

URNICD, URNIC = sys.argv[1], sys.argv[2]
IN_NS = "--in-namespace"  # instead of URNICD: this script runs itself there
DIR = None if URNICD == IN_NS else tempfile.mkdtemp(prefix="urnic-kernel-tap-")
NS = {n: f"urnic-kt{os.getpid()}-{n}" for n in ("a", "b")}
ADDR = {"a": "10.9.0.1", "b": "10.9.0.2"}
ADDR6 = {"a": "fd09::1", "b": "fd09::2"}
SIZE = 8 << 20
failed, started = [], []


def check(ok, what):
    print(("ok   " if ok else "FAIL ") + what, flush=True)
    if not ok:
        failed.append(what)


def call(*command, timeout=60):
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False,
                          stdin=subprocess.DEVNULL)


def in_ns(n, *command, **kwargs):
    return call("ip", "netns", "exec", NS[n], *command, **kwargs)


def urnic(n, *args, **kwargs):
    return in_ns(n, URNIC, "--socket", f"{DIR}/{n}.sock", *args, **kwargs)


def soon(condition, seconds=15):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


# ---- what runs inside a namespace ----

def octets(n):
    return hashlib.shake_128(b"urnic").digest(1 << 16) * (n >> 16)


def receive(where):
    """Takes one TCP connection; prints the hash of what came."""
    s = socket.create_server((where, 4000), family=socket.AF_INET6 if ":" in where else socket.AF_INET)
    s.settimeout(60)
    print("listening", flush=True)
    c, _ = s.accept()
    h = hashlib.sha256()
    while data := c.recv(1 << 16):
        h.update(data)
    print(h.hexdigest(), flush=True)


def send(where):
    with socket.create_connection((where, 4000), timeout=60) as s:
        s.sendall(octets(SIZE))


# ---- the test ----

def start(n):
    log = open(f"{DIR}/{n}.log", "a", encoding="utf-8")
    p = subprocess.Popen(
        ["ip", "netns", "exec", NS[n], URNICD, "--foreground", "--socket", f"{DIR}/{n}.sock", "--device",
         f"name=urn0,port=dpdk:net_af_packet0,iface=v0,kernel=tap0,addr={ADDR[n]}/24;{ADDR6[n]}/64"],
        stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    started.append(p)
    soon(lambda: p.poll() is not None or state(n) == "active", 30)
    return p


def state(n):
    r = urnic(n, "info", "urn0", "--json")
    return json.loads(r.stdout)["state"] if r.returncode == 0 else ""



def counter(n, name):
    text = urnic(n, "stat", "urn0", "--json").stdout
    found = re.search(rf'"{name}": ?(\d+)', text)
    return int(found[1]) if found else -1


def tcp(v6=False):
    """A file from b to a by the kernels. Returns whether all of it came."""
    where = (ADDR6 if v6 else ADDR)["a"]
    r = subprocess.Popen(["ip", "netns", "exec", NS["a"], sys.executable, __file__, IN_NS, "receive", where],
                         stdout=subprocess.PIPE, text=True)
    r.stdout.readline()
    sent = in_ns("b", sys.executable, __file__, IN_NS, "send", where, timeout=120)
    try:
        got = r.communicate(timeout=60)[0].strip()
    except subprocess.TimeoutExpired:
        r.kill()
        got = ""
    return sent.returncode == 0 and got == hashlib.sha256(octets(SIZE)).hexdigest()


def perf(*more, v6=False):
    where = f"[{ADDR6['b']}]" if v6 else ADDR["b"]
    r = urnic("a", "perf", where, "--size", "64K", "--count", "300", "--json", *more)
    if r.returncode:
        print(r.stderr, flush=True)
    return r.returncode == 0



def link(n, dev="tap0"):
    r = call("ip", "-n", NS[n], "-j", "addr", "show", dev)
    return json.loads(r.stdout)[0] if r.returncode == 0 and r.stdout.strip() else {}


def addresses(n):
    call("ip", "-n", NS[n], "addr", "add", ADDR[n] + "/24", "dev", "tap0")
    call("ip", "-n", NS[n], "addr", "add", ADDR6[n] + "/64", "dev", "tap0", "nodad")


def make_network():
    for n in NS.values():
        if call("ip", "netns", "add", n).returncode:
            return False
    call("ip", "-n", NS["a"], "link", "add", "v0", "type", "veth", "peer", "name", "v0", "netns", NS["b"])
    for n in NS:
        in_ns(n, "sysctl", "-qw", "net.ipv6.conf.v0.disable_ipv6=1")
        in_ns(n, "ethtool", "-K", "v0", "rx", "off", "tx", "off", "tso", "off", "gso", "off", "gro", "off")
        call("ip", "-n", NS[n], "link", "set", "v0", "up")
    return True


def server():
    p = subprocess.Popen(["ip", "netns", "exec", NS["b"], URNIC, "--socket", f"{DIR}/b.sock", "perf", "--server"],
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    started.append(p)
    return p


def run(daemons):
    for n in NS:
        addresses(n)
        check(link(n).get("address") == link(n, "v0").get("address"), f"{n}: the interface has the NIC's MAC address")
        check(link(n).get("mtu") == 1500 and "LOWER_UP" in link(n)["flags"], "its MTU, and a carrier")
    p = server()
    check(soon(tcp), "a file by TCP, over the daemons' NIC")
    check(tcp(v6=True), "and by IPv6")
    check(soon(perf), "WRITEs between the very same addresses")
    check(perf(v6=True), "and by IPv6")
    result = []
    both = [threading.Thread(target=lambda f=f: result.append(f())) for f in (tcp, perf)]
    for t in both:
        t.start()
    for t in both:
        t.join()
    check(result == [True, True], "a file by TCP and WRITEs at the same time, both right")
    check(counter("a", "kernel_rx") > 1000 and counter("a", "kernel_tx") > 1000, "counted: kernel_rx, kernel_tx")
    check(counter("a", "rx_not_roce") < 100, "what is the kernel's is no drop of the engine")

    # killed: the kernel's interface stays, with its addresses
    daemons["a"].send_signal(signal.SIGKILL)
    daemons["a"].wait()
    check(soon(lambda: "LOWER_UP" not in link("a").get("flags", ["LOWER_UP"])), "killed: no carrier")
    check(any(x["local"] == ADDR["a"] for x in link("a")["addr_info"]), "the kernel's interface keeps its address")
    daemons["a"] = start("a")
    check(soon(lambda: "LOWER_UP" in link("a")["flags"]), "started again: a carrier")
    check(soon(tcp), "and TCP goes on")
    check(soon(perf), "and WRITEs")

    # the cable
    call("ip", "-n", NS["b"], "link", "set", "v0", "down")
    check(soon(lambda: "LOWER_UP" not in link("a")["flags"]) and state("a") == "down", "a pulled cable: both learn it")
    call("ip", "-n", NS["b"], "link", "set", "v0", "up")
    check(soon(lambda: "LOWER_UP" in link("a")["flags"]), "and a plugged one")
    addresses("b")
    check(soon(tcp) and soon(perf), "TCP and WRITEs go on")
    p.terminate()
    p.wait()

    sized = subprocess.Popen(
        ["ip", "netns", "exec", NS["a"], URNICD, "--foreground", "--socket", f"{DIR}/m.sock", "--device",
         "port=mem:m,kernel=tap1,addr=10.7.0.1/24,mtu=4200"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    started.append(sized)
    check(soon(lambda: link("a", "tap1").get("mtu") == 4200), f"mtu=4200 is the kernel's, too {link('a', 'tap1')}")
    sized.terminate()
    sized.wait()

    r = in_ns("a", URNICD, "--foreground", "--socket", f"{DIR}/x.sock", "--port", "mem:x,kernel=tap0", "--addr",
              "10.8.0.1/24")
    check(r.returncode == 1 and "kernel=tap0: another program has this interface" in r.stderr, f"a taken interface {r.stderr}")
    r = in_ns("a", URNICD, "--check-config", "--port", "udp:eth0,kernel=tap0")
    check(r.returncode == 2 and "leave it out" in r.stderr, "--check-config refuses it for a udp: port")
    r = in_ns("a", URNICD, "--check-config", "--port", "mem:x,kernel=tap0", "--addr", "10.8.0.1/24")
    check(r.returncode == 0, f"and accepts it for others {r.stderr}")


def main():
    if URNICD == IN_NS:
        {"receive": receive, "send": send}[sys.argv[2]](sys.argv[3])
        return 0
    try:
        if os.geteuid() or call("unshare", "--net", "true").returncode or not os.access("/dev/net/tun", os.W_OK) \
                or not make_network():
            print("needs root, network namespaces and /dev/net/tun: skipped")
            return 77
        daemons = {n: start(n) for n in NS}
        logs = "".join(open(f"{DIR}/{n}.log", encoding="utf-8").read() for n in NS)
        if any(p.poll() is not None for p in daemons.values()):
            print(logs)
            return 77 if "libdpdk-dev" in logs else 1
        run(daemons)
        for p in daemons.values():
            p.terminate()
            check(p.wait(20) == 0, "a daemon ends with status 0")
        if failed:
            print("".join(open(f"{DIR}/{n}.log", encoding="utf-8").read() for n in NS))
        return 1 if failed else 0
    finally:
        for p in started:
            if p.poll() is None:
                p.kill()
                p.wait()
        for n in NS.values():
            call("ip", "netns", "del", n)
        shutil.rmtree(DIR, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
