/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two connection managers and a wire between them, on virtual time: chosen messages are lost, and
 * the consumers' events are recorded.
 */
#ifndef URNIC_CM_PAIR_H
#define URNIC_CM_PAIR_H

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm.h"
#include "cm_priv.h"

#define SEC      1000000000ull
#define ANY_PORT 5001

struct side {
    struct cm *cm;
    struct wire_addr addr;
    struct cm_event ev[64]; /* events for the consumer */
    unsigned nev;
};

static struct side a, b;
static uint64_t now;
static unsigned sent[0x20]; /* by attribute */
/* Number of messages to lose, by attribute. */
static int lose[0x20];

static inline void setup_with(struct cm_params pa, struct cm_params pb)
{
    now = SEC;
    memset(sent, 0, sizeof(sent));
    memset(lose, 0, sizeof(lose));
    memset(&a, 0, sizeof(a));
    memset(&b, 0, sizeof(b));
    pa.key[0] = 1;
    pa.ca_guid = 0xA;
    pb.key[0] = 2;
    pb.ca_guid = 0xB;
    a.cm = cm_create(&pa);
    b.cm = cm_create(&pb);
    a.addr = wire_addr_v4(0x0A000001);
    b.addr = wire_addr_v4(0x0A000002);
}

static inline void setup(void)
{
    setup_with((struct cm_params){0}, (struct cm_params){0});
}

static inline void teardown(void)
{
    cm_destroy(a.cm);
    cm_destroy(b.cm);
}

static inline bool move(struct side *from, struct side *to)
{
    struct cm_out out;
    if (!cm_tx(from->cm, &out))
        return false;
    unsigned attr = (unsigned)out.mad[16] << 8 | out.mad[17];
    sent[attr]++;
    ck_assert_mem_eq(&out.src, &from->addr, 16);
    ck_assert_mem_eq(&out.dst, &to->addr, 16);
    if (lose[attr] > 0)
        lose[attr]--;
    else
        cm_rx(to->cm, out.mad, sizeof(out.mad), &out.src, &out.dst, 1, 0xFFFF, now);
    return true;
}

/* The next message that `s` sends must be an `attr`. */
static inline struct cm_msg next_msg(struct side *s, unsigned attr, struct cm_out *out)
{
    struct cm_msg m;
    ck_assert_msg(cm_tx(s->cm, out), "no %s", cm_attr_name(attr));
    ck_assert_int_eq(cm_msg_unpack(&m, out->mad, sizeof(out->mad)), 0);
    ck_assert_str_eq(cm_attr_name(m.attr), cm_attr_name(attr));
    return m;
}

static inline void listen_to(struct side *s)
{
    struct cm_event ev;
    while (cm_event(s->cm, &ev)) {
        ck_assert_uint_lt(s->nev, 64);
        s->ev[s->nev++] = ev;
    }
}

static inline void pump(void)
{
    for (unsigned moved = 1; moved;)
        moved = (unsigned)move(&a, &b) + (unsigned)move(&b, &a);
    listen_to(&a);
    listen_to(&b);
}

/* Let time pass, with a stop at every deadline on the way. */
static inline void wait_ns(uint64_t ns)
{
    uint64_t end = now + ns;
    for (;;) {
        uint64_t da = cm_deadline(a.cm), db = cm_deadline(b.cm);
        uint64_t next = da < db ? da : db;
        if (next > end)
            break;
        now = next;
        cm_expire(a.cm, now);
        cm_expire(b.cm, now);
        pump();
    }
    now = end;
}

static inline const struct cm_event *last(const struct side *s)
{
    ck_assert_uint_gt(s->nev, 0);
    return &s->ev[s->nev - 1];
}

static inline struct cm_listener *listen_on_b(void)
{
    struct cm_listener *l = NULL;
    static const struct wire_addr any;
    ck_assert_int_eq(cm_listen(b.cm, CM_PS_TCP, &any, ANY_PORT, 0, &b, &l), 0);
    return l;
}

static inline struct cm_connect_params params(void)
{
    return (struct cm_connect_params){
        .path = {.local = a.addr, .remote = b.addr, .mtu = 5},
        .sport = 40000,
        .dport = ANY_PORT,
        .qpn = 0x123,
        .psn = 0xABCDEF,
        .responder_resources = 16,
        .initiator_depth = 8,
        .retry_count = 6,
        .rnr_retry_count = 5,
        .priv = "hello",
        .priv_len = 5,
    };
}

static inline struct cm_conn *start(void)
{
    struct cm_connect_params p = params();
    struct cm_conn *c = NULL;
    ck_assert_int_eq(cm_connect(a.cm, &p, &a, now, &c), 0);
    pump();
    return c;
}

static const struct cm_accept_params accept_params = {
    .qpn = 0xABC,
    .psn = 0x123456,
    .responder_resources = 4,
    .initiator_depth = 32,
    .rnr_retry_count = 3,
    .priv = "welcome",
    .priv_len = 7,
};

static inline void establish(struct cm_conn **ca, struct cm_conn **cb)
{
    listen_on_b();
    *ca = start();
    ck_assert_int_eq(last(&b)->type, CM_EV_REQ);
    *cb = last(&b)->conn;
    ck_assert_int_eq(cm_accept(b.cm, *cb, &accept_params, &b, now), 0);
    pump();
    ck_assert_int_eq(last(&a)->type, CM_EV_REP);
    ck_assert_int_eq(cm_rtu(a.cm, *ca, NULL, 0, now), 0);
    pump();
    ck_assert_int_eq(last(&a)->type, CM_EV_ESTABLISHED);
    ck_assert_int_eq(last(&b)->type, CM_EV_ESTABLISHED);
}

#endif
