/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The rule language (doc/faults.md has its grammar): a line is actions joined by `and`
 * (fault_parse_action.c), then selectors in any order: a table of words, each with the function
 * that reads the rest of it. A word outside the table is a class of packets, or an opcode.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fault_parse.h"

#define MANY UINT32_MAX

/* ---- selectors ---- */

static bool read_a_b(struct fault_parser *p)
{
    p->r->m.dir = FAULT_AB;
    return true;
}

static bool read_b_a(struct fault_parser *p)
{
    p->r->m.dir = FAULT_BA;
    return true;
}

static bool read_src(struct fault_parser *p)
{
    return fault_lex_prefix(&p->lx, &p->r->m.src);
}

static bool read_dst(struct fault_parser *p)
{
    return fault_lex_prefix(&p->lx, &p->r->m.dst);
}

static bool read_qpn(struct fault_parser *p)
{
    uint64_t n = 0;
    bool good = fault_lex_value(&p->lx, FAULT_NUMBER, 0, WIRE_QPN_MASK, &n);
    p->r->m.qpn = (uint32_t)n;
    return good;
}

static bool read_conn(struct fault_parser *p)
{
    struct fault_word w = fault_lex_peek(&p->lx);
    if (!fault_lex_range(&p->lx, FAULT_NUMBER, MANY, true, &p->r->m.conn))
        return false;
    return p->r->m.conn.hi || fault_lex_expected(&p->lx, w, "a connection's number, from 1");
}

static bool read_psn(struct fault_parser *p)
{
    return fault_lex_psn(&p->lx, &p->r->m.psn, &p->r->m.psn_relative);
}

static bool read_first_tx(struct fault_parser *p)
{
    p->r->m.retx = false;
    return true;
}

static bool read_retx(struct fault_parser *p)
{
    p->r->m.retx = true;
    return true;
}

static const struct {
    const char *name;
    uint16_t bit;
} positions[] = {{"first", WIRE_F_FIRST},
                 {"middle", WIRE_F_MIDDLE},
                 {"last", WIRE_F_LAST},
                 {"only", WIRE_F_ONLY}};

/* The next part of a word with | in it; false = there is none. */
static bool part(struct fault_word *rest, struct fault_word *out)
{
    if (!rest->s)
        return false;
    const char *bar = rest->len ? memchr(rest->s, '|', rest->len) : NULL;
    size_t len = bar ? (size_t)(bar - rest->s) : rest->len;
    *out = (struct fault_word){rest->s, len, rest->column};
    if (bar)
        *rest = (struct fault_word){bar + 1, rest->len - len - 1, rest->column + (unsigned)len + 1};
    else
        rest->s = NULL;
    return true;
}

/* The name before or after a | is missing, or a blank is in its place. */
static bool lone_bar(struct fault_parser *p, struct fault_word w)
{
    return fault_lex_error(&p->lx, w, "'|' joins two names, without blanks");
}

static bool read_pos(struct fault_parser *p)
{
    struct fault_word rest = fault_lex_next(&p->lx), w;
    bool bars = rest.len && memchr(rest.s, '|', rest.len);
    while (part(&rest, &w)) {
        uint16_t bit = 0;
        if (!w.len && bars)
            return lone_bar(p, w);
        for (size_t i = 0; i < sizeof(positions) / sizeof(positions[0]); i++)
            if (fault_word_is(w, positions[i].name))
                bit = positions[i].bit;
        if (!bit)
            return fault_lex_expected(&p->lx, w, "a position: first, middle, last or only");
        p->r->m.pos |= bit;
    }
    return true;
}

static bool read_size(struct fault_parser *p)
{
    return fault_lex_range(&p->lx, FAULT_SIZE, FAULT_SIZE_MOST, true, &p->r->m.size);
}

static bool read_payload(struct fault_parser *p)
{
    return fault_lex_range(&p->lx, FAULT_SIZE, FAULT_SIZE_MOST, true, &p->r->m.payload);
}

static bool read_nth(struct fault_parser *p)
{
    struct fault_word w = fault_lex_peek(&p->lx);
    if (!fault_lex_range(&p->lx, FAULT_NUMBER, MANY, true, &p->r->m.occur))
        return false;
    return p->r->m.occur.hi || fault_lex_expected(&p->lx, w, "a number from 1");
}

static bool read_first(struct fault_parser *p)
{
    p->r->m.occur = (struct fault_range){1, 1};
    return !fault_lex_digit(&p->lx) ||
           fault_lex_value(&p->lx, FAULT_NUMBER, 1, MANY, &p->r->m.occur.hi);
}

static bool read_every(struct fault_parser *p)
{
    return fault_lex_value(&p->lx, FAULT_NUMBER, 1, MANY, &p->r->m.every);
}

static bool read_prob(struct fault_parser *p)
{
    return fault_lex_prob(&p->lx, &p->r->m.prob);
}

/* One of the two ends of a time window. */
static bool read_end(struct fault_parser *p, uint32_t other, uint64_t *end)
{
    const struct fault_match *m = &p->r->m;
    struct fault_word w = fault_lex_peek(&p->lx);
    if (!fault_lex_value(&p->lx, FAULT_TIME, 0, UINT64_MAX / 4, end))
        return false;
    return !(m->says & other) || m->after < m->until ||
           fault_lex_error(&p->lx, w, "the time window ends before it begins");
}

static bool read_after(struct fault_parser *p)
{
    return read_end(p, FAULT_S_UNTIL, &p->r->m.after);
}

static bool read_until(struct fault_parser *p)
{
    return read_end(p, FAULT_S_AFTER, &p->r->m.until);
}

static bool read_count(struct fault_parser *p)
{
    return fault_lex_value(&p->lx, FAULT_NUMBER, 1, MANY, &p->r->m.count);
}

static bool read_op(struct fault_parser *p)
{
    uint64_t n = 0;
    if (!fault_lex_value(&p->lx, FAULT_NUMBER, 0, 255, &n))
        return false;
    p->r->m.opcodes[n / 32] |= 1u << n % 32;
    return true;
}

static const struct fault_keyword selectors[] = {
    {"a->b", FAULT_S_DIR, read_a_b},
    {"b->a", FAULT_S_DIR, read_b_a},
    {"src", FAULT_S_SRC, read_src},
    {"dst", FAULT_S_DST, read_dst},
    {"qpn", FAULT_S_QPN, read_qpn},
    {"conn", FAULT_S_CONN, read_conn},
    {"psn", FAULT_S_PSN, read_psn},
    {"first-tx", FAULT_S_TX, read_first_tx},
    {"retx", FAULT_S_TX, read_retx},
    {"pos", FAULT_S_POS, read_pos},
    {"size", FAULT_S_SIZE, read_size},
    {"payload", FAULT_S_PAYLOAD, read_payload},
    {"nth", FAULT_S_OCCUR, read_nth},
    {"first", FAULT_S_OCCUR, read_first},
    {"every", FAULT_S_OCCUR, read_every},
    {"prob", FAULT_S_PROB, read_prob},
    {"after", FAULT_S_AFTER, read_after},
    {"until", FAULT_S_UNTIL, read_until},
    {"count", FAULT_S_COUNT, read_count},
    {"op", FAULT_S_CLASS, read_op},
    {NULL, 0, NULL},
};

static const struct {
    const char *name;
    uint32_t bit;
} classes[] = {
    {"any", FAULT_C_ANY},
    {"roce", FAULT_C_ROCE},
    {"other", FAULT_C_OTHER},
    {"request", FAULT_C_REQUEST},
    {"response", FAULT_C_RESPONSE},
    {"data", FAULT_C_DATA},
    {"send", FAULT_C_SEND},
    {"write", FAULT_C_WRITE},
    {"read-request", FAULT_C_READ_REQUEST},
    {"read-response", FAULT_C_READ_RESPONSE},
    {"atomic", FAULT_C_ATOMIC},
    {"atomic-ack", FAULT_C_ATOMIC_ACK},
    {"ack", FAULT_C_ACK},
    {"nak", FAULT_C_NAK},
    {"rnr", FAULT_C_RNR},
    {"cnp", FAULT_C_CNP},
    {"cm", FAULT_C_CM},
    {"ud", FAULT_C_UD},
    {"pause", FAULT_C_PAUSE},
};

/* A class or the name of an opcode. */
static bool add_class(struct fault_match *m, struct fault_word w)
{
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
        if (fault_word_is(w, classes[i].name)) {
            m->classes |= classes[i].bit;
            return true;
        }
    }
    for (unsigned op = 0; op < 256; op++) {
        if (wire_opcodes[op].name && fault_word_is(w, wire_opcodes[op].name)) {
            m->opcodes[op / 32] |= 1u << op % 32;
            return true;
        }
    }
    return false;
}

/* ---- lines ---- */

static bool read_classes(struct fault_parser *p, struct fault_word word)
{
    struct fault_word rest = word, w;
    while (part(&rest, &w)) {
        if (!w.len)
            return lone_bar(p, w);
        if (!add_class(&p->r->m, w))
            return fault_lex_expected(
                &p->lx, w,
                "a selector (a->b, src, qpn, conn, psn, first-tx, retx, pos, size, nth, prob, "
                "after, count ...), a class (data, ack ...) or an opcode's name");
    }
    return true;
}

static bool read_selector(struct fault_parser *p)
{
    struct fault_match *m = &p->r->m;
    struct fault_word w = fault_lex_next(&p->lx);
    const struct fault_keyword *x = fault_keyword_find(selectors, w);
    uint32_t bit = x ? x->bit : FAULT_S_CLASS;
    if (!x && !read_classes(p, w))
        return false;
    if (m->says & bit)
        return fault_lex_error(&p->lx, w, "'%.*s': the rule already has one of this kind",
                               (int)(w.len < 32 ? w.len : 32), w.s);
    if (x && !x->read(p))
        return false;
    m->says |= bit;
    return true;
}

/* A request and its responses share PSNs; without a class, `psn` selects the request. */
static void complete(struct fault_match *m)
{
    if (m->says & FAULT_S_CLASS)
        return;
    m->classes = m->says & (FAULT_S_PSN | FAULT_S_TX) ? FAULT_C_REQUEST : FAULT_C_ANY;
}

static bool read_rule(struct fault_parser *p)
{
    if (!fault_parse_actions(p))
        return false;
    while (fault_lex_peek(&p->lx).len)
        if (!read_selector(p))
            return false;
    complete(&p->r->m);
    return true;
}

/* ---- the text ---- */

/* The rule as it is shown: one blank between words. Returns the octets it takes. */
static size_t copy_words(struct fault_lex lx, char *to)
{
    size_t n = 0;
    for (struct fault_word w; (w = fault_lex_next(&lx)).len;) {
        memcpy(to + n, w.s, w.len);
        n += w.len;
        to[n++] = ' ';
    }
    to[n - 1] = 0;
    return n;
}

static struct fault_rule *another(struct fault *f, struct fault_error *err, unsigned line)
{
    bool full = f->nrules == FAULT_RULES_MAX;
    if (!full && (f->nrules & (f->nrules - 1)) == 0) {
        size_t room = f->nrules ? 2 * f->nrules : 1;
        void *more = realloc(f->rule, room * sizeof(*f->rule));
        full = !more;
        if (more)
            f->rule = more;
    }
    if (full) {
        *err = (struct fault_error){.line = line, .column = 1};
        snprintf(err->text, sizeof(err->text),
                 f->nrules == FAULT_RULES_MAX ? "more than %u rules" : "no memory for rule %u",
                 f->nrules);
        return NULL;
    }
    struct fault_rule *r = &f->rule[f->nrules];
    *r = (struct fault_rule){.line = line};
    return r;
}

bool fault_read(struct fault *f, const char *text, size_t len, struct fault_error *err)
{
    struct fault_parser p = {.lx.err = err};
    size_t used = 0;
    unsigned line = 0;
    for (const char *s = text, *end = text + len; s < end;) {
        const char *eol = memchr(s, '\n', (size_t)(end - s));
        if (!eol)
            eol = end;
        fault_lex_line(&p.lx, ++line, s, (size_t)(eol - s));
        s = eol < end ? eol + 1 : end;
        if (!fault_lex_peek(&p.lx).len)
            continue;
        p.r = another(f, err, line);
        if (!p.r)
            return false;
        p.r->text = used;
        used += copy_words(p.lx, f->text + used);
        if (!read_rule(&p))
            return false;
        f->nrules++;
    }
    return true;
}
