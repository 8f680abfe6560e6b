/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writes the program of a claim, instruction by instruction, and attaches it.
 */
#include "dpdk_claim.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of Linux 6.6: newer than Debian 12's headers. */
#define TCX_ATTACH_INGRESS 46u
#define TCX_VERDICT_NEXT   (-1)
#define TCX_VERDICT_DROP   2

#define ROCE_PORT 4791

/* Offsets in an Ethernet frame without VLAN tag. */
enum { ETH_TYPE = 12, IP4 = 14, IP4_UDP = IP4 + 20, IP6 = 14, IP6_UDP = IP6 + 40 };

/* The program's two exits are at its beginning, where every instruction can jump back to. */
enum { AT_NEXT = 1, AT_DROP = 3 };

#define INSNS_FIXED    40u
#define INSNS_PER_ADDR 8u

/* The place of the frame's first octets: at the end of the program's stack, with the IP header
 * aligned. */
#define HEAD_ROOM 66

struct program {
    struct bpf_insn insn[INSNS_FIXED + CLAIM_ADDRS_MAX * INSNS_PER_ADDR];
    unsigned n;
};

static void emit(struct program *p, int code, int dst, int src, int off, int imm)
{
    p->insn[p->n++] = (struct bpf_insn){.code = (uint8_t)code,
                                        .dst_reg = (uint8_t)dst & 15,
                                        .src_reg = (uint8_t)src & 15,
                                        .off = (int16_t)off,
                                        .imm = imm};
}

/* Jump to `target` if the comparison of register 0's 32 bits with a constant is true. */
static void jump(struct program *p, int op, uint32_t with, int target)
{
    emit(p, BPF_JMP32 | op | BPF_K, BPF_REG_0, 0, target - (int)p->n - 1, (int)with);
}

static void leave(struct program *p, int verdict)
{
    emit(p, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, verdict);
    emit(p, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

/* Copy the frame's octets from `from` to `to` to the stack, or leave if the frame is shorter. All
 * in one copy: few of them lie in the buffer's linear part, and each access to the others is a
 * walk. */
static void fetch(struct program *p, int from, int to)
{
    emit(p, BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_1, BPF_REG_6, 0, 0);
    emit(p, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_2, 0, 0, from);
    emit(p, BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_3, BPF_REG_10, 0, 0);
    // NOLINTNEXTLINE(misc-redundant-expression): BPF_ADD and BPF_K are two things, both of value 0
    emit(p, BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_3, 0, 0, from - HEAD_ROOM);
    emit(p, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_4, 0, 0, to - from);
    emit(p, BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_skb_load_bytes);
    jump(p, BPF_JNE, 0, AT_NEXT);
}

/* Load fetched octets into register 0, in memory order. The constants compared with them have
 * memory order, too. */
static void load(struct program *p, int size, int off)
{
    emit(p, BPF_LDX | BPF_MEM | size, BPF_REG_0, BPF_REG_10, off - HEAD_ROOM, 0);
}

static uint32_t word_at(const uint8_t *b)
{
    uint32_t w;
    memcpy(&w, b, sizeof(w));
    return w;
}

static bool is_ip4(const struct io_addr *a)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    return memcmp(a->b, mapped, sizeof(mapped)) == 0;
}

static void match_ip4(struct program *p, const struct io_addr *addrs, unsigned n)
{
    load(p, BPF_B, IP4);
    jump(p, BPF_JNE, 0x45, AT_NEXT);
    load(p, BPF_H, IP4 + 6);
    jump(p, BPF_JSET, htons(0x3fff), AT_NEXT); /* a fragment */
    load(p, BPF_B, IP4 + 9);
    jump(p, BPF_JNE, IPPROTO_UDP, AT_NEXT);
    load(p, BPF_H, IP4_UDP + 2);
    jump(p, BPF_JNE, htons(ROCE_PORT), AT_NEXT);
    load(p, BPF_W, IP4 + 16);
    for (unsigned i = 0; i < n; i++)
        if (is_ip4(&addrs[i]))
            jump(p, BPF_JEQ, word_at(addrs[i].b + 12), AT_DROP);
    emit(p, BPF_JMP | BPF_JA, 0, 0, AT_NEXT - (int)p->n - 1, 0);
}

static void match_ip6(struct program *p, const struct io_addr *addrs, unsigned n)
{
    load(p, BPF_B, IP6 + 6);
    jump(p, BPF_JNE, IPPROTO_UDP, AT_NEXT);
    fetch(p, IP6 + 24, IP6_UDP + 4);
    load(p, BPF_H, IP6_UDP + 2);
    jump(p, BPF_JNE, htons(ROCE_PORT), AT_NEXT);
    for (unsigned i = 0; i < n; i++) {
        if (is_ip4(&addrs[i]))
            continue;
        int other = (int)(p->n + INSNS_PER_ADDR);
        for (size_t word = 0; word < 4; word++) {
            load(p, BPF_W, (int)(IP6 + 24 + 4 * word));
            if (word < 3)
                jump(p, BPF_JNE, word_at(addrs[i].b + 4 * word), other);
            else
                jump(p, BPF_JEQ, word_at(addrs[i].b + 12), AT_DROP);
        }
    }
    emit(p, BPF_JMP | BPF_JA, 0, 0, AT_NEXT - (int)p->n - 1, 0);
}

static void write_program(struct program *p, const struct io_addr *addrs, unsigned n)
{
    unsigned to_ip6;
    p->n = 0;
    emit(p, BPF_JMP | BPF_JA, 0, 0, 4, 0);
    leave(p, TCX_VERDICT_NEXT);
    leave(p, TCX_VERDICT_DROP);
    emit(p, BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_6, BPF_REG_1, 0, 0);
    emit(p, BPF_LDX | BPF_MEM | BPF_W, BPF_REG_0, BPF_REG_6,
         offsetof(struct __sk_buff, vlan_present), 0);
    jump(p, BPF_JNE, 0, AT_NEXT);
    fetch(p, ETH_TYPE, IP4_UDP + 4);
    load(p, BPF_H, ETH_TYPE);
    to_ip6 = p->n;
    jump(p, BPF_JEQ, htons(ETH_P_IPV6), 0);
    jump(p, BPF_JNE, htons(ETH_P_IP), AT_NEXT);
    match_ip4(p, addrs, n);
    p->insn[to_ip6].off = (int16_t)(p->n - to_ip6 - 1);
    match_ip6(p, addrs, n);
}

static int bpf(int cmd, union bpf_attr *attr)
{
    long rc = syscall(SYS_bpf, cmd, attr, sizeof(*attr));
    return rc < 0 ? -errno : (int)rc;
}

int claim_make(int ifindex, const struct io_addr *addrs, unsigned n)
{
    static const char licence[] = "BSD-3-Clause";
    struct program p;
    union bpf_attr attr;
    int prog, link;
    write_program(&p, addrs, n < CLAIM_ADDRS_MAX ? n : CLAIM_ADDRS_MAX);
    memset(&attr, 0, sizeof(attr));
    attr.prog_type = BPF_PROG_TYPE_SCHED_CLS;
    attr.insns = (uintptr_t)p.insn;
    attr.insn_cnt = p.n;
    attr.license = (uintptr_t)licence;
    memcpy(attr.prog_name, "urnic_claim", sizeof("urnic_claim"));
    prog = bpf(BPF_PROG_LOAD, &attr);
    if (prog < 0)
        return prog;

    memset(&attr, 0, sizeof(attr));
    attr.link_create.prog_fd = (uint32_t)prog;
    attr.link_create.target_ifindex = (uint32_t)ifindex;
    attr.link_create.attach_type = TCX_ATTACH_INGRESS;
    link = bpf(BPF_LINK_CREATE, &attr);
    close(prog);
    return link;
}
