/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Each invariant of lib/core notices its violation, by name, and holds before and after. A build
 * that checks them in every phase prints one line and aborts.
 */
#include "engine_ok.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core_rig.h"
#include "cq.h"
#include "engine_priv.h"
#include "rd_ring.h"
#include "schedule.h"
#include "send_queue.h"
#include "sr.h"
#include "sr_rig.h"
#include "srq.h"

/* The scene: packets in flight. */
enum scene {
    IDLE,
    OUT,     /* three WRITEs are sent, none is answered */
    READING, /* one of two answers to a READ has come */
    COPYING, /* the copies of a WRITE, and of a READ's first answer, take their time */
    ANSWERS, /* a READ of the peer waits to be answered, a SEND for its last packet */
    REPEAT,  /* selective repeat: packets have come early, and one of ours is missing there */
};

static struct rig *scene(enum scene s)
{
    struct rig *r = s == REPEAT ? agreed(NULL) : rig_new(NULL);
    struct wire_pkt p;
    switch (s) {
    case IDLE:
        rig_tx(r, 0);
        break;
    case OUT:
        for (unsigned i = 0; i < 3; i++)
            rig_post(r, WR_RDMA_WRITE, i, RIG_MTU, WR_F_SIGNALED);
        rig_tx(r, 0);
        break;
    case COPYING:
        r->late = true;
        p = rig_pkt(r, WIRE_WRITE_ONLY, RIG_RQPSN);
        p.va = RIG_VA;
        p.rkey = r->rkey;
        p.dma_len = p.payload_len = 64;
        rig_rx(r, &p, NULL);
        /* fall through */
    case READING:
        rig_post(r, WR_RDMA_READ, 1, 2 * RIG_MTU, WR_F_SIGNALED);
        rig_post(r, WR_RDMA_WRITE, 2, RIG_MTU, WR_F_SIGNALED);
        rig_tx(r, 0);
        rig_read_resp(r, WIRE_READ_RESP_FIRST, RIG_PSN, RIG_MTU, 1);
        break;
    case ANSWERS:
        rig_post_recv(r, 1, 0, 4 * RIG_MTU);
        rig_post_recv(r, 2, 0, 4 * RIG_MTU);
        p = rig_pkt(r, WIRE_READ_REQUEST, RIG_RQPSN);
        p.va = RIG_VA;
        p.rkey = r->rkey;
        p.dma_len = 3 * RIG_MTU;
        rig_rx(r, &p, NULL);
        p = rig_pkt(r, WIRE_SEND_FIRST, rig_psn(RIG_RQPSN, 3));
        p.payload_len = RIG_MTU;
        rig_rx(r, &p, NULL);
        break;
    case REPEAT:
        for (unsigned i = 0; i < 4; i++)
            rig_post(r, WR_RDMA_WRITE, i, RIG_MTU, WR_F_SIGNALED);
        rig_tx(r, 0);
        sack(r, WIRE_SYN_NAK_SEQ, tx_psn(0), tx_psn(2));
        p = rig_pkt(r, WIRE_WRITE_ONLY, rig_psn(RIG_RQPSN, 2));
        p.va = RIG_VA;
        p.rkey = r->rkey;
        p.dma_len = p.payload_len = 64;
        rig_rx(r, &p, NULL);
        break;
    }
    return r;
}

/* The name of the invariant, the scene to set up, and the change that breaks the invariant. */
#define SPOILS(X)                                                                                  \
    X("send-queue-order", OUT, qp->req.started = qp->req.tail + 1)                                 \
    X("send-queue-order", OUT, qp->req.head = qp->req.cur + 1)                                     \
    X("send-queue-order", OUT, qp->req.tail += qp->req.depth)                                      \
    X("psn-order", OUT, qp->req.done = psn_add(qp->req.una, 1))                                    \
    X("psn-order", OUT, qp->req.una = psn_add(qp->req.max, 1))                                     \
    X("psn-order", OUT, qp->req.nxt = psn_prev(qp->req.una))                                       \
    X("send-place", OUT, qp->req.nxt = psn_prev(qp->req.max))                                      \
    X("send-place", OUT, qp->req.pkt = 1)                                                          \
    X("send-place", OUT, qp->req.cur--)                                                            \
    X("send-gap", OUT, req_wqe(qp, qp->req.head)->npsn++)                                          \
    X("read-first", READING, qp->req.rd_first++)                                                   \
    X("read-first", OUT, qp->req.rd_first--)                                                       \
    X("read-count", READING, qp->req.rd_out++)                                                     \
    X("read-psns", READING, qp->req.rd_psns--)                                                     \
    X("read-limit", READING, qp->attr.max_rd_atomic = 0)                                           \
    X("window-size", OUT, qp->req.window = 0)                                                      \
    X("window-size", OUT, qp->req.window = e->p.window + 1)                                        \
    X("window", OUT, e->p.window = qp->req.window = 2)                                             \
    X("done-waits", OUT, qp->req.done = psn_prev(qp->req.una))                                     \
    X("done-waits", COPYING, qp->req.recs.tail->psn = psn(RIG_PSN))                                \
    X("send-completed", OUT,                                                                       \
      (qp->req.una = qp->req.done = qp->req.again = qp->req.seen = psn_add(qp->req.una, 1)))       \
    X("retries-left", OUT, qp->req.retry_left++)                                                   \
    X("retries-left", OUT, qp->req.rnr_left++)                                                     \
    X("sent-again", OUT, qp->req.again = psn_add(qp->req.max, 1))                                  \
    X("answers-seen", OUT, qp->req.seen = psn_prev(qp->req.una))                                   \
    X("failure-waits", OUT, qp->req.fail = WC_LOC_PROT_ERR)                                        \
    X("round-trip", OUT, qp->req.rtt_psn = psn_add(qp->req.max, 1))                                \
    X("credits", OUT, (qp->credits = 1, qp->req.lsn = 0, qp->req.ssn = 2))                         \
    X("rnr-timer", OUT, qp->req.rnr_wait = 1)                                                      \
    X("rnr-timer", OUT, qp->req.rnr_at = qp->req.ack_at)                                           \
    X("ack-timer", OUT, qp->req.ack_at = TIMER_NEVER)                                              \
    X("ack-timer", OUT, qp->req.obliged = 0)                                                       \
    X("ack-obliged", OUT, qp->req.ob_end = qp->req.una)                                            \
    X("ack-obliged", OUT, qp->req.ob_end = psn_add(qp->req.max, 1))                                \
    X("send-forgotten", OUT, (qp->req.obliged = 0, qp->req.ack_at = TIMER_NEVER))                  \
    X("send-forgotten", IDLE, qp->req.tail++)                                                      \
    X("send-started", OUT, req_wqe(qp, --qp->req.cur)->flags = 0)                                  \
    X("timer-armed", OUT, qp->timer.pprev = NULL)                                                  \
    X("timer-armed", OUT, qp->req.ack_at = e->now)                                                 \
    X("timer-place", OUT, qp->timer.tick += 1u << 20)                                              \
    X("record-owner", COPYING, qp->resp.recs.head->side = REC_COMP)                                \
    X("record-tail", COPYING, qp->resp.recs.tail = NULL)                                           \
    X("record-waits", COPYING, qp->resp.recs.head->pending = 0)                                    \
    X("record-count", COPYING, qp->nrecords++)                                                     \
    X("record-count", COPYING, qp->resp.recs.head = NULL)                                          \
    X("receive-order", IDLE, qp->resp.done_epsn = psn_add(qp->resp.epsn, 1))                       \
    X("receive-waits", IDLE, qp->resp.done_epsn = psn_prev(qp->resp.epsn))                         \
    X("receive-message", ANSWERS, qp->resp.msg_off = 4 * RIG_MTU + 1)                              \
    X("receive-message", ANSWERS, qp->resp.wqe = NULL)                                             \
    X("receive-message", IDLE, (qp->resp.in_msg = MSG_WRITE, qp->resp.msg_off = 1))                \
    X("fatal-nak", IDLE, (qp->resp.fatal = FATAL_OWED, qp->resp.nak_owed = WIRE_SYN_NAK_SEQ))      \
    X("receives-taken", ANSWERS, qp->resp.taken_tail = &qp->resp.taken)                            \
    X("receives-taken", ANSWERS, qp->resp.wqe = qp->resp.rq->head)                                 \
    X("receives-taken", IDLE, qp->resp.taken_tail = NULL)                                          \
    X("receive-queue", ANSWERS, qp->resp.rq->nfree--)                                              \
    X("receive-queue", ANSWERS, qp->resp.rq_tail++)                                                \
    X("answers-order", ANSWERS, qp->resp.rd->tx = qp->resp.rd->ready + 1)                          \
    X("answers-order", ANSWERS, qp->resp.rd->live = 0)                                             \
    X("answer-part", ANSWERS, rd_entry(qp->resp.rd, qp->resp.rd->tx)->tx.next = 3)                 \
    X("answer-part", ANSWERS, rd_entry(qp->resp.rd, qp->resp.rd->tx)->tx.end = 4)                  \
    X("answers-again", ANSWERS, qp->resp.rd->replays++)                                            \
    X("answers-known", ANSWERS, qp->resp.reads = 0)                                                \
    X("answers-waiting", ANSWERS, qp->resp.rd->ready--)                                            \
    X("answer-forgotten", IDLE, qp->resp.ack_owed = 1)                                             \
    X("answer-forgotten", IDLE, qp->resp.nak_owed = WIRE_SYN_NAK_SEQ)                              \
    X("early-window", REPEAT, qp->sr->top = psn_add(qp->resp.epsn, SR_WINDOW + 1))                 \
    X("early-count", REPEAT, qp->sr->nearly++)                                                     \
    X("early-count", REPEAT, qp->sr->top = psn_add(qp->resp.epsn, 1))                              \
    X("early-receives", REPEAT, qp->sr->ahead = 1)                                                 \
    X("repeat-within", REPEAT, qp->sr->draining = 1)                                               \
    X("repeat-naks", REPEAT, qp->sr->sack_tail += SR_SACKS)                                        \
    X("repeat-high", REPEAT, qp->sr->high = psn_add(qp->req.max, 1))                               \
    X("repeat-recovery", REPEAT, qp->sr->recover = qp->req.una)                                    \
    X("repeat-marked", REPEAT, qp->sr->high = psn_add(qp->req.una, 1))                             \
    X("repeat-answers", REPEAT, qp->sr->ngot = 1)                                                  \
    X("state-timers", OUT, qp->state = QPS_RTR)                                                    \
    X("state-queue", IDLE, (qp->state = QPS_INIT, qp->req.tail++))                                 \
    X("state-flushed", IDLE, (qp->state = QPS_ERR, qp->resp.flushed = 1, qp->req.tail++))          \
    X("state-flushed", IDLE, qp->state = QPS_ERR)                                                  \
    X("state-parts", IDLE, qp->state = QPS_INIT)                                                   \
    X("mute", IDLE, (qp_activate(e, qp), qp->mute = 1))                                            \
    X("active-link", IDLE, (qp_activate(e, qp), e->active = NULL))                                 \
    X("active-list", IDLE, (qp_activate(e, qp), qp->is_active = 0))                                \
    X("active-list", IDLE, e->active_tail = NULL)                                                  \
    X("active-quantum", IDLE, e->quantum_left = 1)                                                 \
    X("number-place", IDLE, qp->slot++)                                                            \
    X("number-count", IDLE, e->nfree++)                                                            \
    X("number-count", IDLE, e->nqps++)                                                             \
    X("repeat-count", REPEAT, e->nsr = 0)                                                          \
    X("record-free", COPYING, e->records.nfree--)                                                  \
    X("record-owned", COPYING, (e->records.nfree++, e->records.fresh--))                           \
    X("linger", IDLE, e->nlinger++)                                                                \
    X("queue-count", IDLE, e->ncqs++)                                                              \
    X("queue-count", IDLE, e->nsrqs++)                                                             \
    X("queue-users", IDLE, e->cqs->users++)                                                        \
    X("timer-wheel", OUT, e->wheel.used[0] ^= 1)                                                   \
    X("cnp-queue", IDLE, e->cnps++)

static const struct {
    const char *name;
    enum scene scene;
} rows[] = {
#define X(name, scene, ...) {name, scene},
    SPOILS(X)
#undef X
};
#define ROWS (int)(sizeof(rows) / sizeof(rows[0]))

enum { COUNTED = __COUNTER__ };

static void spoil(int row, struct engine *e, struct qp *qp)
{
    switch (row) {
#define X(name, scene, ...)                                                                        \
    case __COUNTER__ - COUNTED - 1:                                                                \
        (void)(__VA_ARGS__);                                                                       \
        break;
        SPOILS(X)
#undef X
    default:
        ck_abort();
    }
}

/* The changed value, as it was before. */
struct copy {
    void *at;
    size_t size;
    void *octets;
};

static unsigned ncopies;
static struct copy copies[16];

static void keep(void *at, size_t size)
{
    if (!at)
        return;
    struct copy c = {at, size, malloc(size)};
    memcpy(c.octets, at, size);
    copies[ncopies++] = c;
}

static void keep_all(struct engine *e, struct qp *qp)
{
    ncopies = 0;
    keep(e, sizeof(*e));
    keep(qp, sizeof(*qp));
    keep(qp->sr, sizeof(*qp->sr));
    keep(qp->req.ring, (size_t)(qp->req.mask + 1) * qp->req.stride);
    keep(qp->resp.rd, sizeof(*qp->resp.rd) + (qp->resp.rd->mask + 1) * sizeof(qp->resp.rd->res[0]));
    keep(qp->resp.rq, sizeof(*qp->resp.rq));
    keep(qp->resp.recs.head, sizeof(struct record));
    keep(qp->req.recs.head, sizeof(struct record));
    keep(e->cqs, sizeof(*e->cqs));
}

static void put_back(void)
{
    while (ncopies > 0) {
        struct copy *c = &copies[--ncopies];
        memcpy(c->at, c->octets, c->size);
        free(c->octets);
    }
}

START_TEST(each_invariant_notices)
{
    struct rig *r = scene(rows[_i].scene);
    struct invariant_report report = {"nothing"};
    char want[64];
    ck_assert_msg(engine_ok(r->e, &report), "before row %d: %s", _i, report.text);
    keep_all(r->e, r->qp);
    spoil(_i, r->e, r->qp);
    bool ok = engine_ok(r->e, &report);
    put_back();
    snprintf(want, sizeof(want), "invariant %s", rows[_i].name);
    ck_assert_msg(!ok && !strncmp(report.text, want, strlen(want)), "row %d, %s: %s", _i,
                  rows[_i].name, ok ? "nothing is noticed" : report.text);
    ck_assert_msg(strstr(report.text, ": ") != NULL, "no values: %s", report.text);
    ck_assert_msg(engine_ok(r->e, &report), "after row %d: %s", _i, report.text);
    rig_free(r);
}
END_TEST

/* The report of a phase that ends on such a queue pair. Builds without checks continue. */
START_TEST(phase_says_so_and_aborts)
{
    struct rig *r = scene(OUT);
    int fds[2], status;
    char said[512];
    ck_assert_int_eq(pipe(fds), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(fds[1], STDERR_FILENO);
        r->qp->req.done = psn_add(r->qp->req.una, 1);
        rig_post(r, WR_RDMA_WRITE, 9, 64, 0);
        _exit(0);
    }
    close(fds[1]);
    ssize_t n = read(fds[0], said, sizeof(said) - 1);
    said[n > 0 ? n : 0] = '\0';
    close(fds[0]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
#ifdef URNIC_INVARIANTS
    ck_assert(WIFSIGNALED(status));
    ck_assert_int_eq(WTERMSIG(status), SIGABRT);
    char want[128];
    snprintf(want, sizeof(want), "urnic: after post send: invariant psn-order, qp 0x%06x ",
             engine_qp_num(r->qp));
    ck_assert_msg(!strncmp(said, want, strlen(want)), "%s", said);
    ck_assert_ptr_eq(strchr(said, '\n'), said + n - 1);
#else
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert_int_eq(n, 0);
#endif
    rig_free(r);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("core invariant");
    TCase *each = tcase_create("each_invariant_notices");
    TCase *phase = tcase_create("phase_says_so_and_aborts");
    tcase_add_loop_test(each, each_invariant_notices, 0, ROWS);
    tcase_add_test(phase, phase_says_so_and_aborts);
    suite_add_tcase(suite, each);
    suite_add_tcase(suite, phase);
    return unit_run(suite);
}
