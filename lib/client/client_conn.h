/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A connection to the daemon's control socket: hello, then requests and their replies, which come
 * in any order. Also for tools that need no device.
 */
#ifndef URNIC_CLIENT_CONN_H
#define URNIC_CLIENT_CONN_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "ipc.h"
#include "ipc_engine.h"

struct client_call;

/* A file, by which a descriptor is known again. A program may close descriptors that it
 * has not opened, and get their numbers for files of its own. */
struct client_mark {
    uint64_t dev, ino;
};

struct client_conn {
    int sock;                        /* of a daemon; -1 = none: requests are calls */
    struct client_mark mark;         /* of sock */
    const struct ipc_engine *engine; /* in this program; NULL = none. Beside a daemon it serves only
                                        the requests of client_engine.h */
    struct program *program;         /* the engine's argument */
    pthread_t watch;                 /* waits for the daemon's end, if an engine runs here */
    int pid;                         /* of the process that opened it: children must not use it */
    const uint8_t *home;             /* 0 in its children; NULL if the kernel can't do that */
    uint64_t features;               /* the daemon's */
    uint16_t minor;                  /* the daemon's minor version */
    _Atomic bool dead;
    pthread_mutex_t lock; /* guards the members below */
    uint32_t next_id;
    struct client_call *calls;            /* calls without a reply yet */
    bool receiving;                       /* one of their threads receives, for all */
    _Alignas(8) uint8_t msg[IPC_MSG_MAX]; /* of the receiving thread: unlocked */
};

/* Connect and say hello. `path` NULL: the socket that ipc_socket_path chooses. -ENODEV: no daemon
 * listens there, or it does not answer within a minute. -EACCES, -EPROTO, -EPROTONOSUPPORT,
 * -EDQUOT. */
int client_conn_open(struct client_conn *c, const char *path);
/* The same for a port of this process, which `engine` has opened as `program`. It is the
 * connection's from now on, also if this fails. */
int client_conn_open_program(struct client_conn *c, const struct ipc_engine *engine,
                             struct program *program);
/* Close the socket: the daemon destroys all objects of the connection. */
void client_conn_close(struct client_conn *c);

/* Is this a child of the process that opened it, with memory of its own (none of vfork's)? */
static inline bool client_conn_forked(const struct client_conn *c)
{
    return c->home != NULL ? *c->home == 0 : getpid() != c->pid;
}

/* The error of a call in such a child: its objects are not its own (a daemon's), or are dead. */
static inline int client_conn_fork_error(const struct client_conn *c)
{
    return c->engine != NULL ? -ENODEV : -EPERM;
}

/* End it, whatever is under way: the other side destroys all its objects. Any thread. */
void client_conn_hang_up(struct client_conn *c);

/* Send a request (its hdr.type is set, hdr.id will be) with nsend descriptors and wait for the
 * reply: raw, of up to cap octets, with up to *nfds descriptors (nfds may be NULL). Any thread; a
 * request whose reply takes long, because of a neighbour for example, delays no other thread's.
 * Returns its length; or -errno: the reply's status, or -ENODEV: the daemon has gone or is silent
 * for a minute; -EPERM after a fork. -EMFILE: the reply's descriptors found no room here; reply
 * begins with the ipc_handle of the new object then, 0 = none. */
ssize_t client_conn_raw(struct client_conn *c, void *req, size_t req_len, const int *send_fds,
                        unsigned nsend, void *reply, size_t cap, int *fds, unsigned *nfds);

/* The same of the engine in this program, whatever the type. */
ssize_t client_conn_engine(struct client_conn *c, const void *req, size_t req_len,
                           const int *send_fds, unsigned nsend, void *reply, size_t cap, int *fds,
                           unsigned *nfds);

/* The same for replies of a fixed struct: fills `reply` of `size` octets. 0 or -errno. */
int client_conn_call(struct client_conn *c, void *req, size_t req_len, void *reply, size_t size,
                     int *fds, unsigned *nfds);

/* Requests of one handle that answer with a bare header: destroying things. */
int client_conn_handle(struct client_conn *c, enum ipc_type type, uint32_t handle);

/* Enter a call about a port of this program. False: this thread is in one already, so the caller
 * runs in a signal handler. Any thread. */
bool client_port_enter(void);
void client_port_leave(void);

/* client_fd.c: the descriptor's file; all zero: it is closed. */
struct client_mark client_mark(int fd);
/* Is the descriptor still this file? A system call. */
bool client_is(int fd, const struct client_mark *mark);
/* Close it if it is; fd < 0 is none. */
void client_close_own(int fd, const struct client_mark *mark);
/* client_fd.c: the descriptor, with another number if urnic_set_first_fd says so; below 0 stays. */
int client_fd(int fd);

#endif
