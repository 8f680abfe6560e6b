/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The memory of a capture's R_Keys: extent and rights of each, by its requests; its contents, by
 * the answers to READs and ATOMICs.
 */
#ifndef URNIC_REPLAY_REGIONS_H
#define URNIC_REPLAY_REGIONS_H

#include "sparse.h"
#include "stage.h"

/* The memory of an R_Key of the capture, as far as it is used. */
struct region {
    uint32_t rkey, lkey, live; /* live: our current R_Key; 0 = none */
    uint64_t first, end;       /* addresses of the first and the last octet */
    unsigned rights;
    struct sparse memory;
};

struct regions {
    const struct direction *d;
    struct region *region; /* never moved: the engine has their addresses */
    uint32_t n;
    struct region *addressed;  /* region of the latest request that names memory */
    uint32_t fr_lkey, fr_rkey; /* the key for SENDs with invalidate; 0 = none */
};

/* Find the regions in the requests of a direction, which must outlive `m`. 0, -ENOMEM. Free with
 * regions_free in any case, after the stage. */
int regions_find(struct regions *m, const struct direction *d);
void regions_free(struct regions *m);

/* Register all of them with the stage's engine. 0, -ENOMEM. */
int regions_register(struct regions *m, const struct stage *s);
/* Update the keys for this request. A refused request whose key was good before shows that the key
 * was removed; an accepted one after that shows that it was made again. */
void regions_change(struct regions *m, const struct stage *s, const struct packet *p);
/* Our R_Key for a request's R_Key; 0 = it names none, or a bad one. */
uint32_t regions_key(const struct regions *m, const struct packet *p);
/* Make the key of a SEND with invalidate one that can be invalidated, unless it was refused (0). */
uint32_t regions_invalidable(struct regions *m, const struct stage *s, const struct packet *p);

/* Fill the memory of the READ or ATOMIC at this place with the contents of its answers, if they
 * were captured. */
void regions_define(struct regions *m, size_t at);

/* The engine's reads from a region, and its writes and atomics. */
void regions_fetch(const struct mem_piece *from, uint8_t *to);
void regions_copy(const struct engine_copy *c, uint64_t *orig);

#endif
