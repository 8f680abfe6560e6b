/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fault rules of a running daemon's emulated link.
 */
#include "link_rules.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "admin.h"
#include "cli.h"
#include "rulefile.h"

#define TEXT_MOST (IPC_MSG_MAX - 1024u) /* rules that fit into a request */

static void print(const json_t *reply)
{
    json_t *r;
    size_t i;
    const json_t *rules = json_object_get(reply, "rules");
    printf("%10s %10s %10s  rule\n", "fit", "done", "in vain");
    json_array_foreach(rules, i, r)
        printf("%10lld %10lld %10lld  %s\n", json_integer_value(json_object_get(r, "matched")),
               json_integer_value(json_object_get(r, "done")),
               json_integer_value(json_object_get(r, "failed")),
               json_string_value(json_object_get(r, "rule")));
}

/* Send a request and free it. Returns the answer, or NULL with a message. */
static json_t *ask(const char *device, json_t *o)
{
    struct admin a;
    char *text = NULL;
    int rc = admin_open(&a);
    if (rc < 0) {
        cli_errno(rc, "urnicd");
        json_decref(o);
        return NULL;
    }
    rc = admin_json(&a, o, &text);
    admin_close(&a);
    if (rc == -EMSGSIZE)
        cli_error("the rules, or what there is to say of them, are too long for one message");
    else if (rc == -ENODEV)
        cli_error("%s: there is no such device, or its port is not an emulated link", device);
    else if (rc < 0)
        cli_errno(rc, "%s", device);
    json_t *reply = rc < 0 ? NULL : json_loads(text, 0, NULL);
    if (rc == 0 && !reply)
        cli_error("%s: urnicd's answer is no JSON", device);
    return reply;
}

int link_rules(const char *device, const char *file, bool show, bool json)
{
    char *text = NULL;
    if (file && *file) {
        struct fault *rules = rulefile_read(file, TEXT_MOST, 1, &text);
        if (!rules)
            return CLI_USAGE;
        fault_free(rules);
    }
    json_t *o = json_pack("{s:s,s:s}", "cmd", "faults", "device", device);
    bool bad = file && json_object_set_new(o, "rules", json_string(text ? text : ""));
    free(text);
    if (bad) {
        cli_error("%s: not a text in UTF-8", file);
        json_decref(o);
        return CLI_USAGE;
    }
    json_t *reply = ask(device, o);
    if (reply && show && json)
        cli_json(json_incref(reply));
    else if (reply && show)
        print(reply);
    json_decref(reply);
    return reply ? CLI_OK : CLI_FAIL;
}
