/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The engine's own addresses and P_Keys. Rules: KEY-04, WIRE-06.
 */
#include "address.h"

#include <errno.h>
#include <string.h>

#include "engine_priv.h"

static int addr_index(const struct engine *e, const struct wire_addr *a)
{
    for (unsigned i = 0; i < e->naddrs; i++)
        if (!memcmp(&e->addr[i], a, sizeof(*a)))
            return (int)i;
    return -1;
}

int engine_addr_add(struct engine *e, const struct wire_addr *addr)
{
    if (addr_index(e, addr) >= 0)
        return -EEXIST;
    if (e->naddrs == ENGINE_ADDRS)
        return -ENOSPC;
    if (!e->naddrs)
        e->recent = *addr;
    e->addr[e->naddrs++] = *addr;
    return 0;
}

int engine_addr_del(struct engine *e, const struct wire_addr *addr)
{
    int i = addr_index(e, addr);
    if (i < 0)
        return -ENOENT;
    e->addr[i] = e->addr[--e->naddrs];
    e->recent = e->addr[0];
    return 0;
}

bool engine_addr_local(struct engine *e, const struct wire_addr *a)
{
    if (e->naddrs && !memcmp(&e->recent, a, sizeof(*a)))
        return true;
    int i = addr_index(e, a);
    if (i < 0)
        return false;
    e->recent = e->addr[i];
    return true;
}

bool engine_pkey_find(const struct engine *e, uint16_t pkey, unsigned *index)
{
    for (unsigned i = 0; i < ENGINE_PKEYS; i++) {
        if (e->p.pkeys[i] && wire_pkey_match(pkey, e->p.pkeys[i])) {
            *index = i;
            return true;
        }
    }
    return false;
}
