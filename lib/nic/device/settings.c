/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See settings.h.
 */
#include "settings.h"

#include <stdio.h>
#include <string.h>

#include "tap_spec.h"

bool settings_iface(const struct config_device *d, char *name, size_t size)
{
    const char *iface = strstr(d->port, "iface=");
    if (!iface || iface == d->port || !strchr(",:", iface[-1]))
        return false;
    iface += strlen("iface=");
    size_t len = strcspn(iface, ",");
    /* Some drivers use this key for a socket, and a port within brackets is only a part of the
     * device. */
    if (len == 0 || len >= size || memchr(iface, '/', len) ||
        memchr(d->port, '(', (size_t)(iface - d->port)))
        return false;
    memcpy(name, iface, len);
    name[len] = '\0';
    return true;
}

bool settings_kernel(const struct config_device *d, char *name, size_t size)
{
    char rest[IO_SPEC_MAX], tap[IF_NAMESIZE];
    if (tap_spec_split(d->port, rest, tap, NULL, 0) < 0 || !tap[0])
        return false;
    snprintf(name, size, "%s", tap);
    return true;
}

unsigned settings_weight(const struct config_device *d, uid_t uid)
{
    for (unsigned i = 0; i < d->nweight; i++) {
        if (d->weight[i].uid == uid)
            return d->weight[i].weight;
    }
    return 1;
}
