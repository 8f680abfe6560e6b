/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The main function of every unit test program.
 *
 *     START_TEST(hdr_05_pad) { ... }
 *     END_TEST
 *     UNIT_MAIN("wire parse", hdr_05_pad, ...)
 */
#ifndef URNIC_TESTS_UNIT_H
#define URNIC_TESTS_UNIT_H

#include <check.h>
#include <stdlib.h>

#include "patience.h"

/* Run the tests; the result is main()'s. */
static inline int unit_run(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static inline int unit_main(const char *name, const TTest *const *tests, size_t n)
{
    Suite *suite = suite_create(name);
    setenv("CK_DEFAULT_TIMEOUT", "20", 0); /* s: the machine may be busy */
    /* A case each, so that CK_RUN_CASE runs one of them. */
    for (size_t i = 0; i < n; i++) {
        TCase *tcase = tcase_create(tests[i]->name);
        tcase_add_test(tcase, tests[i]);
        suite_add_tcase(suite, tcase);
    }
    return unit_run(suite);
}

#define UNIT_MAIN(name, ...)                                                                       \
    int main(void)                                                                                 \
    {                                                                                              \
        const TTest *const tests[] = {__VA_ARGS__};                                                \
        return unit_main(name, tests, sizeof(tests) / sizeof(tests[0]));                           \
    }

#endif
