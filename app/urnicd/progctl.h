/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Administrators' requests about engines in programs (ask.h): their handlers' part, which runs
 * twice, first to ask and then with the answers. On the device's worker.
 */
#ifndef URNICD_PROGCTL_H
#define URNICD_PROGCTL_H

#include <stdbool.h>

#include "ipc_ask.h"
#include "request.h"

/* A list's cursor has this bit set while the list is at queue pairs of programs. The worker, the
 * number of a block and a place in the program's own list follow the bit. */
#define PROGCTL_FIRST 0x80000000u

/* Is this the number of a program's queue pair? */
bool progctl_has(const struct device *d, uint32_t qpn);
/* The cursor of the first program of the device, on any of its workers; 0 = none. */
uint32_t progctl_begin(const struct device *d);
/* The cursor of the first program of this worker from this block on, else of the first one of the
 * next workers; 0 = none. */
uint32_t progctl_first(const struct device *d, unsigned block);

/* The block that a cursor names. */
unsigned progctl_block(uint32_t cursor);
/* The worker of the device that a cursor names; perhaps the device has fewer. */
unsigned progctl_worker(uint32_t cursor);
/* The worker of the device that has a queue pair's number, of an engine in a program or in the
 * daemon; perhaps the device has fewer. Any thread. */
unsigned progctl_worker_of(const struct device *d, uint32_t qpn);

/* IPC_STATS: request the counters of the worker's programs, which are then part of the device's.
 * The workers are asked one after the other. 0: no program has to answer, or this worker's have
 * been asked. -EINPROGRESS as ask. */
int progctl_count(struct request *r);
/* IPC_QP_LIST: up to `max` queue pairs of a program; one entry, IPC_QP_F_SILENT, if it hasn't
 * answered. */
int progctl_list(struct request *r, struct ipc_qp_list *out, uint32_t max);
/* IPC_QP_HISTORY. -ETIMEDOUT: no answer. */
int progctl_history(struct request *r);

/* For `cc`: request the queue pairs from this cursor on, or one of them (and set its parameters, if
 * `set` isn't NULL). As ask; -ENOENT: no program has it. */
int progctl_ask_cc(struct request *r, struct device *d, uint32_t qpn, uint32_t first,
                   const char *set);
/* Read the description of queue pair `i` into `out`, from the answer of the program that has this
 * block. False: the answer has no such entry. out->info.qpn is 0 if the entry is invalid or not
 * that program's. */
bool progctl_qp(const struct request *r, const struct device *d, unsigned block, unsigned i,
                struct ipc_asked_qp *out);
/* The cursor of the list after this answer; 0 = end of the list. */
uint32_t progctl_next(const struct request *r, const struct device *d, uint32_t first);

#endif
