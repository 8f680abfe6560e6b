/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The files about InfiniBand devices in /sys/class and /dev/infiniband, as a kernel shows them:
 * names, contents, links. Without I/O: the devices are the caller's.
 */
#ifndef URNIC_VERBS_SYSFS_H
#define URNIC_VERBS_SYSFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "urnic/urnic.h"

#define SYSFS_GIDS     256
#define SYSFS_NAME_MAX 64
#define SYSFS_TEXT     4096 /* octets of sysfs's longest file */

struct sysfs_device {
    struct urnic_device dev;
    char fw_ver[32];
    char netdev[SYSFS_NAME_MAX]; /* the interface of the device */
    struct urnic_port_attr port;
    struct urnic_gid gids[SYSFS_GIDS];
    int ngids;
};

enum sysfs_kind { SYSFS_NONE, SYSFS_DIR, SYSFS_FILE, SYSFS_CDEV };

struct sysfs_node {
    enum sysfs_kind kind;
    unsigned major, minor; /* SYSFS_CDEV */
    bool rdma_cm;          /* the character device that can be opened */
    size_t len;
    /* SYSFS_FILE: its contents. SYSFS_DIR: the names in it, each ended by a zero. */
    char text[2 * SYSFS_TEXT];
};

/* May this path be one of ours? Nothing is looked up. NULL is none. */
bool sysfs_claims(const char *path);
/* The path without double slashes, "." and ".."; false = it is relative or too long. */
bool sysfs_clean(char *to, size_t size, const char *path);
/* The inode number of the entry at a clean path: never 0. */
uint64_t sysfs_inode(const char *path);
/* The entry at a clean path; kind SYSFS_NONE: none. */
void sysfs_lookup(const struct sysfs_device *devs, int n, const char *path,
                  struct sysfs_node *node);

#endif
