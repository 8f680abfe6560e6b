/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which fields there are: of packets, messages, objects, work requests, completions.
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
    {"on_demand", 1u << 6}, /* verbs' numbers */
    {"relaxed", 1u << 20},
    {"all", MEM_LOCAL_WRITE | MEM_REMOTE_ANY | MEM_MW_BIND},
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
#define HDR(text, m, h, r)                                                                         \
    {                                                                                              \
        .name = (text), .type = TYPE_NUM, .role = (r), MEMBER(m), .headers = (h)                   \
    }
#define BITS(text, m, n)                                                                           \
    {                                                                                              \
        .name = (text), .type = TYPE_NUM, MEMBER(m), .bits = (n)                                   \
    }
#define HDR24(text, m, h, r)                                                                       \
    {                                                                                              \
        .name = (text), .type = TYPE_NUM, .role = (r), MEMBER(m), .headers = (h), .bits = 24       \
    }
#define OWN_BITS(text, i, n)                                                                       \
    {                                                                                              \
        .name = (text), .type = TYPE_NUM, .id = (i), .offset = DRILL_NO_MEMBER, .bits = (n)        \
    }
#define FLAG(text, m)                                                                              \
    {                                                                                              \
        .name = (text), .type = TYPE_FLAG, MEMBER(m)                                               \
    }
#define OWN(text, t, i)                                                                            \
    {                                                                                              \
        .name = (text), .type = (t), .id = (i), .offset = DRILL_NO_MEMBER                          \
    }
#define OWN_OF(text, t, i, u)                                                                      \
    {                                                                                              \
        .name = (text), .type = (t), .id = (i), .offset = DRILL_NO_MEMBER, .of = (u)               \
    }
#define OWN_OF_BITS(text, i, u, n)                                                                 \
    {                                                                                              \
        .name = (text), .type = TYPE_NUM, .id = (i), .offset = DRILL_NO_MEMBER, .of = (u),         \
        .bits = (n)                                                                                \
    }
#define OWN_ROLE(text, t, i, r)                                                                    \
    {                                                                                              \
        .name = (text), .type = (t), .id = (i), .role = (r), .offset = DRILL_NO_MEMBER             \
    }
#define OWN_WORD(text, t, i, w)                                                                    \
    {                                                                                              \
        .name = (text), .type = (t), .id = (i), .offset = DRILL_NO_MEMBER, .words = (w)            \
    }

#define RKEY_HEADERS (WIRE_H_RETH | WIRE_H_ATOMICETH | WIRE_H_IETH)
#define OF(use)      (1ull << (use))
#define OF_IN        OF(DO_INJECT)
#define OF_OUT       (OF(DO_EXPECT) | OF(DO_IGNORE))

const struct drill_field drill_packet_fields[] = {
    {.name = "dmac", .type = TYPE_MAC, MEMBER(dmac)},
    {.name = "smac", .type = TYPE_MAC, MEMBER(smac)},
    OWN_BITS("vlan", PKT_VLAN, 16),
    {.name = "sip", .type = TYPE_ADDR, MEMBER(sip)},
    {.name = "dip", .type = TYPE_ADDR, MEMBER(dip)},
    NUM("tclass", tclass),
    OWN_BITS("dscp", PKT_DSCP, 6),
    OWN_BITS("ecn", PKT_ECN, 2),
    NUM("ttl", ttl),
    NUM("ip_id", ip_id),
    OWN("df", TYPE_FLAG, PKT_DF),
    OWN("mf", TYPE_FLAG, PKT_MF),
    BITS("flow_label", flow_label, 20),
    NUM("sport", sport),
    OWN_BITS("dport", PKT_DPORT, 16),
    OWN_BITS("udp_csum", PKT_UDP_CSUM, 16),
    FLAG("se", se),
    FLAG("migreq", migreq),
    FLAG("ackreq", ackreq),
    FLAG("fecn", fecn),
    FLAG("becn", becn),
    OWN_BITS("pad", PKT_PAD, 2),
    BITS("tver", tver, 4),
    NUM("pkey", pkey),
    HDR24("dqpn", dqpn, 0, ROLE_QPN),
    OWN_BITS("psn", PKT_PSN, 64),
    OWN_BITS("apsn", PKT_APSN, 64),
    HDR("va", va, WIRE_H_RETH | WIRE_H_ATOMICETH, ROLE_VA),
    HDR("rkey", rkey, RKEY_HEADERS, ROLE_RKEY),
    HDR("dmalen", dma_len, WIRE_H_RETH, ROLE_VALUE),
    HDR("swap", swap_add, WIRE_H_ATOMICETH, ROLE_VALUE),
    HDR("add", swap_add, WIRE_H_ATOMICETH, ROLE_VALUE),
    HDR("compare", compare, WIRE_H_ATOMICETH, ROLE_VALUE),
    HDR("orig", orig, WIRE_H_ATOMICACK, ROLE_VALUE),
    HDR("syndrome", syndrome, WIRE_H_AETH, ROLE_VALUE),
    HDR24("msn", msn, WIRE_H_AETH, ROLE_VALUE),
    {.name = "credits",
     .bits = 5,
     .type = TYPE_NUM,
     .id = PKT_CREDITS,
     .offset = DRILL_NO_MEMBER,
     .headers = WIRE_H_AETH},
    {.name = "timer",
     .bits = 5,
     .type = TYPE_NUM,
     .id = PKT_TIMER,
     .offset = DRILL_NO_MEMBER,
     .headers = WIRE_H_AETH},
    {.name = "imm",
     .type = TYPE_NUM,
     .id = PKT_IMM,
     .offset = DRILL_NO_MEMBER,
     .headers = WIRE_H_IMMDT},
    HDR("qkey", qkey, WIRE_H_DETH, ROLE_VALUE),
    HDR24("sqpn", sqpn, WIRE_H_DETH, ROLE_QPN),
    HDR24("srqn", xrc_srqn, WIRE_H_XRCETH, ROLE_VALUE),
    HDR("feth", feth, WIRE_H_FETH, ROLE_VALUE),
    HDR24("sel_recv", sel_recv, DRILL_H_SELECTIVE, ROLE_VALUE),
    HDR("sel_index", sel_index, DRILL_H_SELECTIVE, ROLE_VALUE),
    HDR24("sel_psn", sel_psn, DRILL_H_SELECTIVE, ROLE_PSN),
    OWN("qp", TYPE_NAME, PKT_QP),
    OWN("len", TYPE_NUM, PKT_LEN),
    OWN("data", TYPE_DATA, PKT_DATA),
    {.name = "icrc",
     .type = TYPE_WORD,
     .id = PKT_ICRC,
     .offset = DRILL_NO_MEMBER,
     .of = OF_IN,
     .words = bad_words},
    {.name = "ip_csum",
     .type = TYPE_WORD,
     .id = PKT_IP_CSUM,
     .offset = DRILL_NO_MEMBER,
     .of = OF_IN,
     .words = bad_words},
    OWN_OF("cut", TYPE_NUM, PKT_CUT, OF_IN),
    OWN_OF("extra", TYPE_NUM, PKT_EXTRA, OF_IN),
    OWN_OF("patch", TYPE_PATCH, PKT_PATCH, OF_IN),
    OWN_OF("octet", TYPE_PATCH, PKT_OCTET, OF_OUT),
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
    MAD(eecn),
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
    OWN_BITS("port", MAD_PORT, 16),
    OWN("private", TYPE_DATA, MAD_PRIVATE),
    OWN("src_ip", TYPE_ADDR, MAD_SRC_IP),
    OWN_BITS("src_port", MAD_SRC_PORT, 16),
    OWN_BITS("ip_version", MAD_IP_VERSION, 4),
    OWN_BITS("method", MAD_METHOD, 8),
    OWN_BITS("class", MAD_CLASS, 8),
    OWN_BITS("class_version", MAD_CLASS_VERSION, 8),
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
    OWN_OF("av", TYPE_FLAG, QPF_ATTR + 7, OF(DO_MODIFY)),
    {.name = "path_mtu", .type = TYPE_WORD, ATTR(8, path_mtu), .words = mtu_words},
    {.name = "timeout", .type = TYPE_NUM, ATTR(9, timeout)},
    {.name = "retry_cnt", .type = TYPE_NUM, ATTR(10, retry_cnt)},
    {.name = "rnr_retry", .type = TYPE_NUM, ATTR(11, rnr_retry)},
    {.name = "rq_psn", .type = TYPE_NUM, ATTR(12, rq_psn)},
    {.name = "max_rd_atomic", .type = TYPE_NUM, ATTR(13, max_rd_atomic)},
    OWN_OF("alt_path", TYPE_FLAG, QPF_ATTR + 14, OF(DO_MODIFY)),
    {.name = "min_rnr_timer", .type = TYPE_NUM, ATTR(15, min_rnr_timer)},
    {.name = "sq_psn", .type = TYPE_NUM, ATTR(16, sq_psn)},
    {.name = "max_dest_rd_atomic", .type = TYPE_NUM, ATTR(17, max_dest_rd_atomic)},
    OWN_OF("path_mig_state", TYPE_FLAG, QPF_ATTR + 18, OF(DO_MODIFY)),
    OWN_OF("cap", TYPE_FLAG, QPF_ATTR + 19, OF(DO_MODIFY)),
    {.name = "dest_qpn", .type = TYPE_NUM, .role = ROLE_QPN, ATTR(20, dest_qpn)},
    OWN_OF("rate_limit", TYPE_FLAG, QPF_ATTR + 25, OF(DO_MODIFY)),
    /* what they are created with, and the path */
    OWN_OF("sig_all", TYPE_FLAG, QPF_SIG_ALL, OF_CREATED),
    OWN_OF("cq", TYPE_NAME, QPF_CQ, OF_CREATED),
    OWN_OF("recv_cq", TYPE_NAME, QPF_RECV_CQ, OF_CREATED),
    OWN_OF("srq", TYPE_NAME, QPF_SRQ, OF_CREATED),
    OWN_OF("pd", TYPE_NAME, QPF_PD, OF_CREATED),
    OWN_OF("max_send_wr", TYPE_NUM, QPF_MAX_SEND, OF_CREATED),
    OWN_OF("max_recv_wr", TYPE_NUM, QPF_MAX_RECV, OF_CREATED),
    OWN_OF("max_sge", TYPE_NUM, QPF_MAX_SGE, OF_CREATED),
    OWN_OF("max_inline", TYPE_NUM, QPF_MAX_INLINE, OF_CREATED),
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
    OWN_OF("cc", TYPE_TEXT, QPF_CC, OF_CREATED),
    OWN_OF("peer", TYPE_ADDR, QPF_PEER, OF_CREATED),
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
    OWN_BITS("pkey", DEV_PKEY, 16), /* again for each entry of the table */
    OWN_WORD("mtu", TYPE_WORD, DEV_MTU, mtu_words),
    OWN("window", TYPE_NUM, DEV_WINDOW),
    OWN("strict_resp", TYPE_FLAG, DEV_STRICT),
    OWN_BITS("vlan", DEV_VLAN, 16),
    OWN("ack_delay", TYPE_TIME, DEV_ACK_DELAY),
    OWN("loopback", TYPE_FLAG, DEV_LOOPBACK),
    OWN("cc", TYPE_TEXT, DEV_CC),
    OWN("lenient_addr", TYPE_FLAG, DEV_LENIENT),
    OWN_BITS("rate", DEV_RATE, 64),
    OWN("records", TYPE_NUM, DEV_RECORDS),
    OWN("nak_confirm", TYPE_FLAG, DEV_NAK_CONFIRM),
    OWN("rnr_on_rd_res", TYPE_FLAG, DEV_RNR_ON_RD_RES),
    OWN("max_mr", TYPE_NUM, DEV_MAX_MR),
    OWN("max_conns", TYPE_NUM, DEV_MAX_CONNS),
    {0},
};

#define OF_REGISTERED (OF(DO_MR) | OF(DO_FR) | OF(DO_REMOTE))
#define OF_IN_DOMAIN  (OF(DO_MR) | OF(DO_FR) | OF(DO_MW) | OF(DO_SRQ))

const struct drill_field drill_object_fields[] = {
    {.name = "access",
     .type = TYPE_WORDS,
     .id = OBJ_ACCESS,
     .offset = DRILL_NO_MEMBER,
     .of = OF(DO_MR),
     .words = access_words},
    OWN_OF("pd", TYPE_NAME, OBJ_PD, OF_IN_DOMAIN),
    OWN_OF_BITS("va", OBJ_VA, OF_REGISTERED, 64),
    OWN_OF("limit", TYPE_NUM, OBJ_LIMIT, OF(DO_SRQ)),
    OWN_OF("max_wr", TYPE_NUM, OBJ_MAX_WR, OF(DO_SRQ)),
    OWN_OF("size", TYPE_NUM, OBJ_SIZE, OF(DO_CQ)),
    OWN_OF("rkey", TYPE_NUM, OBJ_RKEY, OF(DO_REMOTE)),
    {0},
};

/* ---- work requests and completions ---- */

/* Operations with something in common. */
#define OF_SEND    (OF(WR_SEND) | OF(WR_SEND_WITH_IMM) | OF(WR_SEND_WITH_INV))
#define OF_WRITE   (OF(WR_RDMA_WRITE) | OF(WR_RDMA_WRITE_WITH_IMM))
#define OF_ATOMIC  (OF(WR_ATOMIC_CMP_AND_SWP) | OF(WR_ATOMIC_FETCH_AND_ADD))
#define OF_ANSWER  (OF(WR_RDMA_READ) | OF_ATOMIC)
#define OF_REMOTE  (OF_WRITE | OF_ANSWER)
#define OF_LOCAL   (OF(WR_LOCAL_INV) | OF(WR_BIND_MW) | OF(WR_REG_MR))
#define OF_POST    (OF_SEND | OF_REMOTE | OF_LOCAL)
#define OF_RECV    OF(DRILL_USE_RECV)
#define OF_IMM     (OF(WR_SEND_WITH_IMM) | OF(WR_RDMA_WRITE_WITH_IMM))
#define OF_DGRAM   (OF(WR_SEND) | OF(WR_SEND_WITH_IMM))
#define OF_MEMORY  (OF_SEND | OF_REMOTE | OF_RECV)
#define OF_NEW_KEY (OF(WR_BIND_MW) | OF(WR_REG_MR))
#define POST(text, t, i, u, r)                                                                     \
    {                                                                                              \
        .name = (text), .type = (t), .id = (i), .offset = DRILL_NO_MEMBER, .of = (u), .role = (r)  \
    }
#define POST64(text, i, u, r)                                                                      \
    {                                                                                              \
        .name = (text), .type = TYPE_NUM, .id = (i), .offset = DRILL_NO_MEMBER, .of = (u),         \
        .role = (r), .bits = 64                                                                    \
    }

const struct drill_field drill_post_fields[] = {
    OWN_BITS("id", WR_ID, 64),
    POST("from", TYPE_RANGES, WR_FROM, OF_SEND | OF_REMOTE, 0),
    POST("into", TYPE_RANGES, WR_FROM, OF_ANSWER | OF_RECV, 0),
    POST64("to", WR_TO, OF_REMOTE, ROLE_VA),
    POST("rkey", TYPE_NUM, WR_RKEY, OF_REMOTE, ROLE_RKEY),
    POST("lkey", TYPE_NUM, WR_LKEY, OF_MEMORY, ROLE_LKEY),
    POST("imm", TYPE_NUM, WR_IMM, OF_IMM, 0),
    POST("unsignaled", TYPE_FLAG, WR_UNSIGNALED, OF_POST, 0),
    POST("fence", TYPE_FLAG, WR_FENCE, OF_POST, 0),
    POST("solicited", TYPE_FLAG, WR_SOLICITED, OF_SEND | OF_WRITE, 0),
    POST("inline", TYPE_DATA, WR_INLINE, OF_SEND | OF_REMOTE, 0),
    POST64("add", WR_ADD, OF(WR_ATOMIC_FETCH_AND_ADD), 0),
    POST64("compare", WR_COMPARE, OF(WR_ATOMIC_CMP_AND_SWP), 0),
    POST64("swap", WR_SWAP, OF(WR_ATOMIC_CMP_AND_SWP), 0),
    POST("inv", TYPE_NUM, WR_INV, OF(WR_SEND_WITH_INV) | OF(WR_LOCAL_INV), ROLE_RKEY),
    POST("mw", TYPE_NAME, WR_MW, OF(WR_BIND_MW), 0),
    POST("mr", TYPE_NAME, WR_MR, OF_NEW_KEY, 0),
    POST("new_rkey", TYPE_NUM, WR_NEW_RKEY, OF_NEW_KEY, ROLE_RKEY),
    POST64("va", WR_VA, OF_NEW_KEY, ROLE_VA),
    POST64("len", WR_LEN, OF(WR_BIND_MW) | OF_SEND | OF_REMOTE, 0),
    {.name = "access",
     .type = TYPE_WORDS,
     .id = WR_ACCESS,
     .offset = DRILL_NO_MEMBER,
     .of = OF_NEW_KEY,
     .words = access_words},
    POST("qkey", TYPE_NUM, WR_QKEY, OF_DGRAM, 0),
    POST("rqpn", TYPE_NUM, WR_RQPN, OF_DGRAM, ROLE_QPN),
    POST("pkey_index", TYPE_NUM, WR_PKEY_INDEX, OF_DGRAM, 0),
    POST("dip", TYPE_ADDR, WR_DIP, OF_DGRAM, 0),
    {0},
};

const struct drill_field drill_cqe_fields[] = {
    OWN("id", TYPE_NUM, CQE_ID),
    OWN_WORD("opcode", TYPE_WORD, CQE_OPCODE, wc_opcodes),
    OWN("len", TYPE_NUM, CQE_LEN),
    OWN("imm", TYPE_NUM, CQE_IMM),
    OWN_ROLE("inv", TYPE_NUM, CQE_INV, ROLE_RKEY),
    OWN_ROLE("src_qp", TYPE_NUM, CQE_SRC_QP, ROLE_QPN),
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
    OWN_OF_BITS("port", CMF_PORT, OF_PORTS | OF(DO_LISTEN), 16),
    OWN_OF("qp", TYPE_NAME, CMF_QP, OF(DO_CONNECT) | OF(DO_ACCEPT) | OF(DO_RTU)),
    OWN_OF("private", TYPE_DATA, CMF_PRIVATE, OF_PRIVATE),
    OWN_OF_BITS("resp_res", CMF_RESP_RES, OF_DEPTHS, 8),
    OWN_OF_BITS("init_depth", CMF_INIT_DEPTH, OF_DEPTHS, 8),
    OWN_OF("reason", TYPE_NUM, CMF_REASON, OF(DO_REJECT) | OF_EVENT(CM_EV_REJECTED)),
    OWN_OF_BITS("retry_count", CMF_RETRY, OF(DO_CONNECT), 8),
    OWN_OF_BITS("rnr_retry", CMF_RNR_RETRY, OF(DO_CONNECT) | OF(DO_ACCEPT), 8),
    OWN_OF("service_timeout", TYPE_NUM, CMF_SERVICE_TIMEOUT, OF(DO_MRA)),
    OWN_OF("status", TYPE_NUM, CMF_STATUS, OF(DO_SIDR_REPLY) | OF_EVENT(CM_EV_SIDR_REP)),
    {.name = "qpn",
     .type = TYPE_NUM,
     .role = ROLE_QPN,
     .id = CMF_QPN,
     .offset = DRILL_NO_MEMBER,
     .of =
         OF(DO_SIDR_REPLY) | OF_EVENT(CM_EV_REQ) | OF_EVENT(CM_EV_REP) | OF_EVENT(CM_EV_SIDR_REP)},
    OWN_OF("qkey", TYPE_NUM, CMF_QKEY, OF(DO_SIDR_REPLY) | OF_EVENT(CM_EV_SIDR_REP)),
    OWN_OF_BITS("cm_timeout", CMF_TIMEOUT, OF(DO_CONNECT), 8),
    OWN_OF_BITS("max_retries", CMF_RETRIES, OF(DO_CONNECT), 8),
    OWN_OF("udp", TYPE_FLAG, CMF_UDP, OF(DO_LISTEN)),
    OWN_OF_BITS("transport", CMF_TRANSPORT, OF(DO_CONNECT), 8),
    OWN_OF_BITS("sport", CMF_SPORT, OF_PORTS, 16),
    OWN_OF_BITS("pkey", CMF_PKEY, OF(DO_CONNECT), 16),
    OWN_OF("backlog", TYPE_NUM, CMF_BACKLOG, OF(DO_LISTEN)),
    {.name = "mtu",
     .type = TYPE_WORD,
     .id = CMF_MTU,
     .offset = DRILL_NO_MEMBER,
     .of = OF(DO_CONNECT),
     .words = mtu_words},
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
