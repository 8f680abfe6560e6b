/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The parts of an open udp port, and the files that work on them: udp_port.c opens it and follows
 * its interface, udp_socket.c has a socket for each address, udp_rx.c and udp_tx.c move datagrams,
 * udp_error.c reads ICMP errors, udp_group.c joins groups, udp_queue.c has queues for several
 * workers. One thread at a time.
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
#define UDP_PEERS    256u /* most remembered peers; a power of two */
#define UDP_TRAIN    64u  /* most datagrams in one call, the kernel's limit */
#define UDP_DATAGRAM 65536u
#define UDP_STRIDE   9344u /* UDP_HDR_MAX and a frame of IO_FRAME_MAX, in whole cache lines */
#define UDP_RX_BATCH 16u   /* messages in one call */
#define UDP_RX_SEGS  64u   /* slots for the expected datagrams of one call */
/* Room for a call with an unexpected train in each message, while frames of other calls are
 * lent. */
#define UDP_RX_SLOTS (UDP_RX_SEGS + UDP_RX_BATCH * (UDP_TRAIN + 8u))
#define UDP_TELL     240u
#define UDP_ICMP     32u /* most errors of ICMP that wait to be fetched */

struct udp_socket {
    struct io_addr addr; /* ours, or a group's */
    uint32_t scope;      /* the interface of a link-local address */
    bool v4, group;
    int fd;             /* -1 = this place is free */
    uint32_t overflows; /* SO_RXQ_OVFL, as of the last datagram */
    uint32_t serial;    /* serial number of the address, on all queues but the first
                         * (udp_queue.c) */
};

union udp_sockaddr {
    struct sockaddr sa;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* What the port has learned about a peer: a source address and port that send to one of our
 * addresses. */
struct udp_peer {
    struct io_addr from, to;
    uint16_t sport;
    bool known;
    struct udp_habit habit;
    struct io_addr nat; /* the source address that fits the iCRC of its last bad packet */
    uint8_t nat_seen;   /* bad packets in a row with the same such address */
    bool nat_told;
    struct udp_head head;
};

/* Buffers of one message for recvmmsg. */
struct udp_rx_msg {
    union udp_sockaddr from;
    _Alignas(16) uint8_t control[128];
};

struct udp_rx {
    uint8_t *slots;   /* UDP_RX_SLOTS of UDP_STRIDE octets, each datagram after UDP_HDR_MAX */
    uint8_t *tails;   /* UDP_RX_BATCH of UDP_DATAGRAM octets, for the rest of messages longer than
                       * expected */
    uint8_t *whole;   /* UDP_DATAGRAM octets: an unexpected train, in one piece */
    unsigned next;    /* first free slot */
    unsigned segment; /* octets of a datagram of the last train; 0 = no train is expected */
    unsigned lonely;  /* messages without a train since then */
    /* received frames: [first, first + lent) are the caller's, those up to count wait */
    struct io_frame frame[UDP_RX_SLOTS];
    unsigned first, lent, count;
    unsigned hot;   /* index of the socket that last had a datagram */
    unsigned turns; /* looks at it alone */
    bool woken;     /* a socket has woken the owner: ask all, unless the hot one has a datagram */
    unsigned empty; /* looks at a socket without a datagram */
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
    /* committed: [sent, count) are yet to be sent */
    unsigned sent, count;
    uint64_t retry_at; /* ns: next attempt after the kernel had no room; UINT64_MAX = it had room */
    unsigned refusals; /* refusals in a row of the same message */
    bool singles;      /* most datagrams of the last large burst left one by one */
    unsigned burst;    /* slots for those in the next one; 0 = their speed is not known */
    int train_error;   /* the kernel's error for the train that begins at `sent`; 0 = not refused */
    struct udp_out out[IO_BURST_MAX];
    uint8_t *at[IO_BURST_MAX];  /* the datagram */
    uint8_t ride[IO_BURST_MAX]; /* at the first datagram of a message: their number */
    /* The change of the iCRC of a datagram of delta_len octets at place i of a train; 0 = not
     * known */
    uint32_t delta_len, delta[UDP_TRAIN];
};

struct udp_port {
    struct io_port io;
    struct udp_spec spec;
    uint32_t frame_max; /* requested largest frame; 0 = none */
    bool lent;          /* the sockets were made by another port, for this one */
    bool lo;            /* the interface is the loopback interface */
    struct netdev dev;
    int ifindex; /* index of the interface */
    struct udp_watch watch;
    int epfd;
    struct udp_socket sock[UDP_SOCKETS];
    unsigned nsock;    /* used part of sock[], with free places in it */
    uint64_t retry_at; /* ns: next attempt for an address without a socket; UINT64_MAX = all have
                        * one */
    struct udp_peer *peers;
    struct udp_ids ids; /* the identifications that the kernel will choose */
    struct udp_trains trains;
    struct udp_rx rx;
    struct udp_tx tx;
    struct io_stats stats;
    struct udp_queues *queues; /* queues of all workers of the device; NULL = one worker */
    unsigned queue;            /* index of this queue */
    uint32_t queue_version;
    struct io_icmp icmp[UDP_ICMP]; /* ring of errors not yet fetched */
    unsigned first_icmp, nicmp;
    char why[96];        /* reason of the link's state */
    char tell[UDP_TELL]; /* a line for the log; "" = none */
    char told[UDP_TELL]; /* last of the lines that may repeat */
};

static inline struct udp_port *udp_port_of(struct io_port *io)
{
    return (struct udp_port *)(void *)io;
}

/* Open another port on the same interface, with the settings of the first one, without sockets. 0
 * and *out, or -errno. */
int udp_port_again(const struct udp_port *first, struct udp_port **out);

/* Keep a line for the log; one that hasn't been fetched yet stays. */
void udp_say(struct udp_port *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
