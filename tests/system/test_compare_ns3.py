#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scripts/compare-ns3 with a stand-in for ns-3's program: what it is given is the scenario, what it says
comes back, and what its model can't do is refused.

usage: test_compare_ns3.py URNIC SOURCE
"""
import json
import os
import subprocess
import sys
import tempfile
import textwrap

SCENARIO = """\
set seed 1
set cc dcqcn-mlx:hpcc,timer=55us,g=1/16
set size 256K
seed $seed
duration 1s
topology leaf-spine hosts=2 leaves=2 spines=2 rate=100G core=40G delay=2us
host window=4096
switch buffer=8M alpha=1/8 pfc=on kmin=50000 kmax=200000 pmax=20%
cc $cc
flow from=0 to=1 size=$size start=3us
incast to=3 size=64K
"""

# Reads its configuration as ns-3's program does, checks it against what the scenario says, and lets
# flow i take i + 1 ms. Of two pauses one ends before the last flow. The preset's step of 50 Mb/s is for 25 Gb/s,
# and urnic fits it to the hosts' 100 (CC-31): ns-3 is given the step in force.
STAND_IN = """\
    #!/usr/bin/env python3
    import sys
    keys = dict(line.rstrip().split(" ", 1) for line in open(sys.argv[1]))
    words = open(keys["TOPOLOGY_FILE"]).read().split()
    assert words[:7] == ["8", "4", "8", "4", "5", "6", "7"], words
    cables = [tuple(words[i:i + 5]) for i in range(7, len(words), 5)]
    assert cables[0] == ("0", "4", "100Gbps", "2000ns", "0"), cables
    assert cables[4:] == [(a, b, "40Gbps", "2000ns", "0") for a in "45" for b in "67"], cables
    flows = [line.split() for line in open(keys["FLOW_FILE"])]
    assert flows[0] == ["4"]
    assert sorted((f[0], f[1], f[4], float(f[5])) for f in flows[1:]) == [
        ("0", "1", "262144", 3e-6)] + [(a, "3", "65536", 0.0) for a in "012"], flows
    want = {"CC_MODE": "1", "RP_TIMER": "55", "RATE_DECREASE_INTERVAL": "4", "EWMA_GAIN": "0.0625",
            "FAST_RECOVERY_TIMES": "1", "RATE_AI": "200Mb/s", "PACKET_PAYLOAD_SIZE": "1024",
            "KMIN_MAP": "2 40000000000 50 100000000000 50", "PMAX_MAP": "2 40000000000 0.2 100000000000 0.2",
            "BUFFER_SIZE": "8", "HAS_WIN": "0", "ENABLE_TRACE": "0"}
    assert want.items() <= keys.items(), {k: keys.get(k) for k in want}
    assert (keys["L2_ACK_INTERVAL"], keys["L2_CHUNK_SIZE"]) in (("1", "1024"), ("4294967295", "65536"))
    with open(keys["FCT_OUTPUT_FILE"], "w") as f:
        for i, flow in enumerate(flows[1:]):
            print("0b000001 0b000101 10000 100", flow[4], round(float(flow[5]) * 1e9), (i + 1) * 10**6, 5, file=f)
    with open(keys["PFC_OUTPUT_FILE"], "w") as f:
        print("10000 4 1 1 1\\n20000 4 1 2 1\\n40000 4 1 1 0", file=f)
"""


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="ascii") as f:
        f.write(textwrap.dedent(text))
    os.chmod(path, mode)
    return path


class Rig:
    def __init__(self, urnic, source, folder):
        self.script = os.path.join(source, "scripts", "compare-ns3")
        self.env = dict(os.environ, URNIC=urnic)
        self.tree = os.path.join(folder, "simulation")
        self.stand_in = write(os.path.join(self.tree, "build", "scratch", "third"), STAND_IN, 0o755)
        self.scenario = write(os.path.join(folder, "small.sim"), SCENARIO)

    def run(self, *args, tree=None, status=0):
        done = subprocess.run([self.script, *args, "--cpu", str(min(os.sched_getaffinity(0))),
                               tree or self.tree, self.scenario], env=self.env, text=True, check=False,
                              capture_output=True, timeout=120)
        assert done.returncode == status, done
        return done

    def refuses(self, what, *args, **kwargs):
        done = self.run(*args, status=1, **kwargs)
        assert what in done.stderr and not done.stdout, (what, done)


def check_comparison(rig):
    found = [json.loads(line) for line in rig.run("--json", "--repeat", "2").stdout.splitlines()]
    assert [(r["simulator"], r["acks"]) for r in found] == [
        ("urnic", "coalesced"), ("ns-3", "coalesced"), ("ns-3", "each")], found
    ours, coalesced, each = found
    for r in coalesced, each:
        assert r["flows"] == 4 and len(r["wall_all_s"]) == 2, r
        assert (r["fct_mean_us"], r["fct_p50_us"], r["fct_p99_us"]) == (2500, 2500, 4000), r
        assert (r["finish_ms"], r["pauses"], r["paused_ms"]) == (4.003, 2, 4.013), r
    # Wires: 256 packets over 2, 64 over 2 (from host 2), twice 64 over 4; ACKs come back; 3 pause frames.
    data = 256 * 2 + 64 * 2 + 2 * 64 * 4
    assert each["hops"] == 2 * data + 3, each
    assert coalesced["hops"] == data + data // 64 + 3, coalesced
    assert data < ours["hops"] < 1.2 * data, ours
    table = rig.run("--acks", "each", "--repeat", "1").stdout.splitlines()
    assert len(table) == 4 and "4.003" not in table[2] and "4.003" in table[3], table


def check_refusals(rig):
    rig.refuses("nothing is fetched or built here", tree="/nonexistent")
    rig.refuses("cc must be dcqcn-mlx", "--set", "cc=timely")
    rig.refuses("no multiple of 64 packets", "--set", "size=100K")
    rig.refuses("has no variable 'nothing'; it has ", "--set", "nothing=1")
    with open(rig.stand_in, "a", encoding="ascii") as f:
        f.write('print("12 5 Drop: queue:1,3: Headroom full")\n')
    rig.refuses("dropped packets")
    with open(rig.stand_in, "a", encoding="ascii") as f:
        f.write("sys.exit(3)\n")
    rig.refuses("exit status 3")


def main():
    urnic, source = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        rig = Rig(urnic, source, folder)
        check_comparison(rig)
        check_refusals(rig)


if __name__ == "__main__":
    main()
