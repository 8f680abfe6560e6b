/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic top`: rates of devices and of the busiest queue pairs, on the whole screen.
 */
#include <errno.h>
#include <jansson.h>
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>
#include <term.h> /* after ncurses.h: has macros named after terminals' capabilities */
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "stat.h"

static const char help[] = {
#include "help_top.inc"
};

#define NS_PER_MS 1000000

struct look {
    uint64_t at;
    unsigned ndev;
    struct ipc_device dev[ADMIN_DEVICES_MAX];
    struct stat_counters counters[ADMIN_DEVICES_MAX];
    struct stat_qps qps[ADMIN_DEVICES_MAX];
};

struct row {
    const char *device;
    struct ipc_qp_info qp;
    double tx, rx, retransmits; /* bit/s, bit/s, per second */
};

static void forget(struct look *l)
{
    for (unsigned i = 0; i < l->ndev; i++) {
        stat_free_counters(&l->counters[i]);
        stat_free_qps(&l->qps[i]);
    }
    l->ndev = 0;
}

static int look(struct admin *a, struct look *l)
{
    int n = admin_devices(a, l->dev, ADMIN_DEVICES_MAX);
    if (n < 0)
        return n;
    l->at = cli_now();
    for (l->ndev = 0; l->ndev < (unsigned)n; l->ndev++) {
        unsigned i = l->ndev;
        int rc = stat_counters(a, l->dev[i].name, &l->counters[i]);
        if (rc == 0)
            rc = stat_qps(a, l->dev[i].name, 0, &l->qps[i]);
        if (rc < 0) {
            stat_free_counters(&l->counters[i]);
            forget(l);
            return rc;
        }
    }
    return 0;
}

static double per_second(uint64_t now, uint64_t before, double s)
{
    return now > before && s > 0 ? (double)(now - before) / s : 0;
}

struct rates { /* per second; tx and rx in bits */
    double tx_packets, rx_packets, tx, rx, drops, retransmits;
};

static double seconds(const struct look *was, const struct look *is)
{
    return (double)(is->at - was->at) / 1e9;
}

/* The activity of device i between two looks. */
static struct rates rates_of(const struct look *was, const struct look *is, unsigned i)
{
    double s = seconds(was, is);
    const struct stat_counters *c = &is->counters[i];
    const struct stat_counters *o = i < was->ndev ? &was->counters[i] : c;
#define RATE(name) per_second(stat_value(c, name), stat_value(o, name), s)
    return (struct rates){
        .tx_packets = RATE("tx_packets"),
        .rx_packets = RATE("rx_packets"),
        .tx = 8 * RATE("tx_bytes"),
        .rx = 8 * RATE("rx_bytes"),
        .drops = per_second(stat_drops(c), stat_drops(o), s),
        .retransmits = RATE("tx_retransmit"),
    };
#undef RATE
}

static char sort_key = 't';

static int by_traffic(const void *x, const void *y)
{
    const struct row *a = x, *b = y;
    double va = sort_key == 'r' ? a->rx : sort_key == 'e' ? a->retransmits : a->tx;
    double vb = sort_key == 'r' ? b->rx : sort_key == 'e' ? b->retransmits : b->tx;
    return va < vb ? 1 : va > vb ? -1 : 0;
}

/* Find a queue pair in the other list. The order rarely changes: it is mostly in the same place, or
 * near it. */
static const struct ipc_qp_info *same_qp(const struct stat_qps *q, uint32_t qpn, unsigned place)
{
    for (unsigned i = 0; i < q->count; i++) {
        const struct ipc_qp_info *qp = &q->qp[(place + i) % q->count];
        if (qp->qpn == qpn)
            return qp;
    }
    return NULL;
}

/* Queue pairs with their rates, busiest first; *n of them. The caller frees the list. */
static struct row *rows_of(const struct look *was, const struct look *is, unsigned *n)
{
    double s = seconds(was, is);
    unsigned total = 0;
    for (unsigned i = 0; i < is->ndev; i++)
        total += is->qps[i].count;
    struct row *rows = calloc(total + 1, sizeof(*rows));
    *n = 0;
    for (unsigned i = 0; rows && i < is->ndev; i++)
        for (unsigned k = 0; k < is->qps[i].count; k++) {
            const struct ipc_qp_info *q = &is->qps[i].qp[k];
            const struct ipc_qp_info *o = i < was->ndev ? same_qp(&was->qps[i], q->qpn, k) : NULL;
            if (!o)
                o = q;
            rows[(*n)++] = (struct row){
                .device = is->dev[i].name,
                .qp = *q,
                .tx = 8 * per_second(q->tx_bytes, o->tx_bytes, s),
                .rx = 8 * per_second(q->rx_bytes, o->rx_bytes, s),
                .retransmits = per_second(q->retransmits, o->retransmits, s),
            };
        }
    if (rows)
        qsort(rows, *n, sizeof(*rows), by_traffic);
    return rows;
}

#define WIDE   112 /* columns that the long form takes */
#define NARROW 60  /* columns of the short form, with 6 of the process's name */

/* A number in four places: 999, 9.1k, 12k, 123M; "-" for no limit. Returns buf. */
static const char *in_four(double v, char *buf, size_t size)
{
    static const char unit[] = " kMGTP";
    unsigned u = 0;
    if (v >= 1e18) {
        snprintf(buf, size, "-");
        return buf;
    }
    for (; v >= 999.5 && u < sizeof(unit) - 2; u++)
        v /= 1000;
    if (u == 0)
        snprintf(buf, size, "%.0f", v);
    else
        snprintf(buf, size, "%.*f%c", v < 9.95 ? 1 : 0, v, unit[u]);
    return buf;
}

/* For narrow terminals: all columns, with short units. */
static void show_narrow(const struct look *was, const struct look *is, int height, int width,
                        void (*line)(bool bold, const char *text))
{
    char text[256], n[6][32], peer[16];
    line(true, "DEVICE     TX/s RX/s   TX   RX DROP RETR  QPS");
    for (unsigned i = 0; i < is->ndev; i++) {
        struct rates r = rates_of(was, is, i);
        const double v[6] = {r.tx_packets, r.rx_packets, r.tx, r.rx, r.drops, r.retransmits};
        for (unsigned k = 0; k < 6; k++)
            in_four(v[k], n[k], sizeof(n[k]));
        snprintf(text, sizeof(text), "%-10.10s %4s %4s %4s %4s %4s %4s %4u", is->dev[i].name, n[0],
                 n[1], n[2], n[3], n[4], n[5], is->qps[i].count);
        line(false, text);
    }
    unsigned count;
    struct row *rows = rows_of(was, is, &count);
    int name = width > NARROW ? width - NARROW + 6 : 6;
    line(false, "");
    line(true, "QP     DEV  TY ST  PEER     TX   RX RETR FLT   CC ALP PROCESS");
    for (unsigned i = 0; rows && i < count && (int)i < height - (int)is->ndev - 3; i++) {
        const struct row *r = &rows[i];
        const double v[5] = {r->tx, r->rx, r->retransmits, r->qp.inflight_packets,
                             r->qp.cc_rate == UINT64_MAX ? 1e18 : (double)r->qp.cc_rate};
        for (unsigned k = 0; k < 5; k++)
            in_four(v[k], n[k], sizeof(n[k]));
        if (r->qp.flags & IPC_QP_F_HIDDEN)
            memcpy(peer, "hidden", sizeof("hidden"));
        else
            snprintf(peer, sizeof(peer), "%06x", r->qp.dest_qpn);
        snprintf(text, sizeof(text), "%06x %-4.4s %-2.2s %-3.3s %s %4s %4s %4s %3s %4s %3.1f %.*s",
                 r->qp.qpn, r->device, stat_qp_type(r->qp.type), stat_qp_state(r->qp.state), peer,
                 n[0], n[1], n[2], n[3], n[4], stat_alpha(&r->qp), name, r->qp.comm);
        line(false, text);
    }
    free(rows);
}

/* `width` of the terminal; 0 = no limit. */
static void show(const struct look *was, const struct look *is, int height, int width,
                 void (*line)(bool bold, const char *text))
{
    if (width > 0 && width < WIDE) {
        show_narrow(was, is, height, width, line);
        return;
    }
    char text[256], tx[32], rx[32], cc[32], peer[16];

    line(true, "DEVICE         TX pkt/s      RX pkt/s           TX           RX   DROPS/s  RETR/s  "
               "QPS");
    for (unsigned i = 0; i < is->ndev; i++) {
        struct rates r = rates_of(was, is, i);
        snprintf(text, sizeof(text), "%-10s %12.0f  %12.0f %12s %12s %9.0f %7.0f %4u",
                 is->dev[i].name, r.tx_packets, r.rx_packets, cli_fmt_rate(r.tx, tx, sizeof(tx)),
                 cli_fmt_rate(r.rx, rx, sizeof(rx)), r.drops, r.retransmits, is->qps[i].count);
        line(false, text);
    }
    unsigned n;
    struct row *rows = rows_of(was, is, &n);
    line(false, "");
    line(true, "QP       DEVICE     TYPE STATE  PEER           TX           RX  RETR/s  FLIGHT  "
               "   CC RATE  ALPHA  PROCESS");
    for (unsigned i = 0; rows && i < n && (int)i < height - (int)is->ndev - 3; i++) {
        const struct row *r = &rows[i];
        if (r->qp.flags & IPC_QP_F_HIDDEN)
            memcpy(peer, "hidden", sizeof("hidden"));
        else
            snprintf(peer, sizeof(peer), "%06x", r->qp.dest_qpn);
        snprintf(text, sizeof(text),
                 "%06x   %-10s %-4s %-5s  %s %12s %12s %7.0f %7u %11s %6.4f  %s[%u]", r->qp.qpn,
                 r->device, stat_qp_type(r->qp.type), stat_qp_state(r->qp.state), peer,
                 cli_fmt_rate(r->tx, tx, sizeof(tx)), cli_fmt_rate(r->rx, rx, sizeof(rx)),
                 r->retransmits, r->qp.inflight_packets, stat_rate(r->qp.cc_rate, cc, sizeof(cc)),
                 stat_alpha(&r->qp), r->qp.comm, r->qp.pid);
        line(false, text);
    }
    free(rows);
}

static void show_json(const struct look *was, const struct look *is)
{
    unsigned n;
    struct row *rows = rows_of(was, is, &n);
    for (unsigned i = 0; i < is->ndev; i++) {
        struct rates r = rates_of(was, is, i);
        json_t *qps = json_array();
        for (unsigned k = 0; rows && k < n; k++)
            if (rows[k].device == is->dev[i].name)
                json_array_append_new(qps,
                                      json_pack("{s:i,s:f,s:f,s:f}", "qpn", (int)rows[k].qp.qpn,
                                                "tx", rows[k].tx, "rx", rows[k].rx, "retransmits",
                                                rows[k].retransmits));
        cli_json(json_pack("{s:s,s:f,s:f,s:f,s:f,s:f,s:f,s:o}", "device", is->dev[i].name,
                           "tx_packets", r.tx_packets, "rx_packets", r.rx_packets, "tx", r.tx, "rx",
                           r.rx, "drops", r.drops, "retransmits", r.retransmits, "qps", qps));
    }
    free(rows);
}

static void line_plain(bool bold, const char *text)
{
    (void)bold;
    puts(text);
}

static int row; /* next line of the screen */

static void line_screen(bool bold, const char *text)
{
    if (row == LINES)
        return;
    if (bold)
        attron(A_BOLD);
    mvaddnstr(row++, 0, text, COLS);
    if (bold)
        attroff(A_BOLD);
}

static void draw(const struct look *was, const struct look *is, bool explain)
{
    static const char *const keys[] = {
        "Keys",
        "  q  end",
        "  p  pause, go on",
        "  t  sort by sending",
        "  r  by receiving",
        "  e  by packets sent again",
        "  h  this help, and back",
    };
    erase();
    row = 0;
    if (explain)
        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
            line_screen(i == 0, keys[i]);
    else
        show(was, is, LINES, COLS, line_screen);
    if (!explain && row < LINES)
        mvaddnstr(LINES - 1, 0, "h: help", COLS);
    refresh();
}

static int once(struct admin *a, uint64_t ns, bool json)
{
    struct look was = {0}, is = {0};
    int rc = look(a, &was);
    if (rc == 0) {
        struct timespec ts = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
        nanosleep(&ts, NULL);
        rc = look(a, &is);
    }
    if (rc == 0 && json)
        show_json(&was, &is);
    else if (rc == 0)
        show(&was, &is, 1000, 0, line_plain);
    forget(&was);
    forget(&is);
    return rc;
}

/* The next key; ERR: none until then. */
static int key_until(uint64_t then)
{
    uint64_t now = cli_now();
    timeout(then > now ? (int)((then - now + NS_PER_MS - 1) / NS_PER_MS) : 0);
    int key = getch();
    now = cli_now();
    if (key == ERR && now < then && !cli_stop) { /* where input has ended getch doesn't wait */
        struct timespec rest = {(time_t)((then - now) / 1000000000u),
                                (long)((then - now) % 1000000000u)};
        nanosleep(&rest, NULL);
    }
    return key;
}

static int watch(struct admin *a, uint64_t ns)
{
    struct look looks[2] = {{0}, {0}};
    unsigned now = 0;
    bool paused = false, drawn = false, explain = false;
    int rc = look(a, &looks[0]);
    uint64_t next = cli_now() + ns;
    while (rc == 0 && !cli_stop) {
        int key = key_until(next);
        if (key == 'q')
            break;
        if (key == 'p')
            paused = !paused;
        if (key == 'h' || key == '?')
            explain = !explain;
        if (key == 't' || key == 'r' || key == 'e')
            sort_key = (char)key;
        if (cli_now() >= next) {
            next = cli_now() + ns;
            if (!paused) {
                forget(&looks[1 - now]);
                rc = look(a, &looks[1 - now]);
                now = 1 - now;
                drawn = true;
            }
        }
        if (rc == 0 && drawn) /* also after a key: a new order or size */
            draw(&looks[1 - now], &looks[now], explain);
    }
    forget(&looks[0]);
    forget(&looks[1]);
    return rc;
}

/* -ENOTTY with a message: standard output can't show a full screen. */
static int screen(struct admin *a, uint64_t ns)
{
    const char *term = getenv("TERM");
    SCREEN *s = isatty(STDOUT_FILENO) ? newterm(NULL, stdout, stdin) : NULL;
    bool able = s && tigetstr("cup") != NULL;
    int rc = -ENOTTY;
    if (able) {
        cbreak();
        noecho();
        curs_set(0);
        rc = watch(a, ns);
    }
    if (s) {
        endwin();
        delscreen(s);
    }
    if (!isatty(STDOUT_FILENO))
        cli_error("standard output is no terminal: use --once");
    else if (!able)
        cli_error("the terminal '%s' has no screen to write on: use --once", term ? term : "");
    return rc;
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {CLI_OPTIONS,
                                            {"interval", required_argument, NULL, 'i'},
                                            {"once", no_argument, NULL, '1'},
                                            {"json", no_argument, NULL, 'j'},
                                            {0}};
    uint64_t ns = 1000000000;
    bool just_once = false, json = false;
    int c, status;
    while ((c = getopt_long(argc, argv, "hi:1", options, NULL)) != -1) {
        if (c == '1')
            just_once = true;
        else if (c == 'j')
            json = true;
        else if (c == 'i' && cli_seconds("--interval", optarg, &ns) < 0)
            return CLI_USAGE;
        else if (c != 'i' && cli_option(c, &cmd_top, &status))
            return status;
    }
    if (cli_operands(argc, argv, 0, 0, "") != CLI_OK)
        return CLI_USAGE;
    if (json && !just_once) {
        cli_error("--json needs --once");
        return CLI_USAGE;
    }
    struct admin a;
    int rc = admin_open(&a);
    if (rc == 0) {
        cli_catch_signals();
        rc = just_once ? once(&a, ns, json) : screen(&a, ns);
    }
    if (rc < 0 && rc != -ENOTTY)
        cli_errno(rc, "urnicd");
    admin_close(&a);
    return rc == 0 ? CLI_OK : CLI_FAIL;
}

const struct cli_command cmd_top = {"top", "live view of devices and queue pairs", help, run};
