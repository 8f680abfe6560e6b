/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic perf`: what its files share. perf.c reads the command line, perf_link.c makes connections,
 * perf_server.c is the passive end, perf_run.c measures, perf_report.c prints.
 */
#ifndef URNIC_PERF_H
#define URNIC_PERF_H

#include <netinet/in.h>

#include "cli.h"
#include "urnic/urnic.h"

#define PERF_PORT      7472u
#define PERF_MAGIC     0x66726570u
#define PERF_QPS_MAX   16384u
#define PERF_SIZES_MAX 32u

enum perf_op { PERF_WRITE, PERF_READ, PERF_SEND, PERF_ATOMIC, PERF_CONNECT };
enum perf_wait { PERF_YIELD, PERF_SPIN, PERF_EVENT };
extern const char *const perf_op_names[];

struct perf_options {
    const char *device, *host;
    uint16_t port;
    enum perf_op op;
    enum perf_wait wait;
    bool latency, both, json, inline_data;
    unsigned nsizes;
    uint64_t size[PERF_SIZES_MAX];
    uint64_t count;       /* messages per size; 0 = by time */
    uint64_t ns;          /* time per size */
    uint64_t working_set; /* octets that successive messages walk through, each side */
    uint64_t buffer;      /* server: octets offered */
    unsigned qps, idle_qps, depth, batch, signal_every;
};

/* In the connection request: what the client will do. 56 octets are all there is. */
struct perf_ask {
    uint32_t magic;
    uint8_t op;
    uint8_t latency, both, idle;
    uint32_t index; /* of the queue pair within the run: its part of the buffer */
    uint32_t depth;
    uint64_t size; /* largest message */
    uint64_t addr; /* the client's buffer for this queue pair */
    uint32_t rkey;
    uint32_t batch;
    uint64_t span; /* octets from one queue pair's part of the buffer to the next */
};
_Static_assert(sizeof(struct perf_ask) <= 56, "fits a REQ's private data");

/* In the reply: where the server's buffer is. */
struct perf_offer {
    uint32_t magic;
    uint32_t rkey;
    uint64_t addr, size;
};

/* What both ends have: a device and queues that all queue pairs share. */
struct perf_end {
    struct urnic_context *ctx;
    struct urnic_pd *pd;
    struct urnic_channel *channel; /* only with PERF_EVENT */
    struct urnic_cq *cq;
    struct urnic_mr *mr;
    uint8_t *buf;
    uint64_t size;
    struct urnic_cm_channel *cm;
    enum perf_wait wait;
    bool armed; /* cq, once and again after each event */
    uint32_t max_inline;
};

struct perf_qp {
    struct urnic_cm_id *id;
    struct urnic_qp *qp;
    struct perf_ask ask;
    struct perf_offer offer;
    uint64_t posted, completed; /* send side, work requests */
    uint64_t at;                /* walks through the working set */
    bool established, gone;
    int status;             /* of a connection that failed */
    volatile uint8_t *pong; /* server, WRITE latency: where the ping arrives */
    uint8_t expect;
    struct perf_qp *next, *next_acting;
};

/* perf_link.c */
int perf_end_init(struct perf_end *e, const char *device, uint64_t size, int cqe,
                  enum perf_wait wait);
void perf_end_free(struct perf_end *e);
/* Queue pair sized for an ask; in INIT. */
int perf_qp_create(struct perf_end *e, struct perf_qp *q, bool client);
void perf_qp_destroy(struct perf_qp *q);
int perf_post_recvs(struct perf_end *e, struct perf_qp *q, unsigned n);
/* Connect n queue pairs, many at a time. 0 or -errno with a message printed. */
int perf_connect_all(struct perf_end *e, struct perf_qp *q, unsigned n,
                     const struct perf_options *o);
/* One event of the CM channel, waiting at most timeout_ms. 0, -ETIMEDOUT, -errno. */
int perf_cm_event(struct perf_end *e, struct urnic_cm_event *ev, int timeout_ms);
/* After an empty poll: by the wait policy. */
void perf_idle(struct perf_end *e);
/* Post `n` work requests of the operation; `last` gets a completion. */
int perf_post(struct perf_end *e, struct perf_qp *q, const struct perf_options *o, uint64_t size,
              unsigned n, bool last);

/* perf_server.c */
int perf_server(const struct perf_options *o);

/* perf_run.c */
struct perf_result {
    uint64_t size, messages, ns;
    uint64_t min, p50, p90, p99, p999, max; /* latency, ns, half round trips for WRITE and SEND */
    double mean;
};
int perf_bandwidth(struct perf_end *e, struct perf_qp *q, const struct perf_options *o,
                   uint64_t size, struct perf_result *r);
int perf_latency(struct perf_end *e, struct perf_qp *q, const struct perf_options *o, uint64_t size,
                 struct perf_result *r);
int perf_connections(struct perf_end *e, const struct perf_options *o, struct perf_result *r);

/* perf_report.c */
void perf_report_head(const struct perf_options *o);
void perf_report(const struct perf_options *o, const struct perf_result *r);

#endif
