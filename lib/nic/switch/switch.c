/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "switch_channel.h"
#include "switch_group.h"
#include "switch_spill.h"

const char *const switch_counter_names[SWITCH_COUNTER_MAX] = {
#define X(name) #name,
    SWITCH_COUNTERS(X)
#undef X
};

struct nic_switch *switch_new(struct blocks *blocks, unsigned worker, const uint8_t mac[6],
                              uint16_t vlan, bool loopback)
{
    struct nic_switch *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->epfd = epoll_create1(EPOLL_CLOEXEC);
    if (s->epfd < 0) {
        free(s);
        return NULL;
    }
    s->blocks = blocks;
    s->worker = worker;
    s->vlan = vlan;
    s->parse = WIRE_P_NO_ICRC | WIRE_P_SELECTIVE | (loopback ? WIRE_P_LOOPBACK : 0);
    switch_set_mac(s, mac);
    return s;
}

void switch_free(struct nic_switch *s)
{
    if (!s)
        return;
    while (s->channels)
        switch_detach(s, s->channels, 0);
    switch_groups_free(s);
    switch_spill_free(s);
    close(s->epfd);
    free(s->told);
    free(s);
}

void switch_set_mac(struct nic_switch *s, const uint8_t mac[6])
{
    memcpy(s->mac, mac, sizeof(s->mac));
}

void switch_set_addrs(struct nic_switch *s, const struct wire_addr *addr, unsigned n)
{
    s->naddr = n < SWITCH_ADDRS ? n : SWITCH_ADDRS;
    memcpy(s->addr, addr, s->naddr * sizeof(*addr));
}

bool switch_has_addr(const struct nic_switch *s, const struct wire_addr *addr)
{
    for (unsigned i = 0; i < s->naddr; i++) {
        if (memcmp(s->addr[i].b, addr->b, sizeof(addr->b)) == 0)
            return true;
    }
    return false;
}

void switch_round(struct nic_switch *s)
{
    s->copies = SWITCH_COPIES;
    s->rounds++;
}
