/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which IPv4 identifications this kernel gives to the datagrams of a socket (WIRE-11). The iCRC
 * covers them, so the sender has to know them before. A filter on a test socket shows them: it
 * cuts each datagram to as many octets as the identification says.
 */
#ifndef URNIC_UDP_PROBE_H
#define URNIC_UDP_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#define UDP_PROBE_TRAIN 4u

/* Identifications that have been seen; -1 = none. */
struct udp_seen {
    int single[2];                 /* of two datagrams sent alone */
    int train[2][UDP_PROBE_TRAIN]; /* of two trains */
};

/* What can be foreseen. */
struct udp_ids {
    uint16_t single;      /* of a datagram alone */
    uint16_t first, step; /* of a train: that of its first datagram, and from one to the next */
    bool single_ok;       /* false: it changes, and no iCRC can be right */
    bool train_ok;        /* false: no trains */
};

/* As Linux has been since version 4.18, when it got trains. */
struct udp_ids udp_ids_usual(void);
/* The rule behind what was seen. What has not been seen is as usual, but a train of which only the
 * first datagram came out was none. Pure. */
struct udp_ids udp_ids_judge(const struct udp_seen *seen);

/* Send a few datagrams over the loopback interface of this network namespace and look at them.
 * Takes a millisecond, on a busy machine up to some hundred: it waits 20 ms for a datagram and
 * tries three times. Where there is no such interface, nothing is seen. Any thread. */
void udp_probe(struct udp_seen *out);

/* The identification at a place of a message of n datagrams. */
static inline uint16_t udp_ids_at(const struct udp_ids *ids, unsigned place, unsigned n)
{
    return n == 1 ? ids->single : (uint16_t)(ids->first + ids->step * place);
}

#endif
