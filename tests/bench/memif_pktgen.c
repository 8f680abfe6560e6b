/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How fast frames go through a memif port. One JSON object a line and run, in the form of the other
 * benches; value is the median of the samples, counted by the receiver:
 *
 *     {"name":"memif_c2s_copy_4162","value":4962144,"unit":"pps","mpps":...,"samples":[...]}
 *
 *     memif_pktgen [-s 74,1098,4162] [-t SECONDS] [-w touch|copy] [-r ROLE] [-b BURST] [-o OPTIONS]
 *         two processes on two cores, one sends to the other; ROLE says which role the sender has
 *     memif_pktgen -x tx|rx -p SPEC [...]
 *         one end only, against another program (dpdk-testpmd, VPP)
 *
 * Work "touch" writes and reads one cache line of each frame; "copy" copies the frame from a 1 MiB
 * working set into the ring and out of it into another.
 */
#include <getopt.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "io.h"

#define WORKING_SET (1u << 20)
#define SAMPLES     5
#define CONNECT_NS  UINT64_C(3000000000)
#define WARM_UP_NS  100000000u
#define SERVICE_NS  1000000u
#define HEADER      64u
#define SIZES_MAX   32u

struct options {
    uint32_t size[SIZES_MAX];
    unsigned sizes;
    double seconds;
    bool copy;
    bool sender_is_server;
    unsigned burst;
    const char *extra; /* appended to the specification */
    const char *spec;  /* one end only */
    bool tx;
};

/* Shared by the two processes of a pair. */
struct pair {
    _Atomic bool stop;
    _Atomic uint64_t frames;
    _Atomic uint64_t checksum; /* keeps the reads from being optimized away */
};

struct end {
    struct io_port *io;
    uint8_t *memory;
    uint32_t at;
    uint64_t service_at;
    uint64_t checksum;
};

/* The next piece of the working set; wraps before its end. */
static uint8_t *working(struct end *e, uint32_t len)
{
    if (e->at + len > WORKING_SET)
        e->at = 0;
    uint8_t *p = e->memory + e->at;
    e->at += (len + HEADER - 1) & ~(HEADER - 1);
    return p;
}

static unsigned send_burst(struct end *e, const struct options *o, uint32_t size)
{
    struct io_slot slots[IO_BURST_MAX];
    unsigned n = e->io->ops->tx_reserve(e->io, slots, o->burst, 0);
    for (unsigned i = 0; i < n; i++) {
        uint32_t len = o->copy || size < HEADER ? size : HEADER;
        memcpy(slots[i].data, working(e, len), len);
        slots[i].len = size;
    }
    if (n)
        e->io->ops->tx_commit(e->io, slots, n, 0);
    return n;
}

static unsigned receive_burst(struct end *e, const struct options *o)
{
    struct io_frame frames[IO_BURST_MAX];
    unsigned n = e->io->ops->rx_peek(e->io, frames, o->burst, 0);
    for (unsigned i = 0; i < n; i++) {
        if (o->copy)
            memcpy(working(e, frames[i].len), frames[i].data, frames[i].len);
        else
            e->checksum += frames[i].data[frames[i].len < HEADER ? 0 : HEADER - 1];
    }
    if (n)
        e->io->ops->rx_release(e->io, n);
    return n;
}

static struct end end_open(const char *spec, uint32_t frame_max)
{
    struct io_open_params params = {.frame_max = frame_max};
    struct end e = {0};
    char err[256] = "";
    if (io_open(spec, &params, &e.io, err, sizeof(err))) {
        fprintf(stderr, "memif_pktgen: %s\n", err);
        exit(1);
    }
    e.memory = aligned_alloc(4096, WORKING_SET);
    if (!e.memory)
        exit(1);
    /* A broadcast Ethernet frame, so that a real receiver takes it. */
    for (uint32_t i = 0; i < WORKING_SET; i++)
        e.memory[i] = i % HEADER < 12 ? 0xff : (uint8_t)i;
    return e;
}

static void end_service(struct end *e)
{
    uint64_t now = clock_ns();
    if (now < e->service_at)
        return;
    e->io->ops->service(e->io, now);
    e->service_at = now + SERVICE_NS;
}

static void end_close(struct end *e)
{
    e->io->ops->close(e->io);
    free(e->memory);
}

/* Move frames until a signal stops the program. Reading the clock every 256 bursts costs nothing.
 */
static void end_run(struct end *e, const struct options *o, bool tx, uint32_t size,
                    struct pair *pair)
{
    uint64_t frames = 0;
    for (unsigned round = 0; !atomic_load_explicit(&pair->stop, memory_order_relaxed); round++) {
        unsigned n = tx ? send_burst(e, o, size) : receive_burst(e, o);
        frames += n;
        if (round % 256 == 0) {
            end_service(e);
            atomic_store_explicit(&pair->frames, frames, memory_order_relaxed);
        }
    }
    atomic_store(&pair->frames, frames);
    atomic_fetch_add(&pair->checksum, e->checksum);
}

static void sleep_ns(uint64_t ns)
{
    struct timespec ts = {.tv_sec = (time_t)(ns / 1000000000u),
                          .tv_nsec = (long)(ns % 1000000000u)};
    nanosleep(&ts, NULL);
}

static void report(const struct options *o, const char *what, uint32_t size, const double *pps)
{
    double sorted[SAMPLES];
    memcpy(sorted, pps, sizeof(sorted));
    qsort(sorted, SAMPLES, sizeof(sorted[0]), by_size);
    double median = sorted[SAMPLES / 2];
    printf("{\"name\":\"memif_%s_%s_%u\",\"value\":%.0f,\"unit\":\"pps\",\"mpps\":%.3f,"
           "\"gbps\":%.3f,\"size\":%u,\"burst\":%u,\"samples\":[",
           what, o->copy ? "copy" : "touch", size, median, median / 1e6, median * size * 8 / 1e9,
           size, o->burst);
    for (unsigned i = 0; i < SAMPLES; i++)
        printf("%s%.0f", i ? "," : "", pps[i]);
    printf("]}\n");
    fflush(stdout);
}

/* Measure in the middle of the run: neither the connection nor the end counts. */
static bool measure(const struct options *o, const char *what, uint32_t size, struct pair *pair)
{
    uint64_t deadline = clock_ns() + CONNECT_NS;
    double pps[SAMPLES];
    while (atomic_load(&pair->frames) == 0) {
        sleep_ns(1000000);
        if (clock_ns() > deadline) {
            fprintf(stderr, "memif_pktgen: no frame moved\n");
            atomic_store(&pair->stop, true);
            return false;
        }
    }
    sleep_ns(WARM_UP_NS);
    for (unsigned i = 0; i < SAMPLES; i++) {
        uint64_t start = clock_ns(), frames = atomic_load(&pair->frames);
        sleep_ns((uint64_t)(o->seconds * 1e9 / SAMPLES));
        frames = atomic_load(&pair->frames) - frames;
        pps[i] = (double)frames * 1e9 / (double)(clock_ns() - start);
    }
    report(o, what, size, pps);
    atomic_store(&pair->stop, true);
    return true;
}

static pid_t start_end(const struct options *o, const char *spec, bool tx, uint32_t size, int core,
                       struct pair *pair)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    pin(core);
    struct end e = end_open(spec, size);
    end_run(&e, o, tx, size, pair);
    end_close(&e);
    _exit(0);
}

static struct pair *pair_new(void)
{
    struct pair *pair = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (pair == MAP_FAILED)
        exit(1);
    return pair;
}

static bool run_pair(const struct options *o, uint32_t size)
{
    /* One page each: only the receiver's count is reported. */
    struct pair *rx = pair_new(), *tx = pair_new();
    char spec[2][192];

    for (unsigned server = 0; server < 2; server++)
        snprintf(spec[server], sizeof(spec[server]), "memif:@urnic-pktgen-%d,role=%s%s%s",
                 (int)getpid(), server ? "server" : "client", o->extra ? "," : "",
                 o->extra ? o->extra : "");
    pid_t a = start_end(o, spec[!o->sender_is_server], false, size, 0, rx);
    pid_t b = start_end(o, spec[o->sender_is_server], true, size, 1, tx);
    bool good = measure(o, o->sender_is_server ? "s2c" : "c2s", size, rx);
    atomic_store(&tx->stop, true);
    waitpid(a, NULL, 0);
    waitpid(b, NULL, 0);
    munmap(rx, 4096);
    munmap(tx, 4096);
    return good;
}

static bool run_one(const struct options *o, uint32_t size)
{
    struct pair *pair = pair_new();
    pid_t pid = start_end(o, o->spec, o->tx, size, 0, pair);
    bool good = measure(o, o->tx ? "tx" : "rx", size, pair);
    waitpid(pid, NULL, 0);
    munmap(pair, 4096);
    return good;
}

static void parse_sizes(struct options *o, char *text)
{
    o->sizes = 0;
    for (char *word = strtok(text, ","); word && o->sizes < SIZES_MAX; word = strtok(NULL, ","))
        o->size[o->sizes++] = (uint32_t)strtoul(word, NULL, 10);
}

static bool valid(const struct options *o)
{
    for (unsigned i = 0; i < o->sizes; i++)
        if (o->size[i] < 14 || o->size[i] > IO_FRAME_MAX)
            return false;
    return o->burst >= 1 && o->burst <= IO_BURST_MAX && o->seconds > 0 && o->sizes;
}

int main(int argc, char **argv)
{
    struct options o = {.size = {74, 1098, 4162}, .sizes = 3, .seconds = 1, .burst = 32};
    bool good = true;
    int c;
    while ((c = getopt(argc, argv, "s:t:w:r:b:o:x:p:")) != -1) {
        switch (c) {
        case 's':
            parse_sizes(&o, optarg);
            break;
        case 't':
            o.seconds = strtod(optarg, NULL);
            break;
        case 'w':
            o.copy = !strcmp(optarg, "copy");
            good &= o.copy || !strcmp(optarg, "touch");
            break;
        case 'r':
            o.sender_is_server = !strcmp(optarg, "server");
            good &= o.sender_is_server || !strcmp(optarg, "client");
            break;
        case 'b':
            o.burst = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'o':
            o.extra = optarg;
            break;
        case 'x':
            o.tx = !strcmp(optarg, "tx");
            good &= o.tx || !strcmp(optarg, "rx");
            break;
        case 'p':
            o.spec = optarg;
            break;
        default:
            good = false;
        }
    }
    if (!good || !valid(&o)) {
        fprintf(stderr,
                "usage: memif_pktgen [-s SIZE,...] [-t SECONDS] [-w touch|copy] [-r server|client] "
                "[-b BURST] [-o OPTIONS] [-x tx|rx -p SPEC]\n"
                "sizes are 14 to %u octets, a burst 1 to %u frames\n",
                IO_FRAME_MAX, IO_BURST_MAX);
        return 2;
    }
    for (unsigned i = 0; i < o.sizes && good; i++)
        good = o.spec ? run_one(&o, o.size[i]) : run_pair(&o, o.size[i]);
    return good ? 0 : 1;
}
