/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading port specifications: KEY=VALUE items separated by commas, values with units.
 */
#include "io_arg.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct unit {
    const char *name;
    double factor;
};

int io_fail(char *err, size_t err_size, int code, const char *fmt, ...)
{
    if (err && err_size) {
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(err, err_size, fmt, ap);
        va_end(ap);
    }
    return code;
}

int io_arg(const char *args, const char *key, char *val, size_t val_size)
{
    size_t key_len = strlen(key);
    while (args && *args) {
        size_t item = strcspn(args, ",");
        if (item > key_len && args[key_len] == '=' && memcmp(args, key, key_len) == 0) {
            size_t len = item - key_len - 1;
            if (len >= val_size)
                return -EINVAL;
            memcpy(val, args + key_len + 1, len);
            val[len] = '\0';
            return 1;
        }
        args += item;
        args += *args == ',';
    }
    return 0;
}

static bool key_known(const char *key, size_t len, const char *const *keys)
{
    for (; *keys; keys++)
        if (strlen(*keys) == len && memcmp(*keys, key, len) == 0)
            return true;
    return false;
}

/* Does another item of `rest` carry the same key? */
static bool key_again(const char *rest, const char *key, size_t len)
{
    while (*rest) {
        size_t item = strcspn(rest, ",");
        if (item > len && rest[len] == '=' && memcmp(rest, key, len) == 0)
            return true;
        rest += item;
        rest += *rest == ',';
    }
    return false;
}

int io_arg_unknown(const char *args, const char *const *keys, char *bad, size_t bad_size)
{
    while (args && *args) {
        size_t item = strcspn(args, ",");
        const char *eq = memchr(args, '=', item);
        const char *next = args + item + (args[item] == ',');
        if (eq) {
            size_t len = (size_t)(eq - args);
            if (!key_known(args, len, keys) || key_again(next, args, len)) {
                snprintf(bad, bad_size, "%.*s", (int)len, args);
                return -EINVAL;
            }
        }
        args = next;
    }
    return 0;
}

const char *io_arg_bare(const char *args, size_t *len)
{
    while (*args) {
        *len = strcspn(args, ",");
        if (*len && !memchr(args, '=', *len))
            return args;
        args += *len;
        args += *args == ',';
    }
    return NULL;
}

int io_parse_u64(const char *s, uint64_t *out)
{
    char *end;
    if (*s < '0' || *s > '9')
        return -EINVAL;
    bool hex = s[0] == '0' && (s[1] == 'x' || s[1] == 'X');
    errno = 0;
    unsigned long long v = strtoull(s, &end, hex ? 16 : 10); /* base 0 would make 010 eight */
    if (errno || *end)
        return -EINVAL;
    *out = v;
    return 0;
}

/* A decimal number and one of the units; the empty unit name allows a bare number. */
static int parse_unit(const char *s, const struct unit *units, uint64_t *out)
{
    char *end;
    /* strtod would also take signs, "inf", "nan" and hexadecimal. */
    if (*s < '0' || *s > '9' || (s[0] == '0' && (s[1] == 'x' || s[1] == 'X')))
        return -EINVAL;
    double v = strtod(s, &end);
    for (; units->name; units++) {
        if (strcmp(end, units->name))
            continue;
        v = nearbyint(v * units->factor);
        if (!(v < 9.0e18))
            return -EINVAL;
        *out = (uint64_t)v;
        return 0;
    }
    return -EINVAL;
}

int io_parse_size(const char *s, uint64_t *out)
{
    static const struct unit units[] = {
        {"", 1},          {"K", 1024},         {"M", 1048576},     {"G", 1073741824},
        {"KB", 1024},     {"MB", 1048576},     {"GB", 1073741824}, {"KiB", 1024},
        {"MiB", 1048576}, {"GiB", 1073741824}, {NULL, 0},
    };
    return parse_unit(s, units, out);
}

int io_parse_rate(const char *s, uint64_t *out)
{
    static const struct unit units[] = {
        {"", 1},       {"K", 1e3},    {"M", 1e6},    {"G", 1e9}, {"T", 1e12},
        {"Kbit", 1e3}, {"Mbit", 1e6}, {"Gbit", 1e9}, {NULL, 0},
    };
    return parse_unit(s, units, out);
}

int io_parse_time(const char *s, uint64_t *out)
{
    static const struct unit units[] = {
        {"", 1}, {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {NULL, 0},
    };
    return parse_unit(s, units, out);
}

int io_parse_prob(const char *s, double *out)
{
    char *end;
    if (((*s < '0' || *s > '9') && *s != '.') || (s[0] == '0' && (s[1] == 'x' || s[1] == 'X')))
        return -EINVAL;
    double v = strtod(s, &end);
    if (*end == '%') {
        v /= 100;
        end++;
    }
    if (*end || !(v >= 0 && v <= 1))
        return -EINVAL;
    *out = v;
    return 0;
}

int io_parse_bool(const char *s, bool *out)
{
    static const char *const words[][2] = {{"off", "on"}, {"no", "yes"}, {"0", "1"}};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        for (int v = 0; v < 2; v++) {
            if (strcmp(s, words[i][v]) == 0) {
                *out = v;
                return 0;
            }
        }
    }
    return -EINVAL;
}
