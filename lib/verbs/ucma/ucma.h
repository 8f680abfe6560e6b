/* SPDX-License-Identifier: BSD-3-Clause
 *
 * /dev/infiniband/rdma_cm over liburnic: what the kernel's rdma_ucm keeps for a process.
 *
 * A file is what a program has opened: a queue of events, and ids. Its descriptor is a socket that
 * sends to itself: it holds one octet exactly while an event waits, so poll() tells the truth, and
 * its inode proves that a descriptor is (still) ours. An id is a listener or one end of a
 * connection; liburnic's id for it is made once its device is known. One thread of the process
 * reads liburnic's events and puts them into the files' queues.
 *
 * One lock guards all of it; no call of liburnic under it waits for the network. A child that was
 * forked starts anew: files stay open and have no ids.
 */
#ifndef URNIC_VERBS_UCMA_H
#define URNIC_VERBS_UCMA_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "ucma_abi.h"

#define UCMA_DEVICES 64u /* of the daemon */
#define UCMA_GIDS    256

/* A descriptor is still what it was as long as it is this file. */
struct ucma_inode {
    dev_t dev;
    ino_t ino;
};

/* A device of the daemon, and our connection to it. */
struct ucma_dev {
    struct urnic_device dev;
    struct urnic_context *ctx;        /* NULL = not opened yet */
    struct urnic_cm_channel *channel; /* NULL = not made yet */
    /* of a descriptor of each: programs close all descriptors, and the numbers come back */
    struct ucma_inode ctx_inode, channel_inode;
    struct urnic_port_attr port;
    bool gone; /* the daemon, or our descriptors, have gone: not to be used for anything new */
    unsigned users;
};

struct ucma_event;
struct ucma_id;
struct ucma_mc;
TAILQ_HEAD(ucma_event_list, ucma_event);

struct ucma_file {
    LIST_ENTRY(ucma_file) next;
    _Atomic uint64_t dev, ino; /* of the socket; 0, 0 = the file is closed */
    unsigned numbers;          /* descriptors that we know of */
    int last;                  /* one of them */
    int own;                   /* one of ours, for the thread; -1 = none */
    bool nudged;               /* readable without an event */
    struct ucma_event_list events;
    LIST_HEAD(, ucma_id) ids;
};

enum ucma_state {
    UCMA_IDLE,
    UCMA_BOUND,
    UCMA_RESOLVING,
    UCMA_ADDR_RESOLVED,
    UCMA_ROUTE_RESOLVED,
    UCMA_CONNECT, /* asked, or asking */
    UCMA_LISTEN,
    UCMA_REQUEST, /* asked by the peer, and answered perhaps */
};

/* liburnic's half of an id on one device. */
struct ucma_leg {
    struct ucma_dev *dev;
    struct urnic_cm_id *cm;
};

struct ucma_id {
    LIST_ENTRY(ucma_id) next;
    struct ucma_file *file;
    uint32_t number;
    uint64_t uid;               /* the program's */
    bool uid_is_set;            /* of a request: not before it is accepted */
    struct ucma_file *asked_at; /* of a request that went to another file: the listener's */
    uint16_t ps;
    enum ucma_state state;
    union ucma_addr src, dst; /* as the program sees them */
    struct ucma_leg leg;      /* dev NULL = of no device (yet) */
    struct ucma_leg *legs;    /* bound to any address, or a loopback one: one for each device */
    unsigned nlegs;
    uint32_t reported; /* events that the program got */
    uint8_t tos;
    bool afonly; /* bound to any address it listens to those of its family alone */
    struct {     /* while the address is being resolved */
        union ucma_addr src, dst;
        uint32_t timeout_ms;
        struct ucma_dev *left[UCMA_DEVICES]; /* to be tried when this one doesn't reach it */
        unsigned nleft;
        bool owned; /* the last of them has the address itself */
    } resolve;
    LIST_HEAD(, ucma_mc) groups;
};

/* A multicast group that an id has joined. */
struct ucma_mc {
    LIST_ENTRY(ucma_mc) next;
    uint32_t number;
    uint64_t uid;
    uint32_t reported;
    union ucma_addr addr;
};

struct ucma_event {
    TAILQ_ENTRY(ucma_event) next;
    struct ucma_id *id;      /* its `reported` counts the event; of a request, the listener */
    struct ucma_id *request; /* the new id; NULL = no request */
    struct ucma_mc *mc;
    struct rdma_ucm_event_resp resp;
};

/* ---- ucma.c: the process ---- */

/* Everything below with the lock held, unless it says otherwise. */
void ucma_lock(void);
void ucma_unlock(void);

/* ---- ucma_dev.c ---- */

/* Look which devices there are; they stay valid until the process ends. Returns how many, or
 * -errno of urnic_get_device_list. */
int ucma_dev_scan(struct ucma_dev *devs[UCMA_DEVICES]);
/* Open it: its context, and with `cm` its channel, too, which the thread reads from now on. 0 or
 * -errno. */
int ucma_dev_open(struct ucma_dev *d, bool cm);
/* Its addresses, or -errno. Opens it. */
int ucma_dev_gids(struct ucma_dev *d, struct urnic_gid gids[UCMA_GIDS]);
/* The address of a family that it has first; link-local ones only if there is no other. -ENOENT. */
int ucma_dev_address(struct ucma_dev *d, int family, uint8_t gid[16]);
/* The device that has this address; NULL = none. */
struct ucma_dev *ucma_dev_by_address(struct ucma_dev *const devs[], int n, const uint8_t gid[16]);
/* The index of this address; 0 = it has gone. */
uint16_t ucma_dev_sgid_index(struct ucma_dev *d, const uint8_t gid[16]);
/* Have our descriptors gone, closed by the program among others? */
bool ucma_dev_lost(struct ucma_dev *d);
/* In a child: all of them are the parent's. */
void ucma_dev_forget(void);

/* ---- ucma_fd.c ---- */

/* The file of a descriptor, NULL = not ours. No lock; keeps errno; safe in signal handlers. */
struct ucma_file *ucma_fd(int fd);
/* A descriptor has come to be one of the file's; or is going to be closed. */
void ucma_fd_add(int fd, struct ucma_file *f);
void ucma_fd_drop(int fd, struct ucma_file *f);
/* Go through the descriptors from first to last that are ours. -1 = no more. No lock. */
int ucma_fd_next(unsigned first, unsigned last);

/* ---- ucma_file.c ---- */

/* Open the device file: a new descriptor, or -errno: -ENOENT without a daemon. Takes the lock. */
int ucma_file_open(int flags);
/* The last descriptor that we know of has gone. */
void ucma_file_close(struct ucma_file *f);
/* Put an event into the queue, or take the first one out; NULL = none. */
void ucma_file_put(struct ucma_file *f, struct ucma_event *ev);
struct ucma_event *ucma_file_take(struct ucma_file *f, int fd);
/* Make the file readable once, though it has no event, unless it blocks: its reader looks around
 * and gets EAGAIN. */
void ucma_file_nudge(struct ucma_file *f);
/* Wait for an event, without the lock: 0 or -errno, -EAGAIN when the descriptor doesn't block. */
int ucma_file_wait(int fd);
/* Drop the events about an id, or a group of it. Requests that the program hasn't seen are refused.
 */
void ucma_file_drop(struct ucma_file *f, const struct ucma_id *id, const struct ucma_mc *mc);
/* The events about an id go to another file. */
void ucma_file_move(struct ucma_file *from, struct ucma_file *to, struct ucma_id *id);
/* In a child: no ids, no events. */
void ucma_file_forget(struct ucma_file *f);
struct ucma_file *ucma_files(void);

/* ---- ucma_id.c ---- */

/* NULL: no memory. */
struct ucma_id *ucma_id_new(struct ucma_file *f, uint16_t ps);
/* The file's id of this number; NULL = none. */
struct ucma_id *ucma_id_get(const struct ucma_file *f, uint32_t number);
struct ucma_mc *ucma_mc_get(const struct ucma_file *f, uint32_t number, struct ucma_id **id);
/* A number for an id or a group. */
uint32_t ucma_number(void);
/* End it, with its events and groups. */
void ucma_id_free(struct ucma_id *id);
void ucma_mc_free(struct ucma_id *id, struct ucma_mc *mc);
/* Make liburnic's half on a device; or end it. 0 or -errno. */
int ucma_leg_make(struct ucma_leg *leg, struct ucma_dev *d, struct ucma_id *id);
void ucma_leg_end(struct ucma_leg *leg);
void ucma_legs_end(struct ucma_id *id);

/* ---- ucma_addr.c: 0 or -errno ---- */

int ucma_bind(struct ucma_id *id, const union ucma_addr *addr);
int ucma_resolve(struct ucma_id *id, const union ucma_addr *src, const union ucma_addr *dst,
                 uint32_t timeout_ms);
/* What liburnic says of it: true = the program is to hear of it. */
bool ucma_resolve_event(struct ucma_id *id, struct urnic_cm_event *ev);
int ucma_listen(struct ucma_id *id, int backlog);
void ucma_path(const struct ucma_id *id, struct ucma_path *path);

/* ---- ucma_event.c ---- */

/* An event for the program, with what the caller adds to resp.param; NULL: no memory. */
struct ucma_event *ucma_event_new(struct ucma_id *id, unsigned type, int status);
/* Get what liburnic has for a device, until there is no more. */
void ucma_event_pump(struct ucma_dev *d);

/* ---- ucma_copy.c: memory at addresses that the program gave; no lock ---- */

/* Copy n octets there, or from there. Returns 0, or -EFAULT: not all of it is the program's to
 * write, or to read; part of it may have been copied. Keeps errno. */
int ucma_copy_out(uint64_t to, const void *from, size_t n);
int ucma_copy_in(void *to, uint64_t from, size_t n);

/* ---- ucma_cmd.c ---- */

/* What a program writes to the descriptor. Returns what write() does, and sets errno. No lock. */
ssize_t ucma_write(struct ucma_file *f, int fd, const void *buf, size_t len);

#endif
