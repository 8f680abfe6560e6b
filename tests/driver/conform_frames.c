/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Numbered frames: made, recognized, checked.
 */
#include "conform_frames.h"

#include <check.h>
#include <string.h>
#include <time.h>

#define ETHERTYPE 0x88B5u /* for experiments: never from a kernel */
#define HEADER    22u     /* Ethernet 14, number 4, length 4 */

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

void frame_fill(uint8_t *f, uint32_t len, uint32_t number)
{
    memset(f, 0xFF, 6); /* to everybody: a switch or NIC on the way lets it pass */
    memcpy(f + 6, "\x02\x00\x5e\x00\x00\x01", 6);
    f[12] = ETHERTYPE >> 8;
    f[13] = ETHERTYPE & 0xFF;
    put32(f + 14, number);
    put32(f + 18, len);
    for (uint32_t i = HEADER; i < len; i++)
        f[i] = octet(number, i);
}

bool frame_ours(const struct io_frame *f)
{
    return f->len >= HEADER && f->data[12] == ETHERTYPE >> 8 && f->data[13] == (ETHERTYPE & 0xFF);
}

void frame_check(const struct io_frame *f, uint32_t number, uint32_t len)
{
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

    for (unsigned i = 0; i < n; i++) {
        ck_assert_uint_ge(slots[i].cap, len(number + i));
        ck_assert_uint_eq(slots[i].len, 0);
        frame_fill(slots[i].data, len(number + i), number + i);
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
