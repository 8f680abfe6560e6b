/* SPDX-License-Identifier: BSD-3-Clause
 *
 * urnicd --stop: end the daemon that serves at a socket.
 */
#ifndef URNICD_STOP_H
#define URNICD_STOP_H

/* Send SIGTERM to the daemon that listens at `path`, and wait until it is gone, `timeout_ms` at
 * most. 0, or -errno with a sentence in err (CONFIG_ERR octets). -ECONNREFUSED: no daemon serves
 * there; -EPERM: it is another user's; -ETIMEDOUT: it still runs. Blocks; any thread. */
int stop_daemon(const char *path, int timeout_ms, char *err);

#endif
