/* SPDX-License-Identifier: BSD-3-Clause
 *
 * /dev/infiniband/rdma_cm over liburnic: the state that the kernel's rdma_ucm keeps for a process.
 *
 * A file is one opening of the device: a queue of events, and ids. Its descriptor is a socket that
 * sends to itself: it holds one octet exactly while an event waits, so poll() works, and its inode
 * proves that a descriptor is (still) ours. An id is a listener or one end of a connection; its id
 * in liburnic is made once its device is known. One thread of the process reads liburnic's events
 * and puts them into the files' queues.
 *
 * One lock guards all of it; no call of liburnic under it waits for the network. A forked child
 * starts without ids; its files stay open.
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

/* The identity of an open file: a descriptor is still ours while it has this inode. */
struct ucma_inode {
    dev_t dev;
    ino_t ino;
};

/* A device of the daemon, and our connection to it. */
struct ucma_dev {
    struct urnic_device dev;
    struct urnic_context *ctx;        /* NULL = not opened yet */
    struct urnic_cm_channel *channel; /* NULL = not made yet */
    /* inodes of a descriptor of each: a program may close all descriptors, and numbers are reused
     */
    struct ucma_inode ctx_inode, channel_inode;
    struct urnic_port_attr port;
    bool gone; /* the daemon or our descriptors are gone: no new use */
    unsigned users;
};

struct ucma_event;
struct ucma_id;
struct ucma_mc;
TAILQ_HEAD(ucma_event_list, ucma_event);

struct ucma_file {
    LIST_ENTRY(ucma_file) next;
    _Atomic uint64_t dev, ino; /* the socket's inode; 0, 0 = the file is closed */
    unsigned numbers;          /* number of known descriptors */
    int last;                  /* one of them */
    int own;                   /* our own descriptor, for the thread; -1 = none */
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
    UCMA_CONNECT, /* request sent, or being sent */
    UCMA_LISTEN,
    UCMA_REQUEST, /* request received, perhaps answered */
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
    bool uid_is_set;            /* of a request: true once it is accepted */
    struct ucma_file *asked_at; /* of a request that moved to another file: the listener's file */
    uint16_t ps;
    enum ucma_state state;
    union ucma_addr src, dst; /* as the program sees them */
    struct ucma_leg leg;      /* dev NULL = of no device (yet) */
    struct ucma_leg *legs;    /* bound to any address, or a loopback one: one for each device */
    unsigned nlegs;
    uint32_t reported; /* events that the program got */
    uint8_t tos;
    uint8_t ack_timeout;     /* the program's, for its queue pair */
    bool ack_timeout_is_set; /* otherwise that of the connection manager (CM-09) */
    bool afonly;             /* if bound to any address: only addresses of its family */
    struct {                 /* while the address is being resolved */
        union ucma_addr src, dst;
        uint32_t timeout_ms;
        struct ucma_dev *left[UCMA_DEVICES]; /* others to try if this one doesn't reach dst */
        unsigned nleft;
        bool owned; /* the last device of `left` has the address itself */
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

/* Call all functions below with the lock held, unless a comment says otherwise. */
void ucma_lock(void);
void ucma_unlock(void);

/* ---- ucma_dev.c ---- */

/* Get the devices; they stay valid until the process ends. Returns their number, or -errno of
 * urnic_get_device_list. */
int ucma_dev_scan(struct ucma_dev *devs[UCMA_DEVICES]);
/* Open the device: its context, and with `cm` its channel, too, which the thread reads from then
 * on. 0 or -errno. */
int ucma_dev_open(struct ucma_dev *d, bool cm);
/* The device's addresses: their number, or -errno. Opens the device. */
int ucma_dev_gids(struct ucma_dev *d, struct urnic_gid gids[UCMA_GIDS]);
/* The device's first address of a family; a link-local one only if there is no other. -ENOENT. */
int ucma_dev_address(struct ucma_dev *d, int family, uint8_t gid[16]);
/* The device that has this address; NULL = none. */
struct ucma_dev *ucma_dev_by_address(struct ucma_dev *const devs[], int n, const uint8_t gid[16]);
/* The index of this address; 0 = the address is gone. */
uint16_t ucma_dev_sgid_index(struct ucma_dev *d, const uint8_t gid[16]);
/* Are our descriptors gone, closed by the program among others? */
bool ucma_dev_lost(struct ucma_dev *d);
/* In a child: forget all devices, which are the parent's. */
void ucma_dev_forget(void);

/* ---- ucma_fd.c ---- */

/* The file of a descriptor, NULL = not ours. No lock; keeps errno; safe in signal handlers. */
struct ucma_file *ucma_fd(int fd);
/* A descriptor now belongs to the file; or is about to be closed. */
void ucma_fd_add(int fd, struct ucma_file *f);
void ucma_fd_drop(int fd, struct ucma_file *f);
/* The next one of our descriptors from first to last. -1 = no more. No lock. */
int ucma_fd_next(unsigned first, unsigned last);

/* ---- ucma_file.c ---- */

/* Open the device file: a new descriptor, or -errno: -ENOENT without a daemon. Takes the lock. */
int ucma_file_open(int flags);
/* The last known descriptor is closed. */
void ucma_file_close(struct ucma_file *f);
/* Put an event into the queue, or take the first one out; NULL = none. */
void ucma_file_put(struct ucma_file *f, struct ucma_event *ev);
struct ucma_event *ucma_file_take(struct ucma_file *f, int fd);
/* Make a non-blocking file readable once, though it has no event: its reader wakes and gets EAGAIN.
 */
void ucma_file_nudge(struct ucma_file *f);
/* Wait for an event, without the lock: 0 or -errno, -EAGAIN when the descriptor doesn't block. */
int ucma_file_wait(int fd);
/* Drop the events about an id, or about one of its groups. Requests that the program hasn't seen
 * are refused. */
void ucma_file_drop(struct ucma_file *f, const struct ucma_id *id, const struct ucma_mc *mc);
/* Move the events about an id to another file. */
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
/* End the id, with its events and groups. */
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
/* Handle liburnic's event about the resolution. True = report it to the program. */
bool ucma_resolve_event(struct ucma_id *id, struct urnic_cm_event *ev);
int ucma_listen(struct ucma_id *id, int backlog);
void ucma_path(const struct ucma_id *id, struct ucma_path *path);

/* ---- ucma_event.c ---- */

/* A new event for the program; the caller fills resp.param. NULL: no memory. */
struct ucma_event *ucma_event_new(struct ucma_id *id, unsigned type, int status);
/* Take all of liburnic's events for a device. */
void ucma_event_pump(struct ucma_dev *d);

/* ---- ucma_copy.c: memory at addresses that the program gave; no lock ---- */

/* Copy n octets there, or from there. Returns 0, or -EFAULT: not all of it is the program's to
 * write, or to read; part of it may have been copied. Keeps errno. */
int ucma_copy_out(uint64_t to, const void *from, size_t n);
int ucma_copy_in(void *to, uint64_t from, size_t n);

/* ---- ucma_cmd.c ---- */

/* Run a command that a program writes to the descriptor. Returns as write() does, and sets errno.
 * No lock. */
ssize_t ucma_write(struct ucma_file *f, int fd, const void *buf, size_t len);

#endif
