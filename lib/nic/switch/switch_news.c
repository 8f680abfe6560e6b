/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch_news.h"

#include <string.h>

#include "io.h"
#include "switch_rx.h"
#include "wire_bytes.h"

#define NEWS_LEN  64u
#define NEWS_TYPE 0x88B5u /* for local experiments */
/* The news about the queue pair whose number follows. */
#define NEWS_OVER    1u
#define NEWS_STARTED 2u
#define NEWS_FACTS   3u  /* about no queue pair */
#define NEWS_SAID    22u /* octets with news; the rest is 0 */

static void news_write(uint8_t *frame, uint32_t what, uint32_t qpn)
{
    memset(frame, 0, NEWS_LEN);
    wire_put16(frame + 12, NEWS_TYPE);
    wire_put32(frame + 14, what);
    wire_put32(frame + 18, qpn);
}

/* The queue pair for which `frame` has this news; 0 = it has other news or none. */
static uint32_t news_read(const uint8_t *frame, uint32_t what)
{
    if (wire_get16(frame + 12) != NEWS_TYPE || wire_get32(frame + 14) != what)
        return 0;
    return wire_get32(frame + 18) & WIRE_QPN_MASK;
}

bool switch_news_over(struct nic_switch *s, uint32_t qpn)
{
    struct switch_channel *c = switch_owner(s, qpn);
    uint8_t frame[NEWS_LEN];
    const struct io_frame f = {.data = frame, .len = sizeof(frame)};
    if (!c || c->ending)
        return false;
    news_write(frame, NEWS_OVER, qpn);
    memcpy(frame, s->mac, sizeof(s->mac));
    memcpy(frame + 6, s->mac, sizeof(s->mac));
    return switch_put(s, c, frame, 0, &f);
}

void switch_news_facts(struct nic_switch *s)
{
    uint8_t frame[NEWS_LEN];
    const struct io_frame f = {.data = frame, .len = sizeof(frame)};
    news_write(frame, NEWS_FACTS, 0);
    memcpy(frame, s->mac, sizeof(s->mac));
    memcpy(frame + 6, s->mac, sizeof(s->mac));
    for (struct switch_channel *c = s->channels; c; c = c->all_next) {
        if (!c->ending)
            (void)switch_put(s, c, frame, 0, &f); /* a program with a full ring is awake */
    }
}

uint32_t switch_news_read(const uint8_t *frame, uint32_t len)
{
    return len < NEWS_LEN ? 0 : news_read(frame, NEWS_OVER);
}

uint32_t switch_news_comm_est(uint8_t *frame, uint32_t cap, uint32_t qpn)
{
    if (cap < NEWS_LEN)
        return 0;
    news_write(frame, NEWS_STARTED, qpn); /* without a MAC, so that it can't loop */
    return NEWS_LEN;
}

bool switch_news_hear(struct nic_switch *s, struct switch_channel *from,
                      const struct io_frame *frame)
{
    uint8_t copy[NEWS_SAID];
    if (frame->len != NEWS_LEN)
        return false;
    memcpy(copy, frame->data, sizeof(copy));
    uint32_t qpn = news_read(copy, NEWS_STARTED);
    if (qpn == 0 || switch_owner(s, qpn) != from)
        return false;
    s->counters[SWITCH_C_channel_news]++;
    if (s->comm_est)
        s->comm_est(s->engine_arg, qpn);
    return true;
}
