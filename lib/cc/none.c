/* SPDX-License-Identifier: BSD-3-Clause
 *
 * No congestion control: never limits.
 */
#include "cc.h"

static void none_init(struct cc *cc, uint64_t line_rate, uint64_t now)
{
    (void)line_rate;
    (void)now;
    cc->rate = CC_UNLIMITED;
}

static void none_ack(struct cc *cc, uint64_t rtt_ns, uint32_t packets, uint64_t now)
{
    (void)cc;
    (void)rtt_ns;
    (void)packets;
    (void)now;
}

static void none_event(struct cc *cc, uint64_t now)
{
    (void)cc;
    (void)now;
}

static void none_send(struct cc *cc, uint32_t octets, uint64_t now)
{
    (void)cc;
    (void)octets;
    (void)now;
}

static uint64_t none_deadline(const struct cc *cc)
{
    (void)cc;
    return UINT64_MAX;
}

const struct cc_type cc_none = {
    .name = "none",
    .init = none_init,
    .on_ack = none_ack,
    .on_cnp = none_event,
    .on_loss = none_event,
    .on_send = none_send,
    .deadline = none_deadline,
    .expire = none_event,
};
