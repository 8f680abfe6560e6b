/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A memif port of several workers (memif_worker.h): a pair of rings between each two workers of two
 * urnics, as many pairs as there are with other peers; peers that come, go and lie.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "memif_worker.h"
#include "test_memif_peer.h"
#include "wire.h"

#define LEN    200u
#define BTH    42u
#define MATES  MEMIF_WORKERS
#define ROUNDS 100u

/* A port with its queues; queue 0 is the port. */
struct ports {
    struct io_port *q[MATES];
    unsigned n;
};

static struct ports open_ports(const char *args, unsigned n)
{
    struct ports p = {.n = n};
    p.q[0] = peer_port(args, 0);
    for (unsigned k = 1; k < n; k++)
        ck_assert_int_eq(p.q[0]->ops->queue(p.q[0], k, n, &p.q[k]), 0);
    return p;
}

static void close_ports(struct ports *p)
{
    for (unsigned k = p->n; k-- > 0;)
        p->q[k]->ops->close(p->q[k]);
}

static void serve(struct ports *a, struct ports *b)
{
    for (unsigned i = 0; i < 300; i++) {
        for (unsigned k = 0; a && k < a->n; k++)
            a->q[k]->ops->service(a->q[k], 0);
        for (unsigned k = 0; b && k < b->n; k++)
            b->q[k]->ops->service(b->q[k], 0);
    }
}

static unsigned links(struct ports *p)
{
    unsigned up = 0;
    for (unsigned k = 0; k < p->n; k++)
        up |= peer_is_up(p->q[k]) ? 1u << k : 0;
    return up;
}

/* A RoCEv2 packet to this queue pair, with a number after the BTH. */
static void make(uint8_t f[LEN], uint32_t qpn, uint32_t number)
{
    memset(f, 0, LEN);
    f[12] = 0x08;
    f[14] = 0x45;
    f[23] = 17;
    f[36] = WIRE_UDP_PORT >> 8;
    f[37] = WIRE_UDP_PORT & 0xFF;
    f[BTH + 5] = (uint8_t)(qpn >> 16);
    f[BTH + 6] = (uint8_t)(qpn >> 8);
    f[BTH + 7] = (uint8_t)qpn;
    memcpy(f + BTH + 12, &number, sizeof(number));
}

static uint32_t qpn_of(const struct io_frame *f)
{
    return (uint32_t)f->data[BTH + 5] << 16 | (uint32_t)f->data[BTH + 6] << 8 | f->data[BTH + 7];
}

static uint32_t number_of(const struct io_frame *f)
{
    uint32_t n;
    memcpy(&n, f->data + BTH + 12, sizeof(n));
    return n;
}

/* Send packet `number` to each of these queue pairs in one burst. Returns whether there was room.
 */
static bool send_to(struct io_port *io, const uint32_t *qpn, unsigned n, uint32_t number)
{
    struct io_slot slots[IO_BURST_MAX];
    unsigned got = io->ops->tx_reserve(io, slots, n, 0);
    for (unsigned i = 0; i < got && got == n; i++) {
        make(slots[i].data, qpn[i], number);
        slots[i].len = LEN;
    }
    io->ops->tx_commit(io, slots, got, 0);
    return got == n;
}

/* Each worker of one end sends to queue pairs of all workers of the other end, mixed in each burst:
 * every packet comes to the worker of its queue pair, in order, and none is lost. */
static void all_to_all(struct ports *from, struct ports *to)
{
    unsigned bits = 0;
    uint32_t next[MATES][MATES][2] = {0};
    struct io_frame f[IO_BURST_MAX];
    ck_assert_uint_gt(to->n, 0);
    while (1u << bits < to->n)
        bits++;
    for (uint32_t number = 0, got = 0; number < ROUNDS; number++) {
        for (unsigned k = 0; k < from->n; k++) {
            uint32_t qpn[2 * MATES];
            for (unsigned i = 0; i < 2 * to->n; i++) /* two of each worker, not side by side */
                qpn[i] = (i % to->n) << (23 - bits) | k << 4 | i / to->n;
            ck_assert(send_to(from->q[k], qpn, 2 * to->n, number));
        }
        for (unsigned j = 0; j < to->n; j++) {
            unsigned n;
            while ((n = to->q[j]->ops->rx_peek(to->q[j], f, 7, 0)) > 0) {
                for (unsigned i = 0; i < n; i++) {
                    const uint32_t qpn = qpn_of(&f[i]);
                    ck_assert_uint_eq(f[i].len, LEN);
                    ck_assert_uint_eq(qpn >> (23 - bits), j);
                    ck_assert_uint_eq(number_of(&f[i]), next[j][qpn >> 4 & 15][qpn & 1]++);
                }
                to->q[j]->ops->rx_release(to->q[j], n);
                got += n;
            }
        }
        ck_assert_uint_eq(got, (number + 1) * from->n * 2 * to->n);
    }
}

static void between(unsigned n, unsigned m)
{
    struct ports a = open_ports("role=server", n), b = open_ports("role=client", m);
    serve(&a, &b);
    ck_assert_uint_eq(links(&a), (1u << n) - 1);
    ck_assert_uint_eq(links(&b), (1u << m) - 1);
    all_to_all(&a, &b);
    all_to_all(&b, &a);
    uint64_t sent = 0, got = 0;
    for (unsigned k = 0; k < n; k++) {
        sent += peer_stats(a.q[k]).tx_frames;
        ck_assert_uint_eq(peer_stats(a.q[k]).tx_drop, 0);
    }
    for (unsigned k = 0; k < m; k++)
        got += peer_stats(b.q[k]).rx_frames;
    ck_assert_uint_eq(sent, (uint64_t)ROUNDS * n * 2 * m);
    ck_assert_uint_eq(got, sent);
    close_ports(&b);
    close_ports(&a);
}

START_TEST(a_pair_between_each_two_workers)
{
    unsigned before = peer_count("/proc/self/fd"), mappings = peer_mappings();
    between(2, 2);
    between(4, 2);
    between(2, 4);
    between(4, 4);
    ck_assert_uint_eq(peer_count("/proc/self/fd"), before);
    ck_assert_uint_eq(peer_mappings(), mappings);
}
END_TEST

START_TEST(eight_workers_at_each_end)
{
    between(8, 8);
}
END_TEST

/* Frames that name no worker come to worker 0: for QP1, groups, engines of programs, and frames
 * that are not RoCE. */
START_TEST(what_names_no_worker)
{
    struct ports a = open_ports("role=server", 4), b = open_ports("role=client", 4);
    struct io_slot slots[5];
    struct io_frame f[8];
    serve(&a, &b);
    ck_assert_uint_eq(b.q[2]->ops->tx_reserve(b.q[2], slots, 5, 0), 5);
    for (unsigned i = 0; i < 5; i++) {
        make(slots[i].data, 3u << 21 | 5, i);
        slots[i].len = LEN;
    }
    make(slots[0].data, 1, 0);
    slots[1].data[0] = 1;     /* to a group */
    slots[2].data[13] = 0x06; /* ARP */
    slots[3].data[37] ^= 1;   /* another UDP port */
    make(slots[4].data, 0xE00005, 4);
    b.q[2]->ops->tx_commit(b.q[2], slots, 5, 0);
    ck_assert_uint_eq(a.q[0]->ops->rx_peek(a.q[0], f, 8, 0), 5);
    for (unsigned i = 0; i < 5; i++)
        ck_assert_uint_eq(number_of(&f[i]), i);
    a.q[0]->ops->rx_release(a.q[0], 5);
    close_ports(&b);
    close_ports(&a);
}
END_TEST

/* An urnic of one worker has one pair, as every older one has. */
START_TEST(a_peer_of_one_worker)
{
    struct ports a = open_ports("role=server", 1), b = open_ports("role=client", 4);
    const uint32_t qpn[1] = {3u << 21};
    struct io_slot slot;
    struct io_link link;
    struct io_frame f;
    serve(&a, &b);
    ck_assert_uint_eq(links(&a), 1);
    ck_assert_uint_eq(links(&b), 1);
    b.q[3]->ops->link(b.q[3], &link);
    ck_assert_str_eq(link.why, "the peer has no ring for this worker");
    ck_assert_uint_eq(b.q[3]->ops->tx_reserve(b.q[3], &slot, 1, 0), 0);
    ck_assert(send_to(b.q[0], qpn, 1, 7));
    ck_assert_uint_eq(a.q[0]->ops->rx_peek(a.q[0], &f, 1, 0), 1);
    a.q[0]->ops->rx_release(a.q[0], 1);
    ck_assert(send_to(a.q[0], qpn, 1, 8)); /* the wrong ring: the owner hands it on */
    ck_assert_uint_eq(b.q[0]->ops->rx_peek(b.q[0], &f, 1, 0), 1);
    b.q[0]->ops->rx_release(b.q[0], 1);
    close_ports(&b);
    /* ... and the other way round */
    b = open_ports("role=client", 1);
    close_ports(&a);
    a = open_ports("role=server", 4);
    serve(&a, &b);
    ck_assert_uint_eq(links(&a), 1);
    close_ports(&b);
    close_ports(&a);
}
END_TEST

/* Another program's rings, as many as it has, are the workers' in turn. */
START_TEST(a_peer_with_fewer_or_more_rings)
{
    for (unsigned pairs = 1; pairs <= 4; pairs++) {
        struct ports a = open_ports("role=server", 2);
        struct peer p = peer_new();
        struct io_frame f[4];
        p.pairs = pairs;
        ck_assert(peer_connect(&p, a.q[0]));
        serve(&a, NULL);
        ck_assert_uint_eq(links(&a), pairs == 1 ? 1 : 3);
        for (unsigned i = 0; i < pairs; i++) {
            struct memif_ring *ring = (void *)(p.base + i * PEER_PAIR);
            ring->desc[0] = (struct memif_desc){.offset = 4096, .length = 60 + i};
            atomic_store(&ring->head, 1);
            ck_assert_uint_eq(a.q[1 - i % 2]->ops->rx_peek(a.q[1 - i % 2], f, 4, 0), 0);
            ck_assert_uint_eq(a.q[i % 2]->ops->rx_peek(a.q[i % 2], f, 4, 0), 1);
            ck_assert_uint_eq(f[0].len, 60 + i);
            a.q[i % 2]->ops->rx_release(a.q[i % 2], 1);
            ck_assert_uint_eq(atomic_load(&ring->tail), 1);
        }
        close_ports(&a);
        peer_close(&p);
    }
}
END_TEST

/* rings=2 of four workers: the client asks for no more, the server allows no more. */
START_TEST(the_rings_that_are_allowed)
{
    struct ports a = open_ports("role=server", 4), b = open_ports("role=client,rings=2", 4);
    serve(&a, &b);
    ck_assert_uint_eq(links(&a), 3);
    ck_assert_uint_eq(links(&b), 3);
    close_ports(&b);
    close_ports(&a);
    a = open_ports("role=server,rings=3", 4);
    b = open_ports("role=client", 4);
    serve(&a, &b);
    ck_assert_uint_eq(links(&a), 7);
    ck_assert_uint_eq(links(&b), 7);
    close_ports(&b);
    close_ports(&a);
}
END_TEST

/* A ring without its other direction, or with a gap before it. */
START_TEST(rings_that_are_no_pairs)
{
    for (unsigned i = 0; i < 3; i++) {
        struct ports a = open_ports("role=server", 2);
        struct peer p = peer_new();
        p.pairs = 2;
        p.skip = i < 2 ? 3 + (int)i : 0;
        p.ring_index = i == 2;
        ck_assert(!peer_connect(&p, a.q[0]));
        serve(&a, NULL);
        ck_assert_uint_eq(links(&a), 0);
        ck_assert_uint_eq(peer_counters(a.q[0]).reason[MEMIF_RING], 1);
        close_ports(&a);
        peer_close(&p);
    }
}
END_TEST

/* A fault found by one worker ends the connection for all. */
START_TEST(a_lie_in_any_ring)
{
    for (unsigned i = 0; i < 2; i++) {
        struct ports a = open_ports("role=server", 2);
        struct peer p = peer_new();
        struct io_frame f;
        p.pairs = 2;
        ck_assert(peer_connect(&p, a.q[0]));
        serve(&a, NULL);
        struct memif_ring *ring = (void *)(p.base + i * PEER_PAIR);
        atomic_store(&ring->head, PEER_RING + 1);
        ck_assert_uint_eq(a.q[i]->ops->rx_peek(a.q[i], &f, 1, 0), 0);
        serve(&a, NULL);
        ck_assert_uint_eq(links(&a), 0);
        ck_assert_uint_eq(peer_counters(a.q[0]).reason[MEMIF_INDEX], 1);
        peer_close(&p);
        p = peer_new(); /* the next one is as welcome as the first */
        p.pairs = 2;
        ck_assert(peer_connect(&p, a.q[0]));
        serve(&a, NULL);
        ck_assert_uint_eq(links(&a), 3);
        close_ports(&a);
        peer_close(&p);
    }
}
END_TEST

/* The peer goes while frames of its are lent and slots reserved, and comes back; nothing is left of
 * it in the end. */
START_TEST(the_peer_goes_and_comes_back)
{
    struct ports a = open_ports("role=server", 4), b;
    struct io_frame f[IO_BURST_MAX];
    struct io_slot slots[IO_BURST_MAX];
    const unsigned mappings = peer_mappings();
    const uint32_t qpn[3] = {2u << 21, 2u << 21 | 1, 2u << 21 | 2};
    for (unsigned i = 0; i < 50; i++) {
        b = open_ports("role=client", 2);
        serve(&a, &b);
        ck_assert_uint_eq(links(&a), 15);
        ck_assert(send_to(b.q[i % 2], qpn, 3, i));
        ck_assert_uint_eq(a.q[2]->ops->rx_peek(a.q[2], f, 2, 0), 2);
        unsigned n = a.q[2]->ops->tx_reserve(a.q[2], slots, 4, 0);
        ck_assert_uint_eq(n, 4);
        close_ports(&b);
        serve(&a, NULL);
        ck_assert_uint_eq(links(&a), 0);
        for (unsigned k = 0; k < 2; k++)
            ck_assert_uint_eq(number_of(&f[k]), i);
        for (unsigned k = 0; k < n; k++) {
            memset(slots[k].data, 1, slots[k].cap);
            slots[k].len = 60;
        }
        a.q[2]->ops->tx_commit(a.q[2], slots, n, 0);
        a.q[2]->ops->rx_release(a.q[2], 2);
        const struct io_stats st = peer_stats(a.q[2]);
        ck_assert_uint_eq(st.tx_drop, (i + 1) * 4);
        ck_assert_uint_eq(st.rx_frames, (i + 1) * 2);
        ck_assert_uint_eq(st.rx_drop, i + 1); /* the third one */
    }
    ck_assert_uint_eq(a.q[2]->ops->tx_reserve(a.q[2], slots, 4, 0), 0);
    ck_assert_uint_eq(peer_mappings(), mappings);
    close_ports(&a);
}
END_TEST

/* A queue that sleeps wakes for a frame in any of its rings, and for a new connection. */
START_TEST(a_queue_that_sleeps)
{
    struct ports a = open_ports("role=server", 2), b = open_ports("role=client", 2);
    struct io_frame f;
    struct pollfd pfd = {.fd = a.q[1]->caps.rx_fd, .events = POLLIN};
    a.q[1]->ops->rx_arm(a.q[1], true);
    ck_assert_int_eq(poll(&pfd, 1, 0), 0);
    for (unsigned i = 0; i < 300; i++) {
        a.q[0]->ops->service(a.q[0], 0);
        b.q[0]->ops->service(b.q[0], 0);
        b.q[1]->ops->service(b.q[1], 0);
    }
    ck_assert_int_eq(poll(&pfd, 1, 0), 1);
    ck_assert_uint_eq(a.q[1]->ops->rx_peek(a.q[1], &f, 1, 0), 0);
    ck_assert(peer_is_up(a.q[1]));
    ck_assert_int_eq(poll(&pfd, 1, 0), 0);
    for (unsigned k = 0; k < 2; k++) {
        const uint32_t qpn = 1u << 22;
        ck_assert(send_to(b.q[k], &qpn, 1, k));
        ck_assert_int_eq(poll(&pfd, 1, 0), 1);
        ck_assert_uint_eq(a.q[1]->ops->rx_peek(a.q[1], &f, 1, 0), 1);
        ck_assert_uint_eq(number_of(&f), k);
        a.q[1]->ops->rx_release(a.q[1], 1);
        ck_assert_uint_eq(a.q[1]->ops->rx_peek(a.q[1], &f, 1, 0), 0);
        ck_assert_int_eq(poll(&pfd, 1, 0), 0);
    }
    close_ports(&b);
    close_ports(&a);
}
END_TEST

/* ---- threads ---- */

static _Atomic unsigned stop, got[2]; /* received counted frames */

struct runs {
    struct io_port *io;
    unsigned k;
    bool counts;
};

/* Worker k of one end: sends to all workers of the other one, and takes frames in any order. */
static void *run_worker(void *arg)
{
    const struct runs *r = arg;
    struct io_port *io = r->io;
    const unsigned k = r->k;
    uint32_t number[2] = {0}, next[2];
    bool known[2] = {false}; /* next; this thread may begin in the middle */
    struct io_frame f[IO_BURST_MAX];
    while (!atomic_load(&stop)) {
        for (uint32_t j = 0; j < 2; j++) {
            const uint32_t qpn = j << 22 | k;
            number[j] += send_to(io, &qpn, 1, number[j]);
        }
        unsigned n = io->ops->rx_peek(io, f, 16, 0);
        for (unsigned i = 0; i < n; i++) {
            ck_assert_uint_eq(qpn_of(&f[i]) >> 22, k);
            const unsigned from = qpn_of(&f[i]) & 1;
            ck_assert(!known[from] || number_of(&f[i]) == next[from] || number_of(&f[i]) == 0);
            known[from] = true;
            next[from] = number_of(&f[i]) + 1;
        }
        if (r->counts)
            atomic_fetch_add(&got[k], n);
        io->ops->rx_release(io, n);
        io->ops->service(io, 0);
        if (!peer_is_up(io))
            number[0] = number[1] = 0;
        if (n == 0)
            sched_yield();
    }
    return NULL;
}

static void run(pthread_t threads[2], struct runs runs[2], const struct ports *p, bool counts)
{
    for (unsigned k = 0; k < 2; k++) {
        runs[k] = (struct runs){p->q[k], k, counts};
        ck_assert_int_eq(pthread_create(&threads[k], NULL, run_worker, &runs[k]), 0);
    }
}

static void join(const pthread_t threads[2])
{
    for (unsigned k = 0; k < 2; k++)
        pthread_join(threads[k], NULL);
}

/* Workers on threads of their own, while the peer's port is closed and opened again. */
START_TEST(workers_on_threads)
{
    pthread_t threads[2], others[2];
    struct runs runs[2], other[2];
    struct ports one = open_ports("role=server", 2);
    run(threads, runs, &one, false);
    for (unsigned i = 0; i < 5; i++) {
        struct ports two = open_ports("role=client", 2);
        atomic_store(&got[0], 0);
        atomic_store(&got[1], 0);
        run(others, other, &two, true);
        for (unsigned ms = 0; atomic_load(&got[0]) < 500 || atomic_load(&got[1]) < 500; ms++) {
            ck_assert_uint_lt(ms, 20000);
            usleep(1000);
        }
        atomic_store(&stop, 1);
        join(others);
        join(threads);
        atomic_store(&stop, 0);
        run(threads, runs, &one, false);
        close_ports(&two);
    }
    atomic_store(&stop, 1);
    join(threads);
    close_ports(&one);
}
END_TEST

START_TEST(opening_queues)
{
    struct ports a = open_ports("role=server", 1);
    struct io_port *q;
    ck_assert_int_eq(a.q[0]->ops->queue(a.q[0], 0, 2, &q), -EINVAL);
    ck_assert_int_eq(a.q[0]->ops->queue(a.q[0], 2, 2, &q), -EINVAL);
    ck_assert_int_eq(a.q[0]->ops->queue(a.q[0], 1, 16, &q), -EINVAL);
    struct peer p = peer_new();
    peer_begin(&p, a.q[0]);
    ck_assert_int_eq(a.q[0]->ops->queue(a.q[0], 1, 2, &q), -EBUSY);
    close_ports(&a);
    peer_close(&p);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("memif_worker");
    TCase *t = tcase_create("memif_worker"), *threads = tcase_create("threads");
    tcase_set_timeout(t, 60);
    tcase_set_timeout(threads, 60);
    tcase_add_test(t, a_pair_between_each_two_workers);
    tcase_add_test(t, eight_workers_at_each_end);
    tcase_add_test(t, what_names_no_worker);
    tcase_add_test(t, a_peer_of_one_worker);
    tcase_add_test(t, a_peer_with_fewer_or_more_rings);
    tcase_add_test(t, the_rings_that_are_allowed);
    tcase_add_test(t, rings_that_are_no_pairs);
    tcase_add_test(t, a_lie_in_any_ring);
    tcase_add_test(t, the_peer_goes_and_comes_back);
    tcase_add_test(t, a_queue_that_sleeps);
    tcase_add_test(t, opening_queues);
    tcase_add_test(threads, workers_on_threads);
    suite_add_tcase(s, t);
    suite_add_tcase(s, threads);
    return unit_run(s);
}
