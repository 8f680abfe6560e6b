/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Receiving from a memif ring: frames in place, chains, and everything a hostile peer can write.
 */
#include <poll.h>
#include <pthread.h>

#include "test_memif_peer.h"

/* A server port with a peer by hand. */
static struct io_port *hand(struct peer *p, uint32_t frame_max)
{
    struct io_port *io = peer_port("role=server", frame_max);
    *p = peer_new();
    ck_assert(peer_connect(p, io));
    return io;
}

static void hand_over(struct peer *p, struct io_port *io)
{
    peer_close(p);
    io->ops->close(io);
}

static unsigned peek(struct io_port *io, struct io_frame *frames, unsigned max)
{
    return io->ops->rx_peek(io, frames, max, 0);
}

static void publish(struct memif_ring *ring, uint16_t head)
{
    atomic_store_explicit(&ring->head, head, memory_order_release);
}

START_TEST(frames_are_lent_in_place_and_given_back_in_order)
{
    struct peer p;
    struct io_port *io = hand(&p, 1514);
    struct io_frame f[4];
    for (uint32_t i = 0; i < 3; i++) {
        p.c2s->desc[i].length = 60 + i;
        p.base[p.c2s->desc[i].offset] = (uint8_t)(0xa0 + i);
    }
    publish(p.c2s, 3);
    ck_assert_uint_eq(peek(io, f, 2), 2);
    ck_assert_uint_eq(peek(io, f + 2, 2), 1);
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(f[i].len, 60 + i);
        ck_assert_uint_eq(f[i].data[0], 0xa0 + i);
    }
    /* In place: a write to the ring changes the lent frame. */
    p.base[p.c2s->desc[1].offset] = 0x55;
    ck_assert_uint_eq(f[1].data[0], 0x55);
    ck_assert_uint_eq(p.c2s->tail, 0);
    io->ops->rx_release(io, 1);
    ck_assert_uint_eq(p.c2s->tail, 1);
    io->ops->rx_release(io, 2);
    ck_assert_uint_eq(p.c2s->tail, 3);
    io->ops->rx_release(io, 1); /* nothing is lent: nothing is given back */
    ck_assert_uint_eq(p.c2s->tail, 3);
    ck_assert_uint_eq(peer_stats(io).rx_frames, 3);
    ck_assert_uint_eq(peer_stats(io).rx_bytes, 183);
    hand_over(&p, io);
}
END_TEST

START_TEST(chain_back_to_back_is_lent_in_place)
{
    struct peer p;
    struct io_port *io = hand(&p, 5000);
    struct io_frame f[2];
    for (uint32_t i = 0; i < 3; i++) {
        p.c2s->desc[i].length = i < 2 ? PEER_BUFFER : 66;
        p.c2s->desc[i].flags = i < 2 ? MEMIF_DESC_NEXT : 0;
    }
    publish(p.c2s, 2); /* its end has yet to come */
    ck_assert_uint_eq(peek(io, f, 2), 0);
    publish(p.c2s, 3);
    ck_assert_uint_eq(peek(io, f, 2), 1);
    ck_assert_uint_eq(f[0].len, 4162);
    p.base[p.c2s->desc[2].offset + 65] = 0x77;
    ck_assert_uint_eq(f[0].data[4161], 0x77);
    io->ops->rx_release(io, 1);
    ck_assert_uint_eq(p.c2s->tail, 3);
    ck_assert_uint_eq(p.c2s->desc[0].flags, 0); /* DPDK relies on it */
    ck_assert_uint_eq(peer_counters(io).copied_rx, 0);
    hand_over(&p, io);
}
END_TEST

START_TEST(scattered_chain_is_put_together)
{
    struct peer p;
    struct io_port *io = hand(&p, 5000);
    struct io_frame f[2];
    static const uint32_t len[] = {100, 1, 2048, 7};
    uint32_t at = 0;
    for (uint32_t i = 0; i < 4; i++) {
        p.c2s->desc[i].length = len[i];
        p.c2s->desc[i].flags = i < 3 ? MEMIF_DESC_NEXT : 0;
        for (uint32_t k = 0; k < len[i]; k++)
            p.base[p.c2s->desc[i].offset + k] = peer_octet(9, at++);
    }
    p.c2s->desc[4].length = 64;
    publish(p.c2s, 5);
    ck_assert_uint_eq(peek(io, f, 2), 2);
    peer_expect(&f[0], at, 9);
    ck_assert_uint_eq(f[1].len, 64);
    io->ops->rx_release(io, 2);
    ck_assert_uint_eq(p.c2s->tail, 5);
    ck_assert_uint_eq(peer_counters(io).copied_rx, 1);
    hand_over(&p, io);
}
END_TEST

/* As many scattered frames are lent at a time as there are side buffers: the next one would be put
 * where the oldest still is. */
START_TEST(scattered_frames_wait_for_a_side_buffer)
{
    struct peer p = peer_new();
    struct io_port *io = peer_port("role=server", 1514);
    struct io_frame f[IO_BURST_MAX], g[IO_BURST_MAX];
    p.log2 = 8;
    p.s2c_offset = (uint32_t)memif_ring_octets(p.log2);
    ck_assert(peer_connect(&p, io));
    const uint32_t buffers = 2 * p.s2c_offset;
    for (uint32_t i = 0; i < 2 * (IO_BURST_MAX + 1); i++) {
        p.c2s->desc[i] = (struct memif_desc){
            .flags = i % 2 == 0 ? MEMIF_DESC_NEXT : 0, .length = 8, .offset = buffers + 16 * i};
        memset(p.base + buffers + 16 * i, (int)(1 + i / 2), 8);
    }
    publish(p.c2s, 2 * (IO_BURST_MAX + 1));
    ck_assert_uint_eq(peek(io, f, IO_BURST_MAX), IO_BURST_MAX);
    ck_assert_uint_eq(peek(io, g, 1), 0);
    for (unsigned i = 0; i < IO_BURST_MAX; i++)
        ck_assert(f[i].len == 16 && f[i].data[0] == 1 + i && f[i].data[15] == 1 + i);
    io->ops->rx_release(io, 1);
    ck_assert_uint_eq(peek(io, g, 1), 1);
    ck_assert_uint_eq(g[0].data[15], 1 + IO_BURST_MAX);
    ck_assert_uint_eq(f[1].data[0], 2);
    io->ops->rx_release(io, IO_BURST_MAX);
    hand_over(&p, io);
}
END_TEST

#define GROW_LOOKS 20000u

static _Atomic bool grow_over;

static void *grow_main(void *arg)
{
    uint32_t *length = arg;
    for (uint32_t n = 0; !atomic_load_explicit(&grow_over, memory_order_relaxed); n++)
        __atomic_store_n(length, n % 2 ? 700 : 1400, __ATOMIC_RELAXED);
    return NULL;
}

/* A scattered frame whose second part becomes longer between the look at it and the copy: together
 * they are more than a side buffer holds then. Where there is but one core that happens seldom. */
START_TEST(frame_that_grows_is_not_copied)
{
    struct io_port *io = peer_port("role=server", 1514);
    for (unsigned i = 0; i < 5; i++) {
        struct peer p = peer_new();
        struct io_frame f[1];
        pthread_t thread;
        p.log2 = 1;
        ck_assert(peer_connect(&p, io));
        p.c2s->desc[0] = (struct memif_desc){.length = 700, .offset = 4096};
        p.c2s->desc[1] = (struct memif_desc){.length = 700, .offset = 8192};
        atomic_store(&grow_over, false);
        ck_assert_int_eq(pthread_create(&thread, NULL, grow_main, &p.c2s->desc[1].length), 0);
        for (unsigned look = 1; look < GROW_LOOKS && peer_is_up(io); look++) {
            p.c2s->desc[0].flags = MEMIF_DESC_NEXT;
            publish(p.c2s, (uint16_t)(2 * look));
            unsigned n = peek(io, f, 1);
            ck_assert(n == 0 || f[0].len == 1400);
            io->ops->rx_release(io, n);
        }
        atomic_store(&grow_over, true);
        pthread_join(thread, NULL);
        peer_close(&p);
        io->ops->service(io, 0);
    }
    io->ops->close(io);
}
END_TEST

START_TEST(oversize_and_empty_frames_are_counted_and_skipped)
{
    struct peer p;
    struct io_port *io = hand(&p, 1514);
    struct io_frame f[8];

    /* oversize, good, oversize chain of two, empty, good */
    static const struct memif_desc d[] = {{0, 0, 1515, 4096, 0}, {0, 0, 1514, 4096, 0},
                                          {1, 0, 1000, 4096, 0}, {0, 0, 1000, 4096, 0},
                                          {0, 0, 0, 4096, 0},    {0, 0, 60, 4096, 0}};
    memcpy(p.c2s->desc, d, sizeof(d));
    publish(p.c2s, 1);
    ck_assert_uint_eq(peek(io, f, 8), 0);
    ck_assert_uint_eq(p.c2s->tail, 1); /* nothing lent: given back at once */
    publish(p.c2s, 6);
    ck_assert_uint_eq(peek(io, f, 8), 2);
    ck_assert_uint_eq(f[0].len, 1514);
    ck_assert_uint_eq(f[1].len, 60);
    io->ops->rx_release(io, 1);
    ck_assert_uint_eq(p.c2s->tail, 5); /* with the descriptors skipped after it */
    io->ops->rx_release(io, 1);
    ck_assert_uint_eq(p.c2s->tail, 6);
    ck_assert_uint_eq(peer_stats(io).rx_oversize, 2);
    ck_assert_uint_eq(peer_stats(io).rx_drop, 1);
    hand_over(&p, io);
}
END_TEST

static const struct {
    const char *fact;
    uint16_t head;
    struct memif_desc desc; /* of slot 0 */
    enum memif_reason reason;
} attacks[] = {
    {"more frames than slots", PEER_RING + 1, {.length = 60, .offset = 4096}, MEMIF_INDEX},
    {"index that went backwards", 0xffff, {.length = 60, .offset = 4096}, MEMIF_INDEX},
    {"region that isn't there", 1, {.region = 1, .length = 60, .offset = 4096}, MEMIF_DESC},
    {"last region number", 1, {.region = 0xffff, .length = 60, .offset = 4096}, MEMIF_DESC},
    {"last octet outside", 1, {.length = 60, .offset = PEER_REGION - 59}, MEMIF_DESC},
    {"offset + length wraps", 1, {.length = 60, .offset = 0xffffffffu - 10}, MEMIF_DESC},
    {"huge length", 1, {.length = 0xffffffffu, .offset = 4096}, MEMIF_DESC},
    {"second of a chain outside", 2, {.flags = 1, .length = 60, .offset = 4096}, MEMIF_DESC},
};

START_TEST(hostile_ring_takes_the_link_down_and_nothing_else)
{
    struct peer p;
    struct io_port *io = hand(&p, 1514);
    struct io_frame f[8];
    p.c2s->desc[0] = attacks[_i].desc;
    p.c2s->desc[1] = (struct memif_desc){.length = 60, .offset = PEER_REGION};
    publish(p.c2s, attacks[_i].head);
    ck_assert_msg(peek(io, f, 8) == 0, "%s", attacks[_i].fact);
    ck_assert_msg(!peer_is_up(io), "%s", attacks[_i].fact);
    io->ops->service(io, 0);
    ck_assert_msg(peer_counters(io).reason[attacks[_i].reason] == 1, "%s", attacks[_i].fact);
    peer_close(&p);
    p = peer_new();
    ck_assert_msg(peer_connect(&p, io), "%s: port is stuck", attacks[_i].fact);
    hand_over(&p, io);
}
END_TEST

/* Back to a slot that was seen filled, of a chain whose end hasn't come. */
START_TEST(index_that_takes_slots_back_takes_the_link_down)
{
    struct peer p;
    struct io_port *io = hand(&p, 1514);
    struct io_frame f[8];
    for (uint32_t i = 0; i < 3; i++) {
        p.c2s->desc[i].length = 60;
        p.c2s->desc[i].flags = MEMIF_DESC_NEXT;
    }
    publish(p.c2s, 3);
    ck_assert_uint_eq(peek(io, f, 8), 0);
    ck_assert(peer_is_up(io));
    publish(p.c2s, 2);
    ck_assert_uint_eq(peek(io, f, 8), 0);
    ck_assert(!peer_is_up(io));
    io->ops->service(io, 0);
    ck_assert_uint_eq(peer_counters(io).reason[MEMIF_INDEX], 1);
    hand_over(&p, io);
}
END_TEST

START_TEST(chain_without_end_takes_the_link_down)
{
    struct peer p;
    struct io_port *io = hand(&p, 1514);
    struct io_frame f[8];
    for (uint32_t i = 0; i < PEER_RING; i++) {
        p.c2s->desc[i].length = 1;
        p.c2s->desc[i].flags = MEMIF_DESC_NEXT;
    }
    publish(p.c2s, PEER_RING);
    ck_assert_uint_eq(peek(io, f, 8), 0);
    ck_assert(!peer_is_up(io));
    io->ops->service(io, 0);
    ck_assert_uint_eq(peer_counters(io).reason[MEMIF_CHAIN], 1);
    hand_over(&p, io);
}
END_TEST

#define RUBBISH_LOG2  10u
#define RUBBISH_SLOTS (1u << RUBBISH_LOG2)
#define RUBBISH_LOOKS 200u

static _Atomic bool rubbish_over;

/* Takes every freed slot at once, except one: so a chain is always cut off. */
static void *rubbish_main(void *arg)
{
    struct memif_ring *ring = arg;
    while (!atomic_load_explicit(&rubbish_over, memory_order_relaxed))
        publish(ring, (uint16_t)(atomic_load_explicit(&ring->tail, memory_order_acquire) +
                                 RUBBISH_SLOTS - 1));
    return NULL;
}

/* SHM-08: chains of nothing, brought as fast as they are thrown away. The worker has others to
 * serve: a look at the ring has an end. */
START_TEST(rubbish_without_end_does_not_keep_the_reader)
{
    struct peer p = peer_new();
    struct io_port *io = peer_port("role=server", 1514);
    struct io_frame f[8];
    pthread_t thread;
    p.log2 = RUBBISH_LOG2;
    p.s2c_offset = (uint32_t)memif_ring_octets(RUBBISH_LOG2);
    ck_assert(peer_connect(&p, io));
    for (uint32_t i = 0; i < RUBBISH_SLOTS; i++)
        p.c2s->desc[i] = (struct memif_desc){.flags = i % 2 == 0 ? MEMIF_DESC_NEXT : 0};
    ck_assert_int_eq(pthread_create(&thread, NULL, rubbish_main, p.c2s), 0);
    for (uint64_t seen = 0; seen < RUBBISH_LOOKS * RUBBISH_SLOTS;) {
        ck_assert_uint_eq(peek(io, f, 8), 0);
        ck_assert_uint_le(peer_stats(io).rx_drop - seen, RUBBISH_SLOTS);
        seen = peer_stats(io).rx_drop;
    }
    atomic_store(&rubbish_over, true);
    pthread_join(thread, NULL);
    ck_assert_uint_eq(peek(io, f, 8), 0);
    ck_assert(peer_is_up(io));

    /* ... and finds the frame after it. */
    uint16_t head = (uint16_t)(p.c2s->head + 1);
    p.c2s->desc[head % RUBBISH_SLOTS] = (struct memif_desc){.length = 60};
    publish(p.c2s, (uint16_t)(head + 1));
    ck_assert_uint_eq(peek(io, f, 8), 1);
    ck_assert_uint_eq(f[0].len, 60);
    hand_over(&p, io);
}
END_TEST

START_TEST(lent_frames_outlive_the_peer)
{
    struct peer p, next = peer_new();
    struct io_port *io = hand(&p, 1514);
    struct io_frame f[2];
    for (uint32_t i = 0; i < 3; i++)
        p.c2s->desc[i].length = 100;
    p.base[p.c2s->desc[0].offset + 99] = 0x42;
    publish(p.c2s, 3);
    ck_assert_uint_eq(peek(io, f, 2), 2);
    peer_close(&p);
    io->ops->service(io, 0);
    ck_assert(!peer_is_up(io));
    ck_assert_uint_eq(peer_stats(io).rx_drop, 1); /* the one that was never looked at */
    ck_assert_uint_eq(f[0].data[99], 0x42);
    ck_assert_uint_eq(peek(io, f, 2), 0);
    io->ops->rx_release(io, 2);
    ck_assert(peer_connect(&next, io));
    hand_over(&next, io);
}
END_TEST

START_TEST(sleeper_is_woken_by_a_frame_and_a_poller_is_not)
{
    struct io_port *a = peer_port("role=server", 1514), *b = peer_port("role=client", 1514);
    struct io_port *ports[2] = {a, b};
    struct io_frame f[4];
    const uint32_t len = 60;
    peer_service(a, b);
    for (int i = 0; i < 2; i++) {
        struct io_port *from = ports[i], *to = ports[!i];
        struct pollfd pfd = {.fd = to->caps.rx_fd, .events = POLLIN};

        ck_assert_uint_eq(peer_send(from, &len, 1, 0), 1);
        ck_assert_int_eq(poll(&pfd, 1, 0), 0);
        ck_assert_uint_eq(peer_counters(from).kicks, 0);
        ck_assert_uint_eq(peek(to, f, 4), 1);
        to->ops->rx_release(to, 1);

        to->ops->rx_arm(to, true);
        ck_assert_uint_eq(peek(to, f, 4), 0);
        ck_assert_int_eq(poll(&pfd, 1, 0), 0);
        ck_assert_uint_eq(peer_send(from, &len, 1, 0), 1);
        ck_assert_uint_eq(peer_counters(from).kicks, 1);
        ck_assert_int_eq(poll(&pfd, 1, 0), 1);
        ck_assert_uint_eq(peek(to, f, 4), 1);
        to->ops->rx_release(to, 1);

        /* The empty look consumes the wake-up. */
        ck_assert_uint_eq(peek(to, f, 4), 0);
        ck_assert_int_eq(poll(&pfd, 1, 0), 0);
        to->ops->rx_arm(to, false);
        ck_assert_uint_eq(peer_send(from, &len, 1, 0), 1);
        ck_assert_uint_eq(peer_counters(from).kicks, 1);
    }
    a->ops->close(a);
    b->ops->close(b);
}
END_TEST

START_TEST(sleeper_is_woken_by_a_peer_that_comes_or_goes)
{
    struct io_port *io = peer_port("role=server", 1514);
    struct pollfd pfd = {.fd = io->caps.rx_fd, .events = POLLIN};
    struct peer p = peer_new();
    struct io_frame f[4];
    p.keep_event = true;
    io->ops->rx_arm(io, true);
    ck_assert_uint_eq(peek(io, f, 4), 0);
    ck_assert_int_eq(poll(&pfd, 1, 0), 0);
    ck_assert(peer_connect(&p, io));
    ck_assert_uint_eq(p.c2s->flags, 0); /* armed before the link came up */
    ck_assert_int_eq(poll(&pfd, 1, 0), 0);
    close(p.sock);
    p.sock = -1;
    ck_assert_int_eq(poll(&pfd, 1, 0), 1);
    ck_assert_uint_eq(peek(io, f, 4), 0);
    ck_assert(!peer_is_up(io));
    ck_assert_int_eq(poll(&pfd, 1, 0), 0);
    /* The peer still has the eventfd, and may kick for ever. */
    ck_assert_int_eq(eventfd_write(p.event_fd, 1), 0);
    ck_assert_int_eq(poll(&pfd, 1, 0), 0);
    hand_over(&p, io);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("memif_rx");

    tcase_add_test(t, frames_are_lent_in_place_and_given_back_in_order);
    tcase_add_test(t, chain_back_to_back_is_lent_in_place);
    tcase_add_test(t, scattered_chain_is_put_together);
    tcase_add_test(t, scattered_frames_wait_for_a_side_buffer);
    tcase_add_test(t, frame_that_grows_is_not_copied);
    tcase_add_test(t, oversize_and_empty_frames_are_counted_and_skipped);
    tcase_add_loop_test(t, hostile_ring_takes_the_link_down_and_nothing_else, 0,
                        sizeof(attacks) / sizeof(attacks[0]));
    tcase_add_test(t, index_that_takes_slots_back_takes_the_link_down);
    tcase_add_test(t, chain_without_end_takes_the_link_down);
    tcase_add_test(t, rubbish_without_end_does_not_keep_the_reader);
    tcase_add_test(t, lent_frames_outlive_the_peer);
    tcase_add_test(t, sleeper_is_woken_by_a_frame_and_a_poller_is_not);
    tcase_add_test(t, sleeper_is_woken_by_a_peer_that_comes_or_goes);
    return peer_main("memif_rx", t);
}
