/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The control channel: messages and descriptors over a unix socket.
 */
#include <sys/socket.h>

#include "foreign.h"
#include "test_memif_peer.h"

struct channel {
    int listener, a, b;
};

static struct channel channel_open(void)
{
    struct channel c = {.listener = memif_sock_listen(peer_path())};
    ck_assert_int_ge(c.listener, 0);
    c.a = memif_sock_connect(peer_path());
    ck_assert_int_ge(c.a, 0);
    c.b = memif_sock_accept(c.listener);
    ck_assert_int_ge(c.b, 0);
    return c;
}

static void channel_close(struct channel *c)
{
    close(c->listener);
    close(c->a);
    close(c->b);
}

START_TEST(message_and_descriptor_arrive)
{
    struct channel c = channel_open();
    struct memif_msg out = {.type = MEMIF_MSG_ADD_REGION}, in;
    int event = eventfd(42, 0), fd;
    uint64_t count;
    out.add_region.size = UINT64_C(0x123456789a);
    ck_assert_int_eq(memif_sock_recv(c.b, &in, &fd), -EAGAIN);
    ck_assert_int_eq(memif_sock_send(c.a, &out, event), 0);
    ck_assert_int_eq(memif_sock_recv(c.b, &in, &fd), 0);
    ck_assert_mem_eq(&in, &out, sizeof(in));
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    ck_assert_int_eq(read(fd, &count, sizeof(count)), sizeof(count));
    ck_assert_uint_eq(count, 42);
    close(fd);
    ck_assert_int_eq(memif_sock_send(c.b, &out, -1), 0);
    ck_assert_int_eq(memif_sock_recv(c.a, &in, &fd), 0);
    ck_assert_int_eq(fd, -1);
    close(event);
    channel_close(&c);
}
END_TEST

/* A peer that sends `count` descriptors with `octets` of a message. */
static void send_raw(int sock, size_t octets, unsigned count)
{
    char data[256] = {0}, control[CMSG_SPACE(8 * sizeof(int))] = {0};
    struct iovec iov = {.iov_base = data, .iov_len = octets};
    struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control};
    int fds[8] = {0};
    mh.msg_controllen = CMSG_SPACE(count * sizeof(int));
    struct cmsghdr *cmsg = CMSG_FIRSTHDR(&mh);
    cmsg->cmsg_level = SOL_SOCKET;
    cmsg->cmsg_type = SCM_RIGHTS;
    cmsg->cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(cmsg), fds, count * sizeof(int));
    ck_assert_int_eq(sendmsg(sock, &mh, 0), (ssize_t)octets);
}

static const struct {
    const char *fact;
    size_t octets;
    unsigned fds;
    int result;
} raws[] = {
    {"one descriptor", 128, 1, 0},      {"two descriptors", 128, 2, 0},
    {"eight descriptors", 128, 8, 0},   {"short message", 127, 1, -EBADMSG},
    {"long message", 129, 1, -EBADMSG}, {"long message, many descriptors", 200, 8, -EBADMSG},
};

START_TEST(no_descriptor_is_left)
{
    struct channel c = channel_open();
    unsigned before = peer_count("/proc/self/fd");
    struct memif_msg in;
    int fd;
    send_raw(c.a, raws[_i].octets, raws[_i].fds);
    ck_assert_msg(memif_sock_recv(c.b, &in, &fd) == raws[_i].result, "%s", raws[_i].fact);
    ck_assert_msg((fd >= 0) == (raws[_i].result == 0), "%s", raws[_i].fact);
    if (fd >= 0)
        close(fd);
    ck_assert(foreign_settle(10000));
    ck_assert_msg(peer_count("/proc/self/fd") == before, "%s: descriptors leak", raws[_i].fact);
    channel_close(&c);
}
END_TEST

START_TEST(hang_up_is_told_by_both_calls)
{
    struct channel c = channel_open();
    struct memif_msg msg = {0};
    int fd;
    close(c.a);
    ck_assert_int_eq(memif_sock_recv(c.b, &msg, &fd), -ECONNRESET);
    ck_assert_int_eq(memif_sock_send(c.b, &msg, -1), -EPIPE); /* and no signal */
    c.a = -1;
    close(c.listener);
    close(c.b);
}
END_TEST

START_TEST(a_full_socket_does_not_block)
{
    struct channel c = channel_open();
    struct memif_msg msg = {0};
    int error = 0;
    for (int i = 0; i < 1000000 && !error; i++)
        error = memif_sock_send(c.a, &msg, -1);
    ck_assert_int_eq(error, -EAGAIN);
    channel_close(&c);
}
END_TEST

START_TEST(addresses_without_sense_are_refused)
{
    char lengthy[200];
    memset(lengthy, 'x', sizeof(lengthy));
    lengthy[sizeof(lengthy) - 1] = '\0';
    ck_assert_int_eq(memif_sock_listen(""), -ENAMETOOLONG);
    ck_assert_int_eq(memif_sock_listen(lengthy), -ENAMETOOLONG);
    ck_assert_int_eq(memif_sock_connect(lengthy), -ENAMETOOLONG);
    ck_assert_int_eq(memif_sock_connect(peer_path()), -ECONNREFUSED);
    ck_assert_int_eq(memif_sock_listen("/nowhere/at/all"), -ENOENT);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("memif_sock");

    tcase_add_test(t, message_and_descriptor_arrive);
    tcase_add_loop_test(t, no_descriptor_is_left, 0, sizeof(raws) / sizeof(raws[0]));
    tcase_add_test(t, hang_up_is_told_by_both_calls);
    tcase_add_test(t, a_full_socket_does_not_block);
    tcase_add_test(t, addresses_without_sense_are_refused);
    return peer_main("memif_sock", t);
}
