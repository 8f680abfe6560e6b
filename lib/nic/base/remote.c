/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

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
    /* It still runs: so the number was its own when the file was opened. */
    if (rc == 0 && poll(&(struct pollfd){.fd = pidfd, .events = POLLIN}, 1, 0) != 0)
        rc = -ESRCH;
    if (rc < 0) {
        if (r->space >= 0)
            close(r->space);
        free(r);
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
    close(r->space);
    free(r);
}

/* Is the address space still there? The read fails at address 0, or finds something, if it is, and
 * reads nothing if not. It touches no page that could make it wait. */
static bool remote_lives(const struct remote *r)
{
    uint8_t octet;

    return pread(r->space, &octet, sizeof(octet), 0) != 0;
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
 * and says how many it has moved: that move has failed, and those behind it get their turn. */
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

void remote_get(struct remote_move *m, unsigned n)
{
    remote_all(m, n, process_vm_readv);
}
