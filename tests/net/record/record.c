/* SPDX-License-Identifier: BSD-3-Clause
 *
 *     record [--seed N] DIR [NAME ...]
 *         writes own-NAME.pcapng and own-NAME.txt; another seed than 0: the same scenarios, with
 *         other dice
 *     record --list
 *         name, MTU and required events, one a line
 */
#include "record.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define EPOCH 1767225600000000000ull /* 2026-01-01: captures have a date */
#define LINK  ",rate=10G,delay=5us,log=16384"

#define A          0
#define B          1
#define C(counter) ENGINE_C_##counter

static const struct record_step around_mtu[] = {
    {WR_SEND, 0, 0, 1},
    {WR_SEND, 0, 1, 1},
    {WR_SEND, 0, 1023, 1},
    {WR_SEND_WITH_IMM, WR_F_SOLICITED, 1024, 1},
    {WR_SEND, WR_F_SOLICITED, 1025, 1},
    {WR_SEND_WITH_IMM, 0, 3074, 1},
    {WR_RDMA_WRITE, 0, 0, 1},
    {WR_RDMA_WRITE, 0, 1, 1},
    {WR_RDMA_WRITE, 0, 1024, 1},
    {WR_RDMA_WRITE_WITH_IMM, 0, 1025, 1},
    {WR_RDMA_WRITE, 0, 3074, 1},
    {WR_RDMA_READ, 0, 0, 1},
    {WR_RDMA_READ, 0, 1, 1},
    {WR_RDMA_READ, 0, 1024, 1},
    {WR_RDMA_READ, 0, 1025, 1},
    {WR_RDMA_READ, 0, 3074, 1},
    {WR_ATOMIC_FETCH_AND_ADD, 0, 8, 2},
    {WR_ATOMIC_CMP_AND_SWP, 0, 8, 2},
    {0},
};
static const struct record_step mixed[] = {
    {WR_SEND, 0, 1500, 6},
    {WR_RDMA_WRITE, 0, 2000, 6},
    {WR_RDMA_READ, 0, 2000, 6},
    {WR_ATOMIC_FETCH_AND_ADD, 0, 8, 4},
    {WR_RDMA_WRITE_WITH_IMM, 0, 700, 3},
    {WR_SEND_WITH_IMM, 0, 300, 3},
    {0},
};
static const struct record_step few[] = {
    {WR_SEND, 0, 700, 3},
    {WR_RDMA_WRITE, 0, 1500, 4},
    {WR_RDMA_READ, 0, 1500, 4},
    {WR_ATOMIC_FETCH_AND_ADD, 0, 8, 3},
    {WR_RDMA_WRITE_WITH_IMM, 0, 700, 2},
    {0},
};
static const struct record_step sends[] = {{WR_SEND, 0, 1500, 8}, {0}};
static const struct record_step writes[] = {{WR_RDMA_WRITE, 0, 6000, 6}, {0}};
static const struct record_step streams[] = {{WR_RDMA_WRITE, 0, 32768, 4}, {0}};
static const struct record_step reads[] = {
    {WR_RDMA_READ, 0, 0, 1}, {WR_RDMA_READ, 0, 100, 2}, {WR_RDMA_READ, 0, 5000, 10}, {0}};
static const struct record_step atomics[] = {
    {WR_ATOMIC_FETCH_AND_ADD, 0, 8, 8}, {WR_ATOMIC_CMP_AND_SWP, 0, 8, 8}, {0}};
static const struct record_step unreliable[] = {{WR_SEND, 0, 1500, 5},
                                                {WR_SEND_WITH_IMM, 0, 100, 5},
                                                {WR_RDMA_WRITE, 0, 1500, 5},
                                                {WR_RDMA_WRITE_WITH_IMM, 0, 1500, 5},
                                                {0}};

#define SMALL                                                                                      \
    {                                                                                              \
        .mtu = 256, .timeout = 8, .sq_psn = { 0x100, 0x800100 }                                    \
    }
#define NORMAL                                                                                     \
    {                                                                                              \
        .mtu = 1024, .timeout = 8, .sq_psn = { 0x100, 0x800100 }                                   \
    }

static const struct record_scenario scenarios[] = {
    {.name = "around-mtu",
     .shows = "every RC operation at sizes around the MTU",
     .qp = NORMAL,
     .steps = around_mtu},
    {.name = "ipv6",
     .shows = "the same over IPv6",
     .qp = {.mtu = 1024, .ipv6 = true, .sq_psn = {0x100, 0x800100}},
     .steps = around_mtu},
    {.name = "psn-wrap",
     .shows = "PSNs that wrap, both ways",
     .qp = {.mtu = 256, .sq_psn = {0xFFFFF0, 0xFFFFF8}},
     .steps = mixed,
     .both = true},
    {.name = "read", .shows = "READs", .qp = SMALL, .steps = reads},
    {.name = "atomics", .shows = "FETCH ADD and COMPARE SWAP", .qp = NORMAL, .steps = atomics},
    {.name = "loss",
     .shows = "5 % lost both ways",
     .loss = {0.05, 0.05},
     .qp = SMALL,
     .steps = mixed,
     .must = {{A, C(packet_seq_err)}, {A, C(tx_retransmit)}, {B, C(out_of_sequence)}}},
    {.name = "lose-requests",
     .shows = "15 % of A's packets lost: sequence NAKs, go-back-N",
     .loss = {0.15, 0},
     .qp = SMALL,
     .steps = mixed,
     .must = {{A, C(packet_seq_err)}, {B, C(tx_nak_seq)}}},
    {.name = "lose-responses",
     .shows = "25 % of B's packets lost: time-outs, repeated requests, READs from the middle",
     .loss = {0, 0.25},
     .qp = SMALL,
     .steps = mixed,
     .must = {{A, C(implied_nak_seq_err)}, {B, C(duplicate_request)}}},
    {.name = "lose-atomics",
     .shows = "25 % lost both ways: each ATOMIC happens once",
     .loss = {0.25, 0.25},
     .qp = NORMAL,
     .steps = atomics,
     .must = {{B, C(duplicate_request)}, {A, C(local_ack_timeout_err)}}},
    {.name = "reorder",
     .shows = "5 % reordered both ways",
     .link = ",reorder=0.05",
     .qp = SMALL,
     .steps = mixed,
     .must = {{B, C(out_of_sequence)}}},
    {.name = "duplicate",
     .shows = "10 % doubled both ways",
     .link = ",dup=0.1",
     .qp = SMALL,
     .steps = mixed,
     .must = {{B, C(duplicate_request)}}},
    {.name = "corrupt",
     .shows = "5 % damaged both ways: the iCRC finds it",
     .link = ",corrupt=0.05",
     .qp = SMALL,
     .steps = mixed,
     .must = {{A, C(rx_icrc_err)}, {B, C(rx_icrc_err)}}},
    {.name = "corrupt-at-b",
     .shows = "the same, captured where the damaged requests arrive",
     .link = ",corrupt=0.05",
     .taps = 2,
     .qp = SMALL,
     .steps = mixed,
     .must = {{B, C(rx_icrc_err)}}},
    {.name = "all-faults",
     .shows = "loss, doubling, reordering and damage together, requests both ways",
     .link = ",loss=0.02,dup=0.02,reorder=0.02,corrupt=0.02",
     .qp = SMALL,
     .steps = few,
     .both = true,
     .must = {{A, C(tx_retransmit)}, {B, C(tx_retransmit)}}},
    {.name = "all-faults-at-both",
     .shows = "the same, captured at both ends",
     .link = ",loss=0.02,dup=0.02,reorder=0.02,corrupt=0.02",
     .taps = 3,
     .qp = SMALL,
     .steps = few,
     .must = {{A, C(tx_retransmit)}}},
    {.name = "congestion",
     .shows = "CE marks, CNPs, and DCQCN slowing down; captured at B, where the marks arrive",
     .link = ",ecn_kmin=2K,ecn_kmax=4K,ecn_pmax=1",
     .taps = 2,
     .cc = "dcqcn",
     .qp = NORMAL,
     .steps = streams,
     .must = {{B, C(np_cnp_sent)}, {A, C(rp_cnp_handled)}}},
    {.name = "rnr",
     .shows = "RNR NAKs: no receive is there at first",
     .qp = NORMAL,
     .steps = sends,
     .late_recv = true,
     .must = {{B, C(tx_rnr_nak)}, {A, C(rnr_nak_retry_err)}}},
    {.name = "rnr-loss",
     .shows = "RNR NAKs and 10 % loss both ways",
     .loss = {0.1, 0.1},
     .qp = SMALL,
     .steps = sends,
     .late_recv = true,
     .must = {{B, C(tx_rnr_nak)}, {A, C(tx_retransmit)}}},
    {.name = "bad-rkey",
     .shows = "WRITE with a wrong R_Key: NAK remote access error",
     .qp = NORMAL,
     .run = record_bad_rkey,
     .status = WC_REM_ACCESS_ERR,
     .must = {{B, C(tx_nak_rem_access)}}},
    {.name = "read-beyond",
     .shows = "READ past the end of the region: NAK remote access error",
     .qp = NORMAL,
     .run = record_read_outside,
     .status = WC_REM_ACCESS_ERR,
     .must = {{B, C(tx_nak_rem_access)}}},
    {.name = "too-long",
     .shows = "SEND longer than the receive: NAK invalid request",
     .qp = NORMAL,
     .run = record_too_long,
     .status = WC_REM_INV_REQ_ERR,
     .must = {{B, C(tx_nak_inv_req)}}},
    {.name = "memory-gone",
     .shows = "a receive buffer that can't be reached: NAK remote operational error",
     .qp = NORMAL,
     .run = record_copy_fails,
     .status = WC_REM_OP_ERR,
     .must = {{B, C(tx_nak_rem_op)}}},
    {.name = "peer-gone",
     .shows = "B is gone: retransmissions until A gives up",
     .qp = {.mtu = 1024, .timeout = 8, .retry_cnt = 3, .sq_psn = {0x100, 0x800100}},
     .run = record_peer_gone,
     .status = WC_RETRY_EXC_ERR,
     .must = {{A, C(retry_exceeded_err)}}},
    {.name = "selective-repeat",
     .shows = "selective repeat, agreed by both, with 5 % loss both ways",
     .loss = {0.05, 0.05},
     .qp = {.mtu = 256,
            .timeout = 8,
            .sq_psn = {0x100, 0x800100},
            .recovery = {RECOVER_SR, RECOVER_SR}},
     .steps = writes,
     .must = {{B, C(tx_sack)}, {A, C(rx_sack)}, {A, C(tx_retransmit)}}},
    {.name = "selective-mixed",
     .shows = "the same with SENDs, READs and ATOMICs between the WRITEs",
     .loss = {0.05, 0.05},
     .qp = {.mtu = 256,
            .timeout = 8,
            .sq_psn = {0x100, 0x800100},
            .recovery = {RECOVER_SR, RECOVER_SR}},
     .steps = mixed,
     .must = {{B, C(tx_sack)}, {A, C(rx_sack)}, {A, C(tx_retransmit)}}},
    {.name = "early-writes",
     .shows = "go-back-N; B keeps what comes early of WRITEs; 5 % of A's packets lost",
     .loss = {0.05, 0},
     .qp = {.mtu = 256,
            .timeout = 8,
            .sq_psn = {0x100, 0x800100},
            .recovery = {RECOVER_GBN, RECOVER_GBN_OOO}},
     .steps = writes,
     .must = {{B, C(rx_placed_early)}}},
    {.name = "send-inv",
     .shows = "SEND with invalidate of fast-registered regions",
     .qp = NORMAL,
     .run = record_send_inv},
    {.name = "windows",
     .shows = "memory windows of type 1 and 2; one is invalidated, then used: access error",
     .qp = NORMAL,
     .run = record_windows,
     .status = WC_REM_ACCESS_ERR,
     .must = {{B, C(tx_nak_rem_access)}}},
    {.name = "uc",
     .shows = "UC: SEND and WRITE, with and without immediate",
     .qp = {.mtu = 256, .type = QP_UC, .sq_psn = {0x100, 0x800100}},
     .steps = unreliable},
    {.name = "uc-loss",
     .shows = "UC with 15 % loss: messages with holes are dropped whole",
     .loss = {0.15, 0},
     .qp = {.mtu = 256, .type = QP_UC, .sq_psn = {0x100, 0x800100}},
     .taps = 2,
     .steps = unreliable,
     .must = {{B, C(uc_drop_msg)}}},
    {.name = "ud",
     .shows = "datagrams over IPv4 and IPv6; at last without a receive, and with a wrong Q_Key",
     .qp = NORMAL,
     .run = record_ud,
     .must = {{B, C(rx_bad_qkey)}}},
    {.name = "multicast",
     .shows = "datagrams to an IPv4 and an IPv6 group of two; captured at B",
     .qp = NORMAL,
     .taps = 2,
     .run = record_multicast},
    {.name = "cm",
     .shows = "CM REQ, REP, RTU, DREQ, DREP around SEND, WRITE and READ",
     .qp = NORMAL,
     .run = record_cm},
    {.name = "cm-ipv6", .shows = "the same over IPv6", .qp = {.ipv6 = true}, .run = record_cm},
    {.name = "cm-loss",
     .shows = "the same with 30 % loss both ways: MADs are repeated",
     .loss = {0.3, 0.3},
     .qp = NORMAL,
     .run = record_cm,
     .must = {{A, C(tx_retransmit)}}},
    {.name = "cm-reject", .shows = "nobody listens: REJ", .qp = NORMAL, .run = record_cm_reject},
    {.name = "cm-sidr",
     .shows = "finding a datagram service: SIDR REQ and REP",
     .qp = NORMAL,
     .run = record_cm_udp},
};
#define SCENARIOS (sizeof(scenarios) / sizeof(scenarios[0]))

/* ---- helpers ---- */

int record_fail(struct record *r, const char *fmt, ...)
{
    va_list ap;
    if (r->why[0])
        return -1;
    va_start(ap, fmt);
    vsnprintf(r->why, sizeof(r->why), fmt, ap);
    va_end(ap);
    return -1;
}

void record_log(struct record *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vfprintf(r->log, fmt, ap);
    va_end(ap);
    fputc('\n', r->log);
}

uint64_t record_va(unsigned host, unsigned slot)
{
    return (host + 1) * 0x10000000ull + (uint64_t)slot * RECORD_SLOT;
}

uint8_t *record_at(const struct record *r, unsigned host, unsigned slot)
{
    return r->arena[host] + (size_t)slot * RECORD_SLOT;
}

struct engine_send_wr record_wr(const struct record *r, unsigned side, uint8_t opcode,
                                unsigned slot, uint32_t len, struct engine_sge *sge)
{
    *sge = (struct engine_sge){record_va(side, slot), len, r->lkey[side]};
    return (struct engine_send_wr){.wr_id = slot,
                                   .opcode = opcode,
                                   .flags = WR_F_SIGNALED,
                                   .nsge = len ? 1 : 0,
                                   .rkey = r->rkey[!side],
                                   .remote_va = record_va(!side, slot),
                                   .sge = sge};
}

int record_post(struct record *r, unsigned side, const struct engine_send_wr *wr)
{
    int rc = engine_post_send(r->host[side]->engine, r->qp[side], wr, r->net->now);
    return rc ? record_fail(r, "posting %u: %d", (unsigned)wr->wr_id, rc) : 0;
}

int record_post_recv(struct record *r, unsigned side, unsigned slot, uint32_t len)
{
    struct engine_sge sge = {record_va(side, RECORD_SLOTS + slot), len, r->lkey[side]};
    struct engine_recv_wr wr = {.wr_id = slot, .nsge = 1, .sge = &sge};
    int rc = engine_post_recv(r->host[side]->engine, r->qp[side], &wr);
    return rc ? record_fail(r, "posting receive %u: %d", slot, rc) : 0;
}

struct until {
    const struct vnet_host *host;
    size_t wcs;
};

static bool has_wcs(void *ctx)
{
    const struct until *u = ctx;
    return u->host->wcs_n >= u->wcs;
}

int record_wait(struct record *r, unsigned side, size_t wcs)
{
    struct until u = {r->host[side], wcs};
    return vnet_run(r->net, has_wcs, &u, RECORD_LIMIT) ? record_fail(r, "%s", r->net->why) : 0;
}

int record_connect(struct record *r)
{
    const struct vnet_qp_params *q = &r->s->qp;
    int rc = vnet_connect(r->host[0], r->host[1], q, &r->qp[0], &r->qp[1]);
    if (rc)
        return record_fail(r, "connecting: %d", rc);
    for (unsigned i = 0; i < 2; i++)
        record_log(r, "%c qpn %06x psn %06x lkey %08x rkey %08x addr %llx", 'A' + (int)i,
                   engine_qp_num(r->qp[i]), q->sq_psn[i], r->lkey[i], r->rkey[i],
                   (unsigned long long)record_va(i, 0));
    return 0;
}

/* ---- one scenario ---- */

struct tap {
    struct record *r;
    int interface;
};

static void on_frame(void *ctx, bool sent, const uint8_t *frame, uint32_t len, uint64_t now)
{
    const struct tap *t = ctx;
    pcapng_packet(t->r->out, t->interface, now, sent ? CAPTURE_OUT : CAPTURE_IN, frame, len, NULL);
}

static int world(struct record *r, uint64_t seed, struct tap tap[RECORD_HOSTS])
{
    const struct record_scenario *s = r->s;
    unsigned taps = s->taps ? s->taps : 1, hosts = s->run == record_multicast ? 3 : 2;
    char keys[256];
    snprintf(keys, sizeof(keys), LINK "%s", s->link ? s->link : "");
    r->net = vnet_new(hosts, keys, seed);
    if (!r->net)
        return record_fail(r, "no network");
    for (unsigned i = 0; i < hosts; i++) {
        struct vnet_host *h = r->host[i] = r->net->hosts[i];
        r->arena[i] = calloc(1, RECORD_ARENA);
        struct mem_seg seg = vnet_seg(r->arena[i], RECORD_ARENA);
        if (!r->arena[i] || mem_mr_reg(h->mem, h->pd, record_va(i, 0), RECORD_ARENA,
                                       MEM_LOCAL_WRITE | MEM_REMOTE_ANY | MEM_MW_BIND, &seg, 1, r,
                                       &r->lkey[i], &r->rkey[i]))
            return record_fail(r, "no memory");
        if (i < 2) {
            struct mem_link_faults f;
            mem_link_faults_get(r->net->link, i, &f);
            if (s->loss[i] > 0) {
                f.loss = s->loss[i];
                mem_link_faults_set(r->net->link, i, &f);
            }
        }
        struct cc_conf conf;
        if (cc_conf_parse(&conf, s->cc ? s->cc : "none", r->why, sizeof(r->why)) ||
            engine_set_cc(h->engine, &conf, 0))
            return -1;
        if (!(taps >> i & 1))
            continue;
        const char name[] = {(char)('A' + i), 0};
        tap[i] = (struct tap){r, pcapng_interface(r->out, name, NULL, 10000000000u)};
        h->tap = (struct vnet_tap){&tap[i], on_frame};
    }
    return 0;
}

static void log_completions(struct record *r)
{
    for (unsigned i = 0; i < r->net->hosts_n; i++)
        for (size_t k = 0; k < r->host[i]->wcs_n; k++) {
            const struct vnet_wc *c = &r->host[i]->wcs[k];
            record_log(r, "%c: wr %llu %s opcode %u len %u flags %u imm/inv %x at %.3f us",
                       'A' + (int)i, (unsigned long long)c->wc.wr_id,
                       engine_status_name(c->wc.status), c->wc.opcode, c->wc.byte_len,
                       c->wc.wc_flags, c->wc.imm, (double)c->time / 1e3);
        }
}

/* Did the scenario show its event? */
static int judge(struct record *r)
{
    const struct record_scenario *s = r->s;
    enum wc_status first = WC_SUCCESS;
    for (size_t k = 0; k < r->host[0]->wcs_n && first == WC_SUCCESS; k++)
        first = r->host[0]->wcs[k].wc.status;
    if (first != s->status)
        return record_fail(r, "A's completions: %s, not %s", engine_status_name(first),
                           engine_status_name(s->status));
    for (const struct record_must *m = s->must; m->counter; m++) {
        uint64_t n = engine_counters(r->host[m->host]->engine)[m->counter];
        if (!n)
            return record_fail(r, "%c's %s is 0", 'A' + (int)m->host,
                               engine_counter_names[m->counter]);
        record_log(r, "%c: %s %llu", 'A' + (int)m->host, engine_counter_names[m->counter],
                   (unsigned long long)n);
    }
    return 0;
}

/* The seed follows from the name: a scenario more changes nothing in the others. */
static uint64_t seed_of(const char *name)
{
    uint64_t h = 0xCBF29CE484222325u;
    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * 0x100000001B3u;
    return h;
}

static int record_one(const char *dir, const struct record_scenario *s, uint64_t seed)
{
    struct record r = {.s = s};
    struct tap tap[RECORD_HOSTS];
    char path[1024];
    int rc = -1;
    snprintf(path, sizeof(path), "%s/own-%s.txt", dir, s->name);
    r.log = fopen(path, "w");
    snprintf(path, sizeof(path), "%s/own-%s.pcapng", dir, s->name);
    if (!r.log ||
        pcapng_create(path, PCAPNG_DROPS, &(struct pcapng_options){.epoch = EPOCH}, &r.out) < 0) {
        perror(path);
    } else {
        record_log(&r, "$ record DIR %s", s->name);
        rc = world(&r, seed_of(s->name) + seed, tap);
        rc = rc ? rc : s->run ? s->run(&r) : record_steps(&r);
        if (r.net && r.host[0])
            log_completions(&r);
        rc = rc ? rc : judge(&r);
    }
    if (r.out && pcapng_close(r.out))
        rc = record_fail(&r, "can't be written");
    if (r.log)
        fclose(r.log);
    if (rc)
        fprintf(stderr, "%s: %s\n", s->name, r.why);
    if (r.net)
        vnet_free(r.net);
    for (unsigned i = 0; i < RECORD_HOSTS; i++)
        free(r.arena[i]);
    return rc;
}

static const struct record_scenario *scenario(const char *name)
{
    for (size_t i = 0; i < SCENARIOS; i++)
        if (!strcmp(name, scenarios[i].name))
            return &scenarios[i];
    return NULL;
}

int main(int argc, char **argv)
{
    int rc = 0;
    uint64_t seed = 0;
    if (argc > 3 && !strcmp(argv[1], "--seed")) {
        seed = strtoull(argv[2], NULL, 0);
        argc -= 2;
        argv += 2;
    }
    if (argc < 2) {
        fprintf(stderr, "usage: record [--seed N] DIR [NAME ...]\n       record --list\n");
        return 2;
    }
    for (int k = 2; k < argc; k++)
        if (!scenario(argv[k])) {
            fprintf(stderr, "record: no scenario '%s'; --list names them\n", argv[k]);
            return 2;
        }
    for (size_t i = 0; i < SCENARIOS; i++) {
        const struct record_scenario *s = &scenarios[i];
        bool wanted = argc == 2;
        for (int k = 2; k < argc; k++)
            wanted |= !strcmp(argv[k], s->name);
        if (!strcmp(argv[1], "--list"))
            printf("%s\t%u\t%s\n", s->name, s->qp.mtu ? s->qp.mtu : 1024, s->shows);
        else if (wanted)
            rc |= record_one(argv[1], s, seed);
    }
    return rc ? 1 : 0;
}
