/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Posting and polling through liburnic: accounting, order, the state after an error.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "client.h"
#include "client_setup.h"
#include "unit.h"

static struct urnic_send_wr write_wr(const struct setup *s, struct urnic_sge *sge, uint64_t id,
                                     unsigned flags)
{
    *sge = (struct urnic_sge){.addr = (uintptr_t)s->mem,
                              .length = 8,
                              .lkey = flags & URNIC_SEND_INLINE ? 0 : s->mr->lkey};
    return (struct urnic_send_wr){
        .wr_id = id,
        .sg_list = sge,
        .num_sge = 1,
        .opcode = URNIC_WR_RDMA_WRITE,
        .send_flags = flags,
        .rdma = {.remote_addr = (uintptr_t)s->mem + 4096, .rkey = s->mr->rkey},
    };
}

START_TEST(cq_01_data_and_fields_arrive)
{
    /* CQ-01 SEND with immediate into a posted receive, both completions */
    struct setup s = setup_start(16);
    struct urnic_wc wc[2];
    struct urnic_sge to = {.addr = (uintptr_t)s.mem + 100, .length = 100, .lkey = s.mr->lkey};
    struct urnic_sge from = {.addr = (uintptr_t)s.mem, .length = 5, .lkey = s.mr->lkey};
    struct urnic_recv_wr recv = {.wr_id = 0xAAAABBBBCCCCDDDD, .sg_list = &to, .num_sge = 1};
    struct urnic_send_wr send = {
        .wr_id = 0x1111222233334444,
        .sg_list = &from,
        .num_sge = 1,
        .opcode = URNIC_WR_SEND_WITH_IMM,
        .send_flags = URNIC_SEND_SIGNALED,
        .imm_data = 0x12345678,
    };
    memcpy(s.mem, "hello", 5);
    OK(urnic_post_recv(s.qp, &recv, NULL));
    OK(urnic_post_send(s.qp, &send, NULL));
    poll_n(s.cq, wc, 2);
    const struct urnic_wc *r = wc[0].opcode == URNIC_WC_RECV ? &wc[0] : &wc[1];
    const struct urnic_wc *w = r == &wc[0] ? &wc[1] : &wc[0];
    ck_assert_uint_eq(r->wr_id, 0xAAAABBBBCCCCDDDD);
    ck_assert_uint_eq(r->byte_len, 5);
    ck_assert_uint_eq(r->imm_data, 0x12345678);
    ck_assert_uint_eq(r->wc_flags, URNIC_WC_WITH_IMM);
    ck_assert_uint_eq(r->qp_num, urnic_qp_num(s.qp));
    ck_assert_uint_eq(w->wr_id, 0x1111222233334444);
    ck_assert_int_eq(w->opcode, URNIC_WC_SEND);
    ck_assert_int_eq(memcmp(s.mem + 100, "hello", 5), 0);
    setup_end(&s);
}
END_TEST

START_TEST(qp_16_send_queue_accounting)
{
    /* QP-16: the send queue takes exactly max_send_wr requests, no matter how many of them the
     * daemon has already read. Only a polled completion makes room: for its own request and for the
     * unsignalled ones before it. */
    struct setup s = setup_start(16);
    struct urnic_sge sge;
    struct urnic_wc wc[4];
    const struct urnic_send_wr *bad;
    for (int lap = 0; lap < 5; lap++) {
        for (unsigned i = 0; i < 16; i++) {
            unsigned flags = (i == 7 ? URNIC_SEND_SIGNALED : 0) | URNIC_SEND_INLINE;
            struct urnic_send_wr wr = write_wr(&s, &sge, i, flags);
            OK(urnic_post_send(s.qp, &wr, NULL));
        }
        struct urnic_send_wr more[2] = {write_wr(&s, &sge, 100, URNIC_SEND_SIGNALED),
                                        write_wr(&s, &sge, 101, URNIC_SEND_SIGNALED)};
        more[0].next = &more[1];
        ck_assert_int_eq(urnic_post_send(s.qp, more, &bad), -ENOMEM);
        ck_assert_ptr_eq(bad, &more[0]);
        poll_n(s.cq, wc, 1);
        ck_assert_uint_eq(wc[0].wr_id, 7);
        for (unsigned i = 0; i < 7; i++) { /* 8 are free now */
            struct urnic_send_wr wr = write_wr(&s, &sge, 50 + i, 0);
            OK(urnic_post_send(s.qp, &wr, NULL));
        }
        ck_assert_int_eq(urnic_post_send(s.qp, more, &bad), -ENOMEM);
        ck_assert_ptr_eq(bad, &more[1]);
        poll_n(s.cq, wc, 1);
        ck_assert_uint_eq(wc[0].wr_id, 100);
    }
    setup_end(&s);
}
END_TEST

START_TEST(qp_16_receive_queue_accounting)
{
    /* QP-16: exactly max_recv_wr fit, although the ring has room for more */
    struct setup s = setup_start(8);
    struct urnic_qp *qp = setup_qp(&s, NULL, 3, 64);
    struct urnic_recv_wr recv = {0};
    struct urnic_send_wr send = {.opcode = URNIC_WR_SEND};
    struct urnic_wc wc[2];
    for (unsigned i = 0; i < 3; i++)
        OK(urnic_post_recv(qp, &recv, NULL));
    ck_assert_int_eq(urnic_post_recv(qp, &recv, NULL), -ENOMEM);
    OK(urnic_post_send(qp, &send, NULL));
    poll_n(s.cq, wc, 1);
    OK(urnic_post_recv(qp, &recv, NULL));
    ck_assert_int_eq(urnic_post_recv(qp, &recv, NULL), -ENOMEM);
    OK(urnic_destroy_qp(qp));
    setup_end(&s);
}
END_TEST

START_TEST(qp_16_lists_in_part)
{
    /* QP-16 a list of receives is accepted up to the first one without a place, which bad_wr names;
     * when the daemon is gone, bad_wr names the first of the list */
    struct setup s = setup_start(2);
    struct urnic_recv_wr list[3] = {{.wr_id = 1, .next = &list[1]}, {.wr_id = 2, .next = &list[2]}};
    const struct urnic_recv_wr *bad = NULL;
    struct urnic_async_event event;
    struct urnic_wc wc[2];
    ck_assert_int_eq(urnic_post_recv(s.qp, list, &bad), -ENOMEM);
    ck_assert_ptr_eq(bad, &list[2]);
    for (unsigned i = 0; i < 2; i++)
        OK(urnic_post_send(s.qp, &(struct urnic_send_wr){.opcode = URNIC_WR_SEND}, NULL));
    poll_n(s.cq, wc, 2);
    ck_assert_uint_eq(wc[0].wr_id, 1);
    ck_assert_uint_eq(wc[1].wr_id, 2);
    atomic_store(&fake_knobs(s.fake)->kill, true);
    OK(urnic_get_async_event(s.ctx, &event));
    ck_assert_int_eq(urnic_post_recv(s.qp, list, &bad), -ENODEV);
    ck_assert_ptr_eq(bad, &list[0]);
    setup_end(&s);
}
END_TEST

START_TEST(cq_01_inline_data_of_several_pieces)
{
    /* CQ-01 pieces of any length follow each other */
    struct setup s = setup_start(8);
    struct urnic_sge unused;
    struct urnic_wc wc;
    for (uint32_t first = 0; first < 20; first++) {
        const struct urnic_sge pieces[2] = {
            {.addr = (uintptr_t)s.mem, .length = first},
            {.addr = (uintptr_t)s.mem + 32, .length = 20 - first},
        };
        struct urnic_send_wr wr =
            write_wr(&s, &unused, first, URNIC_SEND_INLINE | URNIC_SEND_SIGNALED);
        wr.sg_list = pieces;
        wr.num_sge = 2;
        memset(s.mem, 'a', 32);
        memset(s.mem + 32, 'b', 32);
        OK(urnic_post_send(s.qp, &wr, NULL));
        poll_n(s.cq, &wc, 1);
        for (uint32_t i = 0; i < 20; i++)
            ck_assert_uint_eq(s.mem[4096 + i], i < first ? 'a' : 'b');
    }
    setup_end(&s);
}
END_TEST

START_TEST(cq_08_order_over_ring_wraps)
{
    /* CQ-08 entries of one to several units wrap everywhere; data and order survive */
    struct setup s = setup_start(8);
    struct urnic_wc wc[1];
    for (unsigned i = 0; i < 500; i++) {
        struct urnic_sge sge = {.addr = (uintptr_t)s.mem, .length = i % 65};
        struct urnic_send_wr wr = write_wr(&s, &sge, i, URNIC_SEND_INLINE | URNIC_SEND_SIGNALED);
        sge = (struct urnic_sge){.addr = (uintptr_t)s.mem, .length = i % 65};
        memset(s.mem, (int)i, 64);
        memset(s.mem + 4096, 0xEE, 64);
        OK(urnic_post_send(s.qp, &wr, NULL));
        memset(s.mem, 0xDD, 64); /* inline: the buffer is free */
        poll_n(s.cq, wc, 1);
        ck_assert_uint_eq(wc[0].wr_id, i);
        for (unsigned k = 0; k < 64; k++)
            ck_assert_uint_eq(s.mem[4096 + k], k < i % 65 ? (uint8_t)i : 0xEE);
    }
    setup_end(&s);
}
END_TEST

START_TEST(qp_05_what_cannot_be_posted)
{
    struct setup s = setup_start(8);
    struct urnic_sge sge, many[3] = {{0}};
    struct urnic_send_wr base = write_wr(&s, &sge, 1, 0);
    struct urnic_sge big = {.addr = (uintptr_t)s.mem, .length = 65};
    static const char *const what[] = {
        "QP-05 unknown opcode",      "SHM-03 reserved flag",          "SHM-03 too many SGEs",
        "SHM-03 negative SGE count", "SHM-03 inline longer than max", "SHM-03 inline READ",
        "SHM-03 inline atomic",      "SHM-03 inline REG_MR",
    };
    for (unsigned i = 0; i < sizeof(what) / sizeof(what[0]); i++) {
        struct urnic_send_wr wr = base;
        const struct urnic_send_wr *bad = NULL;
        switch (i) {
        case 0:
            wr.opcode = 77;
            break;
        case 1:
            wr.send_flags = 1u << 7;
            break;
        case 2:
            wr.sg_list = many;
            wr.num_sge = 3;
            break;
        case 3:
            wr.num_sge = -1;
            break;
        case 4:
            wr.sg_list = &big;
            wr.send_flags = URNIC_SEND_INLINE;
            break;
        case 5:
            wr.opcode = URNIC_WR_RDMA_READ;
            wr.send_flags = URNIC_SEND_INLINE;
            break;
        case 6:
            wr.opcode = URNIC_WR_ATOMIC_FETCH_AND_ADD;
            wr.send_flags = URNIC_SEND_INLINE;
            break;
        default:
            wr.opcode = URNIC_WR_REG_MR;
            wr.reg_mr.mr = s.mr;
            wr.send_flags = URNIC_SEND_INLINE;
        }
        ck_assert_msg(urnic_post_send(s.qp, &wr, &bad) == -EINVAL && bad == &wr, "%s", what[i]);
    }
    to_state(s.qp, URNIC_QPS_RESET); /* QP-05 */
    ck_assert_int_eq(urnic_post_send(s.qp, &base, NULL), -EINVAL);
    struct urnic_recv_wr recv = {0};
    ck_assert_int_eq(urnic_post_recv(s.qp, &recv, NULL), -EINVAL);
    to_state(s.qp, URNIC_QPS_INIT);
    ck_assert_int_eq(urnic_post_send(s.qp, &base, NULL), -EINVAL);
    OK(urnic_post_recv(s.qp, &recv, NULL));
    setup_end(&s);
}
END_TEST

/* The entries of a CQ whose places the daemon may use again. */
static uint32_t given_back(const struct urnic_cq *cq)
{
    return atomic_load(&cq->view.ring->cons);
}

START_TEST(qp_14_reset_and_destroy_drop_completions)
{
    /* QP-14 completions that weren't polled vanish, other queue pairs' stay, and a queue pair
     * starts over after RESET with all its places free */
    struct setup s = setup_start(8);
    struct urnic_qp *other = setup_qp(&s, NULL, 8, 64);
    struct urnic_sge sge;
    struct urnic_wc wc[4];
    for (int lap = 0; lap < 3; lap++) {
        for (unsigned i = 0; i < 8; i++) {
            struct urnic_send_wr wr = write_wr(&s, &sge, i, URNIC_SEND_SIGNALED);
            OK(urnic_post_send(s.qp, &wr, NULL));
            wr.wr_id = 100 + i;
            if (i < 2)
                OK(urnic_post_send(other, &wr, NULL));
        }
        usleep(50000);
        to_state(s.qp, URNIC_QPS_RESET);
        poll_n(s.cq, wc, 2);
        ck_assert_uint_eq(wc[0].wr_id, 100);
        ck_assert_uint_eq(wc[1].wr_id, 101);
        ck_assert_int_eq(urnic_poll_cq(s.cq, 4, wc), 0);
        to_state(s.qp, URNIC_QPS_INIT);
        to_state(s.qp, URNIC_QPS_RTR);
        to_state(s.qp, URNIC_QPS_RTS);
    }
    struct urnic_send_wr wr = write_wr(&s, &sge, 1, URNIC_SEND_SIGNALED);
    OK(urnic_post_send(other, &wr, NULL));
    usleep(50000);
    uint32_t polled = given_back(s.cq);
    OK(urnic_destroy_qp(other));
    ck_assert_uint_eq(given_back(s.cq), polled + 1); /* it takes no room any more */
    ck_assert_int_eq(urnic_poll_cq(s.cq, 4, wc), 0);
    setup_end(&s);
}
END_TEST

START_TEST(qp_04_reset_in_the_middle)
{
    /* QP-04 counts restart in both queues, and completions vanish from both completion queues */
    struct setup s = setup_start(8);
    struct urnic_cq *sends = s.cq, *receives;
    OK(urnic_create_cq(s.ctx, 64, NULL, NULL, &receives));
    struct urnic_qp_init_attr init = {
        .send_cq = sends,
        .recv_cq = receives,
        .qp_type = URNIC_QPT_RC,
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
    };
    struct urnic_qp *qp;
    struct urnic_wc wc[4];
    const struct urnic_send_wr send = {.opcode = URNIC_WR_SEND, .send_flags = URNIC_SEND_SIGNALED};
    const struct urnic_recv_wr recv = {0};
    OK(urnic_create_qp(s.pd, &init, &qp));
    for (unsigned lap = 0; lap < 3; lap++) {
        to_state(qp, URNIC_QPS_INIT);
        to_state(qp, URNIC_QPS_RTR);
        to_state(qp, URNIC_QPS_RTS);
        for (unsigned i = 0; i < 4; i++)
            OK(urnic_post_recv(qp, &recv, NULL));
        for (unsigned i = 0; i < 3; i++)
            OK(urnic_post_send(qp, &send, NULL));
        poll_n(sends, wc, 2);
        poll_n(receives, wc, 1);
        usleep(50000);
        to_state(qp, URNIC_QPS_RESET);
        ck_assert_int_eq(urnic_poll_cq(sends, 4, wc), 0);
        ck_assert_int_eq(urnic_poll_cq(receives, 4, wc), 0);
    }
    to_state(qp, URNIC_QPS_INIT);
    to_state(qp, URNIC_QPS_RTR);
    to_state(qp, URNIC_QPS_RTS);
    OK(urnic_post_recv(qp, &recv, NULL));
    OK(urnic_post_send(qp, &send, NULL));
    usleep(50000);
    uint32_t sent = given_back(sends), received = given_back(receives);
    OK(urnic_destroy_qp(qp));
    ck_assert_uint_eq(given_back(sends), sent + 1);
    ck_assert_uint_eq(given_back(receives), received + 1);
    OK(urnic_destroy_cq(receives));
    setup_end(&s);
}
END_TEST

START_TEST(srq_01_shared_receive_queue)
{
    /* SRQ-01 receives come from the shared queue, places free as completions are polled */
    struct setup s = setup_start(8);
    struct urnic_srq *srq;
    struct urnic_srq_attr attr = {.max_wr = 4, .max_sge = 1};
    struct urnic_wc wc[2];
    struct urnic_sge sge = {.addr = (uintptr_t)s.mem + 256, .length = 64, .lkey = s.mr->lkey};
    struct urnic_recv_wr recv = {.sg_list = &sge, .num_sge = 1};
    OK(urnic_create_srq(s.pd, &attr, NULL, &srq));
    struct urnic_qp *qp = setup_qp(&s, srq, 8, 64);
    ck_assert_int_eq(urnic_post_recv(qp, &(struct urnic_recv_wr){0}, NULL), -EINVAL);
    for (recv.wr_id = 0; recv.wr_id < 4; recv.wr_id++)
        OK(urnic_post_srq_recv(srq, &recv, NULL));
    ck_assert_int_eq(urnic_post_srq_recv(srq, &recv, NULL), -ENOMEM);
    for (unsigned i = 0; i < 20; i++) {
        struct urnic_send_wr send = {.opcode = URNIC_WR_SEND};
        OK(urnic_post_send(qp, &send, NULL));
        poll_n(s.cq, wc, 1);
        ck_assert_uint_eq(wc[0].wr_id, i);
        recv.wr_id = i + 4;
        OK(urnic_post_srq_recv(srq, &recv, NULL));
        if (i % 5 == 4) { /* unsignalled sends would fill the queue */
            send.opcode = URNIC_WR_RDMA_WRITE;
            send.send_flags = URNIC_SEND_SIGNALED;
            OK(urnic_post_send(qp, &send, NULL));
            poll_n(s.cq, wc, 1);
        }
    }
    for (unsigned i = 0; i < 4; i++) { /* requests dropped by RESET free their places, too */
        struct urnic_send_wr send = {.opcode = URNIC_WR_SEND};
        OK(urnic_post_send(qp, &send, NULL));
    }
    usleep(50000);
    to_state(qp, URNIC_QPS_RESET);
    ck_assert_int_eq(urnic_poll_cq(s.cq, 2, wc), 0);
    for (unsigned i = 0; i < 4; i++)
        OK(urnic_post_srq_recv(srq, &recv, NULL));
    ck_assert_int_eq(urnic_post_srq_recv(srq, &recv, NULL), -ENOMEM);
    ck_assert_int_eq(urnic_destroy_srq(srq), -EBUSY);
    to_state(qp, URNIC_QPS_INIT);
    to_state(qp, URNIC_QPS_RTR);
    to_state(qp, URNIC_QPS_RTS);
    for (unsigned i = 0; i < 4; i++) { /* and so do requests of a destroyed queue pair */
        struct urnic_send_wr send = {.opcode = URNIC_WR_SEND};
        OK(urnic_post_send(qp, &send, NULL));
    }
    usleep(50000);
    OK(urnic_destroy_qp(qp));
    for (unsigned i = 0; i < 4; i++)
        OK(urnic_post_srq_recv(srq, &recv, NULL));
    ck_assert_int_eq(urnic_post_srq_recv(srq, &recv, NULL), -ENOMEM);
    OK(urnic_destroy_srq(srq));
    setup_end(&s);
}
END_TEST

/* CQ-08: several threads post on their own queue pairs and poll one CQ together. */
struct poster {
    struct setup *s;
    struct urnic_qp *qp;
    _Atomic unsigned *polled;
};

#define POSTERS 3
#define POSTS   3000u

static void *poster_thread(void *arg)
{
    struct poster *p = arg;
    struct urnic_sge sge;
    struct urnic_wc wc[8];
    unsigned posted = 0;
    while (posted < POSTS || atomic_load(p->polled) < POSTERS * POSTS) {
        struct urnic_send_wr wr =
            write_wr(p->s, &sge, posted, URNIC_SEND_SIGNALED | URNIC_SEND_INLINE);
        if (posted < POSTS && urnic_post_send(p->qp, &wr, NULL) == 0)
            posted++;
        int n = urnic_poll_cq(p->s->cq, 8, wc);
        if (n > 0)
            atomic_fetch_add(p->polled, (unsigned)n);
        else
            sched_yield();
    }
    return NULL;
}

START_TEST(cq_08_threads)
{
    struct setup s = setup_start(8);
    _Atomic unsigned polled = 0;
    struct poster p[POSTERS];
    pthread_t t[POSTERS];
    for (int i = 0; i < POSTERS; i++) {
        p[i] = (struct poster){.s = &s, .qp = setup_qp(&s, NULL, 16, 64), .polled = &polled};
        pthread_create(&t[i], NULL, poster_thread, &p[i]);
    }
    for (int i = 0; i < POSTERS; i++) {
        pthread_join(t[i], NULL);
        OK(urnic_destroy_qp(p[i].qp));
    }
    ck_assert_uint_eq(atomic_load(&polled), POSTERS * POSTS);
    setup_end(&s);
}
END_TEST

static double ns_since(const struct timespec *start, unsigned n)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return ((double)(now.tv_sec - start->tv_sec) * 1e9 + (double)(now.tv_nsec - start->tv_nsec)) /
           n;
}

START_TEST(shm_06_hot_path_makes_no_system_call)
{
    /* SHM-06 a burst of posts kicks a sleeping worker at most once; the costs are printed */
    struct setup s = setup_start(8192);
    struct urnic_sge sge;
    struct urnic_wc wc[64];
    struct timespec t;
    for (unsigned i = 0; i < 3 * 8192; i++) { /* touch all of the memory */
        struct urnic_send_wr wr =
            write_wr(&s, &sge, i, URNIC_SEND_INLINE | (i % 8192 == 8191 ? URNIC_SEND_SIGNALED : 0));
        OK(urnic_post_send(s.qp, &wr, NULL));
        if (i % 8192 == 8191)
            poll_n(s.cq, wc, 1);
    }
    atomic_store(&fake_knobs(s.fake)->hold, true);
    usleep(50000); /* let it sleep */
    unsigned kicks = atomic_load(&fake_knobs(s.fake)->kicks);
    struct urnic_send_wr wr = write_wr(&s, &sge, 0, URNIC_SEND_INLINE);
    for (unsigned i = 0; i < 64; i++)
        OK(urnic_post_send(s.qp, &wr, NULL));
    clock_gettime(CLOCK_MONOTONIC, &t);
    for (unsigned i = 0; i < 8000; i++)
        urnic_post_send(s.qp, &wr, NULL);
    double post = ns_since(&t, 8000);
    clock_gettime(CLOCK_MONOTONIC, &t);
    int sum = 0;
    for (unsigned i = 0; i < 1000000; i++)
        sum += urnic_poll_cq(s.cq, 64, wc);
    double poll = ns_since(&t, 1000000);
    ck_assert_int_eq(sum, 0);
    printf("post of an 8-octet inline WRITE %.1f ns, empty poll %.1f ns\n", post, poll);
    usleep(50000);
    ck_assert_uint_le(atomic_load(&fake_knobs(s.fake)->kicks) - kicks, 1);
    atomic_store(&fake_knobs(s.fake)->hold, false);
    setup_end(&s);
}
END_TEST

UNIT_MAIN("client post", cq_01_data_and_fields_arrive, qp_16_send_queue_accounting,
          qp_16_receive_queue_accounting, qp_16_lists_in_part, cq_01_inline_data_of_several_pieces,
          cq_08_order_over_ring_wraps, qp_05_what_cannot_be_posted,
          qp_14_reset_and_destroy_drop_completions, qp_04_reset_in_the_middle,
          srq_01_shared_receive_queue, cq_08_threads, shm_06_hot_path_makes_no_system_call)
