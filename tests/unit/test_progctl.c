/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SHM-15: what the daemon believes of a program's answer about its queue pairs.
 */
#include "progctl.h"

#include <string.h>

#include "ask.h"
#include "device.h"
#include "switch_rig.h"
#include "worker.h"

static const uint8_t mac[6] = {0x02, 0, 0, 0, 0, 0xAA};
static struct blocks blocks;
static struct worker w;
static struct device dev = {.worker = &w};
static struct program prog[2];
static struct client owner[2] = {{.pid = 100, .uid = 1000, .comm = "one"},
                                 {.pid = 200, .uid = 2000, .comm = "two"}};
static struct request r;
static struct ask ask_of;
static struct switch_ask answer;

static void setup(void)
{
    blocks_init(&blocks);
    dev.sw = switch_new(&blocks, 0, mac, 0, false);
    for (unsigned i = 0; i < 2; i++) {
        switch_rig_come(dev.sw, &prog[i], 0);
        prog[i].c->owner = &owner[i];
    }
    ask_of = (struct ask){.n = 1, .of = &answer};
    r.ask = &ask_of;
    r.device = &dev;
}

static void teardown(void)
{
    switch_free(dev.sw);
    for (unsigned i = 0; i < 2; i++)
        prog[i].io->ops->close(prog[i].io);
}

/* Program 0 has answered with this one. Returns the number that the daemon takes it for. */
static uint32_t believed(struct ipc_asked_qp q, struct ipc_asked_qp *out)
{
    answer = (struct switch_ask){.data = (uint8_t *)&q, .len = sizeof(q)};
    ck_assert(progctl_qp(&r, &dev, qpn_block(prog[0].qpn), 0, out));
    ck_assert(!progctl_qp(&r, &dev, qpn_block(prog[0].qpn), 1, out + 1));
    return out->info.qpn;
}

START_TEST(shm_15_answers_are_about_its_own_queue_pairs)
{
    struct ipc_asked_qp out[2],
        q = {.info = {.qpn = prog[0].qpn, .pid = 200, .uid = 0, .comm = "root", .state = 3}};
    memset(q.info.cc, '\t', sizeof(q.info.cc));
    ck_assert_uint_eq(believed(q, out), prog[0].qpn);
    ck_assert_uint_eq(out->info.pid, 100);
    ck_assert_uint_eq(out->info.uid, 1000);
    ck_assert_str_eq(out->info.comm, "one");
    ck_assert_str_eq(out->info.cc, "???????????????");
    ck_assert_uint_eq(out->info.flags, IPC_QP_F_PROGRAM);
    q.info.qpn = prog[1].qpn; /* of another program */
    ck_assert_uint_eq(believed(q, out), 0);
    q.info.qpn = prog[0].qpn ^ 5u << QPN_BLOCK_BITS; /* of none */
    ck_assert_uint_eq(believed(q, out), 0);
    q.info.qpn = 0x123; /* the daemon's */
    ck_assert_uint_eq(believed(q, out), 0);
    q.info.qpn = prog[0].qpn | 0x1000000;
    ck_assert_uint_eq(believed(q, out), 0);
    q.info.qpn = prog[0].qpn;
    q.info.state = 7;
    ck_assert_uint_eq(believed(q, out), 0);
    q.info.state = 3;
    q.info.recovery = 4;
    ck_assert_uint_eq(believed(q, out), 0);
    q.info.recovery = 3;
    dev.sw->owner[qpn_block(prog[0].qpn)] = NULL; /* it has gone meanwhile */
    ck_assert_uint_eq(believed(q, out), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("progctl");
    TCase *t = tcase_create("progctl");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, shm_15_answers_are_about_its_own_queue_pairs);
    suite_add_tcase(s, t);
    return unit_run(s);
}
