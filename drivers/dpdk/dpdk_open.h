/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The exports of the plugin liburnic-dpdk.so; drivers/io.c loads it at the first "dpdk:" port.
 */
#ifndef URNIC_DPDK_OPEN_H
#define URNIC_DPDK_OPEN_H

#include "io.h"

/* IO_ABI, of the io.h that this was built with. */
extern __attribute__((visibility("default"))) const char io_dpdk_abi[];

/* An io_open_fn (io.h): `args` is the text after "dpdk:", see dpdk_spec.h. Starts DPDK at the first
 * call. The port belongs to the network namespace of the calling thread. */
__attribute__((visibility("default"))) int io_dpdk_open(const char *args,
                                                        const struct io_open_params *params,
                                                        struct io_port **out, char *err,
                                                        size_t err_size);

#endif
