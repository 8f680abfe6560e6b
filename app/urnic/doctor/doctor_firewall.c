/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Do the host's packet filters let UDP port 4791 in? The rules are read with the kernel's own
 * tools, as far as they are installed and this user may.
 */
#include "doctor_firewall.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RULES_MAX (1u << 20)
#define PORT      "4791"

/* Does the line belong to a chain of received packets, and what does it do to a packet? */
static void judge_line(const char *line, struct doctor_rules *r, bool *input)
{
    /* iptables-save: ":INPUT DROP [0:0]", "-A INPUT ... -j DROP" */
    if (strncmp(line, ":INPUT ", 7) == 0)
        r->drops |= strncmp(line + 7, "DROP", 4) == 0;
    bool rule = strncmp(line, "-A ", 3) == 0;
    if (rule && strncmp(line + 3, "INPUT ", 6) == 0)
        r->any = true;
    if (rule && (strstr(line, "-j DROP") || strstr(line, "-j REJECT")))
        r->drops = true;
    /* nft: "chain NAME {", "type filter hook input priority 0; policy drop;", then its rules */
    if (strstr(line, "chain ") && strchr(line, '{'))
        *input = false;
    if (strstr(line, "hook input")) {
        *input = true;
        r->drops |= strstr(line, "policy drop") != NULL;
    } else if (strstr(line, "hook ")) {
        *input = false;
    }
    const char *verdict = rule ? NULL : strstr(line, " drop");
    if (!verdict && !rule)
        verdict = strstr(line, " reject");
    r->drops |= verdict && !strstr(line, "hook ");
    r->any |= *input;
    r->names_port |= strstr(line, PORT) != NULL;
}

void doctor_rules_judge(const char *text, struct doctor_rules *r)
{
    bool input = false;
    while (*text) {
        char line[1024];
        size_t len = strcspn(text, "\n"), most = len < sizeof(line) - 1 ? len : sizeof(line) - 1;
        memcpy(line, text, most);
        line[most] = '\0';
        judge_line(line + strspn(line, " \t"), r, &input);
        text += len + (text[len] == '\n');
    }
}

/* The output of a tool. False: it is not installed, or refuses. */
static bool read_rules(const char *command, struct doctor_rules *r)
{
    char *text = malloc(RULES_MAX);
    FILE *f = text ? popen(command, "re") : NULL;
    size_t n = f ? fread(text, 1, RULES_MAX - 1, f) : 0;
    while (f && n == RULES_MAX - 1 && fgetc(f) != EOF) /* the tool ends by itself */
        ;
    bool ok = f && pclose(f) == 0;
    if (ok) {
        text[n] = '\0';
        doctor_rules_judge(text, r);
    }
    free(text);
    return ok;
}

#define TOOL(command) "PATH=$PATH:/usr/sbin:/sbin; exec " command " </dev/null 2>/dev/null"

void doctor_rules_read(struct doctor_rules *r)
{
    static const char *const tools[] = {TOOL("nft list ruleset"), TOOL("iptables-save"),
                                        TOOL("ip6tables-save")};
    *r = (struct doctor_rules){0};
    for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++)
        r->read |= read_rules(tools[i], r);
}
