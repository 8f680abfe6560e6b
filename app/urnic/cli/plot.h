/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Line charts as SVG: panels below each other, axes with round numbers, a legend. No dependencies.
 */
#ifndef URNIC_PLOT_H
#define URNIC_PLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct plot_line {
    const char *name;    /* NULL = not in the legend */
    const double *x, *y; /* y NAN: no value, and the line is interrupted */
    size_t n;
    bool marks;                   /* a dot at every point */
    bool exact;                   /* every point is drawn, also many in one pixel */
    bool loose;                   /* measured values: dots without a line between them */
    const struct plot_line *like; /* line of the same panel with the same look; NULL = a look of its
                                   * own */
};

struct plot_panel {
    const char *title, *xlabel, *ylabel;
    bool logx, logy;   /* points < 0 are left out, and in y those of 0; x = 0 has a place of its own
                        * at the left */
    double ymin, ymax; /* NAN = from the data, 0 included unless logy */
    /* names of x = 0, 1 ...; NULL = x is a number */
    const char *const *category;
    size_t ncategories;
    const struct plot_line *line;
    size_t nlines;
};

/* Write a whole document. A line that covers another one is dashed, and its dots are smaller, so
 * that both are visible. Eight lines of a panel differ in colour, 32 in colour and dashes; dots of
 * 16 differ in colour and filling. Further lines repeat the looks. 0, or -errno of the write. */
int plot_svg(FILE *f, const struct plot_panel *panel, size_t npanels);

#endif
