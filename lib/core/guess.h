/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Limits on guessing: who sends many packets that can't be right may be looking for one that is.
 * Each failure takes a token, of which there are 1000 at once and 100 more a second; without one
 * left, that kind of failure closes for a second. Rule: SEC-09.
 *
 *   A source address is charged for packets to queue pairs that don't have it as their peer. What
 *   it guesses right of QP numbers alone harms nobody. MADs have limits of their own (CM-34,
 * SEC-20). For the keys of datagrams the sending queue pair is charged: a host has many users.
 * While it is closed, none of its datagrams is taken, right guesses included. As a forger can name
 * any sender, the address is charged as well, but has eight times as much; while it is closed, only
 * senders are heard that had a key right before, or none wrong: one user of a host
 * costs another nothing, and a forger that makes up senders has some 2,000 guesses a second. A
 * connected queue pair is charged for what comes in its peer's name, which anybody may have forged.
 * So the peer isn't locked out: only what fails is dropped, and, while RESP is closed, the fatal
 * NAKs for which a right guess would end the queue pair. A peer that meant one falls silent, and
 * the ACK timer ends the request.
 */
#ifndef URNIC_GUESS_H
#define URNIC_GUESS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine.h"

struct qp;
struct rx;

#define GUESS_BURST  1000u
#define GUESS_REFILL 10000000ull   /* ns for a token */
#define GUESS_CLOSED 1000000000ull /* ns */
#define GUESS_CNPS   1000u         /* in a second: too many */
#define GUESS_TABLE  256u          /* pairs of guesser and kind that are remembered */
#define GUESS_HOSTS  64u   /* ... and hosts, in places of their own: a host has many senders */
#define GUESS_HOST   8u    /* a host has so many times what a sender of it has */
#define GUESS_GOOD   1024u /* senders that had a key right, while somebody guesses */
#define GUESS_WATCH  60000000000ull /* ns: so long after a wrong key */
#define GUESS_WRONG  (1u << 17)     /* senders that had one wrong: bits that they share */
#define GUESS_FORGET 60000000000ull /* ns: so long are they remembered */

enum guess_kind {
    GUESS_QPN,      /* no such queue pair, nor was there lately */
    GUESS_ADDR,     /* another's peer */
    GUESS_KEY,      /* P_Key in a peer's name */
    GUESS_SENDER,   /* P_Key or Q_Key of a datagram */
    GUESS_HOST_KEY, /* ... of all senders of an address */
    GUESS_RESP,     /* a response ahead of everything sent */
    GUESS_DUP,      /* a repeated READ or ATOMIC that never was */
};

struct guess_entry {
    struct wire_addr ip;
    uint32_t qpn; /* charged to this queue pair, of ours or the sender; or 0: to the address */
    uint32_t kind;
    uint32_t tokens;
    uint64_t at;     /* up to when they have been refilled */
    uint64_t closed; /* until then */
};

struct guess {
    uint64_t key;
    uint64_t closed;     /* until then at least one entry is */
    uint64_t cnps_since; /* the second that is counted in */
    uint32_t cnps;
    uint64_t watch; /* until then right keys are remembered */
    uint64_t good[GUESS_GOOD];
    uint64_t wrong_since;
    uint64_t wrong[GUESS_WRONG / 64];
    struct guess_entry entry[GUESS_TABLE + GUESS_HOSTS];
};

/* Drop the packet as `counter` says, or as rx_rate_limited when that kind is closed. `qp` = the
 * queue pair whose peer the packet claims to be from, NULL = of none. */
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
/* Is this kind closed for what comes from the queue pair's peer? */
bool guess_peer_closed(const struct rx *rx, const struct qp *qp, enum guess_kind kind);

#endif
