/* SPDX-License-Identifier: BSD-3-Clause
 *
 * poll_yield: threads that spin on empty completion queues leave the cores to threads with work.
 * Eight of them run beside a ping-pong whose two ends spin as well. If they kept the cores, each
 * message would wait for eight time slices: most of a minute for 2,000 round trips on two cores. */
#include "vt.h"

#define SPINNERS 8
#define TRIPS    2000

static struct vt_end ends[2];
static _Atomic bool stop;

static void *spin(void *arg)
{
    struct ibv_cq *cq = arg;
    struct ibv_wc wc;
    while (!stop)
        WANT(ibv_poll_cq(cq, 1, &wc) == 0, "a completion of nothing");
    return NULL;
}

static void take(struct ibv_cq *cq)
{
    struct ibv_wc wc;
    int n;
    while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
        ;
    WANT(n == 1 && wc.status == IBV_WC_SUCCESS, "ibv_poll_cq gave %d, status %d", n, wc.status);
}

static void *play(void *arg)
{
    struct vt_end *e = arg;
    for (int i = 0; i < TRIPS; i++) {
        if (e == &ends[1])
            take(e->rcq);
        WANT(!vt_recv(e, 1, e->buf + 64, 64), "ibv_post_recv failed");
        WANT(!vt_post(e, IBV_WR_SEND, 2, e->buf, 8, IBV_SEND_SIGNALED, 0, 0, 0),
             "ibv_post_send failed");
        take(e->scq);
        if (e == &ends[0])
            take(e->rcq);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t spinner[SPINNERS], player[2];
    vt_start(argc, argv, "poll_yield");
    vt_pair(&ends[0], &ends[1], NULL);
    WANT(!vt_recv(&ends[1], 1, ends[1].buf + 64, 64), "ibv_post_recv failed");
    for (int i = 0; i < SPINNERS; i++) {
        struct ibv_cq *cq = ibv_create_cq(ends[0].ctx, 16, NULL, NULL, 0);
        WANT(cq && !pthread_create(&spinner[i], NULL, spin, cq), "no thread or queue to spin");
    }
    uint64_t began = vt_ms();
    for (int i = 0; i < 2; i++)
        WANT(!pthread_create(&player[i], NULL, play, &ends[i]), "no thread to play");
    for (int i = 0; i < 2; i++)
        pthread_join(player[i], NULL);
    uint64_t took = vt_ms() - began;
    stop = true;
    for (int i = 0; i < SPINNERS; i++)
        pthread_join(spinner[i], NULL);
    vt_pass("%d round trips in %llu ms", TRIPS, (unsigned long long)took);
}
