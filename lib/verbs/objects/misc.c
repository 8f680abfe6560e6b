/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions that need no device, and functions that this device doesn't support.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs_priv.h"

/* ---- fork: the daemon copies to and from this process, so children need nothing ---- */

int ibv_fork_init(void)
{
    return 0;
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
    return IBV_FORK_UNNEEDED;
}

UV_EXPORT int ibv_dontfork_range(void *base, size_t size);
UV_EXPORT int ibv_dofork_range(void *base, size_t size);

int ibv_dontfork_range(void *base, size_t size)
{
    (void)base;
    (void)size;
    return 0;
}

int ibv_dofork_range(void *base, size_t size)
{
    (void)base;
    (void)size;
    return 0;
}

/* ---- sysfs ---- */

UV_EXPORT const char *ibv_get_sysfs_path(void);
UV_EXPORT int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);
UV_EXPORT int ibv_read_ibdev_sysfs_file(char *buf, size_t size, struct ibv_device *dev,
                                        const char *format, ...);

const char *ibv_get_sysfs_path(void)
{
    return "/sys";
}

/* The number of octets without the last newline, or -1. */
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
    char path[512];
    if (size == 0 || snprintf(path, sizeof(path), "%s/%s", dir, file) >= (int)sizeof(path))
        return -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = read(fd, buf, size - 1);
    close(fd);
    if (n < 0)
        return -1;
    if (n > 0 && buf[n - 1] == '\n')
        n--;
    buf[n] = '\0';
    return (int)n;
}

int ibv_read_ibdev_sysfs_file(char *buf, size_t size, struct ibv_device *dev, const char *format,
                              ...)
{
    char name[256];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(name, sizeof(name), format, args);
    va_end(args);
    if (len < 0 || len >= (int)sizeof(name))
        return -1;
    return ibv_read_sysfs_file(dev->ibdev_path, name, buf, size);
}

/* ---- objects of other processes, device memory, dma-bufs ---- */

struct ibv_context *ibv_import_device(int cmd_fd)
{
    (void)cmd_fd;
    return uv_null(-EOPNOTSUPP);
}

struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t handle)
{
    (void)context;
    (void)handle;
    return uv_null(-EOPNOTSUPP);
}

void ibv_unimport_pd(struct ibv_pd *pd)
{
    (void)pd;
}

struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
    (void)pd;
    (void)handle;
    return uv_null(-EOPNOTSUPP);
}

void ibv_unimport_mr(struct ibv_mr *mr)
{
    (void)mr;
}

struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t handle)
{
    (void)context;
    (void)handle;
    return uv_null(-EOPNOTSUPP);
}

void ibv_unimport_dm(struct ibv_dm *dm)
{
    (void)dm;
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
                                 int fd, int access)
{
    (void)pd;
    (void)offset;
    (void)length;
    (void)iova;
    (void)fd;
    (void)access;
    return uv_null(-EOPNOTSUPP);
}

/* ---- connection establishment ---- */

int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    (void)qp;
    memset(ece, 0, sizeof(*ece));
    return uv_status(-EOPNOTSUPP);
}

int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    (void)qp;
    (void)ece;
    return uv_status(-EOPNOTSUPP);
}
