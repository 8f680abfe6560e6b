/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Requests to a server of `urnic perf`: any host can connect to it, so a request must not lead it
 * out of its buffer.
 */

#include "perf_ask.h"
#include "unit.h"

#define BUFFER 65536u

static const struct perf_ask plain = {
    .magic = PERF_MAGIC, .op = PERF_WRITE, .depth = 128, .batch = 16, .size = 4096, .span = 8192};

enum { LATENCY = 1, BOTH = 2, IDLE = 4 };

static const struct {
    const char *name;
    bool ok;
    uint8_t op, flags;
    uint32_t size, span, depth, batch;
} asks[] = {
    {"write", true, PERF_WRITE, 0, 64, 64, 1, 1},
    {"empty writes", true, PERF_WRITE, 0, 0, 64, 1, 1},
    {"write, both", true, PERF_WRITE, BOTH, 64, 64, 1, 1},
    {"write latency", true, PERF_WRITE, LATENCY, 1, 64, 1, 1},
    {"write latency without an octet", false, PERF_WRITE, LATENCY, 0, 64, 1, 1},
    {"write latency, both", false, PERF_WRITE, LATENCY | BOTH, 1, 64, 1, 1},
    {"read latency", true, PERF_READ, LATENCY, 8, 64, 1, 1},
    {"send latency", true, PERF_SEND, LATENCY, 0, 64, 1, 1},
    {"send, both", false, PERF_SEND, BOTH, 8, 64, 1, 1},
    {"atomic", true, PERF_ATOMIC, 0, 8, 64, 1, 1},
    {"atomic, 4 octets", false, PERF_ATOMIC, 0, 4, 64, 1, 1},
    {"connection", true, PERF_CONNECT, IDLE, 0, 64, 1, 1},
    {"connection that works", false, PERF_CONNECT, 0, 0, 64, 1, 1},
    {"connection that works, both", false, PERF_CONNECT, BOTH, 0, 64, 1, 1},
    {"idle, of a latency run", true, PERF_WRITE, LATENCY | IDLE, 0, 64, 1, 1},
    {"unknown operation", false, PERF_CONNECT + 1, IDLE, 0, 64, 1, 1},
    {"message as large as its part", true, PERF_WRITE, 0, 64, 64, 1, 1},
    {"message larger than its part", false, PERF_WRITE, 0, 65, 64, 1, 1},
    {"part as large as the buffer", true, PERF_WRITE, 0, 0, BUFFER, 1, 1},
    {"part larger than the buffer", false, PERF_WRITE, 0, 0, BUFFER + 1, 1, 1},
    {"no part", false, PERF_WRITE, 0, 0, 0, 1, 1},
    {"depth 0", false, PERF_WRITE, 0, 0, 64, 0, 1},
    {"depth 4096", true, PERF_WRITE, 0, 0, 64, 4096, 1},
    {"depth 4097", false, PERF_WRITE, 0, 0, 64, 4097, 1},
    {"batch 0", false, PERF_WRITE, 0, 0, 64, 1, 0},
    {"batch 65", false, PERF_WRITE, 0, 0, 64, 1, 65},
};

START_TEST(server_takes_what_it_can_do)
{
    struct perf_ask ask = {
        .magic = PERF_MAGIC,
        .op = asks[_i].op,
        .latency = !!(asks[_i].flags & LATENCY),
        .both = !!(asks[_i].flags & BOTH),
        .idle = !!(asks[_i].flags & IDLE),
        .size = asks[_i].size,
        .span = asks[_i].span,
        .depth = asks[_i].depth,
        .batch = asks[_i].batch,
    };
    ck_assert_msg(perf_ask_ok(&ask, BUFFER) == asks[_i].ok, "%s", asks[_i].name);
    ask.magic = 1;
    ck_assert(!perf_ask_ok(&ask, BUFFER));
}
END_TEST

START_TEST(offer_holds_the_part)
{
    struct perf_offer offer = {.magic = PERF_MAGIC, .size = plain.span};
    ck_assert(perf_offer_ok(&offer, &plain));
    offer.size--;
    ck_assert(!perf_offer_ok(&offer, &plain));
    offer = (struct perf_offer){.magic = 1, .size = plain.span};
    ck_assert(!perf_offer_ok(&offer, &plain));
}
END_TEST

/* For any index the whole part lies in the buffer. */
START_TEST(parts_lie_in_the_buffer)
{
    static const uint32_t index[] = {0, 1, 7, 8, 9, 100, 16383, UINT32_MAX};
    for (unsigned i = 0; i < sizeof(index) / sizeof(*index); i++) {
        struct perf_ask ask = plain;
        ask.index = index[i];
        ck_assert_uint_le(perf_part(&ask, BUFFER) + ask.span, BUFFER);
        ck_assert_uint_eq(perf_part(&ask, ask.span), 0);
    }
    struct perf_ask second = plain;
    second.index = 1;
    ck_assert_uint_eq(perf_part(&second, BUFFER), plain.span);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("perf_ask");
    TCase *tc = tcase_create("all");
    tcase_add_loop_test(tc, server_takes_what_it_can_do, 0, sizeof(asks) / sizeof(*asks));
    tcase_add_test(tc, offer_holds_the_part);
    tcase_add_test(tc, parts_lie_in_the_buffer);
    suite_add_tcase(s, tc);
    return unit_run(s);
}
