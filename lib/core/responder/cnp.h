/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The notification point: packets marked CE become congestion notification packets to their
 * sender. Rules: CC-01, CC-03..CC-07, CC-26, CC-27, CC-29, OPC-05.
 */
#ifndef URNIC_CNP_H
#define URNIC_CNP_H

#include <stdbool.h>
#include <stdint.h>

#include "engine.h"

struct qp;
struct rx;

#define CNP_QUEUE 64u                                      /* CNPs waiting for a slot */
#define CNP_FRAME (WIRE_BTH_END_MAX + 16u + WIRE_ICRC_LEN) /* 16 reserved octets (OPC-05) */
#define CNP_PEERS 64u                                      /* peers remembered with cnp_scope=ip */

/* A CNP, complete but for the iCRC. */
struct cnp {
    uint8_t frame[CNP_FRAME];
    uint32_t qpn; /* local */
    uint16_t len, ip_off, bth_off, payload_off;
};

struct cnp_peer {
    struct wire_addr ip;
    uint64_t at;
};

struct cnp_state {
    uint32_t head, tail;
    uint64_t cap_at;  /* CC-26: the cap is used up until then */
    uint64_t port_at; /* time of the last CNP: cnp_scope=port */
    struct cnp_peer peer[CNP_PEERS];
    struct cnp queue[CNP_QUEUE];
};

/* The packet is marked CE. */
void cnp_on_mark(struct rx *rx, struct qp *qp);
/* A CNP to the packet's sender, if the interval allows. True: one was made. */
bool cnp_make(struct rx *rx, struct qp *qp);
/* Put up to n waiting CNPs into slots. */
unsigned cnp_tx(struct engine *e, struct engine_slot *slots, unsigned n);

#endif
