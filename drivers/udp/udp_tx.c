/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sending. Frames lose their headers; runs of frames to one queue pair, of one length except the
 * last, leave in one call as a train (UDP_SEGMENT). The kernel gives the datagrams of a train the
 * identifications 0, 1, 2 ..., and 0 to a single one, or others by the rule that udp_probe.c has
 * found. The iCRCs are made for them (WIRE-11).
 */
#include "udp_tx.h"

#include <errno.h>
#include <netinet/udp.h>
#include <string.h>
#include <time.h>

#include "udp_error.h"
#include "udp_icrc.h"
#include "udp_socket.h"
#include "wire.h"
#include "wire_bytes.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

#define TRAIN_OCTETS 65000u /* most octets of a train: IP's and UDP's limit, and some less */
#define RETRY_NS     20000u
#define REFUSALS     1000u /* refusals of a message for want of room until it is dropped */
#define ERROR_TRIES  4u    /* each one may find an error of ICMP about another datagram */
/* Each single datagram costs a walk through the kernel: 4 us, but milliseconds with IPsec on a slow
 * machine, and more if others want its processor, too. With more of them in one burst, or a longer
 * burst, the owner would look for packets too late. */
#define SINGLES    16u
#define SINGLES_NS 4000000u

/* A message: the frames [first, first + n) of the burst. */
struct message {
    unsigned first, n;
};

struct call {
    struct message message[IO_BURST_MAX];
    struct mmsghdr msg[IO_BURST_MAX];
    union udp_sockaddr to[IO_BURST_MAX];
    struct iovec iov[IO_BURST_MAX];
    _Alignas(16) uint8_t control[IO_BURST_MAX][3 * CMSG_SPACE(sizeof(int))];
};

static bool same_addr(const struct io_addr *a, const struct io_addr *b)
{
    return memcmp(a->b, b->b, sizeof(a->b)) == 0;
}

/* ---- peers that trains don't reach ---- */

static void tell_single(struct udp_port *p, const struct io_addr *to, const char *why)
{
    struct wire_addr w;
    char text[64];
    memcpy(w.b, to->b, sizeof(w.b));
    udp_say(p, "trains of datagrams to %s do not get through (%s): they go one by one, slower",
            wire_addr_str(&w, text, sizeof(text)), why);
}

/* ---- trains ---- */

static uint32_t dqpn(const uint8_t *datagram)
{
    return wire_get32(datagram + 4) & WIRE_QPN_MASK;
}

/* May frame b join the train that frame a heads? */
static bool rides(const struct udp_tx *t, unsigned a, unsigned b)
{
    const struct udp_out *x = &t->out[a], *y = &t->out[b];
    return y->len <= x->len && x->tclass == y->tclass && x->ttl == y->ttl &&
           same_addr(&x->to, &y->to) && same_addr(&x->from, &y->from) &&
           dqpn(t->at[a]) == dqpn(t->at[b]);
}

static unsigned ridden(const struct udp_tx *t, unsigned first)
{
    uint32_t len = t->out[first].len, total = len;
    unsigned n = 1;
    if (first + 1 == t->count || !rides(t, first, first + 1))
        return 1;
    while (first + n < t->count && n < UDP_TRAIN && rides(t, first, first + n)) {
        total += t->out[first + n].len;
        if (total > TRAIN_OCTETS)
            break;
        n++;
        if (t->out[first + n - 1].len < len)
            break; /* a shorter frame ends the train */
    }
    return n;
}

/* The number of frames from `first` on that leave in one call. */
static unsigned train_len(struct udp_port *p, unsigned first)
{
    const struct udp_tx *t = &p->tx;
    const struct io_addr *to = &t->out[first].to;
    bool told;
    if (!p->spec.trains)
        return 1;
    unsigned n = udp_train_ask(&p->trains, to, t->at[first], ridden(t, first), &told);
    if (told)
        tell_single(p, to, "single datagrams are acknowledged");
    udp_train_sent(&p->trains, to, t->at[first], t->at[first + n - 1], n);
    return n;
}

static void plan(struct udp_port *p)
{
    struct udp_tx *t = &p->tx;
    unsigned messages = 0;
    for (unsigned i = 0; i < t->count; i += t->ride[i], messages++)
        t->ride[i] = (uint8_t)train_len(p, i);
    if (t->count >= SINGLES / 2) /* less says nothing: even a lonely ACK is a message */
        t->singles = 2 * messages > t->count;
}

/* Make the iCRC right for the place in a message of n, and for the port that we send from. */
static void reseal(struct udp_port *p, unsigned i, unsigned place, unsigned n)
{
    struct udp_tx *t = &p->tx;
    struct udp_out *o = &t->out[i];
    uint16_t id = udp_ids_at(&p->ids, place, n);
    if (o->sport == WIRE_UDP_PORT && (!o->v4 || o->id == id))
        return;
    if (n > 1 && o->sport == WIRE_UDP_PORT && o->id == 0) {
        uint8_t *icrc = t->at[i] + o->len - WIRE_ICRC_LEN;
        if (t->delta_len != o->len)
            memset(t->delta, 0, sizeof(t->delta));
        t->delta_len = o->len;
        uint32_t before = wire_get32le(icrc);
        if (t->delta[place]) {
            wire_put32le(icrc, before ^ t->delta[place]);
        } else {
            udp_frame_reseal(t->at[i], o, id);
            t->delta[place] = before ^ wire_get32le(icrc);
        }
    } else {
        udp_frame_reseal(t->at[i], o, id);
    }
    o->sport = WIRE_UDP_PORT;
    o->id = id;
}

/* ---- a call ---- */

static void *put_control(struct msghdr *mh, uint8_t *room, int level, int type, const void *value,
                         size_t size)
{
    struct cmsghdr *c = (struct cmsghdr *)(void *)(room + mh->msg_controllen);
    c->cmsg_level = level;
    c->cmsg_type = type;
    c->cmsg_len = CMSG_LEN(size);
    memcpy(CMSG_DATA(c), value, size);
    mh->msg_control = room;
    mh->msg_controllen += CMSG_SPACE(size);
    return c;
}

static void make_message(struct udp_port *p, const struct udp_socket *s, struct call *c, unsigned i)
{
    struct udp_tx *t = &p->tx;
    const struct message *m = &c->message[i];
    const struct udp_out *o = &t->out[m->first];
    struct msghdr *mh = &c->msg[i].msg_hdr;
    bool far = !udp_addr_is_link_local(&o->to) && o->to.b[0] != 0xFF;
    for (unsigned k = 0; k < m->n; k++) {
        reseal(p, m->first + k, k, m->n);
        c->iov[m->first + k] = (struct iovec){t->at[m->first + k], t->out[m->first + k].len};
    }
    *mh = (struct msghdr){.msg_name = &c->to[i], .msg_iov = &c->iov[m->first], .msg_iovlen = m->n};
    mh->msg_namelen = udp_sockaddr_set(&c->to[i], &o->to, far ? 0 : (uint32_t)p->ifindex);
    memset(c->control[i], 0, sizeof(c->control[i]));
    int tclass = o->tclass, ttl = o->ttl;
    if (tclass)
        put_control(mh, c->control[i], s->v4 ? IPPROTO_IP : IPPROTO_IPV6,
                    s->v4 ? IP_TOS : IPV6_TCLASS, &tclass, sizeof(tclass));
    bool group = o->to.b[0] == 0xFF || (s->v4 && o->to.b[12] >> 4 == 0xE);
    if ((ttl != WIRE_TTL_DEFAULT || group) && ttl > 0)
        put_control(mh, c->control[i], s->v4 ? IPPROTO_IP : IPPROTO_IPV6,
                    s->v4 ? IP_TTL : IPV6_HOPLIMIT, &ttl, sizeof(ttl));
    if (m->n > 1) {
        uint16_t segment = (uint16_t)o->len;
        put_control(mh, c->control[i], IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment));
    }
}

/* Collect messages for the socket of the first frame, up to the first one for another socket. */
static unsigned make_call(struct udp_port *p, const struct udp_socket *s, struct call *c)
{
    const struct udp_tx *t = &p->tx;
    unsigned n = 0, i = t->sent;
    do {
        c->message[n] = (struct message){i, t->ride[i]};
        make_message(p, s, c, n);
        i += c->message[n++].n;
    } while (i < t->count && same_addr(&t->out[i].from, &s->addr));
    return n;
}

/* Remove frames that were sent or dropped. */
static void done(struct udp_port *p, unsigned n, bool lost)
{
    struct udp_tx *t = &p->tx;
    for (unsigned i = 0; i < n; i++) {
        const struct udp_out *o = &t->out[t->sent + i];
        p->stats.tx_drop += lost;
        p->stats.tx_frames += !lost;
        p->stats.tx_bytes += lost ? 0 : o->len + o->off;
    }
    t->sent += n;
    t->refusals = 0;
    t->train_error = 0;
}

static void sent(struct udp_port *p, const struct message *m)
{
    struct udp_tx *t = &p->tx;
    const struct io_addr *to = &t->out[m->first].to;
    if (t->train_error) {
        udp_train_never(&p->trains, to);
        tell_single(p, to, strerror(t->train_error));
        for (unsigned i = m->first + 1, left = t->ride[i]; left > 0; left--)
            t->ride[i++] = 1;
    }
    done(p, m->n, false);
}

/* Handle the refusal of the first message. Returns whether to continue now. */
static bool refused(struct udp_port *p, const struct udp_socket *s, const struct message *m,
                    int error, uint64_t now)
{
    struct udp_tx *t = &p->tx;
    if (error == EINTR)
        return true;
    if (error == EAGAIN || error == ENOBUFS || error == ENOMEM) {
        if (++t->refusals > REFUSALS)
            done(p, m->n, true);
        t->retry_at = now + RETRY_NS;
        return false;
    }
    udp_error_drain(p, s);
    if (m->n > 1 &&
        (error == EINVAL || error == EIO || error == EMSGSIZE ||
         error == EOPNOTSUPP)) { /* the first frame alone will show whether the train is at fault */
        t->train_error = error;
        t->ride[m->first] = 1;
        t->ride[m->first + 1] = (uint8_t)(m->n - 1);
    } else if (++t->refusals > ERROR_TRIES)
        done(p, m->n, true);
    return true;
}

/* For one message, sendmsg is a little faster. */
static int send_call(const struct udp_socket *s, struct call *c, unsigned n)
{
    if (n > 1)
        return sendmmsg(s->fd, c->msg, n, MSG_DONTWAIT);
    return sendmsg(s->fd, &c->msg[0].msg_hdr, MSG_DONTWAIT) < 0 ? -1 : 1;
}

void udp_tx_flush(struct udp_port *p, uint64_t now)
{
    struct udp_tx *t = &p->tx;
    struct call c;
    t->retry_at = UINT64_MAX;
    while (t->sent < t->count) {
        const struct udp_socket *s = udp_socket_find(p, &t->out[t->sent].from, false);
        if (!s) { /* the address has just gone */
            done(p, 1, true);
            continue;
        }
        unsigned n = make_call(p, s, &c);
        int rc = send_call(s, &c, n);
        int error = errno;
        for (int i = 0; i < rc; i++)
            sent(p, &c.message[i]);
        if (rc > 0 && rc < (int)n) /* no later call reports the reason for the kernel's stop here */
            udp_error_drain(p, s);
        if (rc <= 0 && !refused(p, s, &c.message[0], error, now))
            break;
    }
}

static uint64_t time_now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* The slots of a burst of single datagrams: what fits into SINGLES_NS, as the last burst shows. */
static void note_speed(struct udp_tx *t, uint64_t ns)
{
    uint64_t fit = SINGLES_NS * (uint64_t)t->count / (ns + 1);
    if (t->count > 0)
        t->burst = fit < 1 ? 1 : fit > SINGLES ? SINGLES : (unsigned)fit;
}

unsigned udp_tx_reserve(struct io_port *io, struct io_slot *slots, unsigned max, uint64_t now)
{
    struct udp_port *p = udp_port_of(io);
    struct udp_tx *t = &p->tx;
    if (t->sent < t->count && now >= t->retry_at)
        udp_tx_flush(p, now);
    unsigned fit = !t->singles ? IO_BURST_MAX : t->burst ? t->burst : SINGLES;
    unsigned room = max > fit ? fit : max;
    t->reserved = p->dev.up && t->sent == t->count ? room : 0;
    p->stats.tx_full += t->reserved < room;
    for (unsigned i = 0; i < t->reserved; i++)
        slots[i] =
            (struct io_slot){.data = t->slots + (size_t)i * UDP_STRIDE, .cap = io->caps.frame_max};
    return t->reserved;
}

void udp_tx_commit(struct io_port *io, const struct io_slot *slots, unsigned n, uint64_t now)
{
    struct udp_port *p = udp_port_of(io);
    struct udp_tx *t = &p->tx;
    t->sent = t->count = 0;
    for (unsigned i = 0; i < n && i < t->reserved; i++) {
        uint8_t *f = t->slots + (size_t)i * UDP_STRIDE;
        uint32_t len = slots[i].len;
        if (len == 0)
            continue;
        if (len > io->caps.frame_max || !udp_frame_parse(f, len, &t->out[t->count])) {
            p->stats.tx_drop++;
            continue;
        }
        t->at[t->count] = f + t->out[t->count].off;
        t->count++;
    }
    t->reserved = 0;
    plan(p);
    uint64_t began = t->singles ? time_now() : 0;
    udp_tx_flush(p, now);
    if (t->singles)
        note_speed(t, time_now() - began);
}
