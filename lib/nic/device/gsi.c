/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A QP1 that nothing serves.
 */
#include "gsi.h"

static void none_rx(struct gsi *g, const struct wire_pkt *pkt, const uint8_t *mad, uint32_t len)
{
    (void)g;
    (void)pkt;
    (void)mad;
    (void)len;
}

static int none_member(const struct gsi *g, const uint8_t *mad, uint32_t len,
                       const struct wire_addr *dip)
{
    (void)g;
    (void)mad;
    (void)len;
    (void)dip;
    return -1;
}

static void none_comm_est(struct gsi *g, void *qp_arg)
{
    (void)g;
    (void)qp_arg;
}

static void none_program_comm_est(struct gsi *g, uint32_t qpn)
{
    (void)g;
    (void)qpn;
}

static bool none_waits(const struct gsi *g)
{
    (void)g;
    return false;
}

static bool none_tx(struct gsi *g, struct engine_slot *slot)
{
    (void)g;
    (void)slot;
    return false;
}

static unsigned none_run(struct gsi *g, uint64_t now)
{
    (void)g;
    (void)now;
    return 0;
}

static uint64_t none_deadline(const struct gsi *g)
{
    (void)g;
    return UINT64_MAX;
}

static void none_call(struct gsi *g)
{
    (void)g;
}

static void none_set_mtu(struct gsi *g, unsigned path_mtu)
{
    (void)g;
    (void)path_mtu;
}

static void none_refused(struct gsi *g, const struct wire_addr *addr)
{
    (void)g;
    (void)addr;
}

static void none_counters(const struct gsi *g, struct stats_list *list)
{
    (void)g;
    (void)list;
}

static const struct gsi_ops none_ops = {
    .rx = none_rx,
    .member = none_member,
    .comm_est = none_comm_est,
    .program_comm_est = none_program_comm_est,
    .busy = none_waits,
    .tx_ready = none_waits,
    .tx = none_tx,
    .run = none_run,
    .deadline = none_deadline,
    .service = none_call,
    .owes = none_waits,
    .set_mtu = none_set_mtu,
    .refused = none_refused,
    .counters = none_counters,
    .destroy = none_call,
};

struct gsi gsi_none = {&none_ops};
