/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fetching counters and queue pairs, page by page.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "stat.h"
#include "urnic/urnic.h"

static union {
    struct ipc_stats stats;
    struct ipc_qp_list qps;
    uint8_t octets[IPC_MSG_MAX];
} reply;

/* Append n entries of `size` octets to *array. */
static int append(void **array, unsigned *count, const void *from, unsigned n, size_t size)
{
    void *grown = realloc(*array, (*count + n) * size + 1);
    if (!grown)
        return -ENOMEM;
    memcpy((char *)grown + *count * size, from, n * size);
    *array = grown;
    *count += n;
    return 0;
}

int stat_counters(struct admin *a, const char *device, struct stat_counters *out)
{
    struct ipc_by_device request = {.hdr = {.type = IPC_STATS}, .port = 1};
    admin_set_device(request.device, device);
    *out = (struct stat_counters){0};
    do {
        ssize_t n = admin_call(a, &request, sizeof(request), -1, &reply, sizeof(reply));
        if (n >= 0 &&
            ((size_t)n < sizeof(reply.stats) ||
             (size_t)n < sizeof(reply.stats) + reply.stats.count * sizeof(reply.stats.counter[0])))
            n = -EPROTO;
        if (n >= 0)
            n = append((void **)&out->counter, &out->count, reply.stats.counter, reply.stats.count,
                       sizeof(reply.stats.counter[0]));
        if (n < 0) {
            stat_free_counters(out);
            return (int)n;
        }
        request.first = reply.stats.next;
    } while (request.first);
    return 0;
}

void stat_free_counters(struct stat_counters *c)
{
    free(c->counter);
    *c = (struct stat_counters){0};
}

uint64_t stat_value(const struct stat_counters *c, const char *name)
{
    for (unsigned i = 0; i < c->count; i++)
        if (strncmp(c->counter[i].name, name, sizeof(c->counter[i].name)) == 0)
            return c->counter[i].value;
    return 0;
}

int stat_qps(struct admin *a, const char *device, uint32_t qpn, struct stat_qps *out)
{
    struct ipc_qp_filter request = {.hdr = {.type = IPC_QP_LIST}, .qpn = qpn};
    admin_set_device(request.device, device);
    *out = (struct stat_qps){0};
    do {
        ssize_t n = admin_call(a, &request, sizeof(request), -1, &reply, sizeof(reply));
        if (n >= 0 && ((size_t)n < sizeof(reply.qps) ||
                       (size_t)n < sizeof(reply.qps) + reply.qps.count * sizeof(reply.qps.qp[0])))
            n = -EPROTO;
        if (n >= 0)
            n = append((void **)&out->qp, &out->count, reply.qps.qp, reply.qps.count,
                       sizeof(reply.qps.qp[0]));
        if (n < 0) {
            stat_free_qps(out);
            return (int)n;
        }
        request.first = reply.qps.next;
    } while (request.first);
    return 0;
}

void stat_free_qps(struct stat_qps *q)
{
    free(q->qp);
    *q = (struct stat_qps){0};
}

const char *stat_qp_type(unsigned type)
{
    switch (type) {
    case URNIC_QPT_RC:
        return "RC";
    case URNIC_QPT_UC:
        return "UC";
    case URNIC_QPT_UD:
        return "UD";
    case URNIC_QPT_XRC_SEND:
        return "XRC_INI";
    case URNIC_QPT_XRC_RECV:
        return "XRC_TGT";
    default:
        return "GSI";
    }
}

const char *stat_qp_state(unsigned state)
{
    return urnic_qp_state_str((enum urnic_qp_state)state);
}

const char *stat_recovery(unsigned mode)
{
    static const char *const names[] = {"gbn", "gbn", "sr", "gbn-ooo"};
    return mode < sizeof(names) / sizeof(names[0]) ? names[mode] : "?";
}

const char *stat_rate(uint64_t rate, char *buf, size_t size)
{
    if (rate == UINT64_MAX)
        snprintf(buf, size, "-");
    else
        cli_fmt_rate((double)rate, buf, size);
    return buf;
}

double stat_alpha(const struct ipc_qp_info *qp)
{
    return (double)qp->cc_alpha / (1u << IPC_ALPHA_BITS);
}
