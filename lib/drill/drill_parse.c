/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Text to statements. The syntax of statements is data (drill_verb.c, drill_field.c), which this
 * file interprets.
 */
#include "drill_parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"

/* ---- operands and fields ---- */

static bool take_fields(struct drill_parser *p, struct drill_stmt *st,
                        const struct drill_field *first, const struct drill_field *second)
{
    struct drill_arg **tail = &st->args;
    char buf[DRILL_WORD_MAX];
    while (*tail)
        tail = &(*tail)->next;
    while (p->l.tok != TOK_END && p->l.tok != TOK_ARROW && !drill_lex_sign(&p->l, '{')) {
        bool off = drill_lex_sign(&p->l, '!');
        if (off)
            drill_lex_next(&p->l);
        if (p->l.tok != TOK_WORD)
            return drill_expected(p, "a field's name");
        const struct drill_field *f = drill_field_find(first, drill_word_of(&p->l, buf));
        if (!f)
            f = drill_field_find(second, buf);
        if (!f)
            return drill_parse_fail(p, "'%s' has no field '%.*s'", st->verb->word, (int)p->l.len,
                                    p->l.text);
        if (!drill_takes(st, f))
            return drill_parse_fail(p, "'%.*s' takes no '%s'", p->head_len, p->head, f->name);
        const struct drill_field *before = drill_again(st, f);
        if (before && before != f) /* the same field's other name, as `from` and `into` of a READ */
            return drill_parse_fail(p, "'%s' means the same as '%s', which is given", f->name,
                                    before->name);
        if (before)
            return drill_parse_fail(p, "'%s' is given twice", f->name);
        if (off && f->type != TYPE_FLAG)
            return drill_parse_fail(p, "'%s' is no flag", f->name);
        struct drill_arg *a = drill_alloc(p->s, sizeof(*a));
        if (!a)
            return drill_no_memory(p);
        a->field = f;
        a->off = off;
        drill_lex_next(&p->l);
        if (!drill_take_value(p, f, &a->v))
            return false;
        *tail = a;
        tail = &a->next;
    }
    return true;
}

static bool take_opcode(struct drill_parser *p, struct drill_stmt *st)
{
    char buf[DRILL_WORD_MAX];
    if (p->l.tok != TOK_WORD)
        return drill_expected(p, "an opcode");
    int64_t op = drill_opcode_find(drill_word_of(&p->l, buf));
    if (op < 0)
        return drill_parse_fail(p, "there is no opcode '%.*s'", (int)p->l.len, p->l.text);
    drill_lex_next(&p->l);
    st->word = (uint64_t)op;
    if (op & DRILL_OP_CM) {
        uint64_t attr = 0;
        if (!drill_take_word(p, drill_cm_attrs, &attr))
            return false;
        st->word |= attr << 16;
    } else if (op & DRILL_OP_RAW) {
        if (p->l.tok != TOK_NUMBER || p->l.num > 255)
            return drill_expected(p, "an opcode, 0..255");
        st->word |= p->l.num;
        drill_lex_next(&p->l);
    }
    return true;
}

static bool take_operand(struct drill_parser *p, struct drill_stmt *st, char kind)
{
    const struct drill_word *state;
    char buf[DRILL_WORD_MAX];
    switch (kind) {
    case 'n':
        return drill_take_new_name(p, &st->name);
    case 'o':
        return drill_take_name(p, &st->name);
    case 's':
        if (!(state = drill_word_find(drill_states, drill_word_of(&p->l, buf))))
            return drill_parse_fail(p, "'%s' is neither a state nor a field of '%s'", buf,
                                    st->verb->word);
        if (state->value > QPS_RTS)
            return drill_parse_fail(p, "a new queue pair goes up to rts, not to %s", buf);
        st->state = state->value;
        drill_lex_next(&p->l);
        return true;
    case 'w':
        return drill_take_word(p, st->verb->words, &st->word);
    case 'e':
        return drill_take_expr(p, &st->expr, "a number");
    case 't':
        return drill_take_time(p, &st->number);
    case 'd':
        return drill_take_data(p, &st->data);
    case 'r':
        return drill_take_range(p, &st->range);
    case 'a':
        return drill_take_addr(p, &st->addr);
    case 'p':
        return take_opcode(p, st);
    case 'v':
        st->args = drill_alloc(p->s, sizeof(*st->args));
        return st->args ? drill_take_number(p, &st->args->v) : drill_no_memory(p);
    case '=':
        if (!drill_lex_sign(&p->l, '='))
            return drill_expected(p, "'='");
        drill_lex_next(&p->l);
        return true;
    default:
        return true; /* '{': take_line */
    }
}

/* An operand that may be missing: is it? */
static bool missing(const struct drill_parser *p, const struct drill_stmt *st, char kind)
{
    char buf[DRILL_WORD_MAX];
    if (p->l.tok == TOK_END || p->l.tok == TOK_ARROW)
        return true;
    if (kind == 's' && p->l.tok != TOK_WORD)
        return true;
    return p->l.tok == TOK_WORD && drill_field_find(st->verb->fields, drill_word_of(&p->l, buf));
}

static bool take_operands(struct drill_parser *p, struct drill_stmt *st)
{
    for (const char *o = st->verb->operands; *o; o++) {
        bool optional = o[1] == '?';
        if (!(optional && missing(p, st, *o)) && !take_operand(p, st, *o))
            return false;
        o += optional;
    }
    return true;
}

/* ---- statements ---- */

/* +10us, +10us..20us, @1ms */
static bool take_when(struct drill_parser *p, struct drill_time *t)
{
    if (!drill_lex_sign(&p->l, '+') && !drill_lex_sign(&p->l, '@'))
        return true;
    t->kind = p->l.sign == '+' ? TIME_AFTER : TIME_AT;
    drill_lex_next(&p->l);
    if (!drill_take_time(p, &t->lo))
        return false;
    t->hi = t->lo;
    if (p->l.tok != TOK_RANGE)
        return true;
    t->range = true;
    drill_lex_next(&p->l);
    if (!drill_take_time(p, &t->hi))
        return false;
    return t->hi >= t->lo ? true : drill_parse_fail(p, "the range of times ends before it begins");
}

static bool begin_block(struct drill_parser *p, struct drill_stmt *st)
{
    if (!drill_lex_sign(&p->l, '{'))
        return drill_expected(p, "'{'");
    drill_lex_next(&p->l);
    if (p->depth == DRILL_BLOCKS_MAX)
        return drill_parse_fail(p, "blocks are nested at most %u deep", DRILL_BLOCKS_MAX);
    p->tail[++p->depth] = &st->body;
    p->block[p->depth] = st;
    return true;
}

static bool take_statement(struct drill_parser *p)
{
    char buf[DRILL_WORD_MAX];
    struct drill_stmt *st = drill_alloc(p->s, sizeof(*st));
    if (!st)
        return drill_no_memory(p);
    st->line = p->line;
    st->state = QPS_RTS;
    const char *end = p->l.end;
    while (end > p->l.at && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
        end--;
    if (!(st->text = drill_keep(p, p->l.at, (size_t)(end - p->l.at))) || !take_when(p, &st->time))
        return false;
    if (p->l.tok == TOK_WORD)
        drill_word_of(&p->l, buf);
    else if (drill_lex_sign(&p->l, '<') || drill_lex_sign(&p->l, '>'))
        snprintf(buf, sizeof(buf), "%c", p->l.sign);
    else
        return drill_expected(p, "a statement");
    if (!(st->verb = drill_verb_find(buf)))
        return drill_parse_fail(p, "there is no statement '%.*s'", (int)p->l.len, p->l.text);
    if (p->depth && p->block[p->depth]->verb->kind == DO_ANY && !(st->verb->flags & VERB_AWAIT))
        return drill_parse_fail(p, "within any { } are >, cqe, event and cm_event, no '%s'", buf);
    if (st->time.range && !(st->verb->flags & VERB_AWAIT))
        return drill_parse_fail(p, "'%s' is at one time, in no range of times", buf);
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
        uint64_t e = 0;
        if (!(st->verb->flags & VERB_CALL))
            return drill_parse_fail(p, "'%s' is no call that could fail", st->verb->word);
        drill_lex_next(&p->l);
        if (!drill_take_word(p, drill_errnos, &e))
            return false;
        st->error = (int)e;
    }
    if (st->verb->kind == DO_WIRE)
        p->s->wire = st->name ? st->name : DRILL_TARGET;
    return true;
}

static bool take_line(struct drill_parser *p, const char *line, const char *end)
{
    drill_lex_begin(&p->l, line, end);
    if (p->l.tok == TOK_END)
        return true;
    if (drill_lex_sign(&p->l, '}')) {
        if (!p->depth)
            return drill_parse_fail(p, "'}' without '{'");
        p->depth--;
        drill_lex_next(&p->l);
    } else if (!take_statement(p)) {
        return false;
    }
    return p->l.tok == TOK_END ? true : drill_expected(p, "the end of the line");
}

/* ---- the text ---- */

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

static const char *trimmed(struct drill_parser *p, const char *at, const char *end)
{
    while (at < end && *at == ' ')
        at++;
    while (end > at && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
        end--;
    return drill_keep(p, at, (size_t)(end - at));
}

/* "# REQ-07 RTX-01: purpose", or a comment without rules. */
static bool take_purpose(struct drill_parser *p, const char *line, const char *end)
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

static bool parse(struct drill_parser *p, const char *text, size_t len)
{
    const char *at = text, *end = text + len;
    if (len > DRILL_TEXT_MAX)
        return drill_parse_fail(p, "a script has at most %u octets", DRILL_TEXT_MAX);
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
        return drill_parse_fail(p, "this block has no '}'");
    }
    p->line = 1;
    p->l.at = p->l.line;
    return p->s->first ? true : drill_parse_fail(p, "a script has at least one statement");
}

struct drill_script *drill_parse(const char *text, size_t len, struct drill_error *err)
{
    struct drill_parser p = {.err = err, .line = 1};
    *err = (struct drill_error){0};
    p.s = calloc(1, sizeof(*p.s));
    if (!p.s) {
        drill_no_memory(&p);
        return NULL;
    }
    if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) { /* the mark that some editors begin with */
        text += 3;
        len -= 3;
    }
    p.l.line = p.l.at = text;
    if (parse(&p, text, len))
        return p.s;
    drill_free(p.s);
    return NULL;
}
