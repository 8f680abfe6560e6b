/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Our engine at either end of a flow of datagrams: UD, and queue pair 1.
 *
 * As responder it gets each datagram with a receive posted for it. It must deliver the datagram
 * whole, with its immediate and source, and send no answer. As requester it sends the datagrams of
 * the capture's sender: all fields that the protocol fixes must be the same. The meaning of queue
 * pair 1's messages isn't judged here.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "stage.h"

#define HEADER_AREA     40u /* UD-05 */
#define QKEYS           16u /* different Q_Keys that are counted */
#define QKEY_CONTROLLED 0x80000000u

struct datagrams {
    struct direction *d;
    struct judge *j;
    struct stage stage;
    const struct packet *now;
    bool gsi;
    /* the outcome */
    unsigned delivered, emitted;
    struct engine_wc wc;
    uint32_t mad_len;
    struct wire_pkt ours;
    uint8_t frame[WIRE_FRAME_MAX];
    uint32_t len;
};

static void on_sent(void *ctx, const struct wire_pkt *p, const uint8_t *frame, uint32_t len)
{
    struct datagrams *u = ctx;
    u->emitted++;
    u->ours = *p;
    u->len = len;
    memcpy(u->frame, frame, len);
}

static void on_fetch(void *ctx, const struct mem_piece *from, uint8_t *to)
{
    const struct datagrams *u = ctx;
    const struct packet *p = u->now;
    uint32_t have = packet_payload_have(p);
    memset(to, 0, from->len);
    if (from->off < have) {
        have -= (uint32_t)from->off;
        memcpy(to, packet_payload(p) + from->off, have < from->len ? have : from->len);
    }
}

static int on_copy(void *ctx, const struct engine_copy *c, uint64_t *orig)
{
    (void)ctx, (void)c;
    *orig = 0;
    return 0; /* the receive buffers are never read */
}

static void on_completed(void *ctx, const struct engine_wc *wc)
{
    struct datagrams *u = ctx;
    u->delivered += wc->opcode >= WC_RECV;
    u->wc = *wc;
}

static void on_gsi(void *ctx, const struct wire_pkt *p, const uint8_t *mad, uint32_t len)
{
    struct datagrams *u = ctx;
    (void)p, (void)mad;
    u->delivered++;
    u->mad_len = len;
}

static bool wanted(const struct datagrams *u, const struct packet *p)
{
    return p->usable && p->flow == u->d->flow.id && wire_opcodes[p->opcode].service == WIRE_UD;
}

static bool is_partition(uint16_t pkey, uint16_t of)
{
    return (pkey & 0x7FFF) == (of & 0x7FFF);
}

/* The Q_Key of the receiver: the one in most datagrams; of two equally frequent ones the later. The
 * sender's own shows only when it replaces a controlled one (KEY-08). */
static uint32_t find_qkey(const struct datagrams *u, bool sender)
{
    struct {
        uint32_t qkey;
        size_t n;
    } seen[QKEYS] = {0};
    size_t kinds = 0, best = 0;
    for (size_t i = 0; i < u->d->packets; i++) {
        const struct packet *p = &u->d->packet[i];
        struct wire_pkt w;
        size_t k = 0;
        if (!wanted(u, p))
            continue;
        packet_wire(p, &w);
        if (sender && !(w.qkey & QKEY_CONTROLLED))
            continue;
        while (k < kinds && seen[k].qkey != w.qkey)
            k++;
        if (k == QKEYS)
            continue;
        kinds += k == kinds;
        seen[k].qkey = w.qkey;
        if (++seen[k].n >= seen[best].n)
            best = k;
    }
    return seen[best].qkey;
}

/* Queue pair 1 accepts each P_Key of the table (KEY-04): one for each captured partition, up to the
 * table's size. A receiver is a full member, otherwise limited members couldn't send to it
 * (KEY-03). */
static void find_pkeys(const struct datagrams *u, struct stage_params *s, bool responder)
{
    unsigned n = 0;
    for (size_t i = 0; i < u->d->packets && n < (u->gsi ? STAGE_PKEYS : 1u); i++) {
        uint16_t pkey = u->d->packet[i].pkey | (responder ? FULL_MEMBER : 0);
        bool known = !wanted(u, &u->d->packet[i]) || (n && is_partition(pkey, s->pkey));
        for (unsigned k = 0; k + 1 < n; k++)
            known = known || is_partition(pkey, s->more_pkeys[k]);
        if (known)
            continue;
        *(n ? &s->more_pkeys[n - 1] : &s->pkey) = pkey;
        n++;
    }
}

/* ---- as responder ---- */

static void receive(struct datagrams *u, const struct packet *p)
{
    struct engine_sge sge = {STAGE_LOCAL_VA, HEADER_AREA + WIRE_MTU_MAX, u->stage.lkey};
    struct engine_recv_wr wr = {.nsge = 1, .sge = &sge};
    struct engine_qp_info info;
    engine_qp_info(u->stage.e, u->stage.qp, &info);
    if (!info.rq_used)
        engine_post_recv(u->stage.e, u->stage.qp, &wr);
    u->delivered = u->emitted = 0;
    stage_feed(&u->stage, p, 0);
    u->j->out->fed++;
    u->j->out->compared++;
    enum engine_counter why = u->stage.drop;
    if (!u->delivered && why == ENGINE_C_rx_bad_qkey) {
        u->j->out->same++; /* a freedom: the receiver knows its Q_Key, we don't */
        return;
    }
    char ours[REPLAY_TEXT_MAX];
    uint32_t len = u->gsi ? u->mad_len : u->wc.byte_len - HEADER_AREA;
    if (!u->delivered) {
        snprintf(ours, sizeof(ours), "(drops it: %s)", engine_counter_names[why]);
        judge_differ(u->j, p, why ? engine_counter_rules[why] : "UD-06", "delivery", ours,
                     "our engine doesn't deliver it");
    } else if (u->emitted) {
        judge_differ(u->j, p, "UD-01", "answer", "(an answer)", "a datagram is not answered");
    } else if (len != p->payload_len) {
        snprintf(ours, sizeof(ours), "(delivers %u octets)", len);
        judge_differ(u->j, p, "UD-05", "length", ours, "our engine delivers another length");
    } else {
        u->j->out->same++;
    }
}

/* ---- as requester ---- */

static bool payload_same(const struct datagrams *u, const struct packet *p)
{
    return !memcmp(u->frame + u->ours.payload_off, packet_payload(p), packet_payload_have(p));
}

static void compare(struct datagrams *u, const struct packet *p)
{
    struct wire_pkt captured;
    packet_wire(p, &captured);
    const struct wire_pkt *a = &u->ours, *b = &captured;
    const struct {
        bool differs;
        const char *field, *rule, *why;
    } field[] = {
        {a->opcode != b->opcode, "opcode", "UD-01", "datagrams are SEND only"},
        {a->payload_len != b->payload_len, "payload length", u->gsi ? "GSI-02" : "UD-01",
         "our engine sends another value"},
        {a->pad != b->pad, "pad", "OPC-03", "our engine pads to four octets"},
        {a->se != b->se, "SE", "HDR-03", "our engine sets it when asked to"},
        {a->ackreq != b->ackreq, "AckReq", "UC-02", "a datagram is not acknowledged"},
        {a->pkey != b->pkey, "P_Key", "KEY-01", "our engine sends with one P_Key"},
        {a->dqpn != b->dqpn, "destination QP", "UD-03", "our engine sends another value"},
        {a->qkey != b->qkey, "Q_Key", u->gsi ? "GSI-01" : "KEY-08",
         "our engine sends another value"},
        {u->gsi && a->sqpn != b->sqpn, "source QP", "GSI-01", "queue pair 1 sends as such"},
        {wire_opcodes[b->opcode].flags & WIRE_F_IMM && a->imm != b->imm, "immediate", "UD-01",
         "our engine sends another value"},
        {!payload_same(u, p), "payload", "UD-01", "our engine sends another value"},
    };
    char dump[REPLAY_DUMP_MAX];
    wire_dump(dump, sizeof(dump), u->frame, u->len, 0);
    for (size_t i = 0; i < sizeof(field) / sizeof(field[0]); i++)
        if (field[i].differs) {
            judge_differ(u->j, p, field[i].rule, field[i].field, dump, field[i].why);
            return;
        }
    u->j->out->same++;
}

static void send(struct datagrams *u, const struct packet *p)
{
    struct wire_pkt captured;
    packet_wire(p, &captured);
    const struct wire_pkt *w = &captured;
    struct engine_sge sge = {STAGE_LOCAL_VA, w->payload_len, u->stage.lkey};
    bool imm = wire_opcodes[w->opcode].flags & WIRE_F_IMM;
    struct engine_send_wr wr = {.opcode = imm ? WR_SEND_WITH_IMM : WR_SEND,
                                .flags = (uint8_t)(WR_F_SIGNALED | (w->se ? WR_F_SOLICITED : 0)),
                                .nsge = w->payload_len ? 1 : 0,
                                .imm = w->imm,
                                .sge = &sge,
                                .rqpn = w->dqpn,
                                .rqkey = w->qkey};
    const struct mem_piece all = {.len = w->payload_len};
    uint8_t mad[WIRE_MTU_MAX];
    u->emitted = 0;
    on_fetch(u, &all, mad);
    int rc = u->gsi ? stage_mad(&u->stage, w->pkey, mad, w->payload_len)
                    : stage_datagram(&u->stage, &wr);
    u->j->out->fed++;
    u->j->out->compared++;
    if (rc || u->emitted != 1)
        judge_differ(u->j, p, u->gsi ? "GSI-02" : "UD-02", "length", "(nothing)",
                     "our engine doesn't send such a datagram");
    else
        compare(u, p);
}

/* ---- the whole flow ---- */

int as_datagram(struct direction *d, struct judge *j)
{
    struct datagrams u = {.d = d, .j = j, .gsi = d->flow.dqpn == WIRE_QPN_GSI};
    bool responder = j->out->role == REPLAY_RESPONDER;
    const struct stage_owner owner = {&u, on_sent, on_fetch, on_copy, on_completed, on_gsi};
    struct stage_params p = {
        .type = QP_UD,
        .local = responder ? d->flow.dst : d->flow.src,
        .remote = responder ? d->flow.src : d->flow.dst,
        .qkey = find_qkey(&u, !responder),
        .mtu = WIRE_MTU_MAX,
        .now = d->packet[0].kept->ns,
        .budget = d->packets,
    };
    find_pkeys(&u, &p, responder);
    int rc = stage_init(&u.stage, &p, &owner);
    for (size_t i = 0; i < d->packets && !rc; i++) {
        u.now = &d->packet[i];
        if (!wanted(&u, u.now)) {
            j->out->passed++;
            continue;
        }
        if ((rc = judge_step(j)))
            break;
        stage_time(&u.stage, u.now->kept->ns);
        if (responder)
            receive(&u, u.now);
        else
            send(&u, u.now);
    }
    stage_free(&u.stage);
    return rc == -EINVAL ? 0 : rc;
}
