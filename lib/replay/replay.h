/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Our engine in the place of one end of a captured connection: it gets the other end's packets at
 * their times, and what it sends is compared with what the capture holds. Fields that the protocol
 * fixes must be the same; where it leaves a choice, a freedom of replay_freedoms applies.
 *
 * Pure: no I/O, no clock. Frames are kept as they are added, since a packet is judged by what
 * follows it: some 100 octets and the payload for each, and as much again for each of the
 * connection that is being replayed. All that grows with the capture, but for the tracker of lint,
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
/* "responder" or "requester", of one role. */
const char *replay_role_name(enum replay_role role);

/* What may differ, and why. */
struct replay_freedom {
    const char *name;     /* "ack-coalescing" */
    const char *sentence; /* what may differ */
};
/* The table; *n = how many. */
const struct replay_freedom *replay_freedoms(size_t *n);

/* One packet that differs. Strings are NUL-terminated. */
struct replay_difference {
    uint32_t connection; /* 1, 2, ... by first packet */
    enum replay_role role;
    uint64_t number, ns;           /* of the captured packet */
    const char *rule;              /* of doc/conformance.md: "RD-10" */
    const char *field;             /* what differs: "opcode" */
    char why[REPLAY_TEXT_MAX];     /* in a sentence */
    char ours[REPLAY_DUMP_MAX];    /* what our engine sends; "(nothing)" */
    char capture[REPLAY_DUMP_MAX]; /* what the capture holds */
};
/* Called from replay_run, in the order of the packets within one connection and role. */
typedef void (*replay_report)(void *ctx, const struct replay_difference *d);

/* One role of one connection, or of one flow of datagrams: the outcome. */
struct replay_outcome {
    uint32_t connection;
    enum replay_role role;
    struct lint_flow_info flow; /* the direction in which the requests go */
    bool unanswered;            /* the requester repeated its requests to the end, for nothing */
    bool cm;                    /* what two connection managers say, not how it is packed */
    uint64_t fed;               /* packets given to our engine */
    uint64_t compared;          /* captured packets compared */
    uint64_t same, differ;      /* of these */
    uint64_t lost;              /* packets that evidently never arrived, so were not given */
    uint64_t passed;            /* packets about what went before the capture, or damaged */
};
typedef void (*replay_result)(void *ctx, const struct replay_outcome *o);

struct replay_totals {
    uint64_t frames, roce, cm, datagrams, damaged;
    uint64_t xrc;    /* packets of XRC, which isn't replayed */
    uint64_t merged; /* frames of several packets, each of which is replayed by itself */
    uint64_t compared, differ;
    uint32_t connections, replayed; /* directions that could be replayed */
    uint32_t unanswered;            /* directions without answers, where the requester gave up */
};

#define REPLAY_HELD_MAX (2ull << 30)
/* `max_octets` bounds the memory held (0 = REPLAY_HELD_MAX). NULL when memory is out. */
struct replay *replay_new(uint64_t max_octets);
/* NULL is fine. */
void replay_free(struct replay *r);
/* Add the next frame. 0; -ENOMEM, -EFBIG: more than max_octets. */
int replay_add(struct replay *r, const struct lint_frame *f);
/* Called from replay_run every thousand packets or so: `done` of `total` have been gone through.
 * There may turn out to be more of them. False: go no further. */
typedef bool (*replay_progress)(void *ctx, uint64_t done, uint64_t total);
void replay_watch(struct replay *r, replay_progress progress, void *ctx);
/* Replay what was added, once. `roles`: bits of enum replay_role. 0, -ENOMEM; -EFBIG: it takes more
 * than max_octets, which is most often known before anything is reported; -EINTR: stopped by
 * replay_watch's function. */
int replay_run(struct replay *r, unsigned roles, replay_report report, replay_result result,
               void *ctx);
/* What has been counted so far. */
void replay_totals(const struct replay *r, struct replay_totals *out);

#endif
