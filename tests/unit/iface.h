/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by tests on kernel interfaces, which first make a network namespace of their own.
 */
#ifndef URNIC_TEST_IFACE_H
#define URNIC_TEST_IFACE_H

#include <arpa/inet.h>
#include <check.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

/* Run a shell command, which must succeed. */
static inline void sh(const char *cmd)
{
    int rc = system(cmd);
    ck_assert_msg(rc == 0, "%s: status %d", cmd, rc);
}

/* Wait until an interface that is up forwards frames. The kernel enables it in a thread of its own
 * and silently drops frames until then: on a busy machine for a second or more. */
static inline void iface_wait(const char *iface)
{
    char cmd[160];
    snprintf(cmd, sizeof(cmd),
             "for i in $(seq 1000); do ip link show %s | grep -v noop | grep -q LOWER_UP && exit 0;"
             " sleep 0.02; done; exit 1",
             iface);
    sh(cmd);
}

/* A packet socket of an interface, for frames of a protocol; 0 = it only sends. */
static inline int packet_socket(const char *iface, int protocol)
{
    struct sockaddr_ll sll = {.sll_family = AF_PACKET,
                              .sll_protocol = htons((uint16_t)protocol),
                              .sll_ifindex = (int)if_nametoindex(iface)};
    int fd = socket(AF_PACKET, SOCK_RAW, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&sll, sizeof(sll)), 0);
    return fd;
}

#endif
