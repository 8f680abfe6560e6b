/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cm_sync: the synchronous interface (rdma_client/rdma_server of librdmacm): rdma_getaddrinfo,
 * rdma_create_ep, rdma_get_request, rdma_accept, rdma_reg_msgs, rdma_post_*, rdma_get_*_comp,
 * rdma_disconnect, rdma_destroy_ep; ECONNREFUSED without a listener. */
#include "vt_cm.h"
static char port[8];
static pthread_barrier_t up;
static struct ibv_qp_init_attr attr(void)
{
    return (struct ibv_qp_init_attr){
        .cap = {4, 4, 1, 1, 16}, .sq_sig_all = 1, .qp_type = IBV_QPT_RC};
}
static void *server(void *x)
{
    struct rdma_addrinfo h = {.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP}, *ai;
    struct rdma_cm_id *l, *id;
    struct ibv_qp_init_attr a = attr();
    struct ibv_wc wc;
    OK0(rdma_getaddrinfo(vt.ip[0], NULL, &h, &ai));
    OK0(rdma_create_ep(&l, ai, NULL, &a));
    rdma_freeaddrinfo(ai);
    OK0(rdma_listen(l, 4));
    snprintf(port, sizeof(port), "%u", ntohs(rdma_get_src_port(l)));
    WANT(atoi(port), "listener's port is 0");
    pthread_barrier_wait(&up);
    for (int round = 0; round < 3; round++) {
        OK0(rdma_get_request(l, &id));
        WANT(id->qp && id->pd && id->send_cq && id->recv_cq,
             "rdma_get_request: no QP, PD or CQs, expected them made by rdma_create_ep's "
             "attributes");
        char *buf = calloc(1, 256);
        struct ibv_mr *m = rdma_reg_msgs(id, buf, 256);
        WANT(m, "rdma_reg_msgs failed");
        OK0(rdma_post_recv(id, NULL, buf, 100, m));
        OK0(rdma_accept(id, NULL));
        WANT(rdma_get_recv_comp(id, &wc) == 1 && !wc.status && wc.byte_len == 16,
             "server's receive: status %d length %u", wc.status, wc.byte_len);
        WANT(!strcmp(buf, "request, inline"), "server got \"%.20s\"", buf);
        snprintf(buf + 128, 64, "reply %d", round);
        OK0(rdma_post_send(id, NULL, buf + 128, 64, m, 0));
        WANT(rdma_get_send_comp(id, &wc) == 1 && !wc.status, "server's send: status %d", wc.status);
        rdma_disconnect(id);
        rdma_dereg_mr(m);
        rdma_destroy_ep(id);
        free(buf);
    }
    rdma_destroy_ep(l);
    return x;
}
int main(int argc, char **argv)
{
    vt_start(argc, argv, "cm_sync");
    pthread_t t;
    pthread_barrier_init(&up, NULL, 2);
    pthread_create(&t, NULL, server, NULL);
    pthread_barrier_wait(&up);
    struct rdma_addrinfo h = {.ai_port_space = RDMA_PS_TCP}, *ai;
    struct rdma_cm_id *id;
    struct ibv_wc wc;
    for (int round = 0; round < 3; round++) {
        struct ibv_qp_init_attr a = attr();
        OK0(rdma_getaddrinfo(vt.ip[0], port, &h, &ai));
        WANT(ai->ai_dst_len && ai->ai_qp_type == IBV_QPT_RC,
             "rdma_getaddrinfo: dst_len %d qp_type %d", (int)ai->ai_dst_len, ai->ai_qp_type);
        OK0(rdma_create_ep(&id, ai, NULL, &a));
        WANT(id->qp && id->verbs, "rdma_create_ep: no QP or device");
        WANT(a.cap.max_inline_data >= 16, "max_inline_data %u, expected >= 16",
             a.cap.max_inline_data);
        char *buf = calloc(1, 256);
        struct ibv_mr *m = rdma_reg_msgs(id, buf, 256);
        WANT(m, "rdma_reg_msgs failed");
        OK0(rdma_post_recv(id, NULL, buf, 64, m));
        OK0(rdma_connect(id, NULL));
        OK0(rdma_post_send(id, NULL, (void *)"request, inline", 16, NULL, IBV_SEND_INLINE));
        WANT(rdma_get_send_comp(id, &wc) == 1 && !wc.status, "client's send: status %d", wc.status);
        WANT(rdma_get_recv_comp(id, &wc) == 1 && !wc.status, "client's receive: status %d",
             wc.status);
        char want[16];
        snprintf(want, sizeof(want), "reply %d", round);
        WANT(!strcmp(buf, want), "client got \"%.20s\", expected %s", buf, want);
        rdma_disconnect(id);
        rdma_dereg_mr(m);
        rdma_destroy_ep(id);
        rdma_freeaddrinfo(ai);
        free(buf);
    }
    pthread_join(t, NULL);
    struct ibv_qp_init_attr a = attr();
    OK0(rdma_getaddrinfo(vt.ip[0], port, &h, &ai));
    OK0(rdma_create_ep(&id, ai, NULL, &a));
    errno = 0;
    int r = rdma_connect(id, NULL);
    WANT(r == -1 && errno == ECONNREFUSED,
         "rdma_connect without a listener: %d errno %d (%s), expected -1 ECONNREFUSED", r, errno,
         strerror(errno));
    rdma_destroy_ep(id);
    vt_pass(NULL);
}
