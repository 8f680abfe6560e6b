/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Private to lib/drill: a run. The bench is the script's counterpart: an engine and a connection
 * manager on virtual time, or a device on the wire.
 */
#ifndef URNIC_DRILL_PRIV_H
#define URNIC_DRILL_PRIV_H

#include "cm.h"
#include "drill_script.h"
#include "engine.h"

#define DRILL_FRAME_MAX 9300u
#define DRILL_TICK_NS   2048u /* a time-out may be late by a tick of the wheel (TMR-08) */
#define DRILL_COPIES    1024u
#define DRILL_RECV_LEN  1024u /* octets of a receive without `into` */
#define DRILL_CM_PORT   7000u /* default port of services */

extern const uint8_t drill_device_mac[6], drill_peer_mac[6];

/* ---- objects that a script names ---- */

enum drill_object_kind {
    KIND_VAR,
    KIND_PD,
    KIND_CQ,
    KIND_SRQ,
    KIND_MR,
    KIND_MW,
    KIND_REMOTE, /* memory of the script's side */
    KIND_QP,
    KIND_LISTENER,
    KIND_CONN,
};
extern const char *const drill_object_names[];

struct drill_object {
    struct drill_object *next;
    const char *name;
    enum drill_object_kind kind;
    bool dead;
    uint64_t value; /* VAR */
    uint32_t pd;
    /* MR, MW, REMOTE */
    uint64_t va, len;
    uint32_t lkey, rkey;
    uint8_t *octets, *same; /* contents now; contents as the script last filled them */
    struct mem_seg seg;     /* of a fast-register region */
    /* CQ */
    struct cq *cq;
    uint32_t size, held; /* completions that fit; not taken yet */
    struct srq *srq;
    /* QP */
    struct qp *qp;
    enum qp_type type;
    uint32_t qpn, peer_qpn;
    uint32_t sq_psn, rq_psn; /* first PSN of the device's requests, of ours */
    uint32_t mtu;            /* octets */
    struct wire_addr local, peer;
    uint8_t dmac[6];
    uint16_t sport;
    uint32_t qkey;
    uint32_t next_psn;   /* of our next request, counted from rq_psn */
    uint32_t message_at; /* octets of our message sent so far */
    uint32_t answer_at;  /* octets of our READ answer sent so far */
    uint32_t seen_psn;   /* of the device's last request, not counted from its first */
    uint32_t answer_psn; /* of our last answer */
    /* CM */
    struct cm_listener *listener;
    struct cm_conn *conn;
};

/* ---- happenings ---- */

struct drill_frame {
    struct drill_frame *next;
    uint64_t ns;
    uint32_t len, order;
    uint8_t octets[];
};

struct drill_completion {
    struct drill_completion *next;
    uint64_t ns;
    struct drill_object *cq;
    struct engine_wc wc;
    bool taken;
};

struct drill_happening { /* an event of the engine's */
    struct drill_happening *next;
    uint64_t ns;
    enum ib_event event;
    const struct drill_object *about; /* QP, CQ or SRQ */
    bool taken;
};

struct drill_cm_happening {
    struct drill_cm_happening *next;
    uint64_t ns;
    struct cm_event ev;
    bool taken;
};

/* ---- the run ---- */

struct drill_run {
    const struct drill_script *s;
    const struct drill_options *o;
    const struct drill_wire *wire; /* NULL = the engine */
    struct drill_report *r;
    const struct drill_stmt *current; /* statement under way; NULL after the last one */
    bool over;
    bool trial; /* a trial comparison: names take no values yet */

    uint64_t begin, now, last; /* last: time of the last packet or post */
    uint64_t patience;
    uint64_t steps, memory; /* taken so far */

    struct drill_object *objects;
    struct drill_object *qp; /* the default queue pair of packets */
    const struct drill_stmt *ignores[16];
    unsigned nignores;

    struct drill_frame *frames, **frames_tail; /* sent by the engine, not expected yet */
    uint32_t frame_order;                      /* frames in and out so far */
    struct drill_completion *completions, **completions_tail;
    struct drill_happening *events, **events_tail;
    struct drill_cm_happening *cm_events, **cm_events_tail;

    /* the engine's side */
    struct engine *e;
    struct cm *cm;
    struct engine_params ep;
    struct cm_params cp;
    uint32_t pd;
    struct wire_addr local, peer;
    bool port_full, hold;
    uint32_t gather_skip, gather_fail; /* payloads before failures, and failures */
    struct engine_copy copies[DRILL_COPIES];
    uint8_t *kept[DRILL_COPIES]; /* octets of held copies */
    unsigned ncopies;
    uint32_t qps;      /* created */
    uint32_t recv_ids; /* receives posted */
    uint64_t next_va;
    uint32_t peer_id, device_id; /* CM communication ids: ours, the device's */
    uint32_t device_qpn;         /* from its last REQ or REP */
    uint64_t tid, next_tid;      /* transaction id of the exchange under way; of our next one */
    uint16_t listen_port;

    struct drill_peer device; /* on the wire */
    uint32_t recvs_used;
};

/* End the run with a report. Always false. */
bool drill_end(struct drill_run *run, enum drill_verdict v, const struct drill_stmt *st,
               const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Count a statement or time-out; false: too many. */
bool drill_step(struct drill_run *run, const struct drill_stmt *st);

/* For all functions below: if a statement can't be carried out, or isn't true, a function that
 * takes it and returns a bool or an object ends the run, and returns false or NULL. */

/* drill_value.c: names and sums. */
/* The latest object of this name, dead or alive; NULL = none. */
struct drill_object *drill_find(struct drill_run *run, const char *name);
/* A new object; a live one of this name is an error. */
struct drill_object *drill_add(struct drill_run *run, const struct drill_stmt *st, const char *name,
                               enum drill_object_kind kind);
/* Set a variable, which is made if it doesn't exist. */
bool drill_set(struct drill_run *run, const struct drill_stmt *st, const char *name,
               uint64_t value);
/* The live object of this name and kind. */
struct drill_object *drill_need(struct drill_run *run, const struct drill_stmt *st,
                                const char *name, enum drill_object_kind kind);
/* The value of a sum, in which `role` decides the meaning of an object's name. */
bool drill_eval(struct drill_run *run, const struct drill_stmt *st, const struct drill_expr *e,
                enum drill_role role, uint64_t *out);
/* The number of a field. It must be a single one, and fit the field. */
bool drill_one(struct drill_run *run, const struct drill_stmt *st, const struct drill_arg *a,
               uint64_t *out);
/* The number of a field, or `otherwise` when the statement lacks it. */
bool drill_number(struct drill_run *run, const struct drill_stmt *st, int id, uint64_t otherwise,
                  uint64_t *out);
/* The congestion control that a field names. */
bool drill_cc(struct drill_run *run, const struct drill_stmt *st, const struct drill_arg *a,
              struct cc_conf *out);
/* `len` octets of data; `from` = default place in a stream or region. */
bool drill_octets(struct drill_run *run, const struct drill_stmt *st, const struct drill_data *d,
                  uint64_t from, uint8_t *out, uint32_t len);
/* Does `d` have a length of its own? *len is that length, else 0. */
bool drill_octets_len(const struct drill_data *d, uint32_t *len);
/* Can `d` fill `len` octets: has it this length, or none of its own? */
bool drill_octets_fit(struct drill_run *run, const struct drill_stmt *st,
                      const struct drill_data *d, uint64_t len);
/* The memory of a piece, its start there, and its length (the rest of the memory by default); NULL
 * = the run is over. */
struct drill_object *drill_range(struct drill_run *run, const struct drill_stmt *st,
                                 const struct drill_range *g, uint64_t *off, uint64_t *len);
/* The member of a struct that a field names, of 1, 2, 4 or 8 octets. */
void drill_put_member(void *base, const struct drill_field *f, uint64_t v);
uint64_t drill_get_member(const void *base, const struct drill_field *f);
/* Immediate data is opaque octets; scripts write them in wire order. The function is its own
 * inverse. */
uint32_t drill_imm(uint32_t v);
/* Does a number fit a value? ?name fits, and takes the number. */
bool drill_fits(struct drill_run *run, const struct drill_stmt *st, const struct drill_value *v,
                enum drill_role role, uint64_t got, uint64_t mask, bool *fits);
/* A number for messages: decimal if it is short, else hexadecimal. */
#define DRILL_NUMBER_LEN 24u
const char *drill_number_text(uint64_t v, char buf[DRILL_NUMBER_LEN]);
/* The text of a number or a range, for messages: "3", "3..5". */
void drill_value_text(struct drill_run *run, const struct drill_stmt *st,
                      const struct drill_value *v, enum drill_role role, char *buf, size_t size);

/* drill_packet.c, drill_match.c, drill_mad.c */
/* The queue pair that a statement's packet belongs to; NULL = none. These three: false = the run is
 * over. */
bool drill_packet_qp(struct drill_run *run, const struct drill_stmt *st, struct drill_object **out);
/* Headers of the other IP version have no place in a packet. */
bool drill_right_version(struct drill_run *run, const struct drill_stmt *st, unsigned version);
/* `bth+4 0x80`: a place in a frame of `len` octets, and the octet to put there. */
bool drill_place(struct drill_run *run, const struct drill_stmt *st, const struct drill_arg *a,
                 const struct wire_pkt *p, uint32_t len, uint64_t *at, uint8_t *octet);
/* Build the frame that a `<` describes; cut to nothing, its size is 0. */
bool drill_build(struct drill_run *run, const struct drill_stmt *st, uint8_t *frame, uint32_t cap,
                 uint32_t *size);
/* Does a frame fit a `>`? Differences go to `why`. false only when the run is over. */
bool drill_match(struct drill_run *run, const struct drill_stmt *st, const uint8_t *frame,
                 uint32_t len, bool *fits, char *why, size_t size);
/* The same for the MAD in a packet for QP1; its length may be wrong, up to that of two MADs. */
bool drill_mad_build(struct drill_run *run, const struct drill_stmt *st, uint8_t *mad,
                     uint32_t *len);
bool drill_mad_match(struct drill_run *run, const struct drill_stmt *st, const uint8_t *mad,
                     uint32_t len, bool *fits, char *why, size_t size);
/* Adds "name: expected X, got Y" to why. */
void drill_differs(char *why, size_t size, const char *name, const char *expected, const char *got);
/* The same for the first octet that differs, if one does. */
void drill_octets_differ(char *why, size_t size, const char *name, const uint8_t *want,
                         const uint8_t *got, uint32_t n);

/* drill_bench.c: the engine on virtual time. */
/* Make engine and connection manager with the options of the statement `device`; NULL = the
 * defaults. Close them in either case. */
bool drill_bench_open(struct drill_run *run, const struct drill_stmt *device);
void drill_bench_close(struct drill_run *run);
/* Send all packets that may be sent; note events of the CM. */
void drill_bench_flush(struct drill_run *run);
/* A frame comes in. */
void drill_bench_rx(struct drill_run *run, const uint8_t *frame, uint32_t len);
/* Make the `n` oldest held copies (status 0), or let them fail (-errno). */
void drill_bench_copies(struct drill_run *run, unsigned n, int status);
/* Move time to the next time-out, at most to `until`. false: there is none by then. */
bool drill_bench_step(struct drill_run *run, uint64_t until);
/* A frame has come out, at `ns`: keep a copy for the statement that expects it. */
bool drill_keep_frame(struct drill_run *run, const uint8_t *frame, uint32_t len, uint64_t ns);

/* drill_object.c, drill_qp.c, drill_work.c, drill_cm.c: statements that act. */
bool drill_do_object(struct drill_run *run, const struct drill_stmt *st);
/* The protection domain that the statement's field `id` names, or the run's own. */
bool drill_pd_of(struct drill_run *run, const struct drill_stmt *st, int id, uint32_t *out);
/* Make a completion queue of this name with `size` entries; NULL = the run is over. */
struct drill_object *drill_new_cq(struct drill_run *run, const struct drill_stmt *st,
                                  const char *name, uint32_t size);
/* qp, modify, move. */
bool drill_make_qp(struct drill_run *run, const struct drill_stmt *st);
bool drill_modify_qp(struct drill_run *run, const struct drill_stmt *st);
bool drill_move_qp(struct drill_run *run, const struct drill_stmt *st);
bool drill_do_work(struct drill_run *run, const struct drill_stmt *st);
bool drill_do_cm(struct drill_run *run, const struct drill_stmt *st);
/* drill_expect.c: packets and time. */
/* Move time to the time of a statement. */
bool drill_wait_for(struct drill_run *run, const struct drill_stmt *st);
/* from + ns. False, and the run is over, if that time doesn't exist. */
bool drill_later(struct drill_run *run, const struct drill_stmt *st, uint64_t from, uint64_t ns,
                 uint64_t *out);
/* Move time to `until`, whatever happens. */
bool drill_pass(struct drill_run *run, uint64_t until);
/* Does `ns` fit the statement's time? */
bool drill_timely(struct drill_run *run, const struct drill_stmt *st, uint64_t ns);
/* Drop the oldest frame; the comment is for the recording. */
void drill_drop_frame(struct drill_run *run, const char *comment);
/* Drop the oldest frame if the script ignores such frames. */
bool drill_ignored(struct drill_run *run, bool *out);
/* Report the oldest frame as the one that came instead. */
void drill_show(struct drill_run *run);
/* The statements: <, >, those that wait for an event, any { }, nothing. */
bool drill_inject(struct drill_run *run, const struct drill_stmt *st);
bool drill_expect(struct drill_run *run, const struct drill_stmt *st);
bool drill_await(struct drill_run *run, const struct drill_stmt *st);
bool drill_any_order(struct drill_run *run, const struct drill_stmt *block);
bool drill_nothing(struct drill_run *run, const struct drill_stmt *st);

/* drill_event.c: cqe, event, cm_event: *done = it has happened and fits the statement. */
bool drill_happened(struct drill_run *run, const struct drill_stmt *st, bool *done);

/* drill_check.c: statements that check. */
bool drill_do_check(struct drill_run *run, const struct drill_stmt *st);
/* Compare a field with a number; a difference is added to the report. */
bool drill_compare(struct drill_run *run, const struct drill_stmt *st, const struct drill_arg *a,
                   uint64_t got, uint64_t mask);
/* The buffer of receives without `into`; NULL = the run is over. */
struct drill_object *drill_recv_buffer(struct drill_run *run, const struct drill_stmt *st,
                                       uint32_t pd);
/* Is rc, the result of a call, as the statement expects? *go: the call succeeded, and the statement
 * continues. */
bool drill_returned(struct drill_run *run, const struct drill_stmt *st, int rc, bool *go);
/* The path to a queue pair's peer. */
struct engine_av drill_av(const struct drill_object *qp);
/* The attributes that ibv_modify_qp needs for one step up. */
unsigned drill_step_mask(enum qp_type type, enum qp_state to);

#endif
