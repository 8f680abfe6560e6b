/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Moving frames: the phases of lib/core around a port's bursts. Receiving validates a burst, copies
 * all of it, commits all of it. Sending reserves slots, lets the engine fill them, gathers and
 * seals each frame, then hands the burst over. No lock, no system call (but for the port's own), no
 * allocation.
 */
#include "datapath.h"

#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "clock.h"
#include "device.h"
#include "device_addr.h"
#include "device_port.h"
#include "device_switch.h"
#include "icrc_gone.h"
#include "lane.h"
#include "loop.h"
#include "memory.h"
#include "neigh.h"
#include "steer.h"
#include "switch_ask.h"
#include "switch_channel.h"
#include "switch_spill.h"
#include "team.h"
#include "uplink.h"
#include "worker.h"

#define DATAPATH_COPIES    512u
#define DATAPATH_TX_BURSTS 4u /* per round: other devices get their turn (SHM-08) */
#define DATAPATH_TX_MIN    4u
#define DATAPATH_AHEAD     2u    /* frames between fetching a payload and copying it */
#define DATAPATH_ONE_PASS  256u  /* octets: shorter payloads are copied first and sealed later */
#define DATAPATH_FETCH     1024u /* octets: shorter payloads are not fetched ahead */
#define DATAPATH_PAGES     512u  /* 2 MiB: data copied lately that is assumed to be in a cache */
/* Flags of the device's own frames, which have never left this memory, so that the iCRC may be
 * missing (datapath_seal). */
#define DATAPATH_OWN     (IO_RX_IP_CSUM_OK | IO_RX_ICRC_OK)
#define DATAPATH_FULL_NS (20 * CLOCK_US) /* retry on a full port */
/* A time-out found this late was late because of its worker. All frames in a large ring are then
 * received first, but only once in DATAPATH_CATCH_UP_NS. */
#define DATAPATH_LATE_NS     (1 * CLOCK_MS)
#define DATAPATH_CATCH_UP_NS (50 * CLOCK_MS)

struct datapath {
    bool tx_short; /* the port has granted fewer slots than asked for: it is slow, or nearly full */
    /* frames lent by the port, the loop and other members, until device_take returns them */
    unsigned nport, nown, nmate;
    struct io_frame port[DATAPATH_RX_BURST], own[IO_BURST_MAX], mate[DATAPATH_RX_BURST];
    /* copies of one engine_rx, and the number made */
    unsigned made;
    struct engine_copy copies[DATAPATH_COPIES];
    struct engine_result results[DATAPATH_COPIES];
    /* A burst to send. A slot is large because it has room for many pieces; few are ever used. */
    struct engine_slot slots[IO_BURST_MAX];
    uintptr_t lately[DATAPATH_PAGES]; /* pages of recent copies */
    uint8_t nowhere[IO_FRAME_MAX];    /* buffer for frames sent without a link */
};

struct datapath *datapath_new(void)
{
    return calloc(1, sizeof(struct datapath));
}

void datapath_free(struct datapath *p)
{
    free(p);
}

/* ---- memory that is far away ---- */

/* Record that a copy uses this page. True: it was not recorded lately. */
static bool datapath_note_page(struct datapath *d, const uint8_t *at)
{
    uintptr_t page = (uintptr_t)at >> 12, *seen = &d->lately[page % DATAPATH_PAGES];
    bool first = *seen != page;
    *seen = page;
    return first;
}

/* Memory of a later copy that is worth fetching, and the octets already fetched. */
struct datapath_far {
    const uint8_t *at; /* NULL: not worth fetching */
    uint32_t len, done;
};

static struct datapath_far datapath_far(struct datapath *d, const struct mem_piece *p)
{
    const struct memory *m = p->obj;
    if (p->len < DATAPATH_FETCH)
        return (struct datapath_far){.len = p->len};
    const uint8_t *at = m->base + p->off;
    bool far = datapath_note_page(d, at);

    return (struct datapath_far){.at = far ? at : NULL, .len = p->len};
}

/* Prefetch the octets of a later copy, up to offset `to`, while other copies are made. Copies
 * become two fifths faster if the octets are not in the cache, and a tenth slower if they are. Call
 * it in two parts with work in between: a core tracks a limited number of misses and drops further
 * prefetches. Inlined by force, because GCC removes calls of a function that only prefetches. */
__attribute__((always_inline)) static inline void datapath_fetch(struct datapath_far *f,
                                                                 uint32_t to, bool write)
{
    if (!f->at)
        return;
    for (; f->done < to && f->done < f->len; f->done += 64) {
        if (write)
            __builtin_prefetch(f->at + f->done, 1);
        else
            __builtin_prefetch(f->at + f->done, 0);
    }
}

/* ---- receive ---- */

static int datapath_copy(const struct engine_copy *c, uint64_t *orig)
{
    switch (c->kind) {
    case ENGINE_PUT:
        return memory_put(&c->dst, c->src);
    case ENGINE_CAS:
        return memory_cas(&c->dst, c->b, c->a, orig);
    case ENGINE_FADD:
        return memory_fadd(&c->dst, c->a, orig);
    case ENGINE_STORE:
        return memory_store(&c->dst, c->a);
    default:
        return -EINVAL;
    }
}

static void datapath_made(struct device *d, const struct engine_copy *copy, int status,
                          uint64_t orig)
{
    struct datapath *c = d->path;
    if (status < 0)
        d->stats.copy_fault++;
    c->results[c->made++] = (struct engine_result){copy->token, orig, status};
}

static void datapath_copies(struct device *d, const struct engine_copy *copies, unsigned n)
{
    struct datapath *c = d->path;
    if (c->made == n)
        return;
    worker_touches(d->worker);
    while (c->made < n) {
        uint64_t orig = 0;
        int status = datapath_copy(&copies[c->made], &orig);
        datapath_made(d, &copies[c->made], status, orig);
    }
}

/* A copy is made while the next frame is checked: the stores of the copy and the CRC of the check
 * use different parts of the core and run side by side. The memory for the next copy is fetched
 * meanwhile. */
void device_rx_copies(void *device, const struct engine_copy *copies, unsigned n)
{
    struct device *d = device;
    struct datapath_far next = {0};
    if (copies[n - 1].kind == ENGINE_PUT)
        next = datapath_far(d->path, &copies[n - 1].dst);
    datapath_fetch(&next, DATAPATH_FETCH, true);
    datapath_copies(d, copies, n - 1);
    datapath_fetch(&next, next.len, true);
}

/* Is this our own frame, given back by the port? */
static bool datapath_is_echo(const struct device *d, const struct io_frame *f)
{
    return d->io->caps.own_echo && f->len >= 12 && memcmp(f->data + 6, d->mac, 6) == 0;
}

/* Pass on the port's frames for other workers of the device, and move the rest up. Returns the
 * number left. */
static unsigned datapath_steer(struct device *d, struct io_frame *frames, unsigned n)
{
    unsigned m = 0;
    for (unsigned i = 0; i < n; i++) {
        bool stays = (frames[i].flags & IO_RX_KERNEL) || datapath_is_echo(d, &frames[i]);
        if (stays || !steer_away(d, &frames[i]))
            frames[m++] = frames[i];
    }
    return m;
}

/* Convert lent frames to the engine's form. Of the port's frames two kinds are left out: our own
 * frames that it gives back, and the kernel's. */
static unsigned datapath_frames(struct device *d, const struct io_frame *in, unsigned n, bool port,
                                struct engine_frame *out)
{
    unsigned m = 0;
    for (unsigned i = 0; i < n; i++) {
        if (port && datapath_is_echo(d, &in[i])) {
            d->stats.own_echo++;
            continue;
        }
        if (port && (in[i].flags & IO_RX_KERNEL))
            continue;
        out[m].data = in[i].data;
        out[m].len = in[i].len;
        out[m].flags = (in[i].flags & IO_RX_IP_CSUM_OK ? WIRE_P_IP_CSUM_OK : 0) |
                       (in[i].flags & IO_RX_ICRC_OK ? WIRE_P_NO_ICRC : 0);
        out[m].disposition = ENGINE_TAKEN;
        out[m].drop = 0;
        m++;
    }
    return m;
}

/* Returns whether an application got something: data, or a datagram for QP1. */
static bool datapath_engine(struct device *d, struct engine_frame *frames, unsigned n, uint64_t now)
{
    struct datapath *c = d->path;
    unsigned done = 0;
    bool news = false;
    d->gsi_came = false;
    while (done < n) {
        unsigned ncopies = 0;
        c->made = 0;
        unsigned used = engine_rx(d->engine, frames + done, n - done, now, c->copies,
                                  DATAPATH_COPIES, &ncopies);
        datapath_copies(d, c->copies, ncopies);
        news |= ncopies > 0;
        if (ncopies > 0)
            engine_copied(d->engine, c->results, ncopies, now);
        else if (used == 0)
            break; /* impossible: an empty copy list has room for one frame */
        done += used;
    }
    return news || d->gsi_came;
}

/* Returns whether there were such frames. */
static bool datapath_slow_rx(struct device *d, const struct engine_frame *frames, unsigned n,
                             uint64_t now)
{
    bool any = false;
    for (unsigned i = 0; i < n; i++) {
        if (frames[i].disposition == ENGINE_SLOW_PATH) {
            d->stats.slow_path++;
            any = true;
            if (d->uplink)
                uplink_rx(d, frames[i].data, frames[i].len, now);
            else
                neigh_rx(d->neigh, frames[i].data, frames[i].len, now);
        }
    }
    return any;
}

/* Borrow frames from other workers of the device, and take their other news. Returns the number of
 * news. */
static unsigned datapath_mates_peek(struct device *d, uint64_t now)
{
    struct datapath *p = d->path;
    unsigned n = claim_has_news(&d->team->claims, d->member);
    if (d->member == 0) {
        n += lane_forward(d, now);
        team_regroup(d);
    }
    p->nmate = steer_peek(d, p->mate, DATAPATH_RX_BURST);
    return n;
}

unsigned device_peek(struct device *d, uint64_t now)
{
    struct datapath *p = d->path;
    unsigned n = d->shared ? datapath_mates_peek(d, now) : 0;
    if (d->sw)
        n += device_switch_round(d, now);
    if (d->io->ops->carry)
        n += d->io->ops->carry(d->io, now);
    p->nown = d->loop ? loop_peek(d->loop, p->own, IO_BURST_MAX) : 0;
    p->nport = d->io->ops->rx_peek(d->io, p->port, DATAPATH_RX_BURST, now);
    n += p->nown + p->nport + p->nmate;
    if (d->sw && n == 0)
        device_switch_wake(d, false);
    return n;
}

/* Frames that are not RoCE go to all workers of the device, which learn neighbours from them. */
static void datapath_share(struct device *d, const struct engine_frame *frames, unsigned n)
{
    for (unsigned i = 0; i < n && !d->io->caps.kernel_ip; i++) {
        if (frames[i].disposition == ENGINE_SLOW_PATH)
            steer_copy(d, frames[i].data, frames[i].len);
    }
    steer_wake(d);
}

static bool datapath_port_rx(struct device *d, uint64_t now)
{
    struct datapath *p = d->path;
    struct engine_frame frames[DATAPATH_RX_BURST];
    struct io_frame came[DATAPATH_RX_BURST];
    unsigned all = d->shared ? datapath_steer(d, p->port, p->nport) : p->nport;
    bool both = d->sw && d->captures; /* captures show frames to programs, too */
    if (both)
        memcpy(came, p->port, all * sizeof(came[0]));
    unsigned n = d->sw ? device_switch_rx(d, p->port, all, true) : all;
    unsigned m = datapath_frames(d, p->port, n, true, frames);
    bool news = datapath_engine(d, frames, m, now);
    news |= datapath_slow_rx(d, frames, m, now);
    if (d->shared)
        datapath_share(d, frames, m);
    if (both)
        device_switch_capture(d, came, all, frames, m, now);
    else if (d->captures)
        capture_rx(d->captures, frames, m, now);
    d->io->ops->rx_release(d->io, p->nport);
    return news;
}

/* Receive the frames that this device has sent to itself. Captures have recorded them as sent. */
static bool datapath_loop_rx(struct device *d, uint64_t now)
{
    struct datapath *p = d->path;
    struct engine_frame frames[IO_BURST_MAX];
    for (unsigned i = 0; i < p->nown; i++)
        p->own[i].flags |= DATAPATH_OWN;
    unsigned n = d->sw ? device_switch_rx(d, p->own, p->nown, false) : p->nown;
    datapath_frames(d, p->own, n, false, frames);
    bool news = datapath_engine(d, frames, n, now);
    news |= datapath_slow_rx(d, frames, n, now);
    loop_release(d->loop, p->nown);
    return news;
}

/* Receive the frames from other workers of the device. Captures have already recorded two kinds:
 * frames of the device to itself, and frames that another worker has as well. */
static bool datapath_mates_rx(struct device *d, uint64_t now)
{
    struct datapath *p = d->path;
    struct engine_frame frames[DATAPATH_RX_BURST];
    struct io_frame came[DATAPATH_RX_BURST];
    memcpy(came, p->mate, p->nmate * sizeof(came[0]));
    for (unsigned i = 0; i < p->nmate; i++) {
        const uint32_t own = came[i].flags & STEER_LOOP ? DATAPATH_OWN : 0;
        p->mate[i].flags = (came[i].flags & ~(STEER_LOOP | STEER_COPY)) | own;
    }
    unsigned n = d->sw ? device_switch_rx(d, p->mate, p->nmate, false) : p->nmate;
    datapath_frames(d, p->mate, n, false, frames);
    bool news = datapath_engine(d, frames, n, now);
    news |= datapath_slow_rx(d, frames, n, now);
    if (d->captures)
        device_switch_capture(d, came, p->nmate, frames, n, now);
    steer_release(d);
    p->nmate = 0;
    return news;
}

bool device_take(struct device *d, uint64_t now)
{
    bool news = d->path->nown > 0 && datapath_loop_rx(d, now);
    if (d->path->nmate > 0)
        news |= datapath_mates_rx(d, now);
    if (d->path->nport > 0)
        news |= datapath_port_rx(d, now);
    if (d->sw)
        device_switch_wake(d, d->path->nport > DATAPATH_FEW);
    return news;
}

/* ---- send ---- */

/* Copy the payload in. */
static int datapath_gather(const struct engine_slot *s)
{
    uint8_t *at = s->buf + s->payload_off;
    for (unsigned i = 0; i < s->npieces; i++) {
        int rc = memory_get(at, &s->pieces[i]);
        if (rc < 0)
            return rc;
        at += s->pieces[i].len;
    }
    return 0;
}

/* A frame to this device itself needs no iCRC if no capture has a copy. */
static bool datapath_needs_icrc(const struct device *d, const struct engine_slot *s)
{
    return !d->loop || d->captures || memcmp(s->buf, d->mac, sizeof(d->mac)) != 0;
}

static void datapath_seal(const struct device *d, const struct engine_slot *s)
{
    if (datapath_needs_icrc(d, s))
        wire_icrc_seal(s->buf, s->len, s->ip_off, s->bth_off);
}

/* Copy the payload in and compute the iCRC of the copy, in one pass. False: the payload is too
 * short, or a part of it lies outside its mapping; nothing is done then. */
static bool datapath_gather_sealed(const struct device *d, struct engine_slot *s)
{
    struct crc_piece pieces[ENGINE_TX_PIECES];
    if (s->npieces == 0 || s->payload_len < DATAPATH_ONE_PASS || !datapath_needs_icrc(d, s))
        return false;
    for (unsigned i = 0; i < s->npieces; i++) {
        const uint8_t *at = memory_at(&s->pieces[i]);
        if (!at)
            return false;
        pieces[i] = (struct crc_piece){at, s->pieces[i].len};
    }
    s->status = wire_icrc_gather_gone(s->buf, s->len, s->ip_off, s->bth_off, s->payload_off, pieces,
                                      s->npieces, d->worker->frame);
    atomic_signal_fence(memory_order_seq_cst);
    for (unsigned i = 0; i < s->npieces; i++) {
        if (memory_is_broken(s->pieces[i].obj))
            s->status = -EFAULT;
    }
    return true;
}

/* The sources of a burst. */
enum datapath_turn {
    TURN_FIRST, /* engine_tx_first */
    TURN_ENGINE,
    TURN_ALL, /* the slow path, and the engine */
};

static unsigned datapath_engine_tx(struct device *d, enum datapath_turn turn,
                                   struct engine_slot *es, unsigned n, uint64_t now)
{
    unsigned m =
        turn == TURN_FIRST ? engine_tx_first(d->engine, es, now) : engine_tx(d->engine, es, n, now);
    if (m == 0)
        return 0;
    /* The peer used the slot's memory last, so stores to it take a while to land, and reading them
     * back waits. So a frame that isn't sealed during its copy is sealed one slot later: it is
     * still in L1, and the next slot's stores are under way meanwhile. */
    struct engine_slot *unsealed = NULL;
    for (unsigned i = 0; i < m; i++) {
        struct datapath_far later = {0};
        if (i + DATAPATH_AHEAD < m) {
            const struct engine_slot *s = &es[i + DATAPATH_AHEAD];
            if (s->npieces > 0)
                later = datapath_far(d->path, &s->pieces[0]);
            __builtin_prefetch(s->buf + s->len - WIRE_ICRC_LEN, 1);
        }
        datapath_fetch(&later, later.len / 2, false);
        if (es[i].npieces > 0)
            worker_touches(d->worker);
        bool sealed = datapath_gather_sealed(d, &es[i]);
        if (!sealed)
            es[i].status = datapath_gather(&es[i]);
        if (es[i].status < 0)
            d->stats.copy_fault++;
        datapath_fetch(&later, later.len, false);
        if (unsealed)
            datapath_seal(d, unsealed);
        unsealed = sealed ? NULL : &es[i];
    }
    if (unsealed)
        datapath_seal(d, unsealed);
    engine_sent(d->engine, es, m, now);
    return m;
}

/* Fill slots with frames that the engine doesn't send: news for the daemon, ARP and the like, QP1's
 * datagrams. */
static unsigned datapath_slow_tx(struct device *d, struct engine_slot *es, unsigned n, uint64_t now)
{
    unsigned m = 0;
    while (m < n && d->uplink && uplink_says(d->uplink)) {
        es[m].len = uplink_say(d->uplink, es[m].buf, es[m].cap);
        if (es[m].len == 0)
            break;
        es[m++].qpn = 0;
    }
    while (m < n) {
        es[m].len = neigh_tx(d->neigh, es[m].buf, es[m].cap, now);
        if (es[m].len == 0)
            break;
        es[m].qpn = 0;
        m++;
    }
    while (m < n && d->gsi->ops->tx(d->gsi, &es[m]))
        m++;
    return m;
}

/* Fill slots from the daemon's engine and those of programs, which take turns to be first. */
static unsigned datapath_both_tx(struct device *d, enum datapath_turn turn, struct io_slot *slots,
                                 struct engine_slot *es, unsigned n, uint64_t now)
{
    unsigned m = 0;
    d->sw_last = !d->sw_last;
    if (!d->sw_last && n > 0)
        m += device_switch_tx(d, slots, es, n, now);
    if (m < n)
        m += datapath_engine_tx(d, turn, es + m, n - m, now);
    if (d->sw_last && m < n)
        m += device_switch_tx(d, slots + m, es + m, n - m, now);
    return m;
}

/* EVT-05: without a link, frames of queue pairs are lost, as on any port, so that timers run and
 * retries run out. Frames of neighbour resolution and of connections wait for the link. */
static unsigned datapath_lose(struct device *d, struct engine_slot *es, uint64_t now)
{
    for (unsigned i = 0; i < IO_BURST_MAX; i++) {
        es[i].buf = d->path->nowhere;
        es[i].cap = sizeof(d->path->nowhere);
        es[i].len = 0;
    }
    unsigned m = engine_tx(d->engine, es, IO_BURST_MAX, now);
    for (unsigned i = 0; i < m; i++)
        es[i].status = 0;
    if (m > 0)
        engine_sent(d->engine, es, m, now);
    if (d->sw)
        m += device_switch_lose(d, d->path->nowhere, now);
    d->stats.no_link += m;
    return m;
}

static unsigned datapath_tx_burst(struct device *d, enum datapath_turn turn, uint64_t now)
{
    struct engine_slot *es = d->path->slots;
    struct io_slot slots[IO_BURST_MAX];
    unsigned want = turn == TURN_FIRST ? 1 : d->tx_want;
    if (d->loop && loop_room(d->loop) < want)
        want = loop_room(d->loop);
    if (want == 0)
        return 0;
    unsigned n = d->io->ops->tx_reserve(d->io, slots, want, now);
    d->tx_blocked = n == 0;
    d->path->tx_short = n < want;
    if (n == 0 && !d->link.up)
        return turn == TURN_FIRST ? 0 : datapath_lose(d, es, now);
    if (n == 0) {
        d->stats.port_full++;
        return 0;
    }
    for (unsigned i = 0; i < n; i++) {
        es[i].buf = slots[i].data;
        es[i].cap = slots[i].cap;
        es[i].len = 0;
    }
    unsigned m = turn == TURN_ALL ? datapath_slow_tx(d, es, n, now) : 0;
    if (__builtin_expect(d->sw && turn != TURN_FIRST, 0))
        m += datapath_both_tx(d, turn, slots + m, es + m, n - m, now);
    else if (m < n)
        m += datapath_engine_tx(d, turn, es + m, n - m, now);
    for (unsigned i = 0; i < m; i++)
        slots[i].len = es[i].len;
    if (d->captures)
        capture_tx(d->captures, es, m, now);
    if (d->loop || (d->shared && steer_groups(d))) {
        loop_take(d, slots, m);
        steer_wake(d);
    }
    if (d->uplink)
        uplink_tx(d, es, m);
    d->io->ops->tx_commit(d->io, slots, n, now);

    if (turn == TURN_FIRST)
        return m;
    if (m == n && d->tx_want < IO_BURST_MAX)
        d->tx_want *= 2;
    else if (m < n / 4 && d->tx_want > DATAPATH_TX_MIN)
        d->tx_want /= 2;
    return m;
}

unsigned device_tx(struct device *d, uint64_t now)
{
    unsigned total = d->uplink && uplink_owes(d->uplink) ? uplink_answer(d) : 0;
    for (unsigned i = 0; i < DATAPATH_TX_BURSTS; i++) {
        bool slow =
            neigh_tx_ready(d->neigh) || d->gsi->ops->tx_ready(d->gsi) || uplink_says(d->uplink);
        bool programs = d->sw && switch_tx_ready(d->sw);
        if (!slow && !programs && !engine_tx_ready(d->engine))
            break;
        unsigned n = datapath_tx_burst(d, slow ? TURN_ALL : TURN_ENGINE, now);
        total += n;
        if (n == 0 || d->path->tx_short) /* look for packets before sending more */
            break;
    }
    return total;
}

unsigned device_tx_first(struct device *d, uint64_t now)
{
    return engine_tx_only_ack(d->engine) ? 0 : datapath_tx_burst(d, TURN_FIRST, now);
}

bool device_can_wait(const struct device *d)
{
    return engine_tx_only_ack(d->engine) && !neigh_tx_ready(d->neigh) &&
           !d->gsi->ops->busy(d->gsi) && !uplink_says(d->uplink);
}

/* ---- time ---- */

bool device_is_late(const struct device *d, uint64_t now)
{
    return engine_deadline(d->engine) <= now - DATAPATH_LATE_NS && now >= d->catch_up_from;
}

void device_caught_up(struct device *d)
{
    d->catch_up_from = clock_now() + DATAPATH_CATCH_UP_NS;
}

unsigned device_timers(struct device *d, uint64_t now)
{
    unsigned n = 0;
    if (engine_deadline(d->engine) <= now) {
        engine_expire(d->engine, now);
        n++;
    }
    n += neigh_run(d->neigh, now);
    device_qps_run(d, now);
    device_addr_run(d, now);
    n += d->gsi->ops->run(d->gsi, now);
    return n;
}

uint64_t device_deadline(struct device *d, uint64_t now)
{
    uint64_t at = engine_deadline(d->engine), other = d->gsi->ops->deadline(d->gsi);
    if ((d->loop && loop_waits(d->loop)) || device_qps_follow(d) || device_addr_follows(d))
        return now;
    if (d->sw && d->sw->asks && switch_ask_deadline(d->sw) < at)
        at = switch_ask_deadline(d->sw);
    /* A port does not report that it has room again. */
    bool full = (d->tx_blocked && d->link.up) || (d->sw && switch_spilling(d->sw)) ||
                (d->uplink && uplink_owes(d->uplink));
    if (full && now + DATAPATH_FULL_NS < at)
        at = now + DATAPATH_FULL_NS;
    if (other < at)
        at = other;
    other = neigh_deadline(d->neigh);
    if (other < at)
        at = other;
    if (d->io->ops->deadline) {
        other = d->io->ops->deadline(d->io);
        if (other < at)
            at = other;
    }
    return at;
}
