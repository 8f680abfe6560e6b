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
    const double *x, *y; /* y NAN: there is none, and the line breaks off */
    size_t n;
    bool marks;                   /* a dot at every point */
    bool loose;                   /* dots and no line between them: what was measured */
    const struct plot_line *like; /* looks like this one, of the same panel; NULL = as no other */
};

struct plot_panel {
    const char *title, *xlabel, *ylabel;
    bool logx, logy;   /* points <= 0 are left out */
    double ymin, ymax; /* NAN = from the data, 0 included unless logy */
    const struct plot_line *line;
    size_t nlines;
};

/* A whole document. Eight lines of a panel differ in colour, 32 in colour and dashes, dots of 16
 * in colour and in being filled; beyond that looks come again. 0, or -errno of the write. */
int plot_svg(FILE *f, const struct plot_panel *panel, size_t npanels);

#endif
