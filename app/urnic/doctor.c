/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic doctor`: what this machine lacks for the port you want, and the command that mends it.
 *
 * Each check looks at one fact and knows the ports that need it; the table at the end is the list.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <linux/capability.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "admin.h"
#include "cli.h"
#include "io.h"

static const char help[] = {
#include "help_doctor.inc"
};

enum kind {
    MEM = 1,
    MEMIF = 2,
    AF_PKT = 4,
    AF_XDP_PORT = 8,
    TAP = 16,
    PCI = 32,
    DPDK = AF_PKT | AF_XDP_PORT | TAP | PCI,
    ALL = 63
};

enum level { GOOD, NOTE, MISSING };

struct finding {
    enum level level;
    char text[256]; /* what was found */
    char mend[512]; /* the command, or "" */
};

struct subject {
    unsigned kinds;
    char iface[64], pci[32];
    bool everything; /* no port was named */
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

static bool has_capability(unsigned cap)
{
    FILE *f = fopen("/proc/self/status", "re");
    char line[256];
    unsigned long long set = 0;
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "CapEff: %llx", &set) == 1)
            break;
    if (f)
        fclose(f);
    return set >> cap & 1;
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
    struct ipc_device dev[16];
    int rc = admin_open(&a);
    int n = rc < 0 ? rc : admin_devices(&a, dev, 16);
    admin_close(&a);
    if (n < 0) {
        say(f, NOTE, "no daemon answers", "urnicd --device name=urn0,port=PORT,addr=IP/LEN");
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

static void check_runtime_dir(const struct subject *s, struct finding *f)
{
    (void)s;
    const char *dir = getenv("XDG_RUNTIME_DIR");
    if (geteuid() == 0)
        say(f, GOOD, "running as root: the socket is /run/urnic/urnicd.sock", "");
    else if (dir && access(dir, W_OK) == 0)
        say(f, GOOD, "XDG_RUNTIME_DIR is there for the socket", "");
    else
        say(f, NOTE, "XDG_RUNTIME_DIR is not set: the daemon's socket must be named",
            "export URNIC_SOCKET=/tmp/urnic-$USER.sock");
}

static void check_plugin(const struct subject *s, struct finding *f)
{
    (void)s;
    char exe[4096];
    static const char *const places[] = {"%s/../lib/x86_64-linux-gnu/urnic/liburnic-dpdk.so",
                                         "%s/../lib/aarch64-linux-gnu/urnic/liburnic-dpdk.so",
                                         "%s/../lib/urnic/liburnic-dpdk.so",
                                         "%s/../../drivers/dpdk/liburnic-dpdk.so"};
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    exe[n > 0 ? n : 0] = 0;
    char *slash = strrchr(exe, '/');
    if (slash)
        *slash = 0;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        char path[4400];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(path, sizeof path, places[i], exe);
#pragma GCC diagnostic pop
        if (access(path, R_OK) == 0) {
            say(f, GOOD, "the DPDK driver is installed", "");
            return;
        }
    }
    say(f, MISSING, "the DPDK driver (liburnic-dpdk.so) is not built or not installed",
        "apt-get install libdpdk-dev && scripts/build && meson install -C build");
}

static void check_net_raw(const struct subject *s, struct finding *f)
{
    (void)s;
    if (has_capability(CAP_NET_RAW) && has_capability(CAP_NET_ADMIN))
        say(f, GOOD, "CAP_NET_RAW and CAP_NET_ADMIN are there", "");
    else
        say(f, MISSING, "af_packet, af_xdp and tap ports need CAP_NET_RAW and CAP_NET_ADMIN",
            "setcap cap_net_raw,cap_net_admin,cap_ipc_lock+ep $(command -v urnicd)");
}

static void check_xdp(const struct subject *s, struct finding *f)
{
    (void)s;
    if (has_capability(CAP_SYS_ADMIN) || (has_capability(CAP_BPF) && has_capability(CAP_NET_RAW)))
        say(f, GOOD, "XDP programs can be loaded", "");
    else
        say(f, MISSING, "af_xdp needs CAP_BPF or CAP_SYS_ADMIN to load its program",
            "setcap cap_net_raw,cap_net_admin,cap_bpf,cap_ipc_lock+ep $(command -v urnicd)");
}

static void check_iface(const struct subject *s, struct finding *f)
{
    char path[160], text[64] = "";
    if (!s->iface[0]) {
        say(f, NOTE, "no interface was named (iface=NAME)", "ip -br link");
        return;
    }
    if (!if_nametoindex(s->iface)) {
        say(f, MISSING, "", "ip -br link");
        snprintf(f->text, sizeof f->text, "interface '%s' does not exist", s->iface);
        return;
    }
    snprintf(path, sizeof path, "/sys/class/net/%s/operstate", s->iface);
    read_text(path, text, sizeof text);
    if (strcmp(text, "down") == 0) {
        f->level = MISSING;
        snprintf(f->text, sizeof f->text, "interface '%s' is down", s->iface);
        snprintf(f->mend, sizeof f->mend, "ip link set %s up", s->iface);
        return;
    }
    f->level = GOOD;
    snprintf(f->text, sizeof f->text, "interface '%s' is there (%s)", s->iface, text);
}

static void check_mtu(const struct subject *s, struct finding *f)
{
    char path[160], text[64] = "";
    snprintf(path, sizeof path, "/sys/class/net/%s/mtu", s->iface);
    if (!s->iface[0] || !read_text(path, text, sizeof text)) {
        say(f, NOTE, "an MTU of 4192 or more gives path MTU 4096, 1500 gives 1024",
            "ip link set IFACE mtu 9000");
        return;
    }
    long mtu = strtol(text, NULL, 10);
    snprintf(f->text, sizeof f->text, "MTU %ld gives path MTU %s", mtu,
             mtu >= 4192   ? "4096"
             : mtu >= 2144 ? "2048"
             : mtu >= 1120 ? "1024"
                           : "512 or less");
    f->level = mtu >= 4192 ? GOOD : NOTE;
    if (mtu < 4192)
        snprintf(f->mend, sizeof f->mend, "ip link set %s mtu 9000   # if the network allows",
                 s->iface);
}

static void check_kernel_address(const struct subject *s, struct finding *f)
{
    char line[512];
    bool has_v6 = false;
    FILE *v6 = s->iface[0] ? fopen("/proc/net/if_inet6", "re") : NULL;
    while (v6 && fgets(line, sizeof line, v6))
        has_v6 |= strstr(line, s->iface) != NULL;
    if (v6)
        fclose(v6);
    if (!has_v6) {
        say(f, GOOD, "the kernel has no IPv6 address on the interface", "");
        return;
    }
    say(f, NOTE,
        "the kernel has addresses on this interface: don't give urnicd the same ones, or the "
        "kernel "
        "answers RoCE packets with ICMP port unreachable",
        "");
    snprintf(f->mend, sizeof f->mend, "sysctl net.ipv6.conf.%s.disable_ipv6=1", s->iface);
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

static void check_vfio(const struct subject *s, struct finding *f)
{
    (void)s;
    if (access("/dev/vfio/vfio", R_OK | W_OK) == 0)
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
    char path[160], driver[256];
    if (!s->pci[0]) {
        say(f, NOTE, "no PCI address was named", "dpdk-devbind.py --status-dev net");
        return;
    }
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s", s->pci);
    if (access(path, F_OK) < 0) {
        f->level = MISSING;
        snprintf(f->text, sizeof f->text, "there is no PCI device %s", s->pci);
        snprintf(f->mend, sizeof f->mend, "dpdk-devbind.py --status-dev net");
        return;
    }
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/driver", s->pci);
    ssize_t n = readlink(path, driver, sizeof driver - 1);
    driver[n > 0 ? n : 0] = 0;
    const char *name = strrchr(driver, '/') ? strrchr(driver, '/') + 1 : "no driver";
    if (strcmp(name, "vfio-pci") == 0 || strcmp(name, "uio_pci_generic") == 0 ||
        strcmp(name, "igb_uio") == 0 || strncmp(name, "mlx", 3) == 0) {
        snprintf(f->text, sizeof f->text, "%s is bound to %s", s->pci, name);
        return;
    }
    f->level = MISSING;
    snprintf(f->text, sizeof f->text, "%s is bound to %.32s, not to vfio-pci", s->pci, name);
    snprintf(f->mend, sizeof f->mend, "dpdk-devbind.py --bind=vfio-pci %s", s->pci);
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
    {"socket", ALL, check_runtime_dir},
    {"driver", DPDK, check_plugin},
    {"rights", AF_PKT | AF_XDP_PORT | TAP, check_net_raw},
    {"xdp", AF_XDP_PORT, check_xdp},
    {"interface", AF_PKT | AF_XDP_PORT, check_iface},
    {"mtu", AF_PKT | AF_XDP_PORT, check_mtu},
    {"addresses", AF_PKT | AF_XDP_PORT, check_kernel_address},
    {"tun", TAP, check_tun},
    {"hugepages", PCI, check_hugepages},
    {"vfio", PCI, check_vfio},
    {"iommu", PCI, check_iommu},
    {"device", PCI, check_pci},
};

/* Which kind of port a specification names. */
/* Which checks a specification that io_check() accepts needs; NULL: all. */
static void understand(const char *spec, struct subject *s)
{
    *s = (struct subject){.kinds = ALL, .everything = !spec};
    if (!spec)
        return;
    const char *iface = strstr(spec, "iface=");
    if (iface)
        snprintf(s->iface, sizeof s->iface, "%.*s", (int)strcspn(iface + 6, ","), iface + 6);
    if (strncmp(spec, "mem:", 4) == 0 || strncmp(spec, "pcap:", 5) == 0)
        s->kinds = MEM;
    else if (strncmp(spec, "memif:", 6) == 0)
        s->kinds = MEMIF;
    else if (strncmp(spec, "dpdk:net_af_packet", 18) == 0)
        s->kinds = AF_PKT;
    else if (strncmp(spec, "dpdk:net_af_xdp", 15) == 0)
        s->kinds = AF_XDP_PORT;
    else if (strncmp(spec, "dpdk:net_tap", 12) == 0)
        s->kinds = TAP;
    else if (strncmp(spec, "dpdk:net_", 9) == 0)
        s->kinds = DPDK & ~(unsigned)(AF_PKT | AF_XDP_PORT | TAP | PCI);
    else {
        s->kinds = PCI;
        snprintf(s->pci, sizeof s->pci, "%.*s", (int)strcspn(spec + 5, ","), spec + 5);
    }
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
    struct subject s;
    if (cli_operands(argc, argv, 0, 1, "") != CLI_OK)
        return CLI_USAGE;
    char err[512];
    if (argv[optind] && io_check(argv[optind], err, sizeof err) < 0) {
        cli_error("%s", err);
        return CLI_USAGE;
    }
    understand(argv[optind], &s);
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
            json_t *o = json_pack("{s:s,s:s,s:s,s:s}", "check", checks[i].name, "level",
                                  level_name[f.level], "found", f.text, "mend", f.mend);
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
