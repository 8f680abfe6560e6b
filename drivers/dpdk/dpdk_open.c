/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Opens and closes a DPDK port, and handles the loss and return of its device; all that in the
 * network namespace of the opener.
 */
#include "dpdk_open.h"

#include "dpdk_device.h"
#include "dpdk_eal.h"
#include "dpdk_hint.h"
#include "dpdk_log.h"
#include "dpdk_pci.h"
#include "dpdk_port.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define AF_XDP_TRIES    20
#define AF_XDP_PAUSE_US 20000u
#define CLOSE_MS        3000 /* longest time for which closing waits for a busy driver */

/* DPDK is started, and devices are plugged in and out, by one thread at a time. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Enter the network namespace in which the port was opened. Returns a descriptor for the way back,
 * or -1 if this thread is there already. */
static int enter_ns(const struct dpdk_port *port)
{
    struct stat there, here;
    int fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && (port->ns_fd < 0 || fstat(port->ns_fd, &there) < 0 || fstat(fd, &here) < 0 ||
                    there.st_ino == here.st_ino || setns(port->ns_fd, CLONE_NEWNET) < 0)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static void leave_ns(int fd)
{
    if (fd >= 0) {
        setns(fd, CLONE_NEWNET);
        close(fd);
    }
}

/* Claim the owner's addresses on the current interface. The new claim is in place before the old
 * one ends. */
static void renew_claim(struct dpdk_port *port)
{
    int old = port->claim_fd;
    port->claim_fd = -1;
    if (port->spec.kind == DPDK_AF_PACKET && port->attached && port->n_claimed) {
        int fd = claim_make(port->nd.ifindex, port->claimed, port->n_claimed);
        if (fd >= 0)
            port->claim_fd = fd;
        else if (!port->claim_refused)
            dpdk_log(IO_LOG_INFO, "%s: the kernel's IP stack works on our packets, too: %s",
                     port->spec.name,
                     fd == -EPERM    ? "to end that, CAP_BPF is needed"
                     : fd == -EINVAL ? "to end that, Linux 6.6 is needed"
                                     : strerror(-fd));
        port->claim_refused = fd < 0;
    }
    if (old >= 0)
        close(old);
}

void dpdk_port_claim(struct io_port *io, const struct io_addr *addrs, unsigned n)
{
    struct dpdk_port *port = (struct dpdk_port *)io;
    int ns = enter_ns(port);
    port->n_claimed = n < CLAIM_ADDRS_MAX ? n : CLAIM_ADDRS_MAX;
    memcpy(port->claimed, addrs, port->n_claimed * sizeof(addrs[0]));
    renew_claim(port);
    leave_ns(ns);
}

uint32_t dpdk_port_iface_frame(const struct dpdk_port *port)
{
    uint32_t limit = dpdk_iface_frame_limit(port), frame = port->nd.mtu + ETH_HDR;
    if (port->wanted && port->wanted < limit)
        limit = port->wanted;
    if (port->spec.kind == DPDK_AF_PACKET && strstr(port->args, ",framesz="))
        limit = RTE_MIN(limit, port->frame_max); /* the user has set the size of the rings */
    return frame < limit ? frame : limit;
}

int dpdk_port_respec(struct dpdk_port *port, uint32_t frame_max, char *err, size_t err_size)
{
    return dpdk_spec_renew(&port->spec, port->args, port->nd.name, frame_max,
                           dpdk_hint_lockable(dpdk_hint_effective()), err, err_size);
}

/* Any thread. */
static int add_device(struct dpdk_port *port, uint32_t frame_max, char *err, size_t err_size)
{
    pthread_mutex_lock(&lock);
    int ns = enter_ns(port);
    dpdk_log_collect();
    int rc = dpdk_device_add(port, frame_max, err, err_size);
    dpdk_log_collected();
    leave_ns(ns);
    pthread_mutex_unlock(&lock);
    return rc;
}

/* The port's thread. */
static void begin_use(struct dpdk_port *port)
{
    port->next.rate_bps = port->io.caps.rate_bps; /* a first value, until the link reports another
                                                   * rate */
    port->next.ifindex = (uint32_t)port->nd.ifindex;
    port->io.caps = port->next;
    dpdk_port_set_attached(port, true);
    memcpy(port->seen_mac, port->nd.mac, 6);
    memcpy(port->told_name, port->nd.name, sizeof(port->told_name));
    int ns = enter_ns(port);
    renew_claim(port);
    leave_ns(ns);
}

static int attach_once(struct dpdk_port *port, uint32_t frame_max, char *err, size_t err_size)
{
    int rc = add_device(port, frame_max, err, err_size);
    if (rc == 0)
        begin_use(port);
    return rc;
}

int dpdk_port_attach(struct dpdk_port *port, uint32_t frame_max, char *err, size_t err_size)
{
    int rc = attach_once(port, frame_max, err, err_size);
    /* The kernel releases an XDP socket's queue a moment after the socket was closed, and DPDK
     * doesn't tell "busy" from other failures. Reopening a port must not fail for that. */
    for (int i = 0; rc && port->spec.kind == DPDK_AF_XDP && i < AF_XDP_TRIES; i++) {
        usleep(AF_XDP_PAUSE_US);
        rte_mempool_free(port->pool); /* the failed try kept some of its buffers */
        port->pool = NULL;
        rc = attach_once(port, frame_max, err, err_size);
    }
    return rc;
}

/* The start of another port's driver may never return. */
static bool lock_for_a_while(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += CLOSE_MS / 1000;
    return pthread_mutex_timedlock(&lock, &until) == 0;
}

void dpdk_port_detach(struct dpdk_port *port)
{
    dpdk_port_keep_losses(port);
    dpdk_port_drop_queued(port);
    dpdk_port_set_attached(port, false);
    int ns = enter_ns(port);
    renew_claim(port);
    if (!lock_for_a_while()) {
        leave_ns(ns);
        return;
    }
    dpdk_log_collect();
    dpdk_device_remove(port);
    dpdk_log_collected();
    leave_ns(ns);
    pthread_mutex_unlock(&lock);
}

/* ---- a NIC that is taken away ---- */

#define LOOK_NS   100000000ull   /* time between two looks for the NIC */
#define RETURN_NS 1000000000ull  /* time between two attempts to attach a returned NIC */
#define LATE_NS   30000000000ull /* time after which a return counts as late */

/* Drivers may need half a minute to stop a missing NIC, and for ever to start one that doesn't
 * answer. The port's own thread waits for neither. */
static void in_thread(struct dpdk_port *port, void *(*run)(void *port))
{
    pthread_t thread;
    sigset_t all, before;
    atomic_store_explicit(&port->busy, true, memory_order_relaxed);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&thread, NULL, run, port);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc == 0)
        pthread_detach(thread);
    else
        run(port);
}

static void *remove_gone(void *arg)
{
    struct dpdk_port *port = arg;
    pthread_mutex_lock(&lock);
    dpdk_log_collect();
    dpdk_device_remove(port);
    dpdk_log_collected();
    pthread_mutex_unlock(&lock);
    atomic_store_explicit(&port->busy, false, memory_order_release);
    return NULL;
}

/* Release the NIC: the kernel or hypervisor that waits for it continues when DPDK has closed it. */
static void let_go(struct dpdk_port *port)
{
    dpdk_port_drop_queued(port);
    dpdk_port_set_attached(port, false);
    port->gone = true;
    if (port->lock_fd >= 0)
        close(port->lock_fd);
    port->lock_fd = -1;
    dpdk_log(IO_LOG_WARN, "%s: the NIC is gone: taken away, or given to another driver",
             port->spec.name);
    in_thread(port, remove_gone);
}

/* The NIC is present again, with a driver that DPDK can use. */
static void *have_back(void *arg)
{
    struct dpdk_port *port = arg;
    struct dpdk_machine m;
    uint32_t frame = port->frame_max;
    dpdk_hint_machine(&m);
    m.running = true;
    int rc = dpdk_hint_check(&port->spec, &m, frame, port->why, sizeof(port->why));
    if (rc == 0)
        rc = dpdk_pci_lock(&port->spec, &m, &port->lock_fd, port->why, sizeof(port->why));
    if (rc == 0)
        rc = add_device(port, frame, port->why, sizeof(port->why));
    if (rc != 0) {
        if (port->lock_fd >= 0)
            close(port->lock_fd);
        port->lock_fd = -1;
        port->frame_max = frame;
    }
    port->returned = rc;
    atomic_store_explicit(&port->busy, false, memory_order_release);
    return NULL;
}

static void take_back(struct dpdk_port *port, uint64_t now)
{
    if (!dpdk_port_may_let_go(port))
        return;
    port->returning = true;
    port->late = now + LATE_NS;
    in_thread(port, have_back);
}

static void end_return(struct dpdk_port *port, uint64_t now)
{
    port->returning = false;
    if (port->returned == 0) {
        begin_use(port);
        port->gone = false;
        port->next_attach = 0;
        dpdk_log(IO_LOG_INFO, "%s: the NIC is back", port->spec.name);
        return;
    }
    if (!port->next_attach)
        dpdk_log(IO_LOG_ERROR, "%s", port->why);
    port->next_attach = now + RETURN_NS;
}

static void tell_late(struct dpdk_port *port, uint64_t now)
{
    if (!port->returning || !port->late || now < port->late)
        return;
    port->late = 0;
    dpdk_log(IO_LOG_WARN,
             "%s: the NIC is there again, and its driver has not come back within 30 s: the port "
             "stays down",
             port->spec.name);
}

void dpdk_port_follow_nic(struct dpdk_port *port, uint64_t now)
{
    struct dpdk_machine m = {.root = ""};
    bool leaving = atomic_load_explicit(&port->leaving, memory_order_acquire);
    if (port->attached && leaving) {
        dpdk_port_keep_losses(port); /* the device is ours until we release it to vfio */
        let_go(port);
        return;
    }
    if (atomic_load_explicit(&port->busy, memory_order_acquire)) {
        tell_late(port, now);
        return;
    }
    if (port->returning)
        end_return(port, now);
    if (now < port->next_look)
        return;
    port->next_look = now + LOOK_NS;
    bool there = dpdk_pci_is_there(&port->spec, &m);
    if (port->attached && !there)
        let_go(port);
    else if (!port->attached && port->gone && there && now >= port->next_attach)
        take_back(port, now);
}

/* Wait for the thread that has the device. False: it takes too long. */
static bool is_idle(const struct dpdk_port *port)
{
    for (unsigned ms = 0; ms < CLOSE_MS; ms += 10) {
        if (!atomic_load_explicit(&port->busy, memory_order_acquire))
            return true;
        usleep(10000);
    }
    return false;
}

void dpdk_port_close(struct io_port *io)
{
    struct dpdk_port *port = (struct dpdk_port *)io;
    if (!is_idle(port))
        return; /* the thread has the port, and the process ends */
    if (port->returning && port->returned == 0)
        begin_use(port);
    if (port->attached)
        dpdk_port_detach(port);
    if (port->device)
        return; /* DPDK is busy with another NIC, this one has our buffers, and the process ends */
    if (port->watched)
        netdev_close(&port->nd);
    if (port->ns_fd >= 0)
        close(port->ns_fd);
    if (port->lock_fd >= 0)
        close(port->lock_fd);
    rte_mempool_free(port->pool); /* with all its mbufs, lent or not */
    for (unsigned k = 1; k < port->queues; k++)
        free(port->queue[k]);
    free(port);
}

/* Checks for ports over a kernel interface, before DPDK is asked. */
static int prepare_iface(struct dpdk_port *port, uint32_t *frame_max, char *err, size_t size)
{
    const struct dpdk_spec *spec = &port->spec;
    struct statfs fs;
    int rc = netdev_open(&port->nd, spec->iface);
    if (rc)
        return dpdk_fail(
            err, size, rc,
            "dpdk:%s: no interface \"%s\" in this network namespace; `ip -br link` lists them",
            spec->name, spec->iface);
    port->watched = true;
    rc = netdev_is_ethernet(spec->iface);
    if (rc)
        return dpdk_fail(
            err, size, rc,
            "dpdk:%s: interface \"%s\" carries no Ethernet frames (a tun, a VPN or PPP "
            "has IP alone): RoCE needs an Ethernet interface",
            spec->name, spec->iface);
    if (!*frame_max)
        *frame_max = port->nd.mtu + ETH_HDR;
    *frame_max = dpdk_iface_frame_max(port, *frame_max < IO_FRAME_MAX ? *frame_max : IO_FRAME_MAX);
    rc = netdev_set_up(&port->nd);
    if (rc && !port->nd.up)
        dpdk_log(IO_LOG_WARN, "%s: interface %s is down: `ip link set %s up`", spec->name,
                 spec->iface, spec->iface);
    if (spec->kind == DPDK_AF_XDP &&
        (statfs("/sys/fs/bpf", &fs) < 0 || (unsigned long)fs.f_type != BPF_FS_MAGIC))
        dpdk_log(IO_LOG_INFO,
                 "af_xdp: no bpffs at /sys/fs/bpf, so this port shares %s with no other "
                 "XDP program (`mount -t bpf bpf /sys/fs/bpf`); complaints by libxdp "
                 "about it are harmless",
                 spec->iface);
    return 0;
}

static int open_port(struct dpdk_port *port, const char *args, const struct io_open_params *params,
                     char *err, size_t err_size)
{
    struct dpdk_spec *spec = &port->spec;
    struct dpdk_machine m;
    uint32_t frame_max = params ? params->frame_max : 0;
    int rc = dpdk_spec_parse(args, spec, err, err_size);
    if (rc)
        return rc;
    if (spec->queues > port->workers)
        return dpdk_fail(err, err_size, -EINVAL,
                         "dpdk:%s: %u queues take a device of as many workers (workers=%u): frames "
                         "in queues without one would be lost",
                         spec->name, spec->queues, dpdk_spec_workers(spec->queues));
    if (spec->kind == DPDK_PCI)
        spec->queues = port->workers; /* at most */
    spec->promisc |= params && params->promiscuous;
    if (spec->mtu)
        frame_max = spec->mtu + ETH_HDR;
    dpdk_hint_machine(&m);
    m.running = dpdk_eal_runs();
    rc = dpdk_hint_check(spec, &m, frame_max ? frame_max : RTE_ETHER_MTU + ETH_HDR, err, err_size);
    if (rc == 0)
        rc = dpdk_pci_lock(spec, &m, &port->lock_fd, err, err_size);
    if (rc)
        return rc;
    port->wanted = frame_max;
    snprintf(port->args, sizeof(port->args), "%s", args);
    if (spec->kind == DPDK_AF_PACKET || spec->kind == DPDK_AF_XDP) {
        rc = prepare_iface(port, &frame_max, err, err_size);
        if (rc)
            return rc;
    }
    if (!frame_max)
        frame_max = RTE_ETHER_MTU + ETH_HDR;
    rc = dpdk_spec_defaults(spec, frame_max, dpdk_hint_lockable(dpdk_hint_effective()), err,
                            err_size);
    if (rc)
        return rc;
    pthread_mutex_lock(&lock);
    dpdk_log_collect();
    rc = dpdk_eal_start(spec, &m, err, err_size);
    dpdk_log_collected();
    pthread_mutex_unlock(&lock);
    if (rc)
        return rc;
    if (spec->kind == DPDK_PCI && !dpdk_eal_has_hugepages() && spec->huge != DPDK_HUGE_OFF)
        return dpdk_fail(
            err, err_size, -ENOMEM,
            "dpdk:%s: DPDK was started without hugepages for an earlier port; name the PCI "
            "port first, or give the first one urnic_huge=on",
            spec->name);
    return dpdk_port_attach(port, frame_max, err, err_size);
}

const char io_dpdk_abi[] = IO_ABI;

int io_dpdk_open(const char *args, const struct io_open_params *params, struct io_port **out,
                 char *err, size_t err_size)
{
    char nowhere[8];
    struct dpdk_port *port = calloc(1, sizeof(*port));
    if (!err || !err_size) {
        err = nowhere;
        err_size = sizeof(nowhere);
    }
    if (!port)
        return dpdk_fail(err, err_size, -ENOMEM, "dpdk: no memory for a port");
    port->io.ops = &dpdk_port_ops;
    dpdk_queue_init(&port->first, port, 0);
    port->queue[0] = &port->first;
    port->queues = port->workers = 1;
    port->claim_fd = port->lock_fd = -1;
    port->ns_fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (params && params->log)
        dpdk_log_to(params->log);
    if (params) {
        memcpy(port->wanted_mac, params->mac, 6);
        port->vlan = params->vlan;
        if (params->queues > 1)
            port->workers = RTE_MIN(params->queues, DPDK_QUEUES);
    }
    int rc = open_port(port, args, params, err, err_size);
    if (rc) {
        dpdk_port_close(&port->io);
        return rc;
    }
    dpdk_port_refresh_link(port);
    port->link.changes = 0;
    *out = &port->io;
    return 0;
}
