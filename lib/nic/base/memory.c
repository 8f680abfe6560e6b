/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The handler must find a faulting address's mapping without locks and without following a pointer
 * that another thread may free, so the bounds and the broken flag live in a static table.
 */
#include "memory.h"
#include "ipc_map.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#define MEMORY_SLOTS 65536u
#define MEMORY_QUICK ((uint64_t)16 << 20) /* octets that are freed in a few milliseconds */
#define MEMORY_PART  ((size_t)64 << 20)   /* unmapped at a time: page faults wait meanwhile */

static struct memory_slot {
    _Atomic uintptr_t begin, end; /* end 0 = free */
    _Atomic bool broken;
} memory_slots[MEMORY_SLOTS];

static _Atomic uint32_t memory_high; /* slots ever used: bounds the handler's scan */
static uint32_t memory_live, memory_hint;
static pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;

static void memory_on_sigbus(int sig, siginfo_t *info, void *context)
{
    uintptr_t addr = (uintptr_t)info->si_addr;
    uint32_t high = atomic_load_explicit(&memory_high, memory_order_acquire);
    int saved = errno;
    (void)context;
    for (uint32_t i = 0; i < high; i++) {
        struct memory_slot *s = &memory_slots[i];
        /* Another slot may be given up or taken this moment: both ends must be of one life. */
        uintptr_t end = atomic_load_explicit(&s->end, memory_order_acquire);
        uintptr_t begin = atomic_load_explicit(&s->begin, memory_order_acquire);
        if (addr < begin || addr >= end ||
            atomic_load_explicit(&s->end, memory_order_acquire) != end)
            continue;
        atomic_store_explicit(&s->broken, true, memory_order_relaxed);
        /* The raw call: async-signal-safe even if mmap is wrapped. */
        long rc = syscall(SYS_mmap, begin, end - begin, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
        if ((uintptr_t)rc == begin) {
            errno = saved;
            return;
        }
        break;
    }
    /* Not ours: die of it as usual. */
    signal(sig, SIG_DFL);
    raise(sig);
}

int memory_init(void)
{
    struct sigaction sa = {.sa_sigaction = memory_on_sigbus, .sa_flags = SA_SIGINFO};
    sigemptyset(&sa.sa_mask);
    return sigaction(SIGBUS, &sa, NULL) < 0 ? -errno : 0;
}

static int memory_slot_take(void *begin, size_t len, uint32_t *out)
{
    int rc = -ENOSPC;
    pthread_mutex_lock(&memory_lock);
    for (uint32_t n = 0; n < MEMORY_SLOTS; n++) {
        uint32_t i = (memory_hint + n) % MEMORY_SLOTS;
        struct memory_slot *s = &memory_slots[i];
        if (atomic_load_explicit(&s->end, memory_order_relaxed) != 0)
            continue;
        atomic_store_explicit(&s->broken, false, memory_order_relaxed);
        atomic_store_explicit(&s->begin, (uintptr_t)begin, memory_order_release);
        atomic_store_explicit(&s->end, (uintptr_t)begin + len, memory_order_release);
        if (i >= atomic_load_explicit(&memory_high, memory_order_relaxed))
            atomic_store_explicit(&memory_high, i + 1, memory_order_release);
        memory_live++;
        memory_hint = i + 1;
        *out = i;
        rc = 0;
        break;
    }
    pthread_mutex_unlock(&memory_lock);
    return rc;
}

static void memory_slot_give(uint32_t i)
{
    pthread_mutex_lock(&memory_lock);
    atomic_store_explicit(&memory_slots[i].end, 0, memory_order_release); /* this alone frees it */
    memory_live--;
    if (i < memory_hint)
        memory_hint = i; /* low slots first keeps the handler's scan short */
    pthread_mutex_unlock(&memory_lock);
}

unsigned memory_count(void)
{
    pthread_mutex_lock(&memory_lock);
    unsigned n = memory_live;
    pthread_mutex_unlock(&memory_lock);
    return n;
}

/* Map [off, off+len) of fd, with pages of any size. */
static int memory_map(int fd, uint64_t off, uint64_t len, size_t page, bool writable,
                      struct memory **out)
{
    uint64_t head = off % page;
    uint64_t map_len = (head + len + page - 1) / page * page;
    struct memory *m = calloc(1, sizeof(*m));
    if (!m)
        return -ENOMEM;
    int prot = PROT_READ | (writable ? PROT_WRITE : 0);
    void *at = page > MEMORY_PAGE ? mmap(NULL, map_len, prot, MAP_SHARED, fd, (off_t)(off - head))
                                  : ipc_map(fd, (off_t)(off - head), map_len, prot);
    int rc = at == MAP_FAILED ? -errno : memory_slot_take(at, map_len, &m->slot);
    if (rc < 0) {
        if (at != MAP_FAILED)
            munmap(at, map_len);
        free(m);
        return rc == -EPERM ? -EACCES : rc;
    }
    m->base = (uint8_t *)at + head;
    m->len = len;
    m->map_off = head;
    m->map_len = map_len;
    m->fd = -1;
    m->writable = writable;
    m->broken = &memory_slots[m->slot].broken;
    *out = m;
    return 0;
}

int memory_slab(const char *name, size_t len, struct memory **out, int *fd)
{
    const size_t page = MEMORY_PAGE;
    len = (len + page - 1) / page * page;
    int object = ipc_object_new(name, len), rc = 0;
    if (object < 0 && !ipc_object_is_stand_in(object))
        return object;
    if (object >= 0 && fcntl(object, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0)
        rc = -errno;
    if (rc == 0)
        rc = memory_map(object, 0, len, page, true, out);
    if (rc < 0) {
        ipc_object_close(object);
        return rc;
    }
    (*out)->fd = *fd = object;
    return 0;
}

/* A large slab keeps its descriptor, which shows how much of the slab is in use. */
static void memory_is_safe(struct memory *m)
{
    m->sealed = true;
    if (m->keeps_fd || m->len > MEMORY_QUICK)
        return;
    close(m->fd);
    m->fd = -1;
}

bool memory_is_sealed(struct memory *m)
{
    if (!m->sealed && m->fd >= 0 && (fcntl(m->fd, F_GET_SEALS) & F_SEAL_FUTURE_WRITE) != 0)
        memory_is_safe(m);
    return m->sealed;
}

int memory_seal(struct memory *m)
{
    if (!m->sealed)
        (void)fcntl(m->fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL);
    return memory_is_sealed(m) ? 0 : -EPERM;
}

/* SHM-08: another user's object, of which `size` octets can be punched out at once. */
static bool memory_cannot_stall(int seals, uint64_t size, bool writable)
{
    const int fixed = F_SEAL_SHRINK | F_SEAL_GROW;
    if ((seals & fixed) != fixed)
        return false;
    return size <= MEMORY_STALL_MAX ||
           (!writable && (seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) != 0);
}

int memory_foreign(int fd, uint64_t off, uint64_t len, bool writable, bool trusted,
                   struct memory **out)
{
    struct statfs fs;
    struct stat st;
    size_t page = MEMORY_PAGE;

    /* Only files that live in memory have seals. No further call is made on any other file: if it
     * is of FUSE, the call would wait for its server, which may be any user's program. */
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0)
        return errno == EINVAL ? -EOPNOTSUPP : -errno;
    if (fstatfs(fd, &fs) < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (fs.f_type == HUGETLBFS_MAGIC)
        page = (size_t)fs.f_bsize;
    else if (fs.f_type != TMPFS_MAGIC)
        return -EOPNOTSUPP;
    if (!S_ISREG(st.st_mode))
        return -EOPNOTSUPP;
    if (len == 0)
        return -EINVAL;
    if (off > (uint64_t)st.st_size || len > (uint64_t)st.st_size - off)
        return -EFAULT;
    if (!trusted && !memory_cannot_stall(seals, (uint64_t)st.st_size, writable))
        return -EPERM;
    return memory_map(fd, off, len, page, writable, out);
}

int memory_own(void *addr, size_t len, bool writable, struct memory **out)
{
    static const _Atomic bool never;
    struct memory *m = calloc(1, sizeof(*m));
    if (!m)
        return -ENOMEM;
    *m =
        (struct memory){.base = addr, .len = len, .broken = &never, .writable = writable, .fd = -1};
    *out = m;
    return 0;
}

bool memory_is_slow_to_free(const struct memory *m)
{
    struct stat st;
    if (m->len <= MEMORY_QUICK)
        return false;
    return m->fd < 0 || fstat(m->fd, &st) < 0 || (uint64_t)st.st_blocks * 512 > MEMORY_QUICK;
}

void memory_free(struct memory *m)
{
    if (!m)
        return;
    if (memory_is_own(m)) {
        free(m);
        return;
    }
    memory_slot_give(m->slot);
    uint8_t *at = m->base - m->map_off;
    for (size_t left = m->map_len; left > 0;) {
        size_t part = left < MEMORY_PART ? left : MEMORY_PART;
        if (munmap(at, part) < 0) /* huge pages of another size */
            munmap(at, part = left);
        at += part;
        left -= part;
    }
    if (m->fd != -1)
        ipc_object_close(m->fd);
    free(m);
}

static uint64_t *memory_word(const struct mem_piece *p)
{
    const struct memory *m = p->obj;
    if (!memory_holds(m, p->off, 8) || !m->writable || ((uintptr_t)m->base + p->off) % 8 != 0)
        return NULL;
    return (uint64_t *)(void *)(m->base + p->off);
}

int memory_cas(const struct mem_piece *dst, uint64_t compare, uint64_t swap, uint64_t *orig)
{
    uint64_t *word = memory_word(dst);
    return word ? memory_done(dst->obj, guard_cas(word, compare, swap, orig)) : -EFAULT;
}

int memory_store(const struct mem_piece *dst, uint64_t value)
{
    uint64_t *word = memory_word(dst);
    return word ? memory_done(dst->obj, guard_store(word, value)) : -EFAULT;
}

int memory_fadd(const struct mem_piece *dst, uint64_t add, uint64_t *orig)
{
    uint64_t *word = memory_word(dst);
    return word ? memory_done(dst->obj, guard_fadd(word, add, orig)) : -EFAULT;
}
