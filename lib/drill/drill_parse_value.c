/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Values of a statement: names, sums, times, octets, addresses; and messages for missing ones.
 */
#include "drill_parse.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ERROR_TOKEN_MAX 40 /* characters of a token in an error */
#define RANGES_MAX      64u
#define MAC_TEXT_LEN    17u /* 02:00:00:00:00:01 */

/* ---- errors ---- */

bool drill_parse_fail(struct drill_parser *p, const char *format, ...)
{
    if (p->failed)
        return false;
    p->failed = true;
    p->err->line = p->line;
    p->err->column = drill_lex_column(&p->l);
    va_list ap;
    va_start(ap, format);
    vsnprintf(p->err->text, sizeof(p->err->text), format, ap);
    va_end(ap);
    return false;
}

bool drill_no_memory(struct drill_parser *p)
{
    drill_parse_fail(p, "out of memory");
    p->err->line = p->err->column = 0;
    return false;
}

bool drill_expected(struct drill_parser *p, const char *what)
{
    const struct drill_lex *l = &p->l;
    if (l->tok == TOK_BAD)
        return drill_parse_fail(p, "%s", l->why);
    if (l->tok == TOK_END)
        return drill_parse_fail(p, "expected %s, found the end of the line", what);
    int n = l->p - l->at < ERROR_TOKEN_MAX ? (int)(l->p - l->at) : ERROR_TOKEN_MAX;
    return drill_parse_fail(p, "expected %s, found '%.*s'", what, n, l->at);
}

/* ---- text ---- */

const char *drill_keep(struct drill_parser *p, const char *text, size_t len)
{
    char *c = drill_alloc(p->s, len + 1);
    if (!c)
        return drill_no_memory(p), NULL;
    memcpy(c, text, len);
    c[len] = 0;
    return c;
}

const char *drill_word_of(const struct drill_lex *l, char buf[DRILL_WORD_MAX])
{
    size_t n = l->len < DRILL_WORD_MAX ? l->len : DRILL_WORD_MAX - 1;
    memcpy(buf, l->text, n);
    buf[n] = 0;
    return buf;
}

/* ---- names and words ---- */

bool drill_take_name(struct drill_parser *p, const char **out)
{
    if (p->l.tok != TOK_WORD)
        return drill_expected(p, "a name");
    *out = drill_keep(p, p->l.text, p->l.len);
    drill_lex_next(&p->l);
    return *out;
}

bool drill_take_new_name(struct drill_parser *p, const char **out)
{
    if (p->l.tok == TOK_WORD && memchr(p->l.text, '.', p->l.len))
        return drill_parse_fail(p, "a new name has no '.', '%.*s' has one", (int)p->l.len,
                                p->l.text);
    return drill_take_name(p, out);
}

static void list_words(const struct drill_word *words, char *buf, size_t size)
{
    size_t at = 0;
    for (const struct drill_word *w = words; w && w->name && at < size; w++)
        at += (size_t)snprintf(buf + at, size - at, "%s%s", at ? ", " : "", w->name);
}

bool drill_take_word(struct drill_parser *p, const struct drill_word *words, uint64_t *out)
{
    char buf[DRILL_WORD_MAX], list[320];
    if (p->l.tok == TOK_WORD || p->l.tok == TOK_NUMBER) {
        const struct drill_word *w = drill_word_find(words, drill_word_of(&p->l, buf));
        if (w) {
            *out = w->value;
            drill_lex_next(&p->l);
            return true;
        }
    }
    list_words(words, list, sizeof(list));
    char what[340];
    snprintf(what, sizeof(what), "one of %s", list);
    return drill_expected(p, what);
}

static bool take_words(struct drill_parser *p, const struct drill_word *words, uint64_t *out)
{
    *out = 0;
    if (drill_lex_is(&p->l, "none")) {
        drill_lex_next(&p->l);
        return true;
    }
    for (;; drill_lex_next(&p->l)) {
        uint64_t w = 0;
        if (!drill_take_word(p, words, &w))
            return false;
        *out |= w;
        if (!drill_lex_sign(&p->l, ','))
            return true;
    }
}

/* ---- numbers ---- */

bool drill_take_expr(struct drill_parser *p, struct drill_expr *e, const char *what)
{
    struct drill_lex *l = &p->l;
    bool minus = false;
    for (e->n = 0;;) {
        if (l->tok != TOK_NUMBER && l->tok != TOK_WORD)
            return drill_expected(p, what);
        if (e->n == DRILL_TERMS)
            return drill_parse_fail(p, "a sum has at most %u terms", DRILL_TERMS);
        e->t[e->n].minus = minus;
        e->t[e->n].num = l->num;
        if (l->tok == TOK_WORD && !(e->t[e->n].name = drill_keep(p, l->text, l->len)))
            return false;
        e->n++;
        drill_lex_next(l);
        if (!drill_lex_sign(l, '+') && !drill_lex_sign(l, '-'))
            return true;
        minus = l->sign == '-';
        drill_lex_next(l);
    }
}

bool drill_take_time(struct drill_parser *p, uint64_t *ns)
{
    if (p->l.tok != TOK_NUMBER || (!p->l.unit && p->l.num))
        return drill_expected(p, "a time, such as 10us");
    *ns = p->l.num;
    drill_lex_next(&p->l);
    return true;
}

bool drill_take_number(struct drill_parser *p, struct drill_value *v)
{
    struct drill_lex *l = &p->l;
    if (drill_lex_sign(l, '*')) {
        v->kind = VALUE_ANY;
        drill_lex_next(l);
        return true;
    }
    if (drill_lex_sign(l, '?')) {
        v->kind = VALUE_BIND;
        drill_lex_next(l);
        return drill_take_new_name(p, &v->name);
    }
    v->kind = VALUE_ONE;
    if (!drill_take_expr(p, &v->lo, "a number, LOW..HIGH, * or ?NAME"))
        return false;
    if (l->tok != TOK_RANGE)
        return true;
    v->kind = VALUE_RANGE;
    drill_lex_next(l);
    return drill_take_expr(p, &v->hi, "the range's end");
}

/* ---- octets ---- */

static bool take_octets(struct drill_parser *p, struct drill_data *d, bool hex)
{
    const struct drill_lex *l = &p->l;
    if (l->tok != TOK_STRING)
        return drill_expected(p, "octets in quotes");
    uint8_t *out = drill_alloc(p->s, l->len + 1);
    if (!out)
        return drill_no_memory(p);
    d->kind = DATA_OCTETS;
    d->octets = out;
    d->len = 0;
    if (!hex) {
        memcpy(out, l->text, l->len);
        d->len = (uint32_t)l->len;
        drill_lex_next(&p->l);
        return true;
    }
    unsigned digits = 0, v = 0;
    for (size_t i = 0; i < l->len; i++) {
        static const char digit[] = "0123456789abcdef";
        char c = l->text[i];
        const char *at = c ? strchr(digit, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c) : NULL;
        if (c == ' ')
            continue;
        if (!at)
            return drill_parse_fail(p, "'%c' is no hexadecimal digit", c);
        v = v << 4 | (unsigned)(at - digit);
        if (++digits % 2 == 0)
            out[d->len++] = (uint8_t)v;
    }
    if (digits % 2)
        return drill_parse_fail(p, "an octet has two digits");
    drill_lex_next(&p->l);
    return true;
}

bool drill_take_data(struct drill_parser *p, struct drill_data *d)
{
    struct drill_lex *l = &p->l;
    static const char what[] = "octets (stream, fill, zero, hex, u64, same, a string or a region)";
    if (l->tok == TOK_STRING)
        return take_octets(p, d, false);
    if (drill_lex_is(l, "hex")) {
        drill_lex_next(l);
        return take_octets(p, d, true);
    }
    if (drill_lex_is(l, "same") || drill_lex_is(l, "zero")) {
        d->kind = drill_lex_is(l, "same") ? DATA_SAME : DATA_FILL;
        drill_lex_next(l);
        return true;
    }
    if (drill_lex_is(l, "stream")) {
        d->kind = DATA_STREAM;
        drill_lex_next(l);
        if (!drill_take_expr(p, &d->a, "the stream's number"))
            return false;
        if (!drill_lex_is(l, "at"))
            return true;
        drill_lex_next(l);
        return drill_take_expr(p, &d->b, "an offset");
    }
    if (drill_lex_is(l, "fill") || drill_lex_is(l, "u64")) {
        d->kind = drill_lex_is(l, "u64") ? DATA_U64 : DATA_FILL;
        drill_lex_next(l);
        return drill_take_expr(p, &d->a, "a number");
    }
    if (l->tok != TOK_WORD)
        return drill_expected(p, what);
    d->kind = DATA_MEMORY;
    return drill_take_expr(p, &d->a, what);
}

bool drill_take_range(struct drill_parser *p, struct drill_range *r)
{
    if (p->l.tok != TOK_WORD)
        return drill_expected(p, "memory, such as M+16,1000");
    if (!drill_take_expr(p, &r->at, "a region"))
        return false;
    r->name = r->at.t[0].name;
    if (!drill_lex_sign(&p->l, ','))
        return true;
    drill_lex_next(&p->l);
    return drill_take_expr(p, &r->len, "a length");
}

static bool take_ranges(struct drill_parser *p, struct drill_value *v)
{
    struct drill_range list[RANGES_MAX];
    unsigned n = 0;
    for (;; drill_lex_next(&p->l)) {
        if (n == RANGES_MAX)
            return drill_parse_fail(p, "at most %u pieces of memory", n);
        list[n] = (struct drill_range){0};
        if (!drill_take_range(p, &list[n++]))
            return false;
        if (!drill_lex_is(&p->l, "and"))
            break;
    }
    struct drill_range *copy = drill_alloc(p->s, n * sizeof(*copy));
    if (!copy)
        return drill_no_memory(p);
    memcpy(copy, list, n * sizeof(*copy));
    v->ranges = copy;
    v->nranges = n;
    return true;
}

/* ---- addresses ---- */

bool drill_take_addr(struct drill_parser *p, struct wire_addr *out)
{
    char text[64];
    if (p->l.tok != TOK_STRING || p->l.len >= sizeof(text))
        return drill_expected(p, "an IP address in quotes");
    memcpy(text, p->l.text, p->l.len);
    text[p->l.len] = 0;
    if (wire_addr_parse(text, out) < 0)
        return drill_parse_fail(p, "'%s' is no IP address", text);
    drill_lex_next(&p->l);
    return true;
}

static bool take_mac(struct drill_parser *p, struct wire_addr *out)
{
    unsigned m[6];
    char text[MAC_TEXT_LEN + 1];
    int used = 0;
    if (p->l.tok != TOK_STRING || p->l.len != MAC_TEXT_LEN)
        return drill_expected(p, "a MAC address in quotes");
    memcpy(text, p->l.text, MAC_TEXT_LEN);
    text[MAC_TEXT_LEN] = 0;
    /* sscanf alone would take blanks and signs. */
    if (text[strspn(text, "0123456789abcdefABCDEF:")] ||
        sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", &m[0], &m[1], &m[2], &m[3], &m[4], &m[5],
               &used) != 6 ||
        used != MAC_TEXT_LEN)
        return drill_parse_fail(p, "'%s' is no MAC address", text);
    for (int i = 0; i < 6; i++)
        out->b[i] = (uint8_t)m[i];
    drill_lex_next(&p->l);
    return true;
}

/* ---- a field's value ---- */

bool drill_take_value(struct drill_parser *p, const struct drill_field *f, struct drill_value *v)
{
    switch ((enum drill_type)f->type) {
    case TYPE_FLAG:
        return true;
    case TYPE_NUM:
        return drill_take_number(p, v);
    case TYPE_TIME:
        return drill_take_time(p, &v->word);
    case TYPE_WORD:
        v->kind = VALUE_ONE;
        return drill_take_word(p, f->words, &v->word);
    case TYPE_WORDS:
        return take_words(p, f->words, &v->word);
    case TYPE_NAME:
        return drill_take_name(p, &v->name);
    case TYPE_DATA:
        return drill_take_data(p, &v->data);
    case TYPE_ADDR:
        return drill_take_addr(p, &v->addr);
    case TYPE_MAC:
        return take_mac(p, &v->addr);
    case TYPE_RANGES:
        return take_ranges(p, v);
    case TYPE_PATCH:
        return drill_take_expr(p, &v->lo, "a place, such as bth+4") &&
               drill_take_expr(p, &v->hi, "an octet's value");
    case TYPE_TEXT:
        if (p->l.tok != TOK_STRING)
            return drill_expected(p, "a text in quotes");
        v->name = drill_keep(p, p->l.text, p->l.len);
        drill_lex_next(&p->l);
        return v->name;
    }
    return false;
}
