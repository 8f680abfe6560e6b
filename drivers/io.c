/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The list of drivers, and the way from a port specification to an open port.
 *
 * mem, pcap, udp and memif are part of the program. The DPDK driver is a plugin, liburnic-dpdk.so,
 * that is loaded when the first dpdk: port is opened: a daemon without such ports never maps DPDK.
 */
#include "io.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <net/if.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/un.h>
#include <unistd.h>

#include "dpdk_spec.h"
#include "io_arg.h"
#include "mem_link.h"
#include "pcap_port.h"
#include "tap.h"
#include "tap_spec.h"
#include "udp.h"
#ifdef URNIC_HAVE_MEMIF
#include "memif.h"
#endif

#define PLUGIN_DPDK "liburnic-dpdk.so"

#ifndef URNIC_PLUGIN_LIBDIR
#define URNIC_PLUGIN_LIBDIR "/usr/lib/urnic"
#endif
#ifndef URNIC_PLUGIN_SUBDIR
#define URNIC_PLUGIN_SUBDIR "lib/urnic"
#endif

static int exe_dir(char *buf, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", buf, size - 1);
    if (n <= 0)
        return -ENOENT;
    buf[n] = '\0';
    char *slash = strrchr(buf, '/');
    if (!slash)
        return -ENOENT;
    *slash = '\0';
    return 0;
}

static int plugin_in(const char *dir, const char *sub, char *path, size_t size)
{
    int n = snprintf(path, size, "%s%s/" PLUGIN_DPDK, dir, sub);
    return n > 0 && (size_t)n < size && access(path, F_OK) == 0 ? 0 : -ENOENT;
}

/* If the user names a plugin, it is the only one tried. Otherwise the plugin that was built or
 * installed together with the running program: one of another release would not fit. A program with
 * more rights than its user looks only in its installation folder: the user may have linked the
 * program into another folder. */
int io_dpdk_plugin(char *path, size_t size)
{
    static const char *const from_exe[] = {
        ("/../" URNIC_PLUGIN_SUBDIR),
        "",
        "/drivers/dpdk",
        "/../drivers/dpdk",
        "/../../drivers/dpdk",
        "/../../../drivers/dpdk",
    };
    char exe[PATH_MAX];
    const char *env = secure_getenv("URNIC_PLUGIN_DIR");
    int rc = -ENOENT;
    if (env && *env)
        return plugin_in(env, "", path, size);
    if (!getauxval(AT_SECURE) && exe_dir(exe, sizeof(exe)) == 0)
        for (size_t i = 0; rc && i < sizeof(from_exe) / sizeof(from_exe[0]); i++)
            rc = plugin_in(exe, from_exe[i], path, size);
    return rc ? plugin_in(URNIC_PLUGIN_LIBDIR, "", path, size) : 0;
}

/* dpdk:eth0 names a kernel interface. */
static void suggest_udp(const char *args, char *err, size_t err_size)
{
    char name[IF_NAMESIZE];
    size_t len = strcspn(args, ",");
    if (len == 0 || len >= sizeof(name))
        return;
    memcpy(name, args, len);
    name[len] = '\0';
    if (if_nametoindex(name) == 0)
        return;
    io_fail(err, err_size, 0,
            "dpdk:%s: no device of DPDK, but an interface of the kernel: udp:%s uses the addresses "
            "that it has, dpdk:net_af_packet0,iface=%s others",
            name, name, name);
}

/* The plugin's opener, if it fits this program; else NULL, and the reason. */
static io_open_fn load_plugin(const char *path, char *why, size_t size)
{
    io_open_fn open_fn = NULL;
    void *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    void *sym = handle ? dlsym(handle, IO_PLUGIN_OPEN) : NULL;
    if (!sym) {
        io_fail(why, size, 0, PLUGIN_DPDK " could not be loaded: %s", dlerror());
    } else {
        const char *abi = dlsym(handle, IO_PLUGIN_ABI);
        if (abi && strcmp(abi, IO_ABI) == 0)
            memcpy(&open_fn, &sym, sizeof(sym)); /* a cast would not be ISO C */
        else
            io_fail(why, size, 0,
                    "%s belongs to another version of urnic than this program (its interface is "
                    "%.32s, the program's " IO_ABI "): install both from one build, or set "
                    "URNIC_PLUGIN_DIR to the folder of the plugin that fits",
                    path, abi ? abi : "an older one");
    }
    if (handle && !open_fn)
        dlclose(handle);
    return open_fn;
}

static int open_dpdk(const char *args, const struct io_open_params *params, struct io_port **out,
                     char *err, size_t err_size)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static io_open_fn plugin_open; /* under lock; the plugin is never unloaded */
    char path[PATH_MAX + 64], why[PATH_MAX + 512] = "";

    pthread_mutex_lock(&lock);
    bool found = plugin_open || io_dpdk_plugin(path, sizeof(path)) == 0;
    if (!plugin_open && found)
        plugin_open = load_plugin(path, why, sizeof(why));
    io_open_fn open_fn = plugin_open;
    pthread_mutex_unlock(&lock);

    if (open_fn) {
        int rc = open_fn(args, params, out, err, err_size);
        if (rc < 0)
            suggest_udp(args, err, err_size);
        return rc;
    }
    if (found)
        return io_fail(err, err_size, -ENOSYS, "dpdk: %s", why);
    return io_fail(err, err_size, -ENOSYS,
                   "dpdk: " PLUGIN_DPDK
                   " was not found: install libdpdk-dev, build and install urnic "
                   "again, or set URNIC_PLUGIN_DIR to the folder that holds it");
}

static int check_dpdk(const char *args, char *err, size_t err_size)
{
    struct dpdk_spec spec;
    return dpdk_spec_parse(args, &spec, err, err_size);
}

/* Add a driver here: the word before ':'; its opener; its function that only reads arguments; and
 * the greatest length of its first argument if that is a path in use while the port is open, else
 * 0. */
static const struct driver {
    const char *name;
    io_open_fn open;
    int (*check)(const char *args, char *err, size_t err_size);
    size_t path_max;
} drivers[] = {
    {"mem", io_mem_open, io_mem_check, 0},
    {"pcap", io_pcap_open, io_pcap_check, 0},
#ifdef URNIC_HAVE_MEMIF
    {"memif", io_memif_open, io_memif_check, sizeof(((struct sockaddr_un *)0)->sun_path) - 1},
#endif
    {"udp", io_udp_open, io_udp_check, 0},
    {"dpdk", open_dpdk, check_dpdk, 0},
};

/* The driver of a specification, and the text after its name; or NULL, with -errno in *rc and a
 * sentence in err. */
static const struct driver *find_driver(const char *spec, const char **args, int *rc, char *err,
                                        size_t err_size)
{
    const char *colon = strchr(spec, ':');
    size_t name_len = colon ? (size_t)(colon - spec) : 0;
    if (err && err_size)
        err[0] = '\0';
    if (!colon) {
        *rc = io_fail(err, err_size, -EINVAL,
                      "port '%s': want DRIVER:ARGUMENTS, for example mem:LINK", spec);
        return NULL;
    }
    if (strlen(spec) >= IO_SPEC_MAX) {
        *rc = io_fail(err, err_size, -EINVAL, "port '%.32s...': longer than %u characters", spec,
                      IO_SPEC_MAX - 1);
        return NULL;
    }
    for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
        if (strlen(drivers[i].name) != name_len || memcmp(drivers[i].name, spec, name_len))
            continue;
        *args = colon + 1;
        return &drivers[i];
    }
    char known[64] = "";
    for (size_t i = 0, n = 0; i < sizeof(drivers) / sizeof(drivers[0]) && n < sizeof(known); i++)
        n += (size_t)snprintf(known + n, sizeof(known) - n, "%s%s", i ? ", " : "", drivers[i].name);
    *rc = io_fail(err, err_size, -ENODEV, "port '%s': no driver '%.*s' (there are %s)", spec,
                  (int)name_len, spec, known);
    return NULL;
}

int io_check(const char *spec, char *err, size_t err_size)
{
    char rest[IO_SPEC_MAX], tap[IF_NAMESIZE];
    const char *args;
    int rc;
    const struct driver *d = find_driver(spec, &args, &rc, err, err_size);
    if (!d)
        return rc;
    rc = tap_spec_split(spec, rest, tap, err, err_size);
    return rc < 0 ? rc : d->check(rest + (args - spec), err, err_size);
}

int io_absolute(char spec[IO_SPEC_MAX], const char *dir)
{
    char whole[2 * IO_SPEC_MAX];
    const char *args;
    int rc;
    const struct driver *d = find_driver(spec, &args, &rc, NULL, 0);
    if (!d || d->path_max == 0 || *args == '/' || *args == '@')
        return 0;
    int n = snprintf(whole, sizeof(whole), "%s:%s/%s", d->name, dir, args);
    if (strlen(dir) + 1 + strcspn(args, ",") > d->path_max || n >= (int)IO_SPEC_MAX)
        return -ENAMETOOLONG;
    memcpy(spec, whole, (size_t)n + 1);
    return 0;
}

/* Put the kernel's interface around the open port, if one is wanted. */
static int open_tap(const char *name, const struct io_open_params *params, struct io_port **port,
                    char *err, size_t err_size)
{
    struct io_port *below = *port;
    int rc = name[0] ? tap_open(name, below, params, port, err, err_size) : 0;
    if (rc < 0) {
        below->ops->close(below);
        *port = NULL;
    }
    return rc;
}

int io_open(const char *spec, const struct io_open_params *params, struct io_port **out, char *err,
            size_t err_size)
{
    static const struct io_open_params defaults;
    char rest[IO_SPEC_MAX], tap[IF_NAMESIZE];
    const char *args;
    int rc;
    const struct driver *d = find_driver(spec, &args, &rc, err, err_size);
    struct io_open_params below = params ? *params : defaults;
    params = &below;
    if (d)
        rc = tap_spec_split(spec, rest, tap, err, err_size);
    if (d && rc == 0 && tap[0])
        below.queues = 1; /* that interface has one */
    if (d && rc == 0)
        rc = d->open(rest + (args - spec), params, out, err, err_size);
    if (d && rc == 0)
        rc = open_tap(tap, params, out, err, err_size);
    if (!rc)
        snprintf((*out)->spec, sizeof((*out)->spec), "%s", spec);
    return rc;
}
