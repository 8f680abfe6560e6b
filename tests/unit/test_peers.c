/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two connection managers of one device, which know of each other's peers (CM-21).
 */
#include "peers.h"

#include "cm_pair.h"
#include "unit.h"

#define QPN 0x123u /* of params() */

static struct peers *peers;
static unsigned woken[2];
static struct side other; /* beside b, on another worker of the same device */

static void wake(void *arg, unsigned member)
{
    ck_assert_ptr_eq(arg, woken);
    woken[member]++;
}

static struct cm_params member(uint8_t k)
{
    return (struct cm_params){.key = {2u + k},
                              .ca_guid = 0xB,
                              .part_bits = 1,
                              .part = k,
                              .hold = peers_hold,
                              .drop = peers_drop,
                              .peers = peers};
}

static void open_pair(void)
{
    static const struct wire_addr any;
    struct cm_listener *l;
    memset(woken, 0, sizeof(woken));
    peers = peers_new(1, wake, woken);
    setup_with((struct cm_params){0}, member(0));
    const struct cm_params second = member(1);
    other = (struct side){.cm = cm_create(&second), .addr = b.addr};
    ck_assert_int_eq(cm_listen(other.cm, CM_PS_TCP, &any, ANY_PORT, 0, &other, &l), 0);
}

static void close_pair(void)
{
    teardown();
    cm_destroy(other.cm);
    peers_free(peers);
}

/* The peer's queue pair asks the second worker for a connection; its answer. */
static struct cm_msg ask_other(uint32_t local_id)
{
    struct cm_connect_params p = params();
    struct cm_params pc = {.key = {9}, .ca_guid = 0xA};
    struct cm *forger = cm_create(&pc);
    struct cm_conn *c;
    struct cm_out out;
    struct cm_msg m;
    ck_assert_int_eq(cm_connect(forger, &p, NULL, now, &c), 0);
    ck_assert(cm_tx(forger, &out));
    cm_msg_unpack(&m, out.mad, sizeof(out.mad));
    m.local_id = local_id;
    cm_msg_pack(out.mad, &m);
    cm_rx(other.cm, out.mad, sizeof(out.mad), &a.addr, &b.addr, 1, 0xFFFF, now);
    cm_destroy(forger);
    m.attr = 0;
    if (cm_tx(other.cm, &out))
        cm_msg_unpack(&m, out.mad, sizeof(out.mad));
    return m;
}

/* As the worker does. */
static void hear_doubts(void)
{
    struct cm_peer p;
    ck_assert(peers_doubts(peers, 0));
    ck_assert(!peers_doubts(peers, 1));
    while (peers_next(peers, 0, &p))
        cm_doubt_peer(b.cm, &p, now);
    ck_assert(!peers_doubts(peers, 0));
}

START_TEST(cm_21_another_workers_connection)
{
    /* CM-21: a REQ to one worker with the queue pair of another one's connection is stale, and the
     * other one asks the peer, which still has it. */
    struct cm_conn *ca, *cb;
    open_pair();
    establish(&ca, &cb);
    for (unsigned i = 0; i < 5; i++) {
        struct cm_msg m = ask_other(0xDEAD0000 + i);
        ck_assert_uint_eq(m.attr, CM_REJ);
        ck_assert_uint_eq(m.reason, CM_REJ_STALE_CONN);
    }
    ck_assert_uint_eq(cm_live(other.cm), 0);
    ck_assert_uint_eq(woken[0], 1); /* five doubts about one connection */
    hear_doubts();
    pump();
    ck_assert_uint_eq(sent[CM_DREQ], 1);
    ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_stale], 1);
    ck_assert_str_eq(cm_conn_state_name(cb), "ESTABLISHED");
    close_pair();
}
END_TEST

START_TEST(cm_21_a_lost_connection_makes_room)
{
    /* CM-21: the peer has restarted: its answer ends the old connection, and the other worker may
     * have the queue pair. */
    struct cm_conn *ca, *cb;
    const struct cm_params again = {.key = {77}, .ca_guid = 0xA};
    open_pair();
    establish(&ca, &cb);
    cm_destroy(a.cm);
    a.cm = cm_create(&again);
    ck_assert_uint_eq(ask_other(1).attr, CM_REJ);
    hear_doubts();
    b.nev = 0;
    pump();
    ck_assert_int_eq(last(&b)->type, CM_EV_DISCONNECTED);
    ck_assert_uint_eq(ask_other(2).attr, 0); /* waits for its consumer */
    ck_assert_uint_eq(cm_live(other.cm), 1);
    close_pair();
}
END_TEST

START_TEST(cm_21_one_that_ends)
{
    /* CM-21 CM-24: a queue pair may request a new connection while its old one ends. */
    struct cm_conn *ca, *cb;
    open_pair();
    establish(&ca, &cb);
    ck_assert_int_eq(cm_disconnect(b.cm, cb, NULL, 0, now), 0);
    ck_assert_uint_eq(ask_other(1).attr, 0);
    ck_assert_uint_eq(cm_live(other.cm), 1);
    ck_assert(!peers_doubts(peers, 0));
    close_pair();
}
END_TEST

START_TEST(cm_21_a_reply_with_another_workers_peer)
{
    /* CM-21: the passive side's REP names a queue pair, and another worker of ours already has a
     * connection with that queue pair. */
    struct cm_peer held = {.guid = 0xA, .qpn = accept_params.qpn, .id = 0x80000007};
    static const struct wire_addr any;
    struct cm_listener *l;
    struct cm_conn *c;
    open_pair();
    held.addr = a.addr;
    ck_assert(peers_hold(peers, &held, 0));
    ck_assert_int_eq(cm_listen(a.cm, CM_PS_TCP, &any, ANY_PORT, 0, &a, &l), 0);
    struct cm_connect_params p = params();
    p.path.local = b.addr;
    p.path.remote = a.addr;
    ck_assert_int_eq(cm_connect(b.cm, &p, &b, now, &c), 0);
    pump();
    ck_assert_int_eq(cm_accept(a.cm, last(&a)->conn, &accept_params, &a, now), 0);
    pump();
    ck_assert_int_eq(last(&b)->type, CM_EV_REJECTED);
    ck_assert_uint_eq(last(&b)->reason, CM_REJ_STALE_CONN);
    ck_assert(peers_doubts(peers, 1));
    ck_assert_uint_eq(woken[1], 1);
    close_pair();
}
END_TEST

START_TEST(cm_21_own_peer)
{
    /* CM-21: a queue pair may be its own peer, with the other end on another worker. */
    peers = peers_new(1, NULL, NULL);
    struct cm_peer passive = {.guid = 0xB, .qpn = QPN, .id = 0x80000007}, active = passive,
                   stranger = passive;
    active.id = 3;
    stranger.id = 4;
    ck_assert(peers_hold(peers, &passive, 0));
    ck_assert(peers_hold(peers, &active, passive.id));
    ck_assert(!active.held);
    ck_assert(!peers_hold(peers, &stranger, 5));
    peers_drop(peers, &passive);
    ck_assert(peers_hold(peers, &stranger, 0));
    peers_free(peers);
}
END_TEST

START_TEST(cm_21_many_doubts)
{
    /* CM-21: a flood of requests costs a bounded place for each worker. */
    struct cm_peer p[100], asks, out;
    unsigned told = 0;
    peers = peers_new(1, NULL, NULL);
    for (unsigned i = 0; i < 100; i++) {
        p[i] = (struct cm_peer){.guid = 0xA, .qpn = i, .id = 1};
        asks = p[i];
        ck_assert(peers_hold(peers, &p[i], 0));
        ck_assert(!peers_hold(peers, &asks, 0));
    }
    while (peers_next(peers, 0, &out))
        told++;
    ck_assert_uint_eq(told, 64);
    peers_free(peers);
}
END_TEST

UNIT_MAIN("peers", cm_21_another_workers_connection, cm_21_a_lost_connection_makes_room,
          cm_21_one_that_ends, cm_21_a_reply_with_another_workers_peer, cm_21_own_peer,
          cm_21_many_doubts)
