/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The live sample between two daemons that run already, each with a device urn0 of so many workers
 * (test_udp_wire.py). From the environment: LIVE_A and LIVE_B, their sockets; LIVE_WORKERS.
 */
#include <stdio.h>
#include <stdlib.h>

#include "live_sample.h"
#include "unit.h"

#define ENDS 4u

static const char *from_environment(const char *name)
{
    const char *value = getenv(name);
    ck_assert_msg(value != NULL, "%s is not set", name);
    return value;
}

START_TEST(live_ends)
{
    static struct rig rig[2];
    static struct end a[ENDS], b[ENDS];
    const unsigned workers = (unsigned)atoi(from_environment("LIVE_WORKERS"));
    snprintf(rig[0].socket, sizeof(rig[0].socket), "%s", from_environment("LIVE_A"));
    snprintf(rig[1].socket, sizeof(rig[1].socket), "%s", from_environment("LIVE_B"));
    for (unsigned i = 0; i < ENDS; i++) {
        rig_on_worker(live_worker(i, workers, false));
        end_open(&a[i], &rig[0], "urn0", LIVE_SIZE);
        rig_on_worker(live_worker(i, workers, true));
        end_open(&b[i], &rig[1], "urn0", LIVE_SIZE);
    }
    live_exchanges(a, b, ENDS);
    for (unsigned i = 0; i < ENDS; i++) {
        end_close(&a[i]);
        end_close(&b[i]);
    }
}
END_TEST

UNIT_MAIN("live ends", live_ends)
