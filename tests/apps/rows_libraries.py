# SPDX-License-Identifier: BSD-3-Clause
"""The libraries that applications use: UCX, MPI, libfabric; and programs on top of verbs."""
import os
import subprocess

from row import LOCAL, Row, sent
from rows_storage import program

HERE = os.path.dirname(os.path.abspath(__file__))
# No shared memory: all data must go through queue pairs.
UCX = {"UCX_TLS": "rc_verbs,ud_verbs", "UCX_NET_DEVICES": "all", "UCX_WARN_UNUSED_ENV_VARS": "n"}


def ucx():
    yield Row("ucx_info -d", ["ucx_info", "-d"], expect=r"(?s)Transport: rc_verbs.*Device: urn0:1.*Transport: ud_verbs",
              env=UCX, quick=True, lint=False)
    for test, octets in (("tag_bw", 500 * 65536), ("tag_lat", 500 * 8), ("ucp_put_bw", 500 * 65536),
                         ("ucp_get", 500 * 65536), ("ucp_am_bw", 500 * 65536), ("stream_bw", 500 * 65536),
                         ("ucp_fadd", 500 * 8)):
        size = [] if octets // 500 == 8 else ["-s", "65536"]
        words = ["ucx_perftest", "-p", "{port}", "-t", test, *size, "-n", "500", "-w", "10"]
        yield Row(f"ucx_perftest {test}", [*words, "{oob}"], words, expect=r"Final:", octets=octets,
                  env=dict(UCX, UCX_NET_DEVICES="{cdev}:1"), server_ends=False, listens="tcp", quick=test == "tag_bw",
                  seconds=60)
    words = ["ucx_perftest", "-p", "{port}", "-t", "tag_bw", "-s", "65536", "-n", "300"]
    yield Row("ucx_perftest tag_bw, ud_verbs", [*words, "{oob}"], words, expect=r"Final:", octets=300 * 65536,
              env=dict(UCX, UCX_TLS="ud_verbs"), server_ends=False, listens="tcp", seconds=60, topologies=LOCAL, lint=False)


def mpi_program(flavour):
    def build(rig):
        program = f"{rig.folder}/mpi_check.{flavour}"
        if not os.path.exists(program):
            subprocess.run([f"mpicc.{flavour}", "-O2", "-o", program, os.path.join(HERE, "mpi_check.c")], check=True)
        return {"program": program}
    return build


HOSTS = ("memif", "veth")
AGENT = '''#!/bin/sh
# Stands in for ssh: "agent HOST COMMAND" runs the command where HOST is, which is the server's namespace.
shift
exec {inside} env URNIC_SOCKET={socket} unshare --uts sh -c 'hostname urnic-apps-server; exec "$@"' - \
    {urnic} run -- sh -c "$*"
'''
WHERE = '''#!/bin/sh
# A rank uses the daemon of its own host, whatever its launcher has brought in the environment.
case $(hostname) in
urnic-apps-server) export URNIC_SOCKET={server} ;;
*) export URNIC_SOCKET={client} ;;
esac
exec "$@"
'''


def two_hosts(flavour):
    """The program, and what starts its ranks on both hosts."""
    build = mpi_program(flavour)

    def prepare(rig):
        scripts = {"agent": AGENT.format(inside=" ".join(rig.server.inside([])), socket=rig.server.socket, urnic=rig.urnic),
                   "where": WHERE.format(server=rig.server.socket, client=rig.client.socket)}
        known = build(rig)
        for name, text in scripts.items():
            known[name] = f"{rig.folder}/{name}"
            with open(known[name], "w", encoding="ascii") as f:
                f.write(text)
            os.chmod(known[name], 0o755)
        rig.sent = [sent(host.counters()) for host in rig.hosts()]
        return known

    return prepare


def both_sent(least):
    """Ranks that share a device would pass without this."""
    def check(rig, _):
        for host, before in zip(rig.hosts(), rig.sent):
            octets = sent(host.counters()) - before
            if octets < least:
                return f"the {host.name}'s queue pairs sent {octets} octets, not {least}"
        return ""
    return check


def mpi_on_hosts(name, command, flavour, ranks, env):
    return Row(name, command, expect=rf"{ranks} ranks: ring and sums are right", octets=ranks * (16 << 20), env=env,
               topologies=HOSTS, prepare=two_hosts(flavour), check=both_sent(16 << 20), seconds=120, lint=False)


def openmpi(ranks, how, env):
    mca = ["--mca", "pml", "ucx", "--mca", "osc", "ucx"] if how == "ucx" else \
        ["--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include", "verbs;ofi_rxm"]
    passed = [word for name in ("LD_PRELOAD", "URNIC_SOCKET", *env) for word in ("-x", name)]
    name = f"Open MPI, {how}, {ranks} ranks"
    # Without -x URNIC_SOCKET: the agent gives the other host's ranks that of their own daemon.
    yield mpi_on_hosts(name, ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), "--mca", "btl",
                              "self", *mca, "--mca", "plm_rsh_agent", "{agent}", "--mca", "oob_tcp_if_include", "oob",
                              "--host", f"10.78.9.2:{ranks // 2},10.78.9.1:{ranks // 2}",
                              *[word for var in env for word in ("-x", var)], "{where}", "{program}"],
                       "openmpi", ranks, env)
    yield Row(name,
               ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), "--mca", "btl", "self",
                *mca, *passed, "{program}"],
               expect=rf"{ranks} ranks: ring and sums are right", octets=ranks * (16 << 20), env=env, topologies=LOCAL,
               prepare=mpi_program("openmpi"), seconds=120, quick=how == "ucx" and ranks == 2, lint=False)


def mpi():
    for ranks in (2, 4):
        yield from openmpi(ranks, "ucx", UCX)
        yield from openmpi(ranks, "ofi", {})
        env = dict(UCX, MPIR_CVAR_NOLOCAL="1")
        yield mpi_on_hosts(f"MPICH, ucx, {ranks} ranks",
                           ["mpirun.mpich", "-launcher", "rsh", "-launcher-exec", "{agent}", "-iface", "oob",
                            "-localhost", "10.78.9.2", "-hosts", f"10.78.9.2:{ranks // 2},10.78.9.1:{ranks // 2}", "-n", str(ranks), "{where}", "{program}"],
                           "mpich", ranks, env)
        yield Row(f"MPICH, ucx, {ranks} ranks", ["mpirun.mpich", "-n", str(ranks), "{program}"],
                  expect=rf"{ranks} ranks: ring and sums are right", octets=ranks * (16 << 20),
                  env=env, topologies=LOCAL, prepare=mpi_program("mpich"), seconds=120,
                  lint=False)


def libfabric():
    yield Row("fi_info -p verbs", ["fi_info", "-p", "verbs"], expect=r"(?s)provider: verbs.*type: FI_EP_MSG", quick=True, lint=False)
    for provider, endpoint in (("verbs", "msg"), ("verbs;ofi_rxm", "rdm"), ("verbs;ofi_rxd", "rdm")):
        words = ["fi_pingpong", "-p", provider, "-e", endpoint, "-I", "200", "-c"]
        yield Row(f"fi_pingpong {provider} {endpoint}", [*words, "-P", "{port}", "{oob}"], [*words, "-B", "{port}"],
                  expect=r"1m|64k|4k", octets=200 * 1024, listens="tcp", seconds=120,
                  lint=endpoint == "msg")


def others():
    yield Row("qperf", ["qperf", "-lp", "{port}", "-t", "1", "-cm", "1", "{oob}", "rc_bw", "rc_lat", "rc_rdma_write_bw",
                        "rc_rdma_read_bw", "rc_compare_swap_mr"],
              ["qperf", "-lp", "{port}"], expect=r"(?s)rc_bw:.*rc_compare_swap_mr", octets=1_000_000, server_ends=False,
              listens="tcp", topologies=LOCAL, lint=False)


def gloo():
    build = program("gloo_check.cc", "-lgloo", "-libverbs", "-pthread")

    def prepare(rig):
        store = f"{rig.folder}/gloo-{rig.topology}"
        subprocess.run(["rm", "-rf", store], check=True)
        os.mkdir(store)
        return {"store": store, **build(rig)}

    words = ["{gid}", "{store}"]
    yield Row("gloo, 2 ranks", ["{program}", "1", "2", "{cdev}", *words], ["{program}", "0", "2", "{sdev}", *words],
              expect=r"rank 1 of 2: all numbers are right", server_expect=r"rank 0 of 2: all numbers are right",
              octets=16 << 20, prepare=prepare, seconds=60)
    three = " & ".join(f"{{program}} {n} 4 {{{'cs'[n % 2 == 0]}dev}} {{gid}} {{store}}" for n in (1, 2, 3))
    yield Row("gloo, 4 ranks", ["sh", "-c", three + " & wait"], ["{program}", "0", "4", "{sdev}", *words],
              expect=r"(?s)(rank [123] of 4: all numbers are right.*){3}",
              server_expect=r"rank 0 of 4: all numbers are right", octets=32 << 20, prepare=prepare, seconds=60,
              topologies=LOCAL)


def dat_config(rig):
    """uDAPL's devices: its provider on rdma_cm goes by an address. A server ends when a client tells it."""
    path = f"{rig.folder}/dat.conf"
    with open(path, "w", encoding="ascii") as f:
        for name, address in (("server", rig.server_ip), ("client", rig.client_ip)):
            f.write(f'{name} u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "{address} 0" ""\n')
    return {"dat": path}


def dapl():
    tests = ("-T T -i 200 -t 2 -w 2 -V client SR 4096 server SR 4096",
             "-T T -i 200 -t 2 -w 2 -V client RW 65536 server RR 65536 client SR 1024 server SR 1024",
             "-T P -i 1000 RW 4096", "-T Q")
    script = " && ".join("dapltest " + test[:4] + " -s {sip} -D client" + test[4:] for test in tests)
    yield Row("dapltest: SEND, WRITE, READ", ["sh", "-c", script], ["dapltest", "-T", "S", "-D", "server"],
              env={"DAT_OVERRIDE": "{dat}"}, prepare=dat_config, octets=200 * 4 * 2 * 65536, refuse=r"(?i)error|fail|mismatch",
              expect=r"(?s)(End of Work -- Client Exiting.*){4}", server_expect=r"Exiting", ready=1, seconds=120)


def rows():
    yield from ucx()
    yield from mpi()
    yield from libfabric()
    yield from gloo()
    yield from dapl()
    yield from others()
