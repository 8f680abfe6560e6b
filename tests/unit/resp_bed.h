/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The environment of packet scripts (resp_script.h): an engine with one queue pair, its memory, and
 * its output that no line has expected yet.
 */
#ifndef URNIC_TEST_RESP_BED_H
#define URNIC_TEST_RESP_BED_H

#include <stdio.h>

#include "resp_script.h"
#include "unit.h"
#include "wire.h"

enum {
    REGION = 16384,
    RBUFS = 65536,
    FRAMES = 512,
    OUTS = 512,
    BURST = 64,
    PEER_QPN = 0x123,
    QKEY = 0x11111111,
};
#define IOVA 0x7F0000000000ull

struct out {
    struct wire_pkt p;
    uint8_t payload[4096];
};

struct bed {
    const struct script *s;
    const char *line; /* under way, for messages */
    uint32_t psn0;
    uint64_t now;
    struct engine *e;
    struct qp *qp;
    uint32_t qpn;
    struct cq *cq;
    struct srq *srq;
    uint32_t pd, pd2;
    uint32_t rw, ro, wo, at, other_pd, win, rkey_recv, bad;
    unsigned recvs;
    size_t rbuf[64]; /* start of receive i in rbufs */
    size_t rbuf_end;
    bool hold, notx, gather_fail, dead;
    /* output that no line has expected yet */
    struct out out[OUTS];
    unsigned nout, oout;
    struct engine_wc wc[256];
    unsigned nwc, owc, cq_room;
    int ev[64];
    unsigned nev, oev;
    /* frames stay until the script ends: copies may wait */
    uint8_t frame[FRAMES][5000];
    unsigned nframes, burst_from;
    struct engine_frame burst[BURST];
    unsigned nburst;
    struct engine_copy copies[5000];
    unsigned last_drop; /* counter of the last frame's drop */
    unsigned ncopies;
};

/* The queue pair's memory: the region that requests name, and the buffers of receives. */
extern uint8_t region[REGION + 64], rbufs[RBUFS];

/* End the test, with the script's name and present step. */
#define FAIL(b, ...)                                                                               \
    do {                                                                                           \
        char text_[400];                                                                           \
        snprintf(text_, sizeof(text_), __VA_ARGS__);                                               \
        ck_abort_msg("%s [PSN 0x%06x]: at \"%s\": %s", (b)->s->name, (b)->psn0,                    \
                     (b)->line ? (b)->line : "end", text_);                                        \
    } while (0)

/* ... unless the two are the same number. */
#define COMPARE(b, what, got, want)                                                                \
    do {                                                                                           \
        if ((uint64_t)(got) != (uint64_t)(want))                                                   \
            FAIL(b, "%s is 0x%llx, not 0x%llx", what, (unsigned long long)(got),                   \
                 (unsigned long long)(want));                                                      \
    } while (0)

enum { EV_HOOK = 1000 }; /* the comm_est hook, of a queue pair in RTR */

/* The first value of octet i of the region, and of the payload of the packet with this PSN. */
uint8_t region_octet(size_t i);
uint8_t payload_octet(uint32_t psn, size_t i);

/* Make the engine, the queue pair and its memory for a script whose first PSN is psn0. */
void bed_setup(struct bed *b, const struct script *s, uint32_t psn0);
/* Free them. No object may be left, and the octets after the region must not have changed. */
void bed_teardown(struct bed *b);
/* Move the queue pair from RESET to RTS, or to RTR if its set-up demands it. */
void bed_to_rts(struct bed *b);
/* Move the queue pair to this state, with these attributes. */
void bed_modify(struct bed *b, struct engine_qp_attr *a, enum qp_state state, unsigned mask);

/* Complete the waiting copies, with this status. */
void bed_copies(struct bed *b, int status);
/* Take the outgoing packets, unless the port is full. */
void bed_tx(struct bed *b);
/* Receive the gathered burst, and do all work that follows from it. */
void bed_pump(struct bed *b);

#endif
