/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic doctor`: reports this machine's shortcomings for a port, and the commands that help.
 *
 * Each check looks at one fact and knows the ports that need it; the table at the end is the
 * list.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "admin.h"
#include "cli.h"
#include "crc.h"
#include "doctor.h"
#include "dpdk_hint.h"
#include "io.h"
#include "tap_spec.h"

static const char help[] = {
#include "help_doctor.inc"
};

/* Kinds of port, as bits: dpdk: ports by their enum dpdk_kind, then the others. */
#define DPDK_BIT(kind) (1u << (kind))
#define ON_IFACE       (DPDK_BIT(DPDK_AF_PACKET) | DPDK_BIT(DPDK_AF_XDP))
#define ANY_DPDK       (ON_IFACE | DPDK_BIT(DPDK_PCI) | DPDK_BIT(DPDK_TAP) | DPDK_BIT(DPDK_VDEV))
#define NOT_DPDK       0x100u
#define ALL            (ANY_DPDK | NOT_DPDK)
#define MEMIF          0x200u /* beside NOT_DPDK */
#define PCAP           0x400u
#define UDP            0x800u
#define KERNEL         0x1000u /* ports with kernel= */

bool doctor_read(const char *path, char *buf, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);
    if (fd >= 0)
        close(fd);
    if (n < 0)
        return false;
    buf[n] = 0;
    buf[strcspn(buf, "\n")] = 0;
    return true;
}

void doctor_say(struct doctor_finding *f, enum doctor_level level, const char *text,
                const char *mend)
{
    f->level = level;
    snprintf(f->text, sizeof(f->text), "%s", text);
    snprintf(f->mend, sizeof(f->mend), "%s", mend);
}

/* ---- the checks ---- */

static void check_daemon(const struct doctor_subject *s, struct doctor_finding *f)
{
    (void)s;
    struct admin a;
    struct ipc_device dev[ADMIN_DEVICES_MAX];
    int rc = admin_open(&a);
    int n = rc < 0 ? rc : admin_devices(&a, dev, ADMIN_DEVICES_MAX);
    admin_close(&a);
    if (n < 0) {
        doctor_say(f, DOCTOR_NOTE, "", "urnicd --device name=urn0,port=PORT,addr=IP/LEN");
        snprintf(f->text, sizeof(f->text), "no daemon answers (%s)", strerror(-n));
    } else {
        snprintf(f->text, sizeof(f->text), "a daemon runs, %d device%s", n, n == 1 ? "" : "s");
        f->level = DOCTOR_GOOD;
    }
}

static void check_memfd(const struct doctor_subject *s, struct doctor_finding *f)
{
    (void)s;
    int fd = memfd_create("urnic-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0)
        doctor_say(f, DOCTOR_GOOD, "shared memory can be created and sealed", "");
    else
        doctor_say(f, DOCTOR_MISSING,
                   "memfd_create with seals does not work: kernel older than 3.17, or a sandbox",
                   "run outside of the sandbox, on a newer kernel");
    if (fd >= 0)
        close(fd);
}

/* The socket path of a urnicd that this user starts. */
static void check_socket(const struct doctor_subject *s, struct doctor_finding *f)
{
    (void)s;
    const char *env = secure_getenv(IPC_SOCKET_ENV), *dir = secure_getenv("XDG_RUNTIME_DIR");
    const char *named = env && *env ? env : geteuid() == 0 ? IPC_SOCKET_SYSTEM : NULL;
    f->level = DOCTOR_GOOD;
    if (named) {
        const char *by = cli_socket_named() ? ", by --socket" : ", by " IPC_SOCKET_ENV;
        snprintf(f->text, sizeof(f->text), "the socket is %s%s", named, named == env ? by : "");
    } else if (!dir || dir[0] != '/') {
        snprintf(f->text, sizeof(f->text), "the socket is " IPC_SOCKET_TMP, (unsigned)geteuid());
    } else if (access(dir, W_OK) == 0) {
        snprintf(f->text, sizeof(f->text), "the socket is %s/" IPC_SOCKET_USER, dir);
    } else {
        f->level = DOCTOR_MISSING;
        snprintf(f->text, sizeof(f->text), "no socket can be made below XDG_RUNTIME_DIR, %s: %s",
                 dir, strerror(errno));
        snprintf(f->mend, sizeof(f->mend), "unset XDG_RUNTIME_DIR   # then it is " IPC_SOCKET_TMP,
                 (unsigned)geteuid());
    }
}

/* Can a file or socket be made, or written if it exists? If not, errno says why. */
static bool can_make(const char *path)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof(folder), "%s", path);
    return access(access(path, F_OK) ? dirname(folder) : path, W_OK) == 0;
}

static void say_path(struct doctor_finding *f, const char *path, const char *what)
{
    f->level = DOCTOR_MISSING;
    snprintf(f->text, sizeof(f->text), "%.150s can't be %s: %s", path, what, strerror(errno));
}

static void check_pcap(const struct doctor_subject *s, struct doctor_finding *f)
{
    char from[PATH_MAX], to[PATH_MAX];
    size_t n = strcspn(s->rest, ",");
    const char *second = s->rest + n + (s->rest[n] == ',');
    snprintf(from, sizeof(from), "%.*s", (int)n, s->rest);
    snprintf(to, sizeof(to), "%.*s", (int)strcspn(second, ","), second);
    doctor_say(f, DOCTOR_GOOD, "the files can be read and written", "");
    if (*from && access(from, R_OK))
        say_path(f, from, "read");
    else if (*to && !can_make(to))
        say_path(f, to, "written");
}

static void check_memif(const struct doctor_subject *s, struct doctor_finding *f)
{
    bool server = strstr(s->rest, ",role=server");
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%.*s", (int)strcspn(s->rest, ","), s->rest);
    doctor_say(f, DOCTOR_GOOD, "the socket can be made or reached", "");
    if (server && *path != '@' && !can_make(path))
        say_path(f, path, "made");
    else if (!server && *path != '@' && access(path, R_OK | W_OK))
        doctor_say(f, DOCTOR_NOTE,
                   "no server's socket can be reached yet: the link is down until then", "");
}

static void check_plugin(const struct doctor_subject *s, struct doctor_finding *f)
{
    char path[PATH_MAX];
    (void)s;
    if (io_dpdk_plugin(path, sizeof(path)) == 0)
        doctor_say(f, DOCTOR_GOOD, "the DPDK driver is installed", "");
    else
        doctor_say(f, DOCTOR_MISSING,
                   "the DPDK driver (liburnic-dpdk.so) is not built or not installed",
                   "apt-get install libdpdk-dev && scripts/build && meson install -C build");
}

static void rights(enum dpdk_kind kind, struct doctor_finding *f)
{
    const struct dpdk_need *need = dpdk_hint_need(kind);
    bool has = !(need->caps & ~doctor_rights());
    f->level = has ? DOCTOR_GOOD : DOCTOR_MISSING;
    snprintf(f->text, sizeof(f->text), has ? "%s ports can be opened: %s" : "%s ports need %s",
             dpdk_kind_name(kind), need->names);
    if (!has)
        snprintf(f->mend, sizeof(f->mend), "setcap %s+ep $(command -v urnicd)", need->args);
}

static void check_packet_rights(const struct doctor_subject *s, struct doctor_finding *f)
{
    (void)s;
    rights(DPDK_AF_PACKET, f);
}

static void check_xdp_rights(const struct doctor_subject *s, struct doctor_finding *f)
{
    (void)s;
    rights(DPDK_AF_XDP, f);
}

static void check_tap_rights(const struct doctor_subject *s, struct doctor_finding *f)
{
    (void)s;
    rights(DPDK_TAP, f);
}

static void check_tun(const struct doctor_subject *s, struct doctor_finding *f)
{
    (void)s;
    if (access("/dev/net/tun", R_OK | W_OK) == 0)
        doctor_say(f, DOCTOR_GOOD, "/dev/net/tun can be opened", "");
    else
        doctor_say(f, DOCTOR_MISSING, "tap ports need /dev/net/tun", "modprobe tun");
}

static void check_cores(const struct doctor_subject *s, struct doctor_finding *f)
{
    (void)s;
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    snprintf(f->text, sizeof(f->text), "%ld core%s online%s", n, n == 1 ? "" : "s",
             n == 1 ? ": use --idle auto (the default), never poll" : "");
    f->level = n == 1 ? DOCTOR_NOTE : DOCTOR_GOOD;
}

static void check_crc(const struct doctor_subject *s, struct doctor_finding *f)
{
    (void)s;
    f->level = DOCTOR_GOOD;
    snprintf(f->text, sizeof(f->text), "iCRCs are computed by %s%s", crc_in_use()->name,
             crc_in_use()->one_pass ? ", while the payload is copied"
                                    : ", after a copy of the payload");
}

static const struct {
    const char *name;
    unsigned kinds;
    void (*check)(const struct doctor_subject *, struct doctor_finding *);
} checks[] = {
    {"daemon", ALL, check_daemon},
    {"cores", ALL, check_cores},
    {"icrc", ALL, check_crc},
    {"memory", ALL, check_memfd},
    {"socket", ALL, check_socket},
    {"files", PCAP, check_pcap},
    {"link", MEMIF, check_memif},
    {"driver", ANY_DPDK, check_plugin},
    {"rights", DPDK_BIT(DPDK_AF_PACKET), check_packet_rights},
    {"rights", DPDK_BIT(DPDK_AF_XDP), check_xdp_rights},
    {"rights", DPDK_BIT(DPDK_TAP), check_tap_rights},
    {"interface", ON_IFACE | UDP, doctor_iface},
    {"mtu", ON_IFACE | UDP, doctor_mtu},
    {"claim", DPDK_BIT(DPDK_AF_PACKET), doctor_claim},
    {"addresses", ON_IFACE, doctor_addresses},
    {"addresses", UDP, doctor_udp_addresses},
    {"port", UDP, doctor_udp_port},
    {"buffer", UDP, doctor_udp_buffer},
    {"firewall", UDP, doctor_udp_firewall},
    {"tun", DPDK_BIT(DPDK_TAP), check_tun},
    {"hugepages", DPDK_BIT(DPDK_PCI), doctor_hugepages},
    {"iommu", DPDK_BIT(DPDK_PCI), doctor_iommu},
    {"device", DPDK_BIT(DPDK_PCI) | DPDK_BIT(DPDK_VDEV), doctor_device},
    {"kernel", KERNEL, doctor_kernel},
    {"open", ANY_DPDK, doctor_try},
};

/* The checks for a specification that io_check() has accepted; NULL: all. */
static struct doctor_subject understand(const char *whole)
{
    static const char prefix[] = "dpdk:";
    static char rest[IO_SPEC_MAX]; /* without kernel= */
    const char *spec = whole ? rest : NULL;
    struct doctor_subject s = {.kinds = ALL, .everything = !spec};
    if (!spec)
        return s;
    tap_spec_split(whole, rest, s.tap, NULL, 0);
    const unsigned kernel = s.tap[0] ? KERNEL : 0;
    if (strncmp(spec, prefix, sizeof(prefix) - 1)) {
        s.kinds = NOT_DPDK | kernel | (!strncmp(spec, "pcap:", 5) ? PCAP : 0) |
                  (!strncmp(spec, "memif:", 6) ? MEMIF : 0) | (!strncmp(spec, "udp:", 4) ? UDP : 0);
        if (s.kinds & UDP)
            snprintf(s.dpdk.iface, sizeof(s.dpdk.iface), "%.*s", (int)strcspn(spec + 4, ","),
                     spec + 4);
        s.rest = strchr(spec, ':') + 1;
        return s;
    }
    dpdk_spec_parse(spec + sizeof(prefix) - 1, &s.dpdk, NULL, 0);
    s.kinds = DPDK_BIT(s.dpdk.kind) | kernel;
    s.spec = whole;
    return s;
}

static void print_finding(const char *check, const struct doctor_finding *f, bool json)
{
    static const char *const level_name[] = {"good", "note", "missing"};
    if (json) {
        cli_json(json_pack("{s:s,s:s,s:o,s:o}", "check", check, "level", level_name[f->level],
                           "found", cli_json_text(f->text), "mend", cli_json_text(f->mend)));
        return;
    }
    printf("%-8s %-10s %s\n", level_name[f->level], check, f->text);
    if (f->mend[0] && f->level != DOCTOR_GOOD)
        printf("%-19s $ %s\n", "", f->mend);
}

#define CHECKS (sizeof(checks) / sizeof(checks[0]))

/* Run all checks and print their findings. False: something is missing. If urnicd itself has opened
 * the port, a finding is only a note. */
static bool look(const struct doctor_subject *s, bool json)
{
    struct doctor_finding found[CHECKS] = {0};
    bool opens = false, good = true;
    for (size_t i = 0; i < CHECKS; i++) {
        if (!(checks[i].kinds & s->kinds))
            continue;
        checks[i].check(s, &found[i]);
        opens |= found[i].decides && found[i].level == DOCTOR_GOOD;
    }
    for (size_t i = 0; i < CHECKS; i++) {
        if (!(checks[i].kinds & s->kinds))
            continue;
        /* Or no such port was named. */
        if (found[i].level == DOCTOR_MISSING &&
            (opens || (s->everything && checks[i].kinds != ALL)))
            found[i].level = DOCTOR_NOTE;
        good &= found[i].level != DOCTOR_MISSING;
        print_finding(checks[i].name, &found[i], json);
    }
    return good;
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {CLI_OPTIONS, {"json", no_argument, NULL, 'j'}, {0}};
    bool json = false;
    int c, status;
    while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (c == 'j')
            json = true;
        else if (cli_option(c, &cmd_doctor, &status))
            return status;
    }
    if (cli_operands(argc, argv, 0, 1, "") != CLI_OK)
        return CLI_USAGE;
    char err[512];
    if (argv[optind] && io_check(argv[optind], err, sizeof(err)) < 0) {
        cli_error("%s", err);
        return CLI_USAGE;
    }
    const struct doctor_subject s = understand(argv[optind]);
    return look(&s, json) ? CLI_OK : CLI_FAIL;
}

const struct cli_command cmd_doctor = {"doctor", "check this machine for ports, and name the cures",
                                       help, run};
