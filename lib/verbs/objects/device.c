/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The list of devices. A device that is in two lists, or open, is one object: programs compare
 * pointers. Without a daemon the list is empty, as on a machine without RDMA.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verbs_priv.h"

static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;
static struct uv_device *devices;

/* The device of this name, made if it is new. With the lock held. NULL: no memory. */
static struct uv_device *device_of(const struct urnic_device *u)
{
    struct uv_device *d;
    for (d = devices; d != NULL; d = d->next)
        if (strcmp(d->urnic.name, u->name) == 0 && d->urnic.guid == u->guid &&
            d->urnic.index == u->index)
            break;
    if (d == NULL) {
        d = calloc(1, sizeof(*d));
        if (d == NULL)
            return NULL;
        d->urnic = *u;
        d->dev.node_type = IBV_NODE_CA;
        d->dev.transport_type = IBV_TRANSPORT_IB;
        snprintf(d->dev.name, sizeof(d->dev.name), "%s", u->name);
        snprintf(d->dev.dev_name, sizeof(d->dev.dev_name), "uverbs%u", u->index);
        snprintf(d->dev.dev_path, sizeof(d->dev.dev_path), "/sys/class/infiniband_verbs/uverbs%u",
                 u->index);
        snprintf(d->dev.ibdev_path, sizeof(d->dev.ibdev_path), "/sys/class/infiniband/%s", u->name);
        d->next = devices;
        devices = d;
    }
    d->users++;
    return d;
}

static void device_put(struct uv_device *dev)
{
    if (--dev->users != 0)
        return;
    for (struct uv_device **p = &devices; *p != NULL; p = &(*p)->next) {
        if (*p == dev) {
            *p = dev->next;
            break;
        }
    }
    free(dev);
}

void uv_device_get(struct uv_device *dev)
{
    pthread_mutex_lock(&devices_lock);
    dev->users++;
    pthread_mutex_unlock(&devices_lock);
}

void uv_device_put(struct uv_device *dev)
{
    pthread_mutex_lock(&devices_lock);
    device_put(dev);
    pthread_mutex_unlock(&devices_lock);
}

struct ibv_device **ibv_get_device_list(int *num)
{
    struct urnic_device *found;
    int n, kept = 0;
    if (num != NULL)
        *num = 0;
    int err = urnic_get_device_list(&found, &n);
    if (err == -ENOMEM)
        return uv_null(err);
    struct ibv_device **list = calloc((size_t)n + 1, sizeof(*list));
    pthread_mutex_lock(&devices_lock);
    for (int i = 0; list != NULL && i < n; i++) {
        struct uv_device *d = device_of(&found[i]);
        if (d != NULL)
            list[kept++] = &d->dev;
    }
    pthread_mutex_unlock(&devices_lock);
    urnic_free_device_list(found);
    if (num != NULL)
        *num = kept;
    return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
    pthread_mutex_lock(&devices_lock);
    for (struct ibv_device **d = list; d != NULL && *d != NULL; d++)
        device_put((struct uv_device *)*d);
    pthread_mutex_unlock(&devices_lock);
    free(list);
}

const char *ibv_get_device_name(struct ibv_device *dev)
{
    return dev->name;
}

int ibv_get_device_index(struct ibv_device *dev)
{
    return (int)((struct uv_device *)dev)->urnic.index;
}

__be64 ibv_get_device_guid(struct ibv_device *dev)
{
    return ((struct uv_device *)dev)->urnic.guid;
}
