/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Possible input from a udp port's socket: datagrams and trains of any octets, from any sender,
 * with any control messages. Lent frames must be in bounds, with headers that fit their octets, and
 * a frame whose iCRC is reported as right must have it right.
 *
 * The input: a message after the other, each with worker and place of the socket, family, lengths
 * of the train's datagrams and of the whole, control messages, then octets, which come again when
 * they are used up.
 */
#include <netinet/udp.h>
#include <string.h>

#include "fuzz.h"
#include "udp_icrc.h"
#include "udp_rx.h"
#include "udp_socket.h"
#include "wire.h"
#include "wire_bytes.h"

#define MESSAGES 64u
#define WORKERS  2u /* of one device, each with a port of its own */

struct input {
    const uint8_t *p;
    size_t n;
};

static uint8_t take(struct input *in)
{
    if (!in->n)
        return 0;
    in->n--;
    return *in->p++;
}

static uint32_t take16(struct input *in)
{
    uint32_t hi = take(in);
    return hi << 8 | take(in);
}

static size_t put_control(uint8_t *at, int level, int type, int value, size_t len)
{
    struct cmsghdr *c = (struct cmsghdr *)(void *)at;
    c->cmsg_level = level;
    c->cmsg_type = type;
    c->cmsg_len = CMSG_LEN(len);
    memcpy(CMSG_DATA(c), &value, len);
    return CMSG_SPACE(len);
}

/* As the kernel would have filled a message. Returns the octets of the datagrams. */
static unsigned fill(struct input *in, struct msghdr *mh)
{
    uint8_t kind = take(in), *control = mh->msg_control;
    union udp_sockaddr *from = mh->msg_name;
    uint32_t segment = take16(in), len = take16(in), left;
    struct io_addr addr = {{[10] = 0xFF, [11] = 0xFF, [12] = 10, [15] = kind & 3}};
    size_t n = 0;
    if (kind & 4)
        addr.b[10] = 0;
    mh->msg_namelen = udp_sockaddr_set(from, &addr, 0);
    memset(control, 0, mh->msg_controllen);
    if (kind & 8)
        n += put_control(control + n, IPPROTO_UDP, 104 /* UDP_GRO */, (int)segment, sizeof(int));
    if (kind & 16)
        n += put_control(control + n, kind & 4 ? IPPROTO_IPV6 : IPPROTO_IP,
                         kind & 4 ? IPV6_TCLASS : IP_TOS, take(in), kind & 32 ? 1 : 4);
    if (kind & 64)
        n += put_control(control + n, SOL_SOCKET, SO_RXQ_OVFL, take(in), sizeof(int));
    mh->msg_controllen = n;
    mh->msg_flags = kind & 128 ? MSG_TRUNC : 0;
    left = len;
    for (size_t i = 0; i < mh->msg_iovlen && left > 0; i++) {
        size_t k, room = mh->msg_iov[i].iov_len < left ? mh->msg_iov[i].iov_len : left;
        for (k = 0; k < room && in->n > 0; k++)
            ((uint8_t *)mh->msg_iov[i].iov_base)[k] = in->p[k % in->n];
        left -= (uint32_t)room;
    }
    return len;
}

static void check(struct udp_port *p)
{
    struct io_frame f[IO_BURST_MAX];
    unsigned n;
    while ((n = p->rx.count - p->rx.first - p->rx.lent) > 0) {
        n = udp_rx_peek(&p->io, f, n < IO_BURST_MAX ? n : IO_BURST_MAX, 0);
        FUZZ_CHECK(n > 0);
        for (unsigned i = 0; i < n; i++) {
            struct wire_pkt pkt;
            FUZZ_CHECK(f[i].len >= UDP_HDR_V4 && f[i].len <= p->io.caps.frame_max);
            enum wire_verdict v = wire_parse(f[i].data, f[i].len, WIRE_P_LOOPBACK, &pkt);
            if (f[i].flags & IO_RX_ICRC_OK)
                FUZZ_CHECK(v != WIRE_BAD_ICRC && v != WIRE_BAD_IP_CSUM);
        }
        udp_rx_release(&p->io, n);
    }
}

static struct udp_port *new_port(void)
{
    struct udp_port *p = calloc(1, sizeof(*p));
    FUZZ_CHECK(p && udp_rx_alloc(p) == 0);
    p->nsock = 2;
    p->spec.trains = true;
    p->io.caps.frame_max = 9018;
    p->tx.retry_at = UINT64_MAX;
    p->sock[0] =
        (struct udp_socket){.addr = {{[10] = 0xFF, [11] = 0xFF, [12] = 10}}, .v4 = true, .fd = -1};
    p->sock[1] = (struct udp_socket){.addr = {{0xFD}}, .fd = -1, .group = true};
    return p;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct udp_port *ports[WORKERS];
    struct input in = {data, size};
    if (!ports[0])
        udp_icrc_init();
    for (unsigned w = 0; w < WORKERS; w++) {
        if (!ports[w])
            ports[w] = new_port();
        memset(ports[w]->peers, 0, UDP_PEERS * sizeof(*ports[w]->peers));
    }
    for (unsigned i = 0; i < MESSAGES && in.n > 0; i++) {
        unsigned want = 1 + take(&in) % UDP_RX_BATCH, where = take(&in);
        struct udp_port *p = ports[(where >> 1) % WORKERS];
        unsigned msgs = udp_rx_make(p);
        FUZZ_CHECK(msgs > 0);
        want = want < msgs ? want : msgs;
        for (unsigned k = 0; k < want; k++)
            p->rx.msg[k].msg_len = fill(&in, &p->rx.msg[k].msg_hdr);
        udp_rx_take(p, &p->sock[where & 1], want);
        check(p);
    }
    for (unsigned w = 0; w < WORKERS; w++) {
        ports[w]->rx.segment = ports[w]->rx.lonely = 0;
        ports[w]->rx.made = false;
    }
    return 0;
}
