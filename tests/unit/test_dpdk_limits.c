/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lines of the log about a NIC's missing features, and silence about a complete NIC. NICs of clouds
 * (ENA, gVNIC, MANA) have neither promiscuous nor all-multicast mode.
 */
#include "dpdk_limits.h"
#include "dpdk_log.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

static char said[1000];

static void log_line(enum io_log_level level, const char *subsystem, const char *text)
{
    size_t n = strlen(said);
    (void)subsystem;
    snprintf(said + n, sizeof(said) - n, "%s%s", level == IO_LOG_WARN ? "warn: " : "info: ", text);
}

#define ALL_FILTERS .unicast = true, .vlan = true, .groups = true

static const struct {
    struct dpdk_filters f;
    bool suffice;
    const char *says; /* "" = nothing */
} cases[] = {
    {{ALL_FILTERS, .hardware = true}, true, ""},
    {{ALL_FILTERS, .all = true, .wanted = true, .hardware = true}, true, ""},
    {{ALL_FILTERS, .wanted = true}, true, "warn: n: no promiscuous mode"},
    /* one filter is missing, and promiscuous mode takes its place */
    {{.vlan = true, .groups = true, .all = true}, false, "info: n: the NIC's filter for the MAC"},
    {{.unicast = true, .groups = true, .all = true}, false, "info: n: the NIC's filter for the VL"},
    {{.unicast = true, .vlan = true, .all = true, .hardware = true},
     false,
     "info: n: the NIC's filter for groups can't be set"},
    {{.unicast = true, .vlan = true, .all = true}, false, ""},
    {{.groups = true, .all = true, .wanted = true}, false, ""},
    /* ... and there is no promiscuous mode */
    {{.vlan = true, .groups = true},
     false,
     "frames for the device don't arrive; leave its mac= out"},
    {{.unicast = true, .groups = true, .vid = 7}, false, "doesn't accept VLAN 7: its frames"},
    {{.unicast = true, .vlan = true, .hardware = true}, false, "IPv6 neighbours may not find this"},
    {{.unicast = true, .vlan = true, .interface = true}, false, "multicast groups receive nothing"},
    {{.unicast = true, .vlan = true}, false, ""}, /* net_null, net_ring: no network */
};

START_TEST(a_missing_filter_is_told)
{
    ck_assert(dpdk_filters_suffice(&cases[_i].f) == cases[_i].suffice);
    said[0] = '\0';
    dpdk_filters_tell(&cases[_i].f, "n");
    if (*cases[_i].says == '\0')
        ck_assert_str_eq(said, "");
    else
        ck_assert_msg(strstr(said, cases[_i].says), "said: %s", said);
}
END_TEST

START_TEST(all_that_is_missing_is_told)
{
    const struct dpdk_filters f = {.wanted = true, .hardware = true, .vid = 9};
    said[0] = '\0';
    dpdk_filters_tell(&f, "n");
    ck_assert_ptr_nonnull(strstr(said, "no promiscuous mode"));
    ck_assert_ptr_nonnull(strstr(said, "leave its mac= out"));
    ck_assert_ptr_nonnull(strstr(said, "VLAN 9"));
    ck_assert_ptr_nonnull(strstr(said, "IPv6 neighbours"));
}
END_TEST

START_TEST(a_short_frame_is_told)
{
    said[0] = '\0';
    dpdk_frame_tell("n", 1514, 1514);
    dpdk_frame_tell("n", 1514, 4214);
    ck_assert_str_eq(said, "");
    dpdk_frame_tell("n", 4214, 1514);
    ck_assert_ptr_nonnull(strstr(said, "warn: n: an MTU of 4200 is wanted, and the NIC has 1500"));
}
END_TEST

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

int main(void)
{
    Suite *s = suite_create("dpdk_limits");
    TCase *tc = tcase_create("limits");

    dpdk_log_to(log_line);
    tcase_add_loop_test(tc, a_missing_filter_is_told, 0, COUNT(cases));
    tcase_add_test(tc, all_that_is_missing_is_told);
    tcase_add_test(tc, a_short_frame_is_told);
    suite_add_tcase(s, tc);
    return unit_run(s);
}
