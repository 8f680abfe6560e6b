/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic ucmatose`: either end of the test that rdma-core's ucmatose plays. All connections come
 * up, the server sends N messages on each, the client answers with as many, the server disconnects.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "talk.h"

static const char help[] = {
#include "help_ucmatose.inc"
};

#define MAX_SIZE (1u << 20)

/* Of the command line; file-wide because post_receives gets the connection only. */
static struct options {
    struct talk_options talk;
    uint64_t connections, count, size;
} o = {.connections = 1, .count = 10, .size = 100, .talk.port = 7471};

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

static int be_client(struct talk *t)
{
    for (unsigned i = 0; i < o.connections; i++) {
        int rc = talk_connect(t, o.talk.host, o.talk.port, post_receives);
        if (rc) {
            cli_errno(rc, "connection %u to %s port %u", i + 1, o.talk.host, o.talk.port);
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
    int rc = talk_listen(t, &o.talk, (unsigned)o.connections, &listener);
    if (rc)
        return CLI_FAIL;
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
    if (o.talk.json)
        cli_json(json_pack("{s:i,s:I,s:I}", "connections", (int)t->nconns, "messages",
                           (json_int_t)o.count, "octets", (json_int_t)o.size));
    else
        printf("%u connections, %llu messages each way on each\n", t->nconns,
               (unsigned long long)o.count);
}

/* One of our own options and its value. 0; -1 with a message; 1 = it is none of them. */
static int take(int c, const char *value)
{
    switch (c) {
    case 'c':
        return cli_number("--connections", value, 1, 64, &o.connections);
    case 'C':
        return cli_number("--count", value, 0, 1000, &o.count);
    case 's':
        return cli_size("--size", value, 0, MAX_SIZE, &o.size);
    default:
        return talk_option(&o.talk, c, value);
    }
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {TALK_OPTIONS,
                                            {"connections", required_argument, NULL, 'c'},
                                            {"count", required_argument, NULL, 'C'},
                                            {"size", required_argument, NULL, 's'},
                                            {0}};
    struct talk t;
    int c, status;

    while ((c = getopt_long(argc, argv, "hc:C:s:p:d:", options, NULL)) != -1) {
        int rc = take(c, optarg);
        if (rc < 0)
            return CLI_USAGE;
        if (rc > 0 && cli_option(c, &cmd_ucmatose, &status))
            return status;
    }
    if (talk_operands(&o.talk, argc, argv) != CLI_OK)
        return CLI_USAGE;
    cli_catch_signals();
    if (talk_open(&t, &o.talk, 2 * (size_t)MAX_SIZE, (unsigned)o.connections,
                  o.count ? (unsigned)o.count : 1) != 0)
        status = CLI_FAIL;
    else
        status = o.talk.where ? be_client(&t) : be_server(&t);
    if (status == CLI_OK)
        report(&t);
    talk_close(&t);
    return status;
}

const struct cli_command cmd_ucmatose = {
    "ucmatose", "connections and messages; speaks with Linux's ucmatose", help, run};
