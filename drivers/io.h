/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Packet I/O through one small table of functions.
 *
 * A port moves whole Ethernet frames (without FCS) in bursts. Receiving lends frames to the caller
 * in place; sending reserves room first, so that the producer of a frame never has to take it back
 * for want of room.
 *
 *     n = io->ops->rx_peek(io, frames, max, now);     frames stay valid and in place ...
 *     ... use frames[0..n) ...
 *     io->ops->rx_release(io, n);                     ... until they are released, oldest first
 *
 *     n = io->ops->tx_reserve(io, slots, max, now);   n may be less than max, or 0: port full
 *     ... write slots[i].data, set slots[i].len ...
 *     io->ops->tx_commit(io, slots, n, now);          len 0 = this slot is given back unsent
 *
 * Threads: one thread at a time uses a port (its worker). Different ports are independent.
 * Time is an argument (ns, any monotonic origin); only mem, and pcap with paced=on, wait by it.
 */
#ifndef URNIC_DRIVERS_IO_H
#define URNIC_DRIVERS_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IO_BURST_MAX 64u   /* most frames that one rx_peek or tx_reserve is asked for */
#define IO_FRAME_MAX 9234u /* longest frame: 9216 octets of IP, Ethernet header, VLAN tag */
#define IO_SPEC_MAX  256u

/* The MAC address of all peers of a port that is the kernel's (io_caps.kernel_ip): not on any wire.
 */
#define IO_PEER_MAC                                                                                \
    {                                                                                              \
        0x02, 0x55, 0x44, 0x50, 0x00, 0x01                                                         \
    }

struct io_port;

/* A received frame, lent to the caller until rx_release. The caller may not write to it. */
struct io_frame {
    const uint8_t *data;
    uint32_t len;   /* at least 1 */
    uint32_t flags; /* IO_RX_* */
};

#define IO_RX_IP_CSUM_OK 0x1u /* the NIC has verified the IPv4 header checksum */
#define IO_RX_ICRC_OK    0x2u /* the driver has verified the iCRC */
#define IO_RX_KERNEL     0x4u /* kernel=: the kernel has a copy; not for the owner */

/* Room for one frame to send. `data` has at least `cap` writable octets; the caller sets `len`. */
struct io_slot {
    uint8_t *data;
    uint32_t cap;
    uint32_t len; /* tx_reserve sets 0; 0 at tx_commit = nothing to send */
    void *priv;   /* the driver's; the caller copies it unchanged */
};

/* The properties of a port, constant after open. Exceptions are those of a dpdk port, which follows
 * its interface: rate_bps changes when a link comes up, frame_max with the MTU, mac and ifindex
 * when another interface takes its place or its address changes, rx_fd when the interface goes
 * (-1), comes back, or gets new rings. */
struct io_caps {
    uint8_t mac[6];     /* the port's own address; all zero = the owner chooses one */
    uint32_t frame_max; /* largest frame sent and received, Ethernet header and VLAN tag included */
    uint64_t rate_bps;  /* line rate in bit/s; 0 = unknown */
    bool own_echo;      /* may deliver frames that we sent (af_packet): drop by source MAC */
    bool kernel_ip;     /* the kernel's IP stack carries the packets: it has the addresses
                         * (ops->addrs), resolves neighbours, routes, and answers ARP, ND and echo;
                         * frames have made-up MAC addresses, and no VLAN tag */
    bool loopback;      /* on the loopback interface: the addresses are 127/8 and ::1 */
    uint16_t udp_sport; /* the UDP source port of all sent packets; 0 = the sender's choice */
    uint32_t room;      /* most octets of packets that can wait for the owner; more are lost. Peers
                         * are assumed to have the same limit. 0 = unknown, or no limit that
                         * matters */
    uint32_t ifindex;   /* index of the kernel's interface under the port; 0 = none, or unknown */
    int rx_fd; /* poll()able: readable when rx_peek may return something; -1 = must be polled */
};

struct io_link {
    bool up;
    uint64_t changes; /* counts transitions, so that a quick down/up is not missed */
    const char *why;  /* the reason for a link that is down, in a few words; NULL = none known.
                       * Valid until the port is used again */
};

/* Cumulative since open. Every frame lost inside the driver is in exactly one of the *_drop. */
struct io_stats {
    uint64_t rx_frames, rx_bytes, tx_frames, tx_bytes;
    uint64_t rx_drop;     /* ring or memory exhausted, or refused by the driver */
    uint64_t rx_oversize; /* frames longer than frame_max */
    uint64_t rx_nat;      /* udp: frames delivered, though their iCRC is for another source address
                           * (NAT) */
    uint64_t tx_drop;     /* committed but lost in the driver (peer gone, NIC refused) */
    uint64_t tx_full;     /* tx_reserve calls that got less than they asked for */
    /* kernel=: frames to the kernel: delivered; lost because they came faster than it takes them;
     * lost because its interface was down. Frames of the kernel: sent; lost without a link, or too
     * long. The counters above include all of them. */
    uint64_t kernel_rx, kernel_drop_full, kernel_down, kernel_tx, kernel_tx_drop;
};

/* An IP address: IPv6, or IPv4 as ::ffff:a.b.c.d. */
struct io_addr {
    uint8_t b[16];
};

/* The network says (ICMP, which any host can forge) that packets to this address do not arrive. */
struct io_icmp {
    struct io_addr to;
    int error; /* ECONNREFUSED: port 4791 is closed; EHOSTUNREACH, ENETUNREACH; EMSGSIZE: too big */
};

/* A socket for a program (io_ops.lend). */
struct io_lent {
    struct io_addr addr;
    int fd;            /* a descriptor of its own, the caller's */
    const char *iface; /* the interface; valid while the port is */
    bool trains;       /* may it send several datagrams in one call? */
};

struct io_ops {
    const char *name; /* the word before ':' in a port specification */

    /* Ask the driver to make rx_fd readable at the next frame (true), or stop doing so (false: the
     * owner polls). After arming, the owner must rx_peek once more before it blocks. May be NULL
     * when caps.rx_fd is -1. */
    void (*rx_arm)(struct io_port *io, bool on);

    /* On a port without rx_fd, armed and found empty since: sleep until a frame comes, `nudge`, a
     * signal, or for `ns`. It may also return without a reason. NULL on other ports. */
    void (*wait)(struct io_port *io, uint64_t ns);
    /* End such a sleep. Any thread, also in a signal handler. The caller publishes its reason
     * before the call. NULL if `wait` is NULL. */
    void (*nudge)(struct io_port *io);

    /* Lend up to `max` (<= IO_BURST_MAX) received frames, oldest first. Another call before their
     * release lends the frames after them. Never blocks. Returns the number of frames. */
    unsigned (*rx_peek)(struct io_port *io, struct io_frame *frames, unsigned max, uint64_t now);

    /* Give back the `n` oldest lent frames. */
    void (*rx_release)(struct io_port *io, unsigned n);

    /* Reserve room for up to `max` (<= IO_BURST_MAX) frames. Returns how many slots were filled in;
     * 0 when the port is full or the link is down. Slots not committed in the next tx_commit, or
     * before the next tx_reserve, are returned to the port by it. */
    unsigned (*tx_reserve)(struct io_port *io, struct io_slot *slots, unsigned max, uint64_t now);

    /* Hand over the slots of the last tx_reserve in their order. n is what tx_reserve returned. A
     * slot with len > caps.frame_max is refused and counted in tx_drop. */
    void (*tx_commit)(struct io_port *io, const struct io_slot *slots, unsigned n, uint64_t now);

    /* Send waiting frames of senders other than the owner (kernel=: the kernel's), a bounded number
     * of them. Called before rx_peek, also when rx_fd has woken the owner, but not between
     * tx_reserve and tx_commit. Returns the number of frames sent. NULL: there are no other
     * senders. */
    unsigned (*carry)(struct io_port *io, uint64_t now);

    /* Earliest time at which rx_peek can return something that it can't now, or at which a
     * tx_reserve that got less than it asked for can get more; UINT64_MAX = not known (an external
     * event: rx_fd reports it, for room too). Only meaningful for ports with internal time (mem).
     * May be NULL. */
    uint64_t (*deadline)(struct io_port *io);

    /* Slow path, at most every few ms: reconnect, link state. Never blocks for long. May be NULL.
     */
    void (*service)(struct io_port *io, uint64_t now);

    /* RoCEv2 to these addresses, and to no others, is for the owner alone: a driver that shares its
     * interface with the kernel keeps the kernel's IP stack from working on it, as far as it can.
     * The addresses are copied. Slow. May be NULL. */
    void (*claim)(struct io_port *io, const struct io_addr *addrs, unsigned n);

    /* The addresses of a kernel_ip port as they are now, at most `max`. Returns how many. Cheap:
     * they change in `service` only. NULL on other ports, as are the next four. */
    unsigned (*addrs)(struct io_port *io, struct io_addr *out, unsigned max);

    /* The address from which the kernel sends to `dst`. 0; -ENETUNREACH, or the kernel's error.
     * Slow: system calls. */
    int (*source)(struct io_port *io, const struct io_addr *dst, struct io_addr *src);

    /* The network's next error; false = none. Cheap. */
    bool (*icmp)(struct io_port *io, struct io_icmp *out);

    /* The largest IP packet that the kernel knows to fit the way to dst, octets; 0 = not known.
     * Slow: system calls. */
    uint32_t (*path_room)(struct io_port *io, const struct io_addr *dst);

    /* Be a member of these groups and of no others. 0, or -errno of a group that could not be
     * joined. Slow. */
    int (*groups)(struct io_port *io, const struct io_addr *groups, unsigned n);

    /* A port of its own for member k (1 to n - 1) of the n workers that use this one from now on:
     * frames come to the member whose number stands in the first bits of a queue pair's number
     * (lib/core/base/qpn.h), as far as the driver can tell, and to this port or any member
     * otherwise. It is closed before this one. 0 and *out, NULL if there is none for this member;
     * or -errno. NULL: the port has one queue. */
    int (*queue)(struct io_port *io, unsigned k, unsigned n, struct io_port **out);

    /* On a kernel_ip port, on any of its queues: make a socket of its own for a program, at the
     * i-th of the port's addresses. RoCEv2 to queue pairs of this block (lib/core/base/qpn.h) comes
     * to it from now on, as far as the kernel can tell. 0 and *out; -ENOENT: there is no i-th;
     * -ENOSPC: too many programs have one; or the kernel's error. `unlend`: the socket receives
     * nothing more, whether the program has closed it or not. Slow. NULL on other ports. */
    int (*lend)(struct io_port *io, unsigned block, unsigned i, struct io_lent *out);
    void (*unlend)(struct io_port *io, unsigned block);

    /* The next line for the log, about the port; false = none. May be NULL. */
    bool (*news)(struct io_port *io, char *text, size_t size);

    /* The port that this one wraps, and owns until this one is closed. NULL: none. */
    struct io_port *(*below)(struct io_port *io);

    void (*link)(struct io_port *io, struct io_link *out);
    void (*stats)(struct io_port *io, struct io_stats *out);

    /* Stop, free everything, the port included. Lent frames and slots become invalid. */
    void (*close)(struct io_port *io);
};

/* A port: every driver embeds this as its first member. */
struct io_port {
    const struct io_ops *ops;
    struct io_caps caps;
    char spec[IO_SPEC_MAX];
};

/* A line for the log of the program that has the port; `text` is without a newline. From any
 * thread, also after the port is closed. */
enum io_log_level { IO_LOG_ERROR, IO_LOG_WARN, IO_LOG_INFO };
typedef void (*io_log_fn)(enum io_log_level level, const char *subsystem, const char *text);

/* The parameters of an opening, besides the specification string. */
struct io_open_params {
    uint32_t frame_max; /* wanted largest frame; 0 = driver's default. caps has the granted one */
    uint8_t mac[6];     /* wanted MAC; zero = driver's choice */
    uint64_t seed;      /* seed of drivers that draw random numbers (mem) */
    uint16_t vlan;      /* the owner's frames have this VLAN's tag; 0 = none */
    unsigned queues;    /* workers that will use the port (io_ops.queue); 0 or 1 = one */
    bool promiscuous;   /* frames for any address, where the driver filters by it */
    const struct io_addr *only; /* the only addresses that a kernel_ip port may use; copied */
    unsigned nonly;             /* 0 = no such limit */
    io_log_fn log;              /* destination of the lines of a driver with a log of its own
                                 * (dpdk), for all its ports from now on; NULL = as before, at first
                                 * stderr */
};

/* Open a port from its specification, for example
 *     dpdk:net_af_packet0,iface=v0    dpdk:0000:01:00.0    memif:/run/a.sock,role=server
 *     mem:LINK[,loss=0.01,...]        pcap:in.pcap,out.pcap           udp:eth0
 * Ports of frames (dpdk, memif, mem) also take kernel=INTERFACE (drivers/tap/tap.h).
 * `err` (may be NULL) receives a sentence that names the key, the wrong value and the remedy.
 * Returns 0 and *out, or -errno. -EINVAL: bad specification. -ENODEV: no such driver or device.
 * -ENOSYS: the driver is not part of this build. Else the system's error. */
int io_open(const char *spec, const struct io_open_params *params, struct io_port **out, char *err,
            size_t err_size);

/* Is this a specification that io_open() can understand? Opens nothing, needs no privileges and no
 * DPDK. Returns 0, or -EINVAL or -ENODEV (no such driver) with a sentence in `err`, as io_open().
 * Not a promise that the port can be opened. */
int io_check(const char *spec, char *err, size_t err_size);

/* Make a path in `spec` that the driver uses after the port is open (memif's socket) independent of
 * the working directory. `dir` is the folder it is relative to. Returns 0, or -ENAMETOOLONG and
 * leaves `spec` as it is. */
int io_absolute(char spec[IO_SPEC_MAX], const char *dir);

/* The file of the DPDK driver, a plugin, as the first dpdk: port would load it. Returns 0, or
 * -ENOENT: not found. */
int io_dpdk_plugin(char *path, size_t size);

/* One driver's opener; io.c holds the list. */
typedef int (*io_open_fn)(const char *args, const struct io_open_params *params,
                          struct io_port **out, char *err, size_t err_size);

/* A loaded driver has two symbols: its opener, and a string with the IO_ABI of the plugin's build.
 * The build makes IO_ABI of this file. A program refuses a plugin that was built with another io.h
 * before it calls anything in it. */
#define IO_PLUGIN_OPEN "io_dpdk_open"
#define IO_PLUGIN_ABI  "io_dpdk_abi"

#endif
