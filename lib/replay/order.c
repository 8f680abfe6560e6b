/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Answers that stand before what they answer. Two directions are often captured in two places: two
 * queues of a NIC, two ports of a tap. Their clocks, or the threads that write, are some
 * microseconds apart; nobody answers what he hasn't got. Such an answer is put behind its request.
 */
#include <string.h>

#include "replay_priv.h"

#define SKEW_NS    20000u
#define AHEAD      256u  /* packets in which the request comes */
#define BEFORE_MAX 4096u /* packets in which another transmission of it came */

/* Can this request have caused this acknowledgement? A sequence NAK names what it isn't caused by,
 * and what comes behind it often does so by chance. */
static bool causes(const struct direction *d, const struct packet *p, const struct packet *answer)
{
    return answer->pkt.syndrome != WIRE_SYN_NAK_SEQ &&
           ((answer->pkt.psn - p->pkt.psn) & WIRE_PSN_MASK) < packet_psns(d, p);
}

static bool caused_before(const struct direction *d, size_t at)
{
    for (size_t i = at, n = 0; i-- > 0 && n < BEFORE_MAX; n++)
        if (packet_asks(d, &d->packet[i]) && causes(d, &d->packet[i], &d->packet[at]))
            return true;
    return false;
}

/* The packet after `at`, soon after, that it answers; or 0. */
static size_t cause_behind(const struct direction *d, size_t at)
{
    const struct packet *answer = &d->packet[at];
    for (size_t i = at + 1; i < d->packets && i - at < AHEAD; i++) {
        const struct packet *p = &d->packet[i];
        if (p->ns > answer->ns && p->ns - answer->ns > SKEW_NS)
            break;
        if (packet_asks(d, p) && causes(d, p, answer))
            return i;
    }
    return 0;
}

void order_restore(struct direction *d)
{
    /* From the end: those of one request keep their order. */
    for (size_t i = d->packets; i-- > 0;) {
        if (!packet_answers(d, &d->packet[i]) || d->packet[i].pkt.opcode != WIRE_ACKNOWLEDGE)
            continue; /* (responses of READs may be to one from before the capture) */
        size_t cause = cause_behind(d, i);
        if (!cause || (!packet_positive(&d->packet[i]) && caused_before(d, i)))
            continue; /* (an ACK of a repetition may as well be one of the first) */
        struct packet answer = d->packet[i];
        memmove(&d->packet[i], &d->packet[i + 1], (cause - i) * sizeof(answer));
        d->packet[cause] = answer;
    }
}
