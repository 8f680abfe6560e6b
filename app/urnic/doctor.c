/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic doctor`: what this machine lacks for the port you want, and the command that mends it.
 *
 * Each check looks at one fact and knows the ports that need it; the table at the end is the list.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <jansson.h>
#include <libgen.h>
#include <limits.h>
#include <linux/capability.h>
#include <net/if.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "admin.h"
#include "cli.h"
#include "dpdk_hint.h"
#include "io.h"
#include "wire.h"

static const char help[] = {
#include "help_doctor.inc"
};

/* Kinds of port, as bits: dpdk: ports by their enum dpdk_kind, then the others. */
#define DPDK_BIT(kind) (1u << (kind))
#define XDP_MTU_MAX    3442
#define XDP_PATH_MTU   2048u
#define ON_IFACE       (DPDK_BIT(DPDK_AF_PACKET) | DPDK_BIT(DPDK_AF_XDP))
#define ANY_DPDK       (ON_IFACE | DPDK_BIT(DPDK_PCI) | DPDK_BIT(DPDK_TAP) | DPDK_BIT(DPDK_VDEV))
#define NOT_DPDK       0x100u
#define ALL            (ANY_DPDK | NOT_DPDK)
#define MEMIF          0x200u /* beside NOT_DPDK */
#define PCAP           0x400u

enum level { GOOD, NOTE, MISSING };

struct finding {
    enum level level;
    char text[256]; /* what was found */
    char mend[512]; /* the command, or "" */
};

struct subject {
    unsigned kinds;
    struct dpdk_spec dpdk; /* of a dpdk: port */
    bool everything;       /* no port was named */
    const char *rest;      /* behind memif: or pcap: */
};

static bool read_text(const char *path, char *buf, size_t size)
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

static void say(struct finding *f, enum level level, const char *text, const char *mend)
{
    f->level = level;
    snprintf(f->text, sizeof f->text, "%s", text);
    snprintf(f->mend, sizeof f->mend, "%s", mend);
}

/* ---- the checks ---- */

static void check_daemon(const struct subject *s, struct finding *f)
{
    (void)s;
    struct admin a;
    struct ipc_device dev[ADMIN_DEVICES_MAX];
    int rc = admin_open(&a);
    int n = rc < 0 ? rc : admin_devices(&a, dev, ADMIN_DEVICES_MAX);
    admin_close(&a);
    if (n < 0) {
        say(f, NOTE, "", "urnicd --device name=urn0,port=PORT,addr=IP/LEN");
        snprintf(f->text, sizeof f->text, "no daemon answers (%s)", strerror(-n));
    } else {
        snprintf(f->text, sizeof f->text, "a daemon runs, %d device%s", n, n == 1 ? "" : "s");
        f->level = GOOD;
    }
}

static void check_memfd(const struct subject *s, struct finding *f)
{
    (void)s;
    int fd = memfd_create("urnic-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0)
        say(f, GOOD, "shared memory can be created and sealed", "");
    else
        say(f, MISSING,
            "memfd_create with seals does not work: kernel older than 3.17, or a sandbox",
            "run outside of the sandbox, on a newer kernel");
    if (fd >= 0)
        close(fd);
}

/* Where a urnicd that this user starts would serve. */
static void check_socket(const struct subject *s, struct finding *f)
{
    (void)s;
    const char *env = getenv(IPC_SOCKET_ENV), *dir = getenv("XDG_RUNTIME_DIR");
    const char *named = env && *env ? env : geteuid() == 0 ? IPC_SOCKET_SYSTEM : NULL;
    f->level = GOOD;
    if (named) {
        const char *by = cli_socket_named() ? ", by --socket" : ", by " IPC_SOCKET_ENV;
        snprintf(f->text, sizeof f->text, "the socket is %s%s", named, named == env ? by : "");
    } else if (!dir || dir[0] != '/') {
        snprintf(f->text, sizeof f->text, "the socket is " IPC_SOCKET_TMP, (unsigned)geteuid());
    } else if (access(dir, W_OK) == 0) {
        snprintf(f->text, sizeof f->text, "the socket is %s/" IPC_SOCKET_USER, dir);
    } else {
        f->level = MISSING;
        snprintf(f->text, sizeof f->text, "no socket can be made below XDG_RUNTIME_DIR, %s: %s",
                 dir, strerror(errno));
        snprintf(f->mend, sizeof f->mend, "unset XDG_RUNTIME_DIR   # then it is " IPC_SOCKET_TMP,
                 (unsigned)geteuid());
    }
}

/* Can a file or socket be made, or written if it is there? Else errno tells why not. */
static bool can_make(const char *path)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", path);
    return access(access(path, F_OK) ? dirname(folder) : path, W_OK) == 0;
}

static void say_path(struct finding *f, const char *path, const char *what)
{
    f->level = MISSING;
    snprintf(f->text, sizeof f->text, "%.150s can't be %s: %s", path, what, strerror(errno));
}

static void check_pcap(const struct subject *s, struct finding *f)
{
    char from[PATH_MAX], to[PATH_MAX];
    size_t n = strcspn(s->rest, ",");
    const char *second = s->rest + n + (s->rest[n] == ',');
    snprintf(from, sizeof from, "%.*s", (int)n, s->rest);
    snprintf(to, sizeof to, "%.*s", (int)strcspn(second, ","), second);
    say(f, GOOD, "the files can be read and written", "");
    if (*from && access(from, R_OK))
        say_path(f, from, "read");
    else if (*to && !can_make(to))
        say_path(f, to, "written");
}

static void check_memif(const struct subject *s, struct finding *f)
{
    bool server = strstr(s->rest, ",role=server");
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%.*s", (int)strcspn(s->rest, ","), s->rest);
    say(f, GOOD, "the socket can be made or reached", "");
    if (server && *path != '@' && !can_make(path))
        say_path(f, path, "made");
    else if (!server && *path != '@' && access(path, R_OK | W_OK))
        say(f, NOTE, "no server's socket can be reached yet: the link is down until then", "");
}

static void check_plugin(const struct subject *s, struct finding *f)
{
    char path[PATH_MAX];
    (void)s;
    if (io_dpdk_plugin(path, sizeof path) == 0)
        say(f, GOOD, "the DPDK driver is installed", "");
    else
        say(f, MISSING, "the DPDK driver (liburnic-dpdk.so) is not built or not installed",
            "apt-get install libdpdk-dev && scripts/build && meson install -C build");
}

static void rights(enum dpdk_kind kind, struct finding *f)
{
    const struct dpdk_need *need = dpdk_hint_need(kind);
    bool has = !(need->caps & ~dpdk_hint_effective());
    f->level = has ? GOOD : MISSING;
    snprintf(f->text, sizeof f->text, has ? "%s ports can be opened: %s" : "%s ports need %s",
             dpdk_kind_name(kind), need->names);
    if (!has)
        snprintf(f->mend, sizeof f->mend, "setcap %s+ep $(command -v urnicd)", need->args);
}

static void check_packet_rights(const struct subject *s, struct finding *f)
{
    (void)s;
    rights(DPDK_AF_PACKET, f);
}

static void check_xdp_rights(const struct subject *s, struct finding *f)
{
    (void)s;
    rights(DPDK_AF_XDP, f);
}

static void check_tap_rights(const struct subject *s, struct finding *f)
{
    (void)s;
    rights(DPDK_TAP, f);
}

static void check_iface(const struct subject *s, struct finding *f)
{
    char path[160], text[64] = "";
    if (!s->dpdk.iface[0]) {
        say(f, NOTE, "no interface was named (iface=NAME)", "ip -br link");
        return;
    }
    if (!if_nametoindex(s->dpdk.iface)) {
        say(f, MISSING, "", "ip -br link");
        snprintf(f->text, sizeof f->text, "interface '%s' does not exist", s->dpdk.iface);
        return;
    }
    snprintf(path, sizeof path, "/sys/class/net/%s/operstate", s->dpdk.iface);
    read_text(path, text, sizeof text);
    if (strcmp(text, "down") == 0) {
        f->level = MISSING;
        snprintf(f->text, sizeof f->text, "interface '%s' is down", s->dpdk.iface);
        snprintf(f->mend, sizeof f->mend, "ip link set %s up", s->dpdk.iface);
        return;
    }
    bool works = strcmp(text, "up") == 0 || strcmp(text, "unknown") == 0;
    f->level = works ? GOOD : NOTE;
    snprintf(f->text, sizeof f->text, "interface '%s' is %s (%s)", s->dpdk.iface,
             works ? "there" : "up, but its other end isn't", text);
}

/* The path MTU that an interface's MTU gives; 0 = none. */
static uint32_t path_mtu(long mtu)
{
    return mtu > 0 ? wire_mtu_octets(wire_mtu_for_ip((uint32_t)mtu)) : 0;
}

/* Has the interface no room for the least path MTU? urnicd refuses it. */
static bool is_small_mtu(const struct subject *s, long mtu, struct finding *f)
{
    if (path_mtu(mtu) > 0)
        return false;
    f->level = MISSING;
    snprintf(f->text, sizeof f->text, "MTU %ld is too small for any path MTU", mtu);
    snprintf(f->mend, sizeof f->mend, "ip link set %s mtu 1500", s->dpdk.iface);
    return true;
}

/* af_xdp: a frame and what stands before it have a page. */
static void say_xdp_mtu(const struct subject *s, long mtu, struct finding *f)
{
    if (mtu > XDP_MTU_MAX) {
        f->level = MISSING;
        snprintf(f->text, sizeof f->text, "MTU %ld is more than the %d of af_xdp", mtu,
                 XDP_MTU_MAX);
    } else {
        bool most = path_mtu(mtu) == XDP_PATH_MTU;
        f->level = most ? GOOD : NOTE;
        snprintf(f->text, sizeof f->text, "MTU %ld gives path MTU %u%s", mtu, path_mtu(mtu),
                 most ? ", the most of af_xdp" : "");
    }
    if (f->level != GOOD)
        snprintf(f->mend, sizeof f->mend, "ip link set %s mtu %d   # of a veth pair both ends",
                 s->dpdk.iface, XDP_MTU_MAX);
}

static void check_mtu(const struct subject *s, struct finding *f)
{
    char path[160], text[64] = "";
    snprintf(path, sizeof path, "/sys/class/net/%s/mtu", s->dpdk.iface);
    if (!s->dpdk.iface[0] || !read_text(path, text, sizeof text)) {
        say(f, NOTE, "an MTU of 4192 or more gives path MTU 4096, 1500 gives 1024",
            "ip link set IFACE mtu 9000");
        return;
    }
    long mtu = strtol(text, NULL, 10);
    if (is_small_mtu(s, mtu, f))
        return;
    if (s->dpdk.kind == DPDK_AF_XDP) {
        say_xdp_mtu(s, mtu, f);
        return;
    }
    snprintf(f->text, sizeof f->text, "MTU %ld gives path MTU %u", mtu, path_mtu(mtu));
    f->level = path_mtu(mtu) == WIRE_MTU_MAX ? GOOD : NOTE;
    if (f->level != GOOD)
        snprintf(f->mend, sizeof f->mend, "ip link set %s mtu 9000   # if the network allows",
                 s->dpdk.iface);
}

/* The kernel answers RoCE packets to an address of its own with ICMP port unreachable. */
static void check_claim(const struct subject *s, struct finding *f)
{
    struct utsname u;
    unsigned major = 0, minor = 0;
    (void)s;
    bool allowed = dpdk_hint_effective() >> CAP_BPF & 1;
    if (uname(&u) == 0)
        sscanf(u.release, "%u.%u", &major, &minor);
    if (allowed && (major > 6 || (major == 6 && minor >= 6)))
        say(f, GOOD, "the kernel's IP stack can be kept from urnicd's packets: CAP_BPF", "");
    else
        say(f, NOTE,
            "without CAP_BPF and Linux 6.6 the kernel's IP stack works on urnicd's packets, too: "
            "slower",
            allowed ? "" : "setcap cap_net_raw,cap_net_admin,cap_bpf+ep $(command -v urnicd)");
}

static void check_kernel_address(const struct subject *s, struct finding *f)
{
    struct ifaddrs *all = NULL;
    char first[INET6_ADDRSTRLEN] = "";
    bool v6 = false;
    unsigned n = 0;
    if (!s->dpdk.iface[0]) {
        say(f, NOTE, "an address that the kernel has on the interface can't be urnicd's, too",
            "ip -br addr");
        return;
    }
    getifaddrs(&all);
    for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
        int family = i->ifa_addr ? i->ifa_addr->sa_family : AF_UNSPEC;
        if (strcmp(i->ifa_name, s->dpdk.iface) || (family != AF_INET && family != AF_INET6))
            continue;
        v6 |= family == AF_INET6;
        if (n++ == 0)
            getnameinfo(i->ifa_addr,
                        family == AF_INET ? sizeof(struct sockaddr_in)
                                          : sizeof(struct sockaddr_in6),
                        first, sizeof first, NULL, 0, NI_NUMERICHOST);
    }
    freeifaddrs(all);
    if (!n) {
        say(f, GOOD, "the kernel has no address on the interface", "");
        return;
    }
    f->level = NOTE;
    snprintf(f->text, sizeof f->text,
             "the kernel has %u address%s on this interface (%s): don't give urnicd the same, or "
             "the kernel refuses what comes for it",
             n, n == 1 ? "" : "es", first);
    if (v6)
        snprintf(f->mend, sizeof f->mend, "sysctl net.ipv6.conf.%s.disable_ipv6=1", s->dpdk.iface);
}

static void check_tun(const struct subject *s, struct finding *f)
{
    (void)s;
    if (access("/dev/net/tun", R_OK | W_OK) == 0)
        say(f, GOOD, "/dev/net/tun can be opened", "");
    else
        say(f, MISSING, "tap ports need /dev/net/tun", "modprobe tun");
}

static void check_hugepages(const struct subject *s, struct finding *f)
{
    (void)s;
    char text[64] = "0";
    read_text("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", text, sizeof text);
    long n = strtol(text, NULL, 10);
    if (n >= 64)
        snprintf(f->text, sizeof f->text, "%ld free hugepages of 2 MiB", n);
    else
        say(f, MISSING, "PCI NICs need hugepages for DMA (at least 64 of 2 MiB free)",
            "sysctl vm.nr_hugepages=512 && mkdir -p /dev/hugepages && "
            "mount -t hugetlbfs nodev /dev/hugepages");
}

static bool usable(const struct subject *s, char *why, size_t size)
{
    return s->dpdk.name[0] && dpdk_hint_check(&s->dpdk, "/sys", 0, 1, why, size) == 0;
}

static void check_vfio(const struct subject *s, struct finding *f)
{
    char why[sizeof f->text];
    if (usable(s, why, sizeof why))
        say(f, GOOD, "the device is usable as it is: no need of vfio", "");
    else if (access("/dev/vfio/vfio", R_OK | W_OK) == 0)
        say(f, GOOD, "vfio is there", "");
    else
        say(f, MISSING, "PCI NICs need the vfio-pci kernel module",
            "modprobe vfio-pci   # without IOMMU: "
            "echo 1 > /sys/module/vfio/parameters/enable_unsafe_noiommu_mode");
}

static void check_iommu(const struct subject *s, struct finding *f)
{
    (void)s;
    DIR *d = opendir("/sys/kernel/iommu_groups");
    unsigned n = 0;
    for (struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.';
    if (d)
        closedir(d);
    if (n)
        snprintf(f->text, sizeof f->text, "%u IOMMU groups", n);
    else
        say(f, NOTE, "no IOMMU: a PCI NIC can then reach all memory (vfio's no-IOMMU mode)",
            "boot with intel_iommu=on iommu=pt (Intel); switch the IOMMU on in the firmware");
}

static void check_pci(const struct subject *s, struct finding *f)
{
    char why[sizeof f->text];
    if (!s->dpdk.name[0])
        say(f, NOTE, "no PCI address was named", "dpdk-devbind.py --status-dev net");
    else if (usable(s, why, sizeof why))
        snprintf(f->text, sizeof f->text, "DPDK can use %s", s->dpdk.name);
    else
        say(f, MISSING, why, "");
}

static void check_cores(const struct subject *s, struct finding *f)
{
    (void)s;
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    snprintf(f->text, sizeof f->text, "%ld core%s online%s", n, n == 1 ? "" : "s",
             n == 1 ? ": use --idle auto (the default), never poll" : "");
    f->level = n == 1 ? NOTE : GOOD;
}

static const struct {
    const char *name;
    unsigned kinds;
    void (*check)(const struct subject *, struct finding *);
} checks[] = {
    {"daemon", ALL, check_daemon},
    {"cores", ALL, check_cores},
    {"memory", ALL, check_memfd},
    {"socket", ALL, check_socket},
    {"files", PCAP, check_pcap},
    {"link", MEMIF, check_memif},
    {"driver", ANY_DPDK, check_plugin},
    {"rights", DPDK_BIT(DPDK_AF_PACKET), check_packet_rights},
    {"rights", DPDK_BIT(DPDK_AF_XDP), check_xdp_rights},
    {"rights", DPDK_BIT(DPDK_TAP), check_tap_rights},
    {"interface", ON_IFACE, check_iface},
    {"mtu", ON_IFACE, check_mtu},
    {"claim", DPDK_BIT(DPDK_AF_PACKET), check_claim},
    {"addresses", ON_IFACE, check_kernel_address},
    {"tun", DPDK_BIT(DPDK_TAP), check_tun},
    {"hugepages", DPDK_BIT(DPDK_PCI), check_hugepages},
    {"vfio", DPDK_BIT(DPDK_PCI), check_vfio},
    {"iommu", DPDK_BIT(DPDK_PCI), check_iommu},
    {"device", DPDK_BIT(DPDK_PCI), check_pci},
};

/* Which checks a specification needs that io_check() has accepted; NULL: all. */
static struct subject understand(const char *spec)
{
    static const char prefix[] = "dpdk:";
    struct subject s = {.kinds = ALL, .everything = !spec};
    if (!spec)
        return s;
    if (strncmp(spec, prefix, sizeof prefix - 1)) {
        s.kinds = NOT_DPDK | (!strncmp(spec, "pcap:", 5) ? PCAP : 0) |
                  (!strncmp(spec, "memif:", 6) ? MEMIF : 0);
        s.rest = strchr(spec, ':') + 1;
        return s;
    }
    dpdk_spec_parse(spec + sizeof prefix - 1, &s.dpdk, NULL, 0);
    s.kinds = DPDK_BIT(s.dpdk.kind);
    return s;
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {CLI_OPTIONS, {"json", no_argument, NULL, 'j'}, {0}};
    static const char *const level_name[] = {"good", "note", "missing"};
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
    if (argv[optind] && io_check(argv[optind], err, sizeof err) < 0) {
        cli_error("%s", err);
        return CLI_USAGE;
    }
    const struct subject s = understand(argv[optind]);
    bool missing = false;
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        struct finding f = {0};
        if (!(checks[i].kinds & s.kinds))
            continue;
        checks[i].check(&s, &f);
        if (s.everything && f.level == MISSING && checks[i].kinds != ALL)
            f.level = NOTE; /* nobody said that such a port is wanted */
        missing |= f.level == MISSING;
        if (json) {
            json_t *o = json_pack("{s:s,s:s,s:o,s:o}", "check", checks[i].name, "level",
                                  level_name[f.level], "found", cli_json_text(f.text), "mend",
                                  cli_json_text(f.mend));
            cli_json(o);
        } else {
            printf("%-8s %-10s %s\n", level_name[f.level], checks[i].name, f.text);
            if (f.mend[0] && f.level != GOOD)
                printf("%-19s $ %s\n", "", f.mend);
        }
    }
    return missing ? CLI_FAIL : CLI_OK;
}

const struct cli_command cmd_doctor = {"doctor", "what this machine lacks for a port, and the cure",
                                       help, run};
