/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Private to lib/lint: the checks. Each is true when the rule is broken, or may be (lint_doubt),
 * and has then said what was expected and what was seen.
 */
#ifndef URNIC_LINT_CHECKS_H
#define URNIC_LINT_CHECKS_H

#include "lint_priv.h"

#define LINT_CHECKS(X)                                                                             \
    X(wire_06)                                                                                     \
    X(wire_08)                                                                                     \
    X(wire_09)                                                                                     \
    X(wire_10)                                                                                     \
    X(wire_12)                                                                                     \
    X(wire_19)                                                                                     \
    X(wire_23)                                                                                     \
    X(wire_29)                                                                                     \
    X(wire_31)                                                                                     \
    X(hdr_01)                                                                                      \
    X(hdr_02)                                                                                      \
    X(hdr_03)                                                                                      \
    X(hdr_04)                                                                                      \
    X(hdr_05)                                                                                      \
    X(hdr_06)                                                                                      \
    X(hdr_07) X(opc_01) X(opc_02) X(opc_03) X(opc_04) X(opc_05) X(icrc_02) X(icrc_03) X(icrc_06)   \
        X(icrc_08) X(key_01) X(key_02) X(key_07) X(psn_01) X(req_02) X(req_06) X(req_10) X(req_12) \
            X(req_28) X(req_30) X(req_31) X(ack_02) X(ack_05) X(ack_06) X(ack_07) X(ack_08)        \
                X(ack_11) X(rnr_01) X(rnr_02) X(rnr_05) X(tmr_05) X(rtx_05) X(rsp_06) X(rsp_10)    \
                    X(rsp_12) X(rsp_15) X(rsp_16) X(rsp_22) X(rd_05) X(rd_10) X(rd_12) X(atm_03)   \
                        X(atm_08) X(uc_02) X(uc_07) X(ud_01) X(ud_09) X(ud_10) X(gsi_01) X(gsi_02) \
                            X(gsi_03) X(gsi_04) X(cm_02) X(cm_07) X(cm_14) X(cm_15) X(cm_18)       \
                                X(cm_24)

#define X(name) bool lint_##name(struct lint_ctx *c);
LINT_CHECKS(X)
#undef X

#endif
