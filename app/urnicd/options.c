/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Flags are read twice: first for --config, so that the file is loaded before the flags that win
 * over it. Devices given by flags replace the file's devices as a whole.
 */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "ipc.h"

static const char options_help[] = {
#include "help_urnicd.inc"
};

enum {
    OPT_CONFIG = 256,
    OPT_DEVICE,
    OPT_PORT,
    OPT_ADDR,
    OPT_CHECK,
    OPT_PORTS,
    OPT_STOP,
    OPT_VERSION,
    OPT_HELP,
    OPT_FOREGROUND,
    OPT_SETTING
};

static const struct option options_long[] = {
    {"config", required_argument, NULL, OPT_CONFIG},
    {"device", required_argument, NULL, OPT_DEVICE},
    {"port", required_argument, NULL, OPT_PORT},
    {"addr", required_argument, NULL, OPT_ADDR},
    {"socket", required_argument, NULL, OPT_SETTING},
    {"workers", required_argument, NULL, OPT_SETTING},
    {"cpu", required_argument, NULL, OPT_SETTING},
    {"idle", required_argument, NULL, OPT_SETTING},
    {"log", required_argument, NULL, OPT_SETTING},
    {"log-level", required_argument, NULL, OPT_SETTING},
    {"parent", required_argument, NULL, OPT_SETTING},
    {"seed", required_argument, NULL, OPT_SETTING},
    {"foreground", no_argument, NULL, OPT_FOREGROUND},
    {"check-config", no_argument, NULL, OPT_CHECK},
    {"check-ports", no_argument, NULL, OPT_PORTS},
    {"stop", no_argument, NULL, OPT_STOP},
    {"version", no_argument, NULL, OPT_VERSION},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

/* State of the flags beside single settings. */
struct options_state {
    const char *file;
    bool devices_given; /* a flag has given one: the file's do not count */
};

/* The device for a flag. The first one starts a new list. */
static struct config_device *options_device(struct config *c, struct options_state *st)
{
    if (!st->devices_given)
        c->ndev = 0;
    st->devices_given = true;
    if (c->ndev == CONFIG_DEVICES)
        return NULL;
    struct config_device *d = &c->dev[c->ndev++];
    config_device_init(d);
    return d;
}

static int options_apply(struct config *c, struct options_state *st, int opt, const char *name,
                         const char *arg, char *err)
{
    struct config_device *d;
    switch (opt) {
    case OPT_DEVICE:
    case OPT_PORT:
        d = options_device(c, st);
        if (!d) {
            snprintf(err, CONFIG_ERR, "%s=%s: at most %u devices", name, arg, CONFIG_DEVICES);
            return -EINVAL;
        }
        return opt == OPT_PORT ? config_device_set(d, "port", arg, err)
                               : config_device_parse(d, arg, err);
    case OPT_ADDR:
        if (!st->devices_given || c->ndev == 0) {
            snprintf(err, CONFIG_ERR, "addr=%s: give --port before --addr", arg);
            return -EINVAL;
        }
        return config_device_set(&c->dev[c->ndev - 1], "addr", arg, err);
    case OPT_FOREGROUND:
        c->foreground = true;
        return 0;
    case OPT_SETTING:
        return config_set(c, name, arg, err);
    default:
        return 0;
    }
}

/* Report an option that getopt_long refused. optopt: a letter, the value of a flag, or 0 =
 * unknown. */
static int options_unknown(int opt, const char *arg, char *err)
{
    if (optopt != 0 && optopt < OPT_CONFIG)
        snprintf(err, CONFIG_ERR, "-%c: unknown flag; --help lists the flags", optopt);
    else if (opt == ':')
        snprintf(err, CONFIG_ERR, "%s: needs a value; --help lists the flags", arg);
    else if (optopt != 0)
        snprintf(err, CONFIG_ERR, "%s: the flag takes no value", arg);
    else
        snprintf(err, CONFIG_ERR, "%s: unknown flag; --help lists the flags", arg);
    return -EINVAL;
}

/* One pass over argv: `apply` false only looks for --config, --help and the like. */
static int options_pass(int argc, char **argv, struct config *c, struct options_state *st,
                        bool apply, enum options_what *what, char *err)
{
    int opt, index = 0;
    optind = 0;
    opterr = 0;
    while ((opt = getopt_long(argc, argv, ":", options_long, &index)) != -1) {
        if (opt == '?' || opt == ':')
            return options_unknown(opt, argv[optind - 1], err);
        if (opt == OPT_HELP) {
            fputs(options_help, stdout);
            *what = OPTIONS_EXIT;
            return 0;
        }
        if (opt == OPT_VERSION) {
            puts("urnicd " URNIC_VERSION);
            *what = OPTIONS_EXIT;
            return 0;
        }
        if (opt == OPT_CHECK)
            *what = OPTIONS_CHECK;
        if (opt == OPT_PORTS)
            *what = OPTIONS_PORTS;
        if (opt == OPT_STOP)
            *what = OPTIONS_STOP;
        if (opt == OPT_CONFIG)
            st->file = optarg;
        if (opt == OPT_PORT || opt == OPT_DEVICE)
            st->devices_given = !apply || st->devices_given;
        if (apply) {
            int rc = options_apply(c, st, opt, options_long[index].name, optarg, err);
            if (rc < 0)
                return rc;
        }
    }
    if (optind < argc) {
        snprintf(err, CONFIG_ERR, "%s: not a flag; --help lists them", argv[optind]);
        return -EINVAL;
    }
    return 0;
}

int options_parse(int argc, char **argv, struct config *c, enum options_what *what, char *err)
{
    static const char fallback[] = "/etc/urnic/urnicd.json";
    struct options_state st = {0};
    config_init(c);
    *what = OPTIONS_RUN;
    int rc = options_pass(argc, argv, c, &st, false, what, err);
    if (rc < 0 || *what == OPTIONS_EXIT)
        return rc;

    if (!st.file && !st.devices_given) {
        FILE *f = fopen(fallback, "r");
        if (f) {
            fclose(f);
            st.file = fallback;
        }
    }
    if (st.file) {
        rc = config_load(c, st.file, err);
        if (rc < 0)
            return rc;
    }
    st.devices_given = false;
    rc = options_pass(argc, argv, c, &st, true, what, err);
    if (rc == 0 && !c->socket[0]) {
        snprintf(err, CONFIG_ERR, IPC_SOCKET_ENV ": want a path of at most %zu octets",
                 sizeof(c->socket) - 1);
        rc = -EINVAL;
    }
    return rc < 0 || *what == OPTIONS_STOP ? rc : config_check(c, err);
}
