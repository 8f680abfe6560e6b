# SPDX-License-Identifier: BSD-3-Clause
"""rdmacm-utils on Debian's own librdmacm: connections, datagrams, multicast, rsockets."""
import hashlib
import os
import subprocess

from row import LOCAL, Row


def rpings():
    for name, address in (("", "{sip}"), ("IPv6", "{sip6}")):
        yield Row(f"rping {name}".strip(), ["rping", "-c", "-a", address, "-p", "{port}", "-C", "20", "-v", "-V"],
                  ["rping", "-s", "-a", address, "-p", "{port}", "-C", "20", "-V"], expect=r"ping data: rdma-ping-19:",
                  octets=20 * 64, quick=True, listens="cm")
    yield Row("rping, listening on any address", ["rping", "-c", "-a", "{sip}", "-p", "{port}", "-C", "5", "-V"],
              ["rping", "-s", "-p", "{port}", "-C", "5", "-V"], octets=5 * 64, listens="cm")
    yield Row("rping, 127.0.0.1", ["rping", "-c", "-a", "127.0.0.1", "-p", "{port}", "-C", "5", "-V"],
              ["rping", "-s", "-a", "127.0.0.1", "-p", "{port}", "-C", "5", "-V"], octets=5 * 64, topologies=LOCAL,
              quick=True, lint=False)  # from the first device to itself
    yield Row("rping -P, three clients",
              ["sh", "-c", "for i in 1 2 3; do rping -c -a {sip} -p {port} -C 5 -V || exit 1; done"],
              ["rping", "-s", "-P", "-a", "{sip}", "-p", "{port}", "-V"], octets=15 * 64, server_ends=False,
              listens="cm")
    yield Row("rping, nobody listens", ["rping", "-c", "-a", "{sip}", "-p", "{port}", "-C", "1"], status=255,
              expect=r"RDMA_CM_EVENT_REJECTED|rejected|unexpected event", lint=False)


def cms():
    for name, address in (("", "{sip}"), ("IPv6", "{sip6}")):
        yield Row(f"ucmatose {name}".strip(), ["ucmatose", "-s", address, "-p", "{port}", "-c", "10", "-C", "100"],
                  ["ucmatose", "-p", "{port}", "-c", "10", "-C", "100"] + (["-b", address] if name else []),
                  expect=r"return status 0", server_expect=r"return status 0", octets=10 * 100 * 100, listens="cm")
        yield Row(f"udaddy {name}".strip(), ["udaddy", "-s", address, "-c", "4", "-C", "50"],
                  ["udaddy", "-c", "4", "-C", "50"] + (["-b", address] if name else []),
                  expect=r"return status 0", server_expect=r"return status 0", octets=4 * 50 * 100, listens="cm")
    yield Row("rdma_client", ["rdma_client", "-s", "{sip}", "-p", "{port}"], ["rdma_server", "-s", "{sip}", "-p", "{port}"],
              expect=r"rdma_client: end 0", server_expect=r"rdma_server: end 0", octets=32, quick=True, listens="cm")
    for kind, name in (("r", "RC"), ("x", "XRC")):
        yield Row(f"rdma_xclient, {name}", ["rdma_xclient", "-s", "{sip}", "-p", "{port}", "-c", kind],
                  ["rdma_xserver", "-p", "{port}", "-c", kind], expect=r"rdma_xclient: end 0",
                  server_expect=r"rdma_xserver: end 0", octets=16, quick=kind == "x", listens="cm")
    yield Row("cmtime -c 1000", ["cmtime", "-s", "{sip}", "-p", "{port}", "-c", "1000"],
              ["cmtime", "-p", "{port}", "-c", "1000"], expect=r"(?s)disconnect.*destroy", server_ends=False, seconds=60,
              listens="cm")
    for name, group, sender, receiver in (("", "239.1.1.1", "{cip}", "{sip}"), ("IPv6", "ff0e::4:1", "{cip6}", "{sip6}")):
        how = ["-m", group, "-c", "2", "-C", "20", "-S", "500"]
        yield Row(f"mckey {name}".strip(), ["mckey", "-s", "-b", sender, *how], ["mckey", "-b", receiver, *how],
                  expect=r"return status 0", server_expect=r"return status 0", octets=2 * 20 * 500, ready=1.0)


def file_to_copy(rig):
    path = f"{rig.folder}/rcopy-source"
    with open(path, "wb") as f:
        f.write(os.urandom(3_000_001))
    return {"source": path}


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def same_file(rig, _):
    copied = f"{rig.folder}/rcopy-copy"
    return "" if digest(copied) == digest(f"{rig.folder}/rcopy-source") else "the copy is not the file"


def rsockets():
    yield Row("rstream", ["rstream", "-s", "{sip}", "-p", "{port}", "-S", "65536", "-C", "200", "-T", "r"],
              ["rstream", "-p", "{port}", "-S", "65536", "-C", "200", "-T", "r"], expect=r"64k", octets=200 * 65536)
    for size, times in ((64, 500), (4096, 200), (1 << 20, 20)):
        how = ["-p", "{port}", "-S", str(size), "-I", str(times), "-C", "1", "-T", "v"]
        yield Row(f"rstream -T v, {size} octets", ["rstream", "-s", "{sip}", *how], ["rstream", *how],
                  refuse=r"data verification failed", octets=size * times)
    how = ["-p", "{port}", "-S", "4096", "-I", "50", "-C", "1", "-T", "v"]
    yield Row("riostream", ["riostream", "-s", "{sip}", *how], ["riostream", *how],
              refuse=r"data verification failed", octets=4096 * 50)
    yield Row("rcopy", ["rcopy", "{source}", "{sip}:{folder}/rcopy-copy", "-p", "{port}"], ["rcopy", "-p", "{port}"],
              octets=3_000_000, server_ends=False, prepare=file_to_copy, check=same_file)


HERE = os.path.dirname(os.path.abspath(__file__))
RSPRELOAD = {"LD_PRELOAD": "/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so"}


def iperfs():
    """At most three connections: the service thread of librdmacm 44 uses memory that it has freed from the fourth on
    that a process has accepted."""
    for name, extra in (("", []), ("-R", ["-R"]), ("--bidir", ["--bidir"]), ("-P 2", ["-P", "2"]),
                        ("-P 2 -R", ["-P", "2", "-R"])):
        yield Row(f"iperf3 {name}".strip() + " over librspreload",
                  ["iperf3", "-c", "{sip}", "-p", "{port}", "-t", "2", *extra], ["iperf3", "-s", "-1", "-p", "{port}"],
                  expect=r"receiver", octets=10_000_000, env=RSPRELOAD, ready=0.8, quick=not extra)


def poll_server(rig):
    program = f"{rig.folder}/poll_server"
    if not os.path.exists(program):
        subprocess.run(["cc", "-O2", "-o", program, os.path.join(HERE, "poll_server.c")], check=True)
    return {"program": program, **file_to_copy(rig)}


def preloaded():
    yield from iperfs()
    yield Row("netcat over librspreload", ["sh", "-c", "nc.traditional -q 1 {sip} {port} <{source}"],
              ["sh", "-c", "nc.traditional -l -p {port} >{folder}/rcopy-copy"], octets=3_000_000, env=RSPRELOAD, ready=0.8,
              prepare=file_to_copy, check=same_file)
    fetch = "curl -s -S --noproxy '*' -m 20 -o {folder}/rcopy-copy http://{sip}:{port}/"
    yield Row("curl over librspreload", ["sh", "-c", f"for i in 1 2 3; do {fetch} || exit 1; done"],
              ["{program}", "{port}", "{source}", "3"], octets=3 * 3_000_000, env=RSPRELOAD, ready=0.8,
              prepare=poll_server, check=same_file)


def rows():
    yield from rpings()
    yield from cms()
    yield from rsockets()
    yield from preloaded()
