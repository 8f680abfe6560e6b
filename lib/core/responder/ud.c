/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Receiving datagrams: header area and payload into one receive work request.
 * Rules: UD-05..UD-08, UD-12, GSI-01.
 */
#include "ud.h"

#include "address.h"
#include "engine_priv.h"
#include "place.h"
#include "qp_state.h"
#include "recorder.h"
#include "resp_commit.h"
#include "rx.h"
#include "srq.h"

#define GRH_LEN 40u

enum ud_action {
    UD_NONE, /* a buffer of a datagram, not the last one */
    UD_DONE, /* arg: sender's number; msn: SL; rkey: P_Key index; va: flags */
    UD_FAIL, /* arg: status; rkey: is it fatal? */
};

/* The contents of the header area (UD-05): an IPv4 header is preceded by zeros. */
static unsigned spans_of(const struct rx *rx, struct place_span spans[3])
{
    static const uint8_t zeros[GRH_LEN - WIRE_IPV4_LEN];
    const uint8_t *ip = rx->f->data + rx->pkt.ip_off;
    unsigned n = 0;
    if (rx->pkt.ip_version == 4) {
        spans[n++] = (struct place_span){zeros, sizeof(zeros)};
        spans[n++] = (struct place_span){ip, WIRE_IPV4_LEN};
    } else {
        spans[n++] = (struct place_span){ip, WIRE_IPV6_LEN};
    }
    spans[n++] = (struct place_span){rx->payload, rx->pkt.payload_len};
    return n;
}

/* The work request completes with an error; the queue pair stays usable unless `fatal`. */
static void fail(struct rx *rx, struct qp *qp, enum wc_status status, bool fatal)
{
    struct record *rec = record_new(rx->e, qp, REC_RESP);
    rec->action = UD_FAIL;
    rec->arg = status;
    rec->rkey = fatal;
    resp_run(rx->e, qp, rx->now);
}

void ud_rx(struct rx *rx, struct qp *qp)
{
    struct engine *e = rx->e;
    const struct wire_pkt *p = &rx->pkt;
    invariant_touch(e, qp);
    if (e->records.nfree < PLACE_RECORDS + 1) {
        rx_drop(rx, ENGINE_C_rx_copy_pending);
        return;
    }
    const struct rwqe *w = resp_take(e, qp);
    if (!w) { /* UD-06 */
        engine_count(e, ENGINE_C_out_of_buffer);
        rx_drop(rx, ENGINE_C_ud_drop_no_wqe);
        return;
    }
    if (w->malformed) {
        fail(rx, qp, WC_LOC_QP_OP_ERR, true);
        return;
    }
    if (w->room < GRH_LEN + (uint64_t)p->payload_len) { /* UD-07 */
        rx_drop(rx, ENGINE_C_ud_drop_too_long);
        fail(rx, qp, WC_LOC_LEN_ERR, false);
        return;
    }
    struct place_span spans[3];
    struct record *last;
    if (place_recv(rx, qp, w, 0, spans, spans_of(rx, spans), &last)) {
        fail(rx, qp, WC_LOC_PROT_ERR, true);
        return;
    }
    last->action = UD_DONE;
    last->len = GRH_LEN + p->payload_len;
    last->arg = p->sqpn;
    last->imm = p->imm;
    last->se = p->se;
    last->va = WC_F_GRH | (rx->op->flags & WIRE_F_IMM ? WC_F_IMM : 0u) |
               (p->ip_version == 4 ? WC_F_IPV4 : 0u);
    unsigned index = qp->attr.pkey_index;
    if (qp->type == QP_GSI)
        engine_pkey_find(e, p->pkey, &index);
    last->rkey = index;
    last->msn = p->vlan ? p->tci >> 13 : 0; /* and it commits when its copies are done */
}

static void complete(struct engine *e, struct qp *qp, const struct record *rec)
{
    struct engine_wc wc = {
        .status = WC_SUCCESS,
        .opcode = WC_RECV,
        .byte_len = rec->len,
        .imm = rec->va & WC_F_IMM ? rec->imm : 0,
        .src_qpn = rec->arg,
        .wc_flags = (uint32_t)rec->va,
        .pkey_index = (uint16_t)rec->rkey,
        .sl = (uint8_t)rec->msn,
        .solicited = rec->se,
    };
    resp_complete(e, qp, &wc);
}

static void complete_error(struct engine *e, struct qp *qp, enum wc_status status, bool fatal)
{
    struct engine_wc wc = {
        .status = status, .opcode = WC_RECV, .vendor_err = fatal ? RULE(RSP, 13) : RULE(UD, 7)};
    if (!resp_complete(e, qp, &wc) || !fatal)
        return;
    recorder_error(e, qp, "RSP-13 receive buffer: %s", engine_status_name(status));
    qp_to_error(e, qp, false, -1);
}

void ud_commit(struct engine *e, struct qp *qp, struct record *rec)
{
    if (rec->status < 0)
        complete_error(e, qp, WC_LOC_PROT_ERR, true);
    else if (rec->action == UD_DONE)
        complete(e, qp, rec);
    else if (rec->action == UD_FAIL)
        complete_error(e, qp, (enum wc_status)rec->arg, rec->rkey);
}
