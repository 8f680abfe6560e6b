/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Questions to engines in programs (ipc_ask.h): they go through a channel's ring, in order with the
 * frames. A question ends with the answer, after IPC_ASK_NS, or when the channel is closed.
 *
 * The daemon's half is on the device's worker.
 */
#ifndef NIC_SWITCH_ASK_H
#define NIC_SWITCH_ASK_H

#include "ipc_ask.h"
#include "switch_channel.h"

/* A question under way. The caller owns the memory, with room for the answer after it. */
struct switch_ask {
    struct switch_ask *next;
    struct switch_channel *to; /* NULL: the question has ended */
    uint32_t id;
    bool counters;   /* the answer counts for the device (SHM-15) */
    uint64_t until;  /* ns */
    int status;      /* 0, -errno of the program, -ETIMEDOUT: no answer, -ENODEV: it has gone */
    uint32_t cursor; /* ipc_answer.next */
    uint32_t got, len;
    void (*done)(struct switch_ask *a); /* called at its end, on the worker */
    void *arg;
    uint32_t room;
    uint8_t *data;
};

/* Ask the program behind `to`. The caller has set a->done, arg, room and data; this function sets
 * q->id. If the ring is full the question ends without an answer. */
void switch_ask(struct nic_switch *s, struct switch_ask *a, struct switch_channel *to,
                struct ipc_question *q, uint64_t now);
/* End a question without a call of a->done, before the caller frees the memory. */
void switch_ask_cancel(struct nic_switch *s, struct switch_ask *a);
/* A channel is closed: its questions end. */
void switch_ask_forget(struct nic_switch *s, const struct switch_channel *c);
/* End questions whose time has passed; cheap without any. */
void switch_ask_run(struct nic_switch *s, uint64_t now);
/* The latest time for the next switch_ask_run; UINT64_MAX: no question is under way. */
uint64_t switch_ask_deadline(const struct nic_switch *s);

/* Is a program's frame an answer? Then take it; the frame can change meanwhile. */
bool switch_ask_answered(struct nic_switch *s, struct switch_channel *c, const uint8_t *frame,
                         uint32_t len);

/* ---- the program's half ---- */

/* A frame has come that isn't RoCE: is it a question? */
bool switch_ask_read(const uint8_t *frame, uint32_t len, struct ipc_question *out);
/* Write the part at a->off, as much as fits into `cap` octets (at least 128), and set a->part.
 * Returns the frame's length. */
uint32_t switch_ask_write(uint8_t *frame, uint32_t cap, const uint8_t mac[6], struct ipc_answer *a,
                          const uint8_t *data);

#endif
