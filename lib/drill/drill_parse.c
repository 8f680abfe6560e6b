/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Text to statements. What a statement looks like is data (drill_field.c); this file reads it.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drill_lex.h"
#include "drill_script.h"
#include "engine.h"

#define BLOCKS_MAX 16u

/* ---- memory ---- */

struct drill_chunk {
    struct drill_chunk *next;
    size_t used, size;
    max_align_t octets[];
};

void *drill_alloc(struct drill_script *s, size_t size)
{
    struct drill_chunk *c = s->arena;
    size = (size + sizeof(max_align_t) - 1) & ~(sizeof(max_align_t) - 1);
    if (!c || c->size - c->used < size) {
        size_t room = size > 16384 ? size : 16384;
        c = calloc(1, sizeof *c + room);
        if (!c)
            return NULL;
        c->size = room;
        c->next = s->arena;
        s->arena = c;
    }
    void *p = (char *)c->octets + c->used;
    c->used += size;
    return p;
}

void drill_free(struct drill_script *s)
{
    if (!s)
        return;
    for (struct drill_chunk *c = s->arena, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    free(s);
}

/* ---- the parser ---- */

struct parser {
    struct drill_lex l;
    struct drill_script *s;
    struct drill_error *err;
    unsigned line;
    bool failed;
    const char *head; /* of the statement: its word and operands */
    int head_len;
    struct drill_stmt **tail[BLOCKS_MAX + 1]; /* where the next statement of a block goes */
    const struct drill_stmt *block[BLOCKS_MAX + 1];
    unsigned depth;
};

__attribute__((format(printf, 2, 3))) static bool fail(struct parser *p, const char *format, ...)
{
    if (p->failed)
        return false;
    p->failed = true;
    p->err->line = p->line;
    p->err->column = drill_lex_column(&p->l);
    va_list ap;
    va_start(ap, format);
    vsnprintf(p->err->text, sizeof p->err->text, format, ap);
    va_end(ap);
    return false;
}

static bool no_memory(struct parser *p)
{
    fail(p, "out of memory");
    p->err->line = p->err->column = 0;
    return false;
}

/* "expected a number, found 'x'" */
static bool expected(struct parser *p, const char *what)
{
    const struct drill_lex *l = &p->l;
    if (l->tok == TOK_BAD)
        return fail(p, "%s", l->why);
    if (l->tok == TOK_END)
        return fail(p, "expected %s, found the end of the line", what);
    int n = l->p - l->at < 40 ? (int)(l->p - l->at) : 40;
    return fail(p, "expected %s, found '%.*s'", what, n, l->at);
}

static const char *keep(struct parser *p, const char *text, size_t len)
{
    char *c = drill_alloc(p->s, len + 1);
    if (!c)
        return no_memory(p), NULL;
    memcpy(c, text, len);
    c[len] = 0;
    return c;
}

/* The current token's text as a string of at most 31 characters, for looking it up. */
static const char *word_of(const struct drill_lex *l, char buf[32])
{
    size_t n = l->len < 31 ? l->len : 31;
    memcpy(buf, l->text, n);
    buf[n] = 0;
    return buf;
}

static bool take_name(struct parser *p, const char **out)
{
    if (p->l.tok != TOK_WORD)
        return expected(p, "a name");
    *out = keep(p, p->l.text, p->l.len);
    drill_lex_next(&p->l);
    return *out;
}

/* The parts of objects have a dot: A.qpn. */
static bool take_new_name(struct parser *p, const char **out)
{
    if (p->l.tok == TOK_WORD && memchr(p->l.text, '.', p->l.len))
        return fail(p, "a new name has no '.', '%.*s' has one", (int)p->l.len, p->l.text);
    return take_name(p, out);
}

static void list_words(const struct drill_word *words, char *buf, size_t size)
{
    size_t at = 0;
    for (const struct drill_word *w = words; w && w->name && at < size; w++)
        at += (size_t)snprintf(buf + at, size - at, "%s%s", at ? ", " : "", w->name);
}

static bool take_word(struct parser *p, const struct drill_word *words, uint64_t *out)
{
    char buf[32], list[320];
    if (p->l.tok == TOK_WORD || p->l.tok == TOK_NUMBER) {
        const struct drill_word *w = drill_word_find(words, word_of(&p->l, buf));
        if (w) {
            *out = w->value;
            drill_lex_next(&p->l);
            return true;
        }
    }
    list_words(words, list, sizeof list);
    char what[340];
    snprintf(what, sizeof what, "one of %s", list);
    return expected(p, what);
}

/* NUMBER or NAME, and more of them with + and - between. */
static bool take_expr(struct parser *p, struct drill_expr *e, const char *what)
{
    struct drill_lex *l = &p->l;
    bool minus = false;
    for (e->n = 0;;) {
        if (l->tok != TOK_NUMBER && l->tok != TOK_WORD)
            return expected(p, what);
        if (e->n == DRILL_TERMS)
            return fail(p, "a sum has at most %u terms", DRILL_TERMS);
        e->t[e->n].minus = minus;
        e->t[e->n].num = l->num;
        if (l->tok == TOK_WORD && !(e->t[e->n].name = keep(p, l->text, l->len)))
            return false;
        e->n++;
        drill_lex_next(l);
        if (!drill_lex_sign(l, '+') && !drill_lex_sign(l, '-'))
            return true;
        minus = l->sign == '-';
        drill_lex_next(l);
    }
}

static bool take_time(struct parser *p, uint64_t *ns)
{
    if (p->l.tok != TOK_NUMBER || (!p->l.unit && p->l.num))
        return expected(p, "a time, such as 10us");
    *ns = p->l.num;
    drill_lex_next(&p->l);
    return true;
}

static bool take_octets(struct parser *p, struct drill_data *d, bool hex)
{
    const struct drill_lex *l = &p->l;
    if (l->tok != TOK_STRING)
        return expected(p, "octets in quotes");
    uint8_t *out = drill_alloc(p->s, l->len + 1);
    if (!out)
        return no_memory(p);
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
            return fail(p, "'%c' is no hexadecimal digit", c);
        v = v << 4 | (unsigned)(at - digit);
        if (++digits % 2 == 0)
            out[d->len++] = (uint8_t)v;
    }
    if (digits % 2)
        return fail(p, "an octet has two digits");
    drill_lex_next(&p->l);
    return true;
}

static bool take_data(struct parser *p, struct drill_data *d)
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
        if (!take_expr(p, &d->a, "the stream's number"))
            return false;
        if (!drill_lex_is(l, "at"))
            return true;
        drill_lex_next(l);
        return take_expr(p, &d->b, "an offset");
    }
    if (drill_lex_is(l, "fill") || drill_lex_is(l, "u64")) {
        d->kind = drill_lex_is(l, "u64") ? DATA_U64 : DATA_FILL;
        drill_lex_next(l);
        return take_expr(p, &d->a, "a number");
    }
    if (l->tok != TOK_WORD)
        return expected(p, what);
    d->kind = DATA_MEMORY;
    return take_expr(p, &d->a, what);
}

/* M+16,1000 */
static bool take_range(struct parser *p, struct drill_range *r)
{
    if (p->l.tok != TOK_WORD)
        return expected(p, "memory, such as M+16,1000");
    if (!take_expr(p, &r->at, "a region"))
        return false;
    r->name = r->at.t[0].name;
    if (!drill_lex_sign(&p->l, ','))
        return true;
    drill_lex_next(&p->l);
    return take_expr(p, &r->len, "a length");
}

static bool take_ranges(struct parser *p, struct drill_value *v)
{
    struct drill_range list[64];
    unsigned n = 0;
    for (;; drill_lex_next(&p->l)) {
        if (n == sizeof list / sizeof list[0])
            return fail(p, "at most %u pieces of memory", n);
        list[n] = (struct drill_range){0};
        if (!take_range(p, &list[n++]))
            return false;
        if (!drill_lex_is(&p->l, "and"))
            break;
    }
    struct drill_range *copy = drill_alloc(p->s, n * sizeof *copy);
    if (!copy)
        return no_memory(p);
    memcpy(copy, list, n * sizeof *copy);
    v->ranges = copy;
    v->nranges = n;
    return true;
}

static bool take_addr(struct parser *p, struct wire_addr *out)
{
    char text[64];
    if (p->l.tok != TOK_STRING || p->l.len >= sizeof text)
        return expected(p, "an IP address in quotes");
    memcpy(text, p->l.text, p->l.len);
    text[p->l.len] = 0;
    if (wire_addr_parse(text, out) < 0)
        return fail(p, "'%s' is no IP address", text);
    drill_lex_next(&p->l);
    return true;
}

static bool take_mac(struct parser *p, struct wire_addr *out)
{
    unsigned m[6];
    char text[20];
    if (p->l.tok != TOK_STRING || p->l.len != 17)
        return expected(p, "a MAC address in quotes");
    memcpy(text, p->l.text, 17);
    text[17] = 0;
    if (sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x", &m[0], &m[1], &m[2], &m[3], &m[4], &m[5]) != 6)
        return fail(p, "'%s' is no MAC address", text);
    for (int i = 0; i < 6; i++)
        out->b[i] = (uint8_t)m[i];
    drill_lex_next(&p->l);
    return true;
}

/* SUM, SUM..SUM, *, ?name */
static bool take_number(struct parser *p, struct drill_value *v)
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
        return take_new_name(p, &v->name);
    }
    v->kind = VALUE_ONE;
    if (!take_expr(p, &v->lo, "a number, LOW..HIGH, * or ?NAME"))
        return false;
    if (l->tok != TOK_RANGE)
        return true;
    v->kind = VALUE_RANGE;
    drill_lex_next(l);
    return take_expr(p, &v->hi, "the range's end");
}

static bool take_words(struct parser *p, const struct drill_word *words, uint64_t *out)
{
    *out = 0;
    if (drill_lex_is(&p->l, "none")) {
        drill_lex_next(&p->l);
        return true;
    }
    for (;; drill_lex_next(&p->l)) {
        uint64_t w;
        if (!take_word(p, words, &w))
            return false;
        *out |= w;
        if (!drill_lex_sign(&p->l, ','))
            return true;
    }
}

static bool take_value(struct parser *p, const struct drill_field *f, struct drill_value *v)
{
    switch ((enum drill_type)f->type) {
    case TYPE_FLAG:
        return true;
    case TYPE_NUM:
        return take_number(p, v);
    case TYPE_TIME:
        return take_time(p, &v->word);
    case TYPE_WORD:
        v->kind = VALUE_ONE;
        return take_word(p, f->words, &v->word);
    case TYPE_WORDS:
        return take_words(p, f->words, &v->word);
    case TYPE_NAME:
        return take_name(p, &v->name);
    case TYPE_DATA:
        return take_data(p, &v->data);
    case TYPE_ADDR:
        return take_addr(p, &v->addr);
    case TYPE_MAC:
        return take_mac(p, &v->addr);
    case TYPE_RANGES:
        return take_ranges(p, v);
    case TYPE_PATCH:
        return take_expr(p, &v->lo, "a place, such as bth+4") &&
               take_expr(p, &v->hi, "an octet's value");
    case TYPE_TEXT:
        if (p->l.tok != TOK_STRING)
            return expected(p, "a text in quotes");
        v->name = keep(p, p->l.text, p->l.len);
        drill_lex_next(&p->l);
        return v->name;
    }
    return false;
}

static bool take_fields(struct parser *p, struct drill_stmt *st, const struct drill_field *first,
                        const struct drill_field *second)
{
    struct drill_arg **tail = &st->args;
    char buf[32];
    while (*tail)
        tail = &(*tail)->next;
    while (p->l.tok != TOK_END && p->l.tok != TOK_ARROW && !drill_lex_sign(&p->l, '{')) {
        bool off = drill_lex_sign(&p->l, '!');
        if (off)
            drill_lex_next(&p->l);
        if (p->l.tok != TOK_WORD)
            return expected(p, "a field's name");
        const struct drill_field *f = drill_field_find(first, word_of(&p->l, buf));
        if (!f)
            f = drill_field_find(second, buf);
        if (!f)
            return fail(p, "'%s' has no field '%.*s'", st->verb->word, (int)p->l.len, p->l.text);
        if (!drill_takes(st, f))
            return fail(p, "'%.*s' takes no '%s'", p->head_len, p->head, f->name);
        if (drill_again(st, f))
            return fail(p, "'%s' is given twice", f->name);
        if (off && f->type != TYPE_FLAG)
            return fail(p, "'%s' is no flag", f->name);
        struct drill_arg *a = drill_alloc(p->s, sizeof *a);
        if (!a)
            return no_memory(p);
        a->field = f;
        a->off = off;
        drill_lex_next(&p->l);
        if (!take_value(p, f, &a->v))
            return false;
        *tail = a;
        tail = &a->next;
    }
    return true;
}

static bool take_opcode(struct parser *p, struct drill_stmt *st)
{
    char buf[32];
    if (p->l.tok != TOK_WORD)
        return expected(p, "an opcode");
    int64_t op = drill_opcode_find(word_of(&p->l, buf));
    if (op < 0)
        return fail(p, "there is no opcode '%.*s'", (int)p->l.len, p->l.text);
    drill_lex_next(&p->l);
    st->word = (uint64_t)op;
    if (op & DRILL_OP_CM) {
        uint64_t attr;
        if (!take_word(p, drill_cm_attrs, &attr))
            return false;
        st->word |= attr << 16;
    } else if (op & DRILL_OP_RAW) {
        if (p->l.tok != TOK_NUMBER || p->l.num > 255)
            return expected(p, "an opcode, 0..255");
        st->word |= p->l.num;
        drill_lex_next(&p->l);
    }
    return true;
}

static bool take_operand(struct parser *p, struct drill_stmt *st, char kind)
{
    const struct drill_word *state;
    char buf[32];
    switch (kind) {
    case 'n':
        return take_new_name(p, &st->name);
    case 'o':
        return take_name(p, &st->name);
    case 's':
        if (!(state = drill_word_find(drill_states, word_of(&p->l, buf))))
            return fail(p, "'%s' is neither a state nor a field of '%s'", buf, st->verb->word);
        if (state->value > QPS_RTS)
            return fail(p, "a new queue pair goes up to rts, not to %s", buf);
        st->state = state->value;
        drill_lex_next(&p->l);
        return true;
    case 'w':
        return take_word(p, st->verb->words, &st->word);
    case 'e':
        return take_expr(p, &st->expr, "a number");
    case 't':
        return take_time(p, &st->number);
    case 'd':
        return take_data(p, &st->data);
    case 'r':
        return take_range(p, &st->range);
    case 'a':
        return take_addr(p, &st->addr);
    case 'p':
        return take_opcode(p, st);
    case 'v':
        st->args = drill_alloc(p->s, sizeof *st->args);
        return st->args ? take_number(p, &st->args->v) : no_memory(p);
    case '=':
        if (!drill_lex_sign(&p->l, '='))
            return expected(p, "'='");
        drill_lex_next(&p->l);
        return true;
    default:
        return true; /* '{': take_line */
    }
}

/* An operand that may be missing: is it? */
static bool missing(const struct parser *p, const struct drill_stmt *st, char kind)
{
    char buf[32];
    if (p->l.tok == TOK_END || p->l.tok == TOK_ARROW)
        return true;
    if (kind == 's' && p->l.tok != TOK_WORD)
        return true;
    return p->l.tok == TOK_WORD && drill_field_find(st->verb->fields, word_of(&p->l, buf));
}

static bool take_operands(struct parser *p, struct drill_stmt *st)
{
    for (const char *o = st->verb->operands; *o; o++) {
        bool optional = o[1] == '?';
        if (!(optional && missing(p, st, *o)) && !take_operand(p, st, *o))
            return false;
        o += optional;
    }
    return true;
}

/* +10us, +10us..20us, @1ms */
static bool take_when(struct parser *p, struct drill_time *t)
{
    if (!drill_lex_sign(&p->l, '+') && !drill_lex_sign(&p->l, '@'))
        return true;
    t->kind = p->l.sign == '+' ? TIME_AFTER : TIME_AT;
    drill_lex_next(&p->l);
    if (!take_time(p, &t->lo))
        return false;
    t->hi = t->lo;
    if (p->l.tok != TOK_RANGE)
        return true;
    t->range = true;
    drill_lex_next(&p->l);
    if (!take_time(p, &t->hi))
        return false;
    return t->hi >= t->lo ? true : fail(p, "the range of times ends before it begins");
}

static bool begin_block(struct parser *p, struct drill_stmt *st)
{
    if (!drill_lex_sign(&p->l, '{'))
        return expected(p, "'{'");
    drill_lex_next(&p->l);
    if (p->depth == BLOCKS_MAX)
        return fail(p, "blocks are nested at most %u deep", BLOCKS_MAX);
    p->tail[++p->depth] = &st->body;
    p->block[p->depth] = st;
    return true;
}

static bool take_statement(struct parser *p)
{
    char buf[32];
    struct drill_stmt *st = drill_alloc(p->s, sizeof *st);
    if (!st)
        return no_memory(p);
    st->line = p->line;
    st->state = QPS_RTS;
    const char *end = p->l.end;
    while (end > p->l.at && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
        end--;
    if (!(st->text = keep(p, p->l.at, (size_t)(end - p->l.at))) || !take_when(p, &st->time))
        return false;
    if (p->l.tok == TOK_WORD)
        word_of(&p->l, buf);
    else if (drill_lex_sign(&p->l, '<') || drill_lex_sign(&p->l, '>'))
        snprintf(buf, sizeof buf, "%c", p->l.sign);
    else
        return expected(p, "a statement");
    if (!(st->verb = drill_verb_find(buf)))
        return fail(p, "there is no statement '%.*s'", (int)p->l.len, p->l.text);
    if (p->depth && p->block[p->depth]->verb->kind == DO_ANY && !(st->verb->flags & VERB_AWAIT))
        return fail(p, "within any { } are >, cqe, event and cm_event, no '%s'", buf);
    if (st->time.range && !(st->verb->flags & VERB_AWAIT))
        return fail(p, "'%s' is at one time, in no range of times", buf);
    p->head = p->l.at;
    drill_lex_next(&p->l);
    if (!take_operands(p, st))
        return false;
    p->head_len = (int)(p->l.at - p->head);
    while (p->head_len && p->head[p->head_len - 1] == ' ')
        p->head_len--;
    *p->tail[p->depth] = st;
    p->tail[p->depth] = &st->next;
    if (strchr(st->verb->operands, '{'))
        return begin_block(p, st);
    bool cm = strchr(st->verb->operands, 'p') && st->word & DRILL_OP_CM;
    if (!take_fields(p, st, cm ? drill_mad_fields : st->verb->fields, st->verb->fields))
        return false;
    if (p->l.tok == TOK_ARROW) {
        uint64_t e;
        if (!(st->verb->flags & VERB_CALL))
            return fail(p, "'%s' is no call that could fail", st->verb->word);
        drill_lex_next(&p->l);
        if (!take_word(p, drill_errnos, &e))
            return false;
        st->error = (int)e;
    }
    if (st->verb->kind == DO_WIRE)
        p->s->wire = st->name ? st->name : DRILL_TARGET;
    return true;
}

static bool take_line(struct parser *p, const char *line, const char *end)
{
    drill_lex_begin(&p->l, line, end);
    if (p->l.tok == TOK_END)
        return true;
    if (drill_lex_sign(&p->l, '}')) {
        if (!p->depth)
            return fail(p, "'}' without '{'");
        p->depth--;
        drill_lex_next(&p->l);
    } else if (!take_statement(p)) {
        return false;
    }
    return p->l.tok == TOK_END ? true : expected(p, "the end of the line");
}

/* "REQ-07 RTX-01": words of capitals, '-' and two digits. */
static bool are_rules(const char *at, const char *end)
{
    while (at < end) {
        const char *word = at;
        while (at < end && *at >= 'A' && *at <= 'Z')
            at++;
        if (at == word || end - at < 3 || at[0] != '-' || at[1] < '0' || at[1] > '9' ||
            at[2] < '0' || at[2] > '9')
            return false;
        for (at += 3; at < end && *at == ' '; at++)
            ;
    }
    return true;
}

static const char *trimmed(struct parser *p, const char *at, const char *end)
{
    while (at < end && *at == ' ')
        at++;
    while (end > at && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
        end--;
    return keep(p, at, (size_t)(end - at));
}

/* "# REQ-07 RTX-01: what is shown", or a comment without rules. */
static bool take_purpose(struct parser *p, const char *line, const char *end)
{
    p->s->rules = p->s->purpose = "";
    if (line == end || *line != '#')
        return true;
    for (line++; line < end && *line == ' '; line++)
        ;
    const char *colon = memchr(line, ':', (size_t)(end - line));
    if (colon && are_rules(line, colon)) {
        p->s->rules = trimmed(p, line, colon);
        line = colon + 1;
    }
    p->s->purpose = trimmed(p, line, end);
    return p->s->rules && p->s->purpose;
}

static bool parse(struct parser *p, const char *text, size_t len)
{
    const char *at = text, *end = text + len;
    if (len > DRILL_TEXT_MAX)
        return fail(p, "a script has at most %u octets", DRILL_TEXT_MAX);
    p->tail[0] = &p->s->first;
    for (p->line = 1; at < end; p->line++) {
        const char *eol = memchr(at, '\n', (size_t)(end - at));
        eol = eol ? eol : end;
        if (p->line == 1 && !take_purpose(p, at, eol))
            return false;
        if (!take_line(p, at, eol))
            return false;
        at = eol < end ? eol + 1 : end;
    }
    if (p->depth) {
        p->line = p->block[p->depth]->line;
        p->l.at = p->l.line;
        return fail(p, "this block has no '}'");
    }
    p->line = 1;
    p->l.at = p->l.line;
    return p->s->first ? true : fail(p, "a script has at least one statement");
}

struct drill_script *drill_parse(const char *text, size_t len, struct drill_error *err)
{
    struct parser p = {.err = err, .line = 1};
    *err = (struct drill_error){0};
    p.s = calloc(1, sizeof *p.s);
    if (!p.s) {
        no_memory(&p);
        return NULL;
    }
    p.l.line = p.l.at = text;
    if (parse(&p, text, len))
        return p.s;
    drill_free(p.s);
    return NULL;
}

/* ---- questions ---- */

const char *drill_rules(const struct drill_script *s)
{
    return s->rules;
}

const char *drill_purpose(const struct drill_script *s)
{
    return s->purpose;
}

const char *drill_wire_server(const struct drill_script *s)
{
    return s->wire;
}

const struct drill_arg *drill_arg(const struct drill_stmt *st, int id)
{
    for (const struct drill_arg *a = st->args; a; a = a->next)
        if (a->field && a->field->id == id)
            return a;
    return NULL;
}

bool drill_flag(const struct drill_stmt *st, int id)
{
    const struct drill_arg *a = drill_arg(st, id);
    return a && !a->off;
}
