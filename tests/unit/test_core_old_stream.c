/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A36: a responder that serves one request after the other, as rxe does: a READ that is asked
 * for again waits until all the old answers have gone, and is then answered from where the request
 * says, to its end. A long READ takes longer than the time-out to answer; the path loses, repeats
 * and delays.
 */
#include "core_rig.h"

#define PACKETS 1000u
#define SEEDS   10u
#define GAP     2000u   /* ns from one answer to the next: all of them take two time-outs */
#define TRIP    20000u  /* ns until a request is there */
#define LATE    500000u /* ns that an answer may be late */
#define ASKED   4096u
#define LATES   4096u
#define PATIENT 2000000u /* steps until it counts as hung */

struct request {
    uint64_t at;
    uint32_t k; /* the first packet that it asks for */
};

struct server {
    struct rig *r;
    uint32_t rnd, loss, twice, late; /* the three per thousand */
    struct request asked[ASKED], lates[LATES];
    unsigned head, tail, lates_head, lates_tail;
    uint32_t next;    /* next packet of the READ; PACKETS: idle */
    unsigned streams; /* started answers */
};

static uint32_t below(struct server *s, uint32_t n)
{
    s->rnd = s->rnd * 1103515245u + 12345u;
    return (s->rnd >> 8) % n;
}

static bool happens(struct server *s, uint32_t per_thousand)
{
    return below(s, 1000) < per_thousand;
}

/* rxe's form: a response that doesn't start the READ is MIDDLE or LAST (REQ-30). */
static void answer(struct server *s, uint32_t k)
{
    unsigned op = k == 0             ? WIRE_READ_RESP_FIRST
                  : k == PACKETS - 1 ? WIRE_READ_RESP_LAST
                                     : WIRE_READ_RESP_MIDDLE;
    rig_read_resp(s->r, op, rig_psn(RIG_PSN, k), RIG_MTU, 1 + (int)(k % 251));
}

static void listen_to(struct server *s)
{
    struct rig *r = s->r;
    rig_tx(r, 0);
    for (unsigned i = 0; i < r->nsent; i++) {
        ck_assert_uint_eq(r->sent[i].opcode, WIRE_OPCODE(WIRE_RC, WIRE_READ_REQUEST));
        uint32_t k = rig_psn(r->sent[i].psn, 0x1000000 - RIG_PSN);
        ck_assert_uint_eq(r->sent[i].dma_len, (PACKETS - k) * RIG_MTU);
        ck_assert_uint_lt(s->tail - s->head, ASKED);
        if (s->tail == 0 || !happens(s, s->loss))
            s->asked[s->tail++ % ASKED] = (struct request){r->now + TRIP, k};
    }
    unsigned nwc = r->nwc;
    rig_clear(r);
    r->nwc = nwc;
}

/* GAP ns pass. */
static void step(struct server *s)
{
    rig_pass(s->r, GAP);
    listen_to(s);
    if (s->next == PACKETS && s->head != s->tail && s->asked[s->head % ASKED].at <= s->r->now) {
        s->next = s->asked[s->head++ % ASKED].k;
        s->streams++;
    }
    if (s->lates_head != s->lates_tail && s->lates[s->lates_head % LATES].at <= s->r->now)
        answer(s, s->lates[s->lates_head++ % LATES].k);
    if (s->next == PACKETS)
        return;
    uint32_t k = s->next++;
    if (happens(s, s->loss))
        return;
    if (happens(s, s->late)) {
        s->lates[s->lates_tail++ % LATES] = (struct request){s->r->now + LATE, k};
        return;
    }
    answer(s, k);
    if (happens(s, s->twice))
        answer(s, k);
}

static void run(unsigned seed, uint32_t loss, uint32_t twice, uint32_t late)
{
    static struct server s;
    s = (struct server){.r = rig_new(&(struct rig_opts){.retry_cnt = 7}),
                        .rnd = seed * 2654435761u,
                        .loss = loss,
                        .twice = twice,
                        .late = late,
                        .next = PACKETS};
    rig_post(s.r, WR_RDMA_READ, 1, PACKETS * RIG_MTU, WR_F_SIGNALED);
    unsigned steps = 0;
    while (s.r->nwc == 0 && steps++ < PATIENT)
        step(&s);
    ck_assert_msg(s.r->nwc == 1, "seed %u hangs", seed);
    ck_assert_msg(s.r->wc[0].status == WC_SUCCESS, "seed %u: %s after %u answers", seed,
                  engine_status_name(s.r->wc[0].status), s.streams);
    uint32_t right = 0;
    while (right < PACKETS * RIG_MTU && s.r->mem[right] == 1 + right / RIG_MTU % 251)
        right++;
    ck_assert_uint_eq(right, PACKETS * RIG_MTU);
    /* A needless request is answered, too, and later ones wait for it. */
    ck_assert_msg(s.tail - s.streams <= s.streams / 4, "seed %u: asked %u times, %u answers", seed,
                  s.tail, s.streams);
    rig_free(s.r);
}

/* TMR-02, TMR-07: a READ doesn't fail while responses to it keep coming, and the requester asks
 * again for hardly more packets than are lost. */
START_TEST(tmr_07_old_answers_first)
{
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        run(seed, 30, 0, 0);
        run(seed, 33, 23, 16);
    }
}
END_TEST

UNIT_MAIN("core old stream", tmr_07_old_answers_first)
