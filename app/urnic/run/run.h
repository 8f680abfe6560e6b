/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The parts of `urnic run`: the files that it needs, checks of a program before its start, and the
 * daemon of --private. One thread.
 */
#ifndef URNIC_RUN_H
#define URNIC_RUN_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/un.h>

/* ---- run_file.c ---- */

/* Find the preloaded library: installed, or of this program's build. False: neither exists; `path`
 * then names the first place of the search. */
bool run_verbs_library(char path[PATH_MAX]);
/* Find the daemon's program: beside this one, of its build, or in $PATH. */
bool run_urnicd(char path[PATH_MAX]);
/* Find a command as execvp does. 0, -ENOENT, -EACCES. */
int run_find(const char *command, char path[PATH_MAX]);
/* The reason why the dynamic linker will not preload a library into this program: a constant text;
 * NULL = it will. */
const char *run_no_preload(const char *path);

/* ---- run_private.c ---- */

#define RUN_SOCKET_MAX sizeof(((struct sockaddr_un *)0)->sun_path)

/* The daemon of one command, and the folder of its socket. */
struct run_daemon {
    pid_t pid;
    int link; /* the daemon ends when this is closed */
    char folder[RUN_SOCKET_MAX];
    char socket[RUN_SOCKET_MAX];
};

#define RUN_DEVICES 16

/* Start urnicd with these arguments (ports and addresses, ended by NULL) beside the socket's, and
 * wait until it serves, 30 s at most. 0, or -errno with a message printed. */
int run_daemon_start(struct run_daemon *d, const char *urnicd, const char *const *ports);
/* End the daemon, wait for its end, and remove its folder and socket. */
void run_daemon_stop(struct run_daemon *d);

#endif
