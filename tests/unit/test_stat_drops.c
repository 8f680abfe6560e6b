/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The counters that `urnic top` adds up as drops.
 */
#include <string.h>

#include "stat.h"
#include "unit.h"

static const struct {
    const char *name;
    bool drop;
} rows[] = {
    {"rx_packets", false},      {"rx_not_roce", false},       {"rx_not_for_us", true},
    {"rx_icrc_err", true},      {"rx_bad_pkey", true},        {"dup_rd_atomic_miss", true},
    {"rx_copy_pending", true},  {"uc_drop_msg", true},        {"ud_drop_no_wqe", true},
    {"ud_drop_too_long", true}, {"rx_write_requests", false}, {"duplicate_request", false},
    {"rx_sack", false},         /* heeded */
    {"rx_placed_early", false}, /* placed */
    {"tx_nak_seq", false},      {"cm_live", false},           {"a_newer_daemon_has_it", false},
};

START_TEST(counts_dropped_frames_only)
{
    struct ipc_counter one = {.value = 7};
    const struct stat_counters c = {.count = 1, .counter = &one};
    strcpy(one.name, rows[_i].name);
    ck_assert_msg(stat_drops(&c) == (rows[_i].drop ? 7u : 0), "%s", rows[_i].name);
}
END_TEST

START_TEST(adds_up)
{
    struct ipc_counter all[] = {
        {.name = "rx_icrc_err", .value = 1ull << 40},
        {.name = "rx_sack", .value = 100},
        {.name = "ud_drop_no_wqe", .value = 3},
    };
    ck_assert_uint_eq(stat_drops(&(struct stat_counters){3, all}), (1ull << 40) + 3);
    ck_assert_uint_eq(stat_drops(&(struct stat_counters){0}), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("stat_drops");
    TCase *t = tcase_create("stat_drops");

    tcase_add_loop_test(t, counts_dropped_frames_only, 0, sizeof(rows) / sizeof(rows[0]));
    tcase_add_test(t, adds_up);
    suite_add_tcase(s, t);
    return unit_run(s);
}
