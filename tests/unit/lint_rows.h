/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The tables of test_lint_frame.c, _request.c, _response.c and _cm.c: a good exchange, one packet
 * of it changed, and exactly one rule is found, at that packet.
 */
#ifndef URNIC_TEST_LINT_ROWS_H
#define URNIC_TEST_LINT_ROWS_H

#include <check.h>

#include "lint_rig.h"

/* Fails unless exactly the row's rule is found, at the row's packet. */
void lint_check_row(const struct row *row, enum net net);
/* A case with the tests of a table of `n` rows, which must live on: each row on each network layer
 * that it is about, and mirrored, that is with each packet on two interfaces; and that every rule
 * that belongs into `file`, the table's, has a row in it, and no other one. One table per program.
 */
TCase *lint_rows_case(const char *name, const struct row *rows, size_t n, const char *file);

/* A change for several tables. */
change_step ackreq;

#endif
