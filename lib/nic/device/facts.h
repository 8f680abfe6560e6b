/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The page of facts about the device for engines of programs (ipc_facts.h). On the device's worker.
 */
#ifndef NIC_FACTS_H
#define NIC_FACTS_H

struct device;
struct facts;

/* Make the page and put it into d->facts. 0, also if there is one, or -errno. */
int facts_start(struct device *d);
void facts_free(struct facts *f);

/* Publish changes, if there are any. Harmless without a page. */
void facts_follow(struct device *d);

/* The descriptor by which programs map the page for reading; it stays the page's. */
int facts_fd(const struct facts *f);

#endif
