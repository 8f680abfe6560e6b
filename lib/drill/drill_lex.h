/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Private to lib/drill: a line's tokens.
 */
#ifndef URNIC_DRILL_LEX_H
#define URNIC_DRILL_LEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum drill_token {
    TOK_END, /* of the line, or a comment */
    TOK_WORD,
    TOK_NUMBER,
    TOK_STRING,
    TOK_RANGE, /* .. */
    TOK_ARROW, /* -> */
    TOK_SIGN,  /* any other character: `sign` */
    TOK_BAD,   /* `why` */
};

struct drill_lex {
    const char *p, *end;  /* the rest of the line */
    const char *line;     /* its first character */
    enum drill_token tok; /* the current token */
    const char *at;       /* where it begins */
    size_t len;           /* its characters; of a string, without quotes */
    const char *text;     /* WORD, STRING: the first of them */
    uint64_t num;         /* NUMBER; times in ns */
    bool unit;            /* NUMBER: it is a time */
    char sign;
    const char *why;
};

/* Begin a line, [line, end), and read its first token. */
void drill_lex_begin(struct drill_lex *l, const char *line, const char *end);
/* Go on to the next token. */
void drill_lex_next(struct drill_lex *l);
bool drill_lex_is(const struct drill_lex *l, const char *word);
bool drill_lex_sign(const struct drill_lex *l, char sign);
/* From 1. */
unsigned drill_lex_column(const struct drill_lex *l);

#endif
