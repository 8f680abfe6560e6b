/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CRC-32 as zlib computes it (ICRC-01), and a copy with the CRC of the copied octets, in one pass
 * over memory. A running value is at every point also the finished CRC of the octets so far: 0 for
 * none.
 *
 * The quickest implementation that this CPU runs is chosen at first use, or by crc_choose.
 *
 * Threads: any. What crc_choose has chosen, other threads may come to use a little later.
 */
#ifndef URNIC_CRC_H
#define URNIC_CRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The environment variable that names an implementation for a program: see crc_choose. The library
 * doesn't read it. */
#define CRC_ENV "URNIC_CRC"

/* Octets somewhere. */
struct crc_piece {
    const void *p;
    size_t len;
};

/* The running value `crc` after the n octets at p. Reads exactly these. */
uint32_t crc_update(uint32_t crc, const void *p, size_t n);

/* Copy src[0..n) to dst[0..n), which must not overlap. Returns the running value after the octets
 * now at dst, even if another program writes to src meanwhile. Reads and writes exactly these
 * octets; each octet of src is read once. */
uint32_t crc_copy(uint32_t crc, void *dst, const void *src, size_t n);

/* As crc_copy, for npieces pieces, one after the other, to dst. */
uint32_t crc_gather(uint32_t crc, void *dst, const struct crc_piece *pieces, unsigned npieces);

/* One way to do it. */
struct crc_impl {
    const char *name;
    uint32_t (*update)(uint32_t crc, const void *p, size_t n);
    uint32_t (*copy)(uint32_t crc, void *dst, const void *src, size_t n);
    bool one_pass; /* `copy` reads memory once. Its code is GUARD_CODE: it calls no library */
};

/* The i-th implementation of this architecture; NULL = the end. They are in the order of their
 * speed on CPUs that no software emulates, the fastest first. */
const struct crc_impl *crc_impl(unsigned i);
/* Do this CPU and the operating system support it? Otherwise it must not be called. */
bool crc_runs_here(const struct crc_impl *impl);

/* The name of the fastest one here. */
const char *crc_fastest(void);
/* Use the implementation of this name from now on; NULL or "": the fastest one. 0; -ENOENT: no such
 * name; -ENOTSUP: this CPU lacks its instructions. After an error nothing has changed, and err
 * (`size` octets, or NULL) has a sentence. */
int crc_choose(const char *name, char *err, size_t size);
/* The one in use. */
const struct crc_impl *crc_in_use(void);

#endif
