/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writing to an eventfd that another process holds too, without ever blocking.
 */
#ifndef URNIC_MEMIF_KICK_H
#define URNIC_MEMIF_KICK_H

#include <linux/aio_abi.h>
#include <stdbool.h>

struct memif_kick {
    aio_context_t aio; /* AIO context; 0 = not made yet */
    int null;          /* /dev/null, for reads of no octets */
    bool plain;        /* no AIO: poll and write */
};

/* A kick costs nothing until the first is made. */
#define MEMIF_KICK_INIT ((struct memif_kick){.null = -1})

/* Make `event` readable. Returns whether it is. */
bool memif_kick(struct memif_kick *k, int event);

/* Free the resources of kicks; `k` may be used again. */
void memif_kick_close(struct memif_kick *k);

#endif
