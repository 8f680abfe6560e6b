#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A host on the same wire forges connection requests (CM-21, SEC-20): a REQ with the number of a connected queue pair
ends no connection, and REQs of made-up hosts silence no listener. One daemon on one end of a veth, this script as all
other hosts on the other end.

    test_forgers.py URNICD URNIC [WORKERS]      (as root, with DPDK; else skipped)

Two workers: the forger asks a listener of another worker than the connection's.
"""
import json
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import zlib

URNICD, URNIC = sys.argv[1], sys.argv[2]
WORKERS = sys.argv[3] if len(sys.argv) > 3 else "1"
IN_NS = "--in-namespace"
NS = f"urnic-forge{os.getpid()}"
OURS, PEER = "10.9.0.1", "10.9.0.50"
REQ, REJ, REP, RTU, DREQ, DREP = 0x10, 0x12, 0x13, 0x14, 0x15, 0x16
failed = []


def check(ok, what):
    print(("ok   " if ok else "FAIL ") + what, flush=True)
    if not ok:
        failed.append(what)


def call(*command, timeout=60):
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, stdin=subprocess.DEVNULL)


# ---- frames ----

def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def datagram(smac, dmac, src, dst, mad):
    """A MAD from QP1 to QP1, with its iCRC."""
    body = struct.pack("!BBHII", 0x64, 0, 0xFFFF, 1, random.getrandbits(24)) + struct.pack("!II", 0x80010000, 1) + mad
    size = 8 + len(body) + 4
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + size, 0, 0x4000, 64, 17, 0, socket.inet_aton(src), socket.inet_aton(dst))
    ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
    udp = struct.pack("!HHHH", 0xC000, 4791, size, 0)
    masked = bytearray(b"\xff" * 8 + ip + udp + body)
    for at in (9, 16, 18, 19, 34, 35, 40):  # TOS, TTL, both checksums, the BTH's reserved octet
        masked[at] = 0xFF
    return dmac + smac + b"\x08\0" + ip + udp + body + struct.pack("<I", zlib.crc32(masked))


def mad(attr, body, tid=None):
    return struct.pack("!BBBBHHQHHI", 1, 7, 2, 3, 0, 0, tid or random.getrandbits(63), attr, 0, 0) + body.ljust(232, b"\0")


def gid(ip):
    return b"\0" * 10 + b"\xff\xff" + socket.inet_aton(ip)


def req(port, local_id, qpn, src=PEER, patience=20, tid=None):
    b = bytearray(232)
    struct.pack_into("!IIQQ", b, 0, local_id, 0, 0x01060000 | port, 0x0202)
    struct.pack_into("!IIII", b, 32, qpn << 8 | 4, 4, patience << 3, random.getrandbits(24) << 8 | patience << 3 | 7)
    struct.pack_into("!HBB", b, 48, 0xFFFF, 3 << 4 | 7, 15 << 4)
    b[56:72], b[72:88], b[93], b[95] = gid(src), gid(OURS), 64, 14 << 3
    struct.pack_into("!BBH", b, 140, 0, 0x40, 4000)
    b[156:160], b[172:176] = socket.inet_aton(src), socket.inet_aton(OURS)
    return mad(REQ, bytes(b), tid)


class Wire:
    """The other end of the cable: hosts with these addresses."""

    def __init__(self, hosts):
        self.hosts = hosts
        self.s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.s.bind(("v1", 0))
        self.mac = self.s.getsockname()[4]
        self.dmac = None

    def arp(self, op, to, src, dst):
        self.s.send(to + self.mac + b"\x08\x06" + struct.pack("!HHBBH6s4s6s4s", 1, 0x800, 6, 4, op, self.mac,
                                                              socket.inet_aton(src), to, socket.inet_aton(dst)).ljust(46, b"\0"))

    def send(self, message, src=PEER):
        self.s.send(datagram(self.mac, self.dmac, src, OURS, message))

    def frame(self, end):
        while time.monotonic() < end:
            self.s.settimeout(max(0.001, end - time.monotonic()))
            try:
                f, where = self.s.recvfrom(9000)
            except TimeoutError:
                return None
            if where[2] == socket.PACKET_OUTGOING:
                continue
            if f[12:14] == b"\x08\x06":
                self.answer(f)
            else:
                return f
        return None

    def answer(self, f):
        asked = socket.inet_ntoa(f[38:42])
        if f[20:22] == b"\0\1" and asked in self.hosts:
            self.arp(2, f[6:12], asked, socket.inet_ntoa(f[28:32]))
        elif f[20:22] == b"\0\2":
            self.dmac = f[22:28]

    def find(self):
        """The daemon's MAC address."""
        end = time.monotonic() + 20
        while not self.dmac and time.monotonic() < end:
            self.arp(1, b"\xff" * 6, PEER, OURS)
            self.frame(time.monotonic() + 0.2)
        return self.dmac is not None

    def get(self, seconds, to=PEER):
        """The next CM message to this host: attribute, TID, body; or None."""
        end = time.monotonic() + seconds
        while True:
            f = self.frame(end)
            if f is None:
                return None
            if f[12:14] == b"\x08\0" and f[36:38] == b"\x12\xb7" and f[42] == 0x64 and f[30:34] == socket.inet_aton(to):
                m = f[62:]
                return struct.unpack("!H", m[16:18])[0], struct.unpack("!Q", m[8:16])[0], m[24:]


# ---- attacks ----

def counters(sock):
    r = call(URNIC, "--socket", sock, "stat", "--all", "--json")
    return {k: v for line in r.stdout.splitlines() for k, v in json.loads(line).get("counters", json.loads(line)).items()}


def soon(condition, seconds=10):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def server(sock, *args):
    return subprocess.Popen([URNIC, "--socket", sock, *args], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)


def connect(wire, port, local_id, qpn, seconds=10):
    """As the client of a listener that may not be there yet: our id and its."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        wire.send(req(port, local_id, qpn))
        got = wire.get(2)
        if got and got[0] == REP:
            theirs = struct.unpack("!I", got[2][:4])[0]
            wire.send(mad(RTU, struct.pack("!II", local_id, theirs), got[1]))
            return theirs
        time.sleep(0.1)
    return None


def stale(wire, sock):
    """CM-21: the listener ends with its connection, so that it tells when that is over."""
    listener = server(sock, "rping", "--port", "7001")
    ours, qpn = 0x11111111, 0x123456
    theirs = connect(wire, 7001, ours, qpn)
    check(theirs is not None, "a connection")
    check(soon(lambda: counters(sock)["cm_established"] == 1), "is established")
    # Contexts go to the worker with the fewest: this one to the other worker, if there is one.
    other = server(sock, "rping", "--port", "7003")
    check(connect(wire, 7003, 0x22222222, 0x654321) is not None, "another one")
    before = counters(sock)["cm_tx"]
    for i in range(200):
        wire.send(req(7003, 0xDEAD0000 + i, qpn))
    got, tid = [], None
    while m := wire.get(3.5):
        got.append(m[0])
        if m[0] == DREQ:
            tid = m[1]
            check(struct.unpack("!III", m[2][:12]) == (theirs, ours, 0), "the challenge names both ids and no queue pair")
    check(got.count(REJ) > 0 and got.count(DREQ) == 3, f"200 forged REQs: REJs and three challenges ({got.count(DREQ)})")
    check(counters(sock)["cm_tx"] - before <= 210, "one answer to each at most, but for the challenges")
    check(listener.poll() is None and counters(sock)["cm_stale_confirmed"] == 0, "and the connection goes on")
    wire.send(mad(DREP, struct.pack("!II", ours, theirs), 4711))
    time.sleep(0.5)
    check(listener.poll() is None, "a DREP to nothing ends it no more than they")
    wire.send(mad(DREP, struct.pack("!II", ours, theirs), tid))
    check(soon(lambda: listener.poll() is not None), "the answer to the challenge does")
    check(counters(sock)["cm_stale_confirmed"] == 1, "and is counted")
    for each in (listener, other):
        each.kill()
        each.wait()


def flood(wire, sock):
    """SEC-20: the listener's program stands still, and hosts that nobody has ask it for connections."""
    listener = server(sock, "perf", "--server", "--port", "7002")
    asked = lambda: (wire.send(req(7002, random.getrandbits(31) | 1, random.getrandbits(23) | 1)), wire.get(0.5))[1]
    check(soon(lambda: (m := asked()) is not None and (m[0] == REP or (m[0] == REJ and m[2][10:12] != b"\0\x08"))), "a listener answers")
    listener.send_signal(signal.SIGSTOP)
    before = counters(sock)
    for i in range(2400):
        src = f"10.9.0.{100 + i % 120}"
        wire.send(req(7002, 0x20000000 + i, 0x400000 + i, src, patience=31), src)
        if i % 40 == 0:
            time.sleep(0.01)
    live = counters(sock)["cm_live"] - before["cm_live"]
    check(400 < live <= 513, f"of 2400 forged REQs at most half of the backlog waits ({live})")
    # Above half an honest host must say the same twice.
    again = req(7002, 0x33333333, 0x300000, tid=99)
    wire.send(again)
    time.sleep(0.6)
    wire.send(again)
    check(soon(lambda: counters(sock)["cm_live"] > before["cm_live"], 1), "an honest host asks twice")
    check(soon(lambda: counters(sock)["cm_live"] - before["cm_live"] <= 2, 10), "ten seconds later the made-up ones are gone")
    check(counters(sock)["cm_silent_peer"] >= 400, "and counted")
    listener.send_signal(signal.SIGCONT)
    check(soon(lambda: (m := asked()) is not None and m[0] in (REP, REJ), 10), "the listener answers an honest host")
    listener.kill()
    listener.wait()


def main():
    if os.geteuid() or call("ip", "netns", "add", NS).returncode:
        print("needs root and network namespaces: skipped")
        return 77
    here = tempfile.mkdtemp(prefix="urnic-forge-")
    try:
        ns = ["ip", "-n", NS, "link"]
        call("ip", "netns", "exec", NS, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1")
        call(*ns, "add", "v0", "mtu", "4200", "type", "veth", "peer", "name", "v1", "mtu", "4200")
        call(*ns, "set", "v0", "up")
        call(*ns, "set", "v1", "up")
        return call_in(here)
    finally:
        call("ip", "netns", "del", NS)
        shutil.rmtree(here, ignore_errors=True)


def call_in(here):
    """The rest inside of the namespace, with a daemon."""
    return subprocess.run(["ip", "netns", "exec", NS, sys.executable, __file__, URNICD, URNIC, WORKERS, IN_NS, here], timeout=110,
                          check=False).returncode


def inside(here):
    sock = f"{here}/u.sock"
    with open(f"{here}/log", "w+", encoding="utf-8") as log:
        daemon = subprocess.Popen([URNICD, "--foreground", "--socket", sock, "--device",
                                   f"port=dpdk:net_af_packet0,iface=v0,addr={OURS}/24,workers={WORKERS}"],
                                  stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            if not soon(lambda: os.path.exists(sock) or daemon.poll() is not None, 30) or daemon.poll() is not None:
                log.seek(0)
                text = log.read()
                print(text)
                return 77 if "libdpdk-dev" in text else 1
            wire = Wire({PEER})
            check(wire.find(), "the daemon answers ARP")
            stale(wire, sock)
            flood(wire, sock)
        finally:
            daemon.terminate()
            check(daemon.wait(20) == 0, "the daemon ends with status 0")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(inside(sys.argv[-1]) if IN_NS in sys.argv else main())
