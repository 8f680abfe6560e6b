/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The captures of pcaps/, of real adapters, of Linux and of ours: fault rules see the same
 * connections, the same answers and the same retransmissions in them as lint, which has all the
 * memory and all the hindsight that it wants.
 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "capture_rig.h"
#include "fault.h"
#include "lint.h"

#define CAPTURES 128u

static char names[CAPTURES][64];
static int captures;

/* Rules whose actions show their knowledge of a packet: its connection, an earlier transmission,
 * its request. */
static const char rules[] = "duplicate conn 1.. request|response\n"
                            "delay 1us request retx\n"
                            "reorder 1 response psn +0..\n";

static void ignore(void *ctx, const struct lint_finding *f)
{
    (void)ctx;
    (void)f;
}

/* Connections of lint: pairs, and directions without a captured other one. */
static uint64_t connections(const struct lint *l)
{
    struct lint_flow_info i;
    uint64_t n = 0;
    for (uint32_t id = 0; lint_flow_info(l, id, &i); id++)
        n += i.service != WIRE_UD && (i.peer == LINT_NO_FLOW || i.peer > id);
    return n;
}

/* One packet: `out` is the rules' view of it, `view` is lint's. */
static void compare(const char *name, uint64_t number, const struct fault_out *out,
                    const struct lint_view *view)
{
    bool response = view->kind == LINT_ACK || view->kind == LINT_NAK || view->kind == LINT_RNR ||
                    view->kind == LINT_ATOMIC_ACK || view->flags & LINT_V_RESPONSE;
    bool again = view->flags & (LINT_V_RETRANSMIT | LINT_V_REORDERED | LINT_V_DUPLICATE);
    ck_assert_msg(out->copies, "%s, packet %llu: of no connection", name,
                  (unsigned long long)number);
    if (response)
        ck_assert_msg(out->gap, "%s, packet %llu: what does it answer?", name,
                      (unsigned long long)number);
    else if (!strstr(name, "selective")) /* lint doesn't follow these packets */
        ck_assert_msg((out->delay != 0) == again, "%s, packet %llu: sent again, or not?", name,
                      (unsigned long long)number);
}

START_TEST(rules_see_what_lint_sees)
{
    static uint8_t frame[PACKET_MAX];
    struct capread_packet p;
    struct fault_error err;
    struct fault_out out;
    struct fault_stats stats;
    struct fault *f = fault_parse(rules, sizeof(rules) - 1, 1, &err);
    struct lint *l = lint_new(ignore, NULL, 0);
    struct capread *c = open_capture(names[_i]);
    ck_assert(f && l);
    for (uint64_t n = 1; capread_next(c, &p) == 1; n++) {
        struct lint_view view;
        struct lint_frame lf = {
            .number = n, .ns = p.ns, .data = p.frame, .len = p.len, .wire_len = p.len};
        ck_assert_uint_le(p.len, PACKET_MAX);
        memcpy(frame, p.frame, p.len);
        lint_packet(l, &lf, &view);
        fault_apply(f, FAULT_AB, frame, p.len, p.ns, &out);
        if (view.kind >= LINT_DATA && view.kind <= LINT_RNR && !(view.flags & LINT_V_CORRUPT))
            compare(names[_i], n, &out, &view);
    }
    capread_close(c);
    lint_end(l);
    fault_stats(f, &stats);
    ck_assert_msg(stats.conns == connections(l), "%s: %llu connections, not %llu", names[_i],
                  (unsigned long long)stats.conns, (unsigned long long)connections(l));
    lint_free(l);
    fault_free(f);
}
END_TEST

static int is_capture(const struct dirent *d)
{
    return strstr(d->d_name, ".pcap") != NULL;
}

int main(void)
{
    struct dirent **list;
    int n = scandir(pcaps(), &list, is_capture, alphasort);
    for (int i = 0; i < n; i++) {
        if (i < (int)CAPTURES)
            snprintf(names[captures++], sizeof(names[0]), "%.60s", list[i]->d_name);
        free(list[i]);
    }
    if (n > 0)
        free(list);
    Suite *suite = suite_create("fault captures");
    TCase *t = tcase_create("captures");
    tcase_add_loop_test(t, rules_see_what_lint_sees, 0, captures);
    suite_add_tcase(suite, t);
    int failed = unit_run(suite);
    return failed || captures < 50 ? EXIT_FAILURE : EXIT_SUCCESS;
}
