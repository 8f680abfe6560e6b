/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The bump in the wire: passes bursts of frames from one port to the other.
 */
#include "bump.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli.h"

#define MS 1000000ull

#define SERVICE_NS (1 * MS)  /* between two looks at the links */
#define SLEEP_MAX  (50 * MS) /* time between two calls of the ports' service */
#define HEADERS    18u       /* Ethernet and a VLAN tag */

/* ---- opening ---- */

static void look_at_links(struct bump *b, uint64_t now)
{
    struct io_link link;
    if (now < b->service_at)
        return;
    b->service_at = now + SERVICE_NS;
    for (unsigned d = 0; d < BUMP_DIRS; d++) {
        struct io_port *out = b->half[d].out;
        if (out->ops->service)
            out->ops->service(out, now);
        out->ops->link(out, &link);
        b->half[d].out_up = link.up;
    }
}

static uint32_t longest(const struct bump *b)
{
    uint32_t a = b->port[0]->caps.frame_max, c = b->port[1]->caps.frame_max;
    return a > c ? a : c;
}

int bump_open(struct bump *b, const char *port_a, const char *port_b, uint32_t mtu, uint32_t queue,
              char *err, size_t err_size)
{
    const char *spec[BUMP_DIRS] = {port_a, port_b};
    const struct io_open_params params = {.frame_max = mtu ? mtu + HEADERS : 0,
                                          .promiscuous = true};
    int rc = 0;
    *b = (struct bump){0};
    pace_init(&b->pace, PACE_CALL_NS, 0);
    for (unsigned i = 0; i < BUMP_DIRS && rc == 0; i++) {
        rc = io_open(spec[i], &params, &b->port[i], err, err_size);
        if (rc == 0 && b->port[i]->caps.kernel_ip) {
            snprintf(err, err_size,
                     "%s sends and receives by the kernel's sockets, for its own addresses only: "
                     "frames of others can't be forwarded through it",
                     spec[i]);
            rc = -EINVAL;
        }
    }
    for (unsigned d = 0; d < BUMP_DIRS && rc == 0; d++) {
        struct bump_half *h = &b->half[d];
        h->in = b->port[d];
        h->out = b->port[!d];
        if (mtu && h->in->caps.frame_max < mtu + HEADERS - 4) {
            snprintf(err, err_size, "port '%s' has no room for an MTU of %u: %u octets at most",
                     spec[d], mtu, h->in->caps.frame_max - (HEADERS - 4));
            rc = -EMSGSIZE;
        }
        if (rc == 0 && h->in->caps.own_echo) {
            snprintf(err, err_size,
                     "port '%s' hands back the frames sent through it: this kernel can't leave "
                     "outgoing frames out of a packet socket (Linux 4.20 can)",
                     spec[d]);
            rc = -EOPNOTSUPP;
        }
        if (rc == 0) {
            rc = bump_queue_init(&h->queue, queue, longest(b));
            if (rc)
                snprintf(err, err_size, "no memory for a queue of %u frames", queue);
        }
    }
    if (rc)
        bump_close(b);
    return rc;
}

void bump_close(struct bump *b)
{
    for (unsigned i = 0; i < BUMP_DIRS; i++) {
        bump_queue_free(&b->half[i].queue);
        if (b->port[i])
            b->port[i]->ops->close(b->port[i]);
        b->port[i] = NULL;
    }
}

/* ---- one direction ---- */

static const struct fault_out at_once; /* a kept frame without delay waits for the next free slot */

/* Send frames that the judge has made. Those for this direction precede the frame itself. */
static void inject(struct bump *b, const struct fault_out *out, uint64_t now)
{
    for (uint32_t i = 0; i < out->ninject; i++)
        bump_inject(b, out->inject[i].dir, out->inject[i].data, out->inject[i].len, now);
}

static bool overtaken(enum fault_dir dir, const struct fault_out *out)
{
    for (uint32_t i = 0; i < out->ninject; i++)
        if (out->inject[i].dir == dir)
            return true;
    return false;
}

static void copy(struct bump_half *h, enum fault_dir dir, const uint8_t *frame,
                 const struct fault_out *out, bool held, uint64_t now)
{
    for (uint32_t i = 0; i < out->copies; i++) {
        h->count.copied++;
        h->count.no_room +=
            !bump_queue_put(&h->queue, dir, frame, out->len, held ? out : &at_once, now);
    }
}

/* Carry out the judge's decision on the frame in `slot`. A slot with len 0 is not sent. */
static void execute(struct bump *b, enum fault_dir dir, struct io_slot *slot, unsigned bits,
                    const struct fault_out *out, uint64_t now)
{
    struct bump_half *h = &b->half[dir];
    const struct fault_out *wait = bits & FAULT_HOLD ? out : NULL;
    slot->len = 0;
    if (bits & FAULT_INJECT) {
        inject(b, out, now);
        if (!wait && overtaken(dir, out))
            wait = &at_once;
    }
    if (bits & FAULT_DROP) {
        h->count.dropped++;
        return;
    }
    h->count.changed += (bits & FAULT_CHANGED) != 0;
    if (out->len > h->out->caps.frame_max) {
        h->count.oversize++;
        return;
    }
    bool kept = wait && bump_queue_put(&h->queue, dir, slot->data, out->len, wait, now);
    h->count.no_room += wait && !kept;
    h->count.held += kept && wait == out;
    if (bits & FAULT_COPY)
        copy(h, dir, slot->data, out, (bits & FAULT_HOLD) != 0, now);
    if (kept)
        return;
    slot->len = out->len;
    if (bump_queue_len(&h->queue))
        fault_hold_passed(h->queue.hold, dir, out->flow, now);
}

static bool anything_due(const struct bump_half *h, uint64_t now)
{
    return bump_queue_len(&h->queue) && fault_hold_deadline(h->queue.hold) <= now;
}

/* Copy the next `n` lent frames into the slots. A too long frame leaves its slot empty. */
static void fill(struct bump_half *h, struct io_slot *slot, unsigned n)
{
    const uint32_t most = h->out->caps.frame_max;
    for (unsigned i = 0; i < n; i++) {
        const struct io_frame *f = &h->frame[h->at + i];
        slot[i].len = f->len <= most ? f->len : 0;
        memcpy(slot[i].data, f->data, slot[i].len);
    }
}

/* Judge the frames in the slots. If one of them makes kept frames due, these follow it directly, so
 * the later slots wait for the next burst. Returns the number of frames judged. */
static unsigned judge(struct bump *b, enum fault_dir dir, struct io_slot *slot, unsigned n,
                      uint64_t now)
{
    struct bump_half *h = &b->half[dir];
    struct fault_out out;
    for (unsigned i = 0; i < n; i++) {
        if (slot[i].len == 0)
            continue;
        unsigned bits = b->judge(b->arg, dir, slot[i].data, slot[i].len, now, &out);
        if (bits == 0 && bump_queue_len(&h->queue) == 0)
            continue;
        execute(b, dir, &slot[i], bits, &out, now);
        if (!anything_due(h, now))
            continue;
        for (unsigned k = i + 1; k < n; k++)
            slot[k].len = 0;
        return i + 1;
    }
    return n;
}

/* Send kept frames that are due. Returns their number. */
static unsigned send_due(struct bump_half *h, struct io_slot *slot, unsigned room, uint64_t now)
{
    struct bump_kept *k;
    unsigned n = 0;
    while (n < room && bump_queue_len(&h->queue) && (k = bump_queue_take(&h->queue, now))) {
        memcpy(slot[n].data, k->data, k->len);
        slot[n++].len = k->len;
        bump_queue_give(&h->queue, k);
    }
    return n;
}

/* The other port is down: give back lent frames, forget frames that are due. */
static unsigned discard(struct bump_half *h, uint64_t now)
{
    unsigned n = h->have - h->at, due = 0;
    struct bump_kept *k;
    for (; h->at < h->have; h->at++) {
        h->count.received++;
        h->count.octets += h->frame[h->at].len;
    }
    for (; (k = bump_queue_take(&h->queue, now)) != NULL; due++)
        bump_queue_give(&h->queue, k);
    h->count.no_link += n + due;
    if (n)
        h->in->ops->rx_release(h->in, n);
    return n + due;
}

/* Give back `n` lent frames that are done. */
static void take(struct bump_half *h, unsigned n)
{
    const uint32_t most = h->out->caps.frame_max;
    if (n == 0)
        return;
    for (unsigned i = 0; i < n; i++) {
        uint32_t len = h->frame[h->at + i].len;
        h->count.octets += len;
        h->count.oversize += len > most;
    }
    h->count.received += n;
    h->at += n;
    h->in->ops->rx_release(h->in, n);
}

static void peek(struct bump_half *h, uint64_t now)
{
    h->since = h->peeked;
    h->peeked = now;
    h->at = 0;
    h->have = h->in->ops->rx_peek(h->in, h->frame, IO_BURST_MAX, now);
}

static unsigned move(struct bump *b, enum fault_dir dir, uint64_t now)
{
    struct bump_half *h = &b->half[dir];
    struct io_slot slot[IO_BURST_MAX];
    if (h->at == h->have)
        peek(h, now);
    unsigned want = h->have - h->at;
    if (anything_due(h, now))
        want += bump_queue_len(&h->queue); /* there may be that many */
    want = want < IO_BURST_MAX ? want : IO_BURST_MAX;
    if (want == 0)
        return 0;
    if (!h->out_up)
        return discard(h, now);

    /* First all copies, so that their cache misses overlap; then the judge. */
    unsigned room = h->out->ops->tx_reserve(h->out, slot, want, now);
    unsigned due = send_due(h, slot, room, now), n = h->have - h->at;
    n = n < room - due ? n : room - due;
    fill(h, slot + due, n);
    if (b->judge)
        n = judge(b, dir, slot + due, n, now);
    for (unsigned i = 0; i < room; i++) {
        h->count.forwarded += slot[i].len != 0;
        h->count.out_octets += slot[i].len;
    }
    if (room)
        h->out->ops->tx_commit(h->out, slot, room, now);
    take(h, n);
    return n + due;
}

/* ---- both ---- */

unsigned bump_round(struct bump *b, uint64_t now)
{
    b->round_at = now;
    look_at_links(b, now);
    unsigned n = move(b, FAULT_AB, now) + move(b, FAULT_BA, now);
    if (n)
        (void)pace_next(&b->pace, &(struct pace_seen){.work = true}, now);
    return n;
}

bool bump_inject(struct bump *b, enum fault_dir dir, const uint8_t *frame, uint32_t len,
                 uint64_t due)
{
    struct bump_half *h = &b->half[dir];
    const struct fault_out out = {.delay = due > b->round_at ? due - b->round_at : 0};
    bool ok = len <= h->out->caps.frame_max &&
              bump_queue_put(&h->queue, dir, frame, len, &out, b->round_at);
    h->count.injected++;
    h->count.no_room += !ok;
    return ok;
}

/* ---- waiting ---- */

static bool can_block(const struct bump *b)
{
    for (unsigned i = 0; i < BUMP_DIRS; i++)
        if (b->port[i]->caps.rx_fd < 0)
            return false;
    return true;
}

static void arm(struct bump *b, bool on)
{
    for (unsigned i = 0; i < BUMP_DIRS; i++)
        if (b->port[i]->ops->rx_arm)
            b->port[i]->ops->rx_arm(b->port[i], on);
}

/* Frames that came between the last round and the arming of the ports. */
static bool anything(struct bump *b, uint64_t now)
{
    bool some = false;
    for (unsigned d = 0; d < BUMP_DIRS; d++) {
        struct bump_half *h = &b->half[d];
        if (h->at == h->have)
            peek(h, now);
        some |= h->have > h->at;
    }
    return some;
}

static uint64_t next_event(const struct bump *b, uint64_t until)
{
    uint64_t at = until;
    for (unsigned d = 0; d < BUMP_DIRS; d++) {
        struct io_port *port = b->port[d];
        uint64_t kept = fault_hold_deadline(b->half[d].queue.hold);
        uint64_t own = port->ops->deadline ? port->ops->deadline(port) : UINT64_MAX;
        at = kept < at ? kept : at;
        at = own < at ? own : at;
    }
    return at;
}

static struct timespec duration(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / 1000000000u),
                             .tv_nsec = (long)(ns % 1000000000u)};
}

void bump_wait(struct bump *b, uint64_t now, uint64_t until)
{
    struct pollfd fd[BUMP_DIRS];
    uint64_t at = next_event(b, until);
    const struct pace_seen seen = {
        .pending = b->half[0].have > b->half[0].at || b->half[1].have > b->half[1].at,
        .deaf = !can_block(b),
        .due = at < now + SLEEP_MAX ? at : now + SLEEP_MAX,
    };
    struct pace_step step = pace_next(&b->pace, &seen, now);
    if (step.how == PACE_YIELD) { /* an answer, or room, is often on its way */
        sched_yield();
        pace_yielded(&b->pace, now, cli_now());
    }
    if (step.how != PACE_BLOCK)
        return;
    struct timespec ts = duration(step.until - now);
    if (seen.pending || seen.deaf) {
        nanosleep(&ts, NULL);
        return;
    }
    arm(b, true);
    if (!anything(b, now)) {
        for (unsigned i = 0; i < BUMP_DIRS; i++)
            fd[i] = (struct pollfd){.fd = b->port[i]->caps.rx_fd, .events = POLLIN};
        (void)ppoll(fd, BUMP_DIRS, &ts, NULL);
    }
    arm(b, false);
}
