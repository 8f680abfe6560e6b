/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Private to the reading of scenario files: the lower half of it, which knows words, variables and
 * fields; sim_scenario.c knows the statements. Functions that return an int: 0, or -EINVAL and the
 * reader's error filled in.
 */
#ifndef URNIC_SIM_READER_H
#define URNIC_SIM_READER_H

#include "sim_field.h"
#include "sim_scenario.h"

#define SIM_LINE_MAX 2048u
#define SIM_WORDS    72u

struct sim_reader {
    struct sim_scenario *s;
    struct sim_error *err;
    unsigned line;
    uint32_t point; /* the rest of the point, for the next sweeps */
    bool have_topology;
    bool when;        /* this line has a condition */
    uint32_t said;    /* statements read without a condition, a bit each */
    unsigned marking; /* line of a switch's kmin or pmax, 0 = none */
    bool have_kmax, have_pmax;
    unsigned kmin;            /* line of kmin, 0 = none */
    bool any;                 /* a line with a statement was read */
    unsigned sample, measure; /* their lines, 0 = none */
    char *word[SIM_WORDS];
    unsigned nwords;
    char text[SIM_LINE_MAX];     /* the line, variables replaced, cut into words */
    char original[SIM_LINE_MAX]; /* the same, not cut */
};

/* Report an error about a field of a line (0 = the scenario as a whole). Returns -EINVAL. */
int sim_fail(const struct sim_reader *r, unsigned line, const char *field, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The same, followed by the valid names: name(arg, 0), name(arg, 1) ... up to NULL. */
int sim_fail_listing(const struct sim_reader *r, unsigned line, const char *field,
                     const char *(*name)(const void *arg, unsigned i), const void *arg,
                     const char *format, ...) __attribute__((format(printf, 6, 7)));

/* Take a line: replace $NAME by its value, cut off the comment, split into words. */
int sim_read_words(struct sim_reader *r, const char *line, size_t len);
/* when NAME=VALUE STATEMENT: leaves the statement. False: it does not apply, or *err. */
bool sim_read_when(struct sim_reader *r, int *err);
/* The rest of a text after its first word. */
const char *sim_word_rest(const char *text);
/* The line after its first word, as it was before the split into words. */
const char *sim_reader_rest(const struct sim_reader *r);

/* set NAME VALUE */
int sim_read_set(struct sim_reader *r);
/* sweep NAME V V V, or sweep NAME A..B */
int sim_read_sweep(struct sim_reader *r);

/* Congestion control as cc_conf_parse reads it; but a simulated NIC keeps its window in spite of
 * losses, unless the text has shrink=1 (LR-16). */
int sim_read_cc(struct cc_conf *c, const char *text, char *why, size_t size);
/* Read a field's value into its place in the structure at `base`. */
int sim_read_value(const struct sim_reader *r, const struct sim_field *f, const char *text,
                   void *base);
/* Read the words from `first` on as NAME=VALUE of this table, each at most once. */
int sim_read_fields(struct sim_reader *r, unsigned first, const struct sim_field *table,
                    void *base);

#endif
