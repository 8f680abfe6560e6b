/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The set of our descriptors. Programs may close descriptors without our notice (closefrom and
 * close_range are system calls, too), and numbers are reused: a number counts only while its inode
 * is the file's. Files are never freed, so readers need no lock.
 */
#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ucma.h"

#define NUMBERS 65536u

static _Atomic(struct ucma_file *) owner[NUMBERS];
static _Atomic unsigned highest; /* no number above was ever ours */

static bool same_file(int fd, const struct ucma_file *f)
{
    struct stat st;
    int saved = errno;
    bool same = syscall(SYS_fstat, fd, &st) == 0 && st.st_ino == atomic_load(&f->ino) &&
                st.st_dev == atomic_load(&f->dev);
    errno = saved;
    return same;
}

struct ucma_file *ucma_fd(int fd)
{
    if ((unsigned)fd >= NUMBERS)
        return NULL;
    struct ucma_file *f = atomic_load_explicit(&owner[fd], memory_order_acquire);
    return f != NULL && same_file(fd, f) ? f : NULL;
}

/* The number was another file's, which the program has closed without our notice. */
static void forget(int fd)
{
    struct ucma_file *old = atomic_exchange(&owner[fd], NULL);
    if (old != NULL && old->numbers > 0)
        old->numbers--;
}

void ucma_fd_add(int fd, struct ucma_file *f)
{
    if ((unsigned)fd >= NUMBERS)
        return;
    forget(fd);
    f->numbers++;
    f->last = fd;
    atomic_store_explicit(&owner[fd], f, memory_order_release);
    if ((unsigned)fd > atomic_load(&highest))
        atomic_store(&highest, (unsigned)fd);
}

void ucma_fd_drop(int fd, struct ucma_file *f)
{
    if ((unsigned)fd >= NUMBERS || atomic_load(&owner[fd]) != f)
        return;
    forget(fd);
    for (unsigned i = 0; f->numbers > 0 && f->last == fd && i <= atomic_load(&highest); i++)
        if (atomic_load(&owner[i]) == f)
            f->last = (int)i;
}

int ucma_fd_next(unsigned first, unsigned last)
{
    unsigned end = atomic_load(&highest);
    if (last < end)
        end = last;
    for (unsigned i = first; i <= end; i++)
        if (atomic_load_explicit(&owner[i], memory_order_relaxed) != NULL && ucma_fd((int)i))
            return (int)i;
    return -1;
}
