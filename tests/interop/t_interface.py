# SPDX-License-Identifier: BSD-3-Clause
"""What the kernel does to a VLAN interface and to a bond under a running urnicd (WIRE-36): a link that is down for a
moment, another MTU, MAC address or name, another interface in its place. tests/system/test_interface.py does it to
a veth; the machines that run it often have neither VLANs nor bonds, the guest's kernel has both.

Two hosts in the guest, the second in a network namespace of its own; both daemons serve the interface v0.
"""
import json
import time

from bench import Failure, test
from guest import PLUGIN_DIR

NS = "far"


class Host:
    """One of the two: where commands run, and its urnicd."""

    def __init__(self, t, n):
        self.t, self.n = t, n
        self.inside = f"ip netns exec {NS} " if n == 2 else ""
        self.net = f"ip -n {NS} " if n == 2 else "ip "
        self.socket, self.log = f"/run/if{n}.sock", f"/run/if{n}.log"

    def ip(self, *commands):
        self.t.guest.sh(" && ".join(self.net + c for c in commands))

    def flap(self, interface, seconds, times=1):
        """Down for a moment. Not by `ip`: a program takes a quarter of a second to start there."""
        flags = f"/sys/class/net/{interface}/flags"
        self.t.guest.sh(f"{self.inside}sh -c 'down=$(($(cat {flags}) & ~1)); up=$((down | 1)); n={times}; "
                        f"while [ $n -gt 0 ]; do echo $down >{flags}; sleep {seconds}; echo $up >{flags}; sleep 0.2; "
                        "n=$((n-1)); done'")

    def urnic(self, words, check=True, timeout=60):
        return self.t.guest.sh(f"{self.inside}urnic --socket {self.socket} {words}", check=check, timeout=timeout)

    def info(self):
        status, text = self.urnic("info urn0 --json", check=False)
        return json.loads(text) if status == 0 else {}

    def said(self):
        return self.t.guest.sh(f"cat {self.log}")

    def start(self, *device):
        device = " ".join(device) or ("--device name=urn0,port=dpdk:net_af_packet0,iface=v0,"
                                      f"addr=10.66.0.{self.n}/24")
        self.t.guest.sh(f"rm -f {self.socket}; URNIC_PLUGIN_DIR={PLUGIN_DIR} {self.inside}urnicd --foreground "
                        f"--socket {self.socket} {device} </dev/null >{self.log} 2>&1 & echo $! >/run/if{self.n}.pid")
        if not soon(lambda: self.info().get("state") == "active", 60):
            raise Failure("urnicd in the guest did not start: " + self.said()[-2000:])

    def stop(self):
        self.t.guest.sh(f"pid=$(cat /run/if{self.n}.pid) && kill $pid; n=0; while kill -0 $pid 2>/dev/null && "
                        "[ $n -lt 200 ]; do sleep 0.1; n=$((n+1)); done", check=False, timeout=40)


def soon(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


class Vlan:
    """VLAN 7 of a veth."""
    words = "VLAN"

    def cable(self, hosts):
        hosts[0].ip(f"link add p0 mtu 9100 type veth peer name p0 mtu 9100 netns {NS}")
        for h in hosts:
            h.ip("link set p0 up")

    def make(self, h, mtu):
        h.ip("link add link p0 name v0 type vlan id 7", f"link set v0 mtu {mtu}", "link set v0 up")

    def lose(self, h):
        """What is below goes down for a moment, and the VLAN with it; at the other end only the carrier goes."""
        h.flap("p0", 0.05, 3)

    def remove(self, h):
        h.ip("link del v0")

    def gone(self, hosts):
        hosts[0].t.guest.sh("ip link del p0", check=False)


class Bond:
    """Two veths, the second a backup."""
    words = "bond"

    def cable(self, hosts):
        for p in ("p0", "p1"):
            hosts[0].ip(f"link add {p} mtu 9100 type veth peer name {p} mtu 9100 netns {NS}")

    def make(self, h, mtu):
        h.ip("link add v0 type bond mode active-backup miimon 20", "link set p0 down", "link set p1 down",
             "link set p0 master v0", "link set p1 master v0", "link set v0 type bond primary p0",
             f"link set v0 mtu {mtu}", "link set v0 up", "link set p0 up", "link set p1 up")

    def lose(self, h):
        """The active one loses its carrier for a moment: the backup takes over at both ends, and gives back."""
        h.flap("p0", 0.3)

    def remove(self, h):
        h.ip("link del v0")

    def gone(self, hosts):
        hosts[0].t.guest.sh("ip link del v0; ip link del p0; ip link del p1", check=False)


class Rig:
    """Both hosts, and transfers from the first to the second."""

    def __init__(self, t, kind):
        self.t, self.kind, self.hosts = t, kind, [Host(t, 1), Host(t, 2)]
        self.checks = 0

    def check(self, ok, what):
        if not ok:
            raise Failure(f"{what}; {self.hosts[0].said()[-1500:]} | {self.hosts[1].said()[-1500:]}")
        self.checks += 1

    def up(self):
        self.t.guest.sh(f"modprobe -a veth 8021q bonding; mkdir -p /run/netns; ip netns add {NS} && "
                        f"ip -n {NS} link set lo up && for d in /proc/sys/net/ipv6/conf/default; do "
                        f"echo 1 >$d/disable_ipv6; done; ip netns exec {NS} sh -c "
                        "'echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6'")
        self.kind.cable(self.hosts)
        for h in self.hosts:
            self.kind.make(h, 4200)
        for h in self.hosts:
            h.start()
        self.t.guest.sh(f"{self.hosts[1].inside}urnic --socket {self.hosts[1].socket} perf --server "
                        "</dev/null >/run/if-server.log 2>&1 & echo $! >/run/if-server.pid")

    def down(self):
        self.t.guest.sh("kill $(cat /run/if-server.pid)", check=False)
        for h in self.hosts:
            h.stop()
        self.kind.gone(self.hosts)
        self.t.guest.sh(f"ip netns del {NS}; echo 0 >/proc/sys/net/ipv6/conf/default/disable_ipv6", check=False)

    def works(self, what):
        ok = soon(lambda: self.hosts[0].urnic("perf 10.66.0.2 --size 64K --count 32", check=False,
                                              timeout=60)[0] == 0, 60)
        self.check(ok, what)

    def survives(self, event, what):
        """A transfer of some seconds, and this happens in the middle of it."""
        h = self.hosts[0]
        self.t.guest.sh(f"(urnic --socket {h.socket} perf 10.66.0.2 --size 64K --time 4 >/run/if-perf.log 2>&1; "
                        "echo $? >/run/if-perf.status) </dev/null >/dev/null 2>&1 & rm -f /run/if-perf.status")
        time.sleep(1.5)
        event()
        soon(lambda: self.t.guest.sh("test -s /run/if-perf.status", check=False)[0] == 0, 60)
        status = self.t.guest.sh("cat /run/if-perf.status", check=False)[1].strip()
        self.check(status == "0", f"{what}: perf ended with {status or 'nothing'}: "
                                  + self.t.guest.sh("cat /run/if-perf.log", check=False)[1][-300:])

    def told(self, h, *words):
        """In one log line."""
        def lines():
            return [x for x in h.said().splitlines() if all(w in x for w in words)]
        soon(lines)
        self.check(len(lines()) == 1, f"{len(lines())} log lines with {words}")

    def set_mtu(self, mtu):
        for h in self.hosts:
            h.ip(f"link set v0 mtu {mtu}")

    def run(self):
        near, far = self.hosts
        self.works("WRITEs")

        self.survives(lambda: far.flap("v0", 0.1), "a transfer survives 0.1 s without link")
        self.survives(lambda: self.kind.lose(far), "a transfer survives the loss of the carrier")

        for size, path in ((1500, 1024), (4200, 4096), (2300, 2048)):
            self.set_mtu(size)
            for h in self.hosts:
                self.check(soon(lambda h=h: h.info().get("path_mtu") == path and h.info()["mtu"] == size - 4),
                           f"with MTU {size} path MTU is {path}, not {h.info().get('path_mtu')}")
            self.told(near, f"carries {size - 4} octets of IP")
            self.works(f"WRITEs fit, MTU {size}")

        self.survives(lambda: far.ip("link set v0 address 02:00:00:00:00:22"), "a transfer survives another MAC address")
        self.check(soon(lambda: far.info().get("mac") == "02:00:00:00:00:22"), "another MAC address is followed")
        self.told(far, "MAC address 02:00:00:00:00:22 now")

        for before, after in (("v0", "w0"), ("w0", "v0")):
            far.ip(f"link set {before} down", f"link set {before} name {after}", f"link set {after} up")
            self.works(f"WRITEs over {after}, which was {before}")
            self.told(far, f"interface {before} is called {after} now")

        self.kind.remove(near)
        self.told(near, "interface v0 is gone")
        self.check(near.info().get("state") == "down", "an interface that is gone is no link")
        self.kind.make(near, 1500)
        self.works("WRITEs over another interface of its name")
        self.told(near, "interface v0 is back")
        self.check(near.info()["path_mtu"] == 1024, "whose MTU is smaller")
        address = json.loads(self.t.guest.sh("ip -j link show v0"))[0]["address"]
        self.check(near.info()["mac"] == address, "and whose MAC address is the port's")


def follow(t, kind):
    rig = Rig(t, kind)
    try:
        rig.up()
        rig.run()
    finally:
        rig.down()
    return f"{rig.checks} checks"


@test("interface-vlan", "a VLAN interface changes under urnicd: link, MTU, MAC address, name, deleted and back",
      provokes=("*",), tap=False)
def vlan(t):
    return follow(t, Vlan())


@test("interface-bond", "a bond changes under urnicd: link, failover, MTU, MAC address, name, deleted and back",
      provokes=("*",), tap=False)
def bond(t):
    return follow(t, Bond())
