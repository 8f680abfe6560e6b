/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The entries of the report card.
 */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "suite.h"

void suite_say(struct suite_card *card, const char *rule, enum suite_verdict verdict,
               const char *format, ...)
{
    va_list ap;

    assert(card->n < SUITE_RESULTS);
    struct suite_result *r = &card->result[card->n++];
    *r = (struct suite_result){.test = card->test, .rule = rule, .verdict = verdict};
    va_start(ap, format);
    vsnprintf(r->text, sizeof(r->text), format, ap);
    va_end(ap);
    card->count[verdict]++;
}

void suite_measured(struct suite_card *card, double value, const char *unit)
{
    struct suite_result *r = &card->result[card->n - 1];
    r->value = value;
    r->unit = unit;
}
