/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Changes by tools while the daemon runs: emulated links, addresses, rules, congestion control.
 * Nothing else changes with them.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "client.h"
#include "daemon_rig.h"
#include "ipc.h"
#include "unit.h"

#define SIZE (1u << 20)

static struct rig rig;
static struct end a, b;

static void open_ends(void)
{
    end_open(&a, &rig, "urn0", SIZE);
    end_open(&b, &rig, "urn1", SIZE);
    end_qp(&a, URNIC_QPT_RC);
    end_qp(&b, URNIC_QPT_RC);
    end_connect(&a, &b);
}

static void up(const char *link)
{
    rig_start_pair(&rig, link);
    open_ends();
}

static void down(void)
{
    rig_close_pair(&rig, &a, &b);
}

static void write_all(struct end *from, const struct end *to, uint64_t wr_id)
{
    ck_assert_int_eq(
        end_post(from, URNIC_WR_RDMA_WRITE, 0, SIZE, to->mr->iova, to->mr->rkey, wr_id), 0);
    end_expect(from, URNIC_WC_SUCCESS, wr_id);
}

/* ---- links ---- */

static int set_link_of(const char *device, struct ipc_link_admin m)
{
    struct ipc_hdr reply;
    m.hdr.type = IPC_LINK_SET;
    strcpy(m.device, device);
    return rig_request(&rig, &m, sizeof(m), -1, &reply, sizeof(reply));
}

static int set_link(struct ipc_link_admin m)
{
    return set_link_of("urn1", m);
}

static const char *const what_links_do[] = {"link_lost", "link_reordered", "link_duplicated",
                                            "link_corrupted", "link_marked"};

/* Each fault is that of its field, at its rate, in the direction of its device; a field
 * that the mask doesn't name changes nothing. */
START_TEST(link_faults)
{
    const struct ipc_link_admin faults[] = {
        {.mask = IPC_LINK_LOSS, .loss_ppm = 50000, .corrupt_ppm = 1000000},
        {.mask = IPC_LINK_REORDER, .reorder_ppm = 50000, .loss_ppm = 1000000},
        {.mask = IPC_LINK_DUPLICATE, .duplicate_ppm = 50000, .loss_ppm = 1000000},
        {.mask = IPC_LINK_CORRUPT, .corrupt_ppm = 50000, .loss_ppm = 1000000},
        {.mask = IPC_LINK_ECN, .ecn_ppm = 50000, .loss_ppm = 1000000},
    };
    const struct ipc_link_admin off = {.mask = IPC_LINK_LOSS | IPC_LINK_REORDER |
                                               IPC_LINK_DUPLICATE | IPC_LINK_CORRUPT |
                                               IPC_LINK_ECN};
    up("");
    for (unsigned i = 0; i < 5; i++) {
        uint64_t before[2][5], sent = rig_counter(&rig, "urn1", "tx_packets");
        for (unsigned k = 0; k < 5; k++) {
            before[0][k] = rig_counter(&rig, "urn0", what_links_do[k]);
            before[1][k] = rig_counter(&rig, "urn1", what_links_do[k]);
        }
        ck_assert_int_eq(set_link(faults[i]), 0);
        write_all(&b, &a, i);
        ck_assert_int_eq(set_link(off), 0);
        sent = rig_counter(&rig, "urn1", "tx_packets") - sent;
        ck_assert_uint_ge(sent, SIZE / 4096);
        for (unsigned k = 0; k < 5; k++) {
            uint64_t theirs = rig_counter(&rig, "urn0", what_links_do[k]) - before[0][k];
            uint64_t ours = rig_counter(&rig, "urn1", what_links_do[k]) - before[1][k];
            ck_assert_msg(theirs == 0, "%s, fault %u: the other direction", what_links_do[k], i);
            if (k != i || i == 4) /* no queue, no marks */
                ck_assert_msg(ours == 0, "%s, fault %u", what_links_do[k], i);
            else
                ck_assert_msg(ours > 0 && ours < sent / 4, "%s: %llu of %llu", what_links_do[k],
                              (unsigned long long)ours, (unsigned long long)sent);
        }
    }
    down();
}
END_TEST

/* A full queue marks the requested part of packets, here all of them. */
START_TEST(link_marks)
{
    const char *args[] = {"--device",
                          // NOLINTNEXTLINE(bugprone-suspicious-missing-comma): it is one argument
                          "name=urn0,port=mem:L,rate=1G,queue=4M,ecn_kmin=4K,ecn_kmax=2M,"
                          "ecn_pmax=0.000001,cc=dcqcn,addr=10.0.0.1/24",
                          "--device", "name=urn1,port=mem:L,addr=10.0.0.2/24", NULL};
    uint64_t until = rig_now_ms() + 20000;
    rig_start(&rig, args);
    rig_await_link(&rig, "urn0");
    rig_await_link(&rig, "urn1");
    open_ends();
    ck_assert_int_eq(
        set_link_of("urn0", (struct ipc_link_admin){.mask = IPC_LINK_ECN, .ecn_ppm = 1000000}), 0);
    while (rig_counter(&rig, "urn0", "link_marked") < 50) {
        ck_assert_msg(rig_now_ms() < until, "nothing is marked");
        write_all(&a, &b, 1);
    }
    ck_assert_int_eq(set_link_of("urn0", (struct ipc_link_admin){.mask = IPC_LINK_ECN}), 0);
    uint64_t before = rig_counter(&rig, "urn0", "link_marked");
    write_all(&a, &b, 2);
    ck_assert_uint_eq(rig_counter(&rig, "urn0", "link_marked"), before);
    down();
}
END_TEST

START_TEST(rate)
{
    up("");
    ck_assert_int_eq(set_link((struct ipc_link_admin){.mask = IPC_LINK_RATE, .rate = 100000000}),
                     0);
    uint64_t begin = rig_now_ms();
    write_all(&b, &a, 1);
    ck_assert_uint_ge(rig_now_ms() - begin, SIZE * 8 / 100000 * 9 / 10); /* 84 ms */
    down();
}
END_TEST

/* ---- addresses ---- */

static void change_address(enum ipc_type type, uint8_t last)
{
    struct ipc_addr_admin m = {.hdr.type = (uint16_t)type,
                               .device = "urn0",
                               .ip = {[10] = 0xFF, 0xFF, 10, 0, 0, last},
                               .prefix_len = 24};
    struct ipc_hdr reply;
    ck_assert_int_eq(rig_request(&rig, &m, sizeof(m), -1, &reply, sizeof(reply)), 0);
}

static void take_event(struct end *e)
{
    struct urnic_async_event ev;
    ck_assert_int_eq(urnic_get_async_event(e->ctx, &ev), 0);
    ck_assert_int_eq(ev.type, URNIC_EVENT_GID_CHANGE);
    urnic_ack_async_event(&ev);
}

/* GID-04: one that came back in time has come back for good, however many went with it. */
START_TEST(addresses_come_back)
{
    const char *args[] = {"--workers", "1",
                          "--device",  "name=urn0,port=mem:L,addr=10.0.0.1/24,hold=300",
                          "--device",  "name=urn1,port=mem:L,addr=10.0.0.2/24",
                          NULL};
    const struct timespec hold = {.tv_nsec = 400000000};
    rig_start(&rig, args);
    rig_await_link(&rig, "urn0");
    rig_await_link(&rig, "urn1");
    open_ends();
    change_address(IPC_ADDR_ADD, 8);
    change_address(IPC_ADDR_ADD, 9);
    change_address(IPC_ADDR_DEL, 8);
    change_address(IPC_ADDR_DEL, 9);
    change_address(IPC_ADDR_DEL, 1);
    change_address(IPC_ADDR_ADD, 1);
    for (unsigned i = 0; i < 6; i++)
        take_event(&a);
    nanosleep(&hold, NULL);
    write_all(&a, &b, 1);
    /* GID-04: only the device's own clients get the event. */
    struct pollfd p = {.fd = urnic_async_fd(b.ctx), .events = POLLIN};
    ck_assert_int_eq(poll(&p, 1, 0), 0);
    down();
}
END_TEST

/* ARP for a removed address is not answered any more. (Its announcement must be lost: the other
 * side would believe it.) */
START_TEST(gone_addresses_are_silent)
{
    struct urnic_ah_attr attr = {.sgid_index = 3, .hop_limit = 1};
    struct urnic_ah *ah;
    up("");
    attr.dgid[10] = attr.dgid[11] = 0xFF;
    inet_pton(AF_INET, "10.0.0.8", attr.dgid + 12);
    change_address(IPC_ADDR_ADD, 8);
    ck_assert_int_eq(urnic_create_ah(b.pd, &attr, &ah), 0);
    ck_assert_int_eq(urnic_destroy_ah(ah), 0);
    uint64_t lost = rig_counter(&rig, "urn0", "link_lost"), until = rig_now_ms() + 5000;
    const struct ipc_link_admin all = {.mask = IPC_LINK_LOSS, .loss_ppm = 1000000};
    ck_assert_int_eq(set_link_of("urn0", all), 0);
    change_address(IPC_ADDR_ADD, 9);
    while (rig_counter(&rig, "urn0", "link_lost") == lost)
        ck_assert_uint_lt(rig_now_ms(), until);
    change_address(IPC_ADDR_DEL, 9);
    ck_assert_int_eq(set_link_of("urn0", (struct ipc_link_admin){.mask = IPC_LINK_LOSS}), 0);
    attr.dgid[15] = 9;
    ck_assert_int_lt(urnic_create_ah(b.pd, &attr, &ah), 0);
    down();
}
END_TEST

/* ---- JSON ---- */

static _Alignas(8) uint8_t answer_buf[IPC_MSG_MAX];

static int says(const char *json)
{
    static _Alignas(8) uint8_t buf[sizeof(struct ipc_text) + 256];
    struct ipc_text *text = (void *)buf;
    size_t len = strlen(json);
    *text = (struct ipc_text){.hdr.type = IPC_ADMIN, .len = (uint32_t)len};
    memcpy(text->text, json, len);
    memset(answer_buf, 0, sizeof(answer_buf));
    return rig_request(&rig, text, sizeof(*text) + len, -1, answer_buf, sizeof(answer_buf) - 1);
}

/* The number of times that it is in the last answer. */
static unsigned said(const char *what)
{
    const char *at = (const char *)answer_buf + sizeof(struct ipc_text);
    unsigned n = 0;
    while ((at = strstr(at, what)) != NULL) {
        at++;
        n++;
    }
    return n;
}

START_TEST(requests_in_json)
{
    up("");
    ck_assert_int_eq(says("{\"cmd\":\"config\"}"), 0);
    ck_assert_uint_eq(said("\"up\":true"), 2);
    ck_assert_int_eq(set_link((struct ipc_link_admin){.mask = IPC_LINK_UP}), 0);
    for (uint64_t until = rig_now_ms() + 5000; said("\"up\":false") == 0;) {
        ck_assert_uint_lt(rig_now_ms(), until);
        ck_assert_int_eq(says("{\"cmd\":\"config\"}"), 0);
    }
    ck_assert_int_eq(says("{\"cmd\":\"dance\"}"), -ENOTSUP);
    ck_assert_int_eq(says("{\"command\":\"config\"}"), -EBADMSG);
    ck_assert_int_eq(says("config"), -EBADMSG);
    ck_assert_int_eq(says("{\"cmd\":\"log-level\",\"level\":\"loud\"}"), -EINVAL);
    down();
}
END_TEST

/* Wrong rules are refused, and the rules before stay. */
START_TEST(wrong_rules)
{
    up("");
    ck_assert_int_eq(says("{\"cmd\":\"faults\",\"device\":\"urn0\",\"rules\":\"drop conn 9\"}"), 0);
    ck_assert_int_eq(says("{\"cmd\":\"faults\",\"device\":\"urn0\",\"rules\":\"drop it\"}"),
                     -EINVAL);
    ck_assert_int_eq(says("{\"cmd\":\"faults\",\"device\":\"urn0\"}"), 0);
    ck_assert_uint_eq(said("drop conn 9"), 1);
    ck_assert_int_eq(says("{\"cmd\":\"faults\",\"device\":\"urn7\"}"), -ENODEV);
    down();
}
END_TEST

/* CC-25: the answer has the requested queue pair, or all of the device's but the connection
 * manager's; one without a limit has no rate. */
START_TEST(congestion)
{
    char json[96];
    struct urnic_qp *first;
    up("");
    first = a.qp;
    end_qp(&a, URNIC_QPT_RC);
    ck_assert_int_eq(says("{\"cmd\":\"cc\",\"device\":\"urn0\",\"qps\":true}"), 0);
    ck_assert_uint_eq(said("\"qpn\":"), 2);
    ck_assert_uint_eq(said("\"rate\":null"), 2);
    snprintf(json, sizeof(json), "{\"cmd\":\"cc\",\"device\":\"urn0\",\"qpn\":%u}",
             urnic_qp_num(first));
    ck_assert_int_eq(says(json), 0);
    ck_assert_uint_eq(said("\"qpn\":"), 1);
    ck_assert_int_eq(says("{\"cmd\":\"cc\",\"device\":\"urn0\",\"qpn\":1234567}"), -ENOENT);
    ck_assert_int_eq(says("{\"cmd\":\"cc\",\"device\":\"urn7\"}"), -ENODEV);
    /* Of every device: a line each. */
    ck_assert_int_eq(says("{\"cmd\":\"cc\"}"), 0);
    ck_assert_uint_eq(said("}\n{"), 1);
    ck_assert_int_eq(urnic_destroy_qp(first), 0);
    down();
}
END_TEST

/* urnicd's log follows the new level. */
START_TEST(log_levels)
{
    static char log[65536];
    int fd = memfd_create("log", MFD_CLOEXEC), ours = dup(STDERR_FILENO);
    ck_assert_int_eq(dup2(fd, STDERR_FILENO), STDERR_FILENO);
    up("");
    ck_assert_int_eq(dup2(ours, STDERR_FILENO), STDERR_FILENO);
    ck_assert_int_eq(says("{\"cmd\":\"log-level\",\"level\":\"debug\"}"), 0);
    ck_assert_int_eq(says("{\"cmd\":\"dance\"}"), -ENOTSUP); /* the asking client, and the result */
    ck_assert_int_eq(says("{\"cmd\":\"log-level\",\"level\":\"warn\"}"), 0);
    ssize_t n = pread(fd, log, sizeof(log) - 1, 0);
    ck_assert_ptr_nonnull(strstr(log, "debug control: "));
    ck_assert_int_eq(says("{\"cmd\":\"dance\"}"), -ENOTSUP);
    ck_assert_int_eq(pread(fd, log, sizeof(log) - 1, n), 0);
    close(ours);
    close(fd);
    down();
}
END_TEST

static int asks(void *msg, size_t len, int fd, void *reply, size_t size)
{
    return (int)client_conn_raw(&a.ctx->conn, msg, len, &fd, fd >= 0, reply, size, NULL, NULL);
}

/* A connection has one capture at a time: another one is refused and leaves it alone, and only its
 * own handle stops it. A channel in use stays. */
START_TEST(captures_one_at_a_time)
{
    int fd = memfd_create("capture", MFD_CLOEXEC);
    struct ipc_capture m = {.hdr.type = IPC_CAPTURE_START, .device = "urn0"};
    struct ipc_handle first, channel = {.hdr.type = IPC_CHANNEL_DESTROY};
    struct ipc_captured result;
    up("");
    ck_assert_int_gt(asks(&m, sizeof(m), fd, &first, sizeof(first)), 0);
    write_all(&a, &b, 1);
    ck_assert_int_eq(asks(&m, sizeof(m), fd, &result, sizeof(result)), -EBUSY);
    struct ipc_handle stop = {.hdr.type = IPC_CAPTURE_STOP, .handle = first.handle + 1};
    ck_assert_int_eq(asks(&stop, sizeof(stop), -1, &result, sizeof(result)), -EINVAL);
    stop.handle--;
    ck_assert_int_gt(asks(&stop, sizeof(stop), -1, &result, sizeof(result)), 0);
    ck_assert_uint_ge(result.packets, SIZE / 4096);
    ck_assert_int_eq(asks(&stop, sizeof(stop), -1, &result, sizeof(result)), -EINVAL);
    channel.handle = ((struct client_channel *)a.channel)->handle;
    ck_assert_int_eq(asks(&channel, sizeof(channel), -1, &result, sizeof(result)), -EBUSY);
    close(fd);
    down();
}
END_TEST

static uint64_t rate_of(const struct urnic_qp *qp)
{
    const struct ipc_qp_filter m = {
        .hdr.type = IPC_QP_LIST, .device = "urn0", .qpn = urnic_qp_num(qp)};
    const struct ipc_qp_list *list = (const void *)answer_buf;
    ck_assert_int_eq(rig_request(&rig, &m, sizeof(m), -1, answer_buf, sizeof(answer_buf)), 0);
    ck_assert_uint_eq(list->count, 1);
    return list->qp[0].cc_rate;
}

/* QP-15: the smaller of rate limit and congestion control's rate holds; without the limit, or after
 * RESET, congestion control's alone. */
START_TEST(rate_limits)
{
    static const struct {
        const char *cc;
        uint32_t kbps;
        uint64_t limited, free; /* bit/s; 0 = not limited */
    } cases[] = {
        {"none", 10000, 10000000, 0},
        {"fixed,rate=100M", 10000, 10000000, 100000000},
        {"fixed,rate=100M", 1000000, 100000000, 100000000},
    };
    const struct urnic_qp_attr reset = {.qp_state = URNIC_QPS_RESET};
    up("");
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct urnic_qp_init_attr init = {.send_cq = a.cq,
                                          .recv_cq = a.cq,
                                          .cap = {.max_send_wr = 1, .max_recv_wr = 1},
                                          .qp_type = URNIC_QPT_RC,
                                          .cc = cases[i].cc};
        struct urnic_qp_attr attr = {.rate_limit = cases[i].kbps};

        ck_assert_int_eq(urnic_destroy_qp(a.qp), 0);
        ck_assert_int_eq(urnic_destroy_qp(b.qp), 0);
        ck_assert_int_eq(urnic_create_qp(a.pd, &init, &a.qp), 0);
        end_qp(&b, URNIC_QPT_RC);
        end_connect(&a, &b);
        uint64_t before = rate_of(a.qp);
        ck_assert(cases[i].free == 0 || before == cases[i].free);
        ck_assert_int_eq(urnic_modify_qp(a.qp, &attr, URNIC_QP_RATE_LIMIT), 0);
        ck_assert_uint_eq(rate_of(a.qp), cases[i].limited);
        attr.rate_limit = 0;
        ck_assert_int_eq(urnic_modify_qp(a.qp, &attr, URNIC_QP_RATE_LIMIT), 0);
        ck_assert_uint_eq(rate_of(a.qp), before);
        attr.rate_limit = cases[i].kbps;
        ck_assert_int_eq(urnic_modify_qp(a.qp, &attr, URNIC_QP_RATE_LIMIT), 0);
        ck_assert_int_eq(urnic_modify_qp(a.qp, &reset, URNIC_QP_STATE), 0);
        ck_assert_int_eq(urnic_modify_qp(b.qp, &reset, URNIC_QP_STATE), 0);
        end_connect(&a, &b);
        ck_assert_uint_eq(rate_of(a.qp), before);
    }
    down();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("steering");
    TCase *t = tcase_create("steering");

    tcase_set_timeout(t, 60);
    tcase_add_test(t, link_faults);
    tcase_add_test(t, link_marks);
    tcase_add_test(t, rate);
    tcase_add_test(t, addresses_come_back);
    tcase_add_test(t, gone_addresses_are_silent);
    tcase_add_test(t, requests_in_json);
    tcase_add_test(t, wrong_rules);
    tcase_add_test(t, log_levels);
    tcase_add_test(t, congestion);
    tcase_add_test(t, rate_limits);
    tcase_add_test(t, captures_one_at_a_time);
    suite_add_tcase(s, t);
    return unit_run(s);
}
