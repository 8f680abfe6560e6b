/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See settings.h.
 */
#include "settings.h"

#include <string.h>

bool settings_iface(const struct config_device *d, char *name, size_t size)
{
    const char *iface = strstr(d->port, "iface=");

    if (!iface)
        return false;
    iface += strlen("iface=");
    size_t len = strcspn(iface, ",");
    if (len == 0 || len >= size)
        return false;
    memcpy(name, iface, len);
    name[len] = '\0';
    return true;
}
