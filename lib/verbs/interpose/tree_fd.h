/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Descriptors of files and directories of the emulated tree. Each is a file in memory. Its path is
 * kept by its number, and counts only while its inode is that file's.
 */
#ifndef URNIC_VERBS_TREE_FD_H
#define URNIC_VERBS_TREE_FD_H

/* A descriptor now has this clean path; or `to` is a copy of `from`; or it is closed. No lock; keep
 * errno. Without memory the descriptor is a plain file to programs. */
void tree_fd_add(int fd, const char *path);
void tree_fd_copy(int from, int to);
void tree_fd_drop(int fd);
/* The descriptor's path; NULL = it isn't one of ours. The path stays valid until the process ends.
 * No lock; keeps errno; safe in signal handlers. */
const char *tree_fd_path(int fd);
/* Resolve a path relative to a directory. If the directory is ours, the result is an absolute path
 * at `buf` of PATH_MAX octets; otherwise it is the path unchanged. NULL gives NULL; a too long
 * result is "". */
const char *tree_at(int dir, const char *path, char *buf);

#endif
