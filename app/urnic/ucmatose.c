/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic ucmatose`: either end of the test that rdma-core's ucmatose plays. All connections come
 * up, the server sends N messages on each, the client answers with as many, the server disconnects.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "talk.h"

static const char help[] = {
#include "help_ucmatose.inc"
};

#define MAX_SIZE (1u << 20)

struct options {
    const char *device;
    uint64_t connections, count, size, port;
    bool json;
};

static struct options o = {.connections = 1, .count = 10, .size = 100, .port = 7471};

/* The region: one message to send, one to receive into; nobody reads them. */
static int post_receives(void *arg, struct urnic_qp *qp)
{
    int rc = 0;
    for (uint64_t i = 0; i < o.count && !rc; i++)
        rc = talk_receive(arg, qp, MAX_SIZE, (uint32_t)o.size);
    return rc;
}

static int send_all(struct talk *t)
{
    int rc = 0;
    for (unsigned c = 0; c < t->nconns; c++)
        for (uint64_t i = 0; i < o.count && !rc; i++)
            rc = talk_send(t, t->conns[c]->qp, 0, (uint32_t)o.size);
    return rc;
}

static int receive_all(struct talk *t)
{
    int rc = talk_wait(t, 0, (unsigned)(t->nconns * o.count));
    if (!rc && o.count && t->shortest != o.size) {
        cli_error("a message of %u octets came, --size is %llu", t->shortest,
                  (unsigned long long)o.size);
        rc = -EPROTO;
    }
    return rc;
}

static int be_client(struct talk *t, const char *where)
{
    char host[64];
    uint16_t port = (uint16_t)o.port;
    if (cli_host(where, host, sizeof(host), &port) != 0)
        return CLI_USAGE;
    for (unsigned i = 0; i < o.connections; i++) {
        int rc = talk_connect(t, host, port, post_receives);
        if (rc) {
            cli_errno(rc, "connection %u to %s port %u", i + 1, host, port);
            return CLI_FAIL;
        }
    }
    int rc = receive_all(t);
    if (!rc)
        rc = send_all(t);
    if (!rc) /* not for the ACKs: the server may hang up before they are here */
        rc = talk_wait_goodbye(t);
    if (rc)
        cli_errno(rc, "messages");
    return rc ? CLI_FAIL : CLI_OK;
}

static int be_server(struct talk *t)
{
    struct urnic_listener *listener;
    int rc = urnic_listen_addr(t->ctx, NULL, (uint16_t)o.port, (int)o.connections, &listener);
    if (rc) {
        cli_errno(rc, "listen on port %llu", (unsigned long long)o.port);
        return CLI_FAIL;
    }
    fprintf(o.json ? stderr : stdout, "listening\n");
    fflush(stdout);
    while (!rc && t->nconns < o.connections)
        rc = talk_accept(t, listener, post_receives);
    urnic_close_listener(listener);
    if (!rc)
        rc = send_all(t);
    if (!rc)
        rc = receive_all(t);
    if (rc)
        cli_errno(rc, "after %u of %llu connections", t->nconns, (unsigned long long)o.connections);
    return rc ? CLI_FAIL : CLI_OK; /* closing disconnects */
}

static void report(const struct talk *t)
{
    if (o.json)
        cli_json(json_pack("{s:i,s:I,s:I}", "connections", (int)t->nconns, "messages",
                           (json_int_t)o.count, "octets", (json_int_t)o.size));
    else
        printf("%u connections, %llu messages each way on each\n", t->nconns,
               (unsigned long long)o.count);
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {CLI_OPTIONS,
                                            {"connections", required_argument, NULL, 'c'},
                                            {"count", required_argument, NULL, 'C'},
                                            {"size", required_argument, NULL, 's'},
                                            {"port", required_argument, NULL, 'p'},
                                            {"device", required_argument, NULL, 'd'},
                                            {"json", no_argument, NULL, 'j'},
                                            {0}};
    int c, status;

    while ((c = getopt_long(argc, argv, "hc:C:s:p:d:", options, NULL)) != -1) {
        switch (c) {
        case 'c':
            if (cli_number("--connections", optarg, 1, 64, &o.connections) < 0)
                return CLI_USAGE;
            break;
        case 'C':
            if (cli_number("--count", optarg, 0, 1000, &o.count) < 0)
                return CLI_USAGE;
            break;
        case 's':
            if (cli_size("--size", optarg, 0, MAX_SIZE, &o.size) < 0)
                return CLI_USAGE;
            break;
        case 'p':
            if (cli_number("--port", optarg, 1, 65535, &o.port) < 0)
                return CLI_USAGE;
            break;
        case 'd':
            o.device = optarg;
            break;
        case 'j':
            o.json = true;
            break;
        default:
            if (cli_option(c, &cmd_ucmatose, &status))
                return status;
        }
    }
    if (cli_operands(argc, argv, 0, 1, "") != CLI_OK)
        return CLI_USAGE;
    struct talk t;
    cli_catch_signals();
    int rc = talk_open(&t, o.device, 2 * (size_t)MAX_SIZE, (unsigned)o.connections,
                       o.count ? (unsigned)o.count : 1);
    if (rc) {
        cli_errno(rc, "setting up %s", o.device ? o.device : "the first device");
        status = CLI_FAIL;
    } else {
        status = optind < argc ? be_client(&t, argv[optind]) : be_server(&t);
    }
    if (status == CLI_OK)
        report(&t);
    talk_close(&t);
    return status;
}

const struct cli_command cmd_ucmatose = {
    "ucmatose", "connections and messages; speaks with Linux's ucmatose", help, run};
