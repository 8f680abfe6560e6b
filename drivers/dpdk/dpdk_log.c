/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The log of the DPDK driver. DPDK's interrupt thread writes into it as well.
 */
#include "dpdk_log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* DPDK's levels. */
#define LEVEL_CRIT    3u
#define LEVEL_ERROR   4u
#define LEVEL_WARNING 5u

#define PAUSE_S 10 /* pause between two unsolicited messages */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
    bool debug, collecting;
    char all[4096]; /* collected texts, each with a line end */
    size_t used;
    char error[240], warning[240]; /* first error, first warning */
    time_t next;                   /* earliest time of the next message */
    unsigned long kept_back;       /* messages dropped since the last one */
} heard;

static _Atomic(io_log_fn) sink;

void dpdk_log_to(io_log_fn log)
{
    atomic_store_explicit(&sink, log, memory_order_relaxed);
}

void dpdk_log(enum io_log_level level, const char *fmt, ...)
{
    static const char *const names[] = {
        [IO_LOG_ERROR] = "error", [IO_LOG_WARN] = "warn", [IO_LOG_INFO] = "info"};
    io_log_fn log = atomic_load_explicit(&sink, memory_order_relaxed);
    char text[600];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (log)
        log(level, "dpdk", text);
    else
        fprintf(stderr, "%s dpdk: %s\n", names[level], text);
}

static enum io_log_level level_of(unsigned level)
{
    return level <= LEVEL_ERROR ? IO_LOG_ERROR : level == LEVEL_WARNING ? IO_LOG_WARN : IO_LOG_INFO;
}

static void keep(unsigned level, const char *text, size_t len)
{
    char *first = level <= LEVEL_ERROR     ? heard.error
                  : level == LEVEL_WARNING ? heard.warning
                                           : NULL;
    if (first && !*first)
        snprintf(first, sizeof(heard.error), "%.*s", (int)len, text);
    if (len + 1 < sizeof(heard.all) - heard.used)
        heard.used += (size_t)snprintf(heard.all + heard.used, sizeof(heard.all) - heard.used,
                                       "%.*s\n", (int)len, text);
}

static void write_sometimes(unsigned level, const char *text, size_t len)
{
    struct timespec now;
    char more[64] = "";
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec < heard.next) {
        heard.kept_back++;
        return;
    }
    if (heard.kept_back)
        snprintf(more, sizeof(more), " (%lu more messages before it)", heard.kept_back);
    heard.kept_back = 0;
    heard.next = now.tv_sec + PAUSE_S;
    dpdk_log(level_of(level), "%.*s%s", (int)len, text, more);
}

void dpdk_log_message(unsigned level, const char *text, size_t len)
{
    while (len && (text[len - 1] == '\n' || text[len - 1] == ' '))
        len--;
    if (!len)
        return;
    pthread_mutex_lock(&lock);
    if (heard.collecting)
        keep(level, text, len);
    if (heard.debug || level <= LEVEL_CRIT) /* DPDK ends the process after some of these */
        dpdk_log(level_of(level), "%.*s", (int)len, text);
    else if (!heard.collecting && level <= LEVEL_ERROR)
        write_sometimes(level, text, len);
    pthread_mutex_unlock(&lock);
}

void dpdk_log_debug(bool on)
{
    pthread_mutex_lock(&lock);
    heard.debug = on;
    pthread_mutex_unlock(&lock);
}

void dpdk_log_collect(void)
{
    pthread_mutex_lock(&lock);
    heard.collecting = true;
    heard.used = 0;
    heard.all[0] = heard.error[0] = heard.warning[0] = '\0';
    pthread_mutex_unlock(&lock);
}

void dpdk_log_collected(void)
{
    pthread_mutex_lock(&lock);
    heard.collecting = false;
    pthread_mutex_unlock(&lock);
}

const char *dpdk_log_cause(void)
{
    return heard.error[0] ? heard.error : heard.warning;
}

bool dpdk_log_said(const char *text)
{
    pthread_mutex_lock(&lock);
    bool said = strstr(heard.all, text);
    pthread_mutex_unlock(&lock);
    return said;
}
