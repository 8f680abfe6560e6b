/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A channel: its memory, frames and metadata, a hostile end, growing, a program that dies. The
 * promises of io.h are tested by tests/driver, wake-ups by test_channel_wake.c.
 */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "channel_rig.h"
#include "fork_apart.h"

static struct channel_rig rig;

static struct channel_slot *slot_to(enum channel_side side, uint32_t index)
{
    uint32_t slots = CHANNEL_SLOTS_MIN, stride = channel_stride(RIG_FRAME);
    return (struct channel_slot *)(void *)(rig.base + CHANNEL_PAGE +
                                           (size_t)(side * slots + (index & (slots - 1))) * stride);
}

START_TEST(a_shape_is_checked)
{
    static const struct {
        uint32_t slots, frame_max;
    } bad[] = {{0, 1500},
               {32, 1500},
               {96, 1500},
               {8192, 1500},
               {64, 0},
               {64, 63},
               {64, IO_FRAME_MAX + 1},
               {64, UINT32_MAX},
               {65, 1500},
               {UINT32_MAX, 1500}};
    struct channel_memory m;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ck_assert_uint_eq(channel_memory_size(bad[i].slots, bad[i].frame_max), 0);
        ck_assert_int_eq(channel_memory_make(&m, bad[i].slots, bad[i].frame_max), -EINVAL);
        ck_assert_int_eq(channel_memory_map(&m, 0, bad[i].slots, bad[i].frame_max), -EINVAL);
        channel_memory_free(&m);
    }
    /* 64 slots each way for an MTU of 4,096 octets take about 0.6 MiB. */
    ck_assert_uint_le(channel_memory_size(64, 4200), 600u << 10);
    ck_assert_int_eq(channel_memory_make(&m, 64, 4200), 0);
    struct channel_memory larger;
    ck_assert_int_eq(channel_memory_map(&larger, m.fd, 128, 4200), -EINVAL);
    ck_assert_int_eq(channel_memory_map(&larger, -1, 64, 4200), -EBADF);
    struct io_port *io;
    int event = eventfd(0, 0);
    ck_assert_int_eq(channel_open(CHANNEL_SWITCH, &m, event, 4201, &io), -EINVAL);
    ck_assert_int_eq(channel_open(CHANNEL_SWITCH, &m, event, 63, &io), -EINVAL);
    ck_assert_int_eq(channel_open(CHANNEL_SWITCH, &m, -1, 0, &io), -EBADF);
    ck_assert_ptr_nonnull(m.base);
    close(event);
    channel_memory_free(&m);
}
END_TEST

/* SHM-10: the program keeps its mapping and its descriptor. */
START_TEST(shm_10_sealed_memory_stays_whole)
{
    rig_open(&rig, CHANNEL_SLOTS_MIN);
    const off_t size = (off_t)rig.size;
    rig.base[CHANNEL_PAGE] = 1; /* writable as before */
    ck_assert_int_eq(fallocate(rig.memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), -1);
    ck_assert_int_eq(errno, EPERM);
    ck_assert_int_eq(madvise(rig.base, 4096, MADV_REMOVE), -1);
    ck_assert_int_eq(errno, EPERM);
    ck_assert_int_eq(ftruncate(rig.memfd, 0), -1);
    ck_assert_int_eq(ftruncate(rig.memfd, 2 * size), -1);
    ck_assert_int_eq(write(rig.memfd, "", 1), -1);
    ck_assert_ptr_eq(mmap(NULL, rig.size, PROT_WRITE, MAP_SHARED, rig.memfd, 0), MAP_FAILED);
    void *ro = mmap(NULL, rig.size, PROT_READ, MAP_SHARED, rig.memfd, 0);
    ck_assert_ptr_ne(ro, MAP_FAILED);
    ck_assert_int_eq(mprotect(ro, rig.size, PROT_READ | PROT_WRITE), -1);
    munmap(ro, rig.size);
    ck_assert(rig_send(rig.end[1], 5, 100));
    ck_assert_uint_eq(rig_take(rig.end[0]), 5);
    rig_close(&rig);
}
END_TEST

START_TEST(shm_10_memory_that_cannot_be_sealed_is_refused)
{
    struct channel_memory m;
    ck_assert_int_eq(channel_memory_make(&m, CHANNEL_SLOTS_MIN, RIG_FRAME), 0);
    ck_assert_int_eq(fcntl(m.fd, F_ADD_SEALS, F_SEAL_SEAL), 0); /* the program did */
    ck_assert_int_eq(channel_memory_seal(&m), -EPERM);
    channel_memory_free(&m);
}
END_TEST

START_TEST(metadata_goes_with_its_frame)
{
    struct io_slot s[8];
    struct io_frame f[8];
    rig_open(&rig, CHANNEL_SLOTS_MIN);
    for (unsigned side = 0; side < 2; side++) {
        struct io_port *from = rig.end[side], *to = rig.end[!side];
        ck_assert_uint_eq(from->ops->tx_reserve(from, s, 8, 0), 8);
        for (unsigned i = 0; i < 8; i++) {
            s[i].data[0] = (uint8_t)i;
            s[i].len = i % 3 == 1 ? 0 : 60 + i; /* 1, 4 and 7 aren't sent: the others move up */
            channel_tx_meta(from, i, 0xABC000 + i);
        }
        channel_tx_meta(from, 8, 1); /* there is no such slot */
        from->ops->tx_commit(from, s, 8, 0);
        ck_assert_uint_eq(channel_tx_waiting(from), 5);
        ck_assert_uint_eq(to->ops->rx_peek(to, f, 2, 0), 2);
        ck_assert_uint_eq(to->ops->rx_peek(to, f + 2, 6, 0), 3);
        static const uint8_t want[] = {0, 2, 3, 5, 6};
        for (unsigned i = 0; i < 5; i++) {
            ck_assert_uint_eq(f[i].data[0], want[i]);
            ck_assert_uint_eq(f[i].len, 60u + want[i]);
            ck_assert_uint_eq(channel_rx_meta(to, i), 0xABC000u + want[i]);
        }
        to->ops->rx_release(to, 2);
        ck_assert_uint_eq(channel_rx_meta(to, 0), 0xABC003u);
        ck_assert_uint_eq(channel_tx_waiting(from), 3);
        to->ops->rx_release(to, 64); /* no more than are lent */
        ck_assert_uint_eq(channel_tx_waiting(from), 0);
        /* Metadata that was not set is 0. */
        ck_assert_uint_eq(from->ops->tx_reserve(from, s, 1, 0), 1);
        s[0].len = 60;
        from->ops->tx_commit(from, s, 1, 0);
        ck_assert_uint_eq(to->ops->rx_peek(to, f, 8, 0), 1);
        ck_assert_uint_eq(channel_rx_meta(to, 0), 0);
        to->ops->rx_release(to, 1);
    }
    rig_close(&rig);
}
END_TEST

/* SHM-02: each end checks every index; each fault ends the channel and shows in its link. */
START_TEST(shm_02_wrong_indices_end_the_channel)
{
    static const uint32_t wrong[] = {65, 1000, 0x80000000u, UINT32_MAX};
    struct io_link link;
    struct io_slot s;
    struct io_frame f[IO_BURST_MAX];
    for (unsigned side = 0; side < 2; side++) {
        for (size_t i = 0; i < 2 * sizeof(wrong) / sizeof(wrong[0]); i++) {
            rig_open(&rig, CHANNEL_SLOTS_MIN);
            struct io_port *io = rig.end[side];
            for (uint32_t k = 0; k < 64; k++)
                ck_assert(rig_send(io, k, 80)); /* the next one looks for room */
            if (i % 2)
                atomic_store(&rig.head->to[side].prod, wrong[i / 2]);
            else
                atomic_store(&rig.head->to[!side].cons, wrong[i / 2]);
            ck_assert_uint_le(channel_tx_waiting(io), CHANNEL_SLOTS_MIN);
            unsigned n = i % 2 ? io->ops->rx_peek(io, f, IO_BURST_MAX, 0)
                               : io->ops->tx_reserve(io, &s, 1, 0);
            ck_assert_uint_eq(n, 0);
            ck_assert_int_eq(channel_fault(io), CHANNEL_INDEX);
            io->ops->link(io, &link);
            ck_assert(!link.up);
            ck_assert_ptr_nonnull(link.why);
            ck_assert_uint_eq(link.changes, 1);
            ck_assert_uint_eq(io->ops->tx_reserve(io, &s, 1, 0), 0);
            ck_assert_uint_eq(io->ops->rx_peek(io, f, IO_BURST_MAX, 0), 0);
            rig_close(&rig);
        }
    }
}
END_TEST

START_TEST(shm_02_an_index_goes_forward_only)
{
    struct io_frame f[8];
    struct io_slot s[8];
    rig_open(&rig, CHANNEL_SLOTS_MIN);
    struct io_port *sw = rig.end[CHANNEL_SWITCH];
    for (uint32_t i = 0; i < 6; i++)
        ck_assert(rig_send(rig.end[CHANNEL_PROGRAM], i, 80));
    ck_assert_uint_eq(sw->ops->rx_peek(sw, f, 2, 0), 2); /* the last look has seen all six */
    atomic_store(&rig.head->to[CHANNEL_SWITCH].prod, 4);
    ck_assert_uint_eq(sw->ops->rx_peek(sw, f, 8, 0), 0);
    ck_assert_int_eq(channel_fault(sw), CHANNEL_INDEX);
    sw->ops->rx_release(sw, 2);
    rig_close(&rig);

    rig_open(&rig, CHANNEL_SLOTS_MIN);
    sw = rig.end[CHANNEL_SWITCH];
    for (uint32_t i = 0; i < 64; i++)
        ck_assert(rig_send(sw, i, 80));
    atomic_store(&rig.head->to[CHANNEL_PROGRAM].cons, 10);
    ck_assert_uint_eq(sw->ops->tx_reserve(sw, s, 8, 0), 8);
    atomic_store(&rig.head->to[CHANNEL_PROGRAM].cons, 5);
    ck_assert_uint_eq(sw->ops->tx_reserve(sw, s, 8, 0), 8); /* its last look suffices */
    for (uint32_t i = 0; i < 4; i++)
        ck_assert(rig_send(sw, i, 80));
    ck_assert_uint_eq(sw->ops->tx_reserve(sw, s, 8, 0), 0);
    ck_assert_int_eq(channel_fault(sw), CHANNEL_INDEX);
    rig_close(&rig);
}
END_TEST

/* A sender whose frames are taken at once uses the same few slots, in a ring of any size. */
START_TEST(few_frames_use_few_slots)
{
    const size_t few = (CHANNEL_SLOTS_MIN + 2) * (size_t)channel_stride(RIG_FRAME);
    rig_open(&rig, 512);
    for (unsigned side = 0; side < 2; side++) {
        struct io_port *from = rig.end[side], *to = rig.end[!side];
        const uint8_t *first = NULL, *last = NULL;
        for (uint32_t i = 0; i < 5000; i++) {
            struct io_frame f;
            ck_assert(rig_send(from, i, 80));
            ck_assert_uint_eq(to->ops->rx_peek(to, &f, 1, 0), 1);
            ck_assert_uint_eq(rig_number(&f), i);
            first = !first || f.data < first ? f.data : first;
            last = !last || f.data > last ? f.data : last;
            to->ops->rx_release(to, 1);
        }
        ck_assert_uint_lt((size_t)(last - first), few);
    }
    rig_close(&rig);
}
END_TEST

/* Frames in bursts of any size, taken in parts of any size: each comes once, whole and in order. A
 * ring that is used in full bursts has all its slots for them. */
START_TEST(bursts_pass_whole)
{
    uint32_t sent = 0, taken = 0, draw = 1;
    unsigned most = 0;
    rig_open(&rig, 256);
    for (unsigned round = 0; round < 3000; round++) {
        struct io_port *from = rig.end[0], *to = rig.end[1];
        unsigned burst = round < 2000 ? (draw >> 8) % 300 : 256;
        for (most = 0; most < burst && rig_send(from, sent, 80); most++)
            sent++;
        draw = draw * 1664525 + 1013904223;
        unsigned left = round < 2000 ? (draw >> 8) % 40 : 0;
        while (sent - taken > left) {
            struct io_frame f[7];
            unsigned n = to->ops->rx_peek(to, f, 1 + sent % 7, 0);
            for (unsigned i = 0; i < n; i++, taken++) {
                ck_assert_uint_eq(rig_number(&f[i]), taken);
                ck_assert_uint_eq(f[i].data[79], taken & 0xFF);
            }
            to->ops->rx_release(to, n);
        }
    }
    ck_assert_uint_eq(most, 256);
    ck_assert_uint_eq(taken, sent);
    rig_close(&rig);
}
END_TEST

/* SHM-01: a descriptor is read once, and a bad one costs only its own frame. */
START_TEST(shm_01_descriptors_that_are_wrong_lose_their_frame)
{
    struct io_frame f[8];
    struct io_stats st;
    rig_open(&rig, CHANNEL_SLOTS_MIN);
    struct io_port *sw = rig.end[CHANNEL_SWITCH];
    for (uint32_t i = 0; i < 6; i++)
        ck_assert(rig_send(rig.end[CHANNEL_PROGRAM], i, 80));
    atomic_store(&slot_to(CHANNEL_SWITCH, 0)->word, 0);
    atomic_store(&slot_to(CHANNEL_SWITCH, 2)->word, RIG_FRAME + 1);
    atomic_store(&slot_to(CHANNEL_SWITCH, 3)->word, UINT32_MAX);
    atomic_store(&slot_to(CHANNEL_SWITCH, 5)->word, UINT64_C(0xFFFFFFFC00000050)); /* other flags */
    ck_assert_uint_eq(sw->ops->rx_peek(sw, f, 8, 0), 3);
    ck_assert_uint_eq(rig_number(&f[0]), 1);
    ck_assert_uint_eq(rig_number(&f[1]), 4);
    ck_assert_uint_eq(rig_number(&f[2]), 5);
    /* The slots go back with the frames before them, all in order. */
    ck_assert_uint_eq(atomic_load(&rig.head->to[CHANNEL_SWITCH].cons), 1);
    sw->ops->rx_release(sw, 1);
    ck_assert_uint_eq(atomic_load(&rig.head->to[CHANNEL_SWITCH].cons), 4);
    sw->ops->rx_release(sw, 2);
    ck_assert_uint_eq(atomic_load(&rig.head->to[CHANNEL_SWITCH].cons), 6);
    sw->ops->stats(sw, &st);
    ck_assert_uint_eq(st.rx_drop, 1);
    ck_assert_uint_eq(st.rx_oversize, 2);
    ck_assert_uint_eq(st.rx_frames, 3);
    rig_close(&rig);
}
END_TEST

/* A program that says "moved" without more memory stops its own channel. */
START_TEST(moving_nowhere_only_stops)
{
    struct io_frame f[8];
    struct io_link link;
    rig_open(&rig, CHANNEL_SLOTS_MIN);
    struct io_port *sw = rig.end[CHANNEL_SWITCH];
    for (uint32_t i = 0; i < 3; i++)
        ck_assert(rig_send(rig.end[CHANNEL_PROGRAM], i, 80));
    atomic_store(&slot_to(CHANNEL_SWITCH, 1)->word, (uint64_t)CHANNEL_MOVED << 32);
    ck_assert_uint_eq(sw->ops->rx_peek(sw, f, 8, 0), 1);
    sw->ops->rx_release(sw, 1);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_eq(sw->ops->rx_peek(sw, f, 8, 0), 0);
    sw->ops->link(sw, &link);
    ck_assert(link.up);
    ck_assert(rig_send(sw, 9, 80)); /* the other direction works on */
    ck_assert_uint_eq(rig_take(rig.end[CHANNEL_PROGRAM]), 9);
    rig_close(&rig);
}
END_TEST

START_TEST(a_link_that_is_down_sends_nothing)
{
    struct io_link link;
    struct io_slot s;
    struct io_stats st;
    rig_open(&rig, CHANNEL_SLOTS_MIN);
    struct io_port *io = rig.end[CHANNEL_PROGRAM];
    ck_assert(rig_send(rig.end[CHANNEL_SWITCH], 1, 80));
    ck_assert_uint_eq(io->ops->tx_reserve(io, &s, 1, 0), 1);
    channel_set_link(io, false, "no cable");
    s.len = 80;
    io->ops->tx_commit(io, &s, 1, 0);
    io->ops->stats(io, &st);
    ck_assert_uint_eq(st.tx_drop, 1);
    ck_assert_uint_eq(io->ops->tx_reserve(io, &s, 1, 0), 0);
    io->ops->link(io, &link);
    ck_assert(!link.up);
    ck_assert_str_eq(link.why, "no cable");
    ck_assert_uint_eq(rig_take(io), 1); /* a received frame is still there */
    channel_set_link(io, false, "no cable");
    channel_set_link(io, true, "not used");
    io->ops->link(io, &link);
    ck_assert(link.up);
    ck_assert_ptr_null(link.why);
    ck_assert_uint_eq(link.changes, 2);
    ck_assert(rig_send(io, 2, 80));
    rig_close(&rig);
}
END_TEST

/* ---- growing ---- */

static size_t mappings(void)
{
    char line[512];
    size_t n = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    ck_assert_ptr_nonnull(maps);
    while (fgets(line, sizeof(line), maps))
        n += strstr(line, "urnic-channel") != NULL;
    fclose(maps);
    return n;
}

START_TEST(growing_keeps_every_frame_and_their_order)
{
    struct channel_memory daemon, program, none;
    struct io_frame f[IO_BURST_MAX];
    uint32_t sent[2] = {0}, got[2] = {0};
    rig_open(&rig, CHANNEL_SLOTS_MIN);
    size_t before = mappings();
    for (unsigned side = 0; side < 2; side++) /* both rings full */
        while (rig_send(rig.end[side], sent[side], 100))
            sent[side]++;
    ck_assert_uint_eq(sent[0], 64);

    close(rig_memory(&daemon, &program, 64));
    none = daemon;
    ck_assert_int_eq(channel_grow(rig.end[0], &none), -EINVAL); /* it isn't larger */
    channel_memory_free(&daemon);
    channel_memory_free(&program);
    close(rig_memory(&daemon, &program, 256));
    ck_assert_int_eq(channel_memory_seal(&daemon), 0);
    ck_assert_int_eq(channel_grow(rig.end[0], &daemon), 0);
    ck_assert_ptr_null(daemon.base);
    ck_assert_int_eq(channel_grow(rig.end[0], &none), -EBUSY);
    ck_assert(!channel_grown(rig.end[0]));
    ck_assert(!rig_send(rig.end[0], sent[0], 100)); /* no room even for the mark */

    /* The switch moves to the new memory before the program knows it: the program waits. */
    for (unsigned i = 0; i < 10; i++)
        ck_assert_uint_eq(rig_take(rig.end[1]), got[0]++);
    while (rig_send(rig.end[0], sent[0], 100))
        sent[0]++;
    ck_assert_uint_eq(sent[0], 64 + 256);
    while (got[0] < 64)
        ck_assert_uint_eq(rig_take(rig.end[1]), got[0]++);
    ck_assert_uint_eq(rig_take(rig.end[1]), UINT32_MAX);
    ck_assert_int_eq(channel_grow(rig.end[1], &program), 0);
    while (got[0] < sent[0])
        ck_assert_uint_eq(rig_take(rig.end[1]), got[0]++);

    /* The other direction: lent frames of the old memory stay, and delay the move. */
    unsigned lent = rig.end[0]->ops->rx_peek(rig.end[0], f, 20, 0);
    ck_assert_uint_eq(lent, 20);
    rig.end[0]->ops->rx_release(rig.end[0], 10);
    while (rig_send(rig.end[1], sent[1], 100))
        sent[1]++;
    ck_assert_uint_eq(sent[1], 64 + 256);
    lent = 10 + rig.end[0]->ops->rx_peek(rig.end[0], f + 20, 44, 0);
    ck_assert_uint_eq(lent, 54);
    ck_assert_uint_eq(rig.end[0]->ops->rx_peek(rig.end[0], f, 10, 0), 0);
    for (uint32_t i = 10; i < 64; i++)
        ck_assert_uint_eq(rig_number(&f[i]), i);
    ck_assert(!channel_grown(rig.end[0]));
    rig.end[0]->ops->rx_release(rig.end[0], lent);
    for (got[1] = 64; got[1] < sent[1]; got[1]++)
        ck_assert_uint_eq(rig_take(rig.end[0]), got[1]);

    ck_assert(channel_grown(rig.end[0]));
    ck_assert(channel_grown(rig.end[1]));
    ck_assert_uint_eq(mappings(), before); /* the old memory is gone from both */
    struct channel_counters c;
    channel_counters(rig.end[0], &c);
    ck_assert_uint_eq(c.moved_rx, 1);
    ck_assert_uint_eq(c.moved_tx, 1);
    for (unsigned side = 0; side < 2; side++) {
        ck_assert(rig_send(rig.end[side], 7, 100));
        ck_assert_uint_eq(rig_take(rig.end[!side]), 7);
    }
    rig_close(&rig);
}
END_TEST

START_TEST(a_channel_grows_again_and_again)
{
    struct channel_memory daemon, program;
    uint32_t number = 0;
    rig_open(&rig, CHANNEL_SLOTS_MIN);
    size_t before = mappings();
    for (uint32_t slots = 128; slots <= CHANNEL_SLOTS_MAX; slots *= 2) {
        close(rig_memory(&daemon, &program, slots));
        ck_assert_int_eq(channel_memory_seal(&daemon), 0);
        ck_assert_int_eq(channel_grow(rig.end[0], &daemon), 0);
        ck_assert_int_eq(channel_grow(rig.end[1], &program), 0);
        for (unsigned i = 0; i < 100; i++, number++)
            for (unsigned side = 0; side < 2; side++) {
                ck_assert(rig_send(rig.end[side], number, 100));
                ck_assert_uint_eq(rig_take(rig.end[!side]), number);
            }
        ck_assert(channel_grown(rig.end[0]));
        ck_assert(channel_grown(rig.end[1]));
        ck_assert_uint_eq(mappings(), before);
    }
    /* Closing in the middle of it frees everything. */
    rig_close(&rig);
    ck_assert_uint_eq(mappings(), 0);
    rig_open(&rig, CHANNEL_SLOTS_MIN);
    close(rig_memory(&daemon, &program, 128));
    ck_assert_int_eq(channel_grow(rig.end[0], &daemon), 0);
    ck_assert_int_eq(channel_grow(rig.end[1], &program), 0);
    ck_assert(rig_send(rig.end[0], 1, 100));
    rig_close(&rig);
    ck_assert_uint_eq(mappings(), 0);
}
END_TEST

/* ---- a program that dies ---- */

START_TEST(shm_07_frames_of_a_killed_program_are_still_there)
{
    rig_open(&rig, CHANNEL_SLOTS_MIN);
    for (unsigned round = 0; round < 20; round++) {
        struct io_port *io = rig.end[CHANNEL_PROGRAM];
        struct io_slot s[4];
        pid_t pid = fork_apart();
        ck_assert_int_ge(pid, 0);
        if (pid == 0) {
            for (uint32_t i = 0; i < 40; i++)
                (void)rig_send(io, round * 40 + i, 100);
            (void)io->ops->tx_reserve(io, s, 4, 0); /* not committed: these are not sent */
            kill(getpid(), SIGKILL);
        }
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
        for (uint32_t i = 0; i < 40; i++)
            ck_assert_uint_eq(rig_take(rig.end[CHANNEL_SWITCH]), round * 40 + i);
        ck_assert_uint_eq(rig_take(rig.end[CHANNEL_SWITCH]), UINT32_MAX);
        ck_assert_int_eq(channel_fault(rig.end[CHANNEL_SWITCH]), CHANNEL_OK);
        /* Another end in its place, as the child's indices are not this process's. */
        struct channel_memory m = {.fd = -1, .slots = CHANNEL_SLOTS_MIN, .frame_max = RIG_FRAME};
        io->ops->close(io);
        m.size = rig.size;
        m.base = mremap(rig.base, 0, rig.size, MREMAP_MAYMOVE); /* a second mapping of it */
        ck_assert_ptr_ne(m.base, MAP_FAILED);
        ck_assert_int_eq(channel_open(CHANNEL_PROGRAM, &m, fcntl(rig.event, F_DUPFD_CLOEXEC, 0), 0,
                                      &rig.end[CHANNEL_PROGRAM]),
                         0);
    }
    rig_close(&rig);
}
END_TEST

UNIT_MAIN("channel", few_frames_use_few_slots, bursts_pass_whole, a_shape_is_checked,
          shm_10_sealed_memory_stays_whole, shm_10_memory_that_cannot_be_sealed_is_refused,
          metadata_goes_with_its_frame, shm_02_wrong_indices_end_the_channel,
          shm_02_an_index_goes_forward_only, shm_01_descriptors_that_are_wrong_lose_their_frame,
          moving_nowhere_only_stops, a_link_that_is_down_sends_nothing,
          growing_keeps_every_frame_and_their_order, a_channel_grows_again_and_again,
          shm_07_frames_of_a_killed_program_are_still_there)
