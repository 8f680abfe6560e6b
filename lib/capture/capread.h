/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading captures: pcap and pcapng of either byte order, one packet at a time, streaming.
 *
 * Every packet is returned as an Ethernet frame, the input of lib/wire, for all link types. A link
 * type without an Ethernet header gets one with zero addresses, or with the source address that the
 * capture knows. Memory does not grow with the file.
 *
 * Why not libpcap: it refuses a file whose interfaces differ in link type, hides interfaces,
 * directions and comments, and treats the end of a file that was cut short as an error without
 * reporting the good part. But captures of a crashed machine are of special interest.
 *
 * Threads: one at a time per reader.
 */
#ifndef URNIC_CAPREAD_H
#define URNIC_CAPREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture_format.h"

#define CAPREAD_FRAME_MAX   262144u /* the largest packet that capture tools write */
#define CAPREAD_COMMENT_MAX 256u

struct capread;

/* Carriers of RoCE packets, from which the reader takes them. */
enum capread_carrier {
    CAPREAD_PLAIN,
    CAPREAD_ERSPAN,
    CAPREAD_VXLAN,
    CAPREAD_GENEVE,
    CAPREAD_GRE,
    CAPREAD_IPIP,
    CAPREAD_MPLS,
    CAPREAD_PPPOE,
    CAPREAD_TAGS, /* more VLAN tags than a service tag and one */
    CAPREAD_CARRIERS
};
/* "ERSPAN", "several VLAN tags" ... */
const char *capread_carrier_name(enum capread_carrier c);

struct capread_packet {
    uint64_t number;      /* 1, 2, ... as Wireshark numbers them */
    uint64_t ns;          /* since the Unix epoch, from the file: may go backwards */
    const uint8_t *frame; /* an Ethernet frame; valid until the next call */
    uint32_t len;         /* octets at `frame` */
    /* Octets that the frame had. More than len: the capture, or a mirror that cuts packets, kept
     * only a part. */
    uint32_t wire_len;
    /* The number of the interface, 0, 1, ... over all sections of the file. An interface that the
     * section before had at the same place of its list with the same name keeps its number. If one
     * interface stands for many (tcpdump -i any) and packets name theirs, each of those gets a
     * further number; if packets don't, each VLAN tag gets one, since a packet appears with and
     * without its tag. Each carrier of packets gets one, too. */
    uint32_t interface;
    enum capture_dir dir; /* direction as seen by the capturing machine */
    bool no_ether;        /* the Ethernet header was made up by the reader */
    const char *comment;  /* first comment, or NULL; valid until the next call */
};

struct capread_info {
    const char *format;                 /* "pcap", "pcapng" */
    uint64_t packets;                   /* read so far, those of other link types included */
    uint64_t skipped;                   /* of these, packets of link types that can't carry RoCE */
    uint64_t infiniband;                /* of these, packets of InfiniBand */
    uint64_t cut;                       /* packets that the capture cut short */
    uint64_t wrapped[CAPREAD_CARRIERS]; /* RoCE packets inside a carrier */
    uint64_t drops;                     /* packets dropped according to the capture */
    uint64_t offset;                    /* octets of the file read so far */
    uint64_t size;                      /* octets of the file; 0 = not known (a pipe) */
    uint32_t interfaces;                /* seen so far */
    const char *damage; /* NULL, or why reading ended early: "cut short in packet 12" */
};

/* The source of a capture's octets. */
struct capread_source {
    /* Put the next octets, at most `len` and as many as are at hand, at `buf`. Returns their
     * number, 0 at the end, or -errno: then it isn't called again. */
    ssize_t (*read)(void *arg, void *buf, size_t len);
    void (*close)(void *arg); /* the reader needs it no more; NULL = nothing to do */
    void *arg;
    uint64_t size; /* octets of all; 0 = not known */
};

/* Begin to read a capture. Returns 0, or -errno with a sentence in `why` and the source closed:
 * -EINVAL: not a capture. */
int capread_open(const struct capread_source *source, struct capread **out, char *why,
                 size_t why_size);

/* The same from memory, which has to stay while the reader is used. */
int capread_open_mem(const void *data, size_t len, struct capread **out, char *why,
                     size_t why_size);

/* Read one packet. Returns 1; 0 at the end of the file, or at the place where it is cut short or
 * damaged (see info.damage; packets before it count); -errno if reading failed. */
int capread_next(struct capread *c, struct capread_packet *p);

/* Counts so far. */
void capread_info(const struct capread *c, struct capread_info *out);

/* Close the source and free everything; results of capread_next become invalid. */
void capread_close(struct capread *c);

#endif
