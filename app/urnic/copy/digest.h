/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SHA-256 of a stream of octets, and its text form.
 */
#ifndef URNIC_DIGEST_H
#define URNIC_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#define DIGEST_LEN 32u

struct digest;

/* NULL = no memory. End it with digest_end. */
struct digest *digest_begin(void);
/* The next octets. */
void digest_add(struct digest *d, const void *data, size_t len);
/* Finish and free. */
void digest_end(struct digest *d, uint8_t out[DIGEST_LEN]);
/* Hexadecimal, in `buf`, which is returned. */
const char *digest_text(const uint8_t digest[DIGEST_LEN], char buf[2 * DIGEST_LEN + 1]);

#endif
