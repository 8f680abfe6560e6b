/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic doctor`: declarations shared by its files. doctor.c has the list of checks, and those of
 * the machine; doctor_iface.c has those of the interface of a dpdk: port, doctor_nic.c those of a
 * DPDK device, and doctor_try.c has urnicd open the port.
 */
#ifndef URNIC_DOCTOR_H
#define URNIC_DOCTOR_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dpdk_spec.h"

enum doctor_level { DOCTOR_GOOD, DOCTOR_NOTE, DOCTOR_MISSING };

/* The result of a check; before it, level GOOD and empty texts. */
struct doctor_finding {
    enum doctor_level level;
    bool decides;   /* urnicd has opened the port, or refused it */
    char text[512]; /* finding */
    char mend[512]; /* command that helps; "" = none */
};

/* The port that the user wants. */
struct doctor_subject {
    unsigned kinds;        /* doctor.c */
    struct dpdk_spec dpdk; /* specification of a dpdk: port; of a udp: port only its interface */
    bool everything;       /* no port was named */
    const char *rest;      /* path after memif: or pcap: */
    const char *spec;      /* arguments of a dpdk: port, as given; NULL = none */
    char tap[IF_NAMESIZE]; /* interface of kernel=; "" = none */
};

/* Fill in the finding; the texts are copied, and cut to the room that they have. */
void doctor_say(struct doctor_finding *f, enum doctor_level level, const char *text,
                const char *mend);
/* The first line of a small file, without its end. False: it can't be read. */
bool doctor_read(const char *path, char *buf, size_t size);

/* Report a sentence of the driver as missing. The remedy is the command in it, between `...`. */
void doctor_refused(struct doctor_finding *f, const char *text);

/* ---- checks of a device (doctor_nic.c) ---- */

/* Are enough hugepages free for a PCI port? */
void doctor_hugepages(const struct doctor_subject *s, struct doctor_finding *f);
/* Is there an IOMMU? */
void doctor_iommu(const struct doctor_subject *s, struct doctor_finding *f);
/* Does the device exist, and may this process use it? */
void doctor_device(const struct doctor_subject *s, struct doctor_finding *f);

/* ---- the port as a whole (doctor_try.c) ---- */

/* The capabilities of a urnicd that this user starts: the user's, and those of its file. */
uint64_t doctor_rights(void);
/* Does urnicd open it? Takes up to a minute. */
void doctor_try(const struct doctor_subject *s, struct doctor_finding *f);

/* ---- the kernel's interface beside a port (doctor_kernel.c) ---- */

/* Can the daemon make or use the tap interface that kernel= names? */
void doctor_kernel(const struct doctor_subject *s, struct doctor_finding *f);

/* ---- checks of an interface (doctor_iface.c) ---- */

/* Does it exist, and is it up? */
void doctor_iface(const struct doctor_subject *s, struct doctor_finding *f);
/* Report its path MTU. */
void doctor_mtu(const struct doctor_subject *s, struct doctor_finding *f);
/* Can the kernel be kept from urnicd's packets? It answers RoCE packets to an address of its own
 * with ICMP port unreachable. */
void doctor_claim(const struct doctor_subject *s, struct doctor_finding *f);
/* Report the kernel's addresses on it. */
void doctor_addresses(const struct doctor_subject *s, struct doctor_finding *f);

/* ---- checks of a udp: port (doctor_udp.c) ---- */

/* Has the interface addresses? */
void doctor_udp_addresses(const struct doctor_subject *s, struct doctor_finding *f);
/* Is UDP port 4791 free on all of them? */
void doctor_udp_port(const struct doctor_subject *s, struct doctor_finding *f);
/* Do sockets get buffers that are large enough? */
void doctor_udp_buffer(const struct doctor_subject *s, struct doctor_finding *f);
/* Can a firewall be in the way? */
void doctor_udp_firewall(const struct doctor_subject *s, struct doctor_finding *f);

#endif
