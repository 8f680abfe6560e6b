/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See faultctl.h.
 */
#include "faultctl.h"

#include <errno.h>
#include <string.h>

#include "device_port.h"
#include "log.h"
#include "mem_link.h"

static json_t *rules_json(struct mem_link *link)
{
    json_t *list = json_array();
    struct fault_rule_stats s;
    char text[256];
    for (unsigned i = 0; mem_link_rules_get(link, i, &s, text, sizeof(text)); i++)
        json_array_append_new(list, json_pack("{s:i,s:s,s:I,s:I,s:I}", "line", (int)s.line, "rule",
                                              text, "matched", (json_int_t)s.matched, "done",
                                              (json_int_t)s.done, "failed", (json_int_t)s.failed));
    return list;
}

static int faultctl_set(struct request *r, const char *device, struct mem_link *link,
                        const char *rules)
{
    struct fault_error err;
    if (!client_is_admin(r->client))
        return -EPERM;
    if (mem_link_rules_set(link, rules, strlen(rules), &err) < 0) {
        log_warn("link", "%s: fault rules, line %u, column %u: %s", device, err.line, err.column,
                 err.text);
        return -EINVAL;
    }
    log_info("link", "%s: other fault rules", device);
    return 0;
}

int faultctl_admin(struct request *r, const json_t *in, char *out, size_t size)
{
    const char *device = json_string_value(json_object_get(in, "device"));
    const char *rules = json_string_value(json_object_get(in, "rules"));
    const struct device *d = device ? nic_device(r->nic, device) : NULL;
    struct mem_link *link = d ? device_link(d) : NULL;
    if (!link)
        return -ENODEV;
    int rc = rules ? faultctl_set(r, device, link, rules) : 0;
    if (rc == 0) {
        json_t *o = json_pack("{s:s,s:o}", "device", device, "rules", rules_json(link));
        size_t n = json_dumpb(o, out, size, JSON_COMPACT);
        json_decref(o);
        rc = n > 0 && n <= size ? (int)n : -EMSGSIZE;
    }
    mem_link_put(link);
    return rc;
}
