/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See cclog.h.
 */
#include "cclog.h"

#include <stdio.h>

#include "device.h"
#include "log.h"

/* The parameters of the congestion control as text, or that there is none. */
static void what_is_on(const struct cc_conf *conf, char *text, size_t size)
{
    if (conf->type == &cc_none)
        snprintf(text, size, "no congestion control");
    else
        cc_conf_format(conf, text, size);
}

void cclog_device(const struct device *d)
{
    const struct cc_conf *conf = engine_cc(d->engine);
    char text[CC_TEXT];
    what_is_on(conf, text, sizeof(text));
    log_info("cc", "%s: %s", d->name, text);
    if (!cc_conf_fits(conf, d->io->caps.rate_bps, text, sizeof(text)))
        log_warn("cc", "%s: %s", d->name, text);
}

void cclog_qp(const struct device *d, uint32_t qpn, const struct cc_conf *conf)
{
    struct cc_conf fit = *conf;
    char text[CC_TEXT];
    cc_conf_fit(&fit, d->io->caps.rate_bps);
    what_is_on(&fit, text, sizeof(text));
    log_info("cc", "%s qp 0x%06x: %s", d->name, (unsigned)qpn, text);
    if (!cc_conf_fits(&fit, d->io->caps.rate_bps, text, sizeof(text)))
        log_warn("cc", "%s qp 0x%06x: %s", d->name, (unsigned)qpn, text);
}
