/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch_news.h"

#include <errno.h>
#include <string.h>

#include "io.h"
#include "switch_rx.h"
#include "wire_bytes.h"

#define NEWS_LEN  64u
#define NEWS_TYPE 0x88B5u /* for local experiments */
/* The news about the queue pair whose number follows. */
#define NEWS_OVER    1u
#define NEWS_STARTED 2u
#define NEWS_FACTS   3u /* about no queue pair */
#define NEWS_ICMP    4u /* the error is in the place of the number; the address follows */
#define NEWS_ADDR    22u
#define NEWS_SAID    38u /* octets with news; the rest is 0 */

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

static void news_write_icmp(uint8_t *frame, const struct io_icmp *icmp)
{
    news_write(frame, NEWS_ICMP, (uint32_t)icmp->error);
    memcpy(frame + NEWS_ADDR, icmp->to.b, sizeof(icmp->to.b));
}

/* A program may write anything: only errors that a port reports count. */
static bool news_read_icmp(const uint8_t *frame, struct io_icmp *out)
{
    if (wire_get16(frame + 12) != NEWS_TYPE || wire_get32(frame + 14) != NEWS_ICMP)
        return false;
    out->error = (int)wire_get32(frame + 18);
    memcpy(out->to.b, frame + NEWS_ADDR, sizeof(out->to.b));
    return out->error == ECONNREFUSED || out->error == EHOSTUNREACH || out->error == ENETUNREACH ||
           out->error == EMSGSIZE;
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

static void to_all(struct nic_switch *s, uint8_t *frame)
{
    const struct io_frame f = {.data = frame, .len = NEWS_LEN};
    memcpy(frame, s->mac, sizeof(s->mac));
    memcpy(frame + 6, s->mac, sizeof(s->mac));
    for (struct switch_channel *c = s->channels; c; c = c->all_next) {
        if (!c->ending)
            (void)switch_put(s, c, frame, 0, &f); /* a program with a full ring is awake */
    }
}

void switch_news_facts(struct nic_switch *s)
{
    uint8_t frame[NEWS_LEN];
    news_write(frame, NEWS_FACTS, 0);
    to_all(s, frame);
}

void switch_news_icmp(struct nic_switch *s, const struct io_icmp *icmp)
{
    uint8_t frame[NEWS_LEN];
    news_write_icmp(frame, icmp);
    to_all(s, frame);
}

uint32_t switch_news_read(const uint8_t *frame, uint32_t len)
{
    return len < NEWS_LEN ? 0 : news_read(frame, NEWS_OVER);
}

bool switch_news_read_icmp(const uint8_t *frame, uint32_t len, struct io_icmp *out)
{
    return len >= NEWS_LEN && news_read_icmp(frame, out);
}

uint32_t switch_news_heard(uint8_t *frame, uint32_t cap, const struct io_icmp *icmp)
{
    if (cap < NEWS_LEN)
        return 0;
    news_write_icmp(frame, icmp); /* without a MAC, so that it can't loop */
    return NEWS_LEN;
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
    struct io_icmp icmp;
    if (frame->len != NEWS_LEN)
        return false;
    memcpy(copy, frame->data, sizeof(copy));
    if (from->direct && news_read_icmp(copy, &icmp)) {
        s->counters[SWITCH_C_channel_news]++;
        if (s->icmp)
            s->icmp(s->engine_arg, &icmp);
        return true;
    }
    uint32_t qpn = news_read(copy, NEWS_STARTED);
    if (qpn == 0 || switch_owner(s, qpn) != from)
        return false;
    s->counters[SWITCH_C_channel_news]++;
    if (s->comm_est)
        s->comm_est(s->engine_arg, qpn);
    return true;
}
