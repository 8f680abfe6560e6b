/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A frame lies where its program can change it. So its headers are copied, judged, and sent from
 * the copy; the rest is read once, on its way into the slot. A program that changes it meanwhile
 * spoils its own iCRC.
 */
#include "switch_tx.h"

#include <string.h>

#include "channel.h"
#include "switch_ask.h"
#include "switch_check.h"
#include "switch_news.h"
#include "switch_rx.h"

/* The queue pair that the program names as the sender of the i-th frame lent; 0: it has none of
 * that number. */
static uint32_t sender(const struct nic_switch *s, const struct switch_channel *c, unsigned i)
{
    uint32_t qpn = channel_rx_meta(c->io, i);
    return blocks_owner(&s->blocks, qpn) == c ? qpn : 0;
}

/* To another channel, while a capture looks: it gets what the program gets. */
static bool put_seen(struct nic_switch *s, const struct switch_frame *h, const struct io_frame *f,
                     uint32_t qpn)
{
    uint8_t all[IO_FRAME_MAX];
    struct io_frame copy = *f;
    if (f->len > sizeof(all))
        return false;
    memcpy(all, h->head, h->head_len);
    memcpy(all + h->head_len, f->data + h->head_len, f->len - h->head_len);
    copy.data = all;
    s->inside(s->inside_arg, all, f->len, qpn);
    return switch_put(s, h->to, NULL, 0, &copy);
}

/* Pass one frame on, the i-th of those that its channel lends. Returns whether it has filled the
 * slot. */
static bool pass_on(struct nic_switch *s, struct switch_channel *c, const struct io_frame *f,
                    unsigned i, struct io_slot *slot, uint32_t *qpn)
{
    struct switch_frame h;
    if (switch_news_hear(s, c, f) || switch_ask_answered(s, c, f->data, f->len))
        return false;
    const bool stray = c->direct && channel_rx_meta(c->io, i) == CHANNEL_STRAY;
    enum switch_way way =
        stray ? switch_check_stray(s, f, &h) : switch_check(s, c, channel_rx_meta(c->io, i), f, &h);
    if (way == SWITCH_REFUSED || f->len > slot->cap) {
        s->counters[way == SWITCH_REFUSED ? h.why : SWITCH_C_channel_bad_frame]++;
        c->refused++;
        return false;
    }
    s->counters[SWITCH_C_channel_strays] += stray;
    s->counters[SWITCH_C_channel_tx_frames]++;
    s->counters[SWITCH_C_channel_tx_bytes] += f->len;
    *qpn = s->captured ? sender(s, c, i) : 0;
    if (way == SWITCH_INSIDE) {
        s->counters[SWITCH_C_channel_inside] +=
            s->captured ? put_seen(s, &h, f, *qpn) : switch_put(s, h.to, h.head, h.head_len, f);
        return false;
    }
    memcpy(slot->data, h.head, h.head_len);
    memcpy(slot->data + h.head_len, f->data + h.head_len, f->len - h.head_len);
    slot->len = f->len;
    return true;
}

/* One channel's turn. Returns how many slots it has filled. */
static unsigned visit(struct nic_switch *s, struct switch_channel *c, struct io_slot *slots,
                      uint32_t *qpns, unsigned n, uint64_t now)
{
    struct io_frame frames[SWITCH_QUANTUM];
    unsigned filled = 0;
    unsigned taken = switch_take(c, frames, n < SWITCH_QUANTUM ? n : SWITCH_QUANTUM);
    for (unsigned i = 0; i < taken; i++)
        filled += pass_on(s, c, &frames[i], i, &slots[filled], &qpns[filled]);
    if (taken > 0)
        c->io->ops->rx_release(c->io, taken);
    switch_visited(s, c, taken, now);
    return filled;
}

unsigned switch_tx(struct nic_switch *s, struct io_slot *slots, unsigned n, uint64_t now)
{
    unsigned filled = 0;
    s->now = now;
    for (unsigned visits = s->nactive; visits > 0 && filled < n; visits--) {
        struct switch_channel *c = s->active;
        s->active = c->next;
        filled += visit(s, c, slots + filled, s->sent_by + filled, n - filled, now);
    }
    return filled;
}
