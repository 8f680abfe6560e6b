/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Files that other simulators read, given to ours: by their first line they are told what they are.
 */
#ifndef URNIC_SIM_FOREIGN_H
#define URNIC_SIM_FOREIGN_H

/* The words of a file's first line: what the file seems to be, and how the same is said in a
 * scenario, as a sentence; NULL = unknown. */
const char *sim_foreign(char *const *word, unsigned nwords);

#endif
