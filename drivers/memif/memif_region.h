/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared memory regions: memfds, made here by a client or received by a server.
 */
#ifndef URNIC_MEMIF_REGION_H
#define URNIC_MEMIF_REGION_H

#include <stdbool.h>

#include "memif.h"
#include "memif_proto.h"

#define MEMIF_REGION_MAX (UINT64_C(1) << 32) /* descriptors have 32-bit offsets */

/* A region; base NULL = none. */
struct memif_region {
    uint8_t *base;
    uint64_t size;
    int fd; /* kept by the side that made it, until it has been sent; otherwise -1 */
};

/* Make a zeroed region of `size` octets with sealed size, and map it. Returns 0 or -errno. */
int memif_region_create(struct memif_region *r, uint64_t size);

/* Map a region that the peer made; `fd` stays the caller's. The object must hold `size` octets
 * and, unless `trust`, be ordinary shared memory sealed against shrinking: otherwise the peer could
 * make every access a SIGBUS. Returns MEMIF_OK, MEMIF_REGION, MEMIF_UNSEALED or MEMIF_SYSTEM. */
enum memif_reason memif_region_map(struct memif_region *r, int fd, uint64_t size, bool trust);

/* Map the memory of `from` once more, for an owner of its own. Returns 0 or -ENOMEM. */
int memif_region_again(const struct memif_region *from, struct memif_region *r);

/* Unmap and close. Harmless on an empty region. */
void memif_region_free(struct memif_region *r);

/* Address of `len` octets at `offset`, or NULL when they are not all inside the region. */
static inline uint8_t *memif_region_at(const struct memif_region *r, uint32_t offset, uint32_t len)
{
    return (uint64_t)offset + len <= r->size ? r->base + offset : NULL;
}

#endif
