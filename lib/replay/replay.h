/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Our engine in the place of one end of a captured connection: it gets the other end's packets at
 * their times, and its packets are compared with the captured ones. Fields that the protocol fixes
 * must be the same; where it leaves a choice, a freedom of replay_freedoms applies.
 *
 * Pure: no I/O, no clock. Frames are kept as they are added, since later packets decide about
 * earlier ones: some 100 octets and the payload for each frame, and as much again for each one of
 * the replayed connection. All memory that grows with the capture, except the tracker of lint's,
 * counts against the limit given to replay_new. One thread.
 */
#ifndef URNIC_REPLAY_H
#define URNIC_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lint.h"

#define REPLAY_DUMP_MAX 224u
#define REPLAY_TEXT_MAX 128u

struct replay;

enum replay_role { REPLAY_RESPONDER = 1, REPLAY_REQUESTER = 2, REPLAY_BOTH = 3 };
/* The name of one role: "responder" or "requester". */
const char *replay_role_name(enum replay_role role);

/* An allowed difference and its reason. */
struct replay_freedom {
    const char *name;     /* "ack-coalescing" */
    const char *sentence; /* the allowed difference in one sentence */
};
/* The table; *n = how many. */
const struct replay_freedom *replay_freedoms(size_t *n);

/* One differing packet. Strings are NUL-terminated. */
struct replay_difference {
    uint32_t connection; /* 1, 2, ... by first packet */
    enum replay_role role;
    uint64_t number, ns;           /* of the captured packet */
    const char *rule;              /* of doc/conformance.md: "RD-10" */
    const char *field;             /* differing field: "opcode" */
    char why[REPLAY_TEXT_MAX];     /* reason in a sentence */
    char ours[REPLAY_DUMP_MAX];    /* our engine's packet; "(nothing)" */
    char capture[REPLAY_DUMP_MAX]; /* the captured packet */
};
/* Called from replay_run, in the order of the packets within one connection and role. */
typedef void (*replay_report)(void *ctx, const struct replay_difference *d);

/* One role of one connection, or of one flow of datagrams: the outcome. */
struct replay_outcome {
    uint32_t connection;
    enum replay_role role;
    struct lint_flow_info flow; /* the direction in which the requests go */
    bool unanswered;            /* the requester repeated its requests in vain until it gave up */
    bool cm;                    /* the messages of two connection managers, not their packets */
    uint64_t fed;               /* packets given to our engine */
    uint64_t compared;          /* captured packets compared */
    uint64_t same, differ;      /* of these */
    uint64_t lost;              /* packets that evidently never arrived, so not given */
    uint64_t passed;            /* packets about the time before the capture, or damaged */
};
typedef void (*replay_result)(void *ctx, const struct replay_outcome *o);

struct replay_totals {
    uint64_t frames, roce, cm, datagrams, damaged;
    uint64_t xrc;    /* packets of XRC, which isn't replayed */
    uint64_t merged; /* frames of several packets, each replayed by itself */
    uint64_t compared, differ;
    uint32_t connections, replayed; /* directions that could be replayed */
    uint32_t unanswered;            /* directions without answers, where the requester gave up */
};

#define REPLAY_HELD_MAX (2ull << 30)
/* `max_octets` bounds the memory held (0 = REPLAY_HELD_MAX). NULL: no memory. */
struct replay *replay_new(uint64_t max_octets);
/* NULL is fine. */
void replay_free(struct replay *r);
/* Add the next frame. 0; -ENOMEM, -EFBIG: more than max_octets. */
int replay_add(struct replay *r, const struct lint_frame *f);
/* Called from replay_run every thousand packets or so: `done` of `total` are processed. `total` may
 * grow. False: stop. */
typedef bool (*replay_progress)(void *ctx, uint64_t done, uint64_t total);
void replay_watch(struct replay *r, replay_progress progress, void *ctx);
/* Replay the added frames, once. `roles`: bits of enum replay_role. 0, -ENOMEM; -EFBIG: it takes
 * more than max_octets, which is usually detected before any report; -EINTR: stopped by
 * replay_watch's function. */
int replay_run(struct replay *r, unsigned roles, replay_report report, replay_result result,
               void *ctx);
/* The counts so far. */
void replay_totals(const struct replay *r, struct replay_totals *out);

#endif
