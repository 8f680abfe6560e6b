/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One end of a file copy: memory, posting, waiting.
 */
#include "copy_proto.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "cli.h"

#define NS_PER_MS 1000000u

/* Work request ids: the completed operation. */
#define ID_RECV  0x100000000ull /* + index of the receive buffer */
#define ID_SEND  0x200000000ull
#define ID_WRITE 0x300000000ull
#define ID_READ  0x1000000000000ull /* + chunk */

int copy_end_init(struct copy_end *e, struct urnic_context *ctx, unsigned access)
{
    const size_t window = (size_t)COPY_SLOTS * COPY_SLOT;
    const size_t total = window + 2ul * COPY_RECVS * sizeof(struct copy_msg);
    *e = (struct copy_end){0};
    int rc = resources_open(&e->res, ctx, 4 * (int)COPY_RECVS, true, total, access);
    if (rc < 0)
        return rc;
    e->slots = e->res.mem;
    e->in = (struct copy_msg *)(void *)(e->slots + window);
    e->out = e->in + COPY_RECVS;
    return 0;
}

void copy_end_free(struct copy_end *e)
{
    if (e->conn)
        urnic_close_conn(e->conn);
    resources_close(&e->res);
    *e = (struct copy_end){0};
}

void copy_end_attr(struct copy_end *e, struct urnic_conn_attr *attr)
{
    *attr = (struct urnic_conn_attr){
        .pd = e->res.pd,
        .qp =
            {
                .send_cq = e->res.cq,
                .recv_cq = e->res.cq,
                .qp_type = URNIC_QPT_RC,
                .cap = {.max_send_wr = 2 * COPY_RECVS,
                        .max_recv_wr = COPY_RECVS,
                        .max_send_sge = 1,
                        .max_recv_sge = 1},
            },
    };
}

static int post_recv(struct copy_end *e, struct urnic_qp *qp, unsigned i)
{
    struct urnic_sge sge = {(uintptr_t)&e->in[i], sizeof(e->in[i]), e->res.mr->lkey};
    struct urnic_recv_wr wr = {.wr_id = ID_RECV + i, .sg_list = &sge, .num_sge = 1};
    const struct urnic_recv_wr *bad;
    return urnic_post_recv(qp, &wr, &bad);
}

int copy_prepare(void *arg, struct urnic_qp *qp)
{
    struct copy_end *e = arg;
    int rc = 0;
    for (unsigned i = 0; i < COPY_RECVS && rc == 0; i++)
        rc = post_recv(e, qp, i);
    return rc;
}

static int post(struct copy_end *e, struct urnic_send_wr wr, uint64_t addr, uint32_t octets)
{
    struct urnic_sge sge = {addr, octets, e->res.mr->lkey};
    const struct urnic_send_wr *bad;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.send_flags = URNIC_SEND_SIGNALED;
    return urnic_post_send(e->conn->qp, &wr, &bad);
}

/* The protocol never has more than COPY_RECVS messages unanswered, so that a buffer of `out` is
 * free when its turn comes again. */
int copy_send(struct copy_end *e, const struct copy_msg *msg)
{
    struct copy_msg *out = &e->out[e->sent++ % COPY_RECVS];
    struct urnic_send_wr wr = {.wr_id = ID_SEND, .opcode = URNIC_WR_SEND};
    *out = *msg;
    out->magic = COPY_MAGIC;
    return post(e, wr, (uintptr_t)out, sizeof(*out));
}

int copy_write(struct copy_end *e, uint64_t k, uint32_t octets, uint64_t addr, uint32_t rkey)
{
    uint64_t off = k % COPY_SLOTS * COPY_SLOT;
    struct urnic_send_wr wr = {
        .wr_id = ID_WRITE,
        .opcode = URNIC_WR_RDMA_WRITE_WITH_IMM,
        .imm_data = octets,
        .rdma = {addr + off, rkey},
    };
    return post(e, wr, (uintptr_t)e->slots + off, octets);
}

int copy_read(struct copy_end *e, uint64_t k, uint32_t octets, uint64_t addr, uint32_t rkey)
{
    uint64_t off = k % COPY_SLOTS * COPY_SLOT;
    struct urnic_send_wr wr = {
        .wr_id = ID_READ + k,
        .opcode = URNIC_WR_RDMA_READ,
        .rdma = {addr + off, rkey},
    };
    return post(e, wr, (uintptr_t)e->slots + off, octets);
}

/* Process one completion. 1 = an arrival for the caller, 0 = none, -errno. */
static int take(struct copy_end *e, const struct urnic_wc *wc, struct copy_arrival *out)
{
    if (wc->status != URNIC_WC_SUCCESS) {
        e->failed = wc->status;
        return -EIO;
    }
    if (wc->wr_id >= ID_READ) {
        out->what = COPY_READ_DONE;
        out->chunk = wc->wr_id - ID_READ;
        return 1;
    }
    if (wc->wr_id >= ID_SEND)
        return 0;

    unsigned i = (unsigned)(wc->wr_id - ID_RECV);
    if (wc->opcode == URNIC_WC_RECV_RDMA_WITH_IMM) {
        out->what = COPY_IMM;
        out->imm = wc->imm_data;
    } else {
        out->what = COPY_MSG;
        out->msg = e->in[i];
        if (wc->byte_len != sizeof(out->msg) || out->msg.magic != COPY_MAGIC)
            return -EPROTO;
        out->msg.text[COPY_TEXT - 1] = 0;
    }
    int rc = post_recv(e, e->conn->qp, i);
    return rc < 0 ? rc : 1;
}

static int poll_once(struct copy_end *e, struct copy_arrival *out)
{
    struct urnic_wc wc;
    int n;
    while ((n = urnic_poll_cq(e->res.cq, 1, &wc)) > 0) {
        int rc = take(e, &wc, out);
        if (rc)
            return rc;
    }
    return n;
}

/* A hang-up of the peer shows on the connection's own channel. */
static bool hung_up(struct copy_end *e)
{
    struct urnic_cm_event ev;
    return urnic_get_cm_event(e->conn->channel, &ev) == 0 && ev.event == URNIC_CM_DISCONNECTED;
}

/* Take the next arrival; if there is none, the channel gets an event when one comes. 1 = taken, 0 =
 * none, -errno. */
static int look(struct copy_end *e, struct copy_arrival *out)
{
    int rc = poll_once(e, out);
    if (rc)
        return rc;
    rc = urnic_req_notify_cq(e->res.cq, false);
    return rc < 0 ? rc : poll_once(e, out); /* an arrival before the request makes no event */
}

/* Sleep until an event, a second at most. 1 = the peer has hung up, 0 = not, -errno. */
static int doze(struct copy_end *e, uint64_t ms)
{
    struct pollfd fds[2] = {
        {.fd = urnic_channel_fd(e->res.channel), .events = POLLIN},
        {.fd = urnic_cm_channel_fd(e->conn->channel), .events = POLLIN},
    };
    if (poll(fds, 2, ms > 1000 ? 1000 : (int)ms) < 0 && errno != EINTR)
        return -errno;
    if (fds[0].revents) {
        struct urnic_cq *cq;
        void *context;
        if (urnic_get_cq_event(e->res.channel, &cq, &context) == 0)
            urnic_ack_cq_events(cq, 1);
    }
    return fds[1].revents && hung_up(e);
}

int copy_wait(struct copy_end *e, struct copy_arrival *out, int timeout_ms)
{
    uint64_t end = timeout_ms < 0 ? UINT64_MAX : cli_now() + (uint64_t)timeout_ms * NS_PER_MS;
    for (;;) {
        int rc = look(e, out);
        if (rc)
            return rc < 0 ? rc : 0;
        if (cli_stop)
            return -EINTR;
        uint64_t now = cli_now();
        if (now >= end)
            return -ETIMEDOUT;
        rc = doze(e, (end - now) / NS_PER_MS + 1);
        if (rc < 0)
            return rc;
        if (rc) { /* earlier messages of the peer come first */
            if (poll_once(e, out) <= 0)
                out->what = COPY_GONE;
            return 0;
        }
    }
}
