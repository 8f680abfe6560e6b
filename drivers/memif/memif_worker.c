/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See memif_worker.h.
 */
#include "memif_worker.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "wire.h"

#define STRANDS   (MEMIF_PAIRS / 2) /* most pairs of a worker */
#define LOANS     256u              /* runs of lent frames */
#define QPN_FIRST 23u /* bit of a queue pair's number; the bits that name the worker follow */

/* A pair of rings. Its port has no socket: this file decides its worker and its end. */
struct strand {
    struct memif_port port;
    struct strand *next; /* next ended strand */
    unsigned lent;       /* frames lent */
};

/* Frames of one strand that were lent in a row. */
struct loan {
    struct strand *from;
    unsigned n;
};

/* State shared by the workers of a port. */
struct share {
    unsigned n;
    struct memif_worker *worker[MEMIF_WORKERS];
    pthread_mutex_t lock; /* guards the next three members */
    struct strand *offer[MEMIF_WORKERS][STRANDS];
    unsigned noffer[MEMIF_WORKERS];
    unsigned peer_bits;       /* bits of a queue pair's number that name the peer's worker */
    _Atomic uint32_t version; /* version of the connection: counts its ends and starts */
    _Atomic uint64_t fault;   /* version << 32 | enum memif_reason */
};

struct memif_worker {
    struct memif_port *port; /* the owner's port: queue 0's, or one with only this queue */
    struct share *all;
    unsigned k;
    uint32_t version; /* version of the connection of these strands */
    struct strand *strand[STRANDS];
    unsigned n, bits;
    struct strand *ended; /* ended strands with frames or slots still lent or reserved */
    struct loan loan[LOANS];
    unsigned first, last; /* loans: a ring */
    unsigned turn;        /* first strand to receive from */
    struct strand *reserved;
    unsigned hot; /* strand of the last frames, which the next ones likely use, too */
    int news;     /* eventfd: the connection has changed; -1 on queue 0 */
    bool armed;
};

static struct memif_port *port_of(struct io_port *io)
{
    return (struct memif_port *)io;
}

static struct memif_worker *worker_of(struct io_port *io)
{
    return port_of(io)->worker;
}

/* ---- strands ---- */

static void strand_free(struct strand *s)
{
    memif_conn_free(&s->port.conn);
    memif_kick_close(&s->port.kick);
    free(s->port.rx_side);
    free(s->port.tx_side);
    free(s->port.lent);
    free(s);
}

static struct strand *strand_new(struct memif_port *p, unsigned pair)
{
    struct strand *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->port.io.caps.frame_max = p->io.caps.frame_max;
    s->port.side_stride = p->side_stride;
    s->port.listener = s->port.epoll = -1;
    s->port.kick = MEMIF_KICK_INIT;
    memif_conn_init(&s->port.conn);
    int rc = memif_conn_strand(&p->conn, pair, &s->port.conn);
    if (rc == 0)
        s->port.lent = calloc(s->port.conn.rx.size, sizeof(*s->port.lent));
    if (!s->port.lent) {
        strand_free(s);
        return NULL;
    }
    s->port.up = true;
    return s;
}

static void stats_add(struct io_stats *to, const struct io_stats *s)
{
    to->rx_frames += s->rx_frames;
    to->rx_bytes += s->rx_bytes;
    to->tx_frames += s->tx_frames;
    to->tx_bytes += s->tx_bytes;
    to->rx_drop += s->rx_drop;
    to->rx_oversize += s->rx_oversize;
    to->tx_drop += s->tx_drop;
}

static void counters_add(struct memif_counters *to, const struct memif_counters *c)
{
    to->chained_rx += c->chained_rx;
    to->chained_tx += c->chained_tx;
    to->copied_rx += c->copied_rx;
    to->copied_tx += c->copied_tx;
    to->kicks += c->kicks;
}

/* Free ended strands whose frames have come back. */
static void worker_tidy(struct memif_worker *w)
{
    struct strand **link = &w->ended;
    while (*link) {
        struct strand *s = *link;
        if (s->lent > 0 || w->reserved == s) {
            link = &s->next;
            continue;
        }
        *link = s->next;
        stats_add(&w->port->stats, &s->port.stats);
        counters_add(&w->port->counters, &s->port.counters);
        strand_free(s);
    }
}

static void worker_end_all(struct memif_worker *w)
{
    for (unsigned i = 0; i < w->n; i++) {
        struct strand *s = w->strand[i];
        memif_port_unwatch(w->port, s->port.conn.rx.event);
        if (s->port.up)
            memif_rx_abandon(&s->port);
        s->port.up = false;
        s->next = w->ended;
        w->ended = s;
    }
    w->n = 0;
    worker_tidy(w);
}

static void worker_begin(struct memif_worker *w, struct strand *const *strands, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        w->strand[i] = strands[i];
        memif_port_watch(w->port, strands[i]->port.conn.rx.event);
        if (w->armed)
            memif_rx_arm(&strands[i]->port.io, true);
    }
    w->n = n;
    w->hot = w->turn = 0;
}

/* A queue other than 0 has link while it has strands. */
static void worker_link(struct memif_worker *w)
{
    struct io_link *link = &w->port->link;
    if (w->k == 0)
        return;
    link->changes += (link->up ? 1 : 0) + (w->n > 0 ? 1 : 0);
    link->up = w->n > 0;
    link->why = link->up ? NULL : "the peer has no ring for this worker";
}

/* Take over the strands of a changed connection. */
static void worker_follow(struct memif_worker *w)
{
    struct share *all = w->all;
    struct strand *strands[STRANDS];
    if (atomic_load_explicit(&all->version, memory_order_acquire) == w->version)
        return;
    pthread_mutex_lock(&all->lock);
    const unsigned n = all->noffer[w->k];
    memcpy(strands, all->offer[w->k], n * sizeof(strands[0]));
    all->noffer[w->k] = 0;
    w->bits = all->peer_bits;
    w->version = atomic_load_explicit(&all->version, memory_order_relaxed);
    pthread_mutex_unlock(&all->lock);
    worker_end_all(w);
    worker_begin(w, strands, n);
    worker_link(w);
}

/* A fault of the peer that the data path has found ends the connection: tell queue 0. */
static void worker_complain(struct memif_worker *w)
{
    for (unsigned i = 0; i < w->n; i++) {
        const enum memif_reason fault = w->strand[i]->port.fault;
        if (fault)
            atomic_store(&w->all->fault, (uint64_t)w->version << 32 | fault);
    }
}

/* ---- queue 0 ---- */

static void offers_drop(struct share *all)
{
    for (unsigned k = 0; k < all->n; k++) {
        for (unsigned i = 0; i < all->noffer[k]; i++)
            strand_free(all->offer[k][i]);
        all->noffer[k] = 0;
    }
}

/* Tell all workers to look; this one does so at once. */
static void all_follow(struct share *all)
{
    const uint64_t one = 1;
    atomic_fetch_add_explicit(&all->version, 1, memory_order_release);
    for (unsigned k = 1; k < all->n; k++) {
        if (all->worker[k])
            (void)!write(all->worker[k]->news, &one, sizeof(one));
    }
}

/* The worker of a pair. A worker's pairs are in the order of the peer's workers. */
static unsigned pair_owner(const struct share *all, const struct memif_port *p, unsigned pair)
{
    const bool divided = !p->cfg.server && p->conn.peer_workers > 1;
    return divided ? pair / p->conn.peer_workers : pair % all->n;
}

int memif_worker_up(struct memif_port *p)
{
    struct share *all = p->worker->all;
    int rc = 0;
    pthread_mutex_lock(&all->lock);
    offers_drop(all);
    all->peer_bits = 0;
    while (1u << all->peer_bits < p->conn.peer_workers)
        all->peer_bits++;
    for (unsigned i = 0; i < p->conn.pairs && rc == 0; i++) {
        const unsigned k = pair_owner(all, p, i);
        struct strand *s = strand_new(p, i);
        if (s)
            all->offer[k][all->noffer[k]++] = s;
        else
            rc = -ENOMEM;
    }
    if (rc < 0)
        offers_drop(all);
    else
        all_follow(all);
    pthread_mutex_unlock(&all->lock);
    worker_follow(p->worker);
    return rc;
}

void memif_worker_down(struct memif_port *p)
{
    struct share *all = p->worker->all;
    pthread_mutex_lock(&all->lock);
    offers_drop(all);
    all_follow(all);
    pthread_mutex_unlock(&all->lock);
    worker_follow(p->worker);
}

enum memif_reason memif_worker_fault(const struct memif_port *p)
{
    struct memif_worker *w = p->worker;
    worker_complain(w);
    const uint64_t fault = atomic_load(&w->all->fault);
    return fault >> 32 == w->version ? (enum memif_reason)(uint32_t)fault : MEMIF_OK;
}

/* ---- receiving ---- */

static void worker_lend(struct memif_worker *w, struct strand *s, unsigned n)
{
    struct loan *newest = &w->loan[(w->last - 1) % LOANS];
    s->lent += n;
    if (w->last != w->first && newest->from == s)
        newest->n += n;
    else
        w->loan[w->last++ % LOANS] = (struct loan){s, n};
}

/* Strands take turns to be first. */
static unsigned worker_look(struct memif_worker *w, struct io_frame *frames, unsigned max)
{
    unsigned n = 0;
    for (unsigned i = 0; i < w->n && n < max && w->last - w->first < LOANS; i++) {
        struct strand *s = w->strand[(w->turn + i) % w->n];
        unsigned m = s->port.up ? memif_rx_ring(&s->port, frames + n, max - n) : 0;
        if (m > 0)
            worker_lend(w, s, m);
        n += m;
    }
    w->turn++;
    return n;
}

static void worker_control(struct memif_worker *w, uint64_t now)
{
    worker_complain(w);
    if (w->k == 0)
        memif_port_control(w->port, now);
    else
        worker_follow(w);
}

static unsigned worker_rx_peek(struct io_port *io, struct io_frame *frames, unsigned max,
                               uint64_t now)
{
    struct memif_worker *w = worker_of(io);
    unsigned n = worker_look(w, frames, max);
    if (n > 0 || !w->armed ||
        poll(&(struct pollfd){.fd = io->caps.rx_fd, .events = POLLIN}, 1, 0) == 0)
        return n;
    /* rx_fd is readable, but no frame is there: clear its events, and look once more. */
    for (unsigned i = 0; i < w->n; i++)
        memif_rx_drain(w->strand[i]->port.conn.rx.event);
    memif_rx_drain(w->news);
    worker_control(w, now);
    return worker_look(w, frames, max);
}

static void worker_rx_release(struct io_port *io, unsigned n)
{
    struct memif_worker *w = worker_of(io);
    while (n > 0 && w->first != w->last) {
        struct loan *l = &w->loan[w->first % LOANS];
        const unsigned m = n < l->n ? n : l->n;
        memif_rx_release(&l->from->port.io, m);
        l->from->lent -= m;
        l->n -= m;
        n -= m;
        if (l->n == 0)
            w->first++;
    }
    if (__builtin_expect(w->ended != NULL, 0))
        worker_tidy(w);
}

static void worker_rx_arm(struct io_port *io, bool on)
{
    struct memif_worker *w = worker_of(io);
    w->armed = on;
    for (unsigned i = 0; i < w->n; i++)
        memif_rx_arm(&w->strand[i]->port.io, on);
}

/* ---- sending ---- */

/* The peer's worker for a frame: the bits after the first of the queue pair's number name it. A
 * frame without such a number is for worker 0. */
static unsigned frame_worker(const uint8_t *f, uint32_t len, unsigned bits)
{
    uint32_t ip = WIRE_ETH_LEN, udp = 0;
    if (len < WIRE_ETH_LEN + WIRE_VLAN_LEN + 20 || (f[0] & 1))
        return 0;
    if (f[12] == 0x81 && f[13] == 0x00)
        ip += WIRE_VLAN_LEN;
    if (f[ip - 2] == 0x08 && f[ip - 1] == 0x00 && f[ip + 9] == 17)
        udp = ip + (f[ip] & 0xFu) * 4;
    else if (f[ip - 2] == 0x86 && f[ip - 1] == 0xDD && f[ip + 6] == 17)
        udp = ip + 40;
    if (udp == 0 || len < udp + 8 + WIRE_BTH_LEN || (f[udp + 2] << 8 | f[udp + 3]) != WIRE_UDP_PORT)
        return 0;
    const uint8_t *qpn = f + udp + 8 + 5;
    const uint32_t number = (uint32_t)qpn[0] << 16 | (uint32_t)qpn[1] << 8 | qpn[2];
    return number >> QPN_FIRST ? 0 : number >> (QPN_FIRST - bits);
}

static unsigned worker_tx_reserve(struct io_port *io, struct io_slot *slots, unsigned max,
                                  uint64_t now)
{
    struct memif_worker *w = worker_of(io);
    const unsigned want = max;
    w->reserved = NULL;
    if (w->ended)
        worker_tidy(w);
    if (w->n > 0 && w->strand[w->hot]->port.up) {
        /* The frames may be for any of the peer's workers. */
        for (unsigned i = 0; w->bits > 0 && i < w->n && max > 0; i++) {
            if (i != w->hot && w->strand[i]->port.up)
                max = memif_tx_room(&w->strand[i]->port, max);
        }
        w->reserved = w->strand[w->hot];
    }
    unsigned n =
        w->reserved && max > 0 ? memif_tx_reserve(&w->reserved->port.io, slots, max, now) : 0;
    w->port->stats.tx_full += n < want;
    return n;
}

/* Frames were written into the slots of one strand, but belong to the strand `to`: copy them there.
 * Their slots become empty. */
static void worker_move(struct strand *to, struct io_slot *slots, const uint8_t *which, unsigned n,
                        unsigned index, uint64_t now)
{
    struct io_slot there[IO_BURST_MAX];
    unsigned want = 0, at = 0;
    for (unsigned i = 0; i < n; i++)
        want += which[i] == index;
    if (want == 0)
        return;
    const unsigned got = to->port.up ? memif_tx_reserve(&to->port.io, there, want, now) : 0;
    for (unsigned i = 0; i < n; i++) {
        if (which[i] != index)
            continue;
        if (at < got) {
            memcpy(there[at].data, slots[i].data, slots[i].len);
            there[at++].len = slots[i].len;
        } else {
            to->port.stats.tx_drop++;
        }
        slots[i].len = 0;
    }
    if (got > 0)
        memif_tx_commit(&to->port.io, there, got, now);
}

static void worker_tx_commit(struct io_port *io, const struct io_slot *slots, unsigned n,
                             uint64_t now)
{
    struct memif_worker *w = worker_of(io);
    struct strand *s = w->reserved;
    struct io_slot mine[IO_BURST_MAX];
    uint8_t which[IO_BURST_MAX];
    w->reserved = NULL;
    if (!s)
        return;
    if (w->bits == 0 || w->n == 0 || s != w->strand[w->hot]) {
        memif_tx_commit(&s->port.io, slots, n, now);
        return;
    }
    unsigned others = 0, hot = w->hot;
    n = n < IO_BURST_MAX ? n : IO_BURST_MAX;
    for (unsigned i = 0; i < n; i++) {
        mine[i] = slots[i];
        which[i] = (uint8_t)w->hot;
        if (slots[i].len == 0 || slots[i].len > io->caps.frame_max)
            continue;
        which[i] = (uint8_t)frame_worker(slots[i].data, slots[i].len, w->bits);
        others |= which[i] != w->hot ? 1u << which[i] : 0;
        hot = which[i];
    }
    for (unsigned i = 0; others >> i; i++) {
        if (others >> i & 1)
            worker_move(w->strand[i], mine, which, n, i, now);
    }
    memif_tx_commit(&s->port.io, mine, n, now);
    w->hot = hot;
}

/* ---- the rest ---- */

static void worker_service(struct io_port *io, uint64_t now)
{
    worker_control(worker_of(io), now);
}

static void worker_io_link(struct io_port *io, struct io_link *out)
{
    *out = port_of(io)->link;
}

static void worker_stats(struct io_port *io, struct io_stats *out)
{
    const struct memif_worker *w = worker_of(io);
    *out = w->port->stats;
    for (unsigned i = 0; i < w->n; i++)
        stats_add(out, &w->strand[i]->port.stats);
    for (const struct strand *s = w->ended; s; s = s->next)
        stats_add(out, &s->port.stats);
}

void memif_worker_close(struct memif_port *p)
{
    struct memif_worker *w = p->worker;
    struct share *all = w->all;
    pthread_mutex_lock(&all->lock);
    all->worker[w->k] = NULL;
    if (w->k == 0)
        offers_drop(all);
    pthread_mutex_unlock(&all->lock);
    w->first = w->last;
    w->reserved = NULL;
    for (struct strand *s = w->ended; s; s = s->next)
        s->lent = 0;
    for (unsigned i = 0; i < w->n; i++)
        w->strand[i]->lent = 0;
    worker_end_all(w);
    if (w->news >= 0)
        close(w->news);
    if (w->k == 0)
        free(all);
    free(w);
    p->worker = NULL;
}

/* Free a queue. Queue 0 is the whole port; every other queue has only this. */
static void worker_close(struct io_port *io)
{
    struct memif_port *p = port_of(io);
    if (p->worker->k == 0) {
        memif_port_close(p);
        return;
    }
    memif_worker_close(p);
    close(p->epoll);
    free(p);
}

static const struct io_ops worker_ops = {
    .name = "memif",
    .rx_arm = worker_rx_arm,
    .rx_peek = worker_rx_peek,
    .rx_release = worker_rx_release,
    .tx_reserve = worker_tx_reserve,
    .tx_commit = worker_tx_commit,
    .service = worker_service,
    .queue = memif_worker_queue,
    .link = worker_io_link,
    .stats = worker_stats,
    .close = worker_close,
};

static int worker_new(struct memif_port *p, struct share *all, unsigned k)
{
    struct memif_worker *w = calloc(1, sizeof(*w));
    if (!w)
        return -ENOMEM;
    *w = (struct memif_worker){.port = p, .all = all, .k = k, .news = -1};
    all->worker[k] = w;
    p->worker = w;
    p->io.ops = &worker_ops;
    return 0;
}

/* From now on the frames of the port that was opened first use strands. */
static int worker_first(struct memif_port *p, unsigned n)
{
    struct share *all = calloc(1, sizeof(*all));
    int rc = all ? worker_new(p, all, 0) : -ENOMEM;
    if (rc < 0) {
        free(all);
        return rc;
    }
    all->n = n;
    pthread_mutex_init(&all->lock, NULL);
    p->cfg.workers = n;
    return 0;
}

static int worker_next(const struct memif_port *first, unsigned k, struct io_port **out)
{
    struct memif_port *p = calloc(1, sizeof(*p));
    int rc = -ENOMEM;
    if (!p)
        return rc;
    p->io = first->io;
    p->side_stride = first->side_stride;
    p->listener = -1;
    p->link.why = "no peer yet";
    p->epoll = epoll_create1(EPOLL_CLOEXEC);
    p->io.caps.rx_fd = p->epoll;
    if (p->epoll < 0 || worker_new(p, first->worker->all, k) < 0)
        goto failed;
    p->worker->news = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (p->worker->news < 0)
        goto failed;
    memif_port_watch(p, p->worker->news);
    *out = &p->io;
    return 0;
failed:
    rc = errno ? -errno : rc;
    if (p->worker)
        memif_worker_close(p);
    if (p->epoll >= 0)
        close(p->epoll);
    free(p);
    return rc;
}

int memif_worker_queue(struct io_port *io, unsigned k, unsigned n, struct io_port **out)
{
    struct memif_port *p = port_of(io);
    if (n < 2 || n > MEMIF_WORKERS || k == 0 || k >= n)
        return -EINVAL;
    if (!p->worker && p->conn.state != MEMIF_IDLE)
        return -EBUSY;
    int rc = p->worker ? 0 : worker_first(p, n);
    return rc < 0 ? rc : worker_next(p, k, out);
}
