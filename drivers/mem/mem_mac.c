/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The port of each MAC address on a switch: a hash table that is never emptied. Once it is full a
 * new address replaces an old one.
 */
#include <string.h>

#include "mem_internal.h"

static unsigned mac_slot(const uint8_t mac[6])
{
    uint32_t h = mem_hash(mac, 6);
    return (h ^ h >> 16) & (MEM_MACS - 1);
}

void mem_mac_learn(struct mem_link *link, const uint8_t mac[6], unsigned port)
{
    unsigned first = mac_slot(mac), i = first;
    if (mac[0] & 1)
        return;
    do {
        if (!link->macs[i].used || memcmp(link->macs[i].mac, mac, 6) == 0)
            break;
        i = (i + 1) & (MEM_MACS - 1);
    } while (i != first);
    memcpy(link->macs[i].mac, mac, 6);
    link->macs[i].used = true;
    link->macs[i].port = (uint8_t)port;
}

unsigned mem_mac_find(const struct mem_link *link, const uint8_t mac[6])
{
    unsigned first = mac_slot(mac), i = first;
    if (mac[0] & 1)
        return MEM_LINK_ALL;
    do {
        if (!link->macs[i].used)
            break;
        if (memcmp(link->macs[i].mac, mac, 6) == 0) {
            unsigned port = link->macs[i].port;
            return link->sockets[port]->open ? port : MEM_LINK_ALL;
        }
        i = (i + 1) & (MEM_MACS - 1);
    } while (i != first);
    return MEM_LINK_ALL;
}
