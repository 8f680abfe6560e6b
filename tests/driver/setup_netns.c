/* SPDX-License-Identifier: BSD-3-Clause */
#include "setup_netns.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "conform_frames.h"
#include "wire.h"

int setup_empty(const char *dir)
{
    (void)dir;
    if (unshare(CLONE_NEWNET))
        return 77;
    return system("sysctl -qw net.ipv6.conf.default.disable_ipv6=1") ? 1 : 0;
}

int setup_veth(const char *dir)
{
    int rc = setup_empty(dir);
    if (rc)
        return rc;
    return system("ip link add v0 type veth peer name v1 && ip link set v0 up && "
                  "ip link set v1 up")
               ? 1
               : 0;
}

static void two_ends(const char *a, const char *b)
{
    struct wire_addr w;
    struct io_addr end[2];
    wire_addr_parse(a, &w);
    memcpy(end[0].b, w.b, 16);
    wire_addr_parse(b, &w);
    memcpy(end[1].b, w.b, 16);
    frame_roce(&end[0], &end[1]);
}

int setup_udp_v4(const char *dir)
{
    int rc = setup_empty(dir);
    two_ends("127.0.0.1", "127.0.0.2");
    return rc ? rc : system("ip link set lo up") ? 1 : 0;
}

int setup_udp_v6(const char *dir)
{
    int rc = setup_empty(dir);
    two_ends("fd00::1", "fd00::2");
    if (rc)
        return rc;
    return system("sysctl -qw net.ipv6.conf.all.disable_ipv6=0 "
                  "net.ipv6.conf.default.disable_ipv6=0 && ip link set lo up && "
                  "ip link add v0 mtu 9000 type veth peer name v1 mtu 9000 && ip link set v0 up && "
                  "ip link set v1 up && ip addr add fd00::1/64 dev v0 nodad && "
                  "ip addr add fd00::2/64 dev v0 nodad")
               ? 1
               : 0;
}
