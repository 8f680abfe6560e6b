/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The iCRC against a bit-at-a-time CRC over a masked copy, both written here from the rules.
 */
#include "frames.h"
#include "unit.h"

#define WRITE_ONLY WIRE_OPCODE(WIRE_RC, WIRE_WRITE_ONLY)

/* ICRC-01: reflected 0x04C11DB7, all ones in, all ones XORed out. */
static uint32_t bitwise(uint32_t reg, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        reg ^= p[i];
        for (int b = 0; b < 8; b++)
            reg = reg & 1u ? reg >> 1 ^ 0xEDB88320u : reg >> 1;
    }
    return reg;
}

static uint32_t reference(const uint8_t *frame, size_t len, const struct wire_pkt *p)
{
    uint8_t m[8 + 9000];
    size_t n = len - 4 - p->ip_off;
    memset(m, 0xFF, 8);
    memcpy(m + 8, frame + p->ip_off, n);
    uint8_t *ip = m + 8;
    if (p->ip_version == 4) {
        ip[1] = ip[8] = ip[10] = ip[11] = 0xFF;
    } else {
        ip[0] = 0x6F;
        ip[1] = ip[2] = ip[3] = ip[7] = 0xFF;
    }
    uint8_t *bth = ip + (p->bth_off - p->ip_off);
    if (bth != ip + WIRE_IPV6_LEN) /* RoCE v1 has no UDP header */
        bth[-2] = bth[-1] = 0xFF;
    bth[4] = 0xFF;
    return ~bitwise(0xFFFFFFFFu, m, n + 8);
}

/* ICRC-01..06 ICRC-12 both IP versions, every payload length around the copy's borders. */
START_TEST(icrc_01_against_bitwise)
{
    for (unsigned kind = 0; kind < 4; kind++)
        for (uint32_t payload = 0; payload < 300; payload++) {
            uint8_t f[512];
            struct wire_pkt p = frame_pkt(kind, WRITE_ONLY, payload);
            size_t len = frame_make(f, sizeof(f), &p);
            uint32_t want = reference(f, len, &p);
            ck_assert_msg(wire_icrc(f, len, p.ip_off, p.bth_off) == want, "ICRC-01 %u octets",
                          payload);
            /* ICRC-06 least significant octet first */
            ck_assert_uint_eq(f[len - 4], want & 0xFF);
            ck_assert_uint_eq(f[len - 1], want >> 24);
        }
}
END_TEST

/* ICRC-01 ICRC-12 of every length: short and long packets are computed differently, and so are
 * lengths that are no multiple of 4, which no packet has. */
START_TEST(icrc_01_every_length)
{
    static uint8_t f[4300];
    for (unsigned kind = 0; kind < 3; kind++) {
        struct wire_pkt p = frame_pkt(kind ? FRAME_V6 : FRAME_V4, WRITE_ONLY, 4096);
        ck_assert_uint_gt(frame_make(f, sizeof(f), &p), 4096);
        if (kind == 2) /* RoCE v1: the BTH follows the GRH */
            p.bth_off = p.udp_off;
        size_t bth = (size_t)p.bth_off - p.ip_off;
        for (size_t n = bth + WIRE_BTH_LEN; n < 4096; n += n < 300 ? 1 : 61) {
            uint32_t got = wire_icrc_headers(f + p.ip_off, n, bth);
            ck_assert_msg(got == reference(f, p.ip_off + n + 4, &p), "ICRC-01 %zu octets", n);
        }
    }
}
END_TEST

/* ICRC-05 the register after the stand-in for the LRH. */
START_TEST(icrc_05_seed)
{
    static const uint8_t ones[8] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
    ck_assert_uint_eq(bitwise(0xFFFFFFFFu, ones, 8), 0xDEBB20E3u);
}
END_TEST

/* ICRC-12 payload in two pieces at every cut and every alignment 0..63 equals the linear value. */
START_TEST(icrc_12_chained_equals_linear)
{
    static uint8_t room[64 + 512] __attribute__((aligned(64)));
    for (size_t align = 0; align < 64; align++) {
        uint8_t *f = room + align;
        struct wire_pkt p = frame_pkt(align & 1 ? FRAME_V6 : FRAME_V4, WRITE_ONLY, 201);
        size_t len = frame_make(f, 512, &p);
        uint32_t want = reference(f, len, &p);
        ck_assert_uint_eq(wire_icrc(f, len, p.ip_off, p.bth_off), want);
        uint32_t start = wire_icrc_headers(f + p.ip_off, (size_t)p.payload_off - p.ip_off,
                                           (size_t)p.bth_off - p.ip_off);
        for (size_t cut = p.payload_off; cut <= len - 4; cut++) {
            uint32_t crc = wire_icrc_update(start, f + p.payload_off, cut - p.payload_off);
            crc = wire_icrc_update(crc, f + cut, len - 4 - cut);
            ck_assert_msg(crc == want, "ICRC-12 alignment %zu cut %zu", align, cut);
        }
    }
}
END_TEST

/* ICRC-03 ICRC-04 ICRC-09 WIRE-11 WIRE-25 which bits are masked: flip each bit of the headers in
 * turn. */
START_TEST(icrc_03_masks)
{
    for (unsigned kind = 0; kind < 2; kind++) {
        uint8_t f[256];
        struct wire_pkt p = frame_pkt(kind, WRITE_ONLY, 13);
        size_t len = frame_make(f, sizeof(f), &p);
        uint32_t want = wire_icrc(f, len, p.ip_off, p.bth_off);
        for (size_t off = p.ip_off; off < len - 4; off++)
            for (unsigned bit = 0; bit < 8; bit++) {
                size_t ip = off - p.ip_off;
                size_t udp = off - p.udp_off;
                if (ip == 0 && bit >= 4)
                    continue; /* another version is another header */
                bool masked = off == p.bth_off + 4u || (off >= p.udp_off && (udp == 6 || udp == 7));
                if (off < p.udp_off && kind == FRAME_V4)
                    masked = ip == 1 || ip == 8 || ip == 10 || ip == 11;
                else if (off < p.udp_off)
                    masked = ip <= 3 || ip == 7;
                f[off] ^= (uint8_t)(1u << bit);
                bool same = wire_icrc(f, len, p.ip_off, p.bth_off) == want;
                f[off] ^= (uint8_t)(1u << bit);
                ck_assert_msg(same == masked, "ICRC-0%d octet %zu of the packet, bit %u",
                              kind ? 4 : 3, ip, bit);
            }
    }
}
END_TEST

/* ICRC-02 Ethernet and VLAN tag are not covered. */
START_TEST(icrc_02_not_covered)
{
    uint8_t f[256];
    uint8_t g[256];
    struct wire_pkt p = frame_pkt(FRAME_V4, WRITE_ONLY, 13);
    struct wire_pkt q = frame_pkt(FRAME_V4 | FRAME_TAGGED, WRITE_ONLY, 13);
    memset(q.dmac, 0x55, 6);
    memset(q.smac, 0x66, 6);
    size_t n = frame_make(f, sizeof(f), &p);
    size_t m = frame_make(g, sizeof(g), &q);
    ck_assert_uint_eq(n + 4, m);
    ck_assert_mem_eq(f + n - 4, g + m - 4, 4);
}
END_TEST

/* SEC-11 HDR-05 sealing zeroes the pad before it computes, and touches nothing else. */
START_TEST(hdr_05_seal_zeroes_pad)
{
    for (uint32_t payload = 0; payload < 9; payload++) {
        uint8_t f[256];
        uint8_t before[256];
        struct wire_pkt p = frame_pkt(FRAME_V4, WRITE_ONLY, payload);
        memset(f, 0xEE, sizeof(f));
        size_t len = wire_frame_len(&p);
        size_t at = wire_build(f, sizeof(f), &p);
        memcpy(before, f, sizeof(f));
        wire_icrc_seal(f, len, p.ip_off, p.bth_off);
        ck_assert_mem_eq(f, before, at + payload);
        for (size_t i = at + payload; i < len - 4; i++)
            ck_assert_uint_eq(f[i], 0);
        ck_assert_mem_eq(f + len, before + len, sizeof(f) - len);
        struct wire_pkt q;
        ck_assert_int_eq(wire_parse(f, len, 0, &q), WIRE_OK);
    }
}
END_TEST

/* HDR-05 ICRC-12 gathering makes the same frame as copying and sealing, by each implementation of
 * the CRC, and touches nothing after it. */
START_TEST(icrc_12_gather_is_copy_and_seal)
{
    static uint8_t f[4400], g[4400], payload[4096];
    for (size_t i = 0; i < sizeof(payload); i++)
        payload[i] = (uint8_t)(i * 7 + (i >> 8));
    for (unsigned i = 0; crc_impl(i); i++) {
        if (!crc_runs_here(crc_impl(i)))
            continue;
        ck_assert_int_eq(crc_choose(crc_impl(i)->name, NULL, 0), 0);
        for (unsigned kind = 0; kind < 4; kind++)
            for (uint32_t n = 0; n <= 4096; n += n < 300 ? 1 : 73) {
                struct wire_pkt p = frame_pkt(kind, WRITE_ONLY, n);
                size_t len = wire_frame_len(&p), at = wire_build(f, sizeof(f), &p);
                memset(f + at, 0xEE, sizeof(f) - at);
                memcpy(g, f, sizeof(g));
                memcpy(f + at, payload, n);
                wire_icrc_seal(f, len, p.ip_off, p.bth_off);
                size_t a = n / 3, b = n % 2 ? 0 : n / 5;
                const struct crc_piece pieces[] = {
                    {payload, a}, {payload + a, b}, {payload + a + b, n - a - b}};
                wire_icrc_gather(g, len, p.ip_off, p.bth_off, (uint16_t)at, pieces, 3);
                ck_assert_msg(memcmp(f, g, sizeof(f)) == 0, "%s, %u octets, kind %u",
                              crc_impl(i)->name, n, kind);
            }
    }
}
END_TEST

UNIT_MAIN("wire icrc", icrc_01_against_bitwise, icrc_01_every_length, icrc_05_seed,
          icrc_12_chained_equals_linear, icrc_03_masks, icrc_02_not_covered, hdr_05_seal_zeroes_pad,
          icrc_12_gather_is_copy_and_seal)
