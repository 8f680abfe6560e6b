/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A memif client port and a server that says and writes anything: as fuzz_memif, the other way
 * round. The memory is the port's own here, and the server can write all of it.
 *
 * Input: a script of steps, each one octet that chooses the step and the octets it takes.
 */
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "fuzz_memif.h"

#define PAUSE_NS 100000000u /* after a connection that came to nothing */

struct server {
    char path[64];
    struct peer peer;
    int listener, file, event;
    uint64_t now;
    uint8_t *base; /* the client's region, MAP_FAILED: it has shown none */
    size_t size;
    uint32_t nowhere[2][256]; /* rings before it has shown any */
};

static void forget_rings(struct server *s)
{
    for (unsigned i = 0; i < 2; i++)
        s->peer.ring[i] = (struct memif_ring *)(void *)s->nowhere[i];
}

static void take_region(struct server *s, size_t size, int fd)
{
    if (s->base != MAP_FAILED)
        munmap(s->base, s->size);
    forget_rings(s);
    s->size = size;
    s->base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    FUZZ_CHECK(s->base != MAP_FAILED);
    FUZZ_CHECK(ftruncate(fd, 0) < 0); /* it can't be taken away under the port */
}

/* The client's messages about its memory. */
static void hear(struct server *s)
{
    struct memif_msg msg;
    int fd;
    while (s->peer.sock >= 0 && memif_sock_recv(s->peer.sock, &msg, &fd) == 0) {
        if (msg.type == MEMIF_MSG_ADD_REGION)
            take_region(s, msg.add_region.size, fd);
        if (msg.type == MEMIF_MSG_ADD_RING)
            s->peer.ring[!(msg.add_ring.flags & MEMIF_ADD_RING_C2S)] =
                (struct memif_ring *)(void *)(s->base + msg.add_ring.offset);
        if (fd >= 0)
            close(fd);
    }
}

static void say(struct server *s, struct io_port *io, enum memif_msg_type type,
                struct memif_msg msg, int fd)
{
    msg.type = (uint16_t)type;
    if (s->peer.sock < 0 || memif_sock_send(s->peer.sock, &msg, fd))
        return;
    io->ops->service(io, s->now);
    hear(s);
}

static void hang_up(struct server *s)
{
    if (s->peer.sock >= 0)
        close(s->peer.sock);
    s->peer.sock = -1;
}

/* The client comes again when it notices, with a pause if it wasn't let in; of several the last one
 * is its own. */
static void take_over(struct server *s, struct io_port *io)
{
    hang_up(s);
    for (unsigned i = 0; i < 2; i++) {
        io->ops->service(io, s->now);
        s->now += PAUSE_NS;
    }
    for (int sock; (sock = memif_sock_accept(s->listener)) >= 0;) {
        hang_up(s);
        s->peer.sock = sock;
    }
}

static void hello(struct server *s, struct io_port *io, unsigned log2, const char *name)
{
    struct memif_msg msg = {0};
    memcpy(msg.hello.name, name, strlen(name));
    msg.hello.version_min = msg.hello.version_max = MEMIF_VERSION;
    msg.hello.log2_ring_max = (uint8_t)log2;
    say(s, io, MEMIF_MSG_HELLO, msg, -1);
}

/* The whole handshake as it should be. */
static void connect_well(struct server *s, struct io_port *io, unsigned log2, const char *name)
{
    struct memif_msg msg = {0};
    take_over(s, io);
    hello(s, io, log2, name);
    for (unsigned i = 0; i < 4; i++)
        say(s, io, MEMIF_MSG_ACK, msg, -1);
    say(s, io, MEMIF_MSG_CONNECTED, msg, -1);
}

static void say_anything(struct server *s, struct io_port *io, struct script *in)
{
    struct memif_msg msg = {0};
    enum memif_msg_type type = (enum memif_msg_type)(take(in, 1) % 10);
    const int fds[4] = {-1, s->file, s->event, s->peer.sock};
    int fd = fds[take(in, 1) % 4];
    unsigned len = take(in, 1) % sizeof(msg.body);
    for (unsigned i = 0; i < len; i++)
        msg.body[i] = (uint8_t)take(in, 1);
    say(s, io, type, msg, fd);
}

/* Write octets anywhere in the region: to buffers, descriptors, or between them. */
static void write_anywhere(struct server *s, struct script *in)
{
    uint32_t at = take(in, 2), n = take(in, 1) % 32;
    for (; n; n--) {
        uint8_t b = (uint8_t)take(in, 1);
        if (s->base != MAP_FAILED)
            s->base[at++ % s->size] = b;
    }
}

static void step(struct server *s, struct owner *o, struct script *in)
{
    static const char *const names[] = {"", "DPDK 22.11", "VPP"};
    uint32_t what = take(in, 1), n = what >> 4;
    switch (what & 15) {
    case 0:
        say_anything(s, o->io, in);
        break;
    case 1:
        connect_well(s, o->io, n % 5 ? LOG2 : n, names[n % 3]);
        break;
    case 2:
        hello(s, o->io, n, names[n % 3]);
        break;
    case 3:
    case 4:
        write_slot(&s->peer, in);
        break;
    case 5:
    case 6:
        write_index(&s->peer, in);
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
        commit(o, in);
        break;
    case 12:
        n & 1 ? take_over(s, o->io) : hang_up(s);
        break;
    case 13:
        o->io->ops->rx_arm(o->io, n & 1);
        break;
    case 14:
        write_anywhere(s, in);
        break;
    default:
        o->io->ops->service(o->io, s->now);
    }
}

/* Whatever happened: with a well-behaved server a frame gets across, each way. */
static void prove_it_works(struct server *s, struct owner *o)
{
    struct io_frame frame;
    struct io_link link;
    o->io->ops->rx_arm(o->io, false);
    connect_well(s, o->io, LOG2, "");
    give_back(o, (unsigned)o->lent);
    o->io->ops->link(o->io, &link);
    FUZZ_CHECK(link.up);
    FUZZ_CHECK(s->peer.ring[1]->head == SLOTS && s->peer.ring[1]->desc[0].length == BUFFER);
    s->peer.ring[1]->desc[0].length = 60;
    s->peer.ring[1]->tail = 1;
    FUZZ_CHECK(o->io->ops->rx_peek(o->io, &frame, 1, 0) == 1 && frame.len == 60);
    o->io->ops->rx_release(o->io, 1);
    FUZZ_CHECK(s->peer.ring[1]->head == SLOTS + 1);
    o->received++;
    reserve(o, 1);
    FUZZ_CHECK(o->reserved == 1);
    o->slots[0].len = 60;
    o->io->ops->tx_commit(o->io, o->slots, 1, 0);
    o->sent++;
    FUZZ_CHECK(s->peer.ring[0]->head == 1 && s->peer.ring[0]->desc[0].length == 60);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct server s = {.listener = -1, .base = MAP_FAILED};
    struct script in = {.data = data, .size = size};
    struct io_open_params params = {.frame_max = FRAME_MAX};
    struct owner o = {0};
    struct io_stats stats;
    char spec[128];
    if (s.listener < 0) {
        snprintf(s.path, sizeof(s.path), "@urnic-fuzz-memif-client-%d", (int)getpid());
        s.listener = memif_sock_listen(s.path);
        s.file = memfd_create("fuzz", MFD_CLOEXEC);
        s.event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        FUZZ_CHECK(s.listener >= 0 && s.file >= 0 && s.event >= 0);
    }
    s.peer.sock = -1;
    s.now = 0;
    forget_rings(&s);
    snprintf(spec, sizeof(spec), "memif:%s,role=client,log2_ring_size=%u,buffer=%u", s.path, LOG2,
             BUFFER);
    FUZZ_CHECK(io_open(spec, &params, &o.io, NULL, 0) == 0);
    while (in.at < in.size && in.at < 4096)
        step(&s, &o, &in);
    commit(&o, &in);
    prove_it_works(&s, &o);
    o.io->ops->stats(o.io, &stats);
    FUZZ_CHECK(stats.rx_frames == o.received);
    FUZZ_CHECK(stats.tx_frames + stats.tx_drop == o.sent);
    o.io->ops->close(o.io);
    hang_up(&s);
    return 0;
}
