/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Charts: their lines are distinguishable, and the legend draws each as the chart does.
 */
#include "plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "unit.h"

#define LINES 32u
#define LOOKS 256u

static const char *title = "t";
static char *svg;
static size_t svg_len;

/* A panel of n lines; those from `loose` on are dots, the first of them like the first line. */
static void draw(unsigned n, unsigned loose, bool marks)
{
    static const double x[] = {1, 2, 3};
    double y[LINES][3]; /* no two lie on each other */
    struct plot_line line[LINES] = {0};
    ck_assert_uint_le(n, LINES);
    for (unsigned i = 0; i < n; i++) {
        y[i][0] = 4 + i, y[i][1] = 6 + i, y[i][2] = 5 + i;
        line[i] = (struct plot_line){.name = "flow",
                                     .x = x,
                                     .y = y[i],
                                     .n = 3,
                                     .marks = marks,
                                     .loose = i >= loose,
                                     .like = i >= loose ? &line[i - loose] : NULL};
    }
    const struct plot_panel panel = {.title = title,
                                     .xlabel = "x",
                                     .ylabel = "y",
                                     .ymin = NAN,
                                     .ymax = NAN,
                                     .line = line,
                                     .nlines = n};
    free(svg);
    FILE *f = open_memstream(&svg, &svg_len);
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(plot_svg(f, &panel, 1), 0);
    ck_assert_int_eq(fclose(f), 0);
}

/* One attribute of an element, quoted; "" = it has none. */
static void attribute(const char *element, const char *name, char out[64])
{
    char key[32];
    snprintf(key, sizeof(key), " %s=\"", name);
    const char *end = strchr(element, '>'), *at = strstr(element, key);
    *out = 0;
    if (at && at < end)
        ck_assert_int_eq(sscanf(at + strlen(key), "%63[^\"]", out), 1);
}

/* The look of each element that starts with `tag`: colour, fill and dashes. Returns their number.
 */
static unsigned looks(const char *tag, char look[LOOKS][192])
{
    unsigned n = 0;
    for (const char *at = strstr(svg, tag); at; at = strstr(at + 1, tag)) {
        char stroke[64], fill[64], dash[64];
        ck_assert_uint_lt(n, LOOKS);
        attribute(at, "stroke", stroke);
        attribute(at, "fill", fill);
        attribute(at, "stroke-dasharray", dash);
        snprintf(look[n++], sizeof(look[0]), "%s/%s/%s", stroke, fill, dash);
    }
    return n;
}

START_TEST(no_two_lines_look_alike)
{
    char curve[LOOKS][192], key[LOOKS][192];
    draw(LINES, LINES, false);
    ck_assert_uint_eq(looks("<polyline", curve), LINES);
    for (unsigned i = 0; i < LINES; i++)
        for (unsigned k = 0; k < i; k++)
            ck_assert_msg(strcmp(curve[i], curve[k]) != 0, "lines %u and %u: %s", k, i, curve[i]);
    unsigned named = looks("<line x1", key);
    ck_assert_uint_ge(named, 16);
    for (unsigned i = 0; i < named; i++)
        ck_assert_str_eq(key[i], curve[i]);
    char more[32]; /* and entries without room are counted */
    snprintf(more, sizeof(more), ">... and %u more<", LINES - named);
    ck_assert_ptr_nonnull(strstr(svg, more));
    draw(16, 16, false);
    ck_assert_ptr_null(strstr(svg, " more<"));
}
END_TEST

/* Eight colours stand for eight lines without any help. */
START_TEST(few_lines_are_solid)
{
    char curve[LOOKS][192];
    draw(8, 8, false);
    ck_assert_uint_eq(looks("<polyline", curve), 8);
    ck_assert_ptr_null(strstr(svg, "dasharray"));
}
END_TEST

/* Measured dots have the look of the simulated line; each of 16 has one of its own. */
START_TEST(dots_belong_to_their_line)
{
    char with[LOOKS][192], curve[LOOKS][192];
    draw(32, 16, false);
    unsigned dots = looks("<circle", with), curves = looks("<polyline", curve);
    ck_assert_uint_eq(curves, 16);
    ck_assert_uint_ge(dots, 16 * 3);
    for (unsigned i = 0; i < 16; i++) {
        char *at = with[3 * i];
        ck_assert_str_eq(at, with[3 * i + 2]); /* all three of a line */
        ck_assert_ptr_nonnull(strstr(at, strtok(curve[i], "/")));
        for (unsigned k = 0; k < i; k++)
            ck_assert_msg(strcmp(at, with[3 * k]) != 0, "dots of %u and %u: %s", k, i, at);
    }
}
END_TEST

/* A chart over a parameter has a dot at every point of its lines. */
START_TEST(marks_are_told_apart)
{
    char with[LOOKS][192];
    draw(16, 16, true);
    ck_assert_uint_eq(looks("<circle", with), 16 * 3);
    for (unsigned i = 0; i < 16; i++)
        for (unsigned k = 0; k < i; k++)
            ck_assert_str_ne(with[3 * i], with[3 * k]);
}
END_TEST

/* A scenario's title may be in any encoding, and cut in the middle of a character. */
START_TEST(text_is_well_formed)
{
    static const char *const row[][2] = {
        {"a < b && c > \"d\"", "a &lt; b &amp;&amp; c &gt; \"d\""},
        {"\xC3\xBC \xE2\x82\xAC \xF0\x9F\x98\x80", "\xC3\xBC \xE2\x82\xAC \xF0\x9F\x98\x80"},
        {"Gr\xFC\xDFstadt", "Gr??stadt"},
        {"bell \a escape \x1B[0m tab \t", "bell ? escape ?[0m tab \t"},
        {"cut \xE2\x82", "cut ??"},
        {"overlong \xC0\xBC \xE0\x80\xBC", "overlong ?? ???"},
        {"half \xED\xA0\x80 none \xEF\xBF\xBF far \xF4\x90\x80\x80", "half ??? none ??? far ????"},
    };
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        char want[128];
        title = row[i][0];
        draw(1, 1, false);
        snprintf(want, sizeof(want), ">%s</text>", row[i][1]);
        ck_assert_msg(strstr(svg, want) != NULL, "row %zu: %s", i, svg);
    }
}
END_TEST

/* One line of n points, called `name`. */
static void draw_line(const double *y, unsigned n, const char *name)
{
    static const double x[] = {1, 2, 3, 4, 5};
    const struct plot_line line = {.name = name, .x = x, .y = y, .n = n};
    const struct plot_panel panel = {.title = title,
                                     .xlabel = "x",
                                     .ylabel = "y",
                                     .ymin = NAN,
                                     .ymax = NAN,
                                     .line = &line,
                                     .nlines = 1};
    free(svg);
    FILE *f = open_memstream(&svg, &svg_len);
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(plot_svg(f, &panel, 1), 0);
    ck_assert_int_eq(fclose(f), 0);
}

/* Unknown values aren't drawn: no line leads across them, and the axis still includes them. */
START_TEST(gaps_are_seen)
{
    char look[LOOKS][192];
    draw_line((const double[]){1, 2, NAN, 3, 4}, 5, "l");
    ck_assert_uint_eq(looks("<polyline", look), 2);
    ck_assert_uint_eq(looks("<circle", look), 0);
    draw_line((const double[]){NAN, 2, 3, 4, NAN}, 5, "l");
    ck_assert_uint_eq(looks("<polyline", look), 1);
    ck_assert_ptr_nonnull(strstr(svg, ">5<"));
    draw_line((const double[]){NAN, NAN, NAN}, 3, "l");
    ck_assert_uint_eq(looks("<polyline", look), 0);
}
END_TEST

/* A single point has no length, but a dot. */
START_TEST(lone_points_are_seen)
{
    char look[LOOKS][192];
    draw_line((const double[]){3}, 1, "l");
    ck_assert_uint_eq(looks("<circle", look), 1);
    draw_line((const double[]){1, NAN, 2, NAN, 3}, 5, "l");
    ck_assert_uint_eq(looks("<circle", look), 3);
}
END_TEST

/* Names of a legend end within the page, however long, and so does the title. */
START_TEST(names_have_room)
{
    static const char name[] =
        "dcqcn:paper,g=1/256,timer=55us,bytes=10M,alpha_timer=55us pfc=on loss=0.1%";
    char wide[64], at[64], size[64];
    draw_line((const double[]){1, 2}, 2, "short");
    attribute(svg, "width", wide);
    ck_assert_str_eq(wide, "760");
    draw_line((const double[]){1, 2}, 2, name);
    attribute(svg, "width", wide);
    char *text = strstr(svg, name);
    ck_assert_ptr_nonnull(text);
    while (*text != '<')
        text--;
    attribute(text, "x", at);
    ck_assert_double_ge(atof(wide), atof(at) + 7 * (double)strlen(name));
    title =
        "What PFC, ECN marking and four ways to recover from losses do to an incast of 64 senders, "
        "each with 1 MiB";
    draw_line((const double[]){1, 2}, 2, "short");
    text = strstr(svg, title);
    ck_assert_ptr_nonnull(text);
    while (*text != '<')
        text--;
    attribute(text, "font-size", size);
    ck_assert(*size && atof(size) > 5 && atof(size) < 11);
    title = "t";
}
END_TEST

/* Draw one panel. */
static void draw_panel(const struct plot_panel *panel)
{
    free(svg);
    FILE *f = open_memstream(&svg, &svg_len);
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(plot_svg(f, panel, 1), 0);
    ck_assert_int_eq(fclose(f), 0);
}

static unsigned count(const char *what)
{
    unsigned n = 0;
    for (const char *p = svg; (p = strstr(p, what)); p += strlen(what))
        n++;
    return n;
}

/* Lines that lie on each other are all seen: each is drawn in the gaps of the others. */
START_TEST(equal_lines_are_seen)
{
    static const double x[] = {1, 2, 3, 4}, y[] = {4, 6, 5, 7}, other[] = {4, 2, 1, 0};
    const struct plot_line line[] = {
        {.name = "a", .x = x, .y = y, .n = 4, .marks = true},
        {.name = "b", .x = x, .y = other, .n = 4, .marks = true},
        {.name = "c", .x = x, .y = y, .n = 4, .marks = true},
        {.name = "d", .x = x, .y = y, .n = 4, .marks = true},
    };
    struct plot_panel p = {.title = "t",
                           .xlabel = "x",
                           .ylabel = "y",
                           .ymin = NAN,
                           .ymax = NAN,
                           .line = line,
                           .nlines = 4};
    draw_panel(&p);
    ck_assert_uint_eq(count("<polyline stroke=\"#0072b2\" points"),
                      1); /* the lowest line is not dashed */
    ck_assert_uint_eq(count("<polyline stroke=\"#d55e00\" points"),
                      1); /* no line covers this one */
    ck_assert_uint_eq(count("<polyline stroke=\"#009e73\" stroke-dasharray=\"10 20\" "
                            "stroke-dashoffset=\"-10\" points"),
                      1);
    ck_assert_uint_eq(count("<polyline stroke=\"#cc79a7\" stroke-dasharray=\"10 20\" "
                            "stroke-dashoffset=\"-20\" points"),
                      1);
    ck_assert_uint_eq(count("r=\"8\" fill=\"#0072b2\""), 4); /* rings around each other */
    ck_assert_uint_eq(count("r=\"5.5\" fill=\"#009e73\""), 4);
    ck_assert_uint_eq(count("r=\"3\" fill=\"#cc79a7\""), 4);
    p.nlines = 2;
    draw_panel(&p);
    ck_assert_uint_eq(count("dasharray"), 0);
}
END_TEST

/* A logarithmic axis of x has a place for 0, a tick and a point. */
START_TEST(zero_on_a_logarithmic_axis)
{
    static const double x[] = {0, .001, .1}, y[] = {3, 2, 1};
    const struct plot_line line = {.x = x, .y = y, .n = 3, .marks = true};
    const struct plot_panel p = {.title = "t",
                                 .xlabel = "x",
                                 .ylabel = "y",
                                 .logx = true,
                                 .ymin = NAN,
                                 .ymax = NAN,
                                 .line = &line,
                                 .nlines = 1};
    draw_panel(&p);
    ck_assert_uint_eq(count("<circle"), 3);
    ck_assert_uint_eq(count("cx=\"70.0\""), 1);
    ck_assert_ptr_nonnull(strstr(svg, "text-anchor=\"middle\">0</text>"));
    ck_assert_ptr_nonnull(strstr(svg, "text-anchor=\"middle\">0.001</text>"));
}
END_TEST

/* Categories have their names below the axis, none of them over another one. */
START_TEST(categories_are_named)
{
    static const char *const few[] = {"gbn", "sr"};
    static const char *const many[] = {"dcqcn-mlx:connectx", "dcqcn:strawman", "dcqcn-mlx:hpcc",
                                       "timely:paper<1>",    "swift:paper",    "none"};
    static const double x[] = {0, 1}, y[] = {3, 2};
    const struct plot_line line = {.x = x, .y = y, .n = 2, .loose = true};
    struct plot_panel p = {.title = "t",
                           .xlabel = "x",
                           .ylabel = "y",
                           .ymin = NAN,
                           .ymax = NAN,
                           .category = few,
                           .ncategories = 2,
                           .line = &line,
                           .nlines = 1};
    draw_panel(&p);
    ck_assert_uint_eq(count(">gbn</text>"), 1);
    ck_assert_uint_eq(count(">sr</text>"), 1);
    ck_assert_uint_eq(count("y=\"266.0\""), 2);
    p.category = many;
    p.ncategories = 6;
    draw_panel(&p);
    ck_assert_uint_eq(count(">timely:paper&lt;1&gt;</text>"), 1);
    ck_assert_uint_eq(count("y=\"266.0\""), 3);
    ck_assert_uint_eq(count("y=\"278.0\""), 3);
}
END_TEST

UNIT_MAIN("plot", equal_lines_are_seen, zero_on_a_logarithmic_axis, categories_are_named,
          text_is_well_formed, no_two_lines_look_alike, few_lines_are_solid,
          dots_belong_to_their_line, marks_are_told_apart, gaps_are_seen, lone_points_are_seen,
          names_have_room)
