/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One frame in, a few frames out, with all phases between. See step.h.
 */
#include "step.h"

#include <string.h>

void step_rx(struct engine *e, struct engine_frame *f, uint64_t now, step_copy_fn *copy, void *arg)
{
    struct engine_copy copies[ENGINE_FRAME_COPIES];
    struct engine_result results[ENGINE_FRAME_COPIES];
    unsigned n;
    engine_rx(e, f, 1, now, copies, ENGINE_FRAME_COPIES, &n);
    for (unsigned i = 0; i < n; i++) {
        results[i] = (struct engine_result){.token = copies[i].token};
        results[i].status = copy(arg, &copies[i], &results[i].orig);
    }
    if (n)
        engine_copied(e, results, n, now);
}

unsigned step_tx(struct engine *e, struct engine_slot *slots, unsigned n, uint64_t now,
                 step_gather_fn *gather, void *arg)
{
    unsigned m = engine_tx(e, slots, n, now);
    for (unsigned i = 0; i < m; i++)
        slots[i].status = gather ? gather(arg, &slots[i]) : 0;
    if (m)
        engine_sent(e, slots, m, now);
    return m;
}

uint64_t step_copy(const struct engine_copy *c, uint8_t *dst)
{
    uint64_t old = 0;
    if (c->kind == ENGINE_PUT) {
        memcpy(dst, c->src, c->len);
        return 0;
    }
    memcpy(&old, dst, sizeof(old));
    uint64_t new = engine_copy_value(c, old);
    memcpy(dst, &new, sizeof(new));
    return old;
}

void step_seal(const struct engine_slot *slot)
{
    wire_icrc_seal(slot->buf, slot->len, slot->ip_off, slot->bth_off);
}

void step_gather(const struct engine_slot *slot, step_at_fn *at, void *arg)
{
    struct crc_piece pieces[ENGINE_TX_PIECES];
    if (slot->npieces == 0) {
        step_seal(slot);
        return;
    }
    for (unsigned i = 0; i < slot->npieces; i++)
        pieces[i] = (struct crc_piece){at(arg, &slot->pieces[i]), slot->pieces[i].len};
    wire_icrc_gather(slot->buf, slot->len, slot->ip_off, slot->bth_off, slot->payload_off, pieces,
                     slot->npieces);
}
