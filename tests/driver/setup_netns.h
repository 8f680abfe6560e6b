/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The network of the conformance test of DPDK's kernel-interface drivers: a namespace of the
 * calling process's own, which ends with the process, so that nothing needs to be removed.
 */
#ifndef URNIC_TESTS_SETUP_NETNS_H
#define URNIC_TESTS_SETUP_NETNS_H

/* Make the veth pair v0 - v1, up, without addresses of the kernel's. 0, or 77 without root. */
int setup_veth(const char *dir);

/* Two addresses in a namespace, for RoCEv2 between them: 127.0.0.1 and 127.0.0.2 on lo, fd00::1 and
 * fd00::2 on the interface v0. */
int setup_udp_v4(const char *dir);
int setup_udp_v6(const char *dir);

/* An empty namespace, for a tap device that the driver makes. */
int setup_empty(const char *dir);

#endif
