/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A channel with both ends in this process, for tests.
 */
#ifndef URNIC_TESTS_CHANNEL_RIG_H
#define URNIC_TESTS_CHANNEL_RIG_H

#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "channel.h"
#include "channel_ring.h"
#include "unit.h"

#define RIG_FRAME 1600u

struct channel_rig {
    struct io_port *end[2]; /* by enum channel_side */
    struct channel_head *head;
    uint8_t *base; /* the test's own mapping of the memory */
    size_t size;
    int memfd; /* the test's own descriptor, like a program's */
    int event; /* the same */
};

/* Make memory for both sides, at the start or to grow. Returns the test's own descriptor. */
static inline int rig_memory(struct channel_memory *daemon, struct channel_memory *program,
                             uint32_t slots)
{
    ck_assert_int_eq(channel_memory_make(daemon, slots, RIG_FRAME), 0);
    int fd = fcntl(daemon->fd, F_DUPFD_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(channel_memory_map(program, fd, slots, RIG_FRAME), 0);
    return fd;
}

static inline void rig_open(struct channel_rig *r, uint32_t slots)
{
    struct channel_memory daemon, program;
    r->memfd = rig_memory(&daemon, &program, slots);
    r->size = daemon.size;
    r->base = mmap(NULL, r->size, PROT_READ | PROT_WRITE, MAP_SHARED, r->memfd, 0);
    ck_assert_ptr_ne(r->base, MAP_FAILED);
    r->head = (struct channel_head *)(void *)r->base;
    ck_assert_int_eq(channel_memory_seal(&daemon), 0);
    int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    r->event = fcntl(event, F_DUPFD_CLOEXEC, 0);
    ck_assert_int_eq(channel_open(CHANNEL_SWITCH, &daemon, event, 0, &r->end[0]), 0);
    ck_assert_int_eq(
        channel_open(CHANNEL_PROGRAM, &program, fcntl(event, F_DUPFD_CLOEXEC, 0), 0, &r->end[1]),
        0);
}

static inline void rig_close(struct channel_rig *r)
{
    for (unsigned i = 0; i < 2; i++) {
        if (r->end[i])
            r->end[i]->ops->close(r->end[i]);
    }
    munmap(r->base, r->size);
    close(r->memfd);
    close(r->event);
}

/* Send a frame of `len` octets with this number in it. Returns whether there was room. */
static inline bool rig_send(struct io_port *io, uint32_t number, uint32_t len)
{
    struct io_slot s;
    if (io->ops->tx_reserve(io, &s, 1, 0) == 0)
        return false;
    memset(s.data, (int)(number & 0xFF), len);
    memcpy(s.data, &number, sizeof(number));
    s.len = len;
    channel_tx_meta(io, 0, ~number);
    io->ops->tx_commit(io, &s, 1, 0);
    return true;
}

/* The contents of a frame. */
static inline uint32_t rig_number(const struct io_frame *f)
{
    uint32_t number;
    ck_assert_uint_ge(f->len, sizeof(number));
    memcpy(&number, f->data, sizeof(number));
    return number;
}

/* Take one frame: its number, or UINT32_MAX if no frame waits. */
static inline uint32_t rig_take(struct io_port *io)
{
    struct io_frame f;
    if (io->ops->rx_peek(io, &f, 1, 0) == 0)
        return UINT32_MAX;
    uint32_t number = rig_number(&f);
    ck_assert_uint_eq(channel_rx_meta(io, 0), ~number);
    io->ops->rx_release(io, 1);
    return number;
}

#endif
