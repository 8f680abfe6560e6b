/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Each rule that lint knows of frames: Ethernet, IP, UDP, BTH, opcodes, iCRC and keys,
 * broken once: see lint_rows.h.
 */
#include <string.h>

#include "lint_rows.h"
#include "unit.h"
#include "wire_bytes.h"
#include "wire_csum.h"

static const struct step datagrams[] = {{.opcode = UD_SEND, .psn = 1, .len = 64},
                                        {.opcode = UD_SEND, .psn = 2, .len = 64},
                                        {.opcode = UD_SEND, .psn = 3, .len = 64},
                                        {.opcode = UD_SEND, .psn = 4, .len = 64},
                                        END};

static const struct step many_under_way[] = {
    SEND(100, 64), ACK(100, 1),   SEND(101, 64), SEND(102, 64), SEND(103, 64), SEND(104, 64),
    SEND(105, 64), SEND(106, 64), SEND(107, 64), SEND(108, 64), ACK(108, 9),   END};

/* A WRITE whose packets all come a second time. */
#define WRITE3(after_)                                                                             \
    {.opcode = RC(WRITE_FIRST),                                                                    \
     .psn = 101,                                                                                   \
     .len = 1024,                                                                                  \
     .dma_len = 2501,                                                                              \
     .va = 0x1000,                                                                                 \
     .after = (after_)},                                                                           \
        {.opcode = RC(WRITE_MIDDLE), .psn = 102, .len = 1024},                                     \
    {                                                                                              \
        .opcode = RC(WRITE_LAST), .psn = 103, .len = 453, .ackreq = true                           \
    }
static const struct step write_again[] = {SEND(100, 64), ACK(100, 1), WRITE3(10),
                                          WRITE3(90000), ACK(103, 2), END};

static void broadcast(struct wire_pkt *p)
{
    memset(p->dmac, 0xFF, 6);
}
static const struct step bursts[] = {
    SEND(100, 64), SEND(101, 64), ACK(101, 2),   SEND(102, 64), SEND(103, 64),
    ACK(103, 4),   SEND(104, 64), SEND(105, 64), ACK(105, 6),   END};

static void other_port(struct wire_pkt *p)
{
    p->sport++;
}
static void a_port_each(struct wire_pkt *p)
{
    p->sport = (uint16_t)(p->sport + p->psn);
}
static void no_df(struct wire_pkt *p)
{
    p->ip_flags = 0;
}
static void fragment(struct packet *k)
{
    uint8_t *ip = k->f + k->p.ip_off;
    ip[6] |= 0x20;
    ip[10] = ip[11] = 0;
    wire_csum_put(ip + 10, wire_csum_add(0, ip, 20));
}
static void options(struct packet *k)
{
    uint8_t *ip = k->f + k->p.ip_off;
    memmove(ip + 24, ip + 20, k->len - k->p.ip_off - 20);
    memset(ip + 20, 1, 4); /* no operation */
    k->len += 4;
    ip[0] = 0x46;
    wire_put16(ip + 2, (uint16_t)(wire_get16(ip + 2) + 4));
    ip[10] = ip[11] = 0;
    wire_csum_put(ip + 10, wire_csum_add(0, ip, 24));
}
static void short_ip(struct packet *k)
{
    uint8_t *ip = k->f + k->p.ip_off;
    memmove(ip + 40, ip + k->len - 14 - 4, 4);
    wire_put16(ip + 2, 42);
    ip[10] = ip[11] = 0;
    wire_csum_put(ip + 10, wire_csum_add(0, ip, 20));
}
/* An IP length that the frame doesn't have. */
static void put_ip_length(struct packet *k, size_t ip_payload)
{
    uint8_t *ip = k->f + k->p.ip_off;
    if (k->p.ip_version == 6) {
        wire_put16(ip + 4, (uint16_t)ip_payload);
        return;
    }
    wire_put16(ip + 2, (uint16_t)(20 + ip_payload));
    ip[10] = ip[11] = 0;
    wire_csum_put(ip + 10, wire_csum_add(0, ip, 20));
}
static void long_ip(struct packet *k)
{
    put_ip_length(k, k->len - k->p.udp_off + 1);
}
static void long_ip_and_udp(struct packet *k)
{
    put_ip_length(k, k->len - k->p.udp_off + 60);
    wire_put16(k->f + k->p.udp_off + 4, (uint16_t)(k->len - k->p.udp_off + 60));
}
/* UDP says where the packet ends, and the frame is padded. */
static void long_ip_padded(struct packet *k)
{
    put_ip_length(k, k->len - k->p.udp_off + 60);
    wire_put32le(k->f + k->len - 4, wire_icrc(k->f, k->len, k->p.ip_off, k->p.bth_off));
    memset(k->f + k->len, 0, 6);
    k->len += 6;
}
static void no_ip_length(struct packet *k)
{
    put_ip_length(k, k->p.ip_version == 6 ? 0 : 10);
}
static void udp_length(struct packet *k)
{
    wire_put16(k->f + k->p.udp_off + 4, 20);
}
static void bad_source(struct wire_pkt *p)
{
    p->sip = wire_addr_v4(0xE0000001);
}
static void loopback_source(struct wire_pkt *p)
{
    p->sip = wire_addr_v4(0x7F000001);
}
static void bad_csum(struct packet *k)
{
    k->f[k->p.ip_off + 10] ^= 0x55;
}
static void mcast_mac(struct wire_pkt *p)
{
    p->dip = wire_addr_v4(0xE0000105);
    p->dqpn = 0xFFFFFF;
    memcpy(p->dmac, (uint8_t[]){1, 0, 0x5E, 0, 1, 6}, 6);
}

static void reserved_bit(struct packet *k)
{
    k->f[k->p.bth_off + 8] |= 1;
}
static void reserved_octet_4(struct packet *k)
{
    k->f[k->p.bth_off + 4] |= 0x10;
}
static void tver(struct packet *k)
{
    k->f[k->p.bth_off + 1] |= 1;
}
static void se(struct wire_pkt *p)
{
    p->se = true;
}
static void no_migreq(struct wire_pkt *p)
{
    p->migreq = false;
}

static void pad_3(struct packet *k) /* of 13 octets, padded to 16: one octet less is "payload" */
{
    k->f[k->p.bth_off + 1] = (uint8_t)((k->f[k->p.bth_off + 1] & 0xCF) | 0x20);
}
static void pad_1(struct packet *k)
{
    k->f[k->p.bth_off + 1] |= 0x10;
}
static void qpn_0(struct wire_pkt *p)
{
    p->dqpn = 0;
}
static void opcode_1e(struct packet *k)
{
    k->f[k->p.bth_off] = 0x1E;
}
static void opcode_uc(struct step *s)
{
    s->opcode = UC(SEND_ONLY);
}
static void opcode_write(struct packet *k) /* 8 octets of payload can't hold a RETH */
{
    k->f[k->p.bth_off] = RC(WRITE_ONLY);
    k->f[k->p.bth_off + 1] &= 0xCF;
}
static void opcode_ack(struct packet *k)
{
    k->f[k->p.bth_off] = RC(ACKNOWLEDGE);
    k->f[k->p.bth_off + 1] &= 0xCF;
}

static void cnp_psn(struct wire_pkt *p)
{
    p->psn = 1;
}
static void octets_more(struct packet *k, int n)
{
    memset(k->f + k->len - WIRE_ICRC_LEN, 0, 2 * WIRE_ICRC_LEN);
    k->len += (size_t)n;
    put_ip_length(k, k->len - k->p.udp_off);
    wire_put16(k->f + k->p.udp_off + 4, (uint16_t)(k->len - k->p.udp_off));
}
static void four_more(struct packet *k)
{
    octets_more(k, 4);
}
static void one_more(struct packet *k)
{
    octets_more(k, 1);
}
static void four_fewer(struct packet *k)
{
    octets_more(k, -4);
}
static void pad_2(struct packet *k)
{
    k->f[k->p.bth_off + 1] |= 0x20;
}
/* How a device makes its iCRCs: all 0 is right, and each other value is a mistake. */
struct icrc_way {
    uint32_t poly, begin, end; /* differences from CRC-32's values */
    unsigned ones;             /* this many octets in front are missing, */
    uint8_t front;             /* or the bits of each that are 0 */
    bool no_masks, no_ip, no_udp;
    bool zeroes;             /* fields that are masked (TTL, BTH octet 4) are 0 */
    bool no_ttl, no_octet_4; /* TTL or hop limit, BTH octet 4 aren't masked */
};

static uint32_t icrc_step(uint32_t reg, uint8_t octet, uint32_t poly)
{
    reg ^= octet;
    for (int bit = 0; bit < 8; bit++)
        reg = reg & 1 ? reg >> 1 ^ poly : reg >> 1;
    return reg;
}

static void icrc_made(struct packet *k, struct icrc_way way)
{
    uint8_t f[sizeof(k->f)];
    size_t ip = k->p.ip_off, bth = k->p.bth_off, udp = bth - WIRE_UDP_LEN;
    bool v4 = k->f[ip] >> 4 == 4;
    size_t ttl = ip + (v4 ? 8 : 7);
    uint32_t poly = 0xEDB88320 ^ way.poly, reg = ~way.begin;
    memcpy(f, k->f, k->len);
    if (v4)
        f[ip + 1] = f[ttl] = f[ip + 10] = f[ip + 11] = 0xFF;
    else
        memcpy(f + ip, (uint8_t[]){f[ip] | 0x0F, 0xFF, 0xFF, 0xFF}, 4);
    f[ttl] = f[udp + 6] = f[udp + 7] = f[bth + 4] = 0xFF;
    f[ttl] = way.zeroes ? 0 : way.no_ttl ? k->f[ttl] : f[ttl];
    f[bth + 4] = way.zeroes ? 0 : way.no_octet_4 ? k->f[bth + 4] : f[bth + 4];
    for (unsigned i = way.ones; i < 8; i++)
        reg = icrc_step(reg, way.front ^ 0xFF, poly);
    for (size_t i = ip; i < k->len - WIRE_ICRC_LEN; i++)
        if (!(way.no_ip && i < udp) && !(way.no_udp && i >= udp && i < bth))
            reg = icrc_step(reg, way.no_masks ? k->f[i] : f[i], poly);
    wire_put32le(k->f + k->len - WIRE_ICRC_LEN, ~reg ^ way.end);
}

#define ICRC_WAY(name, ...)                                                                        \
    static void icrc_##name(struct packet *k)                                                      \
    {                                                                                              \
        icrc_made(k, (struct icrc_way){__VA_ARGS__});                                              \
    }
ICRC_WAY(from_0, .begin = UINT32_MAX)
ICRC_WAY(from_0_bare, .begin = UINT32_MAX, .ones = 8)
ICRC_WAY(not_inverted, .end = UINT32_MAX)
ICRC_WAY(crc32c, .poly = 0xEDB88320 ^ 0x82F63B78)
ICRC_WAY(no_lrh, .ones = 8, .no_masks = true)
ICRC_WAY(masked_no_lrh, .ones = 8)
ICRC_WAY(lrh_0, .front = 0xFF)
ICRC_WAY(no_ip, .no_ip = true)
ICRC_WAY(no_udp, .no_udp = true)
ICRC_WAY(bth_only, .no_ip = true, .no_udp = true)
ICRC_WAY(no_mask, .no_masks = true)
ICRC_WAY(zeroes, .zeroes = true)
ICRC_WAY(ttl_unmasked, .no_ttl = true)
ICRC_WAY(bth_unmasked, .no_octet_4 = true)
static void icrc_swapped(struct packet *k)
{
    uint8_t *i = k->f + k->len - 4;
    wire_put32(i, wire_get32le(i));
}
static void icrc_0(struct packet *k)
{
    memset(k->f + k->len - WIRE_ICRC_LEN, 0, WIRE_ICRC_LEN);
}
static void icrc_wrong(struct packet *k)
{
    k->f[k->len - 3] ^= 0x5A;
}
static void icrc_wrong_of_a(struct packet *k)
{
    if (k->p.dqpn == B_QPN)
        icrc_wrong(k);
}
static void pkey(struct wire_pkt *p)
{
    p->pkey = 0x8123;
}
static void pkey_0(struct wire_pkt *p)
{
    p->pkey = 0x8000;
}
static void qkey(struct wire_pkt *p)
{
    p->qkey = 7;
}

static const struct row rows[] = {
    {"WIRE-06 broadcast", steps_rc, 12, .pkt = broadcast},
    {"WIRE-08 IPv4 options", steps_rc, 12, .octets = options, .keep_icrc = true, .v4 = true},
    {"WIRE-09 IP length below the least", steps_rc, 16, .octets = short_ip, .v4 = true},
    {"WIRE-09 IP length past the frame", steps_rc, 16, .octets = long_ip},
    {"WIRE-09 IP and UDP length past the frame", steps_rc, 16, .octets = long_ip_and_udp},
    {"WIRE-09 IP length past a frame with padding", steps_rc, 16, .octets = long_ip_padded,
     .keep_icrc = true},
    {"WIRE-09 IP length 0", steps_rc, 16, .octets = no_ip_length},
    {"WIRE-10 DF 0", steps_rc, 12, .pkt = no_df, .v4 = true},
    {"WIRE-10 fragment", steps_rc, 12, .octets = fragment, .v4 = true},
    {"WIRE-12 header checksum", steps_rc, 12, .octets = bad_csum, .verdict = LINT_UNDECIDABLE,
     .v4 = true},
    {"WIRE-12 header checksum, always", steps_rc, ALL, .octets = bad_csum, .v4 = true},
    {"WIRE-19 source port changes in flight", steps_rc, 3, .pkt = other_port},
    {"WIRE-19 of one packet, which others in flight follow with the old port", bursts, 3,
     .pkt = other_port},
    {"WIRE-19 a source port for each packet", many_under_way, ALL, .pkt = a_port_each,
     .verdict = LINT_UNDECIDABLE},
    {"WIRE-23 UDP length", steps_rc, 12, .octets = udp_length},
    {"WIRE-29 multicast source", steps_rc, 12, .pkt = bad_source, .v4 = true},
    {"WIRE-29 loopback source", steps_rc, 12, .pkt = loopback_source, .v4 = true},
    {"WIRE-31 MAC of another group", steps_ud, 1, .pkt = mcast_mac, .v4 = true},
    {"HDR-01 reserved bit", steps_rc, 12, .octets = reserved_bit},
    {"HDR-02 TVer 1", steps_rc, 12, .octets = tver},
    {"HDR-03 SE on WRITE MIDDLE", steps_rc, 3, .pkt = se},
    {"HDR-04 MigReq 0 once", steps_rc, 12, .pkt = no_migreq},
    {"HDR-04 MigReq 0 always", steps_rc, ALL, .pkt = no_migreq, .verdict = LINT_UNDECIDABLE},
    {"HDR-05 PadCnt doesn't fit the RETH", steps_rc, 20, .octets = pad_3},
    {"HDR-05 PadCnt of a LAST doesn't fit the RETH", steps_rc, 4, .octets = pad_3},
    {"HDR-05 PadCnt of a WRITE that is sent again", write_again, 7, .octets = pad_3},
    {"HDR-06 pad on MIDDLE", steps_rc, 3, .octets = pad_1},
    {"HDR-06 pad on the FIRST, when the MTU isn't known", steps_rc, 2, .octets = pad_1},
    {"HDR-06 pad on a MIDDLE that is sent again without", write_again, 3, .octets = pad_1},
    {"HDR-06 pad on a MIDDLE that is sent again", write_again, 6, .octets = pad_1},
    {"HDR-06 pad on a READ response", steps_rc, 8, .octets = pad_1},
    {"HDR-07 DestQP 0", steps_rc, 12, .pkt = qpn_0},
    {"OPC-01 reserved opcode", steps_rc, 12, .octets = opcode_1e},
    {"OPC-02 UC on an RC queue pair", steps_rc, 12, .step = opcode_uc},
    {"OPC-03 no room for the RETH", steps_fatal, 2, .octets = opcode_write},
    {"OPC-04 ACK with payload", steps_rc, 14, .octets = opcode_ack},
    {"OPC-05 CNP with a PSN", steps_uc, 5, .pkt = cnp_psn},
    {"OPC-05 CNP of 64 octets", steps_uc, 5, .octets = four_more},
    {"OPC-05 CNP of 61 octets", steps_uc, 5, .octets = one_more},
    {"OPC-05 CNP of 56 octets", steps_uc, 5, .octets = four_fewer},
    {"OPC-05 CNP with a PadCnt", steps_uc, 5, .octets = pad_2},
    {"ICRC-01 started from 0", steps_rc, 12, .octets = icrc_from_0, .keep_icrc = true},
    {"ICRC-01 always started from 0", steps_rc, ALL, .octets = icrc_from_0, .keep_icrc = true},
    {"ICRC-01 started from 0, without the octets of ones", steps_rc, 12, .octets = icrc_from_0_bare,
     .keep_icrc = true},
    {"ICRC-01 not inverted", steps_rc, 12, .octets = icrc_not_inverted, .keep_icrc = true},
    {"ICRC-01 another polynomial", steps_rc, 12, .octets = icrc_crc32c, .keep_icrc = true},
    {"ICRC-02 without the octets of ones", steps_rc, 12, .octets = icrc_no_lrh, .keep_icrc = true},
    {"ICRC-02 without the octets of ones, with masks", steps_rc, 12, .octets = icrc_masked_no_lrh,
     .keep_icrc = true},
    {"ICRC-02 zeroes instead of ones, always", steps_rc, ALL, .octets = icrc_lrh_0,
     .keep_icrc = true},
    {"ICRC-02 without the IP header", steps_rc, 12, .octets = icrc_no_ip, .keep_icrc = true},
    {"ICRC-02 without the UDP header", steps_rc, 12, .octets = icrc_no_udp, .keep_icrc = true},
    {"ICRC-02 the BTH first", steps_rc, 12, .octets = icrc_bth_only, .keep_icrc = true},
    {"ICRC-03 without masks", steps_rc, 12, .octets = icrc_no_mask, .keep_icrc = true, .v4 = true},
    {"ICRC-03 without the mask of the TTL", steps_rc, 12, .octets = icrc_ttl_unmasked,
     .keep_icrc = true, .v4 = true},
    {"ICRC-03 never with the mask of the TTL", steps_rc, ALL, .octets = icrc_ttl_unmasked,
     .keep_icrc = true, .v4 = true},
    {"ICRC-03 without the mask of the BTH's octet 4", steps_rc, 12, .octets = icrc_bth_unmasked,
     .keep_icrc = true, .v4 = true},
    {"ICRC-03 masks of zeroes, always", steps_rc, ALL, .octets = icrc_zeroes, .keep_icrc = true,
     .v4 = true},
    {"ICRC-04 without masks", steps_rc, 12, .octets = icrc_no_mask, .keep_icrc = true, .v6 = true},
    {"ICRC-04 without the mask of the hop limit", steps_rc, 12, .octets = icrc_ttl_unmasked,
     .keep_icrc = true, .v6 = true},
    {"ICRC-04 never with the mask of the hop limit", steps_rc, ALL, .octets = icrc_ttl_unmasked,
     .keep_icrc = true, .v6 = true},
    {"ICRC-04 without the mask of the BTH's octet 4", steps_rc, 12, .octets = icrc_bth_unmasked,
     .keep_icrc = true, .v6 = true},
    {"ICRC-04 masks of zeroes, always", steps_rc, ALL, .octets = icrc_zeroes, .keep_icrc = true,
     .v6 = true},
    {"ICRC-06 byte order", steps_rc, 12, .octets = icrc_swapped, .keep_icrc = true},
    {"ICRC-08 none", steps_rc, 12, .octets = icrc_0, .keep_icrc = true},
    {"ICRC-08 none, never", steps_rc, ALL, .octets = icrc_0, .keep_icrc = true},
    {"ICRC-08 a damaged packet is acknowledged", steps_rc, 16, .found = 17, .octets = icrc_wrong,
     .keep_icrc = true, .verdict = LINT_UNDECIDABLE},
    {"ICRC-08 never right", steps_rc, ALL, .octets = icrc_wrong, .keep_icrc = true},
    {"ICRC-08 one end's is never right", steps_rc, ALL, .octets = icrc_wrong_of_a,
     .keep_icrc = true},
    {"KEY-01 P_Key changes", steps_rc, 12, .pkt = pkey},
    {"KEY-01 P_Key of an ACK changes", steps_rc, 13, .pkt = pkey},
    {"KEY-01 P_Key of the first packet", steps_rc, 0, .pkt = pkey},
    {"KEY-01 P_Key of a datagram changes", datagrams, 2, .pkt = pkey},
    {"KEY-01 P_Key of the second packet", steps_rc, 2, .pkt = pkey},
    {"KEY-02 no partition, first packet", steps_rc, 0, .pkt = pkey_0},
    {"KEY-02 P_Key without a partition", steps_ud, 1, .pkt = pkey_0},
    {"KEY-02 on a connected queue pair", steps_rc, 12, .pkt = pkey_0},
    {"KEY-07 Q_Key of QP1", steps_cm, 0, .pkt = qkey},
};

/* "HDR-01 reserved bits", of a device that sets one always: reported once for each direction */
START_TEST(hdr_01_habit)
{
    static struct run run;
    static struct found found;
    struct lint_totals t;
    const struct row row = {.steps = steps_rc, .at = ALL, .octets = reserved_octet_4};
    build(&run, &row, NET_COUNT);
    judge(&run, &found, &t);
    ck_assert_uint_eq(found.n, 2);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_str_eq(found.f[i].rule->id, "HDR-01");
        ck_assert_int_eq(found.f[i].verdict, LINT_UNDECIDABLE);
        ck_assert_uint_eq(found.f[i].number, i + 1);
        /* AckReq, which the first one sets, is no reserved bit. */
        ck_assert_str_eq(found.f[i].seen, "octet 4 0x10, octet 8 0x00");
    }
}
END_TEST

/* "KEY-01 P_Key changes", of packets that were cut off: one may be damaged, not one after another
 */
START_TEST(key_01_cut)
{
    static struct run run;
    static struct found found;
    unsigned verdicts[LINT_VERDICTS] = {0};
    const struct row row = {.steps = steps_rc, .at = LATER};
    struct lint *l = lint_new(keep_finding, &found, 0);
    found.n = 0;
    build(&run, &row, NET_COUNT);
    for (int i = 0; i < run.n; i++) {
        struct packet *k = &run.packet[i];
        if (i > 0)
            k->f[k->p.bth_off + 3] ^= (uint8_t)i;
        struct lint_frame f = {.number = (uint64_t)i + 1,
                               .ns = k->ns,
                               .data = k->f,
                               .len = (uint32_t)k->len - WIRE_ICRC_LEN,
                               .wire_len = (uint32_t)k->len};
        lint_packet(l, &f, NULL);
    }
    lint_end(l);
    lint_free(l);
    for (unsigned i = 0; i < found.n; i++) {
        ck_assert_str_eq(found.f[i].rule->id, "KEY-01");
        verdicts[found.f[i].verdict]++;
    }
    ck_assert_uint_eq(found.f[0].verdict, LINT_UNDECIDABLE);
    ck_assert_uint_eq(verdicts[LINT_UNDECIDABLE], 6);
    ck_assert_uint_gt(verdicts[LINT_VIOLATION], 6);
}
END_TEST

/* "KEY-01 P_Key changes" after a pause: perhaps the queue pair's number was reused, without another
 * sign in the capture. Packets with P_Key a or b; p: a pause. */
START_TEST(key_01_anew)
{
    static const struct {
        const char *packets;
        unsigned violations, undecidable;
    } lives[] = {{"aaabbb", 3, 0}, {"aaapbbb", 0, 0}, {"aapbbb", 0, 0},    {"apbbb", 0, 1},
                 {"abb", 1, 0},    {"apb", 0, 1},     {"aaapbpaaa", 1, 0}, {"aaapbaaa", 1, 0},
                 {"papbpb", 0, 1}, {"aabpaa", 1, 0},  {"aaapbbbab", 1, 0}};
    static struct run run;
    static struct found found;
    struct step steps[16];
    struct lint_totals t;
    unsigned n = 0, verdicts[LINT_VERDICTS] = {0};
    char pkey[16];
    bool pause = false;
    const struct row row = {.steps = steps, .at = LATER};
    for (const char *c = lives[_i].packets; *c; c++) {
        if (*c != 'p') {
            steps[n] = (struct step)ACK(100 + n, 1 + n);
            steps[n].after = pause ? 50000 : 10;
            pkey[n++] = *c;
        }
        pause = *c == 'p';
    }
    steps[n] = (struct step)END;
    build(&run, &row, NET_COUNT);
    for (unsigned i = 0; i < n; i++) {
        struct packet *k = &run.packet[i];
        wire_put16(k->f + k->p.bth_off + 2, pkey[i] == 'a' ? 0xFFFF : 0x8001);
        wire_put32le(k->f + k->len - 4, wire_icrc(k->f, k->len, k->p.ip_off, k->p.bth_off));
    }
    judge(&run, &found, &t);
    for (unsigned i = 0; i < found.n; i++)
        if (!strcmp(found.f[i].rule->id, "KEY-01"))
            verdicts[found.f[i].verdict]++;
    ck_assert_msg(verdicts[LINT_VIOLATION] == lives[_i].violations &&
                      verdicts[LINT_UNDECIDABLE] == lives[_i].undecidable,
                  "%s: %u violations, %u undecidable", lives[_i].packets, verdicts[LINT_VIOLATION],
                  verdicts[LINT_UNDECIDABLE]);
}
END_TEST

/* "WIRE-19 the source port changes where nothing is in flight": not with a late copy from before */
START_TEST(wire_19_late_copy)
{
    static const struct step steps[] = {SEND(100, 64), ACK(100, 1),   SEND(101, 64), ACK(101, 2),
                                        SEND(102, 64), SEND(101, 64), SEND(103, 64), SEND(101, 64),
                                        ACK(103, 4),   SEND(104, 64), ACK(104, 5),   END};
    static struct run run;
    static struct found found;
    struct lint_totals t;
    for (enum net net = NET_COUNT; net < NETS; net++) {
        build(&run, &(struct row){.steps = steps, .at = LATER}, net);
        for (int i = 4; i < run.n; i++) {
            struct packet *k = &run.packet[i];
            uint64_t ns = k->ns;
            if (i == 5 || i == 7) {
                *k = run.packet[2];
                k->ns = ns;
            } else if (k->p.dqpn == B_QPN) {
                wire_put16(k->f + k->p.udp_off, (uint16_t)(k->p.sport + 1));
                wire_put32le(k->f + k->len - 4, wire_icrc(k->f, k->len, k->p.ip_off, k->p.bth_off));
            }
        }
        judge(&run, &found, &t);
        for (unsigned i = 0; i < found.n; i++)
            ck_assert_msg(strcmp(found.f[i].rule->id, "WIRE-19") != 0, "packet %llu%s",
                          (unsigned long long)found.f[i].number, nets[net]);
    }
}
END_TEST

/* "WIRE-19 a source port for each packet": reported once */
START_TEST(wire_19_once)
{
    static struct run run;
    static struct found found;
    struct lint_totals t;
    build(&run, &(struct row){.steps = many_under_way, .at = ALL, .pkt = a_port_each}, NET_COUNT);
    judge(&run, &found, &t);
    ck_assert_uint_eq(found.n, 1);
    ck_assert_uint_eq(found.f[0].number, 4);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("lint, frame");
    TCase *t =
        lint_rows_case("lint, frame", rows, sizeof(rows) / sizeof(*rows), "test_lint_frame.c");
    tcase_add_test(t, wire_19_late_copy);
    tcase_add_test(t, hdr_01_habit);
    tcase_add_test(t, key_01_cut);
    tcase_add_loop_test(t, key_01_anew, 0, 11);
    tcase_add_test(t, wire_19_once);
    suite_add_tcase(s, t);
    return unit_run(s);
}
