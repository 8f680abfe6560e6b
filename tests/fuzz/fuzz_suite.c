/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The verdicts of `urnic wire --suite` on any packets from a device under test: each case ends,
 * with a complete verdict.
 *
 * Input: the case, the options, then records: flags (1 = from side B, 2 = a frame of octets follows
 * instead of fields, 4 = it holds a CM message), the rules' actions on it, a time step, and the
 * fields.
 */
#include <string.h>

#include "fuzz.h"
#include "suite_check.h"
#include "wire.h"

#define RECORDS 600u
#define FRAME   600u
#define MAD     256u

struct input {
    const uint8_t *data;
    size_t size;
};

static uint32_t take(struct input *in, unsigned octets)
{
    uint32_t v = 0;
    while (octets--) {
        v <<= 8;
        if (in->size) {
            v |= *in->data++;
            in->size--;
        }
    }
    return v;
}

/* A packet of one of four flows, whose PSNs wrap soon. Returns its length, 0 = there is none. */
static size_t build(struct input *in, unsigned flags, uint8_t *buf)
{
    uint8_t opcode = (uint8_t)take(in, 1), which = (uint8_t)take(in, 1);
    struct wire_pkt p = {.ethertype = 0x0800,
                         .ip_version = 4,
                         .ttl = 64,
                         .sip = wire_addr_v4(0x0A000001 + (flags & 1)),
                         .dip = wire_addr_v4(0x0A000002 - (flags & 1)),
                         .dport = WIRE_UDP_PORT,
                         .pkey = WIRE_PKEY_DEFAULT,
                         .tclass = which >> 6,
                         .ackreq = which & 16,
                         .sqpn = WIRE_QPN_GSI};
    p.opcode = flags & 4 ? WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY) : opcode;
    p.dqpn = flags & 4 ? WIRE_QPN_GSI : 0x10u + (which & 3) + 0x10u * (flags & 1);
    p.qkey = 0x80010000u;
    p.psn = (0xFFFFFAu + (uint32_t)(int16_t)take(in, 2)) & WIRE_PSN_MASK;
    p.syndrome = (uint8_t)take(in, 1);
    p.va = p.dma_len = take(in, 1) * 64;
    p.rkey = which & 32;
    p.payload_len = flags & 4 ? MAD : wire_opcodes[p.opcode].flags & WIRE_F_PAYLOAD ? opcode : 0;
    size_t off = wire_build(buf, FRAME, &p), len = wire_frame_len(&p);
    if (off == 0 || len > FRAME)
        return 0;
    memset(buf + off, which, p.payload_len);
    if (flags & 4) {
        for (unsigned i = 0; i < p.payload_len; i++)
            buf[off + i] = (uint8_t)take(in, 1);
        memcpy(buf + off, (const uint8_t[]){1, 7, 2, 3}, 4); /* CM, version 2, Send */
    }
    wire_icrc_seal(buf, len, p.ip_off, p.bth_off);
    return len;
}

static void add(struct suite_trace *t, struct input *in, uint64_t *now)
{
    uint8_t flags = (uint8_t)take(in, 1), fate = (uint8_t)take(in, 1), *frame;
    uint8_t buf[FRAME];
    struct wire_pkt p;
    bool icrc_bad;
    *now += take(in, 1) * 30000ull;
    size_t len = flags & 2 ? take(in, 2) % FRAME : build(in, flags, buf);
    for (size_t i = 0; flags & 2 && i < len; i++)
        buf[i] = (uint8_t)take(in, 1);
    frame = malloc(len ? len : 1); /* a sanitizer notices octets after its end */
    FUZZ_CHECK(frame);
    memcpy(frame, buf, len);
    const struct suite_pkt head = {
        .at = *now, .waited = 2000, .dir = flags & 1 ? FAULT_BA : FAULT_AB, .fate = fate};
    if (suite_trace_read(frame, (uint32_t)len, &p, &icrc_bad))
        suite_trace_add(t, &head, frame, &p);
    free(frame);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct suite_trace t;
    static struct suite_card card;
    struct input in = {data, size};
    uint64_t now = 1000000000;
    const struct suite_case *c = &suite_cases[take(&in, 1) % suite_ncases];
    uint32_t how = take(&in, 1);
    const struct suite_options opt = {
        .timeout = (int)(how & 31) - 1, .retry = (int)(how >> 5) - 1, .cnp_interval = 50000};
    struct suite_run r = {
        .opt = &opt, .trace = &t, .card = &card, .client_ok = how & 1, .timed_out = how & 2};
    if (!t.pkt)
        FUZZ_CHECK(suite_trace_init(&t) == 0);
    suite_trace_clear(&t);
    memset(&card, 0, sizeof(card));
    for (unsigned i = 0; i < RECORDS && in.size; i++)
        add(&t, &in, &now);
    if (!suite_flow_find(&t, c->dir, c->kinds, &r.flow))
        return 0;
    c->check(&r);
    FUZZ_CHECK(card.n >= 1 && card.n <= SUITE_RESULTS / suite_ncases);
    for (unsigned i = 0; i < card.n; i++) {
        const struct suite_result *s = &card.result[i];
        FUZZ_CHECK(s->rule && s->verdict <= SUITE_UNTESTED && s->text[0]);
        FUZZ_CHECK(memchr(s->text, 0, sizeof(s->text)) && s->value == s->value);
    }
    return 0;
}
