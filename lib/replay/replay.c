/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames come in and are kept, flow by flow; then each direction of a connection is replayed, once
 * for each role, with the choices that explain the capture best.
 */
#include "replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fields.h"
#include "replay_priv.h"
#include "wire_bytes.h"
#include "wire_csum.h"

#define BACK_FLOWS  1024u /* flows compared to find queue pair 1's other direction */
#define PACKET_COST (sizeof(struct packet) + 8u) /* octets to replay a packet; rarely exceeded */
#define PARSE_FLAGS (WIRE_P_LOOPBACK | WIRE_P_V1 | WIRE_P_QINQ)

struct replay {
    struct lint *lint; /* groups packets into flows */
    struct held held;
    struct keep keep;
    struct fields fields; /* its findings matter for these only */
    struct watch watch;
    struct replay_totals totals;
};

const char *replay_role_name(enum replay_role role)
{
    return role == REPLAY_RESPONDER ? "responder" : "requester";
}

struct replay *replay_new(uint64_t max_octets)
{
    struct replay *r = calloc(1, sizeof(*r));
    if (!r)
        return NULL;
    r->held.max = max_octets ? max_octets : REPLAY_HELD_MAX;
    r->keep.held = r->fields.held = &r->held;
    r->lint = lint_new(fields_keep, &r->fields, 0);
    if (!r->lint) {
        free(r);
        return NULL;
    }
    return r;
}

void replay_free(struct replay *r)
{
    if (!r)
        return;
    keep_free(&r->keep);
    lint_free(r->lint);
    fields_free(&r->fields);
    free(r);
}

void replay_watch(struct replay *r, replay_progress progress, void *ctx)
{
    r->watch = (struct watch){.progress = progress, .ctx = ctx};
}

/* ---- frames in ---- */

static bool may_replay(uint8_t service)
{
    return service == WIRE_RC || service == WIRE_UC || service == WIRE_UD;
}

/* Is the IPv4 header's checksum right, or was it captured before the NIC had filled it in? */
static bool checksum_good(const struct lint_frame *f, const struct wire_pkt *p)
{
    const uint8_t *ip = f->data + p->ip_off;
    return f->sent || p->ip_version != 4 || wire_csum_add(0, ip, WIRE_IPV4_LEN) == 0xFFFF ||
           wire_get16(ip + 10) == 0;
}

/* Add the packets that the capturing host has merged into one frame. */
static int add_parts(struct replay *r, const struct lint_frame *f)
{
    struct lint_merge m;
    uint8_t buf[LINT_PART_MAX];
    int rc = 0;
    r->totals.merged++;
    lint_merged(f, &m);
    for (uint32_t i = 0; i < m.n && !rc; i++) {
        struct lint_frame part;
        lint_part(f, &m, i, buf, &part);
        rc = replay_add(r, &part);
    }
    return rc;
}

int replay_add(struct replay *r, const struct lint_frame *f)
{
    struct lint_view v;
    lint_packet(r->lint, f, &v);
    r->totals.frames += !f->part;
    if (v.flags & LINT_V_MERGED)
        return add_parts(r, f);
    if (v.kind == LINT_OTHER)
        return 0;
    r->totals.roce++;
    r->totals.cm += v.kind == LINT_CM;
    r->totals.datagrams += v.kind == LINT_DATAGRAM;
    uint32_t len = f->wire_len > f->len ? f->wire_len : f->len;
    struct wire_pkt p;
    bool broken = v.kind == LINT_BROKEN;
    bool private =
        broken && v.opcode >= WIRE_SELECTIVE &&
        wire_parse_cut(f->data, f->len, len, PARSE_FLAGS | WIRE_P_SELECTIVE, &p) == WIRE_OK;
    r->totals.damaged += broken && !private;
    r->totals.xrc += !broken && wire_opcodes[v.opcode].service == WIRE_XRC;
    if (v.flow == LINT_NO_FLOW)
        return 0;
    struct kept k = {.number = f->number,
                     .ns = f->ns,
                     .interface = f->interface,
                     .sent = f->sent,
                     .again = v.flags & LINT_V_AGAIN,
                     .duplicate = v.flags & LINT_V_DUPLICATE,
                     .selective = private && p.payload_len <= WIRE_MTU_MAX};
    /* Unless the packet is broken, the iCRC is right, or there is none. */
    unsigned flags = PARSE_FLAGS | WIRE_P_IP_CSUM_OK | (broken ? 0 : WIRE_P_NO_ICRC);
    if (!private)
        k.good = wire_parse_cut(f->data, f->len, len, flags, &p) == WIRE_OK &&
                 checksum_good(f, &p) && !(v.flags & LINT_V_CORRUPT) &&
                 p.payload_len <= WIRE_MTU_MAX && may_replay(wire_opcodes[p.opcode].service);
    return keep_add(&r->keep, v.flow, &k, f, &p);
}

/* ---- replay ---- */

/* Selective repeat is in use when both ends have announced it. */
static void find_selective(struct direction *d)
{
    bool there = false, back = false;
    for (size_t i = 0; i < d->packets; i++) {
        there = there || (d->packet[i].selective && d->packet[i].flow == d->flow.id);
        back = back || (d->packet[i].selective && d->packet[i].flow == d->answers.id);
    }
    d->selective = there && back;
    for (size_t i = 0; i < d->packets && d->selective; i++)
        d->packet[i].usable |= d->packet[i].selective;
}

/* Replay with the choices that leave the fewest differences, if there are choices. */
static int replay_role(struct direction *d, struct judge *j)
{
    bool responder = j->out->role == REPLAY_RESPONDER, explained = false;
    int rc = 0;
    if (responder && d->flow.service == WIRE_RC)
        rc = choices_find(d, j, &explained);
    if (rc || explained)
        return rc;
    return j->out->cm                   ? as_cm(d, j)
           : d->flow.service == WIRE_UD ? as_datagram(d, j)
           : responder                  ? as_responder(d, j)
                                        : as_requester(d, j);
}

/* Derive the facts from a connection's packets; d->known_base if they suffice. */
static int look_at(struct direction *d)
{
    evidence_mtu(d);
    d->doubled = vantage_doubled(d);
    order_restore(d);
    find_selective(d);
    int rc = packets_index(d);
    if (rc)
        return rc;
    overrun_find(d);
    evidence_find(d);
    return 0;
}

static int one_role(struct replay *r, struct direction d, enum replay_role role, struct judge *j,
                    replay_result result)
{
    int rc = 0;
    bool datagrams = d.flow.service == WIRE_UD;
    struct replay_outcome out = {.connection = d.connection,
                                 .role = role,
                                 .flow = d.flow,
                                 .cm = datagrams && d.answers.id != LINT_NO_FLOW};
    if (d.flow.unsplit || d.answers.unsplit)
        return 0; /* packets are missing that the capture could have had */
    vantage_view(&d, role);
    if (!datagrams && ((rc = look_at(&d)) || !d.known_base)) {
        packets_unindex(&d);
        return rc;
    }
    j->out = &out;
    j->cut = 0;
    uint64_t held = r->held.octets;
    rc = replay_role(&d, j);
    r->held.octets = held; /* the role's memory is free again */
    packets_unindex(&d);
    if ((!rc || rc == -ENOMEM) && r->held.over)
        rc = -EFBIG; /* because of the limit, not of the machine */
    if (!rc && !datagrams && d.flow.service == WIRE_RC && out.compared)
        fields_judge(&r->fields, &d, j);
    j->out = NULL;
    if (rc)
        return rc;
    r->totals.compared += out.compared;
    r->totals.differ += out.differ;
    r->totals.replayed += out.compared != 0;
    if (result && out.compared)
        result(j->ctx, &out);
    return 0;
}

/* There are no answers. Has the requester repeated its first requests until it gave up, as without
 * a responder? Otherwise the capture has only one direction. */
static bool given_up(const struct direction *d)
{
    uint32_t first = 0, highest = 0;
    bool any = false, repeated = false;
    for (size_t i = 0; i < d->packets; i++) {
        const struct packet *p = &d->packet[i];
        if (!p->good || !(packet_flags(p) & WIRE_F_REQUEST))
            continue;
        if (!any)
            first = highest = p->psn;
        else if (p->psn == first)
            repeated = true;
        else if (wire_psn_diff(p->psn, highest) > 0) {
            highest = p->psn;
            repeated = false;
        }
        any = true;
    }
    return repeated;
}

/* The responder of such a connection has broken no rule: it may not exist. */
static void unanswered(struct replay *r, const struct direction *d, struct judge *j,
                       replay_result result)
{
    const struct replay_outcome out = {.connection = d->connection,
                                       .role = REPLAY_RESPONDER,
                                       .flow = d->flow,
                                       .unanswered = true,
                                       .passed = d->packets};
    if (d->flow.service != WIRE_RC || !given_up(d))
        return;
    r->totals.unanswered++;
    if (result)
        result(j->ctx, &out);
}

/* Pass one direction of a connection to `walk`. */
struct way {
    struct replay *r;
    uint32_t connection;
    const struct lint_flow_info *flow, *answers;
};

struct run {
    unsigned roles;
    struct judge judge;
    replay_result result;
    uint64_t biggest; /* packets of the largest direction */
};

static uint64_t packets_of(const struct way *w)
{
    const struct keep_flow *there = keep_flow(&w->r->keep, w->flow->id),
                           *back = keep_flow(&w->r->keep, w->answers->id);
    return (there ? there->packets : 0) + (back ? back->packets : 0);
}

static int measure(struct run *run, const struct way *w)
{
    uint64_t n = packets_of(w);
    run->biggest = n > run->biggest ? n : run->biggest;
    w->r->watch.total += run->roles == REPLAY_BOTH ? 2 * n : n;
    return 0;
}

static int role_of(struct run *run, const struct way *w, const struct direction *d,
                   enum replay_role role)
{
    struct watch *watch = &w->r->watch;
    uint64_t done = watch->done, total = watch->total;
    if (!(run->roles & role))
        return 0;
    int rc = 0;
    if (role == REPLAY_RESPONDER && d->answers.id == LINT_NO_FLOW && d->flow.service == WIRE_RC)
        unanswered(w->r, d, &run->judge, run->result);
    else
        rc = one_role(w->r, *d, role, &run->judge, run->result);
    watch->done = done + d->packets + watch->total - total;
    if (!rc && watch->progress && !watch->progress(watch->ctx, watch->done, watch->total))
        rc = -EINTR;
    return rc;
}

static int direction(struct run *run, const struct way *w)
{
    struct direction d = {.flow = *w->flow,
                          .answers = *w->answers,
                          .connection = w->connection,
                          .held = &w->r->held,
                          .fields = &w->r->fields};
    int rc = packets_collect(&w->r->keep, &d);
    if (!rc && d.packets) {
        rc = role_of(run, w, &d, REPLAY_RESPONDER);
        rc = rc ? rc : role_of(run, w, &d, REPLAY_REQUESTER);
    }
    packets_free(&d);
    return rc;
}

/* The other direction between two hosts' queue pairs 1, if its flow is later. */
static bool find_back(const struct replay *r, uint32_t flows, const struct lint_flow_info *a,
                      struct lint_flow_info *b)
{
    if (a->service != WIRE_UD || a->dqpn != WIRE_QPN_GSI)
        return false;
    for (uint32_t i = a->id + 1; i < flows && i - a->id < BACK_FLOWS; i++)
        if (lint_flow_info(r->lint, i, b) && b->service == WIRE_UD && b->dqpn == WIRE_QPN_GSI &&
            !memcmp(&a->src, &b->dst, sizeof(a->src)) && !memcmp(&a->dst, &b->src, sizeof(a->dst)))
            return true;
    return false;
}

/* Walk all directions, connection by connection, until `walk` doesn't return 0. */
static int walk(struct replay *r, struct run *run, int (*each)(struct run *, const struct way *))
{
    struct lint_totals t;
    int rc = 0;
    lint_totals(r->lint, &t);
    r->totals.connections = 0;
    for (uint32_t i = 0; i < t.flows && !rc; i++) {
        struct lint_flow_info a, b = {.id = LINT_NO_FLOW};
        if (!lint_flow_info(r->lint, i, &a) || !may_replay(a.service))
            continue;
        if (a.unsure)
            a.peer = LINT_NO_FLOW; /* the answers may be another connection's */
        if ((a.peer != LINT_NO_FLOW && a.peer < i))
            continue;
        bool pair = a.peer != LINT_NO_FLOW && lint_flow_info(r->lint, a.peer, &b);
        struct way there = {r, ++r->totals.connections, &a, &b}, back = there;
        back.flow = &b;
        back.answers = &a;
        rc = each(run, &there);
        if (!rc && find_back(r, t.flows, &a, &b))
            rc = each(run, &there);
        if (!rc && pair)
            rc = each(run, &back);
    }
    return rc;
}

int replay_run(struct replay *r, unsigned roles, replay_report report, replay_result result,
               void *ctx)
{
    struct run run = {.roles = roles,
                      .judge = {.report = report, .ctx = ctx, .watch = &r->watch},
                      .result = result};
    lint_end(r->lint);
    fields_sort(&r->fields);
    if (r->held.over)
        return -EFBIG;
    if (r->fields.failed)
        return -ENOMEM;
    walk(r, &run, measure);
    /* Better before the first difference is reported than after it. */
    if (!held_take(&r->held, run.biggest * PACKET_COST))
        return -EFBIG;
    held_give(&r->held, run.biggest * PACKET_COST);
    return walk(r, &run, direction);
}

void replay_totals(const struct replay *r, struct replay_totals *out)
{
    *out = r->totals;
}
