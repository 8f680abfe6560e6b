/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The rules of the host's packet filters (nftables, iptables), looked through for UDP port 4791. No
 * program can tell the effect of all rules; this one reports their contents.
 */
#ifndef URNIC_DOCTOR_FIREWALL_H
#define URNIC_DOCTOR_FIREWALL_H

#include <stdbool.h>

/* All false before the first rules. */
struct doctor_rules {
    bool read;       /* a tool could read the rules */
    bool any;        /* there are rules for received packets */
    bool drops;      /* a rule drops or rejects packets */
    bool names_port; /* a rule names port 4791 */
};

/* Read the output of `nft list ruleset` or `iptables-save`; adds to *r. Pure. */
void doctor_rules_judge(const char *text, struct doctor_rules *r);

/* Run the tools that are installed. */
void doctor_rules_read(struct doctor_rules *r);

#endif
