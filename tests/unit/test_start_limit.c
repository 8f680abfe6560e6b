/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A start with a driver that never returns: it ends at a signal and when its time is over, and
 * names the port.
 */
#include "start_limit.h"
#include "unit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEFT 'L' /* written by the child's `leave` */

static void leave(void *arg)
{
    ck_assert_int_eq(write(*(int *)arg, &(char){LEFT}, 1), 1);
}

/* A child that opens a port for `seconds` at most, and whose driver takes `driver` seconds. It ends
 * with 42 if a SIGTERM of the start is still there after it. */
static pid_t child(unsigned seconds, unsigned driver, int out[2])
{
    sigset_t set;
    ck_assert_int_eq(pipe(out), 0);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    pid_t pid = fork();
    if (pid > 0)
        close(out[1]);
    if (pid)
        return pid;
    dup2(out[1], STDERR_FILENO);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (start_limit_begin(seconds, leave, &out[1]) < 0)
        _exit(99);
    start_limit_with("urn0", "dpdk:first");
    start_limit_with("urn1", "dpdk:stuck");
    (void)!write(out[1], "R", 1);
    for (unsigned left = driver; left > 0;)
        left = sleep(left);
    start_limit_end();
    sigpending(&set);
    _exit(sigismember(&set, SIGTERM) ? 42 : 0);
}

/* The child's output, and its wait status. */
static int ended(pid_t pid, int out[2], char *text, size_t size)
{
    size_t n = 0;
    ssize_t got;
    int status;
    while (n < size - 1 && (got = read(out[0], text + n, size - 1 - n)) > 0)
        n += (size_t)got;
    text[n] = '\0';
    close(out[0]);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return status;
}

START_TEST(a_drivers_time_ends)
{
    char text[1000];
    int out[2];
    int status = ended(child(1, 30, out), out, text, sizeof(text));
    ck_assert_int_eq(status, W_EXITCODE(EXIT_FAILURE, 0));
    ck_assert_msg(strstr(text, "urn1: port=dpdk:stuck") && strstr(text, "within 1 s") &&
                      strstr(text, "iommu_platform") && strchr(text, LEFT),
                  "%s", text);
}
END_TEST

START_TEST(a_signal_ends_it)
{
    char text[1000], ready;
    int out[2];
    pid_t pid = child(60, 30, out);
    ck_assert_int_eq(read(out[0], &ready, 1), 1);
    kill(pid, SIGTERM);
    int status = ended(pid, out, text, sizeof(text));
    ck_assert_int_eq(status, W_EXITCODE(EXIT_FAILURE, 0));
    ck_assert_msg(strstr(text, "Terminated while port dpdk:stuck") && strchr(text, LEFT), "%s",
                  text);
}
END_TEST

/* A driver that returns after the signal: the daemon ends in its usual way. */
START_TEST(a_signal_is_kept)
{
    char text[1000], ready;
    int out[2];
    pid_t pid = child(60, 1, out);
    ck_assert_int_eq(read(out[0], &ready, 1), 1);
    kill(pid, SIGTERM);
    ck_assert_int_eq(ended(pid, out, text, sizeof(text)), W_EXITCODE(42, 0));
    ck_assert_str_eq(text, "");
}
END_TEST

START_TEST(nothing_happens_to_a_quick_start)
{
    char text[1000];
    int out[2];
    int status = ended(child(60, 0, out), out, text, sizeof(text));
    ck_assert_int_eq(status, 0);
    ck_assert_str_eq(text, "R");
}
END_TEST

UNIT_MAIN("start limit", a_drivers_time_ends, a_signal_ends_it, a_signal_is_kept,
          nothing_happens_to_a_quick_start)
