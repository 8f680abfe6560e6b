/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A memif port from open to close: its specification, its peers coming and going, its counters.
 *
 * The data path makes only two system calls: the kick and, when it is armed and finds no frame, a
 * look at rx_fd. It leaves faults of the peer in `fault`, and memif_port_control acts on them.
 */
#include "memif_port.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "foreign.h"
#include "io_arg.h"
#include "memif_sock.h"
#include "memif_worker.h"

#define FRAME_DEFAULT 4288u
#define FRAME_MIN     64u
#define BUFFER_MIN    64u
#define BUFFER_MAX    65536u
#define LOG2_DEFAULT  8u /* 1 MiB of full frames: a larger ring evicts payload from the caches */
#define CACHE_LINE    64u
#define PEERS_MAX     4u /* peers handled in one call of service */
#define MEET_PAUSE_NS 100000000ull

void memif_port_fault(struct memif_port *p, enum memif_reason reason)
{
    if (!p->up)
        return;
    p->up = false;
    p->fault = reason;
    p->link.up = false;
    p->link.changes++;
}

uint8_t *memif_port_side(struct memif_port *p, uint8_t **pool, unsigned i)
{
    if (!*pool)
        *pool = aligned_alloc(CACHE_LINE, (size_t)IO_BURST_MAX * p->side_stride);
    return *pool ? *pool + (size_t)i * p->side_stride : NULL;
}

void memif_port_watch(const struct memif_port *p, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    if (fd >= 0)
        (void)epoll_ctl(p->epoll, EPOLL_CTL_ADD, fd, &event);
}

void memif_port_unwatch(const struct memif_port *p, int fd)
{
    if (fd >= 0)
        (void)epoll_ctl(p->epoll, EPOLL_CTL_DEL, fd, NULL);
}

static void port_up(struct memif_port *p)
{
    p->link.up = true;
    p->link.why = NULL;
    p->link.changes++;
    p->counters.connects++;
    if (p->worker)
        return; /* strands carry the frames */
    memif_port_watch(p, p->conn.rx.event);
    p->lent_head = p->lent_tail = 0;
    p->fault = MEMIF_OK;
    p->up = true;
    if (p->armed)
        memif_rx_arm(&p->io, true);
}

/* A server that is not urnic has refused a ring, because it has fewer queues. The next attempt asks
 * for as many as it has accepted. After a successful connection the number starts anew. */
static void port_learn_rings(struct memif_port *p, bool was_up)
{
    const struct memif_conn *c = &p->conn;
    unsigned taken = c->step > 3 ? (c->step - 3) / 2 : 0; /* after INIT and ADD_REGION */
    if (was_up)
        p->cfg.rings = p->rings;
    else if (!p->cfg.server && c->reason == MEMIF_GOODBYE && c->pairs > 1 && c->step > 2)
        p->cfg.rings = taken < 1 ? 1 : taken < c->pairs ? taken : c->pairs - 1;
}

/* Clean up after the end of a connection. */
static void port_down(struct memif_port *p)
{
    struct memif_conn *c = &p->conn;
    p->counters.reason[c->reason]++;
    if (c->text[0])
        memcpy(p->counters.text, c->text, sizeof(p->counters.text));
    memif_port_unwatch(p, c->rx.event);
    port_learn_rings(p, p->link.up);
    if (p->worker && p->link.up) {
        memif_worker_down(p);
        p->link.up = false;
        p->link.changes++;
    }
    if (p->up) {
        memif_rx_abandon(p);
        memif_port_fault(p, c->reason);
    }
    p->link.why =
        c->reason == MEMIF_GOODBYE && c->text[0] ? p->counters.text : memif_reason_name(c->reason);
}

static void port_refuse(struct memif_port *p, int sock, const char *why)
{
    struct memif_msg msg = {.type = MEMIF_MSG_DISCONNECT};
    snprintf(msg.disconnect.text, sizeof(msg.disconnect.text), "%s", why);
    (void)memif_sock_send(sock, &msg, -1);
    memif_sock_hang_up(sock);
    p->counters.refused++;
}

/* Refuse a second peer: the only link is taken. */
static void port_refuse_second(struct memif_port *p)
{
    int sock = memif_sock_accept(p->listener);
    if (sock >= 0)
        port_refuse(p, sock, "already connected");
}

/* Start a connection with the next peer, if there is one. */
static bool port_meet(struct memif_port *p, uint64_t now)
{
    if (now < p->meet_from)
        return false;
    int sock = p->cfg.server ? memif_sock_accept(p->listener) : memif_sock_connect(p->cfg.path);

    if (sock < 0)
        return false;
    if (foreign_waiting(foreign_user(sock)) >= FOREIGN_WAITING) {
        port_refuse(p, sock, "descriptors that you have passed before can't be closed");
        return false;
    }
    memif_conn_start(&p->conn, &p->cfg, sock, now);
    if (p->conn.state == MEMIF_DEAD)
        port_down(p);
    else
        memif_port_watch(p, sock);
    return true;
}

void memif_port_control(struct memif_port *p, uint64_t now)
{
    struct memif_conn *c = &p->conn;
    enum memif_reason fault = p->worker ? memif_worker_fault(p) : p->fault;
    if (fault && c->state == MEMIF_UP) {
        memif_conn_end(c, fault);
        port_down(p);
    }
    /* After a peer has gone, the next one may already be waiting. */
    for (unsigned i = 0; i < PEERS_MAX; i++) {
        if (memif_conn_service(c, &p->cfg, now)) {
            if (c->state == MEMIF_UP && p->worker && memif_worker_up(p))
                memif_conn_end(c, MEMIF_SYSTEM);
            if (c->state == MEMIF_UP)
                port_up(p);
            else if (c->state == MEMIF_DEAD) {
                if (!p->link.up && !p->cfg.server)
                    p->meet_from = now + MEET_PAUSE_NS; /* an early retry would be refused again */
                port_down(p);
            }
        }
        if (c->state == MEMIF_DEAD && memif_grave_dig(p))
            memif_conn_free(c);
        if (c->state == MEMIF_UP && p->cfg.server)
            port_refuse_second(p);
        if (c->state != MEMIF_IDLE || !port_meet(p, now))
            return;
    }
}

static void port_service(struct io_port *io, uint64_t now)
{
    memif_port_control((struct memif_port *)io, now);
}

static void port_link(struct io_port *io, struct io_link *out)
{
    *out = ((struct memif_port *)io)->link;
}

static void port_stats(struct io_port *io, struct io_stats *out)
{
    *out = ((struct memif_port *)io)->stats;
}

void memif_port_counters(struct io_port *io, struct memif_counters *out)
{
    *out = ((struct memif_port *)io)->counters;
}

void memif_port_close(struct memif_port *p)
{
    if (p->worker)
        memif_worker_close(p);
    memif_conn_free(&p->conn);
    memif_grave_free_all(p);
    memif_kick_close(&p->kick);
    if (p->listener >= 0) {
        close(p->listener);
        if (p->cfg.path[0] != '@')
            unlink(p->cfg.path);
    }
    if (p->epoll >= 0)
        close(p->epoll);
    free(p->rx_side);
    free(p->tx_side);
    free(p->lent);
    free(p);
}

/* A number that stands for something else by now is left open. */
static void close_copy(int fd)
{
    int type = 0, domain = 0;
    socklen_t len = sizeof(int);
    if (fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 &&
        getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && type == SOCK_SEQPACKET &&
        domain == AF_UNIX)
        close(fd);
}

void memif_port_forked(const struct io_port *io)
{
    const struct memif_port *p = (const struct memif_port *)io;
    close_copy(p->listener);
    close_copy(p->conn.sock);
}

static void port_close(struct io_port *io)
{
    memif_port_close((struct memif_port *)io);
}

static const struct io_ops memif_ops = {
    .name = "memif",
    .rx_arm = memif_rx_arm,
    .rx_peek = memif_rx_peek,
    .rx_release = memif_rx_release,
    .tx_reserve = memif_tx_reserve,
    .tx_commit = memif_tx_commit,
    .service = port_service,
    .queue = memif_worker_queue,
    .link = port_link,
    .stats = port_stats,
    .close = port_close,
};

/* The buffer for the explanation of an error. */
struct complaint {
    char *text;
    size_t size;
};

/* The value of a key in [min, max], or `otherwise` when the key is absent. */
static int arg_number(const char *args, const char *key, int (*read)(const char *, uint64_t *),
                      uint64_t min, uint64_t max, uint64_t otherwise, uint64_t *out,
                      struct complaint err)
{
    char val[32] = "";
    int found = io_arg(args, key, val, sizeof(val));
    *out = otherwise;
    if (found == 0 || (found == 1 && !read(val, out) && *out >= min && *out <= max))
        return 0;
    return io_fail(err.text, err.size, -EINVAL, "memif: %s=%s: give a number from %llu to %llu",
                   key, val, (unsigned long long)min, (unsigned long long)max);
}

static int parse_role(const char *args, bool *server, struct complaint err)
{
    char role[16] = "";
    if (io_arg(args, "role", role, sizeof(role)) == 1) {
        *server = !strcmp(role, "server") || !strcmp(role, "master");
        if (*server || !strcmp(role, "client") || !strcmp(role, "slave"))
            return 0;
    }
    return io_fail(err.text, err.size, -EINVAL, "memif: role=%s: use role=server or role=client",
                   role);
}

/* Check that every item after the path is KEY=VALUE with a known key. */
static int check_keys(const char *args, struct complaint err)
{
    static const char *const keys[] = {"role",   "id",     "rings", "log2_ring_size",
                                       "buffer", "secret", "trust", NULL};
    char bad[32];
    if (io_arg_unknown(args, keys, bad, sizeof(bad)))
        return io_fail(err.text, err.size, -EINVAL,
                       "memif: %s=: use each of role, id, rings, log2_ring_size, buffer, secret "
                       "and trust at most once",
                       bad);
    while (*args) {
        size_t len = strcspn(args, ",");
        if (!memchr(args, '=', len))
            return io_fail(err.text, err.size, -EINVAL, "memif: %.*s: want KEY=VALUE", (int)len,
                           args);
        args += len + (args[len] == ',');
    }
    return 0;
}

static int parse(const char *args, struct memif_config *cfg, struct complaint err)
{
    uint64_t id, rings, log2, buffer, trust;
    size_t len = strcspn(args, ",");
    if (len == 0 || len >= sizeof(cfg->path))
        return io_fail(err.text, err.size, -EINVAL,
                       "memif: the socket's path must have 1 to %zu characters",
                       sizeof(cfg->path) - 1);
    memcpy(cfg->path, args, len);
    args += len + (args[len] == ',');
    if (check_keys(args, err) || parse_role(args, &cfg->server, err) ||
        arg_number(args, "id", io_parse_u64, 0, UINT32_MAX, 0, &id, err) ||
        arg_number(args, "rings", io_parse_u64, 1, MEMIF_PAIRS, MEMIF_PAIRS, &rings, err) ||
        arg_number(args, "log2_ring_size", io_parse_u64, 1, MEMIF_LOG2_MAX, LOG2_DEFAULT, &log2,
                   err) ||
        arg_number(args, "buffer", io_parse_size, BUFFER_MIN, BUFFER_MAX, 0, &buffer, err) ||
        arg_number(args, "trust", io_parse_u64, 0, 1, 0, &trust, err))
        return -EINVAL;
    if (io_arg(args, "secret", cfg->secret, sizeof(cfg->secret)) < 0)
        return io_fail(err.text, err.size, -EINVAL, "memif: secret= has more than %u octets",
                       MEMIF_SECRET_MAX);
    cfg->id = (uint32_t)id;
    cfg->workers = 1;
    cfg->rings = (unsigned)rings;
    cfg->log2_ring = (unsigned)log2;
    cfg->buffer = (uint32_t)((buffer + CACHE_LINE - 1) & ~(uint64_t)(CACHE_LINE - 1));
    cfg->trust = trust;
    if (cfg->buffer && ((uint64_t)cfg->buffer << log2) < cfg->frame_max)
        return io_fail(err.text, err.size, -EINVAL,
                       "memif: buffer=%u: a whole ring can't hold one frame of %u octets",
                       cfg->buffer, cfg->frame_max);
    return 0;
}

static uint32_t wanted_frame(const struct io_open_params *params)
{
    uint32_t want = params && params->frame_max ? params->frame_max : FRAME_DEFAULT;
    return want < FRAME_MIN ? FRAME_MIN : want > IO_FRAME_MAX ? IO_FRAME_MAX : want;
}

static int port_prepare(struct memif_port *p)
{
    p->lent = calloc((size_t)1 << MEMIF_LOG2_MAX, sizeof(*p->lent));
    if (!p->lent)
        return -ENOMEM;
    p->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (p->epoll < 0)
        return -errno;
    if (p->cfg.server) {
        p->listener = memif_sock_listen(p->cfg.path);
        if (p->listener < 0)
            return p->listener;
        memif_port_watch(p, p->listener);
    }
    return 0;
}

int io_memif_check(const char *args, char *err, size_t err_size)
{
    struct memif_config cfg = {.frame_max = FRAME_MIN};
    return parse(args, &cfg, (struct complaint){.text = err, .size = err_size});
}

/* The advice for a socket that can't be listened on. */
static const char *listen_cure(int error)
{
    switch (error) {
    case -ENOENT:
        return ": make its folder first";
    case -EACCES:
    case -EPERM:
        return ": choose a folder that you may write to";
    case -EADDRINUSE:
        return ": another program is the server there; choose another path, or role=client";
    default:
        return "";
    }
}

int io_memif_open(const char *args, const struct io_open_params *params, struct io_port **out,
                  char *err, size_t err_size)
{
    struct complaint to = {.text = err, .size = err_size};
    struct memif_port *p = calloc(1, sizeof(*p));
    if (!p)
        return io_fail(err, err_size, -ENOMEM, "memif: no memory for a port");
    p->listener = p->epoll = -1;
    p->kick = MEMIF_KICK_INIT;
    p->cfg.frame_max = wanted_frame(params);
    p->side_stride = (p->cfg.frame_max + CACHE_LINE - 1) & ~(CACHE_LINE - 1);
    memif_conn_init(&p->conn);
    int error = parse(args, &p->cfg, to);
    if (!error) {
        error = port_prepare(p);
        if (error)
            io_fail(err, err_size, error, "memif: %s: %s%s", p->cfg.path, strerror(-error),
                    listen_cure(error));
    }
    if (error) {
        port_close(&p->io);
        return error;
    }
    p->rings = p->cfg.rings;
    p->io.ops = &memif_ops;
    p->io.caps = (struct io_caps){.frame_max = p->cfg.frame_max, .rx_fd = p->epoll};
    if (params)
        memcpy(p->io.caps.mac, params->mac, sizeof(p->io.caps.mac));
    *out = &p->io;
    return 0;
}
