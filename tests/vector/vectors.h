/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The packet vectors of vectors.json, for any test that wants them.
 */
#ifndef URNIC_TESTS_VECTORS_H
#define URNIC_TESTS_VECTORS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#define VECTOR_FRAME_MAX 2048u

struct vector {
    const char *id; /* "V07", "N14" */
    const char *name;
    const char *kind;   /* "positive", "negative", "algorithm-only" */
    const char *expect; /* of negative ones: "drop, rx_bad_qkey"; else NULL or a remark */
    uint8_t frame[VECTOR_FRAME_MAX];
    size_t len;
    uint32_t icrc;         /* 0 when the vector doesn't say */
    const json_t *decoded; /* object */
};

/* All vectors; loaded at the first call, which ends the program when the file can't be read. */
const struct vector *vectors_all(size_t *count);
/* The vector with this id; ends the program if there is none. */
const struct vector *vectors_find(const char *id);

#endif
