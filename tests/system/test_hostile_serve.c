/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic copy` fetches from a server that lies: it says so and ends, and writes nothing of it.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "copy_proto.h"
#include "daemon_rig.h"
#include "unit.h"

#define IN_AT  4096u /* in the server's memory: what comes; before it, what goes */
#define LENGTH 100u  /* of the file that is offered, octets */

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

static pid_t start_client(void)
{
    pid_t pid = fork();

    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        execl(getenv("URNIC"), "urnic", "copy", "--socket", rig.socket, "--device", "urn0",
              "10.0.0.2:file", file, (char *)NULL);
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

/* Offer a file, then say that this chunk of so many octets is there. */
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

/* With what copy adds to it, the work request's id would be that of a receive. */
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
    return unit_run(s);
}
