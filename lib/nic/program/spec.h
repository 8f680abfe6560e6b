/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A program's specification of the port that it opens: a device's settings (config_device.h), the
 * port first, and a few keys of its own.
 *
 *     memif:/run/a.sock,role=server,addr=10.0.0.1/24,log-level=warn
 */
#ifndef NIC_SPEC_H
#define NIC_SPEC_H

#include "log.h"
#include "settings.h"

/* The thread that runs the worker's rounds. */
enum spec_progress {
    SPEC_AUTO,   /* the threads that poll; the port's own thread when none does */
    SPEC_THREAD, /* the port's own thread */
    SPEC_POLL,   /* the threads that poll */
};

struct spec {
    struct config_device *conf; /* the caller's; filled in */
    enum log_level log;
    enum spec_progress progress;
    bool no_sockets; /* on a channel: all frames go over it */
};

/* Read the text. s->conf is set. 0, or -EINVAL and a sentence in err (CONFIG_ERR octets). */
int spec_parse(struct spec *s, const char *text, char *err);

/* The same for a channel on a daemon's device of this name; options: only the program's own keys.
 */
int spec_parse_channel(struct spec *s, const char *device, const char *options, char *err);

#endif
