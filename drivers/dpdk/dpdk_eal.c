/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Starts DPDK's environment layer so that it disturbs nothing: private memory (no files, no
 * sockets), one thread of its own, affinity and signal mask of the caller kept, its log in our
 * form.
 */
#include "dpdk_eal.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "dpdk_hint.h"
#include "dpdk_log.h"
#include "dpdk_pci.h"

/* Without hugepages EAL reserves its memory at once; pages are only taken when they are touched. */
#define MEM_MIB_DEFAULT 1024u
/* Virtual devices need no hugepages; they take them when at least this much lies idle. */
#define HUGE_WORTH_IT (512ull << 20)

#define ARGS 16

struct eal_args {
    int argc;
    char *argv[ARGS + 1];
    char text[ARGS][1400]; /* the text of argv; the CPU list may be long */
};

static pthread_key_t thread_key;
static bool bpf_debug, running;

/* The end of EAL's log stream: one call per message, in the thread that logs. */
static ssize_t log_write(void *cookie, const char *buf, size_t size)
{
    (void)cookie;
    dpdk_log_message((unsigned)rte_log_cur_msg_loglevel(), buf, size);
    return (ssize_t)size;
}

/* libbpf and libxdp have a log of their own, with functions of the same form to redirect it. They
 * are not linked but loaded by DPDK's af_xdp driver. */
typedef int (*bpf_print_fn)(int level, const char *fmt, va_list ap);
typedef bpf_print_fn (*bpf_set_print_fn)(bpf_print_fn fn);

static int bpf_print(int level, const char *fmt, va_list ap)
{
    char text[400];
    int n = vsnprintf(text, sizeof(text), fmt, ap);
    if (level <= 1 && bpf_debug) {
        text[strcspn(text, "\n")] = '\0';
        dpdk_log(IO_LOG_INFO, "%s", text);
    }
    return n;
}

static void redirect_bpf_log(const char *library, const char *setter)
{
    void *lib = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    bpf_set_print_fn set = NULL;

    if (lib) /* POSIX's way to make a function pointer of dlsym's result */
        *(void **)&set = dlsym(lib, setter);
    if (set)
        set(bpf_print);
    if (lib)
        dlclose(lib); /* DPDK keeps it */
}

static void log_redirect(bool debug)
{
    cookie_io_functions_t io = {.write = log_write};
    FILE *f = fopencookie(NULL, "w", io);
    if (f)
        rte_openlog_stream(f);
    dpdk_log_debug(debug);
    rte_log_set_global_level(debug ? RTE_LOG_DEBUG : RTE_LOG_WARNING);
}

__attribute__((format(printf, 2, 3))) static void arg(struct eal_args *a, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(a->text[a->argc], sizeof(a->text[0]), fmt, ap);
    va_end(ap);
    a->argv[a->argc] = a->text[a->argc];
    a->argv[++a->argc] = NULL;
}

/* Compose EAL's command line. `huge` = use hugepages; `physical` = the device has no IOMMU in front
 * of it; `cpus` = list of CPUs the main thread may run on, such as "0,1,4". */
static void compose(struct eal_args *out, const struct dpdk_spec *spec, bool huge, bool physical,
                    const char *cpus, int pid)
{
    out->argc = 0;
    arg(out, "urnicd");
    if (huge) {
        arg(out, "--in-memory");
    } else {
        /* EAL refuses --in-memory together with --no-huge; this has the same effect. */
        arg(out, "--no-huge");
        arg(out, "--no-shconf");
        arg(out, "-m");
        arg(out, "%u", spec->mem_mib ? spec->mem_mib : MEM_MIB_DEFAULT);
    }
    arg(out, "--file-prefix=urnic-%d", pid);
    arg(out, "--no-telemetry");
    /* One lcore that floats over all the CPUs we may use: two daemons don't meet on CPU 0. */
    arg(out, "--lcores=0@(%s)", cpus);
    /* An allow-list with an unused address: EAL takes no PCI device by itself, but one can be
     * plugged in by name later. --no-pci would exclude that. */
    arg(out, "--allow=ffff:ff:1f.7");
    /* With that list EAL does not see which driver has the NIC, and would take virtual addresses.
     */
    if (spec->kind != DPDK_PCI)
        arg(out, "--iova-mode=va");
    else if (physical)
        arg(out, "--iova-mode=pa");
    arg(out, "--log-level=%s", spec->debug ? "debug" : "warning");
}

unsigned long long dpdk_eal_free_hugepages(void)
{
    static const char root[] = "/sys/kernel/mm/hugepages";
    unsigned long long sum = 0, kib, count;
    DIR *dir = opendir(root);
    const struct dirent *de;

    while (dir && (de = readdir(dir))) {
        char path[400];
        FILE *f;

        if (sscanf(de->d_name, "hugepages-%llukB", &kib) != 1)
            continue;
        snprintf(path, sizeof(path), "%s/%s/free_hugepages", root, de->d_name);
        f = fopen(path, "re");
        if (f && fscanf(f, "%llu", &count) == 1)
            sum += count * (kib << 10);
        if (f)
            fclose(f);
    }
    if (dir)
        closedir(dir);
    return sum;
}

static void cpu_list(const cpu_set_t *set, char *out, size_t size)
{
    size_t at = 0;
    out[0] = '\0';
    for (int i = 0; i < CPU_SETSIZE && at + 8 < size; i++)
        if (CPU_ISSET(i, set))
            at += (size_t)snprintf(out + at, size - at, at ? ",%d" : "%d", i);
}

static void thread_gone(void *known)
{
    (void)known;
    rte_thread_unregister();
}

static bool want_hugepages(const struct dpdk_spec *spec)
{
    if (spec->huge != DPDK_HUGE_AUTO)
        return spec->huge == DPDK_HUGE_ON;
    return spec->kind == DPDK_PCI || dpdk_eal_free_hugepages() >= HUGE_WORTH_IT;
}

/* Start EAL, whose own threads inherit the signal mask: signals stay with the daemon's threads.
 * Returns 0, or the result of rte_eal_init. */
static int init_quietly(struct eal_args *args, const cpu_set_t *mine)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = rte_eal_init(args->argc, args->argv);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_setaffinity_np(pthread_self(), sizeof(*mine), mine);
    return rc;
}

/* Show or hide the messages of DPDK's drivers and of libraries below them. tap logs an error at
 * every start because there is no flow offload. memif warns about a second DPDK process. af_xdp
 * warns about a queue that is still being released. urnic reports the important faults itself. */
static void tame_logs(bool debug)
{
    bpf_debug = debug;
    redirect_bpf_log("libbpf.so.1", "libbpf_set_print");
    redirect_bpf_log("libxdp.so.1", "libxdp_set_print");
    if (debug)
        return;
    rte_log_set_level_pattern("pmd.net.tap", RTE_LOG_CRIT);
    rte_log_set_level_pattern("pmd.net.memif", RTE_LOG_ERR);
    rte_log_set_level_pattern("pmd.net.af_xdp", RTE_LOG_CRIT);
}

int dpdk_eal_start(const struct dpdk_spec *spec, const struct dpdk_machine *m, char *err,
                   size_t err_size)
{
    static bool failed;
    static struct eal_args args;
    bool huge = want_hugepages(spec);
    char cpus[1300];
    cpu_set_t mine;
    if (running)
        return 0;
    if (failed) {
        snprintf(err, err_size, "DPDK could not be started before; restart the daemon");
        return -EALREADY;
    }
    CPU_ZERO(&mine);
    pthread_getaffinity_np(pthread_self(), sizeof(mine), &mine);
    cpu_list(&mine, cpus, sizeof(cpus));
    compose(&args, spec, huge, dpdk_pci_physical(spec, m), cpus, (int)getpid());
    log_redirect(spec->debug);
    int rc = init_quietly(&args, &mine);
    if (rc < 0) {
        rc = rte_errno ? -rte_errno : -EIO;
        failed = true;
        const char *cause = dpdk_log_cause();
        snprintf(err, err_size, "DPDK does not start: %s%s%s%s (%s; urnic_debug=1 shows its log)",
                 rte_strerror(-rc), *cause ? ": \"" : "", cause, *cause ? "\"" : "",
                 huge ? "are enough hugepages free? urnic_huge=off needs none, except for PCI"
                      : "is urnic_mem larger than the memory of this machine?");
        return rc;
    }
    pthread_key_create(&thread_key, thread_gone);
    rmdir(rte_eal_get_runtime_dir()); /* nothing is kept there with these arguments */
    tame_logs(spec->debug);
    running = true;
    return 0;
}

bool dpdk_eal_runs(void)
{
    return running;
}

bool dpdk_eal_has_hugepages(void)
{
    return rte_eal_has_hugepages();
}

void dpdk_eal_register_thread(void)
{
    if (rte_lcore_id() != LCORE_ID_ANY)
        return;
    /* Without a free lcore id the thread works too, but slower. */
    if (rte_thread_register() == 0)
        pthread_setspecific(thread_key, &thread_key);
}
