/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A device of several workers: it is one device for its peers, wherever a context is. The same
 * traffic over a bad link with 1, 2 and 4 workers; connections made and ended at random over 4.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon_rig.h"
#include "live_sample.h"
#include "unit.h"

#define SIZE     LIVE_SIZE
#define PORT     4811
#define ENDS     4u
#define CONNS    1000u
#define BAD_LINK ",loss=0.01,reorder=0.01,dup=0.01,corrupt=0.005"

static struct rig rig;
static struct end a[ENDS], b[ENDS];

static void up(unsigned workers, const char *link)
{
    char one[256], two[256];
    snprintf(one, sizeof(one), "name=urn0,port=mem:L%s,addr=10.0.0.1/24,workers=%u", link, workers);
    snprintf(two, sizeof(two), "name=urn1,port=mem:L,addr=10.0.0.2/24,workers=%u", workers);
    const char *const args[] = {"--device", one, "--device", two, NULL};
    rig_start(&rig, args);
    rig_await_link(&rig, "urn0");
    rig_await_link(&rig, "urn1");
}

/* Contexts of one process stay together unless they ask for a worker; -1: this one doesn't. */
static void open_on(struct end *e, const char *device, int worker)
{
    rig_on_worker(worker);
    end_open(e, &rig, device, SIZE);
}

static void open_all(unsigned workers)
{
    for (unsigned i = 0; i < ENDS; i++) {
        open_on(&a[i], "urn0", live_worker(i, workers, false));
        open_on(&b[i], "urn1", live_worker(i, workers, true));
    }
}

static void close_all(void)
{
    for (unsigned i = 0; i < ENDS; i++) {
        end_close(&a[i]);
        end_close(&b[i]);
    }
    rig_stop(&rig);
}

/* The link loses, doubles, damages and mixes up frames. The queue pairs of all workers still get
 * the right data. Frames that came to the wrong worker were passed to the right one. */
static void live_sample(unsigned workers)
{
    up(workers, BAD_LINK);
    open_all(workers);
    live_exchanges(a, b, ENDS);
    uint64_t right = rig_counter(&rig, "urn1", "steer_right"),
             moved = rig_counter(&rig, "urn1", "steer_moved");
    ck_assert_uint_gt(rig_counter(&rig, "urn0", "tx_retransmit"), 0);
    ck_assert_uint_eq(rig_counter(&rig, "urn1", "rx_bad_qpn"), 0);
    ck_assert_uint_eq(rig_counter(&rig, "urn1", "contexts"), ENDS);
    ck_assert_int_eq(right > 0 && moved > 0, workers > 1);
    close_all();
}

START_TEST(with_1_worker)
{
    live_sample(1);
}
END_TEST

START_TEST(with_2_workers)
{
    live_sample(2);
}
END_TEST

START_TEST(with_4_workers)
{
    live_sample(4);
}
END_TEST

/* Two devices with several workers, joined by memif: a ring pair between each two workers brings a
 * packet directly to the right one. A device of one worker has one pair, which the other device's
 * workers share. */
static void over_memif(unsigned n, unsigned m)
{
    char one[256], two[256];
    const char *form = "name=urn%u,port=memif:@urnic-workers-%d,role=%s,addr=10.0.0.%u/24,"
                       "worker=0,workers=%u";
    snprintf(one, sizeof(one), form, 0, (int)getpid(), "server", 1, n);
    snprintf(two, sizeof(two), form, 1, (int)getpid(), "client", 2, m);
    const char *const args[] = {"--device", one, "--device", two, NULL};
    rig_start(&rig, args);
    rig_await_link(&rig, "urn0");
    rig_await_link(&rig, "urn1");
    for (unsigned i = 0; i < ENDS; i++) {
        open_on(&a[i], "urn0", (int)(i % n));
        open_on(&b[i], "urn1", (int)((i + i / m) % m));
        end_qp(&a[i], URNIC_QPT_RC);
        end_qp(&b[i], URNIC_QPT_RC);
        end_connect(&a[i], &b[i]);
    }
    for (unsigned i = 0; i < ENDS; i++) {
        live_exchange(&a[i], &b[i], i);
        live_exchange(&b[i], &a[i], i + 77);
    }
    for (unsigned i = 0; i < 2; i++) {
        const char *device = i == 0 ? "urn0" : "urn1";
        uint64_t right = rig_counter(&rig, device, "steer_right"),
                 moved = rig_counter(&rig, device, "steer_moved");
        if (n > 1 && m > 1)
            ck_assert_msg(right >= 99 * moved && right > 1000, "%s: %u right, %u moved", device,
                          (unsigned)right, (unsigned)moved);
        ck_assert_uint_eq(rig_counter(&rig, device, "rx_bad_qpn"), 0);
        ck_assert_uint_gt(rig_counter(&rig, device, "port_tx_frames"), 1000);
    }
    close_all();
}

START_TEST(memif_of_2_and_2)
{
    over_memif(2, 2);
}
END_TEST

START_TEST(memif_of_4_and_2)
{
    over_memif(4, 2);
}
END_TEST

START_TEST(memif_of_4_and_1)
{
    over_memif(4, 1);
}
END_TEST

/* ---- connections ---- */

static _Atomic unsigned made, over;

static unsigned next_random(unsigned *state)
{
    return (*state = *state * 1103515245u + 12345u) >> 16;
}

/* Sends the number of octets that it wants; the server sends them. Then either side disconnects. */
static void *client(void *arg)
{
    const unsigned k = (unsigned)(uintptr_t)arg;
    unsigned seed = k + 1;
    while (atomic_fetch_add(&made, 1) < CONNS) {
        unsigned to = next_random(&seed) % ENDS;
        struct urnic_conn_attr attr = end_conn_attr(&a[k], 20000);
        struct urnic_conn *c;
        int rc =
            urnic_connect_addr(a[k].ctx, "10.0.0.2", (uint16_t)(PORT + to), &attr, NULL, NULL, &c);
        ck_assert_msg(rc == 0, "connecting: %s", strerror(-rc));
        if (next_random(&seed) % 4 != 0) { /* else it closes without disconnecting */
            a[k].qp = c->qp;
            ck_assert_int_eq(end_post(&a[k], URNIC_WR_SEND, 0, 64, 0, 0, 5), 0);
            struct urnic_wc wc;
            end_wait(&a[k], &wc, 20000); /* the server may have hung up before */
            a[k].qp = NULL;
        }
        ck_assert_int_eq(urnic_close_conn(c), 0);
    }
    return NULL;
}

static _Atomic bool all_made;

static void *server(void *arg)
{
    const unsigned k = (unsigned)(uintptr_t)arg;
    struct urnic_listener *l;
    unsigned seed = 100 + k;
    ck_assert_int_eq(urnic_listen_addr(b[k].ctx, NULL, (uint16_t)(PORT + k), 0, &l), 0);
    atomic_fetch_add(&over, 1);
    while (!atomic_load(&all_made)) {
        struct urnic_conn_attr attr = end_conn_attr(&b[k], 100);
        struct urnic_conn *c;
        struct urnic_wc wc;
        int rc = urnic_accept_conn(l, &attr, NULL, NULL, &c);
        if (rc == -ETIMEDOUT || rc == -ECONNABORTED || rc == -ECONNRESET)
            continue;
        ck_assert_msg(rc == 0, "accepting: %s", strerror(-rc));
        b[k].qp = c->qp;
        ck_assert_int_eq(end_post_recv(&b[k], 0, 64, 6), 0);
        if (next_random(&seed) % 8 != 0) /* else it hangs up without waiting */
            end_wait(&b[k], &wc, 20000);
        b[k].qp = NULL;
        ck_assert_int_eq(urnic_close_conn(c), 0);
        while (urnic_poll_cq(b[k].cq, 1, &wc) > 0)
            ;
    }
    ck_assert_int_eq(urnic_close_listener(l), 0);
    return NULL;
}

/* A listener of one worker is found by the requests of all; nothing is left of a connection. */
START_TEST(a_thousand_connections)
{
    pthread_t c[ENDS], s[ENDS];
    up(4, "");
    open_all(4);
    for (uintptr_t k = 0; k < ENDS; k++)
        pthread_create(&s[k], NULL, server, (void *)k);
    while (atomic_load(&over) < ENDS)
        sched_yield();
    for (uintptr_t k = 0; k < ENDS; k++)
        pthread_create(&c[k], NULL, client, (void *)k);
    for (unsigned k = 0; k < ENDS; k++)
        pthread_join(c[k], NULL);
    atomic_store(&all_made, true);
    for (unsigned k = 0; k < ENDS; k++)
        pthread_join(s[k], NULL);
    ck_assert_uint_ge(rig_counter(&rig, "urn1", "cm_established"), CONNS);
    for (uint64_t until = rig_now_ms() + 20000;
         rig_counter(&rig, "urn1", "cm_live") > 0 || rig_counter(&rig, "urn0", "cm_live") > 0;)
        ck_assert_msg(rig_now_ms() < until, "%u connections are left",
                      (unsigned)rig_counter(&rig, "urn1", "cm_live"));
    ck_assert_uint_eq(rig_counter(&rig, "urn0", "qps"), 0);
    ck_assert_uint_eq(rig_counter(&rig, "urn1", "qps"), 0);
    close_all();
}
END_TEST

/* A port has one listener, whatever worker it is on. */
START_TEST(one_listener)
{
    struct urnic_listener *l, *other;
    up(2, "");
    open_all(2);
    ck_assert_int_eq(urnic_listen_addr(b[0].ctx, NULL, PORT, 0, &l), 0);
    ck_assert_int_eq(urnic_listen_addr(b[1].ctx, NULL, PORT, 0, &other), -EADDRINUSE);
    ck_assert_int_eq(urnic_listen_addr(b[1].ctx, "10.0.0.2", PORT, 0, &other), -EADDRINUSE);
    ck_assert_int_eq(urnic_listen_addr(b[1].ctx, NULL, PORT + 1, 0, &other), 0);
    ck_assert_int_eq(urnic_close_listener(other), 0);
    ck_assert_int_eq(urnic_close_listener(l), 0);
    ck_assert_int_eq(urnic_listen_addr(b[1].ctx, NULL, PORT, 0, &l), 0);
    ck_assert_int_eq(urnic_close_listener(l), 0);
    close_all();
}
END_TEST

/* A device talks to itself, from one worker to another. */
START_TEST(to_itself)
{
    up(2, "");
    open_all(2);
    end_qp(&a[0], URNIC_QPT_RC);
    end_qp(&a[1], URNIC_QPT_RC);
    end_connect(&a[0], &a[1]);
    live_exchange(&a[0], &a[1], 1);
    live_exchange(&a[1], &a[0], 2);
    close_all();
}
END_TEST

UNIT_MAIN("workers", with_1_worker, with_2_workers, with_4_workers, memif_of_2_and_2,
          memif_of_4_and_2, memif_of_4_and_1, a_thousand_connections, one_listener, to_itself)
