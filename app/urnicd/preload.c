/* SPDX-License-Identifier: BSD-3-Clause */
#include "preload.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool preload_is_verbs(const char *path, size_t len)
{
    static const char name[] = "libibverbs.so.1";
    const size_t n = sizeof(name) - 1;
    return len >= n && strncmp(path + len - n, name, n) == 0 &&
           (len == n || path[len - n - 1] == '/');
}

void preload_shed(char **argv)
{
    char *list = getenv("LD_PRELOAD");
    char *kept = list ? strdup(list) : NULL;
    size_t used = 0;
    bool found = false;
    if (!kept)
        return;
    for (const char *at = list; *at;) {
        size_t n = strcspn(at, ": ");
        if (preload_is_verbs(at, n)) {
            found = true;
        } else if (n > 0) {
            if (used > 0)
                kept[used++] = ':';
            memcpy(kept + used, at, n);
            used += n;
        }
        at += n + (at[n] ? 1 : 0);
    }
    kept[used] = '\0';
    if (found && (used > 0 ? setenv("LD_PRELOAD", kept, 1) : unsetenv("LD_PRELOAD")) == 0)
        execv("/proc/self/exe", argv);
    free(kept);
}
