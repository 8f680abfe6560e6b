/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A port under arbitrary frames, requests and times.
 *
 * SEC-03: the input is a script of steps (see `step`): frames to receive, addresses to resolve,
 * time to pass. Checksums of received frames are mended on demand, since a fuzzer can't guess them.
 * Replies must fit their promise, sending must come to an end, and the deadline must move on.
 */
#include <string.h>

#include "fuzz.h"
#include "net.h"
#include "wire_bytes.h"
#include "wire_csum.h"

struct input {
    const uint8_t *p;
    size_t n;
};

static uint8_t take(struct input *in)
{
    if (!in->n)
        return 0;
    in->n--;
    return *in->p++;
}

/* An address that is likely to mean something here. */
static struct wire_addr take_addr(struct input *in)
{
    uint8_t kind = take(in);
    if (kind & 1)
        return wire_addr_v4(0x0A000000u | (uint32_t)(kind >> 1 & 3) << 8 | take(in));
    struct wire_addr a = {{0xFE, 0x80}};
    if (kind & 2)
        memcpy(a.b, (const uint8_t[]){0x20, 0x01, 0x0D, 0xB8}, 4);
    if (kind & 4)
        memcpy(a.b, (const uint8_t[]){0xFF, 0x02}, 2);
    a.b[15] = take(in);
    return a;
}

/* Make IPv4, ICMP and ICMPv6 checksums right, as far as the frame has them. */
static void mend(uint8_t *f, size_t len)
{
    size_t off = len >= 18 && wire_get16(f + 12) == 0x8100 ? 18 : 14;
    if (len < off + 44)
        return;
    uint8_t *ip = f + off;
    size_t n = len - off;
    if (wire_get16(ip - 2) == 0x0800) {
        size_t total = wire_get16(ip + 2);
        wire_put16(ip + 10, 0);
        wire_csum_put(ip + 10, wire_csum_add(0, ip, 20));
        if (total < 24 || total > n)
            return;
        wire_put16(ip + 22, 0);
        wire_csum_put(ip + 22, wire_csum_add(0, ip + 20, total - 20));
    } else if (wire_get16(ip - 2) == 0x86DD) {
        size_t payload = wire_get16(ip + 4);
        uint8_t tail[4] = {(uint8_t)(payload >> 8), (uint8_t)payload, 0, 58};
        if (payload < 4 || payload > n - 40)
            return;
        wire_put16(ip + 42, 0);
        uint16_t sum = wire_csum_add(wire_csum_add(0, ip + 8, 32), tail, 4);
        wire_csum_put(ip + 42, wire_csum_add(sum, ip + 40, payload));
    }
}

static void receive(struct net_port *port, struct input *in, uint64_t now, bool mended)
{
    size_t len = (size_t)take(in) << 8;
    len |= take(in);
    if (len > in->n)
        len = in->n;
    size_t room = len > NET_TX_MAX ? len : NET_TX_MAX;
    uint8_t *frame = malloc(len ? len : 1);
    uint8_t *reply = malloc(room);
    FUZZ_CHECK(frame && reply);
    memcpy(frame, in->p, len);
    in->p += len;
    in->n -= len;
    if (mended)
        mend(frame, len);
    size_t n = net_rx(port, frame, len, now, reply, room);
    FUZZ_CHECK(n <= room && (n == 0 || n >= 60));
    if (n) { /* our own frame that comes back is never answered */
        uint8_t again[2048];
        FUZZ_CHECK(net_rx(port, reply, n, now, again, sizeof(again)) == 0);
    }
    free(frame);
    free(reply);
}

static void step(struct net_port *port, struct input *in, uint64_t *now)
{
    struct wire_addr a;
    uint8_t mac[6];
    uint8_t op = take(in);
    switch (op % 9) {
    case 0:
        receive(port, in, *now, false);
        break;
    case 1:
        receive(port, in, *now, true);
        break;
    case 2:
        a = take_addr(in);
        net_resolve(port, &a, *now, mac);
        break;
    case 3:
        a = take_addr(in);
        net_watch(port, &a, *now);
        break;
    case 4:
        a = take_addr(in);
        net_unwatch(port, &a);
        break;
    case 5:
        a = take_addr(in);
        net_addr_add(port, &a, take(in), *now);
        break;
    case 6:
        a = take_addr(in);
        net_addr_del(port, &a);
        break;
    case 7:
        a = take_addr(in);
        net_gateway_set(port, &a);
        break;
    case 8:
        *now += (uint64_t)(take(in) + 1u) * 50u * NET_NS_PER_MS;
        net_expire(port, *now);
        FUZZ_CHECK(net_deadline(port) > *now);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    struct net_config c = {
        .mac = {2, 0, 0, 0, 0, 1},
        .vlan = take(&in) & 1 ? 7 : 0,
        .mtu = 1500,
        .neighbours = 8,
    };
    uint64_t now = 0;
    struct net_port *port = net_port_new(&c, now);
    FUZZ_CHECK(port);
    struct wire_addr a = wire_addr_v4(0x0A000001u);
    FUZZ_CHECK(net_addr_add(port, &a, 24, now) == 0);
    while (in.n) {
        uint8_t buf[NET_TX_MAX];
        struct net_change change;
        step(port, &in, &now);
        unsigned frames = 0;
        while (net_tx(port, buf, sizeof(buf), now))
            FUZZ_CHECK(++frames <= NET_ADDRS_MAX + c.neighbours);
        unsigned changes = 0;
        while (net_next_change(port, &change))
            FUZZ_CHECK(++changes <= c.neighbours);
    }
    net_port_free(port);
    return 0;
}
