/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wire_parse, wire_parse_flow, wire_dump and wire_build on arbitrary frames.
 *
 * VAL-07 SEC-03: no octet outside the frame is touched, whatever the flags. A frame that parses is
 * rebuilt from its fields, and the result must parse to the same fields. The iCRC of the input is
 * also mended (a fuzzer can't guess it), so that the checks after it are reached. After a frame of
 * its flow, which differs in one octet, it parses the same.
 */
#include <string.h>

#include "fuzz.h"
#include "wire.h"
#include "wire_bytes.h"

static void check_rebuild(const uint8_t *frame, const struct wire_pkt *p, unsigned flags)
{
    static uint8_t out[1 << 16];
    struct wire_pkt q = *p;
    size_t len = wire_frame_len(p);
    size_t hdr = wire_build(out, sizeof(out), &q);
    FUZZ_CHECK(hdr && hdr == q.payload_off);
    memcpy(out + hdr, frame + p->payload_off, p->payload_len);
    wire_icrc_seal(out, len, q.ip_off, q.bth_off);
    struct wire_pkt r;
    FUZZ_CHECK(wire_parse(out, len, flags & ~WIRE_P_UDP_CSUM, &r) == WIRE_OK);
    FUZZ_CHECK(r.opcode == p->opcode && r.psn == p->psn && r.dqpn == p->dqpn && r.va == p->va);
    FUZZ_CHECK(r.payload_len == p->payload_len && r.pad == p->pad && r.icrc_off == q.icrc_off);
    FUZZ_CHECK(memcmp(&r.sip, &p->sip, sizeof(r.sip)) == 0);
}

static void run(const uint8_t *frame, size_t len, unsigned flags)
{
    struct wire_pkt p;
    enum wire_verdict v = wire_parse(frame, len, flags, &p);
    FUZZ_CHECK((unsigned)v < WIRE_VERDICTS);
    if (v == WIRE_OK) {
        FUZZ_CHECK(p.payload_off + p.payload_len + p.pad == p.icrc_off);
        FUZZ_CHECK(p.icrc_off + WIRE_ICRC_LEN <= len);
        check_rebuild(frame, &p, flags);
    }
}

/* Parse the frame after one that has another octet at `at`. */
static void check_flow(const uint8_t *frame, size_t len, size_t at, unsigned flags)
{
    uint8_t *before = malloc(len);
    FUZZ_CHECK(before);
    memcpy(before, frame, len);
    before[at] ^= frame[len - 1] | 1;
    struct wire_flow flow = {.ip_version = 0};
    struct wire_pkt p, q;
    memset(&q, 0xA5, sizeof(q));
    wire_parse_flow(before, len, flags | WIRE_P_NO_ICRC, &flow, &q);
    flow.flags = flags;
    free(before);
    enum wire_verdict v = wire_parse(frame, len, flags, &p);
    FUZZ_CHECK(wire_parse_flow(frame, len, flags, &flow, &q) == v);
    FUZZ_CHECK(q.payload_off == p.payload_off && q.payload_len == p.payload_len);
    FUZZ_CHECK(q.ip_version == p.ip_version && q.sport == p.sport && q.dqpn == p.dqpn);
    FUZZ_CHECK(memcmp(&q.sip, &p.sip, sizeof(q.sip)) == 0 &&
               memcmp(&q.dip, &p.dip, sizeof(q.dip)) == 0 && q.tclass == p.tclass);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const unsigned flags[] = {
        0,
        WIRE_P_IP_CSUM_OK | WIRE_P_NO_ICRC,
        WIRE_P_UDP_CSUM | WIRE_P_LOOPBACK | WIRE_P_QINQ | WIRE_P_IP_CSUM_OK,
    };
    char text[64];
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        run(data, size, flags[i]);
    if (size > 0)
        check_flow(data, size, data[0] % size, 0);
    int n = wire_dump(text, sizeof(text), data, size, WIRE_D_ETHER | WIRE_D_KEYS);
    FUZZ_CHECK(n >= 0 && strlen(text) < sizeof(text));

    struct wire_pkt p;
    if (size > 0 && wire_parse(data, size, WIRE_P_QINQ, &p) == WIRE_BAD_ICRC) {
        uint8_t *mended = malloc(size);
        FUZZ_CHECK(mended);
        memcpy(mended, data, size);
        size_t len = p.icrc_off + WIRE_ICRC_LEN;
        wire_put32le(mended + p.icrc_off, wire_icrc(data, len, p.ip_off, p.bth_off));
        FUZZ_CHECK(wire_parse(mended, size, WIRE_P_QINQ, &p) != WIRE_BAD_ICRC);
        run(mended, size, 0);
        for (size_t at = 0; at < size && at < 64; at += 5)
            check_flow(mended, size, at, 0);
        free(mended);
    }
    return 0;
}
