/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A table small enough to be scanned: nothing on the data path looks into it.
 */
#include "gid.h"

#include <errno.h>
#include <string.h>

#define GID_PAIR_LINK_LOCAL 0u
#define GID_PAIR_IPV4       1u /* reserved for the first IPv4 address */
#define GID_PAIR_OTHERS     2u

static bool addr_equal(const struct wire_addr *a, const struct wire_addr *b)
{
    return memcmp(a->b, b->b, sizeof(a->b)) == 0;
}

void gid_init(struct gid_table *t, const uint8_t mac[6])
{
    struct gid_entry *e = &t->pair[GID_PAIR_LINK_LOCAL];
    memset(t, 0, sizeof(*t));
    t->own_local = true;
    e->addr.b[0] = 0xFE;
    e->addr.b[1] = 0x80;
    e->addr.b[8] = mac[0] ^ 0x02;
    e->addr.b[9] = mac[1];
    e->addr.b[10] = mac[2];
    e->addr.b[11] = 0xFF;
    e->addr.b[12] = 0xFE;
    e->addr.b[13] = mac[3];
    e->addr.b[14] = mac[4];
    e->addr.b[15] = mac[5];
    e->used = true;
}

void gid_init_empty(struct gid_table *t)
{
    memset(t, 0, sizeof(*t));
}

static bool is_link_local(const struct wire_addr *addr)
{
    return addr->b[0] == 0xFE && (addr->b[1] & 0xC0) == 0x80;
}

static int gid_pair(const struct gid_table *t, const struct wire_addr *addr)
{
    for (unsigned i = 0; i < GID_PAIRS; i++) {
        if (t->pair[i].used && addr_equal(&t->pair[i].addr, addr))
            return (int)i;
    }
    return -ENOENT;
}

int gid_add(struct gid_table *t, const struct wire_addr *addr)
{
    unsigned i = wire_addr_is_v4(addr) ? GID_PAIR_IPV4 : GID_PAIR_OTHERS;
    if (gid_pair(t, addr) >= 0)
        return -EEXIST;
    if (!t->pair[GID_PAIR_LINK_LOCAL].used && is_link_local(addr))
        i = GID_PAIR_LINK_LOCAL;
    while (i < GID_PAIRS && t->pair[i].used)
        i++;
    if (i == GID_PAIRS)
        return -ENOSPC;
    t->pair[i] = (struct gid_entry){.addr = *addr, .used = true};
    return (int)(2 * i);
}

int gid_del(struct gid_table *t, const struct wire_addr *addr)
{
    int i = gid_pair(t, addr);
    if (i < 0)
        return i;
    if (i == (int)GID_PAIR_LINK_LOCAL && t->own_local)
        return -EPERM;
    t->pair[i].used = false;
    return 0;
}

const struct gid_entry *gid_at(const struct gid_table *t, unsigned index)
{
    if (index >= GID_ENTRIES || !t->pair[index / 2].used)
        return NULL;
    return &t->pair[index / 2];
}

int gid_find(const struct gid_table *t, const struct wire_addr *addr)
{
    int i = gid_pair(t, addr);
    return i < 0 ? i : 2 * i + 1;
}
