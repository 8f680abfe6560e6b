/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The captures of pcaps/: each breaks the rules listed in pcaps/expected-lint.txt, and no other;
 * and no device is blamed for any mistreatment of the capture.
 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "capture_rig.h"
#include "lint.h"

#define CAPTURES 128
#define WORDS    8
#define RULES    128

struct expected {
    char name[64];
    int exit_status;
    unsigned roce, words;
    char word[WORDS][24]; /* sorted by rule */
};

static struct expected expected[CAPTURES];
static unsigned expected_n;

static bool read_expected(void)
{
    char path[512], line[512];
    snprintf(path, sizeof(path), "%s/expected-lint.txt", pcaps());
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof(line), f)) {
        if (line[0] == '#' || line[0] == '\n')
            continue;
        struct expected *e = &expected[expected_n++];
        int at, step;
        if (expected_n > CAPTURES ||
            sscanf(line, "%63s %d %u%n", e->name, &e->exit_status, &e->roce, &at) != 3)
            break;
        while (e->words < WORDS && sscanf(line + at, "%23s%n", e->word[e->words], &step) == 1) {
            at += step;
            e->words++;
        }
    }
    bool whole = f && feof(f) && expected_n > 50;
    if (f)
        fclose(f);
    if (!whole)
        fprintf(stderr, "%s: can't be read, after line of %s\n", path,
                expected_n ? expected[expected_n - 1].name : "nothing");
    return whole;
}

/* ---- judging ---- */

struct tally {
    unsigned n[RULES][LINT_VERDICTS];
    struct lint_finding last;
    const struct expected *only; /* violations of other rules are wrong */
    const char *how;
};

static bool expects(const struct expected *e, const char *rule)
{
    size_t len = strlen(rule);
    for (unsigned i = 0; i < e->words; i++) {
        const char *w = e->word[i] + (e->word[i][0] == '?');
        if (!strncmp(w, rule, len) && w[len] == ':')
            return true;
    }
    return false;
}

static void on_finding(void *ctx, const struct lint_finding *f)
{
    struct tally *t = ctx;
    size_t n;
    t->n[f->rule - lint_rules(&n)][f->verdict]++;
    t->last = *f;
    if (t->only && f->verdict == LINT_VIOLATION)
        ck_assert_msg(expects(t->only, f->rule->id),
                      "%s %s: %s at packet %llu: %s; expected %s, seen %s", t->only->name, t->how,
                      f->rule->id, (unsigned long long)f->number, f->dump, f->expected, f->seen);
}

static void feed(struct lint *l, const struct packet *k, uint64_t number, uint32_t snaplen)
{
    struct lint_view view;
    struct lint_frame f = {.number = number,
                           .ns = k->ns,
                           .data = k->data,
                           .len = k->len < snaplen ? k->len : snaplen,
                           .wire_len = k->len,
                           .interface = k->interface,
                           .no_ether = k->no_ether,
                           .sent = k->sent};
    lint_packet(l, &f, &view);
    ck_assert(view.kind < LINT_KINDS);
}

START_TEST(expected_findings)
{
    const struct expected *e = &expected[_i];
    static struct tally t;
    struct lint_totals totals;
    size_t rules_n;
    const struct lint_rule *rules = lint_rules(&rules_n);
    unsigned words = 0, violations = 0;
    load(e->name);
    memset(&t, 0, sizeof(t));
    struct lint *l = lint_new(on_finding, &t, 0);
    for (unsigned i = 0; i < packets_n; i++)
        feed(l, &packets[i], i + 1, UINT32_MAX);
    lint_end(l);
    lint_totals(l, &totals);
    lint_free(l);
    ck_assert_uint_eq(totals.roce, e->roce);
    /* Our own captures show damage if they are about it. */
    bool damage = strstr(e->name, "-corrupt") || strstr(e->name, "own-all-faults");
    if (!strstr(e->name, "-faults.")) /* there damage is random */
        ck_assert_int_eq(totals.corrupt > 0, damage);
    for (size_t i = 0; i < rules_n; i++)
        for (int v = 0; v < LINT_VERDICTS; v++) {
            char word[24];
            bool found = false;
            if (!t.n[i][v])
                continue;
            violations += v == LINT_VIOLATION;
            snprintf(word, sizeof(word), "%s%s:%u",
                     v == LINT_VIOLATION     ? ""
                     : v == LINT_UNDECIDABLE ? "?"
                                             : "~",
                     rules[i].id, t.n[i][v]);
            for (unsigned w = 0; w < e->words; w++)
                found |= !strcmp(word, e->word[w]);
            ck_assert_msg(found, "%s: found %s", e->name, word);
            words++;
        }
    ck_assert_msg(words == e->words, "%s: %u of %u kinds of findings", e->name, words, e->words);
    ck_assert_int_eq(violations > 0, e->exit_status);
}
END_TEST

/* Changes that a capture point may make to packets. */
enum harm { MISS, MISS_A, MISS_B, ONE_WAY, MIDDLE, SWAP, DOUBLE, FLIP, CUT, HARMS };
static const char *const harms[HARMS] = {
    "with packets missing", "with requests missing", "with responses missing",
    "in one direction",     "from the middle on",    "reordered",
    "with packets doubled", "with bits flipped",     "cut at 64 octets"};

static uint32_t rng;

static bool hit(unsigned one_in)
{
    rng = rng * 1664525u + 1013904223u;
    return (rng >> 8) % one_in == 0;
}

static void harmed(struct lint *l, enum harm harm)
{
    uint64_t number = 0;
    for (unsigned i = 0; i < packets_n; i++) {
        struct packet *k = &packets[i];
        bool from_a = k->data[11] == 1;
        if ((harm == MISS && hit(12)) || (harm == MISS_A && from_a && hit(5)) ||
            (harm == MISS_B && !from_a && hit(5)) || (harm == ONE_WAY && from_a) ||
            (harm == MIDDLE && i < packets_n / 2))
            continue;
        if (harm == SWAP && i + 2 < packets_n && hit(10)) { /* later packets overtake it */
            feed(l, &packets[i + 1], ++number, UINT32_MAX);
            feed(l, &packets[i + 2], ++number, UINT32_MAX);
            feed(l, k, ++number, UINT32_MAX);
            i += 2;
            continue;
        }
        uint32_t bit = (rng >> 4) % (k->len * 8);
        bool flip = harm == FLIP && hit(15);
        k->data[bit / 8] ^= (uint8_t)(flip << bit % 8);
        feed(l, k, ++number, harm == CUT ? 64 : UINT32_MAX);
        if (harm == DOUBLE && hit(10))
            feed(l, k, ++number, UINT32_MAX);
        k->data[bit / 8] ^= (uint8_t)(flip << bit % 8);
    }
}

START_TEST(harm_accuses_nobody)
{
    const struct expected *e = &expected[_i];
    static struct tally t;
    load(e->name);
    rng = (uint32_t)_i + 1;
    for (enum harm h = 0; h < HARMS; h++) {
        t = (struct tally){.only = e, .how = harms[h]};
        struct lint *l = lint_new(on_finding, &t, 0);
        harmed(l, h);
        lint_end(l);
        lint_free(l);
    }
}
END_TEST

/* ---- damaged files ---- */

static uint8_t *read_file(const char *name, size_t *len)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", pcaps(), name);
    FILE *f = fopen(path, "rb");
    ck_assert_ptr_nonnull(f);
    fseek(f, 0, SEEK_END);
    *len = (size_t)ftell(f);
    rewind(f);
    uint8_t *data = malloc(*len);
    ck_assert_uint_eq(fread(data, 1, *len, f), *len);
    fclose(f);
    return data;
}

/* Make the iCRC right again, as far as there is one: else no damage gets past it. */
static void mend(uint8_t *f, size_t len)
{
    struct wire_pkt p;
    (void)wire_parse(f, len, WIRE_P_V1 | WIRE_P_IP_CSUM_OK | WIRE_P_NO_ICRC, &p);
    if (!p.icrc_off || p.icrc_off + WIRE_ICRC_LEN > len)
        return;
    uint32_t crc = wire_icrc(f, p.icrc_off + WIRE_ICRC_LEN, p.ip_off, p.bth_off);
    for (int i = 0; i < 4; i++)
        f[p.icrc_off + (unsigned)i] = (uint8_t)(crc >> 8 * i);
}

static void judge_file(const uint8_t *data, size_t len, bool mended)
{
    static uint8_t frame[CAPREAD_FRAME_MAX + 64];
    struct tally t = {0};
    struct capread *c;
    struct capread_packet p;
    struct lint_totals totals;
    char why[128];
    if (capread_open_mem(data, len, &c, why, sizeof(why)) < 0)
        return;
    struct lint *l = lint_new(on_finding, &t, 0);
    while (capread_next(c, &p) == 1) {
        memcpy(frame, p.frame, p.len);
        if (mended)
            mend(frame, p.len);
        struct lint_frame f = {
            .number = p.number, .ns = p.ns, .data = frame, .len = p.len, .wire_len = p.wire_len};
        lint_packet(l, &f, NULL);
    }
    lint_end(l);
    lint_totals(l, &totals);
    ck_assert_uint_le(totals.roce + totals.other, totals.frames);
    lint_free(l);
    capread_close(c);
}

/* Mutated captures: neither reader nor tracker loses its footing. URNIC_MUTATIONS of each (8). */
START_TEST(sec_03_mutated_captures)
{
    const char *env = getenv("URNIC_MUTATIONS");
    unsigned rounds = env ? (unsigned)atoi(env) : 8;
    size_t len;
    uint8_t *good = read_file(expected[_i].name, &len), *bad = malloc(len);
    rng = 77 + (uint32_t)_i;
    for (unsigned n = 0; n < rounds; n++) {
        size_t now = len;
        memcpy(bad, good, len);
        for (unsigned k = 0; k < 1 + n * 7 % 60; k++) {
            hit(2);
            size_t at = rng % now;
            if (hit(3))
                bad[at] = (uint8_t)(rng >> 9);
            else if (hit(8) && now - at > 64) /* octets fall out */
                memmove(bad + at, bad + at + 5, (now -= 5) - at);
            else
                bad[at] ^= (uint8_t)(1u << (rng >> 13 & 7));
        }
        judge_file(bad, now, n % 2);
    }
    free(good);
    free(bad);
}
END_TEST

/* Every capture of the folder has its line. */
START_TEST(every_capture_is_listed)
{
    unsigned n = 0;
    DIR *d = opendir(pcaps());
    ck_assert_ptr_nonnull(d);
    for (struct dirent *e; (e = readdir(d));) {
        size_t len = strlen(e->d_name);
        bool found = false;
        if (!(len > 5 && !strcmp(e->d_name + len - 5, ".pcap")) &&
            !(len > 7 && !strcmp(e->d_name + len - 7, ".pcapng")))
            continue;
        for (unsigned i = 0; i < expected_n; i++)
            found |= !strcmp(expected[i].name, e->d_name);
        ck_assert_msg(found, "%s is not in expected-lint.txt", e->d_name);
        n++;
    }
    closedir(d);
    ck_assert_uint_eq(n, expected_n);
}
END_TEST

int main(void)
{
    if (!read_expected())
        return EXIT_FAILURE;
    Suite *s = suite_create("lint captures");
    TCase *t = tcase_create("lint captures");
    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, expected_findings, 0, (int)expected_n);
    tcase_add_loop_test(t, harm_accuses_nobody, 0, (int)expected_n);
    tcase_add_loop_test(t, sec_03_mutated_captures, 0, (int)expected_n);
    tcase_add_test(t, every_capture_is_listed);
    suite_add_tcase(s, t);
    return unit_run(s);
}
