/* SPDX-License-Identifier: BSD-3-Clause */
#include "setup_netns.h"

#include <sched.h>
#include <stdlib.h>

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
