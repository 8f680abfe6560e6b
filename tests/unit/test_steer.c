/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames between the workers of one device: the member that a frame is for, also for hostile
 * frames; and the list of the services' listeners. Workers without threads.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "cmgr.h"
#include "config.h"
#include "contexts.h"
#include "device.h"
#include "memory.h"
#include "neigh.h"
#include "services.h"
#include "steer.h"
#include "team.h"
#include "unit.h"
#include "worker.h"

#define MEMBERS 4u
#define BTH_V4  42u /* octets before the BTH */
#define LEN     (BTH_V4 + 12 + 64 + 4)

static struct worker worker[MEMBERS];
static struct config_device conf;
static struct device *dev;

static void setup(void)
{
    char err[CONFIG_ERR];
    ck_assert_int_eq(memory_init(), 0);
    config_device_init(&conf);
    ck_assert_int_eq(
        config_device_parse(&conf, "name=urn0,port=mem:steer,addr=10.0.0.1/24,workers=4", err), 0);
    for (unsigned k = 0; k < MEMBERS; k++)
        ck_assert_int_eq(worker_init(&worker[k], k, -1, IDLE_AUTO, &context_ops), 0);
    ck_assert_int_eq(device_open(&dev, &conf, 0, &worker[0], 1, err), 0);
    for (unsigned k = 1; k < MEMBERS; k++)
        ck_assert_int_eq(device_open_member(dev, &worker[k], err), 0);
    for (unsigned k = 0; k < MEMBERS; k++)
        ck_assert_ptr_nonnull(cmgr_create(dev->team->member[k]));
}

static void teardown(void)
{
    device_close(dev);
    for (unsigned k = 0; k < MEMBERS; k++)
        worker_fini(&worker[k]);
}

/* A RoCEv2 frame over IPv4 for this queue pair. */
static void frame_for(uint8_t f[LEN], uint32_t qpn)
{
    memset(f, 0, LEN);
    f[12] = 0x08;
    f[14] = 0x45;
    f[23] = 17;
    f[33] = 1;
    f[36] = 4791 >> 8;
    f[37] = 4791 & 0xFF;
    f[BTH_V4 + 5] = (uint8_t)(qpn >> 16);
    f[BTH_V4 + 6] = (uint8_t)(qpn >> 8);
    f[BTH_V4 + 7] = (uint8_t)qpn;
}

/* Take the frames that wait at this member, from all others; returns their number. */
static unsigned waits_at(unsigned k)
{
    struct io_frame f[64];
    struct device *m = dev->team->member[k];
    unsigned n = steer_peek(m, f, 64);
    steer_release(m);
    return n;
}

static bool away(const uint8_t *f, uint32_t len)
{
    uint8_t *exact = malloc(len ? len : 1); /* a sanitizer notices a read after its end */
    memcpy(exact, f, len);
    const struct io_frame frame = {.data = exact, .len = len};
    bool gone = steer_away(dev, &frame);
    free(exact);
    return gone;
}

START_TEST(by_the_first_bits)
{
    uint8_t f[LEN];
    for (unsigned k = 0; k < MEMBERS; k++) {
        frame_for(f, k << 21 | 0x12345);
        ck_assert_int_eq(away(f, LEN), k != 0);
        for (unsigned i = 1; i < MEMBERS; i++)
            ck_assert_uint_eq(waits_at(i), i == k);
    }
    ck_assert_uint_eq(dev->stats.steer_right, 1);
    ck_assert_uint_eq(dev->stats.steer_moved, 3);
    frame_for(f, 0x812345); /* of a block that no program has */
    ck_assert(!away(f, LEN));
    frame_for(f, 3u << 21 | 5);
    f[20] = 0x20; /* a fragment: this member's engine judges it */
    ck_assert(!away(f, LEN));
    frame_for(f, 3u << 21 | 5);
    f[37] ^= 1; /* another UDP port */
    ck_assert(!away(f, LEN));
    frame_for(f, 3u << 21 | 5);
    f[0] = 1; /* to a group of which no member is */
    ck_assert(!away(f, LEN));
    ck_assert_uint_eq(waits_at(3), 0);
}
END_TEST

/* SHM-13: a program's number goes to the member that has its block, until that is returned. */
START_TEST(by_the_block)
{
    uint8_t f[LEN];
    for (unsigned k = 0; k < MEMBERS; k++) {
        int block = blocks_draw(&dev->team->blocks, k, NULL, 1, 0x55555555u * k);
        ck_assert_int_ge(block, 0);
        frame_for(f, 0x800000u | (uint32_t)block << 13 | 0x1234);
        ck_assert_int_eq(away(f, LEN), k != 0);
        for (unsigned i = 1; i < MEMBERS; i++)
            ck_assert_uint_eq(waits_at(i), i == k);
        blocks_give(&dev->team->blocks, (unsigned)block, 1);
        ck_assert(!away(f, LEN));
    }
    ck_assert_uint_eq(dev->stats.steer_right, 1 + MEMBERS);
    ck_assert_uint_eq(dev->stats.steer_moved, 3);
}
END_TEST

/* A ring that is full loses frames, and that is counted. */
START_TEST(full_rings)
{
    uint8_t f[LEN];
    frame_for(f, 1u << 21 | 7);
    for (unsigned i = 0; i < 600; i++)
        ck_assert(away(f, LEN));
    ck_assert_uint_eq(dev->stats.steer_lost, 600 - 512);
}
END_TEST

/* Hostile frames: a good frame cut to each length, and noise that often looks like RoCE, with MADs
 * for QP1. No octet outside the frame is read, and no frame goes to a member that doesn't exist. */
START_TEST(any_octets)
{
    uint8_t f[400];
    unsigned moved = 0;
    for (uint32_t len = 0; len <= LEN; len++) {
        frame_for(f, 2u << 21 | 9);
        moved += away(f, len);
    }
    ck_assert_uint_eq(moved, LEN - (BTH_V4 + 12 + 4) + 1);
    srand(1);
    for (unsigned i = 0; i < 100000; i++) {
        uint32_t len = (uint32_t)rand() % sizeof(f);
        for (uint32_t k = 0; k < sizeof(f); k++)
            f[k] = (uint8_t)rand();
        f[0] &= i % 8 ? 0xFE : 0xFF;
        f[12] = i % 3 == 0 ? 0x08 : i % 3 == 1 ? 0x86 : 0x81;
        f[13] = i % 3 == 1 ? 0xDD : 0x00;
        if (i % 3 == 2) {
            f[16] = 0x08;
            f[17] = 0x00;
        }
        const uint32_t ip = i % 3 == 2 ? 18 : 14, bth = ip + (i % 3 == 1 ? 48 : 28);
        f[ip] = 0x45;
        f[ip + (i % 3 == 1 ? 6 : 9)] = 17;
        f[ip + 6] = i % 3 == 1 ? 17 : 0;
        f[ip + 7] = 0;
        f[bth - 6] = 4791 >> 8;
        f[bth - 5] = 4791 & 0xFF;
        if (i % 2) {
            memcpy(&f[bth + 5], "\0\0\1", 3);
            memcpy(&f[bth + 20], "\1\7\2\3", 4); /* a MAD of the connection manager */
            f[bth + 36] = 0;
            f[bth + 37] = 0x10 + (uint8_t)i % 11;
        }
        away(f, len);
        for (unsigned k = 1; i % 64 == 0 && k < MEMBERS; k++)
            waits_at(k);
    }
    ck_assert_uint_gt(dev->stats.steer_moved, 1000);
    ck_assert_uint_gt(dev->stats.steer_right, 1000);
}
END_TEST

/* A request to connect goes to the listener's member, also if the listener has just gone. */
START_TEST(services)
{
    struct services *s = services_new();
    struct wire_addr here = {0}, there = {0}, six = {0};
    wire_addr_parse("10.0.0.1", &here);
    wire_addr_parse("10.0.0.2", &there);
    wire_addr_parse("fd00::1", &six);
    const struct service any = {.id = 7, .any = true, .member = 1},
                         v4 = {.id = 7, .any = true, .family = 4, .member = 2},
                         v6 = {.id = 7, .any = true, .family = 6, .member = 3},
                         exact = {.id = 7, .addr = here, .member = 3};
    int a, b, c;
    ck_assert_int_eq(services_find(s, 7, &here), -1);
    ck_assert_int_eq(services_add(s, &any, &a), 0);
    ck_assert_int_eq(services_add(s, &v4, &b), -EADDRINUSE);
    ck_assert_int_eq(services_add(s, &exact, &b), -EADDRINUSE);
    ck_assert_int_eq(services_find(s, 7, &six), 1);
    ck_assert_int_eq(services_find(s, 8, &six), -1);
    services_del(s, &a);
    ck_assert(!services_has(s, 7));
    ck_assert_int_eq(services_find(s, 7, &here), 1); /* a repetition */
    ck_assert_int_eq(services_add(s, &v4, &a), 0);
    ck_assert_int_eq(services_add(s, &v6, &b), 0);
    ck_assert_int_eq(services_find(s, 7, &there), 2);
    ck_assert_int_eq(services_find(s, 7, &six), 3);
    services_del(s, &a);
    ck_assert_int_eq(services_add(s, &exact, &c), 0);
    ck_assert_int_eq(services_find(s, 7, &here), 3);
    ck_assert_int_eq(services_find(s, 7, &there), -1);
    ck_assert(services_has(s, 7));
    services_free(s);
}
END_TEST

/* A datagram queue pair of member k. */
static struct qp *datagram_qp(unsigned k)
{
    struct engine *e = dev->team->member[k]->engine;
    struct engine_qp_params params = {
        .type = QP_UD, .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1};
    struct qp *qp;
    ck_assert_int_eq(engine_cq_create(e, NULL, &params.send_cq), 0);
    params.recv_cq = params.send_cq;
    ck_assert_int_eq(mem_pd_alloc(engine_mem(e), &params.pd), 0);
    ck_assert_int_eq(engine_qp_create(e, &params, &qp), 0);
    return qp;
}

/* Of which IGMPv3 records member k sends now: a bit each. */
static unsigned says_of_groups(unsigned k, uint64_t at)
{
    uint8_t f[256];
    unsigned records = 0;
    struct neigh *n = dev->team->member[k]->neigh;
    for (unsigned i = 0; i < 64 && neigh_tx(n, f, sizeof(f), at) > 0; i++) {
        if (f[12] == 0x08 && f[13] == 0x00 && f[23] == 2)
            records |= 1u << f[14 + 24 + 8];
    }
    return records;
}

/* UD-11: the members are one host: it leaves a group when the last of them does. */
START_TEST(ud_11_last_member_leaves)
{
    struct qp *qp[2] = {datagram_qp(0), datagram_qp(1)};
    struct wire_addr group;
    uint64_t now = clock_now();
    wire_addr_parse("239.1.2.3", &group);
    for (unsigned first = 0; first < 2; first++) {
        for (unsigned k = 0; k < 2; k++) {
            struct device *m = dev->team->member[k];
            ck_assert_int_eq(engine_mcast_attach(m->engine, qp[k], &group), 0);
            ck_assert_int_eq(neigh_groups(m->neigh, now), 0);
            ck_assert_uint_eq(says_of_groups(k, now), 1u << 4); /* TO_EXCLUDE */
        }
        for (unsigned i = 0; i < 2; i++) {
            const unsigned k = first ^ i;
            struct device *m = dev->team->member[k];
            ck_assert_int_eq(engine_mcast_detach(m->engine, qp[k], &group), 0);
            ck_assert_int_eq(neigh_groups(m->neigh, now), 0);
            ck_assert_uint_eq(says_of_groups(k, now), i == 0 ? 0 : 1u << 3); /* TO_INCLUDE */
        }
    }
    for (unsigned k = 0; k < 2; k++)
        engine_qp_destroy(dev->team->member[k]->engine, qp[k]);
}
END_TEST

static struct io_ops kernel_ops; /* of a port of the kernel's, which joins groups itself */
static struct io_addr refused;   /* except this one */
static unsigned told;            /* groups */

static int kernel_groups(struct io_port *io, const struct io_addr *groups, unsigned n)
{
    (void)io;
    told = n;
    for (unsigned i = 0; i < n; i++) {
        if (memcmp(&groups[i], &refused, sizeof(refused)) == 0)
            return -ENOBUFS;
    }
    return 0;
}

/* UD-11: only member 0 can join by the kernel; the requesting member gets the result, and the list
 * of groups when it leaves again. */
START_TEST(ud_11_the_kernel_refuses)
{
    struct wire_addr good, bad;
    kernel_ops = *dev->io->ops;
    kernel_ops.groups = kernel_groups;
    dev->io->ops = &kernel_ops;
    wire_addr_parse("239.1.2.3", &good);
    wire_addr_parse("239.1.2.4", &bad);
    memcpy(refused.b, bad.b, sizeof(refused.b));
    for (unsigned k = 0; k < MEMBERS; k++)
        dev->team->member[k]->io->caps.kernel_ip = true;
    for (unsigned k = 0; k < MEMBERS; k++) {
        struct device *m = dev->team->member[k];
        struct qp *qp = datagram_qp(k);
        ck_assert_int_eq(engine_mcast_attach(m->engine, qp, &good), 0);
        ck_assert_int_eq(neigh_groups(m->neigh, clock_now()), 0);
        ck_assert_uint_eq(told, 1);
        ck_assert_int_eq(engine_mcast_attach(m->engine, qp, &bad), 0);
        ck_assert_int_eq(neigh_groups(m->neigh, clock_now()), -ENOBUFS);
        ck_assert_uint_eq(told, 2);
        ck_assert_int_eq(engine_mcast_detach(m->engine, qp, &bad), 0);
        ck_assert_int_eq(neigh_groups(m->neigh, clock_now()), 0);
        ck_assert_int_eq(team_regroup(dev), 0); /* as member 0 does in its next round */
        ck_assert_uint_eq(told, 1);
        ck_assert_int_eq(engine_mcast_detach(m->engine, qp, &good), 0);
        engine_qp_destroy(m->engine, qp);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("steer");
    TCase *c = tcase_create("steer");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_set_timeout(c, 60);
    tcase_add_test(c, by_the_first_bits);
    tcase_add_test(c, by_the_block);
    tcase_add_test(c, full_rings);
    tcase_add_test(c, any_octets);
    tcase_add_test(c, services);
    tcase_add_test(c, ud_11_last_member_leaves);
    tcase_add_test(c, ud_11_the_kernel_refuses);
    suite_add_tcase(s, c);
    return unit_run(s);
}
