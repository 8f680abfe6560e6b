/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A limit for a start that a driver blocks. While devices are opened, another thread waits for the
 * signals that end the daemon, and for the end of the driver's time. A driver can't be interrupted,
 * so the process ends with a message.
 *
 * SIGTERM and SIGINT must be blocked in all threads. One thread calls these functions.
 */
#ifndef NIC_START_LIMIT_H
#define NIC_START_LIMIT_H

/* Start watching: each device has `seconds`. `leave` (may be NULL) is called with `arg` before the
 * process ends, in the other thread. 0 or -errno. */
int start_limit_begin(unsigned seconds, void (*leave)(void *arg), void *arg);
/* The next device is being opened, and its time begins. Its name and port, for the message, must
 * stay valid until the next call or the end. */
void start_limit_with(const char *device, const char *port);
/* Everything is open. A signal that came meanwhile is sent again, for its usual handling. */
void start_limit_end(void);

#endif
