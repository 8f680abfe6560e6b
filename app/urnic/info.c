/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic info`: devices, their ports, addresses and limits.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "cli.h"
#include "urnic/urnic.h"

#define GIDS_MAX   128
#define LIMITS_MAX 32

static const char help[] = {
#include "help_info.inc"
};

struct device {
    struct urnic_device_attr attr;
    struct urnic_port_attr port;
    struct urnic_gid gid[GIDS_MAX];
    int ngids;
};

static int query(const char *name, struct device *d)
{
    struct urnic_context *ctx;
    int rc = urnic_open(name, &ctx);
    if (rc < 0)
        return rc;
    rc = urnic_query_device(ctx, &d->attr);
    if (rc == 0)
        rc = urnic_query_port(ctx, &d->port);
    if (rc == 0) {
        rc = d->ngids = urnic_query_gid_table(ctx, d->gid, GIDS_MAX);
        if (d->ngids > GIDS_MAX)
            d->ngids = GIDS_MAX;
    }
    urnic_close(ctx);
    return rc < 0 ? rc : 0;
}

static const char *gid_text(const struct urnic_gid *g, char *buf, size_t size)
{
    static const uint8_t mapped[12] = {[10] = 0xFF, [11] = 0xFF};
    if (memcmp(g->raw, mapped, sizeof(mapped)) == 0)
        inet_ntop(AF_INET, g->raw + 12, buf, (socklen_t)size);
    else
        inet_ntop(AF_INET6, g->raw, buf, (socklen_t)size);
    return buf;
}

static unsigned octets(enum urnic_mtu mtu)
{
    return 128u << mtu;
}

static const char *state(const struct urnic_port_attr *p)
{
    return p->state == URNIC_PORT_ACTIVE ? "active" : "down";
}

static void mac_text(const uint8_t m[6], char buf[18])
{
    snprintf(buf, 18, "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5]);
}

struct limit {
    const char *name;
    uint64_t value;
};

/* The attributes that are limits of applications, for text and JSON. Returns their number. */
static unsigned limits(const struct device *d, struct limit out[LIMITS_MAX])
{
    const struct urnic_device_attr *a = &d->attr;
    const struct limit all[] = {
        {"max_mr_size", a->max_mr_size},
        {"max_msg_sz", d->port.max_msg_sz},
        {"max_qp", a->max_qp},
        {"max_qp_wr", a->max_qp_wr},
        {"max_send_sge", a->max_send_sge},
        {"max_recv_sge", a->max_recv_sge},
        {"max_inline", a->max_inline},
        {"max_cq", a->max_cq},
        {"max_cqe", a->max_cqe},
        {"num_comp_vectors", a->num_comp_vectors},
        {"max_mr", a->max_mr},
        {"max_mw", a->max_mw},
        {"max_pd", a->max_pd},
        {"max_ah", a->max_ah},
        {"max_srq", a->max_srq},
        {"max_srq_wr", a->max_srq_wr},
        {"max_srq_sge", a->max_srq_sge},
        {"max_qp_rd_atom", a->max_qp_rd_atom},
        {"max_qp_init_rd_atom", a->max_qp_init_rd_atom},
        {"max_mcast_grp", a->max_mcast_grp},
        {"max_mcast_qp_attach", a->max_mcast_qp_attach},
        {"max_pkeys", a->max_pkeys},
        {"local_ca_ack_delay", a->local_ca_ack_delay},
    };
    _Static_assert(sizeof(all) <= LIMITS_MAX * sizeof(*out), "more limits than there is room for");
    memcpy(out, all, sizeof(all));
    return sizeof(all) / sizeof(*all);
}

static void print_text(const struct device *d, bool verbose)
{
    char mac[18], rate[32], addr[64];
    const struct urnic_port_attr *p = &d->port;
    mac_text(p->mac, mac);
    printf("%s\n", d->attr.dev.name);
    printf("    port        %s\n", d->attr.port_spec);
    printf("    state       %s\n", state(p));
    printf("    mac         %s\n", mac);
    if (p->vlan)
        printf("    vlan        %u\n", p->vlan);
    if (p->dscp)
        printf("    dscp        %u\n", p->dscp);
    printf("    mtu         %u octets, path MTU %u of at most %u\n", p->link_mtu,
           octets(p->active_mtu), octets(p->max_mtu));
    if (p->line_rate)
        printf("    line rate   %s\n", cli_fmt_rate((double)p->line_rate, rate, sizeof(rate)));
    for (int i = 0; i < d->ngids; i++)
        printf("    gid %-3u     %-6s %s\n", d->gid[i].index,
               d->gid[i].type == URNIC_GID_ROCE_V1 ? "v1" : "v2",
               gid_text(&d->gid[i], addr, sizeof(addr)));
    if (verbose) {
        struct limit limit[LIMITS_MAX];
        unsigned n = limits(d, limit);
        printf("    version     %s\n", d->attr.fw_ver);
        for (unsigned i = 0; i < n; i++)
            printf("    %-20s %" PRIu64 "\n", limit[i].name, limit[i].value);
        printf("    %-20s %u\n", "bad_pkey_cntr", p->bad_pkey_cntr);
        printf("    %-20s %u\n", "qkey_viol_cntr", p->qkey_viol_cntr);
    }
}

static void print_json(const struct device *d)
{
    char mac[18], addr[64];
    const struct urnic_port_attr *p = &d->port;
    json_t *gids = json_array(), *lim = json_object();
    mac_text(p->mac, mac);
    for (int i = 0; i < d->ngids; i++)
        json_array_append_new(gids,
                              json_pack("{s:i,s:s,s:s}", "index", (int)d->gid[i].index, "type",
                                        d->gid[i].type == URNIC_GID_ROCE_V1 ? "v1" : "v2",
                                        "address", gid_text(&d->gid[i], addr, sizeof(addr))));
    struct limit limit[LIMITS_MAX];
    unsigned n = limits(d, limit);
    for (unsigned i = 0; i < n; i++)
        json_object_set_new(lim, limit[i].name, json_integer((json_int_t)limit[i].value));
    json_t *o = json_pack(
        "{s:s,s:o,s:s,s:s,s:i,s:i,s:i,s:i,s:i,s:i,s:I,s:i,s:i,s:o,s:o}", "device", d->attr.dev.name,
        "port", cli_json_text(d->attr.port_spec), "state", state(p), "mac", mac, "vlan",
        (int)p->vlan, "dscp", (int)p->dscp, "ifindex", (int)p->ifindex, "mtu", (int)p->link_mtu,
        "path_mtu", (int)octets(p->active_mtu), "max_path_mtu", (int)octets(p->max_mtu),
        "line_rate", (json_int_t)p->line_rate, "bad_pkey_cntr", (int)p->bad_pkey_cntr,
        "qkey_viol_cntr", (int)p->qkey_viol_cntr, "gids", gids, "limits", lim);
    cli_json(o);
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {
        CLI_OPTIONS, {"verbose", no_argument, NULL, 'v'}, {"json", no_argument, NULL, 'j'}, {0}};
    bool verbose = false, json = false;
    int c, status;
    while ((c = getopt_long(argc, argv, "hv", options, NULL)) != -1) {
        if (c == 'v')
            verbose = true;
        else if (c == 'j')
            json = true;
        else if (cli_option(c, &cmd_info, &status))
            return status;
    }
    if (cli_operands(argc, argv, 0, 1, "") != CLI_OK)
        return CLI_USAGE;
    const char *only = argv[optind];

    struct urnic_device *list;
    int n, shown = 0, failed = 0;
    int rc = urnic_get_device_list(&list, &n);
    if (rc < 0) {
        cli_errno(rc, "device list");
        return CLI_FAIL;
    }
    for (int i = 0; i < n; i++) {
        struct device d;
        if (only && strcmp(only, list[i].name) != 0)
            continue;
        rc = query(list[i].name, &d);
        if (rc < 0) {
            cli_errno(rc, "%s", list[i].name);
            failed++;
            continue;
        }
        if (json)
            print_json(&d);
        else
            print_text(&d, verbose);
        shown++;
    }
    urnic_free_device_list(list);
    if (!shown && !failed)
        cli_errno(-ENODEV, "%s", only ? only : "devices");
    return shown && !failed ? CLI_OK : CLI_FAIL;
}

const struct cli_command cmd_info = {"info", "devices, ports, addresses, limits", help, run};
