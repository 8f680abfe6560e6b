/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Requests about engines in programs: the handler asks the programs (ipc_ask.h), the request waits
 * until they have answered or IPC_ASK_NS have passed, and is then served again, with the answers.
 * Neither the worker nor the control thread waits.
 */
#ifndef NIC_ASK_H
#define NIC_ASK_H

#include "switch_ask.h"

struct client;
struct nic;
struct request;

/* A request that waits, and the answers. */
struct ask {
    struct ask *next;
    struct client *client; /* NULL = gone */
    struct nic *nic;
    bool done;
    unsigned member; /* member of the device that the request was on (REQ_MEMBERS) */
    unsigned left;   /* unanswered questions; the worker's */
    unsigned n;
    struct switch_ask *of;  /* the questions, with their answers */
    struct nic_switch *all; /* switch to ask on all channels; NULL = one channel */
    size_t len;             /* of the request */
    uint8_t *msg;
};

/* Ask the program at a channel, with room for `room` octets of an answer. For a handler that has
 * changed nothing yet. On the device's worker. -EINPROGRESS: the handler returns this, and is
 * called again with r->ask; -EDQUOT: too many requests of this client wait; -ENOMEM. */
int ask(struct request *r, struct nic_switch *s, struct switch_channel *to,
        const struct ipc_question *q, uint32_t room);
/* The same, of all channels of the device. 0: there are none, or another request is asking them
 * now; there is nothing to wait for. */
int ask_all(struct request *r, struct nic_switch *s, const struct ipc_question *q, uint32_t room);

/* Serve the requests that have their answers: n->seals_fd is readable. On the control thread. */
void ask_service(struct nic *n);
/* The client disconnects: drop its waiting requests. On the control thread. */
void ask_forget(const struct client *c);

#endif
