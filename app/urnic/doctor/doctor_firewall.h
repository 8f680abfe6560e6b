/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The rules of the host's packet filters (nftables, iptables), looked through for UDP port 4791. No
 * program can say for all rules what they come to; this one says what they hold.
 */
#ifndef URNIC_DOCTOR_FIREWALL_H
#define URNIC_DOCTOR_FIREWALL_H

#include <stdbool.h>

/* All false before the first rules. */
struct doctor_rules {
    bool read;       /* some tool could read its rules */
    bool any;        /* there are rules for what comes in */
    bool drops;      /* something is dropped or rejected */
    bool names_port; /* port 4791 is named */
};

/* Look through what `nft list ruleset` or `iptables-save` prints; adds to *r. Pure. */
void doctor_rules_judge(const char *text, struct doctor_rules *r);

/* Run the tools that are installed. */
void doctor_rules_read(struct doctor_rules *r);

#endif
