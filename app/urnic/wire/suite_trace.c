/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Recording packets, and finding flows among them.
 */
#include "suite_trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm_msg.h"

int suite_trace_init(struct suite_trace *t)
{
    *t = (struct suite_trace){.pkt = malloc(SUITE_PACKETS * sizeof(*t->pkt))};
    return t->pkt ? 0 : -ENOMEM;
}

void suite_trace_free(struct suite_trace *t)
{
    free(t->pkt);
    *t = (struct suite_trace){0};
}

void suite_trace_clear(struct suite_trace *t)
{
    struct suite_pkt *pkt = t->pkt;
    *t = (struct suite_trace){.pkt = pkt};
}

/* ---- recording ---- */

bool suite_trace_read(const uint8_t *frame, uint32_t len, struct wire_pkt *p, bool *icrc_bad)
{
    enum wire_verdict v = wire_parse(frame, len, 0, p);
    *icrc_bad = v == WIRE_BAD_ICRC;
    if (*icrc_bad)
        v = wire_parse(frame, len, WIRE_P_NO_ICRC, p);
    return v == WIRE_OK;
}

static void on_req(struct suite_trace *t, const struct cm_msg *m, enum fault_dir dir)
{
    for (unsigned i = 0; i < t->nconn; i++)
        if (t->conn[i].comm_id == m->local_id && t->conn[i].active == dir)
            return; /* it is repeated */
    if (t->nconn == SUITE_CONNS)
        return;
    struct suite_conn *c = &t->conn[t->nconn++];
    *c = (struct suite_conn){.comm_id = m->local_id,
                             .active = dir,
                             .timeout = m->ack_timeout,
                             .retry = m->retry_count,
                             .mtu = m->mtu};
    c->qpn[dir] = m->qpn;
    c->psn[!dir] = m->psn; /* each end names the first PSN that it expects (CM-08) */
}

static void on_rep(struct suite_trace *t, const struct cm_msg *m, enum fault_dir dir)
{
    for (unsigned i = 0; i < t->nconn; i++) {
        struct suite_conn *c = &t->conn[i];
        if (c->done || c->comm_id != m->remote_id || c->active == dir)
            continue;
        c->qpn[dir] = m->qpn;
        c->psn[!dir] = m->psn;
        c->done = true;
    }
}

static void read_cm(struct suite_trace *t, const uint8_t *frame, const struct wire_pkt *p,
                    enum fault_dir dir)
{
    struct cm_msg m;
    if (cm_msg_unpack(&m, frame + p->payload_off, p->payload_len))
        return;
    if (m.attr == CM_REQ)
        on_req(t, &m, dir);
    else if (m.attr == CM_REP)
        on_rep(t, &m, dir);
}

static uint8_t tclass_now(const uint8_t *frame, const struct wire_pkt *p)
{
    const uint8_t *ip = frame + p->ip_off;
    return p->ip_version == 4 ? ip[1] : (uint8_t)(ip[0] << 4 | ip[1] >> 4);
}

static bool plain_cnp(const uint8_t *frame, const struct wire_pkt *p)
{
    static const uint8_t zero[16];
    return !p->se && !p->migreq && !p->fecn && !p->ackreq && !p->psn && !p->pad &&
           !memcmp(frame + p->bth_off + WIRE_BTH_LEN, zero, sizeof(zero));
}

const struct suite_pkt *suite_trace_add(struct suite_trace *t, const struct suite_pkt *head,
                                        const uint8_t *frame, const struct wire_pkt *p)
{
    if (p->dqpn == WIRE_QPN_GSI && wire_opcodes[p->opcode].service == WIRE_UD)
        read_cm(t, frame, p, head->dir);
    if (t->n == SUITE_PACKETS) {
        t->missed++;
        return NULL;
    }
    struct suite_pkt *k = &t->pkt[t->n++];
    *k = *head;
    k->opcode = p->opcode;
    k->syndrome = p->syndrome;
    k->tclass = tclass_now(frame, p);
    k->ackreq = p->ackreq;
    k->becn = p->becn;
    k->psn = p->psn;
    k->dqpn = p->dqpn;
    k->msn = p->msn;
    k->len = p->payload_len;
    /* Damage and trimming come after the parse, so the hash covers the remaining octets. */
    k->hash = head->fate & FAULT_CHANGED
                  ? 0
                  : wire_icrc_update(0, frame + p->payload_off, p->payload_len);
    k->rkey = p->rkey;
    k->dma_len = p->dma_len;
    k->va = p->va;
    k->plain = wire_opcodes[p->opcode].flags & WIRE_F_CNP && plain_cnp(frame, p);
    return k;
}

/* ---- flows ---- */

#define CANDIDATES 256u

struct tally {
    uint32_t qpn, n;
};

static void count(struct tally *table, unsigned *n, uint32_t qpn)
{
    for (unsigned i = 0; i < *n; i++) {
        if (table[i].qpn == qpn) {
            table[i].n++;
            return;
        }
    }
    if (*n < CANDIDATES)
        table[(*n)++] = (struct tally){qpn, 1};
}

static const struct tally *most(const struct tally *table, unsigned n)
{
    const struct tally *best = NULL;
    for (unsigned i = 0; i < n; i++)
        if (!best || table[i].n > best->n)
            best = &table[i];
    return best;
}

static const struct suite_conn *conn_of(const struct suite_trace *t, enum fault_dir dir,
                                        uint32_t to)
{
    for (unsigned i = t->nconn; i-- > 0;)
        if (t->conn[i].done && t->conn[i].qpn[!dir] == to)
            return &t->conn[i];
    return NULL;
}

/* Without CM messages: find the queue pair that gets responses with the PSNs of these requests. */
static uint32_t guess_back(const struct suite_flow *f)
{
    struct tally table[CANDIDATES];
    unsigned n = 0;
    for (uint32_t i = 0; i < f->t->n; i++) {
        const struct suite_pkt *p = &f->t->pkt[i];
        int32_t rel = suite_rel(f, p->psn);
        if (p->dir != f->dir && suite_flags(p) & WIRE_F_RESPONSE && rel >= -1 && rel <= f->highest)
            count(table, &n, p->dqpn);
    }
    const struct tally *best = most(table, n);
    return best ? best->qpn : 0;
}

/* Find the PSNs of the flow: the first and the highest. */
static void measure(struct suite_flow *f)
{
    bool known = f->conn != NULL;
    if (known)
        f->base = f->conn->psn[f->dir];
    f->highest = -1;
    for (uint32_t i = 0; i < f->t->n; i++) {
        const struct suite_pkt *p = &f->t->pkt[i];
        if (!suite_request(f, p))
            continue;
        if (!known)
            f->base = p->psn;
        known = true;
        int32_t rel = suite_rel(f, p->psn);
        f->highest = rel > f->highest ? rel : f->highest;
    }
}

bool suite_flow_find(const struct suite_trace *t, enum fault_dir dir, unsigned kinds,
                     struct suite_flow *f)
{
    struct tally table[CANDIDATES];
    unsigned n = 0;
    const bool reads = kinds == WIRE_F_READ;
    for (uint32_t i = 0; i < t->n; i++) {
        const struct suite_pkt *p = &t->pkt[i];
        unsigned flags = suite_flags(p);
        if (p->dir == dir && flags & WIRE_F_REQUEST && flags & kinds &&
            wire_opcodes[p->opcode].service == WIRE_RC)
            count(table, &n, p->dqpn);
    }
    const struct tally *best = most(table, n);
    if (!best)
        return false;
    *f = (struct suite_flow){.t = t, .dir = dir, .to = best->qpn, .packets = best->n};
    f->conn = conn_of(t, dir, f->to);
    measure(f);
    f->back = f->conn ? f->conn->qpn[dir] : guess_back(f);
    for (uint32_t i = 0; reads && i < t->n; i++) {
        const struct suite_pkt *p = &t->pkt[i];
        if (!suite_response(f, p) || !(suite_flags(p) & WIRE_F_READ))
            continue;
        int32_t rel = suite_rel(f, p->psn);
        f->highest = rel > f->highest ? rel : f->highest;
        f->packets++;
    }
    return true;
}
