/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The connection manager under arbitrary datagrams, consumer calls and time steps (SEC-03, SEC-20).
 *
 * The input is a list of steps: an opcode octet, then its arguments. Datagrams are built from the
 * input with class and version mended, and with ids of real connections filled in when asked, so
 * that inputs pass the checks and reach the state machine.
 */
#include <string.h>

#include "cm.h"
#include "fuzz.h"

#define CONNS 16u

struct input {
    const uint8_t *p;
    size_t left;
};

static uint8_t next(struct input *in)
{
    if (!in->left)
        return 0;
    in->left--;
    return *in->p++;
}

static void take(struct input *in, void *dst, size_t len)
{
    size_t n = len < in->left ? len : in->left;
    memset(dst, 0, len);
    memcpy(dst, in->p, n);
    in->p += n;
    in->left -= n;
}

struct world {
    struct cm *cm;
    struct cm_conn *conn[CONNS];
    struct cm_listener *listener;
    struct wire_addr us, them;
    struct cm_msg last_out; /* ids of something that we really sent */
    uint64_t now;
};

static void drain(struct world *w)
{
    struct cm_out out;
    struct cm_event ev;
    for (unsigned i = 0; cm_tx(w->cm, &out); i++) {
        FUZZ_CHECK(i < 4096);
        FUZZ_CHECK(cm_msg_unpack(&w->last_out, out.mad, sizeof(out.mad)) == 0);
    }
    while (cm_event(w->cm, &ev)) {
        FUZZ_CHECK(ev.conn != NULL);
        FUZZ_CHECK(ev.priv_len <= CM_PRIVATE_MAX);
        if (ev.type != CM_EV_REQ && ev.type != CM_EV_SIDR_REQ)
            continue;
        unsigned i = 0;
        while (i < CONNS && w->conn[i])
            i++;
        if (i < CONNS)
            w->conn[i] = ev.conn;
        else
            cm_release(w->cm, ev.conn, w->now);
    }
}

static void datagram(struct world *w, struct input *in)
{
    uint8_t mad[CM_MAD_LEN + 4], how = next(in);
    size_t len = how & 1 ? CM_MAD_LEN : (size_t)next(in);
    struct cm_msg msg;
    take(in, mad, sizeof(mad));
    if (how & 2) {
        mad[0] = 1;
        mad[1] = CM_CLASS;
        mad[2] = CM_CLASS_VERSION;
        mad[3] = CM_METHOD_SEND;
        mad[16] = 0;
        mad[17] = (uint8_t)(CM_REQ + mad[17] % 12);
        if (len == CM_MAD_LEN && cm_msg_unpack(&msg, mad, len) == 0) {
            if (how & 4) {
                msg.remote_id = w->last_out.local_id;
                msg.local_id = w->last_out.remote_id;
                msg.remote_qpn = w->last_out.qpn;
            }
            if (how & 8) { /* a REQ that is in order */
                struct cm_ip_hdr ip = {.ip_version = 4, .src = w->them, .dst = w->us};
                msg.service_id = cm_service_id(how & 16 ? CM_PS_TCP : CM_PS_UDP, 7);
                msg.local_gid = w->them;
                msg.mtu = 3;
                msg.transport = how & 64 ? CM_TRANSPORT_XRC : CM_TRANSPORT_RC;
                msg.ext_transport = how & 64 ? CM_EXT_TRANSPORT_XRC : 0;
                cm_ip_hdr_pack(msg.priv, &ip);
            }
            cm_msg_pack(mad, &msg);
        }
    }
    cm_rx(w->cm, mad, len, &w->them, &w->us, how & 32 ? 2 : 1, 0xFFFF, w->now);
}

static void consumer(struct world *w, struct input *in)
{
    struct cm_conn **c = &w->conn[next(in) % CONNS];
    uint8_t what = next(in);
    struct cm_qp_attr attr;
    if (!*c) {
        struct cm_connect_params p = {
            .path = {.local = w->us, .remote = w->them, .mtu = 3},
            .dport = next(in),
            .qpn = next(in),
            .max_retries = 1,
            .transport = what & 2 ? CM_TRANSPORT_XRC : CM_TRANSPORT_RC,
        };
        if (what & 1)
            cm_connect(w->cm, &p, w, w->now, c);
        else
            cm_sidr_request(w->cm, &p.path, 1, p.dport, NULL, 0, w, w->now, c);
        return;
    }
    cm_qp_attr(*c, &attr);
    switch (what % 8) {
    case 0:
        cm_accept(w->cm, *c,
                  &(struct cm_accept_params){.qpn = next(in), .priv = "x", .priv_len = 1}, w,
                  w->now);
        break;
    case 1:
        cm_reject(w->cm, *c, next(in), "no", 2, w->now);
        break;
    case 2:
        cm_rtu(w->cm, *c, NULL, 0, w->now);
        break;
    case 3:
        cm_disconnect(w->cm, *c, NULL, 0, w->now);
        break;
    case 4:
        cm_mra(w->cm, *c, next(in), w->now);
        break;
    case 5:
        cm_comm_est(w->cm, *c, w->now);
        break;
    case 6:
        cm_sidr_reply(w->cm, *c, next(in), next(in), 0, NULL, 0, w->now);
        break;
    default:
        cm_release(w->cm, *c, w->now);
        *c = NULL;
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    struct world w = {.us = wire_addr_v4(0x0A000001), .them = wire_addr_v4(0x0A000002), .now = 1};
    static const struct wire_addr any;
    struct cm_listener *udp;
    w.cm = cm_create(&(struct cm_params){.key = {1, 2}, .ca_guid = 5, .max_conns = 64});
    FUZZ_CHECK(w.cm);
    cm_listen(w.cm, CM_PS_TCP, &any, 7, 4, NULL, &w.listener);
    cm_listen(w.cm, CM_PS_UDP, &any, 7, 4, NULL, &udp);

    while (in.left) {
        switch (next(&in) % 4) {
        case 0:
            datagram(&w, &in);
            break;
        case 1:
            consumer(&w, &in);
            break;
        case 2:
            w.now += (uint64_t)next(&in) << 24;
            cm_expire(w.cm, w.now);
            FUZZ_CHECK(cm_deadline(w.cm) > w.now);
            break;
        default:
            drain(&w);
            break;
        }
        FUZZ_CHECK(cm_live(w.cm) <= 64);
    }
    drain(&w);
    /* Let go of everything: nothing may be left once all timers have run. */
    for (unsigned i = 0; i < CONNS; i++)
        if (w.conn[i]) {
            cm_release(w.cm, w.conn[i], w.now);
            w.conn[i] = NULL;
        }
    cm_unlisten(w.cm, w.listener, w.now);
    cm_unlisten(w.cm, udp, w.now);
    for (unsigned i = 0; i < 4096 && cm_live(w.cm); i++) {
        drain(&w);
        uint64_t next_at = cm_deadline(w.cm);
        if (next_at == UINT64_MAX)
            break;
        w.now = next_at;
        cm_expire(w.cm, w.now);
    }
    FUZZ_CHECK(cm_live(w.cm) == 0);
    cm_destroy(w.cm);
    return 0;
}
