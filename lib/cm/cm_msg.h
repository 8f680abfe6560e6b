/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Communication management datagrams: 256-octet MADs of class 0x07 to and from host-order structs.
 *
 * Layouts are a table of bit fields (doc/conformance.md section 21.2); packer and unpacker read it.
 * Pure functions, any thread. Rules: GSI-02..04, CM-01, CM-02, CM-33.
 */
#ifndef URNIC_CM_MSG_H
#define URNIC_CM_MSG_H

#include <stddef.h>
#include <stdint.h>

#include "wire.h"

/* QPN of no connection. A DREQ with it asks whether the peer has lost the connection (CM-21). */
#define CM_CHALLENGE_QPN     0u
#define CM_MAD_LEN           256u
#define CM_CLASS             0x07u
#define CM_CLASS_VERSION     2u
#define CM_METHOD_SEND       0x03u
#define CM_PRIVATE_MAX       224u /* largest private data field of any message */
#define CM_ARI_LEN           72u
#define CM_IP_HDR_LEN        36u /* CM-02: before the consumer's data in REQ and SIDR_REQ */
#define CM_REQ_USER_MAX      (92u - CM_IP_HDR_LEN)
#define CM_REP_USER_MAX      196u
#define CM_REJ_USER_MAX      148u
#define CM_SIDR_REQ_USER_MAX (216u - CM_IP_HDR_LEN)
#define CM_SIDR_REP_USER_MAX 136u
#define CM_RETRY_MAX         7u /* largest value of either retry count: 3 bits */

enum cm_attr {
    CM_REQ = 0x10,
    CM_MRA = 0x11,
    CM_REJ = 0x12,
    CM_REP = 0x13,
    CM_RTU = 0x14,
    CM_DREQ = 0x15,
    CM_DREP = 0x16,
    CM_SIDR_REQ = 0x17,
    CM_SIDR_REP = 0x18,
    CM_LAP = 0x19,
    CM_APR = 0x1A,
};

/* The transport services of a REQ that we support (CM-29). With 3 the REQ's field of extended types
 * names the service; the only one is XRC (CM-38). */
enum cm_transport { CM_TRANSPORT_RC = 0, CM_TRANSPORT_UC = 1, CM_TRANSPORT_XRC = 3 };
#define CM_EXT_TRANSPORT_XRC 1u

/* Status of a SIDR_REP: the values that we send or distinguish (CM-31). */
enum cm_sidr_status { CM_SIDR_VALID, CM_SIDR_UNSUPPORTED, CM_SIDR_REJECTED };

/* The "message rejected" of REJ and "message MRAed" of MRA. */
enum cm_about { CM_ABOUT_REQ, CM_ABOUT_REP };

/* Why a message was rejected: the reasons that we send or distinguish (CM-29). */
enum cm_rej_reason {
    CM_REJ_NO_QP = 1,
    CM_REJ_NO_EEC = 2,
    CM_REJ_NO_RESOURCES = 3,
    CM_REJ_TIMEOUT = 4,
    CM_REJ_UNSUPPORTED = 5,
    CM_REJ_INVALID_COMM_ID = 6,
    CM_REJ_INVALID_SERVICE_ID = 8,
    CM_REJ_INVALID_TRANSPORT = 9,
    CM_REJ_STALE_CONN = 10,
    CM_REJ_NO_RDC = 11,
    CM_REJ_INVALID_GID = 12,
    CM_REJ_INVALID_MTU = 26,
    CM_REJ_INSUFFICIENT_RESP = 27,
    CM_REJ_CONSUMER = 28,
    CM_REJ_DUPLICATE_COMM_ID = 30,
    CM_REJ_CLASS_VERSION = 31,
    CM_REJ_VENDOR_OPTION = 35,
    CM_REJ_LAST = CM_REJ_VENDOR_OPTION,
};

/* The fields of all messages, except unused ones (most of an alternate path, RDC, SAP): these are
 * sent as 0 and not read. Fields that an attribute lacks are 0. */
struct cm_msg {
    uint16_t attr; /* enum cm_attr */
    uint64_t tid;
    uint32_t attr_mod;
    uint32_t local_id, remote_id; /* the sender's and the receiver's communication id */
    uint64_t service_id, ca_guid;
    uint32_t qkey, qpn, eecn, remote_qpn;
    uint32_t resp_res, init_depth; /* responder resources, initiator depth */
    uint32_t remote_timeout, local_timeout, max_retries;
    uint32_t transport; /* enum cm_transport */
    uint32_t ext_transport, flow_control, srq;
    uint32_t psn, retry_count, rnr_retry, pkey, mtu;
    uint32_t local_lid, remote_lid;
    struct wire_addr local_gid, remote_gid;
    uint32_t flow_label, packet_rate, tclass, hop_limit, sl, subnet_local, ack_timeout;
    uint32_t alt_local_lid, alt_remote_lid;
    struct wire_addr alt_local_gid, alt_remote_gid;
    uint32_t alt_ack_timeout;
    uint32_t target_ack_delay, failover;
    uint32_t msg_id;          /* MRA, REJ: enum cm_about, or another message */
    uint32_t service_timeout; /* MRA */
    uint32_t reason, ari_len; /* REJ; APR: AR status in reason */
    uint8_t ari[CM_ARI_LEN];
    uint32_t status; /* SIDR_REP: enum cm_sidr_status */
    uint8_t priv[CM_PRIVATE_MAX];
    uint16_t priv_len; /* the size of the field; unpack sets it, pack zero-fills up to it */
};

/* The width of the member of struct cm_msg at this offset in message `attr`: bits, 128 for a GID; 0
 * = the message lacks it. tid and attr_mod are in every message's header. */
unsigned cm_msg_bits(unsigned attr, size_t offset);

/* Size in octets of the private data field of message `attr`; 0 = unknown attribute. */
size_t cm_private_len(unsigned attr);

/* Write the MAD. Unlisted bits are 0; octets of priv after priv_len are 0 on the wire (CM-33).
 * Returns 0, or -EINVAL for an unknown attribute or private data that doesn't fit. */
int cm_msg_pack(uint8_t mad[CM_MAD_LEN], const struct cm_msg *msg);

/* Read a MAD. Returns 0; -EMSGSIZE: wrong length (GSI-02); -EPROTONOSUPPORT: other base version,
 * class or method; -EPROTO: wrong class version (GSI-04; msg's ids are read all the same when it is
 * a REQ, so that it can be rejected); -ENOMSG: unknown attribute. */
int cm_msg_unpack(struct cm_msg *msg, const uint8_t *mad, size_t len);

/* The addressee of a MAD that is not checked yet: a connection, by the receiver's id; the server of
 * a service; a connection that only the sender's numbers name (a REJ in place of a REQ's answer,
 * CM-28); or unknown. */
enum cm_for { CM_FOR_NONE, CM_FOR_ID, CM_FOR_SERVICE, CM_FOR_PEER };
struct cm_target {
    enum cm_for what;
    uint32_t id;
    uint64_t service_id;
};
struct cm_target cm_msg_target(const uint8_t *mad, size_t len);

/* "REQ", "REP" ...; "?" for an unknown attribute. */
const char *cm_attr_name(unsigned attr);
/* A reject reason in words, all of CM-29. */
const char *cm_rej_name(unsigned reason);

#define CM_PS_TCP 0x0106u
#define CM_PS_UDP 0x0111u
#define CM_PS_IB  0x013Fu
/* The field of a REP with its sender's queue pair (CM-38). transport: of the connection. */
uint32_t cm_rep_qpn(const struct cm_msg *rep, unsigned transport);
/* Is it one of enum cm_transport? */
bool cm_transport_is_known(unsigned transport);
/* ServiceID of an IP port (CM-01). ps: CM_PS_*. */
uint64_t cm_service_id(unsigned ps, uint16_t port);

/* The IP header before the consumer's private data (CM-02). unpack: -EPROTO: bad version. */
struct cm_ip_hdr {
    uint8_t ip_version; /* 4 or 6 */
    uint16_t sport;
    struct wire_addr src, dst; /* IPv4 as mapped addresses */
};
void cm_ip_hdr_pack(uint8_t buf[CM_IP_HDR_LEN], const struct cm_ip_hdr *h);
int cm_ip_hdr_unpack(struct cm_ip_hdr *h, const uint8_t buf[CM_IP_HDR_LEN]);

/* Local ACK Timeout exponent from packet lifetime and CA ACK delay exponents (CM-09). */
unsigned cm_ack_timeout(unsigned lifetime, unsigned delay);

/* One line of text for a MAD. Returns as snprintf. Never prints private data (SEC-30). */
int cm_msg_dump(char *buf, size_t size, const struct cm_msg *msg);

#endif
