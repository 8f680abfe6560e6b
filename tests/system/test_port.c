/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A program that owns a port: no daemon, the engine in the process (urnic_open_port).
 */
#include "port_rig.h"

#include <dirent.h>

#define SIZE ((size_t)256 << 10)
#define LATE ((size_t)512 << 20) /* octets; freed by a thread of its own */

static void fill(struct port_end *e)
{
    for (size_t i = 0; i < e->size; i++)
        e->mem[i] = (uint8_t)(i * 2654435761u >> 24);
}

/* Everything that a connection does, from b to a, whose program calls nothing meanwhile. */
static void use(struct port_end *b)
{
    const uint32_t half = SIZE / 2;
    uint64_t word, old;
    fill(b);
    port_do(b, URNIC_WR_RDMA_WRITE, 0, 0, half);
    port_do(b, URNIC_WR_RDMA_READ, half, 0, half);
    ck_assert_mem_eq(b->mem, b->mem + half, half);
    memcpy(&word, b->mem, 8);
    for (uint64_t i = 0; i < 3; i++) {
        port_do(b, URNIC_WR_ATOMIC_FETCH_AND_ADD, half, 0, 8);
        memcpy(&old, b->mem + half, 8);
        ck_assert_uint_eq(old, word + i);
    }
}

START_TEST(test_one_process)
{
    struct port_end a, b;
    port_pair(&a, &b, "one", "", SIZE);
    port_join(&a, &b);
    use(&b);
    for (size_t i = 8; i < SIZE / 2; i++)
        ck_assert_uint_eq(a.mem[i], b.mem[i]);
    port_do(&b, URNIC_WR_SEND, 0, 0, 1000);
    struct urnic_wc wc = port_await(&a);
    ck_assert_uint_eq(wc.status, URNIC_WC_SUCCESS);
    ck_assert_uint_eq(wc.byte_len, 1000);
    ck_assert_mem_eq(a.mem, b.mem, 1000);
    port_close(&b);
    port_close(&a);
}
END_TEST

/* ---- two processes ---- */

struct two {
    const char *server, *client, *to;
};

/* Serves without a call, until a word in its memory shows that the client has finished. */
static void serve(void *arg)
{
    const struct two *t = arg;
    struct port_end e;
    port_open(&e, t->server, SIZE);
    port_listen(&e);
    port_accept(&e);
    while (__atomic_load_n(&e.mem[SIZE - 1], __ATOMIC_ACQUIRE) != 99)
        port_nap(1);
    port_close(&e);
}

static const struct two twos[] = {
    {"memif:@urnic_test_port,role=server,addr=10.0.0.1/24",
     "memif:@urnic_test_port,role=client,addr=10.0.0.2/24", "10.0.0.1"},
    {"udp:lo,addr=127.0.0.1/8,loopback=true", "udp:lo,addr=127.0.0.2/8,loopback=true", "127.0.0.1"},
};

START_TEST(test_two_processes)
{
    static const char *const progress[] = {"", ",progress=thread", ",progress=poll"};
    const struct two *of = &twos[_i / 3];
    char client[128];
    struct two t = *of;
    struct port_end e;
    snprintf(client, sizeof(client), "%s%s", of->client, progress[_i % 3]);
    t.client = client;
    pid_t server = port_child(serve, &t);
    port_open(&e, t.client, SIZE);
    port_connect(&e, t.to);
    use(&e);
    e.mem[0] = 99;
    port_do(&e, URNIC_WR_RDMA_WRITE, 0, SIZE - 1, 1);
    port_close(&e);
    port_await_child(server);
}
END_TEST

/* A program that is stopped for a while continues, and so does its engine. */
START_TEST(test_stopped)
{
    struct two t = twos[0];
    struct port_end e;
    pid_t server = port_child(serve, &t);
    port_open(&e, t.client, SIZE);
    port_connect(&e, t.to);
    for (unsigned i = 0; i < 5; i++) {
        OK(kill(server, SIGSTOP));
        OK(port_post(&e, URNIC_WR_RDMA_WRITE, 0, 0, 65536));
        port_nap(100);
        OK(kill(server, SIGCONT));
        ck_assert_uint_eq(port_await(&e).status, URNIC_WC_SUCCESS);
    }
    e.mem[0] = 99;
    port_do(&e, URNIC_WR_RDMA_WRITE, 0, SIZE - 1, 1);
    port_close(&e);
    port_await_child(server);
}
END_TEST

/* Polls its completion and exits: the peer's request is answered all the same. */
static void poll_and_exit(void *arg)
{
    const struct two *t = arg;
    struct port_end e;
    port_open(&e, t->server, SIZE);
    port_listen(&e);
    port_accept(&e);
    ck_assert_uint_eq(port_await(&e).status, URNIC_WC_SUCCESS);
}

START_TEST(test_poll_and_exit)
{
    struct two t = twos[0];
    struct port_end e;
    pid_t server = port_child(poll_and_exit, &t);
    port_open(&e, t.client, SIZE);
    port_connect(&e, t.to);
    port_do(&e, URNIC_WR_SEND, 0, 0, 10);
    port_await_child(server);
    port_close(&e);
}
END_TEST

/* ---- children ---- */

static void be_child(void *arg)
{
    struct port_end *e = arg;
    struct urnic_wc wc;
    struct urnic_pd *pd;
    struct urnic_async_event ev;
    alarm(20); /* nothing waits for a lock that the parent's thread had */
    ck_assert_int_eq(urnic_alloc_pd(e->ctx, &pd), -ENODEV);
    ck_assert_int_eq(urnic_poll_cq(e->cq, 1, &wc), -ENODEV);
    ck_assert_int_eq(port_post(e, URNIC_WR_RDMA_WRITE, 0, 0, 8), -ENODEV);
    ck_assert_int_eq(port_post_recv(e, e->conn->qp), -ENODEV);
    ck_assert_int_eq(urnic_get_async_event(e->ctx, &ev), -ENODEV);
    ck_assert_int_eq(urnic_dereg_mr(e->mr), -ENODEV);
    ck_assert_int_eq(urnic_close(e->ctx), -ENODEV);
    memset(e->mem, 0xEE, e->size); /* its own copy */
    struct port_end mine;
    port_open(&mine, "mem:child,addr=10.0.0.9/24", 4096);
    port_close(&mine);
}

START_TEST(test_fork)
{
    struct port_end a, b;
    port_pair(&a, &b, "fork", "", SIZE);
    port_join(&a, &b);
    for (unsigned i = 0; i < 3; i++) {
        pid_t child = port_child(be_child, &b);
        use(&b);
        port_await_child(child);
    }
    use(&b);
    port_close(&b);
    port_close(&a);
}
END_TEST

/* ---- threads ---- */

static uint64_t blocked_by(const char *tid, char name[32])
{
    char path[320], line[256];
    unsigned long long set = 0;
    snprintf(path, sizeof(path), "/proc/self/task/%s/status", tid);
    FILE *f = fopen(path, "re");
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof(line), f)) {
        (void)!sscanf(line, "Name: %31s", name);
        (void)!sscanf(line, "SigBlk: %llx", &set);
    }
    fclose(f);
    return set;
}

/* One thread a port, which takes none of the program's signals. */
START_TEST(test_threads)
{
    struct port_end a, b;
    char name[32];
    unsigned workers = 0;
    port_pair(&a, &b, "threads", ",progress=thread", SIZE);
    port_join(&a, &b); /* they run: a thread that begins has all signals blocked */
    DIR *dir = opendir("/proc/self/task");
    for (struct dirent *d; (d = readdir(dir));) {
        if (d->d_name[0] == '.')
            continue;
        uint64_t set = blocked_by(d->d_name, name);
        if (strncmp(name, "worker-", 7) != 0)
            continue;
        workers++;
        static const int taken[] = {SIGTERM, SIGINT, SIGUSR1, SIGALRM, SIGCHLD, SIGPIPE, SIGHUP};
        static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
        for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
            ck_assert_msg(set >> (taken[i] - 1) & 1, "signal %d reaches %s", taken[i], name);
        for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
            ck_assert_msg(!(set >> (own[i] - 1) & 1), "signal %d is blocked in %s", own[i], name);
    }
    closedir(dir);
    ck_assert_uint_eq(workers, 2);
    port_close(&b);
    port_close(&a);
}
END_TEST

struct maker {
    struct port_end *e;
    unsigned made;
};

static void *make(void *arg)
{
    struct maker *m = arg;
    for (; m->made < 100; m->made++) {
        struct urnic_cq *cq;
        struct urnic_mr *mr;
        void *mem;
        OK(urnic_create_cq(m->e->ctx, 16, NULL, NULL, &cq));
        OK(urnic_alloc(m->e->ctx, 8192, &mem));
        OK(urnic_reg_mr(m->e->pd, mem, 8192, PORT_ALL, &mr));
        OK(urnic_dereg_mr(mr));
        OK(urnic_reg_mr(m->e->pd, &m->made, sizeof(m->made), PORT_ALL, &mr));
        OK(urnic_dereg_mr(mr));
        OK(urnic_free(m->e->ctx, mem));
        OK(urnic_destroy_cq(cq));
    }
    return NULL;
}

/* Objects come and go on four threads while a fifth one sends. */
START_TEST(test_many_threads)
{
    struct port_end a, b;
    struct maker m[4];
    pthread_t thread[4];
    port_pair(&a, &b, "many", "", SIZE);
    port_join(&a, &b);
    for (unsigned i = 0; i < 4; i++) {
        m[i] = (struct maker){.e = i % 2 == 0 ? &a : &b};
        OK(pthread_create(&thread[i], NULL, make, &m[i]));
    }
    for (unsigned i = 0; i < 5; i++)
        use(&b);
    for (unsigned i = 0; i < 4; i++) {
        OK(pthread_join(thread[i], NULL));
        ck_assert_uint_eq(m[i].made, 100);
    }
    port_close(&b);
    port_close(&a);
}
END_TEST

/* ---- memory, ends, errors ---- */

/* Rights follow the mapping; a hole is none. */
START_TEST(test_memory)
{
    static const char constant[64] = "can't be written";
    struct port_end e;
    struct urnic_mr *mr;
    uint8_t stack[300];
    port_open(&e, "mem:memory,addr=10.0.0.1/24", 4096);
    OK(urnic_reg_mr(e.pd, stack, sizeof(stack), PORT_ALL, &mr));
    OK(urnic_rereg_mr(mr, NULL, URNIC_ACCESS_REMOTE_READ));
    OK(urnic_rereg_mr(mr, NULL, PORT_ALL));
    OK(urnic_dereg_mr(mr));
    OK(urnic_reg_mr(e.pd, (void *)(uintptr_t)constant, sizeof(constant), 0, &mr));
    OK(urnic_dereg_mr(mr));
    ck_assert_int_eq(
        urnic_reg_mr(e.pd, (void *)(uintptr_t)constant, sizeof(constant), PORT_ALL, &mr), -EFAULT);
    ck_assert_int_eq(urnic_reg_mr(e.pd, (void *)4096, 4096, 0, &mr), -EFAULT);
    ck_assert_int_eq(urnic_close(e.ctx), -EBUSY);
    port_close(&e);
}
END_TEST

/* The peer learns of the end, in each way that it can come. */
START_TEST(test_ends)
{
    struct port_end a, b;
    struct urnic_cm_event ev;
    port_pair(&a, &b, "ends", "", SIZE);
    port_join(&a, &b);
    if (_i == 0)
        urnic_hang_up(b.ctx);
    else
        OK(urnic_disconnect(b.conn->id));
    do
        OK(urnic_get_cm_event(a.conn->channel, &ev));
    while (ev.event == URNIC_CM_ESTABLISHED);
    ck_assert_uint_eq(ev.event, URNIC_CM_DISCONNECTED);
    if (_i == 0) {
        struct urnic_pd *pd;
        ck_assert_int_eq(urnic_alloc_pd(b.ctx, &pd), -ENODEV);
        ck_assert_int_eq(port_post(&b, URNIC_WR_RDMA_WRITE, 0, 0, 8), -ENODEV);
    }
    port_close(&b);
    port_close(&a);
}
END_TEST

START_TEST(test_errors)
{
    static const struct {
        const char *spec;
        int err;
        const char *says;
    } bad[] = {
        {"", -EINVAL, "DRIVER:ARGUMENTS"},
        {"nosuch:x", -EINVAL, "nosuch"},
        {"memif:/tmp/x.sock", -EINVAL, "role"},
        {"mem:a,addr=1.2.3", -EINVAL, "addr=1.2.3"},
        {"mem:a,addr=10.0.0.1/24,log-level=loud", -EINVAL, "log-level=loud"},
        {"mem:a,addr=10.0.0.1/24,progress=never", -EINVAL, "progress=never"},
        {"mem:a,addr=10.0.0.1/24,workers=2", -EINVAL, "workers=2"},
        {"mem:a,addr=10.0.0.1/24,vlan=5000", -EINVAL, "vlan=5000"},
        {"udp:nosuchif", -ENODEV, "nosuchif"},
        {"memif:/nonexistent/dir/x.sock,role=server,addr=10.0.0.1/24", -ENOENT, "/nonexistent"},
    };
    struct urnic_context *ctx = NULL;
    char why[256], little[8];
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        int err = urnic_open_port(bad[i].spec, &ctx, why, sizeof(why));
        ck_assert_msg(err == bad[i].err, "%s: %d, %s", bad[i].spec, err, why);
        ck_assert_msg(strstr(why, bad[i].says) != NULL, "%s: %s", bad[i].spec, why);
        ck_assert_int_eq(urnic_open_port(bad[i].spec, &ctx, little, sizeof(little)), bad[i].err);
        ck_assert_uint_eq(strlen(little), sizeof(little) - 1);
        ck_assert_int_eq(urnic_open_port(bad[i].spec, &ctx, NULL, 0), bad[i].err);
    }
    ck_assert_ptr_null(ctx);
}
END_TEST

/* Without the engine library, and with one in another place. */
static void without_library(void *arg)
{
    struct urnic_context *ctx;
    char why[256];
    setenv("URNIC_PLUGIN_DIR", arg, 1);
    ck_assert_int_eq(urnic_open_port("mem:a,addr=10.0.0.1/24", &ctx, why, sizeof(why)), -ENOSYS);
    ck_assert_ptr_nonnull(strstr(why, "liburnic-engine.so"));
}

START_TEST(test_no_library)
{
    char dir[] = "/tmp/test_port.XXXXXX", path[64];
    ck_assert_ptr_nonnull(mkdtemp(dir));
    port_await_child(port_child(without_library, dir));
    snprintf(path, sizeof(path), "%s/liburnic-engine.so", dir);
    FILE *f = fopen(path, "we");
    ck_assert_ptr_nonnull(f);
    fputs("not a library", f);
    fclose(f);
    port_await_child(port_child(without_library, dir));
    unlink(path);
    rmdir(dir);
}
END_TEST

/* Ports and descriptors are given back. */
static unsigned descriptors(void)
{
    unsigned n = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

/* Memory that takes long to free, and the end of its port meanwhile. */
static void free_late(struct port_end *e)
{
    void *memory;
    OK(urnic_alloc(e->ctx, LATE, &memory));
    memset(memory, 1, LATE);
    OK(urnic_free(e->ctx, memory));
}

START_TEST(test_again)
{
    struct port_end a, b;
    unsigned before = 0;
    for (unsigned i = 0; i < 20; i++) {
        port_pair(&a, &b, "again", "", SIZE);
        if (i % 4 == 0) {
            port_join(&a, &b);
            use(&b);
        } else if (i % 4 == 1) {
            free_late(&a);
        }
        port_close(&b);
        port_close(&a);
        if (i == 0)
            before = descriptors();
    }
    ck_assert_uint_eq(descriptors(), before);
}
END_TEST

int main(void)
{
    const struct port_test tests[] = {
        {"no_library", test_no_library, 1},
        {"one_process", test_one_process, 1},
        {"two_processes", test_two_processes, (int)(sizeof(twos) / sizeof(twos[0])) * 3},
        {"stopped", test_stopped, 1},
        {"poll_and_exit", test_poll_and_exit, 20},
        {"fork", test_fork, 1},
        {"threads", test_threads, 1},
        {"many_threads", test_many_threads, 1},
        {"memory", test_memory, 1},
        {"ends", test_ends, 2},
        {"errors", test_errors, 1},
        {"again", test_again, 1},
    };
    return port_run("port", tests, sizeof(tests) / sizeof(tests[0]));
}
