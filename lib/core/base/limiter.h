/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The rate limiter of a queue pair: paces its data packets (requests, READ responses, and
 * retransmissions of both) to the rate that its congestion control allows. ACKs, NAKs and CNPs are
 * not paced. Rules: CC-19, CC-20, CC-21, TMR-09.
 *
 * Stated bound of a burst: in any time t a queue pair sends at most rate * t / 8 octets of frames
 * plus the burst, which is the smaller one of `burst` octets and `burst_pkts` packets. Octets are
 * those of the frame, Ethernet header to iCRC.
 */
#ifndef URNIC_LIMITER_H
#define URNIC_LIMITER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "cc.h"
#include "engine.h"

struct qp;

/* Parameters in use: the device's, and those that queue pairs have of their own. */
struct limiter_conf {
    struct cc_conf conf;
    uint32_t users;
    bool listed; /* in the list of its hash: not the device's */
    LIST_ENTRY(limiter_conf) next;
};

LIST_HEAD(limiter_confs, limiter_conf);

struct limiter {
    /* read for every packet: one cache line, with the first part of cc */
    uint64_t next;     /* earliest time for the next packet, ns */
    uint64_t rest;     /* remainder of the division that gave `next`, in ns / rate */
    bool waiting;      /* the timer brings the queue pair back at `next` */
    uint16_t cnp_left; /* CNPs that packets sent so far may cause (SEC-17) */
    uint32_t cnp_sent; /* packets sent before the last CNP; low bits */
    struct cc cc;
} __attribute__((aligned(64)));
_Static_assert(offsetof(struct limiter, cc.line) <= 64, "one cache line");

/* The queue pair's parameters have changed, or its path: begin anew. 0, -ENOMEM (all is as
 * before). */
int limiter_begin(struct engine *e, struct qp *qp, uint64_t now);
void limiter_free(struct qp *qp);
/* Release the parameters of a queue pair that ends. */
void limiter_conf_drop(struct qp *qp);
/* New parameters for the device, with one holder. NULL = out of memory. */
struct limiter_conf *limiter_conf_new(struct engine *e, const struct cc_conf *conf);
/* Parameters equal to `conf`, with one more holder: the device's, another queue pair's, or new
 * ones. NULL = out of memory. */
struct limiter_conf *limiter_conf_hold(struct engine *e, const struct cc_conf *conf);
/* Drop one holder; harmless with NULL. */
void limiter_conf_let_go(struct limiter_conf *c);

/* May a packet of data go now? If not, the timer is armed. */
bool limiter_check(struct engine *e, struct qp *qp, uint64_t now);
/* Does a packet of the path MTU keep the next one waiting for more than a quarter of the ACK
 * time-out (REQ-10)? */
bool limiter_pauses(const struct qp *qp);
/* A frame of `octets` leaves. */
void limiter_charge(struct qp *qp, uint32_t octets, uint64_t now);
/* Signals from the network: a CNP; newly acknowledged packets with the round trip in ns (0 = no
 * sample); a NAK or a time-out. */
void limiter_on_cnp(struct engine *e, struct qp *qp, uint64_t now);
void limiter_on_ack(struct engine *e, struct qp *qp, uint32_t packets, uint64_t rtt, uint64_t now);
void limiter_on_loss(struct engine *e, struct qp *qp, bool timeout, uint64_t now);

#endif
