/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The report card, for people and for programs.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "suite.h"

static const char *const names[] = {"PASS", "FAIL", "UNTESTED"};

static const struct suite_case *case_of(const char *name)
{
    for (unsigned i = 0; i < suite_ncases; i++)
        if (!strcmp(suite_cases[i].name, name))
            return &suite_cases[i];
    return NULL;
}

/* Print one a line, the first after "rules: ". */
static void print_rules(const char *rules)
{
    const char *label = "rules:";
    for (size_t n; *rules; rules += n + (rules[n] == '\n')) {
        n = strcspn(rules, "\n");
        printf("  %-6s %.*s\n", label, (int)n, rules);
        label = "";
    }
}

void suite_report(const struct suite_card *card)
{
    const char *test = NULL;
    for (unsigned i = 0; i < card->n; i++) {
        const struct suite_result *r = &card->result[i];
        if (r->test != test) {
            const struct suite_case *c = case_of(r->test);
            printf("%s%s: %s\n", test ? "\n" : "", r->test, c ? c->what : "in any case");
            if (c)
                print_rules(c->rules);
            test = r->test;
        }
        printf("  %-8s %-8s %s\n", names[r->verdict], r->rule, r->text);
    }
    printf("\n%u passed, %u failed, %u untested\n", card->count[SUITE_PASS],
           card->count[SUITE_FAIL], card->count[SUITE_UNTESTED]);
}

json_t *suite_report_json(const struct suite_card *card, const struct bump *b)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < card->n; i++) {
        const struct suite_result *r = &card->result[i];
        const struct suite_case *c = case_of(r->test);
        json_t *o = json_pack("{ss ss ss ss}", "case", r->test, "rule", r->rule, "verdict",
                              names[r->verdict], "text", r->text);
        if (r->unit)
            json_object_update_new(o, json_pack("{sf ss}", "value", r->value, "unit", r->unit));
        if (c)
            json_object_set_new(o, "faults", json_string(c->rules));
        json_array_append_new(list, o);
    }
    return json_pack("{ss s[oo] so si si si}", "type", "suite", "ports",
                     cli_json_text(b->port[0]->spec), cli_json_text(b->port[1]->spec), "results",
                     list, "passed", (int)card->count[SUITE_PASS], "failed",
                     (int)card->count[SUITE_FAIL], "untested", (int)card->count[SUITE_UNTESTED]);
}
