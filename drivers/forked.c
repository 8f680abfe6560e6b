/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ports whose sockets are bound or connected. The others can be opened several times.
 */
#include "forked.h"

#include <string.h>

#include "io.h"
#include "memif/memif.h"
#include "udp/udp.h"

void io_forked(const struct io_port *io)
{
    if (strcmp(io->ops->name, "memif") == 0)
        memif_port_forked(io);
    else if (strcmp(io->ops->name, "udp") == 0)
        udp_port_forked(io);
}
