/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A port's protocols besides RoCE: ARP, IPv6 neighbour discovery, echo, and the choice of the next
 * hop.
 *
 * No I/O and no clock: frames and time come in as arguments (ns, any monotonic origin).
 *
 *     net_rx(port, frame, len, now, reply, cap)   takes a frame that isn't RoCE; may write a reply
 *     while ((n = net_tx(port, buf, cap, now)))   the port's own frames
 *     net_deadline(port)                          next time-out, UINT64_MAX = none
 *     net_expire(port, now)                       runs due timers
 *     while (net_next_change(port, &c))           neighbours whose MAC or reachability changed
 *
 * After every other call there may be something for net_tx to send and for net_next_change to tell.
 *
 * Memory is bounded: addresses and neighbours live in tables of fixed size. Neighbours are created
 * for addresses that we ask for, and for hosts that ask for ours. The latter get at most a quarter
 * of the table, so a flood can't push out neighbours in use.
 *
 * A port is used by one thread at a time. Addresses are 16 octets, IPv4 mapped (struct wire_addr).
 */
#ifndef URNIC_NET_H
#define URNIC_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire.h"

#define NET_ADDRS_MAX     16u
#define NET_NEIGH_DEFAULT 1024u
#define NET_NEIGH_MAX     (1u << 20)
/* Octets of room that net_tx needs. A reply of net_rx takes this or the length of the frame that it
 * answers, whichever is more. */
#define NET_TX_MAX 128u

#define NET_NS_PER_MS     UINT64_C(1000000)
#define NET_RETRY_NS      (250u * NET_NS_PER_MS) /* first wait for an answer; doubles each time */
#define NET_TRIES         4u /* broadcast requests before a neighbour is FAILED */
#define NET_PROBES        3u /* unicast requests before the next broadcast */
#define NET_CLAIM_NS      (100u * NET_NS_PER_MS)   /* between these, while another MAC is claimed */
#define NET_REACHABLE_NS  (30000u * NET_NS_PER_MS) /* how long a confirmation is good */
#define NET_LOCK_NS       (1000u * NET_NS_PER_MS)  /* one ARP answer is good against others */
#define NET_FAILED_NS     (5000u * NET_NS_PER_MS)  /* FAILED: no new request before this */
#define NET_ANNOUNCE_NS   (2000u * NET_NS_PER_MS)  /* between the announcements of an address, */
#define NET_ANNOUNCEMENTS 2u                       /* number of announcements (RFC 5227) */
#define NET_DEFEND_NS     (10000u * NET_NS_PER_MS) /* one defence, if none had to be before it */
#define NET_GROUPS_MAX    64u
#define NET_GROUP_REPORTS 2u                      /* of each change */
#define NET_GROUP_NS      (1000u * NET_NS_PER_MS) /* between them */
/* Time for which to speak an older querier's version: twice the interval of queries, and the
 * response time of one (RFC 3376 section 8.12, RFC 3810 section 9.12, with their defaults). */
#define NET_OLD_QUERIER_NS (260000u * NET_NS_PER_MS)
#define NET_ECHO_RATE      1000u /* echo replies per second, and as many at once */

struct net_port;

struct net_config {
    uint8_t mac[6];
    uint16_t vlan;       /* VID 1..4094; 0 = untagged (WIRE-03, WIRE-04) */
    uint16_t mtu;        /* of IP; 0 = 1500. Longer echo requests are not answered */
    uint32_t neighbours; /* size of the table, <= NET_NEIGH_MAX; 0 = default */
    bool quiet;          /* another stack resolves neighbours: net_next_request, net_neigh_told */
};

/* A new port with the EUI-64 link-local address of its MAC (GID-03). NULL: no memory, or a bad
 * configuration (multicast or zero MAC, VID over 4094, MTU under 576, too many neighbours). */
struct net_port *net_port_new(const struct net_config *config, uint64_t now);
void net_port_free(struct net_port *port);

/* ---- addresses and routes ---- */

/* Can a host have this address in a prefix of that length, in the address's own family? Not a
 * group's, nor any, nor an IPv4 prefix's own or broadcast address. */
bool net_addr_possible(const struct wire_addr *addr, unsigned prefix_len);
/* Own an address from now on: answer for it, announce it, and take its prefix as on-link.
 * prefix_len counts in the address's own family: 0..32 or 0..128. 0, -EINVAL (not possible),
 * -EEXIST (had it; nothing changes), -ENOSPC. */
int net_addr_add(struct net_port *port, const struct wire_addr *addr, unsigned prefix_len,
                 uint64_t now);
/* Neighbours that only this address could reach are forgotten. 0 or -ENOENT. */
int net_addr_del(struct net_port *port, const struct wire_addr *addr);
/* Another stack on this interface has the address as well (or no more), and answers for it: it is
 * neither announced nor answered for here. 0 or -ENOENT. */
int net_addr_foreign(struct net_port *port, const struct wire_addr *addr, bool foreign);
/* Is it one of the port's addresses, foreign ones included? */
bool net_addr_has(const struct net_port *port, const struct wire_addr *addr);

/* Where packets go that are for no on-link prefix; one gateway per family. One that no prefix of
 * the port covers is taken to be on the link. -EINVAL: not unicast. */
int net_gateway_set(struct net_port *port, const struct wire_addr *gateway);

/* The neighbour that a packet for `dst` goes to: `dst` itself when a prefix covers it, else the
 * gateway. 0 or -ENETUNREACH. Multicast groups are their own next hop. */
int net_next_hop(const struct net_port *port, const struct wire_addr *dst, struct wire_addr *hop);
/* The default source address for `dst`: the own address with the longest prefix that covers the
 * next hop (WIRE-28). 0 or -ENETUNREACH. */
int net_source(const struct net_port *port, const struct wire_addr *dst, struct wire_addr *src);

/* Announce all addresses again: after the link came up. */
void net_announce(struct net_port *port, uint64_t now);

/* The interface has another MAC, or another MTU of IP, from now on (net_config); the former is
 * announced. The addresses stay, also the link-local one that was made of the first MAC. */
void net_mac_set(struct net_port *port, const uint8_t mac[6], uint64_t now);
void net_mtu_set(struct net_port *port, uint16_t mtu);

/* Another host that has one of our addresses. */
struct net_conflict {
    struct wire_addr addr;
    uint8_t mac[6]; /* the other host's, as its ARP or ND says */
    bool defended;  /* we announce the address once more (WIRE-34); else its owner has to */
};
/* The next unreported conflict; false = none. A conflict of the same address is reported again
 * after NET_DEFEND_NS without one. */
bool net_next_conflict(struct net_port *port, struct net_conflict *conflict);

/* ---- neighbours ---- */

/* The destination MAC for packets to `dst` (WIRE-07, WIRE-31).
 *  0             mac is filled in (of the group, of the next hop, or our own for our own address)
 *  -EINPROGRESS  asked for: call net_tx now; net_next_change tells the outcome
 *  -EHOSTUNREACH the neighbour doesn't answer; asked again at the earliest after NET_FAILED_NS
 *  -ENETUNREACH  no route
 *  -ENOBUFS      the table is full of watched neighbours */
int net_resolve(struct net_port *port, const struct wire_addr *dst, uint64_t now, uint8_t mac[6]);

/* Keep the neighbour that is the next hop `hop` (see net_next_hop) in the table and confirm it
 * regularly, as long as queue pairs send to it without asking. Another MAC that is claimed for it
 * meanwhile counts when the one known doesn't answer NET_PROBES requests (WIRE-35). Counted: as
 * many unwatches as watches. Same returns as net_resolve for this neighbour, except that a watch
 * that returns -ENETUNREACH or -ENOBUFS was not counted. */
int net_watch(struct net_port *port, const struct wire_addr *hop, uint64_t now);
void net_unwatch(struct net_port *port, const struct wire_addr *hop);

/* On a quiet port: the next neighbour that the other stack is to be asked for. False = none. */
bool net_next_request(struct net_port *port, struct wire_addr *addr);
/* The other stack's answer about a neighbour; mac NULL = it is silent. Does nothing for a neighbour
 * that was not asked for. */
void net_neigh_told(struct net_port *port, const struct wire_addr *addr, const uint8_t *mac,
                    uint64_t now);

enum net_state {
    NET_NONE,       /* not in the table */
    NET_INCOMPLETE, /* asked for, no MAC yet */
    NET_REACHABLE,
    NET_STALE, /* a MAC not confirmed lately; good to use, confirmed when used */
    NET_PROBE, /* being confirmed by unicast requests */
    NET_FAILED,
};
/* The state of a neighbour; the table doesn't change. */
enum net_state net_neigh_state(const struct net_port *port, const struct wire_addr *hop);

struct net_change {
    struct wire_addr addr;
    uint8_t mac[6];
    bool reachable; /* false: it failed (mac is the last one known, or 0) */
};
/* The next neighbour that got a MAC, another MAC, or failed since its last report. False = no more.
 * Several changes of a neighbour between two calls are reported once, with the latest state. */
bool net_next_change(struct net_port *port, struct net_change *change);

/* ---- multicast groups ---- */

/* Be a member from now on, and say so to switches and routers (UD-11). 0; -EINVAL: no group
 * address; -EEXIST: already a member; -ENOSPC. */
int net_group_join(struct net_port *port, const struct wire_addr *group, uint64_t now);
/* Leave the group, and announce it. 0; -ENOENT: not a member. */
int net_group_leave(struct net_port *port, const struct wire_addr *group, uint64_t now);
/* Leave the group silently: another port with our addresses is still a member. Harmless without
 * membership. */
void net_group_forget(struct net_port *port, const struct wire_addr *group);
/* The i-th group; false after the last. member false: its leave is being announced. */
bool net_group_get(const struct net_port *port, size_t i, struct wire_addr *group, bool *member);

/* ---- frames and time ---- */

/* Take a received frame that is not RoCE. Answers to ARP and NS requests and echoes are written to
 * `reply` (may not overlap `frame`); returns the reply's length, 0 = no reply. With cap <
 * NET_TX_MAX nothing is answered, and `reply` isn't touched. Foreign, damaged and foreign-VLAN
 * frames are counted and ignored. */
size_t net_rx(struct net_port *port, const uint8_t *frame, size_t len, uint64_t now, uint8_t *reply,
              size_t cap);
/* Write the next frame that the port wants to send; 0 = none. cap >= NET_TX_MAX. */
size_t net_tx(struct net_port *port, uint8_t *buf, size_t cap, uint64_t now);
/* The time of the next net_expire call. A call without a due timer only sets the next time. */
uint64_t net_deadline(const struct net_port *port);
/* Run every timer that is due by `now`. */
void net_expire(struct net_port *port, uint64_t now);

enum net_counter {
    NET_RX_ARP,
    NET_RX_ND,
    NET_RX_ECHO,
    NET_RX_BAD,   /* an ARP, ND or echo packet with a bad length, checksum or field */
    NET_RX_OTHER, /* nothing for us: other protocol, destination or EtherType */
    NET_RX_WRONG_VLAN,
    NET_TX_ARP,
    NET_TX_ND,
    NET_TX_ECHO,
    NET_RX_GROUP, /* IGMP and MLD */
    NET_TX_GROUP,
    NET_ECHO_LIMITED,  /* echo requests over NET_ECHO_RATE */
    NET_ADDR_CONFLICT, /* another host claims one of our addresses */
    NET_ADDR_DEFENDED, /* conflicts answered by an announcement */
    NET_NEIGH_CHANGED, /* a known neighbour has another MAC */
    NET_NEIGH_CLAIMED, /* another MAC was claimed for a neighbour in use: the one known is asked */
    NET_NEIGH_FAILED,
    NET_NEIGH_EVICTED, /* forgotten to make room */
    NET_RX_TOO_BIG,    /* ICMP says that a packet of ours was; nothing follows from it (WIRE-32) */
    NET_COUNTERS
};
/* A counter's value since the port was made. */
uint64_t net_counter(const struct net_port *port, enum net_counter c);
/* "net_rx_arp" ... for telemetry. */
const char *net_counter_name(enum net_counter c);

#endif
