/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch_news.h"

#include <string.h>

#include "switch_rx.h"
#include "wire_bytes.h"

#define NEWS_LEN  64u
#define NEWS_TYPE 0x88B5u /* for local experiments */
#define NEWS_OVER 1u      /* followed by a queue pair's number */

bool switch_news_over(struct nic_switch *s, uint32_t qpn)
{
    struct switch_channel *c = blocks_owner(&s->blocks, qpn);
    uint8_t frame[NEWS_LEN] = {0};
    const struct io_frame f = {.data = frame, .len = sizeof(frame)};
    if (!c || c->ending)
        return false;
    memcpy(frame, s->mac, sizeof(s->mac));
    memcpy(frame + 6, s->mac, sizeof(s->mac));
    wire_put16(frame + 12, NEWS_TYPE);
    wire_put32(frame + 14, NEWS_OVER);
    wire_put32(frame + 18, qpn);
    return switch_put(s, c, frame, 0, &f);
}

uint32_t switch_news_read(const uint8_t *frame, uint32_t len)
{
    if (len < NEWS_LEN || wire_get16(frame + 12) != NEWS_TYPE ||
        wire_get32(frame + 14) != NEWS_OVER)
        return 0;
    return wire_get32(frame + 18) & WIRE_QPN_MASK;
}
