/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A pool of frames, and for each channel that needs some a list through it. The pool is mapped when
 * the first frame needs it; its pages take memory when they are first used.
 */
#include "switch_spill.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "channel.h"
#include "share.h"
#include "switch_channel.h"

#define FRAME_MAX 4224u /* octets: the largest packet of RoCE, and its headers */

struct spilled {
    uint32_t next; /* 1 + index; 0 = the last */
    uint32_t len, flags;
};

struct switch_pool {
    uint8_t *frames;
    uint32_t spare; /* 1 + index of the first free frame; 0 = none */
    unsigned nspare;
    struct spilled of[SWITCH_SPILL_FRAMES];
};

static struct switch_pool *pool_new(void)
{
    struct switch_pool *p = malloc(sizeof(*p));
    void *at = mmap(NULL, (size_t)SWITCH_SPILL_FRAMES * FRAME_MAX, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!p || at == MAP_FAILED) {
        if (at != MAP_FAILED)
            munmap(at, (size_t)SWITCH_SPILL_FRAMES * FRAME_MAX);
        free(p);
        return NULL;
    }
    p->frames = at;
    p->spare = 1;
    p->nspare = SWITCH_SPILL_FRAMES;
    for (uint32_t i = 0; i < SWITCH_SPILL_FRAMES; i++)
        p->of[i].next = i + 1 < SWITCH_SPILL_FRAMES ? i + 2 : 0;
    return p;
}

void switch_spill_free(struct nic_switch *s)
{
    if (!s->pool)
        return;
    munmap(s->pool->frames, (size_t)SWITCH_SPILL_FRAMES * FRAME_MAX);
    free(s->pool);
    s->pool = NULL;
}

static uint8_t *pool_data(struct switch_pool *p, uint32_t one)
{
    return p->frames + (size_t)(one - 1) * FRAME_MAX;
}

static struct spilled *pool_at(struct switch_pool *p, uint32_t one)
{
    return &p->of[one - 1];
}

bool switch_spills(const struct switch_channel *c)
{
    return c->nspilled > 0;
}

/* Put the channel on the list of those with waiting frames, or take it off. */
static void enlist(struct nic_switch *s, struct switch_channel *c)
{
    c->spill_next = s->spilling;
    s->spilling = c;
    c->spill_at = s->now;
}

static void delist(struct nic_switch *s, struct switch_channel *c)
{
    struct switch_channel **at = &s->spilling;
    while (*at != c)
        at = &(*at)->spill_next;
    *at = c->spill_next;
}

/* Frames that wait for programs of the channel's user. */
static uint32_t users_frames(const struct switch_channel *c)
{
    return c->share ? c->share->spilled : c->nspilled;
}

/* Remove the oldest waiting frame of this channel. */
static void take_off(struct switch_pool *p, struct switch_channel *c)
{
    if (c->share)
        c->share->spilled--;
    uint32_t one = c->spill_first;
    c->spill_first = pool_at(p, one)->next;
    c->nspilled--;
    pool_at(p, one)->next = p->spare;
    p->spare = one;
    p->nspare++;
}

bool switch_spill(struct nic_switch *s, struct switch_channel *c, const uint8_t *head,
                  uint32_t head_len, const struct io_frame *frame)
{
    if (c->stuck || c->over || frame->len > FRAME_MAX)
        return false;
    if (!s->pool)
        s->pool = pool_new();
    struct switch_pool *p = s->pool;
    if (!p || p->nspare == 0 || users_frames(c) >= SWITCH_SPILL_ALONE * p->nspare)
        return false;
    uint32_t one = p->spare;
    uint8_t *at = pool_data(p, one);
    p->spare = pool_at(p, one)->next;
    p->nspare--;
    if (head_len > 0)
        memcpy(at, head, head_len);
    memcpy(at + head_len, frame->data + head_len, frame->len - head_len);
    *pool_at(p, one) = (struct spilled){.len = frame->len, .flags = frame->flags};
    if (c->share)
        c->share->spilled++;
    if (c->nspilled++ == 0) {
        c->spill_first = one;
        enlist(s, c);
    } else {
        pool_at(p, c->spill_last)->next = one;
    }
    c->spill_last = one;
    s->counters[SWITCH_C_channel_waits]++;
    return true;
}

/* Fill the channel's ring. Returns the number of frames. */
static unsigned drain(struct nic_switch *s, struct switch_channel *c)
{
    struct io_slot slots[IO_BURST_MAX];
    struct switch_pool *p = s->pool;
    unsigned want = c->nspilled < IO_BURST_MAX ? c->nspilled : IO_BURST_MAX;
    unsigned n = c->io->ops->tx_reserve(c->io, slots, want, 0), sent = 0;
    for (unsigned i = 0; i < n; i++) {
        const struct spilled *one = pool_at(p, c->spill_first);
        slots[i].len = one->len <= slots[i].cap ? one->len : 0;
        memcpy(slots[i].data, pool_data(p, c->spill_first), slots[i].len);
        channel_tx_meta(c->io, i, one->flags);
        sent += slots[i].len > 0;
        take_off(p, c);
    }
    if (n > 0)
        c->io->ops->tx_commit(c->io, slots, n, 0);
    c->drops += n - sent;
    s->counters[SWITCH_C_channel_drops] += n - sent;
    s->counters[SWITCH_C_channel_rx_frames] += sent;
    return n;
}

static void drop_all(struct nic_switch *s, struct switch_channel *c)
{
    c->drops += c->nspilled;
    s->counters[SWITCH_C_channel_drops] += c->nspilled;
    while (c->nspilled > 0)
        take_off(s->pool, c);
}

unsigned switch_spill_run(struct nic_switch *s, uint64_t now)
{
    unsigned moved = 0;
    s->now = now;
    for (struct switch_channel **at = &s->spilling; *at;) {
        struct switch_channel *c = *at;
        unsigned n, all = 0;
        while (c->nspilled > 0 && (n = drain(s, c)) > 0)
            all += n;
        moved += all;
        if (all > 0)
            c->spill_at = now;
        if (c->nspilled > 0 && now - c->spill_at >= SWITCH_SPILL_NS) {
            drop_all(s, c);
            c->stuck = true;
        }
        if (c->nspilled == 0)
            *at = c->spill_next;
        else
            at = &c->spill_next;
    }
    return moved;
}

void switch_spill_drop(struct nic_switch *s, struct switch_channel *c)
{
    if (c->nspilled == 0)
        return;
    drop_all(s, c);
    delist(s, c);
}
