#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the kernel does to an interface under a running daemon: a link that is down for a moment, another MTU, MAC
address or name, another network namespace, another interface in its place (WIRE-36). And what strangers on its
wire claim: our address, or a peer's.

    test_interface.py URNICD URNIC          (as root, with DPDK; else skipped)

Two hosts, each a network namespace with a daemon, joined by a veth whose ends have the same number: then the
kernel delays its news of the carrier.
"""
import json
import os
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

URNICD, URNIC = sys.argv[1], sys.argv[2]
IN_NS = "--in-namespace"  # instead of URNICD: this script runs itself there
DIR = None if URNICD == IN_NS else tempfile.mkdtemp(prefix="urnic-interface-")
NS = {n: f"urnic-if{os.getpid()}-{n}" for n in (1, 2, 3)}  # the third is only a place to move to
EVIL = "02:00:00:00:66:66"
failed = []
started = []  # every process: none outlives the test


def check(ok, what):
    print(("ok   " if ok else "FAIL ") + what, flush=True)
    if not ok:
        failed.append(what)


def call(*command, timeout=60):
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False,
                          stdin=subprocess.DEVNULL)


def ip(n, *words):
    r = call("ip", "-n", NS[n], *words)
    if r.returncode:
        print("ip", *words, r.stderr)
    return r.returncode == 0


def in_ns(n, *command):
    return ["ip", "netns", "exec", NS[n], *command]


def urnic(n, *args):
    return in_ns(n, URNIC, "--socket", f"{DIR}/{n}.sock", *args)


def info(n):
    r = call(*urnic(n, "info", "urn0", "--json"))
    return json.loads(r.stdout) if r.returncode == 0 else {}


def log(n):
    with open(f"{DIR}/{n}.log", encoding="utf-8") as f:
        return f.read()


def soon(condition, seconds=10):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def background(n, *command, name):
    out = open(f"{DIR}/{name}.out", "w", encoding="utf-8")
    p = subprocess.Popen(in_ns(n, *command), stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    started.append(p)
    return p


def perf(*args):
    """A transfer from host 1 to host 2 in the background."""
    return background(1, URNIC, "--socket", f"{DIR}/1.sock", "perf", "10.66.0.2", "--size", "64K", *args, name="perf")


def survives(p, what):
    ok = p.wait(60) == 0
    if not ok:
        with open(f"{DIR}/perf.out", encoding="utf-8") as f:
            print(f.read())
    check(ok, what)


# ---- what runs inside a namespace ----

def octets(mac):
    return bytes.fromhex(mac.replace(":", ""))


def arp(interface, op, sender_mac, sender, target, to="ff:ff:ff:ff:ff:ff"):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    s.bind((interface, 0))
    s.send(octets(to) + octets(sender_mac) + b"\x08\x06\0\1\x08\0\6\4" + struct.pack("!H", op) + octets(sender_mac)
           + socket.inet_aton(sender) + bytes(6) + socket.inet_aton(target) + bytes(18))


def ask(interface, target):
    """Ask for an address by ARP every 2 ms; print after how many ms an answer came."""
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0806))
    s.bind((interface, 0x0806))
    begin = time.monotonic()
    s.settimeout(0.002)
    while time.monotonic() - begin < 3:
        arp(interface, 1, "02:00:00:00:77:77", "10.66.0.77", target)
        try:
            frame = s.recv(2000)
            if frame[20:22] == b"\0\2" and frame[28:32] == socket.inet_aton(target):
                break
        except (TimeoutError, OSError):
            pass
    print(round((time.monotonic() - begin) * 1000))


def announcements(interface, sender, seconds):
    """Print how many announcements of an address come until this time after the end of standard input."""
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0806))
    s.bind((interface, 0x0806))
    s.settimeout(0.05)
    print("listening", flush=True)
    end, n, where = None, 0, socket.inet_aton(sender)
    while end is None or time.monotonic() < end:
        if end is None and select.select([sys.stdin], [], [], 0)[0]:
            end = time.monotonic() + seconds
        try:
            frame, origin = s.recvfrom(2000)
            n += origin[2] != socket.PACKET_OUTGOING and frame[28:32] == where and frame[38:42] == where
        except TimeoutError:
            pass
    print(n)


def inside(what, *args):
    """ask INTERFACE TARGET | arp INTERFACE OP MAC SENDER TARGET COUNT | announcements INTERFACE ADDRESS SECONDS"""
    if what == "ask":
        ask(*args)
    elif what == "announcements":
        announcements(args[0], args[1], float(args[2]))
    else:
        for _ in range(int(args[5])):
            arp(args[0], int(args[1]), *args[2:5])
            time.sleep(0.01)


def run_inside(n, *args):
    return call(*in_ns(n, sys.executable, __file__, IN_NS, *map(str, args))).stdout


# ---- the network ----

def make_network():
    for n in NS.values():
        if call("ip", "netns", "add", n).returncode:
            return False
        call("ip", "netns", "exec", n, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1")
    return cable()


def cable(mtu=4200):
    return (ip(1, "link", "add", "v0", "index", "77", "mtu", str(mtu), "type", "veth", "peer", "name", "v0", "index",
               "77", "mtu", str(mtu), "netns", NS[2]) and all(ip(n, "link", "set", "v0", "up") for n in (1, 2)))


def start(n):
    out = open(f"{DIR}/{n}.log", "w", encoding="utf-8")
    p = subprocess.Popen(in_ns(n, URNICD, "--foreground", "--socket", f"{DIR}/{n}.sock", "--device",
                               f"name=urn0,port=dpdk:net_af_packet0,iface=v0,addr=10.66.0.{n}/24"),
                         stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    started.append(p)
    return p if soon(lambda: p.poll() is not None or info(n).get("state") == "active", 30) and p.poll() is None \
        else None


# ---- what happens to it ----

def flap():
    for down in (0.01, 0.1):
        p = perf("--time", "2")
        time.sleep(0.7)
        ip(2, "link", "set", "v0", "down")
        time.sleep(down)
        ip(2, "link", "set", "v0", "up")
        # The kernel's own news of it would come a second after that of the loss.
        check(soon(lambda: info(2).get("state") == "active", 0.6), f"after {down} s without link it is up at once")
        ms = int(run_inside(1, "ask", "v0", "10.66.0.2"))
        check(ms < 100, f"after {down} s without link the other host answers ARP after {ms} ms")
        survives(p, f"the transfer survives {down} s without link")


def forged():
    p = perf("--time", "3")
    time.sleep(0.5)
    for count in (1, 100):  # host 2's wire has the stranger, too
        run_inside(2, "arp", "v0", 2, EVIL, "10.66.0.2", "10.66.0.2", count)
        time.sleep(0.3)
    survives(p, "WIRE-35 a transfer survives announcements of its peer's address by a stranger")


def conflict():
    before = log(1).count("uses our address")
    ear = subprocess.Popen(in_ns(2, sys.executable, __file__, IN_NS, "announcements", "v0", "10.66.0.1", "1"),
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    started.append(ear)
    ear.stdout.readline()
    run_inside(2, "arp", "v0", 1, EVIL, "10.66.0.1", "10.66.0.9", 50)
    heard = int(ear.communicate(timeout=60)[0])  # which ends its standard input
    check(heard == 1, f"WIRE-34 another host with our address is answered by one announcement ({heard})")
    lines = [line for line in log(1).splitlines() if "uses our address 10.66.0.1" in line]
    check(before == 0 and len(lines) == 1 and EVIL in lines[0], "WIRE-34 and named in one log line")


def works(what):
    """Connections can be made, and data comes through."""
    check(soon(lambda: perf("--count", "64").wait(30) == 0, 30), what)


def lines_of(n, *words):
    return [line for line in log(n).splitlines() if all(w in line for w in words)]


def told(n, what, *words):
    ok = soon(lambda: lines_of(n, *words)) and len(lines_of(n, *words)) == 1
    if not ok:
        print(log(n))
    check(ok, f"WIRE-36 {what} is told in one log line")


def set_mtu(mtu):
    for n in (1, 2):
        ip(n, "link", "set", "v0", "mtu", str(mtu))


def mtu():
    for size, path in ((1500, 1024), (4200, 4096), (9000, 4096), (2300, 2048)):
        set_mtu(size)
        check(all(soon(lambda n=n: info(n)["path_mtu"] == path and info(n)["mtu"] == size - 4) for n in (1, 2)),
              f"WIRE-36 with MTU {size} path MTU is {path}")
        works(f"and WRITEs fit, MTU {size}")
        told(1, f"MTU {size}", f"carries {size - 4} octets of IP")
    for n in (1, 2):  # one end only: its connection manager agrees on what fits
        set_mtu(4200)
        check(all(soon(lambda h=h: info(h)["path_mtu"] == 4096) for h in (1, 2)), "both have 4200 again")
        ip(n, "link", "set", "v0", "mtu", "1500")
        check(soon(lambda n=n: info(n)["path_mtu"] == 1024), f"host {n} alone has MTU 1500")
        works(f"and WRITEs fit, host {n} alone with MTU 1500")
    set_mtu(2300)
    check(all(soon(lambda h=h: info(h)["path_mtu"] == 2048) for h in (1, 2)), "both have 2300 again")
    p = perf("--time", "5")
    check(soon(lambda: info(1).get("qps", 2) > 0), "a connection with path MTU 2048")
    time.sleep(0.7)
    set_mtu(1400)
    told(1, "that a connection's packets don't fit any more", "1 queue pairs keep a larger one")
    check(p.wait(30) != 0, "and it ends")
    set_mtu(4200)
    works("others don't")


def mac():
    p = perf("--time", "3")
    time.sleep(0.5)
    ip(2, "link", "set", "v0", "address", "02:00:00:00:00:22")
    check(soon(lambda: info(2)["mac"] == "02:00:00:00:00:22"), "WIRE-36 another MAC address is followed")
    survives(p, "WIRE-35, WIRE-36 and a transfer survives it")
    told(2, "another MAC address", "MAC address 02:00:00:00:00:22 now")
    works("WRITEs to the new MAC address")


def rename():
    for before, after in (("v0", "w0"), ("w0", "v0")):
        ip(2, "link", "set", before, "down")
        ip(2, "link", "set", before, "name", after)
        ip(2, "link", "set", after, "up")
        works(f"WRITEs over {after}, which was {before}")
        told(2, "another name", f"interface {before} is called {after} now")


def move():
    ip(2, "link", "set", "v0", "netns", NS[3])
    check(soon(lambda: info(2)["state"] == "down"), "WIRE-36 an interface that moved away is no link")
    told(2, "another network namespace", "in another network namespace now")
    ip(3, "link", "set", "v0", "netns", NS[2])
    ip(2, "link", "set", "v0", "up")
    works("WRITEs once it is back")
    told(2, "its return", "interface v0 is back")


def replace():
    ip(1, "link", "del", "v0")
    told(1, "an interface that is deleted", "interface v0 is gone")
    cable(1500)
    works("WRITEs over another interface of its name")
    check(info(1)["path_mtu"] == 1024, "WIRE-36 whose MTU is smaller")
    told(1, "its return", "interface v0 is back")
    address = json.loads(call("ip", "-n", NS[1], "-j", "link", "show", "v0").stdout)[0]["address"]
    check(info(1)["mac"] == address, "WIRE-36 its MAC address is the port's")


def run():
    server = background(2, URNIC, "--socket", f"{DIR}/2.sock", "perf", "--server", name="server")
    check(soon(lambda: perf("--count", "1").wait(30) == 0), "WRITEs")
    flap()
    forged()
    conflict()
    mtu()
    mac()
    rename()
    move()
    replace()
    check(server.poll() is None, "the server is alive")


def main():
    if os.geteuid() or call("unshare", "--net", "true").returncode or not make_network():
        print("needs root and network namespaces: skipped")
        return 77
    daemons = [start(1), start(2)]
    if not all(daemons):
        print(log(1), log(2))
        return 77 if "libdpdk-dev" in log(1) else 1
    try:
        run()
    finally:
        for p in daemons:
            p.terminate()
            check(p.wait(20) == 0, "a daemon ends with status 0")
        if failed:
            print(log(1), log(2))
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1] == IN_NS:
        inside(*sys.argv[2:])
        sys.exit(0)
    try:
        status = main()
    finally:
        for process in started:
            process.kill()
            process.wait()
        for name in NS.values():
            call("ip", "netns", "del", name)
        shutil.rmtree(DIR, ignore_errors=True)
    sys.exit(status)
