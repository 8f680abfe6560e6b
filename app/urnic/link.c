/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic link`: addresses of a running device, and the faults of an emulated link.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "admin.h"
#include "cli.h"
#include "link_rules.h"

static const char help[] = {
#include "help_link.inc"
};

/* Bits of ipc_link_admin.mask: the fields in order. */
enum { M_UP, M_RATE, M_DELAY, M_LOSS, M_REORDER, M_DUPLICATE, M_CORRUPT };

static int ppm(const char *option, const char *text, uint32_t *out)
{
    char *end;
    double p = strtod(text, &end);
    if (end == text || *end || !(p >= 0 && p <= 1)) {
        cli_error("%s: '%s' is not a probability from 0 to 1", option, text);
        return -1;
    }
    *out = (uint32_t)(p * 1e6 + 0.5);
    return 0;
}

static int rate(const char *text, uint64_t *out)
{
    char *end;
    double v = strtod(text, &end);
    switch (*end) {
    case 'G':
        v *= 1e3;
        /* fall through */
    case 'M':
        v *= 1e3;
        /* fall through */
    case 'K':
        v *= 1e3;
        end++;
        break;
    default:
        break;
    }
    if (end == text || *end || !(v >= 0 && v < 1e13)) {
        cli_error("--rate: '%s' is not a rate in bit/s (K, M, G allowed)", text);
        return -1;
    }
    *out = (uint64_t)v;
    return 0;
}

static int address(const char *option, const char *text, bool prefix, struct ipc_addr_admin *out)
{
    char ip[64];
    size_t len = strcspn(text, "/");
    uint64_t bits = 0;
    bool v4 = false;
    if (len < sizeof ip) {
        memcpy(ip, text, len);
        ip[len] = 0;
        memset(out->ip, 0, sizeof out->ip);
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
        ssize_t n = admin_call(&a, request, len, -1, &reply, sizeof reply);
        rc = n < 0 ? (int)n : 0;
    }
    admin_close(&a);
    return rc;
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
    struct ipc_link_admin link = {.hdr = {.type = IPC_LINK_SET}};
    struct ipc_addr_admin addr = {.hdr = {.type = 0}};
    const char *rules = NULL;
    bool show = false, json = false;
    int c, status, bad = 0;
    while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1 && !bad) {
        switch (c) {
        case 'A':
            addr.hdr.type = IPC_ADDR_ADD;
            bad = address("--addr-add", optarg, true, &addr);
            break;
        case 'D':
            addr.hdr.type = IPC_ADDR_DEL;
            bad = address("--addr-del", optarg, false, &addr);
            break;
        case 'u':
        case 'n':
            link.mask |= 1u << M_UP;
            link.up = c == 'u';
            break;
        case 'l':
            link.mask |= 1u << M_LOSS;
            bad = ppm("--loss", optarg, &link.loss_ppm);
            break;
        case 'p':
            link.mask |= 1u << M_DUPLICATE;
            bad = ppm("--duplicate", optarg, &link.duplicate_ppm);
            break;
        case 'r':
            link.mask |= 1u << M_REORDER;
            bad = ppm("--reorder", optarg, &link.reorder_ppm);
            break;
        case 'c':
            link.mask |= 1u << M_CORRUPT;
            bad = ppm("--corrupt", optarg, &link.corrupt_ppm);
            break;
        case 'y':
            link.mask |= 1u << M_DELAY;
            bad = cli_seconds("--delay", optarg, &link.delay_ns);
            break;
        case 'b':
            link.mask |= 1u << M_RATE;
            bad = rate(optarg, &link.rate);
            break;
        case 'R':
            rules = optarg;
            bad = !*optarg;
            if (bad)
                cli_error("--rules: a file's name is missing");
            break;
        case 'N':
            rules = "";
            break;
        case 's':
            show = true;
            break;
        case 'j':
            show = json = true;
            break;
        default:
            if (cli_option(c, &cmd_link, &status))
                return status;
        }
    }
    if (bad)
        return CLI_USAGE;
    if (cli_operands(argc, argv, 1, 1, "a device") != CLI_OK)
        return CLI_USAGE;
    if (!link.mask && !addr.hdr.type && !rules && !show) {
        cli_error("a change is missing: --addr-add, --loss, --rules ...");
        return CLI_USAGE;
    }
    admin_set_device(link.device, argv[optind]);
    admin_set_device(addr.device, argv[optind]);
    int rc = link.mask ? call(&link, sizeof link) : 0;
    if (rc == 0 && addr.hdr.type)
        rc = call(&addr, sizeof addr);
    if (rc < 0)
        cli_errno(rc, "%s", argv[optind]);
    if (rc == 0 && (rules || show))
        return link_rules(argv[optind], rules, show, json);
    return rc == 0 ? CLI_OK : CLI_FAIL;
}

const struct cli_command cmd_link = {"link", "addresses of a device, faults of an emulated link",
                                     help, run};
