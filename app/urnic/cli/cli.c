/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared code of the subcommands of `urnic`.
 */
#include "cli.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "admin.h"
#include "ipc.h"

#define ONE_WISH_NS 200000000ull /* signals this close to the first one count as one */

volatile int cli_stop;
static const char *current = "";
static bool bar_open; /* the terminal's cursor is after a progress bar */

void cli_begin(const char *name)
{
    current = name;
}

void cli_error(const char *format, ...)
{
    va_list ap;
    fprintf(stderr, "%surnic%s%s: ", bar_open ? "\n" : "", *current ? " " : "", current);
    bar_open = false;
    va_start(ap, format);
    vfprintf(stderr, format, ap);
    va_end(ap);
    fputc('\n', stderr);
}

/* These errors may have another cause than the daemon: say hello to it. */
static bool may_be_daemon(int rc)
{
    return rc == -ENODEV || rc == -EACCES || rc == -EPROTO || rc == -EPROTONOSUPPORT ||
           rc == -ENAMETOOLONG || rc == -EDQUOT || rc == -ETIMEDOUT;
}

#define PATH_SIZE sizeof(((struct sockaddr_un *)NULL)->sun_path)

/* The daemon's answer to a hello: 0, -errno. Waits `seconds` for each of its answers. */
static int daemon_state(unsigned seconds, char path[PATH_SIZE])
{
    struct admin a;
    path[0] = '\0';
    ipc_socket_path(NULL, path, PATH_SIZE); /* at once: the daemon may be gone in a moment */
    int rc = admin_open_within(&a, seconds);
    admin_close(&a);
    if (rc == -EPROTO) { /* a daemon that ends hangs up, too: does it still serve? */
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        rc = admin_open_within(&a, seconds);
        admin_close(&a);
    }
    return rc;
}

static void daemon_hint(int rc, const char *path)
{
    if (rc == -ENODEV)
        fprintf(stderr,
                "  No urnicd serves at %s. Start one (urnicd --help), or choose another\n"
                "  socket with --socket or URNIC_SOCKET.\n",
                path);
    else if (rc == -EACCES)
        fprintf(stderr,
                "  You may not use the daemon at %s: become a member of the group 'urnic', or run\n"
                "  a daemon of your own and set URNIC_SOCKET.\n",
                path);
    else if (rc == -ETIMEDOUT)
        fprintf(stderr, "  The urnicd at %s doesn't answer.\n", path);
    else if (rc == -EPROTO)
        fprintf(stderr, "  The program that answers at %s is no urnicd.\n", path);
    else if (rc == -EPROTONOSUPPORT)
        fprintf(stderr, "  The urnicd at %s is of another version than urnic: install both anew.\n",
                path);
    else if (rc == -EDQUOT)
        fprintf(stderr,
                "  The urnicd at %s takes no more connections, of you or at all: end programs of\n"
                "  yours that use it, or ask its administrator which programs hold them.\n",
                path);
    else if (rc == -ENAMETOOLONG)
        fprintf(stderr, "  The path of a socket (--socket, URNIC_SOCKET) has at most %zu octets.\n",
                PATH_SIZE - 1);
}

void cli_errno(int rc, const char *format, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    char path[PATH_SIZE];
    int state = 0;
    if (may_be_daemon(rc)) /* a daemon that was waited for has used up its time */
        state = daemon_state(rc == -ETIMEDOUT ? 1 : 10, path);
    cli_error("%s: %s", text, rc == -ENODEV && state == -ENODEV ? "no daemon runs" : strerror(-rc));
    if (state < 0)
        daemon_hint(state, path);
}

static bool socket_named;

/* Set the environment, so that liburnic and the tools' own connection use the same socket. */
void cli_set_socket(const char *path)
{
    setenv(IPC_SOCKET_ENV, path, 1);
    socket_named = true;
}

bool cli_socket_named(void)
{
    return socket_named;
}

bool cli_option(int c, const struct cli_command *cmd, int *status)
{
    switch (c) {
    case 'h':
        fputs(cmd->help, stdout);
        *status = CLI_OK;
        return true;
    case 'S':
        cli_set_socket(optarg);
        return false;
    default: /* getopt has printed the message */
        fprintf(stderr, "Try 'urnic %s --help'.\n", cmd->name);
        *status = CLI_USAGE;
        return true;
    }
}

int cli_options(int argc, char **argv, const struct cli_command *cmd, const char *letters,
                const struct option *options, int (*take)(void *arg, int c, char *value), void *arg)
{
    int c, status;
    while ((c = getopt_long(argc, argv, letters, options, NULL)) != -1) {
        int rc = take(arg, c, optarg);
        if (rc < 0)
            return CLI_USAGE;
        if (rc > 0 && cli_option(c, cmd, &status))
            return status;
    }
    return CLI_GO_ON;
}

/* Decimal or 0x...: strtoull's base 0 would make 010 eight. False: no number, or too large. */
static bool digits(const char *text, char **end, uint64_t *out)
{
    bool hex = text[0] == '0' && (text[1] | 0x20) == 'x' && isxdigit((unsigned char)text[2]);
    errno = 0;
    *out = strtoull(text, end, hex ? 16 : 10);
    return isdigit((unsigned char)*text) && errno == 0;
}

static int number(const char *option, const char *text, bool units, uint64_t min, uint64_t max,
                  uint64_t *out)
{
    char *end;
    uint64_t v;
    bool ok = digits(text, &end, &v);
    unsigned shift = 0;
    if (units && *end) {
        static const char letters[] = "KMG";
        const char *at = strchr(letters, *end & ~0x20);
        if (at && *at) {
            shift = 10 * (unsigned)(at - letters + 1);
            end++;
        }
    }
    if (!ok || *end || v > UINT64_MAX >> shift) {
        cli_error("%s: '%s' is not a %s", option, text,
                  units ? "size (a number, with K, M or G for powers of 1024)" : "number");
        return -1;
    }
    v <<= shift;
    if (v < min || v > max) {
        cli_error("%s: %s is outside %llu..%llu", option, text, (unsigned long long)min,
                  (unsigned long long)max);
        return -1;
    }
    *out = v;
    return 0;
}

int cli_size(const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
    return number(option, text, true, min, max, out);
}

int cli_number(const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
    return number(option, text, false, min, max, out);
}

int cli_port(const char *text, uint16_t *port)
{
    uint64_t v;
    if (cli_number("--port", text, 1, UINT16_MAX, &v) < 0)
        return -1;
    *port = (uint16_t)v;
    return 0;
}

int cli_seconds(const char *option, const char *text, uint64_t *ns)
{
    char *end;
    double s = strtod(text, &end);
    if (end == text || *end || !(s >= 1e-6 && s <= 1e6)) {
        cli_error("%s: '%s' is not a number of seconds, 0.000001 to 1000000", option, text);
        return -1;
    }
    *ns = (uint64_t)(s * 1e9);
    return 0;
}

int cli_qpn(const char *option, const char *text, uint32_t *qpn)
{
    char *end;
    uint64_t v;
    if (!digits(text, &end, &v) || *end || !v || v > 0xFFFFFF) {
        cli_error("%s: '%s' is not a queue pair number (1..0xffffff)", option, text);
        return -1;
    }
    *qpn = (uint32_t)v;
    return 0;
}

int cli_operands(int argc, char *const *argv, int min, int max, const char *what)
{
    if (argc - optind < min) {
        cli_error("%s is missing", what);
        return CLI_USAGE;
    }
    if (argc - optind > max) {
        cli_error("'%s' is one argument too many", argv[optind + max]);
        return CLI_USAGE;
    }
    return CLI_OK;
}

int cli_host(const char *text, char *host, size_t size, uint16_t *port)
{
    const char *end = text + strlen(text), *colon = NULL;
    const char *begin = text;
    if (*text == '[') {
        begin = text + 1;
        end = strchr(text, ']');
        if (!end || (end[1] && end[1] != ':')) {
            cli_error("'%s' is not an address; IPv6 with a port is written [fd00::1]:7471", text);
            return -1;
        }
        colon = end[1] ? end + 1 : NULL;
    } else if (strchr(text, ':') && strchr(text, ':') == strrchr(text, ':')) {
        colon = strchr(text, ':');
        end = colon;
    }
    if (end == begin || (size_t)(end - begin) >= size) {
        cli_error("'%s' is not an address", text);
        return -1;
    }
    memcpy(host, begin, (size_t)(end - begin));
    host[end - begin] = 0;
    struct in6_addr ip;
    struct in_addr ip4;
    bool v4 = inet_pton(AF_INET, host, &ip4) == 1;
    const char *zone = strchr(host, '%');
    if (!v4 && zone) {
        cli_error(
            "'%s' has a zone, and the kernel's interfaces are not ours: leave %s out, and say "
            "which device by --device",
            host, zone);
        return -1;
    }
    if (!v4 && inet_pton(AF_INET6, host, &ip) != 1) {
        cli_error("'%s' is not an IP address: names are not looked up, and 'localhost' is the "
                  "kernel's; `urnic info` lists the addresses of devices",
                  host);
        return -1;
    }
    if (v4 ? IN_MULTICAST(ntohl(ip4.s_addr)) : IN6_IS_ADDR_MULTICAST(&ip)) {
        cli_error("'%s' is the address of a group: there are no connections to one", host);
        return -1;
    }
    uint64_t v;
    if (colon) {
        if (cli_number("port", colon + 1, 1, 65535, &v) < 0)
            return -1;
        *port = (uint16_t)v;
    }
    return 0;
}

const char *cli_fmt_octets(uint64_t octets, char *buf, size_t size)
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double v = (double)octets;
    unsigned u = 0;
    while (v >= 1024 && u < 4) {
        v /= 1024;
        u++;
    }
    snprintf(buf, size, u ? "%.1f %s" : "%.0f %s", v, unit[u]);
    return buf;
}

const char *cli_fmt_rate(double bits_per_s, char *buf, size_t size)
{
    static const char *const unit[] = {"b/s", "kb/s", "Mb/s", "Gb/s", "Tb/s"};
    unsigned u = 0;
    while (bits_per_s >= 1000 && u < 4) {
        bits_per_s /= 1000;
        u++;
    }
    snprintf(buf, size, "%.2f %s", bits_per_s, unit[u]);
    return buf;
}

const char *cli_fmt_time(double ns, char *buf, size_t size)
{
    if (ns < 1e3)
        snprintf(buf, size, "%.0f ns", ns);
    else if (ns < 1e6)
        snprintf(buf, size, "%.2f us", ns / 1e3);
    else if (ns < 1e9)
        snprintf(buf, size, "%.2f ms", ns / 1e6);
    else
        snprintf(buf, size, "%.2f s", ns / 1e9);
    return buf;
}

void cli_json(struct json_t *value)
{
    json_dumpf(value, stdout, JSON_COMPACT | JSON_REAL_PRECISION(15));
    putchar('\n');
    fflush(stdout);
    json_decref(value);
}

struct json_t *cli_json_text(const char *text)
{
    char clean[1024];
    json_t *whole = json_string(text);
    if (whole)
        return whole;
    size_t n = strnlen(text, sizeof(clean));
    memcpy(clean, text, n);
    for (size_t i = 0; i < n; i++)
        if (!isascii(clean[i]))
            clean[i] = '?';
    return json_stringn(clean, n);
}

const char *cli_plain(const char *text, char *buf, size_t size)
{
    snprintf(buf, size, "%s", text);
    for (unsigned char *c = (unsigned char *)buf; *c; c++) {
        if (iscntrl(*c))
            *c = '?';
        else if (*c == 0xc2 && (c[1] & 0xe0) == 0x80) /* U+0080 to U+009F, as UTF-8 */
            c[0] = c[1] = '?';
    }
    return buf;
}

uint64_t cli_now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- progress ---- */

void cli_progress_begin(struct cli_progress *p, const char *what, uint64_t total, bool quiet)
{
    *p = (struct cli_progress){
        .what = what,
        .total = total,
        .started = cli_now(),
        .tty = isatty(STDERR_FILENO),
        .quiet = quiet,
    };
}

static void draw(struct cli_progress *p, uint64_t done, const char *note, uint64_t now)
{
    char a[32], b[32], r[32], bar[31];
    double s = (double)(now - p->started) / 1e9;
    double part = p->total ? (double)done / (double)p->total : 1;
    unsigned filled = (unsigned)(part * 30);
    for (unsigned i = 0; i < 30; i++)
        bar[i] = i < filled ? '#' : '.';
    bar[30] = 0;
    if (p->unit) {
        snprintf(a, sizeof(a), "%" PRIu64, done);
        snprintf(b, sizeof(b), "%" PRIu64 " %s", p->total, p->unit);
        snprintf(r, sizeof(r), "%.0f/s", s > 0 ? (double)done / s : 0);
    } else {
        cli_fmt_octets(done, a, sizeof(a));
        cli_fmt_octets(p->total, b, sizeof(b));
        cli_fmt_rate(s > 0 ? (double)done * 8 / s : 0, r, sizeof(r));
    }
    double eta = part > 0 ? s / part - s : 0;
    fprintf(stderr, "%s%s [%s] %3.0f%%  %s of %s  %s  %.0f s left%s%s%s", p->tty ? "\r" : "",
            p->what, bar, part * 100, a, b, r, eta, note && *note ? "  " : "", note ? note : "",
            p->tty ? "\033[K" : "\n");
    fflush(stderr);
    bar_open = p->tty;
}

void cli_progress(struct cli_progress *p, uint64_t done, const char *note)
{
    uint64_t now = cli_now();
    if (p->quiet || now - p->drawn < (p->tty ? 100000000u : 1000000000u))
        return;
    p->drawn = now;
    draw(p, done, note, now);
}

void cli_progress_end(struct cli_progress *p, uint64_t done, const char *note)
{
    if (p->quiet)
        return;
    draw(p, done, note, cli_now());
    if (p->tty)
        fputc('\n', stderr);
    bar_open = false;
}

bool cli_same_file(const char *in, const char *out)
{
    struct stat a, b;
    int rc = strcmp(in, "-") ? stat(in, &a) : fstat(STDIN_FILENO, &a);
    return rc == 0 && stat(out, &b) == 0 && S_ISREG(a.st_mode) && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

char *cli_text(FILE *f, size_t most, size_t *len)
{
    char *text = f ? malloc(most + 2) : NULL;
    if (text) {
        *len = fread(text, 1, most + 1, f);
        text[*len] = 0;
    }
    int why = !text || ferror(f) ? errno : 0;
    if (f && f != stdin)
        fclose(f);
    if (!why)
        return text;
    free(text);
    errno = why;
    return NULL;
}

static void on_signal(int sig)
{
    static uint64_t first;
    int error = errno;
    if (!first)
        first = cli_now();
    else if (cli_now() - first > ONE_WISH_NS) {
        signal(sig, SIG_DFL);
        raise(sig); /* the signal comes when this returns */
    }
    cli_stop = 1;
    errno = error;
}

void cli_catch_signals(void)
{
    struct sigaction sa = {.sa_handler = on_signal};
    sigaddset(&sa.sa_mask, SIGINT);
    sigaddset(&sa.sa_mask, SIGTERM);
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
}
