#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The recipe of doc/faq.md for encryption: udp: ports on the two ends of a WireGuard tunnel (wireguard-go on a TUN
device), with the MTUs that the page computes. On the wire there are only packets of the tunnel.

    test_wireguard.py URNICD URNIC          (as root, which makes the hosts; else skipped)

The hosts are two network namespaces without names, which end with the processes in them.
"""
import json
import os
import shutil
import struct
import subprocess

from udp_rig import DIR, Sniffer, cable, call, check, daemon, end, give, ip, make_hosts, run, serves, soon, start, urnic

TUNNEL, ROCE = 51820, 4791
TAKES = {4: 60, 6: 80}  # octets of the tunnel's IP, UDP and WireGuard headers, and of its tag
# The socket by which `wg` finds a tunnel is named after the interface, for all namespaces.
NAMES = {n: f"wg{n}{os.getpid()}" for n in "ab"}
PEER = {"a": "b", "b": "a"}
NUMBER = {"a": 1, "b": 2}


def said(command, text=""):
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout.strip()


def make_tunnel():
    """Both ends: wireguard-go, keys, the addresses 10.9.0.1 and 10.9.0.2."""
    public = {}
    for n, name in NAMES.items():
        secret = said(["wg", "genkey"])
        public[n] = said(["wg", "pubkey"], secret)
        with open(f"{DIR}/{n}.key", "w", encoding="ascii") as f:
            f.write(secret)
        p = start(n, "wireguard-go", "--foreground", name, log=f"{DIR}/tunnel-{n}.log")
        if not soon(lambda up=name: os.path.exists(f"/var/run/wireguard/{up}.sock")) or p.poll() is not None:
            return False
    for n, name in NAMES.items():
        r = call(n, "wg", "set", name, "listen-port", str(TUNNEL), "private-key", f"{DIR}/{n}.key", "peer",
                 public[PEER[n]], "allowed-ips", f"10.9.0.{NUMBER[PEER[n]]}/32", "endpoint",
                 f"10.30.0.{NUMBER[PEER[n]]}:{TUNNEL}")
        check(r.returncode == 0, f"wg set at {n} {r.stderr}")
        ip(n, "addr", "add", f"10.9.0.{NUMBER[n]}/24", "dev", name)
    return public


def over_ipv6(public):
    """The same tunnel, whose packets are now IPv6."""
    for n, name in NAMES.items():
        call(n, "wg", "set", name, "peer", public[PEER[n]], "endpoint", f"[fd30::{NUMBER[PEER[n]]}]:{TUNNEL}")


def lengths(path):
    """Of the frames of a capture: {(IP version, UDP destination port): longest IP packet}."""
    longest = {}
    with open(path, "rb") as f:
        f.read(24)
        while head := f.read(16):
            d = f.read(struct.unpack("<IIII", head)[2])
            kind = struct.unpack(">H", d[12:14])[0]
            if kind == 0x0800 and d[23] == 17:
                at, version, length = 14 + 4 * (d[14] & 15), 4, struct.unpack(">H", d[16:18])[0]
            elif kind == 0x86DD and d[20] == 17:
                at, version, length = 54, 6, 40 + struct.unpack(">H", d[18:20])[0]
            else:
                continue
            key = version, struct.unpack(">H", d[at + 2:at + 4])[0]
            longest[key] = max(longest.get(key, 0), length)
    return longest


def try_path(version, outer, inner, path_mtu):
    """A path with this MTU, a tunnel with that one: urnic's path MTU, and the packets on the wire."""
    case = f"IPv{version}, path {outer}, tunnel {inner}"
    for n, name in NAMES.items():
        ip(n, "link", "set", "v0", "mtu", str(outer))
        ip(n, "link", "set", name, "mtu", str(inner), "up")
    daemons = [daemon(n, n, "--port", f"udp:{name}") for n, name in NAMES.items()]
    check(all(d.poll() is None for d in daemons), f"{case}: an ordinary user's daemons on the tunnel")
    info = json.loads(urnic("a", "a", "info", "urn0", "--json").stdout or "{}")
    check(info.get("path_mtu") == path_mtu, f"{case}: path MTU {info.get('path_mtu')}, expected {path_mtu}")
    server = serves("b", "b", "7470")
    sniffer = Sniffer("b", "v0", f"{DIR}/wire.pcap")
    sniffer.start()
    for op in "write", "read", "send":
        r = urnic("a", "a", "perf", "10.9.0.2:7470", "-o", op, "-n", "100", "-s", "64K", "--json", timeout=60)
        done = json.loads(r.stdout.splitlines()[0])["messages"] if r.returncode == 0 else 0
        check(done >= 100, f"{case}: {done} of 100 times 64 KiB by {op} {r.stderr.strip()}")
    sniffer.done()
    longest = lengths(f"{DIR}/wire.pcap")
    check(set(longest) == {(version, TUNNEL)}, f"{case}: only the tunnel's packets on the wire {longest}")
    # A WRITE's first packet: IPv4, UDP, BTH, RETH, payload, iCRC. The tunnel pads to 16 octets.
    packet = -(-(20 + 8 + 12 + 16 + path_mtu + 4) // 16) * 16 + TAKES[version]
    check(longest.get((version, TUNNEL)) == packet <= outer, f"{case}: the longest one has {packet} octets {longest}")
    for p in server, *daemons:
        end(p)


def main():
    if not os.path.exists("/dev/net/tun"):
        print("SKIPPED: there is no /dev/net/tun, which a tunnel needs (modprobe tun)")
        return 77
    if not make_hosts("a", "b"):
        print("needs root and network namespaces: skipped")
        return 77
    check(shutil.which("wireguard-go") and shutil.which("wg"), "wireguard-go and wireguard-tools are installed (scripts/deps)")
    cable("a", "v0", "b", "v0")
    give("a", 1)
    give("b", 2)
    public = make_tunnel()
    check(public, "a tunnel")
    if not public:
        return 1
    try_path(4, 1500, 1420, 1024)
    try_path(4, 4252, 4192, 4096)
    over_ipv6(public)
    try_path(6, 1500, 1420, 1024)
    try_path(6, 4272, 4192, 4096)
    return 0


run(main, ("a", "b", "tunnel-a", "tunnel-b"))
