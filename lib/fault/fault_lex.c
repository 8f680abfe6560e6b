/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Words and values of a rule text.
 */
#include "fault_lex.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* ---- words ---- */

void fault_lex_line(struct fault_lex *lx, unsigned number, const char *text, size_t len)
{
    const char *comment = memchr(text, '#', len);
    lx->number = number;
    lx->line = lx->at = text;
    lx->end = comment ? comment : text + len;
}

struct fault_word fault_lex_peek(const struct fault_lex *lx)
{
    const char *s = lx->at;
    while (s < lx->end && blank(*s))
        s++;
    const char *e = s;
    while (e < lx->end && !blank(*e))
        e++;
    return (struct fault_word){s, (size_t)(e - s), (unsigned)(s - lx->line) + 1};
}

struct fault_word fault_lex_next(struct fault_lex *lx)
{
    struct fault_word w = fault_lex_peek(lx);
    lx->at = w.s + w.len;
    return w;
}

bool fault_word_is(struct fault_word w, const char *text)
{
    return w.len == strlen(text) && !strncasecmp(w.s, text, w.len);
}

bool fault_lex_takes(struct fault_lex *lx, const char *word)
{
    if (!fault_word_is(fault_lex_peek(lx), word))
        return false;
    fault_lex_next(lx);
    return true;
}

bool fault_lex_digit(const struct fault_lex *lx)
{
    struct fault_word w = fault_lex_peek(lx);
    return w.len && isdigit((unsigned char)w.s[0]);
}

/* ---- errors ---- */

#define SHOWN_MOST 32u /* octets of a word that a message repeats */
#define SHOWN_ROOM 48u

/* A word for a message: quoted, short, printable. */
static const char *quoted(struct fault_word w, char buf[SHOWN_ROOM])
{
    char text[SHOWN_MOST + 1];
    size_t n = 0;
    if (!w.len)
        return "the end of the line";
    for (; n < w.len && n < SHOWN_MOST; n++)
        text[n] = isprint((unsigned char)w.s[n]) ? w.s[n] : '?';
    text[n] = '\0';
    snprintf(buf, SHOWN_ROOM, "'%s%s'", text, w.len > n ? "..." : "");
    return buf;
}

bool fault_lex_expected(struct fault_lex *lx, struct fault_word w, const char *what)
{
    char buf[SHOWN_ROOM];
    return fault_lex_error(lx, w, "expected %s, found %s", what, quoted(w, buf));
}

bool fault_lex_error(struct fault_lex *lx, struct fault_word w, const char *fmt, ...)
{
    va_list ap;
    lx->err->line = lx->number;
    lx->err->column = w.column;
    va_start(ap, fmt);
    vsnprintf(lx->err->text, sizeof(lx->err->text), fmt, ap);
    va_end(ap);
    return false;
}

/* ---- numbers ---- */

struct suffix {
    const char *name;
    uint64_t factor;
};

static const struct suffix no_suffix[] = {{"", 1}, {NULL, 0}};
static const struct suffix sizes[] = {{"", 1}, {"K", 1u << 10}, {"M", 1u << 20}, {NULL, 0}};
static const struct suffix times[] = {
    {"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}, {NULL, 0}};
static const struct suffix *const suffixes[] = {no_suffix, sizes, times};

static int digit(char c)
{
    return c >= '0' && c <= '9'                 ? c - '0'
           : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                : 99;
}

/* All of s[0..len) as digits of a base, at least one. */
static bool digits(const char *s, size_t len, uint64_t base, uint64_t *out)
{
    uint64_t n = 0;
    for (size_t i = 0; i < len; i++) {
        uint64_t d = (uint64_t)digit(s[i]);
        if (d >= base || n > (UINT64_MAX - d) / base)
            return false;
        n = n * base + d;
    }
    *out = n;
    return len > 0;
}

/* A number of units. Times may have a decimal point: their units are powers of ten. Fractions of a
 * ns are cut off. */
static bool scaled(enum fault_kind kind, const char *s, size_t len, uint64_t factor, uint64_t *out)
{
    const char *dot = kind == FAULT_TIME ? memchr(s, '.', len) : NULL;
    uint64_t whole, part = 0, unit = factor;
    size_t before = dot ? (size_t)(dot - s) : len;
    if (!digits(s, before, 10, &whole) || whole > UINT64_MAX / 2 / factor)
        return false;
    if (dot && (factor == 1 || before + 1 == len))
        return false;
    for (size_t i = before + 1; i < len; i++) {
        uint64_t d;
        if (!digits(s + i, 1, 10, &d))
            return false;
        unit /= 10;
        part += d * unit;
    }
    *out = whole * factor + part;
    return true;
}

static bool value(enum fault_kind kind, const char *s, size_t len, uint64_t *out)
{
    if (kind != FAULT_TIME && len > 2 && s[0] == '0' && (s[1] | 32) == 'x')
        return digits(s + 2, len - 2, 16, out);
    for (const struct suffix *x = suffixes[kind]; x->name; x++) {
        size_t n = strlen(x->name);
        if (len > n && !strncasecmp(s + len - n, x->name, n) &&
            scaled(kind, s, len - n, x->factor, out))
            return true;
    }
    return false;
}

#define DESCRIBE_ROOM 96u

static const char *describe(enum fault_kind kind, uint64_t min, uint64_t max,
                            char buf[DESCRIBE_ROOM])
{
    if (kind == FAULT_TIME)
        snprintf(buf, DESCRIBE_ROOM, "a time such as 500ns, 1.5us or 20ms");
    else if (max == UINT64_MAX)
        snprintf(buf, DESCRIBE_ROOM, "a number");
    else
        snprintf(buf, DESCRIBE_ROOM, "a number from %llu to %llu", (unsigned long long)min,
                 (unsigned long long)max);
    return buf;
}

bool fault_lex_value(struct fault_lex *lx, enum fault_kind kind, uint64_t min, uint64_t max,
                     uint64_t *out)
{
    char buf[DESCRIBE_ROOM];
    struct fault_word w = fault_lex_next(lx);
    if (!value(kind, w.s, w.len, out) || *out < min || *out > max)
        return fault_lex_expected(lx, w, describe(kind, min, max, buf));
    return true;
}

/* The ".." in a word; NULL = it is one value. */
static const char *dots(struct fault_word w)
{
    for (size_t i = 0; i + 1 < w.len; i++)
        if (w.s[i] == '.' && w.s[i + 1] == '.')
            return w.s + i;
    return NULL;
}

bool fault_lex_range(struct fault_lex *lx, enum fault_kind kind, uint64_t max, bool open,
                     struct fault_range *out)
{
    char buf[DESCRIBE_ROOM], what[2 * DESCRIBE_ROOM];
    struct fault_word w = fault_lex_next(lx);
    const char *d = dots(w), *end = w.s + w.len;
    size_t lo = d ? (size_t)(d - w.s) : w.len, hi = d ? (size_t)(end - d) - 2 : 0;
    bool good = true;
    *out = (struct fault_range){0, max};
    if (lo || !open)
        good = value(kind, w.s, lo, &out->lo);
    if (good && (hi || (d && !open)))
        good = value(kind, d + 2, hi, &out->hi);
    if (!d)
        out->hi = out->lo;
    if (good && w.len && out->lo > out->hi && out->lo <= max)
        return fault_lex_error(lx, w, "the range %.*s ends before it begins",
                               (int)(w.len < SHOWN_MOST ? w.len : SHOWN_MOST), w.s);
    if (!good || w.len < 1 || (d && !lo && !hi) || out->lo > out->hi || out->hi > max) {
        snprintf(what, sizeof(what), "%s or a range of them, A..B%s", describe(kind, 0, max, buf),
                 open ? ", A.. or ..B" : "");
        return fault_lex_expected(lx, w, what);
    }
    return true;
}

bool fault_lex_psn(struct fault_lex *lx, struct fault_range *out, bool *relative)
{
    struct fault_word w = fault_lex_next(lx);
    const char *d = dots(w), *end = w.s + w.len;
    *relative = w.len && w.s[0] == '+';
    const char *lo = w.s + *relative, *lo_end = d ? d : end, *hi = d ? d + 2 : NULL;
    bool good = lo < lo_end && value(FAULT_NUMBER, lo, (size_t)(lo_end - lo), &out->lo);
    out->hi = out->lo;
    if (good && hi == end) {
        /* Half of the PSN space lies ahead of a PSN. */
        out->hi = *relative ? WIRE_PSN_MASK : (out->lo + WIRE_PSN_MASK / 2) & WIRE_PSN_MASK;
    } else if (good && hi) {
        hi += *relative && *hi == '+';
        good = value(FAULT_NUMBER, hi, (size_t)(end - hi), &out->hi);
    }
    if (!good || out->lo > WIRE_PSN_MASK || out->hi > WIRE_PSN_MASK ||
        (*relative && out->lo > out->hi))
        return fault_lex_expected(lx, w,
                                  "a PSN (4711), one from the connection's first (+4), or a range "
                                  "of them (+4..9, +4..)");
    return true;
}

/* ---- others ---- */

/* Digits with or without a point. */
static bool decimal(const char *s, size_t len, double *out)
{
    double n = 0, unit = 0;
    bool any = false;
    for (size_t i = 0; i < len; i++) {
        if (s[i] == '.' && unit == 0) {
            unit = 1;
        } else if (isdigit((unsigned char)s[i])) {
            any = true;
            n = n * 10 + (s[i] - '0');
            unit *= 10;
        } else {
            return false;
        }
    }
    *out = unit > 1 ? n / unit : n;
    return any && len <= 24;
}

bool fault_lex_prob(struct fault_lex *lx, double *out)
{
    struct fault_word w = fault_lex_next(lx);
    const char *slash = w.len ? memchr(w.s, '/', w.len) : NULL;
    double a = 0, b = 1;
    bool percent = w.len && w.s[w.len - 1] == '%';
    size_t len = slash ? (size_t)(slash - w.s) : w.len - percent;
    bool good = decimal(w.s, len, &a);
    if (good && slash)
        good = decimal(slash + 1, w.len - len - 1, &b) && b > 0;
    *out = percent ? a / 100 : a / b;
    if (!good || *out > 1)
        return fault_lex_expected(lx, w, "a probability such as 0.01, 1% or 1/100");
    return true;
}

bool fault_lex_prefix(struct fault_lex *lx, struct fault_prefix *out)
{
    char text[64];
    struct fault_word w = fault_lex_next(lx);
    const char *slash = w.len ? memchr(w.s, '/', w.len) : NULL;
    size_t len = slash ? (size_t)(slash - w.s) : w.len;
    uint64_t bits = 0;
    bool good = len && len < sizeof(text) && !memchr(w.s, 0, len);
    if (good) {
        memcpy(text, w.s, len);
        text[len] = 0;
        good = !wire_addr_parse(text, &out->addr);
    }
    unsigned most = good && wire_addr_is_v4(&out->addr) ? 32 : 128;
    if (good && slash)
        good = digits(slash + 1, w.len - len - 1, 10, &bits) && bits <= most;
    out->bits = slash ? 128 - most + (unsigned)bits : 128;
    if (!good)
        return fault_lex_expected(lx, w, "an address such as 10.0.0.1, fe80::1 or 10.0.0.0/8");
    return true;
}
