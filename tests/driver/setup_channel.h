/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The two ends of a channel, which no specification names.
 */
#ifndef URNIC_TESTS_SETUP_CHANNEL_H
#define URNIC_TESTS_SETUP_CHANNEL_H

#include "io.h"

/* Open side A (0) or B (1) of a channel; the process has one. With open_channel_down side A is the
 * switch's end and side B the program's, with open_channel_up the other way round. 0 or -errno. */
int open_channel_down(unsigned side, uint32_t frame_max, struct io_port **out);
int open_channel_up(unsigned side, uint32_t frame_max, struct io_port **out);

#endif
