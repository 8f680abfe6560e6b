/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Descriptors of files and directories of the emulated tree. Behind each is a file in memory; what
 * it stands for is remembered by its number, and counts only while its inode is that file's.
 */
#ifndef URNIC_VERBS_TREE_FD_H
#define URNIC_VERBS_TREE_FD_H

/* A descriptor has come to stand for this clean path; or `to` is a copy of `from`; or it is closed.
 * No lock; keep errno. Without memory the descriptor is a plain file to programs. */
void tree_fd_add(int fd, const char *path);
void tree_fd_copy(int from, int to);
void tree_fd_drop(int fd);
/* What it stands for; NULL = it isn't one of ours. The path stays valid until the process ends. No
 * lock; keeps errno; safe in signal handlers. */
const char *tree_fd_path(int fd);
/* What a path means relative to a directory: with one of ours an absolute path, made at `buf` of
 * PATH_MAX octets; else the path as it is. NULL is NULL; a result that would be too long is "". */
const char *tree_at(int dir, const char *path, char *buf);

#endif
