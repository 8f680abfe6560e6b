/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The limits for a client's mappings (SEC-22): its quotas, and its user's share of the daemon's. On
 * the control thread.
 */
#ifndef NIC_CLIENT_MAPPING_H
#define NIC_CLIENT_MAPPING_H

#include <stdint.h>

struct client;
struct memory;

/* Count a mapping of `len` octets.
 *
 * `octets` is the client's count that it is part of: &c->slab_octets or &c->foreign_octets. `quota`
 * is the most that this count may be.
 *
 * 0 or -EDQUOT. */
int client_map_take(struct client *c, uint64_t *octets, uint64_t len, uint64_t quota);
/* The mapping failed: undo the count. */
void client_map_give(struct client *c, uint64_t *octets, uint64_t len);
/* Count a mapping no more; it is unmapped, now or later. */
void client_unmap(struct client *c, uint64_t *octets, struct memory *m);

#endif
