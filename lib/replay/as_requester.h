/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the parts of our engine in the requester's place share: as_requester.c gives it the captured
 * answers and remembers what it sends, requester_work.c posts the work requests that the capture
 * shows, requester_compare.c compares the captured requests with what it has sent. One thread.
 */
#ifndef URNIC_REPLAY_AS_REQUESTER_H
#define URNIC_REPLAY_AS_REQUESTER_H

#include "stage.h"

/* A PSN with a captured request. */
struct place {
    uint32_t off : 24; /* from the base */
    bool again : 1;    /* a READ repeated from the middle: not a message of its own */
    bool emitted : 1;
    bool ackreq : 1; /* of our engine's */
    bool odd : 1;    /* ours isn't like the first one, else the same in all that is compared */
    uint32_t first;  /* its first transmission, an index */
};

/* Our engine's packet where it isn't like the first one of the capture. */
struct odd {
    uint32_t off;
    struct wire_pkt ours;
    char dump[REPLAY_DUMP_MAX];
};

struct requester {
    struct direction *d;
    struct judge *j;
    struct stage stage;
    struct place *place; /* by off */
    size_t places, next; /* next: first of the next message to post */
    struct odd *odd;     /* by off, from when all are there */
    size_t odds, odd_room;
    uint32_t posted;  /* PSNs posted, from the base */
    uint32_t highest; /* PSN of the requests that have been compared */
    bool refused;     /* by a fatal NAK */
    bool failed;      /* out of memory */
};

static inline uint32_t off_of(const struct direction *d, uint32_t psn)
{
    return (psn - d->base) & WIRE_PSN_MASK;
}

static inline const struct packet *first_of(const struct requester *r, const struct place *at)
{
    return &r->d->packet[at->first];
}

/* The place so far from the base, or NULL. */
struct place *requester_place(const struct requester *r, uint32_t off);
/* Compares two of struct odd, for qsort and bsearch. */
int requester_by_off(const void *a, const void *b);

/* Post everything up to the message that this place belongs to. */
void requester_post(struct requester *r, uint32_t off);

/* When our engine has got all: compare a captured request with what it has sent, one after the
 * other. */
void requester_compare(struct requester *r, const struct packet *p);
/* A sequence NAK, in this place, wants its PSN again, if the requester goes on. The requests before
 * it have been compared. */
void requester_compare_nak(struct requester *r, size_t at);

#endif
