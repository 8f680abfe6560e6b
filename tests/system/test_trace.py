#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""urnic trace: the lines of a command and of a running process, decoded; the program's status, output and life are
its own, also when the tool is killed; nothing is left behind.
"""
import os
import re
import signal
import subprocess
import time

from cli_rig import DATA, URNIC, check, run, test_all

RUNTIME = os.path.join(DATA, "runtime")
os.mkdir(RUNTIME, 0o700)
os.environ["XDG_RUNTIME_DIR"] = RUNTIME

PROGRAM = r"""
#include <infiniband/verbs.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    static char memory[4096];
    struct ibv_context *c = ibv_open_device(ibv_get_device_list(NULL)[0]);
    struct ibv_pd *pd = ibv_alloc_pd(c);
    struct ibv_mr *mr = ibv_reg_mr(pd, memory, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
    struct ibv_cq *cq = ibv_create_cq(c, 16, NULL, NULL, 0);
    struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_READ};
    ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS);
    attr.qp_state = IBV_QPS_RTS;
    ibv_modify_qp(qp, &attr, IBV_QP_STATE); /* EINVAL */
    struct ibv_sge sge = {(uintptr_t)memory, 64, mr->lkey};
    struct ibv_recv_wr rr = {.wr_id = 0x55, .sg_list = &sge, .num_sge = 1}, *bad_recv;
    ibv_post_recv(qp, &rr, &bad_recv);
    struct ibv_send_wr sr = {.wr_id = 0x66, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED}, *bad;
    sr.wr.rdma.remote_addr = 0x123456;
    ibv_post_send(qp, &sr, &bad); /* EINVAL in INIT */
    struct ibv_wc wc[4];
    for (int i = 0; i < 1000; i++)
        ibv_poll_cq(cq, 4, wc); /* nothing */
    attr.qp_state = IBV_QPS_ERR;
    ibv_modify_qp(qp, &attr, IBV_QP_STATE);
    while (ibv_poll_cq(cq, 4, wc) == 0)
        ;
    struct rdma_event_channel *ch = rdma_create_event_channel();
    struct rdma_cm_id *id;
    struct rdma_cm_event *ev;
    struct rdma_addrinfo *ai, hints = {.ai_port_space = RDMA_PS_TCP};
    if (rdma_create_id(ch, &id, NULL, RDMA_PS_TCP) || rdma_getaddrinfo("198.18.0.1", "7471", &hints, &ai) ||
        rdma_resolve_addr(id, NULL, ai->ai_dst_addr, 2000) || rdma_get_cm_event(ch, &ev))
        return 9;
    rdma_ack_cm_event(ev);
    printf("%d\n", (int)getpid());
    fflush(stdout);
    for (int i = 0; argc > 1 && i < atoi(argv[1]); i++) { /* tenths of a second */
        struct ibv_pd *more = ibv_alloc_pd(c);
        ibv_dealloc_pd(more);
        usleep(100000);
    }
    fputs("to standard error\n", stderr);
    return 7;
}
"""

# What the trace of it says, in this order, with other lines between them.
WANT = [
    r"ibv_get_device_list\(1 devices, the first is urn0\) = 0x",
    r"ibv_open_device\(urn0\) = 0x",
    r"ibv_alloc_pd\(urn0\) = 0x",
    r"ibv_reg_mr\(0x\w+, 4096 octets, LOCAL_WRITE\|REMOTE_READ; lkey 0x\w+ rkey 0x\w+\) = 0x",
    r"ibv_create_cq\(urn0, 16 entries, channel .*\) = 0x",
    r"ibv_create_qp\(\{ type RC .* \} qp 0x\w+\) = 0x",
    r"ibv_modify_qp\(qp 0x\w+, \{ state INIT access REMOTE_READ pkey_index 0 port_num 1 \}\) = 0$",
    r"ibv_modify_qp\(qp 0x\w+, \{ state RTS \}\) = EINVAL$",
    r"ibv_post_recv\(qp 0x\w+, \{wr_id 0x55 64 octets\}\) = 0$",
    r"ibv_post_send\(qp 0x\w+, \{wr_id 0x66 RDMA_WRITE 64 octets remote 0x123456 rkey 0x0 SIGNALED\}\) = EINVAL$",
    r"ibv_modify_qp\(qp 0x\w+, \{ state ERR \}\) = 0$",
    r"ibv_poll_cq\(cq 0x\w+, 4, \{wr_id 0x55 .*flush.* qp 0x\w+\}\) = 1$",
    r"rdma_create_id\(TCP, id \d+\) = 0$",
    r"rdma_resolve_addr\(id \d+\) = 0$",
    r"rdma_get_cm_event\(id \d+, address resolved, status 0\) = 0$",
]
LINE = re.compile(r"^\d\d:\d\d:\d\d\.\d{6} (\d+)/(\d+) \w+[ \w]*\(.*\)( = .*)?$")


def build():
    exe = os.path.join(DATA, "traced")
    if not os.path.exists(exe):
        subprocess.run(["cc", "-x", "c", "-o", exe, "-", "-libverbs", "-lrdmacm"], input=PROGRAM, text=True, check=True)
    return exe


def left():
    return [f for f in os.listdir(RUNTIME) if f.startswith("urnic-trace")]


def check_lines(text, want, what):
    lines = text.splitlines()
    for line in lines:
        check(LINE.match(line), f"{what}: a line is '{line}'")
    at = 0
    for pattern in want:
        while at < len(lines) and not re.search(pattern, lines[at]):
            at += 1
        check(at < len(lines), f"{what}: '{pattern}' does not come in its place in\n{text}")


def command():
    log = os.path.join(DATA, "log")
    r = run(URNIC, ["trace", "-o", log, "--private", "--", build()])
    check(r.returncode == 7 and r.stdout.strip().isdigit() and r.stderr == "to standard error\n", f"-o FILE: {r}")
    with open(log, encoding="ascii") as f:
        text = f.read()
    check_lines(text, WANT, "-o FILE")
    check(text.count("ibv_poll_cq(") == 1, f"polls that find nothing: {text.count('ibv_poll_cq(')}")
    check({LINE.match(line)[1] for line in text.splitlines()} == {r.stdout.strip()}, "the process's id")
    r = run(URNIC, ["trace", "--private", "--", "sh", "-c", build() + "; exit 3"])
    traced = "".join(line for line in r.stderr.splitlines(True) if line != "to standard error\n")
    check(r.returncode == 3, f"a shell's status: {r.returncode}")
    check_lines(traced, WANT, "standard error")
    check(not left(), f"left behind: {left()}")


def asked():
    """What ibv_devinfo asks a device."""
    r = run(URNIC, ["trace", "--private", "--", "ibv_devinfo", "-v"])
    check(r.returncode == 0, f"ibv_devinfo: {r}")
    check_lines(r.stderr, [r"ibv_query_device_ex\(urn0\) = 0$", r"ibv_query_port\(urn0, port 1, active\) = 0$",
                           r"ibv_query_gid\(urn0, port 1, index \d+, 198\.18\.0\.1\) = 0$",
                           r"ibv_query_gid_type\(urn0, port 1, index \d+, RoCE v2\) = 0$", r"ibv_close_device\(urn0\) = 0$"],
                "ibv_devinfo")


def start(tenths):
    p = subprocess.Popen([URNIC, "run", "--private", "--", build(), str(tenths)], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True)
    return p, p.stdout.readline().strip()


def running():
    p, pid = start(40)
    with p:
        for stop in signal.SIGINT, signal.SIGTERM:
            with subprocess.Popen([URNIC, "trace", pid], stderr=subprocess.PIPE, text=True) as t:
                time.sleep(0.5)
                r = run(URNIC, ["trace", pid])
                check(r.returncode == 1 and "traced already" in r.stderr, f"twice: {r}")
                t.send_signal(stop)
                text = t.communicate(timeout=10)[1]
                check(t.returncode == 0, f"stopped: {t.returncode}")
            check_lines(text, [r"ibv_alloc_pd\(urn0\) = 0x", r"ibv_dealloc_pd\(pd 0x\w+\) = 0$"] * 2, "PID")
        with subprocess.Popen([URNIC, "trace", pid], stderr=subprocess.PIPE, text=True) as t:
            time.sleep(0.3)
            t.kill()  # the program doesn't care
        time.sleep(0.3)
        r = run(URNIC, ["trace", "-o", os.path.join(DATA, "rest"), pid])
        check(r.returncode == 0 and r.stderr == "", f"until the process ends: {r}")
        check(p.wait(timeout=20) == 7, "the program's status")
    with open(os.path.join(DATA, "rest"), encoding="ascii") as f:
        check_lines(f.read(), [r"ibv_alloc_pd\(urn0\) = 0x"], "after a tool that was killed")
    for folder in left():  # of the one that was killed
        os.unlink(os.path.join(RUNTIME, folder, "socket"))
        os.rmdir(os.path.join(RUNTIME, folder))


def refused():
    for args, status, text in (([], 2, "process id"), (["x"], 2, "PID"), (["0"], 2, "PID"),
                               (["--private"], 2, "process id"), (["1", "2"], 2, "process id"),
                               (["--private", "--"], 2, "command"),
                               (["-o", "/nowhere/x", "1"], 1, "/nowhere/x"),
                               ([str(os.getpid())], 1, "has not called urnic's libibverbs"),
                               (["2147483647"], 1, "No such process"),
                               (["--nonsense", "--", "true"], 2, "nonsense"), (["--", "no-such-command"], 127, "No such file")):
        r = run(URNIC, ["trace", *args])
        check(r.returncode == status and text in r.stderr, f"trace {args}: {r}")
    check(not left(), f"left behind: {left()}")


def others():
    """Another user's program is not traced."""
    if os.getuid() != 0:
        return
    p, pid = start(20)
    with p:
        r = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env",
                            "XDG_RUNTIME_DIR=/tmp", URNIC, "trace", pid], capture_output=True, text=True, check=False)
        check(r.returncode == 1 and "Permission denied" in r.stderr, f"another user: {r}")
        check(p.wait(timeout=20) == 7, "the program's status")


raise SystemExit(test_all(command, asked, running, refused, others))
