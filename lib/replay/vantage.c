/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Captures of several places in one file, each an interface of its own. Clocks differ, and a packet
 * that was lost between the places is at one of them only. In the order of their times, such
 * packets form a sequence that occurred nowhere; a single place shows the real sequence there.
 */
#include <stdlib.h>

#include "replay_priv.h"

#define PLACES_MAX  8u
#define PORTS_MAX   16u
#define DOUBLED_MIN 4u  /* answers needed to decide whether all of them are captured twice */
#define SAME_OCTETS 64u /* octets from the BTH on that identify a packet */

/* A packet at one place. */
struct sight {
    uint64_t what;
    unsigned place;
    bool own; /* of the replaced end */
};

struct places {
    uint32_t interface[PLACES_MAX];
    uint64_t own[PLACES_MAX], other[PLACES_MAX]; /* packets of either end at each place */
    uint8_t ways[PLACES_MAX];                    /* their directions: bits by own and sent */
    unsigned n;
};

static uint64_t what_of(const struct packet *p)
{
    uint64_t h = 0xCBF29CE484222325ull ^ p->ip_id;
    for (uint32_t i = 0; i < p->kept->have && i < SAME_OCTETS; i++)
        if (i != 4u) /* FECN and BECN change on the way */
            h = (h ^ p->kept->octet[i]) * 0x100000001B3ull;
    return h;
}

/* Room for `n`; NULL: none, or out of memory. */
static struct sight *sights_new(const struct direction *d, size_t n)
{
    if (!n || !held_take(d->held, n * sizeof(struct sight)))
        return NULL;
    struct sight *s = calloc(n, sizeof(*s));
    if (!s)
        held_give(d->held, n * sizeof(*s));
    return s;
}

static void sights_free(const struct direction *d, struct sight *s, size_t n)
{
    held_give(d->held, n * sizeof(*s));
    free(s);
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

/* The packets of one place, or of all together: for each packet the maximum number of copies at any
 * place. */
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

/* The capture is not from the end's own port. Find one interface that shows all packets of the flow
 * `own`, and most of the other flow. The other interfaces then add only the differences between
 * their clocks. If there are several such interfaces, choose the nearest: the one with the fewest
 * packets of the other flow. */
static bool one_place(const struct direction *d, uint32_t own, uint32_t *interface)
{
    struct places at = {.n = 0};
    uint64_t all = 0, others = 0;
    size_t n = 0;
    for (size_t i = 0; i < d->packets; i++) {
        const struct packet *p = &d->packet[i];
        if (!p->good)
            continue;
        unsigned place = place_of(&at, p->kept->interface), way = p->kept->sent ? 1 : 2;
        if (place == PLACES_MAX)
            return false;
        at.ways[place] |= (uint8_t)(p->flow == own ? way : way << 2);
        if ((at.ways[place] & 3) == 3 || at.ways[place] >> 2 == 3)
            return false; /* packets are both sent and received there */
        n++;
    }
    struct sight *sight = at.n > 1 ? sights_new(d, n) : NULL;
    if (!sight)
        return false;
    n = 0;
    for (size_t i = 0; i < d->packets; i++) {
        const struct packet *p = &d->packet[i];
        if (p->good)
            sight[n++] =
                (struct sight){what_of(p), place_of(&at, p->kept->interface), p->flow == own};
    }
    unsigned best = PLACES_MAX;
    qsort(sight, n, sizeof(*sight), by_what);
    count(sight, n, &at, &all, &others);
    for (unsigned v = 0; v < at.n; v++)
        if (all && at.own[v] == all && at.other[v] > others / 2 &&
            (best == PLACES_MAX || at.other[v] < at.other[best]))
            best = v;
    sights_free(d, sight, n);
    if (best == PLACES_MAX)
        return false;
    *interface = at.interface[best];
    return true;
}

/* Interfaces of the replaced end, which sent its packets; several if links are bonded, or if the
 * file has sections with different names. */
struct ports {
    uint32_t interface[PORTS_MAX];
    unsigned n;
    bool twice; /* packets pass several of them: a bridge */
};

static bool is_port(const struct ports *s, uint32_t interface)
{
    unsigned i = 0;
    while (i < s->n && s->interface[i] != interface)
        i++;
    return i < s->n;
}

/* False when there are too many. */
static bool add_port(struct ports *s, uint32_t interface)
{
    if (is_port(s, interface))
        return true;
    if (s->n == PORTS_MAX)
        return false;
    s->interface[s->n++] = interface;
    return true;
}

/* False if there is none, or if the other end's packets were also sent there. */
static bool find_ports(const struct direction *d, uint32_t own, struct ports *s)
{
    struct ports other = {.n = 0}; /* interfaces with more than received packets */
    *s = other;
    for (size_t i = 0; i < d->packets; i++) {
        const struct packet *p = &d->packet[i];
        if (p->good && p->kept->sent && p->flow == own && !add_port(s, p->kept->interface))
            return false;
        if (p->good && (p->kept->sent || p->flow == own) && !add_port(&other, p->kept->interface))
            return false;
    }
    size_t all = 0, again = 0;
    bool any = s->n;
    for (size_t i = 0; i < d->packets && any; i++) {
        const struct packet *p = &d->packet[i];
        bool port = is_port(s, p->kept->interface);
        if (!p->good)
            continue;
        if (port && p->kept->sent && p->flow != own)
            return false;
        if (!port && !is_port(&other, p->kept->interface) && !add_port(s, p->kept->interface))
            return false;
        all++;
        again += p->kept->again;
    }
    s->twice = again > all / 3;
    return any;
}

/* If the replaced end itself was captured, at the interface that sent its packets, the capture
 * shows exactly the received packets. Otherwise, if one interface has all packets of this end, its
 * packets count. In all other captures the first copy of each packet counts; also if the other
 * end's packets were sent there, too, as on a machine with both ends in a capture that doesn't name
 * its interfaces. */
void vantage_view(struct direction *d, enum replay_role role)
{
    uint32_t own = role == REPLAY_RESPONDER ? d->answers.id : d->flow.id, interface = 0;
    struct ports ports;
    bool exact = find_ports(d, own, &ports), one = !exact && one_place(d, own, &interface);
    d->exact = d->own_port = exact;
    for (size_t i = 0; i < d->packets; i++) {
        struct packet *p = &d->packet[i];
        bool there = one ? p->kept->interface == interface : !p->kept->again;
        if (exact)
            there = is_port(&ports, p->kept->interface) && (p->flow != own || p->kept->sent) &&
                    !(p->kept->again && ports.n > 1 && ports.twice);
        p->usable = p->good && there;
    }
}

static bool tells_doubled(const struct direction *d, const struct packet *p)
{
    return packet_answers(d, p) && packet_positive(p);
}

bool vantage_doubled(const struct direction *d)
{
    size_t n = 0, distinct = 0, once = 0;
    for (size_t i = 0; i < d->packets; i++)
        n += tells_doubled(d, &d->packet[i]);
    struct sight *sight = sights_new(d, n);
    if (!sight)
        return false;
    n = 0;
    for (size_t i = 0; i < d->packets; i++)
        if (tells_doubled(d, &d->packet[i]))
            sight[n++] = (struct sight){.what = what_of(&d->packet[i])};
    qsort(sight, n, sizeof(*sight), by_what);
    for (size_t i = 0, k; i < n; i = k) {
        for (k = i + 1; k < n && sight[k].what == sight[i].what; k++)
            ;
        distinct++;
        once += k == i + 1;
    }
    sights_free(d, sight, n);
    return distinct >= DOUBLED_MIN && once <= distinct / 4;
}
