/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Log lines that are kept, and written later.
 */
#include "log.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "unit.h"

#define KEPT 32u /* of log.c */

/* Standard error is a file from now on. */
static int err_to_file(void)
{
    char path[] = "/tmp/test_log.XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    unlink(path);
    ck_assert_int_eq(dup2(fd, STDERR_FILENO), STDERR_FILENO);
    return fd;
}

/* All that was written there. */
static void written(int fd, char *text, size_t size)
{
    ssize_t n = pread(fd, text, size - 1, 0);
    ck_assert_int_ge(n, 0);
    text[n] = '\0';
}

static unsigned count(const char *text, const char *word)
{
    unsigned n = 0;
    while ((text = strstr(text, word)) != NULL) {
        text++;
        n++;
    }
    return n;
}

START_TEST(log_kept_until_flush)
{
    char text[4096];
    int fd = err_to_file();
    log_warn("test", "at once");
    log_keep();
    ck_assert(!log_kept());
    log_warn("test", "first");
    log_warn("test", "second");
    ck_assert(log_kept());
    written(fd, text, sizeof(text));
    ck_assert_uint_eq(count(text, "\n"), 1);
    log_flush();
    ck_assert(!log_kept());
    written(fd, text, sizeof(text));
    ck_assert_uint_eq(count(text, "\n"), 3);
    ck_assert_ptr_nonnull(strstr(text, "Z warn test: first\n"));
    ck_assert(strstr(text, "first") < strstr(text, "second"));
}
END_TEST

static void log_some(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct log_site site = {0}; /* one site for each line: not limited by lines a second */
        log_write(&site, LOG_WARN, "test", "line %u", i);
    }
}

START_TEST(log_too_many)
{
    static char text[65536];
    int fd = err_to_file();
    log_keep();
    for (unsigned round = 0; round < 3; round++) {
        log_some(KEPT + 5);
        log_flush();
    }
    written(fd, text, sizeof(text));
    ck_assert_uint_eq(count(text, "line "), 3 * KEPT);
    ck_assert_uint_eq(count(text, "warn log: 5 lines lost"), 3);
}
END_TEST

static void *writer(void *arg)
{
    log_some(200);
    return arg;
}

START_TEST(log_threads)
{
    static char text[1 << 20];
    pthread_t thread[4];
    unsigned lost = 0;
    int fd = err_to_file();
    log_keep();
    for (unsigned i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, writer, NULL), 0);
    for (unsigned i = 0; i < 4; i++) {
        log_flush();
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    }
    log_flush();
    log_some(1);
    log_flush();
    written(fd, text, sizeof(text));
    for (const char *at = text; (at = strstr(at, "warn log: ")) != NULL; at++) {
        unsigned n = 0;
        ck_assert_int_eq(sscanf(at, "warn log: %u lines lost\n", &n), 1);
        lost += n;
    }
    ck_assert_uint_eq(count(text, "line ") + lost, 4 * 200 + 1);
}
END_TEST

UNIT_MAIN("log", log_kept_until_flush, log_too_many, log_threads)
