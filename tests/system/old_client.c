/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See old_client.h. Frozen: when a test with this client fails, the daemon is to be mended.
 */
#include "old_client.h"

#include <check.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS 10000

uint32_t old_get32(const struct old_msg *m, size_t off)
{
    uint32_t v;
    memcpy(&v, m->b + off, sizeof(v));
    return v;
}

uint64_t old_get64(const struct old_msg *m, size_t off)
{
    uint64_t v;
    memcpy(&v, m->b + off, sizeof(v));
    return v;
}

void old_put32(struct old_msg *m, size_t off, uint32_t v)
{
    memcpy(m->b + off, &v, sizeof(v));
}

void old_put64(struct old_msg *m, size_t off, uint64_t v)
{
    memcpy(m->b + off, &v, sizeof(v));
}

/* ---- messages ---- */

static void receive(int sock, struct old_msg *m)
{
    union {
        struct cmsghdr align;
        char buf[CMSG_SPACE(4 * sizeof(int))];
    } control;
    struct iovec iov = {m->b, sizeof(m->b)};
    struct msghdr mh = {.msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = control.buf,
                        .msg_controllen = sizeof(control.buf)};
    struct pollfd p = {.fd = sock, .events = POLLIN};
    ck_assert_msg(poll(&p, 1, WAIT_MS) == 1, "the daemon doesn't answer");
    ssize_t n = recvmsg(sock, &mh, MSG_CMSG_CLOEXEC);
    ck_assert_int_gt(n, 0);
    ck_assert_int_eq(mh.msg_flags & (MSG_TRUNC | MSG_CTRUNC), 0);
    m->len = (size_t)n;
    m->nfd = 0;
    struct cmsghdr *cm = CMSG_FIRSTHDR(&mh);
    if (cm) {
        m->nfd = (unsigned)((cm->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(m->fd, CMSG_DATA(cm), m->nfd * sizeof(int));
    }
}

void old_call(struct old_end *e, enum old_type type, struct old_msg *m, size_t len, size_t least)
{
    uint32_t id = ++e->next_id;
    old_put32(m, 0, (uint32_t)type); /* type, and flags 0 */
    old_put32(m, 4, id);
    old_put64(m, 8, 0);
    ck_assert_int_eq(send(e->sock, m->b, len, MSG_NOSIGNAL), (ssize_t)len);
    receive(e->sock, m);
    ck_assert_uint_ge(m->len, 16);
    ck_assert_uint_eq(old_get32(m, 0), (uint32_t)type | 1u << 16); /* flags: a reply */
    ck_assert_uint_eq(old_get32(m, 4), id);
    ck_assert_msg((int32_t)old_get32(m, 8) == 0, "request %d: %s", (int)type,
                  strerror(-(int32_t)old_get32(m, 8)));
    ck_assert_msg(m->len >= least, "request %d: an answer of %zu octets", (int)type, m->len);
}

void old_handle(struct old_end *e, enum old_type type, uint32_t handle)
{
    struct old_msg m = {0};
    old_put32(&m, 16, handle);
    old_call(e, type, &m, 24, 16);
}

uint32_t old_event(struct old_end *e, enum old_event want, struct old_msg *m)
{
    receive(e->cm_sock, m);
    ck_assert_uint_eq(m->len, 392); /* clients of 1.0 skip events of any other length */
    ck_assert_msg(old_get32(m, 0) == (uint32_t)want, "event %u with status %d, not %d",
                  old_get32(m, 0), (int32_t)old_get32(m, 4), (int)want);
    ck_assert_int_eq((int32_t)old_get32(m, 4), 0);
    return old_get32(m, 16);
}

/* ---- set up ---- */

static uint8_t *map(int fd, size_t size, int prot)
{
    void *p = mmap(NULL, size, prot, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(p, MAP_FAILED);
    close(fd);
    return p;
}

static void hello(struct old_end *e, const char *path)
{
    static const uint32_t sizes[8] = {16, 64, 64, 192, 64, 64, 16, 0};
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    struct old_msg m = {0};
    e->sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    memcpy(sa.sun_path, path, strlen(path) + 1);
    ck_assert_int_eq(connect(e->sock, (const struct sockaddr *)&sa, sizeof(sa)), 0);
    old_put32(&m, 16, 0x43494e52u);
    old_put32(&m, 20, 1); /* version 1.0 */
    old_put64(&m, 24, 0x13);
    memcpy(m.b + 32, sizes, sizeof(sizes));
    old_call(e, OLD_HELLO, &m, 64, 64);
    ck_assert_uint_eq(m.len, 64);
    ck_assert_uint_eq(old_get32(&m, 16), 0x43494e52u);
    ck_assert_uint_eq(old_get32(&m, 20) & 0xFFFF, 1);
    ck_assert_uint_eq(old_get64(&m, 24) & 1, 1);
    ck_assert_int_eq(memcmp(m.b + 32, sizes, sizeof(sizes)), 0);
}

static void context(struct old_end *e, const char *device)
{
    struct old_msg m = {0};
    memcpy(m.b + 16, device, strlen(device) + 1);
    old_put32(&m, 48, UINT32_MAX); /* any worker */
    old_call(e, OLD_CTX_OPEN, &m, 56, 48);
    ck_assert_uint_eq(m.nfd, 4);
    e->doorbell = map(m.fd[0], old_get64(&m, 16), PROT_READ | PROT_WRITE);
    e->worker = map(m.fd[1], old_get64(&m, 24), PROT_READ);
    e->doorbells = old_get32(&m, 32);
    e->kick = m.fd[2];
    e->async = m.fd[3];
}

static void memory(struct old_end *e)
{
    struct old_msg m = {0};
    old_call(e, OLD_PD_ALLOC, &m, 16, 24);
    e->pd = old_get32(&m, 16);
    m = (struct old_msg){0};
    old_put64(&m, 16, 4096);
    old_call(e, OLD_SLAB_ALLOC, &m, 32, 32);
    ck_assert_uint_eq(m.nfd, 1);
    e->data_slab = old_get32(&m, 16);
    e->data_len = old_get64(&m, 24);
    e->data = map(m.fd[0], e->data_len, PROT_READ | PROT_WRITE);
    m = (struct old_msg){0};
    old_put32(&m, 16, e->pd);
    old_put32(&m, 20, 1); /* of a slab */
    old_put32(&m, 24, e->data_slab);
    old_put32(&m, 28, 1 | 2 | 4 | 8);
    old_put64(&m, 40, e->data_len);
    old_put64(&m, 48, (uintptr_t)e->data);
    old_call(e, OLD_MR_REG, &m, 56, 28);
    e->mr = old_get32(&m, 16);
    e->lkey = old_get32(&m, 20);
    e->rkey = old_get32(&m, 24);
}

/* Where a queue lies (32 octets at `off`); its slab may come with it. */
static uint8_t *where(struct old_end *e, const struct old_msg *m, size_t off, unsigned *fds)
{
    uint64_t at = old_get64(m, off), size = old_get64(m, off + 8);
    uint32_t slab = old_get32(m, off + 16);
    ck_assert_uint_lt(slab, 4);
    if (size > 0)
        e->slab[slab] = map(m->fd[(*fds)++], size, PROT_READ | PROT_WRITE);
    ck_assert_ptr_nonnull(e->slab[slab]);
    return e->slab[slab] + at;
}

static void queues(struct old_end *e)
{
    struct old_msg m = {0};
    unsigned fds = 0;
    old_put32(&m, 16, 16); /* entries */
    old_put32(&m, 24, 7);  /* reference */
    old_call(e, OLD_CQ_CREATE, &m, 32, 56);
    e->cq = old_get32(&m, 16);
    e->cq_entries = old_get32(&m, 24 + 20);
    e->cq_ring = where(e, &m, 24, &fds);
    m = (struct old_msg){0};
    old_put32(&m, 16, e->pd);
    old_put32(&m, 20, 2); /* RC */
    old_put32(&m, 24, e->cq);
    old_put32(&m, 28, e->cq);
    for (size_t off = 36; off <= 48; off += 4)
        old_put32(&m, off, off < 44 ? 4 : 1); /* 4 requests each way, of 1 piece */
    old_put32(&m, 52, 32);                    /* inline */
    old_put32(&m, 60, 9);                     /* reference */
    old_call(e, OLD_QP_CREATE, &m, 80, 112);
    fds = 0;
    e->qp = old_get32(&m, 16);
    e->qpn = old_get32(&m, 20);
    e->sq_units = old_get32(&m, 48 + 20);
    e->sq_doorbell = old_get32(&m, 48 + 28);
    e->sq = where(e, &m, 48, &fds);
    where(e, &m, 80, &fds);
}

void old_open(struct old_end *e, const char *socket_path, const char *device)
{
    struct old_msg m = {0};
    *e = (struct old_end){0};
    hello(e, socket_path);
    context(e, device);
    memory(e);
    queues(e);
    old_call(e, OLD_CM_CHANNEL_CREATE, &m, 16, 24);
    ck_assert_uint_eq(m.nfd, 1);
    e->cm_channel = old_get32(&m, 16);
    e->cm_sock = m.fd[0];
}

void old_close(struct old_end *e)
{
    old_handle(e, OLD_QP_DESTROY, e->qp);
    old_handle(e, OLD_CQ_DESTROY, e->cq);
    old_handle(e, OLD_MR_DEREG, e->mr);
    old_handle(e, OLD_SLAB_FREE, e->data_slab);
    old_handle(e, OLD_PD_FREE, e->pd);
    old_handle(e, OLD_CM_CHANNEL_DESTROY, e->cm_channel);
    munmap(e->data, e->data_len);
    close(e->cm_sock);
    close(e->kick);
    close(e->async);
    close(e->sock);
}

/* ---- the data path ---- */

static uint32_t load(const void *at)
{
    return __atomic_load_n((const uint32_t *)at, __ATOMIC_SEQ_CST);
}

static void ring(struct old_end *e)
{
    uint32_t zero = 0;
    /* prod, cons and pending have a cache line each; a doorbell slot holds a number + 1 */
    __atomic_store_n((uint32_t *)(void *)e->sq, e->sq_prod, __ATOMIC_SEQ_CST);
    if (!__atomic_compare_exchange_n((uint32_t *)(void *)(e->sq + 128), &zero, 1, false,
                                     __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return;
    uint32_t at = __atomic_fetch_add((uint32_t *)(void *)e->doorbell, 1, __ATOMIC_SEQ_CST);
    uint8_t *slot = e->doorbell + 64 + (size_t)(at & (e->doorbells - 1)) * 4;
    __atomic_store_n((uint32_t *)(void *)slot, e->sq_doorbell + 1, __ATOMIC_SEQ_CST);
    if (load(e->worker) != 0)
        ck_assert_int_eq(send(e->kick, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL), 1);
}

static void completion(struct old_end *e, uint64_t cookie)
{
    const uint8_t *cqe = e->cq_ring + 192 + (size_t)(e->cq_index & (e->cq_entries - 1)) * 64;
    uint32_t phase = (e->cq_index & e->cq_entries) == 0 ? 1 : 2;
    struct timespec nap = {.tv_nsec = 100000};
    uint64_t got;
    uint32_t ref;
    for (unsigned i = 0; load(cqe + 60) != phase; i++) {
        ck_assert_msg(i < 10u * WAIT_MS, "no completion");
        nanosleep(&nap, NULL);
    }
    memcpy(&got, cqe, 8);
    memcpy(&ref, cqe + 8, 4);
    ck_assert_uint_eq(got, cookie);
    ck_assert_uint_eq(ref, 9);
    ck_assert_uint_eq(cqe[32], 0); /* status */
    ck_assert_uint_eq(cqe[33], 1); /* RDMA WRITE */
    e->cq_index++;
    __atomic_store_n((uint32_t *)(void *)e->cq_ring, e->cq_index, __ATOMIC_SEQ_CST);
}

void old_write(struct old_end *e, uint64_t remote, uint32_t rkey, const void *data, uint16_t len)
{
    uint8_t *unit = e->sq + 192 + (size_t)(e->sq_prod & (e->sq_units - 1)) * 64;
    uint64_t cookie = 0x1122334455667788u + e->sq_prod;
    memset(unit, 0, 64);
    unit[0] = 0;     /* RDMA WRITE */
    unit[1] = 2 | 8; /* signalled, inline */
    unit[2] = 1;     /* unit */
    memcpy(unit + 4, &len, 2);
    memcpy(unit + 12, &rkey, 4);
    memcpy(unit + 16, &cookie, 8);
    memcpy(unit + 24, &remote, 8);
    memcpy(unit + 32, data, len);
    e->sq_prod++;
    ring(e);
    completion(e, cookie);
}
