/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ids: listeners and ends of connections, the groups that they have joined, and liburnic's half of
 * each.
 */
#include "ucma.h"

#include <errno.h>
#include <stdlib.h>

uint32_t ucma_number(void)
{
    static uint32_t last;
    last = last < INT32_MAX ? last + 1 : 1;
    return last;
}

struct ucma_id *ucma_id_new(struct ucma_file *f, uint16_t ps)
{
    struct ucma_id *id = calloc(1, sizeof(*id));
    if (id == NULL)
        return NULL;
    id->file = f;
    id->ps = ps;
    id->number = ucma_number();
    LIST_INIT(&id->groups);
    LIST_INSERT_HEAD(&f->ids, id, next);
    return id;
}

struct ucma_id *ucma_id_get(const struct ucma_file *f, uint32_t number)
{
    struct ucma_id *id;
    LIST_FOREACH(id, &f->ids, next)
    if (id->number == number)
        break;
    return id;
}

struct ucma_mc *ucma_mc_get(const struct ucma_file *f, uint32_t number, struct ucma_id **of)
{
    struct ucma_id *id;
    struct ucma_mc *mc;
    LIST_FOREACH(id, &f->ids, next)
    {
        LIST_FOREACH(mc, &id->groups, next)
        {
            if (mc->number == number) {
                *of = id;
                return mc;
            }
        }
    }
    return NULL;
}

void ucma_mc_free(struct ucma_id *id, struct ucma_mc *mc)
{
    ucma_file_drop(id->file, id, mc);
    LIST_REMOVE(mc, next);
    free(mc);
}

void ucma_id_free(struct ucma_id *id)
{
    struct ucma_mc *mc;
    ucma_leg_end(&id->leg);
    ucma_legs_end(id);
    while ((mc = LIST_FIRST(&id->groups)) != NULL)
        // NOLINTNEXTLINE(clang-analyzer-*): LIST_REMOVE has taken the freed one off the list
        ucma_mc_free(id, mc);
    ucma_file_drop(id->file, id, NULL);
    LIST_REMOVE(id, next);
    free(id);
}

/* ---- liburnic's half ---- */

int ucma_leg_make(struct ucma_leg *leg, struct ucma_dev *d, struct ucma_id *id)
{
    enum urnic_port_space ps = id->ps == RDMA_PS_UDP  ? URNIC_PS_UDP
                               : id->ps == RDMA_PS_IB ? URNIC_PS_IB
                                                      : URNIC_PS_TCP;
    int err = ucma_dev_open(d, true);
    if (err == 0)
        err = urnic_create_id(d->channel, ps, id, &leg->cm);
    if (err < 0)
        return err;
    leg->dev = d;
    d->users++;
    return 0;
}

void ucma_leg_end(struct ucma_leg *leg)
{
    if (leg->dev == NULL)
        return;
    if (leg->cm != NULL && !ucma_dev_lost(leg->dev))
        urnic_destroy_id(leg->cm);
    leg->dev->users--;
    *leg = (struct ucma_leg){0};
}

void ucma_legs_end(struct ucma_id *id)
{
    for (unsigned i = 0; i < id->nlegs; i++)
        ucma_leg_end(&id->legs[i]);
    free(id->legs);
    id->legs = NULL;
    id->nlegs = 0;
}
