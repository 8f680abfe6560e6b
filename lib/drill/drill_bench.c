/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The engine and the connection manager on virtual time, with memory that the script sees into.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "drill_priv.h"
#include "requester.h"
#include "step.h"

#define BEGIN_NS 1000000000ull
#define MESSAGES 65536u /* most frames out at once, before the run gives up */

const uint8_t drill_device_mac[6] = {2, 0, 0, 0, 0, 1}, drill_peer_mac[6] = {2, 0, 0, 0, 0, 2};

/* ---- notes of happenings ---- */

static bool on_cq_push(void *arg, void *cq_arg, const struct engine_wc *wc)
{
    struct drill_run *run = arg;
    struct drill_object *cq = cq_arg;
    struct drill_completion *c;
    if (cq->held == cq->size || !(c = calloc(1, sizeof(*c))))
        return false;
    cq->held++;
    c->ns = run->now;
    c->cq = cq;
    c->wc = *wc;
    *run->completions_tail = c;
    run->completions_tail = &c->next;
    return true;
}

static void on_event(void *arg, enum ib_event ev, void *about)
{
    struct drill_run *run = arg;
    struct drill_happening *h = calloc(1, sizeof(*h));
    if (!h)
        return;
    h->ns = run->now;
    h->event = ev;
    h->about = about;
    *run->events_tail = h;
    run->events_tail = &h->next;
}

static void on_gsi_rx(void *arg, const struct wire_pkt *pkt, const uint8_t *payload, uint32_t len)
{
    struct drill_run *run = arg;
    cm_rx(run->cm, payload, len, &pkt->sip, &pkt->dip, pkt->sqpn, pkt->pkey, run->now);
}

static void on_comm_est(void *arg, void *qp_arg, uint32_t qpn)
{
    (void)qpn;
    struct drill_run *run = arg;
    struct drill_object *qp = qp_arg;
    if (qp && qp->conn)
        cm_comm_est(run->cm, qp->conn, run->now);
}

bool drill_keep_frame(struct drill_run *run, const uint8_t *frame, uint32_t len, uint64_t ns)
{
    struct drill_frame *f = malloc(sizeof(*f) + len);
    if (!f)
        return drill_end(run, DRILL_WRONG, NULL, "out of memory");
    f->next = NULL;
    f->ns = ns;
    f->len = len;
    f->order = run->frame_order++;
    memcpy(f->octets, frame, len);
    *run->frames_tail = f;
    run->frames_tail = &f->next;
    return true;
}

/* ---- out ---- */

static uint8_t *at(void *arg, const struct mem_piece *p)
{
    const struct drill_object *mr = p->obj;
    (void)arg;
    return mr->octets + p->off;
}

static int gather(void *arg, const struct engine_slot *slot)
{
    struct drill_run *run = arg;
    if (slot->npieces && run->gather_fail) {
        if (!run->gather_skip) {
            run->gather_fail--;
            return -EFAULT;
        }
        run->gather_skip--;
    }
    step_gather(slot, at, run);
    return 0;
}

static void send_requests(struct drill_run *run)
{
    uint8_t frame[DRILL_FRAME_MAX];
    for (unsigned n = 0; !run->over; n++) {
        struct engine_slot slot = {.buf = frame, .cap = sizeof(frame)};
        if (n == MESSAGES)
            drill_end(run, DRILL_WRONG, NULL, "more than %u packets come out at once", n);
        if (!step_tx(run->e, &slot, 1, run->now, gather, run))
            return;
        if (slot.len)
            drill_keep_frame(run, frame, slot.len, run->now);
    }
}

static void send_mads(struct drill_run *run)
{
    uint8_t frame[DRILL_FRAME_MAX];
    struct cm_out out;
    for (unsigned n = 0; n < MESSAGES && !run->over && cm_tx(run->cm, &out); n++) {
        struct engine_slot slot = {.buf = frame, .cap = sizeof(frame)};
        struct engine_av av = {.sgid = out.src,
                               .dgid = out.dst,
                               .tclass = out.tclass,
                               .hop_limit = out.hop_limit,
                               .sl = out.sl,
                               .dmac = {2, 0, 0, 0, 0, 2}};
        if (engine_gsi_emit(run->e, &slot, &av, out.pkey, out.mad, CM_MAD_LEN) != 0)
            continue;
        wire_icrc_seal(frame, slot.len, slot.ip_off, slot.bth_off);
        drill_keep_frame(run, frame, slot.len, run->now);
    }
}

static void note_cm_events(struct drill_run *run)
{
    struct cm_event ev;
    for (unsigned n = 0; n < MESSAGES && cm_event(run->cm, &ev); n++) {
        struct drill_cm_happening *h = calloc(1, sizeof(*h));
        if (!h)
            return;
        h->ns = run->now;
        h->ev = ev;
        *run->cm_events_tail = h;
        run->cm_events_tail = &h->next;
    }
}

void drill_bench_flush(struct drill_run *run)
{
    if (!run->e)
        return;
    note_cm_events(run);
    if (run->port_full)
        return;
    send_mads(run);
    send_requests(run);
}

/* ---- in ---- */

static int copy(void *arg, const struct engine_copy *c, uint64_t *orig)
{
    *orig = step_copy(c, at(arg, &c->dst));
    return 0;
}

/* Held copies outlive their frame, so their octets are kept. */
static bool hold(struct drill_run *run, const struct engine_copy *c)
{
    if (run->ncopies == DRILL_COPIES)
        return drill_end(run, DRILL_WRONG, NULL, "more than %u copies are held", DRILL_COPIES);
    struct engine_copy *h = &run->copies[run->ncopies];
    *h = *c;
    uint8_t *kept = NULL;
    if (c->kind == ENGINE_PUT) {
        if (!(kept = malloc(c->len + 1)))
            return drill_end(run, DRILL_WRONG, NULL, "out of memory");
        memcpy(kept, c->src, c->len);
        h->src = kept;
    }
    run->kept[run->ncopies++] = kept;
    return true;
}

void drill_bench_copies(struct drill_run *run, unsigned n, int status)
{
    n = n < run->ncopies ? n : run->ncopies;
    for (unsigned i = 0; i < n; i++) {
        struct engine_result res = {.token = run->copies[i].token, .status = status};
        if (!status)
            copy(run, &run->copies[i], &res.orig);
        engine_copied(run->e, &res, 1, run->now);
        free(run->kept[i]);
    }
    run->ncopies -= n;
    memmove(run->kept, run->kept + n, run->ncopies * sizeof(run->kept[0]));
    memmove(run->copies, run->copies + n, run->ncopies * sizeof(run->copies[0]));
    drill_bench_flush(run);
}

void drill_bench_rx(struct drill_run *run, const uint8_t *frame, uint32_t len)
{
    struct engine_frame f = {.data = frame, .len = len};
    if (run->hold) {
        struct engine_copy copies[ENGINE_FRAME_COPIES];
        unsigned n = 0;
        engine_rx(run->e, &f, 1, run->now, copies, ENGINE_FRAME_COPIES, &n);
        for (unsigned i = 0; i < n; i++)
            hold(run, &copies[i]);
    } else {
        step_rx(run->e, &f, run->now, copy, run);
    }
    drill_bench_flush(run);
}

bool drill_bench_step(struct drill_run *run, uint64_t until)
{
    uint64_t at = engine_deadline(run->e), cm_at = cm_deadline(run->cm);
    at = at < cm_at ? at : cm_at;
    if (at > until) {
        run->now = until > run->now ? until : run->now;
        return false;
    }
    if (!drill_step(run, NULL))
        return false;
    run->now = at > run->now ? at : run->now;
    engine_expire(run->e, run->now);
    cm_expire(run->cm, run->now);
    drill_bench_flush(run);
    return true;
}

/* ---- life ---- */

/* The P_Key table: a field for each entry. */
static bool configure_pkeys(struct drill_run *run, const struct drill_stmt *st)
{
    uint16_t *pkeys = run->ep.pkeys;
    const size_t room = sizeof(run->ep.pkeys) / sizeof(pkeys[0]);
    size_t n = 0;
    uint64_t v;
    for (const struct drill_arg *a = st->args; a; a = a->next) {
        if (a->field->id != DEV_PKEY)
            continue;
        if (n == room)
            return drill_end(run, DRILL_WRONG, st, "pkey: the table has %zu entries", room);
        if (!drill_one(run, st, a, &v))
            return false;
        pkeys[n++] = (uint16_t)v;
    }
    return true;
}

static bool configure_cc(struct drill_run *run, const struct drill_stmt *st)
{
    const struct drill_arg *a = drill_arg(st, DEV_CC);
    return !a || drill_cc(run, st, a, &run->ep.cc);
}

static bool configure(struct drill_run *run, const struct drill_stmt *st)
{
    struct engine_params *ep = &run->ep;
    uint64_t v = 0;
    if (!configure_pkeys(run, st) || !configure_cc(run, st))
        return false;
/* Set a member to the statement's value, if that has one. */
#define NUMBER(id, member)                                                                         \
    do {                                                                                           \
        if (!drill_number(run, st, (id), (member), &v))                                            \
            return false;                                                                          \
        (member) = (__typeof__(member))v;                                                          \
    } while (0)
    NUMBER(DEV_MTU, ep->mtu);
    run->cp.max_mtu = (uint8_t)ep->mtu;
    NUMBER(DEV_WINDOW, ep->window);
    if (drill_arg(st, DEV_WINDOW) && ep->window < REQ_WINDOW_MIN) /* the engine would take more */
        return drill_end(run, DRILL_WRONG, st, "window: %u, the least is %u", ep->window,
                         REQ_WINDOW_MIN);
    NUMBER(DEV_STRICT, ep->strict_resp);
    NUMBER(DEV_VLAN, ep->vlan);
    NUMBER(DEV_LOOPBACK, ep->loopback);
    NUMBER(DEV_RATE, ep->line_rate);
    NUMBER(DEV_RECORDS, ep->records);
    NUMBER(DEV_LENIENT, run->cp.lenient_addr);
    NUMBER(DEV_NAK_CONFIRM, ep->nak_confirm);
    NUMBER(DEV_RNR_ON_RD_RES, ep->rnr_on_rd_res);
    NUMBER(DEV_PERSISTENT, ep->mem.persistent);
    NUMBER(DEV_MAX_MR, ep->mem.max_mr);
    NUMBER(DEV_MAX_CONNS, run->cp.max_conns);
#undef NUMBER
    return true;
}

bool drill_bench_open(struct drill_run *run, const struct drill_stmt *device)
{
    run->ep = (struct engine_params){
        .hooks = {.cq_push = on_cq_push,
                  .event = on_event,
                  .gsi_rx = on_gsi_rx,
                  .comm_est = on_comm_est},
        .hook_arg = run,
        .key = {0x0123456789ABCDEF, 0xFEDCBA9876543210},
        .max_qp = 1024,
        .mem = {.max_pd = 64, .max_mr = 1024, .max_mw = 1024, .key = {1, 2}},
        .mtu = 5,
    };
    run->cp = (struct cm_params){.key = {3, 4}, .ca_guid = 0x020000FFFE000001, .max_mtu = 5};
    memcpy(run->ep.mac, drill_device_mac, 6);
    run->begin = run->now = run->last = BEGIN_NS;
    if (device && !configure(run, device))
        return false;
    run->e = engine_create(&run->ep, run->now);
    run->cm = cm_create(&run->cp);
    int rc = run->e && run->cm ? engine_addr_add(run->e, &run->local) : -ENOMEM;
    if (!rc)
        rc = mem_pd_alloc(engine_mem(run->e), &run->pd);
    if (rc)
        return drill_end(run, DRILL_WRONG, device, "no engine: %s", strerror(-rc));
    return true;
}

void drill_bench_close(struct drill_run *run)
{
    for (unsigned i = 0; i < run->ncopies; i++)
        free(run->kept[i]);
    if (run->cm)
        cm_destroy(run->cm);
    if (run->e)
        engine_destroy(run->e);
}
