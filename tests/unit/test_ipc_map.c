/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ipc_map maps the object at addresses that suit huge pages; ipc_map_huge changes the pages, not
 * their contents. Objects without a file (SHM-16).
 */
#include "ipc_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "huge.h"
#include "unit.h"

static int object(size_t len)
{
    int fd = memfd_create("test", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, (off_t)len), 0);
    return fd;
}

START_TEST(what_is_small_is_mapped_anywhere)
{
    int fd = object(8192);
    char *p = ipc_map(fd, 4096, 4096, PROT_READ | PROT_WRITE);
    ck_assert_ptr_ne(p, MAP_FAILED);
    memcpy(p, "here", 4);
    char got[4];
    ck_assert_int_eq(pread(fd, got, 4, 4096), 4);
    ck_assert_mem_eq(got, "here", 4);
    munmap(p, 4096);
    close(fd);
}
END_TEST

START_TEST(what_is_large_suits_huge_pages)
{
    static const off_t offs[] = {0, 4096, IPC_HUGE - 4096, IPC_HUGE};
    int fd = object(4 * IPC_HUGE);
    for (unsigned i = 0; i < sizeof(offs) / sizeof(*offs); i++) {
        char *p = ipc_map(fd, offs[i], IPC_HUGE + 4096, PROT_READ | PROT_WRITE);
        ck_assert_ptr_ne(p, MAP_FAILED);
        ck_assert_uint_eq((uintptr_t)p % IPC_HUGE, (uintptr_t)offs[i] % IPC_HUGE);
        p[IPC_HUGE + 4095] = (char)('a' + i);
        char got;
        ck_assert_int_eq(pread(fd, &got, 1, offs[i] + (off_t)IPC_HUGE + 4095), 1);
        ck_assert_int_eq(got, 'a' + (int)i);
        munmap(p, IPC_HUGE + 4096);
    }
    close(fd);
}
END_TEST

/* An object made while no file may have more octets than this. No check meanwhile: Check writes
 * files, too. */
static int object_within(size_t limit, size_t len)
{
    struct rlimit old, low;
    getrlimit(RLIMIT_FSIZE, &old);
    low = old;
    low.rlim_cur = limit;
    setrlimit(RLIMIT_FSIZE, &low);
    int made = ipc_object_new("test", len);
    setrlimit(RLIMIT_FSIZE, &old);
    return made;
}

START_TEST(files_above_the_limit_are_refused)
{
    ck_assert_int_eq(object_within(4095, 4096), -EFBIG);
    int fd = object_within(4096, 4096);
    ck_assert_int_ge(fd, 0);
    ipc_object_close(fd);
    ck_assert_int_lt(fcntl(fd, F_GETFD), 0);
}
END_TEST

START_TEST(or_have_a_stand_in)
{
    const size_t len = IPC_HUGE + 4096;
    ipc_object_stand_ins();
    for (unsigned i = 0; i < 2000; i++) { /* more than can be at a time */
        int made = object_within(0, len);
        ck_assert(ipc_object_is_stand_in(made));
        char *a = ipc_map(made, 0, len, PROT_READ | PROT_WRITE);
        const char *b = ipc_map(made, 0, len, PROT_READ);
        ck_assert(a != MAP_FAILED && b != MAP_FAILED && a != b);
        ck_assert_int_eq(b[len - 1], 0);
        a[len - 1] = 'x';
        ck_assert_int_eq(b[len - 1], 'x');
        ipc_object_close(made);
        ck_assert_int_eq(b[len - 1], 'x');
        munmap(a, len);
        munmap((void *)(uintptr_t)b, len);
    }
    ck_assert_int_ge(ipc_object_new("test", 4096), 0); /* no limit */
}
END_TEST

START_TEST(what_mmap_refuses_is_refused)
{
    errno = 0;
    ck_assert_ptr_eq(ipc_map(-1, 0, 2 * IPC_HUGE, PROT_READ), MAP_FAILED);
    ck_assert_int_eq(errno, EBADF);
}
END_TEST

START_TEST(huge_pages_keep_the_content)
{
    size_t len = 3 * IPC_HUGE + 8192;
    int fd = object(len);
    uint8_t *p = ipc_map(fd, 0, len, PROT_READ | PROT_WRITE);
    ck_assert_ptr_ne(p, MAP_FAILED);
    for (size_t i = 0; i < len; i += 4096)
        memset(p + i, (int)(i / 4096 % 251) + 1, i % 8192 == 0 ? 4096 : 1);

    size_t got = ipc_map_huge(p, len);
    ck_assert_uint_le(got, 3 * IPC_HUGE);
    ck_assert_uint_eq(got % IPC_HUGE, 0);
    ck_assert_uint_eq(huge_octets(p), got);
    if (huge_possible())
        ck_assert_uint_gt(got, 0);
    for (size_t i = 0; i < len; i += 64) {
        bool set = i / 4096 % 2 == 0 || i % 4096 == 0;
        ck_assert_uint_eq(p[i], set ? i / 4096 % 251 + 1 : 0);
    }
    /* And again: that is no news. */
    ck_assert_uint_eq(ipc_map_huge(p, len), got);
    munmap(p, len);
    close(fd);
}
END_TEST

START_TEST(what_is_small_gets_no_huge_page)
{
    int fd = object(IPC_HUGE);
    uint8_t *p = ipc_map(fd, 0, IPC_HUGE, PROT_READ | PROT_WRITE);
    ck_assert_ptr_ne(p, MAP_FAILED);
    ck_assert_uint_eq(ipc_map_huge(p, IPC_HUGE - 4096), 0);
    munmap(p, IPC_HUGE);
    close(fd);
}
END_TEST

UNIT_MAIN("ipc map", what_is_small_is_mapped_anywhere, what_is_large_suits_huge_pages,
          files_above_the_limit_are_refused, or_have_a_stand_in, what_mmap_refuses_is_refused,
          huge_pages_keep_the_content, what_is_small_gets_no_huge_page)
