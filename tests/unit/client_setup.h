/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by the tests of liburnic: a fake daemon, a context, a completion queue, a queue pair.
 */
#ifndef URNIC_CLIENT_SETUP_H
#define URNIC_CLIENT_SETUP_H

#include <string.h>
#include <sys/wait.h>

#include "fake_daemon.h"
#include "unit.h"
#include "urnic/urnic.h"

struct setup {
    struct fake *fake;
    struct urnic_context *ctx;
    struct urnic_pd *pd;
    struct urnic_channel *channel;
    struct urnic_cq *cq;
    struct urnic_qp *qp;
    uint8_t *mem;
    struct urnic_mr *mr;
};

#define OK(call) ck_assert_int_eq((call), 0)

/* Check that a child of fork() succeeded: it exits with 0. */
static inline void await_child(pid_t child)
{
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned)status);
}

static inline void to_state(struct urnic_qp *qp, enum urnic_qp_state state)
{
    struct urnic_qp_attr attr = {.qp_state = state, .port_num = 1};
    OK(urnic_modify_qp(qp, &attr, URNIC_QP_STATE));
}

/* A queue pair that is connected to itself, in RTS. */
static inline struct urnic_qp *setup_qp(struct setup *s, struct urnic_srq *srq, uint32_t depth,
                                        uint32_t max_inline)
{
    struct urnic_qp *qp;
    struct urnic_qp_init_attr init = {
        .qp_context = s,
        .send_cq = s->cq,
        .recv_cq = s->cq,
        .srq = srq,
        .qp_type = URNIC_QPT_RC,
        .cap = {.max_send_wr = depth,
                .max_recv_wr = depth,
                .max_send_sge = 2,
                .max_recv_sge = 1,
                .max_inline_data = max_inline},
    };
    OK(urnic_create_qp(s->pd, &init, &qp));
    to_state(qp, URNIC_QPS_INIT);
    to_state(qp, URNIC_QPS_RTR);
    to_state(qp, URNIC_QPS_RTS);
    return qp;
}

static inline struct setup setup_start(uint32_t depth)
{
    struct setup s = {.fake = fake_start()};
    void *mem;
    OK(urnic_open(NULL, &s.ctx));
    OK(urnic_alloc_pd(s.ctx, &s.pd));
    OK(urnic_create_channel(s.ctx, &s.channel));
    OK(urnic_create_cq(s.ctx, 1024, &s, s.channel, &s.cq));
    OK(urnic_alloc(s.ctx, 1 << 16, &mem));
    s.mem = mem;
    OK(urnic_reg_mr(s.pd, mem, 1 << 16, URNIC_ACCESS_LOCAL_WRITE | URNIC_ACCESS_REMOTE_WRITE,
                    &s.mr));
    s.qp = setup_qp(&s, NULL, depth, 64);
    return s;
}

static inline void setup_end(struct setup *s)
{
    OK(urnic_destroy_qp(s->qp));
    OK(urnic_dereg_mr(s->mr));
    OK(urnic_free(s->ctx, s->mem));
    OK(urnic_destroy_cq(s->cq));
    OK(urnic_destroy_channel(s->channel));
    OK(urnic_dealloc_pd(s->pd));
    OK(urnic_close(s->ctx));
    fake_stop(s->fake);
}

/* Poll until n completions came; the test's own time limit ends a wait in vain. */
static inline void poll_n(struct urnic_cq *cq, struct urnic_wc *wc, int n)
{
    for (int got = 0; got < n;) {
        int k = urnic_poll_cq(cq, n - got, wc + got);
        ck_assert_int_ge(k, 0);
        got += k;
    }
}

#endif
