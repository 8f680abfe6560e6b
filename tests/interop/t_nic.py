# SPDX-License-Identifier: BSD-3-Clause
"""urnicd on a whole NIC: what stands in its way and is said of it, by urnicd and by urnic doctor; and a NIC that is
shared, idle, unplugged and plugged in again. Both daemons are the guest's: one on the NIC by DPDK, one beside the
kernel on the NIC "near" of the same hub."""
import re
import tempfile
import time

from bench import Failure, test
from guest import HUB_PCI, PLUGIN_DIR, Guest, hub_device
from t_pci import bind

USER = "setpriv --reuid 1000 --regid 1000 --clear-groups"
HERE, THERE = "10.78.0.3", "10.78.0.1"


def until(condition, seconds):
    """How long it took, or None."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() > began + seconds:
            return None
        time.sleep(0.2)
    return time.monotonic() - began


class Daemon:
    """urnicd in the guest, with `urnic perf --server`. It need not come up."""

    def __init__(self, t, name, port, addr, more="", user="", seconds=40):
        """`user`: words in front of the command: another user, another network namespace."""
        self.t, self.guest, self.name = t, t.guest, name
        self.socket, self.log = f"/tmp/{name}.sock", f"/tmp/{name}.log"
        self.guest.sh(f"rm -f {self.socket} {self.log}; export URNIC_PLUGIN_DIR={PLUGIN_DIR}; {user} urnicd --foreground "
                      f"--socket {self.socket} --device 'port=dpdk:{port},addr={addr}/24{more}' </dev/null "
                      f">{self.log} 2>&1 & echo $! >/tmp/{name}.pid")
        until(lambda: self.serves() or not self.alive(), seconds)
        if self.serves():
            self.guest.sh(f"(urnic --socket {self.socket} perf --server </dev/null >/dev/null 2>&1 &); sleep 0.5")

    def serves(self):
        return self.guest.sh(f"test -S {self.socket}", check=False)[0] == 0 and self.alive()

    def alive(self):
        return self.guest.sh(f"kill -0 $(cat /tmp/{self.name}.pid)", check=False)[0] == 0

    def said(self, lines=40):
        return self.guest.sh(f"grep -v ' cc:' {self.log} | tail -n {lines}", check=False)[1]

    def state(self):
        return self.guest.sh(f"urnic --socket {self.socket} info | sed -n 's/.*state *//p'", check=False)[1].strip()

    def perf(self, to=HERE):
        """WRITEs to the other one. "" or what went wrong."""
        status, text = self.guest.sh(f"urnic --socket {self.socket} perf {to} --time 1", check=False, timeout=90)
        return "" if status == 0 else text.strip()[-200:] or "failed"

    def kill(self):
        self.guest.sh(f"kill -9 $(cat /tmp/{self.name}.pid)")
        until(lambda: not self.alive(), 10)

    def stop(self):
        """SIGTERM. How many seconds it takes to end."""
        self.guest.sh(f"kill $(cat /tmp/{self.name}.pid)", check=False)
        took = until(lambda: not self.alive(), 20)
        self.guest.sh(f"kill -9 $(cat /tmp/{self.name}.pid) 2>/dev/null; rm -f {self.socket}", check=False)
        return took


def near(t, more=""):
    t.guest.sh(f"""
        cd /sys/bus/pci/devices/{HUB_PCI['near']}/virtio*/net && i=$(ls) && ip link set $i up
        echo 1 >/proc/sys/net/ipv6/conf/$i/disable_ipv6""", check=False)
    interface = t.guest.sh(f"ls /sys/bus/pci/devices/{HUB_PCI['near']}/virtio*/net").strip()
    # The kernel's driver has the NIC's VLAN filter, which lets through what the kernel has a VLAN interface for.
    promisc = ",urnic_promisc=1" if "vlan=" in more else ""
    return Daemon(t, "near", f"net_af_packet0,iface={interface}{promisc}", THERE, more)


def doctor(t, port, user=""):
    """Its exit status and all that it says."""
    return t.guest.sh(f"export URNIC_PLUGIN_DIR={PLUGIN_DIR}; {user} urnic --socket /tmp/none doctor dpdk:{port}",
                      check=False, timeout=120)


def refused(t, port, words, user="", more=""):
    """Neither urnicd nor doctor takes the port, and both say why. What urnicd says."""
    status, text = doctor(t, port, user)
    d = Daemon(t, "refused", port, HERE, more, user)
    said, served = d.said(), d.alive()
    d.stop()
    t.check(not served, f"urnicd serves {port} all the same: {said}")
    for word in words:
        t.check(word in said.splitlines()[-1], f"urnicd doesn't say {word}: {said}")
        t.check(word in text, f"doctor doesn't say {word}: {text}")
    t.check(len(said.splitlines()) == 1, f"urnicd says more than one line: {said}")
    t.equal(status, 1, "doctor's status")
    return said


def served(t, name, port, more=""):
    d = Daemon(t, name, port, HERE, more)
    if not d.serves():
        said = d.said()
        d.stop()
        raise Failure(f"urnicd does not serve {port}: {said}")
    return d


@test("pci-past-iommu", "a virtio-net NIC that goes past the IOMMU is refused, not waited for", tap=False)
def past_iommu(t):
    bind(t, HUB_PCI["past"], "vfio-pci")
    began = time.monotonic()
    refused(t, HUB_PCI["past"], ["iommu_platform=on"])
    return f"both said so in {time.monotonic() - began:.0f} s"


@test("pci-group", "a NIC whose IOMMU group the kernel has a part of: that part is named", tap=False)
def group(t):
    bind(t, HUB_PCI["group1"], "e1000")
    bind(t, HUB_PCI["group0"], "vfio-pci")
    refused(t, HUB_PCI["group0"], [HUB_PCI["group1"], "e1000"])
    return "named"


@test("pci-hugepages", "too few hugepages: how many of which size, exit status 1", tap=False)
def hugepages(t):
    bind(t, HUB_PCI["vfio"], "vfio-pci")
    t.guest.sh("echo 4 >/proc/sys/vm/nr_hugepages")
    try:
        refused(t, HUB_PCI["vfio"], ["4 of 2 MiB", "nr_hugepages"])
    finally:
        t.guest.sh("echo 96 >/proc/sys/vm/nr_hugepages")
    return "named"


@test("pci-user", "a user's vfio port: the file without access, the limit of locked memory", tap=False)
def user(t):
    t.guest.sh("chmod 1777 /tmp")
    bind(t, HUB_PCI["vfio"], "vfio-pci")
    refused(t, HUB_PCI["vfio"], ["/dev/vfio/", "chown urnic"], USER)
    file = t.guest.sh(f"echo /dev/vfio/$(basename $(readlink /sys/bus/pci/devices/{HUB_PCI['vfio']}/iommu_group))").strip()
    t.guest.sh(f"chown urnic {file}")
    try:
        limited = f"{USER} sh -c 'ulimit -l 8192; exec \"$@\"' x"
        refused(t, HUB_PCI["vfio"] + ",urnic_mtu=4200", ["LimitMEMLOCK"], limited)
        d = Daemon(t, "user", HUB_PCI["vfio"], HERE, user=USER)
        serves, said = d.serves(), d.said()
        d.stop()
        t.check(serves, f"with both, a user's daemon does not serve: {said}")
        status, text = doctor(t, HUB_PCI["vfio"], USER)
        t.equal(status, 0, f"doctor with both: {text}")
    finally:
        t.guest.sh(f"chown root {file}")
    return "both named, and with both it serves"


@test("pci-vlan", "a VLAN on virtio-net, whose driver has a filter for it; quiet start and stop", tap=False)
def vlan(t):
    bind(t, HUB_PCI["vfio"], "vfio-pci")
    d, n = served(t, "nic", HUB_PCI["vfio"], ",vlan=7"), near(t, ",vlan=7")
    failed, said = n.perf(), d.said()
    n.stop()
    ended = d.stop()
    t.check(not failed, f"WRITEs in the VLAN: {failed}")
    t.check(ended is not None and ended < 8, f"it takes {ended} s to end")
    noise = [x for x in d.said().splitlines() if re.search(r"\b(error|warn)\b", x)]
    t.check(not noise, f"it complains: {noise}")
    t.check("serving" in said, said)
    return "WRITEs in VLAN 7"


@test("pci-vmxnet3", "VMware's NIC, on uio_pci_generic", tap=False)
def vmxnet3(t):
    bind(t, HUB_PCI["vmxnet3"], "uio_pci_generic")
    d, n = served(t, "nic", HUB_PCI["vmxnet3"]), near(t)
    failed, said = n.perf(), d.said()
    n.stop()
    d.stop()
    t.check(not failed, f"WRITEs: {failed}; {said}")
    return "WRITEs"


@test("pci-uio", "e1000e on uio_pci_generic: idle without a core, and refused to a second daemon unharmed", tap=False)
def uio(t):
    pci = HUB_PCI["unplug1"]
    bind(t, pci, "uio_pci_generic")
    d, n = served(t, "nic", pci), near(t)
    try:
        failed = n.perf()
        t.check(not failed, f"WRITEs: {failed}")
        time.sleep(2)
        ticks = int(t.guest.sh("p=$(cat /tmp/nic.pid); use() { awk '{print $14+$15}' /proc/$p/stat; }; "
                               "a=$(use); sleep 4; echo $(($(use)-a))"))
        t.check(ticks < 100, f"{ticks} of 400 ticks while idle: {d.said()}")
        refused(t, pci, ["in use by process", "urnicd"], more=",name=second")
        failed = n.perf()
        t.check(not failed, f"WRITEs after a second daemon was refused: {failed}")
    finally:
        n.stop()
        d.stop()
    return f"{ticks} of 400 ticks, and the first one's WRITEs go on"


def take_away(t, d, name):
    """Unplug the NIC. How many seconds until it has left."""
    t.guest.qmp("device_del", id="d_" + name)
    gone = until(lambda: t.guest.sh(f"test -e /sys/bus/pci/devices/{HUB_PCI[name]}", check=False)[0] != 0, 20)
    t.check(gone is not None, f"the NIC has not left after 20 s: {d.said()}")
    down = until(lambda: "down" in d.state(), 3)
    t.check(down is not None and "gone" in d.said(), f"the port is {d.state()}: {d.said()}")
    return gone


def give_back(t, d, name, driver):
    """Plug the NIC in again. How many seconds until the port goes on."""
    device, *words = hub_device(name).split(",")
    t.guest.qmp("device_add", driver=device, **dict(w.split("=") for w in words))
    t.check(until(lambda: t.guest.sh(f"test -e /sys/bus/pci/devices/{HUB_PCI[name]}", check=False)[0] == 0, 20) is not None,
            "the NIC has not come back")
    bind(t, HUB_PCI[name], driver)
    back = until(lambda: "active" in d.state(), 30)
    t.check(back is not None, f"the port does not come back: {d.said()}")
    return back


def unplug(t, name, driver):
    """Taken away under a running daemon, and given back."""
    pci = HUB_PCI[name]
    bind(t, pci, driver)
    d, n = served(t, "nic", pci), near(t)
    try:
        failed = n.perf()
        t.check(not failed, f"WRITEs: {failed}")
        t.guest.sh(f"""
            rm -f /tmp/ended
            (urnic --socket {n.socket} perf {HERE} --time 60 >/tmp/ending 2>&1; echo $? >/tmp/ended) </dev/null >/dev/null 2>&1 &
            sleep 1""")
        gone = take_away(t, d, name)
        lines = len(d.said(1000).splitlines())
        t.check(lines < 15, f"{lines} lines of log: {d.said()}")
        ended = until(lambda: t.guest.sh("test -s /tmp/ended", check=False)[0] == 0, 40)
        text = t.guest.sh("cat /tmp/ended /tmp/ending", check=False)[1]
        t.check(ended is not None and not text.startswith("0"), f"WRITEs to the NIC that is gone: {text}")
        t.check("transport retries exceeded" in text, f"they end otherwise than on a dead link: {text}")
        back = give_back(t, d, name, driver)
        failed = n.perf()
        t.check(not failed, f"WRITEs after it came back: {failed}; {d.said()}")
    finally:
        n.stop()
        ended = d.stop()
    t.check(ended is not None and ended < 8, f"it takes {ended} s to end")
    return f"left after {gone:.1f} s, came back after {back:.1f} s"


@test("pci-unplug-vfio", "a NIC on vfio-pci that is unplugged: let go of at once, and taken again when it is back", tap=False)
def unplug_vfio(t):
    return unplug(t, "unplug0", "vfio-pci")


@test("pci-unplug-uio", "a NIC on uio_pci_generic that is unplugged, and comes back", tap=False)
def unplug_uio(t):
    return unplug(t, "unplug1", "uio_pci_generic")


# ---- kernel=: one NIC and one address for urnicd and the kernel ----

KERNEL_THERE = "10.78.0.11"  # the kernel's, beside THERE
FILE_MIB = 4
# same COMMAND HOST: does that host's file come whole? busybox's wget looks for the port's number by a library that a
# static program has not.
FETCH = f"""
    here={HERE} there={KERNEL_THERE}
    is=$(md5sum </tmp/www/file)
    same() {{
        [ "$(printf 'GET /file HTTP/1.0\\r\\n\\r\\n' | $1 timeout 20 nc $2 80 | tail -c $(({FILE_MIB} << 20)) | md5sum)" = "$is" ]
    }}
"""


class Kernels:
    """The kernel beside urnicd on the NIC (tap0, with urnicd's own address), and a kernel behind "near", in a network
    namespace, else both were one host. Each serves a file, which the other one fetches."""

    def __init__(self, t):
        self.guest = t.guest
        self.guest.sh(f"""
            set -e
            modprobe tun
            i=$(ls /sys/bus/pci/devices/{HUB_PCI['near']}/virtio*/net)
            ip netns add far
            ip link set $i netns far
            ip -n far link set lo up
            ip -n far link set $i name near
            ip -n far link set near up
            ip -n far addr add {KERNEL_THERE}/24 dev near
            mkdir -p /tmp/www
            dd if=/dev/urandom of=/tmp/www/file bs=1M count={FILE_MIB} 2>/dev/null
            ip netns exec far httpd -p {KERNEL_THERE}:80 -h /tmp/www""")

    def give_address(self):
        """What the machine's owner does with tap0, once."""
        self.guest.sh(f"ip addr add {HERE}/24 dev tap0; httpd -p {HERE}:80 -h /tmp/www")

    def has_carrier(self):
        return self.guest.sh("ip link show tap0 | grep -q LOWER_UP", check=False)[0] == 0

    def has_address(self):
        return self.guest.sh(f"ip addr show dev tap0 | grep -q 'inet {HERE}/24'", check=False)[0] == 0

    def fetch(self):
        """The file, both ways, by TCP. "" or what went wrong."""
        status, text = self.guest.sh(FETCH + """
            same "ip netns exec far" $here || echo from us
            same "" $there || echo to us""", check=False, timeout=60)
        return text.strip() if status == 0 else f"failed: {text}"

    def begin(self):
        """Fetch it again and again, until end()."""
        self.guest.sh(FETCH + """
            rm -f /tmp/enough; echo 0 >/tmp/right; echo 0 >/tmp/wrong
            (while [ ! -e /tmp/enough ]; do
                f=right
                same "ip netns exec far" $here || f=wrong
                same "" $there || f=wrong
                echo $(($(cat /tmp/$f) + 1)) >/tmp/$f
            done; rm /tmp/enough) </dev/null >/dev/null 2>&1 &""")

    def fetched(self):
        """How often it was right, and wrong, both ways."""
        return tuple(int(x) for x in self.guest.sh("cat /tmp/right /tmp/wrong").split())

    def end(self):
        self.guest.sh("touch /tmp/enough; while [ -e /tmp/enough ]; do sleep 0.2; done")
        return self.fetched()

    def tidy(self):
        self.guest.sh("touch /tmp/enough; killall httpd nc; ip link del tap0; ip netns del far; sleep 1; "
                      "rm -rf /tmp/www /tmp/enough", check=False)


def beside_kernel(t, name, driver, more):
    """`more` runs with both daemons and both kernels, once all of them reach each other."""
    bind(t, HUB_PCI[name], driver)
    kernels = Kernels(t)
    d = n = None
    try:
        d = served(t, "nic", HUB_PCI[name] + ",kernel=tap0")
        kernels.give_address()
        n = Daemon(t, "near", "net_af_packet0,iface=near", THERE, user="ip netns exec far")
        works(t, kernels, d, n, "at the start")
        return more(kernels, d, n)
    finally:
        for one in (n, d):
            if one:
                one.stop()
        kernels.tidy()


def works(t, kernels, d, n, when):
    t.check(until(lambda: not kernels.fetch(), 20) is not None, f"a file by TCP {when}: {kernels.fetch()}; {d.said()}")
    failed = n.perf()
    t.check(not failed, f"WRITEs {when}: {failed}; {d.said()}")


@test("pci-kernel", "kernel=tap0: TCP and RoCE at once over one NIC and one address, and after kill -9", tap=False)
def kernel(t):
    def both(kernels, d, n):
        kernels.begin()
        rounds = 0
        while kernels.fetched()[0] < 2 and rounds < 20:
            failed = n.perf()
            t.check(not failed, f"WRITEs while files go by TCP: {failed}; {d.said()}")
            rounds += 1
        right, wrong = kernels.end()
        t.check(right >= 2 and wrong == 0, f"meanwhile {right} files were right and {wrong} wrong: {d.said()}")

        d.kill()
        t.check(until(lambda: not kernels.has_carrier(), 5) is not None, "killed, and tap0 still has a carrier")
        t.check(kernels.has_address(), "killed, and tap0 has lost its address")
        again = served(t, "nic", HUB_PCI["vfio"] + ",kernel=tap0")
        t.check(until(kernels.has_carrier, 5) is not None, "started again, and tap0 has no carrier")
        t.check(kernels.has_address(), "started again, and tap0 has lost its address")
        works(t, kernels, again, n, "after kill -9")
        return f"{right} files of {2 * FILE_MIB} MiB, {rounds} times WRITEs meanwhile, and again after kill -9"

    return beside_kernel(t, "vfio", "vfio-pci", both)


@test("pci-kernel-unplug", "kernel=tap0: a NIC that is unplugged, and comes back: urnicd and the kernel learn both", tap=False)
def kernel_unplug(t):
    def away(kernels, d, n):
        gone = take_away(t, d, "unplug0")
        t.check(until(lambda: not kernels.has_carrier(), 3) is not None, f"the NIC is gone, and tap0 has a carrier: {d.said()}")
        t.check(kernels.has_address(), "the NIC is gone, and tap0 has lost its address")
        back = give_back(t, d, "unplug0", "vfio-pci")
        t.check(until(kernels.has_carrier, 3) is not None, f"the NIC is back, and tap0 has no carrier: {d.said()}")
        works(t, kernels, d, n, "after it came back")
        return f"left after {gone:.1f} s, came back after {back:.1f} s"

    return beside_kernel(t, "unplug0", "vfio-pci", away)


@test("pci-no-iommu", "a machine without an IOMMU: uio_pci_generic is advised, and works", tap=False)
def no_iommu(t):
    with tempfile.TemporaryDirectory() as work:
        nic = ["-netdev", "hubport,id=n0,hubid=1", "-device", "virtio-net-pci,addr=5,netdev=n0,romfile="]
        other = Guest(t.build, work, [], iommu=False, port=2223, more=nic)
        guest, t.guest = t.guest, other
        try:
            other.wait()
            pci = "0000:00:05.0"
            refused(t, pci, ["uio_pci_generic"])
            bind(t, pci, "uio_pci_generic")
            status, text = doctor(t, pci)
            t.equal(status, 0, f"doctor, with uio_pci_generic: {text}")
            served(t, "nic", pci).stop()
        finally:
            t.guest = guest
            other.stop()
    return "advised and served"
