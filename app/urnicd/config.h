/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The daemon's configuration: a JSON file and flags. Each flag has a key of the same name, and
 * flags win. Every error names the key and the value at fault, and a right value.
 */
#ifndef URNICD_CONFIG_H
#define URNICD_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config_device.h"
#include "log.h"

struct config {
    char socket[108];
    bool socket_default; /* the user's default path, where all clients of the user look (SEC-34) */
    struct config_device dev[CONFIG_DEVICES];
    unsigned ndev;
    unsigned workers; /* 0 = min(devices, cores) */
    int cpu[CONFIG_WORKERS];
    unsigned ncpu;
    enum config_idle idle;
    enum log_level log_level;
    char log[512]; /* path of a file; "" = stderr, in the background syslog */
    bool foreground;
    int parent;    /* descriptor of a socket or pipe to the starting program; -1 = none */
    uint64_t seed; /* seed of drivers that draw random numbers; 0 = from the system */
};

/* Fill in defaults. The socket path depends on the caller's privileges and environment: "" when
 * $URNIC_SOCKET is too long, which is an error unless another setting gives a path. */
void config_init(struct config *c);
/* Apply a JSON file to `c`. 0, or -errno with a sentence in err (CONFIG_ERR octets). */
int config_load(struct config *c, const char *path, char *err);
/* Apply one setting by its key, as in a flag or the file ("workers", "2"). */
int config_set(struct config *c, const char *key, const char *value, char *err);
/* Make the paths that the daemon uses while it serves absolute. False: the working directory has no
 * name, or a path would become too long; some paths may be absolute then. */
bool config_absolute(struct config *c);
/* Whole-file checks: names are unique, ports and addresses are there. Fills in names. */
int config_check(struct config *c, char *err);

#endif
