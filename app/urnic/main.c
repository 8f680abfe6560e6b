/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic`: one program, one file or one folder per subcommand.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "crc.h"
#include "std_streams.h"
#include "urnic/urnic.h"

static const struct cli_command *const commands[] = {
    &cmd_info,  &cmd_stat,     &cmd_top,  &cmd_doctor, &cmd_perf,  &cmd_copy,   &cmd_run,
    &cmd_serve, &cmd_capture,  &cmd_link, &cmd_cc,     &cmd_lint,  &cmd_replay, &cmd_rules,
    &cmd_rping, &cmd_ucmatose, &cmd_sim,  &cmd_wire,   &cmd_drill, &cmd_trace,
};
#define NCOMMANDS (sizeof(commands) / sizeof(commands[0]))

static const char epilogue[] = {
#include "help_urnic.inc"
};

static void usage(FILE *to)
{
    fputs("usage: urnic [--socket PATH] COMMAND [OPTION ...]\n\n"
          "Looks into, tests and uses the soft RNIC that urnicd runs.\n\nCommands:\n",
          to);
    for (size_t i = 0; i < NCOMMANDS; i++)
        fprintf(to, "  %-9s %s\n", commands[i]->name, commands[i]->summary);
    fputs(epilogue, to);
}

static const struct cli_command *find(const char *name)
{
    for (size_t i = 0; i < NCOMMANDS; i++)
        if (!strcmp(name, commands[i]->name))
            return commands[i];
    fprintf(stderr, "urnic: '%s' is not a command. Try 'urnic --help'.\n", name);
    return NULL;
}

/* urnic help [COMMAND] */
static int help(int argc, char **argv)
{
    if (argc > 2) {
        cli_error("help: '%s' is one argument too many", argv[2]);
        return CLI_USAGE;
    }
    if (argc < 2) {
        usage(stdout);
        return CLI_OK;
    }
    const struct cli_command *cmd = find(argv[1]);
    if (!cmd)
        return CLI_USAGE;
    fputs(cmd->help, stdout);
    return CLI_OK;
}

static int command(int argc, char **argv)
{
    static char name[32]; /* start of getopt's messages */
    int at = 1;
    if (argc > 1 && strncmp(argv[1], "--socket=", 9) == 0) {
        cli_set_socket(argv[1] + 9);
        at = 2;
    } else if (argc > 1 && strcmp(argv[1], "--socket") == 0) {
        if (argc == 2) {
            cli_error("--socket: a path is missing");
            return CLI_USAGE;
        }
        cli_set_socket(argv[2]);
        at = 3;
    }
    if (at >= argc) {
        usage(stderr);
        return CLI_USAGE;
    }
    if (!strcmp(argv[at], "--help") || !strcmp(argv[at], "-h"))
        return help(1, argv + at);
    if (!strcmp(argv[at], "help"))
        return help(argc - at, argv + at);
    if (!strcmp(argv[at], "--version")) {
        printf("urnic %s\n", urnic_version());
        return CLI_OK;
    }
    const struct cli_command *cmd = find(argv[at]);
    if (!cmd)
        return CLI_USAGE;
    cli_begin(cmd->name);
    snprintf(name, sizeof(name), "urnic %s", cmd->name);
    argv[at] = name;
    return cmd->run(argc - at, argv + at);
}

int main(int argc, char **argv)
{
    char err[128];
    std_streams_open();
    if (crc_choose(secure_getenv(CRC_ENV), err, sizeof(err)) < 0) {
        cli_error("%s", err);
        return CLI_USAGE;
    }
    int status = command(argc, argv);

    if (!std_streams_flush()) {
        cli_error("standard output can't be written");
        status = status == CLI_OK ? CLI_FAIL : status;
    }
    return status;
}
