/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Statements that make, change and destroy verbs' objects; those of queue pairs are in drill_qp.c.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "drill_priv.h"

#define MR_MAX (64u << 20)

bool drill_pd_of(struct drill_run *run, const struct drill_stmt *st, int id, uint32_t *out)
{
    const struct drill_arg *a = drill_arg(st, id);
    struct drill_object *pd = a ? drill_need(run, st, a->v.name, KIND_PD) : NULL;
    *out = pd ? pd->pd : run->pd;
    return !a || pd;
}

/* ---- memory ---- */

/* Each region starts with its own octets: a random stream seeded by its name. */
static void first_content(struct drill_object *mr)
{
    uint64_t x = 0xCBF29CE484222325ull;
    for (const char *c = mr->name; *c; c++)
        x = (x ^ (uint8_t)*c) * 0x100000001B3ull;
    for (uint64_t i = 0; i < mr->len; i++) {
        if (i % 8 == 0)
            x = x * 6364136223846793005ull + 1442695040888963407ull;
        mr->octets[i] = (uint8_t)(x >> (8 + i % 8 * 7));
    }
    memcpy(mr->same, mr->octets, mr->len);
}

static bool memory(struct drill_run *run, const struct drill_stmt *st, struct drill_object *o)
{
    uint64_t va, len;
    if (!drill_eval(run, st, &st->expr, ROLE_VALUE, &len))
        return false;
    if (len > MR_MAX - run->memory)
        return drill_end(run, DRILL_WRONG, st, "all memory together: at most %u octets", MR_MAX);
    run->memory += len;
    /* Not a round number: an offset isn't taken for an address. */
    if (!drill_number(run, st, OBJ_VA, run->next_va, &va))
        return false;
    run->next_va += (len + 0x1FFFFF) & ~0xFFFFFull;
    o->va = va;
    o->len = len;
    if (!(o->octets = malloc(len + 8)) || !(o->same = malloc(len + 8)))
        return drill_end(run, DRILL_WRONG, st, "out of memory");
    first_content(o);
    return true;
}

static bool make_mr(struct drill_run *run, const struct drill_stmt *st)
{
    struct drill_object *o = drill_add(run, st, st->name, KIND_MR);
    uint64_t access;
    bool go;
    if (!o || !memory(run, st, o) || !drill_pd_of(run, st, OBJ_PD, &o->pd) ||
        !drill_number(run, st, OBJ_ACCESS, DRILL_ACCESS, &access))
        return false;
    if (run->wire) {
        if (st->args)
            return drill_end(run, DRILL_SKIP, st, "'%s' can't be chosen on the wire",
                             st->args->field->name);
        if (o->len > run->device.len)
            return drill_end(run, DRILL_SKIP, st, "the device's region has %u octets",
                             run->device.len);
        o->va = run->device.va;
        o->rkey = run->device.rkey;
        return true;
    }
    struct mem_seg seg = {o, 0, o->len};
    int rc = mem_mr_reg(engine_mem(run->e), o->pd, o->va, o->len, (unsigned)access, &seg,
                        o->len ? 1 : 0, o, &o->lkey, &o->rkey);
    o->dead = rc != 0;
    if (access & MEM_ZERO_BASED)
        o->va = 0;
    return drill_returned(run, st, rc, &go);
}

struct drill_object *drill_recv_buffer(struct drill_run *run, const struct drill_stmt *st,
                                       uint32_t pd)
{
    static const char own[] = "\1recv"; /* no script can say this name */
    struct drill_object *o = drill_find(run, own);
    if (pd != run->pd) {
        drill_end(run, DRILL_WRONG, st, "a receive of another protection domain needs `into`");
        return NULL;
    }
    if (o || !(o = drill_add(run, st, own, KIND_MR)))
        return o;
    o->pd = pd;
    o->va = 0x7E0000000000;
    o->len = DRILL_RECV_LEN;
    if (!(o->octets = calloc(1, o->len)) || !(o->same = calloc(1, o->len))) {
        drill_end(run, DRILL_WRONG, st, "out of memory");
        return NULL;
    }
    struct mem_seg seg = {o, 0, o->len};
    if (mem_mr_reg(engine_mem(run->e), pd, o->va, o->len, MEM_LOCAL_WRITE, &seg, 1, o, &o->lkey,
                   &o->rkey) == 0)
        return o;
    drill_end(run, DRILL_WRONG, st, "no buffer for receives");
    return NULL;
}

/* A fast-register region: of use once a `post A reg_mr` has executed. */
static bool make_fr(struct drill_run *run, const struct drill_stmt *st)
{
    struct drill_object *o = drill_add(run, st, st->name, KIND_MR);
    bool go;
    if (!o || !memory(run, st, o) || !drill_pd_of(run, st, OBJ_PD, &o->pd))
        return false;
    o->seg = (struct mem_seg){o, 0, o->len};
    int rc = mem_fr_alloc(engine_mem(run->e), o->pd, 1, &o->lkey, &o->rkey);
    o->dead = rc != 0;
    return drill_returned(run, st, rc, &go);
}

static bool make_remote(struct drill_run *run, const struct drill_stmt *st)
{
    struct drill_object *o = drill_add(run, st, st->name, KIND_REMOTE);
    uint64_t rkey;
    if (!o || !memory(run, st, o) ||
        !drill_number(run, st, OBJ_RKEY, 0xABCD00u + (o->va >> 20 & 0xFF), &rkey))
        return false;
    o->rkey = (uint32_t)rkey;
    return true;
}

static bool make_mw(struct drill_run *run, const struct drill_stmt *st)
{
    struct drill_object *o = drill_add(run, st, st->name, KIND_MW);
    bool go;
    if (!o || !drill_pd_of(run, st, OBJ_PD, &o->pd))
        return false;
    int rc = mem_mw_alloc(engine_mem(run->e), o->pd, (unsigned)st->word, &o->rkey);
    o->dead = rc != 0;
    return drill_returned(run, st, rc, &go);
}

/* ---- queues ---- */

struct drill_object *drill_new_cq(struct drill_run *run, const struct drill_stmt *st,
                                  const char *name, uint32_t size)
{
    struct drill_object *o = drill_add(run, st, name, KIND_CQ);
    if (!o)
        return NULL;
    o->size = size;
    if (engine_cq_create(run->e, o, &o->cq) == 0)
        return o;
    drill_end(run, DRILL_WRONG, st, "no completion queue");
    return NULL;
}

static bool make_cq(struct drill_run *run, const struct drill_stmt *st)
{
    uint64_t size;
    return drill_number(run, st, OBJ_SIZE, 65536, &size) &&
           drill_new_cq(run, st, st->name, (uint32_t)size);
}

static bool make_srq(struct drill_run *run, const struct drill_stmt *st)
{
    struct drill_object *o = drill_add(run, st, st->name, KIND_SRQ);
    uint64_t max_wr, limit;
    bool go;
    if (!o || !drill_pd_of(run, st, OBJ_PD, &o->pd) ||
        !drill_number(run, st, OBJ_MAX_WR, 256, &max_wr) ||
        !drill_number(run, st, OBJ_LIMIT, 0, &limit))
        return false;
    struct engine_srq_params p = {
        .arg = o, .pd = o->pd, .max_wr = (uint32_t)max_wr, .max_sge = 4, .limit = (uint32_t)limit};
    const struct drill_arg *a = drill_arg(st, OBJ_CQ);
    struct drill_object *cq = a ? drill_need(run, st, a->v.name, KIND_CQ) : NULL;
    if ((a && !cq) || !drill_pd_of(run, st, OBJ_XRCD, &p.xrcd))
        return false;
    p.cq = cq ? cq->cq : NULL;
    int rc = engine_srq_create(run->e, &p, &o->srq);
    o->dead = rc != 0;
    if (rc == 0)
        o->qpn = engine_srq_num(o->srq);
    return drill_returned(run, st, rc, &go);
}

/* ---- the end ---- */

static int destroy(struct drill_run *run, struct drill_object *o)
{
    struct mem *m = engine_mem(run->e);
    int rc;
    switch (o->kind) {
    case KIND_PD:
        return mem_pd_free(m, o->pd);
    case KIND_CQ:
        return engine_cq_destroy(run->e, o->cq);
    case KIND_SRQ:
        return engine_srq_destroy(run->e, o->srq);
    case KIND_MW:
        return mem_mw_dealloc(m, o->rkey);
    case KIND_QP:
        engine_qp_destroy(run->e, o->qp);
        return 0;
    default:
        rc = mem_mr_dereg(m, o->lkey);
        return rc == -EINPROGRESS ? 0 : rc; /* copies hold it: the last one frees it */
    }
}

static bool destroy_object(struct drill_run *run, const struct drill_stmt *st)
{
    struct drill_object *o = drill_find(run, st->name);
    bool go;
    if (!o)
        return drill_end(run, DRILL_WRONG, st, "there is no '%s'", st->name);
    if (o->dead)
        return drill_end(run, DRILL_WRONG, st, "the %s '%s' is gone already",
                         drill_object_names[o->kind], st->name);
    if (o->kind == KIND_VAR || o->kind >= KIND_LISTENER || o->kind == KIND_REMOTE)
        return drill_end(run, DRILL_WRONG, st, "the %s '%s' can't be destroyed",
                         drill_object_names[o->kind], st->name);
    int rc = destroy(run, o);
    o->dead = rc == 0;
    return drill_returned(run, st, rc, &go);
}

static bool modify_srq(struct drill_run *run, const struct drill_stmt *st)
{
    struct drill_object *o = drill_need(run, st, st->name, KIND_SRQ);
    uint64_t v;
    bool go;
    if (!o || !drill_eval(run, st, &st->expr, ROLE_VALUE, &v))
        return false;
    if (v > UINT32_MAX)
        return drill_end(run, DRILL_WRONG, st, "0x%" PRIx64 " has more than 32 bits", v);
    unsigned mask = st->verb->kind == DO_RESIZE ? SRQA_MAX_WR : SRQA_LIMIT;
    int rc = engine_srq_modify(run->e, o->srq, (uint32_t)v, (uint32_t)v, mask);
    return drill_returned(run, st, rc, &go);
}

static bool group(struct drill_run *run, const struct drill_stmt *st, bool join)
{
    struct drill_object *qp = drill_need(run, st, st->name, KIND_QP);
    bool go;
    if (!qp)
        return false;
    int rc = join ? engine_mcast_attach(run->e, qp->qp, &st->addr)
                  : engine_mcast_detach(run->e, qp->qp, &st->addr);
    return drill_returned(run, st, rc, &go);
}

bool drill_do_object(struct drill_run *run, const struct drill_stmt *st)
{
    bool go;
    struct drill_object *o;
    switch (st->verb->kind) {
    case DO_PD:
        return (o = drill_add(run, st, st->name, KIND_PD)) &&
               drill_returned(run, st, mem_pd_alloc(engine_mem(run->e), &o->pd), &go);
    case DO_MR:
        return make_mr(run, st);
    case DO_FR:
        return make_fr(run, st);
    case DO_REMOTE:
        return make_remote(run, st);
    case DO_MW:
        return make_mw(run, st);
    case DO_CQ:
        return make_cq(run, st);
    case DO_SRQ:
        return make_srq(run, st);
    case DO_QP:
        return drill_make_qp(run, st);
    case DO_MODIFY:
        return drill_modify_qp(run, st);
    case DO_MOVE:
        return drill_move_qp(run, st);
    case DO_DESTROY:
        return destroy_object(run, st);
    case DO_LIMIT:
    case DO_RESIZE:
        return modify_srq(run, st);
    case DO_JOIN:
    case DO_LEAVE:
        return group(run, st, st->verb->kind == DO_JOIN);
    case DO_ADDR:
        return drill_returned(run, st,
                              st->word ? engine_addr_add(run->e, &st->addr)
                                       : engine_addr_del(run->e, &st->addr),
                              &go);
    default:
        return drill_end(run, DRILL_WRONG, st, "not known here");
    }
}
