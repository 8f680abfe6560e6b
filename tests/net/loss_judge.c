/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Is all well after a case of the loss matrix? See loss_case.h.
 */
#include <string.h>

#include "loss_case.h"

/* A queue pair gave up: only where something can be lost, and was. */
static int check_exhausted(struct run *r)
{
    char why[256];
    if (!faults[r->tc->fault].loses)
        return loss_fail(r, "RETRY_EXC_ERR although nothing was lost (TMR-05)");
    if (r->tc->recovery->mode[0] == RECOVER_SR && r->tc->recovery->mode[1] == RECOVER_SR)
        return 0; /* tries and retries aren't the same there (LR-04) */
    loss_oracle_poll(&r->oracle);
    return loss_oracle_exhausted(&r->oracle, LOSS_RETRIES, why, sizeof(why))
               ? loss_fail(r, "%s", why)
               : 0;
}

static int check_completions(struct run *r, unsigned *good)
{
    const struct op_info *op = &ops[r->tc->op];
    bool failed = false;
    *good = 0;
    for (size_t i = 0; i < r->a->wcs_n; i++) {
        const struct engine_wc *wc = &r->a->wcs[i].wc;
        if (wc->wr_id != LOSS_SEND_ID + i)
            return loss_fail(r, "completion %zu is for request %llu", i,
                             (unsigned long long)wc->wr_id - LOSS_SEND_ID);
        if (failed && wc->status != WC_WR_FLUSH_ERR)
            return loss_fail(r, "completion %zu after the failure: %s", i,
                             engine_status_name(wc->status));
        if (failed)
            continue;
        if (wc->status == WC_RETRY_EXC_ERR) {
            failed = true;
            if (check_exhausted(r))
                return -1;
            continue;
        }
        if (wc->status != WC_SUCCESS)
            return loss_fail(r, "completion %zu: %s", i, engine_status_name(wc->status));
        if (wc->opcode != op->wc)
            return loss_fail(r, "completion %zu has opcode %u", i, wc->opcode);
        if ((op->from_b || op->atomic) && wc->byte_len != r->len)
            return loss_fail(r, "completion %zu has %u octets", i, wc->byte_len);
        ++*good;
    }
    if (r->a->wcs_n != r->posted)
        return loss_fail(r, "%zu completions for %u requests", r->a->wcs_n, r->posted);
    return 0;
}

static int check_receives(struct run *r, unsigned good)
{
    const struct test_case *tc = r->tc;
    unsigned n = 0;
    for (size_t i = 0; i < r->b->wcs_n; i++) {
        const struct engine_wc *wc = &r->b->wcs[i].wc;
        if (wc->status != WC_SUCCESS)
            return loss_fail(r, "receive %zu: %s", i, engine_status_name(wc->status));
        if (wc->wr_id != LOSS_RECV_ID + n)
            return loss_fail(r, "receive %zu is for request %llu", i,
                             (unsigned long long)wc->wr_id - LOSS_RECV_ID);
        if (wc->byte_len != r->len)
            return loss_fail(r, "receive %zu has %u octets", i, wc->byte_len);
        bool imm = tc->op == SEND_IMM || tc->op == WRITE_IMM;
        if (!(wc->wc_flags & WC_F_IMM) == imm || (imm && wc->imm != LOSS_IMM + n))
            return loss_fail(r, "receive %zu: immediate 0x%x", i, wc->imm);
        bool inv = tc->op == SEND_INV;
        if (!(wc->wc_flags & WC_F_INV) == inv || (inv && wc->imm != r->inv_rkey[n]))
            return loss_fail(r, "receive %zu: invalidated 0x%x", i, wc->imm);
        if (wc->opcode != (tc->op == WRITE_IMM ? WC_RECV_RDMA_WITH_IMM : WC_RECV))
            return loss_fail(r, "receive %zu has opcode %u", i, wc->opcode);
        n++;
    }
    if (ops[tc->op].recv ? n < good : n != 0)
        return loss_fail(r, "%u receives for %u messages", n, good);
    return 0;
}

static int check_atomics(struct run *r, unsigned good)
{
    uint64_t value = 0, now, orig;
    memcpy(&now, loss_place(r->remote, r, 0), 8);
    for (unsigned m = 0; m < r->msgs; m++) {
        memcpy(&orig, loss_place(r->local, r, m), 8);
        if (m < good && orig != value)
            return loss_fail(r, "atomic %u found %llu, not %llu (ATM-08)", m,
                             (unsigned long long)orig, (unsigned long long)value);
        if (m >= good) {
            /* May have happened without our knowing: one after the other, in order. */
            if (now == value)
                return 0;
        }
        value += r->tc->op == CAS ? 1 : 3 * m + 1;
    }
    if (now != value)
        return loss_fail(r, "the word is %llu, not %llu: not exactly once (ATM-11)",
                         (unsigned long long)now, (unsigned long long)value);
    return 0;
}

static int check_guards(struct run *r, const uint8_t *arena, const char *whose, uint32_t len)
{
    for (unsigned m = 0; m < r->msgs; m++)
        for (uint32_t i = 0; i < r->stride; i++) {
            if (i >= LOSS_GUARD && i < LOSS_GUARD + len)
                continue;
            if (arena[(size_t)m * r->stride + i] != LOSS_GUARD_FILL)
                return loss_fail(r, "%s guard of message %u, octet %d, was overwritten", whose, m,
                                 (int)i - (int)LOSS_GUARD);
        }
    return 0;
}

static int check_data(struct run *r, unsigned good)
{
    bool from_b = ops[r->tc->op].from_b;
    uint8_t *source = from_b ? r->remote : r->local, *target = from_b ? r->local : r->remote;
    for (unsigned m = 0; m < r->msgs; m++) {
        for (uint32_t i = 0; i < r->len; i++) {
            if (loss_place(source, r, m)[i] != loss_octet(r, m, i))
                return loss_fail(r, "message %u: source octet %u was changed", m, i);
            if (m < good && loss_place(target, r, m)[i] != loss_octet(r, m, i))
                return loss_fail(r, "message %u: octet %u is wrong", m, i);
        }
    }
    return 0;
}

static int check_invalidated(struct run *r, unsigned good)
{
    struct mem_ref ref;
    for (unsigned m = 0; m < good; m++)
        if (mem_check(r->b->mem, r->b->pd, engine_qp_num(r->qb), r->inv_rkey[m], 0x10000, 1,
                      MEM_REMOTE_READ, false, &ref) == 0)
            return loss_fail(r, "key of message %u is still valid (RSP-19)", m);
    return 0;
}

int loss_judge(struct run *r, bool *exhausted)
{
    unsigned good;
    uint32_t guard_len = r->len;
    if (check_completions(r, &good) || check_receives(r, good))
        return -1;
    *exhausted = good < r->msgs;
    if (ops[r->tc->op].atomic) {
        if (check_atomics(r, good))
            return -1;
        guard_len = 8;
    } else if (check_data(r, good)) {
        return -1;
    }
    if (r->tc->op == SEND_INV && check_invalidated(r, good))
        return -1;
    if (check_guards(r, r->local, "local", guard_len))
        return -1;
    return check_guards(r, r->remote, "remote", guard_len);
}
