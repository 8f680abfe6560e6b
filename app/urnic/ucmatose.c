/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic ucmatose`: either end of the test that rdma-core's ucmatose plays. All connections come
 * up, the server sends N messages on each, the client answers with as many, the server disconnects.
 */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "talk.h"

static const char help[] = {
#include "help_ucmatose.inc"
};

#define MAX_SIZE (1u << 20)

struct options {
    struct talk_options talk;
    uint64_t connections, count, size;
};

struct run {
    struct talk talk;
    const struct options *o;
};

/* The region: one message to send, one to receive into; their contents don't matter. */
static int post_receives(void *arg, struct urnic_qp *qp)
{
    struct run *r = arg;
    int rc = 0;
    for (uint64_t i = 0; i < r->o->count && !rc; i++)
        rc = talk_receive(&r->talk, qp, MAX_SIZE, (uint32_t)r->o->size);
    return rc;
}

static int send_all(struct run *r)
{
    struct talk *t = &r->talk;
    int rc = 0;
    for (unsigned c = 0; c < t->nconns; c++)
        for (uint64_t i = 0; i < r->o->count && !rc; i++)
            rc = talk_send(t, t->conns[c]->qp, 0, (uint32_t)r->o->size);
    return rc;
}

static int receive_all(struct run *r)
{
    const struct options *o = r->o;
    struct talk *t = &r->talk;
    int rc = talk_wait(t, 0, (unsigned)(t->nconns * o->count));
    if (!rc && o->count && t->shortest != o->size) {
        cli_error("a message of %u octets came, --size is %llu", t->shortest,
                  (unsigned long long)o->size);
        rc = -EPROTO;
    }
    return rc;
}

static int be_client(struct run *r)
{
    const struct options *o = r->o;
    struct talk *t = &r->talk;
    for (unsigned i = 0; i < o->connections; i++) {
        int rc = talk_connect(t, o->talk.host, o->talk.port, post_receives, r);
        if (rc) {
            cli_errno(rc, "connection %u to %s port %u", i + 1, o->talk.host, o->talk.port);
            return CLI_FAIL;
        }
    }
    int rc = receive_all(r);
    if (!rc)
        rc = send_all(r);
    if (!rc) /* not for the ACKs: the server may hang up before they are here */
        rc = talk_wait_goodbye(t);
    if (rc)
        cli_errno(rc, "messages");
    return rc ? CLI_FAIL : CLI_OK;
}

static int be_server(struct run *r)
{
    const struct options *o = r->o;
    struct talk *t = &r->talk;
    struct urnic_listener *listener;
    int rc = talk_listen(t, &o->talk, (unsigned)o->connections, &listener);
    if (rc)
        return CLI_FAIL;
    while (!rc && t->nconns < o->connections)
        rc = talk_accept(t, listener, post_receives, r);
    urnic_close_listener(listener);
    if (rc == -EINTR && t->nconns == 0)
        return CLI_OK; /* after a signal, or when the client has come on another device */
    if (!rc)
        rc = send_all(r);
    if (!rc)
        rc = receive_all(r);
    if (rc)
        cli_errno(rc, "after %u of %llu connections", t->nconns,
                  (unsigned long long)o->connections);
    return rc ? CLI_FAIL : CLI_OK; /* closing disconnects */
}

static void report(const struct run *r)
{
    const struct options *o = r->o;
    const struct talk *t = &r->talk;
    if (o->talk.json)
        cli_json(json_pack("{s:i,s:I,s:I}", "connections", (int)t->nconns, "messages",
                           (json_int_t)o->count, "octets", (json_int_t)o->size));
    else
        printf("%u connections, %llu messages each way on each\n", t->nconns,
               (unsigned long long)o->count);
}

static int be_end(void *arg, const struct talk_options *talk)
{
    const struct options *o = arg;
    struct run r = {.o = o};
    int status = CLI_FAIL;
    if (talk_open(&r.talk, talk, 2 * (size_t)MAX_SIZE, (unsigned)o->connections,
                  o->count ? (unsigned)o->count : 1) == 0)
        status = talk->where ? be_client(&r) : be_server(&r);
    if (status == CLI_OK && r.talk.nconns > 0)
        report(&r);
    talk_close(&r.talk);
    return status;
}

/* Take one of our own options and its value. 0; -1 with a message; 1 = another option. */
static int take(void *arg, int c, char *value)
{
    struct options *o = arg;
    switch (c) {
    case 'c':
        return cli_number("--connections", value, 1, 64, &o->connections);
    case 'C':
        return cli_number("--count", value, 0, 1000, &o->count);
    case 's':
        return cli_size("--size", value, 0, MAX_SIZE, &o->size);
    default:
        return talk_option(&o->talk, c, value);
    }
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {TALK_OPTIONS,
                                            {"connections", required_argument, NULL, 'c'},
                                            {"count", required_argument, NULL, 'C'},
                                            {"size", required_argument, NULL, 's'},
                                            {0}};
    struct options o = {.connections = 1, .count = 10, .size = 100, .talk.port = 7471};
    int status = cli_options(argc, argv, &cmd_ucmatose, "hc:C:s:p:d:", options, take, &o);
    if (status != CLI_GO_ON)
        return status;
    if (talk_operands(&o.talk, argc, argv) != CLI_OK)
        return CLI_USAGE;
    cli_catch_signals();
    return o.talk.where ? be_end(&o, &o.talk) : talk_serve(&o.talk, be_end, &o);
}

const struct cli_command cmd_ucmatose = {
    "ucmatose", "connections and messages; speaks with Linux's ucmatose", help, run};
