/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The peers of a program's queue pairs, as far as the daemon has to know them: which frames the
 * switch passes on (pair.h), and which user a peer belongs to (claim.h). On the device's worker.
 */
#ifndef NIC_ENGINE_PEER_H
#define NIC_ENGINE_PEER_H

#include <stdbool.h>
#include <stdint.h>

struct client;
struct engine_av;

/* Set the peer of a queue pair of the client's own channel, by its number: the peer's queue pair (0
 * = the same one as before), reached over av->dmac.
 *
 * 0; -EINVAL: the queue pair is none of this channel, or has had no peer before; -EADDRINUSE: the
 * connection manager has given the peer to another user (SEC-33); -EDQUOT: the user, or the
 * channel, has its share; -ENOMEM. After an error the peer is unchanged; but after -EADDRINUSE the
 * queue pair may have ended, because another worker has given the peer away meanwhile. */
int engine_peer_set(struct client *c, uint32_t qpn, uint32_t peer_qpn, const struct engine_av *av,
                    uint64_t now);
/* Remove its peer. No effect if it has none. */
void engine_peer_drop(struct client *c, uint32_t qpn);
/* Remove the peers of ENGINE_PEERS_DROP of the client's queue pairs. Returns whether more are left
 * (SHM-12). */
#define ENGINE_PEERS_DROP 64u
bool engine_peer_drop_some(struct client *c);
/* Does a queue pair of another user claim the same peer? `owner` has the channel. */
bool engine_peer_is_shared(const struct client *owner, uint32_t qpn);

#endif
