/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Programs of another user that have a channel of their own and put into it what they like (SEC-35,
 * SHM-13): each thing is refused and counted, and other users' transfers go on.
 */
#include <errno.h>
#include <sys/stat.h>

#include "channel.h"
#include "channel_ring.h"
#include "ipc.h"
#include "switch_ask.h"
#include "unit.h"
#include "wire.h"
/* whose names are short */
#include "hostile_rig.h"

#define MALLORY  65500u
#define CNPS     20000u
#define CHANNELS 1024u /* of a device */
#define GROWTHS  400u  /* 14 GiB of rings */
#define PERMUTED 0x77u /* in the block */

static uint32_t victims; /* the queue pair that b has and a sends to */
static uint32_t strange; /* one of another program on the same device */

/* A channel without liburnic, on urn0. */
struct raw {
    int sock;
    struct io_port *io;
    uint8_t *base;
    uint32_t qpn;
};

static int call(int sock, const void *msg, size_t len, void *reply, size_t size, int *fds)
{
    static _Alignas(16) uint8_t buf[IPC_MSG_MAX];
    unsigned nfds = IPC_FD_MAX;
    struct ipc_hdr hdr;
    if (ipc_send(sock, msg, len, NULL, 0, 0) < 0)
        return -EPIPE;
    ssize_t n = ipc_recv(sock, buf, sizeof(buf), fds, &nfds, 0);
    if (n < (ssize_t)sizeof(hdr))
        return -EPROTO;
    memcpy(&hdr, buf, sizeof(hdr));
    memcpy(reply, buf, (size_t)n < size ? (size_t)n : size);
    return hdr.status;
}

/* 0, or the first refusal. */
static int raw_open(struct raw *r)
{
    struct ipc_hello hello;
    struct ipc_ctx_open open = {.hdr.type = IPC_CTX_OPEN, .device = "urn0", .worker = -1};
    struct ipc_engine_open engine = {.hdr.type = IPC_ENGINE_OPEN, .slots = CHANNEL_SLOTS_MIN};
    const struct ipc_hdr mapped = {.type = IPC_ENGINE_MAPPED};
    struct ipc_engine_opened opened = {0};
    struct ipc_ctx_opened ctx;
    struct ipc_engine_block block = {0};
    struct channel_memory m;
    int fds[IPC_FD_MAX] = {-1, -1, -1, -1};
    r->sock = raw_connect();
    ipc_hello_fill(&hello, 0);
    int rc = call(r->sock, &hello, sizeof(hello), &hello, sizeof(hello), fds);
    if (rc == 0)
        rc = call(r->sock, &open, sizeof(open), &ctx, sizeof(ctx), fds);
    for (unsigned i = 0; rc == 0 && i < 4; i++)
        close(fds[i]);
    if (rc == 0)
        rc = call(r->sock, &engine, sizeof(engine), &opened, sizeof(opened), fds);
    if (rc < 0)
        return rc;
    ck_assert_int_eq(channel_memory_map(&m, fds[0], opened.slots, opened.frame_max), 0);
    r->base = m.base;
    close(fds[0]);
    close(fds[2]);
    rc = call(r->sock, &mapped, sizeof(mapped), &block, sizeof(block), (int[IPC_FD_MAX]){0});
    if (rc < 0) {
        channel_memory_free(&m);
        close(fds[1]);
        return rc;
    }
    r->qpn = 0x800000u | block.block << 13 | PERMUTED;
    ck_assert_int_eq(channel_open(CHANNEL_PROGRAM, &m, fds[1], 0, &r->io), 0);
    return 0;
}

static void raw_close(struct raw *r)
{
    if (r->io)
        r->io->ops->close(r->io);
    close(r->sock);
    *r = (struct raw){0};
}

/* A packet from a's address to b's queue pair, as a's would be. */
static struct wire_pkt forged(uint8_t opcode)
{
    return (struct wire_pkt){
        .ip_version = 4,
        .ttl = 64,
        .sip = wire_addr_v4(0x0A000001),
        .dip = wire_addr_v4(0x0A000002),
        .sport = 0xC000,
        .opcode = opcode,
        .pkey = WIRE_PKEY_DEFAULT,
        .dqpn = victims,
        .qkey = 0x11,
        .dmac = {0x02},
    };
}

static void raw_send(struct raw *r, struct wire_pkt p)
{
    struct io_slot s;
    while (r->io->ops->tx_reserve(r->io, &s, 1, 0) == 0)
        usleep(100);
    ck_assert_uint_gt(wire_build(s.data, s.cap, &p), 0);
    s.len = (uint32_t)wire_frame_len(&p);
    channel_tx_meta(r->io, 0, r->qpn);
    r->io->ops->tx_commit(r->io, &s, 1, 0);
}

static int name(struct raw *r, uint32_t qpn, uint32_t peer)
{
    struct ipc_engine_peer m = {.hdr.type = IPC_ENGINE_PEER, .qpn = qpn, .peer = peer};
    const uint8_t to[16] = {[10] = 0xFF, 0xFF, 10, 0, 0, 2};
    memcpy(m.av.dgid, to, sizeof(to));
    m.av.sgid_index = 3;
    m.av.hop_limit = 64;
    return call(r->sock, &m, sizeof(m), &m, sizeof(m), (int[IPC_FD_MAX]){0});
}

static void become_mallory(struct raw *r)
{
    if (setgid(MALLORY) < 0 || setuid(MALLORY) < 0)
        _exit(2);
    ck_assert_int_eq(raw_open(r), 0);
}

static void forges(void)
{
    struct raw r = {0};
    become_mallory(&r);
    for (unsigned i = 0; i < 100; i++) {
        struct wire_pkt p = forged(WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY));
        p.sqpn = r.qpn ^ 0x2000; /* of another block */
        raw_send(&r, p);
        p.sqpn = r.qpn;
        p.qkey = 0x80010000;
        raw_send(&r, p);
        raw_send(&r, forged(WIRE_WRITE_ONLY)); /* its queue pair has no peer */
        raw_send(&r, forged(WIRE_OPCODE(WIRE_UC, WIRE_SEND_ONLY)));
    }
    ck_assert_int_eq(name(&r, r.qpn ^ 0x2000, 0x123), -EINVAL);
    ck_assert_int_eq(name(&r, 0x77, 0x123), -EINVAL);
    ck_assert_int_eq(name(&r, r.qpn, 0), -EINVAL);
    ck_assert_int_eq(name(&r, r.qpn, 0x1000000), -EINVAL);
    ck_assert_int_eq(name(&r, r.qpn, victims ^ 1), 0);
    for (unsigned i = 0; i < 100; i++)
        raw_send(&r, forged(WIRE_WRITE_ONLY)); /* its peer is another one */
    for (;;)
        pause();
}

static void floods(void)
{
    struct raw r = {0};
    become_mallory(&r);
    for (unsigned i = 0; i < CNPS; i++)
        raw_send(&r, forged(WIRE_OPCODE_CNP));
    for (;;)
        pause();
}

/* Each of the indices, for ever. */
static void lies(void)
{
    for (unsigned i = 0;; i++) {
        struct raw r = {0};
        if (i == 0)
            become_mallory(&r);
        else
            ck_assert_int_eq(raw_open(&r), 0);
        struct channel_head *h = (struct channel_head *)(void *)r.base;
        struct channel_index *at = &h->to[i % 2 ? CHANNEL_SWITCH : CHANNEL_PROGRAM];
        raw_send(&r, forged(WIRE_WRITE_ONLY));
        atomic_store(&at->prod, rng());
        atomic_store(&at->cons, rng());
        atomic_store(&at->sleeping, rng());
        usleep(5000);
        raw_close(&r);
    }
}

/* Answer a question with a list of two queue pairs: its own, and another program's. */
static void answer(struct raw *r, uint32_t id)
{
    static uint8_t frame[4096];
    static const uint8_t mac[6] = {0x02};
    const struct ipc_asked_qp qp[2] = {{.info = {.qpn = r->qpn, .type = URNIC_QPT_RC}},
                                       {.info = {.qpn = strange, .type = URNIC_QPT_RC}}};
    struct ipc_answer head = {.id = id, .len = sizeof(qp)};
    uint32_t len = switch_ask_write(frame, sizeof(frame), mac, &head, (const uint8_t *)qp);
    ck_assert_uint_eq(head.part, sizeof(qp));
    ck_assert(channel_put(r->io, frame, len));
}

static void usurps(void)
{
    struct raw r = {0};
    become_mallory(&r);
    for (;;) {
        struct ipc_question q;
        struct io_frame f;
        if (r.io->ops->rx_peek(r.io, &f, 1, 0) == 0) {
            usleep(200);
            continue;
        }
        bool asked = switch_ask_read(f.data, f.len, &q);
        r.io->ops->rx_release(r.io, 1);
        if (asked)
            answer(&r, q.id);
    }
}

/* More blocks than its user may have: those that it had rest. */
static void churns(void)
{
    struct raw r = {0};
    int rc = 0;
    unsigned n = 0;
    if (setgid(MALLORY) < 0 || setuid(MALLORY) < 0)
        _exit(2);
    for (; n < CHANNELS && (rc = raw_open(&r)) == 0; n++)
        raw_close(&r);
    ck_assert_int_eq(rc, -EDQUOT);
    ck_assert_uint_eq(n, CHANNELS - CHANNELS / 8);
    close(r.sock);
}

static int grow(const struct raw *r, uint32_t slots)
{
    struct ipc_engine_open m = {.hdr.type = IPC_ENGINE_GROW, .slots = slots};
    struct ipc_engine_opened opened;
    int fds[IPC_FD_MAX] = {-1, -1, -1, -1};
    int rc = call(r->sock, &m, sizeof(m), &opened, sizeof(opened), fds);
    if (fds[0] >= 0)
        close(fds[0]);
    return rc;
}

/* It claims to have mapped its rings. */
static int claim_mapped(const struct raw *r)
{
    const struct ipc_hdr m = {.type = IPC_ENGINE_MAPPED};
    struct ipc_engine_block block;
    return call(r->sock, &m, sizeof(m), &block, sizeof(block), (int[IPC_FD_MAX]){0});
}

/* Asks for larger rings and doesn't move to them. */
static void grows(void)
{
    struct raw r = {0};
    become_mallory(&r);
    ck_assert_int_eq(claim_mapped(&r), -EINVAL);
    ck_assert_int_eq(grow(&r, CHANNEL_SLOTS_MIN), -EINVAL);
    ck_assert_int_eq(grow(&r, 100), -EINVAL);
    ck_assert_int_eq(grow(&r, 2 * CHANNEL_SLOTS_MAX), -EINVAL);
    ck_assert_int_eq(grow(&r, 128), 0);
    ck_assert_int_eq(grow(&r, 256), -EBUSY); /* it has not mapped these */
    ck_assert_int_eq(claim_mapped(&r), 0);
    ck_assert_int_eq(claim_mapped(&r), -EINVAL);
    ck_assert_int_eq(grow(&r, 256), -EBUSY); /* and doesn't move */
    for (unsigned i = 0; i < 100; i++)
        raw_send(&r, forged(WIRE_WRITE_ONLY));
    raw_close(&r);
    for (unsigned i = 0; i < GROWTHS; i++) { /* the rings count no longer when they are gone */
        ck_assert_int_eq(raw_open(&r), 0);
        ck_assert_int_eq(grow(&r, CHANNEL_SLOTS_MAX), 0);
        if (i % 2)
            ck_assert_int_eq(claim_mapped(&r), 0);
        raw_close(&r);
    }
}

static void up(void)
{
    setup();
    victims = urnic_qp_num(b.qp);
    ck_assert_int_eq(chmod(rig.dir, 0755), 0);
    ck_assert_int_eq(chmod(rig.socket, 0666), 0);
}

/* Another user's program gets a channel, too: what one has done costs others nothing. */
static void honest(void)
{
    struct raw r = {0};
    if (setgid(MALLORY + 1) < 0 || setuid(MALLORY + 1) < 0)
        _exit(2);
    if (raw_open(&r) < 0)
        _exit(3);
    raw_close(&r);
}

static void down(void)
{
    int status;
    transfer(ROUNDS);
    pid_t pid = hostile(honest);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    teardown();
}

START_TEST(sec_35_forged_packets)
{
    pid_t pid = hostile(forges);
    transfer(ROUNDS);
    reach("urn0", "channel_bad_peer", 300);
    ck_assert_uint_eq(counter("urn0", "channel_bad_srcqp"), 100);
    ck_assert_uint_eq(counter("urn0", "channel_bad_qkey"), 100);
    ck_assert_uint_eq(counter("urn0", "channel_tx_frames"), 0);
    finish(pid);
}
END_TEST

START_TEST(sec_35_flood_of_cnps)
{
    uint64_t start = rig_now_ms();
    pid_t pid = hostile(floods);
    transfer(ROUNDS);
    while (counter("urn0", "channel_tx_frames") + counter("urn0", "channel_cnp_drops") < CNPS)
        usleep(1000);
    uint64_t left = counter("urn0", "channel_tx_frames");
    ck_assert_uint_ge(left, 100);
    ck_assert_uint_le(left, 100 + (rig_now_ms() - start) * 10 + 10);
    finish(pid);
}
END_TEST

START_TEST(shm_02_garbage_in_indices)
{
    pid_t pid = hostile(lies);
    transfer(ROUNDS);
    reach("urn0", "channel_bad_index", 10);
    finish(pid);
}
END_TEST

START_TEST(sec_22_more_blocks_than_its_share)
{
    int status;
    pid_t pid = hostile(churns);
    transfer(ROUNDS);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_uint_eq(counter("urn0", "refused_channels"), 1);
}
END_TEST

/* All queue pairs of programs on urn0 that the daemon lists. Returns whether a live one was there;
 * *named counts the entries with the other program's number. */
static bool list(unsigned *named)
{
    static union {
        struct ipc_qp_list l;
        uint8_t raw[IPC_MSG_MAX];
    } reply;
    struct ipc_qp_filter f = {.hdr.type = IPC_QP_LIST, .device = "urn0"};
    bool any = false;
    do {
        ck_assert_int_eq(rig_request(&rig, &f, sizeof(f), -1, &reply, sizeof(reply)), 0);
        for (uint32_t i = 0; i < reply.l.count; i++) {
            const struct ipc_qp_info *q = &reply.l.qp[i];
            *named += q->qpn == strange;
            any |= (q->flags & (IPC_QP_F_PROGRAM | IPC_QP_F_SILENT)) == IPC_QP_F_PROGRAM &&
                   q->uid == MALLORY;
        }
        f.first = reply.l.next;
    } while (f.first);
    return any;
}

/* A program that lists a queue pair of another one: the daemon shows its own ones only. */
START_TEST(shm_15_strange_queue_pairs)
{
    struct raw other = {0}; /* it answers nothing */
    uint64_t until = rig_now_ms() + 20000;
    unsigned named = 0;
    ck_assert_int_eq(raw_open(&other), 0);
    strange = other.qpn;
    pid_t pid = hostile(usurps);
    while (!list(&named))
        ck_assert_msg(rig_now_ms() < until, "the program's own queue pair is never listed");
    ck_assert_uint_eq(named, 0);
    finish(pid);
    raw_close(&other);
}
END_TEST

START_TEST(shm_14_rings_that_are_not_used)
{
    int status;
    pid_t pid = hostile(grows);
    transfer(ROUNDS);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    reach("urn0", "channel_bad_peer", 100);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("hostile channel");
    TCase *t = tcase_create("channel");
    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, up, down);
    tcase_add_test(t, sec_35_forged_packets);
    tcase_add_test(t, sec_35_flood_of_cnps);
    tcase_add_test(t, shm_02_garbage_in_indices);
    tcase_add_test(t, shm_15_strange_queue_pairs);
    tcase_add_test(t, sec_22_more_blocks_than_its_share);
    tcase_add_test(t, shm_14_rings_that_are_not_used);
    suite_add_tcase(s, t);
    if (geteuid() != 0) {
        printf("users: not root, so there is only this one\n");
        return 77;
    }
    return unit_run(s);
}
