/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See client_mapping.h.
 */
#include "client_mapping.h"

#include <errno.h>

#include "client.h"
#include "quota.h"
#include "reclaim.h"

/* The costs of a mapping: the mapping, its memory, which may come to count as the daemon's, and for
 * a slab a descriptor until it is sealed, or longer. */
#define QUOTA_PARTS(len, fd)                                                                       \
    (const struct share_part[]){{SHARE_MAPPINGS, 1}, {SHARE_OCTETS, len}, {SHARE_FDS, 1}},         \
        (fd) ? 3 : 2

/* Administrators' own objects may be larger than the machine's memory. */
static uint64_t quota_octets(const struct client *c, const uint64_t *octets, uint64_t len)
{
    return octets == &c->foreign_octets && c->share->all ? 0 : len;
}

int client_map_take(struct client *c, uint64_t *octets, uint64_t len, uint64_t quota)
{
    if (c->mappings >= QUOTA_MAPPINGS || len > quota || *octets > quota - len)
        return -EDQUOT;
    int rc = share_take_all(c->share,
                            QUOTA_PARTS(quota_octets(c, octets, len), octets == &c->slab_octets));
    if (rc < 0)
        return rc;
    c->mappings++;
    *octets += len;
    return 0;
}

void client_map_give(struct client *c, uint64_t *octets, uint64_t len)
{
    share_give_all(c->share, QUOTA_PARTS(quota_octets(c, octets, len), octets == &c->slab_octets));
    c->mappings--;
    *octets -= len;
}

void client_unmap(struct client *c, uint64_t *octets, struct memory *m)
{
    if (memory_is_own(m)) { /* it never counted */
        memory_free(m);
        return;
    }
    c->mappings--;
    *octets -= m->len;
    reclaim(c->share, m, QUOTA_PARTS(quota_octets(c, octets, m->len), m->fd != -1));
}
