/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory of clients: slabs that the daemon makes and seals, foreign objects (memfd, /dev/shm, SysV,
 * hugetlbfs) that a client passes and the daemon maps, and what stays in the client's process
 * (remote.h).
 *
 * The owner of a foreign object may truncate or punch it at any time; touching a page that is gone
 * raises SIGBUS. The handler installed here then puts zero pages in the place of the whole mapping
 * and marks it broken, the access goes on harmlessly, and the copy function reports -EFAULT
 * (MR-12). An access that doesn't fault pays one load and one branch. Nothing else survives a
 * SIGBUS.
 *
 * Threads: any may map and unmap. It takes long, so the control thread does it, but for the slabs
 * of queues, which a worker maps now and then (qslab.h). Access from one worker.
 */
#ifndef URNICD_MEMORY_H
#define URNICD_MEMORY_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "mem.h"

#define MEMORY_PAGE      4096u
#define MEMORY_HUGE_PAGE (2u << 20)

struct remote;

/* One mapping, or the memory of a process. The obj of a mem_seg and a mem_piece points to one. */
struct memory {
    uint8_t *base;
    size_t len;
    const _Atomic bool *broken; /* true: pages were lost; the content is gone for good */
    bool writable;
    uint32_t slot; /* memory.c's */
    const struct remote
        *remote;    /* not NULL: base is NULL, len 0, and offsets are addresses there */
    size_t map_off; /* base - start of the mapping */
    size_t map_len;
};

/* Install the SIGBUS handler; once, before any other function. 0 or -errno. */
int memory_init(void);

/* Make a zeroed, sealed (no shrink, grow or new seals) slab of at least `len` octets and map it.
 * *fd is for the client, the caller closes it. -ENOMEM, -EMFILE, -ENFILE, -EFBIG (ulimit -f),
 * -ENOSPC (too many mappings). */
int memory_slab(const char *name, size_t len, struct memory **out, int *fd);

/* Map [off, off+len) of a client's object. The caller keeps `fd`. -EOPNOTSUPP when it isn't a
 * file on tmpfs or hugetlbfs (a page of any other may block the worker for ever), -EFAULT when it
 * is shorter than that, -EACCES when `writable` isn't permitted, -EINVAL for no octets, -EBADF,
 * -ENOMEM, -ENOSPC. */
int memory_foreign(int fd, uint64_t off, uint64_t len, bool writable, struct memory **out);

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

#define MEMORY_PIECE 2048u

/* libc copies 4 KiB and more by `rep movsb`, beside which the CPU does nothing else; less than that
 * by vector moves, which run beside a CRC. */
static inline void memory_move(uint8_t *dst, const uint8_t *src, size_t len)
{
    for (; len > MEMORY_PIECE; len -= MEMORY_PIECE) {
        memcpy(dst, src, MEMORY_PIECE);
        dst += MEMORY_PIECE;
        src += MEMORY_PIECE;
    }
    memcpy(dst, src, len);
}

/* The same for a piece that lies in no mapping: in a process, or nowhere. */
int memory_put_far(const struct mem_piece *dst, const void *src);
int memory_get_far(void *dst, const struct mem_piece *src);

/* src[0..len) -> dst / src -> dst[0..len). 0 or -EFAULT (then some octets may have been moved). */
static inline int memory_put(const struct mem_piece *dst, const void *src)
{
    const struct memory *m = dst->obj;

    if (!memory_holds(m, dst->off, dst->len) || !m->writable)
        return memory_put_far(dst, src);
    memory_move(m->base + dst->off, src, dst->len);
    atomic_signal_fence(memory_order_seq_cst);
    return memory_is_broken(m) ? -EFAULT : 0;
}

static inline int memory_get(void *dst, const struct mem_piece *src)
{
    const struct memory *m = src->obj;

    if (!memory_holds(m, src->off, src->len))
        return memory_get_far(dst, src);
    memcpy(dst, m->base + src->off, src->len);
    atomic_signal_fence(memory_order_seq_cst);
    return memory_is_broken(m) ? -EFAULT : 0;
}

/* Atomic on 8 aligned octets (ATM-01): in a mapping also against the client's own atomics, in a
 * process against others on the same worker (ATM-05). 0 or -EFAULT. */
int memory_cas(const struct mem_piece *dst, uint64_t compare, uint64_t swap, uint64_t *orig);
int memory_fadd(const struct mem_piece *dst, uint64_t add, uint64_t *orig);

#endif
