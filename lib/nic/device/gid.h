/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The GID table of a device: each local address has two entries, RoCE v1 then v2, at an even index.
 * Entries 0/1 are the link-local IPv6 address, 2/3 the first IPv4 address (so that perftest's -x 3
 * works); others follow in the order in which they were added. An entry keeps its index as long as
 * its address lives.
 */
#ifndef NIC_GID_H
#define NIC_GID_H

#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

#define GID_PAIRS   32u
#define GID_ENTRIES (2u * GID_PAIRS)

struct gid_entry {
    struct wire_addr addr;
    bool used;
};

struct gid_table {
    bool own_local; /* entries 0/1 were made of the MAC */
    struct gid_entry pair[GID_PAIRS];
};

/* Empty but for the link-local address made from the MAC (EUI-64), which stays. */
void gid_init(struct gid_table *t, const uint8_t mac[6]);
/* Empty: the link-local address comes and goes like all others. Entries 0/1 are kept for it. */
void gid_init_empty(struct gid_table *t);
/* Returns the index of the v1 entry, -EEXIST or -ENOSPC. */
int gid_add(struct gid_table *t, const struct wire_addr *addr);
/* Returns 0, -ENOENT, or -EPERM for the link-local address. */
int gid_del(struct gid_table *t, const struct wire_addr *addr);
/* The address at an index (v1 or v2), NULL = empty. */
const struct gid_entry *gid_at(const struct gid_table *t, unsigned index);
/* The v2 index of an address, or -ENOENT. */
int gid_find(const struct gid_table *t, const struct wire_addr *addr);

#endif
