/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See udp_error.h.
 */
#include "udp_error.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <stdio.h>
#include <string.h>

#include "udp_socket.h"
#include "wire.h"

#define ERRORS_AT_ONCE 256u

static const char *meaning(const struct sock_extended_err *e)
{
    switch (e->ee_errno) {
    case ECONNREFUSED:
        return "no RoCE there: port 4791 is closed, or a firewall rejects it";
    case EMSGSIZE:
        return "our packets are too big for the path; connections keep their path MTU, new ones "
               "get a smaller one";
    default:
        return strerror((int)e->ee_errno);
    }
}

/* Note an error about this address for the device. The kernel itself reports a neighbour that it
 * can't resolve. */
static void note(struct udp_port *p, const struct sock_extended_err *e, const struct io_addr *to)
{
    const int error = (int)e->ee_errno;
    if (error != ECONNREFUSED && error != EHOSTUNREACH && error != ENETUNREACH && error != EMSGSIZE)
        return;
    for (unsigned i = 0; i < p->nicmp; i++) {
        const struct io_icmp *x = &p->icmp[(p->first_icmp + i) % UDP_ICMP];
        if (memcmp(x->to.b, to->b, sizeof(to->b)) == 0 && x->error == error)
            return;
    }
    if (p->nicmp < UDP_ICMP)
        p->icmp[(p->first_icmp + p->nicmp++) % UDP_ICMP] = (struct io_icmp){*to, error};
}

bool udp_error_icmp(struct io_port *io, struct io_icmp *out)
{
    struct udp_port *p = udp_port_of(io);
    if (p->nicmp == 0)
        return false;
    *out = p->icmp[p->first_icmp];
    p->first_icmp = (p->first_icmp + 1) % UDP_ICMP;
    p->nicmp--;
    return true;
}

/* Have a changed error logged, not each repetition. */
static void tell(struct udp_port *p, struct msghdr *mh, const union udp_sockaddr *to)
{
    char text[64], line[UDP_TELL];
    struct io_addr addr;
    struct wire_addr w;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c)) {
        if (!(c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) &&
            !(c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR))
            continue;
        struct sock_extended_err e;
        memcpy(&e, CMSG_DATA(c), sizeof(e));
        udp_sockaddr_get(to, &addr);
        note(p, &e, &addr);
        memcpy(w.b, addr.b, sizeof(w.b));
        snprintf(line, sizeof(line), "ICMP about packets to %s: %s",
                 wire_addr_str(&w, text, sizeof(text)), meaning(&e));
        if (strcmp(line, p->told) == 0)
            return;
        memcpy(p->told, line, sizeof(line));
        udp_say(p, "%s", line);
        return;
    }
}

void udp_error_drain_all(struct udp_port *p)
{
    for (unsigned i = 0; i < p->nsock; i++) {
        if (p->sock[i].fd >= 0)
            udp_error_drain(p, &p->sock[i]);
    }
}

unsigned udp_error_drain(struct udp_port *p, const struct udp_socket *s)
{
    unsigned n = 0;
    for (; n < ERRORS_AT_ONCE; n++) {
        union udp_sockaddr to = {0};
        _Alignas(struct cmsghdr) char control[512];
        uint8_t octet;
        struct iovec iov = {.iov_base = &octet, .iov_len = 1};
        struct msghdr mh = {.msg_name = &to,
                            .msg_namelen = sizeof(to),
                            .msg_iov = &iov,
                            .msg_iovlen = 1,
                            .msg_control = control,
                            .msg_controllen = sizeof(control)};
        if (recvmsg(s->fd, &mh, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
            break;
        tell(p, &mh, &to);
    }
    return n;
}
