/* SPDX-License-Identifier: BSD-3-Clause
 *
 * For tests of the whole daemon: start one in a directory of its own, open ends on it, connect
 * them.
 */
#ifndef URNIC_DAEMON_RIG_H
#define URNIC_DAEMON_RIG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "urnic/urnic.h"

struct rig {
    pid_t pid;
    char dir[64], socket[96];
    uid_t uid; /* user of the daemon, set before it starts; 0 = the test's own */
};

/* Start `urnicd --foreground --socket DIR/sock ARGS` and wait until it serves; the test fails if it
 * doesn't. args: NULL-terminated. The program is $URNICD. */
void rig_start(struct rig *r, const char *const *args);
/* Two devices, urn0 10.0.0.1 and urn1 10.0.0.2, joined by an emulated link with these options, ""
 * or ",loss=0.01". */
void rig_start_pair(struct rig *r, const char *link);
/* Until the device has its link: then no PORT_ACTIVE of the start comes any more. */
void rig_await_link(const struct rig *r, const char *device);
/* SIGTERM; the test fails unless it ends with status 0 within 5 s. Removes the directory. */
void rig_stop(struct rig *r);
/* SIGKILL, and no complaint. */
void rig_kill(struct rig *r);
/* Is the daemon alive? */
bool rig_alive(const struct rig *r);

/* One end: a context with a domain, a CQ, and registered memory. */
struct end {
    struct urnic_context *ctx;
    struct urnic_pd *pd;
    struct urnic_channel *channel;
    struct urnic_cq *cq;
    struct urnic_mr *mr;
    struct urnic_qp *qp;
    uint8_t *mem;
    size_t size;
};

#define END_ACCESS                                                                                 \
    (URNIC_ACCESS_LOCAL_WRITE | URNIC_ACCESS_REMOTE_WRITE | URNIC_ACCESS_REMOTE_READ |             \
     URNIC_ACCESS_REMOTE_ATOMIC)

/* The worker that contexts are opened on from now on; -1, at first: the daemon's choice. */
void rig_on_worker(int worker);
/* The worker for the next end: with RIG_WORKERS each in turn. */
int rig_next_worker(void);
/* A client of this device, with `size` octets of memory that may be used in every way (END_ACCESS),
 * a CQ and a channel for its events. */
void end_open(struct end *e, const struct rig *r, const char *device, size_t size);
/* A queue pair of this type in RESET. */
void end_qp(struct end *e, enum urnic_qp_type type);
/* ... of unreliable datagrams, with Q_Key 0x11, ready to send. */
void end_datagrams(struct end *e);
void end_close(struct end *e);
/* rig_start_pair, and an end of this much memory on either device. */
void rig_open_pair(struct rig *r, const char *link, struct end *a, struct end *b, size_t size);
/* Both ends closed, the daemon stopped. */
void rig_close_pair(struct rig *r, struct end *a, struct end *b);
/* Move both queue pairs to RTS, towards each other (without the connection manager). */
void end_connect(struct end *a, struct end *b);

/* Post one request; signalled. */
int end_post(struct end *e, enum urnic_wr_opcode op, uint64_t local_off, uint32_t len,
             uint64_t remote, uint32_t rkey, uint64_t wr_id);
int end_post_recv(struct end *e, uint64_t off, uint32_t len, uint64_t wr_id);
/* For connecting by address and accepting: RC, 16 requests of one piece each way. 0: as long as the
 * library waits. */
struct urnic_conn_attr end_conn_attr(const struct end *e, int timeout_ms);
/* Poll one completion; fails the test after timeout_ms. */
void end_wait(struct end *e, struct urnic_wc *wc, int timeout_ms);
/* The same, and its status must be this. */
void end_expect(struct end *e, enum urnic_wc_status status, uint64_t wr_id);
/* The channel's next event, which must be of this kind. */
struct urnic_cm_event await_cm(struct urnic_cm_channel *ch, enum urnic_cm_event_type want);

/* One request of a tool, on a connection of its own: hello, then this message and its answer.
 * Returns the answer's status; reply holds as much of the answer as fits. fd -1 = no descriptor. */
int rig_request(const struct rig *r, const void *msg, size_t len, int fd, void *reply, size_t size);

/* A counter of a device by its name. */
uint64_t rig_counter(const struct rig *r, const char *device, const char *name);

/* The monotonic clock's time. */
uint64_t rig_now_ms(void);

#endif
