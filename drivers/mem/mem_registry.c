/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The emulated links of this process by name: made by their first port, gone with the last port
 * and the last mem_link_get. Lock order: registry, then link.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "io_arg.h"
#include "mem_internal.h"

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static struct mem_link *registry; /* under registry_lock */

static struct mem_link *find(const char *name)
{
    for (struct mem_link *link = registry; link; link = link->next)
        if (strcmp(link->name, name) == 0)
            return link;
    return NULL;
}

static struct mem_link *link_new(const char *name, const struct mem_link_config *cfg,
                                 struct fault *faults)
{
    struct mem_link *link = calloc(1, sizeof(*link));
    pthread_mutexattr_t attr;
    if (!link)
        return NULL;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP); /* held for a burst only: spin */
    pthread_mutex_init(&link->lock, &attr);
    pthread_mutexattr_destroy(&attr);
    memcpy(link->name, name, strlen(name) + 1); /* its length has been checked */
    link->cfg = *cfg;
    link->later = cfg->faults;
    link->faults = faults;
    link->stride = (sizeof(struct mem_buf) + cfg->frame + 63) & ~(size_t)63;
    link->next = registry;
    registry = link;
    return link;
}

static void socket_free(struct mem_socket *s)
{
    if (!s)
        return;
    if (s->fd >= 0)
        close(s->fd);
    free(s->arena);
    free(s->pool);
    free(s->ring);
    free(s);
}

static void link_free(struct mem_link *link)
{
    struct mem_link **p = &registry;
    while (*p != link)
        p = &(*p)->next;
    *p = link->next;
    for (unsigned i = 0; i < link->top; i++)
        socket_free(link->sockets[i]);
    free(link->drops);
    fault_free(link->faults);
    pthread_mutex_destroy(&link->lock);
    free(link);
}

/* Make a socket for a port, with its frame buffers. NULL: see errno. */
static struct mem_socket *socket_new(const struct mem_link *link, unsigned index)
{
    struct mem_socket *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    s->arena = aligned_alloc(64, link->cfg.slots * link->stride);
    s->pool = malloc(link->cfg.slots * sizeof(struct mem_buf *));
    if (s->fd < 0 || !s->arena || !s->pool) {
        int why = errno;
        socket_free(s);
        errno = why;
        return NULL;
    }
    s->plugged = true;
    s->faults = link->later;
    s->rng = link->cfg.seed * 0x100000001B3u + index;
    while (s->pool_n < link->cfg.slots) {
        /* The last buffer pushed is used first, so that the lowest addresses stay warm. */
        size_t k = link->cfg.slots - 1 - s->pool_n;
        struct mem_buf *buf = (struct mem_buf *)(void *)(s->arena + k * link->stride);
        buf->owner = index;
        buf->len = buf->gap = 0;
        s->pool[s->pool_n++] = buf;
    }
    return s;
}

/* Plug the port in at the lowest free place. Under both locks. */
static int attach(struct mem_link *link, const struct io_open_params *params, unsigned *index)
{
    unsigned i = 0;
    while (i < link->top && link->sockets[i]->open)
        i++;
    if (i == MEM_LINK_PORTS)
        return -ENOSPC;
    if (i == link->top) {
        link->sockets[i] = socket_new(link, i);
        if (!link->sockets[i])
            return -errno;
        link->top++;
    }
    struct mem_socket *s = link->sockets[i];
    s->frame_max = (uint32_t)link->cfg.frame;
    if (params->frame_max && params->frame_max < s->frame_max)
        s->frame_max = params->frame_max;
    memcpy(s->mac, params->mac, 6);
    if (memcmp(s->mac, "\0\0\0\0\0\0", 6) == 0) {
        uint32_t h = mem_hash(link->name, strlen(link->name));
        uint8_t mac[6] = {
            0x02, 0x4d, (uint8_t)(h >> 16), (uint8_t)(h >> 8), (uint8_t)h, (uint8_t)(i + 1)};
        memcpy(s->mac, mac, 6);
    }
    s->open = true;
    s->armed = s->wants_room = s->paused = s->over_xoff = false;
    s->rx_oversize = 0;
    s->busy_until = 0;
    link->deserted = false;
    link->opened++;
    mem_links_update(link);
    *index = i;
    return 0;
}

int mem_registry_attach(const char *args, const struct io_open_params *params,
                        struct mem_link **out, unsigned *index, char *err, size_t err_size)
{
    struct mem_link_config cfg;
    char name[MEM_LINK_NAME];
    int rc;
    pthread_mutex_lock(&registry_lock);
    size_t len = strcspn(args, ",");
    memcpy(name, args, len < sizeof(name) ? len : 0);
    name[len < sizeof(name) ? len : 0] = '\0';
    struct mem_link *link = find(name);
    rc = mem_spec_parse(args, link ? &link->cfg : NULL, params->seed, name, &cfg, err, err_size);
    if (rc)
        goto out;
    if (!link) {
        struct fault *faults;
        rc = mem_rules_open(&cfg, &faults, err, err_size);
        if (rc)
            goto out;
        link = link_new(name, &cfg, faults);
        if (!link)
            fault_free(faults);
    }
    if (!link) {
        rc = io_fail(err, err_size, -ENOMEM, "mem: no memory for link '%s'", name);
        goto out;
    }
    pthread_mutex_lock(&link->lock);
    rc = attach(link, params, index);
    pthread_mutex_unlock(&link->lock);
    if (rc == 0) {
        link->refs++;
        *out = link;
    } else {
        if (link->refs == 0)
            link_free(link);
        io_fail(err, err_size, rc, "mem: link '%s': %s", name,
                rc == -ENOSPC   ? "all of its ports are taken"
                : rc == -ENOMEM ? "no memory for frame buffers"
                                : strerror(-rc));
    }
out:
    pthread_mutex_unlock(&registry_lock);
    return rc;
}

struct mem_link *mem_link_get(const char *name)
{
    pthread_mutex_lock(&registry_lock);
    struct mem_link *link = find(name);
    if (link)
        link->refs++;
    pthread_mutex_unlock(&registry_lock);
    return link;
}

void mem_link_put(struct mem_link *link)
{
    pthread_mutex_lock(&registry_lock);
    if (--link->refs == 0)
        link_free(link);
    pthread_mutex_unlock(&registry_lock);
}
