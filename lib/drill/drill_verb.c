/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table of statements and their syntax.
 */
#include <string.h>

#include "drill_field.h"
#include "engine.h"

static const struct drill_word qp_types[] = {
    {"rc", QP_RC},           {"uc", QP_UC},           {"ud", QP_UD},
    {"xrc_ini", QP_XRC_INI}, {"xrc_tgt", QP_XRC_TGT}, {0},
};
static const struct drill_word wr_opcodes[] = {
    {"write", WR_RDMA_WRITE},
    {"write_imm", WR_RDMA_WRITE_WITH_IMM},
    {"send", WR_SEND},
    {"send_imm", WR_SEND_WITH_IMM},
    {"send_inv", WR_SEND_WITH_INV},
    {"read", WR_RDMA_READ},
    {"cmp_swap", WR_ATOMIC_CMP_AND_SWP},
    {"fetch_add", WR_ATOMIC_FETCH_AND_ADD},
    {"local_inv", WR_LOCAL_INV},
    {"bind_mw", WR_BIND_MW},
    {"reg_mr", WR_REG_MR},
    {"flush", WR_FLUSH},
    {"atomic_write", WR_ATOMIC_WRITE},
    {0},
};
static const struct drill_word mw_types[] = {{"type1", 1}, {"type2", 2}, {0}};
static const struct drill_word port_words[] = {{"full", 1}, {"free", 0}, {0}};
static const struct drill_word copies_words[] = {
    {"hold", COPIES_HOLD}, {"go", COPIES_GO}, {"fail", COPIES_FAIL}, {"free", COPIES_FREE}, {0}};
static const struct drill_word gather_words[] = {{"fail", 1}, {"ok", 0}, {0}};
static const struct drill_word addr_words[] = {{"add", 1}, {"del", 0}, {0}};

const struct drill_verb drill_verbs[] = {
    {"<", DO_INJECT, "p", NULL, drill_packet_fields, VERB_WIRE},
    {">", DO_EXPECT, "p", NULL, drill_packet_fields, VERB_WIRE | VERB_AWAIT},
    {"accept", DO_ACCEPT, "o", NULL, drill_cm_fields, VERB_CALL},
    {"addr", DO_ADDR, "wa", addr_words, NULL, VERB_CALL},
    {"any", DO_ANY, "{", NULL, NULL, VERB_WIRE},
    {"cm_event", DO_CM_EVENT, "wn", drill_cm_events, drill_cm_fields, VERB_AWAIT},
    {"connect", DO_CONNECT, "n", NULL, drill_cm_fields, VERB_CALL},
    {"copies", DO_COPIES, "we?", copies_words, NULL, 0},
    {"counter", DO_COUNTER, "nv", NULL, NULL, 0},
    {"cq", DO_CQ, "n", NULL, drill_object_fields, 0},
    {"cqe", DO_CQE, "ow", drill_statuses, drill_cqe_fields, VERB_AWAIT},
    {"destroy", DO_DESTROY, "o", NULL, NULL, VERB_CALL},
    {"device", DO_DEVICE, "", NULL, drill_device_fields, 0},
    {"disconnect", DO_DISCONNECT, "o", NULL, drill_cm_fields, VERB_CALL},
    {"event", DO_EVENT, "ow", drill_events, NULL, VERB_AWAIT},
    {"fill", DO_FILL, "rd", NULL, NULL, 0},
    {"fr", DO_FR, "ne", NULL, drill_object_fields, VERB_CALL},
    {"gather", DO_GATHER, "we?", gather_words, NULL, 0},
    {"ignore", DO_IGNORE, "p", NULL, drill_packet_fields, VERB_WIRE},
    {"info", DO_INFO, "o", NULL, drill_info_fields, 0},
    {"is", DO_IS, "ev", NULL, NULL, 0},
    {"ipv4", DO_IPV4, "", NULL, NULL, VERB_WIRE},
    {"join", DO_JOIN, "oa", NULL, NULL, VERB_CALL},
    {"leave", DO_LEAVE, "oa", NULL, NULL, VERB_CALL},
    {"limit", DO_LIMIT, "oe", NULL, NULL, VERB_CALL},
    {"listen", DO_LISTEN, "n", NULL, drill_cm_fields, VERB_CALL},
    {"mem", DO_MEM, "r=d", NULL, NULL, 0},
    {"modify", DO_MODIFY, "o", NULL, drill_qp_fields, VERB_CALL},
    {"move", DO_MOVE, "ow", drill_states, drill_qp_fields, VERB_CALL},
    {"mr", DO_MR, "ne", NULL, drill_object_fields, VERB_WIRE | VERB_CALL},
    {"mra", DO_MRA, "o", NULL, drill_cm_fields, VERB_CALL},
    {"mw", DO_MW, "nw", mw_types, drill_object_fields, VERB_CALL},
    {"nothing", DO_NOTHING, "t", NULL, NULL, VERB_WIRE},
    {"patience", DO_PATIENCE, "t", NULL, NULL, VERB_WIRE},
    {"pd", DO_PD, "n", NULL, NULL, VERB_CALL},
    {"port", DO_PORT, "w", port_words, NULL, 0},
    {"post", DO_POST, "ow", wr_opcodes, drill_post_fields, VERB_CALL},
    {"qp", DO_QP, "nws?", qp_types, drill_qp_fields, VERB_WIRE | VERB_CALL},
    {"query", DO_QUERY, "o", NULL, drill_qp_fields, 0},
    {"recv", DO_RECV, "o", NULL, drill_post_fields, VERB_WIRE | VERB_CALL},
    {"reject", DO_REJECT, "o", NULL, drill_cm_fields, VERB_CALL},
    {"release", DO_RELEASE, "o", NULL, NULL, 0},
    {"remote", DO_REMOTE, "ne", NULL, drill_object_fields, VERB_WIRE},
    {"repeat", DO_REPEAT, "e{", NULL, NULL, VERB_WIRE},
    {"resize", DO_RESIZE, "oe", NULL, NULL, VERB_CALL},
    {"rtu", DO_RTU, "o", NULL, drill_cm_fields, VERB_CALL},
    {"set", DO_SET, "ne", NULL, NULL, VERB_WIRE},
    {"sidr", DO_SIDR, "n", NULL, drill_cm_fields, VERB_CALL},
    {"sidr_reply", DO_SIDR_REPLY, "o", NULL, drill_cm_fields, VERB_CALL},
    {"srq", DO_SRQ, "n", NULL, drill_object_fields, VERB_CALL},
    {"state", DO_STATE, "ow", drill_states, NULL, 0},
    {"unlisten", DO_UNLISTEN, "o", NULL, NULL, 0},
    {"wait", DO_WAIT, "t", NULL, NULL, VERB_WIRE},
    {"wire", DO_WIRE, "n?", NULL, NULL, VERB_WIRE},
    {0},
};

const struct drill_verb *drill_verb_find(const char *word)
{
    for (const struct drill_verb *v = drill_verbs; v->word; v++)
        if (!strcmp(v->word, word))
            return v;
    return NULL;
}
