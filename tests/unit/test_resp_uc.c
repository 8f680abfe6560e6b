/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The UC responder: nothing is ever answered.
 */
#include "resp_script.h"

/* A script stands as it is read. */
/* clang-format off */
#define UC {.type = QP_UC}

static const struct script scripts[] = {
    {"UC-02 UC-03 SEND and WRITE without answers", UC,
     "recv 600; recv 8\n"
     "< SEND_FIRST 0 len=256 ack; < SEND_MIDDLE 1 len=256; < SEND_LAST_IMM 2 len=4 imm=7 ack; < WRITE_ONLY 3 len=4 ack\n"
     "< WRITE_ONLY_IMM 4 len=4 va=8 imm=9 ack\n"
     "= SUCCESS len=516 imm=7 id=0; = SUCCESS len=4 op=IMM imm=9 id=1\n"
     "rbuf 0 0 256 is 0:0; rbuf 0 256 256 is 1:0; rbuf 0 512 4 is 2:0; mem 0 4 is 3:0; mem 8 4 is 4:0"},
    {"UC-03 a FIRST or ONLY with any PSN starts a new message", UC,
     "recv 8; recv 8; recv 600; < SEND_ONLY 100 len=4; < SEND_ONLY 5 len=4; < SEND_FIRST 77 len=256; < SEND_LAST 78 len=1\n"
     "= SUCCESS len=4 id=0; = SUCCESS len=4 id=1; = SUCCESS len=257 id=2"},
    {"UC-03 a missing MIDDLE drops the message", UC,
     "recv 1000; < SEND_FIRST 0 len=256; < SEND_LAST 2 len=4; count uc_drop_msg 1; state RTS"},
    {"UC-04 until the next FIRST or ONLY", UC,
     "recv 1000; recv 8; < SEND_FIRST 0 len=256; < SEND_MIDDLE 2 len=256; < SEND_MIDDLE 3 len=256; < SEND_LAST 4 len=4\n"
     "count uc_drop_msg 1; < SEND_ONLY 5 len=4; = SUCCESS len=4 id=0"},
    {"UC-04 LAST without FIRST", UC, "recv 8; < SEND_LAST 0 len=4; < SEND_ONLY 1 len=4; = SUCCESS len=4 id=0"},
    {"UC-04 WRITE LAST after SEND FIRST", UC,
     "recv 600; < SEND_FIRST 0 len=256; < WRITE_LAST 1 len=4; count uc_drop_msg 1; mem 0 8 clean"},
    {"UC-06 the receive of a broken SEND serves the next, from its start", UC,
     "recv 600; < SEND_FIRST 0 len=256; < SEND_FIRST 5 len=256; < SEND_LAST 6 len=4\n"
     "= SUCCESS len=260 id=0; rbuf 0 0 256 is 5:0; rbuf 0 256 4 is 6:0; count uc_drop_msg 1"},
    {"UC-06 with a shared receive queue too", {.type = QP_UC, .srq = true},
     "recv 600; recv 600; < SEND_FIRST 0 len=256; < SEND_ONLY 5 len=4; = SUCCESS len=4 id=0"},
    {"UC-06 a WRITE in between doesn't use it up", UC,
     "recv 600; < SEND_FIRST 0 len=256; < WRITE_ONLY 5 len=4; < SEND_ONLY 6 len=4; = SUCCESS len=4 id=0; mem 0 4 is 5:0"},
    {"UC-05 no receive: the whole SEND is dropped", UC,
     "< SEND_FIRST 0 len=256; < SEND_LAST 1 len=4; recv 600; < SEND_LAST 1 len=4; count out_of_buffer 1; < SEND_ONLY 2 len=4; = SUCCESS len=4"},
    {"UC-05 no receive for a WRITE with immediate", UC,
     "< WRITE_ONLY_IMM 0 len=4 imm=1; count out_of_buffer 1; mem 0 4 clean; state RTS"},
    {"UC-07 wrong length", UC, "recv 600; < SEND_FIRST 0 len=252; count uc_drop_msg 1; < SEND_LAST 1 len=4; state RTS; rbuf 0 0 4 clean"},
    {"UC-07 longer than the receive: the receive stays", UC,
     "recv 8; < SEND_ONLY 0 len=9; count uc_drop_msg 1; < SEND_ONLY 1 len=8; = SUCCESS len=8 id=0; state RTS"},
    {"UC-07 unknown R_Key", UC, "< WRITE_ONLY 0 len=4 key=none; count uc_drop_msg 1; state RTS"},
    {"UC-07 region without REMOTE_WRITE", UC, "< WRITE_ONLY 0 len=4 key=ro; count uc_drop_msg 1; mem 0 4 clean; state RTS"},
    {"UC-07 WRITE not enabled", {.type = QP_UC, .access = MEM_REMOTE_READ},
     "< WRITE_ONLY 0 len=4; count uc_drop_msg 1; mem 0 4 clean; state RTS"},
    {"UC-07 WRITE longer than its RETH", UC,
     "< WRITE_FIRST 0 len=256 dma=260; < WRITE_LAST 1 len=8; count uc_drop_msg 1; mem 256 8 clean; state RTS"},
    {"UC-04 a message is counted once", UC,
     "recv 600; < SEND_FIRST 0 len=256; < SEND_MIDDLE 1 len=252; < SEND_LAST 2 len=4; drop out_of_sequence; count uc_drop_msg 1; < SEND_ONLY 3 len=4\n"
     "= SUCCESS len=4 id=0; count uc_drop_msg 1"},
    {"UC-02 SEND and WRITE of no octets", UC,
     "recv 0; < SEND_ONLY 0 len=0; = SUCCESS len=0; < WRITE_ONLY 1 len=0 key=none; state RTS; count uc_drop_msg 0"},
    {"UC-08 what a dropped WRITE has placed stays; no completion", UC,
     "recv 8; < WRITE_FIRST 0 len=256 dma=516; < WRITE_LAST_IMM 2 len=4 imm=1; mem 0 256 is 0:0; mem 256 8 clean; state RTS"},
    {"RSP-13 a receive buffer that isn't writable is the consumer's fault", UC,
     "recv-bad 8; recv 8; < SEND_ONLY 0 len=4; = LOC_PROT_ERR id=0; = WR_FLUSH_ERR id=1; state ERR; count uc_drop_msg 1; drop uc_drop_msg"},
    {"RSP-24 no completion before the octets are in memory", UC,
     "recv 8; hold; < SEND_ONLY 0 len=4; state RTS; copy; = SUCCESS len=4"},
    {"RSP-26 COMM_EST", {.type = QP_UC, .rtr = true}, "recv 8; < SEND_ONLY 0 len=4; ! COMM_EST; ! HOOK; = SUCCESS len=4"},
    {"MR-12 memory that can't be reached", UC, "recv 8; hold; < SEND_ONLY 0 len=4; copy fail; = LOC_PROT_ERR; state ERR"},
};
/* clang-format on */

int main(void)
{
    return script_main("responder, UC", scripts, sizeof(scripts) / sizeof(scripts[0]));
}
