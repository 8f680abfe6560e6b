/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One case of the loss matrix: some messages of one operation over a link that loses, doubles,
 * reorders or damages, on virtual time. loss_case.c does it, loss_judge.c says whether all is well,
 * test_loss_matrix.c has the matrix. One thread.
 */
#ifndef URNIC_TEST_LOSS_CASE_H
#define URNIC_TEST_LOSS_CASE_H

#include "loss_oracle.h"
#include "vnet.h"

#define LOSS_MSGS_MAX   24u
#define LOSS_GUARD      64u /* octets before and after each message that must stay unwritten */
#define LOSS_GUARD_FILL 0xA5u
#define LOSS_RETRIES    7u
#define LOSS_SEND_ID    1000u /* of a message, the work request's number is this and its place */
#define LOSS_RECV_ID    5000u
#define LOSS_IMM        0x11220000u

/* ---- the parts of a case ---- */

enum op { SEND, SEND_IMM, SEND_INV, WRITE, WRITE_IMM, READ, AWRITE, CAS, FADD, OPS };

struct op_info {
    const char *name;
    uint8_t wr, wc;    /* of the requester */
    bool recv, from_b; /* consumes receives; data flows from the responder */
    bool atomic;
    bool word; /* it is always of 8 octets */
};
extern const struct op_info ops[OPS];

struct fault {
    const char *name, *keys;
    bool loses; /* can take an octet away from a message, so that retries may be exhausted */
};
#define FAULTS 9u
extern const struct fault faults[FAULTS];

#define MTUS 3u
extern const unsigned mtus[MTUS];

#define SIZES 7u
extern const char *const size_names[SIZES];

/* How losses are repaired, at the requester and at the responder (LR-01). */
struct recovery {
    const char *name, *spec;
    uint8_t mode[2];
};
#define RECOVERIES 11u
extern const struct recovery recoveries[RECOVERIES];

struct test_case {
    enum op op;
    unsigned size, mtu, fault; /* places in the tables above */
    bool ipv6;
    char name[96];
    uint64_t seed;
    const struct recovery *recovery;
    const char *capture; /* a pcapng file for its frames, or NULL */
};

/* Counts of all cases. */
struct totals {
    unsigned run, failed, exhausted;
    uint64_t frames, lost, retransmitted;
    uint64_t virtual_ns;
};

/* Runs a case and prints the reason if it fails; with `verbose` also its parameters. 0 or -1. */
int loss_case_run(const struct test_case *tc, struct totals *sum, bool verbose);

/* ---- shared by loss_case.c and loss_judge.c ---- */

/* The case as it runs. */
struct run {
    const struct test_case *tc;
    struct vnet *net;
    struct vnet_host *a, *b;
    struct qp *qa, *qb;
    uint64_t rng;
    uint32_t len, stride; /* of a message; from one message's place to the next one's */
    unsigned msgs, posted, recvs;
    bool late_recv, slow_copies;
    uint8_t *local, *remote; /* both with guards between messages */
    uint32_t llkey, rlkey, rrkey;
    uint32_t inv_rkey[LOSS_MSGS_MAX];
    struct loss_oracle oracle;
    struct pcapng *capture;
    char why[512];
};

/* Why it failed: the first call's text stays. Returns -1. */
int loss_fail(struct run *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The octets of message m: different for every message, case and place. */
uint8_t loss_octet(const struct run *r, unsigned m, uint32_t i);
/* Where message m stands in r->local or r->remote. */
uint8_t *loss_place(uint8_t *arena, const struct run *r, unsigned m);
/* All has been done that will be: is it right? *exhausted: the requester gave up, and could. 0 or
 * -1, with loss_fail's text. */
int loss_judge(struct run *r, bool *exhausted);

#endif
