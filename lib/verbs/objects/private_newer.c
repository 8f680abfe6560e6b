/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The private nodes of later releases of rdma-core: drivers of vendors in those releases, and their
 * tools, are loaded only where the nodes exist. All nodes have the same functions here. This file
 * is in the shared library only. It is never optimized at link time, which loses .symver.
 */
#include <stdarg.h>
#include <stdio.h>

#include "private_names.h"
#include "verbs_priv.h"

int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index,
                       unsigned int *type);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);
const char *ibv_wr_opcode_str(enum ibv_wr_opcode opcode);

static void silent(void)
{
}

static void *nothing(void)
{
    return uv_null(-ENOSYS);
}

static int refused(void)
{
    return ENOSYS;
}

static int gid_type(struct ibv_context *context, uint8_t port, unsigned int index,
                    unsigned int *type)
{
    return ibv_query_gid_type(context, port, index, type);
}

static int sysfs_file(char *buf, size_t size, struct ibv_device *dev, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static int sysfs_file(char *buf, size_t size, struct ibv_device *dev, const char *format, ...)
{
    char name[256];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(name, sizeof(name), format, args);
    va_end(args);
    return len < 0 || len >= (int)sizeof(name)
               ? -1
               : ibv_read_sysfs_file(dev->ibdev_path, name, buf, size);
}

static const char *opcode_str(enum ibv_wr_opcode opcode)
{
    return ibv_wr_opcode_str(opcode);
}

/* `function` under another name in a node. */
#define ALIAS(n, name, function)                                                                   \
    UV_EXPORT extern __typeof(function) uv_##n##_##name __attribute__((alias(#function)));         \
    __asm__(".symver uv_" #n "_" #name ", " #name "@IBVERBS_PRIVATE_" #n);

#define NODE(n, SILENT, NOTHING, REFUSED)                                                          \
    PRIVATE_34(SILENT, NOTHING, REFUSED)                                                           \
    PRIVATE_LATER(SILENT, NOTHING, REFUSED)                                                        \
    ALIAS(n, verbs_register_driver_##n, silent)                                                    \
    ALIAS(n, ibv_query_gid_type, gid_type)                                                         \
    ALIAS(n, ibv_read_ibdev_sysfs_file, sysfs_file)                                                \
    ALIAS(n, ibv_wr_opcode_str, opcode_str)

#define SILENT_57(name)  ALIAS(57, name, silent)
#define NOTHING_57(name) ALIAS(57, name, nothing)
#define REFUSED_57(name) ALIAS(57, name, refused)
#define SILENT_59(name)  ALIAS(59, name, silent)
#define NOTHING_59(name) ALIAS(59, name, nothing)
#define REFUSED_59(name) ALIAS(59, name, refused)
#define SILENT_64(name)  ALIAS(64, name, silent)
#define NOTHING_64(name) ALIAS(64, name, nothing)
#define REFUSED_64(name) ALIAS(64, name, refused)
#define SILENT_65(name)  ALIAS(65, name, silent)
#define NOTHING_65(name) ALIAS(65, name, nothing)
#define REFUSED_65(name) ALIAS(65, name, refused)

NODE(57, SILENT_57, NOTHING_57, REFUSED_57)
NODE(59, SILENT_59, NOTHING_59, REFUSED_59)
NODE(64, SILENT_64, NOTHING_64, REFUSED_64)
NODE(65, SILENT_65, NOTHING_65, REFUSED_65)
