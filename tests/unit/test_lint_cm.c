/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Each rule that lint knows of datagrams and the connection manager's messages,
 * broken once: see lint_rows.h.
 */
#include "lint_rows.h"
#include "unit.h"

static void mcast_qpn(struct wire_pkt *p)
{
    p->dqpn = 0xFFFFFF;
}

static void len_4100(struct step *s)
{
    s->len = 4100;
}

static void sqpn_0(struct wire_pkt *p)
{
    p->sqpn = 0;
}
static void sqpn_5(struct wire_pkt *p)
{
    p->sqpn = 5;
}
static void mad_short(struct wire_pkt *p)
{
    p->payload_len = 200;
}
static void mad_base(struct packet *k)
{
    k->f[k->p.payload_off] = 2;
}
static void mad_class(struct packet *k)
{
    k->f[k->p.payload_off + 2] = 1;
}
static void cm_hdr(struct cm_msg *m)
{
    m->priv[1] = 0x50;
}
static void cm_hdr_junk(struct cm_msg *m)
{
    m->priv[4 + 11] = 1;
}
static void cm_hdr_low(struct cm_msg *m)
{
    m->priv[1] |= 8;
}
static void cm_hdr_ib(struct cm_msg *m)
{
    m->service_id = 0x00000000013F1389;
    m->priv[1] = 0;
}
static void cm_depth(struct cm_msg *m)
{
    m->init_depth = 9;
}
static void cm_tid(struct cm_msg *m)
{
    m->tid++;
}
static void cm_id(struct cm_msg *m)
{
    m->local_id = 0;
}
static void cm_peer_id(struct cm_msg *m)
{
    m->remote_id = 0;
}
static void cm_psn(struct cm_msg *m)
{
    m->psn++;
}
static void cm_mtu(struct cm_msg *m)
{
    m->mtu++;
}
static void cm_private(struct cm_msg *m)
{
    m->priv[m->priv_len - 1]++;
}
static void cm_qpn(struct cm_msg *m)
{
    m->remote_qpn++;
}

static const struct step steps_mra[] = {{.cm = CM_REQ},
                                        {.cm = CM_MRA, .from_b = true},
                                        {.cm = CM_REP, .from_b = true},
                                        {.cm = CM_RTU},
                                        END};
static const struct step steps_rej[] = {{.cm = CM_REQ}, {.cm = CM_REJ, .from_b = true}, END};
static const struct step steps_sidr[] = {{.cm = CM_SIDR_REQ}, END};
static const struct step steps_rep_again[] = {{.cm = CM_REQ},
                                              {.cm = CM_REP, .from_b = true},
                                              {.cm = CM_REP, .from_b = true},
                                              {.cm = CM_RTU},
                                              END};

static const struct row rows[] = {
    {"UD-01 more than one packet may hold", steps_ud, 1, .step = len_4100},
    {"UD-09 source QP 0", steps_ud, 1, .pkt = sqpn_0},
    {"UD-10 multicast QP, unicast address", steps_ud, 1, .pkt = mcast_qpn},
    {"GSI-01 not from QP1", steps_cm, 2, .pkt = sqpn_5},
    {"GSI-02 short MAD", steps_cm, 2, .pkt = mad_short},
    {"GSI-03 base version 2", steps_cm, 2, .octets = mad_base},
    {"GSI-04 class version 1", steps_cm, 2, .octets = mad_class},
    {"CM-02 IP version 5, the first of two times", steps_cm, 0, .cm = cm_hdr},
    {"CM-02 IP version 5 in a SIDR REQ", steps_sidr, 0, .cm = cm_hdr},
    {"CM-02 not only an IPv4 address", steps_rej, 0, .cm = cm_hdr_junk},
    {"CM-02 more than the IP version", steps_rej, 0, .cm = cm_hdr_low},
    {"CM-02 no IP header, but perhaps no IP address", steps_rej, 0, .cm = cm_hdr_ib,
     .verdict = LINT_UNDECIDABLE},
    {"CM-07 more READs than offered", steps_cm, 1, .cm = cm_depth},
    {"CM-14 another transaction id", steps_cm, 2, .cm = cm_tid},
    {"CM-14 another transaction id in an MRA", steps_mra, 1, .cm = cm_tid},
    {"CM-14 another transaction id in a REJ", steps_rej, 1, .cm = cm_tid},
    {"CM-07 more READs than offered, the first of two times", steps_rep_again, 1, .cm = cm_depth},
    {"CM-14 another transaction id, the first of two times", steps_rep_again, 1, .cm = cm_tid},
    {"CM-15 id 0", steps_cm, 13, .cm = cm_id},
    {"CM-15 MRA with id 0", steps_mra, 1, .cm = cm_id},
    {"CM-15 MRA for id 0", steps_mra, 1, .cm = cm_peer_id},
    {"CM-15 REP for id 0", steps_mra, 2, .cm = cm_peer_id},
    {"CM-15 RTU for id 0", steps_mra, 3, .cm = cm_peer_id},
    {"CM-18 another PSN the second time", steps_cm, 12, .cm = cm_psn},
    {"CM-18 another MTU the second time", steps_cm, 12, .cm = cm_mtu},
    {"CM-18 other private data the second time", steps_cm, 12, .cm = cm_private},
    {"CM-18 REP asks for more the second time", steps_rep_again, 2, .cm = cm_depth},
    {"CM-24 DREQ for another queue pair", steps_cm, 13, .cm = cm_qpn},
};

int main(void)
{
    Suite *s = suite_create("lint, cm");
    TCase *t = lint_rows_case("lint, cm", rows, sizeof(rows) / sizeof(*rows), "test_lint_cm.c");
    suite_add_tcase(s, t);
    return unit_run(s);
}
