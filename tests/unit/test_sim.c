/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whole small simulations: determinism, conservation, and the promises of a switch.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim_rig.h"

#define US 1000ull

/* Every frame out of the pool has come back, and a queue's octets with it. */
static void check_empty(struct sim *sim)
{
    sim_call_off(&sim->w, &sim->sample);
    while (sim_window_run(&sim->w, sim->flows.last + 10000000))
        ;
    ck_assert_uint_eq(sim->w.pool.out, 0);
    for (uint32_t i = 0; i < sim->net.nports; i++) {
        ck_assert_uint_eq(sim->net.port[i].queued, 0);
        ck_assert_uint_eq(sim->net.port[i].backlog, 0);
    }
    for (uint32_t i = 0; i < sim->net.nswitches; i++)
        ck_assert_uint_eq(sim->net.sw[i].used, 0);
}

#define INCAST(sw, more)                                                                           \
    "duration 20ms\nsample 10us\ntopology incast hosts=8 rate=40G delay=1us\n"                     \
    "switch buffer=2M " sw "\n" more "incast to=8 size=256K every=3ms times=2\n"

/* The digest covers every frame's time, place and headers. */
static uint64_t trace_of(const char *text, double *time)
{
    struct sim *sim = make(text, NULL);
    sim_run(sim, SIM_NEVER);
    uint64_t trace = sim->w.trace;
    *time = metric(sim, "time");
    sim_destroy(sim);
    return trace;
}

START_TEST(same_seed_same_frames)
{
    static const char lossy[] = INCAST("", "cc dcqcn\n"),
                      other[] = INCAST("", "cc dcqcn\nseed 2\n");
    double t, u;
    uint64_t a = trace_of(lossy, &t), b = trace_of(lossy, &u), c = trace_of(other, &u);
    ck_assert_uint_eq(a, b);
    ck_assert_uint_ne(a, c);
}
END_TEST

/* Cutting the run into slices changes nothing. */
START_TEST(slices_change_nothing)
{
    double t;
    uint64_t whole = trace_of(INCAST("", ""), &t);
    struct sim *sim = make(INCAST("", ""), NULL);
    for (uint64_t until = 0; sim_run(sim, until); until += 777)
        ;
    ck_assert_uint_eq(sim->w.trace, whole);
    ck_assert_double_eq_tol(metric(sim, "time"), t, 1e-9);
    sim_destroy(sim);
}
END_TEST

/* The result does not depend on where windows are cut, not even which of two events of the same
 * time comes first. Compare runs with windows of one nanosecond, of other lengths, and of the
 * greatest length. */
static const char *const cuts[] = {
    "duration 3ms\nsample 7us\nmeasure 33us\ntopology incast hosts=127 rate=40G delay=1us\n"
    "switch buffer=12M pfc=on xoff=16K kmin=5K kmax=50K pmax=10%\ncc dcqcn\n"
    "incast to=127 size=24K every=600us times=2\n",
    "duration 20ms\nhost timeout=2\ntopology incast hosts=127 rate=40G delay=700ns\n"
    "switch buffer=1M\ncc swift,recovery=sr\nincast to=127 size=20K\n",
    "duration 5ms\ntopology leaf-spine hosts=16 leaves=8 spines=8 rate=100G core=100G delay=500ns\n"
    "switch buffer=2M balance=spray\ncc timely,recovery=sr\npermutation size=100K\n",
    "duration 300us\ntopology fat-tree k=8 rate=100G delay=800ns\nswitch buffer=900K pfc=on\n"
    "cc dcqcn\narrivals sizes=hadoop load=40%\npermutation size=3K start=10us\n",
    "duration 1s\ntopology leaf-spine hosts=16 leaves=8 spines=2 rate=100G delay=1500ns\n"
    "switch pfc=on\ncc dcqcn\nall-reduce size=300K times=2 start=5us\n",
    /* flows fail, also in a ring; the numbers of their queue pairs come again */
    "duration 20ms\nhost timeout=1 retries=0\nswitch buffer=60K\n"
    "topology dumbbell hosts=64 rate=40G delay=700ns\npermutation size=20K\n"
    "permutation size=20K start=1us\npermutation size=20K start=40us\n"
    "all-reduce size=100K hosts=9 start=2us\n",
};

/* All figures, flow by flow and as a whole. */
static void same_runs(struct sim *a, struct sim *b)
{
    double x, y;
    for (uint32_t i = 0; i < a->flows.n; i++) {
        const struct sim_flow *f = &a->flows.flow[i], *g = &b->flows.flow[i];
        ck_assert_uint_eq(f->state, g->state);
        ck_assert_uint_eq(f->end, g->end);
        ck_assert_uint_eq(a->flows.placed[i], b->flows.placed[i]);
    }
    for (const struct sim_metric_info *m = sim_metrics; m->name; m++) {
        ck_assert_int_eq(sim_metric(a, m->name, &x), sim_metric(b, m->name, &y));
        ck_assert_msg(x == y || isnan(x), "%s: %g and %g", m->name, x, y);
    }
    ck_assert_uint_eq(a->w.trace, b->w.trace);
    ck_assert_uint_eq(a->queue[0].n, b->queue[0].n);
    for (uint32_t i = 0; i < a->queue[0].n; i++) {
        ck_assert(a->queue[0].point[i].v == b->queue[0].point[i].v);
        ck_assert(a->again.point[i].v == b->again.point[i].v);
    }
    for (uint32_t i = 0; i < a->net.nhosts; i++)
        ck_assert_mem_eq(engine_counters(a->net.host[i].e), engine_counters(b->net.host[i].e),
                         ENGINE_COUNTER_MAX * sizeof(uint64_t));
}

START_TEST(windows_change_nothing)
{
    struct sim *one = make(cuts[_i], NULL), *sim;
    ck_assert_uint_gt(one->w.lookahead, 499);
    one->w.window = 1;
    sim_run(one, SIM_NEVER);
    ck_assert_double_gt(metric(one, "flows_done"), 0);
    ck_assert_int_eq(metric(one, "flows_failed") > 0, _i == 5);

    sim = make(cuts[_i], NULL);
    sim_run(sim, SIM_NEVER);
    same_runs(one, sim);
    sim_destroy(sim);

    sim = make(cuts[_i], NULL);
    sim->w.window = 333;
    for (uint64_t until = 0; sim_run(sim, until); until += 10007)
        ;
    same_runs(one, sim);
    sim_destroy(sim);
    sim_destroy(one);
}
END_TEST

/* A small network runs without windows, a large one with them: to a lone flow it is the same. */
START_TEST(order_means_nothing_to_one_flow)
{
    struct sim *sim[2];
    char text[300];
    for (unsigned i = 0; i < 2; i++) {
        snprintf(text, sizeof(text),
                 "duration 10ms\ntopology dumbbell hosts=%u rate=40G delay=600ns\ncc dcqcn\n"
                 "flow from=0 to=%u size=1M start=3us\nflow from=%u to=1 size=100K start=1ms\n",
                 63 + i, 63 + i, 100 + i);
        sim[i] = make(text, NULL);
        sim_run(sim[i], SIM_NEVER);
    }
    ck_assert(!sim[0]->w.lookahead && sim[1]->w.lookahead >= 600);
    ck_assert_double_eq(metric(sim[0], "flows_done"), 2);
    for (unsigned i = 0; i < 2; i++)
        ck_assert_uint_eq(sim[0]->flows.flow[i].end, sim[1]->flows.flow[i].end);
    ck_assert_uint_eq(sim[0]->w.now, sim[1]->w.now);
    sim_destroy(sim[0]);
    sim_destroy(sim[1]);
}
END_TEST

/* Payload carried is the same run, frame by frame, with real octets that arrive as they were. */
START_TEST(payload_changes_nothing)
{
    double t, u;
    ck_assert_uint_eq(trace_of(INCAST("", ""), &t), trace_of(INCAST("", "payload carry\n"), &u));
    struct sim *sim = make(INCAST("", "payload carry\n"), NULL);
    sim_run(sim, SIM_NEVER);
    ck_assert_double_eq(metric(sim, "flows_done"), 16);
    ck_assert_double_eq(metric(sim, "bad_octets"), 0);
    sim_destroy(sim);
}
END_TEST

/* Two senders, one receiver, PFC alone: the queue at the threshold is many times the cable's
 * content, so the link is full. A wider gap makes fewer pauses. */
START_TEST(pfc_keeps_the_link_full)
{
    static const char *const gaps[] = {"xon_gap=4K", "xon_gap=32K", "xon_gap=100K"};
    double pauses[3];
    for (unsigned i = 0; i < 3; i++) {
        char text[512];
        snprintf(text, sizeof(text),
                 "duration 2ms\nmeasure 500us\ntopology incast hosts=2 rate=100G delay=1us\n"
                 "host window=16384\nswitch buffer=64M pfc=on xoff=128K %s\n"
                 "incast to=2 size=1G\n",
                 gaps[i]);
        struct sim *sim = make(text, NULL);
        sim_run(sim, SIM_NEVER);
        ck_assert_double_eq(metric(sim, "drops"), 0);
        pauses[i] = metric(sim, "pauses");
        if (i < 2)
            ck_assert_double_eq_tol(metric(sim, "goodput"), 92.58, .3);
        sim_destroy(sim);
    }
    ck_assert_double_gt(pauses[0], 1.5 * pauses[1]);
    ck_assert_double_gt(pauses[1], 1.2 * pauses[2]);
}
END_TEST

/* LR-16: a loss costs go-back-N one round trip, 47 packets here: of 88.48 ns each at 100 Gb/s, with
 * every 100th lost, 8848 of 8848 + 4190 ns are for new ones. Halving the window costs more. */
START_TEST(lr_16_a_loss_costs_a_round_trip)
{
    static const char *const recovery[] = {"none,recovery=gbn", "none,recovery=gbn,shrink=1"};
    double goodput[2];
    for (unsigned i = 0; i < 2; i++) {
        char text[512];
        snprintf(text, sizeof(text),
                 "duration 6ms\nmeasure 1ms\ntopology incast hosts=1 rate=100G delay=1us\n"
                 "host window=1024 timeout=10\ncc %s\nfault drop data first-tx every 100\n"
                 "flow from=0 to=1 size=forever message=16M\n",
                 recovery[i]);
        struct sim *sim = make(text, NULL);
        sim_run(sim, SIM_NEVER);
        ck_assert_double_eq(metric(sim, "timeouts"), 0);
        goodput[i] = metric(sim, "goodput");
        sim_destroy(sim);
    }
    ck_assert_double_eq_tol(goodput[0], 92.59 * 8848 / (8848 + 4190), 2);
    ck_assert_double_lt(goodput[1], 45);
}
END_TEST

/* LR-03, LR-04: a fresh queue pair with selective repeat. If the first packet is only late, that
 * costs two round trips (of 4.2 us) at most. A lost packet costs 100 us (RTO_low) while fewer than
 * three are in flight, else 320 us (RTO_high); T would be over 4 ms. */
START_TEST(lr_04_fresh_queue_pairs)
{
    static const struct {
        const char *fault;
        double timeouts, fct;
    } cases[] = {
        {"delay 1us write psn +0 count 1\nflow from=0 to=1 size=1500", 0, 17},
        {"delay 1us write psn +0 count 1\nflow from=0 to=1 size=64K", 0, 25},
        {"drop data first-tx psn +0\nflow from=0 to=1 size=1000", 1, 110},
        {"drop data first-tx psn +1\nflow from=0 to=1 size=1500", 1, 110},
        {"drop data first-tx psn +63\nflow from=0 to=1 size=64K", 1, 340},
    };
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[512];
        snprintf(text, sizeof(text),
                 "duration 20ms\ntopology incast hosts=1 rate=100G delay=1us\nhost timeout=10\n"
                 "cc none,recovery=sr\nfault %s\n",
                 cases[i].fault);
        struct sim *sim = make(text, NULL);
        sim_run(sim, SIM_NEVER);
        ck_assert_double_eq(metric(sim, "faulted"), 1);
        ck_assert_double_eq(metric(sim, "timeouts"), cases[i].timeouts);
        ck_assert_msg(metric(sim, "fct_p50") <= cases[i].fct, "%u: %g us", i,
                      metric(sim, "fct_p50"));
        sim_destroy(sim);
    }
}
END_TEST

/* LR-02: short flows of ends that have agreed before: a late first packet costs only its delay, and
 * no received packet is sent again. */
START_TEST(lr_02_agreed_before)
{
    struct sim *sim = make("duration 20ms\ntopology incast hosts=1 rate=100G delay=1us\n"
                           "host timeout=10 sr=agreed\ncc none,recovery=sr\n"
                           "fault drop psn +3 first-tx\nflow from=0 to=1 size=64K\n",
                           NULL);
    sim_run(sim, SIM_NEVER);
    ck_assert_double_eq(metric(sim, "faulted"), 1);
    ck_assert_double_eq(metric(sim, "retransmits"), 1);
    ck_assert_double_eq(metric(sim, "timeouts"), 0);
    sim_destroy(sim);
}
END_TEST

/* Flows that begin in one nanosecond take the same course with any seed; with jitter each begins at
 * a time of its own, within the jitter. */
START_TEST(jitter_makes_seeds_differ)
{
    static const char *const lines[] = {"incast to=4 size=64K start=1us%s",
                                        "flow from=0 to=4 size=64K count=4 start=1us%s",
                                        "all-to-all size=64K start=1us%s"};
    for (unsigned i = 0; i < 3; i++) {
        for (unsigned with = 0; with < 2; with++) {
            uint64_t first[2];
            for (unsigned seed = 1; seed <= 2; seed++) {
                char text[256], line[128];
                snprintf(line, sizeof(line), lines[i], with ? " jitter=5us" : "");
                snprintf(text, sizeof(text),
                         "seed %u\nduration 9ms\ntopology incast hosts=4 rate=40G\n%s\n", seed,
                         line);
                struct sim *sim = make(text, NULL);
                first[seed - 1] = sim->flows.flow[0].begin;
                for (uint32_t k = 0; k < sim->flows.n; k++) {
                    ck_assert_uint_ge(sim->flows.flow[k].begin, 1000);
                    ck_assert_uint_lt(sim->flows.flow[k].begin, with ? 6000 : 1001);
                }
                sim_destroy(sim);
            }
            ck_assert_int_eq(first[0] != first[1], with);
        }
    }
}
END_TEST

/* queue_max is of the longest queue of all switches, or of all watched ports. */
START_TEST(queues_of_all_ports)
{
#define TO_0                                                                                       \
    "duration 1ms\nsample 10us\ntopology incast hosts=8 rate=100G delay=1us\n"                     \
    "switch pfc=on xoff=64K\nincast to=0 size=1M senders=7\n"
    struct sim *sim = make(TO_0, NULL);
    sim_run(sim, SIM_NEVER);
    ck_assert_double_gt(metric(sim, "queue_max"), 100);
    ck_assert_str_eq(sim_longest_queue(sim)->peer->node->name, "host0");
    ck_assert_double_eq(metric(sim, "queue_p99"), 0); /* the topology's bottleneck is idle */
    sim_destroy(sim);
    sim = make(TO_0 "watch switch0 host8\nwatch switch0 host0\n", NULL);
    sim_run(sim, SIM_NEVER);
    ck_assert_double_gt(metric(sim, "queue_max"), 100);
    ck_assert_double_gt(metric(sim, "queue_p50"), 100);
    sim_destroy(sim);
    sim = make(TO_0 "watch switch0 host8\n", NULL);
    sim_run(sim, SIM_NEVER);
    ck_assert_double_eq(metric(sim, "queue_max"), 0);
    sim_destroy(sim);
}
END_TEST

/* The goodput of arrivals covers the time in which they come: the rest takes long, and shows
 * nothing about the load. */
START_TEST(goodput_of_arrivals)
{
    struct sim *sim = make("duration 1s\ntopology incast hosts=8 rate=40G\ncc fixed,rate=100M\n"
                           "arrivals sizes=hadoop load=10% stop=2ms\n",
                           NULL);
    sim_run(sim, SIM_NEVER);
    double octets = 0;
    for (uint32_t i = 0; i < sim->flows.n; i++)
        octets += (double)sim->flows.placed[i];
    ck_assert_double_gt(metric(sim, "time"), 20); /* ms: the tail */
    ck_assert_uint_eq(sim->drain_from, 2000000);
    ck_assert_double_eq_tol(metric(sim, "goodput"), (double)sim->drain_placed * 8 / 2e6, 1e-6);
    ck_assert_double_gt(metric(sim, "goodput"), 1.2 * octets * 8 / (metric(sim, "time") * 1e6));
    sim_destroy(sim);
}
END_TEST

/* Without PFC a small buffer drops, and go-back-N repairs it; with PFC nothing is lost. */
START_TEST(pfc_loses_nothing)
{
    struct sim *sim = make(INCAST("pfc=off", ""), NULL);
    sim_run(sim, SIM_NEVER);
    ck_assert_double_gt(metric(sim, "drops"), 100);
    ck_assert_double_gt(metric(sim, "retransmits"), 100);
    ck_assert_double_eq(metric(sim, "pauses"), 0);
    ck_assert_double_eq(metric(sim, "flows_done"), 16);
    check_empty(sim);
    sim_destroy(sim);

    sim = make(INCAST("pfc=on xoff=64K", ""), NULL);
    sim_run(sim, SIM_NEVER);
    ck_assert_double_eq(metric(sim, "drops"), 0);
    ck_assert_double_eq(metric(sim, "retransmits"), 0);
    ck_assert_double_gt(metric(sim, "pauses"), 8);
    ck_assert_double_gt(metric(sim, "paused"), 0);
    ck_assert_double_eq(metric(sim, "flows_done"), 16);
    for (uint32_t i = 0; i < sim->net.nswitches; i++)
        ck_assert_uint_eq(sim->net.sw[i].lost_headroom, 0);
    /* the first burst: 8 senders fill 64K each plus the frames before a pause takes effect */
    ck_assert_double_lt(metric(sim, "queue_max"), 8 * (64 * 1.024 + 45));
    check_empty(sim);
    sim_destroy(sim);
}
END_TEST

/* CC-02, CC-03, CC-10: marks make CNPs, CNPs make the queue shorter. */
START_TEST(cc_02_marking_shortens_the_queue)
{
    static const char with[] = "duration 60ms\nsample 10us\nmeasure 30ms\n"
                               "topology incast hosts=4 rate=40G\n"
                               "switch kmin=5K kmax=200K pmax=1% pfc=on xoff=200K\ncc dcqcn:paper\n"
                               "flow from=0 to=4 size=forever\nflow from=1 to=4 size=forever\n";
    char without[sizeof(with)];
    memcpy(without, with, sizeof(with));
    memcpy(strstr(without, "dcqcn:paper"), "none       ", 11);
    struct sim *a = make(with, NULL);
    sim_run(a, SIM_NEVER);
    double marks = metric(a, "marks"), cnps = metric(a, "cnps"), queue = metric(a, "queue_p99");
    ck_assert_double_gt(marks, cnps);
    ck_assert_double_ge(cnps, 4);
    ck_assert_double_gt(metric(a, "goodput"), 30);
    sim_destroy(a);
    struct sim *b = make(without, NULL);
    sim_run(b, SIM_NEVER);
    ck_assert_double_eq(metric(b, "marks"), 0); /* CC-01: not ECN-capable */
    ck_assert_double_gt(metric(b, "queue_p99"), 2 * queue);
    sim_destroy(b);
}
END_TEST

/* A lone flow takes the time of sim_net_ideal, and fills the wire. */
START_TEST(ideal_time_is_reached)
{
    static const char text[] =
        "duration 10ms\ntopology leaf-spine hosts=2 leaves=2 spines=2 rate=100G core=100G "
        "delay=700ns\nflow from=0 to=3 size=1M\nflow from=1 to=2 size=100 start=5ms\n";
    struct sim *sim = make(text, NULL);
    sim_run(sim, SIM_NEVER);
    for (unsigned i = 0; i < 2; i++) {
        const struct sim_flow *f = &sim->flows.flow[i];
        double ratio = (double)(f->end - f->begin) / (double)f->ideal;
        ck_assert_int_eq(f->state, SIM_DONE);
        ck_assert_double_ge(ratio, 1 - 1e-3);
        ck_assert_double_le(ratio, 1.02);
    }
    sim_destroy(sim);
}
END_TEST

static const struct {
    const char *topology;
    uint32_t hosts, switches;
} topologies[] = {
    {"dumbbell hosts=3 rate=10G", 6, 2},
    {"parking-lot hops=3 rate=10G", 8, 4},
    {"incast hosts=5 rate=10G", 6, 1},
    {"leaf-spine hosts=3 leaves=4 spines=2 rate=10G core=40G", 12, 6},
    {"fat-tree k=4 rate=10G", 16, 20},
};

/* Every host reaches every other, by ECMP and by spraying. */
START_TEST(all_pairs_are_connected)
{
    char text[400];
    snprintf(text, sizeof(text),
             "duration 100ms\ntopology %s\nswitch balance=%s\nall-to-all size=3000\n",
             topologies[_i / 2].topology, _i % 2 ? "spray" : "ecmp");
    struct sim *sim = make(text, NULL);
    sim_run(sim, SIM_NEVER);
    uint32_t n = topologies[_i / 2].hosts;
    ck_assert_uint_eq(sim->net.nhosts, n);
    ck_assert_uint_eq(sim->net.nswitches, topologies[_i / 2].switches);
    ck_assert_uint_eq(sim->flows.done, n * (n - 1));
    for (uint32_t i = 0; i < sim->flows.n; i++)
        ck_assert_uint_eq(sim->flows.placed[i], 3000);
    check_empty(sim);
    sim_destroy(sim);
}
END_TEST

/* 2 (n - 1) steps, each a chunk over one link: the time of an all-reduce is known. */
START_TEST(all_reduce_takes_its_steps)
{
    struct sim *sim = make("duration 1s\ntopology incast hosts=7 rate=100G delay=500ns\n"
                           "all-reduce size=8M times=3\n",
                           NULL);
    sim_run(sim, SIM_NEVER);
    const struct sim_ring *r = sim->flows.ring[0];
    ck_assert_uint_eq(r->steps, 14);
    ck_assert_double_eq(metric(sim, "flows_done"), 8);
    for (uint32_t i = 0; i < sim->flows.n; i++)
        ck_assert_uint_eq(sim->flows.placed[i], 3 * 14 * (1u << 20));
    double step = (double)(1 << 20) * (1024 + 58 + 24) / 1024 * 8 / 100e3 + 1.1; /* us */
    ck_assert_double_ge(metric(sim, "step"), step * .99);
    ck_assert_double_le(metric(sim, "step"), step * 1.03);
    sim_destroy(sim);
}
END_TEST

/* Loss and delay hit the requested part of the frames, and all messages still arrive whole, in
 * order, once. */
START_TEST(noise_is_repaired)
{
    static const char *const recovery[] = {"gbn", "gbn-ooo", "sr"};
    char text[400];
    snprintf(text, sizeof(text),
             "duration 1s\npayload carry\ntopology dumbbell hosts=1 rate=40G\n"
             "host timeout=4\ncc none,recovery=%s\nnoise loss=2%% reorder=3%% late=5us\n"
             "flow from=0 to=1 size=8M\n",
             recovery[_i]);
    struct sim *sim = make(text, NULL);
    sim_run(sim, SIM_NEVER);
    double frames = 0;
    for (uint32_t i = 0; i < sim->net.nhosts; i++)
        frames += (double)sim->net.host[i].port->peer->tx_packets;
    ck_assert_double_eq_tol((double)sim->noise.lost / frames, .02, .004);
    ck_assert_double_eq_tol((double)sim->noise.late / frames, .03, .004);
    ck_assert_double_eq(metric(sim, "faults"), (double)sim->noise.lost);
    ck_assert_double_eq(metric(sim, "flows_done"), 1);
    ck_assert_double_eq(metric(sim, "bad_octets"), 0);
    ck_assert_double_gt(metric(sim, "retransmits"), 100);
    check_empty(sim);
    sim_destroy(sim);
}
END_TEST

/* Completion times are of flows that have ended; the number of unfinished flows of a finite size is
 * reported. */
START_TEST(open_flows_are_told)
{
    static const struct {
        uint64_t until;
        double open, done;
    } rows[] = {{10 * US, 4, 0}, {1000 * US, 1, 3}, {4000 * US, 0, 6}};
    struct sim *sim = make("duration 4ms\ntopology incast hosts=4 rate=10G\n"
                           "flow from=0 to=4 size=64K count=3\nflow from=1 to=4 size=1M\n"
                           "flow from=2 to=4 size=1K start=1500us\n"
                           "flow from=3 to=4 size=forever stop=700us\n",
                           NULL);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        sim_run(sim, rows[i].until);
        ck_assert_msg(metric(sim, "flows_open") == rows[i].open, "row %zu: %g are open", i,
                      metric(sim, "flows_open"));
        ck_assert_msg(metric(sim, "flows_done") == rows[i].done, "row %zu: %g are done", i,
                      metric(sim, "flows_done"));
    }
    sim_destroy(sim);
}
END_TEST

/* Flows with a congestion control and a recovery of their own beside others. */
START_TEST(flows_of_different_kinds)
{
    struct sim *sim = make("duration 8ms\nmeasure 2ms\ntopology incast hosts=2 rate=40G\n"
                           "flow from=0 to=2 size=forever cc=fixed,rate=5G\n"
                           "flow from=1 to=2 size=forever\n",
                           NULL);
    sim_run(sim, SIM_NEVER);
    double fixed = 5 * 1024 / 1082., all = 40 * 1024 / 1106.; /* of frames; with their gaps */
    ck_assert_double_eq_tol(metric(sim, "goodput.0"), fixed, .01 * fixed);
    ck_assert_double_eq_tol(metric(sim, "goodput.1"), all - fixed, .01 * all);
    sim_destroy(sim);

    sim = make("duration 60ms\ntopology incast hosts=2 rate=40G\nnoise loss=1%\ncc none\n"
               "incast to=2 size=2M senders=1 cc=none,recovery=sr\n"
               "flow from=1 to=2 size=2M\n",
               NULL);
    sim_run(sim, SIM_NEVER);
    ck_assert(metric(sim, "flows_done") == 2);
    ck_assert(metric(sim, "retransmits.0") > 0);
    ck_assert(metric(sim, "retransmits.1") > 4 * metric(sim, "retransmits.0"));
    sim_destroy(sim);
}
END_TEST

#define BURST "duration 10ms\ntopology incast hosts=2 rate=40G\nswitch kmin=5K kmax=200K pmax=1%\n"

/* All flows with their own, or the hosts': the same frames. */
START_TEST(of_flows_or_of_hosts)
{
    static const char *const texts[] = {BURST "cc dcqcn:paper\nincast to=2 size=1M\n",
                                        BURST "incast to=2 size=1M cc=dcqcn:paper\n",
                                        BURST "incast to=2 size=1M\n"};
    uint64_t trace[3];
    for (size_t i = 0; i < 3; i++) {
        struct sim *sim = make(texts[i], NULL);
        sim_run(sim, SIM_NEVER);
        trace[i] = sim->w.trace;
        sim_destroy(sim);
    }
    ck_assert_uint_eq(trace[0], trace[1]);
    ck_assert_uint_ne(trace[0], trace[2]);
}
END_TEST

struct watcher {
    unsigned frames, bad, pauses;
    uint64_t last;
};

static void on_frame(void *arg, const struct sim_node *node, enum sim_dir dir, const uint8_t *frame,
                     uint32_t len, const char *note, uint64_t now)
{
    struct watcher *w = arg;
    struct wire_pkt p;
    (void)node;
    (void)dir;
    (void)note;
    w->frames++;
    w->bad += now < w->last;
    w->last = now;
    if (frame[12] == 0x88 && frame[13] == 0x08)
        w->pauses++;
    else
        w->bad += wire_parse(frame, len, 0, &p) != WIRE_OK;
}

/* A capture has whole, good frames, also with payload skipped. */
START_TEST(watched_frames_are_good)
{
    struct watcher w = {0};
    const struct sim_hooks hooks = {.arg = &w, .frame = on_frame};
    struct sim *sim =
        make(INCAST("pfc=on xoff=64K kmin=5K kmax=50K pmax=10%", "cc dcqcn\n"), &hooks);
    sim->net.host[0].node.watched = true;
    sim_run(sim, SIM_NEVER);
    ck_assert_uint_gt(w.frames, 500);
    ck_assert_uint_gt(w.pauses, 0);
    ck_assert_uint_eq(w.bad, 0);
    sim_destroy(sim);
}
END_TEST

/* A pause that lasts when the run ends counts as far as it has lasted. */
START_TEST(a_pause_that_lasts_counts)
{
    struct sim *sim = make("duration 10us\ntopology dumbbell hosts=1 rate=40G delay=1us\n"
                           "flow from=0 to=1 size=1M\n",
                           NULL);
    sim_port_pause(sim->net.host[0].port->peer, 0xFF, SIM_PAUSE_MAX, 0);
    sim_run(sim, SIM_NEVER);
    /* It arrives after the cable and 84 octets. */
    ck_assert_double_eq_tol(metric(sim, "paused"), (10 - 1 - .0168) / 1e3, 1e-5);
    sim_destroy(sim);
}
END_TEST

/* A flow that was over before the measurement has no part in the fairness of the running ones. */
START_TEST(fairness_of_those_that_run)
{
    struct sim *sim = make("duration 2ms\nmeasure 1ms\ntopology dumbbell hosts=3 rate=40G\n"
                           "flow from=0 to=3 size=64K\nflow from=1 to=4 size=forever\n"
                           "flow from=2 to=5 size=forever\n",
                           NULL);
    double v;
    sim_run(sim, SIM_NEVER);
    ck_assert_double_eq(metric(sim, "flows_done"), 1);
    ck_assert_double_gt(metric(sim, "jain"), .99);
    ck_assert(!sim_metric(sim, "goodput.0", &v));
    ck_assert_double_gt(metric(sim, "goodput.1"), 15);
    sim_destroy(sim);
}
END_TEST

START_TEST(figures)
{
    double v[] = {5, 1, 4, 2, 3}, equal[] = {7, 7, 7}, one[] = {9, 0, 0};
    ck_assert_double_eq(sim_percentile(v, 5, .5), 3);
    ck_assert_double_eq(sim_percentile(v, 5, .99), 5);
    ck_assert_double_eq_tol(sim_jain(equal, 3), 1, 1e-12);
    ck_assert_double_eq_tol(sim_jain(one, 3), 1. / 3, 1e-12);
    ck_assert(isnan(sim_jain(one, 0)));
    for (const struct sim_dist *d = sim_dists; d->name; d++) {
        double sum = 0, mean = sim_dist_mean(d);
        for (unsigned i = 0; i < 100000; i++)
            sum += (double)sim_dist_at(d, (i + .5) / 100000);
        ck_assert_double_eq_tol(sum / 100000, mean, mean * .001);
    }
}
END_TEST

/* Flows of one size are in one bin, with any wanted number of flows a bin. */
START_TEST(bins_of_sizes)
{
    struct sim *sim = make("duration 5ms\ntopology incast hosts=3 rate=40G\nswitch pfc=on\n"
                           "flow from=0 to=3 size=4K count=12\nflow from=1 to=3 size=1K count=3\n"
                           "flow from=2 to=3 size=2K count=8\n",
                           NULL);
    static const unsigned octets[] = {1024, 2048, 4096}, flows[] = {3, 8, 12};
    struct sim_size_bin bin[SIM_BINS];
    sim_run(sim, SIM_NEVER);
    ck_assert_double_eq(metric(sim, "flows_done"), 23);
    ck_assert_uint_eq(sim_size_bins(sim, bin), 3);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_uint_eq(bin[i].octets, octets[i]);
        ck_assert_uint_eq(bin[i].flows, flows[i]);
    }
    sim_destroy(sim);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sim");
    TCase *c = tcase_create("runs");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, same_seed_same_frames);
    tcase_add_test(c, slices_change_nothing);
    tcase_add_loop_test(c, windows_change_nothing, 0, (int)(sizeof(cuts) / sizeof(cuts[0])));
    tcase_add_test(c, order_means_nothing_to_one_flow);
    tcase_add_test(c, payload_changes_nothing);
    tcase_add_test(c, pfc_loses_nothing);
    tcase_add_test(c, lr_02_agreed_before);
    tcase_add_test(c, jitter_makes_seeds_differ);
    tcase_add_test(c, queues_of_all_ports);
    tcase_add_test(c, goodput_of_arrivals);
    tcase_add_test(c, pfc_keeps_the_link_full);
    tcase_add_test(c, lr_16_a_loss_costs_a_round_trip);
    tcase_add_test(c, lr_04_fresh_queue_pairs);
    tcase_add_test(c, cc_02_marking_shortens_the_queue);
    tcase_add_test(c, ideal_time_is_reached);
    tcase_add_loop_test(c, all_pairs_are_connected, 0,
                        2 * (int)(sizeof(topologies) / sizeof(topologies[0])));
    tcase_add_test(c, all_reduce_takes_its_steps);
    tcase_add_loop_test(c, noise_is_repaired, 0, 3);
    tcase_add_test(c, open_flows_are_told);
    tcase_add_test(c, flows_of_different_kinds);
    tcase_add_test(c, of_flows_or_of_hosts);
    tcase_add_test(c, watched_frames_are_good);
    tcase_add_test(c, a_pause_that_lasts_counts);
    tcase_add_test(c, fairness_of_those_that_run);
    tcase_add_test(c, figures);
    tcase_add_test(c, bins_of_sizes);
    suite_add_tcase(suite, c);
    return unit_run(suite);
}
