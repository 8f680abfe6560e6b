/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Exchanges of packets for lint, step by step: as they should be, or with one step changed.
 */
#ifndef URNIC_TEST_LINT_RIG_H
#define URNIC_TEST_LINT_RIG_H

#include <stddef.h>
#include <stdint.h>

#include "cm_msg.h"
#include "lint.h"

#define A_QPN   0x11u
#define B_QPN   0x22u
#define STEPS   400
#define US      1000ull
#define ALL     (-1)
#define LATER   (-2) /* the finding is about an earlier packet or may be about several */
#define RC(op)  WIRE_OPCODE(WIRE_RC, WIRE_##op)
#define UC(op)  WIRE_OPCODE(WIRE_UC, WIRE_##op)
#define UD_SEND WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY)

/* One packet of an exchange. A sends to B, or the other way round. */
struct step {
    bool from_b;
    uint8_t opcode;
    uint32_t psn, len;
    bool ackreq;
    uint32_t dma_len;
    uint8_t syndrome;
    uint32_t msn;
    uint64_t va;
    uint64_t after; /* us since the packet before; 0 = 10 */
    enum cm_attr cm;
    bool gone; /* sent, but lost before the point of capture */
};

#define ACK(psn_, msn_)                                                                            \
    {                                                                                              \
        .from_b = true, .opcode = RC(ACKNOWLEDGE), .psn = psn_, .syndrome = 0x1F, .msn = msn_      \
    }
#define NAK(psn_, syn, msn_)                                                                       \
    {                                                                                              \
        .from_b = true, .opcode = RC(ACKNOWLEDGE), .psn = psn_, .syndrome = syn, .msn = msn_       \
    }
#define SEND(psn_, len_)                                                                           \
    {                                                                                              \
        .opcode = RC(SEND_ONLY), .psn = psn_, .len = len_, .ackreq = true                          \
    }
#define RESP(op, psn_, len_, msn_)                                                                 \
    {                                                                                              \
        .from_b = true, .opcode = RC(op), .psn = psn_, .len = len_, .syndrome = 0x1F, .msn = msn_  \
    }
#define END                                                                                        \
    {                                                                                              \
        .opcode = 0xFF                                                                             \
    }

/* Good exchanges. */
extern const struct step steps_rc[], steps_uc[], steps_ud[];
extern const struct step steps_loss[];   /* 101 and 103 are lost, and requested again */
extern const struct step steps_rnr[];    /* a SEND waits for its receive */
extern const struct step steps_reread[]; /* two READs, each with a lost second response */
extern const struct step steps_fatal[];  /* a WRITE is refused */
extern const struct step steps_cm[];     /* a connection from its beginning to its end */
extern const struct step steps_dead[];   /* no more answers */

struct packet {
    uint8_t f[4400];
    size_t len;
    uint64_t ns;
    struct wire_pkt p;
};

/* The network layer, and the meaning of the IP identification. */
enum net { NET_COUNT, NET_SAME, NET_ZERO, NET_IPV6, NETS };
extern const char *const nets[NETS]; /* names for messages */

struct run {
    struct packet packet[STEPS];
    int n;
    unsigned at[STEPS]; /* packet of a step */
};

typedef void change_pkt(struct wire_pkt *p);
typedef void change_step(struct step *s);
typedef void change_octets(struct packet *p);
typedef void change_cm(struct cm_msg *m);

struct row {
    const char *name; /* begins with the rule that must be found; "" = none */
    const struct step *steps;
    int at;    /* the step that is changed */
    int found; /* step whose packet is found to break the rule, if another one */
    change_step *step;
    change_pkt *pkt;
    change_octets *octets; /* change of the finished frame; the iCRC is mended unless keep_icrc */
    change_cm *cm;
    const struct step *extra; /* inserted after the step */
    bool keep_icrc;
    bool v4;   /* about IPv4 */
    bool v6;   /* about IPv6 */
    bool copy; /* undecidable where the IP identification tells nothing */
    enum lint_verdict verdict;
};

struct found {
    unsigned n;
    struct lint_finding f[32];
};

/* The row's exchange as packets, with the row's changes. */
void build(struct run *r, const struct row *row, enum net net);

/* For lint_new, with a struct found: keeps the first findings. */
void keep_finding(void *ctx, const struct lint_finding *f);

/* Lint's findings in them. */
void judge(const struct run *r, struct found *found, struct lint_totals *t);

#endif
