/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The oracle of the loss tests; see loss_oracle.h.
 */
#include "loss_oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_PSN UINT32_MAX

static void *grow(void *array, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return array;
    *cap = *cap ? 2 * *cap : 256;
    array = realloc(array, *cap * size);
    if (!array)
        abort();
    return array;
}

/* Where the BTH of an undamaged frame of ours starts (no VLAN, no options). */
static const uint8_t *bth_of(const uint8_t *frame, uint32_t len)
{
    uint32_t off = frame[12] == 0x08 ? 14 + 20 + 8 : 14 + 40 + 8;
    return off + 12 <= len ? frame + off : NULL;
}

static uint32_t psn_of(const uint8_t *bth)
{
    return bth ? (uint32_t)bth[9] << 16 | (uint32_t)bth[10] << 8 | bth[11] : NO_PSN;
}

static bool is_read_data(uint8_t opcode)
{
    return wire_opcodes[opcode].flags & WIRE_F_READ && wire_opcodes[opcode].flags & WIRE_F_RESPONSE;
}

/* Forget the state that the requester's progress has made obsolete. */
static void follow_progress(struct loss_oracle *o)
{
    struct engine_qp_info info;
    engine_qp_info(o->host->engine, o->qp, &info);
    if (info.state != QPS_RTS || info.una_psn == o->una)
        return;
    o->una = info.una_psn;
    o->nsent = 0;
    o->nlost = 0;
}

static uint32_t peer_epsn(const struct loss_oracle *o)
{
    struct engine_qp_info info;
    engine_qp_info(o->peer->engine, o->peer_qp, &info);
    return info.epsn;
}

/* The link's rule: sees every frame as sent, changes nothing. */
static void watch(void *ctx, const uint8_t *frame, uint32_t len, unsigned dir, uint64_t now,
                  struct mem_link_verdict *v)
{
    struct loss_oracle *o = ctx;
    (void)v;
    if (o->capture)
        pcapng_packet(o->capture, (int)dir, now, CAPTURE_OUT, frame, len, NULL);
    if (dir != 0)
        return;
    follow_progress(o);
    if (psn_of(bth_of(frame, len)) != o->una)
        return;
    o->sent = grow(o->sent, o->nsent, &o->sent_cap, sizeof(*o->sent));
    o->sent[o->nsent++] = (struct loss_try){now, peer_epsn(o)};
}

void loss_oracle_start(struct loss_oracle *o, struct vnet *net, struct qp *qp, struct qp *peer_qp,
                       uint32_t sq_psn)
{
    *o = (struct loss_oracle){.net = net,
                              .host = net->hosts[0],
                              .peer = net->hosts[1],
                              .qp = qp,
                              .peer_qp = peer_qp,
                              .una = sq_psn};
    mem_link_rule_set(o->net->link, watch, o);
}

void loss_oracle_free(struct loss_oracle *o)
{
    if (o->net)
        mem_link_rule_set(o->net->link, NULL, NULL);
    free(o->sent);
    free(o->lost);
}

void loss_oracle_poll(struct loss_oracle *o)
{
    struct mem_link_drop drop[64];
    size_t n;
    while ((n = mem_link_drops(o->net->link, &o->log_next, drop, 64, NULL)) > 0) {
        for (size_t i = 0; i < n; i++) {
            const uint8_t *bth = bth_of(drop[i].head, drop[i].len);
            if (o->capture)
                pcapng_packet(o->capture, (int)drop[i].dir, drop[i].time, CAPTURE_NO_DIR,
                              drop[i].head,
                              drop[i].len < MEM_LINK_HEAD ? drop[i].len : MEM_LINK_HEAD,
                              mem_link_reason_name(drop[i].reason));
            o->lost = grow(o->lost, o->nlost, &o->lost_cap, sizeof(*o->lost));
            o->lost[o->nlost++] = (struct loss_entry){.time = drop[i].time,
                                                      .psn = psn_of(bth),
                                                      .dir = (uint8_t)drop[i].dir,
                                                      .ackreq = bth && bth[8] & 0x80,
                                                      .read_data = bth && is_read_data(bth[0])};
        }
    }
}

int loss_oracle_exhausted(const struct loss_oracle *o, unsigned retries, char *why, size_t why_size)
{
    if (o->nsent < retries) {
        snprintf(why, why_size, "RETRY_EXC_ERR: PSN 0x%x was sent again only %zu times (TMR-05)",
                 o->una, o->nsent);
        return -1;
    }
    for (size_t i = o->nsent - retries; i < o->nsent; i++) {
        bool last = i + 1 == o->nsent;
        uint64_t from = o->sent[i].time, to = last ? UINT64_MAX : o->sent[i + 1].time;
        uint32_t epsn = last ? peer_epsn(o) : o->sent[i + 1].epsn;
        bool explained = false;
        for (size_t k = 0; k < o->nlost && !explained; k++) {
            const struct loss_entry *l = &o->lost[k];
            explained =
                l->time >= from && l->time <= to &&
                (l->psn == o->una || l->psn == epsn || (l->dir != 0 ? !l->read_data : l->ackreq));
        }
        if (!explained) {
            snprintf(why, why_size,
                     "RETRY_EXC_ERR: PSN 0x%x sent at %llu ns, 0x%x expected: no loss explains the "
                     "next try at %lld ns (TMR-05)",
                     o->una, (unsigned long long)from, epsn, (long long)to);
            return -1;
        }
    }
    return 0;
}
