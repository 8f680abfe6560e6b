/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The facts that an engine in a program needs about the daemon's device: a page that the daemon
 * writes and programs map for reading. The facts have a generation, which is a word of the page, so
 * a program sees a change by one load.
 *
 * The daemon makes `seq` odd, writes, and makes it even. A reader that finds an odd value, or a
 * value that has changed after its read, tries again. If a daemon dies while it writes, `seq` stays
 * odd for ever: the reader goes on with the facts that it had.
 */
#ifndef URNIC_IPC_FACTS_H
#define URNIC_IPC_FACTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define IPC_FACTS_PAGE  4096u /* octets to map */
#define IPC_FACTS_ADDRS 32u
#define IPC_FACTS_CC    1024u

/* ipc_facts.flags */
#define IPC_FACTS_LINK       0x01u /* the link is up */
#define IPC_FACTS_KERNEL_IP  0x02u /* the kernel's IP stack sends (io_caps.kernel_ip) */
#define IPC_FACTS_LOOPBACK   0x04u /* the addresses are loopback addresses (WIRE-29) */
#define IPC_FACTS_STRICT     0x08u /* REQ-28 */
#define IPC_FACTS_CONFIRM    0x10u /* SEC-06 */
#define IPC_FACTS_RNR_ON_RES 0x20u /* RNR-11 */

/* The facts. All integers in host order; unknown ones are 0. Grows at the end only. */
struct ipc_facts {
    uint64_t line_rate;    /* bit/s */
    uint64_t link_changes; /* number of times that the link came up or went down */
    uint64_t addr_hold;    /* ns that queue pairs outlive their address (GID-04) */
    uint32_t flags;        /* IPC_FACTS_* */
    uint32_t frame_max;    /* octets of the largest frame */
    uint32_t ip_mtu;       /* octets */
    uint32_t path_mtu;     /* 1..5, as verbs have it */
    uint16_t udp_sport;    /* of all frames sent; 0 = the sender's choice */
    uint16_t vlan;         /* VID of the tag of all frames sent; 0 = none */
    uint8_t mac[6];
    uint8_t dscp; /* for queue pairs that set no traffic class */
    uint8_t zero;
    uint32_t zero2;
    uint32_t addrs; /* bit i: gid[i] is an address of the device */
    uint8_t gid[IPC_FACTS_ADDRS]
               [16];       /* an IP address (GID-01); entries 2i and 2i + 1 of the table */
    char cc[IPC_FACTS_CC]; /* congestion control as text, with all its parameters */
};

#define IPC_FACTS_WORDS (sizeof(struct ipc_facts) / sizeof(uint64_t))

/* The page. */
struct ipc_facts_page {
    _Atomic uint32_t seq; /* generation, 2 apart; odd: being written */
    uint32_t size;        /* octets of the facts that this daemon knows */
    uint64_t spare[7];
    _Atomic uint64_t word[IPC_FACTS_WORDS];
};

_Static_assert(sizeof(struct ipc_facts) % 8 == 0, "the facts are words");
_Static_assert(sizeof(struct ipc_facts_page) <= IPC_FACTS_PAGE, "the facts fit into a page");

/* Daemon: publish these facts if any differs from the last ones. One thread at a time. Returns
 * whether one did. */
bool ipc_facts_write(struct ipc_facts_page *page, const struct ipc_facts *facts);

/* Is there another generation than `seen`, or one under way? Any thread; costs a load. */
static inline bool ipc_facts_differ(const struct ipc_facts_page *page, uint32_t seen)
{
    return atomic_load_explicit(&page->seq, memory_order_relaxed) != seen;
}

/* Program: read the facts.
 *
 * seen  the generation that was read last, 0 = none; becomes this one
 * out   the facts; those that an older daemon doesn't know are 0
 *
 * Returns whether there is a new generation and it has been read; else *out is as before. Never
 * waits: false also while the daemon is writing, so ask again later. Any thread. */
bool ipc_facts_read(const struct ipc_facts_page *page, uint32_t *seen, struct ipc_facts *out);

#endif
