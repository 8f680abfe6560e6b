/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Do trains of datagrams get through to a peer? A path may drop them, and a network card may give
 * their datagrams identifications that their iCRCs are not made for, both without a word. Reliable
 * queue pairs send again what is lost: that is the evidence. A packet that is sent again shows that
 * all before it have arrived. Where packets sent one by one make progress and those in trains never
 * do, the peer gets single datagrams from then on.
 *
 * Pure functions; any thread.
 */
#ifndef URNIC_UDP_TRAIN_H
#define URNIC_UDP_TRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "io.h"

#define UDP_FLOWS      256u /* remembered; a power of two */
#define UDP_FLOW_MEMO  64u  /* trains of a flow */
#define UDP_REACHES    256u
#define UDP_LOST_SURE  4u    /* trains lost in a row, at different places */
#define UDP_FLOW_REACH 8192u /* PSNs; what is further back is another connection */

/* What leaves for one queue pair: its requests, or the answers to its own. PSNs of 24 bits. */
struct udp_flow {
    struct io_addr to;
    uint32_t key;  /* destination QPN; bit 24: responses */
    uint32_t next; /* one past the furthest PSN sent */
    uint32_t last; /* one past the PSN sent last */
    uint32_t lost; /* a train's head that has been sent again */
    bool used, lost_set;
    uint8_t singly; /* so many of those that are being sent again go one by one */
    uint8_t at;
    struct {
        uint32_t first;
        uint8_t n; /* 0 = no train, or one of which nothing can be learned any more */
    } memo[UDP_FLOW_MEMO];
};

/* What is known of the way to an address. */
struct udp_reach {
    struct io_addr to;
    bool used, proven, single;
    uint8_t losses;
};

/* All zero: nothing is known. */
struct udp_trains {
    struct udp_flow flow[UDP_FLOWS];
    struct udp_reach reach[UDP_REACHES];
};

/* How many of `n` datagrams to `to`, `bth` at the head of the first one, may leave in one call.
 * `told` becomes true if this very call finds out that trains do not get through. Then call
 * udp_train_sent before the next question. */
unsigned udp_train_ask(struct udp_trains *t, const struct io_addr *to, const uint8_t *bth,
                       unsigned n, bool *told);
/* They have left, n of them in one call, the last one with this BTH. */
void udp_train_sent(struct udp_trains *t, const struct io_addr *to, const uint8_t *bth,
                    const uint8_t *last, unsigned n);
/* A datagram of at least 20 octets has come from this address, with a right iCRC: it may be an
 * acknowledgment. */
void udp_train_heard(struct udp_trains *t, const struct io_addr *from, const uint8_t *bth);

/* To this address datagrams go one by one from now on. */
void udp_train_never(struct udp_trains *t, const struct io_addr *to);
bool udp_train_is_never(const struct udp_trains *t, const struct io_addr *to);

#endif
