/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A start that a driver blocks: while devices are opened, another thread waits for the signals that
 * end the daemon, and for the end of the driver's time. A driver can't be interrupted, so the
 * process ends with a message.
 *
 * SIGTERM and SIGINT must be blocked in all threads. One thread calls these.
 */
#ifndef NIC_START_LIMIT_H
#define NIC_START_LIMIT_H

/* Begin to watch: each device has `seconds`. `leave` (may be NULL) is called with `arg` before the
 * process ends, in the other thread. 0 or -errno. */
int start_limit_begin(unsigned seconds, void (*leave)(void *arg), void *arg);
/* From now on this is opened, for the message: a device's name and its port. Its time begins. The
 * texts must stay until the next one or the end. */
void start_limit_with(const char *device, const char *port);
/* All is open. A signal that came meanwhile is sent again, for its usual way. */
void start_limit_end(void);

#endif
