/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The keys of a device, each with the function that reads its value.
 */
#include <errno.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "config_device.h"

#include "io_arg.h"
#include "net.h"
#include "team.h"

/* Values of kernel_if until config_device_check: the port names the interface; or there is none,
 * even if the port has one by kernel=. */
#define NEIGH_BY_PORT "?"
#define NEIGH_OWN     "!"

int config_fail(char *err, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(err, CONFIG_ERR, fmt, ap);
    va_end(ap);
    return -EINVAL;
}

void config_word(char words[CONFIG_WORDS], const char *word)
{
    size_t len = strlen(words);
    snprintf(words + len, CONFIG_WORDS - len, " %s", word);
}

bool config_number(const char *s, uint64_t max, uint64_t *out)
{
    return io_parse_u64(s, out) == 0 && *out <= max;
}

bool config_bool(const char *s, bool *out)
{
    *out = strcmp(s, "true") == 0 || strcmp(s, "1") == 0 || strcmp(s, "yes") == 0;
    return *out || strcmp(s, "false") == 0 || strcmp(s, "0") == 0 || strcmp(s, "no") == 0;
}

bool config_text(char *out, size_t size, const char *s)
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
    if (slash && !config_number(slash + 1, bits, &prefix))
        return -EINVAL;
    out->prefix = (uint8_t)prefix;
    return 0;
}

typedef int (*device_key_fn)(struct config_device *d, const char *key, const char *v, char *err);

static int set_name(struct config_device *d, const char *key, const char *v, char *err)
{
    for (const char *p = v; *p; p++) {
        bool good = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                    (*p >= '0' && *p <= '9') || *p == '_' || *p == '-';
        if (!good)
            return config_fail(err, "%s=%s: letters, digits, '_' and '-' only", key, v);
    }
    if (!config_text(d->name, sizeof(d->name), v))
        return config_fail(err, "%s=%s: want 1 to %zu characters", key, v, sizeof(d->name) - 1);
    return 0;
}

static int set_port(struct config_device *d, const char *key, const char *v, char *err)
{
    if (!strchr(v, ':') || !config_text(d->port, sizeof(d->port), v))
        return config_fail(err,
                           "%s=%s: want DRIVER:ARGUMENTS, for example mem:LINK, "
                           "udp:eth0, memif:/run/a.sock,role=server or "
                           "dpdk:net_af_packet0,iface=eth1",
                           key, v);
    return 0;
}

static int set_addr(struct config_device *d, const char *key, const char *v, char *err)
{
    char list[1024], *save = NULL;
    if (!config_text(list, sizeof(list), v))
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
        if (!net_addr_possible(&a->ip, a->prefix))
            return config_fail(err, "%s=%s: stands for any host, all hosts or the network", key,
                               one);
        for (unsigned i = 0; i < d->naddr; i++)
            if (!memcmp(&d->addr[i].ip, &a->ip, sizeof(a->ip)))
                return config_fail(err, "%s=%s: the address is there twice", key, one);
        d->naddr++;
    }
    return 0;
}

static int set_gw(struct config_device *d, const char *key, const char *v, char *err)
{
    char list[256], *save = NULL;
    if (!config_text(list, sizeof(list), v))
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
    if (!config_number(v, 9216, &n) || (n != 0 && wire_mtu_for_ip((uint32_t)n) == 0))
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
    if (!config_number(v, 4094, &n))
        return config_fail(err, "%s=%s: want a VLAN id 1..4094, or 0 for none", key, v);
    d->vlan = (uint16_t)n;
    return 0;
}

static int set_dscp(struct config_device *d, const char *key, const char *v, char *err)
{
    uint64_t n;
    if (!config_number(v, 63, &n))
        return config_fail(err, "%s=%s: want a DSCP, 0..63", key, v);
    d->dscp = (uint8_t)n;
    return 0;
}

static int set_mac(struct config_device *d, const char *key, const char *v, char *err)
{
    unsigned b[6];
    int used = 0;

    /* sscanf alone would accept blanks and signs. */
    if (v[strspn(v, "0123456789abcdefABCDEF:")] != '\0' ||
        sscanf(v, "%2x:%2x:%2x:%2x:%2x:%2x%n", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5], &used) !=
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
    if (!config_number(v, CONFIG_WORKERS - 1, &n))
        return config_fail(err, "%s=%s: want a worker's number, 0..%u", key, v, CONFIG_WORKERS - 1);
    d->worker = (int)n;
    return 0;
}

static int set_workers(struct config_device *d, const char *key, const char *v, char *err)
{
    uint64_t n;
    if (!config_number(v, TEAM_MAX, &n) || n == 0 || (n & (n - 1)) != 0)
        return config_fail(err, "%s=%s: want 1, 2, 4 or 8 workers of the device", key, v);
    d->workers = (unsigned)n;
    return 0;
}

static int set_neigh(struct config_device *d, const char *key, const char *v, char *err)
{
    const char *ifname = strcmp(v, "kernel") == 0        ? NEIGH_BY_PORT
                         : strncmp(v, "kernel:", 7) == 0 ? v + 7
                         : strcmp(v, "own") == 0         ? NEIGH_OWN
                                                         : "";
    if (!config_text(d->kernel_if, sizeof(d->kernel_if), ifname))
        return config_fail(err,
                           "%s=%s: want own (the daemon answers ARP and ND for its addresses), "
                           "kernel, or kernel:INTERFACE",
                           key, v);
    return 0;
}

static int set_bool(bool *out, const char *key, const char *v, char *err)
{
    if (!config_bool(v, out))
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
    if (!config_number(v, 3600000, &ms))
        return config_fail(err, "%s=%s: want milliseconds, at most 3600000", key, v);
    d->addr_hold = ms * 1000000;
    return 0;
}

/* A user's name, or number. */
static bool parse_user(const char *s, uid_t *out)
{
    const struct passwd *pw = getpwnam(s);
    uint64_t n;
    if (!pw && !config_number(s, UINT32_MAX - 1, &n))
        return false;
    *out = pw ? pw->pw_uid : (uid_t)n;
    return true;
}

static int set_weights(struct config_device *d, const char *key, const char *v, char *err)
{
    char list[1024], *save = NULL;
    if (!config_text(list, sizeof(list), v))
        return config_fail(err, "%s=%s: want USER:WEIGHT[;USER:WEIGHT...]", key, v);
    for (char *one = strtok_r(list, ";", &save); one; one = strtok_r(NULL, ";", &save)) {
        struct config_weight *w = &d->weight[d->nweight];
        char *colon = strrchr(one, ':');
        uint64_t n = 0;
        if (d->nweight == CONFIG_WEIGHTS)
            return config_fail(err, "%s=%s: at most %u users", key, v, CONFIG_WEIGHTS);
        if (!colon || !config_number(colon + 1, CONFIG_WEIGHT_MAX, &n) || n == 0)
            return config_fail(err, "%s=%s: want USER:WEIGHT, for example alice:4, weight 1 to %u",
                               key, one, CONFIG_WEIGHT_MAX);
        *colon = '\0';
        if (!parse_user(one, &w->uid))
            return config_fail(err, "%s: there is no user %s", key, one);
        for (unsigned i = 0; i < d->nweight; i++) {
            if (d->weight[i].uid == w->uid)
                return config_fail(err, "%s: the user %s is there twice", key, one);
        }
        w->weight = (unsigned)n;
        d->nweight++;
    }
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
    {"dscp", set_dscp},
    {"mac", set_mac},
    {"cc", set_cc},
    {"worker", set_worker},
    {"workers", set_workers},
    {"neigh", set_neigh},
    {"loopback", set_loopback},
    {"hold", set_hold},
    {"weights", set_weights},
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
    char known[CONFIG_WORDS] = "";
    for (size_t i = 0; i < DEVICE_KEYS; i++) {
        if (strcmp(key, device_keys[i].key) == 0)
            return device_keys[i].set(d, key, value, err);
        config_word(known, device_keys[i].key);
    }
    return config_fail(err, "device: unknown key %s; known:%s", key, known);
}

/* Index of a key, -1 = unknown. */
static int device_key(const char *word, size_t len)
{
    for (size_t i = 0; i < DEVICE_KEYS; i++) {
        if (strlen(device_keys[i].key) == len && memcmp(device_keys[i].key, word, len) == 0)
            return (int)i;
    }
    return -1;
}

/* May a key be repeated, and each value add to those before? */
static bool is_list(const char *key)
{
    return strcmp(key, "addr") == 0 || strcmp(key, "gw") == 0 || strcmp(key, "weights") == 0;
}

/* The next comma that is not in brackets, or the end. */
static const char *next_comma(const char *p)
{
    unsigned depth = 0;
    for (; *p && (*p != ',' || depth); p++)
        depth = *p == '(' ? depth + 1 : depth - (*p == ')' && depth);
    return p;
}

/* The value ends at a comma. The value of a port or an algorithm has parameters of its own, and
 * ends only at a comma before a key of the device. */
static const char *value_end(const char *key, const char *value)
{
    bool has_commas = strcmp(key, "port") == 0 || strcmp(key, "cc") == 0;
    const char *end = value;
    for (;;) {
        end = has_commas ? next_comma(end) : end + strcspn(end, ",");
        const char *next = *end ? strchr(end, '=') : NULL;
        if (!*end || !has_commas || (next && device_key(end + 1, (size_t)(next - end - 1)) >= 0))
            return end;
        end++;
    }
}

int config_device_parse(struct config_device *d, const char *text, char *err)
{
    char value[1024];
    bool seen[DEVICE_KEYS] = {false};
    while (*text) {
        const char *eq = strchr(text, '=');
        int index = eq ? device_key(text, (size_t)(eq - text)) : -1;
        if (index < 0)
            return config_fail(err, "device=%s: want KEY=VALUE,... with a known key first", text);
        const char *key = device_keys[index].key;
        if (seen[index] && !is_list(key))
            return config_fail(err, "device=%s: %s is there twice", text, key);
        seen[index] = true;

        const char *end = value_end(key, eq + 1);
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

/* neigh=kernel: the interface that the port shares its wire with, or is on. With kernel= the kernel
 * resolves neighbours unless neigh= says otherwise. A VLAN is excepted: it has an interface of its
 * own. */
static int check_neigh(struct config_device *d, char *err)
{
    if (d->kernel_if[0] == '\0' && d->vlan == 0)
        settings_kernel(d, d->kernel_if, sizeof(d->kernel_if));
    if (strcmp(d->kernel_if, NEIGH_OWN) == 0)
        d->kernel_if[0] = '\0';
    if (strcmp(d->kernel_if, NEIGH_BY_PORT) != 0 ||
        settings_kernel(d, d->kernel_if, sizeof(d->kernel_if)) ||
        settings_iface(d, d->kernel_if, sizeof(d->kernel_if)))
        return 0;
    return config_fail(err,
                       "device %s: neigh=kernel: port %s is on no interface of the kernel that it "
                       "names: use neigh=own, or say which by neigh=kernel:INTERFACE",
                       d->name, d->port);
}

int config_device_check(struct config_device *d, char *err)
{
    char why[CONFIG_ERR - 64];
    if (d->port[0] == '\0')
        return config_fail(err, "device %s: no port: add port=SPEC, for example port=mem:LINK",
                           d->name);
    if (io_check(d->port, why, sizeof(why)) < 0)
        return config_fail(err, "device %s: %s", d->name, why);
    return check_neigh(d, err);
}
