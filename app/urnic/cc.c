/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic cc`: congestion control and loss recovery of a running daemon.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "admin.h"
#include "cc.h"
#include "cli.h"

static const char help[] = {
#include "help_cc.inc"
};

#define WIDTH 96 /* columns of text */

static const char *const units[] = {
    [CC_RATE] = "bit/s",         [CC_TIME] = "time",
    [CC_RATIO] = "ratio",        [CC_OCTETS] = "octets",
    [CC_COUNT] = "number",       [CC_FLAG] = "0, 1",
    [CC_SCOPE] = "qp, ip, port", [CC_RECOVERY] = "gbn, sr, gbn-ooo",
};

/* Print a specification in lines that fit a terminal. Joined again they are a value of the
 * option. */
static void print_spec(const char *device, const char *spec)
{
    int column = printf("%s  ", device);
    const int indent = column;
    while (*spec) {
        int item = (int)strcspn(spec, ",");
        item += spec[item] == ',';
        if (column > indent && column + item > WIDTH)
            column = printf("\n%*s", indent, "") - 1;
        column += printf("%.*s", item, spec);
        spec += item;
    }
    putchar('\n');
}

static void preset_text(const struct cc_preset *p, char text[CC_TEXT])
{
    struct cc_conf conf;
    char spec[64], err[64];
    snprintf(spec, sizeof(spec), "%s:%s", p->type, p->name);
    cc_conf_parse(&conf, spec, err, sizeof(err));
    cc_conf_format(&conf, text, CC_TEXT);
}

static void list_json(void)
{
    char text[CC_TEXT], lo[32], hi[32];
    for (const struct cc_type *const *t = cc_types; *t; t++)
        cli_json(json_pack("{s:s,s:s}", "algorithm", (*t)->name, "meaning", (*t)->text));
    for (const struct cc_preset *p = cc_presets; p->type; p++) {
        if (!*p->type) /* common prefix of all */
            continue;
        preset_text(p, text);
        cli_json(json_pack("{s:s,s:s,s:s,s:s,s:I}", "preset", p->name, "algorithm", p->type,
                           "meaning", p->text, "cc", text, "line", (json_int_t)p->line));
    }
    for (unsigned i = 0; i < CC_PARAM_MAX; i++) {
        const struct cc_param_info *p = &cc_params[i];
        cc_value_format(p->unit, p->min, lo, sizeof(lo));
        cc_value_format(p->unit, p->max, hi, sizeof(hi));
        cli_json(json_pack("{s:s,s:s,s:s,s:s,s:s}", "parameter", p->name, "unit", units[p->unit],
                           "least", lo, "most", hi, "meaning", p->text));
    }
}

static void list_all(void)
{
    for (const struct cc_type *const *t = cc_types; *t; t++) {
        printf("%-10s %s\n", (*t)->name, (*t)->text);
        for (const struct cc_preset *p = cc_presets; p->type; p++) {
            char text[CC_TEXT];
            if (strcmp(p->type, (*t)->name) != 0)
                continue;
            preset_text(p, text);
            printf("  %s", p->text);
            if (p->line)
                printf("; for a line of %.3g Gb/s, scaled to others", (double)p->line / 1e9);
            putchar('\n');
            print_spec("    ", text);
        }
    }
    printf("\n%-13s %-16s %-11s %-11s meaning\n", "parameter", "unit", "least", "most");
    for (unsigned i = 0; i < CC_PARAM_MAX; i++) {
        const struct cc_param_info *p = &cc_params[i];
        char lo[32], hi[32];
        cc_value_format(p->unit, p->min, lo, sizeof(lo));
        cc_value_format(p->unit, p->max, hi, sizeof(hi));
        printf("%-13s %-16s %-11s %-11s %s\n", p->name, units[p->unit], lo, hi, p->text);
    }
}

static const char *rate_text(const json_t *rate, char *buf, size_t size)
{
    if (!json_is_integer(rate))
        return "not limited";
    return cli_fmt_rate((double)json_integer_value(rate), buf, size);
}

static void print_device(const json_t *o)
{
    json_t *q;
    char rate[32], target[32];
    size_t i;
    print_spec(json_string_value(json_object_get(o, "device")),
               json_string_value(json_object_get(o, "cc")));
    json_array_foreach(json_object_get(o, "qps"), i, q)
    {
        printf("  qp 0x%06x %-9s rate %s, target %s, alpha %.4f, recovery %s%s\n",
               (unsigned)json_integer_value(json_object_get(q, "qpn")),
               json_string_value(json_object_get(q, "cc")),
               rate_text(json_object_get(q, "rate"), rate, sizeof(rate)),
               rate_text(json_object_get(q, "target"), target, sizeof(target)),
               json_real_value(json_object_get(q, "alpha")),
               json_string_value(json_object_get(q, "recovery")),
               json_is_true(json_object_get(q, "agreed")) ? " (agreed)" : "");
    }
    if (json_object_get(o, "silent"))
        printf(
            "  queue pairs of %lld programs with an engine of their own: no answer within 100 ms\n",
            (long long)json_integer_value(json_object_get(o, "silent")));
}

struct wanted {
    const char *device, *spec;
    uint32_t qpn;
    bool qps, json;
};

/* Add the queue pairs to the daemon's answer about a device, as many at a time as an answer
 * holds. */
static int add_qps(struct admin *a, json_t *device)
{
    json_t *qps = json_array();
    json_int_t first = 0, silent = 0;
    json_object_set_new(device, "qps", qps);
    do {
        char *text;
        int rc = admin_json(a,
                            json_pack("{s:s,s:b,s:O,s:I}", "cmd", "cc", "qps", 1, "device",
                                      json_object_get(device, "device"), "first", first),
                            &text);
        if (rc < 0)
            return rc;
        json_t *page = json_loads(text, 0, NULL);
        json_int_t next = json_integer_value(json_object_get(page, "next")); /* 0: there are no
                                                                              * more */
        json_array_extend(qps, json_object_get(page, "qps"));
        if (json_object_get(page, "silent"))
            json_object_set_new(device, "silent", json_integer(++silent));
        json_decref(page);
        if (next && next <= first)
            return -EPROTO;
        first = next;
    } while (first);
    return 0;
}

/* Print the daemon's answer, an object for each device. */
static int fetch(struct admin *a, const struct wanted *w, json_t *devices)
{
    char *text;
    json_t *o = json_pack("{s:s,s:s*,s:s*}", "cmd", "cc", "device", w->device, "set", w->spec);
    if (w->qpn)
        json_object_set_new(o, "qpn", json_integer((json_int_t)w->qpn));
    int rc = admin_json(a, o, &text);
    if (rc < 0)
        return rc;
    for (char *save, *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        json_array_append_new(devices, json_loads(line, 0, NULL));
    size_t i;
    json_array_foreach(devices, i, o)
    {
        if (w->qps && !w->qpn && (rc = add_qps(a, o)) < 0)
            return rc;
    }
    return 0;
}

static int print_devices(const struct wanted *w, int rc, const json_t *devices)
{
    size_t i;
    json_t *o;
    if (rc == -ENOENT && w->qpn) {
        cli_error("no queue pair 0x%06x", (unsigned)w->qpn);
        return CLI_FAIL;
    }
    if (rc == -ETIMEDOUT && w->qpn) {
        cli_error("queue pair 0x%06x: its program has not answered within 100 ms",
                  (unsigned)w->qpn);
        return CLI_FAIL;
    }
    if (rc < 0) {
        cli_errno(rc, "%s", w->device ? w->device : "cc");
        return CLI_FAIL;
    }
    json_array_foreach(devices, i, o)
    {
        if (w->json)
            cli_json(json_incref(o));
        else
            print_device(o);
    }
    return CLI_OK;
}

static int ask(const struct wanted *w)
{
    struct admin a;
    int rc = admin_open(&a);
    if (rc < 0) {
        cli_errno(rc, "urnicd");
        return CLI_FAIL;
    }
    json_t *devices = json_array();
    rc = fetch(&a, w, devices);
    admin_close(&a);
    int status = print_devices(w, rc, devices);
    json_decref(devices);
    return status;
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {
        CLI_OPTIONS,
        {"list", no_argument, NULL, 'l'},
        {"qp", required_argument, NULL, 'n'},
        {"qps", no_argument, NULL, 'q'},
        {"json", no_argument, NULL, 'j'},
        {0},
    };
    struct wanted w = {0};
    bool list = false;
    int c, status;
    while ((c = getopt_long(argc, argv, "hq", options, NULL)) != -1) {
        switch (c) {
        case 'l':
            list = true;
            break;
        case 'n':
            if (cli_qpn("--qp", optarg, &w.qpn) < 0)
                return CLI_USAGE;
            break;
        case 'q':
            w.qps = true;
            break;
        case 'j':
            w.json = true;
            break;
        default:
            if (cli_option(c, &cmd_cc, &status))
                return status;
        }
    }
    if (cli_operands(argc, argv, 0, list ? 0 : 2, "") != CLI_OK)
        return CLI_USAGE;
    if (list) {
        if (w.json)
            list_json();
        else
            list_all();
        return CLI_OK;
    }
    w.device = optind < argc ? argv[optind] : NULL;
    w.spec = optind + 1 < argc ? argv[optind + 1] : NULL;
    if (w.spec) { /* the daemon would report only that it is wrong */
        struct cc_conf conf;
        char err[512];
        if (cc_conf_parse(&conf, w.spec, err, sizeof(err)) < 0) {
            cli_error("%s", err);
            return CLI_USAGE;
        }
    }
    return ask(&w);
}

const struct cli_command cmd_cc = {"cc", "congestion control and loss recovery: look, change", help,
                                   run};
