/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Example 3: a counter and a lock in another machine's memory, by atomic operations.
 *
 *     counter -d urn0                  the server: holds the counter until its client leaves
 *     counter -d urn1 10.0.0.1         the client: draws 100 tickets, then takes and frees the lock
 *
 * What it shows: fetch-and-add and compare-and-swap. They are atomic against all others that reach
 * the same octets through the server's device. Results come back in local memory.
 */
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <urnic/urnic.h>

#define PORT    7473
#define TICKETS 100

struct shared { /* lies in the server's memory */
    uint64_t next_ticket;
    uint64_t lock; /* 0 = free, else the owner */
};

struct offer {
    uint64_t addr;
    uint32_t rkey, zero;
};

struct client {
    struct urnic_qp *qp;
    struct urnic_cq *cq;
    struct urnic_mr *mr;
    struct offer offer;
};

static void check(int err, const char *what)
{
    if (err < 0) {
        fprintf(stderr, "%s: %s\n", what, strerror(-err));
        exit(1);
    }
}

/* An atomic operation on 8 remote octets. Returns their value before. */
static uint64_t atomic_op(struct client *c, enum urnic_wr_opcode op, size_t off, uint64_t operand,
                          uint64_t swap)
{
    struct urnic_sge sge = {.addr = c->mr->iova, .length = 8, .lkey = c->mr->lkey};
    struct urnic_send_wr wr = {
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = op,
        .send_flags = URNIC_SEND_SIGNALED,
        .atomic = {.remote_addr = c->offer.addr + off,
                   .compare_add = operand,
                   .swap = swap,
                   .rkey = c->offer.rkey},
    };
    struct urnic_wc wc;
    uint64_t before;
    int n;
    check(urnic_post_send(c->qp, &wr, NULL), "post");
    while ((n = urnic_poll_cq(c->cq, 1, &wc)) == 0)
        sched_yield();
    check(n, "poll");
    if (wc.status != URNIC_WC_SUCCESS) {
        fprintf(stderr, "atomic: %s\n", urnic_wc_status_str(wc.status));
        exit(1);
    }
    memcpy(&before, c->mr->addr, sizeof(before));
    return before;
}

static void use(struct client *c)
{
    const size_t ticket = offsetof(struct shared, next_ticket);
    const size_t lock = offsetof(struct shared, lock);
    const uint64_t me = 0xC11E47;
    for (uint64_t i = 0; i < TICKETS; i++) {
        uint64_t mine = atomic_op(c, URNIC_WR_ATOMIC_FETCH_AND_ADD, ticket, 1, 0);
        if (mine != i) { /* alone, so no gaps */
            fprintf(stderr, "ticket %llu came as number %llu\n", (unsigned long long)mine,
                    (unsigned long long)i);
            exit(1);
        }
    }
    while (atomic_op(c, URNIC_WR_ATOMIC_CMP_AND_SWP, lock, 0, me) != 0)
        ; /* another client has it */
    uint64_t owner = atomic_op(c, URNIC_WR_ATOMIC_CMP_AND_SWP, lock, me, 0);
    printf("drew %d tickets; held the lock: %s\n", TICKETS, owner == me ? "yes" : "no");
}

static void serve(struct urnic_context *ctx, struct urnic_conn_attr *attr,
                  const struct urnic_mr *mr)
{
    struct urnic_listener *listener;
    struct urnic_conn *conn;
    struct urnic_cm_event ev;
    struct offer offer = {.addr = mr->iova, .rkey = mr->rkey};
    struct shared end;
    attr->param.private_data = &offer;
    attr->param.private_data_len = sizeof(offer);
    attr->timeout_ms = -1;
    check(urnic_listen_addr(ctx, NULL, PORT, 1, &listener), "listen");
    printf("listening\n");
    fflush(stdout);
    check(urnic_accept_conn(listener, attr, NULL, NULL, &conn), "accept");
    do
        check(urnic_get_cm_event(conn->channel, &ev), "event");
    while (ev.event != URNIC_CM_DISCONNECTED);
    memcpy(&end, mr->addr, sizeof(end));
    printf("counter %llu, lock %llu\n", (unsigned long long)end.next_ticket,
           (unsigned long long)end.lock);
    urnic_close_conn(conn);
    urnic_close_listener(listener);
}

static void attach(struct urnic_context *ctx, struct urnic_conn_attr *attr, const char *server,
                   struct urnic_mr *mr)
{
    struct urnic_conn *conn;
    struct client c = {.cq = attr->qp.send_cq, .mr = mr};
    check(urnic_connect_addr(ctx, server, PORT, attr, NULL, NULL, &conn), "connect");
    memcpy(&c.offer, conn->private_data, sizeof(c.offer));
    c.qp = conn->qp;
    use(&c);
    urnic_close_conn(conn);
}

int main(int argc, char **argv)
{
    const char *device = NULL;
    for (int opt; (opt = getopt(argc, argv, "d:")) != -1;) {
        if (opt != 'd')
            return 2;
        device = optarg;
    }
    bool server = optind >= argc;
    struct urnic_context *ctx;
    struct urnic_cq *cq;
    struct urnic_mr *mr;
    struct urnic_conn_attr attr = {
        .qp = {.qp_type = URNIC_QPT_RC,
               .cap = {.max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}},
    };
    void *mem; /* zeroed, and aligned as atomics need it */
    check(urnic_open(device, &ctx), "open device");
    check(urnic_alloc_pd(ctx, &attr.pd), "protection domain");
    check(urnic_create_cq(ctx, 16, NULL, NULL, &cq), "completion queue");
    attr.qp.send_cq = attr.qp.recv_cq = cq;
    check(urnic_alloc(ctx, sizeof(struct shared), &mem), "memory");
    unsigned access = URNIC_ACCESS_LOCAL_WRITE | (server ? URNIC_ACCESS_REMOTE_ATOMIC : 0);
    check(urnic_reg_mr(attr.pd, mem, sizeof(struct shared), access, &mr), "register");

    if (server)
        serve(ctx, &attr, mr);
    else
        attach(ctx, &attr, argv[optind], mr);

    urnic_dereg_mr(mr);
    urnic_free(ctx, mem);
    urnic_destroy_cq(cq);
    urnic_dealloc_pd(attr.pd);
    urnic_close(ctx);
    return 0;
}
