/* SPDX-License-Identifier: BSD-3-Clause */
#include "device_switch.h"

#include <errno.h>
#include <string.h>

#include "capture.h"
#include "device.h"
#include "facts.h"
#include "loop.h"
#include "neigh.h"
#include "share.h"
#include "steer.h"
#include "switch_ask.h"
#include "switch_group.h"
#include "switch_rx.h"
#include "switch_spill.h"
#include "switch_tx.h"
#include "team.h"
#include "worker.h"

/* Is the daemon's engine a member of a group? */
static bool engine_in(void *arg, const struct wire_addr *group)
{
    const struct device *d = arg;
    struct wire_addr g;
    for (unsigned i = 0; engine_mcast_get(d->engine, i, &g); i++) {
        if (memcmp(g.b, group->b, sizeof(g.b)) == 0)
            return true;
    }
    return false;
}

/* Record a frame from one program to another. */
static void inside(void *arg, const uint8_t *frame, uint32_t len, uint32_t qpn)
{
    struct device *d = arg;
    uint8_t *buf;
    memcpy(&buf, &frame, sizeof(buf)); /* captures only read it */
    const struct engine_slot s = {.buf = buf, .len = len, .qpn = qpn};
    capture_tx(d->captures, &s, 1, d->worker->now);
}

bool device_group_get(const struct device *d, unsigned i, struct wire_addr *group)
{
    unsigned n = 0;
    if (engine_mcast_get(d->engine, i, group))
        return true;
    while (engine_mcast_get(d->engine, n, group))
        n++;
    for (unsigned k = 0; d->sw && switch_group_get(d->sw, k, group); k++) {
        if (!engine_in((void *)(uintptr_t)d, group) && n++ == i)
            return true;
    }
    return false;
}

static int next_hop(void *arg, struct share *share, const struct wire_addr *dst, uint8_t mac[6])
{
    struct device *d = arg;
    const uint64_t now = d->worker->now;
    if (d->io->caps.kernel_ip)
        return -ENOTSUP;
    if (gid_find(&d->gids, dst) < 0 && neigh_is_new(d->neigh, dst) && !share_may_ask(share, now))
        return -EAGAIN;
    return neigh_lookup(d->neigh, share, dst, mac, now);
}

static void comm_est(void *arg, uint32_t qpn)
{
    struct device *d = arg;
    d->gsi->ops->program_comm_est(d->gsi, qpn);
}

static void heard_icmp(void *arg, const struct io_icmp *icmp)
{
    struct device *d = arg;
    team_icmp_heard(d->team, icmp);
}

int device_switch_start(struct device *d)
{
    if (d->sw)
        return 0;
    int rc = loop_start(d); /* carries frames of programs to the daemon's engine */
    if (rc == 0)
        rc = facts_start(d);
    if (rc < 0)
        return rc;
    struct nic_switch *s = switch_new(&d->team->blocks, d->member, d->mac, d->conf->vlan,
                                      d->conf->loopback || d->io->caps.loopback);
    if (!s || watch_add(&d->worker->watch, s->epfd, false) < 0) {
        switch_free(s);
        return -ENOMEM;
    }
    s->engine_in = engine_in;
    s->next_hop = next_hop;
    s->comm_est = comm_est;
    s->icmp = heard_icmp;
    s->engine_arg = d;
    s->inside = inside;
    s->inside_arg = d;
    d->sw = s;
    device_switch_follow(d);
    return 0;
}

void device_switch_stop(struct device *d)
{
    facts_free(d->facts);
    d->facts = NULL;
    if (!d->sw)
        return;
    watch_del(&d->worker->watch, d->sw->epfd);
    switch_free(d->sw);
    d->sw = NULL;
}

void device_switch_follow(struct device *d)
{
    struct wire_addr addr[GID_PAIRS];
    unsigned n = 0;
    if (!d->sw)
        return;
    for (unsigned i = 0; i < GID_PAIRS; i++) {
        if (d->gids.pair[i].used)
            addr[n++] = d->gids.pair[i].addr;
    }
    switch_set_addrs(d->sw, addr, n);
    switch_set_mac(d->sw, d->mac);
    facts_follow(d);
}

unsigned device_switch_round(struct device *d, uint64_t now)
{
    switch_round(d->sw);
    d->sw->captured = d->captures != NULL;
    if (d->sw->asks)
        switch_ask_run(d->sw, now);
    return switch_look(d->sw, now) + switch_spill_run(d->sw, now);
}

/* Is this our own frame, given back by the port? */
static bool is_echo(const struct device *d, const struct io_frame *f)
{
    return d->io->caps.own_echo && f->len >= 12 && memcmp(f->data + 6, d->mac, 6) == 0;
}

unsigned device_switch_rx(struct device *d, struct io_frame *frames, unsigned n, bool port)
{
    unsigned m = 0;
    for (unsigned i = 0; i < n; i++) {
        if (!port || !is_echo(d, &frames[i]))
            frames[m++] = frames[i];
        else
            d->stats.own_echo++;
    }
    n = m;
    /* Other datagrams leave half of the round's copies to those of the port. */
    unsigned kept = port ? 0 : SWITCH_COPIES / 2;
    if (kept > d->sw->copies)
        kept = d->sw->copies;
    d->sw->copies -= kept;
    uint64_t taken = switch_rx(d->sw, frames, n);
    d->sw->copies += kept;
    m = 0;
    for (unsigned i = 0; i < n; i++) {
        if (!(taken >> i & 1))
            frames[m++] = frames[i];
    }
    return m;
}

void device_switch_wake(struct device *d, bool stream)
{
    switch_wake(d->sw, stream);
}

void device_switch_capture(struct device *d, const struct io_frame *came, unsigned n,
                           const struct engine_frame *frames, unsigned seen, uint64_t now)
{
    unsigned k = 0;
    for (unsigned i = 0; i < n; i++) {
        const struct engine_frame to_program = {.data = came[i].data, .len = came[i].len};
        bool ours = k < seen && frames[k].data == came[i].data;
        bool captured = came[i].flags & (STEER_LOOP | STEER_COPY);
        if (!captured && (ours || (!is_echo(d, &came[i]) && !(came[i].flags & IO_RX_KERNEL))))
            capture_rx(d->captures, ours ? &frames[k] : &to_program, 1, now);
        k += ours;
    }
}

unsigned device_switch_tx(struct device *d, struct io_slot *slots, struct engine_slot *es,
                          unsigned n, uint64_t now)
{
    unsigned m = switch_tx(d->sw, slots, n, now);
    for (unsigned i = 0; i < m; i++) {
        es[i].len = slots[i].len;
        es[i].qpn = d->sw->sent_by[i];
        es[i].status = 0;
    }
    return m;
}

bool device_switch_sleep(struct device *d)
{
    return d->sw && switch_sleep(d->sw);
}

unsigned device_switch_lose(struct device *d, uint8_t *room, uint64_t now)
{
    struct io_slot slots[IO_BURST_MAX];
    for (unsigned i = 0; i < IO_BURST_MAX; i++)
        slots[i] = (struct io_slot){.data = room, .cap = IO_FRAME_MAX};
    return switch_tx(d->sw, slots, IO_BURST_MAX, now);
}
