/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The daemon never runs with urnic's libibverbs.so.1 preloaded: DPDK's drivers would look for RDMA
 * devices through it, in the daemon that is just starting.
 */
#ifndef URNICD_PRELOAD_H
#define URNICD_PRELOAD_H

/* If $LD_PRELOAD names a libibverbs.so.1, remove it and execute this program again with the same
 * arguments. Returns if there is nothing to do, or if the exec fails. Call first in main. */
void preload_shed(char **argv);

#endif
