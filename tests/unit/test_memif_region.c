/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared memory that its owner can't take away.
 */
#include "memif_region.h"

#include "test_memif_peer.h"

START_TEST(own_region_is_sealed_and_shared)
{
    struct memif_region own, other;
    ck_assert_int_eq(memif_region_create(&own, 12345), 0);
    ck_assert_int_lt(ftruncate(own.fd, 4096), 0);
    ck_assert_int_lt(ftruncate(own.fd, 1 << 20), 0);
    ck_assert_int_lt(fcntl(own.fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
    ck_assert_int_eq(memif_region_map(&other, own.fd, 12345, false), MEMIF_OK);
    own.base[12344] = 0x5a;
    ck_assert_uint_eq(other.base[12344], 0x5a);
    memif_region_free(&other);
    memif_region_free(&own);
    memif_region_free(&own); /* harmless */
    ck_assert_uint_eq(peer_mappings(), 0);
}
END_TEST

static const struct {
    const char *fact;
    unsigned make; /* MFD_*; ~0u: /dev/zero */
    int seals;
    uint64_t has, said;
    bool trust;
    enum memif_reason result;
} maps[] = {
    {"sealed against shrinking", MFD_ALLOW_SEALING, F_SEAL_SHRINK, 8192, 8192, false, MEMIF_OK},
    {"larger than said", MFD_ALLOW_SEALING, F_SEAL_SHRINK, 8192, 4096, false, MEMIF_OK},
    {"smaller than said", MFD_ALLOW_SEALING, F_SEAL_SHRINK, 4096, 8192, false, MEMIF_REGION},
    {"not sealed", MFD_ALLOW_SEALING, 0, 8192, 8192, false, MEMIF_UNSEALED},
    {"not sealed but trusted", MFD_ALLOW_SEALING, 0, 8192, 8192, true, MEMIF_OK},
    {"trusted, but too small", MFD_ALLOW_SEALING, 0, 4096, 8192, true, MEMIF_REGION},
    {"sealed against growing only", MFD_ALLOW_SEALING, F_SEAL_GROW, 8192, 8192, false,
     MEMIF_UNSEALED},
    {"can't be sealed", 0, 0, 8192, 8192, false, MEMIF_UNSEALED},
    {"read-only for newcomers", MFD_ALLOW_SEALING, F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE, 8192, 8192,
     false, MEMIF_REGION},
    {"a device", ~0u, 0, 0, 4096, true, MEMIF_REGION},
    {"over 4 GiB", MFD_ALLOW_SEALING, F_SEAL_SHRINK, (1ull << 32) + 4096, (1ull << 32) + 4096,
     false, MEMIF_REGION},
    {"huge pages, of which none may be left", MFD_ALLOW_SEALING | MFD_HUGETLB, F_SEAL_SHRINK,
     2u << 20, 2u << 20, false, MEMIF_UNSEALED},
};

START_TEST(received_region_is_checked)
{
    struct memif_region r;
    int fd =
        maps[_i].make == ~0u ? open("/dev/zero", O_RDWR) : memfd_create("memif", maps[_i].make);
    unsigned before = peer_count("/proc/self/fd");
    if (fd < 0 && maps[_i].make != ~0u && maps[_i].make & MFD_HUGETLB)
        return; /* a kernel without them */
    ck_assert_int_ge(fd, 0);
    if (maps[_i].make != ~0u)
        ck_assert_int_eq(ftruncate(fd, (off_t)maps[_i].has), 0);
    if (maps[_i].seals)
        ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, maps[_i].seals), 0);
    ck_assert_msg(memif_region_map(&r, fd, maps[_i].said, maps[_i].trust) == maps[_i].result, "%s",
                  maps[_i].fact);
    ck_assert_msg((r.base != NULL) == (maps[_i].result == MEMIF_OK), "%s", maps[_i].fact);
    ck_assert_uint_eq(peer_count("/proc/self/fd"), before);
    close(fd);
    memif_region_free(&r);
    ck_assert_uint_eq(peer_mappings(), 0);
}
END_TEST

START_TEST(bounds_are_checked_without_overflow)
{
    struct memif_region r = {.base = (uint8_t *)1, .size = 0x1000};
    ck_assert_ptr_eq(memif_region_at(&r, 0, 0x1000), (uint8_t *)1);
    ck_assert_ptr_nonnull(memif_region_at(&r, 0xfff, 1));
    ck_assert_ptr_null(memif_region_at(&r, 0xfff, 2));
    ck_assert_ptr_null(memif_region_at(&r, 0xffffffffu, 1));
    ck_assert_ptr_null(memif_region_at(&r, 1, 0xffffffffu));
    ck_assert_ptr_null(memif_region_at(&r, 0xffffffffu, 0xffffffffu));
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("memif_region");

    tcase_add_test(t, own_region_is_sealed_and_shared);
    tcase_add_loop_test(t, received_region_is_checked, 0, sizeof(maps) / sizeof(maps[0]));
    tcase_add_test(t, bounds_are_checked_without_overflow);
    return peer_main("memif_region", t);
}
