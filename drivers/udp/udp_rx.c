/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Receiving. Each datagram gets a slot of its own, with room for the headers that are made up in
 * front. Taking a train apart that the kernel has joined (UDP_GRO) would need copies. So it is
 * received directly into slots, with an iovec for each datagram of the length that those of the
 * last train had. If the train's datagrams are a little longer or shorter than that (the first
 * packet of a WRITE has a header more), the octets that lie in a neighbour's slot are moved. If
 * they are of quite another length, all are copied.
 */
#include "udp_rx.h"

#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "udp_error.h"
#include "udp_socket.h"
#include "udp_tx.h"
#include "wire.h"

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define SLOT_MAX    (UDP_STRIDE - UDP_HDR_MAX) /* octets of a datagram */
#define LONELY      256u /* messages without a train after which none is expected */
#define HOT_TURNS   8u   /* looks at one socket before a look at all */
#define NAT_SURE    3u   /* bad packets in a row with an iCRC for one other address */
#define EMPTY_LOOKS 8u   /* empty looks between two looks for errors of ICMP */
#define RECV_TRIES  4u   /* each one may find an error of ICMP instead */

int udp_rx_alloc(struct udp_port *p)
{
    p->peers = calloc(UDP_PEERS, sizeof(*p->peers));
    p->rx.slots = aligned_alloc(64, (size_t)UDP_RX_SLOTS * UDP_STRIDE);
    p->rx.tails = malloc((size_t)UDP_RX_BATCH * UDP_DATAGRAM);
    p->rx.whole = malloc(UDP_DATAGRAM);
    return p->peers && p->rx.slots && p->rx.tails && p->rx.whole ? 0 : -ENOMEM;
}

void udp_rx_free(struct udp_port *p)
{
    free(p->peers);
    free(p->rx.slots);
    free(p->rx.tails);
    free(p->rx.whole);
}

static uint8_t *slot(const struct udp_port *p, unsigned i)
{
    return p->rx.slots + (size_t)i * UDP_STRIDE + UDP_HDR_MAX;
}

/* Datagrams for which a message has slots. */
static unsigned per_message(const struct udp_rx *r)
{
    if (!r->segment)
        return 1;
    unsigned n = (UDP_DATAGRAM - 1) / r->segment + 1;
    return n < UDP_TRAIN ? n : UDP_TRAIN;
}

static unsigned piece_len(const struct udp_rx *r)
{
    return r->segment ? r->segment : SLOT_MAX;
}

/* ---- the call ---- */

static void make_message(struct udp_port *p, unsigned i, unsigned per, struct iovec *iov)
{
    struct udp_rx *r = &p->rx;
    for (unsigned k = 0; k < per; k++)
        iov[k] = (struct iovec){slot(p, r->next + i * per + k), piece_len(r)};
    iov[per] = (struct iovec){r->tails + (size_t)i * UDP_DATAGRAM, UDP_DATAGRAM};
    r->msg[i].msg_hdr = (struct msghdr){.msg_name = &r->more[i].from,
                                        .msg_namelen = sizeof(r->more[i].from),
                                        .msg_iov = iov,
                                        .msg_iovlen = per + 1,
                                        .msg_control = r->more[i].control,
                                        .msg_controllen = sizeof(r->more[i].control)};
}

/* The number of messages that fit after the frames still lent, with any contents of the
 * messages. */
unsigned udp_rx_make(struct udp_port *p)
{
    struct udp_rx *r = &p->rx;
    unsigned per = per_message(r), msgs = UDP_RX_SEGS / per;
    unsigned fit = (UDP_RX_SLOTS - r->next) / (per + UDP_TRAIN);
    msgs = msgs > UDP_RX_BATCH ? UDP_RX_BATCH : msgs;
    msgs = msgs > fit ? fit : msgs;
    if (r->made && r->made_next == r->next && r->made_segment == r->segment && r->made_msgs == msgs)
        return msgs;
    for (unsigned i = 0; i < msgs; i++)
        make_message(p, i, per, &r->iov[(size_t)i * (per + 1)]);
    r->made = true;
    r->made_next = r->next;
    r->made_segment = r->segment;
    r->made_msgs = msgs;
    return msgs;
}

/* ---- a datagram ---- */

static unsigned peer_place(const struct io_addr *from, const struct io_addr *to, uint16_t sport)
{
    uint32_t a, b;
    memcpy(&a, from->b + 12, sizeof(a));
    memcpy(&b, to->b + 12, sizeof(b));
    a = (a ^ b * 31 ^ sport) * 2654435761u;
    return (a >> 16 ^ a) % UDP_PEERS;
}

static struct udp_peer *find_peer(struct udp_port *p, const struct udp_socket *s,
                                  const struct io_addr *from, uint16_t sport)
{
    struct udp_peer *peer = &p->peers[peer_place(from, &s->addr, sport)];
    if (peer->known && peer->sport == sport &&
        memcmp(peer->from.b, from->b, sizeof(from->b)) == 0 &&
        memcmp(peer->to.b, s->addr.b, sizeof(from->b)) == 0)
        return peer;
    *peer = (struct udp_peer){.from = *from, .to = s->addr, .sport = sport, .known = true};
    udp_head_init(&peer->head, p->io.caps.mac, from, &s->addr, sport);
    return peer;
}

/* NAT changes addresses, which the iCRC covers, so all packets of a peer have the same damage. */
static void look_for_nat(struct udp_port *p, struct udp_peer *peer, const uint8_t *frame,
                         uint32_t len)
{
    struct wire_addr from, nat;
    struct io_addr source;
    char text[64], other[64];
    if (!udp_frame_other_source(frame, len, &source))
        return;
    bool again = memcmp(source.b, peer->nat.b, sizeof(source.b)) == 0;
    peer->nat = source;
    peer->nat_seen = again ? peer->nat_seen + (peer->nat_seen < NAT_SURE) : 1;
    if (peer->nat_seen < NAT_SURE)
        return;
    p->stats.rx_nat++;
    if (peer->nat_told)
        return;
    peer->nat_told = true;
    memcpy(from.b, peer->from.b, sizeof(from.b));
    memcpy(nat.b, source.b, sizeof(nat.b));
    udp_say(p,
            "packets from %s have an iCRC that fits the source address %s: NAT on the way (of a "
            "pod, a cloud?) breaks RoCE; give that end an address that is not translated",
            wire_addr_str(&from, text, sizeof(text)), wire_addr_str(&nat, other, sizeof(other)));
}

static void queue_frame(struct udp_port *p, struct udp_peer *peer, uint8_t *datagram, uint32_t len,
                        unsigned place, uint8_t tclass, uint8_t ttl)
{
    struct udp_rx *r = &p->rx;
    uint32_t whole = len + peer->head.len;
    if (whole > p->io.caps.frame_max || len > SLOT_MAX) {
        p->stats.rx_oversize++;
        return;
    }
    uint8_t *frame = udp_frame_put(datagram, len, &peer->head, tclass, ttl);
    struct udp_verdict v =
        udp_frame_check(frame, whole, udp_habit_guess(&peer->habit, (uint16_t)place));
    if (v.good && peer->head.len == UDP_HDR_V4 && !udp_habit_take(&peer->habit, v.id, v.df)) {
        udp_frame_forget(frame);
        v.good = false;
    } else if (!v.good && place == 0) {
        look_for_nat(p, peer, frame, whole);
    }
    if (v.good && p->spec.trains)
        udp_train_heard(&p->trains, &peer->from, datagram);
    r->frame[r->count++] = (struct io_frame){
        .data = frame, .len = whole, .flags = IO_RX_IP_CSUM_OK | (v.good ? IO_RX_ICRC_OK : 0)};
    p->stats.rx_frames++;
    p->stats.rx_bytes += whole;
}

/* ---- a message ---- */

struct about {
    uint8_t tclass, ttl;
    unsigned segment; /* octets of a train's datagrams; 0 = no train */
};

static int number(const struct cmsghdr *c)
{
    int v = 0;
    size_t len = c->cmsg_len - CMSG_LEN(0);
    memcpy(&v, CMSG_DATA(c), len < sizeof(v) ? len : sizeof(v)); /* IP_TOS is one octet */
    return v;
}

static struct about read_control(struct udp_port *p, struct udp_socket *s, struct msghdr *mh)
{
    struct about a = {.ttl = 64};
    for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c)) {
        int v = number(c), level = c->cmsg_level, type = c->cmsg_type;
        if ((level == IPPROTO_IP && type == IP_TOS) ||
            (level == IPPROTO_IPV6 && type == IPV6_TCLASS)) {
            a.tclass = (uint8_t)v;
        } else if ((level == IPPROTO_IP && type == IP_TTL) ||
                   (level == IPPROTO_IPV6 && type == IPV6_HOPLIMIT)) {
            a.ttl = (uint8_t)v;
        } else if (level == IPPROTO_UDP && type == UDP_GRO) {
            a.segment = v > 0 ? (unsigned)v : 0;
        } else if (level == SOL_SOCKET && type == SO_RXQ_OVFL) {
            p->stats.rx_drop += (uint32_t)v - s->overflows;
            s->overflows = (uint32_t)v;
        }
    }
    return a;
}

/* Make all octets of a message contiguous. */
static void linearize(const struct msghdr *mh, uint32_t len, uint8_t *to)
{
    for (size_t i = 0; i < mh->msg_iovlen && len > 0; i++) {
        uint32_t n = mh->msg_iov[i].iov_len < len ? (uint32_t)mh->msg_iov[i].iov_len : len;
        if (to != mh->msg_iov[i].iov_base)
            memcpy(to, mh->msg_iov[i].iov_base, n);
        to += n;
        len -= n;
    }
}

struct message {
    struct udp_peer *peer;
    struct msghdr *mh;
    uint32_t len;
    struct about about;
};

static void take_datagram(struct udp_port *p, const struct message *m, uint8_t *at, uint32_t len,
                          unsigned place)
{
    queue_frame(p, m->peer, at, len, place, m->about.tclass, m->about.ttl);
}

static void take_single(struct udp_port *p, const struct message *m)
{
    uint8_t *at = m->mh->msg_iov[0].iov_base;
    if (m->len > m->mh->msg_iov[0].iov_len && m->len <= SLOT_MAX)
        linearize(m->mh, m->len, at);
    take_datagram(p, m, at, m->len, 0);
}

/* Does datagram k of a train lie in slot k, except for octets at the beginning of slot k + 1 or at
 * the end of slot k - 1? */
static bool nearly_foreseen(const struct udp_rx *r, const struct message *m)
{
    unsigned seg = m->about.segment, piece = r->made_segment, last = (m->len - 1) / seg;
    unsigned most = seg > piece ? (last + 1) * (seg - piece) : last * (piece - seg);
    return last < per_message(r) && most <= piece;
}

/* Datagram k of such a train, moved together. They are moved in order: the octets that belong to
 * datagram k - 1 are where the headers of datagram k are written then. */
static uint8_t *move_together(const struct udp_rx *r, const struct message *m, unsigned k,
                              uint32_t len)
{
    const struct iovec *slot = &m->mh->msg_iov[k];
    unsigned seg = m->about.segment, piece = r->made_segment;
    uint8_t *at = slot->iov_base;
    if (seg < piece) {
        unsigned before = k * (piece - seg);
        if (before > 0)
            memmove(at - before, (uint8_t *)slot[-1].iov_base + piece - before,
                    before < len ? before : len);
        return at - before;
    }
    unsigned from = k * (seg - piece);
    if (from + len > piece)
        memmove(at + piece, slot[1].iov_base, from + len - piece);
    return at + from;
}

/* Take a train apart. Its datagrams lie in slots of their own, or nearly, or they are copied to
 * slots from one piece (`whole`). Returns the slots used from `free_slot` on. */
static unsigned take_train(struct udp_port *p, const struct message *m, unsigned free_slot)
{
    struct udp_rx *r = &p->rx;
    unsigned seg = m->about.segment, used = 0;
    bool foreseen = nearly_foreseen(r, m);
    if (!foreseen)
        linearize(m->mh, m->len, r->whole);
    for (unsigned k = 0; k * seg < m->len; k++) {
        uint32_t len = m->len - k * seg < seg ? m->len - k * seg : seg;
        if (foreseen) {
            take_datagram(p, m, move_together(r, m, k, len), len, k);
            continue;
        }
        if (used == UDP_TRAIN || len > SLOT_MAX || free_slot + used == UDP_RX_SLOTS) {
            p->stats.rx_drop++;
            continue;
        }
        memcpy(slot(p, free_slot + used), r->whole + (size_t)k * seg, len);
        take_datagram(p, m, slot(p, free_slot + used++), len, k);
    }
    return used;
}

void udp_rx_take(struct udp_port *p, struct udp_socket *s, unsigned n)
{
    struct udp_rx *r = &p->rx;
    unsigned free_slot = r->next + n * per_message(r), segment = r->segment;
    for (unsigned i = 0; i < n; i++) {
        struct message m = {.mh = &r->msg[i].msg_hdr, .len = r->msg[i].msg_len};
        struct io_addr from;
        uint16_t sport = udp_sockaddr_get(&r->more[i].from, &from);
        m.about = read_control(p, s, m.mh);
        bool train = m.about.segment > 0 && m.len > m.about.segment;
        if (m.mh->msg_flags & MSG_TRUNC)
            p->stats.rx_oversize++;
        else if (s->group && udp_socket_find(p, &from, false))
            ; /* our own frame to the group: the device's loop delivers it */
        else {
            m.peer = find_peer(p, s, &from, sport);
            if (train)
                free_slot += take_train(p, &m, free_slot);
            else
                take_single(p, &m);
        }
        r->lonely = train ? 0 : r->lonely + 1;
        if (train)
            segment = m.about.segment;
        m.mh->msg_namelen = sizeof(r->more[i].from);
        m.mh->msg_controllen = sizeof(r->more[i].control);
        m.mh->msg_flags = 0;
    }
    r->next = r->first == r->count ? 0 : free_slot; /* all datagrams may have been refused */
    r->segment = r->lonely > LONELY || segment > SLOT_MAX ? 0 : segment;
}

/* ---- sockets ---- */

static unsigned receive(struct udp_port *p, unsigned index)
{
    struct udp_socket *s = &p->sock[index];
    unsigned before = p->rx.count;
    for (unsigned i = 0; i < RECV_TRIES && s->fd >= 0; i++) {
        unsigned msgs = udp_rx_make(p);
        if (msgs == 0)
            return 0;
        int n = recvmmsg(s->fd, p->rx.msg, msgs, MSG_DONTWAIT, NULL);
        if (n > 0) {
            udp_rx_take(p, s, (unsigned)n);
            p->rx.hot = index;
            break;
        }
        if (errno == EAGAIN) {
            /* a sending call may have returned the error, which wakes us nevertheless */
            if (p->rx.empty++ % EMPTY_LOOKS == 0)
                udp_error_drain(p, s);
            break;
        }
        udp_error_drain(p, s);
    }
    return p->rx.count - before;
}

/* Look at the socket that had the last message; at all of them from time to time, or when one has
 * woken the owner. A look at one is one system call. */
static void look(struct udp_port *p)
{
    struct udp_rx *r = &p->rx;
    struct epoll_event ev[UDP_RX_BATCH];
    if (p->nsock == 1) {
        receive(p, 0);
        return;
    }
    if (r->hot < p->nsock && r->turns++ % HOT_TURNS && (receive(p, r->hot) > 0 || !r->woken)) {
        r->woken = false; /* a message of another socket wakes the owner again */
        return;
    }
    r->woken = false;
    int n = epoll_wait(p->epfd, ev, UDP_RX_BATCH, 0);
    for (int i = 0; i < n; i++) {
        if (ev[i].data.u32 >= p->nsock)
            continue;
        if (ev[i].events & EPOLLERR)
            udp_error_drain(p, &p->sock[ev[i].data.u32]);
        receive(p, ev[i].data.u32);
    }
}

unsigned udp_rx_peek(struct io_port *io, struct io_frame *frames, unsigned max, uint64_t now)
{
    struct udp_port *p = udp_port_of(io);
    struct udp_rx *r = &p->rx;
    unsigned n = 0;
    if (p->tx.sent < p->tx.count && now >= p->tx.retry_at)
        udp_tx_flush(p, now);
    if (r->first + r->lent == r->count)
        look(p);
    for (; n < max && r->first + r->lent < r->count; n++)
        frames[n] = r->frame[r->first + r->lent++];
    return n;
}

void udp_rx_release(struct io_port *io, unsigned n)
{
    struct udp_rx *r = &udp_port_of(io)->rx;
    r->first += n;
    r->lent -= n;
    if (r->first == r->count) /* all released: the warm slots come first again */
        r->first = r->count = r->next = 0;
}
