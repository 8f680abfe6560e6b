/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fault rules in small simulations: their effect on traffic, their places, and the return of every
 * frame to the pool.
 */
#include <stdio.h>
#include <string.h>

#include "sim_rig.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Two connections: host 0 to 2, and 10 us later 1 to 3, 16 packets each. */
#define TWO                                                                                        \
    "duration 50ms\ntopology dumbbell hosts=2 rate=40G delay=1us\nhost timeout=4\n"                \
    "flow from=0 to=2 size=16K\nflow from=1 to=3 size=16K start=10us\n"
#define GBN "cc none\n" TWO
#define SR  "cc none,recovery=sr\n" TWO

/* A rule's effect on the flows. Figures not named must be 0. */
static const struct {
    const char *text;
    double again0, again1, naks, faults, faulted, timeouts, cnps;
} rows[] = {
    {GBN, 0},
    /* LR: only missing packets are sent again; go-back-N repeats all packets in flight. */
    {SR "fault drop conn 2 psn +4 first-tx\n", .again1 = 1, .faults = 1, .faulted = 1},
    {SR "fault drop conn 1 psn +4 first-tx\n", .again0 = 1, .faults = 1, .faulted = 1},
    {GBN "fault drop conn 2 psn +4 first-tx\n", .again1 = 12, .naks = 1, .faults = 1, .faulted = 1},
    /* The last packet: no later packet shows its loss, so that only the timer helps, and nothing of
     * the message was acknowledged. */
    {GBN "fault drop conn 2 psn +15 first-tx\n", .again1 = 16, .faults = 1, .faulted = 1,
     .timeouts = 1},
    {GBN "fault drop conn 2 psn +15 count 3\n", .again1 = 48, .faults = 3, .faulted = 3,
     .timeouts = 3},
    /* A damaged packet is a lost one, with payload there or not. */
    {SR "fault corrupt payload 1000 conn 2 psn +4 first-tx\n", .again1 = 1, .faulted = 1},
    {SR "payload carry\nfault corrupt payload 1000 conn 2 psn +4 first-tx\n", .again1 = 1,
     .faulted = 1},
    {SR "fault corrupt icrc conn 2 psn +4 first-tx\n", .again1 = 1, .faulted = 1},
    {SR "payload carry\nfault corrupt icrc conn 2 psn +4 first-tx\n", .again1 = 1, .faulted = 1},
    {SR "fault trim 100 conn 2 psn +4 first-tx\n", .again1 = 1, .faulted = 1},
    {SR "payload carry\nfault trim 100 conn 2 psn +4 first-tx\n", .again1 = 1, .faulted = 1},
    /* A frame to an unknown address is lost on the wire. */
    {SR "fault corrupt byte 33 xor 0x80 conn 2 psn +4 first-tx\n", .again1 = 1, .faults = 1,
     .faulted = 1},
    {GBN "fault duplicate 3 conn 2 psn +4\n", .faulted = 1},
    {GBN "fault delay 500ns data\n", .faulted = 32},
    {SR "fault delay 500ns..600ns and duplicate data\n", .faulted = 32},
    /* The next one is refused for it, the one after that for the next one. */
    {GBN "fault reorder 1 within 1ms conn 2 psn +4 first-tx\n", .again1 = 13, .naks = 2,
     .faulted = 1},
    {GBN "fault reorder 1 within 1ns conn 2 psn +4 first-tx\n", .faulted = 1},
    {GBN "fault drop ack|nak count 0x7fffffff until 1ns\n", 0},
    {GBN "fault set dqpn 0xABCDE conn 2 psn +15 first-tx\n", .again1 = 16, .faulted = 1,
     .timeouts = 1},
    {"cc dcqcn\n" TWO "fault mark conn 2 psn +4\n", .faulted = 1, .cnps = 1},
};

START_TEST(a_rule_makes_this_of_two_flows)
{
    struct sim *sim = make(rows[_i].text, NULL);
    sim_run(sim, SIM_NEVER);
    const struct {
        const char *name;
        double want;
    } figures[] = {{"retransmits.0", rows[_i].again0},
                   {"retransmits.1", rows[_i].again1},
                   {"naks", rows[_i].naks},
                   {"faults", rows[_i].faults},
                   {"faulted", rows[_i].faulted},
                   {"timeouts", rows[_i].timeouts},
                   {"cnps", rows[_i].cnps},
                   {"flows_done", 2},
                   {"bad_octets", 0}};
    for (size_t i = 0; i < COUNT(figures); i++)
        ck_assert_msg(metric(sim, figures[i].name) == figures[i].want, "%s%s is %g, not %g",
                      rows[_i].text, figures[i].name, metric(sim, figures[i].name),
                      figures[i].want);
    while (sim_window_run(&sim->w, sim->flows.last + 10000000))
        ;
    ck_assert_uint_eq(sim->w.pool.out, 0);
    sim_destroy(sim);
}
END_TEST

/* Damage that only the application notices is counted octet by octet. */
START_TEST(bad_octets_are_counted)
{
    static const struct {
        const char *rules;
        double bad;
    } bad[] = {{"fault corrupt payload 3 repair conn 2 psn +4\n", 1},
               {"fault corrupt payload 3 xor 1 repair conn 2 psn +4\n"
                "fault corrupt payload 7 xor 1 repair conn 2 psn +4\n"
                "fault corrupt payload 8 xor 1 repair conn 2 psn +4\n",
                3}};
    for (size_t i = 0; i < COUNT(bad); i++) {
        char text[1024];
        snprintf(text, sizeof(text), GBN "payload carry\n%s", bad[i].rules);
        struct sim *sim = make(text, NULL);
        sim_run(sim, SIM_NEVER);
        ck_assert_double_eq(metric(sim, "bad_octets"), bad[i].bad);
        sim_destroy(sim);
    }
}
END_TEST

/* The place of a rule, and its directions there. 16 packets; an ACK for each message. */
static const struct {
    const char *rule;
    double faulted;
} places[] = {
    {"fault mark data", 16},      /* once, at the first wire */
    {"fault mark data a->b", 16}, /* towards the host with the higher number */
    {"fault mark data b->a", 0},
    {"fault at host0 mark data", 16},
    {"fault at host0 mark data a->b", 16}, /* away from it */
    {"fault at host2 mark data a->b", 0},
    {"fault at host2 mark data b->a", 16},
    {"fault at switch0 mark data", 32}, /* received and sent frames */
    {"fault at switch0 mark data a->b", 16},
    {"fault at switch0-switch1 mark data", 16},
    {"fault at switch0-switch1 mark data a->b", 16},
    {"fault at switch1-switch0 mark data a->b", 0},
    {"fault at switch1-switch0 mark data b->a", 16},
    {"fault at host1 mark data", 0},
};

START_TEST(a_rule_acts_where_it_is_put)
{
    char text[512];
    snprintf(text, sizeof(text),
             "duration 5ms\ntopology dumbbell hosts=2 rate=40G delay=1us\ncc dcqcn\n"
             "flow from=0 to=2 size=16K\n%s\n",
             places[_i].rule);
    struct sim *sim = make(text, NULL);
    sim_run(sim, SIM_NEVER);
    ck_assert_msg(metric(sim, "faulted") == places[_i].faulted, "%s%g", text,
                  metric(sim, "faulted"));
    sim_destroy(sim);
}
END_TEST

/* Places keep their connections apart, rules of one place share them; each has its figure. */
START_TEST(rules_of_several_places)
{
    struct sim *sim = make(SR "fault drop conn 1 psn +2 first-tx\n"
                              "fault at host1 drop conn 1 psn +4 first-tx\n"
                              "fault drop conn 2 psn +6 first-tx\n"
                              "fault at host0 drop conn 2\n",
                           NULL);
    sim_run(sim, SIM_NEVER);
    ck_assert(metric(sim, "faulted.1") == 1 && metric(sim, "retransmits.0") == 1);
    ck_assert(metric(sim, "faulted.2") == 1 && metric(sim, "faulted.3") == 1);
    ck_assert(metric(sim, "faulted.4") == 0 && metric(sim, "retransmits.1") == 2);
    ck_assert(metric(sim, "faulted") == 3);
    double v;
    ck_assert(!sim_metric(sim, "faulted.5", &v) && !sim_metric(sim, "faulted.0", &v));
    sim_destroy(sim);
}
END_TEST

/* No packet is missing, but a forged NAK reports one to the sender. */
START_TEST(an_injected_nak_sends_the_sender_back)
{
    struct sim *sim = make("duration 5ms\ntopology dumbbell hosts=1 rate=40G delay=1us\n"
                           "flow from=0 to=1 size=256K message=4K\n"
                           "fault inject nak psn-seq psn +100 first-tx\n",
                           NULL);
    sim_run(sim, SIM_NEVER);
    ck_assert(metric(sim, "flows_done") == 1 && metric(sim, "naks") == 0);
    ck_assert(metric(sim, "retransmits") >= 1 && metric(sim, "retransmits") <= 10);
    sim_destroy(sim);
}
END_TEST

/* An injected pause frame stops the sender for its time: 65535 quanta at 40 Gb/s are 839 us. */
START_TEST(an_injected_pause_is_obeyed)
{
    struct sim *sim = make("duration 5ms\ntopology dumbbell hosts=1 rate=40G delay=1us\n"
                           "flow from=0 to=1 size=16K\nfault inject pause 3 psn +4\n",
                           NULL);
    sim_run(sim, SIM_NEVER);
    ck_assert(metric(sim, "flows_done") == 1);
    double us = metric(sim, "time") * 1000;
    ck_assert_msg(us > 839 && us < 860, "%g us", us);
    sim_destroy(sim);
}
END_TEST

static uint64_t trace_of(const char *text, double *faulted)
{
    struct sim *sim = make(text, NULL);
    sim_run(sim, SIM_NEVER);
    uint64_t trace = sim->w.trace;
    *faulted = metric(sim, "faulted");
    sim_destroy(sim);
    return trace;
}

START_TEST(the_same_seed_the_same_faults)
{
#define DICE "fault drop data prob 10%\nfault delay 1us..9us ack prob 1/2\n"
    double a, b, c;
    uint64_t x = trace_of(GBN DICE, &a), y = trace_of(GBN DICE, &b),
             z = trace_of(GBN DICE "seed 2\n", &c);
    ck_assert_uint_eq(x, y);
    ck_assert(a == b && a > 0);
    ck_assert_uint_ne(x, z);
}
END_TEST

static const struct {
    const char *text;
    unsigned line;
    const char *says;
} wrong[] = {
    {"fault dorp\n", 1, "'dorp', column 1: expected an action"},
    {"fault drop conn\n", 1, "column 10"},
    {"fault\n", 1, "one rule of at most"},
    {"fault at host0 drop\n", 1, "follow the topology"},
    {TWO "fault at host9 drop\n", 6, "'host9' is not a node"},
    {TWO "fault at host0-host9 drop\n", 6, "'host9' is not a node"},
    {TWO "fault at host0-host1 drop\n", 6, "there is no cable between host0 and host1"},
    {TWO "fault at host0\n", 6, "a rule is missing"},
};

START_TEST(what_is_wrong_is_told)
{
    struct sim_error err = {0};
    struct sim *sim;
    sim_scenario_free(&s);
    sim_scenario_init(&s);
    int rc = sim_scenario_parse(&s, wrong[_i].text, strlen(wrong[_i].text), 0, &err);
    if (!rc)
        rc = sim_create(&s, NULL, &sim, &err);
    ck_assert_int_lt(rc, 0);
    ck_assert_msg(err.line == wrong[_i].line && strstr(err.reason, wrong[_i].says), "%u: %s: %s",
                  err.line, err.field, err.reason);
    ck_assert_str_eq(err.field, "fault");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sim fault");
    TCase *c = tcase_create("rules");
    tcase_add_loop_test(c, a_rule_makes_this_of_two_flows, 0, (int)COUNT(rows));
    tcase_add_loop_test(c, a_rule_acts_where_it_is_put, 0, (int)COUNT(places));
    tcase_add_test(c, bad_octets_are_counted);
    tcase_add_test(c, rules_of_several_places);
    tcase_add_test(c, an_injected_nak_sends_the_sender_back);
    tcase_add_test(c, an_injected_pause_is_obeyed);
    tcase_add_test(c, the_same_seed_the_same_faults);
    tcase_add_loop_test(c, what_is_wrong_is_told, 0, (int)COUNT(wrong));
    suite_add_tcase(suite, c);
    return unit_run(suite);
}
