# SPDX-License-Identifier: BSD-3-Clause
"""Storage: fio's rdma engine, librpma, iSER between tgt and libiscsi."""
import os
import subprocess

from row import LOCAL, Row

HERE = os.path.dirname(os.path.abspath(__file__))


def program(source, *words):
    """What builds a program of ours; its path is {program}."""
    def build(rig):
        name = os.path.splitext(source)[0]
        path = f"{rig.folder}/{name}"
        if not os.path.exists(path):
            compiler = ["g++", "-std=c++17"] if source.endswith(".cc") else ["gcc", "-std=gnu17"]
            subprocess.run([*compiler, "-O2", "-w", "-o", path, os.path.join(HERE, source), *words], check=True)
        return {"program": path}
    return build


def fio():
    """The client of fio's engine has rw=write whatever the verb; fio itself verifies what a SEND brings. It asks for
    RNR retry 0, so the receiver has room for all messages."""
    for verb in ("write", "read", "send"):
        verify = ["--verify=crc32c", "--verify_fatal=1"] if verb == "send" else []
        yield Row(f"fio, verb={verb}",
                  ["fio", "--name=client", "--ioengine=rdma", "--hostname={sip}", "--port={port}", f"--verb={verb}",
                   "--rw=write", "--bs=64k", "--size=16m", "--iodepth=1", "--verify=crc32c", "--do_verify=0"],
                  ["fio", "--name=server", "--ioengine=rdma", "--port={port}", "--rw=read", "--bs=64k", "--size=16m",
                   "--iodepth=256", *verify],
                  expect=r"err= 0", server_expect=r"err= 0", refuse=r"verify failed|error=", octets=16 << 20, ready=1.5)


def rpma():
    yield Row("librpma: write, flush, read, send", ["{program}", "call", "{sip}", "{port}"],
              ["{program}", "serve", "{sip}", "{port}"], prepare=program("rpma_check.c", "-lrpma", "-libverbs"),
              expect=r"all data is right", server_expect=r"all data is right", octets=40 << 20)


DISK = 1 << 21


def disk(rig):
    path = f"{rig.folder}/disk"
    with open(path, "wb") as f:
        f.truncate(DISK)
    return {"disk": path, "serve": os.path.join(HERE, "tgt_serve.sh"), **program("iser_check.c", "-liscsi")(rig)}


def disk_is_written(rig, _):
    """iser_check's last pattern."""
    with open(f"{rig.folder}/disk", "rb") as f:
        return "" if f.read() == bytes((i * 7 + (i >> 9) + 93) & 255 for i in range(DISK)) else "the disk is not what was written"


def iser():
    target, me = "iqn.2026-01.net.example:disk", "iqn.2026-01.net.example:me"
    yield Row("iSER: tgt and libiscsi", ["{program}", me, "iser://{sip}:{port}/" + target + "/1"],
              ["sh", "{serve}", "{port}", target, "{disk}", me], prepare=disk, check=disk_is_written,
              expect=r"4096 blocks: all data is right", octets=8 * DISK, server_ends=False, ready=4, seconds=60)
    yield Row("iSER: iscsi-inq", ["iscsi-inq", "-i", me, "iser://{sip}:{port}/" + target + "/1"],
              ["sh", "{serve}", "{port}", target, "{disk}", me], prepare=disk, expect=r"VIRTUAL-DISK", octets=36,
              server_ends=False, ready=4)


def ceph():
    """The monitor on one device, the OSD and the clients on the other."""
    yield Row("Ceph: ceph-mon, ceph-osd, rados", ["sh", os.path.join(HERE, "ceph_cluster.sh"), "{folder}", "{port}", "{sdev}",
                                                  "{cdev}", "{gid}"],
              expect=r"(?s)the object is right.*ceph-osd has ended.*ceph-mon has ended", octets=20_000_000, topologies=LOCAL,
              seconds=120, lint=False)


def rows():
    yield from fio()
    yield from rpma()
    yield from iser()
    yield from ceph()
