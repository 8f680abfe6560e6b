/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The rule language (doc/faults.md has its grammar): a line is actions joined by `and`, then
 * selectors in any order. Two tables of words, each with the function that reads what follows the
 * word; the messages list what the tables hold.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "fault_lex.h"

#define SIZE_MOST 65535u
#define MANY      UINT32_MAX
#define LONGEST   3600000000000ull /* ns: an hour */

struct parser {
    struct fault_lex lx;
    struct fault_rule *r;
    struct fault_action *a; /* the one that is being read */
};

struct word {
    const char *name;
    uint32_t bit; /* of a selector: may be there once */
    bool (*read)(struct parser *p);
};

/* ---- actions --------------------------------------------------------------------------------- */

static bool read_drop(struct parser *p)
{
    p->a->verb = FAULT_V_DROP;
    return true;
}

static bool read_delay(struct parser *p)
{
    p->a->verb = FAULT_V_DELAY;
    return fault_lex_range(&p->lx, FAULT_TIME, LONGEST, false, &p->a->range);
}

static bool read_duplicate(struct parser *p)
{
    p->a->verb = FAULT_V_DUPLICATE;
    p->a->n = 1;
    return !fault_lex_digit(&p->lx) ||
           fault_lex_value(&p->lx, FAULT_NUMBER, 1, FAULT_COPIES_MAX, &p->a->n);
}

static bool read_reorder(struct parser *p)
{
    p->a->verb = FAULT_V_REORDER;
    p->a->value = FAULT_WITHIN;
    if (!fault_lex_value(&p->lx, FAULT_NUMBER, 1, 1024, &p->a->n))
        return false;
    return !fault_lex_takes(&p->lx, "within") ||
           fault_lex_value(&p->lx, FAULT_TIME, 1, LONGEST, &p->a->value);
}

/* ... and whether the iCRC is mended afterwards. */
static void read_repair(struct parser *p, bool otherwise)
{
    p->a->repair = otherwise;
    if (fault_lex_takes(&p->lx, "repair"))
        p->a->repair = true;
    else if (fault_lex_takes(&p->lx, "norepair"))
        p->a->repair = false;
}

static bool read_corrupt(struct parser *p)
{
    struct fault_word w = fault_lex_next(&p->lx);
    struct fault_action *a = p->a;
    a->verb = FAULT_V_CORRUPT;
    a->value = 0xFF;
    a->n = 1;
    if (fault_word_is(w, "icrc")) {
        a->how = FAULT_ICRC;
        return true;
    }
    if (fault_word_is(w, "random")) {
        a->how = FAULT_RANDOM;
        if (fault_lex_digit(&p->lx) && !fault_lex_value(&p->lx, FAULT_NUMBER, 1, 64, &a->n))
            return false;
    } else if (fault_word_is(w, "byte") || fault_word_is(w, "payload")) {
        a->how = fault_word_is(w, "byte") ? FAULT_BYTE : FAULT_PAYLOAD;
        if (!fault_lex_value(&p->lx, FAULT_NUMBER, 0, SIZE_MOST, &a->n))
            return false;
        if (fault_lex_takes(&p->lx, "xor") &&
            !fault_lex_value(&p->lx, FAULT_NUMBER, 1, 255, &a->value))
            return false;
    } else {
        return fault_lex_expected(&p->lx, w, "what to corrupt: byte, payload, random or icrc");
    }
    read_repair(p, false);
    return true;
}

static bool read_mark(struct parser *p)
{
    p->a->verb = FAULT_V_MARK;
    return true;
}

static bool read_trim(struct parser *p)
{
    p->a->verb = FAULT_V_TRIM;
    return fault_lex_value(&p->lx, FAULT_SIZE, WIRE_ETH_LEN, SIZE_MOST, &p->a->n);
}

static const struct {
    const char *name;
    uint8_t syndrome;
} naks[] = {
    {"psn-seq", WIRE_SYN_NAK_SEQ}, {"invalid", WIRE_SYN_NAK_INV}, {"access", WIRE_SYN_NAK_ACCESS},
    {"op-error", WIRE_SYN_NAK_OP}, {"rnr", WIRE_SYN_RNR},
};

static bool read_nak(struct parser *p)
{
    struct fault_word w = fault_lex_next(&p->lx);
    uint64_t timer = 1;
    p->a->how = FAULT_NAK;
    for (size_t i = 0; i < sizeof naks / sizeof naks[0]; i++) {
        if (!fault_word_is(w, naks[i].name))
            continue;
        p->a->n = naks[i].syndrome;
        if (naks[i].syndrome != WIRE_SYN_RNR)
            return true;
        if (fault_lex_digit(&p->lx) && !fault_lex_value(&p->lx, FAULT_NUMBER, 0, 31, &timer))
            return false;
        p->a->n |= timer;
        return true;
    }
    return fault_lex_expected(&p->lx, w, "a NAK: psn-seq, invalid, access, op-error or rnr");
}

static bool read_pause(struct parser *p)
{
    uint64_t prio = 3;
    p->a->how = FAULT_PAUSE;
    p->a->value = 65535;
    if (fault_lex_digit(&p->lx) &&
        (!fault_lex_value(&p->lx, FAULT_NUMBER, 0, 7, &prio) ||
         (fault_lex_digit(&p->lx) &&
          !fault_lex_value(&p->lx, FAULT_NUMBER, 0, 65535, &p->a->value))))
        return false;
    p->a->n = prio;
    return true;
}

static bool read_inject(struct parser *p)
{
    struct fault_word w = fault_lex_next(&p->lx);
    p->a->verb = FAULT_V_INJECT;
    if (fault_word_is(w, "nak"))
        return read_nak(p);
    p->a->how = FAULT_CNP;
    if (fault_word_is(w, "pause")) {
        if (!read_pause(p))
            return false;
    } else if (!fault_word_is(w, "cnp")) {
        return fault_lex_expected(&p->lx, w, "what to inject: cnp, nak or pause");
    }
    p->a->forth = fault_lex_takes(&p->lx, "forth");
    if (!p->a->forth)
        fault_lex_takes(&p->lx, "back");
    return true;
}

static bool read_set(struct parser *p)
{
    char names[256], what[280];
    struct fault_action *a = p->a;
    struct fault_word w = fault_lex_next(&p->lx);
    a->verb = FAULT_V_SET;
    a->field = fault_field_find(w.s, w.len);
    if (!a->field) {
        snprintf(what, sizeof what, "a field: %s", fault_field_names(names, sizeof names));
        return fault_lex_expected(&p->lx, w, what);
    }
    w = fault_lex_peek(&p->lx);
    a->how = w.len && w.s[0] == '+' ? FAULT_PLUS : w.len && w.s[0] == '-' ? FAULT_MINUS : FAULT_TO;
    if (a->how != FAULT_TO && w.len > 1)
        p->lx.at = w.s + 1;
    uint64_t most = a->field->width == 64 ? UINT64_MAX : (1ull << a->field->width) - 1;
    if (!fault_lex_value(&p->lx, FAULT_NUMBER, 0, most, &a->value))
        return false;
    read_repair(p, true);
    return true;
}

static const struct word actions[] = {
    {"drop", 0, read_drop},
    {"delay", 0, read_delay},
    {"duplicate", 0, read_duplicate},
    {"reorder", 0, read_reorder},
    {"corrupt", 0, read_corrupt},
    {"mark", 0, read_mark},
    {"trim", 0, read_trim},
    {"inject", 0, read_inject},
    {"set", 0, read_set},
    {NULL, 0, NULL},
};

/* ---- selectors ------------------------------------------------------------------------------- */

static bool read_a_b(struct parser *p)
{
    p->r->m.dir = FAULT_AB;
    return true;
}

static bool read_b_a(struct parser *p)
{
    p->r->m.dir = FAULT_BA;
    return true;
}

static bool read_src(struct parser *p)
{
    return fault_lex_prefix(&p->lx, &p->r->m.src);
}

static bool read_dst(struct parser *p)
{
    return fault_lex_prefix(&p->lx, &p->r->m.dst);
}

static bool read_qpn(struct parser *p)
{
    uint64_t n = 0;
    bool good = fault_lex_value(&p->lx, FAULT_NUMBER, 0, WIRE_QPN_MASK, &n);
    p->r->m.qpn = (uint32_t)n;
    return good;
}

static bool read_conn(struct parser *p)
{
    struct fault_word w = fault_lex_peek(&p->lx);
    if (!fault_lex_range(&p->lx, FAULT_NUMBER, MANY, true, &p->r->m.conn))
        return false;
    return p->r->m.conn.hi || fault_lex_expected(&p->lx, w, "a connection's number, from 1");
}

static bool read_psn(struct parser *p)
{
    return fault_lex_psn(&p->lx, &p->r->m.psn, &p->r->m.psn_relative);
}

static bool read_first_tx(struct parser *p)
{
    p->r->m.retx = false;
    return true;
}

static bool read_retx(struct parser *p)
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

static bool read_pos(struct parser *p)
{
    struct fault_word rest = fault_lex_next(&p->lx), w;
    while (part(&rest, &w)) {
        uint16_t bit = 0;
        for (size_t i = 0; i < sizeof positions / sizeof positions[0]; i++)
            if (fault_word_is(w, positions[i].name))
                bit = positions[i].bit;
        if (!bit)
            return fault_lex_expected(&p->lx, w, "a position: first, middle, last or only");
        p->r->m.pos |= bit;
    }
    return true;
}

static bool read_size(struct parser *p)
{
    return fault_lex_range(&p->lx, FAULT_SIZE, SIZE_MOST, true, &p->r->m.size);
}

static bool read_payload(struct parser *p)
{
    return fault_lex_range(&p->lx, FAULT_SIZE, SIZE_MOST, true, &p->r->m.payload);
}

static bool read_nth(struct parser *p)
{
    struct fault_word w = fault_lex_peek(&p->lx);
    if (!fault_lex_range(&p->lx, FAULT_NUMBER, MANY, true, &p->r->m.occur))
        return false;
    return p->r->m.occur.hi || fault_lex_expected(&p->lx, w, "a number from 1");
}

static bool read_first(struct parser *p)
{
    p->r->m.occur = (struct fault_range){1, 1};
    return !fault_lex_digit(&p->lx) ||
           fault_lex_value(&p->lx, FAULT_NUMBER, 1, MANY, &p->r->m.occur.hi);
}

static bool read_every(struct parser *p)
{
    return fault_lex_value(&p->lx, FAULT_NUMBER, 1, MANY, &p->r->m.every);
}

static bool read_prob(struct parser *p)
{
    return fault_lex_prob(&p->lx, &p->r->m.prob);
}

static bool read_after(struct parser *p)
{
    return fault_lex_value(&p->lx, FAULT_TIME, 0, UINT64_MAX / 4, &p->r->m.after);
}

static bool read_until(struct parser *p)
{
    return fault_lex_value(&p->lx, FAULT_TIME, 0, UINT64_MAX / 4, &p->r->m.until);
}

static bool read_count(struct parser *p)
{
    return fault_lex_value(&p->lx, FAULT_NUMBER, 1, MANY, &p->r->m.count);
}

static bool read_op(struct parser *p)
{
    uint64_t n = 0;
    if (!fault_lex_value(&p->lx, FAULT_NUMBER, 0, 255, &n))
        return false;
    p->r->m.opcodes[n / 32] |= 1u << n % 32;
    return true;
}

static const struct word selectors[] = {
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
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
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

/* ---- lines ----------------------------------------------------------------------------------- */

static const struct word *find(const struct word *table, struct fault_word w)
{
    while (table->name && !fault_word_is(w, table->name))
        table++;
    return table->name ? table : NULL;
}

static bool read_actions(struct parser *p)
{
    do {
        struct fault_word w = fault_lex_next(&p->lx);
        const struct word *x = find(actions, w);
        if (!x)
            return fault_lex_expected(&p->lx, w,
                                      "an action: drop, delay, duplicate, reorder, corrupt, mark, "
                                      "trim, inject or set");
        if (p->r->nactions == FAULT_ACTIONS)
            return fault_lex_error(&p->lx, w, "a rule has at most %u actions", FAULT_ACTIONS);
        p->a = &p->r->action[p->r->nactions];
        if (!x->read(p))
            return false;
        p->r->nactions++;
    } while (fault_lex_takes(&p->lx, "and"));
    return true;
}

static bool read_classes(struct parser *p, struct fault_word word)
{
    struct fault_word rest = word, w;
    while (part(&rest, &w))
        if (!add_class(&p->r->m, w))
            return fault_lex_expected(
                &p->lx, w,
                "a selector (a->b, src, qpn, conn, psn, first-tx, retx, pos, size, nth, prob, "
                "after, count ...), a class (data, ack ...) or an opcode's name");
    return true;
}

static bool read_selector(struct parser *p)
{
    struct fault_match *m = &p->r->m;
    struct fault_word w = fault_lex_next(&p->lx);
    const struct word *x = find(selectors, w);
    uint32_t bit = x ? x->bit : FAULT_S_CLASS;
    if (!x && !read_classes(p, w))
        return false;
    if (m->says & bit)
        return fault_lex_error(&p->lx, w, "'%.*s': the rule has one of its kind already",
                               (int)(w.len < 32 ? w.len : 32), w.s);
    if (x && !x->read(p))
        return false;
    m->says |= bit;
    return true;
}

/* One PSN is in a request and in the responses to it; without a class the request is meant. */
static void complete(struct fault_match *m)
{
    if (m->says & FAULT_S_CLASS)
        return;
    m->classes = m->says & (FAULT_S_PSN | FAULT_S_TX) ? FAULT_C_REQUEST : FAULT_C_ANY;
}

static bool read_rule(struct parser *p)
{
    if (!read_actions(p))
        return false;
    while (fault_lex_peek(&p->lx).len)
        if (!read_selector(p))
            return false;
    complete(&p->r->m);
    return true;
}

/* ---- the text -------------------------------------------------------------------------------- */

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
        void *more = realloc(f->rule, room * sizeof *f->rule);
        full = !more;
        if (more)
            f->rule = more;
    }
    if (full) {
        *err = (struct fault_error){.line = line, .column = 1};
        snprintf(err->text, sizeof err->text,
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
    struct parser p = {.lx.err = err};
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
