/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Files of other simulators.
 */
#include "sim_foreign.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static bool is_number(const char *s)
{
    return *s && !s[strspn(s, "0123456789.e+-")] && *s >= '0' && *s <= '9';
}

const char *sim_foreign(char *const *word, unsigned nwords)
{
    unsigned numbers = 0;
    while (numbers < nwords && is_number(word[numbers]))
        numbers++;
    if (!strcmp(word[0], "Nodes") || !strcmp(word[0], "Connections") || strstr(word[0], "->"))
        return "this looks like a connection matrix or topology of htsim: its '0->3 start 5 size "
               "4096' is here a line 'flow from=0 to=3 start=5ns size=4096' after a 'topology'";
    if (numbers == nwords && (nwords == 1 || nwords >= 5))
        return "this looks like a flow list of ns-3's RDMA model: its 'SRC DST PG PORT SIZE START' "
               "is here a line 'flow from=SRC to=DST size=SIZE start=START' (with a unit, 2s) "
               "after a 'topology'";
    if (numbers == nwords)
        return "this looks like a topology of ns-3's RDMA model: here it is one line, as 'topology "
               "leaf-spine hosts=16 leaves=4 spines=4 rate=100G'";
    return NULL;
}
