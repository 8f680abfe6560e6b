/* SPDX-License-Identifier: BSD-3-Clause
 *
 * DPDK's own answer to most mistakes is "cannot attach the device". This file finds the cause
 * first: a missing capability, a NIC that the kernel's driver still has, no hugepages.
 */
#include "dpdk_hint.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libgen.h>
#include <linux/capability.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CAP_BIT(c) (1ull << (c))

static const struct dpdk_need needs[] = {
    [DPDK_PCI] = {0, "", ""}, /* access to /dev/vfio decides */
    /* DPDK writes the MAC address back at every start, which takes CAP_NET_ADMIN. */
    [DPDK_AF_PACKET] = {CAP_BIT(CAP_NET_RAW) | CAP_BIT(CAP_NET_ADMIN),
                        "CAP_NET_RAW and CAP_NET_ADMIN", "cap_net_raw,cap_net_admin"},
    /* libxdp asks the kernel for a program by its number: CAP_SYS_ADMIN, CAP_BPF is not enough.
     * The frame buffers are locked memory, more than is anybody's by default. */
    [DPDK_AF_XDP] = {CAP_BIT(CAP_NET_RAW) | CAP_BIT(CAP_NET_ADMIN) | CAP_BIT(CAP_SYS_ADMIN) |
                         CAP_BIT(CAP_IPC_LOCK),
                     "CAP_NET_RAW, CAP_NET_ADMIN, CAP_SYS_ADMIN and CAP_IPC_LOCK",
                     "cap_net_raw,cap_net_admin,cap_sys_admin,cap_ipc_lock"},
    [DPDK_TAP] = {CAP_BIT(CAP_NET_ADMIN), "CAP_NET_ADMIN", "cap_net_admin"},
    [DPDK_VDEV] = {0, "", ""},
};

/* Drivers under which DPDK can take a PCI device. The first three hand the whole device to user
 * space; the others share it with the kernel. */
static const char *const usable[] = {"vfio-pci",  "uio_pci_generic", "igb_uio",
                                     "mlx4_core", "mlx5_core",       "mana"};

const struct dpdk_need *dpdk_hint_need(enum dpdk_kind kind)
{
    return &needs[kind];
}

uint64_t dpdk_hint_effective(void)
{
    struct __user_cap_header_struct hdr = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}};

    if (syscall(SYS_capget, &hdr, data) < 0)
        return 0;
    return data[0].effective | (uint64_t)data[1].effective << 32;
}

uint64_t dpdk_hint_lockable(uint64_t effective)
{
    struct rlimit rl;

    if (effective & CAP_BIT(CAP_IPC_LOCK))
        return UINT64_MAX;
    if (getrlimit(RLIMIT_MEMLOCK, &rl) < 0)
        return 0;
    rl.rlim_cur = rl.rlim_max;
    setrlimit(RLIMIT_MEMLOCK, &rl);
    return rl.rlim_cur == RLIM_INFINITY ? UINT64_MAX : rl.rlim_cur;
}

/* Where a link of the device's folder leads, by its last name: "driver" to "vfio-pci". */
static const char *pci_link(const struct dpdk_spec *spec, const char *sysfs, const char *name,
                            char *link, size_t size)
{
    char path[320];

    snprintf(path, sizeof(path), "%s/bus/pci/devices/%s/%s", sysfs, spec->name, name);
    ssize_t n = readlink(path, link, size - 1);
    link[n > 0 ? n : 0] = '\0';
    return n > 0 ? basename(link) : "none";
}

bool dpdk_hint_physical(const struct dpdk_spec *spec, const char *sysfs)
{
    char link[256], path[320], name[32] = "";

    if (spec->kind != DPDK_PCI)
        return false;
    if (strstr(pci_link(spec, sysfs, "driver", link, sizeof(link)), "uio"))
        return true;
    /* vfio makes groups up when it has to do without an IOMMU, and names them so. */
    snprintf(path, sizeof(path), "%s/bus/pci/devices/%s/iommu_group/name", sysfs, spec->name);
    FILE *f = fopen(path, "re");
    if (f) {
        if (!fgets(name, sizeof(name), f))
            name[0] = '\0';
        fclose(f);
    }
    return !strncmp(name, "vfio-noiommu", 12);
}

/* Can a socket on this interface join the fanout group of that number and with these flags? */
static bool joins_fanout(int ifindex, unsigned id, unsigned flags)
{
    struct sockaddr_ll sll = {
        .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = ifindex};
    uint32_t arg = id | flags << 16;
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
    bool joined = fd >= 0 && bind(fd, (struct sockaddr *)&sll, sizeof(sll)) == 0 &&
                  setsockopt(fd, SOL_PACKET, PACKET_FANOUT, &arg, sizeof(arg)) == 0;

    if (fd >= 0)
        close(fd);
    return joined;
}

bool dpdk_hint_fanout_taken(int ifindex, int pid)
{
    /* As DPDK chooses them. */
    unsigned id = (unsigned)(pid ^ ifindex) & 0xffff;
    unsigned flags = PACKET_FANOUT_HASH | PACKET_FANOUT_FLAG_DEFRAG | PACKET_FANOUT_FLAG_ROLLOVER;

    /* The kernel says EINVAL to many things: a group with a number of its choice must be possible.
     */
    return joins_fanout(ifindex, 0, flags | PACKET_FANOUT_FLAG_UNIQUEID) &&
           !joins_fanout(ifindex, id, flags);
}

static int check_pci(const struct dpdk_spec *spec, const char *sysfs, unsigned long long huge,
                     char *err, size_t err_size)
{
    char path[320], link[256];
    const char *driver;

    snprintf(path, sizeof(path), "%s/bus/pci/devices/%s", sysfs, spec->name);
    if (access(path, F_OK) < 0) {
        snprintf(err, err_size, "no PCI device %s here; `dpdk-devbind.py --status` lists them",
                 spec->name);
        return -ENODEV;
    }
    driver = pci_link(spec, sysfs, "driver", link, sizeof(link));
    for (size_t i = 0; i < sizeof(usable) / sizeof(usable[0]); i++) {
        if (strcmp(driver, usable[i]))
            continue;
        if (huge || spec->huge == DPDK_HUGE_OFF)
            return 0;
        snprintf(err, err_size,
                 "%s needs hugepages and none is free; `sysctl vm.nr_hugepages=512` gives 1 GiB",
                 spec->name);
        return -ENOMEM;
    }
    snprintf(err, err_size,
             "%s is bound to the driver \"%s\"; give it to user space, unless you are logged in "
             "through it: `modprobe vfio-pci && dpdk-devbind.py --bind=vfio-pci %s` (doc/nic.md)",
             spec->name, driver, spec->name);
    return -EBUSY;
}

int dpdk_hint_check(const struct dpdk_spec *spec, const char *sysfs, uint64_t effective,
                    unsigned long long free_hugepages, char *err, size_t err_size)
{
    const struct dpdk_need *need = &needs[spec->kind];

    if (need->caps & ~effective) {
        snprintf(err, err_size,
                 "dpdk:%s: opening an %s port takes %s; run as root, or `setcap %s+ep` on urnicd, "
                 "or AmbientCapabilities= in its systemd unit",
                 spec->name, dpdk_kind_name(spec->kind), need->names, need->args);
        return -EPERM;
    }
    if (spec->kind == DPDK_PCI)
        return check_pci(spec, sysfs, free_hugepages, err, err_size);
    return 0;
}
