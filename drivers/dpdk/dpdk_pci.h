/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Can DPDK use a PCI device? Checked before DPDK is asked: the kernel's driver, the IOMMU group,
 * access rights, hugepages, lockable memory, another process. DPDK itself answers most of these
 * with "cannot attach", or hangs.
 */
#ifndef URNIC_DPDK_PCI_H
#define URNIC_DPDK_PCI_H

#include "dpdk_hint.h"

/* Can this process use the device, with buffers for frames of `frame_max` octets? Returns 0, or
 * -errno with a sentence in `err` that ends with the remedy. -ENODEV: no such device; -EBUSY: the
 * kernel or another process has it; -EPERM, -EACCES: no rights; -ENOMEM: hugepages or lockable
 * memory are too few; -EOPNOTSUPP: the device goes past the IOMMU. */
int dpdk_pci_check(const struct dpdk_spec *spec, const struct dpdk_machine *m, uint32_t frame_max,
                   char *err, size_t err_size);

/* Does the device use physical addresses: bound to a uio driver, or to vfio-pci without an IOMMU?
 */
bool dpdk_pci_physical(const struct dpdk_spec *spec, const struct dpdk_machine *m);

/* Is the device present, and bound to a driver that DPDK can use? */
bool dpdk_pci_is_there(const struct dpdk_spec *spec, const struct dpdk_machine *m);

/* Take the device's lock, which the kernel drops with this process: uio lets any number of
 * processes open a device, and each would reset it. *fd is then the lock, or -1 where none is
 * needed. Returns 0, or -EBUSY with a sentence in `err`. */
int dpdk_pci_lock(const struct dpdk_spec *spec, const struct dpdk_machine *m, int *fd, char *err,
                  size_t err_size);

/* The command that gives the device to user space on this machine; by vfio-pci where there is an
 * IOMMU, else by a uio driver that this kernel has. */
void dpdk_pci_advise(const struct dpdk_spec *spec, const struct dpdk_machine *m, char *out,
                     size_t size);

/* Octets of free hugepages of all sizes, and in words: "24 of 2 MiB, 1 of 1024 MiB", or "none". */
uint64_t dpdk_pci_pages(const struct dpdk_machine *m, char *text, size_t size);

/* Is there an IOMMU that the kernel uses? */
bool dpdk_pci_has_iommu(const struct dpdk_machine *m);

#endif
