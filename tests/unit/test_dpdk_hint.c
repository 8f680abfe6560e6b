/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is said before DPDK is asked: capabilities, and the state of a PCI device in a made-up /sys.
 */
#include "dpdk_hint.h"
#include "unit.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define BIT(c) (1ull << (c))

static char sysfs[64];

/* Six NICs: one of the kernel's, one for user space, one that is shared, one without driver, and
 * two without an IOMMU. */
static void make_sysfs(void)
{
    static const char *const nics[][2] = {
        {"0000:01:00.0", "ixgbe"},           {"0000:01:00.1", "vfio-pci"},
        {"0000:02:00.0", "mlx5_core"},       {"0000:03:00.0", NULL},
        {"0000:04:00.0", "uio_pci_generic"}, {"0000:04:00.1", "vfio-pci"}};
    char cmd[300];

    snprintf(sysfs, sizeof(sysfs), "%s/urnic-sys-XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(sysfs));
    for (size_t i = 0; i < sizeof(nics) / sizeof(nics[0]); i++) {
        snprintf(cmd, sizeof(cmd), "mkdir -p %s/bus/pci/devices/%s", sysfs, nics[i][0]);
        ck_assert_int_eq(system(cmd), 0);
        if (!nics[i][1])
            continue;
        snprintf(cmd, sizeof(cmd), "ln -s ../../drivers/%s %s/bus/pci/devices/%s/driver",
                 nics[i][1], sysfs, nics[i][0]);
        ck_assert_int_eq(system(cmd), 0);
    }
    static const char *const groups[][2] = {{"0000:01:00.1", "vfio"},
                                            {"0000:04:00.1", "vfio-noiommu"}};
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        snprintf(cmd, sizeof(cmd),
                 "cd %s/bus/pci/devices/%s && mkdir iommu_group && echo %s >iommu_group/name",
                 sysfs, groups[i][0], groups[i][1]);
        ck_assert_int_eq(system(cmd), 0);
    }
}

static void remove_sysfs(void)
{
    char cmd[100];

    snprintf(cmd, sizeof(cmd), "rm -r %s", sysfs);
    ck_assert_int_eq(system(cmd), 0);
}

static const struct {
    const char *args;
    uint64_t caps;
    unsigned long long huge;
    int rc;
    const char *says;
} cases[] = {
    {"net_af_packet0,iface=v0", 0, 0, -EPERM, "CAP_NET_RAW"},
    {"net_af_packet0,iface=v0", BIT(CAP_NET_ADMIN), 0, -EPERM, "setcap cap_net_raw"},
    {"net_af_packet0,iface=v0", BIT(CAP_NET_RAW), 0, -EPERM, "CAP_NET_ADMIN"},
    {"net_af_packet0,iface=v0", BIT(CAP_NET_RAW) | BIT(CAP_NET_ADMIN), 0, 0, NULL},
    {"net_af_xdp0,iface=v0", BIT(CAP_NET_RAW) | BIT(CAP_NET_ADMIN) | BIT(CAP_BPF), 0, -EPERM,
     "CAP_SYS_ADMIN"},
    {"net_af_xdp0,iface=v0",
     BIT(CAP_NET_RAW) | BIT(CAP_NET_ADMIN) | BIT(CAP_SYS_ADMIN) | BIT(CAP_IPC_LOCK), 0, 0, NULL},
    {"net_tap0", 0, 0, -EPERM, "CAP_NET_ADMIN"},
    {"net_tap0", BIT(CAP_NET_ADMIN), 0, 0, NULL},
    {"net_memif0", 0, 0, 0, NULL},
    {"0000:09:00.0", 0, 1 << 30, -ENODEV, "dpdk-devbind.py --status"},
    {"0000:01:00.0", 0, 1 << 30, -EBUSY, "bound to the driver \"ixgbe\""},
    {"0000:01:00.0", 0, 1 << 30, -EBUSY, "--bind=vfio-pci 0000:01:00.0"},
    {"0000:03:00.0", 0, 1 << 30, -EBUSY, "--bind=vfio-pci 0000:03:00.0"},
    {"0000:01:00.1", 0, 0, -ENOMEM, "vm.nr_hugepages"},
    {"0000:01:00.1", 0, 1 << 30, 0, NULL},
    {"0000:01:00.1,urnic_huge=off", 0, 0, 0, NULL},
    {"02:00.0", 0, 1 << 30, 0, NULL}, /* shared with the kernel: stays bound */
};

START_TEST(the_cause_is_named_before_dpdk_is_asked)
{
    struct dpdk_spec spec;
    char err[400] = "";
    int rc;

    ck_assert_int_eq(dpdk_spec_parse(cases[_i].args, &spec, err, sizeof(err)), 0);
    rc = dpdk_hint_check(&spec, sysfs, cases[_i].caps, cases[_i].huge, err, sizeof(err));
    ck_assert_msg(rc == cases[_i].rc, "%s: %d %s", cases[_i].args, rc, err);
    if (rc)
        ck_assert_msg(strstr(err, cases[_i].says), "%s: said: %s", cases[_i].args, err);
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
    struct dpdk_spec spec;
    char err[400];

    for (size_t i = 0; i < sizeof(nics) / sizeof(nics[0]); i++) {
        ck_assert_int_eq(dpdk_spec_parse(nics[i].args, &spec, err, sizeof(err)), 0);
        ck_assert_msg(dpdk_hint_physical(&spec, sysfs) == nics[i].physical, "%s", nics[i].args);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("dpdk_hint");
    TCase *tc = tcase_create("hint");

    tcase_add_checked_fixture(tc, make_sysfs, remove_sysfs);
    tcase_add_loop_test(tc, the_cause_is_named_before_dpdk_is_asked, 0,
                        (int)(sizeof(cases) / sizeof(cases[0])));
    tcase_add_test(tc, without_an_iommu_addresses_are_physical);
    suite_add_tcase(s, tc);
    return unit_run(s);
}
