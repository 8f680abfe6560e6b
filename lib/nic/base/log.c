/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Each line is formatted into one buffer and written with one write(), so lines of different
 * threads never mix. libc's syslog() is not used: it waits for a daemon that does not read.
 */
#include "log.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"

#define LOG_LINE_MAX   1024u
#define LOG_LINES      32u /* that are kept */
#define LOG_PER_SECOND 10u
#define LOG_HEAD_MAX   64u       /* octets of a line before its level */
#define LOG_FACILITY   (3u << 3) /* of syslog: a daemon without one of its own */

const char *const log_level_names[LOG_LEVELS] = {"error", "warn", "info", "debug"};

static _Atomic int log_level = LOG_INFO;

/* Guards all below: a thread finds room and takes it before any other thread looks. */
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned log_unread;        /* lines lost for want of room since the last one */
static int log_fd = STDERR_FILENO; /* a file, or the socket to syslog; -1 = no connection to it */
static const char *log_path;       /* of the file, or of syslog's socket; NULL = stderr */
static bool log_syslog;
static _Atomic bool log_echoes;

/* Lines that wait for log_flush, in a ring. A thread that logs takes a place by log_put_next, fills
 * it, and marks it as whole. Only the holder of log_lock takes lines out. */
static struct log_line {
    _Atomic bool whole;
    enum log_level level;
    struct timespec time;
    size_t len;
    char text[LOG_LINE_MAX];
} log_ring[LOG_LINES];
static _Atomic uint32_t log_put_next, log_get_next, log_full;
static _Atomic bool log_keeps;

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

/* Neither a worker nor SIGTERM waits for a pipe whose reader doesn't read, or for a terminal halted
 * by Ctrl-S. */
static bool log_has_room(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    return poll(&p, 1, 0) != 0;
}

static bool log_write_all(int fd, const char *line, size_t len)
{
    if (!log_has_room(fd))
        return false;
    while (len > 0) {
        ssize_t n = write(fd, line, len);
        if (n <= 0)
            break; /* nowhere left to complain */
        line += n;
        len -= (size_t)n;
    }
    return true;
}

static int log_connect(void)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    size_t len = strlen(log_path);
    if (len >= sizeof(sa.sun_path))
        return -ENAMETOOLONG;
    memcpy(sa.sun_path, log_path, len + 1);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0) {
        int rc = -errno;
        close(fd);
        return rc;
    }
    log_fd = fd;
    return 0;
}

/* syslog may have been started anew since the last line: once more, over a new socket. */
static bool log_send(const char *line, size_t len)
{
    for (unsigned tries = 0; tries < 2; tries++) {
        if (log_fd < 0 && log_connect() < 0)
            return false;
        if (send(log_fd, line, len, MSG_NOSIGNAL) >= 0)
            return true;
        if (errno == EAGAIN || errno == ENOBUFS)
            return false;
        close(log_fd);
        log_fd = -1;
    }
    return false;
}

/* The text before the level: the time; for syslog the level, the time in its format, and our name.
 */
static size_t log_head(char *out, enum log_level level, struct timespec now)
{
    static const unsigned severity[LOG_LEVELS] = {3, 4, 6, 7};
    struct tm tm;
    size_t len;
    if (log_syslog) {
        localtime_r(&now.tv_sec, &tm);
        len = (size_t)snprintf(out, LOG_HEAD_MAX, "<%u>", LOG_FACILITY | severity[level]);
        len += strftime(out + len, LOG_HEAD_MAX - len, "%b %e %H:%M:%S", &tm);
        return len +
               (size_t)snprintf(out + len, LOG_HEAD_MAX - len, " urnicd[%d]: ", (int)getpid());
    }
    gmtime_r(&now.tv_sec, &tm);
    len = strftime(out, LOG_HEAD_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
    return len + (size_t)snprintf(out + len, LOG_HEAD_MAX - len, ".%03ldZ ", now.tv_nsec / 1000000);
}

static struct timespec log_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now;
}

static bool log_put(enum log_level level, struct timespec at, const char *text, size_t len)
{
    char line[LOG_HEAD_MAX + LOG_LINE_MAX];
    size_t head = log_head(line, level, at);
    memcpy(line + head, text, len);
    return log_syslog ? log_send(line, head + len - 1) : log_write_all(log_fd, line, head + len);
}

/* Under log_lock. */
static void log_tell_lost(void)
{
    char text[64];
    unsigned lost = log_unread + atomic_load_explicit(&log_full, memory_order_relaxed);
    if (lost == 0)
        return;
    int n = snprintf(text, sizeof(text), "warn log: %u lines lost\n", lost);
    if (!log_put(LOG_WARN, log_now(), text, (size_t)n))
        return;
    atomic_fetch_sub_explicit(&log_full, lost - log_unread, memory_order_relaxed);
    log_unread = 0;
}

/* A line without its time, with its newline. Under log_lock. */
static void log_out(enum log_level level, struct timespec at, const char *line, size_t len)
{
    log_tell_lost();
    if (!log_put(level, at, line, len))
        log_unread++;
    if (log_path && level <= LOG_WARN && atomic_load_explicit(&log_echoes, memory_order_relaxed) &&
        log_write_all(STDERR_FILENO, "urnicd: ", 8))
        log_write_all(STDERR_FILENO, line, len);
}

/* Keep it for log_flush, without waiting. */
static void log_add(enum log_level level, const char *line, size_t len)
{
    uint32_t at = atomic_load_explicit(&log_put_next, memory_order_relaxed);
    do {
        if (at - atomic_load_explicit(&log_get_next, memory_order_acquire) == LOG_LINES) {
            atomic_fetch_add_explicit(&log_full, 1, memory_order_relaxed);
            return;
        }
    } while (!atomic_compare_exchange_weak_explicit(&log_put_next, &at, at + 1,
                                                    memory_order_relaxed, memory_order_relaxed));
    struct log_line *l = &log_ring[at % LOG_LINES];
    l->level = level;
    l->time = log_now();
    l->len = len;
    memcpy(l->text, line, len);
    atomic_store_explicit(&l->whole, true, memory_order_release);
}

static void log_emit(enum log_level level, const char *line, size_t len)
{
    if (atomic_load_explicit(&log_keeps, memory_order_relaxed)) {
        log_add(level, line, len);
        return;
    }
    pthread_mutex_lock(&log_lock);
    log_out(level, log_now(), line, len);
    pthread_mutex_unlock(&log_lock);
}

static void log_hold(void)
{
    pthread_mutex_lock(&log_lock);
}

static void log_let_go(void)
{
    pthread_mutex_unlock(&log_lock);
}

void log_keep(void)
{
    if (!atomic_exchange_explicit(&log_keeps, true, memory_order_relaxed))
        pthread_atfork(log_hold, log_let_go, log_let_go); /* a child may open a port of its own */
}

bool log_kept(void)
{
    return atomic_load_explicit(&log_put_next, memory_order_relaxed) !=
           atomic_load_explicit(&log_get_next, memory_order_relaxed);
}

void log_flush(void)
{
    if (pthread_mutex_trylock(&log_lock) != 0)
        return;
    uint32_t at = atomic_load_explicit(&log_get_next, memory_order_relaxed);
    for (unsigned n = 0; n < LOG_LINES; n++, at++) {
        struct log_line *l = &log_ring[at % LOG_LINES];
        if (!atomic_load_explicit(&l->whole, memory_order_acquire))
            break;
        log_out(l->level, l->time, l->text, l->len);
        atomic_store_explicit(&l->whole, false, memory_order_relaxed);
        atomic_store_explicit(&log_get_next, at + 1, memory_order_release);
    }
    pthread_mutex_unlock(&log_lock);
}

static int log_open(const char *path)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0640);
    return fd < 0 ? -errno : fd;
}

int log_to_file(const char *path)
{
    int fd = log_open(path);
    if (fd < 0)
        return fd;
    log_fd = fd;
    log_path = path;
    return 0;
}

int log_to_syslog(const char *path)
{
    log_fd = -1;
    log_path = path;
    log_syslog = true;
    return log_connect();
}

void log_echo(bool on)
{
    atomic_store_explicit(&log_echoes, on, memory_order_relaxed);
}

void log_reopen(void)
{
    if (!log_path || log_syslog)
        return;
    int fd = log_open(log_path);
    if (fd < 0) {
        log_warn("log", "%s: %s: the lines still go to the old file", log_path, strerror(-fd));
        return;
    }
    pthread_mutex_lock(&log_lock);
    close(log_fd);
    log_fd = fd;
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

/* Parts of the text may come from a client: they must not start a line or control a terminal. */
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
    uint32_t suppressed = 0;
    int len;
    if (site && !log_budget(site, &suppressed))
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
    log_emit(level, line, (size_t)len);
}
