# SPDX-License-Identifier: BSD-3-Clause
"""rdma_rxe has UDP port 4791 of all addresses, by sockets that no process has. urnicd on a udp: port and urnic doctor
say so, and what to do. In a guest of its own, since rdma_rxe is removed at the end."""
import tempfile

from bench import test
from guest import Guest

SOCKET, LOG = "/tmp/taken.sock", "/tmp/taken.log"
USER = "setpriv --reuid 1000 --regid 1000 --clear-groups"


def start(t, port, user=""):
    """urnicd. Its exit status, None if it serves, and what it said."""
    status, text = t.guest.sh(f"""
        rm -f {SOCKET}; {user} urnicd --foreground --socket {SOCKET} --port {port} </dev/null >{LOG} 2>&1 &
        pid=$!; n=0
        while kill -0 $pid 2>/dev/null && [ ! -S {SOCKET} ] && [ $n -lt 300 ]; do sleep 0.1; n=$((n+1)); done
        if [ -S {SOCKET} ]; then kill $pid; wait $pid; exit 100; fi
        wait $pid""", check=False, timeout=60)
    said = t.guest.sh(f"cat {LOG}") + text
    return None if status == 100 else status, said.strip()


def refused(t, port, address, words, user=""):
    status, said = start(t, port, user)
    last = said.splitlines()[-1] if said else ""
    t.equal(status, 1, f"urnicd on {port}, {user or 'root'}: {said}")
    for word in (f"UDP port 4791 of {address} is taken by the kernel's rdma_rxe", *words, "modprobe -r rdma_rxe"):
        t.check(word in last, f"urnicd on {port}, {user or 'root'}, doesn't say '{word}': {said}")
    status, text = t.guest.sh(f"{user} urnic --socket /run/none doctor {port}", check=False, timeout=120)
    t.equal(status, 1, f"doctor {port}, {user or 'root'}")
    for word in ("UDP port 4791 is taken by the kernel's rdma_rxe", *words, "modprobe -r rdma_rxe"):
        t.check(word in text, f"doctor {port}, {user or 'root'}, doesn't say '{word}': {text}")
    return last


def holds_the_port(t):
    device = ["device rxe0 of roce"]
    said = refused(t, "udp:roce", "10.77.0.2", device)
    refused(t, "udp:roce", "10.77.0.2", device, USER)
    refused(t, "'udp:roce,addr=fd77::2'", "fd77::2", device)
    # Its sockets stay as long as the module.
    t.guest.sh("rdma link delete rxe0")
    refused(t, "udp:roce", "10.77.0.2", ["that module is loaded"])
    t.guest.sh("modprobe -r rdma_rxe")
    status, log = start(t, "udp:roce")
    t.equal(status, None, "urnicd serves once rdma_rxe is gone")
    t.check("iCRCs are computed by zlib" in log, "on a processor that QEMU emulates:", log)
    return said


@test("rxe-has-port", "while rdma_rxe has UDP port 4791, urnicd and urnic doctor refuse a udp: port, and name it", tap=False)
def rxe_has_port(t):
    nic = ["-netdev", "hubport,id=n0,hubid=1", "-device", "virtio-net-pci,addr=4,netdev=n0,romfile="]
    with tempfile.TemporaryDirectory() as work:
        other = Guest(t.build, work, [], iommu=False, port=2224, more=nic)
        guest, t.guest = t.guest, other
        try:
            other.wait()
            return holds_the_port(t)
        finally:
            t.guest = guest
            other.stop()
