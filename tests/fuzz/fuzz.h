/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The functions that every fuzz target defines, and the check for its own findings.
 */
#ifndef URNIC_TESTS_FUZZ_H
#define URNIC_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Stop with a message when a property of the code under test doesn't hold. */
#define FUZZ_CHECK(x)                                                                              \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #x);                  \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif
