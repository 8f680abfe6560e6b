/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames are written as they came. The comment lists the rules' actions. They change the frame in
 * place: so the frame is copied before.
 */
#include "wire_capture.h"

#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "pcapng_file.h"

int wire_capture_open(struct wire_capture *c, const char *path, const struct bump *b)
{
    static const char *const names[BUMP_DIRS] = {"A", "B"};
    const struct pcapng_options opt = {.application = "urnic wire",
                                       .epoch = pcapng_epoch(cli_now())};
    int rc = pcapng_create(path, PCAPNG_DROPS, &opt, &c->w);
    for (unsigned d = 0; d < BUMP_DIRS && rc == 0; d++)
        c->interface[d] =
            pcapng_interface(c->w, names[d], b->port[d]->spec, b->port[d]->caps.rate_bps);
    return rc;
}

void wire_capture_before(struct wire_capture *c, const uint8_t *frame, uint32_t len)
{
    memcpy(c->before, frame, len);
}

void wire_capture_after(struct wire_capture *c, enum fault_dir dir, uint32_t len, uint64_t now,
                        unsigned bits)
{
    static const struct {
        unsigned bit;
        const char *word;
    } words[] = {{FAULT_DROP, "dropped"}, {FAULT_DAMAGED, "damaged"}, {FAULT_CHANGED, "changed"},
                 {FAULT_COPY, "copied"},  {FAULT_HOLD, "held back"},  {FAULT_INJECT, "answered"}};
    char comment[96] = "";
    size_t at = 0;
    for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (bits & words[i].bit)
            at += (size_t)snprintf(comment + at, sizeof(comment) - at, "%s%s", at ? ", " : "",
                                   words[i].word);
    pcapng_packet(c->w, c->interface[dir], now, CAPTURE_IN, c->before, len, at ? comment : NULL);
}

int wire_capture_close(struct wire_capture *c)
{
    int rc = c->w ? pcapng_close(c->w) : 0;
    c->w = NULL;
    return rc;
}
