/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A tap interface of the kernel: made, or taken if it is there, and kept as a port wants it. Each
 * function is system calls, which may wait for the kernel's lock of all interfaces.
 */
#ifndef URNIC_TAP_DEV_H
#define URNIC_TAP_DEV_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tap_dev {
    int fd; /* reads and writes whole frames, and never waits; -1 = none */
    char name[IF_NAMESIZE];
    uint32_t ifindex;
    bool made; /* made by this open: removed with it unless tap_dev_keep */
};

/* Make the interface, and bring it up; or take the one of that name. Returns 0; or -errno with a
 * sentence in err, and fd is -1: -EPERM, with the remedy, -EBUSY, -ENOENT without /dev/net/tun,
 * -EINVAL when the name is another kind of interface. */
int tap_dev_open(struct tap_dev *t, const char *name, char *err, size_t err_size);
/* Close it, and remove the interface unless it existed before or is to be kept. */
void tap_dev_close(struct tap_dev *t);

/* Keep the interface, with its addresses and routes, when the process ends. 0 or -errno, as all
 * below. */
int tap_dev_keep(struct tap_dev *t);
int tap_dev_set_mac(struct tap_dev *t, const uint8_t mac[6]);
int tap_dev_get_mac(const struct tap_dev *t, uint8_t mac[6]);
/* Set the MTU, octets of IP. -EPERM: it has another one, and CAP_NET_ADMIN is missing. */
int tap_dev_set_mtu(struct tap_dev *t, uint32_t mtu);
/* Set the carrier, which the kernel sees. */
int tap_dev_set_carrier(struct tap_dev *t, bool on);

#endif
