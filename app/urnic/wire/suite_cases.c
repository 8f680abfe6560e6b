/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The cases of the test suite: which rules, which traffic, which check.
 */
#include "suite.h"

#define K64 65536u

const struct suite_case suite_cases[] = {
    /* The device is the responder: requests from side A. */
    {"lost-request", "RSP-02", "a WRITE packet of the tester is lost",
     "drop a->b write nth 10 first-tx", 0, "write", K64, 12, 1, FAULT_AB,
     WIRE_F_WRITE | WIRE_F_SEND, false, suite_check_lost},
    {"lost-twice", "ACK-08", "a WRITE packet of the tester is lost, and lost again",
     "drop a->b write nth 10 first-tx\ndrop a->b write retx nth 1", 0, "write", K64, 12, 1,
     FAULT_AB, WIRE_F_WRITE | WIRE_F_SEND, false, suite_check_lost_twice},
    {"late-request", "ACK-08", "a WRITE packet of the tester arrives after the next three",
     "reorder 3 within 100ms a->b write nth 10 first-tx", 0, "write", K64, 12, 1, FAULT_AB,
     WIRE_F_WRITE | WIRE_F_SEND, false, suite_check_reordered},
    {"request-twice", "RSP-20", "a WRITE packet of the tester comes twice",
     "duplicate a->b write nth 10 first-tx", 0, "write", K64, 12, 1, FAULT_AB,
     WIRE_F_WRITE | WIRE_F_SEND, false, suite_check_duplicated},
    {"answers-lost", "RSP-20",
     "no acknowledgement of the device arrives until the tester sends again", "drop b->a ack", 0,
     "write", K64, 12, 1, FAULT_AB, WIRE_F_WRITE | WIRE_F_SEND, true, suite_check_answers_lost},
    {"bad-icrc", "ICRC-08", "the iCRC of a WRITE packet of the tester is wrong",
     "corrupt icrc a->b write nth 10 first-tx", 0, "write", K64, 12, 1, FAULT_AB,
     WIRE_F_WRITE | WIRE_F_SEND, false, suite_check_bad_icrc},
    {"bad-payload", "ICRC-08", "an octet of a WRITE packet of the tester is damaged",
     "corrupt payload 5 a->b write nth 10 first-tx", 0, "write", K64, 12, 1, FAULT_AB,
     WIRE_F_WRITE | WIRE_F_SEND, false, suite_check_bad_icrc},
    {"marked", "CC-03", "everything the tester sends is marked CE", "set ecn 3 a->b data", 0,
     "write", K64, 600, 2, FAULT_AB, WIRE_F_WRITE | WIRE_F_SEND, false, suite_check_marked},
    {"lost-answer", "RD-10", "a READ response of the device is lost",
     "drop b->a read-response nth 10 first-tx", 0, "read", K64, 12, 1, FAULT_AB, WIRE_F_READ, false,
     suite_check_read_answer},
    /* The device is the requester: requests from side B. */
    {"go-back", "RTX-01", "a WRITE packet of the device is lost", "drop b->a write nth 10 first-tx",
     1, "write", K64, 12, 1, FAULT_BA, WIRE_F_WRITE | WIRE_F_SEND, false, suite_check_go_back},
    {"go-back-twice", "TMR-03", "a WRITE packet of the device is lost, and lost again",
     "drop b->a write nth 10 first-tx\ndrop b->a write retx nth 1", 1, "write", K64, 12, 1,
     FAULT_BA, WIRE_F_WRITE | WIRE_F_SEND, false, suite_check_go_back_twice},
    {"acks-lost", "TMR-03", "no acknowledgement reaches the device until it sends again",
     "drop a->b ack", 1, "write", K64, 12, 1, FAULT_BA, WIRE_F_WRITE | WIRE_F_SEND, true,
     suite_check_acks_lost},
    {"not-ready", "RNR-05", "the device is told that no receive is ready (RNR timer 5.12 ms)",
     "drop and inject nak rnr 18 b->a write nth 151 first-tx", 1, "write", K64, 12, 1, FAULT_BA,
     WIRE_F_WRITE | WIRE_F_SEND, false, suite_check_rnr},
    {"slowed", "CC-08", "the device is sent a CNP for each packet from the 801st on",
     "inject cnp b->a write nth 801..", 1, "write", K64, 100, 1, FAULT_BA,
     WIRE_F_WRITE | WIRE_F_SEND, false, suite_check_slowed},
    {"lost-response", "RD-14", "a READ response of the tester is lost",
     "drop a->b read-response nth 10 first-tx", 1, "read", K64, 12, 1, FAULT_BA, WIRE_F_READ, false,
     suite_check_read_again},
    {"exhausted", "TMR-05", "no WRITE packet of the device arrives", "drop b->a write", 1, "write",
     K64, 12, 1, FAULT_BA, WIRE_F_WRITE | WIRE_F_SEND, false, suite_check_exhausted},
};
const unsigned suite_ncases = sizeof(suite_cases) / sizeof(suite_cases[0]);
