/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Packet scripts: parse one, run it. doc/drill.md is the language's manual.
 *
 * Pure: text in, verdict out. A script runs against an engine and a connection manager of its own
 * on virtual time (drill_run), or against another device; then the caller moves the packets
 * (drill_run_on). Scripts share nothing; one thread at a time per script.
 */
#ifndef URNIC_DRILL_H
#define URNIC_DRILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire.h"

#define DRILL_TEXT_MAX (1u << 20) /* octets of a script */

struct drill_script;

/* An error in a script's text. */
struct drill_error {
    unsigned line, column; /* from 1; line 0 = out of memory */
    char text[512];
};

/* Parse. The text is copied. NULL with *err filled in when it is not a script. Free with
 * drill_free. */
struct drill_script *drill_parse(const char *text, size_t len, struct drill_error *err);
void drill_free(struct drill_script *s);

/* The first line, "# REQ-07 RTX-01: purpose": the ids, and the rest; "" when not there. */
const char *drill_rules(const struct drill_script *s);
const char *drill_purpose(const struct drill_script *s);

/* The default of a script's `wire`: the program at the other end. A script for another program runs
 * only on the wire, a script without `wire` never does. */
#define DRILL_TARGET "target"

enum drill_verdict {
    DRILL_PASS,
    DRILL_FAIL,  /* an expectation of the script was not met */
    DRILL_WRONG, /* the script asks for something impossible */
    DRILL_SKIP,  /* not here: it isn't marked `wire`, or the device lacks something it needs */
};
extern const char *const drill_verdict_names[]; /* "pass", "fail", "wrong", "skip" */

#define DRILL_LINE_MAX 512u

struct drill_report {
    enum drill_verdict verdict;
    unsigned line;                 /* of the statement at fault; 0 = the end of the script */
    uint64_t ns;                   /* time since the script's begin */
    uint32_t packets, checks;      /* frames in and out; expectations met */
    uint32_t unseen;               /* expectations invisible on the wire */
    char what[DRILL_LINE_MAX];     /* one sentence, or "" */
    char fields[DRILL_LINE_MAX];   /* "psn: expected 2, got 3; ...", or "" */
    char expected[DRILL_LINE_MAX]; /* a statement, or a packet's dump line, or "" */
    char got[DRILL_LINE_MAX];      /* a packet's dump line, or "" */
};

enum drill_direction { DRILL_TO_DEVICE, DRILL_FROM_DEVICE };

struct drill_options {
    uint32_t psn; /* default first PSN, in both directions (PSN-05) */
    bool ipv6;
    uint64_t max_steps; /* most statements and time-outs of a run; 0 = 4,000,000 */
    void *arg;
    /* Called for every frame, with the text of its statement (NULL: no statement expects it). May
     * be NULL. Frames come in the order of the statements; `order` is their order on the wire. */
    void (*frame)(void *arg, uint64_t ns, uint32_t order, enum drill_direction dir,
                  const uint8_t *frame, uint32_t len, const char *comment);
};

/* Run against a fresh engine on virtual time. */
void drill_run(const struct drill_script *s, const struct drill_options *o,
               struct drill_report *out);

/* ---- a device on the wire ---- */

/* A reliable connection to the device, and memory there. */
struct drill_peer {
    uint8_t dmac[6], smac[6]; /* the device's, ours */
    struct wire_addr device, us;
    uint32_t device_qpn, our_qpn;
    uint32_t to_psn;   /* first PSN of our requests */
    uint32_t from_psn; /* first PSN of the device's requests */
    uint32_t mtu;      /* octets */
    uint16_t sport;
    /* Memory and receives of a DRILL_TARGET; 0 = none. */
    uint64_t va; /* region with all remote rights */
    uint32_t rkey, len;
    uint32_t recvs, recv_len; /* receives posted there, octets each */
};

/* A script's needs for its connection. */
struct drill_wish {
    uint32_t mtu;   /* octets */
    uint32_t psn;   /* first PSN of the device's requests */
    uint32_t recvs; /* receives for the device to post */
};

struct drill_wire {
    void *arg;
    const char *server; /* the program at the other end: scripts for others are skipped */
    /* A new connection for this script. 0, or -errno with a text. */
    int (*connect)(void *arg, const struct drill_wish *wish, struct drill_peer *out, char *err,
                   size_t size);
    void (*send)(void *arg, const uint8_t *frame, uint32_t len);
    /* The next frame of the device, waiting until `until`: its length, 0 = none in time. */
    uint32_t (*recv)(void *arg, uint8_t *buf, uint32_t cap, uint64_t until, uint64_t *ns);
    uint64_t (*now)(void *arg);
    void (*disconnect)(void *arg);
};

/* Run against a device. Expectations that only the device's application can see (completions,
 * states, counters) count as unseen. */
void drill_run_on(const struct drill_script *s, const struct drill_options *o,
                  const struct drill_wire *wire, struct drill_report *out);

#endif
