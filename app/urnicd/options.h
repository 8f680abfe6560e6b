/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The command line: flags over a configuration file.
 */
#ifndef URNICD_OPTIONS_H
#define URNICD_OPTIONS_H

#include "config.h"

enum options_what {
    OPTIONS_RUN,   /* start the daemon */
    OPTIONS_CHECK, /* --check-config: report whether the configuration is good, and exit */
    OPTIONS_PORTS, /* --check-ports: open the ports, close them, and exit */
    OPTIONS_STOP,  /* --stop: end the daemon at c->socket; the rest of `c` has not been checked */
    OPTIONS_EXIT,  /* --help or --version has been printed */
};

/* Parse argv into `c`. 0 and *what, or -errno with a sentence in err (CONFIG_ERR octets). */
int options_parse(int argc, char **argv, struct config *c, enum options_what *what, char *err);

#endif
