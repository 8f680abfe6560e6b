#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two daemons with a kernel between them as neighbour and router: ARP, neighbour discovery, echo, gateways,
MTU, VLANs, a pulled cable, addresses that come and go, and frames of all kinds that are none of theirs.

    test_kernel_net.py URNICD URNIC          (as root, with DPDK; else skipped)
"""
import json
import os
import random
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

URNICD, URNIC = sys.argv[1], sys.argv[2]
IN_NS = "--in-namespace"  # instead of URNICD: this script runs itself there
DIR = None if URNICD == IN_NS else tempfile.mkdtemp(prefix="urnic-kernel-net-")
NS = {n: f"urnic-kn{os.getpid()}-{n}" for n in ("a", "b", "r")}  # host, host, the router between
failed = []
started = []  # all daemons: none outlives the test


def check(ok, what):
    print(("ok   " if ok else "FAIL ") + what, flush=True)
    if not ok:
        failed.append(what)


def call(*command, timeout=60, **env):
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False,
                          stdin=subprocess.DEVNULL, env=dict(os.environ, **env))


def in_ns(n, *command, **kwargs):
    return call("ip", "netns", "exec", NS[n], *command, **kwargs)


def urnic(n, *args, **kwargs):
    return in_ns(n, URNIC, "--socket", f"{DIR}/{n}.sock", *args, **kwargs)


def info(n, device):
    return json.loads(urnic(n, "info", device, "--json").stdout)


def soon(condition, seconds=10):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


# ---- what runs inside a namespace ----

def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ping(where, size):
    """One echo request; 0 if its octets come back within two seconds."""
    v6 = ":" in where
    s = socket.socket(socket.AF_INET6 if v6 else socket.AF_INET, socket.SOCK_RAW,
                      socket.IPPROTO_ICMPV6 if v6 else socket.IPPROTO_ICMP)
    body = struct.pack("!HH", os.getpid() & 0xFFFF, 1) + bytes(i % 251 for i in range(size))
    request = struct.pack("!BBH", 128 if v6 else 8, 0, 0) + body
    if not v6:  # the kernel fills in the one of IPv6
        request = request[:2] + struct.pack("!H", checksum(request)) + request[4:]
    s.sendto(request, (where, 0))
    end = time.monotonic() + 2
    while time.monotonic() < end:
        s.settimeout(max(0.01, end - time.monotonic()))
        try:
            answer = s.recv(65536)
        except TimeoutError:
            break
        if not v6:
            answer = answer[(answer[0] & 15) * 4:]
        if answer[0] == (129 if v6 else 0) and answer[4:] == body:
            return 0
    return 1


def rubbish(interface, mac, count):
    """Frames of every kind, to this MAC address or to all: mostly cut short or wrong."""
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    s.bind((interface, 0))
    rng = random.Random(1)
    to = bytes.fromhex(mac.replace(":", ""))
    heads = [
        b"\x08\x06\0\1\x08\0\6\4\0\1", b"\x08\x06\0\1\x08\0\6\4\0\2",   # ARP request, reply
        b"\x08\0\x45\0", b"\x08\0\x4f\xff", b"\x86\xdd\x60\0\0\0",      # IPv4, with options, IPv6
        b"\x81\0\0\7\x08\0\x45\0", b"\x81\0\x81\0\x81\0", b"\x88\xcc",  # tags, LLDP
        b"\x86\xdd\x60\0\0\0\0\x20\x3a\xff" + bytes(32) + b"\x88\0",    # advertisements
        b"\x08\0\x45\0\0\x40\0\0\0\0\x40\x11\0\0\x0a\1\0\xfe\x0a\1\0\1\x30\0\x12\xb7",  # RoCE
    ]
    for _ in range(count):
        frame = rng.choice([to, b"\xff" * 6]) + rng.randbytes(6) + rng.choice(heads)
        try:
            s.send(frame + rng.randbytes(rng.choice([0, 1, 7, 20, 46, 300, 1400])))
        except OSError:
            pass  # too short for the interface, or its queue is full


# ---- the network ----

def make_network():
    for n in NS.values():
        if call("ip", "netns", "add", n).returncode:
            return False
        call("ip", "netns", "exec", n, "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6="
             + ("0" if n == NS["r"] else "1"))
    cables = [("a", "v0", "r", "a0"), ("b", "v0", "r", "b0"), ("a", "v1", "b", "v1")]
    for left, dev, right, peer in cables:
        call("ip", "-n", NS[left], "link", "add", dev, "mtu", "9000", "type", "veth", "peer", "name",
             peer, "mtu", "9000", "netns", NS[right])
        for n, d in ((left, dev), (right, peer)):
            in_ns(n, "ethtool", "-K", d, "rx", "off", "tx", "off", "tso", "off", "gso", "off", "gro",
                  "off", "txvlan", "off", "rxvlan", "off")
            call("ip", "-n", NS[n], "link", "set", d, "up")
    in_ns("r", "sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")
    for dev, net in (("a0", 1), ("b0", 2)):
        call("ip", "-n", NS["r"], "addr", "add", f"10.{net}.0.254/24", "dev", dev)
        call("ip", "-n", NS["r"], "addr", "add", f"fd0{net}::fe/64", "dev", dev, "nodad")
    return True


def start(n, net):
    """A daemon with a routed port and, on the cable between the hosts, one with a VLAN tag."""
    log = open(f"{DIR}/{n}.log", "w", encoding="utf-8")
    p = subprocess.Popen(
        ["ip", "netns", "exec", NS[n], URNICD, "--foreground", "--socket", f"{DIR}/{n}.sock",
         "--device", f"name=urn0,port=dpdk:net_af_packet0,iface=v0,addr=10.{net}.0.1/24;fd0{net}::1/64,"
         f"gw=10.{net}.0.254;fd0{net}::fe,mtu={8000 if net == 1 else 1500}",
         "--device", f"name=urn1,port=dpdk:net_af_packet1,iface=v1,addr=10.7.0.{net}/24,vlan=7"],
        stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    started.append(p)
    up = soon(lambda: p.poll() is not None
              or info_state(n) == ["active", "active"], 30) and p.poll() is None
    return p if up else None


def info_state(n):
    r = urnic(n, "info", "--json")
    return [json.loads(line)["state"] for line in r.stdout.splitlines()] if r.returncode == 0 else []


def state_is(n, state):
    return soon(lambda: info(n, "urn0")["state"] == state)


def perf(to, device, port=7472):
    where = f"[{to}]:{port}" if ":" in to else f"{to}:{port}"
    r = urnic("a", "perf", where, "--device", device, "--size", "1,4K,64K", "--count", "64", "--json")
    if r.returncode:
        print(r.stderr)
    return r.returncode == 0


def ping_from_router(where, size):
    return in_ns("r", sys.executable, __file__, IN_NS, "ping", where, str(size)).returncode == 0


def neighbour(interface, where):
    text = call("ip", "-n", NS["r"], "neigh", "show", where, "dev", interface).stdout.split()
    return text[text.index("lladdr") + 1] if "lladdr" in text else None


def run(daemons):
    mac = info("a", "urn0")["mac"]
    v0 = json.loads(in_ns("a", "ip", "-j", "link", "show", "v0").stdout)[0]["ifindex"]
    check(info("a", "urn0")["ifindex"] == v0, "the port's interface has its number")
    check(info("a", "urn0")["path_mtu"] == 4096 and info("b", "urn0")["path_mtu"] == 1024,
          "mtu=8000 makes path MTU 4096, mtu=1500 makes 1024")
    for where, size in (("10.1.0.1", 0), ("10.1.0.1", 7900), ("10.2.0.1", 1400), ("fd01::1", 7900),
                        ("fd02::1", 56)):
        check(ping_from_router(where, size), f"echo of {size} octets from {where}")
    check(neighbour("a0", "10.1.0.1") == mac, "the router knows its MAC address by ARP")
    check(neighbour("a0", "fd01::1") == mac, "and by neighbour discovery")

    servers = [subprocess.Popen(["ip", "netns", "exec", NS["b"], URNIC, "--socket", f"{DIR}/b.sock",
                                 "perf", "--server", "--device", d, "--port", port],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
               for d, port in (("urn0", "7472"), ("urn1", "7473"))]
    try:
        check(soon(lambda: perf("10.2.0.1", "urn0")), "WRITEs through a gateway, IPv4, to a port of a smaller MTU")
        check(perf("fd02::1", "urn0"), "and IPv6")
        vlan(servers)
        cable()
        addresses()
        in_ns("r", sys.executable, __file__, IN_NS, "rubbish", "a0", mac, "20000")
        check(daemons[0].poll() is None and ping_from_router("10.1.0.1", 56)
              and ping_from_router("fd01::1", 56), "20,000 frames of rubbish disturb nothing")
        check(perf("10.2.0.1", "urn0"), "WRITEs after them")
    finally:
        for s in servers:
            s.terminate()
            s.wait()


def vlan(servers):
    capture = subprocess.Popen(["ip", "netns", "exec", NS["a"], URNIC, "--socket", f"{DIR}/a.sock",
                                "capture", "--device", "urn1", f"{DIR}/vlan.pcapng"],
                               stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    capture.stderr.readline()  # "capturing"
    check(soon(lambda: perf("10.7.0.2", "urn1", 7473)), "WRITEs in VLAN 7")
    capture.send_signal(2)
    capture.communicate(timeout=20)
    with open(f"{DIR}/vlan.pcapng", "rb") as f:
        data = f.read()
    tagged = data.count(b"\x81\0\0\7\x08\0\x45")
    check(tagged > 100 and data.count(b"\x08\0\x45") == tagged, f"all {tagged} frames have its tag")
    check(all(s.poll() is None for s in servers), "the servers are alive")


def cable():
    call("ip", "-n", NS["r"], "link", "set", "a0", "down")
    check(state_is("a", "down"), "a pulled cable is noticed")
    call("ip", "-n", NS["r"], "link", "set", "a0", "up")
    check(state_is("a", "active"), "and a plugged one")
    # The kernel has forgotten its IPv6 address with the cable; what it knew of neighbours, too.
    call("ip", "-n", NS["r"], "addr", "add", "fd01::fe/64", "dev", "a0", "nodad")
    check(soon(lambda: perf("10.2.0.1", "urn0")), "WRITEs go on")


def addresses():
    check(not ping_from_router("10.1.0.9", 56), "nobody has 10.1.0.9")
    check(urnic("a", "link", "urn0", "--addr-add", "10.1.0.9/24").returncode == 0, "it is added")
    check(soon(lambda: ping_from_router("10.1.0.9", 56)), "and answers")
    check(urnic("a", "link", "urn0", "--addr-del", "10.1.0.9").returncode == 0, "it is removed")
    check(not ping_from_router("10.1.0.9", 56), "and is silent")
    check(ping_from_router("10.1.0.1", 56), "the other one is not")


def main():
    if os.geteuid() or call("unshare", "--net", "true").returncode or not make_network():
        print("needs root and network namespaces: skipped")
        return 77
    daemons = [start("a", 1), start("b", 2)]
    if not all(daemons):
        logs = "".join(open(f"{DIR}/{n}.log", encoding="utf-8").read() for n in "ab")
        print(logs)
        return 77 if "libdpdk-dev" in logs else 1
    try:
        run(daemons)
    finally:
        for p in daemons:
            p.terminate()
            check(p.wait(20) == 0, "a daemon ends with status 0")
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1] == IN_NS:
        if sys.argv[2] == "ping":
            sys.exit(ping(sys.argv[3], int(sys.argv[4])))
        sys.exit(rubbish(sys.argv[3], sys.argv[4], int(sys.argv[5])))
    try:
        status = main()
    finally:
        for process in started:
            process.kill()
        for name in NS.values():
            call("ip", "netns", "del", name)
        shutil.rmtree(DIR, ignore_errors=True)
    sys.exit(status)
