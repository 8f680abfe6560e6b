/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Private to lib/drill: a parsed script. Everything lives in the script's arena.
 */
#ifndef URNIC_DRILL_SCRIPT_H
#define URNIC_DRILL_SCRIPT_H

#include "drill.h"
#include "drill_field.h"

/* ---- values ---- */

#define DRILL_TERMS 4u

/* A sum of numbers and names. The value of a name depends on the field: see enum drill_role. */
struct drill_expr {
    unsigned n; /* terms; 0 = not given */
    struct {
        const char *name; /* NULL = num */
        uint64_t num;
        bool minus;
    } t[DRILL_TERMS];
};

enum drill_data_kind {
    DATA_NONE,
    DATA_STREAM, /* number a, from octet b */
    DATA_FILL,   /* octet a */
    DATA_OCTETS,
    DATA_U64,    /* 8 octets, host order: as an ATOMIC sees them */
    DATA_MEMORY, /* memory at a, now */
    DATA_SAME,   /* memory at a, as the script last filled it */
};

struct drill_data {
    enum drill_data_kind kind;
    struct drill_expr a, b;
    const uint8_t *octets;
    uint32_t len;
};

/* M+16,1000: octets of a region. */
struct drill_range {
    struct drill_expr at;
    struct drill_expr len;
    const char *name; /* of the region */
};

enum drill_value_kind {
    VALUE_NONE,  /* a flag */
    VALUE_ONE,   /* lo */
    VALUE_RANGE, /* lo..hi */
    VALUE_ANY,   /* * */
    VALUE_BIND,  /* ?name: takes the value found */
};

struct drill_value {
    enum drill_value_kind kind;
    struct drill_expr lo, hi;
    const char *name;
    uint64_t word;
    struct drill_data data;
    struct wire_addr addr; /* a MAC is its first 6 octets */
    const struct drill_range *ranges;
    unsigned nranges;
};

/* A field of a statement: `psn 3`, `!ackreq`, `patch bth+4 0x80`. */
struct drill_arg {
    const struct drill_field *field;
    struct drill_arg *next;
    bool off; /* !flag */
    struct drill_value v;
};

/* ---- statements ---- */

enum drill_time_kind { TIME_NONE, TIME_AFTER /* +t */, TIME_AT /* @t */ };

struct drill_time {
    enum drill_time_kind kind;
    bool range;
    uint64_t lo, hi; /* ns */
};

struct drill_stmt {
    const struct drill_verb *verb;
    unsigned line;
    const char *text; /* of its line, trimmed */
    struct drill_time time;
    const char *name; /* of an object */
    uint64_t state;   /* of a new queue pair; default RTS */
    uint64_t word;    /* opcode, state, operation ... */
    uint64_t number;  /* a time or a count */
    struct drill_expr expr;
    struct drill_range range;
    struct wire_addr addr;
    struct drill_data data;
    struct drill_arg *args;
    struct drill_stmt *body; /* of a block */
    struct drill_stmt *next;
    int error; /* -> EINVAL: expected error of the call, positive */
};

struct drill_chunk;

struct drill_script {
    struct drill_chunk *arena;
    struct drill_stmt *first;
    const char *rules, *purpose;
    const char *wire; /* the program at the other end; NULL: not for the wire */
};

/* Zeroed memory from the script's arena; NULL = out of memory. */
void *drill_alloc(struct drill_script *s, size_t size);

/* The argument of this field (its id), or NULL. */
const struct drill_arg *drill_arg(const struct drill_stmt *st, int id);
/* Is a flag given, and not with `!`? */
bool drill_flag(const struct drill_stmt *st, int id);

/* `cm MESSAGE`: which (enum cm_attr). */
static inline unsigned drill_cm_attr(const struct drill_stmt *st)
{
    return (unsigned)(st->word >> 16) & 0xFF;
}

/* Does the statement, with its operands, take this field? */
bool drill_takes(const struct drill_stmt *st, const struct drill_field *f);
/* The statement's earlier value of this field, or of one with the same meaning; NULL = neither.
 * Only lists may be continued. */
const struct drill_field *drill_again(const struct drill_stmt *st, const struct drill_field *f);

#endif
