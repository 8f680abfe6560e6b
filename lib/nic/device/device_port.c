/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A port's interface changes while the device runs (WIRE-36): its MTU, its MAC address, its number.
 * Each change is followed, and logged in one line.
 */
#include "device_port.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "device.h"
#include "device_switch.h"
#include "log.h"
#include "mem_link.h"
#include "neigh.h"
#include "worker.h"

struct mem_link *device_link(const struct device *d)
{
    char name[MEM_LINK_NAME];
    const char *spec = d->conf->port;
    size_t len;
    if (strncmp(spec, "mem:", 4) != 0)
        return NULL;
    len = strcspn(spec + 4, ",");
    if (len >= sizeof(name))
        return NULL;
    memcpy(name, spec + 4, len);
    name[len] = '\0';
    return mem_link_get(name);
}

struct io_port *device_lowest(const struct device *d)
{
    struct io_port *io = d->io;
    while (io->ops->below)
        io = io->ops->below(io);
    return io;
}

void device_watch(struct device *d)
{
    int fd = d->io->caps.rx_fd;
    int rc = fd < 0 ? 0 : watch_add(&d->worker->watch, fd, false);
    d->rx_fd = fd;
    d->rx_deaf = false;
    if (rc < 0 && rc != -EEXIST)
        log_warn("port", "%s: frames can't wake worker %u: %s", d->name, d->worker->index,
                 strerror(-rc));
}

uint32_t device_room(const struct device *d)
{
    uint32_t frame = d->io->caps.frame_max;
    return frame > DEVICE_HDR ? frame - DEVICE_HDR : 0;
}

/* Log the port's new MTU, once it is known which queue pairs have a larger one. */
static void tell_mtu(struct device *d)
{
    unsigned larger = engine_larger_mtu(d->engine), before = d->mtu_before;
    bool fits = wire_mtu_for_ip(d->ip_mtu) != 0;
    char more[96] = "";
    d->mtu_before = 0;
    if (larger > 0)
        snprintf(more, sizeof(more),
                 "; %u queue pairs keep a larger one, and their full packets don't fit any more",
                 larger);
    else if (!fits)
        snprintf(more, sizeof(more), "; that is too little for RoCE, full packets don't fit");
    log_at(d->member > 0 && larger == 0 ? LOG_DEBUG
           : larger > 0 || !fits        ? LOG_WARN
                                        : LOG_INFO,
           "port",
           "%s: the port carries %u octets of IP now: new connections have path MTU %u (%u "
           "before)%s",
           d->name, d->ip_mtu, wire_mtu_octets(d->path_mtu), wire_mtu_octets(before), more);
}

bool device_qps_follow(const struct device *d)
{
    return engine_follows(d->engine);
}

void device_qps_run(struct device *d, uint64_t now)
{
    if (engine_follow(d->engine, budget_of[BUDGET_follow], now))
        budget_over(d->stats.job, BUDGET_follow);
    else if (d->mtu_before)
        tell_mtu(d);
}

/* Queue pairs keep the path MTU that they have: both ends of a connection must have the same. */
static void follow_mtu(struct device *d)
{
    uint32_t room = device_room(d), mtu = d->conf->mtu;
    if (mtu == 0 || mtu > room)
        mtu = room;
    if (mtu == d->ip_mtu)
        return;
    unsigned path = wire_mtu_for_ip(mtu);
    if (!d->mtu_before)
        d->mtu_before = d->path_mtu;
    d->ip_mtu = mtu;
    d->path_mtu = path ? path : 1;
    d->frame_max = mtu + DEVICE_HDR;
    engine_set_mtu(d->engine, d->path_mtu);
    d->gsi->ops->set_mtu(d->gsi, d->path_mtu);
    neigh_mtu(d->neigh, mtu);
    if (!engine_follows(d->engine))
        tell_mtu(d);
}

/* The GIDs and the GUID stay: they name the device, and connections use them. */
static void follow_mac(struct device *d, uint64_t now)
{
    static const uint8_t none[6];
    const uint8_t *m = d->io->caps.mac, *old = d->mac;
    if (memcmp(m, d->mac, 6) == 0 || memcmp(m, none, 6) == 0 || memcmp(d->conf->mac, none, 6) != 0)
        return;
    log_at(d->member == 0 ? LOG_INFO : LOG_DEBUG, "port",
           "%s: the interface has MAC address %02x:%02x:%02x:%02x:%02x:%02x now "
           "(%02x:%02x:%02x:%02x:%02x:%02x before): we send from it, and announce it",
           d->name, m[0], m[1], m[2], m[3], m[4], m[5], old[0], old[1], old[2], old[3], old[4],
           old[5]);
    memcpy(d->mac, m, 6);
    engine_set_mac(d->engine, d->mac);
    device_switch_follow(d);
    neigh_mac(d->neigh, now);
}

void device_follow(struct device *d, uint64_t now)
{
    follow_mac(d, now);
    follow_mtu(d);
    if (d->io->caps.ifindex)
        d->ifindex = d->io->caps.ifindex;
    if (d->io->caps.rx_fd != d->rx_fd)
        device_watch(d);
}
