/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The engine library's own memory: malloc and its like, mmap and munmap, for the code in this
 * library alone (its map makes them local). Programs and their libraries (UCX) put their own
 * functions in the place of libc's, and those take locks under which the program then registers
 * memory. A round that called them would wait for a lock whose holder waits for the round.
 *
 * Blocks have sizes of powers of two, and free ones are in lists. Blocks for an empty list are cut
 * from memory that mmap's system call has given. Large blocks are mappings of their own. A
 * sanitizer wants to see every block, so in its builds the library uses libc's.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define POOL_MIN   6u  /* log2 of the smallest block: a cache line */
#define POOL_LARGE 20u /* log2 of the largest block cut from a chunk */
#define POOL_CHUNK ((size_t)4 << POOL_LARGE)
#define POOL_HEAD  64u /* in front of each block; keeps it aligned */
#define POOL_PAGE  ((size_t)4096)

struct pool_block {
    struct pool_block *next; /* the next free block */
    size_t mapped;           /* octets of its own mapping; 0 = cut from a chunk */
    uint8_t *start;          /* start of the mapping or of the block, head included */
    size_t size;             /* octets for the caller */
    unsigned order;
};
_Static_assert(sizeof(struct pool_block) <= POOL_HEAD, "the head has room");

static _Atomic bool pool_taken;
static struct pool_block *pool_free[POOL_LARGE + 1];
static uint8_t *pool_chunk;
static size_t pool_left;

static void pool_lock(void)
{
    while (atomic_exchange_explicit(&pool_taken, true, memory_order_acquire))
        sched_yield();
}

static void pool_unlock(void)
{
    atomic_store_explicit(&pool_taken, false, memory_order_release);
}

/* A child that opens a port of its own finds the lists whole. */
__attribute__((constructor)) static void pool_begin(void)
{
    pthread_atfork(pool_lock, pool_unlock, pool_unlock);
}

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
    return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, off);
}

int munmap(void *addr, size_t len)
{
    return (int)syscall(SYS_munmap, addr, len);
}

static void *pool_map(size_t len)
{
    void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static struct pool_block *pool_head(void *p)
{
    return (struct pool_block *)(void *)((uint8_t *)p - POOL_HEAD);
}

/* A block of 2^order octets, head included; under the lock. */
static struct pool_block *pool_cut(unsigned order)
{
    size_t size = (size_t)1 << order;
    struct pool_block *b = pool_free[order];
    if (b) {
        pool_free[order] = b->next;
        return b;
    }
    if (pool_left < size) { /* the rest of the old chunk stays unused */
        pool_chunk = pool_map(POOL_CHUNK);
        pool_left = pool_chunk ? POOL_CHUNK : 0;
        if (!pool_chunk)
            return NULL;
    }
    b = (struct pool_block *)(void *)pool_chunk;
    pool_chunk += size;
    pool_left -= size;
    return b;
}

/* Room for size octets, of which the first is at a multiple of align, a power of two. */
static void *pool_get(size_t size, size_t align)
{
    if (size > SIZE_MAX / 4 || align > POOL_CHUNK)
        goto none;
    size_t most = size + POOL_HEAD + (align > POOL_HEAD ? align : 0);
    struct pool_block *b;
    uint8_t *start;
    unsigned order = POOL_MIN + 1;
    size_t mapped = 0;
    while (order <= POOL_LARGE && (size_t)1 << order < most)
        order++;
    if (order > POOL_LARGE) {
        mapped = (most + POOL_PAGE - 1) / POOL_PAGE * POOL_PAGE;
        start = pool_map(mapped);
    } else {
        pool_lock();
        start = (uint8_t *)pool_cut(order);
        pool_unlock();
    }
    if (!start)
        goto none;
    uint8_t *at = start + POOL_HEAD;
    if (align > POOL_HEAD)
        at = (uint8_t *)(((uintptr_t)at + align - 1) & ~(uintptr_t)(align - 1));
    b = pool_head(at);
    *b = (struct pool_block){.mapped = mapped, .start = start, .size = size, .order = order};
    return at;
none:
    errno = ENOMEM;
    return NULL;
}

void *malloc(size_t size)
{
    return pool_get(size, POOL_HEAD);
}

void *aligned_alloc(size_t align, size_t size)
{
    return pool_get(size, align);
}

void free(void *p)
{
    if (!p)
        return;
    struct pool_block b = *pool_head(p), *first = (struct pool_block *)(void *)b.start;
    int saved = errno;
    if (b.mapped > 0) {
        munmap(b.start, b.mapped);
        errno = saved;
        return;
    }
    pool_lock();
    first->next = pool_free[b.order];
    pool_free[b.order] = first;
    pool_unlock();
}

void *calloc(size_t n, size_t size)
{
    if (size != 0 && n > SIZE_MAX / size) {
        errno = ENOMEM;
        return NULL;
    }
    void *p = pool_get(n * size, POOL_HEAD);
    if (p && pool_head(p)->mapped == 0)
        memset(p, 0, n * size);
    return p;
}

void *realloc(void *p, size_t size)
{
    if (!p)
        return malloc(size);
    size_t had = pool_head(p)->size;
    void *q = malloc(size);
    if (!q)
        return NULL;
    memcpy(q, p, had < size ? had : size);
    free(p);
    return q;
}

int vasprintf(char **out, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    *out = n < 0 ? NULL : malloc((size_t)n + 1);
    return *out ? vsnprintf(*out, (size_t)n + 1, fmt, ap) : -1;
}
