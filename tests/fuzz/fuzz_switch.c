/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The switch of a device between a port and two programs, all of which send arbitrary frames: only
 * frames that programs may send leave, each frame of the port goes to its owner or to the engine,
 * and each frame is counted once.
 *
 * Input: a script of steps, each one octet that chooses the step and the octets it takes. A frame
 * is 16 bits of length and its octets, or one of a connection, made from a queue pair's peer.
 */
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "channel.h"
#include "channel_ring.h"
#include "fuzz.h"
#include "pair.h"
#include "switch_ask.h"
#include "switch_group.h"
#include "switch_rx.h"
#include "switch_tx.h"
#include "wire_bytes.h"

#define FRAME_MAX 512u
#define PROGRAMS  2u
#define PAIRS     4u /* queue pairs of a program with a peer */

static const uint8_t mac[6] = {0x02, 0, 0, 0, 0, 0xAA};

struct bed {
    const uint8_t *data;
    size_t size;
    uint64_t now;
    struct nic_switch *s;
    struct {
        struct switch_channel *c;
        struct io_port *io;
        uint8_t *base;
        struct switch_pair pair[PAIRS];
    } prog[PROGRAMS];
    struct io_slot slots[IO_BURST_MAX];
    uint8_t room[IO_BURST_MAX][FRAME_MAX];
    uint64_t filled, strays;
};

static uint32_t take(struct bed *b, unsigned octets)
{
    uint32_t v = 0;
    for (; octets > 0 && b->size > 0; octets--, b->size--)
        v = v << 8 | *b->data++;
    return v;
}

/* The next frame of the script, in memory of its exact length. */
static uint8_t *take_frame(struct bed *b, uint32_t *len)
{
    uint32_t n = take(b, 2) % (FRAME_MAX + 1);
    n = n < b->size ? n : (uint32_t)b->size;
    uint8_t *f = malloc(n ? n : 1);
    FUZZ_CHECK(f);
    memcpy(f, b->data, n);
    b->data += n;
    b->size -= n;
    *len = n;
    return f;
}

static void come(struct bed *b, unsigned i)
{
    struct channel_memory daemon, program;
    struct io_port *end;
    int event = eventfd(0, EFD_NONBLOCK);
    FUZZ_CHECK(channel_memory_make(&daemon, CHANNEL_SLOTS_MIN, FRAME_MAX) == 0);
    FUZZ_CHECK(channel_memory_map(&program, daemon.fd, CHANNEL_SLOTS_MIN, FRAME_MAX) == 0);
    b->prog[i].base = program.base;
    FUZZ_CHECK(channel_memory_seal(&daemon) == 0);
    FUZZ_CHECK(channel_open(CHANNEL_PROGRAM, &program, dup(event), 0, &b->prog[i].io) == 0);
    FUZZ_CHECK(channel_open(CHANNEL_SWITCH, &daemon, event, 0, &end) == 0);
    b->prog[i].c = switch_attach(b->s, end, NULL, b->now);
    FUZZ_CHECK(b->prog[i].c);
    b->prog[i].c->direct = i == 0;
    b->s->owner[i] = b->prog[i].c; /* not drawn: a script must do the same always */
}

/* One of the addresses of the device, and of others. */
static struct wire_addr address(struct bed *b)
{
    return wire_addr_v4(0xC0000201 + take(b, 1) % 3);
}

/* A queue pair gets a peer, another one, or none. */
static void pair(struct bed *b, unsigned i)
{
    uint32_t what = take(b, 1), k = what % PAIRS;
    struct switch_pair *p = &b->prog[i].pair[k];
    struct switch_channel *c = b->prog[i].c;
    switch_pair_remove(c, p);
    if (what & 0x80)
        return;
    *p = (struct switch_pair){.local = address(b),
                              .peer = address(b),
                              .qpn = 0x800000 | i << QPN_BLOCK_BITS | k,
                              .peer_qpn = 2 + take(b, 1),
                              .mac = {0x02, 0, 0, 0, 1, (uint8_t)k}};
    if (what & 0x40) { /* of a program here */
        p->peer_qpn |= 0x800000;
        memcpy(p->mac, mac, 6);
    }
    FUZZ_CHECK(switch_pair_add(c, p) == 0);
    FUZZ_CHECK(switch_pair_of(c, p->qpn) == p);
}

static void go(struct bed *b, unsigned i)
{
    switch_detach(b->s, b->prog[i].c, b->now);
    b->prog[i].io->ops->close(b->prog[i].io);
}

/* Is the packet for the peer of a queue pair, by the pair's next hop? */
static bool is_paired(const struct bed *b, const struct wire_pkt *p)
{
    for (unsigned i = 0; i < PROGRAMS; i++) {
        for (unsigned k = 0; k < PAIRS; k++) {
            const struct switch_pair *of =
                switch_pair_of(b->prog[i].c, 0x800000 | i << QPN_BLOCK_BITS | k);
            if (of && of->peer_qpn == p->dqpn && memcmp(&of->peer, &p->dip, 16) == 0 &&
                memcmp(&of->local, &p->sip, 16) == 0 && memcmp(of->mac, p->dmac, 6) == 0)
                return true;
        }
    }
    return false;
}

/* May a program send the packet? */
static bool may_send(const struct bed *b, const struct wire_pkt *p)
{
    if (memcmp(p->smac, mac, 6) != 0 || !switch_has_addr(b->s, &p->sip) || p->vlan)
        return false;
    if ((p->dmac[0] & 1) != (p->dqpn == WIRE_QPN_MULTICAST))
        return false;
    if (wire_opcodes[p->opcode].headers & WIRE_H_DETH)
        return p->sqpn >> 14 == 0x200 && p->qkey >> 31 == 0;
    return p->opcode == WIRE_OPCODE_CNP || is_paired(b, p);
}

/* Check that the frame sent is one that a program may send, or a stray for the device. */
static void judge(struct bed *b, const struct io_slot *slot)
{
    struct wire_pkt p;
    unsigned flags = WIRE_P_NO_ICRC | WIRE_P_SELECTIVE;
    FUZZ_CHECK(slot->len > 0 && slot->len <= FRAME_MAX);
    FUZZ_CHECK(wire_parse(slot->data, slot->len, flags, &p) == WIRE_OK);
    FUZZ_CHECK(p.dqpn > 1 && p.dport == WIRE_UDP_PORT);
    if (may_send(b, &p))
        return;
    FUZZ_CHECK(memcmp(p.dmac, mac, 6) == 0 && switch_has_addr(b->s, &p.dip));
    FUZZ_CHECK(++b->strays <= b->s->counters[SWITCH_C_channel_strays]);
}

static void send(struct bed *b, unsigned i)
{
    struct io_slot s;
    uint32_t len;
    uint8_t *f = take_frame(b, &len);
    struct io_port *io = b->prog[i].io;
    if (io->ops->tx_reserve(io, &s, 1, 0) == 1) {
        memcpy(s.data, f, len);
        s.len = len;
        if (i == 0) /* as if the kernel had given it to this program's socket */
            channel_tx_meta(io, 0, CHANNEL_STRAY);
        io->ops->tx_commit(io, &s, 1, 0);
    }
    free(f);
}

/* A packet for a queue pair's peer, of which one octet may differ. */
static void send_paired(struct bed *b, unsigned i)
{
    const struct switch_pair *of = &b->prog[i].pair[take(b, 1) % PAIRS];
    struct io_port *io = b->prog[i].io;
    struct wire_pkt p = {.ip_version = 4,
                         .ttl = 64,
                         .sip = of->local,
                         .dip = of->peer,
                         .sport = 0xC000,
                         .opcode = (uint8_t)take(b, 1),
                         .pkey = WIRE_PKEY_DEFAULT,
                         .dqpn = of->peer_qpn,
                         .sqpn = of->qpn,
                         .dmac = {0x02}};
    struct io_slot s;
    if (!wire_opcodes[p.opcode].name || io->ops->tx_reserve(io, &s, 1, 0) == 0)
        return;
    uint32_t len = wire_build(s.data, s.cap, &p) > 0 ? (uint32_t)wire_frame_len(&p) : 0;
    uint32_t at = take(b, 1), flip = take(b, 1);
    if (at < len)
        s.data[at] ^= (uint8_t)flip;
    s.len = len;
    channel_tx_meta(io, 0, of->qpn ^ take(b, 1));
    io->ops->tx_commit(io, &s, 1, 0);
}

static void receive(struct bed *b)
{
    struct io_frame f;
    uint8_t *data = take_frame(b, &f.len);
    uint64_t before = b->s->counters[SWITCH_C_channel_rx_frames];
    f.data = data;
    f.flags = take(b, 1) & 3;
    if (f.len > 0) {
        uint64_t taken = switch_rx(b->s, &f, 1);
        uint64_t given = b->s->counters[SWITCH_C_channel_rx_frames] - before;
        FUZZ_CHECK(taken <= 1 && given <= PROGRAMS);
        FUZZ_CHECK(given == 0 || taken || (data[0] & 1)); /* copies may go to the engine, too */
    }
    free(data);
}

static void transmit(struct bed *b, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        b->slots[i] = (struct io_slot){.data = b->room[i], .cap = FRAME_MAX};
    unsigned filled = switch_tx(b->s, b->slots, n, b->now);
    FUZZ_CHECK(filled <= n);
    for (unsigned i = 0; i < n; i++) {
        if (i < filled)
            judge(b, &b->slots[i]);
        else
            FUZZ_CHECK(b->slots[i].len == 0);
    }
    b->filled += filled;
}

static void asked(struct switch_ask *a)
{
    FUZZ_CHECK(a->to == NULL && a->got <= a->room && a->len <= a->room);
}

/* The daemon asks, and the program gives an arbitrary answer. */
static void ask(struct bed *b, unsigned i)
{
    static struct switch_ask a;
    static uint8_t data[1000];
    uint8_t frame[400], octets[300];
    struct ipc_question q = {.kind = IPC_ASK_COUNTERS};
    switch_ask_cancel(b->s, &a);
    a = (struct switch_ask){.done = asked, .room = sizeof(data), .data = data};
    switch_ask(b->s, &a, b->prog[i].c, &q, b->now);
    for (unsigned n = take(b, 1) % 4; n > 0; n--) {
        struct ipc_answer h = {.id = take(b, 1) % 4 ? a.id : take(b, 1) % 2};
        h.status = (int32_t)take(b, 1) % 2 ? (int32_t)take(b, 4) : 0;
        h.len = take(b, 2);
        h.off = take(b, 2);
        for (unsigned k = 0; k < sizeof(octets); k++)
            octets[k] = (uint8_t)take(b, k < 16);
        struct ipc_answer whole = {.len = sizeof(octets)};
        uint32_t len = switch_ask_write(frame, sizeof(frame), mac, &whole, octets);
        h.part = take(b, 1) % 2 ? whole.part : take(b, 4);
        memcpy(frame + len - whole.part - sizeof(h), &h, sizeof(h));
        (void)channel_put(b->prog[i].io, frame, len);
    }
    transmit(b, 4);
    switch_ask_cancel(b->s, &a);
}

static void drain(struct bed *b, unsigned i)
{
    struct io_frame f[IO_BURST_MAX];
    struct io_port *io = b->prog[i].io;
    unsigned n = io->ops->rx_peek(io, f, IO_BURST_MAX, 0);
    io->ops->rx_release(io, n);
}

/* The program writes arbitrary octets into its channel. */
static void lie(struct bed *b, unsigned i)
{
    struct channel_head *h = (struct channel_head *)(void *)b->prog[i].base;
    unsigned where = take(b, 1);
    struct channel_index *x = &h->to[where & 1];
    if (where & 2)
        atomic_fetch_add(where & 4 ? &x->prod : &x->cons, where >> 3);
    else
        atomic_store(where & 4 ? &x->prod : &x->cons, take(b, 4));
    atomic_store(&x->sleeping, where >> 7);
}

static void group(struct bed *b, unsigned i, bool join)
{
    struct wire_addr a = wire_addr_v4(0xE0000100 + take(b, 1) % 4);
    if (join)
        (void)switch_group_join(b->s, b->prog[i].c, &a);
    else
        switch_group_leave(b->s, b->prog[i].c, &a);
}

static void step(struct bed *b)
{
    uint32_t what = take(b, 1), i = what >> 4 & 1;
    if (what & 0x80) {
        (what & 0x40 ? pair : send_paired)(b, i);
        return;
    }
    switch (what & 15) {
    case 0:
    case 1:
    case 2:
        send(b, i);
        break;
    case 3:
    case 4:
        receive(b);
        break;
    case 5:
    case 6:
        transmit(b, take(b, 1) % (IO_BURST_MAX + 1));
        break;
    case 7:
        b->now += take(b, 1) * 1000;
        switch_round(b->s);
        switch_look(b->s, b->now);
        break;
    case 8:
        (void)switch_sleep(b->s);
        break;
    case 9:
        drain(b, i);
        break;
    case 10:
        lie(b, i);
        break;
    case 11:
        group(b, i, what & 0x20);
        break;
    case 12:
        switch_end(b->s, b->prog[i].c);
        break;
    case 13:
        go(b, i);
        come(b, i);
        break;
    case 14:
        ask(b, i);
        break;
    default: {
        struct switch_mark m = switch_mark(b->s, b->prog[i].c);
        (void)switch_passed(b->prog[i].c, &m);
        break;
    }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct blocks blocks;
    static struct bed b;
    struct wire_addr ours[2] = {wire_addr_v4(0xC0000201)};
    wire_addr_parse("2001:db8::1", &ours[1]);
    b = (struct bed){.data = data, .size = size, .now = 1000000000};
    blocks_init(&blocks);
    b.s = switch_new(&blocks, 0, mac, 0, false);
    FUZZ_CHECK(b.s);
    switch_set_addrs(b.s, ours, 2);
    switch_round(b.s);
    for (unsigned i = 0; i < PROGRAMS; i++)
        come(&b, i);
    while (b.size > 0)
        step(&b);
    FUZZ_CHECK(b.filled <= b.s->counters[SWITCH_C_channel_tx_frames]);
    FUZZ_CHECK(b.s->counters[SWITCH_C_channel_inside] <= b.s->counters[SWITCH_C_channel_tx_frames]);
    FUZZ_CHECK(b.s->nactive + b.s->nasleep <= PROGRAMS);
    for (unsigned i = 0; i < PROGRAMS; i++)
        go(&b, i);
    FUZZ_CHECK(b.s->nactive == 0 && b.s->nasleep == 0 && b.s->ngroups == 0);
    switch_free(b.s);
    return 0;
}
