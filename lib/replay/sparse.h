/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory of any extent, mostly never written: pages by number, zeros elsewhere. A capture shows the
 * used octets of a region, not its length.
 */
#ifndef URNIC_SPARSE_H
#define URNIC_SPARSE_H

#include "held.h"

#define SPARSE_PAGE      4096u
#define SPARSE_PAGES_MAX 32768u /* 128 MiB; writes above it are forgotten */

struct sparse_page;

/* Initialize with zeros; free with sparse_free. */
struct sparse {
    struct held *held; /* the pages count against it */
    struct sparse_page **bucket;
    uint32_t pages;
};

/* Free the pages: all octets are zero again. */
void sparse_free(struct sparse *s);
/* Write `len` octets to address `at`; octets for which there is no room stay unchanged. */
void sparse_write(struct sparse *s, uint64_t at, const void *data, uint32_t len);
/* Read `len` octets from address `at`. */
void sparse_read(const struct sparse *s, uint64_t at, void *to, uint32_t len);

#endif
