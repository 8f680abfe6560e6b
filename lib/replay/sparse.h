/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory of any extent of which little is ever written: pages by number, zeros elsewhere. A capture
 * says which octets of a region are used, not how long the region is.
 */
#ifndef URNIC_SPARSE_H
#define URNIC_SPARSE_H

#include "held.h"

#define SPARSE_PAGE      4096u
#define SPARSE_PAGES_MAX 32768u /* 128 MiB; what is written beyond is forgotten */

struct sparse_page;

/* All zero to begin with; free with sparse_free. */
struct sparse {
    struct held *held; /* the pages count against it */
    struct sparse_page **bucket;
    uint32_t pages;
};

/* All zero again, nothing allocated. */
void sparse_free(struct sparse *s);
/* `len` octets to address `at`; what there is no room for stays as it was. */
void sparse_write(struct sparse *s, uint64_t at, const void *data, uint32_t len);
/* `len` octets from address `at`. */
void sparse_read(const struct sparse *s, uint64_t at, void *to, uint32_t len);

#endif
