/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Multicast groups: attached queue pairs, and one datagram for all of them. Rules: UD-10, UD-11,
 * SEC-28.
 */
#include "mcast.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine_priv.h"
#include "engine_rx.h"
#include "guess.h"
#include "rx.h"
#include "srq.h"
#include "ud.h"

struct ud_group {
    struct ud_group *next;
    struct wire_addr addr;
    uint32_t n, cap;
    struct qp **qps;
};

static struct ud_group **find(struct engine *e, const struct wire_addr *addr)
{
    struct ud_group **pp = &e->groups;
    while (*pp && memcmp(&(*pp)->addr, addr, sizeof(*addr)))
        pp = &(*pp)->next;
    return pp;
}

/* True: it was empty, and *pp is the next one now. */
static bool drop_if_empty(struct ud_group **pp)
{
    struct ud_group *g = *pp;
    if (g->n > 0)
        return false;
    *pp = g->next;
    free(g->qps);
    free(g);
    return true;
}

static bool leave(struct ud_group *g, const struct qp *qp)
{
    for (uint32_t i = 0; i < g->n; i++) {
        if (g->qps[i] == qp) {
            g->qps[i] = g->qps[--g->n];
            return true;
        }
    }
    return false;
}

int engine_mcast_attach(struct engine *e, struct qp *qp, const struct wire_addr *group)
{
    if (qp->type != QP_UD || !wire_addr_is_multicast(group))
        return -EINVAL;
    struct ud_group **pp = find(e, group), *g = *pp;
    if (!g) {
        g = calloc(1, sizeof(*g));
        if (!g)
            return -ENOMEM;
        g->addr = *group;
        *pp = g;
    }
    for (uint32_t i = 0; i < g->n; i++)
        if (g->qps[i] == qp)
            return 0;
    if (g->n == g->cap) {
        uint32_t cap = g->cap ? g->cap * 2 : 4;
        struct qp **qps = realloc(g->qps, cap * sizeof(struct qp *));
        if (!qps) {
            drop_if_empty(pp);
            return -ENOMEM;
        }
        g->qps = qps;
        g->cap = cap;
    }
    g->qps[g->n++] = qp;
    return 0;
}

int engine_mcast_detach(struct engine *e, struct qp *qp, const struct wire_addr *group)
{
    struct ud_group **pp = find(e, group);
    if (!*pp || !leave(*pp, qp))
        return -EINVAL;
    drop_if_empty(pp);
    return 0;
}

unsigned engine_mcast_count(const struct engine *e, const struct qp *qp)
{
    unsigned n = 0;
    for (const struct ud_group *g = e->groups; g; g = g->next)
        for (uint32_t i = 0; i < g->n; i++)
            n += g->qps[i] == qp;
    return n;
}

bool engine_mcast_get(const struct engine *e, unsigned i, struct wire_addr *group)
{
    const struct ud_group *g = e->groups;
    while (g && i-- > 0)
        g = g->next;
    if (g)
        *group = g->addr;
    return g != NULL;
}

void mcast_leave_all(struct engine *e, struct qp *qp)
{
    for (struct ud_group **pp = &e->groups; *pp;) {
        leave(*pp, qp);
        if (!drop_if_empty(pp))
            pp = &(*pp)->next;
    }
}

/* Deliver one member's copy. Its own refusals count as drops; the caller learns of a bad key. */
static enum engine_counter deliver(struct rx *rx, struct qp *qp, unsigned first_copy)
{
    if (qp->state < QPS_RTR || qp->state == QPS_ERR)
        return ENGINE_C_rx_bad_qp_state;
    if (!wire_pkey_match(rx->pkt.pkey, qp->pkey))
        return ENGINE_C_rx_bad_pkey;
    if (rx->pkt.qkey != qp->qkey)
        return ENGINE_C_rx_bad_qkey;
    /* The caller's array takes ENGINE_FRAME_COPIES from one frame, for all members together. */
    unsigned most = 2u * ((qp->srq ? qp->srq->rq.max_sge : qp->max_recv_sge) + 3u);
    if (rx->ncopies - first_copy + most > ENGINE_FRAME_COPIES)
        return ENGINE_C_rx_copy_pending;
    qp->stats.rx_packets++;
    qp->stats.rx_bytes += rx->f->len;
    ud_rx(rx, qp);
    return ENGINE_C_none;
}

void mcast_rx(struct rx *rx)
{
    struct ud_group *g = *find(rx->e, &rx->pkt.dip);
    if (!g) {
        rx_drop(rx, ENGINE_C_rx_mcast_no_group);
        return;
    }
    if (rx_late_drop(rx))
        return;
    if (guess_sender_closed(rx)) {
        rx_drop(rx, ENGINE_C_rx_rate_limited);
        return;
    }
    enum engine_counter why = ENGINE_C_none;
    unsigned first = rx->ncopies;
    bool delivered = false;
    for (uint32_t i = 0; i < g->n; i++) {
        enum engine_counter c = deliver(rx, g->qps[i], first);
        if (c == ENGINE_C_none)
            delivered = true;
        else
            why = c;
    }
    if (delivered) {
        guess_right(rx);
        return;
    }
    if (why == ENGINE_C_rx_bad_pkey || why == ENGINE_C_rx_bad_qkey)
        guess_drop_datagram(rx, why);
    else
        rx_drop(rx, why);
}
