/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The fields that a statement accepts. Other fields are refused when the script is read: a field
 * without effect would be a test that tests nothing.
 */
#include "cm.h"
#include "drill_script.h"
#include "engine.h"

_Static_assert((int)DO_WIRE < (int)DRILL_USE_CM_EVENT, "statements and events share 64 bits");
_Static_assert((int)WR_OPCODE_MAX <= (int)DRILL_USE_RECV, "operations and recv share 64 bits");

static unsigned use_of(const struct drill_stmt *st)
{
    switch (st->verb->kind) {
    case DO_POST:
        return (unsigned)st->word;
    case DO_RECV:
        return DRILL_USE_RECV;
    case DO_CM_EVENT:
        return DRILL_USE_CM_EVENT + (unsigned)st->word;
    default:
        return st->verb->kind;
    }
}

/* Words for acknowledgements name a kind: `nak_seq` has no credits. A script may check the whole
 * syndrome all the same, but can't send another one. */
static bool takes_syndrome(const struct drill_stmt *st, int id)
{
    uint64_t op = st->word;
    if (id == PKT_CREDITS)
        return !(op & (DRILL_OP_RNR | DRILL_OP_NAK));
    if (id == PKT_TIMER)
        return !(op & (DRILL_OP_ACK | DRILL_OP_NAK));
    return st->verb->kind != DO_INJECT || !(op & (DRILL_OP_ACK | DRILL_OP_RNR | DRILL_OP_NAK));
}

static bool takes_packet_field(const struct drill_stmt *st, const struct drill_field *f)
{
    uint64_t op = st->word;
    unsigned headers = drill_opcode_info(op)->headers;
    if (op & DRILL_OP_RAW && st->verb->kind == DO_INJECT)
        headers = 0; /* it is sent with a BTH only */
    if (op & DRILL_OP_CM && (f->id == PKT_LEN || f->id == PKT_DATA))
        return false;
    if (f->headers == WIRE_H_AETH && f->offset != offsetof(struct wire_pkt, msn) &&
        !takes_syndrome(st, f->id))
        return false;
    if (f->headers == DRILL_H_SELECTIVE)
        return op & DRILL_OP_SELECTIVE;
    return !f->headers || f->headers & headers;
}

static bool takes_mad_field(const struct drill_stmt *st, const struct drill_field *f)
{
    unsigned attr = drill_cm_attr(st);
    bool request = attr == CM_REQ || attr == CM_SIDR_REQ;
    switch (f->id) {
    case MAD_MEMBER:
        return cm_msg_bits(attr, f->offset);
    case MAD_PORT:
        return request || attr == CM_SIDR_REP;
    case MAD_SRC_IP:
    case MAD_SRC_PORT:
    case MAD_IP_VERSION: /* of the IP header in front of a request's private data */
        return request;
    default:
        return true;
    }
}

bool drill_takes(const struct drill_stmt *st, const struct drill_field *f)
{
    if (f->of && !(f->of >> use_of(st) & 1))
        return false;
    if (drill_field_is_mad(f))
        return takes_mad_field(st, f);
    return st->verb->fields != drill_packet_fields || takes_packet_field(st, f);
}

const struct drill_field *drill_again(const struct drill_stmt *st, const struct drill_field *f)
{
    bool list = f->type == TYPE_PATCH || (st->verb->kind == DO_DEVICE && f->id == DEV_PKEY);
    for (const struct drill_arg *a = list ? NULL : st->args; a; a = a->next)
        if (a->field && (a->field == f || (f->offset == DRILL_NO_MEMBER && a->field->id == f->id &&
                                           drill_field_is_mad(a->field) == drill_field_is_mad(f))))
            return a->field;
    return NULL;
}
