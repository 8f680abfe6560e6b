/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Clients that pass descriptors whose close takes for ever, by every socket that they have: no
 * other client waits for that (SEC-22).
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>

#include "../lingering.h"
#include "hostile_rig.h"
#include "unit.h"

#define LONG 60 /* s */
#define EVE  65502u

static int to_test; /* the hostile client says that it has done its worst */

/* Everything is done; but its ends of the connections must stay, or no close would wait. */
static void stay(void)
{
    ck_assert_int_eq(write(to_test, "", 1), 1);
    for (;;)
        pause();
}

static int greeted(void)
{
    struct ipc_hello hello;
    int s = raw_connect();
    ipc_hello_fill(&hello, ~0ull);
    ck_assert_int_eq(ipc_send(s, &hello, sizeof(hello), NULL, 0, 0), 0);
    ck_assert_int_gt(recv(s, &hello, sizeof(hello), 0), 0);
    return s;
}

/* The daemon is halted, so that its close is the last one. */
static void pass_fd(int sock, const void *msg, size_t len, int fd, unsigned n)
{
    bool halted = kill(rig.pid, SIGSTOP) == 0;
    lingering_pass(sock, msg, len, fd, n);
    usleep(2000);
    if (halted)
        kill(rig.pid, SIGCONT);
}

static void pass(int sock, const void *msg, size_t len, unsigned n)
{
    pass_fd(sock, msg, len, lingering_new(LONG).fd, n);
}

/* Pass the descriptor with a request of this type, which may be a type that takes a descriptor.
 * Wait for the answer, if one comes. */
static void with_request(unsigned type, size_t len, unsigned n)
{
    struct ipc_hdr hdr = {.type = (uint16_t)type};
    uint8_t msg[1024] = {0};
    int s = greeted();
    if (type == IPC_MR_REG) {
        struct ipc_mr_reg reg = {.hdr.type = IPC_MR_REG, .kind = IPC_MR_FD, .len = 4096};
        memcpy(msg, &reg, sizeof(reg));
    } else {
        memcpy(msg, &hdr, sizeof(hdr));
    }
    pass(s, msg, len, n);
    (void)recv(s, msg, sizeof(msg), 0);
    close(s);
    stay();
}

static void as_region(void)
{
    struct end e;
    struct urnic_mr *mr;
    end_open(&e, &rig, "urn0", SIZE);
    struct lingering l = lingering_new(LONG);
    ck_assert_int_lt(urnic_reg_mr_fd(e.pd, l.fd, 0, 4096, 0, END_ACCESS, &mr), 0);
    struct ipc_mr_reg reg = {.hdr.type = IPC_MR_REG, .kind = IPC_MR_FD, .len = 4096};
    pass_fd(e.ctx->conn.sock, &reg, sizeof(reg), l.fd, 1);
    stay();
}

static void with_version(void)
{
    with_request(IPC_VERSION, sizeof(struct ipc_hdr), 1);
}

static void with_many(void)
{
    with_request(IPC_VERSION, sizeof(struct ipc_hdr), 253);
}

static void too_short(void)
{
    with_request(IPC_VERSION, 3, 1);
}

static void without_context(void)
{
    with_request(IPC_MR_REG, sizeof(struct ipc_mr_reg), 1);
}

/* More messages than the daemon reads before it finds a fault: the rest goes unread. */
static void unread(void)
{
    int s = raw_connect();
    for (unsigned i = 0; i < 4; i++)
        pass(s, "rubbish", 7, 1);
    close(s);
    stay();
}

/* As a kick, while the worker sleeps; and then the context goes. */
static void as_kick(void)
{
    struct end e;
    end_open(&e, &rig, "urn0", SIZE);
    for (unsigned i = 0; i < 3; i++) {
        usleep(20000);
        pass(e.ctx->kick_fd, "k", 1, 1);
    }
    usleep(50000);
    close(e.ctx->conn.sock);
    stay();
}

/* Against the stream of events, and then the channels go. */
static void against_events(void)
{
    struct urnic_cm_channel *cm;
    struct end e;
    end_open(&e, &rig, "urn0", SIZE);
    ck_assert_int_eq(urnic_create_cm_channel(e.ctx, &cm), 0);
    int socks[] = {e.ctx->async.fd, urnic_channel_fd(e.channel), urnic_cm_channel_fd(cm)};
    for (unsigned i = 0; i < 3; i++)
        pass(socks[i], "e", 1, 1);
    close(e.ctx->conn.sock);
    stay();
}

/* As many as he likes, from a user of his own if there can be one: he is turned away after some. */
static void without_end(void)
{
    if (geteuid() != 0)
        stay();
    ck_assert(setgid(EVE) == 0 && setuid(EVE) == 0);
    for (unsigned i = 0; i < 200; i++) {
        int s = raw_connect();
        pass(s, "rubbish", 7, 1);
        close(s);
    }
    stay();
}

static void (*const ways[])(void) = {
    as_region, with_version, with_many,      too_short,   without_context,
    unread,    as_kick,      against_events, without_end,
};

START_TEST(long_closes)
{
    uint64_t begin = rig_now_ms();
    char octet;
    int told[2];
    transfer(10);
    ck_assert_int_eq(chmod(rig.dir, 0755), 0);
    ck_assert_int_eq(chmod(rig.socket, 0666), 0);
    ck_assert_int_eq(pipe(told), 0);
    to_test = told[1];
    pid_t pid = hostile(ways[_i]);
    ck_assert_int_eq(read(told[0], &octet, 1), 1);
    for (unsigned i = 0; i < 5; i++) {
        transfer(10);
        end_open(&x, &rig, "urn0", SIZE);
        end_close(&x);
        usleep(20000);
    }
    ck_assert_uint_lt(rig_now_ms() - begin, LONG * 1000 / 3);
    finish(pid);
    settle("urn0", "contexts", 1);
    close(told[0]);
    close(told[1]);
}
END_TEST

static void ask(int s, const void *msg, size_t len, void *answer, size_t size)
{
    uint8_t buf[IPC_MSG_MAX];
    ssize_t n;
    ck_assert_int_eq(ipc_send(s, msg, len, NULL, 0, 0), 0);
    n = recv(s, buf, sizeof(buf), 0);
    ck_assert_int_ge(n, (ssize_t)sizeof(struct ipc_hdr));
    memcpy(answer, buf, (size_t)n < size ? (size_t)n : size);
    ck_assert_int_eq(((const struct ipc_hdr *)answer)->status, 0);
}

/* Receive `n` answers; returns the number with this status. */
static unsigned answers(int s, unsigned n, int status)
{
    uint8_t buf[IPC_MSG_MAX];
    struct ipc_hdr hdr;
    unsigned such = 0;
    for (unsigned i = 0; i < n; i++) {
        struct pollfd p = {.fd = s, .events = POLLIN};
        ck_assert_msg(poll(&p, 1, 10000) == 1, "%u answers", i);
        ck_assert_int_ge(recv(s, buf, sizeof(buf), 0), (ssize_t)sizeof(hdr));
        memcpy(&hdr, buf, sizeof(hdr));
        such += hdr.status == status;
    }
    return such;
}

/* As pass_fd(), but for certain: the daemon has stopped before the message is sent, and has taken
 * it up when this returns. */
static void pass_last(int sock, const void *msg, size_t len, int fd)
{
    char path[64], text[512] = "", *state;
    struct ipc_hdr hdr;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)rig.pid);
    ck_assert_int_eq(kill(rig.pid, SIGSTOP), 0);
    do {
        usleep(1000);
        FILE *f = fopen(path, "re");
        ck_assert_ptr_nonnull(f);
        ck_assert_ptr_nonnull(fgets(text, sizeof(text), f));
        fclose(f);
        state = strrchr(text, ')');
    } while (state[2] != 'T');
    ck_assert_int_eq(ipc_send(sock, msg, len, &fd, 1, 0), 0);
    close(fd); /* at once: the message holds it */
    kill(rig.pid, SIGCONT);
    (void)recv(sock, &hdr, sizeof(hdr), 0);
}

/* SHM-10 SEC-22: a large slab's seals, which wait for a hole that is being punched, are added by
 * the thread of the slab's user. Here a descriptor keeps that thread busy. The requests that name
 * the slab wait for it, few of them at a time; no other client does, whether the client stays or
 * goes. */
START_TEST(seals_wait_elsewhere)
{
    const unsigned most = 16, more = 4;
    struct ipc_ctx_open open = {.hdr.type = IPC_CTX_OPEN, .device = "urn0", .worker = -1};
    struct ipc_slab_alloc alloc = {.hdr.type = IPC_SLAB_ALLOC, .size = 64u << 20};
    struct ipc_mr_reg reg = {
        .hdr.type = IPC_MR_REG, .kind = IPC_MR_SLAB, .len = 4096, .access = END_ACCESS};
    struct ipc_hdr pd_alloc = {.type = IPC_PD_ALLOC}, version = {.type = IPC_VERSION};
    struct ipc_handle pd;
    struct ipc_slab slab;
    struct ipc_hdr opened;
    for (unsigned goes = 0; goes < 2; goes++) {
        int s = greeted(), other = greeted();
        ask(s, &open, sizeof(open), &opened, sizeof(opened));
        ask(s, &pd_alloc, sizeof(pd_alloc), &pd, sizeof(pd));
        ask(s, &alloc, sizeof(alloc), &slab, sizeof(slab));
        reg.pd = pd.handle;
        reg.obj = slab.slab;
        struct lingering l = lingering_new(LONG);
        pass_last(other, &version, sizeof(version), l.fd);
        for (unsigned i = 0; i < most + more; i++)
            ck_assert_int_eq(ipc_send(s, &reg, sizeof(reg), NULL, 0, 0), 0);
        ck_assert_uint_eq(answers(s, more, -EDQUOT), more);
        struct pollfd p = {.fd = s, .events = POLLIN};
        ck_assert_int_eq(poll(&p, 1, 200), 0); /* the others wait */
        end_open(&x, &rig, "urn0", SIZE);
        end_close(&x);
        transfer(10);
        if (goes) {
            close(s);
            settle("urn0", "contexts", 1);
        }
        close(l.peer); /* the thread is free */
        if (!goes) {
            ck_assert_uint_eq(answers(s, most, 0), most);
            close(s);
        }
        close(other);
        settle("urn0", "contexts", 1);
        transfer(10);
    }
}
END_TEST

/* A daemon that is ended doesn't wait for them. */
START_TEST(end_with_one_open)
{
    char octet;
    int told[2];
    ck_assert_int_eq(pipe(told), 0);
    to_test = told[1];
    pid_t pid = hostile(unread);
    ck_assert_int_eq(read(told[0], &octet, 1), 1);
    transfer(10);
    end_close(&a);
    end_close(&b);
    rig_stop(&rig); /* fails unless it ends within seconds */
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("hostile_fds");
    TCase *t = tcase_create("long_closes");

    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, long_closes, 0, sizeof(ways) / sizeof(ways[0]));
    tcase_add_test(t, seals_wait_elsewhere);
    suite_add_tcase(s, t);
    t = tcase_create("end");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, NULL);
    tcase_add_test(t, end_with_one_open);
    suite_add_tcase(s, t);
    return unit_run(s);
}
