/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SHM-13 on a device of several workers: each has a switch for the programs whose contexts it has.
 * The device has four members, its peer one. Workers without threads; the programs are this
 * process.
 */
#include "device_switch.h"

#include <errno.h>

#include "channel_rig.h"
#include "clock.h"
#include "config_device.h"
#include "contexts.h"
#include "device.h"
#include "frames.h"
#include "loop.h"
#include "memory.h"
#include "neigh.h"
#include "round.h"
#include "switch_group.h"
#include "switch_rig.h"
#include "team.h"
#include "worker.h"

#define MEMBERS 4u
#define PEER    MEMBERS /* the worker of the other device, and its program */
#define NODES   (MEMBERS + 1)
#define ROUNDS  20000u

static struct worker worker[NODES];
static struct config_device conf[2];
static struct device *dev, *peer;
static struct program prog[NODES]; /* one at each member, and one at the peer */
static struct wire_addr ip[2];

static struct device *device_of(unsigned i)
{
    return i == PEER ? peer : dev->team->member[i];
}

static void open_device(struct device **d, unsigned i, unsigned workers)
{
    char err[CONFIG_ERR], text[128];
    snprintf(text, sizeof(text), "name=urn%u,port=mem:team_switch,addr=10.0.0.%u/24,workers=%u", i,
             1 + i, workers);
    ip[i] = wire_addr_v4(0x0A000001 + i);
    config_device_init(&conf[i]);
    ck_assert_int_eq(config_device_parse(&conf[i], text, err), 0);
    ck_assert_int_eq(device_open(d, &conf[i], i, &worker[i ? PEER : 0], i, err), 0);
    for (unsigned k = 1; k < workers; k++)
        ck_assert_int_eq(device_open_member(*d, &worker[k], err), 0);
}

static void a_round(void)
{
    for (unsigned i = 0; i < NODES; i++)
        worker_round(&worker[i], clock_now());
}

static void setup(void)
{
    ck_assert_int_eq(memory_init(), 0);
    for (unsigned i = 0; i < NODES; i++)
        ck_assert_int_eq(worker_init(&worker[i], i, -1, IDLE_AUTO, &context_ops), 0);
    open_device(&dev, 0, MEMBERS);
    open_device(&peer, 1, 1);
    for (unsigned i = 0; i < NODES; i++) {
        ck_assert_int_eq(device_switch_start(device_of(i)), 0);
        switch_rig_come(device_of(i)->sw, &prog[i], clock_now());
    }
    for (unsigned i = 0; i < ROUNDS && !(dev->link.up && device_of(3)->link.up && peer->link.up);
         i++) {
        for (unsigned k = 0; k < NODES; k++)
            device_service(device_of(k), clock_now());
        a_round();
    }
    ck_assert(device_of(3)->link.up);
}

static void teardown(void)
{
    device_close(dev);
    device_close(peer);
    for (unsigned i = 0; i < NODES; i++) {
        worker_fini(&worker[i]);
        prog[i].io->ops->close(prog[i].io);
    }
}

/* A packet of program i to a number of the device that node `to` is of. */
static struct wire_pkt packet(unsigned i, unsigned to, uint32_t dqpn)
{
    struct wire_pkt p = frame_pkt(FRAME_V4, WIRE_SEND_ONLY, 64);
    memcpy(p.dmac, device_of(to)->mac, 6);
    p.sip = ip[i == PEER];
    p.dip = ip[to == PEER];
    p.dqpn = dqpn;
    return p;
}

static bool try_send(unsigned i, struct wire_pkt *p)
{
    struct io_port *io = prog[i].io;
    struct io_slot s;
    if (io->ops->tx_reserve(io, &s, 1, 0) == 0)
        return false;
    s.len = (uint32_t)frame_make(s.data, s.cap, p);
    const uint32_t qpn = (prog[i].qpn & ~0x1FFFu) | ((p->dqpn ^ p->dqpn >> 13) & 0x1FFF);
    switch_rig_peer(prog[i].c, qpn, p);
    channel_tx_meta(io, 0, qpn);
    io->ops->tx_commit(io, &s, 1, 0);
    return true;
}

/* Take a frame of program i, if there is one that isn't the daemon's own. */
static bool take(unsigned i, struct wire_pkt *p, uint32_t *flags)
{
    struct io_port *io = prog[i].io;
    struct io_frame f;
    while (io->ops->rx_peek(io, &f, 1, 0) == 1) {
        const bool own = f.data[12] == 0x88 && f.data[13] == 0xB5;
        if (!own)
            ck_assert_int_eq(wire_parse(f.data, f.len, 0, p), WIRE_OK);
        *flags = f.flags;
        io->ops->rx_release(io, 1);
        if (!own)
            return true;
    }
    return false;
}

static bool arrives(unsigned i, struct wire_pkt *p, uint32_t *flags)
{
    for (unsigned k = 0; k < ROUNDS; k++) {
        if (take(i, p, flags))
            return true;
        a_round();
    }
    return false;
}

static void none_arrives(void)
{
    struct wire_pkt p;
    uint32_t flags;
    for (unsigned k = 0; k < 100; k++)
        a_round();
    for (unsigned i = 0; i < NODES; i++)
        ck_assert_msg(!take(i, &p, &flags), "program %u has another frame", i);
}

static uint64_t bad_qpn(unsigned i)
{
    return engine_counters(device_of(i)->engine)[ENGINE_C_rx_bad_qpn];
}

/* A member has the programs of its own: frames of the port and of other members' programs reach
 * them, and theirs leave, by whichever member has the port. */
START_TEST(shm_13_programs_of_all_workers)
{
    struct wire_pkt p;
    uint32_t flags;
    for (unsigned i = 0; i < NODES; i++) {
        for (unsigned k = 0; k < NODES; k++) {
            p = packet(i, k, prog[k].qpn);
            ck_assert(try_send(i, &p));
            ck_assert_msg(arrives(k, &p, &flags), "from %u to %u", i, k);
            ck_assert_uint_eq(p.dqpn, prog[k].qpn);
            const bool moved = i != k && i != PEER && k != PEER;
            ck_assert_uint_eq(flags, moved ? IO_RX_IP_CSUM_OK | IO_RX_ICRC_OK : 0);
        }
    }
    none_arrives();
    ck_assert_uint_eq(dev->stats.steer_moved, MEMBERS - 1); /* the peer's frames */
    for (unsigned i = 0; i < NODES; i++)
        ck_assert_uint_eq(bad_qpn(i), 0);
}
END_TEST

/* Programs and the daemon's engines of other members. */
START_TEST(shm_13_programs_and_engines)
{
    struct wire_pkt p = packet(1, 0, 3u << 21 | 5); /* a number of member 3 */
    uint32_t flags;
    uint8_t f[512];
    ck_assert(try_send(1, &p));
    for (unsigned i = 0; i < ROUNDS && bad_qpn(3) == 0; i++)
        a_round();
    ck_assert_uint_eq(bad_qpn(3), 1);
    p = packet(0, 2, prog[2].qpn);
    struct io_slot slot = {.data = f, .cap = sizeof(f), .len = (uint32_t)frame_make(f, 512, &p)};
    loop_take(device_of(3), &slot, 1); /* as if member 3's engine had sent it */
    ck_assert_uint_eq(slot.len, 0);
    ck_assert(arrives(2, &p, &flags));
    ck_assert_uint_eq(flags, IO_RX_IP_CSUM_OK | IO_RX_ICRC_OK);
}
END_TEST

/* SEC-08: each block is of one member; when its program has gone, the member that gets a frame for
 * it counts the frame. */
START_TEST(sec_08_blocks_of_a_dead_program)
{
    struct wire_pkt p;
    for (unsigned i = 0; i < MEMBERS; i++)
        ck_assert_int_eq(blocks_worker(&dev->team->blocks, prog[i].qpn), (int)i);
    switch_end(device_of(2)->sw, prog[2].c);
    switch_detach(device_of(2)->sw, prog[2].c, clock_now());
    ck_assert_int_eq(blocks_worker(&dev->team->blocks, prog[2].qpn), -1);
    p = packet(PEER, 0, prog[2].qpn);
    ck_assert(try_send(PEER, &p));
    for (unsigned i = 0; i < ROUNDS && bad_qpn(0) == 0; i++)
        a_round();
    ck_assert_uint_eq(bad_qpn(0), 1);
    uint64_t key[2];
    for (unsigned i = 0; i < QPN_BLOCKS - MEMBERS; i++) { /* all others: that one rests */
        const unsigned k = i & 1 ? 3 : 1;
        ck_assert_int_ge(switch_draw(device_of(k)->sw, prog[k].c, 1, key), 0);
    }
    ck_assert_int_eq(switch_draw(dev->sw, prog[0].c, 1, key), -EAGAIN);
}
END_TEST

#define FRAMES 700u

/* Frames for one queue pair stay in order, from the wire and from a program of another member, also
 * when the workers' turns come in any order. */
START_TEST(shm_13_in_order_over_the_ring)
{
    const unsigned from = _i ? 1 : PEER;
    struct wire_pkt p = packet(from, 2, prog[2].qpn), got;
    unsigned sent = 0, came = 0, seed = 7;
    uint32_t flags;
    for (unsigned i = 0; i < 100 * FRAMES && came < FRAMES; i++) {
        seed = seed * 1664525u + 1013904223u;
        p.psn = sent;
        if (sent < FRAMES && sent - came < 32)
            sent += try_send(from, &p);
        worker_round(&worker[(seed >> 16) % NODES], clock_now());
        while ((seed >> 28) == 0 && take(2, &got, &flags))
            ck_assert_uint_eq(got.psn, came++);
    }
    ck_assert_uint_eq(came, FRAMES);
}
END_TEST

static struct wire_addr group;

static void join(unsigned i)
{
    struct device *d = device_of(i);
    ck_assert_int_eq(switch_group_join(d->sw, prog[i].c, &group), 0);
    ck_assert_int_eq(neigh_groups(d->neigh, clock_now()), 0);
}

static struct wire_pkt to_group(unsigned i)
{
    struct wire_pkt p = packet(i, PEER, WIRE_QPN_MULTICAST);
    p.opcode = WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY);
    p.sqpn = prog[i].qpn;
    p.qkey = 5;
    p.dip = group;
    wire_mcast_mac(&group, p.dmac);
    return p;
}

/* UD-10: one copy for each member of the group, whichever worker its program is at. */
START_TEST(ud_10_groups_of_all_workers)
{
    struct wire_pkt p;
    uint32_t flags;
    group = wire_addr_v4(0xE0000107);
    join(1);
    join(3);
    join(PEER);
    for (unsigned from = 0; from < NODES; from++) {
        p = to_group(from);
        ck_assert(try_send(from, &p));
        ck_assert_msg(arrives(1, &p, &flags), "from %u", from);
        ck_assert_uint_eq(p.dqpn, WIRE_QPN_MULTICAST);
        ck_assert_msg(arrives(3, &p, &flags), "from %u", from);
        ck_assert_msg(arrives(PEER, &p, &flags), "from %u", from);
        none_arrives();
    }
    switch_group_leave(device_of(3)->sw, prog[3].c, &group);
    ck_assert_int_eq(neigh_groups(device_of(3)->neigh, clock_now()), 0);
    p = to_group(PEER);
    ck_assert(try_send(PEER, &p));
    ck_assert(arrives(1, &p, &flags));
    ck_assert(arrives(PEER, &p, &flags));
    none_arrives();
    for (unsigned i = 0; i < NODES; i++)
        ck_assert_uint_eq(engine_counters(device_of(i)->engine)[ENGINE_C_rx_mcast_no_group], 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("team_switch");
    TCase *c = tcase_create("team_switch");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_set_timeout(c, 60);
    tcase_add_test(c, shm_13_programs_of_all_workers);
    tcase_add_test(c, shm_13_programs_and_engines);
    tcase_add_test(c, sec_08_blocks_of_a_dead_program);
    tcase_add_loop_test(c, shm_13_in_order_over_the_ring, 0, 2);
    tcase_add_test(c, ud_10_groups_of_all_workers);
    suite_add_tcase(s, c);
    return unit_run(s);
}
