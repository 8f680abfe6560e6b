/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The reader of scenario files below the statements: words, variables and sweeps, fields.
 */
#include "sim_reader.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int sim_fail(const struct sim_reader *r, unsigned line, const char *field, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    r->err->line = line;
    snprintf(r->err->field, sizeof(r->err->field), "%s", field);
    vsnprintf(r->err->reason, sizeof(r->err->reason), format, ap);
    va_end(ap);
    return -EINVAL;
}

int sim_fail_listing(const struct sim_reader *r, unsigned line, const char *field,
                     const char *(*name)(const void *arg, unsigned i), const void *arg,
                     const char *format, ...)
{
    char *text = r->err->reason;
    const size_t size = sizeof(r->err->reason);
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, size, format, ap);
    va_end(ap);
    r->err->line = line;
    snprintf(r->err->field, sizeof(r->err->field), "%s", field);
    size_t n = strlen(text);
    for (unsigned i = 0; name(arg, i) && n < size - 1; i++, n = strlen(text))
        snprintf(text + n, size - n, "%s%s", i ? ", " : "; there are: ", name(arg, i));
    return -EINVAL;
}

/* ---- fields ---- */

static const char *field_name(const void *table, unsigned i)
{
    return ((const struct sim_field *)table)[i].name;
}

static const char *choice_name(const void *choices, unsigned i)
{
    return ((const char *const *)choices)[i];
}

int sim_read_cc(struct cc_conf *c, const char *text, char *why, size_t size)
{
    int err = cc_conf_parse(c, text, why, size);
    if (!err && !strstr(text, ",shrink="))
        c->v[CC_P_shrink] = 0;
    return err;
}

int sim_read_value(const struct sim_reader *r, const struct sim_field *f, const char *text,
                   void *base)
{
    void *at = (char *)base + f->off;
    char why[SIM_REASON];
    double v = 0;
    unsigned i;
    switch (f->kind) {
    case SIM_F_FLAG:
        if (strcmp(text, "on") && strcmp(text, "off"))
            return sim_fail(r, r->line, f->name, "'%.40s' is neither 'on' nor 'off'", text);
        *(bool *)at = !strcmp(text, "on");
        return 0;
    case SIM_F_CHOICE:
        for (i = 0; f->choices[i] && strcmp(f->choices[i], text); i++)
            ;
        if (!f->choices[i])
            return sim_fail_listing(r, r->line, f->name, choice_name, (const void *)f->choices,
                                    "'%.40s' is unknown", text);
        *(unsigned *)at = i;
        return 0;
    case SIM_F_DIST:
        if (!(*(const struct sim_dist **)at = sim_dist_find(text)))
            return sim_fail(r, r->line, f->name, "'%.40s' is not 'websearch' or 'hadoop'", text);
        return 0;
    case SIM_F_CC:
        if (sim_read_cc(at, text, why, sizeof(why)))
            return sim_fail(r, r->line, f->name, "%s", why);
        return 0;
    case SIM_F_UNTIL:
        if (!strcmp(text, "forever")) {
            *(uint64_t *)at = 0;
            return 0;
        }
        break;
    default:
        break;
    }
    if (!sim_value(f->unit, text, &v))
        return sim_fail(r, r->line, f->name, "'%.40s' is not %s%s", text, sim_value_like(f->unit),
                        strcmp(text, "forever") ? ""
                                                : ": only the size of a 'flow' may be forever");
    if (f->kind != SIM_F_DOUBLE) {
        double nearest = round(v); /* 1.001us are 1000.9999999999999 ns */
        if (f->unit == SIM_COUNT && v != nearest)
            return sim_fail(r, r->line, f->name, "'%.40s' is not a whole number", text);
        v = nearest;
    }
    if (v < f->min || v > f->max)
        return sim_fail(r, r->line, f->name, "%.40s is outside %.15g..%.15g", text, f->min, f->max);
    if (f->kind == SIM_F_DOUBLE)
        *(double *)at = v;
    else if (f->kind == SIM_F_U8)
        *(uint8_t *)at = (uint8_t)v;
    else if (f->kind == SIM_F_U32)
        *(uint32_t *)at = (uint32_t)v;
    else
        *(uint64_t *)at = (uint64_t)v;
    return 0;
}

/* The likely meaning of a word that is no NAME=VALUE. */
static int no_field(const struct sim_reader *r, unsigned i, const struct sim_field *table)
{
    const char *word = r->word[i], *next = i + 1 < r->nwords ? r->word[i + 1] : NULL;
    const char *name = NULL, *value = NULL;
    for (unsigned k = 0; table[k].name; k++) {
        if (!strcmp(word, "forever") && table[k].kind == SIM_F_UNTIL)
            name = table[k].name, value = word;
        else if (!strcmp(word, table[k].name) && next && !strchr(next, '='))
            name = word, value = next;
    }
    if (!name)
        return sim_fail(r, r->line, word, "a field is written NAME=VALUE");
    return sim_fail(r, r->line, word, "a field is written NAME=VALUE: is %s=%.40s meant?", name,
                    value);
}

int sim_read_fields(struct sim_reader *r, unsigned first, const struct sim_field *table, void *base)
{
    uint64_t seen = 0;
    for (unsigned i = first; i < r->nwords; i++) {
        char *eq = strchr(r->word[i], '=');
        if (!eq || eq == r->word[i])
            return no_field(r, i, table);
        *eq = 0;
        unsigned k;
        for (k = 0; table[k].name && strcmp(table[k].name, r->word[i]); k++)
            ;
        if (!table[k].name)
            return sim_fail_listing(r, r->line, r->word[i], field_name, table,
                                    "'%s' has no such field", r->word[0]);
        if (seen >> k & 1)
            return sim_fail(r, r->line, r->word[i], "it is there twice");
        seen |= 1ull << k;
        int err = sim_read_value(r, &table[k], eq + 1, base);
        if (err)
            return err;
    }
    for (unsigned k = 0; table[k].name; k++)
        if (table[k].required && !(seen >> k & 1))
            return sim_fail(r, r->line, table[k].name, "it is missing");
    return 0;
}

/* ---- variables ---- */

static struct sim_var *find_var(struct sim_scenario *s, const char *name, size_t len)
{
    for (unsigned i = 0; i < s->nvars; i++)
        if (strlen(s->var[i].name) == len && !memcmp(s->var[i].name, name, len))
            return &s->var[i];
    return NULL;
}

bool sim_scenario_set(struct sim_scenario *s, const char *name, const char *value)
{
    struct sim_var *v = find_var(s, name, strlen(name));
    if (!v) {
        if (s->nvars == SIM_VARS || !*name || strlen(name) >= sizeof(v->name))
            return false;
        v = &s->var[s->nvars++];
        *v = (struct sim_var){0};
        memcpy(v->name, name, strlen(name));
    }
    if (strlen(value) >= sizeof(v->value))
        return false;
    memcpy(v->value, value, strlen(value) + 1);
    v->given = true;
    return true;
}

static bool name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

int sim_read_words(struct sim_reader *r, const char *line, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        char one[2] = {line[i], 0};
        const char *add = one;
        if (line[i] == '#' && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t'))
            break;
        if (!line[i])
            return sim_fail(r, r->line, "", "a zero octet is no text");
        if (line[i] == '$') {
            size_t k = i + 1;
            while (k < len && name_char(line[k]))
                k++;
            const struct sim_var *v = find_var(r->s, line + i + 1, k - i - 1);
            if (!v)
                return sim_fail(r, r->line, "$", "no variable '%.*s' is set above this line",
                                (int)(k - i - 1 < 40 ? k - i - 1 : 40), line + i + 1);
            add = v->value;
            i = k - 1;
        }
        size_t m = strlen(add);
        if (n + m >= SIM_LINE_MAX)
            return sim_fail(r, r->line, "", "the line is longer than %u", SIM_LINE_MAX - 1);
        memcpy(r->text + n, add, m);
        n += m;
    }
    r->text[n] = 0;
    memcpy(r->original, r->text, n + 1);
    r->nwords = 0;
    for (char *p = r->text; *(p += strspn(p, " \t\r"));) {
        if (r->nwords == SIM_WORDS)
            return sim_fail(r, r->line, "", "more than %u words", SIM_WORDS);
        r->word[r->nwords++] = p;
        p += strcspn(p, " \t\r");
        if (*p)
            *p++ = 0;
    }
    return 0;
}

const char *sim_word_rest(const char *p)
{
    p += strspn(p, " \t\r");
    p += strcspn(p, " \t\r");
    return p + strspn(p, " \t\r");
}

const char *sim_reader_rest(const struct sim_reader *r)
{
    return sim_word_rest(r->original);
}

static int define(struct sim_reader *r, const char *value, bool swept)
{
    const char *name = r->word[1];
    struct sim_var *v = find_var(r->s, name, strlen(name));
    if (v && v->given) { /* the caller's value wins */
        v->known = true;
        return 0;
    }
    for (const char *c = name; *c; c++)
        if (!name_char(*c))
            return sim_fail(r, r->line, name, "a name has letters, digits and '_'");
    if (!sim_scenario_set(r->s, name, value))
        return sim_fail(r, r->line, name, "too many variables, or too long");
    v = find_var(r->s, name, strlen(name));
    v->given = false;
    v->known = true;
    v->swept = swept;
    return 0;
}

int sim_read_set(struct sim_reader *r)
{
    if (r->nwords != 3)
        return sim_fail(r, r->line, "set", "it is written 'set NAME VALUE'");
    const struct sim_var *v = find_var(r->s, r->word[1], strlen(r->word[1]));
    if (v && v->swept && !v->given && !r->when)
        return sim_fail(r, r->line, r->word[1], "it is swept already");
    return define(r, r->word[2], false);
}

int sim_read_sweep(struct sim_reader *r)
{
    unsigned a, b;
    char tail;
    if (r->nwords < 3)
        return sim_fail(r, r->line, "sweep",
                        "it is written 'sweep NAME VALUE VALUE ...' or 'A..B'");
    struct sim_var *v = find_var(r->s, r->word[1], strlen(r->word[1]));
    if (v && v->given) {
        v->known = true;
        return 0;
    }
    if (v && v->swept)
        return sim_fail(r, r->line, r->word[1], "it is swept already");
    bool range = r->nwords == 3 && sscanf(r->word[2], "%u..%u%c", &a, &b, &tail) == 2;
    if (range && (b < a || b - a >= SIM_POINTS))
        return sim_fail(r, r->line, r->word[1], "the range is empty or too long");
    uint32_t n = range ? b - a + 1 : r->nwords - 2;
    if ((uint64_t)r->s->points * n > SIM_POINTS)
        return sim_fail(r, r->line, r->word[1], "more than %u combinations", SIM_POINTS);
    uint32_t pick = r->point % n;
    r->point /= n;
    r->s->points *= n;
    char number[16];
    snprintf(number, sizeof(number), "%u", range ? a + pick : 0);
    return define(r, range ? number : r->word[2 + pick], true);
}

bool sim_read_when(struct sim_reader *r, int *err)
{
    *err = 0;
    r->when = r->nwords && !strcmp(r->word[0], "when");
    while (r->nwords && !strcmp(r->word[0], "when")) {
        char *eq = r->nwords > 2 ? strchr(r->word[1], '=') : NULL;
        const struct sim_var *v = eq ? find_var(r->s, r->word[1], (size_t)(eq - r->word[1])) : NULL;
        if (!v) {
            *err =
                sim_fail(r, r->line, "when",
                         "it is written 'when NAME=VALUE STATEMENT', NAME a variable set before");
            return false;
        }
        if (strcmp(v->value, eq + 1))
            return false;
        memmove(r->original, sim_word_rest(sim_reader_rest(r)),
                strlen(sim_word_rest(sim_reader_rest(r))) + 1);
        r->nwords -= 2;
        memmove(r->word, r->word + 2, r->nwords * sizeof(char *));
    }
    return true;
}
