/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic serve`: the other end of `urnic copy`. One connection at a time.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "copy_proto.h"
#include "digest.h"
#include "each_device.h"
#include "fileio.h"

static const char help[] = {
#include "help_serve.inc"
};

#define IDLE_MS   60000
#define ACCEPT_MS 30000

struct server {
    struct urnic_context *ctx;
    struct urnic_listener *listener;
    int dir;
    const char *name; /* path of dir, as the user gave it */
    bool read_only, json;
    uint16_t port;
    uint64_t once;            /* number of transfers before the end */
    _Atomic uint64_t *served; /* transfers so far, of all devices' processes */
};

struct file {
    int fd;
    uint64_t size, at; /* octets of the file, octets transferred */
};

/* Open a file below dir. Links that lead out of it are not followed. */
static int open_below(int dir, const char *path, int flags)
{
    if (*path == '/' || !*path)
        return -EACCES;
    int at = dup(dir);
    if (at < 0)
        return -errno;
    for (;;) {
        char name[256];
        size_t len = strcspn(path, "/");
        bool last = path[len] == 0;
        if (len == 0 || len >= sizeof(name) || (len == 2 && path[0] == '.' && path[1] == '.')) {
            close(at);
            return -EACCES;
        }
        memcpy(name, path, len);
        name[len] = 0;
        int next = last ? openat(at, name, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0666)
                        : openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int err = errno;
        close(at);
        if (next < 0)
            return -err;
        if (last)
            return next;
        at = next;
        path += len + 1;
    }
}

/* Wait until the client has hung up: a hang-up by the server may cut off the last message. */
static void await_goodbye(struct copy_end *e)
{
    struct copy_arrival got;
    while (copy_wait(e, &got, IDLE_MS) == 0 && got.what != COPY_GONE)
        ;
}

/* Send the error to the client. Returns rc. */
static int refuse(struct copy_end *e, int rc, const char *what)
{
    struct copy_msg msg = {.type = COPY_ERROR};
    char said[COPY_TEXT];
    snprintf(msg.text, sizeof(msg.text), "%.280s: %.100s", what, strerror(-rc));
    cli_error("%s", cli_plain(msg.text, said, sizeof(said)));
    if (copy_send(e, &msg) == 0)
        await_goodbye(e);
    return rc;
}

/* Chunks arrive in order, each announced by its immediate. */
static int take_file(struct copy_end *e, struct file *f, struct digest *d)
{
    for (uint64_t k = 0; f->at < f->size; k++) {
        struct copy_arrival got;
        int rc = copy_wait(e, &got, IDLE_MS);
        if (rc < 0)
            return rc;
        if (got.what == COPY_GONE)
            return -ECONNRESET;
        if (got.what != COPY_IMM || got.imm == 0 || got.imm > COPY_SLOT ||
            got.imm > f->size - f->at)
            return -EPROTO;
        const uint8_t *slot = e->slots + k % COPY_SLOTS * COPY_SLOT;
        digest_add(d, slot, got.imm);
        rc = fileio_write(f->fd, slot, got.imm);
        if (rc < 0)
            return refuse(e, rc, "writing the file");
        f->at += got.imm;
        struct copy_msg credit = {.type = COPY_CREDIT, .chunk = k};
        rc = copy_send(e, &credit);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Fill and announce free slots; credits free them again. */
static int give_file(struct copy_end *e, struct file *f, struct digest *d)
{
    uint64_t chunks = copy_chunks(f->size), filled = 0, credited = 0;
    while (credited < chunks) {
        while (filled < chunks && filled - credited < COPY_SLOTS) {
            uint8_t *slot = e->slots + filled % COPY_SLOTS * COPY_SLOT;
            uint32_t octets = copy_chunk_octets(f->size, filled);
            int rc = fileio_read(f->fd, slot, octets);
            if (rc < 0)
                return refuse(e, rc, "reading the file");
            digest_add(d, slot, octets);
            f->at += octets;
            struct copy_msg msg = {.type = COPY_FILLED, .chunk = filled, .octets = octets};
            rc = copy_send(e, &msg);
            if (rc < 0)
                return rc;
            filled++;
        }
        struct copy_arrival got;
        int rc = copy_wait(e, &got, IDLE_MS);
        if (rc < 0)
            return rc;
        if (got.what == COPY_GONE)
            return -ECONNRESET;
        if (got.what != COPY_MSG || got.msg.type != COPY_CREDIT)
            return -EPROTO;
        credited++;
    }
    return 0;
}

static int finish(struct copy_end *e, const uint8_t digest[DIGEST_LEN])
{
    struct copy_arrival got;
    int rc = copy_wait(e, &got, IDLE_MS);
    if (rc < 0)
        return rc;
    if (got.what != COPY_MSG || got.msg.type != COPY_FINISH)
        return -EPROTO;
    struct copy_msg result = {.type = COPY_RESULT};
    memcpy(result.digest, digest, DIGEST_LEN);
    rc = copy_send(e, &result);
    if (rc == 0)
        await_goodbye(e);
    return rc;
}

/* Open the file that the client names, if the client may have it. 0 or -errno. */
static int open_file(struct server *s, const struct copy_msg *ask, struct file *f)
{
    bool put = ask->type == COPY_PUT;
    struct stat st;
    if (put && s->read_only)
        return -EROFS;
    f->fd = open_below(s->dir, ask->text, put ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY);
    if (f->fd < 0)
        return f->fd;
    if (fstat(f->fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        close(f->fd);
        return -EACCES;
    }
    f->size = put ? ask->size : (uint64_t)st.st_size;
    return 0;
}

static void report(const struct server *s, const struct copy_msg *ask, uint64_t octets,
                   const uint8_t digest[DIGEST_LEN])
{
    const char *done = ask->type == COPY_PUT ? "received" : "sent";
    char path[COPY_TEXT], size[32], sha256[2 * DIGEST_LEN + 1];
    digest_text(digest, sha256);
    if (s->json)
        cli_json(json_pack("{s:s,s:o,s:I,s:s}", "operation", done, "path", cli_json_text(ask->text),
                           "octets", (json_int_t)octets, "sha256", sha256));
    else
        printf("%s %s %s sha256 %s\n", done, cli_plain(ask->text, path, sizeof(path)),
               cli_fmt_octets(octets, size, sizeof(size)), sha256);
    fflush(stdout);
}

static int transfer(struct server *s, struct copy_end *e)
{
    struct copy_arrival got;
    struct file f = {0};
    int rc = copy_wait(e, &got, IDLE_MS);
    if (rc < 0)
        return rc;
    if (got.what != COPY_MSG || (got.msg.type != COPY_PUT && got.msg.type != COPY_GET))
        return -EPROTO;
    rc = open_file(s, &got.msg, &f);
    if (rc < 0)
        return refuse(e, rc, got.msg.text);
    struct digest *d = digest_begin();
    if (!d) {
        close(f.fd);
        return -ENOMEM;
    }
    struct copy_msg ready = {
        .type = COPY_READY, .size = f.size, .addr = (uintptr_t)e->slots, .rkey = e->res.mr->rkey};
    uint8_t digest[DIGEST_LEN];
    rc = copy_send(e, &ready);
    if (rc == 0)
        rc = got.msg.type == COPY_PUT ? take_file(e, &f, d) : give_file(e, &f, d);
    digest_end(d, digest);
    if (close(f.fd) < 0 && rc == 0)
        rc = -errno;
    if (rc == 0)
        rc = finish(e, digest);
    if (rc == 0)
        report(s, &got.msg, f.size, digest);
    return rc;
}

/* The time limit of accepting must not run before a client comes. */
static int wait_for_request(struct server *s)
{
    struct pollfd fd = {.fd = urnic_listener_fd(s->listener), .events = POLLIN};
    while (!cli_stop) {
        int n = poll(&fd, 1, 500);
        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return -errno;
    }
    return -EINTR;
}

/* Serve one transfer. A connection that fails does not end the server. */
static int serve_one(struct server *s)
{
    struct copy_end e;
    struct urnic_conn_attr attr;
    int rc = copy_end_init(&e, s->ctx, URNIC_ACCESS_REMOTE_WRITE | URNIC_ACCESS_REMOTE_READ);
    if (rc < 0)
        return rc;
    copy_end_attr(&e, &attr);
    attr.timeout_ms = ACCEPT_MS;
    rc = wait_for_request(s);
    if (rc == 0)
        rc = urnic_accept_conn(s->listener, &attr, copy_prepare, &e, &e.conn);
    if (rc == 0) {
        rc = transfer(s, &e);
        if (rc < 0)
            cli_error("transfer: %s", rc == -EIO && e.failed != URNIC_WC_SUCCESS
                                          ? urnic_wc_status_str(e.failed)
                                          : strerror(-rc));
    }
    if (rc != -ENODEV && rc != -EINTR)
        rc = 0;
    copy_end_free(&e);
    return rc;
}

/* Serve until `once` transfers are done, or a signal comes. CLI_*. */
static int serve(void *arg, const char *device)
{
    struct server *s = arg;
    int rc = urnic_open(device, &s->ctx);
    if (rc < 0) {
        cli_errno(rc, "%s", device ? device : "first device");
        return CLI_FAIL;
    }
    rc = urnic_listen_addr(s->ctx, NULL, s->port, 0, &s->listener);
    if (rc < 0) {
        cli_errno(rc, "listening on port %u", s->port);
    } else {
        cli_catch_signals();
        each_device_listens();
        while (*s->served < s->once && !cli_stop && rc == 0) {
            rc = serve_one(s);
            ++*s->served;
        }
        if (rc == -ETIMEDOUT || rc == -EINTR)
            rc = 0; /* a signal */
        if (rc < 0)
            cli_errno(rc, "serving");
        urnic_close_listener(s->listener);
    }
    urnic_close(s->ctx);
    return rc == 0 ? CLI_OK : CLI_FAIL;
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {CLI_OPTIONS,
                                            {"dir", required_argument, NULL, 'C'},
                                            {"device", required_argument, NULL, 'd'},
                                            {"port", required_argument, NULL, 'p'},
                                            {"once", required_argument, NULL, 'n'},
                                            {"read-only", no_argument, NULL, 'r'},
                                            {"json", no_argument, NULL, 'j'},
                                            {0}};
    struct server s = {.dir = -1, .name = ".", .port = COPY_PORT, .once = UINT64_MAX};
    const char *device = NULL;
    int c, status;
    while ((c = getopt_long(argc, argv, "hC:d:p:n:r", options, NULL)) != -1) {
        switch (c) {
        case 'C':
            s.name = optarg;
            break;
        case 'd':
            device = optarg;
            break;
        case 'p':
            if (cli_port(optarg, &s.port) < 0)
                return CLI_USAGE;
            break;
        case 'n':
            if (cli_number("--once", optarg, 1, UINT64_MAX, &s.once) < 0)
                return CLI_USAGE;
            break;
        case 'r':
            s.read_only = true;
            break;
        case 'j':
            s.json = true;
            break;
        default:
            if (cli_option(c, &cmd_serve, &status))
                return status;
        }
    }
    if (cli_operands(argc, argv, 0, 0, "") != CLI_OK)
        return CLI_USAGE;
    s.dir = open(s.name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s.dir < 0) {
        cli_error("--dir: %s: %s", s.name, strerror(errno));
        return CLI_USAGE;
    }
    s.served =
        mmap(NULL, sizeof(*s.served), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s.served == MAP_FAILED) {
        cli_error("a page of memory: %s", strerror(errno));
        close(s.dir);
        return CLI_FAIL;
    }
    /* With --json standard output is for transfers alone. */
    char says[PATH_MAX + 40];
    const struct each_device what = {
        .serve = serve, .arg = &s, .to = s.json ? stderr : stdout, .says = says};
    snprintf(says, sizeof(says), "serving %s on port %u\n", s.name, s.port);
    status = each_device(device, &what);
    munmap(s.served, sizeof(*s.served));
    close(s.dir);
    return status;
}

const struct cli_command cmd_serve = {"serve", "the other end of `urnic copy`", help, run};
