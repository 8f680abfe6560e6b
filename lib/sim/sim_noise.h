/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Random loss and reordering on the wires into hosts: each frame meets it once on its way.
 */
#ifndef URNIC_SIM_NOISE_H
#define URNIC_SIM_NOISE_H

#include "sim_port.h"

struct sim_noise_params {
    double loss;    /* part of the frames to lose */
    double reorder; /* part of the frames to delay by `late` */
    uint64_t late;  /* ns */
};

struct sim_noise {
    struct sim_noise_params p;
    struct sim_rng rng;
    struct sim_world *w;
    struct sim_event due;
    struct sim_fifo held;  /* all are held for the same time: in order */
    struct sim_port *port; /* all of the world, by id */
    uint64_t lost, late;
};

/* port: all ports, by id. */
void sim_noise_init(struct sim_noise *n, struct sim_world *w, struct sim_port *port,
                    const struct sim_noise_params *p);
/* The fate of a frame at the end of the wire into a host. SIM_HELD: it comes later. */
enum sim_fate sim_noise_judge(struct sim_noise *n, struct sim_port *to, struct sim_pkt *p,
                              uint64_t now);

#endif
