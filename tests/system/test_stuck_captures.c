/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Captures into files that take no data for a long time, such as a full pipe whose reader has
 * stopped, or a network file system whose server is away. The daemon's other requests are served
 * meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"
#include "daemon_rig.h"
#include "ipc.h"
#include "patience.h"
#include "unit.h"

#define SIZE (1u << 20)
#define LONG 200 /* ms */

static struct rig rig;
static struct end a, b;

static void up(void)
{
    rig_open_pair(&rig, "", &a, &b, SIZE);
    end_qp(&a, URNIC_QPT_RC);
    end_qp(&b, URNIC_QPT_RC);
    end_connect(&a, &b);
}

static void write_all(uint64_t wr_id)
{
    ck_assert_int_eq(end_post(&a, URNIC_WR_RDMA_WRITE, 0, SIZE, b.mr->iova, b.mr->rkey, wr_id), 0);
    end_expect(&a, URNIC_WC_SUCCESS, wr_id);
}

/* ---- a connection of its own ---- */

static int greeted(void)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    struct ipc_hello hello;
    int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    memcpy(sa.sun_path, rig.socket, strlen(rig.socket) + 1);
    ck_assert_int_eq(connect(s, (const struct sockaddr *)&sa, sizeof(sa)), 0);
    ipc_hello_fill(&hello, 0);
    ck_assert_int_eq(ipc_send(s, &hello, sizeof(hello), NULL, 0, 0), 0);
    ck_assert_int_gt(recv(s, &hello, sizeof(hello), 0), 0);
    return s;
}

static void ask_start(int s, int fd)
{
    const struct ipc_capture m = {.hdr.type = IPC_CAPTURE_START, .device = "urn0"};
    ck_assert_int_eq(ipc_send(s, &m, sizeof(m), &fd, 1, 0), 0);
}

/* Into this file. Returns the answer's status. */
static int start(int s, int fd, struct ipc_handle *handle)
{
    ask_start(s, fd);
    ck_assert_int_ge(recv(s, handle, sizeof(*handle), 0), (ssize_t)sizeof(handle->hdr));
    return handle->hdr.status;
}

static void ask_stop(int s, uint32_t handle)
{
    const struct ipc_handle m = {.hdr = {.type = IPC_CAPTURE_STOP, .id = 7}, .handle = handle};
    ck_assert_int_eq(ipc_send(s, &m, sizeof(m), NULL, 0, 0), 0);
}

static struct ipc_captured answer(int s)
{
    struct ipc_captured m;
    ck_assert_int_ge(recv(s, &m, sizeof(m), 0), (ssize_t)sizeof(m.hdr));
    return m;
}

static bool answered(int s, int ms)
{
    return poll(&(struct pollfd){s, POLLIN, 0}, 1, ms) == 1;
}

/* ---- a file that takes nothing ---- */

struct stuck {
    int s, fds[2];
    struct ipc_handle handle;
};

/* A pipe that was filled without a reader, and waits for room, like a file that hangs. The daemon
 * sets the pipe non-blocking by a flag that it shares with the program that passed it. */
static int stuck_try(struct stuck *k)
{
    k->s = greeted();
    ck_assert_int_eq(pipe(k->fds), 0);
    int rc = start(k->s, k->fds[1], &k->handle);
    ck_assert_int_eq(fcntl(k->fds[1], F_SETFL, O_WRONLY), 0);
    close(k->fds[1]);
    write_all(1);
    usleep(20000);
    return rc;
}

static struct stuck stuck_new(void)
{
    struct stuck k;
    ck_assert_int_eq(stuck_try(&k), 0);
    return k;
}

/* Read all octets that come. Returns their number, without waiting for the end of file. */
static size_t take(int fd, int ms)
{
    static uint8_t buf[65536];
    struct pollfd p = {fd, POLLIN, 0};
    size_t all = 0;
    ssize_t n;
    while (poll(&p, 1, ms) == 1 && (n = read(fd, buf, sizeof(buf))) > 0)
        all += (size_t)n;
    return all;
}

/* Others are served, new ones, too. */
static void others_go_on(void)
{
    write_all(2);
    ck_assert_uint_gt(rig_counter(&rig, "urn0", "tx_packets"), 0);
}

/* The client that stops such a capture has the answer when the file is complete, and may make other
 * requests until then, except for a second capture. */
START_TEST(stopped)
{
    struct ipc_handle h;
    int sink = open("/dev/null", O_WRONLY);
    up();
    struct stuck k = stuck_new();
    ask_stop(k.s, k.handle.handle);
    others_go_on();
    ck_assert(!answered(k.s, LONG));
    ask_stop(k.s, k.handle.handle);
    ck_assert_int_eq(answer(k.s).hdr.status, -EINVAL);
    ck_assert_int_eq(start(k.s, sink, &h), -EBUSY);
    others_go_on();
    size_t octets = take(k.fds[0], LONG);
    struct ipc_captured m = answer(k.s);
    ck_assert_int_eq(m.hdr.status, 0);
    ck_assert_uint_eq(m.hdr.id, 7);
    ck_assert_uint_ge(m.packets, SIZE / 4096);
    ck_assert_uint_gt(octets, SIZE);
    ck_assert_int_eq(start(k.s, sink, &h), 0);
    close(k.s);
    close(sink);
    close(k.fds[0]);
    rig_close_pair(&rig, &a, &b);
}
END_TEST

/* A client that disconnects leaves a capture that is still written to its end. */
START_TEST(left)
{
    up();
    struct stuck k = stuck_new(), told = stuck_new();
    ask_stop(told.s, told.handle.handle);
    close(k.s);
    close(told.s);
    others_go_on();
    ck_assert_uint_gt(take(k.fds[0], LONG), SIZE);
    ck_assert_int_eq(read(k.fds[0], &k, 1), 0);
    ck_assert_uint_gt(take(told.fds[0], LONG), SIZE);
    ck_assert_int_eq(read(told.fds[0], &k, 1), 0);
    others_go_on();
    rig_close_pair(&rig, &a, &b);
}
END_TEST

/* A slow reader gets all octets, also at the end, of a pipe that isn't waited for. */
START_TEST(read_slowly)
{
    struct ipc_handle h;
    int fds[2];
    up();
    int s = greeted();
    ck_assert_int_eq(pipe(fds), 0);
    ck_assert_int_eq(start(s, fds[1], &h), 0);
    close(fds[1]);
    write_all(1);
    usleep(20000);
    ask_stop(s, h.handle);
    ck_assert(!answered(s, LONG));
    ck_assert_uint_gt(take(fds[0], LONG), 256u << 10);
    struct ipc_captured m = answer(s);
    ck_assert_int_eq(m.hdr.status, 0);
    ck_assert_uint_gt(m.lost, 0);
    ck_assert_int_eq(read(fds[0], &h, 1), 0);
    close(s);
    close(fds[0]);
    rig_close_pair(&rig, &a, &b);
}
END_TEST

/* A reader that reads nothing isn't waited for, and the counts are reported. */
START_TEST(unread)
{
    struct ipc_handle h;
    int fds[2];
    up();
    int s = greeted();
    ck_assert_int_eq(pipe(fds), 0);
    ck_assert_int_eq(start(s, fds[1], &h), 0);
    write_all(1);
    ask_stop(s, h.handle);
    struct ipc_captured m = {0};
    ck_assert_int_eq(recv(s, &m, sizeof(m), 0), (ssize_t)sizeof(m));
    ck_assert_int_eq(m.hdr.status, -EAGAIN);
    ck_assert_uint_ge(m.packets, SIZE / 4096);
    ck_assert_uint_gt(m.lost, 0);
    close(s);
    close(fds[0]);
    close(fds[1]);
    rig_close_pair(&rig, &a, &b);
}
END_TEST

/* Connections that come, begin a capture that hangs, and go: their captures are bounded. */
START_TEST(many)
{
    enum { MOST = 64 };
    struct stuck k[MOST];
    struct ipc_handle h;
    unsigned n = 0;
    int sink = open("/dev/null", O_WRONLY), rc = 0;
    up();
    while (n < MOST && rc == 0) {
        rc = stuck_try(&k[n]);
        close(k[n++].s);
    }
    ck_assert_int_eq(rc, -EDQUOT);
    others_go_on();
    take(k[0].fds[0], LONG);
    int s = greeted();
    uint64_t until = rig_now_ms() + 1000 * patience_factor();
    while ((rc = start(s, sink, &h)) != 0 && rig_now_ms() < until)
        usleep(1000);
    ck_assert_int_eq(rc, 0);
    close(s);
    for (unsigned i = 0; i < n; i++)
        close(k[i].fds[0]);
    close(sink);
    rig_close_pair(&rig, &a, &b);
}
END_TEST

/* The daemon waits for files when it ends, but not for ever. */
START_TEST(daemon_ends)
{
    up();
    struct stuck k = stuck_new(), slow = stuck_new();
    ck_assert_uint_gt(k.handle.handle, 0);
    pid_t reader = fork();
    if (reader == 0) {
        usleep(LONG * 1000);
        _exit(take(slow.fds[0], 2 * LONG) > SIZE ? 0 : 1);
    }
    end_close(&a);
    end_close(&b);
    rig_stop(&rig);
    int status;
    ck_assert_int_eq(waitpid(reader, &status, 0), reader);
    ck_assert_int_eq(status, 0);
    close(k.s);
    close(slow.s);
}
END_TEST

/* ---- a file that can't be started ---- */

/* The client that asks learns the reason, and may have another capture then. */
START_TEST(refused)
{
    int fds[2], full = open("/dev/full", O_WRONLY), sink = open("/dev/null", O_WRONLY);
    struct ipc_handle h;
    up();
    int s = greeted();
    ck_assert_int_eq(start(s, full, &h), -ENOSPC);
    ck_assert_int_eq(pipe(fds), 0);
    close(fds[0]);
    ck_assert_int_eq(start(s, fds[1], &h), -EPIPE);
    ask_stop(s, h.handle);
    ck_assert_int_eq(answer(s).hdr.status, -EINVAL);
    others_go_on();
    ck_assert_int_eq(start(s, sink, &h), 0);
    close(s);
    close(fds[1]);
    close(full);
    close(sink);
    rig_close_pair(&rig, &a, &b);
}
END_TEST

/* A file that hangs from the beginning: another write holds it, whose octets don't come. */
struct hung {
    int fd, faults;
    uint8_t *page;
    pthread_t writer;
};

static void *hung_write(void *arg)
{
    struct hung *h = arg;
    ck_assert_int_eq(pwrite(h->fd, h->page, 1, SIZE), 1);
    return NULL;
}

/* False: that can't be had here. */
static bool hung_new(struct hung *h)
{
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register area = {.mode = UFFDIO_REGISTER_MODE_MISSING};
    h->faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    if (h->faults < 0) {
        printf("skipped: a file that hangs from the beginning: userfaultfd: %s\n", strerror(errno));
        return false;
    }
    area.range.len = (uint64_t)sysconf(_SC_PAGESIZE);
    h->page = mmap(NULL, area.range.len, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(h->page, MAP_FAILED);
    area.range.start = (uintptr_t)h->page;
    ck_assert_int_eq(ioctl(h->faults, UFFDIO_API, &api), 0);
    ck_assert_int_eq(ioctl(h->faults, UFFDIO_REGISTER, &area), 0);
    h->fd = memfd_create("hung", MFD_CLOEXEC);
    ck_assert_int_eq(pthread_create(&h->writer, NULL, hung_write, h), 0);
    ck_assert_int_eq(poll(&(struct pollfd){h->faults, POLLIN, 0}, 1, -1), 1);
    return true;
}

/* From now on it takes the octets. */
static void hung_let_go(struct hung *h)
{
    struct uffdio_zeropage zero = {.range = {(uintptr_t)h->page, (uint64_t)sysconf(_SC_PAGESIZE)}};
    ck_assert_int_eq(ioctl(h->faults, UFFDIO_ZEROPAGE, &zero), 0);
    pthread_join(h->writer, NULL);
    close(h->faults);
    munmap(h->page, zero.range.len);
}

/* The client that starts such a capture waits for it; no other client does, also not for another
 * capture. Frames that pass meanwhile are in it. */
START_TEST(starts_late)
{
    int sink = open("/dev/null", O_WRONLY), s, other;
    struct ipc_handle h;
    struct hung f;
    if (!hung_new(&f))
        return;
    up();
    s = greeted();
    other = greeted();
    ask_start(s, f.fd);
    ck_assert_int_eq(start(other, sink, &h), 0);
    others_go_on();
    ck_assert(!answered(s, LONG));
    hung_let_go(&f);
    ck_assert_int_eq(recv(s, &h, sizeof(h), 0), (ssize_t)sizeof(h));
    ck_assert_int_eq(h.hdr.status, 0);
    ck_assert_int_eq(h.hdr.type, IPC_CAPTURE_START);
    ask_stop(s, h.handle);
    struct ipc_captured m = answer(s);
    ck_assert_int_eq(m.hdr.status, 0);
    ck_assert_uint_ge(m.packets, SIZE / 4096);
    close(s);
    close(other);
    close(sink);
    close(f.fd);
    rig_close_pair(&rig, &a, &b);
}
END_TEST

/* It can be stopped, and the client may disconnect, before it has started. */
START_TEST(ends_before_it_begins)
{
    int sink = open("/dev/null", O_WRONLY), s, gone;
    struct ipc_handle h;
    struct hung f;
    if (!hung_new(&f))
        return;
    up();
    s = greeted();
    gone = greeted();
    ck_assert_int_eq(start(s, sink, &h), 0); /* to get its handle */
    ask_stop(s, h.handle);
    ck_assert_int_eq(answer(s).hdr.status, 0);
    ask_start(gone, f.fd);
    ask_start(s, f.fd);
    close(gone);
    ask_stop(s, h.handle);
    struct ipc_captured m = answer(s);
    ck_assert_int_eq(m.hdr.type, IPC_CAPTURE_START);
    ck_assert_int_eq(m.hdr.status, -ECANCELED);
    others_go_on();
    ck_assert(!answered(s, LONG));
    hung_let_go(&f);
    m = answer(s);
    ck_assert_int_eq(m.hdr.status, 0);
    ck_assert_uint_eq(m.hdr.id, 7);
    ck_assert_int_eq(start(s, sink, &h), 0);
    close(s);
    close(sink);
    close(f.fd);
    rig_close_pair(&rig, &a, &b);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("stuck_captures");
    TCase *t = tcase_create("stuck_captures");

    tcase_set_timeout(t, 30);
    tcase_add_test(t, stopped);
    tcase_add_test(t, left);
    tcase_add_test(t, read_slowly);
    tcase_add_test(t, unread);
    tcase_add_test(t, many);
    tcase_add_test(t, daemon_ends);
    tcase_add_test(t, refused);
    tcase_add_test(t, starts_late);
    tcase_add_test(t, ends_before_it_begins);
    suite_add_tcase(s, t);
    return unit_run(s);
}
