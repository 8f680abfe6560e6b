/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An engine with a live queue pair of each kind under a stream of frames, posts, copies that are
 * late or fail, time, and objects that vanish. With any input, the engine may only name octets of
 * regions that are registered, or that it holds.
 *
 * The input is a list of commands: the low half of an octet names the command (enum command), the
 * high half is an argument; further octets follow as each command needs them. Missing octets at the
 * end read as 0.
 */
#include <errno.h>
#include <string.h>

#include "engine.h"
#include "fuzz.h"
#include "step.h"

enum command {
    CMD_FRAME,  /* a packet from fields; argument: queue pair, and 8 = don't mend the service */
    CMD_BYTES,  /* a frame of given octets; argument: queue pair, 8 = as it is, without mending */
    CMD_RX,     /* engine_rx on the gathered frames */
    CMD_COPY,   /* do copies; argument + 1 of them */
    CMD_FAIL,   /* fail copies */
    CMD_TX,     /* engine_tx; argument: which slot's gather fails, 15 = none */
    CMD_TIME,   /* let time pass: 2 to the argument, times an octet, in ns times 64 */
    CMD_RECV,   /* post a receive */
    CMD_SEND,   /* post a work request */
    CMD_ERR,    /* queue pair to ERR, or (8) RESET and back to RTS */
    CMD_RENEW,  /* destroy the queue pair and make another; (8) one that places early (LR-09) */
    CMD_REVOKE, /* deregister a region and register it again; (8) bind or invalidate the window */
    CMD_MAX
};

enum { QPS = 4, REGIONS = 3, OBJ_LEN = 8192, BURST = 16, COPIES = 1024, QKEY = 5 };
#define IOVA 0x10000ull

/* The memory of a region; a new one for each registration. */
struct object {
    uint8_t mem[OBJ_LEN];
    bool dead; /* the engine has reported that it needs this no more */
    struct object *next;
};

struct world {
    const uint8_t *in;
    size_t left;
    uint64_t now;
    struct engine *e;
    struct cq *cq;
    struct srq *srq;
    struct qp *qp[QPS];    /* RC, RC with SRQ, UC, UD */
    uint8_t recovery[QPS]; /* enum engine_recovery */
    uint32_t pd, key[REGIONS], window;
    struct object *obj[REGIONS], *all;
    uint8_t frames[BURST][5200];
    struct engine_frame burst[BURST];
    unsigned nburst;
    /* copies that wait, with the octets that they were made from */
    struct engine_copy copies[COPIES];
    uint8_t *source[COPIES];
    unsigned ncopies;
};

static struct world w;

#define CHECK FUZZ_CHECK

static uint8_t u8(void)
{
    if (w.left == 0)
        return 0;
    w.left--;
    return *w.in++;
}

static uint32_t u16(void)
{
    uint32_t v = u8();
    return v << 8 | u8();
}

/* ---- hooks ---- */

static bool on_cq(void *arg, void *cq_arg, const struct engine_wc *wc)
{
    (void)arg, (void)cq_arg;
    CHECK(wc->status < WC_STATUS_MAX);
    return true;
}

static void on_event(void *arg, enum ib_event ev, void *obj)
{
    (void)arg, (void)ev, (void)obj;
}

static void on_freed(void *arg, void *owner)
{
    struct object *o = owner;
    (void)arg;
    CHECK(!o->dead);
    o->dead = true;
}

/* ---- the world ---- */

static void add_region(unsigned i)
{
    static const unsigned access[REGIONS] = {MEM_LOCAL_WRITE | MEM_REMOTE_ANY | MEM_MW_BIND |
                                                 MEM_FLUSH_GLOBAL,
                                             MEM_LOCAL_WRITE | MEM_REMOTE_READ, MEM_LOCAL_WRITE};
    struct object *o = calloc(1, sizeof(*o));
    CHECK(o);
    o->next = w.all;
    w.all = w.obj[i] = o;
    /* Region 0 in three segments, so that ranges cross them. */
    const struct mem_seg segs[3] = {{o, 0, 1000}, {o, 1000, 4096}, {o, 5096, OBJ_LEN - 5096}};
    const struct mem_seg one = {o, 0, OBJ_LEN};
    uint32_t rkey;
    CHECK(mem_mr_reg(engine_mem(w.e), w.pd, IOVA, OBJ_LEN, access[i], i == 0 ? segs : &one,
                     i == 0 ? 3 : 1, o, &w.key[i], &rkey) == 0);
}

static uint8_t *octets(const struct mem_piece *p)
{
    struct object *o = p->obj;
    struct object *known = w.all;
    while (known && known != o)
        known = known->next;
    CHECK(known && !o->dead);
    CHECK(p->len <= OBJ_LEN && p->off <= OBJ_LEN - p->len);
    return o->mem + p->off;
}

static void to_rts(struct qp *qp, unsigned i)
{
    struct engine_qp_attr a = {
        .av = {.sgid = wire_addr_v4(0x0A000002), .dgid = wire_addr_v4(0x0A000001)},
        .qkey = QKEY,
        .rq_psn = 0xFFFFF0,
        .sq_psn = 0xFFFFF8,
        .dest_qpn = 0x123,
        .access_flags = MEM_REMOTE_ANY | MEM_FLUSH_ANY,
        .port = 1,
        .path_mtu = 1,
        .timeout = 8,
        .retry_cnt = 2,
        .rnr_retry = 2,
        .min_rnr_timer = 1,
        .max_rd_atomic = 4,
        .max_dest_rd_atomic = 2,
        .e2e_credits = i == 0,
        .recovery = w.recovery[i],
    };
    unsigned init = QPA_PKEY_INDEX | QPA_PORT, rtr = 0, rts = QPA_SQ_PSN;
    if (i < 3) {
        init |= QPA_ACCESS_FLAGS;
        rtr |= QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN;
    } else {
        init |= QPA_QKEY;
    }
    if (i < 2) {
        rtr |= QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER;
        rts |= QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_MAX_QP_RD_ATOMIC;
    }
    a.state = QPS_INIT;
    CHECK(engine_qp_modify(w.e, qp, &a, QPA_STATE | init, w.now) == 0);
    a.state = QPS_RTR;
    CHECK(engine_qp_modify(w.e, qp, &a, QPA_STATE | rtr, w.now) == 0);
    a.state = QPS_RTS;
    CHECK(engine_qp_modify(w.e, qp, &a, QPA_STATE | rts, w.now) == 0);
}

static void add_qp(unsigned i)
{
    static const enum qp_type types[QPS] = {QP_RC, QP_RC, QP_UC, QP_UD};
    struct engine_qp_params p = {
        .type = types[i],
        .pd = w.pd,
        .send_cq = w.cq,
        .recv_cq = w.cq,
        .srq = i == 1 ? w.srq : NULL,
        .max_send_wr = 8,
        .max_recv_wr = 8,
        .max_send_sge = 4,
        .max_recv_sge = 4,
        .max_inline = 64,
    };
    CHECK(engine_qp_create(w.e, &p, &w.qp[i]) == 0);
    to_rts(w.qp[i], i);
}

static void start(const uint8_t *data, size_t size)
{
    memset(&w, 0, offsetof(struct world, frames));
    w.nburst = w.ncopies = 0;
    w.in = data;
    w.left = size;
    w.now = 1000000;
    struct engine_params p = {
        .hooks = {.cq_push = on_cq, .event = on_event, .mr_freed = on_freed},
        .key = {1, 2},
        .max_qp = 16,
        .mem = {.max_pd = 2, .max_mr = 64, .max_mw = 8, .key = {3, 4}},
        .mac = {2, 0, 0, 0, 0, 2},
        .mtu = 5,
    };
    cc_conf_init(&p.cc, &cc_dcqcn);
    p.cc.v[CC_P_line] = 1000000000; /* so that the limiter has a say */
    w.e = engine_create(&p, w.now);
    CHECK(w.e);
    const struct wire_addr local = wire_addr_v4(0x0A000002);
    CHECK(engine_addr_add(w.e, &local) == 0);
    CHECK(mem_pd_alloc(engine_mem(w.e), &w.pd) == 0);
    CHECK(engine_cq_create(w.e, NULL, &w.cq) == 0);
    const struct engine_srq_params sp = {.pd = w.pd, .max_wr = 8, .max_sge = 4};
    CHECK(engine_srq_create(w.e, &sp, &w.srq) == 0);
    for (unsigned i = 0; i < REGIONS; i++)
        add_region(i);
    CHECK(mem_mw_alloc(engine_mem(w.e), w.pd, 2, &w.window) == 0);
    for (unsigned i = 0; i < QPS; i++) {
        w.recovery[i] = i == 1 ? RECOVER_SR : RECOVER_GBN;
        add_qp(i);
    }
}

static void copies(unsigned n, int status)
{
    if (n > w.ncopies)
        n = w.ncopies;
    for (unsigned i = 0; i < n; i++) {
        const struct engine_copy *c = &w.copies[i];
        struct engine_result r = {.token = c->token, .status = status};
        uint8_t *dst = octets(&c->dst);
        if (c->kind == ENGINE_PUT) {
            CHECK(c->len == c->dst.len);
            w.copies[i].src = w.source[i];
        } else {
            CHECK(c->dst.len == 8 && (c->dst.off & 7) == 0);
        }
        r.orig = step_copy(c, dst);
        free(w.source[i]);
        engine_copied(w.e, &r, 1, w.now);
    }
    w.ncopies -= n;
    memmove(w.copies, w.copies + n, w.ncopies * sizeof(w.copies[0]));
    memmove(w.source, w.source + n, w.ncopies * sizeof(w.source[0]));
}

static void finish(void)
{
    for (unsigned i = 0; i < QPS; i++)
        engine_qp_destroy(w.e, w.qp[i]);
    copies(COPIES, 0);
    struct engine_usage u;
    engine_usage(w.e, &u);
    CHECK(u.qps == 0 && u.records == 0);
    CHECK(engine_srq_destroy(w.e, w.srq) == 0);
    CHECK(engine_cq_destroy(w.e, w.cq) == 0);
    engine_destroy(w.e);
    while (w.all) {
        struct object *next = w.all->next;
        free(w.all);
        w.all = next;
    }
}

/* ---- commands ---- */

static void rx(void)
{
    struct engine_copy *out;
    unsigned done = 0;
    while (done < w.nburst) {
        if (COPIES - w.ncopies < ENGINE_FRAME_COPIES)
            copies(COPIES, 0);
        unsigned n;
        out = w.copies + w.ncopies;
        unsigned k =
            engine_rx(w.e, w.burst + done, w.nburst - done, w.now, out, COPIES - w.ncopies, &n);
        CHECK(k > 0 && n <= k * ENGINE_FRAME_COPIES);
        for (unsigned i = 0; i < n; i++) {
            octets(&out[i].dst);
            w.source[w.ncopies + i] = malloc(out[i].len ? out[i].len : 1);
            if (out[i].kind == ENGINE_PUT) {
                CHECK(out[i].frame < w.nburst - done);
                memcpy(w.source[w.ncopies + i], out[i].src, out[i].len);
            }
        }
        w.ncopies += n;
        done += k;
    }
    w.nburst = 0;
}

static uint32_t some_key(unsigned i)
{
    return i < REGIONS ? w.key[i] : i == 3 ? w.window : i == 4 ? 0 : w.key[0] ^ 1u << i;
}

static void add_frame(size_t len, uint16_t flags)
{
    w.burst[w.nburst] =
        (struct engine_frame){.data = w.frames[w.nburst], .len = (uint32_t)len, .flags = flags};
    if (++w.nburst == BURST)
        rx();
}

static void frame(unsigned arg)
{
    static const uint8_t service[QPS] = {WIRE_RC, WIRE_RC, WIRE_UC, WIRE_UD};
    unsigned i = arg & 3;
    struct engine_qp_info info;
    engine_qp_info(w.e, w.qp[i], &info);
    uint8_t opcode = u8();
    if (!(arg & 8))
        opcode = WIRE_OPCODE(service[i], opcode & 0x1F);
    bool selective = (opcode & 0xE0) == WIRE_SELECTIVE && wire_selective[opcode & 31].name;
    if (selective)
        opcode &= 31;
    uint32_t base = wire_opcodes[opcode].flags & WIRE_F_RESPONSE ? info.una_psn : info.epsn;
    struct wire_pkt p = {
        .dmac = {2, 0, 0, 0, 0, 2},
        .smac = {2, 0, 0, 0, 0, 1},
        .ethertype = 0x0800,
        .ip_version = 4,
        .ttl = 64,
        .ip_flags = 2,
        .sip = wire_addr_v4(0x0A000001),
        .dip = wire_addr_v4(0x0A000002),
        .dport = WIRE_UDP_PORT,
        .opcode = opcode,
        .selective = selective,
        .pkey = WIRE_PKEY_DEFAULT,
        .dqpn = info.qpn,
        .psn = (base + (uint32_t)(int8_t)u8()) & WIRE_PSN_MASK,
        .qkey = QKEY,
        .sqpn = 0x123,
    };
    uint8_t flags = u8();
    p.ackreq = flags & 1;
    p.se = flags & 2;
    p.rkey = some_key(flags >> 5);
    p.va = IOVA + (uint64_t)(int64_t)(int16_t)u16();
    p.dma_len = u16();
    if (p.dma_len == 0xFFFF)
        p.dma_len = 0x80000000u;
    p.payload_len = u16() % 4200;
    if (!(wire_opcodes[opcode].flags & WIRE_F_PAYLOAD))
        p.payload_len = 0;
    p.syndrome = u8();
    p.msn = p.imm = u8();
    p.swap_add = p.compare = p.imm;
    p.sel_recv = p.sel_index = p.imm & 7;
    p.sel_psn = (info.una_psn + p.imm) & WIRE_PSN_MASK;
    uint8_t *buf = w.frames[w.nburst];
    size_t off = wire_build(buf, sizeof(w.frames[0]), &p);
    if (off == 0)
        return;
    size_t len = wire_frame_len(&p);
    memset(buf + off, 0xA5, p.payload_len);
    if (flags & 4) /* another pad count */
        buf[p.bth_off + 1] = (uint8_t)((buf[p.bth_off + 1] & 0xCF) | (flags & 0x18) << 1);
    wire_icrc_seal(buf, len, p.ip_off, p.bth_off);
    add_frame(len, 0);
}

/* Octets as they are; or made to reach the queue pair: addresses, number, PSN and iCRC mended. */
static void bytes(unsigned arg)
{
    static const uint8_t head[] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0};
    uint8_t *buf = w.frames[w.nburst];
    size_t len = u16() % 600;
    for (size_t i = 0; i < len; i++)
        buf[i] = u8();
    struct wire_pkt p;
    if (!(arg & 8) && len >= 62 && buf[14] == 0x45) {
        struct engine_qp_info info;
        engine_qp_info(w.e, w.qp[arg & 3], &info);
        memcpy(buf, head, sizeof(head));
        memcpy(buf + 26, (const uint8_t[]){10, 0, 0, 1, 10, 0, 0, 2}, 8);
        buf[47] = (uint8_t)(info.qpn >> 16);
        buf[48] = (uint8_t)(info.qpn >> 8);
        buf[49] = (uint8_t)info.qpn;
        uint32_t psn = info.epsn + buf[53];
        buf[51] = (uint8_t)(psn >> 16);
        buf[52] = (uint8_t)(psn >> 8);
        buf[53] = (uint8_t)psn;
        if (wire_parse(buf, len, WIRE_P_IP_CSUM_OK | WIRE_P_NO_ICRC, &p) == WIRE_OK)
            wire_icrc_seal(buf, p.icrc_off + WIRE_ICRC_LEN, p.ip_off, p.bth_off);
    }
    add_frame(len, arg & 8 ? 0 : WIRE_P_IP_CSUM_OK);
}

static uint8_t *at(void *arg, const struct mem_piece *p)
{
    (void)arg;
    return octets(p);
}

static int gather(void *arg, const struct engine_slot *s)
{
    const struct engine_slot *fails = arg;
    uint32_t sum = 0;
    CHECK(s->len <= s->cap && s->payload_off + s->payload_len <= s->len);
    for (unsigned k = 0; k < s->npieces; k++)
        sum += s->pieces[k].len;
    CHECK(s->npieces == 0 || sum == s->payload_len);
    step_gather(s, at, NULL);
    return s == fails && s->npieces > 0 ? -EFAULT : 0;
}

static void tx(unsigned fail)
{
    static uint8_t buf[BURST][WIRE_FRAME_MAX];
    static struct engine_slot slots[BURST];
    for (unsigned i = 0; i < BURST; i++)
        slots[i] = (struct engine_slot){.buf = buf[i], .cap = sizeof(buf[i])};
    unsigned m = step_tx(w.e, slots, BURST, w.now, gather, fail < BURST ? &slots[fail] : NULL);
    CHECK(m <= BURST);
    for (unsigned i = 0; i < m; i++) {
        struct wire_pkt p;
        if (slots[i].len == 0)
            continue;
        CHECK(wire_parse(slots[i].buf, slots[i].len, WIRE_P_SELECTIVE, &p) == WIRE_OK);
    }
}

static void post_recv(unsigned arg)
{
    struct engine_sge sge[6];
    struct engine_recv_wr wr = {.wr_id = arg, .sge = sge};
    wr.nsge = u8() % 6;
    for (unsigned i = 0; i < wr.nsge; i++) {
        sge[i].va = IOVA + u8() * 16u;
        sge[i].len = u16();
        sge[i].lkey = some_key(arg >> 2 & 1 ? u8() & 7 : 2);
    }
    unsigned i = arg & 3;
    if (i == 1)
        engine_post_srq_recv(w.e, w.srq, &wr);
    else
        engine_post_recv(w.e, w.qp[i], &wr);
}

static void post_send(unsigned arg)
{
    struct engine_sge sge[6];
    uint8_t data[ENGINE_INLINE_MAX + 1] = {0}, b = u8();
    struct engine_send_wr wr = {
        .opcode = b >= 0xF0 ? WR_FLUSH + b % 2 : b % 11,
        .flags = b >> 4,
        .imm = b >= 0xF0 ? b & 0x1F : 0, /* FETH */
        .rkey = some_key(0),
        .remote_va = IOVA,
        .compare_add = 1,
        .swap = 2,
        .av = {.sgid = wire_addr_v4(0x0A000002), .dgid = wire_addr_v4(0x0A000001)},
        .rqpn = 0x123,
        .rqkey = QKEY,
        .sge = sge,
        .inline_data = data,
        .mw_rkey = w.window,
        .mw_new_rkey = (w.window & ~0xFFu) | ((w.window + 1) & 0xFF),
        .mw_lkey = w.key[0],
        .mw_va = IOVA,
        .mw_len = 64,
        .mw_access = MEM_REMOTE_ANY,
    };
    wr.nsge = u8() % 6;
    wr.inline_len = u8() % 80 < 64 ? 8 : 65;
    for (unsigned i = 0; i < wr.nsge; i++) {
        sge[i].va = IOVA + u8() * 16u;
        sge[i].len = u16() % 2048;
        sge[i].lkey = some_key(arg >> 2 & 1 ? u8() & 7 : 2);
    }
    engine_post_send(w.e, w.qp[arg & 3], &wr, w.now);
}

static void move(unsigned arg)
{
    unsigned i = arg & 3;
    struct engine_qp_attr a = {.state = arg & 8 ? QPS_RESET : QPS_ERR};
    CHECK(engine_qp_modify(w.e, w.qp[i], &a, QPA_STATE, w.now) == 0);
    if (arg & 8)
        to_rts(w.qp[i], i);
}

static void revoke(unsigned arg)
{
    struct mem *m = engine_mem(w.e);
    unsigned i = (arg & 3) % REGIONS;
    uint32_t key;
    if (arg & 8) {
        uint32_t next = (w.window & ~0xFFu) | ((w.window + 1) & 0xFF);
        uint32_t qpn = engine_qp_num(w.qp[0]);
        if (mem_mw_bind(m, w.pd, qpn, w.window, next, w.key[0], IOVA + 8, 4000, MEM_REMOTE_ANY,
                        &key) == 0)
            w.window = key;
        else
            mem_invalidate(m, w.pd, qpn, w.window, false);
        return;
    }
    struct object *o = w.obj[i];
    int err = mem_mr_dereg(m, w.key[i]);
    if (err == -EBUSY)
        return;
    CHECK(err == 0 || err == -EINPROGRESS);
    if (err == 0)
        o->dead = true;
    struct mem_usage u;
    mem_usage(m, &u);
    if (u.mrs > 60)
        copies(COPIES, 0);
    add_region(i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    start(data, size);
    for (unsigned steps = 0; w.left > 0 && steps < 2000; steps++) {
        uint8_t b = u8();
        unsigned arg = b >> 4;
        switch ((b & 15) % CMD_MAX) {
        case CMD_FRAME:
            frame(arg);
            break;
        case CMD_BYTES:
            bytes(arg);
            break;
        case CMD_RX:
            rx();
            break;
        case CMD_COPY:
            copies(arg + 1, 0);
            break;
        case CMD_FAIL:
            copies(arg + 1, -EFAULT);
            break;
        case CMD_TX:
            tx(arg);
            break;
        case CMD_TIME:
            w.now += (uint64_t)u8() << arg << 6;
            engine_expire(w.e, w.now);
            break;
        case CMD_RECV:
            post_recv(arg);
            break;
        case CMD_SEND:
            post_send(arg);
            break;
        case CMD_ERR:
            move(arg);
            break;
        case CMD_RENEW:
            engine_qp_destroy(w.e, w.qp[arg & 3]);
            if (arg & 8)
                w.recovery[arg & 3] = RECOVER_GBN_OOO;
            add_qp(arg & 3);
            break;
        default:
            revoke(arg);
        }
    }
    rx();
    finish();
    return 0;
}
