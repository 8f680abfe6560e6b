/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic link`: addresses of a running device, and the faults of an emulated link.
 */
#include <arpa/inet.h>
#include <string.h>

#include "admin.h"
#include "cli.h"
#include "io_arg.h"
#include "link_rules.h"

static const char help[] = {
#include "help_link.inc"
};

struct job {
    struct ipc_link_admin link;
    struct ipc_addr_admin addr;
    const char *rules; /* file of rules; "" = remove the rules; NULL = keep them */
    bool show, json;
};

static int ppm(const char *option, const char *text, uint32_t *out)
{
    double p;
    if (io_parse_prob(text, &p) < 0) {
        cli_error("%s: '%s' is not a probability, from 0 to 1 or in %%", option, text);
        return -1;
    }
    *out = (uint32_t)(p * 1e6 + 0.5);
    if (p > 0 && *out == 0) {
        cli_error("%s: '%s' is too small: one in a million is the least", option, text);
        return -1;
    }
    return 0;
}

static int rate(const char *text, uint64_t *out)
{
    if (io_parse_rate(text, out) == 0)
        return 0;
    cli_error("--rate: '%s' is not a rate in bit/s (K, M, G, T allowed)", text);
    return -1;
}

/* In seconds, like other times of the command line; or with a unit, as in a port's
 * specification. */
static int delay(const char *text, uint64_t *ns)
{
    if (strcmp(text, "0") == 0) {
        *ns = 0;
        return 0;
    }
    if (strchr(text, 's') && io_parse_time(text, ns) == 0)
        return 0;
    return cli_seconds("--delay", text, ns);
}

static int address(const char *option, const char *text, bool prefix, struct ipc_addr_admin *out)
{
    char ip[64];
    size_t len = strcspn(text, "/");
    uint64_t bits = 0;
    bool v4 = false;
    if (len < sizeof(ip)) {
        memcpy(ip, text, len);
        ip[len] = 0;
        memset(out->ip, 0, sizeof(out->ip));
        if (inet_pton(AF_INET, ip, out->ip + 12) == 1) {
            out->ip[10] = out->ip[11] = 0xFF;
            v4 = true;
        }
        if (v4 || inet_pton(AF_INET6, ip, out->ip) == 1) {
            if (!prefix || !text[len])
                bits = v4 ? 32 : 128;
            else if (cli_number(option, text + len + 1, 0, v4 ? 32 : 128, &bits) < 0)
                return -1;
            out->prefix_len = (uint32_t)bits;
            return 0;
        }
    }
    cli_error("%s: '%s' is not an IP address%s", option, text,
              prefix ? " with a prefix length" : "");
    return -1;
}

static int call(void *request, size_t len)
{
    struct admin a;
    struct ipc_hdr reply;
    int rc = admin_open(&a);
    if (rc == 0) {
        ssize_t n = admin_call(&a, request, len, -1, &reply, sizeof(reply));
        rc = n < 0 ? (int)n : 0;
    }
    admin_close(&a);
    return rc;
}

static int set_address(struct job *j, enum ipc_type type, const char *option, const char *text)
{
    if (j->addr.hdr.type) {
        cli_error("%s: one change of addresses at a time", option);
        return -1;
    }
    j->addr.hdr.type = type;
    return address(option, text, type == IPC_ADDR_ADD, &j->addr);
}

/* 1 = not one of our own options. */
static int take(void *arg, int c, char *value)
{
    struct job *j = arg;
    struct ipc_link_admin *l = &j->link;
    switch (c) {
    case 'A':
        return set_address(j, IPC_ADDR_ADD, "--addr-add", value);
    case 'D':
        return set_address(j, IPC_ADDR_DEL, "--addr-del", value);
    case 'u':
    case 'n':
        l->mask |= IPC_LINK_UP;
        l->up = c == 'u';
        return 0;
    case 'l':
        l->mask |= IPC_LINK_LOSS;
        return ppm("--loss", value, &l->loss_ppm);
    case 'p':
        l->mask |= IPC_LINK_DUPLICATE;
        return ppm("--duplicate", value, &l->duplicate_ppm);
    case 'r':
        l->mask |= IPC_LINK_REORDER;
        return ppm("--reorder", value, &l->reorder_ppm);
    case 'c':
        l->mask |= IPC_LINK_CORRUPT;
        return ppm("--corrupt", value, &l->corrupt_ppm);
    case 'y':
        l->mask |= IPC_LINK_DELAY;
        return delay(value, &l->delay_ns);
    case 'b':
        l->mask |= IPC_LINK_RATE;
        return rate(value, &l->rate);
    case 'R':
        j->rules = value;
        if (*value)
            return 0;
        cli_error("--rules: a file's name is missing");
        return -1;
    case 'N':
        j->rules = "";
        return 0;
    case 's':
        j->show = true;
        return 0;
    case 'j':
        j->show = j->json = true;
        return 0;
    default:
        return 1;
    }
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {CLI_OPTIONS,
                                            {"addr-add", required_argument, NULL, 'A'},
                                            {"addr-del", required_argument, NULL, 'D'},
                                            {"up", no_argument, NULL, 'u'},
                                            {"down", no_argument, NULL, 'n'},
                                            {"loss", required_argument, NULL, 'l'},
                                            {"duplicate", required_argument, NULL, 'p'},
                                            {"reorder", required_argument, NULL, 'r'},
                                            {"corrupt", required_argument, NULL, 'c'},
                                            {"delay", required_argument, NULL, 'y'},
                                            {"rate", required_argument, NULL, 'b'},
                                            {"rules", required_argument, NULL, 'R'},
                                            {"no-rules", no_argument, NULL, 'N'},
                                            {"show", no_argument, NULL, 's'},
                                            {"json", no_argument, NULL, 'j'},
                                            {0}};
    struct job j = {.link.hdr.type = IPC_LINK_SET};
    int status = cli_options(argc, argv, &cmd_link, "h", options, take, &j);
    if (status != CLI_GO_ON)
        return status;
    if (cli_operands(argc, argv, 1, 1, "a device") != CLI_OK)
        return CLI_USAGE;
    if (!j.link.mask && !j.addr.hdr.type && !j.rules && !j.show) {
        cli_error("a change is missing: --addr-add, --loss, --rules ...");
        return CLI_USAGE;
    }
    const char *device = argv[optind];
    admin_set_device(j.link.device, device);
    admin_set_device(j.addr.device, device);
    int rc = j.link.mask ? call(&j.link, sizeof(j.link)) : 0;
    if (rc == 0 && j.addr.hdr.type)
        rc = call(&j.addr, sizeof(j.addr));
    if (rc < 0) {
        cli_errno(rc, "%s", device);
        return CLI_FAIL;
    }
    return j.rules || j.show ? link_rules(device, j.rules, j.show, j.json) : CLI_OK;
}

const struct cli_command cmd_link = {"link", "addresses of a device, faults of an emulated link",
                                     help, run};
