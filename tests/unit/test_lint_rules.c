/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Each rule that lint knows, broken once: a good exchange, one packet changed, and exactly that
 * rule is found, at that packet.
 */
#include <stdio.h>
#include <string.h>

#include "lint_rig.h"
#include "unit.h"
#include "wire_bytes.h"
#include "wire_csum.h"

static const struct step send3[] = {{.opcode = RC(SEND_FIRST), .psn = 100, .len = 1024},
                                    {.opcode = RC(SEND_MIDDLE), .psn = 101, .len = 1024},
                                    {.opcode = RC(SEND_LAST), .psn = 102, .len = 5, .ackreq = true},
                                    ACK(102, 1),
                                    END};

/* READs of several packets, one after the other. */
#define READ3(psn_, msn_)                                                                          \
    {.opcode = RC(READ_REQUEST), .psn = psn_, .dma_len = 3072, .va = 0x1000},                      \
        RESP(READ_RESP_FIRST, psn_, 1024, msn_), RESP(READ_RESP_MIDDLE, psn_ + 1, 1024, msn_),     \
        RESP(READ_RESP_LAST, psn_ + 2, 1024, msn_)
static const struct step steps_reads[] = {READ3(100, 1), READ3(103, 2), READ3(106, 3),
                                          SEND(109, 8),  ACK(109, 4),   END};

/* A network that loses packets, perhaps the RNR NAK too. */
static const struct step read_late[] = {
    SEND(100, 64),
    {.from_b = true,
     .opcode = RC(ACKNOWLEDGE),
     .psn = 100,
     .syndrome = 0x1F,
     .msn = 1,
     .after = 50},
    SEND(104, 64),
    {.from_b = true,
     .opcode = RC(ACKNOWLEDGE),
     .psn = 101,
     .syndrome = 0x60,
     .msn = 1,
     .after = 50},
    {.opcode = RC(READ_REQUEST), .psn = 101, .dma_len = 3072, .va = 0x1000},
    /* 5 */
    {.from_b = true,
     .opcode = RC(READ_RESP_FIRST),
     .psn = 101,
     .len = 1024,
     .syndrome = 0x1F,
     .msn = 2,
     .after = 50},
    RESP(READ_RESP_MIDDLE, 102, 1024, 2),
    RESP(READ_RESP_LAST, 103, 1024, 2),
    SEND(104, 64),
    ACK(104, 3),
    END};
static const struct step rnr_loss[] = {
    SEND(100, 64),
    ACK(100, 1),
    {.opcode = RC(SEND_ONLY), .psn = 101, .len = 64, .gone = true},
    SEND(102, 64),
    NAK(101, 0x60, 1),
    /* 5 */ SEND(101, 64),
    SEND(102, 64),
    ACK(102, 3),
    SEND(103, 64),
    NAK(103, 0x20 | 14, 3),
    /* 10 */ {.opcode = RC(SEND_ONLY), .psn = 103, .len = 64, .ackreq = true, .after = 500},
    ACK(103, 4),
    END};

/* One RNR NAK is obeyed and one isn't: perhaps that one never arrived, and this is a time-out. */
#define REFUSED(psn_, msn_, wait_)                                                                 \
    SEND(psn_, 64), NAK(psn_, 0x20 | 14, msn_),                                                    \
        {.opcode = RC(SEND_ONLY), .psn = psn_, .len = 64, .ackreq = true, .after = wait_},         \
        ACK(psn_, (msn_) + 1)
static const struct step rnr_obeyed[] = {
    SEND(98, 64),          ACK(98, 1),           SEND(99, 64), ACK(99, 2),
    REFUSED(100, 2, 1400), REFUSED(101, 3, 500), END};
static const struct step rnr_disobeyed[] = {
    SEND(98, 64),          ACK(98, 1),           SEND(99, 64),         ACK(99, 2),
    REFUSED(100, 2, 1400), REFUSED(101, 3, 500), REFUSED(102, 4, 600), END};

static const struct step refused[] = {
    SEND(100, 64),
    ACK(100, 1),
    {.opcode = RC(WRITE_ONLY), .psn = 101, .len = 64, .dma_len = 64, .ackreq = true},
    NAK(101, 0x62, 1),
    END};

/* Messages that are under way at once, and READs and ATOMICs among them. */
static const struct step pipelined[] = {SEND(100, 64),
                                        ACK(100, 1),
                                        {.opcode = RC(FETCH_ADD), .psn = 101},
                                        RESP(ATOMIC_ACK, 101, 0, 2),
                                        SEND(102, 64),
                                        /* 5 */ SEND(103, 64),
                                        SEND(104, 64),
                                        ACK(102, 3),
                                        ACK(103, 4),
                                        ACK(104, 5),
                                        /* 10 */ {.opcode = RC(FETCH_ADD), .psn = 105},
                                        RESP(ATOMIC_ACK, 105, 0, 6),
                                        SEND(106, 64),
                                        SEND(107, 64),
                                        ACK(106, 7),
                                        /* 15 */ ACK(107, 8),
                                        {.opcode = RC(READ_REQUEST), .psn = 108, .dma_len = 8},
                                        RESP(READ_RESP_ONLY, 108, 8, 9),
                                        SEND(109, 64),
                                        ACK(109, 10),
                                        END};

static const struct step datagrams[] = {{.opcode = UD_SEND, .psn = 1, .len = 64},
                                        {.opcode = UD_SEND, .psn = 2, .len = 64},
                                        {.opcode = UD_SEND, .psn = 3, .len = 64},
                                        {.opcode = UD_SEND, .psn = 4, .len = 64},
                                        END};

/* READs, behind each of which something else was under way. */
static const struct step reads_and_sends[] = {
    {.opcode = RC(READ_REQUEST), .psn = 100, .dma_len = 8},
    SEND(101, 64),
    SEND(102, 64),
    RESP(READ_RESP_ONLY, 100, 8, 1),
    ACK(101, 2),
    /* 5 */ {.opcode = RC(READ_REQUEST), .psn = 103, .dma_len = 8},
    SEND(104, 64),
    RESP(READ_RESP_ONLY, 103, 8, 4),
    ACK(104, 5),
    SEND(105, 64),
    /* 10 */ ACK(105, 6),
    {.opcode = RC(FETCH_ADD), .psn = 106},
    RESP(ATOMIC_ACK, 106, 0, 7),
    END};

/* 150 was never sent. */
static const struct step never_read[] = {
    SEND(100, 64),         ACK(100, 1), SEND(101, 64), ACK(101, 2), RESP(READ_RESP_ONLY, 150, 8, 3),
    /* 5 */ SEND(102, 64), ACK(102, 3), SEND(103, 64), ACK(103, 4), END};

/* A READ of several packets, and a SEND that was under way when it was answered. */
static const struct step read_and_send[] = {
    {.opcode = RC(SEND_FIRST), .psn = 99, .len = 1024},
    {.opcode = RC(SEND_LAST), .psn = 100, .len = 5, .ackreq = true},
    ACK(100, 1),
    SEND(101, 64),
    ACK(101, 2),
    /* 5 */ {.opcode = RC(READ_REQUEST), .psn = 102, .dma_len = 3072, .va = 0x1000},
    SEND(105, 64),
    RESP(READ_RESP_FIRST, 102, 1024, 3),
    RESP(READ_RESP_MIDDLE, 103, 1024, 3),
    RESP(READ_RESP_LAST, 104, 1024, 3),
    ACK(105, 4),
    END};

/* From 102 on one message too many is counted, or one too few. */
#define FROM_102(msn_)                                                                             \
    SEND(100, 64), ACK(100, 1), SEND(101, 64), ACK(101, 2), SEND(102, 64), ACK(102, msn_),         \
        SEND(103, 64), ACK(103, (msn_) + 1), SEND(104, 64), ACK(104, (msn_) + 2), SEND(105, 64),   \
        ACK(105, (msn_) + 3), SEND(106, 64), SEND(107, 64), ACK(106, (msn_) + 4),                  \
        ACK(107, (msn_) + 5), END
static const struct step one_too_many[] = {FROM_102(4)}, one_too_few[] = {FROM_102(2)};

/* The answer to the READ counts the SEND behind it, which was sent before and not captured. */
static const struct step counted_early[] = {SEND(100, 64),
                                            ACK(100, 1),
                                            SEND(101, 64),
                                            ACK(101, 2),
                                            {.opcode = RC(READ_REQUEST), .psn = 102, .dma_len = 8},
                                            /* 5 */ RESP(READ_RESP_ONLY, 102, 8, 4),
                                            {.opcode = RC(READ_REQUEST), .psn = 102, .dma_len = 8},
                                            RESP(READ_RESP_ONLY, 102, 8, 4),
                                            SEND(103, 64),
                                            ACK(103, 4),
                                            SEND(104, 64),
                                            ACK(104, 5),
                                            END};

/* The first ACK has been lost behind the capture, perhaps. */
static const struct step answered_again[] = {
    {.cm = CM_REQ},
    {.cm = CM_REP, .from_b = true},
    {.cm = CM_RTU},
    SEND(100, 64),
    ACK(100, 1),
    /* 5 */ SEND(101, 64),
    {.opcode = RC(SEND_ONLY), .psn = 101, .len = 64, .ackreq = true, .after = 5000},
    ACK(100, 1),
    {.opcode = RC(SEND_ONLY), .psn = 101, .len = 64, .ackreq = true, .after = 5000},
    {.opcode = RC(SEND_ONLY), .psn = 101, .len = 64, .ackreq = true, .after = 5000},
    END};

/* PSNs from before a connection's first one. */
static const struct step ack_first[] = {{.cm = CM_REQ},
                                        {.cm = CM_REP, .from_b = true},
                                        {.cm = CM_RTU},
                                        ACK(50, 0),
                                        SEND(100, 64),
                                        ACK(100, 1),
                                        END};
static const struct step second_life[] = {
    SEND(50, 64),          ACK(50, 7),  {.cm = CM_REQ}, {.cm = CM_REP, .from_b = true},
    {.cm = CM_RTU},
    /* 5 */ SEND(100, 64), ACK(100, 1), ACK(50, 7),     END};

/* A repeated SEND is acknowledged with its own PSN, though a later one has been executed; with the
 * count as it was, or as it is now. */
#define REPEATED(msn_)                                                                             \
    {                                                                                              \
        SEND(100, 64), ACK(100, 1), SEND(101, 64), SEND(102, 64), ACK(101, 2), ACK(102, 3),        \
            SEND(101, 64), SEND(102, 64), ACK(101, msn_), ACK(102, 3), SEND(103, 64), ACK(103, 4), \
            END                                                                                    \
    }
static const struct step repeated_then[] = REPEATED(2), repeated_now[] = REPEATED(3);

/* Answers that aren't to the request with their PSN: it comes later, or is a READ. */
static const struct step read_response_early[] = {
    SEND(100, 64),
    ACK(100, 1),
    {.opcode = RC(READ_REQUEST), .psn = 101, .dma_len = 64},
    RESP(READ_RESP_ONLY, 102, 64, 2),
    SEND(102, 64),
    ACK(102, 3),
    END};
static const struct step atomic_ack_early[] = {SEND(100, 64),
                                               ACK(100, 1),
                                               {.opcode = RC(FETCH_ADD), .psn = 101},
                                               RESP(ATOMIC_ACK, 102, 0, 2),
                                               SEND(102, 64),
                                               ACK(102, 3),
                                               END};
static const struct step atomic_ack_in_read[] = {
    {.opcode = RC(SEND_FIRST), .psn = 99, .len = 1024},
    {.opcode = RC(SEND_LAST), .psn = 100, .len = 5, .ackreq = true},
    ACK(100, 1),
    {.opcode = RC(READ_REQUEST), .psn = 101, .dma_len = 3072},
    RESP(READ_RESP_FIRST, 101, 1024, 2),
    RESP(READ_RESP_MIDDLE, 102, 1024, 2),
    RESP(READ_RESP_LAST, 103, 1024, 2),
    {.opcode = RC(FETCH_ADD), .psn = 104},
    RESP(ATOMIC_ACK, 103, 0, 3),
    SEND(105, 64),
    ACK(105, 4),
    END};

/* 102 is lost before the capture; what asks for it, or acknowledges what is before it, counts. */
#define AMID(...)                                                                                  \
    SEND(100, 64), ACK(100, 1), SEND(101, 64), ACK(101, 2), SEND(103, 64), __VA_ARGS__,            \
        SEND(102, 64), SEND(103, 64), ACK(103, 4), SEND(104, 64), ACK(104, 5), END
static const struct step nak_counts[] = {AMID(NAK(102, 0x60, 3))};
static const struct step same_ack[] = {SEND(100, 64), ACK(100, 1),   SEND(101, 64),
                                       ACK(101, 2),   SEND(102, 64), ACK(101, 3),
                                       SEND(103, 64), ACK(103, 4),   END};

/* After a fatal NAK a responder goes on as if nothing had been sent that it has refused. */
static const struct step goes_on[] = {
    SEND(100, 64),
    ACK(100, 1),
    SEND(101, 64),
    ACK(101, 2),
    SEND(102, 64),
    ACK(102, 3),
    {.opcode = RC(WRITE_ONLY), .psn = 103, .len = 64, .dma_len = 64, .ackreq = true},
    NAK(103, 0x62, 3),
    SEND(104, 64),
    ACK(104, 4),
    END};

static const struct step many_under_way[] = {
    SEND(100, 64), ACK(100, 1),   SEND(101, 64), SEND(102, 64), SEND(103, 64), SEND(104, 64),
    SEND(105, 64), SEND(106, 64), SEND(107, 64), SEND(108, 64), ACK(108, 9),   END};

static const struct step acks[] = {SEND(100, 64),
                                   ACK(100, 1),
                                   SEND(101, 64),
                                   ACK(101, 2),
                                   SEND(102, 64),
                                   ACK(102, 3),
                                   SEND(103, 64),
                                   ACK(103, 4),
                                   SEND(104, 64),
                                   ACK(104, 5),
                                   END};
/* What was lost is sent again. */
static const struct step atomics_again[] = {SEND(100, 64),
                                            ACK(100, 1),
                                            {.opcode = RC(FETCH_ADD), .psn = 101},
                                            {.opcode = RC(FETCH_ADD), .psn = 101, .after = 90000},
                                            RESP(ATOMIC_ACK, 101, 0, 2),
                                            END};
/* Behind a READ other requests come at once. */
static const struct step read_and_more[] = {
    {.opcode = RC(SEND_FIRST), .psn = 100, .len = 1024},
    {.opcode = RC(SEND_LAST), .psn = 101, .len = 5},
    ACK(101, 1),
    {.opcode = RC(READ_REQUEST), .psn = 102, .dma_len = 1000},
    SEND(103, 8),
    /* 5 */ SEND(104, 8),
    RESP(READ_RESP_ONLY, 102, 1000, 2),
    ACK(103, 3),
    ACK(104, 4),
    {.opcode = RC(FETCH_ADD), .psn = 105},
    /* 10 */ RESP(ATOMIC_ACK, 105, 0, 5),
    {.opcode = RC(READ_REQUEST), .psn = 106, .dma_len = 2048},
    RESP(READ_RESP_FIRST, 106, 1024, 6),
    RESP(READ_RESP_LAST, 107, 1024, 6),
    SEND(108, 8),
    /* 15 */ ACK(108, 7),
    END};

/* The same, and the capture has seen two of them in the other order. */
static const struct step read_and_late[] = {
    {.opcode = RC(SEND_FIRST), .psn = 100, .len = 1024},
    {.opcode = RC(SEND_LAST), .psn = 101, .len = 5},
    ACK(101, 1),
    {.opcode = RC(READ_REQUEST), .psn = 102, .dma_len = 1000},
    SEND(104, 8),
    /* 5 */ SEND(103, 8),
    RESP(READ_RESP_ONLY, 102, 1000, 2),
    ACK(103, 3),
    ACK(104, 4),
    {.opcode = RC(FETCH_ADD), .psn = 105},
    /* 10 */ RESP(ATOMIC_ACK, 105, 0, 5),
    END};

/* A WRITE whose packets all come a second time. */
#define WRITE3(after_)                                                                             \
    {.opcode = RC(WRITE_FIRST),                                                                    \
     .psn = 101,                                                                                   \
     .len = 1024,                                                                                  \
     .dma_len = 2501,                                                                              \
     .va = 0x1000,                                                                                 \
     .after = (after_)},                                                                           \
        {.opcode = RC(WRITE_MIDDLE), .psn = 102, .len = 1024},                                     \
    {                                                                                              \
        .opcode = RC(WRITE_LAST), .psn = 103, .len = 453, .ackreq = true                           \
    }
static const struct step write_again[] = {SEND(100, 64), ACK(100, 1), WRITE3(10),
                                          WRITE3(90000), ACK(103, 2), END};
static const struct step imm_again[] = {
    SEND(100, 64),
    ACK(100, 1),
    {.opcode = RC(SEND_ONLY_IMM), .psn = 101, .len = 8},
    {.opcode = RC(SEND_ONLY_IMM), .psn = 101, .len = 8, .ackreq = true, .after = 90000},
    ACK(101, 2),
    END};
static const struct step flush[] = {
    SEND(100, 64),
    ACK(100, 1),
    {.opcode = RC(FLUSH), .psn = 101, .dma_len = 64},
    RESP(READ_RESP_ONLY, 101, 0, 2),
    {.opcode = RC(ATOMIC_WRITE), .psn = 102, .len = 8, .dma_len = 8},
    RESP(READ_RESP_ONLY, 102, 0, 3),
    SEND(103, 64),
    ACK(103, 4),
    END};

/* ---- the changes ---- */

static void broadcast(struct wire_pkt *p)
{
    memset(p->dmac, 0xFF, 6);
}
static void other_port(struct wire_pkt *p)
{
    p->sport++;
}
static void a_port_each(struct wire_pkt *p)
{
    p->sport = (uint16_t)(p->sport + p->psn);
}
static void no_df(struct wire_pkt *p)
{
    p->ip_flags = 0;
}
static void fragment(struct packet *k)
{
    uint8_t *ip = k->f + k->p.ip_off;
    ip[6] |= 0x20;
    ip[10] = ip[11] = 0;
    wire_csum_put(ip + 10, wire_csum_add(0, ip, 20));
}
static void options(struct packet *k)
{
    uint8_t *ip = k->f + k->p.ip_off;
    memmove(ip + 24, ip + 20, k->len - k->p.ip_off - 20);
    memset(ip + 20, 1, 4); /* no operation */
    k->len += 4;
    ip[0] = 0x46;
    wire_put16(ip + 2, (uint16_t)(wire_get16(ip + 2) + 4));
    ip[10] = ip[11] = 0;
    wire_csum_put(ip + 10, wire_csum_add(0, ip, 24));
}
static void short_ip(struct packet *k)
{
    uint8_t *ip = k->f + k->p.ip_off;
    memmove(ip + 40, ip + k->len - 14 - 4, 4);
    wire_put16(ip + 2, 42);
    ip[10] = ip[11] = 0;
    wire_csum_put(ip + 10, wire_csum_add(0, ip, 20));
}
/* An IP length that the frame doesn't have. */
static void put_ip_length(struct packet *k, size_t ip_payload)
{
    uint8_t *ip = k->f + k->p.ip_off;
    if (k->p.ip_version == 6) {
        wire_put16(ip + 4, (uint16_t)ip_payload);
        return;
    }
    wire_put16(ip + 2, (uint16_t)(20 + ip_payload));
    ip[10] = ip[11] = 0;
    wire_csum_put(ip + 10, wire_csum_add(0, ip, 20));
}
static void long_ip(struct packet *k)
{
    put_ip_length(k, k->len - k->p.udp_off + 1);
}
static void long_ip_and_udp(struct packet *k)
{
    put_ip_length(k, k->len - k->p.udp_off + 60);
    wire_put16(k->f + k->p.udp_off + 4, (uint16_t)(k->len - k->p.udp_off + 60));
}
/* UDP says where the packet ends, and the frame is padded. */
static void long_ip_padded(struct packet *k)
{
    put_ip_length(k, k->len - k->p.udp_off + 60);
    wire_put32le(k->f + k->len - 4, wire_icrc(k->f, k->len, k->p.ip_off, k->p.bth_off));
    memset(k->f + k->len, 0, 6);
    k->len += 6;
}
static void no_ip_length(struct packet *k)
{
    put_ip_length(k, k->p.ip_version == 6 ? 0 : 10);
}
static void udp_length(struct packet *k)
{
    wire_put16(k->f + k->p.udp_off + 4, 20);
}
static void bad_source(struct wire_pkt *p)
{
    p->sip = wire_addr_v4(0xE0000001);
}
static void loopback_source(struct wire_pkt *p)
{
    p->sip = wire_addr_v4(0x7F000001);
}
static void bad_csum(struct packet *k)
{
    k->f[k->p.ip_off + 10] ^= 0x55;
}
static void mcast_mac(struct wire_pkt *p)
{
    p->dip = wire_addr_v4(0xE0000105);
    p->dqpn = 0xFFFFFF;
    memcpy(p->dmac, (uint8_t[]){1, 0, 0x5E, 0, 1, 6}, 6);
}
static void mcast_qpn(struct wire_pkt *p)
{
    p->dqpn = 0xFFFFFF;
}
static void reserved_bit(struct packet *k)
{
    k->f[k->p.bth_off + 8] |= 1;
}
static void reserved_octet_4(struct packet *k)
{
    k->f[k->p.bth_off + 4] |= 0x10;
}
static void tver(struct packet *k)
{
    k->f[k->p.bth_off + 1] |= 1;
}
static void se(struct wire_pkt *p)
{
    p->se = true;
}
static void no_migreq(struct wire_pkt *p)
{
    p->migreq = false;
}
static void dma_more(struct step *s)
{
    s->dma_len += 4096;
}
static void dma_less(struct step *s)
{
    s->dma_len -= 1024;
}
static void pad_3(struct packet *k) /* of 13 octets, padded to 16: one octet less is "payload" */
{
    k->f[k->p.bth_off + 1] = (uint8_t)((k->f[k->p.bth_off + 1] & 0xCF) | 0x20);
}
static void pad_1(struct packet *k)
{
    k->f[k->p.bth_off + 1] |= 0x10;
}
static void qpn_0(struct wire_pkt *p)
{
    p->dqpn = 0;
}
static void opcode_1e(struct packet *k)
{
    k->f[k->p.bth_off] = 0x1E;
}
static void opcode_uc(struct step *s)
{
    s->opcode = UC(SEND_ONLY);
}
static void opcode_write(struct packet *k) /* 8 octets of payload can't hold a RETH */
{
    k->f[k->p.bth_off] = RC(WRITE_ONLY);
    k->f[k->p.bth_off + 1] &= 0xCF;
}
static void opcode_ack(struct packet *k)
{
    k->f[k->p.bth_off] = RC(ACKNOWLEDGE);
    k->f[k->p.bth_off + 1] &= 0xCF;
}
static void len_4(struct step *s)
{
    s->len = 4;
}
static void len_8(struct step *s)
{
    s->len = 8;
}
static void cnp_psn(struct wire_pkt *p)
{
    p->psn = 1;
}
static void octets_more(struct packet *k, int n)
{
    memset(k->f + k->len - WIRE_ICRC_LEN, 0, 2 * WIRE_ICRC_LEN);
    k->len += (size_t)n;
    put_ip_length(k, k->len - k->p.udp_off);
    wire_put16(k->f + k->p.udp_off + 4, (uint16_t)(k->len - k->p.udp_off));
}
static void four_more(struct packet *k)
{
    octets_more(k, 4);
}
static void one_more(struct packet *k)
{
    octets_more(k, 1);
}
static void four_fewer(struct packet *k)
{
    octets_more(k, -4);
}
static void pad_2(struct packet *k)
{
    k->f[k->p.bth_off + 1] |= 0x20;
}
static void icrc_plain(struct packet *k, bool ones)
{
    static const uint8_t lrh[8] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
    uint32_t crc = ones ? wire_icrc_update(0, lrh, 8) : 0;
    crc = wire_icrc_update(crc, k->f + k->p.ip_off, k->len - 4 - k->p.ip_off);
    wire_put32le(k->f + k->len - 4, crc);
}
static void icrc_no_lrh(struct packet *k)
{
    icrc_plain(k, false);
}
/* As icrc_no_lrh, but with the masks. */
static void icrc_masked_no_lrh(struct packet *k)
{
    uint8_t f[sizeof k->f];
    size_t ip = k->p.ip_off, udp = k->p.bth_off - WIRE_UDP_LEN, len = k->len - ip - WIRE_ICRC_LEN;
    memcpy(f, k->f, k->len);
    if (f[ip] >> 4 == 4) {
        f[ip + 1] = f[ip + 8] = f[ip + 10] = f[ip + 11] = 0xFF;
    } else {
        f[ip] |= 0x0F;
        f[ip + 1] = f[ip + 2] = f[ip + 3] = f[ip + 7] = 0xFF;
    }
    f[udp + 6] = f[udp + 7] = f[k->p.bth_off + 4] = 0xFF;
    wire_put32le(k->f + k->len - WIRE_ICRC_LEN, wire_icrc_update(0, f + ip, len));
}
static void icrc_no_mask(struct packet *k)
{
    icrc_plain(k, true);
}
static void icrc_swapped(struct packet *k)
{
    uint8_t *i = k->f + k->len - 4;
    wire_put32(i, wire_get32le(i));
}
static void icrc_0(struct packet *k)
{
    memset(k->f + k->len - WIRE_ICRC_LEN, 0, WIRE_ICRC_LEN);
}
static void icrc_wrong(struct packet *k)
{
    k->f[k->len - 3] ^= 0x5A;
}
static void icrc_wrong_of_a(struct packet *k)
{
    if (k->p.dqpn == B_QPN)
        icrc_wrong(k);
}
static void pkey(struct wire_pkt *p)
{
    p->pkey = 0x8123;
}
static void pkey_0(struct wire_pkt *p)
{
    p->pkey = 0x8000;
}
static void qkey(struct wire_pkt *p)
{
    p->qkey = 7;
}
static void psn_99(struct step *s)
{
    s->psn = 99;
}
static void psn_105(struct step *s)
{
    s->psn = 105;
}
static void empty(struct step *s)
{
    s->len = 0;
}
static void dma_1000(struct step *s)
{
    s->dma_len = 1000;
}
static void dma_3000(struct step *s)
{
    s->dma_len = 3000;
}
static void dma_huge(struct step *s)
{
    s->dma_len = 0x80000001;
}
static void ackreq(struct step *s)
{
    s->ackreq = true;
}
static void read_for_send(struct step *s)
{
    s->opcode = RC(READ_RESP_ONLY);
}
static void atomic_for_flush(struct step *s)
{
    s->opcode = RC(ATOMIC_ACK);
}
static void only(struct step *s)
{
    s->opcode = RC(READ_RESP_ONLY);
}
static void first(struct step *s)
{
    s->opcode = RC(READ_RESP_FIRST);
}
static void syndrome_nak(struct step *s)
{
    s->syndrome = 0x60;
}
static void syndrome_7f(struct step *s)
{
    s->syndrome = 0x7F;
}
static void syndrome_rd(struct step *s)
{
    s->syndrome = 0x64;
    s->msn--;
}
static void syndrome_access(struct step *s)
{
    s->syndrome = 0x62;
    s->msn--;
}
static void syndrome_op(struct step *s)
{
    s->syndrome = 0x63;
    s->msn--;
}
static void syndrome_rnr(struct step *s)
{
    s->syndrome = 0x20;
    s->msn = 1;
}
static void ack_of_read(struct step *s)
{
    s->psn = 106;
    s->msn = 5;
}
static void ack_of_atomic(struct step *s)
{
    s->psn = 107;
    s->msn = 5;
}
static void plain_ack(struct step *s)
{
    s->opcode = RC(ACKNOWLEDGE);
}
static void ack_ahead(struct step *s)
{
    s->psn = 111;
}
static void answer_before(struct step *s)
{
    s->psn -= 5000;
    s->msn = 0;
}
static void nak_before(struct step *s)
{
    s->psn = 99;
    s->syndrome = 0x60;
    s->msn = 0;
}
static void nak_ahead(struct step *s)
{
    s->psn = 111;
    s->syndrome = 0x60;
}
static void msn_high(struct step *s)
{
    s->msn++;
}
static void msn_far(struct step *s)
{
    s->msn += 1000;
}
static void msn_less(struct step *s)
{
    s->msn = (s->msn - 1) & WIRE_PSN_MASK;
}
static void msn_low(struct step *s)
{
    s->msn = 4;
}
static void early(struct step *s)
{
    s->after = 500;
}
static void longer(struct step *s)
{
    s->len += 4;
}
static void va_off(struct step *s)
{
    s->va += 4;
}
static void unaligned(struct step *s)
{
    s->va += s->opcode == RC(FETCH_ADD) ? 4 : 0;
}
static void middle(struct step *s)
{
    s->opcode = RC(WRITE_MIDDLE);
    s->len = 1024;
}
static void len_4100(struct step *s)
{
    s->len = 4100;
}
static void len_4300(struct step *s)
{
    s->len = 4300;
}
static void len_512(struct step *s)
{
    s->len = 512;
}
static void operand(struct wire_pkt *p)
{
    p->swap_add++;
}
static void immediate(struct wire_pkt *p)
{
    p->imm++;
}
static void orig(struct wire_pkt *p)
{
    p->orig++;
}
static void uc_last(struct step *s)
{
    s->opcode = UC(SEND_LAST);
}
static void continued(struct step *s)
{
    if (s->opcode == RC(READ_RESP_FIRST) && (s->psn == 101 || s->psn == 104))
        s->opcode = RC(READ_RESP_MIDDLE);
}
static void sqpn_0(struct wire_pkt *p)
{
    p->sqpn = 0;
}
static void sqpn_5(struct wire_pkt *p)
{
    p->sqpn = 5;
}
static void mad_short(struct wire_pkt *p)
{
    p->payload_len = 200;
}
static void mad_base(struct packet *k)
{
    k->f[k->p.payload_off] = 2;
}
static void mad_class(struct packet *k)
{
    k->f[k->p.payload_off + 2] = 1;
}
static void cm_hdr(struct cm_msg *m)
{
    m->priv[1] = 0x50;
}
static void cm_hdr_junk(struct cm_msg *m)
{
    m->priv[4 + 11] = 1;
}
static void cm_hdr_low(struct cm_msg *m)
{
    m->priv[1] |= 8;
}
static void cm_hdr_ib(struct cm_msg *m)
{
    m->service_id = 0x00000000013F1389;
    m->priv[1] = 0;
}
static void cm_depth(struct cm_msg *m)
{
    m->init_depth = 9;
}
static void cm_tid(struct cm_msg *m)
{
    m->tid++;
}
static void cm_id(struct cm_msg *m)
{
    m->local_id = 0;
}
static void cm_peer_id(struct cm_msg *m)
{
    m->remote_id = 0;
}
static void cm_psn(struct cm_msg *m)
{
    m->psn++;
}
static void cm_mtu(struct cm_msg *m)
{
    m->mtu++;
}
static void cm_private(struct cm_msg *m)
{
    m->priv[m->priv_len - 1]++;
}
static void cm_qpn(struct cm_msg *m)
{
    m->remote_qpn++;
}

static const struct step send_101 = SEND(101, 64);
static const struct step nak_101 = NAK(101, 0x60, 1);
static const struct step nak_again = NAK(101, 0x62, 1);
static const struct step ack_101 = ACK(101, 2);
static const struct step read_again = {
    .opcode = RC(READ_REQUEST), .psn = 104, .dma_len = 8, .va = 0};

static const struct step steps_just_before[] = {
    {.cm = CM_REQ},
    {.cm = CM_REP, .from_b = true},
    SEND(100, 64),
    ACK(100, 1),
    {.opcode = RC(READ_REQUEST), .psn = 101, .dma_len = 8},
    /* 5 */ {.opcode = RC(READ_REQUEST), .psn = 102, .dma_len = 8, .after = 9},
    {.from_b = true,
     .opcode = RC(READ_RESP_ONLY),
     .psn = 101,
     .len = 8,
     .syndrome = 0x1F,
     .msn = 2,
     .after = 4},
    RESP(READ_RESP_ONLY, 102, 8, 3),
    END};
static void psn_70000(struct step *s)
{
    s->psn += 70000;
}
static const struct step steps_begun_later[] = {
    {.cm = CM_REQ}, {.cm = CM_REP, .from_b = true}, SEND(101, 64), ACK(101, 1), END};
static const struct step steps_mra[] = {{.cm = CM_REQ},
                                        {.cm = CM_MRA, .from_b = true},
                                        {.cm = CM_REP, .from_b = true},
                                        {.cm = CM_RTU},
                                        END};
static const struct step steps_rej[] = {{.cm = CM_REQ}, {.cm = CM_REJ, .from_b = true}, END};
static const struct step steps_sidr[] = {{.cm = CM_SIDR_REQ}, END};
static const struct step steps_rep_again[] = {{.cm = CM_REQ},
                                              {.cm = CM_REP, .from_b = true},
                                              {.cm = CM_REP, .from_b = true},
                                              {.cm = CM_RTU},
                                              END};

/* 102 behind the refused 101 is answered by a NAK, which comes when 101 has just been sent again.
 */
#define CROSSED(psn_, msn_)                                                                        \
    SEND(psn_, 64), SEND(psn_ + 1, 64), NAK(psn_, 0x21, msn_),                                     \
        {.opcode = RC(SEND_ONLY), .psn = psn_, .len = 64, .ackreq = true, .after = 30},            \
    {                                                                                              \
        .from_b = true, .opcode = RC(ACKNOWLEDGE), .psn = psn_, .syndrome = 0x60, .msn = msn_,     \
        .after = 1                                                                                 \
    }
static const struct step rnr_crossed[] = {
    SEND(100, 64), ACK(100, 1), CROSSED(101, 1), ACK(101, 2), SEND(102, 64), ACK(102, 3), END};
static const struct step rnr_crossed_again[] = {
    SEND(100, 64),
    ACK(100, 1),
    SEND(101, 64),
    SEND(102, 64),
    NAK(101, 0x21, 1),
    NAK(101, 0x60, 1),
    {.opcode = RC(SEND_ONLY), .psn = 101, .len = 64, .ackreq = true, .after = 30},
    ACK(101, 2),
    SEND(102, 64),
    ACK(102, 3),
    CROSSED(103, 3),
    ACK(103, 4),
    SEND(104, 64),
    ACK(104, 5),
    END};

/* Each new SEND is answered with the same MSN. */
#define SAME_2(psn_, msn_)                                                                         \
    SEND(psn_, 64), ACK(psn_, msn_), SEND((psn_) + 1, 64), ACK((psn_) + 1, msn_)
#define SAME_6(psn_, msn_) SAME_2(psn_, msn_), SAME_2((psn_) + 2, msn_), SAME_2((psn_) + 4, msn_)
static const struct step stands_low[] = {SAME_6(100, 1), END};
static const struct step stands_high[] = {SAME_6(100, 99), SAME_6(106, 99), SAME_6(112, 99), END};

static const struct row rows[] = {
    {"WIRE-06 broadcast", steps_rc, 12, .pkt = broadcast},
    {"WIRE-08 IPv4 options", steps_rc, 12, .octets = options, .keep_icrc = true, .v4 = true},
    {"WIRE-09 IP length below the least", steps_rc, 16, .octets = short_ip, .v4 = true},
    {"WIRE-09 IP length beyond the frame", steps_rc, 16, .octets = long_ip},
    {"WIRE-09 IP and UDP length beyond the frame", steps_rc, 16, .octets = long_ip_and_udp},
    {"WIRE-09 IP length beyond a frame with padding", steps_rc, 16, .octets = long_ip_padded,
     .keep_icrc = true},
    {"WIRE-09 IP length 0", steps_rc, 16, .octets = no_ip_length},
    {"WIRE-10 DF 0", steps_rc, 12, .pkt = no_df, .v4 = true},
    {"WIRE-10 fragment", steps_rc, 12, .octets = fragment, .v4 = true},
    {"WIRE-12 header checksum", steps_rc, 12, .octets = bad_csum, .verdict = LINT_UNDECIDABLE,
     .v4 = true},
    {"WIRE-12 header checksum, always", steps_rc, ALL, .octets = bad_csum, .v4 = true},
    {"WIRE-19 source port changes in flight", steps_rc, 3, .pkt = other_port},
    {"WIRE-19 a source port for each packet", many_under_way, ALL, .pkt = a_port_each,
     .verdict = LINT_UNDECIDABLE},
    {"WIRE-23 UDP length", steps_rc, 12, .octets = udp_length},
    {"WIRE-29 multicast source", steps_rc, 12, .pkt = bad_source, .v4 = true},
    {"WIRE-29 loopback source", steps_rc, 12, .pkt = loopback_source, .v4 = true},
    {"WIRE-31 MAC of another group", steps_ud, 1, .pkt = mcast_mac, .v4 = true},
    {"HDR-01 reserved bit", steps_rc, 12, .octets = reserved_bit},
    {"HDR-02 TVer 1", steps_rc, 12, .octets = tver},
    {"HDR-03 SE on WRITE MIDDLE", steps_rc, 3, .pkt = se},
    {"HDR-04 MigReq 0 once", steps_rc, 12, .pkt = no_migreq},
    {"HDR-04 MigReq 0 always", steps_rc, ALL, .pkt = no_migreq, .verdict = LINT_UNDECIDABLE},
    {"HDR-05 PadCnt doesn't fit the RETH", steps_rc, 20, .octets = pad_3},
    {"HDR-05 PadCnt of a LAST doesn't fit the RETH", steps_rc, 4, .octets = pad_3},
    {"HDR-05 PadCnt of a WRITE that is sent again", write_again, 7, .octets = pad_3},
    {"HDR-06 pad on MIDDLE", steps_rc, 3, .octets = pad_1},
    {"HDR-06 pad on the FIRST, when the MTU isn't known", steps_rc, 2, .octets = pad_1},
    {"HDR-06 pad on a MIDDLE that is sent again without", write_again, 3, .octets = pad_1},
    {"HDR-06 pad on a MIDDLE that is sent again", write_again, 6, .octets = pad_1},
    {"HDR-06 pad on a READ response", steps_rc, 8, .octets = pad_1},
    {"HDR-07 DestQP 0", steps_rc, 12, .pkt = qpn_0},
    {"OPC-01 reserved opcode", steps_rc, 12, .octets = opcode_1e},
    {"OPC-02 UC on an RC queue pair", steps_rc, 12, .step = opcode_uc},
    {"OPC-03 no room for the RETH", steps_fatal, 2, .octets = opcode_write},
    {"OPC-04 ACK with payload", steps_rc, 14, .octets = opcode_ack},
    {"OPC-05 CNP with a PSN", steps_uc, 5, .pkt = cnp_psn},
    {"OPC-05 CNP of 64 octets", steps_uc, 5, .octets = four_more},
    {"OPC-05 CNP of 61 octets", steps_uc, 5, .octets = one_more},
    {"OPC-05 CNP of 56 octets", steps_uc, 5, .octets = four_fewer},
    {"OPC-05 CNP with a PadCnt", steps_uc, 5, .octets = pad_2},
    {"ICRC-02 without the octets of ones", steps_rc, 12, .octets = icrc_no_lrh, .keep_icrc = true},
    {"ICRC-02 without the octets of ones, with masks", steps_rc, 12, .octets = icrc_masked_no_lrh,
     .keep_icrc = true},
    {"ICRC-03 without masks", steps_rc, 12, .octets = icrc_no_mask, .keep_icrc = true},
    {"ICRC-06 byte order", steps_rc, 12, .octets = icrc_swapped, .keep_icrc = true},
    {"ICRC-08 none", steps_rc, 12, .octets = icrc_0, .keep_icrc = true},
    {"ICRC-08 none, never", steps_rc, ALL, .octets = icrc_0, .keep_icrc = true},
    {"ICRC-08 a damaged packet is acknowledged", steps_rc, 16, .found = 17, .octets = icrc_wrong,
     .keep_icrc = true, .verdict = LINT_UNDECIDABLE},
    {"ICRC-08 never right", steps_rc, ALL, .octets = icrc_wrong, .keep_icrc = true},
    {"ICRC-08 one end's is never right", steps_rc, ALL, .octets = icrc_wrong_of_a,
     .keep_icrc = true},
    {"KEY-01 P_Key changes", steps_rc, 12, .pkt = pkey},
    {"KEY-01 P_Key of an ACK changes", steps_rc, 13, .pkt = pkey},
    {"KEY-01 P_Key of the first packet", steps_rc, 0, .pkt = pkey},
    {"KEY-01 P_Key of a datagram changes", datagrams, 2, .pkt = pkey},
    {"KEY-01 P_Key of the second packet", steps_rc, 2, .pkt = pkey},
    {"KEY-02 no partition, first packet", steps_rc, 0, .pkt = pkey_0},
    {"KEY-02 P_Key without a partition", steps_ud, 1, .pkt = pkey_0},
    {"KEY-02 on a connected queue pair", steps_rc, 12, .pkt = pkey_0},
    {"KEY-07 Q_Key of QP1", steps_cm, 0, .pkt = qkey},
    {"PSN-01 before the announced PSN", steps_cm, 3, .step = psn_99},
    {"PSN-01 after the announced PSN", steps_begun_later, 2},
    {"PSN-01 long after the announced PSN", steps_begun_later, ALL, 2, .step = psn_70000},
    {"REQ-02 empty LAST", steps_rc, 4, .step = empty},
    {"REQ-02 FIRST although one packet suffices", steps_rc, 2, .step = dma_1000},
    {"REQ-06 a READ takes more PSNs than the requester goes by", read_and_more, 3, 4,
     .step = dma_more},
    {"REQ-06 ... and its requests are seen in another order", read_and_late, 3, 4,
     .step = dma_more},
    {"REQ-30 a READ is answered with less than it asks for", read_and_more, 11, 12,
     .step = dma_less},
    {"REQ-06 a PSN of a READ's responses", steps_rc, 12, .step = psn_105},
    {"REQ-10 AckReq on an ACK", steps_rc, 13, .step = ackreq},
    {"REQ-12 one READ too many", steps_cm, 8, .extra = &read_again},
    {"REQ-12 one just before the response that made room", steps_just_before, 5,
     .verdict = LINT_UNDECIDABLE},
    {"REQ-28 READ response before a SEND with its PSN", read_response_early, LATER, 3},
    {"REQ-28 ATOMIC acknowledge before a SEND with its PSN", atomic_ack_early, LATER, 3},
    {"REQ-28 ATOMIC acknowledge with a PSN within a READ", atomic_ack_in_read, LATER, 8},
    {"REQ-28 READ response for a SEND", steps_rc, 13, .step = read_for_send},
    {"REQ-28 ATOMIC acknowledge for a FLUSH", flush, 3, .step = atomic_for_flush},
    {"REQ-30 ONLY where FIRST must be", steps_rc, 7, .step = only},
    {"REQ-30 FIRST at the end", steps_reread, 6, .step = first},
    {"REQ-30 FIRST twice, of a READ that was lost at first", read_late, 6, .step = first},
    {"REQ-31 READ response with a NAK", steps_rc, 9, .step = syndrome_nak},
    {"ACK-02 reserved NAK code", steps_rc, 13, .step = syndrome_7f},
    {"ACK-05 ACK with the PSN of a READ", steps_rc, 13, .step = ack_of_read},
    {"ACK-05 ACK with the PSN of an ATOMIC", steps_rc, 13, .step = ack_of_atomic},
    {"ACK-05 ACK in the place of an ATOMIC acknowledge", steps_rc, 11, .step = plain_ack},
    {"ACK-05 ACK of what wasn't sent", steps_rc, 13, .step = ack_ahead},
    {"ACK-05 a READ response to what was never sent", never_read, LATER, 4},
    {"ACK-06 RD code on RC", steps_loss, 9, .step = syndrome_rd},
    {"ACK-06 access error for a SEND", steps_loss, 9, .step = syndrome_access},
    {"ACK-05 ACK with the PSN of what is repeated", repeated_then, LATER, 8, .v4 = true},
    {"ACK-05 the same, with a later MSN", repeated_now, LATER, 8, .v4 = true},
    {"ACK-05 ACK with the PSN before, and the MSN of its request", same_ack, LATER, 5},
    {"ACK-05 ACK of a PSN before the connection's first", steps_cm, 4, .step = answer_before},
    {"ACK-05 READ response with such a PSN", steps_cm, 9, .step = answer_before},
    {"ACK-05 ACK with such a PSN before a request", ack_first, 3},
    {"ACK-05 ACK from the life before, perhaps", second_life, 7, .verdict = LINT_UNDECIDABLE},
    {"ACK-07 NAK of a PSN before the connection's first", steps_cm, 4, .step = nak_before},
    {"ACK-07 NAK of what wasn't sent", steps_rc, 13, .step = nak_ahead},
    {"ACK-08 NAK twice", steps_loss, 4, .extra = &nak_101, .copy = true},
    {"ACK-11 a sequence NAK that counts too much", nak_counts, LATER, 5},
    {"ACK-11 MSN too low", steps_rc, 17, .step = msn_low},
    {"ACK-11 MSN of the first ACK too low", acks, 1, .step = msn_less},
    {"ACK-11 MSN stands still", stands_low, LATER},
    {"ACK-11 MSN stands still, high", stands_high, LATER, .verdict = LINT_UNDECIDABLE},
    {"ACK-11 MSN too low, behind a READ", steps_rc, 13, .step = msn_low},
    {"ACK-11 MSN too high, others are under way", pipelined, 8, .step = msn_high},
    {"ACK-11 MSN of a READ's first response too high", read_and_send, 7, .step = msn_high,
     .copy = true},
    {"ACK-11 MSN far too high", pipelined, 8, .step = msn_far},
    {"ACK-11 MSN far too high, nothing else is under way", steps_rc, 17, .step = msn_far},
    {"ACK-11 MSN too high, where it isn't known where the count began", reads_and_sends, 8,
     .step = msn_high},
    {"ACK-11 MSN too high, unless what it counts is repeated", counted_early, LATER,
     .verdict = LINT_UNDECIDABLE},
    {"ACK-11 MSN of an ATOMIC too high", pipelined, 11, .step = msn_high},
    {"ACK-11 MSN of a READ too high", pipelined, 17, .step = msn_high},
    {"RNR-01 RNR NAK for a WRITE", steps_rc, 5, .step = syndrome_rnr},
    {"RNR-02 sequence NAK after RNR NAK", steps_rnr, 3, .extra = &nak_101},
    {"RNR-02 sequence NAK after RNR NAK, crossing with the repetition", rnr_crossed, LATER,
     .verdict = LINT_UNDECIDABLE},
    {"RNR-02 the same after one that crossed with nothing", rnr_crossed_again, LATER},
    {"RNR-05 repeated too early", steps_rnr, 4, .step = early},
    {"RNR-05 or the RNR NAK was lost", rnr_loss, LATER, .verdict = LINT_UNDECIDABLE},
    {"RNR-05 or it was lost: another one was obeyed", rnr_obeyed, LATER,
     .verdict = LINT_UNDECIDABLE},
    {"RNR-05 twice, and obeyed once", rnr_disobeyed, LATER},
    {"TMR-05 one transmission too many", steps_dead, 7, .extra = &send_101},
    {"TMR-05 or what has been answered again was new", answered_again, LATER,
     .verdict = LINT_UNDECIDABLE},
    {"RTX-05 longer the second time", steps_loss, 6, .step = longer},
    {"RTX-05 an ATOMIC that adds another number the second time", atomics_again, 3, .pkt = operand},
    {"RTX-05 another immediate the second time", imm_again, 3, .pkt = immediate},
    {"RSP-06 MIDDLE after LAST", steps_rc, 16, .step = middle},
    {"RSP-06 WRITE in the middle of a SEND", send3, 1, .step = middle},
    {"RSP-10 an ONLY longer than any MTU", steps_rc, 12, .step = len_4300},
    {"RSP-10 short MIDDLE", steps_rc, 3, .step = len_512},
    {"RSP-10 short FIRST, with which the MTU is first seen", steps_rc, 2, .step = len_512},
    {"RSP-10 short FIRST of the first message", send3, 0, .step = len_512},
    {"RSP-12 operational error for a SEND", steps_loss, 9, .step = syndrome_op,
     .verdict = LINT_UNDECIDABLE},
    {"RSP-15 too long", steps_rc, 20, .step = dma_huge},
    {"RSP-15 a READ that is too long", steps_rc, 6, .step = dma_huge},
    {"RSP-16 WRITE shorter than its RETH", steps_rc, 2, .step = dma_3000, .found = 4},
    {"RSP-22 an answer, which doesn't count what was refused", goes_on, LATER, 9},
    {"RSP-22 an answer after the fatal NAK", steps_fatal, 2, .extra = &ack_101},
    {"RSP-22 the NAK again", refused, 3, .extra = &nak_again, .copy = true},
    {"RD-05 short READ response", steps_rc, 9, .step = len_8},
    {"RD-05 short READ response, of a size that is no MTU", steps_reread, 1, .step = len_8},
    {"RD-05 short READ response, where nothing shows the MTU", reads_and_sends, 3, .step = len_4},
    {"RD-05 short FIRST, with which the MTU is first seen", steps_reads, 1, .step = len_512},
    {"RD-10 re-reads go on in the middle", steps_reread, ALL, .step = continued},
    {"RD-12 re-read from another address", steps_reread, 4, .step = va_off},
    {"ATM-03 unaligned", steps_rc, ALL, .step = unaligned},
    {"ATM-08 another value the second time", steps_rc, 19, .pkt = orig},
    {"UC-02 AckReq", steps_uc, 4, .step = ackreq},
    {"UC-07 LAST without FIRST", steps_uc, 4, .step = uc_last},
    {"UD-01 more than one packet may hold", steps_ud, 1, .step = len_4100},
    {"UD-09 source QP 0", steps_ud, 1, .pkt = sqpn_0},
    {"UD-10 multicast QP, unicast address", steps_ud, 1, .pkt = mcast_qpn},
    {"GSI-01 not from QP1", steps_cm, 2, .pkt = sqpn_5},
    {"GSI-02 short MAD", steps_cm, 2, .pkt = mad_short},
    {"GSI-03 base version 2", steps_cm, 2, .octets = mad_base},
    {"GSI-04 class version 1", steps_cm, 2, .octets = mad_class},
    {"CM-02 IP version 5, the first of two times", steps_cm, 0, .cm = cm_hdr},
    {"CM-02 IP version 5 in a SIDR REQ", steps_sidr, 0, .cm = cm_hdr},
    {"CM-02 not only an IPv4 address", steps_rej, 0, .cm = cm_hdr_junk},
    {"CM-02 more than the IP version", steps_rej, 0, .cm = cm_hdr_low},
    {"CM-02 no IP header, but perhaps no IP address", steps_rej, 0, .cm = cm_hdr_ib,
     .verdict = LINT_UNDECIDABLE},
    {"CM-07 more READs than offered", steps_cm, 1, .cm = cm_depth},
    {"CM-14 another transaction id", steps_cm, 2, .cm = cm_tid},
    {"CM-14 another transaction id in an MRA", steps_mra, 1, .cm = cm_tid},
    {"CM-14 another transaction id in a REJ", steps_rej, 1, .cm = cm_tid},
    {"CM-07 more READs than offered, the first of two times", steps_rep_again, 1, .cm = cm_depth},
    {"CM-14 another transaction id, the first of two times", steps_rep_again, 1, .cm = cm_tid},
    {"CM-15 id 0", steps_cm, 13, .cm = cm_id},
    {"CM-15 MRA with id 0", steps_mra, 1, .cm = cm_id},
    {"CM-15 MRA for id 0", steps_mra, 1, .cm = cm_peer_id},
    {"CM-15 REP for id 0", steps_mra, 2, .cm = cm_peer_id},
    {"CM-15 RTU for id 0", steps_mra, 3, .cm = cm_peer_id},
    {"CM-18 another PSN the second time", steps_cm, 12, .cm = cm_psn},
    {"CM-18 another MTU the second time", steps_cm, 12, .cm = cm_mtu},
    {"CM-18 other private data the second time", steps_cm, 12, .cm = cm_private},
    {"CM-18 REP asks for more the second time", steps_rep_again, 2, .cm = cm_depth},
    {"CM-24 DREQ for another queue pair", steps_cm, 13, .cm = cm_qpn},
};

static void check_row(const struct row *row, enum net net)
{
    static struct run run;
    static struct found found;
    struct lint_totals t;
    size_t id = strcspn(row->name, " ");
    enum lint_verdict verdict = row->copy && net ? LINT_UNDECIDABLE : row->verdict;
    build(&run, row, net);
    judge(&run, &found, &t);
    for (unsigned i = 0; i < found.n; i++) {
        const struct lint_finding *f = &found.f[i];
        if (f->verdict == LINT_ARTEFACT && !row->octets) /* an ACK of what has other fields now */
            continue;
        ck_assert_msg(strlen(f->rule->id) == id && !strncmp(f->rule->id, row->name, id),
                      "%s%s: found %s (%s) at packet %llu: %s, expected %s, seen %s", row->name,
                      nets[net], f->rule->id, lint_verdict_name(f->verdict),
                      (unsigned long long)f->number, f->dump, f->expected, f->seen);
        for (unsigned k = 0; k < i; k++)
            ck_assert_msg(found.f[k].number != f->number, "%s%s: packet %llu is accused twice",
                          row->name, nets[net], (unsigned long long)f->number);
    }
    const struct lint_finding *f = NULL;
    for (unsigned i = 0; i < found.n; i++)
        if (found.f[i].verdict != LINT_ARTEFACT)
            f = &found.f[i];
    ck_assert_msg(f, "%s%s: nothing found", row->name, nets[net]);
    int where = row->found ? row->found : row->at;
    bool there = where < 0;
    for (unsigned i = 0; i < found.n && !there; i++)
        there = found.f[i].verdict != LINT_ARTEFACT && found.f[i].number == run.at[where];
    ck_assert_msg(there, "%s%s: packet %llu, not that of step %d", row->name, nets[net],
                  (unsigned long long)f->number, where);
    ck_assert_msg(f->verdict == verdict, "%s%s: %s, because %s", row->name, nets[net],
                  lint_verdict_name(f->verdict), f->why);
    ck_assert_msg(f->expected[0] && f->seen[0] && f->dump[0], "%s: says too little", row->name);
    ck_assert_msg(!f->why[0] == (f->verdict == LINT_VIOLATION), "%s: %s", row->name, f->why);
}

static void on_cut_finding(void *ctx, const struct lint_finding *f)
{
    struct found *found = ctx;
    if (found->n < 32)
        found->f[found->n++] = *f;
}

/* "HDR-01 reserved bits", of a device that sets one always: said once for each direction */
START_TEST(hdr_01_habit)
{
    static struct run run;
    static struct found found;
    struct lint_totals t;
    const struct row row = {.steps = steps_rc, .at = ALL, .octets = reserved_octet_4};
    build(&run, &row, NET_COUNT);
    judge(&run, &found, &t);
    ck_assert_uint_eq(found.n, 2);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_str_eq(found.f[i].rule->id, "HDR-01");
        ck_assert_int_eq(found.f[i].verdict, LINT_UNDECIDABLE);
        ck_assert_uint_eq(found.f[i].number, i + 1);
        /* AckReq, which the first one sets, is no reserved bit. */
        ck_assert_str_eq(found.f[i].seen, "octet 4 0x10, octet 8 0x00");
    }
}
END_TEST

/* "ACK-11 a message is counted twice, or isn't": said once, though later answers go on from there
 */
START_TEST(ack_11_goes_on)
{
    static const struct step *const steps[] = {one_too_many, one_too_few};
    static struct run run;
    static struct found found;
    struct lint_totals t;
    for (enum net net = NET_COUNT; net < NETS; net++) {
        build(&run, &(struct row){.steps = steps[_i], .at = LATER}, net);
        judge(&run, &found, &t);
        ck_assert_msg(found.n == 1, "%s: %u findings", nets[net], found.n);
        ck_assert_str_eq(found.f[0].rule->id, "ACK-11");
        ck_assert_int_eq(found.f[0].verdict, LINT_VIOLATION);
        ck_assert_uint_eq(found.f[0].number, 6);
    }
}
END_TEST

/* "ATM-08 another value the second time": not if the first was cut off before it */
START_TEST(atm_08_cut)
{
    static const struct step steps[] = {SEND(100, 64),
                                        ACK(100, 1),
                                        {.opcode = RC(FETCH_ADD), .psn = 101},
                                        RESP(ATOMIC_ACK, 101, 0, 2),
                                        RESP(ATOMIC_ACK, 101, 0, 2),
                                        END};
    static struct run run;
    static struct found found;
    build(&run, &(struct row){.steps = steps, .at = LATER}, NET_COUNT);
    found.n = 0;
    struct lint *l = lint_new(on_cut_finding, &found, 0);
    for (int i = 0; i < run.n; i++) {
        struct lint_frame f = {.number = (uint64_t)i + 1,
                               .ns = run.packet[i].ns,
                               .data = run.packet[i].f,
                               .len = (uint32_t)run.packet[i].len - (i == 3 ? 12 : 0),
                               .wire_len = (uint32_t)run.packet[i].len};
        lint_packet(l, &f, NULL);
    }
    lint_end(l);
    lint_free(l);
    ck_assert_msg(found.n == 0, "%s: %s", found.f[0].rule->id, found.f[0].seen);
}
END_TEST

#define OPEN_READS 180u

/* "RD-05 short READ response", the first of more than a hundred that are under way */
START_TEST(rd_05_many_open)
{
    static struct step steps[2 * OPEN_READS + 3] = {
        {.opcode = RC(WRITE_FIRST), .psn = 98, .len = 1024, .dma_len = 1032},
        {.opcode = RC(WRITE_LAST), .psn = 99, .len = 8},
    };
    for (uint32_t i = 0; i < OPEN_READS; i++) {
        steps[2 + i] = (struct step){.opcode = RC(READ_REQUEST), .psn = 100 + i, .dma_len = 8};
        steps[2 + OPEN_READS + i] = (struct step)RESP(READ_RESP_ONLY, 100 + i, i ? 8 : 4, 2 + i);
    }
    steps[2 * OPEN_READS + 2] = (struct step)END;
    check_row(&(struct row){"RD-05 many open", steps, LATER}, NET_COUNT);
}
END_TEST

/* "KEY-01 P_Key changes", of packets that were cut off: one may be damaged, not one after another
 */
START_TEST(key_01_cut)
{
    static struct run run;
    static struct found found;
    unsigned verdicts[LINT_VERDICTS] = {0};
    const struct row row = {.steps = steps_rc, .at = LATER};
    struct lint *l = lint_new(on_cut_finding, &found, 0);
    found.n = 0;
    build(&run, &row, NET_COUNT);
    for (int i = 0; i < run.n; i++) {
        struct packet *k = &run.packet[i];
        if (i > 0)
            k->f[k->p.bth_off + 3] ^= (uint8_t)i;
        struct lint_frame f = {.number = (uint64_t)i + 1,
                               .ns = k->ns,
                               .data = k->f,
                               .len = (uint32_t)k->len - WIRE_ICRC_LEN,
                               .wire_len = (uint32_t)k->len};
        lint_packet(l, &f, NULL);
    }
    lint_end(l);
    lint_free(l);
    for (unsigned i = 0; i < found.n; i++) {
        ck_assert_str_eq(found.f[i].rule->id, "KEY-01");
        verdicts[found.f[i].verdict]++;
    }
    ck_assert_uint_eq(found.f[0].verdict, LINT_UNDECIDABLE);
    ck_assert_uint_eq(verdicts[LINT_UNDECIDABLE], 6);
    ck_assert_uint_gt(verdicts[LINT_VIOLATION], 6);
}
END_TEST

/* "KEY-01 P_Key changes" after a pause: perhaps the queue pair's number was used anew, and the
 * capture has nothing else of that. Packets with P_Key a or b; p: a pause. */
START_TEST(key_01_anew)
{
    static const struct {
        const char *packets;
        unsigned violations, undecidable;
    } lives[] = {{"aaabbb", 3, 0}, {"aaapbbb", 0, 0}, {"aapbbb", 0, 0},    {"apbbb", 0, 1},
                 {"abb", 1, 0},    {"apb", 0, 1},     {"aaapbpaaa", 1, 0}, {"aaapbaaa", 1, 0},
                 {"papbpb", 0, 1}, {"aabpaa", 1, 0},  {"aaapbbbab", 1, 0}};
    static struct run run;
    static struct found found;
    struct step steps[16];
    struct lint_totals t;
    unsigned n = 0, verdicts[LINT_VERDICTS] = {0};
    char pkey[16];
    bool pause = false;
    const struct row row = {.steps = steps, .at = LATER};
    for (const char *c = lives[_i].packets; *c; c++) {
        if (*c != 'p') {
            steps[n] = (struct step)ACK(100 + n, 1 + n);
            steps[n].after = pause ? 50000 : 10;
            pkey[n++] = *c;
        }
        pause = *c == 'p';
    }
    steps[n] = (struct step)END;
    build(&run, &row, NET_COUNT);
    for (unsigned i = 0; i < n; i++) {
        struct packet *k = &run.packet[i];
        wire_put16(k->f + k->p.bth_off + 2, pkey[i] == 'a' ? 0xFFFF : 0x8001);
        wire_put32le(k->f + k->len - 4, wire_icrc(k->f, k->len, k->p.ip_off, k->p.bth_off));
    }
    judge(&run, &found, &t);
    for (unsigned i = 0; i < found.n; i++)
        if (!strcmp(found.f[i].rule->id, "KEY-01"))
            verdicts[found.f[i].verdict]++;
    ck_assert_msg(verdicts[LINT_VIOLATION] == lives[_i].violations &&
                      verdicts[LINT_UNDECIDABLE] == lives[_i].undecidable,
                  "%s: %u violations, %u undecidable", lives[_i].packets, verdicts[LINT_VIOLATION],
                  verdicts[LINT_UNDECIDABLE]);
}
END_TEST

/* "ACK-10 an answer to another queue pair" with the same PSNs: the source port tells, once it is
 * clear that this isn't the queue pair's own from now on. And where both have one port, ATOMICs'
 * answers contradict each other: nobody knows which was for whom. */
#define BOTH_SEND(psn_, msn_) SEND(psn_, 64), SEND(psn_, 64), ACK(psn_, msn_), ACK(psn_, msn_)
#define ADD(psn_)                                                                                  \
    {                                                                                              \
        .opcode = RC(FETCH_ADD), .psn = psn_                                                       \
    }
START_TEST(ack_10_stray)
{
    static const struct step steps[] = {
        SEND(99, 64), ACK(99, 0), BOTH_SEND(100, 1), BOTH_SEND(101, 2), BOTH_SEND(102, 3),
        /* 14: behind the first two, each second one is of the second connection */
        ADD(103), ADD(103), RESP(ATOMIC_ACK, 103, 0, 4), RESP(ATOMIC_ACK, 103, 0, 4), SEND(104, 64),
        SEND(104, 64), ACK(104, 5), ACK(104, 5), END};
    const char *const what[] = {"returns", "goes on", "ends", "same port"};
    static struct run run;
    static struct found found;
    struct lint_totals t;
    build(&run, &(struct row){.steps = steps, .at = LATER}, NET_COUNT);
    for (int i = 0; i < run.n; i++) {
        struct packet *k = &run.packet[i];
        bool second = i > 1 && i & 1, stray = i == 16;
        if (stray)
            k->f[k->p.payload_off - 1]++; /* another value */
        if (second || stray)
            k->f[k->p.bth_off + 7] ^= 0x40;
        bool moved = _i == 1 && i >= 17 && k->p.sip.b[15] == 2; /* to the first one's port */
        wire_put16(k->f + k->p.udp_off, second && !moved && _i != 3 ? 0xC456 : 0xC123);
        wire_put32le(k->f + k->len - 4, wire_icrc(k->f, k->len, k->p.ip_off, k->p.bth_off));
    }
    run.n = _i == 2 ? 17 : run.n;
    judge(&run, &found, &t);
    if (_i == 1) {
        ck_assert_uint_eq(found.n, 0);
        return;
    }
    ck_assert_msg(found.n == 1, "%s: %u findings", what[_i], found.n);
    ck_assert_str_eq(found.f[0].rule->id, _i == 3 ? "ATM-08" : "ACK-10");
    ck_assert_uint_eq(found.f[0].number, _i == 3 ? 18 : 17);
    ck_assert_int_eq(found.f[0].verdict, _i == 0 ? LINT_VIOLATION : LINT_UNDECIDABLE);
}
END_TEST

/* "WIRE-19 a source port for each packet": said once */
START_TEST(wire_19_once)
{
    static struct run run;
    static struct found found;
    struct lint_totals t;
    build(&run, &(struct row){.steps = many_under_way, .at = ALL, .pkt = a_port_each}, NET_COUNT);
    judge(&run, &found, &t);
    ck_assert_uint_eq(found.n, 1);
    ck_assert_uint_eq(found.f[0].number, 4);
}
END_TEST

START_TEST(one_rule_broken)
{
    for (enum net net = NET_COUNT; net < (rows[_i].v4 ? NET_SAME : NETS); net++)
        check_row(&rows[_i], net);
}
END_TEST

/* A mirror shows each packet on two interfaces: it is judged once, also one that can't be read. */
START_TEST(once_for_two_interfaces)
{
    static struct run run;
    static struct found once, twice;
    struct lint_totals t;
    build(&run, &rows[_i], NET_COUNT);
    judge(&run, &once, &t);
    twice.n = 0;
    struct lint *l = lint_new(on_cut_finding, &twice, 0);
    for (int i = 0; i < 2 * run.n; i++) {
        const struct packet *k = &run.packet[i / 2];
        struct lint_frame f = {.number = (uint64_t)i + 1,
                               .ns = k->ns + (uint64_t)(i & 1) * 100,
                               .data = k->f,
                               .len = (uint32_t)k->len,
                               .wire_len = (uint32_t)k->len,
                               .interface = i & 1};
        lint_packet(l, &f, NULL);
    }
    lint_end(l);
    lint_free(l);
    ck_assert_msg(twice.n == once.n, "%s: %u findings, %u of the same packets mirrored",
                  rows[_i].name, once.n, twice.n);
    for (unsigned i = 0; i < once.n && i < 32; i++)
        ck_assert_msg(twice.f[i].number == 2 * once.f[i].number - 1, "%s: packet %llu",
                      rows[_i].name, (unsigned long long)twice.f[i].number);
}
END_TEST

/* Every rule of the table has a row here, and the table is in order and complete. */
START_TEST(the_table)
{
    size_t n;
    const struct lint_rule *r = lint_rules(&n);
    for (size_t i = 0; i < n; i++) {
        bool found = !strcmp(r[i].id, "ACK-10"); /* see ack_10_stray */
        size_t len = strlen(r[i].id);
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
            found |= !strncmp(rows[k].name, r[i].id, len) && rows[k].name[len] == ' ';
        ck_assert_msg(found, "%s is broken by no row", r[i].id);
        ck_assert_msg(strlen(r[i].sentence) > 10, "%s", r[i].id);
        for (size_t k = 0; k < i; k++)
            ck_assert_str_ne(r[i].id, r[k].id);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("lint rules");
    TCase *t = tcase_create("lint rules");
    tcase_add_loop_test(t, one_rule_broken, 0, sizeof rows / sizeof *rows);
    tcase_add_test(t, hdr_01_habit);
    tcase_add_loop_test(t, ack_11_goes_on, 0, 2);
    tcase_add_test(t, atm_08_cut);
    tcase_add_test(t, rd_05_many_open);
    tcase_add_test(t, key_01_cut);
    tcase_add_loop_test(t, key_01_anew, 0, 11);
    tcase_add_loop_test(t, ack_10_stray, 0, 4);
    tcase_add_test(t, wire_19_once);
    tcase_add_test(t, the_table);
    tcase_add_loop_test(t, once_for_two_interfaces, 0, sizeof rows / sizeof *rows);
    suite_add_tcase(s, t);
    return unit_run(s);
}
