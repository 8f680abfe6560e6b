/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Flight recorder: the last events of each queue pair, and why it went to ERR.
 */
#ifndef URNIC_RECORDER_H
#define URNIC_RECORDER_H

#include "engine.h"
#include "psn.h"

/* name, text */
#define NOTES(X)                                                                                   \
    X(STATE, "state")                                                                              \
    X(TX, "send request")                                                                          \
    X(TX_ACK, "send ACK")                                                                          \
    X(TX_NAK, "send NAK")                                                                          \
    X(TX_READ, "send READ response")                                                               \
    X(TX_ATOMIC, "send ATOMIC ack")                                                                \
    X(RX_REQ, "request")                                                                           \
    X(RX_DUP, "duplicate request")                                                                 \
    X(RX_OOS, "request out of sequence")                                                           \
    X(RX_NAK, "NAK")                                                                               \
    X(RX_RNR, "RNR NAK")                                                                           \
    X(RX_READ, "READ response")                                                                    \
    X(RX_ATOMIC, "ATOMIC ack")                                                                     \
    X(IMPLIED_NAK, "implied NAK")                                                                  \
    X(TIMEOUT, "time-out")                                                                         \
    X(GO_BACK, "send again from")                                                                  \
    X(COPY_FAIL, "copy failed")                                                                    \
    X(TX_SACK, "send selective NAK")                                                               \
    X(AGREED, "peer does selective repeat")                                                        \
    X(CNP, "CNP")                                                                                  \
    X(CNP_IGNORED, "CNP, ignored")                                                                 \
    X(ICMP, "ICMP")                                                                                \
    X(SLOW_RESTART, "slow restart")                                                                \
    X(ERROR, "error")

enum note {
#define X(name, text) NOTE_##name,
    NOTES(X)
#undef X
        NOTE_MAX
};

#define RECORDER_EVENTS 12u

/* New rate after CNP and SLOW_RESTART, in place of a PSN and a value. */
struct note_event {
    uint64_t at;
    union {
        struct {
            uint64_t what : 8, psn : 24, v : 32;
        };
        struct {
            uint64_t why : 8, rate : 20, target : 20; /* Mb/s; all ones: no limit */
            uint64_t alpha : 16;                      /* 15 fraction bits */
        };
    };
};
_Static_assert(sizeof(struct note_event) == 16, "a queue pair has a dozen");

struct recorder {
    uint32_t n; /* events noted; once all of ev are used, in [RECORDER_EVENTS, 2 RECORDER_EVENTS) */
    struct note_event ev[RECORDER_EVENTS];
};

/* The place of the next event. */
static inline struct note_event *recorder_next(struct recorder *rec)
{
    struct note_event *ev = &rec->ev[rec->n % RECORDER_EVENTS];
    if (++rec->n == 2 * RECORDER_EVENTS)
        rec->n = RECORDER_EVENTS;
    return ev;
}

/* Note an event, and pass it to the trace hook. */
void recorder_note(struct engine *e, struct qp *qp, enum note what, psn_t psn, uint32_t v);
/* The rate has just changed for this reason; qp has a limiter. */
void recorder_rate(struct engine *e, struct qp *qp, enum note what);
/* The rule's id at the start of `why`, in the form of vendor_err; 0 = none, or `why` is NULL. */
uint32_t recorder_rule(const char *why);
/* Record why the queue pair goes to ERR; the first reason stays. printf-like; begins with the
 * rule's id. */
void recorder_error(struct engine *e, struct qp *qp, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
