/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See lint_rig.h.
 */
#include "lint_rig.h"

#include "unit.h"
#include "wire_bytes.h"

const struct step steps_rc[] = {
    SEND(100, 64),
    ACK(100, 1),
    {.opcode = RC(WRITE_FIRST), .psn = 101, .len = 1024, .dma_len = 2501, .va = 0x1000},
    {.opcode = RC(WRITE_MIDDLE), .psn = 102, .len = 1024},
    {.opcode = RC(WRITE_LAST), .psn = 103, .len = 453, .ackreq = true},
    /* 5 */ ACK(103, 2),
    {.opcode = RC(READ_REQUEST), .psn = 104, .dma_len = 2500, .va = 0x2000},
    RESP(READ_RESP_FIRST, 104, 1024, 3),
    RESP(READ_RESP_MIDDLE, 105, 1024, 0),
    RESP(READ_RESP_LAST, 106, 452, 3),
    /* 10 */ {.opcode = RC(FETCH_ADD), .psn = 107, .va = 0x3000},
    RESP(ATOMIC_ACK, 107, 0, 4),
    SEND(108, 13),
    ACK(108, 5),
    SEND(109, 64),
    /* 15 */ ACK(109, 6),
    SEND(110, 64),
    ACK(110, 7),
    {.opcode = RC(FETCH_ADD), .psn = 107, .va = 0x3000, .after = 5000},
    RESP(ATOMIC_ACK, 107, 0, 7),
    /* 20 */
    {.opcode = RC(WRITE_ONLY), .psn = 111, .len = 13, .dma_len = 13, .ackreq = true, .va = 0x1000},
    ACK(111, 8),
    END};

/* 101 and 103 are lost before the capture, and asked for. */
const struct step steps_loss[] = {SEND(100, 64),
                                  ACK(100, 1),
                                  {.opcode = RC(SEND_ONLY), .psn = 101, .len = 64, .gone = true},
                                  SEND(102, 64),
                                  NAK(101, 0x60, 1),
                                  /* 5 */ SEND(101, 64),
                                  SEND(102, 64),
                                  ACK(102, 3),
                                  SEND(103, 64),
                                  ACK(103, 4),
                                  END};

const struct step steps_rnr[] = {
    SEND(100, 64),
    ACK(100, 1),
    SEND(101, 64),
    NAK(101, 0x20 | 14, 1),
    {.opcode = RC(SEND_ONLY), .psn = 101, .len = 64, .ackreq = true, .after = 1400},
    ACK(101, 2),
    END};

/* Two READs; of each the second response is lost, and the READ repeated from there. */
const struct step steps_reread[] = {
    {.opcode = RC(READ_REQUEST), .psn = 100, .dma_len = 3072, .va = 0x1000},
    RESP(READ_RESP_FIRST, 100, 1024, 1),
    {.from_b = true, .opcode = RC(READ_RESP_MIDDLE), .psn = 101, .len = 1024, .gone = true},
    RESP(READ_RESP_LAST, 102, 1024, 1),
    {.opcode = RC(READ_REQUEST), .psn = 101, .dma_len = 2048, .va = 0x1400},
    /* 5 */ RESP(READ_RESP_FIRST, 101, 1024, 1),
    RESP(READ_RESP_LAST, 102, 1024, 1),
    {.opcode = RC(READ_REQUEST), .psn = 103, .dma_len = 3072, .va = 0x1000},
    RESP(READ_RESP_FIRST, 103, 1024, 2),
    {.from_b = true, .opcode = RC(READ_RESP_MIDDLE), .psn = 104, .len = 1024, .gone = true},
    /* 10 */ RESP(READ_RESP_LAST, 105, 1024, 2),
    {.opcode = RC(READ_REQUEST), .psn = 104, .dma_len = 2048, .va = 0x1400},
    RESP(READ_RESP_FIRST, 104, 1024, 2),
    RESP(READ_RESP_LAST, 105, 1024, 2),
    {.opcode = RC(READ_REQUEST), .psn = 106, .dma_len = 10, .va = 0x1000},
    /* 15 */ RESP(READ_RESP_ONLY, 106, 10, 3),
    END};

const struct step steps_fatal[] = {
    {.opcode = RC(WRITE_ONLY), .psn = 100, .len = 64, .dma_len = 64, .ackreq = true},
    NAK(100, 0x62, 0),
    {.opcode = RC(SEND_ONLY), .psn = 101, .len = 8},
    END};

const struct step steps_uc[] = {{.opcode = UC(SEND_FIRST), .psn = 5, .len = 1024},
                                {.opcode = UC(SEND_MIDDLE), .psn = 6, .len = 1024},
                                {.opcode = UC(SEND_LAST), .psn = 7, .len = 4},
                                {.opcode = UC(WRITE_ONLY), .psn = 8, .len = 64, .dma_len = 64},
                                {.opcode = UC(SEND_ONLY), .psn = 9, .len = 64},
                                {.opcode = WIRE_OPCODE_CNP, .from_b = true},
                                END};

const struct step steps_ud[] = {
    {.opcode = UD_SEND, .psn = 1, .len = 64}, {.opcode = UD_SEND, .psn = 2, .len = 64}, END};

/* A connection from its beginning to its end. Each side sends from the PSN that the other named. */
const struct step steps_cm[] = {
    {.cm = CM_REQ},
    {.cm = CM_REP, .from_b = true},
    {.cm = CM_RTU},
    SEND(100, 64),
    ACK(100, 1),
    /* 5 */ {.opcode = RC(WRITE_FIRST), .psn = 101, .len = 1024, .dma_len = 2048},
    {.opcode = RC(WRITE_LAST), .psn = 102, .len = 1024, .ackreq = true},
    ACK(102, 2),
    {.opcode = RC(READ_REQUEST), .psn = 103, .dma_len = 8},
    RESP(READ_RESP_ONLY, 103, 8, 3),
    /* 10 */ {.opcode = RC(READ_REQUEST), .psn = 104, .dma_len = 8},
    RESP(READ_RESP_ONLY, 104, 8, 4),
    {.cm = CM_REQ},
    {.cm = CM_DREQ},
    {.cm = CM_DREP, .from_b = true},
    END};

/* No more answers: the retry count of 2 allows three transmissions. */
const struct step steps_dead[] = {
    {.cm = CM_REQ},
    {.cm = CM_REP, .from_b = true},
    {.cm = CM_RTU},
    SEND(100, 64),
    ACK(100, 1),
    /* 5 */ SEND(101, 64),
    {.opcode = RC(SEND_ONLY), .psn = 101, .len = 64, .ackreq = true, .after = 5000},
    {.opcode = RC(SEND_ONLY), .psn = 101, .len = 64, .ackreq = true, .after = 5000},
    END};

/* ---- building ---- */

const char *const nets[NETS] = {"", ", ids all the same", ", ids 0", ", IPv6"};

static void fill_cm(const struct step *s, struct cm_msg *m)
{
    *m = (struct cm_msg){
        .attr = (uint16_t)s->cm,
        .tid = 0x77,
        .local_id = s->from_b ? 0xBB : 0xAA,
        .remote_id = s->cm == CM_REQ ? 0
                     : s->from_b     ? 0xAA
                                     : 0xBB,
        .service_id = 0x0000000001061389,
        .qpn = s->from_b ? B_QPN : A_QPN,
        .psn = s->from_b ? 100 : 500,
        .resp_res = 1,
        .init_depth = 1,
        .mtu = 3,
        .retry_count = 2,
        .max_retries = 15,
        .remote_qpn = s->from_b ? A_QPN : B_QPN,
        .priv = {0, 0x40},
        .priv_len = 36,
    };
    if (s->cm == CM_DREQ || s->cm == CM_DREP)
        m->tid = 0x99;
    if (s->cm == CM_MRA || s->cm == CM_REJ || s->cm == CM_RTU || s->cm == CM_DREQ ||
        s->cm == CM_DREP)
        m->priv_len = 0;
}

static void make(struct packet *out, const struct step *s, unsigned id, uint64_t ns, enum net net,
                 const struct row *row, bool hit)
{
    struct step t = *s;
    struct wire_pkt *p = &out->p;
    uint8_t mad[CM_MAD_LEN];
    if (hit && row->step)
        row->step(&t);
    if (t.cm) {
        struct cm_msg m;
        fill_cm(&t, &m);
        if (hit && row->cm)
            row->cm(&m);
        ck_assert_int_eq(cm_msg_pack(mad, &m), 0);
        t.opcode = UD_SEND;
        t.len = sizeof(mad);
        t.psn = id;
    }
    *p = (struct wire_pkt){
        .dmac = {2, 0, 0, 0, 0, t.from_b ? 1 : 2},
        .smac = {2, 0, 0, 0, 0, t.from_b ? 2 : 1},
        .ip_version = net == NET_IPV6 ? 6 : 4,
        .ttl = 64,
        .ip_id = (uint16_t)(net == NET_COUNT ? 100 + id : net == NET_SAME),
        .ip_flags = 2,
        .sip = wire_addr_v4(t.from_b ? 0x0A000002 : 0x0A000001),
        .dip = wire_addr_v4(t.from_b ? 0x0A000001 : 0x0A000002),
        .sport = 0xC123,
        .opcode = t.opcode,
        .migreq = t.opcode != WIRE_OPCODE_CNP,
        .becn = t.opcode == WIRE_OPCODE_CNP,
        .ackreq = t.ackreq,
        .pkey = 0xFFFF,
        .dqpn = t.cm       ? 1
                : t.from_b ? A_QPN
                           : B_QPN,
        .psn = t.psn,
        .va = t.va,
        .rkey = 5,
        .dma_len = t.dma_len,
        .feth = WIRE_FETH_GLOBAL,
        .swap_add = 1,
        .orig = 5,
        .syndrome = t.syndrome,
        .msn = t.msn,
        .qkey = t.cm ? WIRE_QKEY_GSI : 0x1234,
        .sqpn = t.cm ? 1 : A_QPN,
        .payload_len = t.len,
    };
    if (net == NET_IPV6) {
        wire_addr_parse(t.from_b ? "fd00::2" : "fd00::1", &p->sip);
        wire_addr_parse(t.from_b ? "fd00::1" : "fd00::2", &p->dip);
    }
    if (hit && row->pkt)
        row->pkt(p);
    out->len = wire_frame_len(p);
    ck_assert_uint_le(out->len, sizeof(out->f));
    size_t at = wire_build(out->f, sizeof(out->f), p);
    ck_assert_uint_gt(at, 0);
    for (uint32_t i = 0; i < p->payload_len; i++)
        out->f[at + i] = t.cm ? mad[i] : (uint8_t)(p->psn * 7 + i);
    wire_icrc_seal(out->f, out->len, p->ip_off, p->bth_off);
    if (hit && row->octets) {
        row->octets(out);
        if (!row->keep_icrc)
            wire_put32le(out->f + out->len - 4, wire_icrc(out->f, out->len, p->ip_off, p->bth_off));
    }
    out->ns = ns;
}

void build(struct run *r, const struct row *row, enum net net)
{
    uint64_t ns = 1000000;
    r->n = 0;
    for (int i = 0; row->steps[i].opcode != 0xFF; i++) {
        const struct step *s = &row->steps[i];
        struct step t = *s;
        bool hit = row->at == i || row->at == ALL;
        if (hit && row->step)
            row->step(&t);
        ns += (t.after ? t.after : 10) * US;
        r->at[i] = (unsigned)r->n + 1;
        if (s->gone)
            continue;
        make(&r->packet[r->n], s, (unsigned)r->n, ns, net, row, hit);
        r->n++;
        if (row->extra && row->at == i) {
            make(&r->packet[r->n], row->extra, (unsigned)r->n + 50, ns + US, net, row, false);
            r->at[i] = (unsigned)r->n + 1;
            r->n++;
        }
    }
}

/* ---- judging ---- */

void keep_finding(void *ctx, const struct lint_finding *f)
{
    struct found *found = ctx;
    if (found->n < 32)
        found->f[found->n++] = *f;
}

void judge(const struct run *r, struct found *found, struct lint_totals *t)
{
    struct lint *l = lint_new(keep_finding, found, 0);
    found->n = 0;
    for (int i = 0; i < r->n; i++) {
        struct lint_frame f = {.number = (uint64_t)i + 1,
                               .ns = r->packet[i].ns,
                               .data = r->packet[i].f,
                               .len = (uint32_t)r->packet[i].len,
                               .wire_len = (uint32_t)r->packet[i].len};
        lint_packet(l, &f, NULL);
    }
    lint_end(l);
    lint_totals(l, t);
    lint_free(l);
}
