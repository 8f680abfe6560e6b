/* SPDX-License-Identifier: BSD-3-Clause
 *
 * For tests of selective repeat: a rig with a peer, played by the test, that has agreed to it.
 */
#ifndef URNIC_TEST_SR_RIG_H
#define URNIC_TEST_SR_RIG_H

#include <stdio.h>

#include "cc_of.h"
#include "core_rig.h"

#define US 1000ull

/* A rig in RTS, on a device with this congestion control and recovery. */
static inline struct rig *rig_with(const char *spec, const struct rig_opts *opts)
{
    struct rig_opts o = opts ? *opts : (struct rig_opts){0};
    const struct cc_conf conf = cc_of(spec);
    o.stay = true;
    struct rig *r = rig_new(&o);
    ck_assert_int_eq(engine_set_cc(r->e, &conf, r->now), 0);
    o.stay = false;
    rig_connect(r, r->qp, &o, QPS_RTS);
    return r;
}

/* A selective acknowledgement: hello with WIRE_SYN_ACK, else "psn expected, trigger has come". */
static inline void sack(struct rig *r, unsigned syndrome, uint32_t psn, uint32_t trigger)
{
    struct wire_pkt p = rig_pkt(r, WIRE_ACKNOWLEDGE, psn);
    p.selective = true;
    p.syndrome = (uint8_t)syndrome;
    p.sel_psn = trigger;
    rig_rx(r, &p, NULL);
}

/* A queue pair that has received its peer's hello. */
static inline struct rig *agreed(const struct rig_opts *o)
{
    struct rig *r = rig_with("none,recovery=sr", o);
    sack(r, WIRE_SYN_ACK, RIG_RQPSN, 0);
    ck_assert_uint_eq(rig_tx(r, 0), 1); /* and is answered */
    ck_assert(r->sent[0].selective);
    ck_assert_uint_eq(r->sent[0].syndrome, WIRE_SYN_ACK);
    ck_assert_uint_eq(r->sent[0].sel_psn, 1);
    rig_clear(r);
    return r;
}

static inline uint32_t tx_psn(uint32_t n)
{
    return rig_psn(RIG_PSN, n);
}

/* PSN numbers of the packets sent since rig_clear, as text. */
static inline const char *sent(const struct rig *r)
{
    static char text[512];
    size_t n = 0;
    text[0] = 0;
    for (unsigned i = 0; i < r->nsent; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%u", i ? " " : "",
                              rig_psn(r->sent[i].psn, 0x1000000 - RIG_PSN));
    return text;
}

#endif
