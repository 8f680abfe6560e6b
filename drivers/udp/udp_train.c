/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See udp_train.h.
 */
#include "udp_train.h"

#include <string.h>

#include "wire.h"
#include "wire_bytes.h"

#define PSN_MASK  0xFFFFFFu
#define RESPONSES 0x1000000u

static uint32_t distance(uint32_t psn, uint32_t of)
{
    return (of - psn) & PSN_MASK;
}

/* Is psn before `of`, within half of the PSNs? */
static bool before(uint32_t psn, uint32_t of)
{
    uint32_t d = distance(psn, of);
    return d > 0 && d <= PSN_MASK / 2;
}

static bool same(const struct io_addr *a, const struct io_addr *b)
{
    return memcmp(a->b, b->b, sizeof(a->b)) == 0;
}

static unsigned hash(const struct io_addr *a, uint32_t more)
{
    uint32_t x, y;
    memcpy(&x, a->b + 12, sizeof(x));
    memcpy(&y, a->b + 8, sizeof(y));
    x = (x ^ y * 31 ^ more) * 2654435761u;
    return x >> 16 ^ x;
}

static uint32_t psn_of(const uint8_t *bth)
{
    return wire_get32(bth + 8) & PSN_MASK;
}

/* Does the packet's queue pair retransmit it? */
static bool reliable(const uint8_t *bth)
{
    return bth[0] >> 5 == WIRE_RC || bth[0] >> 5 == WIRE_XRC;
}

static uint32_t key_of(const uint8_t *bth)
{
    unsigned op = bth[0] & 0x1F;
    bool response = op >= WIRE_READ_RESP_FIRST && op <= WIRE_ATOMIC_ACK;
    return (wire_get32(bth + 4) & WIRE_QPN_MASK) | (response ? RESPONSES : 0);
}

static struct udp_flow *flow_of(struct udp_trains *t, const struct io_addr *to, uint32_t key)
{
    return &t->flow[hash(to, key) % UDP_FLOWS];
}

static bool is_it(const struct udp_flow *f, const struct io_addr *to, uint32_t key)
{
    return f->used && f->key == key && same(&f->to, to);
}

static struct udp_reach *reach_of(struct udp_trains *t, const struct io_addr *to)
{
    struct udp_reach *r = &t->reach[hash(to, 0) % UDP_REACHES];
    if (!r->used || !same(&r->to, to))
        *r = (struct udp_reach){.to = *to, .used = true};
    return r;
}

/* All packets before psn have arrived. Does that show that a train arrived? Only if its second
 * datagram is among them, since a first datagram looks like a single one. Each train is counted
 * once. */
static bool arrived(struct udp_flow *f, uint32_t psn)
{
    bool yes = false;
    for (unsigned i = 0; i < UDP_FLOW_MEMO; i++) {
        if (f->memo[i].n == 0 || !before(f->memo[i].first + 1, psn))
            continue;
        yes = true;
        f->memo[i].n = 0;
    }
    return yes;
}

/* Trains with any of these PSNs are no evidence any more: these packets are on their way twice. */
static void forget(struct udp_flow *f, uint32_t psn, unsigned n)
{
    for (unsigned i = 0; i < UDP_FLOW_MEMO; i++) {
        if (f->memo[i].n > 0 && before(f->memo[i].first, psn + n) &&
            before(psn, f->memo[i].first + f->memo[i].n))
            f->memo[i].n = 0;
    }
}

/* The number of datagrams of a train from psn on; 0 = psn was in no train. */
static unsigned in_train(const struct udp_flow *f, uint32_t psn)
{
    for (unsigned i = 0; i < UDP_FLOW_MEMO; i++) {
        uint32_t place = distance(f->memo[i].first, psn);
        if (place < f->memo[i].n)
            return f->memo[i].n - place;
    }
    return 0;
}

/* The flow sends psn again. Packets before psn have arrived, so the path carries trains if one
 * ended there; the train of psn may be lost. *told = the peer now gets single datagrams. */
static void went_back(struct udp_flow *f, struct udp_reach *r, uint32_t psn, bool *told)
{
    bool again = f->lost_set && f->lost == psn;
    if (arrived(f, psn)) {
        r->proven = true;
        r->losses = 0;
    }
    unsigned left = in_train(f, psn);
    if (left > 0) {
        if (again)
            r->proven = false;
        else if (!r->proven && ++r->losses >= UDP_LOST_SURE)
            r->single = *told = true;
        f->lost = psn;
        f->lost_set = true;
    }
    f->singly = (uint8_t)(r->proven ? 0 : left);
}

unsigned udp_train_ask(struct udp_trains *t, const struct io_addr *to, const uint8_t *bth,
                       unsigned n, bool *told)
{
    struct udp_reach *r = reach_of(t, to);
    *told = false;
    if (r->single)
        return 1;
    if (!reliable(bth))
        return n;
    uint32_t key = key_of(bth), psn = psn_of(bth);
    struct udp_flow *f = flow_of(t, to, key);
    if (!is_it(f, to, key) || !before(psn, f->next) || distance(psn, f->next) > UDP_FLOW_REACH)
        return n;
    if (psn != f->last)
        went_back(f, r, psn, told);
    return f->singly > 0 || r->single ? 1 : n;
}

void udp_train_sent(struct udp_trains *t, const struct io_addr *to, const uint8_t *bth,
                    const uint8_t *last, unsigned n)
{
    if (!reliable(bth))
        return;
    uint32_t key = key_of(bth), psn = psn_of(bth);
    if (key_of(last) != key || psn_of(last) != ((psn + n - 1) & PSN_MASK))
        n = 1; /* requests and responses mixed, or READs: PSNs do not distinguish them */
    struct udp_flow *f = flow_of(t, to, key);
    bool fresh = !is_it(f, to, key);
    if (!fresh && before(psn, f->next) && distance(psn, f->next) > UDP_FLOW_REACH)
        fresh = true;
    if (fresh) {
        memset(f, 0, sizeof(*f));
        f->to = *to;
        f->key = key;
        f->used = true;
        f->next = psn;
    }
    f->last = (psn + n) & PSN_MASK;
    f->singly -= f->singly > 0;
    if (before(psn, f->next))
        forget(f, psn, n);
    if (!before(f->last, f->next))
        f->next = f->last;
    if (n > 1) {
        f->memo[f->at].first = psn;
        f->memo[f->at].n = (uint8_t)n;
        f->at = (f->at + 1) % UDP_FLOW_MEMO;
    }
}

void udp_train_heard(struct udp_trains *t, const struct io_addr *from, const uint8_t *bth)
{
    if (!reliable(bth) || (bth[0] & 0x1F) != WIRE_ACKNOWLEDGE || bth[WIRE_BTH_LEN] >> 5 != 0)
        return;
    struct udp_reach *r = reach_of(t, from);
    if (r->proven || r->single)
        return;
    uint32_t psn = psn_of(bth);
    for (unsigned i = 0; i < UDP_FLOWS; i++) {
        struct udp_flow *f = &t->flow[i];
        if (!f->used || f->key & RESPONSES || !same(&f->to, from))
            continue;
        for (unsigned k = 0; k < UDP_FLOW_MEMO; k++) {
            uint32_t place = distance(f->memo[k].first, psn);
            if (f->memo[k].n == 0 || place == 0 || place >= f->memo[k].n)
                continue;
            r->proven = true;
            r->losses = 0;
            return;
        }
    }
}

void udp_train_never(struct udp_trains *t, const struct io_addr *to)
{
    reach_of(t, to)->single = true;
}

bool udp_train_is_never(const struct udp_trains *t, const struct io_addr *to)
{
    const struct udp_reach *r = &t->reach[hash(to, 0) % UDP_REACHES];
    return r->used && r->single && same(&r->to, to);
}
