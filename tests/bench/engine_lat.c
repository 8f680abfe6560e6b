/* SPDX-License-Identifier: BSD-3-Clause
 *
 * engine_lat: half round trip of an 8-octet WRITE between two engines in one process, over
 * drivers/mem, on the real clock. This is the cost of the protocol without processes, doorbells and
 * threads.
 *
 * Each side posts an inline WRITE when it sees the other's arrive in its memory. Prints one JSON
 * object with the median and percentiles in ns.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "engine_pair.h"

#define ROUNDS 200000u
#define WARM   20000u

static void send_round(struct side *s, uint64_t now)
{
    struct engine_slot slot[8];
    struct io_slot room[8];
    if (!engine_tx_ready(s->e))
        return;
    unsigned n = s->io->ops->tx_reserve(s->io, room, 8, now);
    for (unsigned i = 0; i < n; i++) {
        slot[i].buf = room[i].data;
        slot[i].cap = room[i].cap;
    }
    unsigned m = engine_tx(s->e, slot, n, now);
    for (unsigned i = 0; i < m; i++)
        slot[i].status = 0; /* all inline: nothing to gather */
    engine_sent(s->e, slot, m, now);
    for (unsigned i = 0; i < n; i++) {
        room[i].len = i < m ? slot[i].len : 0;
        if (room[i].len)
            wire_icrc_seal(room[i].data, room[i].len, slot[i].ip_off, slot[i].bth_off);
    }
    s->io->ops->tx_commit(s->io, room, n, now);
}

static void receive_round(struct side *s, uint64_t now)
{
    struct io_frame in[8];
    struct engine_frame frame[8];
    static struct engine_copy copy[8 * ENGINE_FRAME_COPIES];
    struct engine_result result[8 * ENGINE_FRAME_COPIES];
    unsigned ncopies;
    unsigned n = s->io->ops->rx_peek(s->io, in, 8, now);
    if (!n)
        return;
    for (unsigned i = 0; i < n; i++)
        frame[i] = (struct engine_frame){.data = in[i].data, .len = in[i].len};
    engine_rx(s->e, frame, n, now, copy, 8 * ENGINE_FRAME_COPIES, &ncopies);
    for (unsigned i = 0; i < ncopies; i++) {
        memcpy((uint8_t *)copy[i].dst.obj + copy[i].dst.off, copy[i].src, copy[i].len);
        result[i] = (struct engine_result){.token = copy[i].token};
    }
    engine_copied(s->e, result, ncopies, now);
    s->io->ops->rx_release(s->io, n);
}

static void ping(struct side *s, const struct side *peer, uint64_t value, uint64_t now)
{
    struct engine_send_wr wr = {
        .opcode = WR_RDMA_WRITE,
        .flags = WR_F_INLINE | (value % 16 == 0 ? WR_F_SIGNALED : 0),
        .inline_len = 8,
        .inline_data = (const uint8_t *)&value,
        .remote_va = (uintptr_t)peer->buf,
        .rkey = peer->rkey,
    };
    check(engine_post_send(s->e, s->qp, &wr, now), "posting");
}

int main(void)
{
    static struct side side[2];
    static uint32_t sample[ROUNDS];
    uint64_t now = clock_ns();
    for (unsigned i = 0; i < 2; i++)
        side_create(&side[i], i, "mem:engine_lat", now);
    for (unsigned i = 0; i < 2; i++)
        side_connect(&side[i], &side[1 - i], i, now);

    for (unsigned r = 0; r < WARM + ROUNDS; r++) {
        uint64_t start = clock_ns();
        for (unsigned i = 0; i < 2; i++) {
            struct side *from = &side[i], *to = &side[1 - i];
            uint64_t value = (uint64_t)r * 2 + i + 1, seen;
            ping(from, to, value, start);
            unsigned spins = 0;
            do {
                now = clock_ns();
                send_round(from, now);
                receive_round(to, now);
                memcpy(&seen, to->buf, 8);
                if (++spins > 1000000) {
                    fprintf(stderr, "engine_lat: round %u never arrived\n", r);
                    return 1;
                }
            } while (seen != value);
            /* the ACK, as a worker's next rounds would carry it */
            send_round(to, now);
            receive_round(from, now);
        }
        uint64_t ended = clock_ns();
        for (unsigned i = 0; i < 2; i++)
            if (engine_deadline(side[i].e) <= ended)
                engine_expire(side[i].e, ended);
        if (r >= WARM)
            sample[r - WARM] = (uint32_t)((ended - start) / 2);
    }
    qsort(sample, ROUNDS, sizeof(sample[0]), by_value);
    printf("{\"name\":\"engine_lat\",\"value\":%u,\"unit\":\"ns\",\"min\":%u,\"p99\":%u,"
           "\"qp_state_octets\":%zu}\n",
           sample[ROUNDS / 2], sample[0], sample[ROUNDS * 99ull / 100], engine_qp_state_size());
    for (unsigned i = 0; i < 2; i++) {
        engine_destroy(side[i].e);
        side[i].io->ops->close(side[i].io);
    }
    return 0;
}
