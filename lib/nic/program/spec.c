/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See spec.h. Keys of our own are cut out before the others are read.
 */
#include "spec.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config_device.h"

#define SPEC_MAX 2048u

static int set_log(struct spec *s, const char *value, char *err)
{
    if (log_level_parse(value, &s->log) == 0)
        return 0;
    return config_fail(err, "log-level=%s: want error, warn, info or debug", value);
}

static int set_progress(struct spec *s, const char *value, char *err)
{
    static const char *const names[] = {"auto", "thread", "poll"};
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(value, names[i]) == 0) {
            s->progress = (enum spec_progress)i;
            return 0;
        }
    }
    return config_fail(err, "progress=%s: want auto, thread or poll", value);
}

static const struct {
    const char *key;
    int (*set)(struct spec *s, const char *value, char *err);
} spec_keys[] = {
    {",log-level=", set_log},
    {",progress=", set_progress},
};

/* Cut ",key=value" out of the text. False: it isn't there. */
static bool cut(char *text, const char *key, char *value, size_t size)
{
    char *at = strstr(text, key);
    if (!at)
        return false;
    const char *begin = at + strlen(key);
    size_t len = strcspn(begin, ",");
    snprintf(value, size, "%.*s", (int)len, begin);
    memmove(at, begin + len, strlen(begin + len) + 1);
    return true;
}

/* Take the program's own keys out of the text. */
static int cut_own(struct spec *s, char *text, char *err)
{
    char value[64];
    s->log = LOG_ERROR;
    s->progress = SPEC_AUTO;
    config_device_init(s->conf);
    for (size_t i = 0; i < sizeof(spec_keys) / sizeof(spec_keys[0]); i++) {
        while (cut(text, spec_keys[i].key, value, sizeof(value))) {
            int rc = spec_keys[i].set(s, value, err);
            if (rc < 0)
                return rc;
        }
    }
    return 0;
}

static int set_sockets(struct spec *s, const char *value, char *err)
{
    s->no_sockets = strcmp(value, "off") == 0;
    if (s->no_sockets || strcmp(value, "on") == 0)
        return 0;
    return config_fail(err, "sockets=%s: want on or off", value);
}

int spec_parse_channel(struct spec *s, const char *device, const char *options, char *err)
{
    char text[SPEC_MAX];
    int n = snprintf(text, sizeof(text), ",%s", options);
    if (n < 0 || (size_t)n >= sizeof(text))
        return config_fail(err, "options: longer than %u octets", SPEC_MAX);
    char value[64];
    int rc = 0;
    while (rc == 0 && cut(text, ",sockets=", value, sizeof(value)))
        rc = set_sockets(s, value, err);
    if (rc == 0)
        rc = cut_own(s, text, err);
    if (rc == 0 && strspn(text, ",") != strlen(text))
        return config_fail(err, "%s: want progress=, sockets= or log-level=", text + 1);
    snprintf(s->conf->name, sizeof(s->conf->name), "%s", device);
    snprintf(s->conf->port, sizeof(s->conf->port), "channel:%s", device);
    return rc;
}

int spec_parse(struct spec *s, const char *spec, char *err)
{
    char text[SPEC_MAX];
    int n = snprintf(text, sizeof(text), "port=%s", spec);
    if (n < 0 || (size_t)n >= sizeof(text))
        return config_fail(err, "port: longer than %u octets", SPEC_MAX);
    int rc = cut_own(s, text, err);
    if (rc < 0)
        return rc;
    rc = config_device_parse(s->conf, text, err);
    if (rc < 0)
        return rc;
    if (s->conf->workers > 1)
        return config_fail(err, "workers=%u: want 1, or a daemon: a program's port has one worker",
                           s->conf->workers);
    if (s->conf->nweight > 0)
        return config_fail(err, "weights: want a daemon: a program's port has one user");
    if (s->conf->name[0] == '\0')
        snprintf(s->conf->name, sizeof(s->conf->name), "urn0");
    return config_device_check(s->conf, err);
}
