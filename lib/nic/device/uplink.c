/* SPDX-License-Identifier: BSD-3-Clause */
#include "uplink.h"

#include <errno.h>
#include <string.h>

#include "cc.h"
#include "channel.h"
#include "device.h"
#include "direct.h"
#include "switch_ask.h"
#include "switch_news.h"
#include "team.h"

#define UPLINK_TRIES 1000u /* the daemon writes for a moment only */
#define UPLINK_PART  2048u /* octets of a frame with a part of an answer */
#define UPLINK_WHOLE (40u * sizeof(struct ipc_asked_counter)) /* in one of these */

static bool read_facts(struct uplink *b)
{
    return ipc_facts_read(b->page, &b->seen, &b->facts);
}

/* Set the port's part of the facts. */
static void to_port(struct uplink *b)
{
    const struct ipc_facts *f = &b->facts;
    struct io_caps *caps = &b->io->caps;
    uint32_t frame = f->ip_mtu + DEVICE_HDR;
    memcpy(caps->mac, f->mac, sizeof(caps->mac));
    caps->rate_bps = f->line_rate;
    caps->udp_sport = f->udp_sport;
    caps->loopback = (f->flags & IPC_FACTS_LOOPBACK) != 0;
    caps->frame_max = frame < b->frame_max ? frame : b->frame_max;
    b->channel->caps.frame_max = caps->frame_max;
    channel_set_link(b->channel, (f->flags & IPC_FACTS_LINK) != 0, "the daemon's device has none");
}

static int to_cc(const struct uplink *b, struct cc_conf *cc)
{
    char text[IPC_FACTS_CC], why[CONFIG_ERR];
    memcpy(text, b->facts.cc, sizeof(text));
    text[sizeof(text) - 1] = '\0';
    return text[0] ? cc_conf_parse(cc, text, why, sizeof(why)) : -EINVAL;
}

int uplink_begin(struct uplink *b, struct config_device *conf)
{
    bool known = false;
    b->seen = 0;
    b->frame_max = b->io->caps.frame_max;
    for (unsigned i = 0; i < UPLINK_TRIES && !known; i++)
        known = read_facts(b);
    if (!known)
        return -EAGAIN;
    to_port(b);
    const struct ipc_facts *f = &b->facts;
    conf->vlan = f->vlan;
    conf->dscp = f->dscp;
    conf->addr_hold = f->addr_hold;
    conf->strict_resp = (f->flags & IPC_FACTS_STRICT) != 0;
    conf->nak_confirm = (f->flags & IPC_FACTS_CONFIRM) != 0;
    conf->rnr_on_rd_res = (f->flags & IPC_FACTS_RNR_ON_RES) != 0;
    return to_cc(b, &conf->cc) < 0 ? -EINVAL : 0;
}

void uplink_gids(const struct uplink *b, struct gid_table *out)
{
    memset(out, 0, sizeof(*out));
    for (unsigned i = 0; i < GID_PAIRS && i < IPC_FACTS_ADDRS; i++) {
        out->pair[i].used = b->facts.addrs >> i & 1;
        memcpy(out->pair[i].addr.b, b->facts.gid[i], sizeof(out->pair[i].addr.b));
    }
}

/* Close the sockets of addresses that the device no longer has. */
static void to_sockets(struct uplink *b)
{
    struct io_addr addr[IPC_FACTS_ADDRS];
    unsigned n = 0;
    for (unsigned i = 0; i < IPC_FACTS_ADDRS; i++) {
        if (b->facts.addrs >> i & 1)
            memcpy(addr[n++].b, b->facts.gid[i], sizeof(addr[0].b));
    }
    direct_addrs(b->io, addr, n);
}

void uplink_follow(struct device *d, uint64_t now)
{
    struct uplink *b = d->uplink;
    char before[IPC_FACTS_CC];
    struct cc_conf cc;
    memcpy(before, b->facts.cc, sizeof(before));
    if (!ipc_facts_differ(b->page, b->seen) || !read_facts(b))
        return;
    to_port(b);
    if (b->io != b->channel)
        to_sockets(b);
    if (memcmp(before, b->facts.cc, sizeof(before)) != 0 && to_cc(b, &cc) == 0)
        (void)engine_set_cc(d->engine, &cc, now);
}

void uplink_tx(struct device *d, const struct engine_slot *slots, unsigned n)
{
    void (*const say)(struct io_port * io, unsigned i, uint32_t meta) =
        d->io == d->uplink->channel ? channel_tx_meta : direct_tx_meta;
    for (unsigned i = 0; i < n; i++)
        say(d->io, i, slots[i].qpn);
}

unsigned uplink_answer(struct device *d)
{
    struct uplink *b = d->uplink;
    uint8_t frame[UPLINK_PART];
    unsigned n = 0;
    while (b->owes) {
        uint32_t len = switch_ask_write(frame, sizeof(frame), d->mac, &b->answer, b->data);
        if (!channel_put(b->channel, frame, len))
            break;
        n++;
        b->answer.off += b->answer.part;
        b->owes = b->answer.off < b->answer.len;
    }
    return n;
}

void uplink_last(struct device *d)
{
    const struct ipc_question counters = {.kind = IPC_ASK_COUNTERS};
    struct uplink *b = d->uplink;
    uint32_t whole;
    if (!b->asked)
        return;
    b->answer = (struct ipc_answer){0};
    b->asked(b->asked_arg, &counters, &b->answer, b->data);
    whole = b->answer.len;
    for (uint32_t off = 0; off < whole; off += b->answer.len) {
        uint8_t frame[UPLINK_PART];
        uint32_t left = whole - off;
        b->answer = (struct ipc_answer){.len = left < UPLINK_WHOLE ? left : UPLINK_WHOLE};
        uint32_t len = switch_ask_write(frame, sizeof(frame), d->mac, &b->answer, b->data + off);
        (void)channel_put(b->channel, frame, len);
    }
}

static void question(struct device *d, const struct ipc_question *q)
{
    struct uplink *b = d->uplink;
    if (!b->asked)
        return;
    b->answer = (struct ipc_answer){.id = q->id};
    b->asked(b->asked_arg, q, &b->answer, b->data);
    b->owes = true; /* an unsent answer to an earlier question would come too late */
}

void uplink_rx(struct device *d, const uint8_t *frame, uint32_t len, uint64_t now)
{
    struct ipc_question q;
    if (switch_ask_read(frame, len, &q)) {
        question(d, &q);
        return;
    }
    struct io_icmp icmp;
    if (switch_news_read_icmp(frame, len, &icmp)) {
        team_icmp_heard(d->team, &icmp);
        return;
    }
    const struct engine_qp_attr err = {.state = QPS_ERR};
    uint32_t qpn = switch_news_read(frame, len);
    struct qp *qp = qpn ? engine_qp_find(d->engine, qpn) : NULL;
    if (qp)
        (void)engine_qp_modify(d->engine, qp, &err, QPA_STATE, now);
}

void uplink_comm_est(struct uplink *b, uint32_t qpn)
{
    if (b->comm_est_head - b->comm_est_tail < UPLINK_COMM_EST)
        b->comm_est[b->comm_est_head++ % UPLINK_COMM_EST] = qpn;
}

void uplink_icmp(struct uplink *b, const struct io_icmp *icmp)
{
    if (b->icmp_head - b->icmp_tail < UPLINK_ICMP)
        b->icmp[b->icmp_head++ % UPLINK_ICMP] = *icmp;
}

uint32_t uplink_say(struct uplink *b, uint8_t *buf, uint32_t cap)
{
    uint32_t len;
    if (!uplink_says(b))
        return 0;
    if (b->icmp_head != b->icmp_tail) {
        len = switch_news_heard(buf, cap, &b->icmp[b->icmp_tail % UPLINK_ICMP]);
        b->icmp_tail += len > 0;
        return len;
    }
    len = switch_news_comm_est(buf, cap, b->comm_est[b->comm_est_tail % UPLINK_COMM_EST]);
    b->comm_est_tail += len > 0;
    return len;
}
