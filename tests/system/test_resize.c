/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared receive queues that get another size while they are used: nothing is lost, doubled or out
 * of order.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "client.h"
#include "daemon_rig.h"
#include "ipc.h"
#include "unit.h"

#define SIZE  65536u
#define DEPTH 32u
#define SENDS 3000u

static struct rig rig;
static struct end a, b;

static void up(void)
{
    rig_open_pair(&rig, "", &a, &b, SIZE);
    end_qp(&a, URNIC_QPT_RC);
    end_qp(&b, URNIC_QPT_RC);
    end_connect(&a, &b);
}

static void down(void)
{
    rig_close_pair(&rig, &a, &b);
}

static int post_to(struct urnic_srq *srq, uint64_t wr_id)
{
    const struct urnic_sge sge = {.addr = b.mr->iova, .length = 64, .lkey = b.mr->lkey};
    const struct urnic_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};
    return urnic_post_srq_recv(srq, &wr, NULL);
}

/* SRQ-04: a shared receive queue grows: the receives that were posted before come first. */
START_TEST(shared_receives)
{
    struct urnic_srq_attr attr = {.max_wr = 8, .max_sge = 1};
    struct urnic_qp_init_attr init = {.qp_type = URNIC_QPT_RC, .cap = {.max_send_wr = 1}};
    uint64_t posted = 0, used = 0;
    up();
    ck_assert_int_eq(urnic_destroy_qp(b.qp), 0);
    ck_assert_int_eq(urnic_destroy_qp(a.qp), 0);
    end_qp(&a, URNIC_QPT_RC);
    ck_assert_int_eq(urnic_create_srq(b.pd, &attr, NULL, &init.srq), 0);
    init.send_cq = init.recv_cq = b.cq;
    ck_assert_int_eq(urnic_create_qp(b.pd, &init, &b.qp), 0);
    end_connect(&a, &b);
    for (uint32_t max = 8; max <= 16384; max *= 3) {
        ck_assert_int_eq(urnic_resize_srq(init.srq, max), 0);
        while (posted - used < max)
            ck_assert_int_eq(post_to(init.srq, posted++), 0);
        ck_assert_int_eq(post_to(init.srq, posted), -ENOMEM);
        for (unsigned i = 0; i < 5; i++) {
            ck_assert_int_eq(end_post(&a, URNIC_WR_SEND, 0, 8, 0, 0, i), 0);
            end_expect(&a, URNIC_WC_SUCCESS, i);
            end_expect(&b, URNIC_WC_SUCCESS, used++);
        }
    }
    ck_assert_int_eq(urnic_query_srq(init.srq, &attr), 0);
    ck_assert_uint_eq(attr.max_wr, 5832);
    ck_assert_int_eq(urnic_resize_srq(init.srq, 100), -EINVAL); /* more are posted */
    ck_assert_int_eq(urnic_resize_srq(init.srq, 32769), -EINVAL);
    ck_assert_int_eq(urnic_resize_srq(init.srq, 0), -EINVAL);
    ck_assert_int_eq(urnic_resize_srq(init.srq, 5830), 0); /* it keeps its size */
    ck_assert_int_eq(urnic_destroy_qp(b.qp), 0);
    ck_assert_int_eq(urnic_destroy_srq(init.srq), 0);
    b.qp = NULL;
    down();
}
END_TEST

static atomic_bool over;
static struct urnic_srq *shared;

static void *grow(void *none)
{
    for (uint32_t max = 33; !over && max <= 32768; max += max / 4) {
        ck_assert_int_eq(urnic_resize_srq(shared, max), 0);
        usleep(1000);
    }
    return none;
}

/* SRQ-04: while one thread posts and messages come another makes it longer again and again. */
START_TEST(grows_under_load)
{
    struct urnic_srq_attr attr = {.max_wr = DEPTH, .max_sge = 1};
    struct urnic_qp_init_attr init = {.qp_type = URNIC_QPT_RC, .cap = {.max_send_wr = 1}};
    pthread_t thread;
    uint64_t posted = 0;
    up();
    ck_assert_int_eq(urnic_destroy_qp(b.qp), 0);
    ck_assert_int_eq(urnic_destroy_qp(a.qp), 0);
    end_qp(&a, URNIC_QPT_RC);
    ck_assert_int_eq(urnic_create_srq(b.pd, &attr, NULL, &shared), 0);
    init.srq = shared;
    init.send_cq = init.recv_cq = b.cq;
    ck_assert_int_eq(urnic_create_qp(b.pd, &init, &b.qp), 0);
    end_connect(&a, &b);
    over = false;
    ck_assert_int_eq(pthread_create(&thread, NULL, grow, NULL), 0);
    for (uint64_t i = 0; i < SENDS; i++) {
        while (posted - i < DEPTH)
            ck_assert_int_eq(post_to(shared, posted++), 0);
        ck_assert_int_eq(end_post(&a, URNIC_WR_SEND, 0, 8, 0, 0, i), 0);
        end_expect(&a, URNIC_WC_SUCCESS, i);
        end_expect(&b, URNIC_WC_SUCCESS, i);
    }
    over = true;
    pthread_join(thread, NULL);
    ck_assert_int_eq(urnic_destroy_qp(b.qp), 0);
    b.qp = NULL;
    ck_assert_int_eq(urnic_destroy_srq(shared), 0);
    down();
}
END_TEST

/* One step by hand, of this queue. */
static int step(const struct urnic_srq *srq, uint32_t handle, uint32_t what, uint32_t max_wr)
{
    struct ipc_srq_resize req = {
        .hdr.type = IPC_SRQ_RESIZE, .srq = handle, .step = what, .max_wr = max_wr};
    struct ipc_hdr reply;
    return client_conn_call(&srq->ctx->conn, &req, sizeof(req), &reply, sizeof(reply), NULL, NULL);
}

/* SHM-02: steps in any order, and wrong indices, harm no other client. */
START_TEST(wild_steps)
{
    struct urnic_srq_attr attr = {.max_wr = 8, .max_sge = 1};
    struct urnic_srq *srq;
    up();
    ck_assert_int_eq(urnic_create_srq(b.pd, &attr, NULL, &srq), 0);
    ck_assert_int_eq(step(srq, srq->handle, IPC_RESIZE_COMMIT, 0), -EINVAL);
    ck_assert_int_eq(step(srq, srq->handle, IPC_RESIZE_END, 0), 0);
    ck_assert_int_eq(step(srq, srq->handle, 3, 5), -EINVAL);
    ck_assert_int_eq(step(srq, b.cq->handle, IPC_RESIZE_PREPARE, 5), -EINVAL);
    for (unsigned i = 0; i < 50; i++) /* each forgets the one before */
        ck_assert_int_eq(step(srq, srq->handle, IPC_RESIZE_PREPARE, 32768), 0);
    ck_assert_int_eq(step(srq, srq->handle, IPC_RESIZE_PREPARE, 16), 0);
    atomic_store(&srq->rq.ring.q->prod, 1000); /* more than has room */
    ck_assert_int_eq(step(srq, srq->handle, IPC_RESIZE_COMMIT, 0), -EINVAL);
    atomic_store(&srq->rq.ring.q->prod, 0);
    client_unmake(b.ctx, IPC_SRQ_RESIZE, srq->handle); /* these steps have lost slabs */
    ck_assert_int_eq(urnic_resize_srq(srq, 77), 0);
    for (unsigned i = 0; i < 77; i++)
        ck_assert_int_eq(post_to(srq, i), 0);
    ck_assert_int_eq(urnic_destroy_srq(srq), 0);
    down();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("resize");
    TCase *t = tcase_create("resize");

    tcase_set_timeout(t, 60);
    tcase_add_test(t, shared_receives);
    tcase_add_test(t, grows_under_load);
    tcase_add_test(t, wild_steps);
    suite_add_tcase(s, t);
    return unit_run(s);
}
