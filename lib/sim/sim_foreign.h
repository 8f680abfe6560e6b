/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Files of other simulators, recognized by their first line.
 */
#ifndef URNIC_SIM_FOREIGN_H
#define URNIC_SIM_FOREIGN_H

/* A sentence for the words of a file's first line: the file's likely kind, and its form as a
 * scenario; NULL = unknown. */
const char *sim_foreign(char *const *word, unsigned nwords);

#endif
