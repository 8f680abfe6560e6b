/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames come in and are kept, flow by flow; then each direction of a connection is replayed, once
 * for each role, with the choices that explain the capture best.
 */
#include "replay.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fields.h"
#include "replay_priv.h"
#include "wire_bytes.h"

#define OCTETS_MAX  (1ull << 30)
#define BACK_FLOWS  1024u /* looked at for the other direction of queue pair 1 */
#define PORTS_MAX   16u
#define KINDS_MAX   16u
#define KIND_WEIGHT (1ull << 32) /* differences that one more rule is worth */
#define PARSE_FLAGS (WIRE_P_LOOPBACK | WIRE_P_V1 | WIRE_P_QINQ)

struct replay {
    struct lint *lint; /* it knows which packets belong together */
    struct packet *packet;
    size_t packets, room;
    size_t *of_flow, *next; /* first packet of each flow, the next one of its flow; + 1, 0 = none */
    uint64_t octets, octets_max;
    struct fields fields; /* what it says of packets matters for these only */
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
    r->octets_max = max_octets ? max_octets : OCTETS_MAX;
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
    for (size_t i = 0; i < r->packets; i++)
        free((void *)(uintptr_t)r->packet[i].frame);
    free(r->packet);
    free(r->of_flow);
    free(r->next);
    lint_free(r->lint);
    fields_free(&r->fields);
    free(r);
}

static int keep(struct replay *r, const struct packet *p)
{
    if (r->packets == r->room) {
        size_t room = r->room ? 2 * r->room : 256;
        void *more = realloc(r->packet, room * sizeof(*r->packet));
        if (!more)
            return -ENOMEM;
        r->packet = more;
        r->room = room;
    }
    uint8_t *frame = malloc(p->have ? p->have : 1);
    if (!frame)
        return -ENOMEM;
    memcpy(frame, p->frame, p->have);
    r->packet[r->packets] = *p;
    r->packet[r->packets++].frame = frame;
    return 0;
}

static bool may_replay(uint8_t service)
{
    return service == WIRE_RC || service == WIRE_UC || service == WIRE_UD;
}

/* Captured before the NIC filled in the IPv4 header's checksum? */
static bool no_checksum(const struct lint_frame *f)
{
    struct wire_pkt p;
    wire_parse_cut(f->data, f->len, f->wire_len > f->len ? f->wire_len : f->len,
                   PARSE_FLAGS | WIRE_P_IP_CSUM_OK, &p);
    return p.ip_version == 4 && p.ip_off + WIRE_IPV4_LEN <= f->len &&
           wire_get16(f->data + p.ip_off + 10) == 0;
}

/* The packets that the host which captured has merged into one frame. */
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
    struct wire_pkt selective;
    bool private = v.kind == LINT_BROKEN && v.opcode >= WIRE_SELECTIVE &&
                   wire_parse_cut(f->data, f->len, f->wire_len > f->len ? f->wire_len : f->len,
                                  PARSE_FLAGS | WIRE_P_SELECTIVE, &selective) == WIRE_OK;
    r->totals.damaged += v.kind == LINT_BROKEN && !private;
    if (v.flow == LINT_NO_FLOW)
        return 0;
    if (r->octets + f->len > r->octets_max)
        return -EFBIG;
    r->octets += f->len;
    struct packet p = {.number = f->number,
                       .ns = f->ns,
                       .frame = f->data,
                       .have = f->len,
                       .len = f->wire_len > f->len ? f->wire_len : f->len,
                       .flow = v.flow,
                       .interface = f->interface,
                       .sent = f->sent,
                       .again = v.flags & LINT_V_AGAIN,
                       .duplicate = v.flags & LINT_V_DUPLICATE,
                       .room = UINT32_MAX};
    if (private) {
        p.pkt = selective;
        p.selective = p.pkt.payload_len <= WIRE_MTU_MAX;
        return keep(r, &p);
    }
    unsigned flags = PARSE_FLAGS | (f->sent || no_checksum(f) ? WIRE_P_IP_CSUM_OK : 0);
    if (v.kind != LINT_BROKEN)
        flags |= WIRE_P_NO_ICRC; /* it is right, or there is none */
    enum wire_verdict verdict = wire_parse_cut(p.frame, p.have, p.len, flags, &p.pkt);
    p.good = verdict == WIRE_OK && !(v.flags & LINT_V_CORRUPT) &&
             p.pkt.payload_len <= WIRE_MTU_MAX && may_replay(wire_opcodes[p.pkt.opcode].service);
    return keep(r, &p);
}

void judge_differ(struct judge *j, const struct packet *p, const char *rule, const char *field,
                  const char *ours, const char *why)
{
    struct replay_difference d = {.connection = j->out->connection,
                                  .role = j->out->role,
                                  .number = p->number,
                                  .ns = p->ns,
                                  .rule = rule,
                                  .field = field};
    j->out->differ++;
    snprintf(d.why, sizeof(d.why), "%s", why);
    snprintf(d.ours, sizeof(d.ours), "%s", ours);
    wire_dump_cut(d.capture, sizeof(d.capture), p->frame, p->have, p->len, 0);
    if (j->report)
        j->report(j->ctx, &d);
}

/* Chain the packets of each flow. */
static int index_flows(struct replay *r, uint32_t flows)
{
    r->of_flow = calloc(flows ? flows : 1, sizeof(*r->of_flow));
    r->next = calloc(r->packets ? r->packets : 1, sizeof(*r->next));
    if (!r->of_flow || !r->next)
        return -ENOMEM;
    for (size_t i = r->packets; i-- > 0;) {
        size_t *head = &r->of_flow[r->packet[i].flow];
        r->next[i] = *head;
        *head = i + 1;
    }
    return 0;
}

/* The packets of two flows, by value: evidence is marked in them. */
static int collect(const struct replay *r, struct direction *d)
{
    size_t a = r->of_flow[d->flow.id], n = 0;
    size_t b = d->answers.id == LINT_NO_FLOW ? 0 : r->of_flow[d->answers.id];
    for (size_t i = a; i; i = r->next[i - 1])
        n++;
    for (size_t i = b; i; i = r->next[i - 1])
        n++;
    if (!(d->packet = calloc(n ? n : 1, sizeof(*d->packet))))
        return -ENOMEM;
    while (a || b) {
        size_t *least = !b || (a && a < b) ? &a : &b;
        d->packet[d->packets++] = r->packet[*least - 1];
        *least = r->next[*least - 1];
    }
    return 0;
}

/* Interfaces of the end whose place we take: where its packets went out; several where links are
 * bonded, or the file has sections that name theirs otherwise. */
struct ports {
    uint32_t interface[PORTS_MAX];
    unsigned n;
    bool twice; /* packets pass more than one of them: a bridge */
};

static bool is_port(const struct ports *s, uint32_t interface)
{
    unsigned i = 0;
    while (i < s->n && s->interface[i] != interface)
        i++;
    return i < s->n;
}

/* False when there are too many. */
static bool add_port(struct ports *s, uint32_t interface)
{
    if (is_port(s, interface))
        return true;
    if (s->n == PORTS_MAX)
        return false;
    s->interface[s->n++] = interface;
    return true;
}

/* False when there is none, or the other end's packets went out there, too. */
static bool find_ports(const struct direction *d, uint32_t own, struct ports *s)
{
    struct ports other = {.n = 0}; /* where there is more than packets that came in */
    *s = other;
    for (size_t i = 0; i < d->packets; i++) {
        const struct packet *p = &d->packet[i];
        if (p->good && p->sent && p->flow == own && !add_port(s, p->interface))
            return false;
        if (p->good && (p->sent || p->flow == own) && !add_port(&other, p->interface))
            return false;
    }
    size_t all = 0, again = 0;
    bool any = s->n;
    for (size_t i = 0; i < d->packets && any; i++) {
        const struct packet *p = &d->packet[i];
        bool port = is_port(s, p->interface);
        if (!p->good)
            continue;
        if (port && p->sent && p->flow != own)
            return false;
        if (!port && !is_port(&other, p->interface) && !add_port(s, p->interface))
            return false;
        all++;
        again += p->again;
    }
    s->twice = again > all / 3;
    return any;
}

/* Where the end was captured whose place we take, that is: where its packets went out, the capture
 * shows just what came in. Else, if one interface has all that this end sent, what that one shows.
 * Elsewhere each packet counts where it was first seen; also where those of the other end went out,
 * too: a machine with both, and a capture that doesn't name its interfaces. */
static void find_view(struct direction *d, enum replay_role role)
{
    uint32_t own = role == REPLAY_RESPONDER ? d->answers.id : d->flow.id, interface = 0;
    struct ports ports;
    bool exact = find_ports(d, own, &ports), one = !exact && vantage_find(d, own, &interface);
    d->exact = d->own_port = exact;
    for (size_t i = 0; i < d->packets; i++) {
        struct packet *p = &d->packet[i];
        bool there = one ? p->interface == interface : !p->again;
        if (exact)
            there = is_port(&ports, p->interface) && (p->flow != own || p->sent) &&
                    !(p->again && ports.n > 1 && ports.twice);
        p->usable = p->good && there;
    }
}

/* Selective repeat is in use when both ends have said so. */
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

/* The rules that are found broken. */
struct kinds {
    const char *rule[KINDS_MAX];
    unsigned n;
};

static void on_kind(void *ctx, const struct replay_difference *d)
{
    struct kinds *k = ctx;
    unsigned i = 0;
    while (i < k->n && strcmp(k->rule[i], d->rule) != 0)
        i++;
    if (i == k->n && k->n < KINDS_MAX)
        k->rule[k->n++] = d->rule;
}

/* Without a word: how badly does it differ? One habit is likelier than several accidents. */
static int try_responder(struct direction *d, uint64_t *differ)
{
    struct replay_outcome out = {.connection = d->connection, .role = REPLAY_RESPONDER};
    struct kinds kinds = {.n = 0};
    struct judge judge = {.report = on_kind, .ctx = &kinds, .out = &out};
    evidence_find(d);
    int rc = as_responder(d, &judge);
    *differ = out.differ + judge.excused + (kinds.n + (judge.excused != 0)) * KIND_WEIGHT;
    return rc;
}

/* What the capture doesn't tell is chosen such that it explains most: whether WRITE packets that
 * come early are kept, whether a NAK may have crossed with what it asks for, and whether packets
 * may be lost and overtaken between the port and the responder behind it (a queue for ingress, a
 * socket that is full). */
static int find_choices(struct direction *d)
{
    static const struct {
        bool keeps_early;
        uint8_t trip_share;
    } choice[] = {{false, 0}, {false, 6}, {false, 7}, {true, 0}, {true, 6}, {true, 7}};
    const size_t n = sizeof(choice) / sizeof(choice[0]);
    uint64_t least = UINT64_MAX;
    size_t best = 0;
    for (size_t i = 0; i < (d->own_port ? 2 * n : n) && least; i++) {
        uint64_t differ = 0;
        d->keeps_early = choice[i % n].keeps_early;
        d->trip_share = choice[i % n].trip_share;
        d->exact = d->own_port && i < n;
        int rc = try_responder(d, &differ);
        if (rc)
            return rc;
        if (differ < least) {
            least = differ;
            best = i;
        }
    }
    d->keeps_early = choice[best % n].keeps_early;
    d->trip_share = choice[best % n].trip_share;
    d->exact = d->own_port && best < n;
    evidence_find(d);
    return 0;
}

static int one_role(struct replay *r, struct direction d, enum replay_role role, struct judge *j,
                    replay_result result)
{
    struct replay_outcome out = {.connection = d.connection, .role = role, .flow = d.flow};
    if (d.flow.unsplit || d.answers.unsplit)
        return 0; /* packets are missing that the capture could have had */
    bool datagrams = d.flow.service == WIRE_UD, cm = datagrams && d.answers.id != LINT_NO_FLOW;
    out.cm = cm;
    find_view(&d, role);
    if (!datagrams) {
        evidence_mtu(&d);
        d.doubled = vantage_doubled(&d);
        order_restore(&d);
        find_selective(&d);
        evidence_find(&d);
        if (!d.known_base)
            return 0;
    }
    int rc = 0;
    if (role == REPLAY_RESPONDER && d.flow.service == WIRE_RC)
        rc = find_choices(&d);
    if (rc)
        return rc;
    j->out = &out;
    rc = cm                         ? as_cm(&d, j)
         : datagrams                ? as_datagram(&d, j)
         : role == REPLAY_RESPONDER ? as_responder(&d, j)
                                    : as_requester(&d, j);
    if (!rc && !datagrams && d.flow.service == WIRE_RC && out.compared)
        fields_judge(&r->fields, &d, j);
    r->totals.compared += out.compared;
    r->totals.differ += out.differ;
    r->totals.replayed += out.compared != 0;
    if (!rc && result && out.compared)
        result(j->ctx, &out);
    return rc;
}

/* Nobody answers. Has the requester repeated what it sent first until it gave up, as if nobody was
 * there? Else the capture has only one direction. */
static bool given_up(const struct direction *d)
{
    uint32_t first = 0, highest = 0;
    bool any = false, repeated = false;
    for (size_t i = 0; i < d->packets; i++) {
        const struct packet *p = &d->packet[i];
        if (!p->good || !(packet_flags(p) & WIRE_F_REQUEST))
            continue;
        if (!any)
            first = highest = p->pkt.psn;
        else if (p->pkt.psn == first)
            repeated = true;
        else if (wire_psn_diff(p->pkt.psn, highest) > 0) {
            highest = p->pkt.psn;
            repeated = false;
        }
        any = true;
    }
    return repeated;
}

/* The responder of such a connection has broken no rule: there may be none. */
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

static int direction(struct replay *r, uint32_t connection, const struct lint_flow_info *flow,
                     const struct lint_flow_info *answers, unsigned roles, struct judge *j,
                     replay_result result)
{
    struct direction d = {.flow = *flow, .answers = *answers, .connection = connection};
    int rc = collect(r, &d);
    if (!rc && d.packets) {
        bool answered = answers->id != LINT_NO_FLOW;
        if (roles & REPLAY_RESPONDER && (answered || flow->service != WIRE_RC))
            rc = one_role(r, d, REPLAY_RESPONDER, j, result);
        else if (roles & REPLAY_RESPONDER)
            unanswered(r, &d, j, result);
        if (!rc && roles & REPLAY_REQUESTER)
            rc = one_role(r, d, REPLAY_REQUESTER, j, result);
    }
    free(d.packet);
    return rc;
}

/* The other direction of what two hosts' queue pairs 1 say to each other, if it comes later. */
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

int replay_run(struct replay *r, unsigned roles, replay_report report, replay_result result,
               void *ctx)
{
    struct judge j = {.report = report, .ctx = ctx};
    struct lint_totals t;
    int rc = 0;
    lint_end(r->lint);
    lint_totals(r->lint, &t);
    fields_sort(&r->fields);
    if (r->fields.failed)
        return -ENOMEM;
    if (!r->next)
        rc = index_flows(r, t.flows);
    for (uint32_t i = 0; i < t.flows && !rc; i++) {
        struct lint_flow_info a, b = {.id = LINT_NO_FLOW};
        if (!lint_flow_info(r->lint, i, &a) || !may_replay(a.service))
            continue;
        if (a.unsure)
            a.peer = LINT_NO_FLOW; /* the answers may be another connection's */
        if ((a.peer != LINT_NO_FLOW && a.peer < i))
            continue;
        bool pair = a.peer != LINT_NO_FLOW && lint_flow_info(r->lint, a.peer, &b);
        r->totals.connections++;
        rc = direction(r, r->totals.connections, &a, &b, roles, &j, result);
        if (!rc && find_back(r, t.flows, &a, &b))
            rc = direction(r, r->totals.connections, &a, &b, roles, &j, result);
        if (!rc && pair)
            rc = direction(r, r->totals.connections, &b, &a, roles, &j, result);
    }
    return rc;
}

void replay_totals(const struct replay *r, struct replay_totals *out)
{
    *out = r->totals;
}
