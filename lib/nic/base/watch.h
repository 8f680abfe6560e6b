/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The descriptors that wake a blocked worker: its own eventfd, its ports', its clients'. They only
 * wake it; the worker's next round handles the events.
 *
 * Any thread that has the worker (worker.taken) may add and remove descriptors; only the worker
 * sleeps.
 */
#ifndef NIC_WATCH_H
#define NIC_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#define WATCH_EVENTS 16

struct epoll_event;

/* A file, by which a descriptor is known again. */
struct watch_mark {
    uint64_t dev, ino;
};

struct watch {
    int epfd;
    /* By descriptor: the number of its watch, 0 = none. It detects a stale event, one fetched
     * before its descriptor was removed, closed, and opened again. */
    uint32_t *number;
    struct watch_mark *mark; /* by descriptor */
    struct watch_mark own;   /* of epfd */
    uint32_t room, last;
    /* The ports that woke the worker last, and the number of times that each did so in vain. */
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

/* Let it wake the worker. `drain`: pending octets are read and dropped, so that they don't wake it
 * twice. 0 or -errno; -EEXIST: it is watched already. */
int watch_add(struct watch *w, int fd, bool drain);
void watch_del(struct watch *w, int fd);

/* Sleep until one of them is ready, or for `ns`. Returns how many of `ev`, which has WATCH_EVENTS,
 * are for watch_heard; less than 0 when a signal came. */
int watch_sleep(const struct watch *w, struct epoll_event *ev, uint64_t ns);
/* Drain the descriptors that woke the worker, except those removed since. Returns how many were
 * drained: the others are ports. */
unsigned watch_heard(struct watch *w, const struct epoll_event *ev, int n);

/* Are the watched descriptors still the files that they were? A program may close descriptors
 * that it has not opened, and get the numbers for files of its own. One system call each. */
bool watch_intact(const struct watch *w);

/* The descriptor's file; all zero: it is closed. A system call. */
struct watch_mark watch_mark(int fd);
static inline bool watch_is(int fd, const struct watch_mark *mark)
{
    const struct watch_mark now = watch_mark(fd);
    return now.dev == mark->dev && now.ino == mark->ino;
}

/* After the next round: was there work? A port's descriptor that stays readable without any would
 * keep a core busy. If one has woken the worker in vain WATCH_VAIN times within WATCH_VAIN_NS, it
 * is removed and returned. Else -1. */
#define WATCH_VAIN    1000u
#define WATCH_VAIN_NS 2000000000ull
int watch_judge(struct watch *w, bool work, uint64_t now);

#endif
