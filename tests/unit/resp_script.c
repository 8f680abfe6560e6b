/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The interpreter of packet scripts, which resp_script.h describes.
 */
#include "resp_script.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "resp_bed.h"

/* ---- words and fields ---- */

static char words[24][40];
static unsigned nwords;

static void split(struct bed *b, const char *line)
{
    nwords = 0;
    for (const char *p = line; *p;) {
        p += strspn(p, " \t");
        size_t n = strcspn(p, " \t");
        if (n == 0)
            break;
        if (nwords == 24 || n >= sizeof(words[0]))
            FAIL(b, "line too long");
        memcpy(words[nwords], p, n);
        words[nwords++][n] = 0;
        p += n;
    }
}

/* The value of "name=", NULL if the line has none. */
static const char *field(const char *name)
{
    size_t n = strlen(name);
    for (unsigned i = 1; i < nwords; i++)
        if (!strncmp(words[i], name, n) && words[i][n] == '=')
            return words[i] + n + 1;
    return NULL;
}

static bool flag(const char *name)
{
    for (unsigned i = 1; i < nwords; i++)
        if (!strcmp(words[i], name))
            return true;
    return false;
}

static uint64_t number(const char *name, uint64_t other)
{
    const char *v = field(name);
    return v ? strtoull(v, NULL, 0) : other;
}

static uint32_t key_of(struct bed *b, const char *name)
{
    const struct {
        const char *name;
        uint32_t key;
    } keys[] = {{"rw", b->rw},   {"ro", b->ro},          {"wo", b->wo},
                {"at", b->at},   {"recv", b->rkey_recv}, {"pd2", b->other_pd},
                {"win", b->win}, {"none", 0x1234},       {"variant", b->rw ^ 1},
                {"0", 0}};
    for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (!strcmp(keys[i].name, name))
            return keys[i].key;
    FAIL(b, "no key %s", name);
    return 0;
}

static uint8_t opcode_of(struct bed *b, const char *name)
{
    const char *svc = b->s->setup.type == QP_UC ? "UC" : b->s->setup.type == QP_UD ? "UD" : "RC";
    char full[64];
    snprintf(full, sizeof(full), "%s_%s", svc, name);
    for (unsigned i = 0; i < 256; i++)
        if (wire_opcodes[i].name && !strcmp(wire_opcodes[i].name, full))
            return (uint8_t)i;
    FAIL(b, "no opcode %s", full);
    return 0;
}

/* ---- steps ---- */

static void nothing_left(struct bed *b)
{
    if (b->oout < b->nout)
        FAIL(b, "unexpected frame %s psn %+d syndrome 0x%02x",
             wire_opcodes[b->out[b->oout].p.opcode].name,
             (int32_t)((b->out[b->oout].p.psn - b->psn0) << 8) >> 8, b->out[b->oout].p.syndrome);
    if (b->owc < b->nwc)
        FAIL(b, "unexpected completion %s", engine_status_name(b->wc[b->owc].status));
    if (b->oev < b->nev)
        FAIL(b, "unexpected event %d", b->ev[b->oev]);
}

static void step_in(struct bed *b)
{
    if (b->nburst == 0)
        nothing_left(b);
    if (b->nframes == FRAMES || b->nburst == BURST)
        FAIL(b, "too many frames");
    uint8_t *buf = b->frame[b->nframes++];
    uint32_t psn = b->psn0 + (uint32_t)strtol(words[2], NULL, 0);
    struct wire_pkt p = {
        .dmac = {2, 0, 0, 0, 0, 2},
        .smac = {2, 0, 0, 0, 0, 1},
        .ethertype = 0x0800,
        .ip_version = 4,
        .ttl = 64,
        .ip_flags = 2,
        .sip = wire_addr_v4(0x0A000001),
        .dip = wire_addr_v4(0x0A000002),
        .sport = 0xC123,
        .dport = WIRE_UDP_PORT,
        .opcode = opcode_of(b, words[1]),
        .migreq = true,
        .ackreq = flag("ack"),
        .se = flag("se"),
        .pkey = WIRE_PKEY_DEFAULT,
        .dqpn = b->qpn,
        .psn = psn & WIRE_PSN_MASK,
        .va = IOVA + (uint64_t)strtoll(field("va") ? field("va") : "0", NULL, 0),
        .rkey = key_of(b, field("key") ? field("key") : "rw"),
        .imm = (uint32_t)number("imm", 0),
        .swap_add = number("add", 0),
        .compare = number("cmp", 0),
        .sqpn = (uint32_t)number("src", PEER_QPN),
        .qkey = (uint32_t)number("qkey", QKEY),
        .payload_len = (uint32_t)number("len", 0),
    };
    p.dma_len = (uint32_t)number("dma", p.payload_len);
    size_t off = wire_build(buf, sizeof(b->frame[0]), &p);
    if (off == 0)
        FAIL(b, "can't build");
    size_t len = wire_frame_len(&p);
    for (uint32_t i = 0; i < p.payload_len; i++)
        buf[off + i] = payload_octet(psn - b->psn0, i);
    if (field("pad")) /* another PadCnt, with the octets that it counts */
        buf[p.bth_off + 1] = (uint8_t)((buf[p.bth_off + 1] & 0xCF) | number("pad", 0) << 4);
    wire_icrc_seal(buf, len, p.ip_off, p.bth_off);
    b->burst[b->nburst++] = (struct engine_frame){.data = buf, .len = (uint32_t)len};
}

static void step_out(struct bed *b)
{
    if (b->oout == b->nout)
        FAIL(b, "nothing went out");
    const struct out *o = &b->out[b->oout++];
    char name[64];
    snprintf(name, sizeof(name), "RC_%s", words[1]);
    if (strcmp(wire_opcodes[o->p.opcode].name, name))
        FAIL(b, "%s went out, syndrome 0x%02x", wire_opcodes[o->p.opcode].name, o->p.syndrome);
    COMPARE(b, "PSN", (o->p.psn - b->psn0) & WIRE_PSN_MASK,
            (uint32_t)strtol(words[2], NULL, 0) & WIRE_PSN_MASK);
    COMPARE(b, "AckReq", o->p.ackreq, 0);
    COMPARE(b, "SE", o->p.se, 0);
    COMPARE(b, "DestQP", o->p.dqpn, PEER_QPN);
    COMPARE(b, "P_Key", o->p.pkey, WIRE_PKEY_DEFAULT);
    if (field("len"))
        COMPARE(b, "length", o->p.payload_len, number("len", 0));
    if (field("syn"))
        COMPARE(b, "syndrome", o->p.syndrome, strtoul(field("syn"), NULL, 16));
    if (field("msn"))
        COMPARE(b, "MSN", o->p.msn, number("msn", 0));
    if (field("orig"))
        COMPARE(b, "original value", o->p.orig, number("orig", 0));
    for (uint32_t i = 0; field("from") && i < o->p.payload_len; i++)
        COMPARE(b, "payload", o->payload[i], region_octet(number("from", 0) + i));
}

static void step_wc(struct bed *b)
{
    if (b->owc == b->nwc)
        FAIL(b, "no completion");
    const struct engine_wc *wc = &b->wc[b->owc++];
    if (strcmp(engine_status_name(wc->status), words[1]))
        FAIL(b, "status %s", engine_status_name(wc->status));
    COMPARE(b, "QPN", wc->qpn, b->qpn);
    if (field("id"))
        COMPARE(b, "wr_id", wc->wr_id, number("id", 0));
    if (wc->status != WC_SUCCESS)
        return;
    COMPARE(b, "length", wc->byte_len, number("len", 0));
    COMPARE(b, "opcode", wc->opcode,
            field("op") && !strcmp(field("op"), "IMM") ? WC_RECV_RDMA_WITH_IMM : WC_RECV);
    COMPARE(b, "flags", wc->wc_flags & ~WC_F_IPV4,
            (field("imm") ? WC_F_IMM : 0) | (flag("inv") ? WC_F_INV : 0) |
                (flag("grh") ? WC_F_GRH : 0));
    if (field("imm"))
        COMPARE(b, "immediate", wc->imm, number("imm", 0));
    if (flag("inv"))
        COMPARE(b, "invalidated key", wc->imm, b->win);
    COMPARE(b, "solicited", wc->solicited, flag("sol"));
    if (field("src"))
        COMPARE(b, "source QP", wc->src_qpn, number("src", 0));
}

static void step_event(struct bed *b)
{
    static const struct {
        const char *name;
        int ev;
    } events[] = {{"CQ_ERR", EVT_CQ_ERR},
                  {"QP_FATAL", EVT_QP_FATAL},
                  {"QP_REQ_ERR", EVT_QP_REQ_ERR},
                  {"QP_ACCESS_ERR", EVT_QP_ACCESS_ERR},
                  {"COMM_EST", EVT_COMM_EST},
                  {"HOOK", EV_HOOK},
                  {"SRQ_ERR", EVT_SRQ_ERR},
                  {"SRQ_LIMIT_REACHED", EVT_SRQ_LIMIT_REACHED},
                  {"LAST_WQE_REACHED", EVT_QP_LAST_WQE_REACHED}};
    if (b->oev == b->nev)
        FAIL(b, "no event");
    int ev = b->ev[b->oev++];
    for (unsigned i = 0; i < sizeof(events) / sizeof(events[0]); i++)
        if (!strcmp(events[i].name, words[1]) && events[i].ev == ev)
            return;
    FAIL(b, "event %d", ev);
}

static void step_recv(struct bed *b)
{
    bool bad = !strcmp(words[0], "recv-bad"), malformed = !strcmp(words[0], "recv-malformed");
    struct engine_sge sge[8];
    struct engine_recv_wr wr = {.wr_id = b->recvs, .sge = sge};
    b->rbuf[b->recvs++] = b->rbuf_end;
    for (unsigned i = 1; i < nwords; i++) {
        uint32_t len = (uint32_t)strtoul(words[i], NULL, 0);
        sge[wr.nsge++] = (struct engine_sge){IOVA + b->rbuf_end, len, bad ? b->bad : b->rkey_recv};
        b->rbuf_end += len;
    }
    if (malformed)
        for (wr.nsge = 0; wr.nsge < 5; wr.nsge++)
            sge[wr.nsge] = (struct engine_sge){IOVA, 1, b->rkey_recv};
    b->rbuf_end += 16; /* guard */
    ck_assert_int_eq(
        b->srq ? engine_post_srq_recv(b->e, b->srq, &wr) : engine_post_recv(b->e, b->qp, &wr), 0);
}

/* "mem OFF LEN is PSN:OFF", "mem OFF LEN clean", "mem OFF LEN val=N"; rbuf the same after its
 * number. */
static void step_mem(struct bed *b)
{
    const bool recv = !strcmp(words[0], "rbuf");
    const unsigned at = recv ? 2 : 1;
    size_t off = strtoul(words[at], NULL, 0), len = strtoul(words[at + 1], NULL, 0);
    const uint8_t *p = recv ? rbufs + b->rbuf[strtoul(words[1], NULL, 0)] + off : region + off;
    if (!strcmp(words[at + 2], "is")) {
        char *end;
        uint32_t psn = (uint32_t)strtoul(words[at + 3], &end, 0);
        size_t from = strtoul(end + 1, NULL, 0);
        for (size_t i = 0; i < len; i++)
            COMPARE(b, "octet", p[i], payload_octet(psn, from + i));
    } else if (field("val")) {
        uint64_t v;
        memcpy(&v, p, 8);
        COMPARE(b, "value", v, number("val", 0));
    } else {
        for (size_t i = 0; i < len; i++)
            COMPARE(b, "octet", p[i], recv ? 0xEE : region_octet(off + i));
    }
}

static unsigned counter_of(struct bed *b, const char *name)
{
    for (unsigned i = 0; i < ENGINE_COUNTER_MAX; i++)
        if (!strcmp(engine_counter_names[i], name))
            return i;
    FAIL(b, "no such counter");
    return 0;
}

static void step_count(struct bed *b)
{
    COMPARE(b, "counter", engine_counters(b->e)[counter_of(b, words[1])],
            strtoul(words[2], NULL, 0));
}

static void step_state(struct bed *b)
{
    struct engine_qp_info info;
    engine_qp_info(b->e, b->qp, &info);
    if (strcmp(qp_state_names[info.state], words[1]))
        FAIL(b, "state %s: %s", qp_state_names[info.state], info.error);
}

static void step_put(struct bed *b)
{
    (void)b;
    uint64_t v = number("val", 0);
    memcpy(region + strtoul(words[1], NULL, 0), &v, 8);
}

/* To SQD, where max_dest_rd_atomic may change, and back. */
static void step_dest(struct bed *b)
{
    struct engine_qp_attr a = {.state = QPS_SQD};
    ck_assert_int_eq(engine_qp_modify(b->e, b->qp, &a, QPA_STATE, b->now), 0);
    a.max_dest_rd_atomic = (uint8_t)strtoul(words[1], NULL, 0);
    ck_assert_int_eq(engine_qp_modify(b->e, b->qp, &a, QPA_STATE | QPA_MAX_DEST_RD_ATOMIC, b->now),
                     0);
    a.state = QPS_RTS;
    ck_assert_int_eq(engine_qp_modify(b->e, b->qp, &a, QPA_STATE, b->now), 0);
}

/* The queue pair's state: "err", "sqd", "reset". */
static void step_modify(struct bed *b)
{
    struct engine_qp_attr a = {0};
    bed_modify(b, &a,
               !strcmp(words[0], "err")   ? QPS_ERR
               : !strcmp(words[0], "sqd") ? QPS_SQD
                                          : QPS_RESET,
               0);
}

/* "flood N OPCODE PSN ...": N bursts of one request each; answers are counted and forgotten.
 * "flood+": each with the next PSN. */
static void step_flood(struct bed *b)
{
    bool next = !strcmp(words[0], "flood+");
    unsigned n = (unsigned)strtoul(words[1], NULL, 0);
    memmove(words[1], words[2], (nwords - 2) * sizeof(words[0]));
    nwords--;
    for (unsigned i = 0; i < n; i++) {
        b->nframes = 0;
        step_in(b);
        bed_pump(b);
        b->nout = b->oout = 0;
        if (next)
            snprintf(words[2], sizeof(words[2]), "%ld", strtol(words[2], NULL, 0) + 1);
    }
}

static void step_drop(struct bed *b)
{
    COMPARE(b, "drop", b->last_drop, counter_of(b, words[1]));
}

static void step_room(struct bed *b)
{
    COMPARE(b, "room", b->srq ? engine_srq_room(b->srq) : engine_rq_room(b->qp),
            strtoul(words[1], NULL, 0));
}

static void step_hold(struct bed *b)
{
    b->hold = true;
}

static void step_copy(struct bed *b)
{
    bed_copies(b, nwords > 1 ? -EFAULT : 0);
    b->hold = false;
    if (!b->dead)
        bed_tx(b);
}

static void step_gather(struct bed *b)
{
    b->gather_fail = true;
}

/* "notx", "tx": is the port full? */
static void step_tx(struct bed *b)
{
    b->notx = !strcmp(words[0], "notx");
    bed_pump(b);
}

static void step_revoke(struct bed *b)
{
    COMPARE(b, "deregistration", mem_mr_dereg(engine_mem(b->e), key_of(b, words[1])),
            flag("busy") ? -EINPROGRESS : 0);
}

static void step_wait(struct bed *b)
{
    b->now += strtoull(words[1], NULL, 0);
}

static void step_limit(struct bed *b)
{
    uint32_t limit = (uint32_t)strtoul(words[1], NULL, 0);
    ck_assert_int_eq(engine_srq_modify(b->e, b->srq, 0, limit, SRQA_LIMIT), 0);
}

static void step_dead(struct bed *b)
{
    engine_qp_destroy(b->e, b->qp);
    b->dead = true;
}

static const struct {
    const char *word;
    void (*run)(struct bed *b);
} steps[] = {
    {">", step_out},       {"=", step_wc},          {"!", step_event},
    {"recv", step_recv},   {"recv-bad", step_recv}, {"recv-malformed", step_recv},
    {"mem", step_mem},     {"rbuf", step_mem},      {"put", step_put},
    {"count", step_count}, {"drop", step_drop},     {"room", step_room},
    {"state", step_state}, {"rts", bed_to_rts},     {"err", step_modify},
    {"sqd", step_modify},  {"reset", step_modify},  {"dead", step_dead},
    {"dest", step_dest},   {"limit", step_limit},   {"hold", step_hold},
    {"copy", step_copy},   {"gather", step_gather}, {"notx", step_tx},
    {"tx", step_tx},       {"revoke", step_revoke}, {"wait", step_wait},
    {"flood", step_flood}, {"flood+", step_flood},
};

static void step(struct bed *b)
{
    if (!strcmp(words[0], "<")) { /* the burst continues */
        step_in(b);
        return;
    }
    bed_pump(b);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
        if (!strcmp(words[0], steps[i].word)) {
            steps[i].run(b);
            return;
        }
    FAIL(b, "no such step");
}

static void run(const struct script *s, uint32_t psn0)
{
    static struct bed bed;
    struct bed *b = &bed;
    bed_setup(b, s, psn0);
    for (const char *p = s->text; *p;) {
        static char line[200];
        size_t n = strcspn(p, ";\n");
        size_t k = n < sizeof(line) ? n : sizeof(line) - 1;
        memcpy(line, p, k);
        line[k] = 0;
        p += n + (p[n] != 0);
        b->line = line;
        split(b, line);
        if (nwords > 0)
            step(b);
    }
    b->line = NULL;
    bed_pump(b);
    nothing_left(b);
    bed_teardown(b);
}

static const struct script *all;

START_TEST(one_script)
{
    static const uint32_t psns[] = {0x1000, 0xFFFFF0, 0x7FFFF8, 0xFFFFFF}; /* PSN-05 */
    const struct script *s = &all[_i];
    for (unsigned i = 0; i < sizeof(psns) / sizeof(psns[0]); i++)
        run(s, psns[i]);
}
END_TEST

int script_main(const char *suite, const struct script *scripts, unsigned n)
{
    Suite *s = suite_create(suite);
    TCase *t = tcase_create("scripts");
    all = scripts;
    tcase_add_loop_test(t, one_script, 0, (int)n);
    suite_add_tcase(s, t);
    return unit_run(s);
}
