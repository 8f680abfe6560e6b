/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Address vectors in verbs' terms and in liburnic's, and the addresses in a received datagram's
 * header.
 */
#ifndef URNIC_VERBS_AH_H
#define URNIC_VERBS_AH_H

#include "verbs_priv.h"

/* -EINVAL: no GRH, without which RoCE knows no address, or another port than 1. */
int uv_ah_attr(struct urnic_ah_attr *to, const struct ibv_ah_attr *from);
void uv_ah_attr_back(struct ibv_ah_attr *to, const struct urnic_ah_attr *from);

struct uv_grh {
    uint8_t src[16], dst[16]; /* IPv4 as ::ffff:a.b.c.d */
    uint8_t tclass;           /* without the ECN bits */
    uint32_t flow_label;
};

/* Read the 40 octets before a datagram: an IPv6 header, or an IPv4 header in the last 20. */
void uv_grh_addresses(const struct ibv_grh *grh, struct uv_grh *out);

#endif
