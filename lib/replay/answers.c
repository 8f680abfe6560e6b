/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The network's effects on the answers: copies and reordering.
 */
#include <string.h>

#include "evidence.h"

#define COPY_BACK 256u /* packets between a packet and the network's copy of it */
#define ID_NEAR   64   /* largest step between two IP identifications of a counter */

/* The same packet, apart from fields that bridges and routers change: MAC addresses, tags, TOS,
 * TTL? */
static bool same_packet(const struct packet *a, const struct packet *b)
{
    uint32_t have = a->kept->have, other = b->kept->have;
    return a->psn == b->psn && a->opcode == b->opcode && a->ip_id == b->ip_id &&
           a->payload_len == b->payload_len &&
           !memcmp(a->kept->octet, b->kept->octet, have < other ? have : other);
}

/* Does the IP identification distinguish a repeated answer from the network's copy? Not if all are
 * the same. */
static bool ids_tell(const struct direction *d)
{
    const struct packet *first = NULL;
    for (size_t i = 0; i < d->packets; i++) {
        const struct packet *p = &d->packet[i];
        if (!packet_answers(d, p))
            continue;
        if (first && p->ipv4 && p->ip_id != first->ip_id)
            return true;
        first = first ? first : p;
    }
    return false;
}

/* Was the very same answer captured a little earlier? Without other evidence it is a new one if its
 * request was sent again meanwhile, and there was time to answer that. */
static bool network_copy(const struct direction *d, const struct packet *p, bool told)
{
    const struct packet *q = p;
    bool asked = false;
    for (unsigned n = 0; q > d->packet && n < COPY_BACK; n++) {
        q--;
        asked = asked || (!told && packet_asks(d, q) &&
                          ((p->psn - q->psn) & WIRE_PSN_MASK) < packet_psns(d, q));
        if (asked && !evidence_crossed(d, q, p))
            return false;
        if (q->flow == p->flow && q->usable && same_packet(q, p))
            return true;
    }
    return false;
}

/* Have answers overtaken each other? If the IP identification is a counter, it shows which ones
 * have. Otherwise NAKs that go back show that some have: the responder never requests a packet
 * again that it has. */
static void find_disorder(struct direction *d)
{
    unsigned steps = 0, near = 0, back = 0;
    const struct packet *last = NULL;
    bool any = false;
    uint32_t highest = 0;
    for (size_t i = 0; i < d->packets; i++) {
        const struct packet *p = &d->packet[i];
        if (!packet_answers(d, p))
            continue;
        int16_t step = (int16_t)(last ? p->ip_id - last->ip_id : 0);
        steps += last != NULL;
        near += step && step > -ID_NEAR && step < ID_NEAR;
        last = p;
        if (p->opcode != WIRE_ACKNOWLEDGE)
            continue;
        uint32_t next = (p->psn + packet_positive(p)) & WIRE_PSN_MASK;
        back += any && !packet_positive(p) && wire_psn_diff(next, highest) < 0;
        highest = any && wire_psn_diff(next, highest) < 0 ? highest : next;
        any = true;
    }
    bool count = last && last->ipv4 && near > steps - steps / 8;
    uint16_t id = 0;
    any = false;
    for (size_t i = 0; i < d->packets; i++) {
        struct packet *p = &d->packet[i];
        p->overtaken = false;
        if (!packet_answers(d, p))
            continue;
        bool older = any && (int16_t)(p->ip_id - id) < 0;
        p->overtaken = count ? older : back > 1 || d->doubled;
        id = older ? id : p->ip_id;
        any = true;
    }
}

void answers_find(struct direction *d)
{
    bool told = ids_tell(d);
    find_disorder(d);
    for (size_t i = 0; i < d->packets; i++) {
        struct packet *p = &d->packet[i];
        p->duplicate = packet_answers(d, p) && network_copy(d, p, told);
    }
}
