/* SPDX-License-Identifier: BSD-3-Clause */
#include <check.h>

#include "cc.h"

/* CC-09, CC-24: every algorithm can be found by its name, and "none" never limits. */
START_TEST(cc_09_list)
{
    ck_assert_ptr_eq(cc_type_find("none"), &cc_none);
    ck_assert_ptr_null(cc_type_find("nonsense"));
    for (const struct cc_type *const *t = cc_types; *t; t++) {
        ck_assert_ptr_eq(cc_type_find((*t)->name), *t);
        struct cc cc = {.type = *t};
        (*t)->init(&cc, 10000000000, 1);
        ck_assert(cc.rate > 0);
    }
    struct cc cc = {.type = &cc_none};
    cc_none.init(&cc, 1000, 1);
    cc_none.on_cnp(&cc, 2);
    cc_none.on_loss(&cc, 3);
    cc_none.on_send(&cc, 4096, 4);
    cc_none.on_ack(&cc, 1000, 1, 5);
    cc_none.expire(&cc, 6);
    ck_assert(cc.rate == CC_UNLIMITED);
    ck_assert(cc_none.deadline(&cc) == UINT64_MAX);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cc");
    TCase *c = tcase_create("none");
    tcase_add_test(c, cc_09_list);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
