/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The forwarding rate of a device between two ports: sends RoCEv2 WRITEs into one port and receives
 * them from the other, on one core. Only headers are written and no data are read, so that the
 * forwarder under test is the limit. One JSON object a line:
 *
 *     {"name":"through_4162","value":2510000,"unit":"pps","sent":...,"samples":[...]}
 *
 *     wire_load [-s SIZE] [-t SECONDS] [-n SAMPLES] [-q QPS] SPEC_A SPEC_B
 *
 * SIZE is without FCS, 4 n + 2 octets, so that there is no pad. value = median of the samples,
 * frames per second that came out. The packets of each queue pair have consecutive PSNs, so that
 * fault rules have connections to follow.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "io.h"
#include "wire.h"

#define BURST      32u
#define QPS_MAX    1024u
#define SAMPLES    32u
#define CONNECT_NS UINT64_C(10000000000)
#define WARM_UP_NS UINT64_C(100000000)
#define SERVICE_NS UINT64_C(1000000)
#define HEADERS    (WIRE_ETH_LEN + WIRE_IPV4_LEN + WIRE_UDP_LEN + WIRE_BTH_LEN + 16u) /* RETH */

struct load {
    struct io_port *port[2];
    uint8_t head[QPS_MAX][128];
    uint32_t icrc[4][256], icrc_zero; /* effect of the payload on the iCRC of the headers */
    uint32_t psn[QPS_MAX];
    unsigned qps, next;
    uint32_t size;
    uint64_t sent, got, service_at;
};

/* A WRITE_ONLY of each queue pair, of the requested length. */
static void make_heads(struct load *l)
{
    for (unsigned i = 0; i < l->qps; i++) {
        static uint8_t frame[IO_FRAME_MAX];
        struct wire_pkt p = {
            .dmac = {2, 0, 0, 0, 0, 2},
            .smac = {2, 0, 0, 0, 0, 1},
            .ip_version = 4,
            .ttl = 64,
            .ip_flags = 2,
            .sport = (uint16_t)(0xC000 + i),
            .opcode = WIRE_OPCODE(WIRE_RC, WIRE_WRITE_ONLY),
            .pkey = WIRE_PKEY_DEFAULT,
            .dqpn = 0x100 + i,
            .migreq = true,
        };
        const uint8_t from[] = {10, 0, 0, 1}, to[] = {10, 0, 0, 2};
        memcpy(p.sip.b + 12, from, 4);
        memcpy(p.dip.b + 12, to, 4);
        p.sip.b[10] = p.sip.b[11] = p.dip.b[10] = p.dip.b[11] = 0xFF;
        uint32_t bare = (uint32_t)wire_frame_len(&p);
        p.payload_len = p.dma_len = l->size - bare;
        p.va = 0x10000;
        p.rkey = 0x1234;
        wire_build(frame, sizeof(frame), &p);
        memcpy(l->head[i], frame, HEADERS);
    }
}

/* Tables that continue the headers' CRC over a payload of zeros, one for each octet of the start
 * value. Such a CRC is linear in its start value, apart from a constant. */
static void make_tables(struct load *l)
{
    static const uint8_t zero[IO_FRAME_MAX];
    size_t n = l->size - HEADERS - WIRE_ICRC_LEN;
    l->icrc_zero = wire_icrc_update(0, zero, n);
    for (unsigned octet = 0; octet < 4; octet++)
        for (uint32_t i = 0; i < 256; i++)
            l->icrc[octet][i] = wire_icrc_update(i << 8 * octet, zero, n) ^ l->icrc_zero;
}

static void seal(const struct load *l, uint8_t *frame)
{
    uint32_t c = wire_icrc_headers(frame + WIRE_ETH_LEN, HEADERS - WIRE_ETH_LEN,
                                   WIRE_IPV4_LEN + WIRE_UDP_LEN);
    c = l->icrc[0][c & 255] ^ l->icrc[1][c >> 8 & 255] ^ l->icrc[2][c >> 16 & 255] ^
        l->icrc[3][c >> 24] ^ l->icrc_zero;
    memcpy(frame + l->size - WIRE_ICRC_LEN, &c, sizeof(c)); /* little-endian, as this machine */
}

static void send_burst(struct load *l)
{
    struct io_slot slot[BURST];
    struct io_port *io = l->port[0];
    unsigned n = io->ops->tx_reserve(io, slot, BURST, 0);
    for (unsigned i = 0; i < n; i++) {
        unsigned q = l->next++ % l->qps;
        uint32_t psn = l->psn[q]++;
        memcpy(slot[i].data, l->head[q], HEADERS);
        slot[i].data[51] = (uint8_t)(psn >> 16);
        slot[i].data[52] = (uint8_t)(psn >> 8);
        slot[i].data[53] = (uint8_t)psn;
        seal(l, slot[i].data);
        slot[i].len = l->size;
    }
    if (n)
        io->ops->tx_commit(io, slot, n, 0);
    l->sent += n;
}

static void take_burst(struct load *l)
{
    struct io_frame frame[IO_BURST_MAX];
    struct io_port *io = l->port[1];
    unsigned n = io->ops->rx_peek(io, frame, IO_BURST_MAX, 0);
    if (n)
        io->ops->rx_release(io, n);
    l->got += n;
}

/* Until `end`; returns the time then. */
static uint64_t run(struct load *l, uint64_t end)
{
    uint64_t now;
    while ((now = clock_ns()) < end) {
        if (now >= l->service_at) {
            for (unsigned i = 0; i < 2; i++)
                if (l->port[i]->ops->service)
                    l->port[i]->ops->service(l->port[i], now);
            l->service_at = now + SERVICE_NS;
        }
        for (unsigned i = 0; i < 16; i++) {
            send_burst(l);
            take_burst(l);
        }
    }
    return now;
}

static int measure(struct load *l, double seconds, unsigned samples)
{
    double pps[SAMPLES], sorted[SAMPLES];
    uint64_t now = clock_ns(), deadline = now + CONNECT_NS;
    while (!l->got && now < deadline)
        now = run(l, now + WARM_UP_NS / 10);
    if (!l->got) {
        fprintf(stderr, "wire_load: nothing came through\n");
        return 1;
    }
    now = run(l, now + WARM_UP_NS);
    uint64_t sent = l->sent, got = l->got;
    for (unsigned i = 0; i < samples; i++) {
        uint64_t start = now, before = l->got;
        now = run(l, now + (uint64_t)(seconds * 1e9));
        pps[i] = (double)(l->got - before) * 1e9 / (double)(now - start);
    }
    memcpy(sorted, pps, sizeof(sorted));
    qsort(sorted, samples, sizeof(sorted[0]), by_size);
    printf("{\"name\":\"through_%u\",\"value\":%.0f,\"unit\":\"pps\",\"sent\":%llu,\"got\":%llu,"
           "\"samples\":[",
           l->size, sorted[samples / 2], (unsigned long long)(l->sent - sent),
           (unsigned long long)(l->got - got));
    for (unsigned i = 0; i < samples; i++)
        printf("%s%.0f", i ? "," : "", pps[i]);
    printf("]}\n");
    return 0;
}

int main(int argc, char **argv)
{
    static struct load l = {.size = 4162, .qps = 8};
    double seconds = 0.5;
    unsigned samples = 3;
    int c;
    while ((c = getopt(argc, argv, "s:t:n:q:")) != -1) {
        switch (c) {
        case 's':
            l.size = (uint32_t)strtoul(optarg, NULL, 10);
            break;
        case 't':
            seconds = strtod(optarg, NULL);
            break;
        case 'n':
            samples = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'q':
            l.qps = (unsigned)strtoul(optarg, NULL, 10);
            break;
        default:
            argc = 0;
        }
    }
    if (argc - optind != 2 || l.size < HEADERS + WIRE_ICRC_LEN || l.size % 4 != 2 ||
        l.size > IO_FRAME_MAX || !(seconds > 0) || !samples || samples > SAMPLES || !l.qps ||
        l.qps > QPS_MAX) {
        fprintf(stderr, "usage: wire_load [-s SIZE] [-t SECONDS] [-n SAMPLES] [-q QPS] SPEC_A "
                        "SPEC_B\n");
        return 2;
    }
    const struct io_open_params params = {.frame_max = l.size < 1522 ? 1522 : l.size + 56};
    for (unsigned i = 0; i < 2; i++) {
        char err[256] = "";
        if (io_open(argv[optind + (int)i], &params, &l.port[i], err, sizeof(err))) {
            fprintf(stderr, "wire_load: %s\n", err);
            return 1;
        }
    }
    make_heads(&l);
    make_tables(&l);
    int status = measure(&l, seconds, samples);
    for (unsigned i = 0; i < 2; i++)
        l.port[i]->ops->close(l.port[i]);
    return status;
}
