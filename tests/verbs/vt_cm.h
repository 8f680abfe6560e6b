/* SPDX-License-Identifier: BSD-3-Clause
 *
 * vt_cm.h: rdma_cm helpers of the cm_* programs. */
#ifndef VT_CM_H
#define VT_CM_H
#include "vt.h"
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

struct cm {
    struct rdma_event_channel *ch;
    struct rdma_cm_id *id;
    struct ibv_pd *pd;
    struct ibv_cq *scq, *rcq;
    struct ibv_mr *mr;
    char *buf;
};

static struct sockaddr_in cm_addr(const char *ip, int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    WANT(inet_pton(AF_INET, ip, &a.sin_addr) == 1, "%s is no IPv4 address", ip);
    return a;
}
static struct rdma_event_channel *cm_channel(void)
{
    struct rdma_event_channel *c = rdma_create_event_channel();
    WANT(c, "rdma_create_event_channel failed, errno %d (%s)", errno, strerror(errno));
    return c;
}
/* the next event, which must be this one; not acknowledged */
static struct rdma_cm_event *cm_want(struct rdma_event_channel *ch, enum rdma_cm_event_type type,
                                     const char *side)
{
    struct rdma_cm_event *e = NULL;
    WANT(vt_readable(ch->fd, 9000), "%s: no event within 9 s, expected %s", side,
         rdma_event_str(type));
    WANT(!rdma_get_cm_event(ch, &e), "%s: rdma_get_cm_event failed, errno %d", side, errno);
    WANT(e->event == type, "%s: %s status %d, expected %s", side, rdma_event_str(e->event),
         e->status, rdma_event_str(type));
    return e;
}
static struct rdma_cm_id *cm_ack(struct rdma_event_channel *ch, enum rdma_cm_event_type type,
                                 const char *side)
{
    struct rdma_cm_event *e = cm_want(ch, type, side);
    struct rdma_cm_id *id = e->id;
    WANT(!e->status, "%s: %s with status %d, expected 0", side, rdma_event_str(type), e->status);
    OK0(rdma_ack_cm_event(e));
    return id;
}
static int cm_listen(struct cm *l, const char *ip, enum rdma_port_space ps)
{
    memset(l, 0, sizeof(*l));
    l->ch = cm_channel();
    OK0(rdma_create_id(l->ch, &l->id, l, ps));
    struct sockaddr_in a = cm_addr(ip, 0);
    OK0(rdma_bind_addr(l->id, (struct sockaddr *)&a));
    OK0(rdma_listen(l->id, 64));
    int port = ntohs(rdma_get_src_port(l->id));
    WANT(port, "rdma_get_src_port gives 0 after binding port 0, expected a port");
    return port;
}
static void cm_resolve(struct cm *c, const char *ip, int port, enum rdma_port_space ps)
{
    memset(c, 0, sizeof(*c));
    c->ch = cm_channel();
    OK0(rdma_create_id(c->ch, &c->id, c, ps));
    struct sockaddr_in a = cm_addr(ip, port);
    OK0(rdma_resolve_addr(c->id, NULL, (struct sockaddr *)&a, 3000));
    WANT(cm_ack(c->ch, RDMA_CM_EVENT_ADDR_RESOLVED, "client") == c->id,
         "ADDR_RESOLVED of another id");
    WANT(c->id->verbs && c->id->port_num,
         "id->verbs %p port %d after ADDR_RESOLVED, expected a context and a port",
         (void *)c->id->verbs, c->id->port_num);
    OK0(rdma_resolve_route(c->id, 3000));
    WANT(cm_ack(c->ch, RDMA_CM_EVENT_ROUTE_RESOLVED, "client") == c->id,
         "ROUTE_RESOLVED of another id");
}
static void cm_qp(struct cm *c, enum ibv_qp_type type)
{
    c->pd = ibv_alloc_pd(c->id->verbs);
    WANT(c->pd, "ibv_alloc_pd on id->verbs failed, errno %d", errno);
    c->scq = ibv_create_cq(c->id->verbs, 64, c, NULL, 0);
    c->rcq = ibv_create_cq(c->id->verbs, 64, c, NULL, 0);
    WANT(c->scq && c->rcq, "ibv_create_cq on id->verbs failed");
    struct ibv_qp_init_attr ia = {
        .send_cq = c->scq, .recv_cq = c->rcq, .qp_type = type, .cap = {16, 16, 1, 1, 0}};
    OK0(rdma_create_qp(c->id, c->pd, &ia));
    WANT(c->id->qp, "id->qp NULL after rdma_create_qp");
    c->buf = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    c->mr = ibv_reg_mr(c->pd, c->buf, 65536, VT_ACCESS);
    WANT(c->mr, "ibv_reg_mr failed, errno %d", errno);
}
static struct rdma_conn_param cm_param(const void *data, int len)
{
    return (struct rdma_conn_param){.private_data = data,
                                    .private_data_len = len,
                                    .responder_resources = 4,
                                    .initiator_depth = 4,
                                    .retry_count = 7,
                                    .rnr_retry_count = 7};
}
static int cm_recv(struct cm *c, uint64_t id, void *p, uint32_t n)
{
    struct vt_end e = {.qp = c->id->qp, .mr = c->mr};
    return vt_recv(&e, id, p, n);
}
static int cm_send(struct cm *c, uint64_t id, void *p, uint32_t n)
{
    struct vt_end e = {.qp = c->id->qp, .mr = c->mr};
    return vt_post(&e, IBV_WR_SEND, id, p, n, IBV_SEND_SIGNALED, 0, 0, 0);
}
/* timeout of both queue pairs of later connections; 0 = the connection manager's */
static uint8_t cm_timeout;
static int cm_set_timeout(struct rdma_cm_id *id, uint8_t timeout)
{
    return rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout,
                           sizeof(timeout));
}
/* l listens on port; c and s become the two ends of a connection */
static void cm_connect(struct cm *l, struct cm *s, struct cm *c, const char *ip, int port)
{
    cm_resolve(c, ip, port, RDMA_PS_TCP);
    cm_qp(c, IBV_QPT_RC);
    if (cm_timeout)
        OK0(cm_set_timeout(c->id, cm_timeout));
    struct rdma_conn_param p = cm_param("hello", 5);
    OK0(rdma_connect(c->id, &p));
    struct rdma_cm_event *e = cm_want(l->ch, RDMA_CM_EVENT_CONNECT_REQUEST, "server");
    WANT(e->listen_id == l->id && e->id != l->id, "CONNECT_REQUEST: listen_id or id wrong");
    memset(s, 0, sizeof(*s));
    s->ch = l->ch;
    s->id = e->id;
    OK0(rdma_ack_cm_event(e));
    if (cm_timeout)
        OK0(cm_set_timeout(s->id, cm_timeout));
    cm_qp(s, IBV_QPT_RC);
    OK0(cm_recv(s, 1, s->buf, 64));
    OK0(cm_recv(c, 1, c->buf, 64));
    p = cm_param("welcome", 7);
    OK0(rdma_accept(s->id, &p));
    cm_ack(c->ch, RDMA_CM_EVENT_ESTABLISHED, "client");
    cm_ack(l->ch, RDMA_CM_EVENT_ESTABLISHED, "server");
}
static void cm_talk(struct cm *s, struct cm *c)
{
    vt_fill(c->buf + 1024, 60, 9);
    vt_fill(s->buf + 1024, 60, 8);
    OK0(cm_send(c, 2, c->buf + 1024, 60));
    OK0(cm_send(s, 2, s->buf + 1024, 60));
    vt_want(c->scq, "client's send", 2, IBV_WC_SUCCESS, IBV_WC_SEND);
    vt_want(s->scq, "server's send", 2, IBV_WC_SUCCESS, IBV_WC_SEND);
    vt_want(s->rcq, "server's receive", 1, IBV_WC_SUCCESS, IBV_WC_RECV);
    vt_want(c->rcq, "client's receive", 1, IBV_WC_SUCCESS, IBV_WC_RECV);
    SAME(s->buf, 60, 9, "client to server");
    SAME(c->buf, 60, 8, "server to client");
}
static void cm_free(struct cm *c, bool channel)
{
    rdma_destroy_qp(c->id);
    OK0(rdma_destroy_id(c->id));
    OK0(ibv_dereg_mr(c->mr));
    OK0(ibv_destroy_cq(c->scq));
    OK0(ibv_destroy_cq(c->rcq));
    OK0(ibv_dealloc_pd(c->pd));
    if (channel)
        rdma_destroy_event_channel(c->ch);
}
__attribute__((unused)) static void *cm_all[] = {cm_listen, cm_connect, cm_talk,       cm_free,
                                                 cm_want,   cm_ack,     cm_set_timeout};
#endif
