#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs with engines of their own on udp: ports: each sends and receives by sockets of its own, without the daemon
(SHM-14).

    test_direct.py URNICD URNIC [WORKERS]          (as root, which makes the hosts; else skipped)

The hosts are two network namespaces without names, which end with the processes in them.
"""
import json
import shutil
import signal
import time

from udp_rig import (DIR, NOBODY, URNIC, WORKERS, cable, call, check, counters, daemon, give, ip, make_hosts, run, soon,
                     start, urnic)

ENGINE = "application"


def server(port, engine=ENGINE):
    p = start("b", *NOBODY, "env", f"URNIC_SOCKET={DIR}/b.sock", f"URNIC_ENGINE={engine}", URNIC, "perf", "--server", "-p",
              str(port), log=f"{DIR}/server.log")
    return p


def ready(port, to="10.30.0.2"):
    return soon(lambda: urnic("a", "a", "perf", f"{to}:{port}", "-n", "4", timeout=60).returncode == 0)


def perf(port, *args, to="10.30.0.2", engine=ENGINE, count="3000"):
    r = urnic("a", "a", "perf", f"{to}:{port}", "-n", count, "--json", *args, timeout=60, URNIC_ENGINE=engine)
    if r.returncode:
        print(r.stderr, end="")
    return r.returncode == 0 and json.loads(r.stdout.splitlines()[0])["messages"] >= int(count)


def grown(before, *names):
    now = counters("b", "b")
    return sum(now.get(n, 0) - before.get(n, 0) for n in names)


def test_without_the_daemon():
    p = server(7001)
    check(ready(7001), "a server")
    before = counters("b", "b")
    check(perf(7001, "-s", "8"), "small WRITEs")
    check(perf(7001, "-s", "16K", "-o", "read", count="500"), "READs")
    check(perf(7001, "-s", "16K", "-o", "send", count="500"), "SENDs")
    frames = grown(before, "port_rx_frames", "port_tx_frames", "channel_rx_frames", "channel_tx_frames")
    check(frames < 300, f"of thousands of packets the daemon sees those of connections alone ({frames})")
    check(perf(7001, "-s", "16K", engine="daemon", count="500"), "an engine in the daemon talks to one in a program")
    check(perf(7001, "-s", "16K", to="[fd30::2]", count="500"), "over IPv6")
    r = urnic("b", "b", "perf", "10.30.0.2:7001", "-n", "500", "-s", "16K", timeout=60, URNIC_ENGINE=ENGINE)
    check(r.returncode == 0, "two programs on one device")
    before = counters("b", "b")
    check(perf(7001, "-s", "16K", engine="application,sockets=off", count="500"), "over the channel at one end")
    p.kill()
    p.wait()
    q = server(7002, "application,sockets=off")
    check(ready(7002), "a server without sockets")
    before = counters("b", "b")
    check(perf(7002, "-s", "16K", count="500"), "works as well")
    check(grown(before, "channel_rx_frames") > 1500, "over the channel")
    q.kill()
    q.wait()


def test_one_of_many_ends():
    """The kernel moves sockets to the places of others: each program still gets its packets."""
    servers = [server(7010 + i) for i in range(4)]
    check(all(ready(7010 + i) for i in range(4)), "four servers")
    clients = [start("a", *NOBODY, "env", f"URNIC_SOCKET={DIR}/a.sock", "URNIC_ENGINE=application", URNIC, "perf",
                     f"10.30.0.2:{7010 + i}", "-t", "4", "-s", "4K", log=f"{DIR}/client{i}.log") for i in range(1, 4)]
    time.sleep(1.5)
    servers[0].send_signal(signal.SIGKILL)
    time.sleep(1)
    servers.append(server(7020))
    check(ready(7020), "another server in its place")
    check(all(c.wait(60) == 0 for c in clients), "the others' clients end well")
    before = counters("b", "b")
    check(all(perf(port, "-s", "4K") for port in (7011, 7012, 7013, 7020)), "and each server works")
    moved = grown(before, "channel_strays", "channel_rx_frames")
    check(moved < 200, f"by the right socket ({moved} packets came by another way)")
    for s in servers:
        s.kill()
        s.wait()


def test_joined_by_the_interface():
    """An interface joins packets that one socket has sent, one after the other, to two programs (GRO), and the kernel
    gives them all to the first one. Each packet still reaches the program that it is for, over the channel, and is
    counted. (Over IPv4 only single packets are joined, as trains differ in their identifications.) The clients' worker
    sends for all four; several workers have a socket each, and veth joins none of their packets."""
    if WORKERS:
        return
    joins = all(call(n, "ethtool", "-K", "v0", *words).returncode == 0 for n, words in
                (("a", ("tx-udp-segmentation", "off", "tso", "off")), ("b", ("gro", "on"))))
    # Packets wait 200 us for others to be joined with.
    joins = joins and call("b", "unshare", "-m", "sh", "-c", "mount -t sysfs none /sys && cd /sys/class/net/v0 && "
                           "echo 2 >napi_defer_hard_irqs && echo 200000 >gro_flush_timeout").returncode == 0
    if not joins:
        print("no ethtool, or an interface that does not join: not tried")
        return
    servers = [server(7040 + i) for i in range(4)]
    check(all(ready(7040 + i) for i in range(4)), "four servers behind an interface that joins packets")
    before = counters("b", "b")
    clients = [start("a", *NOBODY, "env", f"URNIC_SOCKET={DIR}/a.sock", URNIC, "perf", f"[fd30::2]:{7040 + i}",
                     "-t", "3", "-s", "1K", "-Q", "4", log=f"{DIR}/client{i}.log") for i in range(4)]
    check(all(c.wait(60) == 0 for c in clients), "their clients, on one socket, end well")
    strays, passed = grown(before, "channel_strays"), grown(before, "channel_tx_frames")
    lost = grown(before, "channel_drops", "channel_bad_peer", "channel_bad_qpn")
    check(strays > 0 and passed + lost >= strays,
          f"{strays} packets came to the wrong program, {passed} were passed on, {lost} lost")
    for s in servers:
        s.kill()
        s.wait()


def test_icmp():
    """CM-39: the kernel gives an error of ICMP to any socket of an address, also to a program's. The program tells the
    daemon, so that new connections end at once."""
    hosts_without = [f"10.31.0.{i}" for i in range(1, 7)]
    for there in hosts_without:
        ip("b", "addr", "add", f"{there}/32", "dev", "lo")
    ip("a", "route", "add", "10.31.0.0/24", "via", "10.30.0.2")
    programs = [start("a", *NOBODY, "env", f"URNIC_SOCKET={DIR}/a.sock", f"URNIC_ENGINE={ENGINE}", URNIC, "perf", "--server",
                      "-p", str(7050 + i), log=f"{DIR}/programs.log") for i in range(8)]
    soon(lambda: counters("a", "a").get("programs", 0) >= 8)
    took = []
    for there in hosts_without:
        began = time.monotonic()
        r = urnic("a", "a", "perf", f"{there}:7001", "-n", "1", timeout=60)
        took.append(time.monotonic() - began if r.returncode == 1 else r.stderr)
    check(all(isinstance(t, float) and t < 5 for t in took), f"beside eight programs, connections to hosts without RoCE end "
          f"at once: {took}")
    for p in programs:
        p.kill()
        p.wait()


def test_addresses():
    """An address that comes later is served over the channel; one that goes may come back."""
    p = server(7030)
    check(ready(7030), "a server")
    ip("b", "addr", "add", "10.30.0.77/24", "dev", "v0")
    check(ready(7030, "10.30.0.77"), "its host has another address")
    check(perf(7030, "-s", "4K", to="10.30.0.77"), "which works")
    ip("b", "addr", "del", "10.30.0.2/24", "dev", "v0")
    time.sleep(1)
    ip("b", "addr", "add", "10.30.0.2/24", "dev", "v0")
    check(ready(7030), "an address goes and comes back")
    check(perf(7030, "-s", "4K"), "and works")
    p.kill()
    p.wait()


def main():
    if not shutil.which("setpriv") or not make_hosts("a", "b"):
        print("needs root and network namespaces: skipped")
        return 77
    cable("a", "v0", "b", "v0")
    give("a", 1)
    give("b", 2)
    daemons = daemon("a", "a", "--port", "udp:v0"), daemon("b", "b", "--port", "udp:v0")
    if any(d.poll() is not None for d in daemons):
        return 1
    test_without_the_daemon()
    test_one_of_many_ends()
    test_icmp()
    test_addresses()
    test_joined_by_the_interface()
    check(all(d.poll() is None for d in daemons), "the daemons live")
    return 0


run(main, ("a", "b"))
