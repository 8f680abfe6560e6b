/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A client's queue pair, as requests and the connection manager handle it. On its worker.
 */
#ifndef NIC_CLIENT_QP_H
#define NIC_CLIENT_QP_H

#include <stdint.h>

#include "engine.h"
#include "ipc.h"

#define CLIENT_SL_MAX 15 /* 4 bits, of which a VLAN's tag has room for 3 (WIRE-03) */

struct client;
struct client_qp;
struct claim_key;
struct device;

/* The engine's form of a client's address vector. -EINVAL: no such local address, or one of another
 * family than the destination. */
int av_from_ipc(const struct device *d, const struct ipc_av *in, struct engine_av *out);
/* A client's form of the engine's address vector. */
/* The same for a destination that a client wants. -EINVAL, too: no host can have the address. */
int av_wanted(const struct device *d, const struct ipc_av *in, struct engine_av *out);
void av_to_ipc(const struct device *d, const struct engine_av *in, struct ipc_av *out);

/* A queue pair of this client by its number; O(1). It may belong to another context of the same
 * process on the same device: same process id and user, as the kernel told when they connected. (A
 * process whose id the kernel can't name has only its own.) NULL = none, or another client's
 * (SEC-26). */
struct client_qp *client_qp_of_process(struct client *c, uint32_t qpn);

/* May a queue pair of this client name the peer? 0, or -EADDRINUSE: a connection of another user
 * has it (SEC-33), which is counted, logged, and asked whether it is alive. */
int client_may_name(struct client *c, const struct claim_key *key, uint64_t now);

/* Modify a queue pair, its rings and its next hop. With QPA_AV in m->mask `av` is the destination,
 * with a known MAC. -errno of engine_qp_modify; -EADDRINUSE: the peer's queue pair belongs to a
 * connection of another user (SEC-33). */
int client_qp_modify(struct client *c, struct client_qp *qp, const struct ipc_qp_modify *m,
                     const struct engine_av *av, uint64_t now);
/* A datagram queue pair joins or leaves a group, and the port with it (UD-11). -EINVAL, -ENOMEM,
 * -ENOSPC, -EDQUOT (the user's share of the groups). */
int client_qp_attach(struct client *c, struct client_qp *qp, const struct wire_addr *group,
                     uint64_t now);
int client_qp_detach(struct client *c, struct client_qp *qp, const struct wire_addr *group,
                     uint64_t now);
/* Move it to ERR from any state. */
void client_qp_fail(struct client *c, struct client_qp *qp, uint64_t now);
/* Destroy it, after its last frames to the peer are sent (QP-11). Its connection stays, without a
 * queue pair. */
void client_qp_destroy(struct client *c, struct client_qp *qp, uint64_t now);

#endif
