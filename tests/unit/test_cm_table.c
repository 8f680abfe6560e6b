/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table of connections: the hash that its chains and ids hang on, and its timers.
 */
#include <string.h>

#include "cm_pair.h"
#include "unit.h"

/* SEC-19, SEC-21: SipHash-2-4 with both halves of the key: the example of its authors (octets 0 to
 * 15 as the key, 0 to 14 as the text), and that every bit of the key counts. */
START_TEST(sec_19_the_hash)
{
    struct cm_params p = {.key = {0x0706050403020100, 0x0F0E0D0C0B0A0908}};
    uint8_t text[15];
    for (unsigned i = 0; i < sizeof(text); i++)
        text[i] = (uint8_t)i;
    struct cm *cm = cm_create(&p);
    ck_assert_uint_eq(cm_hash(cm, text, sizeof(text)), 0xA129CA6149BE45E5);
    for (unsigned i = 0; i < 128; i++) {
        cm->params.key[i / 64] ^= 1ull << i % 64;
        ck_assert_uint_ne(cm_hash(cm, text, sizeof(text)), 0xA129CA6149BE45E5);
        cm->params.key[i / 64] ^= 1ull << i % 64;
    }
    cm_destroy(cm);
}
END_TEST

/* CM-15: when the table chooses the id of a connection, it passes over 0 and ids that are taken.
 * Here the counter begins at the same place twice, so the first id is taken. */
START_TEST(cm_15_an_id_that_is_taken)
{
    struct cm_connect_params p = params();
    struct cm_conn *c[8];
    ck_assert_int_eq(cm_connect(a.cm, &p, NULL, now, &c[0]), 0);
    a.cm->ctr = 0;
    ck_assert_int_eq(cm_connect(a.cm, &p, NULL, now, &c[1]), 0);
    ck_assert_uint_ne(c[0]->local_id, c[1]->local_id);
    ck_assert_ptr_eq(cm_find_local(a.cm, c[0]->local_id), c[0]);
    ck_assert_ptr_eq(cm_find_local(a.cm, c[1]->local_id), c[1]);
}
END_TEST

/* CM-18: the next deadline is always the earliest, as entries come and go. */
START_TEST(cm_18_the_earliest_of_many)
{
    struct cm_conn *c[200] = {0};
    uint32_t dice = 1;
    for (unsigned turn = 0; turn < 4000; turn++) {
        dice = dice * 1103515245 + 12345;
        unsigned at = dice >> 16 & 0xFF;
        if (at >= 200)
            continue;
        if (c[at]) {
            cm_release(a.cm, c[at], now);
            c[at] = NULL;
        } else {
            struct cm_connect_params p = params();
            p.cm_timeout = (uint8_t)(10 + (dice >> 24) % 15);
            ck_assert_int_eq(cm_connect(a.cm, &p, NULL, now, &c[at]), 0);
        }
        uint64_t first = UINT64_MAX;
        for (unsigned i = 0; i < 200; i++)
            if (c[i] && c[i]->deadline < first)
                first = c[i]->deadline;
        ck_assert_uint_eq(cm_deadline(a.cm), first);
        now += dice >> 6;
        if (first > now)
            continue;
        cm_expire(a.cm, now); /* all that are due, and none that isn't */
        for (unsigned i = 0; i < 200; i++) {
            if (c[i] && c[i]->state == CMS_CLOSED) {
                cm_release(a.cm, c[i], now);
                c[i] = NULL;
            }
            ck_assert(!c[i] || c[i]->deadline > now);
        }
    }
    ck_assert_uint_gt(cm_counters(a.cm)[CM_C_cm_retries], 100);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cm table");
    TCase *t = tcase_create("cm table");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, sec_19_the_hash);
    tcase_add_test(t, cm_15_an_id_that_is_taken);
    tcase_add_test(t, cm_18_the_earliest_of_many);
    suite_add_tcase(s, t);
    return unit_run(s);
}
