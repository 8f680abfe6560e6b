/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Compares every implementation of lib/crc that this CPU can run with a CRC that this file computes
 * bit by bit, as the rule says. Compares the constants of lib/crc with the polynomial.
 */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crc.h"
#include "crc_const.h"
#include "unit.h"

#define LONGEST 4300u
#define EDGE    64u /* octets around a copy that must stay as they are */
#define PAGE    4096u
#define PAGES   2u /* between guards */

/* ICRC-01 reflected 0x04C11DB7. */
#define POLYNOMIAL 0xEDB88320u

static uint32_t step(uint32_t reg)
{
    return reg & 1u ? reg >> 1 ^ POLYNOMIAL : reg >> 1;
}

static uint32_t bitwise(uint32_t crc, const uint8_t *p, size_t n)
{
    crc = ~crc;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int b = 0; b < 8; b++)
            crc = step(crc);
    }
    return ~crc;
}

static uint64_t random_state = 1;

static uint32_t draw(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 32);
}

/* The data of all tests, and the CRC of this many octets of it, from 0 and from another value. */
static uint8_t data[LONGEST];
static uint32_t want[LONGEST + 1], want_on[LONGEST + 1];
#define ON 0x12345678u

static void setup(void)
{
    for (size_t i = 0; i < LONGEST; i++)
        data[i] = (uint8_t)draw();
    want_on[0] = ON;
    for (size_t i = 0; i < LONGEST; i++) {
        want[i + 1] = bitwise(want[i], data + i, 1);
        want_on[i + 1] = bitwise(want_on[i], data + i, 1);
    }
}

/* For each implementation that runs here. */
#define EACH(impl)                                                                                 \
    for (unsigned impl_at = 0; crc_impl(impl_at); impl_at++)                                       \
        for (const struct crc_impl *impl = crc_impl(impl_at); impl && crc_runs_here(impl);         \
             impl = NULL)

/* ICRC-01 the check value that catalogues of CRCs give. */
START_TEST(icrc_01_check_value)
{
    EACH(impl)
    {
        ck_assert_msg(impl->update(0, "123456789", 9) == 0xCBF43926u, "ICRC-01 %s", impl->name);
        ck_assert_uint_eq(impl->update(ON, NULL, 0), ON);
    }
}
END_TEST

/* Asserts only on a failure: each assertion is a system call. */
#define CHECK(x, ...)                                                                              \
    do {                                                                                           \
        if (!(x))                                                                                  \
            ck_abort_msg(__VA_ARGS__);                                                             \
    } while (0)

static void check_copy(const struct crc_impl *impl, size_t n, size_t from, size_t to)
{
    static uint8_t src[LONGEST + EDGE], dst[EDGE + LONGEST + 2 * EDGE];
    static const uint8_t edge[EDGE];
    memcpy(src + from, data, n);
    memset(dst, 0, 2 * EDGE + to + n);
    CHECK(impl->update(0, src + from, n) == want[n], "%s: %zu octets at %zu", impl->name, n, from);
    uint8_t *at = dst + EDGE + to;
    CHECK(impl->copy(ON, at, src + from, n) == want_on[n], "%s: copy of %zu, %zu to %zu",
          impl->name, n, from, to);
    CHECK(memcmp(at, data, n) == 0, "%s: %zu octets, %zu to %zu", impl->name, n, from, to);
    CHECK(memcmp(at - EDGE, edge, EDGE) == 0 && memcmp(at + n, edge, EDGE) == 0,
          "%s: %zu octets, %zu to %zu: outside", impl->name, n, from, to);
}

/* ICRC-01 ICRC-12 every length, at changing alignments of either side. */
START_TEST(icrc_12_every_length)
{
    EACH(impl)
    {
        for (size_t n = 0; n <= LONGEST; n++) {
            check_copy(impl, n, 0, 0);
            check_copy(impl, n, draw() % EDGE, draw() % EDGE);
        }
    }
}
END_TEST

/* ICRC-12 every alignment of either side, for lengths around the vectors' sizes. */
START_TEST(icrc_12_every_alignment)
{
    static const size_t lengths[] = {1,   3,   15,  16,  31,  63,  64,  100,
                                     143, 144, 255, 260, 512, 573, 1027};
    EACH(impl)
    {
        for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
            for (size_t from = 0; from < EDGE; from++) {
                for (size_t to = 0; to < EDGE; to++)
                    check_copy(impl, lengths[i], from, to);
            }
        }
    }
}
END_TEST

/* ICRC-12 pieces of any length, also 0, one after the other. */
START_TEST(icrc_12_pieces)
{
    static uint8_t dst[LONGEST + EDGE];
    EACH(impl)
    {
        ck_assert_int_eq(crc_choose(impl->name, NULL, 0), 0);
        for (unsigned round = 0; round < 2000; round++) {
            struct crc_piece pieces[36];
            unsigned n = draw() % 37;
            size_t at = 0, most = round % 2 ? 40 : LONGEST / 8;
            for (unsigned i = 0; i < n; i++) {
                size_t len = draw() % most;
                len = len > LONGEST - at ? LONGEST - at : len;
                pieces[i] = (struct crc_piece){data + at, len};
                at += len;
            }
            memset(dst, 0xA5, sizeof(dst));
            ck_assert_msg(crc_gather(ON, dst, pieces, n) == want_on[at],
                          "%s: %u pieces, %zu octets", impl->name, n, at);
            ck_assert(memcmp(dst, data, at) == 0 && dst[at] == 0xA5);
            uint32_t crc = ON;
            for (unsigned i = 0; i < n; i++)
                crc = crc_update(crc, pieces[i].p, pieces[i].len);
            CHECK(crc == want_on[at], "%s: %u pieces, CRC alone", impl->name, n);
        }
    }
}
END_TEST

/* Pages with a guard on either side. */
static uint8_t *guarded(void)
{
    uint8_t *p = mmap(NULL, (PAGES + 2) * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(p, MAP_FAILED);
    ck_assert_int_eq(mprotect(p + PAGE, PAGES * PAGE, PROT_READ | PROT_WRITE), 0);
    return p + PAGE;
}

/* SEC-03 nothing outside is read or written, not even under a mask: at the very end and the very
 * start of mapped memory, for either side. */
START_TEST(sec_03_nothing_outside)
{
    uint8_t *src = guarded(), *dst = guarded();
    EACH(impl)
    {
        for (size_t n = 0; n <= LONGEST; n += n < 700 ? 1 : 37) {
            size_t end = PAGES * PAGE - n;
            memcpy(src, data, n);
            uint32_t begin = impl->update(0, src, n), end_at = impl->copy(0, dst + end, src, n);
            CHECK(begin == want[n] && end_at == want[n], "%s: %zu octets", impl->name, n);
            memcpy(src + end, data, n);
            begin = impl->copy(0, dst, src + end, n);
            end_at = impl->copy(0, dst + end, src + end, n);
            CHECK(begin == want[n] && end_at == want[n], "%s: %zu octets", impl->name, n);
            CHECK(impl->update(0, src + end, n) == want[n], "%s: %zu octets", impl->name, n);
            CHECK(memcmp(dst + end, data, n) == 0, "%s: %zu octets", impl->name, n);
        }
    }
}
END_TEST

/* ICRC-12 SHM-10 an application that writes while its memory is copied: the CRC is that of the
 * copy, with any mix of octets in it. */
START_TEST(icrc_12_source_changes)
{
    static uint8_t dst[LONGEST];
    uint8_t *src = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(src, MAP_FAILED);
    pid_t writer = fork();
    ck_assert_int_ge(writer, 0);
    if (writer == 0) {
        pid_t parent = getppid();
        for (uint64_t v = 1; v % 256 || getppid() == parent; v++) {
            for (size_t i = 0; i < 2 * PAGE; i += sizeof(v))
                __atomic_store_n((uint64_t *)(void *)(src + i), v * 0x9E3779B97F4A7C15u,
                                 __ATOMIC_RELAXED);
        }
        _exit(0);
    }
    for (unsigned i = 0; i < 10000 && __atomic_load_n(src + 2 * PAGE - 8, __ATOMIC_RELAXED) == 0;
         i++)
        usleep(1000);
    unsigned changed = 0;
    EACH(impl)
    {
        for (unsigned round = 0, seen = changed; round < 300000 && changed - seen < 3000; round++) {
            size_t n = 1 + draw() % LONGEST;
            uint32_t got = impl->copy(0, dst, src, n), again = impl->update(0, dst, n);
            CHECK(got == again, "%s: %zu octets", impl->name, n);
            changed += memcmp(dst, src, n) != 0;
        }
    }
    kill(writer, SIGKILL);
    waitpid(writer, NULL, 0);
    munmap(src, 2 * PAGE);
    ck_assert_uint_gt(changed, 0); /* it did write meanwhile */
}
END_TEST

/* x^n mod P, reflected in the upper half of 64 bits. */
static uint64_t power(unsigned n)
{
    uint32_t reg = 0x80000000u;
    for (unsigned i = 0; i < n; i++)
        reg = step(reg);
    return (uint64_t)reg << 32;
}

/* ICRC-01 the constants come from the polynomial. */
START_TEST(icrc_01_constants)
{
    static const struct {
        uint64_t earlier, later;
        unsigned distance;
    } rows[] = {
        {CRC_EARLIER_128, CRC_LATER_128, 128},
        {CRC_EARLIER_256, CRC_LATER_256, 256},
        {CRC_EARLIER_512, CRC_LATER_512, 512},
        {CRC_EARLIER_1024, CRC_LATER_1024, 1024},
        {CRC_EARLIER_2048, CRC_LATER_2048, 2048},
        {CRC_EARLIER_END_0, CRC_LATER_END_0, 32},
        {CRC_EARLIER_END_128, CRC_LATER_END_128, 160},
        {CRC_EARLIER_END_256, CRC_LATER_END_256, 288},
        {CRC_EARLIER_END_384, CRC_LATER_END_384, 416},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ck_assert_msg(rows[i].earlier == power(rows[i].distance + 63), "earlier, %u bits",
                      rows[i].distance);
        ck_assert_msg(rows[i].later == power(rows[i].distance - 1), "later, %u bits",
                      rows[i].distance);
    }
    /* x^96 / P: the bits shifted out of the register are the quotient's. */
    uint64_t quotient = 0;
    uint32_t reg = 0x80000000u;
    for (unsigned i = 1; i < 96; i++) {
        if (i >= 32 && reg & 1u)
            quotient |= 1ull << (i - 32);
        reg = step(reg);
    }
    ck_assert_uint_eq(CRC_QUOTIENT, quotient);
    ck_assert_uint_eq(CRC_POLYNOMIAL, (uint64_t)POLYNOMIAL << 1 | 1u);
}
END_TEST

/* The quickest is chosen first; by name any that runs here; a wrong name is reported and changes
 * nothing. */
START_TEST(choice)
{
    char err[128];
    unsigned first = 0;
    while (!crc_runs_here(crc_impl(first)))
        first++;
    if (crc_in_use() != crc_impl(first)) /* tests/interop has a processor of QEMU's */
        ck_assert_str_eq(crc_in_use()->name, "zlib");
    ck_assert_str_eq(crc_in_use()->name, crc_fastest());
    EACH(impl)
    {
        ck_assert_int_eq(crc_choose(impl->name, err, sizeof(err)), 0);
        ck_assert_ptr_eq(crc_in_use(), impl);
        ck_assert_uint_eq(crc_update(0, data, 1000), want[1000]);
    }
    const struct crc_impl *last = crc_in_use();
    ck_assert_str_eq(last->name, "zlib"); /* on any CPU */
    ck_assert_int_eq(crc_choose("mmx", err, sizeof(err)), -ENOENT);
    ck_assert_ptr_nonnull(
        strstr(err, "URNIC_CRC=mmx: no such implementation; want one of these: "));
    ck_assert_ptr_nonnull(strstr(err, " isal"));
    ck_assert_ptr_eq(crc_in_use(), last);
    ck_assert_int_eq(crc_choose("mmx", err, 5), -ENOENT); /* no room */
    for (unsigned i = 0; crc_impl(i); i++) {
        if (!crc_runs_here(crc_impl(i)))
            ck_assert_int_eq(crc_choose(crc_impl(i)->name, NULL, 0), -ENOTSUP);
    }
    ck_assert_int_eq(crc_choose("", NULL, 0), 0);
    ck_assert_str_eq(crc_in_use()->name, crc_fastest());
}
END_TEST

int main(void)
{
    setup();
    const TTest *const tests[] = {
        icrc_01_check_value,    icrc_12_every_length,   icrc_12_every_alignment, icrc_12_pieces,
        sec_03_nothing_outside, icrc_12_source_changes, icrc_01_constants,       choice};
    return unit_main("crc", tests, sizeof(tests) / sizeof(tests[0]));
}
