/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The tables of fields: of packets, messages, objects, work requests, completions.
 */
#include "drill_field.h"

#include <string.h>

#include "cm.h"
#include "engine.h"

/* ---- words ---- */

static const struct drill_word wc_opcodes[] = {
    {"send", WC_SEND},
    {"write", WC_RDMA_WRITE},
    {"read", WC_RDMA_READ},
    {"cmp_swap", WC_COMP_SWAP},
    {"fetch_add", WC_FETCH_ADD},
    {"bind_mw", WC_BIND_MW},
    {"local_inv", WC_LOCAL_INV},
    {"reg_mr", WC_REG_MR},
    {"flush", WC_FLUSH},
    {"atomic_write", WC_ATOMIC_WRITE},
    {"recv", WC_RECV},
    {"recv_imm", WC_RECV_RDMA_WITH_IMM},
    {0},
};
static const struct drill_word access_words[] = {
    {"lw", MEM_LOCAL_WRITE},
    {"rw", MEM_REMOTE_WRITE},
    {"rr", MEM_REMOTE_READ},
    {"ra", MEM_REMOTE_ATOMIC},
    {"mw", MEM_MW_BIND},
    {"zero", MEM_ZERO_BASED},
    {"fg", MEM_FLUSH_GLOBAL},
    {"fp", MEM_FLUSH_PERSISTENT},
    {"on_demand", 1u << 6}, /* verbs' numbers */
    {"relaxed", 1u << 20},
    {"all", DRILL_ACCESS},
    {0},
};
static const struct drill_word mtu_words[] = {
    {"256", 1}, {"512", 2}, {"1024", 3}, {"2048", 4}, {"4096", 5}, {0},
};
static const struct drill_word recovery_words[] = {
    {"gbn", RECOVER_GBN},
    {"sr", RECOVER_SR},
    {"gbn_ooo", RECOVER_GBN_OOO},
    {0},
};
static const struct drill_word bad_words[] = {{"bad", 1}, {0}};

/* ---- packets ---- */

#define MEMBER(m) .size = sizeof(((struct wire_pkt *)0)->m), .offset = offsetof(struct wire_pkt, m)
#define NUM(text, m)                                                                               \
    {                                                                                              \
        .name = (text), .type = TYPE_NUM, MEMBER(m)                                                \
    }
/* A field that is a member of some headers only, with further initialisers. */
#define HDR(text, m, r, ...)                                                                       \
    {                                                                                              \
        .name = (text), .type = TYPE_NUM, .role = (r), MEMBER(m), .headers = __VA_ARGS__           \
    }
#define BITS(text, m, n)                                                                           \
    {                                                                                              \
        .name = (text), .type = TYPE_NUM, MEMBER(m), .bits = (n)                                   \
    }
#define FLAG(text, m)                                                                              \
    {                                                                                              \
        .name = (text), .type = TYPE_FLAG, MEMBER(m)                                               \
    }

/* A field that is no member: its id, with further initialisers. */
#define OWN(text, t, ...)                                                                          \
    {                                                                                              \
        .name = (text), .type = (t), .offset = DRILL_NO_MEMBER, .id = __VA_ARGS__                  \
    }

#define RKEY_HEADERS (WIRE_H_RETH | WIRE_H_ATOMICETH | WIRE_H_IETH)
#define OF(use)      (1ull << (use))
#define OF_IN        OF(DO_INJECT)
#define OF_OUT       (OF(DO_EXPECT) | OF(DO_IGNORE))

const struct drill_field drill_packet_fields[] = {
    {.name = "dmac", .type = TYPE_MAC, MEMBER(dmac)},
    {.name = "smac", .type = TYPE_MAC, MEMBER(smac)},
    OWN("vlan", TYPE_NUM, PKT_VLAN, .bits = 16),
    {.name = "sip", .type = TYPE_ADDR, MEMBER(sip)},
    {.name = "dip", .type = TYPE_ADDR, MEMBER(dip)},
    NUM("tclass", tclass),
    OWN("dscp", TYPE_NUM, PKT_DSCP, .bits = 6),
    OWN("ecn", TYPE_NUM, PKT_ECN, .bits = 2),
    NUM("ttl", ttl),
    NUM("ip_id", ip_id),
    OWN("df", TYPE_FLAG, PKT_DF),
    OWN("mf", TYPE_FLAG, PKT_MF),
    BITS("flow_label", flow_label, 20),
    NUM("sport", sport),
    OWN("dport", TYPE_NUM, PKT_DPORT, .bits = 16),
    OWN("udp_csum", TYPE_NUM, PKT_UDP_CSUM, .bits = 16),
    FLAG("se", se),
    FLAG("migreq", migreq),
    FLAG("ackreq", ackreq),
    FLAG("fecn", fecn),
    FLAG("becn", becn),
    OWN("pad", TYPE_NUM, PKT_PAD, .bits = 2),
    BITS("tver", tver, 4),
    NUM("pkey", pkey),
    HDR("dqpn", dqpn, ROLE_QPN, 0, .bits = 24),
    OWN("psn", TYPE_NUM, PKT_PSN, .bits = 64),
    OWN("apsn", TYPE_NUM, PKT_APSN, .bits = 64),
    HDR("va", va, ROLE_VA, WIRE_H_RETH | WIRE_H_ATOMICETH),
    HDR("rkey", rkey, ROLE_RKEY, RKEY_HEADERS),
    HDR("dmalen", dma_len, ROLE_VALUE, WIRE_H_RETH),
    HDR("swap", swap_add, ROLE_VALUE, WIRE_H_ATOMICETH),
    HDR("add", swap_add, ROLE_VALUE, WIRE_H_ATOMICETH),
    HDR("compare", compare, ROLE_VALUE, WIRE_H_ATOMICETH),
    HDR("orig", orig, ROLE_VALUE, WIRE_H_ATOMICACK),
    HDR("syndrome", syndrome, ROLE_VALUE, WIRE_H_AETH),
    HDR("msn", msn, ROLE_VALUE, WIRE_H_AETH, .bits = 24),
    OWN("credits", TYPE_NUM, PKT_CREDITS, .bits = 5, .headers = WIRE_H_AETH),
    OWN("timer", TYPE_NUM, PKT_TIMER, .bits = 5, .headers = WIRE_H_AETH),
    OWN("imm", TYPE_NUM, PKT_IMM, .headers = WIRE_H_IMMDT),
    HDR("qkey", qkey, ROLE_VALUE, WIRE_H_DETH),
    HDR("sqpn", sqpn, ROLE_QPN, WIRE_H_DETH, .bits = 24),
    HDR("srqn", xrc_srqn, ROLE_SRQN, WIRE_H_XRCETH, .bits = 24),
    HDR("feth", feth, ROLE_VALUE, WIRE_H_FETH),
    HDR("sel_recv", sel_recv, ROLE_VALUE, DRILL_H_SELECTIVE, .bits = 24),
    HDR("sel_index", sel_index, ROLE_VALUE, DRILL_H_SELECTIVE),
    HDR("sel_psn", sel_psn, ROLE_PSN, DRILL_H_SELECTIVE, .bits = 24),
    OWN("qp", TYPE_NAME, PKT_QP),
    OWN("len", TYPE_NUM, PKT_LEN),
    OWN("data", TYPE_DATA, PKT_DATA),
    OWN("icrc", TYPE_WORD, PKT_ICRC, .of = OF_IN, .words = bad_words),
    OWN("ip_csum", TYPE_WORD, PKT_IP_CSUM, .of = OF_IN, .words = bad_words),
    OWN("cut", TYPE_NUM, PKT_CUT, .of = OF_IN),
    OWN("extra", TYPE_NUM, PKT_EXTRA, .of = OF_IN),
    OWN("patch", TYPE_PATCH, PKT_PATCH, .of = OF_IN),
    OWN("octet", TYPE_PATCH, PKT_OCTET, .of = OF_OUT),
    {0},
};

/* ---- CM messages ---- */

#define MAD(m)                                                                                     \
    {                                                                                              \
        .name = #m, .type = TYPE_NUM, .size = sizeof(((struct cm_msg *)0)->m),                     \
        .offset = offsetof(struct cm_msg, m)                                                       \
    }
#define MAD_QPN(m)                                                                                 \
    {                                                                                              \
        .name = #m, .type = TYPE_NUM, .role = ROLE_QPN, .size = sizeof(((struct cm_msg *)0)->m),   \
        .offset = offsetof(struct cm_msg, m)                                                       \
    }
#define MAD_GID(m)                                                                                 \
    {                                                                                              \
        .name = #m, .type = TYPE_ADDR, .size = 16, .offset = offsetof(struct cm_msg, m)            \
    }

const struct drill_field drill_mad_fields[] = {
    MAD(tid),
    MAD(attr_mod),
    MAD(local_id),
    MAD(remote_id),
    MAD(service_id),
    MAD(ca_guid),
    MAD(qkey),
    MAD_QPN(qpn),
    MAD_QPN(eecn),
    MAD_QPN(remote_qpn),
    MAD(resp_res),
    MAD(init_depth),
    MAD(remote_timeout),
    MAD(local_timeout),
    MAD(max_retries),
    MAD(transport),
    MAD(ext_transport),
    MAD(flow_control),
    MAD(srq),
    MAD(psn),
    MAD(retry_count),
    MAD(rnr_retry),
    MAD(pkey),
    MAD(mtu),
    MAD(local_lid),
    MAD(remote_lid),
    MAD_GID(local_gid),
    MAD_GID(remote_gid),
    MAD(flow_label),
    MAD(packet_rate),
    MAD(tclass),
    MAD(hop_limit),
    MAD(sl),
    MAD(subnet_local),
    MAD(ack_timeout),
    MAD(alt_local_lid),
    MAD(alt_remote_lid),
    MAD_GID(alt_local_gid),
    MAD_GID(alt_remote_gid),
    MAD(alt_ack_timeout),
    MAD(target_ack_delay),
    MAD(failover),
    MAD(msg_id),
    MAD(service_timeout),
    MAD(reason),
    MAD(ari_len),
    MAD(status),
    OWN("port", TYPE_NUM, MAD_PORT, .bits = 16),
    OWN("private", TYPE_DATA, MAD_PRIVATE),
    OWN("src_ip", TYPE_ADDR, MAD_SRC_IP),
    OWN("src_port", TYPE_NUM, MAD_SRC_PORT, .bits = 16),
    OWN("ip_version", TYPE_NUM, MAD_IP_VERSION, .bits = 4),
    OWN("method", TYPE_NUM, MAD_METHOD, .bits = 8),
    OWN("class", TYPE_NUM, MAD_CLASS, .bits = 8),
    OWN("class_version", TYPE_NUM, MAD_CLASS_VERSION, .bits = 8),
    OWN("mad_len", TYPE_NUM, MAD_LEN),
    {0},
};

/* ---- objects ---- */

#define ATTR(bit, m)                                                                               \
    .id = QPF_ATTR + (bit), .size = sizeof(((struct engine_qp_attr *)0)->m),                       \
    .offset = offsetof(struct engine_qp_attr, m)

#define OF_MODIFY  (OF(DO_MODIFY) | OF(DO_QUERY))
#define OF_CREATED OF(DO_QP)

const struct drill_field drill_qp_fields[] = {
    /* attributes, by their bit in the mask of a modify */
    {.name = "state", .type = TYPE_WORD, ATTR(0, state), .of = OF_MODIFY, .words = drill_states},
    {.name = "cur_state",
     .type = TYPE_WORD,
     ATTR(1, cur_state),
     .of = OF_MODIFY,
     .words = drill_states},
    {.name = "sqd_notify",
     .type = TYPE_FLAG,
     ATTR(2, en_sqd_async_notify),
     .of = OF_MODIFY | OF(DO_MOVE)},
    {.name = "access", .type = TYPE_WORDS, ATTR(3, access_flags), .words = access_words},
    {.name = "pkey_index", .type = TYPE_NUM, ATTR(4, pkey_index)},
    {.name = "port", .type = TYPE_NUM, ATTR(5, port), .of = OF_MODIFY},
    {.name = "qkey", .type = TYPE_NUM, ATTR(6, qkey)},
    OWN("av", TYPE_FLAG, QPF_ATTR + 7, .of = OF(DO_MODIFY)),
    {.name = "path_mtu", .type = TYPE_WORD, ATTR(8, path_mtu), .words = mtu_words},
    {.name = "timeout", .type = TYPE_NUM, ATTR(9, timeout)},
    {.name = "retry_cnt", .type = TYPE_NUM, ATTR(10, retry_cnt)},
    {.name = "rnr_retry", .type = TYPE_NUM, ATTR(11, rnr_retry)},
    {.name = "rq_psn", .type = TYPE_NUM, ATTR(12, rq_psn)},
    {.name = "max_rd_atomic", .type = TYPE_NUM, ATTR(13, max_rd_atomic)},
    OWN("alt_path", TYPE_FLAG, QPF_ATTR + 14, .of = OF(DO_MODIFY)),
    {.name = "min_rnr_timer", .type = TYPE_NUM, ATTR(15, min_rnr_timer)},
    {.name = "sq_psn", .type = TYPE_NUM, ATTR(16, sq_psn)},
    {.name = "max_dest_rd_atomic", .type = TYPE_NUM, ATTR(17, max_dest_rd_atomic)},
    OWN("path_mig_state", TYPE_FLAG, QPF_ATTR + 18, .of = OF(DO_MODIFY)),
    OWN("cap", TYPE_FLAG, QPF_ATTR + 19, .of = OF(DO_MODIFY)),
    {.name = "dest_qpn", .type = TYPE_NUM, .role = ROLE_QPN, ATTR(20, dest_qpn)},
    OWN("rate_limit", TYPE_FLAG, QPF_ATTR + 25, .of = OF(DO_MODIFY)),
    /* values at creation, and the path */
    OWN("sig_all", TYPE_FLAG, QPF_SIG_ALL, .of = OF_CREATED),
    OWN("cq", TYPE_NAME, QPF_CQ, .of = OF_CREATED),
    OWN("recv_cq", TYPE_NAME, QPF_RECV_CQ, .of = OF_CREATED),
    OWN("srq", TYPE_NAME, QPF_SRQ, .of = OF_CREATED),
    OWN("pd", TYPE_NAME, QPF_PD, .of = OF_CREATED),
    OWN("max_send_wr", TYPE_NUM, QPF_MAX_SEND, .of = OF_CREATED),
    OWN("max_recv_wr", TYPE_NUM, QPF_MAX_RECV, .of = OF_CREATED),
    OWN("max_sge", TYPE_NUM, QPF_MAX_SGE, .of = OF_CREATED),
    OWN("max_inline", TYPE_NUM, QPF_MAX_INLINE, .of = OF_CREATED),
    {.name = "recovery",
     .type = TYPE_WORD,
     .id = QPF_RECOVERY,
     .size = 1,
     .offset = offsetof(struct engine_qp_attr, recovery),
     .words = recovery_words},
    {.name = "credits",
     .type = TYPE_FLAG,
     .id = QPF_CREDITS,
     .size = 1,
     .offset = offsetof(struct engine_qp_attr, e2e_credits)},
    OWN("cc", TYPE_TEXT, QPF_CC, .of = OF_CREATED),
    OWN("peer", TYPE_ADDR, QPF_PEER, .of = OF_CREATED),
    {.name = "tclass",
     .type = TYPE_NUM,
     .id = QPF_TCLASS,
     .size = 1,
     .offset = offsetof(struct engine_qp_attr, av.tclass)},
    {.name = "hop_limit",
     .type = TYPE_NUM,
     .id = QPF_HOP_LIMIT,
     .size = 1,
     .offset = offsetof(struct engine_qp_attr, av.hop_limit)},
    {.name = "flow_label",
     .type = TYPE_NUM,
     .id = QPF_FLOW_LABEL,
     .size = 4,
     .offset = offsetof(struct engine_qp_attr, av.flow_label)},
    {0},
};

const struct drill_field drill_device_fields[] = {
    OWN("pkey", TYPE_NUM, DEV_PKEY, .bits = 16), /* again for each entry of the table */
    OWN("mtu", TYPE_WORD, DEV_MTU, .words = mtu_words),
    OWN("window", TYPE_NUM, DEV_WINDOW),
    OWN("strict_resp", TYPE_FLAG, DEV_STRICT),
    OWN("vlan", TYPE_NUM, DEV_VLAN, .bits = 16),
    OWN("loopback", TYPE_FLAG, DEV_LOOPBACK),
    OWN("cc", TYPE_TEXT, DEV_CC),
    OWN("lenient_addr", TYPE_FLAG, DEV_LENIENT),
    OWN("rate", TYPE_NUM, DEV_RATE, .bits = 64),
    OWN("records", TYPE_NUM, DEV_RECORDS),
    OWN("nak_confirm", TYPE_FLAG, DEV_NAK_CONFIRM),
    OWN("rnr_on_rd_res", TYPE_FLAG, DEV_RNR_ON_RD_RES),
    OWN("persistent", TYPE_FLAG, DEV_PERSISTENT),
    OWN("max_mr", TYPE_NUM, DEV_MAX_MR),
    OWN("max_conns", TYPE_NUM, DEV_MAX_CONNS),
    {0},
};

#define OF_REGISTERED (OF(DO_MR) | OF(DO_FR) | OF(DO_REMOTE))
#define OF_IN_DOMAIN  (OF(DO_MR) | OF(DO_FR) | OF(DO_MW) | OF(DO_SRQ))

const struct drill_field drill_object_fields[] = {
    OWN("access", TYPE_WORDS, OBJ_ACCESS, .of = OF(DO_MR), .words = access_words),
    OWN("pd", TYPE_NAME, OBJ_PD, .of = OF_IN_DOMAIN),
    OWN("va", TYPE_NUM, OBJ_VA, .of = OF_REGISTERED, .bits = 64),
    OWN("limit", TYPE_NUM, OBJ_LIMIT, .of = OF(DO_SRQ)),
    OWN("max_wr", TYPE_NUM, OBJ_MAX_WR, .of = OF(DO_SRQ)),
    OWN("cq", TYPE_NAME, OBJ_CQ, .of = OF(DO_SRQ)),
    OWN("xrcd", TYPE_NAME, OBJ_XRCD, .of = OF(DO_SRQ)),
    OWN("size", TYPE_NUM, OBJ_SIZE, .of = OF(DO_CQ)),
    OWN("rkey", TYPE_NUM, OBJ_RKEY, .of = OF(DO_REMOTE)),
    {0},
};

/* ---- work requests and completions ---- */

/* Operations with something in common. */
#define OF_SEND    (OF(WR_SEND) | OF(WR_SEND_WITH_IMM) | OF(WR_SEND_WITH_INV))
#define OF_WRITE   (OF(WR_RDMA_WRITE) | OF(WR_RDMA_WRITE_WITH_IMM))
#define OF_ATOMIC  (OF(WR_ATOMIC_CMP_AND_SWP) | OF(WR_ATOMIC_FETCH_AND_ADD))
#define OF_ANSWER  (OF(WR_RDMA_READ) | OF_ATOMIC)
#define OF_REMOTE  (OF_WRITE | OF_ANSWER | OF(WR_ATOMIC_WRITE))
#define OF_NAMED   (OF_REMOTE | OF(WR_FLUSH)) /* names memory of the peer */
#define OF_LOCAL   (OF(WR_LOCAL_INV) | OF(WR_BIND_MW) | OF(WR_REG_MR))
#define OF_POST    (OF_SEND | OF_NAMED | OF_LOCAL)
#define OF_RECV    OF(DRILL_USE_RECV)
#define OF_IMM     (OF(WR_SEND_WITH_IMM) | OF(WR_RDMA_WRITE_WITH_IMM))
#define OF_DGRAM   (OF(WR_SEND) | OF(WR_SEND_WITH_IMM))
#define OF_MEMORY  (OF_SEND | OF_REMOTE | OF_RECV)
#define OF_NEW_KEY (OF(WR_BIND_MW) | OF(WR_REG_MR))

const struct drill_field drill_post_fields[] = {
    OWN("id", TYPE_NUM, WR_ID, .bits = 64),
    OWN("from", TYPE_RANGES, WR_FROM, .of = OF_SEND | OF_REMOTE),
    OWN("into", TYPE_RANGES, WR_FROM, .of = OF_ANSWER | OF_RECV),
    OWN("to", TYPE_NUM, WR_TO, .of = OF_NAMED, .bits = 64, .role = ROLE_VA),
    OWN("rkey", TYPE_NUM, WR_RKEY, .of = OF_NAMED, .role = ROLE_RKEY),
    OWN("lkey", TYPE_NUM, WR_LKEY, .of = OF_MEMORY, .role = ROLE_LKEY),
    OWN("imm", TYPE_NUM, WR_IMM, .of = OF_IMM),
    OWN("unsignaled", TYPE_FLAG, WR_UNSIGNALED, .of = OF_POST),
    OWN("fence", TYPE_FLAG, WR_FENCE, .of = OF_POST),
    OWN("solicited", TYPE_FLAG, WR_SOLICITED, .of = OF_SEND | OF_WRITE),
    OWN("inline", TYPE_DATA, WR_INLINE, .of = OF_SEND | OF_REMOTE),
    OWN("add", TYPE_NUM, WR_ADD, .of = OF(WR_ATOMIC_FETCH_AND_ADD), .bits = 64),
    OWN("compare", TYPE_NUM, WR_COMPARE, .of = OF(WR_ATOMIC_CMP_AND_SWP), .bits = 64),
    OWN("swap", TYPE_NUM, WR_SWAP, .of = OF(WR_ATOMIC_CMP_AND_SWP), .bits = 64),
    OWN("inv", TYPE_NUM, WR_INV, .of = OF(WR_SEND_WITH_INV) | OF(WR_LOCAL_INV), .role = ROLE_RKEY),
    OWN("mw", TYPE_NAME, WR_MW, .of = OF(WR_BIND_MW)),
    OWN("mr", TYPE_NAME, WR_MR, .of = OF_NEW_KEY),
    OWN("new_rkey", TYPE_NUM, WR_NEW_RKEY, .of = OF_NEW_KEY, .role = ROLE_RKEY),
    OWN("va", TYPE_NUM, WR_VA, .of = OF_NEW_KEY, .bits = 64, .role = ROLE_VA),
    OWN("len", TYPE_NUM, WR_LEN, .of = OF(WR_BIND_MW) | OF_SEND | OF_NAMED, .bits = 64),
    OWN("feth", TYPE_NUM, WR_FETH, .of = OF(WR_FLUSH), .bits = 32),
    OWN("access", TYPE_WORDS, WR_ACCESS, .of = OF_NEW_KEY, .words = access_words),
    OWN("qkey", TYPE_NUM, WR_QKEY, .of = OF_DGRAM),
    OWN("rqpn", TYPE_NUM, WR_RQPN, .of = OF_DGRAM, .role = ROLE_QPN),
    OWN("pkey_index", TYPE_NUM, WR_PKEY_INDEX, .of = OF_DGRAM),
    OWN("srqn", TYPE_NUM, WR_SRQN, .of = OF_SEND | OF_NAMED, .bits = 24, .role = ROLE_SRQN),
    OWN("dip", TYPE_ADDR, WR_DIP, .of = OF_DGRAM),
    {0},
};

const struct drill_field drill_cqe_fields[] = {
    OWN("id", TYPE_NUM, CQE_ID),
    OWN("opcode", TYPE_WORD, CQE_OPCODE, .words = wc_opcodes),
    OWN("len", TYPE_NUM, CQE_LEN),
    OWN("imm", TYPE_NUM, CQE_IMM),
    OWN("inv", TYPE_NUM, CQE_INV, .role = ROLE_RKEY),
    OWN("src_qp", TYPE_NUM, CQE_SRC_QP, .role = ROLE_QPN),
    OWN("grh", TYPE_FLAG, CQE_GRH),
    OWN("solicited", TYPE_FLAG, CQE_SOLICITED),
    OWN("pkey_index", TYPE_NUM, CQE_PKEY_INDEX),
    {0},
};

const struct drill_field drill_info_fields[] = {
    OWN("epsn", TYPE_NUM, INFO_EPSN),
    OWN("msn", TYPE_NUM, INFO_MSN),
    OWN("sq_psn", TYPE_NUM, INFO_SQ_PSN),
    OWN("una_psn", TYPE_NUM, INFO_UNA),
    OWN("sq_used", TYPE_NUM, INFO_SQ_USED),
    OWN("rq_used", TYPE_NUM, INFO_RQ_USED),
    OWN("inflight", TYPE_NUM, INFO_INFLIGHT),
    OWN("rd_atomic", TYPE_NUM, INFO_RD_ATOMIC),
    OWN("retransmits", TYPE_NUM, INFO_RETRANSMITS),
    OWN("timeouts", TYPE_NUM, INFO_TIMEOUTS),
    OWN("agreed", TYPE_FLAG, INFO_AGREED),
    {0},
};

#define OF_EVENT(event) OF(DRILL_USE_CM_EVENT + (event))
#define OF_DEPTHS                                                                                  \
    (OF(DO_CONNECT) | OF(DO_ACCEPT) | OF_EVENT(CM_EV_REQ) | OF_EVENT(CM_EV_REP) |                  \
     OF_EVENT(CM_EV_ESTABLISHED))
#define OF_PRIVATE                                                                                 \
    (OF(DO_CONNECT) | OF(DO_ACCEPT) | OF(DO_RTU) | OF(DO_REJECT) | OF(DO_DISCONNECT) |             \
     OF(DO_SIDR) | OF_EVENT(CM_EV_REQ) | OF_EVENT(CM_EV_REP) | OF_EVENT(CM_EV_ESTABLISHED) |       \
     OF_EVENT(CM_EV_REJECTED) | OF_EVENT(CM_EV_DISCONNECTED) | OF_EVENT(CM_EV_SIDR_REP) |          \
     OF_EVENT(CM_EV_SIDR_REQ))
#define OF_PORTS (OF(DO_CONNECT) | OF(DO_SIDR) | OF_EVENT(CM_EV_REQ) | OF_EVENT(CM_EV_SIDR_REQ))

const struct drill_field drill_cm_fields[] = {
    OWN("port", TYPE_NUM, CMF_PORT, .of = OF_PORTS | OF(DO_LISTEN), .bits = 16),
    OWN("qp", TYPE_NAME, CMF_QP, .of = OF(DO_CONNECT) | OF(DO_ACCEPT) | OF(DO_RTU)),
    OWN("private", TYPE_DATA, CMF_PRIVATE, .of = OF_PRIVATE),
    OWN("resp_res", TYPE_NUM, CMF_RESP_RES, .of = OF_DEPTHS, .bits = 8),
    OWN("init_depth", TYPE_NUM, CMF_INIT_DEPTH, .of = OF_DEPTHS, .bits = 8),
    OWN("reason", TYPE_NUM, CMF_REASON, .of = OF(DO_REJECT) | OF_EVENT(CM_EV_REJECTED)),
    OWN("retry_count", TYPE_NUM, CMF_RETRY, .of = OF(DO_CONNECT), .bits = 8),
    OWN("rnr_retry", TYPE_NUM, CMF_RNR_RETRY, .of = OF(DO_CONNECT) | OF(DO_ACCEPT), .bits = 8),
    OWN("service_timeout", TYPE_NUM, CMF_SERVICE_TIMEOUT, .of = OF(DO_MRA)),
    OWN("status", TYPE_NUM, CMF_STATUS, .of = OF(DO_SIDR_REPLY) | OF_EVENT(CM_EV_SIDR_REP)),
    OWN("qpn", TYPE_NUM, CMF_QPN,
        .of = OF(DO_SIDR_REPLY) | OF_EVENT(CM_EV_REQ) | OF_EVENT(CM_EV_REP) |
              OF_EVENT(CM_EV_SIDR_REP),
        .role = ROLE_QPN),
    OWN("qkey", TYPE_NUM, CMF_QKEY, .of = OF(DO_SIDR_REPLY) | OF_EVENT(CM_EV_SIDR_REP)),
    OWN("cm_timeout", TYPE_NUM, CMF_TIMEOUT, .of = OF(DO_CONNECT), .bits = 8),
    OWN("max_retries", TYPE_NUM, CMF_RETRIES, .of = OF(DO_CONNECT), .bits = 8),
    OWN("udp", TYPE_FLAG, CMF_UDP, .of = OF(DO_LISTEN)),
    OWN("transport", TYPE_NUM, CMF_TRANSPORT, .of = OF(DO_CONNECT), .bits = 8),
    OWN("sport", TYPE_NUM, CMF_SPORT, .of = OF_PORTS, .bits = 16),
    OWN("pkey", TYPE_NUM, CMF_PKEY, .of = OF(DO_CONNECT), .bits = 16),
    OWN("backlog", TYPE_NUM, CMF_BACKLOG, .of = OF(DO_LISTEN)),
    OWN("mtu", TYPE_WORD, CMF_MTU, .of = OF(DO_CONNECT), .words = mtu_words),
    {0},
};

/* ---- looking up ---- */

const struct drill_field *drill_field_find(const struct drill_field *table, const char *name)
{
    for (const struct drill_field *f = table; f && f->name; f++)
        if (!strcmp(f->name, name))
            return f;
    return NULL;
}

bool drill_field_is_mad(const struct drill_field *f)
{
    return f >= drill_mad_fields &&
           f < drill_mad_fields + sizeof(drill_mad_fields) / sizeof(drill_mad_fields[0]);
}
