/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See udp_probe.h. The filter keeps one more octet of the payload than an octet of the
 * identification says. So a datagram shows one octet of it, and each thing is sent twice. The
 * payload's first octet is always there: it tells the datagrams of one look from late ones of
 * looks before it.
 */
#include "udp_probe.h"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

#define PAYLOAD 300 /* more than an octet can count */
#define WAIT_MS 20
#define ID_OFF  4 /* offset in the IPv4 header */
#define TRIES   3u

struct pair {
    int from, to;
    uint8_t looks;
    struct sockaddr_in addr;
};

/* Show the high or low octet of the identifications from now on. */
static int show(const struct pair *s, unsigned octet)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, (uint32_t)(SKF_NET_OFF + ID_OFF + (int)octet)),
        BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, WIRE_UDP_LEN + 1),
        BPF_STMT(BPF_RET | BPF_A, 0),
    };
    struct sock_fprog prog = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
    return setsockopt(s->to, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog));
}

static int open_pair(struct pair *s)
{
    const int probe = IP_PMTUDISC_PROBE;
    socklen_t len = sizeof(s->addr);
    s->from = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    s->to = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    s->addr = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    if (s->from < 0 || s->to < 0 || bind(s->to, (struct sockaddr *)&s->addr, len) < 0 ||
        getsockname(s->to, (struct sockaddr *)&s->addr, &len) < 0 ||
        setsockopt(s->from, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof(probe)) < 0)
        return -errno;
    return 0;
}

/* Receive the datagrams of this attempt, with first octets that count up from `mark`, until all n
 * are there or no more come. */
static bool collect(const struct pair *s, uint8_t mark, unsigned n, int *lens)
{
    uint8_t got[PAYLOAD];
    struct pollfd fd = {.fd = s->to, .events = POLLIN};
    unsigned have = 0;
    while (have < n && poll(&fd, 1, WAIT_MS) == 1) {
        ssize_t len = recv(s->to, got, sizeof(got), MSG_DONTWAIT);
        uint8_t place = (uint8_t)(got[0] - mark);
        if (len < 1 || place >= n || lens[place] >= 0)
            continue;
        lens[place] = (int)len;
        have++;
    }
    return have == n;
}

/* Send n datagrams in one call, and read their lengths on arrival; -1 = not seen. */
static bool look(struct pair *s, unsigned n, int *lens)
{
    uint8_t payload[PAYLOAD * UDP_PROBE_TRAIN] = {0};
    const uint8_t mark = (uint8_t)(s->looks++ * UDP_PROBE_TRAIN);
    const uint16_t segment = PAYLOAD;
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(segment))] = {0};
    struct iovec iov = {payload, (size_t)PAYLOAD * n};
    struct msghdr mh = {
        .msg_name = &s->addr, .msg_namelen = sizeof(s->addr), .msg_iov = &iov, .msg_iovlen = 1};
    for (unsigned i = 0; i < n; i++) {
        lens[i] = -1;
        payload[(size_t)PAYLOAD * i] = (uint8_t)(mark + i);
    }
    if (n > 1) {
        struct cmsghdr *c = (struct cmsghdr *)(void *)control;
        c->cmsg_level = IPPROTO_UDP;
        c->cmsg_type = UDP_SEGMENT;
        c->cmsg_len = CMSG_LEN(sizeof(segment));
        memcpy(CMSG_DATA(c), &segment, sizeof(segment));
        mh.msg_control = control;
        mh.msg_controllen = sizeof(control);
    }
    return sendmsg(s->from, &mh, MSG_DONTWAIT) >= 0 && collect(s, mark, n, lens);
}

/* On a busy machine datagrams may come too late: try again. */
static void see(struct pair *s, unsigned octet, unsigned n, int *lens)
{
    bool all = false;
    show(s, octet);
    for (unsigned i = 0; i < TRIES && !all; i++)
        all = look(s, n, lens);
}

/* Both octets of the identifications of n datagrams. */
static void ids_of(struct pair *s, unsigned n, int *ids)
{
    int high[UDP_PROBE_TRAIN], low[UDP_PROBE_TRAIN];
    see(s, 0, n, high);
    see(s, 1, n, low);
    for (unsigned i = 0; i < n; i++)
        ids[i] = high[i] < 1 || low[i] < 1 || high[i] > 256 || low[i] > 256
                     ? -1
                     : (high[i] - 1) << 8 | (low[i] - 1);
}

void udp_probe(struct udp_seen *out)
{
    struct pair s = {0};
    memset(out, 0xFF, sizeof(*out)); /* -1 */
    if (open_pair(&s) == 0 && show(&s, 0) == 0) {
        ids_of(&s, 1, &out->single[0]);
        if (out->single[0] >= 0) { /* otherwise the wait for the others would be in vain */
            ids_of(&s, 1, &out->single[1]);
            ids_of(&s, UDP_PROBE_TRAIN, out->train[0]);
            ids_of(&s, UDP_PROBE_TRAIN, out->train[1]);
        }
    }
    if (s.from >= 0)
        close(s.from);
    if (s.to >= 0)
        close(s.to);
}

struct udp_ids udp_ids_usual(void)
{
    return (struct udp_ids){.step = 1, .single_ok = true, .train_ok = true};
}

struct udp_ids udp_ids_judge(const struct udp_seen *seen)
{
    struct udp_ids ids = udp_ids_usual();
    bool cut = false, whole = false;
    if (seen->single[0] < 0)
        return ids;
    ids.single = (uint16_t)seen->single[0];
    ids.single_ok = seen->single[1] < 0 || seen->single[0] == seen->single[1];
    for (unsigned t = 0; t < 2 && !cut; t++) {
        const int *train = seen->train[t];
        cut = train[0] >= 0 && train[1] >= 0;
        whole |= train[0] >= 0 && train[1] < 0 && train[2] < 0 && train[3] < 0;
        if (cut) {
            ids.first = (uint16_t)train[0];
            ids.step = (uint16_t)(train[1] - train[0]);
        }
    }
    ids.train_ok = cut || !whole; /* a kernel without trains sends one large datagram */
    for (unsigned t = 0; t < 2; t++) {
        for (unsigned i = 0; i < UDP_PROBE_TRAIN; i++)
            ids.train_ok &= seen->train[t][i] < 0 ||
                            (uint16_t)seen->train[t][i] == (uint16_t)(ids.first + ids.step * i);
    }
    return ids;
}
