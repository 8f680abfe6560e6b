/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The switch of a device: frames between its port, the engine of the daemon, and the channels of
 * engines in programs (drivers/channel). On a device of several workers each has its own, for the
 * programs whose contexts it has.
 *
 *     frames from the port or from the device itself
 *         switch_rx gives those of programs to their channels; the daemon's engine gets the rest
 *     frames from channels
 *         switch_tx checks each and puts it into a slot that the port has lent, or into another
 *         channel. Frames for the daemon's engine get a slot too, with the device's own MAC
 *
 * A frame to a program whose ring is full waits (switch_spill.h); above a limit it is lost and
 * counted (channel_drops). A frame from a program waits in its ring until the port has a slot.
 *
 * On the device's worker, all of it.
 */
#ifndef NIC_SWITCH_H
#define NIC_SWITCH_H

#include <stdbool.h>
#include <stdint.h>

#include "blocks.h"
#include "io.h"
#include "wire.h"

#define SWITCH_ADDRS  64u /* addresses of a device, at most */
#define SWITCH_GROUPS 256u

/* The switch's counters: name, and meaning. */
#define SWITCH_COUNTERS(X)                                                                         \
    X(channel_rx_frames)    /* given to channels */                                                \
    X(channel_tx_frames)    /* taken from channels and passed on */                                \
    X(channel_tx_bytes)     /* octets of channel_tx_frames */                                      \
    X(channel_inside)       /* frames from one channel to another */                               \
    X(channel_strays)       /* received by a program's own socket, for another owner */            \
    X(channel_group_copies) /* of datagrams to groups, for channels */                             \
    X(channel_news)         /* reports of programs about their queue pairs */                      \
    X(channel_waits)        /* for channels: waited because the ring was full */                   \
    X(channel_drops)        /* lost: the room for waiting frames was full, too */                  \
    X(channel_group_drops)  /* copies left out: too many in one round */                           \
    /* refused, from programs: */                                                                  \
    X(channel_bad_frame)  /* not RoCEv2, or lengths that don't agree */                            \
    X(channel_bad_source) /* an address that isn't the device's */                                 \
    X(channel_bad_vlan)   /* a VLAN tag that isn't the device's, or none */                        \
    X(channel_bad_dest)   /* a multicast MAC without its group, or the other way round */          \
    X(channel_bad_qpn)    /* to QP0 or QP1 */                                                      \
    X(channel_bad_srcqp)  /* a datagram from a queue pair that isn't the program's */              \
    X(channel_bad_qkey)   /* a datagram with a controlled Q_Key (KEY-08) */                        \
    X(channel_bad_peer)   /* a connection's packet, to no peer of its queue pair (SEC-35) */       \
    X(channel_cnp_drops)  /* CNPs to no peer of its queue pairs, above SHARE_CNPS of a user */     \
    X(channel_bad_index)  /* channels given up: a wrong index */

enum switch_counter {
#define X(name) SWITCH_C_##name,
    SWITCH_COUNTERS(X)
#undef X
        SWITCH_COUNTER_MAX
};
extern const char *const switch_counter_names[SWITCH_COUNTER_MAX];

struct io_icmp;
struct share;
struct switch_ask;
struct switch_channel;
struct switch_group;
struct switch_pool;
struct switch_told;

struct nic_switch {
    uint8_t mac[6];
    uint16_t vlan;  /* VID of its frames' tag; 0 = none */
    unsigned parse; /* WIRE_P_*, of frames from programs */
    unsigned naddr;
    struct wire_addr addr[SWITCH_ADDRS];
    struct blocks *blocks;                    /* the device's */
    unsigned worker;                          /* index in the device */
    struct switch_channel *owner[QPN_BLOCKS]; /* of this worker's blocks; NULL = none */

    struct switch_channel *channels; /* all */
    struct switch_channel *active;   /* a ring: the next one to look at */
    unsigned nactive, nasleep;
    int epfd;         /* readable: a sleeping channel has frames */
    uint64_t look_at; /* ns: look at epfd again */

    /* Is the daemon's engine a member of a group? NULL: of every one. */
    bool (*engine_in)(void *arg, const struct wire_addr *group);
    /* The MAC for this address; `share` is that of the program's user. 0 and mac; else it isn't
     * known. NULL: none is ever known. */
    int (*next_hop)(void *arg, struct share *share, const struct wire_addr *dst, uint8_t mac[6]);
    /* A queue pair of a program has got its first request. May be NULL. */
    void (*comm_est)(void *arg, uint32_t qpn);
    /* A program's socket has got an ICMP error. May be NULL. */
    void (*icmp)(void *arg, const struct io_icmp *icmp);
    void *engine_arg; /* of all these */
    /* Is there a capture? Then switch_tx notes the program's queue pair of each slot that it fills
     * (0 = unknown), and shows frames to other channels. */
    bool captured;
    uint32_t sent_by[IO_BURST_MAX];
    void (*inside)(void *arg, const uint8_t *frame, uint32_t len, uint32_t qpn);
    void *inside_arg;
    uint64_t rounds;
    uint64_t now;                    /* of switch_tx and switch_spill_run */
    struct switch_pool *pool;        /* waiting frames (switch_spill.h); NULL = none yet */
    struct switch_channel *spilling; /* channels with waiting frames */
    struct switch_channel *unwoken;  /* channels with frames for which switch_wake wakes */
    unsigned held_bursts;            /* bursts since switch_wake last woke */
    struct switch_group *groups;
    unsigned ngroups;
    unsigned copies; /* copies of group datagrams that this round may still make */

    struct switch_ask *asks; /* questions under way */
    uint32_t last_ask;
    bool asking_all;          /* all programs are being asked, for one request */
    struct switch_told *told; /* sums of programs' counters; NULL: none yet */
    unsigned nchannels, nsilent;

    uint64_t counters[SWITCH_COUNTER_MAX];
};

/* A switch without channels.
 *
 * blocks    the device's blocks of queue pair numbers; they have to live as long
 * worker    index of its worker in the device
 * mac       of the device
 * vlan      VID of the tag that its frames have, 0 = none
 * loopback  its addresses are loopback addresses (WIRE-29)
 *
 * NULL: out of memory or descriptors. */
struct nic_switch *switch_new(struct blocks *blocks, unsigned worker, const uint8_t mac[6],
                              uint16_t vlan, bool loopback);
/* Close all channels, too. NULL is fine. */
void switch_free(struct nic_switch *s);

/* The MAC has changed. */
void switch_set_mac(struct nic_switch *s, const uint8_t mac[6]);
/* Set the device's addresses, from which programs may send: at most SWITCH_ADDRS count. */
void switch_set_addrs(struct nic_switch *s, const struct wire_addr *addr, unsigned n);
bool switch_has_addr(const struct nic_switch *s, const struct wire_addr *addr);

/* The channel that has a queue pair's number; NULL: the number is free, another worker's, or one of
 * the daemon's engines. */
static inline struct switch_channel *switch_owner(const struct nic_switch *s, uint32_t qpn)
{
    unsigned block = qpn_block(qpn);
    return block < QPN_BLOCKS ? s->owner[block] : NULL;
}

/* A round begins, and may make SWITCH_COPIES copies of datagrams to groups. */
#define SWITCH_COPIES 64u
void switch_round(struct nic_switch *s);

#endif
