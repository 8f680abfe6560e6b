/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Each captured request packet, retransmissions included, must be equal to our engine's packet with
 * that PSN. Time and number of retransmissions are a freedom.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "as_requester.h"
#include "fields.h"

#define NEW_MAX 4096u /* new packets after a sequence NAK: in flight before it arrived */

int requester_by_off(const void *a, const void *b)
{
    const struct unlike *x = a, *y = b;
    return x->off < y->off ? -1 : x->off > y->off;
}

/* Our engine's packet at this place, and its text. */
static void ours_of(const struct requester *r, const struct place *at, struct wire_pkt *ours,
                    char dump[REPLAY_DUMP_MAX])
{
    dump[0] = '\0';
    if (at->unlike) {
        const struct unlike key = {.off = at->off};
        const struct unlike *o =
            bsearch(&key, r->unlike, r->unlikes, sizeof(key), requester_by_off);
        *ours = o->ours;
        memcpy(dump, o->dump, REPLAY_DUMP_MAX);
        return;
    }
    packet_wire(first_of(r, at), ours);
    if (!at->emitted)
        return;
    ours->ackreq = at->ackreq;
    if (!r->j->mute)
        stage_dump(&r->stage, ours, r->d->flow.dqpn, dump);
}

struct field {
    const char *name, *rule;
};

/* The missing part of a truncated packet may have been damaged on the way. The first transmission
 * may have had a length of its own, which was reported with it. */
static bool payload_same(const struct packet *a, const struct packet *b)
{
    uint32_t n = a->payload_len < b->payload_len ? a->payload_len : b->payload_len;
    if (!n || packet_cut(a) || packet_cut(b))
        return true;
    return !memcmp(packet_payload(a), packet_payload(b), n);
}

/* The reason text for a retransmission that differs from the earlier packet `a`. */
static void explain_again(const struct packet *a, const struct packet *b, const char *field,
                          char *text, size_t size)
{
    int n = snprintf(text, size, "the retransmission differs from packet %llu",
                     (unsigned long long)a->kept->number);
    if (strcmp(field, "payload") || n < 0 || (size_t)n >= size)
        return;
    const uint8_t *was = packet_payload(a), *is = packet_payload(b);
    uint32_t i = 0;
    while (i + 1 < a->payload_len && was[i] == is[i])
        i++;
    snprintf(text + n, size - (size_t)n, ": octet %u of the payload was 0x%02x, is 0x%02x", i,
             was[i], is[i]);
}

/* The first field in which a captured request differs from our engine's; name NULL = none. */
static struct field differing(const struct packet *first, const struct wire_pkt *a,
                              const struct packet *p)
{
    struct wire_pkt captured;
    packet_wire(p, &captured);
    const struct wire_pkt *b = &captured;
    unsigned headers = wire_opcodes[b->opcode].headers;
    bool again = first != p;
    if (a->opcode != b->opcode)
        return (struct field){"opcode", again ? "RTX-05" : "REQ-02"};
    bool cut = again && (packet_cut(p) || packet_cut(first));
    if (a->payload_len != b->payload_len && cut)
        return (struct field){NULL, NULL}; /* perhaps several packets, merged by the host */
    if (a->payload_len != b->payload_len && again && p->payload_len == first->payload_len)
        return (struct field){NULL, NULL}; /* reported already */
    if (a->payload_len != b->payload_len)
        return (struct field){"payload length", again ? "RTX-05" : "REQ-02"};
    if (!payload_same(first, p))
        return (struct field){"payload", "RTX-05"};
    bool most = b->dma_len > WIRE_MSG_MAX;
    if (headers & WIRE_H_RETH && a->dma_len != b->dma_len && !(p->overrun && !most))
        return (struct field){"DMA length", most ? "RSP-15" : again ? "RTX-05" : "RSP-16"};
    if (headers & (WIRE_H_RETH | WIRE_H_ATOMICETH) && a->va != b->va)
        return (struct field){"address", "RTX-05"};
    if (headers & (WIRE_H_RETH | WIRE_H_ATOMICETH | WIRE_H_IETH) && a->rkey != b->rkey)
        return (struct field){"R_Key", "RTX-05"};
    if (headers & WIRE_H_ATOMICETH && a->swap_add != b->swap_add)
        return (struct field){"swap or add operand", "RTX-05"};
    if (headers & WIRE_H_ATOMICETH && (b->opcode & 31) == WIRE_CMP_SWAP && a->compare != b->compare)
        return (struct field){"compare operand", "RTX-05"};
    if (headers & WIRE_H_IMMDT && a->imm != b->imm)
        return (struct field){"immediate", "RTX-05"};
    if (a->se != b->se)
        return (struct field){"SE", again ? "RTX-05" : "HDR-03"};
    if (a->pkey != b->pkey)
        return (struct field){"P_Key", "KEY-01"};
    if (wire_opcodes[b->opcode].service == WIRE_UC && a->ackreq != b->ackreq)
        return (struct field){"AckReq", "UC-02"};
    return (struct field){NULL, NULL};
}

/* A READ repeated from the middle requests the rest of the first one. */
static struct field differing_again(const struct requester *r, const struct place *at,
                                    const struct packet *p)
{
    const struct place *whole = at;
    while (whole > r->place && whole->again)
        whole--;
    const struct packet *a = first_of(r, whole), *b = p;
    uint64_t skip = (uint64_t)(at->off - whole->off) * r->d->mtu;
    if (a->opcode != b->opcode)
        return (struct field){"opcode", "REQ-06"};
    if (packet_cut(p))
        return (struct field){NULL, NULL}; /* perhaps damaged: it has no iCRC */
    if (b->va != a->va + skip)
        return (struct field){"address", "RD-12"};
    if (p->overrun)
        return (struct field){NULL, NULL}; /* reported already */
    struct wire_pkt w;
    packet_wire(p, &w);
    if (w.dma_len > a->dma_len - skip)
        return (struct field){"DMA length", "RD-12"};
    if (b->rkey != a->rkey)
        return (struct field){"R_Key", "RD-12"};
    return (struct field){NULL, NULL};
}

void requester_compare(struct requester *r, const struct packet *p)
{
    r->highest = wire_psn_diff(p->psn, r->highest) > 0 ? p->psn : r->highest;
    const struct place *at = requester_place(r, off_of(r->d, p->psn));
    const struct packet *first = at ? first_of(r, at) : NULL;
    if (!at || (!at->emitted && !at->again) || packet_optional(p) || packet_optional(first)) {
        /* Our engine has no such request, or has stopped: a request of it was refused finally, or
         * it waits for an answer that was not captured. */
        r->j->out->passed++;
        return;
    }
    bool reliable = r->d->flow.service == WIRE_RC;
    if (first == p && at->emitted && !at->unlike && !at->again && !p->inside && reliable) {
        r->j->out->compared++;
        r->j->out->same++;
        return;
    }
    struct wire_pkt ours;
    char dump[REPLAY_DUMP_MAX];
    ours_of(r, at, &ours, dump);
    /* A request that bridges a gap is no message of the capture. */
    unsigned f = packet_flags(p);
    if (!at->again && !(f & WIRE_F_START) && !(f & (WIRE_F_READ | WIRE_F_ATOMIC)) && at->emitted &&
        wire_opcodes[ours.opcode].flags & WIRE_F_ONLY &&
        wire_opcodes[ours.opcode].flags & WIRE_F_SEND) {
        r->j->out->passed++;
        return;
    }
    /* A repeated READ requests its missing part, which may include its start. */
    bool part = at->again || (f & WIRE_F_READ && first != p && p->opcode == ours.opcode);
    struct field what = p->inside ? (struct field){"PSN", "REQ-06"}
                        : part    ? differing_again(r, at, p)
                                  : differing(first, &ours, p);
    if (what.name && !strcmp(what.rule, "RTX-05") && fields_rule(r->d->fields, first))
        what.name = NULL; /* the first one was wrong, as reported */
    r->j->out->compared++;
    if (!what.name)
        r->j->out->same++;
    if (!what.name)
        return;
    char again[REPLAY_TEXT_MAX] = "";
    if (first != p)
        explain_again(first, p, what.name, again, sizeof(again));
    judge_differ(r->j, p, what.rule, what.name, at->again ? "(the rest of the READ)" : dump,
                 p->inside    ? "this PSN is one of a READ's responses"
                 : first != p ? again
                              : "our engine sends another value");
}

/* The requester must send the PSN of a sequence NAK again, if it continues. */
void requester_compare_nak(struct requester *r, size_t at)
{
    const struct direction *d = r->d;
    const struct packet *nak = &d->packet[at];
    unsigned fresh = 0;
    uint32_t highest = wire_psn_diff(r->highest, nak->psn) > 0 ? r->highest : nak->psn;
    for (size_t i = at + 1; i < d->packets && fresh <= NEW_MAX; i++) {
        const struct packet *p = &d->packet[i];
        int32_t off = wire_psn_diff(p->psn, nak->psn);
        if (packet_asks(d, p) && off <= 0)
            return;
        if (packet_answers(d, p) && off >= 0 && packet_positive(p))
            return;
        fresh += packet_asks(d, p) && wire_psn_diff(p->psn, highest) > 0;
    }
    if (fresh > NEW_MAX)
        judge_differ(r->j, nak, "ACK-06", "retransmission", "(sends this PSN again)",
                     "the requester continues without the missing packet");
}
