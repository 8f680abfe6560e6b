/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic rules`: the catalogue's rules, and how each is tested.
 */
#include "rules.h"

#include <jansson.h>
#include <string.h>
#include <strings.h>

#include "cli.h"

static const char help[] = {
#include "help_rules.inc"
};

/* Does the argument name the rule? By its id, or by the letters before the hyphen. */
static bool asked(const struct rule *r, const char *arg)
{
    size_t n = strlen(arg);
    return strncasecmp(r->id, arg, n) == 0 && (r->id[n] == '\0' || r->id[n] == '-');
}

static bool selected(const struct rule *r, int n, char **args)
{
    for (int i = 0; i < n; i++)
        if (asked(r, args[i]))
            return true;
    return n == 0;
}

static int unknown(int n, char **args)
{
    for (int i = 0; i < n; i++) {
        unsigned k = 0;
        while (k < rules_n && !asked(&rules[k], args[i]))
            k++;
        if (k == rules_n) {
            cli_error("'%s' is neither a rule nor a section of the catalogue", args[i]);
            return CLI_USAGE;
        }
    }
    return CLI_OK;
}

static json_t *words(const char *text)
{
    json_t *list = json_array();
    while (*text) {
        size_t n = strcspn(text, " ");
        json_array_append_new(list, json_stringn(text, n));
        text += n + (text[n] == ' ');
    }
    return list;
}

static void show_json(const struct rule *r)
{
    json_t *o =
        json_pack("{s:s, s:s, s:o, s:o, s:o, s:b, s:s}", "rule", r->id, "sentence", r->sentence,
                  "tested_by", words(r->kinds), "tests", words(r->tests), "captures",
                  words(r->captures), "lint", r->linted, "untested", r->untested);
    cli_json(o);
}

static void show_line(const struct rule *r)
{
    printf("%-8s  %-4s  %-26s  %s\n", r->id, r->linted ? "lint" : "-", *r->kinds ? r->kinds : "-",
           r->sentence);
}

static void show_files(const char *what, const char *folder, const char *names)
{
    while (*names) {
        size_t n = strcspn(names, " ");
        printf("  %s: %s/%.*s\n", what, folder, (int)n, names);
        names += n + (names[n] == ' ');
    }
}

static void show_whole(const struct rule *r)
{
    printf("%s\n  %s\n", r->id, r->sentence);
    printf("  lint: %s\n", r->linted ? "checks it" : "does not check it");
    show_files("test", "tests", r->tests);
    show_files("capture", "pcaps", r->captures);
    if (!*r->tests)
        printf("  no test: %s\n",
               *r->untested ? r->untested : "the section isn't among the covered ones");
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {
        {"untested", no_argument, NULL, 'u'}, {"json", no_argument, NULL, 'j'}, CLI_HELP, {0}};
    bool untested = false, json = false;
    unsigned shown = 0;
    int c, status;
    while ((c = getopt_long(argc, argv, "uh", options, NULL)) != -1) {
        if (c == 'u')
            untested = true;
        else if (c == 'j')
            json = true;
        else if (cli_option(c, &cmd_rules, &status))
            return status;
    }
    argc -= optind;
    argv += optind;
    if (unknown(argc, argv) != CLI_OK)
        return CLI_USAGE;
    bool whole = argc == 1 && strchr(argv[0], '-');
    for (unsigned i = 0; i < rules_n; i++) {
        if (!selected(&rules[i], argc, argv) || (untested && *rules[i].tests))
            continue;
        (json ? show_json : whole ? show_whole : show_line)(&rules[i]);
        shown++;
    }
    if (!shown)
        cli_error("--untested: each of these rules has a test");
    return shown ? CLI_OK : CLI_FAIL;
}

const struct cli_command cmd_rules = {"rules", "the protocol's rules, and how each is tested", help,
                                      run};
