/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The daemon's side of queues that an application writes: whatever lies in the memory, fetching
 * stays inside the copy and inside the ring (SHM-01 .. SHM-03).
 *
 * Input: 1 octet of flags (1 = datagrams, 2 = receive queue), 4 octets index of the daemon, 4
 * octets producer index, then the ring's memory.
 */
#include "fuzz.h"

#include <string.h>

#include "ipc_ring.h"

#define ENTRIES 16u

volatile uint32_t fuzz_ipc_sink; /* so that nothing read is optimised away */

/* Read all octets that the fetch names: a sanitizer notices those outside. */
static uint32_t touch(const struct ipc_send *s)
{
    uint32_t sum = s->wr.opcode;
    FUZZ_CHECK((s->wr.flags & ~WR_F_ALL) == 0);
    FUZZ_CHECK(s->wr.opcode < WR_OPCODE_MAX || s->wr.opcode == IPC_WR_MALFORMED);
    FUZZ_CHECK(s->wr.nsge <= IPC_SGE_MAX && s->wr.inline_len <= IPC_INLINE_MAX);
    const uint8_t *end = s->raw + sizeof(s->raw);
    if (s->wr.nsge != 0)
        FUZZ_CHECK((const uint8_t *)(s->sge + s->wr.nsge) <= end);
    if (s->inline_data != NULL)
        FUZZ_CHECK(s->inline_data + s->wr.inline_len <= end);
    for (uint32_t i = 0; i < s->wr.nsge; i++)
        sum += s->sge[i].len;
    for (uint32_t i = 0; s->inline_data && i < s->wr.inline_len; i++)
        sum += s->inline_data[i];
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static _Alignas(64) uint8_t mem[sizeof(struct ipc_queue) + ENTRIES * IPC_UNIT];
    uint32_t index, prod;
    struct ipc_ring r;
    if (size < 9)
        return 0;
    memcpy(&index, data + 1, 4);
    memcpy(&prod, data + 5, 4);
    memset(mem, 0, sizeof(mem));
    size_t n = size - 9 < ENTRIES * IPC_UNIT ? size - 9 : ENTRIES * IPC_UNIT;
    memcpy(mem + sizeof(struct ipc_queue), data + 9, n);
    ipc_ring_init(&r, mem, ENTRIES, IPC_UNIT, data[0] & 1);
    r.xrc = (data[0] & 3) == 2;
    r.index = index;
    atomic_store(&r.q->prod, prod);

    for (uint32_t taken = 0;; taken++) {
        struct ipc_send send;
        struct ipc_recv_entry recv;
        uint32_t before = r.index;
        int ret = data[0] & 2 ? ipc_rq_fetch(&r, &recv) : ipc_sq_fetch(&r, &send);
        if (ret != 1)
            break;
        FUZZ_CHECK(taken < ENTRIES && r.index - before <= IPC_UNITS_MAX && r.index != before);
        if (data[0] & 2)
            FUZZ_CHECK(recv.nsge <= 3 || recv.nsge == UINT32_MAX);
        else
            fuzz_ipc_sink = touch(&send);
    }
    FUZZ_CHECK(r.index - index <= ENTRIES);
    return 0;
}
