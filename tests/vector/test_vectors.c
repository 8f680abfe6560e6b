/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Every vector of vectors.json against lib/wire.
 */
#include "vectors.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "unit.h"
#include "wire.h"
#include "wire_bytes.h"

/* Verdicts that need a queue pair or the CM: the wire layer lets these frames pass. */
static const char *const outside_wire[] = {"N08", "N14", "N15"};

static bool is_outside_wire(const char *id)
{
    for (size_t i = 0; i < sizeof(outside_wire) / sizeof(outside_wire[0]); i++)
        if (strcmp(outside_wire[i], id) == 0)
            return true;
    return false;
}

/* A number that stands in the JSON as such or as a string that begins with it. */
static uint64_t number(const json_t *j)
{
    if (json_is_integer(j))
        return (uint64_t)json_integer_value(j);
    ck_assert(json_is_string(j));
    return strtoull(json_string_value(j), NULL, 0);
}

static void check_ip(const struct vector *v, const struct wire_pkt *p, const char *text)
{
    char s[48];
    char d[48];
    char both[100];
    snprintf(both, sizeof(both), "%s>%s", wire_addr_str(&p->sip, s, sizeof(s)),
             wire_addr_str(&p->dip, d, sizeof(d)));
    ck_assert_msg(strcmp(both, text) == 0, "%s: %s, not %s", v->id, both, text);
}

/* "49152>4791 len 44 csum 0xaca2": the length is optional. */
static void check_udp(const struct vector *v, const struct wire_pkt *p, const char *text)
{
    const char *len = strstr(text, "len ");
    const char *csum = strstr(text, "csum ");
    ck_assert_msg(strtoul(text, NULL, 10) == p->sport, "%s source port", v->id);
    ck_assert_msg(strtoul(strchr(text, '>') + 1, NULL, 10) == p->dport, "%s port", v->id);
    if (len)
        ck_assert_msg(strtoul(len + 4, NULL, 10) == wire_get16(v->frame + p->udp_off + 4),
                      "%s UDP length", v->id);
    ck_assert_msg(strtoul(csum + 5, NULL, 0) == p->udp_csum, "%s UDP checksum", v->id);
}

static void check_payload(const struct vector *v, const struct wire_pkt *p, const char *text)
{
    const uint8_t *payload = v->frame + p->payload_off;
    size_t n = strlen(text);
    if (n == p->payload_len) { /* as text */
        ck_assert_msg(memcmp(payload, text, n) == 0, "%s payload", v->id);
    } else if (n == 2 * p->payload_len && strspn(text, "0123456789abcdef") == n) {
        for (size_t i = 0; i < n / 2; i++) {
            char pair[3] = {text[2 * i], text[2 * i + 1], 0};
            ck_assert_msg(payload[i] == strtoul(pair, NULL, 16), "%s payload", v->id);
        }
    } else { /* "1024 octets, i mod 256", "00..ff" */
        if (strchr(text, ' '))
            ck_assert_msg(strtoul(text, NULL, 10) == p->payload_len, "%s payload length", v->id);
        for (size_t i = 0; i < p->payload_len && !strstr(text, "952"); i++)
            ck_assert_msg(payload[i] == (i & 255), "%s payload", v->id);
    }
}

/* Fields that are one number. */
static int scalar(const char *key, const struct vector *v, const struct wire_pkt *p, uint64_t *got)
{
    const struct {
        const char *key;
        uint64_t value;
    } fields[] = {
        {"opcode", p->opcode},
        {"se", p->se},
        {"migreq", p->migreq},
        {"padcnt", p->pad},
        {"tver", p->tver},
        {"pkey", p->pkey},
        {"fecn", p->fecn},
        {"becn", p->becn},
        {"dqpn", p->dqpn},
        {"ackreq", p->ackreq},
        {"psn", p->psn},
        {"payload_len", p->payload_len},
        {"ip_id", p->ip_id},
        {"df", p->ip_flags >> 1},
        {"ttl", p->ttl},
        {"hop_limit", p->ttl},
        {"tos", p->tclass},
        {"tclass", p->tclass},
        {"flow_label", p->flow_label},
        {"ip_len", wire_get16(v->frame + p->ip_off + 2)},
        {"payload_length", wire_get16(v->frame + p->ip_off + 4)},
        {"atomicacketh", p->orig},
        {"ieth", p->rkey},
        {"imm", ntohl(p->imm)},
        {"reth.va", p->va},
        {"reth.rkey", p->rkey},
        {"reth.len", p->dma_len},
        {"aeth.syndrome", p->syndrome},
        {"aeth.msn", p->msn},
        {"atomiceth.va", p->va},
        {"atomiceth.rkey", p->rkey},
        {"atomiceth.swap_add", p->swap_add},
        {"atomiceth.compare", p->compare},
        {"deth.qkey", p->qkey},
        {"deth.srcqp", p->sqpn},
    };
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        if (strcmp(fields[i].key, key) == 0) {
            *got = fields[i].value;
            return 1;
        }
    return 0;
}

/* Fields that belong to other layers or only explain. */
static bool not_ours(const char *key)
{
    static const char *const keys[] = {"mad",  "req", "rep",      "rtu",     "dreq",
                                       "drep", "rej", "sidr_req", "reserved"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (strcmp(keys[i], key) == 0)
            return true;
    return false;
}

static void check_note(const struct vector *v, const char *note)
{
    const char *equal = strstr(note, "iCRC equals ");
    if (equal) {
        char id[4] = {0};
        memcpy(id, equal + 12, 3);
        ck_assert_msg(v->icrc == vectors_find(id)->icrc, "%s %s", v->id, note);
    }
}

/* One entry of "decoded"; `prefix` is "" or "reth." and so on. */
static void check_field(const struct vector *v, const struct wire_pkt *p, const char *prefix,
                        const char *key, const json_t *value)
{
    char name[64];
    uint64_t got;
    snprintf(name, sizeof(name), "%s%s", prefix, key);
    const char *text = json_string_value(value);
    if (json_is_object(value) && !not_ours(name)) {
        const char *k;
        json_t *sub;
        char inner[80];
        snprintf(inner, sizeof(inner), "%s.", name);
        json_object_foreach((json_t *)(uintptr_t)value, k, sub) check_field(v, p, inner, k, sub);
    } else if (scalar(name, v, p, &got)) {
        ck_assert_msg(got == number(value), "%s: %s is 0x%llx, not 0x%llx", v->id, name,
                      (unsigned long long)got, (unsigned long long)number(value));
    } else if (strcmp(name, "ip") == 0) {
        check_ip(v, p, text);
    } else if (strcmp(name, "udp") == 0) {
        check_udp(v, p, text);
    } else if (strcmp(name, "payload") == 0) {
        check_payload(v, p, text);
    } else if (strcmp(name, "vlan") == 0) {
        ck_assert(p->vlan);
        ck_assert_uint_eq(p->tci, strtoul(strstr(text, "TCI ") + 4, NULL, 0));
    } else if (strcmp(name, "note") == 0) {
        check_note(v, text);
    } else if (strcmp(name, "aeth") == 0) {
        ck_assert(json_is_null(value) && !(wire_opcodes[p->opcode].headers & WIRE_H_AETH));
    } else {
        ck_assert_msg(not_ours(name), "%s: no test for the field %s", v->id, name);
    }
}

static void check_rebuild(const struct vector *v, const struct wire_pkt *p)
{
    uint8_t out[VECTOR_FRAME_MAX];
    struct wire_pkt q = *p;
    size_t at = wire_build(out, sizeof(out), &q);
    ck_assert_msg(at == p->payload_off, "%s build", v->id);
    memcpy(out + at, v->frame + at, p->payload_len);
    size_t len = wire_frame_len(p);
    ck_assert_uint_eq(len, v->len);
    wire_icrc_seal(out, len, q.ip_off, q.bth_off);
    ck_assert_msg(memcmp(out, v->frame, len) == 0, "%s: other octets after re-building", v->id);
}

/* ICRC-09 HDR-01 V01..V33: good frames parse, decode as stated, and re-build to the same octets. */
START_TEST(hdr_01_positive)
{
    size_t n;
    size_t seen = 0;
    const struct vector *all = vectors_all(&n);
    for (size_t i = 0; i < n; i++) {
        const struct vector *v = &all[i];
        if (strcmp(v->kind, "positive") != 0)
            continue;
        struct wire_pkt p;
        enum wire_verdict got = wire_parse(v->frame, v->len, 0, &p);
        ck_assert_msg(got == WIRE_OK, "%s: %s", v->id, wire_verdict_name(got));
        ck_assert_msg(wire_icrc(v->frame, v->len, p.ip_off, p.bth_off) == v->icrc, "%s", v->id);
        const char *key;
        json_t *value;
        ck_assert(json_object_size(v->decoded) > 0);
        json_object_foreach((json_t *)(uintptr_t)v->decoded, key, value)
            check_field(v, &p, "", key, value);
        check_rebuild(v, &p);
        seen++;
    }
    ck_assert_uint_eq(seen, 31);
}
END_TEST

/* VAL-01 VAL-06 N01..N19: bad frames are refused with the stated counter. */
START_TEST(val_06_negative)
{
    size_t n;
    size_t refused = 0;
    size_t passed = 0;
    const struct vector *all = vectors_all(&n);
    for (size_t i = 0; i < n; i++) {
        const struct vector *v = &all[i];
        if (strcmp(v->kind, "negative") != 0)
            continue;
        struct wire_pkt p;
        const char *got = wire_verdict_name(wire_parse(v->frame, v->len, 0, &p));
        if (is_outside_wire(v->id)) {
            ck_assert_msg(strcmp(got, "ok") == 0, "%s: %s", v->id, got);
            check_rebuild(v, &p);
            passed++;
            continue;
        }
        ck_assert(strncmp(v->expect, "drop, ", 6) == 0);
        const char *want = v->expect + 6;
        ck_assert_msg(strcspn(want, " ") == strlen(got) && strncmp(want, got, strlen(got)) == 0,
                      "%s: %s, expected %s", v->id, got, want);
        refused++;
    }
    ck_assert_uint_eq(refused, 16);
    ck_assert_uint_eq(passed, 3);
}
END_TEST

/* KEY-02 N08: the core's check of the P_Key. */
START_TEST(key_02_n08)
{
    const struct vector *v = vectors_find("N08");
    struct wire_pkt p;
    ck_assert_int_eq(wire_parse(v->frame, v->len, 0, &p), WIRE_OK);
    ck_assert(!wire_pkey_match(p.pkey, WIRE_PKEY_DEFAULT));
}
END_TEST

/* WIRE-02 ICRC-01 V04, V05: RoCE v1 is not ours, but its CRC checks our routine. Masked like IPv6:
 * traffic class, flow label and hop limit of the GRH, octet 4 of the BTH; there is no UDP header.
 */
START_TEST(wire_02_roce_v1)
{
    static const char *const ids[] = {"V04", "V05"};
    for (size_t i = 0; i < 2; i++) {
        const struct vector *v = vectors_find(ids[i]);
        struct wire_pkt p;
        uint8_t m[8 + VECTOR_FRAME_MAX];
        size_t n = v->len - WIRE_ETH_LEN - WIRE_ICRC_LEN;
        ck_assert_int_eq(wire_parse(v->frame, v->len, 0, &p), WIRE_NOT_ROCE);
        memset(m, 0xFF, 8);
        uint8_t *grh = m + 8;
        memcpy(grh, v->frame + WIRE_ETH_LEN, n);
        grh[0] |= 0x0F;
        grh[1] = grh[2] = grh[3] = grh[7] = grh[40 + 4] = 0xFF;
        ck_assert_uint_eq(wire_icrc_update(0, m, n + 8), v->icrc);
    }
}
END_TEST

UNIT_MAIN("vectors", hdr_01_positive, val_06_negative, key_02_n08, wire_02_roce_v1)
