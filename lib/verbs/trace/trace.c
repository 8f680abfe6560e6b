/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The page, the socket, and the format of a line. Raw system calls, because libc's functions are
 * interposed.
 */
#include "trace.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "file_limit.h"
#include "own_fd.h"

static struct uv_trace_page off;
struct uv_trace_page *_Atomic uv_trace_page = &off;

/* ---- the page ---- */

static void make_page(void)
{
    const char *path = getenv(UV_TRACE_ENV);
    if (!uv_file_fits(sizeof(struct uv_trace_page)))
        return;
    int fd = memfd_create(UV_TRACE_PAGE, MFD_CLOEXEC);
    if (fd < 0)
        return;
    int own = (int)syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, UV_OWN_FROM);
    struct uv_trace_page *page = MAP_FAILED;
    if (own >= 0 && syscall(SYS_ftruncate, own, sizeof(*page)) == 0)
        page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, own, 0);
    syscall(SYS_close, fd);
    if (page == MAP_FAILED) {
        if (own >= 0)
            syscall(SYS_close, own);
        return;
    }
    page->magic = UV_TRACE_MAGIC;
    atomic_store(&uv_trace_page, page);
    if (path != NULL && strlen(path) < sizeof(page->path)) {
        memcpy(page->path, path, strlen(path) + 1);
        atomic_store(&page->on, 1);
    }
}

void uv_trace_begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int saved = errno;
    pthread_once(&once, make_page);
    errno = saved;
}

/* ---- sending ---- */

/* Each line goes over its own socket. That costs little beside the line, and needs no state that
 * children or threads would share. Tracing ends when the reader ends. */
static void send_line(const char *line, size_t len)
{
    struct uv_trace_page *page = atomic_load(&uv_trace_page);
    uint32_t on = atomic_load(&page->on);
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const struct timeval patience = {.tv_sec = 1};
    int fd = (int)syscall(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    memcpy(to.sun_path, page->path, sizeof(to.sun_path) - 1);
    syscall(SYS_setsockopt, fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    long n = syscall(SYS_sendto, fd, line, len, MSG_NOSIGNAL, &to, sizeof(to));
    if (n < 0 && errno != EAGAIN && errno != EINTR && errno != ENOBUFS)
        atomic_compare_exchange_strong(&page->on, &on, 0);
    syscall(SYS_close, fd);
}

/* ---- lines ---- */

static size_t put(char *to, size_t at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static size_t put_args(char *to, size_t at, const char *format, va_list args)
{
    int n = vsnprintf(to + at, UV_TRACE_LINE - at, format, args);
    size_t room = UV_TRACE_LINE - 1 - at;
    return n < 0 ? at : at + ((size_t)n < room ? (size_t)n : room);
}

static size_t put(char *to, size_t at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    at = put_args(to, at, format, args);
    va_end(args);
    return at;
}

static const char *error_name(int err)
{
    const char *name = strerrorname_np(err);
    return name != NULL ? name : "an unknown error";
}

static size_t put_result(char *to, size_t at, enum uv_trace_result kind, int64_t result, int err)
{
    switch (kind) {
    case UV_STATUS:
        return result == 0 ? put(to, at, " = 0") : put(to, at, " = %s", error_name((int)result));
    case UV_MINUS:
        return result >= 0 ? put(to, at, " = %lld", (long long)result)
                           : put(to, at, " = -1 %s", error_name(err));
    case UV_POINTER:
        return result != 0 ? put(to, at, " = 0x%llx", (unsigned long long)result)
                           : put(to, at, " = NULL %s", error_name(err));
    case UV_NUMBER:
        return put(to, at, " = %lld", (long long)result);
    default:
        return at;
    }
}

void uv_trace(const char *call, enum uv_trace_result kind, int64_t result, const char *format, ...)
{
    char line[UV_TRACE_LINE];
    int saved = errno;
    struct timespec t;
    struct tm tm;
    va_list args;

    syscall(SYS_clock_gettime, CLOCK_REALTIME, &t);
    localtime_r(&t.tv_sec, &tm);
    size_t at = put(line, 0, "%02d:%02d:%02d.%06ld %d/%ld %s(", tm.tm_hour, tm.tm_min, tm.tm_sec,
                    t.tv_nsec / 1000, (int)getpid(), syscall(SYS_gettid), call);
    va_start(args, format);
    at = put_args(line, at, format, args);
    va_end(args);
    at = put(line, at, ")");
    at = put_result(line, at, kind, result, saved);
    send_line(line, at);
    errno = saved;
}
