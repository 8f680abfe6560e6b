/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The packets of one direction and its answers, made from the kept frames.
 */
#include <errno.h>
#include <stdlib.h>

#include "replay_priv.h"

uint32_t packet_psns(const struct direction *d, const struct packet *p)
{
    if (packet_flags(p) & WIRE_F_READ && p->dma_len)
        return (uint32_t)(((uint64_t)p->dma_len + d->mtu - 1) / d->mtu);
    return 1;
}

static void read_packet(struct packet *p, const struct kept *k, uint32_t flow)
{
    struct wire_pkt w;
    packet_wire(&(struct packet){.kept = k}, &w);
    *p = (struct packet){.kept = k,
                         .flow = flow,
                         .va = w.va,
                         .psn = w.psn,
                         .rkey = w.rkey,
                         .dma_len = w.dma_len,
                         .msn = w.msn,
                         .room = UINT32_MAX,
                         .ip_id = w.ip_id,
                         .pkey = w.pkey,
                         .payload_len = (uint16_t)w.payload_len,
                         .payload_at = (uint8_t)(w.payload_off - w.bth_off),
                         .opcode = w.opcode,
                         .syndrome = w.syndrome,
                         .ipv4 = w.ip_version == 4,
                         .good = k->good,
                         .selective = k->selective,
                         .duplicate = k->duplicate};
}

int packets_collect(const struct keep *k, struct direction *d)
{
    bool answers = d->answers.id != LINT_NO_FLOW;
    const struct keep_flow *there = keep_flow(k, d->flow.id),
                           *back = answers ? keep_flow(k, d->answers.id) : NULL;
    const struct kept *a = there ? there->first : NULL, *b = back ? back->first : NULL;
    uint64_t n = (there ? there->packets : 0) + (back ? back->packets : 0);
    if (!n)
        return 0;
    if (!held_take(d->held, n * sizeof(*d->packet)))
        return -EFBIG;
    if (!(d->packet = malloc(n * sizeof(*d->packet))))
        return -ENOMEM;
    while (a || b) {
        bool first = !b || (a && a->number < b->number);
        const struct kept **from = first ? &a : &b;
        read_packet(&d->packet[d->packets++], *from, first ? d->flow.id : d->answers.id);
        *from = (*from)->next;
    }
    return 0;
}

/* READ responses and the answers to ATOMICs. */
static bool brings_data(const struct packet *p)
{
    return packet_flags(p) & WIRE_F_READ || p->opcode == WIRE_ATOMIC_ACK;
}

static int by_psn(const void *a, const void *b, void *ctx)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const struct packet *packet = ctx;
    if (packet[x].psn != packet[y].psn)
        return packet[x].psn < packet[y].psn ? -1 : 1;
    return x < y ? -1 : x > y;
}

static int index_data(struct direction *d)
{
    size_t n = 0;
    for (size_t i = 0; i < d->answered; i++)
        // NOLINTNEXTLINE(clang-analyzer-*): all answers up to `answered` are set
        n += brings_data(&d->packet[d->answer[i]]);
    if (!held_take(d->held, n * sizeof(*d->data)))
        return -EFBIG;
    if (!(d->data = malloc((n ? n : 1) * sizeof(*d->data)))) {
        held_give(d->held, n * sizeof(*d->data));
        return -ENOMEM;
    }
    for (size_t i = 0; i < d->answered; i++)
        if (brings_data(&d->packet[d->answer[i]]))
            d->data[d->brought++] = d->answer[i];
    qsort_r(d->data, d->brought, sizeof(*d->data), by_psn, d->packet);
    return 0;
}

int packets_index(struct direction *d)
{
    size_t n = 0;
    for (size_t i = 0; i < d->packets; i++)
        n += packet_answers(d, &d->packet[i]);
    if (!held_take(d->held, n * sizeof(*d->answer)))
        return -EFBIG;
    if (!(d->answer = malloc((n ? n : 1) * sizeof(*d->answer)))) {
        held_give(d->held, n * sizeof(*d->answer));
        return -ENOMEM;
    }
    d->naks = 0;
    for (size_t i = 0; i < d->packets; i++) {
        const struct packet *p = &d->packet[i];
        if (!packet_answers(d, p))
            continue;
        d->answer[d->answered++] = (uint32_t)i;
        if (p->opcode == WIRE_ACKNOWLEDGE && wire_aeth_kind(p->syndrome) == WIRE_AETH_NAK)
            d->naks |= 1u << (p->syndrome & 31);
    }
    return index_data(d);
}

void packets_unindex(struct direction *d)
{
    held_give(d->held, d->answered * sizeof(*d->answer) + d->brought * sizeof(*d->data));
    free(d->answer);
    free(d->data);
    d->answer = d->data = NULL;
    d->answered = d->brought = 0;
}

size_t answers_after(const struct direction *d, size_t at)
{
    size_t lo = 0, hi = d->answered;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (d->answer[mid] <= at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

size_t packets_data(const struct direction *d, uint32_t psn, size_t at)
{
    size_t lo = 0, hi = d->brought;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        uint32_t this = d->packet[d->data[mid]].psn;
        if (this < psn || (this == psn && d->data[mid] <= at))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

void packets_free(struct direction *d)
{
    if (d->packet)
        held_give(d->held, d->packets * sizeof(*d->packet));
    free(d->packet);
    d->packet = NULL;
    d->packets = 0;
}
