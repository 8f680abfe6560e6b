/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The idle policy of a loop: its action between two polls. After the last work the loop keeps
 * polling for a while, and yields now and then, since an answer is often on its way and a wake-up
 * costs both sides microseconds. Then it blocks. If a yield costs a whole time slice, because
 * another program spins on this core, it blocks at once: the scheduler runs a woken thread at once.
 *
 * Reads no clock and does nothing itself: times are arguments, ns. One thread.
 */
#ifndef NIC_PACE_H
#define NIC_PACE_H

#include <stdbool.h>
#include <stdint.h>

#define PACE_CALL_NS  300ull              /* most system calls take no longer than this */
#define PACE_CALL_MAX (10 * PACE_CALL_NS) /* on a slow kernel; longer ones are a debugger's */
#define PACE_LOOK_NS  8000ull             /* between two yields of a loop whose polls are cheap */

struct pace {
    bool never; /* neither yield nor block: the policy `poll` */
    bool keeps; /* don't yield for now */
    /* how long: set by pace_init */
    uint64_t turn_ns;       /* a yield this long gave another program a turn */
    uint64_t after_turn_ns; /* time to poll before the next yield */
    uint64_t after_post_ns; /* time to poll for the answer to a post */
    uint64_t linger_ns;     /* after the last work, before blocking */
    /* the state */
    uint64_t worked_at;     /* the last work */
    uint64_t pause_over;    /* work from then on comes after a pause */
    uint64_t look_until;    /* no yield before, unless there is news */
    bool awaits;            /* look_until is for the answer to a post */
    uint64_t crowded_until; /* block rather than yield: others spin on this core */
    uint64_t crowd_ns;      /* duration of the next time */
};

enum pace_how { PACE_LOOK, PACE_YIELD, PACE_BLOCK };

struct pace_step {
    enum pace_how how;
    uint64_t until; /* PACE_BLOCK: at most until then; UINT64_MAX = until an event */
};

/* The result of a poll. */
struct pace_seen {
    bool work;    /* there was something to do */
    bool pending; /* stalled work can go on soon: keep polling, nap instead of blocking */
    bool deaf;    /* some events don't wake a blocked thread: nap */
    uint64_t due; /* time of the next work; UINT64_MAX = none, or not asked (pace_lingers) */
};

/* A loop that has had no work yet.
 *
 * `call_ns` is the time of a system call on this machine: the slower, the longer all times are.
 * Values outside PACE_CALL_NS to PACE_CALL_MAX count as the nearer bound. `look_ns` is how long to
 * poll between two yields; 0 = yield at each poll. */
void pace_init(struct pace *p, uint64_t call_ns, uint64_t look_ns);

/* The action after a poll. */
struct pace_step pace_next(struct pace *p, const struct pace_seen *seen, uint64_t now);
/* Would pace_next poll or yield, whatever is due? For a loop to which computing `due` is costly. */
bool pace_lingers(const struct pace *p, uint64_t now);

/* An event has come that other threads may want to act on: they get a turn. `mere`: perhaps only an
 * ACK, which is not the awaited answer. */
void pace_heard(struct pace *p, bool mere);
/* Work was posted that may be answered soon. */
void pace_posted(struct pace *p, uint64_t now);
/* The loop has yielded. */
void pace_yielded(struct pace *p, uint64_t before, uint64_t after);
/* May the loop yield in the middle of its work? */
bool pace_may_yield(const struct pace *p, uint64_t now);

#endif
