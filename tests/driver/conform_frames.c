/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Numbered frames: made, recognized, checked.
 */
#include "conform_frames.h"

#include <check.h>
#include <string.h>
#include <time.h>

#include "wire.h"
#include "wire_bytes.h"

#define ETHERTYPE 0x88B5u /* for experiments: never from a kernel */
#define HEADER    22u     /* Ethernet 14, number 4, length 4 */

/* RoCEv2: where the numbers are, and the two ends. */
static bool roce;
static struct wire_addr end[2];

uint64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint8_t octet(uint32_t number, uint32_t i)
{
    return (uint8_t)(number * 31 + i * 7 + (i >> 8));
}

static void put32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (24 - 8 * i));
}

static uint32_t get32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

void frame_roce(const struct io_addr *a, const struct io_addr *b)
{
    roce = true;
    memcpy(end[0].b, a->b, 16);
    memcpy(end[1].b, b->b, 16);
}

static uint32_t header_len(void)
{
    return !roce                      ? HEADER
           : wire_addr_is_v4(&end[0]) ? WIRE_ETH_LEN + WIRE_IPV4_LEN + WIRE_UDP_LEN + WIRE_BTH_LEN
                                      : WIRE_ETH_LEN + WIRE_IPV6_LEN + WIRE_UDP_LEN + WIRE_BTH_LEN;
}

/* Traffic class and TTL follow from the number, too; some neighbours have the same ones. */
static uint8_t tclass(uint32_t number)
{
    return (uint8_t)(number / 50 * 3);
}

static uint8_t ttl(uint32_t number)
{
    return number / 150 % 2 ? 64 : 7;
}

/* A packet of any opcode, which no port checks: the number stands for the PSN, the length for the
 * opcode and the octets after it. */
static void fill_roce(uint8_t *f, uint32_t len, uint32_t number, unsigned from)
{
    uint32_t hdr = header_len();
    struct wire_pkt p = {
        .smac = {2, 0, 0x5e, 0, 0, 1},
        .ip_version = wire_addr_is_v4(&end[0]) ? 4 : 6,
        .tclass = tclass(number),
        .ttl = ttl(number),
        .ip_flags = WIRE_IP_DF,
        .ip_id = number % 3 ? 0 : (uint16_t)number,
        .sip = end[from],
        .dip = end[!from],
        .sport = number % 5 ? WIRE_UDP_PORT : (uint16_t)(0xC000 + number % 100),
        .opcode = WIRE_OPCODE(WIRE_RC, WIRE_SEND_MIDDLE),
        .dqpn = 0x123,
        .payload_len = len - hdr - WIRE_ICRC_LEN,
    };
    uint8_t scratch[WIRE_HDR_MAX + IO_FRAME_MAX];
    wire_build(scratch, sizeof(scratch), &p);
    memcpy(f, scratch, hdr);
    /* wire_build has rounded up: the lengths are those of this frame */
    uint8_t *ip = f + WIRE_ETH_LEN, *udp = f + p.udp_off;
    wire_put16(udp + 4, (uint16_t)(len - p.udp_off));
    if (p.ip_version == 4)
        wire_put16(ip + 2, (uint16_t)(len - p.ip_off));
    else
        wire_put16(ip + 4, (uint16_t)(len - p.udp_off));
    put32(f + p.bth_off, len);
    put32(f + p.bth_off + 8, number);
    for (uint32_t i = hdr; i + WIRE_ICRC_LEN < len; i++)
        f[i] = octet(number, i);
    wire_put32le(f + len - WIRE_ICRC_LEN, wire_icrc(f, len, p.ip_off, p.bth_off));
}

static void check_roce(const struct io_frame *f, uint32_t number, uint32_t len)
{
    uint32_t hdr = header_len(), bth = hdr - WIRE_BTH_LEN;
    bool v4 = wire_addr_is_v4(&end[0]);
    const uint8_t *ip = f->data + WIRE_ETH_LEN;
    ck_assert_msg(get32(f->data + bth + 8) == number, "frame %u came where %u was due",
                  get32(f->data + bth + 8), number);
    ck_assert_msg(f->len == len && get32(f->data + bth) == len,
                  "frame %u has %u octets, was sent with %u, should have %u", number, f->len,
                  get32(f->data + bth), len);
    ck_assert_uint_eq(v4 ? ip[1] : (uint8_t)(wire_get16(ip) >> 4), tclass(number));
    ck_assert_uint_eq(v4 ? ip[8] : ip[7], ttl(number));
    ck_assert_msg(wire_icrc(f->data, len, WIRE_ETH_LEN, (uint16_t)bth) ==
                      wire_get32le(f->data + len - WIRE_ICRC_LEN),
                  "ICRC-08 frame %u of %u octets has a wrong iCRC", number, len);
    ck_assert_msg(f->flags & IO_RX_ICRC_OK, "frame %u: the driver has not found its iCRC right",
                  number);
    for (uint32_t i = hdr; i + WIRE_ICRC_LEN < len; i++)
        if (f->data[i] != octet(number, i))
            ck_abort_msg("frame %u of %u octets: octet %u is wrong", number, len, i);
}

static void fill(uint8_t *f, uint32_t len, uint32_t number, unsigned from)
{
    if (roce) {
        fill_roce(f, len, number, from);
        return;
    }
    memset(f, 0xFF, 6); /* broadcast: a switch or NIC on the way lets it pass */
    memcpy(f + 6, "\x02\x00\x5e\x00\x00\x01", 6);
    f[12] = ETHERTYPE >> 8;
    f[13] = ETHERTYPE & 0xFF;
    put32(f + 14, number);
    put32(f + 18, len);
    for (uint32_t i = HEADER; i < len; i++)
        f[i] = octet(number, i);
}

void frame_fill(uint8_t *f, uint32_t len, uint32_t number)
{
    fill(f, len, number, 0);
}

bool frame_ours(const struct io_frame *f)
{
    if (roce)
        return f->len >= header_len() + WIRE_ICRC_LEN;
    return f->len >= HEADER && f->data[12] == ETHERTYPE >> 8 && f->data[13] == (ETHERTYPE & 0xFF);
}

void frame_check(const struct io_frame *f, uint32_t number, uint32_t len)
{
    if (roce) {
        check_roce(f, number, len);
        return;
    }
    ck_assert_msg(get32(f->data + 14) == number, "frame %u came where %u was due",
                  get32(f->data + 14), number);
    ck_assert_msg(f->len == len && get32(f->data + 18) == len,
                  "frame %u has %u octets, was sent with %u, should have %u", number, f->len,
                  get32(f->data + 18), len);
    for (uint32_t i = HEADER; i < len; i++)
        if (f->data[i] != octet(number, i))
            ck_abort_msg("frame %u of %u octets: octet %u is wrong", number, len, i);
}

unsigned send_some(struct io_port *io, uint32_t number, unsigned max, length_fn len)
{
    struct io_slot slots[IO_BURST_MAX];
    unsigned n = io->ops->tx_reserve(io, slots, max < IO_BURST_MAX ? max : IO_BURST_MAX, now_ns());
    struct io_addr own;
    unsigned from = roce && io->ops->addrs(io, &own, 1) == 1 && !memcmp(own.b, end[1].b, 16);
    for (unsigned i = 0; i < n; i++) {
        ck_assert_uint_ge(slots[i].cap, len(number + i));
        ck_assert_uint_eq(slots[i].len, 0);
        fill(slots[i].data, len(number + i), number + i, from);
        slots[i].len = len(number + i);
    }
    if (n)
        io->ops->tx_commit(io, slots, n, now_ns());
    return n;
}

unsigned receive_some(struct io_port *io, uint32_t number, length_fn len)
{
    struct io_frame frames[IO_BURST_MAX];
    unsigned n = io->ops->rx_peek(io, frames, IO_BURST_MAX, now_ns()), ours = 0;
    for (unsigned i = 0; i < n; i++)
        if (frame_ours(&frames[i])) {
            frame_check(&frames[i], number + ours, len(number + ours));
            ours++;
        }
    io->ops->rx_release(io, n);
    return ours;
}
