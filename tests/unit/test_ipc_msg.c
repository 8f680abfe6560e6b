/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Control messages: versions that differ, descriptors, truncation.
 */
#include "ipc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

START_TEST(shm_01_unpack)
{
    struct msg {
        uint32_t a, b;
    };
    static const struct {
        const char *what;
        uint32_t in[4];
        size_t len;
        bool strict;
        int ret;
        struct msg out;
    } cases[] = {
        {"SHM-01 exact", {1, 2}, 8, true, 0, {1, 2}},
        {"SHM-01 an old sender's struct is shorter: the rest reads 0", {1, 2}, 4, true, 0, {1, 0}},
        {"SHM-01 too short to mean anything", {1, 2}, 3, true, -EBADMSG, {0, 0}},
        {"SHM-01 a newer sender's, with nothing new set", {1, 2, 0, 0}, 16, true, 0, {1, 2}},
        {"SHM-01 a newer sender's, asking for what we don't know",
         {1, 2, 0, 1},
         16,
         true,
         -E2BIG,
         {0, 0}},
        {"SHM-01 a newer daemon's answer: ignore the new part", {1, 2, 0, 1}, 16, false, 0, {1, 2}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct msg m = {9, 9};
        int ret = ipc_msg_unpack(&m, sizeof(m), 4, cases[i].in, cases[i].len, cases[i].strict);
        ck_assert_msg(ret == cases[i].ret, "%s", cases[i].what);
        if (ret == 0)
            ck_assert_msg(memcmp(&m, &cases[i].out, sizeof(m)) == 0, "%s", cases[i].what);
    }
}
END_TEST

/* SHM-01: the hello of protocol 1, octet by octet, as the first release sent it. It stands for
 * every client that was ever shipped: when this test fails, the major number must change. */
static const uint8_t frozen_hello[64] = {
    0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x52, 0x4e, 0x49, 0x43, 0x01, 0x00, 0x00, 0x00, 0x13, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x10, 0x00, 0x00, 0x00, 0x40, 0x00, 0x00, 0x00, 0x40, 0x00, 0x00, 0x00, 0xc0, 0x00, 0x00, 0x00,
    0x40, 0x00, 0x00, 0x00, 0x40, 0x00, 0x00, 0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
};

START_TEST(shm_01_old_client_is_served)
{
    struct ipc_hello h;
    memcpy(&h, frozen_hello, sizeof(h));
    ck_assert_int_eq(ipc_hello_check(&h), 0);
    ipc_hello_fill(&h, IPC_FEAT_CM | IPC_FEAT_SRQ | IPC_FEAT_UD);
    h.minor = 0;
    ck_assert_int_eq(memcmp(&h, frozen_hello, sizeof(h)), 0);
}
END_TEST

/* SHM-01: numbers and sizes that old binaries have compiled in. */
START_TEST(shm_01_frozen_numbers)
{
    ck_assert_int_eq(IPC_DEVICE_LIST, 16);
    ck_assert_int_eq(IPC_CTX_OPEN, 20);
    ck_assert_int_eq(IPC_PD_ALLOC, 32);
    ck_assert_int_eq(IPC_MR_REG, 36);
    ck_assert_int_eq(IPC_MR_ALLOC, 40);
    ck_assert_int_eq(IPC_CHANNEL_CREATE, 48);
    ck_assert_int_eq(IPC_QP_CREATE, 58);
    ck_assert_int_eq(IPC_MCAST_DETACH, 64);
    ck_assert_int_eq(IPC_CM_CHANNEL_CREATE, 80);
    ck_assert_int_eq(IPC_CM_MIGRATE, 97);
    ck_assert_int_eq(IPC_STATS, 112);
    ck_assert_int_eq(IPC_ADMIN, 120);
    ck_assert_uint_eq(offsetof(struct ipc_qp, sq), 48);
    ck_assert_uint_eq(offsetof(struct ipc_cqe, status), 32);
    ck_assert_uint_eq(offsetof(struct ipc_cqe, phase), 60);
    ck_assert_uint_eq(offsetof(struct ipc_cm_event, private_data), 132);
}
END_TEST

START_TEST(shm_01_hello_refused)
{
    struct ipc_hello h;
    ipc_hello_fill(&h, 0);
    h.minor = 99;
    ck_assert_int_eq(ipc_hello_check(&h), 0);
    h.major++;
    ck_assert_int_eq(ipc_hello_check(&h), -EPROTONOSUPPORT);
    h.major--;
    h.sizes[IPC_SIZE_CQE] = 128;
    ck_assert_int_eq(ipc_hello_check(&h), -EPROTO);
    ipc_hello_fill(&h, 0);
    h.magic = 0;
    ck_assert_int_eq(ipc_hello_check(&h), -EPROTO);
    ipc_hello_fill(&h, 0);
    h.hdr.type = IPC_VERSION;
    ck_assert_int_eq(ipc_hello_check(&h), -EPROTO);
}
END_TEST

static unsigned open_fds(void)
{
    unsigned n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* One octet, and more descriptors than ipc_send lets through. */
static void send_many(int sock, unsigned n)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(64 * sizeof(int))] = {0};
    char octet = 0;
    struct iovec iov = {.iov_base = &octet, .iov_len = 1};
    struct msghdr mh = {.msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = control,
                        .msg_controllen = CMSG_SPACE(n * sizeof(int))};
    struct cmsghdr *cm = CMSG_FIRSTHDR(&mh);
    cm->cmsg_level = SOL_SOCKET;
    cm->cmsg_type = SCM_RIGHTS;
    cm->cmsg_len = CMSG_LEN(n * sizeof(int));
    memset(CMSG_DATA(cm), 0, n * sizeof(int)); /* standard input, again and again */
    ck_assert_int_eq(sendmsg(sock, &mh, 0), 1);
}

START_TEST(shm_09_descriptors_travel)
{
    /* SHM-09 descriptors arrive close-on-exec; none leaks when room is short */
    int s[2], fds[4], got[4];
    unsigned n = 4;
    char msg[8] = "hello";
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s), 0);
    for (int i = 0; i < 4; i++)
        fds[i] = dup(0);
    unsigned before = open_fds();
    ck_assert_int_eq(ipc_send(s[0], msg, 6, fds, 4, 0), 0);
    ck_assert_int_eq(ipc_recv(s[1], msg, sizeof(msg), got, &n, 0), 6);
    ck_assert_uint_eq(n, 4);
    for (unsigned i = 0; i < n; i++) {
        ck_assert_int_eq(fcntl(got[i], F_GETFD), FD_CLOEXEC);
        close(got[i]);
    }
    n = 1;
    ck_assert_int_eq(ipc_send(s[0], msg, 6, fds, 3, 0), 0);
    ck_assert_int_eq(ipc_recv(s[1], msg, sizeof(msg), got, &n, 0), 6);
    ck_assert_uint_eq(n, 1);
    close(got[0]);
    ck_assert_int_eq(ipc_send(s[0], msg, 6, fds, 2, 0), 0);
    ck_assert_int_eq(ipc_recv(s[1], msg, sizeof(msg), NULL, NULL, 0), 6);
    n = 4;
    ck_assert_int_eq(ipc_send(s[0], msg, 8, fds, 2, 0), 0);
    ck_assert_int_eq(ipc_recv(s[1], msg, 4, got, &n, 0), -EMSGSIZE);
    ck_assert_uint_eq(n, 0);
    n = 4;
    ck_assert_int_eq(ipc_send(s[0], msg, 0, fds, 2, 0), 0); /* nothing but descriptors */
    ck_assert_int_eq(ipc_recv(s[1], msg, sizeof(msg), got, &n, 0), 0);
    ck_assert_uint_eq(n, 0);
    n = 4;
    send_many(s[0], IPC_FD_MAX + 1);
    ck_assert_int_eq(ipc_recv(s[1], msg, sizeof(msg), got, &n, 0), -EMSGSIZE);
    ck_assert_uint_eq(n, 0);
    ck_assert_uint_eq(open_fds(), before);
    ck_assert_int_eq(ipc_recv(s[1], msg, 4, got, &n, MSG_DONTWAIT), -EAGAIN);
    close(s[0]);
    ck_assert_int_eq(ipc_recv(s[1], msg, 4, got, &n, 0), 0);
    ck_assert_int_eq(ipc_send(s[1], msg, 4, NULL, 0, 0), -EPIPE);
}
END_TEST

START_TEST(shm_09_no_message_is_longer)
{
    /* SHM-09 no more octets than the other side has room for, and no more descriptors */
    static char msg[IPC_MSG_MAX + 1];
    int s[2], fds[IPC_FD_MAX + 1] = {0};
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s), 0);
    ck_assert_int_eq(ipc_send(s[0], msg, IPC_MSG_MAX, fds, IPC_FD_MAX, 0), 0);
    ck_assert_int_eq(ipc_recv(s[1], msg, sizeof(msg), NULL, NULL, 0), IPC_MSG_MAX);
    ck_assert_int_eq(ipc_send(s[0], msg, IPC_MSG_MAX + 1, NULL, 0, 0), -EINVAL);
    ck_assert_int_eq(ipc_send(s[0], msg, 1, fds, IPC_FD_MAX + 1, 0), -EINVAL);
    ck_assert_int_eq(ipc_recv(s[1], msg, 4, NULL, NULL, MSG_DONTWAIT), -EAGAIN);
    close(s[0]);
    close(s[1]);
}
END_TEST

START_TEST(shm_07_socket_path)
{
    /* SHM-07 explicit, then $URNIC_SOCKET, then the user's, then the system's */
    char buf[108], dir[] = "/tmp/urnic-test-XXXXXX", path[64];
    ck_assert_ptr_nonnull(mkdtemp(dir));
    unsetenv("URNIC_SOCKET");
    setenv("XDG_RUNTIME_DIR", dir, 1);
    ck_assert_int_eq(ipc_socket_path(NULL, buf, sizeof(buf)), 0);
    ck_assert_str_eq(buf, "/run/urnic/urnicd.sock");
    setenv("URNIC_SOCKET", "/x/y", 1);
    ck_assert_int_eq(ipc_socket_path(NULL, buf, sizeof(buf)), 0);
    ck_assert_str_eq(buf, "/x/y");
    ck_assert_int_eq(ipc_socket_path("/a", buf, sizeof(buf)), 0);
    ck_assert_str_eq(buf, "/a");
    ck_assert_int_eq(ipc_socket_path("/abc", buf, 4), -ENAMETOOLONG);
    setenv("URNIC_SOCKET", "", 1); /* counts as none */
    ck_assert_int_eq(ipc_socket_path(NULL, buf, sizeof(buf)), 0);
    ck_assert_str_eq(buf, "/run/urnic/urnicd.sock");
    unsetenv("URNIC_SOCKET");
    snprintf(path, sizeof(path), "%s/urnic", dir);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    snprintf(path, sizeof(path), "%s/" IPC_SOCKET_USER, dir);
    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    ck_assert_int_eq(ipc_socket_path(NULL, buf, sizeof(buf)), 0);
    ck_assert_str_eq(buf, path);
    unlink(path);
    *strrchr(path, '/') = 0;
    rmdir(path);
    rmdir(dir);
}
END_TEST

/* In a process of another user: 1 this path is the user's, 0 it is not, 100 failure. */
static int path_of(uid_t stranger, const char *path)
{
    char buf[108];
    if (setuid(stranger) < 0 || ipc_socket_path(NULL, buf, sizeof(buf)) < 0)
        return 100;
    return strcmp(buf, path) == 0;
}

START_TEST(shm_07_socket_of_others)
{
    /* SHM-07, SEC-34 in /tmp, where every user makes names, only a socket of the user's own, in
     * a folder of the user's own, is taken for the user's daemon. As root only: it takes two
     * users. */
    char path[64], dir[64];
    const uid_t stranger = 100000u + (uid_t)getpid(); /* other runs have others */
    if (geteuid() != 0)
        return;
    unsetenv("URNIC_SOCKET");
    unsetenv("XDG_RUNTIME_DIR");
    snprintf(path, sizeof(path), IPC_SOCKET_TMP, (unsigned)stranger);
    snprintf(dir, sizeof(dir), "%s", path);
    *strrchr(dir, '/') = 0;
    mkdir(dir, 0755); /* one that a failed test has left will do, too */
    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0666));
    ck_assert_int_eq(chown(path, 0, (gid_t)-1), 0);
    for (unsigned i = 0; i < 5; i++) {
        int status;
        bool own = i == 3;
        ck_assert_int_eq(chown(path, i & 1 ? stranger : 0, (gid_t)-1), 0);
        ck_assert_int_eq(chown(dir, i & 2 ? stranger : 0, (gid_t)-1), 0);
        pid_t pid = fork();
        if (pid == 0)
            _exit(path_of(stranger, path));
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert(WIFEXITED(status));
        ck_assert_int_eq(WEXITSTATUS(status), (int)own);
    }
    unlink(path);
    rmdir(dir);
}
END_TEST

START_TEST(shm_01_names)
{
    /* SHM-01 every request has a name for the log */
    unsigned named = 0;
    for (unsigned t = 0; t < IPC_TYPE_MAX; t++)
        named += strcmp(ipc_type_name(t), "?") != 0;
    ck_assert_uint_eq(named, 2 + 5 + 10 + 19 + 19 + 7 + 11);
    ck_assert_str_eq(ipc_type_name(IPC_QP_MODIFY), "qp-modify");
    ck_assert_str_eq(ipc_type_name(60000), "?");
}
END_TEST

UNIT_MAIN("ipc msg", shm_01_unpack, shm_01_old_client_is_served, shm_01_frozen_numbers,
          shm_01_hello_refused, shm_09_descriptors_travel, shm_09_no_message_is_longer,
          shm_07_socket_path, shm_07_socket_of_others, shm_01_names)
