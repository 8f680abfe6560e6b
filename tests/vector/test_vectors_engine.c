/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The negative vectors against an engine with a live queue pair: each is dropped, counted once by
 * the counter that the vector names, not answered, and harmless (VAL-01, VAL-06, SEC-02, SEC-32).
 */
#include <string.h>

#include "engine.h"
#include "step.h"
#include "unit.h"
#include "vectors.h"

enum { VECTOR_QPN = 0x123, MEM = 4096 };
#define VA 0x10000ull

struct bed {
    struct engine *e;
    struct cq *cq;
    struct qp *qp;
    uint32_t pd, lkey, rkey;
    unsigned nwc, nmad, nev;
    uint64_t before[ENGINE_COUNTER_MAX];
};

static uint8_t mem[MEM];

static bool on_cq(void *arg, void *cq_arg, const struct engine_wc *wc)
{
    struct bed *b = arg;
    (void)cq_arg, (void)wc;
    b->nwc++;
    return true;
}

static void on_event(void *arg, enum ib_event ev, void *obj)
{
    struct bed *b = arg;
    (void)ev, (void)obj;
    b->nev++;
}

static void on_gsi(void *arg, const struct wire_pkt *pkt, const uint8_t *payload, uint32_t len)
{
    struct bed *b = arg;
    (void)pkt, (void)payload;
    ck_assert_msg(len != 256, "GSI-02 a good MAD among the bad vectors");
    b->nmad++; /* its receiver refuses any other length, and counts that */
}

static unsigned send_all(struct bed *b)
{
    static uint8_t buf[8][WIRE_FRAME_MAX];
    static struct engine_slot slots[8];
    for (unsigned i = 0; i < 8; i++)
        slots[i] = (struct engine_slot){.buf = buf[i], .cap = sizeof(buf[i])};
    return step_tx(b->e, slots, 8, 0, NULL, NULL);
}

static void setup(struct bed *b)
{
    memset(b, 0, sizeof(*b));
    const struct engine_params p = {
        .hooks = {.cq_push = on_cq, .event = on_event, .gsi_rx = on_gsi},
        .hook_arg = b,
        .max_qp = 4,
        .mem = {.max_pd = 1, .max_mr = 1},
        .mac = {0x02, 0x00, 0x5E, 0x00, 0x53, 0x02},
        .mtu = 3,
    };
    const struct wire_addr local = wire_addr_v4(0xC0000202), peer = wire_addr_v4(0xC0000201);
    b->e = engine_create(&p, 0);
    ck_assert_int_eq(engine_addr_add(b->e, &local), 0);
    ck_assert_int_eq(mem_pd_alloc(engine_mem(b->e), &b->pd), 0);
    ck_assert_int_eq(engine_cq_create(b->e, NULL, &b->cq), 0);
    const struct mem_seg seg = {mem, 0, MEM};
    ck_assert_int_eq(mem_mr_reg(engine_mem(b->e), b->pd, VA, MEM, MEM_LOCAL_WRITE, &seg, 1, NULL,
                                &b->lkey, &b->rkey),
                     0);
    struct engine_qp_params q = {.type = QP_RC,
                                 .pd = b->pd,
                                 .send_cq = b->cq,
                                 .recv_cq = b->cq,
                                 .max_send_wr = 4,
                                 .max_recv_wr = 4,
                                 .max_send_sge = 1,
                                 .max_recv_sge = 1};
    ck_assert_int_eq(engine_qp_create(b->e, &q, &b->qp), 0);
    struct engine_qp_attr a = {
        .state = QPS_INIT,
        .av = {.sgid = local, .dgid = peer},
        .rq_psn = 0x1F4,
        .sq_psn = 2,
        .dest_qpn = 0xABC,
        .access_flags = MEM_REMOTE_ANY,
        .port = 1,
        .path_mtu = 3,
        .timeout = 14,
        .max_rd_atomic = 1,
        .max_dest_rd_atomic = 1,
    };
    ck_assert_int_eq(engine_qp_modify(b->e, b->qp, &a,
                                      QPA_STATE | QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS, 0),
                     0);
    a.state = QPS_RTR;
    ck_assert_int_eq(engine_qp_modify(b->e, b->qp, &a,
                                      QPA_STATE | QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN |
                                          QPA_RQ_PSN | QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER,
                                      0),
                     0);
    a.state = QPS_RTS;
    ck_assert_int_eq(engine_qp_modify(b->e, b->qp, &a,
                                      QPA_STATE | QPA_SQ_PSN | QPA_TIMEOUT | QPA_RETRY_CNT |
                                          QPA_RNR_RETRY | QPA_MAX_QP_RD_ATOMIC,
                                      0),
                     0);
    /* N18, N19: a SEND with PSN 2 is outstanding. */
    const struct engine_sge sge = {VA, 8, b->lkey};
    const struct engine_send_wr wr = {
        .opcode = WR_SEND, .flags = WR_F_SIGNALED, .nsge = 1, .sge = &sge};
    ck_assert_int_eq(engine_post_send(b->e, b->qp, &wr, 0), 0);
    ck_assert_uint_eq(send_all(b), 1);
    memcpy(b->before, engine_counters(b->e), sizeof(b->before));
}

/* The vector, addressed to our queue pair in the place of 0x123; a good iCRC stays good. */
static void readdress(struct bed *b, const struct vector *v, uint8_t *frame)
{
    struct wire_pkt p;
    memcpy(frame, v->frame, v->len);
    enum wire_verdict verdict = wire_parse(frame, v->len, WIRE_P_IP_CSUM_OK, &p);
    if ((verdict != WIRE_OK && verdict != WIRE_BAD_AETH) || p.dqpn != VECTOR_QPN)
        return;
    uint32_t qpn = engine_qp_num(b->qp);
    frame[p.bth_off + 5] = (uint8_t)(qpn >> 16);
    frame[p.bth_off + 6] = (uint8_t)(qpn >> 8);
    frame[p.bth_off + 7] = (uint8_t)qpn;
    wire_icrc_seal(frame, p.icrc_off + WIRE_ICRC_LEN, p.ip_off, p.bth_off);
}

/* Counters that may move although the packet is dropped. */
static bool is_traffic(unsigned c)
{
    return c == ENGINE_C_rx_packets || c == ENGINE_C_rx_bytes;
}

static void check_counters(struct bed *b, const struct vector *v, const char *name)
{
    const uint64_t *now = engine_counters(b->e);
    for (unsigned c = 0; c < ENGINE_COUNTER_MAX; c++) {
        uint64_t want = !strcmp(engine_counter_names[c], name);
        if (!is_traffic(c))
            ck_assert_msg(now[c] - b->before[c] == want, "VAL-06 %s %s: %s moved by %llu", v->id,
                          v->name, engine_counter_names[c],
                          (unsigned long long)(now[c] - b->before[c]));
    }
}

START_TEST(val_06_negative_vectors)
{
    size_t n;
    const struct vector *all = vectors_all(&n);
    unsigned tried = 0;
    for (size_t i = 0; i < n; i++) {
        const struct vector *v = &all[i];
        static uint8_t frame[VECTOR_FRAME_MAX];
        struct bed b;
        if (strcmp(v->kind, "negative") != 0)
            continue;
        tried++;
        setup(&b);
        readdress(&b, v, frame);
        ck_assert_msg(!strncmp(v->expect, "drop, ", 6), "%s", v->id);
        char name[64];
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(v->expect + 6, " ,;("), v->expect + 6);
        struct engine_frame f = {.data = frame, .len = (uint32_t)v->len};
        struct engine_copy copies[ENGINE_FRAME_COPIES];
        unsigned ncopies;
        ck_assert_uint_eq(engine_rx(b.e, &f, 1, 0, copies, ENGINE_FRAME_COPIES, &ncopies), 1);
        bool cm = !strncmp(name, "cm_", 3);
        ck_assert_msg(b.nmad == cm, "GSI-02 %s: MADs for the CM: %u", v->id, b.nmad);
        check_counters(&b, v, cm ? "" : name);
        ck_assert_msg(ncopies == 0 && send_all(&b) == 0, "SEC-02 %s has an effect", v->id);
        ck_assert_msg(b.nwc == 0 && b.nev == 0, "SEC-02 %s completes or raises something", v->id);
        struct engine_qp_info info;
        engine_qp_info(b.e, b.qp, &info);
        ck_assert_msg(info.state == QPS_RTS && info.epsn == 0x1F4 && info.una_psn == 2,
                      "SEC-32 %s changed the queue pair", v->id);
        engine_qp_destroy(b.e, b.qp);
        engine_cq_destroy(b.e, b.cq);
        engine_destroy(b.e);
    }
    ck_assert_msg(tried == 19, "%u negative vectors", tried);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("vectors against an engine");
    TCase *t = tcase_create("negative");
    tcase_add_test(t, val_06_negative_vectors);
    suite_add_tcase(s, t);
    return unit_run(s);
}
