/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>

#include "io_arg.h"
#include "unit.h"

START_TEST(io_arg_finds_keys)
{
    static const struct {
        const char *args, *key, *value;
        int rc;
    } rows[] = {
        {"a=1,b=2", "a", "1", 1},
        {"a=1,b=2", "b", "2", 1},
        {"a=1,b=2", "c", "", 0},
        {"link,a=1", "a", "1", 1},
        {"aa=1", "a", "", 0},
        {"a=,b=2", "a", "", 1},
        {"a", "a", "", 0},
        {"", "a", "", 0},
        {"a=x=y", "a", "x=y", 1},
        {"a=12345678", "a", "", -EINVAL},
        {"a=1234567", "a", "1234567", 1},
        {"b=a=1", "a", "", 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char val[8] = "";
        ck_assert_msg(io_arg(rows[i].args, rows[i].key, val, sizeof(val)) == rows[i].rc, "%s",
                      rows[i].args);
        if (rows[i].rc == 1)
            ck_assert_str_eq(val, rows[i].value);
    }
    ck_assert_int_eq(io_arg(NULL, "a", (char[4]){""}, 4), 0);
}
END_TEST

START_TEST(io_arg_names_unknown_keys)
{
    static const char *const keys[] = {"loss", "rate", NULL};
    static const struct {
        const char *args, *bad;
    } rows[] = {
        {"", NULL},
        {"loss=1", NULL},
        {"link,rate=1,loss=2", NULL},
        {"los=1", "los"},
        {"loss=1,losss=2", "losss"},
        {"rate=1,rate=2", "rate"},
        {"=1", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char bad[16] = "?";
        int rc = io_arg_unknown(rows[i].args, keys, bad, sizeof(bad));
        ck_assert_msg(rc == (rows[i].bad ? -EINVAL : 0), "%s", rows[i].args);
        if (rows[i].bad)
            ck_assert_str_eq(bad, rows[i].bad);
    }
}
END_TEST

typedef int (*parse_fn)(const char *, uint64_t *);

START_TEST(io_parse_units)
{
    static const struct {
        parse_fn parse;
        const char *text;
        uint64_t value;
        int rc;
    } rows[] = {
        {io_parse_u64, "0", 0, 0},
        {io_parse_u64, "18446744073709551615", UINT64_MAX, 0},
        {io_parse_u64, "18446744073709551616", 0, -EINVAL},
        {io_parse_u64, "0x10", 16, 0},
        {io_parse_u64, "010", 10, 0},
        {io_parse_u64, "08", 8, 0},
        {io_parse_u64, "0x", 0, -EINVAL},
        {io_parse_u64, "0x-1", 0, -EINVAL},
        {io_parse_u64, "-1", 0, -EINVAL},
        {io_parse_u64, " 1", 0, -EINVAL},
        {io_parse_u64, "1x", 0, -EINVAL},
        {io_parse_u64, "", 0, -EINVAL},
        {io_parse_size, "64K", 65536, 0},
        {io_parse_size, "1.5M", 1572864, 0},
        {io_parse_size, "2GiB", 2147483648u, 0},
        {io_parse_size, "9", 9, 0},
        {io_parse_size, "K", 0, -EINVAL},
        {io_parse_size, "1X", 0, -EINVAL},
        {io_parse_size, "inf", 0, -EINVAL},
        {io_parse_size, "99999999999G", 0, -EINVAL},
        {io_parse_rate, "10G", 10000000000u, 0},
        {io_parse_rate, "2.5G", 2500000000u, 0},
        {io_parse_rate, "100Mbit", 100000000, 0},
        {io_parse_rate, "1K", 1000, 0},
        {io_parse_rate, "-1G", 0, -EINVAL},
        {io_parse_time, "5us", 5000, 0},
        {io_parse_time, "1.5ms", 1500000, 0},
        {io_parse_time, "2s", 2000000000, 0},
        {io_parse_time, "7", 7, 0},
        {io_parse_time, "7min", 0, -EINVAL},
        {io_parse_time, "0x7", 0, -EINVAL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t v = 0;
        ck_assert_msg(rows[i].parse(rows[i].text, &v) == rows[i].rc, "%s", rows[i].text);
        ck_assert_msg(v == rows[i].value, "%s is %llu", rows[i].text, (unsigned long long)v);
    }
}
END_TEST

START_TEST(io_parse_probabilities_and_switches)
{
    static const struct {
        const char *text;
        double p;
        int rc;
    } rows[] = {
        {"0.01", 0.01, 0}, {"1%", 0.01, 0},      {"1", 1, 0},          {".5", 0.5, 0},
        {"100%", 1, 0},    {"2", 0, -EINVAL},    {"-0.1", 0, -EINVAL}, {"nan", 0, -EINVAL},
        {"1e-3", 1e-3, 0}, {"101%", 0, -EINVAL}, {"", 0, -EINVAL},     {"0x1", 0, -EINVAL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        double p = 0;
        ck_assert_msg(io_parse_prob(rows[i].text, &p) == rows[i].rc, "%s", rows[i].text);
        ck_assert_msg(fabs(p - rows[i].p) < 1e-12, "%s", rows[i].text);
    }
    bool on = false;
    ck_assert(io_parse_bool("on", &on) == 0 && on);
    ck_assert(io_parse_bool("0", &on) == 0 && !on);
    ck_assert(io_parse_bool("maybe", &on) == -EINVAL);
}
END_TEST

UNIT_MAIN("io_arg", io_arg_finds_keys, io_arg_names_unknown_keys, io_parse_units,
          io_parse_probabilities_and_switches)
