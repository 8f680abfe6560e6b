/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Our engine in the responder's place.
 *
 * It gets each request packet of the capture in order; its answers go into a ledger by PSN. Each
 * captured answer must then be in the ledger, never more often than there and never before its
 * cause. Answers that are only in the ledger were lost before the capture point.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "as_responder.h"

#define ANSWERS_MIN  65536u /* answers that our engine may give, at least */
#define ANSWERS_EACH 4u     /* more of them, for each packet of the capture */
#define MESSAGE_MAX  ((uint32_t)WIRE_MSG_MAX)

uint64_t responder_hash(const uint8_t *data, size_t len)
{
    uint64_t h = 0xCBF29CE484222325ull;
    for (size_t i = 0; i < len; i++)
        h = (h ^ data[i]) * 0x100000001B3ull;
    return h;
}

/* ---- calls of the stage ---- */

static void on_sent(void *ctx, const struct wire_pkt *p, const uint8_t *frame, uint32_t len)
{
    struct responder *r = ctx;
    if (!(wire_opcodes[p->opcode].flags & WIRE_F_RESPONSE) || p->selective)
        return;
    if (r->answers == r->room) {
        uint32_t room = r->room ? r->room + r->room / 2 : 256;
        bool may = held_take(r->d->held, (room - r->room) * sizeof(*r->ledger));
        void *more = may ? realloc(r->ledger, room * sizeof(*r->ledger)) : NULL;
        if (!more) {
            r->failed = true;
            return;
        }
        r->ledger = more;
        r->room = room;
    }
    uint32_t *head = &r->bucket[p->psn % LEDGER_BUCKETS];
    (void)len;
    r->ledger[r->answers] = (struct answer){
        .next = *head,
        .psn = p->psn,
        .msn = p->msn,
        .payload_len = (uint16_t)p->payload_len,
        .content = p->opcode == WIRE_ATOMIC_ACK
                       ? p->orig
                       : responder_hash(frame + p->payload_off, p->payload_len),
        .opcode = p->opcode,
        .syndrome = p->syndrome,
        .pkey = p->pkey,
    };
    *head = ++r->answers;
}

static void on_fetch(void *ctx, const struct mem_piece *from, uint8_t *to)
{
    (void)ctx;
    regions_fetch(from, to);
}

static int on_copy(void *ctx, const struct engine_copy *c, uint64_t *orig)
{
    const struct responder *r = ctx;
    if (r->feeding && r->feeding->spoilt)
        return -EFAULT;
    regions_copy(c, orig);
    return 0;
}

/* ---- feeding a request ---- */

/* Post a receive work request if the packet will take one. */
static void post_recv(struct responder *r, const struct packet *p)
{
    unsigned f = packet_flags(p);
    bool unreliable = r->d->flow.service == WIRE_UC; /* its expected PSN follows each packet */
    bool takes = f & WIRE_F_SEND ? (f & WIRE_F_START) != 0 : f & WIRE_F_IMM && f & WIRE_F_END;
    struct engine_qp_info info;
    bool due = p->psn == stage_epsn(&r->stage) || p->selective || unreliable;
    if (!takes || p->starve || !due)
        return;
    engine_qp_info(r->stage.e, r->stage.qp, &info);
    struct engine_sge sge = {STAGE_LOCAL_VA, p->room < MESSAGE_MAX ? p->room : MESSAGE_MAX,
                             r->stage.lkey};
    struct engine_recv_wr wr = {.nsge = sge.len ? 1 : 0, .sge = &sge};
    /* Early packets of selective repeat take the receives of later messages. */
    for (uint32_t n = r->d->selective ? STAGE_RECVS : 1; n > info.rq_used; n--)
        engine_post_recv(r->stage.e, r->stage.qp, &wr);
}

/* Repetitions that our engine did not answer. */
static uint64_t declined_so_far(const struct responder *r)
{
    return stage_count(&r->stage, ENGINE_C_rx_dup_throttled) +
           stage_count(&r->stage, ENGINE_C_dup_rd_atomic_miss);
}

void responder_give(struct responder *r, size_t at)
{
    const struct packet *p = &r->d->packet[at];
    unsigned f = packet_flags(p);
    uint64_t declined = declined_so_far(r);
    regions_change(&r->regions, &r->stage, p);
    uint32_t rkey = regions_key(&r->regions, p);
    bool fresh = wire_psn_diff(p->psn, stage_epsn(&r->stage)) >= 0;
    if (f & WIRE_F_READ) {
        r->reread[p->psn % REREADS].psn = p->psn;
        r->reread[p->psn % REREADS].ns = p->kept->ns;
    }
    if (f & WIRE_F_READ || (f & WIRE_F_ATOMIC && fresh))
        regions_define(&r->regions, at);
    if (f & WIRE_F_INV)
        rkey = regions_invalidable(&r->regions, &r->stage, p);
    post_recv(r, p);
    bool due = p->psn == stage_epsn(&r->stage), alive = stage_state(&r->stage) != QPS_ERR;
    r->feeding = p;
    stage_feed(&r->stage, p, rkey);
    r->feeding = NULL;
    if (due && alive && stage_state(&r->stage) == QPS_ERR)
        r->refused = p;
    /* (a packet that finds no receive isn't wrong) */
    bool wrong = r->stage.drop && r->stage.drop <= ENGINE_C_rx_bad_aeth;
    if (due)
        r->dropped = wrong && alive ? p : NULL;
    if (r->dropped == p)
        r->dropped_rule = engine_counter_rules[r->stage.drop];
    r->j->out->fed++;
    if (declined != declined_so_far(r)) {
        uint32_t n = packet_psns(r->d, p);
        for (uint32_t i = 0; i < n && i < LEDGER_BUCKETS; i++)
            r->declined[(p->psn + i) % LEDGER_BUCKETS] = 1;
    }
}

/* Does the capture have the requester's hello? Selective repeat counts messages from there on. */
static bool says_hello(const struct direction *d)
{
    for (size_t i = 0; i < d->packets; i++)
        if (packet_sack(&d->packet[i], d->flow.id) && packet_positive(&d->packet[i]))
            return true;
    return false;
}

/* ---- UC: no answers ---- */

/* Feed the packet, and check that it is accepted. After a gap or a duplicate it need not be, until
 * another message starts. */
static void give_unreliable(struct responder *r, size_t at)
{
    const struct packet *p = &r->d->packet[at];
    bool begins = packet_flags(p) & WIRE_F_START;
    r->broken_off = !begins && (r->broken_off || p->psn != stage_epsn(&r->stage));
    responder_give(r, at);
    r->j->out->compared++;
    if (!r->stage.drop || r->broken_off) {
        r->j->out->same++;
        return;
    }
    char ours[REPLAY_TEXT_MAX];
    snprintf(ours, sizeof(ours), "(drops it: %s)", engine_counter_names[r->stage.drop]);
    judge_differ(r->j, p, engine_counter_rules[r->stage.drop], "delivery", ours,
                 "our engine doesn't take it");
}

/* ---- the whole direction ---- */

/* Is an early answer to a request from before the capture? It is if its PSN is earlier than the
 * captured ones. So is the very first answer if its PSN is later than the captured ones, unless its
 * message number shows that all requests are captured. */
static bool begins_in_the_middle(const struct direction *d)
{
    bool asked = false, answered = false;
    uint32_t end = d->base, messages = 0;
    for (size_t i = 0; i < d->packets && i < EARLY; i++) {
        const struct packet *p = &d->packet[i];
        uint32_t next = (p->psn + packet_psns(d, p)) & WIRE_PSN_MASK;
        if (packet_asks(d, p)) {
            end = asked && wire_psn_diff(end, next) > 0 ? end : next;
            asked = true;
            messages += (packet_flags(p) & (WIRE_F_END | WIRE_F_READ | WIRE_F_ATOMIC)) != 0;
        }
        if (!packet_answers(d, p))
            continue;
        bool whole = messages && p->msn == messages;
        if (!asked || wire_psn_diff(p->psn, d->base) < 0 ||
            (!answered && !whole && wire_psn_diff(p->psn, end) >= 0))
            return true;
        answered = true;
    }
    return false;
}

static int prepare(struct responder *r)
{
    const struct direction *d = r->d;
    const struct stage_owner owner = {r, on_sent, on_fetch, on_copy};
    struct stage_params p = {
        .type = d->flow.service == WIRE_UC ? QP_UC : QP_RC,
        .remote_qpn = d->answers.id != LINT_NO_FLOW ? d->answers.dqpn : d->flow.dqpn,
        .rq_psn = d->base,
        .sq_psn = 0,
        .mtu = d->mtu,
        .pkey = d->answers_pkey,
        .rnr_timer = d->rnr_timer,
        .recovery = d->selective     ? RECOVER_SR
                    : d->keeps_early ? RECOVER_GBN_OOO
                                     : RECOVER_GBN,
        .rights = d->qp_rights,
        .now = d->packet[0].kept->ns,
        .budget = ANSWERS_MIN + ANSWERS_EACH * d->packets,
        .local = d->flow.dst,
        .remote = d->flow.src,
    };
    r->bucket = calloc(LEDGER_BUCKETS, sizeof(*r->bucket));
    r->declined = calloc(LEDGER_BUCKETS, 1);
    if (!r->bucket || !r->declined || regions_find(&r->regions, d) < 0)
        return -ENOMEM;
    int rc = stage_init(&r->stage, &p, &owner);
    return rc ? rc : regions_register(&r->regions, &r->stage);
}

static void take_request(struct responder *r, size_t at)
{
    struct packet *p = &r->d->packet[at];
    struct wire_pkt w;
    if (p->overrun)
        packet_wire(p, &w);
    if ((packet_optional(p) && !evidence_refused(r->d, p, WIRE_SYN_NAK_INV)) ||
        (p->overrun && w.dma_len <= WIRE_MSG_MAX)) {
        r->hole = true; /* executed, or unknown */
        return;
    }
    if (p->lost && p->psn == stage_epsn(&r->stage)) { /* otherwise it was dropped on arrival */
        r->j->out->lost++;
        return;
    }
    if (p->starve && packet_flags(p) & (WIRE_F_READ | WIRE_F_ATOMIC)) {
        r->j->out->lost++; /* there was no room for it; our engine always has room */
        return;
    }
    stage_time(&r->stage, p->kept->ns);
    if (r->d->flow.service == WIRE_UC)
        give_unreliable(r, at);
    else
        responder_give(r, at);
    if (p->doubled) {
        p->starve = 0;
        responder_give(r, at);
    }
}

static void take(struct responder *r, size_t at)
{
    const struct direction *d = r->d;
    const struct packet *p = &d->packet[at];
    if (packet_asks(d, p)) {
        r->started = r->started || (at >= d->begin && wire_psn_diff(p->psn, d->base) >= 0);
        if (r->started)
            take_request(r, at);
    } else if (packet_answers(d, p)) {
        stage_time(&r->stage, p->kept->ns);
        responder_compare(r, p);
    } else if (d->selective && packet_sack(p, d->flow.id) && packet_positive(p)) {
        stage_time(&r->stage, p->kept->ns);
        stage_feed(&r->stage, p, 0);
    } else if (!p->usable) {
        r->j->out->passed++;
    }
}

int as_responder(struct direction *d, struct judge *j)
{
    struct responder r = {.d = d, .j = j};
    int rc = prepare(&r);
    r.hole = d->selective && !says_hello(d);
    r.middle = begins_in_the_middle(d);
    for (size_t i = 0; i < d->packets && !rc; i++) {
        if ((rc = judge_step(j)))
            break;
        take(&r, i);
        if (r.failed)
            rc = -ENOMEM;
    }
    stage_free(&r.stage);
    regions_free(&r.regions);
    free(r.declined);
    free(r.bucket);
    free(r.ledger);
    return rc == -EINVAL ? 0 : rc;
}
