/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sending into a memif ring: in place, without holes, in chains, and to a peer that offers
 * buffers it hasn't got.
 */
#include "test_memif_peer.h"

/* Send bursts from `from` to `to` until `frames` have gone over, each slot's length drawn from
 * len[0..kinds); the received frames are compared octet by octet. */
static void transfer(struct io_port *from, struct io_port *to, const uint32_t *len, unsigned kinds,
                     unsigned frames)
{
    uint32_t expect[4096], seeds[4096];
    unsigned sent = 0, got = 0;
    uint32_t seed = 0, draw = 1;
    while (got < frames) {
        uint32_t burst[IO_BURST_MAX];
        for (unsigned i = 0; i < IO_BURST_MAX; i++) {
            draw = draw * 1103515245u + 12345u;
            burst[i] = len[(draw >> 16) % kinds];
        }
        unsigned n = peer_send(from, burst, 1 + (draw >> 8) % IO_BURST_MAX, seed);
        for (unsigned i = 0; i < n; i++)
            if (burst[i]) {
                expect[sent % 4096] = burst[i];
                seeds[sent++ % 4096] = seed + i;
            }
        seed += n;
        struct io_frame f[IO_BURST_MAX];
        n = to->ops->rx_peek(to, f, 1 + (draw >> 5) % IO_BURST_MAX, 0);
        for (unsigned i = 0; i < n; i++, got++)
            peer_expect(&f[i], expect[got % 4096], seeds[got % 4096]);
        to->ops->rx_release(to, n);
        ck_assert(peer_is_up(from) && peer_is_up(to));
    }
    ck_assert_uint_eq(peer_stats(to).rx_frames, got);
    ck_assert_uint_eq(peer_stats(from).tx_frames, sent);
    ck_assert_uint_eq(peer_stats(from).tx_drop, 0);
}

static const struct {
    const char *fact, *client;
    uint32_t frame_max;
    uint32_t len[4];
    bool chained, copied;
} transfers[] = {
    {"one slot a frame, in place", "log2_ring_size=6", 4166, {64, 4166, 4162, 1}, false, false},
    {"a hole in a burst is closed", "log2_ring_size=6", 1514, {64, 0, 1514, 0}, false, true},
    {"three slots a frame",
     "log2_ring_size=6,buffer=2048",
     4166,
     {4166, 4162, 4100, 4160},
     true,
     true},
    {"short and long in a small ring",
     "log2_ring_size=4,buffer=2048",
     9234,
     {64, 9234, 0, 2049},
     true,
     true},
    {"two slots", "log2_ring_size=1", 4166, {64, 4166, 0, 1}, false, true},
    {"a frame takes both of two slots",
     "log2_ring_size=1,buffer=2112",
     4166,
     {4166, 60, 4100, 2113},
     true,
     true},
    {"a frame takes the whole ring",
     "log2_ring_size=3,buffer=1216",
     9234,
     {9234, 60, 9234, 9000},
     true,
     true},
};

START_TEST(frames_arrive_whole_and_in_order_in_both_directions)
{
    char args[96];
    snprintf(args, sizeof(args), "role=client,%s", transfers[_i].client);
    uint32_t frame_max = transfers[_i].frame_max;
    struct io_port *server = peer_port("role=server", frame_max);
    struct io_port *client = peer_port(args, frame_max);

    peer_service(client, server);
    ck_assert(peer_is_up(server) && peer_is_up(client));
    transfer(server, client, transfers[_i].len, 4, 3000);
    transfer(client, server, transfers[_i].len, 4, 3000);
    ck_assert_msg((peer_counters(server).chained_tx != 0) == transfers[_i].chained, "%s",
                  transfers[_i].fact);
    ck_assert_msg((peer_counters(client).copied_tx != 0) == transfers[_i].copied, "%s",
                  transfers[_i].fact);
    client->ops->close(client);
    server->ops->close(server);
}
END_TEST

START_TEST(full_ring_says_so_and_loses_nothing)
{
    struct io_port *server = peer_port("role=server", 1514);
    struct io_port *client = peer_port("role=client,log2_ring_size=6", 1514);
    uint32_t len[IO_BURST_MAX];
    struct io_frame f[IO_BURST_MAX];
    peer_service(client, server);
    for (unsigned i = 0; i < IO_BURST_MAX; i++)
        len[i] = 100;
    for (int i = 0; i < 2; i++) {
        struct io_port *from = i ? server : client, *to = i ? client : server;
        ck_assert_uint_eq(peer_send(from, len, 40, 0), 40);
        ck_assert_uint_eq(peer_send(from, len, 40, 40), 24);
        ck_assert_uint_eq(peer_send(from, len, 40, 64), 0);
        ck_assert_uint_eq(peer_stats(from).tx_full, 2);
        ck_assert_uint_eq(to->ops->rx_peek(to, f, 64, 0), 64);
        ck_assert_uint_eq(peer_send(from, len, 40, 64), 0); /* lent is not free */
        for (uint32_t k = 0; k < 64; k++)
            peer_expect(&f[k], 100, k);
        to->ops->rx_release(to, 10);
        ck_assert_uint_eq(peer_send(from, len, 40, 64), 10);
        to->ops->rx_release(to, 54);
    }
    client->ops->close(client);
    server->ops->close(server);
}
END_TEST

/* The slots free at the last look are too few for one frame, but more than one. */
START_TEST(sender_sees_slots_that_have_come_free_one_frame_at_a_time)
{
    struct io_port *server = peer_port("role=server", 4166);
    struct io_port *client = peer_port("role=client,log2_ring_size=4,buffer=2048", 4166);
    const uint32_t len = 4166;
    struct io_frame f[IO_BURST_MAX];
    peer_service(client, server);
    for (int i = 0; i < 2; i++) {
        struct io_port *from = i ? server : client, *to = i ? client : server;
        for (uint32_t n = 0; n < 50; n += 5) {
            for (uint32_t k = 0; k < 5; k++) /* 3 slots each: one of 16 stays free */
                ck_assert_uint_eq(peer_send(from, &len, 1, n + k), 1);
            ck_assert_uint_eq(peer_send(from, &len, 1, 0), 0);
            for (uint32_t k = 0; k < 5; k++) {
                ck_assert_uint_eq(to->ops->rx_peek(to, f, 1, 0), 1);
                peer_expect(&f[0], len, n + k);
                to->ops->rx_release(to, 1);
            }
        }
    }
    client->ops->close(client);
    server->ops->close(server);
}
END_TEST

/* 54 octets of Ethernet, IPv4, UDP and BTH before it: copies and CRCs go by whole cache lines. */
START_TEST(payloads_begin_at_a_cache_line)
{
    struct io_port *server = peer_port("role=server", 4166);
    struct io_port *client = peer_port("role=client", 4166);
    struct io_slot slots[IO_BURST_MAX];
    peer_service(client, server);
    for (int i = 0; i < 2; i++) {
        struct io_port *from = i ? server : client;
        unsigned n = from->ops->tx_reserve(from, slots, IO_BURST_MAX, 0);
        ck_assert_uint_eq(n, IO_BURST_MAX);
        for (unsigned k = 0; k < n; k++)
            ck_assert_uint_eq(((uintptr_t)slots[k].data + 54) % 64, 0);
    }
    client->ops->close(client);
    server->ops->close(server);
}
END_TEST

START_TEST(uncommitted_slots_are_not_sent)
{
    struct io_port *server = peer_port("role=server", 1514);
    struct io_port *client = peer_port("role=client", 1514);
    struct io_slot slots[8];
    struct io_frame f[8];
    const uint32_t len = 60;
    peer_service(client, server);
    ck_assert_uint_eq(client->ops->tx_reserve(client, slots, 8, 0), 8);
    client->ops->tx_commit(client, slots, 8, 0);
    ck_assert_uint_eq(server->ops->rx_peek(server, f, 8, 0), 0);
    ck_assert_uint_eq(peer_send(client, &len, 1, 5), 1);
    ck_assert_uint_eq(server->ops->rx_peek(server, f, 8, 0), 1);
    peer_expect(&f[0], 60, 5);
    client->ops->close(client);
    server->ops->close(server);
}
END_TEST

START_TEST(frames_committed_to_a_dead_link_are_counted)
{
    struct io_port *server = peer_port("role=server", 1514);
    struct io_port *client = peer_port("role=client", 1514);
    struct io_slot slots[4];
    peer_service(client, server);
    ck_assert_uint_eq(client->ops->tx_reserve(client, slots, 4, 0), 4);
    server->ops->close(server);
    peer_service(client, NULL);
    ck_assert(!peer_is_up(client));
    for (int i = 0; i < 3; i++) {
        memset(slots[i].data, 0, slots[i].cap); /* still there */
        slots[i].len = 60;
    }
    client->ops->tx_commit(client, slots, 4, 0);
    ck_assert_uint_eq(peer_stats(client).tx_drop, 3);
    ck_assert_uint_eq(client->ops->tx_reserve(client, slots, 4, 0), 0);
    client->ops->close(client);
}
END_TEST

static const struct {
    const char *fact;
    uint16_t head;
    struct memif_desc desc;
    enum memif_reason reason;
} attacks[] = {
    {"more buffers than slots", PEER_RING + 1, {.length = 2048, .offset = 4096}, MEMIF_INDEX},
    {"index that went backwards", 0xfffe, {.length = 2048, .offset = 4096}, MEMIF_INDEX},
    {"buffer in no region", 8, {.region = 3, .length = 2048, .offset = 4096}, MEMIF_DESC},
    {"buffer over the end", 8, {.length = 2048, .offset = PEER_REGION - 2047}, MEMIF_DESC},
    {"offset + length wraps", 8, {.length = 2048, .offset = 0xfffff000u}, MEMIF_DESC},
    {"huge buffer", 8, {.length = 0xffffffffu, .offset = 4096}, MEMIF_DESC},
};

START_TEST(hostile_buffers_are_never_written)
{
    struct io_port *io = peer_port("role=server", 1514);
    struct peer p = peer_new();
    struct io_slot slots[8];
    ck_assert(peer_connect(&p, io));
    p.s2c->desc[0] = attacks[_i].desc;
    atomic_store(&p.s2c->head, attacks[_i].head);
    ck_assert_msg(io->ops->tx_reserve(io, slots, 8, 0) == 0, "%s", attacks[_i].fact);
    ck_assert_msg(!peer_is_up(io), "%s", attacks[_i].fact);
    io->ops->service(io, 0);
    ck_assert_msg(peer_counters(io).reason[attacks[_i].reason] == 1, "%s", attacks[_i].fact);
    peer_close(&p);
    io->ops->close(io);
}
END_TEST

/* All of a client's buffers: nothing could ever be sent. Some of them: more may come. */
START_TEST(buffers_that_can_not_hold_a_frame_take_the_link_down)
{
    struct io_port *io = peer_port("role=server", 1514);
    struct peer p = peer_new();
    struct io_slot slots[8];
    ck_assert(peer_connect(&p, io));
    for (uint32_t i = 0; i < PEER_RING; i++)
        p.s2c->desc[i].length = 1513 / PEER_RING;
    atomic_store(&p.s2c->head, PEER_RING - 1);
    ck_assert_uint_eq(io->ops->tx_reserve(io, slots, 8, 0), 0);
    ck_assert(peer_is_up(io));
    atomic_store(&p.s2c->head, PEER_RING);
    ck_assert_uint_eq(io->ops->tx_reserve(io, slots, 8, 0), 0);
    ck_assert(!peer_is_up(io));
    io->ops->service(io, 0);
    ck_assert_uint_eq(peer_counters(io).reason[MEMIF_SMALL], 1);
    peer_close(&p);
    io->ops->close(io);
}
END_TEST

/* The peer offers three slots of 600 octets, which a frame would need, and takes them back: no
 * frame goes into them. */
START_TEST(buffers_taken_back_take_the_link_down)
{
    struct io_port *io = peer_port("role=server", 1514);
    struct peer p = peer_new();
    struct io_slot slots[4];
    ck_assert(peer_connect(&p, io));
    for (uint32_t i = 0; i < PEER_RING; i++)
        p.s2c->desc[i].length = 600;
    atomic_store(&p.s2c->head, 5);
    ck_assert_uint_eq(io->ops->tx_reserve(io, slots, 1, 0), 1);
    atomic_store(&p.s2c->head, 4);
    ck_assert_uint_le(io->ops->tx_reserve(io, slots, 2, 0), 1);
    ck_assert(!peer_is_up(io));
    io->ops->service(io, 0);
    ck_assert_uint_eq(peer_counters(io).reason[MEMIF_INDEX], 1);
    peer_close(&p);
    io->ops->close(io);
}
END_TEST

START_TEST(buffers_that_turn_bad_after_reserve_lose_their_frame_only)
{
    struct io_port *io = peer_port("role=server", 1514);
    struct peer p = peer_new();
    struct io_slot slots[4];
    ck_assert(peer_connect(&p, io));
    atomic_store(&p.s2c->head, 4);
    ck_assert_uint_eq(io->ops->tx_reserve(io, slots, 4, 0), 4);
    for (int i = 0; i < 4; i++)
        slots[i].len = i ? 60 : 0; /* a hole: the frames have to move into slot 0 and on */
    p.s2c->desc[0] = (struct memif_desc){.length = 2048, .offset = PEER_REGION};
    io->ops->tx_commit(io, slots, 4, 0);
    ck_assert_uint_eq(peer_stats(io).tx_drop, 3);
    ck_assert_uint_eq(p.s2c->tail, 0);
    peer_close(&p);
    io->ops->close(io);
}
END_TEST

/* A server by hand that scribbles over the memory of a client port. */
START_TEST(client_believes_its_own_layout_only)
{
    int listener = memif_sock_listen(peer_path());
    struct io_port *io = peer_port("role=client,log2_ring_size=3", 1514);
    struct memif_msg msg, ack = {.type = MEMIF_MSG_ACK};
    int region = -1, fd;
    io->ops->service(io, 0);
    int sock = memif_sock_accept(listener);
    struct memif_msg hello = {.type = MEMIF_MSG_HELLO};
    hello.hello.version_min = hello.hello.version_max = MEMIF_VERSION;
    hello.hello.log2_ring_max = 10;
    ck_assert_int_eq(memif_sock_send(sock, &hello, -1), 0);
    for (int i = 0; i < 5; i++) {
        io->ops->service(io, 0);
        ck_assert_int_eq(memif_sock_recv(sock, &msg, &fd), 0);
        if (msg.type == MEMIF_MSG_ADD_REGION)
            region = fd;
        else if (fd >= 0)
            close(fd);
        if (msg.type == MEMIF_MSG_CONNECT)
            ack.type = MEMIF_MSG_CONNECTED;
        ck_assert_int_eq(memif_sock_send(sock, &ack, -1), 0);
    }
    io->ops->service(io, 0);
    ck_assert(peer_is_up(io));
    ck_assert_int_lt(ftruncate(region, 0), 0); /* sealed */
    uint8_t *base = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, region, 0);
    ck_assert_ptr_ne(base, MAP_FAILED);
    struct memif_ring *c2s = (struct memif_ring *)(void *)base;
    struct memif_ring *s2c = (struct memif_ring *)(void *)(base + memif_ring_octets(3));
    ck_assert_uint_eq(s2c->head, 8);

    for (int i = 0; i < 8; i++)
        c2s->desc[i] = s2c->desc[i] = (struct memif_desc){.region = 9, .offset = 0xffffff00u};
    struct io_slot slots[2];
    ck_assert_uint_eq(io->ops->tx_reserve(io, slots, 2, 0), 2);
    slots[0].len = slots[1].len = 60;
    memset(slots[0].data, 1, 60);
    memset(slots[1].data, 2, 60);
    io->ops->tx_commit(io, slots, 2, 0);
    ck_assert_uint_eq(c2s->head, 2);
    ck_assert_uint_eq(c2s->desc[1].region, 0);
    ck_assert_uint_eq(c2s->desc[1].length, 60);

    /* A frame in a descriptor that was bent: the link goes, the port stays. */
    struct io_frame f[2];
    s2c->desc[0].length = 60;
    atomic_store(&s2c->tail, 1);
    ck_assert_uint_eq(io->ops->rx_peek(io, f, 2, 0), 0);
    io->ops->service(io, 0);
    ck_assert_uint_eq(peer_counters(io).reason[MEMIF_DESC], 1);
    munmap(base, 4096);
    close(region);
    close(sock);
    close(listener);
    io->ops->close(io);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("memif_tx");

    tcase_add_loop_test(t, frames_arrive_whole_and_in_order_in_both_directions, 0,
                        sizeof(transfers) / sizeof(transfers[0]));
    tcase_add_test(t, full_ring_says_so_and_loses_nothing);
    tcase_add_test(t, sender_sees_slots_that_have_come_free_one_frame_at_a_time);
    tcase_add_test(t, payloads_begin_at_a_cache_line);
    tcase_add_test(t, uncommitted_slots_are_not_sent);
    tcase_add_test(t, frames_committed_to_a_dead_link_are_counted);
    tcase_add_loop_test(t, hostile_buffers_are_never_written, 0,
                        sizeof(attacks) / sizeof(attacks[0]));
    tcase_add_test(t, buffers_that_can_not_hold_a_frame_take_the_link_down);
    tcase_add_test(t, buffers_taken_back_take_the_link_down);
    tcase_add_test(t, buffers_that_turn_bad_after_reserve_lose_their_frame_only);
    tcase_add_test(t, client_believes_its_own_layout_only);
    return peer_main("memif_tx", t);
}
