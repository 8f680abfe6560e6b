/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Freeing the memory of clients. The kernel takes some hundred milliseconds to free the last
 * reference to a gigabyte. So a thread for each user frees large mappings piece by piece; they
 * count against the user's share until they are gone.
 */
#ifndef NIC_RECLAIM_H
#define NIC_RECLAIM_H

#include "memory.h"
#include "share.h"

#define RECLAIM_PARTS 3u

/* Free a mapping and return its part of the user's share. On the control thread.
 *
 * `s` is the user's share of the daemon; NULL = of no user: free it now. `m` may be NULL: then
 * nothing happens. `part` is the mapping's part of the share; n of them, RECLAIM_PARTS at most. */
void reclaim(struct share *s, struct memory *m, const struct share_part *part, unsigned n);
/* Return the shares of freed mappings. On the control thread. */
void reclaim_service(void);
/* Are mappings waiting to be freed? */
bool reclaim_busy(void);
/* Wait until all mappings of this pool's users are freed and their shares returned: before the pool
 * is freed. Any thread. */
void reclaim_finish(const struct share_pool *pool);

#endif
