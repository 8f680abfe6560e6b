/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The other end of rdma-core's udaddy and mckey, on liburnic: datagram queue pairs that find each
 * other by the connection manager, or in a multicast group.
 *
 *     datagrams serve ADDRESS PORT COUNT SIZE    take COUNT datagrams, answer with as many
 *     datagrams call ADDRESS PORT COUNT SIZE     the other way round
 *     datagrams hear GROUP - COUNT SIZE          take COUNT datagrams to the group
 *     datagrams tell GROUP - COUNT SIZE          send them
 *
 * Prints "ready" when it listens, or has joined, and at the end the received datagrams. Exit status
 * 0: all were received.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "urnic/urnic.h"

#define GRH_LEN 40u
#define DEPTH   256u

static struct {
    struct urnic_context *ctx;
    struct urnic_pd *pd;
    struct urnic_cq *cq;
    struct urnic_mr *mr;
    struct urnic_qp *qp;
    struct urnic_cm_channel *channel;
    struct urnic_cm_id *id, *listener;
    struct urnic_ah *ah;
    uint32_t to_qpn, to_qkey;
    uint8_t *memory; /* a receive buffer, then the data to send */
    unsigned count;
    uint32_t size;
    unsigned received, sent;
} x;

static void must(int rc, const char *what)
{
    if (rc) {
        printf("%s: %s\n", what, strerror(-rc));
        exit(1);
    }
}

static void open_all(void)
{
    void *memory;
    must(urnic_open(NULL, &x.ctx), "open");
    must(urnic_alloc_pd(x.ctx, &x.pd), "alloc_pd");
    must(urnic_create_cq(x.ctx, 2 * DEPTH, NULL, NULL, &x.cq), "create_cq");
    must(urnic_alloc(x.ctx, 16384, &memory), "alloc");
    x.memory = memory;
    must(urnic_reg_mr(x.pd, memory, 16384, URNIC_ACCESS_LOCAL_WRITE, &x.mr), "reg_mr");
    must(urnic_create_cm_channel(x.ctx, &x.channel), "create_cm_channel");
}

static struct urnic_cm_event await(enum urnic_cm_event_type wanted)
{
    struct urnic_cm_event ev;
    must(urnic_get_cm_event(x.channel, &ev), "get_cm_event");
    if (ev.event != wanted) {
        printf("event %s, status %d, instead of %s\n", urnic_cm_event_str(ev.event), ev.status,
               urnic_cm_event_str(wanted));
        exit(1);
    }
    return ev;
}

static void give_qp(struct urnic_cm_id *id)
{
    struct urnic_qp_init_attr init = {
        .send_cq = x.cq,
        .recv_cq = x.cq,
        .qp_type = URNIC_QPT_UD,
        .cap = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1},
    };
    struct urnic_sge sge = {(uintptr_t)x.memory, GRH_LEN + x.size, x.mr->lkey};
    struct urnic_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
    must(urnic_create_id_qp(id, x.pd, &init, &x.qp), "create_id_qp");
    for (unsigned i = 0; i < x.count; i++)
        must(urnic_post_recv(x.qp, &wr, NULL), "post_recv");
}

/* Which of our addresses is of the family that this header is of. */
static uint16_t source_index(bool v4)
{
    struct urnic_gid gids[64];
    int n = urnic_query_gid_table(x.ctx, gids, 64);
    for (int i = 0; i < n && i < 64; i++) {
        bool mapped = !memcmp(gids[i].raw, "\0\0\0\0\0\0\0\0\0\0\xFF\xFF", 12);
        if (gids[i].type == URNIC_GID_ROCE_V2 && mapped == v4 && gids[i].raw[0] != 0xfe)
            return (uint16_t)gids[i].index;
    }
    return 0;
}

/* Where the first datagram came from: an address handle from its header, the number as udaddy tells
 * it, in the immediate. */
static void way_back(const struct urnic_wc *wc)
{
    if (x.ah)
        return;
    must(urnic_create_ah_from_wc(x.pd, wc, x.memory, source_index(x.memory[20] == 0x45), &x.ah),
         "create_ah_from_wc");
    x.to_qpn = ntohl(wc->imm_data);
    x.to_qkey = 0x01234567;
    if (x.to_qpn != wc->src_qp)
        printf("immediate names queue pair 0x%x, the header 0x%x\n", x.to_qpn, wc->src_qp);
}

static void collect(const unsigned *n, unsigned until)
{
    struct timespec pause = {.tv_nsec = 50000};
    struct urnic_wc wc;
    for (unsigned idle = 0; *n < until && idle < 200000; idle++) {
        int got = urnic_poll_cq(x.cq, 1, &wc);
        if (got == 0) {
            nanosleep(&pause, NULL);
            continue;
        }
        must(got < 0 ? got : 0, "poll_cq");
        must(wc.status == URNIC_WC_SUCCESS ? 0 : -EIO, urnic_wc_status_str(wc.status));
        if (!(wc.opcode & URNIC_WC_RECV)) {
            x.sent++;
            continue;
        }
        if (wc.byte_len != GRH_LEN + x.size)
            printf("a datagram of %u octets\n", wc.byte_len);
        way_back(&wc);
        x.received++;
    }
}

static void send_all(void)
{
    struct urnic_sge sge = {(uintptr_t)x.memory + 8192, x.size, x.mr->lkey};
    struct urnic_send_wr wr = {.sg_list = &sge,
                               .num_sge = 1,
                               .opcode = URNIC_WR_SEND_WITH_IMM,
                               .send_flags = URNIC_SEND_SIGNALED,
                               .imm_data = htonl(urnic_qp_num(x.qp)),
                               .ud = {x.ah, x.to_qpn, x.to_qkey}};
    for (unsigned i = 0; i < x.count; i++)
        must(urnic_post_send(x.qp, &wr, NULL), "post_send");
    collect(&x.sent, x.count);
}

static void towards(const struct urnic_cm_event *ev)
{
    x.to_qpn = ev->qp_num;
    x.to_qkey = ev->qkey;
    must(urnic_create_ah(x.pd, &ev->ah, &x.ah), "create_ah");
}

static void ready(void)
{
    puts("ready");
    fflush(stdout);
}

static void serve(struct sockaddr *at)
{
    must(urnic_create_id(x.channel, URNIC_PS_UDP, NULL, &x.listener), "create_id");
    must(urnic_bind_addr(x.listener, at), "bind_addr");
    must(urnic_listen(x.listener, 4), "listen");
    ready();
    x.id = await(URNIC_CM_CONNECT_REQUEST).id;
    give_qp(x.id);
    struct urnic_conn_param param = {.qp_num = urnic_qp_num(x.qp)};
    must(urnic_accept(x.id, &param), "accept");
    collect(&x.received, x.count);
    if (x.ah)
        send_all();
}

static void call(struct sockaddr *to)
{
    must(urnic_create_id(x.channel, URNIC_PS_UDP, NULL, &x.id), "create_id");
    must(urnic_resolve(x.id, NULL, to, 5000), "resolve");
    await(URNIC_CM_ROUTE_RESOLVED);
    give_qp(x.id);
    must(urnic_connect(x.id, NULL), "connect");
    struct urnic_cm_event ev = await(URNIC_CM_ESTABLISHED);
    towards(&ev);
    send_all();
    collect(&x.received, x.count);
}

static void group(struct sockaddr *name, bool tell)
{
    must(urnic_create_id(x.channel, URNIC_PS_UDP, NULL, &x.id), "create_id");
    give_qp(x.id);
    must(urnic_join_multicast(x.id, name), "join_multicast");
    struct urnic_cm_event ev = await(URNIC_CM_MULTICAST_JOIN);
    ready();
    if (!tell) {
        collect(&x.received, x.count);
        return;
    }
    towards(&ev);
    send_all();
}

int main(int argc, char **argv)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    struct sockaddr *at = (struct sockaddr *)&v4;
    if (argc != 6)
        return 2;
    v4.sin_port = v6.sin6_port = htons((uint16_t)atoi(argv[3]));
    if (inet_pton(AF_INET, argv[2], &v4.sin_addr) != 1) {
        at = (struct sockaddr *)&v6;
        if (inet_pton(AF_INET6, argv[2], &v6.sin6_addr) != 1)
            return 2;
    }
    x.count = (unsigned)atoi(argv[4]);
    x.size = (uint32_t)atoi(argv[5]);
    if (x.count > DEPTH || x.size > 4096)
        return 2;
    open_all();
    bool hears = strcmp(argv[1], "tell") != 0, tells = strcmp(argv[1], "hear") != 0;
    if (!strcmp(argv[1], "serve"))
        serve(at);
    else if (!strcmp(argv[1], "call"))
        call(at);
    else
        group(at, tells);
    printf("received %u, sent %u\n", x.received, x.sent);
    return (!hears || x.received == x.count) && (!tells || x.sent == x.count) ? 0 : 1;
}
