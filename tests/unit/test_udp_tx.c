/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sending by a udp port (udp_tx.h): the length of its bursts.
 */
#include "udp_tx.h"

#include "udp.h"
#include "unit.h"
#include "wire.h"

#define PAYLOAD 64u

static struct io_port *port_at(const char *spec)
{
    struct io_open_params params = {0};
    struct io_port *port;
    char err[256] = "";
    ck_assert_msg(io_udp_open(spec, &params, &port, err, sizeof(err)) == 0, "%s", err);
    return port;
}

/* A frame from the address to itself, into a reserved slot. */
static void fill(struct io_slot *s, const char *addr, uint32_t psn)
{
    struct wire_pkt p = {.ip_version = 4,
                         .ttl = 64,
                         .ip_flags = WIRE_IP_DF,
                         .sport = 4791,
                         .opcode = WIRE_OPCODE(WIRE_RC, WIRE_SEND_MIDDLE),
                         .pkey = 0xFFFF,
                         .dqpn = 0x123456,
                         .psn = psn,
                         .payload_len = PAYLOAD};
    ck_assert(wire_addr_parse(addr, &p.sip) == 0);
    p.dip = p.sip;
    size_t off = wire_build(s->data, s->cap, &p);
    ck_assert_uint_gt(off, 0);
    memset(s->data + off, 0x5A, PAYLOAD);
    s->len = (uint32_t)wire_frame_len(&p);
    wire_icrc_seal(s->data, s->len, p.ip_off, p.bth_off);
}

/* Ask for a whole burst, and send up to n frames in it. Returns the number of slots that the port
 * has granted. */
static unsigned burst(struct io_port *port, const char *addr, unsigned n)
{
    static uint32_t psn;
    struct io_slot slots[IO_BURST_MAX];
    unsigned room = port->ops->tx_reserve(port, slots, IO_BURST_MAX, 0);
    for (unsigned i = 0; i < room && i < n; i++)
        fill(&slots[i], addr, psn++);
    port->ops->tx_commit(port, slots, room, 0);
    return room;
}

/* Otherwise the owner sends 64 datagrams one by one, and sees no packet in the meantime: with IPsec
 * on a slow machine for so long that its peers' timers expire. */
START_TEST(bursts_of_single_datagrams_are_short)
{
    const char *addr = "127.83.7.21";
    struct io_port *port = port_at("lo,addr=127.83.7.21,trains=off");
    struct io_stats before, after;
    ck_assert_uint_eq(burst(port, addr, 1), IO_BURST_MAX);
    ck_assert_uint_eq(burst(port, addr, IO_BURST_MAX), IO_BURST_MAX); /* one frame says nothing */
    port->ops->stats(port, &before);
    for (unsigned i = 0; i < 4; i++)
        ck_assert_uint_eq(burst(port, addr, IO_BURST_MAX), 16);
    ck_assert_uint_eq(burst(port, addr, 1), 16);
    port->ops->stats(port, &after);
    ck_assert_uint_eq(after.tx_frames - before.tx_frames, 4 * 16 + 1);
    ck_assert_uint_eq(after.tx_full, before.tx_full); /* the port has room */
    port->ops->close(port);
}
END_TEST

START_TEST(trains_leave_in_long_bursts)
{
    const char *addr = "127.83.7.22";
    struct io_port *port = port_at("lo,addr=127.83.7.22");
    for (unsigned i = 0; i < 4; i++)
        ck_assert_uint_eq(burst(port, addr, IO_BURST_MAX), IO_BURST_MAX);
    port->ops->close(port);
}
END_TEST

/* The kernel's refusal of the first train makes its datagrams single ones, as for IPsec. */
START_TEST(a_peer_that_trains_do_not_reach_gets_short_bursts)
{
    const char *addr = "127.83.7.23";
    struct io_port *port = port_at("lo,addr=127.83.7.23");
    struct io_addr to;
    struct wire_addr w;
    ck_assert(wire_addr_parse(addr, &w) == 0);
    memcpy(to.b, w.b, sizeof(to.b));
    ck_assert_uint_eq(burst(port, addr, IO_BURST_MAX), IO_BURST_MAX);
    udp_train_never(&udp_port_of(port)->trains, &to);
    ck_assert_uint_eq(burst(port, addr, IO_BURST_MAX), IO_BURST_MAX);
    ck_assert_uint_eq(burst(port, addr, IO_BURST_MAX), 16);
    port->ops->close(port);
}
END_TEST

UNIT_MAIN("udp_tx", bursts_of_single_datagrams_are_short, trains_leave_in_long_bursts,
          a_peer_that_trains_do_not_reach_gets_short_bursts)
