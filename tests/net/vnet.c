/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The world on virtual time: see vnet.h. Below, a host's turn has the four phases of engine.h.
 */
#include "vnet.h"
#include "step.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COPIES    (ENGINE_BURST * ENGINE_FRAME_COPIES)
#define SPINS_MAX 1000u /* fruitless turns at one instant before we call it a loop */

/* A copy that is done later: its source is kept, because the frame goes back to the port. */
struct late_copy {
    struct late_copy *next;
    uint64_t due;
    struct engine_copy copy;
    int status;
    uint8_t data[];
};

struct host { /* the part of a vnet_host that tests don't see */
    struct vnet_host pub;
    struct late_copy *late, **late_tail; /* in the order of the calls */
    struct engine_copy copies[COPIES];
    struct engine_result results[COPIES];
    struct engine_slot slots[ENGINE_BURST];
};

static struct host *host_of(struct vnet_host *h)
{
    return (struct host *)(void *)h;
}

/* ---- copying ---- */

struct mem_seg vnet_seg(const void *base, uint64_t len)
{
    struct mem_seg seg = {.len = len};
    memcpy(&seg.obj, &base, sizeof(base));
    return seg;
}

int vnet_reg(struct vnet_host *host, void *base, uint64_t len, unsigned access, uint32_t *lkey,
             uint32_t *rkey)
{
    struct mem_seg seg = vnet_seg(base, len);
    return mem_mr_reg(host->mem, host->pd, (uint64_t)(uintptr_t)base, len, access, &seg, 1, base,
                      lkey, rkey);
}

static uint8_t *piece_at(void *arg, const struct mem_piece *p)
{
    (void)arg;
    return (uint8_t *)p->obj + p->off;
}

/* Execute a copy; src may be another place than copy->src. */
static void copy_do(const struct engine_copy *c, const uint8_t *src, struct engine_result *r)
{
    struct engine_copy from = *c;
    from.src = src;
    *r = (struct engine_result){.token = c->token};
    r->orig = step_copy(&from, piece_at(NULL, &c->dst));
}

static bool late_waits(const struct host *h, uint32_t qpn)
{
    for (const struct late_copy *l = h->late; l; l = l->next)
        if (l->copy.qpn == qpn)
            return true;
    return false;
}

static void late_add(struct host *h, const struct engine_copy *c, uint64_t due, int status)
{
    uint32_t len = c->kind == ENGINE_PUT ? c->len : 0;
    struct late_copy *l = malloc(sizeof(*l) + len);
    if (!l)
        abort();
    l->next = NULL;
    l->due = due;
    l->copy = *c;
    l->status = status;
    if (len)
        memcpy(l->data, c->src, len);
    *h->late_tail = l;
    h->late_tail = &l->next;
}

/* Do, fail or delay the copies of one engine_rx; report the finished ones to the engine. */
static void copies_take(struct host *h, unsigned n)
{
    const struct vnet_copier *copier = &h->pub.copier;
    uint64_t now = h->pub.net->now;
    unsigned done = 0;
    for (unsigned i = 0; i < n; i++) {
        const struct engine_copy *c = &h->copies[i];
        int64_t plan = copier->place ? copier->place(copier->ctx, c, now) : 0;
        int status = plan < 0 ? (int)plan : 0;
        if (plan > 0 || (h->late && late_waits(h, c->qpn)))
            late_add(h, c, now + (plan > 0 ? (uint64_t)plan : 0), status);
        else if (status)
            h->results[done++] = (struct engine_result){.token = c->token, .status = status};
        else
            copy_do(c, c->src, &h->results[done++]);
    }
    if (done)
        engine_copied(h->pub.engine, h->results, done, now);
}

/* Report the late copies that are due, in order within their queue pair. Returns their number. */
static unsigned late_run(struct host *h)
{
    uint64_t now = h->pub.net->now;
    uint32_t blocked[64];
    unsigned done = 0, nblocked = 0;
    for (struct late_copy **p = &h->late; *p && done < COPIES && nblocked < 64;) {
        struct late_copy *l = *p;
        bool known = false;
        for (unsigned i = 0; i < nblocked; i++)
            known |= blocked[i] == l->copy.qpn;
        if (known || l->due > now) {
            if (!known)
                blocked[nblocked++] = l->copy.qpn;
            p = &l->next;
            continue;
        }
        if (l->status)
            h->results[done++] =
                (struct engine_result){.token = l->copy.token, .status = l->status};
        else
            copy_do(&l->copy, l->data, &h->results[done++]);
        *p = l->next;
        free(l);
    }
    for (h->late_tail = &h->late; *h->late_tail;)
        h->late_tail = &(*h->late_tail)->next;
    if (done)
        engine_copied(h->pub.engine, h->results, done, now);
    return done;
}

/* The time of the next work of late_run: a copy is due no earlier than an earlier one of its queue
 * pair. */
static uint64_t late_deadline(const struct host *h)
{
    uint64_t at = UINT64_MAX;
    for (const struct late_copy *l = h->late; l; l = l->next) {
        bool first = true;
        for (const struct late_copy *k = h->late; k != l && first; k = k->next)
            first = k->copy.qpn != l->copy.qpn;
        if (first && l->due < at)
            at = l->due;
    }
    return at;
}

/* ---- a host's turn ---- */

static unsigned host_rx(struct host *h)
{
    struct io_port *io = h->pub.port;
    uint64_t now = h->pub.net->now;
    struct io_frame lent[IO_BURST_MAX];
    struct engine_frame frames[IO_BURST_MAX];
    unsigned n = io->ops->rx_peek(io, lent, IO_BURST_MAX, now), ncopies;
    for (unsigned i = 0; i < n; i++) {
        frames[i] = (struct engine_frame){.data = lent[i].data, .len = lent[i].len};
        if (h->pub.tap.frame)
            h->pub.tap.frame(h->pub.tap.ctx, false, lent[i].data, lent[i].len, now);
    }
    for (unsigned used = 0; used < n;) {
        unsigned took =
            engine_rx(h->pub.engine, frames + used, n - used, now, h->copies, COPIES, &ncopies);
        copies_take(h, ncopies);
        used += took;
        if (took == 0 && ncopies == 0) {
            fprintf(stderr, "vnet: engine_rx takes nothing of %u frames\n", n - used);
            abort();
        }
    }
    io->ops->rx_release(io, n);
    return n;
}

static int slot_gather(void *arg, const struct engine_slot *s)
{
    struct host *h = arg;
    const struct vnet_copier *copier = &h->pub.copier;
    int status = copier->gather ? copier->gather(copier->ctx, s, h->pub.net->now) : 0;
    if (status == 0)
        step_gather(s, piece_at, NULL);
    return status;
}

/* Send one burst of at most n frames. Returns the number of the engine's frames. */
static unsigned tx_burst(struct host *h, unsigned n)
{
    struct io_port *io = h->pub.port;
    uint64_t now = h->pub.net->now;
    struct io_slot room[IO_BURST_MAX];
    n = io->ops->tx_reserve(io, room, n, now);
    for (unsigned i = 0; i < n; i++) {
        h->slots[i].buf = room[i].data;
        h->slots[i].cap = room[i].cap;
    }
    unsigned m = n ? step_tx(h->pub.engine, h->slots, n, now, slot_gather, h) : 0;
    for (unsigned i = 0; i < m; i++) {
        struct engine_slot *s = &h->slots[i];
        room[i].len = s->len;
        if (s->len && h->pub.tap.frame)
            h->pub.tap.frame(h->pub.tap.ctx, true, s->buf, s->len, now);
    }
    io->ops->tx_commit(io, room, n, now);
    return m;
}

/* Send the service's frames, one at a time. */
static unsigned service_tx(struct host *h)
{
    struct io_port *io = h->pub.port;
    uint64_t now = h->pub.net->now;
    struct io_slot room;
    unsigned sent = 0;
    while (io->ops->tx_reserve(io, &room, 1, now) == 1) {
        struct engine_slot s = {.buf = room.data, .cap = room.cap};
        bool more = h->pub.service.tx(h->pub.service.ctx, &s);
        room.len = more ? s.len : 0;
        if (more) {
            wire_icrc_seal(s.buf, s.len, s.ip_off, s.bth_off);
            if (h->pub.tap.frame)
                h->pub.tap.frame(h->pub.tap.ctx, true, s.buf, s.len, now);
            sent++;
        }
        io->ops->tx_commit(io, &room, 1, now);
        if (!more)
            break;
    }
    return sent;
}

/* Reserve two slots first, and twice as many after each full burst: reserving unused slots takes
 * time, too. */
static unsigned host_tx(struct host *h)
{
    unsigned work = 0;
    for (unsigned n = 2; n <= ENGINE_BURST && engine_tx_ready(h->pub.engine); n *= 2) {
        unsigned m = tx_burst(h, n);
        work += m;
        if (m < n)
            break;
    }
    return work;
}

static unsigned host_turn(struct host *h)
{
    uint64_t now = h->pub.net->now;
    unsigned work = 0;
    if (engine_deadline(h->pub.engine) <= now)
        engine_expire(h->pub.engine, now);
    work += late_run(h);
    work += host_rx(h);
    if (h->pub.service.run) {
        work += h->pub.service.run(h->pub.service.ctx, now);
        work += service_tx(h);
    }
    work += host_tx(h);
    return work;
}

static uint64_t host_deadline(struct host *h)
{
    uint64_t at = engine_deadline(h->pub.engine);
    uint64_t port = h->pub.port->ops->deadline(h->pub.port), late = late_deadline(h);
    at = port < at ? port : at;
    if (h->pub.service.run) {
        uint64_t service = h->pub.service.deadline(h->pub.service.ctx);
        at = service < at ? service : at;
    }
    return late < at ? late : at;
}

/* ---- the world ---- */

int vnet_run(struct vnet *net, bool (*done)(void *ctx), void *ctx, uint64_t until)
{
    unsigned fruitless = 0;
    while (!done || !done(ctx)) {
        unsigned work = 0;
        uint64_t next = UINT64_MAX;
        for (unsigned i = 0; i < net->hosts_n; i++)
            work += host_turn(host_of(net->hosts[i]));
        if (work) {
            net->steps++;
            fruitless = 0;
            continue;
        }
        if (done && done(ctx)) /* an expiry may have been all that was missing */
            return 0;
        for (unsigned i = 0; i < net->hosts_n; i++) {
            uint64_t at = host_deadline(host_of(net->hosts[i]));
            next = at < next ? at : next;
        }
        if (next == UINT64_MAX) {
            snprintf(net->why, sizeof(net->why), "%llu ns: nothing will ever happen again",
                     (unsigned long long)net->now);
            return done ? -EDEADLK : 0;
        }
        if (next > until) {
            snprintf(net->why, sizeof(net->why), "time is up at %llu ns",
                     (unsigned long long)until);
            net->now = net->now > until ? net->now : until;
            return -ETIMEDOUT;
        }
        if (next > net->now) {
            net->now = next;
            fruitless = 0;
        } else if (++fruitless > SPINS_MAX) {
            snprintf(net->why, sizeof(net->why),
                     "%llu ns: a deadline of %llu ns is due, but nothing comes of it",
                     (unsigned long long)net->now, (unsigned long long)next);
            return -ELOOP;
        }
    }
    return 0;
}

int vnet_run_for(struct vnet *net, uint64_t ns)
{
    uint64_t until = net->now + ns;
    int rc = vnet_run(net, NULL, NULL, until);
    net->now = until;
    return rc == -ELOOP ? rc : 0;
}

/* ---- hooks ---- */

static bool on_wc(void *arg, void *cq_arg, const struct engine_wc *wc)
{
    struct vnet_host *h = arg;
    if (h->cq_room == 0)
        return false;
    if (h->cq_room != SIZE_MAX)
        h->cq_room--;
    if (h->wcs_n == h->wcs_cap) {
        h->wcs_cap = h->wcs_cap ? 2 * h->wcs_cap : 256;
        h->wcs = realloc(h->wcs, h->wcs_cap * sizeof(*h->wcs));
        if (!h->wcs)
            abort();
    }
    h->wcs[h->wcs_n++] = (struct vnet_wc){*wc, cq_arg, h->net->now};
    return true;
}

static void on_event(void *arg, enum ib_event event, void *obj_arg)
{
    struct vnet_host *h = arg;
    if (h->events_n < sizeof(h->events) / sizeof(h->events[0]))
        h->events[h->events_n++] = (struct vnet_event){event, obj_arg, h->net->now};
}

static void on_gsi(void *arg, const struct wire_pkt *pkt, const uint8_t *mad, uint32_t len)
{
    struct vnet_host *h = arg;
    if (h->service.run)
        h->service.gsi_rx(h->service.ctx, pkt, mad, len);
}

/* ---- making it ---- */

static int host_new(struct vnet *net, unsigned index, const char *spec, uint64_t seed)
{
    struct io_open_params params = {.mac = {2, 'u', 'r', 'n', 0, (uint8_t)(index + 1)},
                                    .seed = seed};
    char err[256] = "";
    struct host *h = calloc(1, sizeof(*h));
    if (!h)
        return -ENOMEM;
    net->hosts[index] = &h->pub;
    h->late_tail = &h->late;
    h->pub.net = net;
    h->pub.index = index;
    h->pub.cq_room = SIZE_MAX;
    int rc = io_open(spec, &params, &h->pub.port, err, sizeof(err));
    if (rc) {
        fprintf(stderr, "vnet: %s\n", err);
        return rc;
    }
    struct engine_params p = {
        .hooks = {.cq_push = on_wc, .event = on_event, .gsi_rx = on_gsi},
        .hook_arg = &h->pub,
        .key = {seed ^ 0x243F6A8885A308D3u, seed * 2 + index},
        .max_qp = 20000,
        .max_cq = 1000,
        .max_srq = 100,
        .mem = {.max_pd = 100, .max_mr = 20000, .max_mw = 1000, .key = {seed, index + 1}},
        .mtu = 5,
        .line_rate = h->pub.port->caps.rate_bps,
    };
    memcpy(p.mac, h->pub.port->caps.mac, 6);
    h->pub.engine = engine_create(&p, net->now);
    if (!h->pub.engine)
        return -ENOMEM;
    h->pub.mem = engine_mem(h->pub.engine);
    h->pub.addr4 = wire_addr_v4(0x0A000001u + index);
    h->pub.addr6 = (struct wire_addr){{0xFD, 0, [15] = (uint8_t)(index + 1)}};
    rc = engine_addr_add(h->pub.engine, &h->pub.addr4);
    if (rc == 0)
        rc = engine_addr_add(h->pub.engine, &h->pub.addr6);
    if (rc == 0)
        rc = mem_pd_alloc(h->pub.mem, &h->pub.pd);
    if (rc == 0)
        rc = engine_cq_create(h->pub.engine, &h->pub, &h->pub.cq);
    return rc;
}

struct vnet *vnet_new(unsigned hosts, const char *keys, uint64_t seed)
{
    static unsigned serial;
    struct vnet *net = calloc(1, sizeof(*net));
    char spec[IO_SPEC_MAX], name[32];
    if (!net)
        return NULL;
    net->now = 1000;
    snprintf(name, sizeof(name), "vnet%u", serial++);
    for (unsigned i = 0; i < hosts; i++) {
        snprintf(spec, sizeof(spec), "mem:%s%s", name, i == 0 ? keys : "");
        net->hosts_n = i + 1;
        int rc = host_new(net, i, spec, seed);
        if (rc) {
            fprintf(stderr, "vnet: host %u: %s\n", i, strerror(-rc));
            vnet_free(net);
            return NULL;
        }
    }
    net->link = mem_link_get(name);
    return net;
}

void vnet_free(struct vnet *net)
{
    if (net->link)
        mem_link_put(net->link);
    for (unsigned i = 0; i < net->hosts_n; i++) {
        struct host *h = host_of(net->hosts[i]);
        if (!h)
            continue;
        if (h->pub.engine)
            engine_destroy(h->pub.engine);
        if (h->pub.port)
            h->pub.port->ops->close(h->pub.port);
        while (h->late) {
            struct late_copy *l = h->late;
            h->late = l->next;
            free(l);
        }
        free(h->pub.wcs);
        free(h);
    }
    free(net);
}

/* ---- queue pairs ---- */

static int qp_up(struct vnet_host *me, struct vnet_host *peer, struct qp *qp, uint32_t dest_qpn,
                 unsigned side, const struct vnet_qp_params *p)
{
    struct engine_qp_attr a = {
        .state = QPS_INIT,
        .port = 1,
        .access_flags = MEM_REMOTE_ANY,
        .path_mtu = (uint8_t)wire_mtu_enum(p->mtu),
        .dest_qpn = dest_qpn,
        .rq_psn = p->sq_psn[!side],
        .sq_psn = p->sq_psn[side],
        .max_rd_atomic = p->rd_atomic,
        .max_dest_rd_atomic = p->rd_atomic,
        .min_rnr_timer = p->min_rnr_timer,
        .timeout = p->timeout,
        .retry_cnt = p->retry_cnt,
        .rnr_retry = p->rnr_retry,
        .e2e_credits = p->credits,
        .recovery = p->recovery[side],
        .av = {.sgid = p->ipv6 ? me->addr6 : me->addr4,
               .dgid = p->ipv6 ? peer->addr6 : peer->addr4,
               .tclass = 0x02, /* ECT(0) */
               .hop_limit = 64},
    };
    bool rc_type = p->type == QP_RC;
    memcpy(a.av.dmac, peer->port->caps.mac, 6);

    int rc = engine_qp_modify(
        me->engine, qp, &a, QPA_STATE | QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS, me->net->now);
    a.state = QPS_RTR;
    if (rc == 0)
        rc = engine_qp_modify(me->engine, qp, &a,
                              QPA_STATE | QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN |
                                  (rc_type ? QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER : 0),
                              me->net->now);
    a.state = QPS_RTS;
    if (rc == 0)
        rc = engine_qp_modify(
            me->engine, qp, &a,
            QPA_STATE | QPA_SQ_PSN |
                (rc_type ? QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_MAX_QP_RD_ATOMIC : 0),
            me->net->now);
    return rc;
}

int vnet_connect(struct vnet_host *a, struct vnet_host *b, const struct vnet_qp_params *wanted,
                 struct qp **qa, struct qp **qb)
{
    struct vnet_qp_params p = *wanted;
    struct vnet_host *host[2] = {a, b};
    struct qp **qp[2] = {qa, qb};
    int rc = 0;
    p.mtu = p.mtu ? p.mtu : 1024;
    p.timeout = p.timeout ? p.timeout : 10;
    p.retry_cnt = p.retry_cnt ? p.retry_cnt : 7;
    p.rnr_retry = p.rnr_retry ? p.rnr_retry : 7;
    p.min_rnr_timer = p.min_rnr_timer ? p.min_rnr_timer : 1;
    p.rd_atomic = p.rd_atomic ? p.rd_atomic : 16;
    p.wrs = p.wrs ? p.wrs : 256;
    p.type = p.type ? p.type : QP_RC;
    for (unsigned i = 0; i < 2 && rc == 0; i++) {
        struct engine_qp_params q = {.arg = host[i],
                                     .type = p.type,
                                     .pd = host[i]->pd,
                                     .send_cq = host[i]->cq,
                                     .recv_cq = host[i]->cq,
                                     .max_send_wr = p.wrs,
                                     .max_recv_wr = p.wrs,
                                     .max_send_sge = 4,
                                     .max_recv_sge = 4,
                                     .max_inline = 64};
        rc = engine_qp_create(host[i]->engine, &q, qp[i]);
    }
    if (rc == 0)
        rc = qp_up(a, b, *qa, engine_qp_num(*qb), 0, &p);
    if (rc == 0)
        rc = qp_up(b, a, *qb, engine_qp_num(*qa), 1, &p);
    return rc;
}
