/* SPDX-License-Identifier: BSD-3-Clause */
#include "program_channel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "channel.h"
#include "device.h"
#include "direct.h"
#include "ipc_channel.h"
#include "ipc_engine.h"
#include "udp.h"
#include "worker.h"

static int fail(char *why, const char *what, int rc)
{
    snprintf(why, IPC_ENGINE_WHY, "its channel: %s: %s", what, strerror(-rc));
    return rc;
}

/* With the facts and the rings mapped: *m is the port's if this succeeds. */
static int open_end(struct program_channel *p, const struct ipc_engine_channel *ch,
                    struct channel_memory *m, char *why)
{
    uint32_t block;
    int rc = ch->mapped(ch->arg, &block, p->uplink.key);
    if (rc < 0)
        return fail(why, "the daemon", rc);
    int event = fcntl(ch->event_fd, F_DUPFD_CLOEXEC, 0);
    if (event < 0)
        return fail(why, "its eventfd", -errno);
    rc = channel_open(CHANNEL_PROGRAM, m, event, 0, &p->uplink.io);
    if (rc < 0) {
        close(event);
        return fail(why, "its port", rc);
    }
    p->uplink.channel = p->uplink.io;
    p->uplink.block = block;
    return 0;
}

/* Receive the daemon's sockets, at most one for each address. Returns the number of the port's
 * sockets; *bell is the caller's. */
static unsigned take_sockets(const struct program_channel *p, const struct ipc_engine_channel *ch,
                             struct io_port **udp, int *bell)
{
    struct ipc_engine_socket_given given;
    struct io_addr addr;
    unsigned n = 0;
    for (;; n++) {
        int fd, again;
        if (ch->socket(ch->arg, n, &given, &fd, &again) < 0)
            return n;
        if (n == 0)
            *bell = again;
        memcpy(addr.b, given.addr, sizeof(addr.b));
        given.iface[sizeof(given.iface) - 1] = '\0';
        if ((n == 0 && io_udp_open_lent(given.iface, given.trains, p->uplink.facts.mac, udp) < 0) ||
            io_udp_take(*udp, &addr, fd) < 0) {
            close(fd);
            return 0;
        }
    }
}

/* On a device whose port is the kernel's: send and receive without the daemon where possible.
 * Otherwise all frames go over the channel. */
static void open_sockets(struct program_channel *p, const struct ipc_engine_channel *ch)
{
    struct ipc_engine_socket_given none;
    struct io_port *udp = NULL;
    int bell = -1, fd, other;
    if (p->no_sockets || !(p->uplink.facts.flags & IPC_FACTS_KERNEL_IP))
        return;
    if (take_sockets(p, ch, &udp, &bell) > 0 &&
        direct_open(p->uplink.channel, udp, bell, p->uplink.block, &p->uplink.io) == 0)
        return;
    (void)ch->socket(ch->arg, IPC_ENGINE_NO_SOCKET, &none, &fd, &other);
    if (udp)
        udp->ops->close(udp);
    if (bell >= 0)
        close(bell);
}

int program_channel_open(struct program_channel *p, const struct ipc_engine_channel *ch,
                         struct config_device *conf, char *why)
{
    struct channel_memory m;
    void *page = mmap(NULL, IPC_FACTS_PAGE, PROT_READ, MAP_SHARED, ch->facts_fd, 0);
    if (page == MAP_FAILED)
        return fail(why, "the page of facts", -errno);
    p->page = p->uplink.page = page;
    p->daemon = *ch;
    int rc = channel_memory_map(&m, ch->memory_fd, ch->slots, ch->frame_max);
    if (rc < 0)
        fail(why, "its memory", rc);
    else
        rc = open_end(p, ch, &m, why);
    if (rc == 0) {
        rc = uplink_begin(&p->uplink, conf);
        if (rc < 0) {
            fail(why, "the facts", rc);
        } else {
            open_sockets(p, ch);
        }
    }
    if (rc < 0) {
        channel_memory_free(&m);
        program_channel_close(p);
    }
    return rc;
}

struct growth {
    struct device *device;
    struct channel_memory *m;
    uint32_t slots;
    int status;
};

static void grow(void *arg, uint64_t now)
{
    struct growth *g = arg;
    (void)now;
    g->status = channel_grow(g->device->uplink->channel, g->m);
    if (g->status == 0)
        device_share_window(g->device, g->slots);
}

int program_channel_grow(struct program_channel *p, struct device *d, uint32_t slots)
{
    struct ipc_engine_opened opened;
    struct channel_memory m;
    struct growth g = {.device = d, .m = &m};
    uint64_t key[2];
    uint32_t block;
    int fd;
    if (p->uplink.io != p->uplink.channel)
        return -ENOTSUP;
    int rc = p->daemon.grow(p->daemon.arg, slots, &opened, &fd);
    if (rc < 0)
        return rc;
    rc = channel_memory_map(&m, fd, opened.slots, opened.frame_max);
    close(fd);
    if (rc == 0)
        rc = p->daemon.mapped(p->daemon.arg, &block, key);
    if (rc == 0) {
        g.slots = opened.slots;
        worker_call(d->worker, grow, &g);
        rc = g.status < 0 ? -ENODEV : 0; /* the daemon has moved */
    }
    channel_memory_free(&m);
    return rc;
}

struct numbers {
    struct engine *engine;
    bool wanted;
    uint32_t block;
    uint64_t key[2];
};

static void look_at_numbers(void *arg, uint64_t now)
{
    struct numbers *n = arg;
    (void)now;
    n->wanted = engine_wants_block(n->engine);
}

static void add_numbers(void *arg, uint64_t now)
{
    const struct numbers *n = arg;
    (void)now;
    (void)engine_add_block(n->engine, n->block, n->key);
}

void program_channel_numbers(struct program_channel *p, struct device *d)
{
    struct numbers n = {.engine = d->engine};
    worker_call(d->worker, look_at_numbers, &n);
    if (n.wanted && p->daemon.block(p->daemon.arg, &n.block, n.key) == 0)
        worker_call(d->worker, add_numbers, &n);
}

void program_channel_close(struct program_channel *p)
{
    if (!p->page)
        return;
    if (!p->given && p->uplink.io)
        p->uplink.io->ops->close(p->uplink.io);
    void *at;
    memcpy(&at, &p->page, sizeof(at));
    munmap(at, IPC_FACTS_PAGE);
    p->page = NULL;
}
