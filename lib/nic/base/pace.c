/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See pace.h.
 */
#include "pace.h"

#define US 1000ull
#define MS 1000000ull

#define PACE_LINGER_NS (60 * US)    /* time to poll after the last work before blocking */
#define PACE_TURN_NS   (1 * US)     /* a yield this long: another program has had a turn */
#define PACE_CROWDED   (1 * MS)     /* a yield this long: the other program spins */
#define PACE_CROWD_MIN (8 * MS)     /* first time to block instead of yielding then */
#define PACE_CROWD_MAX (250 * MS)   /* longest such time: it doubles each time */
#define PACE_PAUSE_NS  (3 * US / 2) /* time without work after which the next work is no stream */
#define PACE_SPIN_NS   (5 * US)     /* work due sooner isn't worth blocking for */
#define PACE_NAP_NS    (50 * US)    /* when some events don't wake us */

/* A turn of another program costs two context switches, each as long as four or five system calls.
 * A system call takes 0.1 us on some machines, and over 1 us on some virtual ones. */
void pace_init(struct pace *p, uint64_t call_ns, uint64_t look_ns)
{
    uint64_t call = call_ns < PACE_CALL_NS ? PACE_CALL_NS : call_ns;
    call = call > PACE_CALL_MAX ? PACE_CALL_MAX : call;
    *p = (struct pace){
        .turn_ns = PACE_TURN_NS * call / PACE_CALL_NS,
        .after_turn_ns = look_ns,
        .after_post_ns = look_ns * call / PACE_CALL_NS,
        .linger_ns = PACE_LINGER_NS * call / PACE_CALL_NS,
        .crowd_ns = PACE_CROWD_MIN,
    };
}

bool pace_lingers(const struct pace *p, uint64_t now)
{
    return p->never || (now - p->worked_at < p->linger_ns && now >= p->crowded_until);
}

struct pace_step pace_next(struct pace *p, const struct pace_seen *seen, uint64_t now)
{
    const struct pace_step look = {PACE_LOOK, now};
    if (seen->work) {
        p->worked_at = now;
        p->pause_over = now + PACE_PAUSE_NS;
        return look;
    }
    if (p->never || seen->due <= now + PACE_SPIN_NS)
        return look;
    if (pace_lingers(p, now) || (seen->pending && now >= p->crowded_until))
        return (struct pace_step){now < p->look_until ? PACE_LOOK : PACE_YIELD, now};
    uint64_t until = seen->due;
    if ((seen->pending || seen->deaf) && until > now + PACE_NAP_NS)
        until = now + PACE_NAP_NS;
    return (struct pace_step){PACE_BLOCK, until};
}

void pace_heard(struct pace *p, bool mere)
{
    if (mere && p->awaits)
        return;
    p->look_until = 0;
    p->awaits = false;
}

/* A post starts a time of polling without yields. Later posts don't extend it, so a loop that posts
 * all the time leaves the core to others, too. */
void pace_posted(struct pace *p, uint64_t now)
{
    if (p->awaits)
        return;
    p->look_until = now + p->after_post_ns;
    p->awaits = true;
}

/* A program that had a turn and posted nothing waits, like us, for an event from outside. We see
 * that event at once, unless we have just yielded again, which takes longer than all our work on a
 * small message. So we poll for a while before others get another turn.
 *
 * A yield that returns at once says nothing about the other programs: the kernel doesn't run one
 * that spins as long as it is ahead of its share. */
void pace_yielded(struct pace *p, uint64_t before, uint64_t after)
{
    const uint64_t took = after - before;
    p->awaits = false;
    if (took < p->turn_ns)
        return;
    p->look_until = after + p->after_turn_ns;
    if (took <= PACE_CROWDED) {
        p->crowd_ns = PACE_CROWD_MIN;
        return;
    }
    p->crowded_until = after + p->crowd_ns;
    p->crowd_ns = 2 * p->crowd_ns < PACE_CROWD_MAX ? 2 * p->crowd_ns : PACE_CROWD_MAX;
}

bool pace_may_yield(const struct pace *p, uint64_t now)
{
    return !p->never && !p->keeps && now >= p->crowded_until;
}
