/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A device on the switch of a daemon's device. Its port is a channel. The daemon sets its
 * addresses, MAC, MTU, link and congestion control (ipc_facts.h), and has the neighbours and QP1.
 */
#ifndef NIC_UPLINK_H
#define NIC_UPLINK_H

#include "gid.h"
#include "io.h"
#include "ipc_ask.h"
#include "ipc_facts.h"
#include "settings.h"

struct device;
struct engine_slot;
struct io_port;

/* Most queue pairs that wait to be reported to the daemon: as many as a program has (a power of
 * two). */
#define UPLINK_COMM_EST 1024u
/* Most ICMP errors that wait for the same (a power of two). */
#define UPLINK_ICMP 8u

struct uplink {
    struct io_port *channel;           /* the program's end */
    struct io_port *io;                /* the same, or a port around it (drivers/direct) */
    const struct ipc_facts_page *page; /* outlives the device */
    unsigned block;                    /* of queue pair numbers */
    uint64_t key[2];                   /* secret of these numbers */
    uint32_t frame_max;                /* of the channel */
    /* the facts read last */
    uint32_t seen;
    struct ipc_facts facts;
    uint32_t comm_est[UPLINK_COMM_EST]; /* a ring */
    uint32_t comm_est_head, comm_est_tail;
    struct io_icmp icmp[UPLINK_ICMP]; /* a ring */
    uint32_t icmp_head, icmp_tail;

    /* Answers a question of the daemon: fills in a->status, next and len, and the octets, at most
     * IPC_ASK_MAX. On the device's worker. NULL = none are answered. */
    void (*asked)(void *arg, const struct ipc_question *q, struct ipc_answer *a, uint8_t *data);
    void *asked_arg;
    bool owes; /* octets of an answer from answer.off on must still be sent */
    struct ipc_answer answer;
    uint8_t data[IPC_ASK_MAX];
};

/* Is an answer still to be sent? */
static inline bool uplink_owes(const struct uplink *b)
{
    return b->owes;
}

/* Read the facts for the first time, before the device is opened, and write the settings among them
 * to *conf. 0; -EAGAIN: the page can't be read; -EINVAL: its contents make no sense. */
int uplink_begin(struct uplink *b, struct config_device *conf);
/* The device's addresses by the facts. */
void uplink_gids(const struct uplink *b, struct gid_table *out);
/* Is there something new in the page? Costs a load. */
static inline bool uplink_differs(const struct uplink *b)
{
    return ipc_facts_differ(b->page, b->seen);
}
/* Pass changed facts to the port; device_service applies the rest. On the device's worker. */
void uplink_follow(struct device *d, uint64_t now);

/* Before these slots are sent: add their queue pairs, for the daemon's captures. On the device's
 * worker. */
void uplink_tx(struct device *d, const struct engine_slot *slots, unsigned n);

/* A queue pair has got its first request. uplink_say reports it to the daemon, because the
 * connection manager may have missed that the peer is ready (CM-23). Without room the report is
 * lost, and the peer's RTU comes again. */
void uplink_comm_est(struct uplink *b, uint32_t qpn);
/* A socket of the program has got an ICMP error. uplink_say reports it to the daemon, which tells
 * all whom it concerns (CM-39). Without room the report is lost. */
void uplink_icmp(struct uplink *b, const struct io_icmp *icmp);
/* Is there news for the daemon? */
static inline bool uplink_says(const struct uplink *b)
{
    return b && (b->comm_est_head != b->comm_est_tail || b->icmp_head != b->icmp_tail);
}
/* Write the next news to buf, `cap` octets. Returns its length, 0 = none. */
uint32_t uplink_say(struct uplink *b, uint8_t *buf, uint32_t cap);

/* Send the pending answer as far as there is room, with or without a link. Returns the number of
 * frames. On the device's worker. */
unsigned uplink_answer(struct device *d);
/* The device ends: tell the daemon its last counters, as far as there is room. On the device's
 * worker. */
void uplink_last(struct device *d);
/* A frame has come that isn't RoCE: the daemon's news, or a question. On the device's worker. */
void uplink_rx(struct device *d, const uint8_t *frame, uint32_t len, uint64_t now);

#endif
