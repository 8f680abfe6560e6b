/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A context is listed with its process and its number of objects of each kind. The context's worker
 * has the counts: they are read there, for all contexts of a device at once.
 */
#include "procctl.h"

#include <errno.h>
#include <string.h>

#include "client.h"
#include "clients.h"
#include "control.h"
#include "engine_channel.h"
#include "switch_counters.h"
#include "team.h"
#include "worker.h"

#define PAGE 64u /* most contexts in an answer: they fit into IPC_MSG_MAX */

struct look {
    const struct client *client[PAGE];
    uint32_t count[PAGE][HANDLE_KINDS];
    unsigned n;
    const struct device *device;
};

/* Objects of an engine in the program, as the program has reported them last. */
static void add_told(uint32_t count[HANDLE_KINDS], const struct switch_channel *c)
{
    static const struct {
        enum handle_kind kind;
        enum switch_usage usage;
    } rows[] = {
        {HANDLE_PD, SWITCH_U_pds}, {HANDLE_MR, SWITCH_U_mrs},   {HANDLE_MW, SWITCH_U_mws},
        {HANDLE_CQ, SWITCH_U_cqs}, {HANDLE_SRQ, SWITCH_U_srqs}, {HANDLE_QP, SWITCH_U_qps},
    };
    for (size_t i = 0; c && c->told && i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t n = count[rows[i].kind] + c->told->usage[rows[i].usage];
        count[rows[i].kind] = n < INT32_MAX ? (uint32_t)n : INT32_MAX;
    }
}

static void look_job(void *arg, uint64_t now)
{
    struct look *look = arg;
    (void)now;
    for (unsigned i = 0; i < look->n; i++) {
        if (look->client[i]->ctx.device != look->device)
            continue;
        memcpy(look->count[i], look->client[i]->handles.count, sizeof(look->count[i]));
        add_told(look->count[i], engine_channel_at(look->client[i]));
    }
}

static json_t *context_json(const struct client *c, const uint32_t count[HANDLE_KINDS])
{
    return json_pack("{s:s,s:i,s:s,s:I,s:i,s:i,s:i,s:i,s:i,s:i,s:i}", "device", c->ctx.device->name,
                     "pid", (int)c->pid, "comm", c->comm, "uid", (json_int_t)c->uid, "pds",
                     (int)count[HANDLE_PD], "mrs", (int)count[HANDLE_MR], "mws",
                     (int)count[HANDLE_MW], "cqs", (int)count[HANDLE_CQ], "srqs",
                     (int)count[HANDLE_SRQ], "qps", (int)count[HANDLE_QP], "cm_ids",
                     (int)count[HANDLE_CM_ID]);
}

int procctl_admin(struct request *r, const json_t *in, char *out, size_t size)
{
    const json_t *first = json_object_get(in, "first");
    json_int_t skip = json_integer_value(first);
    struct look look = {.n = 0};
    unsigned seen = 0, next = 0;
    if (first && (!json_is_integer(first) || skip < 0 || skip > UINT16_MAX))
        return -EINVAL;
    for (const struct client *c = r->nic->clients.first; c; c = c->next) {
        if (!c->open || !c->attached || c->gone || seen++ < (unsigned)skip)
            continue;
        if (look.n == PAGE) {
            next = (unsigned)skip + PAGE;
            break;
        }
        look.client[look.n++] = c;
    }
    for (unsigned i = 0; i < r->nic->ndevice; i++) {
        const struct team *t = r->nic->device[i]->team;
        for (unsigned k = 0; k < t->n; k++) {
            look.device = t->member[k];
            worker_call(look.device->worker, look_job, &look);
        }
    }
    json_t *list = json_array();
    for (unsigned i = 0; i < look.n; i++)
        json_array_append_new(list, context_json(look.client[i], look.count[i]));
    json_t *root = json_pack("{s:o}", "contexts", list);
    if (next)
        json_object_set_new(root, "next", json_integer(next));
    size_t n = json_dumpb(root, out, size, JSON_COMPACT);
    json_decref(root);
    return n > 0 && n <= size ? (int)n : -EMSGSIZE;
}
