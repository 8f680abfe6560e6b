# SPDX-License-Identifier: BSD-3-Clause
"""The part "verbs" of scripts/bench: Debian's programs on urnic beside `urnic perf` on the same port, and beside
kernel TCP on the same machine."""
import os
import re
import subprocess

UCX = {"UCX_WARN_UNUSED_ENV_VARS": "n"}
RSPRELOAD = "/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so"


class VerbsBench:
    """`bench` is the running Bench; envs are the environments of the passive and the active side."""

    def __init__(self, bench, envs, cpus):
        self.bench, self.envs = bench, envs
        self.cpu_a, self.cpu_b = cpus
        self.port = 19000

    def run(self, command):
        """A command line on urnic's libibverbs."""
        return [self.bench.urnic, "run", "--", *command]

    def perftest(self, program, options):
        """One run of a program of perftest between the two daemons; the words of its row of figures."""
        self.port += 1
        words = [program, "-F", "-p", str(self.port), *options]
        with self.bench.running(self.run(words), env=self.envs[1], log="perftest.log", cpu=self.cpu_b,
                                listens=self.port):
            out = self.bench.call(self.run([*words, "127.0.0.1"]), env=self.envs[0], cpu=self.cpu_a)
        rows = re.findall(r"^\s*(\d+(?:\s+[\d.]+)+)\s*$", out, re.M)
        if not rows:
            raise RuntimeError(f"{program}: no figures in: {out[-500:]}")
        return [float(word) for word in rows[-1].split()]

    def goodput(self):
        return self.perftest("ib_write_bw", ["-s", "65536", "-D", "1", "--report_gbits"])[3] * 1e9

    def inline_rate(self):
        """Messages per second of 8 octets, inline, posted as `urnic perf` posts them."""
        self.port += 1
        words = [os.path.join(self.bench.tools, "verbs_rate"), str(self.port)]
        with self.bench.running(self.run(words), env=self.envs[1], log="verbs_rate.log", cpu=self.cpu_b,
                                listens=self.port):
            return self.bench.json_lines(self.run([*words, "127.0.0.1", self.bench.seconds]), env=self.envs[0],
                                         cpu=self.cpu_a)[0]["value"]

    def rate(self):
        """The same of ib_write_bw, which posts one by one, and inline only on devices that it knows."""
        return self.perftest("ib_write_bw", ["-s", "8", "-D", "1", "--report_gbits"])[4] * 1e6

    def latency(self, program):
        """The typical half round trip of 8 octets, in ns."""
        return self.perftest(program, ["-s", "8", "-n", "5000"])[4] * 1e3


def perf_figure(bench, envs, options, figure):
    return bench.perf(envs, [*options, "--time", bench.seconds], samples=1)[0][figure]


def half_round_trip(got):
    return got["latency_ns"]["p50"]


def spinning_lat(bench, envs, cpus):
    """Half round trip of WRITEs between native applications that spin on their memory, as ib_write_lat does."""
    perf = [bench.urnic, "perf", "--wait", "spin"]
    with bench.running([*perf, "--server"], env=envs[1], ready="waiting", log="perf-server.log", cpu=cpus[1]):
        got = bench.json_lines([*perf, "10.0.0.2", "--json", "--op", "write", "--lat", "--size", "8", "--time",
                                bench.seconds], env=envs[0], cpu=cpus[0])
    return half_round_trip(got[0])


def mpi(bench, envs, over):
    """Half round trip of 8 octets in ns and bandwidth of 1 MiB in bit/s between two ranks: over one device, over two
    devices on a memif, or over UCX's tcp."""
    program = os.path.join(bench.dir, "mpi_check")
    rank = program + ".rank"
    if not os.path.exists(program):
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "apps", "mpi_check.c")
        subprocess.run(["mpicc.openmpi", "-O2", "-o", program, source], check=True)
        with open(rank, "w", encoding="utf-8") as f: # each rank has a daemon of its own
            f.write(f'#!/bin/sh\n[ "$OMPI_COMM_WORLD_RANK" = 0 ] || export URNIC_SOCKET={envs[1]["URNIC_SOCKET"]}\n'
                    f'exec {program} "$@"\n')
        os.chmod(rank, 0o755)
    tls, net = ("tcp,self", "lo") if over == "tcp" else ("rc_verbs,ud_verbs,self", "urn0:1")
    env = dict(envs[0], **UCX, UCX_TLS=tls, UCX_NET_DEVICES=net)
    words = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2"]
    for name, value in (("pml", "ucx"), ("pml_ucx_tls", "any"), ("pml_ucx_devices", "any"), ("btl", "self")):
        words += ["--mca", name, value]
    words += ["-x", "UCX_TLS", "-x", "UCX_NET_DEVICES", rank if over == "two" else program, "pingpong"]
    out = bench.call(words if over == "tcp" else [bench.urnic, "run", "--", *words], env=env)
    m = re.search(r"of 8 octets ([\d.]+) us, bandwidth of 1 MiB ([\d.]+) Gb/s", out)
    return float(m[1]) * 1e3, float(m[2]) * 1e9


def rsockets(bench, envs, port, cpus):
    """iperf3 over librspreload, one stream, in bit/s."""
    server = [bench.urnic, "run", "--", "iperf3", "-s", "-1", "-p", str(port), "--forceflush"]
    client = [bench.urnic, "run", "--",
              "iperf3", "-c", "10.0.0.2", "-p", str(port), "-t", "1", "-J"]
    preload = {"LD_PRELOAD": RSPRELOAD}
    with bench.running(server, env=dict(envs[1], **preload), ready="listening", log="iperf3-rs.log", cpu=cpus[1]):
        out = bench.call(client, env=dict(envs[0], **preload), cpu=cpus[0])
    return float(re.findall(r'"bits_per_second":\s*([\d.e+]+)', out)[-1])


def reg_mr(bench, env):
    """Registering 1,000 regions of 64 KiB, in ns each."""
    out = bench.json_lines([bench.urnic, "run", "--", os.path.join(bench.tools, "reg_mr")], env=env)
    return out[0]["value"]


def measure(bench, stack, cpus):
    """All rows. `stack` closes what is started."""
    tcp = stack.enter_context(bench.tcp())[0] if bench.root else None
    envs = stack.enter_context(bench.memif())
    verbs = VerbsBench(bench, envs, cpus)
    write = ["--op", "write", "--size", "64K"]
    rate = ["--op", "write", "--size", "8", "--inline", "--batch", "64", "--signal-every", "64", "--depth", "1024"]
    single = ["--op", "write", "--size", "8", "--inline", "--batch", "1", "--signal-every", "100", "--depth", "128"]
    lat = ["--lat", "--size", "8", "--inline", "--time", bench.seconds]
    app = [{**env, "URNIC_ENGINE": "application"} for env in envs]
    measures = {
        "perf": lambda: perf_figure(bench, app, write, "goodput"),
        "bw": verbs.goodput,
        "perf_rate": lambda: perf_figure(bench, app, rate, "messages_per_s"),
        "inline": verbs.inline_rate,
        "perf_single": lambda: perf_figure(bench, app, single, "messages_per_s"),
        "rate": verbs.rate,
        "perf_send": lambda: half_round_trip(bench.perf(app, ["--op", "send", *lat], samples=1)[0]),
        "send": lambda: verbs.latency("ib_send_lat"),
        "perf_write": lambda: spinning_lat(bench, app, cpus),
        "write": lambda: verbs.latency("ib_write_lat"),
    }
    if tcp:
        measures["tcp"] = tcp
    taken = bench.take(measures)
    bench.compared("verbs_write_bw", taken, "bw", "b/s", "urnic perf", "perf", 0.95)
    if tcp:
        bench.compared("verbs_write_bw_vs_tcp", taken, "bw", "b/s", "iperf3_veth", "tcp", 1.2)
    bench.compared("verbs_inline_rate", taken, "inline", "1/s", "urnic perf", "perf_rate", 0.5)
    bench.compared("verbs_write_rate", taken, "rate", "1/s", "urnic perf, posts of one", "perf_single", 0.7)
    bench.compared("verbs_send_lat", taken, "send", "ns", "urnic perf", "perf_send", 1.2, at_most=True)
    bench.compared("verbs_write_lat", taken, "write", "ns", "urnic perf, spinning", "perf_write", 1.7, at_most=True)
    measure_stacks(bench, envs, tcp, cpus)


def measure_stacks(bench, envs, tcp, cpus):
    """MPI and rsockets, which have stacks of their own above verbs."""
    got = {over: [] for over in ("urnic", "two", "tcp")}
    for _ in range(bench.samples):
        for over, samples in got.items():
            samples.append(mpi(bench, envs, over))
    lat, bw = ({over: [pair[i] for pair in samples] for over, samples in got.items()} for i in range(2))
    bench.result("mpi_lat", lat["urnic"], "ns", "UCX's tcp", lat["tcp"], 1.2, at_most=True)
    bench.result("mpi_lat_two", lat["two"], "ns", "UCX's tcp", lat["tcp"])
    bench.result("mpi_bw", bw["urnic"], "b/s", "UCX's tcp", bw["tcp"], 1.2)
    bench.result("mpi_bw_two", bw["two"], "b/s", "UCX's tcp", bw["tcp"])
    if tcp:
        pairs = [(rsockets(bench, envs, 18700 + i, cpus), tcp()) for i in range(bench.samples)]
        bench.result("rsockets_bw", [r for r, _ in pairs], "b/s", "iperf3_veth", [t for _, t in pairs], 0.5)
    bench.result("reg_mr_64k", [reg_mr(bench, envs[0]) for _ in range(bench.samples)], "ns")
