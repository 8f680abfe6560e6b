/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The page that tells engines of programs what they have to know of the device (ipc_facts.h). On
 * the device's worker.
 */
#ifndef NIC_FACTS_H
#define NIC_FACTS_H

struct device;
struct facts;

/* Make the page; it is of d->facts from then on. 0, also when there is one, or -errno. */
int facts_start(struct device *d);
void facts_free(struct facts *f);

/* Something may have changed: say so if it has. Nothing to do without a page. */
void facts_follow(struct device *d);

/* The descriptor by which programs map the page for reading; it stays the page's. */
int facts_fd(const struct facts *f);

#endif
