/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Stand-ins for the responder, which is on its way: requests are dropped. Goes when it lands.
 */
#include <errno.h>

#include "engine_priv.h"
#include "ud.h"

int resp_init(struct engine *e, struct qp *qp, struct engine_qp_params *p)
{
    (void)e, (void)qp, (void)p;
    return 0;
}
void resp_free(struct engine *e, struct qp *qp)
{
    (void)e, (void)qp;
}
void resp_reset(struct engine *e, struct qp *qp)
{
    (void)e, (void)qp;
}
int resp_start(struct engine *e, struct qp *qp, psn_t p)
{
    (void)e, (void)qp, (void)p;
    return 0;
}
void resp_rx(struct rx *rx, struct qp *qp)
{
    (void)qp;
    rx_drop(rx, ENGINE_C_rx_q_full);
}
void resp_commit(struct engine *e, struct qp *qp, struct record *r, uint64_t now)
{
    (void)e, (void)qp, (void)r, (void)now;
}
void resp_error(struct engine *e, struct qp *qp, bool by_consumer)
{
    (void)e, (void)qp, (void)by_consumer;
}
bool resp_tx_ready(const struct qp *qp)
{
    (void)qp;
    return false;
}
unsigned resp_tx(struct engine *e, struct qp *qp, struct engine_slot *s, unsigned n, uint64_t now)
{
    (void)e, (void)qp, (void)s, (void)n, (void)now;
    return 0;
}
bool resp_sent(struct engine *e, struct qp *qp, const struct engine_slot *s, uint64_t now)
{
    (void)e, (void)qp, (void)s, (void)now;
    return true;
}
bool resp_owes(const struct qp *qp)
{
    (void)qp;
    return false;
}
int resp_post(struct engine *e, struct qp *qp, const struct engine_recv_wr *wr)
{
    (void)e, (void)qp, (void)wr;
    return -ENOSYS;
}
void resp_flush(struct engine *e, struct qp *qp)
{
    (void)e, (void)qp;
}
uint32_t engine_rq_room(const struct qp *qp)
{
    (void)qp;
    return 0;
}
uint32_t engine_srq_room(const struct srq *srq)
{
    (void)srq;
    return 0;
}
int engine_srq_create(struct engine *e, const struct engine_srq_params *p, struct srq **out)
{
    (void)e, (void)p, (void)out;
    return -ENOSYS;
}
int engine_srq_modify(struct engine *e, struct srq *s, uint32_t wr, uint32_t limit, unsigned mask)
{
    (void)e, (void)s, (void)wr, (void)limit, (void)mask;
    return -ENOSYS;
}
int engine_srq_query(const struct srq *s, struct engine_srq_params *out)
{
    (void)s, (void)out;
    return -ENOSYS;
}
int engine_srq_destroy(struct engine *e, struct srq *s)
{
    (void)e, (void)s;
    return -ENOSYS;
}
int engine_post_srq_recv(struct engine *e, struct srq *s, const struct engine_recv_wr *wr)
{
    (void)e, (void)s, (void)wr;
    return -ENOSYS;
}
int engine_mcast_attach(struct engine *e, struct qp *qp, const struct wire_addr *g)
{
    (void)e, (void)qp, (void)g;
    return -ENOSYS;
}
int engine_mcast_detach(struct engine *e, struct qp *qp, const struct wire_addr *g)
{
    (void)e, (void)qp, (void)g;
    return -ENOSYS;
}
void ud_rx(struct rx *rx, struct qp *qp)
{
    (void)qp;
    rx_drop(rx, ENGINE_C_ud_drop_no_wqe);
}
void ud_rx_mcast(struct rx *rx)
{
    rx_drop(rx, ENGINE_C_rx_mcast_no_group);
}
void ud_detach_all(struct engine *e, struct qp *qp)
{
    (void)e, (void)qp;
}
