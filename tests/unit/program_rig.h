/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Clients that have a channel on a device of a worker without a thread. This process is all of
 * them. Link with -Wl,--wrap=worker_call, so that visits to the worker are counted.
 */
#ifndef URNIC_TESTS_PROGRAM_RIG_H
#define URNIC_TESTS_PROGRAM_RIG_H

#include <string.h>

#include "channel.h"
#include "channel_ring.h"
#include "client.h"
#include "clients.h"
#include "clock.h"
#include "contexts.h"
#include "device.h"
#include "device_switch.h"
#include "engine_channel.h"
#include "memory.h"
#include "unit.h"
#include "worker.h"

static struct worker rig_worker;
static struct config_device rig_conf;
static struct device *rig_dev;
static struct clients rig_all;
static unsigned rig_visits; /* calls of worker_call */

void __wrap_worker_call(struct worker *w, void (*fn)(void *arg, uint64_t now), void *arg);
void __real_worker_call(struct worker *w, void (*fn)(void *arg, uint64_t now), void *arg);

void __wrap_worker_call(struct worker *w, void (*fn)(void *arg, uint64_t now), void *arg)
{
    rig_visits++;
    __real_worker_call(w, fn, arg);
}

struct rig_program {
    struct client c;
    struct io_port *io; /* the program's end */
    uint32_t qpn;       /* the first number of its block */
};

static inline void rig_setup(void)
{
    char err[CONFIG_ERR];
    ck_assert_int_eq(memory_init(), 0);
    ck_assert_int_eq(worker_init(&rig_worker, 0, -1, IDLE_AUTO, &context_ops), 0);
    rig_conf = (struct config_device){.name = "urn0", .port = "mem:programs", .naddr = 1};
    rig_conf.addr[0] = (struct config_addr){.ip = wire_addr_v4(0x0A000001), .prefix = 24};
    cc_conf_init(&rig_conf.cc, &cc_none);
    int rc = device_open(&rig_dev, &rig_conf, 0, &rig_worker, 0, err);
    ck_assert_msg(rc == 0, "%s", err);
    rig_all = (struct clients){.captures_fd = -1};
}

static inline void rig_teardown(void)
{
    device_close(rig_dev);
    worker_fini(&rig_worker);
}

/* A client of this process with a channel. */
static inline void rig_come(struct rig_program *p)
{
    struct engine_channel_offer offer;
    struct channel_memory m;
    uint64_t key[2];
    uint32_t block;
    *p = (struct rig_program){.c = {.all = &rig_all, .pid = getpid(), .uid = getuid()}};
    p->c.fd = p->c.pidfd = -1;
    p->c.ctx.device = rig_dev;
    p->c.ctx.worker = &rig_worker;
    p->c.next = rig_all.first;
    rig_all.first = &p->c;
    ck_assert_int_eq(engine_channel_open(&p->c, CHANNEL_SLOTS_MIN, &offer), 0);
    ck_assert_int_eq(channel_memory_map(&m, offer.memory_fd, offer.slots, offer.frame_max), 0);
    int event = fcntl(offer.event_fd, F_DUPFD_CLOEXEC, 0);
    ck_assert_int_eq(engine_channel_attach(&p->c, &block, key), 0);
    ck_assert_int_eq(channel_open(CHANNEL_PROGRAM, &m, event, 0, &p->io), 0);
    p->qpn = 0x800000u | block << QPN_BLOCK_BITS;
}

/* The client ends. */
static inline void rig_go(struct rig_program *p)
{
    struct client **at = &rig_all.first;
    while (*at != &p->c)
        at = &(*at)->next;
    *at = p->c.next;
    engine_channel_free(&p->c);
    p->io->ops->close(p->io);
}

#endif
