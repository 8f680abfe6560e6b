/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writes a capture for the bench of `urnic lint`: one connection, WRITEs of 16 packets at MTU 1024,
 * each acknowledged, every PSN and iCRC right.
 *
 *     lint_capture FILE MEBIBYTES
 */
#include <stdio.h>
#include <stdlib.h>

#include "wire.h"

#define MTU     1024u
#define PACKETS 16u

static uint64_t written;
static uint64_t ns = 1700000000000000000ull;

static void put(FILE *f, const void *p, size_t n)
{
    if (fwrite(p, 1, n, f) != n) {
        perror("writing");
        exit(1);
    }
    written += n;
}

static void packet(FILE *f, struct wire_pkt *p)
{
    static uint8_t frame[WIRE_FRAME_MAX]; /* the payload stays zero */
    static uint16_t id;
    size_t len = wire_frame_len(p);
    p->ip_id = id++;
    wire_build(frame, sizeof(frame), p);
    wire_icrc_seal(frame, len, p->ip_off, p->bth_off);
    uint32_t head[4] = {(uint32_t)(ns / 1000000000u), (uint32_t)(ns % 1000000000u), (uint32_t)len,
                        (uint32_t)len};
    put(f, head, sizeof(head));
    put(f, frame, len);
    ns += 500;
}

int main(int argc, char **argv)
{
    static const uint32_t header[6] = {0xA1B23C4D, 2 | 4 << 16, 0, 0, 262144, 1};
    FILE *f = argc == 3 ? fopen(argv[1], "wb") : NULL;
    if (!f) {
        fprintf(stderr, "usage: lint_capture FILE MEBIBYTES\n");
        return 2;
    }
    uint64_t size = strtoull(argv[2], NULL, 10) << 20;
    struct wire_pkt a = {.dmac = {2, 0, 0, 0, 0, 2},
                         .smac = {2, 0, 0, 0, 0, 1},
                         .ip_version = 4,
                         .ttl = 64,
                         .ip_flags = 2,
                         .sip = wire_addr_v4(0x0A000001),
                         .dip = wire_addr_v4(0x0A000002),
                         .sport = 0xC123,
                         .migreq = true,
                         .pkey = WIRE_PKEY_DEFAULT,
                         .dqpn = 0x22,
                         .va = 0x1000,
                         .rkey = 5,
                         .dma_len = PACKETS * MTU,
                         .payload_len = MTU};
    struct wire_pkt b = a;
    b.sip = a.dip;
    b.dip = a.sip;
    b.dqpn = 0x11;
    b.opcode = WIRE_OPCODE(WIRE_RC, WIRE_ACKNOWLEDGE);
    b.syndrome = WIRE_SYN_ACK;
    b.payload_len = 0;
    put(f, header, sizeof(header));
    while (written < size) {
        for (unsigned i = 0; i < PACKETS; i++) {
            a.opcode = i == 0             ? WIRE_WRITE_FIRST
                       : i == PACKETS - 1 ? WIRE_WRITE_LAST
                                          : WIRE_WRITE_MIDDLE;
            a.ackreq = i == PACKETS - 1;
            packet(f, &a);
            b.psn = a.psn;
            a.psn = (a.psn + 1) & WIRE_PSN_MASK;
        }
        b.msn = (b.msn + 1) & WIRE_PSN_MASK;
        ns += 2000;
        packet(f, &b);
    }
    return fclose(f) ? 1 : 0;
}
