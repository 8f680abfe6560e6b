#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Ports by DPDK's virtual drivers, in a network namespace: which specifications urnicd serves, what it says of the
others, that urnic doctor agrees, and a gateway outside of the host's prefix.

    test_dpdk_ports.py URNICD URNIC          (as root, with DPDK; else skipped)
"""
import os
import shutil
import subprocess
import sys
import tempfile
import time

URNICD, URNIC = sys.argv[1], sys.argv[2]
DIR = tempfile.mkdtemp(prefix="urnic-ports-")
NS = f"urnic-po{os.getpid()}"
failed = []
started = []  # every process: none outlives the test


def check(ok, what):
    print(("ok   " if ok else "FAIL ") + what, flush=True)
    if not ok:
        failed.append(what)


def call(*command, timeout=60):
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False,
                          stdin=subprocess.DEVNULL)


def ip(*words):
    return call("ip", "-n", NS, *words).returncode == 0


def in_ns(*command):
    return ["ip", "netns", "exec", NS, *command]


def log(name):
    with open(f"{DIR}/{name}.log", encoding="utf-8") as f:
        return f.read()


def daemon(name, *args, seconds=10):
    """urnicd at the socket DIR/name. Returns it once it serves or has ended."""
    socket = f"{DIR}/{name}"
    with open(f"{DIR}/{name}.log", "w", encoding="utf-8") as out:
        p = subprocess.Popen(in_ns(URNICD, "--foreground", "--socket", socket, *args), stdin=subprocess.DEVNULL,
                             stdout=out, stderr=out)
    started.append(p)
    end = time.monotonic() + seconds
    while not os.path.exists(socket) and p.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    return p


def stop(p):
    p.terminate()
    try:
        return p.wait(20)
    except subprocess.TimeoutExpired:
        p.kill()
        return p.wait()


def doctor(spec):
    """Its exit status, and all that it says."""
    r = call(*in_ns(URNIC, "--socket", f"{DIR}/none", "doctor", "dpdk:" + spec))
    return r.returncode, r.stdout + r.stderr


def down_interface():
    """An interface that is down is brought up by urnicd, and left alone by doctor."""
    ip("link", "set", "v0", "down")
    said = doctor("net_af_packet0,iface=v0")
    check(said[0] == 0 and "urnicd brings it up" in said[1], f"doctor and an interface that is down {said}")
    flags = call(*in_ns("cat", "/sys/class/net/v0/flags")).stdout
    check(int(flags, 16) & 1 == 0, f"which is still down {flags}")
    p = daemon("down", "--port", "dpdk:net_af_packet0,iface=v0", "--addr", "10.9.9.1/24")
    check(p.poll() is None and stop(p) == 0, "urnicd serves it")


def gateway_outside():
    """Some clouds give a host a /32 address, and a gateway that is outside of it: it is on the link."""
    device = "port=dpdk:net_af_packet0,iface=v0,addr=10.128.0.2/32,gw=10.128.0.1"
    host = daemon("host", "--device", device)
    far = daemon("far", "--port", "dpdk:net_af_packet0,iface=v1", "--addr", "10.128.0.1/16", "--addr", "10.128.0.9/16")
    server = subprocess.Popen(in_ns(URNIC, "--socket", f"{DIR}/far", "perf", "--server"), stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    started.append(server)
    time.sleep(0.3)
    r = call(*in_ns(URNIC, "--socket", f"{DIR}/host", "perf", "10.128.0.9", "--time", "1"))
    check(r.returncode == 0, f"WRITEs by a gateway outside of the prefix {r.stderr}")
    stop(server)
    check(stop(host) == 0 and stop(far) == 0, "both daemons end with status 0")


def specifications():
    """What each driver is told, and what is said of what it can't be told."""
    serves = (f"net_vhost0,iface={DIR}/a-path-longer-than-the-name-of-an-interface",
              "net_failsafe0,dev(net_af_packet0,iface=v0),dev(net_af_packet1,iface=v1)",
              "net_failsafe1,dev(net_ring0)",  # its interrupts fail late, half started
              "net_ring1", "net_null0")
    for i, spec in enumerate(serves):
        p = daemon(f"s{i}", "--port", "dpdk:" + spec, "--addr", "10.9.9.1/24")
        alive = p.poll() is None
        said = [line for line in log(f"s{i}").splitlines() if "error" in line or "warning" in line]
        check(alive and not said, f"{spec} is served without a complaint {said}")
        check(stop(p) == 0, "and its daemon ends with status 0")
        check(doctor(spec)[0] == 0, f"doctor is content with {spec} {doctor(spec)[1]}")
    refused = (("v0", 1, "udp:v0 uses the addresses that it has, dpdk:net_af_packet0,iface=v0 others"), ("net_afpacket0,iface=v0", 1, "DPDK has no driver of that name"),
               ("net_bonding0,mode=1,slave=net_af_packet0", 1, "Invalid slave port"), ("0000:fe:1f.0", 1, "no PCI device"),
               ("net_af_packet0,iface=v0,framez=2048", 2, "did you mean framesz?"),
               ("net_af_packet0,iface=t0", 1, "carries no Ethernet frames"),
               ("net_af_packet0,iface=nowhere", 1, "no interface"))
    for i, (spec, status, why) in enumerate(refused):
        p = daemon(f"r{i}", "--port", "dpdk:" + spec, "--addr", "10.9.9.1/24")
        check(stop(p) == status and why in log(f"r{i}"), f"{spec}: {why} {log(f'r{i}')}")
        said = doctor(spec)
        check(said[0] == status and why in said[1], f"doctor says so, too {said}")


def main():
    if os.geteuid() or call("ip", "netns", "add", NS).returncode:
        print("needs root and network namespaces: skipped")
        return 77
    if not (ip("link", "set", "lo", "up") and ip("link", "add", "v0", "type", "veth", "peer", "name", "v1")
            and ip("link", "set", "v0", "up") and ip("link", "set", "v1", "up")):
        print("no veth here: skipped")
        return 77
    ip("tuntap", "add", "t0", "mode", "tun")
    ip("link", "set", "t0", "up")
    gateway_outside()
    specifications()
    down_interface()
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        status = main()
    finally:
        for process in started:
            process.kill()
        call("ip", "netns", "del", NS)
        shutil.rmtree(DIR, ignore_errors=True)
    sys.exit(status)
