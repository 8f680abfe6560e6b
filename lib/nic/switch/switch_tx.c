/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A frame lies where its program can change it. So its headers are copied, judged, and sent from
 * the copy; the rest is read once, on its way into the slot. A program that changes it meanwhile
 * spoils its own iCRC.
 */
#include "switch_tx.h"

#include <string.h>

#include "switch_check.h"
#include "switch_rx.h"

/* Pass one frame on. Returns whether it has filled the slot. */
static bool pass_on(struct nic_switch *s, struct switch_channel *c, const struct io_frame *f,
                    struct io_slot *slot)
{
    struct switch_frame h;
    enum switch_way way = switch_check(s, c, f, &h);
    if (way == SWITCH_REFUSED || f->len > slot->cap) {
        s->counters[way == SWITCH_REFUSED ? h.why : SWITCH_C_channel_bad_frame]++;
        c->refused++;
        return false;
    }
    s->counters[SWITCH_C_channel_tx_frames]++;
    if (way == SWITCH_INSIDE) {
        s->counters[SWITCH_C_channel_inside] += switch_put(s, h.to, h.head, h.head_len, f);
        return false;
    }
    memcpy(slot->data, h.head, h.head_len);
    memcpy(slot->data + h.head_len, f->data + h.head_len, f->len - h.head_len);
    slot->len = f->len;
    return true;
}

/* One channel's turn. Returns how many slots it has filled. */
static unsigned visit(struct nic_switch *s, struct switch_channel *c, struct io_slot *slots,
                      unsigned n, uint64_t now)
{
    struct io_frame frames[SWITCH_QUANTUM];
    unsigned filled = 0;
    unsigned taken = switch_take(c, frames, n < SWITCH_QUANTUM ? n : SWITCH_QUANTUM);
    for (unsigned i = 0; i < taken; i++)
        filled += pass_on(s, c, &frames[i], &slots[filled]);
    if (taken > 0)
        c->io->ops->rx_release(c->io, taken);
    switch_visited(s, c, taken, now);
    return filled;
}

unsigned switch_tx(struct nic_switch *s, struct io_slot *slots, unsigned n, uint64_t now)
{
    unsigned filled = 0;
    for (unsigned visits = s->nactive; visits > 0 && filled < n; visits--) {
        struct switch_channel *c = s->active;
        s->active = c->next;
        filled += visit(s, c, slots + filled, n - filled, now);
    }
    return filled;
}
