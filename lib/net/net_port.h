/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Private to lib/net: declarations shared by its files.
 */
#ifndef URNIC_NET_PORT_H
#define URNIC_NET_PORT_H

#include <sys/queue.h>

#include "net.h"
#include "wire_bytes.h"
#include "wire_csum.h"

#define NET_NEVER       UINT64_MAX
#define NET_PROTO_ICMP  1u
#define NET_PROTO_IGMP  2u
#define NET_PROTO_ICMP6 58u
#define NET_IPV4_DF     0x4000u /* of the octets 6 and 7 of an IPv4 header */

/* An own address. */
struct net_own {
    struct wire_addr addr;
    unsigned prefix;        /* in bits of 128: an IPv4 prefix counts from 96 */
    unsigned announcements; /* still to make */
    bool announce_now;
    bool foreign;          /* another stack answers for it */
    bool defend_now;       /* announce it once, besides the announcements */
    bool conflict;         /* report the claim on it */
    uint8_t rival[6];      /* MAC of its last claimant */
    uint64_t contested;    /* a claim before this time is not a new one */
    uint64_t announce_due; /* of the next one, unless announce_now */
};

/* A multicast group that we are in, or are leaving. */
struct net_group {
    struct wire_addr addr;
    bool leaving, send; /* send: one of the two below is due */
    unsigned reports;   /* of its change, still to send */
    uint64_t due;       /* the next of them */
    uint64_t answer;    /* to a query; NET_NEVER = none is owed */
};

struct neigh {
    struct wire_addr addr;
    uint8_t mac[6];
    enum net_state state;
    bool asked;    /* by us; else it only asked for us */
    bool wants_tx; /* a request is to be sent: on the tx list */
    bool changed;  /* on the change list */
    bool claimed;  /* to be at `claim`, which counts if `mac` is silent (WIRE-35) */
    uint8_t claim[6];
    uint32_t watchers;
    unsigned tries;         /* requests so far in this state */
    uint64_t due;           /* of the state's timer */
    uint64_t locked;        /* until when ARP doesn't give it another MAC, unless it announces it */
    struct neigh *next;     /* of the hash chain */
    TAILQ_ENTRY(neigh) use; /* free, learned or asked list; least recently used first */
    TAILQ_ENTRY(neigh) tx;
    TAILQ_ENTRY(neigh) change;
};
TAILQ_HEAD(neigh_list, neigh);

struct net_port {
    struct net_config config;
    uint64_t counters[NET_COUNTERS];
    struct net_own own[NET_ADDRS_MAX];
    size_t own_count;
    struct net_group group[NET_GROUPS_MAX];
    size_t group_count;
    uint64_t old_querier[2];     /* IPv4, IPv6: until when queries of an older version count */
    struct wire_addr gateway[2]; /* IPv4, IPv6 */
    bool has_gateway[2];
    uint64_t echo_paid; /* until when the echo replies so far are paid for, at NET_ECHO_RATE */

    struct neigh *table; /* config.neighbours entries */
    struct neigh **hash; /* hash_mask + 1 chains */
    uint32_t hash_mask;
    uint32_t learned_count;
    uint64_t neigh_due; /* no timer of a neighbour runs out before this */
    struct neigh_list free, learned, asked, tx, change;
};

/* A received frame, taken apart by net_rx. */
struct net_in {
    const uint8_t *smac;
    const uint8_t *l3;
    size_t len; /* of l3, Ethernet padding included */
    bool to_us; /* destination MAC is ours, not a group */
};

/* Is `addr` ours to answer for? */
bool net_answers(const struct net_port *p, const struct wire_addr *addr);
/* The host at `mac` claims our address `addr`. */
void net_contested(struct net_port *p, const struct wire_addr *addr, const uint8_t mac[6],
                   uint64_t now);
/* The own address with the longest prefix that covers `addr`; NULL = not on-link. */
const struct net_own *net_covering(const struct net_port *p, const struct wire_addr *addr);
/* The own address from which to ask for the neighbour `addr`: the one with a prefix that covers it.
 * For a gateway outside all prefixes, the first of its family. NULL = not on-link. */
const struct net_own *net_reaching(const struct net_port *p, const struct wire_addr *addr);
/* The first own address of a family that is, or isn't, link-local; NULL = none. */
const struct net_own *net_first_own(const struct net_port *p, bool v4, bool local);
/* fe80::/10? */
bool net_is_link_local(const struct wire_addr *a);
/* Can a host have this address? */
bool net_is_unicast(const struct wire_addr *a);

/* Ethernet header with the port's VLAN tag; returns its length. */
size_t net_put_ether(const struct net_port *p, uint8_t *buf, const uint8_t dmac[6], uint16_t type);
/* Zero octets up to the least length of an Ethernet frame (WIRE-33, SEC-11); returns the length. */
size_t net_pad(uint8_t *buf, size_t len);

/* net_neigh.c */
/* Make the table. 0 or -ENOMEM; net_port_free frees what there is either way. */
int neigh_table_init(struct net_port *p);
/* NULL = not in the table. */
struct neigh *neigh_find(const struct net_port *p, const struct wire_addr *addr);
/* `addr` at `mac` asked for us. */
void neigh_learn(struct net_port *p, const struct wire_addr *addr, const uint8_t mac[6]);
/* A message says that `addr` is at `mac`. `solicited`: it answers us. `override`: it may replace
 * another MAC. Does nothing for an unknown `addr`. */
void neigh_heard(struct net_port *p, const struct wire_addr *addr, const uint8_t mac[6],
                 bool solicited, bool override, uint64_t now);
/* Is this the MAC that we have of `addr`? */
bool neigh_is_at(const struct net_port *p, const struct wire_addr *addr, const uint8_t mac[6]);
/* Did another answer lately place `addr` at another MAC than `mac`? Then the answer with `mac`
 * doesn't count: of several answers the first one counts (WIRE-07). */
bool neigh_locked(const struct net_port *p, const struct wire_addr *addr, const uint8_t mac[6],
                  uint64_t now);
/* Forget those that no prefix covers any more. */
void neigh_flush_unreachable(struct net_port *p);
/* Run the timers of neighbours that are due. */
void neigh_expire(struct net_port *p, uint64_t now);

/* net_arp.c and net_nd.c. Each returns the length of a frame that is to be sent, 0 = none; its
 * buffer has room for NET_TX_MAX octets. */

/* ARP, or a neighbour solicitation or advertisement, has come: learn from it (WIRE-07), and answer
 * a request for one of our addresses. */
size_t arp_rx(struct net_port *p, const struct net_in *in, uint64_t now, uint8_t *reply);
size_t nd_rx(struct net_port *p, const struct net_in *in, size_t icmp_len, uint64_t now,
             uint8_t *reply);
/* Ask for the MAC of `target` from our address `src`: the host at `dmac`, or (NULL) all hosts. */
size_t arp_request(const struct net_port *p, uint8_t *buf, const struct wire_addr *src,
                   const struct wire_addr *target, const uint8_t *dmac);
size_t nd_solicit(const struct net_port *p, uint8_t *buf, const struct wire_addr *src,
                  const struct wire_addr *target, const uint8_t *dmac);
/* Unsolicited: announce `addr` to all hosts. */
size_t nd_advertise(const struct net_port *p, uint8_t *buf, const struct wire_addr *addr);

/* net_icmp.c: an IPv4 or IPv6 packet that isn't RoCE. Each returns the length of a reply, 0 = none.
 */
size_t icmp_rx_v4(struct net_port *p, const struct net_in *in, uint64_t now, uint8_t *reply,
                  size_t cap);
size_t icmp_rx_v6(struct net_port *p, const struct net_in *in, uint64_t now, uint8_t *reply,
                  size_t cap);
/* Sum of the IPv6 pseudo header for `len` octets of ICMPv6 (RFC 8200 section 8.1). */
uint16_t icmp6_pseudo_sum(const uint8_t *ip, size_t len);
/* IPv6 header and ICMPv6 checksum for `len` octets of ICMPv6 after the header. */
void icmp6_finish(uint8_t *ip, const struct wire_addr *src, const struct wire_addr *dst,
                  uint8_t hop_limit, size_t len);

/* net_group.c */
/* An IPv4 packet of IGMP, or an IPv6 packet with a hop-by-hop header: perhaps a query. group_tx
 * answers it later. */
void igmp_rx(struct net_port *p, const struct net_in *in, uint64_t now);
void mld_rx(struct net_port *p, const struct net_in *in, uint64_t now);
/* The next report, NET_TX_MAX octets at most; its length, 0 = none. */
size_t group_tx(struct net_port *p, uint8_t *buf, uint64_t now);
/* When group_expire has something to do; NET_NEVER = no timer runs. */
uint64_t group_deadline(const struct net_port *p);
/* Reports that are due by `now` are for group_tx. */
void group_expire(struct net_port *p, uint64_t now);
/* Report all again: after the link came up. */
void group_announce(struct net_port *p, uint64_t now);

#endif
