/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic capture`: frames of a device's port into a pcapng file.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "admin.h"
#include "cli.h"

static const char help[] = {
#include "help_capture.inc"
};

#define START_NS 10000000000ull /* wait for the file's beginning */
#define LAST_NS  500000000ull   /* wait for the end of a capture that ends at once */
#define LAST_MS  10000          /* wait for its end, before a check that the daemon is there */

struct job {
    struct ipc_capture request; /* no device = the first one */
    uint64_t ns;                /* 0 = until a signal */
    bool json;
};

/* The named device, or the first one when `name` is empty; before a file is overwritten for it. */
static int find_device(struct admin *a, char name[IPC_NAME_MAX])
{
    struct ipc_device dev[ADMIN_DEVICES_MAX];
    int n = admin_devices(a, dev, ADMIN_DEVICES_MAX);
    for (int i = 0; i < n; i++)
        if (!name[0] || strncmp(name, dev[i].name, IPC_NAME_MAX) == 0) {
            memcpy(name, dev[i].name, IPC_NAME_MAX);
            return 0;
        }
    return n < 0 ? n : -ENODEV;
}

/* Wait for the end of the daemon, or of the reader of the pipe `fd`: the only events here. False:
 * time is up, or there was a signal. */
static bool heard(const struct admin *a, int fd, uint64_t until)
{
    struct pollfd p[] = {{.fd = a->sock, .events = POLLIN}, {.fd = fd}};
    while (!cli_stop && cli_now() < until)
        if (poll(p, 2, 50) > 0)
            return true;
    return false;
}

/* Has the capture started? A signal ends the wait, but an answer on its way is taken first. */
static bool heard_of_start(const struct admin *a)
{
    struct pollfd p = {.fd = a->sock, .events = POLLIN};
    uint64_t until = cli_now() + START_NS;
    if (heard(a, -1, until))
        return true;
    for (until = cli_now() + LAST_NS; cli_stop && cli_now() < until;)
        if (poll(&p, 1, 50) > 0)
            return true;
    return false;
}

/* No answer came in time. Is the daemon late, or the file? */
static bool daemon_answers(void)
{
    struct admin probe;
    int rc = admin_open_within(&probe, 1);
    admin_close(&probe);
    return rc == 0;
}

static int no_start(const char **why)
{
    if (daemon_answers())
        *why = "the file takes nothing";
    return -ETIMEDOUT;
}

/* Wait until a pipe's reader, which may be slow, has taken all, or for another signal. */
static ssize_t stop(struct admin *a, uint32_t handle, struct ipc_captured *result)
{
    struct ipc_handle request = {.hdr = {.type = IPC_CAPTURE_STOP}, .handle = handle};
    struct pollfd p = {.fd = a->sock, .events = POLLIN};
    int rc = admin_ask(a, &request, sizeof(request), -1);
    if (rc < 0)
        return rc;
    while (poll(&p, 1, LAST_MS) <= 0)
        if (!daemon_answers())
            return -ETIMEDOUT;
    return admin_answer(a, result, sizeof(*result));
}

/* After a failed end the daemon's count covers some, but not all, of the frames that the file
 * lacks. */
static void say(const struct ipc_captured *r, const char *device, bool whole, bool json)
{
    char size[32];
    if (json)
        cli_json(json_pack("{s:s,s:I,s:I,s:I}", "device", device, "frames", (json_int_t)r->packets,
                           "octets", (json_int_t)r->octets, "not_written", (json_int_t)r->lost));
    fprintf(stderr, "%llu frames, %s, %s%llu not written\n", (unsigned long long)r->packets,
            cli_fmt_octets(r->octets, size, sizeof(size)), whole ? "" : "at least ",
            (unsigned long long)r->lost);
}

/* 0 or -errno, with *why if a text says more. */
static int capture(struct admin *a, struct ipc_capture *request, int fd, const struct job *j,
                   const char **why)
{
    int rc = admin_ask(a, request, sizeof(*request), fd);
    if (rc < 0)
        return rc;
    if (!heard_of_start(a))
        return cli_stop ? -EINTR : no_start(why);
    struct ipc_handle handle;
    ssize_t n = admin_answer(a, &handle, sizeof(handle));
    if (n < 0)
        return (int)n;
    if ((size_t)n < sizeof(handle))
        return -EPROTO;
    fprintf(stderr, "capturing %s; Ctrl-C ends\n", request->device);

    heard(a, fd, j->ns ? cli_now() + j->ns : UINT64_MAX);
    struct ipc_captured result = {0};
    n = stop(a, handle.handle, &result);
    if (n >= 0 || result.hdr.status == n) /* the daemon's answer has a text */
        say(&result, request->device, n >= 0, j->json);
    if (n == -EAGAIN)
        *why = "its reader doesn't read, and lacks the end";
    return n < 0 ? (int)n : 0;
}

/* Capture into the file until it is enough. CLI_*. */
static int capture_to(const char *path, const struct job *j)
{
    struct ipc_capture request = j->request;
    const char *why = NULL;
    struct admin a;
    int rc = admin_open(&a);
    if (rc == 0)
        rc = find_device(&a, request.device);
    if (rc == 0) {
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if (fd < 0) {
            cli_error("%s: %s", path, strerror(errno));
            admin_close(&a);
            return CLI_USAGE;
        }
        cli_catch_signals();
        rc = capture(&a, &request, fd, j, &why);
        close(fd);
    }
    const char *device = request.device[0] ? request.device : "the first device";
    if (why)
        cli_error("capturing %s into %s: %s", device, path, why);
    else if (rc < 0)
        cli_errno(rc, "capturing %s into %s", device, path);
    admin_close(&a);
    return rc == 0 ? CLI_OK : CLI_FAIL;
}

/* Take one of our own options and its value. 0; -1 with a message; 1 = another option. */
static int take(void *arg, int c, char *value)
{
    struct job *j = arg;
    uint64_t v;
    switch (c) {
    case 'd':
        admin_set_device(j->request.device, value);
        return 0;
    case 'q':
        return cli_qpn("--qp", value, &j->request.qpn);
    case 's':
        if (cli_number("--snaplen", value, 64, 65535, &v) < 0)
            return -1;
        j->request.snaplen = (uint32_t)v;
        return 0;
    case 'l':
        return cli_size("--limit", value, 4096, UINT64_MAX >> 1, &j->request.limit);
    case 'f':
        return cli_seconds("--for", value, &j->ns);
    case 'j':
        j->json = true;
        return 0;
    case 'n':
        j->request.flags &= ~IPC_CAPTURE_DROPS;
        return 0;
    default:
        return 1;
    }
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {CLI_OPTIONS,
                                            {"device", required_argument, NULL, 'd'},
                                            {"qp", required_argument, NULL, 'q'},
                                            {"snaplen", required_argument, NULL, 's'},
                                            {"limit", required_argument, NULL, 'l'},
                                            {"for", required_argument, NULL, 'f'},
                                            {"no-drops", no_argument, NULL, 'n'},
                                            {"json", no_argument, NULL, 'j'},
                                            {0}};
    struct job j = {.request = {.hdr = {.type = IPC_CAPTURE_START},
                                .flags = IPC_CAPTURE_DROPS,
                                .limit = 1ull << 30}};
    int status = cli_options(argc, argv, &cmd_capture, "hd:", options, take, &j);
    if (status != CLI_GO_ON)
        return status;
    if (cli_operands(argc, argv, 1, 1, "a file to write") != CLI_OK)
        return CLI_USAGE;
    return capture_to(argv[optind], &j);
}

const struct cli_command cmd_capture = {"capture", "frames of a device into a pcapng file", help,
                                        run};
