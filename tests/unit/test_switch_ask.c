/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SHM-15: questions to engines in programs, which are this process, too.
 */
#include <errno.h>

#include "switch_ask.h"
#include "switch_counters.h"
#include "switch_rig.h"
#include "switch_tx.h"

#define S 1000000000ull

static const uint8_t mac[6] = {0x02, 0, 0, 0, 0, 0xAA};
static struct blocks blocks;
static struct nic_switch *sw;
static struct program prog[2];
static uint8_t data[IPC_ASK_MAX];
static struct switch_ask one;
static unsigned over; /* questions that are */

static void done(struct switch_ask *a)
{
    ck_assert_ptr_null(a->to);
    over++;
}

static void setup(void)
{
    over = 0;
    blocks_init(&blocks);
    sw = switch_new(&blocks, 0, mac, 0, false);
    for (unsigned i = 0; i < 2; i++)
        switch_rig_come(sw, &prog[i], S);
}

static void teardown(void)
{
    switch_free(sw);
    for (unsigned i = 0; i < 2; i++)
        prog[i].io->ops->close(prog[i].io);
}

static void put_question(unsigned i, uint32_t kind, uint32_t room)
{
    struct ipc_question q = {.kind = kind, .qpn = prog[i].qpn, .first = 5};
    one = (struct switch_ask){.done = done, .room = room, .data = data};
    switch_ask(sw, &one, prog[i].c, &q, S);
}

/* The program has got it. */
static struct ipc_question read_question(unsigned i)
{
    struct ipc_question q;
    struct io_frame f;
    ck_assert_uint_eq(prog[i].io->ops->rx_peek(prog[i].io, &f, 1, 0), 1);
    ck_assert(switch_ask_read(f.data, f.len, &q));
    prog[i].io->ops->rx_release(prog[i].io, 1);
    return q;
}

/* The switch takes the programs' frames; none of them may leave. */
static void run(void)
{
    static uint8_t room[4][RIG_FRAME];
    struct io_slot slots[4];
    for (unsigned i = 0; i < 4; i++)
        slots[i] = (struct io_slot){.data = room[i], .cap = RIG_FRAME};
    ck_assert_uint_eq(switch_tx(sw, slots, 4, S), 0);
}

/* Program i answers with these octets, in parts. */
static void answer(unsigned i, struct ipc_answer a, const uint8_t *octets)
{
    uint8_t frame[RIG_FRAME];
    do {
        uint32_t len = switch_ask_write(frame, sizeof(frame), mac, &a, octets);
        ck_assert(channel_put(prog[i].io, frame, len));
        a.off += a.part;
    } while (a.off < a.len);
    run();
}

START_TEST(an_answer_comes_in_parts)
{
    setup();
    uint8_t octets[5000];
    for (unsigned i = 0; i < sizeof(octets); i++)
        octets[i] = (uint8_t)(i * 7);
    channel_set_link(prog[0].io, false, "none"); /* which is no reason */
    put_question(0, IPC_ASK_QPS, sizeof(data));
    ck_assert_uint_eq(switch_ask_deadline(sw), S + IPC_ASK_NS);
    struct ipc_question q = read_question(0);
    ck_assert_uint_eq(q.kind, IPC_ASK_QPS);
    ck_assert_uint_eq(q.qpn, prog[0].qpn);
    ck_assert_uint_eq(q.first, 5);
    answer(0, (struct ipc_answer){.id = q.id, .len = sizeof(octets), .next = 9}, octets);
    ck_assert_uint_eq(over, 1);
    ck_assert_int_eq(one.status, 0);
    ck_assert_uint_eq(one.len, sizeof(octets));
    ck_assert_uint_eq(one.cursor, 9);
    ck_assert_mem_eq(data, octets, sizeof(octets));
    ck_assert_uint_eq(switch_ask_deadline(sw), UINT64_MAX);
    ck_assert_uint_eq(sw->counters[SWITCH_C_channel_tx_frames], 0);
    ck_assert_uint_eq(sw->counters[SWITCH_C_channel_bad_frame], 0);
    teardown();
}
END_TEST

/* Frames that aren't the answer: from another program, to another question, too long, or out of
 * order. */
START_TEST(lies_are_no_answers)
{
    setup();
    static const uint8_t octets[4000] = {0};
    put_question(0, IPC_ASK_QPS, 3000);
    uint32_t id = read_question(0).id;
    answer(1, (struct ipc_answer){.id = id, .len = 8}, octets);
    answer(0, (struct ipc_answer){.id = id + 1, .len = 8}, octets);
    ck_assert_uint_eq(over, 0);
    answer(0, (struct ipc_answer){.id = id, .len = 3001}, octets);
    ck_assert_uint_eq(over, 1);
    ck_assert_int_eq(one.status, -EPROTO);
    put_question(0, IPC_ASK_QPS, 3000);
    id = read_question(0).id;
    answer(0, (struct ipc_answer){.id = id, .len = 2000, .off = 8}, octets);
    ck_assert_uint_eq(over, 2);
    ck_assert_int_eq(one.status, -EPROTO);
    put_question(0, IPC_ASK_QPS, 3000);
    answer(0, (struct ipc_answer){.id = read_question(0).id, .status = -ENOENT}, octets);
    ck_assert_uint_eq(over, 3);
    ck_assert_int_eq(one.status, -ENOENT);
    put_question(0, IPC_ASK_QPS, 3000);
    answer(0, (struct ipc_answer){.id = read_question(0).id, .status = INT32_MIN}, octets);
    ck_assert_int_eq(one.status, -EPROTO);
    teardown();
}
END_TEST

/* A part that claims to be longer than its frame. */
START_TEST(a_part_is_no_longer_than_its_frame)
{
    setup();
    uint8_t frame[RIG_FRAME];
    put_question(0, IPC_ASK_QPS, sizeof(data));
    struct ipc_answer a = {.id = read_question(0).id, .len = 100};
    uint32_t len = switch_ask_write(frame, sizeof(frame), mac, &a, data);
    ck_assert(channel_put(prog[0].io, frame, len - 1));
    run();
    ck_assert_uint_eq(over, 0);
    ck_assert(channel_put(prog[0].io, frame, len));
    run();
    ck_assert_uint_eq(over, 1);
    teardown();
}
END_TEST

/* SHM-15: counters that the daemon has asked for, and those that a program tells when it ends,
 * count for the device. A program that repeats the latter is not heard any more. */
START_TEST(shm_15_counters_of_a_program)
{
    setup();
    struct ipc_asked_counter c = {.value = 7};
    uint8_t octets[sizeof(c)];
    const unsigned heard = 2 * IPC_ASK_MAX / sizeof(c);
    snprintf(c.name, sizeof(c.name), "%s", engine_counter_names[3]);
    memcpy(octets, &c, sizeof(c));
    put_question(0, IPC_ASK_COUNTERS, sizeof(data));
    answer(0, (struct ipc_answer){.id = read_question(0).id, .len = sizeof(c)}, octets);
    ck_assert_int_eq(one.status, 0);
    ck_assert_uint_eq(sw->told->counter[3], 7);
    for (unsigned i = 1; i <= heard + 3; i++) {
        c.value = 7 + i;
        memcpy(octets, &c, sizeof(c));
        answer(0, (struct ipc_answer){.id = 0, .len = sizeof(c)}, octets);
        ck_assert_uint_eq(sw->told->counter[3], 7 + (i < heard ? i : heard));
    }
    teardown();
}
END_TEST

START_TEST(a_program_that_is_silent)
{
    setup();
    put_question(0, IPC_ASK_COUNTERS, sizeof(data));
    switch_ask_run(sw, S + IPC_ASK_NS - 1);
    ck_assert_uint_eq(over, 0);
    switch_ask_run(sw, S + IPC_ASK_NS);
    ck_assert_uint_eq(over, 1);
    ck_assert_int_eq(one.status, -ETIMEDOUT);
    ck_assert_uint_eq(sw->nsilent, 1);
    answer(0, (struct ipc_answer){.id = read_question(0).id}, data); /* too late */
    ck_assert_uint_eq(over, 1);
    put_question(0, IPC_ASK_COUNTERS, sizeof(data));
    answer(0, (struct ipc_answer){.id = read_question(0).id}, data);
    ck_assert_uint_eq(over, 2);
    ck_assert_int_eq(one.status, 0);
    ck_assert_uint_eq(sw->nsilent, 0);
    /* A full ring loses no frame for the sake of a question. */
    for (unsigned i = 0; i < CHANNEL_SLOTS_MIN + 1; i++) {
        put_question(0, IPC_ASK_COUNTERS, sizeof(data));
        switch_ask_cancel(sw, &one);
    }
    put_question(0, IPC_ASK_COUNTERS, sizeof(data));
    switch_ask_run(sw, S);
    ck_assert_int_eq(one.status, -ETIMEDOUT);
    ck_assert_uint_eq(sw->counters[SWITCH_C_channel_drops], 0);
    ck_assert_uint_eq(sw->nsilent, 1);
    put_question(1, IPC_ASK_QPS, sizeof(data));
    switch_detach(sw, prog[1].c, S);
    ck_assert_int_eq(one.status, -ENODEV);
    switch_detach(sw, prog[0].c, S);
    ck_assert_uint_eq(sw->nsilent, 0);
    teardown();
}
END_TEST

/* These counters, not asked for. */
static void tell(unsigned i, uint64_t tx_packets, uint64_t qps)
{
    struct ipc_asked_counter c[3] = {
        {.name = "tx_packets", .value = tx_packets},
        {.name = "qps", .value = qps},
        {.name = "no such counter", .value = 7},
    };
    uint8_t octets[sizeof(c) + 5]; /* and a bit more */
    memcpy(octets, c, sizeof(c));
    memset(octets + sizeof(c), 0xFF, 5);
    answer(i, (struct ipc_answer){.len = sizeof(octets)}, octets);
}

START_TEST(counters_of_programs_are_the_devices)
{
    setup();
    const uint64_t *tx, *qps;
    tell(0, 10, 2);
    tell(1, 5, 1);
    tx = &sw->told->counter[ENGINE_C_tx_packets];
    qps = &sw->told->usage[SWITCH_U_qps];
    ck_assert_uint_eq(*tx, 15);
    ck_assert_uint_eq(*qps, 3);
    tell(0, 12, 1);
    ck_assert_uint_eq(*tx, 17);
    ck_assert_uint_eq(*qps, 2);
    tell(0, 11, 1); /* the program lies: a counter doesn't go back */
    ck_assert_uint_eq(*tx, 17);
    switch_detach(sw, prog[0].c, S); /* its counters stay, its queue pairs don't */
    ck_assert_uint_eq(*tx, 17);
    ck_assert_uint_eq(*qps, 1);
    teardown();
}
END_TEST

UNIT_MAIN("switch_ask", an_answer_comes_in_parts, lies_are_no_answers,
          a_part_is_no_longer_than_its_frame, shm_15_counters_of_a_program,
          a_program_that_is_silent, counters_of_programs_are_the_devices)
