/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parameters: their table, and the text form. Numbers are read and written without floating point,
 * so that the text in a log gives the same value again.
 */
#include "cc_param.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cc.h"

const struct cc_param_info cc_params[CC_PARAM_MAX] = {
#define X(name, unit, min, max, text) {#name, unit, min, max, text},
    CC_PARAMS(X)
#undef X
};

/* Values that have names. The first is 0. */
static const char *const scopes[] = {"qp", "ip", "port", NULL};
static const char *const recoveries[] = {"?", "gbn", "sr", "gbn-ooo", NULL};

struct suffix {
    const char *text;
    uint64_t scale;
};

static const struct suffix rate_suffix[] = {
    {"T", 1000000000000}, {"G", 1000000000}, {"M", 1000000}, {"K", 1000}, {"", 1}, {NULL, 0},
};
static const struct suffix time_suffix[] = {
    {"s", 1000000000}, {"ms", 1000000}, {"us", 1000}, {"ns", 1}, {NULL, 0},
};
static const struct suffix octet_suffix[] = {
    {"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}, {"", 1}, {NULL, 0},
};
static const struct suffix count_suffix[] = {{"", 1}, {NULL, 0}};

static const struct {
    const struct suffix *suffix;
    const char *like; /* for messages */
} units[] = {
    [CC_RATE] = {rate_suffix, "a rate like 40G or 2.5M (bit/s)"},
    [CC_TIME] = {time_suffix, "a time like 55us or 1.5ms"},
    [CC_RATIO] = {NULL, "a ratio like 1/256, 0.5 or 50%"},
    [CC_OCTETS] = {octet_suffix, "octets like 10M or 64K"},
    [CC_COUNT] = {count_suffix, "a whole number"},
    [CC_FLAG] = {count_suffix, "0 or 1"},
    [CC_SCOPE] = {NULL, "qp, ip or port"},
    [CC_RECOVERY] = {NULL, "gbn, sr or gbn-ooo"},
};

/* ---- reading ---- */

/* "12.5" as 12500000 of `*scale` 10^6ths; *end = the rest. False: no number, or too large. */
static bool read_decimal(const char *s, uint64_t *micro, const char **end)
{
    uint64_t v = 0;
    unsigned places = 0;
    bool point = false, digits = false;
    for (; (*s >= '0' && *s <= '9') || (*s == '.' && !point); s++) {
        if (*s == '.') {
            point = true;
            continue;
        }
        digits = true;
        if (point && places == 6)
            continue; /* finer than any unit here */
        if (v > UINT64_MAX / 10 - 1)
            return false;
        v = v * 10 + (uint64_t)(*s - '0');
        places += point;
    }
    for (; places < 6; places++) {
        if (v > UINT64_MAX / 10)
            return false;
        v *= 10;
    }
    *micro = v;
    *end = s;
    return digits;
}

/* micro * scale / 10^6, rounded. */
static bool scale_micro(uint64_t micro, uint64_t scale, uint64_t *out)
{
    uint64_t whole = micro / 1000000, part = micro % 1000000;
    if (scale && whole > UINT64_MAX / 2 / scale)
        return false;
    *out = whole * scale + (part * scale + 500000) / 1000000;
    return true;
}

static bool read_ratio(const char *s, uint64_t *out)
{
    uint64_t a, b;
    if (!read_decimal(s, &a, &s) || !scale_micro(a, CC_ONE, out))
        return false;
    if (*s == '%') {
        *out = (*out + 50) / 100;
        s++;
    } else if (*s == '/') {
        if (!read_decimal(s + 1, &b, &s) || b < 1000000)
            return false;
        b /= 1000000;
        *out = (*out + b / 2) / b;
    }
    return *s == '\0';
}

static bool read_name(const char *const *names, const char *s, uint64_t *out)
{
    for (*out = 0; names[*out]; (*out)++)
        if (!strcmp(s, names[*out]))
            return true;
    return false;
}

static bool read_value(enum cc_unit unit, const char *s, uint64_t *out)
{
    if (unit == CC_RATIO)
        return read_ratio(s, out);
    if (unit == CC_SCOPE)
        return read_name(scopes, s, out);
    if (unit == CC_RECOVERY)
        return read_name(recoveries, s, out);
    uint64_t micro;
    const char *end;
    if (!read_decimal(s, &micro, &end))
        return false;
    if (micro == 0 && *end == '\0') {
        *out = 0;
        return true;
    }
    for (const struct suffix *x = units[unit].suffix; x->text; x++)
        if (!strcmp(end, x->text))
            return (x->scale > 1 || micro % 1000000 == 0) && scale_micro(micro, x->scale, out);
    return false;
}

/* ---- writing ---- */

/* In the largest unit that divides it; the smallest one of each kind is 1. */
static int write_scaled(const struct suffix *x, uint64_t v, char *buf, size_t size)
{
    while (x[1].text && v % x->scale != 0)
        x++;
    return snprintf(buf, size, "%" PRIu64 "%s", v / x->scale, x->text);
}

static int write_ratio(uint64_t v, char *buf, size_t size)
{
    if (v > 0 && v < CC_ONE && CC_ONE % v == 0)
        return snprintf(buf, size, "1/%" PRIu64, CC_ONE / v);
    if (v % CC_ONE == 0)
        return snprintf(buf, size, "%" PRIu64, v / CC_ONE);
    if (v * 1000 % CC_ONE == 0)
        return snprintf(buf, size, "%" PRIu64 ".%03" PRIu64, v / CC_ONE,
                        v % CC_ONE * 1000 / CC_ONE);
    /* Six places are enough for most, and a fraction for all. */
    uint64_t micro = (v % CC_ONE * 1000000 + CC_ONE / 2) / CC_ONE, back = 0;
    scale_micro(micro, CC_ONE, &back);
    if (back != v % CC_ONE)
        return snprintf(buf, size, "%" PRIu64 "/%u", v, CC_ONE);
    return snprintf(buf, size, "%" PRIu64 ".%06" PRIu64, v / CC_ONE, micro);
}

int cc_value_format(enum cc_unit unit, uint64_t v, char *buf, size_t size)
{
    if (unit == CC_RATIO)
        return write_ratio(v, buf, size);
    if (unit == CC_SCOPE)
        return snprintf(buf, size, "%s", scopes[v % 3]);
    if (unit == CC_RECOVERY)
        return snprintf(buf, size, "%s", recoveries[v % 4]);
    if (v == 0)
        return snprintf(buf, size, "0");
    return write_scaled(units[unit].suffix, v, buf, size);
}

int cc_conf_format(const struct cc_conf *c, char *buf, size_t size)
{
    size_t n = 0;
    for (unsigned i = 0; i < CC_PARAM_MAX; i++) {
        char value[32];
        if (!(c->type->uses & 1ull << i))
            continue;
        cc_value_format(cc_params[i].unit, c->v[i], value, sizeof(value));
        if (n == 0)
            n = (size_t)snprintf(buf, size, "%s:%s", c->type->name, c->preset);
        int k = snprintf(n < size ? buf + n : NULL, n < size ? size - n : 0, ",%s=%s",
                         cc_params[i].name, value);
        n += (size_t)k;
    }
    return (int)n;
}

/* ---- the whole text ---- */

__attribute__((format(printf, 3, 4))) static int fail(char *err, size_t size, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err, size, fmt, ap);
    va_end(ap);
    return -EINVAL;
}

/* Append to a message, as far as it has room. */
static void add(char *err, size_t size, const char *word)
{
    static const char more[] = " ...";
    size_t n = strlen(err);
    if (n + 1 + strlen(word) + sizeof(more) <= size)
        snprintf(err + n, size - n, " %s", word);
    else if (n + sizeof(more) <= size && (n < sizeof(more) || strcmp(err + n - 4, more) != 0))
        snprintf(err + n, size - n, more);
}

static const struct cc_preset *first_preset(const struct cc_type *type)
{
    const struct cc_preset *p = cc_presets;
    while (p->type && strcmp(p->type, type->name) != 0)
        p++;
    return p;
}

static void apply(struct cc_conf *c, const struct cc_preset *p)
{
    c->preset = p->name;
    c->line = p->line;
    for (const struct cc_setting *s = p->setting; s->param != CC_PARAM_MAX; s++)
        c->v[s->param] = s->value;
}

void cc_conf_init(struct cc_conf *c, const struct cc_type *type)
{
    *c = (struct cc_conf){.type = type};
    apply(c, &cc_presets[0]); /* the common defaults */
    apply(c, first_preset(type));
}

static int find_preset(struct cc_conf *c, const char *name, char *err, size_t size)
{
    for (const struct cc_preset *p = cc_presets; p->type; p++) {
        if (!strcmp(p->type, c->type->name) && !strcmp(p->name, name)) {
            apply(c, p);
            return 0;
        }
    }
    fail(err, size, "%s:%s: no such preset%s; known:", c->type->name, name,
         strchr(name, '=') ? " (parameters follow a comma)" : "");
    for (const struct cc_preset *p = cc_presets; p->type; p++)
        if (!strcmp(p->type, c->type->name))
            add(err, size, p->name);
    return -EINVAL;
}

static int set_param(struct cc_conf *c, const char *word, char *err, size_t size)
{
    const char *eq = strchr(word, '=');
    for (unsigned i = 0; eq && i < CC_PARAM_MAX; i++) {
        const struct cc_param_info *p = &cc_params[i];
        size_t len = strlen(p->name);
        if ((size_t)(eq - word) != len || memcmp(word, p->name, len) != 0)
            continue;
        if (!(c->type->uses & 1ull << i))
            return fail(err, size, "%s: %s has no such parameter", word, c->type->name);
        if (!read_value(p->unit, eq + 1, &c->v[i]))
            return fail(err, size, "%s: want %s", word, units[p->unit].like);
        c->given |= 1ull << i;
        if (c->v[i] < p->min || c->v[i] > p->max) {
            char lo[32], hi[32];
            cc_value_format(p->unit, p->min, lo, sizeof(lo));
            cc_value_format(p->unit, p->max, hi, sizeof(hi));
            return fail(err, size, "%s: want %s to %s: %s", word, lo, hi, p->text);
        }
        return 0;
    }
    if (eq)
        fail(err, size, "%.*s: no such parameter; %s has:", (int)(eq - word), word, c->type->name);
    else
        fail(err, size, "%s: want NAME=VALUE; %s has:", word, c->type->name);
    for (unsigned i = 0; i < CC_PARAM_MAX; i++)
        if (c->type->uses & 1ull << i)
            add(err, size, cc_params[i].name);
    return -EINVAL;
}

int cc_conf_parse(struct cc_conf *c, const char *text, char *err, size_t size)
{
    char copy[CC_TEXT], *save = NULL;
    if (strlen(text) >= sizeof(copy))
        return fail(err, size, "congestion control: longer than %u characters", CC_TEXT - 1);
    memcpy(copy, text, strlen(text) + 1);
    char *word = strtok_r(copy, ",", &save);
    char *preset = word ? strchr(word, ':') : NULL;
    if (preset)
        *preset++ = '\0';
    const struct cc_type *type = word ? cc_type_find(word) : NULL;
    if (!type) {
        fail(err, size, "%s: no such congestion control; known:", word ? word : "\"\"");
        for (const struct cc_type *const *t = cc_types; *t; t++)
            add(err, size, (*t)->name);
        return -EINVAL;
    }
    cc_conf_init(c, type);
    int rc = preset ? find_preset(c, preset, err, size) : 0;
    while (rc == 0 && (word = strtok_r(NULL, ",", &save)))
        rc = set_param(c, word, err, size);
    return rc;
}
