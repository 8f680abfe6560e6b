/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any text at all as a packet script: it is refused with a line and a reason, or runs to a verdict.
 */
#include "drill.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct drill_error err;
    struct drill_report r;
    struct drill_script *s = drill_parse((const char *)data, size, &err);
    if (!s) {
        FUZZ_CHECK(err.text[0]);
        return 0;
    }
    const struct drill_options o = {.psn = 0xFFFFFE, .max_steps = 500};
    drill_run(s, &o, &r);
    FUZZ_CHECK(r.verdict <= DRILL_SKIP);
    FUZZ_CHECK(r.verdict == DRILL_PASS || r.what[0]);
    drill_free(s);
    return 0;
}
