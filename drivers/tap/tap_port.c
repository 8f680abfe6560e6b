/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A port around another one. Received frames pass in place; frames that are not for the device have
 * a flag. The kernel's are copied into a bounded queue on the way; if that is full they are lost
 * and counted. The kernel's own frames leave before the device's turn to send, a bounded number in
 * each round, so neither keeps the other from the wire.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "io_arg.h"
#include "tap.h"
#include "tap_mover.h"
#include "tap_sort.h"

#define CARRY_MAX 32u    /* kernel's frames that leave in one round */
#define RETRY_NS  20000u /* time between looks for room in the port below */
#define ETH_HDR   14u    /* octets of an Ethernet header: the NIC's MTU counts no VLAN tag */
#define TAG_LEN   4u     /* octets of a VLAN tag, for which a requested frame size has room */
#define MTU_MIN   68u
#define MTU_MAX   (IO_FRAME_MAX - 18u) /* room for a whole frame of the kernel with a VLAN tag */

static const uint8_t mac_none[6];

struct tap_port {
    struct io_port io;
    struct io_ops ops; /* functions, with the name of the port below, which users know */
    struct io_port *below;
    struct tap_mover mover;
    struct tap_filter filter;
    uint8_t mac[6]; /* requested; zero = that of the port below, or of the interface */
    uint32_t asked; /* largest frame requested; 0 = the port below decides */
    int epoll;      /* epoll set by which the port below and the mover wake the worker */
    int below_fd;   /* descriptor of the port below, in that set; -1 = none */
    bool waits;     /* frames of the kernel's wait for room in the port below */
    uint64_t last_now;
    uint64_t kernel_tx, kernel_drop_full, kernel_tx_drop;
};

static struct tap_port *tap_of(struct io_port *io)
{
    return (struct tap_port *)io;
}

/* ---- the port below ---- */

static void watch_below(struct tap_port *t)
{
    int fd = t->below->caps.rx_fd;
    struct epoll_event ev = {.events = EPOLLIN};
    if (t->below_fd >= 0 && fd != t->below_fd)
        epoll_ctl(t->epoll, EPOLL_CTL_DEL, t->below_fd, NULL); /* if it isn't closed */
    /* A closed descriptor has left the set, and another may have its number: try each time. */
    if (fd >= 0)
        epoll_ctl(t->epoll, EPOLL_CTL_ADD, fd, &ev);
    t->below_fd = fd;
}

static void follow_below(struct tap_port *t)
{
    uint8_t own[6];
    memcpy(own, t->io.caps.mac, 6);
    t->io.caps = t->below->caps;
    if (memcmp(t->io.caps.mac, mac_none, 6) == 0)
        memcpy(t->io.caps.mac, own, 6); /* the owner takes the interface's: both have the same */
    t->io.caps.rx_fd = t->epoll;
    t->io.caps.ifindex = atomic_load_explicit(&t->mover.ifindex, memory_order_relaxed);
    watch_below(t);
}

static struct tap_want wanted(const struct tap_port *t, bool serves, bool up)
{
    uint32_t frame = t->below->caps.frame_max;
    struct tap_want w = {.serves = serves, .up = up};
    if (t->asked > TAG_LEN && t->asked - TAG_LEN < frame)
        frame = t->asked - TAG_LEN;
    w.mtu = frame > ETH_HDR + MTU_MIN ? frame - ETH_HDR : MTU_MIN;
    w.mtu = w.mtu < MTU_MAX ? w.mtu : MTU_MAX;
    bool asked = memcmp(t->mac, mac_none, 6) != 0;
    memcpy(w.mac, asked ? t->mac : t->io.caps.mac, 6);
    return w;
}

/* ---- frames in ---- */

static void for_kernel(struct tap_port *t, const struct io_frame *f)
{
    uint8_t *room = tap_ring_room(t->mover.to_kernel);
    if (!room) {
        t->kernel_drop_full++;
        return;
    }
    memcpy(room, f->data, f->len);
    tap_ring_put(t->mover.to_kernel, f->len);
}

static bool is_echo(const struct tap_port *t, const struct io_frame *f)
{
    return t->io.caps.own_echo && f->len >= 12 && memcmp(f->data + 6, t->io.caps.mac, 6) == 0;
}

static unsigned tap_rx_peek(struct io_port *io, struct io_frame *frames, unsigned max, uint64_t now)
{
    struct tap_port *t = tap_of(io);
    unsigned n = t->below->ops->rx_peek(t->below, frames, max, now);
    bool any = false;
    t->last_now = now;
    for (unsigned i = 0; i < n; i++) {
        struct io_frame *f = &frames[i];
        enum tap_owner owner = tap_sort(&t->filter, f->data, f->len);
        if (owner == TAP_DEVICE || is_echo(t, f))
            continue;
        if (owner == TAP_KERNEL)
            f->flags |= IO_RX_KERNEL;
        if (f->len <= IO_FRAME_MAX)
            for_kernel(t, f);
        any = true;
    }
    if (any)
        tap_mover_put(&t->mover);
    return n;
}

static void tap_rx_release(struct io_port *io, unsigned n)
{
    struct tap_port *t = tap_of(io);
    t->below->ops->rx_release(t->below, n);
}

static void tap_rx_arm(struct io_port *io, bool on)
{
    struct tap_port *t = tap_of(io);
    if (t->below->ops->rx_arm && t->below->caps.rx_fd >= 0)
        t->below->ops->rx_arm(t->below, on);
    tap_mover_arm(&t->mover, on);
}

/* ---- frames out ---- */

static unsigned tap_tx_reserve(struct io_port *io, struct io_slot *slots, unsigned max,
                               uint64_t now)
{
    struct tap_port *t = tap_of(io);
    return t->below->ops->tx_reserve(t->below, slots, max, now);
}

static void tap_tx_commit(struct io_port *io, const struct io_slot *slots, unsigned n, uint64_t now)
{
    struct tap_port *t = tap_of(io);
    t->below->ops->tx_commit(t->below, slots, n, now);
}

static unsigned waiting(const struct tap_port *t)
{
    uint32_t len;
    unsigned n = 0;
    while (n < CARRY_MAX && tap_ring_look(t->mover.to_wire, n, &len))
        n++;
    return n;
}

static unsigned tap_carry(struct io_port *io, uint64_t now)
{
    struct tap_port *t = tap_of(io);
    struct io_slot slots[CARRY_MAX];
    struct io_link link;
    unsigned want = waiting(t), n = 0;
    t->last_now = now;
    t->waits = false;
    if (want == 0)
        return 0;
    n = t->below->ops->tx_reserve(t->below, slots, want, now);
    for (unsigned i = 0; i < n; i++) {
        uint32_t len = 0;
        const uint8_t *frame = tap_ring_look(t->mover.to_wire, i, &len);
        bool fits = len <= slots[i].cap && len <= t->below->caps.frame_max;
        if (fits)
            memcpy(slots[i].data, frame, len);
        slots[i].len = fits ? len : 0;
        t->kernel_tx += fits;
        t->kernel_tx_drop += !fits;
    }
    if (n > 0)
        t->below->ops->tx_commit(t->below, slots, n, now);
    t->below->ops->link(t->below, &link);
    if (n == 0 && !link.up) {
        t->kernel_tx_drop += want; /* as on any interface without a cable */
        n = want;
    }
    t->waits = n == 0;
    tap_ring_take(t->mover.to_wire, n);
    tap_mover_took(&t->mover);
    return n;
}

static uint64_t tap_deadline(struct io_port *io)
{
    const struct tap_port *t = tap_of(io);
    uint64_t at = t->below->ops->deadline ? t->below->ops->deadline(t->below) : UINT64_MAX;
    uint64_t retry = t->waits ? t->last_now + RETRY_NS : UINT64_MAX;
    return retry < at ? retry : at;
}

/* ---- the rest ---- */

static void tap_service(struct io_port *io, uint64_t now)
{
    struct tap_port *t = tap_of(io);
    struct io_link link;
    if (t->below->ops->service)
        t->below->ops->service(t->below, now);
    follow_below(t);
    t->below->ops->link(t->below, &link);
    struct tap_want w = wanted(t, true, link.up);
    tap_mover_want(&t->mover, &w);
}

static void tap_claim(struct io_port *io, const struct io_addr *addrs, unsigned n)
{
    struct tap_port *t = tap_of(io);
    t->filter.naddr = n < TAP_ADDRS_MAX ? n : TAP_ADDRS_MAX;
    memcpy(t->filter.addr, addrs, t->filter.naddr * sizeof(addrs[0]));
    if (t->below->ops->claim)
        t->below->ops->claim(t->below, addrs, n);
}

static bool tap_news(struct io_port *io, char *text, size_t size)
{
    static const char *const says[TAP_NEWS] = {
        [TAP_GONE] = "the kernel's interface was removed: it is made again",
        [TAP_BACK] = "the kernel's interface is there again: give it its addresses",
        [TAP_NO_MTU] = "the kernel's interface keeps another MTU than the port: to set it takes "
                       "CAP_NET_ADMIN",
        [TAP_NO_MAC] = "the kernel's interface keeps another MAC address than the port: frames for "
                       "it do not arrive",
    };
    struct tap_port *t = tap_of(io);
    for (unsigned i = 0; i < TAP_NEWS; i++) {
        uint32_t bit = 1u << i;
        if (!says[i] || !(atomic_load_explicit(&t->mover.news, memory_order_relaxed) & bit))
            continue;
        atomic_fetch_and_explicit(&t->mover.news, ~bit, memory_order_relaxed);
        snprintf(text, size, "%s: %s", t->mover.dev.name, says[i]);
        return true;
    }
    return t->below->ops->news && t->below->ops->news(t->below, text, size);
}

static void tap_link(struct io_port *io, struct io_link *out)
{
    struct tap_port *t = tap_of(io);
    t->below->ops->link(t->below, out);
}

static void tap_stats(struct io_port *io, struct io_stats *out)
{
    struct tap_port *t = tap_of(io);
    t->below->ops->stats(t->below, out);
    out->kernel_rx = atomic_load_explicit(&t->mover.kernel_rx, memory_order_relaxed);
    out->kernel_down = atomic_load_explicit(&t->mover.kernel_down, memory_order_relaxed);
    out->kernel_tx = t->kernel_tx;
    out->kernel_drop_full = t->kernel_drop_full;
    out->kernel_tx_drop = t->kernel_tx_drop;
}

static struct io_port *tap_below(struct io_port *io)
{
    return tap_of(io)->below;
}

/* All but the port below. */
static void tap_free(struct tap_port *t)
{
    tap_mover_stop(&t->mover);
    if (t->epoll >= 0)
        close(t->epoll);
    free(t);
}

static void tap_close(struct io_port *io)
{
    struct io_port *below = tap_of(io)->below;
    tap_free(tap_of(io));
    below->ops->close(below);
}

static const struct io_ops tap_port_ops = {
    .rx_arm = tap_rx_arm,
    .rx_peek = tap_rx_peek,
    .rx_release = tap_rx_release,
    .tx_reserve = tap_tx_reserve,
    .tx_commit = tap_tx_commit,
    .carry = tap_carry,
    .deadline = tap_deadline,
    .service = tap_service,
    .claim = tap_claim,
    .news = tap_news,
    .link = tap_link,
    .stats = tap_stats,
    .below = tap_below,
    .close = tap_close,
};

static int start(struct tap_port *t, const struct tap_dev *dev)
{
    struct io_link link;
    struct epoll_event ev = {.events = EPOLLIN};
    tap_dev_get_mac(dev, t->io.caps.mac);
    atomic_init(&t->mover.ifindex, dev->ifindex);
    follow_below(t);
    t->below->ops->link(t->below, &link);
    struct tap_want w = wanted(t, false, link.up);
    int rc = tap_mover_start(&t->mover, dev, &w);
    if (rc == 0 && epoll_ctl(t->epoll, EPOLL_CTL_ADD, t->mover.wake, &ev) < 0)
        rc = -errno;
    return rc;
}

int tap_open(const char *name, struct io_port *below, const struct io_open_params *params,
             struct io_port **out, char *err, size_t err_size)
{
    struct tap_dev dev;
    int rc = tap_dev_open(&dev, name, err, err_size);
    struct tap_port *t = rc < 0 ? NULL : calloc(1, sizeof(*t));
    int epoll = t ? epoll_create1(EPOLL_CLOEXEC) : -1;
    if (rc < 0)
        return rc;
    if (epoll < 0) {
        rc = t ? -errno : -ENOMEM;
        tap_dev_close(&dev);
        free(t);
        return io_fail(err, err_size, rc, "kernel=%s: %s", name, strerror(-rc));
    }
    t->ops = tap_port_ops;
    t->ops.name = below->ops->name;
    t->io.ops = &t->ops;
    t->below = below;
    t->epoll = epoll;
    t->below_fd = -1;
    t->filter.vlan = params->vlan;
    t->asked = params->frame_max;
    memcpy(t->mac, params->mac, 6);
    rc = start(t, &dev);
    if (rc < 0) {
        tap_free(t);
        return io_fail(err, err_size, rc, "kernel=%s: %s", name, strerror(-rc));
    }
    *out = &t->io;
    return 0;
}
