/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Copies to and from the program's memory that its commands name. As in the kernel, a bad address
 * is an error and not a signal. The kernel checks each address in a copy from the process to
 * itself; where a sandbox forbids that call, addresses are trusted.
 */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "ucma.h"

static int copy(long call, void *mine, void *theirs, size_t n)
{
    struct iovec local = {mine, n}, remote = {theirs, n};
    int saved = errno;
    long done = n == 0 ? 0 : syscall(call, (long)getpid(), &local, 1L, &remote, 1L, 0L);
    int err = done < 0 ? -errno : (size_t)done < n ? -EFAULT : 0;
    errno = saved;
    return err;
}

static bool forbidden(int err)
{
    return err == -EPERM || err == -ENOSYS || err == -ESRCH;
}

int ucma_copy_out(uint64_t to, const void *from, size_t n)
{
    void *theirs = (void *)(uintptr_t)to, *mine; // NOLINT: the ABI's addresses are numbers
    memcpy(&mine, &from, sizeof(mine));
    int err = copy(SYS_process_vm_writev, mine, theirs, n);
    if (!forbidden(err))
        return err;
    memcpy(theirs, from, n);
    return 0;
}

int ucma_copy_in(void *to, uint64_t from, size_t n)
{
    void *theirs = (void *)(uintptr_t)from; // NOLINT: as above
    int err = copy(SYS_process_vm_readv, to, theirs, n);
    if (!forbidden(err))
        return err;
    memcpy(to, theirs, n);
    return 0;
}
