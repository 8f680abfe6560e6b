/* SPDX-License-Identifier: BSD-3-Clause
 *
 * resolve_l2: ibv_resolve_eth_l2_from_gid tells the MAC address of a neighbour, which its own
 * link-local GID is made of (RFC 4291, appendix A), and none for an unused address.
 */
#include "vt.h"

// NOLINTNEXTLINE(readability-redundant-declaration): not all headers of Debian have it
int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
                                uint8_t mac[6], uint16_t *vid);

static bool link_local(struct ibv_context *c, union ibv_gid *gid)
{
    for (int i = 0; i < 16; i++)
        if (ibv_query_gid(c, 1, i, gid) == 0 && gid->raw[0] == 0xFE && gid->raw[1] == 0x80)
            return true;
    return false;
}

int main(int argc, char **argv)
{
    struct vt_end a, b;
    struct vt_cfg c = VT_RC;
    union ibv_gid gid;
    uint8_t mac[6] = {0}, want[6];
    uint16_t vid = 1;
    vt_start(argc, argv, "resolve_l2");
    vt_pair(&a, &b, &c);
    WANT(link_local(b.ctx, &gid), "the peer has no link-local GID");
    memcpy(want, gid.raw + 8, 3);
    memcpy(want + 3, gid.raw + 13, 3);
    want[0] ^= 2;

    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
    attr.grh.dgid = vt.gid[1];
    attr.grh.sgid_index = (uint8_t)vt.gidx[0];
    int rc = ibv_resolve_eth_l2_from_gid(a.ctx, &attr, mac, &vid);
    WANT(rc == 0, "a neighbour: returns %d, errno %d", rc, errno);
    WANT(memcmp(mac, want, 6) == 0, "MAC %02x:%02x:%02x:%02x:%02x:%02x, expected %02x:..:%02x",
         mac[0], mac[1], mac[2], mac[3], mac[4], mac[5], want[0], want[5]);
    WANT(vid == 0xFFFF, "VLAN %u, where there is none", vid);
    OK0(ibv_resolve_eth_l2_from_gid(a.ctx, &attr, mac, NULL));
    attr.port_num = 2;
    WANT(ibv_resolve_eth_l2_from_gid(a.ctx, &attr, mac, &vid) != 0 && errno == EINVAL, "port 2");
    attr.port_num = 1;
    attr.grh.dgid.raw[15] ^= 0x70; /* in the same network */
    uint64_t start = vt_ms();
    WANT(ibv_resolve_eth_l2_from_gid(a.ctx, &attr, mac, &vid) != 0, "nobody has that address");
    WANT(errno == EHOSTUNREACH && vt_ms() - start < 15000, "nobody: errno %d after %d ms", errno,
         (int)(vt_ms() - start));
    vt_pass("MAC address told");
}
