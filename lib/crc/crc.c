/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which implementation is used. The list is in the order that was measured (doc/performance.md):
 * vectors twice as long are quicker on every CPU that has them, ISA-L comes after them, because it
 * reads a copy once more, and zlib is last. QEMU emulates carry-less multiplication bit by bit, so
 * on its CPUs the tables of zlib are the quickest.
 */
#include "crc.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "crc_gone.h"
#include "crc_impl.h"
#include "guard.h"

enum { CRC_HAS_NOTHING, CRC_HAS_AVX, CRC_HAS_AVX2, CRC_HAS_AVX512 };

static const struct crc_way {
    struct crc_impl impl;
    int needs;
} ways[] = {
#ifdef __x86_64__
    {{"avx512", crc_avx512_update, crc_avx512_copy, true}, CRC_HAS_AVX512},
    {{"avx2", crc_avx2_update, crc_avx2_copy, true}, CRC_HAS_AVX2},
    {{"avx", crc_avx_update, crc_avx_copy, true}, CRC_HAS_AVX},
#endif
    {{"isal", crc_isal_update, crc_isal_copy, false}, CRC_HAS_NOTHING},
    {{"zlib", crc_zlib_update, crc_zlib_copy, false}, CRC_HAS_NOTHING},
};

#define WAYS (sizeof(ways) / sizeof(ways[0]))

static _Atomic(const struct crc_impl *) in_use;

#ifdef __x86_64__
/* The compiler's support asks the operating system, too, whether it saves the registers. */
static int crc_has(void)
{
    if (!__builtin_cpu_supports("avx") || !__builtin_cpu_supports("pclmul"))
        return CRC_HAS_NOTHING;
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("vpclmulqdq"))
        return CRC_HAS_AVX;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512vbmi"))
        return CRC_HAS_AVX2;
    return CRC_HAS_AVX512;
}

#define CPUID_HYPERVISOR (1u << 31) /* of leaf 1's ecx: the leaf below exists */
#define CPUID_SIGNATURE  0x40000000u

/* Does QEMU emulate this CPU's instructions (its accelerator TCG)? */
static bool crc_is_emulated(void)
{
    unsigned a, b, c, d, said[3];
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & CPUID_HYPERVISOR) == 0)
        return false;
    __cpuid(CPUID_SIGNATURE, a, said[0], said[1], said[2]);
    return memcmp(said, "TCGTCGTCGTCG", sizeof(said)) == 0;
}
#else
static int crc_has(void)
{
    return CRC_HAS_NOTHING;
}

static bool crc_is_emulated(void)
{
    return false;
}
#endif

const char *crc_fastest(void)
{
    unsigned i = 0;
    while (crc_has() < ways[i].needs)
        i++;
    return crc_is_emulated() ? "zlib" : ways[i].impl.name;
}

const struct crc_impl *crc_impl(unsigned i)
{
    return i < WAYS ? &ways[i].impl : NULL;
}

bool crc_runs_here(const struct crc_impl *impl)
{
    const struct crc_way *way = (const struct crc_way *)(const void *)impl;
    return crc_has() >= way->needs;
}

static void crc_explain(const char *name, int rc, char *err, size_t size)
{
    if (!err || size == 0)
        return;
    int n = snprintf(err, size, CRC_ENV "=%s: %s; want one of these:", name,
                     rc == -ENOENT ? "no such implementation" : "not on this CPU");
    for (unsigned i = 0; i < WAYS && n >= 0 && (size_t)n < size; i++) {
        if (crc_runs_here(&ways[i].impl))
            n += snprintf(err + n, size - (size_t)n, " %s", ways[i].impl.name);
    }
}

int crc_choose(const char *name, char *err, size_t size)
{
    int rc = -ENOENT;
    if (!name || !*name)
        name = crc_fastest();
    for (unsigned i = 0; i < WAYS; i++) {
        const struct crc_impl *impl = &ways[i].impl;
        if (strcmp(name, impl->name) != 0)
            continue;
        if (crc_runs_here(impl)) {
            atomic_store_explicit(&in_use, impl, memory_order_relaxed);
            return 0;
        }
        rc = -ENOTSUP;
    }
    crc_explain(name, rc, err, size);
    return rc;
}

/* Out of line: it happens once. */
__attribute__((noinline)) static const struct crc_impl *crc_first(void)
{
    crc_choose(NULL, NULL, 0);
    return atomic_load_explicit(&in_use, memory_order_relaxed);
}

const struct crc_impl *crc_in_use(void)
{
    const struct crc_impl *impl = atomic_load_explicit(&in_use, memory_order_relaxed);
    return __builtin_expect(impl != NULL, 1) ? impl : crc_first();
}

uint32_t crc_update(uint32_t crc, const void *p, size_t n)
{
    return crc_in_use()->update(crc, p, n);
}

uint32_t crc_copy(uint32_t crc, void *dst, const void *src, size_t n)
{
    return crc_in_use()->copy(crc, dst, src, n);
}

static int64_t crc_take_piece(const struct crc_impl *impl, struct guard_frame *frame, uint32_t crc,
                              void *dst, const struct crc_piece *piece)
{
    if (!frame)
        return impl->copy(crc, dst, piece->p, piece->len);
    if (impl->one_pass)
        return guard_call(frame, crc, dst, piece->p, piece->len, impl->copy);
    return guard_copy(dst, piece->p, piece->len) < 0 ? GUARD_FAULT
                                                     : impl->update(crc, dst, piece->len);
}

int crc_gather_gone(struct guard_frame *frame, uint32_t *crc, void *dst,
                    const struct crc_piece *pieces, unsigned npieces)
{
    const struct crc_impl *impl = crc_in_use();
    uint8_t *at = dst;
    for (unsigned i = 0; i < npieces; at += pieces[i++].len) {
        int64_t next = crc_take_piece(impl, frame, *crc, at, &pieces[i]);
        if (next == GUARD_FAULT)
            return -EFAULT;
        *crc = (uint32_t)next;
    }
    return 0;
}

uint32_t crc_gather(uint32_t crc, void *dst, const struct crc_piece *pieces, unsigned npieces)
{
    (void)crc_gather_gone(NULL, &crc, dst, pieces, npieces);
    return crc;
}
