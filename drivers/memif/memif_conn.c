/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The handshake. A server answers messages; a client sends its list of messages, the next one after
 * each ACK. Every fault ends the connection with a reason; none ends the port.
 */
#include "memif_conn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memif_sock.h"

#define HANDSHAKE_NS UINT64_C(2000000000)
#define BUFFER_DPDK  2048u /* the PMD's default bsize */
#define BUFFER_LEAST 4288u /* a frame of path MTU 4096 with every header */
#define CACHE_LINE   64u
#define HEADERS      54u     /* usual octets before the payload: Ethernet, IPv4, UDP, BTH */
#define MESSAGES_MAX 16u     /* messages in one call; the rest waits for the next one */
#define OUR_NAME     "urnic" /* "urnic/4" of a device of four workers */
#define RINGS_AT     2u      /* the client's messages before those of its rings */

static const char *const reason_names[MEMIF_REASONS] = {
    [MEMIF_OK] = "none",
    [MEMIF_HANGUP] = "peer hung up",
    [MEMIF_GOODBYE] = "peer disconnected",
    [MEMIF_MESSAGE] = "unexpected or malformed message",
    [MEMIF_PEER_VERSION] = "incompatible memif version",
    [MEMIF_PEER_ID] = "interface id not found",
    [MEMIF_PEER_MODE] = "only ethernet mode supported",
    [MEMIF_PEER_SECRET] = "wrong secret",
    [MEMIF_REGION] = "bad region",
    [MEMIF_UNSEALED] = "region is not sealed against shrinking",
    [MEMIF_RING] = "bad ring",
    [MEMIF_TIMEOUT] = "handshake timed out",
    [MEMIF_INDEX] = "ring index out of range",
    [MEMIF_DESC] = "descriptor outside its region",
    [MEMIF_CHAIN] = "endless descriptor chain",
    [MEMIF_SMALL] = "ring too small for one frame: more slots or larger buffers are needed",
    [MEMIF_SYSTEM] = "out of resources",
    [MEMIF_HOLDER] = "a descriptor in which others can live",
};

const char *memif_reason_name(enum memif_reason reason)
{
    return (unsigned)reason < MEMIF_REASONS ? reason_names[reason] : "unknown";
}

static int conn_send(const struct memif_conn *c, enum memif_msg_type type, struct memif_msg *msg,
                     int fd)
{
    msg->type = (uint16_t)type;
    return memif_sock_send(c->sock, msg, fd);
}

/* Our own messages fit in the socket's buffer, so a failure to send means that the peer is gone. */
static enum memif_reason conn_say(const struct memif_conn *c, enum memif_msg_type type,
                                  struct memif_msg *msg, int fd)
{
    return conn_send(c, type, msg, fd) ? MEMIF_HANGUP : MEMIF_OK;
}

/* Write our name, with the number of workers that have a queue of the port. */
static void conn_name(const struct memif_config *cfg, char *name)
{
    if (cfg->workers > 1)
        snprintf(name, MEMIF_NAME_SIZE, "%s/%u", OUR_NAME, cfg->workers);
    else
        snprintf(name, MEMIF_NAME_SIZE, "%s", OUR_NAME);
}

/* The number of a peer's workers, from its name: 1, 2, 4 or 8. */
static unsigned conn_peer_workers(const char *name)
{
    const size_t len = strlen(OUR_NAME);
    unsigned n = 1;
    if (memcmp(name, OUR_NAME "/", len + 1) != 0 || name[len + 2] != '\0')
        return 1;
    while (n <= MEMIF_WORKERS && (char)('0' + n) != name[len + 1])
        n *= 2;
    return n <= MEMIF_WORKERS ? n : 1;
}

static struct memif_queue *conn_queue(struct memif_conn *c, unsigned i, bool rx)
{
    struct memif_pair *pair = i > 0 ? &c->more[i - 1] : NULL;
    if (!pair)
        return rx ? &c->rx : &c->tx;
    return rx ? &pair->rx : &pair->tx;
}

/* The most pairs of rings that this end can have. */
static unsigned conn_pairs_max(const struct memif_conn *c, const struct memif_config *cfg)
{
    return c->more ? cfg->rings : 1;
}

static void queue_init(struct memif_queue *q)
{
    *q = (struct memif_queue){.event = -1};
}

static void queue_place(struct memif_queue *q, struct memif_ring *ring, unsigned log2)
{
    q->ring = ring;
    q->size = (uint16_t)(1u << log2);
    q->mask = (uint16_t)(q->size - 1);
}

/* Set the two ends of a ring for sending (`sender`) or receiving. Client to server, the sender owns
 * head. Server to client, the receiver owns head and starts a whole ring ahead. */
static void queue_start(struct memif_queue *q, bool sender, bool c2s)
{
    bool own_head = sender == c2s;
    q->own = own_head ? &q->ring->head : &q->ring->tail;
    q->peer = own_head ? &q->ring->tail : &q->ring->head;
    q->bias = own_head ? q->size : 0;
    q->cur = q->done = 0;
    q->limit = sender ? q->bias : 0;
    atomic_store_explicit(q->own, 0, memory_order_relaxed);
    if (!sender)
        atomic_store_explicit(&q->ring->flags, MEMIF_RING_MASK_INT, memory_order_relaxed);
}

/* Client: pair `i` in the region, and the buffers of its slots. */
static enum memif_reason client_place(struct memif_conn *c, unsigned i, unsigned log2,
                                      uint32_t buffers)
{
    const size_t ring = memif_ring_octets(log2), slots = (size_t)1 << log2;
    struct memif_queue *tx = conn_queue(c, i, false), *rx = conn_queue(c, i, true);
    uint8_t *at = c->region[0].base + (size_t)2 * i * ring;
    queue_place(tx, (struct memif_ring *)(void *)at, log2);
    queue_place(rx, (struct memif_ring *)(void *)(at + ring), log2);
    tx->ring->cookie = rx->ring->cookie = MEMIF_COOKIE;
    for (unsigned k = 0; k < slots; k++) {
        memif_desc_store(&tx->ring->desc[k], memif_conn_empty(c, buffers, (uint16_t)k));
        memif_desc_store(&rx->ring->desc[k],
                         memif_conn_empty(c, buffers + (uint32_t)(slots * c->buffer), (uint16_t)k));
    }
    tx->event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    rx->event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return tx->event < 0 || rx->event < 0 ? MEMIF_SYSTEM : MEMIF_OK;
}

/* The offset of the buffers, after the rings of all pairs. Payloads begin at a cache line, because
 * copies and CRCs of them work on whole lines. */
static uint64_t client_buffers(unsigned pairs, unsigned log2)
{
    return (((uint64_t)2 * pairs * memif_ring_octets(log2) + 4095) & ~(uint64_t)4095) + CACHE_LINE -
           HEADERS;
}

/* Client: the region with all rings and all buffers. */
static enum memif_reason client_make(struct memif_conn *c, const struct memif_config *cfg,
                                     unsigned log2, bool dpdk)
{
    uint32_t octets = cfg->frame_max > BUFFER_LEAST ? cfg->frame_max : BUFFER_LEAST;
    uint32_t lines = (octets + CACHE_LINE - 1) / CACHE_LINE;
    c->buffer = cfg->buffer ? cfg->buffer : dpdk ? BUFFER_DPDK : lines * CACHE_LINE;
    uint64_t each = 2 * (uint64_t)c->buffer, size;
    while ((size = client_buffers(c->pairs, log2) + (c->pairs * each << log2)) > MEMIF_REGION_MAX)
        log2--;
    if ((uint64_t)c->buffer << log2 < cfg->frame_max)
        return MEMIF_SMALL;
    c->buffers_c2s = (uint32_t)client_buffers(c->pairs, log2);
    c->buffers_s2c = c->buffers_c2s + (c->buffer << log2);
    if (memif_region_create(&c->region[0], size))
        return MEMIF_SYSTEM;
    c->regions = 1;
    enum memif_reason reason = MEMIF_OK;
    for (unsigned i = 0; i < c->pairs && reason == MEMIF_OK; i++)
        reason = client_place(c, i, log2, c->buffers_c2s + (uint32_t)(i * each << log2));
    return reason;
}

/* The client's ring number `n`: in each pair its sending ring comes first. */
static enum memif_reason client_say_ring(struct memif_conn *c, unsigned n)
{
    const struct memif_queue *q = conn_queue(c, n / 2, n % 2);
    struct memif_msg msg = {0};
    msg.add_ring.flags = n % 2 ? 0 : MEMIF_ADD_RING_C2S;
    msg.add_ring.index = (uint16_t)(n / 2);
    msg.add_ring.offset = (uint32_t)((uint8_t *)q->ring - c->region[0].base);
    msg.add_ring.log2_size = (uint8_t)__builtin_ctz(q->size);
    return conn_say(c, MEMIF_MSG_ADD_RING, &msg, q->event);
}

/* Client: send message number c->step. */
static enum memif_reason client_next(struct memif_conn *c, const struct memif_config *cfg)
{
    struct memif_msg msg = {0};
    const unsigned step = c->step++;
    if (step == 0) {
        msg.init.version = MEMIF_VERSION;
        msg.init.id = cfg->id;
        msg.init.mode = MEMIF_MODE_ETHERNET;
        memcpy(msg.init.secret, cfg->secret, MEMIF_SECRET_MAX);
        conn_name(cfg, msg.init.name);
        return conn_say(c, MEMIF_MSG_INIT, &msg, -1);
    }
    if (step == 1) {
        msg.add_region.size = c->region[0].size;
        return conn_say(c, MEMIF_MSG_ADD_REGION, &msg, c->region[0].fd);
    }
    if (step < RINGS_AT + 2 * c->pairs)
        return client_say_ring(c, step - RINGS_AT);
    if (step > RINGS_AT + 2 * c->pairs)
        return MEMIF_MESSAGE; /* unexpected ACK */
    snprintf(msg.connect.name, sizeof(msg.connect.name), "urnic/%u", cfg->id);
    return conn_say(c, MEMIF_MSG_CONNECT, &msg, -1);
}

/* The number of pairs that both ends can use: with urnic as the peer one between each two workers,
 * else one for each of our workers. */
static void client_choose_pairs(struct memif_conn *c, const struct memif_config *cfg,
                                const struct memif_hello *hello)
{
    unsigned max = conn_pairs_max(c, cfg);
    unsigned last =
        hello->c2s_ring_max < hello->s2c_ring_max ? hello->c2s_ring_max : hello->s2c_ring_max;
    max = last < max ? last + 1 : max;
    c->peer_workers = c->more ? conn_peer_workers(hello->name) : 1;
    c->pairs = cfg->workers * c->peer_workers;
    if (c->pairs > max) {
        c->peer_workers = 1;
        c->pairs = cfg->workers < max ? cfg->workers : max;
    }
}

static enum memif_reason client_hello(struct memif_conn *c, const struct memif_config *cfg,
                                      const struct memif_hello *hello)
{
    unsigned log2 = cfg->log2_ring < hello->log2_ring_max ? cfg->log2_ring : hello->log2_ring_max;
    if (hello->version_min > MEMIF_VERSION || hello->version_max < MEMIF_VERSION)
        return MEMIF_PEER_VERSION;
    if (log2 < 1)
        return MEMIF_RING;
    client_choose_pairs(c, cfg, hello);
    enum memif_reason reason = client_make(c, cfg, log2, !memcmp(hello->name, "DPDK", 4));
    if (reason)
        return reason;
    c->state = MEMIF_SETUP;
    return client_next(c, cfg);
}

/* The server has connected. Only now may we use the indices: DPDK zeroes them at CONNECT. */
static enum memif_reason client_connected(struct memif_conn *c)
{
    for (unsigned i = 0; i < c->pairs; i++) {
        struct memif_queue *rx = conn_queue(c, i, true);
        queue_start(conn_queue(c, i, false), true, true);
        queue_start(rx, false, false);
        atomic_store_explicit(rx->own, rx->size, memory_order_release);
    }
    /* From now on only the mapping is needed; the peer has its own descriptor. */
    close(c->region[0].fd);
    c->region[0].fd = -1;
    c->state = MEMIF_UP;
    return MEMIF_OK;
}

static enum memif_reason client_message(struct memif_conn *c, const struct memif_config *cfg,
                                        const struct memif_msg *msg)
{
    if (msg->type == MEMIF_MSG_HELLO && c->state == MEMIF_HELLO)
        return client_hello(c, cfg, &msg->hello);
    if (msg->type == MEMIF_MSG_ACK && c->state == MEMIF_SETUP)
        return client_next(c, cfg);
    if (msg->type == MEMIF_MSG_CONNECTED && c->state == MEMIF_SETUP &&
        c->step == RINGS_AT + 2 * c->pairs + 1)
        return client_connected(c);
    return MEMIF_MESSAGE;
}

static enum memif_reason server_init(struct memif_conn *c, const struct memif_config *cfg,
                                     const struct memif_init *init)
{
    if (init->version != MEMIF_VERSION)
        return MEMIF_PEER_VERSION;
    if (init->id != cfg->id)
        return MEMIF_PEER_ID;
    if (init->mode != MEMIF_MODE_ETHERNET)
        return MEMIF_PEER_MODE;
    if (cfg->secret[0] && strncmp(cfg->secret, init->secret, MEMIF_SECRET_MAX) != 0)
        return MEMIF_PEER_SECRET;
    c->peer_workers = c->more ? conn_peer_workers(init->name) : 1;
    c->state = MEMIF_SETUP;
    return MEMIF_OK;
}

static enum memif_reason server_add_region(struct memif_conn *c, const struct memif_config *cfg,
                                           const struct memif_add_region *add, int fd)
{
    if (fd < 0 || add->index != c->regions || c->regions >= MEMIF_REGIONS_MAX)
        return MEMIF_REGION;
    enum memif_reason reason = memif_region_map(&c->region[c->regions], fd, add->size, cfg->trust);
    if (reason == MEMIF_OK)
        c->regions++;
    return reason;
}

/* A peer could pass any file, and a write to it could block: take eventfds only. */
static bool is_eventfd(int fd)
{
    char link[32], target[32] = "";
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    return readlink(link, target, sizeof(target) - 1) > 0 &&
           strcmp(target, "anon_inode:[eventfd]") == 0;
}

static enum memif_reason server_add_ring(struct memif_conn *c, const struct memif_config *cfg,
                                         const struct memif_add_ring *add, int *fd)
{
    if (add->index >= conn_pairs_max(c, cfg))
        return MEMIF_RING;
    struct memif_queue *q = conn_queue(c, add->index, add->flags & MEMIF_ADD_RING_C2S);
    if (q->ring || add->region >= c->regions || add->log2_size < 1 ||
        add->log2_size > MEMIF_LOG2_MAX || add->offset % MEMIF_DESC_ALIGN != 0 ||
        add->private_header != 0)
        return MEMIF_RING;
    uint8_t *at = memif_region_at(&c->region[add->region], add->offset,
                                  (uint32_t)memif_ring_octets(add->log2_size));
    if (!at)
        return MEMIF_RING;
    queue_place(q, (struct memif_ring *)(void *)at, add->log2_size);
    if (*fd >= 0 && is_eventfd(*fd)) {
        q->event = *fd;
        *fd = -1;
    }
    return MEMIF_OK;
}

static bool server_pair_good(struct memif_conn *c, unsigned i)
{
    const struct memif_queue *rx = conn_queue(c, i, true), *tx = conn_queue(c, i, false);
    return rx->ring && tx->ring && rx->ring != tx->ring && rx->ring->cookie == MEMIF_COOKIE &&
           tx->ring->cookie == MEMIF_COOKIE;
}

/* Pairs have the numbers from 0 on, and no ring is without its other direction. */
static bool server_count_pairs(struct memif_conn *c, const struct memif_config *cfg)
{
    const unsigned max = conn_pairs_max(c, cfg);
    c->pairs = 0;
    while (c->pairs < max && server_pair_good(c, c->pairs))
        c->pairs++;
    for (unsigned i = c->pairs; i < max; i++) {
        if (conn_queue(c, i, true)->ring || conn_queue(c, i, false)->ring)
            return false;
    }
    if (c->pairs != cfg->workers * c->peer_workers)
        c->peer_workers = 1;
    return c->pairs > 0;
}

static enum memif_reason server_connect(struct memif_conn *c, const struct memif_config *cfg)
{
    struct memif_msg msg = {0};
    if (!server_count_pairs(c, cfg))
        return MEMIF_RING;
    for (unsigned i = 0; i < c->pairs; i++) {
        queue_start(conn_queue(c, i, true), false, true);
        queue_start(conn_queue(c, i, false), true, false);
    }
    snprintf(msg.connect.name, sizeof(msg.connect.name), "urnic/%u", cfg->id);
    c->state = MEMIF_UP;
    return conn_say(c, MEMIF_MSG_CONNECTED, &msg, -1);
}

static enum memif_reason server_message(struct memif_conn *c, const struct memif_config *cfg,
                                        const struct memif_msg *msg, int *fd)
{
    enum memif_reason reason = MEMIF_MESSAGE;
    struct memif_msg ack = {0};
    if (msg->type == MEMIF_MSG_INIT && c->state == MEMIF_HELLO)
        reason = server_init(c, cfg, &msg->init);
    else if (c->state == MEMIF_SETUP && msg->type == MEMIF_MSG_ADD_REGION)
        reason = server_add_region(c, cfg, &msg->add_region, *fd);
    else if (c->state == MEMIF_SETUP && msg->type == MEMIF_MSG_ADD_RING)
        reason = server_add_ring(c, cfg, &msg->add_ring, fd);
    else if (c->state == MEMIF_SETUP && msg->type == MEMIF_MSG_CONNECT)
        return server_connect(c, cfg);
    return reason == MEMIF_OK ? conn_say(c, MEMIF_MSG_ACK, &ack, -1) : reason;
}

/* Copy the printable characters of the peer's text, which needn't end in NUL, for logs. */
static void take_text(char *to, size_t size, const char *from, size_t len)
{
    size_t n = 0;
    for (; n < len && n < size - 1 && from[n]; n++)
        to[n] = (char)(from[n] >= ' ' && from[n] <= '~' ? from[n] : '?');
    to[n] = '\0';
}

/* One message. Returns the reason to end the connection, or MEMIF_OK. */
static enum memif_reason conn_message(struct memif_conn *c, const struct memif_config *cfg,
                                      const struct memif_msg *msg, int *fd)
{
    if (msg->type == MEMIF_MSG_DISCONNECT) {
        take_text(c->text, sizeof(c->text), msg->disconnect.text, sizeof(msg->disconnect.text));
        return MEMIF_GOODBYE;
    }
    if (c->state == MEMIF_UP)
        return MEMIF_MESSAGE;
    return cfg->server ? server_message(c, cfg, msg, fd) : client_message(c, cfg, msg);
}

void memif_conn_init(struct memif_conn *c)
{
    memset(c, 0, sizeof(*c));
    c->sock = -1;
    for (unsigned i = 0; i < MEMIF_REGIONS_MAX; i++)
        c->region[i].fd = -1;
    queue_init(&c->rx);
    queue_init(&c->tx);
    c->pairs = c->peer_workers = 1;
}

static void conn_more(struct memif_conn *c)
{
    c->more = malloc((MEMIF_PAIRS - 1) * sizeof(*c->more));
    for (unsigned i = 0; c->more && i < MEMIF_PAIRS - 1; i++) {
        queue_init(&c->more[i].rx);
        queue_init(&c->more[i].tx);
    }
}

void memif_conn_start(struct memif_conn *c, const struct memif_config *cfg, int sock, uint64_t now)
{
    struct memif_msg msg = {0};
    struct stat st;
    memif_conn_init(c);
    c->sock = sock;
    if (fstat(sock, &st) == 0) {
        c->sock_dev = st.st_dev;
        c->sock_ino = st.st_ino;
    }
    c->state = MEMIF_HELLO;
    c->deadline = now + HANDSHAKE_NS;
    if (cfg->workers > 1)
        conn_more(c); /* without memory for more there is one pair */
    if (!cfg->server)
        return;
    conn_name(cfg, msg.hello.name);
    msg.hello.version_min = msg.hello.version_max = MEMIF_VERSION;
    msg.hello.region_max = MEMIF_REGIONS_MAX - 1;
    msg.hello.c2s_ring_max = msg.hello.s2c_ring_max = (uint16_t)(conn_pairs_max(c, cfg) - 1);
    msg.hello.log2_ring_max = MEMIF_LOG2_MAX;
    if (conn_send(c, MEMIF_MSG_HELLO, &msg, -1))
        memif_conn_end(c, MEMIF_HANGUP);
}

bool memif_conn_service(struct memif_conn *c, const struct memif_config *cfg, uint64_t now)
{
    enum memif_state before = c->state;
    enum memif_reason reason = MEMIF_OK;
    if (before == MEMIF_IDLE || before == MEMIF_DEAD)
        return false;
    for (unsigned i = 0; i < MESSAGES_MAX && !reason; i++) {
        struct memif_msg msg;
        int fd;
        int error = memif_sock_recv(c->sock, &msg, &fd);
        if (error == -EAGAIN)
            break;
        if (error)
            reason = error == -EBADMSG ? MEMIF_MESSAGE
                     : error == -EPERM ? MEMIF_HOLDER
                                       : MEMIF_HANGUP;
        else
            reason = conn_message(c, cfg, &msg, &fd);
        if (c->more && !error)
            c->deadline = now + HANDSHAKE_NS; /* many messages, but a bounded number */
        if (fd >= 0 && !reason && memif_sock_holds(fd))
            reason = MEMIF_HOLDER;
        if (fd >= 0)
            memif_sock_drop(c->sock, fd);
    }
    if (!reason && c->state != MEMIF_UP && now > c->deadline)
        reason = MEMIF_TIMEOUT;
    if (reason)
        memif_conn_end(c, reason);
    return c->state != before;
}

/* Forget the descriptors if the program has closed them: their numbers may be other files' now. */
static void conn_check(struct memif_conn *c)
{
    struct stat st;
    if (c->sock < 0 ||
        (fstat(c->sock, &st) == 0 && st.st_dev == c->sock_dev && st.st_ino == c->sock_ino))
        return;
    c->sock = -1;
    for (unsigned i = 0; i < MEMIF_REGIONS_MAX; i++)
        c->region[i].fd = -1;
    for (unsigned i = 0; i < (c->more ? MEMIF_PAIRS : 1); i++)
        conn_queue(c, i, true)->event = conn_queue(c, i, false)->event = -1;
}

void memif_conn_end(struct memif_conn *c, enum memif_reason reason)
{
    struct memif_msg msg = {0};
    if (c->state == MEMIF_IDLE || c->state == MEMIF_DEAD)
        return;
    conn_check(c);
    if (c->sock >= 0 && reason != MEMIF_HANGUP && reason != MEMIF_GOODBYE) {
        msg.disconnect.code = reason;
        snprintf(msg.disconnect.text, sizeof(msg.disconnect.text), "%s",
                 reason == MEMIF_OK ? "closed" : memif_reason_name(reason));
        (void)conn_send(c, MEMIF_MSG_DISCONNECT, &msg, -1);
    }
    if (c->sock >= 0)
        memif_sock_hang_up(c->sock);
    c->sock = -1;
    c->reason = reason;
    c->state = MEMIF_DEAD;
}

static void queue_free(struct memif_queue *q)
{
    if (q->event >= 0)
        close(q->event);
}

void memif_conn_free(struct memif_conn *c)
{
    if (c->state == MEMIF_IDLE)
        return;
    memif_conn_end(c, MEMIF_OK);
    for (unsigned i = 0; i < MEMIF_REGIONS_MAX; i++)
        memif_region_free(&c->region[i]);
    for (unsigned i = 0; i < (c->more ? MEMIF_PAIRS : 1); i++) {
        queue_free(conn_queue(c, i, true));
        queue_free(conn_queue(c, i, false));
    }
    free(c->more);
    memif_conn_init(c);
}

/* The same ring, in the other mapping of its region. */
static void strand_queue(const struct memif_conn *c, struct memif_queue *from,
                         const struct memif_conn *to, struct memif_queue *q)
{
    *q = *from;
    from->event = -1;
    for (unsigned r = 0; r < c->regions; r++) {
        const uint8_t *base = c->region[r].base, *ring = (const uint8_t *)from->ring;
        if (ring < base || ring >= base + c->region[r].size)
            continue;
        q->ring = (struct memif_ring *)(void *)(to->region[r].base + (ring - base));
    }
    const bool own_head = from->own == &from->ring->head;
    q->own = own_head ? &q->ring->head : &q->ring->tail;
    q->peer = own_head ? &q->ring->tail : &q->ring->head;
}

int memif_conn_strand(struct memif_conn *c, unsigned i, struct memif_conn *out)
{
    memif_conn_init(out);
    out->state = MEMIF_UP;
    for (out->regions = 0; out->regions < c->regions; out->regions++) {
        if (memif_region_again(&c->region[out->regions], &out->region[out->regions])) {
            memif_conn_free(out);
            return -ENOMEM;
        }
    }
    out->buffer = c->buffer;
    strand_queue(c, conn_queue(c, i, true), out, &out->rx);
    strand_queue(c, conn_queue(c, i, false), out, &out->tx);
    out->buffers_c2s = c->buffers_c2s + i * 2 * (uint32_t)out->tx.size * c->buffer;
    out->buffers_s2c = out->buffers_c2s + (uint32_t)out->tx.size * c->buffer;
    return 0;
}
