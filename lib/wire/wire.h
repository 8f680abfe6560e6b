/* SPDX-License-Identifier: BSD-3-Clause
 *
 * RoCEv2 packets: opcode table, header fields, strict parse, build, iCRC, one-line dump.
 *
 * Pure functions: no state, no allocation, no clock. Every function may be called from any thread.
 * Everything in these structs is in host order, except `imm`, which is an opaque 4-octet value
 * (HDR-10), and MAC and IP addresses, which are octets. To read or write single fields of a frame,
 * use wire_bytes.h.
 */
#ifndef URNIC_WIRE_H
#define URNIC_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crc.h"

#define WIRE_UDP_PORT        4791u
#define WIRE_IP_MF           1u /* of wire_pkt.ip_flags */
#define WIRE_IP_DF           2u
#define WIRE_ETHERTYPE_IPV4  0x0800u
#define WIRE_ETHERTYPE_ARP   0x0806u
#define WIRE_ETHERTYPE_VLAN  0x8100u
#define WIRE_ETHERTYPE_IPV6  0x86DDu
#define WIRE_ETHERTYPE_PAUSE 0x8808u /* MAC control (IEEE 802.3 annex 31B) */
#define WIRE_ETHERTYPE_SVLAN 0x88A8u /* an outer tag (802.1ad) */
#define WIRE_ETHERTYPE_V1    0x8915u
#define WIRE_PROTO_UDP       17u
#define WIRE_TTL_DEFAULT     64u /* of hop limits, too (WIRE-15) */
#define WIRE_PSN_MASK        0xFFFFFFu
#define WIRE_QPN_MASK        0xFFFFFFu
#define WIRE_QPN_GSI         1u
#define WIRE_QPN_MULTICAST   0xFFFFFFu
#define WIRE_QKEY_GSI        0x80010000u
#define WIRE_PKEY_DEFAULT    0xFFFFu
#define WIRE_ICRC_LEN        4u
#define WIRE_ETH_LEN         14u
#define WIRE_VLAN_LEN        4u
#define WIRE_IPV4_LEN        20u
#define WIRE_IPV6_LEN        40u
#define WIRE_UDP_LEN         8u
#define WIRE_BTH_LEN         12u
#define WIRE_EXT_MAX         32u          /* longest extension headers: XRCETH and AtomicETH */
#define WIRE_MTU_MAX         4096u        /* largest path MTU, octets */
#define WIRE_MSG_MAX         (1ull << 31) /* RSP-15, REQ-07 */
/* Largest run of octets up to the end of the BTH, and up to the payload. */
#define WIRE_BTH_END_MAX                                                                           \
    (WIRE_ETH_LEN + WIRE_VLAN_LEN + WIRE_IPV6_LEN + WIRE_UDP_LEN + WIRE_BTH_LEN)
#define WIRE_HDR_MAX (WIRE_BTH_END_MAX + WIRE_EXT_MAX)
/* Largest frame that can be built; its payload needs no pad. */
#define WIRE_FRAME_MAX (WIRE_HDR_MAX + WIRE_MTU_MAX + WIRE_ICRC_LEN)

/* ---- opcodes ---- */

/* The high 3 bits of an opcode. */
enum wire_service {
    WIRE_RC = 0,
    WIRE_UC = 1,
    WIRE_RD = 2,
    WIRE_UD = 3,
    WIRE_CNP_GROUP = 4,
    WIRE_XRC = 5,
};

/* The low 5 bits of an opcode. */
enum wire_op {
    WIRE_SEND_FIRST = 0x00,
    WIRE_SEND_MIDDLE = 0x01,
    WIRE_SEND_LAST = 0x02,
    WIRE_SEND_LAST_IMM = 0x03,
    WIRE_SEND_ONLY = 0x04,
    WIRE_SEND_ONLY_IMM = 0x05,
    WIRE_WRITE_FIRST = 0x06,
    WIRE_WRITE_MIDDLE = 0x07,
    WIRE_WRITE_LAST = 0x08,
    WIRE_WRITE_LAST_IMM = 0x09,
    WIRE_WRITE_ONLY = 0x0A,
    WIRE_WRITE_ONLY_IMM = 0x0B,
    WIRE_READ_REQUEST = 0x0C,
    WIRE_READ_RESP_FIRST = 0x0D,
    WIRE_READ_RESP_MIDDLE = 0x0E,
    WIRE_READ_RESP_LAST = 0x0F,
    WIRE_READ_RESP_ONLY = 0x10,
    WIRE_ACKNOWLEDGE = 0x11,
    WIRE_ATOMIC_ACK = 0x12,
    WIRE_CMP_SWAP = 0x13,
    WIRE_FETCH_ADD = 0x14,
    WIRE_SEND_LAST_INV = 0x16,
    WIRE_SEND_ONLY_INV = 0x17,
    WIRE_FLUSH = 0x1C,
    WIRE_ATOMIC_WRITE = 0x1D,
};
#define WIRE_OPCODE(service, op) ((uint8_t)(((service) << 5) | (op)))
#define WIRE_OPCODE_CNP          0x81u

/* Is it FLUSH or ATOMIC WRITE, which an empty READ response answers (A19)? Not for CNPs. */
static inline bool wire_is_placement(uint8_t opcode)
{
    uint8_t op = opcode & 0x1F;
    return op == WIRE_FLUSH || op == WIRE_ATOMIC_WRITE;
}

/* FETH: placement and selectivity; the rest is reserved. */
#define WIRE_FETH_GLOBAL     0x1u /* FLUSH: before the answer, all readers see the octets written */
#define WIRE_FETH_PERSISTENT 0x2u /* FLUSH: the octets survive a loss of power */
#define WIRE_FETH_PLACEMENT  0xFu
#define WIRE_FETH_REGION     0x10u /* the whole region, else the range of the RETH */
#define WIRE_FETH_SELECT     0x30u

/* The kind of an opcode, its place in its message, and the headers after the BTH. */
#define WIRE_F_REQUEST  0x0001u
#define WIRE_F_RESPONSE 0x0002u /* READ response, ACK, ATOMIC ack */
#define WIRE_F_SEND     0x0004u
#define WIRE_F_WRITE    0x0008u
#define WIRE_F_READ     0x0010u /* READ request or response */
#define WIRE_F_ATOMIC   0x0020u /* CMP_SWAP, FETCH_ADD or their ack */
#define WIRE_F_ACK      0x0040u /* opcode ACKNOWLEDGE (ACK, NAK, RNR NAK) */
#define WIRE_F_CNP      0x0080u
#define WIRE_F_FIRST    0x0100u
#define WIRE_F_MIDDLE   0x0200u
#define WIRE_F_LAST     0x0400u
#define WIRE_F_ONLY     0x0800u
#define WIRE_F_START    (WIRE_F_FIRST | WIRE_F_ONLY)
#define WIRE_F_END      (WIRE_F_LAST | WIRE_F_ONLY)
#define WIRE_F_PAYLOAD  0x1000u /* may carry payload; without it payload and pad must be empty */
#define WIRE_F_IMM      0x2000u
#define WIRE_F_INV      0x4000u
#define WIRE_F_RECV_WQE 0x8000u /* consumes a receive WQE: at SEND start, WRITE-with-imm end */

#define WIRE_H_RETH      0x01u
#define WIRE_H_AETH      0x02u
#define WIRE_H_ATOMICETH 0x04u
#define WIRE_H_ATOMICACK 0x08u
#define WIRE_H_IMMDT     0x10u
#define WIRE_H_IETH      0x20u
#define WIRE_H_DETH      0x40u
#define WIRE_H_XRCETH    0x80u
#define WIRE_H_FETH      0x100u

struct wire_opcode_info {
    const char *name; /* "RC_WRITE_FIRST"; NULL = reserved opcode (OPC-01) */
    uint16_t flags;   /* WIRE_F_* */
    uint16_t headers; /* WIRE_H_* */
    uint8_t service;  /* enum wire_service */
    uint8_t ext_len;  /* octets of extension headers after the BTH */
    /* Offsets from the BTH's first octet, 0 = not there. */
    uint8_t reth, aeth, atomiceth, atomicack, immdt, ieth, deth, xrceth, feth;
};

/* The table, 256 entries, indexed by opcode. The only place that knows opcodes. */
extern const struct wire_opcode_info wire_opcodes[256];

/* Selective repeat between two ends of ours (LR-02, LR-06): an RC opcode of SEND, WRITE or
 * ACKNOWLEDGE in the manufacturer's group, 0xC0 | operation. WRITEs have a RETH in every packet,
 * SENDs the number of their receive work request and their place in the message, the
 * acknowledgement the PSN that triggered it. Other devices drop them. Only wire_parse with
 * WIRE_P_SELECTIVE takes them; they come out as their RC opcode, with `selective` set. */
#define WIRE_SELECTIVE 0xC0u
extern const struct wire_opcode_info wire_selective[32]; /* by operation */

/* ---- AETH ---- */

#define WIRE_SYN_ACK        0x1Fu /* ACK, no credit limit (ACK-13) */
#define WIRE_SYN_RNR        0x20u /* | timer code (RNR-01) */
#define WIRE_SYN_NAK_SEQ    0x60u
#define WIRE_SYN_NAK_INV    0x61u
#define WIRE_SYN_NAK_ACCESS 0x62u
#define WIRE_SYN_NAK_OP     0x63u
#define WIRE_SYN_NAK_RD     0x64u

enum wire_aeth_kind { WIRE_AETH_ACK, WIRE_AETH_RNR, WIRE_AETH_NAK, WIRE_AETH_INVALID };
/* Class of a syndrome octet; WIRE_AETH_INVALID: reserved (ACK-01, ACK-02). */
enum wire_aeth_kind wire_aeth_kind(uint8_t syndrome);
/* RNR timer code 0..31 -> nanoseconds (RNR-04). */
uint64_t wire_rnr_ns(unsigned code);
/* Credit code 0..31 -> receives posted; UINT32_MAX for 31, "no limit" (ACK-12, ACK-13). */
uint32_t wire_credits(unsigned code);
/* The largest code for no more than `credits`, never 31 (ACK-12). */
unsigned wire_credit_code(uint32_t credits);

/* ---- a packet, in host order ---- */

/* An IP address; IPv4 as ::ffff:a.b.c.d, so that an address is a GID (GID-01). */
struct wire_addr {
    uint8_t b[16];
};

struct wire_pkt {
    /* Ethernet */
    uint8_t dmac[6], smac[6];
    uint16_t ethertype; /* of the IP header, or WIRE_ETHERTYPE_V1 */
    bool vlan;          /* an 802.1Q tag is there */
    uint16_t tci;       /* PCP(3) DEI(1) VID(12) */
    /* IP */
    uint8_t ip_version;  /* 4 or 6; a GRH is 6 */
    uint8_t tclass;      /* TOS or traffic class: DSCP(6) ECN(2) */
    uint8_t ttl;         /* or hop limit */
    uint16_t ip_id;      /* IPv4 only */
    uint8_t ip_flags;    /* IPv4: WIRE_IP_* */
    uint32_t flow_label; /* IPv6 only */
    struct wire_addr sip, dip;
    /* UDP */
    uint16_t sport, dport, udp_csum;
    /* BTH */
    uint8_t opcode;
    bool se, migreq, ackreq, fecn, becn;
    uint8_t pad, tver;
    uint16_t pkey;
    uint32_t dqpn, psn;
    /* extension headers; which are valid: wire_opcodes[opcode].headers */
    uint64_t va;                      /* RETH or AtomicETH */
    uint32_t rkey;                    /* RETH, AtomicETH or IETH */
    uint32_t dma_len;                 /* RETH */
    uint64_t swap_add, compare, orig; /* AtomicETH; AtomicAckETH */
    uint8_t syndrome;                 /* AETH */
    uint32_t msn;                     /* AETH */
    uint32_t imm;                     /* as on the wire, not swapped */
    uint32_t qkey, sqpn;              /* DETH */
    uint32_t xrc_srqn;                /* XRCETH */
    uint32_t feth;                    /* FETH */
    /* selective repeat */
    bool selective;
    uint32_t sel_recv;  /* SEND: number of the receive work request, 24 bits */
    uint32_t sel_index; /* SEND: packets of the message before this one */
    uint32_t sel_psn;   /* acknowledgement: the PSN that triggered it, 24 bits */
    /* where things are in the frame */
    uint16_t ip_off, udp_off, bth_off, payload_off;
    uint32_t payload_len; /* without pad */
    uint32_t icrc_off;
};

/* Why a frame was refused. Each has one counter name of the catalogue's appendix C. */
enum wire_verdict {
    WIRE_OK = 0,
    WIRE_NOT_ROCE,     /* rx_not_roce: other EtherType, protocol or UDP port: for the slow path */
    WIRE_TRUNCATED,    /* rx_truncated */
    WIRE_IP_OPTIONS,   /* rx_ip_options */
    WIRE_IP_FRAGMENT,  /* rx_ip_fragment */
    WIRE_BAD_IP_CSUM,  /* rx_bad_ip_csum */
    WIRE_BAD_ADDR,     /* rx_bad_addr */
    WIRE_BAD_UDP,      /* rx_bad_udp */
    WIRE_BAD_UDP_CSUM, /* rx_bad_udp_csum */
    WIRE_BAD_TVER,     /* rx_bad_tver */
    WIRE_BAD_OPCODE,   /* rx_bad_opcode */
    WIRE_BAD_LENGTH,   /* rx_bad_length */
    WIRE_BAD_ICRC,     /* rx_icrc_err */
    WIRE_BAD_QPN,      /* rx_bad_qpn: DestQP 0, or 0xFFFFFF without a multicast address */
    WIRE_BAD_AETH,     /* rx_bad_aeth: reserved syndrome (ACK-02), after the iCRC */
    WIRE_BAD_SRCQP,    /* rx_bad_srcqp */
    WIRE_VERDICTS
};
/* The counter's name, for example "rx_icrc_err"; "ok" for WIRE_OK. */
const char *wire_verdict_name(enum wire_verdict v);

#define WIRE_P_IP_CSUM_OK 0x01u /* the NIC has checked the IPv4 header checksum */
#define WIRE_P_NO_ICRC    0x02u /* don't check the iCRC */
#define WIRE_P_UDP_CSUM   0x04u /* verify a UDP checksum that isn't 0 (WIRE-24) */
#define WIRE_P_QINQ       0x08u /* accept 0x88A8 + 0x8100 (WIRE-05) */
#define WIRE_P_LOOPBACK   0x10u /* loopback source addresses are good here (WIRE-29) */
#define WIRE_P_SELECTIVE  0x20u /* take packets of selective repeat (LR-02) */
#define WIRE_P_V1         0x40u /* accept RoCE v1: EtherType 0x8915, a GRH instead of IP and UDP */

/* Strict parse of one frame: steps 1..5 of VAL-01 in their order, the checks of step 6 that need no
 * queue pair (QPN 0, multicast QPN), ACK-02 and UD-09. A datagram that is surely for another UDP
 * port is WIRE_NOT_ROCE, even if it has other faults. An IPv6 header with an IPv4-mapped address is
 * WIRE_BAD_ADDR: it would pass for an IPv4 GID (GID-02). Reads only frame[0..len). `out` is filled
 * as far as the parse went, and the rest is 0; on WIRE_OK it is complete. Rules: WIRE, HDR, OPC,
 * ICRC sections, N01..N19. */
enum wire_verdict wire_parse(const uint8_t *frame, size_t len, unsigned flags,
                             struct wire_pkt *out);

/* The same for a frame of `len` octets of which a capture kept the first `have`: reads only these.
 * The iCRC and the UDP checksum are checked only when all that they cover is there. When the
 * extension headers are cut off the verdict is WIRE_TRUNCATED with everything up to the BTH and
 * payload_len in place, and payload_off 0. */
enum wire_verdict wire_parse_cut(const uint8_t *frame, size_t have, size_t len, unsigned flags,
                                 struct wire_pkt *out);

/* The last good frame of a burst, for the next one of its flow. ip_version is 0 at first; the
 * caller reads no more than `same` and `next`. */
struct wire_flow {
    uint8_t head[80];   /* its octets up to the acknowledge request, or as many as are needed */
    uint32_t sum;       /* IPv4: sum of the words that may differ */
    uint8_t ip_version; /* 0: none is remembered */
    bool bare;          /* no headers after its BTH */
    bool same; /* the frame just parsed has the same MACs, addresses, tclass, ttl and so on */
    bool next; /* its lengths and BTH, too, but for acknowledge request and PSN */
    unsigned flags;
};

/* wire_parse, but faster for a frame whose headers before the BTH differ from those of the last
 * good frame at most in lengths, source port, IPv4 identification and checksum. Verdict and *out
 * are the same in any case. The caller leaves *out as the last call with this `flow` left it,
 * because common fields stay there. Rules: those of wire_parse. */
enum wire_verdict wire_parse_flow(const uint8_t *frame, size_t len, unsigned flags,
                                  struct wire_flow *flow, struct wire_pkt *out);

/* Build the headers of `p` (Ethernet .. extension headers) for a payload of p->payload_len octets,
 * with lengths and IPv4 checksum final. Three fields of `p` are ignored and computed: pad,
 * ethertype (by ip_version) and dport (4791). The other fields are sent as they are, except those
 * that the opcode lacks. Fills p's offsets. Returns the octets written (the payload's offset), or 0
 * if `cap` can't hold the whole frame, the opcode is reserved or the lengths don't fit an IP
 * packet. The caller copies the payload in, then calls wire_icrc_seal; or wire_icrc_gather does
 * both. */
size_t wire_build(uint8_t *buf, size_t cap, struct wire_pkt *p);

/* Octets of the whole frame that wire_build would make. */
size_t wire_frame_len(const struct wire_pkt *p);

/* Zero the pad octets and write the iCRC of a complete frame whose payload is in place:
 * frame[0..len) ends with room for the iCRC. ip_off and bth_off as wire_build filled them in.
 * Payload is read once. ICRC-01..07. */
void wire_icrc_seal(uint8_t *frame, size_t len, uint16_t ip_off, uint16_t bth_off);

/* The same for a frame without its payload: copy the pieces in, one after the other from
 * payload_off on, and compute the CRC of the copy in one pass. They don't overlap the frame, and
 * fill it up to the pad (wire_build returned payload_off). Another program may write to them
 * meanwhile: the iCRC is that of the sent octets. */
void wire_icrc_gather(uint8_t *frame, size_t len, uint16_t ip_off, uint16_t bth_off,
                      uint16_t payload_off, const struct crc_piece *pieces, unsigned npieces);

/* The iCRC value (host order; stored little-endian, ICRC-06) of frame[ip_off .. len-4). The frame
 * must reach to the end of the BTH at least. */
uint32_t wire_icrc(const uint8_t *frame, size_t len, uint16_t ip_off, uint16_t bth_off);

/* Streaming form, for payload in several pieces (ICRC-12): start over the headers (`ip` = first
 * octet of the IP header or GRH, hdr_len = up to the payload, bth = up to the BTH), update over
 * payload and pad. The running value is the finished iCRC of the octets so far: store it
 * little-endian. */
uint32_t wire_icrc_headers(const uint8_t *ip, size_t hdr_len, size_t bth);
/* The running value after `len` more octets. */
uint32_t wire_icrc_update(uint32_t crc, const void *data, size_t len);

/* ---- the fast way to send: a template per queue pair ---- */

/* The invariant first octets of every frame of one queue pair: Ethernet, VLAN, IP, UDP, BTH. */
struct wire_tmpl {
    uint8_t hdr[WIRE_BTH_END_MAX];
    uint8_t len; /* octets up to the end of the BTH */
    uint8_t ip_off;
    uint8_t bth_off;
    uint8_t ip_version;
};

/* Make a template from the address fields of `p` (MACs, VLAN, ip_version, addresses, flow label,
 * TTL, sport, P_Key, dqpn, migreq). TTL 0 becomes WIRE_TTL_DEFAULT; DF is set (WIRE-10), the
 * destination port is 4791 and the UDP checksum 0. Opcode, PSN, tclass, IP id, lengths, ackreq, se,
 * pad and extension headers are patched later. */
void wire_tmpl_init(struct wire_tmpl *t, const struct wire_pkt *p);
/* Change the destination MAC (WIRE-07), or the source's (WIRE-36). */
void wire_tmpl_set_dmac(struct wire_tmpl *t, const uint8_t dmac[6]);
void wire_tmpl_set_smac(struct wire_tmpl *t, const uint8_t smac[6]);

/* The fields that differ from packet to packet. */
struct wire_var {
    uint8_t opcode;
    bool se, ackreq;
    uint8_t tclass; /* sent unchanged, so that the caller can set ECN per packet */
    uint8_t syndrome;
    uint16_t ip_id;
    uint32_t psn;
    uint32_t msn;
    uint64_t va;
    uint32_t rkey, dma_len, imm;
    uint64_t swap_add, compare, orig;
    uint32_t qkey, sqpn;
    uint32_t xrc_srqn;
    uint32_t feth;
    uint32_t payload_len;
    bool selective; /* with the private opcode of selective repeat (LR-06) */
    uint32_t sel_recv, sel_index, sel_psn;
};

/* Write headers for one frame at `buf` (>= WIRE_HDR_MAX octets of room): template, patched fields,
 * extension headers. Returns the payload's offset; *frame_len becomes the whole frame's length (pad
 * and iCRC included). The opcode must not be a reserved one, nor the CNP's, which wire_build makes.
 * Copy the payload in, then call wire_icrc_seal, which also zeroes the pad. */
size_t wire_tmpl_emit(uint8_t *buf, const struct wire_tmpl *t, const struct wire_var *v,
                      uint32_t *frame_len);

/* For packets that differ in nothing but PSN, acknowledge request and IP id, as in the middle of a
 * message: a template `run` that holds all the rest of `v` as well. The opcode has no extension
 * headers. *frame_len as wire_tmpl_emit says. */
void wire_tmpl_run(struct wire_tmpl *run, const struct wire_tmpl *t, const struct wire_var *v,
                   uint32_t *frame_len);
/* Write the headers of one packet of a run at `buf`, as wire_tmpl_emit does. The payload's offset
 * is run->len. */
void wire_tmpl_next(uint8_t *buf, const struct wire_tmpl *run, uint32_t psn, bool ackreq,
                    uint16_t ip_id);

/* ---- helpers ---- */

/* Signed circular distance a - b of two PSNs or MSNs: -2^23 .. 2^23-1. Positive = a is later
 * (PSN-02). */
static inline int32_t wire_psn_diff(uint32_t a, uint32_t b)
{
    return (int32_t)((a - b) << 8) >> 8;
}

/* UDP source port from a flow label, or from the QPNs when it is 0 (WIRE-20). */
uint16_t wire_udp_sport(uint32_t flow_label, uint32_t lqpn, uint32_t rqpn);
/* Is this GID an IPv4-mapped address? */
bool wire_addr_is_v4(const struct wire_addr *a);
/* 224.0.0.0/4 or ff00::/8? */
bool wire_addr_is_multicast(const struct wire_addr *a);
/* The IPv4 address `host_order` (0x0A000001 = 10.0.0.1). */
struct wire_addr wire_addr_v4(uint32_t host_order);
/* Text form ("10.0.0.1", "fe80::1"), for messages; cut off if `size` is too small. Returns buf. */
const char *wire_addr_str(const struct wire_addr *a, char *buf, size_t size);
/* Parse "10.0.0.1" or "fe80::1". Returns 0 or -EINVAL. */
int wire_addr_parse(const char *s, struct wire_addr *out);
/* Do packet key and table key match (KEY-03)? */
bool wire_pkey_match(uint16_t packet, uint16_t table);
/* Multicast MAC of a group address (WIRE-31). */
void wire_mcast_mac(const struct wire_addr *group, uint8_t mac[6]);
/* Octets of a path MTU of verbs (1..5 = 256..4096), and back. 0 = not a valid one. */
uint32_t wire_mtu_octets(unsigned mtu_enum);
unsigned wire_mtu_enum(uint32_t octets);
/* The largest path MTU (1..5) whose packets fit an IP MTU of so many octets; 0 = none (WIRE-26). */
unsigned wire_mtu_for_ip(uint32_t ip_mtu);

#define WIRE_D_KEYS      0x1u /* keys, too (SEC-30) */
#define WIRE_D_ETHER     0x2u /* MAC addresses and VLAN, too */
#define WIRE_D_SELECTIVE 0x4u /* packets of selective repeat are good ones (LR-02) */
/* One line of text for a frame, for logs, traces and tests, without newline. Never prints payload
 * or private data. For a frame that isn't good RoCE, it has the reason. Returns the length that the
 * whole line has (as snprintf). */
int wire_dump(char *buf, size_t size, const uint8_t *frame, size_t len, unsigned flags);
/* The same for a frame of `len` octets of which a capture kept the first `have`. */
int wire_dump_cut(char *buf, size_t size, const uint8_t *frame, size_t have, size_t len,
                  unsigned flags);

#endif
