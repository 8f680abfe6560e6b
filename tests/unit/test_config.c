/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The daemon's configuration: accepted texts, and errors.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "options.h"
#include "unit.h"

static const struct {
    const char *text;
    const char *port, *name;
    unsigned naddr;
    const char *error; /* must be in the message; NULL = good */
} devices[] = {
    {"name=urn0,port=mem:L,addr=10.0.0.1/24", "mem:L", "urn0", 1, NULL},
    {"port=mem:L,loss=0.1,delay=5us,addr=10.0.0.1/24;fd00::1/64", "mem:L,loss=0.1,delay=5us", "", 2,
     NULL},
    {"port=memif:/a,role=server", "memif:/a,role=server", "", 0, NULL},
    {"addr=10.0.0.1,port=mem:x,mtu=9000,vlan=7,worker=1,mac=02:00:00:00:00:01", "mem:x", "", 1,
     NULL},
    {"port=mem:x,cc=dcqcn:paper,g=1/16,timer=55us,name=urn0,addr=10.0.0.1", "mem:x", "urn0", 1,
     NULL},
    {"port=mem:x,cc=dcqcn:moon", NULL, NULL, 0, "known: default paper"},
    {"port=mem:x,cc=dcqcn,g=7", NULL, NULL, 0, "g=7"},
    {"colour=red", NULL, NULL, 0, "colour"},
    {"port=nonsense", NULL, NULL, 0, "port=nonsense"},
    {"addr=10.0.0.1/33", NULL, NULL, 0, "addr=10.0.0.1/33"},
    {"addr=fd00::1/129", NULL, NULL, 0, "fd00::1/129"},
    {"addr=224.0.0.1/24", NULL, NULL, 0, "multicast"},
    {"addr=ten", NULL, NULL, 0, "addr=ten"},
    {"addr=0.0.0.0/0", NULL, NULL, 0, "addr=0.0.0.0/0: stands for"},
    {"addr=::/64", NULL, NULL, 0, "addr=::/64: stands for"},
    {"addr=255.255.255.255", NULL, NULL, 0, "addr=255.255.255.255: stands for"},
    {"addr=10.0.0.1/24;10.1.0.0/16", NULL, NULL, 0, "addr=10.1.0.0/16: stands for"},
    {"addr=10.0.0.255/24", NULL, NULL, 0, "addr=10.0.0.255/24: stands for"},
    {"port=mem:x,addr=10.0.0.0/31;10.0.0.255/32;10.0.2.255/22;fd00::/64", "mem:x", "", 4, NULL},
    {"mtu=99999", NULL, NULL, 0, "mtu=99999"},
    {"mtu=100", NULL, NULL, 0, "mtu=100"},
    {"vlan=4095", NULL, NULL, 0, "vlan=4095"},
    {"dscp=64", NULL, NULL, 0, "dscp=64"},
    {"mac=01:00:00:00:00:01", NULL, NULL, 0, "unicast"},
    {"mac=02:00:00:00:00", NULL, NULL, 0, "mac="},
    {"mac=-2:00:00:00:00:01", NULL, NULL, 0, "mac="},
    {"mac=02:00: 0:00:00:+1", NULL, NULL, 0, "mac="},
    {"worker=99", NULL, NULL, 0, "worker=99"},
    {"name=a b", NULL, NULL, 0, "name=a b"},
    {"name=0123456789abcdef0", NULL, NULL, 0, "name="},
    {"addr=10.0.0.1/24;fd00::1/64;10.0.0.1/16", NULL, NULL, 0,
     "10.0.0.1/16: the address is there twice"},
    {"port=mem:x,addr=10.0.0.1/24,addr=fd00::1/64", "mem:x", "", 2, NULL},
    {"name=urn0,port=mem:x,name=urn1", NULL, NULL, 0, "name=urn1: name is there twice"},
    {"gw=10.0.0.1;10.0.0.2", NULL, NULL, 0, "one gateway"},
    {"gw=ff02::2", NULL, NULL, 0, "multicast"},
    {"neigh=other", NULL, NULL, 0, "neigh=other"},
    {"weights=root", NULL, NULL, 0, "weights=root: want USER:WEIGHT"},
    {"weights=root:0", NULL, NULL, 0, "weights=root:0: want USER:WEIGHT"},
    {"weights=root:17", NULL, NULL, 0, "weights=root:17: want USER:WEIGHT"},
    {"weights=no such user:2", NULL, NULL, 0, "weights: there is no user no such user"},
    {"weights=4294967295:2", NULL, NULL, 0, "weights: there is no user 4294967295"},
    {"weights=root:2;0:3", NULL, NULL, 0, "weights: the user 0 is there twice"},
    {"weights=1:1;2:1;3:1;4:1;5:1;6:1;7:1;8:1;9:1;10:1;11:1;12:1;13:1;14:1;15:1;16:1;17:1", NULL,
     NULL, 0, "at most 16 users"},
    {"name=a,port=mem:x,weights=root:4,weights=1001:16", "mem:x", "a", 0, NULL},
};

/* A leading zero means nothing: 010 is ten, also here. */
START_TEST(numbers_are_decimal)
{
    struct config_device d;
    char err[CONFIG_ERR] = "";
    config_device_init(&d);
    ck_assert_int_eq(config_device_parse(&d, "mtu=02048,vlan=010,dscp=026,addr=10.0.0.1/024", err),
                     0);
    ck_assert_uint_eq(d.mtu, 2048);
    ck_assert_uint_eq(d.vlan, 10);
    ck_assert_uint_eq(d.dscp, 26);
    ck_assert_uint_eq(d.addr[0].prefix, 24);
}
END_TEST

START_TEST(device_flags)
{
    struct config_device d;
    char err[CONFIG_ERR] = "";
    config_device_init(&d);
    int rc = config_device_parse(&d, devices[_i].text, err);
    if (devices[_i].error) {
        ck_assert_int_lt(rc, 0);
        ck_assert_msg(strstr(err, devices[_i].error) != NULL, "the message is: %s", err);
        return;
    }
    ck_assert_msg(rc == 0, "%s", err);
    ck_assert_str_eq(d.port, devices[_i].port);
    ck_assert_str_eq(d.name, devices[_i].name);
    ck_assert_uint_eq(d.naddr, devices[_i].naddr);
}
END_TEST

/* An unknown key is answered with the list of all keys. */
START_TEST(unknown_keys)
{
    struct config_device d;
    struct config c;
    char err[CONFIG_ERR] = "";
    config_init(&c);
    ck_assert_int_eq(config_set(&c, "colour", "red", err), -EINVAL);
    ck_assert_str_eq(err,
                     "unknown key colour; known: socket workers cpu idle log log-level foreground "
                     "parent seed devices");
    config_device_init(&d);
    ck_assert_int_eq(config_device_set(&d, "colour", "red", err), -EINVAL);
    ck_assert_str_eq(err, "device: unknown key colour; known: name port addr gw mtu vlan dscp mac "
                          "cc worker workers neigh loopback hold weights strict_resp nak_confirm "
                          "rnr_on_rd_res");
}
END_TEST

/* SHM-13: the weights of users, by name and by number; one that isn't there has 1. */
START_TEST(weights_of_users)
{
    struct config_device d;
    char err[CONFIG_ERR] = "";
    config_device_init(&d);
    ck_assert_uint_eq(settings_weight(&d, 0), 1);
    ck_assert_int_eq(config_device_parse(&d, "port=mem:x,weights=root:4;1001:16", err), 0);
    ck_assert_uint_eq(settings_weight(&d, 0), 4);
    ck_assert_uint_eq(settings_weight(&d, 1001), 16);
    ck_assert_uint_eq(settings_weight(&d, 1002), 1);
}
END_TEST

/* The switches of a device, each of which moves nothing but itself. */
START_TEST(device_switches)
{
    static const char *const keys[] = {"loopback", "strict_resp", "nak_confirm", "rnr_on_rd_res"};
    for (unsigned i = 0; i < 4; i++) {
        struct config_device d;
        char err[CONFIG_ERR] = "";
        config_device_init(&d);
        const bool *const is[] = {&d.loopback, &d.strict_resp, &d.nak_confirm, &d.rnr_on_rd_res};
        ck_assert_int_eq(config_device_set(&d, keys[i], "true", err), 0);
        for (unsigned k = 0; k < 4; k++)
            ck_assert_int_eq(*is[k], k == i);
        ck_assert_int_eq(config_device_set(&d, keys[i], "no", err), 0);
        ck_assert(!*is[i]);
        ck_assert_int_lt(config_device_set(&d, keys[i], "maybe", err), 0);
        ck_assert_ptr_nonnull(strstr(err, keys[i]));
    }
}
END_TEST

static const struct {
    const char *json;
    const char *error;
} files[] = {
    {"{\"devices\": [{\"port\": \"mem:a\", \"addr\": [\"10.0.0.1/24\", \"fd00::1/64\"]}]}", NULL},
    {"{\"workers\": 2, \"idle\": \"poll\", \"cpu\": [0, 1], \"devices\": [{\"port\": \"mem:a\"}]}",
     NULL},
    {"{\"workers\": 2,", "config="},
    {"[]", "JSON object"},
    {"{\"workers\": \"many\", \"devices\": [{\"port\": \"mem:a\"}]}", "workers=many"},
    {"{\"wrokers\": 2}", "wrokers"},
    {"{\"devices\": {}}", "devices"},
    {"{\"devices\": [{\"port\": \"mem:a\", \"mtu\": {}}]}", "devices[0].mtu"},
    {"{\"devices\": [{\"port\": \"mem:a\"}, {\"port\": \"mem:a\", \"vlan\": 5000}]}", "devices[1]"},
    {"{\"devices\": []}", "no device"},
    {"{\"devices\": [{\"addr\": \"10.0.0.1/24\"}]}", "no port"},
    {"{\"devices\": [{\"name\": \"a\", \"port\": \"mem:a\"}, {\"name\": \"a\", \"port\": "
     "\"mem:a\"}]}",
     "twice"},
    {"{\"workers\": 1, \"devices\": [{\"port\": \"mem:a\", \"worker\": 1}]}", "worker=1"},
    /* The keys of a link's first port fit together; the keys of later ports agree. */
    {"{\"devices\": [{\"port\": \"mem:a,queue=64K\"}]}", "urn0: mem: queue=65536 needs rate="},
    {"{\"devices\": [{\"port\": \"mem:a\"}, {\"port\": \"mem:ab,ecn_kmax=1K\"}]}",
     "urn1: mem: ecn_kmax=1024 needs rate="},
    {"{\"devices\": [{\"port\": \"mem:a,rate=1G\"}, {\"port\": \"mem:a,queue=1K\"}]}",
     "urn1: mem: queue=1K differs"},
    {"{\"devices\": [{\"port\": \"mem:a,rate=1G,queue=1K\"}, {\"port\": \"mem:b\"}, {\"port\": "
     "\"mem:a,queue=1K\"}]}",
     NULL},
    {"{\"devices\": [{\"port\": \"mem:a\", \"weights\": [\"root:2\", \"7:3\"]}]}", NULL},
};

static int check_file(const char *json, struct config *c, char *err, const char *flag,
                      const char *value)
{
    char path[] = "/tmp/urnic-config-XXXXXX";
    int fd = mkstemp(path);
    enum options_what what;
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, json, strlen(json)), (ssize_t)strlen(json));
    close(fd);
    char *argv[] = {(char[]){"urnicd"}, (char[]){"--config"}, path, NULL, NULL, NULL};
    int argc = 3;
    char f[64], v[128];
    if (flag) {
        snprintf(f, sizeof(f), "%s", flag);
        snprintf(v, sizeof(v), "%s", value);
        argv[argc++] = f;
        argv[argc++] = v;
    }
    int rc = options_parse(argc, argv, c, &what, err);
    unlink(path);
    return rc;
}

START_TEST(config_files)
{
    static struct config c;
    char err[CONFIG_ERR] = "";
    int rc = check_file(files[_i].json, &c, err, NULL, NULL);
    if (!files[_i].error) {
        ck_assert_msg(rc == 0, "%s", err);
        ck_assert_str_eq(c.dev[0].name, "urn0");
        return;
    }
    ck_assert_int_lt(rc, 0);
    ck_assert_msg(strstr(err, files[_i].error) != NULL, "the message is: %s", err);
}
END_TEST

/* neigh=kernel names an interface, or the port does. */
START_TEST(kernel_neighbours)
{
    static const struct {
        const char *text, *ifname, *err;
    } cases[] = {
        {"port=dpdk:net_af_packet0,iface=v7,blocksz=65536,neigh=kernel", "v7", NULL},
        {"port=dpdk:net_af_packet0,iface=v7,neigh=kernel", "v7", NULL},
        {"port=mem:L,neigh=kernel:eth3", "eth3", NULL},
        {"port=mem:L,neigh=own", "", NULL},
        {"port=mem:L,neigh=kernel", NULL, "neigh=kernel:INTERFACE"},
        {"port=dpdk:net_vhost0,iface=/run/v,neigh=kernel", NULL, "neigh=kernel:INTERFACE"},
        {"port=dpdk:net_failsafe0,dev(net_af_packet0,iface=v7),neigh=kernel", NULL,
         "neigh=kernel:INTERFACE"},
        {"port=mem:L,neigh=kernel:", NULL, "neigh=kernel:"},
        {"port=mem:L,neigh=kernel:0123456789abcdef", NULL, "0123456789abcdef"},
    };
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct config c;
        char err[CONFIG_ERR] = "";
        config_init(&c);
        c.ndev = 1;
        config_device_init(&c.dev[0]);
        int rc = config_device_parse(&c.dev[0], cases[i].text, err);
        if (rc == 0)
            rc = config_check(&c, err);
        ck_assert_msg((rc < 0) == (cases[i].err != NULL), "%s: %s", cases[i].text, err);
        if (cases[i].err)
            ck_assert_msg(strstr(err, cases[i].err) != NULL, "%s: %s", cases[i].text, err);
        else
            ck_assert_str_eq(c.dev[0].kernel_if, cases[i].ifname);
    }
}
END_TEST

/* Where clients look for it, by ipc_socket_path(). */
START_TEST(the_users_socket)
{
    static const char dir[] =
        "/tmp/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
    static char in_tmp[64];
    static const struct {
        const char *env, *dir, *want;
    } cases[] = {
        {"/run/here", "/run/user/7", "/run/here"},
        {"", "/run/user/7", "/run/user/7/urnic/urnicd.sock"},
        {NULL, "/run/user/7", "/run/user/7/urnic/urnicd.sock"},
        {NULL, NULL, in_tmp},
        {NULL, "relative", in_tmp},
        {NULL, dir, in_tmp},
        {dir, "/run/user/7", ""},
    };
    uid_t us = geteuid();
    if (us == 0) /* whose socket is elsewhere */
        ck_assert_int_eq(seteuid(65534), 0);
    snprintf(in_tmp, sizeof(in_tmp), "/tmp/urnic-%u/urnicd.sock", (unsigned)geteuid());
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct config c;
        cases[i].env ? setenv("URNIC_SOCKET", cases[i].env, 1) : unsetenv("URNIC_SOCKET");
        cases[i].dir ? setenv("XDG_RUNTIME_DIR", cases[i].dir, 1) : unsetenv("XDG_RUNTIME_DIR");
        config_init(&c);
        ck_assert_str_eq(c.socket, cases[i].want);
    }
    ck_assert_int_eq(seteuid(us), 0); /* LeakSanitizer wants to look into the process */
}
END_TEST

START_TEST(flags_win)
{
    static struct config c;
    static const char json[] = "{\"workers\": 2, \"devices\": [{\"port\": \"mem:a\"}]}";
    char err[CONFIG_ERR] = "";
    ck_assert_int_eq(check_file(json, &c, err, "--workers", "5"), 0);
    ck_assert_uint_eq(c.workers, 5);
    ck_assert_str_eq(c.dev[0].port, "mem:a");
    ck_assert_int_eq(check_file(json, &c, err, "--port", "mem:b"), 0);
    ck_assert_uint_eq(c.ndev, 1);
    ck_assert_str_eq(c.dev[0].port, "mem:b");
    ck_assert_uint_eq(c.workers, 2);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("config");
    TCase *t = tcase_create("config");

    tcase_add_loop_test(t, device_flags, 0, (int)(sizeof(devices) / sizeof(devices[0])));
    tcase_add_test(t, numbers_are_decimal);
    tcase_add_test(t, unknown_keys);
    tcase_add_test(t, device_switches);
    tcase_add_test(t, weights_of_users);
    tcase_add_loop_test(t, config_files, 0, (int)(sizeof(files) / sizeof(files[0])));
    tcase_add_test(t, kernel_neighbours);
    tcase_add_test(t, the_users_socket);
    tcase_add_test(t, flags_win);
    suite_add_tcase(s, t);
    return unit_run(s);
}
