/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic stat --processes`: the contexts and queue pairs of each process. The daemon lists each
 * context; those of a process on a device are added up.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "stat.h"

static const char *const kinds[] = {"pds", "mrs", "mws", "cqs", "srqs", "qps", "cm_ids"};
static const char *const words[] = {"PDs", "MRs", "MWs", "CQs", "SRQs", "QPs", "CM ids"};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

/* The process's object in the list; made for a new process. */
static json_t *process_of(json_t *list, const json_t *context)
{
    json_int_t pid = json_integer_value(json_object_get(context, "pid"));
    json_t *p;
    size_t i;
    json_array_foreach(list, i, p)
    {
        if (json_integer_value(json_object_get(p, "pid")) == pid)
            return p;
    }
    p = json_pack("{s:I,s:O,s:O,s:i}", "pid", pid, "comm", json_object_get(context, "comm"), "uid",
                  json_object_get(context, "uid"), "contexts", 0);
    for (size_t k = 0; p && k < KINDS; k++)
        json_object_set_new(p, kinds[k], json_integer(0));
    if (p)
        json_object_set_new(p, "qp_numbers", json_array());
    json_array_append_new(list, p);
    return p;
}

static void add(json_t *to, const char *key, json_int_t n)
{
    json_object_set_new(to, key, json_integer(json_integer_value(json_object_get(to, key)) + n));
}

/* Put a page of contexts into the lists of their devices. Returns the start of the next page, 0 =
 * none, or -errno. */
static int page(struct admin *a, json_t *devices, unsigned first)
{
    char *text;
    json_t *ask = json_pack("{s:s,s:i}", "cmd", "processes", "first", (int)first), *context;
    size_t i;
    int rc = admin_json(a, ask, &text);
    if (rc < 0)
        return rc;
    json_t *root = json_loads(text, 0, NULL);
    json_array_foreach(json_object_get(root, "contexts"), i, context)
    {
        const char *device = json_string_value(json_object_get(context, "device"));
        json_t *list = device ? json_object_get(devices, device) : NULL;
        json_t *p = list ? process_of(list, context) : NULL;
        if (!p)
            continue; /* a context of another device */
        add(p, "contexts", 1);
        for (size_t k = 0; k < KINDS; k++)
            add(p, kinds[k], json_integer_value(json_object_get(context, kinds[k])));
    }
    int next = (int)json_integer_value(json_object_get(root, "next"));
    rc = root ? next : -EPROTO;
    json_decref(root);
    return rc;
}

/* The daemon has not counted the queue pairs of engines in programs. */
static void add_numbers(json_t *list, const struct stat_qps *qps)
{
    json_t *p;
    size_t i;
    json_array_foreach(list, i, p)
    {
        json_int_t pid = json_integer_value(json_object_get(p, "pid"));
        for (unsigned k = 0; k < qps->count; k++)
            if (qps->qp[k].pid == (uint32_t)pid)
                json_array_append_new(json_object_get(p, "qp_numbers"),
                                      json_integer(qps->qp[k].qpn));
        json_int_t listed = (json_int_t)json_array_size(json_object_get(p, "qp_numbers"));
        if (listed > json_integer_value(json_object_get(p, "qps")))
            json_object_set_new(p, "qps", json_integer(listed));
    }
}

static void print_process(const json_t *p)
{
    const json_t *qpn, *numbers = json_object_get(p, "qp_numbers");
    size_t i;
    printf("  %s[%lld]  uid %lld  contexts %lld", json_string_value(json_object_get(p, "comm")),
           (long long)json_integer_value(json_object_get(p, "pid")),
           (long long)json_integer_value(json_object_get(p, "uid")),
           (long long)json_integer_value(json_object_get(p, "contexts")));
    for (size_t k = 0; k < KINDS; k++)
        printf("  %s %lld", words[k], (long long)json_integer_value(json_object_get(p, kinds[k])));
    printf("\n");
    json_array_foreach(numbers, i, qpn) printf(
        "%s0x%06llx%s", i % 8 == 0 ? "     " : " ", (unsigned long long)json_integer_value(qpn),
        i % 8 == 7 || i + 1 == json_array_size(numbers) ? "\n" : "");
}

static void print_device(const char *name, json_t *list, bool as_json)
{
    json_t *p;
    size_t i;
    if (as_json) {
        cli_json(json_pack("{s:s,s:O}", "device", name, "processes", list));
        return;
    }
    printf("%s\n", name);
    json_array_foreach(list, i, p) print_process(p);
}

/* For the device's counters the daemon asks the programs that run the engine themselves, which tell
 * their numbers of objects, too. */
static int ask_programs(struct admin *a, const char *device)
{
    struct stat_counters c = {0};
    int rc = stat_counters(a, device, &c);
    stat_free_counters(&c);
    return rc < 0 ? rc : 0;
}

int stat_processes(struct admin *a, const char *device, bool as_json)
{
    struct ipc_device dev[ADMIN_DEVICES_MAX];
    json_t *devices = json_object(), *list;
    const char *name;
    int n = admin_devices(a, dev, ADMIN_DEVICES_MAX), rc = n < 0 ? n : -ENODEV;
    for (int i = 0; i < n; i++) {
        if (device && strcmp(device, dev[i].name) != 0)
            continue;
        json_object_set_new(devices, dev[i].name, json_array());
        rc = ask_programs(a, dev[i].name);
        if (rc < 0)
            break;
    }
    for (int next = rc < 0 ? 0 : page(a, devices, 0); next != 0;
         next = page(a, devices, (unsigned)next)) {
        if (next < 0) {
            rc = next;
            break;
        }
    }
    json_object_foreach(devices, name, list)
    {
        struct stat_qps qps = {0};
        if (rc == 0)
            rc = stat_qps(a, name, 0, &qps);
        if (rc < 0)
            break;
        add_numbers(list, &qps);
        stat_free_qps(&qps);
        print_device(name, list, as_json);
    }
    json_decref(devices);
    return rc;
}
