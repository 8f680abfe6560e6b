/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The list of drivers, and the way from a port specification to an open port.
 *
 * mem, pcap and memif are part of the program. The DPDK driver is a plugin, liburnic-dpdk.so, that
 * is loaded when the first dpdk: port is opened: a daemon without such ports never maps DPDK.
 */
#include "io.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dpdk_spec.h"
#include "io_arg.h"
#include "mem_link.h"
#include "pcap_port.h"
#ifdef URNIC_HAVE_MEMIF
#include "memif.h"
#endif

#define PLUGIN_DPDK "liburnic-dpdk.so"
#define PLUGIN_OPEN "io_dpdk_open"

#ifndef URNIC_PLUGIN_LIBDIR
#define URNIC_PLUGIN_LIBDIR "/usr/lib/urnic"
#endif

/* Where the DPDK plugin may be: the user's word first, then where it was installed, then, from the
 * folder of the running program on, a build tree. */
static const char *const plugin_exe_dirs[] = {
    "", "/drivers/dpdk", "/../drivers/dpdk", "/../../drivers/dpdk", "/../../../drivers/dpdk",
};

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

/* Load one candidate. A file that exists but can't be loaded ends the search with its reason. */
static void *plugin_try(const char *dir, char *why, size_t why_size, bool *found)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%.3800s/" PLUGIN_DPDK, dir);
    if (access(path, F_OK))
        return NULL;
    *found = true;
    void *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!handle)
        snprintf(why, why_size, "%s", dlerror());
    return handle;
}

static void *plugin_find(char *why, size_t why_size, bool *found)
{
    char exe[PATH_MAX], dir[PATH_MAX + 64];
    const char *env = secure_getenv("URNIC_PLUGIN_DIR");
    void *handle = NULL;

    *found = false;
    if (env && *env)
        return plugin_try(env, why, why_size, found);
    handle = plugin_try(URNIC_PLUGIN_LIBDIR, why, why_size, found);
    if (*found || exe_dir(exe, sizeof(exe)))
        return handle;
    for (size_t i = 0; i < sizeof(plugin_exe_dirs) / sizeof(plugin_exe_dirs[0]); i++) {
        snprintf(dir, sizeof(dir), "%s%s", exe, plugin_exe_dirs[i]);
        handle = plugin_try(dir, why, why_size, found);
        if (*found)
            return handle;
    }
    return NULL;
}

static int open_dpdk(const char *args, const struct io_open_params *params, struct io_port **out,
                     char *err, size_t err_size)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static io_open_fn plugin_open; /* under lock; the plugin is never unloaded */
    char why[512] = "";
    bool found = false;

    pthread_mutex_lock(&lock);
    if (!plugin_open) {
        void *handle = plugin_find(why, sizeof(why), &found);
        if (handle) {
            void *sym = dlsym(handle, PLUGIN_OPEN);
            memcpy(&plugin_open, &sym, sizeof(sym));
            if (!sym) {
                snprintf(why, sizeof(why), "it has no function " PLUGIN_OPEN);
                dlclose(handle);
            }
        }
    }
    io_open_fn open_fn = plugin_open;
    pthread_mutex_unlock(&lock);

    if (open_fn)
        return open_fn(args, params, out, err, err_size);
    if (found)
        return io_fail(err, err_size, -ENOSYS, "dpdk: " PLUGIN_DPDK " could not be loaded: %s",
                       why);
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

/* Add a driver here: the word before ':', its opener, and what reads its arguments only. */
static const struct driver {
    const char *name;
    io_open_fn open;
    int (*check)(const char *args, char *err, size_t err_size);
} drivers[] = {
    {"mem", io_mem_open, io_mem_check},
    {"pcap", io_pcap_open, io_pcap_check},
#ifdef URNIC_HAVE_MEMIF
    {"memif", io_memif_open, io_memif_check},
#endif
    {"dpdk", open_dpdk, check_dpdk},
};

/* The driver that a specification names, and what follows its name; or -errno and a sentence. */
static int find_driver(const char *spec, const struct driver **out, const char **args, char *err,
                       size_t err_size)
{
    const char *colon = strchr(spec, ':');
    size_t name_len = colon ? (size_t)(colon - spec) : 0;

    if (err && err_size)
        err[0] = '\0';
    if (!colon)
        return io_fail(err, err_size, -EINVAL,
                       "port '%s': want DRIVER:ARGUMENTS, for example mem:LINK", spec);
    if (strlen(spec) >= IO_SPEC_MAX)
        return io_fail(err, err_size, -EINVAL, "port '%.32s...': longer than %u characters", spec,
                       IO_SPEC_MAX - 1);
    for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
        if (strlen(drivers[i].name) != name_len || memcmp(drivers[i].name, spec, name_len))
            continue;
        *out = &drivers[i];
        *args = colon + 1;
        return 0;
    }
    return io_fail(err, err_size, -ENODEV,
                   "port '%s': no driver '%.*s' (there are mem, memif, pcap and dpdk)", spec,
                   (int)name_len, spec);
}

int io_check(const char *spec, char *err, size_t err_size)
{
    const struct driver *d;
    const char *args;
    int rc = find_driver(spec, &d, &args, err, err_size);

    return rc ? rc : d->check(args, err, err_size);
}

int io_open(const char *spec, const struct io_open_params *params, struct io_port **out, char *err,
            size_t err_size)
{
    static const struct io_open_params defaults;
    const struct driver *d;
    const char *args;
    int rc = find_driver(spec, &d, &args, err, err_size);

    if (!rc)
        rc = d->open(args, params ? params : &defaults, out, err, err_size);
    if (!rc)
        snprintf((*out)->spec, sizeof((*out)->spec), "%s", spec);
    return rc;
}
