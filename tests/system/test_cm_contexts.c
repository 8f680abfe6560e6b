/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The id of a connection in one context, its queue pair in another one: as programs are that use
 * librdmacm, which knows nothing of the contexts that the program has opened.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon_rig.h"
#include "fork_apart.h"
#include "unit.h"

#define SIZE (1u << 20)
#define PORT 4801

static struct rig rig;
static struct end a, b;   /* the ids' */
static struct end qa, qb; /* the queue pairs' */
static struct urnic_cm_channel *ca, *cb;
static struct urnic_cm_id *listener, *active, *passive;

static void up(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct sockaddr_in to = at;
    rig_open_pair(&rig, "", &a, &b, SIZE);
    end_open(&qa, &rig, "urn0", SIZE);
    end_open(&qb, &rig, "urn1", SIZE);
    end_qp(&qa, URNIC_QPT_RC);
    end_qp(&qb, URNIC_QPT_RC);
    ck_assert_int_eq(urnic_create_cm_channel(a.ctx, &ca), 0);
    ck_assert_int_eq(urnic_create_cm_channel(b.ctx, &cb), 0);
    ck_assert_int_eq(urnic_create_id(cb, URNIC_PS_TCP, NULL, &listener), 0);
    ck_assert_int_eq(urnic_bind_addr(listener, (struct sockaddr *)&at), 0);
    ck_assert_int_eq(urnic_listen(listener, 0), 0);
    inet_pton(AF_INET, "10.0.0.2", &to.sin_addr);
    ck_assert_int_eq(urnic_create_id(ca, URNIC_PS_TCP, NULL, &active), 0);
    ck_assert_int_eq(urnic_resolve(active, NULL, (struct sockaddr *)&to, 5000), 0);
    await_cm(ca, URNIC_CM_ROUTE_RESOLVED);
}

static void down(void)
{
    ck_assert_int_eq(urnic_destroy_id(listener), 0);
    ck_assert_int_eq(urnic_destroy_cm_channel(ca), 0);
    ck_assert_int_eq(urnic_destroy_cm_channel(cb), 0);
    rig_close_pair(&rig, &a, &b);
}

static void move(struct urnic_cm_id *id, const struct end *e, enum urnic_qp_state state)
{
    struct urnic_qp_attr attr = {.qp_state = state};
    unsigned mask;
    ck_assert_int_eq(urnic_init_qp_attr(id, &attr, &mask), 0);
    ck_assert_int_eq(urnic_modify_qp(e->qp, &attr, mask), 0);
}

static void connect_both(void)
{
    struct urnic_conn_param p = {.qp_num = urnic_qp_num(qa.qp)};
    ck_assert_int_eq(urnic_connect(active, &p), 0);
    passive = await_cm(cb, URNIC_CM_CONNECT_REQUEST).id;
    for (enum urnic_qp_state s = URNIC_QPS_INIT; s <= URNIC_QPS_RTS; s++)
        move(passive, &qb, s);
    p.qp_num = urnic_qp_num(qb.qp);
    ck_assert_int_eq(urnic_accept(passive, &p), 0);
    await_cm(ca, URNIC_CM_CONNECT_RESPONSE);
    for (enum urnic_qp_state s = URNIC_QPS_INIT; s <= URNIC_QPS_RTS; s++)
        move(active, &qa, s);
    ck_assert_int_eq(urnic_establish(active), 0);
    await_cm(cb, URNIC_CM_ESTABLISHED);
}

/* SEC-26: a context may name a queue pair of its process' other contexts on the device; whichever
 * of the two goes first, the other stays whole. */
START_TEST(names_its_own_process_queue_pair)
{
    up();
    connect_both();
    ck_assert_int_eq(end_post_recv(&qb, 0, 4096, 2), 0);
    ck_assert_int_eq(end_post(&qa, URNIC_WR_SEND, 0, 4096, 0, 0, 3), 0);
    end_expect(&qa, URNIC_WC_SUCCESS, 3);
    end_expect(&qb, URNIC_WC_SUCCESS, 2);
    if (_i == 0) { /* the contexts of the queue pairs go first */
        end_close(&qa);
        end_close(&qb);
        ck_assert_int_eq(urnic_disconnect(active), 0);
        await_cm(cb, URNIC_CM_DISCONNECTED);
    }
    ck_assert_int_eq(urnic_destroy_id(active), 0);
    if (_i == 1)
        await_cm(cb, URNIC_CM_DISCONNECTED);
    ck_assert_int_eq(urnic_destroy_id(passive), 0);
    if (_i == 1) {
        end_close(&qa);
        end_close(&qb);
    }
    down();
}
END_TEST

/* A process that has a queue pair on the device, until its standard input ends. */
static pid_t stranger(uint32_t *qpn, int *until)
{
    int number[2], end[2];
    ck_assert_int_eq(pipe(number), 0);
    ck_assert_int_eq(pipe(end), 0);
    pid_t pid = fork_apart();
    if (pid == 0) {
        struct end theirs;
        char octet;
        close(end[1]);
        end_open(&theirs, &rig, "urn0", SIZE);
        end_qp(&theirs, URNIC_QPT_RC);
        uint32_t n = urnic_qp_num(theirs.qp);
        if (write(number[1], &n, sizeof(n)) != sizeof(n))
            _exit(1);
        _exit(read(end[0], &octet, 1) == 0 ? 0 : 1);
    }
    close(end[0]);
    ck_assert_int_eq(read(number[0], qpn, sizeof(*qpn)), sizeof(*qpn));
    close(number[0]);
    close(number[1]);
    *until = end[1];
    return pid;
}

/* SEC-26: ... but none of another process, though its user is the same. */
START_TEST(names_no_stranger)
{
    struct urnic_conn_param p = {0};
    int until, status;
    up();
    pid_t pid = stranger(&p.qp_num, &until);
    ck_assert_int_eq(urnic_connect(active, &p), -EINVAL);
    close(until);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    connect_both(); /* nothing has happened to the id */
    ck_assert_int_eq(urnic_destroy_id(active), 0);
    ck_assert_int_eq(urnic_destroy_id(passive), 0);
    end_close(&qa);
    end_close(&qb);
    down();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cm_contexts");
    TCase *t = tcase_create("cm_contexts");

    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, names_its_own_process_queue_pair, 0, 2);
    tcase_add_test(t, names_no_stranger);
    suite_add_tcase(s, t);
    return unit_run(s);
}
