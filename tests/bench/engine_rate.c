/* SPDX-License-Identifier: BSD-3-Clause
 *
 * engine_rate: the cost of an 8-octet WRITE in each stage between two engines in one process, over
 * memif, on one core. 64 are posted at a time, one in 64 is signalled.
 *
 * A stage's time is the shortest of all bursts', as others share the core. No data crosses from one
 * core to another, which would add the cost of their distance. Prints one JSON object with ns per
 * message.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "engine_pair.h"

#define BURSTS 20000u
#define BATCH  64u

enum stage {
    POST,    /* into the engine's send queue */
    RESERVE, /* room in the port */
    TX,      /* headers and payload */
    SEAL,    /* iCRC */
    SENT,
    COMMIT, /* accounting, timer, to the port */
    PEEK,   /* frames from the port */
    RX,     /* parsing, iCRC, all checks */
    COPY,   /* to the application's memory */
    COPIED, /* executed requests are owed an ACK */
    RELEASE,
    ACK, /* making, sending, receiving it, one for each burst */
    STAGES
};

static const char *const names[STAGES] = {
    "post", "reserve", "tx",   "seal",   "sent",    "commit",
    "peek", "rx",      "copy", "copied", "release", "ack",
};

static uint64_t least[STAGES];
static uint64_t least_all = UINT64_MAX;

/* The time since *at belongs to a stage. */
static void lap(enum stage stage, uint64_t *at, uint64_t sum[STAGES])
{
    uint64_t now = clock_ns();
    sum[stage] += now - *at;
    *at = now;
}

static unsigned send_burst(struct side *s, uint64_t *at, uint64_t sum[STAGES])
{
    static struct engine_slot slot[BATCH];
    struct io_slot room[BATCH];
    unsigned n = s->io->ops->tx_reserve(s->io, room, BATCH, *at);
    for (unsigned i = 0; i < n; i++) {
        slot[i].buf = room[i].data;
        slot[i].cap = room[i].cap;
    }
    lap(RESERVE, at, sum);
    unsigned m = engine_tx(s->e, slot, n, *at);
    for (unsigned i = 0; i < m; i++)
        slot[i].status = 0; /* all inline: nothing to gather */
    lap(TX, at, sum);
    for (unsigned i = 0; i < m; i++)
        wire_icrc_seal(slot[i].buf, slot[i].len, slot[i].ip_off, slot[i].bth_off);
    lap(SEAL, at, sum);
    engine_sent(s->e, slot, m, *at);
    lap(SENT, at, sum);
    for (unsigned i = 0; i < n; i++)
        room[i].len = i < m ? slot[i].len : 0;
    s->io->ops->tx_commit(s->io, room, n, *at);
    lap(COMMIT, at, sum);
    return m;
}

static unsigned receive_burst(struct side *s, uint64_t *at, uint64_t sum[STAGES])
{
    static struct engine_copy copy[BATCH * ENGINE_FRAME_COPIES];
    static struct engine_result result[BATCH * ENGINE_FRAME_COPIES];
    struct io_frame in[BATCH];
    struct engine_frame frame[BATCH];
    unsigned ncopies;
    unsigned n = s->io->ops->rx_peek(s->io, in, BATCH, *at);
    for (unsigned i = 0; i < n; i++)
        frame[i] = (struct engine_frame){.data = in[i].data, .len = in[i].len};
    lap(PEEK, at, sum);
    engine_rx(s->e, frame, n, *at, copy, BATCH * ENGINE_FRAME_COPIES, &ncopies);
    lap(RX, at, sum);
    for (unsigned i = 0; i < ncopies; i++) {
        memcpy((uint8_t *)copy[i].dst.obj + copy[i].dst.off, copy[i].src, copy[i].len);
        result[i] = (struct engine_result){.token = copy[i].token};
    }
    lap(COPY, at, sum);
    engine_copied(s->e, result, ncopies, *at);
    lap(COPIED, at, sum);
    s->io->ops->rx_release(s->io, n);
    lap(RELEASE, at, sum);
    return n;
}

static void post(struct side *s, const struct side *peer, uint64_t now)
{
    uint64_t value = now;
    struct engine_send_wr wr = {
        .opcode = WR_RDMA_WRITE,
        .flags = WR_F_INLINE,
        .inline_len = 8,
        .inline_data = (const uint8_t *)&value,
        .remote_va = (uintptr_t)peer->buf,
        .rkey = peer->rkey,
    };
    for (unsigned i = 0; i < BATCH; i++) {
        wr.remote_va = (uintptr_t)peer->buf + (size_t)i * 8;
        if (i == BATCH - 1)
            wr.flags |= WR_F_SIGNALED;
        check(engine_post_send(s->e, s->qp, &wr, now), "posting");
    }
}

/* 64 messages there, and their acknowledgement back. */
static void burst(struct side side[2])
{
    uint64_t sum[STAGES] = {0}, answer[STAGES] = {0}, at = clock_ns(), start = at;
    unsigned seen = 0;
    post(&side[0], &side[1], at);
    lap(POST, &at, sum);
    unsigned sent = send_burst(&side[0], &at, sum);
    while (seen < sent)
        seen += receive_burst(&side[1], &at, sum);
    uint64_t there = at;
    while (engine_tx_ready(side[1].e))
        send_burst(&side[1], &at, answer);
    while (receive_burst(&side[0], &at, answer) > 0)
        ;
    sum[ACK] = at - there;
    for (unsigned i = 0; i < 2; i++)
        if (engine_deadline(side[i].e) <= at)
            engine_expire(side[i].e, at);
    if (sent != BATCH) {
        fprintf(stderr, "engine_rate: %u of %u messages went out\n", sent, BATCH);
        exit(1);
    }
    for (unsigned i = 0; i < STAGES; i++)
        if (sum[i] < least[i])
            least[i] = sum[i];
    if (at - start < least_all)
        least_all = at - start;
}

int main(void)
{
    static struct side side[2];
    static const char *const role[2] = {"server", "client"};
    uint64_t now = clock_ns();
    struct io_link link = {.up = false};
    for (unsigned i = 0; i < 2; i++) {
        char port[64];
        snprintf(port, sizeof(port), "memif:@engine_rate_%d,role=%s", (int)getpid(), role[i]);
        side_create(&side[i], i, port, now);
    }
    while (!link.up && clock_ns() - now < 5000000000u) {
        for (unsigned i = 0; i < 2; i++)
            side[i].io->ops->service(side[i].io, clock_ns());
        side[1].io->ops->link(side[1].io, &link);
    }
    check(link.up ? 0 : -ENOTCONN, "the link");
    for (unsigned i = 0; i < 2; i++)
        side_connect(&side[i], &side[1 - i], i, now);
    memset(least, 0xFF, sizeof(least));
    for (unsigned i = 0; i < BURSTS; i++)
        burst(side);

    printf("{\"name\":\"engine_rate\",\"value\":%.1f,\"unit\":\"ns\"", (double)least_all / BATCH);
    for (unsigned i = 0; i < STAGES; i++)
        printf(",\"%s\":%.1f", names[i], (double)least[i] / BATCH);
    printf("}\n");
    for (unsigned i = 0; i < 2; i++) {
        engine_destroy(side[i].e);
        side[i].io->ops->close(side[i].io);
    }
    return 0;
}
