/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The counters of an engine, one a row. `urnic stat`, `urnic top`, the files for Prometheus and the
 * tables of the documentation take names and rules from here.
 */
#ifndef URNIC_ENGINE_COUNTERS_H
#define URNIC_ENGINE_COUNTERS_H

/* name, rule */
#define ENGINE_COUNTERS(X)                                                                         \
    X(none, "")                                                                                    \
    X(rx_packets, "")                                                                              \
    X(rx_bytes, "")                                                                                \
    X(tx_packets, "")                                                                              \
    X(tx_bytes, "")                                                                                \
    /* drops, one per dropped frame (VAL-06, appendix C); `urnic top` adds them up */              \
    X(rx_not_roce, "WIRE-02")                                                                      \
    X(rx_not_for_us, "WIRE-30")                                                                    \
    X(rx_truncated, "WIRE-09")                                                                     \
    X(rx_ip_options, "WIRE-08")                                                                    \
    X(rx_ip_fragment, "WIRE-10")                                                                   \
    X(rx_bad_ip_csum, "WIRE-12")                                                                   \
    X(rx_bad_addr, "WIRE-29")                                                                      \
    X(rx_bad_udp, "WIRE-23")                                                                       \
    X(rx_bad_udp_csum, "WIRE-24")                                                                  \
    X(rx_bad_tver, "HDR-02")                                                                       \
    X(rx_bad_opcode, "OPC-01")                                                                     \
    X(rx_bad_length, "OPC-03")                                                                     \
    X(rx_icrc_err, "ICRC-08")                                                                      \
    X(rx_bad_qpn, "HDR-07")                                                                        \
    X(rx_qp_type_mismatch, "OPC-02")                                                               \
    X(rx_bad_qp_state, "VAL-04")                                                                   \
    X(rx_addr_mismatch, "VAL-03")                                                                  \
    X(rx_bad_pkey, "KEY-03")                                                                       \
    X(rx_bad_qkey, "KEY-06")                                                                       \
    X(rx_bad_srcqp, "UD-09")                                                                       \
    X(rx_bad_aeth, "ACK-02")                                                                       \
    X(rx_ghost_ack, "REQ-21")                                                                      \
    X(rx_resp_out_of_window, "REQ-21")                                                             \
    X(rx_resp_unexpected, "REQ-28")                                                                \
    X(rx_dup_throttled, "SEC-16")                                                                  \
    X(dup_rd_atomic_miss, "RD-09")                                                                 \
    X(rx_mcast_no_group, "UD-11")                                                                  \
    X(rx_q_full, "RSP-29")                                                                         \
    X(rx_rate_limited, "SEC-09") /* the sender may be guessing */                                  \
    X(rx_copy_pending, "RSP-29") /* record pool empty: treated as loss */                          \
    X(uc_drop_msg, "UC-04")                                                                        \
    X(ud_drop_no_wqe, "UD-06")                                                                     \
    X(ud_drop_too_long, "UD-07")                                                                   \
    /* events of the protocol; names as Linux's hw_counters where the meaning is the same */       \
    X(rx_write_requests, "CTR-01")                                                                 \
    X(rx_read_requests, "CTR-01")                                                                  \
    X(rx_atomic_requests, "CTR-01")                                                                \
    X(rx_flush_requests, "ATM-13")                                                                 \
    X(duplicate_request, "RSP-20")                                                                 \
    X(out_of_sequence, "RSP-02")                                                                   \
    X(packet_seq_err, "ACK-06")                                                                    \
    X(implied_nak_seq_err, "REQ-24")                                                               \
    X(local_ack_timeout_err, "TMR-04")                                                             \
    X(rnr_nak_retry_err, "RNR-06")                                                                 \
    X(out_of_buffer, "RNR-01")                                                                     \
    X(req_cqe_error, "REQ-36")                                                                     \
    X(resp_cqe_error, "RSP-23")                                                                    \
    X(req_cqe_flush_error, "QP-12")                                                                \
    X(resp_cqe_flush_error, "QP-12")                                                               \
    X(req_remote_invalid_request, "ACK-06")                                                        \
    X(req_remote_access_errors, "ACK-06")                                                          \
    X(resp_remote_access_errors, "RSP-14")                                                         \
    X(resp_local_length_error, "RSP-12")                                                           \
    X(tx_rnr_nak, "RNR-01")                                                                        \
    X(tx_nak_seq, "ACK-08")                                                                        \
    X(tx_nak_inv_req, "RSP-08")                                                                    \
    X(tx_nak_rem_access, "RSP-14")                                                                 \
    X(tx_nak_rem_op, "RSP-13")                                                                     \
    X(tx_ack, "ACK-03")                                                                            \
    X(guess_limit, "SEC-09") /* times that a sender was cut off for a second */                    \
    X(rx_nak_forged, "SEC-06")                                                                     \
    X(tx_retransmit, "RTX-01")                                                                     \
    X(retry_exceeded_err, "TMR-05")                                                                \
    X(retry_rnr_exceeded_err, "RNR-06")                                                            \
    X(cq_overflow, "CQ-05")                                                                        \
    X(np_ecn_marked_roce_packets, "CC-03")                                                         \
    X(np_cnp_sent, "CC-03")                                                                        \
    X(rp_cnp_handled, "CC-08")                                                                     \
    X(rp_cnp_ignored, "CC-08")                                                                     \
    X(rp_cnp_unearned, "SEC-17")                                                                   \
    X(roce_slow_restart, "CC-20")                                                                  \
    X(roce_slow_restart_cnps, "CC-29")                                                             \
    X(roce_adp_retrans, "LR-10")                                                                   \
    X(roce_adp_retrans_to, "LR-10")                                                                \
    X(tx_probe, "LR-12")                                                                           \
    X(tx_sack, "LR-02")                                                                            \
    X(rx_sack, "LR-03")                                                                            \
    X(rx_placed_early, "LR-06")

enum engine_counter {
#define X(name, rule) ENGINE_C_##name,
    ENGINE_COUNTERS(X)
#undef X
        ENGINE_COUNTER_MAX
};
extern const char *const engine_counter_names[ENGINE_COUNTER_MAX];
extern const char *const engine_counter_rules[ENGINE_COUNTER_MAX];

#endif
