/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Private to lib/drill: the parser's lower half. Statements (drill_parse.c) are made of values
 * (drill_parse_value.c). Each function below takes the item in its name from the line, and stores
 * it in its argument. false: the line has something else there, and the parser has an error; only
 * the first error counts.
 */
#ifndef URNIC_DRILL_PARSE_H
#define URNIC_DRILL_PARSE_H

#include "drill_lex.h"
#include "drill_script.h"

#define DRILL_BLOCKS_MAX 16u /* blocks in each other */
#define DRILL_WORD_MAX   32u /* octets of a word to look up, NUL included: no table's is longer */

struct drill_parser {
    struct drill_lex l;
    struct drill_script *s;
    struct drill_error *err;
    unsigned line;
    bool failed;
    const char *head; /* the current statement: its word and operands */
    int head_len;
    struct drill_stmt **tail[DRILL_BLOCKS_MAX + 1]; /* place of a block's next statement */
    const struct drill_stmt *block[DRILL_BLOCKS_MAX + 1];
    unsigned depth;
};

/* ---- errors ---- */

/* Always false. */
bool drill_parse_fail(struct drill_parser *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* "expected a number, found 'x'". Always false. */
bool drill_expected(struct drill_parser *p, const char *what);
/* Always false. */
bool drill_no_memory(struct drill_parser *p);

/* ---- text ---- */

/* A copy in the script's arena, ending with NUL; NULL = out of memory. */
const char *drill_keep(struct drill_parser *p, const char *text, size_t len);
/* The current token's text, cut to the buffer's size, for looking it up. Returns buf. */
const char *drill_word_of(const struct drill_lex *l, char buf[DRILL_WORD_MAX]);

/* ---- values ---- */

/* The name of an object, or a part of one: A.qpn. */
bool drill_take_name(struct drill_parser *p, const char **out);
/* A name that is no part of an object. */
bool drill_take_new_name(struct drill_parser *p, const char **out);
/* One of a table's words: its value. */
bool drill_take_word(struct drill_parser *p, const struct drill_word *words, uint64_t *out);
/* A sum: NUMBERs or NAMEs with + or - between them; `what` names it in the error. */
bool drill_take_expr(struct drill_parser *p, struct drill_expr *e, const char *what);
/* A time in ns; 0 needs no unit. */
bool drill_take_time(struct drill_parser *p, uint64_t *ns);
/* Octets, however they are described. */
bool drill_take_data(struct drill_parser *p, struct drill_data *d);
/* M+16,1000 */
bool drill_take_range(struct drill_parser *p, struct drill_range *r);
/* "10.0.0.1" */
bool drill_take_addr(struct drill_parser *p, struct wire_addr *out);
/* SUM, SUM..SUM, *, ?name */
bool drill_take_number(struct drill_parser *p, struct drill_value *v);
/* Read a field's value, by its type. */
bool drill_take_value(struct drill_parser *p, const struct drill_field *f, struct drill_value *v);

#endif
