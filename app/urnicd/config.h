/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the daemon is told: a JSON file and flags; each flag has a key of the same name, and flags
 * win. Every error names the key and the value at fault and says what would be right.
 */
#ifndef URNICD_CONFIG_H
#define URNICD_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cc.h"
#include "io.h"
#include "log.h"
#include "wire.h"

#define CONFIG_DEVICES 16u
#define CONFIG_ADDRS   16u
#define CONFIG_WORKERS 16u
#define CONFIG_ERR     512u
#define CONFIG_HOLD_MS 5000u

enum config_idle { IDLE_AUTO, IDLE_POLL };

struct config_addr {
    struct wire_addr ip;
    uint8_t prefix; /* bits, in the address's own family */
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
    uint8_t dscp;       /* of who asks for no traffic class (WIRE-13) */
    uint8_t mac[6];     /* zero = the port's, or one made from name and address */
    struct cc_conf cc;  /* congestion control */
    uint64_t addr_hold; /* ns that queue pairs outlive the address they send from (GID-04) */
    char kernel_if[16]; /* whose neighbours the kernel resolves; "" = we do */
    int worker;         /* -1 = spread */
    bool loopback;      /* accept 127/8 and ::1 as addresses */
    bool strict_resp;   /* REQ-28 */
    bool nak_confirm;   /* SEC-06 */
    bool rnr_on_rd_res; /* RNR-11 */
};

struct config {
    char socket[108];
    bool socket_default; /* it is the user's own, which all his clients look for (SEC-34) */
    struct config_device dev[CONFIG_DEVICES];
    unsigned ndev;
    unsigned workers; /* 0 = min(devices, cores) */
    int cpu[CONFIG_WORKERS];
    unsigned ncpu;
    enum config_idle idle;
    enum log_level log_level;
    char log[512]; /* path of a file; "" = stderr, in the background syslog */
    bool foreground;
    int parent;    /* descriptor of a socket or pipe to the starting program; -1 = none */
    uint64_t seed; /* for drivers that draw random numbers; 0 = from the system */
};

/* Defaults, the socket path by the caller's privileges and environment included: "" when
 * $URNIC_SOCKET is too long for one, which is wrong if nothing else gives a path. */
void config_init(struct config *c);
/* Read a JSON file over `c`. 0, or -errno with a sentence in err (CONFIG_ERR octets). */
int config_load(struct config *c, const char *path, char *err);
/* One setting by its key, as a flag or a key of the file gives it ("workers", "2"). */
int config_set(struct config *c, const char *key, const char *value, char *err);
/* "name=urn0,port=SPEC,addr=10.0.0.1/24,...": the port's own options may follow port= directly. */
int config_device_parse(struct config_device *d, const char *text, char *err);
/* A device with every default. */
void config_device_init(struct config_device *d);
/* One setting of a device. */
int config_device_set(struct config_device *d, const char *key, const char *value, char *err);
/* The kernel's interface that the device's port names by its iface= (dpdk's af_packet, af_xdp,
 * tap). False: it names none. */
bool config_port_iface(const struct config_device *d, char *name, size_t size);
/* Make the paths that the daemon uses while it serves absolute. False: the working directory has no
 * name, or one of them would become too long; some may be absolute then. */
bool config_absolute(struct config *c);
/* Whole-file checks: names are unique, ports and addresses are there. Fills in names. */
int config_check(struct config *c, char *err);

#endif
