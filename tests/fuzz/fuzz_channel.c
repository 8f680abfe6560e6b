/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One end of a channel, while the other end writes anything anywhere in the shared memory. The end
 * under test must stay within its memory, must never lend or reserve more frames than it may, and
 * must count its frames right.
 *
 * Input: one octet that chooses the end under test, then a script of steps. Each step is one octet
 * that chooses what is done, and the octets that this takes.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "channel.h"
#include "channel_ring.h"
#include "fuzz.h"

#define SLOTS     64u
#define MORE      128u
#define FRAME_MAX 256u

static volatile uint32_t sink; /* so that nothing read is optimised away */

struct script {
    const uint8_t *data;
    size_t size, at;
};

struct bed {
    struct io_port *io;
    struct {
        uint8_t *base; /* as the hostile end has it mapped */
        struct channel_memory m;
    } memory[2]; /* the first, and the one to grow into */
    enum channel_side side;
    uint32_t lent, reserved;
    uint64_t received, sent;
    struct io_slot slots[IO_BURST_MAX];
};

static uint32_t take(struct script *s, unsigned octets)
{
    uint32_t v = 0;
    for (unsigned i = 0; i < octets && s->at < s->size; i++)
        v |= (uint32_t)s->data[s->at++] << (8 * i);
    return v;
}

static void make(struct bed *b, unsigned i)
{
    uint32_t slots = i ? MORE : SLOTS;
    FUZZ_CHECK(channel_memory_make(&b->memory[i].m, slots, FRAME_MAX) == 0);
    b->memory[i].base =
        mmap(NULL, b->memory[i].m.size, PROT_READ | PROT_WRITE, MAP_SHARED, b->memory[i].m.fd, 0);
    FUZZ_CHECK(b->memory[i].base != MAP_FAILED);
}

/* Read all octets: one outside of a mapping ends the program. */
static bool readable(const uint8_t *at, uint32_t len)
{
    for (uint32_t k = 0; k < len; k += 16)
        sink += at[k];
    return len > 0 && len <= FRAME_MAX;
}

static void write_slot(struct bed *b, struct script *s)
{
    uint32_t where = take(s, 2), stride = channel_stride(FRAME_MAX);
    unsigned i = where >> 15 & 1, slots = i ? MORE : SLOTS;
    size_t off = CHANNEL_PAGE + (size_t)((where >> 8 & 1) * slots + where % slots) * stride;
    struct channel_slot *slot = (struct channel_slot *)(void *)(b->memory[i].base + off);
    uint64_t word = take(s, 2);
    if (where & 0x2000)
        word |= (uint64_t)take(s, 3) << 16;
    if ((where & 0x6000) == 0x6000)
        word |= (uint64_t)take(s, 2) << 32;
    if ((where & 0x5000) == 0x5000)
        word = (uint64_t)CHANNEL_MOVED << 32;
    atomic_store(&slot->word, word);
}

static void write_index(struct bed *b, struct script *s)
{
    unsigned where = take(s, 1);
    struct channel_head *h = (struct channel_head *)(void *)b->memory[where & 1].base;
    struct channel_index *x = &h->to[where >> 1 & 1];
    _Atomic uint32_t *index = where & 4 ? &x->prod : &x->cons;
    /* mostly steps forward, else the frames of a script would seldom arrive */
    if ((where & 0xE0) == 0xE0)
        atomic_store(index, take(s, 4));
    else
        atomic_fetch_add(index, where >> 3 & 31);
    atomic_store(&x->sleeping, where >> 3 & 1);
}

static void receive(struct bed *b, unsigned max)
{
    struct io_frame f[IO_BURST_MAX];
    unsigned n = b->io->ops->rx_peek(b->io, f, max, 0);
    FUZZ_CHECK(n <= max);
    for (unsigned i = 0; i < n; i++) {
        FUZZ_CHECK(readable(f[i].data, f[i].len));
        sink += channel_rx_meta(b->io, b->lent + i);
    }
    b->lent += n;
    b->received += n;
    FUZZ_CHECK(b->lent <= MORE);
}

static void give_back(struct bed *b, unsigned n)
{
    n = n < b->lent ? n : b->lent;
    b->io->ops->rx_release(b->io, n);
    b->lent -= n;
}

static void reserve(struct bed *b, unsigned max)
{
    b->reserved = b->io->ops->tx_reserve(b->io, b->slots, max, 0);
    FUZZ_CHECK(b->reserved <= max);
    for (unsigned i = 0; i < b->reserved; i++) {
        FUZZ_CHECK(b->slots[i].len == 0 && b->slots[i].cap == FRAME_MAX);
        memset(b->slots[i].data, (int)i, b->slots[i].cap);
    }
}

static void commit(struct bed *b, struct script *s)
{
    for (unsigned i = 0; i < b->reserved; i++) {
        b->slots[i].len = take(s, 2) % (FRAME_MAX + 2);
        b->sent += b->slots[i].len != 0;
        channel_tx_meta(b->io, i, i);
    }
    b->io->ops->tx_commit(b->io, b->slots, b->reserved, 0);
    b->reserved = 0;
}

static void step(struct bed *b, struct script *s)
{
    uint32_t what = take(s, 1), n = what >> 4;
    switch (what & 15) {
    case 0:
    case 1:
    case 2:
    case 3:
        write_slot(b, s);
        break;
    case 4:
    case 5:
    case 6:
        write_index(b, s);
        break;
    case 7:
    case 8:
        receive(b, 4 * n + 1);
        break;
    case 9:
        give_back(b, 4 * n + 1);
        break;
    case 10:
        reserve(b, 4 * n + 1);
        break;
    case 11:
    case 12:
        commit(b, s);
        break;
    case 13:
        b->io->ops->rx_arm(b->io, n & 1);
        break;
    case 14:
        if (b->memory[1].m.base)
            FUZZ_CHECK(channel_grow(b->io, &b->memory[1].m) == 0);
        break;
    default:
        (void)channel_grown(b->io);
        FUZZ_CHECK(channel_tx_waiting(b->io) <= MORE);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct script s = {data, size, 0};
    struct bed b = {.side = size && data[0] & 1 ? CHANNEL_PROGRAM : CHANNEL_SWITCH};
    struct io_stats st;
    (void)take(&s, 1);
    make(&b, 0);
    make(&b, 1);
    FUZZ_CHECK(channel_open(b.side, &b.memory[0].m, eventfd(0, EFD_NONBLOCK), 0, &b.io) == 0);
    while (s.at < s.size)
        step(&b, &s);
    b.io->ops->stats(b.io, &st);
    FUZZ_CHECK(st.rx_frames == b.received);
    FUZZ_CHECK(st.tx_frames + st.tx_drop == b.sent);
    b.io->ops->close(b.io);
    munmap(b.memory[0].base, channel_memory_size(SLOTS, FRAME_MAX));
    munmap(b.memory[1].base, channel_memory_size(MORE, FRAME_MAX));
    channel_memory_free(&b.memory[1].m);
    return 0;
}
