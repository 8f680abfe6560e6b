/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames, ports and the switch, piece by piece: two nodes of the test's own at the ends of a cable.
 */
#include <string.h>

#include "sim_net.h"
#include "sim_topo.h"
#include "unit.h"

struct seen {
    uint64_t at;
    uint32_t len;
    uint8_t prio;
};

struct sink {
    struct sim_node node;
    struct seen got[4096];
    unsigned n;
};

static struct sim_world w;
static struct sink a, b;
static struct sim_port pa, pb;

static void sink_rx(struct sim_node *n, struct sim_port *in, struct sim_pkt *p, uint64_t now)
{
    struct sink *s = (struct sink *)(void *)n;
    (void)in;
    s->got[s->n++] = (struct seen){now, p->len, p->prio};
    sim_pkt_free(&w.pool, p);
}

static const struct sim_node_ops sink_ops = {.rx = sink_rx};

static void cable(uint64_t rate, uint64_t delay)
{
    sim_heap_free(&a.node.agenda.later);
    sim_heap_free(&b.node.agenda.later);
    w = (struct sim_world){.rng.s = 1};
    sim_wheel_init(&w.wheel);
    sim_pool_init(&w.pool, 0);
    pa = pb = (struct sim_port){0};
    memset(&a, 0, sizeof(a));
    memset(&b, 0, sizeof(b));
    a.node.ops = b.node.ops = &sink_ops;
    a.node.w = b.node.w = &w;
    pa.node = &a.node;
    pb.node = &b.node;
    sim_port_connect(&pa, &pb, rate, delay);
    uint64_t ahead = sim_port_lookahead(&pa);
    w.lookahead = w.window = ahead < SIM_WINDOW_MAX ? ahead : SIM_WINDOW_MAX;
}

static void run(uint64_t until)
{
    while (sim_window_run(&w, until))
        ;
}

static void send(struct sim_port *port, uint32_t len, unsigned prio, uint64_t now)
{
    struct sim_pkt *p = sim_pkt_new(&w.pool);
    memset(p->data, 0, SIM_DATA_MIN);
    p->len = len;
    p->hdr = 70;
    p->prio = (uint8_t)prio;
    p->flags = 0;
    p->tag = 0;
    sim_port_send(port, p, now);
}

/* A million frames' worth of rounding: the rate is exact, and a frame is there a delay after its
 * last bit was sent. 1082 + 24 octets at 40 Gb/s are 221.2 ns. */
START_TEST(port_keeps_the_rate)
{
    cable(40000000000ull, 1000);
    for (unsigned i = 0; i < 1000; i++)
        send(&pa, 1082, 3, 0);
    run(SIM_NEVER);
    ck_assert_uint_eq(b.n, 1000);
    ck_assert_uint_eq(b.got[0].at, 1222); /* 221.2 rounded up, and the delay */
    ck_assert_uint_eq(b.got[999].at, 221200 + 1000);
    for (unsigned i = 1; i < b.n; i++)
        ck_assert_uint_le(b.got[i].at - b.got[i - 1].at, 222);
    sim_pool_free(&w.pool);
}
END_TEST

/* The higher priority goes first, but never in the middle of a frame. */
START_TEST(port_serves_priorities)
{
    cable(10000000000ull, 0);
    send(&pa, 1000, 0, 0);
    send(&pa, 1000, 3, 0);
    send(&pa, 1000, 6, 0);
    send(&pa, 1000, 3, 0);
    run(SIM_NEVER);
    ck_assert_uint_eq(b.n, 4);
    static const uint8_t want[] = {0, 6, 3, 3};
    for (unsigned i = 0; i < 4; i++)
        ck_assert_uint_eq(b.got[i].prio, want[i]);
    sim_pool_free(&w.pool);
}
END_TEST

/* XOFF holds one priority until XON, or until its time is over; others go on. */
START_TEST(port_obeys_pause)
{
    cable(10000000000ull, 100);
    sim_port_pause(&pb, 1u << 3, SIM_PAUSE_MAX, 0);
    run(1000);
    ck_assert_uint_eq(pa.paused, 1u << 3);
    send(&pa, 1000, 3, 1000);
    send(&pa, 1000, 6, 1000);
    run(10000);
    ck_assert_uint_eq(b.n, 1);
    ck_assert_uint_eq(b.got[0].prio, 6);
    sim_port_pause(&pb, 1u << 3, 0, 10000);
    run(20000);
    ck_assert_uint_eq(b.n, 2);
    ck_assert_uint_eq(pa.paused, 0);
    ck_assert_uint_gt(pa.stats.held_ns, 9000);
    ck_assert_uint_eq(pb.stats.pauses, 1);

    sim_port_pause(&pb, 1u << 3, 100, 20000); /* 100 * 51.2 ns at 10 Gb/s */
    run(21000);
    send(&pa, 1000, 3, 21000);
    run(100000);
    ck_assert_uint_eq(b.n, 3);
    uint64_t frame = (1000 + 24) * 8 / 10, pause = (60 + 24) * 8 / 10 + 1 + 100;
    ck_assert_uint_ge(b.got[2].at, 20000 + pause + 5120 + frame);
    ck_assert_uint_le(b.got[2].at, 20000 + pause + 5120 + frame + 102);
    sim_pool_free(&w.pool);
}
END_TEST

/* CC-01 CE with the header checksum kept right, for every TOS and many checksums. */
START_TEST(cc_01_mark_keeps_the_checksum)
{
    struct sim_pool pool;
    sim_pool_init(&pool, 0);
    struct sim_pkt *p = sim_pkt_new(&pool);
    for (unsigned tos = 0; tos < 256; tos++) {
        for (unsigned id = 0; id < 65536; id += 251) {
            struct wire_pkt h = {.ip_version = 4,
                                 .tclass = (uint8_t)tos,
                                 .ttl = 64,
                                 .ip_id = (uint16_t)id,
                                 .sip = wire_addr_v4(SIM_HOST_NET + 5),
                                 .dip = wire_addr_v4(SIM_HOST_NET + 8),
                                 .sport = 50000,
                                 .opcode = WIRE_ACKNOWLEDGE,
                                 .pkey = 0xFFFF,
                                 .dqpn = 77,
                                 .syndrome = WIRE_SYN_ACK,
                                 .migreq = true};
            struct wire_pkt out;
            size_t off = wire_build(p->data, SIM_DATA_MIN, &h);
            ck_assert_uint_gt(off, 0);
            p->len = (uint32_t)wire_frame_len(&h);
            ck_assert(sim_pkt_classify(p));
            ck_assert_uint_eq(p->dst, 7);
            ck_assert_uint_eq(p->prio, tos >> 5);
            ck_assert_uint_eq(sim_pkt_ecn(p), tos & 3);
            sim_pkt_mark(p);
            ck_assert_int_eq(wire_parse(p->data, p->len, WIRE_P_NO_ICRC, &out), WIRE_OK);
            ck_assert_uint_eq(out.tclass, tos | 3);
        }
    }
    sim_pool_free(&pool);
}
END_TEST

/* ECMP: a flow keeps its path, many flows use all of them; every path is a shortest one. */
START_TEST(ecmp_spreads_flows)
{
    static const struct sim_topo topo = {
        .kind = SIM_FAT_TREE, .k = 4, .rate = 10000000000ull, .delay = 100};
    struct sim_plan plan;
    struct sim_net net;
    struct sim_net_params p = {
        .host = {.mtu = 1024, .window = 64, .timeout = 10, .retries = 7, .dscp = 26},
        .sw = {.buffer = 1 << 20, .alpha = 1},
        .max_qp = 1};
    cc_conf_init(&p.host.cc, cc_type_find("none"));
    cable(1000000000, 0); /* the world */
    ck_assert_ptr_eq(sim_topo_plan(&topo, &plan), NULL);
    ck_assert_int_eq(sim_net_build(&net, &w, &plan, &p), 0);
    struct sim_switch *edge = &net.sw[0];
    unsigned used[4] = {0};
    for (unsigned flow = 0; flow < 1000; flow++) {
        unsigned first = 9;
        for (unsigned again = 0; again < 3; again++) {
            struct sim_pkt *f = sim_pkt_new(&w.pool);
            memset(f->data, 0, SIM_DATA_MIN);
            f->len = 200;
            f->prio = 3;
            f->flags = 0;
            f->dst = 15;
            f->flow = (uint32_t)sim_mix(flow);
            edge->node.ops->rx(&edge->node, edge->node.port[0], f, w.now);
            unsigned at = 0;
            while (at < edge->node.nports && !edge->node.port[at]->rx.hint)
                at++;
            ck_assert_uint_lt(at, 4);
            if (first == 9)
                first = at;
            ck_assert_uint_eq(at, first);
            sim_cancel(edge->node.port[at]->peer->node, &edge->node.port[at]->rx);
            sim_pkt_free(&w.pool, edge->node.port[at]->rx.hint);
            edge->node.port[at]->rx.hint = NULL;
            edge->node.port[at]->busy_ps = 0;
        }
        used[first]++;
    }
    ck_assert_uint_eq(used[0] + used[1], 0); /* its hosts */
    ck_assert_uint_gt(used[2], 400);
    ck_assert_uint_gt(used[3], 400);
    /* Another pod is three switches away: host, edge, aggregation, core, aggregation, edge, host.
     */
    ck_assert_uint_eq(sim_net_ideal(&net, 0, 15, 0) - sim_net_ideal(&net, 0, 1, 0),
                      4 * (2 * 100 + (58 + 24) * 8 / 10 + (62 + 24) * 8 / 10));
    sim_net_free(&net);
    sim_plan_free(&plan);
    sim_pool_free(&w.pool);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sim_port");
    TCase *c = tcase_create("parts");
    tcase_add_test(c, port_keeps_the_rate);
    tcase_add_test(c, port_serves_priorities);
    tcase_add_test(c, port_obeys_pause);
    tcase_add_test(c, cc_01_mark_keeps_the_checksum);
    tcase_add_test(c, ecmp_spreads_flows);
    suite_add_tcase(suite, c);
    return unit_run(suite);
}
