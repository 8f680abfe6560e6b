/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The emulated /sys and /dev: our paths, their contents, and the look-up of every entry that a
 * directory lists.
 */
#include <stdio.h>
#include <string.h>

#include "sysfs.h"
#include "unit.h"

#define IB "/sys/class/infiniband"

/* Two devices: urn0 goes with the kernel's interface eth7, urn1 with none. */
static struct sysfs_device devs[2];

static void set_up(void)
{
    for (unsigned i = 0; i < 2; i++) {
        struct sysfs_device *d = &devs[i];
        memset(d, 0, sizeof(*d));
        snprintf(d->dev.name, sizeof(d->dev.name), "urn%u", i);
        d->dev.index = i;
        memcpy(&d->dev.guid, "\x02\x00\x00\xff\xfe\x00\x00\x01", 8);
        snprintf(d->fw_ver, sizeof(d->fw_ver), "1.2.3");
        snprintf(d->netdev, sizeof(d->netdev), i == 0 ? "eth7" : "urn1");
        d->port.state = i == 0 ? URNIC_PORT_ACTIVE : URNIC_PORT_DOWN;
        d->port.gid_tbl_len = 300;
        d->port.link_mtu = 1500;
        d->port.line_rate = i == 0 ? 25000000000u : 0;
        d->port.mac[5] = 7;
        d->ngids = 1;
        d->gids[0] = (struct urnic_gid){.index = 3, .type = URNIC_GID_ROCE_V2};
        memcpy(d->gids[0].raw + 10, "\xff\xff\x0a\x00\x00\x01", 6);
    }
}

static struct sysfs_node node;

static const char *read_node(const char *path)
{
    set_up();
    sysfs_lookup(devs, 2, path, &node);
    if (node.kind != SYSFS_FILE)
        return NULL;
    ck_assert_uint_lt(node.len, SYSFS_TEXT);
    node.text[node.len] = '\0';
    return node.text;
}

static enum sysfs_kind kind(const char *path)
{
    set_up();
    sysfs_lookup(devs, 2, path, &node);
    return node.kind;
}

START_TEST(claimed_paths)
{
    static const struct {
        const char *path;
        bool ours;
    } rows[] = {
        {IB, true},
        {IB "/urn0/ports", true},
        {"//sys/class/infiniband", true},
        {"/sys/class/infiniband_verbs/uverbs0", true},
        {"/dev/infiniband/rdma_cm", true},
        {"/sys/class/misc/rdma_cm/dev", true},
        {"/sys/class/net", false},
        {"/dev/null", false},
        {"sys/class/infiniband", false},
        {"/", false},
        {"", false},
        {NULL, false},
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        ck_assert_msg(sysfs_claims(rows[i].path) == rows[i].ours, "%s", rows[i].path);
}
END_TEST

START_TEST(clean_paths)
{
    static const struct {
        const char *path, *clean;
    } rows[] = {
        {"/", "/"},
        {"//", "/"},
        {"/.", "/"},
        {"/..", "/"},
        {"/../..", "/"},
        {"/a/b/", "/a/b"},
        {"//a///b//", "/a/b"},
        {"/a/./b/.", "/a/b"},
        {"/a/../b", "/b"},
        {"/a/b/../../c", "/c"},
        {"/a/../../b", "/b"},
        {"/a/...", "/a/..."},
        {"/a/.b", "/a/.b"},
    };
    char to[32], small[6];
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ck_assert(sysfs_clean(to, sizeof(to), rows[i].path));
        ck_assert_str_eq(to, rows[i].clean);
    }
    ck_assert(!sysfs_clean(to, sizeof(to), "a/b"));
    ck_assert(!sysfs_clean(to, sizeof(to), ""));
    memset(small, 0x7F, sizeof(small));
    ck_assert(sysfs_clean(small, 5, "/abc"));
    ck_assert(!sysfs_clean(small, 5, "/abcd"));
    ck_assert(sysfs_clean(small, 5, "/abcdef/../x") == false);
    ck_assert_int_eq(small[5], 0x7F);
}
END_TEST

START_TEST(contents)
{
    static const struct {
        const char *path, *text;
    } rows[] = {
        {IB "/urn0/node_type", "1: CA\n"},
        {IB "/urn0/node_guid", "0200:00ff:fe00:0001\n"},
        {IB "/urn1/node_desc", "urn1\n"},
        {IB "/urn0/fw_ver", "1.2.3\n"},
        {IB "/urn0/ports/1/state", "4: ACTIVE\n"},
        {IB "/urn1/ports/1/state", "1: DOWN\n"},
        {IB "/urn0/ports/1/phys_state", "5: LinkUp\n"},
        {IB "/urn0/ports/1/rate", "25 Gb/sec (1X EDR)\n"},
        {IB "/urn1/ports/1/rate", "100 Gb/sec (4X EDR)\n"},
        {IB "/urn0/ports/1/gids/3", "0000:0000:0000:0000:0000:ffff:0a00:0001\n"},
        {IB "/urn0/ports/1/gids/0", "0000:0000:0000:0000:0000:0000:0000:0000\n"},
        {IB "/urn0/ports/1/gid_attrs/types/3", "RoCE v2\n"},
        {IB "/urn0/ports/1/gid_attrs/ndevs/3", "eth7\n"},
        {IB "/urn0/device/net/eth7/mtu", "1500\n"},
        {IB "/urn0/device/net/eth7/address", "00:00:00:00:00:07\n"},
        {"/sys/class/infiniband_verbs/uverbs1/ibdev", "urn1\n"},
        {"/sys/class/infiniband_verbs/uverbs1/dev", "231:193\n"},
        {"/sys/class/misc/rdma_cm/dev", "10:60\n"},
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *text = read_node(rows[i].path);
        ck_assert_msg(text != NULL, "%s is not there", rows[i].path);
        ck_assert_str_eq(text, rows[i].text);
    }
}
END_TEST

START_TEST(what_is_not_there)
{
    static const char *const paths[] = {
        IB "/urn2",
        IB "/urn",
        IB "/urn00",
        IB "/urn0/ports/2",
        IB "/urn0/ports/1/gids/300",
        IB "/urn0/ports/1/gids/-1",
        IB "/urn0/ports/1/gids/ 3",
        IB "/urn0/ports/1/gids/3x",
        IB "/urn0/ports/1/gids/3/x",
        IB "/urn0/ports/1/gids/18446744073709551619",
        IB "/urn0/ports/1/gid_attrs/types/0", /* an empty entry has no type */
        IB "/urn0/ports/1/gid_attrs/ndevs/0",
        IB "/urn0/device/net/eth8",
        IB "/urn1/device/net", /* no interface of the kernel's */
        IB "/urn0/%d",
        "/dev/infiniband/uverbs2",
        "/dev/infiniband/umad0",
        "/sys/class/infiniband_verbs/uverbs",
    };
    for (unsigned i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        ck_assert_msg(kind(paths[i]) == SYSFS_NONE, "%s is there", paths[i]);
    sysfs_lookup(devs, 0, IB, &node); /* without devices there is nothing */
    ck_assert_int_eq(node.kind, SYSFS_NONE);
}
END_TEST

START_TEST(device_files)
{
    ck_assert_int_eq(kind("/dev/infiniband/rdma_cm"), SYSFS_CDEV);
    ck_assert(node.rdma_cm);
    ck_assert_uint_eq(node.major, 10);
    ck_assert_uint_eq(node.minor, 60);
    ck_assert_int_eq(kind("/dev/infiniband/uverbs1"), SYSFS_CDEV);
    ck_assert(!node.rdma_cm);
    ck_assert_uint_eq(node.major, 231);
    ck_assert_uint_eq(node.minor, 193);
}
END_TEST

/* Everything that is listed is there, is listed once, and is found below, as `find` goes. */
static unsigned walk(const char *path, unsigned depth)
{
    struct sysfs_node dir;
    unsigned seen = 1;
    ck_assert_uint_lt(depth, 12);
    sysfs_lookup(devs, 2, path, &dir);
    ck_assert_msg(dir.kind != SYSFS_NONE, "%s is listed and not there", path);
    if (dir.kind != SYSFS_DIR)
        return seen;
    ck_assert_uint_le(dir.len, sizeof(dir.text));
    ck_assert_msg(dir.len > 0, "%s is empty", path);
    for (size_t at = 0; at < dir.len; at += strlen(dir.text + at) + 1) {
        char below[256];
        for (size_t other = 0; other < at; other += strlen(dir.text + other) + 1)
            ck_assert_str_ne(dir.text + at, dir.text + other);
        ck_assert_int_lt(snprintf(below, sizeof(below), "%s/%s", path, dir.text + at), 256);
        seen += walk(below, depth + 1);
    }
    return seen;
}

START_TEST(all_that_is_listed)
{
    set_up();
    ck_assert_uint_gt(walk(IB, 0), 2 * 300); /* the GIDs */
    ck_assert_uint_eq(walk("/dev/infiniband", 0), 4);
    ck_assert_uint_gt(walk("/sys/class/infiniband_verbs", 0), 8);
    ck_assert_uint_gt(walk("/sys/class/infiniband_mad", 0), 1);
    ck_assert_uint_gt(walk("/sys/class/misc/rdma_cm", 0), 2);
}
END_TEST

UNIT_MAIN("sysfs", claimed_paths, clean_paths, contents, what_is_not_there, device_files,
          all_that_is_listed)
