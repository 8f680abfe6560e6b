/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Captures of several places in one file, each an interface of its own. Clocks differ, and a packet
 * that was lost between the places is at one of them only; put in the order of their times, such
 * packets tell a story that happened nowhere. One place alone tells what happened there.
 */
#include <stdlib.h>

#include "replay_priv.h"

#define PLACES_MAX  8u
#define DOUBLED_MIN 4u  /* answers that tell whether a capture shows all of them twice */
#define SAME_OCTETS 64u /* by so many from the BTH on, a packet is known again */

/* A packet at a place. */
struct sight {
    uint64_t what;
    unsigned place;
    bool own; /* of the end whose place we take */
};

struct places {
    uint32_t interface[PLACES_MAX];
    uint64_t own[PLACES_MAX], other[PLACES_MAX]; /* packets of either end seen there */
    uint8_t ways[PLACES_MAX]; /* in which they were seen to go: bits by own and sent */
    unsigned n;
};

static uint64_t what_of(const struct packet *p)
{
    uint64_t h = 0xCBF29CE484222325ull ^ p->pkt.ip_id;
    for (uint32_t i = p->pkt.bth_off; i < p->have && i < p->pkt.bth_off + SAME_OCTETS; i++)
        if (i != p->pkt.bth_off + 4u) /* FECN and BECN change on the way */
            h = (h ^ p->frame[i]) * 0x100000001B3ull;
    return h;
}

/* PLACES_MAX when there are more. */
static unsigned place_of(struct places *s, uint32_t interface)
{
    unsigned i = 0;
    while (i < s->n && s->interface[i] != interface)
        i++;
    if (i == s->n && i < PLACES_MAX)
        s->interface[s->n++] = interface;
    return i;
}

static int by_what(const void *a, const void *b)
{
    const struct sight *x = a, *y = b;
    if (x->what != y->what)
        return x->what < y->what ? -1 : 1;
    return (int)x->place - (int)y->place;
}

/* What one place has, or all together: of each packet the most that any of them has. */
static void count(const struct sight *s, size_t n, struct places *at, uint64_t *own,
                  uint64_t *other)
{
    for (size_t i = 0; i < n;) {
        uint64_t here[PLACES_MAX] = {0}, most = 0;
        size_t k = i;
        for (; k < n && s[k].what == s[i].what; k++)
            here[s[k].place]++;
        for (unsigned v = 0; v < at->n; v++) {
            most = here[v] > most ? here[v] : most;
            *(s[i].own ? &at->own[v] : &at->other[v]) += here[v];
        }
        *(s[i].own ? own : other) += most;
        i = k;
    }
}

bool vantage_find(const struct direction *d, uint32_t own, uint32_t *interface)
{
    struct places at = {.n = 0};
    struct sight *sight = calloc(d->packets ? d->packets : 1, sizeof(*sight));
    uint64_t all = 0, others = 0;
    size_t n = 0;
    bool useless = !sight; /* too many places, or one where packets both go out and come in */
    for (size_t i = 0; i < d->packets && !useless; i++) {
        const struct packet *p = &d->packet[i];
        if (!p->good)
            continue;
        unsigned place = place_of(&at, p->interface), way = p->sent ? 1 : 2;
        sight[n++] = (struct sight){what_of(p), place, p->flow == own};
        useless = place == PLACES_MAX;
        if (!useless)
            at.ways[place] |= (uint8_t)(p->flow == own ? way : way << 2);
        useless = useless || (at.ways[place] & 3) == 3 || at.ways[place] >> 2 == 3;
    }
    unsigned best = PLACES_MAX;
    if (!useless && at.n > 1) {
        qsort(sight, n, sizeof(*sight), by_what);
        count(sight, n, &at, &all, &others);
        for (unsigned v = 0; v < at.n; v++)
            if (all && at.own[v] == all && at.other[v] > others / 2 &&
                (best == PLACES_MAX || at.other[v] < at.other[best]))
                best = v;
    }
    free(sight);
    if (best == PLACES_MAX)
        return false;
    *interface = at.interface[best];
    return true;
}

bool vantage_doubled(const struct direction *d)
{
    struct sight *sight = calloc(d->packets ? d->packets : 1, sizeof(*sight));
    size_t n = 0, distinct = 0, once = 0;
    for (size_t i = 0; sight && i < d->packets; i++)
        if (packet_answers(d, &d->packet[i]) && packet_positive(&d->packet[i]))
            sight[n++].what = what_of(&d->packet[i]);
    if (sight)
        qsort(sight, n, sizeof(*sight), by_what);
    for (size_t i = 0, k; i < n; i = k) {
        for (k = i + 1; k < n && sight[k].what == sight[i].what; k++)
            ;
        distinct++;
        once += k == i + 1;
    }
    free(sight);
    return distinct >= DOUBLED_MIN && once <= distinct / 4;
}
