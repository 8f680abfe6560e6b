/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Control protocol: requests of tools without a context, from IPC_STATS on.
 */
#ifndef URNIC_IPC_ADMIN_H
#define URNIC_IPC_ADMIN_H

#include "ipc_verbs.h"

struct ipc_counter {
    char name[40];
    uint64_t value;
};

struct ipc_stats {
    struct ipc_hdr hdr;
    uint32_t count;
    uint32_t next; /* the next request's `first`; 0 = end of the list */
    struct ipc_counter counter[];
};

struct ipc_qp_filter {
    struct ipc_hdr hdr;
    char device[IPC_NAME_MAX];
    uint32_t qpn;    /* 0 = all */
    uint32_t pid;    /* 0 = all */
    uint32_t states; /* bit mask of states, 0 = all */
    uint32_t types;  /* bit mask of types, 0 = all */
    uint32_t first;  /* `next` of the answer before, which may have held none; 0 to begin */
    uint32_t zero;
};

#define IPC_ALPHA_BITS 15 /* fraction bits of cc_alpha */

/* Another user's: dest_qpn, epsn, msn, sq_psn, una_psn, av and error are 0 (SEC-33). */
#define IPC_QP_F_HIDDEN 1u
/* Queue pairs of several users name the same peer, and none got it by the connection manager. */
#define IPC_QP_F_SHARED 2u
/* Its engine is in its program. */
#define IPC_QP_F_PROGRAM 4u
/* That program has not answered within 100 ms. One entry stands for all its queue pairs. It has
 * only pid, uid, comm and worker, and qpn if the request named one. */
#define IPC_QP_F_SILENT 8u

struct ipc_qp_info {
    uint32_t qpn, dest_qpn, type, state;
    uint32_t epsn, msn, sq_psn, una_psn;
    uint32_t sq_used, rq_used, inflight_packets, rd_atomic_out;
    uint64_t tx_packets, rx_packets, tx_bytes, rx_bytes;
    uint64_t retransmits, timeouts, naks, rnr_naks, cc_rate;
    uint32_t pid, uid;
    uint16_t worker;
    uint16_t flags;    /* IPC_QP_F_* */
    uint16_t cc_alpha; /* IPC_ALPHA_BITS fraction bits */
    uint8_t recovery;  /* enum engine_recovery */
    uint8_t recovery_agreed;
    struct ipc_av av;
    char comm[16];
    char cc[16];
    char error[256];
};

struct ipc_qp_list {
    struct ipc_hdr hdr;
    uint32_t count;
    uint32_t next; /* cursor; 0 = end of the list */
    struct ipc_qp_info qp[];
};

struct ipc_capture {
    struct ipc_hdr hdr;
    char device[IPC_NAME_MAX];
    uint32_t snaplen; /* 0 = whole frames */
    uint32_t flags;   /* IPC_CAPTURE_DROPS */
    uint64_t limit;   /* octets, 0 = none */
    uint32_t qpn;     /* only frames from or to this queue pair; 0 = all */
    uint32_t zero;
};
#define IPC_CAPTURE_DROPS 1u /* frames that the device drops name the counter in a comment */

/* Also for an incomplete file, with the reason as status: it lacks at least `lost` packets. */
struct ipc_captured {
    struct ipc_hdr hdr;
    uint64_t packets, octets, lost;
};

struct ipc_addr_admin {
    struct ipc_hdr hdr;
    char device[IPC_NAME_MAX];
    uint8_t ip[16];
    uint32_t prefix_len;
    uint32_t zero;
};

/* Bits of ipc_link_admin.mask: the fields to set. */
#define IPC_LINK_UP        0x01u
#define IPC_LINK_RATE      0x02u
#define IPC_LINK_DELAY     0x04u
#define IPC_LINK_LOSS      0x08u
#define IPC_LINK_REORDER   0x10u
#define IPC_LINK_DUPLICATE 0x20u
#define IPC_LINK_CORRUPT   0x40u
#define IPC_LINK_ECN       0x80u

struct ipc_link_admin { /* an emulated link's faults; parts per million */
    struct ipc_hdr hdr;
    char device[IPC_NAME_MAX];
    uint32_t mask; /* IPC_LINK_* */
    uint32_t up;
    uint64_t rate, delay_ns;
    uint32_t loss_ppm, reorder_ppm, duplicate_ppm, corrupt_ppm, ecn_ppm, zero;
};

#endif
