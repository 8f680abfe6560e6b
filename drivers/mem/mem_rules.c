/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The rule language of lib/fault on an emulated link: reads the rules, and translates their results
 * into the link's own verdict.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "io_arg.h"
#include "mem_internal.h"

/* ---- the rules ---- */

int mem_rules_open(const struct mem_link_config *cfg, struct fault **out, char *err,
                   size_t err_size)
{
    struct fault_error why;
    struct stat st;
    *out = NULL;
    if (!*cfg->rules)
        return 0;
    FILE *f = fopen(cfg->rules, "re");
    if (!f)
        return io_fail(err, err_size, -errno, "mem: rules=%s: %s", cfg->rules, strerror(errno));
    if (fstat(fileno(f), &st) || !S_ISREG(st.st_mode) || st.st_size > FAULT_TEXT_MAX) {
        fclose(f);
        return io_fail(err, err_size, -EINVAL,
                       "mem: rules=%s: not a file, or larger than a megabyte", cfg->rules);
    }
    size_t len = (size_t)st.st_size;
    char *text = malloc(len + 1);
    bool whole = text && fread(text, 1, len, f) == len;
    fclose(f);
    if (whole)
        *out = fault_parse(text, len, cfg->seed, &why);
    free(text);
    if (!whole)
        return io_fail(err, err_size, -EIO, "mem: rules=%s: can't be read to its end", cfg->rules);
    return *out ? 0
                : io_fail(err, err_size, -EINVAL, "mem: %s:%u:%u: %s", cfg->rules, why.line,
                          why.column, why.text);
}

int mem_link_rules_set(struct mem_link *link, const char *text, size_t len, struct fault_error *err)
{
    struct fault *f = len ? fault_parse(text, len, 0, err) : NULL;
    if (len && !f)
        return -EINVAL;
    pthread_mutex_lock(&link->lock);
    struct fault *old = link->faults;
    link->faults = f;
    if (f)
        fault_seed(f, link->cfg.seed);
    pthread_mutex_unlock(&link->lock);
    fault_free(old);
    return 0;
}

bool mem_link_rules_get(struct mem_link *link, unsigned rule, struct fault_rule_stats *out,
                        char *text, size_t size)
{
    pthread_mutex_lock(&link->lock);
    bool there = link->faults && rule < fault_rules(link->faults);
    if (there) {
        fault_rule_stats(link->faults, rule, out);
        if (text)
            snprintf(text, size, "%s", fault_describe(link->faults, rule));
    }
    pthread_mutex_unlock(&link->lock);
    return there;
}

/* ---- a frame ---- */

/* A port other than `dir` that can send frames to it; MEM_LINK_ALL = none. */
static unsigned other_port(const struct mem_link *link, unsigned dir)
{
    for (unsigned i = 0; i < link->top; i++)
        if (i != dir && link->sockets[i]->open)
            return i;
    return MEM_LINK_ALL;
}

static void inject(struct mem_link *link, unsigned dir, bool back, const struct fault_inject *in,
                   uint64_t now)
{
    unsigned from = back ? other_port(link, dir) : dir;
    struct mem_buf *buf = NULL;
    if (from != MEM_LINK_ALL && in->len <= link->cfg.frame)
        buf = mem_buf_take(link, dir);
    if (!buf)
        return;
    buf->len = in->len;
    memcpy(buf->data, in->data, in->len);
    link->sockets[dir]->stats.injected++;
    if (back)
        mem_socket_deliver(link, from, dir, buf, now);
    else
        mem_socket_forward(link, dir, buf, now);
}

void mem_rules_apply(struct mem_link *link, unsigned dir, struct mem_buf *buf, uint64_t now,
                     struct mem_link_verdict *v)
{
    struct fault_out out;
    enum fault_dir way = dir == 0 ? FAULT_AB : FAULT_BA;
    unsigned bits = fault_apply(link->faults, way, buf->data, buf->len, now, &out);
    v->flow = out.flow;
    if (bits & FAULT_INJECT)
        for (unsigned i = 0; i < out.ninject; i++)
            inject(link, dir, out.inject[i].dir != way, &out.inject[i], now);
    if (bits & FAULT_DROP)
        v->flags |= MEM_LINK_DROP;
    if (bits & FAULT_CHANGED)
        buf->len = out.len;
    if (bits & FAULT_COPY)
        v->copies = out.copies;
    if (bits & FAULT_HOLD) {
        v->delay = out.delay;
        if (out.gap) {
            v->flags |= MEM_LINK_REORDER;
            v->reorder_gap = out.gap;
            v->reorder_hold = out.within;
        }
    }
}
