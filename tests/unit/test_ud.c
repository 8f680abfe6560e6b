/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Receiving datagrams: one queue pair by scripts; several of them, multicast and queue pair 1 by
 * hand.
 */
#include <errno.h>
#include <string.h>

#include "resp_script.h"
#include "unit.h"

#define UD                                                                                         \
    {                                                                                              \
        .type = QP_UD                                                                              \
    }

static const struct script scripts[] = {
    {"UD-05 UD-08 payload begins at octet 40; sender and header area are told", UD,
     "recv 100; < SEND_ONLY 0 len=10 src=0x456; = SUCCESS len=50 grh src=0x456; rbuf 0 40 10 is "
     "0:0; rbuf 0 50 8 clean"},
    {"UD-05 header area and payload over several buffers", UD,
     "recv 7 30 20 100; < SEND_ONLY 0 len=40; = SUCCESS len=80 grh; rbuf 0 40 40 is 0:0; rbuf 0 80 "
     "8 clean"},
    {"UD-05 no payload", UD, "recv 40; < SEND_ONLY 0 len=0; = SUCCESS len=40 grh"},
    {"UD-08 immediate and solicited", UD,
     "recv 44; < SEND_ONLY_IMM 0 len=4 imm=0x01020304 se; = SUCCESS len=44 grh imm=0x01020304 sol"},
    {"UD-03 the PSN doesn't matter", UD,
     "recv 44; recv 44; < SEND_ONLY 9 len=4; < SEND_ONLY 9 len=4; = SUCCESS len=44 grh id=0; = "
     "SUCCESS len=44 grh id=1"},
    {"UD-06 no receive", UD,
     "< SEND_ONLY 0 len=4; count ud_drop_no_wqe 1; count out_of_buffer 1; state RTS"},
    {"UD-07 buffer too small: the receive fails, the queue pair stays", UD,
     "recv 43; recv 44; < SEND_ONLY 0 len=4; = LOC_LEN_ERR id=0; count ud_drop_too_long 1; rbuf 0 "
     "0 43 clean\n"
     "< SEND_ONLY 1 len=4; = SUCCESS len=44 grh id=1; state RTS"},
    {"UD-09 KEY-06 wrong Q_Key", UD,
     "recv 44; < SEND_ONLY 0 len=4 qkey=0x11111112; count rx_bad_qkey 1"},
    {"RSP-13 buffer that isn't writable", UD,
     "recv-bad 100; < SEND_ONLY 0 len=4; = LOC_PROT_ERR; state ERR"},
    {"RSP-13 malformed receive", UD,
     "recv-malformed; < SEND_ONLY 0 len=4; = LOC_QP_OP_ERR; state ERR"},
    {"RSP-24 no completion before the octets are in memory", UD,
     "recv 44; hold; < SEND_ONLY 0 len=4; state RTS; copy; = SUCCESS len=44 grh"},
    {"MR-12 memory that can't be reached", UD,
     "recv 44; hold; < SEND_ONLY 0 len=4; copy fail; = LOC_PROT_ERR; state ERR"},
    {"SRQ-05 UD with a shared receive queue",
     {.type = QP_UD, .srq = true},
     "recv 44; < SEND_ONLY 0 len=4; = SUCCESS len=44 grh; < SEND_ONLY 0 len=4; count "
     "ud_drop_no_wqe 1"},
};

/* ---- several queue pairs ---- */

enum { QPS = 24, ROOM = 128 };

struct many {
    struct engine *e;
    struct cq *cq;
    struct qp *qp[QPS];
    uint32_t pd, lkey;
    struct engine_wc wc[64];
    unsigned nwc, nmad;
    uint8_t mad[256];
    uint8_t frame[2048];
};

static uint8_t buf[QPS][ROOM];

static bool on_cq(void *arg, void *cq_arg, const struct engine_wc *wc)
{
    struct many *m = arg;
    (void)cq_arg;
    m->wc[m->nwc++] = *wc;
    return true;
}

static void on_gsi(void *arg, const struct wire_pkt *pkt, const uint8_t *payload, uint32_t len)
{
    struct many *m = arg;
    ck_assert_uint_eq(pkt->dqpn, WIRE_QPN_GSI);
    memcpy(m->mad, payload, len < 256 ? len : 256);
    m->nmad++;
}

static struct qp *ud_qp_of(struct many *m, enum qp_type type, uint32_t qkey, uint8_t sges)
{
    struct engine_qp_params p = {.type = type,
                                 .pd = m->pd,
                                 .send_cq = m->cq,
                                 .recv_cq = m->cq,
                                 .max_recv_wr = 4,
                                 .max_recv_sge = sges};
    struct engine_qp_attr a = {.state = QPS_INIT, .qkey = qkey, .port = 1};
    struct qp *qp;
    ck_assert_int_eq(engine_qp_create(m->e, &p, &qp), 0);
    unsigned port = type == QP_GSI ? 0 : QPA_PORT;
    ck_assert_int_eq(
        engine_qp_modify(m->e, qp, &a, QPA_STATE | QPA_PKEY_INDEX | QPA_QKEY | port, 0), 0);
    a.state = QPS_RTR;
    ck_assert_int_eq(engine_qp_modify(m->e, qp, &a, QPA_STATE, 0), 0);
    return qp;
}

static struct qp *ud_qp(struct many *m, enum qp_type type, uint32_t qkey)
{
    return ud_qp_of(m, type, qkey, 1);
}

static void post(struct many *m, struct qp *qp, unsigned i)
{
    const struct engine_sge sge = {(uint64_t)(uintptr_t)buf[i], ROOM, m->lkey};
    const struct engine_recv_wr wr = {.wr_id = i, .nsge = 1, .sge = &sge};
    ck_assert_int_eq(engine_post_recv(m->e, qp, &wr), 0);
}

static void setup(struct many *m)
{
    memset(m, 0, sizeof(*m));
    memset(buf, 0xEE, sizeof(buf));
    const struct engine_params p = {
        .hooks = {.cq_push = on_cq, .gsi_rx = on_gsi},
        .hook_arg = m,
        .max_qp = QPS + 1,
        .mem = {.max_pd = 1, .max_mr = 1},
        .mac = {2, 0, 0, 0, 0, 2},
        .mtu = 3,
        .pkeys = {WIRE_PKEY_DEFAULT, 0x9ABC},
    };
    m->e = engine_create(&p, 0);
    const struct wire_addr local = wire_addr_v4(0x0A000002);
    struct wire_addr local6;
    wire_addr_parse("2001:db8::2", &local6);
    ck_assert_int_eq(engine_addr_add(m->e, &local), 0);
    ck_assert_int_eq(engine_addr_add(m->e, &local6), 0);
    ck_assert_int_eq(mem_pd_alloc(engine_mem(m->e), &m->pd), 0);
    ck_assert_int_eq(engine_cq_create(m->e, NULL, &m->cq), 0);
    const struct mem_seg seg = {buf, 0, sizeof(buf)};
    uint32_t rkey;
    ck_assert_int_eq(mem_mr_reg(engine_mem(m->e), m->pd, (uint64_t)(uintptr_t)buf, sizeof(buf),
                                MEM_LOCAL_WRITE, &seg, 1, NULL, &m->lkey, &rkey),
                     0);
}

static struct wire_pkt datagram(const char *dip, uint32_t dqpn, uint32_t qkey, uint32_t len)
{
    struct wire_pkt p = {
        .dmac = {2, 0, 0, 0, 0, 2},
        .smac = {2, 0, 0, 0, 0, 1},
        .ttl = 63,
        .ip_flags = 2,
        .tclass = 0x20,
        .dport = WIRE_UDP_PORT,
        .opcode = WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY),
        .pkey = WIRE_PKEY_DEFAULT,
        .dqpn = dqpn,
        .qkey = qkey,
        .sqpn = 0x777,
        .payload_len = len,
    };
    ck_assert_int_eq(wire_addr_parse(dip, &p.dip), 0);
    ck_assert_int_eq(wire_addr_parse(wire_addr_is_v4(&p.dip) ? "10.0.0.1" : "2001:db8::1", &p.sip),
                     0);
    p.ip_version = wire_addr_is_v4(&p.dip) ? 4 : 6;
    p.ethertype = p.ip_version == 4 ? 0x0800 : 0x86DD;
    if (wire_addr_is_multicast(&p.dip))
        wire_mcast_mac(&p.dip, p.dmac);
    return p;
}

/* Receive it; returns the drop counter. */
static unsigned receive(struct many *m, struct wire_pkt *p)
{
    size_t off = wire_build(m->frame, sizeof(m->frame), p), len = wire_frame_len(p);
    memset(m->frame + off, 0x5A, p->payload_len);
    wire_icrc_seal(m->frame, len, p->ip_off, p->bth_off);
    struct engine_frame f = {.data = m->frame, .len = (uint32_t)len};
    struct engine_copy copies[64];
    unsigned n;
    ck_assert_uint_eq(engine_rx(m->e, &f, 1, 0, copies, 64, &n), 1);
    ck_assert_msg(n <= ENGINE_FRAME_COPIES, "UD-10 more copies than the contract allows");
    for (unsigned i = 0; i < n; i++) {
        const struct engine_copy *c = &copies[i];
        ck_assert(c->dst.obj == buf && c->dst.off + c->dst.len <= sizeof(buf));
        memcpy((uint8_t *)buf + c->dst.off, c->src, c->len);
        const struct engine_result r = {.token = c->token};
        engine_copied(m->e, &r, 1, 0);
    }
    return f.drop;
}

/* UD-05: the header area, octet by octet. */
START_TEST(ud_05_header_area)
{
    static const uint8_t zeros[20];
    struct many m;
    setup(&m);
    struct qp *qp = ud_qp(&m, QP_UD, 5);
    post(&m, qp, 0);
    post(&m, qp, 1);
    struct wire_pkt p = datagram("10.0.0.2", engine_qp_num(qp), 5, 8);
    ck_assert_uint_eq(receive(&m, &p), 0);
    ck_assert_msg(!memcmp(buf[0], zeros, 20), "UD-05 IPv4: octets 0..19 are 0");
    ck_assert_msg(!memcmp(buf[0] + 20, m.frame + 14, 20), "UD-05 IPv4: the header at 20..39");
    ck_assert_msg(buf[0][40] == 0x5A && buf[0][47] == 0x5A && buf[0][48] == 0xEE, "UD-05 payload");
    p = datagram("2001:db8::2", engine_qp_num(qp), 5, 8);
    ck_assert_msg(receive(&m, &p) == 0, "UD-12 any source address");
    ck_assert_msg(!memcmp(buf[1], m.frame + 14, 40), "UD-05 IPv6: the header");
    ck_assert_msg(buf[1][40] == 0x5A && buf[1][48] == 0xEE, "UD-05 payload");
    engine_destroy(m.e);
}
END_TEST

/* UD-05, RSP-13: each octet goes to its own SGE, wherever in memory that is, and to no other. */
START_TEST(ud_05_scattered)
{
    static const struct {
        unsigned row, off;
        uint32_t len;
    } parts[] = {{5, 3, 7}, {2, 10, 0}, {2, 10, 30}, {0, 1, 60}};
    uint8_t want[sizeof(buf)], stream[60] = {0};
    struct engine_sge sge[4];
    struct many m;
    setup(&m);
    struct qp *qp = ud_qp_of(&m, QP_UD, 5, 4);
    for (unsigned i = 0; i < 4; i++)
        sge[i] = (struct engine_sge){(uint64_t)(uintptr_t)(buf[parts[i].row] + parts[i].off),
                                     parts[i].len, m.lkey};
    const struct engine_recv_wr wr = {.nsge = 4, .sge = sge};
    ck_assert_int_eq(engine_post_recv(m.e, qp, &wr), 0);
    struct wire_pkt p = datagram("10.0.0.2", engine_qp_num(qp), 5, 20);
    ck_assert_uint_eq(receive(&m, &p), 0);
    ck_assert_uint_eq(m.nwc, 1);
    ck_assert_uint_eq(m.wc[0].byte_len, 60);
    memcpy(stream + 20, m.frame + p.ip_off, 20);
    memset(stream + 40, 0x5A, 20);
    memset(want, 0xEE, sizeof(want));
    for (unsigned i = 0, at = 0; at < sizeof(stream); i++) {
        unsigned n = sizeof(stream) - at < parts[i].len ? sizeof(stream) - at : parts[i].len;
        memcpy(want + parts[i].row * ROOM + parts[i].off, stream + at, n);
        at += n;
    }
    ck_assert_mem_eq(buf, want, sizeof(want));
    engine_destroy(m.e);
}
END_TEST

/* KEY-04, HDR-04: datagrams of queue pair 1 name their P_Key one by one, also to the same peer. */
START_TEST(key_04_of_each_datagram)
{
    static const uint16_t index[] = {0, 1, 1, 0}, pkey[] = {0xFFFF, 0x9ABC, 0x9ABC, 0xFFFF};
    struct many m;
    setup(&m);
    struct qp *qp = ud_qp(&m, QP_GSI, WIRE_QKEY_GSI);
    struct engine_qp_attr rts = {.state = QPS_RTS};
    ck_assert_int_eq(engine_qp_modify(m.e, qp, &rts, QPA_STATE | QPA_SQ_PSN, 0), 0);
    for (unsigned i = 0; i < 4; i++) {
        const struct engine_sge sge = {(uint64_t)(uintptr_t)buf[0], 16, m.lkey};
        struct engine_send_wr wr = {
            .opcode = WR_SEND, .nsge = 1, .sge = &sge, .rqpn = 1, .pkey_index = index[i]};
        wire_addr_parse("10.0.0.2", &wr.av.sgid);
        wire_addr_parse("10.0.0.9", &wr.av.dgid);
        ck_assert_int_eq(engine_post_send(m.e, qp, &wr, 0), 0);
        struct engine_slot slot = {.buf = m.frame, .cap = sizeof(m.frame)};
        ck_assert_uint_eq(engine_tx(m.e, &slot, 1, 0), 1);
        wire_icrc_seal(m.frame, slot.len, slot.ip_off, slot.bth_off);
        engine_sent(m.e, &slot, 1, 0);
        struct wire_pkt sent;
        ck_assert_int_eq(wire_parse(m.frame, slot.len, 0, &sent), WIRE_OK);
        ck_assert_uint_eq(sent.pkey, pkey[i]);
        ck_assert_uint_eq(sent.migreq, 0);
    }
    engine_destroy(m.e);
}
END_TEST

/* UD-03: each datagram takes the whole path of its own work request, also to a queue pair of the
 * same number as before. */
START_TEST(ud_03_path_of_each_datagram)
{
    struct many m;
    setup(&m);
    struct qp *qp = ud_qp(&m, QP_UD, 5);
    struct engine_qp_attr rts = {.state = QPS_RTS};
    ck_assert_int_eq(engine_qp_modify(m.e, qp, &rts, QPA_STATE | QPA_SQ_PSN, 0), 0);
    const struct engine_sge sge = {(uint64_t)(uintptr_t)buf[0], 16, m.lkey};
    struct engine_send_wr wr = {.opcode = WR_SEND, .nsge = 1, .sge = &sge, .rqpn = 9, .rqkey = 5};
    wire_addr_parse("10.0.0.2", &wr.av.sgid);
    wire_addr_parse("10.0.0.9", &wr.av.dgid);
    wr.av.hop_limit = 3;
    for (unsigned i = 0; i < 7; i++) {
        if (i == 1)
            wire_addr_parse("10.0.0.8", &wr.av.dgid);
        else if (i == 2)
            wire_addr_parse("10.0.0.3", &wr.av.sgid);
        else if (i == 3)
            wr.av.dmac[5] = 0x77;
        else if (i == 4)
            wr.av.tclass = 0x20;
        else if (i == 5)
            wr.av.hop_limit = 9;
        else if (i == 6)
            wr.rqpn = 10;
        ck_assert_int_eq(engine_post_send(m.e, qp, &wr, 0), 0);
        struct engine_slot slot = {.buf = m.frame, .cap = sizeof(m.frame)};
        ck_assert_uint_eq(engine_tx(m.e, &slot, 1, 0), 1);
        wire_icrc_seal(m.frame, slot.len, slot.ip_off, slot.bth_off);
        engine_sent(m.e, &slot, 1, 0);
        struct wire_pkt sent;
        ck_assert_int_eq(wire_parse(m.frame, slot.len, 0, &sent), WIRE_OK);
        ck_assert_mem_eq(&sent.dip, &wr.av.dgid, sizeof(sent.dip));
        ck_assert_mem_eq(&sent.sip, &wr.av.sgid, sizeof(sent.sip));
        ck_assert_mem_eq(sent.dmac, wr.av.dmac, 6);
        ck_assert_uint_eq(sent.tclass, wr.av.tclass);
        ck_assert_uint_eq(m.frame[sent.ip_off + 8], wr.av.hop_limit);
        ck_assert_uint_eq(sent.dqpn, wr.rqpn);
    }
    engine_destroy(m.e);
}
END_TEST

/* UD-10, UD-11, SEC-28: a copy for each attached queue pair whose keys match. */
START_TEST(ud_10_multicast)
{
    static const struct {
        const char *addr;
    } groups[] = {{"224.0.0.5"}, {"ff12::5"}};
    struct many m;
    struct wire_addr g;
    setup(&m);
    wire_addr_parse(groups[_i].addr, &g);
    for (unsigned i = 0; i < 4; i++) {
        m.qp[i] = ud_qp(&m, QP_UD, i == 3 ? 6 : 5);
        post(&m, m.qp[i], i);
        if (i != 2)
            ck_assert_int_eq(engine_mcast_attach(m.e, m.qp[i], &g), 0);
    }
    ck_assert_int_eq(engine_mcast_attach(m.e, m.qp[0], &g), 0);
    struct wire_pkt p = datagram(groups[_i].addr, WIRE_QPN_MULTICAST, 5, 8);
    ck_assert_uint_eq(receive(&m, &p), 0);
    ck_assert_msg(m.nwc == 2, "UD-10 one copy for each member with that Q_Key: %u", m.nwc);
    ck_assert_msg(buf[0][40] == 0x5A && buf[1][40] == 0x5A, "UD-10 members");
    ck_assert_msg(buf[2][40] == 0xEE, "UD-11 not attached");
    ck_assert_msg(buf[3][40] == 0xEE, "UD-10 Q_Key differs");
    struct engine_slot slot = {.buf = m.frame, .cap = sizeof(m.frame)};
    ck_assert_msg(engine_tx(m.e, &slot, 1, 0) == 0, "SEC-28 nobody answers");
    p = datagram(groups[_i].addr, WIRE_QPN_MULTICAST, 7, 8);
    ck_assert_msg(receive(&m, &p) == ENGINE_C_rx_bad_qkey, "UD-10 nobody has that Q_Key");
    p = datagram(groups[_i].addr, WIRE_QPN_MULTICAST, 5, 8);
    p.pkey = 0x8001;
    ck_assert_msg(receive(&m, &p) == ENGINE_C_rx_bad_pkey, "UD-10 nobody has that P_Key");
    p = datagram(groups[_i].addr, engine_qp_num(m.qp[0]), 5, 8);
    ck_assert_msg(receive(&m, &p) == ENGINE_C_rx_bad_qpn, "UD-10 group address, another DestQP");
    p = datagram("10.0.0.2", WIRE_QPN_MULTICAST, 5, 8);
    ck_assert_msg(receive(&m, &p) == ENGINE_C_rx_bad_qpn, "UD-10 0xFFFFFF to a unicast address");
    struct engine_qp_attr err = {.state = QPS_ERR};
    post(&m, m.qp[0], 0);
    ck_assert_int_eq(engine_qp_modify(m.e, m.qp[1], &err, QPA_STATE, 0), 0);
    m.nwc = 0;
    p = datagram(groups[_i].addr, WIRE_QPN_MULTICAST, 5, 8);
    ck_assert_uint_eq(receive(&m, &p), 0);
    ck_assert_msg(m.nwc == 1, "VAL-04 a member in ERR gets nothing");
    ck_assert_int_eq(engine_mcast_detach(m.e, m.qp[0], &g), 0);
    ck_assert_msg(engine_mcast_detach(m.e, m.qp[0], &g) == -EINVAL, "UD-11 not attached any more");
    engine_qp_destroy(m.e, m.qp[1]);
    ck_assert_int_eq(engine_mcast_detach(m.e, m.qp[3], &g), 0);
    p = datagram(groups[_i].addr, WIRE_QPN_MULTICAST, 5, 8);
    ck_assert_msg(receive(&m, &p) == ENGINE_C_rx_mcast_no_group, "UD-11 nobody is attached");
    engine_destroy(m.e);
}
END_TEST

START_TEST(ud_11_who_may_attach)
{
    struct many m;
    struct wire_addr g, u = wire_addr_v4(0x0A000002);
    setup(&m);
    wire_addr_parse("224.0.0.5", &g);
    struct engine_qp_params p = {.type = QP_RC, .pd = m.pd, .send_cq = m.cq, .recv_cq = m.cq};
    struct qp *rc, *ud = ud_qp(&m, QP_UD, 5);
    ck_assert_int_eq(engine_qp_create(m.e, &p, &rc), 0);
    ck_assert_msg(engine_mcast_attach(m.e, rc, &g) == -EINVAL, "UD-11 RC");
    ck_assert_msg(engine_mcast_attach(m.e, ud, &u) == -EINVAL, "UD-11 unicast address");
    engine_destroy(m.e);
}
END_TEST

/* VAL-04 VAL-05 UD-10: which states of a member take a copy; another one's state doesn't matter. */
START_TEST(val_04_states_of_members)
{
    static const struct {
        enum qp_state state;
        unsigned mask;
        bool takes;
    } steps[] = {
        {QPS_RESET, 0, false}, {QPS_INIT, QPA_PKEY_INDEX | QPA_QKEY | QPA_PORT, false},
        {QPS_RTR, 0, true},    {QPS_RTS, QPA_SQ_PSN, true},
        {QPS_SQD, 0, true},    {QPS_ERR, 0, false},
        {QPS_RESET, 0, false},
    };
    struct many m;
    struct wire_addr g;
    setup(&m);
    wire_addr_parse("224.0.0.5", &g);
    struct qp *qp = m.qp[0] = ud_qp(&m, QP_UD, 5);
    m.qp[1] = ud_qp(&m, QP_UD, 5);
    ck_assert_int_eq(engine_mcast_attach(m.e, qp, &g), 0);
    for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        struct engine_qp_attr a = {.state = steps[i].state, .qkey = 5, .port = 1};
        ck_assert_int_eq(engine_qp_modify(m.e, qp, &a, QPA_STATE | steps[i].mask, 0), 0);
        if (a.state != QPS_RESET && a.state != QPS_ERR)
            post(&m, qp, 0);
        m.nwc = 0;
        struct wire_pkt p = datagram("224.0.0.5", WIRE_QPN_MULTICAST, 5, 8);
        ck_assert_uint_eq(receive(&m, &p), steps[i].takes ? 0 : ENGINE_C_rx_bad_qp_state);
        ck_assert_msg(m.nwc == steps[i].takes, "VAL-04 in state %d", steps[i].state);
        ck_assert_int_eq(engine_mcast_attach(m.e, m.qp[1], &g), 0);
        post(&m, m.qp[1], 1);
        p = datagram("224.0.0.5", WIRE_QPN_MULTICAST, 5, 8);
        m.nwc = 0;
        ck_assert_uint_ne(receive(&m, &p), ENGINE_C_rx_bad_qp_state);
        ck_assert(m.nwc > 0 && m.wc[m.nwc - 1].wr_id == 1);
        ck_assert_int_eq(engine_mcast_detach(m.e, m.qp[1], &g), 0);
    }
    engine_destroy(m.e);
}
END_TEST

static void check_groups(const struct many *m, unsigned n, const struct wire_addr *groups[])
{
    struct wire_addr got = {{0}};
    for (unsigned i = 0; i < n; i++) {
        ck_assert(engine_mcast_get(m->e, i, &got));
        ck_assert_mem_eq(&got, groups[i], sizeof(got));
    }
    ck_assert(!engine_mcast_get(m->e, n, &got));
    ck_assert(!engine_mcast_get(m->e, n + 1, &got));
}

/* UD-11: several groups with several members, of which each knows its own; a group is there until
 * its last member leaves or ends. */
START_TEST(ud_11_several_groups)
{
    struct many m;
    struct wire_addr g[4];
    setup(&m);
    wire_addr_parse("224.0.0.5", &g[0]);
    wire_addr_parse("224.0.0.6", &g[1]);
    wire_addr_parse("ff12::5", &g[2]);
    wire_addr_parse("ff12::6", &g[3]);
    for (unsigned i = 0; i < 3; i++)
        m.qp[i] = ud_qp(&m, QP_UD, 5);
    struct qp *a = m.qp[0], *b = m.qp[1], *c = m.qp[2];
    check_groups(&m, 0, NULL);
    for (unsigned twice = 0; twice < 2; twice++) {
        ck_assert_int_eq(engine_mcast_attach(m.e, a, &g[0]), 0);
        ck_assert_int_eq(engine_mcast_attach(m.e, b, &g[1]), 0);
        ck_assert_int_eq(engine_mcast_attach(m.e, a, &g[2]), 0);
        ck_assert_int_eq(engine_mcast_attach(m.e, b, &g[2]), 0);
        ck_assert_int_eq(engine_mcast_attach(m.e, a, &g[3]), 0);
        ck_assert_uint_eq(engine_mcast_count(m.e, a), 3);
        ck_assert_uint_eq(engine_mcast_count(m.e, b), 2);
        ck_assert_uint_eq(engine_mcast_count(m.e, c), 0);
        check_groups(&m, 4, (const struct wire_addr *[]){&g[0], &g[1], &g[2], &g[3]});
    }
    post(&m, a, 0);
    post(&m, b, 1);
    struct wire_pkt p = datagram("224.0.0.6", WIRE_QPN_MULTICAST, 5, 8);
    ck_assert_uint_eq(receive(&m, &p), 0);
    ck_assert_msg(m.nwc == 1 && m.wc[0].wr_id == 1, "UD-10 the second group's only member");
    ck_assert_msg(engine_mcast_detach(m.e, a, &g[1]) == -EINVAL, "UD-11 in other groups only");
    ck_assert_msg(engine_mcast_detach(m.e, c, &g[2]) == -EINVAL, "UD-11 in none");
    engine_qp_destroy(m.e, a);
    check_groups(&m, 2, (const struct wire_addr *[]){&g[1], &g[2]});
    ck_assert_uint_eq(engine_mcast_count(m.e, b), 2);
    ck_assert_int_eq(engine_mcast_detach(m.e, b, &g[1]), 0);
    ck_assert_msg(engine_mcast_detach(m.e, b, &g[1]) == -EINVAL, "UD-11 nobody is attached");
    check_groups(&m, 1, (const struct wire_addr *[]){&g[2]});
    ck_assert_int_eq(engine_mcast_attach(m.e, c, &g[2]), 0);
    post(&m, c, 2);
    p = datagram("ff12::5", WIRE_QPN_MULTICAST, 5, 8);
    m.nwc = 0;
    ck_assert_msg(receive(&m, &p) == ENGINE_C_ud_drop_no_wqe, "UD-06 b has no receive any more");
    ck_assert_msg(m.nwc == 1 && m.wc[0].wr_id == 2, "UD-10 the new member's");
    engine_destroy(m.e);
}
END_TEST

/* UD-09: an impossible source is refused before any member gets a copy. */
START_TEST(ud_09_source_of_a_group)
{
    struct many m;
    struct wire_addr g;
    setup(&m);
    wire_addr_parse("224.0.0.5", &g);
    m.qp[0] = ud_qp(&m, QP_UD, 5);
    post(&m, m.qp[0], 0);
    struct wire_pkt p = datagram("224.0.0.5", WIRE_QPN_MULTICAST, 5, 8);
    p.sqpn = 0;
    ck_assert_uint_eq(receive(&m, &p), ENGINE_C_rx_mcast_no_group);
    ck_assert_int_eq(engine_mcast_attach(m.e, m.qp[0], &g), 0);
    p = datagram("224.0.0.5", WIRE_QPN_MULTICAST, 5, 8);
    p.sqpn = 0;
    ck_assert_uint_eq(receive(&m, &p), ENGINE_C_rx_bad_srcqp);
    ck_assert_uint_eq(m.nwc, 0);
    engine_destroy(m.e);
}
END_TEST

/* UD-10: the copies that one frame may make are counted for each frame of a burst by itself. */
START_TEST(ud_10_burst)
{
    enum { FRAMES = 3, MEMBERS = 4 };
    struct many m;
    struct wire_addr g;
    setup(&m);
    wire_addr_parse("224.0.0.5", &g);
    for (unsigned i = 0; i < MEMBERS; i++) {
        m.qp[i] = ud_qp(&m, QP_UD, 5);
        for (unsigned k = 0; k < FRAMES; k++)
            post(&m, m.qp[i], i * FRAMES + k);
        ck_assert_int_eq(engine_mcast_attach(m.e, m.qp[i], &g), 0);
    }
    struct wire_pkt p = datagram("224.0.0.5", WIRE_QPN_MULTICAST, 5, 8);
    size_t len = wire_frame_len(&p);
    ck_assert_uint_eq(wire_build(m.frame, sizeof(m.frame), &p), len - 8 - WIRE_ICRC_LEN);
    wire_icrc_seal(m.frame, len, p.ip_off, p.bth_off);
    struct engine_frame f[FRAMES];
    struct engine_copy copies[FRAMES * ENGINE_FRAME_COPIES];
    unsigned n;
    for (unsigned k = 0; k < FRAMES; k++)
        f[k] = (struct engine_frame){.data = m.frame, .len = (uint32_t)len};
    ck_assert_uint_eq(engine_rx(m.e, f, FRAMES, 0, copies, FRAMES * ENGINE_FRAME_COPIES, &n),
                      FRAMES);
    ck_assert_msg(n == FRAMES * MEMBERS * 3, "UD-05 UD-10 zeros, IP header, payload: %u", n);
    for (unsigned i = 0; i < n; i++) {
        const struct engine_result r = {.token = copies[i].token};
        engine_copied(m.e, &r, 1, 0);
    }
    ck_assert_uint_eq(m.nwc, FRAMES * MEMBERS);
    engine_destroy(m.e);
}
END_TEST

/* UD-10: more members than copies may come from one frame: some get nothing, nothing breaks. IPv4
 * takes three copies for each member, IPv6 two; there must be room for eight. */
START_TEST(ud_10_many_members)
{
    static const struct {
        const char *addr;
        unsigned takes;
    } groups[] = {{"224.0.0.5", 11}, {"ff12::5", 17}};
    struct many m;
    struct wire_addr g;
    setup(&m);
    wire_addr_parse(groups[_i].addr, &g);
    for (unsigned i = 0; i < QPS; i++) {
        m.qp[i] = ud_qp(&m, QP_UD, 5);
        post(&m, m.qp[i], i);
        ck_assert_int_eq(engine_mcast_attach(m.e, m.qp[i], &g), 0);
    }
    struct wire_pkt p = datagram(groups[_i].addr, WIRE_QPN_MULTICAST, 5, 8);
    ck_assert_uint_eq(receive(&m, &p), 0);
    ck_assert_uint_eq(m.nwc, groups[_i].takes);
    for (unsigned i = 0; i < QPS; i++) {
        struct engine_qp_info info;
        engine_qp_info(m.e, m.qp[i], &info);
        ck_assert_uint_eq(info.rx_packets, i < groups[_i].takes);
        ck_assert_uint_eq(info.rx_bytes, i < groups[_i].takes ? wire_frame_len(&p) : 0);
    }
    for (unsigned i = 0; i < QPS; i++)
        ck_assert_int_eq(engine_mcast_detach(m.e, m.qp[i], &g), 0);
    engine_destroy(m.e);
}
END_TEST

/* GSI-01, KEY-04, KEY-07: MADs go to the hook, or to queue pair 1 when there is one. */
START_TEST(gsi_01_mads)
{
    struct many m;
    setup(&m);
    struct wire_pkt p = datagram("10.0.0.2", WIRE_QPN_GSI, WIRE_QKEY_GSI, 256);
    ck_assert_uint_eq(receive(&m, &p), 0);
    ck_assert_msg(m.nmad == 1 && m.mad[255] == 0x5A, "GSI-01 handed to the hook");
    p = datagram("10.0.0.2", WIRE_QPN_GSI, 5, 256);
    ck_assert_msg(receive(&m, &p) == ENGINE_C_rx_bad_qkey, "KEY-07 another Q_Key");
    p = datagram("10.0.0.2", WIRE_QPN_GSI, WIRE_QKEY_GSI, 64);
    p.pkey = 0x8001;
    ck_assert_msg(receive(&m, &p) == ENGINE_C_rx_bad_pkey, "KEY-04 P_Key not in the table");
    struct qp *qp1 = ud_qp(&m, QP_GSI, WIRE_QKEY_GSI), *second;
    struct engine_qp_params params = {.type = QP_GSI, .pd = m.pd, .send_cq = m.cq, .recv_cq = m.cq};
    ck_assert_msg(engine_qp_create(m.e, &params, &second) == -EINVAL, "GSI-01 there is one");
    struct engine_qp_attr a = {.state = QPS_RESET, .qkey = WIRE_QKEY_GSI};
    ck_assert_int_eq(engine_qp_modify(m.e, qp1, &a, QPA_STATE, 0), 0);
    a.state = QPS_INIT;
    ck_assert_int_eq(engine_qp_modify(m.e, qp1, &a, QPA_STATE | QPA_PKEY_INDEX | QPA_QKEY, 0), 0);
    post(&m, qp1, 0);
    p = datagram("10.0.0.2", WIRE_QPN_GSI, WIRE_QKEY_GSI, 64);
    ck_assert_uint_eq(receive(&m, &p), 0);
    ck_assert_msg(m.nwc == 0 && m.nmad == 2, "VAL-05 queue pair 1 takes nothing in INIT");
    a.state = QPS_RTR;
    ck_assert_int_eq(engine_qp_modify(m.e, qp1, &a, QPA_STATE, 0), 0);
    p = datagram("10.0.0.2", WIRE_QPN_GSI, WIRE_QKEY_GSI, 64);
    ck_assert_uint_eq(receive(&m, &p), 0);
    ck_assert_msg(m.nwc == 1 && m.nmad == 2 && m.wc[0].src_qpn == 0x777 && m.wc[0].byte_len == 104,
                  "UD-08 queue pair 1 receives as any other");
    engine_destroy(m.e);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ud");
    TCase *t = tcase_create("calls");
    tcase_add_test(t, ud_05_header_area);
    tcase_add_test(t, ud_05_scattered);
    tcase_add_test(t, key_04_of_each_datagram);
    tcase_add_test(t, ud_03_path_of_each_datagram);
    tcase_add_loop_test(t, ud_10_multicast, 0, 2);
    tcase_add_test(t, ud_11_who_may_attach);
    tcase_add_test(t, val_04_states_of_members);
    tcase_add_test(t, ud_11_several_groups);
    tcase_add_test(t, ud_09_source_of_a_group);
    tcase_add_test(t, ud_10_burst);
    tcase_add_loop_test(t, ud_10_many_members, 0, 2);
    tcase_add_test(t, gsi_01_mads);
    suite_add_tcase(s, t);
    int failed = unit_run(s);
    return script_main("ud, by packets", scripts, sizeof(scripts) / sizeof(scripts[0])) || failed;
}
