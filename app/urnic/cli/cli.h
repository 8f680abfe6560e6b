/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by the subcommands of `urnic`: their declaration, messages, numbers with units, progress.
 * One thread.
 */
#ifndef URNIC_CLI_H
#define URNIC_CLI_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Exit statuses of every subcommand. */
#define CLI_OK    0
#define CLI_FAIL  1 /* tried, and failed */
#define CLI_USAGE 2 /* wrong command line or input */

struct cli_command {
    const char *name;
    const char *summary;               /* one line for `urnic --help` */
    const char *help;                  /* the whole page for `urnic NAME --help` */
    int (*run)(int argc, char **argv); /* argv[0] is the subcommand's name */
};

extern const struct cli_command cmd_info, cmd_stat, cmd_top, cmd_doctor, cmd_perf, cmd_copy,
    cmd_serve, cmd_capture, cmd_link, cmd_lint, cmd_replay, cmd_rules, cmd_rping, cmd_ucmatose,
    cmd_cc, cmd_sim, cmd_wire, cmd_drill, cmd_run, cmd_trace;

/* Use the daemon at this socket (`--socket`, before or after the subcommand). */
void cli_set_socket(const char *path);
/* Has it been called? */
bool cli_socket_named(void);

/* Set the subcommand that messages name. */
void cli_begin(const char *name);
/* "urnic NAME: text" on stderr. */
void cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same for -errno values: `what`, then the system's text; with advice when no daemon serves. */
void cli_errno(int rc, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Options that every subcommand has: CLI_OPTIONS goes into the table of one that talks to a daemon,
 * CLI_HELP into that of any other. On a code that is not the subcommand's own:
 * if (cli_option(c, &cmd, &status)) return status; */
/* clang-format off */
#define CLI_HELP    {"help", no_argument, NULL, 'h'}
#define CLI_OPTIONS CLI_HELP, {"socket", required_argument, NULL, 'S'}
/* clang-format on */
bool cli_option(int c, const struct cli_command *cmd, int *status);

/* Read the options of a command line, up to the operands. `letters` and `options` are
 * getopt_long's. `take` gets each option other than those of CLI_OPTIONS and CLI_HELP, with its
 * value (NULL = none). It returns 0, -1 with a message, or 1: not an option of the subcommand.
 * Returns CLI_GO_ON, or the exit status of the subcommand. */
#define CLI_GO_ON (-1)
int cli_options(int argc, char **argv, const struct cli_command *cmd, const char *letters,
                const struct option *options, int (*take)(void *arg, int c, char *value),
                void *arg);

/* "64", "64K", "1M", "2G": powers of 1024. -1 with a message naming the option on bad text or a
 * value outside [min, max]. */
int cli_size(const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *out);
/* As cli_size, but the number is plain: decimal or 0x..., without K, M, G. */
int cli_number(const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *out);
/* A UDP or service port of `--port`, 1..65535. -1 with a message. */
int cli_port(const char *text, uint16_t *port);
/* Seconds, fractions allowed, 0.000001 to 1000000, as ns. -1 with a message. */
int cli_seconds(const char *option, const char *text, uint64_t *ns);
/* Read "HOST", "HOST:PORT" or "[v6]:PORT", not of a group. Without a port *port is unchanged. -1
 * with a message. */
int cli_host(const char *text, char *host, size_t size, uint16_t *port);

/* "12.3 MiB", "9.81 Gb/s", "1.50 ms" in `buf`, which is returned; 32 octets are enough. */
const char *cli_fmt_octets(uint64_t octets, char *buf, size_t size);
const char *cli_fmt_rate(double bits_per_s, char *buf, size_t size);
const char *cli_fmt_time(double ns, char *buf, size_t size);

/* Check the operands, which follow the options. CLI_USAGE with a message if there are fewer than
 * `min` (it names the missing one, "a capture") or more than `max` (it names the first surplus
 * one); else CLI_OK. Call it when getopt has ended. */
int cli_operands(int argc, char *const *argv, int min, int max, const char *what);
/* A queue pair number, 0x hexadecimal or decimal, 1..0xffffff; -1 with a message. */
int cli_qpn(const char *option, const char *text, uint32_t *qpn);

/* Are both names of the same regular file? "-" as `in` is standard input. */
bool cli_same_file(const char *in, const char *out);

/* Read a file from its current position, at most `most` + 1 octets, and add a NUL; the caller frees
 * the result. Closes `f` unless it is standard input. NULL with errno; if `f` is NULL, with the
 * errno of the fopen. */
char *cli_text(FILE *f, size_t most, size_t *len);

/* Print a jansson value as one line on standard output, and drop it. */
struct json_t;
void cli_json(struct json_t *value);
/* A JSON string of text from outside, such as a path or a packet: octets that are not UTF-8 become
 * '?'. */
struct json_t *cli_json_text(const char *text);
/* Text of another host for a terminal, which its control characters could steer: they become '?'.
 * Cut to fit; returns buf. */
const char *cli_plain(const char *text, char *buf, size_t size);

uint64_t cli_now(void); /* ns, monotonic */

/* A progress bar on stderr; drawn at most ten times a second, and only once a second as plain lines
 * when stderr is not a terminal. */
struct cli_progress {
    const char *what;
    uint64_t total, started, drawn;
    bool tty, quiet;
    const char *unit; /* unit of `total`, "packets"; NULL = octets */
};
/* Start a bar for `total` octets; for other units set p->unit afterwards. quiet: draw nothing. */
void cli_progress_begin(struct cli_progress *p, const char *what, uint64_t total, bool quiet);
/* `done` of them are complete; `note` (may be NULL) follows the bar. */
void cli_progress(struct cli_progress *p, uint64_t done, const char *note);
/* Draw the bar a last time, and end the line. */
void cli_progress_end(struct cli_progress *p, uint64_t done, const char *note);

/* Not 0 after SIGINT or SIGTERM: finish, and print the results so far. */
extern volatile int cli_stop;
/* From now on the first SIGINT or SIGTERM only sets cli_stop; a later one ends the program. One
 * that follows at once does not count: timeout(1) sends one to the process and one to its group. */
void cli_catch_signals(void);

#endif
