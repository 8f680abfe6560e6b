/* SPDX-License-Identifier: BSD-3-Clause
 *
 * DPDK's own answer to most mistakes is "cannot attach the device". This file finds the cause
 * first: a missing capability, or a name that DPDK doesn't know. dpdk_pci.c does so for PCI
 * devices.
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

#include "dpdk_pci.h"

#define CAP_BIT(c) (1ull << (c))

static const struct dpdk_need needs[] = {
    [DPDK_PCI] = {0, "", ""}, /* access to /dev/vfio decides */
    /* DPDK writes the MAC address back at every start, which takes CAP_NET_ADMIN. */
    [DPDK_AF_PACKET] = {CAP_BIT(CAP_NET_RAW) | CAP_BIT(CAP_NET_ADMIN),
                        "CAP_NET_RAW and CAP_NET_ADMIN", "cap_net_raw,cap_net_admin"},
    /* libxdp asks the kernel for a program by its number: CAP_SYS_ADMIN, CAP_BPF is not enough. The
     * frame buffers are locked memory, more than any user's default limit. */
    [DPDK_AF_XDP] = {CAP_BIT(CAP_NET_RAW) | CAP_BIT(CAP_NET_ADMIN) | CAP_BIT(CAP_SYS_ADMIN) |
                         CAP_BIT(CAP_IPC_LOCK),
                     "CAP_NET_RAW, CAP_NET_ADMIN, CAP_SYS_ADMIN and CAP_IPC_LOCK",
                     "cap_net_raw,cap_net_admin,cap_sys_admin,cap_ipc_lock"},
    [DPDK_TAP] = {CAP_BIT(CAP_NET_ADMIN), "CAP_NET_ADMIN", "cap_net_admin"},
    [DPDK_VDEV] = {0, "", ""},
};

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

void dpdk_hint_machine(struct dpdk_machine *m)
{
    *m = (struct dpdk_machine){.root = "", .effective = dpdk_hint_effective(), .uid = geteuid()};
    m->lockable = dpdk_hint_lockable(m->effective);
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
    /* The number and flags that DPDK chooses. */
    unsigned id = (unsigned)(pid ^ ifindex) & 0xffff;
    unsigned flags = PACKET_FANOUT_HASH | PACKET_FANOUT_FLAG_DEFRAG | PACKET_FANOUT_FLAG_ROLLOVER;

    /* The kernel returns EINVAL for many reasons, so check that a group with a number of its choice
     * is possible. */
    return joins_fanout(ifindex, 0, flags | PACKET_FANOUT_FLAG_UNIQUEID) &&
           !joins_fanout(ifindex, id, flags);
}

/* The PCI address of the device of a class's folder, such as /sys/class/net/eth0; "" = none. */
static void pci_of(const struct dpdk_machine *m, const char *class, const char *name,
                   char address[64])
{
    char path[320], link[320];
    snprintf(path, sizeof(path), "%s/sys/class/%s/%.63s/device", m->root, class, name);
    ssize_t n = readlink(path, link, sizeof(link) - 1);
    link[n > 0 ? n : 0] = '\0';
    snprintf(address, 64, "%.63s", n > 0 && strchr(basename(link), ':') ? basename(link) : "");
}

/* Is the name, which DPDK doesn't know, that of a kernel interface or of an RDMA device? */
static int check_name(const struct dpdk_spec *spec, const struct dpdk_machine *m, char *err,
                      size_t err_size)
{
    static const char *const prefixes[] = {"net_", "eth_", "virtio_user"};
    char path[320], address[64];
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
        if (!strncmp(spec->name, prefixes[i], strlen(prefixes[i])))
            return 0;
    snprintf(path, sizeof(path), "%s/sys/class/infiniband/%s", m->root, spec->name);
    bool rdma = access(path, F_OK) == 0;
    pci_of(m, "infiniband", spec->name, address);
    if (rdma && *address)
        snprintf(err, err_size,
                 "dpdk:%s: is an RDMA device, no device of DPDK's; its NIC is dpdk:%s", spec->name,
                 address);
    else
        snprintf(err, err_size,
                 "dpdk:%s: no device of DPDK's; a kernel interface is "
                 "dpdk:net_af_packet0,iface=%s, a whole NIC its PCI address",
                 spec->name, spec->name);
    return -ENODEV;
}

int dpdk_hint_check(const struct dpdk_spec *spec, const struct dpdk_machine *m, uint32_t frame_max,
                    char *err, size_t err_size)
{
    const struct dpdk_need *need = &needs[spec->kind];
    if (need->caps & ~m->effective) {
        snprintf(err, err_size,
                 "dpdk:%s: opening an %s port takes %s; run as root, or `setcap %s+ep` on urnicd, "
                 "or AmbientCapabilities= in its systemd unit",
                 spec->name, dpdk_kind_name(spec->kind), need->names, need->args);
        return -EPERM;
    }
    if (spec->kind == DPDK_PCI)
        return dpdk_pci_check(spec, m, frame_max, err, err_size);
    return spec->kind == DPDK_VDEV ? check_name(spec, m, err, err_size) : 0;
}
