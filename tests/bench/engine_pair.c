/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Making and connecting both sides.
 */
#include "engine_pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool cq_push(void *arg, void *cq_arg, const struct engine_wc *wc)
{
    (void)arg;
    (void)cq_arg;
    if (wc->status != WC_SUCCESS) {
        fprintf(stderr, "bench: completion with %s\n", engine_status_name(wc->status));
        exit(1);
    }
    return true;
}

static void event(void *arg, enum ib_event ev, void *obj)
{
    (void)arg;
    (void)ev;
    (void)obj;
}

static void gsi_rx(void *arg, const struct wire_pkt *pkt, const uint8_t *payload, uint32_t len)
{
    (void)arg;
    (void)pkt;
    (void)payload;
    (void)len;
}

void check(int rc, const char *what)
{
    if (rc < 0) {
        fprintf(stderr, "bench: %s: %s\n", what, strerror(-rc));
        exit(1);
    }
}

void side_create(struct side *s, unsigned n, const char *port, uint64_t now)
{
    struct engine_params p = {
        .hooks = {.cq_push = cq_push, .event = event, .gsi_rx = gsi_rx},
        .key = {n + 1, 77},
        .max_qp = 16,
        .max_cq = 16,
        .max_srq = 1,
        .mem = {.max_pd = 4, .max_mr = 4, .max_mw = 4, .key = {n + 5, 3}},
        .mac = {2, 0, 0, 0, 0, (uint8_t)(n + 1)},
        .mtu = 5,
    };
    struct io_open_params io = {.frame_max = 4300};
    char err[256];
    uint32_t pd, lkey;
    int rc = io_open(port, &io, &s->io, err, sizeof(err));
    if (rc < 0)
        fprintf(stderr, "bench: %s\n", err);
    check(rc, "opening the link");
    s->e = engine_create(&p, now);
    s->addr = wire_addr_v4(0x0A000001u + n);
    check(engine_addr_add(s->e, &s->addr), "address");
    check(engine_cq_create(s->e, NULL, &s->cq), "completion queue");
    check(mem_pd_alloc(engine_mem(s->e), &pd), "protection domain");
    struct mem_seg seg = {s->buf, 0, BUF};
    check(mem_mr_reg(engine_mem(s->e), pd, (uintptr_t)s->buf, BUF,
                     MEM_LOCAL_WRITE | MEM_REMOTE_WRITE, &seg, 1, NULL, &lkey, &s->rkey),
          "region");
    struct engine_qp_params q = {
        .type = QP_RC,
        .pd = pd,
        .send_cq = s->cq,
        .recv_cq = s->cq,
        .max_send_wr = SIDE_DEPTH,
        .max_recv_wr = 1,
        .max_send_sge = 1,
        .max_recv_sge = 1,
        .max_inline = 64,
    };
    check(engine_qp_create(s->e, &q, &s->qp), "queue pair");
    s->qpn = engine_qp_num(s->qp);
}

void side_connect(struct side *s, const struct side *peer, unsigned n, uint64_t now)
{
    struct engine_qp_attr a = {
        .state = QPS_INIT,
        .access_flags = MEM_REMOTE_WRITE,
        .port = 1,
        .path_mtu = 5,
        .dest_qpn = peer->qpn,
        .max_rd_atomic = 1,
        .max_dest_rd_atomic = 1,
        .timeout = 14,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .av = {.sgid = s->addr, .dgid = peer->addr, .dmac = {2, 0, 0, 0, 0, (uint8_t)(2 - n)}},
    };
    check(engine_qp_modify(s->e, s->qp, &a,
                           QPA_STATE | QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS, now),
          "to INIT");
    a.state = QPS_RTR;
    check(engine_qp_modify(s->e, s->qp, &a,
                           QPA_STATE | QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN |
                               QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER,
                           now),
          "to RTR");
    a.state = QPS_RTS;
    check(engine_qp_modify(s->e, s->qp, &a,
                           QPA_STATE | QPA_SQ_PSN | QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY |
                               QPA_MAX_QP_RD_ATOMIC,
                           now),
          "to RTS");
}
