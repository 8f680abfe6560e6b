/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The drill language: an error in a text is reported with its place, and a script whose
 * expectations aren't met fails, at the right line, for the right reason. tests/drill has the
 * scripts that pass.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "drill.h"
#include "unit.h"

/* ---- texts that are no scripts ---- */

static const struct {
    const char *text;
    unsigned line, column;
    const char *says;
} bad_texts[] = {
    {"frobnicate A", 1, 1, "there is no statement 'frobnicate'"},
    {"qp A rc\n\n< write_onl psn 0", 3, 3, "there is no opcode 'write_onl'"},
    {"< ack colour 3", 1, 7, "'<' has no field 'colour'"},
    {"< ack psn", 1, 10, "expected a number, LOW..HIGH, * or ?NAME, found the end of the line"},
    {"< ack psn ]", 1, 11, "found ']'"},
    {"< ack !psn 3", 1, 8, "'psn' is no flag"},
    {"qp A xy", 1, 6, "one of rc, uc, ud, xrc_ini, xrc_tgt, found"},
    {"qp A rc path_mtu 1000", 1, 18, "one of 256, 512, 1024, 2048, 4096"},
    {"mr M 12q", 1, 6, "unknown unit"},
    {"mr M 99999999999999999999", 1, 6, "at most 64 bits"},
    {"mr M 0x", 1, 6, "digits must follow 0x"},
    {"set x 1'", 1, 7, "' stands between two digits"},
    {"set x 1''000", 1, 7, "' stands between two digits"},
    {"set x 0x1'g", 1, 7, "' stands between two digits"},
    {"set x 10'K", 1, 7, "' stands between two digits"},
    {"wait 10", 1, 6, "expected a time, such as 10us, found '10'"},
    {"+10us..5us > ack", 1, 12, "ends before it begins"},
    {"cqe A good", 1, 7, "one of success"},
    {"post A write id 1 -> EWRONG", 1, 22, "one of EINVAL"},
    {"post A write inline \"abc", 1, 21, "the string has no end"},
    {"fill M hex \"1\"", 1, 12, "an octet has two digits"},
    {"fill M hex \"1x\"", 1, 12, "'x' is no hexadecimal digit"},
    {"< cm hello", 1, 6, "one of req, mra"},
    {"< opcode 256", 1, 10, "an opcode, 0..255"},
    {"addr add \"10.0.0\"", 1, 10, "'10.0.0' is no IP address"},
    {"< ack smac \"00:11:22:33:44:xx\"", 1, 12, "is no MAC address"},
    {"< ack smac \"00:11:-2:33:44:+5\"", 1, 12, "is no MAC address"},
    {"< ack smac \"0:11:22:33:44:555\"", 1, 12, "is no MAC address"},
    {"any {\n> ack\n", 1, 1, "this block has no '}'"},
    {"any", 1, 4, "expected '{'"},
    {"wait 1us\n}", 2, 1, "'}' without '{'"},
    {"qp A rc rts rts", 1, 13, "has no field 'rts'"},
    {"set x 1 + 2 + 3 + 4 + 5", 1, 23, "at most 4 terms"},
    {"pd", 1, 3, "expected a name, found the end of the line"},
    {"pd P Q", 1, 6, "has no field 'Q'"},
    {"mem M zero", 1, 7, "expected '='"},
    {"qp A rc tiemout 5", 1, 9, "'tiemout' is neither a state nor a field of 'qp'"},
    {"qp A rc sqd", 1, 9, "a new queue pair goes up to rts, not to sqd"},
    {"set M.va 5", 1, 5, "a new name has no '.'"},
    {"> ack psn ?A.b", 1, 12, "a new name has no '.'"},
    {"", 1, 1, "at least one statement"},
    {"# only a comment\n\n", 1, 1, "at least one statement"},
    {"qp A rc\xff", 1, 8, "this octet is no character"},
    {"qp A rc\r\n< ack \001", 2, 7, "this octet is no character"},
    {"\xef\xbb\xbfqp \001", 1, 4, "this octet is no character"}, /* a byte order mark before it */
    {"any {\n  wait 1us\n}", 2, 3, "within any { } are >, cqe, event and cm_event, no 'wait'"},
    {"any {\nany {\n}\n}", 2, 1, "no 'any'"},
    {"cqe A yes", 1, 7, "fatal_err, general_err, found 'yes'"},
    /* fields that would mean nothing where they are */
    {"> ack icrc bad", 1, 7, "'> ack' takes no 'icrc'"},
    {"> ack cut 3", 1, 7, "'> ack' takes no 'cut'"},
    {"ignore ack patch bth 1", 1, 12, "takes no 'patch'"},
    {"< ack octet bth+0 1", 1, 7, "'< ack' takes no 'octet'"},
    {"< ack icrc good", 1, 12, "one of bad"},
    {"< ack va 5", 1, 7, "'< ack' takes no 'va'"},
    {"< write_middle rkey 5", 1, 16, "takes no 'rkey'"},
    {"< opcode 4 va 3", 1, 12, "'< opcode 4' takes no 'va'"},
    {"< nak_seq credits 5", 1, 11, "takes no 'credits'"},
    {"< ack timer 5", 1, 7, "takes no 'timer'"},
    {"< ack syndrome 0x60", 1, 7, "takes no 'syndrome'"},
    {"> ack sel_psn 1", 1, 7, "takes no 'sel_psn'"},
    {"< cm rtu qpn 5", 1, 10, "'< cm rtu' takes no 'qpn'"},
    {"< cm rep src_port 5", 1, 10, "takes no 'src_port'"},
    {"< cm req len 5", 1, 10, "takes no 'len'"},
    {"< ack psn 1 psn 2", 1, 13, "'psn' is given twice"},
    {"post A write add 5", 1, 14, "'post A write' takes no 'add'"},
    {"post A send to R", 1, 13, "takes no 'to'"},
    {"post A fetch_add swap 3", 1, 18, "takes no 'swap'"},
    {"post A read from M into M", 1, 20, "'into' means the same as 'from', which is given"},
    {"post A read into M into M", 1, 20, "'into' is given twice"},
    {"recv A imm 3", 1, 8, "'recv A' takes no 'imm'"},
    {"mr M 4K size 5", 1, 9, "'mr M 4K' takes no 'size'"},
    {"cq C pd P", 1, 6, "takes no 'pd'"},
    {"qp A rc state init", 1, 9, "takes no 'state'"},
    {"modify A max_sge 3", 1, 10, "takes no 'max_sge'"},
    {"query A av", 1, 9, "takes no 'av'"},
    {"listen L qp A", 1, 10, "takes no 'qp'"},
    {"cm_event request X reason 3", 1, 20, "takes no 'reason'"},
    {"wait 1us -> EINVAL", 1, 10, "'wait' is no call that could fail"},
    {"> ack -> EINVAL", 1, 7, "'>' is no call"},
    {"+1us..2us < ack", 1, 11, "'<' is at one time"},
};

START_TEST(a_bad_text_is_refused_with_its_place)
{
    struct drill_error err;
    const char *text = bad_texts[_i].text;
    struct drill_script *s = drill_parse(text, strlen(text), &err);
    ck_assert_msg(!s, "%s", text);
    ck_assert_msg(strstr(err.text, bad_texts[_i].says), "%s: %s", text, err.text);
    ck_assert_uint_eq(err.line, bad_texts[_i].line);
    ck_assert_uint_eq(err.column, bad_texts[_i].column);
}
END_TEST

START_TEST(a_script_has_a_limit_and_says_what_it_is_for)
{
    static const char text[] = "# REQ-07 ACK-05: a purpose\nwire\nqp A rc\n";
    struct drill_error err;
    struct drill_script *s = drill_parse(text, sizeof(text) - 1, &err);
    ck_assert_ptr_nonnull(s);
    ck_assert_str_eq(drill_rules(s), "REQ-07 ACK-05");
    ck_assert_str_eq(drill_purpose(s), "a purpose");
    drill_free(s);
    s = drill_parse("\xef\xbb\xbf# Note: no rule \r\nqp A rc\r\n", 29, &err);
    ck_assert_str_eq(drill_rules(s), "");
    ck_assert_str_eq(drill_purpose(s), "Note: no rule");
    drill_free(s);
    char *big = calloc(1, DRILL_TEXT_MAX + 1);
    memset(big, '\n', DRILL_TEXT_MAX + 1);
    ck_assert_ptr_null(drill_parse(big, DRILL_TEXT_MAX + 1, &err));
    ck_assert_ptr_nonnull(strstr(err.text, "at most"));
    free(big);
}
END_TEST

/* ---- scripts that don't pass ---- */

#define SETUP "qp A rc\nmr M 16K\nremote R 64K\n" /* lines 1 to 3 */

static const struct {
    const char *text;
    enum drill_verdict verdict;
    unsigned line;
    const char *what, *fields;
} failing[] = {
    /* packets */
    {SETUP "post A send from M,10\n> send_only psn 1\n", DRILL_FAIL, 5, "another packet came",
     "psn: expected 1, got 0"},
    {SETUP "post A send from M,10\n> write_only\n", DRILL_FAIL, 5, "another packet came",
     "opcode: expected RC_WRITE_ONLY, got RC_SEND_ONLY"},
    {SETUP "post A send from M,10\n> send_only !ackreq\n", DRILL_FAIL, 5, "another packet came",
     "ackreq: expected 0, got 1"},
    {SETUP "post A send from M,10\n> send_only len 11..20\n", DRILL_FAIL, 5, "another packet came",
     "len: expected 11..20, got 10"},
    {SETUP "post A send from M,10\n> send_only data M+1\n", DRILL_FAIL, 5, "another packet came",
     "data octet 0"},
    {SETUP "post A send from M,10\n> send_only data \"123456789\"\n", DRILL_FAIL, 5,
     "another packet came", "len: expected 9, got 10"},
    {SETUP "post A send from M,10\n> send_only dip \"10.0.0.9\"\n", DRILL_FAIL, 5,
     "another packet came", "dip: expected 10.0.0.9, got 10.0.0.2"},
    {SETUP "post A write from M,10 to R\n> write_only va R+1\n", DRILL_FAIL, 5,
     "another packet came", "va: expected"},
    {SETUP "< write_only va M rkey M len 10 ackreq\n> nak_access\n", DRILL_FAIL, 5,
     "another packet came", "syndrome: expected 0x62, got 0x1f"},
    {SETUP "< write_only va M rkey M len 10 ackreq\n> rnr_nak\n", DRILL_FAIL, 5,
     "another packet came", "syndrome: expected an RNR NAK"},
    {SETUP "> ack\n", DRILL_FAIL, 4, "no packet came within", ""},
    {SETUP "< write_only va M rkey M len 10 ackreq\n", DRILL_FAIL, 0,
     "a packet came that the script doesn't expect", ""},
    {SETUP "post A send from M,10\nnothing 1us\n", DRILL_FAIL, 5, "a packet came", ""},
    /* time */
    {SETUP "post A send from M,10\n> send_only\n+1ms > send_only\n", DRILL_FAIL, 6,
     "no packet came within", ""},
    {SETUP "post A send from M,10\n> send_only\n+70ms..80ms > send_only\n", DRILL_FAIL, 6,
     "it came after 67.11 ms, expected 70.00 ms to 80.00 ms", ""},
    {SETUP "wait 10us\n@5us < ack\n", DRILL_WRONG, 5, "that time has passed", ""},
    /* completions, events, states */
    {SETUP "post A send from M,10\n> send_only\n< ack\ncqe A rem_op_err\n", DRILL_FAIL, 7,
     "another completion came", "status: expected rem_op_err, got success"},
    {SETUP "post A send id 4 from M,10\n> send_only\n< ack\ncqe A success id 5\n", DRILL_FAIL, 7,
     "another completion came", "id: expected 5, got 4"},
    {SETUP "post A send id 4 from M,10\n> send_only\n< ack\n", DRILL_FAIL, 0,
     "a completion came that the script doesn't expect: id 4, success", ""},
    {SETUP "cqe A success\n", DRILL_FAIL, 4, "none of these happened within", ""},
    {SETUP "< write_only va M+16K rkey M len 10\n> nak_access\n", DRILL_FAIL, 0,
     "an event came that the script doesn't expect: qp_access_err", ""},
    {SETUP "< write_only va M+16K rkey M len 10\n> nak_access\nevent A comm_est\n", DRILL_FAIL, 6,
     "the event was qp_access_err", ""},
    {SETUP "state A err\n", DRILL_FAIL, 4, "the state is rts", ""},
    {SETUP "counter tx_ack 1\n", DRILL_FAIL, 4, "tx_ack is 0, expected 1", ""},
    {SETUP "counter no_such 1\n", DRILL_WRONG, 4, "there is no counter 'no_such'", ""},
    {SETUP "info A epsn 1\n", DRILL_FAIL, 4, "it is different", "epsn: expected 1, got 0"},
    {SETUP "mem M,10 = zero\n", DRILL_FAIL, 4, "other octets are there", "M+"},
    {SETUP "< write_only va M rkey M len 4\nmem M,4 = same\n", DRILL_FAIL, 5,
     "other octets are there", "M+0"},
    {SETUP "any {\n> ack\ncqe A success\n}\n", DRILL_FAIL, 5, "it didn't happen within", ""},
    /* calls */
    {SETUP "modify A state init\n", DRILL_FAIL, 4, "the call returned EINVAL, expected success",
     ""},
    {SETUP "move A init\n", DRILL_FAIL, 4, "the call returned EINVAL", ""},
    {SETUP "move A sqd timeout 3\n", DRILL_FAIL, 4, "the call returned EINVAL", ""},
    {SETUP "qp B rc init timeout 3\n", DRILL_WRONG, 4,
     "'timeout' is no attribute on the way to init", ""},
    {SETUP "qp B uc retry_cnt 3\n", DRILL_WRONG, 4, "'retry_cnt' is no attribute on the way", ""},
    {SETUP "modify A !cap access rr\npost A send from M !unsignaled rqpn 3\n", DRILL_WRONG, 5,
     "'rqpn' is for datagrams", ""},
    {SETUP "post A send from M len 3\n", DRILL_WRONG, 4, "'len' is of 'inline'", ""},
    {SETUP "modify A state err -> EINVAL\n", DRILL_FAIL, 4,
     "the call returned success, expected EINVAL", ""},
    /* scripts that name missing objects */
    {SETUP "post B send from M\n", DRILL_WRONG, 4, "'B' is no queue pair", ""},
    {SETUP "qp A rc\n", DRILL_WRONG, 4, "there is a queue pair 'A' already", ""},
    {SETUP "post A send from Q,10\n", DRILL_WRONG, 4, "'Q' is no memory", ""},
    {SETUP "< write_only va A len 10\n", DRILL_WRONG, 4, "'A' is no number here", ""},
    {SETUP "< write_only va nowhere len 10\n", DRILL_WRONG, 4, "there is no 'nowhere'", ""},
    {SETUP "< ack psn 1..2\n", DRILL_WRONG, 4, "must be one number", ""},
    {SETUP "< ack patch tcp+1 0\n", DRILL_WRONG, 4, "one of eth, ip, udp, bth", ""},
    {SETUP "< ack cut 1000\n", DRILL_WRONG, 4, "the frame has", ""},
    {SETUP "< ack cut 0\n> ack\n", DRILL_FAIL, 5, "no packet came", ""},
    {SETUP "< ack extra 0xffffffffffffffff\n", DRILL_WRONG, 4, "has more than 32 bits", ""},
    {SETUP "< ack extra 10 cut 73\n", DRILL_WRONG, 4, "cut 73: the frame has 72 octets", ""},
    {SETUP "wait 18446744073s\n", DRILL_WRONG, 4, "time ends before that", ""},
    {SETUP "+18446744073s < ack\n", DRILL_WRONG, 4, "time ends before that", ""},
    {SETUP "@1us..18446744073s > ack\n", DRILL_WRONG, 4, "time ends before that", ""},
    {SETUP "nothing 18446744073s\n", DRILL_WRONG, 4, "time ends before that", ""},
    {SETUP "patience 18446744073s\ncqe A success\n", DRILL_WRONG, 5, "time ends before that", ""},
    {SETUP "< ack ttl 300\n", DRILL_WRONG, 4, "'ttl': 0x12c has more than 8 bits", ""},
    {SETUP "< ack dqpn A+0x1000000\n", DRILL_WRONG, 4, "has more than 24 bits", ""},
    {SETUP "< ack dscp 64\n", DRILL_WRONG, 4, "has more than 6 bits", ""},
    {SETUP "< ack credits 32\n", DRILL_WRONG, 4, "has more than 5 bits", ""},
    {SETUP "< write_only rkey 0x100000000\n", DRILL_WRONG, 4, "has more than 32 bits", ""},
    {SETUP "< cm req transport 4\n", DRILL_WRONG, 4, "'transport': 0x4 has more than 2 bits", ""},
    {SETUP "< cm req method ?m\n", DRILL_WRONG, 4, "'method' must be one number", ""},
    {SETUP "modify A timeout 256\n", DRILL_WRONG, 4, "has more than 8 bits", ""},
    {SETUP "srq S\nlimit S 0x100000001\n", DRILL_WRONG, 5, "0x100000001 has more than 32 bits", ""},
    {SETUP "srq S\nresize S 0x100000100\n", DRILL_WRONG, 5, "0x100000100 has more than 32 bits",
     ""},
    {SETUP "recv A into M,4G\n", DRILL_WRONG, 4, "at most 32 bits of length", ""},
    {"device window 15\n", DRILL_WRONG, 1, "window: 15, the least is 16", ""},
    {"device window 0\n", DRILL_WRONG, 1, "window: 0, the least is 16", ""},
    {"device cc \"dcqn\"\n", DRILL_WRONG, 1, "cc: dcqn: no such congestion control", ""},
    {SETUP "qp B rc cc \"dcqcn,g=2\"\n", DRILL_WRONG, 4, "cc: g=2: want", ""},
    {"device pkey 1 pkey 2 pkey 3 pkey 4 pkey 5\n", DRILL_WRONG, 1, "the table has 4 entries", ""},
    {SETUP "< ack patch bth+1 256\n", DRILL_WRONG, 4, "0x100 is no octet", ""},
    {SETUP "fill M fill 256\n", DRILL_WRONG, 4, "0x100 is no octet", ""},
    {SETUP "fill M,2 \"abc\"\n", DRILL_WRONG, 4, "these are 3 octets, not 2", ""},
    {SETUP "fill M,8K zero\nfill M,4097 zero\nmem M,10 = \"abc\"\n", DRILL_WRONG, 6,
     "these are 3 octets, not 10", ""},
    {SETUP "< send_only data stream 1\n", DRILL_WRONG, 4, "'len' is missing", ""},
    {SETUP "< send_only len 2 data \"abc\"\n", DRILL_WRONG, 4, "these are 3 octets, not 2", ""},
    {SETUP "post A send inline zero\n", DRILL_WRONG, 4, "'len' is missing", ""},
    {SETUP "< cm req private zero\n", DRILL_WRONG, 4, "private: octets with a length", ""},
    {SETUP "post A send from M,3\n> send_only data \"\"\n", DRILL_FAIL, 5, "another packet came",
     "len: expected 0, got 3"},
    {SETUP "< ack flow_label 1\n", DRILL_WRONG, 4, "'flow_label' is of IPv6, the packet is IPv4",
     ""},
    {SETUP "< ack sip \"fd00::9\"\n", DRILL_WRONG, 4, "'sip' is of IPv6", ""},
    {SETUP "set x 9\npost A send from M,3\nany {\n> send_only len 4 psn ?x\n> send_only\n}\n",
     DRILL_FAIL, 7, "it didn't happen", ""},
    {SETUP "ignore send_only len 4 psn ?x\npost A send from M,3\n> send_only\nis x 0\n",
     DRILL_WRONG, 7, "there is no 'x'", ""},
    {SETUP "destroy M\ndestroy M\n", DRILL_WRONG, 5, "the memory region 'M' is gone already", ""},
    {SETUP "copies hold 2\n", DRILL_WRONG, 4, "no such number here: 2", ""},
    {SETUP "copies free 2\n", DRILL_WRONG, 4, "no such number here: 2", ""},
    {SETUP "gather ok 2\n", DRILL_WRONG, 4, "no such number here: 2", ""},
    {SETUP "recv A\n< send_only len 3\ncqe A success imm *\n", DRILL_FAIL, 6,
     "another completion came", "imm: expected one, got none"},
    {SETUP "< write_only va M rkey M len 4 ackreq\n> ack dmac \"02:00:00:00:00:09\"\n", DRILL_FAIL,
     5, "another packet came", "dmac: expected 02:00:00:00:00:09, got 02:00:00:00:00:02"},
    {SETUP "listen L\n< cm req private \"abc\"\ncm_event request X private \"abd\"\n", DRILL_FAIL,
     6, "the event has other values", "private octet 2: expected 0x64, got 0x63"},
    {SETUP "copies hold\nrepeat 1100 {\n< write_only va M rkey M len 8\n}\n", DRILL_WRONG, 6,
     "more than 1024 copies are held", ""},
    {SETUP "event M comm_est\n", DRILL_WRONG, 4, "the memory region 'M' has no events", ""},
    {SETUP "destroy Z\n", DRILL_WRONG, 4, "there is no 'Z'", ""},
    {SETUP "mr N 1G\n", DRILL_WRONG, 4, "all memory together", ""},
    {SETUP "device mtu 1024\n", DRILL_WRONG, 4, "must be the first statement", ""},
    {SETUP "repeat 2000000 {\nset x 1\n}\n", DRILL_WRONG, 4, "at most", ""},
    {SETUP "repeat 1000000 {\nrepeat 1000000 {\n}\n}\n", DRILL_WRONG, 5, "statements and time-outs",
     ""},
};

START_TEST(what_does_not_come_true_fails_with_its_line)
{
    static const struct drill_options o = {.psn = 0xFFFFFE};
    struct drill_error err;
    struct drill_report r;
    const char *text = failing[_i].text;
    struct drill_script *s = drill_parse(text, strlen(text), &err);
    ck_assert_msg(s, "%s: line %u: %s", text, err.line, err.text);
    drill_run(s, &o, &r);
    ck_assert_msg(r.verdict == failing[_i].verdict, "%s: %s: %s", text,
                  drill_verdict_names[r.verdict], r.what);
    ck_assert_msg(strstr(r.what, failing[_i].what), "%s: %s", text, r.what);
    ck_assert_msg(strstr(r.fields, failing[_i].fields), "%s: %s", text, r.fields);
    ck_assert_uint_eq(r.line, failing[_i].line);
    drill_free(s);
}
END_TEST

/* LR-02: an unexpected packet of selective repeat is shown with its own name. */
START_TEST(lr_02_what_came_is_shown)
{
    static const char text[] = "qp A rc recovery sr\n"
                               "< sr_acknowledge psn 0 syndrome 0x1f sel_psn 0\n> ack\n";
    static const struct drill_options o = {.psn = 1};
    struct drill_error err;
    struct drill_report r;
    struct drill_script *s = drill_parse(text, strlen(text), &err);
    ck_assert_msg(s, "%s", err.text);
    drill_run(s, &o, &r);
    ck_assert_int_eq(r.verdict, DRILL_FAIL);
    ck_assert_msg(strstr(r.got, "10.0.0.2 SR_ACKNOWLEDGE qp 0x"), "%s", r.got);
    ck_assert_msg(!strstr(r.got, "rx_"), "%s", r.got);
    drill_free(s);
}
END_TEST

/* ---- time, values, frames ---- */

struct seen {
    unsigned in, out;
    uint32_t out_order, in_order;
    uint64_t last;
    char comment[128];
};

static void on_frame(void *arg, uint64_t ns, uint32_t order, enum drill_direction dir,
                     const uint8_t *frame, uint32_t len, const char *comment)
{
    struct seen *seen = arg;
    struct wire_pkt p;
    ck_assert_int_eq(wire_parse(frame, len, 0, &p), WIRE_OK);
    seen->in += dir == DRILL_TO_DEVICE;
    seen->out += dir == DRILL_FROM_DEVICE;
    *(dir == DRILL_TO_DEVICE ? &seen->in_order : &seen->out_order) = order;
    seen->last = ns;
    strcpy(seen->comment, comment ? comment : "-");
}

static struct drill_report passes(const char *text, const struct drill_options *o)
{
    struct drill_error err;
    struct drill_report r;
    struct drill_script *s = drill_parse(text, strlen(text), &err);
    ck_assert_msg(s, "%s", err.text);
    drill_run(s, o, &r);
    ck_assert_msg(r.verdict == DRILL_PASS, "line %u: %s %s", r.line, r.what, r.fields);
    drill_free(s);
    return r;
}

START_TEST(frames_are_told_with_their_time_and_statement)
{
    static const char text[] = "qp A rc\nmr M 4K\nwait 1s\npost A send from M,10\n"
                               "> send_only psn ?first len ?n\n+20us < ack psn first # late\n"
                               "cqe A success\nset sum first+n+5\nmem M+sum-15,1 = M\n";
    struct seen seen = {0};
    struct drill_options o = {.psn = 7, .arg = &seen, .frame = on_frame};
    struct drill_report r = passes(text, &o);
    ck_assert_uint_eq(seen.in, 1);
    ck_assert_uint_eq(seen.out, 1);
    ck_assert_uint_eq(seen.last, 1000020000);
    ck_assert_str_eq(seen.comment, "+20us < ack psn first # late");
    ck_assert_uint_eq(r.packets, 2);
}
END_TEST

/* The packet was sent before the answer came, though its statement comes later. */
START_TEST(frames_have_the_order_of_the_wire)
{
    static const char text[] = "qp A rc\nmr M 4K\npost A send from M,10\n< ack psn 0\n> send_only\n"
                               "cqe A success\n";
    struct seen seen = {0};
    struct drill_options o = {.psn = 7, .arg = &seen, .frame = on_frame};
    passes(text, &o);
    ck_assert_uint_eq(seen.out_order, 0);
    ck_assert_uint_eq(seen.in_order, 1);
}
END_TEST

START_TEST(responses_go_on_by_themselves)
{
    static const char text[] = "qp A rc\nmr M 4K\nremote R 4K\npost A read into M,3000 to R\n"
                               "> read_request\n< read_resp_first len 1024\n"
                               "< read_resp_middle len 1024\n< read_resp_last len 952\n"
                               "cqe A success\nmem M,3000 = stream 1\n";
    static const struct drill_options o = {.psn = 0xFFFFFF};
    passes(text, &o);
}
END_TEST

/* CPU seconds for this many WRITEs, one after the other. */
static double cpu_of(unsigned n)
{
    char text[256];
    struct timespec a, b;
    snprintf(text, sizeof(text),
             "qp A rc\nmr M 4K\nremote R 4K\nrepeat %u {\npost A write from M,1 to R\n"
             "> write_only\n< ack psn i\ncqe A success\n}\n",
             n);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    passes(text, &(struct drill_options){.psn = 0});
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    return (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
}

/* Packets that a script has consumed are not searched again. Other work on the machine makes a run
 * longer, never shorter: the shortest of several counts. */
START_TEST(a_long_script_takes_longer_in_proportion)
{
    double few = 1e9, many = 1e9;
    for (unsigned tries = 0; tries < 5; tries++) {
        double a = cpu_of(10000), b = cpu_of(60000);
        few = a < few ? a : few;
        many = b < many ? b : many;
        if (many < 18 * few)
            return;
    }
    ck_abort_msg("%.3f s for 10,000, %.3f s for six times as many", few, many);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("drill");
    TCase *t = tcase_create("drill");
    tcase_add_loop_test(t, a_bad_text_is_refused_with_its_place, 0,
                        sizeof(bad_texts) / sizeof(bad_texts[0]));
    tcase_add_test(t, a_script_has_a_limit_and_says_what_it_is_for);
    tcase_add_loop_test(t, what_does_not_come_true_fails_with_its_line, 0,
                        sizeof(failing) / sizeof(failing[0]));
    tcase_add_test(t, lr_02_what_came_is_shown);
    tcase_add_test(t, frames_are_told_with_their_time_and_statement);
    tcase_add_test(t, frames_have_the_order_of_the_wire);
    tcase_add_test(t, responses_go_on_by_themselves);
    tcase_add_test(t, a_long_script_takes_longer_in_proportion);
    tcase_set_timeout(t, 60);
    suite_add_tcase(s, t);
    return unit_run(s);
}
