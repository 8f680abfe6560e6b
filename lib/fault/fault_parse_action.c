/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The first half of a rule: its actions. A table of words, each with the function that reads the
 * rest of the action.
 */
#include <stdio.h>

#include "fault_parse.h"

#define LONGEST 3600000000000ull /* ns: an hour */

/* ---- actions ---- */

static bool read_drop(struct fault_parser *p)
{
    p->a->verb = FAULT_V_DROP;
    return true;
}

static bool read_delay(struct fault_parser *p)
{
    p->a->verb = FAULT_V_DELAY;
    return fault_lex_range(&p->lx, FAULT_TIME, LONGEST, false, &p->a->range);
}

static bool read_duplicate(struct fault_parser *p)
{
    p->a->verb = FAULT_V_DUPLICATE;
    p->a->n = 1;
    return !fault_lex_digit(&p->lx) ||
           fault_lex_value(&p->lx, FAULT_NUMBER, 1, FAULT_COPIES_MAX, &p->a->n);
}

static bool read_reorder(struct fault_parser *p)
{
    p->a->verb = FAULT_V_REORDER;
    p->a->value = FAULT_WITHIN;
    if (!fault_lex_value(&p->lx, FAULT_NUMBER, 1, 1024, &p->a->n))
        return false;
    return !fault_lex_takes(&p->lx, "within") ||
           fault_lex_value(&p->lx, FAULT_TIME, 1, LONGEST, &p->a->value);
}

/* Read whether to correct the iCRC after the change. */
static void read_repair(struct fault_parser *p, bool otherwise)
{
    p->a->repair = otherwise;
    if (fault_lex_takes(&p->lx, "repair"))
        p->a->repair = true;
    else if (fault_lex_takes(&p->lx, "norepair"))
        p->a->repair = false;
}

static bool read_corrupt(struct fault_parser *p)
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
        if (!fault_lex_value(&p->lx, FAULT_NUMBER, 0, FAULT_SIZE_MOST, &a->n))
            return false;
        if (fault_lex_takes(&p->lx, "xor") &&
            !fault_lex_value(&p->lx, FAULT_NUMBER, 1, 255, &a->value))
            return false;
    } else {
        return fault_lex_expected(&p->lx, w, "a part to corrupt: byte, payload, random or icrc");
    }
    read_repair(p, false);
    return true;
}

static bool read_mark(struct fault_parser *p)
{
    p->a->verb = FAULT_V_MARK;
    return true;
}

static bool read_trim(struct fault_parser *p)
{
    p->a->verb = FAULT_V_TRIM;
    return fault_lex_value(&p->lx, FAULT_SIZE, WIRE_ETH_LEN, FAULT_SIZE_MOST, &p->a->n);
}

static const struct {
    const char *name;
    uint8_t syndrome;
} naks[] = {
    {"psn-seq", WIRE_SYN_NAK_SEQ}, {"invalid", WIRE_SYN_NAK_INV}, {"access", WIRE_SYN_NAK_ACCESS},
    {"op-error", WIRE_SYN_NAK_OP}, {"rnr", WIRE_SYN_RNR},
};

static bool read_nak(struct fault_parser *p)
{
    struct fault_word w = fault_lex_next(&p->lx);
    uint64_t timer = 1;
    p->a->how = FAULT_NAK;
    for (size_t i = 0; i < sizeof(naks) / sizeof(naks[0]); i++) {
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

static bool read_pause(struct fault_parser *p)
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

static bool read_inject(struct fault_parser *p)
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
        return fault_lex_expected(&p->lx, w, "a packet to inject: cnp, nak or pause");
    }
    p->a->forth = fault_lex_takes(&p->lx, "forth");
    if (!p->a->forth)
        fault_lex_takes(&p->lx, "back");
    return true;
}

static bool read_set(struct fault_parser *p)
{
    char names[256], what[280];
    struct fault_action *a = p->a;
    struct fault_word w = fault_lex_next(&p->lx);
    a->verb = FAULT_V_SET;
    a->field = fault_field_find(w.s, w.len);
    if (!a->field) {
        snprintf(what, sizeof(what), "a field: %s", fault_field_names(names, sizeof(names)));
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

static const struct fault_keyword actions[] = {
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

/* ---- the table ---- */

const struct fault_keyword *fault_keyword_find(const struct fault_keyword *table,
                                               struct fault_word w)
{
    while (table->name && !fault_word_is(w, table->name))
        table++;
    return table->name ? table : NULL;
}

bool fault_parse_actions(struct fault_parser *p)
{
    do {
        struct fault_word w = fault_lex_next(&p->lx);
        const struct fault_keyword *x = fault_keyword_find(actions, w);
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
