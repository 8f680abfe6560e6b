/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Clients that misbehave, each in a process of its own, on the same daemon and device as a
 * well-behaved pair whose transfers must go on meanwhile, and whose memory must stay untouched.
 */
#ifndef URNIC_HOSTILE_RIG_H
#define URNIC_HOSTILE_RIG_H

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"
#include "daemon_rig.h"
#include "fork_apart.h"

#define SIZE   (1u << 20)
#define CHUNK  65536u
#define ROUNDS 100u

static struct rig rig;
static struct end a, b; /* the well-behaved pair */

static inline void setup(void)
{
    rig_start_pair(&rig, "");
    end_open(&a, &rig, "urn0", SIZE);
    end_open(&b, &rig, "urn1", SIZE);
    end_qp(&a, URNIC_QPT_RC);
    end_qp(&b, URNIC_QPT_RC);
    end_connect(&a, &b);
}

static inline void teardown(void)
{
    end_close(&a);
    end_close(&b);
    rig_stop(&rig);
}

/* The well-behaved pair moves data, and it arrives right. */
static inline void transfer(unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++) {
        memset(a.mem, (int)(i + 1), CHUNK);
        ck_assert_int_eq(end_post(&a, URNIC_WR_RDMA_WRITE, 0, CHUNK, b.mr->iova, b.mr->rkey, i), 0);
        end_expect(&a, URNIC_WC_SUCCESS, i);
        ck_assert(memcmp(a.mem, b.mem, CHUNK) == 0);
        ck_assert(b.mem[CHUNK] == 0);
    }
}

/* The same dice in each run, unless $HOSTILE_SEED is set. */
static inline uint32_t rng(void)
{
    static uint64_t s;
    if (s == 0) {
        const char *seed = getenv("HOSTILE_SEED");
        s = 88172645463325252ull ^ (seed ? strtoull(seed, NULL, 0) << 8 : 0);
    }
    s ^= s << 13;
    s ^= s >> 7;
    s ^= s << 17;
    return (uint32_t)(s >> 16);
}

/* A child that runs fn until it is killed (or ends by itself: then with _exit(0)). */
static inline pid_t hostile(void (*fn)(void))
{
    pid_t pid = fork_apart();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        fn();
        _exit(0);
    }
    return pid;
}

static inline void finish(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    ck_assert_msg(rig_alive(&rig), "the daemon has died");
}

static inline int raw_connect(void)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    memcpy(sa.sun_path, rig.socket, strlen(rig.socket) + 1);
    ck_assert_int_eq(connect(fd, (const struct sockaddr *)&sa, sizeof(sa)), 0);
    return fd;
}

static inline uint64_t counter(const char *device, const char *name)
{
    return rig_counter(&rig, device, name);
}

/* Wait until a counter has this value: the daemon has cleaned up. */
static inline void settle(const char *device, const char *name, uint64_t value)
{
    uint64_t until = rig_now_ms() + 5000;
    while (counter(device, name) != value) {
        ck_assert_msg(rig_now_ms() < until, "%s stays at %llu, expected %llu", name,
                      (unsigned long long)counter(device, name), (unsigned long long)value);
        usleep(2000);
    }
}

/* Wait until a counter is at least this. */
static inline void reach(const char *device, const char *name, uint64_t value)
{
    uint64_t until = rig_now_ms() + 20000;
    while (counter(device, name) < value) {
        ck_assert_msg(rig_now_ms() < until, "%s never reaches %llu", name,
                      (unsigned long long)value);
        usleep(2000);
    }
}

/* Two ends in the hostile process, connected. */
static struct end x, y;

static inline void hostile_pair(void)
{
    end_open(&x, &rig, "urn0", SIZE);
    end_open(&y, &rig, "urn1", SIZE);
    end_qp(&x, URNIC_QPT_RC);
    end_qp(&y, URNIC_QPT_RC);
    end_connect(&x, &y);
}

/* A region of x or y in an object that the caller may cut off; its descriptor. */
static inline int foreign(struct end *e, struct urnic_mr **mr)
{
    int fd = memfd_create("foreign", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, SIZE), 0);
    ck_assert_int_eq(urnic_reg_mr_fd(e->pd, fd, 0, SIZE, 0x10000, END_ACCESS, mr), 0);
    return fd;
}

/* Cuts and punches memory in the middle of transfers, for ever. */
static inline void truncates(void)
{
    for (;;) {
        struct urnic_mr *mr;
        hostile_pair();
        int fd = foreign(&y, &mr);
        for (unsigned i = 0; i < 20; i++) {
            struct urnic_wc wc[8];
            end_post(&x, URNIC_WR_RDMA_WRITE, 0, CHUNK, 0x10000, mr->rkey, i);
            end_post(&x, URNIC_WR_RDMA_READ, 0, CHUNK, 0x10000, mr->rkey, i);
            (void)!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, SIZE / 2);
            (void)!ftruncate(fd, rng() % SIZE);
            if (i % 4 == 0) /* long enough for a worker to see it */
                usleep(200);
            (void)!ftruncate(fd, SIZE);
            urnic_poll_cq(x.cq, 8, wc);
        }
        urnic_destroy_qp(x.qp);
        urnic_destroy_qp(y.qp);
        x.qp = y.qp = NULL;
        urnic_dereg_mr(mr);
        close(fd);
        end_close(&x);
        end_close(&y);
    }
}

#endif
