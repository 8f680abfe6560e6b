/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The lowest number of our own descriptors, so that programs keep the low numbers: netcat, for one,
 * refuses a connection whose descriptor is above 16.
 */
#ifndef URNIC_VERBS_OWN_FD_H
#define URNIC_VERBS_OWN_FD_H

#define UV_OWN_FROM 200

#endif
