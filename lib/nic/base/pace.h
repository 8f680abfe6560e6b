/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The idle policy of a loop: what to do between two looks at its work. It looks on for a while
 * after the last work and gives the core to others now and then, as an answer is often on its way
 * and waking up costs both sides microseconds; then it blocks. Where a yield costs a whole time
 * slice, because another program spins on this core, it blocks at once: a thread that wakes up is
 * let in again at once.
 *
 * Reads no clock and does nothing itself: times are arguments, ns. One thread.
 */
#ifndef NIC_PACE_H
#define NIC_PACE_H

#include <stdbool.h>
#include <stdint.h>

#define PACE_CALL_NS  300ull              /* a system call takes no longer than this, mostly */
#define PACE_CALL_MAX (10 * PACE_CALL_NS) /* of a slow kernel, not of a debugger */
#define PACE_LOOK_NS  8000ull             /* between two yields of a loop whose looks are cheap */

struct pace {
    bool never; /* neither yield nor block: the policy `poll` */
    bool keeps; /* don't yield for now */
    /* how long: set by pace_init */
    uint64_t turn_ns;       /* a yield this long: another program has had a turn */
    uint64_t after_turn_ns; /* look for so long before the next yield */
    uint64_t after_post_ns; /* look for so long for the answer to what was posted */
    uint64_t linger_ns;     /* after the last work, before blocking */
    /* the state */
    uint64_t worked_at;     /* the last work */
    uint64_t pause_over;    /* what comes from then on has come after a pause */
    uint64_t look_until;    /* no yield before, unless news comes */
    bool awaits;            /* look_until is for the answer to what was posted */
    uint64_t crowded_until; /* block rather than yield: others spin on this core */
    uint64_t crowd_ns;      /* for so long the next time */
};

enum pace_how { PACE_LOOK, PACE_YIELD, PACE_BLOCK };

struct pace_step {
    enum pace_how how;
    uint64_t until; /* PACE_BLOCK: no longer than until then; UINT64_MAX = until something comes */
};

/* What a look has found. */
struct pace_seen {
    bool work;    /* there was something to do */
    bool pending; /* what can't go on now can soon: go on looking, and don't block but nap */
    bool deaf;    /* not everything that may come wakes a blocked thread: nap */
    uint64_t due; /* the next thing to do; UINT64_MAX = none, or not asked (pace_lingers) */
};

/* A loop that has never had any work.
 *
 * call_ns  how long a system call takes on this machine: the slower, the longer all times are.
 *          PACE_CALL_NS to PACE_CALL_MAX; others are taken for the nearest of these
 * look_ns  look for so long between two yields; 0 = yield at each look
 */
void pace_init(struct pace *p, uint64_t call_ns, uint64_t look_ns);

/* What to do now, after a look. */
struct pace_step pace_next(struct pace *p, const struct pace_seen *seen, uint64_t now);
/* Would pace_next look on or yield, whatever is due? For a loop to which `due` costs something. */
bool pace_lingers(const struct pace *p, uint64_t now);

/* Something has come that others may want to act on: they get a turn. `mere`: perhaps nothing but
 * an acknowledgement, which is not the answer that the loop awaits. */
void pace_heard(struct pace *p, bool mere);
/* Something was posted, to which an answer may come soon. `times`: how often as long as most take.
 */
void pace_posted(struct pace *p, uint64_t now, unsigned times);
/* The loop has yielded. */
void pace_yielded(struct pace *p, uint64_t before, uint64_t after);
/* May the loop yield in the middle of its work? */
bool pace_may_yield(const struct pace *p, uint64_t now);

#endif
