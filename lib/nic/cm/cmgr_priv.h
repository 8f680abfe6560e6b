/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The connection manager's state, shared by the files of this folder alone. On the device's worker.
 */
#ifndef NIC_CMGR_PRIV_H
#define NIC_CMGR_PRIV_H

#include <sys/queue.h>

#include "cm.h"
#include "cmgr.h"
#include "gsi.h"

struct cm_channel;
struct peers;
struct services;

#define CMGR_READY    256u
#define CMGR_WAITING  64u
#define CMGR_AWAITING 256u
#define CMID_UD_QKEY  0x01234567u /* RDMA CM's Q_Key for its port space: RDMA_UDP_QKEY (CM-31) */

struct mad_out {
    struct cm_out out;
    uint8_t mac[6];
    uint64_t give_up;
};

struct cmgr {
    struct gsi gsi; /* first */
    struct device *device;
    struct cm *cm;
    struct services *services; /* of all workers of the device; NULL = it has one */
    struct peers *peers;       /* of all workers of the device; NULL = it has one */
    struct cm_channel *channels;
    unsigned nfull; /* channels with events that their sockets have refused */
    uint64_t now;   /* of the round: callbacks of the engine have no clock */
    LIST_HEAD(, cm_id) displacing;
    LIST_HEAD(, cm_id) awaiting[CMGR_AWAITING]; /* by their queue pairs (cmid_await) */
    bool comm_est; /* one of their queue pairs has got its first request */
    bool dirty;    /* it has got a call or a datagram: events and datagrams may be ready */
    unsigned first_ready, nready, nwaiting;
    uint64_t retry_at;
    struct mad_out ready[CMGR_READY], waiting[CMGR_WAITING];
};

#endif
