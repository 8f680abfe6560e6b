/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See lint_rows.h.
 */
#include "lint_rows.h"

#include <stdio.h>
#include <string.h>

#include "unit.h"

static struct {
    const struct row *row;
    size_t n;
    const char *file;
} table;

void lint_check_row(const struct row *row, enum net net)
{
    static struct run run;
    static struct found found;
    struct lint_totals t;
    size_t id = strcspn(row->name, " ");
    enum lint_verdict verdict = row->copy && net ? LINT_UNDECIDABLE : row->verdict;
    build(&run, row, net);
    judge(&run, &found, &t);
    for (unsigned i = 0; i < found.n; i++) {
        const struct lint_finding *f = &found.f[i];
        if (f->verdict == LINT_ARTEFACT && !row->octets) /* an ACK of a changed packet */
            continue;
        ck_assert_msg(strlen(f->rule->id) == id && !strncmp(f->rule->id, row->name, id),
                      "%s%s: found %s (%s) at packet %llu: %s, expected %s, seen %s", row->name,
                      nets[net], f->rule->id, lint_verdict_name(f->verdict),
                      (unsigned long long)f->number, f->dump, f->expected, f->seen);
        for (unsigned k = 0; k < i; k++)
            ck_assert_msg(found.f[k].number != f->number, "%s%s: packet %llu is accused twice",
                          row->name, nets[net], (unsigned long long)f->number);
    }
    const struct lint_finding *f = NULL;
    for (unsigned i = 0; i < found.n; i++)
        if (found.f[i].verdict != LINT_ARTEFACT)
            f = &found.f[i];
    ck_assert_msg(f, "%s%s: nothing found", row->name, nets[net]);
    int where = row->found ? row->found : row->at;
    bool there = where < 0;
    for (unsigned i = 0; i < found.n && !there; i++)
        there = found.f[i].verdict != LINT_ARTEFACT && found.f[i].number == run.at[where];
    ck_assert_msg(there, "%s%s: packet %llu, not that of step %d", row->name, nets[net],
                  (unsigned long long)f->number, where);
    ck_assert_msg(f->verdict == verdict, "%s%s: %s, because %s", row->name, nets[net],
                  lint_verdict_name(f->verdict), f->why);
    ck_assert_msg(f->expected[0] && f->seen[0] && f->dump[0], "%s: says too little", row->name);
    ck_assert_msg(!f->why[0] == (f->verdict == LINT_VIOLATION), "%s: %s", row->name, f->why);
}

static enum net first_net(const struct row *row)
{
    return row->v6 ? NET_IPV6 : NET_COUNT;
}

START_TEST(one_rule_broken)
{
    const struct row *row = &table.row[_i];
    for (enum net net = first_net(row); net < (row->v4 ? NET_SAME : NETS); net++)
        lint_check_row(row, net);
}
END_TEST

/* A mirror shows each packet on two interfaces: it is judged once, also one that can't be read. */
START_TEST(once_for_two_interfaces)
{
    const struct row *row = &table.row[_i];
    static struct run run;
    static struct found once, twice;
    struct lint_totals t;
    build(&run, row, first_net(row));
    judge(&run, &once, &t);
    twice.n = 0;
    struct lint *l = lint_new(keep_finding, &twice, 0);
    for (int i = 0; i < 2 * run.n; i++) {
        const struct packet *k = &run.packet[i / 2];
        struct lint_frame f = {.number = (uint64_t)i + 1,
                               .ns = k->ns + (uint64_t)(i & 1) * 100,
                               .data = k->f,
                               .len = (uint32_t)k->len,
                               .wire_len = (uint32_t)k->len,
                               .interface = i & 1};
        lint_packet(l, &f, NULL);
    }
    lint_end(l);
    lint_free(l);
    ck_assert_msg(twice.n == once.n, "%s: %u findings, %u of the same packets mirrored", row->name,
                  once.n, twice.n);
    for (unsigned i = 0; i < once.n && i < 32; i++)
        ck_assert_msg(twice.f[i].number == 2 * once.f[i].number - 1, "%s: packet %llu", row->name,
                      (unsigned long long)twice.f[i].number);
}
END_TEST

/* The file of tests for the rows of each family of rules. */
static const struct {
    const char *file, *families;
} homes[] = {
    {"test_lint_frame.c", " WIRE HDR OPC ICRC KEY "},
    {"test_lint_request.c", " PSN REQ RTX UC "},
    {"test_lint_response.c", " ACK RNR TMR RSP RD ATM "},
    {"test_lint_cm.c", " UD GSI CM "},
};

static const char *home_of(const char *rule)
{
    char family[16];
    snprintf(family, sizeof(family), " %.*s ", (int)strcspn(rule, "-"), rule);
    for (size_t i = 0; i < sizeof(homes) / sizeof(*homes); i++)
        if (strstr(homes[i].families, family))
            return homes[i].file;
    return NULL;
}

/* ... and lint's own table of rules is in order. */
START_TEST(the_table)
{
    size_t rules;
    const struct lint_rule *r = lint_rules(&rules);
    for (size_t i = 0; i < rules; i++) {
        size_t len = strlen(r[i].id);
        const char *home = home_of(r[i].id);
        ck_assert_msg(home, "no file has rows of %s", r[i].id);
        /* ACK-10 takes two connections: see ack_10_stray. */
        bool found = !strcmp(r[i].id, "ACK-10") && !strcmp(home, table.file);
        for (size_t k = 0; k < table.n; k++)
            found |= !strncmp(table.row[k].name, r[i].id, len) && table.row[k].name[len] == ' ';
        ck_assert_msg(found == !strcmp(home, table.file), "%s is broken by %s row", r[i].id,
                      found ? "another file's" : "no");
        ck_assert_msg(strlen(r[i].sentence) > 10, "%s", r[i].id);
        for (size_t k = 0; k < i; k++)
            ck_assert_str_ne(r[i].id, r[k].id);
    }
}
END_TEST

TCase *lint_rows_case(const char *name, const struct row *rows, size_t n, const char *file)
{
    TCase *t = tcase_create(name);

    table.row = rows;
    table.n = n;
    table.file = file;
    tcase_add_loop_test(t, one_rule_broken, 0, (int)n);
    tcase_add_loop_test(t, once_for_two_interfaces, 0, (int)n);
    tcase_add_test(t, the_table);
    return t;
}

void ackreq(struct step *s)
{
    s->ackreq = true;
}
