/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The specification string of an emulated link: one table of keys, read both for the first port,
 * which makes the link, and for later ones, which must agree with it.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "io_arg.h"
#include "mem_internal.h"

enum kind { COUNT, COUNT32, SIZE, RATE, TIME, PROB, SWITCH, PATH };

#define AT(field)    offsetof(struct mem_link_config, field)
#define VALUE_MAX    MEM_RULES_PATH
#define KEYS_MAX     24u
#define FRAME_MIN    64u
#define SLOTS_MAX    65536u
#define LOG_MAX      (1u << 20)
#define REORDER_MOST 1024u

static const struct key {
    const char *name;
    enum kind kind;
    size_t offset;
    uint64_t min, max; /* numbers only; max 0 = any */
} keys[] = {
    {"rate", RATE, AT(faults.rate), 0, 0},
    {"delay", TIME, AT(faults.delay), 0, 0},
    {"queue", SIZE, AT(faults.queue), 0, 0},
    {"loss", PROB, AT(faults.loss)},
    {"dup", PROB, AT(faults.dup)},
    {"reorder", PROB, AT(faults.reorder)},
    {"corrupt", PROB, AT(faults.corrupt)},
    {"reorder_gap", COUNT32, AT(faults.reorder_gap), 1, REORDER_MOST},
    {"reorder_hold", TIME, AT(faults.reorder_hold), 0, 0},
    {"ecn_kmin", SIZE, AT(faults.ecn_kmin), 0, 0},
    {"ecn_kmax", SIZE, AT(faults.ecn_kmax), 0, 0},
    {"ecn_pmax", PROB, AT(faults.ecn_pmax)},
    {"pfc", SWITCH, AT(faults.pfc)},
    {"xoff", SIZE, AT(faults.xoff), 0, 0},
    {"xon", SIZE, AT(faults.xon), 0, 0},
    {"rules", PATH, AT(rules)},
    {"seed", COUNT, AT(seed), 0, 0},
    {"frame", COUNT, AT(frame), FRAME_MIN, IO_FRAME_MAX},
    {"slots", COUNT, AT(slots), IO_BURST_MAX, SLOTS_MAX},
    {"log", COUNT, AT(log), 0, LOG_MAX},
};
#define NKEYS (sizeof(keys) / sizeof(keys[0]))
_Static_assert(NKEYS < KEYS_MAX, "list of names");

static const char *const wanted[] = {
    [COUNT] = "a number",
    [COUNT32] = "a number",
    [SIZE] = "octets such as 65536 or 64K",
    [RATE] = "bits a second such as 10G",
    [TIME] = "a time such as 5us",
    [PROB] = "a probability such as 0.01 or 1%",
    [SWITCH] = "on or off",
    [PATH] = "a file's name of at most 255 characters",
};

/* The value of a key of any kind. Two values can be compared. */
struct value {
    uint64_t n;
    double p;
    const char *path;
};

static int value_parse(enum kind kind, const char *text, struct value *v)
{
    bool on;
    int rc;
    switch (kind) {
    case COUNT:
    case COUNT32:
        return io_parse_u64(text, &v->n);
    case SIZE:
        return io_parse_size(text, &v->n);
    case RATE:
        return io_parse_rate(text, &v->n);
    case TIME:
        return io_parse_time(text, &v->n);
    case PROB:
        return io_parse_prob(text, &v->p);
    case SWITCH:
        rc = io_parse_bool(text, &on);
        v->n = rc == 0 && on;
        return rc;
    case PATH:
        v->path = text;
        return *text ? 0 : -EINVAL;
    }
    return -EINVAL;
}

static struct value value_load(const struct key *key, const struct mem_link_config *cfg)
{
    const char *at = (const char *)cfg + key->offset;
    struct value v = {0};
    if (key->kind == PATH)
        v.path = at;
    else if (key->kind == PROB)
        memcpy(&v.p, at, sizeof(v.p));
    else if (key->kind == SWITCH)
        v.n = *(const bool *)at;
    else if (key->kind == COUNT32)
        v.n = *(const uint32_t *)(const void *)at;
    else
        memcpy(&v.n, at, sizeof(v.n));
    return v;
}

static void value_store(const struct key *key, struct mem_link_config *cfg, struct value v)
{
    char *at = (char *)cfg + key->offset;
    const char *path = v.path ? v.path : "";
    if (key->kind == PATH)
        memcpy(at, path, strlen(path) + 1); /* read into a buffer of that size */
    else if (key->kind == PROB)
        memcpy(at, &v.p, sizeof(v.p));
    else if (key->kind == SWITCH)
        *(bool *)at = v.n;
    else if (key->kind == COUNT32)
        *(uint32_t *)(void *)at = (uint32_t)v.n;
    else
        memcpy(at, &v.n, sizeof(v.n));
}

static int check_sense(const struct mem_link_faults *f, char *err, size_t err_size)
{
    if (f->ecn_kmin > f->ecn_kmax)
        return io_fail(err, err_size, -EINVAL,
                       "mem: ecn_kmin=%llu is above ecn_kmax=%llu: give ecn_kmax too, not smaller",
                       (unsigned long long)f->ecn_kmin, (unsigned long long)f->ecn_kmax);
    if (f->ecn_kmax && !f->rate)
        return io_fail(err, err_size, -EINVAL,
                       "mem: ecn_kmax=%llu needs rate=: without a rate nothing ever waits",
                       (unsigned long long)f->ecn_kmax);
    if (f->queue && !f->rate)
        return io_fail(err, err_size, -EINVAL,
                       "mem: queue=%llu needs rate=: without a rate nothing ever waits",
                       (unsigned long long)f->queue);
    if (f->pfc && f->xon > f->xoff)
        return io_fail(err, err_size, -EINVAL, "mem: xon=%llu is above xoff=%llu",
                       (unsigned long long)f->xon, (unsigned long long)f->xoff);
    return 0;
}

static void defaults(struct mem_link_config *cfg, uint64_t seed)
{
    *cfg = (struct mem_link_config){
        .faults = {.reorder_gap = 3,
                   .reorder_hold = 20000,
                   .ecn_pmax = 0.01,
                   .xoff = 192 << 10,
                   .xon = 128 << 10},
        .seed = seed ? seed : 1,
        .frame = IO_FRAME_MAX,
        .slots = 1024,
    };
}

/* The link's name; *args moves on to the keys. */
static int read_name(const char **args, char *name, char *err, size_t err_size)
{
    size_t len = strcspn(*args, ",");
    if (len == 0 || len >= MEM_LINK_NAME || memchr(*args, '=', len))
        return io_fail(
            err, err_size, -EINVAL,
            "mem: want mem:LINK[,KEY=VALUE...] with a link's name of 1 to %u characters, "
            "not '%.80s'",
            MEM_LINK_NAME - 1, *args);
    memcpy(name, *args, len);
    name[len] = '\0';
    *args += len;
    *args += **args == ',';
    return 0;
}

/* Are there keys, each known and at most once? */
static int check_keys(const char *args, char *err, size_t err_size)
{
    const char *names[KEYS_MAX] = {NULL};
    char text[VALUE_MAX], known[KEYS_MAX * 16];
    for (size_t i = 0, n = 0; i < NKEYS && n < sizeof(known); i++) {
        names[i] = keys[i].name;
        n += (size_t)snprintf(known + n, sizeof(known) - n, "%s%s", i ? " " : "", keys[i].name);
    }
    if (io_arg_unknown(args, names, text, sizeof(text)))
        return io_fail(err, err_size, -EINVAL, "mem: key '%s' is unknown or given twice (keys: %s)",
                       text, known);
    size_t len;
    const char *bare = io_arg_bare(args, &len);
    if (bare)
        return io_fail(err, err_size, -EINVAL, "mem: '%.*s': want KEY=VALUE", (int)len, bare);
    return 0;
}

/* The value of one key, if it is there. */
static int read_key(const struct key *key, const char *args, const struct mem_link_config *have,
                    const char *name, struct mem_link_config *cfg, char *err, size_t err_size)
{
    char text[VALUE_MAX];
    struct value v = {0};
    int found = io_arg(args, key->name, text, sizeof(text));
    if (found == 0)
        return 0;
    if (found < 0 || value_parse(key->kind, text, &v))
        return io_fail(err, err_size, -EINVAL, "mem: %s=%s: want %s", key->name,
                       found < 0 ? "(too long)" : text, wanted[key->kind]);
    if (key->kind != PROB && key->kind != PATH && (v.n < key->min || (key->max && v.n > key->max)))
        return io_fail(err, err_size, -EINVAL, "mem: %s=%s: want %llu to %llu", key->name, text,
                       (unsigned long long)key->min, (unsigned long long)key->max);
    if (have) {
        struct value old = value_load(key, have);
        if (old.n != v.n || old.p != v.p || (v.path && strcmp(old.path, v.path)))
            return io_fail(err, err_size, -EINVAL,
                           "mem: %s=%s differs from what link '%s' was made with; give the "
                           "keys once, with the link's first port",
                           key->name, text, name);
    }
    value_store(key, cfg, v);
    return 0;
}

static int read_keys(const char *args, const struct mem_link_config *have, uint64_t seed,
                     char *name, struct mem_link_config *cfg, char *err, size_t err_size)
{
    int rc = read_name(&args, name, err, err_size);
    if (rc == 0)
        rc = check_keys(args, err, err_size);
    if (have)
        *cfg = *have;
    else
        defaults(cfg, seed);
    for (size_t i = 0; i < NKEYS && rc == 0; i++)
        rc = read_key(&keys[i], args, have, name, cfg, err, err_size);
    return rc;
}

int mem_spec_parse(const char *args, const struct mem_link_config *have, uint64_t seed, char *name,
                   struct mem_link_config *cfg, char *err, size_t err_size)
{
    int rc = read_keys(args, have, seed, name, cfg, err, err_size);
    return rc ? rc : check_sense(&cfg->faults, err, err_size);
}

/* Checks each key alone: the keys must also agree with those of the link's first port
 * (mem_link_check). */
int io_mem_check(const char *args, char *err, size_t err_size)
{
    char name[MEM_LINK_NAME];
    struct mem_link_config cfg;
    return read_keys(args, NULL, 1, name, &cfg, err, err_size);
}

int mem_link_check(const char *first, uint64_t seed, const char *args, char *err, size_t err_size)
{
    char name[MEM_LINK_NAME];
    struct mem_link_config link, cfg;
    int rc = mem_spec_parse(first, NULL, seed, name, &link, err, err_size);
    return rc || args == first ? rc : mem_spec_parse(args, &link, seed, name, &cfg, err, err_size);
}
