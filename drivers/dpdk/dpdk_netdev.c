/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Watches a kernel interface. Link events come by routing netlink, so that a link that went down
 * and up again between two looks still counts as two changes. Where it did so quickly the kernel
 * sends one event for both; then the interface's count of lost carriers tells.
 */
#include "dpdk_netdev.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static void set_link(struct netdev *nd, bool up)
{
    if (nd->up != up)
        nd->changes++;
    nd->up = up;
}

static bool flags_up(unsigned flags)
{
    return (flags & IFF_UP) && (flags & IFF_RUNNING);
}

static void ifreq_for(const struct netdev *nd, struct ifreq *ifr)
{
    memset(ifr, 0, sizeof(*ifr));
    snprintf(ifr->ifr_name, sizeof(ifr->ifr_name), "%s", nd->name);
}

/* Have the kernel send an event that says how the interface stands. */
static void ask_event(const struct netdev *nd)
{
    struct {
        struct nlmsghdr nlh;
        struct ifinfomsg ifi;
    } ask = {
        .nlh = {.nlmsg_len = sizeof(ask), .nlmsg_type = RTM_GETLINK, .nlmsg_flags = NLM_F_REQUEST},
        .ifi = {.ifi_family = AF_UNSPEC, .ifi_index = nd->ifindex},
    };

    if (nd->event_fd >= 0)
        (void)!send(nd->event_fd, &ask, sizeof(ask), MSG_DONTWAIT);
}

/* Ask the kernel how the interface stands. */
static int refresh(struct netdev *nd)
{
    struct ifreq ifr;

    ifreq_for(nd, &ifr);
    if (ioctl(nd->ctl_fd, SIOCGIFINDEX, &ifr) < 0) {
        nd->ifindex = 0;
        set_link(nd, false);
        return -ENODEV;
    }
    if (nd->ifindex != ifr.ifr_ifindex) {
        set_link(nd, false);
        nd->ifindex = ifr.ifr_ifindex;
        nd->replaced = true;
        nd->downs_known = false;
        ask_event(nd);
    }
    if (ioctl(nd->ctl_fd, SIOCGIFMTU, &ifr) == 0)
        nd->mtu = (uint32_t)ifr.ifr_mtu;
    if (ioctl(nd->ctl_fd, SIOCGIFFLAGS, &ifr) == 0)
        set_link(nd, flags_up((unsigned short)ifr.ifr_flags));
    return 0;
}

int netdev_open(struct netdev *nd, const char *name)
{
    struct sockaddr_nl sa = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK};
    int rc;

    memset(nd, 0, sizeof(*nd));
    nd->member_fd = -1;
    snprintf(nd->name, sizeof(nd->name), "%s", name);
    nd->ctl_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (nd->ctl_fd < 0) {
        rc = -errno;
        nd->event_fd = -1;
        return rc;
    }
    nd->event_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (nd->event_fd >= 0 && bind(nd->event_fd, (struct sockaddr *)&sa, sizeof(sa)) < 0) {
        close(nd->event_fd);
        nd->event_fd = -1;
    }
    rc = refresh(nd);
    if (rc)
        netdev_close(nd);
    nd->replaced = false;
    nd->changes = 0;
    return rc;
}

void netdev_close(struct netdev *nd)
{
    if (nd->ctl_fd >= 0)
        close(nd->ctl_fd);
    if (nd->event_fd >= 0)
        close(nd->event_fd);
    if (nd->member_fd >= 0)
        close(nd->member_fd);
    nd->ctl_fd = nd->event_fd = nd->member_fd = -1;
}

/* How often the carrier was lost, from an event; false = it doesn't say. */
static bool event_downs(struct nlmsghdr *nlh, uint32_t *downs)
{
    unsigned left = IFLA_PAYLOAD(nlh);

    for (struct rtattr *a = IFLA_RTA(NLMSG_DATA(nlh)); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
        if (a->rta_type == IFLA_CARRIER_DOWN_COUNT && RTA_PAYLOAD(a) >= sizeof(*downs)) {
            memcpy(downs, RTA_DATA(a), sizeof(*downs));
            return true;
        }
    }
    return false;
}

static void now_up(struct netdev *nd, struct nlmsghdr *nlh, bool up)
{
    bool was_up = nd->up;
    uint32_t downs;

    set_link(nd, up);
    if (!event_downs(nlh, &downs))
        return;
    if (was_up && up && nd->downs_known && downs != nd->downs)
        nd->changes += 2;
    nd->downs = downs;
    nd->downs_known = true;
}

static void link_event(struct netdev *nd, struct nlmsghdr *nlh)
{
    const struct ifinfomsg *ifi = NLMSG_DATA(nlh);

    if (nlh->nlmsg_len < NLMSG_LENGTH(sizeof(*ifi)) || ifi->ifi_index != nd->ifindex)
        return;
    if (nlh->nlmsg_type == RTM_NEWLINK)
        now_up(nd, nlh, flags_up(ifi->ifi_flags));
    else if (nlh->nlmsg_type == RTM_DELLINK)
        set_link(nd, false);
}

void netdev_poll(struct netdev *nd)
{
    static _Thread_local union {
        struct nlmsghdr align;
        char bytes[16384];
    } buf;
    bool any = nd->event_fd < 0;

    while (nd->event_fd >= 0) {
        ssize_t n = recv(nd->event_fd, &buf, sizeof(buf), MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == ENOBUFS) { /* events were lost: look again below, and count */
            nd->changes += 2;
            any = true;
            continue;
        }
        if (n <= 0)
            break;
        any = true;
        unsigned left = (unsigned)n;
        for (struct nlmsghdr *nlh = &buf.align; NLMSG_OK(nlh, left); nlh = NLMSG_NEXT(nlh, left))
            link_event(nd, nlh);
    }
    if (any)
        refresh(nd);
}

int netdev_raise_mtu(struct netdev *nd, uint32_t mtu)
{
    struct ifreq ifr;

    if (nd->mtu >= mtu)
        return 0;
    ifreq_for(nd, &ifr);
    ifr.ifr_mtu = (int)mtu;
    if (ioctl(nd->ctl_fd, SIOCSIFMTU, &ifr) < 0)
        return -errno;
    nd->mtu = mtu;
    return 0;
}

int netdev_set_up(struct netdev *nd)
{
    struct ifreq ifr;

    ifreq_for(nd, &ifr);
    if (ioctl(nd->ctl_fd, SIOCGIFFLAGS, &ifr) < 0)
        return -errno;
    if (!(ifr.ifr_flags & IFF_UP)) {
        ifr.ifr_flags |= IFF_UP;
        if (ioctl(nd->ctl_fd, SIOCSIFFLAGS, &ifr) < 0)
            return -errno;
    }
    refresh(nd);
    return 0;
}

int netdev_allmulti(struct netdev *nd)
{
    struct packet_mreq mreq = {.mr_ifindex = nd->ifindex, .mr_type = PACKET_MR_ALLMULTI};
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0); /* protocol 0: receives nothing */

    if (fd < 0)
        return -errno;
    if (setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &mreq, sizeof(mreq)) < 0) {
        int rc = -errno;
        close(fd);
        return rc;
    }
    if (nd->member_fd >= 0)
        close(nd->member_fd);
    nd->member_fd = fd;
    return 0;
}

int netdev_ignore_outgoing(int fd)
{
    /* A filter, because the option PACKET_IGNORE_OUTGOING has no effect in the fanout group that
     * DPDK's driver puts its sockets in. */
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_OUTGOING, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
    };
    struct sock_fprog prog = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)) < 0 ? -errno : 0;
}

void netdev_fds(struct netdev_fdset *set)
{
    DIR *dir = opendir("/proc/self/fd");
    const struct dirent *de;

    memset(set, 0, sizeof(*set));
    while (dir && (de = readdir(dir))) {
        int fd = atoi(de->d_name);
        if (de->d_name[0] != '.' && fd < NETDEV_FDS && fd != dirfd(dir))
            set->open[fd / 8] |= (uint8_t)(1u << (fd % 8));
    }
    if (dir)
        closedir(dir);
}

static bool fd_is_new(const struct netdev_fdset *before, const struct netdev_fdset *now, int fd)
{
    return (now->open[fd / 8] & ~before->open[fd / 8]) >> (fd % 8) & 1;
}

static bool is_xdp(int fd)
{
    char path[32], target[32] = "";
    int domain = 0;
    socklen_t len = sizeof(domain);

    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0)
        return domain == AF_XDP;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return readlink(path, target, sizeof(target) - 1) > 0 &&
           !strncmp(target, "anon_inode:bpf", strlen("anon_inode:bpf"));
}

void netdev_find_xdp(const struct netdev_fdset *before, struct netdev_fdset *mine)
{
    struct netdev_fdset now;

    netdev_fds(&now);
    memset(mine, 0, sizeof(*mine));
    for (int fd = 0; fd < NETDEV_FDS; fd++)
        if (fd_is_new(before, &now, fd) && is_xdp(fd))
            mine->open[fd / 8] |= (uint8_t)(1u << (fd % 8));
}

void netdev_close_xdp(const struct netdev_fdset *mine)
{
    for (int fd = 0; fd < NETDEV_FDS; fd++)
        if (mine->open[fd / 8] >> (fd % 8) & 1 && is_xdp(fd))
            close(fd);
}

int netdev_find_socket(const struct netdev_fdset *before, int domain, int ifindex)
{
    struct netdev_fdset now;

    netdev_fds(&now);
    for (int fd = 0; fd < NETDEV_FDS; fd++) {
        struct sockaddr_ll sll = {0};
        socklen_t len = sizeof(sll), dlen = sizeof(int);
        int have;

        if (!fd_is_new(before, &now, fd) ||
            getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &have, &dlen) < 0 || have != domain)
            continue;
        if (domain != AF_PACKET)
            return fd;
        if (getsockname(fd, (struct sockaddr *)&sll, &len) == 0 && sll.sll_ifindex == ifindex &&
            sll.sll_protocol != 0)
            return fd;
    }
    return -1;
}

int netdev_find_tap(const struct netdev_fdset *before, const char *name)
{
    struct netdev_fdset now;

    netdev_fds(&now);
    for (int fd = 0; fd < NETDEV_FDS; fd++) {
        struct ifreq ifr = {0};

        if (fd_is_new(before, &now, fd) && ioctl(fd, TUNGETIFF, &ifr) == 0 &&
            !strcmp(ifr.ifr_name, name) && !(ifr.ifr_flags & IFF_DETACH_QUEUE))
            return fd;
    }
    return -1;
}
