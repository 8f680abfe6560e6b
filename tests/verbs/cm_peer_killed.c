/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cm_peer_killed: the client process is killed (SIGKILL) while connected: the server gets
 * DISCONNECTED (the CM tells the peer when a process dies), rdma_disconnect then flushes its
 * receives; a new client connects. */
#include "vt_cm.h"
int main(int argc, char **argv)
{
    vt_args(argc, argv, "cm_peer_killed", vt_adev, vt_agid, vt_aip);
    int up[2], dn[2][2], port = 0;
    pid_t k[2];
    char v;
    WANT(!pipe(up) && !pipe(dn[0]) && !pipe(dn[1]), "pipe");
    for (int i = 0; i < 2; i++)
        if (!(k[i] = fork())) {
            alarm(VT_SECONDS);
            struct cm c;
            if (read(dn[i][0], &port, sizeof(port)) != sizeof(port))
                _exit(1);
            vt_open_devices(vt_adev, vt_agid, vt_aip);
            cm_resolve(&c, vt.ip[0], port, RDMA_PS_TCP);
            cm_qp(&c, IBV_QPT_RC);
            OK0(cm_recv(&c, 1, c.buf, 64));
            struct rdma_conn_param p = cm_param("x", 1);
            OK0(rdma_connect(c.id, &p));
            cm_ack(c.ch, RDMA_CM_EVENT_ESTABLISHED, "client");
            OK0(cm_send(&c, 2, c.buf, 8));
            vt_want(c.scq, "client's send", 2, IBV_WC_SUCCESS, IBV_WC_SEND);
            if (write(up[1], "u", 1) < 0)
                _exit(1);
            for (;;)
                pause();
        }
    vt_open_devices(vt_adev, vt_agid, vt_aip);
    struct cm l, s, c;
    struct rdma_cm_event *e;
    port = cm_listen(&l, vt.ip[0], RDMA_PS_TCP);
    struct rdma_conn_param p = cm_param("x", 1);
    uint64_t t = 0;
    for (int i = 0; i < 2; i++) {
        WANT(write(dn[i][1], &port, sizeof(port)) == sizeof(port), "pipe");
        e = cm_want(l.ch, RDMA_CM_EVENT_CONNECT_REQUEST, "server");
        memset(&s, 0, sizeof(s));
        s.ch = l.ch;
        s.id = e->id;
        OK0(rdma_ack_cm_event(e));
        cm_qp(&s, IBV_QPT_RC);
        OK0(cm_recv(&s, 1, s.buf, 64));
        OK0(cm_recv(&s, 5, s.buf, 64));
        OK0(rdma_accept(s.id, &p));
        cm_ack(l.ch, RDMA_CM_EVENT_ESTABLISHED, "server");
        vt_want(s.rcq, "message", 1, IBV_WC_SUCCESS, IBV_WC_RECV);
        WANT(vt_readable(up[0], 5000) && read(up[0], &v, 1) == 1, "client not ready");
        t = vt_ms();
        kill(k[i], SIGKILL);
        waitpid(k[i], NULL, 0);
        WANT(cm_ack(l.ch, RDMA_CM_EVENT_DISCONNECTED, "server, client killed") == s.id,
             "DISCONNECTED of another id");
        t = vt_ms() - t;
        WANT(t < 6000, "DISCONNECTED %llu ms after the kill", (unsigned long long)t);
        OK0(rdma_disconnect(s.id));
        vt_want(s.rcq, "receive left over", 5, IBV_WC_WR_FLUSH_ERR, -1);
        cm_free(&s, false);
    }
    cm_connect(&l, &s, &c, vt.ip[0], port);
    cm_talk(&s, &c);
    vt_pass("DISCONNECTED %llu ms after the kill", (unsigned long long)t);
}
