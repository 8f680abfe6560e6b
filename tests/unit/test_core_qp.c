/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cc_of.h"
#include "core_rig.h"
#include "recorder.h"
#include "refusal.h"

/* Memory that runs out: the linker sends the engine's calls here (no_memory_dep). */
static unsigned fail_alloc; /* the n-th allocation from now fails, 1 = the next; 0 = none */

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
    return fail_alloc && !--fail_alloc ? NULL : __real_calloc(n, size);
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
    return fail_alloc && !--fail_alloc ? NULL : __real_aligned_alloc(align, size);
}

/* QP-01 as the catalogue prints it, one line per transition and type, written down a second time:
 * the engine's table must agree with this one for every pair of states and every single attribute.
 */
static const struct row {
    enum qp_type type;
    enum qp_state from, to;
    unsigned required, optional;
} rows[] = {
    {QP_RC, QPS_RESET, QPS_INIT, QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS, 0},
    {QP_UC, QPS_RESET, QPS_INIT, QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS, 0},
    {QP_UD, QPS_RESET, QPS_INIT, QPA_PKEY_INDEX | QPA_PORT | QPA_QKEY, 0},
    {QP_RC, QPS_INIT, QPS_INIT, 0, QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS},
    {QP_UC, QPS_INIT, QPS_INIT, 0, QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS},
    {QP_UD, QPS_INIT, QPS_INIT, 0, QPA_PKEY_INDEX | QPA_PORT | QPA_QKEY},
    {QP_RC, QPS_INIT, QPS_RTR,
     QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN | QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER,
     QPA_ACCESS_FLAGS | QPA_PKEY_INDEX},
    {QP_UC, QPS_INIT, QPS_RTR, QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN,
     QPA_ACCESS_FLAGS | QPA_PKEY_INDEX},
    {QP_UD, QPS_INIT, QPS_RTR, 0, QPA_PKEY_INDEX | QPA_QKEY},
    {QP_RC, QPS_RTR, QPS_RTS,
     QPA_SQ_PSN | QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_MAX_QP_RD_ATOMIC,
     QPA_CUR_STATE | QPA_ACCESS_FLAGS | QPA_MIN_RNR_TIMER | QPA_RATE_LIMIT},
    {QP_UC, QPS_RTR, QPS_RTS, QPA_SQ_PSN, QPA_CUR_STATE | QPA_ACCESS_FLAGS | QPA_RATE_LIMIT},
    {QP_UD, QPS_RTR, QPS_RTS, QPA_SQ_PSN, QPA_CUR_STATE | QPA_QKEY | QPA_RATE_LIMIT},
    {QP_RC, QPS_RTS, QPS_RTS, 0,
     QPA_CUR_STATE | QPA_ACCESS_FLAGS | QPA_MIN_RNR_TIMER | QPA_RATE_LIMIT},
    {QP_UC, QPS_RTS, QPS_RTS, 0, QPA_CUR_STATE | QPA_ACCESS_FLAGS | QPA_RATE_LIMIT},
    {QP_UD, QPS_RTS, QPS_RTS, 0, QPA_CUR_STATE | QPA_QKEY | QPA_RATE_LIMIT},
    {QP_RC, QPS_RTS, QPS_SQD, 0, QPA_EN_SQD_ASYNC_NOTIFY},
    {QP_UC, QPS_RTS, QPS_SQD, 0, QPA_EN_SQD_ASYNC_NOTIFY},
    {QP_UD, QPS_RTS, QPS_SQD, 0, QPA_EN_SQD_ASYNC_NOTIFY},
    {QP_RC, QPS_SQD, QPS_RTS, 0, QPA_CUR_STATE | QPA_ACCESS_FLAGS | QPA_MIN_RNR_TIMER},
    {QP_UC, QPS_SQD, QPS_RTS, 0, QPA_CUR_STATE | QPA_ACCESS_FLAGS},
    {QP_UD, QPS_SQD, QPS_RTS, 0, QPA_CUR_STATE | QPA_QKEY},
    {QP_RC, QPS_SQD, QPS_SQD, 0,
     QPA_PORT | QPA_AV | QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_MAX_QP_RD_ATOMIC |
         QPA_MAX_DEST_RD_ATOMIC | QPA_ACCESS_FLAGS | QPA_PKEY_INDEX | QPA_MIN_RNR_TIMER},
    {QP_UC, QPS_SQD, QPS_SQD, 0, QPA_AV | QPA_ACCESS_FLAGS | QPA_PKEY_INDEX},
    {QP_UD, QPS_SQD, QPS_SQD, 0, QPA_PKEY_INDEX | QPA_QKEY},
    {QP_UC, QPS_SQE, QPS_RTS, 0, QPA_CUR_STATE | QPA_ACCESS_FLAGS},
    {QP_UD, QPS_SQE, QPS_RTS, 0, QPA_CUR_STATE | QPA_QKEY},
};

static const struct row *find_row(enum qp_type type, unsigned from, unsigned to)
{
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].type == type && rows[i].from == from && rows[i].to == to)
            return &rows[i];
    return NULL;
}

/* A queue pair in `state`. */
static struct rig *in_state(enum qp_type type, enum qp_state state, struct rig_opts *o)
{
    *o = (struct rig_opts){.type = type, .stay = true};
    struct rig *r = rig_new(o);
    struct engine_qp_attr a = {.state = state};
    if (state == QPS_RESET)
        return r;
    rig_connect(r, r->qp, o, state < QPS_RTS ? state : QPS_RTS);
    if (state == QPS_SQD || state == QPS_ERR)
        ck_assert_int_eq(engine_qp_modify(r->e, r->qp, &a, QPA_STATE, r->now), 0);
    if (state == QPS_SQE) {
        rig_post(r, (enum wr_opcode)99, 1, 8, 0);
        rig_tx(r, 0);
        rig_clear(r);
    }
    ck_assert_uint_eq(rig_state(r), state);
    return r;
}

static int try_modify(enum qp_type type, enum qp_state from, enum qp_state to, unsigned mask)
{
    struct rig_opts o;
    struct rig *r = in_state(type, from, &o);
    struct engine_qp_attr a = rig_attr(r, &o), before, after;
    a.state = to;
    a.cur_state = from;
    memset(&before, 0, sizeof(before));
    memset(&after, 0, sizeof(after));
    engine_qp_query(r->qp, &before, NULL);
    int err = engine_qp_modify(r->e, r->qp, &a, QPA_STATE | mask, r->now);
    engine_qp_query(r->qp, &after, NULL);
    if (err)
        ck_assert(!memcmp(&before, &after, sizeof(before))); /* all or nothing */
    else
        ck_assert_uint_eq(after.state, to);
    rig_free(r);
    return err;
}

START_TEST(qp_01_table)
{
    static const enum qp_type types[] = {QP_RC, QP_UC, QP_UD};
    for (unsigned t = 0; t < 3; t++) {
        for (unsigned from = 0; from <= QPS_ERR; from++) {
            if (from == QPS_SQE && types[t] == QP_RC)
                continue; /* QP-09: never */
            for (unsigned to = 0; to <= QPS_ERR; to++) {
                const struct row *row = find_row(types[t], from, to);
                bool plain = to == QPS_RESET || (to == QPS_ERR && from != QPS_RESET);
                unsigned required = row ? row->required : 0, optional = row ? row->optional : 0;
                int err = try_modify(types[t], from, to, required);
                ck_assert_msg((err == 0) == (row || plain), "QP-01 %u -> %u type %u: %d", from, to,
                              types[t], err);
                if (!row && !plain)
                    continue;
                for (unsigned bit = 1; bit <= 25; bit++) {
                    unsigned attr = 1u << bit;
                    if (attr == QPA_ALT_PATH || attr == QPA_PATH_MIG_STATE)
                        continue; /* QP-17 */
                    err = try_modify(types[t], from, to, required ^ attr);
                    bool good = !(required & attr) && optional & attr;
                    if (attr == QPA_CUR_STATE && (from < QPS_RTR || from == QPS_ERR))
                        good = false;
                    ck_assert_msg((err == 0) == good, "QP-01 %u -> %u type %u attribute %u: %d",
                                  from, to, types[t], bit, err);
                }
            }
        }
    }
}
END_TEST

/* QP-17 */
START_TEST(qp_17_no_alternate_path)
{
    unsigned rtr = QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN;
    ck_assert_int_eq(try_modify(QP_UC, QPS_INIT, QPS_RTR, rtr | QPA_ALT_PATH), -EOPNOTSUPP);
    ck_assert_int_eq(try_modify(QP_RC, QPS_RTS, QPS_RTS, QPA_PATH_MIG_STATE), -EOPNOTSUPP);
    ck_assert_int_eq(try_modify(QP_RC, QPS_RESET, QPS_INIT, QPA_ALT_PATH), -EINVAL);
}
END_TEST

/* QP-02, QP-03: one bad value at a time, on the way to RTS. */
START_TEST(qp_03_values)
{
    unsigned rtr = QPA_STATE | QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN |
                   QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER | QPA_PKEY_INDEX;
    unsigned rts = QPA_STATE | QPA_SQ_PSN | QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY |
                   QPA_MAX_QP_RD_ATOMIC | QPA_CUR_STATE;
    for (unsigned i = 0; i <= 16; i++) {
        struct rig_opts o;
        bool up = i >= 9; /* a value of RTR -> RTS */
        struct rig *r = in_state(QP_RC, up ? QPS_RTR : QPS_INIT, &o);
        struct engine_qp_attr a = rig_attr(r, &o);
        a.state = up ? QPS_RTS : QPS_RTR;
        a.cur_state = QPS_RTR;
        switch (i) {
        case 0:
            a.path_mtu = 0;
            break;
        case 1:
            a.path_mtu = 6;
            break;
        case 2:
            a.min_rnr_timer = 32;
            break;
        case 3:
            a.max_dest_rd_atomic = 255;
            break;
        case 4:
            a.rq_psn = 1 << 24;
            break;
        case 5:
            a.dest_qpn = 1 << 24;
            break;
        case 6:
            a.pkey_index = 3;
            break;
        case 7:
            a.av.sgid = r->rip;
            break; /* not ours */
        case 8:
            wire_addr_parse("fd00::9", &a.av.dgid);
            break; /* GID-02 */
        case 9:
            a.timeout = 32;
            break;
        case 10:
            a.retry_cnt = 8;
            break;
        case 11:
            a.rnr_retry = 8;
            break;
        case 12:
            a.max_rd_atomic = 255;
            break;
        case 13:
            a.sq_psn = 1 << 24;
            break;
        case 14:
            a.cur_state = QPS_RTS;
            break; /* QP-02 */
        case 15:
            a.cur_state = QPS_INIT;
            break;
        case 16:
            break; /* nothing wrong */
        }
        int err = engine_qp_modify(r->e, r->qp, &a, up ? rts : rtr, r->now);
        ck_assert_msg(err == (i == 16 ? 0 : -EINVAL), "QP-03 value %u: %d", i, err);
        rig_free(r);
    }
}
END_TEST

/* QP-05 the states in which posts are allowed. */
START_TEST(qp_05_posting)
{
    static const int send[] = {-EINVAL, -EINVAL, -EINVAL, 0, 0, 0, 0};
    for (unsigned s = 0; s <= QPS_ERR; s++) {
        struct rig_opts o;
        struct rig *r = in_state(s == QPS_SQE ? QP_UC : QP_RC, (enum qp_state)s, &o);
        ck_assert_int_eq(rig_post(r, WR_SEND, 7, 8, 0), send[s]);
        bool flushed = s == QPS_SQE || s == QPS_ERR;
        ck_assert_uint_eq(r->nwc, flushed);
        if (flushed) { /* QP-13: each once */
            ck_assert_uint_eq(r->wc[0].wr_id, 7);
            ck_assert_uint_eq(r->wc[0].status, WC_WR_FLUSH_ERR);
            rig_post(r, WR_SEND, 8, 8, 0);
            ck_assert_uint_eq(r->nwc, 2);
            ck_assert_uint_eq(r->wc[1].wr_id, 8);
        }
        ck_assert_uint_eq(rig_tx(r, 0), s == QPS_RTS);
        rig_free(r);
    }
}
END_TEST

/* QP-10, QP-11, QP-12: ERR by the owner: send queue flushed in order, unsignalled too, silence. */
START_TEST(qp_12_flush)
{
    struct rig *r = rig_new(NULL);
    for (unsigned i = 0; i < 20; i++)
        rig_post(r, WR_SEND, i, 2000, i & 1 ? WR_F_SIGNALED : 0);
    rig_tx(r, 5);
    rig_ack(r, rig_psn(RIG_PSN, 1));
    rig_clear(r);
    struct engine_qp_attr a = {.state = QPS_ERR};
    ck_assert_int_eq(engine_qp_modify(r->e, r->qp, &a, QPA_STATE, r->now), 0);
    ck_assert_uint_eq(r->nwc, 19);
    for (unsigned i = 0; i < 19; i++) {
        ck_assert_uint_eq(r->wc[i].wr_id, i + 1);
        ck_assert_uint_eq(r->wc[i].status, WC_WR_FLUSH_ERR);
        ck_assert_uint_eq(r->wc[i].qpn, engine_qp_num(r->qp));
    }
    ck_assert_uint_eq(rig_tx(r, 0), 0);
    rig_pass(r, 100 * RIG_T);
    ck_assert_uint_eq(rig_tx(r, 0), 0);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_local_ack_timeout_err), 0);
    rig_ack(r, rig_psn(RIG_PSN, 3)); /* VAL-04 */
    ck_assert_uint_eq(r->last.drop, ENGINE_C_rx_bad_qp_state);
    a.state = QPS_RTS; /* QP-10: only RESET leads out */
    ck_assert_int_eq(engine_qp_modify(r->e, r->qp, &a, QPA_STATE, r->now), -EINVAL);
    ck_assert_uint_eq(r->nwc, 19);
    rig_free(r);
}
END_TEST

/* QP-04, QP-06: RESET forgets all without completion; the queue pair works again from new PSNs. */
START_TEST(qp_04_reset)
{
    struct rig *r = rig_new(NULL);
    rig_post(r, WR_RDMA_READ, 1, 2000, WR_F_SIGNALED);
    rig_post(r, WR_SEND, 2, 8, WR_F_SIGNALED);
    rig_tx(r, 0);
    r->late = true;
    rig_read_resp(r, WIRE_READ_RESP_FIRST, RIG_PSN, 1024, 1);
    struct engine_qp_attr a = {.state = QPS_RESET};
    ck_assert_int_eq(engine_qp_modify(r->e, r->qp, &a, QPA_STATE, r->now), 0);
    rig_clear(r);
    rig_connect(r, r->qp, &(struct rig_opts){.sq_psn = 5}, QPS_RTS);
    rig_post(r, WR_SEND, 3, 8, WR_F_SIGNALED);
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    ck_assert_uint_eq(r->sent[0].psn, 5);
    rig_copy(r, 1, -14); /* from before the reset: has no effect now */
    ck_assert_uint_eq(rig_state(r), QPS_RTS);
    ck_assert_uint_eq(r->nwc, 0);
    rig_ack(r, 5);
    ck_assert_uint_eq(r->nwc, 1);
    ck_assert_uint_eq(r->wc[0].wr_id, 3);
    rig_free(r);
}
END_TEST

/* QP-15, QP-16, QP-03 SQ_PSN etc: a query returns the set and granted values. */
START_TEST(qp_15_query)
{
    struct rig *r = rig_new(NULL);
    struct engine_qp_attr a, want = rig_attr(r, &(struct rig_opts){0});
    struct engine_qp_params caps;
    engine_qp_query(r->qp, &a, &caps);
    ck_assert_uint_eq(a.state, QPS_RTS);
    ck_assert_uint_eq(a.dest_qpn, want.dest_qpn);
    ck_assert_uint_eq(a.sq_psn, want.sq_psn);
    ck_assert_uint_eq(a.rq_psn, want.rq_psn);
    ck_assert_uint_eq(a.timeout, want.timeout);
    ck_assert_uint_eq(a.retry_cnt, want.retry_cnt);
    ck_assert_uint_eq(a.max_rd_atomic, want.max_rd_atomic);
    ck_assert_uint_eq(a.path_mtu, want.path_mtu);
    ck_assert(!memcmp(&a.av.dgid, &want.av.dgid, 16));
    ck_assert_uint_ge(caps.max_send_wr, 1024);
    ck_assert_uint_ge(caps.max_inline, 64);
    ck_assert_uint_ge(caps.max_send_sge, 4);
    ck_assert_uint_eq(engine_sq_room(r->qp), caps.max_send_wr);
    ck_assert(!a.sq_draining);
    rig_post(r, WR_SEND, 1, 8, 0);
    rig_tx(r, 0);
    engine_qp_query(r->qp, &a, NULL);
    ck_assert_msg(!a.sq_draining, "only in SQD");
    rig_free(r);
}
END_TEST

/* CQ-09, limits, QP-14 quarantine: a number doesn't come back soon. */
START_TEST(qp_14_numbers)
{
    struct rig *r = rig_new(NULL);
    ck_assert_int_eq(engine_cq_destroy(r->e, r->cq), -EBUSY);
    struct engine_qp_params p = {
        .type = QP_RC, .pd = r->pd, .send_cq = r->cq, .recv_cq = r->cq, .max_send_wr = 4};
    uint8_t *seen = calloc(1, 1 << 24);
    for (unsigned i = 0; i < 5000; i++) {
        struct qp *qp;
        ck_assert_int_eq(engine_qp_create(r->e, &p, &qp), 0);
        uint32_t n = engine_qp_num(qp);
        ck_assert(n > 1 && n < 0xFFFFFF && !seen[n]);
        seen[n] = 1;
        ck_assert_ptr_eq(engine_qp_find(r->e, n), qp);
        engine_qp_destroy(r->e, qp);
        ck_assert_ptr_null(engine_qp_find(r->e, n));
    }
    free(seen);
    struct qp *qp;
    for (unsigned i = 0; i < 63; i++)
        ck_assert_int_eq(engine_qp_create(r->e, &p, &qp), 0);
    ck_assert_int_eq(engine_qp_create(r->e, &p, &qp), -ENOSPC);
    p.pd = 999;
    engine_qp_destroy(r->e, qp);
    ck_assert_int_eq(engine_qp_create(r->e, &p, &qp), -EINVAL);
    p.pd = r->pd;
    p.max_send_sge = 17;
    ck_assert_int_eq(engine_qp_create(r->e, &p, &qp), -EINVAL);
    ck_assert_uint_le(engine_qp_state_size(), 1024);
    rig_free(r);
}
END_TEST

/* SEC-08 CM-26: with as many queue pairs as a device of the daemon may have, and 10,000 connections
 * a second that come and go one after the other, a number doesn't come back within ten seconds. */
START_TEST(sec_08_numbers_of_a_large_device)
{
    struct rig *r = rig_new(&(struct rig_opts){.max_qp = 65536});
    struct engine_qp_params p = {
        .type = QP_RC, .pd = r->pd, .send_cq = r->cq, .recv_cq = r->cq, .max_send_wr = 4};
    uint8_t *seen = calloc(1, 1 << 24);
    unsigned again = 0;
    for (unsigned i = 0; i < 100000; i++) {
        struct qp *qp;
        ck_assert_int_eq(engine_qp_create(r->e, &p, &qp), 0);
        again += seen[engine_qp_num(qp)]++;
        engine_qp_destroy(r->e, qp);
    }
    ck_assert_uint_eq(again, 0);
    free(seen);
    rig_free(r);
}
END_TEST

/* An engine of a program: numbers of a block rest for a minute, or else it gets another block. */
START_TEST(sec_08_numbers_of_a_program)
{
    const uint64_t key[2] = {7, 8};
    struct rig *r = rig_new(&(struct rig_opts){.block = 1 + 1023, .max_qp = 64});
    struct engine_qp_params p = {
        .type = QP_RC, .pd = r->pd, .send_cq = r->cq, .recv_cq = r->cq, .max_send_wr = 4};
    uint8_t *seen = calloc(1, 1 << 24);
    struct qp *stays, *qp;
    ck_assert_int_eq(engine_qp_create(r->e, &p, &stays), 0);
    seen[engine_qp_num(stays)] = 1;
    for (unsigned block = 0; block < ENGINE_BLOCKS; block++) {
        ck_assert(!engine_wants_block(r->e));
        unsigned n = 0; /* of the first block one is none, and two stay */
        while (!engine_wants_block(r->e) && n < 9000) {
            ck_assert_int_eq(engine_qp_create(r->e, &p, &qp), 0);
            uint32_t number = engine_qp_num(qp);
            n++;
            if (block == ENGINE_BLOCKS - 1 && seen[number])
                break;
            ck_assert_uint_eq(number >> 13, 1024 | (block ? block : 1023));
            ck_assert_uint_eq(seen[number]++, 0);
            ck_assert_ptr_eq(engine_qp_find(r->e, number), qp);
            engine_qp_destroy(r->e, qp);
            ck_assert_ptr_null(engine_qp_find(r->e, number));
        }
        ck_assert_uint_ge(n, 8188);
        ck_assert_uint_le(n, 8193);
        if (block + 1 < ENGINE_BLOCKS)
            ck_assert_int_eq(engine_add_block(r->e, block + 1, key), 0);
    }
    ck_assert_int_eq(engine_add_block(r->e, 99, key), -ENOSPC);
    ck_assert_ptr_eq(engine_qp_find(r->e, engine_qp_num(stays)), stays);
    free(seen);
    rig_free(r);
}
END_TEST

static void set_cc(struct rig *r, const char *spec)
{
    const struct cc_conf conf = cc_of(spec);
    ck_assert_int_eq(engine_set_cc(r->e, &conf, r->now), 0);
}

/* Make each allocation of a change fail in turn: the change fails, and nothing has changed. Then
 * let it succeed. Returns the number of failures. */
static unsigned modify_without_memory(struct rig *r, const struct engine_qp_attr *a, unsigned mask)
{
    struct engine_qp_attr before, after;
    struct engine_qp_info info, info_after;
    unsigned n = 0;
    int err;
    do {
        memset(&before, 0, sizeof(before));
        memset(&after, 0, sizeof(after));
        engine_qp_query(r->qp, &before, NULL);
        engine_qp_info(r->e, r->qp, &info);
        fail_alloc = ++n;
        err = engine_qp_modify(r->e, r->qp, a, mask, r->now);
        bool failed = !fail_alloc;
        fail_alloc = 0;
        ck_assert_int_eq(err, failed ? -ENOMEM : 0);
        engine_qp_query(r->qp, &after, NULL);
        engine_qp_info(r->e, r->qp, &info_after);
        if (!err)
            break;
        ck_assert_msg(!memcmp(&before, &after, sizeof(before)), "QP-01: failure %u left traces", n);
        ck_assert_uint_eq(info.recovery, info_after.recovery);
        ck_assert_uint_eq(info.epsn, info_after.epsn);
        ck_assert_uint_eq(info.cc_rate, info_after.cc_rate);
        rig_tx(r, 0);
    } while (n < 10);
    ck_assert_int_eq(err, 0);
    return n - 1;
}

/* QP-01: all or nothing, also when memory runs out in the middle of it. */
START_TEST(qp_01_no_memory_for_rtr)
{
    struct rig_opts o = {.stay = true, .credits = true};
    struct rig *r = rig_new(&o);
    set_cc(r, "fixed,rate=1G");
    rig_connect(r, r->qp, &o, QPS_INIT);
    struct engine_qp_attr a = rig_attr(r, &o);
    a.state = QPS_RTR;
    a.recovery = RECOVER_SR;
    unsigned n = modify_without_memory(r, &a,
                                       QPA_STATE | QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN |
                                           QPA_RQ_PSN | QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER);
    ck_assert_uint_eq(n, 3); /* READs, selective repeat, the limiter */
    engine_qp_query(r->qp, &a, NULL);
    ck_assert(a.e2e_credits && a.recovery == RECOVER_SR);
    rig_free(r);
}
END_TEST

/* QP-01: the same in SQD, where another priority gives the queue pair a congestion control of its
 * own. */
START_TEST(qp_01_no_memory_in_sqd)
{
    struct rig_opts o = {0};
    struct rig *r = rig_new(&o);
    struct engine_qp_attr a = {.state = QPS_SQD};
    set_cc(r, "dcqcn,prios=2"); /* the queue pair's is 0 */
    ck_assert_int_eq(engine_qp_modify(r->e, r->qp, &a, QPA_STATE, r->now), 0);
    a = rig_attr(r, &o);
    a.av.sl = 1;
    a.max_dest_rd_atomic = 16;
    ck_assert_uint_eq(modify_without_memory(r, &a, QPA_AV | QPA_MAX_DEST_RD_ATOMIC), 2);
    rig_free(r);
}
END_TEST

/* CC-25: nor does a queue pair whose change failed say that the network may mark its packets, or
 * take to another congestion control. */
START_TEST(cc_25_no_memory)
{
    struct rig_opts o = {0};
    struct rig *r = rig_new(&o);
    struct engine_qp_attr a = rig_attr(r, &o);
    const struct cc_conf conf = cc_of("dcqcn");
    set_cc(r, "dcqcn,prios=2");
    a.state = QPS_SQD;
    ck_assert_int_eq(engine_qp_modify(r->e, r->qp, &a, QPA_STATE, r->now), 0);
    a.av.sl = 1;
    fail_alloc = 1;
    ck_assert_int_eq(engine_qp_modify(r->e, r->qp, &a, QPA_AV, r->now), -ENOMEM);
    a.state = QPS_RTS;
    ck_assert_int_eq(engine_qp_modify(r->e, r->qp, &a, QPA_STATE, r->now), 0);
    for (unsigned n = 1; n <= 2; n++) {
        fail_alloc = n;
        ck_assert_int_eq(engine_qp_set_cc(r->e, r->qp, &conf, r->now), -ENOMEM);
    }
    rig_post(r, WR_SEND, 1, 8, 0);
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    ck_assert_uint_eq(r->sent[0].tclass & 3, 0);
    struct engine_qp_info info;
    engine_qp_info(r->e, r->qp, &info);
    ck_assert_ptr_eq(info.cc, engine_cc(r->e));
    ck_assert_int_eq(engine_qp_set_cc(r->e, r->qp, &conf, r->now), 0);
    rig_post(r, WR_SEND, 1, 8, 0);
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    ck_assert_uint_ne(r->sent[1].tclass & 3, 0);
    rig_free(r);
}
END_TEST

/* WIRE-07: another MAC, the same PSNs. */
START_TEST(wire_07_new_mac)
{
    static const uint8_t mac[6] = {2, 9, 9, 9, 9, 9};
    struct rig *r = rig_new(NULL);
    engine_qp_set_dmac(r->qp, mac);
    rig_post(r, WR_SEND, 1, 8, 0);
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    ck_assert(!memcmp(r->sent[0].dmac, mac, 6));
    ck_assert_uint_eq(r->sent[0].psn, RIG_PSN);
    rig_free(r);
}
END_TEST

/* WIRE-36: the port has another MAC: queue pairs send from it, and to it if they sent to the first.
 */
START_TEST(wire_36_another_mac_of_ours)
{
    static const uint8_t first[6] = {2, 8, 8, 8, 8, 8}, mac[6] = {2, 9, 9, 9, 9, 9};
    struct rig *r = rig_new(NULL);
    uint8_t peer[6];
    engine_set_mac(r->e, first);
    rig_post(r, WR_SEND, 1, 8, 0);
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    ck_assert(!memcmp(r->sent[0].smac, first, 6));
    memcpy(peer, r->sent[0].dmac, 6);
    engine_set_mac(r->e, mac);
    rig_clear(r);
    rig_post(r, WR_SEND, 2, 8, 0);
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    ck_assert(!memcmp(r->sent[0].smac, mac, 6));
    ck_assert(!memcmp(r->sent[0].dmac, peer, 6));
    engine_qp_set_dmac(r->qp, mac); /* to ourselves */
    engine_set_mac(r->e, first);
    rig_clear(r);
    rig_post(r, WR_SEND, 3, 8, 0);
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    ck_assert(!memcmp(r->sent[0].dmac, first, 6));
    rig_free(r);
}
END_TEST

/* WIRE-36: another MTU of the port is for queue pairs that get theirs from now on. */
START_TEST(wire_36_another_mtu_of_ours)
{
    struct rig *r = rig_new(NULL);
    struct engine_qp_attr a;
    engine_qp_query(r->qp, &a, NULL);
    ck_assert_uint_gt(a.path_mtu, 1);
    engine_set_mtu(r->e, a.path_mtu);
    ck_assert_uint_eq(engine_larger_mtu(r->e), 0);
    engine_set_mtu(r->e, 1);
    ck_assert(!engine_follows(r->e));
    ck_assert_uint_eq(engine_larger_mtu(r->e), 1);
    rig_post(r, WR_SEND, 1, 200, 0);
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    struct engine_qp_attr reset = {.state = QPS_RESET}, init = {.state = QPS_INIT, .port = 1},
                          rtr = a;
    ck_assert_int_eq(engine_qp_modify(r->e, r->qp, &reset, QPA_STATE, r->now), 0);
    ck_assert_int_eq(engine_qp_modify(r->e, r->qp, &init,
                                      QPA_STATE | QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS,
                                      r->now),
                     0);
    rtr.state = QPS_RTR;
    const uint32_t mask = QPA_STATE | QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN |
                          QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER;
    ck_assert_int_eq(engine_qp_modify(r->e, r->qp, &rtr, mask, r->now), -EINVAL);
    engine_set_mtu(r->e, a.path_mtu);
    ck_assert_int_eq(engine_qp_modify(r->e, r->qp, &rtr, mask, r->now), 0);
    rig_free(r);
}
END_TEST

/* GID-04, QP-01: without its address a queue pair is silent, until it is given another in SQD. */
START_TEST(gid_04_another_address)
{
    struct rig *r = rig_new(NULL);
    struct engine_qp_attr a, other = {.state = QPS_SQD};
    struct wire_addr second = r->lip;
    second.b[15] ^= 0x10;
    ck_assert_int_eq(engine_addr_add(r->e, &second), 0);
    ck_assert_int_eq(engine_addr_del(r->e, &r->lip), 0);
    engine_qp_mute(r->e, r->qp, true);
    rig_post(r, WR_SEND, 1, 8, 0);
    ck_assert_uint_eq(rig_tx(r, 0), 0);
    ck_assert_int_eq(engine_qp_modify(r->e, r->qp, &other, QPA_STATE, r->now), 0);
    engine_qp_query(r->qp, &a, NULL);
    other.av = a.av;
    ck_assert_int_eq(engine_qp_modify(r->e, r->qp, &other, QPA_AV, r->now), -EINVAL);
    other.av.sgid = second;
    ck_assert_int_eq(engine_qp_modify(r->e, r->qp, &other, QPA_AV, r->now), 0);
    other.state = QPS_RTS;
    ck_assert_int_eq(engine_qp_modify(r->e, r->qp, &other, QPA_STATE, r->now), 0);
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    ck_assert(!memcmp(&r->sent[0].sip, &second, sizeof(second)));
    rig_pass(r, 2 * RIG_T);
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    rig_free(r);
}
END_TEST

/* GID-04: its timers stop meanwhile. An unanswered request costs no retry, however long the address
 * is gone, and is repeated when it is back. */
START_TEST(gid_04_timers_stand_still)
{
    struct rig *r = rig_new(NULL);
    struct engine_qp_info info;
    rig_post(r, WR_SEND, 1, 8, WR_F_SIGNALED);
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    engine_qp_mute(r->e, r->qp, true);
    rig_pass(r, 20 * RIG_T);
    ck_assert_uint_eq(rig_tx(r, 0), 0);
    engine_qp_info(r->e, r->qp, &info);
    ck_assert_uint_eq(info.timeouts, 0);
    ck_assert_uint_eq(r->nwc, 0);
    ck_assert_int_eq(rig_state(r), QPS_RTS);
    engine_qp_mute(r->e, r->qp, false);
    rig_pass(r, RIG_T);
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    rig_ack(r, RIG_PSN);
    ck_assert_uint_eq(r->nwc, 1);
    ck_assert_uint_eq(r->wc[0].status, WC_SUCCESS);
    rig_free(r);
}
END_TEST

/* The flight recorder lists the events in order, and stays within the buffer. */
START_TEST(recorder_history)
{
    struct rig *r = rig_new(NULL);
    char text[4096];
    rig_post(r, WR_SEND, 1, 8, 0);
    rig_tx(r, 0);
    rig_aeth(r, RIG_PSN, WIRE_SYN_NAK_SEQ, 0);
    ck_assert_uint_gt(engine_qp_history(r->e, r->qp, text, sizeof(text)), 0);
    char *sent = strstr(text, "send request psn 0xfffff0"), *nak = strstr(text, "NAK psn 0xfffff0");
    ck_assert(sent && nak && sent < nak);
    for (unsigned n = 0; n < 200; n++) {
        memset(text, 'x', sizeof(text));
        size_t k = engine_qp_history(r->e, r->qp, text, n);
        ck_assert(k < n || !n);
        ck_assert(text[n] == 'x');
    }
    rig_free(r);
}
END_TEST

/* CM-39: the recorder notes an ICMP error about the peer once, however often it comes; nothing else
 * happens to the queue pair. Errors about other addresses are not noted. */
START_TEST(recorder_is_told_of_icmp)
{
    struct rig *r = rig_new(NULL);
    struct engine_qp_params caps;
    struct engine_qp_attr attr;
    char text[4096];
    ck_assert_int_eq(engine_qp_query(r->qp, &attr, &caps), 0);
    struct wire_addr other = attr.av.dgid;
    other.b[15] ^= 1;
    ck_assert_uint_eq(engine_icmp(r->e, &other, ECONNREFUSED, 0, 8), 0);
    engine_qp_history(r->e, r->qp, text, sizeof(text));
    ck_assert_ptr_null(strstr(text, "ICMP"));
    for (unsigned i = 0; i < 100; i++)
        ck_assert_uint_eq(engine_icmp(r->e, &attr.av.dgid, ECONNREFUSED, 0, 8), 0);
    engine_icmp(r->e, &attr.av.dgid, EMSGSIZE, 0, 8);
    engine_qp_history(r->e, r->qp, text, sizeof(text));
    char *closed = strstr(text, "ICMP says that port 4791 of the peer is closed");
    char *big = strstr(text, "ICMP says that packets are too big");
    ck_assert(closed && big && closed < big);
    ck_assert_ptr_null(strstr(closed + 1, "ICMP says that port"));
    ck_assert_int_eq(engine_qp_query(r->qp, &attr, &caps), 0);
    ck_assert_int_eq(attr.state, QPS_RTS);
    ck_assert_uint_eq(r->nwc, 0);
    rig_free(r);
}
END_TEST

/* After any number of events it keeps the latest dozen, the newest one last. */
START_TEST(recorder_keeps_the_latest)
{
    struct rig *r = rig_new(NULL);
    char text[4096], want[64];
    for (unsigned n = 0; n < 60; n++) {
        rig_post(r, WR_SEND, n, 8, 0);
        ck_assert_uint_eq(rig_tx(r, 0), 1);
        rig_ack(r, rig_psn(RIG_PSN, n));
        if (n < RECORDER_EVENTS)
            continue;
        ck_assert_uint_lt(engine_qp_history(r->e, r->qp, text, sizeof(text)), sizeof(text) - 1);
        const char *line = text;
        for (unsigned i = n + 1 - RECORDER_EVENTS; i <= n; i++) {
            snprintf(want, sizeof(want), " send request psn 0x%06x (0x4)\n", rig_psn(RIG_PSN, i));
            line += strcspn(line, " ");
            ck_assert_msg(!strncmp(line, want, strlen(want)), "after %u:%s", n + 1, line);
            line += strlen(want);
        }
        ck_assert_str_eq(line, "");
    }
    rig_free(r);
}
END_TEST

/* CQ-01: the id at the start of a reason is the vendor_err of a completion. */
START_TEST(cq_01_rule_of_a_reason)
{
    ck_assert_uint_eq(recorder_rule("RSP-12 message is longer"), RULE(RSP, 12));
    ck_assert_uint_eq(recorder_rule("REQ-09"), RULE(REQ, 9));
    ck_assert_uint_eq(recorder_rule("MR-12: gone"), RULE(MR, 12));
    static const char *const none[] = {NULL, "", "RSP", "RSP-", "RSP-x", "RS-12", "-12", "NO-1"};
    for (unsigned i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        ck_assert_msg(recorder_rule(none[i]) == 0, "%u", i);
    for (unsigned i = REFUSE_NONE + 1; i < REFUSE_MAX; i++)
        ck_assert_msg(recorder_rule(refusals[i].text) != 0, "%s", refusals[i].text);
}
END_TEST

UNIT_MAIN("qp", qp_01_table, qp_17_no_alternate_path, qp_03_values, qp_05_posting, qp_12_flush,
          qp_04_reset, qp_15_query, qp_14_numbers, sec_08_numbers_of_a_large_device,
          sec_08_numbers_of_a_program, qp_01_no_memory_for_rtr, qp_01_no_memory_in_sqd,
          cc_25_no_memory, wire_07_new_mac, wire_36_another_mac_of_ours,
          wire_36_another_mtu_of_ours, gid_04_another_address, gid_04_timers_stand_still,
          recorder_history, recorder_is_told_of_icmp, recorder_keeps_the_latest,
          cq_01_rule_of_a_reason)
