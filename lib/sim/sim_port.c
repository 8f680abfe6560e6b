/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ports: queue, transmit, wire, arrive, pause. The transmitter keeps its time in picoseconds, so
 * that rounding to the clock's nanoseconds never adds up to a wrong rate.
 */
#include "sim_port.h"

#include <string.h>

#include "sim_fault.h"
#include "sim_noise.h"
#include "wire.h"

#define OCTET_PS 8000000000000ull /* at 1 bit/s */

static uint64_t free_at(const struct sim_port *port)
{
    return (port->busy_ps + 999) / 1000;
}

/* ---- watching ---- */

/* Hand a frame to the hook of a watched node. */
static void watch(const struct sim_node *n, enum sim_dir dir, const struct sim_pkt *p,
                  const char *note, uint64_t now)
{
    struct sim_world *w = n->w;
    if (!n->watched || !w->hooks.frame)
        return;
    if (!w->skip_payload || (p->flags & SIM_PKT_PAUSE)) {
        w->hooks.frame(w->hooks.arg, n, dir, p->data, p->len, note, now);
        return;
    }
    uint8_t whole[WIRE_FRAME_MAX] = {0};
    if (p->len > sizeof(whole))
        return;
    memcpy(whole, p->data, p->hdr < p->len ? p->hdr : p->len);
    wire_icrc_seal(whole, p->len, WIRE_ETH_LEN, WIRE_ETH_LEN + WIRE_IPV4_LEN + WIRE_UDP_LEN);
    w->hooks.frame(w->hooks.arg, n, dir, whole, p->len, note, now);
}

void sim_port_drop(struct sim_port *port, struct sim_pkt *p, const char *why, uint64_t now)
{
    port->stats.drops++;
    watch(port->node, SIM_OUT, p, why, now);
    sim_pkt_free(&port->node->w->pool, p);
}

/* ---- sending ---- */

/* Without a division, which would take most of a hop's arithmetic. */
static uint64_t wire_ps(const struct sim_port *port, uint64_t octets)
{
    return port->octet_ps ? octets * port->octet_ps : octets * OCTET_PS / port->rate;
}

static void arm_tx(struct sim_port *port, struct sim_pkt *next, uint64_t at)
{
    __builtin_prefetch(next);
    port->tx.hint = next;
    port->tx_set = true;
    sim_at(port->node, &port->tx, at);
}

/* Put a frame on the wire: the transmitter is free. `next` is likely to follow it. */
static void transmit(struct sim_port *port, struct sim_pkt *p, struct sim_pkt *next, uint64_t now)
{
    port->tx_packets++;
    if (port->node->watched)
        watch(port->node, SIM_OUT, p, NULL, now);

    if (port->busy_ps + 999 < now * 1000) /* a smaller difference is only the clock's rounding */
        port->busy_ps = now * 1000;
    port->busy_ps += wire_ps(port, sim_pkt_wire(p));
    uint64_t at = free_at(port) + port->delay;
    if (at == now)
        at++; /* even without delay it takes time to reach another node */
    p->next = NULL;
    if (port->rx.hint) {
        port->wire_tail->next_at = at;
        port->wire_tail->next = p;
    } else {
        port->rx.hint = p;
        sim_at(port->peer->node, &port->rx, at);
    }
    port->wire_tail = p;
    if (port->backlog || port->node->ops->idle)
        arm_tx(port, next, free_at(port));
    if (port->node->ops->sent)
        port->node->ops->sent(port->node, port, p, now);
}

static unsigned ready(const struct sim_port *port)
{
    return port->backlog & ~(unsigned)port->paused;
}

/* The transmitter is free: send the first frame that may go. */
static void start(struct sim_port *port, uint64_t now)
{
    if (!ready(port))
        return;
    unsigned prio = 31u - (unsigned)__builtin_clz(ready(port));
    struct sim_queue *q = &port->q[prio];
    struct sim_pkt *p = sim_fifo_pop(&q->fifo);
    q->bytes -= p->len;
    port->queued -= p->len;
    if (!q->fifo.head)
        port->backlog &= (uint16_t) ~(1u << prio);
    transmit(port, p, q->fifo.head, now);
}

static void tx_fire(struct sim_event *ev, uint64_t now)
{
    struct sim_port *port = SIM_CONTAINER(ev, struct sim_port, tx);
    port->tx_set = false;
    if (port->backlog)
        start(port, now);
    if (port->node->ops->idle)
        port->node->ops->idle(port->node, port, now);
}

void sim_port_want(struct sim_port *port, uint64_t now)
{
    if (!port->tx_set)
        arm_tx(port, NULL, free_at(port) > now ? free_at(port) : now);
}

void sim_port_send(struct sim_port *port, struct sim_pkt *p, uint64_t now)
{
    unsigned prio = p->flags & SIM_PKT_PAUSE ? SIM_PRIO_PFC : p->prio;
    bool idle = !port->tx_set && port->busy_ps <= now * 1000;
    if (port->queued + p->len > port->queue_max)
        port->queue_max = port->queued + p->len;
    if (idle && !ready(port) && !(port->paused >> prio & 1)) { /* past the queue */
        transmit(port, p, NULL, now);
        return;
    }
    struct sim_queue *q = &port->q[prio];
    sim_fifo_push(&q->fifo, p);
    q->bytes += p->len;
    port->queued += p->len;
    port->backlog |= (uint16_t)(1u << prio);
    if (idle)
        start(port, now);
    else if (!port->tx_set)
        arm_tx(port, q->fifo.head, free_at(port));
}

/* ---- pause ---- */

/* MAC control, 802.1Qbb: opcode 0x0101, enable vector, a time per priority. */
static const uint8_t pfc_head[] = {0x01, 0x80, 0xC2, 0x00, 0x00, 0x01, 0x02, 0x50, 0x46,
                                   0x43, 0x00, 0x00, 0x88, 0x08, 0x01, 0x01, 0x00, 0x00};
#define PFC_VECTOR 17u
#define PFC_TIMES  18u

void sim_port_pause(struct sim_port *port, unsigned mask, unsigned quanta, uint64_t now)
{
    struct sim_pkt *p = sim_pkt_new(&port->node->w->pool);
    if (!p) {
        port->node->w->failed = true;
        return;
    }
    memset(p->data, 0, SIM_PAUSE_LEN);
    memcpy(p->data, pfc_head, sizeof(pfc_head));
    p->data[10] = (uint8_t)(port->node->id >> 8);
    p->data[11] = (uint8_t)port->node->id;
    p->data[PFC_VECTOR] = (uint8_t)mask;
    for (unsigned i = 0; i < SIM_PRIOS; i++) {
        if (mask >> i & 1) {
            p->data[PFC_TIMES + 2 * i] = (uint8_t)(quanta >> 8);
            p->data[PFC_TIMES + 2 * i + 1] = (uint8_t)quanta;
        }
    }
    p->len = p->hdr = SIM_PAUSE_LEN;
    p->tag = (uint64_t)mask << 16 | quanta;
    p->flags = SIM_PKT_PAUSE;
    p->prio = SIM_PRIOS - 1;
    if (quanta)
        port->stats.pauses++;
    sim_port_send(port, p, now);
}

uint64_t sim_port_pause_ns(const struct sim_port *port, unsigned quanta)
{
    return (uint64_t)quanta * 512 * 1000000000ull / port->rate;
}

static void set_paused(struct sim_port *port, unsigned mask, uint64_t now)
{
    if (!port->paused && mask)
        port->paused_at = now;
    else if (port->paused && !mask)
        port->stats.held_ns += now - port->paused_at;
    bool released = port->paused & ~mask;
    port->paused = (uint8_t)mask;
    if (released)
        sim_port_want(port, now);
}

static void arm_resume(struct sim_port *port)
{
    uint64_t first = SIM_NEVER;
    for (unsigned i = 0; i < SIM_PRIOS; i++)
        if (port->paused >> i & 1 && port->paused_until[i] < first)
            first = port->paused_until[i];
    if (first == SIM_NEVER)
        sim_cancel(port->node, &port->resume);
    else
        sim_at(port->node, &port->resume, first);
}

static void resume_fire(struct sim_event *ev, uint64_t now)
{
    struct sim_port *port = SIM_CONTAINER(ev, struct sim_port, resume);
    unsigned mask = port->paused;
    for (unsigned i = 0; i < SIM_PRIOS; i++)
        if (port->paused_until[i] <= now)
            mask &= ~(1u << i);
    set_paused(port, mask, now);
    arm_resume(port);
}

static void pause_rx(struct sim_port *port, const struct sim_pkt *p, uint64_t now)
{
    unsigned mask = port->paused;
    for (unsigned i = 0; i < SIM_PRIOS; i++) {
        if (!(p->data[PFC_VECTOR] >> i & 1))
            continue;
        const uint8_t *t = p->data + PFC_TIMES + (size_t)2 * i;
        unsigned quanta = (unsigned)t[0] << 8 | t[1];
        port->paused_until[i] = now + sim_port_pause_ns(port, quanta);
        mask = quanta ? mask | 1u << i : mask & ~(1u << i);
    }
    set_paused(port, mask, now);
    arm_resume(port);
}

/* ---- arriving ---- */

void sim_port_arrive(struct sim_port *to, struct sim_pkt *p, uint64_t now)
{
    if (to->node->watched)
        watch(to->node, SIM_IN, p, NULL, now);
    if (p->flags & SIM_PKT_PAUSE) {
        pause_rx(to, p, now);
        sim_pkt_free(&to->node->w->pool, p);
        return;
    }
    to->node->ops->rx(to->node, to, p, now);
}

/* Add a frame to the run's digest. PSN, QPN and ECN tell frames apart that are otherwise equal. The
 * digest is a sum, so the order of the nodes within a window doesn't change it. */
static void digest(struct sim_world *w, const struct sim_port *to, const struct sim_pkt *p,
                   uint64_t now)
{
    uint64_t where = (uint64_t)p->len << 32 | (uint64_t)p->data[WIRE_ETH_LEN + 1] << 16 | to->id;
    w->trace += sim_mix(now * 0xD6E8FEB86659FD93ull ^ p->tag ^ where * 0x9E3779B97F4A7C15ull);
}

void sim_port_lose(struct sim_port *to, struct sim_pkt *p, uint64_t now)
{
    to->stats.faults++;
    watch(to->node, SIM_IN, p, "lost on the wire", now);
    sim_pkt_free(&to->node->w->pool, p);
}

static void rx_fire(struct sim_event *ev, uint64_t now)
{
    struct sim_port *port = SIM_CONTAINER(ev, struct sim_port, rx);
    struct sim_port *to = port->peer;
    struct sim_world *w = to->node->w;
    struct sim_pkt *p = port->rx.hint;
    port->rx.hint = p->next;
    if (p->next) {
        __builtin_prefetch((const uint8_t *)p->next + 64);
        __builtin_prefetch(p->next->next);
        sim_at(to->node, &port->rx, p->next_at);
    }
    w->hops++;
    digest(w, to, p, now);
    enum sim_fate fate = SIM_PASS;
    if (w->noise && to->node->is_host && !(p->flags & SIM_PKT_PAUSE))
        fate = sim_noise_judge(w->noise, to, p, now);
    if (fate == SIM_PASS && w->fault && !(p->flags & (SIM_PKT_PAUSE | SIM_PKT_FAULTED)))
        fate = sim_fault_judge(w->fault, to, p, now);
    if (fate == SIM_PASS && w->hooks.fault && !(p->flags & SIM_PKT_PAUSE))
        fate = w->hooks.fault(w->hooks.arg, to, p, now);
    if (fate == SIM_PASS)
        sim_port_arrive(to, p, now);
    else if (fate == SIM_DROP)
        sim_port_lose(to, p, now);
}

uint64_t sim_port_lookahead(const struct sim_port *port)
{
    uint64_t ns = port->delay + wire_ps(port, SIM_FRAME_MIN + SIM_WIRE_EXTRA) / 1000;
    return ns ? ns : 1;
}

void sim_port_connect(struct sim_port *a, struct sim_port *b, uint64_t rate, uint64_t delay)
{
    struct sim_port *end[] = {a, b};
    for (unsigned i = 0; i < 2; i++) {
        struct sim_port *port = end[i];
        port->peer = end[1 - i];
        port->rate = rate;
        port->octet_ps = OCTET_PS % rate ? 0 : OCTET_PS / rate;
        port->delay = delay;
        port->tx.fire = tx_fire;
        port->rx.fire = rx_fire;
        port->resume.fire = resume_fire;
        port->tx.key = sim_key(SIM_K_TX, port->index);
        port->rx.key = sim_key(SIM_K_RX, port->peer->index); /* the peer's node runs it */
        port->resume.key = sim_key(SIM_K_RESUME, port->index);
    }
}
