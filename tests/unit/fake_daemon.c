/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See fake_daemon.h.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fake_priv.h"

static int make_memfd(size_t size, uint8_t **at)
{
    int fd = memfd_create("fake", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
        abort();
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        abort();
    *at = p;
    return fd;
}

struct obj *obj_new(struct conn *c, enum kind kind, uint32_t *handle)
{
    for (uint32_t i = 1; i < OBJS; i++) {
        if (c->obj[i].kind == NONE) {
            c->obj[i] = (struct obj){.kind = kind, .conn = c, .fd = -1};
            *handle = i;
            return &c->obj[i];
        }
    }
    abort();
}

struct obj *obj_get(struct conn *c, uint32_t handle, enum kind kind)
{
    return handle < OBJS && c->obj[handle].kind == kind ? &c->obj[handle] : NULL;
}

/* ---- queues ---- */

static void *carve(struct conn *c, struct ipc_where *w, uint32_t entries, uint32_t stride)
{
    *w = (struct ipc_where){.off = c->slab_used, .slab = 1, .entries = entries, .stride = stride};
    if (!c->slab_known) {
        c->slab_known = true;
        w->slab_size = c->slab_size;
    }
    c->slab_used += 192 + (size_t)entries * stride;
    c->slab_used = (c->slab_used + 63) & ~(size_t)63;
    if (c->slab_used > c->slab_size)
        abort();
    return c->slab + w->off;
}

static uint32_t pow2(uint32_t n)
{
    uint32_t p = 1;
    while (p < n)
        p *= 2;
    return p;
}

static void complete(struct obj *qp, struct ipc_cqe *e, struct obj *cq, bool solicited)
{
    e->qp_ref = qp->ref;
    e->qpn = qp->qpn;
    if (!ipc_cq_push(&cq->cq, e))
        abort();
    struct ipc_comp_event ev = {.ref = cq->ref};
    if (cq->channel != NULL && ipc_cq_notify(&cq->cq, solicited || e->status != 0))
        send(cq->channel->fd, &ev, sizeof(ev), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static uint32_t gather(const struct ipc_send *s, uint8_t *to)
{
    uint32_t n = s->wr.inline_len;
    if (s->inline_data != NULL)
        memcpy(to, s->inline_data, n);
    for (uint32_t i = 0; i < s->wr.nsge; i++) {
        memcpy(to + n, (const void *)(uintptr_t)s->sge[i].va, s->sge[i].len);
        n += s->sge[i].len;
    }
    return n;
}

static struct obj *find_qp(struct fake *f, uint32_t qpn)
{
    for (int i = 0; i < CONNS; i++)
        for (int j = 1; j < OBJS; j++)
            if (f->conn[i].obj[j].kind == QP && f->conn[i].obj[j].qpn == qpn)
                return &f->conn[i].obj[j];
    return NULL;
}

/* A SEND, or a WRITE with immediate, takes a receive from the other side. */
static bool deliver(struct obj *from, struct obj *to, const struct ipc_send *s, const uint8_t *data,
                    uint32_t len)
{
    struct ipc_recv_entry r;
    struct ipc_ring *rq = to->srq != NULL ? &to->srq->rq : &to->rq;
    if (ipc_rq_fetch(rq, &r) != 1)
        return false;
    ipc_ring_release(rq);
    bool imm = s->wr.opcode == WR_SEND_WITH_IMM || s->wr.opcode == WR_RDMA_WRITE_WITH_IMM;
    if (r.nsge > 0 && s->wr.opcode != WR_RDMA_WRITE_WITH_IMM)
        memcpy((void *)(uintptr_t)r.sge[0].va, data, len);
    struct ipc_cqe e = {
        .cookie = r.cookie,
        .kind = IPC_CQE_RECV,
        .opcode = s->wr.opcode == WR_RDMA_WRITE_WITH_IMM ? 129 : 128,
        .byte_len = len,
        .src_qpn = from->qpn,
        .imm = s->wr.imm,
        .wc_flags = imm ? 2 : 0,
    };
    complete(to, &e, to->recv_cq, s->wr.flags & WR_F_SOLICITED);
    return true;
}

static unsigned execute(struct fake *f, struct obj *qp, const struct ipc_send *s, uint32_t *len)
{
    static const unsigned rnr_retry_exceeded = 13;
    static uint8_t data[1 << 16];
    uint8_t *remote = (uint8_t *)(uintptr_t)s->wr.remote_va;
    uint64_t old;
    switch (s->wr.opcode) {
    case WR_RDMA_READ:
        for (uint32_t i = 0; i < s->wr.nsge; i++) {
            memcpy((void *)(uintptr_t)s->sge[i].va, remote + *len, s->sge[i].len);
            *len += s->sge[i].len;
        }
        return 0;
    case WR_ATOMIC_CMP_AND_SWP:
    case WR_ATOMIC_FETCH_AND_ADD:
        memcpy(&old, remote, 8);
        memcpy((void *)(uintptr_t)s->sge[0].va, &old, 8);
        uint64_t new = s->wr.opcode == WR_ATOMIC_FETCH_AND_ADD ? old + s->atomic.compare_add
                       : old == s->atomic.compare_add          ? s->atomic.swap
                                                               : old;
        memcpy(remote, &new, 8);
        *len = 8;
        return 0;
    default:
        *len = gather(s, data);
    }
    if (*len && (s->wr.opcode == WR_RDMA_WRITE || s->wr.opcode == WR_RDMA_WRITE_WITH_IMM))
        memcpy(remote, data, *len);
    if (s->wr.opcode == WR_RDMA_WRITE)
        return 0;
    struct obj *to = find_qp(f, qp->type == 4 ? s->ud.qpn : qp->dest);
    return to != NULL && deliver(qp, to, s, data, *len) ? 0 : rnr_retry_exceeded;
}

static void serve_sq(struct fake *f, struct obj *qp)
{
    static const uint8_t wc_opcode[] = {1, 1, 0, 0, 2, 3, 4, 6, 5, 0};
    struct ipc_send s;
    int ret;
    while ((ret = ipc_sq_fetch(&qp->sq, &s)) == 1) {
        uint32_t len = 0;
        unsigned status = 2;
        if (s.wr.opcode != IPC_WR_MALFORMED)
            status = qp->state == 6 ? 5 : execute(f, qp, &s, &len);
        if (status == 0)
            status = atomic_load(&f->knobs.status);
        ipc_ring_release(&qp->sq);
        if (!qp->sig_all && !(s.wr.flags & WR_F_SIGNALED) && status == 0)
            continue;
        struct ipc_cqe e = {
            .cookie = s.wr.cookie,
            .kind = IPC_CQE_SEND,
            .status = (uint8_t)status,
            .opcode = s.wr.opcode < sizeof(wc_opcode) ? wc_opcode[s.wr.opcode] : 0,
            .byte_len = len,
        };
        complete(qp, &e, qp->send_cq, false);
    }
    if (ret < 0)
        abort();
}

/* Serve doorbells; false when there were none. */
static bool serve_queues(struct fake *f, struct conn *c)
{
    bool any = false;
    int64_t n;
    if (atomic_load(&f->knobs.hold))
        return false;
    while ((n = ipc_doorbell_pop(c->db, DOORBELLS, &c->head)) >= 0) {
        any = true;
        struct obj *o = (size_t)n < c->bells ? c->bell[n] : NULL;
        if (o == NULL)
            continue;
        ipc_ring_attend(o->kind == QP && n % 2 == 0 ? &o->sq : &o->rq);
    }
    for (int i = 1; i < OBJS; i++)
        if (c->obj[i].kind == QP)
            serve_sq(f, &c->obj[i]);
    return any;
}

/* ---- requests ---- */

static int ours(int pair[2], int type)
{
    if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair) < 0)
        abort();
    return pair[0];
}

static int ctx_open(struct conn *c, struct answer *a)
{
    int pair[2];
    uint8_t *worker;
    c->slab_size = 8u << 20;
    c->slab_fd = make_memfd(c->slab_size, &c->slab);
    c->db = (struct ipc_doorbell *)(void *)c->slab;
    c->slab_used = 64 + DOORBELLS * 4;
    a->fds[0] = dup(c->slab_fd);
    a->fds[1] = make_memfd(4096, &worker);
    c->worker = (struct ipc_worker *)(void *)worker;
    c->kick = ours(pair, SOCK_STREAM);
    a->fds[2] = pair[1];
    c->async = ours(pair, SOCK_SEQPACKET);
    a->fds[3] = pair[1];
    a->nfds = 4;
    a->m.ctx_opened.slab_size = c->slab_size;
    a->m.ctx_opened.worker_size = 4096;
    a->m.ctx_opened.doorbells = DOORBELLS;
    a->len = sizeof(a->m.ctx_opened);
    return 0;
}

static int channel_create(struct conn *c, enum kind kind, struct answer *a)
{
    int pair[2];
    struct obj *o = obj_new(c, kind, &a->m.handle.handle);
    o->fd = ours(pair, SOCK_SEQPACKET);
    a->fds[a->nfds++] = pair[1];
    a->len = sizeof(a->m.handle);
    return 0;
}

static void add_bell(struct conn *c, struct obj *o, struct ipc_where *w)
{
    w->doorbell = c->bells;
    c->bell[c->bells++] = o;
}

static int qp_create(struct fake *f, struct conn *c, const struct ipc_qp_create *r,
                     struct answer *a)
{
    static uint32_t next_qpn = 0x100;
    struct ipc_qp *out = &a->m.qp;
    struct obj *o = obj_new(c, QP, &out->qp);
    o->ref = r->ref;
    o->type = r->type;
    o->qpn = out->qpn = next_qpn++;
    o->dest = o->qpn;
    o->send_cq = obj_get(c, r->send_cq, CQ);
    o->recv_cq = obj_get(c, r->recv_cq, CQ);
    o->srq = r->srq != 0 ? obj_get(c, r->srq, SRQ) : NULL;
    o->sig_all = r->sq_sig_all;
    out->max_send_wr = r->max_send_wr;
    out->max_recv_wr = r->max_recv_wr;
    out->max_send_sge = r->max_send_sge;
    out->max_recv_sge = r->max_recv_sge;
    out->max_inline = r->max_inline;
    bool known = c->slab_known;
    uint32_t units = ipc_sqe_units_max(r->max_send_sge, r->max_inline, r->type == 4);
    void *at = carve(c, &out->sq, pow2(r->max_send_wr * units), IPC_UNIT);
    ipc_ring_init(&o->sq, at, out->sq.entries, IPC_UNIT, r->type == 4);
    add_bell(c, o, &out->sq);
    if (o->srq == NULL) {
        uint32_t stride = ipc_rq_stride(r->max_recv_sge);
        at = carve(c, &out->rq, pow2(r->max_recv_wr), stride);
        ipc_ring_init(&o->rq, at, out->rq.entries, stride, false);
        add_bell(c, o, &out->rq);
    } else {
        c->bells++;
    }
    if (!known)
        a->fds[a->nfds++] = dup(c->slab_fd);
    a->len = sizeof(*out);
    f->newest_qp = o;
    return r->cm_id != 0 ? cm_take(c, r->cm_id, out->qp) : 0;
}

int qp_modify(struct conn *c, const struct ipc_qp_modify *r)
{
    struct obj *o = obj_get(c, r->qp, QP);
    if (o == NULL)
        return -EINVAL;
    if (r->mask & (1u << 20))
        o->dest = r->attr.dest_qpn;
    if (!(r->mask & 1))
        return 0;
    o->state = r->attr.state;
    if (o->state == 0) {
        o->sq.index = o->rq.index = 0;
        atomic_store(&o->sq.q->prod, 0);
        ipc_ring_release(&o->sq);
        if (o->srq == NULL) {
            atomic_store(&o->rq.q->prod, 0);
            ipc_ring_release(&o->rq);
        }
    }
    return 0;
}

static int destroy(struct conn *c, const union msg *r)
{
    if (r->handle.handle >= OBJS || c->obj[r->handle.handle].kind == NONE)
        return -EINVAL;
    struct obj *o = &c->obj[r->handle.handle];
    for (int i = 1; i < OBJS; i++)
        if (c->obj[i].kind != NONE && (c->obj[i].channel == o || c->obj[i].send_cq == o ||
                                       c->obj[i].recv_cq == o || c->obj[i].srq == o))
            return -EBUSY;
    for (uint32_t i = 0; i < c->bells; i++)
        if (c->bell[i] == o)
            c->bell[i] = NULL;
    if (o->fd >= 0)
        close(o->fd);
    *o = (struct obj){0};
    return 0;
}

/* Describe the fake's only device, with one port and one address. */
static int describe(const union msg *r, struct answer *a)
{
    switch (r->hdr.type) {
    case IPC_DEVICE_LIST:
        a->m.handle.handle = 1; /* where the count is */
        strcpy((char *)a->m.raw + sizeof(struct ipc_device_list), "urn0");
        a->len = sizeof(struct ipc_device_list) + sizeof(struct ipc_device);
        return 0;
    case IPC_DEVICE_QUERY:
        strcpy(a->m.device_attr.dev.name, "urn0");
        a->m.device_attr.max_cqe = 1 << 18;
        a->len = sizeof(a->m.device_attr);
        return 0;
    case IPC_PORT_QUERY:
        a->m.port_attr.state = IPC_PORT_ACTIVE;
        a->m.port_attr.active_mtu = IPC_MTU_4096;
        a->m.port_attr.bad_pkey_cntr = 7;
        a->m.port_attr.qkey_viol_cntr = 0xFFFF;
        a->m.port_attr.dscp = 26;
        a->len = sizeof(a->m.port_attr);
        return 0;
    default:                    /* IPC_GID_TABLE */
        a->m.handle.handle = 1; /* where the count is */
        memcpy(a->m.raw + sizeof(struct ipc_gid_table),
               &(struct ipc_gid){.index = 3, .type = IPC_GID_V2, .gid = {0xfd}},
               sizeof(struct ipc_gid));
        a->len = sizeof(struct ipc_gid_table) + sizeof(struct ipc_gid);
        return 0;
    }
}

static int slab_alloc(struct conn *c, const struct ipc_slab_alloc *r, struct answer *a)
{
    uint8_t *at;
    obj_new(c, SLAB, &a->m.slab.slab);
    a->m.slab.size = (r->size + 4095) & ~4095ull;
    a->fds[a->nfds++] = make_memfd(a->m.slab.size, &at);
    munmap(at, a->m.slab.size);
    a->len = sizeof(a->m.slab);
    return 0;
}

static int mr_reg(struct conn *c, const struct ipc_mr_reg *r, unsigned nfds, struct answer *a)
{
    if (nfds != (r->kind == IPC_MR_FD))
        return -EINVAL;
    if (r->kind != IPC_MR_SLAB && r->kind != IPC_MR_FD)
        return -ENOTSUP; /* an old daemon */
    obj_new(c, MR, &a->m.mr.mr);
    a->m.mr.lkey = a->m.mr.rkey = 0x1000 + a->m.mr.mr;
    a->len = sizeof(a->m.mr);
    return 0;
}

static int cq_create(struct conn *c, const struct ipc_cq_create *r, struct answer *a)
{
    bool known = c->slab_known;
    struct obj *o = obj_new(c, CQ, &a->m.cq.cq);
    o->ref = r->ref;
    o->channel = obj_get(c, r->channel, CHANNEL);
    a->m.cq.cqe = pow2(r->cqe);
    ipc_cq_view_init(&o->cq, carve(c, &a->m.cq.ring, a->m.cq.cqe, IPC_UNIT), a->m.cq.cqe);
    if (!known)
        a->fds[a->nfds++] = dup(c->slab_fd);
    a->len = sizeof(a->m.cq);
    return 0;
}

static int srq_create(struct conn *c, const struct ipc_srq_create *r, struct answer *a)
{
    bool known = c->slab_known;
    uint32_t stride = ipc_rq_stride(r->max_sge);
    struct obj *o = obj_new(c, SRQ, &a->m.srq.srq);
    o->ref = r->ref;
    a->m.srq.max_wr = r->max_wr;
    a->m.srq.max_sge = r->max_sge;
    uint8_t *at = carve(c, &a->m.srq.ring, pow2(r->max_wr), stride);
    ipc_ring_init(&o->rq, at, a->m.srq.ring.entries, stride, false);
    add_bell(c, o, &a->m.srq.ring);
    c->bells++;
    if (!known)
        a->fds[a->nfds++] = dup(c->slab_fd);
    a->len = sizeof(a->m.srq);
    return 0;
}

static int request(struct fake *f, struct conn *c, const union msg *r, struct answer *a,
                   unsigned nfds)
{
    switch (r->hdr.type) {
    case IPC_HELLO:
        ipc_hello_fill(&a->m.hello, IPC_FEAT_CM | IPC_FEAT_DRIVE);
        if (atomic_load(&f->knobs.minor) > 0)
            a->m.hello.minor = (uint16_t)atomic_load(&f->knobs.minor);
        a->len = sizeof(a->m.hello);
        return ipc_hello_check(&r->hello);
    case IPC_DEVICE_LIST:
    case IPC_DEVICE_QUERY:
    case IPC_PORT_QUERY:
    case IPC_GID_TABLE:
        return describe(r, a);
    case IPC_CTX_OPEN:
        return ctx_open(c, a);
    case IPC_PD_ALLOC:
        obj_new(c, PD, &a->m.handle.handle);
        a->len = sizeof(a->m.handle);
        return 0;
    case IPC_SLAB_ALLOC:
        return slab_alloc(c, &r->slab_alloc, a);
    case IPC_MR_REG:
        return mr_reg(c, &r->mr_reg, nfds, a);
    case IPC_CHANNEL_CREATE:
        return channel_create(c, CHANNEL, a);
    case IPC_CM_CHANNEL_CREATE:
        return channel_create(c, CM_CHANNEL, a);
    case IPC_CQ_CREATE:
        return cq_create(c, &r->cq_create, a);
    case IPC_SRQ_CREATE:
        return srq_create(c, &r->srq_create, a);
    case IPC_QP_CREATE:
        return qp_create(f, c, &r->qp_create, a);
    case IPC_QP_MODIFY:
        return qp_modify(c, &r->qp_modify);
    case IPC_AV_RESOLVE:
        a->m.av.av = r->av.av;
        a->m.av.av.dmac[5] = 7;
        a->len = sizeof(a->m.av);
        return 0;
    case IPC_PD_FREE:
    case IPC_SLAB_FREE:
    case IPC_MR_DEREG:
    case IPC_CHANNEL_DESTROY:
    case IPC_CQ_DESTROY:
    case IPC_SRQ_DESTROY:
    case IPC_CM_CHANNEL_DESTROY:
        return destroy(c, r);
    case IPC_QP_DESTROY: {
        int status = destroy(c, r);
        if (status == 0 && r->qp_destroy.cm_id != 0)
            cm_destroy(c, r->qp_destroy.cm_id);
        return status;
    }
    default:
        return r->hdr.type >= IPC_CM_CHANNEL_CREATE ? cm_request(f, c, r, a) : -ENOTSUP;
    }
}

static void conn_close(struct conn *c)
{
    if (c->sock < 0)
        return;
    for (int i = 1; i < OBJS; i++)
        if (c->obj[i].kind != NONE && c->obj[i].fd >= 0)
            close(c->obj[i].fd);
    close(c->sock);
    if (c->slab != NULL) {
        close(c->kick);
        close(c->async);
        close(c->slab_fd);
        munmap(c->slab, c->slab_size);
        munmap(c->worker, 4096);
    }
    *c = (struct conn){.sock = -1};
}

static void answer(struct conn *c, struct answer *a)
{
    ipc_send(c->sock, &a->m, a->len, a->fds, a->nfds, 0);
    while (a->nfds > 0)
        close(a->fds[--a->nfds]);
}

static void lie(struct ipc_where *w, enum fake_lie lie)
{
    switch (lie) {
    case FAKE_NO_ENTRIES:
        w->entries = 0;
        break;
    case FAKE_3_ENTRIES:
        w->entries = 3;
        break;
    case FAKE_TOO_LONG:
        w->entries = 1u << 30;
        break;
    case FAKE_OUTSIDE:
        w->off = 1ull << 40;
        break;
    case FAKE_UNALIGNED:
        w->off += 8;
        break;
    case FAKE_NOWHERE:
        w->slab = 77;
        break;
    default:
        break;
    }
}

static void control(struct fake *f, struct conn *c)
{
    union msg m = {0};
    struct answer a = {.len = sizeof(struct ipc_hdr)};
    int fds[IPC_FD_MAX];
    unsigned nfds = IPC_FD_MAX;
    ssize_t n = ipc_recv(c->sock, &m, sizeof(m), fds, &nfds, MSG_DONTWAIT);
    if (n == -EAGAIN)
        return;
    if (n < (ssize_t)sizeof(m.hdr)) {
        conn_close(c);
        return;
    }
    int status = request(f, c, &m, &a, nfds);
    if (m.hdr.type == IPC_CQ_CREATE)
        lie(&a.m.cq.ring, atomic_exchange(&f->knobs.lie, FAKE_TRUE));
    a.m.hdr.type = m.hdr.type;
    a.m.hdr.flags = IPC_F_REPLY;
    a.m.hdr.id = m.hdr.id;
    a.m.hdr.status = status;
    for (unsigned i = atomic_load(&f->knobs.newer); i > 0 && m.hdr.type != IPC_HELLO; i--)
        a.m.raw[a.len++] = (uint8_t)i;
    unsigned kept = atomic_load(&f->knobs.kept);
    if (m.hdr.type == atomic_load(&f->knobs.late) && kept < KEPT) {
        f->late[kept].to = c;
        f->late[kept].a = a;
        atomic_store(&f->knobs.kept, kept + 1);
    } else {
        answer(c, &a);
    }
    while (nfds > 0)
        close(fds[--nfds]);
}

static void late(struct fake *f)
{
    unsigned kept = atomic_load(&f->knobs.kept);
    if (atomic_load(&f->knobs.late) != 0)
        return;
    while (kept > 0) {
        kept--;
        answer(f->late[kept].to, &f->late[kept].a);
        atomic_store(&f->knobs.kept, kept);
    }
}

static void poll_all(struct fake *f)
{
    struct pollfd p[1 + 2 * CONNS] = {{.fd = f->listener, .events = POLLIN}};
    char buf[64];
    for (int i = 0; i < CONNS; i++) {
        struct conn *c = &f->conn[i];
        p[1 + 2 * i] = (struct pollfd){.fd = c->sock, .events = POLLIN};
        p[2 + 2 * i] = (struct pollfd){.fd = c->db != NULL ? c->kick : -1, .events = POLLIN};
        if (c->db != NULL) {
            ipc_worker_sleeping(c->worker, true);
            if (!atomic_load(&f->knobs.hold) && ipc_doorbell_ready(c->db, DOORBELLS, c->head))
                return;
        }
    }
    poll(p, 1 + 2 * CONNS, 20);
    for (int i = 0; i < CONNS; i++) {
        struct conn *c = &f->conn[i];
        if (c->db == NULL)
            continue;
        ipc_worker_sleeping(c->worker, false);
        ssize_t n = recv(c->kick, buf, sizeof(buf), MSG_DONTWAIT);
        if (n > 0)
            atomic_fetch_add(&f->knobs.kicks, (unsigned)n);
    }
    if (p[0].revents & POLLIN) {
        int sock = accept(f->listener, NULL, NULL);
        for (int i = 0; i < CONNS; i++) {
            if (f->conn[i].sock < 0) {
                f->conn[i].sock = sock;
                return;
            }
        }
        abort();
    }
}

static void *fake_thread(void *arg)
{
    struct fake *f = arg;
    while (!atomic_load(&f->stop) && !atomic_load(&f->knobs.kill)) {
        bool any = false;
        late(f);
        for (int i = 0; i < CONNS; i++) {
            struct conn *c = &f->conn[i];
            if (c->sock >= 0)
                control(f, c);
            if (c->sock >= 0 && c->db != NULL)
                any |= serve_queues(f, c);
        }
        unsigned stale = atomic_load(&f->knobs.stale_async);
        if (stale != 0) {
            struct ipc_async ev = {.event = stale - 1, .ref = UINT32_MAX};
            for (int i = 0; i < CONNS; i++)
                if (f->conn[i].sock >= 0 && f->conn[i].db != NULL)
                    send(f->conn[i].async, &ev, sizeof(ev), MSG_NOSIGNAL);
            atomic_store(&f->knobs.stale_async, 0);
        }
        unsigned async = atomic_load(&f->knobs.async);
        if (async != 0) {
            struct ipc_async ev = {
                .event = async - 1, .ref = f->newest_qp->ref, .flags = atomic_load(&f->knobs.lost)};
            send(f->newest_qp->conn->async, &ev, sizeof(ev), MSG_NOSIGNAL);
            atomic_store(&f->knobs.async, 0);
        }
        if (!any)
            poll_all(f);
    }
    for (int i = 0; i < CONNS; i++)
        conn_close(&f->conn[i]);
    close(f->listener);
    return NULL;
}

struct fake *fake_start(void)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    struct fake *f = calloc(1, sizeof(*f));
    if (f == NULL)
        abort();
    strcpy(f->dir, "/tmp/urnic-fake-XXXXXX");
    if (mkdtemp(f->dir) == NULL)
        abort();
    snprintf(f->path, sizeof(f->path), "%s/sock", f->dir);
    memcpy(sa.sun_path, f->path, sizeof(f->path));
    f->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (bind(f->listener, (struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(f->listener, 8) < 0)
        abort();
    for (int i = 0; i < CONNS; i++)
        f->conn[i].sock = -1;
    setenv("URNIC_SOCKET", f->path, 1);
    pthread_create(&f->thread, NULL, fake_thread, f);
    return f;
}

struct fake_knobs *fake_knobs(struct fake *f)
{
    return &f->knobs;
}

void fake_stop(struct fake *f)
{
    atomic_store(&f->stop, true);
    pthread_join(f->thread, NULL);
    unlink(f->path);
    rmdir(f->dir);
    free(f);
}
