/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Do trains of datagrams get through to a peer? A path may drop them silently, or a network card
 * may give their datagrams other identifications than their iCRCs cover. Retransmissions of
 * reliable queue pairs are the evidence: a retransmitted packet shows that all before it have
 * arrived. If packets sent one by one make progress and those in trains never do, the peer gets
 * single datagrams from then on.
 *
 * Pure functions; any thread.
 */
#ifndef URNIC_UDP_TRAIN_H
#define URNIC_UDP_TRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "io.h"

#define UDP_FLOWS      256u /* flows remembered; a power of two */
#define UDP_FLOW_MEMO  64u  /* trains of a flow */
#define UDP_REACHES    256u
#define UDP_LOST_SURE  4u    /* trains lost in a row, at different places, that prove a bad path */
#define UDP_FLOW_REACH 8192u /* PSNs; a packet further back is of another connection */

/* Packets to one queue pair: requests, or answers to its requests. PSNs of 24 bits. */
struct udp_flow {
    struct io_addr to;
    uint32_t key;  /* destination QPN; bit 24: responses */
    uint32_t next; /* one past the furthest PSN sent */
    uint32_t last; /* one past the last PSN sent */
    uint32_t lost; /* head of a train that was retransmitted */
    bool used, lost_set;
    uint8_t singly; /* retransmissions that still go one by one */
    uint8_t at;
    struct {
        uint32_t first;
        uint8_t n; /* 0 = no train, or one of which nothing can be learned any more */
    } memo[UDP_FLOW_MEMO];
};

/* Knowledge about the path to an address. */
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

/* The number of the `n` datagrams to `to` that may leave in one call; `bth` is the first one's.
 * `told` becomes true if this call detects that trains do not get through. Call udp_train_sent
 * before the next call. */
unsigned udp_train_ask(struct udp_trains *t, const struct io_addr *to, const uint8_t *bth,
                       unsigned n, bool *told);
/* Record that n of them have left in one call, the last one with this BTH. */
void udp_train_sent(struct udp_trains *t, const struct io_addr *to, const uint8_t *bth,
                    const uint8_t *last, unsigned n);
/* Record a datagram of at least 20 octets from this address, with a right iCRC: it may be an
 * acknowledgement. */
void udp_train_heard(struct udp_trains *t, const struct io_addr *from, const uint8_t *bth);

/* From now on send datagrams to this address one by one. */
void udp_train_never(struct udp_trains *t, const struct io_addr *to);
bool udp_train_is_never(const struct udp_trains *t, const struct io_addr *to);

#endif
