/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One table of keys for the daemon and one for a device; the JSON reader and the flags both go
 * through them, so a key can't exist in only one of the two.
 */
#include "config.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io_arg.h"
#include "ipc.h"

__attribute__((format(printf, 2, 3))) static int config_fail(char *err, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(err, CONFIG_ERR, fmt, ap);
    va_end(ap);
    return -EINVAL;
}

static bool number_parse(const char *s, uint64_t max, uint64_t *out)
{
    return io_parse_u64(s, out) == 0 && *out <= max;
}

static bool text_copy(char *out, size_t size, const char *s)
{
    size_t len = strlen(s);

    if (len == 0 || len >= size)
        return false;
    memcpy(out, s, len + 1);
    return true;
}

/* "10.0.0.1/24" or "fd00::1/64" -> 0 or -EINVAL. */
static int parse_addr(const char *s, struct config_addr *out)
{
    char ip[64];
    const char *slash = strchr(s, '/');
    size_t len = slash ? (size_t)(slash - s) : strlen(s);
    uint64_t prefix;

    if (len >= sizeof(ip))
        return -EINVAL;
    memcpy(ip, s, len);
    ip[len] = '\0';
    if (wire_addr_parse(ip, &out->ip) < 0)
        return -EINVAL;
    unsigned bits = wire_addr_is_v4(&out->ip) ? 32 : 128;
    prefix = bits;
    if (slash && !number_parse(slash + 1, bits, &prefix))
        return -EINVAL;
    out->prefix = (uint8_t)prefix;
    return 0;
}

/* ---- keys of a device ---- */

typedef int (*device_key_fn)(struct config_device *d, const char *key, const char *v, char *err);

static int set_name(struct config_device *d, const char *key, const char *v, char *err)
{
    for (const char *p = v; *p; p++) {
        bool good = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                    (*p >= '0' && *p <= '9') || *p == '_' || *p == '-';
        if (!good)
            return config_fail(err, "%s=%s: letters, digits, '_' and '-' only", key, v);
    }
    if (!text_copy(d->name, sizeof(d->name), v))
        return config_fail(err, "%s=%s: want 1 to %zu characters", key, v, sizeof(d->name) - 1);
    return 0;
}

static int set_port(struct config_device *d, const char *key, const char *v, char *err)
{
    if (!strchr(v, ':') || !text_copy(d->port, sizeof(d->port), v))
        return config_fail(err,
                           "%s=%s: want DRIVER:ARGUMENTS, for example mem:LINK, "
                           "memif:/run/a.sock,role=server or dpdk:net_af_packet0,iface=eth1",
                           key, v);
    return 0;
}

static int set_addr(struct config_device *d, const char *key, const char *v, char *err)
{
    char list[1024], *save = NULL;

    if (!text_copy(list, sizeof(list), v))
        return config_fail(err, "%s=%s: want ADDRESS/PREFIX[;ADDRESS/PREFIX...]", key, v);
    for (char *one = strtok_r(list, ";", &save); one; one = strtok_r(NULL, ";", &save)) {
        if (d->naddr == CONFIG_ADDRS)
            return config_fail(err, "%s=%s: at most %u addresses", key, v, CONFIG_ADDRS);
        struct config_addr *a = &d->addr[d->naddr];
        if (parse_addr(one, a) < 0)
            return config_fail(err, "%s=%s: want an address like 10.0.0.1/24 or fd00::1/64", key,
                               one);
        if (wire_addr_is_multicast(&a->ip))
            return config_fail(err, "%s=%s: is a multicast address", key, one);
        d->naddr++;
    }
    return 0;
}

static int set_gw(struct config_device *d, const char *key, const char *v, char *err)
{
    char list[256], *save = NULL;

    if (!text_copy(list, sizeof(list), v))
        return config_fail(err, "%s=%s: want ADDRESS[;ADDRESS]", key, v);
    for (char *one = strtok_r(list, ";", &save); one; one = strtok_r(NULL, ";", &save)) {
        struct wire_addr gw;
        if (wire_addr_parse(one, &gw) < 0)
            return config_fail(err, "%s=%s: want an address like 10.0.0.254", key, one);
        if (wire_addr_is_multicast(&gw))
            return config_fail(err, "%s=%s: is a multicast address", key, one);
        for (unsigned i = 0; i < d->ngw; i++) {
            if (wire_addr_is_v4(&d->gw[i]) == wire_addr_is_v4(&gw))
                return config_fail(err, "%s=%s: one gateway per address family", key, v);
        }
        d->gw[d->ngw++] = gw;
    }
    return 0;
}

static int set_mtu(struct config_device *d, const char *key, const char *v, char *err)
{
    uint64_t n;

    if (!number_parse(v, 9216, &n) || (n != 0 && wire_mtu_for_ip((uint32_t)n) == 0))
        return config_fail(err,
                           "%s=%s: want the IP MTU in octets, up to 9216, large enough for 256 "
                           "octets of payload and headers (or 0: as the port allows)",
                           key, v);
    d->mtu = (uint32_t)n;
    return 0;
}

static int set_vlan(struct config_device *d, const char *key, const char *v, char *err)
{
    uint64_t n;

    if (!number_parse(v, 4094, &n))
        return config_fail(err, "%s=%s: want a VLAN id 1..4094, or 0 for none", key, v);
    d->vlan = (uint16_t)n;
    return 0;
}

static int set_mac(struct config_device *d, const char *key, const char *v, char *err)
{
    unsigned b[6];
    int used = 0;

    if (sscanf(v, "%2x:%2x:%2x:%2x:%2x:%2x%n", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5], &used) !=
            6 ||
        v[used] != '\0' || (b[0] & 1) != 0)
        return config_fail(err, "%s=%s: want a unicast MAC like 02:00:00:00:00:01", key, v);
    for (unsigned i = 0; i < 6; i++)
        d->mac[i] = (uint8_t)b[i];
    return 0;
}

static int set_cc(struct config_device *d, const char *key, const char *v, char *err)
{
    char why[CONFIG_ERR - 64];

    if (cc_conf_parse(&d->cc, v, why, sizeof(why)) < 0)
        return config_fail(err, "%s: %s", key, why);
    return 0;
}

static int set_worker(struct config_device *d, const char *key, const char *v, char *err)
{
    uint64_t n;

    if (!number_parse(v, CONFIG_WORKERS - 1, &n))
        return config_fail(err, "%s=%s: want a worker's number, 0..%u", key, v, CONFIG_WORKERS - 1);
    d->worker = (int)n;
    return 0;
}

#define NEIGH_BY_PORT "?" /* neigh=kernel: the port names the interface */

static int set_neigh(struct config_device *d, const char *key, const char *v, char *err)
{
    const char *ifname = strcmp(v, "kernel") == 0        ? NEIGH_BY_PORT
                         : strncmp(v, "kernel:", 7) == 0 ? v + 7
                                                         : "";

    d->kernel_if[0] = '\0';
    if (strcmp(v, "own") != 0 && !text_copy(d->kernel_if, sizeof(d->kernel_if), ifname))
        return config_fail(err,
                           "%s=%s: want own (the daemon answers ARP and ND for its addresses), "
                           "kernel, or kernel:INTERFACE",
                           key, v);
    return 0;
}

bool config_port_iface(const struct config_device *d, char *name, size_t size)
{
    const char *iface = strstr(d->port, "iface=");

    if (!iface)
        return false;
    iface += strlen("iface=");
    size_t len = strcspn(iface, ",");
    if (len == 0 || len >= size)
        return false;
    memcpy(name, iface, len);
    name[len] = '\0';
    return true;
}

/* neigh=kernel: the interface is the one that the port is on. */
static int check_neigh(struct config_device *d, char *err)
{
    if (strcmp(d->kernel_if, NEIGH_BY_PORT) != 0 ||
        config_port_iface(d, d->kernel_if, sizeof(d->kernel_if)))
        return 0;
    return config_fail(err,
                       "device %s: neigh=kernel: port %s is on no interface of the kernel that it "
                       "names: use neigh=own, or say which by neigh=kernel:INTERFACE",
                       d->name, d->port);
}

static bool bool_parse(const char *v, bool *out)
{
    *out = strcmp(v, "true") == 0 || strcmp(v, "1") == 0 || strcmp(v, "yes") == 0;
    return *out || strcmp(v, "false") == 0 || strcmp(v, "0") == 0 || strcmp(v, "no") == 0;
}

static int set_bool(bool *out, const char *key, const char *v, char *err)
{
    if (!bool_parse(v, out))
        return config_fail(err, "%s=%s: want true or false", key, v);
    return 0;
}

static int set_loopback(struct config_device *d, const char *key, const char *v, char *err)
{
    return set_bool(&d->loopback, key, v, err);
}

static int set_strict_resp(struct config_device *d, const char *key, const char *v, char *err)
{
    return set_bool(&d->strict_resp, key, v, err);
}

static int set_nak_confirm(struct config_device *d, const char *key, const char *v, char *err)
{
    return set_bool(&d->nak_confirm, key, v, err);
}

static int set_rnr_on_rd_res(struct config_device *d, const char *key, const char *v, char *err)
{
    return set_bool(&d->rnr_on_rd_res, key, v, err);
}

static int set_hold(struct config_device *d, const char *key, const char *v, char *err)
{
    uint64_t ms;

    if (!number_parse(v, 3600000, &ms))
        return config_fail(err, "%s=%s: want milliseconds, at most 3600000", key, v);
    d->addr_hold = ms * 1000000;
    return 0;
}

static const struct {
    const char *key;
    device_key_fn set;
} device_keys[] = {
    {"name", set_name},
    {"port", set_port},
    {"addr", set_addr},
    {"gw", set_gw},
    {"mtu", set_mtu},
    {"vlan", set_vlan},
    {"mac", set_mac},
    {"cc", set_cc},
    {"worker", set_worker},
    {"neigh", set_neigh},
    {"loopback", set_loopback},
    {"hold", set_hold},
    {"strict_resp", set_strict_resp},
    {"nak_confirm", set_nak_confirm},
    {"rnr_on_rd_res", set_rnr_on_rd_res},
};
#define DEVICE_KEYS (sizeof(device_keys) / sizeof(device_keys[0]))

void config_device_init(struct config_device *d)
{
    memset(d, 0, sizeof(*d));
    d->worker = -1;
    d->addr_hold = CONFIG_HOLD_MS * 1000000ull;
    cc_conf_init(&d->cc, &cc_none);
}

int config_device_set(struct config_device *d, const char *key, const char *value, char *err)
{
    for (size_t i = 0; i < DEVICE_KEYS; i++) {
        if (strcmp(key, device_keys[i].key) == 0)
            return device_keys[i].set(d, key, value, err);
    }
    return config_fail(err,
                       "device: unknown key %s; known: name port addr gw mtu vlan mac cc worker "
                       "neigh loopback hold strict_resp nak_confirm rnr_on_rd_res",
                       key);
}

static bool is_device_key(const char *word, size_t len)
{
    for (size_t i = 0; i < DEVICE_KEYS; i++) {
        if (strlen(device_keys[i].key) == len && memcmp(device_keys[i].key, word, len) == 0)
            return true;
    }
    return false;
}

int config_device_parse(struct config_device *d, const char *text, char *err)
{
    char value[1024];

    while (*text) {
        const char *eq = strchr(text, '=');
        if (!eq || !is_device_key(text, (size_t)(eq - text)))
            return config_fail(err, "device=%s: want KEY=VALUE,... with a known key first", text);
        char key[16];
        memcpy(key, text, (size_t)(eq - text));
        key[eq - text] = '\0';

        /* The value ends at a comma; that of a port or an algorithm, which have parameters of
         * their own, ends only where a key of ours follows. */
        const char *end = eq + 1;
        for (;;) {
            end += strcspn(end, ",");
            const char *next = *end ? strchr(end, '=') : NULL;
            if (!*end || (strcmp(key, "port") != 0 && strcmp(key, "cc") != 0) ||
                (next && is_device_key(end + 1, (size_t)(next - end - 1))))
                break;
            end++;
        }
        size_t len = (size_t)(end - eq - 1);
        if (len >= sizeof(value))
            return config_fail(err, "device: the value of %s is too long", key);
        memcpy(value, eq + 1, len);
        value[len] = '\0';
        int rc = config_device_set(d, key, value, err);
        if (rc < 0)
            return rc;
        text = *end ? end + 1 : end;
    }
    return 0;
}

/* ---- keys of the daemon ---- */

static int set_socket(struct config *c, const char *v, char *err)
{
    if (!text_copy(c->socket, sizeof(c->socket), v))
        return config_fail(err, "socket=%s: want a path of at most %zu octets", v,
                           sizeof(c->socket) - 1);
    return 0;
}

static int set_workers(struct config *c, const char *v, char *err)
{
    uint64_t n;

    if (!number_parse(v, CONFIG_WORKERS, &n))
        return config_fail(err, "workers=%s: want 1..%u, or 0 for one per device and core", v,
                           CONFIG_WORKERS);
    c->workers = (unsigned)n;
    return 0;
}

static int set_cpu(struct config *c, const char *v, char *err)
{
    char list[256], *save = NULL;

    c->ncpu = 0;
    if (!text_copy(list, sizeof(list), v))
        return config_fail(err, "cpu=%s: want core numbers, for example 2,3", v);
    for (char *one = strtok_r(list, ",", &save); one; one = strtok_r(NULL, ",", &save)) {
        uint64_t n;
        if (!number_parse(one, 1023, &n) || c->ncpu == CONFIG_WORKERS)
            return config_fail(err, "cpu=%s: want up to %u core numbers, for example 2,3", v,
                               CONFIG_WORKERS);
        c->cpu[c->ncpu++] = (int)n;
    }
    return 0;
}

static int set_idle(struct config *c, const char *v, char *err)
{
    if (strcmp(v, "auto") == 0)
        c->idle = IDLE_AUTO;
    else if (strcmp(v, "poll") == 0)
        c->idle = IDLE_POLL;
    else
        return config_fail(err, "idle=%s: want auto or poll", v);
    return 0;
}

static int set_log_level(struct config *c, const char *v, char *err)
{
    if (log_level_parse(v, &c->log_level) < 0)
        return config_fail(err, "log-level=%s: want error, warn, info or debug", v);
    return 0;
}

static int set_foreground(struct config *c, const char *v, char *err)
{
    if (!bool_parse(v, &c->foreground))
        return config_fail(err, "foreground=%s: want true or false", v);
    return 0;
}

static int set_seed(struct config *c, const char *v, char *err)
{
    if (!number_parse(v, UINT64_MAX, &c->seed))
        return config_fail(err, "seed=%s: want a number", v);
    return 0;
}

static const struct {
    const char *key;
    int (*set)(struct config *c, const char *v, char *err);
} config_keys[] = {
    {"socket", set_socket}, {"workers", set_workers},     {"cpu", set_cpu},
    {"idle", set_idle},     {"log-level", set_log_level}, {"foreground", set_foreground},
    {"seed", set_seed},
};

int config_set(struct config *c, const char *key, const char *value, char *err)
{
    for (size_t i = 0; i < sizeof(config_keys) / sizeof(config_keys[0]); i++) {
        if (strcmp(key, config_keys[i].key) == 0)
            return config_keys[i].set(c, value, err);
    }
    return config_fail(err,
                       "unknown key %s; known: socket workers cpu idle log-level foreground seed "
                       "devices",
                       key);
}

/* The user's socket path, where ipc_socket_path() looks for it; "" = $URNIC_SOCKET is too long. */
static void socket_path(char *out, size_t size)
{
    const char *env = getenv(IPC_SOCKET_ENV), *dir = getenv("XDG_RUNTIME_DIR");

    if (env && *env) {
        if (!text_copy(out, size, env))
            *out = '\0';
        return;
    }
    if (geteuid() == 0) {
        snprintf(out, size, "%s", IPC_SOCKET_SYSTEM);
        return;
    }
    if (dir && dir[0] == '/' && (size_t)snprintf(out, size, "%s/%s", dir, IPC_SOCKET_USER) < size)
        return;
    snprintf(out, size, IPC_SOCKET_TMP, (unsigned)geteuid());
}

void config_init(struct config *c)
{
    memset(c, 0, sizeof(*c));
    c->log_level = LOG_INFO;
    socket_path(c->socket, sizeof(c->socket));
}

/* ---- the file ---- */

/* A JSON scalar, or an array of them joined by `sep`, as text. */
static bool json_text(const json_t *v, const char *sep, char *out, size_t size)
{
    if (json_is_array(v)) {
        size_t used = 0;
        out[0] = '\0';
        for (size_t i = 0; i < json_array_size(v); i++) {
            char one[256];
            const json_t *item = json_array_get(v, i);
            if (json_is_array(item) || !json_text(item, sep, one, sizeof(one)))
                return false;
            int n = snprintf(out + used, size - used, "%s%s", i ? sep : "", one);
            if (n < 0 || (size_t)n >= size - used)
                return false;
            used += (size_t)n;
        }
        return true;
    }
    int n = -1;
    if (json_is_string(v))
        n = snprintf(out, size, "%s", json_string_value(v));
    else if (json_is_integer(v))
        n = snprintf(out, size, "%lld", (long long)json_integer_value(v));
    else if (json_is_boolean(v))
        n = snprintf(out, size, "%s", json_is_true(v) ? "true" : "false");
    return n >= 0 && (size_t)n < size;
}

static int load_device(struct config_device *d, json_t *obj, unsigned index, char *err)
{
    const char *key;
    json_t *v;
    char text[1024];

    if (!json_is_object(obj))
        return config_fail(err, "devices[%u]: want an object like {\"port\": \"mem:a\"}", index);
    json_object_foreach(obj, key, v)
    {
        if (!json_text(v, ";", text, sizeof(text)))
            return config_fail(err, "devices[%u].%s: want text, a number or a list of them", index,
                               key);
        char why[CONFIG_ERR];
        if (config_device_set(d, key, text, why) < 0)
            return config_fail(err, "devices[%u]: %.*s", index, (int)CONFIG_ERR - 64, why);
    }
    return 0;
}

static int load_devices(struct config *c, json_t *list, char *err)
{
    if (!json_is_array(list) || json_array_size(list) > CONFIG_DEVICES)
        return config_fail(err, "devices: want a list of at most %u objects", CONFIG_DEVICES);
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct config_device *d = &c->dev[c->ndev];
        config_device_init(d);
        int rc = load_device(d, json_array_get(list, i), (unsigned)i, err);
        if (rc < 0)
            return rc;
        c->ndev++;
    }
    return 0;
}

int config_load(struct config *c, const char *path, char *err)
{
    json_error_t je;
    struct stat st;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &je);
    const char *key;
    json_t *v;
    char text[1024];
    int rc = 0;

    if (!root && json_error_code(&je) == json_error_cannot_open_file)
        return config_fail(err, "config=%s: %s", path, strerror(errno));
    if (!root && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return config_fail(err, "config=%s: %s", path, strerror(EISDIR));
    if (!root)
        return config_fail(err, "config=%s: %s (line %d)", path, je.text, je.line);
    if (!json_is_object(root))
        rc = config_fail(err, "config=%s: want one JSON object", path);
    json_object_foreach(root, key, v)
    {
        if (rc < 0)
            break;
        if (strcmp(key, "devices") == 0)
            rc = load_devices(c, v, err);
        else if (!json_text(v, ",", text, sizeof(text)))
            rc = config_fail(err, "%s: want text, a number or a list of them", key);
        else
            rc = config_set(c, key, text, err);
    }
    json_decref(root);
    return rc;
}

int config_check(struct config *c, char *err)
{
    if (c->ndev == 0)
        return config_fail(err, "no device: give --device name=urn0,port=SPEC,addr=IP/LEN, or "
                                "--port and --addr, or a \"devices\" list in the file");
    for (unsigned i = 0; i < c->ndev; i++) {
        struct config_device *d = &c->dev[i];
        if (d->name[0] == '\0')
            snprintf(d->name, sizeof(d->name), "urn%u", i);
        if (d->port[0] == '\0')
            return config_fail(err, "device %s: no port: add port=SPEC, for example port=mem:LINK",
                               d->name);
        char why[CONFIG_ERR - 64];
        if (io_check(d->port, why, sizeof(why)) < 0)
            return config_fail(err, "device %s: %s", d->name, why);
        if (c->workers != 0 && d->worker >= (int)c->workers)
            return config_fail(err, "device %s: worker=%d, but workers=%u: want 0..%u", d->name,
                               d->worker, c->workers, c->workers - 1);
        int rc = check_neigh(d, err);
        if (rc < 0)
            return rc;
        for (unsigned j = 0; j < i; j++) {
            if (strcmp(c->dev[j].name, d->name) == 0)
                return config_fail(err, "device %s: the name is used twice", d->name);
        }
    }
    return 0;
}
