/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Taking entries out of queues that an untrusted process writes: each octet is read once into
 * private memory, and every decision is made on that copy (SHM-01, SHM-02, SHM-03).
 */
#include "ipc_ring.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef URNIC_INVARIANTS
void ipc_ring_holds(bool ok, const char *invariant, uint32_t index, uint32_t other,
                    uint32_t entries)
{
    if (ok)
        return;
    fprintf(stderr, "urnic: invariant %s: index %u, the other side's %u, %u entries\n", invariant,
            index, other, entries);
    abort();
}
#endif

/* Entries between our index and the producer's; a difference larger than the ring is invalid. */
static int64_t ring_available(const struct ipc_ring *r)
{
    uint32_t prod = atomic_load_explicit(&r->q->prod, memory_order_acquire);
    uint32_t n = prod - r->index;
    return n <= r->entries ? (int64_t)n : -1;
}

/* One read of each octet: the compiler may not fetch a field again from shared memory. */
static void copy_once(void *dst, const void *shared, size_t len)
{
    memcpy(dst, shared, len);
    atomic_signal_fence(memory_order_seq_cst);
}

/* Do the segments or inline data of the entry lie inside its units? */
static bool send_shape_ok(const struct ipc_sqe *wr, uint32_t ext)
{
    uint32_t room = wr->units * IPC_UNIT - (uint32_t)sizeof(*wr);
    if (ext > room)
        return false;
    room -= ext;
    if (wr->opcode >= WR_OPCODE_MAX || (wr->flags & ~WR_F_ALL) != 0)
        return false;
    if (wr->flags & WR_F_INLINE)
        return wr->nsge == 0 && wr->inline_len <= IPC_INLINE_MAX && wr->inline_len <= room;
    return wr->inline_len == 0 && wr->nsge <= IPC_SGE_MAX &&
           wr->nsge * sizeof(struct ipc_sge) <= room;
}

int ipc_sq_fetch(struct ipc_ring *r, struct ipc_send *out)
{
    int64_t avail = ring_available(r);
    if (avail <= 0)
        return avail < 0 ? -EPROTO : 0;

    uint32_t mask = r->entries - 1;
    copy_once(out->raw, r->base + (size_t)(r->index & mask) * IPC_UNIT, IPC_UNIT);
    uint32_t units = out->wr.units;
    if (units == 0 || units > IPC_UNITS_MAX || units > avail)
        return -EPROTO;
    for (uint32_t i = 1; i < units; i++)
        copy_once(out->raw + (size_t)i * IPC_UNIT,
                  r->base + (size_t)((r->index + i) & mask) * IPC_UNIT, IPC_UNIT);
    r->index += units;

    uint32_t ext = ipc_ring_ext(r, out->wr.opcode);
    const uint8_t *at = out->raw + sizeof(out->wr);
    out->sge = NULL;
    out->inline_data = NULL;
    if (!send_shape_ok(&out->wr, ext)) {
        out->wr.opcode = IPC_WR_MALFORMED;
        out->wr.flags &= WR_F_SIGNALED;
        out->wr.nsge = 0;
        out->wr.inline_len = 0;
        return 1;
    }
    if (r->ud)
        memcpy(&out->ud, at, sizeof(out->ud));
    else if (out->wr.opcode == WR_BIND_MW)
        memcpy(&out->bind, at, sizeof(out->bind));
    else if (out->wr.opcode == WR_REG_MR)
        memcpy(&out->reg, at, sizeof(out->reg));
    else if (ipc_sqe_ext(out->wr.opcode, false) != 0)
        memcpy(&out->atomic, at, sizeof(out->atomic));
    if (r->xrc)
        memcpy(&out->xrc, at + ext - sizeof(out->xrc), sizeof(out->xrc));
    if (out->wr.flags & WR_F_INLINE)
        out->inline_data = at + ext;
    else
        out->sge = (const struct ipc_sge *)(const void *)(at + ext);
    return 1;
}

int ipc_rq_fetch(struct ipc_ring *r, struct ipc_recv_entry *out)
{
    int64_t avail = ring_available(r);
    if (avail <= 0)
        return avail < 0 ? -EPROTO : 0;

    struct ipc_rqe rqe;
    const uint8_t *at = r->base + (size_t)(r->index & (r->entries - 1)) * r->stride;
    copy_once(&rqe, at, sizeof(rqe));
    r->index++;
    out->cookie = rqe.cookie;
    uint32_t max = (r->stride - (uint32_t)sizeof(rqe)) / (uint32_t)sizeof(struct ipc_sge);
    if (rqe.nsge > max || rqe.nsge > IPC_SGE_MAX) {
        out->nsge = UINT32_MAX;
        return 1;
    }
    out->nsge = rqe.nsge;
    copy_once(out->sge, at + sizeof(rqe), rqe.nsge * sizeof(struct ipc_sge));
    return 1;
}
