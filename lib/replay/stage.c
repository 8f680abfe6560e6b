/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The stage: an engine, its queue pair and its clock. Packets from the engine are gathered and
 * sealed as a worker does it, and parsed again; packets to it get its addresses first.
 */
#include "stage.h"
#include "step.h"

#include <errno.h>
#include <string.h>

#define LOCAL_LEN  (1ull << 46)
#define WINDOW     8192u
#define TIMERS_MAX 1024u /* time-outs run in one step of time */

static const uint8_t our_mac[6] = {2, 0, 0, 0, 0, 1}, peer_mac[6] = {2, 0, 0, 0, 0, 2};

static bool on_cq_push(void *arg, void *cq_arg, const struct engine_wc *wc)
{
    const struct stage *s = arg;
    (void)cq_arg;
    if (s->owner.completed)
        s->owner.completed(s->owner.ctx, wc);
    return true;
}

static void on_event(void *arg, enum ib_event ev, void *obj)
{
    (void)arg, (void)ev, (void)obj;
}

static void on_gsi(void *arg, const struct wire_pkt *pkt, const uint8_t *payload, uint32_t len)
{
    const struct stage *s = arg;
    if (s->owner.gsi)
        s->owner.gsi(s->owner.ctx, pkt, payload, len);
}

static int ready_datagrams(struct stage *s)
{
    struct engine_qp_attr a = {.state = QPS_INIT, .port = 1, .qkey = s->p.qkey};
    int rc =
        engine_qp_modify(s->e, s->qp, &a, QPA_STATE | QPA_PKEY_INDEX | QPA_PORT | QPA_QKEY, s->now);
    a.state = QPS_RTR;
    rc = rc ? rc : engine_qp_modify(s->e, s->qp, &a, QPA_STATE, s->now);
    a.state = QPS_RTS;
    rc = rc ? rc : engine_qp_modify(s->e, s->qp, &a, QPA_STATE | QPA_SQ_PSN, s->now);
    if (!rc && wire_addr_is_multicast(&s->p.local))
        rc = engine_mcast_attach(s->e, s->qp, &s->p.local);
    return rc;
}

static int connect_qp(struct stage *s)
{
    const struct stage_params *p = &s->p;
    struct engine_qp_attr a = {
        .av = {.sgid = p->local, .dgid = p->remote, .hop_limit = WIRE_TTL_DEFAULT},
        .rq_psn = p->rq_psn,
        .sq_psn = p->sq_psn,
        .dest_qpn = p->remote_qpn,
        .access_flags = p->rights,
        .port = 1,
        .path_mtu = (uint8_t)wire_mtu_enum(p->mtu),
        .retry_cnt = 7, /* with time-out 0: the engine never gives up */
        .rnr_retry = 7,
        .min_rnr_timer = p->rnr_timer,
        .max_rd_atomic = 128,
        .max_dest_rd_atomic = 128,
        .recovery = p->recovery,
    };
    bool rc = p->type == QP_RC;
    memcpy(a.av.dmac, peer_mac, 6);
    a.state = QPS_INIT;
    int rc1 = engine_qp_modify(s->e, s->qp, &a,
                               QPA_STATE | QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS, s->now);
    a.state = QPS_RTR;
    int rc2 = engine_qp_modify(s->e, s->qp, &a,
                               QPA_STATE | QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN |
                                   (rc ? QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER : 0),
                               s->now);
    a.state = QPS_RTS;
    int rc3 = engine_qp_modify(
        s->e, s->qp, &a,
        QPA_STATE | QPA_SQ_PSN |
            (rc ? QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_MAX_QP_RD_ATOMIC : 0),
        s->now);
    return rc1 ? rc1 : rc2 ? rc2 : rc3;
}

int stage_init(struct stage *s, const struct stage_params *p, const struct stage_owner *o)
{
    *s = (struct stage){.p = *p, .owner = *o, .now = STAGE_BEGIN, .budget = p->budget};
    struct engine_params ep = {
        .hooks = {.cq_push = on_cq_push, .event = on_event, .gsi_rx = on_gsi},
        .hook_arg = s,
        .key = {0x0123456789ABCDEF, 0xFEDCBA9876543210},
        .max_qp = 4,
        .mem = {.max_pd = 2, .max_mr = 4096, .max_mw = 4, .key = {1, 2}},
        .window = WINDOW,
        .loopback = true,
        .pkeys = {p->pkey, p->more_pkeys[0], p->more_pkeys[1], p->more_pkeys[2]},
    };
    memcpy(ep.mac, our_mac, 6);
    if (!(s->e = engine_create(&ep, s->now)))
        return -ENOMEM;
    struct cq *cq;
    bool group = wire_addr_is_multicast(&p->local);
    int rc = group ? 0 : engine_addr_add(s->e, &p->local);
    struct mem_seg seg = {NULL, 0, LOCAL_LEN};
    uint32_t rkey;
    if (!rc)
        rc = mem_pd_alloc(engine_mem(s->e), &s->pd);
    if (!rc)
        rc = mem_mr_reg(engine_mem(s->e), s->pd, STAGE_LOCAL_VA, LOCAL_LEN, MEM_LOCAL_WRITE, &seg,
                        1, s, &s->lkey, &rkey);
    if (!rc)
        rc = engine_cq_create(s->e, s, &cq);
    if (rc)
        return rc;
    struct engine_qp_params qp = {.arg = s,
                                  .type = p->type,
                                  .pd = s->pd,
                                  .send_cq = cq,
                                  .recv_cq = cq,
                                  .max_send_wr = 4096,
                                  .max_recv_wr = STAGE_RECVS,
                                  .max_send_sge = 1,
                                  .max_recv_sge = 1};
    rc = engine_qp_create(s->e, &qp, &s->qp);
    return rc ? rc : p->type == QP_UD ? ready_datagrams(s) : connect_qp(s);
}

void stage_free(struct stage *s)
{
    if (s->e)
        engine_destroy(s->e);
    s->e = NULL;
}

uint64_t stage_count(const struct stage *s, enum engine_counter c)
{
    return engine_counters(s->e)[c];
}

enum qp_state stage_state(const struct stage *s)
{
    struct engine_qp_attr a;
    engine_qp_query(s->qp, &a, NULL);
    return a.state;
}

uint32_t stage_epsn(const struct stage *s)
{
    struct engine_qp_info info;
    engine_qp_info(s->e, s->qp, &info);
    return info.epsn;
}

static int gather(void *arg, const struct engine_slot *slot)
{
    struct stage *s = arg;
    uint8_t *to = slot->buf + slot->payload_off;
    for (unsigned i = 0; i < slot->npieces; i++) {
        s->owner.fetch(s->owner.ctx, &slot->pieces[i], to);
        to += slot->pieces[i].len;
    }
    step_seal(slot);
    return 0;
}

/* Send a frame. */
static void show(struct stage *s, const struct engine_slot *slot)
{
    struct wire_pkt p;
    if (!slot->len)
        return;
    if (wire_parse(slot->buf, slot->len, WIRE_P_LOOPBACK | WIRE_P_SELECTIVE, &p) == WIRE_OK)
        s->owner.sent(s->owner.ctx, &p, slot->buf, slot->len);
}

void stage_flush(struct stage *s)
{
    uint8_t frame[WIRE_FRAME_MAX];
    struct engine_slot slot = {.buf = frame, .cap = sizeof(frame)};
    while (s->budget && step_tx(s->e, &slot, 1, s->now, gather, s)) {
        s->budget--;
        show(s, &slot);
        slot = (struct engine_slot){.buf = frame, .cap = sizeof(frame)};
    }
}

static struct engine_av path(const struct stage *s)
{
    struct engine_av av = {.sgid = s->p.local, .dgid = s->p.remote, .hop_limit = WIRE_TTL_DEFAULT};
    memcpy(av.dmac, peer_mac, 6);
    if (wire_addr_is_multicast(&av.dgid))
        wire_mcast_mac(&av.dgid, av.dmac);
    return av;
}

int stage_datagram(struct stage *s, const struct engine_send_wr *wr)
{
    struct engine_send_wr mine = *wr;
    mine.av = path(s);
    int rc = engine_post_send(s->e, s->qp, &mine, s->now);
    stage_flush(s);
    return rc;
}

int stage_mad(struct stage *s, uint16_t pkey, const uint8_t *mad, uint32_t len)
{
    uint8_t frame[WIRE_FRAME_MAX];
    struct engine_slot slot = {.buf = frame, .cap = sizeof(frame)};
    struct engine_av av = path(s);
    int rc = engine_gsi_emit(s->e, &slot, &av, pkey, mad, len);
    if (!rc) {
        wire_icrc_seal(slot.buf, slot.len, slot.ip_off, slot.bth_off);
        show(s, &slot);
    }
    return rc;
}

static void run_until(struct stage *s, uint64_t now)
{
    uint64_t d;
    for (unsigned i = 0; i < TIMERS_MAX && (d = engine_deadline(s->e)) <= now; i++) {
        if (d > s->now)
            s->now = d;
        engine_expire(s->e, s->now);
        stage_flush(s);
    }
    if (now > s->now)
        s->now = now;
}

void stage_time(struct stage *s, uint64_t ns)
{
    uint64_t now = ns > s->p.now ? ns - s->p.now : 0;
    run_until(s, now < STAGE_END ? now + STAGE_BEGIN : STAGE_END);
}

bool stage_wait(struct stage *s)
{
    uint64_t due = engine_deadline(s->e);
    if (due >= STAGE_END)
        return false;
    run_until(s, due > s->now ? due : s->now);
    stage_flush(s);
    return true;
}

/* Feed a packet with these headers; `have` octets of its payload are known. */
static void feed(struct stage *s, const struct wire_pkt *headers, const uint8_t *payload,
                 uint32_t have, uint32_t rkey)
{
    uint8_t frame[WIRE_FRAME_MAX];
    struct wire_pkt w = *headers;
    memcpy(w.dmac, our_mac, 6);
    if (wire_addr_is_multicast(&w.dip))
        wire_mcast_mac(&w.dip, w.dmac);
    memcpy(w.smac, peer_mac, 6);
    w.vlan = false;
    w.ip_version = wire_addr_is_v4(&w.sip) ? 4 : 6;
    w.ip_flags = WIRE_IP_DF;
    w.udp_csum = 0;
    w.ttl = WIRE_TTL_DEFAULT;
    w.tclass &= 0xFC; /* a mark makes CNPs, which are not compared */
    if (s->p.type != QP_UD || (w.dqpn != WIRE_QPN_GSI && w.dqpn != WIRE_QPN_MULTICAST))
        w.dqpn = engine_qp_num(s->qp);
    w.rkey = rkey;
    if (!w.sport)
        w.sport = 0xC000;
    size_t at = wire_build(frame, sizeof(frame), &w);
    if (!at)
        return;
    if (have)
        memcpy(frame + at, payload, have);
    memset(frame + at + have, 0, w.payload_len - have);
    size_t len = wire_frame_len(&w);
    wire_icrc_seal(frame, len, w.ip_off, w.bth_off);

    struct engine_frame f = {.data = frame, .len = (uint32_t)len};
    step_rx(s->e, &f, s->now, s->owner.copy, s->owner.ctx);
    s->drop = (enum engine_counter)f.drop;
    stage_flush(s);
    run_until(s, s->now + 2); /* a delayed ACK is sent alone */
}

void stage_feed(struct stage *s, const struct packet *p, uint32_t rkey)
{
    struct wire_pkt w;
    packet_wire(p, &w);
    feed(s, &w, packet_payload(p), packet_payload_have(p), rkey);
}

void stage_dump(const struct stage *s, const struct wire_pkt *headers, uint32_t dqpn,
                char text[REPLAY_DUMP_MAX])
{
    uint8_t frame[WIRE_FRAME_MAX];
    struct wire_pkt w = *headers;
    w.sip = s->p.local;
    w.dip = s->p.remote;
    w.ip_version = wire_addr_is_v4(&w.sip) ? 4 : 6;
    w.vlan = w.fecn = w.becn = false;
    w.tclass = 0;
    w.dqpn = dqpn;
    size_t at = wire_build(frame, sizeof(frame), &w);
    text[0] = '\0';
    if (!at)
        return;
    size_t len = wire_frame_len(&w);
    memset(frame + at, 0, w.payload_len);
    wire_icrc_seal(frame, len, w.ip_off, w.bth_off);
    wire_dump(text, REPLAY_DUMP_MAX, frame, len, WIRE_D_SELECTIVE);
}

void stage_hello(struct stage *s)
{
    const struct wire_pkt w = {.ttl = WIRE_TTL_DEFAULT,
                               .sip = s->p.remote,
                               .dip = s->p.local,
                               .dport = WIRE_UDP_PORT,
                               .opcode = WIRE_OPCODE(WIRE_RC, WIRE_ACKNOWLEDGE),
                               .pkey = s->p.pkey,
                               .psn = s->p.sq_psn,
                               .syndrome = WIRE_SYN_ACK,
                               .selective = true};
    feed(s, &w, NULL, 0, 0);
}
