/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The descriptors that wake a blocked worker up: its own eventfd, its ports', its clients'. Nothing
 * but waking is done here: what has come is seen in the worker's next round.
 *
 * Any thread that has the worker (worker.taken) may add and take back; only the worker sleeps.
 */
#ifndef NIC_WATCH_H
#define NIC_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#define WATCH_EVENTS 16

struct epoll_event;

struct watch {
    int epfd;
    /* By descriptor: the number of its watch, 0 = none. An event that was fetched before its
     * descriptor was taken back, closed, and given out again must not be acted on. */
    uint32_t *number;
    uint32_t room, last;
    /* Ports that have woken the worker up last, and how often one did so in vain. */
    int woke[WATCH_EVENTS];
    unsigned nwoke;
    int vain_fd;
    uint32_t vain;
    uint64_t vain_since;
};

/* 0 or -errno. watch_fini in either case. */
int watch_init(struct watch *w);
/* Descriptors stay open. */
void watch_fini(struct watch *w);

/* Have it wake the worker up. `drain`: what is there is read and dropped, so that it doesn't wake
 * it twice. 0 or -errno; -EEXIST: it does already. */
int watch_add(struct watch *w, int fd, bool drain);
void watch_del(struct watch *w, int fd);

/* Sleep until one of them has something, or for `ns`. Returns how many of `ev`, which has
 * WATCH_EVENTS, are for watch_heard; less than 0 when a signal came. */
int watch_sleep(const struct watch *w, struct epoll_event *ev, uint64_t ns);
/* Drain what has woken the worker up, but for what was taken back since. Returns how many had to be
 * drained: the others are ports. */
unsigned watch_heard(struct watch *w, const struct epoll_event *ev, int n);

/* After the round that follows: was there work? A port's descriptor that stays readable without any
 * would keep a core busy. Returns such a descriptor, once it has woken the worker up in vain
 * WATCH_VAIN times within WATCH_VAIN_NS; it is taken back. Else -1. */
#define WATCH_VAIN    1000u
#define WATCH_VAIN_NS 2000000000ull
int watch_judge(struct watch *w, bool work, uint64_t now);

#endif
