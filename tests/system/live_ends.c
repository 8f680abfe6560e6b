/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The live sample between two devices of daemons that run already, each of so many workers
 * (test_udp_wire.py, test_live_sample.sh). From the environment: LIVE_A and LIVE_B, the daemons'
 * sockets; LIVE_WORKERS; LIVE_A_ENGINE and LIVE_B_ENGINE, where the engines of the ends run
 * ("daemon"); LIVE_B_DEVICE ("urn0").
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

static const char *from_environment_or(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value ? value : otherwise;
}

static void open_one(struct end *e, const struct rig *r, const char *device, int worker,
                     const char *engine)
{
    ck_assert_int_eq(setenv("URNIC_ENGINE", from_environment_or(engine, "daemon"), 1), 0);
    rig_on_worker(worker);
    end_open(e, r, device, LIVE_SIZE);
}

START_TEST(live_ends)
{
    static struct rig rig[2];
    static struct end a[ENDS], b[ENDS];
    const unsigned workers = (unsigned)atoi(from_environment("LIVE_WORKERS"));
    snprintf(rig[0].socket, sizeof(rig[0].socket), "%s", from_environment("LIVE_A"));
    snprintf(rig[1].socket, sizeof(rig[1].socket), "%s", from_environment("LIVE_B"));
    for (unsigned i = 0; i < ENDS; i++) {
        open_one(&a[i], &rig[0], "urn0", live_worker(i, workers, false), "LIVE_A_ENGINE");
        open_one(&b[i], &rig[1], from_environment_or("LIVE_B_DEVICE", "urn0"),
                 live_worker(i, workers, true), "LIVE_B_ENGINE");
    }
    live_exchanges(a, b, ENDS);
    for (unsigned i = 0; i < ENDS; i++) {
        end_close(&a[i]);
        end_close(&b[i]);
    }
}
END_TEST

UNIT_MAIN("live ends", live_ends)
