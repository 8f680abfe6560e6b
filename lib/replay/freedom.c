/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The differences allowed between our engine and the captured one. doc/replay.md lists them, too.
 */
#include "replay.h"

static const struct replay_freedom freedoms[] = {
    {"ack-coalescing", "An ACK may be absent when a later answer covers its PSN."},
    {"ack-time", "An ACK may name any SEND or WRITE packet executed so far, not only the latest."},
    {"credits", "The credit code of an ACK may be any, or none (0x1f)."},
    {"msn", "The MSN may count from another origin: a capture need not show the first "
            "message. From there on it is compared, as far as the requests in flight allow."},
    {"rnr-timer", "The timer code of an RNR NAK is the responder's choice."},
    {"receive-queue",
     "The application chooses when it posts receive work requests: a request that an "
     "RNR NAK answers found none, every other one did."},
    {"room", "A READ or ATOMIC may be refused with an RNR NAK, because there is no room for it"
             " at the moment."},
    {"memory", "The responder's application may change its memory at any time: the responses of "
               "a READ or ATOMIC show the contents."},
    {"keys", "A key may be removed and made again at any time: a request that is refused with "
             "an access error did not find its key."},
    {"buffers", "Length of receive buffers, extent of regions and rights are inferred from the "
                "accepted and the refused requests."},
    {"local-error",
     "A remote operational error is the responder's own fault: its memory is assumed "
     "to fail there."},
    {"loss", "A packet that a sequence NAK reports missing, though captured, was lost after "
             "the capture point; an answer that the capture lacks was lost before it."},
    {"selective", "If both ends have agreed on selective repeat (opcodes 0xc0 and up, ours), our "
                  "engine uses it too; the contents of its NAKs and the forms of its packets are "
                  "not compared."},
    {"delay", "A packet that a sequence NAK reports missing, but that is answered without a "
              "retransmission, was overtaken after the capture point; a NAK may be overtaken by"
              " answers to its packet."},
    {"nak-again", "A sequence NAK may be repeated two round trips after the first, if its packet "
                  "was sent since: it may have been lost again."},
    {"missed-gap",
     "A sequence NAK of the last captured request, after which the requester goes back"
     " to that request and continues at once: the capture may have missed the packet "
     "after it."},
    {"order", "Requests may be doubled or reordered after the capture point: a request counts "
              "as executed if a captured answer shows it."},
    {"skew", "An answer may be recorded up to 20 us before its request: two directions are "
             "often captured in two places."},
    {"early", "A responder may keep early WRITE packets, or discard them."},
    {"capture-hole", "After an answer to a request that the capture has missed, nothing more is "
                     "compared in that direction."},
    {"network-copy", "A packet that is equal to the last octet, IP identification included, was "
                     "doubled by the network."},
    {"duplicate-limit",
     "The number of executions of a repeated READ is bounded: an answer to one that "
     "our engine declines is skipped."},
    {"late-answer", "One answer to a READ repeated from the middle may be the late answer to the "
                    "first one. Twice and never otherwise is a difference."},
    {"time", "The time at which a packet is sent; only the order after its cause counts."},
    {"retransmission", "Time, first packet and number of retransmissions."},
    {"window", "The number of requests in flight."},
    {"ackreq", "AckReq may be set on any request packet of a reliable connection."},
    {"datagram-psn", "The PSNs of datagrams and their source queue pair's number."},
    {"cm", "In messages of the connection manager: ids, GUIDs, transactions that it starts "
           "itself, time-outs and delays, values that its applications choose, MRA, and "
           "repetitions."},
    {"qkey", "A receiver's Q_Key is assumed to be the one in most of its datagrams: a datagram"
             " with another may be dropped."},
    {"unreliable-gap",
     "After a gap in the PSNs of UC, and for an unfinished message before it, dropping"
     " is right."},
    {"ip-id", "The IPv4 identification, and DF with it."},
    {"udp-port", "The UDP source port of a flow."},
    {"ttl", "TTL or hop limit."},
    {"dscp", "Traffic class, ECN bits and the IPv6 flow label."},
    {"link", "MAC addresses, VLAN tags, and RoCE v1 in place of v2."},
    {"migreq", "MigReq, a sign of path migration, if a flow never sets it."},
    {"options", "FLUSH and ATOMIC WRITE, which a device need not have: they are skipped, and so "
                "are the responder's answers after one that it executes."},
    {"cnp", "Congestion notifications, and the rate that follows from them."},
};

const struct replay_freedom *replay_freedoms(size_t *n)
{
    *n = sizeof(freedoms) / sizeof(freedoms[0]);
    return freedoms;
}
