/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Giving back the memory of clients. The kernel frees the last reference to a gigabyte for some
 * hundred milliseconds: large mappings go on a thread of their user's, piece by piece, and count
 * against his share until they are gone.
 */
#ifndef NIC_RECLAIM_H
#define NIC_RECLAIM_H

#include "memory.h"
#include "share.h"

#define RECLAIM_PARTS 3u

/* Free a mapping and give back what it was of the user's share. On the control thread.
 *
 * s     the user's share of the daemon; NULL = of no user: free it now
 * m     NULL is fine: then nothing happens
 * part  what it has of the share; n of them, RECLAIM_PARTS at most
 */
void reclaim(struct share *s, struct memory *m, const struct share_part *part, unsigned n);
/* Give back the shares of what has been freed. On the control thread. */
void reclaim_service(void);
/* Are there mappings that wait to be freed? */
bool reclaim_busy(void);
/* Wait until all mappings of this pool's users are freed and their shares given back: before the
 * pool goes. Any thread. */
void reclaim_finish(const struct share_pool *pool);

#endif
