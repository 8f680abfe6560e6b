/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The checks of `urnic doctor` for a device for DPDK, by the functions of the driver.
 */
#include "doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dpdk_hint.h"
#include "dpdk_pci.h"

#define FRAME_USUAL 1514u

static uint32_t frame_of(const struct doctor_subject *s)
{
    return s->dpdk.mtu ? s->dpdk.mtu + 14 : FRAME_USUAL;
}

void doctor_hugepages(const struct doctor_subject *s, struct doctor_finding *f)
{
    struct dpdk_machine m;
    char have[80];
    struct dpdk_spec spec = s->dpdk;
    spec.kind = DPDK_PCI;
    dpdk_hint_machine(&m);
    uint64_t need = dpdk_spec_memory(&spec, frame_of(s)),
             free = dpdk_pci_pages(&m, have, sizeof(have));
    snprintf(f->text, sizeof(f->text), "free hugepages: %s; a port takes %llu MiB", have,
             (unsigned long long)(need >> 20));
    if (free >= need || spec.huge == DPDK_HUGE_OFF)
        return;
    f->level = DOCTOR_MISSING;
    snprintf(f->mend, sizeof(f->mend),
             "sysctl vm.nr_hugepages=512 && mkdir -p /dev/hugepages && "
             "mount -t hugetlbfs nodev /dev/hugepages");
}

void doctor_iommu(const struct doctor_subject *s, struct doctor_finding *f)
{
    struct dpdk_machine m;
    (void)s;
    dpdk_hint_machine(&m);
    if (dpdk_pci_has_iommu(&m))
        doctor_say(f, DOCTOR_GOOD, "there is an IOMMU: vfio-pci keeps a NIC within our memory", "");
    else
        doctor_say(
            f, DOCTOR_NOTE,
            "no IOMMU: a PCI NIC can then reach all memory, and only root can give it to "
            "DPDK, by uio_pci_generic or vfio's no-IOMMU mode",
            "boot with intel_iommu=on iommu=pt (Intel); switch the IOMMU on in the firmware");
}

void doctor_device(const struct doctor_subject *s, struct doctor_finding *f)
{
    struct dpdk_machine m;
    char why[sizeof(f->text)];
    if (!s->dpdk.name[0]) {
        doctor_say(f, DOCTOR_NOTE, "no PCI address was named", "dpdk-devbind.py --status-dev net");
        return;
    }
    dpdk_hint_machine(&m);
    m.effective = doctor_rights();
    if (dpdk_hint_check(&s->dpdk, &m, frame_of(s), why, sizeof(why)) < 0)
        doctor_refused(f, why);
    else
        snprintf(f->text, sizeof(f->text), "nothing is in DPDK's way to %s", s->dpdk.name);
}
