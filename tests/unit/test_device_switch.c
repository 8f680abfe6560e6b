/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SHM-13: the switch in the rounds of a worker. Two devices on one emulated link, and programs,
 * which are this process, too: their engines are frames made by hand.
 */
#include "device_switch.h"

#include <errno.h>
#include <poll.h>

#include "channel_rig.h"
#include "clock.h"
#include "contexts.h"
#include "device.h"
#include "device_addr.h"
#include "facts.h"
#include "frames.h"
#include "ipc_facts.h"
#include "loop.h"
#include "memory.h"
#include "neigh.h"
#include "pair_rig.h"
#include "round.h"
#include "share.h"
#include "switch_group.h"
#include "switch_news.h"
#include "worker.h"

#define ROUNDS   100000u
#define PROGRAMS 3u /* two beside device 0, one beside device 1 */

static struct worker w;
static struct config_device conf[2];
static struct device *dev[2];
static struct wire_addr ip[2];
static struct program {
    struct device *d;
    struct switch_channel *c;
    struct io_port *io;
    uint32_t qpn;
} prog[PROGRAMS];

static void come(struct program *p, struct device *d)
{
    struct channel_memory daemon, program;
    struct io_port *end;
    uint64_t key[2];
    close(rig_memory(&daemon, &program, CHANNEL_SLOTS_MIN));
    int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    ck_assert_int_eq(channel_memory_seal(&daemon), 0);
    ck_assert_int_eq(
        channel_open(CHANNEL_PROGRAM, &program, fcntl(event, F_DUPFD_CLOEXEC, 0), 0, &p->io), 0);
    ck_assert_int_eq(channel_open(CHANNEL_SWITCH, &daemon, event, 0, &end), 0);
    p->d = d;
    p->c = switch_attach(d->sw, end, p, clock_now());
    ck_assert_ptr_nonnull(p->c);
    int block = switch_draw(d->sw, p->c, clock_now(), key);
    ck_assert_int_ge(block, 0);
    p->qpn = 0x800000u | (uint32_t)block << 13 | 5;
}

static void setup(void)
{
    char err[CONFIG_ERR];
    ck_assert_int_eq(memory_init(), 0);
    ck_assert_int_eq(worker_init(&w, 0, -1, IDLE_AUTO, &context_ops), 0);
    for (unsigned i = 0; i < 2; i++) {
        ip[i] = wire_addr_v4(0x0A000001 + i);
        conf[i] = (struct config_device){
            .name = {'u', 'r', 'n', (char)('0' + i)}, .port = "mem:switched", .naddr = 1};
        conf[i].addr[0] = (struct config_addr){.ip = ip[i], .prefix = 24};
        cc_conf_init(&conf[i].cc, &cc_none);
        int rc = device_open(&dev[i], &conf[i], i, &w, i, err);
        ck_assert_msg(rc == 0, "%s", err);
        ck_assert_int_eq(device_switch_start(dev[i]), 0);
        ck_assert_int_eq(device_switch_start(dev[i]), 0);
    }
    for (unsigned i = 0; i < PROGRAMS; i++)
        come(&prog[i], dev[i / 2]);
}

static void teardown(void)
{
    device_close(dev[0]);
    device_close(dev[1]);
    worker_fini(&w);
    for (unsigned i = 0; i < PROGRAMS; i++)
        prog[i].io->ops->close(prog[i].io);
}

/* A packet of a program to a number of the device `to`. */
static struct wire_pkt packet(const struct program *from, const struct device *to, uint32_t dqpn)
{
    struct wire_pkt p = frame_pkt(FRAME_V4, WIRE_SEND_ONLY, 64);
    memcpy(p.dmac, to->mac, 6);
    p.sip = ip[from->d->index];
    p.dip = ip[to->index];
    p.dqpn = dqpn;
    return p;
}

static void send_pkt(struct program *from, struct wire_pkt p)
{
    struct io_slot s;
    ck_assert_uint_eq(from->io->ops->tx_reserve(from->io, &s, 1, 0), 1);
    s.len = (uint32_t)frame_make(s.data, s.cap, &p);
    const uint32_t qpn = (from->qpn & ~0x1FFFu) | ((p.dqpn ^ p.dqpn >> 13) & 0x1FFF);
    switch_rig_peer(from->c, qpn, &p);
    channel_tx_meta(from->io, 0, qpn);
    from->io->ops->tx_commit(from->io, &s, 1, 0);
}

/* Run rounds until a program has a frame. */
static bool arrives(struct program *to, struct wire_pkt *p, uint32_t *flags)
{
    struct io_frame f;
    for (unsigned i = 0; i < ROUNDS; i++) {
        worker_round(&w, clock_now());
        if (to->io->ops->rx_peek(to->io, &f, 1, 0) == 0)
            continue;
        ck_assert_int_eq(wire_parse(f.data, f.len, 0, p), WIRE_OK);
        *flags = f.flags;
        to->io->ops->rx_release(to->io, 1);
        return true;
    }
    return false;
}

static uint64_t bad_qpn(const struct device *d)
{
    return engine_counters(d->engine)[ENGINE_C_rx_bad_qpn];
}

static bool counts(const struct device *d, uint64_t value)
{
    for (unsigned i = 0; i < ROUNDS && bad_qpn(d) != value; i++)
        worker_round(&w, clock_now());
    return bad_qpn(d) == value;
}

START_TEST(shm_13_over_the_port_and_back)
{
    struct wire_pkt p;
    uint32_t flags;
    for (unsigned i = 0; i < 20; i++) {
        send_pkt(&prog[0], packet(&prog[0], dev[1], prog[2].qpn));
        ck_assert(arrives(&prog[2], &p, &flags));
        ck_assert_uint_eq(p.dqpn, prog[2].qpn);
        ck_assert_int_eq(memcmp(p.smac, dev[0]->mac, 6), 0);
        send_pkt(&prog[2], packet(&prog[2], dev[0], prog[1].qpn));
        ck_assert(arrives(&prog[1], &p, &flags));
        ck_assert_uint_eq(p.dqpn, prog[1].qpn);
    }
    ck_assert_uint_eq(prog[0].io->ops->rx_peek(prog[0].io, &(struct io_frame){0}, 1, 0), 0);
    ck_assert_uint_eq(bad_qpn(dev[0]) + bad_qpn(dev[1]), 0); /* no engine has seen one */
}
END_TEST

START_TEST(shm_13_inside_the_device)
{
    struct wire_pkt p;
    uint32_t flags;
    send_pkt(&prog[0], packet(&prog[0], dev[0], prog[1].qpn));
    ck_assert(arrives(&prog[1], &p, &flags));
    ck_assert_uint_eq(flags, 0); /* the other program's iCRC: to be checked */
    send_pkt(&prog[0], packet(&prog[0], dev[0], prog[0].qpn));
    ck_assert(arrives(&prog[0], &p, &flags));
    send_pkt(&prog[0], packet(&prog[0], dev[0], 0x123));
    ck_assert(counts(dev[0], 1)); /* the daemon's engine has it */
    struct io_stats st;
    dev[0]->io->ops->stats(dev[0]->io, &st);
    ck_assert_uint_eq(dev[0]->sw->counters[SWITCH_C_channel_tx_frames], 3);
    ck_assert_uint_eq(dev[0]->sw->counters[SWITCH_C_channel_inside], 2);

    /* From the daemon's engine to a program: sent round, with or without an iCRC. */
    uint8_t f[512];
    struct wire_pkt own = packet(&prog[0], dev[0], prog[1].qpn);
    struct io_slot slot = {.data = f, .cap = sizeof(f), .len = (uint32_t)frame_make(f, 512, &own)};
    loop_take(dev[0], &slot, 1);
    ck_assert_uint_eq(slot.len, 0);
    ck_assert(arrives(&prog[1], &p, &flags));
    ck_assert_uint_eq(flags, IO_RX_IP_CSUM_OK | IO_RX_ICRC_OK);
}
END_TEST

/* SEC-09: numbers of no program, of no block, and of the daemon's engine that don't exist. */
START_TEST(sec_09_numbers_of_nobody_are_charged)
{
    send_pkt(&prog[0], packet(&prog[0], dev[1], 0x345));
    ck_assert(counts(dev[1], 1));
    uint32_t nobody = prog[2].qpn ^ 0x2000;
    send_pkt(&prog[0], packet(&prog[0], dev[1], nobody));
    ck_assert(counts(dev[1], 2));
    /* A program that has gone. */
    uint32_t gone = prog[2].qpn;
    switch_end(dev[1]->sw, prog[2].c);
    switch_detach(dev[1]->sw, prog[2].c, clock_now());
    send_pkt(&prog[0], packet(&prog[0], dev[1], gone));
    ck_assert(counts(dev[1], 3));
}
END_TEST

START_TEST(ud_10_groups_of_programs_and_the_daemon)
{
    struct wire_addr group = wire_addr_v4(0xE0000107);
    struct wire_pkt p, got;
    uint32_t flags;
    ck_assert_int_eq(switch_group_join(dev[0]->sw, prog[1].c, &group), 0);
    ck_assert_int_eq(switch_group_join(dev[1]->sw, prog[2].c, &group), 0);
    p = packet(&prog[0], dev[1], WIRE_QPN_MULTICAST);
    p.opcode = WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY);
    p.sqpn = prog[0].qpn;
    p.qkey = 5;
    p.dip = group;
    wire_mcast_mac(&group, p.dmac);
    send_pkt(&prog[0], p);
    ck_assert(arrives(&prog[1], &got, &flags)); /* beside it */
    ck_assert(arrives(&prog[2], &got, &flags)); /* over the link */
    for (unsigned i = 0; i < 100; i++)
        worker_round(&w, clock_now());
    for (unsigned i = 0; i < PROGRAMS; i++) /* once each */
        ck_assert_uint_eq(prog[i].io->ops->rx_peek(prog[i].io, &(struct io_frame){0}, 1, 0), 0);
    ck_assert_uint_eq(engine_counters(dev[1]->engine)[ENGINE_C_rx_mcast_no_group], 0);
}
END_TEST

/* SHM-13: programs that send to a group leave copies for the datagrams of the port. */
START_TEST(shm_13_copies_of_own_datagrams)
{
    struct nic_switch *sw = dev[0]->sw;
    const struct wire_addr group = wire_addr_v4(0xE0000107);
    uint8_t buf[256];
    struct io_frame f[4];
    for (unsigned i = 0; i < 2; i++)
        ck_assert_int_eq(switch_group_join(sw, prog[i].c, &group), 0);
    struct wire_pkt p = packet(&prog[2], dev[0], WIRE_QPN_MULTICAST);
    p.opcode = WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY);
    p.dip = group;
    wire_mcast_mac(&group, p.dmac);
    for (unsigned i = 0; i < 4; i++)
        f[i] = (struct io_frame){.data = buf, .len = (uint32_t)frame_make(buf, sizeof(buf), &p)};
    sw->copies = SWITCH_COPIES / 2 + 2;
    for (unsigned call = 0; call < 2; call++) {
        (void)device_switch_rx(dev[0], f, 4, false);
        ck_assert_uint_eq(sw->counters[SWITCH_C_channel_group_copies], 2);
        ck_assert_uint_eq(sw->counters[SWITCH_C_channel_group_drops], 6 + 8 * call);
        for (unsigned i = 0; i < 4; i++)
            f[i] = (struct io_frame){.data = buf, .len = f[0].len};
    }
    (void)device_switch_rx(dev[0], f, 4, true);
    ck_assert_uint_eq(sw->counters[SWITCH_C_channel_group_copies], 2 + 8);
    ck_assert_uint_eq(sw->counters[SWITCH_C_channel_group_drops], 6 + 8);
}
END_TEST

static bool is_asked(uint32_t i, struct share *s)
{
    const struct wire_addr a = wire_addr_v4(0x0A000010 + i);
    uint8_t mac[6];
    ck_assert_int_lt(dev[0]->sw->next_hop(dev[0], s, &a, mac), 0);
    return !neigh_is_new(dev[0]->neigh, &a);
}

/* SEC-22: frames of a user's programs begin to resolve 32 neighbours at once, and 100 a second. */
START_TEST(sec_22_new_neighbours)
{
    struct share_pool pool = {0};
    struct share *user[2] = {share_join(&pool, 1000, false), share_join(&pool, 1001, false)};
    unsigned asked = 0;
    uint32_t i = 0;
    w.now = clock_now();
    for (; i < 50; i++)
        asked += is_asked(i, user[0]);
    ck_assert_uint_eq(asked, SHARE_ASK_BURST);
    ck_assert(is_asked(0, user[0])); /* which is not new */
    ck_assert(is_asked(i++, user[1]));
    ck_assert(is_asked(i++, NULL)); /* the daemon's own */
    for (unsigned k = 0; k < 20; k++) {
        w.now += 1000000000u / SHARE_ASKS;
        ck_assert(is_asked(i++, user[0]));
        ck_assert(!is_asked(i++, user[0]));
    }
    share_fini(&pool);
}
END_TEST

START_TEST(shm_13_addresses_that_come_and_go)
{
    struct wire_pkt p = packet(&prog[0], dev[1], prog[2].qpn), got;
    const struct config_addr more = {.ip = wire_addr_v4(0x0A000009), .prefix = 24};
    uint64_t *refused = &dev[0]->sw->counters[SWITCH_C_channel_bad_source];
    uint32_t flags;
    p.sip = more.ip;
    send_pkt(&prog[0], p);
    worker_round(&w, clock_now());
    ck_assert_uint_eq(*refused, 1);
    ck_assert_int_eq(device_addr_add(dev[0], &more), 0);
    send_pkt(&prog[0], p);
    ck_assert(arrives(&prog[2], &got, &flags));
    ck_assert_int_eq(device_addr_del(dev[0], &more.ip, clock_now()), 0);
    send_pkt(&prog[0], p);
    worker_round(&w, clock_now());
    ck_assert_uint_eq(*refused, 2);
}
END_TEST

/* WIRE-07: a queue pair of a program has the MAC that its peer had. */
START_TEST(wire_07_the_next_hop_is_what_the_daemon_knows)
{
    struct wire_pkt p = packet(&prog[0], dev[1], prog[2].qpn), got;
    uint32_t flags;
    uint8_t mac[6];
    ck_assert_int_lt(neigh_lookup(dev[0]->neigh, NULL, &ip[1], mac, clock_now()), 0);
    for (unsigned i = 0; i < ROUNDS; i++) {
        worker_round(&w, clock_now());
        if (neigh_lookup(dev[0]->neigh, NULL, &ip[1], mac, clock_now()) == 0)
            break;
    }
    ck_assert_mem_eq(mac, dev[1]->mac, 6);
    p.dmac[5] ^= 0x11;
    send_pkt(&prog[0], p);
    ck_assert(arrives(&prog[2], &got, &flags));
    ck_assert_mem_eq(got.dmac, dev[1]->mac, 6);
    /* A program's message counts only for its own frames, and for one address. */
    p.dip = wire_addr_v4(0x0A0000FE);
    send_pkt(&prog[0], p);
    p = packet(&prog[0], dev[1], prog[2].qpn);
    p.dmac[5] ^= 0x22;
    send_pkt(&prog[0], p);
    ck_assert(arrives(&prog[2], &got, &flags));
    ck_assert_mem_eq(got.dmac, dev[1]->mac, 6);
}
END_TEST

/* ---- the page of facts ---- */

static struct ipc_facts told;
static uint32_t generation;

/* The page as a program has it says something new. */
static bool told_of_news(const struct ipc_facts_page *page)
{
    return ipc_facts_differ(page, generation) && ipc_facts_read(page, &generation, &told);
}

/* A frame of the daemon's own has come, which wakes a program that sleeps. */
static bool woken(const struct program *p)
{
    struct io_frame f;
    if (p->io->ops->rx_peek(p->io, &f, 1, 0) == 0)
        return false;
    ck_assert_uint_eq(f.len, 64);
    ck_assert_uint_eq(f.data[12] << 8 | f.data[13], 0x88B5);
    ck_assert_uint_eq(switch_news_read(f.data, f.len), 0); /* not of a queue pair */
    p->io->ops->rx_release(p->io, 1);
    return true;
}

START_TEST(programs_are_told_of_the_device)
{
    const struct ipc_facts_page *page =
        mmap(NULL, IPC_FACTS_PAGE, PROT_READ, MAP_SHARED, facts_fd(dev[0]->facts), 0);
    const struct config_addr more = {.ip = wire_addr_v4(0x0A000009), .prefix = 24};
    struct cc_conf cc;
    ck_assert_ptr_ne(page, MAP_FAILED);
    generation = 0;
    ck_assert(told_of_news(page));
    ck_assert_uint_eq(told.frame_max, dev[0]->frame_max);
    ck_assert_uint_eq(told.ip_mtu, dev[0]->ip_mtu);
    ck_assert_uint_eq(told.path_mtu, dev[0]->path_mtu);
    ck_assert_int_eq(memcmp(told.mac, dev[0]->mac, 6), 0);
    ck_assert_uint_eq(told.flags, IPC_FACTS_LINK);
    ck_assert_uint_eq(told.addrs, 3); /* link-local, and its own */
    ck_assert_int_eq(memcmp(told.gid[1], &ip[0], 16), 0);
    ck_assert_int_eq(cc_conf_parse(&cc, told.cc, told.cc, sizeof(told.cc)), 0);
    ck_assert_ptr_eq(cc.type, &cc_none);
    for (unsigned i = 0; i < 10; i++)
        device_service(dev[0], clock_now());
    ck_assert(!told_of_news(page) && !woken(&prog[0]));

    ck_assert_int_eq(device_addr_add(dev[0], &more), 0); /* at once */
    ck_assert(told_of_news(page));
    ck_assert(woken(&prog[0]) && woken(&prog[1]) && !woken(&prog[2]));
    ck_assert(!woken(&prog[0]));
    ck_assert_uint_eq(told.addrs, 7);
    ck_assert_int_eq(memcmp(told.gid[2], &more.ip, 16), 0);
    ck_assert_int_eq(device_addr_del(dev[0], &more.ip, clock_now()), 0);
    ck_assert(told_of_news(page));
    ck_assert_uint_eq(told.addrs, 3);

    cc_conf_init(&cc, &cc_dcqcn);
    ck_assert_int_ge(engine_set_cc(dev[0]->engine, &cc, clock_now()), 0);
    dev[1]->io->ops->close(dev[1]->io); /* the link goes down */
    dev[1]->io = NULL;
    w.ndevice = 1;
    for (unsigned i = 0; i < ROUNDS && dev[0]->link.up; i++)
        device_service(dev[0], clock_now());
    ck_assert(told_of_news(page));
    ck_assert(!told_of_news(page));
    ck_assert_uint_eq(told.flags, 0);
    ck_assert_int_eq(strncmp(told.cc, "dcqcn", 5), 0);
    munmap((void *)(uintptr_t)page, IPC_FACTS_PAGE);
}
END_TEST

/* ---- errors of ICMP ---- */

static struct io_icmp last_icmp;
static unsigned icmps;

static void take_icmp(void *arg, const struct io_icmp *icmp)
{
    ck_assert_ptr_eq(arg, dev[0]);
    last_icmp = *icmp;
    icmps++;
}

/* The program reports it. Returns the number of errors that the daemon takes for true. */
static unsigned report(const struct program *p, int error)
{
    struct io_icmp icmp = {.error = error};
    struct io_slot s;
    memcpy(icmp.to.b, ip[1].b, sizeof(icmp.to.b));
    ck_assert_uint_eq(p->io->ops->tx_reserve(p->io, &s, 1, 0), 1);
    s.len = switch_news_heard(s.data, s.cap, &icmp);
    ck_assert_uint_gt(s.len, 0);
    ck_assert_uint_eq(switch_news_heard(s.data, s.len - 1, &icmp), 0);
    p->io->ops->tx_commit(p->io, &s, 1, 0);
    icmps = 0;
    for (unsigned i = 0; i < 10; i++)
        worker_round(&w, clock_now());
    return icmps;
}

/* The kernel gives an error to any socket of an address. */
START_TEST(cm_39_programs_and_the_daemon_tell_each_other_of_icmp)
{
    struct io_icmp icmp;
    struct io_frame f;
    dev[0]->sw->icmp = take_icmp;
    ck_assert_uint_eq(report(&prog[0], ECONNREFUSED), 0); /* it has no socket */
    prog[0].c->direct = true;
    ck_assert_uint_eq(report(&prog[0], EPERM), 0);
    ck_assert_uint_eq(report(&prog[0], -ECONNREFUSED), 0);
    ck_assert_uint_eq(report(&prog[0], ECONNREFUSED), 1);
    ck_assert_int_eq(last_icmp.error, ECONNREFUSED);
    ck_assert_mem_eq(last_icmp.to.b, ip[1].b, sizeof(last_icmp.to.b));
    ck_assert_uint_eq(report(&prog[0], EMSGSIZE), 1);

    switch_news_icmp(dev[0]->sw, &last_icmp);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_uint_eq(prog[i].io->ops->rx_peek(prog[i].io, &f, 1, 0), 1);
        ck_assert(switch_news_read_icmp(f.data, f.len, &icmp));
        ck_assert_int_eq(icmp.error, EMSGSIZE);
        ck_assert_mem_eq(icmp.to.b, ip[1].b, sizeof(icmp.to.b));
        ck_assert(!switch_news_read_icmp(f.data, f.len - 1, &icmp));
        ck_assert_uint_eq(switch_news_read(f.data, f.len), 0);
        prog[i].io->ops->rx_release(prog[i].io, 1);
    }
    ck_assert(!woken(&prog[2])); /* beside another device */
    switch_news_facts(dev[0]->sw);
    ck_assert_uint_eq(prog[0].io->ops->rx_peek(prog[0].io, &f, 1, 0), 1);
    ck_assert(!switch_news_read_icmp(f.data, f.len, &icmp));
    prog[0].io->ops->rx_release(prog[0].io, 1);
}
END_TEST

/* Programs have the page's descriptor, and nothing to write it by. */
START_TEST(shm_04_programs_only_read_the_page)
{
    int fd = facts_fd(dev[0]->facts);
    ck_assert_ptr_eq(mmap(NULL, IPC_FACTS_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0),
                     MAP_FAILED);
    void *page = mmap(NULL, IPC_FACTS_PAGE, PROT_READ, MAP_SHARED, fd, 0);
    ck_assert_int_eq(mprotect(page, IPC_FACTS_PAGE, PROT_READ | PROT_WRITE), -1);
    ck_assert_int_eq(pwrite(fd, "x", 1, 0), -1);
    ck_assert_int_eq(ftruncate(fd, 0), -1);
    ck_assert_int_eq(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), -1);
    munmap(page, IPC_FACTS_PAGE);
}
END_TEST

static bool readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

/* A worker with programs beside it blocks, and a program's frame wakes it. */
START_TEST(shm_06_a_worker_that_sleeps_is_woken_by_a_program)
{
    struct wire_pkt got;
    uint32_t flags;
    for (unsigned k = 0; k < 20; k++) {
        for (unsigned i = 0; i < 10; i++)
            worker_round(&w, clock_now());
        ck_assert(!worker_anything(&w, clock_now()));
        ck_assert_uint_eq(dev[0]->sw->nactive, 0);
        ck_assert(!readable(w.watch.epfd));
        send_pkt(&prog[k % 2], packet(&prog[k % 2], dev[1], prog[2].qpn));
        ck_assert(readable(w.watch.epfd));
        ck_assert(worker_anything(&w, clock_now()));
        ck_assert(arrives(&prog[2], &got, &flags));
        /* A packet sent before the worker looks for the last time: the worker doesn't block on it.
         */
        send_pkt(&prog[0], packet(&prog[0], dev[1], prog[2].qpn));
        ck_assert(worker_anything(&w, clock_now()) || readable(w.watch.epfd));
        ck_assert(arrives(&prog[2], &got, &flags));
    }
}
END_TEST

/* EVT-05: without a link frames of programs are lost as the daemon's own are. */
START_TEST(evt_05_without_a_link_frames_are_lost)
{
    dev[1]->io->ops->close(dev[1]->io);
    dev[1]->io = NULL;
    w.ndevice = 1;
    for (unsigned i = 0; i < ROUNDS && dev[0]->link.up; i++) {
        device_service(dev[0], clock_now());
        worker_round(&w, clock_now());
    }
    ck_assert(!dev[0]->link.up);
    uint64_t before = dev[0]->stats.no_link;
    for (unsigned i = 0; i < 10; i++)
        send_pkt(&prog[0], packet(&prog[0], dev[1], prog[2].qpn));
    for (unsigned i = 0; i < 100; i++)
        worker_round(&w, clock_now());
    ck_assert_uint_eq(dev[0]->stats.no_link, before + 10);
    ck_assert_uint_eq(channel_tx_waiting(prog[0].io), 0);
}
END_TEST

/* The daemon's engine and programs share the port: neither waits for the other's end. */
START_TEST(shm_08_many_frames_of_programs_and_none_is_lost)
{
    uint32_t sent[2] = {0}, got = 0;
    struct io_frame f[IO_BURST_MAX];
    for (unsigned i = 0; i < ROUNDS && got < 4000; i++) {
        for (unsigned k = 0; k < 2; k++) {
            struct wire_pkt p = packet(&prog[k], dev[1], prog[2].qpn);
            p.psn = sent[k];
            while (sent[k] < 2000 && channel_tx_waiting(prog[k].io) < 30 &&
                   sent[0] + sent[1] - got < 60) {
                send_pkt(&prog[k], p);
                p.psn = ++sent[k];
            }
        }
        worker_round(&w, clock_now());
        unsigned n = prog[2].io->ops->rx_peek(prog[2].io, f, IO_BURST_MAX, 0);
        prog[2].io->ops->rx_release(prog[2].io, n);
        got += n;
    }
    ck_assert_uint_eq(got, 4000);
    ck_assert_uint_eq(dev[1]->sw->counters[SWITCH_C_channel_drops], 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("device switch");
    TCase *t = tcase_create("device switch");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, shm_13_over_the_port_and_back);
    tcase_add_test(t, shm_13_inside_the_device);
    tcase_add_test(t, sec_09_numbers_of_nobody_are_charged);
    tcase_add_test(t, ud_10_groups_of_programs_and_the_daemon);
    tcase_add_test(t, shm_13_copies_of_own_datagrams);
    tcase_add_test(t, sec_22_new_neighbours);
    tcase_add_test(t, shm_13_addresses_that_come_and_go);
    tcase_add_test(t, wire_07_the_next_hop_is_what_the_daemon_knows);
    tcase_add_test(t, shm_06_a_worker_that_sleeps_is_woken_by_a_program);
    tcase_add_test(t, programs_are_told_of_the_device);
    tcase_add_test(t, cm_39_programs_and_the_daemon_tell_each_other_of_icmp);
    tcase_add_test(t, shm_04_programs_only_read_the_page);
    tcase_add_test(t, evt_05_without_a_link_frames_are_lost);
    tcase_add_test(t, shm_08_many_frames_of_programs_and_none_is_lost);
    suite_add_tcase(s, t);
    return unit_run(s);
}
