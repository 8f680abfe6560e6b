/* SPDX-License-Identifier: BSD-3-Clause
 *
 * switch_ns: the cost of a frame in a device's switch, on one core: from a program's channel into a
 * port's slot (checked), and from a port's frame into a channel. Beside each a memcpy of as many
 * octets between the same places. A stage's time is the shortest of all bursts', as others share
 * the core. Then the same for 4 programs alone, and beside 996 that are open and send nothing.
 *
 * Prints one JSON object for each, in ns per frame.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench.h"
#include "channel.h"
#include "pair.h"
#include "switch_rx.h"
#include "switch_tx.h"

#define BURSTS   20000u
#define BATCH    32u
#define FRAME    4200u
#define PROGRAMS 1000u
#define ACTIVE   4u
#define PEER     0x123u /* the queue pair that programs send to */

struct program {
    struct io_port *io;
    uint32_t qpn;
    struct switch_pair pair;
};

static const uint8_t mac[6] = {0x02, 0, 0, 0, 0, 0xAA}, peer[6] = {0x02, 0, 0, 0, 0, 0xBB};
static struct blocks blocks;
static struct nic_switch *sw;
static struct program prog[PROGRAMS];
static uint8_t memory[2][BATCH][FRAME + 120]; /* frames of the port: to send, received */

_Noreturn static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void come(struct program *p, uint64_t now)
{
    struct channel_memory daemon, program;
    struct io_port *end;
    uint64_t key[2];
    int event = eventfd(0, EFD_NONBLOCK);
    if (channel_memory_make(&daemon, CHANNEL_SLOTS_MIN, FRAME) < 0 ||
        channel_memory_map(&program, daemon.fd, CHANNEL_SLOTS_MIN, FRAME) < 0 ||
        channel_memory_seal(&daemon) < 0 ||
        channel_open(CHANNEL_PROGRAM, &program, dup(event), 0, &p->io) < 0 ||
        channel_open(CHANNEL_SWITCH, &daemon, event, 0, &end) < 0)
        die("switch_ns: channel");
    struct switch_channel *c = switch_attach(sw, end, p, now);
    int block = c ? switch_draw(sw, c, now, key) : -1;
    if (block < 0)
        die("switch_ns: attach");
    p->qpn = 0x800000u | (uint32_t)block << QPN_BLOCK_BITS;
    p->pair = (struct switch_pair){.local = wire_addr_v4(0x0A000001),
                                   .peer = wire_addr_v4(0x0A000002),
                                   .qpn = p->qpn,
                                   .peer_qpn = PEER};
    memcpy(p->pair.mac, peer, sizeof(peer));
    if (switch_pair_add(c, &p->pair) < 0)
        die("switch_ns: pair");
}

/* A WRITE's frame of `len` octets. */
static void frame_make(uint8_t *f, uint32_t len, bool in, uint32_t qpn)
{
    struct wire_pkt p = {
        .ip_version = 4,
        .ttl = 64,
        .sip = wire_addr_v4(in ? 0x0A000002 : 0x0A000001),
        .dip = wire_addr_v4(in ? 0x0A000001 : 0x0A000002),
        .sport = 0xC000,
        .opcode = WIRE_WRITE_ONLY,
        .pkey = WIRE_PKEY_DEFAULT,
        .dqpn = qpn,
    };
    memcpy(p.dmac, in ? mac : peer, 6);
    memcpy(p.smac, in ? peer : mac, 6);
    p.payload_len = len - (uint32_t)wire_frame_len(&p);
    if (wire_build(f, len, &p) == 0)
        die("switch_ns: frame");
}

static void send_burst(struct program *p, uint32_t len)
{
    struct io_slot s[BATCH];
    unsigned n = p->io->ops->tx_reserve(p->io, s, BATCH, 0);
    for (unsigned i = 0; i < n; i++) {
        frame_make(s[i].data, len, false, PEER);
        s[i].len = len;
        channel_tx_meta(p->io, i, p->qpn);
    }
    p->io->ops->tx_commit(p->io, s, n, 0);
}

static unsigned take_burst(uint64_t now)
{
    struct io_slot s[BATCH];
    for (unsigned i = 0; i < BATCH; i++)
        s[i] = (struct io_slot){.data = memory[0][i], .cap = FRAME};
    return switch_tx(sw, s, BATCH, now);
}

static double out_of_a_program(uint32_t len)
{
    uint64_t least = UINT64_MAX;
    for (unsigned k = 0; k < BURSTS; k++) {
        send_burst(&prog[0], len);
        uint64_t at = clock_ns();
        unsigned n = take_burst(at);
        at = clock_ns() - at;
        if (n != BATCH)
            die("switch_ns: lost");
        least = at < least ? at : least;
    }
    return (double)least / BATCH;
}

static double into_a_program(uint32_t len)
{
    struct io_frame f[BATCH];
    uint64_t least = UINT64_MAX;
    for (unsigned k = 0; k < BURSTS; k++) {
        struct io_frame got[BATCH];
        for (unsigned i = 0; i < BATCH; i++) {
            frame_make(memory[1][i], len, true, prog[0].qpn);
            f[i] = (struct io_frame){.data = memory[1][i], .len = len};
        }
        uint64_t at = clock_ns();
        (void)switch_rx(sw, f, BATCH);
        at = clock_ns() - at;
        least = at < least ? at : least;
        unsigned n = prog[0].io->ops->rx_peek(prog[0].io, got, BATCH, 0);
        if (n != BATCH)
            die("switch_ns: lost");
        prog[0].io->ops->rx_release(prog[0].io, n);
    }
    return (double)least / BATCH;
}

/* The copies alone, between the channel's slots and the port's memory. */
static double copies(uint32_t len)
{
    struct io_slot s[BATCH];
    uint64_t least = UINT64_MAX;
    for (unsigned k = 0; k < BURSTS; k++) {
        unsigned n = prog[0].io->ops->tx_reserve(prog[0].io, s, BATCH, 0);
        for (unsigned i = 0; i < n; i++)
            frame_make(s[i].data, len, false, PEER);
        uint64_t at = clock_ns();
        for (unsigned i = 0; i < n; i++)
            memcpy(memory[0][i], s[i].data, len);
        __asm__ volatile("" ::: "memory");
        at = clock_ns() - at;
        least = at < least ? at : least;
    }
    return (double)least / BATCH;
}

/* Programs send a frame each, round after round; `now` advances by the time taken. */
static double in_turn(void)
{
    uint64_t least = UINT64_MAX;
    for (unsigned k = 0; k < BURSTS; k++) {
        for (unsigned i = 0; i < ACTIVE; i++)
            send_burst(&prog[i], 74);
        uint64_t at = clock_ns();
        for (unsigned i = 0; i < ACTIVE; i++)
            if (take_burst(clock_ns()) != BATCH)
                die("switch_ns: lost");
        switch_look(sw, clock_ns());
        at = clock_ns() - at;
        least = at < least ? at : least;
    }
    return (double)least / (BATCH * ACTIVE);
}

static void say(const char *name, double value)
{
    printf("{\"name\":\"%s\",\"value\":%.2f,\"unit\":\"ns\"}\n", name, value);
}

int main(void)
{
    static const uint32_t sizes[] = {74, 4162};
    const struct wire_addr addr = wire_addr_v4(0x0A000001);
    struct rlimit fds;
    char name[64];
    if (getrlimit(RLIMIT_NOFILE, &fds) == 0 && fds.rlim_cur < fds.rlim_max) {
        fds.rlim_cur = fds.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &fds);
    }
    blocks_init(&blocks);
    sw = switch_new(&blocks, 0, mac, 0, false);
    if (!sw)
        die("switch_ns");
    switch_set_addrs(sw, &addr, 1);
    come(&prog[0], clock_ns());
    for (unsigned i = 0; i < 2; i++) {
        snprintf(name, sizeof(name), "switch_from_%u", sizes[i]);
        say(name, out_of_a_program(sizes[i]));
        snprintf(name, sizeof(name), "switch_to_%u", sizes[i]);
        say(name, into_a_program(sizes[i]));
        snprintf(name, sizeof(name), "memcpy_%u", sizes[i]);
        say(name, copies(sizes[i]));
    }
    for (unsigned i = 1; i < ACTIVE; i++)
        come(&prog[i], clock_ns());
    say("switch_4_alone", in_turn());
    for (unsigned i = ACTIVE; i < PROGRAMS; i++)
        come(&prog[i], clock_ns());
    say("switch_4_of_1000", in_turn());
    switch_free(sw);
    for (unsigned i = 0; i < PROGRAMS; i++)
        prog[i].io->ops->close(prog[i].io);
    return 0;
}
