/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The daemon's rounds between two untrusted parties: an application that writes anything into its
 * queues, doorbells and memory, and a network that sends any frames to the port (SHM-01 .. SHM-05,
 * SHM-08, SEC-03). The memory of another, idle application on the device does not change; frames
 * that leave the port are whole and the device's own; and a client's objects end with it.
 *
 * The input is a list of steps: the low half of an octet names the step (enum step), the high half
 * is an argument; further octets follow as each step needs them. Missing octets at the end read as
 * 0.
 *
 * The device has two workers. The other application is on the first one, which has the port; with
 * an odd number of octets the first application is on the second worker, to which frames come over
 * a ring, and which sends by a lane.
 */
#include "clock.h"
#include "cm_msg.h"
#include "cqring.h"
#include "datapath.h"
#include "fuzz_daemon.h"
#include "quota.h"
#include "wire.h"

enum step {
    STEP_SEND,    /* a send work request with fields of the input; argument: queue pair */
    STEP_RECV,    /* a receive work request, likewise */
    STEP_WRITE,   /* octets into shared memory; argument: which (enum place) */
    STEP_INDEX,   /* another producer index; argument: queue, 8 = any index, else a step forward */
    STEP_RING,    /* doorbells; argument: queue, 8 = a number of 16 bits */
    STEP_PACKET,  /* a RoCE packet from fields; argument: queue pair, 8 = of any service */
    STEP_FRAME,   /* a frame of these octets; argument 8 = to the address in it, else to the port */
    STEP_REQUEST, /* a control message */
    STEP_ROUND,   /* of the worker; argument + 1 times */
    STEP_REFILL,  /* completions taken, a queue pair that has failed is back; argument: which */
    STEP_MAX
};

enum place { PLACE_SEND, PLACE_RECV, PLACE_CQ, PLACE_DOORBELLS, PLACE_SLAB, PLACE_MAX };

enum { QPS = 4, SLAB = 16384, QKEY = 5, FRAME = 1600, MTU = 3 };
#define IOVA 0x10000ull

static const uint8_t peer_mac[6] = {2, 0, 0, 0, 0, 9};
static const uint32_t peer_ip = 0x0A000002u, our_ip = 0x0A000001u;

struct world {
    const uint8_t *in;
    size_t left;
    struct device *d;
    struct io_port *wire; /* the other end of the port's link */
    struct client *c, *other;
    int sock, other_sock;
    uint32_t other_slab;
    uint32_t pd, slab, cq, srq; /* handles */
    uint32_t qp[QPS];           /* RC, RC with SRQ, UC, UD */
    uint32_t key[8];            /* to choose from */
    struct cm_msg said;         /* the last message of the device's connection manager */
};

static struct world w;

static uint32_t take(unsigned octets)
{
    uint32_t v = 0;
    while (octets--) {
        v <<= 8;
        if (w.left) {
            v |= *w.in++;
            w.left--;
        }
    }
    return v;
}

/* ---- the application ---- */

static const struct ipc_hdr *ask(struct client *c, unsigned type, const void *msg, size_t len)
{
    const size_t head = sizeof(struct ipc_hdr);
    return fuzz_serve(c, type, (const uint8_t *)msg + head, len > head ? len - head : 0);
}

static const void *ask_well(struct client *c, unsigned type, const void *msg, size_t len)
{
    const struct ipc_hdr *answer = ask(c, type, msg, len);
    FUZZ_CHECK(answer->status == 0);
    return answer;
}

static uint32_t make(struct client *c, unsigned type)
{
    const struct ipc_hdr none = {0};
    return ((const struct ipc_handle *)ask_well(c, type, &none, sizeof(none)))->handle;
}

/* A device, a protection domain, a slab with a region over all of it. */
static void open_client(struct client *c, int worker, uint32_t *pd, uint32_t *slab,
                        struct ipc_mr *mr)
{
    const struct ipc_ctx_open open = {.device = "urn0", .worker = worker};
    const struct ipc_slab_alloc alloc = {.size = SLAB};
    ask_well(c, IPC_CTX_OPEN, &open, sizeof(open));
    *pd = make(c, IPC_PD_ALLOC);
    *slab = ((const struct ipc_slab *)ask_well(c, IPC_SLAB_ALLOC, &alloc, sizeof(alloc)))->slab;
    const struct ipc_mr_reg reg = {.pd = *pd,
                                   .kind = IPC_MR_SLAB,
                                   .obj = *slab,
                                   .access = MEM_LOCAL_WRITE | MEM_REMOTE_ANY | MEM_MW_BIND |
                                             MEM_FLUSH_GLOBAL,
                                   .len = SLAB,
                                   .iova = IOVA};
    memcpy(mr, ask_well(c, IPC_MR_REG, &reg, sizeof(reg)), sizeof(*mr));
}

static struct ipc_qp_attr attributes(unsigned state)
{
    struct ipc_qp_attr a = {.state = state,
                            .qkey = QKEY,
                            .rq_psn = 0xFFFFF0,
                            .sq_psn = 0xFFFFF8,
                            .dest_qpn = 0x123,
                            .access_flags = MEM_REMOTE_ANY | MEM_FLUSH_GLOBAL,
                            .port = 1,
                            .path_mtu = MTU,
                            .timeout = 1,
                            .retry_cnt = 7,
                            .rnr_retry = 7,
                            .min_rnr_timer = 1,
                            .max_rd_atomic = 4,
                            .max_dest_rd_atomic = 4};
    a.av = (struct ipc_av){.dgid = {[10] = 0xFF, 0xFF, 10, 0, 0, 2}, .sgid_index = 3};
    memcpy(a.av.dmac, peer_mac, 6);
    return a;
}

static void to_rts(unsigned i)
{
    const bool rc = i < 2, ud = i == 3;
    const uint32_t masks[3] = {
        QPA_STATE | QPA_PKEY_INDEX | QPA_PORT | (ud ? QPA_QKEY : QPA_ACCESS_FLAGS),
        QPA_STATE | (ud ? 0 : QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN) |
            (rc ? QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER : 0),
        QPA_STATE | QPA_SQ_PSN |
            (rc ? QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_MAX_QP_RD_ATOMIC : 0),
    };
    for (unsigned k = 0; k < 3; k++) {
        const struct ipc_qp_modify m = {
            .qp = w.qp[i], .mask = masks[k], .attr = attributes(QPS_INIT + k)};
        if (ask(w.c, IPC_QP_MODIFY, &m, sizeof(m))->status < 0) /* it may be gone */
            return;
    }
}

static void make_qp(unsigned i)
{
    static const uint32_t types[QPS] = {QP_RC, QP_RC, QP_UC, QP_UD};
    const struct ipc_qp_create m = {.pd = w.pd,
                                    .type = types[i],
                                    .send_cq = w.cq,
                                    .recv_cq = w.cq,
                                    .srq = i == 1 ? w.srq : 0,
                                    .max_send_wr = 4,
                                    .max_recv_wr = 4,
                                    .max_send_sge = 3,
                                    .max_recv_sge = 3,
                                    .max_inline = 64};
    w.qp[i] = ((const struct ipc_qp *)ask_well(w.c, IPC_QP_CREATE, &m, sizeof(m)))->qp;
    to_rts(i);
}

static void make_objects(void)
{
    struct ipc_mr mr;
    w.c = fuzz_client(&w.sock);
    open_client(w.c, (int)w.d->member, &w.pd, &w.slab, &mr);
    w.key[0] = mr.lkey;
    const struct ipc_mw_alloc window = {.pd = w.pd, .mw_type = 2};
    memcpy(&mr, ask_well(w.c, IPC_MW_ALLOC, &window, sizeof(window)), sizeof(mr));
    w.key[1] = mr.rkey;
    const struct ipc_mr_alloc later = {
        .pd = w.pd, .obj = w.slab, .max_segs = 4, .off = 4096, .len = 8192};
    memcpy(&mr, ask_well(w.c, IPC_MR_ALLOC, &later, sizeof(later)), sizeof(mr));
    w.key[2] = mr.rkey;
    const struct ipc_cq_create cq = {.cqe = 16, .channel = make(w.c, IPC_CHANNEL_CREATE)};
    w.cq = ((const struct ipc_cq *)ask_well(w.c, IPC_CQ_CREATE, &cq, sizeof(cq)))->cq;
    const struct ipc_srq_create srq = {.pd = w.pd, .max_wr = 4, .max_sge = 2, .limit = 2};
    w.srq = ((const struct ipc_srq *)ask_well(w.c, IPC_SRQ_CREATE, &srq, sizeof(srq)))->srq;
    for (unsigned i = 0; i < QPS; i++)
        make_qp(i);
    fuzz_drain(w.sock);
}

/* ---- the idle application ---- */

static uint8_t *slab_of(const struct client *c, uint32_t slab)
{
    const struct app_slab *s = handle_get(&c->handles, HANDLE_SLAB, slab);
    return s ? s->mem->base : NULL;
}

static void make_other(void)
{
    struct ipc_mr mr;
    uint32_t pd;
    w.other = fuzz_client(&w.other_sock);
    open_client(w.other, 0, &pd, &w.other_slab, &mr);
    fuzz_drain(w.other_sock);
    memset(slab_of(w.other, w.other_slab), 0xA5, SLAB);
    w.key[7] = mr.lkey; /* known to the first one, of whatever use that is to it */
}

static void check_other(void)
{
    const uint8_t *mem = slab_of(w.other, w.other_slab);
    FUZZ_CHECK(mem && mem[0] == 0xA5 && !memcmp(mem, mem + 1, SLAB - 1));
}

/* ---- queues ---- */

/* The queue pair that an argument means; NULL: it has been destroyed. */
static struct client_qp *qp_of(unsigned arg)
{
    return handle_get(&w.c->handles, HANDLE_QP, w.qp[arg % QPS]);
}

static struct queue *queue_of(unsigned arg, bool send)
{
    struct client_qp *qp = qp_of(arg);
    if (!qp)
        return NULL;
    return send ? &qp->sq : qp->srq ? &qp->srq->rq : &qp->rq;
}

static void ring(uint32_t number)
{
    struct ipc_doorbell *db = w.c->ctx.doorbell;
    const struct ipc_worker awake = {0};
    ipc_doorbell_push(db, QUOTA_QUEUES, number, &awake);
}

/* An entry goes where the client's index is, and shows. */
static void publish(struct queue *q, const void *entry, uint32_t octets, uint32_t units)
{
    struct ipc_ring *r = &q->ring;
    uint32_t at = atomic_load(&r->q->prod);
    for (uint32_t i = 0; i < octets; i++) {
        uint64_t to = ((uint64_t)at * r->stride + i) % ((uint64_t)r->entries * r->stride);
        r->base[to] = ((const uint8_t *)entry)[i];
    }
    atomic_store(&r->q->prod, at + units);
    ring(q->number);
}

static struct ipc_sge some_sge(void)
{
    struct ipc_sge s = {.va = IOVA + take(2), .len = take(2) % 6000};
    s.lkey = w.key[take(1) % 8];
    return s;
}

static void send_entry(unsigned arg)
{
    struct queue *q = queue_of(arg, true);
    uint8_t raw[IPC_UNIT * IPC_UNITS_MAX] = {0};
    struct ipc_sqe e = {.opcode = (uint8_t)(take(1) % 12), .flags = (uint8_t)take(1)};
    uint32_t at = sizeof(e), few = take(1);
    bool ud = arg % QPS == 3;
    e.rkey = e.imm = w.key[few >> 5];
    e.remote_va = IOVA + take(2);
    if (ud) {
        struct ipc_sqe_ud x = {.av = attributes(0).av, .qpn = take(1), .qkey = QKEY};
        if (x.qpn & 0x80) /* not resolved yet */
            memset(x.av.dmac, 0, 6);
        memcpy(raw + at, &x, sizeof(x));
    } else if (e.opcode == WR_BIND_MW) {
        struct ipc_sqe_bind x = {.mw_rkey = w.key[1],
                                 .new_rkey = (w.key[1] & ~0xFFu) | take(1),
                                 .mr_lkey = w.key[few >> 5],
                                 .access = MEM_REMOTE_ANY,
                                 .va = e.remote_va,
                                 .len = 64};
        memcpy(raw + at, &x, sizeof(x));
    } else if (e.opcode == WR_REG_MR) {
        struct ipc_sqe_reg x = {.key = (w.key[2] & ~0xFFu) | take(1),
                                .access = MEM_LOCAL_WRITE | MEM_REMOTE_ANY,
                                .va = IOVA,
                                .len = take(2)};
        memcpy(raw + at, &x, sizeof(x));
    }
    at += ipc_sqe_ext(e.opcode, ud);
    if (e.flags & WR_F_INLINE) {
        e.inline_len = (uint16_t)(take(2) % 300);
        at += e.inline_len;
    } else {
        e.nsge = few % 5;
        for (unsigned i = 0; i < e.nsge; i++, at += sizeof(struct ipc_sge)) {
            struct ipc_sge s = some_sge();
            memcpy(raw + at, &s, sizeof(s));
        }
    }
    e.units = (uint8_t)((at + IPC_UNIT - 1) / IPC_UNIT);
    memcpy(raw, &e, sizeof(e));
    if (few & 16) /* an octet of it is another one */
        raw[take(1)] ^= (uint8_t)take(1);
    if (q)
        publish(q, raw, e.units * IPC_UNIT, e.units);
}

static void recv_entry(unsigned arg)
{
    struct queue *q = queue_of(arg, false);
    uint8_t raw[512] = {0};
    struct ipc_rqe e = {.nsge = take(1) % 5};
    for (unsigned i = 0; i < e.nsge; i++) {
        struct ipc_sge s = some_sge();
        memcpy(raw + sizeof(e) + i * sizeof(s), &s, sizeof(s));
    }
    memcpy(raw, &e, sizeof(e));
    if (q)
        publish(q, raw, q->ring.stride, 1);
}

static void write_memory(unsigned arg)
{
    uint32_t off = take(2), n = take(1) % 64;
    const struct client_cq *cq = handle_get(&w.c->handles, HANDLE_CQ, w.cq);
    const struct queue *q = queue_of(arg >> 2, arg % PLACE_MAX == PLACE_SEND);
    uint8_t *base = NULL;
    size_t len = 0;
    switch (arg % PLACE_MAX) {
    case PLACE_CQ:
        if (cq) {
            base = (uint8_t *)cq->view.ring;
            len = cq->place.size;
        }
        break;
    case PLACE_DOORBELLS:
        base = w.c->ctx.doorbell_mem->base;
        len = w.c->ctx.doorbell_mem->len;
        break;
    case PLACE_SLAB:
        base = slab_of(w.c, w.slab);
        len = base ? SLAB : 0;
        break;
    default:
        if (q) {
            base = (uint8_t *)q->ring.q;
            len = q->place.size;
        }
    }
    for (; n; n--) {
        uint8_t b = (uint8_t)take(1);
        if (len)
            base[off++ % len] = b;
    }
}

static void move_index(unsigned arg)
{
    struct queue *q = queue_of(arg, arg & 4);
    uint32_t to = arg & 8 ? take(4) : take(1) % 16;
    if (!q)
        return;
    atomic_store(&q->ring.q->prod, arg & 8 ? to : atomic_load(&q->ring.q->prod) + to);
    ring(q->number);
}

/* Act as a patient client: take its completions, and restart failed objects. */
static void refill(unsigned arg)
{
    const struct client_cq *cq = handle_get(&w.c->handles, HANDLE_CQ, w.cq);
    if (cq) {
        atomic_store(&cq->view.ring->cons, cq->view.index);
        atomic_store(&cq->view.ring->arm, arg >> 2);
    }
    const struct ipc_qp_modify m = {
        .qp = w.qp[arg % QPS], .mask = QPA_STATE, .attr = {.state = QPS_RESET}};
    if (arg & 8 && qp_of(arg)) {
        ask(w.c, IPC_QP_MODIFY, &m, sizeof(m));
        to_rts(arg % QPS);
        fuzz_drain(w.sock);
    }
}

/* ---- the wire ---- */

static void emit(const uint8_t *frame, size_t len)
{
    struct io_slot slot;
    uint64_t now = clock_now();
    if (!len || w.wire->ops->tx_reserve(w.wire, &slot, 1, now) == 0)
        return;
    memcpy(slot.data, frame, len);
    slot.len = (uint32_t)len;
    w.wire->ops->tx_commit(w.wire, &slot, 1, now);
}

/* A message of a connection manager; if `answer`, to the device's last one. */
static void cm_message(uint8_t *mad, bool answer)
{
    struct cm_msg m;
    for (unsigned i = 0; i < CM_MAD_LEN; i++)
        mad[i] = (uint8_t)take(1);
    if (!answer || cm_msg_unpack(&m, mad, CM_MAD_LEN) < 0)
        return;
    m.remote_id = w.said.local_id;
    m.local_id = w.said.remote_id ? w.said.remote_id : m.local_id;
    m.remote_qpn = w.said.qpn;
    cm_msg_pack(mad, &m);
}

static void packet(unsigned arg)
{
    static const uint8_t service[QPS] = {WIRE_RC, WIRE_RC, WIRE_UC, WIRE_UD};
    uint8_t buf[FRAME + 256], opcode = (uint8_t)take(1), flags = (uint8_t)take(1);
    const struct client_qp *qp = qp_of(arg);
    struct engine_qp_info info = {0};
    if (!qp)
        return;
    engine_qp_info(w.d->engine, qp->qp, &info);
    if (!(arg & 8))
        opcode = WIRE_OPCODE(service[arg % QPS], opcode & 0x1F);
    struct wire_pkt p = {
        .ethertype = 0x0800,
        .ip_version = 4,
        .ttl = 64,
        .ip_flags = 2,
        .tclass = flags >> 6,
        .sip = wire_addr_v4(peer_ip),
        .dip = wire_addr_v4(our_ip),
        .dport = WIRE_UDP_PORT,
        .opcode = opcode,
        .pkey = WIRE_PKEY_DEFAULT,
        .dqpn = flags & 4 ? 1 : info.qpn,
        .qkey = flags & 4 ? 0x80010000u : QKEY,
        .sqpn = flags & 4 ? 1 : 0x123,
        .ackreq = flags & 1,
        .se = flags & 2,
    };
    uint32_t base = wire_opcodes[opcode].flags & WIRE_F_RESPONSE ? info.una_psn : info.epsn;
    p.psn = (base + (uint32_t)(int8_t)take(1)) & WIRE_PSN_MASK;
    memcpy(p.smac, peer_mac, 6);
    memcpy(p.dmac, w.d->mac, 6);
    p.rkey = w.key[flags >> 3 & 7];
    p.va = IOVA + (uint64_t)(int64_t)(int16_t)take(2);
    p.dma_len = take(2);
    p.payload_len = wire_opcodes[opcode].flags & WIRE_F_PAYLOAD ? take(2) % 1100 : 0;
    p.syndrome = (uint8_t)take(1);
    p.msn = p.imm = take(1);
    p.swap_add = p.compare = p.imm;
    size_t off = wire_build(buf, sizeof(buf), &p), len = wire_frame_len(&p);
    if (off == 0 || len > sizeof(buf))
        return;
    memset(buf + off, 0x5A, p.payload_len);
    if (flags & 4 && p.payload_len == CM_MAD_LEN)
        cm_message(buf + off, flags & 1);
    wire_icrc_seal(buf, len, p.ip_off, p.bth_off);
    emit(buf, len);
}

static void frame(unsigned arg)
{
    uint8_t buf[FRAME];
    size_t len = take(2) % sizeof(buf);
    for (size_t i = 0; i < len; i++)
        buf[i] = (uint8_t)take(1);
    if (!(arg & 8) && len >= 14)
        memcpy(buf, w.d->mac, 6);
    emit(buf, len);
}

/* Check frames that the port sends: from our address, and faultless RoCE. Only the destination of
 * datagrams is the application's choice. */
static void listen_to_wire(uint64_t now)
{
    struct io_frame f[IO_BURST_MAX];
    unsigned n = w.wire->ops->rx_peek(w.wire, f, IO_BURST_MAX, now);
    for (unsigned i = 0; i < n; i++) {
        struct wire_pkt p;
        FUZZ_CHECK(f[i].len >= 14 && f[i].len <= w.d->frame_max);
        FUZZ_CHECK(!memcmp(f[i].data + 6, w.d->mac, 6));
        enum wire_verdict v = wire_parse(f[i].data, f[i].len, WIRE_P_LOOPBACK, &p);
        FUZZ_CHECK(v == WIRE_OK || v == WIRE_NOT_ROCE || v == WIRE_BAD_QPN);
        if (v == WIRE_OK && p.dqpn == WIRE_QPN_GSI)
            cm_msg_unpack(&w.said, f[i].data + p.payload_off, p.payload_len);
    }
    w.wire->ops->rx_release(w.wire, n);
}

/* ---- steps ---- */

static void request(void)
{
    size_t len = take(2) % 512;
    unsigned type = take(1) % IPC_TYPE_MAX;
    uint8_t body[512];
    for (size_t i = 0; i < len; i++)
        body[i] = (uint8_t)take(1);
    if (type >= IPC_STATS) /* tools' requests are fuzz_control's */
        return;
    fuzz_serve(w.c, type, body, len);
    fuzz_drain(w.sock);
}

static void worker_turn(unsigned k, uint64_t now)
{
    struct worker *worker = &fuzz_daemon.nic.worker[k];
    struct device *d = fuzz_daemon.nic.device[0]->team->member[k];
    worker->now = now;
    if (device_peek(d, now) > 0) {
        context_ops.doorbells(worker, now);
        device_take(d, now);
    }
    for (struct context *c = worker->contexts; c; c = c->next)
        context_round(c, now);
    device_tx_first(d, now);
    device_timers(d, now);
    device_tx(d, now);
    for (struct context *c = worker->contexts; c; c = c->next) {
        cqring_notify(c, now);
        cqring_owed(c);
    }
    device_service(d, now);
}

/* Run the first worker again: it sends the frames of the second one. */
static void one_round(void)
{
    uint64_t now = clock_now();
    worker_turn(0, now);
    worker_turn(1, now);
    worker_turn(0, now);
    listen_to_wire(now);
}

static void step(void)
{
    uint32_t what = take(1), arg = what >> 4;
    switch ((what & 15) % STEP_MAX) {
    case STEP_SEND:
        send_entry(arg);
        break;
    case STEP_RECV:
        recv_entry(arg);
        break;
    case STEP_WRITE:
        write_memory(arg);
        break;
    case STEP_INDEX:
        move_index(arg);
        break;
    case STEP_RING:
        ring(arg & 8 ? take(2) : arg);
        break;
    case STEP_PACKET:
        packet(arg);
        break;
    case STEP_FRAME:
        frame(arg);
        break;
    case STEP_REQUEST:
        request();
        break;
    case STEP_REFILL:
        refill(arg);
        break;
    default:
        for (unsigned i = 0; i <= arg; i++)
            one_round();
    }
}

static void start(void)
{
    static const char *const devices[] = {
        "name=urn0,port=mem:fuzz_datapath,addr=10.0.0.1/24,addr=fd00::1/64,workers=2"};
    const struct io_open_params params = {.frame_max = FRAME};
    fuzz_daemon_start(devices, 1);
    w.d = fuzz_daemon.nic.device[0];
    FUZZ_CHECK(io_open("mem:fuzz_datapath", &params, &w.wire, NULL, 0) == 0);
    for (unsigned i = 0; i < 4; i++) /* it sees the link come up */
        one_round();
    make_other();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!fuzz_daemon.nic.nworker)
        start();
    uint64_t at_rest = fuzz_live();
    w.in = data;
    w.left = size;
    w.d = fuzz_daemon.nic.device[0]->team->member[size % 2];
    memset(&w.said, 0, sizeof(w.said));
    make_objects();
    for (unsigned i = 0; w.left && i < 200 && !w.c->gone; i++)
        step();
    one_round();
    check_other();
    fuzz_client_end(w.c, w.sock);
    one_round();
    FUZZ_CHECK(fuzz_live() == at_rest);
    check_other();
    return 0;
}
