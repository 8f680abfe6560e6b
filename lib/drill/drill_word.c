/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Words shared by several fields or statements, and the names of opcodes.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "cm.h"
#include "drill_field.h"
#include "engine.h"

const struct drill_word drill_statuses[] = {
    {"success", WC_SUCCESS},
    {"loc_len_err", WC_LOC_LEN_ERR},
    {"loc_qp_op_err", WC_LOC_QP_OP_ERR},
    {"loc_prot_err", WC_LOC_PROT_ERR},
    {"wr_flush_err", WC_WR_FLUSH_ERR},
    {"mw_bind_err", WC_MW_BIND_ERR},
    {"bad_resp_err", WC_BAD_RESP_ERR},
    {"loc_access_err", WC_LOC_ACCESS_ERR},
    {"rem_inv_req_err", WC_REM_INV_REQ_ERR},
    {"rem_access_err", WC_REM_ACCESS_ERR},
    {"rem_op_err", WC_REM_OP_ERR},
    {"rem_inv_rd_req_err", WC_REM_INV_RD_REQ_ERR},
    {"retry_exc_err", WC_RETRY_EXC_ERR},
    {"rnr_retry_exc_err", WC_RNR_RETRY_EXC_ERR},
    {"fatal_err", WC_FATAL_ERR},
    {"general_err", WC_GENERAL_ERR},
    {0},
};

const struct drill_word drill_events[] = {
    {"cq_err", EVT_CQ_ERR},
    {"qp_fatal", EVT_QP_FATAL},
    {"qp_req_err", EVT_QP_REQ_ERR},
    {"qp_access_err", EVT_QP_ACCESS_ERR},
    {"comm_est", EVT_COMM_EST},
    {"sq_drained", EVT_SQ_DRAINED},
    {"srq_err", EVT_SRQ_ERR},
    {"srq_limit_reached", EVT_SRQ_LIMIT_REACHED},
    {"qp_last_wqe_reached", EVT_QP_LAST_WQE_REACHED},
    {0},
};

const struct drill_word drill_states[] = {
    {"reset", QPS_RESET}, {"init", QPS_INIT}, {"rtr", QPS_RTR}, {"rts", QPS_RTS},
    {"sqd", QPS_SQD},     {"sqe", QPS_SQE},   {"err", QPS_ERR}, {0},
};

const struct drill_word drill_errnos[] = {
    {"EINVAL", EINVAL},
    {"EAGAIN", EAGAIN},
    {"ENOMEM", ENOMEM},
    {"EBUSY", EBUSY},
    {"ENOSPC", ENOSPC},
    {"EEXIST", EEXIST},
    {"ENOENT", ENOENT},
    {"EACCES", EACCES},
    {"EOPNOTSUPP", EOPNOTSUPP},
    {"EINPROGRESS", EINPROGRESS},
    {"EADDRINUSE", EADDRINUSE},
    {"EMSGSIZE", EMSGSIZE},
    {0},
};

const struct drill_word drill_cm_attrs[] = {
    {"req", CM_REQ},           {"mra", CM_MRA},   {"rej", CM_REJ},   {"rep", CM_REP},
    {"rtu", CM_RTU},           {"dreq", CM_DREQ}, {"drep", CM_DREP}, {"sidr_req", CM_SIDR_REQ},
    {"sidr_rep", CM_SIDR_REP}, {"lap", CM_LAP},   {"apr", CM_APR},   {0},
};

const struct drill_word drill_cm_events[] = {
    {"request", CM_EV_REQ},
    {"reply", CM_EV_REP},
    {"established", CM_EV_ESTABLISHED},
    {"rejected", CM_EV_REJECTED},
    {"unreachable", CM_EV_UNREACHABLE},
    {"disconnected", CM_EV_DISCONNECTED},
    {"timewait_exit", CM_EV_TIMEWAIT_EXIT},
    {"sidr_reply", CM_EV_SIDR_REP},
    {"sidr_request", CM_EV_SIDR_REQ},
    {0},
};

const struct drill_word *drill_word_find(const struct drill_word *table, const char *name)
{
    for (const struct drill_word *w = table; w && w->name; w++)
        if (!strcmp(w->name, name))
            return w;
    return NULL;
}

const char *drill_word_name(const struct drill_word *table, uint64_t value)
{
    for (const struct drill_word *w = table; w && w->name; w++)
        if (w->value == value)
            return w->name;
    return "?";
}

/* ---- opcodes ---- */

static bool same_word(const char *opcode, const char *name)
{
    if (!strncmp(opcode, "RC_", 3))
        opcode += 3;
    for (; *opcode && *name; opcode++, name++)
        if (tolower((unsigned char)*opcode) != *name)
            return false;
    return !*opcode && !*name;
}

#define ACK_OP(extra) (WIRE_ACKNOWLEDGE | (extra))
#define NAK_OP(syn)   ACK_OP(DRILL_OP_NAK | (syn) << 16)

int64_t drill_opcode_find(const char *name)
{
    static const struct drill_word extra[] = {
        {"ack", ACK_OP(DRILL_OP_ACK)},
        {"rnr_nak", ACK_OP(DRILL_OP_RNR)},
        {"nak_seq", NAK_OP(WIRE_SYN_NAK_SEQ)},
        {"nak_inv", NAK_OP(WIRE_SYN_NAK_INV)},
        {"nak_access", NAK_OP(WIRE_SYN_NAK_ACCESS)},
        {"nak_op", NAK_OP(WIRE_SYN_NAK_OP)},
        {"nak_rd", NAK_OP(WIRE_SYN_NAK_RD)},
        {"cm", WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY) | DRILL_OP_CM},
        {"opcode", DRILL_OP_RAW},
        {0},
    };
    const struct drill_word *w = drill_word_find(extra, name);
    if (w)
        return (int64_t)w->value;
    for (unsigned i = 0; i < 256; i++)
        if (wire_opcodes[i].name && same_word(wire_opcodes[i].name, name))
            return i;
    for (unsigned i = 0; i < 32; i++)
        if (wire_selective[i].name && same_word(wire_selective[i].name, name))
            return DRILL_OP_SELECTIVE | i;
    return -1;
}

const struct wire_opcode_info *drill_opcode_info(uint64_t op)
{
    return op & DRILL_OP_SELECTIVE ? &wire_selective[op & 31] : &wire_opcodes[op & 0xFF];
}
