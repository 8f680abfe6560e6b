/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Where the numbers of our own descriptors begin: away from those that programs expect. netcat, for
 * one, refuses a connection whose number is above 16.
 */
#ifndef URNIC_VERBS_OWN_FD_H
#define URNIC_VERBS_OWN_FD_H

#define UV_OWN_FROM 200

#endif
