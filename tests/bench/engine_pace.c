/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The cost of a packet with paced queue pairs, by their number: the same total rate, in virtual
 * time, with the payload gathered and sealed as a worker does it.
 *
 *     engine_pace [QPS ...]        default: 1 1000
 *
 * JSON, one object per line: {"name", "qps", "value": packets per second of CPU time,
 * "rate": sent / wanted}.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine.h"

#define TOTAL   20000000000ull /* bit/s of all queue pairs together */
#define LOOK    2000u          /* ns between two rounds of the worker */
#define PACKETS 2000000u
#define MTU     1024u
#define MEMORY  (1u << 20)
#define VA      0x10000000ull

static uint8_t memory[MEMORY];
static uint8_t frames[ENGINE_BURST][WIRE_FRAME_MAX];
static struct engine_slot slots[ENGINE_BURST];

static uint64_t done[2 * ENGINE_BURST]; /* queue pairs with a completed message */
static unsigned ndone;

static bool on_cq_push(void *arg, void *cq_arg, const struct engine_wc *wc)
{
    (void)arg, (void)cq_arg;
    done[ndone++] = wc->wr_id;
    return true;
}

static void die(const char *what)
{
    fprintf(stderr, "engine_pace: %s\n", what);
    exit(1);
}

static double cpu_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static struct engine *make_engine(uint64_t rate, uint32_t *pd, uint32_t *lkey, struct cq **cq)
{
    struct engine_params p = {
        .hooks = {.cq_push = on_cq_push},
        .key = {1, 2},
        .max_qp = 4096,
        .mem = {.max_pd = 2, .max_mr = 2, .max_mw = 2, .key = {1, 2}},
    };
    struct wire_addr ip = wire_addr_v4(0x0A000001);
    struct mem_seg seg = {memory, 0, MEMORY};
    uint32_t rkey;
    cc_conf_init(&p.cc, &cc_fixed);
    p.cc.v[CC_P_rate] = rate;
    struct engine *e = engine_create(&p, 0);
    if (!e || engine_addr_add(e, &ip) || mem_pd_alloc(engine_mem(e), pd) ||
        mem_mr_reg(engine_mem(e), *pd, VA, MEMORY, MEM_LOCAL_WRITE, &seg, 1, memory, lkey, &rkey) ||
        engine_cq_create(e, NULL, cq))
        die("out of memory");
    return e;
}

/* UC: a sent request is complete, so only sending is measured. */
static struct qp *make_qp(struct engine *e, uint32_t pd, struct cq *cq)
{
    struct engine_qp_params q = {
        .type = QP_UC, .pd = pd, .send_cq = cq, .recv_cq = cq, .max_send_wr = 4};
    struct engine_qp_attr a = {
        .state = QPS_INIT,
        .port = 1,
        .path_mtu = 3,
        .dest_qpn = 77,
        .av = {.sgid = wire_addr_v4(0x0A000001), .dgid = wire_addr_v4(0x0A000002)},
    };
    struct qp *qp;
    if (engine_qp_create(e, &q, &qp) ||
        engine_qp_modify(e, qp, &a, QPA_STATE | QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS, 0))
        die("no queue pair");
    a.state = QPS_RTR;
    if (engine_qp_modify(e, qp, &a, QPA_STATE | QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN,
                         0))
        die("no RTR");
    a.state = QPS_RTS;
    if (engine_qp_modify(e, qp, &a, QPA_STATE | QPA_SQ_PSN, 0))
        die("no RTS");
    return qp;
}

/* All of the memory in turn, with any number of queue pairs. */
static void post(struct engine *e, struct qp *qp, uint32_t lkey, uint32_t i, uint64_t now)
{
    static unsigned place;
    struct engine_sge sge = {VA + place++ % (MEMORY / 65536) * 65536ull, 65536, lkey};
    struct engine_send_wr wr = {.wr_id = i,
                                .flags = WR_F_SIGNALED,
                                .opcode = WR_RDMA_WRITE,
                                .nsge = 1,
                                .sge = &sge,
                                .rkey = 1,
                                .remote_va = VA};
    engine_post_send(e, qp, &wr, now);
}

static void gather(const struct engine_slot *s)
{
    uint8_t *to = s->buf + s->payload_off;
    for (unsigned k = 0; k < s->npieces; k++) {
        const struct mem_piece *p = &s->pieces[k];
        memcpy(to, (const uint8_t *)p->obj + p->off, p->len);
        to += p->len;
    }
}

static void seal(const struct engine_slot *s)
{
    wire_icrc_seal(s->buf, s->len, s->ip_off, s->bth_off);
}

/* A frame is sealed while the next one's payload is on its way, as a worker does it. */
static unsigned send_round(struct engine *e, uint64_t now)
{
    unsigned n = engine_tx(e, slots, ENGINE_BURST, now);
    for (unsigned i = 0; i < n; i++) {
        gather(&slots[i]);
        if (i > 0)
            seal(&slots[i - 1]);
    }
    if (n > 0)
        seal(&slots[n - 1]);
    engine_sent(e, slots, n, now);
    return n;
}

static void measure(unsigned qps)
{
    uint32_t pd, lkey;
    struct cq *cq;
    struct engine *e = make_engine(TOTAL / qps, &pd, &lkey, &cq);
    struct qp **qp = calloc(qps, sizeof(struct qp *));
    for (unsigned i = 0; i < ENGINE_BURST; i++) {
        slots[i].buf = frames[i];
        slots[i].cap = WIRE_FRAME_MAX;
    }
    for (unsigned i = 0; i < qps; i++) {
        qp[i] = make_qp(e, pd, cq);
        while (engine_sq_room(qp[i]))
            post(e, qp[i], lkey, i, 0);
    }
    uint64_t sent = 0, octets = 0, now = 0;
    double begin = cpu_time();
    while (sent < PACKETS) {
        now += LOOK;
        if (engine_deadline(e) <= now)
            engine_expire(e, now);
        for (unsigned n; (n = send_round(e, now)) > 0; sent += n) {
            octets += (uint64_t)n * slots[0].len;
            while (ndone > 0) {
                uint64_t i = done[--ndone];
                post(e, qp[i], lkey, (uint32_t)i, now);
            }
        }
    }
    double s = cpu_time() - begin;
    printf("{\"name\":\"engine_pace\",\"qps\":%u,\"value\":%.0f,\"rate\":%.4f}\n", qps,
           (double)sent / s, (double)octets * 8e9 / (double)now / (double)TOTAL);
    fflush(stdout);
    free(qp);
    engine_destroy(e);
}

int main(int argc, char **argv)
{
    if (argc == 1) {
        measure(1);
        measure(1000);
    }
    for (int i = 1; i < argc; i++) {
        char *end;
        unsigned long n = strtoul(argv[i], &end, 0);
        if (*end || n < 1 || n > 4096) {
            fprintf(stderr, "usage: engine_pace [QPS ...]   1 to 4096 each\n");
            return 2;
        }
        measure((unsigned)n);
    }
    return 0;
}
