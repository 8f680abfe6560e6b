/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory of a program that owns a port: any of it can be registered, and memory that the program
 * removes under traffic costs the request, never the program (MR-12).
 */
#include "port_rig.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>

#define PAGE 4096u
#define SIZE ((size_t)64 << 10)
#define GIB6 ((size_t)6 << 30)
#define NEAR 4096u /* regions in one page */
#define MANY 10000u

/* Two ports of this process; `more` for b. */
static void pair(struct port_end *a, struct port_end *b, const char *link, const char *more)
{
    char spec[128];
    snprintf(spec, sizeof(spec), "mem:%s,addr=10.0.0.1/24", link);
    port_open(a, spec, SIZE);
    snprintf(spec, sizeof(spec), "mem:%s,addr=10.0.0.2/24%s", link, more);
    port_open(b, spec, SIZE);
}

/* Replaces memory from malloc. */
static void use_memory(struct port_end *e, uint8_t *mem, size_t size, unsigned access)
{
    OK(urnic_dereg_mr(e->mr));
    free(e->mem);
    e->mem = mem;
    e->size = size;
    OK(urnic_reg_mr(e->pd, mem, size, access, &e->mr));
}

static void *accept_thread(void *e)
{
    port_accept(e);
    return NULL;
}

static void join(struct port_end *a, struct port_end *b)
{
    pthread_t thread;
    port_listen(a);
    OK(pthread_create(&thread, NULL, accept_thread, a));
    port_connect(b, "10.0.0.1");
    OK(pthread_join(thread, NULL));
}

static void end(struct port_end *e)
{
    e->mem = NULL; /* not malloc's */
    port_close(e);
}

static uint8_t *map(size_t size, int prot, int flags, int fd)
{
    uint8_t *at = mmap(NULL, size, prot, flags, fd, 0);
    ck_assert_ptr_ne(at, MAP_FAILED);
    return at;
}

static int object(size_t size)
{
    int fd = memfd_create("test_port_memory", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    OK(ftruncate(fd, (off_t)size));
    return fd;
}

/* ---- registration ---- */

#define RW (PROT_READ | PROT_WRITE)

static uint8_t *of_private_file(void)
{
    return map(SIZE, RW, MAP_PRIVATE, object(SIZE));
}

static uint8_t *of_shared_file(void)
{
    char path[] = "/var/tmp/test_port_memory.XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    unlink(path);
    OK(ftruncate(fd, (off_t)SIZE));
    return map(SIZE, RW, MAP_SHARED, fd);
}

static uint8_t *of_sysv(void)
{
    int id = shmget(IPC_PRIVATE, SIZE, IPC_CREAT | 0600);
    ck_assert_int_ge(id, 0);
    uint8_t *at = shmat(id, NULL, 0);
    shmctl(id, IPC_RMID, NULL);
    ck_assert(at != (void *)-1);
    return at;
}

static uint8_t *of_anonymous(void)
{
    return map(SIZE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static uint8_t *of_huge(void)
{
    uint8_t *at = map((size_t)4 << 20, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    at += -(uintptr_t)at & (((uintptr_t)2 << 20) - 1);
    (void)madvise(at, (size_t)2 << 20, MADV_HUGEPAGE);
    return at;
}

static uint8_t *of_static(void)
{
    static uint8_t own[SIZE];
    return own;
}

static uint8_t *(*const kinds[])(void) = {
    of_anonymous, of_private_file, of_shared_file, of_sysv, of_huge, of_static,
};

/* Each kind of memory serves all requests, as both ends. */
START_TEST(mr_12_kinds)
{
    struct port_end a, b;
    uint64_t old;
    pair(&a, &b, "kinds", "");
    use_memory(&a, kinds[_i](), SIZE, PORT_ALL);
    join(&a, &b);
    memset(b.mem, 0x5A, SIZE / 2);
    port_do(&b, URNIC_WR_RDMA_WRITE, 0, 100, 9000);
    ck_assert_mem_eq(a.mem + 100, b.mem, 9000);
    port_do(&b, URNIC_WR_RDMA_READ, SIZE / 2, 100, 9000);
    ck_assert_mem_eq(b.mem + SIZE / 2, b.mem, 9000);
    a.mem[8] = 41;
    port_do(&b, URNIC_WR_ATOMIC_FETCH_AND_ADD, 0, 8, 8);
    memcpy(&old, b.mem, 8);
    ck_assert_uint_eq(old, 41);
    ck_assert_uint_eq(a.mem[8], 42);
    memcpy(a.mem, "the other way", 14);
    port_do(&a, URNIC_WR_SEND, 0, 0, 14);
    ck_assert_uint_eq(port_await(&b).status, URNIC_WC_SUCCESS);
    ck_assert_mem_eq(b.mem, "the other way", 14);
    port_close(&b);
    end(&a);
}
END_TEST

/* ATM-05: all atomics are instructions, and the device announces it. */
START_TEST(atm_05_capability)
{
    struct port_end e;
    struct urnic_device_attr attr;
    port_open(&e, "mem:atomics,addr=10.0.0.1/24", PAGE);
    OK(urnic_query_device(e.ctx, &attr));
    ck_assert_uint_eq(attr.atomic_cap, 2); /* IBV_ATOMIC_GLOB */
    port_close(&e);
}
END_TEST

/* Rights follow the mapping, in each page of the range; the errors are ibv_reg_mr's. */
START_TEST(mr_12_rights)
{
    struct port_end e;
    struct urnic_mr *mr;
    port_open(&e, "mem:rights,addr=10.0.0.1/24", PAGE);
    uint8_t *at = map(8 * PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    OK(mprotect(at + 2 * PAGE, PAGE, PROT_READ));
    OK(mprotect(at + 4 * PAGE, PAGE, PROT_NONE));
    OK(munmap(at + 6 * PAGE, PAGE));
    static const struct {
        unsigned from, to; /* octets */
        unsigned access;
        int err;
    } rows[] = {
        {0, 2 * PAGE, PORT_ALL, 0},
        {0, 2 * PAGE + 1, PORT_ALL, -EFAULT},
        {0, 4 * PAGE, URNIC_ACCESS_REMOTE_READ, 0},
        {0, 4 * PAGE + 1, URNIC_ACCESS_REMOTE_READ, -EFAULT},
        {3 * PAGE - 1, 3 * PAGE, URNIC_ACCESS_LOCAL_WRITE, -EFAULT},
        {3 * PAGE, 4 * PAGE, PORT_ALL, 0},
        {4 * PAGE, 4 * PAGE + 1, 0, -EFAULT},
        {5 * PAGE, 6 * PAGE, PORT_ALL, 0},
        {5 * PAGE, 6 * PAGE + 1, 0, -EFAULT},
        {6 * PAGE + 9, 6 * PAGE + 10, 0, -EFAULT},
        {7 * PAGE, 8 * PAGE, PORT_ALL, 0},
        {5 * PAGE, 8 * PAGE, 0, -EFAULT},
        {6 * PAGE, 6 * PAGE, 0, 0}, /* no octets */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int err =
            urnic_reg_mr(e.pd, at + rows[i].from, rows[i].to - rows[i].from, rows[i].access, &mr);
        ck_assert_msg(err == rows[i].err, "row %zu: %d", i, err);
        if (err == 0)
            OK(urnic_dereg_mr(mr));
    }
    ck_assert_int_eq(urnic_reg_mr(e.pd, at, SIZE_MAX - 5, 0, &mr), -EINVAL);
    OK(urnic_reg_mr(e.pd, at + 2 * PAGE, PAGE, 0, &mr));
    ck_assert_int_eq(urnic_rereg_mr(mr, NULL, URNIC_ACCESS_LOCAL_WRITE), -EFAULT);
    OK(urnic_dereg_mr(mr));
    port_close(&e);
}
END_TEST

static size_t resident(void)
{
    size_t all = 0, pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    ck_assert(f != NULL && fscanf(f, "%zu %zu", &all, &pages) == 2);
    fclose(f);
    return pages * PAGE;
}

/* 6 GiB without a page; only the used pages are allocated. */
START_TEST(mr_12_untouched)
{
    struct port_end a, b;
    pair(&a, &b, "untouched", "");
    uint8_t *at = map(GIB6, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    size_t before = resident();
    use_memory(&a, at, GIB6, PORT_ALL);
    ck_assert_uint_lt(resident() - before, 4 * SIZE);
    join(&a, &b);
    memset(b.mem, 7, SIZE);
    before = resident();
    port_do(&b, URNIC_WR_RDMA_WRITE, 0, GIB6 - 10, 10);
    port_do(&b, URNIC_WR_RDMA_WRITE, 0, GIB6 / 2, 5000);
    ck_assert_mem_eq(at + GIB6 - 10, b.mem, 10);
    ck_assert_mem_eq(at + GIB6 / 2, b.mem, 5000);
    ck_assert_uint_lt(resident() - before, (size_t)8 << 20);
    port_close(&b);
    end(&a);
    munmap(at, GIB6);
}
END_TEST

/* 10,000 regions, 4,096 of them in one page, and a request for each of some. */
START_TEST(mr_12_many)
{
    static struct urnic_mr *mr[MANY];
    struct port_end a, b;
    pair(&a, &b, "many", "");
    uint8_t *at = map((size_t)MANY * PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    join(&a, &b);
    size_t before = resident();
    for (unsigned i = 0; i < MANY; i++) {
        uint8_t *of = i < NEAR ? at + i : at + (size_t)i * PAGE;
        OK(urnic_reg_mr(a.pd, of, i < NEAR ? 1 : PAGE, PORT_ALL, &mr[i]));
    }
    ck_assert_uint_lt(resident() - before, (size_t)16 << 20);
    for (unsigned i = 0; i < MANY; i += 97) {
        b.mem[0] = (uint8_t)(i | 1);
        b.there = (struct port_where){.addr = mr[i]->iova, .rkey = mr[i]->rkey};
        port_do(&b, URNIC_WR_RDMA_WRITE, 0, 0, 1);
        ck_assert_uint_eq(*(uint8_t *)mr[i]->addr, (uint8_t)(i | 1));
    }
    for (unsigned i = 0; i < MANY; i++)
        OK(urnic_dereg_mr(mr[i]));
    port_close(&b);
    port_close(&a);
    munmap(at, (size_t)MANY * PAGE);
}
END_TEST

/* ---- memory that goes ---- */

/* How it goes. */
enum way { UNMAPPED, NO_ACCESS, READ_ONLY, TRUNCATED, WAYS };

static int lost_fd;

static uint8_t *lose_later(enum way way)
{
    if (way != TRUNCATED)
        return map(SIZE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    lost_fd = object(SIZE);
    return map(SIZE, RW, MAP_SHARED, lost_fd);
}

/* Its second half is gone. */
static void lose(uint8_t *at, enum way way)
{
    if (way == UNMAPPED)
        OK(munmap(at + SIZE / 2, SIZE / 2));
    else if (way == TRUNCATED)
        OK(ftruncate(lost_fd, (off_t)SIZE / 2));
    else
        OK(mprotect(at + SIZE / 2, SIZE / 2, way == READ_ONLY ? PROT_READ : PROT_NONE));
}

/* The requests of b to a. The memory of one of them is removed. */
static const struct {
    enum urnic_wr_opcode opcode;
    bool own;    /* b's */
    bool writes; /* to removed memory */
    uint32_t len;
    unsigned status;
} asked[] = {
    {URNIC_WR_RDMA_WRITE, false, true, 8, URNIC_WC_REM_ACCESS_ERR},
    {URNIC_WR_RDMA_WRITE, false, true, 9000, URNIC_WC_REM_ACCESS_ERR},
    {URNIC_WR_RDMA_READ, false, false, 8, URNIC_WC_REM_ACCESS_ERR},
    {URNIC_WR_RDMA_READ, false, false, 9000, URNIC_WC_REM_ACCESS_ERR},
    {URNIC_WR_ATOMIC_FETCH_AND_ADD, false, true, 8, URNIC_WC_REM_ACCESS_ERR},
    {URNIC_WR_SEND, false, true, SIZE * 2 / 3, URNIC_WC_REM_OP_ERR},
    {URNIC_WR_RDMA_WRITE, true, false, 8, URNIC_WC_LOC_PROT_ERR},
    {URNIC_WR_RDMA_WRITE, true, false, 9000, URNIC_WC_LOC_PROT_ERR},
    {URNIC_WR_SEND, true, false, 1000, URNIC_WC_LOC_PROT_ERR},
    {URNIC_WR_RDMA_READ, true, true, 9000, URNIC_WC_LOC_PROT_ERR},
    {URNIC_WR_ATOMIC_FETCH_AND_ADD, true, true, 8, URNIC_WC_LOC_PROT_ERR},
};
#define ASKED (sizeof(asked) / sizeof(asked[0]))

static const char *const progress[] = {"", ",progress=thread", ",progress=poll"};

/* The offset of a request of this length: a long one crosses the middle. */
static size_t begins(uint32_t len)
{
    return len > SIZE / 2 ? 0 : SIZE / 2 - (len > 8 ? 600 : 0);
}

/* One request, and one way. Longer ones lie across the middle, so a part of them is there. */
static void ask(unsigned i, enum way way, const char *more)
{
    struct port_end a, b;
    bool own = asked[i].own, reads = way == READ_ONLY && !asked[i].writes;
    pair(&a, &b, "ask", more);
    struct port_end *owner = own ? &b : &a;
    uint8_t *at = lose_later(way);
    memset(at, 1, SIZE);
    use_memory(owner, at, SIZE, PORT_ALL);
    join(&a, &b);
    size_t here = own ? begins(asked[i].len) : 0;
    size_t there = own ? 0 : begins(asked[i].len);
    port_do(&b, asked[i].opcode == URNIC_WR_SEND ? URNIC_WR_RDMA_WRITE : asked[i].opcode, here,
            there, asked[i].len);
    lose(at, way);
    OK(port_post(&b, asked[i].opcode, here, there, asked[i].len));
    struct urnic_wc wc = port_await(&b);
    ck_assert_msg(wc.status == (reads ? URNIC_WC_SUCCESS : asked[i].status), "%u, way %u: %s", i,
                  way, urnic_wc_status_str(wc.status));
    port_close(own ? &a : &b);
    end(owner);
    munmap(at, SIZE);
    if (way == TRUNCATED)
        close(lost_fd);
}

/* With progress=poll this thread makes all copies of b. A pair of ports takes half a second, so
 * only the first kind of progress is tried with all pairs of request and way. With the others each
 * request is tried with one way, and each way with some request. */
START_TEST(mr_12_gone)
{
    unsigned i = (unsigned)_i % ASKED, p = (unsigned)_i / ASKED;
    for (enum way way = 0; way < WAYS; way++)
        if (p == 0 || (enum way)((i + p) % WAYS) == way)
            ask(i, way, progress[p]);
}
END_TEST

/* A thread that blocks the signals makes copies all the same, and blocks them afterwards. */
START_TEST(mr_12_blocked)
{
    sigset_t all, is;
    sigfillset(&all);
    OK(pthread_sigmask(SIG_SETMASK, &all, NULL));
    OK(pthread_sigmask(SIG_BLOCK, NULL, &all)); /* as far as it goes */
    for (unsigned i = 0; i < ASKED; i++)
        ask(i, (enum way)(i % WAYS), progress[_i]);
    OK(pthread_sigmask(SIG_BLOCK, NULL, &is));
    for (int sig = 1; sig < 32; sig++)
        ck_assert_int_eq(sigismember(&is, sig), sigismember(&all, sig));
}
END_TEST

/* ---- the program's own handlers ---- */

static volatile unsigned handled;

static void handler(int sig, siginfo_t *info, void *context)
{
    (void)sig;
    (void)context;
    handled++;
    if (mprotect((void *)((uintptr_t)info->si_addr & ~(uintptr_t)(PAGE - 1)), PAGE, RW) != 0)
        _exit(1);
}

static void install(int flags)
{
    static uint8_t stack[65536];
    const stack_t own = {.ss_sp = stack, .ss_size = sizeof(stack)};
    struct sigaction act = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    sigemptyset(&act.sa_mask);
    OK(sigaltstack(&own, NULL));
    OK(sigaction(SIGSEGV, &act, NULL));
    OK(sigaction(SIGBUS, &act, NULL));
}

/* The program supplies pages in a handler of its own, which it installs before it opens its ports,
 * or before it registers memory, or afterwards, and which runs on a stack of its own or not. It
 * gets the faults of its own instructions and no others. */
START_TEST(mr_12_own_handler)
{
    int flags = _i & 1 ? SA_ONSTACK : 0;
    unsigned when = (unsigned)_i / 2;
    struct port_end a, b;
    uint8_t *at = map(SIZE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (when == 0)
        install(flags);
    pair(&a, &b, "handler", "");
    join(&a, &b);
    if (when == 1)
        install(flags);
    use_memory(&b, at, SIZE, PORT_ALL);
    if (when == 2) {
        install(flags);
        port_do(&b, URNIC_WR_RDMA_WRITE, 0, 0,
                8); /* so that a tenth of a second of rounds passes */
        port_nap(150);
        port_do(&b, URNIC_WR_RDMA_WRITE, 0, 0, 8);
    }
    OK(mprotect(at, 2 * PAGE, PROT_NONE));
    *(volatile uint8_t *)(at + 10) = 1;
    ck_assert_uint_eq(handled, 1);
    port_do(&b, URNIC_WR_RDMA_WRITE, 0, 0, PAGE);
    ck_assert_uint_eq(a.mem[10], 1);
    OK(port_post(&b, URNIC_WR_RDMA_WRITE, 0, 0, PAGE + 1));
    ck_assert_uint_eq(port_await(&b).status, URNIC_WC_LOC_PROT_ERR);
    ck_assert_uint_eq(handled, 1);
    *(volatile uint8_t *)(at + PAGE) = 1;
    ck_assert_uint_eq(handled, 2);
    port_close(&a);
    end(&b);
}
END_TEST

static void dies(void *arg)
{
    const int *sig = arg;
    struct port_end a, b;
    signal(SIGSEGV, SIG_DFL); /* a sanitizer has its own */
    signal(SIGBUS, SIG_DFL);
    pair(&a, &b, "dies", "");
    volatile uint8_t *at = map(PAGE, RW, MAP_SHARED, object(*sig == SIGBUS ? 0 : PAGE));
    if (*sig == SIGSEGV)
        OK(munmap((void *)(uintptr_t)at, PAGE));
    *at = 1;
}

/* A fault of the program's own ends it as it would have ended without a port. */
START_TEST(mr_12_own_fault)
{
    int sig = _i == 0 ? SIGSEGV : SIGBUS, status;
    pid_t pid = port_child(dies, &sig);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == sig, "status %x", (unsigned)status);
}
END_TEST

/* ---- under traffic ---- */

struct taker {
    uint8_t *at;
    _Atomic bool stop;
    unsigned turns;
};

/* Takes the second half away and brings it back, again and again. */
static void *take_away(void *arg)
{
    struct taker *t = arg;
    for (; !atomic_load(&t->stop); t->turns++) {
        uint8_t *half = t->at + SIZE / 2;
        OK(munmap(half, SIZE / 2));
        ck_assert_ptr_eq(mmap(half, SIZE / 2, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
                         half);
    }
    return NULL;
}

/* Each request succeeds or fails as it may, and both programs are there afterwards. */
START_TEST(mr_12_under_traffic)
{
    static const enum urnic_wr_opcode opcodes[] = {URNIC_WR_RDMA_WRITE, URNIC_WR_RDMA_READ,
                                                   URNIC_WR_ATOMIC_FETCH_AND_ADD};
    unsigned failed = 0;
    for (unsigned i = 0; i < 12; i++) {
        struct port_end a, b;
        pthread_t thread;
        bool own = i & 1;
        enum urnic_wr_opcode opcode = opcodes[i / 2 % 3];
        pair(&a, &b, "traffic", "");
        struct port_end *owner = own ? &b : &a;
        struct taker t = {.at = map(SIZE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1)};
        use_memory(owner, t.at, SIZE, PORT_ALL);
        join(&a, &b);
        OK(pthread_create(&thread, NULL, take_away, &t));
        struct urnic_wc wc = {.status = URNIC_WC_SUCCESS};
        for (unsigned n = 0; n < 3000 && wc.status == URNIC_WC_SUCCESS; n++) {
            uint32_t len = opcode == URNIC_WR_ATOMIC_FETCH_AND_ADD ? 8 : 8000;
            OK(port_post(&b, opcode, SIZE / 2, SIZE / 2, len));
            wc = port_await(&b);
        }
        ck_assert(wc.status == URNIC_WC_SUCCESS ||
                  wc.status == (own ? URNIC_WC_LOC_PROT_ERR : URNIC_WC_REM_ACCESS_ERR));
        failed += wc.status != URNIC_WC_SUCCESS;
        atomic_store(&t.stop, true);
        OK(pthread_join(thread, NULL));
        port_close(own ? &a : &b);
        end(owner);
        munmap(t.at, SIZE);
    }
    ck_assert_uint_gt(failed, 0);
}
END_TEST

static void add(Suite *s, const TTest *test, unsigned n)
{
    TCase *tc = tcase_create(test->name);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, test, 0, (int)n);
    suite_add_tcase(s, tc);
}

int main(void)
{
    Suite *s = suite_create("port memory");
    add(s, mr_12_kinds, sizeof(kinds) / sizeof(kinds[0]));
    add(s, atm_05_capability, 1);
    add(s, mr_12_rights, 1);
    add(s, mr_12_untouched, 1);
    add(s, mr_12_many, 1);
    add(s, mr_12_gone, ASKED * sizeof(progress) / sizeof(progress[0]));
    add(s, mr_12_blocked, 3);
    add(s, mr_12_own_handler, 6);
    add(s, mr_12_own_fault, 2);
    add(s, mr_12_under_traffic, 1);
    return unit_run(s);
}
