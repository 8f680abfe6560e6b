/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Words of a rule text and the values that they stand for. Each reader takes the next word of the
 * line. If the word doesn't fit, the reader writes the error, with the expected form, and returns
 * false.
 */
#ifndef URNIC_FAULT_LEX_H
#define URNIC_FAULT_LEX_H

#include "fault_priv.h"

struct fault_word {
    const char *s;
    size_t len; /* 0 = the end of the line */
    unsigned column;
};

struct fault_lex {
    const char *line, *at, *end; /* start of the line, next character, end */
    unsigned number;
    struct fault_error *err;
};

/* The notation of a value. */
enum fault_kind {
    FAULT_NUMBER, /* 17, 0x11 */
    FAULT_SIZE,   /* 17, or 64K, 1M: powers of 1024 */
    FAULT_TIME,   /* 5ns, 1.5us, 20ms, 1s: in ns */
};

/* Make text[0..len) the line; a comment ends it. */
void fault_lex_line(struct fault_lex *lx, unsigned number, const char *text, size_t len);
/* The next word: leave it / take it. */
struct fault_word fault_lex_peek(const struct fault_lex *lx);
struct fault_word fault_lex_next(struct fault_lex *lx);
/* Take the next word if it is this one. Returns whether it was. */
bool fault_lex_takes(struct fault_lex *lx, const char *word);
/* Does the next word begin with a digit? */
bool fault_lex_digit(const struct fault_lex *lx);
/* Is it this word, in any case? */
bool fault_word_is(struct fault_word w, const char *text);
/* The error "expected WHAT, found 'w'". Returns false. */
bool fault_lex_expected(struct fault_lex *lx, struct fault_word w, const char *what);
/* Any other error at a word. Returns false. */
bool fault_lex_error(struct fault_lex *lx, struct fault_word w, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A value from min to max. */
bool fault_lex_value(struct fault_lex *lx, enum fault_kind kind, uint64_t min, uint64_t max,
                     uint64_t *out);
/* N, N..M, and, if `open`, also N.. and ..M; at most max. */
bool fault_lex_range(struct fault_lex *lx, enum fault_kind kind, uint64_t max, bool open,
                     struct fault_range *out);
/* N..M of 24 bits, which may wrap through 0; with +, relative to the connection's first PSN. */
bool fault_lex_psn(struct fault_lex *lx, struct fault_range *out, bool *relative);
/* 0.01, 1%, 1/100 */
bool fault_lex_prob(struct fault_lex *lx, double *out);
/* ADDRESS or ADDRESS/BITS */
bool fault_lex_prefix(struct fault_lex *lx, struct fault_prefix *out);

#endif
