/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions that read directories. A directory of our tree is a list of names, made when it is
 * opened. Our streams are in a small table, which is read without a lock.
 */
#undef _FILE_OFFSET_BITS /* each function by its own name */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "interpose.h"
#include "sysfs_load.h"
#include "tree_fd.h"

#define STREAMS 64u /* open at the same time */

_Static_assert(sizeof(struct dirent) == sizeof(struct dirent64), "64-bit systems have one of them");

struct stream {
    struct dirent entry; /* result of readdir */
    size_t at, len;      /* in `text`; the names "." and ".." come first */
    unsigned dots;
    int fd; /* -1 = the program hasn't called dirfd */
    char path[PATH_MAX];
    char text[];
};

static _Atomic(struct stream *) streams[STREAMS];
static _Atomic unsigned nstreams; /* number of slots ever used */

static struct stream *ours(const DIR *dir)
{
    unsigned n = atomic_load_explicit(&nstreams, memory_order_acquire);
    for (unsigned i = 0; i < n; i++) {
        struct stream *s = atomic_load_explicit(&streams[i], memory_order_relaxed);
        if (s != NULL && (const void *)s == (const void *)dir)
            return s;
    }
    return NULL;
}

static bool enter(struct stream *s)
{
    for (unsigned i = 0; i < STREAMS; i++) {
        struct stream *none = NULL;
        if (!atomic_compare_exchange_strong(&streams[i], &none, s))
            continue;
        unsigned n = atomic_load(&nstreams);
        while (n < i + 1 && !atomic_compare_exchange_weak(&nstreams, &n, i + 1))
            ;
        return true;
    }
    return false;
}

static struct stream *stream_of(const struct sysfs_node *node, const char *path)
{
    struct stream *s = malloc(sizeof(*s) + node->len);
    if (s == NULL)
        return NULL;
    memset(s, 0, sizeof(*s));
    s->fd = -1;
    s->len = node->len;
    memcpy(s->path, path, strlen(path) + 1);
    memcpy(s->text, node->text, node->len);
    return s;
}

static bool open_ours(const char *path, struct stream **s)
{
    struct sysfs_node node;
    char clean[PATH_MAX];
    if (!sysfs_at(path, &node, clean, sizeof(clean)))
        return false;
    *s = node.kind == SYSFS_DIR ? stream_of(&node, clean) : NULL;
    if (*s == NULL) {
        errno = node.kind == SYSFS_DIR ? ENOMEM : ENOTDIR;
    } else if (!enter(*s)) {
        free(*s);
        *s = NULL;
        errno = EMFILE;
    }
    return true;
}

/* The inode number of an entry. "." and ".." need no special numbers. */
static uint64_t inode_of(struct stream *s, const char *name)
{
    size_t n = strlen(s->path), m = strlen(name);
    if (s->dots <= 2 && name[0] == '.')
        return sysfs_inode(s->path);
    if (n + m + 2 > sizeof(s->path))
        return 1;
    s->path[n] = '/';
    memcpy(s->path + n + 1, name, m + 1);
    uint64_t ino = sysfs_inode(s->path);
    s->path[n] = '\0';
    return ino;
}

static struct dirent *next(struct stream *s)
{
    const char *name = s->dots == 0 ? "." : s->dots == 1 ? ".." : s->text + s->at;
    if (s->dots == 2 && s->at == s->len)
        return NULL;
    if (s->dots < 2)
        s->dots++;
    else
        s->at += strlen(name) + 1;
    s->entry.d_ino = inode_of(s, name);
    s->entry.d_off++;
    s->entry.d_type = DT_UNKNOWN; /* programs ask stat */
    s->entry.d_reclen = sizeof(s->entry);
    strncpy(s->entry.d_name, name, sizeof(s->entry.d_name) - 1);
    return &s->entry;
}

static void go_to(struct stream *s, long place)
{
    s->at = 0;
    s->dots = 0;
    s->entry.d_off = 0;
    while (s->entry.d_off < place && next(s) != NULL)
        ;
}

INTERPOSED DIR *opendir(const char *path)
{
    struct stream *s;
    return open_ours(path, &s) ? (DIR *)(void *)s : NEXT(opendir)(path);
}

/* From now on the descriptor is the stream's. */
INTERPOSED DIR *fdopendir(int fd)
{
    const char *path = tree_fd_path(fd);
    struct stream *s;
    if (path == NULL || !open_ours(path, &s))
        return NEXT(fdopendir)(fd);
    if (s != NULL)
        s->fd = fd;
    return (DIR *)(void *)s;
}

INTERPOSED struct dirent *readdir(DIR *dir)
{
    struct stream *s = ours(dir);
    return s != NULL ? next(s) : NEXT(readdir)(dir);
}

INTERPOSED struct dirent64 *readdir64(DIR *dir)
{
    struct stream *s = ours(dir);
    return s != NULL ? (struct dirent64 *)(void *)next(s) : NEXT(readdir64)(dir);
}

INTERPOSED int closedir(DIR *dir)
{
    struct stream *s = ours(dir);
    if (s == NULL)
        return NEXT(closedir)(dir);
    for (unsigned i = 0; i < STREAMS; i++)
        if (atomic_load(&streams[i]) == s)
            atomic_store(&streams[i], NULL);
    if (s->fd >= 0)
        close(s->fd);
    free(s);
    return 0;
}

INTERPOSED void rewinddir(DIR *dir)
{
    struct stream *s = ours(dir);
    if (s != NULL)
        go_to(s, 0);
    else
        NEXT(rewinddir)(dir);
}

INTERPOSED void seekdir(DIR *dir, long place)
{
    struct stream *s = ours(dir);
    if (s != NULL)
        go_to(s, place);
    else
        NEXT(seekdir)(dir, place);
}

INTERPOSED long telldir(DIR *dir)
{
    struct stream *s = ours(dir);
    return s != NULL ? (long)s->entry.d_off : NEXT(telldir)(dir);
}

INTERPOSED int dirfd(DIR *dir)
{
    struct stream *s = ours(dir);
    if (s == NULL)
        return NEXT(dirfd)(dir);
    if (s->fd < 0)
        s->fd = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return s->fd;
}

/* Old programs' readdir; `entry` is the caller's. */
static int next_into(struct stream *s, void *entry, void **result)
{
    const struct dirent *e = next(s);
    *result = NULL;
    if (e != NULL)
        *result = memcpy(entry, e, sizeof(*e));
    return 0;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
INTERPOSED int readdir_r(DIR *dir, struct dirent *entry, struct dirent **result)
{
    struct stream *s = ours(dir);
    return s != NULL ? next_into(s, entry, (void **)result) : NEXT(readdir_r)(dir, entry, result);
}

INTERPOSED int readdir64_r(DIR *dir, struct dirent64 *entry, struct dirent64 **result)
{
    struct stream *s = ours(dir);
    return s != NULL ? next_into(s, entry, (void **)result) : NEXT(readdir64_r)(dir, entry, result);
}
#pragma GCC diagnostic pop

/* ---- scandir, which libc does without calling opendir by its name ---- */

typedef int (*choose)(const struct dirent *);
typedef int (*order)(const struct dirent **, const struct dirent **);

static int add(struct dirent ***list, int n, const struct dirent *e)
{
    struct dirent **grown = realloc(*list, ((size_t)n + 1) * sizeof(*grown));
    struct dirent *copy = malloc(sizeof(*copy));
    if (grown != NULL)
        *list = grown;
    if (grown == NULL || copy == NULL) {
        free(copy);
        return -1;
    }
    *copy = *e;
    grown[n] = copy;
    return 0;
}

static int scan(struct stream *s, struct dirent ***list, choose wanted, order compare)
{
    struct dirent **found = NULL, *e;
    int n = 0;
    while ((e = next(s)) != NULL) {
        if (wanted != NULL && wanted(e) == 0)
            continue;
        if (add(&found, n, e) < 0) {
            while (n > 0)
                free(found[--n]);
            free(found);
            errno = ENOMEM;
            return -1;
        }
        n++;
    }
    if (compare != NULL && n > 1)
        qsort(found, (size_t)n, sizeof(*found), (int (*)(const void *, const void *))compare);
    *list = found != NULL ? found : malloc(1); /* callers free it */
    return n;
}

static bool scan_ours(const char *path, struct dirent ***list, choose wanted, order compare, int *n)
{
    struct sysfs_node node;
    char clean[PATH_MAX];
    if (!sysfs_at(path, &node, clean, sizeof(clean)))
        return false;
    *n = -1;
    if (node.kind != SYSFS_DIR) {
        errno = ENOTDIR;
        return true;
    }
    struct stream *s = stream_of(&node, clean);
    if (s != NULL)
        *n = scan(s, list, wanted, compare);
    free(s);
    return true;
}

INTERPOSED int scandir(const char *path, struct dirent ***list, choose wanted, order compare)
{
    int n;
    return scan_ours(path, list, wanted, compare, &n) ? n
                                                      : NEXT(scandir)(path, list, wanted, compare);
}

INTERPOSED int scandir64(const char *path, struct dirent64 ***list,
                         int (*wanted)(const struct dirent64 *),
                         int (*compare)(const struct dirent64 **, const struct dirent64 **))
{
    int n;
    return scan_ours(path, (struct dirent ***)(void *)list, (choose)wanted, (order)compare, &n)
               ? n
               : NEXT(scandir64)(path, list, wanted, compare);
}

/* ---- glob: libc's, with the functions above ---- */

static void close_dir(void *dir)
{
    closedir(dir);
}

static void *open_dir(const char *path)
{
    return opendir(path);
}

static struct dirent *read_dir(void *dir)
{
    return readdir(dir);
}

static struct dirent64 *read_dir64(void *dir)
{
    return readdir64(dir);
}

INTERPOSED int glob(const char *pattern, int flags, int (*failed)(const char *, int), glob_t *g)
{
    if (!sysfs_claims(pattern) || (flags & GLOB_ALTDIRFUNC))
        return NEXT(glob)(pattern, flags, failed, g);
    g->gl_closedir = close_dir;
    g->gl_opendir = open_dir;
    g->gl_readdir = read_dir;
    g->gl_lstat = lstat;
    g->gl_stat = stat;
    return NEXT(glob)(pattern, flags | GLOB_ALTDIRFUNC, failed, g);
}

INTERPOSED int glob64(const char *pattern, int flags, int (*failed)(const char *, int), glob64_t *g)
{
    if (!sysfs_claims(pattern) || (flags & GLOB_ALTDIRFUNC))
        return NEXT(glob64)(pattern, flags, failed, g);
    g->gl_closedir = close_dir;
    g->gl_opendir = open_dir;
    g->gl_readdir = read_dir64;
    g->gl_lstat = lstat64;
    g->gl_stat = stat64;
    return NEXT(glob64)(pattern, flags | GLOB_ALTDIRFUNC, failed, g);
}
