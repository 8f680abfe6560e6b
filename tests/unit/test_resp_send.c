/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The RC responder: order of packets, SEND, WRITE, acknowledgements, refusals.
 */
#include "resp_script.h"

/* A script stands as it is read. */
/* clang-format off */
#define RO  {.access = MEM_REMOTE_READ}
#define RTR {.rtr = true}

static const struct script scripts[] = {
    /* ---- order ---- */
    {"RSP-02 ACK-03 expected PSNs are executed and acknowledged", {0},
     "recv 100\n"
     "< SEND_ONLY 0 len=10 ack\n"
     "= SUCCESS len=10 id=0\n"
     "> ACKNOWLEDGE 0 syn=1f msn=1\n"
     "rbuf 0 0 10 is 0:0; rbuf 0 10 16 clean"},
    {"ACK-03 no AckReq, no ACK", {0}, "recv 100; < SEND_ONLY 0 len=10; = SUCCESS len=10"},
    {"ACK-03 ACK-04 one ACK for a burst", {0},
     "< WRITE_ONLY 0 len=4 ack; < WRITE_ONLY 1 len=4 ack; < WRITE_ONLY 2 len=4 ack\n"
     "> ACKNOWLEDGE 2 msn=3"},
    {"RSP-02 ACK-08 one sequence NAK per gap", {0},
     "< WRITE_ONLY 1 len=4 ack; < WRITE_ONLY 2 len=4 ack\n"
     "> ACKNOWLEDGE 0 syn=60 msn=0\n"
     "< WRITE_ONLY 3 len=4 ack\n"
     "count out_of_sequence 3; count tx_nak_seq 1; mem 0 16 clean; state RTS"},
    {"ACK-08 ACK-07 the next gap is NAKed again, with the PSN that is missing", {0},
     "< WRITE_ONLY 1 len=4 ack\n"
     "> ACKNOWLEDGE 0 syn=60\n"
     "< WRITE_ONLY 0 len=4\n"
     "< WRITE_ONLY 5 len=4\n"
     "> ACKNOWLEDGE 1 syn=60 msn=1"},
    {"ACK-07 a NAK that waits names the PSN that is missing when it goes out", {0},
     "notx; < WRITE_ONLY 1 len=4; < WRITE_ONLY 0 len=4; tx\n"
     "> ACKNOWLEDGE 1 syn=60 msn=1"},
    {"PSN-04 the half of the numbers before it are duplicates", {0},
     "< WRITE_ONLY -8388608 len=4 ack\n"
     "> ACKNOWLEDGE -1 syn=1f msn=0\n"
     "count duplicate_request 1; mem 0 8 clean"},
    {"PSN-04 the other half are out of sequence", {0},
     "< WRITE_ONLY 8388607 len=4 ack\n"
     "> ACKNOWLEDGE 0 syn=60; count out_of_sequence 1"},
    {"RSP-04 what is refused doesn't advance the expected PSN", {0},
     "< SEND_ONLY 0 len=4 ack\n"
     "> ACKNOWLEDGE 0 syn=2c\n"
     "recv 8; < SEND_ONLY 0 len=4 ack\n"
     "= SUCCESS len=4\n"
     "> ACKNOWLEDGE 0 syn=1f msn=1"},
    {"RSP-30 what is out of order is not kept", {0},
     "< WRITE_ONLY 1 len=4 va=4; < WRITE_ONLY 0 len=4 ack\n"
     "> ACKNOWLEDGE 1 syn=60 msn=1\n"
     "mem 0 4 is 0:0; mem 4 4 clean"},

    /* ---- duplicates ---- */
    {"RSP-20 RSP-21 a duplicate SEND is acknowledged, not executed", {0},
     "recv 100; recv 100\n"
     "< SEND_ONLY 0 len=10 ack\n"
     "= SUCCESS len=10; > ACKNOWLEDGE 0 msn=1\n"
     "< SEND_ONLY 0 len=10 ack\n"
     "> ACKNOWLEDGE 0 syn=1f msn=1\n"
     "count duplicate_request 1; rbuf 1 0 16 clean"},
    {"RSP-21 a duplicate WRITE touches no memory", {0},
     "< WRITE_ONLY 0 len=4; < WRITE_ONLY 1 len=4 va=0; mem 0 4 is 1:0\n"
     "< WRITE_ONLY 0 len=4\n"
     "> ACKNOWLEDGE 1 msn=2; mem 0 4 is 1:0"},
    {"RSP-20 the last packet of a message is acknowledged again without AckReq", {0},
     "< WRITE_ONLY 0 len=4; < WRITE_ONLY 0 len=4; > ACKNOWLEDGE 0 msn=1"},
    {"RSP-20 several duplicates in a burst, one ACK", {0},
     "< WRITE_ONLY 0 len=4; < WRITE_ONLY 1 len=4\n"
     "state RTS\n"
     "< WRITE_ONLY 0 len=4 ack; < WRITE_ONLY 1 len=4 ack\n"
     "> ACKNOWLEDGE 1 msn=2; count duplicate_request 2"},
    {"RSP-20 an old middle packet without AckReq gets no answer", {0},
     "< WRITE_FIRST 0 len=256 dma=516; < WRITE_MIDDLE 1 len=256; < WRITE_LAST 2 len=4\n"
     "state RTS\n"
     "< WRITE_MIDDLE 1 len=256; count duplicate_request 1"},
    {"ACK-05 never the PSN of a READ", {0},
     "< WRITE_ONLY 0 len=4; < READ_REQUEST 1 dma=8 va=64\n"
     "> READ_RESP_ONLY 1 len=8 from=64 msn=2\n"
     "< WRITE_ONLY 0 len=4 ack\n"
     "> ACKNOWLEDGE 0 syn=1f msn=2"},
    {"ACK-05 never the PSN of an ATOMIC", {0},
     "< WRITE_ONLY 0 len=4; < FETCH_ADD 1 va=64 add=1\n"
     "> ATOMIC_ACK 1 msn=2\n"
     "< WRITE_ONLY 0 len=4 ack\n"
     "> ACKNOWLEDGE 0 syn=1f msn=2"},
    {"ACK-05 before the first SEND or WRITE: one before the start", {0},
     "< READ_REQUEST 0 dma=8\n"
     "> READ_RESP_ONLY 0\n"
     "< WRITE_ONLY -1 len=4 ack\n"
     "> ACKNOWLEDGE -1 msn=1"},
    {"SEC-15 answers to duplicates are bounded: 256 at once, then 10,000 a second", {0},
     "< WRITE_ONLY 0 len=4; flood 300 WRITE_ONLY 0 len=4 ack\n"
     "count tx_ack 256; count rx_dup_throttled 44\n"
     "wait 1000000; flood 20 WRITE_ONLY 0 len=4 ack; count tx_ack 266; count duplicate_request 320"},

    /* ---- opcode sequence ---- */
    {"RSP-06 MIDDLE without FIRST", {0},
     "< SEND_MIDDLE 0 len=256 ack; > ACKNOWLEDGE 0 syn=61; ! QP_REQ_ERR; state ERR"},
    {"RSP-06 LAST without FIRST", {0},
     "< WRITE_LAST 0 len=4 ack; > ACKNOWLEDGE 0 syn=61; ! QP_REQ_ERR; state ERR"},
    {"RSP-06 FIRST in the middle of a SEND; the receive in use fails", {0},
     "recv 1000; recv 1000\n"
     "< SEND_FIRST 0 len=256; < SEND_FIRST 1 len=256\n"
     "= REM_INV_REQ_ERR id=0; > ACKNOWLEDGE 1 syn=61; ! QP_REQ_ERR\n"
     "= WR_FLUSH_ERR id=1; state ERR"},
    {"RSP-06 WRITE LAST after SEND FIRST", {0},
     "recv 1000\n"
     "< SEND_FIRST 0 len=256; < WRITE_LAST 1 len=4\n"
     "= REM_INV_REQ_ERR; > ACKNOWLEDGE 1 syn=61; ! QP_REQ_ERR; state ERR"},
    {"RSP-06 SEND LAST after WRITE FIRST", {0},
     "< WRITE_FIRST 0 len=256 dma=260; < SEND_LAST 1 len=4\n"
     "> ACKNOWLEDGE 1 syn=61; ! QP_REQ_ERR; state ERR"},
    {"RSP-06 READ in the middle of a WRITE", {0},
     "< WRITE_FIRST 0 len=256 dma=260; < READ_REQUEST 1 dma=4\n"
     "> ACKNOWLEDGE 1 syn=61; ! QP_REQ_ERR; state ERR"},
    {"RSP-06 ATOMIC in the middle of a SEND", {0},
     "recv 1000; < SEND_FIRST 0 len=256; < FETCH_ADD 1 add=1\n"
     "= REM_INV_REQ_ERR; > ACKNOWLEDGE 1 syn=61; ! QP_REQ_ERR; state ERR; mem 0 8 clean"},

    /* ---- enabled ---- */
    {"RSP-08 WRITE not enabled on the queue pair: invalid, not access", RO,
     "< WRITE_ONLY 0 len=4; > ACKNOWLEDGE 0 syn=61; ! QP_REQ_ERR; state ERR; mem 0 4 clean"},
    {"RSP-08 ATOMIC not enabled", RO,
     "< FETCH_ADD 0 add=1; > ACKNOWLEDGE 0 syn=61; ! QP_REQ_ERR; state ERR; mem 0 8 clean"},
    {"RSP-08 READ not enabled", {.access = MEM_REMOTE_WRITE},
     "< READ_REQUEST 0 dma=4; > ACKNOWLEDGE 0 syn=61; ! QP_REQ_ERR; state ERR"},
    {"RSP-08 OPC-07 ATOMIC WRITE is not enabled", RO,
     "< ATOMIC_WRITE 0 len=8; > ACKNOWLEDGE 0 syn=61; ! QP_REQ_ERR; state ERR; mem 0 8 clean"},
    {"RSP-08 OPC-07 FLUSH is not enabled", {0},
     "< FLUSH 0; > ACKNOWLEDGE 0 syn=61; ! QP_REQ_ERR; state ERR"},
    {"RSP-01 sequence is checked before enabled", RO,
     "recv 1000; < SEND_FIRST 0 len=256; < WRITE_ONLY 1 len=4\n"
     "= REM_INV_REQ_ERR; > ACKNOWLEDGE 1 syn=61; ! QP_REQ_ERR; state ERR"},
    {"RSP-01 enabled is checked before the receive", RO,
     "< WRITE_ONLY_IMM 0 len=4; > ACKNOWLEDGE 0 syn=61; ! QP_REQ_ERR; state ERR"},
    {"RSP-01 the receive is checked before the length", {0},
     "< SEND_ONLY 0 len=300 ack; > ACKNOWLEDGE 0 syn=2c; state RTS"},
    {"RSP-01 the length is checked before the key", {0},
     "< WRITE_ONLY 0 len=300 key=none; > ACKNOWLEDGE 0 syn=61; ! QP_REQ_ERR; state ERR"},

    /* ---- receives ---- */
    {"RNR-01 SEND without a receive", {.rnr_timer = 5},
     "< SEND_ONLY 0 len=4 ack; > ACKNOWLEDGE 0 syn=25 msn=0; state RTS\n"
     "count out_of_buffer 1; count tx_rnr_nak 1; drop out_of_buffer"},
    {"RNR-01 SEND FIRST without a receive", {0},
     "< SEND_FIRST 0 len=256; > ACKNOWLEDGE 0 syn=2c; state RTS"},
    {"RNR-02 silence until the PSN comes again", {0},
     "< SEND_ONLY 0 len=4 ack; < SEND_ONLY 1 len=4 ack; < WRITE_ONLY 2 len=4 ack\n"
     "> ACKNOWLEDGE 0 syn=2c\n"
     "< SEND_ONLY 3 len=4 ack; count tx_nak_seq 0\n"
     "recv 8; < SEND_ONLY 0 len=4 ack; = SUCCESS len=4; > ACKNOWLEDGE 0 syn=1f msn=1; mem 0 4 clean"},
    {"RNR-01 SEC-23 each arrival of that PSN is told again", {0},
     "< SEND_ONLY 0 len=4; > ACKNOWLEDGE 0 syn=2c; < SEND_ONLY 0 len=4; > ACKNOWLEDGE 0 syn=2c"},
    {"RNR-03 WRITE with immediate: only the last packet is missing", {0},
     "< WRITE_FIRST 0 len=256 dma=260; < WRITE_LAST_IMM 1 len=4 imm=7 ack\n"
     "> ACKNOWLEDGE 1 syn=2c msn=0; mem 0 256 is 0:0; mem 256 8 clean\n"
     "recv 0; < WRITE_LAST_IMM 1 len=4 imm=7 ack\n"
     "= SUCCESS len=260 op=IMM imm=7; > ACKNOWLEDGE 1 syn=1f msn=1; mem 256 4 is 1:0"},
    {"RNR-03 WRITE ONLY with immediate: nothing is placed before the receive", {0},
     "< WRITE_ONLY_IMM 0 len=4 imm=7 ack; > ACKNOWLEDGE 0 syn=2c; mem 0 4 clean"},
    {"RSP-09 a WRITE takes no receive", {0},
     "recv 8; < WRITE_ONLY 0 len=4; < SEND_ONLY 1 len=4; = SUCCESS len=4 id=0"},
    {"RSP-09 RSP-23 one receive per message, in order", {0},
     "recv 600; recv 600\n"
     "< SEND_FIRST 0 len=256; < SEND_MIDDLE 1 len=256; < SEND_LAST 2 len=3 ack\n"
     "< SEND_ONLY_IMM 3 len=5 imm=0x01020304 se ack\n"
     "= SUCCESS len=515 id=0; = SUCCESS len=5 id=1 imm=0x01020304 sol\n"
     "> ACKNOWLEDGE 3 msn=2\n"
     "rbuf 0 0 256 is 0:0; rbuf 0 256 256 is 1:0; rbuf 0 512 3 is 2:0; rbuf 0 515 8 clean"},
    {"RSP-23 SEND of no octets", {0}, "recv 8; < SEND_ONLY 0 len=0 ack; = SUCCESS len=0; > ACKNOWLEDGE 0 msn=1"},
    {"RSP-23 CQ-07 solicited as the packet says", {0},
     "recv 8; recv 8; < SEND_ONLY 0 len=1 se; = SUCCESS len=1 sol; < SEND_ONLY 1 len=1; = SUCCESS len=1"},
    {"RSP-23 SGEs are filled in order", {0},
     "recv 3 0 5 100; < SEND_ONLY 0 len=20; = SUCCESS len=20; rbuf 0 0 20 is 0:0; rbuf 0 20 8 clean"},
    {"RSP-12 SEND longer than the receive", {0},
     "recv 10; recv 10; < SEND_ONLY 0 len=11 ack\n"
     "= LOC_LEN_ERR id=0; > ACKNOWLEDGE 0 syn=61; = WR_FLUSH_ERR id=1; state ERR; rbuf 0 10 1 clean\n"
     "count resp_local_length_error 1; count tx_nak_inv_req 1; count resp_cqe_error 1; drop tx_nak_inv_req"},
    {"RSP-12 the packet that goes past it", {0},
     "recv 300; < SEND_FIRST 0 len=256; < SEND_LAST 1 len=45\n"
     "= LOC_LEN_ERR; > ACKNOWLEDGE 1 syn=61; state ERR; rbuf 0 300 8 clean"},
    {"RSP-13 receive buffer that isn't writable", {0},
     "recv-bad 10; < SEND_ONLY 0 len=4\n"
     "= LOC_PROT_ERR; > ACKNOWLEDGE 0 syn=63; state ERR; count tx_nak_rem_op 1; rbuf 0 0 4 clean"},
    {"RSP-13 a receive that isn't ours to its end takes what fits into what is", {0},
     "recv 900000000; < SEND_FIRST 0 len=256; < SEND_LAST 1 len=3 ack\n"
     "= SUCCESS len=259; > ACKNOWLEDGE 1 msn=1; rbuf 0 0 256 is 0:0; rbuf 0 256 3 is 1:0; rbuf 0 259 8 clean"},
    {"RSP-13 malformed receive", {0},
     "recv-malformed; < SEND_ONLY 0 len=4; = LOC_QP_OP_ERR; > ACKNOWLEDGE 0 syn=63; state ERR"},
    {"RSP-28 receive CQ overflow: no ACK, queue pair in error", {.cq_room = 1},
     "recv 8; recv 8\n"
     "< SEND_ONLY 0 len=1 ack; = SUCCESS len=1; > ACKNOWLEDGE 0 msn=1\n"
     "< SEND_ONLY 1 len=1 ack; ! CQ_ERR; ! QP_FATAL; state ERR; count cq_overflow 1"},

    /* ---- length and pad ---- */
    {"RSP-10 SEND FIRST shorter than the MTU", {0},
     "recv 1000; < SEND_FIRST 0 len=252; = LOC_LEN_ERR; > ACKNOWLEDGE 0 syn=61; state ERR"},
    {"RSP-10 SEND MIDDLE longer than the MTU", {0},
     "recv 1000; < SEND_FIRST 0 len=256; < SEND_MIDDLE 1 len=260\n"
     "= LOC_LEN_ERR; > ACKNOWLEDGE 1 syn=61; state ERR"},
    {"RSP-10 SEND LAST of no octets", {0},
     "recv 1000; < SEND_FIRST 0 len=256; < SEND_LAST 1 len=0; = LOC_LEN_ERR; > ACKNOWLEDGE 1 syn=61; state ERR"},
    {"RSP-10 SEND ONLY longer than the MTU", {0},
     "recv 1000; < SEND_ONLY 0 len=257; = LOC_LEN_ERR; > ACKNOWLEDGE 0 syn=61; state ERR"},
    {"RSP-10 WRITE FIRST shorter than the MTU; event since no receive tells", {0},
     "< WRITE_FIRST 0 len=252 dma=512; > ACKNOWLEDGE 0 syn=61; ! QP_REQ_ERR; state ERR; mem 0 4 clean"},
    {"RSP-11 pad on a FIRST", {0},
     "recv 1000; < SEND_FIRST 0 len=260 pad=3; = LOC_LEN_ERR; > ACKNOWLEDGE 0 syn=61; state ERR"},
    {"RSP-11 pad that doesn't fit the length in the RETH", {0},
     "< WRITE_ONLY 0 len=8 dma=7 pad=2; > ACKNOWLEDGE 0 syn=61; ! QP_REQ_ERR; state ERR; mem 0 8 clean"},
    {"RSP-11 HDR-05 the length of a SEND is what the pad says", {0},
     "recv 100; < SEND_ONLY 0 len=8 pad=3; = SUCCESS len=5; rbuf 0 5 3 clean"},
    {"RSP-15 RETH length above 2^31", {0},
     "< WRITE_FIRST 0 len=256 dma=0x80000001; > ACKNOWLEDGE 0 syn=61; ! QP_REQ_ERR; state ERR"},
    {"RSP-16 WRITE shorter than its RETH", {0},
     "< WRITE_FIRST 0 len=256 dma=300; < WRITE_LAST 1 len=40; > ACKNOWLEDGE 1 syn=61; ! QP_REQ_ERR; state ERR"},
    {"RSP-16 WRITE longer than its RETH: nothing past it is written", {0},
     "< WRITE_FIRST 0 len=256 dma=300; < WRITE_LAST 1 len=48\n"
     "> ACKNOWLEDGE 1 syn=61; ! QP_REQ_ERR; state ERR; mem 256 64 clean"},
    {"RSP-16 too long in the middle already", {0},
     "< WRITE_FIRST 0 len=256 dma=300; < WRITE_MIDDLE 1 len=256\n"
     "> ACKNOWLEDGE 1 syn=61; ! QP_REQ_ERR; state ERR; mem 256 64 clean"},
    {"RSP-16 ONLY with another length", {0},
     "< WRITE_ONLY 0 len=4 dma=8; > ACKNOWLEDGE 0 syn=61; ! QP_REQ_ERR; state ERR; mem 0 8 clean"},
    {"RSP-18 WRITE of no octets: key and address don't matter", {0},
     "< WRITE_ONLY 0 len=0 key=none va=99999999 ack; > ACKNOWLEDGE 0 syn=1f msn=1; state RTS"},
    {"RSP-18 with immediate it takes a receive", {0},
     "recv 0; < WRITE_ONLY_IMM 0 len=0 key=none imm=9 ack\n"
     "= SUCCESS len=0 op=IMM imm=9; > ACKNOWLEDGE 0 msn=1"},

    /* ---- keys ---- */
    {"RSP-14 SEC-10 unknown key: one guess, and the queue pair is gone", {0},
     "< WRITE_ONLY 0 len=4 key=none; > ACKNOWLEDGE 0 syn=62 msn=0; ! QP_ACCESS_ERR; state ERR\n"
     "count resp_remote_access_errors 1; count tx_nak_rem_access 1"},
    {"RSP-14 SEC-13 wrong variant octet", {0},
     "< WRITE_ONLY 0 len=4 key=variant; > ACKNOWLEDGE 0 syn=62; ! QP_ACCESS_ERR; state ERR; mem 0 4 clean"},
    {"RSP-14 MR-05 key of another domain", {0},
     "< WRITE_ONLY 0 len=4 key=pd2; > ACKNOWLEDGE 0 syn=62; ! QP_ACCESS_ERR; state ERR; mem 0 4 clean"},
    {"RSP-14 region without REMOTE_WRITE", {0},
     "< WRITE_ONLY 0 len=4 key=ro; > ACKNOWLEDGE 0 syn=62; ! QP_ACCESS_ERR; state ERR; mem 0 4 clean"},
    {"RSP-14 MR-04 one octet past the region", {0},
     "< WRITE_ONLY 0 len=4 va=16381; > ACKNOWLEDGE 0 syn=62; ! QP_ACCESS_ERR; state ERR; mem 16380 4 clean"},
    {"RSP-14 one octet before it", {0},
     "< WRITE_ONLY 0 len=4 va=-1; > ACKNOWLEDGE 0 syn=62; ! QP_ACCESS_ERR; state ERR; mem 0 4 clean"},
    {"RSP-14 the whole range is checked at the first packet", {0},
     "< WRITE_FIRST 0 len=256 dma=16385; > ACKNOWLEDGE 0 syn=62; ! QP_ACCESS_ERR; state ERR; mem 0 256 clean"},
    {"RSP-14 the last octet of the region", {0},
     "< WRITE_ONLY 0 len=4 va=16380 ack; > ACKNOWLEDGE 0 msn=1; mem 16380 4 is 0:0"},
    {"RSP-17 region invalidated under a WRITE", {0},
     "< WRITE_FIRST 0 len=256 dma=516 key=wo; < WRITE_MIDDLE 1 len=256\n"
     "revoke wo\n"
     "< WRITE_LAST 2 len=4 ack; > ACKNOWLEDGE 2 syn=62; ! QP_ACCESS_ERR; state ERR; mem 512 4 clean"},
    {"RSP-14 EVT-02 with immediate: the receive it took is flushed, the event tells why", {0},
     "recv 0; < WRITE_ONLY_IMM 0 len=4 key=none imm=9; > ACKNOWLEDGE 0 syn=62 msn=0; ! QP_ACCESS_ERR\n"
     "= WR_FLUSH_ERR id=0; state ERR"},
    {"RSP-17 EVT-02 the same for a region invalidated before the last packet", {0},
     "recv 0; < WRITE_FIRST 0 len=256 dma=260 key=wo; revoke wo; < WRITE_LAST_IMM 1 len=4 imm=9 ack\n"
     "> ACKNOWLEDGE 1 syn=62; ! QP_ACCESS_ERR; = WR_FLUSH_ERR id=0; state ERR; mem 256 4 clean"},
    {"MR-06 a region with a copy pending", {0},
     "hold; < WRITE_ONLY 0 len=4 key=wo ack; revoke wo busy; copy; > ACKNOWLEDGE 0 msn=1; mem 0 4 is 0:0"},
    {"RSP-22 RSP-05 after a fatal NAK nothing is answered", {0},
     "< WRITE_ONLY 0 len=4 key=none; < WRITE_ONLY 1 len=4 ack\n"
     "> ACKNOWLEDGE 0 syn=62; ! QP_ACCESS_ERR; state ERR\n"
     "< WRITE_ONLY 0 len=4 ack; < WRITE_ONLY 1 len=4 ack; count rx_bad_qp_state 3; mem 0 8 clean"},
    {"SEC-05 a bad key in another position costs nothing", {0},
     "< WRITE_ONLY 1 len=4 key=none; > ACKNOWLEDGE 0 syn=60; < WRITE_ONLY -1 len=4 key=none\n"
     "> ACKNOWLEDGE -1 syn=1f; state RTS"},
    {"ACK-09 a fatal NAK acknowledges what was before it", {0},
     "< WRITE_ONLY 0 len=4 ack; < WRITE_ONLY 1 len=4 key=none\n"
     "> ACKNOWLEDGE 1 syn=62 msn=1; ! QP_ACCESS_ERR; state ERR; mem 0 4 is 0:0"},

    {"RSP-05 nothing is accepted after a request that will be refused", {0},
     "hold; < WRITE_ONLY 0 len=4; < WRITE_ONLY 1 len=4 key=none; < WRITE_ONLY 1 len=4 va=8\n"
     "copy; > ACKNOWLEDGE 1 syn=62 msn=1; ! QP_ACCESS_ERR; state ERR; mem 8 4 clean; count rx_bad_qp_state 1"},
    {"MR-06 a receive buffer with a copy pending", {0},
     "recv 8; hold; < SEND_ONLY 0 len=4 ack; revoke recv busy; copy; = SUCCESS len=4; > ACKNOWLEDGE 0 msn=1"},
    {"SEC-29 RSP-29 too many copies pending: as if lost, before anything changes", {0},
     "hold; flood+ 4079 WRITE_ONLY 0 len=4; count rx_copy_pending 0; count rx_write_requests 4079\n"
     "< WRITE_ONLY 4079 len=4; drop rx_copy_pending; < WRITE_ONLY 4080 len=4; drop rx_copy_pending\n"
     "copy; < WRITE_ONLY 4079 len=4 ack; > ACKNOWLEDGE 4079 msn=4080"},

    /* ---- invalidate ---- */
    {"RSP-19 SEND with invalidate", {0},
     "recv 8; < SEND_ONLY_INV 0 len=4 key=win ack; = SUCCESS len=4 inv; > ACKNOWLEDGE 0 msn=1\n"
     "< WRITE_ONLY 1 len=4 key=win; > ACKNOWLEDGE 1 syn=62; ! QP_ACCESS_ERR; state ERR"},
    {"RSP-19 later packets of the same burst may not use the key", {0},
     "recv 8; hold; < SEND_ONLY_INV 0 len=4 key=win; < WRITE_ONLY 1 len=4 key=win; copy\n"
     "= SUCCESS len=4 inv; > ACKNOWLEDGE 1 syn=62; ! QP_ACCESS_ERR; state ERR; mem 0 4 clean"},
    {"RSP-19 a key that can't be invalidated: error, no ACK", {0},
     "recv 8; < SEND_ONLY_INV 0 len=4 key=rw ack; = REM_INV_REQ_ERR; state ERR"},
    {"RSP-19 and nothing after it is accepted", {0},
     "recv 8; hold; < SEND_ONLY_INV 0 len=4 key=rw; < WRITE_ONLY 1 len=4; copy; = REM_INV_REQ_ERR; state ERR; mem 0 4 clean"},

    /* ---- the contents of an ACK ---- */
    {"ACK-11 MSN counts messages, not packets", {0},
     "< WRITE_FIRST 0 len=256 dma=260 ack; > ACKNOWLEDGE 0 msn=0\n"
     "< WRITE_LAST 1 len=4 ack; > ACKNOWLEDGE 1 msn=1"},
    {"ACK-11 duplicates don't count", {0},
     "< WRITE_ONLY 0 len=4 ack; > ACKNOWLEDGE 0 msn=1; < WRITE_ONLY 0 len=4 ack; > ACKNOWLEDGE 0 msn=1"},
    {"ACK-11 READ and ATOMIC count", {0},
     "< READ_REQUEST 0 dma=4; > READ_RESP_ONLY 0 msn=1; < FETCH_ADD 1 add=1; > ATOMIC_ACK 1 msn=2\n"
     "< WRITE_ONLY 2 len=4 ack; > ACKNOWLEDGE 2 msn=3"},
    {"RSP-24 RSP-25 no ACK and no completion before the octets are in memory", {0},
     "recv 8; hold; < SEND_ONLY 0 len=4 ack; < WRITE_ONLY 1 len=4 ack; state RTS; count tx_ack 0\n"
     "copy; = SUCCESS len=4; > ACKNOWLEDGE 1 msn=2"},
    {"RSP-24 a sequence NAK waits too, since it acknowledges", {0},
     "hold; < WRITE_ONLY 0 len=4; < WRITE_ONLY 2 len=4; count tx_nak_seq 0\n"
     "copy; > ACKNOWLEDGE 1 syn=60 msn=1; mem 0 4 is 0:0"},
    {"RSP-20 a duplicate of what is still on its way is acknowledged when it has arrived", {0},
     "hold; < WRITE_ONLY 0 len=4; state RTS; < WRITE_ONLY 0 len=4 ack; count tx_ack 0\n"
     "copy; > ACKNOWLEDGE 0 msn=1"},
    {"MR-12 target memory that can't be reached: NAK 0x62", {0},
     "hold; < WRITE_ONLY 0 len=4 ack; < WRITE_ONLY 1 len=4 ack; copy fail\n"
     "> ACKNOWLEDGE 0 syn=62 msn=0; ! QP_ACCESS_ERR; state ERR"},
    {"MR-12 receive buffer that can't be reached", {0},
     "recv 8; recv 8; hold; < SEND_ONLY 0 len=4 ack; < SEND_ONLY 1 len=4 ack; copy fail\n"
     "= LOC_PROT_ERR id=0; > ACKNOWLEDGE 0 syn=63; = WR_FLUSH_ERR id=1; state ERR"},
    {"MR-12 the same when the first of two buffers fails", {0},
     "recv 2 8; hold; < SEND_ONLY 0 len=4 ack; copy fail; = LOC_PROT_ERR; > ACKNOWLEDGE 0 syn=63; state ERR"},

    /* ---- states ---- */
    {"RSP-26 COMM_EST once, at the first good request in RTR", RTR,
     "recv 8; recv 8; < SEND_ONLY 0 len=4; ! COMM_EST; ! HOOK; = SUCCESS len=4; < SEND_ONLY 1 len=4; = SUCCESS len=4"},
    {"RSP-26 not for a packet out of sequence", RTR, "< WRITE_ONLY 3 len=4; > ACKNOWLEDGE 0 syn=60"},
    {"RSP-27 requests are executed and answered in RTR", RTR,
     "< WRITE_ONLY 0 len=4 ack; ! COMM_EST; ! HOOK; > ACKNOWLEDGE 0 msn=1; < READ_REQUEST 1 dma=4; > READ_RESP_ONLY 1"},
    {"QP-11 an ACK that is owed goes out after the consumer's move to ERR", {0},
     "recv 8; notx; < SEND_ONLY 0 len=4 ack; = SUCCESS len=4; err; tx; > ACKNOWLEDGE 0 msn=1; state ERR"},
    {"QP-11 nothing else does", {0}, "notx; < READ_REQUEST 0 dma=4; err; tx; state ERR"},
    {"QP-12 receives are flushed in order", {0},
     "recv 8; recv 8; recv 8; err; = WR_FLUSH_ERR id=0; = WR_FLUSH_ERR id=1; = WR_FLUSH_ERR id=2"},
    {"QP-12 with a message under way", {0},
     "recv 600; recv 8; < SEND_FIRST 0 len=256; err; = WR_FLUSH_ERR id=0; = WR_FLUSH_ERR id=1"},
    {"QP-12 with copies pending: flushed when they are over", {0},
     "recv 8; hold; < SEND_ONLY 0 len=4 ack; err; state ERR; copy; = WR_FLUSH_ERR id=0"},
    {"QP-13 posted after the flush: flushed too", {0}, "err; recv 8; = WR_FLUSH_ERR id=0"},
    {"QP-04 RESET forgets receives without completions", {0}, "recv 8; reset; state RESET"},
    {"QP-14 no completion after destroy, with copies pending", {0},
     "recv 8; hold; < SEND_ONLY 0 len=4 ack; dead; copy"},

    {"QP-11 no ACK overtakes a READ response that will never go out", {0},
     "notx; < READ_REQUEST 0 dma=4; < WRITE_ONLY 1 len=4 ack; err; tx; state ERR"},
    {"QP-11 nor a NAK", {0}, "notx; < WRITE_ONLY 1 len=4; err; tx; state ERR"},
    {"QP-11 nor a repeat", {0},
     "< READ_REQUEST 0 dma=4; > READ_RESP_ONLY 0; notx; < READ_REQUEST 0 dma=4; err; tx; state ERR"},
    {"QP-11 an error of its own ends owed ACKs too", {.cq_room = 1},
     "recv 8; recv 8; < SEND_ONLY 0 len=1; = SUCCESS len=1\n"
     "< WRITE_ONLY 1 len=4 ack; < SEND_ONLY 2 len=1 ack; ! CQ_ERR; ! QP_FATAL; state ERR; count tx_ack 0"},
    {"QP-04 QP-06 RESET forgets the message under way, PSN and MSN", {0},
     "recv 600; < SEND_FIRST 0 len=256; reset; room 64; rts; recv 8; < SEND_ONLY 0 len=4 ack\n"
     "= SUCCESS len=4 id=1; > ACKNOWLEDGE 0 msn=1; room 64"},
    {"ATM-09 QP-04 RESET forgets atomic results", {0},
     "put 8 val=1; < FETCH_ADD 0 va=8 add=1; > ATOMIC_ACK 0; reset; rts; < WRITE_ONLY 0 len=4; < FETCH_ADD 0 va=8 add=1\n"
     "count dup_rd_atomic_miss 1; mem 8 8 val=2"},
    {"RSP-09 completed and flushed receives make room", {0},
     "recv 8; room 63; < SEND_ONLY 0 len=4; = SUCCESS len=4; room 64; recv 8; < SEND_ONLY 1 len=4; = SUCCESS len=4\n"
     "recv 8; recv 8; room 62; err; = WR_FLUSH_ERR; = WR_FLUSH_ERR; room 64"},
    {"RSP-23 a message over several buffers and packets", {0},
     "recv 100 0 200 300; < SEND_FIRST 0 len=256; < SEND_LAST 1 len=200; = SUCCESS len=456\n"
     "rbuf 0 0 256 is 0:0; rbuf 0 256 200 is 1:0; rbuf 0 456 32 clean"},
    {"RSP-13 malformed receive for a WRITE with immediate", {0},
     "recv-malformed; < WRITE_ONLY_IMM 0 len=4 imm=1; = LOC_QP_OP_ERR; > ACKNOWLEDGE 0 syn=63; state ERR; mem 0 4 clean"},
    {"CTR-01 requests are counted by kind, once for each message", {0},
     "put 8 val=0; < WRITE_FIRST 0 len=256 dma=260 va=512; < WRITE_LAST 1 len=4; < READ_REQUEST 2 dma=4; < FETCH_ADD 3 va=8 add=1\n"
     "> READ_RESP_ONLY 2; > ATOMIC_ACK 3; count rx_write_requests 1; count rx_read_requests 1; count rx_atomic_requests 1"},
    {"RNR-02 an RNR NAK that is out of date becomes a sequence NAK", {0},
     "notx; < SEND_ONLY 0 len=4; < WRITE_ONLY 1 len=4; recv 8; < SEND_ONLY 0 len=4; = SUCCESS len=4; tx\n"
     "> ACKNOWLEDGE 1 syn=60 msn=1"},

    /* ---- credits ---- */
    {"ACK-13 without negotiation the credit code is 31", {0}, "recv 8; < WRITE_ONLY 0 len=4 ack; > ACKNOWLEDGE 0 syn=1f"},
    {"ACK-12 receives posted, rounded down", {.credits = true},
     "recv 8; > ACKNOWLEDGE -1 syn=01; recv 8; recv 8; > ACKNOWLEDGE -1 syn=03; recv 8; recv 8\n"
     "< WRITE_ONLY 0 len=4 ack; > ACKNOWLEDGE 0 syn=04 msn=1"},
    {"ACK-16 receives posted end a wait for credits", {.credits = true},
     "recv 8; > ACKNOWLEDGE -1 syn=01; < SEND_ONLY 0 len=4 ack; = SUCCESS len=4; > ACKNOWLEDGE 0 syn=00 msn=1\n"
     "recv 8; > ACKNOWLEDGE 0 syn=01 msn=1"},
    {"ACK-12 the receive of a message under way counts until the MSN does", {.credits = true},
     "recv 600; > ACKNOWLEDGE -1 syn=01; < SEND_FIRST 0 len=256 ack; > ACKNOWLEDGE 0 syn=01 msn=0; < SEND_LAST 1 len=4 ack\n"
     "= SUCCESS len=260; > ACKNOWLEDGE 1 syn=00 msn=1"},
    {"ACK-16 in SQD, too: only what it sends of its own is held", {.credits = true},
     "sqd; recv 8; > ACKNOWLEDGE -1 syn=01"},
    {"ACK-16 QP-11 in ERR nobody is invited to send", {.credits = true},
     "hold; < WRITE_ONLY 0 len=4; err; state ERR; recv 8; copy; = WR_FLUSH_ERR id=0"},
    {"ACK-16 RSP-05 nor when a request has been refused", {.credits = true},
     "hold; < WRITE_ONLY 0 len=4; < WRITE_ONLY 1 len=4 key=none; recv 8; copy; > ACKNOWLEDGE 1 syn=62; = WR_FLUSH_ERR id=0; ! QP_ACCESS_ERR; state ERR"},
    {"ACK-14 SRQ-08 never with a shared receive queue", {.credits = true, .srq = true},
     "recv 8; < WRITE_ONLY 0 len=4 ack; > ACKNOWLEDGE 0 syn=1f"},
};
/* clang-format on */

int main(void)
{
    return script_main("responder", scripts, sizeof(scripts) / sizeof(scripts[0]));
}
