/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic rping`: either end of the test that rdma-core's rping plays. A round of it:
 *
 *     client  SEND {address, key, length} of its data    server  RDMA READ of them, SEND
 *     client  SEND {address, key, length} of its sink    server  RDMA WRITE of them there, SEND
 *
 * so that two implementations exchange SENDs, READs and WRITEs, and the client can compare the
 * data. The 16 octets that name a buffer are in network order.
 */
#include <endian.h>
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "talk.h"

static const char help[] = {
#include "help_rping.inc"
};

/* The region: two messages, one sent or read, one received. */
#define MAX_SIZE 65535u
#define MIN_SIZE 32u /* room for the head of the text */
#define OUT_AT   0u
#define IN_AT    64u
#define DATA_AT  4096u
#define SINK_AT  (DATA_AT + 65536u)
#define REGION   (SINK_AT + 65536u)

struct advert {
    uint64_t addr;
    uint32_t rkey, size;
};
_Static_assert(sizeof(struct advert) == 16, "as on the wire");

struct options {
    struct talk_options talk;
    uint64_t count, size;
    bool verbose;
};

static int post_advert_receive(void *arg, struct urnic_qp *qp)
{
    return talk_receive(arg, qp, IN_AT, sizeof(struct advert));
}

static int send_advert(struct talk *t, size_t at, uint32_t size)
{
    struct advert a = {.addr = htobe64(t->res.mr->iova + at),
                       .rkey = htobe32(t->res.mr->rkey),
                       .size = htobe32(size)};
    memcpy(t->res.mem + OUT_AT, &a, sizeof(a));
    return talk_send(t, t->conns[0]->qp, OUT_AT, sizeof(a));
}

/* Take the peer's next message. The receive is posted again before the answer. */
static int next_advert(struct talk *t, struct advert *out)
{
    int rc = talk_wait(t, 0, 1);
    if (rc)
        return rc;
    if (t->shortest != sizeof(*out)) {
        cli_error("the peer's message has %u octets, not %zu: it is not rping", t->shortest,
                  sizeof(*out));
        return -EPROTO;
    }
    memcpy(out, t->res.mem + IN_AT, sizeof(*out));
    out->addr = be64toh(out->addr);
    out->rkey = be32toh(out->rkey);
    out->size = be32toh(out->size);
    return post_advert_receive(t, t->conns[0]->qp);
}

/* A message of rping: a head with the round's number, then letters. */
static void compose(char *text, uint32_t size, uint64_t round)
{
    int n = snprintf(text, size, "rdma-ping-%llu: ", (unsigned long long)round);
    unsigned letter = 'A' + (unsigned)(round % 58);
    for (uint32_t i = (uint32_t)n; i + 1 < size; i++) {
        text[i] = (char)letter;
        letter = letter == 'z' ? 'A' : letter + 1;
    }
    text[size - 1] = '\0';
}

static void show(const struct options *o, const char *whose, const uint8_t *data, uint32_t size)
{
    char text[201], plain[sizeof(text)];
    if (!o->verbose)
        return;
    snprintf(text, sizeof(text), "%.*s", (int)(size < 200 ? size : 200), (const char *)data);
    fprintf(o->talk.json ? stderr : stdout, "%s: %s\n", whose,
            cli_plain(text, plain, sizeof(plain)));
}

static int client_round(struct talk *t, const struct options *o, uint64_t round)
{
    uint32_t size = (uint32_t)o->size;
    struct advert unused;
    compose((char *)t->res.mem + DATA_AT, size, round);
    memset(t->res.mem + SINK_AT, 0, size);
    int rc = send_advert(t, DATA_AT, size);
    if (!rc)
        rc = talk_wait(t, 1, 0);
    if (!rc)
        rc = next_advert(t, &unused);
    if (!rc)
        rc = send_advert(t, SINK_AT, size);
    if (!rc)
        rc = talk_wait(t, 1, 0);
    if (!rc)
        rc = next_advert(t, &unused);
    if (rc)
        return rc;
    show(o, "ping data", t->res.mem + SINK_AT, size);
    if (memcmp(t->res.mem + DATA_AT, t->res.mem + SINK_AT, size) != 0) {
        cli_error("round %llu: the returned data differ from the sent data",
                  (unsigned long long)round);
        return -EIO;
    }
    return 0;
}

static int server_round(struct talk *t, const struct options *o)
{
    struct urnic_qp *qp = t->conns[0]->qp;
    struct advert source, sink;
    int rc = next_advert(t, &source);
    if (rc)
        return rc;
    if (source.size > MAX_SIZE + 1) {
        cli_error("the client offers %u octets, more than %u", source.size, MAX_SIZE + 1);
        return -EMSGSIZE;
    }
    rc = talk_rdma(t, qp, URNIC_WR_RDMA_READ, DATA_AT, source.size, source.addr, source.rkey);
    if (!rc)
        rc = talk_wait(t, 1, 0);
    if (!rc) {
        show(o, "server ping data", t->res.mem + DATA_AT, source.size);
        rc = send_advert(t, DATA_AT, 0);
    }
    if (!rc)
        rc = talk_wait(t, 1, 0);
    if (!rc)
        rc = next_advert(t, &sink);
    if (!rc && sink.size < source.size)
        rc = -EMSGSIZE;
    if (!rc)
        rc = talk_rdma(t, qp, URNIC_WR_RDMA_WRITE, DATA_AT, source.size, sink.addr, sink.rkey);
    if (!rc)
        rc = talk_wait(t, 1, 0);
    if (!rc)
        rc = send_advert(t, DATA_AT, 0);
    if (rc)
        return rc;
    rc = talk_wait(t, 1, 0);
    /* After its last round the client may hang up before its ACK is here. */
    return rc == -ECONNRESET ? 0 : rc;
}

static int be_client(struct talk *t, const struct options *o)
{
    int rc = talk_connect(t, o->talk.host, o->talk.port, post_advert_receive, t);
    if (rc) {
        cli_errno(rc, "connect to %s port %u", o->talk.host, o->talk.port);
        return CLI_FAIL;
    }
    uint64_t began = cli_now();
    for (uint64_t i = 0; i < o->count; i++) {
        rc = client_round(t, o, i);
        if (rc) {
            cli_errno(rc, "round %llu", (unsigned long long)i);
            return CLI_FAIL;
        }
    }
    double ns = (double)(cli_now() - began) / (double)o->count;
    char time[32];
    if (o->talk.json)
        cli_json(json_pack("{s:I,s:I,s:f}", "rounds", (json_int_t)o->count, "octets",
                           (json_int_t)o->size, "round_us", ns / 1e3));
    else
        printf("%llu rounds of %llu octets, all came back equal, %s each\n",
               (unsigned long long)o->count, (unsigned long long)o->size,
               cli_fmt_time(ns, time, sizeof(time)));
    return CLI_OK;
}

static int be_server(struct talk *t, const struct options *o)
{
    struct urnic_listener *listener;
    int rc = talk_listen(t, &o->talk, 1, &listener);
    if (rc)
        return CLI_FAIL;
    rc = talk_accept(t, listener, post_advert_receive, t);
    uint64_t rounds = 0;
    while (!rc) {
        rc = server_round(t, o);
        rounds += !rc;
    }
    urnic_close_listener(listener);
    if (rc == -EINTR)
        return CLI_OK;
    if (rc != -ECONNRESET) { /* the client ends by hanging up */
        cli_errno(rc, "after %llu rounds", (unsigned long long)rounds);
        return CLI_FAIL;
    }
    if (o->talk.json)
        cli_json(json_pack("{s:I}", "rounds", (json_int_t)rounds));
    else
        printf("served %llu rounds\n", (unsigned long long)rounds);
    return CLI_OK;
}

static int be_end(void *arg, const struct talk_options *talk)
{
    const struct options *o = arg;
    struct talk t;
    int status = CLI_FAIL;
    if (talk_open(&t, talk, REGION, 1, 4) == 0)
        status = talk->where ? be_client(&t, o) : be_server(&t, o);
    talk_close(&t);
    return status;
}

/* Take one of our own options and its value. 0; -1 with a message; 1 = another option. */
static int take(void *arg, int c, char *value)
{
    struct options *o = arg;
    switch (c) {
    case 'C':
        return cli_number("--count", value, 1, UINT32_MAX, &o->count);
    case 's':
        return cli_size("--size", value, MIN_SIZE, MAX_SIZE, &o->size);
    case 'v':
        o->verbose = true;
        return 0;
    default:
        return talk_option(&o->talk, c, value);
    }
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {TALK_OPTIONS,
                                            {"count", required_argument, NULL, 'C'},
                                            {"size", required_argument, NULL, 's'},
                                            {"verbose", no_argument, NULL, 'v'},
                                            {0}};
    struct options o = {.count = 10, .size = 64, .talk.port = 7174};
    int status = cli_options(argc, argv, &cmd_rping, "hC:s:p:vd:", options, take, &o);
    if (status != CLI_GO_ON)
        return status;
    if (talk_operands(&o.talk, argc, argv) != CLI_OK)
        return CLI_USAGE;
    cli_catch_signals();
    return o.talk.where ? be_end(&o, &o.talk) : talk_serve(&o.talk, be_end, &o);
}

const struct cli_command cmd_rping = {"rping", "ping by READ and WRITE; speaks with Linux's rping",
                                      help, run};
