/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Each row: a good frame, a few octets changed, the parser's verdict. iCRC and IPv4 checksum are
 * mended after the change unless the row says otherwise, so that only the named check can refuse.
 */

#include "frames.h"
#include "unit.h"

#define WRITE_ONLY WIRE_OPCODE(WIRE_RC, WIRE_WRITE_ONLY)
#define SEND_ONLY  WIRE_OPCODE(WIRE_RC, WIRE_SEND_ONLY)
#define ACK        WIRE_OPCODE(WIRE_RC, WIRE_ACKNOWLEDGE)
#define READ       WIRE_OPCODE(WIRE_RC, WIRE_READ_REQUEST)
#define ATOMIC_ACK WIRE_OPCODE(WIRE_RC, WIRE_ATOMIC_ACK)
#define UD_SEND    WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY)
#define KEEP_CSUM  1u /* leave the IPv4 checksum as the change made it */
#define KEEP_ICRC  2u

/* Where an offset counts from. */
enum layer { L2, IP, UDP, BTH, EXT, END };

struct change {
    enum layer layer;
    int off;
    unsigned n;
    uint8_t b[16];
};

struct row {
    const char *name;
    enum wire_verdict want;
    unsigned kind;
    uint8_t opcode;
    uint32_t payload;
    struct change c[3];
    unsigned keep;
    unsigned flags;
    int grow; /* octets added to the frame's end (or taken off), the headers unchanged */
};

#define V4 FRAME_V4
#define V6 FRAME_V6

static const struct row rows[] = {
    /* Ethernet and VLAN */
    {"WIRE-02 IPv4", WIRE_OK, V4, WRITE_ONLY, 13},
    {"WIRE-02 IPv6", WIRE_OK, V6, WRITE_ONLY, 13},
    {"WIRE-02 RoCE v1", WIRE_NOT_ROCE, V4, WRITE_ONLY, 13, {{L2, 12, 2, {0x89, 0x15}}}},
    {"WIRE-02 ARP", WIRE_NOT_ROCE, V4, WRITE_ONLY, 13, {{L2, 12, 2, {0x08, 0x06}}}},
    {"WIRE-02 IPv4 header under the IPv6 EtherType",
     WIRE_NOT_ROCE,
     V4,
     WRITE_ONLY,
     13,
     {{L2, 12, 2, {0x86, 0xDD}}}},
    {"WIRE-02 IPv6 header under the IPv4 EtherType",
     WIRE_NOT_ROCE,
     V6,
     WRITE_ONLY,
     13,
     {{L2, 12, 2, {0x08, 0x00}}},
     KEEP_CSUM},
    {"WIRE-02 another EtherType, RoCE v1 enabled",
     WIRE_NOT_ROCE,
     V6,
     WRITE_ONLY,
     13,
     {{L2, 12, 2, {0x12, 0x34}}},
     0,
     WIRE_P_V1},
    {"WIRE-02 no more than a link header",
     WIRE_NOT_ROCE,
     V4,
     SEND_ONLY,
     0,
     {{L2, 12, 2, {0x08, 0x06}}},
     0,
     0,
     14 - 58},
    {"WIRE-03 no more than a tagged link header",
     WIRE_NOT_ROCE,
     V4 | FRAME_TAGGED,
     SEND_ONLY,
     0,
     {{L2, 16, 2, {0x08, 0x06}}},
     0,
     0,
     18 - 62},
    {"WIRE-03 tagged IPv4", WIRE_OK, V4 | FRAME_TAGGED, WRITE_ONLY, 13},
    {"WIRE-03 tagged IPv6", WIRE_OK, V6 | FRAME_TAGGED, WRITE_ONLY, 13},
    {"WIRE-03 priority tag", WIRE_OK, V4 | FRAME_TAGGED, WRITE_ONLY, 13, {{L2, 14, 2, {0x60, 0}}}},
    {"WIRE-05 two C-tags",
     WIRE_NOT_ROCE,
     V4 | FRAME_TAGGED,
     WRITE_ONLY,
     13,
     {{L2, 16, 2, {0x81, 0x00}}}},
    {"WIRE-05 S-tag alone",
     WIRE_NOT_ROCE,
     V4 | FRAME_TAGGED,
     WRITE_ONLY,
     13,
     {{L2, 12, 2, {0x88, 0xA8}}}},
    {"WIRE-05 S-tag alone, Q-in-Q enabled",
     WIRE_NOT_ROCE,
     V4 | FRAME_TAGGED,
     WRITE_ONLY,
     13,
     {{L2, 12, 2, {0x88, 0xA8}}},
     0,
     WIRE_P_QINQ},

    /* IPv4 */
    {"WIRE-08 version 5", WIRE_NOT_ROCE, V4, WRITE_ONLY, 13, {{IP, 0, 1, {0x55}}}},
    {"WIRE-08 IHL 4", WIRE_TRUNCATED, V4, WRITE_ONLY, 13, {{IP, 0, 1, {0x44}}}},
    {"WIRE-08 IHL 6: options",
     WIRE_IP_OPTIONS,
     V4,
     WRITE_ONLY,
     16,
     {{IP, 0, 1, {0x46}}, {UDP, 6, 2, {0x12, 0xB7}}}},
    {"VAL-07 IHL 15 reaches past the frame",
     WIRE_IP_OPTIONS,
     V4,
     SEND_ONLY,
     0,
     {{IP, 0, 1, {0x4F}}}},
    {"WIRE-01 no more than an IPv4 header",
     WIRE_NOT_ROCE,
     V4,
     SEND_ONLY,
     0,
     {{IP, 9, 1, {1}}},
     0,
     0,
     34 - 58},
    {"WIRE-01 no more than an IPv6 header",
     WIRE_NOT_ROCE,
     V6,
     SEND_ONLY,
     0,
     {{IP, 6, 1, {58}}},
     0,
     0,
     54 - 78},
    {"WIRE-01 another protocol", WIRE_NOT_ROCE, V4, WRITE_ONLY, 13, {{IP, 9, 1, {6}}}},
    {"WIRE-01 ICMP with a bad checksum is still not RoCE",
     WIRE_NOT_ROCE,
     V4,
     WRITE_ONLY,
     13,
     {{IP, 9, 1, {1}}},
     KEEP_CSUM},
    {"WIRE-09 one octet cut off", WIRE_TRUNCATED, V4, WRITE_ONLY, 13, {{0}}, 0, 0, -1},
    {"WIRE-09 WIRE-33 trailing octets are ignored", WIRE_OK, V4, ACK, 0, {{0}}, 0, 0, 5},
    {"WIRE-09 total length 43", WIRE_TRUNCATED, V4, SEND_ONLY, 0, {{IP, 2, 2, {0, 43}}}},
    {"WIRE-09 total length 44 is the least", WIRE_OK, V4, SEND_ONLY, 0},
    {"WIRE-09 total length 0", WIRE_TRUNCATED, V4, SEND_ONLY, 0, {{IP, 2, 2, {0, 0}}}},
    {"WIRE-09 total length 65535", WIRE_TRUNCATED, V4, SEND_ONLY, 0, {{IP, 2, 2, {0xFF, 0xFF}}}},
    {"WIRE-10 DF 0 is accepted", WIRE_OK, V4, WRITE_ONLY, 13, {{IP, 6, 2, {0, 0}}}},
    {"WIRE-10 MF", WIRE_IP_FRAGMENT, V4, WRITE_ONLY, 13, {{IP, 6, 2, {0x20, 0}}}},
    {"WIRE-10 MF with DF", WIRE_IP_FRAGMENT, V4, WRITE_ONLY, 13, {{IP, 6, 2, {0x60, 0}}}},
    {"WIRE-10 offset 1", WIRE_IP_FRAGMENT, V4, WRITE_ONLY, 13, {{IP, 6, 2, {0, 1}}}},
    {"WIRE-10 offset 4096", WIRE_IP_FRAGMENT, V4, WRITE_ONLY, 13, {{IP, 6, 2, {0x10, 0}}}},
    {"WIRE-10 offset of a fragment hides the port",
     WIRE_IP_FRAGMENT,
     V4,
     WRITE_ONLY,
     13,
     {{IP, 6, 2, {0, 1}}, {UDP, 2, 2, {0, 53}}}},
    {"WIRE-12 header checksum",
     WIRE_BAD_IP_CSUM,
     V4,
     WRITE_ONLY,
     13,
     {{IP, 11, 1, {0}}},
     KEEP_CSUM},
    {"WIRE-12 the NIC has checked it",
     WIRE_OK,
     V4,
     WRITE_ONLY,
     13,
     {{IP, 11, 1, {0}}},
     KEEP_CSUM,
     WIRE_P_IP_CSUM_OK},
    {"WIRE-15 TTL 0", WIRE_OK, V4, WRITE_ONLY, 13, {{IP, 8, 1, {0}}}},
    {"WIRE-29 source 0.0.0.0", WIRE_BAD_ADDR, V4, WRITE_ONLY, 13, {{IP, 12, 4, {0, 0, 0, 0}}}},
    {"WIRE-29 source 127.0.0.1", WIRE_BAD_ADDR, V4, WRITE_ONLY, 13, {{IP, 12, 4, {127, 0, 0, 1}}}},
    {"WIRE-29 source 127.0.0.1 on a loopback port",
     WIRE_OK,
     V4,
     WRITE_ONLY,
     13,
     {{IP, 12, 4, {127, 0, 0, 1}}},
     0,
     WIRE_P_LOOPBACK},
    {"WIRE-29 source 224.0.0.1",
     WIRE_BAD_ADDR,
     V4,
     WRITE_ONLY,
     13,
     {{IP, 12, 4, {224, 0, 0, 1}}},
     0,
     WIRE_P_LOOPBACK},
    {"WIRE-29 source 239.255.255.255",
     WIRE_BAD_ADDR,
     V4,
     WRITE_ONLY,
     13,
     {{IP, 12, 4, {239, 255, 255, 255}}}},
    {"WIRE-29 source broadcast",
     WIRE_BAD_ADDR,
     V4,
     WRITE_ONLY,
     13,
     {{IP, 12, 4, {255, 255, 255, 255}}}},

    /* IPv6 */
    {"WIRE-16 version 5", WIRE_NOT_ROCE, V6, WRITE_ONLY, 13, {{IP, 0, 1, {0x56}}}},
    {"WIRE-16 hop-by-hop extension header", WIRE_NOT_ROCE, V6, WRITE_ONLY, 13, {{IP, 6, 1, {0}}}},
    {"WIRE-16 fragment header", WIRE_NOT_ROCE, V6, WRITE_ONLY, 13, {{IP, 6, 1, {44}}}},
    {"WIRE-17 payload length 0", WIRE_TRUNCATED, V6, WRITE_ONLY, 13, {{IP, 4, 2, {0, 0}}}},
    {"WIRE-17 payload length 23", WIRE_TRUNCATED, V6, SEND_ONLY, 0, {{IP, 4, 2, {0, 23}}}},
    {"WIRE-17 payload length 24 is the least", WIRE_OK, V6, SEND_ONLY, 0},
    {"WIRE-17 one octet cut off", WIRE_TRUNCATED, V6, WRITE_ONLY, 13, {{0}}, 0, 0, -1},
    {"WIRE-17 trailing octets are ignored", WIRE_OK, V6, WRITE_ONLY, 13, {{0}}, 0, 0, 3},
    {"WIRE-29 source ::", WIRE_BAD_ADDR, V6, WRITE_ONLY, 13, {{IP, 8, 16, {0}}}},
    {"WIRE-29 source ::1", WIRE_BAD_ADDR, V6, WRITE_ONLY, 13, {{IP, 8, 16, {[15] = 1}}}},
    {"WIRE-29 source ::1 on a loopback port",
     WIRE_OK,
     V6,
     WRITE_ONLY,
     13,
     {{IP, 8, 16, {[15] = 1}}},
     0,
     WIRE_P_LOOPBACK},
    {"WIRE-29 source :: on a loopback port",
     WIRE_BAD_ADDR,
     V6,
     WRITE_ONLY,
     13,
     {{IP, 8, 16, {0}}},
     0,
     WIRE_P_LOOPBACK},
    {"WIRE-29 source ::2 is only odd", WIRE_OK, V6, WRITE_ONLY, 13, {{IP, 8, 16, {[15] = 2}}}},
    {"WIRE-29 source ff02::1",
     WIRE_BAD_ADDR,
     V6,
     WRITE_ONLY,
     13,
     {{IP, 8, 16, {0xFF, 2, [15] = 1}}}},
    {"GID-02 IPv4-mapped source in an IPv6 header",
     WIRE_BAD_ADDR,
     V6,
     WRITE_ONLY,
     13,
     {{IP, 8, 16, {[10] = 0xFF, 0xFF, 192, 0, 2, 1}}}},
    {"GID-02 IPv4-mapped destination in an IPv6 header",
     WIRE_BAD_ADDR,
     V6,
     WRITE_ONLY,
     13,
     {{IP, 24, 16, {[10] = 0xFF, 0xFF, 192, 0, 2, 2}}}},
    {"GID-03 link-local addresses",
     WIRE_OK,
     V6,
     WRITE_ONLY,
     13,
     {{IP, 8, 16, {0xFE, 0x80, [15] = 1}}, {IP, 24, 16, {0xFE, 0x80, [15] = 2}}}},

    /* UDP */
    {"WIRE-18 another destination port",
     WIRE_NOT_ROCE,
     V4,
     WRITE_ONLY,
     13,
     {{UDP, 2, 2, {0x12, 0xB6}}}},
    {"WIRE-18 another destination port, IPv6",
     WIRE_NOT_ROCE,
     V6,
     WRITE_ONLY,
     13,
     {{UDP, 2, 2, {0x12, 0xB6}}}},
    {"WIRE-18 4791 as source port only",
     WIRE_NOT_ROCE,
     V4,
     WRITE_ONLY,
     13,
     {{UDP, 0, 4, {0x12, 0xB7, 0xC1, 0x23}}}},
    {"WIRE-01 a DHCP request is not a bad RoCE packet",
     WIRE_NOT_ROCE,
     V4,
     WRITE_ONLY,
     13,
     {{IP, 12, 4, {0, 0, 0, 0}}, {UDP, 0, 4, {0, 68, 0, 67}}}},
    {"WIRE-01 a short datagram for another port",
     WIRE_NOT_ROCE,
     V4,
     SEND_ONLY,
     0,
     {{IP, 2, 2, {0, 30}}, {UDP, 2, 2, {0, 53}}}},
    {"WIRE-01 an empty datagram for another port",
     WIRE_NOT_ROCE,
     V4,
     SEND_ONLY,
     0,
     {{IP, 2, 2, {0, 28}}, {UDP, 2, 2, {0, 53}}},
     0,
     0,
     -16},
    {"WIRE-21 source port 0", WIRE_OK, V4, WRITE_ONLY, 13, {{UDP, 0, 2, {0, 0}}}},
    {"WIRE-21 source port 1", WIRE_OK, V4, WRITE_ONLY, 13, {{UDP, 0, 2, {0, 1}}}},
    {"WIRE-23 UDP length one less", WIRE_BAD_UDP, V4, SEND_ONLY, 0, {{UDP, 4, 2, {0, 23}}}},
    {"WIRE-23 UDP length one more", WIRE_BAD_UDP, V4, SEND_ONLY, 0, {{UDP, 4, 2, {0, 25}}}},
    {"WIRE-23 UDP length 0", WIRE_BAD_UDP, V6, SEND_ONLY, 0, {{UDP, 4, 2, {0, 0}}}},
    {"WIRE-24 wrong UDP checksum, not checked",
     WIRE_OK,
     V4,
     WRITE_ONLY,
     13,
     {{UDP, 6, 2, {0x12, 0x34}}}},
    {"WIRE-24 wrong UDP checksum",
     WIRE_BAD_UDP_CSUM,
     V4,
     WRITE_ONLY,
     13,
     {{UDP, 6, 2, {0x12, 0x34}}},
     0,
     WIRE_P_UDP_CSUM},
    {"WIRE-24 wrong UDP checksum, IPv6",
     WIRE_BAD_UDP_CSUM,
     V6,
     WRITE_ONLY,
     13,
     {{UDP, 6, 2, {0x12, 0x34}}},
     0,
     WIRE_P_UDP_CSUM},
    {"WIRE-24 0 is no checksum", WIRE_OK, V6, WRITE_ONLY, 13, {{0}}, 0, WIRE_P_UDP_CSUM},

    /* BTH */
    {"HDR-01 reserved bits are ignored",
     WIRE_OK,
     V4,
     WRITE_ONLY,
     13,
     {{BTH, 4, 1, {0x3F}}, {BTH, 8, 1, {0x7F}}}},
    {"HDR-02 TVer 1", WIRE_BAD_TVER, V4, WRITE_ONLY, 13, {{BTH, 1, 1, {0x71}}}},
    {"HDR-02 TVer 8", WIRE_BAD_TVER, V4, WRITE_ONLY, 13, {{BTH, 1, 1, {0x78}}}},
    {"HDR-02 TVer before the opcode",
     WIRE_BAD_TVER,
     V4,
     WRITE_ONLY,
     13,
     {{BTH, 0, 2, {0x15, 0x71}}}},
    {"HDR-04 MigReq 0", WIRE_OK, V4, WRITE_ONLY, 13, {{BTH, 1, 1, {0x30}}}},
    {"HDR-05 pad 3 of 16", WIRE_OK, V4, WRITE_ONLY, 13},
    {"HDR-05 other pad octets count as payload",
     WIRE_OK,
     V4,
     WRITE_ONLY,
     13,
     {{BTH, 1, 1, {0x40}}}},
    {"HDR-05 pad octets needn't be 0", WIRE_OK, V4, WRITE_ONLY, 13, {{END, -5, 1, {0xAA}}}},
    {"HDR-05 pad longer than what is there",
     WIRE_BAD_LENGTH,
     V4,
     SEND_ONLY,
     0,
     {{BTH, 1, 1, {0x50}}}},
    {"HDR-05 WIRE-03 pad longer than what is there, tagged IPv6",
     WIRE_BAD_LENGTH,
     V6 | FRAME_TAGGED,
     SEND_ONLY,
     0,
     {{BTH, 1, 1, {0x70}}}},
    {"HDR-05 three octets of payload and no pad",
     WIRE_BAD_LENGTH,
     V4,
     SEND_ONLY,
     4,
     {{IP, 2, 2, {0, 47}}, {UDP, 4, 2, {0, 27}}},
     KEEP_ICRC,
     WIRE_P_NO_ICRC},
    {"HDR-05 all of one word but an octet is pad",
     WIRE_OK,
     V4,
     SEND_ONLY,
     4,
     {{BTH, 1, 1, {0x70}}}},
    {"HDR-05 pad on a UD datagram without payload",
     WIRE_BAD_LENGTH,
     V4,
     UD_SEND,
     0,
     {{BTH, 1, 1, {0x50}}}},
    {"HDR-05 OPC-05 pad on a CNP", WIRE_BAD_LENGTH, V4, SEND_ONLY, 16, {{BTH, 0, 2, {0x81, 0x50}}}},
    {"HDR-05 pad on an ACK", WIRE_BAD_LENGTH, V4, ACK, 0, {{BTH, 1, 1, {0x50}}}},
    {"HDR-07 DestQP 0", WIRE_BAD_QPN, V4, WRITE_ONLY, 13, {{BTH, 5, 3, {0, 0, 0}}}},
    {"HDR-07 DestQP 0 on UD", WIRE_BAD_QPN, V4, UD_SEND, 4, {{BTH, 5, 3, {0, 0, 0}}}},
    {"HDR-07 DestQP 1", WIRE_OK, V4, UD_SEND, 4, {{BTH, 5, 3, {0, 0, 1}}}},
    {"UD-10 HDR-07 multicast QPN, unicast address",
     WIRE_BAD_QPN,
     V4,
     UD_SEND,
     4,
     {{BTH, 5, 3, {0xFF, 0xFF, 0xFF}}}},
    {"UD-10 HDR-07 multicast QPN and address",
     WIRE_OK,
     V4,
     UD_SEND,
     4,
     {{BTH, 5, 3, {0xFF, 0xFF, 0xFF}}, {IP, 16, 4, {239, 1, 1, 1}}}},
    {"UD-10 HDR-07 multicast QPN and address, IPv6",
     WIRE_OK,
     V6,
     UD_SEND,
     4,
     {{BTH, 5, 3, {0xFF, 0xFF, 0xFF}}, {IP, 24, 16, {0xFF, 0x0E, [15] = 1}}}},
    {"UD-10 multicast address, another QPN",
     WIRE_BAD_QPN,
     V4,
     UD_SEND,
     4,
     {{IP, 16, 4, {239, 1, 1, 1}}}},
    {"HDR-07 multicast QPN with an RC opcode",
     WIRE_BAD_QPN,
     V4,
     SEND_ONLY,
     4,
     {{BTH, 5, 3, {0xFF, 0xFF, 0xFF}}, {IP, 16, 4, {239, 1, 1, 1}}}},

    /* opcode and length */
    {"OPC-01 reserved opcode 0x15", WIRE_BAD_OPCODE, V4, WRITE_ONLY, 13, {{BTH, 0, 1, {0x15}}}},
    {"OPC-01 OPC-06 RD", WIRE_BAD_OPCODE, V4, WRITE_ONLY, 13, {{BTH, 0, 1, {0x44}}}},
    {"OPC-01 OPC-06 manufacturer", WIRE_BAD_OPCODE, V4, WRITE_ONLY, 13, {{BTH, 0, 1, {0xC4}}}},
    {"OPC-01 UD SEND First", WIRE_BAD_OPCODE, V4, WRITE_ONLY, 13, {{BTH, 0, 1, {0x60}}}},
    {"OPC-01 before the length", WIRE_BAD_OPCODE, V4, SEND_ONLY, 0, {{BTH, 0, 1, {0x15}}}},
    {"OPC-03 ACK without AETH", WIRE_BAD_LENGTH, V4, SEND_ONLY, 0, {{BTH, 0, 1, {0x11}}}},
    {"OPC-03 WRITE with half a RETH", WIRE_BAD_LENGTH, V4, SEND_ONLY, 8, {{BTH, 0, 1, {0x0A}}}},
    {"OPC-03 atomic one word short", WIRE_BAD_LENGTH, V4, SEND_ONLY, 24, {{BTH, 0, 1, {0x13}}}},
    {"OPC-03 atomic exactly", WIRE_OK, V4, SEND_ONLY, 28, {{BTH, 0, 1, {0x13}}}},
    {"OPC-04 READ request with payload", WIRE_BAD_LENGTH, V4, SEND_ONLY, 20, {{BTH, 0, 1, {0x0C}}}},
    {"OPC-04 ACK with payload", WIRE_BAD_LENGTH, V4, SEND_ONLY, 8, {{BTH, 0, 1, {0x11}}}},
    {"OPC-04 atomic ack with payload", WIRE_BAD_LENGTH, V4, SEND_ONLY, 16, {{BTH, 0, 1, {0x12}}}},
    {"OPC-05 CNP with 12 reserved octets",
     WIRE_BAD_LENGTH,
     V4,
     SEND_ONLY,
     12,
     {{BTH, 0, 1, {0x81}}}},
    {"OPC-05 CNP with 20 reserved octets",
     WIRE_BAD_LENGTH,
     V4,
     SEND_ONLY,
     20,
     {{BTH, 0, 1, {0x81}}}},
    {"OPC-05 the reserved octets of a CNP are ignored",
     WIRE_OK,
     V4,
     SEND_ONLY,
     16,
     {{BTH, 0, 1, {0x81}}}},

    /* iCRC and the octets after it */
    {"ICRC-08 a bit of the iCRC",
     WIRE_BAD_ICRC,
     V4,
     WRITE_ONLY,
     13,
     {{END, -1, 1, {0xA5}}},
     KEEP_ICRC},
    {"ICRC-08 a bit of the pad", WIRE_BAD_ICRC, V4, WRITE_ONLY, 13, {{END, -5, 1, {1}}}, KEEP_ICRC},
    {"ICRC-08 not checked",
     WIRE_OK,
     V4,
     WRITE_ONLY,
     13,
     {{END, -5, 1, {1}}},
     KEEP_ICRC,
     WIRE_P_NO_ICRC},
    {"VAL-01 length before the iCRC",
     WIRE_BAD_LENGTH,
     V4,
     SEND_ONLY,
     0,
     {{BTH, 0, 1, {0x11}}},
     KEEP_ICRC},
    {"VAL-01 iCRC before the QPN",
     WIRE_BAD_ICRC,
     V4,
     WRITE_ONLY,
     13,
     {{BTH, 5, 3, {0, 0, 0}}},
     KEEP_ICRC},
    {"VAL-01 iCRC before the AETH", WIRE_BAD_ICRC, V4, ACK, 0, {{EXT, 0, 1, {0x7F}}}, KEEP_ICRC},
    {"ACK-02 NAK code 31", WIRE_BAD_AETH, V4, ACK, 0, {{EXT, 0, 1, {0x7F}}}},
    {"ACK-02 NAK code 5", WIRE_BAD_AETH, V4, ACK, 0, {{EXT, 0, 1, {0x65}}}},
    {"ACK-02 NAK code 4", WIRE_OK, V4, ACK, 0, {{EXT, 0, 1, {0x64}}}},
    {"ACK-02 type 10", WIRE_BAD_AETH, V4, ACK, 0, {{EXT, 0, 1, {0x40}}}},
    {"ACK-02 bit 7", WIRE_BAD_AETH, V4, ATOMIC_ACK, 0, {{EXT, 0, 1, {0x9F}}}},
    {"ACK-02 no AETH, no syndrome", WIRE_OK, V4, SEND_ONLY, 4, {{EXT, 0, 1, {0x7F}}}},
    {"UD-09 SrcQP 0", WIRE_BAD_SRCQP, V4, UD_SEND, 4, {{EXT, 5, 3, {0, 0, 0}}}},
    {"UD-09 SrcQP 0xffffff", WIRE_BAD_SRCQP, V4, UD_SEND, 4, {{EXT, 5, 3, {0xFF, 0xFF, 0xFF}}}},
    {"UD-09 the reserved octet before SrcQP is ignored",
     WIRE_OK,
     V4,
     UD_SEND,
     4,
     {{EXT, 4, 1, {0xFF}}}},
    {"KEY-02 the P_Key is not looked at here", WIRE_OK, V4, WRITE_ONLY, 13, {{BTH, 2, 2, {0, 0}}}},
};

static size_t make(const struct row *r, uint8_t *f, size_t cap, struct wire_pkt *p)
{
    *p = frame_pkt(r->kind, r->opcode, r->payload);
    size_t len = frame_make(f, cap, p);
    for (size_t i = 0; i < 3; i++) {
        const struct change *c = &r->c[i];
        size_t base[] = {0, p->ip_off, p->udp_off, p->bth_off, p->bth_off + 12u, len};
        memcpy(f + (int)base[c->layer] + c->off, c->b, c->n);
    }
    if (p->ip_version == 4 && !(r->keep & KEEP_CSUM))
        frame_fix_csum(f + p->ip_off);
    if (!(r->keep & KEEP_ICRC))
        frame_fix_icrc(f, len, p);
    memset(f + len, 0xCC, cap - len);
    return (size_t)((long)len + r->grow);
}

START_TEST(val_01_refusals)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t f[512];
        struct wire_pkt p;
        struct wire_pkt q;
        size_t len = make(&rows[i], f, sizeof(f), &p);
        enum wire_verdict v = wire_parse(f, len, rows[i].flags, &q);
        ck_assert_msg(v == rows[i].want, "%s: %s, expected %s", rows[i].name, wire_verdict_name(v),
                      wire_verdict_name(rows[i].want));
    }
}
END_TEST

/* VAL-07 SEC-03 every shorter piece of a good frame is refused, and no octet after it is read: each
 * piece lies at the end of a heap block of its own, watched by a sanitizer. */
START_TEST(val_07_every_truncation)
{
    static const unsigned kinds[] = {FRAME_V4, FRAME_V6, FRAME_V4 | FRAME_TAGGED,
                                     FRAME_V6 | FRAME_TAGGED};
    for (size_t k = 0; k < 4; k++)
        for (unsigned op = 0; op < 256; op++) {
            uint8_t f[512];
            struct wire_pkt p = frame_pkt(kinds[k], (uint8_t)op, 0);
            if (op >> 5 == WIRE_UD)
                p.dqpn = 1;
            size_t len = frame_make(f, sizeof(f), &p);
            for (size_t n = 0; n < len; n++) {
                uint8_t *piece = malloc(n ? n : 1);
                struct wire_pkt q;
                memcpy(piece, f, n);
                enum wire_verdict v = wire_parse(piece, n, 0, &q);
                free(piece);
                ck_assert_msg(v == WIRE_TRUNCATED, "VAL-07 opcode 0x%02x cut to %zu: %s", op, n,
                              wire_verdict_name(v));
            }
        }
}
END_TEST

/* HDR-01 HDR-08 HDR-10 WIRE-13 every field of every opcode arrives where it belongs. */
START_TEST(hdr_01_fields)
{
    for (unsigned op = 0; op < 256; op++) {
        const struct wire_opcode_info *info = &wire_opcodes[op];
        if (!info->name)
            continue;
        for (unsigned kind = 0; kind < 4; kind++) {
            uint8_t f[512];
            struct wire_pkt p = frame_pkt(kind, (uint8_t)op, info->flags & WIRE_F_PAYLOAD ? 13 : 0);
            struct wire_pkt q;
            size_t len = frame_make(f, sizeof(f), &p);
            enum wire_verdict v = wire_parse(f, len, 0, &q);
            ck_assert_msg(v == WIRE_OK, "%s: %s", info->name, wire_verdict_name(v));
            ck_assert_mem_eq(q.dmac, p.dmac, 6);
            ck_assert_mem_eq(q.smac, p.smac, 6);
            ck_assert_uint_eq(q.ethertype, p.ip_version == 4 ? 0x0800 : 0x86DD);
            ck_assert_uint_eq(q.vlan, p.vlan);
            ck_assert_uint_eq(q.tci, p.vlan ? p.tci : 0);
            ck_assert_uint_eq(q.ip_version, p.ip_version);
            ck_assert_uint_eq(q.tclass, p.tclass);
            ck_assert_uint_eq(q.ttl, p.ttl);
            ck_assert_uint_eq(q.ip_id, p.ip_version == 4 ? p.ip_id : 0);
            ck_assert_uint_eq(q.ip_flags, p.ip_version == 4 ? p.ip_flags : 0);
            ck_assert_uint_eq(q.flow_label, p.ip_version == 6 ? p.flow_label : 0);
            ck_assert_mem_eq(&q.sip, &p.sip, 16);
            ck_assert_mem_eq(&q.dip, &p.dip, 16);
            ck_assert_uint_eq(q.sport, p.sport);
            ck_assert_uint_eq(q.dport, WIRE_UDP_PORT);
            ck_assert_uint_eq(q.udp_csum, 0);
            ck_assert_uint_eq(q.opcode, op);
            ck_assert_uint_eq(q.migreq, p.migreq);
            ck_assert_uint_eq(q.pkey, p.pkey);
            ck_assert_uint_eq(q.dqpn, p.dqpn);
            ck_assert_uint_eq(q.psn, p.psn);
            unsigned h = info->headers;
            bool atomic = h & WIRE_H_ATOMICETH;
            bool reth = h & WIRE_H_RETH;
            ck_assert_uint_eq(q.va, atomic || reth ? p.va : 0);
            ck_assert_uint_eq(q.rkey, atomic || reth || (h & WIRE_H_IETH) ? p.rkey : 0);
            ck_assert_uint_eq(q.dma_len, reth ? p.dma_len : 0);
            ck_assert_uint_eq(q.swap_add, atomic ? p.swap_add : 0);
            ck_assert_uint_eq(q.compare, atomic ? p.compare : 0);
            ck_assert_uint_eq(q.orig, h & WIRE_H_ATOMICACK ? p.orig : 0);
            ck_assert_uint_eq(q.syndrome, h & WIRE_H_AETH ? p.syndrome : 0);
            ck_assert_uint_eq(q.msn, h & WIRE_H_AETH ? p.msn : 0);
            ck_assert_uint_eq(q.imm, h & WIRE_H_IMMDT ? p.imm : 0);
            ck_assert_uint_eq(q.qkey, h & WIRE_H_DETH ? p.qkey : 0);
            ck_assert_uint_eq(q.sqpn, h & WIRE_H_DETH ? p.sqpn : 0);
            ck_assert_uint_eq(q.xrc_srqn, h & WIRE_H_XRCETH ? p.xrc_srqn : 0);
            ck_assert_uint_eq(q.feth, h & WIRE_H_FETH ? p.feth : 0);
            ck_assert_uint_eq(q.ip_off, p.ip_off);
            ck_assert_uint_eq(q.udp_off, p.udp_off);
            ck_assert_uint_eq(q.bth_off, p.bth_off);
            ck_assert_uint_eq(q.payload_off, p.payload_off);
            ck_assert_uint_eq(q.payload_len, p.payload_len);
            ck_assert_uint_eq(q.pad, p.pad);
            ck_assert_uint_eq(q.icrc_off, len - 4);
            ck_assert(!q.selective && !q.sel_recv && !q.sel_index && !q.sel_psn);
        }
    }
}
END_TEST

/* LR-02 OPC-01 with WIRE_P_SELECTIVE the parser also takes the opcodes of selective repeat's table,
 * and no others of that group. All other opcodes have the same result as without it. */
START_TEST(lr_02_beside_the_others)
{
    for (unsigned op = 0; op < 256; op++) {
        uint8_t f[512];
        struct wire_pkt p = frame_pkt(FRAME_V4, SEND_ONLY, 40);
        struct wire_pkt want, got;
        size_t len = frame_make(f, sizeof(f), &p);
        f[p.bth_off] = (uint8_t)op;
        frame_fix_icrc(f, len, &p);
        enum wire_verdict v = wire_parse(f, len, 0, &want);
        enum wire_verdict w = wire_parse(f, len, WIRE_P_SELECTIVE, &got);
        bool ours = (op & 0xE0) == WIRE_SELECTIVE && wire_selective[op & 31].name;
        ck_assert_msg(got.selective == ours && (ours || v == w), "LR-02 opcode 0x%02x: %s", op,
                      wire_verdict_name(w));
        ck_assert_uint_eq(got.opcode, ours ? op & 31 : op);
    }
}
END_TEST

/* HDR-01 reserved bits, all of them set, change no flag. */
START_TEST(hdr_01_reserved_bits)
{
    uint8_t f[256];
    struct wire_pkt p = frame_pkt(FRAME_V4, SEND_ONLY, 0);
    struct wire_pkt q;
    p.migreq = false;
    size_t len = frame_make(f, sizeof(f), &p);
    f[p.bth_off + 4] = 0x3F;
    f[p.bth_off + 8] = 0x7F;
    frame_fix_icrc(f, len, &p);
    ck_assert_int_eq(wire_parse(f, len, 0, &q), WIRE_OK);
    ck_assert(!q.se && !q.migreq && !q.fecn && !q.becn && !q.ackreq);
    ck_assert_uint_eq(q.dqpn, p.dqpn);
    ck_assert_uint_eq(q.psn, p.psn);
}
END_TEST

/* HDR-01 HDR-03 the flag bits of the BTH, one at a time. */
START_TEST(hdr_01_flag_bits)
{
    for (unsigned bit = 0; bit < 5; bit++) {
        uint8_t f[256];
        struct wire_pkt p = frame_pkt(FRAME_V4, SEND_ONLY, 0);
        struct wire_pkt q;
        p.se = bit == 0;
        p.migreq = bit == 1;
        p.fecn = bit == 2;
        p.becn = bit == 3;
        p.ackreq = bit == 4;
        size_t len = frame_make(f, sizeof(f), &p);
        ck_assert_int_eq(wire_parse(f, len, 0, &q), WIRE_OK);
        ck_assert_uint_eq(q.se, bit == 0);
        ck_assert_uint_eq(q.migreq, bit == 1);
        ck_assert_uint_eq(q.fecn, bit == 2);
        ck_assert_uint_eq(q.becn, bit == 3);
        ck_assert_uint_eq(q.ackreq, bit == 4);
    }
}
END_TEST

/* WIRE-05 Q-in-Q when enabled: the inner tag counts. */
START_TEST(wire_05_qinq)
{
    uint8_t f[256];
    uint8_t g[256];
    struct wire_pkt p = frame_pkt(FRAME_V4 | FRAME_TAGGED, SEND_ONLY, 0);
    struct wire_pkt q;
    size_t len = frame_make(f, sizeof(f), &p);
    memcpy(g, f, 12);
    memcpy(g + 12, (const uint8_t[]){0x88, 0xA8, 0x00, 0x07}, 4);
    memcpy(g + 16, f + 12, len - 12);
    ck_assert_int_eq(wire_parse(g, len + 4, 0, &q), WIRE_NOT_ROCE);
    ck_assert_int_eq(wire_parse(g, len + 4, WIRE_P_QINQ, &q), WIRE_OK);
    ck_assert_uint_eq(q.tci, p.tci);
    ck_assert_uint_eq(q.ip_off, 22);
    for (size_t n = 0; n < len + 4; n++) {
        uint8_t *piece = malloc(n ? n : 1); /* sanitizers notice octets read after its end */
        memcpy(piece, g, n);
        ck_assert_int_eq(wire_parse(piece, n, WIRE_P_QINQ, &q), WIRE_TRUNCATED);
        free(piece);
    }
    wire_put16(g + 20, WIRE_ETHERTYPE_ARP);
    ck_assert_int_eq(wire_parse(g, 22, WIRE_P_QINQ, &q), WIRE_NOT_ROCE);
    wire_put16(g + 16, WIRE_ETHERTYPE_IPV4); /* a service tag alone is no RoCE */
    ck_assert_int_eq(wire_parse(g, 18, WIRE_P_QINQ, &q), WIRE_NOT_ROCE);
}
END_TEST

/* WIRE-24 a right UDP checksum passes the optional check, for even and odd word counts, and for
 * lengths of more than an octet. */
START_TEST(wire_24_good_udp_checksum)
{
    for (unsigned kind = 0; kind < 2; kind++)
        for (uint32_t payload = 0; payload < 600; payload += payload < 9 ? 1 : 97) {
            uint8_t f[1024];
            struct wire_pkt p = frame_pkt(kind, SEND_ONLY, payload);
            struct wire_pkt q;
            size_t len = frame_make(f, sizeof(f), &p);
            uint8_t *udp = f + p.udp_off;
            size_t n = len - p.udp_off;
            /* The pseudo header, by the book. */
            uint64_t sum = 17 + n;
            unsigned from = p.ip_version == 4 ? 12 : 8;
            for (unsigned i = from; i < (p.ip_version == 4 ? 20u : 40u); i += 2)
                sum += wire_get16(f + p.ip_off + i);
            for (size_t i = 0; i < n; i += 2)
                sum += wire_get16(udp + i);
            while (sum >> 16)
                sum = (sum & 0xFFFF) + (sum >> 16);
            wire_put16(udp + 6, (uint16_t)~sum);
            ck_assert_int_eq(wire_parse(f, len, WIRE_P_UDP_CSUM, &q), WIRE_OK);
            ck_assert_uint_eq(q.udp_csum, (uint16_t)~sum);
            udp[0] ^= 1; /* any other octet makes it wrong */
            ck_assert_int_eq(wire_parse(f, len, WIRE_P_UDP_CSUM, &q), WIRE_BAD_UDP_CSUM);
        }
}
END_TEST

/* VAL-06 every verdict has a counter name of its own. */
START_TEST(val_06_counter_names)
{
    ck_assert_str_eq(wire_verdict_name(WIRE_OK), "ok");
    ck_assert_str_eq(wire_verdict_name(WIRE_VERDICTS), "unknown");
    for (int a = 1; a < WIRE_VERDICTS; a++) {
        ck_assert_ptr_nonnull(wire_verdict_name((enum wire_verdict)a));
        ck_assert(strncmp(wire_verdict_name((enum wire_verdict)a), "rx_", 3) == 0);
        for (int b = 0; b < a; b++)
            ck_assert_str_ne(wire_verdict_name((enum wire_verdict)a),
                             wire_verdict_name((enum wire_verdict)b));
    }
}
END_TEST

/* WIRE-02 RoCE v1, a captured frame: understood when asked for, its iCRC (no UDP header to mask)
 * checked; every cut of it is harmless. */
START_TEST(wire_02_roce_v1)
{
    static const uint8_t v1[] = {
        0x7c, 0xfe, 0x90, 0x75, 0x3c, 0xd8, 0x7c, 0xfe, 0x90, 0x75, 0x3c, 0xd8, 0x89, 0x15,
        0x60, 0x20, 0x00, 0x00, 0x00, 0x28, 0x1b, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0x0f, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0x0f, 0x00, 0x00, 0x02, 0x0a, 0x70,
        0xff, 0xff, 0x00, 0x00, 0x01, 0x0a, 0x80, 0xa7, 0x88, 0xbc, 0x00, 0x00, 0x55, 0xd4,
        0xc0, 0x72, 0x60, 0x00, 0x00, 0x00, 0x47, 0xb3, 0x00, 0x00, 0x00, 0x05, 0x00, 0x00,
        0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0xe3, 0xd8, 0x56, 0xbb};
    struct wire_pkt p;
    uint8_t f[sizeof(v1)];
    memcpy(f, v1, sizeof(f));
    ck_assert_int_eq(wire_parse(f, sizeof(f), (unsigned)~WIRE_P_V1, &p), WIRE_NOT_ROCE);
    ck_assert_int_eq(wire_parse(f, sizeof(f), WIRE_P_V1, &p), WIRE_OK);
    ck_assert_uint_eq(p.ip_version, 6);
    ck_assert_uint_eq(p.udp_off, 0);
    ck_assert_uint_eq(p.psn, 0xa788bc);
    ck_assert_uint_eq(p.dma_len, 5);
    ck_assert_uint_eq(p.payload_len, 5);
    ck_assert_uint_eq(p.sip.b[12], 0x0f);
    f[15] ^= 0x20; /* the traffic class is masked, the address isn't */
    ck_assert_int_eq(wire_parse(f, sizeof(f), WIRE_P_V1, &p), WIRE_OK);
    f[53] ^= 1;
    ck_assert_int_eq(wire_parse(f, sizeof(f), WIRE_P_V1, &p), WIRE_BAD_ICRC);
    f[53] ^= 1;
    f[20] = 17; /* a GRH must lead to a BTH */
    ck_assert_int_eq(wire_parse(f, sizeof(f), WIRE_P_V1, &p), WIRE_NOT_ROCE);
    for (size_t n = 0; n < sizeof(v1); n++)
        ck_assert_int_eq(wire_parse(v1, n, WIRE_P_V1, &p), WIRE_TRUNCATED);
}
END_TEST

/* WIRE-02 VAL-07 the length that a GRH tells, from nothing to more than there is. */
START_TEST(wire_02_length_of_v1)
{
    uint8_t f[256];
    struct wire_pkt p = frame_pkt(FRAME_V6, SEND_ONLY, 8);
    struct wire_pkt q;
    frame_make(f, sizeof(f), &p);
    p.bth_off = p.udp_off;
    size_t len = p.bth_off + WIRE_BTH_LEN + 8 + WIRE_ICRC_LEN;
    memmove(f + p.bth_off, f + p.bth_off + WIRE_UDP_LEN, WIRE_BTH_LEN + 8);
    wire_put16(f + 12, WIRE_ETHERTYPE_V1);
    f[p.ip_off + 6] = 0x1B;
    for (uint16_t n = 0; n < 40; n++) {
        wire_put16(f + p.ip_off + 4, n);
        enum wire_verdict v = wire_parse(f, len, WIRE_P_V1 | WIRE_P_NO_ICRC, &q);
        ck_assert_msg(v == (n < 16 || n > 24 ? WIRE_TRUNCATED
                            : n % 4          ? WIRE_BAD_LENGTH
                                             : WIRE_OK),
                      "WIRE-02 a GRH with %u octets: %s", n, wire_verdict_name(v));
        if (v == WIRE_OK)
            ck_assert_uint_eq(q.payload_len, n - 16u);
    }
}
END_TEST

/* VAL-07 a frame that a capture cut: only existing octets are read. */
START_TEST(val_07_captured_in_part)
{
    for (unsigned kind = 0; kind < 4; kind++) {
        uint8_t f[512];
        struct wire_pkt want, p = frame_pkt(kind, WRITE_ONLY, 100);
        size_t len = frame_make(f, sizeof(f), &p);
        wire_put16(f + p.udp_off + 6, 0x1234); /* WIRE-24: wrong, if one can tell */
        ck_assert_int_eq(wire_parse(f, len, 0, &want), WIRE_OK);
        for (size_t have = 0; have <= len; have++) {
            uint8_t *cut = malloc(have + 1); /* sanitizers notice octets read after its end */
            memcpy(cut, f, have);
            cut[have] = 0;
            uint8_t *exact = realloc(cut, have ? have : 1);
            enum wire_verdict v = wire_parse_cut(exact, have, len, WIRE_P_UDP_CSUM, &p);
            ck_assert_int_eq(v == WIRE_BAD_UDP_CSUM, have == len);
            v = wire_parse_cut(exact, have, len, 0, &p);
            free(exact);
            ck_assert_int_eq(v, have < want.payload_off ? WIRE_TRUNCATED : WIRE_OK);
            if (have >= want.bth_off + WIRE_BTH_LEN) {
                ck_assert_uint_eq(p.psn, want.psn);
                ck_assert_uint_eq(p.payload_len, 100);
                ck_assert_uint_eq(p.payload_off, v == WIRE_OK ? want.payload_off : 0);
            }
        }
    }
}
END_TEST

UNIT_MAIN("wire parse", wire_02_roce_v1, wire_02_length_of_v1, lr_02_beside_the_others,
          hdr_01_reserved_bits, val_07_captured_in_part, val_01_refusals, val_07_every_truncation,
          hdr_01_fields, hdr_01_flag_bits, wire_05_qinq, wire_24_good_udp_checksum,
          val_06_counter_names)
