/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The next definition of a libc function that this library interposes: another preloaded library's,
 * or libc's own. Resolved at its first use; no constructor is needed.
 */
#ifndef URNIC_VERBS_NEXT_H
#define URNIC_VERBS_NEXT_H

#define NEXT_FUNCTIONS(X)                                                                          \
    X(open)                                                                                        \
    X(open64)                                                                                      \
    X(openat)                                                                                      \
    X(openat64)                                                                                    \
    X(__open_2)                                                                                    \
    X(__open64_2)                                                                                  \
    X(__openat_2)                                                                                  \
    X(__openat64_2)                                                                                \
    X(fopen)                                                                                       \
    X(fopen64)                                                                                     \
    X(close)                                                                                       \
    X(closefrom)                                                                                   \
    X(close_range)                                                                                 \
    X(dup)                                                                                         \
    X(dup2)                                                                                        \
    X(dup3)                                                                                        \
    X(fcntl)                                                                                       \
    X(fcntl64)                                                                                     \
    X(write)                                                                                       \
    X(stat)                                                                                        \
    X(stat64)                                                                                      \
    X(lstat)                                                                                       \
    X(lstat64)                                                                                     \
    X(fstat)                                                                                       \
    X(fstat64)                                                                                     \
    X(fstatat)                                                                                     \
    X(fstatat64)                                                                                   \
    X(statx)                                                                                       \
    X(__xstat)                                                                                     \
    X(__xstat64)                                                                                   \
    X(__lxstat)                                                                                    \
    X(__lxstat64)                                                                                  \
    X(__fxstat)                                                                                    \
    X(__fxstat64)                                                                                  \
    X(access)                                                                                      \
    X(faccessat)                                                                                   \
    X(euidaccess)                                                                                  \
    X(eaccess)                                                                                     \
    X(realpath)                                                                                    \
    X(__realpath_chk)                                                                              \
    X(canonicalize_file_name)                                                                      \
    X(readlink)                                                                                    \
    X(readlinkat)                                                                                  \
    X(__readlink_chk)                                                                              \
    X(__readlinkat_chk)                                                                            \
    X(opendir)                                                                                     \
    X(readdir)                                                                                     \
    X(readdir64)                                                                                   \
    X(closedir)                                                                                    \
    X(rewinddir)                                                                                   \
    X(seekdir)                                                                                     \
    X(telldir)                                                                                     \
    X(dirfd)                                                                                       \
    X(scandir)                                                                                     \
    X(scandir64)                                                                                   \
    X(glob)                                                                                        \
    X(glob64)                                                                                      \
    X(getifaddrs)                                                                                  \
    X(__fxstatat)                                                                                  \
    X(__fxstatat64)                                                                                \
    X(fdopendir)                                                                                   \
    X(readdir_r)                                                                                   \
    X(readdir64_r)                                                                                 \
    X(getxattr)                                                                                    \
    X(lgetxattr)                                                                                   \
    X(fgetxattr)                                                                                   \
    X(listxattr)                                                                                   \
    X(llistxattr)                                                                                  \
    X(flistxattr)                                                                                  \
    X(statfs)                                                                                      \
    X(statfs64)                                                                                    \
    X(fstatfs)                                                                                     \
    X(fstatfs64)                                                                                   \
    X(statvfs)                                                                                     \
    X(statvfs64)                                                                                   \
    X(sigaction)                                                                                   \
    X(signal)                                                                                      \
    X(bsd_signal)                                                                                  \
    X(ssignal)                                                                                     \
    X(sysv_signal)                                                                                 \
    X(__sysv_signal)                                                                               \
    X(sigignore)                                                                                   \
    X(sigset)

enum next_function {
#define NEXT_NUMBER(name) NEXT_##name,
    NEXT_FUNCTIONS(NEXT_NUMBER)
#undef NEXT_NUMBER
        NEXT_COUNT
};

/* The function's address; one that no library has fails with ENOSYS. Keeps errno. */
typedef void (*any_function)(void);
any_function next_function(enum next_function which);

/* Called as the function itself: NEXT(close)(fd). */
#define NEXT(name) ((__typeof__(&(name)))next_function(NEXT_##name))

#endif
