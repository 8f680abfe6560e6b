/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Was a queue pair right to give up? The link knows: its rule sees each frame that is sent, its
 * drop log each one that was lost. Direction 0 is the requester's.
 */
#ifndef URNIC_TESTS_LOSS_ORACLE_H
#define URNIC_TESTS_LOSS_ORACLE_H

#include "pcapng_file.h"
#include "vnet.h"

struct loss_entry {
    uint64_t time;
    uint32_t psn;
    uint8_t dir;
    bool ackreq;
    bool read_data; /* a READ response: tells of its own PSN only */
};

struct loss_try {
    uint64_t time;
    uint32_t epsn; /* the responder's expected PSN at that time */
};

struct loss_oracle {
    struct vnet *net;
    struct vnet_host *host, *peer; /* requester and responder: hosts 0 and 1 */
    struct qp *qp, *peer_qp;
    uint64_t log_next;
    uint32_t una;          /* oldest unacknowledged PSN, the last time it moved */
    struct loss_try *sent; /* its transmissions since then */
    size_t nsent, sent_cap;
    struct loss_entry *lost; /* frames lost since then */
    size_t nlost, lost_cap;
    struct pcapng *capture; /* the test's; if set, all frames as sent, then the lost ones again,
                               with the reason as comment. Interface = direction */
};

/* Watch a requester (of host 0) and its responder (of host 1) from now on: installs the link's
 * rule. */
void loss_oracle_start(struct loss_oracle *o, struct vnet *net, struct qp *qp, struct qp *peer_qp,
                       uint32_t sq_psn);
void loss_oracle_free(struct loss_oracle *o);

/* Read the drop log; call it often enough that the log doesn't overflow. */
void loss_oracle_poll(struct loss_oracle *o);

/* The queue pair has failed with RETRY_EXC_ERR after `retries` retries: was that right (TMR-05)?
 * The stuck PSN must have been sent again that often, and before each next try the log must show
 * the loss that explains it: of the packet itself, of the answer, or of the packet that asked for
 * the answer. Returns 0, or -1 with the reason in why. */
int loss_oracle_exhausted(const struct loss_oracle *o, unsigned retries, char *why,
                          size_t why_size);

#endif
