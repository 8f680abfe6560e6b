/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Queues in shared memory: the daemon's side with entries that an application wrote.
 */
#include "ipc_ring.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

#define ENTRIES 16u

struct queue {
    struct ipc_queue head;
    _Alignas(64) uint8_t data[ENTRIES * IPC_UNIT];
};

/* Write an entry at the client's index, unit by unit, as long as it says. */
static void put(struct ipc_ring *client, const void *entry, uint32_t units)
{
    for (uint32_t i = 0; i < units; i++)
        memcpy(client->base + ((client->index + i) & (client->entries - 1)) * IPC_UNIT,
               (const uint8_t *)entry + i * IPC_UNIT, IPC_UNIT);
    client->index += units;
    ipc_ring_publish(client);
}

/* One unit longer than any good entry, for entries with a wrong length. */
struct entry {
    struct ipc_sqe head;
    uint8_t rest[IPC_UNIT * (IPC_UNITS_MAX + 1) - sizeof(struct ipc_sqe)];
};

START_TEST(shm_03_send_entry_shapes)
{
    static const struct {
        const char *what;
        bool ud;
        struct ipc_sqe e;
        int ret;
        int opcode;
    } cases[] = {
        {"SHM-03 one SGE in one unit", false, {.opcode = WR_SEND, .units = 1, .nsge = 1}, 1, 2},
        {"SHM-03 two SGEs fill one unit", false, {.opcode = WR_SEND, .units = 1, .nsge = 2}, 1, 2},
        {"SHM-03 three SGEs don't fit one unit",
         false,
         {.opcode = WR_SEND, .units = 1, .nsge = 3},
         1,
         255},
        {"SHM-03 sixteen SGEs in five units",
         false,
         {.opcode = WR_SEND, .units = 5, .nsge = 16},
         1,
         2},
        {"SHM-03 seventeen are too many, even with room",
         false,
         {.opcode = WR_SEND, .units = 8, .nsge = 17},
         1,
         255},
        {"SHM-03 inline of 32 in one unit",
         false,
         {.opcode = 2, .units = 1, .flags = 8, .inline_len = 32},
         1,
         2},
        {"SHM-03 inline of 33 reaches past it",
         false,
         {.opcode = 2, .units = 1, .flags = 8, .inline_len = 33},
         1,
         255},
        {"SHM-03 inline of 256",
         false,
         {.opcode = 2, .units = 5, .flags = 8, .inline_len = 256},
         1,
         2},
        {"SHM-03 inline of 257",
         false,
         {.opcode = 2, .units = 8, .flags = 8, .inline_len = 257},
         1,
         255},
        {"SHM-03 inline and SGEs exclude each other",
         false,
         {.opcode = 2, .units = 2, .flags = 8, .nsge = 1, .inline_len = 8},
         1,
         255},
        {"SHM-03 inline length without the flag",
         false,
         {.opcode = 2, .units = 1, .inline_len = 8},
         1,
         255},
        {"SHM-03 unknown opcode", false, {.opcode = WR_OPCODE_MAX, .units = 1}, 1, 255},
        {"SHM-03 reserved flag", false, {.opcode = 2, .units = 1, .flags = 16}, 1, 255},
        {"SHM-03 an atomic's operands take the place of one SGE",
         false,
         {.opcode = WR_ATOMIC_CMP_AND_SWP, .units = 1, .nsge = 1},
         1,
         5},
        {"SHM-03 an atomic and two SGEs need two units",
         false,
         {.opcode = WR_ATOMIC_CMP_AND_SWP, .units = 1, .nsge = 2},
         1,
         255},
        {"SHM-03 REG_MR without segments", false, {.opcode = WR_REG_MR, .units = 1}, 1, WR_REG_MR},
        {"SHM-03 REG_MR's segments need a second unit",
         false,
         {.opcode = WR_REG_MR, .units = 1, .nsge = 1},
         1,
         255},
        {"SHM-03 16 segments in five",
         false,
         {.opcode = WR_REG_MR, .units = 5, .nsge = 16},
         1,
         WR_REG_MR},
        {"SHM-03 a datagram's address needs a second unit",
         true,
         {.opcode = 2, .units = 1},
         1,
         255},
        {"SHM-03 datagram with three SGEs in two units",
         true,
         {.opcode = 2, .units = 2, .nsge = 3},
         1,
         2},
        {"SHM-03 datagram with four doesn't fit",
         true,
         {.opcode = 2, .units = 2, .nsge = 4},
         1,
         255},
        {"SHM-02 no units at all", false, {.opcode = 2, .units = 0}, -EPROTO, 0},
        {"SHM-02 more units than an entry has", false, {.opcode = 2, .units = 9}, -EPROTO, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct queue q = {0};
        struct ipc_ring client, daemon;
        struct ipc_send got;
        struct entry e = {.head = cases[i].e};
        e.head.cookie = 77;
        ipc_ring_init(&client, &q, ENTRIES, IPC_UNIT, cases[i].ud);
        daemon = client;
        put(&client, &e, 9 > cases[i].e.units ? 8 : 9);
        ck_assert_msg(ipc_sq_fetch(&daemon, &got) == cases[i].ret, "%s", cases[i].what);
        if (cases[i].ret != 1)
            continue;
        ck_assert_msg(got.wr.opcode == cases[i].opcode, "%s", cases[i].what);
        ck_assert_msg(got.wr.cookie == 77, "%s", cases[i].what);
        ck_assert_msg(daemon.index == cases[i].e.units, "%s", cases[i].what);
        if (got.wr.opcode == IPC_WR_MALFORMED)
            ck_assert_msg(got.wr.nsge == 0 && got.wr.inline_len == 0, "%s", cases[i].what);
    }
}
END_TEST

START_TEST(shm_02_indices)
{
    static const struct {
        const char *what;
        uint32_t start, prod;
        int ret;
    } cases[] = {
        {"SHM-02 empty", 5, 5, 0},
        {"SHM-02 full is legal", 5, 5 + ENTRIES, 1},
        {"SHM-02 one more than full", 5, 6 + ENTRIES, -EPROTO},
        {"SHM-02 backwards", 5, 4, -EPROTO},
        {"SHM-02 half way around", 5, 0x80000005u, -EPROTO},
        {"SHM-02 across 2^32", 0xFFFFFFFCu, 2, 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct queue q = {0};
        struct ipc_ring r;
        struct ipc_send s;
        struct ipc_recv_entry e;
        ipc_ring_init(&r, &q, ENTRIES, IPC_UNIT, false);
        for (uint32_t u = 0; u < ENTRIES; u++)
            q.data[u * IPC_UNIT + offsetof(struct ipc_sqe, units)] = 1;
        atomic_store(&q.head.prod, cases[i].prod);
        r.index = cases[i].start;
        ck_assert_msg(ipc_sq_fetch(&r, &s) == cases[i].ret, "%s", cases[i].what);
        memset(q.data, 0, sizeof(q.data));
        r.index = cases[i].start;
        ck_assert_msg(ipc_rq_fetch(&r, &e) == cases[i].ret, "%s", cases[i].what);
    }
}
END_TEST

/* SHM-02: an entry that claims units which were not published yet. */
START_TEST(shm_02_entry_longer_than_published)
{
    struct queue q = {0};
    struct ipc_ring client, daemon;
    struct ipc_send got;
    struct entry e = {.head = {.opcode = WR_SEND, .units = 3}};
    ipc_ring_init(&client, &q, ENTRIES, IPC_UNIT, false);
    daemon = client;
    put(&client, &e, 2);
    ck_assert_int_eq(ipc_sq_fetch(&daemon, &got), -EPROTO);
}
END_TEST

/* SHM-01: the copy is whole and private, also when the entry wraps. */
START_TEST(shm_01_entry_wraps_and_is_copied)
{
    struct queue q = {0};
    struct ipc_ring client, daemon;
    struct ipc_send got;
    struct entry e = {.head = {.opcode = 2, .units = 5, .flags = 8, .inline_len = 256}};
    for (unsigned i = 0; i < 256; i++)
        e.rest[i] = (uint8_t)i;
    ipc_ring_init(&client, &q, ENTRIES, IPC_UNIT, false);
    client.index = ENTRIES - 2;
    atomic_store(&q.head.cons, ENTRIES - 2);
    daemon = client;
    put(&client, &e, 5);
    ck_assert_int_eq(ipc_sq_fetch(&daemon, &got), 1);
    memset(q.data, 0xEE, sizeof(q.data));
    ck_assert_int_eq(memcmp(got.inline_data, e.rest, 256), 0);
    ck_assert_uint_eq(ipc_ring_room(&client), ENTRIES - 5);
    ipc_ring_release(&daemon);
    ck_assert_uint_eq(atomic_load(&q.head.cons), ENTRIES + 3);
    ck_assert_uint_eq(ipc_ring_room(&client), ENTRIES);
}
END_TEST

START_TEST(shm_03_datagram_fields)
{
    /* SHM-03 the extension of a datagram is taken over in full */
    struct queue q = {0};
    struct ipc_ring client, daemon;
    struct ipc_send got;
    struct entry e = {.head = {.opcode = 2, .units = 2, .nsge = 1}};
    struct ipc_sqe_ud ud = {.qpn = 0x123456, .qkey = 9, .av = {.sgid_index = 3, .hop_limit = 64}};
    struct ipc_sge sge = {.va = 0x1000, .len = 100, .lkey = 5};
    memcpy(e.rest, &ud, sizeof(ud));
    memcpy(e.rest + sizeof(ud), &sge, sizeof(sge));
    ipc_ring_init(&client, &q, ENTRIES, IPC_UNIT, true);
    daemon = client;
    put(&client, &e, 2);
    ck_assert_int_eq(ipc_sq_fetch(&daemon, &got), 1);
    ck_assert_uint_eq(got.ud.qpn, 0x123456);
    ck_assert_uint_eq(got.ud.av.hop_limit, 64);
    ck_assert_int_eq(memcmp(got.sge, &sge, sizeof(sge)), 0);
}
END_TEST

START_TEST(shm_03_xrc_fields)
{
    /* SHM-03 XRC-03 the shared queue's number follows the other extensions, before the data */
    static const unsigned opcodes[] = {WR_SEND, WR_ATOMIC_FETCH_AND_ADD, WR_BIND_MW};
    for (unsigned i = 0; i < 3; i++) {
        struct queue q = {0};
        struct ipc_ring client, daemon;
        struct ipc_send got;
        uint32_t ext = ipc_sqe_ext(opcodes[i], false);
        struct entry e = {.head = {.opcode = (uint8_t)opcodes[i], .units = 2, .nsge = 1}};
        struct ipc_sqe_atomic atomic = {.compare_add = 77};
        struct ipc_sqe_xrc xrc = {.srqn = 0xABCDEF};
        struct ipc_sge sge = {.va = 0x1000, .len = 100, .lkey = 5};
        if (opcodes[i] == WR_ATOMIC_FETCH_AND_ADD)
            memcpy(e.rest, &atomic, sizeof(atomic));
        memcpy(e.rest + ext, &xrc, sizeof(xrc));
        memcpy(e.rest + ext + sizeof(xrc), &sge, sizeof(sge));
        ipc_ring_init(&client, &q, ENTRIES, IPC_UNIT, false);
        client.xrc = true;
        daemon = client;
        put(&client, &e, 2);
        ck_assert_int_eq(ipc_sq_fetch(&daemon, &got), 1);
        ck_assert_uint_eq(got.wr.opcode, opcodes[i]);
        ck_assert_uint_eq(got.xrc.srqn, 0xABCDEF);
        ck_assert_int_eq(memcmp(got.sge, &sge, sizeof(sge)), 0);
        if (opcodes[i] == WR_ATOMIC_FETCH_AND_ADD)
            ck_assert_uint_eq(got.atomic.compare_add, 77);
    }
}
END_TEST

START_TEST(shm_03_receive_entries)
{
    /* SHM-03 nsge above the stride is malformed, never read */
    struct queue q = {0};
    struct ipc_ring r;
    struct ipc_recv_entry got;
    struct ipc_rqe e = {.cookie = 11, .nsge = 3};
    ipc_ring_init(&r, &q, ENTRIES, 64, false);
    memcpy(q.data, &e, sizeof(e));
    e.nsge = 4;
    memcpy(q.data + 64, &e, sizeof(e));
    atomic_store(&q.head.prod, 2);
    ck_assert_int_eq(ipc_rq_fetch(&r, &got), 1);
    ck_assert_uint_eq(got.nsge, 3);
    ck_assert_uint_eq(got.cookie, 11);
    ck_assert_int_eq(ipc_rq_fetch(&r, &got), 1);
    ck_assert_uint_eq(got.nsge, UINT32_MAX);
    ck_assert_int_eq(ipc_rq_fetch(&r, &got), 0);
    ck_assert_uint_eq(ipc_rq_stride(1), 32);
    ck_assert_uint_eq(ipc_rq_stride(3), 64);
    ck_assert_uint_eq(ipc_rq_stride(16), 512);
}
END_TEST

/* SHM-03: a stride is a power of two, and may hold more SGEs than a request may have: 31 in 512
 * octets. */
START_TEST(shm_03_more_sges_than_there_may_be)
{
    static struct {
        struct ipc_queue head;
        uint8_t data[4 * 512];
    } q;
    struct ipc_ring r;
    struct {
        struct ipc_recv_entry e;
        uint8_t guard[256];
    } got;
    ipc_ring_init(&r, &q, 4, 512, false);
    for (uint32_t i = 0; i < 3; i++) {
        struct ipc_rqe e = {.cookie = i, .nsge = i < 2 ? IPC_SGE_MAX + i : 31};
        memcpy(q.data + (size_t)i * 512, &e, sizeof(e));
    }
    atomic_store(&q.head.prod, 3);
    memset(&got, 0xEE, sizeof(got));
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_int_eq(ipc_rq_fetch(&r, &got.e), 1);
        ck_assert_uint_eq(got.e.cookie, i);
        ck_assert_uint_eq(got.e.nsge, i == 0 ? IPC_SGE_MAX : UINT32_MAX);
    }
    for (size_t i = 0; i < sizeof(got.guard); i++)
        ck_assert_uint_eq(got.guard[i], 0xEE);
}
END_TEST

/* SHM-03: the contents of a send queue's entry: the head, the longest extension, SGEs or data, in
 * units. */
START_TEST(shm_03_units_of_the_longest_request)
{
    static const struct {
        uint32_t sge, data;
        bool ud;
        uint32_t units;
    } rows[] = {{0, 0, false, 1},  {1, 0, false, 2}, {0, 1, false, 2},  {4, 64, false, 2},
                {5, 0, false, 3},  {0, 0, true, 2},  {3, 48, true, 2},  {3, 49, true, 3},
                {16, 0, false, 5}, {16, 0, true, 6}, {0, 256, false, 5}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        ck_assert_uint_eq(ipc_sqe_units_max(rows[i].sge, rows[i].data, rows[i].ud), rows[i].units);
}
END_TEST

struct cq {
    struct ipc_cq_ring ring;
    struct ipc_cqe e[4];
};

START_TEST(cq_05_full_ring_refuses_and_keeps)
{
    /* CQ-05 memory is never overwritten; SHM-05 an impossible index only costs the client */
    struct cq mem = {0};
    struct ipc_cq_view daemon, client;
    ipc_cq_view_init(&daemon, &mem, 4);
    client = daemon;
    ck_assert_ptr_null(ipc_cq_peek(&client));
    for (uint64_t i = 0; i < 4; i++)
        ck_assert(ipc_cq_push(&daemon, &(struct ipc_cqe){.cookie = i}));
    ck_assert(!ipc_cq_push(&daemon, &(struct ipc_cqe){.cookie = 4}));
    for (uint64_t i = 0; i < 4; i++, client.index++)
        ck_assert_uint_eq(ipc_cq_peek(&client)->cookie, i);
    ck_assert_ptr_null(ipc_cq_peek(&client));
    ipc_cq_consume(&client);
    ck_assert(ipc_cq_push(&daemon, &(struct ipc_cqe){.cookie = 5}));
    ck_assert_uint_eq(ipc_cq_peek(&client)->cookie, 5);
    atomic_store(&mem.ring.cons, 100); /* after the last stored entry */
    ck_assert(!ipc_cq_push(&daemon, &(struct ipc_cqe){.cookie = 6}));
}
END_TEST

START_TEST(cq_phase_across_laps)
{
    /* CQ-08 in order over many laps and over the wrap of the 32-bit index */
    struct cq mem = {0};
    struct ipc_cq_view daemon, client;
    ipc_cq_view_init(&daemon, &mem, 4);
    client = daemon;
    for (uint64_t i = 0; i < 1000; i++) {
        if (i == 500) { /* a multiple of 8 in the lap's parity: continue just before 2^32 */
            while (daemon.index % 8 != 0) {
                ck_assert(ipc_cq_push(&daemon, &(struct ipc_cqe){0}));
                client.index++;
                ipc_cq_consume(&client);
            }
            daemon.index = client.index = 0u - 16u;
            atomic_store(&client.ring->cons, client.index);
        }
        ck_assert_ptr_null(ipc_cq_peek(&client));
        ck_assert(ipc_cq_push(&daemon, &(struct ipc_cqe){.cookie = i}));
        ck_assert_ptr_nonnull(ipc_cq_peek(&client));
        ck_assert_uint_eq(ipc_cq_peek(&client)->cookie, i);
        client.index++;
        ipc_cq_consume(&client);
    }
}
END_TEST

START_TEST(cq_06_arming)
{
    static const struct {
        const char *what;
        uint32_t arm1, arm2;
        bool solicited, event, again;
    } cases[] = {
        {"CQ-06 not armed: no event", 0, 0, true, false, false},
        {"CQ-06 NEXT: any completion", IPC_ARM_NEXT, 0, false, true, false},
        {"CQ-06 one event per arm", IPC_ARM_NEXT, IPC_ARM_NEXT, false, true, false},
        {"CQ-06 SOLICITED: not for others, and stays armed", IPC_ARM_SOLICITED, 0, false, false,
         true},
        {"CQ-06 SOLICITED: for solicited ones", IPC_ARM_SOLICITED, 0, true, true, false},
        {"CQ-06 the stronger of two wins", IPC_ARM_NEXT, IPC_ARM_SOLICITED, false, true, false},
        {"CQ-06 the stronger of two wins, other order", IPC_ARM_SOLICITED, IPC_ARM_NEXT, false,
         true, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct cq mem = {0};
        struct ipc_cq_view v;
        ipc_cq_view_init(&v, &mem, 4);
        if (cases[i].arm1)
            ipc_cq_arm(&v, cases[i].arm1);
        if (cases[i].arm2)
            ipc_cq_arm(&v, cases[i].arm2);
        ck_assert_msg(ipc_cq_notify(&v, cases[i].solicited) == cases[i].event, "%s", cases[i].what);
        ck_assert_msg(ipc_cq_notify(&v, true) == cases[i].again, "%s", cases[i].what);
    }
}
END_TEST

START_TEST(shm_06_doorbells)
{
    /* SHM-06 a queue rings once until it is attended; kicks only for a sleeper */
    _Alignas(64) uint8_t mem[128] = {0};
    struct ipc_doorbell *db = (struct ipc_doorbell *)(void *)mem;
    struct ipc_worker w = {0};
    struct queue q = {0};
    struct ipc_ring client, daemon;
    uint32_t head = 0;
    ipc_ring_init(&client, &q, ENTRIES, IPC_UNIT, false);
    daemon = client;
    ck_assert_int_eq(ipc_doorbell_pop(db, 4, &head), -1);
    for (int lap = 0; lap < 20; lap++) {
        client.index++;
        ck_assert(ipc_ring_publish(&client));
        ipc_worker_sleeping(&w, lap & 1);
        ck_assert(ipc_doorbell_push(db, 4, 42, &w) == (lap & 1));
        client.index++;
        ck_assert(!ipc_ring_publish(&client));
        ck_assert(ipc_doorbell_ready(db, 4, head));
        ck_assert_int_eq(ipc_doorbell_pop(db, 4, &head), 42);
        ck_assert_int_eq(ipc_doorbell_pop(db, 4, &head), -1);
        ipc_ring_attend(&daemon);
        daemon.index = client.index;
        ipc_ring_release(&daemon);
    }
}
END_TEST

/* In builds that check invariants, a side reports its own violation, and aborts. */
static void aborts(const char *says, void (*broken)(struct ipc_ring *r, struct ipc_cq_view *v))
{
    static struct queue shared;
    static struct {
        struct ipc_cq_ring ring;
        struct ipc_cqe cqe[ENTRIES];
    } cq;
    struct ipc_ring r;
    struct ipc_cq_view v;
    char said[256];
    int fds[2], status;
    ipc_ring_init(&r, &shared, ENTRIES, IPC_UNIT, false);
    ipc_cq_view_init(&v, &cq, ENTRIES);
    ck_assert(ipc_ring_ok(&r) && ipc_cq_view_ok(&v));
    ck_assert_int_eq(pipe(fds), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(fds[1], STDERR_FILENO);
        broken(&r, &v);
        _exit(0);
    }
    close(fds[1]);
    ssize_t n = read(fds[0], said, sizeof(said) - 1);
    close(fds[0]);
    said[n > 0 ? n : 0] = '\0';
    ck_assert_int_eq(waitpid(child, &status, 0), child);
#ifdef URNIC_INVARIANTS
    ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "%s: %d", says, status);
    ck_assert_str_eq(said, says);
#else
    ck_assert_msg(status == 0 && n == 0, "%s: %d %s", says, status, said);
#endif
}

static void more_than_fit(struct ipc_ring *r, struct ipc_cq_view *v)
{
    (void)v;
    r->index = ENTRIES + 1;
    ipc_ring_publish(r);
}

static void wrong_size(struct ipc_ring *r, struct ipc_cq_view *v)
{
    (void)v;
    r->entries = ENTRIES - 1;
    ipc_ring_release(r);
}

static void polled_too_far(struct ipc_ring *r, struct ipc_cq_view *v)
{
    (void)r;
    v->index = ENTRIES + 1;
    ipc_cq_consume(v);
}

static void wrong_completions(struct ipc_ring *r, struct ipc_cq_view *v)
{
    struct ipc_cqe cqe = {0};
    (void)r;
    v->entries = ENTRIES * 2 + 1;
    ipc_cq_push(v, &cqe);
}

START_TEST(broken_rings_are_told)
{
    aborts("urnic: invariant ring-room: index 17, the other side's 0, 16 entries\n", more_than_fit);
    aborts("urnic: invariant ring-view: index 0, the other side's 0, 15 entries\n", wrong_size);
    aborts("urnic: invariant completions-order: index 17, the other side's 0, 16 entries\n",
           polled_too_far);
    aborts("urnic: invariant completions-view: index 0, the other side's 0, 33 entries\n",
           wrong_completions);
}
END_TEST

UNIT_MAIN("ipc ring", shm_03_send_entry_shapes, shm_02_indices, shm_02_entry_longer_than_published,
          shm_01_entry_wraps_and_is_copied, shm_03_datagram_fields, shm_03_receive_entries,
          shm_03_xrc_fields, shm_03_more_sges_than_there_may_be,
          shm_03_units_of_the_longest_request, cq_05_full_ring_refuses_and_keeps,
          cq_phase_across_laps, cq_06_arming, shm_06_doorbells, broken_rings_are_told)
