/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory of clients: slabs that the daemon makes and seals, foreign objects (memfd, /dev/shm, SysV,
 * hugetlbfs) that a client passes and the daemon maps, and any memory of this process (memory_own).
 * No client of another user can make a worker wait for a hole that it punches
 * (memory_seal, memory_foreign).
 *
 * The owner of a foreign object may truncate or punch it at any time; an access to a page that is
 * gone raises SIGBUS. The handler installed here then puts zero pages in the place of the whole
 * mapping and marks it broken, the access goes on harmlessly, and the copy function reports -EFAULT
 * (MR-12). An access that doesn't fault pays one load and one branch. Nothing else survives a
 * SIGBUS.
 *
 * Threads: any may map and unmap. Both take long, so the control thread does them, except for slabs
 * of queues, which a worker maps now and then (qslab.h). Access from one worker.
 */
#ifndef NIC_MEMORY_H
#define NIC_MEMORY_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "guard.h"
#include "mem.h"

#define MEMORY_PAGE      4096u
#define MEMORY_HUGE_PAGE (2u << 20)

/* One mapping, or memory of this process. The obj of a mem_seg and a mem_piece points to one. */
struct memory {
    uint8_t *base;
    size_t len;
    const _Atomic bool *broken; /* true: pages were lost; the content is gone for good */
    bool writable;
    int fd;         /* of a slab: memory.c's; -1 = it isn't needed any more, or foreign */
    bool sealed;    /* for good: no process can punch holes into it */
    bool keeps_fd;  /* fd stays open after sealing */
    uint32_t slot;  /* memory.c's */
    size_t map_off; /* base - start of the mapping */
    size_t map_len;
};

/* Install the SIGBUS handler; once, before any other function. 0 or -errno. */
int memory_init(void);

/* Make a zeroed slab of at least `len` octets, whose size is sealed, and map it. *fd is for the
 * client, and may be a stand-in (ipc_object_new); it stays the slab's (m->fd), so the caller
 * doesn't close it. -ENOMEM, -EMFILE, -ENFILE, -EFBIG (ulimit -f), -ENOSPC (too many mappings). */
int memory_slab(const char *name, size_t len, struct memory **out, int *fd);

/* Seal a slab that the client has mapped: F_SEAL_FUTURE_WRITE leaves its mapping writable and
 * forbids to punch holes, F_SEAL_SEAL comes last. A page fault would wait for the whole of such a
 * hole (SHM-08). 0 also if it is sealed already; -EPERM: the client has sealed it in another way. A
 * process that punches at this moment makes this call wait, up to 0.2 ms per MiB: a slab of more
 * than MEMORY_STALL_MAX is sealed on its user's thread (seal.h). Afterwards the descriptor of a
 * smaller one is closed, but with m->keeps_fd. */
int memory_seal(struct memory *m);
/* Has the slab its seals? Looks, and never waits. */
bool memory_is_sealed(struct memory *m);

/* Octets that a client may punch out of memory that a worker copies from and to: a worker waits for
 * a fifth of a millisecond. */
#define MEMORY_STALL_MAX (2u << 20)

/* Map [off, off+len) of a client's object. The caller keeps `fd`. `trusted`: a client of the
 * daemon's own user or root, which could stop the daemon anyway. For another user's the object must
 * not be able to stall a worker: its size is sealed, and it has MEMORY_STALL_MAX octets at most, or
 * writing is sealed, too (then only for reading). -EPERM: neither holds. -EOPNOTSUPP when it isn't
 * a file on tmpfs or hugetlbfs (a page of any other may block the worker for ever), -EFAULT when it
 * is shorter than that, -EACCES when `writable` isn't permitted, -EINVAL for no octets, -EBADF,
 * -ENOMEM, -ENOSPC. */
int memory_foreign(int fd, uint64_t off, uint64_t len, bool writable, bool trusted,
                   struct memory **out);

/* `len` octets of this process at `addr`, for a region of its own: nothing is mapped. Pages may go
 * or lose rights while the region exists: then the handler of guard_signal.h must be in front, and
 * an access that needs them is -EFAULT. -ENOMEM. */
int memory_own(void *addr, size_t len, bool writable, struct memory **out);
/* Is it of memory_own? */
static inline bool memory_is_own(const struct memory *m)
{
    return m->map_len == 0;
}

/* Would freeing it take longer than a request may? Looks at how much of a slab is in use. */
bool memory_is_slow_to_free(const struct memory *m);

/* Unmap. No piece of it may be in use. NULL is allowed. */
void memory_free(struct memory *m);

/* Live mappings, for leak tests. */
unsigned memory_count(void);

static inline bool memory_is_broken(const struct memory *m)
{
    return atomic_load_explicit(m->broken, memory_order_relaxed);
}

/* Does the piece lie inside its mapping? lib/mem has checked it against the region; this guards
 * against a mistake there. */
static inline bool memory_holds(const struct memory *m, uint64_t off, uint64_t len)
{
    return off <= m->len && len <= m->len - off;
}

/* The outcome of an access that guard.h has made: `rc` is its result. */
static inline int memory_done(const struct memory *m, int rc)
{
    atomic_signal_fence(memory_order_seq_cst);
    return memory_is_broken(m) ? -EFAULT : rc;
}

/* src[0..len) -> dst / src -> dst[0..len). 0 or -EFAULT (then some octets may have been moved). */
static inline int memory_put(const struct mem_piece *dst, const void *src)
{
    const struct memory *m = dst->obj;
    if (!memory_holds(m, dst->off, dst->len) || !m->writable)
        return -EFAULT;
    return memory_done(m, guard_copy(m->base + dst->off, src, dst->len));
}

/* Where a piece is mapped, for a caller that reads it itself and then asks memory_is_broken after a
 * signal fence; NULL: in no mapping. */
static inline const uint8_t *memory_at(const struct mem_piece *src)
{
    const struct memory *m = src->obj;
    return memory_holds(m, src->off, src->len) ? m->base + src->off : NULL;
}

static inline int memory_get(void *dst, const struct mem_piece *src)
{
    const struct memory *m = src->obj;
    if (!memory_holds(m, src->off, src->len))
        return -EFAULT;
    return memory_done(m, guard_copy(dst, m->base + src->off, src->len));
}

/* Atomic on 8 aligned octets (ATM-01), also against the client's own atomics (ATM-05). 0 or
 * -EFAULT. */
int memory_cas(const struct mem_piece *dst, uint64_t compare, uint64_t swap, uint64_t *orig);
int memory_fadd(const struct mem_piece *dst, uint64_t add, uint64_t *orig);
int memory_store(const struct mem_piece *dst, uint64_t value);

#endif
