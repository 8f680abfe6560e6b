/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections that end badly, keys that are invalidated, memory windows.
 */
#include <errno.h>
#include <string.h>

#include "record.h"

static bool failed_and_flushed(void *ctx)
{
    struct record *r = ctx;
    struct engine_qp_info info;
    engine_qp_info(r->host[0]->engine, r->qp[0], &info);
    return info.state == QPS_ERR && r->host[0]->wcs_n > 0;
}

static int until_failure(struct record *r)
{
    if (vnet_run(r->net, failed_and_flushed, r, RECORD_LIMIT))
        return record_fail(r, "%s", r->net->why);
    vnet_run_for(r->net, 100000);
    return 0;
}

static int request(struct record *r, uint8_t opcode, unsigned slot, uint32_t len, uint32_t rkey,
                   uint64_t va)
{
    struct engine_sge sge;
    struct engine_send_wr wr = record_wr(r, 0, opcode, slot, len, &sge);
    wr.rkey = rkey;
    wr.remote_va = va;
    return record_post(r, 0, &wr);
}

/* A good WRITE, so that there is something before the error. */
static int begin(struct record *r)
{
    if (record_connect(r) || request(r, WR_RDMA_WRITE, 0, 1500, r->rkey[1], record_va(1, 0)))
        return -1;
    return record_wait(r, 0, 1);
}

int record_peer_gone(struct record *r)
{
    if (begin(r))
        return -1;
    struct mem_link_faults f;
    for (unsigned i = 0; i < 2; i++) {
        mem_link_faults_get(r->net->link, i, &f);
        f.loss = 1;
        mem_link_faults_set(r->net->link, i, &f);
    }
    record_log(r, "from now on nothing arrives");
    if (request(r, WR_RDMA_WRITE, 1, 1500, r->rkey[1], record_va(1, 1)))
        return -1;
    return until_failure(r);
}

int record_bad_rkey(struct record *r)
{
    uint32_t bad = r->rkey[1] ^ 0x100;
    if (begin(r) || request(r, WR_RDMA_WRITE, 1, 1500, bad, record_va(1, 1)) ||
        request(r, WR_RDMA_WRITE, 2, 100, r->rkey[1], record_va(1, 2)))
        return -1;
    return until_failure(r);
}

int record_read_outside(struct record *r)
{
    uint64_t end = record_va(1, 0) + RECORD_ARENA;
    if (begin(r) || request(r, WR_RDMA_READ, 1, 1500, r->rkey[1], end - 1499))
        return -1;
    return until_failure(r);
}

int record_too_long(struct record *r)
{
    if (begin(r) || record_post_recv(r, 1, 0, 1499) || request(r, WR_SEND, 1, 1500, 0, 0))
        return -1;
    return until_failure(r);
}

static int64_t no_memory(void *ctx, const struct engine_copy *copy, uint64_t now)
{
    (void)ctx, (void)copy, (void)now;
    return -EFAULT;
}

int record_copy_fails(struct record *r)
{
    if (begin(r) || record_post_recv(r, 1, 0, 1500))
        return -1;
    r->host[1]->copier.place = no_memory;
    record_log(r, "B's receive buffer is gone: its process has died");
    if (request(r, WR_SEND, 1, 1500, 0, 0))
        return -1;
    return until_failure(r);
}

/* ---- keys that come and go ---- */

static int send_inv(struct record *r, unsigned slot, uint32_t len, uint32_t key)
{
    struct engine_sge sge;
    struct engine_send_wr wr = record_wr(r, 0, WR_SEND_WITH_INV, slot, len, &sge);
    wr.imm = key;
    return record_post_recv(r, 1, slot, RECORD_SLOT) || record_post(r, 0, &wr) ? -1 : 0;
}

int record_send_inv(struct record *r)
{
    static const uint32_t len[] = {0, 700, 3000};
    struct mem *m = r->host[1]->mem;
    if (begin(r))
        return -1;
    for (unsigned i = 0; i < 3; i++) {
        struct mem_seg seg = vnet_seg(record_at(r, 1, i), RECORD_SLOT);
        uint32_t lkey, key;
        if (mem_fr_alloc(m, r->host[1]->pd, 1, &lkey, &key) ||
            mem_fr_reg(m, r->host[1]->pd, key, record_va(1, i), RECORD_SLOT,
                       MEM_LOCAL_WRITE | MEM_REMOTE_ANY, &seg, 1))
            return record_fail(r, "no fast registration");
        record_log(r, "B: fast-registered key %08x", key);
        if (request(r, WR_RDMA_WRITE, i, 100, key, record_va(1, i)) || send_inv(r, i, len[i], key))
            return -1;
        if (record_wait(r, 0, 1 + 2 * (i + 1)))
            return -1;
    }
    return 0;
}

static int bind(struct record *r, uint32_t mw, uint32_t key, unsigned slot)
{
    struct engine_send_wr wr = {.opcode = WR_BIND_MW,
                                .flags = WR_F_SIGNALED,
                                .mw_rkey = mw,
                                .mw_new_rkey = key,
                                .mw_lkey = r->lkey[1],
                                .mw_va = record_va(1, slot),
                                .mw_len = RECORD_SLOT,
                                .mw_access = MEM_REMOTE_WRITE | MEM_REMOTE_READ};
    size_t wcs = r->host[1]->wcs_n;
    if (record_post(r, 1, &wr) || record_wait(r, 1, wcs + 1))
        return -1;
    record_log(r, "B: window %08x bound", key);
    return 0;
}

/* A window of each type: used, the second invalidated by A's SEND, then used once more. */
int record_windows(struct record *r)
{
    struct mem *m = r->host[1]->mem;
    uint32_t mw[2], key[2];
    if (begin(r))
        return -1;
    for (unsigned type = 1; type <= 2; type++) {
        unsigned i = type - 1;
        if (mem_mw_alloc(m, r->host[1]->pd, type, &mw[i]))
            return record_fail(r, "no window");
        key[i] = (mw[i] & ~0xFFu) | ((mw[i] + 1) & 0xFF);
        if (bind(r, mw[i], key[i], 2 + i) ||
            request(r, WR_RDMA_WRITE, 2 + i, 1500, key[i], record_va(1, 2 + i)) ||
            request(r, WR_RDMA_READ, 2 + i, 1500, key[i], record_va(1, 2 + i)) ||
            record_wait(r, 0, 1 + 2 * type))
            return -1;
    }
    if (send_inv(r, 4, 64, key[1]) || record_wait(r, 0, 6))
        return -1;
    record_log(r, "A: its SEND has invalidated %08x", key[1]);
    if (request(r, WR_RDMA_WRITE, 3, 100, key[1], record_va(1, 3)))
        return -1;
    return until_failure(r);
}
