/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The eventfd write that can't block.
 */
#include "memif_kick.h"

#include <poll.h>

#include "test_memif_peer.h"

static uint64_t take(int event)
{
    uint64_t count = 0;
    return read(event, &count, sizeof(count)) == sizeof(count) ? count : 0;
}

/* _i: 0 by AIO, 1 without. */
START_TEST(many_kicks_all_arrive)
{
    struct memif_kick k = MEMIF_KICK_INIT;
    int event = eventfd(0, EFD_NONBLOCK);
    k.plain = _i;
    for (int i = 0; i < 1000; i++)
        ck_assert(memif_kick(&k, event));
    ck_assert_uint_eq(take(event), 1000);
    ck_assert_uint_eq(take(event), 0);
    memif_kick_close(&k);
    close(event);
}
END_TEST

START_TEST(full_eventfd_without_nonblock_does_not_block)
{
    struct memif_kick k = MEMIF_KICK_INIT;
    const uint64_t most = UINT64_MAX - 1;
    int event = eventfd(0, 0);
    struct pollfd pfd = {.fd = event, .events = POLLIN};
    k.plain = _i;
    ck_assert_int_eq(write(event, &most, sizeof(most)), sizeof(most));
    for (int i = 0; i < 100; i++)
        (void)memif_kick(&k, event);
    ck_assert_int_eq(poll(&pfd, 1, 0), 1);
    memif_kick_close(&k);
    close(event);
}
END_TEST

START_TEST(kick_leaves_nothing)
{
    unsigned files = peer_count("/proc/self/fd");
    int event = eventfd(0, 0);
    for (int i = 0; i < 10; i++) {
        struct memif_kick k = MEMIF_KICK_INIT;
        ck_assert(memif_kick(&k, event));
        memif_kick_close(&k);
    }
    close(event);
    ck_assert_uint_eq(peer_count("/proc/self/fd"), files);
}
END_TEST

START_TEST(what_is_no_eventfd_is_not_kicked)
{
    struct memif_kick k = MEMIF_KICK_INIT;
    ck_assert(!memif_kick(&k, -1));
    memif_kick_close(&k);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("memif_kick");

    tcase_add_loop_test(t, many_kicks_all_arrive, 0, 2);
    tcase_add_loop_test(t, full_eventfd_without_nonblock_does_not_block, 0, 2);
    tcase_add_test(t, kick_leaves_nothing);
    tcase_add_test(t, what_is_no_eventfd_is_not_kicked);
    return peer_main("memif_kick", t);
}
