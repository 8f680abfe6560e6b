/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table of rules that are checked: id, sentence, when, by which function. Everything that lint
 * can find stands here, in the order of the catalogue (doc/conformance.md).
 */
#include "lint_checks.h"

#define MALFORMED LINT_S_MALFORMED
#define FRAME     LINT_S_FRAME
#define REQUEST   LINT_S_REQUEST
#define RESPONSE  LINT_S_RESPONSE
#define DATAGRAM  LINT_S_DATAGRAM
#define CM        LINT_S_CM
#define ALONE     LINT_ALONE

static const struct lint_rule rules[] = {
    {"WIRE-06",
     "The destination MAC is unicast, or the multicast MAC of the group that the packet "
     "is for; never broadcast.",
     FRAME, lint_wire_06},
    {"WIRE-08", "The IPv4 header has no options.", MALFORMED, lint_wire_08},
    {"WIRE-09", "IP lengths cover at least UDP, BTH and iCRC, and fit the frame.", MALFORMED,
     lint_wire_09},
    {"WIRE-10", "IPv4 packets have DF set and are no fragments.", MALFORMED | FRAME, lint_wire_10},
    {"WIRE-12", "The IPv4 header checksum is right.", FRAME, lint_wire_12},
    {"WIRE-19", "The UDP source port of a flow stays the same while packets are in flight.",
     REQUEST | LINT_S_PORT, lint_wire_19},
    {"WIRE-23", "The UDP length is the IP payload length.", MALFORMED, lint_wire_23},
    {"WIRE-29", "The source IP address is a unicast address, of a host that others can reach.",
     MALFORMED | FRAME, lint_wire_29},
    {"WIRE-31", "The multicast MAC follows from the multicast IP address.", FRAME, lint_wire_31},
    {"HDR-01", "Reserved bits of the BTH are 0.", FRAME, lint_hdr_01},
    {"HDR-02", "The transport version is 0.", MALFORMED, lint_hdr_02},
    {"HDR-03", "SE is set only on the last or only packet of a SEND or of a WRITE with immediate.",
     FRAME, lint_hdr_03},
    {"HDR-04", "MigReq is 1 on connected queue pairs without path migration.",
     REQUEST | RESPONSE | ALONE, lint_hdr_04},
    {"HDR-05", "PadCnt makes the payload a multiple of 4, no more.", MALFORMED | REQUEST,
     lint_hdr_05},
    {"HDR-06", "FIRST and MIDDLE packets have no pad.", FRAME, lint_hdr_06},
    {"HDR-07", "The destination QP is not 0, and 0xffffff only in multicast datagrams.", MALFORMED,
     lint_hdr_07},
    {"OPC-01", "The opcode is not a reserved one.", MALFORMED, lint_opc_01},
    {"OPC-02", "The opcode's service is the queue pair's.", LINT_S_ODD, lint_opc_02},
    {"OPC-03", "The packet holds the headers that its opcode has.", MALFORMED, lint_opc_03},
    {"OPC-04", "Opcodes without payload have neither payload nor pad.", MALFORMED, lint_opc_04},
    {"OPC-05", "A CNP has SE, MigReq, PadCnt, AckReq, FECN and PSN 0, BECN 1 and 16 zero octets.",
     MALFORMED | LINT_S_CNP, lint_opc_05},
    {"ICRC-02", "The iCRC covers 8 octets of ones before the IP header.", LINT_S_ICRC,
     lint_icrc_02},
    {"ICRC-03", "Fields that routers change are masked in the iCRC.", LINT_S_ICRC, lint_icrc_03},
    {"ICRC-06", "The iCRC is stored least significant octet first.", LINT_S_ICRC, lint_icrc_06},
    {"ICRC-08", "Every packet has a right iCRC, and none with a wrong one is acted upon.",
     LINT_S_ICRC | RESPONSE, lint_icrc_08},
    {"KEY-01", "The P_Key of a queue pair doesn't change.",
     REQUEST | RESPONSE | DATAGRAM | LINT_S_PKEY | ALONE, lint_key_01},
    {"KEY-02", "The low 15 bits of the P_Key are not all 0.", FRAME, lint_key_02},
    {"KEY-07", "The Q_Key of QP1 is 0x80010000.", DATAGRAM, lint_key_07},
    {"PSN-01", "The first PSN is the one that the CM messages announced.", REQUEST | LINT_S_BEGUN,
     lint_psn_01},
    {"REQ-02",
     "A message longer than the MTU is FIRST, MIDDLE ..., LAST, a shorter one ONLY; LAST "
     "is never empty.",
     REQUEST, lint_req_02},
    {"REQ-06", "The PSNs of a READ's responses are used by no other request.", REQUEST,
     lint_req_06},
    {"REQ-10", "AckReq is 0 on responses.", RESPONSE | ALONE, lint_req_10},
    {"REQ-12", "No more READs and ATOMICs are outstanding than the responder has agreed to.",
     LINT_S_OVER, lint_req_12},
    {"REQ-28", "The response's opcode fits the request with its PSN.", RESPONSE | LINT_S_BEYOND,
     lint_req_28},
    {"REQ-30", "READ responses are FIRST, MIDDLE ..., LAST or ONLY by their place in the READ.",
     RESPONSE, lint_req_30},
    {"REQ-31", "The AETH of a READ response or ATOMIC acknowledge is of type ACK.",
     RESPONSE | ALONE, lint_req_31},
    {"ACK-02", "The AETH syndrome is not a reserved one.", MALFORMED, lint_ack_02},
    {"ACK-05",
     "An ACK carries the PSN of the last SEND or WRITE packet executed, never one that "
     "has not arrived or that belongs to a READ or ATOMIC.",
     RESPONSE | LINT_S_BEYOND | LINT_S_BACK, lint_ack_05},
    {"ACK-06", "The NAK code is one that the request can have caused.", RESPONSE, lint_ack_06},
    {"ACK-07", "A sequence NAK is sent when a later packet has arrived, and names the missing one.",
     RESPONSE | LINT_S_BEYOND, lint_ack_07},
    {"ACK-08", "A sequence NAK is sent once per gap.", RESPONSE, lint_ack_08},
    {"ACK-10", "An answer goes to the queue pair that has asked.", LINT_S_STRAY, lint_ack_10},
    {"ACK-11", "The MSN counts the messages that are complete.", RESPONSE | LINT_S_AHEAD,
     lint_ack_11},
    {"RNR-01", "RNR NAK answers a request that takes a receive work request.", RESPONSE,
     lint_rnr_01},
    {"RNR-02", "After an RNR NAK later packets are discarded without a sequence NAK.", RESPONSE,
     lint_rnr_02},
    {"RNR-05", "After an RNR NAK the requester waits for the coded time.", REQUEST | LINT_S_EARLY,
     lint_rnr_05},
    {"TMR-05", "A packet is sent at most 1 + retry count times without progress.", REQUEST,
     lint_tmr_05},
    {"RTX-05", "A retransmitted packet has the opcode, headers and payload of the first.", REQUEST,
     lint_rtx_05},
    {"RSP-06",
     "After FIRST or MIDDLE comes MIDDLE or LAST of the same kind, else a message "
     "begins.",
     REQUEST, lint_rsp_06},
    {"RSP-10",
     "FIRST and MIDDLE carry exactly the MTU, LAST 1 to MTU octets, ONLY at most the MTU.",
     REQUEST | LINT_S_MTU, lint_rsp_10},
    {"RSP-12", "A SEND longer than the receive buffer is refused as an invalid request.", RESPONSE,
     lint_rsp_12},
    {"RSP-15", "A message has at most 2^31 octets.", REQUEST | ALONE, lint_rsp_15},
    {"RSP-16", "The payloads of a WRITE add up to the length in its RETH.", REQUEST, lint_rsp_16},
    {"RSP-22", "After a fatal NAK the responder answers nothing more.", RESPONSE, lint_rsp_22},
    {"RD-05", "READ responses carry the MTU, the last one the rest.", RESPONSE | LINT_S_MTU,
     lint_rd_05},
    {"RD-10", "A re-read is answered as a request of its own, beginning with FIRST or ONLY.",
     LINT_S_CONTINUED, lint_rd_10},
    {"RD-12", "A re-read asks for the rest: address, length and R_Key follow from the first READ.",
     REQUEST, lint_rd_12},
    {"ATM-03", "The address of an ATOMIC is a multiple of 8.", REQUEST | ALONE, lint_atm_03},
    {"ATM-08", "An ATOMIC is executed once: repeated, it returns the same value.", RESPONSE,
     lint_atm_08},
    {"UC-02", "AckReq is 0 on unreliable services.", REQUEST | DATAGRAM | ALONE, lint_uc_02},
    {"UC-07",
     "Packets of an unreliable connection have the lengths and the order of their opcodes.",
     REQUEST | LINT_S_MTU, lint_uc_07},
    {"UD-01", "A datagram is one packet of at most 4096 octets.", DATAGRAM, lint_ud_01},
    {"UD-09", "The source QP of a datagram is neither 0 nor 0xffffff.", MALFORMED, lint_ud_09},
    {"UD-10", "QP 0xffffff and a multicast address go together.", MALFORMED, lint_ud_10},
    {"GSI-01", "Datagrams to QP1 come from QP1.", DATAGRAM, lint_gsi_01},
    {"GSI-02", "A MAD has 256 octets.", CM, lint_gsi_02},
    {"GSI-03", "The base version of a MAD is 1.", CM, lint_gsi_03},
    {"GSI-04", "The class version of a CM MAD is 2, its method Send.", CM, lint_gsi_04},
    {"CM-02",
     "The private data of a REQ or SIDR REQ to an IP service begins with a valid IP header.", CM,
     lint_cm_02},
    {"CM-07", "REP asks for no more READs than REQ offered.", CM, lint_cm_07},
    {"CM-14", "REP, RTU, MRA and REJ copy the transaction id of REQ, DREP that of DREQ.", CM,
     lint_cm_14},
    {"CM-15", "Communication ids are not 0.", CM, lint_cm_15},
    {"CM-18", "A repeated REQ or REP says the same as the first.", CM, lint_cm_18},
    {"CM-24", "DREQ names the receiver's queue pair.", CM, lint_cm_24},
};

_Static_assert(sizeof(rules) / sizeof(rules[0]) <= LINT_RULES_MAX, "a stage holds them all");

const struct lint_rule *lint_rules(size_t *n)
{
    *n = sizeof(rules) / sizeof(rules[0]);
    return rules;
}
