/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Files of `urnic run`: the places of the library and the daemon, the file of a command, and a
 * check that the dynamic linker preloads into it.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "run.h"

#define RUN_LIBRARY "libibverbs.so.1"

/* The folder of this program's file. */
static bool run_folder(char *out, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", out, size - 1);
    if (n <= 0 || (size_t)n >= size - 1)
        return false;
    out[n] = '\0';
    char *slash = strrchr(out, '/');
    if (slash)
        *slash = '\0';
    return slash != NULL;
}

/* FOLDER/TAIL, if it exists. */
static bool run_beside(const char *folder, const char *tail, char path[PATH_MAX], int mode)
{
    return (size_t)snprintf(path, PATH_MAX, "%s/%s", folder, tail) < PATH_MAX &&
           access(path, mode) == 0;
}

bool run_verbs_library(char path[PATH_MAX])
{
    char folder[PATH_MAX], resolved[PATH_MAX];
    if (!run_folder(folder, sizeof(folder)))
        return false;
    /* Of the build first: in an installed tree that path does not exist. */
    if (!run_beside(folder, "../../lib/verbs/" RUN_LIBRARY, path, R_OK) &&
        !run_beside(folder, "../" URNIC_LIBDIR "/urnic/" RUN_LIBRARY, path, R_OK))
        return false;
    if (realpath(path, resolved))
        memcpy(path, resolved, strlen(resolved) + 1);
    return true;
}

bool run_urnicd(char path[PATH_MAX])
{
    char folder[PATH_MAX];
    if (run_folder(folder, sizeof(folder)) && (run_beside(folder, "../urnicd/urnicd", path, X_OK) ||
                                               run_beside(folder, "urnicd", path, X_OK)))
        return true;
    return run_find("urnicd", path) == 0;
}

int run_find(const char *command, char path[PATH_MAX])
{
    const char *search = getenv("PATH");
    int rc = -ENOENT;
    struct stat st;
    if (strchr(command, '/')) {
        if ((size_t)snprintf(path, PATH_MAX, "%s", command) >= PATH_MAX)
            return -ENOENT;
        if (access(path, X_OK) == 0 && stat(path, &st) == 0)
            return S_ISREG(st.st_mode) ? 0 : -EACCES;
        return errno == EACCES ? -EACCES : -ENOENT;
    }
    if (!*command)
        return -ENOENT;
    for (const char *at = search ? search : "/bin:/usr/bin"; at;) {
        const char *end = strchr(at, ':');
        int len = end ? (int)(end - at) : (int)strlen(at);
        int n = snprintf(path, PATH_MAX, "%.*s%s%s", len, at, len > 0 ? "/" : "./", command);
        if (n > 0 && n < PATH_MAX && stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
            if (access(path, X_OK) == 0)
                return 0;
            rc = -EACCES;
        }
        at = end ? end + 1 : NULL;
    }
    return rc;
}

/* The interpreter that a script names in its first line, into path. */
static bool run_interpreter(const char *head, size_t len, char path[PATH_MAX])
{
    if (len < 3 || head[0] != '#' || head[1] != '!')
        return false;
    const char *at = head + 2, *end = head + len;
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    size_t n = 0;
    while (at + n < end && at[n] != ' ' && at[n] != '\t' && at[n] != '\n')
        n++;
    if (n == 0 || n >= PATH_MAX)
        return false;
    memcpy(path, at, n);
    path[n] = '\0';
    return true;
}

/* Has the ELF file a dynamic linker? True also if that is unknown. */
static bool run_is_dynamic(int fd)
{
    Elf64_Ehdr eh;
    Elf64_Phdr ph;

    if (pread(fd, &eh, sizeof(eh), 0) != (ssize_t)sizeof(eh) ||
        memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0 || eh.e_ident[EI_CLASS] != ELFCLASS64 ||
        eh.e_phentsize != sizeof(ph))
        return true;
    for (unsigned i = 0; i < eh.e_phnum; i++) {
        off_t at = (off_t)(eh.e_phoff + (Elf64_Off)i * sizeof(ph));
        if (pread(fd, &ph, sizeof(ph), at) != (ssize_t)sizeof(ph))
            return true;
        if (ph.p_type == PT_INTERP)
            return true;
    }
    return false;
}

const char *run_no_preload(const char *path)
{
    char head[PATH_MAX], interpreter[PATH_MAX];
    const char *why = NULL;
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    ssize_t n = pread(fd, head, sizeof(head), 0);
    if (n > 0 && run_interpreter(head, (size_t)n, interpreter)) {
        close(fd);
        fd = open(interpreter, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return NULL;
    }
    if (fstat(fd, &st) == 0) {
        if (!run_is_dynamic(fd))
            why = "it is linked statically";
        else if ((st.st_mode & S_ISUID) && st.st_uid != getuid())
            why = "it is set-uid to another user";
        else if ((st.st_mode & S_ISGID) && (st.st_mode & S_IXGRP) && st.st_gid != getgid())
            why = "it is set-gid to another group";
        else if (getuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0)
            why = "its file has capabilities";
    }
    close(fd);
    return why;
}
