/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A ring of frames. It is made when it could first be needed: most devices never talk to
 * themselves.
 */
#include "loop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "steer.h"
#include "switch_group.h"

#define LOOP_FRAMES (2u * IO_BURST_MAX)

struct loop {
    uint32_t first, count; /* of the frames that wait */
    uint32_t stride;       /* octets per frame */
    uint32_t len[LOOP_FRAMES];
    uint8_t frames[];
};

int loop_start(struct device *d)
{
    if (d->loop)
        return 0;
    /* Sized for the largest frames of any MTU that the port may have later. Unused pages cost
     * nothing. */
    struct loop *l = calloc(1, sizeof(*l) + (size_t)LOOP_FRAMES * IO_FRAME_MAX);
    if (!l)
        return -ENOMEM;
    l->stride = IO_FRAME_MAX;
    d->loop = l;
    return 0;
}

void loop_free(struct loop *l)
{
    free(l);
}

bool loop_waits(const struct loop *l)
{
    return l->count > 0;
}

unsigned loop_room(const struct loop *l)
{
    return LOOP_FRAMES - l->count;
}

static void loop_put(struct loop *l, const struct io_slot *s)
{
    uint32_t i = (l->first + l->count) % LOOP_FRAMES;
    if (l->count == LOOP_FRAMES || s->len > l->stride)
        return; /* impossible: the sender keeps to loop_room and to the port's frame size */
    memcpy(l->frames + (size_t)i * l->stride, s->data, s->len);
    l->len[i] = s->len;
    l->count++;
}

/* Is this multicast frame a datagram to a group that has members here? */
static bool loop_group(const struct device *d, const struct io_slot *s)
{
    struct wire_addr g;
    struct wire_pkt p;
    if (wire_parse(s->data, s->len, WIRE_P_NO_ICRC | WIRE_P_LOOPBACK, &p) != WIRE_OK)
        return false;
    if (d->sw && switch_group_has(d->sw, &p.dip))
        return true;
    for (unsigned i = 0; engine_mcast_get(d->engine, i, &g); i++) {
        if (memcmp(g.b, p.dip.b, sizeof(g.b)) == 0)
            return true;
    }
    return false;
}

void loop_take(struct device *d, struct io_slot *slots, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct io_slot *s = &slots[i];
        if (s->len == 0)
            continue;
        if (memcmp(s->data, d->mac, sizeof(d->mac)) == 0) {
            if (d->loop && !(d->shared && steer_loop(d, s)))
                loop_put(d->loop, s);
            s->len = 0;
        } else if (s->data[0] & 1) {
            if (d->loop && loop_group(d, s))
                loop_put(d->loop, s);
            if (d->shared)
                steer_loop_group(d, s);
        }
    }
}

unsigned loop_peek(const struct loop *l, struct io_frame *out, unsigned max)
{
    unsigned n = l->count < max ? l->count : max;
    for (unsigned i = 0; i < n; i++) {
        uint32_t at = (l->first + i) % LOOP_FRAMES;
        out[i] = (struct io_frame){.data = l->frames + (size_t)at * l->stride, .len = l->len[at]};
    }
    return n;
}

void loop_release(struct loop *l, unsigned n)
{
    l->first = (l->first + n) % LOOP_FRAMES;
    l->count -= n;
}
