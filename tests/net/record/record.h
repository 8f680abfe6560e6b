/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The recorder of pcaps/own-*: scenarios of our engine and connection manager over the emulated
 * link, on virtual time. The same scenario gives the same file again, octet by octet.
 *
 * Each has hosts A (0), B (1) and perhaps C (2), and one capture: the frames sent and received at
 * some of their ports. Counters must show the event of a scenario, otherwise it fails.
 */
#ifndef URNIC_TESTS_RECORD_H
#define URNIC_TESTS_RECORD_H

#include <stdio.h>

#include "pcapng_file.h"
#include "vnet.h"

/* Memory of each host: slots for requests, then as many for receives. */
#define RECORD_SLOT  65536u
#define RECORD_SLOTS 32u
#define RECORD_ARENA (2u * RECORD_SLOTS * RECORD_SLOT)
#define RECORD_HOSTS 3u
#define RECORD_LIMIT 60000000000ull /* a virtual minute */

/* `count` messages of A of one kind. Each uses the next slot on both sides. */
struct record_step {
    uint8_t wr; /* enum wr_opcode */
    uint8_t flags;
    uint32_t len;
    unsigned count; /* 0 ends the list */
};

struct record_must {
    unsigned host;
    enum engine_counter counter; /* must have counted something; none ends the list */
};

struct record;

struct record_scenario {
    const char *name, *shows;
    const char *link; /* keys of mem: beside rate and delay, or NULL */
    double loss[2];   /* of A's packets, of B's packets */
    unsigned taps;    /* bit per host whose port is captured; 0 = A's */
    struct vnet_qp_params qp;
    const char *cc; /* congestion control, or NULL */
    const struct record_step *steps;
    bool late_recv;               /* a receive is posted when its lack was complained about */
    bool both;                    /* B sends the same to A */
    int (*run)(struct record *r); /* NULL: record_steps */
    enum wc_status status;        /* of A's first completion that isn't good */
    struct record_must must[4];
};

struct record {
    const struct record_scenario *s;
    struct vnet *net;
    struct vnet_host *host[RECORD_HOSTS];
    uint8_t *arena[RECORD_HOSTS];
    uint32_t lkey[RECORD_HOSTS], rkey[RECORD_HOSTS];
    struct qp *qp[RECORD_HOSTS];
    struct pcapng *out;
    FILE *log; /* NAME.txt */
    char why[256];
};

/* Says why the scenario failed; returns -1. */
int record_fail(struct record *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void record_log(struct record *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Address of a slot in a host's memory, and its octets. */
uint64_t record_va(unsigned host, unsigned slot);
uint8_t *record_at(const struct record *r, unsigned host, unsigned slot);

/* A work request for slot -> slot of the peer's memory. */
struct engine_send_wr record_wr(const struct record *r, unsigned side, uint8_t opcode,
                                unsigned slot, uint32_t len, struct engine_sge *sge);
int record_post(struct record *r, unsigned side, const struct engine_send_wr *wr);
int record_post_recv(struct record *r, unsigned side, unsigned slot, uint32_t len);
/* Until this side has `wcs` completions. 0, -1. */
int record_wait(struct record *r, unsigned side, size_t wcs);
/* A connected pair between A and B. */
int record_connect(struct record *r);

/* Scenarios' bodies. 0, -1. */
int record_steps(struct record *r);
int record_peer_gone(struct record *r);
int record_bad_rkey(struct record *r);
int record_read_outside(struct record *r);
int record_too_long(struct record *r);
int record_copy_fails(struct record *r);
int record_send_inv(struct record *r);
int record_windows(struct record *r);
int record_ud(struct record *r);
int record_multicast(struct record *r);
int record_cm(struct record *r);
int record_cm_reject(struct record *r);
int record_cm_udp(struct record *r);

#endif
