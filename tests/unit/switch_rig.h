/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Programs of a switch that are this process, for tests.
 */
#ifndef URNIC_TESTS_SWITCH_RIG_H
#define URNIC_TESTS_SWITCH_RIG_H

#include "channel_rig.h"
#include "pair_rig.h"
#include "switch_channel.h"

struct program {
    struct switch_channel *c;
    struct io_port *io; /* the program's end */
    uint8_t *base;      /* start of the memory */
    size_t size;
    uint32_t qpn; /* one of its numbers */
};

/* A program with a channel and a block of numbers. */
static inline void switch_rig_come(struct nic_switch *sw, struct program *p, uint64_t now)
{
    struct channel_memory daemon, program;
    struct io_port *end;
    uint64_t key[2];
    int fd = rig_memory(&daemon, &program, CHANNEL_SLOTS_MIN);
    int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    p->size = program.size;
    p->base = program.base;
    ck_assert_int_eq(channel_memory_seal(&daemon), 0);
    ck_assert_int_eq(
        channel_open(CHANNEL_PROGRAM, &program, fcntl(event, F_DUPFD_CLOEXEC, 0), 0, &p->io), 0);
    ck_assert_int_eq(channel_open(CHANNEL_SWITCH, &daemon, event, 0, &end), 0);
    close(fd);
    p->c = switch_attach(sw, end, p, now);
    ck_assert_ptr_nonnull(p->c);
    int block = switch_draw(sw, p->c, now, key);
    ck_assert_int_ge(block, 0);
    p->qpn = 0x800000u | (uint32_t)block << 13 | 0x77;
}

#endif
