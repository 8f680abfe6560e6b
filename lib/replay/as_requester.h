/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by the files that put our engine in the requester's place. as_requester.c gives it the
 * captured answers and remembers its packets, requester_work.c posts the captured work requests,
 * requester_compare.c compares the captured requests with its packets. One thread.
 */
#ifndef URNIC_REPLAY_AS_REQUESTER_H
#define URNIC_REPLAY_AS_REQUESTER_H

#include "stage.h"

/* A PSN with a captured request. */
struct place {
    uint32_t off : 24; /* distance from the base */
    bool again : 1;    /* a READ repeated from the middle: not a message of its own */
    bool emitted : 1;
    bool ackreq : 1; /* AckReq of our engine's packet */
    bool unlike : 1; /* our packet differs from the first one in a compared field */
    uint32_t first;  /* its first transmission, an index */
};

/* Our engine's packet that differs from the first one of the capture. */
struct unlike {
    uint32_t off;
    struct wire_pkt ours;
    char dump[REPLAY_DUMP_MAX];
};

struct requester {
    struct direction *d;
    struct judge *j;
    struct stage stage;
    struct place *place;   /* sorted by off */
    size_t places, next;   /* next: first place of the next message to post */
    struct unlike *unlike; /* sorted by off once complete */
    size_t unlikes, unlike_room;
    uint32_t posted;  /* PSNs posted, counted from the base */
    uint32_t highest; /* highest PSN of the compared requests */
    bool refused;     /* refused by a fatal NAK */
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

/* The place at this distance from the base, or NULL. */
struct place *requester_place(const struct requester *r, uint32_t off);
/* Compares two of struct unlike, for qsort and bsearch. */
int requester_by_off(const void *a, const void *b);

/* Post all messages up to the one of this place. */
void requester_post(struct requester *r, uint32_t off);

/* Compare a captured request with our engine's packet, in order, once our engine has all answers.
 */
void requester_compare(struct requester *r, const struct packet *p);
/* Check that the requester sends the PSN of the sequence NAK at this place again, if it continues.
 * The requests before it have been compared. */
void requester_compare_nak(struct requester *r, size_t at);

#endif
