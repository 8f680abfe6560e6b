/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The values of names, sums, members and octets of a statement while a script runs.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drill_priv.h"

const char *const drill_object_names[] = {
    "variable",      "protection domain", "completion queue", "shared receive queue",
    "memory region", "memory window",     "remote memory",    "queue pair",
    "listener",      "connection",
};

/* ---- names ---- */

struct drill_object *drill_find(struct drill_run *run, const char *name)
{
    for (struct drill_object *o = run->objects; o; o = o->next)
        if (!strcmp(o->name, name))
            return o;
    return NULL;
}

struct drill_object *drill_add(struct drill_run *run, const struct drill_stmt *st, const char *name,
                               enum drill_object_kind kind)
{
    struct drill_object *o = drill_find(run, name);
    if (o && !o->dead) {
        drill_end(run, DRILL_WRONG, st, "there is a %s '%s' already", drill_object_names[o->kind],
                  name);
        return NULL;
    }
    if (!(o = calloc(1, sizeof(*o)))) {
        drill_end(run, DRILL_WRONG, st, "out of memory");
        return NULL;
    }
    o->name = name;
    o->kind = kind;
    o->next = run->objects;
    run->objects = o;
    return o;
}

bool drill_set(struct drill_run *run, const struct drill_stmt *st, const char *name, uint64_t value)
{
    struct drill_object *o = drill_find(run, name);
    if (!o && !(o = drill_add(run, st, name, KIND_VAR)))
        return false;
    if (o->kind != KIND_VAR)
        return drill_end(run, DRILL_WRONG, st, "'%s' is a %s", name, drill_object_names[o->kind]);
    o->value = value;
    return true;
}

struct drill_object *drill_need(struct drill_run *run, const struct drill_stmt *st,
                                const char *name, enum drill_object_kind kind)
{
    struct drill_object *o = drill_find(run, name);
    if (o && o->kind == kind && !o->dead)
        return o;
    drill_end(run, DRILL_WRONG, st, "'%s' is no %s%s", name, drill_object_names[kind],
              o && o->dead ? " any more" : "");
    return NULL;
}

/* ---- sums ---- */

static bool is_memory(const struct drill_object *o)
{
    return o->kind == KIND_MR || o->kind == KIND_MW || o->kind == KIND_REMOTE;
}

static bool worth(const struct drill_object *o, enum drill_role role, uint64_t *out)
{
    if (o->kind == KIND_VAR)
        *out = o->value;
    else if ((role == ROLE_QPN && o->kind == KIND_QP) || (role == ROLE_SRQN && o->kind == KIND_SRQ))
        *out = o->qpn;
    else if (role == ROLE_VA && is_memory(o))
        *out = o->va;
    else if (role == ROLE_RKEY && is_memory(o))
        *out = o->rkey;
    else if (role == ROLE_LKEY && is_memory(o))
        *out = o->lkey;
    else
        return false;
    return true;
}

/* A.rq_psn: a part of an object, allowed in any field. */
static bool part(struct drill_run *run, const char *name, uint64_t *out)
{
    const char *dot = strchr(name, '.');
    for (const struct drill_object *o = dot ? run->objects : NULL; o; o = o->next) {
        if (strncmp(o->name, name, (size_t)(dot - name)) != 0 || o->name[dot - name])
            continue;
        const struct {
            const char *name;
            bool qp;
            uint64_t value;
        } parts[] = {{"qpn", true, o->qpn},       {"peer_qpn", true, o->peer_qpn},
                     {"sq_psn", true, o->sq_psn}, {"rq_psn", true, o->rq_psn},
                     {"va", false, o->va},        {"rkey", false, o->rkey},
                     {"lkey", false, o->lkey},    {"len", false, o->len}};
        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
            if (!strcmp(parts[i].name, dot + 1) && parts[i].qp == (o->kind == KIND_QP)) {
                *out = parts[i].value;
                return true;
            }
    }
    return false;
}

bool drill_eval(struct drill_run *run, const struct drill_stmt *st, const struct drill_expr *e,
                enum drill_role role, uint64_t *out)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < e->n; i++) {
        uint64_t v = e->t[i].num;
        if (e->t[i].name && !part(run, e->t[i].name, &v)) {
            const struct drill_object *o = drill_find(run, e->t[i].name);
            if (!o)
                return drill_end(run, DRILL_WRONG, st, "there is no '%s'", e->t[i].name);
            if (!worth(o, role, &v))
                return drill_end(run, DRILL_WRONG, st, "the %s '%s' is no number here",
                                 drill_object_names[o->kind], o->name);
        }
        sum = e->t[i].minus ? sum - v : sum + v;
    }
    *out = sum;
    return true;
}

/* How many bits a field's number may have in a statement. */
static unsigned bits_of(const struct drill_stmt *st, const struct drill_field *f)
{
    if (f->bits)
        return f->bits;
    if (f->offset == DRILL_NO_MEMBER)
        return 32;
    return drill_field_is_mad(f) ? cm_msg_bits(drill_cm_attr(st), f->offset) : f->size * 8u;
}

bool drill_one(struct drill_run *run, const struct drill_stmt *st, const struct drill_arg *a,
               uint64_t *out)
{
    unsigned bits = bits_of(st, a->field);
    if (a->v.kind != VALUE_ONE)
        return drill_end(run, DRILL_WRONG, st, "'%s' must be one number here", a->field->name);
    if (!drill_eval(run, st, &a->v.lo, a->field->role, out))
        return false;
    if (a->v.lo.t[0].name && (a->field->role == ROLE_RKEY || a->field->role == ROLE_LKEY))
        *out &= UINT32_MAX; /* M+0x80000000: another key than M's */
    if (a->v.lo.t[0].name && a->field->role == ROLE_PSN)
        *out &= WIRE_PSN_MASK;
    return bits >= 64 || *out >> bits == 0 ||
           drill_end(run, DRILL_WRONG, st, "'%s': 0x%" PRIx64 " has more than %u bits",
                     a->field->name, *out, bits);
}

bool drill_number(struct drill_run *run, const struct drill_stmt *st, int id, uint64_t otherwise,
                  uint64_t *out)
{
    const struct drill_arg *a = drill_arg(st, id);
    *out = otherwise;
    if (!a)
        return true;
    switch ((enum drill_type)a->field->type) {
    case TYPE_FLAG:
        *out = !a->off;
        return true;
    case TYPE_NUM:
        return drill_one(run, st, a, out);
    default:
        *out = a->v.word;
        return true;
    }
}

bool drill_cc(struct drill_run *run, const struct drill_stmt *st, const struct drill_arg *a,
              struct cc_conf *out)
{
    char err[160];
    if (cc_conf_parse(out, a->v.name, err, sizeof(err)) == 0)
        return true;
    return drill_end(run, DRILL_WRONG, st, "cc: %s", err);
}

bool drill_fits(struct drill_run *run, const struct drill_stmt *st, const struct drill_value *v,
                enum drill_role role, uint64_t got, uint64_t mask, bool *fits)
{
    uint64_t lo = 0, hi = 0;
    *fits = true;
    switch (v->kind) {
    case VALUE_BIND:
        return run->trial || drill_set(run, st, v->name, got);
    case VALUE_RANGE:
        if (!drill_eval(run, st, &v->lo, role, &lo) || !drill_eval(run, st, &v->hi, role, &hi))
            return false;
        /* Circular: 0xfffffe..3 is five PSNs. */
        *fits = ((got - lo) & mask) <= ((hi - lo) & mask);
        return true;
    case VALUE_ONE:
        if (!drill_eval(run, st, &v->lo, role, &lo))
            return false;
        *fits = (got & mask) == (lo & mask);
        return true;
    default:
        return true;
    }
}

/* ---- members ---- */

void drill_put_member(void *base, const struct drill_field *f, uint64_t v)
{
    uint8_t *m = (uint8_t *)base + f->offset;
    uint8_t v8 = (uint8_t)v;
    uint16_t v16 = (uint16_t)v;
    uint32_t v32 = (uint32_t)v;
    switch (f->size) {
    case 1:
        memcpy(m, &v8, 1);
        return;
    case 2:
        memcpy(m, &v16, 2);
        return;
    case 4:
        memcpy(m, &v32, 4);
        return;
    default:
        memcpy(m, &v, 8);
    }
}

uint64_t drill_get_member(const void *base, const struct drill_field *f)
{
    const uint8_t *m = (const uint8_t *)base + f->offset;
    uint8_t v8;
    uint16_t v16;
    uint32_t v32;
    uint64_t v64;
    switch (f->size) {
    case 1:
        return memcpy(&v8, m, 1), v8;
    case 2:
        return memcpy(&v16, m, 2), v16;
    case 4:
        return memcpy(&v32, m, 4), v32;
    default:
        return memcpy(&v64, m, 8), v64;
    }
}

uint32_t drill_imm(uint32_t v)
{
    uint8_t b[4] = {(uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v};
    uint32_t out;
    memcpy(&out, b, 4);
    return out;
}

/* ---- texts ---- */

const char *drill_number_text(uint64_t v, char buf[DRILL_NUMBER_LEN])
{
    enum { DECIMAL_MAX = 4095 }; /* larger numbers are keys and addresses rather than counts */
    snprintf(buf, DRILL_NUMBER_LEN, v <= DECIMAL_MAX ? "%" PRIu64 : "0x%" PRIx64, v);
    return buf;
}

void drill_value_text(struct drill_run *run, const struct drill_stmt *st,
                      const struct drill_value *v, enum drill_role role, char *buf, size_t size)
{
    uint64_t lo = 0, hi = 0;
    char a[DRILL_NUMBER_LEN], b[DRILL_NUMBER_LEN];
    drill_eval(run, st, &v->lo, role, &lo);
    drill_eval(run, st, &v->hi, role, &hi);
    drill_number_text(lo, a);
    drill_number_text(hi, b);
    if (v->kind == VALUE_RANGE)
        snprintf(buf, size, "%s..%s", a, b);
    else
        snprintf(buf, size, "%s", a);
}

/* ---- octets ---- */

/* Octet `at` of a stream: no two streams, and no two places of one within 64 KiB, look alike. */
static uint8_t stream_octet(uint64_t stream, uint64_t at)
{
    uint64_t x = (at >> 3) * 0x9E3779B97F4A7C15ull + (stream + 1) * 0xD1B54A32D192ED03ull;
    x ^= x >> 29;
    x *= 0xBF58476D1CE4E5B9ull;
    x ^= x >> 32;
    return (uint8_t)(x >> (at & 7) * 8);
}

bool drill_octets_len(const struct drill_data *d, uint32_t *len)
{
    *len = d->kind == DATA_OCTETS ? d->len : d->kind == DATA_U64 ? 8 : 0;
    return d->kind == DATA_OCTETS || d->kind == DATA_U64;
}

bool drill_octets_fit(struct drill_run *run, const struct drill_stmt *st,
                      const struct drill_data *d, uint64_t len)
{
    uint32_t n;
    return !drill_octets_len(d, &n) || n == len ||
           drill_end(run, DRILL_WRONG, st, "these are %u octets, not %" PRIu64, n, len);
}

static bool memory_octets(struct drill_run *run, const struct drill_stmt *st,
                          const struct drill_data *d, uint64_t from, uint8_t *out, uint32_t len)
{
    struct drill_range g = {.at = d->a, .name = d->a.t[0].name};
    uint64_t off = 0, room = 0;
    const struct drill_object *mr = drill_range(run, st, &g, &off, &room);
    if (!mr)
        return false;
    if (!mr->octets || off > mr->len || from > mr->len - off || len > mr->len - off - from)
        return drill_end(run, DRILL_WRONG, st, "'%s' has only %" PRIu64 " octets", mr->name,
                         mr->len);
    memcpy(out, mr->octets + off + from, len);
    return true;
}

bool drill_octets(struct drill_run *run, const struct drill_stmt *st, const struct drill_data *d,
                  uint64_t from, uint8_t *out, uint32_t len)
{
    uint64_t a = 0, b = 0;
    if (!drill_eval(run, st, &d->b, ROLE_VALUE, &b))
        return false;
    if (d->kind == DATA_MEMORY)
        return memory_octets(run, st, d, from, out, len);
    if (!drill_eval(run, st, &d->a, ROLE_VALUE, &a))
        return false;
    if (d->b.n)
        from = b;
    switch (d->kind) {
    case DATA_STREAM:
        for (uint32_t i = 0; i < len; i++)
            out[i] = stream_octet(a, from + i);
        return true;
    case DATA_FILL:
        if (a > 255)
            return drill_end(run, DRILL_WRONG, st, "fill: 0x%" PRIx64 " is no octet", a);
        memset(out, (int)a, len);
        return true;
    case DATA_U64:
    case DATA_OCTETS: {
        const uint8_t *p = d->kind == DATA_U64 ? (const uint8_t *)&a : d->octets;
        uint32_t n;
        drill_octets_len(d, &n);
        if (from > n || len > n - from)
            return drill_octets_fit(run, st, d, from + len);
        if (len)
            memcpy(out, p + from, len);
        return true;
    }
    default:
        return drill_end(run, DRILL_WRONG, st, "these octets have no meaning here");
    }
}

struct drill_object *drill_range(struct drill_run *run, const struct drill_stmt *st,
                                 const struct drill_range *g, uint64_t *off, uint64_t *len)
{
    struct drill_object *o = g->name ? drill_find(run, g->name) : NULL;
    uint64_t at = 0;
    if (!o || !is_memory(o)) {
        drill_end(run, DRILL_WRONG, st, "'%s' is no memory", g->name ? g->name : "");
        return NULL;
    }
    if (!drill_eval(run, st, &g->at, ROLE_VA, &at))
        return NULL;
    *off = at - o->va;
    *len = *off < o->len ? o->len - *off : 0;
    return !g->len.n || drill_eval(run, st, &g->len, ROLE_VALUE, len) ? o : NULL;
}
