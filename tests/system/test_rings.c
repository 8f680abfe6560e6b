/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rings of channels: they begin small and grow, no frame is lost while a program receives as fast
 * as it can, and programs that do nothing cost nothing (SHM-13, SHM-14).
 */
#include <limits.h>
#include <sys/resource.h>

#include "daemon_rig.h"
#include "port_rig.h"

#define SIZE     (1u << 20)
#define MESSAGE  65536u
#define DEPTH    16u /* messages on their way */
#define PUMP_NS  300000000u
#define SMALL    600000u  /* octets: more than 64 slots each way take */
#define GROWN    8700000u /* ... less than 1,024 take */
#define PROGRAMS 100u
#define IDLE_MS  2000u
#define WAKES    8 /* of an idle program's threads in that time */
#define TRIES    10u

static struct rig rig;

/* A context on a device, whose engine is in this program. */
static void join(struct port_end *e, const char *device)
{
    setenv("URNIC_ENGINE", "application", 1);
    *e = (struct port_end){.size = SIZE};
    rig_await_link(&rig, device);
    OK(urnic_open_at(rig.socket, device, -1, &e->ctx));
    OK(urnic_alloc_pd(e->ctx, &e->pd));
    OK(urnic_create_cq(e->ctx, 64, NULL, NULL, &e->cq));
    e->mem = calloc(1, SIZE);
    OK(urnic_reg_mr(e->pd, e->mem, SIZE, PORT_ALL, &e->mr));
}

static const char *address(const char *device)
{
    return strcmp(device, "urn0") == 0 ? "10.0.0.1" : "10.0.0.2";
}

/* Octets of this process's rings. */
static size_t ring_octets(void)
{
    unsigned long from, to;
    size_t all = 0;
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    ck_assert_ptr_nonnull(maps);
    while (fgets(line, sizeof(line), maps)) {
        if (strstr(line, "urnic-channel") && sscanf(line, "%lx-%lx", &from, &to) == 2)
            all += to - from;
    }
    fclose(maps);
    return all;
}

/* Post receives, as many as the sender has messages on their way. */
static int post_recvs(void *arg, struct urnic_qp *qp)
{
    int err = 0;
    for (unsigned i = 0; err == 0 && i < DEPTH + 8; i++)
        err = port_post_recv(arg, qp);
    return err;
}

/* Accept a connection, and take messages until it ends. */
static void receiver(void *arg)
{
    const char *device = arg;
    struct port_where here;
    struct port_end e;
    join(&e, device);
    port_listen(&e);
    struct urnic_conn_attr attr = port_attr(&e, &here);
    OK(urnic_accept_conn(e.listener, &attr, post_recvs, &e, &e.conn));
    while (port_await(&e).status == URNIC_WC_SUCCESS)
        OK(port_post_recv(&e, e.conn->qp));
    _exit(0); /* receives are left */
}

/* Returns the messages that were moved in PUMP_NS. */
static unsigned pump(struct port_end *e, enum urnic_wr_opcode op)
{
    const uint64_t until = port_now() + PUMP_NS;
    unsigned sent = 0, done = 0;
    while (done < sent || port_now() < until) {
        for (; sent < done + DEPTH && port_now() < until; sent++)
            OK(port_post(e, op, 0, 0, MESSAGE));
        struct urnic_wc wc = port_await(e);
        ck_assert_msg(wc.status == URNIC_WC_SUCCESS, "%s", urnic_wc_status_str(wc.status));
        done++;
    }
    ck_assert_uint_gt(done, 0);
    return done;
}

static void expect_no_drops(void)
{
    ck_assert_int_eq(rig_counter(&rig, "urn0", "channel_drops"), 0);
    ck_assert_int_eq(rig_counter(&rig, "urn1", "channel_drops"), 0);
}

static void start_memif(void)
{
    char a[160], b[160];
    const char *args[] = {"--device", a, "--device", b, NULL};
    const char *form = "name=urn%u,port=memif:@urnic-rings-%d,role=%s,addr=10.0.0.%u/24";
    snprintf(a, sizeof(a), form, 0u, (int)getpid(), "server", 1u);
    snprintf(b, sizeof(b), form, 1u, (int)getpid(), "client", 2u);
    rig_start(&rig, args);
}

/* The other program's device, and whether the two devices are joined by memif. */
static const struct {
    const char *device;
    bool memif;
} places[] = {
    {"urn1", false}, /* an emulated link */
    {"urn0", false}, /* inside the switch */
    {"urn1", true},
};

START_TEST(shm_13_no_frame_is_lost_at_full_speed)
{
    static const enum urnic_wr_opcode ops[] = {URNIC_WR_RDMA_WRITE, URNIC_WR_RDMA_READ,
                                               URNIC_WR_SEND};
    const char *device = places[_i / 3].device;
    struct port_end e;
    if (places[_i / 3].memif)
        start_memif();
    else
        rig_start_pair(&rig, "");
    pid_t pid = port_child(receiver, (void *)(uintptr_t)device);
    join(&e, "urn0");
    port_connect(&e, address(device));
    pump(&e, ops[_i % 3]);
    port_close(&e);
    port_await_child(pid);
    expect_no_drops();
    rig_stop(&rig);
}
END_TEST

START_TEST(shm_14_a_channel_grows_with_its_queue_pairs)
{
    struct port_end e;
    rig_start_pair(&rig, "");
    pid_t pid = port_child(receiver, (void *)(uintptr_t) "urn1");
    join(&e, "urn0");
    ck_assert_uint_gt(ring_octets(), 0);
    ck_assert_uint_lt(ring_octets(), SMALL);
    port_connect(&e, "10.0.0.2");
    pump(&e, URNIC_WR_RDMA_WRITE);
    ck_assert_uint_gt(ring_octets(), GROWN); /* the old rings are gone */
    ck_assert_uint_lt(ring_octets(), GROWN + SMALL);
    pump(&e, URNIC_WR_RDMA_READ);
    port_close(&e);
    ck_assert_uint_eq(ring_octets(), 0);
    port_await_child(pid);
    expect_no_drops();
    rig_stop(&rig);
}
END_TEST

/* ---- many programs ---- */

/* Voluntary context switches of this process's threads. */
static long wakes(void)
{
    struct rusage u;
    OK(getrusage(RUSAGE_SELF, &u));
    return u.ru_nvcsw;
}

/* Open a device, and do nothing. Says so by an octet, and then how often it was awake. */
static void idle(void *arg)
{
    const int *out = arg;
    struct port_end e;
    join(&e, "urn0");
    port_nap(200); /* its thread polls for a moment */
    ck_assert_int_eq(write(*out, "o", 1), 1);
    long woken = WAKES + 1;
    for (unsigned i = 0; i < TRIES && woken > WAKES;
         i++) { /* on a busy machine it polls for longer */
        woken = wakes();
        port_nap(IDLE_MS);
        woken = wakes() - woken;
    }
    ck_assert_msg(woken <= WAKES, "an idle program woke %ld times", woken);
    ck_assert_int_eq(write(*out, "i", 1), 1);
    for (;;)
        pause();
}

static void await_octets(int fd, unsigned n)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char c;
    while (n-- > 0) {
        ck_assert_int_eq(poll(&p, 1, 60000), 1);
        ck_assert_int_eq(read(fd, &c, 1), 1);
    }
}

/* The best of some tries, which ends once a try moves `enough`: other work on the machine takes its
 * share of each. */
static unsigned best(struct port_end *e, unsigned tries, unsigned enough)
{
    unsigned most = 0;
    while (tries-- > 0 && most < enough) {
        unsigned n = pump(e, URNIC_WR_RDMA_WRITE);
        most = n > most ? n : most;
    }
    return most;
}

START_TEST(shm_08_programs_that_do_nothing_cost_nothing)
{
    pid_t pid[PROGRAMS], other;
    struct port_end e;
    int out[2];
    rig_start_pair(&rig, "");
    OK(pipe(out));
    other = port_child(receiver, (void *)(uintptr_t) "urn1");
    join(&e, "urn0");
    port_connect(&e, "10.0.0.2");
    const unsigned alone = best(&e, 3, UINT_MAX);
    for (unsigned i = 0; i < PROGRAMS; i++)
        pid[i] = port_child(idle, &out[1]);
    await_octets(out[0], 2 * PROGRAMS);
    /* scripts/bench measures the share: four_of_1000_app. */
    const unsigned beside = best(&e, TRIES, alone / 2);
    ck_assert_msg(beside >= alone / 2, "%u messages, and %u beside idle programs", alone, beside);
    port_close(&e);
    port_await_child(other);
    for (unsigned i = 0; i < PROGRAMS; i++) {
        kill(pid[i], SIGKILL);
        ck_assert_int_eq(waitpid(pid[i], NULL, 0), pid[i]);
    }
    expect_no_drops();
    rig_stop(&rig);
}
END_TEST

int main(void)
{
    const struct port_test tests[] = {
        {"no drops", shm_13_no_frame_is_lost_at_full_speed, 9},
        {"growing", shm_14_a_channel_grows_with_its_queue_pairs, 1},
        {"many", shm_08_programs_that_do_nothing_cost_nothing, 1},
    };
    return port_run("rings", tests, sizeof(tests) / sizeof(tests[0]));
}
