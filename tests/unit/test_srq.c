/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared receive queues: by packets, and by the calls themselves.
 */
#include <errno.h>

#include "resp_script.h"
#include "srq.h"
#include "unit.h"

#define SRQ                                                                                        \
    {                                                                                              \
        .srq = true                                                                                \
    }

static const struct script scripts[] = {
    {"SRQ-01 SRQ-02 taken in order; buffers are the SRQ's domain's, R_Keys the queue pair's", SRQ,
     "recv 8; recv 8; < SEND_ONLY 0 len=4 ack; < WRITE_ONLY_IMM 1 len=4 imm=5 ack\n"
     "= SUCCESS len=4 id=0; = SUCCESS len=4 op=IMM imm=5 id=1; > ACKNOWLEDGE 1 syn=1f msn=2; rbuf "
     "0 0 4 is 0:0"},
    {"SRQ-05 empty: RNR NAK", SRQ, "< SEND_ONLY 0 len=4; > ACKNOWLEDGE 0 syn=2c; state RTS"},
    {"SRQ-03 A35 the limit is told once, when fewer than it are left",
     {.srq = true, .srq_limit = 2},
     "recv 8; recv 8; recv 8; < SEND_ONLY 0 len=1; = SUCCESS len=1; < SEND_ONLY 1 len=1; ! "
     "SRQ_LIMIT_REACHED; = SUCCESS len=1\n"
     "< SEND_ONLY 2 len=1; = SUCCESS len=1; limit 1; ! SRQ_LIMIT_REACHED"},
    {"SRQ-03 armed again", SRQ,
     "recv 8; recv 8; limit 2; < SEND_ONLY 0 len=1; ! SRQ_LIMIT_REACHED; = SUCCESS len=1; recv 8; "
     "limit 2; < SEND_ONLY 1 len=1; ! SRQ_LIMIT_REACHED; = SUCCESS len=1"},
    {"SRQ-06 ERR flushes what was taken, not what is in the SRQ", SRQ,
     "recv 600; recv 8; < SEND_FIRST 0 len=256; err; = WR_FLUSH_ERR id=0; ! LAST_WQE_REACHED"},
    {"SRQ-06 LAST_WQE_REACHED comes after the last completion", SRQ,
     "recv 8; hold; < SEND_ONLY 0 len=4; err; state ERR; copy; = WR_FLUSH_ERR id=0; ! "
     "LAST_WQE_REACHED"},
    {"SRQ-06 QP-04 so does RESET, or its owner doesn't know that the place is free", SRQ,
     "recv 600; recv 8; < SEND_FIRST 0 len=256; reset; = WR_FLUSH_ERR id=0; room 63"},
    {"SRQ-07 malformed entry: the SRQ is in error, the queue pair too", SRQ,
     "recv-malformed; < SEND_ONLY 0 len=4; ! SRQ_ERR; = LOC_QP_OP_ERR; > ACKNOWLEDGE 0 syn=63; ! "
     "LAST_WQE_REACHED; state ERR"},
    {"SRQ-07 and nothing is taken from it any more", SRQ,
     "recv-malformed; recv 8; < SEND_ONLY 0 len=4; ! SRQ_ERR; = LOC_QP_OP_ERR; room 63\n"
     "> ACKNOWLEDGE 0 syn=63; ! LAST_WQE_REACHED; reset; rts; < SEND_ONLY 0 len=4; > ACKNOWLEDGE 0 "
     "syn=2c"},
    {"SRQ-06 RESET gives back what was taken, and leaves the rest in the SRQ", SRQ,
     "recv 600; recv 8; recv 8; < SEND_FIRST 0 len=256; reset; = WR_FLUSH_ERR id=0; rts; room 62; "
     "< SEND_ONLY 0 len=4; = SUCCESS len=4 id=1; room 63"},
    {"RSP-13 buffer that isn't writable", SRQ,
     "recv-bad 8; < SEND_ONLY 0 len=4; = LOC_PROT_ERR; > ACKNOWLEDGE 0 syn=63; ! LAST_WQE_REACHED; "
     "state ERR"},
    {"QP-14 a destroyed queue pair gives back what it has taken", SRQ,
     "recv 600; < SEND_FIRST 0 len=256; dead"},
};

struct fix {
    struct engine *e;
    uint32_t pd;
};

static bool no_cq(void *arg, void *cq_arg, const struct engine_wc *wc)
{
    (void)arg, (void)cq_arg, (void)wc;
    return true;
}

static unsigned events;

static void on_event(void *arg, enum ib_event ev, void *obj)
{
    (void)arg, (void)obj;
    events += ev == EVT_SRQ_LIMIT_REACHED;
}

static struct fix make(void)
{
    const struct engine_params p = {.hooks = {.cq_push = no_cq, .event = on_event},
                                    .max_srq = 2,
                                    .mem = {.max_pd = 2, .max_mr = 2},
                                    .mtu = 3};
    struct fix f = {.e = engine_create(&p, 0)};
    ck_assert_int_eq(mem_pd_alloc(engine_mem(f.e), &f.pd), 0);
    return f;
}

START_TEST(srq_04_resize_never_below_what_is_outstanding)
{
    struct fix f = make();
    struct srq *srq;
    const struct engine_srq_params p = {.pd = f.pd, .max_wr = 2, .max_sge = 1};
    const struct engine_recv_wr wr = {.wr_id = 1};
    struct engine_srq_params q;
    ck_assert_int_eq(engine_srq_create(f.e, &p, &srq), 0);
    ck_assert_int_eq(engine_post_srq_recv(f.e, srq, &wr), 0);
    ck_assert_int_eq(engine_post_srq_recv(f.e, srq, &wr), 0);
    ck_assert_msg(engine_post_srq_recv(f.e, srq, &wr) == -EAGAIN, "SRQ-01 no room");
    ck_assert_msg(engine_srq_modify(f.e, srq, 1, 0, SRQA_MAX_WR) == -EINVAL,
                  "SRQ-04 below the outstanding");
    ck_assert_msg(engine_srq_modify(f.e, srq, 5, 0, SRQA_MAX_WR) == 0, "SRQ-04 larger");
    ck_assert_uint_eq(engine_srq_room(srq), 3);
    engine_srq_query(srq, &q);
    ck_assert_uint_eq(q.max_wr, 5);
    ck_assert_int_eq(engine_post_srq_recv(f.e, srq, &wr), 0);
    ck_assert_int_eq(engine_srq_modify(f.e, srq, 0, 0, 4), -EINVAL);
    ck_assert_int_eq(engine_srq_modify(f.e, srq, 0, 6, SRQA_LIMIT), -EINVAL);
    events = 0;
    ck_assert_int_eq(engine_srq_modify(f.e, srq, 0, 3, SRQA_LIMIT), 0);
    ck_assert_msg(events == 0, "SRQ-03 three are posted: not below 3");
    ck_assert_int_eq(engine_srq_modify(f.e, srq, 0, 4, SRQA_LIMIT), 0);
    ck_assert_msg(events == 1, "SRQ-03 a limit above the count is reached at once");
    ck_assert_int_eq(engine_srq_modify(f.e, srq, 0, 2, SRQA_LIMIT), 0);
    ck_assert_int_eq(engine_srq_modify(f.e, srq, 6, 7, SRQA_MAX_WR), 0);
    engine_srq_query(srq, &q);
    ck_assert_msg(q.limit == 2 && events == 1, "SRQ-03 only the size was to change");
    ck_assert_int_eq(engine_srq_destroy(f.e, srq), 0);
    engine_destroy(f.e);
}
END_TEST

START_TEST(srq_02_life)
{
    struct fix f = make();
    struct srq *a, *b, *c;
    struct engine_srq_params p = {.pd = f.pd, .max_wr = 2, .max_sge = 1};
    struct cq *cq;
    struct qp *qp;
    ck_assert_int_eq(engine_srq_create(f.e, &p, &a), 0);
    ck_assert_int_eq(engine_srq_create(f.e, &p, &b), 0);
    ck_assert_msg(engine_srq_create(f.e, &p, &c) == -ENOSPC, "SEC-22 max_srq");
    ck_assert_int_eq(engine_srq_destroy(f.e, b), 0);
    p.pd = 77;
    ck_assert_msg(engine_srq_create(f.e, &p, &c) == -EINVAL, "SRQ-02 unknown domain");
    p = (struct engine_srq_params){.pd = f.pd, .max_wr = 2, .max_sge = ENGINE_SGE_MAX + 1};
    ck_assert_int_eq(engine_srq_create(f.e, &p, &c), -EINVAL);
    ck_assert_int_eq(engine_cq_create(f.e, NULL, &cq), 0);
    struct engine_qp_params q = {.type = QP_RC, .pd = f.pd, .send_cq = cq, .recv_cq = cq, .srq = a};
    ck_assert_int_eq(engine_qp_create(f.e, &q, &qp), 0);
    ck_assert_msg(engine_srq_destroy(f.e, a) == -EBUSY, "SRQ-01 in use");
    const struct engine_recv_wr wr = {.wr_id = 1};
    ck_assert_msg(engine_post_recv(f.e, qp, &wr) == -EINVAL, "SRQ-01 receives go to the SRQ");
    ck_assert_uint_eq(engine_rq_room(qp), 0);
    engine_qp_destroy(f.e, qp);
    ck_assert_int_eq(mem_pd_free(engine_mem(f.e), f.pd), -EBUSY);
    ck_assert_int_eq(engine_srq_destroy(f.e, a), 0);
    ck_assert_int_eq(mem_pd_free(engine_mem(f.e), f.pd), 0);
    engine_destroy(f.e);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("srq");
    TCase *t = tcase_create("calls");
    tcase_add_test(t, srq_04_resize_never_below_what_is_outstanding);
    tcase_add_test(t, srq_02_life);
    suite_add_tcase(s, t);
    int failed = unit_run(s);
    return script_main("srq, by packets", scripts, sizeof(scripts) / sizeof(scripts[0])) || failed;
}
