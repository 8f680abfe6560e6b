/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A memif port's specification and its life: peers come, die and return.
 */
#include <sys/stat.h>

#include "test_memif_peer.h"

static const struct {
    const char *args, *complaint;
} specifications[] = {
    {"", "path"},
    {"@x", "role"},
    {"@x,role=both", "role=both"},
    {"@x,role=server,speed=9", "speed="},
    {"@x,role=server,role=client", "role="},
    {"@x,role=server,id", "id"},
    {"@x,role=server,id=-1", "id=-1"},
    {"@x,role=server,id=4294967296", "id=4294967296"},
    {"@x,role=server,rings=0", "rings=0"},
    {"@x,role=server,rings=65", "rings=65"},
    {"@x,role=client,log2_ring_size=15", "log2_ring_size=15"},
    {"@x,role=client,log2_ring_size=0", "log2_ring_size=0"},
    {"@x,role=client,buffer=10", "buffer=10"},
    {"@x,role=client,buffer=64,log2_ring_size=1", "buffer=64"},
    {"@x,role=client,secret=0123456789012345678901234", "secret"},
    {"@x,role=client,trust=yes", "trust=yes"},
};

START_TEST(bad_specification_is_explained)
{
    struct io_port *io = NULL;
    char err[256] = "";
    ck_assert_int_eq(io_memif_open(specifications[_i].args, NULL, &io, err, sizeof(err)), -EINVAL);
    ck_assert_msg(strstr(err, specifications[_i].complaint) != NULL, "'%s' -> '%s'",
                  specifications[_i].args, err);
    ck_assert_ptr_null(io);
    ck_assert_int_eq(io_memif_open(specifications[_i].args, NULL, &io, NULL, 0), -EINVAL);
}
END_TEST

START_TEST(second_server_on_a_path_is_told)
{
    struct io_port *io = peer_port("role=server", 0), *other = NULL;
    char spec[128], err[256] = "";
    snprintf(spec, sizeof(spec), "%s,role=master", peer_path());
    ck_assert_int_eq(io_memif_open(spec, NULL, &other, err, sizeof(err)), -EADDRINUSE);
    ck_assert_ptr_nonnull(strstr(err, peer_path()));
    io->ops->close(io);
}
END_TEST

START_TEST(socket_file_is_made_replaced_when_stale_and_removed)
{
    char folder[] = "/tmp/urnic-memif-XXXXXX", path[64], spec[128], err[256] = "";
    struct io_port *io = NULL;
    struct stat st;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/m.sock", folder);
    snprintf(spec, sizeof(spec), "%s,role=server", path);
    int stale = memif_sock_listen(path);
    ck_assert_int_ge(stale, 0);
    ck_assert_int_eq(io_memif_open(spec, NULL, &io, err, sizeof(err)), -EADDRINUSE);
    close(stale);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_msg(io_memif_open(spec, NULL, &io, err, sizeof(err)) == 0, "%s", err);
    io->ops->close(io);
    ck_assert_int_ne(stat(path, &st), 0);
    rmdir(folder);
}
END_TEST

START_TEST(caps_are_what_was_asked_within_limits)
{
    static const uint32_t asked[][2] = {{0, 4288}, {4166, 4166}, {9234, 9234}, {20000, 9234}};
    for (unsigned i = 0; i < 4; i++) {
        struct io_port *io = peer_port("role=client", asked[i][0]);
        ck_assert_uint_eq(io->caps.frame_max, asked[i][1]);
        ck_assert_int_ge(io->caps.rx_fd, 0);
        ck_assert(!io->caps.own_echo);
        io->ops->close(io);
    }
}
END_TEST

static void exchange(struct io_port *a, struct io_port *b)
{
    static const uint32_t len[3] = {60, 4162, 1};
    struct io_frame f[4];
    ck_assert_uint_eq(peer_send(a, len, 3, 1), 3);
    ck_assert_uint_eq(b->ops->rx_peek(b, f, 4, 0), 3);
    for (uint32_t i = 0; i < 3; i++)
        peer_expect(&f[i], len[i], 1 + i);
    b->ops->rx_release(b, 3);
}

/* _i: which of the two stays. */
START_TEST(peer_can_die_and_return_fifty_times_without_leaks)
{
    static const char *const args[2] = {"role=server", "role=client"};
    struct io_port *stay = peer_port(args[_i], 4166);
    struct io_link link;
    unsigned files = 0;
    for (unsigned round = 1; round <= 50; round++) {
        struct io_port *go = peer_port(args[!_i], 4166);
        peer_service(stay, go);
        ck_assert(peer_is_up(stay) && peer_is_up(go));
        exchange(stay, go);
        exchange(go, stay);
        go->ops->close(go);
        peer_service(stay, NULL);
        stay->ops->link(stay, &link);
        ck_assert(!link.up);
        ck_assert_uint_eq(link.changes, 2 * round);
        ck_assert_uint_eq(peer_mappings(), 0);
        if (round == 1)
            files = peer_count("/proc/self/fd");
        ck_assert_uint_eq(peer_count("/proc/self/fd"), files);
    }
    ck_assert_uint_eq(peer_stats(stay).rx_frames, 150);
    ck_assert_uint_eq(peer_stats(stay).tx_frames, 150);
    ck_assert_uint_eq(peer_counters(stay).connects, 50);
    stay->ops->close(stay);
}
END_TEST

/* A handshake has its whole time-out, at any reading of the clock. */
START_TEST(first_handshake_is_not_over_before_it_begins)
{
    static const uint64_t now[] = {0, 1000000, UINT64_C(86400000000000)};
    for (unsigned i = 0; i < sizeof(now) / sizeof(now[0]); i++) {
        struct io_port *server = peer_port("role=server", 0), *client = peer_port("role=client", 0);
        for (unsigned k = 0; k < 20; k++) {
            client->ops->service(client, now[i] + k);
            server->ops->service(server, now[i] + k);
        }
        ck_assert(peer_is_up(server) && peer_is_up(client));
        ck_assert_uint_eq(peer_counters(server).reason[MEMIF_TIMEOUT], 0);
        ck_assert_uint_eq(peer_counters(client).reason[MEMIF_TIMEOUT], 0);
        ck_assert_uint_eq(peer_counters(server).reason[MEMIF_GOODBYE], 0);
        client->ops->close(client);
        server->ops->close(server);
    }
}
END_TEST

START_TEST(close_takes_everything_along)
{
    unsigned files = peer_count("/proc/self/fd");
    for (int order = 0; order < 2; order++) {
        struct io_port *a = peer_port("role=server", 0), *b = peer_port("role=client", 0);
        struct io_slot slots[4];
        struct io_frame f[4];
        const uint32_t len = 60;

        peer_service(a, b);
        /* with frames lent and slots reserved */
        ck_assert_uint_eq(peer_send(a, &len, 1, 0), 1);
        ck_assert_uint_eq(b->ops->rx_peek(b, f, 4, 0), 1);
        ck_assert_uint_eq(b->ops->tx_reserve(b, slots, 4, 0), 4);
        (order ? a : b)->ops->close(order ? a : b);
        (order ? b : a)->ops->close(order ? b : a);
        ck_assert_uint_eq(peer_mappings(), 0);
        ck_assert_uint_eq(peer_count("/proc/self/fd"), files);
    }
}
END_TEST

/* The owner keeps lent frames over the end of two connections, and gives them back late. */
START_TEST(memory_of_dead_peers_stays_until_it_is_given_back)
{
    struct io_port *stay = peer_port("role=server", 4166);
    struct io_slot slots[4];
    struct io_frame f[3][4];
    static const uint32_t len[2] = {60, 4162};
    for (unsigned round = 0; round < 3; round++) {
        struct io_port *go = peer_port("role=client", 4166);
        peer_service(stay, go);
        ck_assert(peer_is_up(stay));
        ck_assert_uint_eq(peer_send(go, len, 2, 10 * round), 2);
        ck_assert_uint_eq(stay->ops->rx_peek(stay, f[round], 4, 0), 2);
        ck_assert_uint_eq(stay->ops->tx_reserve(stay, slots, 4, 0), 4);
        go->ops->close(go);
        peer_service(stay, NULL);
        ck_assert(!peer_is_up(stay));
        ck_assert_uint_eq(peer_mappings(), round + 1);
    }
    for (uint32_t round = 0; round < 3; round++)
        for (uint32_t i = 0; i < 2; i++)
            peer_expect(&f[round][i], len[i], 10 * round + i);
    memset(slots[3].data, 1, slots[3].cap);
    stay->ops->rx_release(stay, 3);
    ck_assert_uint_eq(peer_mappings(), 2);
    peer_expect(&f[1][1], len[1], 11);
    stay->ops->rx_release(stay, 1);
    ck_assert_uint_eq(peer_mappings(), 1);
    stay->ops->rx_release(stay, 2);
    ck_assert_uint_eq(peer_mappings(), 1); /* for the reserved slots */
    slots[0].len = 60;

    struct io_port *go = peer_port("role=client", 4166);
    peer_service(stay, go);
    stay->ops->tx_commit(stay, slots, 4, 0); /* to a peer that is gone, not to the new one */
    ck_assert_uint_eq(peer_stats(stay).tx_drop, 1);
    ck_assert_uint_eq(go->ops->rx_peek(go, f[0], 4, 0), 0);
    ck_assert_uint_eq(peer_mappings(), 2);
    exchange(go, stay);
    exchange(stay, go);
    go->ops->close(go);
    stay->ops->close(stay);
    ck_assert_uint_eq(peer_mappings(), 0);
}
END_TEST

/* Slots stay in the memory of the peer for which they were reserved, also while another peer comes
 * and goes. */
START_TEST(reserved_slots_outlive_the_next_peer_too)
{
    struct io_port *stay = peer_port("role=server", 4166), *go;
    struct io_slot slots[4];
    struct io_frame f[4];
    const uint32_t len = 60;
    for (unsigned round = 0; round < 2; round++) {
        go = peer_port("role=client", 4166);
        peer_service(stay, go);
        ck_assert_uint_eq(peer_send(go, &len, 1, 0), 1);
        ck_assert_uint_eq(stay->ops->rx_peek(stay, f, 4, 0), 1);
        if (round == 0)
            ck_assert_uint_eq(stay->ops->tx_reserve(stay, slots, 4, 0), 4);
        go->ops->close(go);
        peer_service(stay, NULL);
    }
    stay->ops->rx_release(stay, 2);
    ck_assert_uint_eq(peer_mappings(), 1);
    memset(slots[3].data, 1, slots[3].cap);
    slots[0].len = 60;
    stay->ops->tx_commit(stay, slots, 4, 0);
    ck_assert_uint_eq(peer_stats(stay).tx_drop, 1);
    ck_assert_uint_eq(stay->ops->tx_reserve(stay, slots, 4, 0), 0);
    ck_assert_uint_eq(peer_mappings(), 0);
    stay->ops->close(stay);
}
END_TEST

START_TEST(two_ports_on_one_name_disagree)
{
    static const char *const clients[] = {"role=slave,id=2", "role=client,id=1,secret=b"};
    struct io_link link;
    for (unsigned i = 0; i < 2; i++) {
        struct io_port *a = peer_port("role=master,id=1,secret=a", 0);
        struct io_port *b = peer_port(clients[i], 0);
        peer_service(a, b);
        ck_assert(!peer_is_up(a) && !peer_is_up(b));
        ck_assert_uint_ge(peer_counters(b).reason[MEMIF_GOODBYE], 1);
        ck_assert_str_eq(peer_counters(b).text,
                         memif_reason_name(i ? MEMIF_PEER_SECRET : MEMIF_PEER_ID));
        a->ops->link(a, &link); /* both tell why */
        ck_assert_str_eq(link.why, i ? "wrong secret" : "interface id not found");
        b->ops->link(b, &link);
        ck_assert_str_eq(link.why, i ? "wrong secret" : "interface id not found");
        a->ops->close(a);
        b->ops->close(b);
    }
}
END_TEST

/* A refused client comes back ten times a second, not at each look, and is accepted when there is
 * room. */
START_TEST(a_refused_peer_asks_again_with_pauses)
{
    struct io_port *server = peer_port("role=server", 0), *first = peer_port("role=client", 0);
    peer_service(server, first);
    ck_assert(peer_is_up(first));
    struct io_port *second = peer_port("role=client", 0);
    uint64_t ms = 0;

    for (; ms < 1000; ms++) {
        server->ops->service(server, ms * 1000000);
        second->ops->service(second, ms * 1000000);
    }
    ck_assert(!peer_is_up(second));
    ck_assert_uint_ge(peer_counters(server).refused, 9);
    ck_assert_uint_le(peer_counters(server).refused, 11);
    first->ops->close(first);
    for (; ms < 1200; ms++) {
        server->ops->service(server, ms * 1000000);
        second->ops->service(second, ms * 1000000);
    }
    ck_assert(peer_is_up(server) && peer_is_up(second));
    second->ops->close(second);
    server->ops->close(server);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("memif_port");

    tcase_add_loop_test(t, bad_specification_is_explained, 0,
                        sizeof(specifications) / sizeof(specifications[0]));
    tcase_add_test(t, second_server_on_a_path_is_told);
    tcase_add_test(t, socket_file_is_made_replaced_when_stale_and_removed);
    tcase_add_test(t, caps_are_what_was_asked_within_limits);
    tcase_add_loop_test(t, peer_can_die_and_return_fifty_times_without_leaks, 0, 2);
    tcase_add_test(t, first_handshake_is_not_over_before_it_begins);
    tcase_add_test(t, close_takes_everything_along);
    tcase_add_test(t, memory_of_dead_peers_stays_until_it_is_given_back);
    tcase_add_test(t, reserved_slots_outlive_the_next_peer_too);
    tcase_add_test(t, two_ports_on_one_name_disagree);
    tcase_add_test(t, a_refused_peer_asks_again_with_pauses);
    return peer_main("memif_port", t);
}
