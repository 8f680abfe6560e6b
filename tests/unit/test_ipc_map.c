/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ipc_map maps the object at addresses that suit huge pages; ipc_map_huge changes the pages, not
 * their contents.
 */
#include "ipc_map.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
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
          what_mmap_refuses_is_refused, huge_pages_keep_the_content,
          what_is_small_gets_no_huge_page)
