/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The memory behind the R_Keys of a capture: how far each reaches and what it allows, as far as its
 * requests show; what is in it, as far as READs and ATOMICs were answered.
 */
#ifndef URNIC_REPLAY_REGIONS_H
#define URNIC_REPLAY_REGIONS_H

#include "sparse.h"
#include "stage.h"

/* Memory behind an R_Key of the capture, as far as it is used. */
struct region {
    uint32_t rkey, lkey, live; /* live: our R_Key; 0 = there is none now */
    uint64_t first, end;       /* addresses of the first and the last octet */
    unsigned rights;
    struct sparse memory;
};

struct regions {
    const struct direction *d;
    struct region *region; /* they stay where they are: the engine knows them by address */
    uint32_t n;
    struct region *addressed;  /* by the latest request of memory */
    uint32_t fr_lkey, fr_rkey; /* what SENDs with invalidate name; 0 = not there */
};

/* Look through the requests of a direction, which must outlive it. 0, -ENOMEM. Free with
 * regions_free in any case, after the stage. */
int regions_find(struct regions *m, const struct direction *d);
void regions_free(struct regions *m);

/* Register all of them with the stage's engine. 0, -ENOMEM. */
int regions_register(struct regions *m, const struct stage *s);
/* What becomes of the keys by the time of this request: one that is refused, though its key was
 * good before, says that the key has been taken away; one that is good again, that it was made
 * anew. */
void regions_change(struct regions *m, const struct stage *s, const struct packet *p);
/* Our R_Key for the one that a request names; 0 = it names none, or none that is good. */
uint32_t regions_key(const struct regions *m, const struct packet *p);
/* The key that a SEND with invalidate names becomes one that can be invalidated, unless it was
 * refused (0). */
uint32_t regions_invalidable(struct regions *m, const struct stage *s, const struct packet *p);

/* The memory that the READ or ATOMIC at this place finds is what its answers say, if they are
 * there. */
void regions_define(struct regions *m, size_t at);

/* What the engine reads from a region, and does to one. */
void regions_fetch(const struct mem_piece *from, uint8_t *to);
void regions_copy(const struct engine_copy *c, uint64_t *orig);

#endif
