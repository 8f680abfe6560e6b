/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic replay` tells a device that breaks a rule from one that doesn't: one field of one packet
 * of a good capture is changed, and just that packet differs, by the rule's name. A capture that
 * begins in the middle or has missed packets blames no device.
 */
#include <stdio.h>
#include <string.h>

#include "capture_rig.h"
#include "cm_msg.h"
#include "replay.h"

/* Without its ending. */
static void load_named(const char *name)
{
    char file[64];
    snprintf(file, sizeof(file), "%s.%s", name, strncmp(name, "own-", 4) ? "pcap" : "pcapng");
    load(file);
}

struct tally {
    unsigned differences;
    struct replay_difference first;
};

static void on_difference(void *ctx, const struct replay_difference *d)
{
    struct tally *t = ctx;
    if (!t->differences++)
        t->first = *d;
}

/* Of this packet the capture lacks the last octets: its iCRC. 0 = none. */
#define EVERY UINT32_MAX
static unsigned without_icrc;

/* Replays packets `from`, from + 1, ... without every `miss`-th (0 = all). */
static struct replay_totals replay(unsigned from, unsigned miss, unsigned roles, struct tally *t)
{
    struct replay *r = replay_new(0);
    struct replay_totals totals;
    *t = (struct tally){0};
    for (unsigned i = from; i < packets_n; i++) {
        struct lint_frame f = {.number = i + 1,
                               .ns = packets[i].ns,
                               .data = packets[i].data,
                               .len = packets[i].len,
                               .wire_len = packets[i].len};
        if (i + 1 == without_icrc || without_icrc == EVERY)
            f.len -= WIRE_ICRC_LEN;
        if (!miss || i % miss != miss - 1)
            ck_assert_int_eq(replay_add(r, &f), 0);
    }
    ck_assert_int_eq(replay_run(r, roles, on_difference, NULL, t), 0);
    replay_totals(r, &totals);
    ck_assert_uint_eq(totals.differ, t->differences);
    replay_free(r);
    return totals;
}

/* ---- guilty ---- */

static void nak_sequence(struct wire_pkt *p)
{
    p->syndrome = WIRE_SYN_NAK_SEQ;
}
static void nak_access(struct wire_pkt *p)
{
    p->syndrome = WIRE_SYN_NAK_ACCESS;
}
static void rnr(struct wire_pkt *p)
{
    p->syndrome = WIRE_SYN_RNR | 1;
}
static void later_psn(struct wire_pkt *p)
{
    p->psn += 0x100;
}
static void middle(struct wire_pkt *p)
{
    p->opcode = WIRE_READ_RESP_MIDDLE;
}
static void shorter(struct wire_pkt *p)
{
    p->payload_len -= 4;
}
static void longer_dma(struct wire_pkt *p)
{
    p->dma_len += 4;
}
static void mtu_more_dma(struct wire_pkt *p)
{
    p->dma_len += WIRE_MTU_MAX;
}
static void solicited(struct wire_pkt *p)
{
    p->se = true;
}
static void other_pkey(struct wire_pkt *p)
{
    p->pkey = 0x8012;
}
static void other_address(struct wire_pkt *p)
{
    p->va += 8;
}
static void other_operand(struct wire_pkt *p)
{
    p->swap_add++;
}

#define UD(op) WIRE_OPCODE(WIRE_UD, WIRE_##op)
#define UC(op) WIRE_OPCODE(WIRE_UC, WIRE_##op)

static void asks(struct wire_pkt *p)
{
    p->ackreq = true;
}
static void longer(struct wire_pkt *p)
{
    p->payload_len += 4;
}
static void other_qkey(struct wire_pkt *p)
{
    p->qkey ^= 1;
}
static void more_messages(struct wire_pkt *p)
{
    p->msn += 2;
}
static void fewer_messages(struct wire_pkt *p)
{
    p->msn--;
}
static void no_migration(struct wire_pkt *p)
{
    p->migreq = false;
}
static void rnr_in_data(struct wire_pkt *p)
{
    p->syndrome = WIRE_SYN_RNR | 14;
}
static void read_response(struct wire_pkt *p)
{
    p->opcode = WIRE_READ_RESP_ONLY;
    p->payload_len = 8;
}
static void atomic_ack(struct wire_pkt *p)
{
    p->opcode = WIRE_ATOMIC_ACK;
    p->payload_len = 0;
}
static void longest(struct wire_pkt *p)
{
    p->dma_len = 0x80000001;
}
static void nothing(struct wire_pkt *p)
{
    p->payload_len = 0;
}
static const struct guilty {
    const char *rule, *capture;
    unsigned opcode, nth; /* the nth packet with this opcode, ... */
    bool again;           /* ... of packets whose PSN was there before */
    void (*change)(struct wire_pkt *p);
    enum replay_role role;
    bool more; /* the message number, or a later packet, differs, too */
} guilty[] = {
    /* "ACK-05 an ACK of a packet that has not arrived" */
    {"ACK-05", "golden-inline", WIRE_ACKNOWLEDGE, 1, false, later_psn, REPLAY_RESPONDER},
    /* "ACK-07 a sequence NAK where nothing is missing" */
    {"ACK-07", "golden-send-imm", WIRE_ACKNOWLEDGE, 2, false, nak_sequence, REPLAY_RESPONDER, true},
    /* "RNR-01 an RNR NAK of a WRITE, which takes no receive work request" */
    {"RNR-01", "write-bw-mtu1024", WIRE_ACKNOWLEDGE, 2, false, rnr, REPLAY_RESPONDER, true},
    /* "ACK-06 an access error for a SEND" */
    {"ACK-06", "golden-send-imm", WIRE_ACKNOWLEDGE, 2, false, nak_access, REPLAY_RESPONDER, true},
    /* "REQ-30 READ responses that don't begin with FIRST" */
    {"REQ-30", "golden-mtu256", WIRE_READ_RESP_FIRST, 1, false, middle, REPLAY_RESPONDER},
    /* "RD-05 a READ response that is too short" */
    {"RD-05", "read-lat", WIRE_READ_RESP_MIDDLE, 3, false, shorter, REPLAY_RESPONDER},
    /* "KEY-01 an answer with another P_Key" */
    {"KEY-01", "read-lat", WIRE_READ_RESP_MIDDLE, 3, false, other_pkey, REPLAY_RESPONDER},
    {"KEY-01", "golden-inline", WIRE_ACKNOWLEDGE, 2, false, other_pkey, REPLAY_RESPONDER},
    {"KEY-01", "golden-mixed", WIRE_ATOMIC_ACK, 1, false, other_pkey, REPLAY_RESPONDER},
    /* "ACK-11 an answer that counts more messages than there were, or fewer" */
    {"ACK-11", "own-around-mtu", WIRE_ACKNOWLEDGE, 9, false, more_messages, REPLAY_RESPONDER},
    {"ACK-11", "golden-send-imm", WIRE_ACKNOWLEDGE, 3, false, fewer_messages, REPLAY_RESPONDER},
    /* "REQ-10 AckReq on an ACK" */
    {"REQ-10", "golden-inline", WIRE_ACKNOWLEDGE, 1, false, asks, REPLAY_RESPONDER},
    /* "HDR-03 SE on a READ response" */
    {"HDR-03", "read-lat", WIRE_READ_RESP_MIDDLE, 3, false, solicited, REPLAY_RESPONDER},
    /* "HDR-04 MigReq 0, from an end whose earlier packets had 1" */
    {"HDR-04", "own-around-mtu", WIRE_ACKNOWLEDGE, 9, false, no_migration, REPLAY_RESPONDER},
    {"HDR-04", "own-around-mtu", WIRE_SEND_ONLY, 3, false, no_migration, REPLAY_REQUESTER},
    /* "REQ-02 a MIDDLE that is shorter than the MTU" */
    {"REQ-02", "write-bw-mtu1024", WIRE_WRITE_MIDDLE, 3, false, shorter, REPLAY_REQUESTER},
    /* "RSP-16 a RETH that promises more than comes" */
    {"RSP-16", "write-bw-mtu1024", WIRE_WRITE_FIRST, 1, false, longer_dma, REPLAY_REQUESTER},
    /* "HDR-03 SE on a FIRST" */
    {"HDR-03", "send-bw-mtu1024", WIRE_SEND_FIRST, 1, false, solicited, REPLAY_REQUESTER},
    /* "RTX-05 a retransmission is shorter; has another operand" */
    {"RTX-05", "fault-lose-requests", WIRE_SEND_MIDDLE, 1, true, shorter, REPLAY_REQUESTER},
    {"RTX-05", "fault-lose-requests", WIRE_FETCH_ADD, 1, true, other_operand, REPLAY_REQUESTER},
    /* "RD-12 a READ repeated from the middle asks for other memory" */
    {"RD-12", "fault-lose-responses", WIRE_READ_REQUEST, 7, false, other_address, REPLAY_REQUESTER},
    {"RD-12", "fault-lose-responses", WIRE_READ_REQUEST, 7, false, longer_dma, REPLAY_REQUESTER},
    {"RD-12", "fault-lose-responses", WIRE_READ_REQUEST, 7, false, mtu_more_dma, REPLAY_REQUESTER},
    /* "RSP-15 a READ of more than 2^31 octets: no request after it is one of its responses" */
    {"RSP-15", "own-read", WIRE_READ_REQUEST, 2, false, longest, REPLAY_REQUESTER},
    {"RSP-15", "write-bw-mtu1024", WIRE_WRITE_FIRST, 1, false, longest, REPLAY_REQUESTER},
    /* "REQ-02 an empty LAST" */
    {"REQ-02", "write-bw-mtu1024", WIRE_WRITE_LAST, 2, false, nothing, REPLAY_REQUESTER},
    /* "REQ-28 a READ response for an ATOMIC, the answer of an ATOMIC for a SEND" */
    {"REQ-28", "golden-mixed", WIRE_ATOMIC_ACK, 1, false, read_response, REPLAY_RESPONDER},
    {"REQ-28", "golden-send-imm", WIRE_ACKNOWLEDGE, 2, false, atomic_ack, REPLAY_RESPONDER},
    /* "REQ-31 a READ response that says RNR" */
    {"REQ-31", "read-lat", WIRE_READ_RESP_LAST, 3, false, rnr_in_data, REPLAY_RESPONDER},
    /* "UC-02 AckReq on a service without acknowledgements" */
    {"UC-02", "golden-ud", UD(SEND_ONLY), 2, false, asks, REPLAY_REQUESTER},
    {"UC-02", "golden-uc", UC(WRITE_MIDDLE), 2, false, asks, REPLAY_REQUESTER},
    /* "KEY-01 a datagram with another P_Key than the earlier ones" */
    {"KEY-01", "ud-pingpong", UD(SEND_ONLY), 3, false, other_pkey, REPLAY_REQUESTER},
    /* "GSI-01 queue pair 1 has a Q_Key of its own" */
    {"GSI-01", "own-cm", UD(SEND_ONLY), 2, false, other_qkey, REPLAY_REQUESTER},
    /* "UC-04 a MIDDLE longer than the MTU ends its message" */
    {"UC-04", "uc-pingpong", UC(SEND_MIDDLE), 2, false, longer, REPLAY_RESPONDER, true},
};

static bool seen_before(unsigned at, const struct wire_pkt *p)
{
    for (unsigned i = 0; i < at; i++) {
        struct wire_pkt q;
        if (wire_parse(packets[i].data, packets[i].len, 0, &q) == WIRE_OK && q.psn == p->psn &&
            q.dqpn == p->dqpn && q.opcode == p->opcode)
            return true;
    }
    return false;
}

/* Changes it; returns its number. */
static unsigned change(const struct guilty *g)
{
    unsigned left = g->nth;
    for (unsigned i = 0; i < packets_n; i++) {
        struct wire_pkt p;
        uint8_t old[PACKET_MAX];
        if (wire_parse(packets[i].data, packets[i].len, 0, &p) != WIRE_OK ||
            p.opcode != g->opcode || (g->again && !seen_before(i, &p)) || --left)
            continue;
        memcpy(old, packets[i].data, packets[i].len);
        uint32_t from = p.payload_off;
        g->change(&p);
        size_t off = wire_build(packets[i].data, PACKET_MAX, &p);
        ck_assert_uint_gt(off, 0);
        memcpy(packets[i].data + off, old + from,
               p.payload_len < packets[i].len - from ? p.payload_len : packets[i].len - from);
        packets[i].len = (uint32_t)wire_frame_len(&p);
        wire_icrc_seal(packets[i].data, packets[i].len, p.ip_off, p.bth_off);
        return i + 1;
    }
    ck_abort_msg("%s: no such packet", g->capture);
    return 0;
}

START_TEST(a_changed_field_is_found)
{
    const struct guilty *g = &guilty[_i];
    struct tally before, after;
    load_named(g->capture);
    replay(0, 0, g->role, &before);
    unsigned number = change(g);
    replay(0, 0, g->role, &after);
    ck_assert_uint_eq(before.differences, 0);
    ck_assert_msg(after.differences > 0, "%s in %s: not found", g->rule, g->capture);
    ck_assert_msg(g->more || after.differences == 1, "%s in %s: %u differences", g->rule,
                  g->capture, after.differences);
    ck_assert_msg(after.first.number == number && !strcmp(after.first.rule, g->rule),
                  "%s at packet %u of %s: found %s at packet %llu (%s)", g->rule, number,
                  g->capture, after.first.rule, (unsigned long long)after.first.number,
                  after.first.field);
}
END_TEST

static void much_longer_dma(struct wire_pkt *p)
{
    p->dma_len += 65536;
}
static void odd_address(struct wire_pkt *p)
{
    p->va += 4;
}

/* A changed packet's effects on others: reported once, with the rule that it breaks. */
static const struct follows {
    const char *rule, *why;
    unsigned opcode;
    void (*change)(struct wire_pkt *p);
    unsigned role;
} follows[] = {
    /* "REQ-06 a READ that has the PSNs of all requests after it" */
    {"REQ-06", "one of a READ's", WIRE_READ_REQUEST, much_longer_dma, REPLAY_BOTH},
    /* "ATM-03 an ATOMIC is executed that must be refused" */
    {"ATM-03", "refused packet", WIRE_FETCH_ADD, odd_address, REPLAY_BOTH},
    /* "KEY-03 ... or dropped, with another P_Key" */
    {"KEY-03", "dropped packet", WIRE_FETCH_ADD, other_pkey, REPLAY_RESPONDER},
};

START_TEST(what_follows_is_said_once)
{
    const struct follows *f = &follows[_i];
    struct guilty g = {.opcode = f->opcode, .nth = 1, .change = f->change};
    struct tally t;
    load_named("golden-mixed");
    change(&g);
    replay(0, 0, f->role, &t);
    ck_assert_msg(
        t.differences == 1 && !strcmp(t.first.rule, f->rule) && strstr(t.first.why, f->why),
        "%s: %u differences, the first %s (%s)", f->rule, t.differences, t.first.rule, t.first.why);
}
END_TEST

static void as_it_is(struct wire_pkt *p)
{
    (void)p;
}

/* "RTX-05 a retransmission has another payload": both look the same, so the report names the octet
 * and the packet. */
START_TEST(payload_sent_again)
{
    struct guilty g = {"RTX-05", "fault-lose-requests", WIRE_SEND_MIDDLE, 1, true,
                       as_it_is, REPLAY_REQUESTER};
    struct tally t;
    struct wire_pkt p, q;
    load_named(g.capture);
    unsigned number = change(&g), first = 0;
    ck_assert_int_eq(wire_parse(packets[number - 1].data, packets[number - 1].len, 0, &p), WIRE_OK);
    while (wire_parse(packets[first].data, packets[first].len, 0, &q) != WIRE_OK ||
           q.psn != p.psn || q.dqpn != p.dqpn || q.opcode != p.opcode)
        first++;
    packets[number - 1].data[p.payload_off + 7] ^= 0xFF;
    wire_icrc_seal(packets[number - 1].data, packets[number - 1].len, p.ip_off, p.bth_off);
    replay(0, 0, REPLAY_REQUESTER, &t);
    char why[REPLAY_TEXT_MAX];
    uint8_t was = packets[first].data[q.payload_off + 7];
    snprintf(why, sizeof(why),
             "the retransmission differs from packet %u: octet 7 of the payload was 0x%02x, "
             "is 0x%02x",
             first + 1, was, was ^ 0xFF);
    ck_assert_uint_eq(t.differences, 1);
    ck_assert_uint_eq(t.first.number, number);
    ck_assert_str_eq(t.first.why, why);
}
END_TEST

/* The same for an octet of a MAD: in lib/cm/cm_msg.c the layout. */
static const struct guilty_mad {
    const char *rule, *capture;
    unsigned packet, octet; /* from 1; of the MAD */
    uint8_t change;
    enum replay_role role;
} guilty_mads[] = {
    /* "CM-14 a REP of another transaction than the REQ's" */
    {"CM-14", "own-cm", 2, 15, 1, REPLAY_RESPONDER},
    /* "CM-07 a REP that grants more READs than were asked for" */
    {"CM-07", "own-cm", 2, 48, 0x80, REPLAY_RESPONDER},
    /* "CM-29 a refusal for another reason than a missing listener" */
    {"CM-29", "own-cm-reject", 2, 35, 1, REPLAY_RESPONDER},
    /* "CM-05 a REQ that doesn't name its sender" */
    {"CM-05", "own-cm", 1, 95, 1, REPLAY_REQUESTER},
    /* "CM-02 ... or, in its private data, the host that it is for" */
    {"CM-02", "own-cm", 1, 164 + 35, 1, REPLAY_REQUESTER},
};

START_TEST(a_changed_mad_is_found)
{
    const struct guilty_mad *g = &guilty_mads[_i];
    struct tally before, after;
    struct wire_pkt p;
    load_named(g->capture);
    replay(0, 0, g->role, &before);
    ck_assert_uint_eq(before.differences, 0);
    struct packet *k = &packets[g->packet - 1];
    ck_assert_int_eq(wire_parse(k->data, k->len, 0, &p), WIRE_OK);
    k->data[p.payload_off + g->octet] ^= g->change;
    wire_icrc_seal(k->data, k->len, p.ip_off, p.bth_off);
    replay(0, 0, g->role, &after);
    ck_assert_msg(after.differences > 0, "%s in %s: not found", g->rule, g->capture);
    ck_assert_msg(after.first.number == g->packet && !strcmp(after.first.rule, g->rule),
                  "%s at packet %u of %s: found %s at packet %llu (%s)", g->rule, g->packet,
                  g->capture, after.first.rule, (unsigned long long)after.first.number,
                  after.first.field);
}
END_TEST

/* ---- innocent ---- */

/* "CM-29 a refusal for a reason that a host may have for itself": the REQ doesn't show it */
START_TEST(a_host_refuses_for_its_own_reasons)
{
    static const uint8_t reasons[] = {1, 3, 5, 10, 12, 24, 26, 28, 30, 35};
    const unsigned reason_at = 24 + 11;
    struct tally t;
    struct wire_pkt p;
    for (size_t i = 0; i < sizeof(reasons); i++) {
        load_named("own-cm-reject");
        struct packet *k = &packets[1];
        ck_assert_int_eq(wire_parse(k->data, k->len, 0, &p), WIRE_OK);
        ck_assert_uint_eq(k->data[p.payload_off + reason_at], 8);
        k->data[p.payload_off + reason_at] = reasons[i];
        wire_icrc_seal(k->data, k->len, p.ip_off, p.bth_off);
        struct replay_totals totals = replay(0, 0, REPLAY_BOTH, &t);
        ck_assert_msg(!t.differences, "reason %u: %s at packet %llu", reasons[i], t.first.rule,
                      (unsigned long long)t.first.number);
        ck_assert_uint_gt(totals.compared, 0);
    }
}
END_TEST

static const char *const innocent[] = {
    "own-cm",
    "fault-delay-steady",
    "fault-duplicate",
    "fault-lose-requests",
    "fault-loss-1pct",
    "golden-mixed",
    "golden-mtu1024",
    "golden-mtu256",
    "read-lat",
    "send-bw-mtu1024",
    "uc-pingpong",
    "write-bw-mtu256",
    "own-around-mtu",
    "own-psn-wrap",
    "own-duplicate",
    "own-windows",
#define FEW_FAULTS 16 /* of these */
    "own-loss",
    "own-reorder",
    "own-all-faults",
    "own-rnr",
    "own-rnr-loss",
    "own-lose-atomics",
    "own-lose-responses",
    "own-selective-repeat",
    "own-selective-mixed",
};

/* "CM-14 a restarted host reuses its ids", for another transaction; the first connection's last
 * DREP is lost */
START_TEST(a_host_begins_anew)
{
    const unsigned attr_at = 17, tid_at = 15;
    unsigned n = 0;
    struct tally t = {0};
    struct replay *r = replay_new(0);
    struct wire_pkt p;
    load_named("own-cm");
    for (unsigned life = 0; life < 2; life++)
        for (unsigned i = 0; i < packets_n; i++) {
            struct packet *k = &packets[i];
            ck_assert_int_eq(wire_parse(k->data, k->len, 0, &p), WIRE_OK);
            bool cm = p.dqpn == WIRE_QPN_GSI;
            if (!life && cm && k->data[p.payload_off + attr_at] == CM_DREP)
                continue;
            k->data[p.payload_off + tid_at] ^= (uint8_t)(cm ? life : 0);
            wire_icrc_seal(k->data, k->len, p.ip_off, p.bth_off);
            struct lint_frame f = {.number = ++n,
                                   .ns = k->ns + life * 10000000000ull,
                                   .data = k->data,
                                   .len = k->len,
                                   .wire_len = k->len};
            ck_assert_int_eq(replay_add(r, &f), 0);
        }
    ck_assert_int_eq(replay_run(r, REPLAY_BOTH, on_difference, NULL, &t), 0);
    replay_free(r);
    ck_assert_msg(!t.differences, "%s at packet %llu", t.first.rule,
                  (unsigned long long)t.first.number);
}
END_TEST

/* "ACK-05, ACK-07, RD-05: a queue pair not captured from its start, or not whole, breaks no rule"
 */
START_TEST(half_a_capture_accuses_nobody)
{
    struct tally t;
    load_named(innocent[_i]);
    for (unsigned part = 1; part < 16; part++) {
        unsigned from = packets_n * part / 16;
        replay(from, 0, REPLAY_BOTH, &t);
        ck_assert_msg(!t.differences, "%s from packet %u: %s at packet %llu: %s / %s", innocent[_i],
                      from + 1, t.first.rule, (unsigned long long)t.first.number, t.first.ours,
                      t.first.capture);
    }
    /* Where much was lost as well, it is unknown which NAK was due. */
    unsigned most = strcmp(innocent[_i], "fault-lose-requests") && _i < FEW_FAULTS ? 120 : 0;
    for (unsigned miss = 5; miss < most; miss += 19) {
        replay(0, miss, REPLAY_BOTH, &t);
        ck_assert_msg(!t.differences, "%s without every %uth: %s at packet %llu: %s / %s",
                      innocent[_i], miss, t.first.rule, (unsigned long long)t.first.number,
                      t.first.ours, t.first.capture);
    }
}
END_TEST

/* "ACK-05, RD-10: packets lost and sent again uncaptured, with more after them" */
START_TEST(a_hole_accuses_nobody)
{
    static const unsigned missed[] = {20, 121, 126}; /* of own-loss */
    struct tally t;
    load_named("own-loss");
    for (unsigned i = 0; i < sizeof(missed) / sizeof(*missed); i++)
        packets[missed[i] - 1].len = 0;
    replay(0, 0, REPLAY_BOTH, &t);
    ck_assert_msg(!t.differences, "%s at packet %llu: %s / %s", t.first.rule,
                  (unsigned long long)t.first.number, t.first.ours, t.first.capture);
}
END_TEST

/* "KEY-01, KEY-03: one end is a limited member of the partition" */
START_TEST(a_limited_member_accuses_nobody)
{
    struct tally t;
    struct wire_addr first = {0};
    load_named("golden-mixed");
    for (unsigned i = 0; i < packets_n; i++) {
        struct wire_pkt p;
        ck_assert_int_eq(wire_parse(packets[i].data, packets[i].len, 0, &p), WIRE_OK);
        if (!i)
            first = p.sip;
        if (!memcmp(&p.sip, &first, sizeof(first)) != (_i == 0))
            continue;
        packets[i].data[p.bth_off + 2] &= 0x7F;
        wire_icrc_seal(packets[i].data, packets[i].len, p.ip_off, p.bth_off);
    }
    replay(0, 0, REPLAY_BOTH, &t);
    ck_assert_msg(!t.differences, "%s at packet %llu: %s / %s", t.first.rule,
                  (unsigned long long)t.first.number, t.first.ours, t.first.capture);
}
END_TEST

/* "RD-12, RTX-05, KEY-01: a packet without its iCRC may be damaged" */
static const struct guilty cut[] = {
    {"RD-12", "fault-lose-responses", WIRE_READ_REQUEST, 7, false, other_address, REPLAY_REQUESTER},
    {"RTX-05", "fault-lose-requests", WIRE_FETCH_ADD, 1, true, other_operand, REPLAY_REQUESTER},
    {"KEY-01", "read-lat", WIRE_READ_RESP_MIDDLE, 3, false, other_pkey, REPLAY_RESPONDER},
};

START_TEST(a_cut_packet_accuses_nobody)
{
    struct tally t;
    load_named(cut[_i].capture);
    without_icrc = change(&cut[_i]);
    replay(0, 0, cut[_i].role, &t);
    ck_assert_msg(!t.differences, "%s at packet %llu", t.first.rule,
                  (unsigned long long)t.first.number);
}
END_TEST

/* "KEY-01 of packets without iCRCs: a few may be damaged, more than three are a habit" */
START_TEST(a_habit_of_cut_packets_is_found)
{
    struct guilty g = {.opcode = WIRE_READ_RESP_MIDDLE, .change = other_pkey};
    struct tally t;
    load_named("read-lat");
    without_icrc = EVERY;
    for (unsigned n = 1; n <= 5; n++) {
        g.nth = n;
        change(&g);
        replay(0, 0, REPLAY_RESPONDER, &t);
        ck_assert_uint_eq(t.differences, n <= 3 ? 0 : n - 3);
    }
    ck_assert_str_eq(t.first.rule, "KEY-01");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("replay captures");
    TCase *c = tcase_create("replay captures");
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, a_changed_field_is_found, 0, sizeof(guilty) / sizeof(guilty[0]));
    tcase_add_loop_test(c, what_follows_is_said_once, 0, sizeof(follows) / sizeof(follows[0]));
    tcase_add_test(c, payload_sent_again);
    tcase_add_loop_test(c, a_changed_mad_is_found, 0, sizeof(guilty_mads) / sizeof(guilty_mads[0]));
    tcase_add_test(c, a_host_begins_anew);
    tcase_add_test(c, a_host_refuses_for_its_own_reasons);
    tcase_add_loop_test(c, half_a_capture_accuses_nobody, 0,
                        sizeof(innocent) / sizeof(innocent[0]));
    tcase_add_test(c, a_hole_accuses_nobody);
    tcase_add_loop_test(c, a_cut_packet_accuses_nobody, 0, sizeof(cut) / sizeof(cut[0]));
    tcase_add_loop_test(c, a_limited_member_accuses_nobody, 0, 2);
    tcase_add_test(c, a_habit_of_cut_packets_is_found);
    suite_add_tcase(s, c);
    return unit_run(s);
}
