/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "core_rig.h"
#include "guess.h"

static const char *const stranger = "10.0.0.66";

/* A packet that is wrong in the way that `kind` says, from the peer's address or from another. */
static struct wire_pkt wrong(struct rig *r, enum guess_kind kind, const char *source)
{
    struct wire_pkt p = rig_pkt(r, WIRE_SEND_ONLY, RIG_RQPSN);
    p.payload_len = 4;
    switch (kind) {
    case GUESS_QPN:
        p.dqpn ^= 0x5555;
        break;
    case GUESS_KEY:
        p.pkey = 0x1234;
        break;
    case GUESS_RESP:
        p = rig_pkt(r, WIRE_ACKNOWLEDGE, rig_psn(RIG_PSN, 1000));
        break;
    case GUESS_DUP:
        p = rig_pkt(r, WIRE_READ_REQUEST, rig_psn(RIG_RQPSN, 0xFFFFF0));
        p.rkey = r->rkey;
        p.dma_len = 4;
        break;
    default: /* the address is wrong */
        break;
    }
    if (source)
        wire_addr_parse(source, &p.sip);
    return p;
}

static const struct kind {
    const char *rule;
    enum guess_kind kind;
    bool forged; /* in the peer's name */
    enum engine_counter counter;
} kinds[] = {
    {"SEC-09 QP numbers", GUESS_QPN, false, ENGINE_C_rx_bad_qpn},
    {"SEC-09 QP numbers in a peer's name", GUESS_QPN, true, ENGINE_C_rx_bad_qpn},
    {"SEC-09 addresses", GUESS_ADDR, false, ENGINE_C_rx_addr_mismatch},
    {"SEC-09 P_Keys", GUESS_KEY, true, ENGINE_C_rx_bad_pkey},
    {"SEC-09 PSNs of responses", GUESS_RESP, true, ENGINE_C_rx_resp_out_of_window},
    {"SEC-09 PSNs of READs", GUESS_DUP, true, ENGINE_C_dup_rd_atomic_miss},
};

/* The real peer isn't locked out: a SEND of it arrives and is answered, and its ACK counts. */
static void peer_works(struct rig *r, uint32_t *n)
{
    uint32_t i = (*n)++;
    rig_clear(r);
    ck_assert_int_eq(rig_post_recv(r, i, 0, 64), 0);
    struct wire_pkt p = rig_pkt(r, WIRE_SEND_ONLY, rig_psn(RIG_RQPSN, i));
    p.payload_len = 8;
    p.ackreq = true;
    rig_rx(r, &p, NULL);
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    ck_assert_uint_eq(r->sent[0].syndrome, WIRE_SYN_ACK);
    ck_assert_int_eq(rig_post(r, WR_SEND, i, 8, WR_F_SIGNALED), 0);
    ck_assert_uint_eq(rig_tx(r, 0), 1);
    rig_ack(r, rig_psn(RIG_PSN, i));
    ck_assert_uint_eq(r->nwc, 2);
    ck_assert_uint_eq(r->wc[1].status, WC_SUCCESS);
}

START_TEST(sec_09_limits)
{
    for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        const struct kind *k = &kinds[i];
        struct rig *r = rig_new(NULL);
        uint32_t n = 0;
        peer_works(r, &n);
        for (unsigned g = 0; g < GUESS_BURST + 50; g++) {
            struct wire_pkt p = wrong(r, k->kind, k->forged ? NULL : stranger);
            rig_rx(r, &p, NULL);
        }
        ck_assert_msg(rig_count(r, k->counter) == GUESS_BURST, "%s: %lu", k->rule,
                      (unsigned long)rig_count(r, k->counter));
        ck_assert_uint_eq(rig_count(r, ENGINE_C_rx_rate_limited), 50);
        ck_assert_uint_eq(rig_count(r, ENGINE_C_guess_limit), 1);
        ck_assert_uint_eq(r->guesses, 1); /* one event, not one a packet */
        peer_works(r, &n);
        /* Another's are counted as before. */
        struct wire_pkt p = wrong(r, GUESS_ADDR, "10.0.0.99");
        rig_rx(r, &p, NULL);
        ck_assert_uint_eq(r->last.drop, ENGINE_C_rx_addr_mismatch);
        /* It ends. */
        rig_pass(r, GUESS_CLOSED);
        p = wrong(r, k->kind, k->forged ? NULL : stranger);
        rig_rx(r, &p, NULL);
        ck_assert_uint_eq(r->last.drop, k->counter);
        /* After ten seconds of peace as many as at first are let pass. */
        rig_pass(r, 10 * GUESS_CLOSED);
        for (unsigned g = 0; g < GUESS_BURST; g++)
            rig_rx(r, &p, NULL);
        ck_assert_uint_eq(r->last.drop, k->counter);
        ck_assert_uint_eq(r->guesses, 2);
        rig_free(r);
    }
}
END_TEST

/* SEC-09: a peer that continues to send to a destroyed queue pair isn't guessing. */
START_TEST(sec_09_not_the_bereaved)
{
    struct rig *r = rig_new(NULL);
    struct wire_pkt p = wrong(r, GUESS_ADDR, NULL), guess = wrong(r, GUESS_QPN, NULL);
    engine_qp_destroy(r->e, r->qp);
    for (unsigned i = 0; i < 2 * GUESS_BURST; i++)
        rig_rx(r, &p, NULL);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_rx_bad_qpn), 2 * GUESS_BURST);
    ck_assert_uint_eq(r->guesses, 0);
    for (unsigned i = 0; i < GUESS_BURST; i++)
        rig_rx(r, &guess, NULL);
    ck_assert_uint_eq(r->guesses, 1);
    rig_free(r);
}
END_TEST

/* SEC-09: a rate that an honest host can have is never cut off. */
START_TEST(sec_09_slow_is_fine)
{
    struct rig *r = rig_new(NULL);
    for (unsigned i = 0; i < 5 * GUESS_BURST; i++) {
        struct wire_pkt p = wrong(r, GUESS_QPN, stranger);
        rig_rx(r, &p, NULL);
        ck_assert_uint_eq(r->last.drop, ENGINE_C_rx_bad_qpn);
        rig_pass(r, GUESS_REFILL);
    }
    ck_assert_uint_eq(r->guesses, 0);
    rig_free(r);
}
END_TEST

/* SEC-09, KEY-06: an address has guessed Q_Keys. Until the second is over, its datagrams are
 * dropped even if their Q_Key is right, to the queue pair or by multicast. Datagrams of other
 * addresses get in. */
START_TEST(sec_09_right_guess_too)
{
    struct rig *r = rig_new(&(struct rig_opts){.type = QP_UD});
    for (unsigned i = 0; i < 4; i++)
        ck_assert_int_eq(rig_post_recv(r, i, 0, 100), 0);
    struct wire_pkt p = rig_pkt(r, WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY), 0);
    p.payload_len = 8;
    p.sqpn = RIG_PEER;
    wire_addr_parse(stranger, &p.sip);
    for (unsigned i = 0; i < GUESS_BURST; i++) {
        p.qkey = 0x22222222u + i;
        rig_rx(r, &p, NULL);
        ck_assert_uint_eq(r->last.drop, ENGINE_C_rx_bad_qkey);
    }
    p.qkey = 0x11111111;
    rig_rx(r, &p, NULL);
    ck_assert_uint_eq(r->last.drop, ENGINE_C_rx_rate_limited);
    ck_assert_uint_eq(r->nwc, 0);
    struct wire_pkt other = p;
    wire_addr_parse("10.0.0.67", &other.sip);
    rig_rx(r, &other, NULL);
    ck_assert_uint_eq(r->nwc, 1);

    struct wire_addr group;
    wire_addr_parse("239.1.1.1", &group);
    ck_assert_int_eq(engine_mcast_attach(r->e, r->qp, &group), 0);
    struct wire_pkt m = p;
    m.dip = group;
    m.dqpn = WIRE_QPN_MULTICAST;
    memcpy(m.dmac, (uint8_t[]){1, 0, 0x5E, 1, 1, 1}, 6);
    rig_rx(r, &m, NULL);
    ck_assert_uint_eq(r->last.drop, ENGINE_C_rx_rate_limited);

    rig_pass(r, GUESS_CLOSED);
    rig_rx(r, &p, NULL);
    ck_assert_uint_eq(r->nwc, 2);
    rig_rx(r, &m, NULL);
    ck_assert_uint_eq(r->nwc, 3);
    /* By multicast one can guess, too. */
    m.qkey = 0x33333333;
    for (unsigned i = 0; i < GUESS_BURST; i++)
        rig_rx(r, &m, NULL);
    ck_assert_uint_eq(r->guesses, 2);
    rig_free(r);
}
END_TEST

/* A datagram with this Q_Key of this sender of one host: why it was dropped. */
static enum engine_counter datagram(struct rig *r, uint32_t sqpn, uint32_t qkey)
{
    struct wire_pkt p = rig_pkt(r, WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY), 0);
    p.payload_len = 8;
    p.sqpn = sqpn;
    p.qkey = qkey;
    wire_addr_parse(stranger, &p.sip);
    r->last.drop = ENGINE_C_none;
    rig_rx(r, &p, NULL);
    return r->last.drop;
}

/* SEC-09: a host has many users. A user with wrong Q_Keys, however busy, costs the others nothing,
 * and a forger that names many senders costs none that had its key right before. */
START_TEST(sec_09_other_senders_of_a_host)
{
    struct rig *r = rig_new(&(struct rig_opts){.type = QP_UD});
    for (unsigned i = 0; i < 4; i++)
        ck_assert_int_eq(rig_post_recv(r, i, 0, 100), 0);
    for (unsigned i = 0; i < 20 * GUESS_BURST; i++)
        ck_assert_int_ne(datagram(r, 0x66, 0x22222222), ENGINE_C_none);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_guess_limit), 1);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_rx_bad_qkey), GUESS_BURST);
    ck_assert_int_eq(datagram(r, 0x66, 0x11111111), ENGINE_C_rx_rate_limited);
    ck_assert_int_eq(datagram(r, 0x77, 0x11111111), ENGINE_C_none); /* another, a new one */
    ck_assert_uint_eq(r->nwc, 1);
    /* Any number of senders close the address, each only for itself: for the ones that guessed. */
    for (unsigned k = 0; k < 20; k++)
        for (unsigned i = 0; i < GUESS_BURST; i++)
            datagram(r, 0x1000 + i, 0x22222222);
    ck_assert_uint_eq(rig_count(r, ENGINE_C_rx_bad_qkey), GUESS_HOST * GUESS_BURST);
    ck_assert_int_eq(datagram(r, 0x1000, 0x11111111), ENGINE_C_rx_rate_limited); /* a guess */
    ck_assert_int_eq(datagram(r, 0x77, 0x11111111), ENGINE_C_none);
    ck_assert_int_eq(datagram(r, 0x88, 0x11111111), ENGINE_C_none); /* had none wrong */
    ck_assert_uint_eq(r->nwc, 3);
    ck_assert_int_eq(datagram(r, 0x99, 0x22222222), ENGINE_C_rx_bad_qkey);
    ck_assert_int_eq(datagram(r, 0x99, 0x11111111), ENGINE_C_rx_rate_limited);
    rig_pass(r, GUESS_CLOSED);
    ck_assert_int_eq(datagram(r, 0x99, 0x11111111), ENGINE_C_none);
    rig_free(r);
}
END_TEST

/* SEC-09, SEC-06: while a peer guesses the PSNs of a queue pair's responses, a fatal NAK that hits
 * doesn't end it. */
START_TEST(sec_09_fatal_naks)
{
    struct rig *r = rig_new(NULL);
    rig_post(r, WR_SEND, 1, 8, WR_F_SIGNALED);
    rig_tx(r, 0);
    for (unsigned i = 0; i < GUESS_BURST; i++)
        rig_aeth(r, rig_psn(RIG_PSN, 100 + i), WIRE_SYN_NAK_ACCESS, 0);
    rig_aeth(r, RIG_PSN, WIRE_SYN_NAK_ACCESS, 0);
    ck_assert_uint_eq(r->last.drop, ENGINE_C_rx_rate_limited);
    ck_assert_uint_eq(rig_state(r), QPS_RTS);
    rig_ack(r, RIG_PSN);
    ck_assert_uint_eq(r->nwc, 1);
    ck_assert_uint_eq(r->wc[0].status, WC_SUCCESS);
    rig_free(r);
}
END_TEST

UNIT_MAIN("guess", sec_09_limits, sec_09_not_the_bereaved, sec_09_slow_is_fine,
          sec_09_right_guess_too, sec_09_other_senders_of_a_host, sec_09_fatal_naks)
