/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A port with a pair of capture files for a wire:
 *
 *     pcap:IN[,OUT][,paced=on]      IN or OUT may be empty: "pcap:,out.pcapng"
 *
 * IN is a pcap or pcapng file of Ethernet frames; they arrive as fast as they are taken, or, with
 * paced=on, at their recorded intervals. Frames that the capture cut short are dropped and counted
 * (rx_drop). When IN has been read to its end the link goes down; sending still works. Sent frames
 * go to OUT as pcapng, with `now` as their time; without OUT they are counted in tx_drop.
 */
#ifndef URNIC_PCAP_PORT_H
#define URNIC_PCAP_PORT_H

#include "io.h"

/* See io_check(). */
int io_pcap_check(const char *args, char *err, size_t err_size);

/* The opener for "pcap:" (drivers/io.c). */
int io_pcap_open(const char *args, const struct io_open_params *params, struct io_port **out,
                 char *err, size_t err_size);

#endif
