/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Queue pairs follow their device: its MAC address, its MTU, its congestion control. A queue pair's
 * right values follow from its device at any time. So a pass over all of them may stop and
 * continue, and a change during a pass starts it anew. Rules: WIRE-36, CC-25, SHM-12.
 */
#include <errno.h>
#include <string.h>

#include "engine_priv.h"
#include "limiter.h"

struct pass {
    struct engine *e;
    uint64_t now;
};

static bool sends_to_us(const struct engine *e, const struct engine_av *av)
{
    if (memcmp(av->dmac, e->follow.old_mac, 6) == 0)
        return true;
    for (uint32_t i = 0; i < e->naddrs; i++)
        if (!memcmp(&e->addr[i], &av->dgid, sizeof(av->dgid)))
            return true;
    return false;
}

static void follow_mac(struct engine *e, struct qp *qp)
{
    if (qp->tmpl.len)
        wire_tmpl_set_smac(&qp->tmpl, e->p.mac);
    if (sends_to_us(e, &qp->attr.av))
        engine_qp_set_dmac(qp, e->p.mac);
}

static bool follow_one(void *arg, struct qp *qp)
{
    struct pass *p = arg;
    struct engine *e = p->e;
    follow_mac(e, qp);
    e->follow.larger +=
        qp->state >= QPS_RTR && qp->state != QPS_ERR && qp->mtu_shift > 7 + e->p.mtu;
    if (!qp->cc_own && qp->cc_conf != e->cc_conf)
        engine_qp_set_cc(e, qp, NULL, p->now); /* without memory it keeps its old one */
    return true;
}

bool engine_follows(const struct engine *e)
{
    return e->follow.on;
}

bool engine_follow(struct engine *e, unsigned budget, uint64_t now)
{
    struct pass p = {.e = e, .now = now};
    uint64_t before = e->qp_looks;
    if (!e->follow.on)
        return false;
    e->follow.at = engine_qp_walk(e, e->follow.at, budget, follow_one, &p);
    e->follow.looks += e->qp_looks - before;
    if (e->follow.at)
        return true;
    e->follow.on = false;
    e->follow.larger_all = e->follow.larger;
    return false;
}

static void begin(struct engine *e, uint64_t now)
{
    e->follow.on = true;
    e->follow.at = 0;
    e->follow.larger = 0;
    engine_follow(e, ENGINE_FOLLOW, now);
}

void engine_set_mac(struct engine *e, const uint8_t mac[6])
{
    memcpy(e->follow.old_mac, e->p.mac, 6);
    memcpy(e->p.mac, mac, 6);
    if (e->gsi)
        follow_mac(e, e->gsi);
    begin(e, e->now);
}

void engine_set_mtu(struct engine *e, unsigned mtu)
{
    e->p.mtu = mtu;
    begin(e, e->now);
}

unsigned engine_larger_mtu(const struct engine *e)
{
    return e->follow.larger_all;
}

int engine_set_cc(struct engine *e, const struct cc_conf *conf, uint64_t now)
{
    struct limiter_conf *c = limiter_conf_new(e, conf), *old = e->cc_conf;
    if (!c)
        return -ENOMEM;
    e->cc_conf = c;
    begin(e, now);
    limiter_conf_let_go(old);
    return 0;
}

uint64_t engine_follow_looks(const struct engine *e)
{
    return e->follow.looks;
}

uint64_t engine_qp_looks(const struct engine *e)
{
    return e->qp_looks;
}
