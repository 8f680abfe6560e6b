/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Answers recorded before their requests. Two directions are often captured in two places: two
 * queues of a NIC, two ports of a tap. Their clocks, or the threads that write, are some
 * microseconds apart. No responder answers a request before its arrival, so such an answer is moved
 * after its request.
 */
#include <string.h>

#include "replay_priv.h"

#define SKEW_NS    20000u
#define AHEAD      256u  /* packets in which the request follows */
#define BEFORE_MAX 4096u /* packets in which an earlier transmission of it may be */

/* Can this request have caused this acknowledgement? A sequence NAK names a PSN that is not its
 * cause, and the packet after that PSN is often there by chance. */
static bool causes(const struct direction *d, const struct packet *p, const struct packet *answer)
{
    return answer->syndrome != WIRE_SYN_NAK_SEQ &&
           ((answer->psn - p->psn) & WIRE_PSN_MASK) < packet_psns(d, p);
}

static bool caused_before(const struct direction *d, size_t at)
{
    for (size_t i = at, n = 0; i-- > 0 && n < BEFORE_MAX; n++)
        if (packet_asks(d, &d->packet[i]) && causes(d, &d->packet[i], &d->packet[at]))
            return true;
    return false;
}

/* The request of the answer `at`, shortly after it; or 0. */
static size_t cause_after(const struct direction *d, size_t at)
{
    const struct packet *answer = &d->packet[at];
    for (size_t i = at + 1; i < d->packets && i - at < AHEAD; i++) {
        const struct packet *p = &d->packet[i];
        if (p->kept->ns > answer->kept->ns && p->kept->ns - answer->kept->ns > SKEW_NS)
            break;
        if (packet_asks(d, p) && causes(d, p, answer))
            return i;
    }
    return 0;
}

/* For a sequence NAK of an uncaptured PSN, or of the last captured one: the packet shortly after
 * `at` that shows the gap; or 0. If the NAK's PSN was captured, only its time can show that it was
 * there before the NAK. */
static size_t gap_after(const struct direction *d, size_t at)
{
    const struct packet *nak = &d->packet[at];
    bool seen = false;
    for (size_t i = at, n = 0; i-- > 0 && n < BEFORE_MAX; n++) {
        int32_t off =
            packet_asks(d, &d->packet[i]) ? wire_psn_diff(d->packet[i].psn, nak->psn) : -1;
        if (off > 0)
            return 0;
        seen = seen || off == 0;
    }
    for (size_t i = at + 1; i < d->packets && i - at < AHEAD; i++) {
        const struct packet *p = &d->packet[i];
        if (p->kept->ns > nak->kept->ns && p->kept->ns - nak->kept->ns > SKEW_NS)
            return 0;
        if (packet_asks(d, p))
            return wire_psn_diff(p->psn, nak->psn) > 0 && (!seen || p->kept->ns < nak->kept->ns)
                       ? i
                       : 0;
    }
    return 0;
}

/* A response starts a READ. If no request before it has its PSN, return the READ request that
 * follows shortly after; else 0. */
static size_t read_after(const struct direction *d, size_t at)
{
    const struct packet *answer = &d->packet[at];
    for (size_t i = at, n = 0; i-- > 0 && n < BEFORE_MAX; n++)
        if (packet_asks(d, &d->packet[i]) && d->packet[i].psn == answer->psn)
            return 0;
    for (size_t i = at + 1; i < d->packets && i - at < AHEAD; i++) {
        const struct packet *p = &d->packet[i];
        if (p->kept->ns > answer->kept->ns && p->kept->ns - answer->kept->ns > SKEW_NS)
            return 0;
        if (packet_asks(d, p) && p->psn == answer->psn)
            return packet_flags(p) & WIRE_F_READ ? i : 0;
    }
    return 0;
}

static void move(struct direction *d, size_t from, size_t to)
{
    struct packet answer = d->packet[from];
    memmove(&d->packet[from], &d->packet[from + 1], (to - from) * sizeof(answer));
    d->packet[to] = answer;
}

/* Move the responses of this READ that are before it, from `at` on, in their order. */
static void move_responses(struct direction *d, size_t at, size_t request)
{
    uint32_t begin = d->packet[request].psn, n = packet_psns(d, &d->packet[request]);
    for (size_t end = request; at < request;) {
        const struct packet *p = &d->packet[at];
        if (packet_answers(d, p) && packet_flags(p) & WIRE_F_READ &&
            ((p->psn - begin) & WIRE_PSN_MASK) < n) {
            move(d, at, end);
            request--;
        } else {
            at++;
        }
    }
}

void order_restore(struct direction *d)
{
    for (size_t i = 0; i < d->packets; i++) {
        const struct packet *p = &d->packet[i];
        bool begins =
            packet_answers(d, p) && packet_flags(p) & WIRE_F_READ && packet_flags(p) & WIRE_F_START;
        size_t request = begins ? read_after(d, i) : 0;
        if (request)
            move_responses(d, i, request);
    }
    /* From the end: answers of one request keep their order. */
    for (size_t i = d->packets; i-- > 0;) {
        if (!packet_answers(d, &d->packet[i]) || d->packet[i].opcode != WIRE_ACKNOWLEDGE)
            continue;
        bool sequence = d->packet[i].syndrome == WIRE_SYN_NAK_SEQ;
        size_t cause = sequence ? gap_after(d, i) : cause_after(d, i);
        if (!cause || (!packet_positive(&d->packet[i]) && caused_before(d, i)))
            continue; /* (an ACK of a repetition may also be for the first transmission) */
        move(d, i, cause);
    }
}
