/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Subordinate users count as their owner (SEC-22), and no user takes all connections.
 */
#include <check.h>
#include <string.h>

#include "control.h"
#include "quota.h"
#include "subuid.h"
#include "unit.h"

static struct subuids read_text(char *text)
{
    struct subuids s = {0};
    FILE *f = fmemopen(text, strlen(text), "r");
    ck_assert_ptr_nonnull(f);
    subuids_read(&s, f);
    fclose(f);
    return s;
}

START_TEST(sec_22_subordinates)
{
    char text[] = "root:100000:65536\n4711:165536:1000\n\nno-such-user:1:10\n7:x:1\n8:1\n9:5:0\n"
                  "10:4294967295:2\n11:99:-1\n12:300000:1";
    struct subuids s = read_text(text);
    ck_assert_uint_eq(s.n, 3);
    ck_assert_uint_eq(subuids_owner(&s, 99999), 99999);
    ck_assert_uint_eq(subuids_owner(&s, 100000), 0);
    ck_assert_uint_eq(subuids_owner(&s, 165535), 0);
    ck_assert_uint_eq(subuids_owner(&s, 165536), 4711);
    ck_assert_uint_eq(subuids_owner(&s, 166536), 166536);
    ck_assert_uint_eq(subuids_owner(&s, 300000), 12);
    ck_assert_uint_eq(subuids_owner(&s, 1), 1);
    subuids_free(&s);
    ck_assert_uint_eq(subuids_owner(&s, 100000), 100000);
}
END_TEST

/* SEC-22: users that take all that they get, one after the other: fourteen leave a fifteenth three
 * connections, and many more leave one user two. */
START_TEST(sec_22_connections)
{
    unsigned taken = 0;
    for (unsigned user = 0; user < 20; user++) {
        unsigned own = 0;
        while (own < control_share(own, taken))
            own++;
        ck_assert_uint_le(own, (QUOTA_CLIENTS - taken + 1) / 2);
        ck_assert_uint_ge(own, user < 15 ? 3 : 2);
        taken += own;
    }
    ck_assert_uint_le(taken, QUOTA_CLIENTS);
    ck_assert_uint_eq(control_share(0, QUOTA_CLIENTS), 0);
    ck_assert_uint_eq(control_share(0, QUOTA_CLIENTS + QUOTA_CLIENTS_RESERVE), 0);
}
END_TEST

UNIT_MAIN("subuid", sec_22_subordinates, sec_22_connections)
