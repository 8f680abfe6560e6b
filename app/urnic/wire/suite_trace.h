/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The test suite's record of the wire: RoCE packets with their times and fates, the connections
 * that the connection manager's messages announced, and questions about one flow.
 *
 * One thread. Times are ns of the bump's clock.
 */
#ifndef URNIC_SUITE_TRACE_H
#define URNIC_SUITE_TRACE_H

#include "fault.h"
#include "wire.h"

#define SUITE_PACKETS (1u << 18) /* most packets of a case; more are counted, not kept */
#define SUITE_CONNS   64u

/* A packet as its sender sent it, and the rules' actions on it. */
struct suite_pkt {
    uint64_t at;     /* time when the bump saw it */
    uint32_t waited; /* ns that it may have waited unseen before */
    uint8_t dir;     /* enum fault_dir */
    uint8_t fate;    /* FAULT_* */
    uint8_t opcode, syndrome;
    uint8_t tclass; /* after the rules: the ECN field may have been marked */
    bool ackreq, becn;
    bool plain; /* CNP: SE, MigReq, FECN, AckReq, PSN, pad and the 16 octets are all 0 */
    uint32_t psn, dqpn, msn;
    uint32_t len, hash; /* payload */
    uint32_t rkey, dma_len;
    uint64_t va;
};

/* From REQ and REP. [FAULT_AB]: of the end that sends in that direction. */
struct suite_conn {
    uint32_t comm_id; /* communication id of the REQ's sender */
    enum fault_dir active;
    uint32_t qpn[2], psn[2];
    unsigned timeout, retry, mtu;
    bool done; /* both are known */
};

struct suite_trace {
    struct suite_pkt *pkt;
    uint32_t n;
    uint64_t missed; /* packets above SUITE_PACKETS */
    struct suite_conn conn[SUITE_CONNS];
    unsigned nconn;
};

/* An empty trace with room for SUITE_PACKETS. 0 or -ENOMEM. */
int suite_trace_init(struct suite_trace *t);
void suite_trace_free(struct suite_trace *t);
/* Empty again, for the next case. */
void suite_trace_clear(struct suite_trace *t);

/* Read a frame before the rules see it. Returns false if it is no RoCE packet. */
bool suite_trace_read(const uint8_t *frame, uint32_t len, struct wire_pkt *p, bool *icrc_bad);

/* Keep a packet. `p` is what suite_trace_read has filled; the frame is as the rules left it.
 * Returns the record, NULL if there is no room for it. */
const struct suite_pkt *suite_trace_add(struct suite_trace *t, const struct suite_pkt *head,
                                        const uint8_t *frame, const struct wire_pkt *p);

/* ---- one flow of requests, and the responses to it ---- */

struct suite_flow {
    const struct suite_trace *t;
    enum fault_dir dir;            /* direction of the requests */
    uint32_t to, back;             /* destination QPN of requests and of responses; back 0 = not
                                    * known */
    uint32_t base;                 /* PSN of the first request */
    uint32_t packets;              /* number of requests of the wanted kind */
    int32_t highest;               /* highest of its PSNs, relative to base, with those of READ
                                    * responses */
    const struct suite_conn *conn; /* NULL = not announced */
};

/* The flow in direction `dir` with the most requests that have one of the WIRE_F_* in `kinds`
 * (WIRE_F_WRITE, WIRE_F_SEND, WIRE_F_READ). For READs the responses count. False = none. */
bool suite_flow_find(const struct suite_trace *t, enum fault_dir dir, unsigned kinds,
                     struct suite_flow *f);

static inline unsigned suite_flags(const struct suite_pkt *p)
{
    return wire_opcodes[p->opcode].flags;
}

/* PSN - base, as a signed number. */
static inline int32_t suite_rel(const struct suite_flow *f, uint32_t psn)
{
    return (int32_t)((psn - f->base) << 8) >> 8;
}

static inline bool suite_request(const struct suite_flow *f, const struct suite_pkt *p)
{
    return p->dir == f->dir && p->dqpn == f->to && suite_flags(p) & WIRE_F_REQUEST;
}

static inline bool suite_response(const struct suite_flow *f, const struct suite_pkt *p)
{
    return p->dir != f->dir && p->dqpn == f->back && suite_flags(p) & WIRE_F_RESPONSE;
}

/* Is it a response with a NAK of this syndrome? */
static inline bool suite_nak(const struct suite_flow *f, const struct suite_pkt *p,
                             uint8_t syndrome)
{
    return suite_response(f, p) && suite_flags(p) & WIRE_F_ACK && p->syndrome == syndrome;
}

/* Does the packet reach the other side (at once)? */
static inline bool suite_passed(const struct suite_pkt *p)
{
    return !(p->fate & (FAULT_DROP | FAULT_HOLD));
}

#endif
