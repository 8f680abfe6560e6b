/* SPDX-License-Identifier: BSD-3-Clause
 *
 * For the tests of the memif driver: pairs of ports in one process, and a peer made by hand whose
 * every octet a test can choose.
 */
#ifndef URNIC_TEST_MEMIF_PEER_H
#define URNIC_TEST_MEMIF_PEER_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memif.h"
#include "memif_proto.h"
#include "memif_sock.h"
#include "unit.h"

/* A socket name of this test process alone. */
static inline const char *peer_path(void)
{
    static char path[64];
    snprintf(path, sizeof(path), "@urnic-test-memif-%d", (int)getpid());
    return path;
}

/* Open a port on peer_path() with the options `args`. */
static inline struct io_port *peer_port(const char *args, uint32_t frame_max)
{
    struct io_open_params params = {.frame_max = frame_max};
    struct io_port *io = NULL;
    char spec[192], err[256] = "";
    snprintf(spec, sizeof(spec), "%s,%s", peer_path(), args);
    ck_assert_msg(io_memif_open(spec, &params, &io, err, sizeof(err)) == 0, "%s", err);
    return io;
}

static inline bool peer_is_up(struct io_port *io)
{
    struct io_link link;
    io->ops->link(io, &link);
    return link.up;
}

static inline void peer_service(struct io_port *a, struct io_port *b)
{
    for (int i = 0; i < 20; i++) {
        if (a)
            a->ops->service(a, 0);
        if (b)
            b->ops->service(b, 0);
    }
}

static inline struct io_stats peer_stats(struct io_port *io)
{
    struct io_stats stats;
    io->ops->stats(io, &stats);
    return stats;
}

static inline struct memif_counters peer_counters(struct io_port *io)
{
    struct memif_counters counters;
    memif_port_counters(io, &counters);
    return counters;
}

/* Octet `i` of frame `seed`. */
static inline uint8_t peer_octet(uint32_t seed, uint32_t i)
{
    return (uint8_t)((seed * 2654435761u + i * 40503u) >> 7);
}

/* Send up to `n` frames of the lengths len[0..n) (0: a slot given back), numbered from `seed`.
 * Returns the number of the port's slots. */
static inline unsigned peer_send(struct io_port *io, const uint32_t *len, unsigned n, uint32_t seed)
{
    struct io_slot slots[IO_BURST_MAX];
    unsigned got = io->ops->tx_reserve(io, slots, n, 0);

    /* All are written before any is committed, the last one first: no slot may overlap another. */
    for (unsigned i = got; i-- > 0;) {
        ck_assert_uint_ge(slots[i].cap, len[i]);
        ck_assert_uint_eq(slots[i].len, 0);
        for (uint32_t k = 0; k < len[i]; k++)
            slots[i].data[k] = peer_octet(seed + i, k);
        slots[i].len = len[i];
    }
    io->ops->tx_commit(io, slots, got, 0);
    return got;
}

/* Expect `f` to be frame `seed` with `len` octets. */
static inline void peer_expect(const struct io_frame *f, uint32_t len, uint32_t seed)
{
    uint32_t k = 0;
    ck_assert_uint_eq(f->len, len);
    while (k < len && f->data[k] == peer_octet(seed, k))
        k++;
    ck_assert_msg(k == len, "frame %u of %u octets: octet %u is wrong", seed, len, k);
}

static inline unsigned peer_count(const char *folder)
{
    DIR *dir = opendir(folder);
    unsigned n = 0;

    ck_assert_ptr_nonnull(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static inline unsigned peer_mappings(void)
{
    FILE *f = fopen("/proc/self/maps", "r");
    char line[512];
    unsigned n = 0;
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof(line), f))
        n += strstr(line, "/memfd:memif ") != NULL;
    fclose(f);
    return n;
}

/* A client by hand. The fields are its messages and actions; a test changes some of them first. */
struct peer {
    int sock;
    uint16_t version;
    uint32_t id;
    uint8_t mode;
    const char *secret;
    bool no_region_fd, plain_file, unsealed;
    uint16_t region_index;
    uint64_t region_size; /* size of the memfd */
    uint64_t region_said;
    uint16_t ring_index, ring_region, private_header;
    uint8_t log2;
    uint32_t c2s_offset, s2c_offset, cookie;
    bool pipe_for_event, keep_event;
    int skip; /* the message not sent: 1 INIT, 2 ADD_REGION, 3 and 4 ADD_RING of the last pair */
    unsigned pairs; /* pairs of rings: pair i is 256 * i octets after the first */

    uint8_t *base;
    int region_fd, event_fd; /* event_fd: of c2s, with keep_event */
    struct memif_ring *c2s, *s2c;
    struct memif_msg last; /* the port's answer */
};

#define PEER_RING   8u
#define PEER_BUFFER 2048u
#define PEER_PAIR   256u
#define PEER_REGION (4096u + 2 * PEER_RING * PEER_BUFFER)

static inline struct peer peer_new(void)
{
    return (struct peer){.sock = -1,
                         .version = MEMIF_VERSION,
                         .secret = "",
                         .region_size = PEER_REGION,
                         .region_said = PEER_REGION,
                         .log2 = 3,
                         .pairs = 1,
                         .s2c_offset = 1024,
                         .cookie = MEMIF_COOKIE,
                         .region_fd = -1,
                         .event_fd = -1};
}

static inline void peer_layout(struct peer *p)
{
    p->region_fd = memfd_create("memif-peer", MFD_ALLOW_SEALING | MFD_CLOEXEC);
    if (p->plain_file) {
        close(p->region_fd);
        p->region_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        return;
    }
    ck_assert_int_eq(ftruncate(p->region_fd, (off_t)p->region_size), 0);
    if (!p->unsealed)
        ck_assert_int_eq(fcntl(p->region_fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    if (p->region_size < PEER_REGION)
        return;
    p->base = mmap(NULL, PEER_REGION, PROT_READ | PROT_WRITE, MAP_SHARED, p->region_fd, 0);
    ck_assert_ptr_ne(p->base, MAP_FAILED);
    p->c2s = (struct memif_ring *)(void *)p->base;
    p->s2c = (struct memif_ring *)(void *)(p->base + p->s2c_offset);
    p->c2s->cookie = p->s2c->cookie = p->cookie;
    if (p->c2s_offset == 8) /* all of it is right, except for the place */
        memcpy(p->base + 8, &p->cookie, sizeof(p->cookie));
    for (uint32_t i = 0; i < PEER_RING; i++) {
        p->c2s->desc[i] = (struct memif_desc){.offset = 4096 + i * PEER_BUFFER};
        p->s2c->desc[i] = (struct memif_desc){.length = PEER_BUFFER,
                                              .offset = 4096 + (PEER_RING + i) * PEER_BUFFER};
    }
    for (unsigned i = 1; i < p->pairs; i++) {
        memcpy(p->base + i * PEER_PAIR, p->base, PEER_PAIR);
        memcpy(p->base + p->s2c_offset + i * PEER_PAIR, p->base + p->s2c_offset, PEER_PAIR);
    }
}

/* Send one message and take the answer. Returns false when the port has hung up or refused. */
static inline bool peer_say(struct peer *p, struct io_port *io, enum memif_msg_type type,
                            struct memif_msg msg, int fd)
{
    int got;
    msg.type = (uint16_t)type;
    if (memif_sock_send(p->sock, &msg, fd))
        return false;
    io->ops->service(io, 0);
    if (memif_sock_recv(p->sock, &p->last, &got))
        return false;
    return p->last.type != MEMIF_MSG_DISCONNECT;
}

/* Its memory, and the port's HELLO. */
static inline void peer_begin(struct peer *p, struct io_port *io)
{
    int fd;
    peer_layout(p);
    p->sock = memif_sock_connect(peer_path());
    ck_assert_int_ge(p->sock, 0);
    io->ops->service(io, 0);
    ck_assert_int_eq(memif_sock_recv(p->sock, &p->last, &fd), 0);
    ck_assert_uint_eq(p->last.type, MEMIF_MSG_HELLO);
}

/* The whole handshake against a server port. Returns true when the port says CONNECTED. */
static inline bool peer_connect(struct peer *p, struct io_port *io)
{
    struct memif_msg msg = {0};
    int ends[2] = {-1, -1};
    peer_begin(p, io);
    msg.init.version = p->version;
    msg.init.id = p->id;
    msg.init.mode = p->mode;
    snprintf(msg.init.secret, sizeof(msg.init.secret), "%s", p->secret);
    if (p->skip != 1 && !peer_say(p, io, MEMIF_MSG_INIT, msg, -1))
        return false;
    memset(&msg, 0, sizeof(msg));
    msg.add_region.index = p->region_index;
    msg.add_region.size = p->region_said;
    if (p->skip != 2 &&
        !peer_say(p, io, MEMIF_MSG_ADD_REGION, msg, p->no_region_fd ? -1 : p->region_fd))
        return false;
    memset(&msg, 0, sizeof(msg));
    msg.add_ring.region = p->ring_region;
    msg.add_ring.log2_size = p->log2;
    msg.add_ring.private_header = p->private_header;
    for (unsigned i = 0; i < 2 * p->pairs; i++) {
        const bool c2s = i % 2 == 0;
        if (i / 2 == p->pairs - 1 && p->skip == (c2s ? 3 : 4))
            continue;
        msg.add_ring.index = (uint16_t)(p->ring_index + i / 2);
        msg.add_ring.flags = c2s ? MEMIF_ADD_RING_C2S : 0;
        msg.add_ring.offset = (c2s ? p->c2s_offset : p->s2c_offset) + i / 2 * PEER_PAIR;
        if (p->pipe_for_event)
            ck_assert_int_eq(pipe(ends), 0);
        else
            ends[1] = eventfd(0, EFD_CLOEXEC);
        bool good = peer_say(p, io, MEMIF_MSG_ADD_RING, msg, ends[1]);
        if (i == 0 && p->keep_event)
            p->event_fd = ends[1];
        else
            close(ends[1]);
        if (ends[0] >= 0)
            close(ends[0]);
        if (!good)
            return false;
    }
    memset(&msg, 0, sizeof(msg));
    return peer_say(p, io, MEMIF_MSG_CONNECT, msg, -1) && p->last.type == MEMIF_MSG_CONNECTED;
}

static inline void peer_close(struct peer *p)
{
    if (p->sock >= 0)
        close(p->sock);
    if (p->region_fd >= 0)
        close(p->region_fd);
    if (p->event_fd >= 0)
        close(p->event_fd);
    if (p->base)
        munmap(p->base, PEER_REGION);
    p->base = NULL;
    p->sock = p->region_fd = p->event_fd = -1;
}

/* Run one test case; the result is main()'s. */
static inline int peer_main(const char *name, TCase *tcase)
{
    Suite *s = suite_create(name);

    tcase_set_timeout(tcase, 30); /* for a loaded machine */
    suite_add_tcase(s, tcase);
    return unit_run(s);
}

#endif
