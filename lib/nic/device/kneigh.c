/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See kneigh.h. One netlink socket is subscribed to changes of neighbours and addresses. Requests
 * go out on it without waiting; their answers look like changes.
 */
#include "kneigh.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "log.h"
#include "settings.h"

#define KNEIGH_KNOWN (NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT | NUD_NOARP)
#define KNEIGH_BATCH 64 /* messages read at a time */

struct kneigh {
    int fd;
    int sink;         /* -1 = another program has the port */
    unsigned ifindex; /* 0 = the interface is gone */
    char name[IF_NAMESIZE];
    bool complained;
};

/* ---- requests ---- */

int kneigh_ask_addresses(const struct kneigh *k)
{
    struct {
        struct nlmsghdr nh;
        struct ifaddrmsg ifa;
    } m = {
        .nh = {.nlmsg_len = sizeof(m),
               .nlmsg_type = RTM_GETADDR,
               .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
    };
    return send(k->fd, &m, sizeof(m), 0) < 0 ? -errno : 0;
}

static void kneigh_request(const struct kneigh *k, uint16_t type, uint16_t flags, uint8_t use,
                           const struct wire_addr *addr)
{
    struct {
        struct nlmsghdr nh;
        struct ndmsg nd;
        struct rtattr dst;
        uint8_t addr[16];
    } m;
    bool v4 = wire_addr_is_v4(addr);
    unsigned len = v4 ? 4 : 16;
    memset(&m, 0, sizeof(m));
    m.nh.nlmsg_len = (uint32_t)(offsetof(__typeof__(m), addr) + len);
    m.nh.nlmsg_type = type;
    m.nh.nlmsg_flags = NLM_F_REQUEST | flags;
    m.nd.ndm_family = v4 ? AF_INET : AF_INET6;
    m.nd.ndm_ifindex = (int)k->ifindex;
    m.nd.ndm_flags = use;
    m.dst.rta_type = NDA_DST;
    m.dst.rta_len = (uint16_t)RTA_LENGTH(len);
    memcpy(m.addr, addr->b + (v4 ? 12 : 0), len);
    /* lib/net repeats a request that could not be sent. */
    (void)!send(k->fd, &m, m.nh.nlmsg_len, MSG_DONTWAIT);
}

void kneigh_ask(struct kneigh *k, const struct wire_addr *addr)
{
    if (k->ifindex == 0)
        return;
    kneigh_request(k, RTM_NEWNEIGH, NLM_F_CREATE, NTF_USE, addr); /* as a packet to it would */
    kneigh_request(k, RTM_GETNEIGH, 0, 0, addr);
}

/* ---- answers ---- */

/* A message in our own buffer. It is not const because of the macros of the kernel's headers. */
static struct wire_addr kneigh_addr(unsigned family, struct rtattr *a)
{
    struct wire_addr addr = {0};
    if (family == AF_INET && RTA_PAYLOAD(a) == 4) {
        addr.b[10] = addr.b[11] = 0xFF;
        memcpy(addr.b + 12, RTA_DATA(a), 4);
    } else if (family == AF_INET6 && RTA_PAYLOAD(a) == 16) {
        memcpy(addr.b, RTA_DATA(a), 16);
    }
    return addr;
}

static void kneigh_neighbour(const struct kneigh *k, struct nlmsghdr *nh, struct net_port *port,
                             uint64_t now)
{
    struct ndmsg *nd = NLMSG_DATA(nh);
    int len = (int)nh->nlmsg_len - (int)NLMSG_LENGTH(sizeof(*nd));
    struct wire_addr addr = {0};
    const uint8_t *mac = NULL;
    if (len < 0 || nd->ndm_ifindex != (int)k->ifindex)
        return;
    struct rtattr *a = (struct rtattr *)(void *)((uint8_t *)nd + NLMSG_ALIGN(sizeof(*nd)));
    for (; RTA_OK(a, len); a = RTA_NEXT(a, len)) {
        if (a->rta_type == NDA_DST)
            addr = kneigh_addr(nd->ndm_family, a);
        else if (a->rta_type == NDA_LLADDR && RTA_PAYLOAD(a) == 6)
            mac = RTA_DATA(a);
    }
    if (mac && (nd->ndm_state & KNEIGH_KNOWN))
        net_neigh_told(port, &addr, mac, now);
    else if (nd->ndm_state & NUD_FAILED)
        net_neigh_told(port, &addr, NULL, now);
}

static void kneigh_address(const struct kneigh *k, struct nlmsghdr *nh, struct net_port *port)
{
    struct ifaddrmsg *ifa = NLMSG_DATA(nh);
    int len = (int)nh->nlmsg_len - (int)NLMSG_LENGTH(sizeof(*ifa));
    struct wire_addr addr = {0};
    bool local = false;
    if (len < 0 || ifa->ifa_index != k->ifindex)
        return;
    struct rtattr *a = (struct rtattr *)(void *)((uint8_t *)ifa + NLMSG_ALIGN(sizeof(*ifa)));
    for (; RTA_OK(a, len); a = RTA_NEXT(a, len)) {
        if (a->rta_type == IFA_LOCAL || (a->rta_type == IFA_ADDRESS && !local))
            addr = kneigh_addr(ifa->ifa_family, a);
        local |= a->rta_type == IFA_LOCAL;
    }
    net_addr_foreign(port, &addr, nh->nlmsg_type == RTM_NEWADDR);
}

/* The interface has a new name, or is gone, or another one with its name has taken its place
 * (WIRE-36). */
static void kneigh_link(struct kneigh *k, struct nlmsghdr *nh)
{
    struct ifinfomsg *ifi = NLMSG_DATA(nh);
    unsigned left = IFLA_PAYLOAD(nh), index = (unsigned)ifi->ifi_index;
    const char *name = NULL;
    if (nh->nlmsg_len < NLMSG_LENGTH(sizeof(*ifi)) || ifi->ifi_family != AF_UNSPEC)
        return;
    for (struct rtattr *a = IFLA_RTA(ifi); RTA_OK(a, left); a = RTA_NEXT(a, left))
        if (a->rta_type == IFLA_IFNAME && RTA_PAYLOAD(a) > 0 && RTA_PAYLOAD(a) <= sizeof(k->name))
            name = RTA_DATA(a);
    if (nh->nlmsg_type == RTM_DELLINK && index == k->ifindex) {
        log_info("neigh", "interface %s of neigh=kernel is gone", k->name);
        k->ifindex = 0;
    } else if (nh->nlmsg_type == RTM_NEWLINK && index == k->ifindex && name) {
        snprintf(k->name, sizeof(k->name), "%s", name);
    } else if (nh->nlmsg_type == RTM_NEWLINK && k->ifindex == 0 && name &&
               strcmp(name, k->name) == 0) {
        log_info("neigh", "interface %s of neigh=kernel is back", name);
        k->ifindex = index;
        kneigh_ask_addresses(k);
    }
}

static void kneigh_refused(struct kneigh *k, struct nlmsghdr *nh)
{
    const struct nlmsgerr *e = NLMSG_DATA(nh);
    if (nh->nlmsg_len < NLMSG_LENGTH(sizeof(*e)) || e->error != -EPERM || k->complained)
        return;
    k->complained = true;
    log_warn("neigh",
             "%s: the kernel can't be asked for neighbours without CAP_NET_ADMIN: only those that "
             "it knows already can be reached",
             k->name);
}

void kneigh_poll(struct kneigh *k, struct net_port *port, uint64_t now)
{
    _Alignas(struct nlmsghdr) uint8_t buf[8192];
    for (unsigned i = 0; i < KNEIGH_BATCH; i++) {
        ssize_t n = recv(k->fd, buf, sizeof(buf), MSG_DONTWAIT);
        if (n < 0 && errno == ENOBUFS) {
            k->ifindex = if_nametoindex(k->name);
            kneigh_ask_addresses(k); /* neighbours are resolved again when they are used */
            continue;
        }
        if (n <= 0)
            return;
        unsigned left = (unsigned)n;
        for (struct nlmsghdr *nh = (void *)buf; NLMSG_OK(nh, left); nh = NLMSG_NEXT(nh, left)) {
            if (nh->nlmsg_type == RTM_NEWNEIGH)
                kneigh_neighbour(k, nh, port, now);
            else if (nh->nlmsg_type == RTM_NEWADDR || nh->nlmsg_type == RTM_DELADDR)
                kneigh_address(k, nh, port);
            else if (nh->nlmsg_type == RTM_NEWLINK || nh->nlmsg_type == RTM_DELLINK)
                kneigh_link(k, nh);
            else if (nh->nlmsg_type == NLMSG_ERROR)
                kneigh_refused(k, nh);
        }
    }
}

/* ---- life ---- */

/* The kernel sees the same frames, and would answer RoCE packets for its addresses with ICMP "port
 * unreachable". A socket that is bound to the UDP port and discards everything prevents that. */
static int kneigh_sink(void)
{
    struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
    const struct sock_fprog prog = {.len = 1, .filter = &nothing};
    struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(WIRE_UDP_PORT)};
    const int off = 0;
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog));
    if (bind(fd, (const struct sockaddr *)&any, sizeof(any)) == 0)
        return fd;
    close(fd);
    return -1;
}

int kneigh_open(struct kneigh **out, const char *ifname, char *err)
{
    struct sockaddr_nl sa = {.nl_family = AF_NETLINK,
                             .nl_groups = RTMGRP_NEIGH | RTMGRP_LINK | RTMGRP_IPV4_IFADDR |
                                          RTMGRP_IPV6_IFADDR};
    unsigned ifindex = if_nametoindex(ifname);
    struct kneigh *k = calloc(1, sizeof(*k));
    if (!k || ifindex == 0) {
        snprintf(err, CONFIG_ERR, "neigh=kernel: interface %s: %s", ifname,
                 k ? "there is none of this name" : "out of memory");
        free(k);
        return ifindex == 0 ? -ENODEV : -ENOMEM;
    }
    k->ifindex = ifindex;
    snprintf(k->name, sizeof(k->name), "%s", ifname);
    k->sink = -1;
    k->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    int rc = k->fd < 0 || bind(k->fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0
                 ? -errno
                 : kneigh_ask_addresses(k);
    if (rc < 0) {
        snprintf(err, CONFIG_ERR, "neigh=kernel: routing netlink: %s", strerror(-rc));
        kneigh_close(k);
        return rc;
    }
    k->sink = kneigh_sink();
    *out = k;
    return 0;
}

void kneigh_close(struct kneigh *k)
{
    if (!k)
        return;
    if (k->fd >= 0)
        close(k->fd);
    if (k->sink >= 0)
        close(k->sink);
    free(k);
}
