/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The tree, from a table: a row is a pattern of path components, of which %d is a device's name, %u
 * "uverbs" and its index, %g a number of the GID table, %n its interface. Directories are the
 * common beginnings of rows.
 */
#include "sysfs.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CM_MAJOR    10 /* of miscellaneous devices */
#define CM_MINOR    60
#define VERBS_MAJOR 231
#define VERBS_MINOR 192

/* The contents of a device's file; `gid` is the number in its path. */
typedef void (*say)(struct sysfs_node *node, const struct sysfs_device *d, unsigned gid);

static void put(struct sysfs_node *node, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void put(struct sysfs_node *node, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(node->text, sizeof(node->text), format, args);
    va_end(args);
    node->len = n > 0 ? (size_t)n : 0;
}

/* ---- contents ---- */

static void put_guid(struct sysfs_node *node, const struct sysfs_device *d, unsigned gid)
{
    uint8_t o[8];
    (void)gid;
    memcpy(o, &d->dev.guid, sizeof(o));
    put(node, "%02x%02x:%02x%02x:%02x%02x:%02x%02x\n", o[0], o[1], o[2], o[3], o[4], o[5], o[6],
        o[7]);
}

static void put_fw_ver(struct sysfs_node *node, const struct sysfs_device *d, unsigned gid)
{
    (void)gid;
    put(node, "%s\n", d->fw_ver);
}

static void put_name(struct sysfs_node *node, const struct sysfs_device *d, unsigned gid)
{
    (void)gid;
    put(node, "%s\n", d->dev.name);
}

static void put_uevent(struct sysfs_node *node, const struct sysfs_device *d, unsigned gid)
{
    (void)gid;
    put(node, "NAME=%s\n", d->dev.name);
}

static void put_index(struct sysfs_node *node, const struct sysfs_device *d, unsigned gid)
{
    (void)gid;
    put(node, "%u\n", d->dev.index);
}

static void put_verbs_dev(struct sysfs_node *node, const struct sysfs_device *d, unsigned gid)
{
    (void)gid;
    put(node, "%u:%u\n", VERBS_MAJOR, VERBS_MINOR + d->dev.index);
}

static void put_state(struct sysfs_node *node, const struct sysfs_device *d, unsigned gid)
{
    (void)gid;
    put(node, "%s\n", d->port.state == URNIC_PORT_ACTIVE ? "4: ACTIVE" : "1: DOWN");
}

static void put_phys_state(struct sysfs_node *node, const struct sysfs_device *d, unsigned gid)
{
    (void)gid;
    put(node, "%s\n", d->port.state == URNIC_PORT_ACTIVE ? "5: LinkUp" : "3: Disabled");
}

/* The kernel's name of a speed; the fastest that is not above it. */
static void put_rate(struct sysfs_node *node, const struct sysfs_device *d, unsigned gid)
{
    static const struct {
        unsigned gbps;
        const char *name;
    } rates[] = {
        {400, "400 Gb/sec (4X NDR)"}, {200, "200 Gb/sec (4X HDR)"}, {100, "100 Gb/sec (4X EDR)"},
        {56, "56 Gb/sec (4X FDR)"},   {40, "40 Gb/sec (4X QDR)"},   {25, "25 Gb/sec (1X EDR)"},
        {10, "10 Gb/sec (4X SDR)"},   {0, "2.5 Gb/sec (1X SDR)"},
    };
    unsigned gbps = d->port.line_rate != 0 ? (unsigned)(d->port.line_rate / 1000000000) : 100,
             i = 0;
    (void)gid;

    while (rates[i].gbps > gbps)
        i++;
    put(node, "%s\n", rates[i].name);
}

static void put_gid(struct sysfs_node *node, const struct sysfs_device *d, unsigned gid)
{
    static const uint8_t none[16];
    const uint8_t *o = none;
    for (int i = 0; i < d->ngids; i++)
        if (d->gids[i].index == gid)
            o = d->gids[i].raw;
    put(node, "%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x\n", o[0],
        o[1], o[2], o[3], o[4], o[5], o[6], o[7], o[8], o[9], o[10], o[11], o[12], o[13], o[14],
        o[15]);
}

static const struct urnic_gid *entry(const struct sysfs_device *d, unsigned gid)
{
    for (int i = 0; i < d->ngids; i++)
        if (d->gids[i].index == gid)
            return &d->gids[i];
    return NULL;
}

static void put_gid_type(struct sysfs_node *node, const struct sysfs_device *d, unsigned gid)
{
    const struct urnic_gid *e = entry(d, gid);
    put(node, "%s\n", e->type == URNIC_GID_ROCE_V2 ? "RoCE v2" : "IB/RoCE v1");
}

static void put_gid_ndev(struct sysfs_node *node, const struct sysfs_device *d, unsigned gid)
{
    (void)gid;
    put(node, "%s\n", d->netdev);
}

static void put_mac(struct sysfs_node *node, const struct sysfs_device *d, unsigned gid)
{
    const uint8_t *m = d->port.mac;
    (void)gid;
    put(node, "%02x:%02x:%02x:%02x:%02x:%02x\n", m[0], m[1], m[2], m[3], m[4], m[5]);
}

static void put_mtu(struct sysfs_node *node, const struct sysfs_device *d, unsigned gid)
{
    (void)gid;
    put(node, "%u\n", d->port.link_mtu);
}

static const struct row {
    const char *path;
    say say;
    const char *text; /* the contents, if they are the same for each device */
    bool taken;       /* only for used GID entries: in the kernel's tree others can't be read */
} rows[] = {
    {"/sys/class/infiniband/%d/node_type", NULL, "1: CA\n"},
    {"/sys/class/infiniband/%d/node_guid", put_guid, NULL},
    {"/sys/class/infiniband/%d/sys_image_guid", put_guid, NULL},
    {"/sys/class/infiniband/%d/fw_ver", put_fw_ver, NULL},
    {"/sys/class/infiniband/%d/hw_rev", NULL, "0x0\n"},
    {"/sys/class/infiniband/%d/hca_type", NULL, "urnic\n"},
    {"/sys/class/infiniband/%d/board_id", NULL, "urnic\n"},
    {"/sys/class/infiniband/%d/node_desc", put_name, NULL},
    {"/sys/class/infiniband/%d/index", put_index, NULL},
    {"/sys/class/infiniband/%d/uevent", put_uevent, NULL},
    {"/sys/class/infiniband/%d/device/net/%n/address", put_mac, NULL},
    {"/sys/class/infiniband/%d/device/net/%n/mtu", put_mtu, NULL},
    {"/sys/class/infiniband/%d/device/infiniband_verbs/%u/dev", put_verbs_dev, NULL},
    {"/sys/class/infiniband/%d/device/numa_node", NULL, "-1\n"},
    {"/sys/class/infiniband/%d/ports/1/state", put_state, NULL},
    {"/sys/class/infiniband/%d/ports/1/phys_state", put_phys_state, NULL},
    {"/sys/class/infiniband/%d/ports/1/rate", put_rate, NULL},
    {"/sys/class/infiniband/%d/ports/1/link_layer", NULL, "Ethernet\n"},
    {"/sys/class/infiniband/%d/ports/1/lid", NULL, "0x0\n"},
    {"/sys/class/infiniband/%d/ports/1/lid_mask_count", NULL, "0\n"},
    {"/sys/class/infiniband/%d/ports/1/sm_lid", NULL, "0x0\n"},
    {"/sys/class/infiniband/%d/ports/1/sm_sl", NULL, "0\n"},
    {"/sys/class/infiniband/%d/ports/1/cap_mask", NULL, "0x00010000\n"},
    {"/sys/class/infiniband/%d/ports/1/pkeys/0", NULL, "0xffff\n"},
    {"/sys/class/infiniband/%d/ports/1/gids/%g", put_gid, NULL},
    {"/sys/class/infiniband/%d/ports/1/gid_attrs/types/%g", put_gid_type, NULL, true},
    {"/sys/class/infiniband/%d/ports/1/gid_attrs/ndevs/%g", put_gid_ndev, NULL, true},
    {"/sys/class/infiniband_verbs/abi_version", NULL, "6\n"},
    {"/sys/class/infiniband_verbs/%u/ibdev", put_name, NULL},
    {"/sys/class/infiniband_verbs/%u/dev", put_verbs_dev, NULL},
    {"/sys/class/infiniband_verbs/%u/abi_version", NULL, "1\n"},
    {"/sys/class/infiniband_mad/abi_version", NULL, "5\n"},
    {"/sys/class/misc/rdma_cm/abi_version", NULL, "4\n"},
    {"/sys/class/misc/rdma_cm/dev", NULL, "10:60\n"},
    {"/dev/infiniband/rdma_cm", NULL, NULL},
    {"/dev/infiniband/%u", NULL, NULL},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* ---- paths ---- */

static const char *const claims[] = {"/sys/class/infiniband", "/sys/class/misc/rdma_cm",
                                     "/dev/infiniband"};

bool sysfs_claims(const char *path)
{
    if (path == NULL || path[0] != '/')
        return false;
    while (path[1] == '/')
        path++;
    if (path[1] != 's' && path[1] != 'd')
        return false;
    for (unsigned i = 0; i < sizeof(claims) / sizeof(claims[0]); i++)
        if (strncmp(path, claims[i], strlen(claims[i])) == 0)
            return true;
    return false;
}

bool sysfs_clean(char *to, size_t size, const char *path)
{
    size_t len = 0;
    if (path[0] != '/')
        return false;
    while (*path != '\0') {
        path += strspn(path, "/");
        size_t n = strcspn(path, "/");
        if (n == 0 || (n == 1 && path[0] == '.')) {
            path += n;
            continue;
        }
        if (n == 2 && path[0] == '.' && path[1] == '.') {
            while (len > 0 && to[--len] != '/')
                ;
            path += n;
            continue;
        }
        if (len + n + 2 > size)
            return false;
        to[len++] = '/';
        memcpy(to + len, path, n);
        len += n;
        path += n;
    }
    if (len == 0)
        to[len++] = '/';
    to[len] = '\0';
    return true;
}

uint64_t sysfs_inode(const char *path)
{
    uint64_t h = 14695981039346656037u; /* FNV-1a */
    while (*path != '\0')
        h = (h ^ (uint8_t)*path++) * 1099511628211u;
    return h >> 1 | 1;
}

/* The first component of a path, with its slash. */
static size_t component(const char *path)
{
    return path[0] == '/' ? 1 + strcspn(path + 1, "/") : 0;
}

/* Write a component of a row's path to `to`, with the device's value in place of a wildcard. */
static void spell(char *to, size_t size, const char *pattern, size_t n,
                  const struct sysfs_device *d, unsigned gid)
{
    char what = (char)(n == 3 && pattern[1] == '%' ? pattern[2] : '\0');
    if (what == 'd')
        snprintf(to, size, "/%s", d->dev.name);
    else if (what == 'u')
        snprintf(to, size, "/uverbs%u", d->dev.index);
    else if (what == 'n')
        snprintf(to, size, "/%s", d->netdev);
    else if (what == 'g')
        snprintf(to, size, "/%u", gid);
    else
        snprintf(to, size, "%.*s", (int)n, pattern);
}

static bool names_gid(const char *pattern, size_t n)
{
    return n == 3 && pattern[1] == '%' && pattern[2] == 'g';
}

/* Match the path with a row. Returns the rest of the row, "" = a full match, NULL = no match. */
static const char *follow(const struct row *r, const char *path, const struct sysfs_device *d,
                          unsigned *gid)
{
    const char *at = r->path;
    char want[SYSFS_NAME_MAX + 8];

    /* Programs ask `ip` about the entries of device/net, so only an interface of the kernel's is
     * listed. */
    if (strstr(at, "/%n") != NULL && strcmp(d->netdev, d->dev.name) == 0)
        return NULL;
    while (*path != '\0') {
        size_t n = component(at), m = component(path);
        if (n == 0 || m == 0)
            return NULL;
        if (names_gid(at, n)) {
            char *end;
            unsigned long v = strtoul(path + 1, &end, 10);
            if (end != path + m || v >= d->port.gid_tbl_len || path[1] < '0' || path[1] > '9')
                return NULL;
            if (r->taken && entry(d, (unsigned)v) == NULL)
                return NULL;
            *gid = (unsigned)v;
        } else {
            spell(want, sizeof(want), at, n, d, 0);
            if (strlen(want) != m || memcmp(want, path, m) != 0)
                return NULL;
        }
        at += n;
        path += m;
    }
    return at;
}

static bool listed(const struct sysfs_node *node, const char *name)
{
    for (size_t at = 0; at < node->len; at += strlen(node->text + at) + 1)
        if (strcmp(node->text + at, name) == 0)
            return true;
    return false;
}

static void list(struct sysfs_node *node, const char *name)
{
    size_t n = strlen(name) + 1;
    if (listed(node, name) || node->len + n > sizeof(node->text))
        return;
    memcpy(node->text + node->len, name, n);
    node->len += n;
}

/* The next component of the row is a name in the directory. */
static void list_next(struct sysfs_node *node, const struct row *r, const char *left,
                      const struct sysfs_device *d)
{
    char name[SYSFS_NAME_MAX + 8];
    size_t n = component(left);
    bool gids = names_gid(left, n);
    unsigned many = gids ? d->port.gid_tbl_len : 1;
    node->kind = SYSFS_DIR;
    for (unsigned i = 0; i < many; i++) {
        if (gids && r->taken && entry(d, i) == NULL)
            continue;
        spell(name, sizeof(name), left, n, d, i);
        list(node, name + 1);
    }
}

static void fill(struct sysfs_node *node, const struct row *r, const struct sysfs_device *d,
                 unsigned gid)
{
    node->kind = SYSFS_FILE;
    if (r->say != NULL) {
        r->say(node, d, gid);
    } else if (r->text != NULL) {
        put(node, "%s", r->text);
    } else {
        node->kind = SYSFS_CDEV;
        node->rdma_cm = strstr(r->path, "%u") == NULL;
        node->major = node->rdma_cm ? CM_MAJOR : VERBS_MAJOR;
        node->minor = node->rdma_cm ? CM_MINOR : VERBS_MINOR + d->dev.index;
    }
}

void sysfs_lookup(const struct sysfs_device *devs, int n, const char *path, struct sysfs_node *node)
{
    node->kind = SYSFS_NONE;
    node->rdma_cm = false;
    node->len = 0;
    for (int i = 0; i < n; i++) {
        for (unsigned r = 0; r < ROWS; r++) {
            unsigned gid = 0;
            const char *left = follow(&rows[r], path, &devs[i], &gid);
            if (left == NULL)
                continue;
            if (*left == '\0') {
                fill(node, &rows[r], &devs[i], gid);
                return;
            }
            list_next(node, &rows[r], left, &devs[i]);
        }
    }
}
