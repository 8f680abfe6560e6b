/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Our memif driver and DPDK's: dpdk-testpmd is the other end, once as client and once as server.
 *
 *     memif_testpmd PATH-OF-DPDK-TESTPMD
 *
 * It echoes numbered frames of all sizes, floods us, is flooded, and is killed; with several queues
 * it echoes the frames of each. Every octet and both sides' counters are compared. testpmd leaves
 * before our port does: when its peer exits first it can crash.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "memif.h"

#define ETHERNET 14u
#define FLOOD    100000u
#define PATIENCE UINT64_C(20000000000)
#define OUTPUT   16384u
#define LONGEST  9000u

static const char *program;
static char folder[] = "/tmp/urnic-testpmd-XXXXXX";

static uint64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- dpdk-testpmd, steered over its standard input ---- */

struct testpmd {
    pid_t pid;
    int in, out;
    char said[OUTPUT]; /* since the last command */
};

static void first_and_last_core(int *first, int *last)
{
    cpu_set_t set;
    *first = *last = 0;
    if (sched_getaffinity(0, sizeof(set), &set))
        return;
    while (*first < CPU_SETSIZE - 1 && !CPU_ISSET(*first, &set))
        (*first)++;
    for (int i = *first; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &set))
            *last = i;
}

/* Read until the output ends in the prompt, after `word`: a prompt alone may be a late one of an
 * earlier command. Returns false if it doesn't come. */
static bool testpmd_prompt(struct testpmd *t, const char *word)
{
    uint64_t end = now_ns() + PATIENCE;
    size_t len = 0;
    while (now_ns() < end) {
        struct pollfd pfd = {.fd = t->out, .events = POLLIN};
        if (poll(&pfd, 1, 100) != 1)
            continue;
        ssize_t n = read(t->out, t->said + len, sizeof(t->said) - 1 - len);
        if (n <= 0)
            return false;
        len += (size_t)n;
        t->said[len] = '\0';
        if (len >= 9 && !strcmp(t->said + len - 9, "testpmd> ") && strstr(t->said, word))
            return true;
        if (len > OUTPUT / 2) { /* only the end matters */
            memmove(t->said, t->said + len - 64, 64);
            len = 64;
        }
    }
    return false;
}

static void testpmd_ask(struct testpmd *t, const char *command, const char *word)
{
    char line[128];
    int len = snprintf(line, sizeof(line), "%s\n", command);
    ck_assert_int_eq(write(t->in, line, (size_t)len), len);
    ck_assert_msg(testpmd_prompt(t, word), "testpmd: '%s': %s", command, t->said);
}

static void testpmd_say(struct testpmd *t, const char *command)
{
    testpmd_ask(t, command, command);
}

/* The number after `name` in the port's statistics. */
static uint64_t testpmd_stat(struct testpmd *t, const char *name)
{
    testpmd_ask(t, "show port stats 0", "Tx-bps");
    const char *at = strstr(t->said, name);
    ck_assert_msg(at, "no %s in: %s", name, t->said);
    return strtoull(at + strlen(name), NULL, 10);
}

/* A terminal for its standard output, which it would otherwise buffer. Returns both ends. */
static void terminal(int ends[2])
{
    ends[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    ck_assert_int_ge(ends[0], 0);
    ck_assert_int_eq(grantpt(ends[0]), 0);
    ck_assert_int_eq(unlockpt(ends[0]), 0);
    ends[1] = open(ptsname(ends[0]), O_RDWR | O_NOCTTY | O_CLOEXEC);
    ck_assert_int_ge(ends[1], 0);
}

static void testpmd_start_queues(struct testpmd *t, const char *role, unsigned queues)
{
    char vdev[160], lcores[64], prefix[64], rxq[16], txq[16];
    int in[2], out[2], first, last;
    first_and_last_core(&first, &last);
    snprintf(vdev, sizeof(vdev), "--vdev=net_memif0,role=%s,socket=%s/sock,socket-abstract=no",
             role, folder);
    snprintf(lcores, sizeof(lcores), "--lcores=0@%d,1@%d", first, last);
    snprintf(prefix, sizeof(prefix), "--file-prefix=urnic-memif-%d", (int)getpid());
    snprintf(rxq, sizeof(rxq), "--rxq=%u", queues);
    snprintf(txq, sizeof(txq), "--txq=%u", queues);
    ck_assert_int_eq(pipe2(in, O_CLOEXEC), 0);
    terminal(out);
    t->pid = fork();
    ck_assert_int_ge(t->pid, 0);
    if (t->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(in[0], 0);
        dup2(out[1], 1);
        dup2(out[1], 2);
        execl(program, program, "--no-huge", "--no-shconf", "--no-pci", "--no-telemetry", "-m",
              "128", prefix, lcores, vdev, "--", "-i", "--total-num-mbufs=16384",
              "--port-topology=loop", rxq, txq, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    t->in = in[1];
    t->out = out[0];
    ck_assert_msg(testpmd_prompt(t, ""), "testpmd didn't start: %s", t->said);
}

static void testpmd_start(struct testpmd *t, const char *role)
{
    testpmd_start_queues(t, role, 1);
}

static void testpmd_end(struct testpmd *t, bool killed)
{
    uint64_t end = now_ns() + PATIENCE;
    int status;
    if (killed)
        kill(t->pid, SIGKILL);
    else
        ck_assert_int_eq(write(t->in, "quit\n", 5), 5);
    while (waitpid(t->pid, &status, WNOHANG) == 0) {
        char rest[256];
        struct pollfd pfd = {.fd = t->out, .events = POLLIN};
        if (poll(&pfd, 1, 10) == 1 && read(t->out, rest, sizeof(rest)) < 0)
            usleep(1000); /* hung up, not yet reaped */
        ck_assert_msg(now_ns() < end, "testpmd doesn't end");
    }
    close(t->in);
    close(t->out);
}

/* ---- our side ---- */

static struct io_port *open_port(const char *role)
{
    struct io_open_params params = {.frame_max = IO_FRAME_MAX};
    struct io_port *io = NULL;
    char spec[IO_SPEC_MAX], err[256] = "";
    snprintf(spec, sizeof(spec), "memif:%s/sock,role=%s", folder, role);
    ck_assert_msg(io_open(spec, &params, &io, err, sizeof(err)) == 0, "%s", err);
    return io;
}

static void wait_link(struct io_port *io, bool up)
{
    uint64_t end = now_ns() + PATIENCE;
    struct io_link link;
    do {
        io->ops->service(io, now_ns());
        io->ops->link(io, &link);
        ck_assert_msg(now_ns() < end, "link doesn't go %s", up ? "up" : "down");
        usleep(500);
    } while (link.up != up);
}

static struct io_stats stats_of(struct io_port *io)
{
    struct io_stats stats;
    io->ops->stats(io, &stats);
    return stats;
}

/* Frame `number`: broadcast from a local address, an experimental EtherType, then octets that
 * follow from the number. */
static void frame_write(uint8_t *data, uint32_t len, uint32_t number)
{
    static const uint8_t head[ETHERNET] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2,
                                           0,    0,    0,    0,    1,    0x88, 0xb5};
    memcpy(data, head, sizeof(head));
    for (uint32_t i = ETHERNET; i < len; i++)
        data[i] = (uint8_t)(number * 131 + i * 7 + (i >> 8));
}

static uint32_t frame_len(uint32_t number, uint32_t max)
{
    return 60 + (number * 2654435761u >> 7) % (max - 60 + 1);
}

static void frame_check(const struct io_frame *f, uint32_t number, uint32_t max)
{
    static uint8_t expected[IO_FRAME_MAX];
    uint32_t len = frame_len(number, max);
    frame_write(expected, len, number);
    ck_assert_msg(f->len == len, "frame %u has %u octets, not %u", number, f->len, len);
    ck_assert_msg(!memcmp(f->data, expected, len), "frame %u of %u octets is damaged", number, len);
}

/* Send `count` frames of up to `max` octets to testpmd, which sends them back; at most `window` are
 * in flight, since testpmd drops frames that it can't send at once. */
static void echo(struct io_port *io, uint32_t count, uint32_t max, uint32_t window)
{
    uint64_t end = now_ns() + PATIENCE;
    uint32_t sent = 0, got = 0;
    while (got < count) {
        struct io_slot slots[IO_BURST_MAX];
        struct io_frame frames[IO_BURST_MAX];
        uint32_t want = window - (sent - got);

        want = want > count - sent ? count - sent : want;
        unsigned n = io->ops->tx_reserve(io, slots, want > 32 ? 32 : want, 0);
        for (unsigned i = 0; i < n; i++, sent++) {
            slots[i].len = frame_len(sent, max);
            frame_write(slots[i].data, slots[i].len, sent);
        }
        io->ops->tx_commit(io, slots, n, 0);
        n = io->ops->rx_peek(io, frames, IO_BURST_MAX, 0);
        for (unsigned i = 0; i < n; i++, got++)
            frame_check(&frames[i], got, max);
        io->ops->rx_release(io, n);
        ck_assert_msg(now_ns() < end, "%u frames sent, %u came back", sent, got);
    }
}

/* ---- the tests ---- */

static void test_echo(struct testpmd *t, struct io_port *io)
{
    testpmd_say(t, "set fwd io");
    testpmd_say(t, "start");
    echo(io, FLOOD, 1514, 256);
    echo(io, FLOOD / 20, LONGEST, 64); /* in chains: both sides have buffers of 2048 octets */
    testpmd_say(t, "stop");
    ck_assert_uint_eq(stats_of(io).rx_frames, stats_of(io).tx_frames);
    ck_assert_uint_eq(stats_of(io).rx_bytes, stats_of(io).tx_bytes);
}

static uint64_t take_udp(struct io_port *io)
{
    struct io_frame frames[IO_BURST_MAX];
    unsigned n = io->ops->rx_peek(io, frames, IO_BURST_MAX, 0);
    bool good = true;
    for (unsigned i = 0; i < n; i++) {
        const uint8_t *d = frames[i].data;
        good &= frames[i].len == 64 && d[12] == 8 && d[13] == 0 && d[14] == 0x45 && d[23] == 17;
    }
    ck_assert_msg(good, "not what testpmd sends");
    io->ops->rx_release(io, n);
    return n;
}

static void test_flood_from_testpmd(struct testpmd *t, struct io_port *io)
{
    uint64_t before = stats_of(io).rx_frames, got = 0, end = now_ns() + PATIENCE, quiet = 0;
    testpmd_say(t, "set fwd txonly");
    testpmd_say(t, "clear port stats all");
    testpmd_say(t, "start");
    uint64_t start = now_ns();
    while (got < FLOOD * 3 && now_ns() < end)
        got += take_udp(io);
    uint64_t took = now_ns() - start;
    testpmd_say(t, "stop");
    while (quiet++ < 1000)
        if (take_udp(io))
            quiet = 0;
    ck_assert_uint_ge(got, FLOOD);
    ck_assert_uint_eq(stats_of(io).rx_frames - before, testpmd_stat(t, "TX-packets: "));
    ck_assert_uint_eq(stats_of(io).rx_drop + stats_of(io).rx_oversize, 0);
    printf("testpmd sends, %u octets: %.2f Mpps\n", 64u, (double)got * 1e3 / (double)took);
}

static void test_flood_to_testpmd(struct testpmd *t, struct io_port *io)
{
    uint64_t end = now_ns() + PATIENCE, received = 0;
    uint32_t sent = 0;
    testpmd_say(t, "set fwd rxonly");
    testpmd_say(t, "clear port stats all");
    testpmd_say(t, "start");
    uint64_t start = now_ns();
    while (sent < FLOOD * 3 && now_ns() < end) {
        struct io_slot slots[32];
        unsigned n = io->ops->tx_reserve(io, slots, 32, 0);
        for (unsigned i = 0; i < n; i++) {
            slots[i].len = 64;
            frame_write(slots[i].data, 64, sent++);
        }
        io->ops->tx_commit(io, slots, n, 0);
    }
    uint64_t took = now_ns() - start;
    while (received < sent && now_ns() < end)
        received = testpmd_stat(t, "RX-packets: ");
    testpmd_say(t, "stop");
    ck_assert_uint_ge(sent, FLOOD);
    ck_assert_uint_eq(received, sent);
    printf("testpmd receives, %u octets: %.2f Mpps\n", 64u, (double)sent * 1e3 / (double)took);
}

static const struct {
    const char *ours, *theirs;
} roles[] = {{"server", "client"}, {"client", "server"}};

START_TEST(testpmd_and_we_understand_each_other)
{
    bool server = _i == 0;
    struct io_port *io = NULL;
    struct testpmd t;
    char path[64];
    snprintf(path, sizeof(path), "%s/sock", folder);
    unlink(path);
    if (server)
        io = open_port(roles[_i].ours);
    testpmd_start(&t, roles[_i].theirs);
    if (!server)
        io = open_port(roles[_i].ours);
    wait_link(io, true);
    printf("we are the %s\n", roles[_i].ours);
    test_echo(&t, io);
    test_flood_from_testpmd(&t, io);
    test_flood_to_testpmd(&t, io);
    testpmd_end(&t, false);
    wait_link(io, false);

    /* It comes back, is killed in the middle of a flood, and comes back again. */
    for (int round = 0; round < 2; round++) {
        testpmd_start(&t, roles[_i].theirs);
        wait_link(io, true);
        testpmd_say(&t, "set fwd io");
        testpmd_say(&t, "start");
        echo(io, 1000, 1514, 64);
        testpmd_end(&t, true);
        wait_link(io, false);
        if (!server)
            unlink(path); /* a killed server leaves its socket, and DPDK then can't listen */
    }
    io->ops->close(io);
}
END_TEST

static bool has_link(struct io_port *io)
{
    struct io_link link;
    io->ops->service(io, now_ns());
    io->ops->link(io, &link);
    return link.up;
}

/* A port of four workers, and a testpmd that has two queues: two of the workers have a ring pair.
 * As a server it says only when it is asked for a third one that it has no more. */
START_TEST(several_queues)
{
    const bool server = _i == 0;
    struct io_port *q[4] = {NULL};
    struct testpmd t;
    char path[64];
    snprintf(path, sizeof(path), "%s/sock", folder);
    unlink(path);
    if (!server)
        testpmd_start_queues(&t, roles[_i].theirs, 2);
    q[0] = open_port(roles[_i].ours);
    for (unsigned k = 1; k < 4; k++)
        ck_assert_int_eq(q[0]->ops->queue(q[0], k, 4, &q[k]), 0);
    for (unsigned round = 0; round < 2; round++) {
        if (server || round > 0)
            testpmd_start_queues(&t, roles[_i].theirs, 2);
        wait_link(q[0], true);
        for (unsigned k = 1; k < 4; k++)
            ck_assert_int_eq(has_link(q[k]), k < 2);
        testpmd_say(&t, "set fwd io");
        testpmd_say(&t, "start");
        for (unsigned k = 0; k < 2; k++) {
            echo(q[k], FLOOD / 10, 1514, 256);
            echo(q[k], FLOOD / 100, LONGEST, 64);
        }
        testpmd_say(&t, "stop");
        testpmd_end(&t, round == 1);
        wait_link(q[0], false);
        ck_assert(!has_link(q[1]));
    }
    for (unsigned k = 4; k-- > 0;) {
        const struct io_stats st = stats_of(q[k]);
        ck_assert_uint_eq(st.tx_frames, st.rx_frames);
        ck_assert_uint_eq(st.tx_frames > 0, k < 2);
        ck_assert_uint_eq(st.rx_drop + st.tx_drop + st.rx_oversize, 0);
        q[k]->ops->close(q[k]);
    }
}
END_TEST

int main(int argc, char **argv)
{
    if (argc != 2 || access(argv[1], X_OK)) {
        fprintf(stderr, "usage: memif_testpmd PATH-OF-DPDK-TESTPMD\n");
        return 77;
    }
    program = argv[1];
    if (!mkdtemp(folder))
        return 2;
    signal(SIGPIPE, SIG_IGN);
    Suite *s = suite_create("memif with dpdk-testpmd");
    TCase *c = tcase_create("testpmd");
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, testpmd_and_we_understand_each_other, 0, 2);
    tcase_add_loop_test(c, several_queues, 0, 2);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    char path[64];
    snprintf(path, sizeof(path), "%s/sock", folder);
    unlink(path);
    rmdir(folder);
    return failed != 0;
}
