/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A packet of a capture, in the form for lib/lint and lib/replay.
 */
#ifndef URNIC_LINT_FRAME_H
#define URNIC_LINT_FRAME_H

#include "capread.h"
#include "lint.h"

/* The frame of packet p, for lib/lint. Like p, it is valid until the reader's next call. */
static inline struct lint_frame lint_frame_of(const struct capread_packet *p)
{
    return (struct lint_frame){.number = p->number,
                               .ns = p->ns,
                               .data = p->frame,
                               .len = p->len,
                               .wire_len = p->wire_len,
                               .interface = p->interface,
                               .no_ether = p->no_ether,
                               .sent = p->dir == CAPTURE_OUT};
}

#endif
