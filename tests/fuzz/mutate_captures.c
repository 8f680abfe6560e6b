/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Golden captures, spoilt in every way, through `urnic lint` and `urnic replay`: SEC-03.
 *
 *     mutate_captures [--count N] [--seed S] [--at CAPTURE ROUND] FOLDER
 *
 * Each round takes the next capture of the folder. One round in four spoils octets of the file; the
 * others spoil packets of a stretch of it, header fields before all, and mend the iCRC of most so
 * that they get past it. Both tools must come to an end within seconds, in bounded memory, with
 * counts that add up. Rounds follow from the seed: --at repeats one, and is printed when something
 * goes wrong.
 */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "capread.h"
#include "fuzz.h"
#include "replay.h"
#include "wire_bytes.h"

#define CAPTURES_MAX 512u
#define STRETCH_MAX  64u /* packets in a damaged run */
#define PACKET_MAX   4400u
#define SECONDS      20u          /* for one capture */
#define GROWTH_MAX   (768u << 10) /* KiB of memory that all rounds together may add */
#define FLOWS        4096u
#define OCTETS_MAX   (8u << 20)

struct capture {
    char name[256];
    uint8_t *file;
    size_t len;
};

struct packet {
    uint64_t ns;
    uint32_t len, kept, interface;
    uint8_t data[PACKET_MAX];
};

static struct capture capture[CAPTURES_MAX];
static unsigned captures;
static uint64_t rng, seed = 1, round_n;
static const char *current = "";
static struct {
    unsigned long long frames, findings, compared, differences;
} sum;

static uint64_t next(void)
{
    uint64_t z = rng += 0x9E3779B97F4A7C15ull;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ z >> 27) * 0x94D049BB133111EBull;
    return z ^ z >> 31;
}

static uint32_t below(uint64_t n)
{
    return n ? (uint32_t)(next() % n) : 0;
}

/* ---- where it went wrong ---- */

static void say_where(void)
{
    char text[400];
    // NOLINTNEXTLINE(bugprone-signal-handler): it crashes anyway, and glibc formats in place
    int n = snprintf(text, sizeof(text), "again: mutate_captures --seed %llu --at %s %llu\n",
                     (unsigned long long)seed, current, (unsigned long long)round_n);
    (void)!write(STDERR_FILENO, text, (size_t)n);
}

static void on_signal(int sig)
{
    say_where();
    signal(sig, SIG_DFL);
    raise(sig);
}

void __asan_on_error(void);
void __asan_on_error(void) /* AddressSanitizer calls it before it ends the process */
{
    say_where();
}

/* ---- the tools ---- */

struct tools {
    struct lint *lint;
    struct replay *replay;
    uint64_t frames, differences;
};

static void on_finding(void *ctx, const struct lint_finding *f)
{
    const struct tools *t = ctx;
    sum.findings++;
    FUZZ_CHECK(f->rule && f->verdict < LINT_VERDICTS);
    FUZZ_CHECK(f->number >= 1 && f->number <= t->frames);
    FUZZ_CHECK(memchr(f->dump, 0, sizeof(f->dump)) && f->dump[0]);
    FUZZ_CHECK(!f->why[0] == (f->verdict == LINT_VIOLATION));
}

static void on_difference(void *ctx, const struct replay_difference *d)
{
    struct tools *t = ctx;
    t->differences++;
    FUZZ_CHECK(d->rule && d->rule[0] && d->field && d->field[0]);
    FUZZ_CHECK(d->number >= 1 && d->number <= t->frames);
    FUZZ_CHECK(memchr(d->capture, 0, sizeof(d->capture)) && memchr(d->ours, 0, sizeof(d->ours)));
}

static void on_result(void *ctx, const struct replay_outcome *o)
{
    (void)ctx;
    FUZZ_CHECK(o->unanswered == !o->compared && o->same <= o->compared);
}

static void tools_begin(struct tools *t)
{
    *t = (struct tools){.replay = replay_new(OCTETS_MAX)};
    t->lint = lint_new(on_finding, t, FLOWS);
    FUZZ_CHECK(t->lint && t->replay);
    alarm(SECONDS);
}

static void tools_take(struct tools *t, const uint8_t *data, uint32_t have,
                       const struct lint_frame *f)
{
    uint8_t *exact = malloc(have ? have : 1); /* a sanitizer notices octets after its end */
    FUZZ_CHECK(exact);
    memcpy(exact, data, have);
    struct lint_frame mine = *f;
    mine.data = exact;
    mine.len = have;
    mine.number = ++t->frames;
    lint_packet(t->lint, &mine, NULL);
    int rc = replay_add(t->replay, &mine);
    FUZZ_CHECK(rc == 0 || rc == -EFBIG);
    free(exact);
}

static void tools_end(struct tools *t)
{
    struct lint_totals l;
    struct replay_totals r;
    lint_end(t->lint);
    lint_totals(t->lint, &l);
    FUZZ_CHECK(l.roce + l.other <= l.frames && l.flows <= FLOWS);
    FUZZ_CHECK(replay_run(t->replay, REPLAY_BOTH, on_difference, on_result, t) == 0);
    replay_totals(t->replay, &r);
    FUZZ_CHECK(r.differ == t->differences);
    sum.frames += t->frames;
    sum.compared += r.compared;
    sum.differences += r.differ;
    lint_free(t->lint);
    replay_free(t->replay);
    alarm(0);
}

/* ---- spoiling octets of a file ---- */

static void spoil_file(const struct capture *c)
{
    size_t len = c->len;
    uint8_t *bad = malloc(len);
    char why[128];
    struct capread *reader;
    struct capread_packet p;
    FUZZ_CHECK(bad);
    memcpy(bad, c->file, len);
    for (unsigned k = 1 + below(40); k; k--) {
        size_t at = below(len);
        if (below(8) == 0 && len - at > 64) { /* octets fall out */
            memmove(bad + at, bad + at + 5, len - 5 - at);
            len -= 5;
        } else if (below(3) == 0) {
            bad[at] = (uint8_t)next();
        } else {
            bad[at] ^= (uint8_t)(1u << below(8));
        }
    }
    if (below(4) == 0)
        len = below(len);
    if (capread_open_mem(bad, len, &reader, why, sizeof(why)) == 0) {
        struct tools t;
        tools_begin(&t);
        while (capread_next(reader, &p) == 1) {
            struct lint_frame f = {.ns = p.ns, .wire_len = p.wire_len, .interface = p.interface};
            tools_take(&t, p.frame, p.len, &f);
        }
        tools_end(&t);
        capread_close(reader);
    }
    free(bad);
}

/* ---- spoiling packets ---- */

static unsigned load(const struct capture *c, struct packet *out)
{
    char why[128];
    struct capread *reader;
    struct capread_packet p;
    unsigned all = 0, n = 0;
    FUZZ_CHECK(capread_open_mem(c->file, c->len, &reader, why, sizeof(why)) == 0);
    while (capread_next(reader, &p) == 1)
        all++;
    capread_close(reader);
    unsigned from = below(2) ? 0 : below(all);
    FUZZ_CHECK(capread_open_mem(c->file, c->len, &reader, why, sizeof(why)) == 0);
    for (unsigned i = 0; capread_next(reader, &p) == 1 && n < STRETCH_MAX; i++) {
        if (i < from || p.len > PACKET_MAX)
            continue;
        out[n] = (struct packet){.ns = p.ns, .len = p.wire_len, .kept = p.len};
        memcpy(out[n++].data, p.frame, p.len);
    }
    capread_close(reader);
    return n;
}

static void mend(struct packet *k)
{
    struct wire_pkt p;
    (void)wire_parse(k->data, k->kept,
                     WIRE_P_LOOPBACK | WIRE_P_V1 | WIRE_P_IP_CSUM_OK | WIRE_P_NO_ICRC, &p);
    if (p.icrc_off && p.icrc_off + WIRE_ICRC_LEN <= k->kept)
        wire_put32le(k->data + p.icrc_off,
                     wire_icrc(k->data, p.icrc_off + WIRE_ICRC_LEN, p.ip_off, p.bth_off));
}

static uint64_t extreme_number(void)
{
    static const uint64_t extreme[] = {0,        1,        0x7FFFFFFF, 0x80000000, 0xFFFFFFFF,
                                       0x7FFFFF, 0x800000, 0xFFFFFF,   UINT64_MAX, 1ull << 63};
    return below(3) ? extreme[below(sizeof(extreme) / sizeof(extreme[0]))] : next();
}

/* Change one field of the transport headers, and rebuild the packet. */
static void spoil_field(struct packet *k)
{
    struct wire_pkt p;
    uint8_t old[PACKET_MAX];
    if (k->kept != k->len ||
        wire_parse(k->data, k->kept, WIRE_P_LOOPBACK | WIRE_P_V1, &p) != WIRE_OK)
        return;
    uint32_t payload = p.payload_off, len = p.payload_len;
    memcpy(old, k->data, k->kept);
    switch (below(14)) {
    case 0:
        p.opcode = (uint8_t)(below(4) ? (p.opcode & 0xE0) | below(32) : next());
        break;
    case 1:
        p.psn =
            below(2) ? (p.psn + below(64) - 32) & WIRE_PSN_MASK : extreme_number() & WIRE_PSN_MASK;
        break;
    case 2:
        p.dqpn = below(2) ? p.dqpn ^ 1 : extreme_number() & WIRE_QPN_MASK;
        break;
    case 3:
        p.dma_len = (uint32_t)extreme_number();
        break;
    case 4:
        p.va = below(2) ? p.va + below(4096) : extreme_number();
        break;
    case 5:
        p.rkey = (uint32_t)extreme_number();
        break;
    case 6:
        p.syndrome = (uint8_t)next();
        break;
    case 7:
        p.msn = extreme_number() & WIRE_PSN_MASK;
        break;
    case 8:
        p.payload_len = below(PACKET_MAX - 300);
        break;
    case 9:
        p.pkey = (uint16_t)next();
        break;
    case 10:
        p.qkey = (uint32_t)extreme_number();
        p.sqpn = extreme_number() & WIRE_QPN_MASK;
        break;
    case 11:
        p.swap_add = extreme_number();
        p.orig = extreme_number();
        break;
    case 12:
        p.selective = !p.selective;
        break;
    default:
        p.ackreq = !p.ackreq;
        p.se = !p.se;
        p.tclass ^= 3;
    }
    size_t off = wire_build(k->data, PACKET_MAX, &p);
    if (!off || wire_frame_len(&p) > PACKET_MAX) {
        memcpy(k->data, old, k->kept);
        return;
    }
    memset(k->data + off, 0, p.payload_len);
    memcpy(k->data + off, old + payload, len < p.payload_len ? len : p.payload_len);
    k->len = k->kept = (uint32_t)wire_frame_len(&p);
    wire_icrc_seal(k->data, k->len, p.ip_off, p.bth_off);
}

static void spoil_packet(struct packet *k)
{
    unsigned what = below(8);
    if (what < 4) {
        spoil_field(k);
    } else if (what < 6 && k->kept) {
        for (unsigned n = 1 + below(4); n; n--) /* mostly headers */
            k->data[below(below(4) ? (k->kept < 90 ? k->kept : 90) : k->kept)] ^=
                (uint8_t)(1u << below(8));
        if (below(4))
            mend(k);
    } else if (what == 6) {
        k->kept = below(k->kept + 1);
    } else {
        k->ns = below(4) ? k->ns + below(1000000000) : extreme_number();
        k->interface = below(3);
    }
}

static void spoil_packets(const struct capture *c)
{
    static struct packet packet[STRETCH_MAX];
    unsigned n = load(c, packet);
    struct tools t;
    for (unsigned k = below(12); n && k; k--)
        spoil_packet(&packet[below(n)]);
    tools_begin(&t);
    for (unsigned i = 0; i < n; i++) {
        unsigned times = below(16) ? 1 : below(3); /* dropped, doubled */
        const struct packet *k = &packet[below(16) ? i : below(n)];
        struct lint_frame f = {.ns = k->ns, .wire_len = k->len, .interface = k->interface};
        while (times--)
            tools_take(&t, k->data, k->kept, &f);
    }
    tools_end(&t);
}

/* ---- all ---- */

static void one_round(unsigned which, uint64_t n)
{
    current = capture[which].name;
    round_n = n;
    rng = seed * 0x9E3779B97F4A7C15ull ^ n * 0xD1B54A32D192ED03ull ^ which;
    if (n % 4 == 0)
        spoil_file(&capture[which]);
    else
        spoil_packets(&capture[which]);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct capture *)a)->name, ((const struct capture *)b)->name);
}

static int read_folder(const char *folder)
{
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[1024];
        const char *dot = strrchr(e->d_name, '.');
        if (!dot || (strcmp(dot, ".pcap") && strcmp(dot, ".pcapng")) || captures == CAPTURES_MAX)
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
        struct capture *c = &capture[captures++];
        snprintf(c->name, sizeof(c->name), "%s", e->d_name);
        FILE *f = fopen(path, "rb");
        FUZZ_CHECK(f && fseek(f, 0, SEEK_END) == 0);
        c->len = (size_t)ftell(f);
        rewind(f);
        c->file = malloc(c->len);
        FUZZ_CHECK(c->file && fread(c->file, 1, c->len, f) == c->len);
        fclose(f);
    }
    if (d)
        closedir(d);
    qsort(capture, captures, sizeof(*capture), by_name);
    return captures ? 0 : -ENOENT;
}

static long memory(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"count", required_argument, NULL, 'c'},
                                            {"seed", required_argument, NULL, 's'},
                                            {"at", required_argument, NULL, 'a'},
                                            {NULL, 0, NULL, 0}};
    uint64_t count = 1000;
    const char *at = NULL;
    int c;
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
        if (c == 'c')
            count = strtoull(optarg, NULL, 0);
        else if (c == 's')
            seed = strtoull(optarg, NULL, 0);
        else if (c == 'a')
            at = optarg;
        else
            return 2;
    if (argc - optind != (at ? 2 : 1) || read_folder(argv[argc - 1]) < 0) {
        fprintf(stderr, "usage: %s [--count N] [--seed S] [--at CAPTURE ROUND] FOLDER\n", argv[0]);
        return 2;
    }
    signal(SIGALRM, on_signal);
    signal(SIGABRT, on_signal);
    signal(SIGSEGV, on_signal);
    for (unsigned i = 0; at && i < captures; i++)
        if (!strcmp(capture[i].name, at))
            one_round(i, strtoull(argv[optind], NULL, 0));
    for (unsigned i = 0; !at && i < captures;
         i++) /* the first of each, for memory that is allocated once */
        one_round(i, i);
    long before = memory();
    for (uint64_t n = captures; !at && n < count; n++)
        one_round((unsigned)(n % captures), n);
    long after = memory();
    printf("%llu mutated captures, %llu packets: lint has %llu findings; replay compared %llu, of "
           "which "
           "%llu differ; %ld MiB at most\n",
           (unsigned long long)count, sum.frames, sum.findings, sum.compared, sum.differences,
           after / 1024);
    if (after - before > (long)GROWTH_MAX) {
        fprintf(stderr, "memory has grown from %ld to %ld KiB\n", before, after);
        return 1;
    }
    for (unsigned i = 0; i < captures; i++)
        free(capture[i].file);
    return 0;
}
