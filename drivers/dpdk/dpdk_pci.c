/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Looks at sysfs, /dev/vfio, /proc and the device's configuration space. It changes nothing of the
 * device, except a virtio NIC's window register, through which it reads the features.
 */
#include "dpdk_pci.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define PATH_ROOM 400

#define MIB 20 /* shift */

/* Drivers under which DPDK can take a PCI device. The first three hand the whole device to user
 * space; the others share it with the kernel. */
static const char *const usable[] = {"vfio-pci",  "uio_pci_generic", "igb_uio",
                                     "mlx4_core", "mlx5_core",       "mana"};

/* Drivers that do no harm to the others of an IOMMU group. */
static const char *const harmless[] = {"none", "vfio-pci", "pci-stub", "pcieport"};

__attribute__((format(printf, 4, 5))) static int refuse(char *err, size_t size, int rc,
                                                        const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(err, size, fmt, ap);
    va_end(ap);
    return rc;
}

/* The path of an entry in the device's folder of sysfs. */
static void in_device(const struct dpdk_machine *m, const char *device, const char *name,
                      char *path)
{
    snprintf(path, PATH_ROOM, "%s/sys/bus/pci/devices/%s/%s", m->root, device, name);
}

/* The last name in the target of a link of the device's folder: "vfio-pci" for "driver". */
static const char *link_of(const struct dpdk_machine *m, const char *device, const char *name,
                           char link[PATH_ROOM])
{
    char path[PATH_ROOM];
    in_device(m, device, name, path);
    ssize_t n = readlink(path, link, PATH_ROOM - 1);
    link[n > 0 ? n : 0] = '\0';
    return n > 0 ? basename(link) : "none";
}

static bool is_one_of(const char *name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(name, list[i]))
            return true;
    return false;
}

/* The first line of a small file. */
static bool read_line(const char *path, char *buf, size_t size)
{
    FILE *f = fopen(path, "re");
    bool got = f && fgets(buf, (int)size, f);
    if (f)
        fclose(f);
    if (got)
        buf[strcspn(buf, "\n")] = '\0';
    return got;
}

static bool is_driver(const struct dpdk_spec *spec, const struct dpdk_machine *m,
                      const char *driver)
{
    char link[PATH_ROOM];
    return !strcmp(link_of(m, spec->name, "driver", link), driver);
}

static bool is_uio(const struct dpdk_spec *spec, const struct dpdk_machine *m)
{
    char link[PATH_ROOM];
    return strstr(link_of(m, spec->name, "driver", link), "uio");
}

/* Without an IOMMU, vfio creates groups of its own with this name. */
static bool is_noiommu(const struct dpdk_spec *spec, const struct dpdk_machine *m)
{
    char path[PATH_ROOM], name[32];
    in_device(m, spec->name, "iommu_group/name", path);
    return read_line(path, name, sizeof(name)) && !strncmp(name, "vfio-noiommu", 12);
}

bool dpdk_pci_physical(const struct dpdk_spec *spec, const struct dpdk_machine *m)
{
    return spec->kind == DPDK_PCI && (is_uio(spec, m) || is_noiommu(spec, m));
}

bool dpdk_pci_is_there(const struct dpdk_spec *spec, const struct dpdk_machine *m)
{
    char link[PATH_ROOM];
    return is_one_of(link_of(m, spec->name, "driver", link), usable,
                     sizeof(usable) / sizeof(usable[0]));
}

/* ---- advice ---- */

bool dpdk_pci_has_iommu(const struct dpdk_machine *m)
{
    char path[PATH_ROOM];
    snprintf(path, sizeof(path), "%s/sys/kernel/iommu_groups", m->root);
    DIR *dir = opendir(path);
    bool found = false;
    for (struct dirent *e; dir && !found && (e = readdir(dir));) {
        char file[PATH_ROOM + 300], name[32];
        if (e->d_name[0] == '.')
            continue;
        snprintf(file, sizeof(file), "%s/%s/name", path, e->d_name);
        found = !read_line(file, name, sizeof(name)) || strncmp(name, "vfio-noiommu", 12) != 0;
    }
    if (dir)
        closedir(dir);
    return found;
}

/* Does the running kernel have this module, or is it built in? */
static bool has_module(const struct dpdk_machine *m, const char *name)
{
    static const char *const lists[] = {"modules.dep", "modules.builtin"};
    char path[PATH_ROOM], release[100], file[100], line[2048];
    bool found = false;
    snprintf(path, sizeof(path), "%s/sys/module/%s", m->root, name);
    if (access(path, F_OK) == 0)
        return true;
    snprintf(path, sizeof(path), "%s/proc/sys/kernel/osrelease", m->root);
    if (!read_line(path, release, sizeof(release)))
        return false;
    snprintf(file, sizeof(file), "/%s.ko", name);
    for (size_t i = 0; !found && i < sizeof(lists) / sizeof(lists[0]); i++) {
        snprintf(path, sizeof(path), "%s/lib/modules/%s/%s", m->root, release, lists[i]);
        FILE *f = fopen(path, "re");
        while (f && !found && fgets(line, sizeof(line), f))
            found = strstr(line, file);
        if (f)
            fclose(f);
    }
    return found;
}

/* Can the device raise the legacy interrupt, which uio_pci_generic wants? Virtual functions can't.
 */
static bool has_legacy_interrupt(const struct dpdk_spec *spec, const struct dpdk_machine *m)
{
    char path[PATH_ROOM];
    uint8_t pin = 0;
    in_device(m, spec->name, "config", path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool known = fd >= 0 && pread(fd, &pin, 1, 0x3d) == 1;
    if (fd >= 0)
        close(fd);
    return !known || pin != 0;
}

void dpdk_pci_advise(const struct dpdk_spec *spec, const struct dpdk_machine *m, char *out,
                     size_t size)
{
    static const char unsafe[] = "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode";
    char path[PATH_ROOM];
    snprintf(path, sizeof(path), "%s%s", m->root, unsafe);
    if (dpdk_pci_has_iommu(m))
        snprintf(out, size, "`modprobe vfio-pci && dpdk-devbind.py --bind=vfio-pci %s`",
                 spec->name);
    else if (has_legacy_interrupt(spec, m) && has_module(m, "uio_pci_generic"))
        snprintf(out, size,
                 "no IOMMU here, so as root "
                 "`modprobe uio_pci_generic && dpdk-devbind.py --bind=uio_pci_generic %s`",
                 spec->name);
    else if (access(path, F_OK) == 0)
        snprintf(out, size,
                 "no IOMMU here, so as root "
                 "`echo 1 >%s && dpdk-devbind.py --bind=vfio-pci %s`",
                 unsafe, spec->name);
    else
        snprintf(
            out, size,
            "no IOMMU here, and this kernel has no uio_pci_generic that fits: switch the IOMMU "
            "on in the firmware or hypervisor (Intel: boot with intel_iommu=on), or use "
            "dpdk:net_af_packet0,iface=INTERFACE");
}

/* ---- other processes ---- */

/* The process that has `file` open; 0 = none visible. */
static long holder(const struct dpdk_machine *m, const char *file, char *name, size_t size)
{
    char path[PATH_ROOM];
    long found = 0;
    snprintf(path, sizeof(path), "%s/proc", m->root);
    DIR *proc = opendir(path);
    for (struct dirent *p; proc && !found && (p = readdir(proc));) {
        long pid = strtol(p->d_name, NULL, 10);
        if (pid <= 0)
            continue;
        snprintf(path, sizeof(path), "%s/proc/%ld/fd", m->root, pid);
        DIR *fds = opendir(path);
        for (struct dirent *e; fds && !found && (e = readdir(fds));) {
            char link[PATH_ROOM];
            ssize_t n = readlinkat(dirfd(fds), e->d_name, link, sizeof(link) - 1);
            link[n > 0 ? n : 0] = '\0';
            if (!strcmp(link, file))
                found = pid;
        }
        if (fds)
            closedir(fds);
    }
    if (proc)
        closedir(proc);
    snprintf(path, sizeof(path), "%s/proc/%ld/comm", m->root, found);
    if (!found || !read_line(path, name, size))
        snprintf(name, size, "?");
    return found;
}

static int say_held(const struct dpdk_spec *spec, long pid, const char *name, char *err,
                    size_t size)
{
    if (!pid)
        return refuse(err, size, -EBUSY, "%s is in use by another process", spec->name);
    return refuse(err, size, -EBUSY, "%s is in use by process %ld (%s)", spec->name, pid, name);
}

/* The device's file of uio: "/dev/uio0". False: it has none. */
static bool uio_file(const struct dpdk_spec *spec, const struct dpdk_machine *m, char *file,
                     size_t size)
{
    char path[PATH_ROOM];
    bool found = false;
    in_device(m, spec->name, "uio", path);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && !found && (e = readdir(dir));) {
        found = !strncmp(e->d_name, "uio", 3);
        if (found)
            snprintf(file, size, "/dev/%.40s", e->d_name);
    }
    if (dir)
        closedir(dir);
    return found;
}

/* Other DPDK programs take no lock, but hold the file open. We must not open it to look: the last
 * close of any descriptor stops the device's DMA. */
static int check_uio_holder(const struct dpdk_spec *spec, const struct dpdk_machine *m, char *err,
                            size_t size)
{
    char file[64], name[64];
    long pid = uio_file(spec, m, file, sizeof(file)) ? holder(m, file, name, sizeof(name)) : 0;
    return pid && pid != (long)getpid() ? say_held(spec, pid, name, err, size) : 0;
}

int dpdk_pci_lock(const struct dpdk_spec *spec, const struct dpdk_machine *m, int *fd, char *err,
                  size_t err_size)
{
    char path[PATH_ROOM];
    *fd = -1;
    if (spec->kind != DPDK_PCI || !is_uio(spec, m))
        return 0; /* vfio admits one process; drivers of the kernel share the device */
    in_device(m, spec->name, "", path);
    int lock = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
        close(lock);
        int rc = check_uio_holder(spec, m, err, err_size);
        return rc ? rc : say_held(spec, 0, "", err, err_size);
    }
    int rc = check_uio_holder(spec, m, err, err_size); /* also of another network namespace */
    if (rc && lock >= 0)
        close(lock);
    else
        *fd = lock;
    return rc;
}

/* ---- rights ---- */

static const char *user_name(const struct dpdk_machine *m)
{
    const struct passwd *pw = getpwuid(m->uid);
    return pw ? pw->pw_name : "USER";
}

static int check_file(const struct dpdk_spec *spec, const struct dpdk_machine *m, const char *file,
                      char *err, size_t size)
{
    char path[PATH_ROOM], name[64];
    snprintf(path, sizeof(path), "%s%s", m->root, file);
    int fd = open(path, O_RDWR | O_CLOEXEC), why = errno;
    if (fd >= 0) {
        close(fd);
        return 0;
    }
    if (why == EBUSY) { /* a vfio group, with all NICs in it, is for one process */
        long pid = holder(m, file, name, sizeof(name));
        return pid == (long)getpid() ? 0 : say_held(spec, pid, name, err, size);
    }
    if (why == ENOENT)
        return refuse(err, size, -ENOENT, "%s: there is no %s: `modprobe vfio-pci`", spec->name,
                      file);
    return refuse(err, size, -EACCES, "%s: no access to %s (%s): `chown %s %s`", spec->name, file,
                  strerror(why), user_name(m), file);
}

/* All devices of a group reach the same memory: vfio hands out none while the kernel has one. */
static int check_group(const struct dpdk_spec *spec, const struct dpdk_machine *m, char *err,
                       size_t size)
{
    char path[PATH_ROOM], link[PATH_ROOM];
    int rc = 0;
    in_device(m, spec->name, "iommu_group/devices", path);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && !rc && (e = readdir(dir));) {
        if (e->d_name[0] == '.')
            continue;
        const char *driver = link_of(m, e->d_name, "driver", link);
        if (!is_one_of(driver, harmless, sizeof(harmless) / sizeof(harmless[0])))
            rc = refuse(
                err, size, -EBUSY,
                "%s shares its IOMMU group with %s, which the driver \"%s\" has: give that to "
                "vfio-pci or to none: `dpdk-devbind.py --bind=vfio-pci %s`",
                spec->name, e->d_name, driver, e->d_name);
    }
    if (dir)
        closedir(dir);
    return rc;
}

static int check_vfio(const struct dpdk_spec *spec, const struct dpdk_machine *m, char *err,
                      size_t size)
{
    char link[PATH_ROOM], file[64];
    bool noiommu = is_noiommu(spec, m);
    const char *group = link_of(m, spec->name, "iommu_group", link);
    int rc = noiommu ? 0 : check_group(spec, m, err, size);
    if (rc == 0 && strcmp(group, "none") != 0) {
        snprintf(file, sizeof(file), "/dev/vfio/%s%.20s", noiommu ? "noiommu-" : "", group);
        rc = check_file(spec, m, file, err, size);
    }
    return rc ? rc : check_file(spec, m, "/dev/vfio/vfio", err, size);
}

/* ---- a virtio NIC that goes past the IOMMU ---- */

#define VIRTIO_VENDOR     0x1af4u
#define CAP_VENDOR        0x09
#define VIRTIO_CAP_CONF   1         /* capability with the place of the feature registers */
#define VIRTIO_CAP_WINDOW 5         /* registers read through configuration space */
#define VERSION_1         (1u << 0) /* every modern NIC has it: the read was valid */
#define ACCESS_PLATFORM   (1u << 1) /* bit of the upper 32 features */

struct virtio_caps {
    uint8_t conf_bar, window;
    uint32_t conf_offset;
};

static uint32_t get32(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static bool find_caps(int fd, struct virtio_caps *out)
{
    uint8_t c[256];
    *out = (struct virtio_caps){0};
    if (pread(fd, c, sizeof(c), 0) != (ssize_t)sizeof(c))
        return false; /* others than root see only the first 64 octets */
    unsigned at = c[0x34] & 0xfcu;
    bool conf = false;
    for (unsigned n = 0; at >= 0x40 && at <= 0xec && n < 48; n++, at = c[at + 1] & 0xfcu) {
        if (c[at] != CAP_VENDOR)
            continue;
        if (c[at + 3] == VIRTIO_CAP_CONF && !conf) {
            conf = true;
            out->conf_bar = c[at + 4];
            out->conf_offset = get32(c + at + 8);
        } else if (c[at + 3] == VIRTIO_CAP_WINDOW) {
            out->window = (uint8_t)at;
        }
    }
    return conf && out->window;
}

/* A register of the device, through its window in configuration space: read, or written if it is
 * not NULL. */
static bool window(int fd, const struct virtio_caps *v, uint32_t offset, const uint32_t *write,
                   uint32_t *read)
{
    uint8_t bar = v->conf_bar, four[4] = {4};
    uint32_t where = v->conf_offset + offset; /* little-endian, as this machine is */
    if (pwrite(fd, &bar, 1, v->window + 4) != 1 || pwrite(fd, &where, 4, v->window + 8) != 4 ||
        pwrite(fd, four, 4, v->window + 12) != 4)
        return false;
    return write ? pwrite(fd, write, 4, v->window + 16) == 4
                 : pread(fd, read, 4, v->window + 16) == 4;
}

/* Without VIRTIO_F_ACCESS_PLATFORM the NIC takes addresses for physical ones, even with an IOMMU.
 * DPDK would give it virtual ones: memory would be overwritten, and DPDK would wait for ever. */
static int check_virtio(const struct dpdk_spec *spec, const struct dpdk_machine *m, char *err,
                        size_t size)
{
    char path[PATH_ROOM], text[32] = "";
    struct virtio_caps caps;
    uint32_t upper = 1, features = 0;
    int rc = 0;
    in_device(m, spec->name, "vendor", path);
    if (!read_line(path, text, sizeof(text)) || strtoul(text, NULL, 16) != VIRTIO_VENDOR)
        return 0;
    in_device(m, spec->name, "config", path);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0 && find_caps(fd, &caps) && window(fd, &caps, 0, &upper, NULL) &&
        window(fd, &caps, 4, NULL, &features) && (features & VERSION_1) &&
        !(features & ACCESS_PLATFORM))
        rc = refuse(err, size, -EOPNOTSUPP,
                    "%s: this virtio NIC bypasses the IOMMU, and vfio can't isolate it: give it "
                    "iommu_platform=on in the hypervisor, or use dpdk:net_af_packet0",
                    spec->name);
    if (fd >= 0)
        close(fd);
    return rc;
}

/* ---- memory ---- */

/* The free hugepages, as text: "24 of 2 MiB, 1 of 1024 MiB". *least: the smallest size with free
 * pages. */
static uint64_t free_pages(const struct dpdk_machine *m, uint64_t *least, char *text, size_t size)
{
    char path[PATH_ROOM], line[32];
    uint64_t sum = 0;
    size_t used = 0;
    *least = 0;
    snprintf(text, size, "none");
    snprintf(path, sizeof(path), "%s/sys/kernel/mm/hugepages", m->root);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        unsigned long long kib, count;
        char file[PATH_ROOM + 300];
        if (sscanf(e->d_name, "hugepages-%llukB", &kib) != 1)
            continue;
        snprintf(file, sizeof(file), "%s/%s/free_hugepages", path, e->d_name);
        if (!read_line(file, line, sizeof(line)) || !(count = strtoull(line, NULL, 10)))
            continue;
        sum += count * kib << 10;
        if (!*least || kib << 10 < *least)
            *least = kib << 10;
        if (used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%llu of %llu MiB",
                                     used ? ", " : "", count, kib >> 10);
    }
    if (dir)
        closedir(dir);
    return sum;
}

uint64_t dpdk_pci_pages(const struct dpdk_machine *m, char *text, size_t size)
{
    uint64_t least;
    return free_pages(m, &least, text, size);
}

static int check_memory(const struct dpdk_spec *spec, const struct dpdk_machine *m,
                        uint32_t frame_max, char *err, size_t size)
{
    uint64_t need = dpdk_spec_memory(spec, frame_max), page, huge;
    char have[80];
    if (spec->huge == DPDK_HUGE_OFF || m->running)
        return 0;
    huge = free_pages(m, &page, have, sizeof(have));
    if (huge < need || page == 0)
        return refuse(err, size, -ENOMEM,
                      "%s needs %llu MiB of hugepages, free are %s: `sysctl vm.nr_hugepages=%llu`",
                      spec->name, (unsigned long long)(need >> MIB), have,
                      (unsigned long long)(need < 512ull << MIB ? 512 : need >> 20));
    need = (need + page - 1) / page * page;
    if (is_driver(spec, m, "vfio-pci") && m->lockable < need)
        return refuse(err, size, -ENOMEM,
                      "%s needs %llu MiB of locked memory for its DMA, allowed are %llu: "
                      "LimitMEMLOCK=infinity in the systemd unit, or `ulimit -l unlimited`",
                      spec->name, (unsigned long long)(need >> MIB),
                      (unsigned long long)(m->lockable >> MIB));
    return 0;
}

int dpdk_pci_check(const struct dpdk_spec *spec, const struct dpdk_machine *m, uint32_t frame_max,
                   char *err, size_t err_size)
{
    char path[PATH_ROOM], link[PATH_ROOM], advice[300];
    in_device(m, spec->name, "", path);
    if (access(path, F_OK) < 0)
        return refuse(err, err_size, -ENODEV,
                      "no PCI device %s here; `dpdk-devbind.py --status` lists them", spec->name);
    const char *driver = link_of(m, spec->name, "driver", link);
    if (!is_one_of(driver, usable, sizeof(usable) / sizeof(usable[0]))) {
        dpdk_pci_advise(spec, m, advice, sizeof(advice));
        return refuse(err, err_size, -EBUSY,
                      "%s is bound to the driver \"%s\"; give it to user space, unless you are "
                      "logged in through it: %s (doc/nic.md)",
                      spec->name, driver, advice);
    }
    if (dpdk_pci_physical(spec, m) && !(m->effective >> CAP_SYS_ADMIN & 1))
        return refuse(err, err_size, -EPERM,
                      "%s is bound to \"%s\" without an IOMMU, which takes physical addresses: run "
                      "as root, or use vfio-pci with an IOMMU",
                      spec->name, driver);
    int rc = 0;
    if (is_driver(spec, m, "vfio-pci"))
        rc = check_vfio(spec, m, err, err_size);
    else if (is_uio(spec, m))
        rc = check_uio_holder(spec, m, err, err_size);
    if (rc == 0 && is_driver(spec, m, "vfio-pci") && !is_noiommu(spec, m))
        rc = check_virtio(spec, m, err, err_size);
    return rc ? rc : check_memory(spec, m, frame_max, err, err_size);
}
