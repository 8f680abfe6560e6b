/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See udp_habit.h. Two habits are known. Linux sends 0, or the place in a train, for packets with
 * DF that no connected socket sends. Cards, rdma_rxe and connected sockets count up.
 */
#include "udp_habit.h"

#define PLACES 128u /* most datagrams in a train */

static bool counts_now(const struct udp_habit *h)
{
    return h->counts >= UDP_HABIT_PACKETS && h->small < UDP_HABIT_PACKETS;
}

uint16_t udp_habit_guess(const struct udp_habit *h, uint16_t place)
{
    return h->counts > h->small && h->last_df ? (uint16_t)(h->last + 1) : place;
}

static uint16_t run(uint16_t n, bool fits)
{
    return fits ? n < UDP_HABIT_PACKETS ? (uint16_t)(n + 1) : n : 0;
}

bool udp_habit_take(struct udp_habit *h, uint16_t id, bool df)
{
    uint16_t step = (uint16_t)(id - h->last);
    bool small = df && id < PLACES;
    bool counts = df == h->last_df && step >= 1 && step <= UDP_HABIT_STEP;
    bool fits = h->small >= UDP_HABIT_PACKETS ? small : counts_now(h) ? counts : true;
    if (!fits && ++h->strange < UDP_HABIT_BROKEN)
        return false;
    if (!fits)
        *h = (struct udp_habit){0};
    h->small = run(h->small, small);
    h->counts = run(h->counts, counts);
    h->strange = 0;
    h->last = id;
    h->last_df = df;
    return true;
}
