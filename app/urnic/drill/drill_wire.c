/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A device on the wire for `urnic drill`. The script is one end of an RC connection, a program at
 * the device is the other. CM messages make the connection, and the script's packets leave through
 * a port of urnic.
 */
#include "drill_wire.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "cli.h"
#include "cm.h"
#include "drill_hello.h"
#include "io.h"
#include "net.h"

#define FRAMES       1024u
#define FRAME_MAX    9300u
#define CONNECT_NS   (10 * 1000000000ull)
#define HANGUP_NS    (1 * 1000000000ull)
#define NEIGHBOUR_NS (5 * 1000000000ull)
#define NAP_US       20
#define QPN_FIRST    0x100000u /* our numbers: not reserved, nor the first of a daemon */
#define QPN_MASK     0x0FFFFFu

struct frame {
    uint64_t ns;
    uint32_t len;
    uint8_t octets[FRAME_MAX];
};

struct drill_host {
    struct drill_host_params p;
    struct io_port *io;
    struct net_port *net;
    struct cm *cm;
    struct cm_conn *conn;
    uint8_t dmac[6];
    uint32_t qpn, next_qpn; /* queue pair number of the present connection, 0 = none; the next
                             * one's */
    uint32_t first, count;  /* ring of frames */
    struct frame *frames;
    uint64_t lost; /* frames that found the ring full */
};

/* ---- frames ---- */

static int put(struct drill_host *h, const uint8_t *frame, uint32_t len)
{
    uint64_t until = cli_now() + 1000000000u;
    struct io_slot slot;
    while (!h->io->ops->tx_reserve(h->io, &slot, 1, cli_now())) {
        if (cli_now() > until || cli_stop)
            return -EAGAIN;
        usleep(NAP_US);
    }
    if (slot.cap < len)
        len = 0;
    memcpy(slot.data, frame, len);
    slot.len = len;
    h->io->ops->tx_commit(h->io, &slot, 1, cli_now());
    return len ? 0 : -EMSGSIZE;
}

static void put_mads(struct drill_host *h)
{
    uint8_t frame[WIRE_FRAME_MAX];
    struct cm_out out;
    while (cm_tx(h->cm, &out)) {
        struct wire_pkt p = {.opcode = WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY),
                             .ip_version = wire_addr_is_v4(&out.src) ? 4 : 6,
                             .ip_flags = WIRE_IP_DF,
                             .ttl = out.hop_limit ? out.hop_limit : WIRE_TTL_DEFAULT,
                             .tclass = out.tclass,
                             .sip = out.src,
                             .dip = out.dst,
                             .sport = 0xC000,
                             .pkey = out.pkey,
                             .dqpn = WIRE_QPN_GSI,
                             .sqpn = WIRE_QPN_GSI,
                             .qkey = WIRE_QKEY_GSI,
                             .payload_len = CM_MAD_LEN};
        memcpy(p.dmac, h->dmac, 6);
        memcpy(p.smac, h->io->caps.mac, 6);
        size_t at = wire_build(frame, sizeof(frame), &p);
        if (!at)
            continue;
        memcpy(frame + at, out.mad, CM_MAD_LEN);
        size_t len = wire_frame_len(&p);
        wire_icrc_seal(frame, len, p.ip_off, p.bth_off);
        put(h, frame, (uint32_t)len);
    }
}

static void put_net(struct drill_host *h)
{
    uint8_t frame[NET_TX_MAX];
    size_t n;
    while ((n = net_tx(h->net, frame, sizeof(frame), cli_now())))
        put(h, frame, (uint32_t)n);
}

static void keep(struct drill_host *h, const struct io_frame *f, uint64_t now)
{
    if (h->count == FRAMES || f->len > FRAME_MAX) {
        h->lost++;
        return;
    }
    struct frame *to = &h->frames[(h->first + h->count++) % FRAMES];
    to->ns = now;
    to->len = f->len;
    memcpy(to->octets, f->data, f->len);
}

/* A damaged frame for the script's connection goes to the script, too, which reports the damage. */
static void sort(struct drill_host *h, const struct io_frame *f, uint64_t now)
{
    struct wire_pkt p;
    uint8_t reply[2048];
    if (h->io->caps.own_echo && !memcmp(f->data + 6, h->io->caps.mac, 6))
        return;
    enum wire_verdict v = wire_parse(f->data, f->len, WIRE_P_LOOPBACK | WIRE_P_SELECTIVE, &p);
    if (v == WIRE_NOT_ROCE) {
        size_t n = net_rx(h->net, f->data, f->len, now, reply, sizeof(reply));
        if (n)
            put(h, reply, (uint32_t)n);
    } else if (v == WIRE_OK && p.dqpn == WIRE_QPN_GSI) {
        cm_rx(h->cm, f->data + p.payload_off, p.payload_len, &p.sip, &p.dip, p.sqpn, p.pkey, now);
    } else if (h->qpn && p.dqpn == h->qpn) {
        keep(h, f, now);
    }
}

/* Process all frames and timers that are due. */
static void turn(struct drill_host *h)
{
    struct io_frame frames[IO_BURST_MAX];
    uint64_t now = cli_now();
    unsigned n = h->io->ops->rx_peek(h->io, frames, IO_BURST_MAX, now);
    for (unsigned i = 0; i < n; i++)
        sort(h, &frames[i], now);
    if (n)
        h->io->ops->rx_release(h->io, n);
    if (cm_deadline(h->cm) <= now)
        cm_expire(h->cm, now);
    if (net_deadline(h->net) <= now)
        net_expire(h->net, now);
    if (h->io->ops->service)
        h->io->ops->service(h->io, now);
    put_net(h);
    put_mads(h);
    if (!n)
        usleep(NAP_US);
}

/* ---- functions for the script's run ---- */

static uint64_t wire_now(void *arg)
{
    (void)arg;
    return cli_now();
}

static void wire_send(void *arg, const uint8_t *frame, uint32_t len)
{
    put(arg, frame, len);
}

static uint32_t wire_recv(void *arg, uint8_t *buf, uint32_t cap, uint64_t until, uint64_t *ns)
{
    struct drill_host *h = arg;
    while (!h->count && cli_now() < until && !cli_stop)
        turn(h);
    if (!h->count)
        return 0;
    const struct frame *f = &h->frames[h->first];
    h->first = (h->first + 1) % FRAMES;
    h->count--;
    memcpy(buf, f->octets, f->len < cap ? f->len : cap);
    *ns = f->ns;
    return f->len;
}

static int find_neighbour(struct drill_host *h)
{
    uint64_t until = cli_now() + NEIGHBOUR_NS;
    struct io_link link = {0};
    int rc;
    for (h->io->ops->link(h->io, &link); !link.up && cli_now() < until && !cli_stop;
         h->io->ops->link(h->io, &link)) {
        if (h->io->ops->service)
            h->io->ops->service(h->io, cli_now());
        usleep(1000);
    }
    if (!link.up)
        return -ENETDOWN;
    while ((rc = net_resolve(h->net, &h->p.peer, cli_now(), h->dmac)) == -EINPROGRESS &&
           cli_now() < until && !cli_stop)
        turn(h);
    return rc == -EINPROGRESS ? -EHOSTUNREACH : rc;
}

/* The next event of the connection; false: none in time. */
static bool next_event(struct drill_host *h, uint64_t until, struct cm_event *ev)
{
    while (cli_now() < until && !cli_stop) {
        while (cm_event(h->cm, ev))
            if (ev->conn == h->conn)
                return true;
        turn(h);
    }
    return false;
}

static void wire_disconnect(void *arg)
{
    struct drill_host *h = arg;
    struct cm_event ev;
    if (!h->conn)
        return;
    uint64_t until = cli_now() + HANGUP_NS;
    if (cm_disconnect(h->cm, h->conn, NULL, 0, cli_now()) == 0)
        while (next_event(h, until, &ev) && ev.type != CM_EV_DISCONNECTED)
            ;
    cm_release(h->cm, h->conn, cli_now());
    turn(h);
    if (h->lost)
        cli_error("%" PRIu64
                  " frames of the device were lost here: it sends faster than scripts run",
                  h->lost);
    h->lost = 0;
    h->conn = NULL;
    h->qpn = h->count = 0;
}

static int refused(char *err, size_t size, const struct cm_event *ev)
{
    if (ev->type == CM_EV_REJECTED)
        snprintf(err, size, "the device rejects it: %s", cm_rej_name(ev->reason));
    else
        snprintf(err, size, "the device says %s", cm_event_name(ev->type));
    return -ECONNREFUSED;
}

static void describe(struct drill_host *h, const struct cm_event *ev, const struct cm_qp_attr *a,
                     struct drill_peer *out)
{
    struct drill_hello hello = {0};
    drill_hello_unpack(&hello, ev->priv, ev->priv_len);
    *out = (struct drill_peer){.device = h->p.peer,
                               .us = h->p.addr,
                               .device_qpn = ev->qpn,
                               .our_qpn = h->qpn,
                               .to_psn = a->sq_psn,
                               .from_psn = a->rq_psn,
                               .mtu = wire_mtu_octets(a->path_mtu),
                               .sport = wire_udp_sport(a->flow_label, h->qpn, ev->qpn),
                               .va = hello.va,
                               .rkey = hello.rkey,
                               .len = hello.len,
                               .recvs = hello.recvs,
                               .recv_len = hello.recv_len};
    memcpy(out->dmac, h->dmac, 6);
    memcpy(out->smac, h->io->caps.mac, 6);
}

static int wire_connect(void *arg, const struct drill_wish *wish, struct drill_peer *out, char *err,
                        size_t size)
{
    struct drill_host *h = arg;
    struct drill_hello hello = {.recvs = wish->recvs};
    uint8_t priv[DRILL_HELLO_LEN];
    struct cm_event ev;
    struct cm_qp_attr a;
    int rc = find_neighbour(h);
    if (rc < 0) {
        snprintf(err, size, "no answer from there (%s)", strerror(-rc));
        return rc;
    }
    drill_hello_pack(priv, &hello);
    h->qpn = h->next_qpn;
    h->next_qpn = QPN_FIRST | ((h->next_qpn + 1) & QPN_MASK);
    struct cm_connect_params p = {
        .path = {.local = h->p.addr, .remote = h->p.peer, .mtu = (uint8_t)wire_mtu_enum(wish->mtu)},
        .dport = h->p.service,
        .qpn = h->qpn,
        .psn = wish->psn,
        .responder_resources = 4,
        .initiator_depth = 4,
        .retry_count = 7,
        .rnr_retry_count = 7,
        .priv = priv,
        .priv_len = sizeof(priv)};
    rc = cm_connect(h->cm, &p, h, cli_now(), &h->conn);
    if (rc < 0) {
        snprintf(err, size, "%s", strerror(-rc));
        return rc;
    }
    if (!next_event(h, cli_now() + CONNECT_NS, &ev)) {
        snprintf(err, size, "no answer to the connection request within 10 s");
        rc = -ETIMEDOUT;
    } else if (ev.type != CM_EV_REP) {
        rc = refused(err, size, &ev);
    } else if ((rc = cm_qp_attr(h->conn, &a)) == 0) {
        describe(h, &ev, &a, out);
        rc = cm_rtu(h->cm, h->conn, NULL, 0, cli_now());
        turn(h);
    }
    if (rc < 0)
        wire_disconnect(h);
    return rc;
}

/* ---- life ---- */

static int host_parts(struct drill_host *h, char *err, size_t size)
{
    struct cm_params cp = {.ca_guid = 0x0200000000000001, .max_mtu = 5};
    struct net_config nc = {0};
    struct io_open_params io = {.frame_max = 4096 + 128};
    int rc = io_open(h->p.port, &io, &h->io, err, size);
    if (rc < 0)
        return rc;
    if (h->io->caps.kernel_ip) {
        snprintf(err, size, "%s sends by the kernel's sockets, which can't send a script's packets",
                 h->p.port);
        return -EINVAL;
    }
    if (getrandom(cp.key, sizeof(cp.key), 0) != (ssize_t)sizeof(cp.key))
        return -EIO;
    h->next_qpn = QPN_FIRST | ((uint32_t)cp.key[0] & QPN_MASK);
    memcpy(nc.mac, h->io->caps.mac, 6);
    static const uint8_t none[6];
    if (!memcmp(nc.mac, none, 6)) {
        memcpy(nc.mac, (uint8_t[]){2, 0xD, 0x21, 0x11, 0, 1}, 6);
        memcpy(h->io->caps.mac, nc.mac, 6);
    }
    h->frames = calloc(FRAMES, sizeof(*h->frames));
    h->cm = cm_create(&cp);
    h->net = net_port_new(&nc, cli_now());
    if (!h->frames || !h->cm || !h->net)
        return -ENOMEM;
    rc = net_addr_add(h->net, &h->p.addr, h->p.prefix, cli_now());
    if (rc < 0)
        snprintf(err, size, "the address can't be used: %s", strerror(-rc));
    return rc;
}

int drill_host_open(const struct drill_host_params *p, struct drill_host **out,
                    struct drill_wire *wire, char *err, size_t size)
{
    struct drill_host *h = calloc(1, sizeof(*h));
    *err = 0;
    if (!h)
        return -ENOMEM;
    h->p = *p;
    int rc = host_parts(h, err, size);
    if (rc < 0) {
        drill_host_close(h);
        return rc;
    }
    *wire = (struct drill_wire){.arg = h,
                                .server = p->server,
                                .connect = wire_connect,
                                .send = wire_send,
                                .recv = wire_recv,
                                .now = wire_now,
                                .disconnect = wire_disconnect};
    *out = h;
    return 0;
}

void drill_host_close(struct drill_host *h)
{
    if (!h)
        return;
    if (h->cm)
        cm_destroy(h->cm);
    net_port_free(h->net);
    if (h->io)
        h->io->ops->close(h->io);
    free(h->frames);
    free(h);
}
