/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames in which the capturing host has merged packets (GRO, LRO, GSO): they are reported as such,
 * taken apart if the capture has them whole, and no device is blamed for the merging.
 */
#include <stdio.h>
#include <string.h>

#include "lint_rig.h"
#include "replay.h"
#include "unit.h"
#include "wire_bytes.h"
#include "wire_csum.h"

#define ALL_OF_IT UINT32_MAX

static const struct step steps[] = {
    {.opcode = RC(WRITE_FIRST), .psn = 100, .len = 1024, .dma_len = 5220, .va = 0x1000},
    {.opcode = RC(WRITE_MIDDLE), .psn = 101, .len = 1024},
    {.opcode = RC(WRITE_MIDDLE), .psn = 102, .len = 1024},
    {.opcode = RC(WRITE_MIDDLE), .psn = 103, .len = 1024},
    {.opcode = RC(WRITE_MIDDLE), .psn = 104, .len = 1024},
    /* 5 */ {.opcode = RC(WRITE_LAST), .psn = 105, .len = 100, .ackreq = true},
    ACK(105, 1),
    SEND(106, 64),
    SEND(107, 64),
    SEND(108, 64),
    /* 10 */ ACK(106, 2),
    ACK(107, 3),
    ACK(108, 4),
    SEND(109, 64),
    ACK(109, 5),
    {.opcode = RC(READ_REQUEST), .psn = 110, .dma_len = 3072, .va = 0x1000},
    RESP(READ_RESP_FIRST, 110, 1024, 6),
    RESP(READ_RESP_MIDDLE, 111, 1024, 0),
    RESP(READ_RESP_LAST, 112, 1024, 6),
    END,
};
#define MERGED 5u /* frames of several packets: 0-1, 2-5, 7-9, 10-12, 16-17 */

static size_t udp_payload(const struct packet *k)
{
    return k->len - k->p.bth_off;
}

static void set_lengths(struct packet *k)
{
    uint8_t *ip = k->f + k->p.ip_off;
    wire_put16(k->f + k->p.udp_off + 4, (uint16_t)(udp_payload(k) + WIRE_UDP_LEN));
    if (k->p.ip_version == 6) {
        wire_put16(ip + 4, (uint16_t)(udp_payload(k) + WIRE_UDP_LEN));
        return;
    }
    wire_put16(ip + 2, (uint16_t)(k->len - k->p.ip_off));
    wire_put16(ip + 10, 0);
    wire_csum_put(ip + 10, wire_csum_add(0, ip, WIRE_IPV4_LEN));
}

/* As the kernel does it: later frames of the same direction are joined to the first one, as long as
 * they are no longer than it. A shorter one is the last. */
static void merge(struct run *r)
{
    int n = 0;
    size_t size = 0;
    for (int i = 0; i < r->n; i++) {
        const struct packet *k = &r->packet[i];
        struct packet *last = n ? &r->packet[n - 1] : NULL;
        size_t more = udp_payload(k);
        if (!last || last->p.dqpn != k->p.dqpn || more > size || udp_payload(last) % size ||
            last->len + more > sizeof(last->f)) {
            r->packet[n++] = *k;
            size = more;
            continue;
        }
        memcpy(last->f + last->len, k->f + k->p.bth_off, more);
        last->len += more;
        set_lengths(last);
    }
    r->n = n;
}

static void on_finding(void *ctx, const struct lint_finding *f)
{
    struct found *found = ctx;
    if (f->verdict == LINT_VIOLATION && found->n < 32)
        found->f[found->n++] = *f;
}

static void give(struct lint *l, const struct lint_frame *f, bool apart)
{
    struct lint_view view;
    struct lint_merge m;
    uint8_t buf[LINT_PART_MAX];
    lint_packet(l, f, &view);
    if (!apart || !(view.flags & LINT_V_MERGED) || !lint_merged(f, &m))
        return;
    for (uint32_t i = 0; i < m.n; i++) {
        struct lint_frame part;
        lint_part(f, &m, i, buf, &part);
        give(l, &part, true);
    }
}

static struct lint_frame frame_of(const struct run *r, int i, uint32_t snaplen)
{
    const struct packet *k = &r->packet[i];
    return (struct lint_frame){.number = (uint64_t)i + 1,
                               .ns = k->ns,
                               .data = k->f,
                               .len = k->len < snaplen ? (uint32_t)k->len : snaplen,
                               .wire_len = (uint32_t)k->len};
}

static void judge_merged(const struct run *r, bool apart, uint32_t snaplen, struct found *found,
                         struct lint_totals *t)
{
    struct lint *l = lint_new(on_finding, found, 0);
    found->n = 0;
    for (int i = 0; i < r->n; i++) {
        struct lint_frame f = frame_of(r, i, snaplen);
        give(l, &f, apart);
    }
    lint_end(l);
    lint_totals(l, t);
    lint_free(l);
}

static void on_difference(void *ctx, const struct replay_difference *d)
{
    (void)ctx;
    ck_abort_msg("%s at packet %llu: %s / %s", d->rule, (unsigned long long)d->number, d->ours,
                 d->capture);
}

static struct replay_totals replay(const struct run *r, uint32_t snaplen)
{
    struct replay *p = replay_new(0);
    struct replay_totals t;
    for (int i = 0; i < r->n; i++) {
        struct lint_frame f = frame_of(r, i, snaplen);
        ck_assert_int_eq(replay_add(p, &f), 0);
    }
    ck_assert_int_eq(replay_run(p, REPLAY_BOTH, on_difference, NULL, NULL), 0);
    replay_totals(p, &t);
    replay_free(p);
    return t;
}

START_TEST(taken_apart)
{
    static struct run run;
    static struct found found;
    struct lint_totals t;
    const struct row row = {.steps = steps, .at = LATER};
    build(&run, &row, (enum net)_i);
    unsigned packets = (unsigned)run.n;
    merge(&run);
    judge_merged(&run, true, ALL_OF_IT, &found, &t);
    ck_assert_msg(!found.n, "%s%s", found.n ? found.f[0].rule->id : "", nets[_i]);
    ck_assert_uint_eq(t.merged, MERGED);
    ck_assert_uint_eq(t.unsplit, 0);
    ck_assert_uint_eq(t.roce, packets);
    ck_assert_uint_eq(t.corrupt, 0);
    ck_assert_uint_eq(t.frames, (unsigned)run.n);
    struct replay_totals rt = replay(&run, ALL_OF_IT);
    ck_assert_uint_eq(rt.merged, MERGED);
    ck_assert_uint_eq(rt.roce, packets);
    ck_assert_uint_eq(rt.differ, 0);
    ck_assert_uint_gt(rt.compared, packets - 2);
}
END_TEST

/* A check that doesn't take them apart, or can't, blames no device. */
START_TEST(left_as_they_are)
{
    static struct run run;
    static struct found found;
    struct lint_totals t;
    const struct row row = {.steps = steps, .at = LATER};
    build(&run, &row, (enum net)_i);
    merge(&run);
    judge_merged(&run, false, ALL_OF_IT, &found, &t);
    ck_assert_uint_eq(found.n, 0);
    ck_assert_uint_eq(t.merged, MERGED);
    for (uint32_t snaplen = 60; snaplen < 1400; snaplen += 11) {
        judge_merged(&run, true, snaplen, &found, &t);
        ck_assert_msg(!found.n, "%s%s, cut at %u", found.n ? found.f[0].rule->id : "", nets[_i],
                      snaplen);
        if (snaplen > 110) /* shorter, some look like one packet */
            ck_assert_uint_ge(t.merged, 2);
        ck_assert_uint_eq(replay(&run, snaplen).differ, 0);
    }
}
END_TEST

static void other_pkey(struct wire_pkt *p)
{
    p->pkey = 0x8123;
}

/* "KEY-01 P_Key changes", of a packet within another one's frame */
START_TEST(a_breach_within)
{
    static struct run run;
    static struct found found;
    struct lint_totals t;
    const struct row row = {.steps = steps, .at = 3, .pkt = other_pkey};
    build(&run, &row, (enum net)_i);
    merge(&run);
    judge_merged(&run, true, ALL_OF_IT, &found, &t);
    ck_assert_uint_eq(found.n, 1);
    ck_assert_str_eq(found.f[0].rule->id, "KEY-01");
    ck_assert_uint_eq(found.f[0].number, 2);
}
END_TEST

/* One packet in it is damaged: the others stay valid. */
START_TEST(damage_within)
{
    static struct run run;
    static struct found found;
    struct lint_totals t;
    const struct row row = {.steps = steps, .at = LATER};
    for (int hit = 1; hit <= 5; hit++) {
        build(&run, &row, (enum net)_i);
        unsigned packets = (unsigned)run.n;
        run.packet[hit].f[run.packet[hit].len - 20] ^= 4;
        merge(&run);
        judge_merged(&run, true, ALL_OF_IT, &found, &t);
        ck_assert_uint_eq(found.n, 0);
        ck_assert_uint_eq(t.roce, packets - 1);
        ck_assert_uint_eq(t.corrupt, 1);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("lint merged");
    TCase *t = tcase_create("lint merged");
    tcase_add_loop_test(t, taken_apart, 0, NETS);
    tcase_add_loop_test(t, left_as_they_are, 0, NETS);
    tcase_add_loop_test(t, a_breach_within, 0, NETS);
    tcase_add_loop_test(t, damage_within, 0, NETS);
    suite_add_tcase(s, t);
    return unit_run(s);
}
