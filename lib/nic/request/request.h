/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One request of a client on its way: received and unpacked by the control thread, carried out on
 * the thread that the table names (the control thread, or the worker that owns the object),
 * answered.
 */
#ifndef NIC_REQUEST_H
#define NIC_REQUEST_H

#include <stddef.h>

#include "client.h"
#include "deferred.h"
#include "ipc.h"
#include "nic.h"

struct request {
    struct nic *nic;
    struct client *client;
    struct device *device; /* by name, or the client's open device; NULL = none */
    uint64_t now;

    /* The message: at least as long as its struct, missing octets 0. */
    _Alignas(16) uint8_t in[IPC_MSG_MAX + 8];
    size_t in_len;
    int fd[IPC_FD_ANY]; /* received; closed after the request unless set to -1 */
    unsigned nfd;

    /* The answer: hdr is filled in by the dispatcher. */
    _Alignas(16) uint8_t out[IPC_MSG_MAX];
    size_t out_len;
    int out_fd[IPC_FD_MAX];
    bool out_close[IPC_FD_MAX]; /* close after sending */
    unsigned nout;

    void *prepared; /* the result of prepare() for run() */
    int unsealed;   /* descriptor of a slab to seal: run() has returned -EINPROGRESS; -1 = none */
    unsigned sealings;    /* the number of seals it has waited for */
    bool settled;         /* it has waited for frames (settle.h); set by the thread that runs it */
    bool unsettled;       /* it has to wait for frames */
    struct memory *unmap; /* to free on the control thread */
    struct ask *ask;      /* answers of programs for which it has waited (ask.h); NULL = none */
    bool deferred;        /* no answer now: another thread sends it later */
};

/* 0 or -errno; runs on the thread that the table names. */
typedef int (*request_fn)(struct request *r);

enum request_where {
    REQ_NOWHERE,   /* unknown: -ENOTSUP */
    REQ_CONTROL,   /* on the control thread */
    REQ_OF_DEVICE, /* on the control thread, about the device that the message names */
    REQ_DEVICE,    /* on the first worker of that device, or of the member that `prepare` chose */
    REQ_MEMBERS,   /* on each worker of that device, one after the other, unless one fails */
    REQ_CONTEXT,   /* on the worker of the client's context */
};

struct request_type {
    enum request_where where;
    bool admin;         /* only for root and the daemon's own user */
    size_t min, size;   /* least octets of the message; octets of the struct */
    request_fn prepare; /* on the control thread, before run; may be NULL */
    request_fn run;
    request_fn finish; /* on the control thread, after run, always; may be NULL */
    request_fn undo;   /* REQ_MEMBERS: when run fails on a worker, on the workers before it, the
                          latest first; may be NULL */
    bool fds;          /* descriptors may go along with the answer */
};

/* The tables, one per file of handlers, each indexed by enum ipc_type. */
extern const struct request_type request_device[IPC_TYPE_MAX];
extern const struct request_type request_memory[IPC_TYPE_MAX];
extern const struct request_type request_queue[IPC_TYPE_MAX];
extern const struct request_type request_cm[IPC_TYPE_MAX];
extern const struct request_type request_engine[IPC_TYPE_MAX];

/* `min, size` of a message: a bare header; a handle; a device; all of a struct; a struct that has
 * grown, which older clients send without `field` and the members after it. */
#define PLAIN           sizeof(struct ipc_hdr), sizeof(struct ipc_hdr)
#define BY_HANDLE       offsetof(struct ipc_handle, zero), sizeof(struct ipc_handle)
#define BY_DEVICE       offsetof(struct ipc_by_device, port), sizeof(struct ipc_by_device)
#define WHOLE(t)        sizeof(struct t), sizeof(struct t)
#define SINCE(t, field) offsetof(struct t, field), sizeof(struct t)

/* Act on the message in r->in and answer it on the client's socket. */
void request_serve(struct request *r);
/* The same for a client without a socket, in two steps. Act on it: the answer is in r->out and
 * r->out_fd, its header filled in, unless r->deferred. Returns its status. */
int request_act(struct request *r);
/* The second step, once the caller has taken the answer. Closes descriptors left in r->out_fd and
 * r->fd. `answered`: the client has the answer, and the status was not an error. */
void request_end(struct request *r, bool answered);
/* Close the descriptors that came with the message and were not taken. */
void request_close_fds(struct request *r);

/* Make the answer `len` octets long, IPC_MSG_MAX at most, all zero. Returns its address. */
void *request_reply(struct request *r, size_t len);
/* The message as its struct, and the answer's struct zeroed. */
#define request_in(r, type)  ((const type *)(const void *)(r)->in)
#define request_out(r, type) ((type *)request_reply((r), sizeof(type)))
/* Send a descriptor with the answer, IPC_FD_MAX at most; `close_after`: close it after sending. */
void request_reply_fd(struct request *r, int fd, bool close_after);

/* A channel of this kind for the client: our end in *ours, its end goes with the answer. -EDQUOT:
 * it has QUOTA_CHANNELS already. */
int request_channel(struct request *r, enum handle_kind kind, int *ours);

/* A pair of sockets of which one end is ours and never blocks, whatever the client does. */
int socket_pair(int type, int *ours, int *theirs);

/* Let the request wait for the MAC of `dst` (deferred_start), and act on it then. */
int request_defer(struct request *r, size_t len, const struct wire_addr *dst,
                  int (*act)(struct deferred *d, const uint8_t mac[6], size_t *len, uint64_t now));
/* Answer a deferred request (clients.answer): from any thread, never blocking. */
void request_answer(struct client *c, const struct ipc_hdr *request, int status, void *msg,
                    size_t len);

#endif
