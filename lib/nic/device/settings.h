/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Settings of a device and its worker. config_device.h reads the text that users write for a
 * device.
 */
#ifndef NIC_SETTINGS_H
#define NIC_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cc.h"
#include "io.h"
#include "wire.h"

#define CONFIG_DEVICES 16u
#define CONFIG_WORKERS 16u
#define CONFIG_ADDRS   16u
#define CONFIG_WEIGHTS 16u
#define CONFIG_ERR     512u

#define CONFIG_WEIGHT_MAX 16u

enum config_idle { IDLE_AUTO, IDLE_POLL };

struct config_addr {
    struct wire_addr ip;
    uint8_t prefix; /* bits, in the address's own family */
};

/* How many turns a user's programs get where others get one (SHM-13). */
struct config_weight {
    uid_t uid;
    unsigned weight; /* 1 to CONFIG_WEIGHT_MAX */
};

struct config_device {
    char name[16];
    char port[IO_SPEC_MAX];
    struct config_addr addr[CONFIG_ADDRS];
    unsigned naddr;
    struct wire_addr gw[2]; /* at most one per family */
    unsigned ngw;
    uint32_t mtu;       /* IP MTU, octets; 0 = as large as the port allows */
    uint16_t vlan;      /* 0 = untagged */
    uint8_t dscp;       /* default for queue pairs that set no traffic class (WIRE-13) */
    uint8_t mac[6];     /* zero = the port's, or one made from name and address */
    struct cc_conf cc;  /* congestion control */
    uint64_t addr_hold; /* ns for which queue pairs wait when their address is removed (GID-04) */
    struct config_weight weight[CONFIG_WEIGHTS]; /* of users that aren't here: 1 */
    unsigned nweight;
    char kernel_if[16]; /* the kernel resolves the neighbours of this interface; "" = urnic does */
    int worker;         /* -1 = spread */
    unsigned workers;   /* workers that serve it, `worker` first: 1, 2, 4 or 8; 0 = 1 */
    bool loopback;      /* accept 127/8 and ::1 as addresses */
    bool strict_resp;   /* REQ-28 */
    bool nak_confirm;   /* SEC-06 */
    bool rnr_on_rd_res; /* RNR-11 */
};

/* The kernel's interface that the device's port names by its iface= (dpdk's af_packet, af_xdp,
 * tap). False: it names none. */
bool settings_iface(const struct config_device *d, char *name, size_t size);

/* The kernel's interface that shares the port's wire (kernel=). False: there is none. */
bool settings_kernel(const struct config_device *d, char *name, size_t size);

/* The weight of a user's programs; 1 if the settings don't name the user. */
unsigned settings_weight(const struct config_device *d, uid_t uid);

#endif
