/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The two ends of a channel, which no specification names.
 */
#ifndef URNIC_TESTS_SETUP_CHANNEL_H
#define URNIC_TESTS_SETUP_CHANNEL_H

#include "io.h"

/* Open side A or B of the process's one channel: the switch's end is A, the program's B, or the
 * other way round. 0 or -errno. */
int open_channel_down(unsigned side, uint32_t frame_max, struct io_port **out);
int open_channel_up(unsigned side, uint32_t frame_max, struct io_port **out);

#endif
