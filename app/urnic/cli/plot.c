/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SVG charts. Long series are thinned to one point per pixel, the mean of the points there; a
 * series without a value has a gap in its line.
 */
#include "plot.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>

#define WIDTH      760.0 /* wider if the legend's names need it */
#define HEIGHT     300.0
#define LEFT       70.0
#define RIGHT      170.0 /* the legend */
#define TOP        34.0
#define BOTTOM     48.0
#define LEGEND     16u  /* names shown */
#define KEY        35.0 /* distance from the panel to a name */
#define LETTER     7.4  /* about the width of one */
#define BOLD       8.2
#define TICKS      6
#define COVERS_MAX 64u /* most lines that are compared with each other */

static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#e69f00", "#56b4e9", "#000000", "#999933"};
#define NCOLOURS (sizeof(colours) / sizeof(colours[0]))

/* When all colours are in use they repeat, dashed. */
static const char *const dashes[] = {"", " stroke-dasharray=\"2 3\"", " stroke-dasharray=\"9 3\"",
                                     " stroke-dasharray=\"12 3 2 3\""};
#define NDASHES (sizeof(dashes) / sizeof(dashes[0]))

/* The look that distinguishes a line from the others of its panel. */
struct look {
    const char *colour, *dash;
    bool hollow;   /* its dots */
    char over[96]; /* dashes of a line that lies over another one; "" = none */
    double larger; /* pixels added to its dots, as others lie over them */
};

struct axis {
    double lo, hi;
    bool log;
    bool zero;       /* logarithmic, with 0 at its left end, a gap before `lo` */
    double from, to; /* pixels */
};

#define ZERO_GAP 36.0

static bool usable(const struct axis *a, double v)
{
    return isfinite(v) && (!a->log || v > 0 || (a->zero && v == 0));
}

static double place(const struct axis *a, double v)
{
    if (a->zero && v == 0)
        return a->from;
    if (a->zero) {
        double part = (log(v) - log(a->lo)) / (log(a->hi) - log(a->lo));
        return a->from + ZERO_GAP + part * (a->to - a->from - ZERO_GAP);
    }
    double part =
        a->log ? (log(v) - log(a->lo)) / (log(a->hi) - log(a->lo)) : (v - a->lo) / (a->hi - a->lo);
    return a->from + part * (a->to - a->from);
}

static void stretch(struct axis *a, double v)
{
    if (!usable(a, v) || (a->log && v == 0))
        return;
    a->lo = isnan(a->lo) || v < a->lo ? v : a->lo;
    a->hi = isnan(a->hi) || v > a->hi ? v : a->hi;
}

/* 1, 2 or 5 times a power of ten: about TICKS of them between lo and hi. */
static double step_of(double span)
{
    double raw = span / TICKS, power = pow(10, floor(log10(raw))), part = raw / power;
    return power * (part < 1.5 ? 1 : part < 3.5 ? 2 : part < 7.5 ? 5 : 10);
}

static void settle(struct axis *a)
{
    if (isnan(a->lo)) {
        a->lo = a->log ? 1 : 0;
        a->hi = a->log ? 10 : 1;
    }
    if (a->log) {
        a->lo = pow(10, floor(log10(a->lo) + 1e-9));
        a->hi = pow(10, ceil(log10(a->hi) - 1e-9));
        if (a->hi <= a->lo)
            a->hi = a->lo * 10;
        return;
    }
    if (a->hi <= a->lo)
        a->hi = a->lo + 1;
}

/* Octets of the character at s, if XML 1.0 has it and it is well-formed UTF-8; else 0. */
static size_t character(const char *s)
{
    static const struct {
        uint8_t mask, bits;
        uint32_t least; /* less would be an overlong form */
    } forms[] = {{0x80, 0x00, 0}, {0xE0, 0xC0, 0x80}, {0xF0, 0xE0, 0x800}, {0xF8, 0xF0, 0x10000}};
    uint8_t first = (uint8_t)*s;
    size_t n = 0;
    while (n < 4 && (first & forms[n].mask) != forms[n].bits)
        n++;
    if (n == 4)
        return 0;
    uint32_t c = first & (uint8_t)~forms[n].mask;
    for (size_t i = 1; i <= n; i++) {
        if (((uint8_t)s[i] & 0xC0) != 0x80)
            return 0;
        c = c << 6 | ((uint8_t)s[i] & 0x3F);
    }
    bool control = c < 0x20 && c != '\t' && c != '\n' && c != '\r';
    bool half = c >= 0xD800 && c < 0xE000, none = c == 0xFFFE || c == 0xFFFF || c > 0x10FFFF;
    return c < forms[n].least || control || half || none ? 0 : n + 1;
}

/* Print text, which may be from a file: octets that a document can't hold become '?'. */
static void text(FILE *f, double x, double y, const char *anchor, const char *extra, const char *s)
{
    fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"%s>", x, y, anchor, extra);
    for (size_t n; *s; s += n ? n : 1) {
        n = character(s);
        if (!n)
            fputc('?', f);
        else if (*s == '<')
            fputs("&lt;", f);
        else if (*s == '>')
            fputs("&gt;", f);
        else if (*s == '&')
            fputs("&amp;", f);
        else
            fwrite(s, 1, n, f);
    }
    fputs("</text>\n", f);
}

static size_t letters(const char *s)
{
    size_t n = 0;
    for (; *s; s++)
        n += ((uint8_t)*s & 0xC0) != 0x80;
    return n;
}

/* The title, smaller when it would not fit between the page's edges. */
static void head(FILE *f, double middle, double y, const char *s)
{
    double room = 2 * middle, takes = (double)letters(s) * BOLD;
    char extra[64] = " class=\"t\"";
    if (takes > room)
        snprintf(extra, sizeof(extra), " class=\"t\" font-size=\"%.1f\"", 12 * room / takes);
    text(f, middle, y, "middle", extra, s);
}

static void tick(FILE *f, const struct axis *x, const struct axis *y, bool vertical, double v)
{
    char label[32];
    double p = place(vertical ? y : x, v);
    snprintf(label, sizeof(label), "%.6g", fabs(v) < 1e-12 ? 0 : v);
    if (vertical) {
        fprintf(f, "<line class=\"g\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", x->from,
                x->to, p, p);
        text(f, x->from - 6, p + 4, "end", "", label);
    } else {
        fprintf(f, "<line class=\"g\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", p, p,
                y->from, y->to);
        text(f, p, y->from + 16, "middle", "", label);
    }
}

/* Names below the axis: in two rows when one is too narrow for them, and smaller if need be. */
static void categories(FILE *f, const struct plot_panel *p, const struct axis *x,
                       const struct axis *y)
{
    double each = (x->to - x->from) / (double)p->ncategories, widest = 0;
    char size[32] = "";
    for (size_t i = 0; i < p->ncategories; i++)
        widest = fmax(widest, (double)letters(p->category[i]) * LETTER);
    bool rows = widest > each;
    if (widest > 2 * each)
        snprintf(size, sizeof(size), " font-size=\"%.1f\"", fmax(5, 12 * 2 * each / widest));
    for (size_t i = 0; i < p->ncategories; i++) {
        double at = place(x, (double)i);
        fprintf(f, "<line class=\"g\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", at, at,
                y->from, y->to);
        text(f, at, y->from + (rows && i % 2 ? 26 : 14), "middle", size, p->category[i]);
    }
}

static void ticks(FILE *f, const struct axis *x, const struct axis *y, bool vertical)
{
    const struct axis *a = vertical ? y : x;
    if (a->log) {
        if (a->zero)
            tick(f, x, y, vertical, 0);
        for (double v = a->lo; v <= a->hi * 1.001; v *= 10)
            tick(f, x, y, vertical, v);
        return;
    }
    double step = step_of(a->hi - a->lo);
    for (double v = ceil(a->lo / step - 1e-9) * step; v <= a->hi + step * 1e-6; v += step)
        tick(f, x, y, vertical, v);
}

static void dot(FILE *f, double x, double y, struct look look)
{
    if (look.hollow)
        fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.3g\" stroke=\"%s\" fill=\"white\"/>\n", x,
                y, 2.5 + look.larger, look.colour);
    else
        fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.3g\" fill=\"%s\"/>\n", x, y,
                3 + look.larger, look.colour);
}

/* A curve on its way into the document, which gets the mean of the points of each pixel. */
struct pen {
    double pixel, at, sum; /* the present pixel, sums of its points */
    double x, y;           /* last point drawn */
    unsigned here, drawn;  /* points of this pixel; of this polyline */
};

static void draw_pixel(FILE *f, struct pen *pen, struct look look)
{
    pen->x = pen->at / pen->here;
    pen->y = pen->sum / pen->here;
    if (!pen->drawn++)
        fprintf(f, "<polyline stroke=\"%s\"%s points=\"", look.colour,
                *look.over ? look.over : look.dash);
    fprintf(f, "%.1f,%.1f ", pen->x, pen->y);
    pen->here = 0;
    pen->sum = pen->at = 0;
}

/* A polyline of one point shows nothing: `dots` puts one there. */
static void lift(FILE *f, struct pen *pen, bool dots, struct look look)
{
    if (!pen->drawn)
        return;
    fputs("\"/>\n", f);
    if (pen->drawn == 1 && dots)
        dot(f, pen->x, pen->y, look);
    pen->drawn = 0;
}

static void curve(FILE *f, const struct plot_line *l, const struct axis *x, const struct axis *y,
                  struct look look)
{
    struct pen pen = {.pixel = -1};
    for (size_t i = 0; i <= l->n; i++) {
        bool ends = i == l->n || isnan(l->y[i]);
        if (!ends && (!usable(x, l->x[i]) || !usable(y, l->y[i])))
            continue;
        double px = ends ? -1 : place(x, l->x[i]);
        if (pen.here && (ends || l->marks || l->exact || floor(px) > pen.pixel))
            draw_pixel(f, &pen, look);
        if (ends) {
            lift(f, &pen, !l->marks, look);
            continue;
        }
        pen.pixel = floor(px);
        pen.sum += fmin(fmax(place(y, l->y[i]), y->to), y->from);
        pen.at += px;
        pen.here++;
    }
}

static void dots(FILE *f, const struct plot_line *l, const struct axis *x, const struct axis *y,
                 struct look look)
{
    for (size_t i = 0; i < l->n; i++)
        if (usable(x, l->x[i]) && usable(y, l->y[i]))
            dot(f, place(x, l->x[i]), place(y, l->y[i]), look);
}

static struct look look_of(const struct plot_panel *p, size_t i)
{
    const struct plot_line *like = p->line[i].like;
    size_t number = like ? (size_t)(like - p->line) : i, turn = number / NCOLOURS % NDASHES;
    return (struct look){
        .colour = colours[number % NCOLOURS], .dash = dashes[turn], .hollow = turn % 2};
}

/* Of two lines, do most points lie on each other? */
static bool covers(const struct plot_line *a, const struct plot_line *b, const struct axis *x,
                   const struct axis *y)
{
    size_t same = 0, all = 0;
    if (a->n != b->n || a->loose || b->loose)
        return false;
    for (size_t i = 0; i < a->n; i++) {
        bool here = usable(x, a->x[i]) && usable(y, a->y[i]);
        if (here != (usable(x, b->x[i]) && usable(y, b->y[i])))
            return false;
        if (!here)
            continue;
        all++;
        same += fabs(place(x, a->x[i]) - place(x, b->x[i])) < 1 &&
                fabs(place(y, a->y[i]) - place(y, b->y[i])) < 1;
    }
    return all && same * 4 >= all * 3;
}

/* Dash lines that lie on each other in turn, so that each shows in the gaps of the others. Their
 * dots are rings around each other. */
static struct look look_among(const struct plot_panel *p, size_t i, const struct axis *x,
                              const struct axis *y)
{
    const double step = 10;
    struct look look = look_of(p, i);
    unsigned before = 0, after = 0;
    if (p->nlines > COVERS_MAX)
        return look;
    for (size_t k = 0; k < p->nlines; k++) {
        bool covered = k != i && covers(&p->line[k], &p->line[i], x, y);
        before += covered && k < i;
        after += covered && k > i;
    }
    if (before)
        snprintf(look.over, sizeof(look.over),
                 " stroke-dasharray=\"%g %g\" stroke-dashoffset=\"%g\"", step,
                 step * (before + after), -step * before);
    look.larger = 2.5 * (after < 4 ? after : 4);
    return look;
}

static void legend(FILE *f, const struct plot_panel *p, double top)
{
    unsigned row = 0, named = 0;
    for (size_t i = 0; i < p->nlines; i++)
        named += p->line[i].name != NULL;
    for (size_t i = 0; i < p->nlines && row < LEGEND; i++) {
        if (!p->line[i].name)
            continue;
        double y = top + TOP + 8 + 15 * row++;
        struct look look = look_of(p, i);
        if (p->line[i].loose)
            dot(f, WIDTH - RIGHT + 20, y - 4, look);
        else
            fprintf(f,
                    "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"%s "
                    "stroke-width=\"2\"/>\n",
                    WIDTH - RIGHT + 10, WIDTH - RIGHT + 30, y - 4, y - 4, look.colour, look.dash);
        text(f, WIDTH - RIGHT + KEY, y, "start", "", p->line[i].name);
    }
    char more[32];
    snprintf(more, sizeof(more), "... and %u more", named - row);
    if (named > row)
        text(f, WIDTH - RIGHT + KEY, top + TOP + 8 + 15 * row, "start", "", more);
}

static void panel(FILE *f, const struct plot_panel *p, double top)
{
    struct axis x = {NAN, NAN, p->logx, false, LEFT, WIDTH - RIGHT};
    struct axis y = {NAN, NAN, p->logy, false, top + HEIGHT - BOTTOM, top + TOP};
    char turn[64];
    for (size_t i = 0; i < p->nlines; i++) {
        for (size_t k = 0; k < p->line[i].n; k++) {
            x.zero |= p->logx && p->line[i].x[k] == 0;
            stretch(&x, p->line[i].x[k]);
            stretch(&y, p->line[i].y[k]);
        }
    }
    if (!p->logy) {
        stretch(&y, 0);
        y.hi += (y.hi - y.lo) * .05;
    }
    y.lo = isnan(p->ymin) ? y.lo : p->ymin;
    y.hi = isnan(p->ymax) ? y.hi : p->ymax;
    if (p->category) {
        x.lo = -.5;
        x.hi = (double)p->ncategories - .5;
    }
    settle(&x);
    settle(&y);
    if (p->category)
        categories(f, p, &x, &y);
    else
        ticks(f, &x, &y, false);
    ticks(f, &x, &y, true);
    fprintf(f, "<rect class=\"b\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n", x.from,
            y.to, x.to - x.from, y.from - y.to);
    head(f, (x.from + x.to) / 2, top + 20, p->title);
    text(f, (x.from + x.to) / 2, top + HEIGHT - 10, "middle", "", p->xlabel);
    snprintf(turn, sizeof(turn), " transform=\"rotate(-90 16 %.1f)\"", (y.from + y.to) / 2);
    text(f, 16, (y.from + y.to) / 2, "middle", turn, p->ylabel);
    for (size_t i = 0; i < p->nlines; i++) {
        if (!p->line[i].loose)
            curve(f, &p->line[i], &x, &y, look_among(p, i, &x, &y));
        if (p->line[i].marks || p->line[i].loose)
            dots(f, &p->line[i], &x, &y, look_among(p, i, &x, &y));
    }
    legend(f, p, top);
}

/* The page's width: room for the longest name in a legend. */
static double width(const struct plot_panel *panels, size_t npanels)
{
    size_t most = 0;
    for (size_t i = 0; i < npanels; i++) {
        for (size_t k = 0; k < panels[i].nlines; k++) {
            size_t n = panels[i].line[k].name ? letters(panels[i].line[k].name) : 0;
            most = n > most ? n : most;
        }
    }
    return fmax(WIDTH, ceil(WIDTH - RIGHT + KEY + (double)most * LETTER));
}

int plot_svg(FILE *f, const struct plot_panel *panels, size_t npanels)
{
    const double wide = width(panels, npanels);
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
            "viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\" font-size=\"12\">\n"
            "<style>polyline{fill:none;stroke-width:1.5}.g{stroke:#ddd}.b{fill:none;stroke:#444}"
            ".t{font-weight:bold}</style>\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
            wide, HEIGHT * (double)npanels, wide, HEIGHT * (double)npanels);
    for (size_t i = 0; i < npanels; i++)
        panel(f, &panels[i], HEIGHT * (double)i);
    fputs("</svg>\n", f);
    if (fflush(f)) /* now, while errno has the reason */
        return -errno;
    return ferror(f) ? -EIO : 0;
}
