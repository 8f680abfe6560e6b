/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The worker of a simulated host: the phases of engine.h in the order of a frame, a time-out, a
 * free transmitter.
 */
#include "sim_host.h"
#include "step.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NIC_QUEUE 65536u       /* octets that wait in the NIC while their priority is paused */
#define SPACE     (1ull << 52) /* one region: addresses are (flow << 32 | offset) */
#define RECORDS   256u         /* copies never wait here */
#define RNR_TIMER 1u           /* 10 us */

_Static_assert(sizeof(((struct wire_tmpl *)0)->hdr) <= SIM_DATA_MIN &&
                   WIRE_ETH_LEN + WIRE_IPV4_LEN + WIRE_UDP_LEN + WIRE_BTH_LEN + 28u <= SIM_DATA_MIN,
               "sending writes only to the headers when payload is skipped");

static struct sim_host *host_of(struct sim_node *n)
{
    return (struct sim_host *)(void *)n;
}

/* ---- memory: a function of the address ---- */

static uint64_t word_at(uint64_t va)
{
    return sim_mix(va >> 3);
}

static void memory_read(uint8_t *dst, uint64_t va, uint32_t len)
{
    for (uint32_t i = 0; i < len;) {
        uint64_t w = word_at(va + i);
        unsigned at = (va + i) & 7, n = 8 - at < len - i ? 8 - at : len - i;
        memcpy(dst + i, (const uint8_t *)&w + at, n);
        i += n;
    }
}

static uint32_t memory_differs(const uint8_t *src, uint64_t va, uint32_t len)
{
    uint32_t bad = 0;
    for (uint32_t i = 0; i < len;) {
        uint64_t w = word_at(va + i);
        unsigned at = (va + i) & 7, n = 8 - at < len - i ? 8 - at : len - i;
        if (memcmp(src + i, (const uint8_t *)&w + at, n))
            for (unsigned k = 0; k < n; k++)
                bad += src[i + k] != ((const uint8_t *)&w)[at + k];
        i += n;
    }
    return bad;
}

/* ---- sending ---- */

static bool may_send(const struct sim_port *port, uint64_t now)
{
    return port->busy_ps <= now * 1000 && !(port->backlog & ~(unsigned)port->paused) &&
           port->queued < NIC_QUEUE;
}

static int gather(void *arg, const struct engine_slot *slot)
{
    uint8_t *dst = slot->buf + slot->payload_off;
    (void)arg;
    for (unsigned i = 0; i < slot->npieces; i++) {
        memory_read(dst, slot->pieces[i].off, slot->pieces[i].len);
        dst += slot->pieces[i].len;
    }
    step_seal(slot);
    return 0;
}

/* Move one frame from the engine into the port. False: there is none. */
static bool send_one(struct sim_host *h, uint64_t now)
{
    struct sim_world *w = h->node.w;
    struct engine_slot slot;
    struct sim_pkt *p = sim_pkt_new(&w->pool);
    if (!p) {
        w->failed = true;
        return false;
    }
    slot.buf = p->data;
    slot.cap = WIRE_FRAME_MAX;
    slot.len = 0;
    if (!step_tx(h->e, &slot, 1, now, w->skip_payload ? NULL : gather, NULL)) {
        sim_pkt_free(&w->pool, p);
        return false;
    }
    if (!slot.len) { /* a void slot: not sent, but there may be more frames */
        sim_pkt_free(&w->pool, p);
        return true;
    }
    p->len = slot.len;
    p->hdr = (uint8_t)slot.payload_off;
    p->flags = 0;
    sim_pkt_classify(p);
    sim_port_send(h->port, p, now);
    return true;
}

/* ---- a turn ---- */

static bool hook_cq(void *arg, void *cq_arg, const struct engine_wc *wc)
{
    struct sim_host *h = arg;
    (void)cq_arg;
    if (h->ndone == h->done_cap) {
        uint32_t cap = h->done_cap ? h->done_cap * 2 : 16;
        struct engine_wc *more = realloc(h->done, cap * sizeof(*more));
        if (!more) {
            h->node.w->failed = true;
            return false;
        }
        h->done = more;
        h->done_cap = cap;
    }
    h->done[h->ndone++] = *wc;
    return true;
}

static void hook_event(void *arg, enum ib_event ev, void *obj)
{
    (void)arg;
    (void)ev;
    (void)obj;
}

static void arm(struct sim_host *h, uint64_t now)
{
    uint64_t at = engine_deadline(h->e);
    if (at == SIM_NEVER)
        return; /* a timer that is armed too early does nothing */
    if (at <= now)
        at = now + 1;
    if (!sim_event_pending(&h->timer) || at < h->timer.at)
        sim_at(&h->node, &h->timer, at);
}

void sim_host_kick(struct sim_host *h, uint64_t now)
{
    if (h->stepping) /* posted from a completion: the turn under way sends it */
        return;
    h->stepping = true;
    do {
        for (uint32_t i = 0; i < h->ndone; i++) { /* grows while we look */
            struct engine_wc wc = h->done[i];
            h->app->completed(h, &wc, now);
        }
        h->ndone = 0;
        while (may_send(h->port, now) && engine_tx_ready(h->e) && send_one(h, now))
            ;
    } while (h->ndone);
    h->stepping = false;
    if (engine_tx_ready(h->e))
        sim_port_want(h->port, now);
    arm(h, now);
}

static void timer_fire(struct sim_event *ev, uint64_t now)
{
    struct sim_host *h = SIM_CONTAINER(ev, struct sim_host, timer);
    engine_expire(h->e, now);
    sim_host_kick(h, now);
}

static void host_idle(struct sim_node *n, struct sim_port *out, uint64_t now)
{
    struct sim_host *h = host_of(n);
    (void)out;
    if (may_send(h->port, now) && engine_tx_ready(h->e))
        sim_host_kick(h, now);
}

/* ---- receiving ---- */

struct arrival {
    struct sim_host *h;
    uint64_t now;
};

static int place(void *arg, const struct engine_copy *c, uint64_t *orig)
{
    const struct arrival *a = arg;
    struct sim_host *h = a->h;
    (void)orig;
    if (c->kind != ENGINE_PUT)
        return 0;
    if (!h->node.w->skip_payload)
        h->bad_octets += memory_differs(c->src, c->dst.off, c->len);
    h->app->placed(h, c->dst.off, c->len, a->now);
    return 0;
}

static void host_rx(struct sim_node *n, struct sim_port *in, struct sim_pkt *p, uint64_t now)
{
    struct sim_host *h = host_of(n);
    struct sim_world *w = n->w;
    (void)in;
    if (p->flags & SIM_PKT_CORRUPT) {
        h->bad_icrc++;
        sim_pkt_free(&w->pool, p);
        return;
    }
    struct engine_frame f = {
        .data = p->data,
        .len = p->len,
        .flags = w->skip_payload ? WIRE_P_NO_ICRC : 0,
    };
    step_rx(h->e, &f, now, place, &(struct arrival){h, now});
    sim_pkt_free(&w->pool, p);
    sim_host_kick(h, now);
}

static void host_near(const struct sim_node *n, unsigned step)
{
    const struct sim_host *h = (const struct sim_host *)(const void *)n;
    sim_keep();
    if (step) {
        engine_prefetch(h->e, h->last[0], step - 1);
        engine_prefetch(h->e, h->last[1], step - 1);
        return;
    }
    for (unsigned i = 0; i < offsetof(struct sim_host, pd); i += 64)
        __builtin_prefetch((const char *)h + i);
    for (size_t i = 0; i < 4; i++)
        __builtin_prefetch((const char *)h->port + 64 * i);
}

const struct sim_node_ops sim_host_ops = {.rx = host_rx, .idle = host_idle, .near = host_near};

/* ---- life ---- */

int sim_host_init(struct sim_host *h, struct sim_world *w, uint32_t number, uint32_t max_qp,
                  const struct sim_host_params *p)
{
    h->node.ops = &sim_host_ops;
    h->node.w = w;
    h->p = *p;
    h->timer.fire = timer_fire;
    h->timer.key = sim_key(SIM_K_TIMER, 0);
    h->addr = wire_addr_v4(SIM_HOST_NET + number + 1);
    const uint8_t mac[6] = {0x02, 0x55, 0x52, 0x4E, (uint8_t)(number >> 8), (uint8_t)number};
    memcpy(h->mac, mac, 6);
    struct engine_params ep = {
        .hooks = {.cq_push = hook_cq, .event = hook_event},
        .hook_arg = h,
        .key = {sim_rand(&w->rng), sim_rand(&w->rng)},
        .max_qp = max_qp,
        .max_cq = 1,
        .mem = {.max_pd = 1, .max_mr = 1, .max_mw = 1, .key = {sim_rand(&w->rng), number}},
        .mtu = wire_mtu_enum(p->mtu),
        .line_rate = h->port->rate,
        .window = p->window,
        .records = RECORDS,
        .cc = p->cc,
    };
    memcpy(ep.mac, mac, 6);
    h->e = engine_create(&ep, w->now);
    if (!h->e)
        return -ENOMEM;
    int err = engine_addr_add(h->e, &h->addr);
    if (!err)
        err = mem_pd_alloc(engine_mem(h->e), &h->pd);
    struct mem_seg seg = {.obj = h, .len = SPACE};
    if (!err)
        err = mem_mr_reg(engine_mem(h->e), h->pd, 0, SPACE, MEM_LOCAL_WRITE | MEM_REMOTE_ANY, &seg,
                         1, h, &h->lkey, &h->rkey);
    if (!err)
        err = engine_cq_create(h->e, h, &h->cq);
    return err;
}

void sim_host_free(struct sim_host *h)
{
    engine_destroy(h->e);
    free(h->done);
}

struct qp *sim_host_open(struct sim_host *h, void *arg, const struct cc_conf *cc,
                         uint32_t send_depth, uint32_t recv_depth, uint64_t now)
{
    struct qp *qp;
    struct engine_qp_params p = {
        .arg = arg,
        .type = QP_RC,
        .pd = h->pd,
        .send_cq = h->cq,
        .recv_cq = h->cq,
        .max_send_wr = send_depth,
        .max_recv_wr = recv_depth,
        .max_send_sge = 1,
        .max_recv_sge = 1,
        .sq_sig_all = true,
    };
    if (engine_qp_create(h->e, &p, &qp))
        return NULL;
    if (!cc || !engine_qp_set_cc(h->e, qp, cc, now))
        return qp;
    engine_qp_destroy(h->e, qp);
    return NULL;
}

int sim_host_join(struct sim_host *h, struct qp *qp, const struct sim_host *peer, uint32_t number,
                  uint32_t sq_psn, uint32_t rq_psn, uint64_t now)
{
    struct engine_qp_attr a = {
        .state = QPS_INIT,
        .port = 1,
        .access_flags = MEM_LOCAL_WRITE | MEM_REMOTE_ANY,
        .av = {.sgid = h->addr, .dgid = peer->addr, .tclass = (uint8_t)(h->p.dscp << 2)},
        .path_mtu = (uint8_t)wire_mtu_enum(h->p.mtu),
        .dest_qpn = number,
        .sq_psn = sq_psn,
        .rq_psn = rq_psn,
        .timeout = h->p.timeout,
        .retry_cnt = h->p.retries,
        .rnr_retry = 7,
        .min_rnr_timer = RNR_TIMER,
        .recovery_agreed = h->p.sr == SIM_SR_AGREED,
    };
    memcpy(a.av.dmac, peer->mac, 6);
    int err = engine_qp_modify(h->e, qp, &a,
                               QPA_STATE | QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS, now);
    if (err)
        return err;
    a.state = QPS_RTR;
    err = engine_qp_modify(h->e, qp, &a,
                           QPA_STATE | QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN |
                               QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER,
                           now);
    if (err)
        return err;
    a.state = QPS_RTS;
    h->last[1] = h->last[0];
    h->last[0] = qp;
    return engine_qp_modify(h->e, qp, &a,
                            QPA_STATE | QPA_SQ_PSN | QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY |
                                QPA_MAX_QP_RD_ATOMIC,
                            now);
}

void sim_host_close(struct sim_host *h, struct qp *qp)
{
    for (unsigned i = 0; i < 2; i++)
        if (h->last[i] == qp)
            h->last[i] = NULL;
    engine_qp_destroy(h->e, qp);
}
