/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a client's mappings count against (SEC-22): its quotas, and its user's share of the daemon.
 * On the control thread.
 */
#ifndef NIC_CLIENT_MAPPING_H
#define NIC_CLIENT_MAPPING_H

#include <stdint.h>

struct client;
struct memory;

/* A mapping of `len` octets counts from now on.
 *
 * octets  the client's count that it is part of: &c->slab_octets or &c->foreign_octets
 * quota   what that count may be at most
 *
 * 0 or -EDQUOT. */
int client_map_take(struct client *c, uint64_t *octets, uint64_t len, uint64_t quota);
/* None has come of it. */
void client_map_give(struct client *c, uint64_t *octets, uint64_t len);
/* A mapping goes: it is unmapped, now or later, and counts no more. */
void client_unmap(struct client *c, uint64_t *octets, struct memory *m);

#endif
