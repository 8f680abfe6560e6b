# SPDX-License-Identifier: BSD-3-Clause
"""What a test works on: the guest, the cable, our daemon, and pairs of queue pairs across them."""
import collections
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import ends
import guest as guests

OUR4, OUR6 = "10.77.0.1", "fd77::1"
TESTS = []


class Failure(Exception):
    pass


class Skip(Exception):
    pass


Test = collections.namedtuple("Test", "name what short provokes tap function")


def test(name, what, short=False, provokes=(), tap=True):
    """Register a test: a function of the bench that returns a sentence of what it saw. `provokes`: rules that it
    has our side break on purpose; "*": nobody judges its packets, they come from scripts. `tap`: it uses our daemon
    on tap0, so it runs with each kind of port."""
    def add(function):
        TESTS.append(Test(name, what, short, provokes, tap, function))
        return function
    return add


# Which port our daemon has on tap0. With af_packet the kernel has no address there, with udp those of the daemon.
PORTS = {"af_packet": ["--port", "dpdk:net_af_packet0,iface=tap0", "--addr", OUR4 + "/24", "--addr", OUR6 + "/64"],
         "udp": ["--port", "udp:tap0,addr=" + OUR4 + ";" + OUR6]}


def give_tap(port):
    """Make tap0 what a daemon with this port needs."""
    for command in ("addr flush dev tap0", *(("addr add " + OUR4 + "/24 dev tap0", "addr add " + OUR6 + "/64 dev tap0 nodad")
                                             if port == "udp" else ())):
        try:  # the kernel keeps quiet on the tap, unless it is to speak there
            Path("/proc/sys/net/ipv6/conf/tap0/disable_ipv6").write_text("0" if port == "udp" else "1")
        except OSError:
            pass
        subprocess.run(["ip", *command.split()], check=True)


class Daemon:
    """urnicd on tap0."""

    def __init__(self, build, work, port):
        self.build, self.socket, self.log = Path(build), f"{work}/urnicd.sock", f"{work}/urnicd.log"
        self.process, self.port = None, port
        give_tap(port)
        self.start()

    def start(self):
        Path(self.socket).unlink(missing_ok=True)
        self.process = subprocess.Popen(
            [self.build / "app/urnicd/urnicd", "--foreground", "--socket", self.socket,
             *PORTS[self.port]],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=open(self.log, "a"))
        end = time.monotonic() + 20
        while not os.path.exists(self.socket):
            if self.process.poll() is not None or time.monotonic() > end:
                raise Failure("urnicd did not start: " + Path(self.log).read_text()[-500:])
            time.sleep(0.05)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()


class Pair:
    """Two ends, a queue pair each, joined. `req` asks, `rsp` answers: either may be ours."""

    def __init__(self, req, rsp):
        self.req, self.rsp = req, rsp

    def __str__(self):
        return f"{self.req}->{self.rsp}"


class Bench:
    def __init__(self, guest, cable, daemon, build):
        self.guest, self.cable, self.daemon, self.build = guest, cable, daemon, Path(build)
        self.open_ends, self.children = [], []
        self.seen = ""
        self.notes = collections.Counter()

    # ---- verdicts

    def check(self, truth, *what):
        if not truth:
            raise Failure(" ".join(map(str, what)))

    def equal(self, got, wanted, *what):
        if got != wanted:
            raise Failure(f"{' '.join(map(str, what))}: got {got}, expected {wanted}")

    def deviates(self, rule, what):
        """The peer breaks a rule, as known or not: reported, not our failure."""
        self.notes[rule, what] += 1

    def kernel(self):
        """The guest's Linux, (6, 1, 0) for instance."""
        return tuple(int(x) for x in re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", self.guest.release).groups(default=0))

    # ---- ends

    def near(self, v6=False, access=ends.ALL_ACCESS):
        e = ends.near(self.build / "tests/interop/peer_urnic", OUR6 if v6 else OUR4, self.daemon.socket, access)
        self.open_ends.append(e)
        return e

    def far(self, v6=False, access=ends.ALL_ACCESS):
        e = ends.far(self.guest, guests.ADDR6 if v6 else guests.ADDR4, access)
        self.open_ends.append(e)
        return e

    def two_ends(self, v6=False, near_access=ends.ALL_ACCESS, far_access=ends.ALL_ACCESS):
        return self.near(v6, near_access), self.far(v6, far_access)

    def join(self, a, b, q=0, type="rc", psn=0x100, mtu=1024, **words):
        """A queue pair at each end, in RTS. `a` sends from `psn` on. Words: see peer.c's join."""
        a.qp(q, type)
        b.qp(q, type)
        other = psn ^ 0x5A5A5A
        a.do("join", q=q, remote=b.ip, qpn=b.qpn[q], sq_psn=psn, rq_psn=other, mtu=mtu, **words)
        b.do("join", q=q, remote=a.ip, qpn=a.qpn[q], sq_psn=other, rq_psn=psn, mtu=mtu, **words)

    def pairs(self, v6=False, access=ends.ALL_ACCESS, **words):
        """The same connection twice, once with ours and once with rxe as requester; `access` is the region's
        at the responder."""
        for ours_asks in (True, False):
            near, far = self.two_ends(v6, *((15, access) if ours_asks else (access, 15)))
            pair = Pair(near, far) if ours_asks else Pair(far, near)
            self.join(pair.req, pair.rsp, **words)
            yield pair
            near.close()
            far.close()

    # ---- programs

    def spawn(self, *command, **options):
        """A program of ours beside the daemon; ended with the test."""
        child = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True,
                                 env={**os.environ, "URNIC_SOCKET": self.daemon.socket}, **options)
        self.children.append(child)
        return child

    def urnic(self, *words):
        return self.spawn(self.build / "app/urnic/urnic", *words)

    def output(self, child, seconds=60):
        """Wait for a program; its exit status and output."""
        try:
            text, _ = child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.look()
            child.kill()
            text, _ = child.communicate()
            raise Failure(f"{' '.join(child.args[1:])}: still running after {seconds} s: {text[-300:]}") from None
        return child.returncode, text

    def counters(self):
        status, text = self.output(self.urnic("stat", "--json"))
        self.equal(status, 0, "urnic stat")
        return json.loads(text.splitlines()[0])["counters"]

    def counted(self, before):
        """What our daemon has counted since then."""
        try:
            return {k: v - before.get(k, 0) for k, v in self.counters().items() if v != before.get(k, 0)}
        except (Failure, OSError, ValueError):
            return "nothing to be had"

    def look(self):
        """Remember what our queue pairs say of themselves, for a test that fails. The first look counts."""
        def stat(*words):
            return subprocess.run([self.build / "app/urnic/urnic", "stat", *words, "--socket", self.daemon.socket],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=20).stdout
        try:
            if not self.seen:
                pairs = stat("--qps")
                self.seen = pairs + "".join(stat("--qp", x) for x in re.findall(r"^ *qp (0x[0-9a-f]+)", pairs, re.M))
        except (OSError, subprocess.SubprocessError) as e:
            self.seen = f"{e}\n"

    def tidy(self):
        """After each test: nothing of it is left."""
        self.cable.clear()
        self.daemon.process.send_signal(signal.SIGCONT)
        for e in self.open_ends:
            e.close()
        for child in self.children:
            if child.poll() is None:
                child.kill()
            child.communicate()
        self.open_ends, self.children = [], []
        if self.daemon.process.poll() is not None:
            self.daemon.start()
