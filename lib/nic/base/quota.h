/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Limits of a device and quotas of a client (SEC-22). A request above a quota gets -EDQUOT or
 * -ENOMEM, and only that client is affected. A user with many clients has a share of the resources
 * of device and daemon (share.h).
 */
#ifndef NIC_QUOTA_H
#define NIC_QUOTA_H

/* of a device */
#define LIMIT_QP      65536u
#define LIMIT_CQ      65536u
#define LIMIT_SRQ     16384u
#define LIMIT_PD      65536u
#define LIMIT_MR      262144u
#define LIMIT_MW      65536u
#define LIMIT_QP_WR   16384u
#define LIMIT_SGE     16u
#define LIMIT_INLINE  256u
#define LIMIT_CQE     1048576u
#define LIMIT_SRQ_WR  32768u
#define LIMIT_RD_ATOM 32u
#define LIMIT_MR_SIZE (1ull << 40)
#define LIMIT_MCAST   64u
#define LIMIT_CM_ID   65536u
#define LIMIT_LISTEN  2048u
#define LIMIT_BLOCK   1024u /* of queue pair numbers, for channels of programs */
/* Neighbours: for each user, those that its queue pairs send to or that it waits for. */
#define LIMIT_NEIGH 4096u
#define LIMIT_EVENT 262144u /* kept by the daemon, of 400 octets */
#define LIMIT_NEIGH_RESERVE                                                                        \
    256u /* more for administrators, and for requests from unknown hosts                           \
          */

/* of the daemon: resources that users share (share.h), besides the kernel's limits */
#define LIMIT_MAPPINGS 60000u /* of 65,530 that a process may have */
#define QUOTA_CAPTURES 16u    /* of disconnected clients, still ending */

/* of a client */
/* All connections, except those of administrators. A user gets half of the number that others leave
 * while seven eighths are free; then an eighth, and two in any case. Subordinate users count as
 * their owner. */
#define QUOTA_CLIENTS         1024u
#define QUOTA_CLIENTS_RESERVE 64u /* more for administrators */
#define QUOTA_HANDLES         131072u
#define QUOTA_PD              16384u
#define QUOTA_MR              65536u
#define QUOTA_MW              16384u
#define QUOTA_CQ              16384u
#define QUOTA_SRQ             4096u
#define QUOTA_QP              16384u
#define QUOTA_CM_ID           32768u
#define QUOTA_CHANNELS        4096u         /* of either kind: rsockets has one per connection */
#define QUOTA_QUEUES          65536u        /* doorbell numbers: a power of two */
#define QUOTA_QUEUE_OCTETS    (4ull << 30)  /* of queues; the engine has copies of the same size */
#define QUOTA_SLAB_OCTETS     (64ull << 30) /* address space; pages count when they are touched */
#define QUOTA_FOREIGN_OCTETS  (4ull << 40)  /* address space; of a user's share as well */
#define QUOTA_MAPPINGS        8192u         /* of 65,530 that a process may have */
#define QUOTA_SEALING         16u           /* requests that wait for a slab's seals */
#define QUOTA_SETTLING        256u          /* requests that wait for earlier frames */
#define QUOTA_ASKING          16u           /* requests that wait for engines in programs */
#define QUOTA_DEFERRED        256u          /* requests that wait for a neighbour */
#define QUOTA_UNREAD          128u          /* descriptors sent to the client and not received */

/* of a round, so that no client stalls others (SHM-08) */
#define ROUND_DOORBELLS 64u /* taken out of a context's ring */
#define ROUND_ENTRIES   64u /* taken out of one queue */
#define ROUND_QUEUES    64u /* queues of one context that are served */
#define ROUND_OWED      64u /* events of one context that are tried again */

#endif
