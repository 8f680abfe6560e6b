/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Clients take memory away while the daemon uses it, try to, or pass bad memory. As in
 * test_hostile_client.c, a well-behaved pair must not notice.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hostile_rig.h"
#include "ipc.h"
#include "unit.h"

/* New queue pairs for the hostile pair. */
static void reconnect(void)
{
    ck_assert_int_eq(urnic_destroy_qp(x.qp), 0);
    ck_assert_int_eq(urnic_destroy_qp(y.qp), 0);
    end_qp(&x, URNIC_QPT_RC);
    end_qp(&y, URNIC_QPT_RC);
    end_connect(&x, &y);
}

/* MR-12: an object that is cut off under a region: the peer gets an access error, the daemon lives.
 * The region is lost, also when the object grows again; a new one isn't. */
START_TEST(truncated_target)
{
    struct urnic_mr *mr;
    hostile_pair();
    int fd = foreign(&y, &mr);
    ck_assert_int_eq(end_post(&x, URNIC_WR_RDMA_WRITE, 0, CHUNK, 0x10000, mr->rkey, 1), 0);
    end_expect(&x, URNIC_WC_SUCCESS, 1);
    ck_assert_int_eq(ftruncate(fd, 0), 0);
    ck_assert_int_eq(end_post(&x, URNIC_WR_RDMA_WRITE, 0, CHUNK, 0x10000, mr->rkey, 2), 0);
    end_expect(&x, URNIC_WC_REM_ACCESS_ERR, 2);
    ck_assert_uint_ge(counter("urn1", "copy_fault"), 1);
    transfer(10);
    ck_assert_int_eq(ftruncate(fd, SIZE), 0);
    reconnect();
    ck_assert_int_eq(end_post(&x, URNIC_WR_RDMA_WRITE, 0, CHUNK, 0x10000, mr->rkey, 3), 0);
    end_expect(&x, URNIC_WC_REM_ACCESS_ERR, 3);
    ck_assert_int_eq(urnic_dereg_mr(mr), 0);
    reconnect();
    ck_assert_int_eq(urnic_reg_mr_fd(y.pd, fd, 0, SIZE, 0x10000, END_ACCESS, &mr), 0);
    ck_assert_int_eq(end_post(&x, URNIC_WR_RDMA_WRITE, 0, CHUNK, 0x10000, mr->rkey, 4), 0);
    end_expect(&x, URNIC_WC_SUCCESS, 4);
    ck_assert_int_eq(urnic_dereg_mr(mr), 0);
    close(fd);
    end_close(&x);
    end_close(&y);
}
END_TEST

/* MR-12: the same as the source of a WRITE and of a peer's READ, and as the target of an atomic. */
START_TEST(truncated_source)
{
    struct urnic_mr *mr;
    const unsigned cases = 3;
    for (unsigned i = 0; i < cases; i++) {
        hostile_pair();
        struct end *owner = i == 0 ? &x : &y;
        int fd = foreign(owner, &mr);
        ck_assert_int_eq(ftruncate(fd, 4096), 0);
        if (i == 0) {
            const struct urnic_sge sge = {.addr = 0x14000, .length = 4096, .lkey = mr->lkey};
            const struct urnic_send_wr wr = {
                .wr_id = 5,
                .sg_list = &sge,
                .num_sge = 1,
                .opcode = URNIC_WR_RDMA_WRITE,
                .send_flags = URNIC_SEND_SIGNALED,
                .rdma = {.remote_addr = y.mr->iova, .rkey = y.mr->rkey},
            };
            ck_assert_int_eq(urnic_post_send(x.qp, &wr, NULL), 0);
            end_expect(&x, URNIC_WC_LOC_PROT_ERR, 5);
        } else {
            ck_assert_int_eq(end_post(&x,
                                      i == 1 ? URNIC_WR_RDMA_READ : URNIC_WR_ATOMIC_FETCH_AND_ADD,
                                      0, 8, 0x14000, mr->rkey, 5),
                             0);
            end_expect(&x, URNIC_WC_REM_ACCESS_ERR, 5);
        }
        transfer(5);
        ck_assert_int_eq(urnic_destroy_qp(owner->qp), 0);
        owner->qp = NULL;
        ck_assert_int_eq(urnic_dereg_mr(mr), 0);
        close(fd);
        end_close(&x);
        end_close(&y);
    }
}
END_TEST

/* MR-12: cut and punched again and again, in the middle of transfers. */
START_TEST(truncating_race)
{
    pid_t pid = hostile(truncates);
    transfer(3 * ROUNDS);
    reach("urn1", "copy_fault", 1);
    finish(pid);
    transfer(ROUNDS);
}
END_TEST

/* MR-12: only tmpfs and hugetlbfs; only existing octets; only writable memory. */
START_TEST(refused_memory)
{
    struct urnic_mr *mr;
    char path[] = "/var/tmp/urnic-XXXXXX";
    int disk = mkstemp(path), fd = memfd_create("short", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ck_assert_int_ge(disk, 0);
    unlink(path);
    ck_assert_int_eq(ftruncate(disk, SIZE), 0);
    ck_assert_int_eq(ftruncate(fd, 4096), 0);
    ck_assert_int_eq(urnic_reg_mr_fd(a.pd, fd, 0, 8192, 0, END_ACCESS, &mr), -EFAULT);
    ck_assert_int_eq(urnic_reg_mr_fd(a.pd, fd, 8192, 1, 0, END_ACCESS, &mr), -EFAULT);
    ck_assert_int_eq(urnic_reg_mr_fd(a.pd, fd, 2048, 4096, 0, END_ACCESS, &mr), -EFAULT);
    ck_assert_int_eq(urnic_reg_mr_fd(a.pd, fd, UINT64_MAX, 2, 0, END_ACCESS, &mr), -EFAULT);
    ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
    ck_assert_int_eq(urnic_reg_mr_fd(a.pd, fd, 0, 4096, 0, END_ACCESS, &mr), -EACCES);
    ck_assert_int_eq(urnic_reg_mr_fd(a.pd, fd, 0, 4096, 0, URNIC_ACCESS_REMOTE_READ, &mr), 0);
    ck_assert_int_eq(urnic_dereg_mr(mr), 0);
    int rc = urnic_reg_mr_fd(a.pd, disk, 0, SIZE, 0, END_ACCESS, &mr);
    ck_assert_msg(rc == -EOPNOTSUPP || rc == 0, "a file on disk: %d", rc);
    if (rc == 0) /* /var/tmp is a tmpfs here */
        urnic_dereg_mr(mr);
    close(fd);
    close(disk);
    transfer(10);
}
END_TEST

/* A region of addresses of y's process, requested by hand from the engine that y has. */
static int register_raw(uint64_t off, uint64_t len, uint64_t iova, unsigned access,
                        struct ipc_mr *out)
{
    struct ipc_mr_reg req = {
        .hdr.type = IPC_MR_REG,
        .pd = y.pd->handle,
        .kind = IPC_MR_PROCESS,
        .access = access,
        .off = off,
        .len = len,
        .iova = iova,
    };
    return client_conn_call(&y.ctx->conn, &req, sizeof(req), out, sizeof(*out), NULL, NULL);
}

/* The hostile pair's engine runs in its program. */
static void own_engine(void)
{
    ck_assert_int_eq(setenv("URNIC_ENGINE", "application", 1), 0);
    hostile_pair();
}

/* MR-12: the daemon takes no addresses of a program. */
START_TEST(no_addresses_for_the_daemon)
{
    static uint8_t memory[8192];
    const uint64_t at[] = {0, 4096, (uintptr_t)memory, 1ull << 47, 0xFFFFFFFF81000000ull};
    struct ipc_mr mr;
    hostile_pair();
    for (unsigned i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
        ck_assert_int_eq(register_raw(at[i], sizeof(memory), 0x10000, END_ACCESS, &mr), -ENOTSUP);
        ck_assert_int_eq(register_raw(at[i], 1, 0x10000, 0, &mr), -ENOTSUP);
    }
    ck_assert_int_eq(register_raw(UINT64_MAX, 0, 0x10000, END_ACCESS, &mr), 0); /* no octets */
    ck_assert_int_eq(end_post(&x, URNIC_WR_RDMA_WRITE, 0, 1, 0x10000, mr.rkey, 1), 0);
    end_expect(&x, URNIC_WC_REM_ACCESS_ERR, 1);
    ck_assert_int_eq(client_conn_handle(&y.ctx->conn, IPC_MR_DEREG, mr.mr), 0);
    transfer(10);
    end_close(&x);
    end_close(&y);
}
END_TEST

/* MR-12: addresses that the program doesn't have can be registered by a program that asks its
 * engine by hand; using them gives the errors of memory that is gone. */
START_TEST(wild_addresses)
{
    const uint64_t wild[] = {0,
                             4096,
                             1ull << 46,
                             0x00007FFFFFFFF000ull,
                             1ull << 47,
                             0xFFFF888000000000ull,
                             0xFFFFFFFF81000000ull,
                             0xFFFFFFFFFF600000ull};
    struct ipc_mr mr;
    own_engine();
    ck_assert_int_eq(register_raw(UINT64_MAX - 100, 102, 0, END_ACCESS, &mr), -EINVAL);
    ck_assert_int_eq(register_raw(4096, UINT64_MAX, 0, END_ACCESS, &mr), -EINVAL);
    ck_assert_int_eq(register_raw(4096, (1ull << 40) + 1, 0, END_ACCESS, &mr), -EINVAL);
    ck_assert_int_eq(register_raw(4096, 8192, UINT64_MAX - 4096, END_ACCESS, &mr), -EINVAL);
    for (unsigned i = 0; i < sizeof(wild) / sizeof(wild[0]); i++) {
        const enum urnic_wr_opcode ops[] = {URNIC_WR_RDMA_WRITE, URNIC_WR_RDMA_READ,
                                            URNIC_WR_ATOMIC_FETCH_AND_ADD};
        ck_assert_int_eq(register_raw(wild[i], SIZE, 0x10000, END_ACCESS, &mr), 0);
        for (unsigned k = 0; k < 3; k++) {
            uint32_t len = ops[k] == URNIC_WR_ATOMIC_FETCH_AND_ADD ? 8 : CHUNK;
            ck_assert_int_eq(end_post(&x, ops[k], 0, len, 0x10000, mr.rkey, k), 0);
            end_expect(&x, URNIC_WC_REM_ACCESS_ERR, k);
            reconnect();
        }
        const struct urnic_sge sge = {.addr = 0x10000, .length = CHUNK, .lkey = mr.lkey};
        const struct urnic_send_wr wr = {
            .wr_id = 9, .sg_list = &sge, .num_sge = 1, .opcode = URNIC_WR_SEND};
        ck_assert_int_eq(urnic_post_send(y.qp, &wr, NULL), 0);
        end_expect(&y, URNIC_WC_LOC_PROT_ERR, 9);
        reconnect();
        ck_assert_int_eq(client_conn_handle(&y.ctx->conn, IPC_MR_DEREG, mr.mr), 0);
        transfer(2);
    }
    end_close(&x);
    end_close(&y);
}
END_TEST

/* Takes memory away in the middle of transfers, for ever. */
static void unmaps(void)
{
    for (;;) {
        struct urnic_mr *mr;
        const int prot = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
        uint8_t *p = mmap(NULL, SIZE, prot, flags, -1, 0);
        own_engine();
        ck_assert_int_eq(urnic_reg_mr_iova(y.pd, p, SIZE, 0x10000, END_ACCESS, &mr), 0);
        for (unsigned i = 0; i < 60; i++) {
            struct urnic_wc wc[8];
            uint8_t *at = p + rng() % (SIZE / 4096) * 4096;
            end_post(&x, URNIC_WR_RDMA_WRITE, 0, CHUNK, 0x10000, mr->rkey, i);
            end_post(&x, URNIC_WR_RDMA_READ, 0, CHUNK, 0x10000 + CHUNK, mr->rkey, i);
            munmap(at, 4096);
            if (i % 4 == 0) /* long enough for a worker to see it */
                usleep(200);
            mprotect(p, SIZE / 4, PROT_READ);
            ck_assert_ptr_eq(mmap(p, SIZE, prot, flags | MAP_FIXED, -1, 0), p);
            urnic_poll_cq(x.cq, 8, wc);
        }
        urnic_destroy_qp(x.qp);
        urnic_destroy_qp(y.qp);
        x.qp = y.qp = NULL;
        urnic_dereg_mr(mr);
        munmap(p, SIZE);
        end_close(&x);
        end_close(&y);
    }
}

START_TEST(unmapping_race)
{
    pid_t pid = hostile(unmaps);
    transfer(3 * ROUNDS);
    reach("urn1", "tx_nak_rem_access", 1);
    finish(pid);
    transfer(ROUNDS);
}
END_TEST

/* It is killed in the middle of transfers, and its regions with it. */
static void dies(void)
{
    uint8_t *p = malloc(SIZE);
    struct urnic_mr *mr;
    own_engine();
    ck_assert_int_eq(urnic_reg_mr_iova(y.pd, p, SIZE, 0x10000, END_ACCESS, &mr), 0);
    for (;;) {
        struct urnic_wc wc[8];
        end_post(&x, URNIC_WR_RDMA_WRITE, 0, CHUNK, 0x10000, mr->rkey, 1);
        urnic_poll_cq(x.cq, 8, wc);
    }
}

START_TEST(killed_owners)
{
    for (unsigned i = 0; i < 8; i++) {
        pid_t pid = hostile(dies);
        transfer(ROUNDS / 10);
        usleep(20000);
        finish(pid);
        transfer(ROUNDS / 10);
    }
}
END_TEST

/* SHM-10: no client can punch a hole into memory that a worker copies from or to: the worker would
 * wait for the whole hole. Earlier mappings stay writable. */
static void ck_sealed(void *at, size_t len)
{
    ck_assert_int_lt(madvise(at, len, MADV_REMOVE), 0);
    ck_assert_int_eq(errno, EPERM);
}

START_TEST(holes_are_refused)
{
    static const size_t sizes[] = {4096, 1u << 20, 64u << 20}; /* the last one by another thread */
    struct urnic_mr *mr;
    void *mem;
    ck_sealed(a.ctx->db, a.ctx->db_size);
    for (const struct client_slab *s = a.ctx->slabs; s; s = s->next)
        ck_sealed(s->addr, s->size);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(urnic_alloc(a.ctx, sizes[i], &mem), 0);
        memset(mem, 1, sizes[i]);
        ck_assert_int_eq(madvise(mem, sizes[i], MADV_REMOVE), 0); /* harmless so far */
        ck_assert_int_eq(urnic_reg_mr(a.pd, mem, sizes[i], END_ACCESS, &mr), 0);
        ck_sealed(mem, sizes[i]);
        memset(mem, 2, sizes[i]);
        ck_assert_int_eq(urnic_dereg_mr(mr), 0);
        ck_assert_int_eq(urnic_reg_mr(a.pd, mem, sizes[i], END_ACCESS, &mr), 0);
        ck_assert_int_eq(urnic_dereg_mr(mr), 0);
        ck_assert_int_eq(urnic_free(a.ctx, mem), 0);
    }
    transfer(10);
}
END_TEST

/* SHM-10: a large queue has a slab for itself, which is sealed before it is used and is gone with
 * the queue, here and in the daemon. */
START_TEST(large_queues_come_and_go)
{
    struct urnic_cq *cq;
    end_open(&x, &rig, "urn0", SIZE);
    for (unsigned i = 0; i < 80; i++) { /* of 64 MiB: more than a client gets at a time */
        struct urnic_qp_init_attr init = {.qp_type = URNIC_QPT_RC, .cap = {.max_send_wr = 1}};
        struct urnic_qp *qp;
        ck_assert_int_eq(urnic_create_cq(x.ctx, 1 << 20, NULL, NULL, &cq), 0);
        struct client_slab *s = x.ctx->slabs;
        ck_assert_uint_gt(s->size, IPC_SLAB_SHARED);
        init.send_cq = init.recv_cq = cq;
        ck_assert_int_eq(urnic_create_qp(x.pd, &init, &qp), 0);
        ck_sealed(s->addr, s->size);
        ck_assert_int_eq(urnic_destroy_qp(qp), 0);
        ck_assert_int_eq(urnic_destroy_cq(cq), 0);
        for (s = x.ctx->slabs; s; s = s->next)
            ck_assert(s->data || s->size <= IPC_SLAB_SHARED);
    }
    end_close(&x);
    transfer(10);
}
END_TEST

/* SHM-10: each kind of queue is sealed by the first request that names it, also where its slab is
 * for it alone, so that no other queue has done it. */
START_TEST(each_queue_is_sealed)
{
    struct urnic_qp_init_attr init = {.qp_type = URNIC_QPT_RC, .cap = {.max_send_wr = 16384}};
    struct urnic_srq_attr sattr = {.max_wr = 16384, .max_sge = 4};
    struct urnic_qp_attr attr = {.qp_state = URNIC_QPS_INIT, .port_num = 1};
    struct client_slab *s;
    struct urnic_srq *srq;
    struct urnic_qp *qp;
    end_open(&x, &rig, "urn0", SIZE);
    init.send_cq = init.recv_cq = x.cq;
    init.cap.max_send_sge = 4;
    ck_assert_int_eq(urnic_create_qp(x.pd, &init, &qp), 0);
    s = x.ctx->slabs;
    ck_assert_uint_gt(s->size, IPC_SLAB_SHARED);
    ck_assert_int_eq(urnic_modify_qp(qp, &attr,
                                     URNIC_QP_STATE | URNIC_QP_PORT | URNIC_QP_PKEY_INDEX |
                                         URNIC_QP_ACCESS_FLAGS),
                     0);
    ck_sealed(s->addr, s->size);
    ck_assert_int_eq(urnic_destroy_qp(qp), 0);
    ck_assert_int_eq(urnic_create_srq(x.pd, &sattr, NULL, &srq), 0);
    s = x.ctx->slabs;
    ck_assert_uint_gt(s->size, IPC_SLAB_SHARED);
    ck_assert_int_eq(urnic_modify_srq_limit(srq, 1), 0);
    ck_sealed(s->addr, s->size);
    ck_assert_int_eq(urnic_destroy_srq(srq), 0);
    end_close(&x);
    transfer(10);
}
END_TEST

/* SHM-10: another user's object that could stall a worker is refused, and never copied. */
static void other_user(void)
{
    struct urnic_mr *mr;
    int fd = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (setgid(65501) < 0 || setuid(65501) < 0)
        _exit(2);
    end_open(&x, &rig, "urn0", SIZE);
    ck_assert_int_eq(ftruncate(fd, SIZE), 0);
    ck_assert_int_eq(urnic_reg_mr_fd(x.pd, fd, 0, SIZE, 0, END_ACCESS, &mr), -EPERM);
    ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
    ck_assert_int_eq(urnic_reg_mr_fd(x.pd, fd, 0, SIZE, 0, END_ACCESS, &mr), 0);
    ck_assert_int_eq(urnic_dereg_mr(mr), 0);
    end_close(&x);
    _exit(0);
}

START_TEST(objects_of_others)
{
    int status;
    if (geteuid() != 0)
        return; /* this test can't change its user */
    ck_assert_int_eq(chmod(rig.dir, 0755), 0);
    ck_assert_int_eq(chmod(rig.socket, 0666), 0);
    pid_t pid = hostile(other_user);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    transfer(10);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("hostile_memory");
    TCase *t = tcase_create("hostile_memory");

    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, truncated_target);
    tcase_add_test(t, truncated_source);
    tcase_add_test(t, truncating_race);
    tcase_add_test(t, refused_memory);
    tcase_add_test(t, no_addresses_for_the_daemon);
    tcase_add_test(t, wild_addresses);
    tcase_add_test(t, unmapping_race);
    tcase_add_test(t, killed_owners);
    tcase_add_test(t, holes_are_refused);
    tcase_add_test(t, large_queues_come_and_go);
    tcase_add_test(t, each_queue_is_sealed);
    tcase_add_test(t, objects_of_others);
    suite_add_tcase(s, t);
    return unit_run(s);
}
