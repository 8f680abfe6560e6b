/* SPDX-License-Identifier: BSD-3-Clause */
#include "tap_spec.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "io_arg.h"

static const char key[] = "kernel=";
#define KEY_LEN (sizeof(key) - 1)

/* The next item outside of brackets, after a comma; NULL: none. */
static const char *find(const char *spec)
{
    unsigned depth = 0;
    for (const char *p = spec; *p; p++) {
        depth = *p == '(' ? depth + 1 : depth - (*p == ')' && depth);
        if (*p == ',' && depth == 0 && strncmp(p + 1, key, KEY_LEN) == 0)
            return p + 1;
    }
    return NULL;
}

/* Does the kernel take this name unchanged? It replaces '%'. */
static bool is_name(const char *name, size_t len)
{
    bool dots = (len == 1 || len == 2) && strncmp(name, "..", len) == 0;
    for (size_t i = 0; i < len; i++) {
        if (!isgraph((unsigned char)name[i]) || strchr("/:%", name[i]))
            return false;
    }
    return len > 0 && len < IF_NAMESIZE && !dots;
}

int tap_spec_split(const char *spec, char rest[IO_SPEC_MAX], char name[IF_NAMESIZE], char *err,
                   size_t err_size)
{
    const char *word = find(spec), *value = word ? word + KEY_LEN : NULL;
    size_t len = value ? strcspn(value, ",") : 0;
    name[0] = '\0';
    if (!word) {
        io_fail(rest, IO_SPEC_MAX, 0, "%s", spec);
        return 0;
    }
    if (!is_name(value, len))
        return io_fail(
            err, err_size, -EINVAL,
            "port '%s': kernel=%.*s: want the name of a tap interface for the kernel, at "
            "most %d characters, for example kernel=tap0",
            spec, (int)len, value, IF_NAMESIZE - 1);
    if (find(value))
        return io_fail(err, err_size, -EINVAL, "port '%s': 'kernel' is there twice", spec);
    if (strncmp(spec, "udp:", 4) == 0 || strncmp(spec, "pcap:", 5) == 0)
        return io_fail(err, err_size, -EINVAL, "port '%s': kernel=%.*s: %s: leave it out", spec,
                       (int)len, value,
                       spec[0] == 'u' ? "the kernel has all else of a udp: port's interface already"
                                      : "nothing of a capture file is the kernel's");
    memcpy(name, value, len);
    name[len] = '\0';
    io_fail(rest, IO_SPEC_MAX, 0, "%.*s%s", (int)(word - 1 - spec), spec, value + len);
    return 0;
}
