/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Private to lib/drill: the vocabulary. Tables of statements, of their operands and fields, and of
 * the words for a field's values. The parser, the packet builder and the comparison all read them:
 * one line here adds a field.
 */
#ifndef URNIC_DRILL_FIELD_H
#define URNIC_DRILL_FIELD_H

#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

enum drill_type {
    TYPE_FLAG,   /* name or !name */
    TYPE_NUM,    /* number or sum, lo..hi, *, ?name */
    TYPE_TIME,   /* number with a unit */
    TYPE_WORD,   /* one of `words` */
    TYPE_WORDS,  /* some of `words`, a comma between them; `none` */
    TYPE_NAME,   /* of an object */
    TYPE_DATA,   /* octets */
    TYPE_ADDR,   /* "10.0.0.1" */
    TYPE_MAC,    /* "02:00:00:00:00:01" */
    TYPE_RANGES, /* M+16,100 or several with `and` between them */
    TYPE_PATCH,  /* bth+4 0x80 */
    TYPE_TEXT,   /* "dcqcn:paper" */
};

/* The meaning of an object's name in a number. */
enum drill_role { ROLE_VALUE, ROLE_VA, ROLE_RKEY, ROLE_LKEY, ROLE_QPN, ROLE_PSN, ROLE_SRQN };

/* The default rights of regions and queue pairs. */
#define DRILL_ACCESS (MEM_LOCAL_WRITE | MEM_REMOTE_ANY | MEM_MW_BIND | MEM_FLUSH_GLOBAL)

struct drill_word {
    const char *name; /* NULL ends the table */
    uint64_t value;
};

#define DRILL_NO_MEMBER 0xFFFFu

struct drill_field {
    const char *name; /* NULL ends the table */
    uint8_t type;     /* enum drill_type */
    uint8_t role;     /* enum drill_role */
    uint8_t size;     /* octets of the member */
    uint8_t id;       /* the statement's own */
    uint16_t offset;  /* of the member in the statement's struct; DRILL_NO_MEMBER */
    uint16_t headers; /* packets: WIRE_H_*, one of which must be there; 0 = always is */
    uint8_t bits;     /* of its number; 0 = as many as its member or its message has, or 32 */
    uint64_t of;      /* bits 1 << drill_use(): uses that take it; 0 = all with this table */
    const struct drill_word *words;
};

/* Fields of packets: members of struct wire_pkt, and these (ids). */
enum {
    PKT_MEMBER,
    PKT_APSN, /* the PSN itself, not counted from the connection's first */
    PKT_CREDITS,
    PKT_CUT,
    PKT_DATA,
    PKT_DF,
    PKT_DPORT,
    PKT_DSCP,
    PKT_ECN,
    PKT_EXTRA,
    PKT_ICRC,
    PKT_IMM,
    PKT_IP_CSUM,
    PKT_LEN,
    PKT_MF,
    PKT_PAD,
    PKT_PATCH,
    PKT_OCTET,
    PKT_PSN,
    PKT_QP,
    PKT_TIMER,
    PKT_UDP_CSUM,
    PKT_VLAN,
};
extern const struct drill_field drill_packet_fields[];

/* Fields of CM messages: members of struct cm_msg, and these. */
enum {
    MAD_MEMBER,
    MAD_PORT = 100,
    MAD_PRIVATE,
    MAD_SRC_IP,
    MAD_SRC_PORT,
    MAD_IP_VERSION,
    MAD_METHOD,
    MAD_CLASS_VERSION,
    MAD_LEN,
    MAD_CLASS
};
extern const struct drill_field drill_mad_fields[];

/* Attributes of queue pairs; QPF_ATTR + n is the attribute of mask bit n. */
enum {
    QPF_SIG_ALL = 1,
    QPF_CQ,
    QPF_RECV_CQ,
    QPF_SRQ,
    QPF_PD,
    QPF_MAX_SEND,
    QPF_MAX_RECV,
    QPF_MAX_SGE,
    QPF_MAX_INLINE,
    QPF_RECOVERY,
    QPF_CREDITS,
    QPF_CC,
    QPF_PEER,
    QPF_TCLASS,
    QPF_HOP_LIMIT,
    QPF_FLOW_LABEL,
    QPF_ATTR = 32,
    QPF_QKEY = QPF_ATTR + 6,
    QPF_PATH_MTU = QPF_ATTR + 8,
    QPF_RQ_PSN = QPF_ATTR + 12,
    QPF_SQ_PSN = QPF_ATTR + 16,
    QPF_DEST_QPN = QPF_ATTR + 20,
};
extern const struct drill_field drill_qp_fields[];

enum {
    DEV_PKEY = 1,
    DEV_MTU,
    DEV_WINDOW,
    DEV_STRICT,
    DEV_VLAN,
    DEV_LOOPBACK,
    DEV_CC,
    DEV_LENIENT,
    DEV_RATE,
    DEV_RECORDS,
    DEV_NAK_CONFIRM,
    DEV_PERSISTENT,
    DEV_RNR_ON_RD_RES,
    DEV_MAX_MR,
    DEV_MAX_CONNS
};
extern const struct drill_field drill_device_fields[];

enum {
    OBJ_SIZE = 1,
    OBJ_ACCESS,
    OBJ_PD,
    OBJ_VA,
    OBJ_LIMIT,
    OBJ_MAX_WR,
    OBJ_RKEY,
    OBJ_CQ,
    OBJ_XRCD
};
extern const struct drill_field drill_object_fields[];

enum {
    WR_ID = 1,
    WR_FROM,
    WR_TO,
    WR_RKEY,
    WR_IMM,
    WR_UNSIGNALED,
    WR_FENCE,
    WR_SOLICITED,
    WR_INLINE,
    WR_ADD,
    WR_COMPARE,
    WR_SWAP,
    WR_INV,
    WR_LEN,
    WR_LKEY,
    WR_VA,
    WR_MW,
    WR_NEW_RKEY,
    WR_ACCESS,
    WR_QKEY,
    WR_RQPN,
    WR_PKEY_INDEX,
    WR_DIP,
    WR_MR,
    WR_SRQN,
    WR_FETH
};
extern const struct drill_field drill_post_fields[];

enum {
    CQE_ID = 1,
    CQE_OPCODE,
    CQE_LEN,
    CQE_IMM,
    CQE_INV,
    CQE_SRC_QP,
    CQE_GRH,
    CQE_SOLICITED,
    CQE_PKEY_INDEX
};
extern const struct drill_field drill_cqe_fields[];

enum {
    INFO_EPSN = 1,
    INFO_MSN,
    INFO_SQ_PSN,
    INFO_UNA,
    INFO_SQ_USED,
    INFO_RQ_USED,
    INFO_INFLIGHT,
    INFO_RD_ATOMIC,
    INFO_RETRANSMITS,
    INFO_TIMEOUTS,
    INFO_AGREED
};
extern const struct drill_field drill_info_fields[];

enum {
    CMF_PORT = 1,
    CMF_QP,
    CMF_PRIVATE,
    CMF_RESP_RES,
    CMF_INIT_DEPTH,
    CMF_REASON,
    CMF_RETRY,
    CMF_RNR_RETRY,
    CMF_SERVICE_TIMEOUT,
    CMF_STATUS,
    CMF_QPN,
    CMF_QKEY,
    CMF_TIMEOUT,
    CMF_RETRIES,
    CMF_UDP,
    CMF_MTU,
    CMF_BACKLOG,
    CMF_TRANSPORT,
    CMF_SPORT,
    CMF_PKEY,
};
extern const struct drill_field drill_cm_fields[];

/* The action of `copies` on copies that the engine hands over. */
enum { COPIES_HOLD, COPIES_GO, COPIES_FAIL, COPIES_FREE };

/* Words that several statements share (drill_word.c). */
extern const struct drill_word drill_statuses[], drill_events[], drill_states[], drill_cm_attrs[],
    drill_cm_events[], drill_errnos[];

/* Opcodes: RC ones without prefix ("write_first"), others with theirs ("uc_send_only", "cnp",
 * "sr_send_last"), and names for kinds of acknowledgements. */
#define DRILL_OP_SELECTIVE 0x0100u
#define DRILL_OP_CM        0x0200u /* a MAD for QP1 */
#define DRILL_OP_ACK       0x0400u /* a positive acknowledgement */
#define DRILL_OP_RNR       0x0800u
#define DRILL_OP_NAK       0x1000u /* bits 16..23: the syndrome */
#define DRILL_OP_RAW       0x2000u /* by number: no extension headers of its own */
/* The opcode of a name, with DRILL_OP_*; -1: there is none. */
int64_t drill_opcode_find(const char *name);
/* The wire format's entry for such an opcode; never NULL. */
const struct wire_opcode_info *drill_opcode_info(uint64_t op);

/* struct drill_field.headers: selective repeat has fields of its own. */
#define DRILL_H_SELECTIVE 0x8000u

/* ---- statements ---- */

enum drill_kind {
    DO_ACCEPT,
    DO_ADDR,
    DO_ANY,
    DO_CM_EVENT,
    DO_CONNECT,
    DO_COPIES,
    DO_COUNTER,
    DO_CQ,
    DO_CQE,
    DO_DESTROY,
    DO_DEVICE,
    DO_DISCONNECT,
    DO_EVENT,
    DO_EXPECT,
    DO_FILL,
    DO_FR,
    DO_GATHER,
    DO_IGNORE,
    DO_INFO,
    DO_INJECT,
    DO_IPV4,
    DO_IS,
    DO_JOIN,
    DO_LEAVE,
    DO_LIMIT,
    DO_LISTEN,
    DO_MEM,
    DO_MODIFY,
    DO_MOVE,
    DO_MR,
    DO_MRA,
    DO_MW,
    DO_NOTHING,
    DO_PATIENCE,
    DO_PD,
    DO_PORT,
    DO_POST,
    DO_QP,
    DO_QUERY,
    DO_RECV,
    DO_REJECT,
    DO_RELEASE,
    DO_REMOTE,
    DO_REPEAT,
    DO_RESIZE,
    DO_RTU,
    DO_SET,
    DO_SIDR,
    DO_SIDR_REPLY,
    DO_SRQ,
    DO_STATE,
    DO_UNLISTEN,
    DO_WAIT,
    DO_WIRE,
};

#define VERB_WIRE  1u /* has a meaning on the wire */
#define VERB_CALL  2u /* may fail: `-> ERRNO` */
#define VERB_AWAIT 4u /* waits for something: its time is a limit, and may be a range */

/* Uses without a word of their own: numbers above those of operations and statements. */
#define DRILL_USE_RECV     31u
#define DRILL_USE_CM_EVENT 54u

/* The syntax of a statement: its word, its operands in order, its fields. Operands: n new name, o
 * name of an object, s state, w word of `words`, e sum, v number as a field has it (a range, *,
 * ?name), t time, d data, r range of memory, a address, p packet's opcode, = the sign itself, { a
 * block, which ends the line; `?` after one: it may be missing. */
struct drill_verb {
    const char *word;
    enum drill_kind kind;
    const char *operands;
    const struct drill_word *words;
    const struct drill_field *fields;
    unsigned flags; /* VERB_* */
};
extern const struct drill_verb drill_verbs[];

/* Is it one of drill_mad_fields? */
bool drill_field_is_mad(const struct drill_field *f);
/* The entry of a word or name; NULL: it isn't in the table. */
const struct drill_verb *drill_verb_find(const char *word);
const struct drill_field *drill_field_find(const struct drill_field *table, const char *name);
const struct drill_word *drill_word_find(const struct drill_word *table, const char *name);
/* The name of a value; "?" = not there. */
const char *drill_word_name(const struct drill_word *table, uint64_t value);

#endif
