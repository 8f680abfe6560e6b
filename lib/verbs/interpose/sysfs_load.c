/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Asks the daemon for the facts that /sys shows about its devices.
 */
#include "sysfs_load.h"

#include <errno.h>
#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ucma.h"

static int load(struct sysfs_device *to, struct ucma_dev *d)
{
    struct urnic_device_attr attr;
    char name[IF_NAMESIZE];
    int err = ucma_dev_open(d, false);
    if (err == 0)
        err = urnic_query_device(d->ctx, &attr);
    if (err == 0)
        err = urnic_query_port(d->ctx, &to->port);
    if (err < 0)
        return err;
    to->dev = d->dev;
    memcpy(to->fw_ver, attr.fw_ver, sizeof(to->fw_ver));
    to->ngids = ucma_dev_gids(d, to->gids);
    bool kernels = to->port.ifindex != 0 && if_indextoname(to->port.ifindex, name) != NULL;
    snprintf(to->netdev, sizeof(to->netdev), "%s", kernels ? name : d->dev.name);
    return to->ngids < 0 ? to->ngids : 0;
}

int sysfs_load(struct sysfs_device **out)
{
    struct ucma_dev *devs[UCMA_DEVICES];
    int kept = 0;
    *out = NULL;
    ucma_lock();
    int n = ucma_dev_scan(devs);
    if (n > 0)
        *out = calloc((size_t)n, sizeof(**out));
    for (int i = 0; i < n && *out != NULL; i++)
        if (load(&(*out)[kept], devs[i]) == 0)
            kept++;
    ucma_unlock();
    return kept;
}

bool sysfs_at(const char *path, struct sysfs_node *node, char *clean, size_t size)
{
    struct sysfs_device *devs;
    char here[PATH_MAX];
    if (!sysfs_claims(path))
        return false;
    int saved = errno;
    if (clean == NULL) {
        clean = here;
        size = sizeof(here);
    }
    bool ours = sysfs_clean(clean, size, path) && sysfs_claims(clean);
    if (ours) {
        int n = sysfs_load(&devs);
        sysfs_lookup(devs, n, clean, node);
        free(devs);
        ours = node->kind != SYSFS_NONE;
    }
    errno = saved;
    return ours;
}
