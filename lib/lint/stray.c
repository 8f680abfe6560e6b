/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Answers with the number of a wrong queue pair. Their PSN may fit there by chance, but their
 * source port is that of another connection between the same hosts, which waits for this answer.
 */
#include <string.h>

#include "lint_priv.h"

#define PORT_SURE 3u    /* packets from one single port */
#define LOOK_MOST 1024u /* flows compared */

/* Does the flow wait for this answer? */
static bool waits_for(const struct lint_flow *q, const struct lint_ctx *c)
{
    if (!q || !q->started)
        return false;
    int32_t d = wire_psn_diff(c->p.psn, q->hi);
    if (d >= 0 || (uint32_t)-d > q->span)
        return false;
    const struct lint_read *r = lint_read_at(q, c->p.psn);
    if (c->op->flags & WIRE_F_ACK)
        return !r && (!q->ack_on || wire_psn_diff(c->p.psn, q->acked) > 0);
    return r && !r->done && r->atomic == ((c->op->flags & WIRE_F_ATOMIC) != 0);
}

/* A flow between the packet's hosts that waits for it; with `port` it must also send from the
 * packet's source port. */
static struct lint_flow *other_flow(const struct lint_ctx *c, bool port)
{
    const struct lint_flow *f = c->f;
    uint32_t looked = 0;
    struct lint_flow *g = lint_flow_between(c->l, &f->info.src, &f->info.dst);
    for (; g && looked < LOOK_MOST; g = g->older, looked++) {
        bool fits =
            !port || (g->port.n >= PORT_SURE && !g->port.varies && g->port.own == c->p.sport);
        if (g != f && !g->detached && fits && g->info.service == f->info.service &&
            !memcmp(&g->info.src, &f->info.src, 16) && !memcmp(&g->info.dst, &f->info.dst, 16) &&
            waits_for(g->peer, c))
            return g;
    }
    return NULL;
}

/* The only flow between the hosts of `f` with the packet's source port, if it waits for the packet;
 * `f` has no requests. */
static struct lint_flow *only_flow(const struct lint_ctx *c)
{
    const struct lint_flow *f = c->f;
    struct lint_flow *only = NULL, *g = lint_flow_between(c->l, &f->info.src, &f->info.dst);
    for (uint32_t looked = 0; g && looked < LOOK_MOST; g = g->older, looked++) {
        bool same = g != f && !g->detached && g->port.n && g->port.own == c->p.sport &&
                    !memcmp(&g->info.src, &f->info.src, 16) &&
                    !memcmp(&g->info.dst, &f->info.dst, 16);
        if (same && only)
            return NULL;
        only = same ? g : only;
    }
    bool sure = only && only->port.n >= PORT_SURE && !only->port.varies;
    return sure && only->info.service == f->info.service && waits_for(only->peer, c) ? only : NULL;
}

/* An answer to a queue pair without captured requests, from the source port of another queue pair
 * that waits for it. If that port follows from the other one's number (WIRE-20), and not from this
 * one's, the answer isn't this one's. */
static bool to_nobody(struct lint_ctx *c)
{
    struct lint_flow *f = c->f;
    if (f->peer || f->started || f->start_known || !(c->op->flags & WIRE_F_RESPONSE))
        return false;
    const struct lint_flow *g = only_flow(c);
    if (!g)
        return false;
    uint32_t from = g->peer->info.dqpn;
    bool sure = c->p.sport == wire_udp_sport(0, from, g->info.dqpn) &&
                c->p.sport != wire_udp_sport(0, from, f->info.dqpn);
    if (!sure && f->port.to_nobody)
        return false;
    f->port.to_nobody = true;
    f->port.qpn = g->info.dqpn;
    struct lint_wait w;
    lint_remember(c, &w);
    c->wait = &w;
    c->outcome = sure ? LINT_CONFIRMED : LINT_NOT_CAPTURED;
    lint_run(c, LINT_S_STRAY);
    c->wait = NULL;
    return sure;
}

bool lint_perhaps_stray(const struct lint_ctx *c)
{
    return other_flow(c, false) != NULL;
}

/* The packet after a suspected stray: its source port decides. */
static void judge_stray(struct lint_ctx *c)
{
    struct lint_port *port = &c->f->port;
    if (c->p.sport == port->own) {
        c->wait = &port->stray;
        c->outcome = LINT_CONFIRMED;
        lint_run(c, LINT_S_STRAY);
        c->wait = NULL;
    }
    port->stray.on = false;
}

bool lint_strayed(struct lint_ctx *c)
{
    struct lint_port *port = &c->f->port;
    if (c->p.ethertype == WIRE_ETHERTYPE_V1)
        return false;
    if (to_nobody(c))
        return true;
    bool other = port->n && c->p.sport != port->own;
    const struct lint_flow *g = NULL;
    if (other && !port->varies && port->n >= PORT_SURE && (c->op->flags & WIRE_F_RESPONSE) &&
        !port->stray.on)
        g = other_flow(c, true);
    if (port->stray.on)
        judge_stray(c);
    if (!g) {
        port->varies = port->varies || other;
        port->own = c->p.sport;
        port->n += port->n < PORT_SURE;
        return false;
    }
    lint_remember(c, &port->stray);
    port->qpn = g->info.dqpn;
    return true;
}
