/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One table of keys for the daemon and one for a device (lib/nic/device/config_device.c); the JSON
 * reader and the flags both go through them, so a key can't exist in only one of the two.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "ipc.h"
#include "mem_link.h"
#include "tap_spec.h"

#define CPU_NUMBER_MAX 1023u /* largest CPU number in a cpu_set_t */

/* ---- keys of the daemon ---- */

static int set_socket(struct config *c, const char *v, char *err)
{
    if (!config_text(c->socket, sizeof(c->socket), v))
        return config_fail(err, "socket=%s: want a path of at most %zu octets", v,
                           sizeof(c->socket) - 1);
    c->socket_default = false;
    return 0;
}

static int set_workers(struct config *c, const char *v, char *err)
{
    uint64_t n;
    if (!config_number(v, CONFIG_WORKERS, &n))
        return config_fail(err, "workers=%s: want 1..%u, or 0 for one per device and core", v,
                           CONFIG_WORKERS);
    c->workers = (unsigned)n;
    return 0;
}

static int set_cpu(struct config *c, const char *v, char *err)
{
    char list[256], *save = NULL;
    c->ncpu = 0;
    if (!config_text(list, sizeof(list), v))
        return config_fail(err, "cpu=%s: want core numbers, for example 2,3", v);
    for (char *one = strtok_r(list, ",", &save); one; one = strtok_r(NULL, ",", &save)) {
        uint64_t n;
        if (!config_number(one, CPU_NUMBER_MAX, &n) || c->ncpu == CONFIG_WORKERS)
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

static int set_log(struct config *c, const char *v, char *err)
{
    if (!config_text(c->log, sizeof(c->log), v))
        return config_fail(err, "log=%s: want the path of a file, of at most %zu octets", v,
                           sizeof(c->log) - 1);
    return 0;
}

static int set_foreground(struct config *c, const char *v, char *err)
{
    if (!config_bool(v, &c->foreground))
        return config_fail(err, "foreground=%s: want true or false", v);
    return 0;
}

static int set_parent(struct config *c, const char *v, char *err)
{
    uint64_t fd;
    if (!config_number(v, INT_MAX, &fd) || fcntl((int)fd, F_SETFD, FD_CLOEXEC) < 0)
        return config_fail(err, "parent=%s: want the number of an open descriptor", v);
    c->parent = (int)fd;
    return 0;
}

static int set_seed(struct config *c, const char *v, char *err)
{
    if (!config_number(v, UINT64_MAX, &c->seed))
        return config_fail(err, "seed=%s: want a number", v);
    return 0;
}

static const struct {
    const char *key;
    int (*set)(struct config *c, const char *v, char *err);
} config_keys[] = {
    {"socket", set_socket},
    {"workers", set_workers},
    {"cpu", set_cpu},
    {"idle", set_idle},
    {"log", set_log},
    {"log-level", set_log_level},
    {"foreground", set_foreground},
    {"parent", set_parent},
    {"seed", set_seed},
};

int config_set(struct config *c, const char *key, const char *value, char *err)
{
    char known[CONFIG_WORDS] = "";
    for (size_t i = 0; i < sizeof(config_keys) / sizeof(config_keys[0]); i++) {
        if (strcmp(key, config_keys[i].key) == 0)
            return config_keys[i].set(c, value, err);
        config_word(known, config_keys[i].key);
    }
    return config_fail(err, "unknown key %s; known:%s devices", key, known);
}

/* The user's socket path, where ipc_socket_path() looks for it; "" = $URNIC_SOCKET is too long. */
static void socket_path(struct config *c, char *out, size_t size)
{
    const char *env = secure_getenv(IPC_SOCKET_ENV), *dir = secure_getenv("XDG_RUNTIME_DIR");
    if (env && *env) {
        if (!config_text(out, size, env))
            *out = '\0';
        return;
    }
    if (geteuid() == 0) {
        snprintf(out, size, "%s", IPC_SOCKET_SYSTEM);
        return;
    }
    c->socket_default = true;
    if (dir && dir[0] == '/' && (size_t)snprintf(out, size, "%s/%s", dir, IPC_SOCKET_USER) < size)
        return;
    snprintf(out, size, IPC_SOCKET_TMP, (unsigned)geteuid());
}

void config_init(struct config *c)
{
    memset(c, 0, sizeof(*c));
    c->log_level = LOG_INFO;
    c->parent = -1;
    socket_path(c, c->socket, sizeof(c->socket));
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

/* ---- the whole configuration ---- */

/* The keys of an emulated link belong to its first port, and are checked together with those of
 * that port. */
static int check_link(const struct config *c, unsigned index, char *err)
{
    const char *spec = c->dev[index].port;
    size_t name = strcspn(spec, ",");
    unsigned first = 0;
    char why[CONFIG_ERR - 64], link[IO_SPEC_MAX], mine[IO_SPEC_MAX], tap[IF_NAMESIZE];
    if (strncmp(spec, "mem:", 4) != 0)
        return 0;
    while (strncmp(c->dev[first].port, spec, name) != 0 ||
           (c->dev[first].port[name] != ',' && c->dev[first].port[name] != '\0'))
        first++;
    int rc = tap_spec_split(c->dev[first].port, link, tap, why, sizeof(why));
    if (rc == 0)
        rc = tap_spec_split(spec, mine, tap, why, sizeof(why));
    if (rc == 0)
        rc = mem_link_check(link + 4, c->seed + first, mine + 4, why, sizeof(why));
    if (rc < 0)
        return config_fail(err, "device %s: %s", c->dev[index].name, why);
    return 0;
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
        int rc = config_device_check(d, err);
        if (rc == 0)
            rc = check_link(c, i, err);
        if (rc < 0)
            return rc;
        if (c->workers != 0 && d->worker >= (int)c->workers)
            return config_fail(err, "device %s: worker=%d, but workers=%u: want 0..%u", d->name,
                               d->worker, c->workers, c->workers - 1);
        if (c->workers != 0 && d->workers > c->workers)
            return config_fail(err, "device %s: workers=%u, but the daemon has %u: raise --workers",
                               d->name, d->workers, c->workers);
        for (unsigned j = 0; j < i; j++) {
            if (strcmp(c->dev[j].name, d->name) == 0)
                return config_fail(err, "device %s: the name is used twice", d->name);
        }
    }
    return 0;
}

bool config_absolute(struct config *c)
{
    char dir[PATH_MAX], path[PATH_MAX + sizeof(c->log)];
    if (!getcwd(dir, sizeof(dir)))
        return false;
    snprintf(path, sizeof(path), "%s/%s", dir, c->socket);
    if (c->socket[0] != '/' && !config_text(c->socket, sizeof(c->socket), path))
        return false;
    snprintf(path, sizeof(path), "%s/%s", dir, c->log);
    if (c->log[0] && c->log[0] != '/' && !config_text(c->log, sizeof(c->log), path))
        return false;
    for (unsigned i = 0; i < c->ndev; i++)
        if (io_absolute(c->dev[i].port, dir) < 0)
            return false;
    return true;
}
