/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A line to tokens. Times become ns here.
 */
#include "drill_lex.h"

#include <string.h>

static bool letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return 99;
}

static void bad(struct drill_lex *l, const char *why)
{
    l->tok = TOK_BAD;
    l->why = why;
}

/* 12, 0x2f, 4K, 10us. */
static void number(struct drill_lex *l)
{
    static const struct {
        const char *name;
        uint64_t factor;
        bool time;
    } units[] = {{"ns", 1, true},       {"us", 1000, true},
                 {"ms", 1000000, true}, {"s", 1000000000ull, true},
                 {"K", 1024, false},    {"M", 1u << 20, false},
                 {"G", 1u << 30, false}};
    bool hex = l->end - l->p >= 2 && l->p[0] == '0' && (l->p[1] == 'x' || l->p[1] == 'X');
    int base = hex ? 16 : 10;
    uint64_t v = 0;
    l->p += hex ? 2 : 0;
    if (hex && (l->p == l->end || digit(*l->p) >= base)) {
        bad(l, "digits must follow 0x");
        return;
    }
    for (; l->p < l->end && (digit(*l->p) < base || *l->p == '\''); l->p++) {
        if (*l->p == '\'') {
            if (l->end - l->p < 2 || digit(l->p[1]) >= base) {
                bad(l, "' stands between two digits");
                return;
            }
            continue;
        }
        if (v > (UINT64_MAX - (unsigned)digit(*l->p)) / (unsigned)base) {
            bad(l, "a number has at most 64 bits");
            return;
        }
        v = v * (unsigned)base + (unsigned)digit(*l->p);
    }
    l->tok = TOK_NUMBER;
    l->unit = false;
    l->num = v;
    const char *u = l->p;
    while (l->p < l->end && letter(*l->p))
        l->p++;
    size_t n = (size_t)(l->p - u);
    for (size_t i = 0; n && i < sizeof(units) / sizeof(units[0]); i++) {
        if (strlen(units[i].name) != n || memcmp(units[i].name, u, n) != 0)
            continue;
        if (v > UINT64_MAX / units[i].factor) {
            bad(l, "a number has at most 64 bits");
            return;
        }
        l->num = v * units[i].factor;
        l->unit = units[i].time;
        return;
    }
    if (n)
        bad(l, "unknown unit: ns, us, ms, s, K, M, G are known");
}

void drill_lex_next(struct drill_lex *l)
{
    while (l->p < l->end && (*l->p == ' ' || *l->p == '\t' || *l->p == '\r'))
        l->p++;
    l->at = l->text = l->p;
    l->len = 0;
    if (l->p == l->end || *l->p == '#') {
        l->tok = TOK_END;
        return;
    }
    char c = *l->p;
    if (letter(c)) {
        while (l->p < l->end && (letter(*l->p) || digit(*l->p) < 10 ||
                                 (*l->p == '.' && l->end - l->p > 1 && letter(l->p[1]))))
            l->p++;
        l->tok = TOK_WORD;
    } else if (digit(c) < 10) {
        number(l);
    } else if (c == '"') {
        const char *close = memchr(l->p + 1, '"', (size_t)(l->end - l->p - 1));
        if (!close) {
            bad(l, "the string has no end");
            return;
        }
        l->text = l->p + 1;
        l->len = (size_t)(close - l->text);
        l->p = close + 1;
        l->tok = TOK_STRING;
        return;
    } else if (c == '.' && l->end - l->p > 1 && l->p[1] == '.') {
        l->p += 2;
        l->tok = TOK_RANGE;
    } else if (c == '-' && l->end - l->p > 1 && l->p[1] == '>') {
        l->p += 2;
        l->tok = TOK_ARROW;
    } else if ((unsigned char)c < 0x20 || (unsigned char)c > 0x7E) {
        l->p++;
        bad(l, "this octet is no character of the language");
    } else {
        l->sign = *l->p++;
        l->tok = TOK_SIGN;
    }
    l->len = (size_t)(l->p - l->at);
}

void drill_lex_begin(struct drill_lex *l, const char *line, const char *end)
{
    *l = (struct drill_lex){.p = line, .end = end, .line = line};
    drill_lex_next(l);
}

bool drill_lex_is(const struct drill_lex *l, const char *word)
{
    return l->tok == TOK_WORD && strlen(word) == l->len && !memcmp(l->text, word, l->len);
}

bool drill_lex_sign(const struct drill_lex *l, char sign)
{
    return l->tok == TOK_SIGN && l->sign == sign;
}

unsigned drill_lex_column(const struct drill_lex *l)
{
    return (unsigned)(l->at - l->line) + 1;
}
