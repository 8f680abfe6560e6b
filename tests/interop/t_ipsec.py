# SPDX-License-Identifier: BSD-3-Clause
"""The recipe of doc/faq.md for IPsec: ESP in transport mode for UDP port 4791, under two urnicds on udp: ports of a
veth.
A test machine's kernel may lack IPsec; the guest's kernel has it. Each host refuses packets without ESP.

Two hosts in the guest, each in a network namespace of its own: in the first one rxe has the port.
"""
from bench import Failure, test
from t_interface import Host, soon

# AES-GCM: a key of 128 bits and 4 octets of salt. SPI and reqid name a direction.
KEY = "0x" + "".join(f"{i:02x}" for i in range(20))
ESP = 8 + 8 + 2 + 16  # octets that it adds: header, IV, trailer, tag; the payload and the trailer are padded to 4
WRITE = 8 + 12 + 16 + 4  # UDP, BTH, RETH, iCRC of a WRITE's first packet


class Family:
    """How the hosts reach each other: addresses, and the MTU of the path for a path MTU of RoCE."""

    def __init__(self, words, header, near, far, prefix):
        self.words, self.header, self.addresses, self.prefix = words, header, (near, far), prefix

    def least_mtu(self, path_mtu):
        return self.header + WRITE + path_mtu + ESP + -(WRITE + path_mtu + 2) % 4


FAMILIES = (Family("IPv4", 20, "10.67.0.1", "10.67.0.2", 24), Family("IPv6", 40, "fd67::1", "fd67::2", 64))


class Apart(Host):
    """A host whose network namespace is not the guest's first."""

    def __init__(self, t, n):
        super().__init__(t, n)
        self.ns = f"ipsec{n}"
        self.inside, self.net = f"ip netns exec {self.ns} ", f"ip -n {self.ns} "


class Rig:
    def __init__(self, t):
        self.t, self.hosts, self.checks = t, [Apart(t, 1), Apart(t, 2)], 0

    def check(self, ok, what):
        if not ok:
            raise Failure(f"{what}; {self.hosts[0].said()[-1000:]} | {self.hosts[1].said()[-1000:]}")
        self.checks += 1

    def protect(self, h):
        """States and policies of one host: everything between the two hosts from or to port 4791."""
        for family in FAMILIES:
            near, far = family.addresses
            for spi, a, b in ((0x1001, near, far), (0x1002, far, near)):
                way = f"src {a} dst {b}"
                h.ip(f"xfrm state add {way} proto esp spi {spi} reqid {spi} mode transport "
                     f"aead 'rfc4106(gcm(aes))' {KEY} 128",
                     f"xfrm policy add {way} proto 17 dport 4791 dir {'out' if (a == near) == (h.n == 1) else 'in'} "
                     f"tmpl {way} proto esp reqid {spi} mode transport")

    def up(self):
        self.t.guest.sh("modprobe -a veth xfrm_user esp4 esp6 gcm ctr ghash_generic sha512_generic drbg seqiv && "
                        "mkdir -p /run/netns")
        for h in self.hosts:
            self.t.guest.sh(f"ip netns add {h.ns}")
            h.ip("link set lo up")
        self.hosts[0].ip(f"link add v0 mtu 9000 type veth peer name v0 mtu 9000 netns {self.hosts[1].ns}")
        for h in self.hosts:
            h.ip(*(f"addr add {f.addresses[h.n - 1]}/{f.prefix} dev v0" + (" nodad" if f.header == 40 else "")
                   for f in FAMILIES), "link set v0 up")
            self.protect(h)

    def down(self):
        for h in self.hosts:
            self.t.guest.sh(f"ip netns del {h.ns}", check=False)

    def try_mtu(self, family, mtu, path_mtu):
        """Two daemons on a path with this MTU; transfers of full packets."""
        case = f"{family.words}, MTU {mtu}"
        for h in self.hosts:
            h.ip(f"link set v0 mtu {mtu}")
            h.start("--port", "udp:v0")
        server = "/run/ipsec-server"
        self.t.guest.sh(f"{self.hosts[1].inside}urnic --socket {self.hosts[1].socket} perf --server "
                        f"</dev/null >{server}.log 2>&1 & echo $! >{server}.pid")
        try:
            self.check(self.hosts[0].info().get("path_mtu") == path_mtu, f"{case}: path MTU {path_mtu}")
            far = family.addresses[1]
            for op in ("write", "send", "read"):
                self.check(soon(lambda op=op: self.perf(far, op), 60), f"{case}: {op} of 64K")
            if mtu == 1500:
                self.refuses_plain(family)
        finally:
            self.t.guest.sh(f"kill $(cat {server}.pid)", check=False)
            for h in self.hosts:
                h.stop()

    def perf(self, far, op):
        far = f"'[{far}]:7472'" if ":" in far else far
        return self.hosts[0].urnic(f"perf {far} --op {op} --size 64K --count 16", check=False, timeout=60)[0] == 0

    def refuses_plain(self, family):
        """A host that sends in clear gets no answer."""
        near, far = family.addresses
        policy = f"src {near} dst {far} proto 17 dport 4791 dir out"
        self.hosts[0].ip(f"xfrm policy del {policy}")
        self.check(not self.perf(far, "write"), f"{family.words}: packets without ESP are refused")
        self.hosts[0].ip(f"xfrm policy add {policy} tmpl src {near} dst {far} proto esp reqid {0x1001} mode transport")

    def run(self):
        for family in FAMILIES:
            self.try_mtu(family, 1500, 1024)
            self.try_mtu(family, family.least_mtu(4096), 4096)


@test("ipsec", "IPsec (ESP, transport mode) under two udp: ports: only encrypted packets are accepted", provokes=("*",),
      tap=False)
def ipsec(t):
    rig = Rig(t)
    try:
        rig.up()
        rig.run()
    finally:
        rig.down()
    return f"{rig.checks} checks; RoCE's path MTU 4096 needs MTU {FAMILIES[0].least_mtu(4096)} over IPv4, " \
           f"{FAMILIES[1].least_mtu(4096)} over IPv6"
