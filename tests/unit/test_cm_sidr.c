/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Datagram services: a question, an answer, and how many of them there may be.
 */
#include <errno.h>
#include <string.h>

#include "cm_pair.h"
#include "unit.h"

START_TEST(cm_31_datagram_service)
{
    /* CM-31: one question, one answer, the same one when it is asked again. */
    static const struct wire_addr any;
    struct cm_listener *l;
    struct cm_conn *c;
    struct cm_path path = {.local = a.addr, .remote = b.addr};
    cm_listen(b.cm, CM_PS_UDP, &any, 7000, 0, &l, &l);
    lose[CM_SIDR_REP] = 1;
    ck_assert_int_eq(cm_sidr_request(a.cm, &path, 1234, 7000, "who", 3, NULL, now, &c), 0);
    pump();
    ck_assert_int_eq(last(&b)->type, CM_EV_SIDR_REQ);
    ck_assert_ptr_eq(last(&b)->arg, &l);
    ck_assert_ptr_eq(last(&b)->listener, l);
    ck_assert_mem_eq(last(&b)->priv, "who\0", 4);
    ck_assert_int_eq(cm_sidr_reply(b.cm, last(&b)->conn, 0, 0x77, 0x01234567, "me", 2, now), 0);
    pump();
    wait_ns(2 * SEC);
    ck_assert_int_eq(last(&a)->type, CM_EV_SIDR_REP);
    ck_assert_uint_eq(last(&a)->qpn, 0x77);
    ck_assert_uint_eq(last(&a)->qkey, 0x01234567); /* KEY-09 */
    ck_assert_mem_eq(last(&a)->priv, "me\0", 4);
    ck_assert_uint_eq(b.nev, 1);
    ck_assert_uint_eq(last(&a)->local_port, 1234);
    cm_release(a.cm, c, now);
    /* nobody listens */
    ck_assert_int_eq(cm_sidr_request(a.cm, &path, 1234, 7001, NULL, 0, NULL, now, &c), 0);
    pump();
    ck_assert_uint_eq(last(&a)->reason, 1);
    cm_release(a.cm, c, now);
    cm_release(b.cm, b.ev[0].conn, now);
    wait_ns(20 * SEC);
    ck_assert_uint_eq(cm_live(a.cm), 0);
    ck_assert_uint_eq(cm_live(b.cm), 0);
}
END_TEST

START_TEST(cm_31_what_no_message_can_say)
{
    /* CM-31: private data and QPN that don't fit are refused, and the most that fits is not. */
    static const struct wire_addr any;
    static const uint8_t priv[CM_SIDR_REQ_USER_MAX + CM_SIDR_REP_USER_MAX + 1];
    struct cm_path path = {.local = a.addr, .remote = b.addr};
    struct cm_listener *l;
    struct cm_conn *c, *cb;
    cm_listen(b.cm, CM_PS_UDP, &any, 7000, 0, NULL, &l);
    ck_assert_int_eq(
        cm_sidr_request(a.cm, &path, 1, 7000, priv, CM_SIDR_REQ_USER_MAX + 1, NULL, now, &c),
        -EINVAL);
    ck_assert_int_eq(
        cm_sidr_request(a.cm, &path, 1, 7000, priv, CM_SIDR_REQ_USER_MAX, NULL, now, &c), 0);
    pump();
    cb = last(&b)->conn;
    ck_assert_int_eq(
        cm_sidr_reply(b.cm, cb, 0, WIRE_QPN_MASK, 1, priv, CM_SIDR_REP_USER_MAX + 1, now), -EINVAL);
    ck_assert_int_eq(cm_sidr_reply(b.cm, cb, 0, WIRE_QPN_MASK + 1, 1, NULL, 0, now), -EINVAL);
    ck_assert_int_eq(cm_sidr_reply(b.cm, cb, 256, 1, 1, NULL, 0, now), -EINVAL);
    ck_assert_int_eq(
        cm_sidr_reply(b.cm, cb, 255, WIRE_QPN_MASK, 1, priv, CM_SIDR_REP_USER_MAX, now), 0);
    pump();
    ck_assert_int_eq(last(&a)->type, CM_EV_SIDR_REP);
    ck_assert_uint_eq(last(&a)->qpn, WIRE_QPN_MASK);
    ck_assert_uint_eq(last(&a)->reason, 255);
}
END_TEST

START_TEST(sec_20_questions_that_nobody_answers_expire)
{
    /* SEC-20 CM-31: a question says nothing of how long its sender waits */
    static const struct wire_addr any;
    struct cm_listener *l;
    struct cm_conn *c;
    struct cm_path path = {.local = a.addr, .remote = b.addr};
    cm_listen(b.cm, CM_PS_UDP, &any, 7000, 0, NULL, &l);
    ck_assert_int_eq(cm_sidr_request(a.cm, &path, 1, 7000, NULL, 0, NULL, now, &c), 0);
    pump();
    ck_assert_int_eq(last(&b)->type, CM_EV_SIDR_REQ);
    wait_ns(70 * SEC);
    ck_assert_int_eq(last(&b)->type, CM_EV_UNREACHABLE);
    ck_assert_int_eq(last(&a)->type, CM_EV_UNREACHABLE);
    ck_assert_uint_eq(cm_live(a.cm), 0);
    cm_release(b.cm, last(&b)->conn, now);
    ck_assert_uint_eq(cm_live(b.cm), 0);
}
END_TEST

/* Ask b for `n` datagram services at `port`, without what b's consumer would say. */
static void ask_often(unsigned n, uint16_t port)
{
    struct cm_path path = {.local = a.addr, .remote = b.addr};
    for (unsigned i = 0; i < n; i++) {
        struct cm_conn *c;
        ck_assert_int_eq(cm_sidr_request(a.cm, &path, 1234, port, NULL, 0, NULL, now, &c), 0);
        move(&a, &b);
    }
}

START_TEST(sec_20_questions_for_services_that_nobody_offers_leave_nothing_behind)
{
    ask_often(60, 7001); /* SEC-20 */
    ck_assert_uint_eq(cm_live(b.cm), 0);
    pump();
    ck_assert_uint_eq(a.nev, 60);
    for (unsigned i = 0; i < a.nev; i++)
        ck_assert_uint_eq(a.ev[i].reason, 1);
}
END_TEST

START_TEST(sec_20_questions_have_half_of_the_places)
{
    /* SEC-20: what waits for its consumer leaves the other half for those who connect. */
    static const struct wire_addr any;
    struct cm_listener *l;
    teardown();
    setup_with((struct cm_params){0}, (struct cm_params){.max_conns = 8});
    cm_listen(b.cm, CM_PS_UDP, &any, 7000, 0, NULL, &l);
    ask_often(8, 7000);
    ck_assert_uint_eq(cm_live(b.cm), 5);
    ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_req_backlog_drop], 3);
}
END_TEST

/* CM-34: 64, or more while others leave room. */
static const struct {
    int backlog;
    unsigned asked, taken;
} sources[] = {{100, 70, 64}, {0, 520, 512}, {400, 250, 200}};

START_TEST(cm_34_a_source_has_few_questions_pending)
{
    static const struct wire_addr any;
    unsigned taken = sources[_i].taken;
    struct cm_listener *l;
    cm_listen(b.cm, CM_PS_UDP, &any, 7000, (unsigned)sources[_i].backlog, NULL, &l);
    ask_often(sources[_i].asked, 7000);
    ck_assert_uint_eq(cm_live(b.cm), taken);
    ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_req_backlog_drop], sources[_i].asked - taken);
}
END_TEST

START_TEST(cm_31_a_question_ends_with_its_listener)
{
    static const struct wire_addr any;
    struct cm_listener *l;
    struct cm_event ev;
    cm_listen(b.cm, CM_PS_UDP, &any, 7000, 0, NULL, &l);
    ask_often(1, 7000);
    cm_unlisten(b.cm, l, now);
    ck_assert(!cm_event(b.cm, &ev)); /* it would name a listener that is gone */
    pump();
    ck_assert_int_eq(last(&a)->type, CM_EV_SIDR_REP);
    ck_assert_uint_eq(last(&a)->reason, 1); /* CM-31 */
    wait_ns(20 * SEC);
    ck_assert_uint_eq(cm_live(b.cm), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cm datagram services");
    TCase *t = tcase_create("cm datagram services");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, cm_31_datagram_service);
    tcase_add_test(t, cm_31_what_no_message_can_say);
    tcase_add_test(t, sec_20_questions_that_nobody_answers_expire);
    tcase_add_test(t, sec_20_questions_for_services_that_nobody_offers_leave_nothing_behind);
    tcase_add_test(t, sec_20_questions_have_half_of_the_places);
    tcase_add_loop_test(t, cm_34_a_source_has_few_questions_pending, 0,
                        sizeof sources / sizeof sources[0]);
    tcase_add_test(t, cm_31_a_question_ends_with_its_listener);
    suite_add_tcase(s, t);
    return unit_run(s);
}
