/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A channel is looked at once more when it has been armed; a frame found then is lent, and stays
 * with the channel (`held`) until its turn.
 */
#include "switch_channel.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/random.h>

#include "channel.h"
#include "pair.h"
#include "switch_ask.h"
#include "switch_counters.h"
#include "switch_group.h"
#include "switch_rx.h"
#include "switch_spill.h"

#define EVENTS 64

/* Put the channel on the active ring. */
static void activate(struct nic_switch *s, struct switch_channel *c)
{
    if (c->next || c->over)
        return;
    if (c->asleep) {
        c->asleep = false;
        s->nasleep--;
        c->io->ops->rx_arm(c->io, false);
    }
    if (!s->active) {
        s->active = c->next = c->prev = c;
    } else { /* at the end of the ring */
        c->next = s->active;
        c->prev = s->active->prev;
        c->prev->next = c;
        c->next->prev = c;
    }
    s->nactive++;
}

static void deactivate(struct nic_switch *s, struct switch_channel *c)
{
    if (!c->next)
        return;
    if (c->next == c) {
        s->active = NULL;
    } else {
        c->prev->next = c->next;
        c->next->prev = c->prev;
        if (s->active == c)
            s->active = c->next;
    }
    c->next = c->prev = NULL;
    s->nactive--;
}

/* Arm it and look once more. Returns whether it sleeps. */
static bool put_to_sleep(struct nic_switch *s, struct switch_channel *c)
{
    if (c->held)
        return false;
    c->io->ops->rx_arm(c->io, true);
    c->held = c->io->ops->rx_peek(c->io, &c->frame, 1, 0) == 1;
    if (c->held) {
        c->io->ops->rx_arm(c->io, false);
        return false;
    }
    deactivate(s, c);
    c->asleep = true;
    c->empties++;
    s->nasleep++;
    return true;
}

struct switch_channel *switch_attach(struct nic_switch *s, struct io_port *io, void *owner,
                                     uint64_t now)
{
    struct switch_channel *c = calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    struct epoll_event ev = {.events = EPOLLIN | EPOLLET, .data.ptr = c};
    if (epoll_ctl(s->epfd, EPOLL_CTL_ADD, io->caps.rx_fd, &ev) < 0) {
        free(c);
        return NULL;
    }
    c->s = s;
    c->io = io;
    c->owner = owner;
    c->busy = now;
    c->weight = 1;
    c->all_next = s->channels;
    s->channels = c;
    s->nchannels++;
    activate(s, c);
    return c;
}

static void give_blocks(struct nic_switch *s, const struct switch_channel *c, uint64_t now)
{
    for (unsigned i = 0; i < QPN_BLOCKS; i++) {
        if (s->owner[i] != c)
            continue;
        s->owner[i] = NULL;
        blocks_give(s->blocks, i, now);
    }
}

void switch_detach(struct nic_switch *s, struct switch_channel *c, uint64_t now)
{
    struct switch_channel **at = &s->channels;
    while (*at != c)
        at = &(*at)->all_next;
    *at = c->all_next;
    s->nchannels--;
    switch_ask_forget(s, c);
    switch_counters_forget(s, c);
    switch_wake_forget(s, c);
    deactivate(s, c);
    s->nasleep -= c->asleep;
    switch_group_leave_all(s, c);
    switch_spill_drop(s, c);
    give_blocks(s, c, now);
    (void)epoll_ctl(s->epfd, EPOLL_CTL_DEL, c->io->caps.rx_fd, NULL);
    c->io->ops->close(c->io);
    switch_pairs_free(c);
    free(c);
}

int switch_draw(struct nic_switch *s, struct switch_channel *c, uint64_t now, uint64_t key[2])
{
    uint32_t which;
    if (getrandom(key, 2 * sizeof(key[0]), 0) != (ssize_t)(2 * sizeof(key[0])) ||
        getrandom(&which, sizeof(which), 0) != (ssize_t)sizeof(which))
        return -EIO;
    int block = blocks_draw(s->blocks, s->worker, c->share, now, which);
    if (block >= 0)
        s->owner[block] = c;
    return block;
}

void switch_end(struct nic_switch *s, struct switch_channel *c)
{
    c->ending = true;
    switch_group_leave_all(s, c);
    switch_spill_drop(s, c);
    activate(s, c);
}

struct switch_mark switch_mark(struct nic_switch *s, struct switch_channel *c)
{
    activate(s, c);
    return (struct switch_mark){channel_rx_mark(c->io), c->empties};
}

bool switch_passed(const struct switch_channel *c, const struct switch_mark *mark)
{
    return channel_rx_passed(c->io, mark->sent) || c->empties != mark->empties;
}

unsigned switch_take(struct switch_channel *c, struct io_frame *frames, unsigned max)
{
    unsigned held = c->held;
    if (held)
        frames[0] = c->frame;
    c->held = false;
    return held + (max > held ? c->io->ops->rx_peek(c->io, frames + held, max - held, 0) : 0);
}

void switch_visited(struct nic_switch *s, struct switch_channel *c, unsigned n, uint64_t now)
{
    if (channel_fault(c->io)) {
        c->over = true; /* otherwise its eventfd would go on waking us */
        (void)epoll_ctl(s->epfd, EPOLL_CTL_DEL, c->io->caps.rx_fd, NULL);
        s->counters[SWITCH_C_channel_bad_index]++;
        deactivate(s, c);
        return;
    }
    if (n > 0) {
        c->busy = now;
        c->looks = 0;
        return;
    }
    c->empties++;
    c->looks++;
    if (now - c->busy >= SWITCH_IDLE_NS && c->looks >= SWITCH_IDLE_LOOKS)
        (void)put_to_sleep(s, c);
}

unsigned switch_look(struct nic_switch *s, uint64_t now)
{
    struct epoll_event ev[EVENTS];
    unsigned woken = 0;
    if (s->nasleep == 0 || now < s->look_at)
        return 0;
    s->look_at = now + SWITCH_LOOK_NS;
    int n = epoll_wait(s->epfd, ev, EVENTS, 0);
    for (int i = 0; i < n; i++) {
        struct switch_channel *c = ev[i].data.ptr;
        woken += c->asleep;
        if (c->asleep)
            activate(s, c);
    }
    return woken;
}

bool switch_sleep(struct nic_switch *s)
{
    struct switch_channel *c = s->active;
    bool any = false;
    for (unsigned n = s->nactive; n > 0; n--) {
        struct switch_channel *next = c->next;
        any |= !put_to_sleep(s, c);
        c = next;
    }
    s->look_at = 0; /* the worker's next round looks at the channels that wake it */
    return any;
}
