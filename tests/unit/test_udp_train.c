/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Detection of lost trains by retransmissions (udp_train.h): a sender with a window, a path that
 * treats trains at random.
 */
#include "udp_train.h"

#include <string.h>

#include "unit.h"
#include "wire.h"
#include "wire_bytes.h"

#define WINDOW 128u
#define BURST  15u

enum path { GOOD, DROPS_TRAINS, DROPS_BUT_FIRST, LOSSY };

struct run {
    struct udp_trains t;
    struct io_addr to;
    enum path path;
    uint8_t opcode;
    uint32_t una, nxt, top; /* PSNs, not cut to 24 bits */
    uint32_t came;          /* the next one that the peer waits for */
    uint64_t dice;
    unsigned told, trains, packets;
};

static void bth(const struct run *r, uint8_t *b, uint32_t psn, uint8_t opcode)
{
    memset(b, 0, 20);
    b[0] = opcode;
    wire_put32(b + 4, 0x77);
    wire_put32(b + 8, psn & 0xFFFFFF);
    (void)r;
}

static unsigned dice(struct run *r, unsigned sides)
{
    r->dice ^= r->dice << 13;
    r->dice ^= r->dice >> 7;
    r->dice ^= r->dice << 17;
    return (unsigned)(r->dice >> 20) % sides;
}

static void arrive(struct run *r, uint32_t psn, unsigned n)
{
    bool lost = r->path == LOSSY && dice(r, 4) == 0; /* as a full socket does: all of it */
    for (unsigned i = 0; i < n && !lost; i++) {
        if (n > 1 && (r->path == DROPS_TRAINS || (r->path == DROPS_BUT_FIRST && i > 0)))
            break;
        if (psn + i == r->came)
            r->came++;
    }
}

/* Send as much as the window allows. */
static void send_some(struct run *r)
{
    while (r->nxt < r->una + WINDOW) {
        uint8_t b[20], last[20];
        bool told;
        unsigned n = r->una + WINDOW - r->nxt;
        n = n < BURST ? n : BURST;
        bth(r, b, r->nxt, r->opcode);
        n = udp_train_ask(&r->t, &r->to, b, n, &told);
        ck_assert_uint_ge(n, 1);
        r->told += told;
        bth(r, last, r->nxt + n - 1, r->opcode);
        udp_train_sent(&r->t, &r->to, b, last, n);
        arrive(r, r->nxt, n);
        r->trains += n > 1;
        r->packets += n;
        r->nxt += n;
    }
}

/* A round trip: received packets are acknowledged (requests), and the rest is sent again. */
static void turn(struct run *r, bool acks)
{
    uint8_t b[20];
    send_some(r);
    if (acks && r->came > r->una) {
        bth(r, b, r->came - 1, WIRE_OPCODE(WIRE_RC, WIRE_ACKNOWLEDGE));
        udp_train_heard(&r->t, &r->to, b);
    }
    r->una = r->came;
    r->nxt = r->una;
}

static struct run *start(enum path path, uint8_t opcode, uint32_t psn)
{
    static struct run r;
    memset(&r, 0, sizeof(r));
    r.to.b[0] = 0xFD;
    r.path = path;
    r.opcode = opcode;
    r.una = r.nxt = r.came = psn;
    r.dice = 88172645463325252ull;
    return &r;
}

static const uint8_t kinds[] = {WIRE_OPCODE(WIRE_RC, WIRE_WRITE_MIDDLE),
                                WIRE_OPCODE(WIRE_RC, WIRE_READ_RESP_MIDDLE)};

START_TEST(trains_that_vanish_are_noticed)
{
    for (unsigned k = 0; k < 4; k++) {
        struct run *r = start(k < 2 ? DROPS_TRAINS : DROPS_BUT_FIRST, kinds[k % 2], 0xFFFF80);
        for (unsigned i = 0; i < 40; i++)
            turn(r, k % 2 == 0);
        ck_assert_uint_eq(r->told, 1);
        ck_assert(udp_train_is_never(&r->t, &r->to));
        ck_assert_uint_gt(r->came - 0xFFFF80, 20 * WINDOW);
    }
}
END_TEST

START_TEST(a_lossy_path_keeps_its_trains)
{
    for (unsigned k = 0; k < 2; k++) {
        struct run *r = start(LOSSY, kinds[k], 0xFFFF80);
        for (unsigned i = 0; i < 4000; i++)
            turn(r, k == 0);
        ck_assert_uint_eq(r->told, 0);
        ck_assert(!udp_train_is_never(&r->t, &r->to));
        ck_assert_uint_gt(r->trains, r->packets / 40);
    }
}
END_TEST

START_TEST(a_good_path_has_nothing_but_trains)
{
    struct run *r = start(GOOD, kinds[0], 5);
    for (unsigned i = 0; i < 1000; i++)
        turn(r, true);
    ck_assert_uint_eq(r->told, 0);
    ck_assert_uint_ge(r->trains, 1000 * (WINDOW / BURST));
}
END_TEST

/* A missing peer is no evidence about trains: nothing else gets through either. */
START_TEST(a_silent_peer_says_nothing)
{
    struct run *r = start(DROPS_TRAINS, kinds[0], 5);
    for (unsigned i = 0; i < 100; i++) {
        send_some(r);
        r->came = r->una = r->nxt = 5;
    }
    ck_assert_uint_eq(r->told, 0);
    ck_assert(!udp_train_is_never(&r->t, &r->to));
}
END_TEST

/* A path that was good and then drops trains, as when a route changes. */
START_TEST(a_path_may_become_worse)
{
    struct run *r = start(GOOD, kinds[0], 5);
    for (unsigned i = 0; i < 100; i++)
        turn(r, true);
    r->path = DROPS_TRAINS;
    for (unsigned i = 0; i < 100; i++)
        turn(r, true);
    ck_assert_uint_eq(r->told, 1);
}
END_TEST

START_TEST(other_services_are_left_alone)
{
    struct udp_trains *t = calloc(1, sizeof(*t));
    struct io_addr to = {{0xFD, 1}};
    uint8_t b[20] = {WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY)};
    bool told;
    for (unsigned i = 0; i < 10; i++) {
        ck_assert_uint_eq(udp_train_ask(t, &to, b, 9, &told), 9);
        udp_train_sent(t, &to, b, b, 9);
    }
    udp_train_never(t, &to);
    ck_assert_uint_eq(udp_train_ask(t, &to, b, 9, &told), 1);
    free(t);
}
END_TEST

UNIT_MAIN("udp_train", trains_that_vanish_are_noticed, a_lossy_path_keeps_its_trains,
          a_good_path_has_nothing_but_trains, a_silent_peer_says_nothing, a_path_may_become_worse,
          other_services_are_left_alone)
