/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Requests for datagram services (SIDR): their contents, their answers, and the number that may
 * wait. CM-31.
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
    ck_assert_int_eq(cm_sidr_request(a.cm, &path, 1234, 7000, "ask", 3, NULL, now, &c), 0);
    pump();
    ck_assert_int_eq(last(&b)->type, CM_EV_SIDR_REQ);
    ck_assert_ptr_eq(last(&b)->arg, &l);
    ck_assert_ptr_eq(last(&b)->listener, l);
    ck_assert_uint_eq(last(&b)->local_port, 7000);
    ck_assert_uint_eq(last(&b)->remote_port, 1234);
    ck_assert_mem_eq(last(&b)->priv, "ask\0", 4);
    ck_assert_int_eq(cm_sidr_reply(b.cm, last(&b)->conn, 0, 0x77, 0x01234567, "me", 2, now), 0);
    pump();
    wait_ns(2 * SEC);
    ck_assert_int_eq(last(&a)->type, CM_EV_SIDR_REP);
    ck_assert_uint_eq(last(&a)->qpn, 0x77);
    ck_assert_uint_eq(last(&a)->qkey, 0x01234567); /* KEY-09 */
    ck_assert_mem_eq(last(&a)->priv, "me\0", 4);
    ck_assert_uint_eq(b.nev, 1);
    ck_assert_uint_eq(last(&a)->local_port, 1234);
    ck_assert_uint_eq(last(&a)->remote_port, 7000);
    ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_dup_req], 1);
    cm_release(a.cm, c, now);
    /* no listener */
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

/* A SIDR_REQ from a to port 7000 of b, as it is sent. */
static struct cm_msg question(struct cm_path path, struct cm_conn **c, struct cm_out *out)
{
    ck_assert_int_eq(cm_sidr_request(a.cm, &path, 1234, 7000, "ask", 3, NULL, now, c), 0);
    return next_msg(&a, CM_SIDR_REQ, out);
}

START_TEST(cm_31_what_a_question_says)
{
    struct cm_path path = {.local = a.addr, .remote = b.addr};
    struct cm_listener *l;
    struct cm_ip_hdr ip;
    struct cm_conn *c;
    struct cm_out out;
    struct cm_msg req = question(path, &c, &out);
    ck_assert_uint_eq(req.service_id, 0x01110000 + 7000); /* CM-01 */
    ck_assert_uint_eq(req.pkey, 0xFFFF);
    ck_assert_uint_eq(out.pkey, 0xFFFF);
    path.pkey = 0x8001;
    req = question(path, &c, &out);
    ck_assert_uint_eq(req.pkey, 0x8001);
    ck_assert_uint_eq(out.pkey, 0x8001);
    ck_assert_int_eq(cm_ip_hdr_unpack(&ip, req.priv), 0);
    ck_assert_uint_eq(ip.ip_version, 4);
    ck_assert_uint_eq(ip.sport, 1234);
    ck_assert_mem_eq(&ip.src, &a.addr, 16);
    ck_assert_mem_eq(&ip.dst, &b.addr, 16);

    /* and its answer, the same each time that it is asked */
    cm_listen(b.cm, CM_PS_UDP, &b.addr, 7000, 0, NULL, &l);
    for (unsigned i = 0; i < 4; i++) {
        struct cm_out back;
        cm_rx(b.cm, out.mad, sizeof(out.mad), &a.addr, &b.addr, 1, 0x8002, now);
        listen_to(&b);
        ck_assert_uint_eq(b.nev, 1);
        if (i < 2) { /* not yet */
            ck_assert(!cm_tx(b.cm, &back));
            ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_dup_req], i);
            continue;
        }
        if (i == 2) {
            cm_tx(b.cm, &back);
            ck_assert_int_eq(cm_sidr_reply(b.cm, b.ev[0].conn, 0, 5, 6, "me", 2, now), 0);
            ck_assert_int_eq(cm_sidr_reply(b.cm, b.ev[0].conn, 0, 5, 6, "me", 2, now), -EINVAL);
            ck_assert_uint_eq(b.cm->half_open, 0);
            ck_assert_uint_eq(cm_deadline(b.cm), now + 10 * SEC);
        }
        struct cm_msg rep = next_msg(&b, CM_SIDR_REP, &back);
        ck_assert_uint_eq(rep.tid, req.tid);
        ck_assert_uint_eq(rep.local_id, req.local_id);
        ck_assert_uint_eq(rep.service_id, req.service_id);
        ck_assert_uint_eq(rep.status, CM_SIDR_VALID);
        ck_assert_uint_eq(rep.qpn, 5);
        ck_assert_uint_eq(rep.qkey, 6);
        ck_assert_uint_eq(back.pkey, 0x8002); /* CM-06: as it came */
        ck_assert_mem_eq(&back.src, &b.addr, 16);
        ck_assert_mem_eq(&back.dst, &a.addr, 16);
        ck_assert(!cm_tx(b.cm, &back));
    }
}
END_TEST

START_TEST(cm_31_a_question_over_ipv6)
{
    struct cm_path path;
    struct cm_ip_hdr ip;
    struct cm_conn *c;
    struct cm_out out;
    memset(&path, 0, sizeof(path));
    wire_addr_parse("2001:db8::1", &path.local);
    wire_addr_parse("2001:db8::2", &path.remote);
    struct cm_msg req = question(path, &c, &out);
    ck_assert_int_eq(cm_ip_hdr_unpack(&ip, req.priv), 0);
    ck_assert_uint_eq(ip.ip_version, 6);
    ck_assert_mem_eq(&ip.src, &path.local, 16);
    ck_assert_mem_eq(&ip.dst, &path.remote, 16);
}
END_TEST

/* CM-03, CM-04: questions that are answered with "unsupported" at once, and one that isn't. */
static const struct {
    const char *what;
    uint32_t src, listens_at;
    uint8_t version;
    bool lenient, taken;
} questions[] = {
    {"a good one", 0x0A000001, 0, 0x40, false, true},
    {"at this address", 0x0A000001, 0x0A000002, 0x40, false, true},
    {"at another address", 0x0A000001, 0x0A000003, 0x40, false, false},
    {"a header of another version", 0x0A000001, 0, 0x70, true, false},
    {"not its sender's address", 0x0A000009, 0, 0x40, false, false},
    {"not its sender's address, and nobody minds", 0x0A000009, 0, 0x40, true, true},
};

START_TEST(cm_31_good_and_bad_questions)
{
    struct cm_path path = {.local = a.addr, .remote = b.addr};
    struct wire_addr at = {{0}}, src = wire_addr_v4(questions[_i].src);
    struct cm_listener *l;
    struct cm_conn *c;
    struct cm_out out;
    teardown();
    setup_with((struct cm_params){0}, (struct cm_params){.lenient_addr = questions[_i].lenient});
    if (questions[_i].listens_at)
        at = wire_addr_v4(questions[_i].listens_at);
    cm_listen(b.cm, CM_PS_UDP, &at, 7000, 0, NULL, &l);
    struct cm_msg req = question(path, &c, &out);
    memcpy(req.priv + 4 + 12, src.b + 12, 4);
    req.priv[1] = questions[_i].version;
    cm_msg_pack(out.mad, &req);
    cm_rx(b.cm, out.mad, sizeof(out.mad), &a.addr, &b.addr, 1, 0x8002, now);
    listen_to(&b);
    ck_assert_msg(b.nev == questions[_i].taken, "%s", questions[_i].what);
    if (questions[_i].taken)
        return;
    struct cm_msg rep = next_msg(&b, CM_SIDR_REP, &out);
    ck_assert_uint_eq(rep.tid, req.tid);
    ck_assert_uint_eq(rep.local_id, req.local_id);
    ck_assert_uint_eq(rep.service_id, req.service_id);
    ck_assert_uint_eq(rep.status, CM_SIDR_UNSUPPORTED);
    ck_assert_uint_eq(out.pkey, 0x8002);
    ck_assert_uint_eq(cm_live(b.cm), 0);
}
END_TEST

START_TEST(sec_20_questions_that_nobody_answers_expire)
{
    /* SEC-20 CM-31: a request doesn't carry its sender's time-out */
    static const struct wire_addr any;
    struct cm_listener *l;
    struct cm_conn *c;
    struct cm_path path = {.local = a.addr, .remote = b.addr};
    cm_listen(b.cm, CM_PS_UDP, &any, 7000, 0, NULL, &l);
    ck_assert_int_eq(cm_sidr_request(a.cm, &path, 1, 7000, NULL, 0, NULL, now, &c), 0);
    pump();
    ck_assert_int_eq(last(&b)->type, CM_EV_SIDR_REQ);
    ck_assert_uint_eq(last(&b)->conn->deadline, now + 60 * SEC);
    wait_ns(70 * SEC);
    ck_assert_int_eq(last(&b)->type, CM_EV_UNREACHABLE);
    ck_assert_int_eq(last(&a)->type, CM_EV_UNREACHABLE);
    ck_assert_uint_eq(cm_live(a.cm), 0);
    cm_release(b.cm, last(&b)->conn, now);
    ck_assert_uint_eq(cm_live(b.cm), 0);
}
END_TEST

/* Ask b for `n` datagram services at `port`, without an answer of b's consumer. */
static void ask_often(unsigned n, uint16_t port)
{
    struct cm_path path = {.local = a.addr, .remote = b.addr};
    for (unsigned i = 0; i < n; i++) {
        struct cm_conn *c;
        ck_assert_int_eq(cm_sidr_request(a.cm, &path, 1234, port, NULL, 0, NULL, now, &c), 0);
        move(&a, &b);
    }
}

START_TEST(sec_20_requests_for_missing_services_leave_nothing)
{
    ask_often(60, 7001); /* SEC-20 */
    ck_assert_uint_eq(cm_live(b.cm), 0);
    pump();
    ck_assert_uint_eq(a.nev, 60);
    for (unsigned i = 0; i < a.nev; i++)
        ck_assert_uint_eq(a.ev[i].reason, 1);
}
END_TEST

static bool nobody_is_there(void *arg, const struct wire_addr *addr)
{
    (void)arg;
    (void)addr;
    return true;
}

START_TEST(sec_20_questions_of_made_up_hosts_end_in_seconds)
{
    /* SEC-20: the host of a SIDR_REQ is looked up, as that of a REQ is. */
    static const struct wire_addr any;
    struct cm_listener *l;
    teardown();
    setup_with((struct cm_params){0}, (struct cm_params){.silent = nobody_is_there});
    cm_listen(b.cm, CM_PS_UDP, &any, 7000, 0, NULL, &l);
    ask_often(1, 7000);
    ck_assert_uint_eq(cm_live(b.cm), 1);
    ck_assert_uint_eq(cm_deadline(b.cm), now + CM_LOOK_NS);
    now += CM_LOOK_NS;
    cm_expire(b.cm, now);
    ck_assert_uint_eq(cm_live(b.cm), 0);
    ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_silent_peer], 1);
}
END_TEST

START_TEST(sec_20_questions_have_half_of_the_places)
{
    /* SEC-20: requests that wait for their consumer leave the other half to peers that connect. */
    static const struct wire_addr any;
    struct cm_listener *l;
    teardown();
    setup_with((struct cm_params){0}, (struct cm_params){.max_conns = 8});
    cm_listen(b.cm, CM_PS_UDP, &any, 7000, 0, NULL, &l);
    ask_often(8, 7000);
    ck_assert_uint_eq(cm_live(b.cm), 5);
    ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_rx_rate_limited], 3);
    wait_ns(SEC + SEC / 2); /* repeated ones fill half of the rest */
    ck_assert_uint_eq(cm_live(b.cm), 7);
    ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_req_backlog_drop], 1);
}
END_TEST

/* CM-34: 64, or more while others leave room. */
static const struct {
    int backlog;
    unsigned asked, taken;
} sources[] = {{128, 70, 64}, {0, 520, 512}, {400, 250, 200}};

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

/* CM-34: requests that wait at another listener count for their source, and the count of a source
 * never overflows. */
START_TEST(cm_34_a_source_elsewhere)
{
    static const struct {
        uint16_t pending;
        unsigned backlog;
        bool taken;
    } rows[] = {{511, 0, true}, {512, 0, false}, {65534, 1000000, true}, {65535, 1000000, false}};
    static const struct wire_addr any;
    struct cm_listener *l;
    cm_listen(b.cm, CM_PS_UDP, &any, 7000, rows[_i].backlog, NULL, &l);
    for (unsigned i = 0; i < CM_SRC_BUCKETS; i++)
        b.cm->src_pending[i] = rows[_i].pending;
    ask_often(1, 7000);
    ck_assert_uint_eq(cm_live(b.cm), rows[_i].taken);
}
END_TEST

/* CM-34: a listener's backlog is that of its questions, too. */
START_TEST(cm_34_backlog_of_questions)
{
    struct cm_listener *l;
    cm_listen(b.cm, CM_PS_UDP, &b.addr, 7000, 3, NULL, &l);
    ask_often(5, 7000);
    ck_assert_uint_eq(cm_live(b.cm), 2);
    ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_rx_rate_limited], 3);
    wait_ns(SEC + SEC / 2); /* all are asked again */
    ck_assert_uint_eq(cm_live(b.cm), 3);
    ck_assert_uint_eq(cm_counters(b.cm)[CM_C_cm_req_backlog_drop], 2);
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
    Suite *s = suite_create("cm sidr");
    TCase *t = tcase_create("cm sidr");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, cm_31_datagram_service);
    tcase_add_test(t, cm_31_what_no_message_can_say);
    tcase_add_test(t, cm_31_what_a_question_says);
    tcase_add_test(t, cm_31_a_question_over_ipv6);
    tcase_add_loop_test(t, cm_31_good_and_bad_questions, 0,
                        sizeof(questions) / sizeof(questions[0]));
    tcase_add_test(t, cm_31_a_question_ends_with_its_listener);
    tcase_add_test(t, sec_20_questions_that_nobody_answers_expire);
    tcase_add_test(t, sec_20_requests_for_missing_services_leave_nothing);
    tcase_add_test(t, sec_20_questions_of_made_up_hosts_end_in_seconds);
    tcase_add_test(t, sec_20_questions_have_half_of_the_places);
    tcase_add_loop_test(t, cm_34_a_source_has_few_questions_pending, 0,
                        sizeof(sources) / sizeof(sources[0]));
    tcase_add_loop_test(t, cm_34_a_source_elsewhere, 0, 4);
    tcase_add_test(t, cm_34_backlog_of_questions);
    suite_add_tcase(s, t);
    return unit_run(s);
}
