/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ports in a process that forks. The child's copies of the sockets outlive the parent. With them
 * the port stays in use: no program can open it, and the peer doesn't learn that the parent ended.
 */
#ifndef URNIC_FORKED_H
#define URNIC_FORKED_H

struct io_port;

/* In the child: close the copies of this port's sockets, and touch nothing else. For a handler of
 * pthread_atfork: it takes no lock. The parent may have been in the middle of any function of the
 * port. */
void io_forked(const struct io_port *io);

#endif
