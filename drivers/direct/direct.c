/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See direct.h. Frames of both ports are lent in turns. A turn is given back as a whole, with its
 * last frame.
 */
#include "direct.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "channel.h"
#include "udp.h"
#include "wire.h"

#define TURNS    32u /* a power of two */
#define OWNER_AT 13u /* bits of a queue pair's number below the block's (lib/core/base/qpn.h) */
#define OWNED    0x400u
#define SOURCE_4 26u /* offset in a frame without a VLAN tag */
#define SOURCE_6 22u

/* The frames of one port that one call of rx_peek has lent. */
struct turn {
    struct io_port *from;
    unsigned taken; /* lent by the port */
    unsigned left;  /* frames not yet given back by the caller */
};

struct direct {
    struct io_port io;
    struct io_port *channel, *udp;
    int bell, epfd;
    unsigned block;
    struct turn turn[TURNS];
    unsigned first, end;
    struct io_addr addr[IO_BURST_MAX]; /* the addresses that have a socket */
    unsigned naddr;
    uint32_t meta[IO_BURST_MAX]; /* metadata of the slots of the last tx_reserve */
    uint64_t tx_drop;
};

static struct direct *direct_of(struct io_port *io)
{
    return (struct direct *)io;
}

/* ---- receiving ---- */

static void lend(struct direct *d, struct io_port *from, unsigned taken, unsigned lent)
{
    if (taken > 0)
        d->turn[d->end++ % TURNS] = (struct turn){.from = from, .taken = taken, .left = lent};
}

/* Give back the turns of which the caller holds no frame. */
static void settle(struct direct *d)
{
    while (d->first != d->end && d->turn[d->first % TURNS].left == 0) {
        const struct turn *t = &d->turn[d->first++ % TURNS];
        t->from->ops->rx_release(t->from, t->taken);
    }
}

/* Is the packet for a queue pair of another owner? Frames of the udp port have no tag. A damaged
 * packet is counted here, with any number in it. */
static bool is_stray(const struct direct *d, const struct io_frame *f)
{
    if (!(f->flags & IO_RX_ICRC_OK) || f->len < WIRE_ETH_LEN + WIRE_IPV4_LEN)
        return false;
    const uint32_t ip = f->data[WIRE_ETH_LEN] >> 4 == 6 ? WIRE_IPV6_LEN : WIRE_IPV4_LEN;
    const uint32_t at = WIRE_ETH_LEN + ip + WIRE_UDP_LEN;
    if (f->len < at + WIRE_BTH_LEN + WIRE_ICRC_LEN)
        return false;
    const uint8_t *bth = f->data + at;
    const uint32_t qpn = (uint32_t)bth[5] << 16 | (uint32_t)bth[6] << 8 | bth[7];
    return qpn >> OWNER_AT != (OWNED | d->block);
}

static void pass_on(struct direct *d, const struct io_frame *f, uint64_t now)
{
    struct io_slot slot;
    if (d->channel->ops->tx_reserve(d->channel, &slot, 1, now) == 0 || f->len > slot.cap)
        return; /* lost, as in any full ring */
    memcpy(slot.data, f->data, f->len);
    slot.len = f->len;
    channel_tx_meta(d->channel, 0, CHANNEL_STRAY);
    d->channel->ops->tx_commit(d->channel, &slot, 1, now);
}

static unsigned direct_rx_peek(struct io_port *io, struct io_frame *frames, unsigned max,
                               uint64_t now)
{
    struct direct *d = direct_of(io);
    if (d->end - d->first > TURNS - 2)
        return 0;
    unsigned n = d->channel->ops->rx_peek(d->channel, frames, max, now), m = n;
    lend(d, d->channel, n, n);
    if (n == max)
        return n;
    unsigned got = d->udp->ops->rx_peek(d->udp, frames + n, max - n, now);
    for (unsigned i = n; i < n + got; i++) {
        if (is_stray(d, &frames[i]))
            pass_on(d, &frames[i], now);
        else
            frames[m++] = frames[i];
    }
    lend(d, d->udp, got, m - n);
    settle(d);
    return m;
}

static void direct_rx_release(struct io_port *io, unsigned n)
{
    struct direct *d = direct_of(io);
    for (unsigned i = d->first; i != d->end && n > 0; i++) {
        struct turn *t = &d->turn[i % TURNS];
        const unsigned give = n < t->left ? n : t->left;
        t->left -= give;
        n -= give;
    }
    settle(d);
}

static void direct_rx_arm(struct io_port *io, bool on)
{
    struct direct *d = direct_of(io);
    char waste[16];
    while (on && recv(d->bell, waste, sizeof(waste), MSG_DONTWAIT) > 0)
        ;
    d->channel->ops->rx_arm(d->channel, on);
    d->udp->ops->rx_arm(d->udp, on);
}

/* ---- sending ---- */

/* Does the frame leave by a socket? Only to an address, not to a group, and from an address that
 * has a socket. */
static bool by_socket(const struct direct *d, const struct io_slot *s)
{
    const uint8_t *f = s->data;
    struct io_addr from = {.b = {[10] = 0xFF, [11] = 0xFF}};
    if (s->len < WIRE_ETH_LEN + WIRE_IPV6_LEN || (f[0] & 1))
        return false;
    const unsigned type = (unsigned)f[12] << 8 | f[13];
    if (type == WIRE_ETHERTYPE_IPV4)
        memcpy(from.b + 12, f + SOURCE_4, 4);
    else if (type == WIRE_ETHERTYPE_IPV6)
        memcpy(from.b, f + SOURCE_6, 16);
    else
        return false;
    for (unsigned i = 0; i < d->naddr; i++) {
        if (memcmp(d->addr[i].b, from.b, sizeof(from.b)) == 0)
            return true;
    }
    return false;
}

static unsigned direct_tx_reserve(struct io_port *io, struct io_slot *slots, unsigned max,
                                  uint64_t now)
{
    struct direct *d = direct_of(io);
    struct io_link link;
    d->channel->ops->link(d->channel, &link);
    if (!link.up)
        return 0;
    unsigned n = d->udp->ops->tx_reserve(d->udp, slots, max, now);
    for (unsigned i = 0; i < n; i++) {
        if (slots[i].cap > io->caps.frame_max)
            slots[i].cap = io->caps.frame_max;
        d->meta[i] = 0;
    }
    return n;
}

/* These frames leave by the channel. Frames for which it has no room are lost; there are few. */
static void by_channel(struct direct *d, const struct io_slot *slots, uint64_t which, uint64_t now)
{
    struct io_slot to[IO_BURST_MAX];
    const unsigned want = (unsigned)__builtin_popcountll(which);
    const unsigned n = d->channel->ops->tx_reserve(d->channel, to, want, now);
    for (unsigned k = 0; k < n; which &= which - 1, k++) {
        const unsigned i = (unsigned)__builtin_ctzll(which);
        const struct io_slot *s = &slots[i];
        if (s->len > to[k].cap)
            continue;
        memcpy(to[k].data, s->data, s->len);
        to[k].len = s->len;
        channel_tx_meta(d->channel, k, d->meta[i]);
    }
    if (n > 0)
        d->channel->ops->tx_commit(d->channel, to, n, now);
    d->tx_drop += want - n;
}

void direct_tx_meta(struct io_port *io, unsigned i, uint32_t meta)
{
    direct_of(io)->meta[i] = meta;
}

static void direct_tx_commit(struct io_port *io, const struct io_slot *slots, unsigned n,
                             uint64_t now)
{
    struct direct *d = direct_of(io);
    struct io_slot mine[IO_BURST_MAX];
    uint64_t others = 0;
    for (unsigned i = 0; i < n; i++) {
        mine[i] = slots[i];
        if (slots[i].len == 0 || by_socket(d, &slots[i]))
            continue;
        others |= UINT64_C(1) << i;
        mine[i].len = 0;
    }
    if (others)
        by_channel(d, slots, others, now);
    d->udp->ops->tx_commit(d->udp, mine, n, now);
}

/* ---- the rest ---- */

static uint64_t direct_deadline(struct io_port *io)
{
    struct direct *d = direct_of(io);
    return d->udp->ops->deadline(d->udp);
}

static void direct_service(struct io_port *io, uint64_t now)
{
    struct direct *d = direct_of(io);
    d->udp->ops->service(d->udp, now);
    d->naddr = d->udp->ops->addrs(d->udp, d->addr, IO_BURST_MAX);
}

void direct_addrs(struct io_port *io, const struct io_addr *addrs, unsigned n)
{
    struct direct *d = direct_of(io);
    io_udp_keep(d->udp, addrs, n);
    d->naddr = d->udp->ops->addrs(d->udp, d->addr, IO_BURST_MAX);
}

/* The daemon sets the link (channel_set_link). */
static void direct_link(struct io_port *io, struct io_link *out)
{
    struct direct *d = direct_of(io);
    d->channel->ops->link(d->channel, out);
}

static void direct_stats(struct io_port *io, struct io_stats *out)
{
    struct direct *d = direct_of(io);
    struct io_stats c;
    d->channel->ops->stats(d->channel, &c);
    d->udp->ops->stats(d->udp, out);
    out->rx_frames += c.rx_frames;
    out->rx_bytes += c.rx_bytes;
    out->tx_frames += c.tx_frames;
    out->tx_bytes += c.tx_bytes;
    out->rx_drop += c.rx_drop;
    out->rx_oversize += c.rx_oversize;
    out->tx_drop += c.tx_drop + d->tx_drop;
    out->tx_full += c.tx_full;
}

static bool direct_icmp(struct io_port *io, struct io_icmp *out)
{
    struct direct *d = direct_of(io);
    return d->udp->ops->icmp(d->udp, out);
}

static bool direct_news(struct io_port *io, char *text, size_t size)
{
    struct direct *d = direct_of(io);
    return d->udp->ops->news(d->udp, text, size);
}

static void direct_close(struct io_port *io)
{
    struct direct *d = direct_of(io);
    d->udp->ops->close(d->udp);
    d->channel->ops->close(d->channel);
    close(d->bell);
    close(d->epfd);
    free(d);
}

static const struct io_ops direct_ops = {
    .name = "direct",
    .rx_arm = direct_rx_arm,
    .rx_peek = direct_rx_peek,
    .rx_release = direct_rx_release,
    .tx_reserve = direct_tx_reserve,
    .tx_commit = direct_tx_commit,
    .deadline = direct_deadline,
    .service = direct_service,
    .icmp = direct_icmp,
    .news = direct_news,
    .link = direct_link,
    .stats = direct_stats,
    .close = direct_close,
};

static int watch(struct direct *d)
{
    struct epoll_event ev = {.events = EPOLLIN};
    d->epfd = epoll_create1(EPOLL_CLOEXEC);
    if (d->epfd < 0 || epoll_ctl(d->epfd, EPOLL_CTL_ADD, d->bell, &ev) < 0 ||
        epoll_ctl(d->epfd, EPOLL_CTL_ADD, d->udp->caps.rx_fd, &ev) < 0)
        return -errno;
    return 0;
}

int direct_open(struct io_port *channel, struct io_port *udp, int bell, unsigned block,
                struct io_port **out)
{
    struct direct *d = calloc(1, sizeof(*d));
    if (!d)
        return -ENOMEM;
    d->io.ops = &direct_ops;
    d->channel = channel;
    d->udp = udp;
    d->bell = bell;
    d->block = block;
    int rc = watch(d);
    if (rc < 0) {
        if (d->epfd >= 0)
            close(d->epfd);
        free(d);
        return rc;
    }
    d->io.caps = channel->caps;
    d->io.caps.rx_fd = d->epfd;
    d->io.caps.room = udp->caps.room;
    snprintf(d->io.spec, sizeof(d->io.spec), "direct:%.200s", udp->spec);
    d->naddr = udp->ops->addrs(udp, d->addr, IO_BURST_MAX);
    *out = &d->io;
    return 0;
}
