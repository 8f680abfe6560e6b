/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A process of a test's own that may call the same checking functions as the test.
 */
#ifndef URNIC_TESTS_FORK_APART_H
#define URNIC_TESTS_FORK_APART_H

#include <sys/types.h>

/* fork(), but the child does not share the file through which Check's assertions report: each notes
 * its place there, and two processes that write to one file tear each other's notes. In the child,
 * a failed assertion ends the process and is reported nowhere; the parent must check the child's
 * results. Returns as fork() does. */
pid_t fork_apart(void);

#endif
