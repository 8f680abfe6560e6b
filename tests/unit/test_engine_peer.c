/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SEC-35: the peers of programs' queue pairs, as the daemon keeps them.
 */
#include "engine_peer.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "budget.h"
#include "engine.h"
#include "pair.h"
#include "program_rig.h"

#define MANY SWITCH_PAIRS

static struct rig_program prog;

static void setup(void)
{
    rig_setup();
    rig_come(&prog);
}

static void teardown(void)
{
    rig_go(&prog);
    rig_teardown();
}

static struct engine_av to(uint32_t ip)
{
    return (struct engine_av){.sgid = rig_conf.addr[0].ip,
                              .dgid = wire_addr_v4(ip),
                              .dmac = {0x02, 0, 0, 0, 0, 0x55},
                              .hop_limit = 64};
}

static int set(uint32_t qpn, uint32_t peer, const struct engine_av *av)
{
    return engine_peer_set(&prog.c, qpn, peer, av, clock_now());
}

static const struct switch_pair *pair_of(uint32_t qpn)
{
    return switch_pair_of(engine_channel_at(&prog.c), qpn);
}

/* No group's MAC, no number above 24 bits, no number of another owner. An earlier peer stays. */
START_TEST(sec_35_wrong_peers)
{
    const struct engine_av av = to(0x0A000002);
    struct engine_av group = av, other = to(0x0A000003);
    const uint32_t qpn = prog.qpn + 5;
    group.dmac[0] |= 1;
    for (unsigned had = 0; had < 2; had++) {
        ck_assert_int_eq(set(qpn, 0x123, &group), -EINVAL);
        ck_assert_int_eq(set(qpn, 0x1000123, &other), -EINVAL);
        ck_assert_int_eq(set(qpn | 0x1000000, 0x123, &other), -EINVAL);
        ck_assert_int_eq(set(qpn ^ 1u << QPN_BLOCK_BITS, 0x123, &other), -EINVAL);
        ck_assert_int_eq(set(5, 0x123, &other), -EINVAL);
        ck_assert_uint_eq(engine_channel_at(&prog.c)->npairs, had);
        const struct switch_pair *pair = pair_of(qpn);
        if (had) {
            ck_assert_ptr_nonnull(pair);
            ck_assert_uint_eq(pair->peer_qpn, 0x777);
            ck_assert_mem_eq(pair->peer.b, av.dgid.b, 16);
            ck_assert_mem_eq(pair->mac, av.dmac, 6);
        } else {
            ck_assert_int_eq(set(qpn, 0, &av), -EINVAL); /* the same as none */
            ck_assert_int_eq(set(qpn, 0x777, &av), 0);
        }
    }
    ck_assert_int_eq(set(qpn, 0, &other), 0);
    ck_assert_uint_eq(pair_of(qpn)->peer_qpn, 0x777);
    ck_assert_mem_eq(pair_of(qpn)->peer.b, other.dgid.b, 16);
}
END_TEST

/* SHM-13: a program that comes has the weight of its user. */
START_TEST(shm_13_weight_of_the_user)
{
    struct rig_program other;
    ck_assert_uint_eq(engine_channel_at(&prog.c)->weight, 1);
    rig_conf.weight[0] = (struct config_weight){.uid = prog.c.account, .weight = 7};
    rig_conf.nweight = 1;
    rig_come(&other);
    ck_assert_uint_eq(engine_channel_at(&other.c)->weight, 7);
    rig_go(&other);
}
END_TEST

/* SHM-12: a program that ends with as many as it can have costs others little at a time. */
START_TEST(shm_12_many_peers)
{
    const struct switch_channel *ch = engine_channel_at(&prog.c);
    const struct engine_av av = to(0x0A000002);
    const struct budget_stats *job = &rig_dev->stats.job[BUDGET_teardown];
    for (uint32_t i = 0; i < MANY; i++)
        ck_assert_int_eq(set(prog.qpn + i, 1000 + i, &av), 0);
    ck_assert_int_eq(set(prog.qpn + MANY, 7, &av), -EDQUOT);
    engine_peer_drop(&prog.c, prog.qpn + MANY / 2); /* the first, the last, and one of the middle */
    engine_peer_drop(&prog.c, prog.qpn);
    engine_peer_drop(&prog.c, prog.qpn + MANY - 1);
    engine_peer_drop(&prog.c, prog.qpn + MANY - 1);
    for (uint32_t i = 0; i < MANY; i++)
        ck_assert_int_eq(pair_of(prog.qpn + i) != NULL, i != 0 && i != MANY / 2 && i != MANY - 1);
    ck_assert_int_eq(set(prog.qpn, 1000, &av), 0);
    ck_assert_uint_eq(ch->npairs, MANY - 2);
    ck_assert(engine_peer_drop_some(&prog.c));
    ck_assert_uint_eq(ch->npairs, MANY - 2 - ENGINE_PEERS_DROP);
    ck_assert_uint_eq(job->visits, ENGINE_PEERS_DROP);
    ck_assert_uint_eq(job->over, 1);
    rig_visits = 0;
    engine_channel_free(&prog.c);
    ck_assert_uint_eq(rig_visits, MANY / ENGINE_PEERS_DROP); /* one that detaches, too */
    ck_assert_uint_eq(job->visits, MANY - 2);
    ck_assert_uint_eq(job->over, MANY / ENGINE_PEERS_DROP - 1);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("engine peer");
    TCase *t = tcase_create("engine peer");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, sec_35_wrong_peers);
    tcase_add_test(t, shm_13_weight_of_the_user);
    tcase_add_test(t, shm_12_many_peers);
    suite_add_tcase(s, t);
    return unit_run(s);
}
