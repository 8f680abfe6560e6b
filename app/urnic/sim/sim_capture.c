/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Captures of simulated nodes.
 */
#include "sim_capture.h"

#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "pcapng_file.h"

int sim_capture_add(struct sim_captures *c, const char *text)
{
    const char *eq = strchr(text, '=');
    if (c->n == SIM_CAPTURES) {
        cli_error("--capture: at most %u times", SIM_CAPTURES);
        return CLI_USAGE;
    }
    struct sim_capture *one = &c->list[c->n];
    if (!eq || eq == text || (size_t)(eq - text) >= sizeof(one->node)) {
        cli_error("--capture: '%s' is not NODE=FILE", text);
        return CLI_USAGE;
    }
    memcpy(one->node, text, (size_t)(eq - text));
    one->file = eq + 1;
    c->n++;
    return CLI_OK;
}

void sim_capture_frame(void *captures, const struct sim_node *node, enum sim_dir dir,
                       const uint8_t *frame, uint32_t len, const char *note, uint64_t now)
{
    struct sim_captures *c = captures;
    for (unsigned i = 0; i < c->n; i++)
        if (c->list[i].at == node)
            pcapng_packet(c->list[i].w, c->list[i].interface, now,
                          dir == SIM_IN ? CAPTURE_IN : CAPTURE_OUT, frame, len, note);
}

void sim_file_name(char *buf, size_t size, const char *file, uint32_t point, uint32_t points)
{
    const char *dot = strrchr(file, '.');
    if (points == 1)
        snprintf(buf, size, "%s", file);
    else if (dot && !strchr(dot, '/'))
        snprintf(buf, size, "%.*s-%u%s", (int)(dot - file), file, point, dot);
    else
        snprintf(buf, size, "%s-%u", file, point);
}

int sim_capture_open(struct sim_captures *c, struct sim *sim, uint32_t point)
{
    char name[4096];
    for (unsigned i = 0; i < c->n; i++) {
        struct sim_capture *one = &c->list[i];
        struct sim_node *n = sim_net_find(&sim->net, one->node);
        if (!n) {
            cli_error("--capture: '%s' is not a node of this topology", one->node);
            return CLI_USAGE;
        }
        sim_file_name(name, sizeof(name), one->file, point, sim->s->points);
        const struct pcapng_options opt = {.application = "urnic sim"};
        int rc = pcapng_create(name, PCAPNG_WAITS, &opt, &one->w);
        if (rc) {
            cli_error("%s: %s", name, strerror(-rc));
            return CLI_FAIL;
        }
        one->interface = pcapng_interface(one->w, one->node, "simulated", n->port[0]->rate);
        one->at = n;
        n->watched = true;
    }
    return CLI_OK;
}

int sim_capture_close(struct sim_captures *c)
{
    int status = CLI_OK;
    for (unsigned i = 0; i < c->n; i++) {
        int rc = c->list[i].w ? pcapng_close(c->list[i].w) : 0;
        c->list[i].w = NULL;
        if (rc) {
            cli_error("%s: %s", c->list[i].file, strerror(-rc));
            status = CLI_FAIL;
        }
    }
    return status;
}
