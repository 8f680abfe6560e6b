/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic stat`: counters and queue pairs, as text, JSON or for Prometheus.
 */
#include "stat.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

#define DEVICES_MAX 64u

static const char help[] = {
#include "help_stat.inc"
};

enum format { TEXT, JSON, PROMETHEUS };

static void print_qp_text(const struct ipc_qp_info *q)
{
    char rate[32];
    printf("  qp 0x%06x %-3s %-5s -> 0x%06x  %s[%u]\n", q->qpn, stat_qp_type(q->type),
           stat_qp_state(q->state), q->dest_qpn, q->comm, q->pid);
    printf("     send psn 0x%06x unacked 0x%06x  expect psn 0x%06x msn %u\n", q->sq_psn, q->una_psn,
           q->epsn, q->msn);
    printf("     sq %u rq %u in flight %u reads+atomics %u\n", q->sq_used, q->rq_used,
           q->inflight_packets, q->rd_atomic_out);
    printf("     tx %llu packets %llu octets, rx %llu packets %llu octets\n",
           (unsigned long long)q->tx_packets, (unsigned long long)q->tx_bytes,
           (unsigned long long)q->rx_packets, (unsigned long long)q->rx_bytes);
    printf("     retransmits %llu timeouts %llu naks %llu rnr naks %llu\n",
           (unsigned long long)q->retransmits, (unsigned long long)q->timeouts,
           (unsigned long long)q->naks, (unsigned long long)q->rnr_naks);
    printf("     cc %s rate %s alpha %.4f recovery %s%s\n", q->cc,
           stat_rate(q->cc_rate, rate, sizeof rate), q->cc_alpha / 32768.0,
           stat_recovery(q->recovery), q->recovery_agreed ? " (agreed)" : "");
    if (q->error[0])
        printf("     error: %s\n", q->error);
}

static json_t *qp_json(const struct ipc_qp_info *q)
{
    return json_pack(
        "{s:i,s:s,s:s,s:i,s:i,s:s,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,"
        "s:s,s:o,s:f,s:s,s:b,s:s}",
        "qpn", q->qpn, "type", stat_qp_type(q->type), "state", stat_qp_state(q->state), "dest_qpn",
        q->dest_qpn, "pid", q->pid, "comm", q->comm, "epsn", q->epsn, "msn", q->msn, "sq_psn",
        q->sq_psn, "una_psn", q->una_psn, "sq_used", q->sq_used, "rq_used", q->rq_used,
        "inflight_packets", q->inflight_packets, "rd_atomic_out", q->rd_atomic_out, "tx_packets",
        (json_int_t)q->tx_packets, "rx_packets", (json_int_t)q->rx_packets, "tx_bytes",
        (json_int_t)q->tx_bytes, "rx_bytes", (json_int_t)q->rx_bytes, "retransmits",
        (json_int_t)q->retransmits, "timeouts", (json_int_t)q->timeouts, "naks",
        (json_int_t)q->naks, "rnr_naks", (json_int_t)q->rnr_naks, "cc", q->cc, "cc_rate",
        q->cc_rate == UINT64_MAX ? json_null() : json_integer((json_int_t)q->cc_rate), "cc_alpha",
        q->cc_alpha / 32768.0, "recovery", stat_recovery(q->recovery), "recovery_agreed",
        q->recovery_agreed, "error", q->error);
}

static void print_text(const char *device, const struct stat_counters *c, const struct stat_qps *q,
                       bool all)
{
    printf("%s\n", device);
    for (unsigned i = 0; i < c->count; i++)
        if (all || c->counter[i].value)
            printf("  %-32s %llu\n", c->counter[i].name, (unsigned long long)c->counter[i].value);
    for (unsigned i = 0; i < q->count; i++)
        print_qp_text(&q->qp[i]);
}

static void print_json(const char *device, const struct stat_counters *c, const struct stat_qps *q,
                       bool all)
{
    json_t *counters = json_object(), *qps = json_array();
    for (unsigned i = 0; i < c->count; i++)
        if (all || c->counter[i].value)
            json_object_set_new(counters, c->counter[i].name,
                                json_integer((json_int_t)c->counter[i].value));
    for (unsigned i = 0; i < q->count; i++)
        json_array_append_new(qps, qp_json(&q->qp[i]));
    json_t *o = json_pack("{s:s,s:o,s:o}", "device", device, "counters", counters, "qps", qps);
    cli_json(o);
}

static void print_prometheus(const char *device, const struct stat_counters *c,
                             const struct stat_qps *q)
{
    for (unsigned i = 0; i < c->count; i++)
        printf("urnic_%s{device=\"%s\"} %llu\n", c->counter[i].name, device,
               (unsigned long long)c->counter[i].value);
    for (unsigned i = 0; i < q->count; i++)
        printf("urnic_qp_retransmits{device=\"%s\",qpn=\"%u\"} %llu\n", device, q->qp[i].qpn,
               (unsigned long long)q->qp[i].retransmits);
    for (unsigned i = 0; i < q->count; i++) /* no limit: no sample */
        if (q->qp[i].cc_rate != UINT64_MAX)
            printf("urnic_qp_cc_rate{device=\"%s\",qpn=\"%u\"} %llu\n", device, q->qp[i].qpn,
                   (unsigned long long)q->qp[i].cc_rate);
}

static void print_history(struct admin *a, const char *device, uint32_t qpn)
{
    static union {
        struct ipc_text text;
        uint8_t octets[IPC_MSG_MAX];
    } reply;
    struct ipc_qp_filter request = {.hdr = {.type = IPC_QP_HISTORY}, .qpn = qpn};
    admin_set_device(request.device, device);
    ssize_t n = admin_call(a, &request, sizeof request, -1, &reply, sizeof reply);
    if (n >= (ssize_t)sizeof reply.text && reply.text.len <= (size_t)n - sizeof reply.text)
        printf("%.*s", (int)reply.text.len, reply.text.text);
}

struct wanted {
    const char *device;
    bool all, qps;
    uint32_t qpn;
    enum format format;
};

static int show(struct admin *a, const char *device, const struct wanted *w, unsigned *found)
{
    struct stat_counters c = {0};
    struct stat_qps q = {0};
    int rc = stat_counters(a, device, &c);
    if (rc == 0 && (w->qps || w->qpn))
        rc = stat_qps(a, device, (uint32_t)w->qpn, &q);
    if (rc == 0) {
        if (w->qpn) {
            *found += q.count;
            stat_free_counters(&c);
        } else {
            (*found)++;
        }
        if (w->format == JSON)
            print_json(device, &c, &q, w->all);
        else if (w->format == PROMETHEUS)
            print_prometheus(device, &c, &q);
        else if (!w->qpn || q.count)
            print_text(device, &c, &q, w->all);
        if (w->format == TEXT && w->qpn && q.count)
            print_history(a, device, (uint32_t)w->qpn);
    }
    stat_free_counters(&c);
    stat_free_qps(&q);
    return rc;
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {
        CLI_OPTIONS,
        {"all", no_argument, NULL, 'a'},
        {"qps", no_argument, NULL, 'q'},
        {"qp", required_argument, NULL, 'n'},
        {"json", no_argument, NULL, 'j'},
        {"prometheus", no_argument, NULL, 'p'},
        {0},
    };
    struct wanted w = {0};
    int c, status;
    while ((c = getopt_long(argc, argv, "haq", options, NULL)) != -1) {
        switch (c) {
        case 'a':
            w.all = true;
            break;
        case 'q':
            w.qps = true;
            break;
        case 'n':
            if (cli_qpn("--qp", optarg, &w.qpn) < 0)
                return CLI_USAGE;
            break;
        case 'j':
            w.format = JSON;
            break;
        case 'p':
            w.format = PROMETHEUS;
            break;
        default:
            if (cli_option(c, &cmd_stat, &status))
                return status;
        }
    }
    if (cli_operands(argc, argv, 0, 1, "") != CLI_OK)
        return CLI_USAGE;
    w.device = argv[optind];

    struct admin a;
    struct ipc_device dev[DEVICES_MAX];
    unsigned found = 0;
    int rc = admin_open(&a);
    int n = rc < 0 ? rc : admin_devices(&a, dev, DEVICES_MAX);
    if (n < 0) {
        cli_errno(n, "urnicd");
        admin_close(&a);
        return CLI_FAIL;
    }
    for (int i = 0; i < n; i++) {
        if (w.device && strcmp(w.device, dev[i].name) != 0)
            continue;
        rc = show(&a, dev[i].name, &w, &found);
        if (rc < 0)
            cli_errno(rc, "%s", dev[i].name);
    }
    admin_close(&a);
    if (!found && rc == 0) {
        if (w.qpn)
            cli_error("no queue pair 0x%06x", (unsigned)w.qpn);
        else
            cli_error("no device %s", w.device ? w.device : "at all");
    }
    return found && rc == 0 ? CLI_OK : CLI_FAIL;
}

const struct cli_command cmd_stat = {"stat", "counters and queue pairs: text, JSON, Prometheus",
                                     help, run};
