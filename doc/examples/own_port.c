/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Example 6: no daemon. Two programs, each with a port of its own, one memif between them.
 *
 *     own_port memif:/tmp/a.sock,role=server,addr=10.0.0.1/24               the server
 *     own_port memif:/tmp/a.sock,role=client,addr=10.0.0.2/24 10.0.0.1      the client: 1000 rounds
 *
 * What it shows: urnic_open_port; a region in the program's own memory; a server that calls nothing
 * while the client writes into its memory: it looks there for the new number.
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <urnic/urnic.h>

#define PORT   7472
#define ROUNDS 1000

/* The message that each end sends the other when they connect. */
struct where {
    uint64_t addr;
    uint32_t rkey;
};

/* Memory that the other end writes: the number of the latest round; and memory to write from. */
struct words {
    _Atomic uint64_t come, go;
};

static void check(int err, const char *what)
{
    if (err < 0) {
        fprintf(stderr, "%s: %s\n", what, strerror(-err));
        exit(1);
    }
}

/* Write the round's number into the other end's memory, and wait until it is there. */
static void write_round(struct urnic_conn *conn, struct urnic_cq *cq, const struct urnic_mr *mr,
                        struct words *w, const struct where *to, uint64_t round)
{
    struct urnic_sge sge = {.addr = (uintptr_t)&w->go, .length = sizeof(w->go), .lkey = mr->lkey};
    struct urnic_send_wr wr = {
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = URNIC_WR_RDMA_WRITE,
        .send_flags = URNIC_SEND_SIGNALED,
    };
    struct urnic_wc wc;
    int n;
    wr.rdma = (struct urnic_wr_rdma){.remote_addr = to->addr, .rkey = to->rkey};
    atomic_store(&w->go, round);
    check(urnic_post_send(conn->qp, &wr, NULL), "post");
    while ((n = urnic_poll_cq(cq, 1, &wc)) == 0)
        sched_yield();
    check(n, "poll");
    if (wc.status != URNIC_WC_SUCCESS) {
        fprintf(stderr, "completion: %s\n", urnic_wc_status_str(wc.status));
        exit(1);
    }
}

/* No call of the library: its thread serves the peer meanwhile. */
static void await_round(const struct words *w, uint64_t round)
{
    while (atomic_load(&w->come) < round)
        sched_yield();
}

int main(int argc, char **argv)
{
    struct urnic_context *ctx;
    struct urnic_pd *pd;
    struct urnic_cq *cq;
    struct urnic_mr *mr;
    struct urnic_listener *listener = NULL;
    struct urnic_conn *conn;
    static struct words words;
    struct where here, there;
    char why[256];
    if (argc < 2)
        return 2;
    int err = urnic_open_port(argv[1], &ctx, why, sizeof(why));
    if (err < 0) {
        fprintf(stderr, "%s: %s\n", argv[1], why[0] ? why : strerror(-err));
        return 1;
    }
    check(urnic_alloc_pd(ctx, &pd), "protection domain");
    check(urnic_create_cq(ctx, 16, NULL, NULL, &cq), "completion queue");
    check(urnic_reg_mr(pd, &words, sizeof(words),
                       URNIC_ACCESS_LOCAL_WRITE | URNIC_ACCESS_REMOTE_WRITE, &mr),
          "register");
    here = (struct where){.addr = (uintptr_t)&words.come, .rkey = mr->rkey};
    struct urnic_conn_attr attr = {
        .pd = pd,
        .qp = {.send_cq = cq,
               .recv_cq = cq,
               .qp_type = URNIC_QPT_RC,
               .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}},
        .param = {.private_data = &here, .private_data_len = sizeof(here)},
        .timeout_ms = 20000,
    };
    if (argc < 3) {
        check(urnic_listen_addr(ctx, NULL, PORT, 1, &listener), "listen");
        printf("listening\n");
        fflush(stdout);
        check(urnic_accept_conn(listener, &attr, NULL, NULL, &conn), "accept");
    } else {
        check(urnic_connect_addr(ctx, argv[2], PORT, &attr, NULL, NULL, &conn), "connect");
    }
    memcpy(&there, conn->private_data, sizeof(there));

    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        if (argc < 3)
            await_round(&words, round);
        write_round(conn, cq, mr, &words, &there, round);
        if (argc >= 3)
            await_round(&words, round);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    double us =
        (double)(end.tv_sec - begin.tv_sec) * 1e6 + (double)(end.tv_nsec - begin.tv_nsec) / 1e3;
    printf("%d rounds, half of a round trip took %.1f us\n", ROUNDS, us / ROUNDS / 2);
    urnic_close_conn(conn);
    if (listener)
        urnic_close_listener(listener);
    urnic_dereg_mr(mr);
    urnic_destroy_cq(cq);
    urnic_dealloc_pd(pd);
    urnic_close(ctx);
    return 0;
}
