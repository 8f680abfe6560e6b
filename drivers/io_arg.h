/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Helpers to read a driver's part of a port specification: typed values with units, a check for
 * unknown keys, and one form of error message. Units follow the project's convention: rates are
 * decimal bit/s, sizes use 1024, times are ns.
 *
 * Pure functions; any thread.
 */
#ifndef URNIC_DRIVERS_IO_ARG_H
#define URNIC_DRIVERS_IO_ARG_H

#include "io.h"

/* Print the reason to err (may be NULL) and return `code`, so that a failing check is one line. */
int io_fail(char *err, size_t err_size, int code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Copy the value of `key` in "KEY=VALUE,KEY=VALUE" to `val`. Returns 1 found, 0 absent, -EINVAL
 * when it does not fit. */
int io_arg(const char *args, const char *key, char *val, size_t val_size);

/* Plain number "9234", decimal or 0x. Returns 0 or -EINVAL (also for a sign or trailing text). */
int io_parse_u64(const char *s, uint64_t *out);
/* Octets: "65536", "64K", "1M", "1G" (1024s). Returns 0 or -EINVAL. */
int io_parse_size(const char *s, uint64_t *out);
/* Bits a second: "10G", "2.5G", "100M" (1000s). Returns 0 or -EINVAL. */
int io_parse_rate(const char *s, uint64_t *out);
/* Nanoseconds: "5us", "1.5ms", "2s", "100ns", "0". Returns 0 or -EINVAL. */
int io_parse_time(const char *s, uint64_t *out);
/* Probability 0..1: "0.01" or "1%". Returns 0 or -EINVAL. */
int io_parse_prob(const char *s, double *out);
/* "on"/"off", "yes"/"no", "1"/"0". Returns 0 or -EINVAL. */
int io_parse_bool(const char *s, bool *out);

/* Look for a KEY=... in `args` that is not in the NULL-terminated list `keys`, or for a key that
 * stands there twice. Items without '=' are positional and pass. Returns 0, or -EINVAL with the
 * key in `bad`. */
int io_arg_unknown(const char *args, const char *const *keys, char *bad, size_t bad_size);

/* The first item that is neither empty nor has a '=', and its length; NULL = there is none. */
const char *io_arg_bare(const char *args, size_t *len);

#endif
