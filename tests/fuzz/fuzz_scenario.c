/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any text at all as a scenario: it is refused with a reason, or says what a network can be built
 * from. Small ones are built, and run for a microsecond.
 */
#include "sim.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct sim_scenario s;
    struct sim_error err;
    struct sim *sim;
    sim_scenario_init(&s);
    if (sim_scenario_parse(&s, (const char *)data, size, 0, &err)) {
        FUZZ_CHECK(err.reason[0]);
        return 0;
    }
    uint32_t hosts = sim_topo_hosts(&s.topo);
    FUZZ_CHECK(hosts >= 2 && s.points >= 1 && s.points <= SIM_POINTS);
    for (unsigned i = 0; i < s.nloads; i++) /* what it makes must stay small */
        if (s.load[i].times > 4 || s.load[i].count > 16 || s.load[i].kind == SIM_ARRIVALS)
            return 0;
    if (hosts > 16)
        return 0;
    if (!sim_create(&s, NULL, &sim, &err)) {
        sim_run(sim, 1000);
        sim_destroy(sim);
    } else {
        FUZZ_CHECK(err.reason[0]);
    }
    return 0;
}
