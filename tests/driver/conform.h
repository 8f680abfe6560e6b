/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The driver conformance test: one suite (conform.c) for every driver (a line in setups.c).
 */
#ifndef URNIC_TESTS_CONFORM_H
#define URNIC_TESTS_CONFORM_H

#include "io.h"

#define CONF_FILE       0x01u /* B can read the frames of A only after A has been closed */
#define CONF_NEVER_FULL 0x02u /* tx_reserve always gives the requested number */
#define CONF_LOSSY_FULL 0x04u /* a port that isn't drained loses frames instead of being full */
#define CONF_PEER_LINK  0x08u /* closing one end is link-down for the other */
#define CONF_PROCESS    0x10u /* the two ends may be in two processes: kill -9 one of them */
#define CONF_RX_LIMIT   0x20u /* each end has its own frame_max: a longer frame is rx_oversize */

/* How to get two joined ports. %s in a specification is a folder of the test's own. */
struct conf_setup {
    const char *name;    /* argument of the test program, name of the meson test */
    const char *spec[2]; /* A and B; A is opened first */
    unsigned flags;
    uint32_t frame_max; /* to ask for; 0 = the driver's default */
    /* Optional: set up and remove the ports' resources outside of the process (veth ...). setup
     * returns 0, 77 = can't run here, or another exit status. */
    int (*setup)(const char *dir);
    void (*teardown)(const char *dir);
    /* Of ports that no specification names: open A (0) or B (1), for frames up to frame_max (0 =
     * the default). `spec` has their names. */
    int (*open)(unsigned side, uint32_t frame_max, struct io_port **out);
    /* Queues of each port beside the first one, as if a device had a worker for each: the test uses
     * the first one alone, and must find it as it would be without them. */
    unsigned queues;
};

extern const struct conf_setup conf_setups[];
extern const size_t conf_setups_n;

#endif
