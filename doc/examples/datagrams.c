/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Example 4: datagrams, in an event loop that sleeps when there is nothing to do.
 *
 *     datagrams -d urn0                          the server: prints its queue pair's number
 *     datagrams -d urn1 10.0.0.1 NUMBER          the client: sends, waits for the echo, ten times
 *
 * What it shows: a UD queue pair set up by hand; address handles; the 40 octets before each
 * datagram, and answering by them; the rule of completion events: arm, poll once more, only then
 * sleep.
 */
#include <arpa/inet.h>
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <urnic/urnic.h>

#define GRH      40u /* octets in front of each received datagram */
#define DATAGRAM 256u
#define QKEY     0x1234u
#define ROUNDS   10

struct app {
    struct urnic_context *ctx;
    struct urnic_pd *pd;
    struct urnic_channel *channel;
    struct urnic_cq *cq;
    struct urnic_qp *qp;
    struct urnic_mr *mr;
    char *out, *in; /* in: GRH, then data */
    uint16_t gid;   /* index of our source address */
    int sent;       /* send completions */
};

static void check(int err, const char *what)
{
    if (err < 0) {
        fprintf(stderr, "%s: %s\n", what, strerror(-err));
        exit(1);
    }
}

static void post_receive(struct app *a)
{
    struct urnic_sge sge = {
        .addr = (uintptr_t)a->in, .length = GRH + DATAGRAM, .lkey = a->mr->lkey};
    struct urnic_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
    check(urnic_post_recv(a->qp, &wr, NULL), "post receive");
}

static void send_to(struct app *a, struct urnic_ah *ah, uint32_t qpn)
{
    struct urnic_sge sge = {
        .addr = (uintptr_t)a->out, .length = (uint32_t)strlen(a->out) + 1, .lkey = a->mr->lkey};
    struct urnic_send_wr wr = {
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = URNIC_WR_SEND,
        .send_flags = URNIC_SEND_SIGNALED | URNIC_SEND_SOLICITED,
        .ud = {.ah = ah, .remote_qpn = qpn, .remote_qkey = QKEY},
    };
    check(urnic_post_send(a->qp, &wr, NULL), "post send");
}

/* The next completion. Sleeps in poll(2) on the channel's descriptor; a program with other
 * descriptors would wait for all of them there. False after ten seconds of silence. */
static bool next(struct app *a, struct urnic_wc *wc)
{
    for (;;) {
        int n = urnic_poll_cq(a->cq, 1, wc);
        check(n, "poll");
        if (n == 1)
            break;
        check(urnic_req_notify_cq(a->cq, false), "arm");
        n = urnic_poll_cq(a->cq, 1, wc); /* a completion before the arming raises no event */
        if (n == 1)
            break;
        struct pollfd p = {.fd = urnic_channel_fd(a->channel), .events = POLLIN};
        if (poll(&p, 1, 10000) == 0)
            return false;
        struct urnic_cq *cq;
        check(urnic_get_cq_event(a->channel, &cq, NULL), "event");
        urnic_ack_cq_events(cq, 1);
    }
    if (wc->status != URNIC_WC_SUCCESS) {
        fprintf(stderr, "completion: %s\n", urnic_wc_status_str(wc->status));
        exit(1);
    }
    a->sent += wc->opcode == URNIC_WC_SEND;
    return true;
}

/* Move by hand, as a connection does with other queue pairs: RESET, INIT, RTR, RTS. */
static void make_qp(struct app *a)
{
    struct urnic_qp_init_attr init = {
        .send_cq = a->cq,
        .recv_cq = a->cq,
        .qp_type = URNIC_QPT_UD,
        .cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
    };
    struct urnic_qp_attr attr = {.qp_state = URNIC_QPS_INIT, .port_num = 1, .qkey = QKEY};
    check(urnic_create_qp(a->pd, &init, &a->qp), "queue pair");
    check(urnic_modify_qp(a->qp, &attr,
                          URNIC_QP_STATE | URNIC_QP_PKEY_INDEX | URNIC_QP_PORT | URNIC_QP_QKEY),
          "to INIT");
    attr.qp_state = URNIC_QPS_RTR;
    check(urnic_modify_qp(a->qp, &attr, URNIC_QP_STATE), "to RTR");
    attr.qp_state = URNIC_QPS_RTS;
    check(urnic_modify_qp(a->qp, &attr, URNIC_QP_STATE | URNIC_QP_SQ_PSN), "to RTS");
}

/* Our first IPv4 address of RoCE v2. */
static void choose_gid(struct app *a)
{
    static const uint8_t mapped[12] = {[10] = 0xFF, [11] = 0xFF};
    struct urnic_gid gids[64];
    int n = urnic_query_gid_table(a->ctx, gids, 64);
    check(n, "addresses");
    for (int i = 0; i < n && i < 64; i++) {
        if (gids[i].type == URNIC_GID_ROCE_V2 && memcmp(gids[i].raw, mapped, 12) == 0) {
            a->gid = (uint16_t)gids[i].index;
            return;
        }
    }
    fprintf(stderr, "the device has no IPv4 address\n");
    exit(1);
}

static void serve(struct app *a)
{
    struct urnic_wc wc;
    printf("listening on queue pair %u\n", urnic_qp_num(a->qp));
    fflush(stdout);
    for (int answered = 0; answered < ROUNDS;) {
        if (!next(a, &wc))
            exit(1);
        if (wc.opcode != URNIC_WC_RECV)
            continue;
        struct urnic_ah *back;
        check(urnic_create_ah_from_wc(a->pd, &wc, a->in, a->gid, &back), "address of the sender");
        snprintf(a->out, DATAGRAM, "you said: %.200s", a->in + GRH);
        post_receive(a);
        send_to(a, back, wc.src_qp);
        urnic_destroy_ah(back); /* its content was copied into the request */
        answered++;
    }
    while (a->sent < ROUNDS && next(a, &wc))
        ; /* all answers have left */
    printf("answered %d datagrams\n", ROUNDS);
}

static void talk(struct app *a, const char *server, uint32_t qpn)
{
    struct urnic_ah_attr attr = {.sgid_index = a->gid, .hop_limit = 64};
    struct urnic_ah *ah;
    struct urnic_wc wc;
    attr.dgid[10] = attr.dgid[11] = 0xFF;
    if (inet_pton(AF_INET, server, attr.dgid + 12) != 1) {
        fprintf(stderr, "%s is not an IPv4 address\n", server);
        exit(2);
    }
    check(urnic_create_ah(a->pd, &attr, &ah), "address");
    for (int i = 0; i < ROUNDS; i++) {
        snprintf(a->out, DATAGRAM, "datagram %d", i);
        send_to(a, ah, qpn);
        do
            if (!next(a, &wc)) {
                fprintf(stderr, "no answer\n");
                exit(1);
            }
        while (wc.opcode != URNIC_WC_RECV);
        if (i == 0)
            printf("%s\n", a->in + GRH);
        post_receive(a);
    }
    urnic_destroy_ah(ah);
    printf("%d answers\n", ROUNDS);
}

int main(int argc, char **argv)
{
    struct app a = {0};
    const char *device = NULL;
    void *mem;
    for (int opt; (opt = getopt(argc, argv, "d:")) != -1;) {
        if (opt != 'd')
            return 2;
        device = optarg;
    }
    check(urnic_open(device, &a.ctx), "open device");
    check(urnic_alloc_pd(a.ctx, &a.pd), "protection domain");
    check(urnic_create_channel(a.ctx, &a.channel), "event channel");
    check(urnic_create_cq(a.ctx, 16, NULL, a.channel, &a.cq), "completion queue");
    check(urnic_alloc(a.ctx, 2 * DATAGRAM + GRH, &mem), "memory");
    check(urnic_reg_mr(a.pd, mem, 2 * DATAGRAM + GRH, URNIC_ACCESS_LOCAL_WRITE, &a.mr), "register");
    a.out = mem;
    a.in = a.out + DATAGRAM;
    choose_gid(&a);
    make_qp(&a);
    post_receive(&a);

    if (argc - optind == 2)
        talk(&a, argv[optind], (uint32_t)strtoul(argv[optind + 1], NULL, 0));
    else
        serve(&a);

    urnic_destroy_qp(a.qp);
    urnic_dereg_mr(a.mr);
    urnic_free(a.ctx, mem);
    urnic_destroy_cq(a.cq);
    urnic_destroy_channel(a.channel);
    urnic_dealloc_pd(a.pd);
    urnic_close(a.ctx);
    return 0;
}
