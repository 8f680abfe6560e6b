/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The RC responder: READ and ATOMIC requests, their answers, and the same once more.
 */
#include "resp_script.h"

/* A script stands as it is read. */
/* clang-format off */
#define ONE {.rd_atomic = 1}
#define RNR {.rd_atomic = 1, .rnr_on_rd_res = true}

static const struct script scripts[] = {
    {"RD-04 RD-05 READ of one packet", {0},
     "< READ_REQUEST 0 dma=100 va=32 ack; > READ_RESP_ONLY 0 len=100 syn=1f msn=1 from=32"},
    {"RD-05 READ of no octets; key and address don't matter", {0},
     "< READ_REQUEST 0 dma=0 key=none va=-5; > READ_RESP_ONLY 0 len=0 syn=1f msn=1"},
    {"RD-05 READ of exactly two packets", {0},
     "< READ_REQUEST 0 dma=512; > READ_RESP_FIRST 0 len=256 syn=1f msn=1 from=0; > READ_RESP_LAST 1 len=256 syn=1f msn=1 from=256"},
    {"RD-05 RD-16 FIRST, MIDDLE, LAST; no further ACK", {0},
     "< READ_REQUEST 0 dma=515 ack\n"
     "> READ_RESP_FIRST 0 len=256 from=0; > READ_RESP_MIDDLE 1 len=256 from=256; > READ_RESP_LAST 2 len=3 from=512"},
    {"RSP-03 the next request follows the last response's PSN", {0},
     "< READ_REQUEST 0 dma=515; < WRITE_ONLY 3 len=4 ack va=1024\n"
     "> READ_RESP_FIRST 0; > READ_RESP_MIDDLE 1; > READ_RESP_LAST 2; > ACKNOWLEDGE 3 msn=2"},
    {"RSP-03 a request within the READ's PSNs is a duplicate", {0},
     "< READ_REQUEST 0 dma=515; > READ_RESP_FIRST 0; > READ_RESP_MIDDLE 1; > READ_RESP_LAST 2\n"
     "< WRITE_ONLY 1 len=4; > ACKNOWLEDGE -1 msn=1; count duplicate_request 1; mem 0 4 clean"},
    {"RD-02 a READ sees the WRITEs before it", {0},
     "< WRITE_ONLY 0 len=8 va=8; < READ_REQUEST 1 dma=8 va=0; > READ_RESP_ONLY 1 from=0 msn=2; mem 8 8 is 0:0"},
    {"RD-02 and waits for them", {0},
     "hold; < WRITE_ONLY 0 len=8 va=8 ack; < READ_REQUEST 1 dma=8 va=0; count tx_packets 0\n"
     "copy; > READ_RESP_ONLY 1 msn=2"},
    {"ACK-05 an ACK doesn't overtake the responses before it", {0},
     "notx; < READ_REQUEST 0 dma=515; < WRITE_ONLY 3 len=4 ack va=1024; < READ_REQUEST 4 dma=4; < WRITE_ONLY 5 len=4 ack va=1024; tx\n"
     "> READ_RESP_FIRST 0; > READ_RESP_MIDDLE 1; > READ_RESP_LAST 2; > READ_RESP_ONLY 4; > ACKNOWLEDGE 5 msn=4"},
    {"ACK-03 a response acknowledges the WRITEs before it", {0},
     "< WRITE_ONLY 0 len=4 ack va=512; < READ_REQUEST 1 dma=4; > READ_RESP_ONLY 1 msn=2"},
    {"ACK-09 a NAK doesn't overtake them either", {0},
     "notx; < READ_REQUEST 0 dma=300; < WRITE_ONLY 2 len=4 key=none; tx\n"
     "> READ_RESP_FIRST 0; > READ_RESP_LAST 1; > ACKNOWLEDGE 2 syn=62 msn=1; ! QP_ACCESS_ERR; state ERR"},

    {"RD-07 what was still to be sent isn't", {0},
     "gather fail; < READ_REQUEST 0 dma=10240; > ACKNOWLEDGE 0 syn=62 msn=1; ! QP_ACCESS_ERR; state ERR; count tx_packets 1"},
    {"ACK-07 a gap after a READ is NAKed after its PSNs", {0},
     "< READ_REQUEST 0 dma=515; < WRITE_ONLY 4 len=4; > READ_RESP_FIRST 0; > READ_RESP_MIDDLE 1; > READ_RESP_LAST 2; > ACKNOWLEDGE 3 syn=60"},
    {"ACK-08 a NAK that waits for READ responses names the gap that is left; no second one follows", {0},
     "notx; < READ_REQUEST 0 dma=4; < WRITE_ONLY 2 len=4 va=512; < WRITE_ONLY 1 len=4 va=512; tx\n"
     "> READ_RESP_ONLY 0; > ACKNOWLEDGE 2 syn=60 msn=2; < WRITE_ONLY 3 len=4 va=512; < WRITE_ONLY 2 len=4 ack va=512\n"
     "> ACKNOWLEDGE 2 syn=1f msn=3"},
    {"ACK-07 a gap after an ATOMIC", {0},
     "< FETCH_ADD 0 va=8 add=1; < WRITE_ONLY 4 len=4; > ATOMIC_ACK 0; > ACKNOWLEDGE 1 syn=60"},

    /* ---- refusals ---- */
    {"RSP-14 RD-01 READ with an unknown key", {0},
     "< READ_REQUEST 0 dma=4 key=none; > ACKNOWLEDGE 0 syn=62; ! QP_ACCESS_ERR; state ERR"},
    {"RSP-14 READ from a region without REMOTE_READ", {0},
     "< READ_REQUEST 0 dma=4 key=wo; > ACKNOWLEDGE 0 syn=62; ! QP_ACCESS_ERR; state ERR"},
    {"RSP-14 READ one octet past the region", {0},
     "< READ_REQUEST 0 dma=16385; > ACKNOWLEDGE 0 syn=62; ! QP_ACCESS_ERR; state ERR"},
    {"RSP-15 READ longer than 2^31", {0},
     "< READ_REQUEST 0 dma=0x80000001; > ACKNOWLEDGE 0 syn=61; ! QP_REQ_ERR; state ERR"},
    {"RD-03 max_dest_rd_atomic 0", {.rd_atomic = 255},
     "< READ_REQUEST 0 dma=4; > ACKNOWLEDGE 0 syn=61; ! QP_REQ_ERR; state ERR"},
    {"RD-03 twice max_dest_rd_atomic may wait", ONE,
     "notx; < READ_REQUEST 0 dma=4; < READ_REQUEST 1 dma=4; state RTS; tx; > READ_RESP_ONLY 0; > READ_RESP_ONLY 1"},
    {"RD-03 one more may not", ONE,
     "notx; < READ_REQUEST 0 dma=4; < READ_REQUEST 1 dma=4; < READ_REQUEST 2 dma=4; tx\n"
     "> READ_RESP_ONLY 0; > READ_RESP_ONLY 1; > ACKNOWLEDGE 2 syn=61; ! QP_REQ_ERR; state ERR"},
    {"RD-03 answered ones are no burden", ONE,
     "< READ_REQUEST 0 dma=4; < READ_REQUEST 1 dma=4; > READ_RESP_ONLY 0; > READ_RESP_ONLY 1\n"
     "< READ_REQUEST 2 dma=4; < READ_REQUEST 3 dma=4; > READ_RESP_ONLY 2; > READ_RESP_ONLY 3"},
    {"RD-03 QP-01 max_dest_rd_atomic grows in SQD, whatever is waiting", ONE,
     "< READ_REQUEST 0 dma=4; > READ_RESP_ONLY 0; notx; < READ_REQUEST 1 dma=4; < READ_REQUEST 2 dma=4; dest 3\n"
     "< READ_REQUEST 3 dma=4; < READ_REQUEST 4 dma=4; < READ_REQUEST 5 dma=4; < READ_REQUEST 6 dma=4; state RTS; tx\n"
     "> READ_RESP_ONLY 1; > READ_RESP_ONLY 2; > READ_RESP_ONLY 3; > READ_RESP_ONLY 4; > READ_RESP_ONLY 5; > READ_RESP_ONLY 6\n"
     "< READ_REQUEST 1 dma=4; > READ_RESP_ONLY 1"},
    {"RD-03 QP-01 and shrinks", {.rd_atomic = 2},
     "dest 1; notx; < READ_REQUEST 0 dma=4; < READ_REQUEST 1 dma=4; < READ_REQUEST 2 dma=4; tx\n"
     "> READ_RESP_ONLY 0; > READ_RESP_ONLY 1; > ACKNOWLEDGE 2 syn=61; ! QP_REQ_ERR; state ERR"},
    {"RNR-11 rnr_on_rd_res: requests above max_dest_rd_atomic wait at the requester", RNR,
     "notx; < READ_REQUEST 0 dma=4; < READ_REQUEST 1 dma=4; < READ_REQUEST 2 dma=4; tx\n"
     "> READ_RESP_ONLY 0; > ACKNOWLEDGE 1 syn=2c; state RTS; count tx_rnr_nak 1\n"
     "< READ_REQUEST 1 dma=4; > READ_RESP_ONLY 1 msn=2; < READ_REQUEST 2 dma=4; > READ_RESP_ONLY 2 msn=3"},
    {"RNR-11 rnr_on_rd_res: atomics too, and they aren't executed", RNR,
     "put 8 val=41; notx; < READ_REQUEST 0 dma=4; < FETCH_ADD 1 va=8 add=1; tx; > READ_RESP_ONLY 0\n"
     "> ACKNOWLEDGE 1 syn=2c; mem 8 8 val=41; < FETCH_ADD 1 va=8 add=1; > ATOMIC_ACK 1 orig=41; mem 8 8 val=42"},
    {"RNR-11 RD-03 rnr_on_rd_res: waiting wouldn't help when there are none at all", {.rd_atomic = 255, .rnr_on_rd_res = true},
     "< READ_REQUEST 0 dma=4; > ACKNOWLEDGE 0 syn=61; ! QP_REQ_ERR; state ERR"},
    {"RSP-01 resources are checked before the key", {.rd_atomic = 255},
     "< READ_REQUEST 0 dma=4 key=none; > ACKNOWLEDGE 0 syn=61; ! QP_REQ_ERR; state ERR"},
    {"RD-07 region invalidated before the response", {0},
     "notx; < READ_REQUEST 0 dma=515 key=ro; revoke ro; tx; > ACKNOWLEDGE 0 syn=62 msn=1; ! QP_ACCESS_ERR; state ERR"},
    {"RD-07 memory that can't be read: NAK with the PSN of that response", {0},
     "gather fail; < READ_REQUEST 0 dma=515; > ACKNOWLEDGE 0 syn=62 msn=1; ! QP_ACCESS_ERR; state ERR"},
    {"RD-07 MR-12 with a fatal NAK already in the same burst", {0},
     "gather fail; < READ_REQUEST 0 dma=4; < WRITE_ONLY 1 len=4 key=none\n"
     "> ACKNOWLEDGE 0 syn=62; ! QP_ACCESS_ERR; state ERR"},

    /* ---- duplicate READs ---- */
    {"RD-09 RD-10 a duplicate READ is executed again", {0},
     "< READ_REQUEST 0 dma=8; > READ_RESP_ONLY 0 msn=1 from=0; < WRITE_ONLY 1 len=8\n"
     "< READ_REQUEST 0 dma=8; > READ_RESP_ONLY 0 len=8 msn=2; mem 0 8 is 1:0; count duplicate_request 1"},
    {"RD-09 a part of it, with FIRST at its PSN", {0},
     "< READ_REQUEST 0 dma=1000; > READ_RESP_FIRST 0; > READ_RESP_MIDDLE 1; > READ_RESP_MIDDLE 2; > READ_RESP_LAST 3\n"
     "< READ_REQUEST 1 dma=744 va=256; > READ_RESP_FIRST 1 len=256 from=256 msn=1; > READ_RESP_MIDDLE 2 from=512; > READ_RESP_LAST 3 len=232 from=768"},
    {"RD-10 the last packet alone is an ONLY", {0},
     "< READ_REQUEST 0 dma=300; > READ_RESP_FIRST 0; > READ_RESP_LAST 1\n"
     "< READ_REQUEST 1 dma=44 va=256; > READ_RESP_ONLY 1 len=44 from=256"},
    {"RD-10 a later retry may start earlier again", {0},
     "< READ_REQUEST 0 dma=300; > READ_RESP_FIRST 0; > READ_RESP_LAST 1\n"
     "< READ_REQUEST 1 dma=44 va=256; > READ_RESP_ONLY 1\n"
     "< READ_REQUEST 0 dma=300; > READ_RESP_FIRST 0 from=0; > READ_RESP_LAST 1 from=256"},
    {"RD-09 shorter than the rest", {0},
     "< READ_REQUEST 0 dma=1000; > READ_RESP_FIRST 0; > READ_RESP_MIDDLE 1; > READ_RESP_MIDDLE 2; > READ_RESP_LAST 3\n"
     "< READ_REQUEST 1 dma=100 va=256; > READ_RESP_ONLY 1 len=100 from=256"},
    {"RD-09 another key: dropped", {0},
     "< READ_REQUEST 0 dma=8; > READ_RESP_ONLY 0; < READ_REQUEST 0 dma=8 key=ro; count dup_rd_atomic_miss 1; state RTS"},
    {"RD-09 SEC-05 an invalid key in a duplicate costs nothing", {0},
     "< READ_REQUEST 0 dma=8; > READ_RESP_ONLY 0; < READ_REQUEST 0 dma=8 key=none; count dup_rd_atomic_miss 1; state RTS"},
    {"RD-09 another address: dropped", {0},
     "< READ_REQUEST 0 dma=8 va=8; > READ_RESP_ONLY 0; < READ_REQUEST 0 dma=8 va=0; count dup_rd_atomic_miss 1"},
    {"RD-09 an address that doesn't go with the PSN: dropped", {0},
     "< READ_REQUEST 0 dma=600; > READ_RESP_FIRST 0; > READ_RESP_MIDDLE 1; > READ_RESP_LAST 2\n"
     "< READ_REQUEST 1 dma=88 va=512; count dup_rd_atomic_miss 1"},
    {"RD-09 longer than the rest: dropped", {0},
     "< READ_REQUEST 0 dma=600; > READ_RESP_FIRST 0; > READ_RESP_MIDDLE 1; > READ_RESP_LAST 2\n"
     "< READ_REQUEST 1 dma=345 va=256; count dup_rd_atomic_miss 1"},
    {"RD-09 none of the PSNs of a READ: dropped", {0},
     "< WRITE_ONLY 0 len=4; < READ_REQUEST 1 dma=8; > READ_RESP_ONLY 1; < READ_REQUEST 0 dma=8; count dup_rd_atomic_miss 1"},
    {"RD-09 an ATOMIC's PSN: dropped", {0},
     "< FETCH_ADD 0 add=1; > ATOMIC_ACK 0; < READ_REQUEST 0 dma=8; count dup_rd_atomic_miss 1"},
    {"RD-09 key no longer valid: NAK 0x62 with the duplicate's PSN", {0},
     "< READ_REQUEST 0 dma=300 key=ro; > READ_RESP_FIRST 0; > READ_RESP_LAST 1; < WRITE_ONLY 2 len=4 va=1024; revoke ro\n"
     "< READ_REQUEST 1 dma=44 va=256 key=ro; > ACKNOWLEDGE 1 syn=62 msn=2; ! QP_ACCESS_ERR; state ERR"},
    {"RD-11 what has not been sent yet is not asked for twice", {0},
     "notx; < READ_REQUEST 0 dma=300; < READ_REQUEST 0 dma=300; < READ_REQUEST 1 dma=44 va=256; tx\n"
     "> READ_RESP_FIRST 0; > READ_RESP_LAST 1; count duplicate_request 2"},
    {"RD-11 repeats go first", {0},
     "< READ_REQUEST 0 dma=8; > READ_RESP_ONLY 0; notx; < READ_REQUEST 1 dma=8; < READ_REQUEST 0 dma=8; tx\n"
     "> READ_RESP_ONLY 0; > READ_RESP_ONLY 1"},
    {"RD-11 two repeats at once are one", {0},
     "< READ_REQUEST 0 dma=8; > READ_RESP_ONLY 0; notx; < READ_REQUEST 0 dma=8; < READ_REQUEST 0 dma=8; tx; > READ_RESP_ONLY 0"},
    {"RD-03 the oldest of 2 * max_dest_rd_atomic can be asked for again", ONE,
     "< READ_REQUEST 0 dma=8; > READ_RESP_ONLY 0; < READ_REQUEST 1 dma=8; > READ_RESP_ONLY 1\n"
     "< READ_REQUEST 0 dma=8; > READ_RESP_ONLY 0 from=0"},
    {"RD-03 one older than that can't", ONE,
     "< READ_REQUEST 0 dma=8; > READ_RESP_ONLY 0; < READ_REQUEST 1 dma=8; > READ_RESP_ONLY 1; < READ_REQUEST 2 dma=8; > READ_RESP_ONLY 2\n"
     "< READ_REQUEST 0 dma=8; count dup_rd_atomic_miss 1"},
    {"SEC-16 eight repeats of a READ in 67 ms", {0},
     "< READ_REQUEST 0 dma=8; > READ_RESP_ONLY 0; flood 300 READ_REQUEST 0 dma=8; count rx_dup_throttled 292; count tx_packets 9\n"
     "wait 68000000; flood 20 READ_REQUEST 0 dma=8; count tx_packets 17"},
    {"SEC-16 a requester that gets on has its repeats anew", {0},
     "< READ_REQUEST 0 dma=300; > READ_RESP_FIRST 0; > READ_RESP_LAST 1; flood 20 READ_REQUEST 0 dma=300; count tx_packets 18\n"
     "< READ_REQUEST 1 dma=44 va=256; > READ_RESP_ONLY 1; count rx_dup_throttled 12"},

    {"SEC-16 going back and forth is no progress", {0},
     "< READ_REQUEST 0 dma=600; > READ_RESP_FIRST 0; > READ_RESP_MIDDLE 1; > READ_RESP_LAST 2\n"
     "< READ_REQUEST 1 dma=344 va=256; > READ_RESP_FIRST 1; > READ_RESP_LAST 2; < READ_REQUEST 2 dma=88 va=512; > READ_RESP_ONLY 2\n"
     "flood 2 READ_REQUEST 2 dma=88 va=512; flood 1 READ_REQUEST 1 dma=344 va=256\n"
     "flood 2 READ_REQUEST 2 dma=88 va=512; flood 1 READ_REQUEST 1 dma=344 va=256\n"
     "flood 2 READ_REQUEST 2 dma=88 va=512; flood 1 READ_REQUEST 1 dma=344 va=256\n"
     "flood 2 READ_REQUEST 2 dma=88 va=512; flood 1 READ_REQUEST 1 dma=344 va=256\n"
     "flood 2 READ_REQUEST 2 dma=88 va=512; flood 1 READ_REQUEST 1 dma=344 va=256; count rx_dup_throttled 7"},

    /* ---- ATOMIC ---- */
    {"ATM-01 ATM-02 ATM-06 FETCH_ADD", {0},
     "put 8 val=41; < FETCH_ADD 0 va=8 add=1; > ATOMIC_ACK 0 syn=1f msn=1 orig=41; mem 8 8 val=42; mem 0 8 clean; mem 16 8 clean"},
    {"ATM-01 FETCH_ADD wraps", {0},
     "put 8 val=0xffffffffffffffff; < FETCH_ADD 0 va=8 add=2; > ATOMIC_ACK 0 orig=0xffffffffffffffff; mem 8 8 val=1"},
    {"ATM-01 CMP_SWAP that matches", {0},
     "put 8 val=5; < CMP_SWAP 0 va=8 cmp=5 add=9; > ATOMIC_ACK 0 orig=5; mem 8 8 val=9"},
    {"ATM-01 CMP_SWAP that doesn't", {0},
     "put 8 val=5; < CMP_SWAP 0 va=8 cmp=6 add=9; > ATOMIC_ACK 0 orig=5; mem 8 8 val=5"},
    {"ATM-03 address that isn't a multiple of 8", {0},
     "< FETCH_ADD 0 va=4 add=1; > ACKNOWLEDGE 0 syn=61; ! QP_REQ_ERR; state ERR; mem 0 16 clean"},
    {"ATM-03 before the key", {0},
     "< FETCH_ADD 0 va=4 add=1 key=none; > ACKNOWLEDGE 0 syn=61; ! QP_REQ_ERR; state ERR"},
    {"ATM-04 region without REMOTE_ATOMIC", {0},
     "< FETCH_ADD 0 va=8 add=1 key=wo; > ACKNOWLEDGE 0 syn=62; ! QP_ACCESS_ERR; state ERR; mem 8 8 clean"},
    {"ATM-04 the last 8 octets of the region", {0}, "put 16376 val=1; < FETCH_ADD 0 va=16376 add=1; > ATOMIC_ACK 0 orig=1; mem 16376 8 val=2"},
    {"ATM-04 past the region", {0},
     "< FETCH_ADD 0 va=16384 add=1; > ACKNOWLEDGE 0 syn=62; ! QP_ACCESS_ERR; state ERR"},
    {"RD-03 ATOMIC with max_dest_rd_atomic 0", {.rd_atomic = 255},
     "< FETCH_ADD 0 add=1; > ACKNOWLEDGE 0 syn=61; ! QP_REQ_ERR; state ERR"},
    {"ATM-08 ATM-11 a duplicate gets the stored result, and isn't executed", {0},
     "put 8 val=41; < FETCH_ADD 0 va=8 add=1; > ATOMIC_ACK 0 orig=41; < FETCH_ADD 0 va=8 add=1; > ATOMIC_ACK 0 orig=41 msn=1; mem 8 8 val=42"},
    {"ATM-08 after other work", {0},
     "put 8 val=41; < FETCH_ADD 0 va=8 add=1; > ATOMIC_ACK 0; < FETCH_ADD 1 va=8 add=1; > ATOMIC_ACK 1 orig=42\n"
     "< FETCH_ADD 0 va=8 add=1; < FETCH_ADD 1 va=8 add=1; > ATOMIC_ACK 0 orig=41 msn=2; > ATOMIC_ACK 1 orig=42 msn=2; mem 8 8 val=43"},
    {"SEC-15 repeated results are bounded", {0},
     "put 8 val=0; < FETCH_ADD 0 va=8 add=1; > ATOMIC_ACK 0; flood 300 FETCH_ADD 0 va=8 add=1; count rx_dup_throttled 44; mem 8 8 val=1"},
    {"MR-06 an atomic that is on its way", {0},
     "put 8 val=1; hold; < FETCH_ADD 0 va=8 add=1 key=at; revoke at busy; copy; > ATOMIC_ACK 0 orig=1; mem 8 8 val=2"},
    {"ATM-08 unknown: dropped", {0},
     "< WRITE_ONLY 0 len=4 va=512; < FETCH_ADD 0 va=8 add=1; count dup_rd_atomic_miss 1; mem 8 8 clean"},
    {"ATM-08 another operation at that PSN: dropped", {0},
     "put 8 val=0; < FETCH_ADD 0 va=8 add=1; > ATOMIC_ACK 0; < CMP_SWAP 0 va=8 add=1; < FETCH_ADD 0 va=16 add=1; count dup_rd_atomic_miss 2"},
    {"ATM-08 a READ at that PSN: dropped", {0},
     "< READ_REQUEST 0 dma=8; > READ_RESP_ONLY 0; < FETCH_ADD 0 va=0 add=1; count dup_rd_atomic_miss 1; mem 0 8 clean"},
    {"ATM-08 a duplicate while the first is on its way", {0},
     "put 8 val=41; hold; < FETCH_ADD 0 va=8 add=1; state RTS; < FETCH_ADD 0 va=8 add=1; copy; > ATOMIC_ACK 0 orig=41; mem 8 8 val=42"},
    {"ATM-09 ATM-07 a result outlives 2 * max_dest_rd_atomic - 1 others", ONE,
     "put 8 val=41; < FETCH_ADD 0 va=8 add=1; > ATOMIC_ACK 0; < READ_REQUEST 1 dma=4; > READ_RESP_ONLY 1; < FETCH_ADD 0 va=8 add=1; > ATOMIC_ACK 0 orig=41"},
    {"ATM-09 one more discards it", ONE,
     "put 8 val=41; < FETCH_ADD 0 va=8 add=1; > ATOMIC_ACK 0; < READ_REQUEST 1 dma=4; > READ_RESP_ONLY 1; < READ_REQUEST 2 dma=4; > READ_RESP_ONLY 2\n"
     "< FETCH_ADD 0 va=8 add=1; count dup_rd_atomic_miss 1; mem 8 8 val=42"},
    {"MR-12 an atomic that can't be done", {0},
     "hold; < FETCH_ADD 0 va=8 add=1; copy fail; > ACKNOWLEDGE 0 syn=62 msn=0; ! QP_ACCESS_ERR; state ERR"},
    {"REQ-17 executed in order with WRITEs", {0},
     "put 8 val=0; < FETCH_ADD 0 va=8 add=5; < WRITE_ONLY 1 len=8 va=8 ack; > ATOMIC_ACK 0 orig=0; > ACKNOWLEDGE 1 msn=2; mem 8 8 is 1:0"},
};
/* clang-format on */

int main(void)
{
    return script_main("responder, READ and ATOMIC", scripts, sizeof(scripts) / sizeof(scripts[0]));
}
