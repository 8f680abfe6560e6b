/* SPDX-License-Identifier: BSD-3-Clause */
#include "setup_channel.h"

#include <check.h>
#include <fcntl.h>
#include <sys/eventfd.h>

#include "channel.h"

#define SLOTS 64u

static int memfd = -1, event = -1; /* of the test's own, from which each end gets its copies */

static void channel_once(void)
{
    struct channel_memory m;
    if (memfd >= 0)
        return;
    ck_assert_int_eq(channel_memory_make(&m, SLOTS, IO_FRAME_MAX), 0);
    memfd = fcntl(m.fd, F_DUPFD_CLOEXEC, 0);
    event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    channel_memory_free(&m);
    ck_assert_int_ge(memfd, 0);
    ck_assert_int_ge(event, 0);
}

static int open_end(enum channel_side side, uint32_t frame_max, struct io_port **out)
{
    struct channel_memory m;
    channel_once();
    int rc = channel_memory_map(&m, memfd, SLOTS, IO_FRAME_MAX);
    return rc < 0 ? rc : channel_open(side, &m, fcntl(event, F_DUPFD_CLOEXEC, 0), frame_max, out);
}

int open_channel_down(unsigned side, uint32_t frame_max, struct io_port **out)
{
    return open_end(side ? CHANNEL_PROGRAM : CHANNEL_SWITCH, frame_max, out);
}

int open_channel_up(unsigned side, uint32_t frame_max, struct io_port **out)
{
    return open_end(side ? CHANNEL_SWITCH : CHANNEL_PROGRAM, frame_max, out);
}
