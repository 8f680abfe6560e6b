/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Random loss and reordering.
 */
#include "sim_noise.h"

static void due_fire(struct sim_event *ev, uint64_t now)
{
    struct sim_noise *n = SIM_CONTAINER(ev, struct sim_noise, due);
    struct sim_pkt *p = sim_fifo_pop(&n->held);
    if (n->held.head)
        sim_call(n->w, &n->due, p->next_at);
    sim_port_arrive(&n->port[p->in], p, now);
}

void sim_noise_init(struct sim_noise *n, struct sim_world *w, struct sim_port *port,
                    const struct sim_noise_params *p)
{
    *n = (struct sim_noise){
        .p = *p,
        .rng.s = sim_mix(w->rng.s ^ 0x6E6F697365u),
        .w = w,
        .port = port,
        .due.fire = due_fire,
    };
}

enum sim_fate sim_noise_judge(struct sim_noise *n, struct sim_port *to, struct sim_pkt *p,
                              uint64_t now)
{
    double x = sim_rand_unit(&n->rng);
    if (x < n->p.loss) {
        n->lost++;
        return SIM_DROP;
    }
    if (x - n->p.loss >= n->p.reorder)
        return SIM_PASS;
    n->late++;
    p->in = to->id; /* no switch follows */
    if (n->held.head)
        n->held.tail->next_at = now + n->p.late;
    sim_fifo_push(&n->held, p);
    if (!sim_event_pending(&n->due))
        sim_call(n->w, &n->due, now + n->p.late);
    return SIM_HELD;
}
