/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Each line is formatted into one buffer and written with one write(), so lines of different
 * threads never mix.
 */
#include "log.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"

#define LOG_LINE_MAX   1024u
#define LOG_PER_SECOND 10u

const char *const log_level_names[LOG_LEVELS] = {"error", "warn", "info", "debug"};

static _Atomic int log_level = LOG_INFO;

/* Of who writes: what one has seen room for isn't taken by another. */
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned log_unread; /* lines that there was no room for since the last one */

void log_set_level(enum log_level level)
{
    atomic_store_explicit(&log_level, (int)level, memory_order_relaxed);
}

enum log_level log_get_level(void)
{
    return (enum log_level)atomic_load_explicit(&log_level, memory_order_relaxed);
}

int log_level_parse(const char *s, enum log_level *out)
{
    for (unsigned i = 0; i < LOG_LEVELS; i++) {
        if (strcmp(s, log_level_names[i]) == 0) {
            *out = (enum log_level)i;
            return 0;
        }
    }
    return -EINVAL;
}

/* A pipe whose reader looks elsewhere, a terminal that was halted by Ctrl-S: a worker, or SIGTERM,
 * doesn't wait for them. */
static bool log_has_room(void)
{
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};

    return poll(&p, 1, 0) != 0;
}

static void log_put(const char *line, size_t len)
{
    while (len > 0) {
        ssize_t n = write(STDERR_FILENO, line, len);
        if (n <= 0)
            return; /* nowhere left to complain */
        line += n;
        len -= (size_t)n;
    }
}

static void log_emit(const char *line, size_t len)
{
    char text[64];

    pthread_mutex_lock(&log_lock);
    if (log_unread > 0 && log_has_room()) {
        int n = snprintf(text, sizeof(text), "warn log: nobody read: %u lines lost\n", log_unread);
        log_put(text, (size_t)n);
        log_unread = 0;
    }
    if (log_has_room())
        log_put(line, len);
    else
        log_unread++;
    pthread_mutex_unlock(&log_lock);
}

/* May this site write now? *suppressed = lines it dropped in the second that ended. */
static bool log_budget(struct log_site *site, uint32_t *suppressed)
{
    uint64_t second = clock_now() / CLOCK_SEC + 1;
    uint64_t seen = atomic_load_explicit(&site->second, memory_order_relaxed);

    *suppressed = 0;
    if (seen != second &&
        atomic_compare_exchange_strong_explicit(&site->second, &seen, second, memory_order_relaxed,
                                                memory_order_relaxed)) {
        uint32_t used = atomic_exchange_explicit(&site->used, 0, memory_order_relaxed);
        if (used > LOG_PER_SECOND)
            *suppressed = used - LOG_PER_SECOND;
    }
    return atomic_fetch_add_explicit(&site->used, 1, memory_order_relaxed) < LOG_PER_SECOND;
}

/* Part of it may be what a client has sent: that begins no line, and tells no terminal anything. */
static void log_plain(char *text, size_t len)
{
    for (unsigned char *c = (unsigned char *)text, *end = c + len; c < end; c++) {
        if (iscntrl(*c))
            *c = '?';
        else if (*c == 0xc2 && c + 1 < end && (c[1] & 0xe0) == 0x80) /* U+0080 to U+009F */
            c[0] = c[1] = '?';
    }
}

void log_write(struct log_site *site, enum log_level level, const char *subsystem, const char *fmt,
               ...)
{
    char line[LOG_LINE_MAX];
    uint32_t suppressed;
    int len;

    if (!log_budget(site, &suppressed))
        return;
    len = snprintf(line, sizeof(line), "%s %s: ", log_level_names[level], subsystem);
    if (suppressed > 0)
        len += snprintf(line + len, sizeof(line) - (size_t)len, "(%u such lines dropped) ",
                        suppressed);

    va_list ap;
    va_start(ap, fmt);
    int text = vsnprintf(line + len, sizeof(line) - (size_t)len - 1, fmt, ap);
    va_end(ap);
    if (text > 0)
        len += text;
    if ((size_t)len > sizeof(line) - 2)
        len = (int)sizeof(line) - 2;
    log_plain(line, (size_t)len);
    line[len++] = '\n';
    log_emit(line, (size_t)len);
}
