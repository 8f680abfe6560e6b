/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A port on the host's own addresses: opening it, and following its interface.
 */
#include "udp_port.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "io_arg.h"
#include "udp.h"
#include "udp_error.h"
#include "udp_group.h"
#include "udp_holder.h"
#include "udp_icrc.h"
#include "udp_queue.h"
#include "udp_rx.h"
#include "udp_socket.h"
#include "udp_tx.h"
#include "wire.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

#define ETHER    (WIRE_ETH_LEN + WIRE_VLAN_LEN) /* octets of frame_max that are not IP */
#define RETRY_NS 200000000u

void udp_say(struct udp_port *p, const char *fmt, ...)
{
    va_list ap;

    if (p->tell[0])
        return;
    va_start(ap, fmt);
    vsnprintf(p->tell, sizeof(p->tell), fmt, ap);
    va_end(ap);
}

/* ---- addresses ---- */

static bool is_lo_v4(const struct io_addr *a)
{
    struct wire_addr w;
    memcpy(w.b, a->b, sizeof(w.b));
    return wire_addr_is_v4(&w) && a->b[12] == 127;
}

/* The wanted addresses that the interface has. On lo it has all of 127/8, unlisted. */
static unsigned wanted(const struct udp_port *p, struct io_addr *out)
{
    struct io_addr all[256];
    int n = p->ifindex ? udp_addr_list(p->ifindex, all, 256) : 0;
    unsigned m = 0;
    for (int i = 0; i < n && m < UDP_ADDRS; i++) {
        if (udp_spec_wants(&p->spec, &all[i]) && !(p->lo && p->spec.nonly && is_lo_v4(&all[i])))
            out[m++] = all[i];
    }
    for (unsigned i = 0; p->lo && i < p->spec.nonly && m < UDP_ADDRS; i++) {
        if (is_lo_v4(&p->spec.only[i]))
            out[m++] = p->spec.only[i];
    }
    return m;
}

static bool is_in(const struct io_addr *list, unsigned n, const struct io_addr *a)
{
    for (unsigned i = 0; i < n; i++) {
        if (memcmp(list[i].b, a->b, sizeof(a->b)) == 0)
            return true;
    }
    return false;
}

/* Open a socket for each address. Returns the first error; the text has the address and the holder
 * of its port from /proc. */
static int follow_addresses(struct udp_port *p, struct io_addr *bad, char *why, size_t size)
{
    struct io_addr want[UDP_ADDRS];
    unsigned n = wanted(p, want);
    int rc = 0;
    for (unsigned i = 0; i < p->nsock; i++) {
        struct udp_socket *s = &p->sock[i];
        if (s->fd >= 0 && !s->group && !is_in(want, n, &s->addr))
            udp_socket_close(p, s);
    }
    for (unsigned i = 0; i < n; i++) {
        if (udp_socket_find(p, &want[i], false))
            continue;
        int one = udp_socket_open(p, &want[i], false, rc == 0 ? why : NULL, size);
        if (one < 0 && rc == 0) {
            rc = one;
            *bad = want[i];
        }
    }
    return rc;
}

static int complain(const struct io_addr *bad, int rc, const char *why, char *text, size_t size)
{
    struct wire_addr w;
    char addr[64];
    memcpy(w.b, bad->b, sizeof(w.b));
    wire_addr_str(&w, addr, sizeof(addr));
    if (rc == -EADDRINUSE)
        snprintf(text, size, "UDP port %u of %s is taken by %s", WIRE_UDP_PORT, addr, why);
    else
        snprintf(text, size, "UDP port %u of %s: %s", WIRE_UDP_PORT, addr, strerror(-rc));
    return rc;
}

static void rejoin(struct udp_port *p)
{
    struct io_addr groups[UDP_GROUPS];
    unsigned n = 0;
    for (unsigned i = 0; i < p->nsock; i++) {
        struct udp_socket *s = &p->sock[i];
        if (s->fd < 0 || !s->group)
            continue;
        groups[n++] = s->addr;
        udp_socket_close(p, s);
    }
    udp_groups(&p->io, groups, n);
}

/* ---- the interface ---- */

static uint64_t line_rate(const struct udp_port *p)
{
    struct ethtool_cmd cmd = {.cmd = ETHTOOL_GSET};
    struct ifreq ifr = {0};
    snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", p->dev.name);
    ifr.ifr_data = (void *)&cmd;
    if (ioctl(p->dev.ctl_fd, SIOCETHTOOL, &ifr) < 0)
        return 0;
    uint32_t speed = ethtool_cmd_speed(&cmd);
    return speed == (uint32_t)SPEED_UNKNOWN ? 0 : speed * UINT64_C(1000000);
}

static void take_interface(struct udp_port *p)
{
    uint32_t max = p->dev.mtu + ETHER;
    if (max > IO_FRAME_MAX)
        max = IO_FRAME_MAX;
    if (p->frame_max && p->frame_max < max)
        max = p->frame_max;
    p->io.caps.frame_max = max;
    p->io.caps.ifindex = (uint32_t)p->ifindex;
    p->io.caps.rate_bps = line_rate(p);
}

static void port_service(struct io_port *io, uint64_t now)
{
    struct udp_port *p = udp_port_of(io);
    char why[UDP_HOLDER_TEXT] = "", text[UDP_TELL];
    struct io_addr bad;
    uint64_t changes = p->dev.changes;
    udp_error_drain_all(p);
    netdev_poll(&p->dev);
    bool other = p->dev.ifindex != p->ifindex;
    p->ifindex = p->dev.ifindex;
    if (other && p->ifindex)
        rejoin(p);
    if (other || p->dev.changes != changes || p->dev.mtu + ETHER != io->caps.frame_max)
        take_interface(p);
    if (p->queue > 0)
        udp_queue_follow(p);
    if (p->queue > 0 || p->lent)
        return;
    bool changed = udp_watch_changed(&p->watch); /* reads all events */
    if (!changed && !other && now < p->retry_at)
        return;
    int rc = follow_addresses(p, &bad, why, sizeof(why));
    p->retry_at = rc < 0 ? now + RETRY_NS : UINT64_MAX;
    if (rc == 0)
        return;
    complain(&bad, rc, why, text, sizeof(text));
    if (strcmp(text, p->told) != 0)
        udp_say(p, "%s: the device does without it; tried again five times a second", text);
    memcpy(p->told, text, sizeof(text));
}

static void port_link(struct io_port *io, struct io_link *out)
{
    struct udp_port *p = udp_port_of(io);
    *out = (struct io_link){.up = p->dev.up, .changes = p->dev.changes};
    if (out->up)
        return;
    if (p->dev.ifindex == 0)
        snprintf(p->why, sizeof(p->why), "there is no interface %s now", p->dev.name);
    else
        snprintf(p->why, sizeof(p->why), "interface %s is down, or has no carrier", p->dev.name);
    out->why = p->why;
}

/* ---- facts of the kernel's stack ---- */

static unsigned port_addrs(struct io_port *io, struct io_addr *out, unsigned max)
{
    const struct udp_port *p = udp_port_of(io);
    unsigned n = 0;
    for (unsigned i = 0; i < p->nsock && n < max; i++) {
        if (p->sock[i].fd >= 0 && !p->sock[i].group)
            out[n++] = p->sock[i].addr;
    }
    return n;
}

/* The route's MTU, and the path MTU that the kernel has learned (ICMP, probes of TCP). */
static uint32_t port_path_room(struct io_port *io, const struct io_addr *dst)
{
    const struct udp_port *p = udp_port_of(io);
    union udp_sockaddr sa;
    bool scoped = udp_addr_is_link_local(dst) || dst->b[0] == 0xFF;
    socklen_t len = udp_sockaddr_set(&sa, dst, scoped ? (uint32_t)p->ifindex : 0);
    bool v4 = sa.sa.sa_family == AF_INET;
    int mtu = 0, fd = socket(sa.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return 0;
    socklen_t size = sizeof(mtu);
    if (connect(fd, &sa.sa, len) < 0 ||
        getsockopt(fd, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_MTU : IPV6_MTU, &mtu, &size) < 0)
        mtu = 0;
    close(fd);
    return mtu > 0 ? (uint32_t)mtu : 0;
}

/* The kernel's source address for a destination; `bound`: among those of the interface. */
static int ask_source(const struct udp_port *p, const struct io_addr *dst, bool bound,
                      struct io_addr *src)
{
    union udp_sockaddr sa;
    socklen_t len = udp_sockaddr_set(&sa, dst, (uint32_t)p->ifindex);
    int fd = socket(sa.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc = 0;
    if (fd < 0)
        return -errno;
    if (sa.sa.sa_family == AF_INET6 && !udp_addr_is_link_local(dst) && dst->b[0] != 0xFF)
        sa.v6.sin6_scope_id = 0;
    if (bound && setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, p->dev.name,
                            (socklen_t)strlen(p->dev.name)) < 0)
        rc = -errno;
    if (rc == 0 && connect(fd, &sa.sa, len) < 0)
        rc = -errno;
    len = sizeof(sa);
    if (rc == 0 && getsockname(fd, &sa.sa, &len) < 0)
        rc = -errno;
    close(fd);
    if (rc == 0)
        udp_sockaddr_get(&sa, src);
    return rc;
}

static int port_source(struct io_port *io, const struct io_addr *dst, struct io_addr *src)
{
    struct udp_port *p = udp_port_of(io);
    int rc = ask_source(p, dst, false, src);
    struct wire_addr a, b;
    if (rc == 0 && udp_socket_find(p, src, false))
        return 0;
    rc = ask_source(p, dst, true, src);
    if (rc < 0)
        return rc == -EPERM || rc == -EADDRNOTAVAIL ? -ENETUNREACH : rc;
    if (udp_socket_find(p, src, false))
        return 0;
    memcpy(a.b, dst->b, sizeof(a.b));
    for (unsigned i = 0; i < p->nsock; i++) { /* addr= leaves the kernel's choice out */
        const struct udp_socket *s = &p->sock[i];
        memcpy(b.b, s->addr.b, sizeof(b.b));
        if (s->fd < 0 || s->group || wire_addr_is_v4(&a) != wire_addr_is_v4(&b) ||
            udp_addr_is_link_local(&s->addr) != udp_addr_is_link_local(dst))
            continue;
        *src = s->addr;
        return 0;
    }
    return -ENETUNREACH;
}

static bool port_news(struct io_port *io, char *text, size_t size)
{
    struct udp_port *p = udp_port_of(io);
    if (!p->tell[0])
        return false;
    snprintf(text, size, "%s", p->tell);
    p->tell[0] = '\0';
    return true;
}

/* ---- the rest of the table ---- */

/* The epoll set is readable whenever a socket is: nothing needs arming. */
static void port_rx_arm(struct io_port *io, bool on)
{
    if (!on)
        udp_port_of(io)->rx.woken = true;
}

static uint64_t port_deadline(struct io_port *io)
{
    const struct udp_port *p = udp_port_of(io);
    if (p->rx.first + p->rx.lent < p->rx.count)
        return 0;
    return p->tx.sent < p->tx.count ? p->tx.retry_at : UINT64_MAX;
}

static void port_stats(struct io_port *io, struct io_stats *out)
{
    *out = udp_port_of(io)->stats;
}

void udp_port_forked(const struct io_port *io)
{
    const struct udp_port *p = (const struct udp_port *)io;
    for (unsigned i = 0; i < p->nsock; i++) {
        struct sockaddr_storage at = {0};
        socklen_t len = sizeof(at);
        const int fd = p->sock[i].fd;
        /* A number that stands for something else by now is left open. */
        if (fd < 0 || getsockname(fd, (struct sockaddr *)&at, &len) < 0)
            continue;
        if ((at.ss_family == AF_INET &&
             ((const struct sockaddr_in *)(void *)&at)->sin_port == htons(WIRE_UDP_PORT)) ||
            (at.ss_family == AF_INET6 &&
             ((const struct sockaddr_in6 *)(void *)&at)->sin6_port == htons(WIRE_UDP_PORT)))
            close(fd);
    }
}

static void port_close(struct io_port *io)
{
    struct udp_port *p = udp_port_of(io);
    for (unsigned i = 0; i < p->nsock; i++)
        udp_socket_close(p, &p->sock[i]);
    udp_queue_close(p);
    udp_watch_close(&p->watch);
    if (p->epfd >= 0)
        close(p->epfd);
    netdev_close(&p->dev);
    udp_rx_free(p);
    free(p->tx.slots);
    free(p);
}

static const struct io_ops udp_ops = {
    .name = "udp",
    .rx_arm = port_rx_arm,
    .rx_peek = udp_rx_peek,
    .rx_release = udp_rx_release,
    .tx_reserve = udp_tx_reserve,
    .tx_commit = udp_tx_commit,
    .deadline = port_deadline,
    .service = port_service,
    .addrs = port_addrs,
    .source = port_source,
    .icmp = udp_error_icmp,
    .path_room = port_path_room,
    .groups = udp_groups,
    .queue = udp_queue_open,
    .lend = udp_queue_lend,
    .unlend = udp_queue_unlend,
    .news = port_news,
    .link = port_link,
    .stats = port_stats,
    .close = port_close,
};

/* ---- opening ---- */

/* Choose the port's MAC address. It is never on the wire, but the device's GUID comes from it, so
 * two devices on one interface need different addresses. */
static void choose_mac(struct udp_port *p, const struct io_open_params *params)
{
    static const uint8_t none[6];
    uint64_t h = 0xcbf29ce484222325ull; /* FNV-1a */
    uint8_t *mac = p->io.caps.mac;
    if (memcmp(params->mac, none, 6) != 0) {
        memcpy(mac, params->mac, 6);
        return;
    }
    memcpy(mac, p->dev.mac, 6);
    if (memcmp(mac, none, 6) != 0 && p->spec.nonly == 0)
        return;
    for (unsigned i = 0; i < 6; i++)
        h = (h ^ mac[i]) * 0x100000001b3ull;
    for (unsigned i = 0; p->nsock > 0 && i < sizeof(p->sock[0].addr.b); i++)
        h = (h ^ p->sock[0].addr.b[i]) * 0x100000001b3ull;
    mac[0] = 0x02; /* locally administered, unicast */
    for (unsigned i = 1; i < 6; i++)
        mac[i] = (uint8_t)(h >> (8 * i));
}

static int allocate(struct udp_port *p)
{
    p->tx.slots = aligned_alloc(64, (size_t)IO_BURST_MAX * UDP_STRIDE);
    p->epfd = epoll_create1(EPOLL_CLOEXEC);
    udp_watch_open(&p->watch);
    return udp_rx_alloc(p) == 0 && p->tx.slots && p->epfd >= 0 ? 0 : -ENOMEM;
}

/* The requested addresses that the interface lacks. */
static void tell_missing(struct udp_port *p)
{
    char text[64];
    struct wire_addr w;
    for (unsigned i = 0; i < p->spec.nonly; i++) {
        if (udp_socket_find(p, &p->spec.only[i], false))
            continue;
        memcpy(w.b, p->spec.only[i].b, sizeof(w.b));
        udp_say(p, "interface %s has no address %s yet: the device gets it when the interface does",
                p->spec.iface, wire_addr_str(&w, text, sizeof(text)));
    }
    if (p->spec.nonly == 0 && p->nsock == 0)
        udp_say(p, "interface %s has no address yet: the device gets those that it will have",
                p->spec.iface);
}

/* Which identifications will the kernel choose? */
static void find_ids(struct udp_port *p)
{
    struct udp_seen seen;
    udp_probe(&seen);
    p->ids = udp_ids_judge(&seen);
    if (!p->ids.single_ok)
        udp_say(p, "this kernel changes the IPv4 identification from packet to packet, so peers "
                   "will drop what we send over IPv4: use IPv6");
    else if (!p->ids.train_ok && p->spec.trains)
        udp_say(p, "this kernel does not count the IPv4 identifications of a train: datagrams go "
                   "one by one, slower");
    if (!p->ids.train_ok)
        p->spec.trains = false;
}

int udp_port_again(const struct udp_port *first, struct udp_port **out)
{
    struct udp_port *p = calloc(1, sizeof(*p));
    if (!p)
        return -ENOMEM;
    p->io = first->io;
    p->spec = first->spec;
    p->ids = first->ids;
    p->frame_max = first->frame_max;
    p->lo = first->lo;
    p->lent = first->lent;
    p->watch.fd = p->epfd = -1;
    p->retry_at = p->tx.retry_at = UINT64_MAX;
    int rc = netdev_open(&p->dev, p->spec.iface);
    if (rc == 0)
        rc = allocate(p);
    if (rc < 0) {
        port_close(&p->io);
        return rc;
    }
    p->ifindex = p->dev.ifindex;
    take_interface(p);
    p->io.caps.rx_fd = p->epfd;
    *out = p;
    return 0;
}

int io_udp_open_lent(const char *iface, bool trains, const uint8_t mac[6], struct io_port **out)
{
    struct udp_port *p, *like = calloc(1, sizeof(*like));
    if (!like)
        return -ENOMEM;
    udp_icrc_init();
    like->lent = true;
    like->lo = strcmp(iface, "lo") == 0;
    like->spec.trains = trains;
    snprintf(like->spec.iface, sizeof(like->spec.iface), "%s", iface);
    like->io.ops = &udp_ops;
    like->io.caps.kernel_ip = true;
    like->io.caps.loopback = like->lo;
    like->io.caps.udp_sport = WIRE_UDP_PORT;
    memcpy(like->io.caps.mac, mac, sizeof(like->io.caps.mac));
    find_ids(like);
    int rc = udp_port_again(like, &p);
    free(like);
    if (rc == 0)
        *out = &p->io;
    return rc;
}

/* Does the socket belong to this thread's network namespace? */
static bool is_near(int fd)
{
    uint64_t theirs = 0, ours = 0;
    socklen_t len = sizeof(ours);
    int own = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (own < 0)
        return false;
    bool near = getsockopt(own, SOL_SOCKET, SO_NETNS_COOKIE, &ours, &len) == 0 &&
                getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &theirs, &len) == 0 && ours == theirs;
    close(own);
    return near;
}

int io_udp_take(struct io_port *io, const struct io_addr *addr, int fd)
{
    struct udp_port *p = udp_port_of(io);
    struct udp_socket s = {.addr = *addr, .v4 = udp_socket_is_v4(addr), .fd = fd};
    if (!is_near(fd))
        return -EXDEV;
    if (udp_addr_is_link_local(addr))
        s.scope = (uint32_t)p->ifindex;
    return udp_socket_adopt(p, &s);
}

void io_udp_keep(struct io_port *io, const struct io_addr *addrs, unsigned n)
{
    struct udp_port *p = udp_port_of(io);
    for (unsigned i = 0; i < p->nsock; i++) {
        if (p->sock[i].fd >= 0 && !is_in(addrs, n, &p->sock[i].addr))
            udp_socket_close(p, &p->sock[i]);
    }
}

int io_udp_open(const char *args, const struct io_open_params *params, struct io_port **out,
                char *err, size_t err_size)
{
    char why[UDP_HOLDER_TEXT] = "", text[UDP_TELL];
    struct udp_port *p = calloc(1, sizeof(*p));
    struct io_addr bad;
    if (!p)
        return io_fail(err, err_size, -ENOMEM, "udp: no memory");
    int rc = udp_spec_parse(args, &p->spec, err, err_size);
    if (rc < 0) {
        free(p);
        return rc;
    }
    udp_icrc_init();
    p->watch.fd = p->epfd = -1;
    p->retry_at = p->tx.retry_at = UINT64_MAX;
    p->io.ops = &udp_ops;
    p->frame_max = params->frame_max;
    p->lo = strcmp(p->spec.iface, "lo") == 0;
    for (unsigned i = 0; i < params->nonly && p->spec.nonly < UDP_ADDRS; i++) {
        if (p->spec.nonly == 0 || !udp_spec_wants(&p->spec, &params->only[i]))
            p->spec.only[p->spec.nonly++] = params->only[i];
    }
    rc = netdev_open(&p->dev, p->spec.iface);
    if (rc < 0)
        io_fail(err, err_size, rc, "udp: interface %s: %s; `ip link` lists those that there are",
                p->spec.iface, strerror(-rc));
    if (rc == 0 && (rc = allocate(p)) < 0)
        io_fail(err, err_size, rc, "udp: no memory");
    if (rc == 0) {
        p->ifindex = p->dev.ifindex;
        rc = follow_addresses(p, &bad, why, sizeof(why));
        if (rc < 0) {
            complain(&bad, rc, why, text, sizeof(text));
            io_fail(err, err_size, rc, "udp: %s", text);
        }
    }
    if (rc < 0) {
        port_close(&p->io);
        return rc;
    }
    take_interface(p);
    find_ids(p);
    choose_mac(p, params);
    tell_missing(p);
    p->io.caps.kernel_ip = true;
    p->io.caps.loopback = p->lo;
    p->io.caps.udp_sport = WIRE_UDP_PORT;
    p->io.caps.rx_fd = p->epfd;
    *out = &p->io;
    return 0;
}
