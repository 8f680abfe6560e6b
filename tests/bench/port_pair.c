/* SPDX-License-Identifier: BSD-3-Clause
 *
 * port_pair: WRITEs or READs between two programs. The memory is malloc's; both programs poll.
 *
 * usage: port_pair lat|bw|read CPU CPU SECONDS [NETNS SOCKET NETNS SOCKET ADDRESS]
 *
 * lat: half a round trip of 8 octets, ns, the median. bw, read: goodput of WRITEs or READs of 64
 * KiB in a working set of 1 MiB, bit/s.
 *
 * The programs have a port each, joined by a memif, without a daemon; or with SOCKET each is in
 * that named network namespace, beside the daemon at that socket: first the server, which has the
 * address, then the client. URNIC_ENGINE says where their engines are.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <urnic/urnic.h>

#include "bench.h"

#define PORT    7474
#define SAMPLES 65536u
#define WARM    2000u
#define BIG     65536u
#define SET     (1u << 20)
#define DEPTH   16u

struct where {
    uint64_t addr;
    uint32_t rkey;
};

static struct end {
    struct urnic_context *ctx;
    struct urnic_pd *pd;
    struct urnic_cq *cq;
    struct urnic_mr *mr;
    struct urnic_conn *conn;
    struct where there;
    uint8_t *mem;
    unsigned under_way;
} e;

static void check(int err, const char *what)
{
    if (err < 0) {
        fprintf(stderr, "port_pair: %s: %s\n", what, strerror(-err));
        exit(1);
    }
}

/* A port of its own, or the device of the daemon at `socket` in the namespace `netns`. */
static void open_device(const char *spec, const char *netns, const char *socket)
{
    char why[256] = "", path[128];
    if (!socket) {
        int err = urnic_open_port(spec, &e.ctx, why, sizeof(why));
        if (err < 0)
            fprintf(stderr, "port_pair: %s: %s\n", spec, why);
        check(err, "port");
        return;
    }
    snprintf(path, sizeof(path), "/run/netns/%s", netns);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    check(fd < 0 || setns(fd, CLONE_NEWNET) < 0 ? -errno : 0, path);
    close(fd);
    check(urnic_open_at(socket, NULL, -1, &e.ctx), socket);
}

static void open_end(const char *server)
{
    struct where here;
    struct urnic_listener *listener;
    int err;
    const unsigned access =
        URNIC_ACCESS_LOCAL_WRITE | URNIC_ACCESS_REMOTE_WRITE | URNIC_ACCESS_REMOTE_READ;
    e.mem = calloc(1, SET);
    check(urnic_alloc_pd(e.ctx, &e.pd), "protection domain");
    check(urnic_create_cq(e.ctx, 64, NULL, NULL, &e.cq), "completion queue");
    err = urnic_reg_mr(e.pd, e.mem, SET, access, &e.mr);
    if (err == -EOPNOTSUPP) { /* the daemon's engine */
        free(e.mem);
        check(urnic_alloc(e.ctx, SET, (void **)&e.mem), "memory");
        err = urnic_reg_mr(e.pd, e.mem, SET, access, &e.mr);
    }
    check(err, "region");
    here = (struct where){(uintptr_t)e.mem, e.mr->rkey};
    struct urnic_conn_attr attr = {
        .pd = e.pd,
        .qp = {.send_cq = e.cq,
               .recv_cq = e.cq,
               .qp_type = URNIC_QPT_RC,
               .cap = {.max_send_wr = 64,
                       .max_recv_wr = 1,
                       .max_send_sge = 1,
                       .max_recv_sge = 1,
                       .max_inline_data = 8}},
        .param = {.private_data = &here, .private_data_len = sizeof(here)},
        .timeout_ms = 20000,
    };
    if (server) {
        while ((err = urnic_connect_addr(e.ctx, server, PORT, &attr, NULL, NULL, &e.conn)) ==
                   -ECONNREFUSED ||
               err == -EHOSTUNREACH)
            usleep(10000);
        check(err, "connect");
    } else {
        check(urnic_listen_addr(e.ctx, NULL, PORT, 1, &listener), "listen");
        check(urnic_accept_conn(listener, &attr, NULL, NULL, &e.conn), "accept");
    }
    memcpy(&e.there, e.conn->private_data, sizeof(e.there));
}

static void look(void)
{
    struct urnic_wc wc[DEPTH];
    int n = urnic_poll_cq(e.cq, DEPTH, wc);
    check(n, "poll");
    for (int i = 0; i < n; i++) {
        if (wc[i].status != URNIC_WC_SUCCESS) {
            fprintf(stderr, "port_pair: %s\n", urnic_wc_status_str(wc[i].status));
            exit(1);
        }
        e.under_way--;
    }
}

static void move(enum urnic_wr_opcode op, size_t off, size_t to, uint32_t len, unsigned flags)
{
    struct urnic_sge sge = {.addr = (uintptr_t)e.mem + off, .length = len, .lkey = e.mr->lkey};
    struct urnic_send_wr wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = op, .send_flags = URNIC_SEND_SIGNALED | flags};
    wr.rdma = (struct urnic_wr_rdma){.remote_addr = e.there.addr + to, .rkey = e.there.rkey};
    check(urnic_post_send(e.conn->qp, &wr, NULL), "post");
    e.under_way++;
}

/* Octets 0..7 are the received value, 8..15 the sent one. */
static void send_word(uint64_t n)
{
    memcpy(e.mem + 8, &n, 8);
    move(URNIC_WR_RDMA_WRITE, 8, 0, 8, URNIC_SEND_INLINE);
}

static void await_word(uint64_t n)
{
    while (__atomic_load_n((const uint64_t *)(const void *)e.mem, __ATOMIC_ACQUIRE) != n)
        look();
}

/* Answers until it is killed. */
static void serve(bool answers)
{
    for (uint64_t n = 1;; n++) {
        if (!answers) {
            look();
            continue;
        }
        await_word(n);
        send_word(n);
    }
}

static double latency(uint64_t until)
{
    static double took[SAMPLES];
    unsigned n = 0;
    for (uint64_t round = 1; n < SAMPLES && (n < 100 || clock_ns() < until); round++) {
        uint64_t before = clock_ns();
        send_word(round);
        await_word(round);
        if (round > WARM)
            took[n++] = (double)(clock_ns() - before);
    }
    qsort(took, n, sizeof(took[0]), by_size);
    return took[n / 2] / 2;
}

static double bandwidth(enum urnic_wr_opcode op, uint64_t until)
{
    uint64_t begin = clock_ns(), octets = 0;
    for (size_t off = 0; clock_ns() < until; off = (off + BIG) % SET) {
        while (e.under_way == DEPTH)
            look();
        move(op, off, off, BIG, 0);
        octets += BIG;
    }
    while (e.under_way > 0)
        look();
    return (double)octets * 8e9 / (double)(clock_ns() - begin);
}

int main(int argc, char **argv)
{
    char spec[128];
    bool lat = argc > 1 && strcmp(argv[1], "lat") == 0;
    bool rd = argc > 1 && strcmp(argv[1], "read") == 0;
    if ((argc != 5 && argc != 10) || !(lat || rd || strcmp(argv[1], "bw") == 0)) {
        fprintf(stderr, "usage: port_pair lat|bw|read CPU CPU SECONDS "
                        "[NETNS SOCKET NETNS SOCKET ADDRESS]\n");
        return 2;
    }
    int parent = getpid();
    pid_t server = fork();
    unsigned at = server == 0 ? 5 : 7;
    pin(atoi(argv[server == 0 ? 2 : 3]));
    snprintf(spec, sizeof(spec), "memif:@port_pair-%d,role=%s,addr=10.0.0.%d/24", parent,
             server == 0 ? "server" : "client", server == 0 ? 1 : 2);
    if (server == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    else
        alarm(120);
    open_device(spec, argc > 5 ? argv[at] : NULL, argc > 5 ? argv[at + 1] : NULL);
    if (server == 0) {
        open_end(NULL);
        serve(lat);
    }
    open_end(argc > 5 ? argv[9] : "10.0.0.1");
    uint64_t until = clock_ns() + (uint64_t)(atof(argv[4]) * 1e9);
    double value =
        lat ? latency(until) : bandwidth(rd ? URNIC_WR_RDMA_READ : URNIC_WR_RDMA_WRITE, until);
    printf("{\"name\": \"%s_%s_port_app\", \"value\": %.1f}\n", rd ? "read" : "write",
           lat ? "lat" : "bw", value);
    kill(server, SIGKILL);
    return 0;
}
