/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What tests on kernel interfaces share. They make a network namespace of their own first.
 */
#ifndef URNIC_TEST_IFACE_H
#define URNIC_TEST_IFACE_H

#include <arpa/inet.h>
#include <check.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdlib.h>
#include <sys/socket.h>

/* Run a shell command, which must succeed. */
static inline void sh(const char *cmd)
{
    int rc = system(cmd);
    ck_assert_msg(rc == 0, "%s: status %d", cmd, rc);
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
