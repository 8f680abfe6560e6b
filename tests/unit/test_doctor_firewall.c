/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A firewall's rules as `urnic doctor` reads them.
 */
#include "doctor_firewall.h"

#include <string.h>

#include "unit.h"

static const struct {
    const char *text;
    bool any, drops, names_port;
} rows[] = {
    {"", false, false, false},
    {"*filter\n:INPUT ACCEPT [9:9]\n:FORWARD ACCEPT [0:0]\nCOMMIT\n", false, false, false},
    {"*filter\n:INPUT DROP [9:9]\nCOMMIT\n", false, true, false},
    {"*filter\n:INPUT DROP [0:0]\n-A INPUT -p udp -m udp --dport 4791 -j ACCEPT\n", true, true,
     true},
    {"*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -p tcp -j REJECT --reject-with tcp-reset\n", true,
     true, false},
    {"table inet t {\n\tchain in {\n\t\ttype filter hook input priority filter; policy drop;\n"
     "\t\tct state established accept\n\t}\n}\n",
     true, true, false},
    {"table inet t {\n\tchain in {\n\t\ttype filter hook input priority 0; policy accept;\n"
     "\t\tudp dport 4791 accept\n\t\tcounter packets 0 bytes 0 drop\n\t}\n}\n",
     true, true, true},
    {"table ip nat {\n\tchain post {\n\t\ttype nat hook postrouting priority 100; policy accept;\n"
     "\t\tmasquerade\n\t}\n}\n",
     false, false, false},
};

START_TEST(rules_are_looked_through)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct doctor_rules r = {0};
        doctor_rules_judge(rows[i].text, &r);
        ck_assert_msg(r.any == rows[i].any && r.drops == rows[i].drops &&
                          r.names_port == rows[i].names_port,
                      "row %zu: any %d drops %d names %d", i, r.any, r.drops, r.names_port);
        ck_assert(!r.read);
    }
}
END_TEST

START_TEST(long_lines_are_cut)
{
    static char text[5000];
    struct doctor_rules r = {0};
    memset(text, 'x', sizeof(text) - 1);
    doctor_rules_judge(text, &r);
    ck_assert(!r.any && !r.drops && !r.names_port);
}
END_TEST

UNIT_MAIN("doctor_firewall", rules_are_looked_through, long_lines_are_cut)
