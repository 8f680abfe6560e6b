/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The memif handshake against peers that get one thing wrong.
 */
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../lingering.h"
#include "foreign.h"
#include "memif_conn.h"
#include "test_memif_peer.h"

struct wrong {
    const char *fact;
    void (*make)(struct peer *p);
    enum memif_reason reason; /* MEMIF_OK: the link must still come up */
};

static void as_it_should(struct peer *p)
{
    (void)p;
}
static void wrong_version(struct peer *p)
{
    p->version = 0x0201;
}
static void wrong_id(struct peer *p)
{
    p->id = 8;
}
static void wrong_mode(struct peer *p)
{
    p->mode = 1;
}
static void wrong_secret(struct peer *p)
{
    p->secret = "xyzzz";
}
static void no_secret(struct peer *p)
{
    p->secret = "";
}
static void no_region_fd(struct peer *p)
{
    p->no_region_fd = true;
}
static void region_index_gap(struct peer *p)
{
    p->region_index = 1;
}
static void region_too_small(struct peer *p)
{
    p->region_size = PEER_REGION - 4096;
}
static void region_too_large(struct peer *p)
{
    p->region_size = p->region_said = (UINT64_C(1) << 32) + 4096;
}
static void region_empty(struct peer *p)
{
    p->region_said = 0;
}
static void region_plain_file(struct peer *p)
{
    p->plain_file = true;
    p->region_said = 4096;
}
static void region_unsealed(struct peer *p)
{
    p->unsealed = true;
}
static void ring_index(struct peer *p)
{
    p->ring_index = 1;
}
static void ring_region(struct peer *p)
{
    p->ring_region = 1;
}
static void ring_misaligned(struct peer *p)
{
    p->c2s_offset = 8;
}
static void ring_outside(struct peer *p)
{
    p->c2s_offset = PEER_REGION - 64;
}
static void ring_wraps(struct peer *p)
{
    p->c2s_offset = 0xfffffff0u;
}
static void ring_too_big(struct peer *p)
{
    p->log2 = MEMIF_LOG2_MAX + 1;
}
static void ring_of_one(struct peer *p)
{
    p->log2 = 0;
}
static void ring_private_header(struct peer *p)
{
    p->private_header = 8;
}
static void ring_cookie(struct peer *p)
{
    p->cookie = 0x3E31F21u;
}
static void rings_are_one(struct peer *p)
{
    p->s2c_offset = 0;
}
static void event_is_a_pipe(struct peer *p)
{
    p->pipe_for_event = true;
}
static void skip_init(struct peer *p)
{
    p->skip = 1;
}
static void skip_region(struct peer *p)
{
    p->skip = 2;
}
static void skip_c2s(struct peer *p)
{
    p->skip = 3;
}
static void skip_s2c(struct peer *p)
{
    p->skip = 4;
}

static const struct wrong wrongs[] = {
    {"a correct client is connected", as_it_should, MEMIF_OK},
    {"an eventfd that is a pipe is not used, the link works", event_is_a_pipe, MEMIF_OK},
    {"another version", wrong_version, MEMIF_PEER_VERSION},
    {"another id", wrong_id, MEMIF_PEER_ID},
    {"another mode", wrong_mode, MEMIF_PEER_MODE},
    {"another secret", wrong_secret, MEMIF_PEER_SECRET},
    {"no secret", no_secret, MEMIF_PEER_SECRET},
    {"ADD_REGION without descriptor", no_region_fd, MEMIF_REGION},
    {"ADD_REGION out of order", region_index_gap, MEMIF_REGION},
    {"memfd smaller than announced", region_too_small, MEMIF_REGION},
    {"region over 4 GiB", region_too_large, MEMIF_REGION},
    {"region of no octets", region_empty, MEMIF_REGION},
    {"region that is an ordinary file", region_plain_file, MEMIF_UNSEALED},
    {"memfd that can shrink", region_unsealed, MEMIF_UNSEALED},
    {"second ring though one was offered", ring_index, MEMIF_RING},
    {"ring in a region that isn't there", ring_region, MEMIF_RING},
    {"misaligned ring", ring_misaligned, MEMIF_RING},
    {"ring over the end of its region", ring_outside, MEMIF_RING},
    {"ring offset that wraps 32 bits", ring_wraps, MEMIF_RING},
    {"ring larger than HELLO allowed", ring_too_big, MEMIF_RING},
    {"ring of one slot", ring_of_one, MEMIF_RING},
    {"ring with private headers", ring_private_header, MEMIF_RING},
    {"ring without cookie", ring_cookie, MEMIF_RING},
    {"both rings at one place", rings_are_one, MEMIF_RING},
    {"ADD_REGION before INIT", skip_init, MEMIF_MESSAGE},
    {"ADD_RING before its region", skip_region, MEMIF_RING},
    {"CONNECT without a client-to-server ring", skip_c2s, MEMIF_RING},
    {"CONNECT without a server-to-client ring", skip_s2c, MEMIF_RING},
};

START_TEST(server_survives_wrong_client)
{
    const struct wrong *w = &wrongs[_i];
    struct io_port *io = peer_port("role=server,id=7,secret=xyzzy", 1514);
    struct peer p = peer_new();
    p.id = 7;
    p.secret = "xyzzy";
    w->make(&p);
    bool up = peer_connect(&p, io);
    ck_assert_msg(up == (w->reason == MEMIF_OK), "%s", w->fact);
    ck_assert_msg(peer_is_up(io) == up, "%s", w->fact);
    if (!up) {
        ck_assert_msg(p.last.type == MEMIF_MSG_DISCONNECT, "%s: no reason given", w->fact);
        ck_assert_msg(peer_counters(io).reason[w->reason] == 1, "%s", w->fact);
    }
    peer_close(&p);

    /* After any fault the next client finds the port like new. */
    struct peer good = peer_new();
    good.id = 7;
    good.secret = "xyzzy";
    io->ops->service(io, 0);
    ck_assert_msg(peer_connect(&good, io), "%s: port is stuck", w->fact);
    peer_close(&good);
    io->ops->close(io);
}
END_TEST

START_TEST(a_ring_is_told_once)
{
    struct io_port *io = peer_port("role=server", 1514);
    struct peer p = peer_new();
    struct memif_msg msg = {.init = {.version = MEMIF_VERSION}};
    peer_begin(&p, io);
    ck_assert(peer_say(&p, io, MEMIF_MSG_INIT, msg, -1));
    msg = (struct memif_msg){.add_region = {.size = PEER_REGION}};
    ck_assert(peer_say(&p, io, MEMIF_MSG_ADD_REGION, msg, p.region_fd));
    msg = (struct memif_msg){.add_ring = {.flags = MEMIF_ADD_RING_C2S, .log2_size = 3}};
    ck_assert(peer_say(&p, io, MEMIF_MSG_ADD_RING, msg, -1));
    ck_assert(!peer_say(&p, io, MEMIF_MSG_ADD_RING, msg, -1));
    ck_assert_uint_eq(peer_counters(io).reason[MEMIF_RING], 1);
    peer_close(&p);
    io->ops->close(io);
}
END_TEST

/* Unrequested descriptors, and invalid events, are closed. */
START_TEST(descriptors_do_not_pile_up)
{
    struct io_port *io = peer_port("role=server", 1514);
    struct memif_msg msg = {.init = {.version = MEMIF_VERSION}};
    unsigned held[2];
    for (unsigned i = 0; i < 2; i++) {
        struct peer p = peer_new();
        unsigned before = peer_count("/proc/self/fd");
        p.pipe_for_event = i;
        ck_assert(peer_connect(&p, io));
        ck_assert(foreign_settle(10000));
        held[i] = peer_count("/proc/self/fd") - before;
        peer_close(&p);
        io->ops->service(io, 0);
        ck_assert(foreign_settle(10000));
        ck_assert_uint_eq(peer_count("/proc/self/fd"), before);
    }
    ck_assert_uint_eq(held[1], held[0] - 2); /* the pipes of two rings */

    struct peer p = peer_new();
    peer_begin(&p, io);
    unsigned before = peer_count("/proc/self/fd");
    ck_assert(peer_say(&p, io, MEMIF_MSG_INIT, msg, p.region_fd));
    ck_assert_uint_eq(peer_count("/proc/self/fd"), before);
    peer_close(&p);
    io->ops->close(io);
}
END_TEST

/* Send this, with a descriptor that never finishes its close, `n` times. */
static void say_lingering(struct peer *p, struct io_port *io, enum memif_msg_type type,
                          struct lingering *l, unsigned n)
{
    struct memif_msg msg = {.type = (uint16_t)type};
    *l = lingering_new(60);
    if (type == MEMIF_MSG_INIT)
        msg.init.version = MEMIF_VERSION;
    if (type == MEMIF_MSG_ADD_REGION)
        msg.add_region.size = PEER_REGION;
    ck_assert(lingering_pass(p->sock, &msg, sizeof(msg), l->fd, n));
    lingering_passed(l);
    if (type != MEMIF_MSG_ACK) /* that one stays in the socket */
        io->ops->service(io, 0);
}

static const struct {
    const char *fact;
    enum memif_msg_type type;
    unsigned n;
} lingerings[] = {
    {"none was asked for", MEMIF_MSG_INIT, 1},
    {"many", MEMIF_MSG_INIT, FOREIGN_WAITING - 2},
    {"in the place of memory", MEMIF_MSG_ADD_REGION, 1},
    {"in the place of an event", MEMIF_MSG_ADD_RING, 1},
    {"for goodbye", MEMIF_MSG_DISCONNECT, 1},
    {"never read", MEMIF_MSG_ACK, 1},
};

/* SEC-22: the worker waits for none of them, neither while the peer is there nor when it goes. */
START_TEST(descriptors_that_close_slowly)
{
    struct io_port *io = peer_port("role=server", 1514);
    struct memif_msg msg = {.init = {.version = MEMIF_VERSION}};
    struct peer p = peer_new();
    time_t begin = time(NULL);
    struct lingering l;
    peer_begin(&p, io);
    if (lingerings[_i].type == MEMIF_MSG_ADD_RING || lingerings[_i].type == MEMIF_MSG_ADD_REGION)
        ck_assert(peer_say(&p, io, MEMIF_MSG_INIT, msg, -1));
    if (lingerings[_i].type == MEMIF_MSG_ADD_RING) {
        msg = (struct memif_msg){.add_region = {.size = PEER_REGION}};
        ck_assert(peer_say(&p, io, MEMIF_MSG_ADD_REGION, msg, p.region_fd));
    }
    say_lingering(&p, io, lingerings[_i].type, &l, lingerings[_i].n);
    if (lingerings[_i].type == MEMIF_MSG_ACK)
        io->ops->service(io, 3000000000); /* the peer has been too slow */
    peer_close(&p);
    io->ops->service(io, 0);
    ck_assert_msg(time(NULL) - begin < 20, "%s", lingerings[_i].fact);
    p = peer_new();
    ck_assert(peer_connect(&p, io));
    peer_close(&p);
    io->ops->close(io);
    ck_assert_msg(time(NULL) - begin < 20, "%s", lingerings[_i].fact);
    close(l.peer);
    ck_assert(foreign_settle(10000));
}
END_TEST

static const struct {
    const char *fact;
    enum memif_msg_type type; /* message that it comes with */
    bool wrapped, second, watched;
} selves[] = {
    {"in the place of an event", MEMIF_MSG_ADD_RING, false, false, false},
    {"where nothing was asked for", MEMIF_MSG_INIT, false, false, false},
    {"in the place of memory", MEMIF_MSG_ADD_REGION, false, false, false},
    {"after another one", MEMIF_MSG_INIT, false, true, false},
    {"within another one", MEMIF_MSG_ADD_RING, true, false, false},
    {"within what may hold others", MEMIF_MSG_ADD_RING, false, false, true},
};

/* Put a descriptor into a unix socket, of which the other end is closed. Returns the one in which
 * it lives. */
static int wrap(int fd)
{
    struct memif_msg msg = {0};
    int ends[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    ck_assert_int_eq(memif_sock_send(ends[0], &msg, fd), 0);
    close(ends[0]);
    return ends[1];
}

/* Send a message with an event and, after it, this descriptor. */
static bool pass_next(int sock, const struct memif_msg *msg, int fd)
{
    union {
        struct cmsghdr align;
        char octets[CMSG_SPACE(2 * sizeof(int))];
    } control = {0};
    struct memif_msg copy = *msg;
    struct iovec iov = {.iov_base = &copy, .iov_len = sizeof(copy)};
    struct msghdr mh = {.msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = control.octets,
                        .msg_controllen = sizeof(control.octets)};
    int both[2] = {eventfd(0, EFD_CLOEXEC), fd};
    struct cmsghdr *cm = CMSG_FIRSTHDR(&mh);
    cm->cmsg_level = SOL_SOCKET;
    cm->cmsg_type = SCM_RIGHTS;
    cm->cmsg_len = CMSG_LEN(sizeof(both));
    memcpy(CMSG_DATA(cm), both, sizeof(both));
    bool sent = sendmsg(sock, &mh, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
    close(both[0]);
    close(both[1]);
    return sent;
}

/* An epoll set with a descriptor in it: like a ring of io_uring, it is neither a socket nor an
 * event. */
static int watch(int fd)
{
    struct epoll_event ev = {.events = EPOLLIN};
    int set = epoll_create1(0);
    ck_assert_int_ge(set, 0);
    ck_assert_int_eq(epoll_ctl(set, EPOLL_CTL_ADD, fd, &ev), 0);
    return set;
}

/* SEC-22: the end of a client that dies after queueing its own socket, after one whose close takes
 * for ever, is never seen. So such a client must not get the port. */
START_TEST(a_peer_leaves_its_own_socket)
{
    struct io_port *io = peer_port("role=server", 1514);
    struct memif_msg msg = {.init = {.version = MEMIF_VERSION}};
    enum memif_msg_type type = selves[_i].type;
    struct peer p = peer_new();
    peer_begin(&p, io);
    struct lingering l = {.fd = -1, .peer = -1};
    if (type != MEMIF_MSG_INIT) { /* later connections wait for the lingering one */
        int none;
        l = lingering_new(60);
        msg.type = MEMIF_MSG_INIT;
        ck_assert_int_eq(memif_sock_send(p.sock, &msg, l.fd), 0);
        close(l.fd);
        io->ops->service(io, 0);
        ck_assert_int_eq(memif_sock_recv(p.sock, &p.last, &none), 0);
    }
    if (type == MEMIF_MSG_ADD_RING) {
        msg = (struct memif_msg){.add_region = {.size = PEER_REGION}};
        ck_assert(peer_say(&p, io, MEMIF_MSG_ADD_REGION, msg, p.region_fd));
    }
    if (type == MEMIF_MSG_ADD_REGION)
        msg = (struct memif_msg){.add_region = {.size = PEER_REGION}};
    if (type == MEMIF_MSG_ADD_RING)
        msg = (struct memif_msg){.add_ring = {.flags = MEMIF_ADD_RING_C2S, .log2_size = 3}};
    int self = selves[_i].wrapped ? wrap(p.sock) : selves[_i].watched ? watch(p.sock) : dup(p.sock);
    msg.type = (uint16_t)type;
    if (selves[_i].second) {
        ck_assert(pass_next(p.sock, &msg, self));
        io->ops->service(io, 0);
        self = -1;
    } else {
        (void)peer_say(&p, io, type, msg, self);
    }
    struct memif_counters c = peer_counters(io);
    ck_assert_msg(c.reason[MEMIF_HOLDER] + c.reason[MEMIF_REGION] + c.reason[MEMIF_UNSEALED] == 1,
                  "%s", selves[_i].fact);
    if (self >= 0)
        close(self);
    peer_close(&p);
    io->ops->service(io, 0);
    struct peer good = peer_new();
    ck_assert_msg(peer_connect(&good, io), "%s: the port stays taken", selves[_i].fact);
    peer_close(&good);
    io->ops->close(io);
    if (l.peer >= 0)
        close(l.peer);
    ck_assert(foreign_settle(20000));
}
END_TEST

/* A peer that has left too many of them is not read until they are closed. */
START_TEST(no_more_descriptors_that_close_slowly)
{
    struct io_port *io = peer_port("role=server", 1514);
    struct lingering l[FOREIGN_WAITING + 2];
    struct peer p;
    unsigned n = 0;
    for (; peer_counters(io).refused == 0; n++) {
        ck_assert_uint_lt(n, FOREIGN_WAITING + 2);
        p = peer_new();
        p.sock = memif_sock_connect(peer_path());
        say_lingering(&p, io, MEMIF_MSG_INIT, &l[n], 1);
        peer_close(&p);
        io->ops->service(io, 0);
    }
    ck_assert_uint_ge(n, FOREIGN_WAITING / 2);
    while (n-- > 0)
        close(l[n].peer);
    ck_assert(foreign_settle(20000));
    p = peer_new();
    ck_assert(peer_connect(&p, io));
    peer_close(&p);
    io->ops->close(io);
}
END_TEST

START_TEST(short_and_unknown_messages_end_the_connection)
{
    struct io_port *io = peer_port("role=server", 1514);
    struct memif_msg msg = {.type = 77};
    for (int i = 0; i < 2; i++) {
        int sock = memif_sock_connect(peer_path());
        io->ops->service(io, 0);
        ck_assert_int_gt(send(sock, &msg, i ? sizeof(msg) : 10, 0), 0);
        io->ops->service(io, 0);
        ck_assert_uint_eq(peer_counters(io).reason[MEMIF_MESSAGE], i + 1);
        close(sock);
    }
    io->ops->close(io);
}
END_TEST

START_TEST(messages_after_the_handshake_end_the_connection)
{
    struct io_port *io = peer_port("role=server", 1514);
    struct peer p = peer_new();
    struct memif_msg msg = {0};
    ck_assert(peer_connect(&p, io));
    ck_assert(!peer_say(&p, io, MEMIF_MSG_INIT, msg, -1));
    ck_assert(!peer_is_up(io));
    ck_assert_uint_eq(peer_counters(io).reason[MEMIF_MESSAGE], 1);
    peer_close(&p);
    io->ops->close(io);
}
END_TEST

START_TEST(silent_client_is_dropped_in_time)
{
    struct io_port *io = peer_port("role=server", 1514);
    int sock = memif_sock_connect(peer_path());
    io->ops->service(io, 1000);
    io->ops->service(io, 1000000000);
    ck_assert_uint_eq(peer_counters(io).reason[MEMIF_TIMEOUT], 0);
    io->ops->service(io, 3000000000);
    ck_assert_uint_eq(peer_counters(io).reason[MEMIF_TIMEOUT], 1);
    close(sock);
    io->ops->close(io);
}
END_TEST

START_TEST(second_client_is_refused_while_one_is_there)
{
    struct io_port *io = peer_port("role=server", 1514);
    struct peer p = peer_new();
    struct memif_msg msg;
    int fd;
    ck_assert(peer_connect(&p, io));
    int sock = memif_sock_connect(peer_path());
    io->ops->service(io, 0);
    ck_assert_int_eq(memif_sock_recv(sock, &msg, &fd), 0);
    ck_assert_uint_eq(msg.type, MEMIF_MSG_DISCONNECT);
    ck_assert(peer_is_up(io));
    ck_assert_uint_eq(peer_counters(io).refused, 1);
    close(sock);
    peer_close(&p);
    io->ops->close(io);
}
END_TEST

/* Answers of a server by hand to a client port. */
static const struct {
    const char *fact;
    uint16_t type;
    uint16_t version;
    uint8_t log2;
    enum memif_reason reason;
} servers[] = {
    {"HELLO of a later version", MEMIF_MSG_HELLO, 0x0300, 10, MEMIF_PEER_VERSION},
    {"HELLO with rings of one slot", MEMIF_MSG_HELLO, MEMIF_VERSION, 0, MEMIF_RING},
    {"ACK before HELLO", MEMIF_MSG_ACK, 0, 0, MEMIF_MESSAGE},
    {"CONNECTED before anything was asked", MEMIF_MSG_CONNECTED, 0, 0, MEMIF_MESSAGE},
    {"DISCONNECT", MEMIF_MSG_DISCONNECT, 0, 0, MEMIF_GOODBYE},
};

START_TEST(client_survives_wrong_server)
{
    int listener = memif_sock_listen(peer_path());
    struct io_port *io = peer_port("role=client", 1514);
    struct memif_msg msg = {.type = servers[_i].type};
    ck_assert_int_ge(listener, 0);
    io->ops->service(io, 0);
    int sock = memif_sock_accept(listener);
    ck_assert_int_ge(sock, 0);
    if (msg.type == MEMIF_MSG_HELLO) {
        msg.hello.version_min = msg.hello.version_max = servers[_i].version;
        msg.hello.log2_ring_max = servers[_i].log2;
    }
    if (msg.type == MEMIF_MSG_DISCONNECT)
        memcpy(msg.disconnect.text, "bye\033[2J", sizeof("bye\033[2J"));
    ck_assert_int_eq(memif_sock_send(sock, &msg, -1), 0);
    io->ops->service(io, 0);
    ck_assert_msg(peer_counters(io).reason[servers[_i].reason] == 1, "%s", servers[_i].fact);
    if (msg.type == MEMIF_MSG_DISCONNECT) /* for logs: no control characters of a terminal */
        ck_assert_str_eq(peer_counters(io).text, "bye?[2J");
    close(sock);
    close(listener);
    io->ops->close(io);
}
END_TEST

/* Buffers of 2048 octets: a frame of 4286 takes more of them than the rings have. */
static const struct {
    const char *client;
    const char *name; /* of the server */
    uint8_t log2;     /* ... and its limit */
    bool good;
} small_rings[] = {
    {"buffer=2048", "", 1, false},
    {"buffer=2048", "", 2, true},
    {"log2_ring_size=1", "DPDK 22.11", 10, false},
    {"log2_ring_size=2", "DPDK 22.11", 10, true},
    {"buffer=4352", "", 1, true},
    {"id=0", "", 1, true}, /* the default: a buffer, a frame */
};

START_TEST(rings_hold_a_frame_or_there_is_no_link)
{
    char args[64];
    int listener = memif_sock_listen(peer_path());
    struct memif_msg msg = {.type = MEMIF_MSG_HELLO};
    struct io_link link;
    snprintf(args, sizeof(args), "role=client,%s", small_rings[_i].client);
    struct io_port *io = peer_port(args, 4286);
    io->ops->service(io, 0);
    int sock = memif_sock_accept(listener);
    ck_assert_int_ge(sock, 0);
    msg.hello.version_min = msg.hello.version_max = MEMIF_VERSION;
    msg.hello.log2_ring_max = small_rings[_i].log2;
    snprintf(msg.hello.name, sizeof(msg.hello.name), "%s", small_rings[_i].name);
    ck_assert_int_eq(memif_sock_send(sock, &msg, -1), 0);
    io->ops->service(io, 0);
    ck_assert_uint_eq(peer_counters(io).reason[MEMIF_SMALL], !small_rings[_i].good);
    io->ops->link(io, &link);
    if (!small_rings[_i].good)
        ck_assert_str_eq(link.why, memif_reason_name(MEMIF_SMALL));
    close(sock);
    close(listener);
    io->ops->close(io);
}
END_TEST

START_TEST(server_can_not_skip_the_rings)
{
    int listener = memif_sock_listen(peer_path());
    struct io_port *io = peer_port("role=client", 1514);
    struct memif_msg msg = {
        .type = MEMIF_MSG_HELLO,
        .hello = {.version_min = MEMIF_VERSION, .version_max = MEMIF_VERSION, .log2_ring_max = 10}};
    io->ops->service(io, 0);
    int sock = memif_sock_accept(listener);
    ck_assert_int_ge(sock, 0);
    ck_assert_int_eq(memif_sock_send(sock, &msg, -1), 0);
    io->ops->service(io, 0);
    msg = (struct memif_msg){.type = MEMIF_MSG_CONNECTED};
    ck_assert_int_eq(memif_sock_send(sock, &msg, -1), 0);
    io->ops->service(io, 0);
    ck_assert(!peer_is_up(io));
    ck_assert_uint_eq(peer_counters(io).reason[MEMIF_MESSAGE], 1);
    close(sock);
    close(listener);
    io->ops->close(io);
}
END_TEST

/* SHM-16: the program has closed all descriptors and opened others. The end of the connection
 * neither writes to nor closes the one that has the socket's number. */
START_TEST(a_stranger_with_the_number_of_the_socket)
{
    const struct memif_config cfg = {.server = true, .log2_ring = 4, .workers = 1};
    struct memif_conn c;
    int pair[2], stranger[2];
    char octet;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, stranger), 0);
    memif_conn_start(&c, &cfg, pair[0], 0);
    c.rx.event = stranger[0];
    ck_assert_int_eq(dup2(stranger[0], pair[0]), pair[0]);
    memif_conn_end(&c, MEMIF_OK);
    memif_conn_free(&c);
    ck_assert_int_ge(fcntl(pair[0], F_GETFD), 0);
    ck_assert_int_ge(fcntl(stranger[0], F_GETFD), 0);
    ck_assert_int_lt(recv(stranger[1], &octet, 1, MSG_DONTWAIT), 0);
    for (unsigned i = 0; i < 2; i++) {
        close(pair[i]);
        close(stranger[i]);
    }
}
END_TEST

START_TEST(reasons_have_names)
{
    for (int i = 0; i < MEMIF_REASONS; i++) {
        ck_assert_ptr_nonnull(memif_reason_name((enum memif_reason)i));
        for (int k = 0; k < i; k++)
            ck_assert_str_ne(memif_reason_name((enum memif_reason)i),
                             memif_reason_name((enum memif_reason)k));
    }
    ck_assert_str_eq(memif_reason_name(MEMIF_REASONS), "unknown");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("memif_conn");

    tcase_add_loop_test(t, server_survives_wrong_client, 0, sizeof(wrongs) / sizeof(wrongs[0]));
    tcase_add_test(t, a_ring_is_told_once);
    tcase_add_test(t, descriptors_do_not_pile_up);
    tcase_add_loop_test(t, descriptors_that_close_slowly, 0,
                        sizeof(lingerings) / sizeof(lingerings[0]));
    tcase_add_loop_test(t, a_peer_leaves_its_own_socket, 0, sizeof(selves) / sizeof(selves[0]));
    tcase_add_test(t, no_more_descriptors_that_close_slowly);
    tcase_add_test(t, server_can_not_skip_the_rings);
    tcase_add_test(t, short_and_unknown_messages_end_the_connection);
    tcase_add_test(t, messages_after_the_handshake_end_the_connection);
    tcase_add_test(t, silent_client_is_dropped_in_time);
    tcase_add_test(t, second_client_is_refused_while_one_is_there);
    tcase_add_loop_test(t, client_survives_wrong_server, 0, sizeof(servers) / sizeof(servers[0]));
    tcase_add_loop_test(t, rings_hold_a_frame_or_there_is_no_link, 0,
                        sizeof(small_rings) / sizeof(small_rings[0]));
    tcase_add_test(t, a_stranger_with_the_number_of_the_socket);
    tcase_add_test(t, reasons_have_names);
    return peer_main("memif_conn", t);
}
