/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic perf`: declarations shared by its files. perf.c reads the command line, perf_link.c makes
 * connections, perf_server.c is the passive end, perf_run.c measures, perf_report.c prints.
 */
#ifndef URNIC_PERF_H
#define URNIC_PERF_H

#include <netinet/in.h>

#include "cc_param.h"
#include "cli.h"
#include "perf_ask.h"
#include "resources.h"
#include "urnic/urnic.h"

#define PERF_PORT         7472u
#define PERF_QPS_MAX      16384u
#define PERF_SIZES_MAX    32u
#define PERF_CONNECT_WIDE 32u          /* most connections in the making: a daemon takes 64 */
#define PERF_CONNECT_MS   20000        /* wait for the peer's answer to a CM message */
#define PERF_RECV_ID      (1ull << 63) /* bit in the wr_id of a receive, with the queue pair */

enum perf_wait { PERF_YIELD, PERF_SPIN, PERF_EVENT };
extern const char *const perf_op_names[], *const perf_wait_names[];

struct perf_options {
    const char *device, *host;
    uint16_t port;
    enum perf_op op;
    enum perf_wait wait;
    bool server, latency, both, json, inline_data;
    unsigned nsizes;
    uint64_t size[PERF_SIZES_MAX];
    uint64_t count;       /* messages per size; 0 = by time */
    uint64_t ns;          /* time per size */
    uint64_t warm_up_ns;  /* time per size before that, not measured */
    uint64_t working_set; /* working set: octets that successive messages walk through, on each
                           * side */
    uint64_t buffer;      /* server: octets offered */
    unsigned qps, idle_qps, depth, batch, signal_every;
    char cc[CC_TEXT]; /* client: the device's congestion control when the run begins; "" =
                       * unknown */
};

/* The objects of either end: a device, and queues that all queue pairs share. */
struct perf_end {
    struct resources res; /* events only with PERF_EVENT */
    uint64_t size;        /* octets of its memory */
    struct urnic_cm_channel *cm;
    enum perf_wait wait;
    bool armed; /* arm cq at the start and after each event */
    bool met;   /* client: the server has answered */
    uint32_t max_inline;
};

struct perf_qp {
    struct urnic_cm_id *id;
    struct urnic_qp *qp;
    struct perf_ask ask;
    struct perf_offer offer;
    uint64_t posted, completed; /* send side, work requests */
    uint64_t at;                /* walks through the working set */
    bool established;
    unsigned refused;       /* client: how often there was no listener */
    volatile uint8_t *pong; /* server, WRITE latency: where the ping arrives */
    uint8_t expect;
    struct perf_qp *next, *next_acting;
};

/* ---- perf_link.c ---- */

/* Open a device (NULL = the first) with a registered buffer of `size` octets and a CQ of `cqe`
 * entries for all queue pairs. 0, or -errno with a message printed and nothing left open. */
int perf_end_init(struct perf_end *e, const char *device, uint64_t size, int cqe,
                  enum perf_wait wait);
/* Close it. Its queue pairs are gone. */
void perf_end_free(struct perf_end *e);
/* Make the queue pair of q->id, of the size in q->ask; in INIT. 0 or -errno. */
int perf_qp_create(struct perf_end *e, struct perf_qp *q, bool client);
/* Hang up, and destroy the queue pair and its id; no effect without one. */
void perf_qp_destroy(struct perf_qp *q);
/* Post n receives, all into the queue pair's part of the buffer. 0 or -errno. */
int perf_post_recvs(struct perf_end *e, struct perf_qp *q, unsigned n);
/* Connect n queue pairs, many at a time; waits a while for a server that starts. 0, or -errno with
 * a message printed; without one after a signal. */
int perf_connect_all(struct perf_end *e, struct perf_qp *q, unsigned n,
                     const struct perf_options *o);
/* One event of the CM channel, waiting at most timeout_ms. 0, -ETIMEDOUT (also when cli_stop is
 * set), -errno. */
int perf_cm_event(struct perf_end *e, struct urnic_cm_event *ev, int timeout_ms);
/* Wait after an empty poll, by the wait policy. */
void perf_idle(struct perf_end *e);
/* Post n work requests of the operation, n <= PERF_BATCH_MAX. One in o->signal_every gets a
 * completion, and the last one if `last`. 0 or -errno. */
int perf_post(struct perf_end *e, struct perf_qp *q, const struct perf_options *o, uint64_t size,
              unsigned n, bool last);

/* ---- perf_server.c ---- */

/* Serve until a signal, on all devices if o names none. Returns CLI_*, with a message. */
int perf_server(struct perf_options *o);

/* ---- perf_run.c ---- */

struct perf_result {
    uint64_t size, messages, ns;
    uint64_t min, p50, p90, p99, p999, max; /* latency, ns, half round trips for WRITE and SEND */
    double mean;
};
/* Measure one size on o->qps connected queue pairs. 0, or -errno; a failed work request (-EIO) has
 * been reported. */
int perf_bandwidth(struct perf_end *e, struct perf_qp *q, const struct perf_options *o,
                   uint64_t size, struct perf_result *r);
/* The same with one message at a time, on one queue pair. */
int perf_latency(struct perf_end *e, struct perf_qp *q, const struct perf_options *o, uint64_t size,
                 struct perf_result *r);
/* Connect and hang up, again and again, until enough, or a signal. 0, or -errno with a message
 * printed. */
int perf_connections(struct perf_end *e, const struct perf_options *o, struct perf_result *r);

/* ---- perf_report.c ---- */

/* The head of the table, if there is one, and a line for each result, on standard output. */
void perf_report_head(const struct perf_options *o);
void perf_report(const struct perf_options *o, const struct perf_result *r);

#endif
