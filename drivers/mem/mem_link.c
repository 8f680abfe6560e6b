/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The path between the ports of an emulated link: rules and dice, the switch, the limit of a queue,
 * marking (CC-02) and serialization, delay and reordering, and the record of lost frames.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mem_internal.h"
#include "wire.h"

#define OCTET_NS 8000000000ull /* time of an octet at 1 bit/s */

static const char *const reason_names[MEM_LINK_REASONS] = {
    [MEM_LINK_R_LOSS] = "loss",         [MEM_LINK_R_RULE] = "rule",
    [MEM_LINK_R_QUEUE] = "queue",       [MEM_LINK_R_DOWN] = "down",
    [MEM_LINK_R_OVERSIZE] = "oversize", [MEM_LINK_R_NOBUF] = "nobuf",
    [MEM_LINK_R_CORRUPT] = "corrupt",
};

const char *mem_link_reason_name(enum mem_link_reason reason)
{
    return (unsigned)reason < MEM_LINK_REASONS ? reason_names[reason] : "?";
}

/* ---- small things ---- */

static void log_loss(struct mem_link *link, unsigned dir, enum mem_link_reason reason,
                     const struct mem_buf *buf, uint64_t now)
{
    link->sockets[dir]->stats.lost[reason]++;
    if (!link->cfg.log)
        return;
    if (!link->drops) {
        link->drops = calloc(link->cfg.log, sizeof(*link->drops));
        if (!link->drops)
            return;
    }
    struct mem_link_drop *d = &link->drops[link->drop_n++ % link->cfg.log];
    uint32_t head = buf->len < MEM_LINK_HEAD ? buf->len : MEM_LINK_HEAD;
    d->time = now;
    d->dir = dir;
    d->len = buf->len;
    d->reason = reason;
    memcpy(d->head, buf->data, head);
    memset(d->head + head, 0, MEM_LINK_HEAD - head);
}

static void mem_socket_signal(struct mem_socket *s)
{
    if (!s->armed)
        return;
    s->armed = false;
    uint64_t one = 1;
    ssize_t n = write(s->fd, &one, sizeof(one)); /* can't fail: it was 0 when armed */
    (void)n;
}

void mem_buf_free(struct mem_link *link, struct mem_buf *buf)
{
    struct mem_socket *s = link->sockets[buf->owner];
    s->pool[s->pool_n++] = buf;
    if (s->wants_room) {
        s->wants_room = false;
        mem_socket_signal(s);
    }
}

static void lose(struct mem_link *link, unsigned dir, enum mem_link_reason reason,
                 struct mem_buf *buf, uint64_t now)
{
    log_loss(link, dir, reason, buf, now);
    mem_buf_free(link, buf);
}

struct mem_buf *mem_buf_take(struct mem_link *link, unsigned from)
{
    struct mem_socket *s = link->sockets[from];
    if (s->pool_n == 0)
        return NULL;
    struct mem_buf *buf = s->pool[--s->pool_n];
    buf->gap = 0;
    return buf;
}

static struct mem_buf *buf_copy(struct mem_link *link, const struct mem_buf *buf)
{
    struct mem_buf *copy = mem_buf_take(link, buf->owner);
    if (!copy)
        return NULL;
    copy->len = buf->len;
    memcpy(copy->data, buf->data, buf->len);
    return copy;
}

/* The port whose faults apply to the queue from src to dst: the sender's on a wire, the receiver's
 * on a switch. */
static const struct mem_link_faults *queue_faults(const struct mem_link *link, unsigned src,
                                                  unsigned dst)
{
    return &link->sockets[mem_link_is_switch(link) ? dst : src]->faults;
}

uint64_t mem_socket_backlog(const struct mem_socket *dst, uint64_t rate, uint64_t now)
{
    if (!rate || dst->busy_until <= now)
        return 0;
    return (uint64_t)((fault_u128)(dst->busy_until - now) * rate / OCTET_NS);
}

/* ---- one frame, one receiver ---- */

/* Pass a frame through the queue to a port, at its rate. *at becomes the time when the last bit
 * leaves. False: the queue is full. */
static bool queue_pass(struct mem_link *link, unsigned dir, unsigned to, struct mem_buf *buf,
                       uint64_t now, uint64_t *at)
{
    struct mem_socket *src = link->sockets[dir], *dst = link->sockets[to];
    const struct mem_link_faults *f = queue_faults(link, dir, to);
    struct mem_link_stats *qs = &link->sockets[mem_link_is_switch(link) ? to : dir]->stats;
    uint64_t wire = buf->len + MEM_WIRE_OVERHEAD;
    uint64_t q = mem_socket_backlog(dst, f->rate, now) + wire;
    if (f->queue && q > f->queue)
        return false;
    if (q > qs->queue_max)
        qs->queue_max = q;
    /* The frame itself doesn't count as part of the queue. */
    double p = mem_ecn_probability(q - wire, f->ecn_kmin, f->ecn_kmax, f->ecn_pmax);
    if (fault_draw_hit(&src->rng, p) && mem_frame_mark_ce(buf->data, buf->len))
        src->stats.marked++;
    if (dst->busy_until < now) {
        dst->busy_until = now;
        dst->busy_rem = 0;
    }
    uint64_t ticks = wire * OCTET_NS + dst->busy_rem;
    dst->busy_until += ticks / f->rate;
    dst->busy_rem = ticks % f->rate;
    *at = dst->busy_until;
    return true;
}

static void deliver(struct mem_link *link, unsigned dir, unsigned to, struct mem_buf *buf,
                    const struct mem_link_verdict *v, uint64_t now)
{
    struct mem_socket *src = link->sockets[dir], *dst = link->sockets[to];
    const struct mem_link_faults *f = queue_faults(link, dir, to);
    uint64_t at = now;
    if (!atomic_load_explicit(&dst->up, memory_order_relaxed)) {
        lose(link, dir, MEM_LINK_R_DOWN, buf, now);
        return;
    }
    if (buf->len > dst->frame_max) {
        dst->rx_oversize++;
        lose(link, dir, MEM_LINK_R_OVERSIZE, buf, now);
        return;
    }
    if (f->rate && !queue_pass(link, dir, to, buf, now, &at)) {
        lose(link, dir, MEM_LINK_R_QUEUE, buf, now);
        return;
    }
    at += f->delay;
    if (v->delay) {
        at += v->delay;
        src->stats.delayed++;
    }
    buf->gap = 0;
    if ((v->flags & MEM_LINK_REORDER) && dst->held_n < MEM_HELD_MAX) {
        buf->gap = v->reorder_gap ? v->reorder_gap : 1;
        buf->flow = v->flow;
        dst->held[dst->held_n++] = buf;
        src->stats.reordered++;
        uint64_t hold = v->reorder_hold ? v->reorder_hold : src->faults.reorder_hold;
        at += hold ? hold : 1;
    } else if (at == now) {
        at = 0; /* visible to a receiver whose clock reading is a little older, too */
    }
    if (!mem_queue_put(dst, buf, at, now)) {
        if (buf->gap)
            dst->held_n--;
        lose(link, dir, MEM_LINK_R_NOBUF, buf, now);
        return;
    }
    src->stats.delivered++;
    if (dst->held_n && !buf->gap)
        mem_queue_passed(dst, v->flow, at, now);
    mem_queue_tell(dst);
    mem_socket_signal(dst);
}

/* ---- where to ---- */

/* Send to all other ports: copies to all but the last, which gets the frame itself. */
static void flood(struct mem_link *link, unsigned dir, struct mem_buf *buf,
                  const struct mem_link_verdict *v, uint64_t now)
{
    unsigned last = MEM_LINK_ALL, copies = 0;
    for (unsigned i = 0; i < link->top; i++) {
        if (i == dir || !link->sockets[i]->open)
            continue;
        if (last != MEM_LINK_ALL) {
            struct mem_buf *copy = buf_copy(link, buf);
            if (copy)
                deliver(link, dir, last, copy, v, now);
            else
                log_loss(link, dir, MEM_LINK_R_NOBUF, buf, now);
            copies++;
        }
        last = i;
    }
    if (last == MEM_LINK_ALL) {
        lose(link, dir, MEM_LINK_R_DOWN, buf, now);
        return;
    }
    if (copies)
        link->sockets[dir]->stats.flooded++;
    deliver(link, dir, last, buf, v, now);
}

static void forward(struct mem_link *link, unsigned dir, struct mem_buf *buf,
                    const struct mem_link_verdict *v, uint64_t now)
{
    unsigned to = MEM_LINK_ALL;
    if (mem_link_is_switch(link))
        to = mem_mac_find(link, buf->data);
    if (to == MEM_LINK_ALL)
        flood(link, dir, buf, v, now);
    else if (to == dir)
        mem_buf_free(link, buf); /* the receiver is on the sender's own segment */
    else
        deliver(link, dir, to, buf, v, now);
}

void mem_socket_deliver(struct mem_link *link, unsigned from, unsigned to, struct mem_buf *buf,
                        uint64_t now)
{
    const struct mem_link_verdict plain = {0};
    deliver(link, from, to, buf, &plain, now);
}

void mem_socket_forward(struct mem_link *link, unsigned from, struct mem_buf *buf, uint64_t now)
{
    const struct mem_link_verdict plain = {0};
    forward(link, from, buf, &plain, now);
}

/* ---- sending ---- */

/* Throw the dice, in a fixed order. */
static void roll(struct mem_socket *src, struct mem_link_verdict *v, bool *loss, bool *corrupt)
{
    const struct mem_link_faults *f = &src->faults;
    *loss = fault_draw_hit(&src->rng, f->loss);
    *corrupt = fault_draw_hit(&src->rng, f->corrupt);
    if (fault_draw_hit(&src->rng, f->dup))
        v->flags |= MEM_LINK_DUP;
    if (fault_draw_hit(&src->rng, f->reorder)) {
        v->flags |= MEM_LINK_REORDER;
        if (!v->reorder_gap)
            v->reorder_gap = f->reorder_gap;
    }
}

/* The reason why a frame is lost at the port that sends it; MEM_LINK_REASONS = it is not lost. */
static enum mem_link_reason why_lost(const struct mem_socket *src, const struct mem_buf *buf,
                                     const struct mem_link_verdict *v, bool loss)
{
    if (!atomic_load_explicit(&src->up, memory_order_relaxed))
        return MEM_LINK_R_DOWN;
    if (buf->len < WIRE_ETH_LEN)
        return MEM_LINK_R_OVERSIZE;
    if (v->flags & MEM_LINK_DROP)
        return MEM_LINK_R_RULE;
    return loss ? MEM_LINK_R_LOSS : MEM_LINK_REASONS;
}

/* Damage a frame as the dice (`corrupt`) and the rule say. */
static void damage(struct mem_link *link, unsigned dir, struct mem_buf *buf,
                   const struct mem_link_verdict *v, bool corrupt, uint64_t now)
{
    struct mem_socket *src = link->sockets[dir];
    if (corrupt || v->flags & MEM_LINK_CORRUPT)
        log_loss(link, dir, MEM_LINK_R_CORRUPT, buf, now);
    if (corrupt)
        mem_frame_flip(buf->data, buf->len, 1 + (unsigned)fault_draw_below(&src->rng, 3),
                       &src->rng);
    if (v->flags & MEM_LINK_CORRUPT && v->corrupt_off < buf->len)
        buf->data[v->corrupt_off] ^= v->corrupt_xor ? v->corrupt_xor : 1;
}

void mem_socket_send(struct mem_link *link, unsigned dir, struct mem_buf *buf, uint64_t now)
{
    struct mem_socket *src = link->sockets[dir];
    struct mem_link_verdict v = {0};
    bool loss, corrupt;
    if (now > link->last_now)
        link->last_now = now;
    src->stats.frames++;
    src->stats.bytes += buf->len;
    if (link->faults)
        mem_rules_apply(link, dir, buf, now, &v);
    if (link->rule)
        link->rule(link->rule_ctx, buf->data, buf->len, dir, now, &v);
    roll(src, &v, &loss, &corrupt);
    enum mem_link_reason reason = why_lost(src, buf, &v, loss);
    if (reason != MEM_LINK_REASONS) {
        lose(link, dir, reason, buf, now);
        return;
    }
    if (mem_link_is_switch(link))
        mem_mac_learn(link, buf->data + 6, dir);
    if (v.flags & MEM_LINK_MARK_CE && mem_frame_mark_ce(buf->data, buf->len))
        src->stats.marked++;

    if (v.flags & MEM_LINK_DUP)
        v.copies++;
    struct mem_buf *copy = v.copies ? buf_copy(link, buf) : NULL; /* before the damage */
    damage(link, dir, buf, &v, corrupt, now);
    forward(link, dir, buf, &v, now);
    while (copy) {
        struct mem_link_verdict plain = {.delay = v.delay};
        struct mem_buf *next = --v.copies ? buf_copy(link, copy) : NULL;
        src->stats.duplicated++;
        forward(link, dir, copy, &plain, now);
        copy = next;
    }
}

/* The receiver's side of PFC, with hysteresis. */
static bool over_xoff(struct mem_socket *dst, const struct mem_link_faults *f, uint64_t now)
{
    mem_queue_arrive(dst, now);
    uint64_t q = mem_socket_backlog(dst, f->rate, now) + dst->arrived_bytes;
    if (q > f->xoff)
        dst->over_xoff = true;
    else if (q <= f->xon)
        dst->over_xoff = false;
    return dst->over_xoff;
}

/* The time when the queue to dst has drained to `target` octets. */
static uint64_t room_time(const struct mem_socket *dst, const struct mem_link_faults *f,
                          uint64_t target, uint64_t now)
{
    uint64_t q = mem_socket_backlog(dst, f->rate, now);
    if (!f->rate || q <= target)
        return UINT64_MAX;
    return now + 1 + (uint64_t)((fault_u128)(q - target) * OCTET_NS / f->rate);
}

bool mem_socket_may_send(struct mem_link *link, unsigned dir, uint64_t now)
{
    struct mem_socket *src = link->sockets[dir];
    bool pause = false, full = false;
    src->room_at = UINT64_MAX;
    for (unsigned i = 0; i < link->top; i++) {
        struct mem_socket *dst = link->sockets[i];
        if (i == dir || !dst->open)
            continue;
        const struct mem_link_faults *f = queue_faults(link, dir, i);
        uint64_t at = UINT64_MAX;
        if (f->pfc && over_xoff(dst, f, now)) {
            pause = true;
            at = room_time(dst, f, f->xon, now);
        } else if (!mem_link_is_switch(link) && !f->queue &&
                   mem_socket_backlog(dst, f->rate, now) >= MEM_NIC_BACKLOG) {
            full = true;
            at = room_time(dst, f, MEM_NIC_BACKLOG - 1, now);
        }
        if (at < src->room_at)
            src->room_at = at;
    }
    if (pause && !src->paused)
        src->stats.pauses++;
    src->paused = pause;
    return !pause && !full;
}

/* ---- link state ---- */

/* A port that is alone from the start has link, so that its owner can send to itself. The last of
 * several ports has none. */
void mem_links_update(struct mem_link *link)
{
    for (unsigned i = 0; i < link->top; i++) {
        struct mem_socket *s = link->sockets[i];
        bool up = s->open && s->plugged && !link->deserted;
        if (up && !mem_link_is_switch(link)) /* a wire is up when both ends are */
            for (unsigned k = 0; k < link->top; k++)
                up = up && (!link->sockets[k]->open || link->sockets[k]->plugged);
        if (up == atomic_load(&s->up))
            continue;
        atomic_store(&s->up, up);
        atomic_fetch_add(&s->changes, 1);
        mem_socket_signal(s);
    }
}

/* Drop frames of one sender from the queue to `to`: those that haven't arrived, or all that are not
 * lent. */
static void flush_queue(struct mem_link *link, unsigned to, unsigned from, bool all, uint64_t now)
{
    struct mem_socket *s = link->sockets[to];
    uint64_t keep = all || s->arrived < s->lent ? s->lent : s->arrived;
    for (uint64_t i = s->head + keep; i != s->tail;) {
        struct mem_entry e = *mem_queue_at(s, i);
        if ((!all && e.at <= now) || (from != MEM_LINK_ALL && e.buf->owner != from)) {
            i++;
            continue;
        }
        if (e.buf->gap)
            mem_queue_unhold(s, e.buf);
        if (i < s->head + s->arrived) {
            s->arrived--;
            s->arrived_bytes -= e.buf->len;
        }
        mem_queue_remove(s, i);
        lose(link, e.buf->owner, MEM_LINK_R_DOWN, e.buf, link->last_now);
    }
    mem_queue_tell(s);
}

void mem_socket_flush(struct mem_link *link, unsigned index, bool all, uint64_t now)
{
    flush_queue(link, index, MEM_LINK_ALL, all, now);
    link->sockets[index]->busy_until = 0;
    for (unsigned i = 0; i < link->top; i++)
        if (i != index)
            flush_queue(link, i, index, false, now);
}
