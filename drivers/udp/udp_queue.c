/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See udp_queue.h.
 */
#include "udp_queue.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "udp_socket.h"
#include "wire.h"

#ifndef SO_ATTACH_REUSEPORT_CBPF
#define SO_ATTACH_REUSEPORT_CBPF 51
#endif

#define QPN_AT       4  /* offset in a BTH, of the reserved octet before it */
#define QPN_PROGRAMS 1  /* bits before those of the worker */
#define QPN_BLOCK    11 /* bits that name a program's block, with the one before them */
#define QPN_OWNED    0x400u
#define LENT         64u /* programs with sockets */

/* The sockets of one address; -1 = taken by its queue, or never made. */
struct spot {
    bool used;
    struct io_addr addr;
    uint32_t scope;
    bool v4;
    uint32_t serial; /* changes when an address goes and comes back */
    int fd[UDP_QUEUES];
    /* programs' sockets in the kernel's order, after those of the queues */
    struct {
        uint32_t block;
        int fd;
    } lent[LENT];
    unsigned nlent;
};

struct udp_queues {
    unsigned n, bits;
    pthread_mutex_t lock; /* guards the members below */
    struct spot spot[UDP_ADDRS];
    uint32_t serial;
    _Atomic uint32_t version; /* version of the whole */
};

/* Choose the program's socket by the number's block, or the queue by the number's bits; 0 for QP1,
 * groups, and programs without a socket. The filter sees the datagram from the BTH on. */
static int steer(const struct udp_queues *q, const struct spot *s, int fd)
{
    const struct sock_filter end[] = {
        BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, QPN_BLOCK - QPN_PROGRAMS - q->bits),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, q->n, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_A, 0),
    };
    struct sock_filter code[3 + 2 * LENT + sizeof(end) / sizeof(end[0])] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, QPN_AT),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, WIRE_QPN_MASK),
        BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 24 - QPN_BLOCK),
    };
    unsigned n = 3;
    for (unsigned i = 0; i < s->nlent; i++) {
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                                 QPN_OWNED | s->lent[i].block, 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, q->n + i);
    }
    memcpy(code + n, end, sizeof(end));
    n += sizeof(end) / sizeof(end[0]);
    const struct sock_fprog program = {(unsigned short)n, code};
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof(program)) < 0
               ? -errno
               : 0;
}

static void spot_close(struct spot *s)
{
    for (unsigned k = 0; k < UDP_QUEUES; k++) {
        if (s->fd[k] >= 0)
            close(s->fd[k]);
        s->fd[k] = -1;
    }
    for (unsigned i = 0; i < s->nlent; i++) {
        udp_socket_mute(s->lent[i].fd);
        close(s->lent[i].fd);
    }
    s->nlent = 0;
    s->used = false;
}

static void changed(struct udp_queues *q)
{
    atomic_fetch_add_explicit(&q->version, 1, memory_order_release);
}

static struct spot *spot_free(struct udp_queues *q)
{
    for (unsigned i = 0; i < UDP_ADDRS; i++) {
        if (!q->spot[i].used)
            return &q->spot[i];
    }
    return NULL;
}

static int split_locked(struct udp_port *p, const struct udp_socket *s)
{
    struct udp_queues *q = p->queues;
    struct spot *spot = spot_free(q);
    const int one = 1;
    int rc = 0;
    if (!spot)
        return -ENOSPC;
    *spot = (struct spot){.addr = s->addr, .scope = s->scope, .v4 = s->v4, .serial = ++q->serial};
    for (unsigned k = 0; k < UDP_QUEUES; k++)
        spot->fd[k] = -1;
    /* Set it only now: otherwise our socket could share the port with another program's. */
    if (setsockopt(s->fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)) < 0)
        rc = -errno;
    for (unsigned k = 1; k < q->n && rc == 0; k++)
        rc = udp_socket_twin(p, s, &spot->fd[k]);
    if (rc == 0 && q->n > 1) /* one socket alone is no group yet */
        rc = steer(q, spot, s->fd);
    if (rc < 0)
        spot_close(spot);
    spot->used = rc == 0;
    return rc;
}

int udp_queue_split(struct udp_port *p, const struct udp_socket *s)
{
    if (!p->queues)
        return 0;
    pthread_mutex_lock(&p->queues->lock);
    int rc = split_locked(p, s);
    pthread_mutex_unlock(&p->queues->lock);
    changed(p->queues);
    return rc;
}

void udp_queue_drop(struct udp_port *p, const struct udp_socket *s)
{
    struct udp_queues *q = p->queues;
    if (!q || p->queue > 0 || s->group)
        return;
    pthread_mutex_lock(&q->lock);
    for (unsigned i = 0; i < UDP_ADDRS; i++) {
        struct spot *spot = &q->spot[i];
        if (spot->used && memcmp(spot->addr.b, s->addr.b, sizeof(s->addr.b)) == 0)
            spot_close(spot);
    }
    pthread_mutex_unlock(&q->lock);
    changed(q);
}

/* ---- the other queues ---- */

static bool is_there(const struct udp_queues *q, const struct udp_socket *s)
{
    for (unsigned i = 0; i < UDP_ADDRS; i++) {
        if (q->spot[i].used && q->spot[i].serial == s->serial)
            return true;
    }
    return false;
}

static bool take(struct udp_port *p, struct spot *spot)
{
    const struct udp_socket s = {.addr = spot->addr,
                                 .scope = spot->scope,
                                 .v4 = spot->v4,
                                 .fd = spot->fd[p->queue],
                                 .serial = spot->serial};
    if (s.fd < 0)
        return true;
    if (udp_socket_adopt(p, &s) < 0)
        return false;
    spot->fd[p->queue] = -1;
    return true;
}

void udp_queue_follow(struct udp_port *p)
{
    struct udp_queues *q = p->queues;
    uint32_t version = atomic_load_explicit(&q->version, memory_order_acquire);
    bool all = true;
    if (version == p->queue_version)
        return;
    pthread_mutex_lock(&q->lock);
    for (unsigned i = 0; i < p->nsock; i++) {
        if (p->sock[i].fd >= 0 && !is_there(q, &p->sock[i]))
            udp_socket_close(p, &p->sock[i]);
    }
    for (unsigned i = 0; i < UDP_ADDRS; i++) {
        if (q->spot[i].used)
            all &= take(p, &q->spot[i]);
    }
    pthread_mutex_unlock(&q->lock);
    if (all) /* otherwise retry with the next call: frames arrive at a socket that no queue reads */
        p->queue_version = version;
}

/* ---- opening ---- */

static int begin(struct udp_port *p, unsigned n)
{
    struct udp_queues *q = calloc(1, sizeof(*q));
    int rc = 0;
    if (!q)
        return -ENOMEM;
    q->n = n;
    while (1u << q->bits < n)
        q->bits++;
    pthread_mutex_init(&q->lock, NULL);
    p->queues = q;
    for (unsigned i = 0; i < p->nsock && rc == 0; i++) {
        if (p->sock[i].fd >= 0 && !p->sock[i].group)
            rc = udp_queue_split(p, &p->sock[i]);
    }
    return rc;
}

int udp_queue_open(struct io_port *io, unsigned k, unsigned n, struct io_port **out)
{
    struct udp_port *first = udp_port_of(io), *p = NULL;
    int rc = n > UDP_QUEUES ? -EINVAL : first->queues ? 0 : begin(first, n);
    if (rc == 0)
        rc = udp_port_again(first, &p);
    if (rc < 0 || !p)
        return rc;
    p->queues = first->queues;
    p->queue = k;
    udp_queue_follow(p);
    *out = &p->io;
    return 0;
}

/* ---- sockets of programs ---- */

static struct spot *spot_at(struct udp_queues *q, unsigned i)
{
    for (unsigned k = 0; k < UDP_ADDRS; k++) {
        if (q->spot[k].used && i-- == 0)
            return &q->spot[k];
    }
    return NULL;
}

/* The kernel moves the last socket of its list to the place of the closed one. */
static void lent_close(struct spot *s, unsigned i)
{
    udp_socket_mute(s->lent[i].fd);
    close(s->lent[i].fd);
    s->lent[i] = s->lent[--s->nlent];
}

static int lend_locked(struct udp_port *p, unsigned block, struct spot *spot, struct io_lent *out)
{
    const struct udp_socket *s = udp_socket_find(p, &spot->addr, false);
    int fd = -1, rc = !s ? -ENOENT : spot->nlent == LENT ? -ENOSPC : udp_socket_twin(p, s, &fd);
    if (rc < 0 || !s)
        return rc;
    spot->lent[spot->nlent].block = block;
    spot->lent[spot->nlent++].fd = fd;
    rc = steer(p->queues, spot, s->fd);
    *out = (struct io_lent){.addr = spot->addr, .iface = p->dev.name, .trains = p->spec.trains};
    out->fd = rc == 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (out->fd >= 0)
        return 0;
    rc = rc < 0 ? rc : -errno;
    lent_close(spot, spot->nlent - 1);
    (void)steer(p->queues, spot, s->fd);
    return rc;
}

int udp_queue_lend(struct io_port *io, unsigned block, unsigned i, struct io_lent *out)
{
    struct udp_port *p = udp_port_of(io);
    int rc = p->queues ? 0 : begin(p, 1);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&p->queues->lock);
    struct spot *spot = spot_at(p->queues, i);
    rc = spot ? lend_locked(p, block, spot, out) : -ENOENT;
    pthread_mutex_unlock(&p->queues->lock);
    return rc;
}

static void unlend_at(struct udp_port *p, struct spot *spot, unsigned block)
{
    const struct udp_socket *s = udp_socket_find(p, &spot->addr, false);
    const unsigned before = spot->nlent;
    for (unsigned i = spot->nlent; i-- > 0;) {
        if (spot->lent[i].block == block)
            lent_close(spot, i);
    }
    if (s && spot->nlent != before)
        (void)steer(p->queues, spot, s->fd);
}

void udp_queue_unlend(struct io_port *io, unsigned block)
{
    struct udp_port *p = udp_port_of(io);
    if (!p->queues)
        return;
    pthread_mutex_lock(&p->queues->lock);
    for (unsigned i = 0; i < UDP_ADDRS; i++) {
        if (p->queues->spot[i].used)
            unlend_at(p, &p->queues->spot[i], block);
    }
    pthread_mutex_unlock(&p->queues->lock);
}

void udp_queue_close(struct udp_port *p)
{
    struct udp_queues *q = p->queues;
    if (!q || p->queue > 0)
        return;
    for (unsigned i = 0; i < UDP_ADDRS; i++) {
        if (q->spot[i].used)
            spot_close(&q->spot[i]);
    }
    free(q);
}
