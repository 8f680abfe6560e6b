/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Chooses the values that the capture doesn't show such that they explain most answers: whether
 * early WRITE packets are kept, whether a NAK may have crossed with its packet, and whether packets
 * may be lost and overtaken between the port and its responder (in an ingress queue, or at a full
 * socket).
 */
#include <string.h>

#include "replay_priv.h"

#define KINDS_MAX   16u
#define KIND_WEIGHT (1ull << 32) /* weight of one more rule, in differences */

/* The broken rules. */
struct kinds {
    const char *rule[KINDS_MAX];
    unsigned n;
};

static void on_kind(void *ctx, const struct replay_difference *d)
{
    struct kinds *k = ctx;
    unsigned i = 0;
    while (i < k->n && strcmp(k->rule[i], d->rule) != 0)
        i++;
    if (i == k->n && k->n < KINDS_MAX)
        k->rule[k->n++] = d->rule;
}

/* Replay without reports: how badly does it differ? One habit is likelier than several accidents.
 */
static int try_responder(struct direction *d, struct watch *watch, struct replay_outcome *out,
                         uint64_t *differ)
{
    struct kinds kinds = {.n = 0};
    struct judge judge = {
        .report = on_kind, .mute = true, .watch = watch, .ctx = &kinds, .out = out};
    uint64_t held = d->held->octets;
    watch->total += d->packets;
    evidence_find(d);
    int rc = as_responder(d, &judge);
    d->held->octets = held;
    *differ = out->differ + judge.excused + (kinds.n + (judge.excused != 0)) * KIND_WEIGHT;
    return rc;
}

int choices_find(struct direction *d, struct judge *j, bool *explained)
{
    static const struct {
        bool keeps_early;
        uint8_t trip_share;
    } choice[] = {{false, 0}, {false, 6}, {false, 7}, {true, 0}, {true, 6}, {true, 7}};
    const size_t n = sizeof(choice) / sizeof(choice[0]);
    uint64_t least = UINT64_MAX;
    size_t best = 0;
    for (size_t i = 0; i < (d->own_port ? 2 * n : n); i++) {
        struct replay_outcome out = *j->out;
        uint64_t differ = 0;
        d->keeps_early = choice[i % n].keeps_early;
        d->trip_share = choice[i % n].trip_share;
        d->exact = d->own_port && i < n;
        int rc = try_responder(d, j->watch, &out, &differ);
        if (rc)
            return rc;
        if (!differ) {
            *j->out = out;
            *explained = true;
            j->watch->total -= d->packets; /* it need not be repeated */
            return 0;
        }
        if (differ < least) {
            least = differ;
            best = i;
        }
    }
    d->keeps_early = choice[best % n].keeps_early;
    d->trip_share = choice[best % n].trip_share;
    d->exact = d->own_port && best < n;
    evidence_find(d);
    return 0;
}
