/* SPDX-License-Identifier: BSD-3-Clause */
/* clang-format off */
/*
 * Packet scripts against one queue pair of one engine. A script is text, a step a line (or ';'):
 *
 *     recv 100 50             post a receive with SGEs of 100 and 50 octets
 *     recv-bad 100            ... whose L_Key is wrong
 *     recv-malformed          ... with more SGEs than the queue pair has
 *     < SEND_ONLY 0 len=10    a request comes in; consecutive lines are one burst. The number is
 *                             the PSN relative to the script's first one
 *     > ACKNOWLEDGE 0 syn=1f  this goes out; fields not given are not compared
 *     = SUCCESS len=10        this completes
 *     ! QP_REQ_ERR            this event is raised (HOOK: the comm_est hook is called)
 *     state ERR               the queue pair's state
 *     count NAME 2            a counter
 *     drop NAME               counter of the last received frame's drop
 *     room 64                 receives that may be posted
 *     mem 16 4 is 0:2         octets 16..20 of the region are octets 2.. of the payload of packet 0
 *     mem 0 16 clean          ... are as before
 *     mem 8 8 val=5           ... are this number, host order
 *     rbuf 0 0 4 is 0:0       the same in the buffer of receive 0
 *     put 8 val=5             store 8 octets, host order, in the region
 *     hold; copy; copy fail   copies wait; are done; fail
 *     gather fail             the next gather of a READ response fails
 *     revoke KEY busy         deregister the region of this key; busy: copies hold it
 *     notx; tx                the port is full; has room again
 *     wait 100000             time passes (ns)
 *     flood 9 OPCODE 0 ...    nine times the same request, in bursts of its own; answers are ignored
 *     flood+ 9 OPCODE 0 ...   the same with PSNs 0, 1, 2 ...
 *     limit 2                 arm the limit of the shared receive queue
 *     dest 4                  max_dest_rd_atomic changes in SQD; then RTS again
 *     err; sqd; reset; rts; dead  the queue pair goes to ERR, SQD, RESET, again to RTS; is destroyed
 *
 * An unnamed packet, completion or event is an error. Each script runs with several start PSNs
 * (PSN-05).
 *
 * Fields of requests: len= payload, pad=, dma= (RETH), va= (offset in the region), imm=, se, ack,
 * key=rw|ro|wo|at|none|pd2|win|variant|recv, add=, cmp=, src= (source QP), qkey=.
 * Fields of sent packets: len=, syn= (hex), msn=, from= (offset in the region that the payload must
 * equal), orig=.
 * Fields of completions: id=, len=, op=IMM, imm=, inv, sol, src=, grh.
 */
/* clang-format on */
#ifndef TEST_RESP_SCRIPT_H
#define TEST_RESP_SCRIPT_H

#include "engine.h"

struct script_setup {
    enum qp_type type; /* 0 = RC */
    unsigned access;   /* 0 = all remote rights */
    uint8_t rd_atomic; /* max_dest_rd_atomic; 0 = 4, 255 = 0 */
    uint8_t rnr_timer; /* min_rnr_timer; 0 = 12 */
    bool srq;          /* receives go to a shared receive queue */
    uint32_t srq_limit;
    bool rtr; /* stay in RTR */
    bool credits;
    bool rnr_on_rd_res;
    uint32_t cq_room; /* completions that fit; 0 = many */
};

struct script {
    const char *name; /* begins with the rule's id */
    struct script_setup setup;
    const char *text;
};

/* Run all: returns the exit status for main. */
int script_main(const char *suite, const struct script *scripts, unsigned n);

#endif
