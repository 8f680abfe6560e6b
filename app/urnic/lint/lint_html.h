/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The report of `urnic lint` as one self-contained HTML page.
 */
#ifndef URNIC_LINT_HTML_H
#define URNIC_LINT_HTML_H

#include "lint_writer.h"

/* A writer that makes the page at `path` when the capture has ended. NULL with errno set when the
 * file can't be created. Free it after its end(). */
struct lint_writer *lint_html_new(const char *path);
void lint_html_free(struct lint_writer *w);

#endif
