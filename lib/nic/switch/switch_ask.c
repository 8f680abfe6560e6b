/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch_ask.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "switch_counters.h"
#include "wire_bytes.h"

#define ASK_TYPE     0x88B5u /* for local experiments, like news (switch_news.c) */
#define ASK_QUESTION 2u
#define ASK_ANSWER   3u
#define UNASKED_MAX  (2u * IPC_ASK_MAX) /* octets of counters told unasked, of a channel */
#define ASK_HEAD     20u /* Ethernet, the kind of frame, and a gap that aligns the rest */

static_assert(ASK_HEAD + sizeof(struct ipc_question) < 4096, "a question fits into a slot");

static void head(uint8_t *frame, const uint8_t mac[6], uint32_t what)
{
    memset(frame, 0, ASK_HEAD);
    memcpy(frame, mac, 6);
    memcpy(frame + 6, mac, 6);
    wire_put16(frame + 12, ASK_TYPE);
    wire_put32(frame + 14, what);
}

static bool is(const uint8_t *frame, uint32_t len, uint32_t what, size_t size)
{
    return len >= ASK_HEAD + size && wire_get16(frame + 12) == ASK_TYPE &&
           wire_get32(frame + 14) == what;
}

/* ---- the daemon ---- */

static void end(struct nic_switch *s, struct switch_ask *a, int status)
{
    switch_ask_cancel(s, a);
    a->status = status;
    a->done(a);
}

/* False: there is no room. That counts as no lost frame. */
static bool put_question(const struct nic_switch *s, struct switch_channel *to,
                         const struct ipc_question *q)
{
    struct io_slot slot;
    if (to->io->ops->tx_reserve(to->io, &slot, 1, 0) == 0 || slot.cap < ASK_HEAD + sizeof(*q))
        return false;
    head(slot.data, s->mac, ASK_QUESTION);
    memcpy(slot.data + ASK_HEAD, q, sizeof(*q));
    slot.len = ASK_HEAD + (uint32_t)sizeof(*q);
    to->io->ops->tx_commit(to->io, &slot, 1, 0);
    return true;
}

void switch_ask(struct nic_switch *s, struct switch_ask *a, struct switch_channel *to,
                struct ipc_question *q, uint64_t now)
{
    if (++s->last_ask == 0) /* 0 is no question */
        s->last_ask++;
    a->id = q->id = s->last_ask;
    a->to = to;
    a->counters = q->kind == IPC_ASK_COUNTERS;
    a->until = now + IPC_ASK_NS;
    a->cursor = a->got = a->len = 0;
    a->next = s->asks;
    s->asks = a;
    if (to->ending || !put_question(s, to, q))
        a->until = now; /* it ends soon, but not in this call */
}

void switch_ask_cancel(struct nic_switch *s, struct switch_ask *a)
{
    struct switch_ask **at = &s->asks;
    while (*at && *at != a)
        at = &(*at)->next;
    if (*at)
        *at = a->next;
    a->to = NULL;
}

void switch_ask_forget(struct nic_switch *s, const struct switch_channel *c)
{
    for (struct switch_ask *a = s->asks, *next; a; a = next) {
        next = a->next;
        if (a->to == c)
            end(s, a, -ENODEV);
    }
}

void switch_ask_run(struct nic_switch *s, uint64_t now)
{
    for (struct switch_ask *a = s->asks, *next; a; a = next) {
        next = a->next;
        if (a->until > now)
            continue;
        switch_counters_silent(s, a->to, true);
        end(s, a, -ETIMEDOUT);
    }
}

uint64_t switch_ask_deadline(const struct nic_switch *s)
{
    uint64_t at = UINT64_MAX;
    for (const struct switch_ask *a = s->asks; a; a = a->next)
        at = a->until < at ? a->until : at;
    return at;
}

/* Take a part of the answer to this question. */
static void part(struct nic_switch *s, struct switch_ask *a, const struct ipc_answer *h,
                 const uint8_t *data)
{
    switch_counters_silent(s, a->to, false);
    if (h->status < 0) {
        end(s, a, h->status < -4095 ? -EPROTO : h->status);
        return;
    }
    if (h->off != a->got || h->len > a->room || h->part > h->len - a->got ||
        (a->got > 0 && h->len != a->len)) {
        end(s, a, -EPROTO);
        return;
    }
    a->len = h->len;
    a->cursor = h->next;
    memcpy(a->data + a->got, data, h->part);
    a->got += h->part;
    if (a->got < a->len)
        return;
    if (a->counters)
        switch_counters_note(s, a->to, a->data, a->len);
    end(s, a, 0);
}

/* Counters that the daemon has not asked for: a program's last. A program that repeats them only
 * costs the worker time. */
static void last_counters(struct nic_switch *s, struct switch_channel *c, const uint8_t *data,
                          uint32_t len)
{
    if (len > UNASKED_MAX - c->unasked)
        return;
    c->unasked += len;
    switch_counters_note(s, c, data, len);
}

bool switch_ask_answered(struct nic_switch *s, struct switch_channel *c, const uint8_t *frame,
                         uint32_t len)
{
    uint8_t copy[IO_FRAME_MAX];
    struct ipc_answer h;
    if (len < WIRE_ETH_LEN || wire_get16(frame + 12) != ASK_TYPE)
        return false;
    if (len > sizeof(copy))
        return false;
    memcpy(copy, frame, len);
    if (!is(copy, len, ASK_ANSWER, sizeof(h)))
        return false;
    memcpy(&h, copy + ASK_HEAD, sizeof(h));
    const uint8_t *data = copy + ASK_HEAD + sizeof(h);
    if (h.part > len - ASK_HEAD - sizeof(h))
        return true;
    if (h.id == 0)
        last_counters(s, c, data, h.part);
    for (struct switch_ask *a = s->asks; a && h.id; a = a->next) {
        if (a->id == h.id && a->to == c) {
            part(s, a, &h, data);
            break;
        }
    }
    return true;
}

/* ---- the program ---- */

bool switch_ask_read(const uint8_t *frame, uint32_t len, struct ipc_question *out)
{
    if (!is(frame, len, ASK_QUESTION, sizeof(*out)))
        return false;
    memcpy(out, frame + ASK_HEAD, sizeof(*out));
    out->cc[sizeof(out->cc) - 1] = '\0';
    return true;
}

uint32_t switch_ask_write(uint8_t *frame, uint32_t cap, const uint8_t mac[6], struct ipc_answer *a,
                          const uint8_t *data)
{
    uint32_t room = cap - ASK_HEAD - (uint32_t)sizeof(*a), left = a->len - a->off;
    a->part = left < room ? left : room;
    head(frame, mac, ASK_ANSWER);
    memcpy(frame + ASK_HEAD, a, sizeof(*a));
    if (a->part > 0)
        memcpy(frame + ASK_HEAD + sizeof(*a), data + a->off, a->part);
    return ASK_HEAD + (uint32_t)sizeof(*a) + a->part;
}
