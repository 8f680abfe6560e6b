/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic stat`: counters and queue pairs, as text, JSON or for Prometheus.
 */
#include "stat.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "cli.h"

static const char help[] = {
#include "help_stat.inc"
};

enum format { TEXT, JSON, PROMETHEUS };

/* Of a program that has its own engine. */
static void print_silent(const struct ipc_qp_info *q)
{
    if (q->qpn)
        printf("  qp 0x%06x", q->qpn);
    else
        printf("  its queue pairs");
    printf("  %s[%u]  engine application: no answer within 100 ms\n", q->comm, q->pid);
}

static void print_qp_text(const struct ipc_qp_info *q)
{
    if (q->flags & IPC_QP_F_SILENT) {
        print_silent(q);
        return;
    }
    char rate[32], peer[16];
    bool hidden = (q->flags & IPC_QP_F_HIDDEN) != 0;
    snprintf(peer, sizeof(peer), "0x%06x", q->dest_qpn);
    printf("  qp 0x%06x %-3s %-5s -> %s  %s[%u]%s%s\n", q->qpn, stat_qp_type(q->type),
           stat_qp_state(q->state), hidden ? "hidden" : peer, q->comm, q->pid,
           q->flags & IPC_QP_F_PROGRAM ? "  engine application" : "",
           q->flags & IPC_QP_F_SHARED ? "  (another user's names the same peer)" : "");
    if (hidden)
        printf("     of uid %u: its peer and PSNs are for that user and administrators\n", q->uid);
    else
        printf("     send psn 0x%06x unacked 0x%06x  expect psn 0x%06x msn %u\n", q->sq_psn,
               q->una_psn, q->epsn, q->msn);
    printf("     sq %u rq %u in flight %u reads+atomics %u\n", q->sq_used, q->rq_used,
           q->inflight_packets, q->rd_atomic_out);
    printf("     tx %llu packets %llu octets, rx %llu packets %llu octets\n",
           (unsigned long long)q->tx_packets, (unsigned long long)q->tx_bytes,
           (unsigned long long)q->rx_packets, (unsigned long long)q->rx_bytes);
    printf("     retransmits %llu timeouts %llu naks %llu rnr naks %llu\n",
           (unsigned long long)q->retransmits, (unsigned long long)q->timeouts,
           (unsigned long long)q->naks, (unsigned long long)q->rnr_naks);
    printf("     cc %s rate %s alpha %.4f recovery %s%s\n", q->cc,
           stat_rate(q->cc_rate, rate, sizeof(rate)), stat_alpha(q), stat_recovery(q->recovery),
           q->recovery_agreed ? " (agreed)" : "");
    if (q->error[0])
        printf("     error: %s\n", q->error);
}

static json_t *qp_json(const struct ipc_qp_info *q)
{
    json_t *o = json_pack(
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
        stat_alpha(q), "recovery", stat_recovery(q->recovery), "recovery_agreed",
        q->recovery_agreed, "error", q->error);
    static const char *const secret[] = {"dest_qpn", "epsn", "msn", "sq_psn", "una_psn", "error"};
    for (size_t i = 0; q->flags & IPC_QP_F_HIDDEN && i < sizeof(secret) / sizeof(*secret); i++)
        json_object_set_new(o, secret[i], json_null());
    json_object_set_new(o, "engine",
                        json_string(q->flags & IPC_QP_F_PROGRAM ? "application" : "daemon"));
    json_object_set_new(o, "silent", json_boolean(q->flags & IPC_QP_F_SILENT));
    json_object_set_new(o, "uid", json_integer(q->uid));
    json_object_set_new(o, "hidden", json_boolean(q->flags & IPC_QP_F_HIDDEN));
    json_object_set_new(o, "shared", json_boolean(q->flags & IPC_QP_F_SHARED));
    return o;
}

static void print_text(const char *device, const struct stat_counters *c, const struct stat_qps *q,
                       bool all)
{
    printf("%s\n", device);
    for (unsigned i = 0; i < c->count; i++)
        if (all || c->counter[i].value)
            printf("  %-32s %llu\n", c->counter[i].name, (unsigned long long)c->counter[i].value);
    if (stat_value(c, "programs_silent") > 0)
        printf("  %llu of %llu programs with an engine of their own: no answer within 100 ms; "
               "their counters are older\n",
               (unsigned long long)stat_value(c, "programs_silent"),
               (unsigned long long)stat_value(c, "programs"));
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

static void print_history(struct admin *a, const char *device, uint32_t qpn)
{
    static union {
        struct ipc_text text;
        uint8_t octets[IPC_MSG_MAX];
    } reply;
    struct ipc_qp_filter request = {.hdr = {.type = IPC_QP_HISTORY}, .qpn = qpn};
    admin_set_device(request.device, device);
    ssize_t n = admin_call(a, &request, sizeof(request), -1, &reply, sizeof(reply));
    if (n == -ETIMEDOUT)
        printf("     its history: no answer within 100 ms\n");
    if (n >= (ssize_t)sizeof(reply.text) && reply.text.len <= (size_t)n - sizeof(reply.text))
        printf("%.*s", (int)reply.text.len, reply.text.text);
}

struct wanted {
    const char *device;
    bool all, qps, processes;
    uint32_t qpn;
    enum format format;
};

/* Fetch and print the wanted data of a device. 0 or -errno. */
static int look(struct admin *a, const struct wanted *w, struct stat_device *d)
{
    int rc = w->qpn ? 0 : stat_counters(a, d->name, &d->counters);
    if (rc == 0 && (w->qps || w->qpn))
        rc = stat_qps(a, d->name, w->qpn, &d->qps);
    return rc;
}

static void show(struct admin *a, const struct wanted *w, const struct stat_device *d)
{
    if (w->format == JSON)
        print_json(d->name, &d->counters, &d->qps, w->all);
    else if (!w->qpn || d->qps.count)
        print_text(d->name, &d->counters, &d->qps, w->all);
    if (w->format == TEXT && w->qpn && d->qps.count &&
        !(d->qps.qp[0].flags & (IPC_QP_F_HIDDEN | IPC_QP_F_SILENT)))
        print_history(a, d->name, w->qpn);
}

/* Fetch and print all wanted data of all wanted devices. CLI_*. */
static int report(const struct wanted *w)
{
    struct admin a;
    struct ipc_device dev[ADMIN_DEVICES_MAX];
    static struct stat_device seen[ADMIN_DEVICES_MAX];
    unsigned found = 0, nseen = 0;
    int rc = admin_open(&a);
    int n = rc < 0 ? rc : admin_devices(&a, dev, ADMIN_DEVICES_MAX);
    if (n < 0) {
        cli_errno(n, "urnicd");
        admin_close(&a);
        return CLI_FAIL;
    }
    for (int i = 0; i < n; i++) {
        if (w->device && strcmp(w->device, dev[i].name) != 0)
            continue;
        struct stat_device *d = &seen[nseen++];
        admin_set_device(d->name, dev[i].name);
        int err = look(&a, w, d);
        if (err < 0) {
            cli_errno(err, "%s", d->name);
            rc = err;
            nseen--;
            continue;
        }
        found += w->qpn ? d->qps.count : 1;
        if (w->format != PROMETHEUS)
            show(&a, w, d);
    }
    if (w->format == PROMETHEUS)
        stat_prometheus(seen, nseen);
    for (unsigned i = 0; i < nseen; i++) {
        stat_free_counters(&seen[i].counters);
        stat_free_qps(&seen[i].qps);
    }
    admin_close(&a);
    if (!found && rc == 0) {
        if (w->qpn)
            cli_error("no queue pair 0x%06x", (unsigned)w->qpn);
        else
            cli_error("no device %s", w->device ? w->device : "at all");
    }
    return found && rc == 0 ? CLI_OK : CLI_FAIL;
}

static int report_processes(const struct wanted *w)
{
    struct admin a;
    int rc = admin_open(&a);
    if (rc == 0)
        rc = stat_processes(&a, w->device, w->format == JSON);
    if (rc == -ENODEV && w->device)
        cli_error("no device %s", w->device);
    else if (rc < 0)
        cli_errno(rc, "urnicd");
    admin_close(&a);
    return rc < 0 ? CLI_FAIL : CLI_OK;
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {
        CLI_OPTIONS,
        {"all", no_argument, NULL, 'a'},
        {"qps", no_argument, NULL, 'q'},
        {"processes", no_argument, NULL, 'P'},
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
        case 'P':
            w.processes = true;
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
    if (w.processes && (w.all || w.qps || w.qpn || w.format == PROMETHEUS)) {
        cli_error("--processes: only with --json and a device");
        return CLI_USAGE;
    }
    return w.processes ? report_processes(&w) : report(&w);
}

const struct cli_command cmd_stat = {"stat", "counters and queue pairs: text, JSON, Prometheus",
                                     help, run};
