/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic copy` fetches from a lying server: it reports an error and ends, and writes no data.
 * `urnic rping --verbose` shows a client's data that is not only letters.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "copy_proto.h"
#include "daemon_rig.h"
#include "unit.h"

#define IN_AT      4096u /* start of received data; data to send come before it */
#define LENGTH     100u  /* of the file that is offered, octets */
#define RPING_PORT 7174

/* The hostile client's text for rping: erase the screen, in two ways; a title. */
#define STEERING                                                                                   \
    "rdma-ping-0: a\x1b[2Jb\xc2\x9b"                                                               \
    "2Jc\x1b]0;d\x07\x7f\r\n"

static struct rig rig;
static struct end end;
static struct urnic_listener *listener;
static char file[128];

static void up(void)
{
    rig_start_pair(&rig, "");
    end_open(&end, &rig, "urn1", COPY_SLOTS * COPY_SLOT);
    ck_assert_int_eq(urnic_listen_addr(end.ctx, NULL, COPY_PORT, 1, &listener), 0);
    snprintf(file, sizeof(file), "%s/file", rig.dir);
}

static void down(void)
{
    unlink(file);
    urnic_close_listener(listener);
    end_close(&end);
    rig_stop(&rig);
}

/* The tool's path, from the environment. */
static const char *urnic(void)
{
    const char *path = getenv("URNIC");
    return path ? path : "urnic";
}

static pid_t start_client(void)
{
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        execl(urnic(), "urnic", "copy", "--socket", rig.socket, "--device", "urn0", "10.0.0.2:file",
              file, (char *)NULL);
        _exit(127);
    }
    return pid;
}

static int post_receive(void *arg, struct urnic_qp *qp)
{
    struct end *e = arg;
    struct urnic_sge sge = {
        .addr = e->mr->iova + IN_AT, .length = sizeof(struct copy_msg), .lkey = e->mr->lkey};
    struct urnic_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
    return urnic_post_recv(qp, &wr, NULL);
}

static void say(struct urnic_conn *conn, const struct copy_msg *msg)
{
    const struct urnic_sge sge = {
        .addr = end.mr->iova, .length = sizeof(*msg), .lkey = end.mr->lkey};
    struct urnic_send_wr wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = URNIC_WR_SEND, .send_flags = URNIC_SEND_SIGNALED};
    struct urnic_wc wc;
    memcpy(end.mem, msg, sizeof(*msg));
    ck_assert_int_eq(urnic_post_send(conn->qp, &wr, NULL), 0);
    end_wait(&end, &wc, 10000);
    ck_assert_int_eq(wc.status, URNIC_WC_SUCCESS);
}

/* Its status, as soon as it has ended: before it could have given up waiting. */
static int status_of(pid_t client)
{
    uint64_t until = rig_now_ms() + 20000;
    int status = 0;
    while (waitpid(client, &status, WNOHANG) != client) {
        if (rig_now_ms() > until) {
            kill(client, SIGKILL);
            waitpid(client, NULL, 0);
            ck_abort_msg("the client doesn't end");
        }
        usleep(2000);
    }
    return status;
}

/* Offer a file, then announce this chunk with `octets` octets. */
static void offer(uint64_t chunk, uint32_t octets)
{
    struct urnic_conn_attr attr = end_conn_attr(&end, 10000);
    struct urnic_conn *conn;
    struct urnic_wc wc;
    struct stat st;
    pid_t client = start_client();
    ck_assert_int_eq(urnic_accept_conn(listener, &attr, post_receive, &end, &conn), 0);
    end_wait(&end, &wc, 10000);
    ck_assert_int_eq(wc.status, URNIC_WC_SUCCESS);
    say(conn, &(struct copy_msg){.magic = COPY_MAGIC,
                                 .type = COPY_READY,
                                 .size = LENGTH,
                                 .addr = end.mr->iova,
                                 .rkey = end.mr->rkey});
    say(conn, &(struct copy_msg){
                  .magic = COPY_MAGIC, .type = COPY_FILLED, .chunk = chunk, .octets = octets});
    int status = status_of(client);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 1, "the client ended with %x",
                  (unsigned)status);
    ck_assert_int_ne(stat(file, &st), 0);
    urnic_close_conn(conn);
}

START_TEST(another_chunk)
{
    offer(1, LENGTH);
}
END_TEST

/* With the number that copy adds, the work request's id would be that of a receive. */
START_TEST(chunk_that_wraps)
{
    offer(0x1FFFFFFFFull - 0x1000000000000ull, LENGTH);
}
END_TEST

START_TEST(more_than_the_file_has)
{
    offer(0, LENGTH + 1);
}
END_TEST

START_TEST(chunk_of_nothing)
{
    offer(0, 0);
}
END_TEST

static pid_t start_rping(void)
{
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        dup2(open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), STDOUT_FILENO);
        execl(urnic(), "urnic", "rping", "--socket", rig.socket, "--device", "urn0", "--verbose",
              (char *)NULL);
        _exit(127);
    }
    return pid;
}

/* To rping, as soon as it listens. */
static struct urnic_conn *connect_to_rping(void)
{
    struct urnic_conn_attr attr = end_conn_attr(&end, 10000);
    uint64_t until = rig_now_ms() + 20000;
    struct urnic_conn *conn;
    int rc;
    while ((rc = urnic_connect_addr(end.ctx, "10.0.0.1", RPING_PORT, &attr, post_receive, &end,
                                    &conn)) == -ECONNREFUSED &&
           rig_now_ms() < until)
        usleep(10000);
    ck_assert_int_eq(rc, 0);
    return conn;
}

/* Name the address of the data to show, and wait until the server has read it and answered. */
static void show_to_rping(struct urnic_conn *conn, const char *text)
{
    uint64_t at = htobe64(end.mr->iova + IN_AT + 64);
    uint32_t rest[2] = {htobe32(end.mr->rkey), htobe32(LENGTH)};
    struct urnic_sge sge = {.addr = end.mr->iova, .length = 16, .lkey = end.mr->lkey};
    struct urnic_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = URNIC_WR_SEND};
    struct urnic_wc wc;
    snprintf((char *)end.mem + IN_AT + 64, LENGTH, "%s", text);
    memcpy(end.mem, &at, sizeof(at));
    memcpy(end.mem + sizeof(at), rest, sizeof(rest));
    ck_assert_int_eq(urnic_post_send(conn->qp, &wr, NULL), 0);
    end_wait(&end, &wc, 10000);
    ck_assert_int_eq(wc.status, URNIC_WC_SUCCESS);
}

START_TEST(text_that_steers_a_terminal)
{
    pid_t server = start_rping();
    struct urnic_conn *conn = connect_to_rping();
    char said[1024];
    show_to_rping(conn, STEERING);
    urnic_close_conn(conn);
    ck_assert_int_eq(status_of(server), 0);
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, said, sizeof(said) - 1);
    close(fd);
    ck_assert_int_gt(n, 0);
    said[n] = '\0';
    ck_assert_msg(strstr(said, "server ping data: rdma-ping-0: a?[2Jb??2Jc?]0;d????\n") != NULL,
                  "rping shows:\n%s", said);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("hostile serve");
    TCase *t = tcase_create("get");

    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, up, down);
    tcase_add_test(t, another_chunk);
    tcase_add_test(t, chunk_that_wraps);
    tcase_add_test(t, more_than_the_file_has);
    tcase_add_test(t, chunk_of_nothing);
    suite_add_tcase(s, t);
    t = tcase_create("rping");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, up, down);
    tcase_add_test(t, text_that_steers_a_terminal);
    suite_add_tcase(s, t);
    return unit_run(s);
}
