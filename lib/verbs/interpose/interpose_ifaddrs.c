/* SPDX-License-Identifier: BSD-3-Clause
 *
 * getifaddrs: programs that look for RDMA devices by the addresses of interfaces (libfabric) find
 * those that the kernel doesn't hold. Such a device appears as an interface of its name.
 */
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "interpose.h"
#include "sysfs_load.h"
#include "ucma.h"

#define FLAGS (IFF_UP | IFF_RUNNING | IFF_BROADCAST | IFF_MULTICAST)

/* An address of ours in the block that freeifaddrs frees at once. */
struct extra {
    struct ifaddrs ifa;
    union ucma_addr addr, mask;
    char name[SYSFS_NAME_MAX];
};

static bool same_address(const struct sockaddr *a, const union ucma_addr *b)
{
    if (a == NULL || a->sa_family != b->sa.sa_family)
        return false;
    if (a->sa_family == AF_INET)
        return memcmp(&((const struct sockaddr_in *)(const void *)a)->sin_addr, &b->in.sin_addr,
                      4) == 0;
    return memcmp(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr, &b->in6.sin6_addr,
                  16) == 0;
}

static bool kernel_has(const struct ifaddrs *list, const union ucma_addr *a)
{
    for (; list != NULL; list = list->ifa_next)
        if (same_address(list->ifa_addr, a))
            return true;
    return false;
}

/* No prefix length is known: use a full mask. */
static void fill(struct extra *e, const struct sysfs_device *d, const union ucma_addr *a)
{
    e->addr = *a;
    e->mask.sa.sa_family = a->sa.sa_family;
    if (a->sa.sa_family == AF_INET)
        e->mask.in.sin_addr.s_addr = INADDR_NONE;
    else
        memset(&e->mask.in6.sin6_addr, 0xFF, 16);
    memcpy(e->name, d->dev.name, sizeof(d->dev.name));
    e->ifa = (struct ifaddrs){
        .ifa_name = e->name,
        .ifa_flags = FLAGS,
        .ifa_addr = &e->addr.sa,
        .ifa_netmask = &e->mask.sa,
    };
}

/* The *n addresses of all devices that the kernel doesn't have. NULL = none. */
static struct extra *extras(const struct ifaddrs *kernels, unsigned *n)
{
    struct sysfs_device *devs;
    int ndevs = sysfs_load(&devs);
    struct extra *e = NULL;
    *n = 0;
    if (ndevs > 0)
        e = calloc((size_t)ndevs * SYSFS_GIDS, sizeof(*e));
    for (int i = 0; e != NULL && i < ndevs; i++) {
        for (int g = 0; g < devs[i].ngids; g++) {
            union ucma_addr a;
            ucma_addr_from_gid(&a, devs[i].gids[g].raw, 0);
            /* Each address is in the table twice, as RoCE v1 and v2. */
            bool twice = false;
            for (int h = 0; h < g; h++)
                twice |= memcmp(devs[i].gids[h].raw, devs[i].gids[g].raw, 16) == 0;
            if (!twice && !kernel_has(kernels, &a))
                fill(&e[(*n)++], &devs[i], &a);
        }
    }
    free(devs);
    return e;
}

/* ---- one block of all, as libc's is ---- */

static size_t sockaddr_size(const struct sockaddr *a)
{
    return a == NULL                   ? 0
           : a->sa_family == AF_INET   ? sizeof(struct sockaddr_in)
           : a->sa_family == AF_INET6  ? sizeof(struct sockaddr_in6)
           : a->sa_family == AF_PACKET ? sizeof(struct sockaddr_storage)
                                       : sizeof(struct sockaddr);
}

#define LINK_STATISTICS 96 /* struct rtnl_link_stats, which AF_PACKET entries carry */
#define ROUND(n)        (((n) + 15) & ~(size_t)15)

static size_t data_size(const struct ifaddrs *i)
{
    bool link = i->ifa_addr != NULL && i->ifa_addr->sa_family == AF_PACKET;
    return i->ifa_data != NULL && link ? LINK_STATISTICS : 0;
}

/* sockaddr_ll is longer than the generic struct, and may have a long address; libc's entry has at
 * least the size of its own union of all. */
static size_t copied_size(const struct sockaddr *a)
{
    return a != NULL && a->sa_family == AF_PACKET ? 20 : sockaddr_size(a);
}

static size_t size_of(const struct ifaddrs *i)
{
    return ROUND(sizeof(*i)) + ROUND(strlen(i->ifa_name) + 1) + ROUND(sockaddr_size(i->ifa_addr)) +
           ROUND(sockaddr_size(i->ifa_netmask)) + ROUND(sockaddr_size(i->ifa_broadaddr)) +
           ROUND(data_size(i));
}

static void *put(uint8_t **at, const void *from, size_t n, size_t room)
{
    void *to = *at;
    if (from == NULL || room == 0)
        return NULL;
    memcpy(to, from, n);
    *at += ROUND(room);
    return to;
}

static struct ifaddrs *copy(uint8_t **at, const struct ifaddrs *i)
{
    struct ifaddrs *to = put(at, i, sizeof(*i), sizeof(*i));
    to->ifa_next = NULL;
    to->ifa_name = put(at, i->ifa_name, strlen(i->ifa_name) + 1, strlen(i->ifa_name) + 1);
    to->ifa_addr = put(at, i->ifa_addr, copied_size(i->ifa_addr), sockaddr_size(i->ifa_addr));
    to->ifa_netmask =
        put(at, i->ifa_netmask, copied_size(i->ifa_netmask), sockaddr_size(i->ifa_netmask));
    to->ifa_broadaddr =
        put(at, i->ifa_broadaddr, copied_size(i->ifa_broadaddr), sockaddr_size(i->ifa_broadaddr));
    to->ifa_data = put(at, i->ifa_data, data_size(i), data_size(i));
    return to;
}

static struct ifaddrs *joined(const struct ifaddrs *kernels, const struct extra *e, unsigned n)
{
    size_t size = 0;
    const struct ifaddrs *i;
    for (i = kernels; i != NULL; i = i->ifa_next)
        size += size_of(i);
    for (unsigned k = 0; k < n; k++)
        size += size_of(&e[k].ifa);
    uint8_t *block = calloc(1, size), *at = block;
    struct ifaddrs *first = NULL, **last = &first;
    for (i = kernels; block != NULL && i != NULL; i = i->ifa_next) {
        *last = copy(&at, i);
        last = &(*last)->ifa_next;
    }
    for (unsigned k = 0; block != NULL && k < n; k++) {
        *last = copy(&at, &e[k].ifa);
        last = &(*last)->ifa_next;
    }
    return first; /* at the block's start: freeifaddrs frees it */
}

INTERPOSED int getifaddrs(struct ifaddrs **list)
{
    struct ifaddrs *kernels = NULL;
    unsigned n;
    if (NEXT(getifaddrs)(&kernels) < 0)
        return -1;
    int saved = errno;
    struct extra *e = extras(kernels, &n);
    struct ifaddrs *all = n > 0 ? joined(kernels, e, n) : NULL;
    free(e);
    if (all != NULL)
        freeifaddrs(kernels);
    *list = all != NULL ? all : kernels;
    errno = saved;
    return 0;
}
