/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See replay_rig.h.
 */
#include "replay_rig.h"

#include <string.h>

#include "unit.h"
#include "wire_bytes.h"

#define IPV4_CSUM (WIRE_ETH_LEN + 10u)

bool is_answer(const struct step *s)
{
    return wire_opcodes[s->opcode].flags & WIRE_F_RESPONSE;
}

static uint32_t payload_of(uint8_t opcode)
{
    unsigned f = wire_opcodes[opcode].flags;
    if (!(f & WIRE_F_PAYLOAD))
        return 0;
    return f & (WIRE_F_FIRST | WIRE_F_MIDDLE) || (f & WIRE_F_READ && !(f & WIRE_F_ONLY)) ? MTU : 8;
}

static uint32_t psns_of(const struct step *s)
{
    return s->dma_len > MTU ? (s->dma_len - 1) / MTU + 1 : 1;
}

/* Is it a READ with a PSN that no earlier READ covers? */
static bool new_read(const struct step *all, const struct step *s)
{
    for (const struct step *e = all; e < s; e++)
        if (e->opcode == WIRE_READ_REQUEST && s->psn - e->psn < psns_of(e))
            return false;
    return s->opcode == WIRE_READ_REQUEST;
}

/* Messages up to this PSN: the first has 10, and a READ may have more than one. */
static uint32_t msn_of(const struct step *all, uint32_t psn)
{
    uint32_t msn = psn - 9;
    for (const struct step *s = all; s && s->opcode != 0xFF; s++)
        if (new_read(all, s) && psn > s->psn)
            msn -= psn - s->psn < psns_of(s) ? psn - s->psn : psns_of(s) - 1;
    return msn;
}

size_t make(const struct step *all, const struct step *s, enum ids kind, unsigned n, uint8_t *frame,
            size_t size)
{
    bool answer = is_answer(s);
    struct wire_pkt p = {
        .dmac = {2, 0, 0, 0, 0, answer ? 1 : 2},
        .smac = {2, 0, 0, 0, 0, answer ? 2 : 1},
        .ip_version = kind == IPV6 ? 6 : 4,
        .ttl = 64,
        .ip_id = (uint16_t)(kind == IDS_COUNT  ? 100 + n - s->copy
                            : kind == IDS_SAME ? 1
                                               : 0),
        .ip_flags = 2,
        .sip = wire_addr_v4(answer ? 0x0A000002 : 0x0A000001),
        .dip = wire_addr_v4(answer ? 0x0A000001 : 0x0A000002),
        .sport = 0xC123,
        .opcode = s->opcode,
        .migreq = true,
        .pkey = WIRE_PKEY_DEFAULT,
        .dqpn = answer ? 0x11 : 0x22,
        .psn = s->psn,
        .syndrome = s->syndrome,
        .msn =
            s->msn ? s->msn : msn_of(all, s->psn) - (s->syndrome >= WIRE_SYN_RNR), /* not counted */
        .va = 0x1000 + s->off + (s->opcode == WIRE_READ_REQUEST ? s->psn * MTU : 0),
        .rkey = 5,
        .dma_len = s->dma_len ? s->dma_len : 8,
        .swap_add = 1,
        .payload_len = payload_of(s->opcode),
    };
    if (kind == IPV6) {
        wire_addr_parse(answer ? "fd00::2" : "fd00::1", &p.sip);
        wire_addr_parse(answer ? "fd00::1" : "fd00::2", &p.dip);
    }
    size_t at = wire_build(frame, size, &p), len = wire_frame_len(&p);
    ck_assert_uint_gt(at, 0);
    memset(frame + at, (int)(s->psn + s->fill), p.payload_len);
    wire_icrc_seal(frame, len, p.ip_off, p.bth_off);
    return len;
}

void on_difference(void *ctx, const struct replay_difference *d)
{
    struct tally *t = ctx;
    if (!t->n++)
        t->first = *d;
    t->others += strncmp(t->rule, d->rule, strlen(d->rule)) != 0;
}

void add_step(struct replay *r, struct step s, uint64_t *number, uint64_t ns)
{
    uint8_t frame[2 * MTU];
    size_t len = make(NULL, &s, IDS_COUNT, (unsigned)*number, frame, sizeof(frame));
    struct lint_frame f = {.number = ++*number,
                           .ns = ns,
                           .data = frame,
                           .len = (uint32_t)len,
                           .wire_len = (uint32_t)len};
    ck_assert_int_eq(replay_add(r, &f), 0);
}

uint64_t expect_differences(struct replay *r, enum replay_role role, const char *rule, unsigned n)
{
    struct tally t = {.rule = rule};
    struct replay_totals totals;
    ck_assert_int_eq(replay_run(r, role, on_difference, NULL, &t), 0);
    replay_totals(r, &totals);
    replay_free(r);
    ck_assert_msg(t.n == n && !t.others, "%u found, %u of other rules; %s at packet %llu", t.n,
                  t.others, t.n ? t.first.rule : "", (unsigned long long)t.first.number);
    return totals.compared;
}

/* A NIC fills the checksums in later: on its own machine, sent packets are captured without them.
 */
static void take_checksums_off(uint8_t *frame, size_t len, enum ids kind)
{
    wire_put32le(frame + len - WIRE_ICRC_LEN, 0);
    if (kind != IPV6)
        wire_put16(frame + IPV4_CSUM, 0);
}

static void add_row(struct replay *r, const struct row *row, enum ids kind, bool twice,
                    unsigned at_responder)
{
    uint8_t frame[2 * MTU];
    uint64_t ns = 0; /* time of the first packet: some programs count times from it */
    for (unsigned i = 0; row->step[i].opcode != 0xFF; i++) {
        const struct step *s = &row->step[i];
        ns += i ? (s->us ? s->us : 1) * US : 0;
        size_t len = make(row->step, s, kind, i, frame, sizeof(frame));
        struct lint_frame f = {.number = i + 1,
                               .ns = ns,
                               .data = frame,
                               .len = (uint32_t)len,
                               .wire_len = (uint32_t)len,
                               .interface = at_responder > 1 ? i / 2 % at_responder : 0,
                               .sent = twice || (at_responder && is_answer(s))};
        if (twice) {
            take_checksums_off(frame, len, kind);
            ck_assert_int_eq(replay_add(r, &f), 0);
            make(row->step, s, kind, i, frame, sizeof(frame));
            f.sent = false;
        }
        ck_assert_int_eq(replay_add(r, &f), 0);
    }
}

void check_row(const struct row *row, enum ids kind, bool twice, unsigned at_responder)
{
    static const char *const kinds[KINDS] = {"", ", ids 0", ", ids 1", ", IPv6"};
    struct replay *r = replay_new(0);
    struct tally t = {.rule = row->name};
    struct replay_totals totals;
    size_t id = strcspn(row->name, " ");
    bool guilty = strchr("0123456789", row->name[id - 1]) != NULL;
    add_row(r, row, kind, twice, at_responder);
    ck_assert_int_eq(replay_run(r, REPLAY_RESPONDER, on_difference, NULL, &t), 0);
    replay_totals(r, &totals);
    replay_free(r);
    ck_assert_msg(totals.compared > 0, "%s%s: nothing compared", row->name, kinds[kind]);
    if (guilty)
        ck_assert_msg(t.n && strlen(t.first.rule) == id && !strncmp(t.first.rule, row->name, id),
                      "%s%s: %s", row->name, kinds[kind], t.n ? t.first.rule : "nothing found");
    if (guilty && row->n)
        ck_assert_msg(t.n == row->n && !t.others, "%s%s: %u found, %u of other rules", row->name,
                      kinds[kind], t.n, t.others);
    if (!guilty)
        ck_assert_msg(!t.n, "%s%s: %s at packet %llu: %s / %s", row->name, kinds[kind],
                      t.first.rule, (unsigned long long)t.first.number, t.first.ours,
                      t.first.capture);
}
