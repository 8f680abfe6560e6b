/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Each rule that lint knows, broken once: a good exchange, one packet changed, and exactly that
 * rule is found, at that packet. The exchanges as they are, also over RoCE v1 and IPv6, break none.
 */
#include "lint.h"

#include <stdio.h>
#include <string.h>

#include "cm_msg.h"
#include "unit.h"
#include "wire_bytes.h"
#include "wire_csum.h"

#define A_QPN   0x11u
#define B_QPN   0x22u
#define STEPS   48
#define US      1000ull
#define ALL     (-1)
#define LATER   (-2) /* the finding is about an earlier packet or may be about several */
#define RC(op)  WIRE_OPCODE(WIRE_RC, WIRE_##op)
#define UC(op)  WIRE_OPCODE(WIRE_UC, WIRE_##op)
#define UD_SEND WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY)

/* One packet of an exchange. A sends to B, or the other way round. */
struct step {
    bool from_b;
    uint8_t opcode;
    uint32_t psn, len;
    bool ackreq;
    uint32_t dma_len;
    uint8_t syndrome;
    uint32_t msn;
    uint64_t va;
    uint64_t after; /* us since the packet before; 0 = 10 */
    enum cm_attr cm;
    bool gone; /* was sent, and lost before the point of capture */
};

#define ACK(psn_, msn_)                                                                            \
    {                                                                                              \
        .from_b = true, .opcode = RC(ACKNOWLEDGE), .psn = psn_, .syndrome = 0x1F, .msn = msn_      \
    }
#define NAK(psn_, syn, msn_)                                                                       \
    {                                                                                              \
        .from_b = true, .opcode = RC(ACKNOWLEDGE), .psn = psn_, .syndrome = syn, .msn = msn_       \
    }
#define SEND(psn_, len_)                                                                           \
    {                                                                                              \
        .opcode = RC(SEND_ONLY), .psn = psn_, .len = len_, .ackreq = true                          \
    }
#define RESP(op, psn_, len_, msn_)                                                                 \
    {                                                                                              \
        .from_b = true, .opcode = RC(op), .psn = psn_, .len = len_, .syndrome = 0x1F, .msn = msn_  \
    }
#define END                                                                                        \
    {                                                                                              \
        .opcode = 0xFF                                                                             \
    }

static const struct step rc[] = {
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

static const struct step send3[] = {{.opcode = RC(SEND_FIRST), .psn = 100, .len = 1024},
                                    {.opcode = RC(SEND_MIDDLE), .psn = 101, .len = 1024},
                                    {.opcode = RC(SEND_LAST), .psn = 102, .len = 5, .ackreq = true},
                                    ACK(102, 1),
                                    END};

/* 101 and 103 are lost before the capture, and asked for. */
static const struct step loss[] = {SEND(100, 64),
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

static const struct step rnr[] = {
    SEND(100, 64),
    ACK(100, 1),
    SEND(101, 64),
    NAK(101, 0x20 | 14, 1),
    {.opcode = RC(SEND_ONLY), .psn = 101, .len = 64, .ackreq = true, .after = 1400},
    ACK(101, 2),
    END};

/* A network that loses packets, perhaps the RNR NAK too. */
static const struct step rnr_loss[] = {
    SEND(100, 64),
    ACK(100, 1),
    {.opcode = RC(SEND_ONLY), .psn = 101, .len = 64, .gone = true},
    SEND(102, 64),
    NAK(101, 0x60, 1),
    /* 5 */ SEND(101, 64),
    SEND(102, 64),
    ACK(102, 3),
    SEND(103, 64),
    NAK(103, 0x20 | 14, 3),
    /* 10 */ {.opcode = RC(SEND_ONLY), .psn = 103, .len = 64, .ackreq = true, .after = 500},
    ACK(103, 4),
    END};

/* Two READs; of each the second response is lost, and the READ repeated from there. */
static const struct step reread[] = {
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

/* Twice a READ is repeated from two places, and the second repetition's first response is lost. */
#define REREAD_TWICE(psn_, msn_)                                                                   \
    {.opcode = RC(READ_REQUEST), .psn = psn_, .dma_len = 4096, .va = 0x1000},                      \
        RESP(READ_RESP_FIRST, psn_, 1024, msn_), RESP(READ_RESP_MIDDLE, psn_ + 2, 1024, 0),        \
        {.opcode = RC(READ_REQUEST), .psn = psn_ + 1, .dma_len = 3072, .va = 0x1400},              \
        {.opcode = RC(READ_REQUEST), .psn = psn_ + 2, .dma_len = 2048, .va = 0x1800},              \
        RESP(READ_RESP_FIRST, psn_ + 1, 1024, msn_), RESP(READ_RESP_MIDDLE, psn_ + 2, 1024, 0),    \
        RESP(READ_RESP_LAST, psn_ + 3, 1024, msn_), RESP(READ_RESP_LAST, psn_ + 3, 1024, msn_)
static const struct step reread_twice[] = {REREAD_TWICE(100, 1), REREAD_TWICE(104, 2),
                                           REREAD_TWICE(108, 3), END};

/* The network doubles a request behind the capture: its copy is answered as things stand then. */
static const struct step copied[] = {SEND(100, 64), ACK(100, 1), SEND(101, 64), SEND(102, 64),
                                     ACK(101, 2),   ACK(102, 3), ACK(101, 3),   SEND(103, 64),
                                     ACK(103, 4),   END};

/* Not used again, whatever it looks like: a READ is repeated while not all of its responses are
 * there, those of READs that others overtake among them. */
static const struct step repeated[] = {
    {.opcode = RC(READ_REQUEST), .psn = 100, .dma_len = 3072, .va = 0x1000},
    RESP(READ_RESP_MIDDLE, 101, 1024, 0),
    RESP(READ_RESP_FIRST, 100, 1024, 1),
    {.opcode = RC(READ_REQUEST), .psn = 100, .dma_len = 3072, .va = 0x1000, .after = 5000},
    RESP(READ_RESP_FIRST, 100, 1024, 1),
    RESP(READ_RESP_MIDDLE, 101, 1024, 0),
    RESP(READ_RESP_LAST, 102, 1024, 1),
    END};
static const struct step overtaken[] = {
    SEND(100, 64),
    ACK(100, 1),
    SEND(104, 64),
    {.opcode = RC(READ_REQUEST), .psn = 101, .dma_len = 3072, .va = 0x1000},
    RESP(READ_RESP_FIRST, 101, 1024, 2),
    RESP(READ_RESP_LAST, 103, 1024, 2),
    ACK(104, 3),
    {.opcode = RC(READ_REQUEST), .psn = 102, .dma_len = 2048, .va = 0x1400, .after = 5000},
    RESP(READ_RESP_FIRST, 102, 1024, 3),
    RESP(READ_RESP_LAST, 103, 1024, 3),
    SEND(104, 64),
    ACK(104, 3),
    SEND(105, 64),
    ACK(105, 4),
    END};

/* ... a WRITE whose last packet found no receive is repeated as a whole; */
static const struct step from_start[] = {
    {.opcode = RC(WRITE_FIRST), .psn = 100, .len = 1024, .dma_len = 2048, .va = 0x1000},
    {.opcode = RC(WRITE_LAST_IMM), .psn = 101, .len = 1024, .ackreq = true},
    NAK(101, 0x21, 0),
    {.opcode = RC(WRITE_FIRST),
     .psn = 100,
     .len = 1024,
     .dma_len = 2048,
     .va = 0x1000,
     .after = 5000},
    ACK(100, 0),
    {.opcode = RC(WRITE_LAST_IMM), .psn = 101, .len = 1024, .ackreq = true},
    ACK(101, 1),
    END};

/* ... and the first packet of all may come behind the second. */
static const struct step late_start[] = {
    {.opcode = RC(SEND_LAST), .psn = 101, .len = 64, .ackreq = true},
    {.opcode = RC(SEND_FIRST), .psn = 100, .len = 1024, .after = 2000},
    NAK(100, 0x60, 0),
    {.opcode = RC(SEND_FIRST), .psn = 100, .len = 1024},
    {.opcode = RC(SEND_LAST), .psn = 101, .len = 64, .ackreq = true},
    ACK(100, 0),
    ACK(101, 1),
    END};

/* A queue pair's number, and its PSNs, used again: after an orderly end, */
#define LATER_SEND(psn_, len_)                                                                     \
    {                                                                                              \
        .opcode = RC(SEND_ONLY), .psn = psn_, .len = len_, .ackreq = true, .after = 50000          \
    }
static const struct step lives[] = {
    SEND(100, 64),
    ACK(100, 1),
    SEND(101, 64),
    ACK(101, 2),
    /* ... from where it began */
    LATER_SEND(100, 8),
    ACK(100, 1),
    SEND(101, 8),
    ACK(101, 2),
    SEND(102, 8),
    ACK(102, 3),
    /* ... from a PSN in the middle, as a READ */
    {.opcode = RC(READ_REQUEST), .psn = 101, .dma_len = 1500, .va = 0x2000, .after = 50000},
    RESP(READ_RESP_FIRST, 101, 1024, 1),
    RESP(READ_RESP_LAST, 102, 476, 1),
    /* ... from there again */
    {.opcode = RC(READ_REQUEST), .psn = 101, .dma_len = 100, .va = 0x2800, .after = 50000},
    RESP(READ_RESP_ONLY, 101, 100, 1),
    SEND(102, 8),
    ACK(102, 2),
    END};

/* ... while much was on its way, */
static const struct step lives_killed[] = {
    SEND(100, 64),
    SEND(101, 64),
    {.opcode = RC(FETCH_ADD), .psn = 102, .va = 0x3000},
    SEND(103, 8),
    {.opcode = RC(WRITE_ONLY),
     .psn = 100,
     .len = 13,
     .dma_len = 13,
     .ackreq = true,
     .va = 0x1000,
     .after = 50000},
    ACK(100, 1),
    {.opcode = RC(READ_REQUEST), .psn = 101, .dma_len = 8, .va = 0x2000},
    RESP(READ_RESP_ONLY, 101, 8, 2),
    SEND(102, 5),
    ACK(102, 3),
    END};

/* ... and after it was refused for good. */
static const struct step lives_refused[] = {
    {.opcode = RC(WRITE_ONLY), .psn = 100, .len = 64, .dma_len = 64, .ackreq = true},
    NAK(100, 0x62, 0),
    {.opcode = RC(WRITE_ONLY),
     .psn = 100,
     .len = 64,
     .dma_len = 64,
     .ackreq = true,
     .after = 50000},
    ACK(100, 1),
    SEND(101, 64),
    ACK(101, 2),
    END};

static const struct step fatal[] = {
    {.opcode = RC(WRITE_ONLY), .psn = 100, .len = 64, .dma_len = 64, .ackreq = true},
    NAK(100, 0x62, 0),
    {.opcode = RC(SEND_ONLY), .psn = 101, .len = 8},
    END};

static const struct step refused[] = {
    SEND(100, 64),
    ACK(100, 1),
    {.opcode = RC(WRITE_ONLY), .psn = 101, .len = 64, .dma_len = 64, .ackreq = true},
    NAK(101, 0x62, 1),
    END};

static const struct step uc[] = {{.opcode = UC(SEND_FIRST), .psn = 5, .len = 1024},
                                 {.opcode = UC(SEND_MIDDLE), .psn = 6, .len = 1024},
                                 {.opcode = UC(SEND_LAST), .psn = 7, .len = 4},
                                 {.opcode = UC(WRITE_ONLY), .psn = 8, .len = 64, .dma_len = 64},
                                 {.opcode = UC(SEND_ONLY), .psn = 9, .len = 64},
                                 {.opcode = WIRE_OPCODE_CNP, .from_b = true},
                                 END};

static const struct step ud[] = {
    {.opcode = UD_SEND, .psn = 1, .len = 64}, {.opcode = UD_SEND, .psn = 2, .len = 64}, END};

/* A connection from its beginning to its end. Each side sends from the PSN that the other named. */
static const struct step cm[] = {
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

/* Nobody answers any more: the retry count of 2 allows three transmissions. */
static const struct step dead[] = {
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

struct packet {
    uint8_t f[4400];
    size_t len;
    uint64_t ns;
    struct wire_pkt p;
};

/* What the network layer is, and what the IP identification tells. */
enum net { NET_COUNT, NET_SAME, NET_ZERO, NET_IPV6, NETS };
static const char *const nets[NETS] = {"", ", ids all the same", ", ids 0", ", IPv6"};

struct run {
    struct packet packet[STEPS];
    int n;
    unsigned at[STEPS]; /* packet of a step */
};

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
    if (s->cm == CM_RTU || s->cm == CM_DREQ || s->cm == CM_DREP)
        m->priv_len = 0;
}

typedef void change_pkt(struct wire_pkt *p);
typedef void change_step(struct step *s);
typedef void change_octets(struct packet *p);
typedef void change_cm(struct cm_msg *m);

struct row {
    const char *name; /* begins with the rule that must be found; "" = none */
    const struct step *steps;
    int at; /* the step that is changed */
    change_step *step;
    change_pkt *pkt;
    change_octets *octets; /* of the finished frame; the iCRC is mended unless keep_icrc */
    change_cm *cm;
    const struct step *extra; /* inserted behind the step */
    bool keep_icrc;
    bool v4;   /* about IPv4 */
    bool copy; /* undecidable where the IP identification tells nothing */
    enum lint_verdict verdict;
};

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
        t.len = sizeof mad;
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
    ck_assert_uint_le(out->len, sizeof out->f);
    size_t at = wire_build(out->f, sizeof out->f, p);
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

static void build(struct run *r, const struct row *row, enum net net)
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

struct found {
    unsigned n;
    struct lint_finding f[32];
};

static void on_finding(void *ctx, const struct lint_finding *f)
{
    struct found *found = ctx;
    if (found->n < 32)
        found->f[found->n++] = *f;
}

static void judge(const struct run *r, struct found *found, struct lint_totals *t)
{
    struct lint *l = lint_new(on_finding, found, 0);
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

/* ---- the changes ---- */

static void broadcast(struct wire_pkt *p)
{
    memset(p->dmac, 0xFF, 6);
}
static void other_port(struct wire_pkt *p)
{
    p->sport++;
}
static void no_df(struct wire_pkt *p)
{
    p->ip_flags = 0;
}
static void fragment(struct packet *k)
{
    uint8_t *ip = k->f + k->p.ip_off;
    ip[6] |= 0x20;
    ip[10] = ip[11] = 0;
    wire_csum_put(ip + 10, wire_csum_add(0, ip, 20));
}
static void options(struct packet *k)
{
    uint8_t *ip = k->f + k->p.ip_off;
    memmove(ip + 24, ip + 20, k->len - k->p.ip_off - 20);
    memset(ip + 20, 1, 4); /* no operation */
    k->len += 4;
    ip[0] = 0x46;
    wire_put16(ip + 2, (uint16_t)(wire_get16(ip + 2) + 4));
    ip[10] = ip[11] = 0;
    wire_csum_put(ip + 10, wire_csum_add(0, ip, 24));
}
static void short_ip(struct packet *k)
{
    uint8_t *ip = k->f + k->p.ip_off;
    memmove(ip + 40, ip + k->len - 14 - 4, 4);
    wire_put16(ip + 2, 42);
    ip[10] = ip[11] = 0;
    wire_csum_put(ip + 10, wire_csum_add(0, ip, 20));
}
static void udp_length(struct packet *k)
{
    wire_put16(k->f + k->p.udp_off + 4, 20);
}
static void bad_source(struct wire_pkt *p)
{
    p->sip = wire_addr_v4(0xE0000001);
}
static void bad_csum(struct packet *k)
{
    k->f[k->p.ip_off + 10] ^= 0x55;
}
static void mcast_mac(struct wire_pkt *p)
{
    p->dip = wire_addr_v4(0xE0000105);
    p->dqpn = 0xFFFFFF;
    memcpy(p->dmac, (uint8_t[]){1, 0, 0x5E, 0, 1, 6}, 6);
}
static void mcast_qpn(struct wire_pkt *p)
{
    p->dqpn = 0xFFFFFF;
}
static void reserved_bit(struct packet *k)
{
    k->f[k->p.bth_off + 8] |= 1;
}
static void tver(struct packet *k)
{
    k->f[k->p.bth_off + 1] |= 1;
}
static void se(struct wire_pkt *p)
{
    p->se = true;
}
static void no_migreq(struct wire_pkt *p)
{
    p->migreq = false;
}
static void pad_3(struct packet *k) /* of 13 octets, padded to 16: one octet less is "payload" */
{
    k->f[k->p.bth_off + 1] = (uint8_t)((k->f[k->p.bth_off + 1] & 0xCF) | 0x20);
}
static void pad_1(struct packet *k)
{
    k->f[k->p.bth_off + 1] |= 0x10;
}
static void qpn_0(struct wire_pkt *p)
{
    p->dqpn = 0;
}
static void opcode_1e(struct packet *k)
{
    k->f[k->p.bth_off] = 0x1E;
}
static void opcode_uc(struct step *s)
{
    s->opcode = UC(SEND_ONLY);
}
static void opcode_write(struct packet *k) /* 8 octets of payload can't hold a RETH */
{
    k->f[k->p.bth_off] = RC(WRITE_ONLY);
    k->f[k->p.bth_off + 1] &= 0xCF;
}
static void opcode_ack(struct packet *k)
{
    k->f[k->p.bth_off] = RC(ACKNOWLEDGE);
    k->f[k->p.bth_off + 1] &= 0xCF;
}
static void len_8(struct step *s)
{
    s->len = 8;
}
static void cnp_psn(struct wire_pkt *p)
{
    p->psn = 1;
}
static void icrc_plain(struct packet *k, bool ones)
{
    static const uint8_t lrh[8] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
    uint32_t crc = ones ? wire_icrc_update(0, lrh, 8) : 0;
    crc = wire_icrc_update(crc, k->f + k->p.ip_off, k->len - 4 - k->p.ip_off);
    wire_put32le(k->f + k->len - 4, crc);
}
static void icrc_no_lrh(struct packet *k)
{
    icrc_plain(k, false);
}
static void icrc_no_mask(struct packet *k)
{
    icrc_plain(k, true);
}
static void icrc_swapped(struct packet *k)
{
    uint8_t *i = k->f + k->len - 4;
    wire_put32(i, wire_get32le(i));
}
static void icrc_0(struct packet *k)
{
    memset(k->f + k->len - WIRE_ICRC_LEN, 0, WIRE_ICRC_LEN);
}
static void icrc_wrong(struct packet *k)
{
    k->f[k->len - 3] ^= 0x5A;
}
static void pkey(struct wire_pkt *p)
{
    p->pkey = 0x8123;
}
static void pkey_0(struct wire_pkt *p)
{
    p->pkey = 0x8000;
}
static void qkey(struct wire_pkt *p)
{
    p->qkey = 7;
}
static void psn_99(struct step *s)
{
    s->psn = 99;
}
static void psn_105(struct step *s)
{
    s->psn = 105;
}
static void empty(struct step *s)
{
    s->len = 0;
}
static void dma_1000(struct step *s)
{
    s->dma_len = 1000;
}
static void dma_3000(struct step *s)
{
    s->dma_len = 3000;
}
static void dma_huge(struct step *s)
{
    s->dma_len = 0x80000001;
}
static void ackreq(struct step *s)
{
    s->ackreq = true;
}
static void read_for_send(struct step *s)
{
    s->opcode = RC(READ_RESP_ONLY);
}
static void only(struct step *s)
{
    s->opcode = RC(READ_RESP_ONLY);
}
static void first(struct step *s)
{
    s->opcode = RC(READ_RESP_FIRST);
}
static void syndrome_nak(struct step *s)
{
    s->syndrome = 0x60;
}
static void syndrome_7f(struct step *s)
{
    s->syndrome = 0x7F;
}
static void syndrome_rd(struct step *s)
{
    s->syndrome = 0x64;
    s->msn--;
}
static void syndrome_access(struct step *s)
{
    s->syndrome = 0x62;
    s->msn--;
}
static void syndrome_op(struct step *s)
{
    s->syndrome = 0x63;
    s->msn--;
}
static void syndrome_rnr(struct step *s)
{
    s->syndrome = 0x20;
    s->msn = 1;
}
static void ack_of_read(struct step *s)
{
    s->psn = 106;
    s->msn = 5;
}
static void ack_ahead(struct step *s)
{
    s->psn = 111;
}
static void nak_ahead(struct step *s)
{
    s->psn = 111;
    s->syndrome = 0x60;
}
static void msn_low(struct step *s)
{
    s->msn = 4;
}
static void early(struct step *s)
{
    s->after = 500;
}
static void longer(struct step *s)
{
    s->len += 4;
}
static void va_off(struct step *s)
{
    s->va += 4;
}
static void unaligned(struct step *s)
{
    s->va += s->opcode == RC(FETCH_ADD) ? 4 : 0;
}
static void middle(struct step *s)
{
    s->opcode = RC(WRITE_MIDDLE);
    s->len = 1024;
}
static void len_4100(struct step *s)
{
    s->len = 4100;
}
static void len_512(struct step *s)
{
    s->len = 512;
}
static void orig(struct wire_pkt *p)
{
    p->orig++;
}
static void uc_last(struct step *s)
{
    s->opcode = UC(SEND_LAST);
}
static void continued(struct step *s)
{
    if (s->opcode == RC(READ_RESP_FIRST) && (s->psn == 101 || s->psn == 104))
        s->opcode = RC(READ_RESP_MIDDLE);
}
static void sqpn_0(struct wire_pkt *p)
{
    p->sqpn = 0;
}
static void sqpn_5(struct wire_pkt *p)
{
    p->sqpn = 5;
}
static void mad_short(struct wire_pkt *p)
{
    p->payload_len = 200;
}
static void mad_base(struct packet *k)
{
    k->f[k->p.payload_off] = 2;
}
static void mad_class(struct packet *k)
{
    k->f[k->p.payload_off + 2] = 1;
}
static void cm_hdr(struct cm_msg *m)
{
    m->priv[1] = 0x50;
}
static void cm_depth(struct cm_msg *m)
{
    m->init_depth = 9;
}
static void cm_tid(struct cm_msg *m)
{
    m->tid++;
}
static void cm_id(struct cm_msg *m)
{
    m->local_id = 0;
}
static void cm_psn(struct cm_msg *m)
{
    m->psn++;
}
static void cm_qpn(struct cm_msg *m)
{
    m->remote_qpn++;
}

static const struct step send_101 = SEND(101, 64);
static const struct step nak_101 = NAK(101, 0x60, 1);
static const struct step nak_again = NAK(101, 0x62, 1);
static const struct step ack_101 = ACK(101, 2);
static const struct step read_again = {
    .opcode = RC(READ_REQUEST), .psn = 104, .dma_len = 8, .va = 0};

static const struct row rows[] = {
    {"WIRE-06 broadcast", rc, 12, .pkt = broadcast},
    {"WIRE-08 IPv4 options", rc, 12, .octets = options, .keep_icrc = true, .v4 = true},
    {"WIRE-09 IP length below the least", rc, 16, .octets = short_ip, .v4 = true},
    {"WIRE-10 DF 0", rc, 12, .pkt = no_df, .v4 = true},
    {"WIRE-10 fragment", rc, 12, .octets = fragment, .v4 = true},
    {"WIRE-12 header checksum", rc, 12, .octets = bad_csum, .verdict = LINT_UNDECIDABLE,
     .v4 = true},
    {"WIRE-12 header checksum, always", rc, ALL, .octets = bad_csum, .v4 = true},
    {"WIRE-19 source port changes in flight", rc, 3, .pkt = other_port},
    {"WIRE-23 UDP length", rc, 12, .octets = udp_length},
    {"WIRE-29 multicast source", rc, 12, .pkt = bad_source, .v4 = true},
    {"WIRE-31 MAC of another group", ud, 1, .pkt = mcast_mac, .v4 = true},
    {"HDR-01 reserved bit", rc, 12, .octets = reserved_bit},
    {"HDR-02 TVer 1", rc, 12, .octets = tver},
    {"HDR-03 SE on WRITE MIDDLE", rc, 3, .pkt = se},
    {"HDR-04 MigReq 0 once", rc, 12, .pkt = no_migreq},
    {"HDR-04 MigReq 0 always", rc, ALL, .pkt = no_migreq, .verdict = LINT_UNDECIDABLE},
    {"HDR-05 PadCnt doesn't fit the RETH", rc, 20, .octets = pad_3},
    {"HDR-06 pad on MIDDLE", rc, 3, .octets = pad_1},
    {"HDR-07 DestQP 0", rc, 12, .pkt = qpn_0},
    {"OPC-01 reserved opcode", rc, 12, .octets = opcode_1e},
    {"OPC-02 UC on an RC queue pair", rc, 12, .step = opcode_uc},
    {"OPC-03 no room for the RETH", fatal, 2, .octets = opcode_write},
    {"OPC-04 ACK with payload", rc, 14, .octets = opcode_ack},
    {"OPC-05 CNP with a PSN", uc, 5, .pkt = cnp_psn},
    {"ICRC-02 without the octets of ones", rc, 12, .octets = icrc_no_lrh, .keep_icrc = true},
    {"ICRC-03 without masks", rc, 12, .octets = icrc_no_mask, .keep_icrc = true},
    {"ICRC-06 byte order", rc, 12, .octets = icrc_swapped, .keep_icrc = true},
    {"ICRC-08 none", rc, 12, .octets = icrc_0, .keep_icrc = true},
    {"ICRC-08 none, never", rc, ALL, .octets = icrc_0, .keep_icrc = true},
    {"ICRC-08 a damaged packet is acknowledged", rc, 16, .octets = icrc_wrong, .keep_icrc = true,
     .verdict = LINT_UNDECIDABLE},
    {"ICRC-08 never right", rc, ALL, .octets = icrc_wrong, .keep_icrc = true},
    {"KEY-01 P_Key changes", rc, 12, .pkt = pkey},
    {"KEY-01 P_Key of an ACK changes", rc, 13, .pkt = pkey},
    {"KEY-02 P_Key without a partition", ud, 1, .pkt = pkey_0},
    {"KEY-02 on a connected queue pair", rc, 12, .pkt = pkey_0},
    {"KEY-07 Q_Key of QP1", cm, 0, .pkt = qkey},
    {"PSN-01 before the announced PSN", cm, 3, .step = psn_99},
    {"REQ-02 empty LAST", rc, 4, .step = empty},
    {"REQ-02 FIRST although one packet suffices", rc, 2, .step = dma_1000},
    {"REQ-06 a PSN of a READ's responses", rc, 12, .step = psn_105},
    {"REQ-10 AckReq on an ACK", rc, 13, .step = ackreq},
    {"REQ-12 one READ too many", cm, 8, .extra = &read_again},
    {"REQ-28 READ response for a SEND", rc, 13, .step = read_for_send},
    {"REQ-30 ONLY where FIRST must be", rc, 7, .step = only},
    {"REQ-30 FIRST at the end", reread, 6, .step = first},
    {"REQ-31 READ response with a NAK", rc, 9, .step = syndrome_nak},
    {"ACK-02 reserved NAK code", rc, 13, .step = syndrome_7f},
    {"ACK-05 ACK with the PSN of a READ", rc, 13, .step = ack_of_read},
    {"ACK-05 ACK of what wasn't sent", rc, 13, .step = ack_ahead},
    {"ACK-06 RD code on RC", loss, 9, .step = syndrome_rd},
    {"ACK-06 access error for a SEND", loss, 9, .step = syndrome_access},
    {"ACK-07 NAK of what wasn't sent", rc, 13, .step = nak_ahead},
    {"ACK-08 NAK twice", loss, 4, .extra = &nak_101, .copy = true},
    {"ACK-11 MSN too low", rc, 17, .step = msn_low},
    {"ACK-11 MSN too low, behind a READ", rc, 13, .step = msn_low},
    {"RNR-01 RNR NAK for a WRITE", rc, 5, .step = syndrome_rnr},
    {"RNR-02 sequence NAK after RNR NAK", rnr, 3, .extra = &nak_101},
    {"RNR-05 repeated too early", rnr, 4, .step = early},
    {"RNR-05 or the RNR NAK was lost", rnr_loss, LATER, .verdict = LINT_UNDECIDABLE},
    {"TMR-05 one transmission too many", dead, 7, .extra = &send_101},
    {"RTX-05 longer the second time", loss, 6, .step = longer},
    {"RSP-06 MIDDLE after LAST", rc, 16, .step = middle},
    {"RSP-06 WRITE in the middle of a SEND", send3, 1, .step = middle},
    {"RSP-10 short MIDDLE", rc, 3, .step = len_512},
    {"RSP-12 operational error for a SEND", loss, 9, .step = syndrome_op,
     .verdict = LINT_UNDECIDABLE},
    {"RSP-15 too long", rc, 20, .step = dma_huge},
    {"RSP-15 a READ that is too long", rc, 6, .step = dma_huge},
    {"RSP-16 WRITE shorter than its RETH", rc, 2, .step = dma_3000},
    {"RSP-22 an answer after the fatal NAK", fatal, 2, .extra = &ack_101},
    {"RSP-22 the NAK again", refused, 3, .extra = &nak_again, .copy = true},
    {"RD-05 short READ response", rc, 9, .step = len_8},
    {"RD-05 short READ response, of a size that is no MTU", reread, 1, .step = len_8},
    {"RD-10 re-reads go on in the middle", reread, ALL, .step = continued},
    {"RD-12 re-read from another address", reread, 4, .step = va_off},
    {"ATM-03 unaligned", rc, ALL, .step = unaligned},
    {"ATM-08 another value the second time", rc, 19, .pkt = orig},
    {"UC-02 AckReq", uc, 4, .step = ackreq},
    {"UC-07 LAST without FIRST", uc, 4, .step = uc_last},
    {"UD-01 more than one packet may hold", ud, 1, .step = len_4100},
    {"UD-09 source QP 0", ud, 1, .pkt = sqpn_0},
    {"UD-10 multicast QP, unicast address", ud, 1, .pkt = mcast_qpn},
    {"GSI-01 not from QP1", cm, 2, .pkt = sqpn_5},
    {"GSI-02 short MAD", cm, 2, .pkt = mad_short},
    {"GSI-03 base version 2", cm, 2, .octets = mad_base},
    {"GSI-04 class version 1", cm, 2, .octets = mad_class},
    {"CM-02 IP version 5", cm, 0, .cm = cm_hdr},
    {"CM-07 more READs than offered", cm, 1, .cm = cm_depth},
    {"CM-14 another transaction id", cm, 2, .cm = cm_tid},
    {"CM-15 id 0", cm, 13, .cm = cm_id},
    {"CM-18 another PSN the second time", cm, 12, .cm = cm_psn},
    {"CM-24 DREQ for another queue pair", cm, 13, .cm = cm_qpn},
};

static void check_row(const struct row *row, enum net net)
{
    static struct run run;
    static struct found found;
    struct lint_totals t;
    size_t id = strcspn(row->name, " ");
    enum lint_verdict verdict = row->copy && net ? LINT_UNDECIDABLE : row->verdict;
    build(&run, row, net);
    judge(&run, &found, &t);
    for (unsigned i = 0; i < found.n; i++) {
        const struct lint_finding *f = &found.f[i];
        if (f->verdict == LINT_ARTEFACT) /* an ACK of the packet that isn't good any more */
            continue;
        ck_assert_msg(strlen(f->rule->id) == id && !strncmp(f->rule->id, row->name, id),
                      "%s%s: found %s (%s) at packet %llu: %s, expected %s, seen %s", row->name,
                      nets[net], f->rule->id, lint_verdict_name(f->verdict),
                      (unsigned long long)f->number, f->dump, f->expected, f->seen);
    }
    const struct lint_finding *f = NULL;
    for (unsigned i = 0; i < found.n; i++)
        if (found.f[i].verdict != LINT_ARTEFACT)
            f = &found.f[i];
    ck_assert_msg(f, "%s%s: nothing found", row->name, nets[net]);
    ck_assert_msg(f->verdict == verdict, "%s%s: %s, because %s", row->name, nets[net],
                  lint_verdict_name(f->verdict), f->why);
    ck_assert_msg(f->expected[0] && f->seen[0] && f->dump[0], "%s: says too little", row->name);
    ck_assert_msg(!f->why[0] == (f->verdict == LINT_VIOLATION), "%s: %s", row->name, f->why);
}

START_TEST(one_rule_broken)
{
    for (enum net net = NET_COUNT; net < (rows[_i].v4 ? NET_SAME : NETS); net++)
        check_row(&rows[_i], net);
}
END_TEST

/* The exchanges themselves. */
static const struct row good[] = {
    {"rc", rc, LATER},
    {"loss", loss, LATER},
    {"rnr", rnr, LATER},
    {"reread", reread, LATER},
    {"reread twice", reread_twice, LATER},
    {"copied", copied, LATER},
    {"lives", lives, LATER},
    {"lives, killed", lives_killed, LATER},
    {"lives, refused", lives_refused, LATER},
    {"dead", dead, LATER},
    {"fatal", fatal, LATER},
    {"uc", uc, LATER},
    {"ud", ud, LATER},
    {"cm", cm, LATER},
};

static void none(const struct row *row, struct run *run, const char *how)
{
    static struct found found;
    struct lint_totals t;
    judge(run, &found, &t);
    for (unsigned i = 0; i < found.n; i++)
        ck_abort_msg("%s%s: %s at packet %llu: %s, expected %s, seen %s (%s)", row->name, how,
                     found.f[i].rule->id, (unsigned long long)found.f[i].number, found.f[i].dump,
                     found.f[i].expected, found.f[i].seen, found.f[i].why);
    ck_assert_uint_eq(t.roce, (unsigned)run->n);
}

/* "RD-10, RSP-06: what repeats a READ belongs to the connection that it was sent on" */
START_TEST(one_connection)
{
    static const struct row whole[] = {{"repeated", repeated, LATER},
                                       {"overtaken", overtaken, LATER},
                                       {"from the start", from_start, LATER},
                                       {"late start", late_start, LATER}};
    static struct run run;
    static struct found found;
    struct lint_totals t;
    for (enum net net = NET_COUNT; net < NETS; net++) {
        build(&run, &whole[_i], net);
        judge(&run, &found, &t);
        ck_assert_msg(t.flows == 2, "%s%s: %u flows", whole[_i].name, nets[net], t.flows);
        none(&whole[_i], &run, nets[net]);
    }
}
END_TEST

/* A RoCE v1 frame of a RoCEv2 one: a GRH instead of IP and UDP. */
static void to_v1(struct packet *k)
{
    uint8_t f[sizeof k->f];
    size_t rest = k->len - k->p.bth_off;
    memcpy(f, k->f, 12);
    wire_put16(f + 12, WIRE_ETHERTYPE_V1);
    memset(f + 14, 0, 8);
    f[14] = 0x60;
    wire_put16(f + 18, (uint16_t)rest);
    f[20] = 0x1B;
    f[21] = 64;
    memcpy(f + 22, k->p.sip.b, 16);
    memcpy(f + 38, k->p.dip.b, 16);
    memcpy(f + 54, k->f + k->p.bth_off, rest);
    k->len = 54 + rest;
    wire_put32le(f + k->len - 4, wire_icrc(f, k->len, 14, 54));
    memcpy(k->f, f, k->len);
}

START_TEST(no_rule_broken)
{
    static struct run run;
    const struct row *row = &good[_i];
    build(&run, row, NET_COUNT);
    none(row, &run, "");
    for (enum net net = NET_SAME; net < NETS; net++) {
        build(&run, row, net);
        none(row, &run, nets[net]);
    }
    for (int i = 0; i < run.n; i++)
        to_v1(&run.packet[i]);
    none(row, &run, " over RoCE v1");
}
END_TEST

/* A packet that the capture missed is no broken rule, whichever it is. */
START_TEST(the_capture_misses_one)
{
    static struct run run, less;
    static struct found found;
    struct lint_totals t;
    build(&run, &good[_i], NET_COUNT);
    for (int gone = 0; gone < run.n; gone++) {
        less.n = 0;
        for (int i = 0; i < run.n; i++)
            if (i != gone)
                less.packet[less.n++] = run.packet[i];
        judge(&less, &found, &t);
        for (unsigned i = 0; i < found.n; i++)
            ck_assert_msg(found.f[i].verdict != LINT_VIOLATION, "%s without %d: %s, %s",
                          good[_i].name, gone + 1, found.f[i].rule->id, found.f[i].dump);
    }
}
END_TEST

/* Requests of a stretch that the capture has lost: the ACK in there is an artefact, and said so. */
START_TEST(ack_05_not_captured)
{
    static const struct step steps[] = {SEND(100, 64),
                                        ACK(100, 1),
                                        {.opcode = RC(SEND_ONLY), .psn = 101, .gone = true},
                                        ACK(101, 2),
                                        SEND(102, 64),
                                        ACK(102, 3),
                                        END};
    static struct run run;
    static struct found found;
    struct lint_totals t;
    build(&run, &(struct row){"ACK-05", steps, LATER}, NET_COUNT);
    judge(&run, &found, &t);
    ck_assert_uint_eq(found.n, 1);
    ck_assert_int_eq(found.f[0].verdict, LINT_ARTEFACT);
    ck_assert_str_eq(found.f[0].rule->id, "ACK-05");
    ck_assert_uint_eq(found.f[0].number, 3);
}
END_TEST

/* "ACK-05: the ACK of a SEND before a READ that wasn't captured doesn't show that the READ's answer
 * was made up: no ACK has the PSN of a READ" */
START_TEST(ack_05_a_read_not_captured)
{
    static const struct step steps[] = {
        SEND(100, 64), ACK(100, 1), RESP(READ_RESP_MIDDLE, 103, 1024, 0),
        SEND(101, 64), ACK(101, 3), END};
    static struct run run;
    static struct found found;
    struct lint_totals t;
    build(&run, &(struct row){"ACK-05", steps, LATER}, NET_COUNT);
    judge(&run, &found, &t);
    ck_assert_uint_eq(found.n, 1);
    ck_assert_str_eq(found.f[0].rule->id, "ACK-05");
    ck_assert_int_eq(found.f[0].verdict, LINT_UNDECIDABLE);
}
END_TEST

/* "ACK-08: what an RNR NAK refuses has come, so the sequence NAK behind it is the first one for its
 * gap; that it is sent at all is another rule's matter (RNR-02)" */
START_TEST(ack_08_came_in_between)
{
    static const struct step steps[] = {SEND(100, 64),
                                        ACK(100, 1),
                                        SEND(101, 64),
                                        NAK(101, 0x21, 1),
                                        SEND(101, 64),
                                        SEND(102, 64),
                                        SEND(101, 64),
                                        SEND(102, 64),
                                        NAK(101, 0x21, 1),
                                        NAK(101, 0x60, 1),
                                        NAK(101, 0x21, 1),
                                        NAK(101, 0x60, 1),
                                        END};
    static struct run run;
    static struct found found;
    struct lint_totals t;
    unsigned rnr_02 = 0;
    build(&run, &(struct row){"ACK-08", steps, LATER}, NET_COUNT);
    judge(&run, &found, &t);
    for (unsigned i = 0; i < found.n; i++) {
        ck_assert_str_ne(found.f[i].rule->id, "ACK-08");
        rnr_02 += !strcmp(found.f[i].rule->id, "RNR-02");
    }
    ck_assert_uint_eq(rnr_02, 2);
}
END_TEST

/* Every rule of the table has a row here, and the table is in order and complete. */
START_TEST(the_table)
{
    size_t n;
    const struct lint_rule *r = lint_rules(&n);
    for (size_t i = 0; i < n; i++) {
        bool found = false;
        size_t len = strlen(r[i].id);
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
            found |= !strncmp(rows[k].name, r[i].id, len) && rows[k].name[len] == ' ';
        ck_assert_msg(found, "%s is broken by no row", r[i].id);
        ck_assert_msg(strlen(r[i].sentence) > 10, "%s", r[i].id);
        for (size_t k = 0; k < i; k++)
            ck_assert_str_ne(r[i].id, r[k].id);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("lint rules");
    TCase *t = tcase_create("lint rules");
    tcase_add_loop_test(t, one_rule_broken, 0, sizeof rows / sizeof *rows);
    tcase_add_loop_test(t, no_rule_broken, 0, sizeof good / sizeof *good);
    tcase_add_loop_test(t, one_connection, 0, 4);
    tcase_add_loop_test(t, the_capture_misses_one, 0, sizeof good / sizeof *good);
    tcase_add_test(t, ack_05_not_captured);
    tcase_add_test(t, ack_05_a_read_not_captured);
    tcase_add_test(t, ack_08_came_in_between);
    tcase_add_test(t, the_table);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
