/* SPDX-License-Identifier: BSD-3-Clause
 *
 * For tests that go through the captures of pcaps/.
 */
#ifndef URNIC_CAPTURE_RIG_H
#define URNIC_CAPTURE_RIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lint_read.h"
#include "unit.h"

#define PACKETS    4096u
#define PACKET_MAX 4400u

struct packet {
    uint64_t ns;
    uint32_t len, interface;
    bool no_ether, sent;
    uint8_t data[PACKET_MAX];
};

/* The frames of the capture that was loaded last. */
static struct packet *packets;
static unsigned packets_n;

/* The folder of the captures. */
static inline const char *pcaps(void)
{
    const char *dir = getenv("URNIC_PCAPS");
    return dir ? dir : "../pcaps";
}

/* Open one; the test fails if that fails. */
static inline struct capread *open_capture(const char *name)
{
    char path[512], why[128];
    struct capread *c;
    snprintf(path, sizeof(path), "%s/%s", pcaps(), name);
    ck_assert_msg(lint_read_open(path, &c, why, sizeof(why)) == 0, "%s: %s", path, why);
    return c;
}

/* Read all of one. */
static inline void load(const char *name)
{
    struct capread *c = open_capture(name);
    struct capread_packet p;
    packets = packets ? packets : malloc(PACKETS * sizeof(*packets));
    packets_n = 0;
    while (capread_next(c, &p) == 1) {
        ck_assert_uint_lt(packets_n, PACKETS);
        ck_assert_uint_le(p.len, PACKET_MAX);
        struct packet *k = &packets[packets_n++];
        *k = (struct packet){.ns = p.ns, .len = p.len, .interface = p.interface};
        k->no_ether = p.no_ether;
        k->sent = p.dir == CAPTURE_OUT;
        memcpy(k->data, p.frame, p.len);
    }
    capread_close(c);
}

#endif
