/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory of a client's process that the daemon doesn't map: heap, stack, private mappings. The
 * kernel copies to and from it (process_vm_writev, process_vm_readv), and judges each page by the
 * process's own page table: a page that is gone or may not be written gives -EFAULT.
 *
 * Only processes of the daemon's own user: a copy waits for as long as a page takes to come, and
 * its owner can make that for ever (doc/traps.md). The process is known by its open
 * /proc/PID/mem, which belongs to one address space: after exec or exit nothing is copied any more,
 * whatever the process id stands for then. Small reads that come alone are made by it.
 *
 * Threads: opening and closing on the control thread; copies on the client's worker.
 */
#ifndef NIC_REMOTE_H
#define NIC_REMOTE_H

#include <stdint.h>
#include <sys/types.h>

#include "memory.h"

#define REMOTE_FDS   2u   /* descriptors of a process */
#define REMOTE_BATCH 32u  /* pieces in one system call: more of them gain nothing */
#define REMOTE_PEEK  512u /* octets: fewer are read sooner by way of /proc/PID/mem, if alone */

struct remote {
    struct memory mem; /* what segments and pieces name; their offsets are addresses */
    pid_t pid;
    int space; /* /proc/PID/mem: reads nothing once the address space is gone */
    int sign;  /* /proc/PID/pagemap, which tells that sooner; -1 there is none */
};

/* One contiguous copy. */
struct remote_move {
    const struct remote *remote;
    uint64_t addr; /* in the process */
    void *local;
    uint32_t len;
    int status; /* out: 0; -EFAULT, some octets may have been moved; -ESRCH, the program is gone */
};

/* Make the process `pid`, which pidfd refers to, one whose memory can be reached. 0 and *out;
 * -EPERM or -EACCES the kernel doesn't allow it, -ESRCH it has ended, -EOPNOTSUPP it can't be told
 * apart from others (no pidfd, or it is in a pid namespace that isn't seen here), -EMFILE, -ENFILE,
 * -ENOMEM. */
int remote_open(pid_t pid, int pidfd, struct remote **out);
/* No region names it any more. NULL is allowed. */
void remote_close(struct remote *r);

/* The process whose memory this is; NULL = memory that is mapped here. */
static inline const struct remote *remote_of(const struct memory *m)
{
    return m->remote;
}

/* Local octets to the process / its octets here: n moves of any processes, in order, with as few
 * system calls as possible. Each gets its own status; one that fails keeps no other from being
 * made. */
void remote_put(struct remote_move *m, unsigned n);
void remote_get(struct remote_move *m, unsigned n);

#endif
