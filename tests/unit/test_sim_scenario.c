/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_check.h"
#include "sim_metric.h"
#include "sim_scenario.h"
#include "unit.h"

static struct sim_scenario s;
static struct sim_error err;

static int parse(const char *text, uint32_t point)
{
    sim_scenario_free(&s);
    sim_scenario_init(&s);
    return sim_scenario_parse(&s, text, strlen(text), point, &err);
}

START_TEST(scenario_is_read)
{
    ck_assert_int_eq(parse("# what it is\n"
                           "title   two flows\n"
                           "set rate 25G # a comment\n"
                           "seed 7\nduration 20ms\nsample 10us\nmeasure 5ms\npayload carry\n"
                           "topology dumbbell hosts=2 rate=$rate core=40G delay=1.5us\n"
                           "host mtu=4096 window=64\n"
                           "switch buffer=12M kmin=5K kmax=200K pmax=1% pfc=on balance=spray\n"
                           "cc dcqcn:paper,g=1/16\n"
                           "flow from=0 to=3 size=forever\n"
                           "flow from=1 to=2 size=1M start=1ms\n"
                           "watch switch0 host1\n"
                           "fault drop prob 1%\n"
                           "expect jain >= 0.9\n"
                           "expect goodput.1 = 12.5 within 5%\n",
                           0),
                     0);
    ck_assert_str_eq(s.title, "two flows");
    ck_assert_uint_eq(s.seed, 7);
    ck_assert_uint_eq(s.duration, 20000000);
    ck_assert_uint_eq(s.measure, 5000000);
    ck_assert(!s.skip_payload);
    ck_assert_uint_eq(s.topo.rate, 25000000000ull);
    ck_assert_uint_eq(s.topo.delay, 1500);
    ck_assert_uint_eq(s.net.host.mtu, 4096);
    ck_assert_uint_eq(s.net.sw.kmin, 5 * 1024);
    ck_assert(s.net.sw.pfc && s.net.sw.balance == SIM_SPRAY);
    ck_assert_double_eq_tol(s.net.sw.pmax, .01, 1e-12);
    ck_assert_ptr_eq(s.net.host.cc.type, &cc_dcqcn);
    ck_assert_uint_eq(s.net.host.cc.v[CC_P_g], CC_ONE / 16);
    ck_assert_uint_eq(s.nloads, 2);
    ck_assert_uint_eq(s.load[0].size, 0);
    ck_assert_uint_eq(s.load[1].start, 1000000);
    ck_assert_uint_eq(s.watch[0].from, 4);
    ck_assert_uint_eq(s.watch[0].to, 1);
    ck_assert_str_eq(s.rule[0].text, "drop prob 1%");
    ck_assert_uint_eq(s.nexpects, 2);
    ck_assert_double_eq_tol(s.expect[1].within, .05, 1e-12);
}
END_TEST

#define GOOD "topology dumbbell hosts=2 rate=40G\nduration 1ms\nflow from=0 to=2 size=1K\n"

/* Line, field and reason of each mistake. */
static const struct {
    const char *text;
    unsigned line;
    const char *field, *reason;
} wrong[] = {
    {"duration 1ms\nflow from=0 to=2 size=1K\n", 0, "topology", "missing"},
    {"topology dumbbell hosts=2 rate=40G\nduration 1ms\n", 0, "flow", "no traffic"},
    {GOOD "frobnicate 3\n", 4, "frobnicate", "not a keyword"},
    {GOOD "\xef\xbb\xbfhost mtu=1024\n", 4, "\xef\xbb\xbfhost", "not a keyword"},
    {GOOD "host mtu=1500\n", 4, "mtu", "not 256"},
    {GOOD "host mtu=1K\n", 4, "mtu", "not a number"},
    {GOOD "host mtu=99999\n", 4, "mtu", "outside"},
    {GOOD "host retries=1.5\n", 4, "retries", "'1.5' is not a whole number"},
    {GOOD "seed 0.1\n", 4, "seed", "'0.1' is not a whole number"},
    {GOOD "flow from=0.9 to=2 size=1K\n", 4, "from", "'0.9' is not a whole number"},
    {GOOD "host window=32 window=32\n", 4, "window", "twice"},
    {GOOD "host colour=3\n", 4, "colour", "no such field"},
    {GOOD "host colour=3\n", 4, "colour", "there are: mtu, window, timeout, retries, dscp, sr"},
    {GOOD "flow from=0 to=2 size=1K begin=1us\n", 4, "begin",
     "from, to, size, count, start, jitter, stop, message, cc"},
    {GOOD "frobnicate 3\n", 4, "frobnicate", "there are: cc, expect, fault, host, noise"},
    {GOOD "frobnicate 3\n", 4, "frobnicate", "flow, incast, permutation"},
    {GOOD "expect goodputs >= 1\n", 4, "expect", "there are: goodput, jain, fct_p50"},
    {GOOD "switch balance=random\n", 4, "balance", "there are: ecmp, spray"},
    {GOOD "flow from=0 to=2 forever\n", 4, "forever", "is size=forever meant?"},
    {GOOD "flow from=0 to=2 size forever\n", 4, "size", "is size=forever meant?"},
    {GOOD "flow from=0 to=2 size=1K start 5us\n", 4, "start", "is start=5us meant?"},
    {GOOD "incast to=0 size=forever\n", 4, "size", "only the size of a 'flow' may be forever"},
    {GOOD "switch kmin=4K kmax=8K\n", 4, "pmax", "nothing is marked between kmin and kmax"},
    {GOOD "switch kmin=4K\nswitch kmax=8K\n", 4, "pmax", "nothing is marked between"},
    {GOOD "flow from=0 to=2 size=1K start=500us jitter=500us\n", 4, "jitter",
     "a flow could begin at 1000000ns"},
    {GOOD "flow from=0 to=2 size=forever start=1us stop=3us jitter=2us\n", 4, "stop",
     "not after start, 3000ns with its jitter"},
    {GOOD "incast to=0 size=1K jitter=10us times=10 every=110us\n", 4, "times",
     "the last of 10 bursts"},
    {"2\n0 1 3 100 1000 2.0\n1 0 3 100 1000 2.1\n", 1, "2", "flow list of ns-3"},
    {"0 1 3 100 1000 2.0\n", 1, "0", "flow list of ns-3"},
    {"# mine\n320 4 64\n256 257\n", 2, "320", "topology of ns-3"},
    {"Nodes 16\nConnections 1\n0->3 start 1000 size 4096\n", 1, "Nodes", "htsim"},
    {"0->3 start 1000 size 4096\n", 1, "0->3", "htsim"},
    {GOOD "Nodes 16\n", 4, "Nodes", "not a keyword"},
    {GOOD "switch pfc=yes\n", 4, "pfc", "neither 'on' nor 'off'"},
    {GOOD "switch kmin=9K kmax=8K\n", 4, "kmin", "larger than kmax"},
    {GOOD "switch kmin=9K\nseed 1\n", 4, "kmax", "nothing is marked without it"},
    {GOOD "switch pmax=1%\nseed 1\n", 4, "kmax", "nothing is marked without it"},
    {GOOD "switch balance=random\n", 4, "balance", "unknown"},
    {GOOD "cc dcqcn,g=7\n", 4, "cc", ""},
    {GOOD "flow from=0 to=9 size=1K\n", 4, "to", "no host 9"},
    {GOOD "flow from=1 to=1 size=1K\n", 4, "to", "comes from"},
    {GOOD "flow from=1 size=1K\n", 4, "to", "missing"},
    {GOOD "incast to=0 size=1K times=2\n", 4, "every", "interval"},
    {GOOD "incast to=0 size=1K senders=4\n", 4, "senders", "3 other hosts"},
    {GOOD "all-reduce size=1M hosts=5\n", 4, "hosts", "4 hosts"},
    {GOOD "all-reduce size=1M first=3\n", 4, "hosts", "4 from host 3 on"},
    {GOOD "all-reduce size=1M hosts=3 first=2\n", 4, "hosts", "3 from host 2 on"},
    {GOOD "arrivals sizes=mail load=1\n", 4, "sizes", "websearch"},
    {GOOD "measure 5\n", 4, "measure", "not a time"},
    {GOOD "expect jain > 1\n", 4, "expect", "METRIC <= N"},
    {GOOD "expect goodputs >= 1\n", 4, "expect", "no metric 'goodputs'"},
    {GOOD "expect .1 >= 1\n", 4, "expect", "no metric '.1'"},
    {GOOD "expect jain.1 >= 1\n", 4, "expect", "no metric 'jain.1'"},
    {GOOD "expect goodput.1x >= 1\n", 4, "expect", "no metric 'goodput.1x'"},
    {GOOD "expect goodput.-1 >= 1\n", 4, "expect", "no metric 'goodput.-1'"},
    {GOOD "expect pauses.1 <= 1\n", 4, "expect", "no metric 'pauses.1'"},
    {GOOD "expect faulted.x <= 1\n", 4, "expect", "no metric 'faulted.x'"},
    {GOOD "expect drops <= -1\n", 4, "expect", "'-1' is not a number"},
    {GOOD "expect drops = 1 within -5%\n", 4, "expect", "'-5%' is not a ratio"},
    {GOOD "payload keep\n", 4, "payload", "'keep' is neither 'carry' nor 'skip'"},
    {GOOD "seed 1\nseed 2\n", 5, "seed", "'2': there is one already"},
    {GOOD "payload skip\npayload carry\n", 5, "payload", "'carry': there is one already"},
    {GOOD "cc none\ncc dcqcn\n", 5, "cc", "'dcqcn': there is one already"},
    {GOOD "sweep x 1 2\nsweep x 3 4\n", 5, "x", "swept already"},
    {GOOD "sweep x 1 2\nset x 3\n", 5, "x", "swept already"},
    {"topology dumbbell hosts=2 rate=40G\nflow from=0 to=2 size=1K\nduration 0\n", 3, "duration",
     "0 is outside"},
    {GOOD "flow from=0 to=2 size=1K stop=1us\n", 4, "stop", "size=forever"},
    {GOOD "flow from=0 to=2 size=forever start=5us stop=5us\n", 4, "stop",
     "5000ns is not after start, 5000ns"},
    {GOOD "arrivals sizes=hadoop load=1% start=2us stop=1us\n", 4, "stop",
     "1000ns is not after start, 2000ns"},
    {GOOD "watch switch0 cloud\n", 4, "watch", "not a node"},
    {GOOD "seed $nothing\n", 4, "$", "no variable 'nothing'"},
    {GOOD "topology incast hosts=2 rate=1G\n", 4, "topology", "one already"},
    {"topology fat-tree k=5 rate=1G\n", 1, "k", "odd"},
    {"topology ring rate=1G\n", 1, "topology", "'ring' is not"},
    {GOOD "when x=1 seed 2\n", 4, "when", "a variable set before"},
    {GOOD "noise reorder=1%\n", 4, "late", "missing"},
    {GOOD "noise loss=2\n", 4, "loss", "outside"},
    {GOOD "measure 2ms\n", 4, "measure", "2000000ns is not before the end, 1000000ns"},
    {GOOD "sample 2ms\n", 4, "sample", "longer than the duration"},
    {GOOD "flow from=0 to=2 size=1K start=1ms\n", 4, "start",
     "1000000ns is not before the end, 1000000ns"},
    {GOOD "all-reduce size=1K start=2ms\n", 4, "start", "not before the end"},
    {GOOD "permutation size=1K start=2ms\n", 4, "start", "not before the end"},
    {GOOD "arrivals sizes=hadoop load=1% start=1s\n", 4, "start", "not before the end"},
    {GOOD "incast to=0 size=1K start=1us times=1000 every=1us\n", 4, "times",
     "the last of 1000 bursts would begin at 1000000ns"},
    {GOOD "flow from=0 to=2 size=1K cc=bbr\n", 4, "cc", "bbr: no such congestion control"},
    {GOOD "flow from=0 to=2 size=1K cc=dcqcn,g=2\n", 4, "cc", "g=2"},
    {GOOD "flow =0 to=2 size=1K\n", 4, "=0", "NAME=VALUE"},
};

START_TEST(scenario_mistakes_name_line_and_field)
{
    ck_assert_int_eq(parse(GOOD, 0), 0);
    ck_assert_int_eq(parse("\xef\xbb\xbf" GOOD, 0), 0); /* a byte order mark */
    ck_assert_int_ne(parse(wrong[_i].text, 0), 0);
    ck_assert_msg(err.line == wrong[_i].line && !strcmp(err.field, wrong[_i].field) &&
                      strstr(err.reason, wrong[_i].reason),
                  "%s\n-> %u: %s: %s", wrong[_i].text, err.line, err.field, err.reason);
}
END_TEST

/* ... errors that show only with the topology and the flows, found without a run. */
static const struct {
    const char *text;
    unsigned line;
    const char *field, *reason;
} misfits[] = {
    {"topology leaf-spine hosts=2 leaves=2 rate=1G\nduration 1ms\nflow from=0 to=2 size=1K\n", 1,
     "topology", "spines are missing"},
    {"topology leaf-spine hosts=1 leaves=250 spines=250 rate=1G\nduration 1ms\n"
     "flow from=0 to=2 size=1K\nswitch pfc=on\n",
     1, "topology", "too many cables: 62750, at most 32767"},
    {GOOD "watch host0 host1\n", 4, "watch", "no cable between host0 and host1"},
    {GOOD "fault at switch2 drop\n", 4, "fault", "no cable at switch2"},
    {GOOD "fault at host0-switch1 drop\n", 4, "fault", "no cable between host0 and switch1"},
    {GOOD "switch pfc=on headroom=10K buffer=30K\n", 4, "buffer", "30720 octets of 30720"},
    {GOOD "all-to-all size=1\nexpect goodput.13 <= 1\n", 5, "expect",
     "goodput.13: there is no flow 13: the run has 13"},
    {GOOD "expect faulted.1 <= 1\n", 4, "expect", "there is no fault rule 1: the run has 0"},
    {GOOD "fault drop\nexpect faulted.0 <= 1\n", 5, "expect", "there is no fault rule 0"},
    {GOOD "expect pauses.switch2 <= 1\n", 4, "expect", "there is no switch 2: the run has 2"},
    {GOOD "expect pauses.host4 <= 1\n", 4, "expect", "there is no host 4: the run has 4"},
    {GOOD "expect queue_p99 <= 1\n", 4, "expect", "queue_p99: no 'sample' is taken"},
    {GOOD "expect step <= 1\n", 4, "expect", "step: there is no all-reduce"},
};

/* Lists of traffic, watches and expectations are as long as memory holds them. */
START_TEST(scenario_lists_are_long)
{
    char *text;
    size_t len;
    FILE *f = open_memstream(&text, &len);
    fputs("topology leaf-spine hosts=8 leaves=8 spines=4 rate=40G\nduration 10ms\n", f);
    for (unsigned i = 0; i < 5000; i++)
        fprintf(f, "flow from=%u to=%u size=%u\n", i % 63, i % 63 + 1, i + 1);
    for (unsigned i = 0; i < 64; i++)
        fprintf(f, "watch switch%u host%u\n", i / 8, i);
    for (unsigned i = 0; i < 5000; i++)
        fprintf(f, "expect goodput.%u >= 0\n", i);
    fclose(f);
    ck_assert_msg(!parse(text, 0), "%u: %s: %s", err.line, err.field, err.reason);
    ck_assert_uint_eq(s.nloads, 5000);
    ck_assert_uint_eq(s.nwatches, 64);
    ck_assert_uint_eq(s.nexpects, 5000);
    for (unsigned i = 0; i < 5000; i++) {
        ck_assert_uint_eq(s.load[i].size, i + 1);
        ck_assert_uint_eq(s.load[i].line, i + 3);
    }
    ck_assert_uint_eq(s.watch[63].to, 63);
    struct sim_metric_size has;
    ck_assert_msg(!sim_check(&s, &has, &err), "%u: %s: %s", err.line, err.field, err.reason);
    ck_assert_uint_eq(has.flows, 5000);
    free(text);
}
END_TEST

/* kmin is a step without pmax only where kmax is the same. */
START_TEST(scenario_marks)
{
    ck_assert_int_eq(parse(GOOD "switch kmin=8K kmax=8K\n", 0), 0);
    ck_assert_int_eq(parse(GOOD "switch kmax=8K\n", 0), 0);
    ck_assert_int_eq(parse(GOOD "switch kmin=4K kmax=8K pmax=0\n", 0), 0);
}
END_TEST

START_TEST(scenario_must_fit_its_network)
{
    struct sim_metric_size has;
    int rc = parse(misfits[_i].text, 0);
    ck_assert_int_eq(rc, 0);
    ck_assert_int_ne(sim_check(&s, &has, &err), 0);
    ck_assert_msg(err.line == misfits[_i].line && !strcmp(err.field, misfits[_i].field) &&
                      strstr(err.reason, misfits[_i].reason),
                  "%s\n-> %u: %s: %s", misfits[_i].text, err.line, err.field, err.reason);
}
END_TEST

START_TEST(scenario_that_fits_its_network)
{
    struct sim_metric_size has;
    ck_assert_int_eq(parse(GOOD "all-reduce size=1K\nfault at switch1 drop\nsample 10us\n"
                                "watch host3 switch1\nexpect goodput.4 >= 0\nexpect step >= 0\n"
                                "expect faulted.1 >= 0\nexpect pauses.host3 <= 0\n"
                                "expect pauses.switch1 <= 0\nexpect queue_mean >= 0\n"
                                "switch pfc=on headroom=10K buffer=31K\n",
                           0),
                     0);
    ck_assert_msg(!sim_check(&s, &has, &err), "%u: %s: %s", err.line, err.field, err.reason);
    ck_assert_uint_eq(has.flows, 5);
    ck_assert_uint_eq(has.rings, 1);
    ck_assert_uint_eq(has.rules, 1);
    ck_assert_uint_eq(has.hosts, 4);
    ck_assert_uint_eq(has.switches, 2);
    ck_assert(has.sampled);
}
END_TEST

/* 1.001us are 1000.9999999999999 ns in floating point. */
START_TEST(scenario_numbers_are_rounded_to_the_nearest)
{
    ck_assert_int_eq(parse("topology dumbbell hosts=2 rate=40G delay=1.001us\nduration 1.001us\n"
                           "flow from=0 to=2 size=1K\n",
                           0),
                     0);
    ck_assert_uint_eq(s.topo.delay, 1001);
    ck_assert_uint_eq(s.duration, 1001);
}
END_TEST

/* Sweeps multiply; values set by the caller are not swept. */
START_TEST(scenario_sweeps)
{
    static const char text[] = "sweep loss 0 1% 5%\nsweep seed 1..4\nseed $seed\n"
                               "set a $loss\nfault drop prob $a\n" GOOD;
    static const char *const losses[] = {"drop prob 0", "drop prob 1%", "drop prob 5%"};
    for (uint32_t p = 0; p < 12; p++) {
        ck_assert_int_eq(parse(text, p), 0);
        ck_assert_uint_eq(s.points, 12);
        ck_assert_uint_eq(s.seed, p / 3 + 1);
        ck_assert_str_eq(s.rule[0].text, losses[p % 3]);
    }
    sim_scenario_free(&s);
    sim_scenario_init(&s);
    ck_assert(sim_scenario_set(&s, "loss", "9%"));
    ck_assert_int_eq(sim_scenario_parse(&s, text, strlen(text), 3, &err), 0);
    ck_assert_uint_eq(s.points, 4);
    ck_assert_uint_eq(s.seed, 4);
    ck_assert_str_eq(s.rule[0].text, "drop prob 9%");
}
END_TEST

/* A condition keeps or drops the rest of its line; conditions nest. */
START_TEST(scenario_conditions)
{
    static const char text[] = "sweep a 1 2\nset b x\nwhen a=2 seed 5\n"
                               "when a=2 when b=x title both of them\nwhen b=y frobnicate\n" GOOD;
    ck_assert_int_eq(parse(text, 0), 0);
    ck_assert_uint_eq(s.seed, 1);
    ck_assert_str_eq(s.title, "");
    ck_assert_int_eq(parse(text, 1), 0);
    ck_assert_uint_eq(s.seed, 5);
    ck_assert_str_eq(s.title, "both of them");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sim_scenario");
    TCase *c = tcase_create("parse");
    tcase_add_test(c, scenario_lists_are_long);
    tcase_add_test(c, scenario_marks);
    tcase_add_test(c, scenario_is_read);
    tcase_add_loop_test(c, scenario_mistakes_name_line_and_field, 0,
                        sizeof(wrong) / sizeof(wrong[0]));
    tcase_add_loop_test(c, scenario_must_fit_its_network, 0,
                        (int)(sizeof(misfits) / sizeof(misfits[0])));
    tcase_add_test(c, scenario_that_fits_its_network);
    tcase_add_test(c, scenario_numbers_are_rounded_to_the_nearest);
    tcase_add_test(c, scenario_sweeps);
    tcase_add_test(c, scenario_conditions);
    suite_add_tcase(suite, c);
    return unit_run(suite);
}
