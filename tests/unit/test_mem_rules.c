/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The rule language on the emulated link: arriving frames, their times and order.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "frames.h"
#include "mem_link.h"
#include "unit.h"

static struct io_port *port[2];
static struct mem_link *the_link;

static void open_seeded(const char *spec, const char *rules)
{
    struct fault_error err;
    for (unsigned i = 0; i < 2; i++)
        ck_assert_int_eq(io_open(spec, NULL, &port[i], NULL, 0), 0);
    the_link = mem_link_get("rules");
    ck_assert_msg(!mem_link_rules_set(the_link, rules, strlen(rules), &err), "%u:%u: %s", err.line,
                  err.column, err.text);
}

static void open_with(const char *rules)
{
    open_seeded("mem:rules", rules);
}

static void close_all(void)
{
    for (unsigned i = 0; i < 2; i++)
        port[i]->ops->close(port[i]);
    mem_link_put(the_link);
}

static void send_psn(unsigned from, uint32_t psn, uint32_t payload, uint64_t now)
{
    struct io_slot slot;
    struct wire_pkt p = frame_pkt(FRAME_V4, WIRE_OPCODE(WIRE_RC, WIRE_SEND_ONLY), payload);
    p.psn = psn;
    if (from) {
        p.sip = wire_addr_v4(0xC0000202u);
        p.dip = wire_addr_v4(0xC0000201u);
        p.dqpn = 0xDEF;
    }
    ck_assert_uint_eq(port[from]->ops->tx_reserve(port[from], &slot, 1, now), 1);
    slot.len = (uint32_t)frame_make(slot.data, slot.cap, &p);
    port[from]->ops->tx_commit(port[from], &slot, 1, now);
}

/* The frames that port `at` takes at `now`, as text: PSNs, C for a CNP, ? for a frame that isn't
 * good RoCE. */
static const char *arrivals(unsigned at, uint64_t now)
{
    static char text[256];
    struct io_frame frames[IO_BURST_MAX];
    struct wire_pkt p;
    size_t n = 0;
    unsigned k = port[at]->ops->rx_peek(port[at], frames, IO_BURST_MAX, now);
    text[0] = 0;
    for (unsigned i = 0; i < k && n < sizeof(text) - 16; i++) {
        enum wire_verdict v = wire_parse(frames[i].data, frames[i].len, 0, &p);
        n += (size_t)(v                             ? sprintf(text + n, "? ")
                      : p.opcode == WIRE_OPCODE_CNP ? sprintf(text + n, "C ")
                                                    : sprintf(text + n, "%u ", p.psn));
    }
    port[at]->ops->rx_release(port[at], k);
    return text;
}

START_TEST(rules_drop_and_change_frames)
{
    open_with("drop a->b psn 2 first-tx\n"
              "corrupt payload 1 psn 3\n"
              "set psn +100 psn 4\n"
              "duplicate 2 psn 5\n"
              "trim 60 psn 6\n");
    for (uint32_t psn = 1; psn <= 6; psn++)
        send_psn(0, psn, 8, 10);
    send_psn(0, 2, 8, 10);
    ck_assert_str_eq(arrivals(1, 10), "1 ? 104 5 5 5 ? 2 ");
    send_psn(1, 2, 8, 10);
    ck_assert_str_eq(arrivals(0, 10), "2 ");

    struct mem_link_stats s;
    struct fault_rule_stats r;
    char text[20];
    mem_link_stats(the_link, 0, 10, &s);
    ck_assert_uint_eq(s.lost[MEM_LINK_R_RULE], 1);
    ck_assert_uint_eq(s.duplicated, 2);
    ck_assert(mem_link_rules_get(the_link, 3, &r, text, sizeof(text)));
    ck_assert_str_eq(text, "duplicate 2 psn 5");
    ck_assert(r.matched == 1 && r.done == 1 && r.failed == 0);
    ck_assert(!mem_link_rules_get(the_link, 5, &r, NULL, 0));
    close_all();
}
END_TEST

START_TEST(rules_delay_and_reorder_frames)
{
    open_with("delay 5us psn 1\nreorder 2 within 1ms psn 3\nreorder 2 within 50us psn 10");
    for (uint32_t psn = 1; psn <= 6; psn++)
        send_psn(0, psn, 8, 10);
    ck_assert_str_eq(arrivals(1, 10), "2 4 5 3 6 ");
    ck_assert_str_eq(arrivals(1, 5009), "");
    ck_assert_str_eq(arrivals(1, 5010), "1 ");
    send_psn(0, 10, 8, 10000);
    send_psn(1, 11, 8, 10000); /* the other way doesn't count */
    send_psn(1, 12, 8, 10000);
    send_psn(0, 13, 8, 10000);
    ck_assert_str_eq(arrivals(1, 59999), "13 ");
    ck_assert_str_eq(arrivals(1, 60000), "10 ");
    close_all();
}
END_TEST

START_TEST(rules_inject_frames)
{
    open_with("inject cnp psn 2\ninject cnp forth psn 3");
    send_psn(1, 1, 8, 10); /* its source port shows which queue pair answers */
    send_psn(0, 1, 8, 10);
    ck_assert_str_eq(arrivals(0, 10), "1 ");
    ck_assert_str_eq(arrivals(1, 10), "1 ");
    send_psn(0, 2, 8, 20);
    ck_assert_str_eq(arrivals(0, 20), "C ");
    ck_assert_str_eq(arrivals(1, 20), "2 ");
    send_psn(0, 3, 8, 30);
    ck_assert_str_eq(arrivals(0, 30), "");
    ck_assert_str_eq(arrivals(1, 30), "C 3 ");
    struct mem_link_stats s;
    mem_link_stats(the_link, MEM_LINK_ALL, 30, &s);
    ck_assert_uint_eq(s.injected, 2);
    close_all();
}
END_TEST

START_TEST(the_link_seed_is_the_rules_seed)
{
    static const char *const specs[] = {"mem:rules,seed=7", "mem:rules,seed=7", "mem:rules,seed=8"};
    char first[256];
    for (unsigned k = 0; k < 3; k++) {
        open_seeded(specs[k], "drop prob 50%");
        for (uint32_t psn = 0; psn < 30; psn++)
            send_psn(0, psn, 8, 10);
        const char *got = arrivals(1, 10);
        if (k == 0)
            strcpy(first, got);
        ck_assert_int_eq(!strcmp(got, first), k < 2);
        close_all();
    }
}
END_TEST

START_TEST(rules_come_from_a_file)
{
    char name[] = "/tmp/test_mem_rules.XXXXXX", spec[128], err[256], want[256];
    struct io_port *again;
    int fd = mkstemp(name);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, "# one\ndrop psn 1\n", 17), 17);
    snprintf(spec, sizeof(spec), "mem:rules,rules=%s", name);
    ck_assert_int_eq(io_open(spec, NULL, &port[0], err, sizeof(err)), 0);
    ck_assert_int_eq(io_open(spec, NULL, &port[1], err, sizeof(err)), 0);
    ck_assert_int_eq(io_open("mem:rules,rules=/other", NULL, &again, err, sizeof(err)), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err, "differs from what link 'rules' was made with"));
    the_link = mem_link_get("rules");
    send_psn(0, 1, 8, 10);
    send_psn(0, 2, 8, 10);
    ck_assert_str_eq(arrivals(1, 10), "2 ");
    close_all();

    ck_assert_int_eq(write(fd, "drop\n  flush\n", 13), 13);
    ck_assert_int_eq(io_open(spec, NULL, &port[0], err, sizeof(err)), -EINVAL);
    snprintf(want, sizeof(want), "mem: %s:4:3: expected an action", name);
    ck_assert_msg(!strncmp(err, want, strlen(want)), "%s", err);
    close(fd);
    unlink(name);
    ck_assert_int_eq(io_open(spec, NULL, &port[0], err, sizeof(err)), -ENOENT);
    ck_assert_ptr_null(mem_link_get("rules"));
    ck_assert_int_eq(io_open("mem:rules,rules=/tmp", NULL, &port[0], err, sizeof(err)), -EINVAL);
}
END_TEST

UNIT_MAIN("mem rules", rules_drop_and_change_frames, rules_delay_and_reorder_frames,
          rules_inject_frames, the_link_seed_is_the_rules_seed, rules_come_from_a_file)
