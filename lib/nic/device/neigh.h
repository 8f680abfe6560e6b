/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Neighbours of a device and their MACs. Wraps lib/net (ARP, ND, ICMP echo; sans-IO) for one
 * device, and adds waiting for an answer. On the device's worker.
 */
#ifndef NIC_NEIGH_H
#define NIC_NEIGH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "net.h"
#include "settings.h"
#include "wire.h"

struct device;
struct neigh;
struct neigh_hop;
struct share;
struct qp;

/* A queue pair that sends to a next hop. Embed it, all zero. */
struct neigh_watcher {
    struct neigh_hop *hop; /* NULL = it watches none */
    struct qp *qp;
    uint32_t change; /* last change of the hop's MAC that it has followed */
    TAILQ_ENTRY(neigh_watcher) next;
};

/* A waiter for a neighbour's MAC. Embed it; it is on a list until done is called, or
 * neigh_cancel. */
struct neigh_waiter {
    TAILQ_ENTRY(neigh_waiter) next;
    bool waits; /* it is on the list */
    struct wire_addr dst;
    struct share *share;   /* share of the user that it waits for; NULL = counted for no user */
    struct neigh_hop *hop; /* the hop counted for that share meanwhile; set by neigh_wait */
    uint64_t deadline;     /* ns; set by neigh_wait */
    /* status 0: mac is right. -ENETUNREACH, -EHOSTUNREACH, -ETIMEDOUT. The waiter is off the list
     * and may be freed. */
    void (*done)(struct neigh_waiter *w, int status, const uint8_t mac[6], uint64_t now);
};

/* For a device whose port is open. NULL with a sentence in err (CONFIG_ERR octets). */
struct neigh *neigh_create(struct device *d, char *err);
void neigh_destroy(struct neigh *n);

/* Answer for an address, and announce it; no error if it is known already. -ENOSPC, -EINVAL. */
int neigh_addr_add(struct neigh *n, const struct config_addr *a);
/* Stop answering for an address. */
void neigh_addr_del(struct neigh *n, const struct wire_addr *ip);
/* The link came up: known neighbours may have changed. */
void neigh_link_up(struct neigh *n, uint64_t now);
/* The device has a new MAC address (which is announced), or a new IP MTU. */
void neigh_mac(struct neigh *n, uint64_t now);
void neigh_mtu(struct neigh *n, uint32_t mtu);

/* A received frame that isn't RoCE. */
void neigh_rx(struct neigh *n, const uint8_t *frame, uint32_t len, uint64_t now);
/* May there be a frame to send? */
bool neigh_tx_ready(const struct neigh *n);
/* Write the next one to buf, `cap` octets. Returns its length, 0 = none. */
uint32_t neigh_tx(struct neigh *n, uint8_t *buf, uint32_t cap, uint64_t now);

/* On a port of the kernel's IP stack (io_caps.kernel_ip) the kernel resolves neighbours: none is
 * resolved or watched here, and nothing is sent. */

/* The largest path MTU (enum 1..5) that fits the device and the known part of the path to dst, 16
 * octets. Slow on a port of the kernel's IP stack. */
unsigned neigh_path_mtu(const struct neigh *n, const uint8_t dst[16]);
/* The local address to send to `dst` from if the program chose none (WIRE-28). 0, -ENETUNREACH. */
int neigh_source(const struct neigh *n, const struct wire_addr *dst, struct wire_addr *src);
/* The MAC to send to for `dst` (the gateway's, if there is one on the way). 0 and mac; -EAGAIN: it
 * is being resolved, try again; -ENETUNREACH, -EHOSTUNREACH; -EDQUOT: the user of this share (NULL:
 * no user) has too many neighbours to resolve another. Multicast and our own addresses always work.
 */
int neigh_lookup(struct neigh *n, struct share *s, const struct wire_addr *dst, uint8_t mac[6],
                 uint64_t now);
/* Call w->done when the MAC of w->dst is known or can't be resolved: perhaps before this returns.
 * 0, or -EDQUOT: too many neighbours of w->share, and w->done is not called. */
int neigh_wait(struct neigh *n, struct neigh_waiter *w, uint64_t timeout_ns, uint64_t now);
/* Cancel neigh_wait; harmless if it doesn't wait. */
void neigh_cancel(struct neigh *n, struct neigh_waiter *w);

/* Count the next hop of `dst` as one of this user's neighbours (SEC-22); a hop that the user holds
 * several times counts once. 0 and the hop, NULL if none is needed; -EDQUOT, -ENOMEM. Release each
 * hold once. */
int neigh_hold(struct neigh *n, struct share *s, const struct wire_addr *dst,
               struct neigh_hop **hop);
void neigh_let_go(struct neigh *n, struct share *s, struct neigh_hop *hop);
/* A queue pair sends to this hop, in place of the one that `w` watched. The watch takes over the
 * user's hold. The hop is kept resolved, and its MAC in the queue pair up to date (WIRE-07).
 * Unwatch is harmless if `w` watches none. */
void neigh_watch(struct neigh *n, struct share *s, struct neigh_watcher *w, struct qp *qp,
                 struct neigh_hop *hop, uint64_t now);
void neigh_unwatch(struct neigh *n, struct share *s, struct neigh_watcher *w);
/* A queue pair of a program's own engine sends to this hop: the hop is kept resolved, and another
 * MAC for it is not believed at once (WIRE-35). The hold stays the caller's. False: it can't be;
 * else call neigh_unattend once. */
bool neigh_attend(struct neigh *n, struct neigh_hop *hop, uint64_t now);
void neigh_unattend(struct neigh *n, struct neigh_hop *hop);

/* Is it a neighbour that has never been resolved? */
bool neigh_is_new(const struct neigh *n, const struct wire_addr *dst);

/* Membership in the groups that queue pairs of the engine, or of programs' own engines, are
 * attached to (UD-11): call when that has changed. -ENOSPC: the last one is one too many. */
int neigh_groups(struct neigh *n, uint64_t now);
/* Every few ms: read the kernel's news. */
void neigh_service(struct neigh *n, uint64_t now);
/* Run time-outs and waiters. Returns the number done. */
unsigned neigh_run(struct neigh *n, uint64_t now);
/* The time at which neigh_run has work, ns; UINT64_MAX = not known. */
uint64_t neigh_deadline(const struct neigh *n);

struct neigh_counter {
    const char *name;
    uint64_t value;
};
/* All counters, cumulative. */
void neigh_counters(const struct neigh *n, struct neigh_counter out[NET_COUNTERS]);

#endif
