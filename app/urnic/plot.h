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
    const char *name; /* NULL = not in the legend */
    const double *x, *y;
    size_t n;
    bool marks;                   /* a dot at every point */
    bool dashed;                  /* what it is compared with */
    bool loose;                   /* dots and no line between them: what was measured */
    const struct plot_line *like; /* in the colour of this one, of the same panel; NULL = its own */
};

struct plot_panel {
    const char *title, *xlabel, *ylabel;
    bool logx, logy;   /* points <= 0 are left out */
    double ymin, ymax; /* NAN = from the data, 0 included unless logy */
    const struct plot_line *line;
    size_t nlines;
};

/* A whole document. 0, or -errno of the write. */
int plot_svg(FILE *f, const struct plot_panel *panel, size_t npanels);

#endif
