/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ports in a process that forks. The child's copies of sockets keep a port in use after its process
 * has ended: nobody can open it again, and its peer doesn't notice the end.
 */
#ifndef URNIC_FORKED_H
#define URNIC_FORKED_H

struct io_port;

/* In the child: close the copies of this port's sockets, and touch nothing else. For a handler of
 * pthread_atfork: it takes no lock. The parent may have been in the middle of any function of the
 * port. */
void io_forked(const struct io_port *io);

#endif
