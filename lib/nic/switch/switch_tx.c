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

#define TX_PART  8u /* frames taken at a time, whose lengths are unknown before */
#define TX_TURNS 4u /* of each channel in a call */
/* Frames in a call. Those that fill no slot cost time, too. */
#define TX_TAKEN (4u * IO_BURST_MAX)

/* The queue pair that the program names as the sender of the i-th frame lent; 0: it has none of
 * that number. */
static uint32_t sender(const struct nic_switch *s, const struct switch_channel *c, unsigned i)
{
    uint32_t qpn = channel_rx_meta(c->io, i);
    return switch_owner(s, qpn) == c ? qpn : 0;
}

/* Put a frame into another channel during a capture, which gets the same octets as the program. */
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

/* Judge the i-th frame that the channel lends. Returns whether to pass it on: it is neither for the
 * daemon nor refused. */
static bool judge(struct nic_switch *s, struct switch_channel *c, const struct io_frame *f,
                  unsigned i, struct switch_frame *h)
{
    if (switch_news_hear(s, c, f) || switch_ask_answered(s, c, f->data, f->len))
        return false;
    const uint32_t meta = channel_rx_meta(c->io, i);
    const bool stray = c->direct && meta == CHANNEL_STRAY;
    h->way = stray ? switch_check_stray(s, f, h) : switch_check(s, c, meta, f, h);
    if (h->way == SWITCH_REFUSED) {
        s->counters[h->why]++;
        c->refused++;
        return false;
    }
    s->counters[SWITCH_C_channel_strays] += stray;
    return true;
}

/* Pass one frame on, the i-th of those that its channel lends. Returns whether it has filled the
 * slot. */
static bool pass_on(struct nic_switch *s, struct switch_channel *c, const struct io_frame *f,
                    unsigned i, const struct switch_frame *h, struct io_slot *slot, uint32_t *qpn)
{
    if (f->len > slot->cap) {
        s->counters[SWITCH_C_channel_bad_frame]++;
        c->refused++;
        return false;
    }
    s->counters[SWITCH_C_channel_tx_frames]++;
    s->counters[SWITCH_C_channel_tx_bytes] += f->len;
    *qpn = s->captured ? sender(s, c, i) : 0;
    if (h->way == SWITCH_INSIDE) {
        s->counters[SWITCH_C_channel_inside] +=
            s->captured ? put_seen(s, h, f, *qpn) : switch_put(s, h->to, h->head, h->head_len, f);
        return false;
    }
    memcpy(slot->data, h->head, h->head_len);
    memcpy(slot->data + h->head_len, f->data + h->head_len, f->len - h->head_len);
    slot->len = f->len;
    return true;
}

/* The next frames of a channel, at most n. Adds the slots filled to *filled. Returns the frames
 * taken.
 *
 * All are judged before the first is copied: a load of two words of a header that has just been
 * copied waits until all earlier stores are in the cache, also those into a port's memory that the
 * peer's core has. */
static unsigned take_some(struct nic_switch *s, struct switch_channel *c, struct io_slot *slots,
                          unsigned *filled, unsigned n)
{
    struct io_frame frames[TX_PART];
    struct switch_frame heads[TX_PART];
    bool good[TX_PART];
    unsigned taken = switch_take(c, frames, n < TX_PART ? n : TX_PART);
    for (unsigned i = 0; i < taken; i++)
        __builtin_prefetch(frames[i].data);
    for (unsigned i = 0; i < taken; i++)
        good[i] = judge(s, c, &frames[i], i, &heads[i]);
    for (unsigned i = 0; i < taken; i++) {
        if (good[i])
            *filled +=
                pass_on(s, c, &frames[i], i, &heads[i], &slots[*filled], &s->sent_by[*filled]);
        c->credit -= (int32_t)frames[i].len;
    }
    if (taken > 0)
        c->io->ops->rx_release(c->io, taken);
    return taken;
}

/* One channel's turn, or the rest of a turn for which the port had too few slots. Adds the slots
 * filled to *filled, at most n. Takes at most *left frames, and counts them down. Returns whether
 * it had a frame, or has used up this turn by earlier frames. */
static bool visit(struct nic_switch *s, struct switch_channel *c, struct io_slot *slots,
                  unsigned *filled, unsigned n, unsigned *left)
{
    const bool alone = s->nactive == 1;
    unsigned all = 0, taken = 1;
    if (c->turn == 0) {
        c->turn = c->weight * SWITCH_QUANTUM;
        c->credit =
            (int32_t)(c->weight * SWITCH_OCTETS) + (c->credit < 0 && !alone ? c->credit : 0);
    }
    while (taken > 0 && c->turn > 0 && (c->credit > 0 || alone)) {
        unsigned room = n - *filled < *left ? n - *filled : *left;
        if (room == 0)
            break;
        taken = take_some(s, c, slots, filled, room < c->turn ? room : c->turn);
        *left -= taken;
        c->turn -= taken;
        all += taken;
    }
    const bool spent = c->credit <= 0 && !alone;
    if (taken == 0 || alone)
        c->credit = 0; /* unused credit is lost, and a program alone gets into no debt */
    if (taken == 0 || spent || alone)
        c->turn = 0;
    if (all > 0 || !spent)
        switch_visited(s, c, all, s->now);
    return all > 0 || spent;
}

unsigned switch_tx(struct nic_switch *s, struct io_slot *slots, unsigned n, uint64_t now)
{
    unsigned filled = 0, empty = 0, left = TX_TAKEN;
    s->now = now;
    for (unsigned turns = TX_TURNS * s->nactive;
         turns > 0 && left > 0 && s->active && filled < n && empty < s->nactive; turns--) {
        struct switch_channel *c = s->active;
        const bool had = visit(s, c, slots, &filled, n, &left);
        empty = had ? 0 : empty + (c->next != NULL); /* one that sleeps now doesn't count */
        if (c == s->active && c->turn == 0)
            s->active = c->next;
    }
    return filled;
}
