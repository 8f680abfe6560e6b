/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Wrong rule texts: position, expected and found word. And right ones as printed.
 */
#include <string.h>

#include "fault.h"
#include "unit.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct {
    const char *text;
    unsigned line, column;
    const char *says; /* a part of the message */
} wrong[] = {
    {"dorp", 1, 1,
     "expected an action: drop, delay, duplicate, reorder, corrupt, mark, trim, "
     "inject or set, found 'dorp'"},
    {"# fine\n\n  dorp conn 1", 3, 3, "found 'dorp'"},
    {"drop\r\ndorp\r\n", 2, 1, "found 'dorp'"},
    {"\xef\xbb\xbf dorp\n", 1, 2, "found 'dorp'"}, /* a byte order mark is not part of the text */
    {"drop conn", 1, 10,
     "a number from 0 to 4294967295 or a range of them, A..B, A.. or ..B, "
     "found the end of the line"},
    {"drop conn # 2", 1, 11, "found the end of the line"},
    {"drop conn x", 1, 11, "found 'x'"},
    {"drop conn 0", 1, 11, "a connection's number, from 1, found '0'"},
    {"drop conn 3..2", 1, 11, "the range 3..2 ends before it begins"},
    {"drop conn ..", 1, 11, "found '..'"},
    {"drop conn 1 conn 2", 1, 13, "'conn': the rule already has one of this kind"},
    {"drop retx first-tx", 1, 11, "'first-tx': the rule already has one of this kind"},
    {"drop nth 2 every 2", 1, 12, "'every': the rule already has one of this kind"},
    {"drop a->b b->a", 1, 11, "'b->a': the rule already has one of this kind"},
    {"drop data ack", 1, 11, "'ack': the rule already has one of this kind"},
    {"drop dat", 1, 6, "a class (data, ack ...) or an opcode's name, found 'dat'"},
    {"drop data|dat", 1, 11, "found 'dat'"},
    {"drop data|", 1, 11, "'|' joins two names, without blanks"},
    {"drop |data", 1, 6, "'|' joins two names, without blanks"},
    {"drop write | ack", 1, 12, "'|' joins two names, without blanks"},
    {"drop pos first | only", 1, 16, "'|' joins two names, without blanks"},
    {"drop pos first|", 1, 16, "'|' joins two names, without blanks"},
    {"drop pos", 1, 9, "a position: first, middle, last or only, found the end of the line"},
    {"drop psn", 1, 9, "a PSN (4711), one from the connection's first (+4), or a range of them"},
    {"drop psn 0x1000000", 1, 10, "found '0x1000000'"},
    {"drop psn +", 1, 10, "found '+'"},
    {"drop psn +9..4", 1, 10, "found '+9..4'"},
    {"drop psn 4..+9", 1, 10, "found '4..+9'"},
    {"drop psn -1", 1, 10, "found '-1'"},
    {"drop pos begin", 1, 10, "a position: first, middle, last or only, found 'begin'"},
    {"drop size 70000", 1, 11, "a number from 0 to 65535 or a range"},
    {"drop size 1.5", 1, 11, "found '1.5'"},
    {"drop size 1.5K", 1, 11, "found '1.5K'"},
    {"drop nth 0", 1, 10, "a number from 1, found '0'"},
    {"drop every 0", 1, 12, "a number from 1 to 4294967295, found '0'"},
    {"drop prob 2", 1, 11, "a probability such as 0.01, 1% or 1/100, found '2'"},
    {"drop prob 101%", 1, 11, "found '101%'"},
    {"drop prob 1/0", 1, 11, "found '1/0'"},
    {"drop prob .", 1, 11, "found '.'"},
    {"drop prob 1/2%", 1, 11, "found '1/2%'"},
    {"drop after 5", 1, 12, "a time such as 500ns, 1.5us or 20ms, found '5'"},
    {"drop after 5h", 1, 12, "found '5h'"},
    {"drop after us", 1, 12, "found 'us'"},
    {"drop after 1.us", 1, 12, "found '1.us'"},
    {"drop until", 1, 11, "found the end of the line"},
    {"drop after 5ms until 5ms", 1, 22, "the time window ends before it begins"},
    {"drop until 2ms after 5ms", 1, 22, "the time window ends before it begins"},
    {"drop src 10.0.0", 1, 10, "an address such as 10.0.0.1, fe80::1 or 10.0.0.0/8"},
    {"drop src 10.0.0.0/33", 1, 10, "found '10.0.0.0/33'"},
    {"drop dst fe80::/129", 1, 10, "found 'fe80::/129'"},
    {"drop op 256", 1, 9, "a number from 0 to 255, found '256'"},
    {"drop and", 1, 9, "expected an action"},
    {"drop and mark and mark and mark and mark", 1, 37, "a rule has at most 4 actions"},
    {"delay", 1, 6, "a time such as 500ns, 1.5us or 20ms or a range of them, A..B, found the end"},
    {"delay 5us..", 1, 7, "found '5us..'"},
    {"delay 5us..2us", 1, 7, "the range 5us..2us ends before it begins"},
    {"delay 2000000s", 1, 7, "found '2000000s'"},
    {"duplicate 0", 1, 11, "a number from 1 to 64, found '0'"},
    {"reorder", 1, 8, "a number from 1 to 1024, found the end of the line"},
    {"reorder 3 within 7", 1, 18, "a time"},
    {"corrupt", 1, 8, "a part to corrupt: byte, payload, random or icrc"},
    {"corrupt byte", 1, 13, "a number from 0 to 65535"},
    {"corrupt byte 1 xor 0", 1, 20, "a number from 1 to 255, found '0'"},
    {"corrupt byte 1 xor 0x100", 1, 20, "found '0x100'"},
    {"trim 3", 1, 6, "a number from 14 to 65535, found '3'"},
    {"inject ack", 1, 8, "a packet to inject: cnp, nak or pause, found 'ack'"},
    {"inject nak", 1, 11, "a NAK: psn-seq, invalid, access, op-error or rnr"},
    {"inject nak rnr 32", 1, 16, "a number from 0 to 31, found '32'"},
    {"inject pause 8", 1, 14, "a number from 0 to 7, found '8'"},
    {"inject pause 3 65536", 1, 16, "a number from 0 to 65535"},
    {"set", 1, 4, "a field: dscp ecn ttl sport dport opcode"},
    {"set psm 5", 1, 5, "found 'psm'"},
    {"set dscp 64", 1, 10, "a number from 0 to 63, found '64'"},
    {"set psn + 5", 1, 9, "found '+'"},
    {"drop \x01\xff", 1, 6,
     "found '?"
     "?'"},
    {"drop 01234567890123456789012345678901234567", 1, 6,
     "found '01234567890123456789012345678901...'"},
};

START_TEST(what_is_wrong_is_told_with_its_place)
{
    struct fault_error err;
    const char *text = wrong[_i].text;
    ck_assert_msg(!fault_parse(text, strlen(text), 1, &err), "'%s' was taken", text);
    ck_assert_msg(err.line == wrong[_i].line && err.column == wrong[_i].column &&
                      strstr(err.text, wrong[_i].says),
                  "'%s': %u:%u: %s", text, err.line, err.column, err.text);
}
END_TEST

static const struct {
    const char *text;
    unsigned rules;
    const char *first; /* the first one, as printed */
    unsigned line;
} right[] = {
    {"", 0},
    {"\n # only a comment\n\n", 0},
    {"drop conn 2 psn +4 first-tx", 1, "drop conn 2 psn +4 first-tx", 1},
    {"# two\n\tdrop \t psn +4#five\r\nmark\n", 2, "drop psn +4", 2},
    {"mark and delay 5us..1.5ms data a->b every 10", 1,
     "mark and delay 5us..1.5ms data a->b every 10", 1},
    {"DROP RC_Write_First|ACK A->B", 1, "DROP RC_Write_First|ACK A->B", 1},
    {"set psn +0x10 norepair psn 5 first 3", 1, "set psn +0x10 norepair psn 5 first 3", 1},
    {"inject pause 3 100 forth after 0s until 1s\n", 1,
     "inject pause 3 100 forth after 0s until 1s", 1},
    {"inject nak rnr 14 nth 3\ninject cnp back ud", 2, "inject nak rnr 14 nth 3", 1},
    {"reorder 3 within 20us size 1K.. payload ..4096", 1,
     "reorder 3 within 20us size 1K.. payload ..4096", 1},
    {"corrupt payload 3 xor 0x80 repair prob 1/3", 1, "corrupt payload 3 xor 0x80 repair prob 1/3",
     1},
    {"corrupt random 2 and trim 100 and duplicate and mark", 1,
     "corrupt random 2 and trim 100 and duplicate and mark", 1},
};

START_TEST(what_is_right_is_taken_and_told_again)
{
    struct fault_error err;
    struct fault_rule_stats s;
    const char *text = right[_i].text;
    struct fault *f = fault_parse(text, strlen(text), 1, &err);
    ck_assert_msg(f, "'%s': %u:%u: %s", text, err.line, err.column, err.text);
    ck_assert_uint_eq(fault_rules(f), right[_i].rules);
    if (right[_i].first) {
        ck_assert_str_eq(fault_describe(f, 0), right[_i].first);
        fault_rule_stats(f, 0, &s);
        ck_assert_uint_eq(s.line, right[_i].line);
        ck_assert_uint_eq(s.matched + s.done + s.failed, 0);
    }
    fault_free(f);
}
END_TEST

/* The text ends at len, not at its NUL. */
START_TEST(the_text_ends_where_it_ends)
{
    struct fault_error err;
    struct fault *f = fault_parse("drop psn 12345", 11, 1, &err);
    ck_assert_ptr_nonnull(f);
    ck_assert_str_eq(fault_describe(f, 0), "drop psn 12");
    fault_free(f);
    ck_assert_ptr_null(fault_parse("drop\0conn", 9, 1, &err));
    ck_assert_str_eq(strstr(err.text, "found"), "found 'drop?conn'");
}
END_TEST

START_TEST(too_many_rules_are_refused)
{
    static char text[5 * (FAULT_RULES_MAX + 1)];
    struct fault_error err;
    for (unsigned i = 0; i <= FAULT_RULES_MAX; i++)
        memcpy(text + 5 * i, "mark\n", 5);
    struct fault *f = fault_parse(text, sizeof(text) - 5, 1, &err);
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fault_rules(f), FAULT_RULES_MAX);
    fault_free(f);
    ck_assert_ptr_null(fault_parse(text, sizeof(text), 1, &err));
    ck_assert_uint_eq(err.line, FAULT_RULES_MAX + 1);
    ck_assert_str_eq(err.text, "more than 1024 rules");
    ck_assert_ptr_null(fault_parse(text, FAULT_TEXT_MAX + 1, 1, &err));
    ck_assert_uint_eq(err.line, 0);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("text");
    Suite *suite = suite_create("fault parse");
    tcase_add_loop_test(c, what_is_wrong_is_told_with_its_place, 0, (int)COUNT(wrong));
    tcase_add_loop_test(c, what_is_right_is_taken_and_told_again, 0, (int)COUNT(right));
    tcase_add_test(c, the_text_ends_where_it_ends);
    tcase_add_test(c, too_many_rules_are_refused);
    suite_add_tcase(suite, c);
    return unit_run(suite);
}
