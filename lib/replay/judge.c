/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reports of all roles: differences and progress.
 */
#include <errno.h>
#include <stdio.h>

#include "replay_priv.h"

#define CUT_HABIT 3u /* differences of packets without iCRC that may be damage */

/* A packet without its iCRC may have been damaged on the way. */
static bool perhaps_damaged(struct judge *j, const struct packet *p)
{
    if (!packet_cut(p) || j->cut++ >= CUT_HABIT)
        return false;
    j->out->passed++;
    j->out->compared -= j->out->compared > j->out->same + j->out->differ;
    return true;
}

void judge_differ(struct judge *j, const struct packet *p, const char *rule, const char *field,
                  const char *ours, const char *why)
{
    if (perhaps_damaged(j, p))
        return;
    struct replay_difference d = {.connection = j->out->connection,
                                  .role = j->out->role,
                                  .number = p->kept->number,
                                  .ns = p->kept->ns,
                                  .rule = rule,
                                  .field = field};
    j->out->differ++;
    if (!j->mute) {
        uint8_t frame[KEPT_FRAME_MAX];
        size_t have = kept_frame(p->kept, UINT32_MAX, frame);
        snprintf(d.why, sizeof(d.why), "%s", why);
        snprintf(d.ours, sizeof(d.ours), "%s", ours);
        wire_dump_cut(d.capture, sizeof(d.capture), frame, have, p->kept->head->len + p->kept->len,
                      WIRE_D_SELECTIVE);
    }
    if (j->report)
        j->report(j->ctx, &d);
}

int judge_step(struct judge *j)
{
    struct watch *w = j->watch;
    if (!w || ++w->done % STEP_EVERY || !w->progress)
        return 0;
    return w->progress(w->ctx, w->done, w->total) ? 0 : -EINTR;
}
