/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Commands that the test suite runs: started in the background, their output kept, ended with all
 * their children. One thread.
 */
#ifndef URNIC_SUITE_CHILD_H
#define URNIC_SUITE_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct suite_child {
    pid_t pid; /* 0 = none */
    int fd;
    char said[4096]; /* the end of its output, NUL-terminated */
    size_t n;
    bool ended;
    int status; /* status of waitpid; valid when ended */
};

/* Run `sh -c command` with `environment` ("NAME=VALUE", NULL at the end) added to ours, in a
 * process group of its own. Returns 0 or -errno. */
int suite_child_start(struct suite_child *c, const char *command, char *const environment[]);

/* Read its output, and detect its end. Never blocks. */
void suite_child_poll(struct suite_child *c);

/* Send SIGTERM, or with `force` SIGKILL, to it and its children. */
void suite_child_kill(const struct suite_child *c, bool force);

/* Free the state; the child must have ended. */
void suite_child_close(struct suite_child *c);

#endif
