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

/* The octets of a file, `most` + 1 of them at most, and a NUL; NULL with errno. */
static char *octets(const char *file, size_t most, size_t *len)
{
    char *text = malloc(most + 2);
    FILE *f = text ? fopen(file, "re") : NULL;
    if (f) {
        *len = fread(text, 1, most + 1, f);
        text[*len] = 0;
    }
    int why = !f || ferror(f) ? errno : 0;
    if (f)
        fclose(f);
    if (!why)
        return text;
    free(text);
    errno = why;
    return NULL;
}

struct fault *rulefile_read(const char *file, size_t most, uint64_t seed, char **text)
{
    struct fault_error err;
    struct fault *rules = NULL;
    size_t len = 0;
    char *t = octets(file, most, &len);
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
