/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Is a received frame for the device, the kernel, or both? Pure functions; the frame is foreign, of
 * any length.
 */
#ifndef URNIC_TAP_SORT_H
#define URNIC_TAP_SORT_H

#include <stdint.h>

#include "io.h"

#define TAP_ADDRS_MAX 32u

struct tap_filter {
    uint16_t vlan; /* VLAN of the device's frames; 0 = untagged, or tagged with 0 */
    unsigned naddr;
    struct io_addr addr[TAP_ADDRS_MAX]; /* of the device */
};

enum tap_owner {
    TAP_DEVICE, /* a whole RoCEv2 packet (UDP port 4791, no fragment) in the device's VLAN, to one
                   of its addresses or to a group */
    TAP_KERNEL, /* the kernel's alone */
    TAP_BOTH,   /* ARP, ICMP, IGMP, MLD, neighbour discovery: both need it */
};

enum tap_owner tap_sort(const struct tap_filter *f, const uint8_t *frame, uint32_t len);

#endif
