/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A device behind the switch of a daemon's device: its port is a channel, and all that it is, its
 * addresses, MAC, MTU, link and congestion control, is what the daemon says (ipc_facts.h). It has
 * no neighbours and no QP1: those are the daemon's.
 */
#ifndef NIC_UPLINK_H
#define NIC_UPLINK_H

#include "gid.h"
#include "ipc_ask.h"
#include "ipc_facts.h"
#include "settings.h"

struct device;
struct engine_slot;
struct io_port;

/* Queue pairs that the daemon is still to be told of, at most: as many as a program has (a power of
 * two). */
#define UPLINK_COMM_EST 1024u

struct uplink {
    struct io_port *channel;           /* the program's end */
    struct io_port *io;                /* the same, or a port around it (drivers/direct) */
    const struct ipc_facts_page *page; /* outlives the device */
    unsigned block;                    /* of queue pair numbers */
    uint64_t key[2];                   /* ... their secret */
    uint32_t frame_max;                /* of the channel */
    /* what was read last */
    uint32_t seen;
    struct ipc_facts facts;
    uint32_t comm_est[UPLINK_COMM_EST]; /* a ring */
    uint32_t comm_est_head, comm_est_tail;

    /* Answers a question of the daemon: fills in a->status, next and len, and the octets, at most
     * IPC_ASK_MAX. On the device's worker. NULL = none are answered. */
    void (*asked)(void *arg, const struct ipc_question *q, struct ipc_answer *a, uint8_t *data);
    void *asked_arg;
    bool owes; /* an answer, from answer.off on */
    struct ipc_answer answer;
    uint8_t data[IPC_ASK_MAX];
};

/* Is an answer still to be sent? */
static inline bool uplink_owes(const struct uplink *b)
{
    return b->owes;
}

/* Read the facts for the first time, before the device is opened, and write what of them are
 * settings to *conf. 0; -EAGAIN: the page can't be read; -EINVAL: it says nothing sensible. */
int uplink_begin(struct uplink *b, struct config_device *conf);
/* The addresses that the device has by the facts. */
void uplink_gids(const struct uplink *b, struct gid_table *out);
/* Is there something new in the page? Costs a load. */
static inline bool uplink_differs(const struct uplink *b)
{
    return ipc_facts_differ(b->page, b->seen);
}
/* The facts that have changed are the port's from now on; device_service follows it in the rest. On
 * the device's worker. */
void uplink_follow(struct device *d, uint64_t now);

/* These slots are about to be sent: the daemon, for its captures, is told whose they are. On the
 * device's worker. */
void uplink_tx(struct device *d, const struct engine_slot *slots, unsigned n);

/* The first request has come to a queue pair: uplink_say tells the daemon, whose connection manager
 * may have missed that the peer is ready (CM-23). When there is no room the peer's RTU comes
 * again. */
void uplink_comm_est(struct uplink *b, uint32_t qpn);
/* Is there something to tell the daemon? */
static inline bool uplink_says(const struct uplink *b)
{
    return b && b->comm_est_head != b->comm_est_tail;
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
