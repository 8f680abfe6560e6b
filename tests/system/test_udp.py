#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""udp: ports: daemons of an ordinary user, without any capability, on the addresses of their hosts.

    test_udp.py URNICD URNIC [WORKERS]          (as root, which makes the hosts; else skipped)

With WORKERS each device has so many, and frames must come to the right one of them.

The hosts are two network namespaces without names, which end with the processes in them.
"""
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import time
import zlib

from udp_rig import (DIR, NOBODY, URNIC, URNICD, WORKERS, Sniffer, cable, call, check, counters, daemon, end, flat,
                     give, host, hosts, ip, log_of, make_hosts, run, serves, soon, start, started, urnic)


def addresses(n, name):
    r = urnic(n, name, "info", "urn0", "--json")
    return {g["address"] for line in r.stdout.splitlines() if line.strip()
            for g in json.loads(line).get("gids", [])} if r.returncode == 0 else set()


def perf(*args, to="10.30.0.2", name="a", n="a", timeout=30):
    return urnic(n, name, "perf", to, "-n", "500", "--json", *args, timeout=timeout)


# ---- the tests ----

def test_no_privilege():
    """Two daemons without capabilities: every operation, over both families, with right octets."""
    a, b = daemon("a", "a", "--port", "udp:v0"), daemon("b", "b", "--port", "udp:v0")
    check(a.poll() is None and b.poll() is None, "two daemons of nobody start: " + log_of("a")[-300:])
    with open(f"/proc/{a.pid}/status", encoding="utf-8") as f:
        status = dict(line.split(":\t", 1) for line in f.read().splitlines())
    check(int(status["CapEff"], 16) == 0 and status["Uid"].split()[0] == "65534", "... without capabilities")
    check({"10.30.0.1", "fd30::1"} <= addresses("a", "a"),
          f"the device has the interface's addresses: {addresses('a', 'a')}")
    serves("b", "b", "7472")
    for to in ("10.30.0.2", "[fd30::2]"):
        for op in (["-o", "write"], ["-o", "read"], ["-o", "send"], ["-o", "atomic"], ["-s", "8", "-B", "64"],
                   ["--lat"], ["-s", "5000"]):
            r = perf(*op, to=to)
            check(r.returncode == 0, f"perf {' '.join(op)} to {to}: {r.stderr.strip()}")
    os.mkdir(f"{DIR}/served", 0o777)
    os.chmod(f"{DIR}/served", 0o777)
    start("b", *NOBODY, "env", f"URNIC_SOCKET={DIR}/b.sock", URNIC, "serve", "--dir",
          f"{DIR}/served")
    with open(f"{DIR}/file", "wb") as f:
        f.write(os.urandom(3_000_001))
    for to in ("10.30.0.2", "[fd30::2]"):
        soon(lambda to=to: urnic("a", "a", "copy", "-q", "/etc/passwd", f"{to}:copy").returncode == 0)
        r = urnic("a", "a", "copy", "-q", f"{DIR}/file", f"{to}:copy")
        check(r.returncode == 0 and open(f"{DIR}/file", "rb").read() == open(f"{DIR}/served/copy", "rb").read(),
              f"a file arrives whole at {to}: {r.stderr.strip()}")
    c = counters("b", "b")
    check(c.get("rx_icrc_err", 0) == 0 and c.get("rx_packets", 0) > 1000, "ICRC-08: no packet had a wrong iCRC")
    return a, b


def steered(segmentation, gro):
    """Clients on all workers, some with several queue pairs: the share of packets that the kernel brought to the
    right one, at either end."""
    call("a", "ethtool", "-K", "v0", "tx-udp-segmentation", segmentation)
    call("b", "ethtool", "-K", "v0", "gro", gro)
    before = {n: counters(n, n) for n in hosts}
    clients = [start("a", *NOBODY, "env", f"URNIC_SOCKET={DIR}/a.sock", URNIC, "perf", f"10.30.0.2:{7490 + i}", "-o", op,
                     "-Q", str(1 + i % 2), "-n", "1500", log=f"{DIR}/client{i}.log")
               for i, op in enumerate(("write", "read", "send", "write", "write"))]
    check([c.wait(60) for c in clients] == [0] * len(clients), "clients on all workers are served")
    for n in hosts:
        after = counters(n, n)
        right, moved, lost = (after.get(k, 0) - before[n].get(k, 0)
                              for k in ("steer_right", "steer_moved", "steer_lost"))
        share = right / max(right + moved, 1)
        check(right > 1000 and share >= 0.99 and lost == 0,
              f"segmentation {segmentation}, gro {gro}: at {n} {100 * share:.2f} % of {right + moved} packets came to "
              f"the right worker ({lost} lost on the way to another)")


def test_steering():
    servers = [serves("b", "b", str(7490 + i)) for i in range(5)]  # a context on each worker, and one more
    steered("on", "on")
    steered("off", "on")
    steered("on", "off")
    for n in hosts:
        call(n, "ethtool", "-K", "v0", "tx-udp-segmentation", "on", "gro", "on")
    for s in servers:
        end(s)


def test_captures(segmentation):
    """WIRE-11: what is on the wire is right, as any capture and any receiver see it."""
    for n in hosts:
        call(n, "ethtool", "-K", "v0", "tx-udp-segmentation", segmentation, "gro", segmentation)
    sniffer = Sniffer("b", "v0", f"{DIR}/wire.pcap")
    sniffer.start()
    for to in ("10.30.0.2", "[fd30::2]"):
        for op in ("write", "read", "send"):
            check(perf("-o", op, "-n", "50", to=to).returncode == 0, f"perf -o {op} under capture")
    sniffer.done()
    r = subprocess.run([URNIC, "lint", f"{DIR}/wire.pcap"], capture_output=True, text=True, check=False)
    packets = sum(int(n) for n in re.findall(r"(\d+) packets", r.stdout))
    enough = packets > 2 * sniffer.frames if segmentation == "on" else sniffer.frames > 1000
    check(r.returncode == 0 and enough and "0 violations, 0 undecidable" in r.stdout,
          f"segmentation {segmentation}, {sniffer.frames} frames of {packets} packets: lint finds nothing: "
          + (r.stdout[-1500:] + r.stderr if r.returncode or not enough else ""))


def test_own_capture():
    """The daemon's own capture: right packets, and a word on what is not as on the wire."""
    path = f"{DIR}/own.pcapng"
    client = start("a", *NOBODY, "env", f"URNIC_SOCKET={DIR}/a.sock", URNIC, "perf", "10.30.0.2", "-t", "30", "-s", "4K")
    began = counters("a", "a").get("tx_packets", 0)
    soon(lambda: counters("a", "a").get("tx_packets", 0) > began + 100)
    r = urnic("a", "a", "capture", "--device", "urn0", "--for", "1", path)
    end(client)
    check(r.returncode == 0, "urnic capture: " + r.stderr[-300:])
    r = subprocess.run([URNIC, "lint", path], capture_output=True, text=True, check=False)
    # It begins in a stream, so that the request of an ACK may be missing.
    check(r.returncode == 0 and "\n0 violations" in r.stdout, "... lint finds no violation: " + r.stdout[-300:])
    with open(path, "rb") as f:
        first = f.read(1000)
    check(b"MAC addresses are made up" in first and b"UDP checksums not shown" in first,
          "... and the interface's description tells what is not as on the wire")


def test_taken_port():
    r = daemon("a", "second", "--port", "udp:v0")
    text = log_of("second")
    check(r.poll() == 1 and "4791" in text and "(urnicd)" in text and "process" in text,
          "a second daemon on the same address names the process that has the port: " + text.strip())
    squat = ("import socket, sys\ns = socket.socket(socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET, "
             "socket.SOCK_DGRAM)\ns.bind((sys.argv[1], 4791))\nimport time\ntime.sleep(600)")
    others = {to: start("a", *NOBODY, sys.executable, "-c", squat, to, log=f"{DIR}/squat.log")
              for to in ("127.0.0.5", "127.0.0.6", "::1")}
    for i, (to, p) in enumerate(others.items()):
        soon(lambda to=to: call("a", "ss", "-lunH", "src", f"[{to}]" if ":" in to else to, "and", "sport", "=", "4791").stdout)
        r = daemon("a", f"taken{i}", "--port", f"udp:lo,addr={to}")
        check(r.poll() == 1 and f"process {p.pid} (" in log_of(f"taken{i}"),
              f"of several that have the port, the one that has it of {to}, {p.pid}, is named: " + log_of(f"taken{i}").strip())
    for p in others.values():
        end(p)
    # A socket of the kernel has no process. rdma_rxe's is like that, too (tests/interop/t_taken.py).
    tunnel = ("ip link set lo up && ip link add tunnel0 type vxlan id 1 dstport 4791 local 127.0.0.1 && "
              "ip link set tunnel0 up || exit 77; exec \"$@\"")
    r = subprocess.run(["unshare", "--net", "sh", "-c", tunnel, "sh", URNICD, "--foreground", "--socket", f"{DIR}/kernel.sock",
                        "--port", "udp:lo,addr=127.0.0.7"], capture_output=True, text=True, timeout=60, check=False)
    check(r.returncode == 77 or r.returncode == 1 and
          "UDP port 4791 of 127.0.0.7 is taken by a socket of the kernel" in r.stderr,
          f"a socket of the kernel is named as such (77: no vxlan here): {r.returncode} " + r.stderr.strip())
    r = daemon("a", "bad", "--port", "udp:nothere0")
    check(r.poll() == 1 and "nothere0" in log_of("bad"), "a missing interface is named")
    for key in ("vlan=5", "gw=10.30.0.9", "neigh=kernel:v0"):
        r = daemon("a", "key", "--device", f"port=udp:lo,{key}")
        check(r.poll() in (1, 2) and key.split("=", 1)[0] + "=" in log_of("key"),
              f"{key} is refused: " + log_of("key").strip()[-200:])


def test_lo():
    """Both ends on one machine: on one device, on two, and in two daemons."""
    one = daemon("a", "lo1", "--port", "udp:lo,addr=127.0.0.1;::1")
    two = daemon("a", "lo2", "--port", "udp:lo,addr=127.0.0.2")
    check(one.poll() is None and two.poll() is None, "daemons on lo start: " + log_of("lo1")[-300:])
    serves("a", "lo1", "7480")
    for name, to in (("lo1", "127.0.0.1:7480"), ("lo1", "[::1]:7480"), ("lo2", "127.0.0.1:7480")):
        r = perf(name=name, to=to)
        check(r.returncode == 0, f"{name} to {to}: {r.stderr.strip()}")
    end(one)
    end(two)


def test_addresses_follow():
    """GID-04: addresses come and go while the daemon runs."""
    ip("a", "addr", "add", "10.30.0.11/24", "dev", "v0")
    check(soon(lambda: "10.30.0.11" in addresses("a", "a")), "a new address is the device's")
    ip("a", "addr", "del", "10.30.0.11/24", "dev", "v0")
    check(soon(lambda: "10.30.0.11" not in addresses("a", "a")), "one that is taken away is not")
    ip("a", "addr", "del", "10.30.0.1/24", "dev", "v0")
    ip("a", "addr", "add", "10.30.0.21/24", "dev", "v0")
    check(soon(lambda: {"10.30.0.21"} <= addresses("a", "a")), "the interface is renumbered")
    check(perf().returncode == 0, "... and a connection is made from the new address")
    ip("a", "addr", "del", "10.30.0.21/24", "dev", "v0")
    ip("a", "addr", "add", "10.30.0.1/24", "dev", "v0")
    check(soon(lambda: "10.30.0.1" in addresses("a", "a")), "... and back")


def state(n, name, key):
    r = urnic(n, name, "info", "urn0", "--json")
    return [v for line in r.stdout.splitlines() if line.strip() for k, v in flat(json.loads(line)) if k == key]


def test_link_and_mtu():
    """WIRE-36, EVT-05"""
    ip("a", "link", "set", "v0", "down")
    check(soon(lambda: "link is down" in log_of("a")), "the interface goes down, and so does the link")
    ip("a", "link", "set", "v0", "up")
    ip("a", "addr", "replace", "fd30::1/64", "dev", "v0", "nodad")
    check(soon(lambda: log_of("a").count("link is up") > 0), "... and up again")
    check(soon(lambda: perf().returncode == 0), "... and carries packets")
    for n in ("a", "b"):
        ip(n, "link", "set", "v0", "mtu", "1500")
    check(soon(lambda: "new connections have path MTU 1024" in log_of("a")), "the MTU is followed")
    check(perf().returncode == 0 and perf(to="[fd30::2]").returncode == 0, "... and connections fit it")
    for n in ("a", "b"):
        ip(n, "link", "set", "v0", "mtu", "9000")
    soon(lambda: "new connections have path MTU 4096" in log_of("b"))


def test_icmp():
    """An error of ICMP about one peer does nothing to the connections of another."""
    ip("b", "addr", "add", "10.30.0.3/24", "dev", "v0")
    soon(lambda: "10.30.0.3" in addresses("b", "b"))
    b = daemon_of("b")
    end(b)
    started_b = daemon("b", "b", "--port", "udp:v0,addr=10.30.0.2;fd30::2")
    check(started_b.poll() is None, "a daemon on some of the addresses: " + log_of("b")[-200:])
    serves("b", "b", "7472")
    soon(lambda: perf().returncode == 0)
    long = subprocess.Popen(host("a", *NOBODY, "env", f"URNIC_SOCKET={DIR}/a.sock", URNIC, "perf", "10.30.0.2",
                                 "-t", "3"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    started.append(long)
    time.sleep(0.5)
    began = time.monotonic()
    refused = urnic("a", "a", "perf", "10.30.0.3", "-n", "10")
    took = time.monotonic() - began
    out = long.communicate(timeout=30)[0]
    check(refused.returncode == 1, "no daemon has 10.30.0.3: the client says so")
    check(took < 2, f"CM-39 ... at once: {took:.1f} s, {refused.stderr.strip()}")
    check(long.returncode == 0, "the connection to 10.30.0.2 is not disturbed: " + out)
    check("again and again" not in log_of("a"), "... and the error does not keep waking the daemon")
    check(soon(lambda: "ICMP about packets to 10.30.0.3" in log_of("a")), "the log tells what ICMP says")
    return started_b


FORGE = """
import socket, struct, sys
src, dst, code = socket.inet_aton('10.30.0.1'), socket.inet_aton('10.30.0.2'), int(sys.argv[1])
inner = struct.pack('!BBHHHBBH', 0x45, 0, 60, 0, 0x4000, 64, 17, 0) + src + dst + struct.pack('!HHHH', 4791, 4791, 40, 0)
icmp = struct.pack('!BBHHH', 3, code, 0, 0, 1280) + inner
total = sum(struct.unpack(f'!{len(icmp) // 2}H', icmp))
total = (total & 0xFFFF) + (total >> 16)
total = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
for _ in range(50): s.sendto(icmp[:2] + struct.pack('!H', total) + icmp[4:], ('10.30.0.1', 0))
"""


def test_forged_icmp(engine):
    """CM-39: errors about the peer of established connections end none and lower no path MTU; the flight recorders of
    the queue pairs tell of them."""
    client = start("a", *NOBODY, "env", f"URNIC_SOCKET={DIR}/a.sock", f"URNIC_ENGINE={engine}", URNIC, "perf", "10.30.0.2",
                   "--idle-qps", "2", "-t", "60")
    numbers = []

    def connected():
        numbers[:] = [q["qpn"] for line in urnic("a", "a", "stat", "urn0", "--qps", "--json").stdout.splitlines()
                      for q in json.loads(line).get("qps", [])]
        return len(numbers) >= 3
    check(soon(connected, 20), f"engine={engine}: queue pairs, most of them idle: {numbers}")
    before = counters("a", "a")
    for code in ("3", "4"):  # port unreachable; too big
        call("b", sys.executable, "-c", FORGE, code)

    def told():
        texts = [urnic("a", "a", "stat", "urn0", "--qp", str(n)).stdout for n in numbers]
        return sum("ICMP says that port 4791 of the peer is closed" in t and "ICMP says that packets are too big" in t
                   for t in texts) >= 2
    check(soon(told), "CM-39: the flight recorders of idle queue pairs tell of ICMP errors: "
          + urnic("a", "a", "stat", "urn0", "--qp", str(numbers[-1])).stdout[-600:])
    check(client.poll() is None and soon(lambda: counters("a", "a")["tx_packets"] > before["tx_packets"] + 1000),
          "... and the connections go on")
    end(client)
    soon(lambda: not urnic("a", "a", "stat", "urn0", "--qps", "--json").stdout.count('"qpn"'))
    ip("a", "route", "flush", "cache")  # the kernel has believed it


def test_nat():
    """Packets that were made for another source address, as NAT leaves them, are counted."""
    src, dst = (socket.inet_aton(a) for a in ("192.168.7.7", "10.30.0.1"))
    bth = bytes([0x04, 0, 0xFF, 0xFF, 0, 0, 1, 0x23, 0, 0, 0, 1]) + bytes(16)
    n = len(bth) + 4
    ip = bytes([0x45, 0xFF]) + struct.pack("!HHH", 28 + n, 0, 0x4000) + b"\xff\x11\xff\xff" + src + dst
    udp = struct.pack("!HHHH", 4792, 4791, 8 + n, 0xFFFF)
    seal = struct.pack("<I", zlib.crc32(b"\xff" * 8 + ip + udp + bth[:4] + b"\xff" + bth[5:]))
    call("b", sys.executable, "-c", "import socket, sys\n"
         "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
         "s.bind(('10.30.0.2', 4792))\n"
         "for _ in range(5): s.sendto(bytes.fromhex(sys.argv[1]), ('10.30.0.1', 4791))", (bth + seal).hex())
    check(soon(lambda: counters("a", "a").get("port_rx_nat", 0) == 3), "... is counted as such: "
          + str({k: v for k, v in counters("a", "a").items() if "nat" in k or "icrc" in k}))
    check(soon(lambda: "fits the source address 192.168.7.7" in log_of("a")), "... and the log tells of it")


def test_path_mtu():
    """New connections fit what the kernel knows of the way, those that exist keep their path MTU."""
    def packets():
        before = counters("a", "a")["tx_packets"]
        r = perf("-o", "write", "-s", "64K", "-n", "100")
        return (counters("a", "a")["tx_packets"] - before) / 100 if r.returncode == 0 else r.stderr
    wide = packets()
    ip("a", "route", "add", "10.30.0.2/32", "dev", "v0", "mtu", "1500")
    narrow = packets()
    ip("a", "route", "del", "10.30.0.2/32", "dev", "v0")
    again = packets()
    check(isinstance(narrow, float) and 16 <= wide < 20 and 64 <= narrow < 80 and 16 <= again < 20,
          f"64 KiB take {wide} packets, {narrow} where the route has MTU 1500, {again} without it")


def test_small_buffers():
    """REQ-13: what is on its way fits the sockets' buffers as most systems grant them."""
    end(daemons["a"])
    end(daemons["b"])
    for n in hosts:
        daemons[n] = daemon(n, n, "--port", "udp:v0,buffer=208K")
    serves("b", "b", "7472")
    soon(lambda: perf("-n", "1").returncode == 0)
    for op in ("write", "read"):
        check(perf("-o", op, "-s", "64K", "-n", "4000").returncode == 0, f"perf -o {op} with small buffers")
    c = counters("a", "a")
    check(c.get("tx_retransmit", 0) * 100 < c["tx_packets"],
          f"... sends under 1 % again: {c.get('tx_retransmit', 0)} of {c['tx_packets']}")
    end(daemons["a"])
    end(daemons["b"])
    for n in hosts:
        daemons[n] = daemon(n, n, "--port", "udp:v0")
    serves("b", "b", "7472")
    soon(lambda: perf("-n", "1").returncode == 0)


def test_trains_that_vanish():
    """A path that drops trains without a word: the peer gets single datagrams, and the log says so once."""
    if not shutil.which("iptables"):
        print("skip trains that vanish: iptables is not installed")
        return
    check(end_and_start("a") is None, "a daemon that knows nothing of the path yet")
    rule = ["INPUT", "-p", "udp", "--dport", "4791", "-m", "length", "--length", "9001:65535", "-j", "DROP"]
    if call("b", "iptables", "-A", *rule).returncode:
        print("skip trains that vanish: iptables does not work here")
        return
    r = perf("-o", "write", "-s", "256K", "-n", "200", timeout=60)
    check(r.returncode == 0, "perf over a path that drops trains: " + r.stderr.strip())
    text = "trains of datagrams to 10.30.0.2 do not get through"
    soon(lambda: text in log_of("a"))
    told = log_of("a").count(text)
    check(told == 1, f"... the log tells of it once: {told}")
    call("b", "iptables", "-D", *rule)
    check(end_and_start("a") is None, "a daemon that has forgotten it")


def end_and_start(name):
    end(daemons[name])
    daemons[name] = daemon(name, name, "--port", "udp:v0")
    return daemons[name].poll()


daemons = {}


def daemon_of(name):
    return daemons[name]


def test_programs():
    """urnic run: a program that knows nothing of urnic, over udp: ports."""
    if not shutil.which("ib_write_bw"):
        print("skip perftest: not installed")
        return
    run = ["run", "--", "ib_write_bw", "-d", "urn0", "-x", "3", "-s", "65536", "-n", "200", "-F", "-R"]
    server = start("b", *NOBODY, "env", f"URNIC_SOCKET={DIR}/b.sock", "HOME=/tmp", URNIC, *run,
                   log=f"{DIR}/server.out")
    said, passed = [], []

    def frames():
        now = counters("b", "b")
        return sum(now.get(n, 0) for n in ("port_rx_frames", "port_tx_frames", "channel_rx_frames", "channel_tx_frames"))

    def client():
        before = frames()
        r = urnic("a", "a", *run, "10.30.0.2", HOME="/tmp")
        passed.append(frames() - before)
        said.append(r.stdout + r.stderr)
        return r.returncode == 0
    ok = soon(client, 15)  # the first one may come before the server listens
    with open(f"{DIR}/server.out", encoding="utf-8") as f:
        check(ok and "65536" in said[-1], "ib_write_bw -R under urnic run: " + said[-1][-600:] + f.read()[-600:])
    check(passed[-1] < 300, f"SHM-14: ... of its 3,200 packets the daemon of nobody passes none: {passed[-1]} frames")
    soon(lambda: server.poll() is not None)


def test_groups():
    """UD-10, UD-11: the kernel joins groups; each datagram comes once."""
    if not shutil.which("mckey"):
        print("skip groups: mckey is not installed")
        return
    for group, ours, theirs in (("239.1.2.3", "10.30.0.1", "10.30.0.2"), ("ff15::77", "fd30::1", "fd30::2")):
        group_of(group, ours, theirs)


def group_of(group, ours, theirs):
    """mckey ends without closing its device, so that its engine's counts are lost: the switch's count."""
    run = ["run", "--", "mckey"]
    counter = "channel_group_copies"
    before = counters("b", "b").get(counter, 0)
    out = f"{DIR}/mckey.out"
    member = start("b", *NOBODY, "env", f"URNIC_SOCKET={DIR}/b.sock", "HOME=/tmp", URNIC, *run, "-b", theirs, "-m", group,
                   log=out)
    soon(lambda: "receiving" in open(out, encoding="utf-8").read())
    r = urnic("a", "a", *run, "-s", "-b", ours, "-m", group, HOME="/tmp")
    soon(lambda: member.poll() is not None)
    got = counters("b", "b").get(counter, 0) - before
    check(r.returncode == 0 and member.poll() == 0 and got == 10, f"group {group}: {got} of 10 datagrams: "
          + r.stdout[-300:] + r.stderr[-300:])
    os.remove(out)


def card(name, iface, *addrs):
    """A port like a card's on host b, with a server of perf. Returns whether there can be one."""
    plugin = os.path.join(os.path.dirname(URNICD), "../../drivers/dpdk/liburnic-dpdk.so")
    if not os.path.exists(plugin):
        print("skip a port like a card: built without DPDK")
        return False
    start("b", URNICD, "--foreground", "--socket", f"{DIR}/{name}.sock", "--port",
          f"dpdk:net_af_packet0,iface={iface}", *(w for a in addrs for w in ("--addr", a)), log=f"{DIR}/{name}.log")
    soon(lambda: "serving at" in log_of(name), 20)
    start("b", "env", f"URNIC_SOCKET={DIR}/{name}.sock", URNIC, "perf", "--server", "-p", "7490")
    return True


# Between v6 and v7: IPv4 packets from v6 with an identification, as all of a train but its first one, get another.
RENUMBERS = """
import select, socket
a, b = (socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) for _ in range(2))
a.bind(("v6", 0)), b.bind(("v7", 0))
while True:
    for s in select.select([a, b], [], [])[0]:
        f, (_, _, kind, *_) = s.recvfrom(65536)
        if kind == 4:  # our own
            continue
        f = bytearray(f)
        if s is a and f[12:14] == b"\\x08\\0" and f[18:20] != b"\\0\\0":
            f[18] ^= 0x40
            f[24:26] = bytes(2)
            total = sum(int.from_bytes(f[i:i + 2], "big") for i in range(14, 34, 2))
            total = (total & 0xFFFF) + (total >> 16)
            f[24:26] = (0xFFFF - ((total & 0xFFFF) + (total >> 16))).to_bytes(2, "big")
        (b if s is a else a).send(f)
"""


def test_trains_that_are_renumbered():
    """A card that numbers the datagrams of a train otherwise: a peer that sees identifications drops all but the first
    (rx_icrc_err), and gets single datagrams from then on. The log says so once."""
    ip("a", "link", "add", "v6", "mtu", "9000", "type", "veth", "peer", "name", "v6", "mtu", "9000", "netns",
       str(hosts["b"].pid))
    ip("b", "link", "add", "v7", "mtu", "9000", "type", "veth", "peer", "name", "v8", "mtu", "9000")
    for n, iface in (("a", "v6"), ("b", "v6"), ("b", "v7"), ("b", "v8")):
        call(n, "sysctl", "-qw", f"net.ipv6.conf.{iface}.disable_ipv6=1")
        call(n, "ethtool", "-K", iface, "tx", "off", "rx", "off", "gro", "off")
        ip(n, "link", "set", iface, "up")
    ip("a", "addr", "add", "10.36.0.1/24", "dev", "v6")
    start("b", sys.executable, "-c", RENUMBERS, log=f"{DIR}/renumbers.log")
    if not card("renumbered", "v8", "10.36.0.2/24"):
        return
    there = daemon("a", "there", "--port", "udp:v6")
    soon(lambda: perf("-n", "1", name="there", to="10.36.0.2:7490").returncode == 0)
    r = perf("-o", "write", "-s", "256K", "-n", "30", name="there", to="10.36.0.2:7490", timeout=60)
    check(r.returncode == 0, "perf by a card that numbers trains otherwise: " + r.stderr.strip() + log_of("renumbers")[-300:])
    text = "trains of datagrams to 10.36.0.2 do not get through"
    soon(lambda: text in log_of("there"))
    told = log_of("there").count(text)
    check(told == 1, f"WIRE-11: ... the log tells of it once: {told}")
    c = call("b", URNIC, "stat", "--json", URNIC_SOCKET=f"{DIR}/renumbered.sock")
    wrong = json.loads(c.stdout.splitlines()[0])["counters"].get("rx_icrc_err", 0)
    check(wrong > 0, f"ICRC-08: ... and the peer has dropped the trains' packets: {wrong}")
    end(there)


def test_with_another_port():
    """WIRE-11, WIRE-20, WIRE-24: the other end is as a card: it counts identifications, has other source ports,
    and sends no UDP checksum, over IPv6 too."""
    ip("a", "link", "add", "v5", "mtu", "9000", "type", "veth", "peer", "name", "v5", "mtu", "9000", "netns",
       str(hosts["b"].pid))
    for n in hosts:
        call(n, "sysctl", "-qw", "net.ipv6.conf.v5.disable_ipv6=" + ("0" if n == "a" else "1"))
        call(n, "ethtool", "-K", "v5", "tx", "off", "rx", "off", "gro", "off")
        ip(n, "link", "set", "v5", "up")
    ip("a", "addr", "add", "10.35.0.1/24", "dev", "v5")
    ip("a", "addr", "add", "fd35::1/64", "dev", "v5", "nodad")
    here = daemon("a", "here", "--port", "udp:v5")
    if not card("card", "v5", "10.35.0.2/24", "fd35::2/64"):
        return
    for to in ("10.35.0.2:7490", "[fd35::2]:7490"):
        soon(lambda to=to: perf("-n", "1", name="here", to=to).returncode == 0)
        for op in ("write", "read", "send", "atomic"):
            r = perf("-o", op, "-n", "300", name="here", to=to)
            check(r.returncode == 0, f"perf -o {op} to a port like a card, {to}: {r.stderr.strip()}")
    c = counters("a", "here")
    check(c.get("rx_icrc_err", 0) == 0 and c.get("rx_packets", 0) > 5000, "ICRC-08: its identifications are found: "
          + str({k: v for k, v in c.items() if "icrc" in k or k == "rx_packets"}))
    check(here.poll() is None, "... and the daemon has lived through it")


def main():
    if not make_hosts("a", "b"):
        print("needs root, to make network namespaces")
        return 77
    cable("a", "v0", "b", "v0")
    give("a", 1)
    give("b", 2)
    daemons["a"], daemons["b"] = test_no_privilege()
    if WORKERS:
        test_steering()
    test_captures("off")
    test_captures("on")
    test_own_capture()
    test_taken_port()
    test_lo()
    test_addresses_follow()
    test_link_and_mtu()
    for engine in ("daemon", "application"):
        test_forged_icmp(engine)
    test_nat()
    test_path_mtu()
    test_small_buffers()
    test_trains_that_vanish()
    test_groups()
    test_trains_that_are_renumbered()
    test_with_another_port()
    test_programs()
    test_icmp()
    check(daemons["a"].poll() is None, "the daemon has lived through all of it")
    return 0


run(main, ("a", "b"))
