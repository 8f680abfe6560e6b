/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The tables of test_lint_frame.c, _request.c, _response.c and _cm.c: a good exchange, one packet
 * of it changed, and exactly one rule is found, at that packet.
 */
#ifndef URNIC_TEST_LINT_ROWS_H
#define URNIC_TEST_LINT_ROWS_H

#include "lint_rig.h"

/* Fails unless just the row's rule is found, where the row says. */
void lint_check_row(const struct row *row, enum net net);
/* On each network layer that the row is about. */
void lint_check_row_on_each_net(const struct row *row);

/* A mirror shows each packet on two interfaces: it is judged once, also one that can't be read. */
void lint_check_mirrored(const struct row *row);

/* Every rule that belongs into this file of tests has a row in its table, and no other one; and
 * lint's own table of rules is in order. */
void lint_check_table(const struct row *rows, size_t n, const char *file);

/* A change that several tables need. */
change_step ackreq;

#endif
