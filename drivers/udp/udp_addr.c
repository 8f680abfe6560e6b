/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See udp_addr.h. Events only say that the list has to be read again; their contents are ignored.
 * So lost events do no harm.
 */
#include "udp_addr.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define UNUSABLE (IFA_F_TENTATIVE | IFA_F_DADFAILED)

void udp_watch_open(struct udp_watch *w)
{
    struct sockaddr_nl sa = {.nl_family = AF_NETLINK,
                             .nl_groups = RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR};
    w->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (w->fd >= 0 && bind(w->fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0)
        udp_watch_close(w);
}

void udp_watch_close(struct udp_watch *w)
{
    if (w->fd >= 0)
        close(w->fd);
    w->fd = -1;
}

bool udp_watch_changed(struct udp_watch *w)
{
    char buf[8192];
    bool any = w->fd < 0;
    for (unsigned i = 0; i < 64 && w->fd >= 0; i++) {
        ssize_t n = recv(w->fd, buf, sizeof(buf), MSG_DONTWAIT);
        if (n < 0 && errno != ENOBUFS && errno != EINTR)
            break;
        any = true;
    }
    return any;
}

bool udp_addr_is_link_local(const struct io_addr *a)
{
    return a->b[0] == 0xFE && (a->b[1] & 0xC0) == 0x80;
}

static bool parse(struct nlmsghdr *nh, int ifindex, struct io_addr *out)
{
    struct ifaddrmsg *ifa = NLMSG_DATA(nh);
    int len = (int)nh->nlmsg_len - (int)NLMSG_LENGTH(sizeof(*ifa));
    uint32_t flags = 0;
    bool local = false, found = false;
    if (len < 0 || (int)ifa->ifa_index != ifindex)
        return false;
    flags = ifa->ifa_flags;
    struct rtattr *a = (struct rtattr *)(void *)((uint8_t *)ifa + NLMSG_ALIGN(sizeof(*ifa)));
    for (; RTA_OK(a, len); a = RTA_NEXT(a, len)) {
        size_t size = RTA_PAYLOAD(a);
        if (a->rta_type == IFA_FLAGS && size == sizeof(flags))
            memcpy(&flags, RTA_DATA(a), sizeof(flags));
        if (a->rta_type != IFA_LOCAL && (a->rta_type != IFA_ADDRESS || local))
            continue;
        local = a->rta_type == IFA_LOCAL; /* on a point-to-point link the other one is the peer's */
        memset(out->b, 0, sizeof(out->b));
        if (ifa->ifa_family == AF_INET && size == 4) {
            out->b[10] = out->b[11] = 0xFF;
            memcpy(out->b + 12, RTA_DATA(a), 4);
            found = true;
        } else if (ifa->ifa_family == AF_INET6 && size == 16) {
            memcpy(out->b, RTA_DATA(a), 16);
            found = true;
        }
    }
    return found && !(flags & UNUSABLE);
}

static int ask(int fd)
{
    const struct {
        struct nlmsghdr nh;
        struct ifaddrmsg ifa;
    } m = {
        .nh = {.nlmsg_len = sizeof(m),
               .nlmsg_type = RTM_GETADDR,
               .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
    };
    return send(fd, &m, sizeof(m), 0) < 0 ? -errno : 0;
}

int udp_addr_list(int ifindex, struct io_addr *out, unsigned max)
{
    _Alignas(struct nlmsghdr) char buf[16384];
    unsigned n = 0;
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    int rc = fd < 0 ? -errno : ask(fd);
    for (bool more = rc == 0; more;) {
        ssize_t got = recv(fd, buf, sizeof(buf), 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            rc = got < 0 ? -errno : -EIO;
            break;
        }
        unsigned left = (unsigned)got;
        for (struct nlmsghdr *nh = (void *)buf; NLMSG_OK(nh, left); nh = NLMSG_NEXT(nh, left)) {
            if (nh->nlmsg_type == NLMSG_DONE || nh->nlmsg_type == NLMSG_ERROR)
                more = false;
            else if (nh->nlmsg_type == RTM_NEWADDR && n < max && parse(nh, ifindex, &out[n]))
                n++;
        }
    }
    if (fd >= 0)
        close(fd);
    return rc < 0 ? rc : (int)n;
}
