/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See udp_group.h.
 */
#include "udp_group.h"

#include <string.h>

#include "udp_socket.h"

static bool is_in(const struct io_addr *groups, unsigned n, const struct io_addr *g)
{
    for (unsigned i = 0; i < n; i++) {
        if (memcmp(groups[i].b, g->b, sizeof(g->b)) == 0)
            return true;
    }
    return false;
}

int udp_groups(struct io_port *io, const struct io_addr *groups, unsigned n)
{
    struct udp_port *p = udp_port_of(io);
    int rc = 0;
    for (unsigned i = 0; i < p->nsock; i++) {
        struct udp_socket *s = &p->sock[i];
        if (s->fd >= 0 && s->group && !is_in(groups, n, &s->addr))
            udp_socket_close(p, s);
    }
    for (unsigned i = 0; i < n; i++) {
        int one = udp_socket_find(p, &groups[i], true)
                      ? 0
                      : udp_socket_open(p, &groups[i], true, NULL, 0);
        rc = one < 0 ? one : rc;
    }
    return rc;
}
