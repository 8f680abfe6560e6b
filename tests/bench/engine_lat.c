/* SPDX-License-Identifier: BSD-3-Clause
 *
 * engine_lat: half round trip of an 8-octet WRITE between two engines in one process, over
 * drivers/mem, on the real clock. What the protocol costs without processes, doorbells and threads.
 *
 * Each side posts an inline WRITE when it sees the other's arrive in its memory. Prints one JSON
 * object with the median and percentiles in ns.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "engine.h"
#include "io.h"

#define ROUNDS 200000u
#define WARM   20000u
#define BUF    4096u

struct side {
    struct engine *e;
    struct io_port *io;
    struct qp *qp;
    struct cq *cq;
    uint8_t buf[BUF];
    uint32_t rkey;
    struct wire_addr addr;
    uint32_t qpn;
};

static bool cq_push(void *arg, void *cq_arg, const struct engine_wc *wc)
{
    (void)arg;
    (void)cq_arg;
    if (wc->status != WC_SUCCESS) {
        fprintf(stderr, "engine_lat: completion with %s\n", engine_status_name(wc->status));
        exit(1);
    }
    return true;
}

static void event(void *arg, enum engine_event ev, void *obj)
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

static void check(int rc, const char *what)
{
    if (rc < 0) {
        fprintf(stderr, "engine_lat: %s: %s\n", what, strerror(-rc));
        exit(1);
    }
}

static void side_create(struct side *s, unsigned n, uint64_t now)
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
        .frame_max = 4300,
    };
    struct io_open_params io = {.frame_max = 4300};
    char err[256];
    uint32_t pd, lkey;
    int rc = io_open("mem:engine_lat", &io, &s->io, err, sizeof err);
    if (rc < 0)
        fprintf(stderr, "engine_lat: %s\n", err);
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
        .max_send_wr = 64,
        .max_recv_wr = 1,
        .max_send_sge = 1,
        .max_recv_sge = 1,
        .max_inline = 64,
    };
    check(engine_qp_create(s->e, &q, &s->qp), "queue pair");
    s->qpn = engine_qp_num(s->qp);
}

static void side_connect(struct side *s, const struct side *peer, unsigned n, uint64_t now)
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

static void send_round(struct side *s, uint64_t now)
{
    struct engine_slot slot[8];
    struct io_slot room[8];
    if (!engine_tx_ready(s->e))
        return;
    unsigned n = s->io->ops->tx_reserve(s->io, room, 8, now);
    for (unsigned i = 0; i < n; i++) {
        slot[i].buf = room[i].data;
        slot[i].cap = room[i].cap;
    }
    unsigned m = engine_tx(s->e, slot, n, now);
    for (unsigned i = 0; i < m; i++)
        slot[i].status = 0; /* all inline: nothing to gather */
    engine_sent(s->e, slot, m, now);
    for (unsigned i = 0; i < n; i++) {
        room[i].len = i < m ? slot[i].len : 0;
        if (room[i].len)
            wire_icrc_seal(room[i].data, room[i].len, slot[i].ip_off, slot[i].bth_off);
    }
    s->io->ops->tx_commit(s->io, room, n, now);
}

static void receive_round(struct side *s, uint64_t now)
{
    struct io_frame in[8];
    struct engine_frame frame[8];
    static struct engine_copy copy[8 * ENGINE_FRAME_COPIES];
    struct engine_result result[8 * ENGINE_FRAME_COPIES];
    unsigned ncopies;
    unsigned n = s->io->ops->rx_peek(s->io, in, 8, now);
    if (!n)
        return;
    for (unsigned i = 0; i < n; i++)
        frame[i] = (struct engine_frame){.data = in[i].data, .len = in[i].len};
    engine_rx(s->e, frame, n, now, copy, 8 * ENGINE_FRAME_COPIES, &ncopies);
    for (unsigned i = 0; i < ncopies; i++) {
        memcpy((uint8_t *)copy[i].dst.obj + copy[i].dst.off, copy[i].src, copy[i].len);
        result[i] = (struct engine_result){.token = copy[i].token};
    }
    engine_copied(s->e, result, ncopies, now);
    s->io->ops->rx_release(s->io, n);
}

static void ping(struct side *s, const struct side *peer, uint64_t value, uint64_t now)
{
    struct engine_send_wr wr = {
        .opcode = WR_RDMA_WRITE,
        .flags = WR_F_INLINE | (value % 16 == 0 ? WR_F_SIGNALED : 0),
        .inline_len = 8,
        .inline_data = (const uint8_t *)&value,
        .remote_va = (uintptr_t)peer->buf,
        .rkey = peer->rkey,
    };
    check(engine_post_send(s->e, s->qp, &wr, now), "posting");
}

int main(void)
{
    static struct side side[2];
    static uint32_t sample[ROUNDS];
    uint64_t now = clock_ns();
    for (unsigned i = 0; i < 2; i++)
        side_create(&side[i], i, now);
    for (unsigned i = 0; i < 2; i++)
        side_connect(&side[i], &side[1 - i], i, now);

    for (unsigned r = 0; r < WARM + ROUNDS; r++) {
        uint64_t begun = clock_ns();
        for (unsigned i = 0; i < 2; i++) {
            struct side *from = &side[i], *to = &side[1 - i];
            uint64_t value = (uint64_t)r * 2 + i + 1, seen;
            ping(from, to, value, begun);
            unsigned spins = 0;
            do {
                now = clock_ns();
                send_round(from, now);
                receive_round(to, now);
                memcpy(&seen, to->buf, 8);
                if (++spins > 1000000) {
                    fprintf(stderr, "engine_lat: round %u never arrived\n", r);
                    return 1;
                }
            } while (seen != value);
            /* the ACK, as a worker's next rounds would carry it */
            send_round(to, now);
            receive_round(from, now);
        }
        uint64_t ended = clock_ns();
        for (unsigned i = 0; i < 2; i++)
            if (engine_deadline(side[i].e) <= ended)
                engine_expire(side[i].e, ended);
        if (r >= WARM)
            sample[r - WARM] = (uint32_t)((ended - begun) / 2);
    }
    qsort(sample, ROUNDS, sizeof sample[0], by_value);
    printf("{\"name\":\"engine_lat\",\"value\":%u,\"unit\":\"ns\",\"min\":%u,\"p99\":%u,"
           "\"qp_state_octets\":%zu}\n",
           sample[ROUNDS / 2], sample[0], sample[ROUNDS * 99ull / 100], engine_qp_state_size());
    for (unsigned i = 0; i < 2; i++) {
        engine_destroy(side[i].e);
        side[i].io->ops->close(side[i].io);
    }
    return 0;
}
