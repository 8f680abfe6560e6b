/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cm_afonly: RDMA_OPTION_ID_AFONLY: an id that is bound to 0.0.0.0 and one that is bound to :: may
 * listen at one port, and each gets the requests of its family; a third one is refused with
 * EADDRINUSE or EADDRNOTAVAIL; the option is refused once the id is bound. */
#include "vt_cm.h"
static int set_afonly(struct rdma_cm_id *id)
{
    int on = 1;
    return rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof(on));
}
/* Bind to any address of a family, and listen; 0 or the errno. */
static int listen_any(struct cm *l, int family, int *port, bool afonly)
{
    struct sockaddr_storage any = {.ss_family = family};
    memset(l, 0, sizeof(*l));
    l->ch = cm_channel();
    OK0(rdma_create_id(l->ch, &l->id, l, RDMA_PS_TCP));
    if (afonly)
        OK0(set_afonly(l->id));
    if (family == AF_INET)
        ((struct sockaddr_in *)&any)->sin_port = htons(*port);
    else
        ((struct sockaddr_in6 *)&any)->sin6_port = htons(*port);
    if (rdma_bind_addr(l->id, (struct sockaddr *)&any) || rdma_listen(l->id, 4))
        return errno;
    *port = ntohs(rdma_get_src_port(l->id));
    return 0;
}
static void gone(struct cm *l)
{
    OK0(rdma_destroy_id(l->id));
    rdma_destroy_event_channel(l->ch);
}
static void refused(int family, int port, bool afonly)
{
    struct cm l;
    int err = listen_any(&l, family, &port, afonly);
    WANT(err == EADDRINUSE || err == EADDRNOTAVAIL,
         "a third listener at the port: errno %d, expected EADDRINUSE or EADDRNOTAVAIL", err);
    gone(&l);
}
int main(int argc, char **argv)
{
    vt_start(argc, argv, "cm_afonly");
    struct cm four, six, s, c;
    int port = 0, err;
    OK0(listen_any(&four, AF_INET, &port, true));
    WANT(set_afonly(four.id) && errno == EINVAL, "the option of a bound id: errno %d, not EINVAL",
         errno);
    err = listen_any(&six, AF_INET6, &port, true);
    WANT(err == 0, "any IPv6 address beside any IPv4 address: errno %d", err);
    refused(AF_INET, port, true);
    refused(AF_INET6, port, true);
    refused(AF_INET6, port, false);
    cm_connect(&four, &s, &c, vt.ip[0], port);
    cm_talk(&s, &c);
    OK0(rdma_disconnect(c.id));
    cm_ack(c.ch, RDMA_CM_EVENT_DISCONNECTED, "client");
    cm_ack(four.ch, RDMA_CM_EVENT_DISCONNECTED, "server");
    cm_free(&c, true);
    cm_free(&s, false);
    /* without the IPv4 listener such a request is refused */
    gone(&four);
    cm_resolve(&c, vt.ip[0], port, RDMA_PS_TCP);
    cm_qp(&c, IBV_QPT_RC);
    struct rdma_conn_param p = cm_param("x", 1);
    OK0(rdma_connect(c.id, &p));
    struct rdma_cm_event *e = cm_want(c.ch, RDMA_CM_EVENT_REJECTED, "no IPv4 listener");
    WANT(e->status == 8, "REJECTED with status %d, expected 8", e->status);
    OK0(rdma_ack_cm_event(e));
    cm_free(&c, true);
    gone(&six);
    vt_pass(NULL);
}
