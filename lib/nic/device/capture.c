/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Each worker of the device has a ring of octets with two counters: the worker writes it, the
 * capture's thread reads it. Records are 16-octet aligned. A record that doesn't fit before the
 * ring's end begins at its start.
 *
 * With several workers the reader takes the oldest record of all rings, and only once every worker
 * must have written its records of that time.
 */
#include "capture.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "device.h"
#include "pcapng_file.h"
#include "team.h"

#define CAPTURE_RING (16u << 20) /* power of two */
#define CAPTURE_NAP  (2 * CLOCK_MS)
#define CAPTURE_LAST 1000 /* ms to wait at the end for a reader that reads nothing */
#define CAPTURE_NAME 32u
#define CAPTURE_LATE                                                                               \
    (20 * CLOCK_MS) /* longest assumed round: a frame's time is that of its round */

struct record {
    uint32_t size; /* of the whole record; 0 = the rest of the ring is unused */
    uint32_t len;  /* of the whole frame; the record has as much as the file takes */
    uint64_t now;
    uint16_t drop;
    uint8_t out;
    uint8_t frame[];
};

/* One worker's part. */
struct capture_tap {
    struct capture_tap *next;
    struct capture *capture;
    uint8_t *ring;
    _Alignas(64) _Atomic uint64_t head; /* the worker's */
    uint64_t lost, packets, octets;     /* the worker's; the thread reads them after detaching */
    _Alignas(64) _Atomic uint64_t tail; /* the thread's */
};

struct capture {
    struct device *device;
    struct capture_params params;
    struct capture_tap *tap[TEAM_MAX];
    unsigned ntaps;
    _Atomic bool stop, started, done;
    pthread_t thread;
    /* of the device, which may end before a thread that hangs */
    char name[CAPTURE_NAME];
    char port[IO_SPEC_MAX + 96];
    uint64_t rate;
    struct pcapng *file;
    uint64_t last;      /* time of the last packet written */
    uint64_t unwritten; /* packets that could not be written */
    int status;
};

/* ---- the thread ---- */

/* The oldest record of a ring; NULL = it is empty. */
static const struct record *tap_first(struct capture_tap *t)
{
    uint64_t tail = atomic_load_explicit(&t->tail, memory_order_relaxed);
    while (tail != atomic_load_explicit(&t->head, memory_order_acquire)) {
        const struct record *r =
            (const struct record *)(const void *)(t->ring + tail % CAPTURE_RING);
        if (r->size != 0)
            return r;
        tail += CAPTURE_RING - tail % CAPTURE_RING;
        atomic_store_explicit(&t->tail, tail, memory_order_release);
    }
    return NULL;
}

static void capture_record(struct capture *c, struct capture_tap *t, const struct record *r)
{
    const char *comment = c->params.comments && r->drop ? engine_counter_names[r->drop] : NULL;
    uint64_t tail = atomic_load_explicit(&t->tail, memory_order_relaxed);
    if (r->now > c->last)
        c->last = r->now; /* the worker was off the processor for longer than a round may last */
    pcapng_packet(c->file, 0, c->last, r->out ? CAPTURE_OUT : CAPTURE_IN, r->frame, r->len,
                  comment);
    atomic_store_explicit(&t->tail, tail + r->size, memory_order_release);
}

/* Write all records up to this time. Returns the number of packets. */
static uint64_t capture_drain(struct capture *c, uint64_t until)
{
    for (uint64_t n = 0;; n++) {
        const struct record *oldest = NULL;
        struct capture_tap *its = NULL;
        for (unsigned i = 0; i < c->ntaps; i++) {
            const struct record *r = tap_first(c->tap[i]);
            if (r && (!oldest || r->now < oldest->now)) {
                oldest = r;
                its = c->tap[i];
            }
        }
        if (!oldest || oldest->now > until)
            return n;
        capture_record(c, its, oldest);
    }
}

static int capture_begin(struct capture *c)
{
    const struct pcapng_options opt = {.application = "urnicd",
                                       .limit = c->params.limit,
                                       .snaplen = c->params.snaplen,
                                       .epoch = pcapng_epoch(clock_now())};
    int rc = pcapng_from_fd(c->params.fd, PCAPNG_DROPS, &opt, &c->file);
    if (rc == 0)
        rc = pcapng_interface(c->file, c->name, c->port, c->rate);
    if (rc >= 0)
        rc = pcapng_flush(c->file); /* find out at once that a file takes nothing */
    return rc == -EAGAIN ? 0 : rc;
}

static void capture_write(struct capture *c)
{
    const struct timespec nap = {.tv_nsec = (long)CAPTURE_NAP};
    for (;;) {
        bool stop = atomic_load_explicit(&c->stop, memory_order_acquire);
        uint64_t until = stop || c->ntaps == 1 ? UINT64_MAX : clock_now() - CAPTURE_LATE;
        if (capture_drain(c, until) > 0)
            continue;
        if (stop)
            return;
        pcapng_flush(c->file);
        nanosleep(&nap, NULL);
    }
}

/* Wait until a slow reader of a pipe has read enough that the octets of closing fit, too. */
static void capture_last(struct capture *c)
{
    struct pollfd p = {.fd = c->params.fd, .events = POLLOUT};
    int rc;
    do {
        rc = pcapng_flush(c->file);
    } while (poll(&p, 1, CAPTURE_LAST) > 0 && rc == -EAGAIN);
}

/* Set the flag, then the news. The capture may be freed once its last flag is set. */
static void capture_say(_Atomic bool *flag, int news)
{
    const uint64_t one = 1;
    atomic_store_explicit(flag, true, memory_order_release);
    (void)!write(news, &one, sizeof(one));
}

/* Any call on a file may block for ever, also fstat and close. */
static void *capture_main(void *arg)
{
    struct capture *c = arg;
    struct pcapng_stats st;
    c->status = capture_begin(c);
    if (c->status == 0) {
        capture_say(&c->started, c->params.news);
        capture_write(c);
        capture_last(c);
        pcapng_stats(c->file, &st);
        c->unwritten = st.drops;
    }
    if (c->file) {
        int rc = pcapng_close(c->file);
        c->status = c->status < 0 ? c->status : rc;
    }
    capture_say(&c->done, c->params.news);
    return NULL;
}

static void capture_free(struct capture *c)
{
    for (unsigned i = 0; i < c->ntaps; i++) {
        free(c->tap[i]->ring);
        free(c->tap[i]);
    }
    free(c);
}

static int capture_taps(struct capture *c, unsigned n)
{
    for (; c->ntaps < n; c->ntaps++) {
        struct capture_tap *t = aligned_alloc(64, (sizeof(*t) + 63) / 64 * 64);
        if (!t)
            return -ENOMEM;
        memset(t, 0, sizeof(*t));
        t->capture = c;
        t->ring = malloc(CAPTURE_RING);
        if (!t->ring) {
            free(t);
            return -ENOMEM;
        }
        c->tap[c->ntaps] = t;
    }
    return 0;
}

int capture_open(struct device *d, const struct capture_params *p, struct capture **out)
{
    struct capture *c = calloc(1, sizeof(*c));
    if (!c)
        return -ENOMEM;
    c->device = d;
    c->params = *p;
    snprintf(c->port, sizeof(c->port), "%s%s", d->conf->port,
             d->io->caps.kernel_ip ? " (MAC addresses are made up, UDP checksums not shown; DF and "
                                     "identification as the iCRC tells)"
                                   : "");
    c->rate = d->io->caps.rate_bps;
    _Static_assert(sizeof(d->name) <= sizeof(c->name), "fits");
    memcpy(c->name, d->name, sizeof(d->name));
    int rc = capture_taps(c, d->team->n);
    if (rc == 0)
        rc = -pthread_create(&c->thread, NULL, capture_main, c);
    if (rc < 0) {
        capture_free(c);
        return rc;
    }
    *out = c;
    return 0;
}

void capture_stop(struct capture *c)
{
    atomic_store_explicit(&c->stop, true, memory_order_release);
}

bool capture_has_started(const struct capture *c)
{
    return atomic_load_explicit(&c->started, memory_order_acquire);
}

bool capture_is_done(const struct capture *c)
{
    return atomic_load_explicit(&c->done, memory_order_acquire);
}

int capture_close(struct capture *c, struct capture_result *out)
{
    pthread_join(c->thread, NULL);
    *out = (struct capture_result){.lost = c->unwritten};
    for (unsigned i = 0; i < c->ntaps; i++) {
        out->packets += c->tap[i]->packets;
        out->octets += c->tap[i]->octets;
        out->lost += c->tap[i]->lost;
    }
    int rc = c->status;
    capture_free(c);
    return rc;
}

struct device *capture_device(const struct capture *c)
{
    return c->device;
}

/* ---- the worker ---- */

void capture_attach(struct capture *c, struct device *member)
{
    struct capture_tap *t = c->tap[member->member];
    t->next = member->captures;
    member->captures = t;
}

void capture_detach(struct capture *c, struct device *member)
{
    const struct capture_tap *t = c->tap[member->member];
    struct capture_tap **p = &member->captures;
    while (*p && *p != t)
        p = &(*p)->next;
    if (*p)
        *p = t->next;
}

static void capture_put(struct capture_tap *c, const uint8_t *frame, uint32_t len, bool sent,
                        uint16_t drop, uint64_t now)
{
    uint32_t keep = c->capture->params.snaplen && c->capture->params.snaplen < len
                        ? c->capture->params.snaplen
                        : len;
    uint32_t size = ((uint32_t)sizeof(struct record) + keep + 15u) & ~15u;
    uint64_t head = atomic_load_explicit(&c->head, memory_order_relaxed);
    uint64_t used = head - atomic_load_explicit(&c->tail, memory_order_acquire);
    uint64_t at = head % CAPTURE_RING, skip = CAPTURE_RING - at < size ? CAPTURE_RING - at : 0;
    if (used + skip + size > CAPTURE_RING) {
        c->lost++;
        return;
    }
    if (skip > 0) {
        *(uint32_t *)(void *)(c->ring + at) = 0;
        head += skip;
        at = 0;
    }
    struct record *r = (struct record *)(void *)(c->ring + at);
    r->size = size;
    r->len = len;
    r->now = now;
    r->drop = drop;
    r->out = sent;
    memcpy(r->frame, frame, keep);
    c->packets++;
    c->octets += len;
    atomic_store_explicit(&c->head, head + size, memory_order_release);
}

static bool capture_wants(const struct capture_tap *c, const uint8_t *frame, uint32_t len)
{
    struct wire_pkt pkt;
    if (c->capture->params.qpn == 0)
        return true;
    return wire_parse(frame, len, WIRE_P_NO_ICRC | WIRE_P_IP_CSUM_OK, &pkt) == WIRE_OK &&
           pkt.dqpn == c->capture->params.qpn;
}

void capture_rx(struct capture_tap *list, const struct engine_frame *frames, unsigned n,
                uint64_t now)
{
    for (struct capture_tap *c = list; c; c = c->next) {
        for (unsigned i = 0; i < n; i++) {
            if (capture_wants(c, frames[i].data, frames[i].len))
                capture_put(c, frames[i].data, frames[i].len, false, frames[i].drop, now);
        }
    }
}

void capture_tx(struct capture_tap *list, const struct engine_slot *slots, unsigned n, uint64_t now)
{
    for (struct capture_tap *c = list; c; c = c->next) {
        for (unsigned i = 0; i < n; i++) {
            if (slots[i].len > 0 &&
                (c->capture->params.qpn == 0 || slots[i].qpn == c->capture->params.qpn))
                capture_put(c, slots[i].buf, slots[i].len, true, 0, now);
        }
    }
}
