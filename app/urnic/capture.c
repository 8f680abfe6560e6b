/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic capture`: frames of a device's port into a pcapng file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "admin.h"
#include "cli.h"

static const char help[] =
    "usage: urnic capture [--device NAME] [--qp QPN] [--snaplen N] [--limit SIZE] [--for SECONDS]\n"
    "                     [--no-drops] FILE\n\n"
    "Has the daemon write every frame of a device, sent and received, into FILE (pcapng, "
    "nanoseconds,\n"
    "direction; what the device drops carries the counter's name as a comment). Ends at a "
    "signal.\n\n"
    "  -d, --device NAME   device (default: the first one)\n"
    "      --qp QPN        only frames from or to this queue pair\n"
    "      --snaplen N     keep at most N octets of a frame (default: all)\n"
    "      --limit SIZE    stop writing when the file has SIZE octets (default: 1G)\n"
    "      --for SECONDS   end after that time\n"
    "      --no-drops      no comments about drops\n"
    "      --socket PATH   the daemon's control socket\n"
    "  -h, --help          this text\n\n"
    "Exit status: 0 captured, 1 no daemon or device, 2 usage.\n";

static int first_device(struct admin *a, char name[IPC_NAME_MAX])
{
    struct ipc_device dev;
    int n = admin_devices(a, &dev, 1);
    if (n > 0)
        memcpy(name, dev.name, IPC_NAME_MAX);
    return n > 0 ? 0 : n < 0 ? n : -ENODEV;
}

static int capture(struct admin *a, struct ipc_capture *request, int fd, uint64_t ns)
{
    struct ipc_handle handle;
    ssize_t n = admin_call(a, request, sizeof *request, fd, &handle, sizeof handle);
    if (n < 0)
        return (int)n;
    if ((size_t)n < sizeof handle)
        return -EPROTO;
    fprintf(stderr, "capturing %s; Ctrl-C ends\n", request->device);

    uint64_t end = ns ? cli_now() + ns : UINT64_MAX;
    while (!cli_stop && cli_now() < end)
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);

    struct ipc_handle stop = {.hdr = {.type = IPC_CAPTURE_STOP}, .handle = handle.handle};
    struct ipc_captured result;
    n = admin_call(a, &stop, sizeof stop, -1, &result, sizeof result);
    if (n < 0)
        return (int)n;
    char size[32];
    fprintf(stderr, "%llu frames, %s, %llu not written\n", (unsigned long long)result.packets,
            cli_fmt_octets(result.octets, size, sizeof size), (unsigned long long)result.lost);
    return 0;
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
                                            {0}};
    struct ipc_capture request = {
        .hdr = {.type = IPC_CAPTURE_START}, .flags = IPC_CAPTURE_DROPS, .limit = 1ull << 30};
    uint64_t v, ns = 0;
    int c, status;
    char *end;
    while ((c = getopt_long(argc, argv, "hd:", options, NULL)) != -1) {
        switch (c) {
        case 'd':
            admin_set_device(request.device, optarg);
            break;
        case 'q':
            request.qpn = (uint32_t)strtoul(optarg, &end, 0);
            if (*end || !request.qpn || request.qpn > 0xFFFFFF) {
                cli_error("--qp: '%s' is not a queue pair number (1..0xffffff)", optarg);
                return CLI_USAGE;
            }
            break;
        case 's':
            if (cli_number("--snaplen", optarg, 64, 65535, &v) < 0)
                return CLI_USAGE;
            request.snaplen = (uint32_t)v;
            break;
        case 'l':
            if (cli_size("--limit", optarg, 4096, UINT64_MAX >> 1, &request.limit) < 0)
                return CLI_USAGE;
            break;
        case 'f':
            if (cli_seconds("--for", optarg, &ns) < 0)
                return CLI_USAGE;
            break;
        case 'n':
            request.flags &= ~IPC_CAPTURE_DROPS;
            break;
        default:
            if (cli_option(c, &cmd_capture, &status))
                return status;
        }
    }
    if (argc - optind != 1) {
        cli_error("one file name is needed");
        return CLI_USAGE;
    }
    int fd = open(argv[optind], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) {
        cli_error("%s: %s", argv[optind], strerror(errno));
        return CLI_USAGE;
    }
    struct admin a;
    cli_catch_signals();
    int rc = admin_open(&a);
    if (rc == 0 && !request.device[0])
        rc = first_device(&a, request.device);
    if (rc == 0)
        rc = capture(&a, &request, fd, ns);
    if (rc < 0)
        cli_errno(rc, "capturing %s", request.device[0] ? request.device : "the first device");
    admin_close(&a);
    close(fd);
    return rc == 0 ? CLI_OK : CLI_FAIL;
}

const struct cli_command cmd_capture = {"capture", "frames of a device into a pcapng file", help,
                                        run};
