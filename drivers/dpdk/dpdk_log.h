/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is written to the log about DPDK's ports, and what becomes of DPDK's own log.
 *
 * DPDK says a lot while a device comes and goes, much of it on healthy machines. That is collected,
 * and one line of it goes into the error if the device can't be opened. What it says at other times
 * is written, but not more often than a reader can take. With urnic_debug=1 all of it is written as
 * it comes, at the level "info" at least, whatever DPDK calls it.
 *
 * Any thread may call these; one thread at a time collects.
 */
#ifndef URNIC_DPDK_LOG_H
#define URNIC_DPDK_LOG_H

#include <stdbool.h>
#include <stddef.h>

#include "io.h"

/* Lines go there from now on. Before, they go to stderr: "level dpdk: text". */
void dpdk_log_to(io_log_fn log);

/* Log a line of the driver's own. */
__attribute__((format(printf, 2, 3))) void dpdk_log(enum io_log_level level, const char *fmt, ...);

/* Take a message of DPDK: `level` is 1 (emergency) to 8 (debug), as DPDK counts. */
void dpdk_log_message(unsigned level, const char *text, size_t len);

/* Let all of DPDK's messages through from now on. */
void dpdk_log_debug(bool on);

/* From now on collect DPDK's messages, until dpdk_log_collected. What was collected is forgotten.
 */
void dpdk_log_collect(void);
void dpdk_log_collected(void);

/* The message that explains most of what was collected: the first error, or the first warning. ""
 * when there is none. Valid until the next dpdk_log_collect. */
const char *dpdk_log_cause(void);
/* Does a message that was collected contain this text? */
bool dpdk_log_said(const char *text);

#endif
