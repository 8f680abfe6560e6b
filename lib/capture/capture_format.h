/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Numbers of the pcapng format, for its reader and its writer.
 */
#ifndef CAPTURE_FORMAT_H
#define CAPTURE_FORMAT_H

/* As a packet block's flags have it, bits 1..0. */
enum capture_dir { CAPTURE_NO_DIR, CAPTURE_IN, CAPTURE_OUT };

enum pcapng_block {
    BLOCK_INTERFACE = 1,
    BLOCK_PACKET_OLD = 2,
    BLOCK_PACKET_SIMPLE = 3,
    BLOCK_STATISTICS = 5,
    BLOCK_PACKET = 6,
    BLOCK_SECTION = 0x0A0D0D0A,
};

enum pcapng_option {
    OPT_END = 0,
    OPT_COMMENT = 1,
    OPT_SECTION_APPLICATION = 4,
    OPT_INTERFACE_NAME = 2,
    OPT_INTERFACE_DESCRIPTION = 3,
    OPT_INTERFACE_SPEED = 8,
    OPT_INTERFACE_TSRESOL = 9,
    OPT_INTERFACE_TSOFFSET = 14,
    OPT_PACKET_FLAGS = 2,
    OPT_STATISTICS_RECEIVED = 4,
    OPT_STATISTICS_DROPS = 5,
};

#define PCAPNG_ORDER_MAGIC 0x1A2B3C4Du /* in a section header: tells the section's byte order */

#define CAPTURE_ETHERNET 1u /* link type, of pcap too */

#endif
