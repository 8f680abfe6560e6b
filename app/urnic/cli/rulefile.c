/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Files of fault rules.
 */
#include "rulefile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

struct fault *rulefile_read(const char *file, size_t most, uint64_t seed, char **text)
{
    struct fault_error err;
    struct fault *rules = NULL;
    size_t len = 0;
    char *t = cli_text(fopen(file, "re"), most, &len);
    if (!t)
        cli_error("%s: %s", file, strerror(errno));
    else if (len > most)
        cli_error("%s: larger than %zu octets", file, most);
    else if (strlen(t) != len)
        cli_error("%s: not a text: it has a zero in it", file);
    else if (!(rules = fault_parse(t, len, seed, &err)))
        fprintf(stderr, "%s:%u:%u: %s\n", file, err.line, err.column, err.text);
    if (rules && text)
        *text = t;
    else
        free(t);
    return rules;
}
