/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lib/wire for scripts: what the oracle test compares with scapy and tshark.
 *
 *     frame_tool gen SEED      build frames of every opcode, print one JSON line each
 *     frame_tool parse         read frames in hexadecimal, one a line, print one JSON line each
 *
 * A line has the frame ("hex"), the verdict, and the fields that a frame of this opcode has.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire.h"

static uint64_t rng_state;

/* splitmix64 */
static uint64_t rng(void)
{
    uint64_t z = rng_state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static void field(const char *name, uint64_t value)
{
    printf(",\"%s\":%llu", name, (unsigned long long)value);
}

static void print_ext(const struct wire_pkt *p)
{
    unsigned h = wire_opcodes[p->opcode].headers;
    uint8_t imm[4];
    if (h & (WIRE_H_RETH | WIRE_H_ATOMICETH)) {
        field("va", p->va);
        field("rkey", p->rkey);
    }
    if (h & WIRE_H_RETH)
        field("dma_len", p->dma_len);
    if (h & WIRE_H_ATOMICETH) {
        field("swap_add", p->swap_add);
        field("compare", p->compare);
    }
    if (h & WIRE_H_AETH) {
        field("syndrome", p->syndrome);
        field("msn", p->msn);
    }
    if (h & WIRE_H_ATOMICACK)
        field("orig", p->orig);
    if (h & WIRE_H_DETH) {
        field("qkey", p->qkey);
        field("sqpn", p->sqpn);
    }
    if (h & WIRE_H_IETH)
        field("inv_rkey", p->rkey);
    if (h & WIRE_H_IMMDT) {
        memcpy(imm, &p->imm, 4);
        printf(",\"imm\":\"%02x%02x%02x%02x\"", imm[0], imm[1], imm[2], imm[3]);
    }
}

static void print_frame(const uint8_t *frame, size_t len)
{
    struct wire_pkt p;
    char text[48];
    enum wire_verdict v = wire_parse(frame, len, 0, &p);
    printf("{\"verdict\":\"%s\"", wire_verdict_name(v));
    if (v == WIRE_OK) {
        field("ip_version", p.ip_version);
        if (p.vlan)
            field("tci", p.tci);
        printf(",\"sip\":\"%s\"", wire_addr_str(&p.sip, text, sizeof(text)));
        printf(",\"dip\":\"%s\"", wire_addr_str(&p.dip, text, sizeof(text)));
        field("tclass", p.tclass);
        field("ttl", p.ttl);
        field(p.ip_version == 4 ? "ip_id" : "flow_label",
              p.ip_version == 4 ? p.ip_id : p.flow_label);
        field("sport", p.sport);
        printf(",\"name\":\"%s\"", wire_opcodes[p.opcode].name);
        field("opcode", p.opcode);
        field("se", p.se);
        field("migreq", p.migreq);
        field("pad", p.pad);
        field("pkey", p.pkey);
        field("fecn", p.fecn);
        field("becn", p.becn);
        field("dqpn", p.dqpn);
        field("ackreq", p.ackreq);
        field("psn", p.psn);
        field("payload_len", p.payload_len);
        field("payload_off", p.payload_off);
        field("bth_off", p.bth_off);
        field("icrc", wire_icrc(frame, p.icrc_off + 4u, p.ip_off, p.bth_off));
        print_ext(&p);
    }
    printf(",\"hex\":\"");
    for (size_t i = 0; i < len; i++)
        printf("%02x", frame[i]);
    printf("\"}\n");
}

/* A random frame of this opcode; the transport fields are independent of each other. */
static void gen_frame(uint8_t opcode, bool v6, bool vlan, uint32_t payload)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    static const uint8_t syndromes[] = {0x00, 0x0C, 0x1F, 0x20, 0x2C, 0x60, 0x61, 0x62, 0x63, 0x64};
    struct wire_pkt p = {
        .dmac = {0x02, 0, 0, 0, 0, 2},
        .smac = {0x02, 0, 0, 0, 0, 1},
        .vlan = vlan,
        .tci = (uint16_t)rng(),
        .ip_version = v6 ? 6 : 4,
        .tclass = (uint8_t)rng(),
        .ttl = (uint8_t)rng(),
        .ip_id = (uint16_t)rng(),
        .ip_flags = 2,
        .flow_label = (uint32_t)rng(),
        .sip = wire_addr_v4(0x0A000000u | (rng() & 0xFFFFFFu)),
        .dip = wire_addr_v4(0xC0A80000u | (rng() & 0xFFFFu)),
        .sport = (uint16_t)(0xC000u | rng()),
        .opcode = opcode,
        .se = rng() & 1,
        .migreq = rng() & 1,
        .ackreq = rng() & 1,
        .fecn = rng() & 1,
        .becn = rng() & 1,
        .pkey = (uint16_t)rng(),
        .dqpn = (uint32_t)(rng() % 0xFFFFFEu + 1u),
        .psn = (uint32_t)rng() & WIRE_PSN_MASK,
        .va = rng(),
        .rkey = (uint32_t)rng(),
        .dma_len = (uint32_t)rng(),
        .swap_add = rng(),
        .compare = rng(),
        .orig = rng(),
        .syndrome = syndromes[rng() % sizeof(syndromes)],
        .msn = (uint32_t)rng() & 0xFFFFFFu,
        .imm = (uint32_t)rng(),
        .qkey = (uint32_t)rng(),
        .sqpn = (uint32_t)(rng() % 0xFFFFFEu + 1u),
        .xrc_srqn = (uint32_t)rng(),
        .feth = (uint32_t)rng() & 0x3Fu,
        .payload_len = payload,
    };
    if (v6) {
        for (size_t i = 0; i < 16; i++) {
            p.sip.b[i] = (uint8_t)rng();
            p.dip.b[i] = (uint8_t)rng();
        }
        p.sip.b[0] = p.dip.b[0] = 0xFD;
    }
    size_t at = wire_build(frame, sizeof(frame), &p);
    for (uint32_t i = 0; i < payload; i++)
        frame[at + i] = (uint8_t)rng();
    size_t len = wire_frame_len(&p);
    wire_icrc_seal(frame, len, p.ip_off, p.bth_off);
    print_frame(frame, len);
}

static void gen_all(void)
{
    static const uint32_t lengths[] = {0, 1, 2, 3, 4, 13, 256, 1023, 4096};
    for (unsigned op = 0; op < 256; op++) {
        const struct wire_opcode_info *info = &wire_opcodes[op];
        if (!info->name)
            continue;
        bool payload = info->flags & WIRE_F_PAYLOAD;
        for (size_t i = 0; i < (payload ? sizeof(lengths) / sizeof(lengths[0]) : 3u); i++) {
            bool v6 = rng() & 1;
            bool vlan = (rng() & 3) == 0;
            gen_frame((uint8_t)op, v6, vlan, payload ? lengths[i] : 0);
        }
    }
}

static int parse_all(void)
{
    static char line[2 * 9300];
    static uint8_t frame[9300];
    while (fgets(line, sizeof(line), stdin)) {
        size_t n = strcspn(line, "\n") / 2;
        for (size_t i = 0; i < n; i++) {
            char pair[3] = {line[2 * i], line[2 * i + 1], 0};
            char *end;
            frame[i] = (uint8_t)strtoul(pair, &end, 16);
            if (*end) {
                fprintf(stderr, "not hexadecimal: %s\n", pair);
                return 1;
            }
        }
        print_frame(frame, n);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "gen") == 0) {
        rng_state = strtoull(argv[2], NULL, 0);
        gen_all();
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "parse") == 0)
        return parse_all();
    fprintf(stderr, "usage: %s gen SEED | parse\n", argv[0]);
    return 2;
}
