# SPDX-License-Identifier: BSD-3-Clause
"""Virtual machines and containers: QEMU moves a running guest to another QEMU by RDMA; bubblewrap holds a program."""
import os
import re
import subprocess

from row import LOCAL, Row

HERE = os.path.dirname(os.path.abspath(__file__))


def guest(rig):
    """The guest's kernel, and where the consoles of both ends go."""
    path = f"{rig.folder}/qemu_guest"
    if not os.path.exists(path):
        subprocess.run(["gcc", "-m32", "-march=i686", "-O2", "-w", "-ffreestanding", "-fno-pic", "-no-pie",
                        "-fno-stack-protector", "-mno-sse", "-nostdlib", "-static",
                        "-Wl,-Ttext=0x100000,--build-id=none,-z,noseparate-code", "-o", path,
                        os.path.join(HERE, "qemu_guest.c")], check=True)
    known = {"guest": path, "end": os.path.join(HERE, "qemu_migrate.py"), "from": f"{rig.folder}/console-from",
             "to": f"{rig.folder}/console-to"}
    for name in ("from", "to"):
        if os.path.exists(known[name]):
            os.unlink(known[name])
    return known


def goes_on(rig, _):
    """The guest said "round N right" for each N in turn: first here, then there."""
    rounds = []
    for name in ("from", "to"):
        with open(f"{rig.folder}/console-{name}", encoding="ascii", errors="replace") as f:
            rounds.append([int(n) for n in re.findall(r"^round (\d+) right\n", f.read(), re.M)])
    if not all(rounds):
        return "the guest did not run at both ends"
    whole = rounds[0] + rounds[1]
    return "" if whole == list(range(1, len(whole) + 1)) else f"rounds {rounds[0][-3:]}, then {rounds[1][:3]}"


def contained():
    contain = ["sh", os.path.join(HERE, "contained.sh")]
    for name, options in (("", ""), (", own process ids", "--unshare-pid")):
        yield Row(f"rping in containers{name}", [*contain, "rping", "-c", "-a", "{sip}", "-p", "{port}", "-C", "20", "-V", "-v"],
                  [*contain, "rping", "-s", "-a", "{sip}", "-p", "{port}", "-C", "20", "-V"], env={"OPTIONS": options},
                  expect=r"ping data: rdma-ping-19:", octets=20 * 64, topologies=LOCAL, listens="cm")


def rows():
    yield from contained()
    for name, words in (("", []), (", rdma-pin-all", ["pin-all"])):
        common = ["{sip}", "{port}", "{guest}"]
        yield Row(f"QEMU live migration{name}", ["/usr/bin/python3", "{end}", "outgoing", *common, "{from}", *words],
                  ["/usr/bin/python3", "{end}", "incoming", *common, "{to}", *words],
                  expect=r"outgoing: postmigrate", server_expect=r"incoming: running", octets=40 << 20, ready=2,
                  seconds=90, prepare=guest, check=goes_on)
