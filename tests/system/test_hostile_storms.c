/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SHM-12 beside a client that works: a hostile client holds 30,000 queue pairs ($STORM_QPS, if it
 * is set) and makes the daemon look for them without a pause, by requests, and by frames and
 * changes of the interface. Meanwhile another client on the same worker writes 64 octets, again and
 * again. The time of a WRITE is printed and bounded, and so is the number of queue pairs that the
 * worker visits.
 *
 * The machine may be busy, so the victim is watched for several short times, in one of which it
 * must have been served well.
 */
#include <errno.h>
#include <linux/if_ether.h>
#include <net/if_arp.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <time.h>

#include "hostile_rig.h"
#include "iface.h"
#include "ipc.h"
#include "unit.h"

#define QPS_DEFAULT 30000u
#define PER_CONTEXT 16000u
#define NEIGHBOURS  50u /* that the hostile queue pairs send to, and as many others */
#define OCTETS      64u
#define WRITES      300u /* in a time that the victim is watched for */
#define WRITE_NS    200000u
#define TOO_LONG_NS 1000000000u /* for so many */
#define WATCHES     3u
#define WATCH_MS    10000u /* then no more such times */
#define STORM_MIN   10u    /* requests in such a time, or it was no storm */
#define P99_MS                                                                                     \
    20 /* what the victim may wait: a walk that makes congestion control anew takes 40             \
        */

/* The state of the hostile client, and its counts. */
static struct shared {
    _Atomic unsigned held; /* queue pairs */
    _Atomic unsigned done; /* requests or frames of the storm */
} * shared;

static unsigned nqps; /* the hostile client's */

static uint64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- the hostile client's queue pairs ---- */

static const char *hostile_device = "urn0";

/* From 10.0.0.1 or 10.0.0.3, in turn; half of them to one neighbour, the others to many. */
static void to_rtr(struct urnic_qp *qp, unsigned i, const uint16_t sgid[2])
{
    struct urnic_qp_attr attr = {
        .qp_state = URNIC_QPS_INIT,
        .port_num = 1,
        .path_mtu = URNIC_MTU_1024,
        .dest_qp_num = 17 + i,
        .ah_attr = {.dgid = {[10] = 0xFF,
                             0xFF,
                             10,
                             0,
                             0,
                             (uint8_t)(100 + i / 2 % 2 * (i / 4 % NEIGHBOURS))},
                    .sgid_index = sgid[i % 2],
                    .dmac = {2, 0, 0, 0, 0, 1}},
    };
    ck_assert_int_eq(urnic_modify_qp(qp, &attr,
                                     URNIC_QP_STATE | URNIC_QP_PKEY_INDEX | URNIC_QP_PORT |
                                         URNIC_QP_ACCESS_FLAGS),
                     0);
    attr.qp_state = URNIC_QPS_RTR;
    ck_assert_int_eq(urnic_modify_qp(qp, &attr,
                                     URNIC_QP_STATE | URNIC_QP_AV | URNIC_QP_PATH_MTU |
                                         URNIC_QP_DEST_QPN | URNIC_QP_RQ_PSN |
                                         URNIC_QP_MAX_DEST_RD_ATOMIC | URNIC_QP_MIN_RNR_TIMER),
                     0);
}

/* Where the device has this address, which ends so, in its table of GIDs. */
static uint16_t gid_of(struct urnic_context *ctx, uint8_t last)
{
    const uint8_t want[16] = {[10] = 0xFF, 0xFF, 10, 0, 0, last};
    struct urnic_gid gid;
    for (uint16_t i = 1; urnic_query_gid(ctx, i, &gid) == 0; i += 2) {
        if (memcmp(gid.raw, want, sizeof(want)) == 0)
            return i;
    }
    _exit(4);
}

/* One connection to the daemon that has queue pairs. */
struct hoard {
    struct urnic_context *ctx;
    struct urnic_pd *pd;
    struct urnic_cq *cq;
    uint16_t sgid[2];
};

static struct hoard hoard_open(void)
{
    struct hoard h;
    ck_assert_int_eq(urnic_open_at(rig.socket, hostile_device, -1, &h.ctx), 0);
    ck_assert_int_eq(urnic_alloc_pd(h.ctx, &h.pd), 0);
    ck_assert_int_eq(urnic_create_cq(h.ctx, 4, NULL, NULL, &h.cq), 0);
    h.sgid[0] = gid_of(h.ctx, 1);
    h.sgid[1] = gid_of(h.ctx, 3);
    return h;
}

static struct urnic_qp *hoard_qp(const struct hoard *h, unsigned i)
{
    struct urnic_qp_init_attr init = {
        .send_cq = h->cq,
        .recv_cq = h->cq,
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = URNIC_QPT_RC,
    };
    struct urnic_qp *qp;
    ck_assert_int_eq(urnic_create_qp(h->pd, &init, &qp), 0);
    to_rtr(qp, i, h->sgid);
    return qp;
}

static void holds(void)
{
    struct hoard h;
    for (unsigned i = 0; i < nqps; i++) {
        if (i % PER_CONTEXT == 0)
            h = hoard_open();
        (void)hoard_qp(&h, i);
        shared->held++;
    }
    for (;;)
        pause();
}

/* ---- storms: each runs in a process of its own until it is killed ---- */

static int storm_sock;

/* A request without a context, and its answer, whose status this returns. */
static int talk(const void *msg, size_t len, void *reply, size_t size)
{
    static _Alignas(16) uint8_t buf[IPC_MSG_MAX];
    struct ipc_hdr hdr;
    if (storm_sock == 0) {
        struct ipc_hello hello;
        storm_sock = raw_connect();
        ipc_hello_fill(&hello, 0);
        ck_assert_int_eq(ipc_send(storm_sock, &hello, sizeof(hello), NULL, 0, 0), 0);
        ck_assert_int_gt(recv(storm_sock, buf, sizeof(buf), 0), 0);
    }
    ck_assert_int_eq(ipc_send(storm_sock, msg, len, NULL, 0, 0), 0);
    ssize_t n = recv(storm_sock, buf, sizeof(buf), 0);
    ck_assert_int_ge(n, (ssize_t)sizeof(hdr));
    memcpy(&hdr, buf, sizeof(hdr));
    memcpy(reply, buf, (size_t)n < size ? (size_t)n : size);
    shared->done++;
    return hdr.status;
}

static void list(uint32_t pid)
{
    struct ipc_qp_filter m = {.hdr.type = IPC_QP_LIST, .device = "urn0", .pid = pid};
    struct ipc_qp_list head;
    for (;;) {
        ck_assert_int_eq(talk(&m, sizeof(m), &head, sizeof(head)), 0);
        m.first = head.next;
    }
}

static void lists_nothing(void)
{
    list(1); /* which is no client */
}

static void lists_all(void)
{
    list(0);
}

static int admin(const char *text, void *reply, size_t size)
{
    static _Alignas(8) uint8_t buf[1024];
    struct ipc_text *m = (void *)buf;
    *m = (struct ipc_text){.hdr.type = IPC_ADMIN, .len = (uint32_t)strlen(text)};
    memcpy(m->text, text, m->len);
    return talk(m, sizeof(*m) + m->len, reply, size);
}

static void lists_congestion_control(void)
{
    static _Alignas(8) char buf[IPC_MSG_MAX + 1];
    char text[128];
    for (unsigned first = 0;;) {
        snprintf(text, sizeof(text),
                 "{\"cmd\":\"cc\",\"device\":\"urn0\",\"qps\":true,\"first\":%u}", first);
        memset(buf, 0, sizeof(buf));
        ck_assert_int_eq(admin(text, buf, sizeof(buf) - 1), 0);
        const char *next = strstr(((struct ipc_text *)(void *)buf)->text, "\"next\":");
        first = next ? (unsigned)strtoul(next + 7, NULL, 10) : 0;
    }
}

static void sets_congestion_control(void)
{
    static const char *const texts[] = {
        "{\"cmd\":\"cc\",\"device\":\"urn0\",\"set\":\"fixed,rate=10G\"}",
        "{\"cmd\":\"cc\",\"device\":\"urn0\",\"set\":\"none\"}",
    };
    struct ipc_hdr hdr;
    for (unsigned i = 0;; i++)
        ck_assert_int_eq(admin(texts[i % 2], &hdr, sizeof(hdr)), 0);
}

/* 10.0.0.3, from which every other hostile queue pair sends. */
static struct ipc_addr_admin address(unsigned type)
{
    return (struct ipc_addr_admin){.hdr.type = (uint16_t)type,
                                   .device = "urn0",
                                   .ip = {[10] = 0xFF, 0xFF, 10, 0, 0, 3},
                                   .prefix_len = 24};
}

static void changes_addresses(void)
{
    const struct ipc_addr_admin del = address(IPC_ADDR_DEL), add = address(IPC_ADDR_ADD);
    struct ipc_hdr hdr;
    for (;;) {
        ck_assert_int_eq(talk(&del, sizeof(del), &hdr, sizeof(hdr)), 0);
        ck_assert_int_eq(talk(&add, sizeof(add), &hdr, sizeof(hdr)), 0);
    }
}

/* Before and after the storms, which may have left it or not. */
static void address_is_there(void)
{
    const struct ipc_addr_admin add = address(IPC_ADDR_ADD);
    struct ipc_hdr hdr;
    int rc = rig_request(&rig, &add, sizeof(add), -1, &hdr, sizeof(hdr));
    ck_assert(rc == 0 || rc == -EEXIST);
}

static void makes_and_destroys(void)
{
    struct hoard h = hoard_open();
    for (unsigned i = 0;; i++) {
        ck_assert_int_eq(urnic_destroy_qp(hoard_qp(&h, i)), 0);
        shared->done++;
    }
}

/* ARP of a host with this address, for this one. */
static void send_arp(int s, uint8_t sender, uint8_t target, unsigned mac)
{
    struct {
        struct ethhdr eth;
        uint16_t htype, ptype;
        uint8_t hlen, plen;
        uint16_t op;
        uint8_t sha[6], spa[4], tha[6], tpa[4], pad[18];
    } __attribute__((packed)) f = {
        .eth = {.h_dest = {255, 255, 255, 255, 255, 255}, .h_proto = htons(ETH_P_ARP)},
        .htype = htons(1),
        .ptype = htons(ETH_P_IP),
        .hlen = 6,
        .plen = 4,
        .op = htons(1),
        .sha = {2, [4] = 1, (uint8_t)mac},
        .spa = {10, 0, 0, sender},
        .tpa = {10, 0, 0, target},
    };
    memcpy(f.eth.h_source, f.sha, 6);
    if (send(s, &f, sizeof(f), 0) == (ssize_t)sizeof(f))
        shared->done++;
}

/* Each time another MAC: of the host that half of the hostile queue pairs send to, and of hosts
 * that no queue pair sends to, but that the device has heard of. */
static void announces(void)
{
    const uint8_t first = 100, others = 100 + NEIGHBOURS;
    int s = packet_socket("v1", 0);
    for (unsigned i = 0; i < NEIGHBOURS; i++)
        send_arp(s, (uint8_t)(others + i), 1, 0);
    for (unsigned n = 0;; n++) {
        uint8_t host = n % 2 ? first : (uint8_t)(others + n / 2 % NEIGHBOURS);
        send_arp(s, host, host, n);
        usleep(100);
    }
}

static void interface(unsigned long request, struct ifreq *ifr)
{
    static int s = -1;
    if (s < 0)
        s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    strcpy(ifr->ifr_name, "v0");
    ck_assert_int_eq(ioctl(s, request, ifr), 0);
    shared->done++;
    usleep(1000);
}

static void changes_mac(void)
{
    struct ifreq ifr = {.ifr_hwaddr = {.sa_family = ARPHRD_ETHER, .sa_data = {2, 0, 0, 0, 7}}};
    for (unsigned i = 0;; i++) {
        ifr.ifr_hwaddr.sa_data[5] = (char)(i % 2 + 1);
        interface(SIOCSIFHWADDR, &ifr);
    }
}

static void changes_mtu(void)
{
    struct ifreq ifr = {0};
    for (unsigned i = 0;; i++) {
        ifr.ifr_mtu = i % 2 ? 4200 : 1500;
        interface(SIOCSIFMTU, &ifr);
    }
}

/* ---- the victim ---- */

struct wait {
    double p50, p99, max; /* us */
    unsigned during;      /* part of the storm done meanwhile */
};

static int by_size(const void *one, const void *other)
{
    const uint64_t *p = one, *q = other;
    return (*p > *q) - (*p < *q);
}

/* A WRITE each 200 us, or when the one before is done. */
static struct wait watch(void)
{
    static uint64_t took[WRITES];
    uint64_t begin = now_ns(), due = begin;
    unsigned done = shared->done, n = 0;
    while (n < WRITES && now_ns() - begin < TOO_LONG_NS) {
        struct urnic_wc wc;
        while (now_ns() < due)
            sched_yield();
        uint64_t posted = now_ns();
        ck_assert_int_eq(end_post(&a, URNIC_WR_RDMA_WRITE, 0, OCTETS, b.mr->iova, b.mr->rkey, n),
                         0);
        end_wait(&a, &wc, 20000);
        ck_assert_msg(wc.status == URNIC_WC_SUCCESS, "status %s", urnic_wc_status_str(wc.status));
        took[n++] = now_ns() - posted;
        due = posted + WRITE_NS;
    }
    qsort(took, n, sizeof(took[0]), by_size);
    unsigned middle = n / 2, late = n - 1 - n / 100;
    return (struct wait){.p50 = (double)took[middle] / 1e3,
                         .p99 = (double)took[late] / 1e3,
                         .max = (double)took[n - 1] / 1e3,
                         .during = shared->done - done};
}

static void report(const char *what, const struct wait *w)
{
    printf("%-32s p50 %7.0f us, p99 %7.0f us, max %7.0f us; %u of them meanwhile\n", what, w->p50,
           w->p99, w->max, w->during);
}

/* One of several rounds must be good. A round with hardly any storm doesn't count. */
static void watch_often(const char *what, unsigned least, double most_ms)
{
    double bound = 1e3 * most_ms * patience_factor();
    uint64_t until = rig_now_ms() + WATCH_MS;
    struct wait best = {.p99 = 1e9};
    for (unsigned i = 0; i < WATCHES || (best.p99 > bound && rig_now_ms() < until); i++) {
        struct wait w = watch();
        if (w.during >= least && w.p99 < best.p99)
            best = w;
    }
    report(what, &best);
    ck_assert_msg(best.p99 <= bound, "%s: p99 %.0f us, at most %.0f", what, best.p99, bound);
}

static const char *const jobs[] = {"neigh", "follow", "addr", "list"};

/* A counter of all these jobs together. */
static uint64_t all_jobs(const char *name)
{
    char full[64];
    uint64_t n = 0;
    for (unsigned i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
        snprintf(full, sizeof(full), "%s_%s", jobs[i], name);
        n += counter("urn0", full);
    }
    return n;
}

/* Part by part a job visits as many queue pairs as its budget allows. A part ends at the budget, or
 * it is the last part of a request's or frame's work. Some jobs do their first part with the
 * request. */
static void storm_within(const char *what, void (*fn)(void), unsigned budget, double most_ms)
{
    uint64_t looks = all_jobs("visits"), over = all_jobs("over_budget"), most;
    shared->done = 0;
    pid_t pid = hostile(fn);
    for (uint64_t until = rig_now_ms() + 10000; shared->done == 0; usleep(1000))
        ck_assert_msg(rig_now_ms() < until, "%s: the storm doesn't begin", what);
    watch_often(what, STORM_MIN, most_ms);
    ck_assert_msg(waitpid(pid, NULL, WNOHANG) == 0, "%s: the storm has ended", what);
    finish(pid);
    looks = all_jobs("visits") - looks;
    over = all_jobs("over_budget") - over;
    most = budget * (over + 2 * (shared->done + 2)); /* some were served, and not counted here */
    ck_assert_msg(looks <= most, "%s: %llu queue pairs looked at, at most %llu", what,
                  (unsigned long long)looks, (unsigned long long)most);
}

static void storm(const char *what, void (*fn)(void), unsigned budget)
{
    storm_within(what, fn, budget, P99_MS);
}

/* All storms beside that many queue pairs. */
static void all_storms(void (*storms_of_it)(void))
{
    const char *most = getenv("STORM_QPS");
    nqps = most ? (unsigned)strtoul(most, NULL, 10) : QPS_DEFAULT;
    ck_assert_uint_gt(nqps, 0);
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(shared, MAP_FAILED);
    address_is_there();
    transfer(10);
    watch_often("no storm", 0, P99_MS);
    uint64_t start = rig_now_ms();
    pid_t pid = hostile(holds);
    for (uint64_t until = start + 200000; shared->held < nqps; usleep(1000)) {
        ck_assert_msg(rig_now_ms() < until, "%u queue pairs only", shared->held);
        ck_assert_int_eq(waitpid(pid, NULL, WNOHANG), 0);
    }
    printf("%u queue pairs, made in %llu ms\n", nqps, (unsigned long long)(rig_now_ms() - start));
    watch_often("no storm", 0, P99_MS);
    storms_of_it();
    finish(pid); /* and all its queue pairs go */
    watch_often("the hostile client ends", 0, P99_MS);
    transfer(10);
}

static void requests(void)
{
    storm("listing, nothing matches", lists_nothing, 1024);
    storm("listing, all match", lists_all, 1024);
    storm("listing of congestion control", lists_congestion_control, 1024);
    storm("setting congestion control", sets_congestion_control, 256);
    storm("addresses come and go", changes_addresses, 256);
    address_is_there();
    storm("queue pairs come and go", makes_and_destroys, 256); /* of the storm before */
    storm("queue pairs come and go", makes_and_destroys, 0);
}

START_TEST(storms)
{
    setup();
    all_storms(requests);
    settle("urn0", "contexts", 1);
    teardown();
}
END_TEST

/* The device on a kernel interface, and the hostile host at the other end of the cable. False: this
 * user can't have one, or the daemon is built without DPDK. */
static bool setup_interface(void)
{
    const char *const args[] = {
        "--device", "name=urn0,port=dpdk:net_af_packet0,iface=v0,addr=10.0.0.1/24", NULL};
    if (!getenv("STORM_INTERFACE") || geteuid() != 0 || unshare(CLONE_NEWNET) < 0)
        return false;
    sh("sysctl -qw net.ipv6.conf.default.disable_ipv6=1");
    sh("ip link add v0 mtu 4200 type veth peer name v1 mtu 4200 && ip link set v0 up && "
       "ip link set v1 up");
    rig_start(&rig, args);
    rig_await_link(&rig, "urn0");
    end_open(&a, &rig, "urn0", SIZE);
    end_open(&b, &rig, "urn0", SIZE);
    end_qp(&a, URNIC_QPT_RC);
    end_qp(&b, URNIC_QPT_RC);
    end_connect(&a, &b);
    return true;
}

static void frames_and_changes(void)
{
    storm("announcements of neighbours", announces, 256);
    storm("the interface's MTU changes", changes_mtu, 256);
    /* Frames to the MAC before are lost; 67 ms later they are sent again. */
    storm_within("the interface's MAC changes", changes_mac, 256, 150);
}

START_TEST(storms_on_an_interface)
{
    if (!setup_interface()) {
        printf("no storms of frames: they need root, network namespaces and DPDK\n");
        return;
    }
    all_storms(frames_and_changes);
    settle("urn0", "contexts", 2);
    teardown();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("hostile storms");
    TCase *t = tcase_create("storms");

    setvbuf(stdout, NULL, _IOLBF, 0);
    tcase_set_timeout(t, 300);
    tcase_add_test(t, storms);
    tcase_add_test(t, storms_on_an_interface);
    suite_add_tcase(s, t);
    return unit_run(s);
}
