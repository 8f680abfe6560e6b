/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Watches a kernel interface. Link events come by routing netlink, so that a link that went down
 * and up again between two looks still counts as two changes. If it did so quickly, the kernel
 * sends one event for both, and the interface's count of lost carriers shows it. After an event the
 * state is asked for: the kernel delays events of the carrier, but not its answers.
 */
#include "dpdk_netdev.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef IFF_LOWER_UP /* <linux/if.h> has it, and doesn't go with <net/if.h> */
#define IFF_LOWER_UP 0x10000u
#endif

static void set_link(struct netdev *nd, bool up)
{
    if (nd->up != up)
        nd->changes++;
    nd->up = up;
}

/* The number of carrier losses, from an event; false = the event lacks it. */
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

/* IFF_LOWER_UP is the carrier as it is now; IFF_RUNNING may follow it a second later. */
static bool flags_up(unsigned flags)
{
    return (flags & IFF_UP) && (flags & IFF_LOWER_UP);
}

static void ifreq_for(const struct netdev *nd, struct ifreq *ifr)
{
    memset(ifr, 0, sizeof(*ifr));
    snprintf(ifr->ifr_name, sizeof(ifr->ifr_name), "%s", nd->name);
}

union answer {
    struct nlmsghdr nlh;
    char bytes[16384];
};

/* Ask the kernel for the state of the interface with this index or, if that is 0, this name. The
 * answer is there when send() returns. NULL: there is no such interface. */
static struct nlmsghdr *ask_link(struct netdev *nd, int ifindex, const char *name, union answer *a)
{
    struct {
        struct nlmsghdr nlh;
        struct ifinfomsg ifi;
        struct rtattr mask;
        uint32_t ext;
        struct rtattr attr;
        char name[IF_NAMESIZE];
    } ask = {
        .nlh = {.nlmsg_type = RTM_GETLINK, .nlmsg_flags = NLM_F_REQUEST, .nlmsg_seq = ++nd->asked},
        .ifi = {.ifi_family = AF_UNSPEC, .ifi_index = ifindex},
        .mask = {.rta_type = IFLA_EXT_MASK, .rta_len = RTA_LENGTH(sizeof(uint32_t))},
        .ext = RTEXT_FILTER_SKIP_STATS,
        .attr = {.rta_type = IFLA_IFNAME, .rta_len = RTA_LENGTH(IF_NAMESIZE)},
    };
    snprintf(ask.name, sizeof(ask.name), "%s", name);
    ask.nlh.nlmsg_len = ifindex ? offsetof(__typeof__(ask), attr) : sizeof(ask);
    if (send(nd->ask_fd, &ask, ask.nlh.nlmsg_len, MSG_DONTWAIT) < 0)
        return NULL;
    for (;;) {
        ssize_t n = recv(nd->ask_fd, a, sizeof(*a), MSG_DONTWAIT);
        if (n < 0 && (errno == EINTR || errno == ENOBUFS))
            continue;
        if (n <= 0 || !NLMSG_OK(&a->nlh, (unsigned)n))
            return NULL;
        if (a->nlh.nlmsg_seq == nd->asked)
            return a->nlh.nlmsg_type == RTM_NEWLINK ? &a->nlh : NULL;
    }
}

/* Take over the facts about the interface from a message of the kernel, except its link. */
static void take_attributes(struct netdev *nd, struct nlmsghdr *nlh)
{
    unsigned left = IFLA_PAYLOAD(nlh);
    for (struct rtattr *a = IFLA_RTA(NLMSG_DATA(nlh)); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
        size_t len = RTA_PAYLOAD(a);
        if (a->rta_type == IFLA_IFNAME && len > 1 && len <= sizeof(nd->name))
            memcpy(nd->name, RTA_DATA(a), len);
        else if (a->rta_type == IFLA_MTU && len == sizeof(nd->mtu))
            memcpy(&nd->mtu, RTA_DATA(a), len);
        else if (a->rta_type == IFLA_ADDRESS && len == sizeof(nd->mac))
            memcpy(nd->mac, RTA_DATA(a), len);
    }
}

/* Ask the kernel for the interface's state. A renamed interface is the same one. If it is gone, an
 * interface with its last or its first name takes its place. */
static int refresh(struct netdev *nd)
{
    static _Thread_local union answer a;
    struct nlmsghdr *nlh = nd->ifindex ? ask_link(nd, nd->ifindex, "", &a) : NULL;

    if (!nlh)
        nlh = ask_link(nd, 0, nd->name, &a);
    if (!nlh && strcmp(nd->name, nd->first_name) != 0)
        nlh = ask_link(nd, 0, nd->first_name, &a);
    if (!nlh) {
        if (nd->ifindex)
            nd->gone_index = nd->ifindex;
        nd->ifindex = 0;
        set_link(nd, false);
        return -ENODEV;
    }
    const struct ifinfomsg *ifi = NLMSG_DATA(nlh);
    if (nd->ifindex != ifi->ifi_index) {
        set_link(nd, false);
        nd->ifindex = ifi->ifi_index;
        nd->replaced = true;
        nd->moved = nd->downs_known = false;
    }
    take_attributes(nd, nlh);
    now_up(nd, nlh, flags_up(ifi->ifi_flags));
    return 0;
}

int netdev_open(struct netdev *nd, const char *name)
{
    struct sockaddr_nl sa = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK};
    int rc;
    memset(nd, 0, sizeof(*nd));
    nd->member_fd = nd->event_fd = nd->ask_fd = -1;
    snprintf(nd->name, sizeof(nd->name), "%s", name);
    snprintf(nd->first_name, sizeof(nd->first_name), "%s", name);
    nd->ctl_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (nd->ctl_fd >= 0)
        nd->ask_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (nd->ask_fd < 0) {
        rc = -errno;
        netdev_close(nd);
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
    if (nd->ask_fd >= 0)
        close(nd->ask_fd);
    if (nd->event_fd >= 0)
        close(nd->event_fd);
    if (nd->member_fd >= 0)
        close(nd->member_fd);
    nd->ctl_fd = nd->ask_fd = nd->event_fd = nd->member_fd = -1;
}

/* Does the message say that the interface is now in another network namespace? */
static bool says_moved(struct nlmsghdr *nlh)
{
    unsigned left = IFLA_PAYLOAD(nlh);
    for (struct rtattr *a = IFLA_RTA(NLMSG_DATA(nlh)); RTA_OK(a, left); a = RTA_NEXT(a, left))
        if (a->rta_type == IFLA_NEW_NETNSID)
            return true;
    return false;
}

static void link_event(struct netdev *nd, struct nlmsghdr *nlh)
{
    const struct ifinfomsg *ifi = NLMSG_DATA(nlh);
    if (nlh->nlmsg_len < NLMSG_LENGTH(sizeof(*ifi)) ||
        ifi->ifi_index != (nd->ifindex ? nd->ifindex : nd->gone_index))
        return;
    if (nlh->nlmsg_type == RTM_NEWLINK && nd->ifindex) {
        now_up(nd, nlh, flags_up(ifi->ifi_flags));
    } else if (nlh->nlmsg_type == RTM_DELLINK && ifi->ifi_family == AF_UNSPEC) {
        set_link(nd, false);
        nd->moved = says_moved(nlh);
    }
}

void netdev_poll(struct netdev *nd)
{
    static _Thread_local union answer buf;
    /* Some events come up to a second late, so a link that is down is checked each time. */
    bool any = nd->event_fd < 0 || !nd->up;

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
        for (struct nlmsghdr *nlh = &buf.nlh; NLMSG_OK(nlh, left); nlh = NLMSG_NEXT(nlh, left))
            link_event(nd, nlh);
    }
    if (any)
        refresh(nd);
}

int netdev_is_ethernet(const char *name)
{
    struct ifreq ifr = {0};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc = fd < 0 ? -errno : 0;
    snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
    if (fd >= 0 && ioctl(fd, SIOCGIFHWADDR, &ifr) < 0)
        rc = -errno;
    if (fd >= 0)
        close(fd);
    if (rc == 0 && ifr.ifr_hwaddr.sa_family != ARPHRD_ETHER &&
        ifr.ifr_hwaddr.sa_family != ARPHRD_LOOPBACK)
        rc = -EPROTONOSUPPORT;
    return rc;
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

int netdev_find_socket(const struct netdev_fdset *before, int domain, int ifindex, unsigned k)
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
        bool is = domain != AF_PACKET || (getsockname(fd, (struct sockaddr *)&sll, &len) == 0 &&
                                          sll.sll_ifindex == ifindex && sll.sll_protocol != 0);
        if (is && k-- == 0)
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
