/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See udp_socket.h.
 */
#include "udp_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "udp_holder.h"
#include "udp_queue.h"
#include "wire.h"

#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef UDP_NO_CHECK6_RX
#define UDP_NO_CHECK6_RX 102
#endif
#ifndef SO_BINDTOIFINDEX
#define SO_BINDTOIFINDEX 62
#endif
#ifndef IP_PMTUDISC_PROBE
#define IP_PMTUDISC_PROBE 3
#endif

#define NO_INTERFACE 0x7FFFFFFE

bool udp_socket_is_v4(const struct io_addr *a)
{
    struct wire_addr w;
    memcpy(w.b, a->b, sizeof(w.b));
    return wire_addr_is_v4(&w);
}

socklen_t udp_sockaddr_set(union udp_sockaddr *sa, const struct io_addr *addr, uint32_t scope)
{
    memset(sa, 0, sizeof(*sa));
    if (udp_socket_is_v4(addr)) {
        sa->v4.sin_family = AF_INET;
        sa->v4.sin_port = htons(WIRE_UDP_PORT);
        memcpy(&sa->v4.sin_addr, addr->b + 12, 4);
        return sizeof(sa->v4);
    }
    sa->v6.sin6_family = AF_INET6;
    sa->v6.sin6_port = htons(WIRE_UDP_PORT);
    sa->v6.sin6_scope_id = scope;
    memcpy(&sa->v6.sin6_addr, addr->b, 16);
    return sizeof(sa->v6);
}

uint16_t udp_sockaddr_get(const union udp_sockaddr *sa, struct io_addr *addr)
{
    memset(addr->b, 0, 10);
    memset(addr->b + 10, 0xFF, 2);
    if (sa->sa.sa_family == AF_INET) {
        memcpy(addr->b + 12, &sa->v4.sin_addr, 4);
        return ntohs(sa->v4.sin_port);
    }
    memcpy(addr->b, &sa->v6.sin6_addr, 16);
    return ntohs(sa->v6.sin6_port);
}

static void on(int fd, int level, int option)
{
    const int one = 1;
    setsockopt(fd, level, option, &one, sizeof(one));
}

static void set(int fd, int level, int option, int value)
{
    setsockopt(fd, level, option, &value, sizeof(value));
}

static void options_v4(const struct udp_port *p, int fd)
{
    struct ip_mreqn via = {.imr_ifindex = p->ifindex};
    on(fd, IPPROTO_IP, IP_RECVTOS);
    on(fd, IPPROTO_IP, IP_RECVTTL);
    on(fd, IPPROTO_IP, IP_RECVERR);
    set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
    set(fd, IPPROTO_IP, IP_TTL, WIRE_TTL_DEFAULT);
    set(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0);
    setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &via, sizeof(via));
}

static void options_v6(const struct udp_port *p, int fd)
{
    on(fd, IPPROTO_IPV6, IPV6_V6ONLY);
    on(fd, IPPROTO_IPV6, IPV6_RECVTCLASS);
    on(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT);
    on(fd, IPPROTO_IPV6, IPV6_RECVERR);
    on(fd, IPPROTO_IPV6, IPV6_DONTFRAG);
    set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
    set(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, WIRE_TTL_DEFAULT);
    set(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);
    set(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, p->ifindex);
    on(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX); /* WIRE-24 */
}

/* With CAP_NET_ADMIN any size, else as much as rmem_max and wmem_max allow. */
static void buffers(int fd, uint32_t octets)
{
    const int want = (int)octets;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &want, sizeof(want)) < 0)
        set(fd, SOL_SOCKET, SO_RCVBUF, want);
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &want, sizeof(want)) < 0)
        set(fd, SOL_SOCKET, SO_SNDBUF, want);
}

/* Each datagram costs more than its octets; the kernel doubles the requested size to compensate. A
 * train costs its octets and little more, so half of the size is safe. */
static void note_room(struct udp_port *p, int fd)
{
    int granted = 0;
    socklen_t len = sizeof(granted);
    if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &granted, &len) == 0 && granted > 0)
        p->io.caps.room = (uint32_t)granted / 2;
}

static int join(const struct udp_port *p, const struct udp_socket *s)
{
    if (s->v4) {
        struct ip_mreqn m = {.imr_ifindex = p->ifindex};
        memcpy(&m.imr_multiaddr, s->addr.b + 12, 4);
        return setsockopt(s->fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &m, sizeof(m)) < 0 ? -errno : 0;
    }
    struct ipv6_mreq m = {.ipv6mr_interface = (unsigned)p->ifindex};
    memcpy(&m.ipv6mr_multiaddr, s->addr.b, 16);
    return setsockopt(s->fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &m, sizeof(m)) < 0 ? -errno : 0;
}

/* The port of an address is for one program: no SO_REUSEADDR, which would hide another one. Members
 * of a group share it. */
static int bind_it(struct udp_port *p, struct udp_socket *s)
{
    union udp_sockaddr sa;
    socklen_t len = udp_sockaddr_set(&sa, &s->addr, s->scope);
    if (s->group)
        on(s->fd, SOL_SOCKET, SO_REUSEADDR);
    if (bind(s->fd, &sa.sa, len) < 0)
        return -errno;
    return s->group ? join(p, s) : 0;
}

static struct udp_socket *place(struct udp_port *p)
{
    for (unsigned i = 0; i < p->nsock; i++) {
        if (p->sock[i].fd < 0)
            return &p->sock[i];
    }
    return p->nsock < UDP_SOCKETS ? &p->sock[p->nsock++] : NULL;
}

/* A socket with all its options, not bound yet. -errno: there is none. */
static int make(struct udp_port *p, const struct udp_socket *s)
{
    int fd = socket(s->v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (s->v4)
        options_v4(p, fd);
    else
        options_v6(p, fd);
    on(fd, SOL_SOCKET, SO_RXQ_OVFL);
    if (p->spec.trains)
        on(fd, IPPROTO_UDP, UDP_GRO);
    buffers(fd, p->spec.buffer);
    return fd;
}

static int listen_to(struct udp_port *p, struct udp_socket *s)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.u32 = (uint32_t)(s - p->sock)};
    return epoll_ctl(p->epfd, EPOLL_CTL_ADD, s->fd, &ev) < 0 ? -errno : 0;
}

int udp_socket_open(struct udp_port *p, const struct io_addr *addr, bool group, char *why,
                    size_t size)
{
    struct udp_socket *s = place(p);
    if (!s)
        return -ENOSPC;
    *s = (struct udp_socket){.addr = *addr, .v4 = udp_socket_is_v4(addr), .group = group, .fd = -1};
    if (group || udp_addr_is_link_local(addr))
        s->scope = (uint32_t)p->ifindex;
    int fd = make(p, s);
    if (fd < 0)
        return fd;
    s->fd = fd;
    note_room(p, fd);
    int rc = bind_it(p, s);
    if (rc == 0)
        rc = listen_to(p, s);
    if (rc == 0 && !group)
        rc = udp_queue_split(p, s);
    if (rc < 0)
        udp_socket_close(p, s);
    if (rc == -EADDRINUSE && why)
        udp_holder(addr, WIRE_UDP_PORT, why, size);
    return rc;
}

int udp_socket_twin(struct udp_port *p, const struct udp_socket *s, int *fd)
{
    union udp_sockaddr sa;
    socklen_t len = udp_sockaddr_set(&sa, &s->addr, s->scope);
    int twin = make(p, s);
    if (twin < 0)
        return twin;
    on(twin, SOL_SOCKET, SO_REUSEPORT);
    if (bind(twin, &sa.sa, len) < 0) {
        int rc = -errno;
        close(twin);
        return rc;
    }
    *fd = twin;
    return 0;
}

/* The kernel places a socket anew when it is bound to an interface, and out of its group. */
void udp_socket_mute(int fd)
{
    set(fd, SOL_SOCKET, SO_BINDTOIFINDEX, NO_INTERFACE);
}

int udp_socket_adopt(struct udp_port *p, const struct udp_socket *from)
{
    struct udp_socket *s = place(p);
    if (!s)
        return -ENOSPC;
    *s = *from;
    int rc = listen_to(p, s);
    if (rc < 0)
        s->fd = -1;
    else
        note_room(p, s->fd);
    return rc;
}

void udp_socket_close(struct udp_port *p, struct udp_socket *s)
{
    udp_queue_drop(p, s);
    if (s->fd >= 0)
        close(s->fd); /* which takes it out of the epoll set */
    s->fd = -1;
}

struct udp_socket *udp_socket_find(struct udp_port *p, const struct io_addr *addr, bool group)
{
    for (unsigned i = 0; i < p->nsock; i++) {
        struct udp_socket *s = &p->sock[i];
        if (s->fd >= 0 && s->group == group && memcmp(s->addr.b, addr->b, sizeof(addr->b)) == 0)
            return s;
    }
    return NULL;
}
