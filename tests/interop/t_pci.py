# SPDX-License-Identifier: BSD-3-Clause
"""A whole NIC by DPDK's PCI drivers: urnicd in the guest, with its own virtio-net or e1000, against ours."""
import time

import ends
from bench import Failure, Pair, test
from guest import E1000_PCI, PLUGIN_DIR, VIRTIO_PCI
from t_rc import around, atomics, transfer


def bind(t, pci, driver):
    """Give the PCI device to this driver of the guest's kernel (what dpdk-devbind.py does)."""
    t.guest.sh(f"""
        modprobe -a {driver.replace('-', '_')} {'vfio_iommu_type1' if driver == 'vfio-pci' else ''}
        cd /sys/bus/pci/devices/{pci} || exit 1
        [ ! -e driver ] || echo {pci} >driver/unbind
        echo {driver} >driver_override
        echo {pci} >/sys/bus/pci/drivers_probe
        [ "$(basename "$(readlink driver)")" = {driver} ]""")


class GuestDaemon:
    """urnicd in the guest, on a PCI device."""

    def __init__(self, t, pci, v4, v6, options=""):
        self.t, self.socket, self.log = t, "/run/urnicd.sock", "/run/urnicd.log"
        t.guest.sh(f"rm -f {self.socket}; URNIC_PLUGIN_DIR={PLUGIN_DIR} urnicd --foreground "
                   f"--socket {self.socket} --port dpdk:{pci}{options} --addr {v4}/24 --addr {v6}/64 "
                   f"</dev/null >{self.log} 2>&1 & echo $! >/run/urnicd.pid")
        end = time.monotonic() + 60
        while t.guest.sh(f"test -S {self.socket}", check=False)[0]:
            alive = t.guest.sh("kill -0 $(cat /run/urnicd.pid)", check=False)[0] == 0
            if not alive or time.monotonic() > end:
                raise Failure("urnicd in the guest did not start: " + self.said())
            time.sleep(0.2)

    def said(self):
        return t_last(self.t.guest.sh(f"cat {self.log}"))

    def end(self, v4, access=ends.ALL_ACCESS):
        e = ends.far(self.t.guest, v4, access, program="peer_urnic", env=f"URNIC_SOCKET={self.socket}", side="guest")
        self.t.open_ends.append(e)
        return e

    def stop(self):
        self.t.guest.sh("pid=$(cat /run/urnicd.pid); kill $pid; while kill -0 $pid 2>/dev/null; do sleep 0.1; done",
                        timeout=30)


def t_last(text):
    return text.strip()[-4000:]


def exchange(t, daemon, v4, v6, mtu):
    n = 0
    for theirs, is6 in ((v4, False), (v6, True)):
        near, far = t.near(is6), daemon.end(theirs)
        for q, (a, b) in enumerate(((near, far), (far, near))):
            t.join(a, b, q=q, mtu=mtu)
            for seed, size in enumerate(around(mtu), 1):
                for op in ("SEND", "WRITE", "READ"):
                    transfer(t, Pair(a, b), op, size, seed, q=q)
                    n += 1
            atomics(t, Pair(a, b))
        near.close()
        far.close()
    return n


def drive(t, pci, driver, v4, v6, mtu, options=""):
    bind(t, pci, driver)
    daemon = GuestDaemon(t, pci, v4, v6, options)
    try:
        return exchange(t, daemon, v4, v6, mtu)
    except (Failure, ends.EndError) as e:
        said = daemon.said() + t.guest.sh(f"URNIC_SOCKET={daemon.socket} urnic info", check=False)[1]
        raise Failure(f"{e}; the guest's: {said}") from e
    finally:
        daemon.stop()


@test("pci-virtio-vfio", "a virtio-net PCI NIC, vfio-pci behind an IOMMU: SEND, WRITE, READ both ways, IPv4 and IPv6")
def virtio(t):
    n = drive(t, VIRTIO_PCI, "vfio-pci", "10.77.0.3", "fd77::3", 4096, ",urnic_mtu=4200")
    return f"{n} messages equal, path MTU 4096"


@test("pci-e1000-uio", "an e1000 PCI NIC, uio_pci_generic: SEND, WRITE, READ both ways, IPv4 and IPv6")
def e1000(t):
    n = drive(t, E1000_PCI, "uio_pci_generic", "10.77.0.4", "fd77::4", 1024)
    return f"{n} messages equal, path MTU 1024"
