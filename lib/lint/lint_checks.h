/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Private to lib/lint: the checks. Each returns true when the rule is broken, or may be
 * (lint_doubt), and has then set the texts for the expected and the seen value.
 */
#ifndef URNIC_LINT_CHECKS_H
#define URNIC_LINT_CHECKS_H

#include "lint_priv.h"

/* Set the doubt for a packet that is too long and was cut off: it may be several packets merged by
 * the host. Returns true. */
static inline bool lint_perhaps_merged(struct lint_ctx *c)
{
    return c->cut ? lint_doubt(c, LINT_UNDECIDABLE,
                               "perhaps several packets, merged by the host (GRO)")
                  : true;
}

/* Does the pad contradict the rest of a WRITE, `rest` octets? HDR-05 then reports it, and no rule
 * about lengths. */
bool lint_wrong_pad(const struct lint_ctx *c, uint32_t *rest);

#define LINT_CHECK(name) bool lint_##name(struct lint_ctx *c)

LINT_CHECK(wire_06);
LINT_CHECK(wire_08);
LINT_CHECK(wire_09);
LINT_CHECK(wire_10);
LINT_CHECK(wire_12);
LINT_CHECK(wire_19);
LINT_CHECK(wire_23);
LINT_CHECK(wire_29);
LINT_CHECK(wire_31);
LINT_CHECK(hdr_01);
LINT_CHECK(hdr_02);
LINT_CHECK(hdr_03);
LINT_CHECK(hdr_04);
LINT_CHECK(hdr_05);
LINT_CHECK(hdr_06);
LINT_CHECK(hdr_07);
LINT_CHECK(opc_01);
LINT_CHECK(opc_02);
LINT_CHECK(opc_03);
LINT_CHECK(opc_04);
LINT_CHECK(opc_05);
LINT_CHECK(icrc_01);
LINT_CHECK(icrc_02);
LINT_CHECK(icrc_03);
LINT_CHECK(icrc_04);
LINT_CHECK(icrc_06);
LINT_CHECK(icrc_08);
LINT_CHECK(key_01);
LINT_CHECK(key_02);
LINT_CHECK(key_07);
LINT_CHECK(psn_01);
LINT_CHECK(req_02);
LINT_CHECK(req_06);
LINT_CHECK(req_10);
LINT_CHECK(req_12);
LINT_CHECK(req_28);
LINT_CHECK(req_30);
LINT_CHECK(req_31);
LINT_CHECK(ack_02);
LINT_CHECK(ack_05);
LINT_CHECK(ack_06);
LINT_CHECK(ack_07);
LINT_CHECK(ack_08);
LINT_CHECK(ack_10);
LINT_CHECK(ack_11);
LINT_CHECK(rnr_01);
LINT_CHECK(rnr_02);
LINT_CHECK(rnr_05);
LINT_CHECK(tmr_05);
LINT_CHECK(rtx_05);
LINT_CHECK(rsp_06);
LINT_CHECK(rsp_10);
LINT_CHECK(rsp_12);
LINT_CHECK(rsp_15);
LINT_CHECK(rsp_16);
LINT_CHECK(rsp_22);
LINT_CHECK(rd_05);
LINT_CHECK(rd_10);
LINT_CHECK(rd_12);
LINT_CHECK(atm_03);
LINT_CHECK(atm_08);
LINT_CHECK(atm_12);
LINT_CHECK(atm_13);
LINT_CHECK(uc_02);
LINT_CHECK(uc_07);
LINT_CHECK(ud_01);
LINT_CHECK(ud_09);
LINT_CHECK(ud_10);
LINT_CHECK(gsi_01);
LINT_CHECK(gsi_02);
LINT_CHECK(gsi_03);
LINT_CHECK(gsi_04);
LINT_CHECK(cm_02);
LINT_CHECK(cm_07);
LINT_CHECK(cm_14);
LINT_CHECK(cm_15);
LINT_CHECK(cm_18);
LINT_CHECK(cm_24);

#endif
