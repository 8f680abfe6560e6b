# SPDX-License-Identifier: BSD-3-Clause
"""ibverbs-utils, infiniband-diags, perftest: the tools that everybody tries first."""
from row import LOCAL, Row

K = 1024


def devices():
    yield Row("ibv_devices", ["ibv_devices"], expect=r"^\s+urn0\s+[0-9a-f]{16}", quick=True, lint=False)
    yield Row("ibv_devinfo -v", ["ibv_devinfo", "-v"], quick=True, lint=False,
              expect=r"(?s)hca_id:\s+urn0.*transport:\s+InfiniBand.*state:\s+PORT_ACTIVE.*active_mtu:\s+4096"
                     r".*link_layer:\s+Ethernet.*::ffff:10\.78\.0\.\d, RoCE v2")
    yield Row("ibstat", ["ibstat"], expect=r"(?s)CA 'urn0'.*State: Active.*Link layer: Ethernet", lint=False)
    yield Row("ibv_asyncwatch", ["timeout", "1", "ibv_asyncwatch"], status=124, topologies=("one",), lint=False)


def pingpong(kind, extra, name, octets=1000 * 4096, gid="{gid}", options=True, **more):
    program = f"ibv_{kind}_pingpong"
    common = ["-p", "{port}", *(["-c"] if options else []), *extra]
    return Row(f"{program} {name}".strip(), [program, "-d", "{cdev}", "-g", gid, *common, "{oob}"],
               [program, "-d", "{sdev}", "-g", gid, *common], expect=r"iters in .* seconds" if options else r"^success", octets=octets, **more)


def pingpongs():
    for kind in ("rc", "uc", "ud", "srq"):
        size = ["-s", "2048"] if kind == "ud" else []
        octets = (500 if kind == "srq" else 1000) * (2048 if kind == "ud" else 4096)
        yield pingpong(kind, size, "", octets, quick=kind == "rc")
        yield pingpong(kind, [*size, "-e"], "-e", octets, quick=kind == "rc")
        yield pingpong(kind, size, "IPv6", octets, gid="{gid6}", topologies=LOCAL)
        if kind != "ud":
            yield pingpong(kind, ["-s", "100000", "-n", "100"], "-s 100000", 100 * 100000)
    # One client: with more, its server sends by queue pairs of one process to the queues of another.
    yield pingpong("xsrq", ["-n", "500"], "", 500 * 4096, quick=True, options=False)
    yield pingpong("xsrq", ["-n", "500", "-e"], "-e", 500 * 4096, options=False)
    yield pingpong("rc", ["-N"], "-N", quick=True)
    yield pingpong("rc", ["-m", "1024"], "-m 1024")


def perftest(program, extra, name=None, octets=1, **more):
    # With -R the two ends meet by rdma_cm, at an address of the device.
    host = "{sip}" if "-R" in extra else "{oob}"
    common = ["-F", "-p", "{port}", *extra]
    name = f"{program} {name if name is not None else ' '.join(extra)}".strip()
    return Row(name, [program, "-d", "{cdev}", *common, host], [program, "-d", "{sdev}", *common],
               expect=r"#bytes\s+#iterations", refuse=r"Completion with error|Failed|Couldn't", octets=octets,
               listens="cm" if "-R" in extra else "tcp", **more)


def perftests():
    for op in ("write", "read", "send", "atomic"):
        for what in ("bw", "lat"):
            program = f"ib_{op}_{what}"
            yield perftest(program, ["-n", "500"], "", quick=op != "atomic" and what == "bw")
    for op in ("write", "read", "send"):
        yield perftest(f"ib_{op}_bw", ["-a", "-n", "50"], seconds=90)
        yield perftest(f"ib_{op}_lat", ["-a", "-n", "20"], seconds=90, topologies=LOCAL)
        yield perftest(f"ib_{op}_bw", ["-b", "-n", "500"])
        for q in (4, 64):
            yield perftest(f"ib_{op}_bw", ["-q", str(q), "-n", "100", "-s", "4096"])
        yield perftest(f"ib_{op}_bw", ["-D", "1"], quick=op == "write")
        yield perftest(f"ib_{op}_bw", ["-R", "-n", "200"], quick=op == "write")
    for op in ("write", "send"):
        yield perftest(f"ib_{op}_bw", ["-c", "UC", "-n", "500"], topologies=LOCAL)
        yield perftest(f"ib_{op}_lat", ["-I", "64", "-s", "64", "-n", "500"])
    yield perftest("ib_send_bw", ["-c", "UD", "-n", "500", "-s", "1024"])
    yield perftest("ib_send_lat", ["-c", "UD", "-n", "500"])
    yield perftest("ib_send_bw", ["--use-srq", "-q", "4", "-n", "200"])
    for op in ("read", "send", "atomic"):  # perftest has no events for WRITE
        # Events: both ends sleep on their completion channels.
        yield perftest(f"ib_{op}_bw", ["-e", "-n", "200"])
    yield perftest("ib_send_lat", ["-e", "-n", "200"])
    yield perftest("ib_send_lat", ["-R", "-n", "200"])
    yield perftest("ib_atomic_bw", ["-A", "CMP_AND_SWAP", "-n", "500"])
    yield perftest("ib_atomic_lat", ["-A", "CMP_AND_SWAP", "-n", "200"])
    yield perftest("ib_write_bw", ["--mmap={mapped}", "-n", "500"], "--mmap", prepare=mapped, topologies=LOCAL)
    yield Row("ib_write_bw --run_infinitely",
              ["timeout", "-s", "INT", "3", "stdbuf", "-oL", "ib_write_bw", "-d", "{cdev}", "-F", "-p", "{port}", "--run_infinitely", "-D",
               "1", "{oob}"],
              ["timeout", "-s", "INT", "4", "ib_write_bw", "-d", "{sdev}", "-F", "-p", "{port}", "--run_infinitely", "-D",
               "1"],
              expect=r"65536\s+\d+", status=124, server_ends=False, octets=1000000, topologies=LOCAL)
    yield Row("ib_write_bw, four at once", ["sh", "-c", at_once("{cdev}", "{oob}")],
              ["sh", "-c", at_once("{sdev}", "")], octets=4 * 200 * 65536)


def at_once(device, host):
    return ("for i in 1 2 3 4; do ib_write_bw -F -d %s -n 200 -p $((20000 + {port} - 18000 + 300 * i)) %s & p=\"$p $!\"; "
            "done; for i in $p; do wait $i || exit 1; done" % (device, host))


def mapped(rig):
    """A file on tmpfs for both ends."""
    import os  # pylint: disable=import-outside-toplevel
    path = f"/dev/shm/urnic-apps-{os.getpid()}"
    rig.stack.callback(lambda: os.path.exists(path) and os.unlink(path))
    with open(path, "wb") as f:
        f.truncate(64 << 20)
    return {"mapped": path}


def rows():
    yield from devices()
    yield from pingpongs()
    yield from perftests()
