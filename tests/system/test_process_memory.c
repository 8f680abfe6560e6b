/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A program that has the engine in itself can register memory of any kind. The daemon's engine
 * takes only memory that the daemon can map.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon_rig.h"
#include "fork_apart.h"
#include "unit.h"

#define SIZE    (1u << 20)
#define LEN     200000u
#define AT      4093u /* crosses pages everywhere */
#define OTHER   65501u
#define REGIONS 4096u

static struct rig rig;
static struct end a, b;

static void up_with(const char *engine)
{
    ck_assert_int_eq(setenv("URNIC_ENGINE", engine, 1), 0);
    rig_open_pair(&rig, "", &a, &b, SIZE);
    end_qp(&a, URNIC_QPT_RC);
    end_qp(&b, URNIC_QPT_RC);
    end_connect(&a, &b);
}

static void up(void)
{
    up_with("application");
}

static void down(void)
{
    rig_close_pair(&rig, &a, &b);
}

static void anew(void)
{
    ck_assert_int_eq(urnic_destroy_qp(a.qp), 0);
    ck_assert_int_eq(urnic_destroy_qp(b.qp), 0);
    end_qp(&a, URNIC_QPT_RC);
    end_qp(&b, URNIC_QPT_RC);
    end_connect(&a, &b);
}

/* One request of e's queue pair: local octets of `mine`, at the peer's `theirs`. */
static void post(struct end *e, enum urnic_wr_opcode op, const struct urnic_mr *mine, uint32_t off,
                 uint32_t len, const struct urnic_mr *theirs, uint32_t to, uint64_t wr_id)
{
    const struct urnic_sge sge = {.addr = mine->iova + off, .length = len, .lkey = mine->lkey};
    struct urnic_send_wr wr = {
        .wr_id = wr_id,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = op,
        .send_flags = URNIC_SEND_SIGNALED,
    };
    if (op == URNIC_WR_ATOMIC_FETCH_AND_ADD || op == URNIC_WR_ATOMIC_CMP_AND_SWP) {
        wr.atomic.remote_addr = theirs->iova + to;
        wr.atomic.rkey = theirs->rkey;
        wr.atomic.compare_add = 3;
        wr.atomic.swap = 77;
    } else if (theirs) {
        wr.rdma.remote_addr = theirs->iova + to;
        wr.rdma.rkey = theirs->rkey;
    }
    ck_assert_int_eq(urnic_post_send(e->qp, &wr, NULL), 0);
}

static void fill(uint8_t *p, size_t len, unsigned seed)
{
    for (size_t i = 0; i < len; i++)
        p[i] = (uint8_t)(i * 7 + (i >> 8) + seed);
}

/* Everything that work requests do, between this memory and an end's of urnic_alloc. */
static void use(uint8_t *mem, const struct urnic_mr *mr, bool writable)
{
    if (writable) {
        fill(a.mem, LEN, 1);
        memset(mem, 0, LEN + 2 * AT);
        post(&a, URNIC_WR_RDMA_WRITE, a.mr, 0, LEN, mr, AT, 1);
        end_expect(&a, URNIC_WC_SUCCESS, 1);
        ck_assert(memcmp(mem + AT, a.mem, LEN) == 0);
        ck_assert(mem[AT - 1] == 0 && mem[AT + LEN] == 0);

        const struct urnic_sge sge = {.addr = mr->iova + 1, .length = LEN, .lkey = mr->lkey};
        const struct urnic_recv_wr recv = {.wr_id = 2, .sg_list = &sge, .num_sge = 1};
        ck_assert_int_eq(urnic_post_recv(b.qp, &recv, NULL), 0);
        fill(a.mem, LEN, 2);
        post(&a, URNIC_WR_SEND, a.mr, 0, LEN, NULL, 0, 3);
        end_expect(&a, URNIC_WC_SUCCESS, 3);
        end_expect(&b, URNIC_WC_SUCCESS, 2);
        ck_assert(memcmp(mem + 1, a.mem, LEN) == 0);

        uint64_t word = 3, got = 0;
        memcpy(mem + 4096, &word, sizeof(word));
        post(&a, URNIC_WR_ATOMIC_FETCH_AND_ADD, a.mr, 0, 8, mr, 4096, 4);
        end_expect(&a, URNIC_WC_SUCCESS, 4);
        memcpy(&got, a.mem, sizeof(got));
        memcpy(&word, mem + 4096, sizeof(word));
        ck_assert(got == 3 && word == 6);
        post(&a, URNIC_WR_ATOMIC_CMP_AND_SWP, a.mr, 0, 8, mr, 4096, 5); /* 6 is not 3 */
        end_expect(&a, URNIC_WC_SUCCESS, 5);
        memcpy(&word, mem + 4096, sizeof(word));
        ck_assert_uint_eq(word, 6);
        word = 3;
        memcpy(mem + 4096, &word, sizeof(word));
        post(&a, URNIC_WR_ATOMIC_CMP_AND_SWP, a.mr, 0, 8, mr, 4096, 6);
        end_expect(&a, URNIC_WC_SUCCESS, 6);
        memcpy(&word, mem + 4096, sizeof(word));
        ck_assert_uint_eq(word, 77);

        fill(a.mem, LEN, 3); /* the initiator's memory as the target of a READ */
        post(&b, URNIC_WR_RDMA_READ, mr, 7, LEN, a.mr, 0, 7);
        end_expect(&b, URNIC_WC_SUCCESS, 7);
        ck_assert(memcmp(mem + 7, a.mem, LEN) == 0);
        fill(mem, LEN + AT, 4);
    }
    memset(a.mem, 0, LEN);
    post(&b, URNIC_WR_RDMA_WRITE, mr, AT, LEN, a.mr, 0, 8);
    end_expect(&b, URNIC_WC_SUCCESS, 8);
    ck_assert(memcmp(mem + AT, a.mem, LEN) == 0);
    memset(a.mem, 0, LEN);
    if (mr->rkey != 0) {
        post(&a, URNIC_WR_RDMA_READ, a.mr, 0, LEN, mr, AT, 9);
        end_expect(&a, URNIC_WC_SUCCESS, 9);
        ck_assert(memcmp(mem + AT, a.mem, LEN) == 0);
    }
}

static void use_all(void *mem, size_t size)
{
    struct urnic_mr *mr;
    ck_assert_uint_ge(size, LEN + 2 * AT);
    ck_assert_int_eq(urnic_reg_mr(b.pd, mem, size, END_ACCESS, &mr), 0);
    ck_assert_ptr_eq(mr->addr, mem);
    use(mem, mr, true);
    ck_assert_int_eq(urnic_dereg_mr(mr), 0);
    ck_assert_int_eq(urnic_reg_mr_iova(b.pd, mem, size, 0x7000, END_ACCESS, &mr), 0);
    use(mem, mr, true);
    ck_assert_int_eq(urnic_dereg_mr(mr), 0);
}

static uint8_t data_segment[SIZE];

/* MR-02: memory of a program that no other process shares. */
START_TEST(private_memory)
{
    uint8_t on_stack[LEN + 2 * AT + 16];
    up();
    uint8_t *heap = malloc(SIZE);
    use_all(heap + 8, SIZE - 8);
    free(heap);
    use_all(on_stack, sizeof(on_stack));
    use_all(data_segment, SIZE);
    void *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    use_all(p, SIZE);
    munmap(p, SIZE);
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct stat st;
    ck_assert(fstat(fd, &st) == 0 && (size_t)st.st_size > 2 * AT);
    FILE *f = tmpfile();
    ck_assert_int_eq(ftruncate(fileno(f), SIZE), 0);
    p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(f), 0);
    use_all(p, SIZE);
    munmap(p, SIZE);
    p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f), 0); /* not in memory */
    use_all(p, SIZE);
    munmap(p, SIZE);
    fclose(f);
    close(fd);
    down();
}
END_TEST

/* MR-02: objects that others may share, too; writes are in the object. */
START_TEST(shared_memory)
{
    char name[] = "/dev/shm/urnic-test-XXXXXX";
    up();
    void *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    use_all(p, SIZE);
    munmap(p, SIZE);
    int fd = memfd_create("test", MFD_CLOEXEC);
    ck_assert_int_eq(ftruncate(fd, 2 * SIZE), 0);
    uint8_t *at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, SIZE);
    uint8_t *again = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, SIZE);
    use_all(at + 64, SIZE - 64);
    ck_assert(memcmp(at, again, SIZE) == 0);
    munmap(at, SIZE);
    munmap(again, SIZE);
    close(fd);
    fd = mkstemp(name);
    ck_assert_int_eq(ftruncate(fd, SIZE), 0);
    at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    use_all(at, SIZE);
    munmap(at, SIZE);
    close(fd);
    unlink(name);
    int id = shmget(IPC_PRIVATE, SIZE, 0600);
    ck_assert_int_ge(id, 0);
    at = shmat(id, NULL, 0);
    ck_assert_int_eq(shmctl(id, IPC_RMID, NULL), 0);
    use_all(at, SIZE);
    shmdt(at);
    /* Another context's memory is but a shared object. */
    use_all(a.mem + SIZE / 2, SIZE / 2);
    down();
}
END_TEST

/* Where the daemon can map an object it does: then an atomic is one against instructions of the
 * program as well. */
START_TEST(shared_objects_are_mapped)
{
    struct urnic_mr *mr;
    char name[] = "/dev/shm/urnic-test-XXXXXX";
    up_with("daemon");
    int fd = mkstemp(name);
    ck_assert_int_eq(ftruncate(fd, SIZE), 0);
    uint8_t *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert_int_eq(urnic_reg_mr(b.pd, p, SIZE, END_ACCESS, &mr), 0);
    munmap(p, SIZE); /* the region is still there */
    fill(a.mem, LEN, 9);
    post(&a, URNIC_WR_RDMA_WRITE, a.mr, 0, LEN, mr, 0, 1);
    end_expect(&a, URNIC_WC_SUCCESS, 1);
    p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert(memcmp(p, a.mem, LEN) == 0);
    munmap(p, SIZE);
    ck_assert_int_eq(urnic_dereg_mr(mr), 0);
    close(fd);
    unlink(name);
    down();
}
END_TEST

/* MR-12: the daemon takes what it can map, however short, and says so of other memory. No octets
 * need no memory. */
START_TEST(what_the_daemon_takes)
{
    struct urnic_mr *mr;
    uint8_t *heap = malloc(SIZE), octet = 0;
    FILE *f = tmpfile();
    up_with("daemon");
    uint8_t *own = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_int_eq(ftruncate(fileno(f), SIZE), 0);
    uint8_t *file = mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE, fileno(f), 0);
    ck_assert_int_eq(urnic_reg_mr(b.pd, heap, SIZE, END_ACCESS, &mr), -EOPNOTSUPP);
    ck_assert_int_eq(urnic_reg_mr(b.pd, &octet, 1, END_ACCESS, &mr), -EOPNOTSUPP);
    ck_assert_int_eq(urnic_reg_mr(b.pd, data_segment, SIZE, 0, &mr), -EOPNOTSUPP);
    ck_assert_int_eq(urnic_reg_mr(b.pd, own, SIZE, END_ACCESS, &mr), -EOPNOTSUPP);
    ck_assert_int_eq(urnic_reg_mr(b.pd, file, SIZE, 0, &mr), -EOPNOTSUPP);
    ck_assert_int_eq(urnic_reg_mr(b.pd, NULL, 1, 0, &mr), -EFAULT);
    ck_assert_int_eq(urnic_reg_mr(b.pd, heap, 0, 0, &mr), 0);
    ck_assert_int_eq(urnic_dereg_mr(mr), 0);
    munmap(own, SIZE);
    munmap(file, SIZE);
    fclose(f);
    free(heap);

    char name[] = "/dev/shm/urnic-test-XXXXXX";
    int fd = mkstemp(name);
    ck_assert_int_eq(ftruncate(fd, SIZE), 0);
    uint8_t *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    use_all(p, SIZE);
    ck_assert_int_eq(urnic_reg_mr(b.pd, p + 4000, 200, END_ACCESS, &mr), 0); /* in two pages */
    fill(a.mem, 200, 8);
    post(&a, URNIC_WR_RDMA_WRITE, a.mr, 0, 200, mr, 0, 1);
    end_expect(&a, URNIC_WC_SUCCESS, 1);
    ck_assert(memcmp(p + 4000, a.mem, 200) == 0);
    ck_assert_int_eq(urnic_dereg_mr(mr), 0);
    munmap(p, SIZE);
    close(fd);
    unlink(name);
    down();
}
END_TEST

/* MR-02: a region has the rights that its pages have when it is registered. */
START_TEST(rights_of_pages)
{
    struct urnic_mr *mr;
    uint8_t *p = mmap(NULL, 3 * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    up();
    fill(p, SIZE, 5);
    ck_assert_int_eq(mprotect(p, SIZE, PROT_READ), 0);
    ck_assert_int_eq(munmap(p + 2 * SIZE, 4096), 0);
    ck_assert_int_eq(urnic_reg_mr(b.pd, p, SIZE, END_ACCESS, &mr), -EFAULT);
    ck_assert_int_eq(urnic_reg_mr(b.pd, p + SIZE - 1, 2, END_ACCESS, &mr), -EFAULT);
    ck_assert_int_eq(urnic_reg_mr(b.pd, p + SIZE, SIZE + 1, END_ACCESS, &mr), -EFAULT);
    ck_assert_int_eq(urnic_reg_mr(b.pd, p + 2 * SIZE, 1, 0, &mr), -EFAULT);
    ck_assert_int_eq(urnic_reg_mr(b.pd, NULL, 1, 0, &mr), -EFAULT);
    ck_assert_int_eq(urnic_reg_mr(b.pd, p, SIZE_MAX, 0, &mr), -EINVAL);
    ck_assert_int_eq(urnic_reg_mr(b.pd, p, SIZE, URNIC_ACCESS_REMOTE_WRITE, &mr), -EINVAL);
    ck_assert_int_eq(urnic_reg_mr(b.pd, p, SIZE, 0x40, &mr), -EOPNOTSUPP);
    ck_assert_int_eq(urnic_reg_mr(b.pd, p, 0, 0, &mr), 0);
    ck_assert_int_eq(urnic_dereg_mr(mr), 0);
    /* The rights of IBV_ACCESS_OPTIONAL_RANGE are hints: they are accepted, and change nothing. */
    ck_assert_int_eq(urnic_reg_mr(b.pd, p, SIZE, URNIC_ACCESS_REMOTE_READ | 0x3FF00000u, &mr), 0);
    use(p, mr, false);
    ck_assert_int_eq(urnic_dereg_mr(mr), 0);
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    uint8_t *file = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
    ck_assert_int_eq(urnic_reg_mr(b.pd, file, 8192, END_ACCESS, &mr), -EFAULT);
    ck_assert_int_eq(urnic_reg_mr(b.pd, file, 8192, 0, &mr), 0);
    post(&b, URNIC_WR_RDMA_WRITE, mr, 1, 8191, a.mr, 0, 1);
    end_expect(&b, URNIC_WC_SUCCESS, 1);
    ck_assert(memcmp(file + 1, a.mem, 8191) == 0);
    ck_assert_int_eq(urnic_dereg_mr(mr), 0);
    close(fd);
    munmap(file, 8192);
    munmap(p, 3 * SIZE);
    down();
}
END_TEST

/* RSP-17, MR-12: if pages of a region are removed or lose their rights, packets that touch them get
 * the error of an invalid key. Earlier packets of the same burst have been placed. */
START_TEST(pages_that_go)
{
    struct urnic_mr *mr;
    uint8_t *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    up();
    ck_assert_int_eq(urnic_reg_mr(b.pd, p, SIZE, END_ACCESS, &mr), 0);
    ck_assert_int_eq(munmap(p + 16384, 4096), 0);
    fill(a.mem, LEN, 6);
    post(&a, URNIC_WR_RDMA_WRITE, a.mr, 0, 16384, mr, 0, 1);
    post(&a, URNIC_WR_RDMA_WRITE, a.mr, 0, LEN, mr, 0, 2);
    post(&a, URNIC_WR_RDMA_WRITE, a.mr, 0, 64, mr, 100000, 3);
    end_expect(&a, URNIC_WC_SUCCESS, 1);
    end_expect(&a, URNIC_WC_REM_ACCESS_ERR, 2);
    end_expect(&a, URNIC_WC_WR_FLUSH_ERR, 3);
    ck_assert(memcmp(p, a.mem, 16384) == 0);
    ck_assert(p[100000] == 0); /* no octet after the failure */
    anew();
    post(&a, URNIC_WR_RDMA_READ, a.mr, 0, LEN, mr, 0, 4);
    end_expect(&a, URNIC_WC_REM_ACCESS_ERR, 4);
    anew();
    post(&a, URNIC_WR_ATOMIC_FETCH_AND_ADD, a.mr, 0, 8, mr, 16384, 5);
    end_expect(&a, URNIC_WC_REM_ACCESS_ERR, 5);
    anew();
    post(&b, URNIC_WR_RDMA_WRITE, mr, 0, LEN, a.mr, 0, 6);
    end_expect(&b, URNIC_WC_LOC_PROT_ERR, 6);
    anew();
    post(&b, URNIC_WR_RDMA_READ, mr, 0, LEN, a.mr, 0, 7);
    end_expect(&b, URNIC_WC_LOC_PROT_ERR, 7);
    anew();
    ck_assert_int_eq(mprotect(p, 4096, PROT_READ), 0);
    post(&a, URNIC_WR_RDMA_WRITE, a.mr, 0, 8, mr, 0, 8);
    end_expect(&a, URNIC_WC_REM_ACCESS_ERR, 8);
    ck_assert_uint_ge(rig_counter(&rig, "urn1", "tx_nak_rem_access"), 4);
    ck_assert_int_eq(urnic_dereg_mr(mr), 0);
    munmap(p, SIZE);
    down();
}
END_TEST

/* MR-15: many regions cost little, share pages, and may overlap. */
START_TEST(many_regions)
{
    static struct urnic_mr *mr[REGIONS * 8];
    const unsigned n = sizeof(mr) / sizeof(mr[0]);
    uint8_t *heap = malloc(SIZE);
    up();
    memset(heap, 0, SIZE);
    for (unsigned i = 0; i < n; i++)
        ck_assert_int_eq(urnic_reg_mr(b.pd, heap + i % REGIONS, 8, END_ACCESS, &mr[i]), 0);
    fill(a.mem, SIZE, 7);
    for (unsigned i = 0; i < 64; i++) {
        unsigned k = (i * 521) % n;
        post(&a, URNIC_WR_RDMA_WRITE, a.mr, i * 8, 8, mr[k], 0, i);
        end_expect(&a, URNIC_WC_SUCCESS, i);
        ck_assert(memcmp(heap + k % REGIONS, a.mem + i * 8, 8) == 0);
    }
    for (unsigned i = 0; i < n; i++)
        ck_assert_int_eq(urnic_dereg_mr(mr[i]), 0);
    free(heap);
    down();
}
END_TEST

/* After a fork the parent's regions are unchanged: the child has copies of their pages. */
START_TEST(forked_children)
{
    uint8_t *heap = malloc(SIZE);
    struct urnic_mr *mr;
    int pipes[2];
    up();
    memset(heap, 1, SIZE);
    ck_assert_int_eq(urnic_reg_mr(b.pd, heap, SIZE, END_ACCESS, &mr), 0);
    ck_assert_int_eq(pipe(pipes), 0);
    pid_t pid = fork_apart();
    if (pid == 0) {
        uint8_t octet;
        close(pipes[1]);
        (void)!read(pipes[0], &octet, 1); /* until the parent has got its data */
        for (unsigned i = 0; i < SIZE; i++) {
            if (heap[i] != 1)
                _exit(1);
        }
        _exit(urnic_reg_mr(b.pd, heap, SIZE, END_ACCESS, &mr) == -ENODEV ? 0 : 2);
    }
    use(heap, mr, true);
    close(pipes[1]);
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(urnic_dereg_mr(mr), 0);
    free(heap);
    down();
}
END_TEST

/* A program of another user: any memory for the engine in it, urnic_alloc and its own sealed
 * objects for the daemon's. */
START_TEST(other_users)
{
    if (geteuid() != 0) {
        fprintf(stderr, "not root: there is no other user to be\n");
        return;
    }
    up_with("daemon");
    ck_assert_int_eq(chmod(rig.dir, 0755), 0);
    ck_assert_int_eq(chmod(rig.socket, 0666), 0);
    pid_t pid = fork_apart();
    if (pid == 0) {
        struct end e;
        struct urnic_mr *mr;
        void *heap = malloc(SIZE);
        if (setgid(OTHER) < 0 || setuid(OTHER) < 0)
            _exit(1);
        setenv("URNIC_ENGINE", "application", 1);
        end_open(&e, &rig, "urn0", SIZE);
        if (urnic_reg_mr(e.pd, heap, SIZE, END_ACCESS, &mr) != 0 || urnic_dereg_mr(mr) != 0)
            _exit(2);
        end_close(&e);
        setenv("URNIC_ENGINE", "daemon", 1);
        end_open(&e, &rig, "urn0", SIZE);
        if (urnic_reg_mr(e.pd, heap, SIZE, END_ACCESS, &mr) != -EOPNOTSUPP)
            _exit(4);
        int fd = memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (ftruncate(fd, 4096) < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0 ||
            urnic_reg_mr_fd(e.pd, fd, 0, 4096, 0, END_ACCESS, &mr) != 0)
            _exit(3);
        urnic_dereg_mr(mr);
        end_close(&e);
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    down();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("process_memory");
    TCase *t = tcase_create("process_memory");

    tcase_set_timeout(t, 60);
    tcase_add_test(t, private_memory);
    tcase_add_test(t, shared_memory);
    tcase_add_test(t, shared_objects_are_mapped);
    tcase_add_test(t, what_the_daemon_takes);
    tcase_add_test(t, rights_of_pages);
    tcase_add_test(t, pages_that_go);
    tcase_add_test(t, many_regions);
    tcase_add_test(t, forked_children);
    tcase_add_test(t, other_users);
    suite_add_tcase(s, t);
    return unit_run(s);
}
