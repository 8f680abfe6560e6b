/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Checks of management datagrams and CM messages: GSI, CM.
 */

#include "lint_checks.h"
#include "wire_bytes.h"

bool lint_gsi_02(struct lint_ctx *c)
{
    if (c->mad_len == CM_MAD_LEN)
        return false;
    lint_expected(c, "256 octets");
    return lint_seen(c, "%zu octets", c->mad_len);
}

bool lint_gsi_03(struct lint_ctx *c)
{
    if (c->mad_len != CM_MAD_LEN || c->mad[0] == 1)
        return false;
    lint_expected(c, "base version 1");
    return lint_seen(c, "%u", c->mad[0]);
}

bool lint_gsi_04(struct lint_ctx *c)
{
    if (c->mad_len != CM_MAD_LEN || c->mad[0] != 1 || c->mad[1] != CM_CLASS)
        return false;
    uint16_t attr = wire_get16(c->mad + 16);
    if (c->mad[2] == CM_CLASS_VERSION && (c->mad[3] == CM_METHOD_SEND || attr < CM_REQ))
        return false;
    lint_expected(c, "class version 2, method 0x03");
    return lint_seen(c, "class version %u, method 0x%02x", c->mad[2], c->mad[3]);
}

/* The octets that the IP header leaves unused: half of the second octet, and most of the space for
 * an IPv4 address. */
static bool spare_is_zero(const uint8_t *hdr)
{
    unsigned sum = hdr[1] & 15u;
    for (unsigned i = 0; hdr[1] >> 4 == 4 && i < 12; i++)
        sum |= hdr[4 + i] | hdr[20 + i];
    return sum == 0;
}

bool lint_cm_02(struct lint_ctx *c)
{
    struct cm_ip_hdr h;
    if (c->cm_rc || (c->cm->attr != CM_REQ && c->cm->attr != CM_SIDR_REQ) ||
        c->cm->service_id >> 24 != 1)
        return false; /* not a service of the RDMA IP CM (CM-01) */
    const uint8_t *hdr = c->cm->priv;
    bool good = cm_ip_hdr_unpack(&h, hdr) == 0;
    if (good && spare_is_zero(hdr))
        return false;
    lint_expected(c, good ? "0 in front of an IPv4 address and beside the IP version"
                          : "version 0, IP version 4 or 6");
    lint_seen(c, good ? "octets 0x%02x 0x%02x, and some that are not 0" : "octets 0x%02x 0x%02x",
              hdr[0], hdr[1]);
    if ((c->cm->service_id >> 16 & 0xFFFF) == CM_PS_IB)
        return lint_doubt(c, LINT_UNDECIDABLE, "InfiniBand addresses (AF_IB) need no IP header");
    return true;
}

bool lint_cm_07(struct lint_ctx *c)
{
    if (c->cm_rc || c->cm->attr != CM_REP || !c->conn || c->repeat ||
        c->cm->init_depth <= c->conn->resp_res)
        return false;
    lint_expected(c, "initiator depth of at most %u", c->conn->resp_res);
    return lint_seen(c, "%u", c->cm->init_depth);
}

/* Does it belong to the exchange that the REQ has started? */
static bool of_req(const struct cm_msg *m)
{
    bool about_it = m->msg_id == CM_ABOUT_REQ || m->msg_id == CM_ABOUT_REP;
    return m->attr == CM_REP || m->attr == CM_RTU ||
           ((m->attr == CM_MRA || m->attr == CM_REJ) && about_it);
}

bool lint_cm_14(struct lint_ctx *c)
{
    if (c->cm_rc || !c->conn)
        return false;
    uint64_t want = c->conn->tid;
    if (c->cm->attr == CM_DREP)
        want = c->conn->dreq_tid[c->from_active]; /* the other side's TID */
    else if (!of_req(c->cm))
        return false;
    if (c->cm->tid == want || !want)
        return false;
    lint_expected(c, "transaction id 0x%llx", (unsigned long long)want);
    return lint_seen(c, "0x%llx", (unsigned long long)c->cm->tid);
}

/* A DREP copies its ids from the DREQ, and a REJ may come before there is an id. */
bool lint_cm_15(struct lint_ctx *c)
{
    uint16_t a = c->cm_rc ? 0 : c->cm->attr;
    bool answers = a == CM_MRA || a == CM_REP || a == CM_RTU || a == CM_DREQ;
    if (!answers && a != CM_REQ)
        return false;
    bool peer = c->cm->local_id && answers;
    if (peer ? c->cm->remote_id : c->cm->local_id)
        return false;
    lint_expected(c, "a communication id%s", peer ? " of the other side" : "");
    return lint_seen(c, "0");
}

bool lint_cm_18(struct lint_ctx *c)
{
    const struct lint_cm *e = c->conn;
    if (!c->repeat)
        return false;
    bool rep = c->cm->attr == CM_REP;
    uint32_t its = rep ? cm_rep_qpn(c->cm, e->service) : c->cm->qpn;
    uint32_t qpn = rep ? e->b_qpn : e->a_qpn, psn = rep ? e->b_psn : e->a_psn;
    uint64_t first = rep ? e->rep_number : e->req_number;
    if (!first || c->mad_crc == (rep ? e->rep_crc : e->req_crc))
        return false; /* or the first one was wrong, as reported */
    if (rep && c->cm->tid != e->tid)
        return false; /* CM-14 reports that */
    if (c->cm->tid == e->tid && its == qpn && c->cm->psn == psn) {
        lint_expected(c, "the %s of packet %llu", rep ? "REP" : "REQ", (unsigned long long)first);
        return lint_seen(c, "another one, with the same transaction id, QPN and PSN");
    }
    lint_expected(c, "QPN 0x%x, PSN 0x%x, transaction id as before", qpn, psn);
    return lint_seen(c, "QPN 0x%x, PSN 0x%x", its, c->cm->psn);
}

bool lint_cm_24(struct lint_ctx *c)
{
    if (c->cm_rc || c->cm->attr != CM_DREQ || !c->conn || !c->conn->rep)
        return false;
    uint32_t want = c->from_active ? c->conn->b_qpn : c->conn->a_qpn;
    if (c->cm->remote_qpn == want || c->cm->remote_qpn == CM_CHALLENGE_QPN)
        return false;
    lint_expected(c, "QPN 0x%x", want);
    return lint_seen(c, "0x%x", c->cm->remote_qpn);
}
