/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Copies to and from another process: each piece has its own outcome, and none reaches a successor
 * with the process's id.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fork_apart.h"
#include "remote.h"
#include "unit.h"

#define PAGES 64u
#define SIZE  (PAGES * 4096u)

/* A child that has `mem` at the address where we have it, but private, and waits. */
static uint8_t *mem;
static pid_t child;
static int pidfd;
static struct remote *remote;

static void begin(void)
{
    child = fork_apart();
    if (child == 0) {
        for (;;)
            pause();
    }
    pidfd = (int)syscall(SYS_pidfd_open, child, 0);
    ck_assert_int_ge(pidfd, 0);
    ck_assert_int_eq(remote_open(child, pidfd, &remote), 0);
}

static void up(void)
{
    mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(mem, 'm', SIZE);
    begin();
}

static void down(void)
{
    remote_close(remote);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(pidfd);
    munmap(mem, SIZE);
}

static struct remote_move at(uint32_t off, void *local, uint32_t len)
{
    return (struct remote_move){
        .remote = remote, .addr = (uintptr_t)mem + off, .local = local, .len = len, .status = 1};
}

/* Pieces in one go, adjacent, apart, empty, more than fit into one call. */
START_TEST(moves_pieces)
{
    static uint8_t ours[SIZE], back[SIZE];
    struct remote_move m[3 * REMOTE_BATCH];
    const unsigned n = sizeof(m) / sizeof(m[0]);
    up();
    for (unsigned i = 0; i < SIZE; i++)
        ours[i] = (uint8_t)(i * 5 + (i >> 8));
    for (unsigned i = 0; i < n; i++)
        m[i] = at(i * 1000 + (i % 3 == 0), ours + i * 1000 + (i % 3 == 0), 1000 - (i % 3 == 0));
    m[7].len = 0;
    remote_put(m, n);
    for (unsigned i = 0; i < n; i++)
        ck_assert_int_eq(m[i].status, 0);
    struct remote_move all = at(0, back, SIZE);
    remote_get(&all, 1);
    ck_assert_int_eq(all.status, 0);
    for (unsigned i = 0; i < SIZE; i++) {
        bool put = i < n * 1000 && !(i % 3000 == 0) && i / 1000 != 7;
        ck_assert_msg(back[i] == (put ? ours[i] : 'm'), "octet %u", i);
        ck_assert(mem[i] == 'm'); /* ours is another page */
    }
    down();
}
END_TEST

/* A piece that can't be reached fails alone, wherever it stands, also when a part of it can. */
START_TEST(fails_piece_by_piece)
{
    static uint8_t ours[SIZE];
    struct remote_move m[8];
    up();
    memset(ours, 'o', sizeof(ours));
    for (unsigned bad = 0; bad < 256; bad++) {
        for (unsigned i = 0; i < 8; i++) {
            m[i] = at(i * 4096, ours, 4096);
            if (bad >> i & 1)
                m[i].addr = i % 2 ? 0xFFFFFFFF80000000ull : 4096; /* the kernel's; nothing there */
        }
        if (bad % 2)
            remote_put(m, 8);
        else
            remote_get(m, 8);
        for (unsigned i = 0; i < 8; i++)
            ck_assert_int_eq(m[i].status, bad >> i & 1 ? -EFAULT : 0);
    }
    down();
}
END_TEST

/* Small reads of one page, apart, overlapping, backwards, from its first to its last octet, with
 * larger ones, other pages and pages that aren't there between them: each gets its own octets. */
START_TEST(reads_small_pieces)
{
    static uint8_t got[256][300];
    struct remote_move m[256];
    const unsigned n = sizeof(m) / sizeof(m[0]);
    unsigned seed = 1;
    mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (unsigned i = 0; i < SIZE; i++)
        mem[i] = (uint8_t)(i * 7 + (i >> 8));
    munmap(mem + 8192, 4096);
    begin();
    for (unsigned round = 0; round < 200; round++) {
        for (unsigned i = 0; i < n; i++) {
            seed = seed * 1103515245 + 12345;
            uint32_t len = seed >> 16 & 7 ? seed >> 20 & 63 : seed >> 19 & 255;
            len = round % 4 ? len : len + 45;
            uint32_t off = round % 3 ? (seed >> 8) % 4096 : (seed >> 8) % 16384;
            m[i] = at(off, got[i], len);
        }
        remote_get(m, round % 5 ? n : round % n + 1);
        for (unsigned i = 0; i < (round % 5 ? n : round % n + 1); i++) {
            uint64_t off = m[i].addr - (uintptr_t)mem;
            bool gone = m[i].len > 0 && off < 12288 && off + m[i].len > 8192;
            ck_assert_int_eq(m[i].status, gone ? -EFAULT : 0);
            for (unsigned k = 0; !gone && k < m[i].len; k++)
                ck_assert(got[i][k] == (uint8_t)((off + k) * 7 + ((off + k) >> 8)));
        }
    }
    down();
}
END_TEST

/* Written as the process itself could. */
START_TEST(heeds_protection)
{
    uint8_t octet = 'x';
    mem = mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    begin();
    struct remote_move m = at(5, &octet, 1);
    remote_put(&m, 1);
    ck_assert_int_eq(m.status, -EFAULT);
    m = at(5, &octet, 1);
    remote_get(&m, 1);
    ck_assert_int_eq(m.status, 0);
    ck_assert_int_eq(octet, 0);
    down();
}
END_TEST

/* Atomics on a word of the process, by the functions of the data path. */
START_TEST(atomics)
{
    uint64_t orig, word = 40;
    up();
    struct mem_piece p = {.obj = &remote->mem, .off = (uintptr_t)mem + 16, .len = 8};
    ck_assert_int_eq(memory_put(&p, &word), 0);
    ck_assert_int_eq(memory_fadd(&p, 2, &orig), 0);
    ck_assert_uint_eq(orig, 40);
    ck_assert_int_eq(memory_cas(&p, 41, 1, &orig), 0);
    ck_assert_uint_eq(orig, 42);
    ck_assert_int_eq(memory_cas(&p, 42, 7, &orig), 0);
    ck_assert_int_eq(memory_get(&word, &p), 0);
    ck_assert_uint_eq(word, 7);
    p.off += 4;
    ck_assert_int_eq(memory_fadd(&p, 2, &orig), -EFAULT);
    p.off = 8;
    ck_assert_int_eq(memory_cas(&p, 0, 2, &orig), -EFAULT);
    down();
}
END_TEST

static void expect_nothing(void)
{
    uint8_t octet = 'x';
    struct remote_move m = at(0, &octet, 1);
    for (unsigned ms = 0; ms < 5000; ms++) { /* until the child has got there */
        m = at(0, &octet, 1);
        remote_get(&m, 1);
        if (m.status < 0)
            break;
        usleep(1000);
    }
    ck_assert_int_eq(m.status, -ESRCH);
}

/* A program that a process executes has an address space of its own, which is not touched. */
START_TEST(exec_ends_it)
{
    mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    child = fork_apart();
    if (child == 0) {
        raise(SIGSTOP);
        execl("/bin/sleep", "sleep", "1000", (char *)NULL);
        _exit(1);
    }
    waitpid(child, NULL, WUNTRACED);
    pidfd = (int)syscall(SYS_pidfd_open, child, 0);
    ck_assert_int_eq(remote_open(child, pidfd, &remote), 0);
    uint8_t octet = 'x';
    struct remote_move m = at(0, &octet, 1);
    remote_get(&m, 1);
    ck_assert_int_eq(m.status, 0);
    kill(child, SIGCONT);
    expect_nothing();
    ck_assert_int_eq(kill(child, 0), 0); /* the process is there; its program is another */
    m = at(0, &octet, 1);
    remote_put(&m, 1);
    ck_assert_int_eq(m.status, -ESRCH);
    down();
}
END_TEST

START_TEST(exit_ends_it)
{
    struct remote *other;
    up();
    kill(child, SIGKILL);
    expect_nothing();
    ck_assert_int_eq(remote_open(child, pidfd, &other), -ESRCH); /* it waits for its parent */
    waitpid(child, NULL, 0);
    expect_nothing();
    ck_assert_int_eq(remote_open(child, pidfd, &other), -ESRCH);
    ck_assert_int_eq(remote_open(0, pidfd, &other), -EOPNOTSUPP);
    ck_assert_int_eq(remote_open(getpid(), -1, &other), -EOPNOTSUPP);
    down();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("remote");
    TCase *t = tcase_create("remote");

    tcase_add_test(t, moves_pieces);
    tcase_add_test(t, fails_piece_by_piece);
    tcase_add_test(t, reads_small_pieces);
    tcase_add_test(t, heeds_protection);
    tcase_add_test(t, atomics);
    tcase_add_test(t, exec_ends_it);
    tcase_add_test(t, exit_ends_it);
    suite_add_tcase(s, t);
    return unit_run(s);
}
