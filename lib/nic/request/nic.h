/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A running NIC as a whole: its devices, the workers that serve them, its clients. The daemon has
 * one (app/urnicd), and so has each program that opened a port of its own.
 *
 * Thread: these functions are called on the control thread, which serves requests. It reaches a
 * worker by worker_call.
 */
#ifndef NIC_NIC_H
#define NIC_NIC_H

#include <stdint.h>

#include "clients.h"
#include "device.h"
#include "worker.h"

struct request_type;

struct nic {
    struct device *device[CONFIG_DEVICES];
    unsigned ndevice;
    struct worker worker[CONFIG_WORKERS];
    unsigned nworker;
    struct clients clients;
    int seals_fd; /* readable when a slab has its seals (seal.h), or programs have answered (ask.h)
                   */
    uint64_t started_at;
    uint64_t memory_at; /* time of the last look by nic_memory */
    /* Requests besides those of this folder, indexed by enum ipc_type; NULL = none. */
    const struct request_type *more;
};

/* The device of this name; NULL = none. */
struct device *nic_device(const struct nic *n, const char *name);

/* See how much memory there is now for clients: limits of control groups change, and daemons are
 * moved. Call it before memory is given out. */
void nic_memory(struct nic *n);

#endif
