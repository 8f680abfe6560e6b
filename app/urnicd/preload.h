/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The daemon never runs with urnic's libibverbs.so.1 preloaded: DPDK's drivers would look for RDMA
 * devices through it, in the daemon that is just starting.
 */
#ifndef URNICD_PRELOAD_H
#define URNICD_PRELOAD_H

/* When $LD_PRELOAD names a libibverbs.so.1, take it out and start this program anew with the same
 * arguments. Returns where there is nothing to do, or when the program can't be started again. Call
 * first in main. */
void preload_shed(char **argv);

#endif
