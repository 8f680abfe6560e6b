/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The log's lines about DPDK's ports, and the treatment of DPDK's own log.
 *
 * DPDK says a lot while a device comes and goes, much of it on healthy machines. These messages are
 * collected, and one of them goes into the error if the device can't be opened. DPDK's messages at
 * other times are logged, with a pause between them. With urnic_debug=1 all messages are logged at
 * once, at the level "info" at least.
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

/* From now on collect DPDK's messages, until dpdk_log_collected. Clears the collection. */
void dpdk_log_collect(void);
void dpdk_log_collected(void);

/* The most telling of the collected messages: the first error, or the first warning. "" when there
 * is none. Valid until the next dpdk_log_collect. */
const char *dpdk_log_cause(void);
/* Does a message that was collected contain this text? */
bool dpdk_log_said(const char *text);

#endif
