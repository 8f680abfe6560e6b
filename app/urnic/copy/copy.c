/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic copy`: a file to or from a machine that runs `urnic serve`, by RDMA WRITE or READ.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "copy_proto.h"
#include "digest.h"
#include "fileio.h"
#include "stat.h"

static const char help[] = {
#include "help_copy.inc"
};

#define ANSWER_MS 60000

struct job {
    const char *device, *file, *path;
    char host[128];
    uint16_t port;
    bool put, quiet, json;
};

struct outcome {
    uint64_t octets, ns, retransmits;
    uint8_t ours[DIGEST_LEN], theirs[DIGEST_LEN];
};

/* HOST[:PORT]:PATH? 1 with the job's host, port and path; 0 it is a file's name; -1 with a message.
 */
static int split_remote(const char *text, struct job *j)
{
    const char *host_end = *text == '[' ? strchr(text, ']') : text;
    const char *colon = host_end ? strchr(host_end, ':') : NULL, *slash = strchr(text, '/');
    char where[sizeof(j->host) + 16];
    if (!colon || colon == text || (slash && slash < colon))
        return 0;
    size_t digits = strspn(colon + 1, "0123456789");
    const char *end = digits && colon[1 + digits] == ':' ? colon + 1 + digits : colon;
    if ((size_t)(end - text) >= sizeof(where) || !end[1]) {
        cli_error("'%s' has not the form HOST:PATH", text);
        return -1;
    }
    memcpy(where, text, (size_t)(end - text));
    where[end - text] = 0;
    j->path = end + 1;
    return cli_host(where, j->host, sizeof(j->host), &j->port) < 0 ? -1 : 1;
}

/* Print the server's ERROR. */
static int refused(const struct copy_msg *msg)
{
    char said[COPY_TEXT];
    cli_error("the other side says: %s", cli_plain(msg->text, said, sizeof(said)));
    return -EREMOTEIO;
}

/* Receive the next message; an ERROR of the server is printed. */
static int await(struct copy_end *e, struct copy_arrival *got)
{
    int rc = copy_wait(e, got, ANSWER_MS);
    if (rc < 0)
        return rc;
    if (got->what == COPY_GONE)
        return -ECONNRESET;
    return got->what == COPY_MSG && got->msg.type == COPY_ERROR ? refused(&got->msg) : 0;
}

/* Wait for a message of this type. */
static int expect(struct copy_end *e, struct copy_msg *msg, enum copy_type type)
{
    struct copy_arrival got;
    int rc;
    do {
        rc = await(e, &got);
        if (rc < 0)
            return rc;
    } while (got.what != COPY_MSG);
    if (got.msg.type != (uint32_t)type)
        return -EPROTO;
    *msg = got.msg;
    return 0;
}

/* Chunks go out while slots are free; each credit frees one. */
static int put(struct copy_end *e, int fd, uint64_t size, const struct copy_msg *ready,
               struct digest *d, struct cli_progress *p)
{
    uint64_t chunks = copy_chunks(size), sent = 0, credited = 0;
    while (credited < chunks) {
        while (sent < chunks && sent - credited < COPY_SLOTS) {
            uint8_t *slot = e->slots + sent % COPY_SLOTS * COPY_SLOT;
            uint32_t octets = copy_chunk_octets(size, sent);
            int rc = fileio_read(fd, slot, octets);
            if (rc == 0) {
                digest_add(d, slot, octets);
                rc = copy_write(e, sent, octets, ready->addr, ready->rkey);
            }
            if (rc < 0)
                return rc;
            sent++;
        }
        struct copy_msg credit;
        int rc = expect(e, &credit, COPY_CREDIT);
        if (rc < 0)
            return rc;
        if (credit.chunk != credited)
            return -EPROTO;
        credited++;
        uint64_t done = credited * COPY_SLOT;
        cli_progress(p, done < size ? done : size, NULL);
    }
    return 0;
}

/* A chunk has been read: write it into the file, and tell the server that its slot is free. */
static int take_chunk(struct copy_end *e, int fd, uint64_t k, uint32_t octets, struct digest *d)
{
    const uint8_t *slot = e->slots + k % COPY_SLOTS * COPY_SLOT;
    struct copy_msg credit = {.type = COPY_CREDIT, .chunk = k};
    digest_add(d, slot, octets);
    int rc = fileio_write(fd, slot, octets);
    return rc < 0 ? rc : copy_send(e, &credit);
}

/* One READ per chunk that the server has filled, in order; several under way at a time. */
static int get(struct copy_end *e, int fd, const struct copy_msg *ready, struct digest *d,
               struct cli_progress *p)
{
    uint64_t size = ready->size, chunks = copy_chunks(size), asked = 0, taken = 0;
    while (taken < chunks) {
        struct copy_arrival got;
        int rc = await(e, &got);
        if (rc < 0)
            return rc;
        if (got.what == COPY_MSG && got.msg.type == COPY_FILLED && got.msg.chunk == asked &&
            asked < chunks && asked - taken < COPY_SLOTS &&
            got.msg.octets == copy_chunk_octets(size, asked)) {
            rc = copy_read(e, asked++, got.msg.octets, ready->addr, ready->rkey);
        } else if (got.what == COPY_READ_DONE && got.chunk == taken) {
            rc = take_chunk(e, fd, taken, copy_chunk_octets(size, taken), d);
            taken++;
            cli_progress(p, taken < chunks ? taken * COPY_SLOT : size, NULL);
        } else {
            rc = -EPROTO;
        }
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* How often the queue pair had to retransmit, from the daemon. */
static uint64_t retransmits_of(uint32_t qpn, const char *device)
{
    struct admin a;
    struct stat_qps q;
    uint64_t n = 0;
    if (admin_open(&a) < 0)
        return 0;
    if (stat_qps(&a, device, qpn, &q) == 0) {
        if (q.count)
            n = q.qp[0].retransmits;
        stat_free_qps(&q);
    }
    admin_close(&a);
    return n;
}

static int transfer(struct copy_end *e, const struct job *j, int fd, uint64_t size,
                    struct outcome *o)
{
    struct copy_msg msg = {.type = j->put ? COPY_PUT : COPY_GET, .size = size}, ready = {0};
    snprintf(msg.text, sizeof(msg.text), "%s", j->path);
    int rc = copy_send(e, &msg);
    if (rc == 0)
        rc = expect(e, &ready, COPY_READY);
    if (rc < 0)
        return rc;

    /* Not earlier: a missing server must not cost the old file. */
    if (!j->put && ftruncate(fd, 0) < 0 && errno != EINVAL) /* EINVAL: a pipe, a terminal */
        return -errno;
    struct digest *d = digest_begin();
    struct cli_progress p;
    if (!d)
        return -ENOMEM;
    o->octets = j->put ? size : ready.size;
    cli_progress_begin(&p, j->put ? "WRITE" : "READ ", o->octets, j->quiet);
    uint64_t started = cli_now();
    rc = j->put ? put(e, fd, size, &ready, d, &p) : get(e, fd, &ready, d, &p);
    o->ns = cli_now() - started;
    digest_end(d, o->ours);
    if (rc < 0)
        return rc;
    cli_progress_end(&p, o->octets, NULL);

    struct copy_msg finish = {.type = COPY_FINISH}, result;
    rc = copy_send(e, &finish);
    if (rc == 0)
        rc = expect(e, &result, COPY_RESULT);
    if (rc == 0)
        memcpy(o->theirs, result.digest, DIGEST_LEN);
    return rc;
}

static void report(const struct job *j, const struct outcome *o, bool equal)
{
    char ours[2 * DIGEST_LEN + 1], theirs[2 * DIGEST_LEN + 1], a[32], b[32], t[32];
    double goodput = o->ns ? (double)o->octets * 8e9 / (double)o->ns : 0;
    digest_text(o->ours, ours);
    digest_text(o->theirs, theirs);
    if (j->json) {
        json_t *r =
            json_pack("{s:s,s:I,s:f,s:f,s:I,s:s,s:s,s:b}", "operation", j->put ? "write" : "read",
                      "octets", (json_int_t)o->octets, "seconds", (double)o->ns / 1e9, "goodput",
                      goodput, "retransmits", (json_int_t)o->retransmits, "sha256_local", ours,
                      "sha256_remote", theirs, "equal", equal);
        cli_json(r);
        return;
    }
    printf("%s %s in %s, goodput %s, %" PRIu64 " packets retransmitted\n",
           j->put ? "sent" : "fetched", cli_fmt_octets(o->octets, a, sizeof(a)),
           cli_fmt_time((double)o->ns, t, sizeof(t)), cli_fmt_rate(goodput, b, sizeof(b)),
           o->retransmits);
    printf("SHA-256 here   %s\nSHA-256 there  %s  %s\n", ours, theirs,
           equal ? "equal" : "DIFFERENT");
}

static int copy(const struct job *j, int fd, uint64_t size)
{
    struct urnic_context *ctx;
    struct copy_end e;
    struct urnic_conn_attr attr;
    struct urnic_device_attr dev;
    struct outcome o = {0};
    int rc = urnic_open(j->device, &ctx);
    if (rc < 0) {
        cli_errno(rc, "%s", j->device ? j->device : "first device");
        return CLI_FAIL;
    }
    rc = urnic_query_device(ctx, &dev);
    if (rc == 0)
        rc = copy_end_init(&e, ctx, 0);
    if (rc < 0) {
        cli_errno(rc, "setting up");
        urnic_close(ctx);
        return CLI_FAIL;
    }
    copy_end_attr(&e, &attr);
    rc = urnic_connect_addr(ctx, j->host, j->port, &attr, copy_prepare, &e, &e.conn);
    if (rc < 0) {
        cli_error("connecting to %s port %u: %s%s", j->host, j->port, strerror(-rc),
                  rc == -ECONNREFUSED ? " (is 'urnic serve' running there?)" : "");
    } else {
        rc = transfer(&e, j, fd, size, &o);
        if (rc == -EIO && e.failed != URNIC_WC_SUCCESS)
            cli_error("the connection failed: %s", urnic_wc_status_str(e.failed));
        else if (rc < 0 && rc != -EREMOTEIO)
            cli_error("%s: %s", j->put ? "sending" : "fetching", strerror(-rc));
        o.retransmits = retransmits_of(urnic_qp_num(e.conn->qp), dev.dev.name);
    }
    bool equal = rc == 0 && memcmp(o.ours, o.theirs, DIGEST_LEN) == 0;
    if (rc == 0)
        report(j, &o, equal);
    copy_end_free(&e);
    urnic_close(ctx);
    return equal ? CLI_OK : CLI_FAIL;
}

/* Which of the two operands is remote? That is also the direction of the copy. Returns 0, or -1
 * after a message. */
static int take_sides(char *const *operand, struct job *j)
{
    int remote = split_remote(operand[1], j);
    if (remote) {
        j->put = true;
        j->file = operand[0];
    } else {
        remote = split_remote(operand[0], j);
        j->file = operand[1];
    }
    if (remote < 0)
        return -1;
    if (!remote) {
        cli_error("neither '%s' nor '%s' has the form HOST:PATH", operand[0], operand[1]);
        return -1;
    }
    if (strlen(j->path) >= COPY_TEXT) {
        cli_error("the remote path is longer than %u octets", COPY_TEXT - 1);
        return -1;
    }
    return 0;
}

/* Open the local file, and copy. */
static int copy_file(const struct job *j)
{
    struct stat st = {0};
    bool there = access(j->file, F_OK) == 0;
    int fd = j->put ? open(j->file, O_RDONLY | O_CLOEXEC)
                    : open(j->file, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || fstat(fd, &st) < 0 || (j->put && !S_ISREG(st.st_mode))) {
        cli_error("%s: %s", j->file, fd < 0 ? strerror(errno) : "not a regular file");
        if (fd >= 0)
            close(fd);
        return CLI_USAGE;
    }
    cli_catch_signals();
    int status = copy(j, fd, (uint64_t)st.st_size);
    /* Remove the file of an attempt that received nothing. */
    if (status != CLI_OK && !there && fstat(fd, &st) == 0 && st.st_size == 0)
        unlink(j->file);
    if (close(fd) < 0 && !j->put) {
        cli_error("%s: %s", j->file, strerror(errno));
        status = CLI_FAIL;
    }
    return status;
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {CLI_OPTIONS,
                                            {"device", required_argument, NULL, 'd'},
                                            {"quiet", no_argument, NULL, 'q'},
                                            {"json", no_argument, NULL, 'j'},
                                            {0}};
    struct job j = {.port = COPY_PORT};
    int c, status;
    while ((c = getopt_long(argc, argv, "hd:q", options, NULL)) != -1) {
        if (c == 'd')
            j.device = optarg;
        else if (c == 'q')
            j.quiet = true;
        else if (c == 'j')
            j.json = j.quiet = true;
        else if (cli_option(c, &cmd_copy, &status))
            return status;
    }
    if (cli_operands(argc, argv, 2, 2, "a file, or HOST:PATH,") != CLI_OK)
        return CLI_USAGE;
    if (take_sides(argv + optind, &j) < 0)
        return CLI_USAGE;
    return copy_file(&j);
}

const struct cli_command cmd_copy = {"copy", "a file over RDMA, to or from `urnic serve`", help,
                                     run};
