/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SHM-13: the switch of a device, with programs that are this process, too.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>

#include "frames.h"
#include "share.h"
#include "switch_check.h"
#include "switch_group.h"
#include "switch_rig.h"
#include "switch_rx.h"
#include "switch_spill.h"
#include "switch_tx.h"

#define MS       1000000ull
#define S        1000000000ull
#define PROGRAMS 4u
#define MANY     1000u

static const uint8_t mac[6] = {0x02, 0, 0, 0, 0, 0xAA};
static const uint8_t peer_mac[6] = {0x02, 0, 0, 0, 0, 0xBB};
static struct wire_addr ours[2], theirs[2];

static struct blocks blocks;
static struct nic_switch *sw;
static struct program prog[MANY];
static struct io_slot slots[IO_BURST_MAX];
static uint8_t room[IO_BURST_MAX][RIG_FRAME];

static void setup_of(unsigned programs, uint16_t vlan)
{
    ours[0] = wire_addr_v4(0xC0000201);
    theirs[0] = wire_addr_v4(0xC0000202);
    wire_addr_parse("2001:db8::1", &ours[1]);
    wire_addr_parse("2001:db8::2", &theirs[1]);
    blocks_init(&blocks);
    sw = switch_new(&blocks, 0, mac, vlan, false);
    ck_assert_ptr_nonnull(sw);
    switch_set_addrs(sw, ours, 2);
    for (unsigned i = 0; i < programs; i++)
        switch_rig_come(sw, &prog[i], S);
    for (unsigned i = 0; i < IO_BURST_MAX; i++)
        slots[i] = (struct io_slot){.data = room[i], .cap = RIG_FRAME};
    switch_round(sw);
}

static void teardown_of(unsigned programs)
{
    switch_free(sw);
    for (unsigned i = 0; i < programs; i++)
        prog[i].io->ops->close(prog[i].io);
}

/* A packet of program i to a peer on the wire. */
static struct wire_pkt packet(unsigned kind, uint8_t opcode, uint32_t len)
{
    struct wire_pkt p = frame_pkt(kind, opcode, len);
    memcpy(p.smac, mac, 6);
    memcpy(p.dmac, peer_mac, 6);
    p.sip = ours[p.ip_version == 6];
    p.dip = theirs[p.ip_version == 6];
    return p;
}

/* Commit these octets to the switch, as this queue pair's. */
static bool send_raw(struct io_port *io, uint32_t qpn, const uint8_t *f, uint32_t len)
{
    struct io_slot s;
    if (io->ops->tx_reserve(io, &s, 1, 0) == 0)
        return false;
    memcpy(s.data, f, len);
    s.len = len;
    channel_tx_meta(io, 0, qpn);
    io->ops->tx_commit(io, &s, 1, 0);
    return true;
}

/* The queue pair of this program that has the packet's destination as its peer. */
static uint32_t with_peer(const struct io_port *io, const struct wire_pkt *p)
{
    struct program *from = prog;
    while (from->io != io)
        from++;
    const uint32_t qpn =
        (from->qpn & ~0x1FFFu) | ((p->dqpn ^ p->dqpn >> 13 ^ (p->ip_version == 6)) & 0x1FFF);
    switch_rig_peer(from->c, qpn, p);
    return qpn;
}

static bool send_pkt(struct io_port *io, struct wire_pkt *p)
{
    uint8_t f[RIG_FRAME];
    size_t len = frame_make(f, sizeof(f), p);
    ck_assert_uint_gt(len, 0);
    return send_raw(io, with_peer(io, p), f, (uint32_t)len);
}

static unsigned run_tx(unsigned n, uint64_t now)
{
    for (unsigned i = 0; i < n; i++)
        slots[i].len = 0;
    return switch_tx(sw, slots, n, now);
}

/* ---- frames that a program may send ---- */

enum wrong {
    GOOD,
    BAD_SIP,
    BAD_TVER,
    BAD_PORT,
    LONGER,
    SHORTER,
    BAD_CSUM,
    OPTIONS,
    FRAGMENT,
    PADDED,
    PAD_DIRT,
    TAGGED,
    QP0,
    QP1,
    MAC_GROUP,
    GROUP_MAC,
    NOT_IP,
    TINY,
    FOREIGN_SQPN,
    DAEMON_SQPN,
    CONTROLLED_QKEY,
};

static void alter(struct wire_pkt *p, uint8_t *f, uint32_t *len, int what)
{
    uint8_t *ip = f + p->ip_off;
    switch (what) {
    case BAD_TVER:
        f[p->bth_off + 1] |= 1;
        break;
    case BAD_PORT:
        f[p->udp_off + 3] ^= 1;
        break;
    case LONGER:
        *len += 4;
        break;
    case SHORTER:
        *len -= 4;
        break;
    case BAD_CSUM:
        ip[10] ^= 1;
        break;
    case OPTIONS:
        ip[0] = 0x46;
        frame_fix_csum(ip);
        break;
    case FRAGMENT:
        ip[6] |= 0x20;
        frame_fix_csum(ip);
        break;
    case PADDED:
    case PAD_DIRT:
        memset(f + *len, 0, 60 - *len);
        f[59] = what == PAD_DIRT;
        *len = 60;
        break;
    case QP0:
    case QP1:
        wire_put32(f + p->bth_off + 4, what == QP1);
        break;
    case MAC_GROUP:
        f[0] |= 1;
        break;
    case NOT_IP:
        f[12] = 8;
        f[13] = 6;
        break;
    case TINY:
        *len = 13;
        break;
    default:
        break;
    }
}

START_TEST(shm_13_what_a_program_may_send)
{
    static const struct {
        int what;
        unsigned kind;
        uint8_t opcode;
        uint32_t payload;
        int why; /* -1 = good */
    } rows[] = {
        {GOOD, FRAME_V4, WIRE_SEND_ONLY, 100, -1},
        {GOOD, FRAME_V6, WIRE_SEND_ONLY, 1024, -1},
        {GOOD, FRAME_V4, WIRE_WRITE_ONLY, 64, -1},
        {GOOD, FRAME_V4, WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY), 64, -1},
        {GOOD, FRAME_V6, WIRE_CMP_SWAP, 0, -1},
        {PADDED, FRAME_V4, WIRE_SEND_ONLY, 0, -1},
        {PAD_DIRT, FRAME_V4, WIRE_SEND_ONLY, 0, SWITCH_C_channel_bad_frame},
        {BAD_SIP, FRAME_V4, WIRE_SEND_ONLY, 100, SWITCH_C_channel_bad_source},
        {BAD_SIP, FRAME_V6, WIRE_SEND_ONLY, 100, SWITCH_C_channel_bad_source},
        {BAD_TVER, FRAME_V4, WIRE_SEND_ONLY, 100, SWITCH_C_channel_bad_frame},
        {BAD_PORT, FRAME_V4, WIRE_SEND_ONLY, 100, SWITCH_C_channel_bad_frame},
        {LONGER, FRAME_V4, WIRE_SEND_ONLY, 100, SWITCH_C_channel_bad_frame},
        {LONGER, FRAME_V6, WIRE_SEND_ONLY, 400, SWITCH_C_channel_bad_frame},
        {SHORTER, FRAME_V4, WIRE_SEND_ONLY, 100, SWITCH_C_channel_bad_frame},
        {BAD_CSUM, FRAME_V4, WIRE_SEND_ONLY, 100, SWITCH_C_channel_bad_frame},
        {OPTIONS, FRAME_V4, WIRE_SEND_ONLY, 100, SWITCH_C_channel_bad_frame},
        {FRAGMENT, FRAME_V4, WIRE_SEND_ONLY, 100, SWITCH_C_channel_bad_frame},
        {NOT_IP, FRAME_V4, WIRE_SEND_ONLY, 100, SWITCH_C_channel_bad_frame},
        {TINY, FRAME_V4, WIRE_SEND_ONLY, 100, SWITCH_C_channel_bad_frame},
        {TAGGED, FRAME_V4, WIRE_SEND_ONLY, 100, SWITCH_C_channel_bad_vlan},
        {QP0, FRAME_V4, WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY), 256, SWITCH_C_channel_bad_frame},
        {QP1, FRAME_V4, WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY), 256, SWITCH_C_channel_bad_qpn},
        {MAC_GROUP, FRAME_V4, WIRE_SEND_ONLY, 100, SWITCH_C_channel_bad_dest},
        {GROUP_MAC, FRAME_V4, WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY), 100, SWITCH_C_channel_bad_dest},
        {FOREIGN_SQPN, FRAME_V4, WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY), 64,
         SWITCH_C_channel_bad_srcqp},
        {DAEMON_SQPN, FRAME_V4, WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY), 64,
         SWITCH_C_channel_bad_srcqp},
        {CONTROLLED_QKEY, FRAME_V6, WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY), 64,
         SWITCH_C_channel_bad_qkey},
    };
    setup_of(2, 0);
    uint64_t refused = 0;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t f[RIG_FRAME];
        const int what = rows[i].what;
        struct wire_pkt p = packet(rows[i].kind | (what == TAGGED ? FRAME_TAGGED : 0),
                                   rows[i].opcode, rows[i].payload);
        memset(p.smac, 0xEE, 6); /* the switch writes it */
        p.sqpn = what == FOREIGN_SQPN ? prog[1].qpn : what == DAEMON_SQPN ? 5 : prog[0].qpn;
        if (what == CONTROLLED_QKEY)
            p.qkey = 0x80010000;
        if (what == BAD_SIP)
            p.sip = theirs[p.ip_version == 6];
        if (what == GROUP_MAC) {
            p.dip = wire_addr_v4(0xE0000105);
            p.dqpn = WIRE_QPN_MULTICAST;
        }
        uint32_t len = (uint32_t)frame_make(f, sizeof(f), &p);
        alter(&p, f, &len, what);
        ck_assert(send_raw(prog[0].io, with_peer(prog[0].io, &p), f, len));
        unsigned filled = run_tx(4, S);
        ck_assert_msg(filled == (rows[i].why < 0), "row %zu: %u", i, filled);
        if (rows[i].why < 0) {
            struct wire_pkt out;
            ck_assert_uint_eq(slots[0].len, len);
            ck_assert_int_eq(wire_parse(slots[0].data, len, 0, &out), WIRE_OK);
            ck_assert_int_eq(memcmp(out.smac, mac, 6), 0);
            memcpy(f + 6, mac, 6);
            ck_assert_int_eq(memcmp(slots[0].data, f, len), 0);
        } else {
            for (unsigned k = 0; k < SWITCH_COUNTER_MAX; k++)
                ck_assert_msg(sw->counters[k] == (k == (unsigned)rows[i].why) ||
                                  k < SWITCH_C_channel_bad_frame,
                              "row %zu: %s", i, switch_counter_names[k]);
            sw->counters[rows[i].why] = 0;
            refused++;
        }
        ck_assert_uint_eq(channel_tx_waiting(prog[0].io), 0);
    }
    ck_assert_uint_eq(prog[0].c->refused, refused);
    ck_assert_uint_eq(prog[1].c->refused, 0);
    for (unsigned i = SWITCH_C_channel_bad_frame; i < SWITCH_COUNTER_MAX; i++)
        ck_assert_uint_eq(sw->counters[i], 0); /* each row was for its reason alone */
    teardown_of(2);
}
END_TEST

START_TEST(shm_13_the_vlan_of_the_device)
{
    setup_of(1, 0x64);
    struct wire_pkt p = packet(FRAME_V4 | FRAME_TAGGED, WIRE_SEND_ONLY, 40);
    ck_assert_uint_eq(p.tci & 0xFFF, 0x64);
    ck_assert(send_pkt(prog[0].io, &p));
    ck_assert_uint_eq(run_tx(4, S), 1);
    p.tci = 0x65;
    ck_assert(send_pkt(prog[0].io, &p));
    p = packet(FRAME_V4, WIRE_SEND_ONLY, 40);
    ck_assert(send_pkt(prog[0].io, &p));
    ck_assert_uint_eq(run_tx(4, S), 0);
    ck_assert_uint_eq(sw->counters[SWITCH_C_channel_bad_vlan], 2);
    teardown_of(1);
}
END_TEST

/* The program changes a frame during its check: the frame that leaves is always the checked one. */
static _Atomic bool stop_flipping;

/* The test is a race: not for ThreadSanitizer. */
#ifdef __SANITIZE_THREAD__
static const unsigned flips;
#else
static const unsigned flips = 200000;
#endif

static void *flip(void *arg)
{
    uint8_t *f = arg;
    while (!atomic_load(&stop_flipping)) {
        for (unsigned i = 0; i < 58; i++) {
            __atomic_fetch_xor(f + i, 0x41, __ATOMIC_RELAXED);
            __atomic_fetch_xor(f + i, 0x41, __ATOMIC_RELAXED);
        }
    }
    return NULL;
}

START_TEST(shm_13_a_frame_that_changes_while_it_is_judged)
{
    pthread_t thread;
    unsigned left = 0, refused = 0;
    setup_of(1, 0);
    struct wire_pkt p = packet(FRAME_V4, WIRE_SEND_ONLY, 100);
    ck_assert(send_pkt(prog[0].io, &p));
    const uint32_t qpn = with_peer(prog[0].io, &p);
    uint8_t *f = prog[0].base + CHANNEL_PAGE + sizeof(struct channel_slot);
    const struct io_frame frame = {.data = f, .len = (uint32_t)wire_frame_len(&p)};
    atomic_store(&stop_flipping, flips == 0);
    pthread_create(&thread, NULL, flip, f);
    for (unsigned i = 0; i < flips; i++) {
        struct switch_frame h;
        struct wire_pkt out;
        if (switch_check(sw, prog[0].c, qpn, &frame, &h) == SWITCH_REFUSED) {
            refused++;
            continue;
        }
        left++;
        ck_assert_int_eq(wire_parse_cut(h.head, h.head_len, frame.len, WIRE_P_NO_ICRC, &out),
                         WIRE_OK);
        ck_assert(switch_has_addr(sw, &out.sip));
        ck_assert_uint_gt(out.dqpn, 1);
        ck_assert_int_eq(memcmp(out.smac, mac, 6), 0);
        ck_assert_uint_eq(out.dmac[0] & 1, 0);
    }
    atomic_store(&stop_flipping, true);
    pthread_join(thread, NULL);
    ck_assert_uint_eq(left + refused, flips);
    teardown_of(1);
}
END_TEST

/* ---- where frames go ---- */

START_TEST(frames_go_round_inside)
{
    struct io_frame f;
    setup_of(2, 0);
    struct wire_pkt p = packet(FRAME_V4, WIRE_SEND_ONLY, 200);
    memcpy(p.dmac, mac, 6);
    p.dip = ours[0];
    p.dqpn = prog[1].qpn;
    ck_assert(send_pkt(prog[0].io, &p)); /* to the other program */
    p.dqpn = prog[0].qpn;
    ck_assert(send_pkt(prog[0].io, &p)); /* to itself */
    p.dqpn = 0x123;
    ck_assert(send_pkt(prog[0].io, &p)); /* to the daemon's engine */
    p.dqpn = 0x800000 | (prog[1].qpn ^ 0x2000);
    if (!switch_owner(sw, p.dqpn))
        ck_assert(send_pkt(prog[0].io, &p)); /* without an owner: the engine counts it */
    ck_assert_uint_eq(run_tx(8, S), 2);
    ck_assert_int_eq(memcmp(slots[0].data, mac, 6), 0);
    ck_assert_int_eq(memcmp(slots[1].data, mac, 6), 0);
    ck_assert_uint_eq(sw->counters[SWITCH_C_channel_inside], 2);
    for (unsigned i = 0; i < 2; i++) {
        struct wire_pkt out;
        ck_assert_uint_eq(prog[i].io->ops->rx_peek(prog[i].io, &f, 1, 0), 1);
        ck_assert_int_eq(wire_parse(f.data, f.len, 0, &out), WIRE_OK);
        ck_assert_uint_eq(out.dqpn, prog[i].qpn);
        prog[i].io->ops->rx_release(prog[i].io, 1);
    }
    teardown_of(2);
}
END_TEST

/* As this queue pair's. */
static void send_as(struct program *p, struct wire_pkt *pkt, uint32_t qpn)
{
    struct io_slot s;
    ck_assert_uint_eq(p->io->ops->tx_reserve(p->io, &s, 1, 0), 1);
    s.len = (uint32_t)frame_make(s.data, s.cap, pkt);
    channel_tx_meta(p->io, 0, qpn);
    p->io->ops->tx_commit(p->io, &s, 1, 0);
}

static void send_cnp(struct program *p, const struct wire_pkt *to, uint32_t qpn)
{
    struct wire_pkt cnp = *to;
    cnp.opcode = WIRE_OPCODE_CNP;
    cnp.payload_len = 0;
    send_as(p, &cnp, qpn);
}

/* SEC-35: a packet of a connection is for the peer of the queue pair that the program names, which
 * is one of its own; the next hop is the pair's. */
START_TEST(sec_35_only_to_its_peer)
{
    setup_of(2, 0);
    struct wire_pkt good = packet(FRAME_V4, WIRE_SEND_ONLY, 40), p;
    struct wire_pkt v6 = packet(FRAME_V6, WIRE_WRITE_ONLY, 40);
    switch_rig_peer(prog[0].c, prog[0].qpn, &good);
    switch_rig_peer(prog[0].c, prog[0].qpn + 1, &v6);
    switch_rig_peer(prog[1].c, prog[1].qpn, &good); /* two users claim it: both may */
    p = good;
    memset(p.dmac, 0x66, 6);
    send_as(&prog[0], &p, prog[0].qpn);
    send_as(&prog[0], &v6, prog[0].qpn + 1);
    send_as(&prog[1], &good, prog[1].qpn);
    ck_assert_uint_eq(run_tx(8, S), 3);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_int_eq(memcmp(slots[i].data, peer_mac, 6), 0);
    uint64_t refused = 0;
    for (unsigned what = 0; what < 7; what++) {
        uint32_t as = prog[0].qpn;
        p = good;
        if (what == 0)
            p.dqpn ^= 1;
        else if (what == 1)
            p.dip = wire_addr_v4(0xC0000203);
        else if (what == 2)
            p = v6; /* the peer of its other queue pair */
        else if (what == 3)
            as = prog[0].qpn + 2; /* that queue pair has no peer */
        else if (what == 4)
            as = prog[1].qpn; /* another program's */
        else if (what == 5)
            as = 0;
        else
            as = prog[0].qpn & ~0x800000u; /* the daemon's */
        send_as(&prog[0], &p, as);
        ck_assert_msg(run_tx(8, S) == 0, "%u", what);
        ck_assert_uint_eq(sw->counters[SWITCH_C_channel_bad_peer], ++refused);
    }
    struct wire_addr second[2] = {ours[0], wire_addr_v4(0xC0000209)};
    switch_set_addrs(sw, second, 2);
    p.sip = second[1]; /* the device's, and not the pair's */
    send_as(&prog[0], &p, prog[0].qpn);
    ck_assert_uint_eq(run_tx(8, S), 0);
    ck_assert_uint_eq(sw->counters[SWITCH_C_channel_bad_peer], ++refused);
    switch_pair_remove(prog[0].c, switch_pair_of(prog[0].c, prog[0].qpn));
    send_as(&prog[0], &good, prog[0].qpn);
    ck_assert_uint_eq(run_tx(8, S), 0);
    ck_assert_uint_eq(sw->counters[SWITCH_C_channel_bad_peer], ++refused);
    ck_assert_uint_eq(prog[0].c->refused, refused);
    ck_assert_uint_eq(prog[1].c->refused, 0);
    teardown_of(2);
}
END_TEST

/* SEC-35: a channel has a bounded number of pairs. */
START_TEST(sec_35_as_many_pairs_as_queue_pairs)
{
    static struct switch_pair pairs[SWITCH_PAIRS + 1];
    setup_of(1, 0);
    const uint32_t first = prog[0].qpn & ~0x1FFFu;
    for (uint32_t i = 0; i <= SWITCH_PAIRS; i++) {
        pairs[i].qpn = first + i;
        ck_assert_int_eq(switch_pair_add(prog[0].c, &pairs[i]), i < SWITCH_PAIRS ? 0 : -EDQUOT);
    }
    switch_pair_remove(prog[0].c, &pairs[SWITCH_PAIRS]); /* it has none */
    switch_pair_remove(prog[0].c, &pairs[0]);
    switch_pair_remove(prog[0].c, &pairs[0]);
    ck_assert_int_eq(switch_pair_add(prog[0].c, &pairs[SWITCH_PAIRS]), 0);
    ck_assert_ptr_null(switch_pair_of(prog[0].c, first));
    ck_assert_ptr_eq(switch_pair_of(prog[0].c, first + SWITCH_PAIRS), &pairs[SWITCH_PAIRS]);
    teardown_of(1);
}
END_TEST

/* SEC-35: CNPs to a peer are the connection's; to others at most 10,000 a second leave, of all
 * programs of a user. */
START_TEST(sec_35_cnps_to_others)
{
    struct share_pool pool = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct share *user = share_join(&pool, 1000, false), *other = share_join(&pool, 1001, false);
    setup_of(3, 0);
    prog[0].c->share = prog[1].c->share = user;
    prog[2].c->share = other;
    struct wire_pkt p = packet(FRAME_V4, WIRE_SEND_ONLY, 40);
    switch_rig_peer(prog[0].c, prog[0].qpn, &p);
    uint64_t left = 0, all = 0;
    for (uint64_t now = S; now < 2 * S; now += 50000, all++) { /* 20,000 a second */
        send_cnp(&prog[all % 2], &p, prog[all % 2].qpn + 1);
        left += run_tx(4, now);
    }
    ck_assert_uint_ge(left, 10000);
    ck_assert_uint_le(left, 10000 + SHARE_CNP_BURST);
    ck_assert_uint_eq(sw->counters[SWITCH_C_channel_cnp_drops], all - left);
    for (unsigned i = 0; i < 200; i++) {
        send_cnp(&prog[0], &p, prog[0].qpn);
        ck_assert_uint_eq(run_tx(4, 2 * S), 1);
    }
    send_cnp(&prog[2], &p, 0);
    switch_look(sw, 2 * S);
    ck_assert_uint_eq(run_tx(4, 2 * S), 1);
    teardown_of(3);
    share_leave(user);
    share_leave(other);
}
END_TEST

/* A packet that the kernel gave to the wrong program's socket comes from a peer, and goes to its
 * owner; only from a program that has sockets, and only to the device. */
START_TEST(shm_14_strays_go_to_their_owner)
{
    struct io_frame f;
    setup_of(2, 0);
    struct wire_pkt p = packet(FRAME_V4, WIRE_SEND_ONLY, 200);
    memcpy(p.smac, peer_mac, 6);
    memcpy(p.dmac, mac, 6);
    p.sip = theirs[0];
    p.dip = ours[0];
    p.dqpn = prog[1].qpn;
    send_as(&prog[0], &p, CHANNEL_STRAY);
    ck_assert_uint_eq(run_tx(8, S), 0);
    ck_assert_uint_eq(sw->counters[SWITCH_C_channel_bad_source], 1);
    sw->channels->all_next->direct = true; /* of the first program */
    send_as(&prog[0], &p, CHANNEL_STRAY);
    send_as(&prog[0], &p, prog[0].qpn); /* it does not mark the packet as a stray */
    ck_assert_uint_eq(run_tx(8, S), 0);
    ck_assert_uint_eq(sw->counters[SWITCH_C_channel_bad_source], 2);
    ck_assert_uint_eq(sw->counters[SWITCH_C_channel_strays], 1);
    ck_assert_uint_eq(prog[1].io->ops->rx_peek(prog[1].io, &f, 2, 0), 1);
    prog[1].io->ops->rx_release(prog[1].io, 1);
    p.dqpn = 0x123; /* of the daemon's engine */
    send_as(&prog[0], &p, CHANNEL_STRAY);
    ck_assert_uint_eq(run_tx(8, S), 1);
    p.dip = theirs[0];
    send_as(&prog[0], &p, CHANNEL_STRAY);
    p.dip = ours[0];
    memcpy(p.dmac, peer_mac, 6);
    send_as(&prog[0], &p, CHANNEL_STRAY);
    ck_assert_uint_eq(run_tx(8, S), 0);
    ck_assert_uint_eq(sw->counters[SWITCH_C_channel_bad_dest], 2);
    memcpy(p.dmac, mac, 6);
    p.dqpn = WIRE_QPN_GSI;
    send_as(&prog[0], &p, CHANNEL_STRAY);
    ck_assert_uint_eq(run_tx(8, S), 0);
    ck_assert_uint_eq(sw->counters[SWITCH_C_channel_bad_qpn], 1);
    teardown_of(2);
}
END_TEST

struct seen {
    uint8_t frame[RIG_FRAME];
    uint32_t len, qpn;
    unsigned n;
};

static void see(void *arg, const uint8_t *frame, uint32_t len, uint32_t qpn)
{
    struct seen *seen = arg;
    memcpy(seen->frame, frame, len);
    seen->len = len;
    seen->qpn = qpn;
    seen->n++;
}

/* SHM-14: a capture gets the frames that one program sends to another. It learns which queue pair
 * sent a frame: one of the sending program's, or unknown. */
START_TEST(captures_see_whose_a_frame_is)
{
    struct seen seen = {.n = 0};
    struct io_frame f;
    setup_of(2, 0);
    sw->inside = see;
    sw->inside_arg = &seen;
    struct wire_pkt p = packet(FRAME_V4, WIRE_SEND_ONLY, 200);
    for (unsigned on = 0; on < 2; on++) {
        sw->captured = on;
        memcpy(p.dmac, peer_mac, 6);
        p.dip = theirs[0];
        p.dqpn = 0x123;
        switch_rig_peer(prog[0].c, prog[0].qpn + 1, &p);
        send_as(&prog[0], &p, prog[0].qpn + 1);
        send_cnp(&prog[0], &p, prog[1].qpn); /* a lie */
        memcpy(p.dmac, mac, 6);
        p.dip = ours[0];
        p.dqpn = prog[1].qpn;
        switch_rig_peer(prog[0].c, prog[0].qpn, &p);
        send_as(&prog[0], &p, prog[0].qpn);
        ck_assert_uint_eq(run_tx(8, S), 2);
        ck_assert_uint_eq(sw->sent_by[0], on ? prog[0].qpn + 1 : 0);
        ck_assert_uint_eq(sw->sent_by[1], 0);
        ck_assert_uint_eq(seen.n, on);
        ck_assert_uint_eq(prog[1].io->ops->rx_peek(prog[1].io, &f, 1, 0), 1);
        if (on) {
            ck_assert_uint_eq(seen.qpn, prog[0].qpn);
            ck_assert_uint_eq(f.len, seen.len);
            ck_assert_int_eq(memcmp(f.data, seen.frame, f.len), 0);
        }
        prog[1].io->ops->rx_release(prog[1].io, 1);
    }
    ck_assert_uint_eq(sw->counters[SWITCH_C_channel_inside], 2);
    teardown_of(2);
}
END_TEST

/* Frames of the port, in any order: each program gets its own, in order, and no engine sees them.
 */
START_TEST(the_owner_of_a_queue_pair_gets_the_frame)
{
    uint8_t buf[12][256];
    struct io_frame in[12], f[12];
    setup_of(3, 0);
    static const uint8_t to[12] = {0, 1, 9, 0, 2, 1, 0, 9, 8, 7, 6, 2};
    for (unsigned i = 0; i < 12; i++) {
        struct wire_pkt p = frame_pkt(i & 1 ? FRAME_V6 : FRAME_V4, WIRE_SEND_ONLY, 20 + i);
        memcpy(p.smac, peer_mac, 6);
        memcpy(p.dmac, to[i] == 8 ? peer_mac : mac, 6); /* another host's MAC */
        p.dqpn = to[i] < 3 ? prog[to[i]].qpn : to[i] == 9 ? 0x345 : prog[0].qpn;
        in[i] = (struct io_frame){.data = buf[i], .flags = i % 4};
        in[i].len = (uint32_t)frame_make(buf[i], sizeof(buf[i]), &p);
        if (to[i] == 7) /* a fragment */
            buf[i][p.ip_off + 6] |= 0x20;
        if (to[i] == 6) /* cut off */
            in[i].len = p.bth_off + 8;
    }
    ck_assert_uint_eq(switch_rx(sw, in, 12), 0x87B);
    static const uint8_t want[3][4] = {{0, 3, 6, 99}, {1, 5, 99}, {4, 11, 99}};
    for (unsigned i = 0; i < 3; i++) {
        unsigned n = prog[i].io->ops->rx_peek(prog[i].io, f, 12, 0), k = 0;
        for (; want[i][k] != 99; k++) {
            const struct io_frame *w = &in[want[i][k]];
            ck_assert_uint_lt(k, n);
            ck_assert_uint_eq(f[k].len, w->len);
            ck_assert_int_eq(memcmp(f[k].data, w->data, w->len), 0);
            ck_assert_uint_eq(f[k].flags, w->flags); /* the NIC's checks */
        }
        ck_assert_uint_eq(n, k);
    }
    teardown_of(3);
}
END_TEST

/* Frames of the port for program i, which say their number as their PSN. */
static void give_numbered(unsigned i, unsigned n, uint32_t *number)
{
    uint8_t buf[256];
    for (; n > 0; n--) {
        struct wire_pkt p = frame_pkt(FRAME_V4, WIRE_SEND_ONLY, 20);
        memcpy(p.dmac, mac, 6);
        p.dqpn = prog[i].qpn;
        p.psn = (*number)++;
        const struct io_frame f = {
            .data = buf, .len = (uint32_t)frame_make(buf, sizeof(buf), &p), .flags = p.psn % 4};
        ck_assert_uint_eq(switch_rx(sw, &f, 1), 1);
    }
}

/* The program takes n of them, which follow one another. */
static void take_numbered(unsigned i, unsigned n, uint32_t *next)
{
    struct io_frame f;
    struct wire_pkt p;
    for (; n > 0; n--) {
        ck_assert_uint_eq(prog[i].io->ops->rx_peek(prog[i].io, &f, 1, 0), 1);
        ck_assert_int_eq(wire_parse(f.data, f.len, 0, &p), WIRE_OK);
        ck_assert_uint_eq(p.psn, *next);
        ck_assert_uint_eq(f.flags, *next % 4);
        ++*next;
        prog[i].io->ops->rx_release(prog[i].io, 1);
    }
}

/* SHM-13: a peer's window is larger than a small ring. */
START_TEST(shm_13_frames_wait_for_a_full_ring)
{
    uint32_t number = 0, next = 0;
    struct io_frame f;
    setup_of(2, 0);
    ck_assert_uint_eq(switch_spill_run(sw, S), 0);
    give_numbered(0, 60, &number);
    ck_assert(!switch_spilling(sw));
    give_numbered(0, 40, &number);
    ck_assert(switch_spilling(sw));
    ck_assert_uint_eq(sw->counters[SWITCH_C_channel_waits], 36);
    ck_assert_uint_eq(switch_spill_run(sw, S), 0);
    take_numbered(0, 10, &next);
    give_numbered(0, 1, &number); /* overtakes none */
    ck_assert_uint_eq(switch_spill_run(sw, S), 10);
    take_numbered(0, 64, &next);
    ck_assert_uint_eq(prog[0].io->ops->rx_peek(prog[0].io, &f, 1, 0), 0);
    /* One from inside, too. */
    struct wire_pkt p = packet(FRAME_V4, WIRE_SEND_ONLY, 20);
    memcpy(p.dmac, mac, 6);
    p.dqpn = prog[0].qpn;
    p.psn = number++;
    ck_assert(send_pkt(prog[1].io, &p));
    ck_assert_uint_eq(run_tx(4, S), 0);
    ck_assert_uint_eq(prog[0].c->nspilled, 28);
    ck_assert_uint_eq(switch_spill_run(sw, S), 28);
    ck_assert(!switch_spilling(sw));
    take_numbered(0, 27, &next);
    ck_assert_uint_eq(prog[0].io->ops->rx_peek(prog[0].io, &f, 1, 0), 1);
    ck_assert_uint_eq(sw->counters[SWITCH_C_channel_drops], 0);
    ck_assert_uint_eq(sw->counters[SWITCH_C_channel_rx_frames], 102);
    teardown_of(2);
}
END_TEST

/* SHM-13 SHM-08: none takes the room of others, or makes the worker look at it for ever. */
START_TEST(shm_13_no_more_wait_than_there_is_room)
{
    const unsigned most = SWITCH_SPILL_FRAMES * 4 / 5 + 1, rest = SWITCH_SPILL_FRAMES / 8;
    uint32_t number = 0, other = 0;
    setup_of(3, 0);
    give_numbered(0, 64 + most, &number);
    ck_assert_uint_eq(prog[0].c->drops, 0);
    give_numbered(0, 1, &number);
    ck_assert_uint_eq(prog[0].c->drops, 1);
    give_numbered(1, 64 + rest, &other);
    ck_assert_uint_eq(prog[1].c->drops, 0); /* no other program loses any */
    ck_assert_uint_eq(sw->counters[SWITCH_C_channel_drops], 1);
    /* A program that takes no frames loses them, and none waits until it takes some. */
    ck_assert_uint_eq(switch_spill_run(sw, SWITCH_SPILL_NS - 1), 0);
    ck_assert(switch_spilling(sw));
    ck_assert_uint_eq(switch_spill_run(sw, SWITCH_SPILL_NS), 0);
    ck_assert(!switch_spilling(sw));
    ck_assert_uint_eq(prog[0].c->drops, 1 + most);
    ck_assert_uint_eq(prog[1].c->drops, rest);
    give_numbered(0, 1, &number);
    ck_assert(!switch_spilling(sw));
    ck_assert_uint_eq(prog[0].c->drops, 2 + most);
    take_numbered(0, 2, &(uint32_t){0});
    give_numbered(0, 3, &number);
    ck_assert(switch_spilling(sw));
    ck_assert_uint_eq(prog[0].c->drops, 2 + most);
    /* A channel that ends returns its share. */
    give_numbered(2, 100, &other);
    switch_end(sw, prog[2].c);
    ck_assert_uint_eq(prog[2].c->nspilled, 0);
    give_numbered(1, 1, &other);
    teardown_of(3);
}
END_TEST

/* SEC-22: programs of one user have one part of the room, however many channels they have. */
START_TEST(sec_22_room_is_shared_by_users)
{
    static struct share user;
    const unsigned most = SWITCH_SPILL_FRAMES * 4 / 5 + 1, rest = SWITCH_SPILL_FRAMES / 8;
    uint32_t number = 0, other = 0, third = 0;
    setup_of(3, 0);
    prog[0].c->share = prog[1].c->share = &user;
    give_numbered(0, 64 + most, &number);
    ck_assert_uint_eq(user.spilled, most);
    give_numbered(1, 64, &other); /* its ring */
    ck_assert_uint_eq(prog[1].c->drops, 0);
    give_numbered(1, 1, &other);
    ck_assert_uint_eq(prog[1].c->drops, 1);
    give_numbered(2, 64 + rest, &third);
    ck_assert_uint_eq(prog[2].c->drops, 0);
    switch_end(sw, prog[0].c);
    ck_assert_uint_eq(user.spilled, 0);
    give_numbered(1, 1, &other);
    ck_assert_uint_eq(prog[1].c->drops, 1);
    teardown_of(3);
    ck_assert_uint_eq(user.spilled, 0);
}
END_TEST

/* Wake-ups of a program so far. */
static uint64_t wakes_of(const struct program *p)
{
    struct channel_counters c;
    channel_counters(p->c->io, &c);
    return c.wakes;
}

/* During a stream a program that sleeps again and again is woken every SWITCH_HELD_BURSTS, and at
 * the end of the stream. One that gets a few frames of a burst is woken at once. */
START_TEST(shm_13_a_stream_wakes_a_program_now_and_then)
{
    uint8_t buf[256];
    setup_of(2, 0);
    struct wire_pkt p = frame_pkt(FRAME_V4, WIRE_SEND_ONLY, 20);
    memcpy(p.dmac, mac, 6);
    p.dqpn = prog[1].qpn;
    struct io_frame in[SWITCH_FEW + 1];
    for (unsigned i = 0; i <= SWITCH_FEW; i++)
        in[i] = (struct io_frame){.data = buf, .len = (uint32_t)frame_make(buf, sizeof(buf), &p)};
    prog[1].io->ops->rx_arm(prog[1].io, true);
    ck_assert_uint_eq(switch_rx(sw, in, SWITCH_FEW), 0xF);
    ck_assert_uint_eq(wakes_of(&prog[1]), 1);
    for (unsigned i = 1; i <= SWITCH_HELD_BURSTS + 1; i++) {
        prog[1].io->ops->rx_arm(prog[1].io, true);
        ck_assert_uint_eq(switch_rx(sw, in, SWITCH_FEW + 1), 0x1F);
        switch_wake(sw, true);
        ck_assert_uint_eq(wakes_of(&prog[1]), 1 + i / SWITCH_HELD_BURSTS);
    }
    switch_wake(sw, false);
    ck_assert_uint_eq(wakes_of(&prog[1]), 3);
    prog[1].io->ops->rx_arm(prog[1].io, true);
    ck_assert_uint_eq(switch_rx(sw, in, SWITCH_FEW + 1), 0x1F);
    ck_assert_uint_eq(wakes_of(&prog[1]), 3);
    switch_detach(sw, prog[1].c, S);
    ck_assert_ptr_null(sw->unwoken);
    switch_wake(sw, false);
    prog[1].io->ops->close(prog[1].io);
    teardown_of(1);
}
END_TEST

/* A frame longer than a channel takes can't come to it: it is lost, not cut. */
START_TEST(a_frame_that_is_too_long_is_lost)
{
    uint8_t buf[2000];
    setup_of(1, 0);
    struct wire_pkt p = frame_pkt(FRAME_V4, WIRE_SEND_ONLY, 1800);
    memcpy(p.dmac, mac, 6);
    p.dqpn = prog[0].qpn;
    struct io_frame in = {.data = buf, .len = (uint32_t)frame_make(buf, sizeof(buf), &p)};
    ck_assert_uint_gt(in.len, RIG_FRAME);
    ck_assert_uint_eq(switch_rx(sw, &in, 1), 1);
    ck_assert_uint_eq(sw->counters[SWITCH_C_channel_drops], 1);
    ck_assert_uint_eq(rig_take(prog[0].io), UINT32_MAX);
    teardown_of(1);
}
END_TEST

/* ---- turns ---- */

static uint32_t psn_of(const struct io_slot *s)
{
    struct wire_pkt p;
    ck_assert_int_eq(wire_parse(s->data, s->len, 0, &p), WIRE_OK);
    return p.psn;
}

START_TEST(frames_wait_for_a_full_port)
{
    setup_of(1, 0);
    struct wire_pkt p = packet(FRAME_V4, WIRE_SEND_ONLY, 20);
    for (p.psn = 0; send_pkt(prog[0].io, &p); p.psn++)
        ;
    ck_assert_uint_eq(p.psn, CHANNEL_SLOTS_MIN);
    ck_assert_uint_eq(run_tx(0, S), 0);
    uint32_t next = 0;
    for (unsigned n = 3; next < 60; n = n == 3 ? 1 : 3) {
        ck_assert_uint_eq(run_tx(n, S), n);
        for (unsigned i = 0; i < n; i++)
            ck_assert_uint_eq(psn_of(&slots[i]), next++);
        ck_assert_uint_eq(channel_tx_waiting(prog[0].io), CHANNEL_SLOTS_MIN - next);
    }
    teardown_of(1);
}
END_TEST

START_TEST(shm_08_channels_take_turns)
{
    unsigned got[PROGRAMS] = {0};
    setup_of(PROGRAMS, 0);
    for (unsigned i = 0; i < PROGRAMS; i++) {
        struct wire_pkt p = packet(FRAME_V4, WIRE_SEND_ONLY, 20);
        p.psn = i;
        while ((i != 3 || channel_tx_waiting(prog[i].io) < 3) && send_pkt(prog[i].io, &p))
            ;
    }
    /* One that has filled its ring gets no more than its turn. */
    for (unsigned k = 0; k < 3; k++) {
        ck_assert_uint_eq(run_tx(SWITCH_QUANTUM, S), SWITCH_QUANTUM);
        for (unsigned i = 0; i < SWITCH_QUANTUM; i++)
            got[psn_of(&slots[i])]++;
    }
    ck_assert_uint_eq(got[0] + got[1] + got[2] + got[3], 3 * SWITCH_QUANTUM);
    for (unsigned i = 0; i < PROGRAMS; i++)
        ck_assert_uint_le(got[i], SWITCH_QUANTUM);
    for (unsigned k = 0; k < 8; k++) {
        unsigned n = run_tx(IO_BURST_MAX, S);
        for (unsigned i = 0; i < n; i++)
            got[psn_of(&slots[i])]++;
    }
    ck_assert_uint_eq(got[0], 64);
    ck_assert_uint_eq(got[1], 64);
    ck_assert_uint_eq(got[2], 64);
    ck_assert_uint_eq(got[3], 3);
    teardown_of(PROGRAMS);
}
END_TEST

/* SHM-08: frames that are refused fill no slot, and a call takes a bounded number of them, too. */
START_TEST(shm_08_a_call_takes_a_bounded_number_of_frames)
{
    static const uint8_t bad[60];
    const unsigned programs = 8, most = 4 * IO_BURST_MAX;
    setup_of(programs, 0);
    for (unsigned i = 0; i < programs; i++) {
        while (channel_put(prog[i].io, bad, sizeof(bad)))
            ;
    }
    for (unsigned call = 1; call <= 2; call++) {
        ck_assert_uint_eq(run_tx(IO_BURST_MAX, S), 0);
        uint64_t refused = 0;
        for (unsigned i = 0; i < programs; i++)
            refused += prog[i].c->refused;
        ck_assert_uint_eq(refused, call * most);
    }
    teardown_of(programs);
}
END_TEST

/* SHM-08: turns are by octets: long frames get no more of a port than short ones. */
START_TEST(shm_08_turns_are_fair_by_octets)
{
    const uint32_t payload[2] = {1000, 400};
    uint64_t octets[2] = {0};
    setup_of(2, 0);
    for (unsigned k = 0; k < 500; k++) {
        for (unsigned i = 0; i < 2; i++) {
            struct wire_pkt p = packet(FRAME_V4, WIRE_SEND_ONLY, payload[i]);
            p.psn = i;
            while (send_pkt(prog[i].io, &p))
                ;
        }
        unsigned n = run_tx(24, S);
        ck_assert_uint_eq(n, 24); /* while frames wait no slot stays empty */
        for (unsigned i = 0; i < n; i++)
            octets[psn_of(&slots[i])] += slots[i].len;
    }
    const uint64_t all = octets[0] + octets[1];
    ck_assert_uint_gt(octets[0], all * 45 / 100);
    ck_assert_uint_lt(octets[0], all * 55 / 100);
    teardown_of(2);
}
END_TEST

/* Three programs that always have frames. */
static void share_by_weight(uint32_t payload)
{
    unsigned got[3] = {0}, all = 0;
    setup_of(3, 0);
    prog[1].c->weight = 3;
    prog[2].c->weight = 4;
    for (unsigned k = 0; k < 1000; k++) {
        for (unsigned i = 0; i < 3; i++) {
            struct wire_pkt p = packet(FRAME_V4, WIRE_SEND_ONLY, payload);
            p.psn = i;
            while (send_pkt(prog[i].io, &p))
                ;
        }
        unsigned n = run_tx(24, S);
        ck_assert_uint_eq(n, 24);
        for (unsigned i = 0; i < n; i++)
            got[psn_of(&slots[i])]++;
        all += n;
    }
    for (unsigned i = 0; i < 3; i++) {
        const unsigned fair = all * prog[i].c->weight / 8;
        ck_assert_uint_gt(got[i], fair * 95 / 100);
        ck_assert_uint_lt(got[i], fair * 105 / 100);
    }
    teardown_of(3);
}

/* SHM-13: a program of a user with a weight gets that many times as much of a port, whether turns
 * end by octets or by frames. */
START_TEST(shm_13_turns_follow_weights)
{
    share_by_weight(1000);
    share_by_weight(20);
}
END_TEST

/* Look at channels without frames until they may sleep. */
static void look_in_vain(uint64_t now)
{
    for (unsigned i = 0; i < SWITCH_IDLE_LOOKS; i++)
        ck_assert_uint_eq(run_tx(1, now), 0);
}

/* SHM-08: a program that was alone on its device owes nothing to one that comes later. */
START_TEST(shm_08_alone_a_program_gets_into_no_debt)
{
    setup_of(2, 0);
    struct wire_pkt p = packet(FRAME_V4, WIRE_SEND_ONLY, 1000);
    look_in_vain(2 * S);
    ck_assert_uint_eq(sw->nasleep, 2);
    for (unsigned k = 0; k < SWITCH_QUANTUM; k++)
        ck_assert(send_pkt(prog[0].io, &p));
    switch_look(sw, 3 * S);
    ck_assert_uint_eq(run_tx(SWITCH_QUANTUM, 3 * S), SWITCH_QUANTUM);
    ck_assert_uint_eq(sw->nactive, 1);
    for (unsigned i = 0; i < 2; i++) {
        p.psn = i;
        ck_assert(send_pkt(prog[i].io, &p));
    }
    switch_look(sw, 4 * S);
    ck_assert_uint_eq(run_tx(1, 4 * S), 1);
    ck_assert_uint_eq(psn_of(&slots[0]), 0);
    teardown_of(2);
}
END_TEST

static bool readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

/* 1,000 programs, of which 4 send: a round looks at these, and each of the others wakes up alone.
 */
START_TEST(shm_08_only_active_channels_are_looked_at)
{
    setup_of(MANY, 0);
    struct wire_pkt p = packet(FRAME_V4, WIRE_SEND_ONLY, 20);
    uint64_t now = S;
    ck_assert_uint_eq(sw->nactive, MANY);
    for (unsigned k = 0; k < 20 + SWITCH_IDLE_LOOKS; k++, now += k < 20 ? 20000 : 1000) {
        if (k == SWITCH_IDLE_LOOKS / 3) /* time alone sends none to sleep */
            ck_assert_uint_eq(sw->nactive, MANY);
        for (unsigned i = 0; i < 4; i++)
            ck_assert(send_pkt(prog[i * 7].io, &p));
        ck_assert_uint_eq(run_tx(IO_BURST_MAX, now), 4);
    }
    ck_assert_uint_eq(sw->nactive, 4);
    ck_assert_uint_eq(sw->nasleep, MANY - 4);
    ck_assert(!readable(sw->epfd));
    for (unsigned i = 100; i < MANY; i += 100) {
        ck_assert(send_pkt(prog[i].io, &p));
        ck_assert(readable(sw->epfd));
        now += MS;
        switch_look(sw, now);
        ck_assert(!readable(sw->epfd));
        ck_assert_uint_eq(run_tx(IO_BURST_MAX, now), 1);
        ck_assert_ptr_ne(prog[i].c->next, NULL);
    }
    /* A frame received before the last look keeps the worker awake, and isn't lost. */
    ck_assert(switch_tx_ready(sw));
    ck_assert(send_pkt(prog[900].io, &p));
    ck_assert(switch_sleep(sw));
    ck_assert_uint_eq(sw->nactive, 1);
    ck_assert(switch_sleep(sw));
    ck_assert_uint_eq(run_tx(IO_BURST_MAX, now), 1);
    ck_assert(!switch_sleep(sw));
    ck_assert(!switch_tx_ready(sw));
    ck_assert_uint_eq(run_tx(IO_BURST_MAX, now), 0);
    ck_assert(send_pkt(prog[0].io, &p));
    ck_assert(readable(sw->epfd));
    switch_look(sw, now); /* at once, after a sleep */
    ck_assert_uint_eq(run_tx(IO_BURST_MAX, now), 1);
    teardown_of(MANY);
}
END_TEST

/* ---- groups ---- */

static bool engine_in(void *arg, const struct wire_addr *group)
{
    return memcmp(arg, group, sizeof(*group)) == 0;
}

START_TEST(ud_10_groups_are_copied)
{
    uint8_t buf[256];
    struct wire_addr group = wire_addr_v4(0xE0000105), other = wire_addr_v4(0xE0000106);
    setup_of(100, 0);
    for (unsigned i = 0; i < 90; i++) {
        ck_assert_int_eq(switch_group_join(sw, prog[i].c, &group), 0);
        ck_assert_int_eq(switch_group_join(sw, prog[i].c, &group), 0); /* once is enough */
    }
    ck_assert_int_eq(switch_group_join(sw, prog[99].c, &other), 0);
    sw->engine_in = engine_in;
    sw->engine_arg = &other;
    struct wire_pkt p = frame_pkt(FRAME_V4, WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY), 20);
    p.dip = group;
    p.dqpn = WIRE_QPN_MULTICAST;
    wire_mcast_mac(&group, p.dmac);
    struct io_frame in = {.data = buf, .len = (uint32_t)frame_make(buf, sizeof(buf), &p)};
    ck_assert_uint_eq(switch_rx(sw, &in, 1), 1); /* the engine isn't in it */
    ck_assert_uint_eq(sw->counters[SWITCH_C_channel_group_copies], 64);
    ck_assert_uint_eq(sw->counters[SWITCH_C_channel_group_drops], 26);
    ck_assert_uint_eq(switch_rx(sw, &in, 1), 1);
    ck_assert_uint_eq(sw->counters[SWITCH_C_channel_group_copies], 64); /* not in this round */
    switch_round(sw);
    ck_assert_uint_eq(switch_rx(sw, &in, 1), 1);
    unsigned got = 0, twice = 0;
    for (unsigned i = 0; i < 100; i++) {
        struct io_frame f[4];
        unsigned n = prog[i].io->ops->rx_peek(prog[i].io, f, 4, 0);
        prog[i].io->ops->rx_release(prog[i].io, n);
        ck_assert_uint_eq(n > 0, i < 90); /* the members left out came first */
        got += n;
        twice += n == 2;
    }
    ck_assert_uint_eq(got, 128);
    ck_assert_uint_eq(twice, 38);

    /* The engine is in the other one; so is a program. */
    p.dip = other;
    wire_mcast_mac(&other, p.dmac);
    in.len = (uint32_t)frame_make(buf, sizeof(buf), &p);
    switch_round(sw);
    ck_assert_uint_eq(switch_rx(sw, &in, 1), 0);
    ck_assert_uint_eq(channel_tx_waiting(prog[99].c->io), 1);

    /* From a program: to the wire, and back to switch_rx, by which all members here get it. */
    switch_round(sw);
    p = packet(FRAME_V4, WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY), 20);
    p.dip = other;
    p.dqpn = WIRE_QPN_MULTICAST;
    p.sqpn = prog[99].qpn;
    wire_mcast_mac(&other, p.dmac);
    ck_assert(send_pkt(prog[99].io, &p));
    ck_assert_uint_eq(run_tx(4, S), 1);
    ck_assert(switch_group_has(sw, &other));
    in = (struct io_frame){.data = slots[0].data, .len = slots[0].len};
    ck_assert_uint_eq(switch_rx(sw, &in, 1), 0);
    ck_assert_uint_eq(channel_tx_waiting(prog[99].c->io), 2);

    switch_group_leave(sw, prog[99].c, &other);
    switch_group_leave(sw, prog[99].c, &group); /* the program isn't in the group */
    ck_assert_uint_eq(sw->ngroups, 1);
    ck_assert(!switch_group_has(sw, &other));
    for (unsigned i = 0; i < 90; i++)
        switch_group_leave_all(sw, prog[i].c);
    ck_assert_uint_eq(sw->ngroups, 0);
    ck_assert_uint_eq(switch_rx(sw, &in, 1), 0);
    for (uint32_t i = 0; i <= SWITCH_GROUPS; i++) {
        group = wire_addr_v4(0xE0001000 + i);
        ck_assert_int_eq(switch_group_join(sw, prog[0].c, &group), i < SWITCH_GROUPS ? 0 : -ENOSPC);
    }
    teardown_of(100);
}
END_TEST

/* ---- order, and the end of a program ---- */

START_TEST(qp_11_a_request_takes_effect_behind_the_frames_before)
{
    setup_of(2, 0);
    struct wire_pkt p = packet(FRAME_V4, WIRE_SEND_ONLY, 20);
    struct switch_mark none = switch_mark(sw, prog[0].c);
    ck_assert(switch_passed(prog[0].c, &none));
    for (p.psn = 0; p.psn < 5; p.psn++)
        ck_assert(send_pkt(prog[0].io, &p));
    struct switch_mark mark = switch_mark(sw, prog[0].c);
    for (; p.psn < 50; p.psn++)
        ck_assert(send_pkt(prog[0].io, &p)); /* these don't matter */
    for (unsigned i = 0; i < 5; i++) {
        ck_assert(!switch_passed(prog[0].c, &mark));
        ck_assert_uint_eq(run_tx(1, S), 1); /* a turn of the other, which has nothing */
    }
    ck_assert(switch_passed(prog[0].c, &mark));
    teardown_of(2);
}
END_TEST

START_TEST(qp_11_the_mark_goes_along_when_a_channel_grows)
{
    struct channel_memory daemon, program;
    setup_of(1, 0);
    struct wire_pkt p = packet(FRAME_V4, WIRE_SEND_ONLY, 20);
    for (unsigned i = 0; i < 10; i++)
        ck_assert(send_pkt(prog[0].io, &p));
    close(rig_memory(&daemon, &program, 256));
    ck_assert_int_eq(channel_memory_seal(&daemon), 0);
    ck_assert_int_eq(channel_grow(prog[0].c->io, &daemon), 0);
    ck_assert_int_eq(channel_grow(prog[0].io, &program), 0);
    for (unsigned i = 0; i < 10; i++)
        ck_assert(send_pkt(prog[0].io, &p));
    struct switch_mark mark = switch_mark(sw, prog[0].c);
    ck_assert(send_pkt(prog[0].io, &p));
    for (unsigned i = 0; i < 20; i++) {
        ck_assert_msg(!switch_passed(prog[0].c, &mark), "frame %u", i);
        ck_assert_uint_eq(run_tx(1, S), 1);
    }
    ck_assert(switch_passed(prog[0].c, &mark));
    ck_assert_uint_eq(channel_rx_mark(prog[0].c->io), mark.sent + 1);
    teardown_of(1);
}
END_TEST

/* SHM-07, QP-11: frames that a program had committed leave, it receives none any more, and its
 * numbers rest. */
START_TEST(shm_07_the_end_of_a_program)
{
    uint8_t buf[256];
    uint64_t key[2];
    setup_of(2, 0);
    struct wire_pkt p = packet(FRAME_V4, WIRE_SEND_ONLY, 20);
    uint64_t now = S;
    look_in_vain(now);
    ck_assert_uint_eq(sw->nactive, 2);
    ck_assert_uint_eq(run_tx(4, now + MS), 0);
    ck_assert_uint_eq(sw->nactive, 0);
    struct wire_addr group = wire_addr_v4(0xE0000105);
    ck_assert_int_eq(switch_group_join(sw, prog[0].c, &group), 0);
    for (p.psn = 0; p.psn < 20; p.psn++)
        ck_assert(send_pkt(prog[0].io, &p));
    switch_end(sw, prog[0].c);
    struct switch_mark mark = switch_mark(sw, prog[0].c);
    ck_assert_uint_eq(sw->ngroups, 0);
    struct wire_pkt to = frame_pkt(FRAME_V4, WIRE_SEND_ONLY, 20);
    memcpy(to.dmac, mac, 6);
    to.dqpn = prog[0].qpn;
    struct io_frame in = {.data = buf, .len = (uint32_t)frame_make(buf, sizeof(buf), &to)};
    ck_assert_uint_eq(switch_rx(sw, &in, 1), 0); /* the engine says that there is no such number */
    for (unsigned i = 0; i < 20; i += 4) {
        ck_assert(!switch_passed(prog[0].c, &mark));
        ck_assert_uint_eq(run_tx(4, now), 4);
    }
    ck_assert(switch_passed(prog[0].c, &mark));
    uint32_t qpn = prog[0].qpn;
    switch_detach(sw, prog[0].c, now);
    ck_assert_ptr_null(switch_owner(sw, qpn));
    for (unsigned i = 0; i < QPN_BLOCKS - 2; i++)
        ck_assert_int_ge(switch_draw(sw, prog[1].c, now, key), 0);
    ck_assert_int_eq(switch_draw(sw, prog[1].c, now, key), -EAGAIN);
    ck_assert_int_eq(switch_draw(sw, prog[1].c, now + 60 * S, key), (int)(qpn >> 13 & 1023));
    teardown_of(2);
}
END_TEST

/* A program that corrupts its ring neither delays its own end nor costs the switch any work. */
START_TEST(shm_02_a_lying_program_is_given_up)
{
    setup_of(2, 0);
    struct wire_pkt p = packet(FRAME_V4, WIRE_SEND_ONLY, 20);
    struct channel_head *head = (struct channel_head *)(void *)prog[0].base;
    ck_assert(send_pkt(prog[0].io, &p));
    ck_assert(send_pkt(prog[1].io, &p));
    struct switch_mark mark = switch_mark(sw, prog[0].c);
    atomic_store(&head->to[CHANNEL_SWITCH].prod, 1000);
    for (unsigned i = 0; i < 5; i++)
        (void)run_tx(IO_BURST_MAX, S);
    ck_assert_uint_eq(sw->counters[SWITCH_C_channel_bad_index], 1);
    ck_assert_uint_eq(sw->counters[SWITCH_C_channel_tx_frames], 1);
    ck_assert_uint_gt(sw->counters[SWITCH_C_channel_tx_bytes], 0);
    ck_assert_uint_eq(sw->nactive, 1);
    ck_assert(switch_passed(prog[0].c, &mark));
    mark = switch_mark(sw, prog[0].c);
    ck_assert(switch_passed(prog[0].c, &mark));
    ck_assert_uint_eq(sw->nactive, 1);
    (void)switch_sleep(sw);
    switch_end(sw, prog[0].c);
    switch_detach(sw, prog[0].c, S);
    teardown_of(2);
}
END_TEST

START_TEST(shm_02_a_program_that_moves_nowhere_is_asleep)
{
    setup_of(1, 0);
    struct wire_pkt p = packet(FRAME_V4, WIRE_SEND_ONLY, 20);
    ck_assert(send_pkt(prog[0].io, &p));
    struct channel_slot *slot = (struct channel_slot *)(void *)(prog[0].base + CHANNEL_PAGE);
    atomic_store(&slot->word, (uint64_t)CHANNEL_MOVED << 32);
    struct switch_mark mark = switch_mark(sw, prog[0].c);
    ck_assert_uint_eq(run_tx(4, S + MS), 0);
    ck_assert(switch_passed(prog[0].c, &mark)); /* nothing more can come */
    ck_assert(!switch_sleep(sw));               /* nor keep the worker awake */
    ck_assert_uint_eq(sw->nasleep, 1);
    teardown_of(1);
}
END_TEST

UNIT_MAIN("switch", shm_13_what_a_program_may_send, shm_13_the_vlan_of_the_device,
          shm_13_a_frame_that_changes_while_it_is_judged, frames_go_round_inside,
          sec_35_only_to_its_peer, sec_35_as_many_pairs_as_queue_pairs, sec_35_cnps_to_others,
          shm_14_strays_go_to_their_owner, captures_see_whose_a_frame_is,
          the_owner_of_a_queue_pair_gets_the_frame, shm_13_frames_wait_for_a_full_ring,
          shm_13_no_more_wait_than_there_is_room, sec_22_room_is_shared_by_users,
          shm_13_a_stream_wakes_a_program_now_and_then, a_frame_that_is_too_long_is_lost,
          frames_wait_for_a_full_port, shm_08_channels_take_turns, shm_08_turns_are_fair_by_octets,
          shm_13_turns_follow_weights, shm_08_a_call_takes_a_bounded_number_of_frames,
          shm_08_alone_a_program_gets_into_no_debt, shm_08_only_active_channels_are_looked_at,
          ud_10_groups_are_copied, qp_11_a_request_takes_effect_behind_the_frames_before,
          qp_11_the_mark_goes_along_when_a_channel_grows, shm_07_the_end_of_a_program,
          shm_02_a_lying_program_is_given_up, shm_02_a_program_that_moves_nowhere_is_asleep)
