/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The IPv4 identifications that this kernel gives to the datagrams of a socket (WIRE-11). The iCRC
 * covers them, so the sender has to know them in advance. A filter on a test socket shows them: it
 * cuts each datagram to as many octets as the identification says.
 */
#ifndef URNIC_UDP_PROBE_H
#define URNIC_UDP_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#define UDP_PROBE_TRAIN 4u

/* Identifications seen; -1 = none. */
struct udp_seen {
    int single[2];                 /* identifications of two datagrams sent alone */
    int train[2][UDP_PROBE_TRAIN]; /* identifications of two trains */
};

/* The rule of the kernel's identifications. */
struct udp_ids {
    uint16_t single;      /* identification of a datagram alone */
    uint16_t first, step; /* of a train: the first datagram's, and the step to the next */
    bool single_ok;       /* false: it changes, and no iCRC can be right */
    bool train_ok;        /* false: no trains */
};

/* The rule of Linux since version 4.18, which introduced trains. */
struct udp_ids udp_ids_usual(void);
/* Derive the rule from the identifications seen. For those not seen the usual rule holds; but if
 * only the first datagram of a train was seen, there are no trains. Pure. */
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
