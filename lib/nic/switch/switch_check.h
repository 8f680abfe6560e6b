/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Checks of a program's frames (SHM-13), on a private copy of the headers. The copy is sent.
 */
#ifndef NIC_SWITCH_CHECK_H
#define NIC_SWITCH_CHECK_H

#include "switch_channel.h"

#define SWITCH_HEAD 128u /* octets: no headers of RoCEv2 are longer */

enum switch_way {
    SWITCH_REFUSED,
    SWITCH_PORT,   /* to the port, or with the device's own MAC to its engine */
    SWITCH_INSIDE, /* to another channel */
};

/* Facts about a frame that a program has sent. */
struct switch_frame {
    uint8_t head[SWITCH_HEAD];
    uint32_t head_len;
    enum switch_way way;       /* the result of the check, kept by the caller */
    struct switch_channel *to; /* SWITCH_INSIDE */
    enum switch_counter why;   /* SWITCH_REFUSED */
};

/* The same for a packet that the kernel has given to the wrong program's socket: it may come from
 * any address, and is for the device. */
enum switch_way switch_check_stray(const struct nic_switch *s, const struct io_frame *frame,
                                   struct switch_frame *out);

/* Check a frame of the program at `from`, which names `qpn` as the sender. Copies its headers to
 * out->head once, and reads nothing else of it. In the copy, the source MAC becomes the device's.
 * The destination MAC becomes that of the next hop by nic_switch.next_hop, or else that of the
 * queue pair's peer (pair.h), if there is one. */
enum switch_way switch_check(const struct nic_switch *s, struct switch_channel *from, uint32_t qpn,
                             const struct io_frame *frame, struct switch_frame *out);

#endif
