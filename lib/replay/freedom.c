/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What may differ between our engine and the one that was captured. doc/replay.md lists it, too.
 */
#include "replay.h"

static const struct replay_freedom freedoms[] = {
    {"ack-coalescing", "An ACK may be absent when a later answer covers its PSN."},
    {"ack-time", "An ACK may name any SEND or WRITE packet executed so far, not only the latest."},
    {"credits", "The credit code of an ACK may be any, or none (0x1f)."},
    {"msn",
     "The MSN may count from another origin: a capture need not show the first message. From "
     "there on it is compared as far as what is under way lets it be told."},
    {"rnr-timer", "The timer code of an RNR NAK is the responder's choice."},
    {"receive-queue",
     "When receive work requests are posted is the application's choice: a request "
     "that an RNR NAK answered found none, every other one did."},
    {"room",
     "A READ or ATOMIC may be refused with an RNR NAK: for the moment there is no room for it."},
    {"memory", "The responder's application may change its memory at any time: the responses of a "
               "READ or ATOMIC say what was there."},
    {"keys", "A key may be taken away and made anew at any time: a request that is refused with an "
             "access error found it gone."},
    {"buffers",
     "Length of receive buffers, extent of regions and rights are inferred from what was "
     "accepted and what was refused."},
    {"local-error",
     "A remote operational error is the responder's own trouble: its memory is taken "
     "to fail there."},
    {"loss", "What a sequence NAK calls missing, though captured, was lost behind the capture; an "
             "answer that the capture lacks was lost before it."},
    {"selective",
     "Where both ends have agreed upon selective repeat (opcodes 0xc0 and up, ours), our "
     "engine does it too; what its NAKs say, and which form a packet has, isn't compared."},
    {"delay",
     "What a sequence NAK calls missing, but is answered without being sent again, was overtaken "
     "behind the capture; a NAK may be overtaken by answers to what it asks for."},
    {"nak-again",
     "A sequence NAK may be said again two round trips after the first, when what it asks "
     "for has been sent since: perhaps lost again."},
    {"missed-gap",
     "A sequence NAK of the last request that has been seen, where the requester goes "
     "back to that and on at once: the capture may have missed what was behind it."},
    {"order", "Requests may be doubled or change places behind the capture: what an answer shows "
              "to have been "
              "executed was, as far as the capture has it."},
    {"skew",
     "An answer may be recorded up to 20 us before what it answers: two directions are often "
     "captured in two places."},
    {"early", "A responder may keep WRITE packets that come early, or discard them."},
    {"capture-hole",
     "Where the responder answers a request that the capture has missed, nothing more "
     "is compared in that direction."},
    {"network-copy", "A packet that is the same to the last octet, IP identification included, was "
                     "doubled by the network."},
    {"duplicate-limit", "How many times a repeated READ is executed again is bounded: an answer to "
                        "one that our engine declines is passed over."},
    {"late-answer",
     "One answer to a READ repeated from the middle may look like the first one's: it "
     "may be that, late. Twice and never otherwise is a difference."},
    {"time", "When a packet is sent; only the order after its cause counts."},
    {"retransmission", "When a request is sent again, from where, and how often."},
    {"window", "How many requests are on their way at once."},
    {"ackreq", "AckReq may be set on any request packet of a reliable connection."},
    {"datagram-psn", "The PSNs of datagrams and their source queue pair's number."},
    {"cm", "In messages of the connection manager: ids, GUIDs, transactions that it begins itself, "
           "time-outs and delays, the values that its applications choose, MRA, and repetitions."},
    {"qkey", "A receiver's Q_Key is taken to be the one that most of its datagrams carry: one with "
             "another may be dropped."},
    {"unreliable-gap", "Behind a gap in the PSNs of UC, and for a message before it that never "
                       "ended, dropping is right."},
    {"ip-id", "The IPv4 identification, and DF with it."},
    {"udp-port", "The UDP source port of a flow."},
    {"ttl", "TTL or hop limit."},
    {"dscp", "Traffic class, ECN bits and the IPv6 flow label."},
    {"link", "MAC addresses, VLAN tags, and RoCE v1 in place of v2."},
    {"migreq", "MigReq, which tells of path migration, where a flow never sets it."},
    {"options",
     "FLUSH and ATOMIC WRITE, which a device need not have: they are passed over, and so is "
     "what a responder answers behind one that it executes."},
    {"cnp", "Congestion notifications, and what rate follows from them."},
};

const struct replay_freedom *replay_freedoms(size_t *n)
{
    *n = sizeof(freedoms) / sizeof(freedoms[0]);
    return freedoms;
}
