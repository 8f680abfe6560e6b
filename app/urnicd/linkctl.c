/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See linkctl.h.
 */
#include "linkctl.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ccctl.h"
#include "control.h"
#include "device_port.h"
#include "faultctl.h"
#include "log.h"
#include "mem_link.h"
#include "procctl.h"

/* ---- emulated links ---- */

static bool is_share(uint32_t ppm)
{
    return ppm <= 1000000;
}

int linkctl_set(struct device *d, const struct ipc_link_admin *in, uint64_t now)
{
    struct mem_link *link = device_link(d);
    struct mem_link_faults f;
    if (!link)
        return -ENODEV;
    if (!is_share(in->loss_ppm) || !is_share(in->reorder_ppm) || !is_share(in->duplicate_ppm) ||
        !is_share(in->corrupt_ppm) || !is_share(in->ecn_ppm)) {
        mem_link_put(link);
        return -EINVAL;
    }
    unsigned dir = mem_link_index(device_lowest(d));
    mem_link_faults_get(link, dir, &f);
    if (in->mask & IPC_LINK_RATE)
        f.rate = in->rate;
    if (in->mask & IPC_LINK_DELAY)
        f.delay = in->delay_ns;
    if (in->mask & IPC_LINK_LOSS)
        f.loss = in->loss_ppm / 1e6;
    if (in->mask & IPC_LINK_REORDER)
        f.reorder = in->reorder_ppm / 1e6;
    if (in->mask & IPC_LINK_DUPLICATE)
        f.dup = in->duplicate_ppm / 1e6;
    if (in->mask & IPC_LINK_CORRUPT)
        f.corrupt = in->corrupt_ppm / 1e6;
    if (in->mask & IPC_LINK_ECN)
        f.ecn_pmax = in->ecn_ppm / 1e6;
    mem_link_faults_set(link, dir, &f);
    if (in->mask & IPC_LINK_UP)
        mem_link_up(link, dir, in->up != 0, now);
    mem_link_put(link);
    return 0;
}

/* ---- JSON ---- */

static int admin_log_level(struct request *r, const json_t *in, char *out, size_t size)
{
    const char *level = json_string_value(json_object_get(in, "level"));
    enum log_level l;
    if (!client_is_admin(r->client))
        return -EPERM;
    if (!level || log_level_parse(level, &l) < 0)
        return -EINVAL;
    log_set_level(l);
    return snprintf(out, size, "{\"level\":\"%s\"}", log_level_names[l]);
}

struct link_look {
    const struct device *device;
    bool up;
};

static void link_look(void *arg, uint64_t now)
{
    struct link_look *look = arg;
    (void)now;
    look->up = look->device->link.up;
}

static int admin_config(struct request *r, const json_t *in, char *out, size_t size)
{
    json_t *list = json_array(), *root = json_object();
    (void)in;
    for (unsigned i = 0; i < r->nic->ndevice; i++) {
        const struct device *d = r->nic->device[i];
        struct link_look look = {.device = d};
        worker_call(d->worker, link_look, &look); /* the link is the worker's */
        json_array_append_new(list, json_pack("{s:s, s:s, s:i, s:i, s:i, s:b}", "name", d->name,
                                              "port", d->conf->port, "mtu", (int)d->ip_mtu, "vlan",
                                              (int)d->conf->vlan, "worker", (int)d->worker->index,
                                              "up", look.up ? 1 : 0));
    }
    json_object_set_new(root, "devices", list);
    json_object_set_new(root, "socket", json_string(urnicd_of(r->nic)->conf.socket));
    json_object_set_new(root, "workers", json_integer(r->nic->nworker));
    json_object_set_new(root, "clients", json_integer(r->nic->clients.n));
    size_t n = json_dumpb(root, out, size, JSON_COMPACT);
    json_decref(root);
    return n > 0 && n <= size ? (int)n : -EMSGSIZE;
}

int linkctl_admin(struct request *r, const char *text, size_t len, char *out, size_t size)
{
    static const struct {
        const char *cmd;
        int (*run)(struct request *r, const json_t *in, char *out, size_t size);
    } cmds[] = {
        {"log-level", admin_log_level}, {"config", admin_config},     {"cc", ccctl_admin},
        {"faults", faultctl_admin},     {"processes", procctl_admin},
    };
    json_t *in = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
    const char *cmd = json_string_value(json_object_get(in, "cmd"));
    int rc = in && cmd ? -ENOTSUP : -EBADMSG;
    for (size_t i = 0; cmd && i < sizeof(cmds) / sizeof(cmds[0]); i++) {
        if (strcmp(cmd, cmds[i].cmd) == 0)
            rc = cmds[i].run(r, in, out, size);
    }
    json_decref(in);
    return rc;
}
