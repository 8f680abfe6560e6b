/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The messages of `urnic drill` and the program at the other end of the wire, in the private data
 * of the connection's REQ and REP (doc/drill.md, "On the wire"). Big-endian, like all CM fields.
 */
#ifndef URNIC_DRILL_HELLO_H
#define URNIC_DRILL_HELLO_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define DRILL_HELLO_LEN 32u

/* REQ: the wanted number of receives, the rest is 0. REP: the granted resources. */
struct drill_hello {
    uint64_t va;
    uint32_t rkey, len;       /* the region */
    uint32_t recvs, recv_len; /* receives posted, octets each */
};

static const uint8_t drill_hello_mark[8] = {'u', 'r', 'd', 'r', 'i', 'l', 'l', 1};

static inline void drill_hello_pack(uint8_t out[DRILL_HELLO_LEN], const struct drill_hello *h)
{
    const uint64_t words[] = {h->va, (uint64_t)h->rkey << 32 | h->len,
                              (uint64_t)h->recvs << 32 | h->recv_len};
    memcpy(out, drill_hello_mark, 8);
    for (unsigned i = 0; i < 24; i++)
        out[8 + i] = (uint8_t)(words[i / 8] >> (56 - i % 8 * 8));
}

/* False: the other end is another program. */
static inline bool drill_hello_unpack(struct drill_hello *h, const uint8_t *in, uint32_t len)
{
    uint64_t words[3] = {0};
    if (len < DRILL_HELLO_LEN || memcmp(in, drill_hello_mark, 8) != 0)
        return false;
    for (unsigned i = 0; i < 24; i++)
        words[i / 8] = words[i / 8] << 8 | in[8 + i];
    h->va = words[0];
    h->rkey = (uint32_t)(words[1] >> 32);
    h->len = (uint32_t)words[1];
    h->recvs = (uint32_t)(words[2] >> 32);
    h->recv_len = (uint32_t)words[2];
    return true;
}

#endif
