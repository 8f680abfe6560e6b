/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading a capture from end to end, and how far that has got.
 */
#include "lint_read.h"

#include <errno.h>
#include <unistd.h>

#include "cli.h"

#define LOOK 1024u /* packets between two looks at how far it is */

bool lint_read_shows(const struct capread *cap, uint64_t least)
{
    struct capread_info info;
    capread_info(cap, &info);
    return info.size >= least && isatty(STDERR_FILENO);
}

int lint_read(struct capread *cap, bool show, int (*take)(void *arg, const struct lint_frame *f),
              void *arg)
{
    struct capread_info info;
    struct capread_packet p;
    struct cli_progress bar;
    int rc = 0;
    capread_info(cap, &info);
    cli_progress_begin(&bar, "reading", info.size, !show);
    while (!cli_stop && (rc = capread_next(cap, &p)) == 1) {
        struct lint_frame f = lint_frame_of(&p);
        if ((rc = take(arg, &f)) < 0)
            break;
        if (show && p.number % LOOK == 0) {
            capread_info(cap, &info);
            cli_progress(&bar, info.offset, NULL);
        }
    }
    capread_info(cap, &info);
    cli_progress_end(&bar, info.offset, NULL);
    return cli_stop ? -EINTR : rc;
}
