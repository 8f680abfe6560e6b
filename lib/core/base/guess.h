/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Limits on guessing: a sender of many wrong packets may be looking for a right one. Each failure
 * takes a token. A budget holds 1000 tokens and gets 100 more a second. When it is empty, that kind
 * of failure is closed for a second. Rule: SEC-09.
 *
 * Four budgets:
 *
 *   - A source address pays for packets to queue pairs that have another peer. A right guess of a
 *     QP number alone does no harm. MADs have limits of their own (CM-34, SEC-20).
 *   - A sending queue pair pays for wrong keys of datagrams, because a host has many users.
 *     While it is closed, all its datagrams are dropped, right guesses included.
 *   - Its address pays as well, from a budget eight times as large, because a forger can invent
 *     senders. While the address is closed, only senders are heard that had a right key before, or
 *     no wrong one. So one user of a host costs another user nothing, and a forger that invents
 *     senders has some 2,000 guesses a second.
 *   - A connected queue pair pays for packets in its peer's name, which may be forged. The peer is
 *     not locked out: only failing packets are dropped, and, while RESP is closed, fatal NAKs, for
 *     which a right guess would end the queue pair. If a dropped NAK was real, the peer falls
 *     silent and the ACK timer ends the request.
 */
#ifndef URNIC_GUESS_H
#define URNIC_GUESS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine.h"

struct qp;
struct rx;

#define GUESS_BURST  1000u
#define GUESS_REFILL 10000000ull    /* ns for a token */
#define GUESS_CLOSED 1000000000ull  /* ns */
#define GUESS_CNPS   1000u          /* CNPs in a second: too many */
#define GUESS_TABLE  256u           /* pairs of guesser and kind that are remembered */
#define GUESS_HOSTS  64u            /* hosts that are remembered, apart from the pairs */
#define GUESS_HOST   8u             /* budget of a host, in budgets of a sender */
#define GUESS_GOOD   1024u          /* senders with a right key, remembered while another guesses */
#define GUESS_WATCH  60000000000ull /* ns: watch after a wrong key */
#define GUESS_WRONG  (1u << 17)     /* bits for senders with a wrong key, which share them */
#define GUESS_FORGET 60000000000ull /* ns: memory of senders */

enum guess_kind {
    GUESS_QPN,      /* no such queue pair, nor was there lately */
    GUESS_ADDR,     /* the queue pair has another peer */
    GUESS_KEY,      /* P_Key in a peer's name */
    GUESS_SENDER,   /* P_Key or Q_Key of a datagram */
    GUESS_HOST_KEY, /* P_Key or Q_Key of all senders of an address */
    GUESS_RESP,     /* a response ahead of everything sent */
    GUESS_DUP,      /* a duplicate of no READ or ATOMIC */
};

struct guess_entry {
    struct wire_addr ip;
    uint32_t qpn; /* the charged queue pair, ours or the sender's; 0 = the address */
    uint32_t kind;
    uint32_t tokens;
    uint64_t at;     /* time of the last refill */
    uint64_t closed; /* closed until this time */
};

struct guess {
    uint64_t key;
    uint64_t closed;     /* at least one entry is closed until this time */
    uint64_t cnps_since; /* start of the second that `cnps` counts */
    uint32_t cnps;
    uint64_t watch; /* right keys are remembered until this time */
    uint64_t good[GUESS_GOOD];
    uint64_t wrong_since;
    uint64_t wrong[GUESS_WRONG / 64];
    struct guess_entry entry[GUESS_TABLE + GUESS_HOSTS];
};

/* Drop the packet as `counter` says, or as rx_rate_limited when that kind is closed. `qp` = the
 * queue pair in whose peer's name the packet comes, NULL = none. */
void guess_drop(struct rx *rx, const struct qp *qp, enum guess_kind kind,
                enum engine_counter counter);
/* A datagram has a wrong key. */
void guess_drop_datagram(struct rx *rx, enum engine_counter counter);
/* A datagram has the right keys. */
void guess_right(const struct rx *rx);
/* SEC-17: a CNP in this peer's name that can't be an answer to anything that was sent to it. */
void guess_cnp(struct engine *e, const struct wire_addr *peer, uint64_t now);
/* Are the keys of this datagram's sender closed? */
bool guess_sender_closed(const struct rx *rx);
/* Is this kind closed for packets from the queue pair's peer? */
bool guess_peer_closed(const struct rx *rx, const struct qp *qp, enum guess_kind kind);

#endif
