/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Checks of keys: the P_Key of each packet, and the Q_Key of QP1.
 */
#include "lint_checks.h"

static bool same_partition(uint16_t a, uint16_t b)
{
    return ((a ^ b) & 0x7FFF) == 0;
}

/* The first two packets differ, and this is the third: which of the two was wrong? */
static void settle_pkey(struct lint_ctx *c)
{
    struct lint_flow *f = c->f;
    bool first = same_partition(c->p.pkey, f->pkey.other);
    if (first) {
        f->pkey.other = f->pkey.own;
        f->pkey.own = c->p.pkey;
    }
    c->wait = &f->pkey.first[!first];
    lint_run(c, LINT_S_PKEY);
    c->wait = NULL;
    c->judged = LINT_VIOLATION; /* the judgement of this packet itself */
    c->why[0] = '\0';
    f->pkey.first[1].on = false;
}

/* Of two that differ, one is wrong, unless the queue pair's number was reused between them, and the
 * flow has not returned to the P_Key before. */
static bool pkey_wrong(struct lint_ctx *c)
{
    const struct lint_pkey *k = &c->f->pkey;
    lint_expected(c, "P_Key 0x%04x", k->own);
    lint_seen(c, "0x%04x", k->other);
    if (k->paused && !(k->before && same_partition(k->own, k->before)))
        return lint_doubt(c, LINT_UNDECIDABLE, "the queue pair's number may have been used anew");
    return true;
}

/* The flow's P_Key so far differs from this packet's. After a pause the packet may be another queue
 * pair's, with the same number, whose start the capture has missed: learn the flow's own P_Key
 * again. */
static void another_pkey(struct lint_ctx *c, bool paused)
{
    struct lint_pkey *k = &c->f->pkey;
    if (k->seen == 1) {
        k->other = c->p.pkey;
        k->paused = paused;
        lint_remember(c, &k->first[1]);
    } else if (paused && !k->first[1].on) {
        k->before = k->own;
        k->seen = 0;
    }
}

bool lint_key_01(struct lint_ctx *c)
{
    struct lint_pkey *k = &c->f->pkey;
    if (c->wait)
        return pkey_wrong(c);
    if (c->op->service == WIRE_UD && c->p.dqpn == WIRE_QPN_GSI)
        return false; /* KEY-04: it may use them all */
    if (!(c->p.pkey & 0x7FFF))
        return false; /* (no partition at all is KEY-02's) */
    bool undecided = k->first[1].on, paused = c->in->ns >= k->last_ns + LINT_ANEW_NS;
    k->last_ns = c->in->ns;
    if (k->seen && !same_partition(c->p.pkey, k->own))
        another_pkey(c, paused);
    if (undecided)
        settle_pkey(c);
    if (!k->seen) {
        k->own = c->p.pkey;
        lint_remember(c, &k->first[0]);
    }
    k->seen += k->seen < 3;
    if (k->first[1].on || same_partition(c->p.pkey, k->own))
        return false;
    lint_expected(c, "P_Key 0x%04x", k->own);
    return lint_seen(c, "0x%04x", c->p.pkey);
}

bool lint_key_02(struct lint_ctx *c)
{
    if (c->p.pkey & 0x7FFF)
        return false;
    lint_expected(c, "a partition");
    return lint_seen(c, "P_Key 0x%04x", c->p.pkey);
}

bool lint_key_07(struct lint_ctx *c)
{
    if (c->p.dqpn != WIRE_QPN_GSI || c->p.qkey == WIRE_QKEY_GSI)
        return false;
    lint_expected(c, "Q_Key 0x80010000");
    return lint_seen(c, "0x%08x", c->p.qkey);
}
