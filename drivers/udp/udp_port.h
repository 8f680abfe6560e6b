/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The parts of an open udp port, and which file does what with them: udp_port.c opens it and
 * follows its interface, udp_socket.c has a socket for each address, udp_rx.c and udp_tx.c move
 * datagrams, udp_error.c reads what ICMP says, udp_group.c joins groups,
 * udp_queue.c has queues for several workers. One thread at a time.
 */
#ifndef URNIC_UDP_PORT_H
#define URNIC_UDP_PORT_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "dpdk_netdev.h"
#include "io.h"
#include "udp_addr.h"
#include "udp_frame.h"
#include "udp_habit.h"
#include "udp_probe.h"
#include "udp_spec.h"
#include "udp_train.h"

#define UDP_GROUPS   64u
#define UDP_SOCKETS  (UDP_ADDRS + UDP_GROUPS)
#define UDP_PEERS    256u /* remembered; a power of two */
#define UDP_TRAIN    64u  /* datagrams in one call at most, as the kernel has it */
#define UDP_DATAGRAM 65536u
#define UDP_STRIDE   9344u /* a frame of IO_FRAME_MAX behind UDP_HDR_MAX, in whole cache lines */
#define UDP_RX_BATCH 16u   /* messages in one call */
#define UDP_RX_SEGS  64u   /* slots for the datagrams of one call, but for what was not foreseen */
/* Room for a call of which each message turns out to be a train, while frames of others are lent.
 */
#define UDP_RX_SLOTS (UDP_RX_SEGS + UDP_RX_BATCH * (UDP_TRAIN + 8u))
#define UDP_TELL     240u
#define UDP_ICMP     32u /* what ICMP has said, until it is fetched */

struct udp_socket {
    struct io_addr addr; /* ours, or a group's */
    uint32_t scope;      /* of a link-local address: the interface */
    bool v4, group;
    int fd;             /* -1 = this place is free */
    uint32_t overflows; /* SO_RXQ_OVFL, as of the last datagram */
    uint32_t serial;    /* of the address, on queues behind the first (udp_queue.c) */
};

union udp_sockaddr {
    struct sockaddr sa;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* What is known of a peer that sends to one of our addresses. */
struct udp_peer {
    struct io_addr from, to;
    uint16_t sport;
    bool known;
    struct udp_habit habit;
    struct io_addr nat; /* the source that its last bad packet's iCRC was made for, perhaps */
    uint8_t nat_seen;   /* bad packets in a row that say the same */
    bool nat_told;
    struct udp_head head;
};

/* What recvmmsg is given for one message. */
struct udp_rx_msg {
    union udp_sockaddr from;
    _Alignas(16) uint8_t control[128];
};

struct udp_rx {
    uint8_t *slots;   /* UDP_RX_SLOTS of UDP_STRIDE octets, each datagram behind UDP_HDR_MAX */
    uint8_t *tails;   /* UDP_RX_BATCH of UDP_DATAGRAM octets: what was longer than foreseen */
    uint8_t *whole;   /* UDP_DATAGRAM octets: a train that was not foreseen, in one piece */
    unsigned next;    /* the first slot that is free */
    unsigned segment; /* octets of a datagram of the last train; 0 = no train is expected */
    unsigned lonely;  /* messages since then that were no train */
    /* received frames: [first, first + lent) are the caller's, those up to count wait */
    struct io_frame frame[UDP_RX_SLOTS];
    unsigned first, lent, count;
    unsigned hot;   /* the socket that had something last */
    unsigned turns; /* looks at it alone */
    bool woken;     /* by any of them: ask all, unless it has something */
    unsigned empty; /* looks at a socket that had nothing */
    /* the call: made for the slots from `made_next` on and trains of `made_segment` */
    bool made;
    unsigned made_next, made_segment, made_msgs;
    struct mmsghdr msg[UDP_RX_BATCH];
    struct udp_rx_msg more[UDP_RX_BATCH];
    struct iovec iov[UDP_RX_SEGS + 2 * UDP_RX_BATCH];
};

struct udp_tx {
    uint8_t *slots; /* IO_BURST_MAX of UDP_STRIDE octets */
    unsigned reserved;
    /* committed: [sent, count) have yet to go */
    unsigned sent, count;
    uint64_t
        retry_at; /* ns: when to try again, the kernel having had no room; UINT64_MAX = it had */
    unsigned refusals; /* in a row, of the same message */
    int train_error;   /* why the kernel refused the train that begins at `sent`; 0 = it did not */
    struct udp_out out[IO_BURST_MAX];
    uint8_t *at[IO_BURST_MAX];  /* the datagram */
    uint8_t ride[IO_BURST_MAX]; /* of the first one of a message: how many it has */
    /* What place i in a train changes in the iCRC of a datagram of delta_len octets; 0 = not known
     */
    uint32_t delta_len, delta[UDP_TRAIN];
};

struct udp_port {
    struct io_port io;
    struct udp_spec spec;
    uint32_t frame_max; /* asked for; 0 = none */
    bool lent;          /* its sockets are another port's, which made them for it */
    bool lo;            /* the interface is the loopback interface */
    struct netdev dev;
    int ifindex; /* of the interface whose addresses we have */
    struct udp_watch watch;
    int epfd;
    struct udp_socket sock[UDP_SOCKETS];
    unsigned nsock;    /* places in use, free ones among them */
    uint64_t retry_at; /* an address has no socket yet: try again then, ns; UINT64_MAX = all have */
    struct udp_peer *peers;
    struct udp_ids ids; /* that the kernel will choose */
    struct udp_trains trains;
    struct udp_rx rx;
    struct udp_tx tx;
    struct io_stats stats;
    struct udp_queues *queues; /* of all workers of the device; NULL = it has one */
    unsigned queue;            /* which of them this is */
    uint32_t queue_version;
    struct io_icmp icmp[UDP_ICMP]; /* a ring: what has not been fetched */
    unsigned first_icmp, nicmp;
    char why[96];        /* of the link */
    char tell[UDP_TELL]; /* a line for the log; "" = none */
    char told[UDP_TELL]; /* the last one of those that may repeat */
};

static inline struct udp_port *udp_port_of(struct io_port *io)
{
    return (struct udp_port *)(void *)io;
}

/* Another port on the same interface, as the first one was opened, without sockets. 0 and *out, or
 * -errno. */
int udp_port_again(const struct udp_port *first, struct udp_port **out);

/* Keep a line for the log; one that hasn't been fetched yet stays. */
void udp_say(struct udp_port *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
