/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory of a client's process that the daemon doesn't map: heap, stack, private mappings. The
 * kernel copies to and from it (process_vm_writev, process_vm_readv), and checks each page in the
 * process's own page table: a page that is gone or may not be written gives -EFAULT.
 *
 * Only for processes of the daemon's own user: a copy waits until its page comes, and the page's
 * owner can delay it for ever (doc/traps.md). The daemon identifies the process by an open
 * /proc/PID/mem, which belongs to one address space: after exec or exit nothing is copied any more,
 * even if another process has the process id. Single small reads use this file.
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
#define REMOTE_PEEK  512u /* octets: single reads below this are faster by /proc/PID/mem */

struct remote {
    struct memory mem; /* named by segments and pieces; their offsets are addresses */
    pid_t pid;
    int space; /* /proc/PID/mem: can't be read once the address space is gone */
    int sign;  /* /proc/PID/pagemap, which tells that faster; -1 = there is none */
};

/* One contiguous copy. */
struct remote_move {
    const struct remote *remote;
    uint64_t addr; /* in the process */
    void *local;
    uint32_t len;
    int status; /* out: 0; -EFAULT, some octets may have been moved; -ESRCH, the program is gone */
};

/* Open the memory of the process `pid`, which pidfd refers to. 0 and *out; -EPERM or -EACCES the
 * kernel doesn't allow it, -ESRCH it has ended, -EOPNOTSUPP it can't be told apart from others (no
 * pidfd, or its pid namespace isn't visible here), -EMFILE, -ENFILE, -ENOMEM. */
int remote_open(pid_t pid, int pidfd, struct remote **out);
/* Close memory that no region names any more. NULL is allowed. */
void remote_close(struct remote *r);

/* The process whose memory this is; NULL = memory that is mapped here. */
static inline const struct remote *remote_of(const struct memory *m)
{
    return m->remote;
}

/* Copy local octets to the process, or back: n moves of any processes, in order, with as few system
 * calls as possible. Each gets its own status; a failed one stops no other. */
void remote_put(struct remote_move *m, unsigned n);
void remote_get(struct remote_move *m, unsigned n);

#endif
