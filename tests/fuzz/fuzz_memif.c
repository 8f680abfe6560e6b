/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A memif server port and a client with arbitrary messages and memory. The port stays within its
 * memory and never lends or reserves more than it may. Its counters are right, and it works again
 * with the next peer.
 *
 * Input: a script of steps. The first octet of a step chooses its kind (low half) and has a number
 * for it (high half); the octets that this kind needs follow. If the length of the input is odd,
 * the port has two workers and the client two pairs of rings, both at the same place in its memory.
 */
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "fuzz_memif.h"

#define RINGS  1024u
#define REGION (2 * RINGS + 2 * SLOTS * BUFFER)

struct client {
    char path[64];
    struct peer peer;
    int region, event;
    uint8_t *base;
};

static void layout(struct client *c)
{
    memset(c->base, 0, REGION);
    for (unsigned r = 0; r < 2; r++) {
        c->peer.ring[r] = (struct memif_ring *)(void *)(c->base + r * RINGS);
        c->peer.ring[r]->cookie = MEMIF_COOKIE;
        for (uint32_t i = 0; i < SLOTS; i++)
            c->peer.ring[r]->desc[i] = (struct memif_desc){
                .length = BUFFER, .offset = 2 * RINGS + (r * SLOTS + i) * BUFFER};
    }
}

static void say(struct client *c, struct io_port *io, enum memif_msg_type type,
                struct memif_msg msg, int fd)
{
    struct memif_msg answer;
    int got;
    msg.type = (uint16_t)type;
    if (c->peer.sock < 0 || memif_sock_send(c->peer.sock, &msg, fd))
        return;
    io->ops->service(io, 0);
    while (memif_sock_recv(c->peer.sock, &answer, &got) == 0)
        if (got >= 0)
            close(got);
}

static void hang_up(struct client *c)
{
    if (c->peer.sock >= 0)
        close(c->peer.sock);
    c->peer.sock = -1;
}

static void come(struct client *c, struct io_port *io)
{
    hang_up(c);
    io->ops->service(io, 0);
    c->peer.sock = memif_sock_connect(c->path);
    io->ops->service(io, 0);
}

/* The whole handshake as it should be. */
static void connect_well(struct client *c, struct io_port *io, unsigned pairs)
{
    struct memif_msg msg = {0};
    come(c, io);
    layout(c);
    msg.init.version = MEMIF_VERSION;
    say(c, io, MEMIF_MSG_INIT, msg, -1);
    memset(&msg, 0, sizeof(msg));
    msg.add_region.size = REGION;
    say(c, io, MEMIF_MSG_ADD_REGION, msg, c->region);
    for (unsigned r = 0; r < 2 * pairs; r++) {
        memset(&msg, 0, sizeof(msg));
        msg.add_ring.index = (uint16_t)(r / 2);
        msg.add_ring.flags = r % 2 ? 0 : MEMIF_ADD_RING_C2S;
        msg.add_ring.offset = r % 2 * RINGS;
        msg.add_ring.log2_size = LOG2;
        say(c, io, MEMIF_MSG_ADD_RING, msg, c->event);
    }
    memset(&msg, 0, sizeof(msg));
    say(c, io, MEMIF_MSG_CONNECT, msg, -1);
}

static void say_anything(struct client *c, struct io_port *io, struct script *s)
{
    struct memif_msg msg = {0};
    enum memif_msg_type type = (enum memif_msg_type)(take(s, 1) % 10);
    const int fds[4] = {-1, c->region, c->event, c->peer.sock};
    int fd = fds[take(s, 1) % 4];
    unsigned len = take(s, 1) % sizeof(msg.body);
    for (unsigned i = 0; i < len; i++)
        msg.body[i] = (uint8_t)take(s, 1);
    say(c, io, type, msg, fd);
}

static void step(struct client *c, struct owner *owners, unsigned workers, struct script *s)
{
    uint32_t what = take(s, 1), n = what >> 4;
    struct owner *first = &owners[0], *o = &owners[what >> 7 & (workers - 1)];
    switch (what & 15) {
    case 0:
        say_anything(c, first->io, s);
        break;
    case 1:
        connect_well(c, first->io, workers);
        break;
    case 2:
    case 3:
    case 4:
        write_slot(&c->peer, s);
        break;
    case 5:
    case 6:
        write_index(&c->peer, s);
        break;
    case 7:
    case 8:
        receive(o, n + 1);
        break;
    case 9:
        give_back(o, n);
        break;
    case 10:
        reserve(o, n + 1);
        break;
    case 11:
        commit(o, s);
        break;
    case 12:
        n & 1 ? come(c, first->io) : hang_up(c);
        break;
    case 13:
        o->io->ops->rx_arm(o->io, n & 1);
        break;
    default:
        o->io->ops->service(o->io, 0);
    }
}

/* Whatever happened: a well-behaved client gets a frame across. */
static void prove_it_works(struct client *c, struct owner *o)
{
    struct io_frame frame;
    struct io_link link;
    o->io->ops->rx_arm(o->io, false);
    connect_well(c, o->io, 1);
    give_back(o, (unsigned)o->lent);
    o->io->ops->link(o->io, &link);
    FUZZ_CHECK(link.up);
    c->peer.ring[0]->desc[0].length = 60;
    c->peer.ring[0]->head = 1;
    FUZZ_CHECK(o->io->ops->rx_peek(o->io, &frame, 1, 0) == 1 && frame.len == 60);
    o->io->ops->rx_release(o->io, 1);
    FUZZ_CHECK(c->peer.ring[0]->tail == 1);
    o->received++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct client c = {.region = -1};
    struct script s = {.data = data, .size = size};
    struct io_open_params params = {.frame_max = FRAME_MAX};
    struct owner o[2] = {{0}, {0}};
    const unsigned workers = size % 2 ? 2 : 1;
    struct io_stats stats;
    char spec[96];
    if (c.region < 0) {
        snprintf(c.path, sizeof(c.path), "@urnic-fuzz-memif-%d", (int)getpid());
        c.region = memfd_create("fuzz", MFD_ALLOW_SEALING | MFD_CLOEXEC);
        c.event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        FUZZ_CHECK(ftruncate(c.region, REGION) == 0);
        FUZZ_CHECK(fcntl(c.region, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
        c.base = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_SHARED, c.region, 0);
        FUZZ_CHECK(c.base != MAP_FAILED);
        layout(&c);
    }
    c.peer.sock = -1;
    snprintf(spec, sizeof(spec), "memif:%s,role=server", c.path);
    FUZZ_CHECK(io_open(spec, &params, &o[0].io, NULL, 0) == 0);
    if (workers > 1)
        FUZZ_CHECK(o[0].io->ops->queue(o[0].io, 1, 2, &o[1].io) == 0);
    while (s.at < s.size && s.at < 4096)
        step(&c, o, workers, &s);
    for (unsigned i = 0; i < workers; i++)
        commit(&o[i], &s);
    prove_it_works(&c, &o[0]);
    for (unsigned i = workers; i-- > 0;) {
        o[i].io->ops->stats(o[i].io, &stats);
        FUZZ_CHECK(stats.rx_frames == o[i].received);
        FUZZ_CHECK(stats.tx_frames + stats.tx_drop == o[i].sent);
        o[i].io->ops->close(o[i].io);
    }
    hang_up(&c);
    return 0;
}
