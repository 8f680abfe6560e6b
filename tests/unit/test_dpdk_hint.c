/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages before DPDK is called: capabilities, and the state of a PCI device on a made-up machine.
 */
#include "dpdk_hint.h"
#include "dpdk_pci.h"
#include "unit.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BIT(c) (1ull << (c))

/* NICs in a fake tree: one of the kernel's, several for user space with an IOMMU, one shared, one
 * without driver, and several without an IOMMU. The script makes them in a new folder, in the
 * kernel's form. */
static const char tree[] =
    "set -e; D=sys/bus/pci/devices; G=sys/kernel/iommu_groups;"
    "mkdir -p $D $G dev/vfio proc/sys/kernel lib/modules/6.1 sys/kernel/mm/hugepages proc/7/fd;"
    "echo 6.1 >proc/sys/kernel/osrelease; echo other >proc/7/comm;"
    "nic() { mkdir -p $D/$1; [ $2 = none ] || ln -s ../../drivers/$2 $D/$1/driver; };"
    "group() { mkdir -p $G/$2/devices; echo $3 >$G/$2/name; ln -s "
    "../../../../kernel/iommu_groups/$2 "
    "  $D/$1/iommu_group; mkdir -p $G/$2/devices/$1; };"
    "pages() { mkdir -p sys/kernel/mm/hugepages/hugepages-$1kB;"
    "  echo $2 >sys/kernel/mm/hugepages/hugepages-$1kB/free_hugepages; };"
    "nic 0000:01:00.0 ixgbe; nic 0000:01:00.1 vfio-pci; nic 0000:02:00.0 mlx5_core;"
    "nic 0000:03:00.0 none; nic 0000:04:00.0 uio_pci_generic; nic 0000:04:00.1 vfio-pci;"
    "nic 0000:05:00.0 vfio-pci; nic 0000:05:00.1 e1000; nic 0000:06:00.0 vfio-pci;"
    "mkdir -p $D/0000:04:00.0/uio/uio3;"
    "group 0000:01:00.1 11 DMAR; group 0000:04:00.1 14 vfio-noiommu; group 0000:05:00.0 15 DMAR;"
    "mkdir $G/15/devices/0000:05:00.1; group 0000:06:00.0 16 DMAR;"
    ": >dev/vfio/vfio; : >dev/vfio/11; : >dev/vfio/noiommu-14; : >dev/vfio/15;"
    "mkdir -p sys/class/net/v0 sys/class/infiniband/mlx5_0;"
    "ln -s ../../../0000:02:00.0 sys/class/infiniband/mlx5_0/device;"
    "pages 2048 0; pages 1048576 0;";

static char root[64];

static void sh(const char *script)
{
    char cmd[4000];
    snprintf(cmd, sizeof(cmd), "cd %s && { %s\n}", root, script);
    ck_assert_int_eq(system(cmd), 0);
}

static void make_tree(void)
{
    snprintf(root, sizeof(root), "%s/urnic-sys-XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(root));
    sh(tree);
}

static void remove_tree(void)
{
    char cmd[100];
    snprintf(cmd, sizeof(cmd), "rm -r %s", root);
    ck_assert_int_eq(system(cmd), 0);
}

static int check(const char *args, const struct dpdk_machine *m, char err[600])
{
    struct dpdk_spec spec;
    ck_assert_int_eq(dpdk_spec_parse(args, &spec, err, 600), 0);
    err[0] = '\0';
    return dpdk_hint_check(&spec, m, spec.mtu ? spec.mtu + 14 : 1514, err, 600);
}

#define ALL_CAPS   UINT64_MAX
#define MANY_PAGES "pages() { echo $2 >sys/kernel/mm/hugepages/hugepages-$1kB/free_hugepages; };"
#define PAGES_2M   MANY_PAGES "pages 2048 512"
#define PAGES_1G   MANY_PAGES "pages 1048576 1"
#define NO_MODULES ":"
#define HAS_UIO    "echo kernel/drivers/uio/uio_pci_generic.ko: >lib/modules/6.1/modules.dep"
#define HAS_NOIOMMU                                                                                \
    "mkdir -p sys/module/vfio/parameters;"                                                         \
    ": >sys/module/vfio/parameters/enable_unsafe_noiommu_mode"
#define NO_IOMMU "rm -r sys/kernel/iommu_groups;"

static const struct {
    const char *args;
    uint64_t caps;
    const char *machine; /* the rest of the machine */
    int rc;
    const char *says;
    uint64_t lockable; /* octets; 0 = as many as there are */
} cases[] = {
    {"net_af_packet0,iface=v0", 0, "", -EPERM, "CAP_NET_RAW", 0},
    {"net_af_packet0,iface=v0", BIT(CAP_NET_ADMIN), "", -EPERM, "setcap cap_net_raw", 0},
    {"net_af_packet0,iface=v0", BIT(CAP_NET_RAW), "", -EPERM, "CAP_NET_ADMIN", 0},
    {"net_af_packet0,iface=v0", BIT(CAP_NET_RAW) | BIT(CAP_NET_ADMIN), "", 0, NULL, 0},
    {"net_af_xdp0,iface=v0", BIT(CAP_NET_RAW) | BIT(CAP_NET_ADMIN) | BIT(CAP_BPF), "", -EPERM,
     "CAP_SYS_ADMIN", 0},
    {"net_af_xdp0,iface=v0",
     BIT(CAP_NET_RAW) | BIT(CAP_NET_ADMIN) | BIT(CAP_SYS_ADMIN) | BIT(CAP_IPC_LOCK), "", 0, NULL,
     0},
    {"net_tap0", 0, "", -EPERM, "CAP_NET_ADMIN", 0},
    {"net_tap0", BIT(CAP_NET_ADMIN), "", 0, NULL, 0},
    {"net_memif0", 0, "", 0, NULL, 0},
    {"v0", 0, "", -ENODEV, "dpdk:net_af_packet0,iface=v0", 0},
    {"mlx5_0", 0, "", -ENODEV, "dpdk:0000:02:00.0", 0},
    {"0000:09:00.0", ALL_CAPS, PAGES_2M, -ENODEV, "dpdk-devbind.py --status", 0},
    {"0000:01:00.0", ALL_CAPS, PAGES_2M, -EBUSY, "bound to the driver \"ixgbe\"", 0},
    {"0000:01:00.0", ALL_CAPS, PAGES_2M, -EBUSY, "--bind=vfio-pci 0000:01:00.0", 0},
    {"0000:03:00.0", ALL_CAPS, PAGES_2M, -EBUSY, "--bind=vfio-pci 0000:03:00.0", 0},
    {"0000:03:00.0", 0, NO_IOMMU HAS_UIO, -EBUSY, "--bind=uio_pci_generic 0000:03:00.0", 0},
    {"0000:03:00.0", 0, NO_IOMMU HAS_NOIOMMU, -EBUSY, "noiommu_mode && dpdk-devbind.py", 0},
    {"0000:03:00.0", 0, NO_IOMMU, -EBUSY, "net_af_packet0", 0},
    {"0000:03:00.0", 0, /* a virtual function: no legacy interrupt */
     NO_IOMMU HAS_UIO "; head -c 64 /dev/zero >sys/bus/pci/devices/0000:03:00.0/config", -EBUSY,
     "net_af_packet0", 0},
    {"0000:01:00.1", ALL_CAPS, "", -ENOMEM, "vm.nr_hugepages=512", 0},
    {"0000:01:00.1", ALL_CAPS, MANY_PAGES "pages 2048 4", -ENOMEM, "free are 4 of 2 MiB", 0},
    {"0000:01:00.1", ALL_CAPS, PAGES_1G, 0, NULL, 0},
    {"0000:01:00.1", ALL_CAPS, PAGES_2M, 0, NULL, 0},
    {"0000:01:00.1", 0, PAGES_2M, 0, NULL, 64 << 20},
    {"0000:01:00.1,urnic_mtu=4200", 0, PAGES_2M, -ENOMEM, "LimitMEMLOCK=infinity", 8 << 20},
    {"0000:01:00.1", 0, PAGES_1G, -ENOMEM, "1024 MiB of locked memory", 64 << 20},
    {"0000:01:00.1,urnic_huge=off", 0, "", 0, NULL, 0},
    {"0000:01:00.1", 0, PAGES_2M "; rm dev/vfio/11", -ENOENT, "/dev/vfio/11", 0},
    {"0000:05:00.0", ALL_CAPS, PAGES_2M, -EBUSY, "with 0000:05:00.1, which the driver \"e1000\"",
     0},
    {"0000:06:00.0", ALL_CAPS, PAGES_2M, -ENOENT, "/dev/vfio/16", 0},
    {"0000:04:00.0", ALL_CAPS, PAGES_2M, 0, NULL, 0},
    {"0000:04:00.0", 0, PAGES_2M, -EPERM, "run as root", 0},
    {"0000:04:00.0", ALL_CAPS, PAGES_2M "; ln -s /dev/uio3 proc/7/fd/5", -EBUSY,
     "process 7 (other)", 0},
    {"02:00.0", 0, PAGES_2M, 0, NULL, 0}, /* shared with the kernel: stays bound */
};

START_TEST(the_cause_is_named_before_dpdk_is_asked)
{
    struct dpdk_machine m = {.root = root,
                             .effective = cases[_i].caps,
                             .lockable = cases[_i].lockable ? cases[_i].lockable : UINT64_MAX};
    char err[600];
    sh(*cases[_i].machine ? cases[_i].machine : ":");
    int rc = check(cases[_i].args, &m, err);
    ck_assert_msg(rc == cases[_i].rc, "%s: %d %s", cases[_i].args, rc, err);
    if (rc)
        ck_assert_msg(strstr(err, cases[_i].says), "%s: said: %s", cases[_i].args, err);
}
END_TEST

/* The message to a user without access to the group names the file. */
START_TEST(a_user_is_told_the_file)
{
    struct dpdk_machine m = {.root = root, .lockable = UINT64_MAX, .uid = geteuid()};
    char err[600];
    sh(PAGES_2M "; chmod 755 .; rm dev/vfio/11; ln -s /proc/1/mem dev/vfio/11");
    if (geteuid() == 0) {
        ck_assert_int_eq(setegid(65534), 0);
        ck_assert_int_eq(seteuid(65534), 0);
        m.uid = 65534;
    }
    int rc = check("0000:01:00.1", &m, err);
    if (getuid() == 0)
        ck_assert_int_eq(seteuid(0), 0);
    ck_assert_msg(rc == -EACCES && strstr(err, "/dev/vfio/11 (Permission denied)") &&
                      strstr(err, "`chown "),
                  "%d %s", rc, err);
}
END_TEST

/* Two processes, or two ports, never have the same device by uio. */
START_TEST(a_uio_device_has_one_owner)
{
    struct dpdk_machine m = {.root = root, .effective = ALL_CAPS, .lockable = UINT64_MAX};
    struct dpdk_spec uio, vfio;
    char err[600] = "";
    int first, second;
    ck_assert_int_eq(dpdk_spec_parse("0000:04:00.0", &uio, err, sizeof(err)), 0);
    ck_assert_int_eq(dpdk_spec_parse("0000:01:00.1", &vfio, err, sizeof(err)), 0);
    ck_assert_int_eq(dpdk_pci_lock(&uio, &m, &first, err, sizeof(err)), 0);
    ck_assert_int_ge(first, 0);
    ck_assert_int_eq(dpdk_pci_lock(&uio, &m, &second, err, sizeof(err)), -EBUSY);
    ck_assert_int_eq(second, -1);
    ck_assert_msg(strstr(err, "0000:04:00.0 is in use by another process"), "%s", err);
    sh("ln -s /dev/uio3 proc/7/fd/5");
    ck_assert_int_eq(dpdk_pci_lock(&uio, &m, &second, err, sizeof(err)), -EBUSY);
    ck_assert_msg(strstr(err, "process 7 (other)"), "%s", err);
    sh("rm proc/7/fd/5");
    close(first);
    ck_assert_int_eq(dpdk_pci_lock(&uio, &m, &first, err, sizeof(err)), 0);
    close(first);
    ck_assert_int_eq(dpdk_pci_lock(&vfio, &m, &first, err, sizeof(err)), 0);
    ck_assert_int_eq(first, -1); /* vfio sees to it */
}
END_TEST

START_TEST(without_an_iommu_addresses_are_physical)
{
    static const struct {
        const char *args;
        bool physical;
    } nics[] = {
        {"0000:01:00.1", false}, {"0000:02:00.0", false}, {"0000:04:00.0", true},
        {"0000:04:00.1", true},  {"0000:09:00.0", false}, {"net_memif0", false},
    };
    struct dpdk_machine m = {.root = root};
    struct dpdk_spec spec;
    char err[400];
    for (size_t i = 0; i < sizeof(nics) / sizeof(nics[0]); i++) {
        ck_assert_int_eq(dpdk_spec_parse(nics[i].args, &spec, err, sizeof(err)), 0);
        ck_assert_msg(dpdk_pci_physical(&spec, &m) == nics[i].physical, "%s", nics[i].args);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("dpdk_hint");
    TCase *tc = tcase_create("hint");

    tcase_add_checked_fixture(tc, make_tree, remove_tree);
    tcase_add_loop_test(tc, the_cause_is_named_before_dpdk_is_asked, 0,
                        (int)(sizeof(cases) / sizeof(cases[0])));
    tcase_add_test(tc, a_user_is_told_the_file);
    tcase_add_test(tc, a_uio_device_has_one_owner);
    tcase_add_test(tc, without_an_iommu_addresses_are_physical);
    suite_add_tcase(s, tc);
    return unit_run(s);
}
