#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""urnic stat --processes: a program's contexts and queue pairs are listed under its name and process id; nothing is
left of one that has ended; other options with it are refused.
"""
import json
import os
import re
import subprocess

from cli_rig import DATA, URNIC, check, run, test_all

PROGRAM = r"""
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    static char memory[4096];
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_qp *qp = NULL;
    for (int i = 0; i < atoi(argv[1]); i++) { /* contexts */
        struct ibv_context *c = ibv_open_device(list[0]);
        struct ibv_pd *pd = ibv_alloc_pd(c);
        struct ibv_cq *cq = ibv_create_cq(c, 16, NULL, NULL, 0);
        struct ibv_qp_init_attr attr = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};
        if (pd == NULL || cq == NULL || ibv_reg_mr(pd, memory, 4096, IBV_ACCESS_LOCAL_WRITE) == NULL)
            return 3;
        for (int k = 0; k < atoi(argv[2]); k++) /* queue pairs of each */
            if ((qp = ibv_create_qp(pd, &attr)) == NULL)
                return 4;
    }
    if (argc > 3)
        return system(argv[3]) != 0;
    printf("%d 0x%06x\n", (int)getpid(), qp->qp_num);
    fflush(stdout);
    getchar();
    return 0;
}
"""


def build():
    exe = os.path.join(DATA, "holder")
    if not os.path.exists(exe):
        subprocess.run(["cc", "-x", "c", "-o", exe, "-", "-libverbs"], input=PROGRAM, text=True, check=True)
    return exe


def private(*command):
    return run(URNIC, ["run", "--private", "--devices", "2", "--", *command], timeout=120)


def devices(r):
    """What each line of JSON says, by device."""
    check(r.returncode == 0, f"stat --processes: {r}")
    found = [json.loads(line) for line in r.stdout.splitlines()]
    return {d["device"]: d["processes"] for d in found}


def lists():
    d = devices(private(build(), "3", "2", URNIC + " stat --processes --json"))
    check(sorted(d) == ["urn0", "urn1"] and d["urn1"] == [], f"both devices: {d}")
    p = d["urn0"][0]
    check(len(d["urn0"]) == 1 and p["comm"] == "holder" and p["pid"] > 1 and p["uid"] == os.getuid(), f"whose: {d}")
    counts = {k: p[k] for k in ("contexts", "pds", "mrs", "mws", "cqs", "srqs", "qps", "cm_ids")}
    check(counts == {"contexts": 3, "pds": 3, "mrs": 3, "mws": 0, "cqs": 3, "srqs": 0, "qps": 6, "cm_ids": 0},
          f"what: {counts}")
    check(len(set(p["qp_numbers"])) == 6, f"numbers: {p['qp_numbers']}")


def of_the_daemon():
    """A program whose engine is the daemon's."""
    perf = f"{URNIC} perf --device"
    script = f"""
        {perf} urn1 --server >/dev/null & sleep 0.5
        {perf} urn0 198.18.0.2 --qps 2 --time 600 >/dev/null &
        for i in $(seq 100); do
            said=$({URNIC} stat urn0 --processes --json)
            [[ ! $said =~ \"qps\":\ *2 ]] || break
            sleep 0.1
        done
        echo "$said"; kill %1 %2; wait"""
    p = devices(private("bash", "-c", script))["urn0"][0]
    check(p["comm"] == "urnic" and p["contexts"] == 1 and p["pds"] == 1 and p["mrs"] > 0 and p["cqs"] > 0 and p["qps"] == 2
          and len(set(p["qp_numbers"])) == 2, f"with the daemon's engine: {p}")


def many():
    """More contexts than an answer holds."""
    d = devices(private(build(), "150", "1", URNIC + " stat urn0 --processes --json"))
    check(list(d) == ["urn0"] and len(d["urn0"]) == 1, f"one process: {d}")
    p = d["urn0"][0]
    check(p["contexts"] == 150 and p["qps"] == 150 and len(p["qp_numbers"]) == 150, f"150 contexts: {p['contexts']}")


def text():
    script = f"""
        {build()} 1 3 <>pipe1 >out1 & {build()} 2 1 <>pipe2 >out2 &
        until [ -s out1 ] && [ -s out2 ]; do sleep 0.05; done
        cat out1 out2; {URNIC} stat --processes
        echo >pipe1; wait %1; echo >pipe2; wait %2
        echo after; {URNIC} stat --processes"""
    os.mkfifo(os.path.join(DATA, "pipe1"))
    os.mkfifo(os.path.join(DATA, "pipe2"))
    r = private("bash", "-c", f"cd {DATA}; {script}")
    check(r.returncode == 0 and r.stderr == "", f"text: {r}")
    before, after = r.stdout.split("after\n")
    for line in before.splitlines()[:2]:
        pid, qpn = line.split()
        check(re.search(rf"^  holder\[{pid}\]  uid {os.getuid()}  contexts [12] ", before, re.M), f"{pid}: {r.stdout}")
        check(before.count(qpn) == 2, f"queue pair {qpn} is listed: {before}")
    check(after == "urn0\nurn1\n", f"nothing is left: {after}")


def refused():
    for options in (["--qps"], ["--all"], ["--prometheus"], ["--qp", "0x11"]):
        r = run(URNIC, ["stat", "--processes", *options])
        check(r.returncode == 2 and "--processes" in r.stderr, f"{options}: {r}")
    r = private(URNIC, "stat", "--processes", "urn7")
    check(r.returncode == 1 and "no device urn7" in r.stderr, f"no such device: {r}")
    r = run(URNIC, ["stat", "--processes", "--socket", "/nowhere"])
    check(r.returncode == 1, f"no daemon: {r}")


raise SystemExit(test_all(lists, of_the_daemon, many, text, refused))
