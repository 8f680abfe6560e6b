/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The daemon's small tables: GIDs, handles, queue slabs, guarded memory; its log lines; captures.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "capture.h"
#include "context.h"
#include "device.h"
#include "foreign.h"
#include "gid.h"
#include "handle.h"
#include "log.h"
#include "memlimit.h"
#include "memory.h"
#include "qslab.h"
#include "queue.h"
#include "quota.h"
#include "reclaim.h"
#include "team.h"
#include "unit.h"
#include "watch.h"
#include "worker.h"

/* ---- GIDs ---- */

static struct wire_addr ip(const char *s)
{
    struct wire_addr a;
    ck_assert_int_eq(wire_addr_parse(s, &a), 0);
    return a;
}

/* GID-01 GID-03: link-local at 0/1, the first IPv4 at 2/3, also after other additions. */
START_TEST(gid_places)
{
    static const uint8_t mac[6] = {0x02, 0x11, 0x22, 0x33, 0x44, 0x55};
    const struct wire_addr local = ip("fe80::11:22ff:fe33:4455"), six = ip("fd00::1"),
                           four = ip("10.0.0.1"), other = ip("10.0.1.1");
    struct gid_table t;
    gid_init(&t, mac);
    ck_assert(memcmp(gid_at(&t, 0)->addr.b, local.b, 16) == 0);
    ck_assert(gid_at(&t, 0) == gid_at(&t, 1));
    ck_assert_ptr_null(gid_at(&t, 2));
    ck_assert_int_eq(gid_add(&t, &six), 4);
    ck_assert_int_eq(gid_add(&t, &four), 2);
    ck_assert_int_eq(gid_add(&t, &other), 6);
    ck_assert_int_eq(gid_add(&t, &four), -EEXIST);
    ck_assert_int_eq(gid_find(&t, &four), 3);
    ck_assert_int_eq(gid_del(&t, &local), -EPERM);
    ck_assert_int_eq(gid_del(&t, &six), 0);
    ck_assert_int_eq(gid_del(&t, &six), -ENOENT);
    ck_assert_int_eq(gid_find(&t, &other), 7); /* keeps its index */
    ck_assert_ptr_null(gid_at(&t, GID_ENTRIES));
}
END_TEST

/* GID-01: where the kernel has the addresses its link-local one is at 0/1, and goes like others. */
START_TEST(gid_places_of_the_kernels_addresses)
{
    const struct wire_addr local = ip("fe80::1"), second = ip("fe80::2"), six = ip("fd00::1");
    struct gid_table t;
    gid_init_empty(&t);
    ck_assert_ptr_null(gid_at(&t, 0));
    ck_assert_int_eq(gid_add(&t, &six), 4);
    ck_assert_int_eq(gid_add(&t, &local), 0);
    ck_assert_int_eq(gid_add(&t, &second), 6);
    ck_assert_int_eq(gid_find(&t, &local), 1);
    ck_assert_int_eq(gid_del(&t, &local), 0);
    ck_assert_ptr_null(gid_at(&t, 0));
}
END_TEST

/* ---- queues ---- */

/* SHM-06: a queue that is reset between its doorbell and the worker's look is still in the doorbell
 * ring, and must not get in a second time: there is one place for each. */
START_TEST(reset_keeps_doorbell)
{
    static _Alignas(IPC_LINE) uint8_t at[sizeof(struct ipc_queue) + 4 * IPC_UNIT];
    struct queue q = {.kind = QUEUE_SEND, .starved = true, .dead = true};
    struct ipc_ring client;
    ipc_ring_init(&q.ring, at, 4, IPC_UNIT, false);
    client = q.ring;
    client.index = 3;
    ck_assert(ipc_ring_publish(&client)); /* the number is pushed */
    q.ring.index = 1;
    ipc_ring_release(&q.ring);
    queue_reset(&q);
    ck_assert_uint_eq(atomic_load(&q.ring.q->prod), 0);
    ck_assert_uint_eq(atomic_load(&q.ring.q->cons), 0);
    ck_assert_uint_eq(q.ring.index, 0);
    ck_assert(!q.starved && !q.dead);
    client.index = 1;
    ck_assert(!ipc_ring_publish(&client));
    ipc_ring_attend(&q.ring); /* now it is taken out */
    client.index = 2;
    ck_assert(ipc_ring_publish(&client));
}
END_TEST

/* SHM-06, SHM-08: a number that may still be in the doorbell ring is not given out, and the ring is
 * not emptied for it. */
START_TEST(numbers_come_back)
{
    static _Alignas(IPC_LINE) uint8_t at[4][sizeof(struct ipc_queue) + 4 * IPC_UNIT];
    static const struct ipc_worker awake;
    struct queue q[4] = {[1] = {.kind = QUEUE_SEND}};
    struct ipc_ring client;
    struct worker w = {0};
    struct context c;
    ck_assert_int_eq(context_init(&c, NULL, NULL), 0);
    c.worker = &w;
    c.doorbell = aligned_alloc(IPC_LINE, sizeof(*c.doorbell) + QUOTA_QUEUES * sizeof(uint32_t));
    ck_assert_ptr_nonnull(c.doorbell);
    memset((void *)c.doorbell, 0, sizeof(*c.doorbell) + QUOTA_QUEUES * sizeof(uint32_t));
    for (unsigned i = 0; i < 4; i++)
        ipc_ring_init(&q[i].ring, at[i], 4, IPC_UNIT, false);
    ck_assert_int_eq(context_queue_add(&c, &q[0]), 0);
    ck_assert_int_eq(context_queue_add(&c, &q[1]), 0);
    context_queue_del(&c, &q[1]); /* nothing was rung */
    ck_assert_int_eq(context_queue_add(&c, &q[1]), 0);
    ck_assert_uint_eq(q[1].number, 1);

    client = q[0].ring;
    client.index = 1;
    ck_assert(ipc_ring_publish(&client));
    ipc_doorbell_push(c.doorbell, QUOTA_QUEUES, q[0].number, &awake);
    ipc_doorbell_push(c.doorbell, QUOTA_QUEUES, q[1].number, &awake);
    context_queue_del(&c, &q[0]);
    ck_assert_uint_eq(c.doorbell_head, 0);
    ck_assert_int_eq(context_queue_add(&c, &q[2]), 0);
    ck_assert_uint_eq(q[2].number, 2);
    ck_assert(!q[2].active);
    context_round(&c, 0);
    ck_assert(!context_ready(&c));
    ck_assert_int_eq(context_queue_add(&c, &q[3]), 0);
    ck_assert_uint_eq(q[3].number, 0);
    void *doorbell = c.doorbell;
    context_fini(&c);
    free(doorbell);
}
END_TEST

/* ---- handles ---- */

/* SHM-09: a stale handle, or one of another kind, names no object. */
START_TEST(handle_reuse)
{
    struct handle_table t;
    uint32_t first, h, seen = 0;
    int x, y;
    unsigned budget = 40;
    handle_init(&t);
    ck_assert_ptr_null(handle_get(&t, HANDLE_QP, 0));
    ck_assert_int_eq(handle_add(&t, HANDLE_QP, &x, &first), 0);
    ck_assert_uint_ne(first, 0);
    ck_assert_ptr_eq(handle_get(&t, HANDLE_QP, first), &x);
    ck_assert_ptr_null(handle_get(&t, HANDLE_CQ, first));
    ck_assert_ptr_null(handle_get(&t, HANDLE_QP, first + 1));
    handle_del(&t, first);
    for (unsigned i = 0; i < 50; i++) {
        ck_assert_int_eq(handle_add(&t, HANDLE_CQ, &y, &h), 0);
        ck_assert_uint_ne(h, first); /* others first */
    }
    ck_assert_ptr_null(handle_get(&t, HANDLE_QP, first));
    h = 0;
    while (handle_each(&t, HANDLE_CQ, &h, &budget)) {
        handle_del(&t, h);
        seen++;
    }
    ck_assert_uint_lt(seen, 50); /* SHM-12: no more than the budget */
    ck_assert_uint_eq(budget, 0);
    budget = 40;
    while (handle_each(&t, HANDLE_CQ, &h, &budget)) {
        handle_del(&t, h);
        seen++;
    }
    ck_assert_uint_eq(seen, 50);
    ck_assert_uint_eq(t.count[HANDLE_CQ], 0);
    handle_fini(&t);
}
END_TEST

/* A handle that was deleted when no other one was free is used again, as is the one after it. */
START_TEST(handle_last_one)
{
    struct handle_table t;
    uint32_t h, size;
    int x;
    handle_init(&t);
    ck_assert_int_eq(handle_add(&t, HANDLE_CQ, &x, &h), 0);
    while (t.used < t.size)
        ck_assert_int_eq(handle_add(&t, HANDLE_CQ, &x, &h), 0);
    size = t.size;
    for (uint32_t i = 3; i < 10; i++) {
        handle_del(&t, i);
        ck_assert_int_eq(handle_add(&t, HANDLE_CQ, &x, &h), 0);
        ck_assert_uint_eq(h, i);
    }
    ck_assert_uint_eq(t.size, size);
    handle_fini(&t);
}
END_TEST

/* SEC-22: a client's quota of each kind is less than the device has, and an exhausted kind does not
 * affect the others. */
START_TEST(handle_quota)
{
    static const struct {
        enum handle_kind kind;
        uint32_t quota, device;
    } kinds[] = {
        {HANDLE_QP, QUOTA_QP, LIMIT_QP}, {HANDLE_CQ, QUOTA_CQ, LIMIT_CQ},
        {HANDLE_MR, QUOTA_MR, LIMIT_MR}, {HANDLE_SRQ, QUOTA_SRQ, LIMIT_SRQ},
        {HANDLE_PD, QUOTA_PD, LIMIT_PD}, {HANDLE_MW, QUOTA_MW, LIMIT_MW},
    };
    struct handle_table t;
    uint32_t h, n;
    int x;
    for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        handle_init(&t);
        for (n = 0; n <= kinds[i].device && handle_add(&t, kinds[i].kind, &x, &h) == 0; n++)
            ck_assert(!handle_full(&t, HANDLE_CHANNEL));
        ck_assert_uint_eq(n, kinds[i].quota);
        ck_assert_uint_lt(n, kinds[i].device);
        ck_assert_int_eq(handle_add(&t, kinds[i].kind, &x, &h), -EDQUOT);
        ck_assert_int_eq(handle_add(&t, HANDLE_CHANNEL, &x, &h), 0);
        handle_del(&t, 5);
        ck_assert_int_eq(handle_add(&t, kinds[i].kind, &x, &h), 0);
        handle_fini(&t);
    }
}
END_TEST

/* SEC-22: nor may all kinds together be more than the table holds. */
START_TEST(handle_quota_of_all)
{
    struct handle_table t;
    unsigned n = 0;
    uint32_t h;
    int x;
    handle_init(&t);
    for (unsigned kind = HANDLE_FREE + 1; kind < HANDLE_KINDS; kind++)
        while (handle_add(&t, (enum handle_kind)kind, &x, &h) == 0)
            n++;
    ck_assert_uint_eq(n, QUOTA_HANDLES - 1); /* 0 is none */
    handle_del(&t, 5);
    ck_assert_int_eq(handle_add(&t, HANDLE_PD, &x, &h), 0);
    ck_assert_uint_eq(h, 5);
    handle_fini(&t);
}
END_TEST

/* ---- queue slabs ---- */

static bool all(const uint8_t *p, unsigned value, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        if (p[i] != value)
            return false;
    }
    return true;
}

/* SEC-04: places don't overlap, and are zeroed, also when they are reused. */
START_TEST(qslab_places)
{
    enum { N = 64 };
    struct qslab_list l = {0};
    struct slab_place p[N] = {{0}};
    uint32_t seed = 1;
    for (unsigned round = 0; round < 2000; round++) {
        unsigned i = (seed = seed * 1664525u + 1013904223u) >> 26;
        if (p[i].slab) {
            const uint8_t *at = qslab_at(&p[i]);
            ck_assert(all(at, i + 1, p[i].size));
            qslab_free(&p[i]);
            ck_assert_ptr_null(p[i].slab);
            if (round % 3 == 0)
                qslab_clean(&l);
            continue;
        }
        uint64_t size = 192 + (seed % 7 == 0 ? 200000 : seed % 5000);
        ck_assert_int_eq(qslab_alloc(&l, size, &p[i]), 0);
        uint8_t *at = qslab_at(&p[i]);
        ck_assert_uint_eq((uintptr_t)at % 64, 0);
        ck_assert(all(at, 0, p[i].size));
        memset(at, (int)i + 1, p[i].size);
    }
    for (unsigned i = 0; i < N; i++)
        qslab_free(&p[i]);
    qslab_fini(&l);
    ck_assert_uint_eq(memory_count(), 0);
}
END_TEST

/* SHM-08: giving a place back touches no memory, however large it is, and it isn't handed out again
 * before the control thread has cleared it (SHM-09). */
START_TEST(qslab_cleared_elsewhere)
{
    static const uint64_t sizes[] = {1024, 512u << 10};
    for (unsigned i = 0; i < 2; i++) {
        struct qslab_list l = {0};
        struct slab_place p, q;
        ck_assert_int_eq(qslab_alloc(&l, sizes[i], &p), 0);
        uint8_t *at = qslab_at(&p);
        memset(at, 0x5A, sizes[i]);
        qslab_free(&p);
        ck_assert(all(at, 0x5A, sizes[i]));
        ck_assert_int_eq(qslab_alloc(&l, sizes[i], &q), 0);
        ck_assert_ptr_ne(qslab_at(&q), at);
        qslab_clean(&l);
        ck_assert(all(at, 0, sizes[i]));
        ck_assert_int_eq(qslab_alloc(&l, sizes[i], &p), 0);
        ck_assert_ptr_eq(qslab_at(&p), at);
        qslab_fini(&l);
    }
}
END_TEST

/* SEC-22: the memory of one client's queues is bounded; freed memory can be taken again. */
START_TEST(qslab_quota)
{
    struct qslab_list l = {0};
    struct slab_place p, q;
    ck_assert_int_eq(qslab_alloc(&l, QUOTA_QUEUE_OCTETS - (8u << 20), &p), 0);
    ck_assert_int_eq(qslab_alloc(&l, 16u << 20, &q), -EDQUOT);
    ck_assert_int_eq(qslab_alloc(&l, 4u << 20, &q), 0);
    qslab_free(&p);
    qslab_clean(&l);
    ck_assert_int_eq(qslab_alloc(&l, 16u << 20, &q), 0);
    qslab_fini(&l);
    ck_assert_uint_eq(memory_count(), 0);
}
END_TEST

START_TEST(qslab_descriptor_once)
{
    struct qslab_list l = {0};
    struct slab_place a, b;
    struct ipc_where w;
    ck_assert_int_eq(qslab_alloc(&l, 1000, &a), 0);
    ck_assert_int_eq(qslab_alloc(&l, 1000, &b), 0);
    for (unsigned sent = 0; sent < 2; sent++) { /* a refused answer has no content */
        ck_assert_int_ge(qslab_where(&l, &a, &w), 0);
        ck_assert_uint_ne(w.slab_size, 0);
        ck_assert_int_eq(qslab_where(&l, &b, &w), -1); /* in the same answer, or in a later one */
        ck_assert_uint_eq(w.slab_size, 0);
        qslab_answered(&l, sent);
    }
    ck_assert_int_eq(qslab_where(&l, &b, &w), -1);
    qslab_answered(&l, false);
    ck_assert_int_eq(qslab_where(&l, &a, &w), -1);
    ck_assert_uint_eq(w.slab, 1);
    qslab_free(&a);
    qslab_free(&b);
    qslab_fini(&l);
}
END_TEST

/* ---- memory ---- */

/* MR-12: pages that vanish: every access fails, the process survives, other mappings are
 * untouched. */
START_TEST(memory_survives_truncation)
{
    struct memory *m, *other;
    uint8_t buf[64] = {1};
    uint64_t orig;
    int fd = memfd_create("t", MFD_CLOEXEC), slab;
    ck_assert_int_eq(memory_init(), 0);
    ck_assert_int_eq(ftruncate(fd, 8192), 0);
    ck_assert_int_eq(memory_foreign(fd, 0, 8192, true, true, &m), 0);
    ck_assert_int_eq(memory_slab("o", 4096, &other, &slab), 0);
    const struct mem_piece p = {.obj = m, .off = 4096, .len = 64}, q = {other, 0, 64};
    ck_assert_int_eq(memory_put(&p, buf), 0);
    ck_assert_int_eq(memory_put(&q, buf), 0);
    ck_assert_int_eq(ftruncate(fd, 0), 0);
    ck_assert_int_eq(memory_get(buf, &p), -EFAULT);
    ck_assert_int_eq(memory_put(&p, buf), -EFAULT);
    ck_assert_int_eq(memory_fadd(&p, 1, &orig), -EFAULT);
    ck_assert_int_eq(memory_cas(&p, 0, 1, &orig), -EFAULT);
    ck_assert_int_eq(memory_get(buf, &q), 0);
    ck_assert_uint_eq(buf[0], 1);
    memory_free(m);
    memory_free(other);
    ck_assert_uint_eq(memory_count(), 0);
    close(fd);
}
END_TEST

static _Atomic bool stop_mapping;

static void *maps_and_unmaps(void *arg)
{
    int fd = *(const int *)arg;
    struct memory *m;
    while (!atomic_load(&stop_mapping)) {
        ck_assert_int_eq(memory_foreign(fd, 0, 4096, true, true, &m), 0);
        memory_free(m);
    }
    return NULL;
}

/* MR-12, SHM-09: the handler puts zeros in the place of the mapping that broke, also if another
 * thread removes and makes mappings at that moment. */
START_TEST(sigbus_while_others_come_and_go)
{
    int good = memfd_create("good", MFD_CLOEXEC), bad = memfd_create("bad", MFD_CLOEXEC);
    uint8_t buf[64] = {0};
    struct memory *m, *other;
    pthread_t t;
    atomic_store(&stop_mapping, false);
    ck_assert_int_eq(memory_init(), 0);
    ck_assert_int_eq(ftruncate(good, 4096), 0);
    ck_assert_int_eq(memory_foreign(good, 0, 4096, true, true, &other), 0);
    ck_assert_int_eq(pthread_create(&t, NULL, maps_and_unmaps, &good), 0);
    for (unsigned i = 0; i < 5000; i++) {
        ck_assert_int_eq(ftruncate(bad, 4096), 0);
        ck_assert_int_eq(memory_foreign(bad, 0, 4096, true, true, &m), 0);
        ck_assert_int_eq(ftruncate(bad, 0), 0);
        const struct mem_piece p = {.obj = m, .off = 0, .len = 64}, q = {other, 0, 64};
        ck_assert_int_eq(memory_put(&p, buf), -EFAULT);
        ck_assert_int_eq(memory_put(&q, buf), 0);
        memory_free(m);
    }
    atomic_store(&stop_mapping, true);
    pthread_join(t, NULL);
    memory_free(other);
    ck_assert_uint_eq(memory_count(), 0);
    close(good);
    close(bad);
}
END_TEST

/* SHM-04: a slab's size is sealed. MR-04: nothing outside a mapping is ever touched. */
START_TEST(memory_bounds)
{
    struct memory *m;
    uint8_t buf[64];
    uint64_t orig;
    int fd;
    ck_assert_int_eq(memory_slab("s", 4096, &m, &fd), 0);
    ck_assert_int_lt(ftruncate(fd, 0), 0);
    ck_assert_int_lt(ftruncate(fd, 8192), 0);
    static const uint64_t off[] = {4096 - 63, 4096, UINT64_MAX, UINT64_MAX - 63};
    for (unsigned i = 0; i < 4; i++) {
        const struct mem_piece p = {.obj = m, .off = off[i], .len = 64};
        ck_assert_int_eq(memory_get(buf, &p), -EFAULT);
        ck_assert_int_eq(memory_put(&p, buf), -EFAULT);
    }
    const struct mem_piece odd = {.obj = m, .off = 4, .len = 8}, even = {m, 8, 8};
    ck_assert_int_eq(memory_fadd(&odd, 1, &orig), -EFAULT);
    ck_assert_int_eq(memory_fadd(&even, 5, &orig), 0);
    ck_assert_uint_eq(orig, 0);
    ck_assert_int_eq(memory_cas(&even, 5, 9, &orig), 0);
    ck_assert_uint_eq(orig, 5);
    ck_assert_int_eq(memory_cas(&even, 5, 1, &orig), 0);
    ck_assert_uint_eq(orig, 9);
    memory_free(m);
}
END_TEST

/* SHM-10: a client's mappings from before the sealing stay writable; afterwards the slab can't be
 * mapped for writing, punched or sealed further. */
START_TEST(memory_sealed)
{
    for (unsigned keeps = 0; keeps < 2; keeps++) {
        struct memory *m;
        int fd;

        ck_assert_int_eq(memory_slab("s", 1u << 20, &m, &fd), 0);
        m->keeps_fd = keeps;
        int theirs = dup(fd);
        uint8_t *map = mmap(NULL, m->len, PROT_READ | PROT_WRITE, MAP_SHARED, theirs, 0);
        ck_assert_ptr_ne(map, MAP_FAILED);
        ck_assert(!memory_is_sealed(m));
        ck_assert_int_eq(fallocate(theirs, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
        ck_assert_int_eq(memory_seal(m), 0);
        ck_assert_int_eq(memory_seal(m), 0);
        ck_assert(memory_is_sealed(m));
        ck_assert_int_eq(m->fd, keeps ? fd : -1);
        memset(map, 0x5A, m->len);
        ck_assert(all(m->base, 0x5A, m->len));
        ck_assert_int_lt(fallocate(theirs, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
        ck_assert_int_lt(madvise(map, 4096, MADV_REMOVE), 0);
        ck_assert_ptr_eq(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, theirs, 0),
                         MAP_FAILED);
        ck_assert_int_lt(fcntl(theirs, F_ADD_SEALS, F_SEAL_WRITE), 0);
        munmap(map, m->len);
        close(theirs);
        memory_free(m);
    }
}
END_TEST

/* A client that forbids further seals keeps the slab from being sealed: it isn't used then. */
START_TEST(memory_unsealable)
{
    struct memory *m;
    int fd;
    ck_assert_int_eq(memory_slab("s", 4096, &m, &fd), 0);
    ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL), 0);
    ck_assert_int_eq(memory_seal(m), -EPERM);
    ck_assert(!memory_is_sealed(m));
    memory_free(m);
}
END_TEST

/* SHM-10: the kinds of another user's objects that are mapped: none that could make a worker
 * wait. */
START_TEST(memory_of_others)
{
    static const int fixed = F_SEAL_SHRINK | F_SEAL_GROW;
    static const struct {
        uint64_t size;
        int seals;
        bool writable;
        int want;
    } cases[] = {
        {4096, 0, true, -EPERM}, /* it may grow */
        {4096, F_SEAL_GROW, true, -EPERM},
        {4096, F_SEAL_SHRINK, true, -EPERM},
        {4096, fixed, true, 0},
        {MEMORY_STALL_MAX, fixed, true, 0},
        {MEMORY_STALL_MAX + 4096, fixed, true, -EPERM},
        {MEMORY_STALL_MAX + 4096, fixed, false, -EPERM},
        {MEMORY_STALL_MAX + 4096, fixed | F_SEAL_FUTURE_WRITE, false, 0},
        {MEMORY_STALL_MAX + 4096, fixed | F_SEAL_WRITE, false, 0},
        {MEMORY_STALL_MAX + 4096, F_SEAL_FUTURE_WRITE, false, -EPERM},
        {4096, fixed | F_SEAL_FUTURE_WRITE, true, -EACCES},
    };
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct memory *m;
        int fd = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        ck_assert_int_eq(ftruncate(fd, (off_t)cases[i].size), 0);
        ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, cases[i].seals), 0);
        int rc = memory_foreign(fd, 0, 4096, cases[i].writable, false, &m);
        ck_assert_msg(rc == cases[i].want, "case %u: %d", i, rc);
        if (rc == 0)
            memory_free(m);
        if (memory_foreign(fd, 0, 4096, cases[i].writable, true, &m) == 0)
            memory_free(m);
        else
            ck_assert_int_eq(cases[i].want, -EACCES);
        close(fd);
    }
    ck_assert_uint_eq(memory_count(), 0);
}
END_TEST

/* The largest single unmapping: the program's own munmap() comes before the C library's. */
static atomic_size_t unmapped_most;

int munmap(void *at, size_t len)
{
    if (len > atomic_load(&unmapped_most))
        atomic_store(&unmapped_most, len);
    return (int)syscall(SYS_munmap, at, len);
}

/* SHM-11: 64 MiB at a time: page faults of all threads wait meanwhile. */
START_TEST(memory_freed_in_pieces)
{
    const size_t part = 64u << 20;
    struct memory *m;
    int fd;
    ck_assert_int_eq(memory_slab("s", 2 * part + 4096, &m, &fd), 0);
    atomic_store(&unmapped_most, 0);
    memory_free(m);
    ck_assert_uint_eq(atomic_load(&unmapped_most), part);
    ck_assert_uint_eq(memory_count(), 0);
}
END_TEST

/* SHM-11: a large slab is freed elsewhere, and counts until then; a small or an empty one at once.
 */
START_TEST(memory_freed_elsewhere)
{
    static const struct {
        uint64_t size;
        bool touched, later;
    } cases[] = {{1u << 20, true, false}, {64u << 20, false, false}, {64u << 20, true, true}};
    struct share_pool pool = {0};
    struct share *s = share_join(&pool, 77, false);
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct share_part part = {SHARE_OCTETS, cases[i].size};
        struct memory *m;
        int fd;

        ck_assert_int_eq(memory_slab("s", cases[i].size, &m, &fd), 0);
        ck_assert_int_eq(share_take_all(s, &part, 1), 0);
        if (cases[i].touched)
            memset(m->base, 1, m->len);
        ck_assert(memory_is_slow_to_free(m) == cases[i].later);
        reclaim(s, m, &part, 1);
        ck_assert_uint_eq(s->used[SHARE_OCTETS], cases[i].later ? cases[i].size : 0);
        ck_assert(foreign_settle(10000));
        reclaim_service();
        ck_assert_uint_eq(s->used[SHARE_OCTETS], 0);
        ck_assert(!reclaim_busy());
        ck_assert_uint_eq(memory_count(), 0);
    }
    share_leave(s);
}
END_TEST

static void put(const char *dir, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *f = fopen(path, "we");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

/* SEC-22: the smallest limit of the daemon's control groups counts, in either version. */
START_TEST(memory_limit_of_groups)
{
    static const struct {
        const char *cgroup, *of_c, *of_b, *old;
        uint64_t want;
    } cases[] = {
        {"0::/b/c\n", "4096\n", "max\n", "1\n", 4096},
        {"0::/b/c\n", "max\n", "8192\n", "1\n", 8192},
        {"0::/b/c\n", "max\n", "max\n", "1\n", UINT64_MAX},
        {"0::/elsewhere\n", "1\n", "1\n", "1\n", UINT64_MAX},
        {"5:cpu:/b/c\n4:x,memory:/b\n0::/\n", "1\n", "1\n", "77\n", 77},
        {"4:memoryx:/b\nrubbish\n", "1\n", "1\n", "77\n", UINT64_MAX},
        {"4:memory:/b\n0::/b/c\n", "66\n", "max\n", "77\n", 66},
    };
    char root[] = "/tmp/urnic-groups-XXXXXX", proc[64], dir[3][64];
    ck_assert_ptr_nonnull(mkdtemp(root));
    snprintf(proc, sizeof(proc), "%s/self", root);
    snprintf(dir[0], sizeof(dir[0]), "%s/b", root);
    snprintf(dir[1], sizeof(dir[1]), "%s/b/c", root);
    snprintf(dir[2], sizeof(dir[2]), "%s/memory", root);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_int_eq(mkdir(dir[i], 0700), 0);
    strcat(dir[2], "/b");
    ck_assert_int_eq(mkdir(dir[2], 0700), 0);
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        put(root, "self", cases[i].cgroup);
        put(dir[0], "memory.max", cases[i].of_b);
        put(dir[1], "memory.max", cases[i].of_c);
        put(dir[2], "memory.limit_in_bytes", cases[i].old);
        uint64_t got = memlimit_of(proc, root);
        ck_assert_msg(got == cases[i].want, "case %u: %llu", i, (unsigned long long)got);
    }
    ck_assert_uint_gt(memlimit(), 1u << 20);
    char rm[128];
    snprintf(rm, sizeof(rm), "rm -r %s", root);
    ck_assert_int_eq(system(rm), 0);
}
END_TEST

/* A queue as large as a slab has one for itself, which goes with it if the client unmaps it. */
START_TEST(qslab_alone)
{
    for (unsigned unmaps = 0; unmaps < 2; unmaps++) {
        struct qslab_list l = {.unmaps = unmaps};
        struct slab_place p, q;
        uint64_t size = (4u << 20) - 128;

        ck_assert_int_eq(qslab_alloc(&l, size, &p), 0);
        ck_assert_int_eq(qslab_alloc(&l, 128, &q), 0);
        ck_assert(q.slab != p.slab); /* nothing else is put into a removable slab */
        ck_assert_int_eq(memory_seal(qslab_memory(&p)), 0);
        memset(qslab_at(&p), 0x5A, size);
        const struct queue_slab *had = p.slab;
        qslab_free(&p);
        qslab_clean(&l);
        ck_assert_uint_eq(l.octets, unmaps ? 1u << 20 : 5u << 20);
        ck_assert_int_eq(qslab_alloc(&l, size, &p), 0);
        ck_assert(unmaps || p.slab == had); /* an old client still uses it */
        ck_assert(all(qslab_at(&p), 0, size));
        qslab_fini(&l);
        ck_assert_uint_eq(l.octets, 0);
    }
    ck_assert_uint_eq(memory_count(), 0);
}
END_TEST

/* MR-12: a client's object is accessible only as far as it exists, and never written if the client
 * may not write it. */
START_TEST(memory_of_clients)
{
    static const struct {
        uint64_t off, len;
        int rc;
    } cases[] = {
        {0, 8192, 0},
        {4096, 4096, 0},
        {8192, 1, -EFAULT},
        {4096, 4097, -EFAULT},
        {4096, 8192, -EFAULT},
        {8193, UINT64_MAX, -EFAULT},
        {1, UINT64_MAX, -EFAULT},
        {UINT64_MAX, 2, -EFAULT},
        {0, 0, -EINVAL},
    };
    int fd = memfd_create("client's", MFD_CLOEXEC);
    struct memory *m;
    uint64_t word = 0;
    ck_assert_int_eq(ftruncate(fd, 8192), 0);
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int rc = memory_foreign(fd, cases[i].off, cases[i].len, true, true, &m);
        ck_assert_msg(rc == cases[i].rc, "case %u: %d", i, rc);
        if (rc == 0)
            memory_free(m);
    }
    ck_assert_int_eq(memory_foreign(fd, 0, 8192, false, true, &m), 0);
    const struct mem_piece p = {.obj = m, .off = 8, .len = 8};
    ck_assert_int_eq(memory_get(&word, &p), 0);
    ck_assert_int_eq(memory_put(&p, &word), -EFAULT);
    ck_assert_int_eq(memory_fadd(&p, 1, &word), -EFAULT);
    ck_assert_int_eq(memory_cas(&p, 0, 1, &word), -EFAULT);
    memory_free(m);
    close(fd);
}
END_TEST

/* ---- log ---- */

/* A client's text, such as an unknown name of a congestion control, makes no line of its own in the
 * log, and does nothing to the reader's terminal. */
START_TEST(log_of_what_clients_say)
{
    char line[256] = "";
    int log = memfd_create("log", MFD_CLOEXEC), before = dup(STDERR_FILENO);
    ck_assert_int_eq(dup2(log, STDERR_FILENO), STDERR_FILENO);
    log_warn("cc", "%s: no such", "a\nerror daemon: \x1b[2J\x7f\xc3\xa4\xc2\x9b\t");
    dup2(before, STDERR_FILENO);
    ck_assert_int_gt(pread(log, line, sizeof(line) - 1, 0), 0);
    ck_assert_str_eq(line + sizeof("2026-01-31T23:59:59.999Z"),
                     "warn cc: a?error daemon: ?[2J?\xc3\xa4???: no such\n");
    ck_assert_int_eq(line[10], 'T');
    ck_assert_int_eq(line[23], 'Z');
    close(log);
    close(before);
}
END_TEST

/* The next message to syslog; it has a level and a time as syslog has them, and our number. */
static const char *syslog_said(int sock, const char *level)
{
    static char line[2048];
    char from[64];
    ssize_t n = recv(sock, line, sizeof(line) - 1, MSG_DONTWAIT);
    ck_assert_int_gt(n, 0);
    line[n] = '\0';
    ck_assert_msg(strncmp(line, level, strlen(level)) == 0, "%s", line);
    snprintf(from, sizeof(from), " urnicd[%d]: ", (int)getpid());
    const char *text = strstr(line, from);
    ck_assert_msg(text != NULL, "%s", line);
    ck_assert_int_eq(text - line, (long)(strlen(level) + strlen("Jan 31 23:59:59")));
    return text + strlen(from);
}

static int syslog_listen(const char *path)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
    unlink(path);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    return fd;
}

/* Lines to syslog; its end and its return; and a syslog that does not read blocks no thread. */
START_TEST(log_goes_to_syslog)
{
    char dir[] = "/tmp/test_daemon_parts.XXXXXX", path[64];
    unsigned sent = 0;
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/log", dir);
    ck_assert_int_eq(log_to_syslog(path), -ENOENT);
    log_warn("a", "one");
    int sock = syslog_listen(path);
    log_error("a", "two");
    ck_assert_str_eq(syslog_said(sock, "<28>"), "warn log: 1 lines lost");
    ck_assert_str_eq(syslog_said(sock, "<27>"), "error a: two");
    close(sock);
    log_info("a", "lost");
    sock = syslog_listen(path);
    log_info("a", "three");
    ck_assert_str_eq(syslog_said(sock, "<28>"), "warn log: 1 lines lost");
    ck_assert_str_eq(syslog_said(sock, "<30>"), "info a: three");
    static struct log_site site[200]; /* many sites, so that no budget ends it */
    for (; sent < 200; sent++)
        log_write(&site[sent], LOG_INFO, "a", "%u", sent);
    unsigned read = 0;
    while (recv(sock, path, 1, MSG_DONTWAIT | MSG_TRUNC) > 0)
        read++;
    ck_assert_uint_gt(read, 0);
    ck_assert_uint_lt(read, sent);
    log_info("a", "and on");
    syslog_said(sock, "<28>");
    ck_assert_str_eq(syslog_said(sock, "<30>"), "info a: and on");
    close(sock);
    snprintf(path, sizeof(path), "%s/log", dir);
    unlink(path);
    rmdir(dir);
}
END_TEST

/* ---- captures ---- */

#define LAPS_OCTETS    (40u << 20) /* octets of frames: the ring of a capture has room for 16 MiB */
#define LAPS_UNWRITTEN (4u << 20)  /* octets that may wait for the file, so that none is lost */
#define LAPS_BLOCK     44u         /* octets of the file for a frame, about */
#define LAPS_SMALL     200000u     /* frames: more than a lap, up to its very end */

/* The packets in a pcapng file, each of which begins with its number. */
static unsigned packets_in_order(const uint8_t *file, size_t size)
{
    unsigned n = 0;
    for (size_t at = 0; at < size;) {
        uint32_t block[2], number;
        memcpy(block, file + at, sizeof(block));
        ck_assert_uint_ge(block[1], 12);
        ck_assert_uint_le(block[1], size - at);
        if (block[0] == 6) {
            memcpy(&number, file + at + 28, sizeof(number));
            ck_assert_uint_eq(number, n);
            n++;
        }
        at += block[1];
    }
    return n;
}

/* Frames go round the ring of a capture more than once, small ones to its very end, larger ones to
 * somewhere before it; all of them are in the file, and nothing of an earlier lap. */
START_TEST(capture_goes_round)
{
    static uint8_t data[9000];
    struct io_port io = {0};
    struct config_device conf = {.port = "test"};
    struct team team = {.n = 1};
    struct device d = {.conf = &conf, .name = "urn0", .io = &io, .team = &team};
    struct capture_result res;
    struct capture *c;
    struct stat st;
    int fd = memfd_create("capture", MFD_CLOEXEC), mine = dup(fd);
    int news = eventfd(0, EFD_CLOEXEC);
    uint64_t told;
    size_t put = 0, file_put = 0;
    uint32_t n = 0;
    memset(data, 0x55, sizeof(data)); /* the rest of an earlier lap is no length */
    ck_assert_int_ge(news, 0);
    ck_assert_int_eq(capture_open(&d, &(struct capture_params){.fd = fd, .news = news}, &c), 0);
    capture_attach(c, &d);
    ck_assert_int_eq(read(news, &told, sizeof(told)), (ssize_t)sizeof(told));
    ck_assert(capture_has_started(c));
    for (; put < LAPS_OCTETS; n++) {
        const uint32_t len = n < LAPS_SMALL ? 64 : 64 + n * 7919 % 8900;
        const struct engine_frame f = {.data = data, .len = len};
        memcpy(data, &n, sizeof(n));
        capture_rx(d.captures, &f, 1, n);
        put += f.len;
        file_put += f.len + LAPS_BLOCK;
        while (fstat(mine, &st) == 0 && (size_t)st.st_size + LAPS_UNWRITTEN < file_put)
            sched_yield();
    }
    capture_detach(c, &d);
    ck_assert_ptr_null(d.captures);
    ck_assert(!capture_is_done(c));
    capture_stop(c);
    ck_assert_int_eq(read(news, &told, sizeof(told)), (ssize_t)sizeof(told));
    ck_assert(capture_is_done(c));
    ck_assert_int_eq(capture_close(c, &res), 0);
    ck_assert_int_eq(close(news), 0);
    ck_assert_uint_eq(res.packets, n);
    ck_assert_uint_eq(res.octets, put);
    ck_assert_uint_eq(res.lost, 0);
    ck_assert_int_eq(fstat(mine, &st), 0);
    uint8_t *file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, mine, 0);
    ck_assert_ptr_ne(file, MAP_FAILED);
    ck_assert_uint_eq(packets_in_order(file, (size_t)st.st_size), n);
    munmap(file, (size_t)st.st_size);
    close(mine);
}
END_TEST

/* ---- events that wake a worker ---- */

#define WATCH_NS 1000000u

/* Wakes up and handles the events. Returns their number; *drained: the ones that were not ports. */
static int wake(struct watch *w, unsigned *drained)
{
    struct epoll_event ev[WATCH_EVENTS];
    int n = watch_sleep(w, ev, WATCH_NS);
    ck_assert_int_ge(n, 0);
    *drained = watch_heard(w, ev, n);
    return n;
}

/* A port whose other end is gone, and a client's socket at its end of file, wake the worker once,
 * not for ever. */
START_TEST(watch_of_what_ends)
{
    const bool drain[] = {false, true};
    unsigned drained;
    struct watch w;
    ck_assert_int_eq(watch_init(&w), 0);
    for (unsigned i = 0; i < 2; i++) {
        int end[2];
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, end), 0);
        ck_assert_int_eq(watch_add(&w, end[0], drain[i]), 0);
        ck_assert_int_eq(wake(&w, &drained), 0);
        close(end[1]);
        ck_assert_int_eq(wake(&w, &drained), 1);
        ck_assert_uint_eq(drained, i);
        ck_assert_int_eq(wake(&w, &drained), 0);
        close(end[0]);
    }
    watch_fini(&w);
}
END_TEST

/* A watched descriptor stays watched, also for events fetched before. */
/* Sleep, handle the events, and report the result of the round after it. */
static int judged(struct watch *w, bool work, uint64_t now)
{
    struct epoll_event ev[WATCH_EVENTS];
    ck_assert_int_ge(watch_sleep(w, ev, WATCH_NS), 0);
    watch_heard(w, ev, 1);
    return watch_judge(w, work, now);
}

/* A port's descriptor that stays readable without work is taken out; one that has work, or is read
 * empty by the port, or wakes seldom, stays. */
START_TEST(watch_in_vain)
{
    struct watch w;
    int end[2];
    char octet;
    ck_assert_int_eq(watch_init(&w), 0);
    ck_assert_int_eq(pipe(end), 0);
    ck_assert_int_eq(watch_add(&w, end[0], false), 0);
    ck_assert_int_eq(write(end[1], "x", 1), 1);
    for (unsigned i = 0; i < 3 * WATCH_VAIN; i++)
        ck_assert_int_eq(judged(&w, i % (WATCH_VAIN - 1) == 0, 1000), -1);
    ck_assert_int_eq(judged(&w, true, 1000), -1);
    for (unsigned i = 0; i < 3 * WATCH_VAIN; i++)
        ck_assert_int_eq(judged(&w, false, i * (WATCH_VAIN_NS / 500)), -1);
    ck_assert_int_eq(judged(&w, true, 1000), -1);
    for (unsigned i = 0; i < 2 * WATCH_VAIN; i++) { /* the last look finds it empty */
        bool last = i % WATCH_VAIN == WATCH_VAIN - 1;
        struct epoll_event ev[WATCH_EVENTS];
        int n = watch_sleep(&w, ev, WATCH_NS);
        watch_heard(&w, ev, n);
        if (last)
            ck_assert_int_eq(read(end[0], &octet, 1), 1);
        ck_assert_int_eq(watch_judge(&w, false, 1000), -1);
        if (last)
            ck_assert_int_eq(write(end[1], "x", 1), 1);
    }
    for (unsigned i = 1; i < WATCH_VAIN; i++)
        ck_assert_int_eq(judged(&w, false, 1000), -1);
    ck_assert_int_eq(judged(&w, false, 1000), end[0]);
    struct epoll_event ev[WATCH_EVENTS];
    ck_assert_int_eq(watch_sleep(&w, ev, 1000), 0); /* the descriptor was taken out */
    watch_fini(&w);
    close(end[0]);
    close(end[1]);
}
END_TEST

START_TEST(watch_twice)
{
    struct epoll_event ev[WATCH_EVENTS];
    unsigned drained;
    struct watch w;
    int end[2];
    ck_assert_int_eq(watch_init(&w), 0);
    ck_assert_int_eq(pipe(end), 0);
    ck_assert_int_eq(watch_add(&w, end[0], true), 0);
    ck_assert_int_eq(write(end[1], "k", 1), 1);
    ck_assert_int_eq(watch_sleep(&w, ev, WATCH_NS), 1);
    ck_assert_int_eq(watch_add(&w, end[0], true), -EEXIST);
    ck_assert_uint_eq(watch_heard(&w, ev, 1), 1);
    ck_assert_int_eq(wake(&w, &drained), 0);
    ck_assert_int_eq(write(end[1], "k", 1), 1);
    ck_assert_int_eq(wake(&w, &drained), 1);
    ck_assert_uint_eq(drained, 1);
    /* An event was fetched, and its descriptor removed before the handling: the next descriptor
     * with this number isn't touched. */
    ck_assert_int_eq(write(end[1], "k", 1), 1);
    ck_assert_int_eq(watch_sleep(&w, ev, WATCH_NS), 1);
    watch_del(&w, end[0]);
    ck_assert_int_eq(watch_add(&w, end[0], true), 0);
    ck_assert_uint_eq(watch_heard(&w, ev, 1), 0);
    ck_assert_int_eq(wake(&w, &drained), 1);
    ck_assert_uint_eq(drained, 1);
    watch_fini(&w);
    close(end[0]);
    close(end[1]);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("daemon_parts");
    TCase *t = tcase_create("parts");

    tcase_set_timeout(t, 30);
    tcase_add_test(t, gid_places);
    tcase_add_test(t, gid_places_of_the_kernels_addresses);
    tcase_add_test(t, handle_reuse);
    tcase_add_test(t, handle_last_one);
    tcase_add_test(t, handle_quota);
    tcase_add_test(t, reset_keeps_doorbell);
    tcase_add_test(t, numbers_come_back);
    tcase_add_test(t, handle_quota_of_all);
    tcase_add_test(t, sigbus_while_others_come_and_go);
    tcase_add_test(t, qslab_places);
    tcase_add_test(t, qslab_quota);
    tcase_add_test(t, qslab_cleared_elsewhere);
    tcase_add_test(t, qslab_descriptor_once);
    tcase_add_test(t, qslab_alone);
    tcase_add_test(t, memory_limit_of_groups);
    tcase_add_test(t, memory_sealed);
    tcase_add_test(t, memory_unsealable);
    tcase_add_test(t, memory_of_others);
    tcase_add_test(t, memory_freed_in_pieces);
    tcase_add_test(t, memory_freed_elsewhere);
    tcase_add_test(t, memory_survives_truncation);
    tcase_add_test(t, memory_bounds);
    tcase_add_test(t, memory_of_clients);
    tcase_add_test(t, log_of_what_clients_say);
    tcase_add_test(t, log_goes_to_syslog);
    tcase_add_test(t, capture_goes_round);
    tcase_add_test(t, watch_of_what_ends);
    tcase_add_test(t, watch_twice);
    tcase_add_test(t, watch_in_vain);
    suite_add_tcase(s, t);
    return unit_run(s);
}
