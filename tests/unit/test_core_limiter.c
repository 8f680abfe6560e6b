/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The limiter in virtual time: rate and burst measured packet by packet, limited and unlimited
 * packets, timers beside it, changes at run time.
 */
#include <string.h>

#include "cc_of.h"
#include "core_rig.h"

#define US   1000ull
#define MS   1000000ull
#define MBIT 1000000ull
#define GBIT 1000000000ull

static void set_cc(struct rig *r, const char *spec)
{
    const struct cc_conf conf = cc_of(spec);
    ck_assert_int_eq(engine_qp_set_cc(r->e, r->qp, &conf, r->now), 0);
}

static uint32_t frame_len(const struct wire_pkt *p)
{
    return p->icrc_off + WIRE_ICRC_LEN;
}

static struct engine_qp_info info_of(const struct rig *r)
{
    struct engine_qp_info info;
    engine_qp_info(r->e, r->qp, &info);
    return info;
}

static void cnp_in(struct rig *r)
{
    struct wire_pkt p = rig_pkt(r, WIRE_OPCODE_CNP, 0);
    p.becn = true;
    rig_rx(r, &p, NULL);
}

/* A meter on the wire: octets, and their maximal lead over the rate. */
struct meter {
    uint64_t rate, octets, packets, begin, last;
    double least, ahead; /* octets - rate * t: its minimum so far, largest rise above that */
};

static void meter_add(struct meter *m, uint64_t now, uint32_t len)
{
    double due = (double)m->rate * (double)(now - m->begin) / 8e9;
    double before = (double)m->octets - due;
    if (m->packets == 0 || before < m->least)
        m->least = before;
    m->octets += len;
    m->packets++;
    if (before + len - m->least > m->ahead)
        m->ahead = before + len - m->least;
    m->last = now;
}

/* Send WRITEs for `ns`, looking every `step` and sometimes much later; all is acknowledged at once.
 */
static void send_for(struct rig *r, uint64_t ns, uint64_t step, struct meter *m)
{
    uint64_t end = r->now + ns, n = 0;
    m->begin = r->now;
    while (r->now < end) {
        while (engine_sq_room(r->qp) > 1000)
            ck_assert_int_eq(rig_post(r, WR_RDMA_WRITE, 1, 65536, 0), 0);
        rig_tx(r, 0);
        for (unsigned i = 0; i < r->nsent; i++)
            meter_add(m, r->now, frame_len(&r->sent[i]));
        if (r->nsent)
            rig_ack(r, r->sent[r->nsent - 1].psn);
        rig_clear(r);
        rig_pass(r, ++n % 97 ? step : 3 * step);
    }
}

/* CC-19: the rate within 1 % over 10 ms, at 1, 10 and 40 Gb/s, and never more than 16 packets or 64
 * KiB ahead of it, even if the caller is late. */
START_TEST(cc_19_rate_and_burst)
{
    static const struct {
        const char *spec;
        uint64_t rate, step;
        unsigned mtu, burst; /* packets */
    } cases[] = {
        {"fixed,rate=1G", GBIT, 700, 3, 16},
        {"fixed,rate=1G", GBIT, 20 * US, 3, 16},
        {"fixed,rate=10G", 10 * GBIT, 700, 3, 16},
        {"fixed,rate=10G", 10 * GBIT, 10 * US, 5, 15}, /* 64 KiB are fewer than 16 */
        {"fixed,rate=40G", 40 * GBIT, 500, 3, 16},
        {"fixed,rate=40G", 40 * GBIT, 2 * US, 5, 15},
        {"fixed,rate=40G,burst_pkts=64,burst=1M", 40 * GBIT, 4 * US, 3, 64},
        {"fixed,rate=3G,burst_pkts=1", 3 * GBIT, 100, 3, 1},
    };
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rig *r = rig_new(&(struct rig_opts){.mtu = cases[i].mtu});
        struct meter m = {.rate = cases[i].rate};
        uint32_t packet = (256u << (cases[i].mtu - 1)) + 14 + 20 + 8 + 12 + 4;
        set_cc(r, cases[i].spec);
        send_for(r, 10 * MS, cases[i].step, &m);
        double got = (double)m.octets * 8e9 / (double)(10 * MS);
        double want = (double)cases[i].rate;
        double tolerance = cases[i].burst == 1 ? 0.12 : 0.01; /* no burst: a late timer is lost */
        ck_assert_msg(got > want * (1 - tolerance) && got < want * 1.01, "%s, look every %d: %.4g",
                      cases[i].spec, (int)cases[i].step, got);
        ck_assert_msg(m.ahead <= cases[i].burst * (packet + 16) + 1, "%s: %.0f octets ahead",
                      cases[i].spec, m.ahead);
        rig_free(r);
    }
}
END_TEST

/* CC-19: a late caller catches up on no more than the burst. 64 KiB last 13 us at 40 Gb/s: calls
 * each 12 us cost nothing, calls each 26 us half of the rate. */
START_TEST(cc_19_late)
{
    static const struct {
        uint64_t step;
        double least, most; /* packets of 4,154 octets at a look */
    } cases[] = {{12 * US, 14.3, 14.5}, {26 * US, 14.9, 15}};
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rig *r = rig_new(&(struct rig_opts){.mtu = 5});
        unsigned packets = 0;
        set_cc(r, "fixed,rate=40G");
        for (unsigned n = 0; n < 200; n++) {
            while (engine_sq_room(r->qp) > 1000)
                ck_assert_int_eq(rig_post(r, WR_RDMA_WRITE, 1, 65536, 0), 0);
            rig_tx(r, 0);
            packets += r->nsent;
            if (r->nsent)
                rig_ack(r, r->sent[r->nsent - 1].psn);
            rig_clear(r);
            rig_pass(r, cases[i].step);
        }
        ck_assert_double_ge(packets / 200.0, cases[i].least);
        ck_assert_double_le(packets / 200.0, cases[i].most);
        rig_free(r);
    }
}
END_TEST

/* CC-19: the limiter paces packets, not messages. A small packet counts as a packet like any other:
 * after a pause 16 of them go at once, then one by one. */
START_TEST(cc_19_burst_of_small_packets)
{
    struct rig *r = rig_new(NULL);
    set_cc(r, "fixed,rate=1G");
    rig_pass(r, 50 * MS); /* no credit for more than the burst */
    for (unsigned i = 0; i < 200; i++)
        rig_post(r, WR_SEND, i, 8, 0);
    ck_assert_uint_eq(rig_tx(r, 0), 16);
    uint32_t len = frame_len(&r->sent[0]);
    rig_pass(r, len * 8 + 1024); /* time of one more, and a tick */
    unsigned n = rig_tx(r, 0);
    ck_assert(n >= 1 && n <= 3);
    rig_free(r);
}
END_TEST

/* CC-09, CC-18: without a limit nothing is held back, and the time without one earns no burst. */
START_TEST(cc_09_no_limiter)
{
    struct rig *r = rig_new(NULL);
    set_cc(r, "dcqcn,line=10G");
    rig_post(r, WR_RDMA_WRITE, 1, 200 * 1024, 0);
    ck_assert_uint_eq(rig_tx(r, 0), 200);
    ck_assert_uint_eq(info_of(r).cc_rate, CC_UNLIMITED);
    rig_ack(r, r->sent[199].psn);
    rig_clear(r);
    cnp_in(r);
    ck_assert_uint_eq(info_of(r).cc_rate, 5 * GBIT);
    rig_post(r, WR_RDMA_WRITE, 2, 200 * 1024, 0);
    ck_assert_uint_le(rig_tx(r, 0), 1);
    rig_pass(r, 10000 * MS); /* recovered */
    rig_tx(r, 0);
    rig_ack(r, r->sent[r->nsent - 1].psn);
    rig_clear(r);
    rig_post(r, WR_RDMA_WRITE, 3, 200 * 1024, 0);
    ck_assert_uint_eq(rig_tx(r, 0), 200);
    rig_free(r);
}
END_TEST

/* TMR-09, CC-23: however long the limiter holds packets, the ACK timer runs only while a packet
 * with AckReq is in flight. Here a message takes twenty times the time-out to send. */
START_TEST(tmr_09_paced)
{
    struct rig *r = rig_new(&(struct rig_opts){.window = 256});
    set_cc(r, "fixed,rate=8M"); /* a packet a millisecond: the time-out is 1.05 ms */
    rig_post(r, WR_RDMA_WRITE, 1, 40 * 1024, WR_F_SIGNALED);
    uint64_t begin = r->now;
    unsigned sent = 0;
    while (!r->nwc && r->now < begin + 400 * MS) {
        rig_tx(r, 0);
        sent += r->nsent;
        for (unsigned i = 0; i < r->nsent; i++)
            if (r->sent[i].ackreq)
                rig_ack(r, r->sent[i].psn);
        if (r->nwc)
            break;
        rig_clear(r);
        rig_pass(r, 50 * US);
    }
    ck_assert_uint_eq(r->nwc, 1);
    ck_assert_int_eq(r->wc[0].status, WC_SUCCESS);
    ck_assert_uint_eq(sent, 40);
    ck_assert_uint_gt(r->now - begin, 20 * RIG_T);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_local_ack_timeout_err), 0);
    rig_free(r);
}
END_TEST

/* TMR-09, TMR-02: once the last packet is out and no answer comes, it does fire. REQ-10: at a
 * packet a millisecond each of them asks. */
START_TEST(tmr_09_paced_and_lost)
{
    struct rig *r = rig_new(NULL);
    set_cc(r, "fixed,rate=8M,burst_pkts=1");
    rig_post(r, WR_RDMA_WRITE, 1, 4 * 1024, WR_F_SIGNALED);
    for (unsigned i = 0; i < 100 && r->nsent < 4; i++) {
        rig_pass(r, 100 * US);
        ck_assert_uint_eq(rig_count(r, ENGINE_C_local_ack_timeout_err), 0);
        if (rig_tx(r, 0) && r->nsent < 4)
            rig_ack(r, r->sent[r->nsent - 1].psn);
    }
    ck_assert_uint_eq(r->nsent, 4);
    for (unsigned i = 0; i < 4; i++)
        ck_assert(r->sent[i].ackreq);
    rig_pass(r, RIG_T - 1);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_local_ack_timeout_err), 0);
    rig_pass(r, RIG_T / 8 + 1);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_local_ack_timeout_err), 1);
    rig_free(r);
}
END_TEST

/* CC-20: retransmissions use the same budget. */
START_TEST(cc_20_retransmissions_are_paced)
{
    struct rig *r = rig_new(NULL);
    set_cc(r, "fixed,rate=1G,burst_pkts=4");
    rig_pass(r, MS);
    rig_post(r, WR_RDMA_WRITE, 1, 4 * 1024, WR_F_SIGNALED);
    ck_assert_uint_eq(rig_tx(r, 0), 4);
    rig_aeth(r, r->sent[0].psn, WIRE_SYN_NAK_SEQ, 0);
    ck_assert_uint_eq(rig_tx(r, 0), 0);
    rig_pass(r, 4 * 9 * US);
    ck_assert_uint_eq(rig_tx(r, 0), 4);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_tx_retransmit), 4);
    rig_free(r);
}
END_TEST

/* A READ request from the peer of n packets. */
static void peer_reads(struct rig *r, uint32_t at, uint32_t n)
{
    struct wire_pkt p = rig_pkt(r, WIRE_READ_REQUEST, rig_psn(RIG_RQPSN, at));
    p.va = RIG_VA;
    p.rkey = r->rkey;
    p.dma_len = n * RIG_MTU;
    p.ackreq = true;
    rig_rx(r, &p, NULL);
}

static void peer_writes(struct rig *r, uint32_t at)
{
    struct wire_pkt p = rig_pkt(r, WIRE_WRITE_ONLY, rig_psn(RIG_RQPSN, at));
    p.va = RIG_VA;
    p.rkey = r->rkey;
    p.dma_len = p.payload_len = 64;
    p.ackreq = true;
    rig_rx(r, &p, NULL);
}

/* READ responses among the sent packets, up to the ACK if there is one (*acked). */
static unsigned responses(const struct rig *r, bool *acked)
{
    unsigned n = 0;
    *acked = false;
    for (unsigned i = 0; i < r->nsent && !*acked; i++) {
        *acked = r->sent[i].opcode == WIRE_ACKNOWLEDGE;
        n += r->sent[i].opcode >= WIRE_READ_RESP_FIRST && r->sent[i].opcode <= WIRE_READ_RESP_ONLY;
    }
    return n;
}

/* CC-21: the responder paces READ responses, out of one budget with its own requests; ACKs pass,
 * but none overtakes a response before it (ACK-05). */
START_TEST(cc_21_read_responses)
{
    struct rig *r = rig_new(NULL);
    bool acked;
    set_cc(r, "fixed,rate=1G,burst_pkts=4");
    rig_pass(r, MS);
    peer_reads(r, 0, 20);
    peer_writes(r, 20);
    ck_assert_uint_eq(rig_tx(r, 0), 4);
    rig_post(r, WR_RDMA_WRITE, 1, 1024, WR_F_SIGNALED);
    ck_assert_uint_eq(rig_tx(r, 0), 0); /* used up for requests, too; the ACK has to wait */
    for (unsigned i = 0; i < 13; i++) {
        rig_pass(r, 10 * US); /* a packet takes 8.7 us */
        rig_tx(r, 0);
    }
    ck_assert_uint_ge(responses(r, &acked), 16);
    ck_assert_uint_le(responses(r, &acked), 19);
    ck_assert(!acked);
    rig_pass(r, 100 * US);
    rig_tx(r, 0);
    ck_assert_uint_eq(responses(r, &acked), 20);
    ck_assert(acked);
    rig_free(r);
}
END_TEST

/* CC-21: with nothing but its own requests waiting for the limiter, a queue pair acknowledges at
 * once. */
START_TEST(cc_21_acks_pass)
{
    struct rig *r = rig_new(NULL);
    set_cc(r, "fixed,rate=1M,burst_pkts=1");
    rig_post(r, WR_RDMA_WRITE, 1, 8192, WR_F_SIGNALED);
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    for (unsigned i = 0; i < 50; i++) {
        rig_clear(r);
        peer_writes(r, i);
        ck_assert_uint_eq(rig_tx(r, 0), 1);
        ck_assert_uint_eq(r->sent[0].opcode, WIRE_ACKNOWLEDGE);
    }
    rig_free(r);
}
END_TEST

/* CC-21, ACK-05: an ACK overtakes READ responses that wait for the limiter if they all come after
 * the packets that it acknowledges. It does not overtake a repeated response: the requester would
 * count that as lost. Results of atomics never wait. */
START_TEST(cc_21_who_passes)
{
    struct rig *r = rig_new(NULL);
    bool acked;
    set_cc(r, "fixed,rate=1M,burst_pkts=1");
    rig_post(r, WR_RDMA_WRITE, 1, 1024, WR_F_SIGNALED);
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    rig_clear(r);
    peer_writes(r, 0);
    peer_reads(r, 1, 2);
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    ck_assert_uint_eq(r->sent[0].opcode, WIRE_ACKNOWLEDGE);
    ck_assert_uint_eq(r->sent[0].psn, RIG_RQPSN);
    rig_clear(r);
    for (unsigned i = 0; i < 4; i++) {
        rig_pass(r, 5 * MS); /* a packet takes 8.7 ms */
        rig_tx(r, 0);
    }
    ck_assert_uint_eq(responses(r, &acked), 2);

    rig_clear(r);
    peer_reads(r, 1, 2);
    peer_writes(r, 3);
    ck_assert_uint_eq(rig_tx(r, 0), 0);
    for (unsigned i = 0; i < 4; i++) {
        rig_pass(r, 5 * MS);
        rig_tx(r, 0);
    }
    ck_assert_uint_eq(responses(r, &acked), 2);
    ck_assert(acked);

    rig_clear(r);
    struct wire_pkt p = rig_pkt(r, WIRE_FETCH_ADD, rig_psn(RIG_RQPSN, 4));
    p.va = RIG_VA;
    p.rkey = r->rkey;
    rig_rx(r, &p, NULL);
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    ck_assert_uint_eq(r->sent[0].opcode, WIRE_ATOMIC_ACK);
    rig_free(r);
}
END_TEST

/* CC-08, CC-09: handled by an algorithm that reacts, ignored with none; the first one at 100 Gb/s
 * line rate halves it. */
START_TEST(cc_08_handled_or_ignored)
{
    struct rig *r = rig_new(NULL);
    cnp_in(r);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_rp_cnp_ignored), 1);
    set_cc(r, "fixed,rate=1G");
    cnp_in(r);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_rp_cnp_ignored), 2);
    set_cc(r, "dcqcn,line=100G");
    cnp_in(r);
    struct wire_pkt p = rig_pkt(r, WIRE_OPCODE_CNP, 77);
    p.becn = false; /* still good */
    rig_rx(r, &p, NULL);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_rp_cnp_handled), 2);
    ck_assert_uint_eq(info_of(r).cc_rate, 50 * GBIT);
    ck_assert_uint_eq(info_of(r).cc_alpha, CC_ONE);
    p.sip.b[15] ^= 1; /* VAL-03 */
    rig_rx(r, &p, NULL);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_rx_addr_mismatch), 1);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_rp_cnp_handled), 2);
    rig_free(r);
}
END_TEST

/* SEC-17: CNPs in excess of the sent packets are forged, and a thousand of them in a second raise
 * an alert; CNPs that may answer packets in flight are not forged. */
START_TEST(sec_17_alert)
{
    struct rig *r = rig_new(NULL);
    set_cc(r, "dcqcn,line=40G,min=1G");
    rig_post(r, WR_RDMA_WRITE, 1, 10 * RIG_MTU, WR_F_SIGNALED);
    ck_assert_uint_eq(rig_tx(r, 0), 10);
    for (unsigned i = 0; i < 10; i++)
        cnp_in(r);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_rp_cnp_unearned), 0);
    for (unsigned i = 1; i <= 2500; i++) {
        cnp_in(r);
        ck_assert_uint_eq(rig_count(r, ENGINE_C_rp_cnp_unearned), i);
        ck_assert_uint_eq(r->guesses, i >= 1000);
        r->now += 10 * US;
    }
    ck_assert_uint_eq(rig_count(r, ENGINE_C_rp_cnp_handled), 2510); /* CC-08 holds */
    rig_pass(r, 1000 * MS);
    for (unsigned i = 0; i < 1000; i++)
        cnp_in(r);
    ck_assert_uint_eq(r->guesses, 2); /* again, in another second */
    rig_free(r);
}
END_TEST

/* Sent packets are remembered, but not for ever: a heavy sender can't be slowed down freely. */
START_TEST(sec_17_earned)
{
    struct rig *r = rig_new(NULL);
    set_cc(r, "dcqcn,line=40G,min=40G");
    for (unsigned i = 0; i < 200; i++) { /* a CNP for every packet, then for none */
        rig_post(r, WR_RDMA_WRITE, i, 50 * RIG_MTU, WR_F_SIGNALED);
        for (unsigned sent = 0; sent < 50; sent += rig_tx(r, 0))
            rig_pass(r, 10 * US);
        for (unsigned k = 0; k < 50 && i < 100; k++)
            cnp_in(r);
        rig_ack(r, r->sent[r->nsent - 1].psn);
        rig_clear(r);
    }
    ck_assert_uint_eq(rig_count(r, ENGINE_C_rp_cnp_handled), 5000);
    for (unsigned i = 0; i < 4096; i++)
        cnp_in(r);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_rp_cnp_unearned), 0);
    cnp_in(r);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_rp_cnp_unearned), 1);
    rig_free(r);
}
END_TEST

/* CC-28, SEC-17: forged CNPs, however many, cost one cut per rate reduce period, and never take a
 * queue pair below its minimum; it continues. */
START_TEST(sec_17_forged)
{
    struct rig *r = rig_new(NULL);
    set_cc(r, "dcqcn,line=40G,reduce=50us,min=100M");
    for (unsigned i = 0; i < 1000; i++) {
        cnp_in(r);
        r->now += 40; /* 40 us in all */
    }
    ck_assert_uint_eq(info_of(r).cc_rate, 20 * GBIT);
    for (unsigned i = 0; i < 4000; i++) {
        cnp_in(r);
        r->now += US;
    }
    ck_assert_uint_eq(info_of(r).cc_rate, 100 * MBIT);
    rig_post(r, WR_RDMA_WRITE, 1, 10 * RIG_MTU, WR_F_SIGNALED);
    for (unsigned i = 0; i < 100 && r->nsent < 10; i++) {
        rig_tx(r, 0);
        rig_pass(r, 100 * US);
    }
    ck_assert_uint_eq(r->nsent, 10);
    rig_free(r);
}
END_TEST

/* CC-20: slow_restart halves the rate at a NAK and is counted. */
START_TEST(cc_20_slow_restart_counted)
{
    struct rig *r = rig_new(NULL);
    set_cc(r, "dcqcn,line=40G,slow_restart=1");
    rig_post(r, WR_RDMA_WRITE, 1, 4 * 1024, WR_F_SIGNALED);
    rig_tx(r, 0);
    rig_aeth(r, r->sent[1].psn, WIRE_SYN_NAK_SEQ, 0);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_roce_slow_restart), 1);
    ck_assert_uint_eq(info_of(r).cc_rate, 20 * GBIT);
    rig_free(r);
}
END_TEST

/* The value that was traced last under this name. */
static uint64_t traced(const struct rig *r, const char *what)
{
    for (unsigned i = r->ntraced; i-- > 0 && r->ntraced - i <= 64;)
        if (!strcmp(r->traced[i % 64].what, what))
            return r->traced[i % 64].v;
    ck_abort_msg("no %s in the trace", what);
    return 0;
}

/* CC-10, CC-20: flight recorder and trace record the rate, the target and alpha after each cut; a
 * CNP without a reaction changes nothing. */
START_TEST(cc_10_recorded)
{
    struct rig *r = rig_new(NULL);
    char text[4096];
    cnp_in(r);
    engine_qp_history(r->e, r->qp, text, sizeof(text));
    ck_assert_msg(strstr(text, " CNP, ignored "), "%s", text);
    set_cc(r, "dcqcn,line=100G,g=1/16,slow_restart=1");
    cnp_in(r);
    engine_qp_history(r->e, r->qp, text, sizeof(text));
    ck_assert_msg(strstr(text, " CNP rate 50000 Mb/s target 100000 Mb/s alpha 1.0000\n"), "%s",
                  text);
    rig_pass(r, 60 * US); /* alpha decays once, the rate has no time to rise */
    cnp_in(r);
    engine_qp_history(r->e, r->qp, text, sizeof(text));
    ck_assert_msg(strstr(text, " CNP rate 26562 Mb/s target 50000 Mb/s alpha 0.9414\n"), "%s",
                  text);
    ck_assert_uint_eq(traced(r, "CNP"), 26562500000);
    ck_assert_uint_eq(traced(r, "target"), 50 * GBIT);
    ck_assert_uint_eq(traced(r, "alpha"), info_of(r).cc_alpha);
    rig_post(r, WR_RDMA_WRITE, 1, 4 * 1024, WR_F_SIGNALED);
    rig_tx(r, 0);
    rig_aeth(r, r->sent[1].psn, WIRE_SYN_NAK_SEQ, 0);
    engine_qp_history(r->e, r->qp, text, sizeof(text));
    ck_assert_msg(strstr(text, " slow restart rate 13281 Mb/s target 26562 Mb/s alpha 0.9414\n"),
                  "%s", text);
    ck_assert_uint_eq(traced(r, "slow restart"), info_of(r).cc_rate);
    rig_free(r);
}
END_TEST

/* CC-25: a change of the device's parameters reaches live queue pairs at once, also one that waits
 * for the limiter; queue pairs with parameters of their own keep them; priorities can be left out.
 */
START_TEST(cc_25_changes_while_it_runs)
{
    struct rig *r = rig_new(NULL);
    struct cc_conf conf;
    cc_conf_parse(&conf, "fixed,rate=1M,burst_pkts=1", NULL, 0);
    ck_assert_int_eq(engine_set_cc(r->e, &conf, r->now), 0);
    ck_assert_ptr_eq(engine_cc(r->e)->type, &cc_fixed);
    rig_post(r, WR_RDMA_WRITE, 1, 100 * 1024, WR_F_SIGNALED);
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    ck_assert_uint_eq(rig_tx(r, 0), 0);
    cc_conf_init(&conf, &cc_none);
    ck_assert_int_eq(engine_set_cc(r->e, &conf, r->now), 0);
    ck_assert_uint_eq(rig_tx(r, 0), 99);
    ck_assert_ptr_eq(info_of(r).cc->type, &cc_none);
    set_cc(r, "fixed,rate=5G");
    ck_assert_int_eq(engine_set_cc(r->e, &conf, r->now), 0);
    ck_assert_uint_eq(info_of(r).cc_rate, 5 * GBIT);
    ck_assert_int_eq(engine_qp_set_cc(r->e, r->qp, NULL, r->now), 0);
    ck_assert_ptr_eq(info_of(r).cc->type, &cc_none);
    set_cc(r, "fixed,rate=5G,prios=254"); /* the queue pair's is 0 */
    ck_assert_uint_eq(info_of(r).cc_rate, CC_UNLIMITED);
    rig_free(r);
}
END_TEST

/* CC-24: an algorithm with a window bounds the packets in flight, and the bound ends when another
 * algorithm replaces it. */
START_TEST(cc_24_window)
{
    struct rig *r = rig_new(NULL);
    set_cc(r, "swift,max_cwnd=8");
    rig_post(r, WR_RDMA_WRITE, 1, 100 * 1024, WR_F_SIGNALED);
    ck_assert_uint_eq(rig_tx(r, 0), 8);
    rig_pass(r, 900 * US); /* far above the target */
    rig_ack(r, r->sent[7].psn);
    rig_clear(r);
    ck_assert_uint_eq(rig_tx(r, 0), 4);
    set_cc(r, "dcqcn");
    ck_assert_uint_eq(rig_tx(r, 0), 100 - 8 - 4);
    rig_free(r);
}
END_TEST

/* CC-24, REQ-10: a window that shrinks below the packets in flight causes no retransmission, except
 * of the last packet, with AckReq, if it was sent without. */
START_TEST(cc_24_window_shrinks)
{
    struct rig *r = rig_new(NULL);
    set_cc(r, "swift,max_cwnd=64");
    rig_post(r, WR_RDMA_WRITE, 1, 200 * 1024, WR_F_SIGNALED);
    ck_assert_uint_eq(rig_tx(r, 60), 60); /* each 16th asks; there would be room for more */
    ck_assert(!r->sent[59].ackreq);
    rig_pass(r, 900 * US); /* far above the target: half of it */
    rig_ack(r, rig_psn(RIG_PSN, 15));
    rig_clear(r);
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    ck_assert_uint_eq(r->sent[0].psn, rig_psn(RIG_PSN, 59));
    ck_assert(r->sent[0].ackreq);
    rig_clear(r);
    ck_assert_uint_eq(rig_tx(r, 0), 0);
    rig_ack(r, rig_psn(RIG_PSN, 47));
    rig_tx(r, 0);
    ck_assert_uint_ge(r->nsent, 15);
    ck_assert_uint_eq(r->sent[0].psn, rig_psn(RIG_PSN, 60));
    ck_assert_uint_eq(rig_count(r, ENGINE_C_tx_retransmit), 1);
    rig_free(r);
}
END_TEST

/* CC-01, WIRE-14: requests, responses and ACKs are ECN-capable while the algorithm would react to a
 * mark, and follow the traffic class otherwise. */
START_TEST(cc_01_ect)
{
    struct rig *r = rig_new(NULL);
    rig_post(r, WR_RDMA_WRITE, 1, 1024, 0);
    set_cc(r, "dcqcn");
    rig_post(r, WR_RDMA_WRITE, 1, 1024, 0);
    peer_reads(r, 0, 1);
    rig_tx(r, 0);
    ck_assert_uint_eq(r->nsent, 3);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_eq(r->sent[i].tclass, 2);
    rig_clear(r);
    peer_writes(r, 1);
    rig_tx(r, 0);
    ck_assert_uint_eq(r->sent[0].opcode, WIRE_ACKNOWLEDGE);
    ck_assert_uint_eq(r->sent[0].tclass, 2);
    rig_clear(r);
    set_cc(r, "dcqcn,ect=1");
    rig_post(r, WR_RDMA_WRITE, 1, 1024, 0);
    rig_tx(r, 0);
    ck_assert_uint_eq(r->sent[0].tclass, 1);
    rig_clear(r);
    set_cc(r, "none");
    rig_post(r, WR_RDMA_WRITE, 1, 1024, 0);
    rig_tx(r, 0);
    ck_assert_uint_eq(r->sent[0].tclass, 0);
    rig_free(r);
}
END_TEST

/* CC-24, QP-01: on another path, of another priority, that priority's parameters hold. */
START_TEST(cc_24_another_path)
{
    struct rig_opts o = {0};
    struct rig *r = rig_new(&o);
    struct engine_qp_attr a = rig_attr(r, &o);
    set_cc(r, "fixed,rate=5G,prios=8");
    for (unsigned sl = 0; sl < 8; sl++) {
        a.av.sl = (uint8_t)sl;
        a.state = QPS_SQD;
        ck_assert_int_eq(engine_qp_modify(r->e, r->qp, &a, QPA_STATE, r->now), 0);
        ck_assert_int_eq(engine_qp_modify(r->e, r->qp, &a, QPA_AV, r->now), 0);
        a.state = QPS_RTS;
        ck_assert_int_eq(engine_qp_modify(r->e, r->qp, &a, QPA_STATE, r->now), 0);
        ck_assert_uint_eq(info_of(r).cc_rate, sl == 3 ? 5 * GBIT : CC_UNLIMITED);
    }
    rig_free(r);
}
END_TEST

UNIT_MAIN("core limiter", cc_24_another_path, cc_19_rate_and_burst, cc_19_late,
          cc_19_burst_of_small_packets, cc_09_no_limiter, tmr_09_paced, tmr_09_paced_and_lost,
          cc_20_retransmissions_are_paced, cc_21_read_responses, cc_21_acks_pass, cc_21_who_passes,
          cc_08_handled_or_ignored, sec_17_alert, sec_17_earned, sec_17_forged,
          cc_20_slow_restart_counted, cc_10_recorded, cc_25_changes_while_it_runs, cc_24_window,
          cc_24_window_shrinks, cc_01_ect)
