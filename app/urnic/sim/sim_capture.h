/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic sim --capture`: the frames at nodes of the simulated network, as pcapng files.
 */
#ifndef URNIC_SIM_CAPTURE_H
#define URNIC_SIM_CAPTURE_H

#include "sim.h"

#define SIM_CAPTURES 16u

struct pcapng;

struct sim_capture {
    char node[16];
    const char *file;
    struct pcapng *w; /* during a run, like the following members */
    const struct sim_node *at;
    int interface;
};

struct sim_captures {
    struct sim_capture list[SIM_CAPTURES];
    unsigned n;
};

/* Add NODE=FILE; the text must stay valid. CLI_OK, or CLI_USAGE with a message. */
int sim_capture_add(struct sim_captures *c, const char *text);
/* Create the files of run number `point`. CLI_*, with a message; close them in either case. */
int sim_capture_open(struct sim_captures *c, struct sim *sim, uint32_t point);
/* CLI_OK; CLI_FAIL with a message: a file is incomplete. */
int sim_capture_close(struct sim_captures *c);
/* sim_hooks.frame, with the captures as its argument. */
void sim_capture_frame(void *captures, const struct sim_node *node, enum sim_dir dir,
                       const uint8_t *frame, uint32_t len, const char *note, uint64_t now);

/* The name of a file of run number `point`: FILE, or with several runs FILE with the number before
 * its last dot. */
void sim_file_name(char *buf, size_t size, const char *file, uint32_t point, uint32_t points);

#endif
