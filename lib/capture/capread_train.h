/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Private to the capture reader: trains of datagrams in one packet.
 *
 * A host that segments as late as it can, or joins what came as early as it can (UDP_SEGMENT,
 * UDP_GRO), shows a run of RoCE packets as one UDP datagram of up to 64 KiB: the headers of the
 * first one, and the payloads of all behind them. On the wire they are packets.
 */
#ifndef URNIC_CAPREAD_TRAIN_H
#define URNIC_CAPREAD_TRAIN_H

#include "capread.h"

struct capread_train {
    struct capread_packet packet; /* the train; its frame is `octets` */
    uint8_t *octets;              /* a copy of the whole; NULL = none was made yet */
    uint32_t hdr;                 /* up to the first payload */
    uint32_t segment, at, end;    /* of the payload: octets of one packet, and where the next is */
    uint16_t place;
    uint8_t frame[9600]; /* the packet that is out */
};

/* Is *p a train? Then *p becomes its first packet, and capread_train_next gives the others. */
bool capread_train(struct capread_train *t, struct capread_packet *p);
/* The next packet of the train, with the number and time of the whole; false = none is left. */
bool capread_train_next(struct capread_train *t, struct capread_packet *p);
void capread_train_free(struct capread_train *t);

#endif
