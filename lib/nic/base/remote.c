/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define REMOTE_PAGE  4096u
#define REMOTE_SMALL 256u /* octets that are copied twice rather than read alone */

typedef ssize_t (*remote_call)(pid_t pid, const struct iovec *local, unsigned long nlocal,
                               const struct iovec *far, unsigned long nfar, unsigned long flags);

int remote_open(pid_t pid, int pidfd, struct remote **out)
{
    static const _Atomic bool whole = false; /* mem.broken: nothing is mapped that could break */
    char path[32];
    if (pid <= 0 || pidfd < 0)
        return -EOPNOTSUPP;
    struct remote *r = calloc(1, sizeof(*r));
    if (!r)
        return -ENOMEM;
    snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
    r->space = open(path, O_RDONLY | O_CLOEXEC);
    int rc = r->space < 0 ? -errno : 0;
    snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)pid);
    r->sign = open(path, O_RDONLY | O_CLOEXEC); /* some kernels lack it */
    /* It still runs, so the process id was its own when the file was opened. */
    if (rc == 0 && poll(&(struct pollfd){.fd = pidfd, .events = POLLIN}, 1, 0) != 0)
        rc = -ESRCH;
    if (rc < 0) {
        remote_close(r);
        return rc == -ENOENT ? -ESRCH : rc;
    }
    r->pid = pid;
    r->mem.remote = r;
    r->mem.broken = &whole;
    r->mem.writable = true;
    *out = r;
    return 0;
}

void remote_close(struct remote *r)
{
    if (!r)
        return;
    if (r->space >= 0)
        close(r->space);
    if (r->sign >= 0)
        close(r->sign);
    free(r);
}

/* Is the address space still there? The page map refuses to read a single octet if it is, and reads
 * nothing if not: a quarter of the time that the memory takes, which fails at address 0, or finds
 * something. Neither touches a page that could make it wait. */
static bool remote_lives(const struct remote *r)
{
    uint8_t octet;
    return pread(r->sign >= 0 ? r->sign : r->space, &octet, sizeof(octet), 0) != 0;
}

/* A few octets that are read alone, as each message of a ping-pong is: one system call is shorter
 * than two. The kernel also reads memory that the process itself may not read, as devices do. */
static bool remote_peek(struct remote_move *m)
{
    if (m->len == 0 || m->len > REMOTE_PEEK)
        return false;
    ssize_t n = pread(m->remote->space, m->local, m->len, (off_t)m->addr);
    m->status = n == (ssize_t)m->len ? 0 : n == 0 ? -ESRCH : -EFAULT;
    return true;
}

/* The ranges in the process: moves that follow each other there are one, so that the kernel looks
 * up their pages together. Returns how many. */
static unsigned remote_ranges(const struct remote_move *m, unsigned n, struct iovec *local,
                              struct iovec *far)
{
    unsigned k = 0;
    uint64_t end = 0;
    for (unsigned i = 0; i < n; i++) {
        local[i] = (struct iovec){m[i].local, m[i].len};
        if (k > 0 && m[i].addr == end)
            far[k - 1].iov_len += m[i].len;
        else
            far[k++] = (struct iovec){(void *)(uintptr_t)m[i].addr, m[i].len};
        end = m[i].addr + m[i].len;
    }
    return k;
}

/* Up to REMOTE_BATCH moves of one process. The kernel stops at the first octet that it can't reach,
 * and returns how many it has moved: that move has failed, and later ones get their turn. */
static void remote_run(struct remote_move *m, unsigned n, remote_call call)
{
    struct iovec local[REMOTE_BATCH], far[REMOTE_BATCH];
    unsigned i = 0;
    bool lives = remote_lives(m->remote);
    while (lives && i < n) {
        unsigned k = remote_ranges(m + i, n - i, local, far);
        ssize_t moved = call(m->remote->pid, local, n - i, far, k, 0);
        lives = moved >= 0 || errno == EFAULT;
        uint64_t left = moved > 0 ? (uint64_t)moved : 0;
        for (; lives && i < n && left >= m[i].len; i++) {
            left -= m[i].len;
            m[i].status = 0;
        }
        if (lives && i < n)
            m[i++].status = -EFAULT;
    }
    for (; i < n; i++) /* the address space is gone, and the program with it */
        m[i].status = -ESRCH;
}

static void remote_all(struct remote_move *m, unsigned n, remote_call call)
{
    for (unsigned i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && end - i < REMOTE_BATCH && m[end].remote == m[i].remote;)
            end++;
        remote_run(m + i, end - i, call);
    }
}

void remote_put(struct remote_move *m, unsigned n)
{
    remote_all(m, n, process_vm_writev);
}

/* Small reads from one page, as of many small messages, become one read, with the octets between
 * them: the kernel takes a hundred times as long to find a page as to copy from it. */
struct remote_reads {
    struct remote_move made[REMOTE_BATCH]; /* the merged moves */
    uint8_t of[REMOTE_BATCH];              /* the merged move of each read */
    uint8_t parts[REMOTE_BATCH];
    uint8_t page[REMOTE_BATCH / 2][REMOTE_PAGE];
};

static bool remote_in_page(const struct remote_move *m, uint64_t page)
{
    return m->len > 0 && m->addr / REMOTE_PAGE == page &&
           (m->addr + m->len - 1) / REMOTE_PAGE == page;
}

static bool remote_joins(const struct remote_move *all, unsigned parts, const struct remote_move *m)
{
    return all->remote == m->remote && m->len <= REMOTE_SMALL &&
           (parts > 1 || all->len <= REMOTE_SMALL) && remote_in_page(m, m->addr / REMOTE_PAGE) &&
           remote_in_page(all, m->addr / REMOTE_PAGE);
}

/* Up to REMOTE_BATCH reads -> how many are made. */
static unsigned remote_join(struct remote_reads *r, const struct remote_move *m, unsigned n)
{
    unsigned k = 0, pages = 0;
    for (unsigned i = 0; i < n; i++) {
        struct remote_move *last = k > 0 ? &r->made[k - 1] : NULL;
        if (last && remote_joins(last, r->parts[k - 1], &m[i])) {
            uint64_t end = last->addr + last->len;
            if (m[i].addr + m[i].len > end)
                end = m[i].addr + m[i].len;
            if (m[i].addr < last->addr)
                last->addr = m[i].addr;
            last->len = (uint32_t)(end - last->addr);
            if (r->parts[k - 1]++ == 1)
                last->local = r->page[pages++];
        } else {
            r->made[k] = m[i];
            r->parts[k++] = 1;
        }
        r->of[i] = (uint8_t)(k - 1);
    }
    return k;
}

static void remote_part(const struct remote_reads *r, struct remote_move *m, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        const struct remote_move *all = &r->made[r->of[i]];
        m[i].status = all->status;
        if (r->parts[r->of[i]] > 1 && all->status == 0)
            memcpy(m[i].local, (const uint8_t *)all->local + (m[i].addr - all->addr), m[i].len);
    }
}

void remote_get(struct remote_move *m, unsigned n)
{
    struct remote_reads r;
    for (unsigned i = 0; i < n; i += REMOTE_BATCH) {
        unsigned some = n - i < REMOTE_BATCH ? n - i : REMOTE_BATCH;
        unsigned k = remote_join(&r, m + i, some);
        if (k > 1 || !remote_peek(&r.made[0]))
            remote_all(r.made, k, process_vm_readv);
        remote_part(&r, m + i, some);
    }
}
