/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Domain, completion queue and memory of one end.
 */
#include "resources.h"

#include <errno.h>
#include <fcntl.h>

#include "cli.h"

int resources_nonblocking(int fd)
{
    return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0 ? -errno : 0;
}

int resources_open(struct resources *r, struct urnic_context *ctx, int cqe, bool events,
                   size_t octets, unsigned access)
{
    void *mem = NULL;
    *r = (struct resources){.ctx = ctx};
    int rc = urnic_alloc_pd(ctx, &r->pd);
    if (rc == 0 && events)
        rc = urnic_create_channel(ctx, &r->channel);
    if (rc == 0 && events)
        rc = resources_nonblocking(urnic_channel_fd(r->channel));
    if (rc == 0)
        rc = urnic_create_cq(ctx, cqe, NULL, r->channel, &r->cq);
    if (rc == 0)
        rc = urnic_alloc(ctx, octets, &mem);
    r->mem = mem;
    if (rc == 0)
        rc = urnic_reg_mr(r->pd, mem, octets, access | URNIC_ACCESS_LOCAL_WRITE, &r->mr);
    if (rc < 0)
        resources_close(r);
    return rc;
}

void resources_close(struct resources *r)
{
    if (r->mr)
        urnic_dereg_mr(r->mr);
    if (r->mem)
        urnic_free(r->ctx, r->mem);
    if (r->cq)
        urnic_destroy_cq(r->cq);
    if (r->channel)
        urnic_destroy_channel(r->channel);
    if (r->pd)
        urnic_dealloc_pd(r->pd);
    *r = (struct resources){0};
}

void resources_wc_failed(const struct urnic_wc *wc)
{
    const char *area = urnic_rule_area(wc->vendor_err), *status = urnic_wc_status_str(wc->status);
    if (*area)
        cli_error("a work request failed: %s (%s-%02u)", status, area,
                  URNIC_RULE_NUMBER(wc->vendor_err));
    else
        cli_error("a work request failed: %s", status);
}
