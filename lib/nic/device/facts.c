/* SPDX-License-Identifier: BSD-3-Clause */
#include "facts.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device.h"
#include "ipc_facts.h"
#include "ipc_map.h"
#include "readonly.h"
#include "switch_news.h"

struct facts {
    struct ipc_facts_page *page;
    int fd;
};

static_assert(GID_PAIRS == IPC_FACTS_ADDRS, "a page has room for all addresses");
static_assert(CC_TEXT <= IPC_FACTS_CC, "and for any congestion control");

int facts_start(struct device *d)
{
    if (d->facts)
        return 0;
    struct facts *f = calloc(1, sizeof(*f));
    void *at;
    if (!f)
        return -ENOMEM;
    int rc = readonly_new("urnic-facts", IPC_FACTS_PAGE, &at, &f->fd);
    if (rc < 0) {
        free(f);
        return rc;
    }
    f->page = at;
    d->facts = f;
    facts_follow(d);
    return 0;
}

void facts_free(struct facts *f)
{
    if (!f)
        return;
    munmap(f->page, IPC_FACTS_PAGE);
    ipc_object_close(f->fd);
    free(f);
}

static uint32_t facts_flags(const struct device *d)
{
    return (d->link.up ? IPC_FACTS_LINK : 0) | (d->io->caps.kernel_ip ? IPC_FACTS_KERNEL_IP : 0) |
           (d->conf->loopback || d->io->caps.loopback ? IPC_FACTS_LOOPBACK : 0) |
           (d->conf->strict_resp ? IPC_FACTS_STRICT : 0) |
           (d->conf->nak_confirm ? IPC_FACTS_CONFIRM : 0) |
           (d->conf->rnr_on_rd_res ? IPC_FACTS_RNR_ON_RES : 0);
}

void facts_follow(struct device *d)
{
    struct ipc_facts f;
    if (!d->facts)
        return;
    memset(&f, 0, sizeof(f));
    f.line_rate = d->io->caps.rate_bps;
    f.link_changes = d->link.changes;
    f.addr_hold = d->conf->addr_hold;
    f.flags = facts_flags(d);
    f.frame_max = d->frame_max;
    f.ip_mtu = d->ip_mtu;
    f.path_mtu = d->path_mtu;
    f.udp_sport = d->io->caps.udp_sport;
    f.vlan = d->conf->vlan;
    memcpy(f.mac, d->mac, sizeof(f.mac));
    f.dscp = d->conf->dscp;
    for (unsigned i = 0; i < GID_PAIRS; i++) {
        if (!d->gids.pair[i].used)
            continue;
        f.addrs |= 1u << i;
        memcpy(f.gid[i], d->gids.pair[i].addr.b, sizeof(f.gid[i]));
    }
    (void)cc_conf_format(engine_cc(d->engine), f.cc, sizeof(f.cc));
    if (ipc_facts_write(d->facts->page, &f) && d->sw)
        switch_news_facts(d->sw);
}

int facts_fd(const struct facts *f)
{
    return f->fd;
}
