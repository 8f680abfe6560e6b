/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A remote-controlled end of a RoCEv2 test: one command a line on standard input, one answer a line
 * on standard output. Built twice, see end.h.
 *
 *     peer ADDRESS [ACCESS]      the device with this address; rights of its 4 MiB region
 *
 * A command is a verb and words of the form name=value; numbers may be hexadecimal. The answer is
 * "ok" and such words, or "error" and why. End of input ends the program.
 *
 *     qp q= type=rc|uc|ud                          -> qpn=
 *     join q= remote= qpn= sq_psn= rq_psn= mtu= timeout= retry= rnr_retry= rnr_timer= rd= rd_dest=
 *          access= qkey= upto=STATE
 *     modify q= state=      state q= -> state=     destroy q=
 *     recv q= id= off= len= [n=COUNT] [lkey=]      COUNT receives, each `len` further on
 *     send q= id= op= off= len= flags= raddr= rkey= imm= inv= add= swap= to= to_qpn= qkey= lkey=
 *     poll n= ms=                                  -> wc=ID:STATUS:OPCODE:LEN:FLAGS:IMM:SRC_QPN ...
 *     async                                        -> ev=TYPE:QPN ... all that wait
 *     fill off= len= seed=    check off= len= seed= -> bad=FIRST_OFFSET or bad=-1
 *     poke off= value=        peek off= -> value=  64 bits, this machine's octet order
 *     listen port=
 *     answer q= ms=                                -> the request's words
 *     accept q= rd= retry= rnr_retry= text=        reject q= text=
 *     dial q= to= port= ms=
 *     connect q= rd= retry= rnr_retry= text=
 *     event ms=                                    -> event= status= rd= depth= text=HEX
 *     hangup q=
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "end.h"

#define REGION     (4u << 20)
#define LINE       1024
#define ALL_ACCESS 0x0Fu

static struct end *end;
static char line[LINE];

/* The value of name= in the command. NULL: not there. */
static const char *word(const char *name)
{
    size_t n = strlen(name);
    for (char *at = line; at; at = strchr(at, ' ')) {
        at += *at == ' ';
        if (!strncmp(at, name, n) && at[n] == '=')
            return at + n + 1;
    }
    return NULL;
}

static uint64_t number(const char *name, uint64_t otherwise)
{
    const char *text = word(name);
    return text ? strtoull(text, NULL, 0) : otherwise;
}

static unsigned slot(void)
{
    return (unsigned)number("q", 0) % END_QPS;
}

/* Copy a word, up to the next space. */
static size_t text(const char *name, char *out, size_t size)
{
    const char *from = word(name);
    size_t n = from ? strcspn(from, " ") : 0;
    n = n < size ? n : size - 1;
    memcpy(out, from ? from : "", n);
    out[n] = '\0';
    return n;
}

static int address(const char *text, uint8_t out[16])
{
    memset(out, 0, 16);
    out[10] = out[11] = 0xff;
    if (inet_pton(AF_INET, text, out + 12) == 1)
        return 0;
    return inet_pton(AF_INET6, text, out) == 1 ? 0 : -EINVAL;
}

static bool inside(uint32_t *off, uint32_t *len)
{
    *off = (uint32_t)number("off", 0);
    *len = (uint32_t)number("len", 0);
    return *off <= REGION && *len <= REGION - *off;
}

/* Octet i of a pattern: no run occurs twice, so that a shifted copy is noticed. */
static uint8_t octet(uint32_t seed, uint32_t i)
{
    uint32_t x = (i >> 2) * 2654435761u + seed * 40503u + 1;
    return (uint8_t)((x ^ x >> 15) >> (i & 3) * 8);
}

static int do_qp(void)
{
    char type[8];
    uint32_t qpn = 0;
    text("type", type, sizeof(type));
    int rc = end_qp(end, slot(),
                    !strcmp(type, "ud")   ? END_UD
                    : !strcmp(type, "uc") ? END_UC
                                          : END_RC,
                    &qpn);
    if (!rc)
        printf("ok qpn=%" PRIu32 "\n", qpn);
    return rc;
}

static int do_join(void)
{
    char remote[64];
    struct end_path p = {
        .qpn = (uint32_t)number("qpn", 0),
        .sq_psn = (uint32_t)number("sq_psn", 0),
        .rq_psn = (uint32_t)number("rq_psn", 0),
        .mtu = (unsigned)number("mtu", 1024),
        .access = (unsigned)number("access", ALL_ACCESS),
        .timeout = (uint8_t)number("timeout", 18),
        .retry = (uint8_t)number("retry", 6),
        .rnr_retry = (uint8_t)number("rnr_retry", 6),
        .rnr_timer = (uint8_t)number("rnr_timer", 12),
        .rd_atomic = (uint8_t)number("rd", 8),
        .dest_rd_atomic = (uint8_t)number("rd_dest", number("rd", 8)),
        .qkey = (uint32_t)number("qkey", END_QKEY),
        .upto = (int)number("upto", END_RTS),
    };
    text("remote", remote, sizeof(remote));
    int rc = address(remote, p.remote);
    if (!rc)
        rc = end_join(end, slot(), &p);
    if (!rc)
        puts("ok");
    return rc;
}

static int do_state(void)
{
    int state = end_state(end, slot());
    if (state >= 0)
        printf("ok state=%d\n", state);
    return state < 0 ? state : 0;
}

static int plain(int rc)
{
    if (!rc)
        puts("ok");
    return rc;
}

static int do_modify(void)
{
    return plain(end_modify(end, slot(), (int)number("state", 0)));
}

static int do_destroy(void)
{
    return plain(end_destroy(end, slot()));
}

static int do_recv(void)
{
    uint32_t off, len, n = (uint32_t)number("n", 1);
    uint64_t id = number("id", 0);
    int rc = inside(&off, &len) && (uint64_t)len * n <= REGION - off ? 0 : -EINVAL;
    for (uint32_t i = 0; !rc && i < n; i++)
        rc = end_recv(end, slot(), id + i, off + i * len, len, (uint32_t)number("lkey", 0));
    return plain(rc);
}

static int do_send(void)
{
    char to[64];
    struct end_work w = {
        .id = number("id", 0),
        .opcode = (int)number("op", 0),
        .flags = (unsigned)number("flags", 2), /* signalled */
        .lkey = (uint32_t)number("lkey", 0),
        .raddr = number("raddr", 0),
        .rkey = (uint32_t)number("rkey", 0),
        .imm = htonl((uint32_t)number("imm", 0)),
        .compare_add = number("add", 0),
        .swap = number("swap", 0),
        .to_qpn = (uint32_t)number("to_qpn", 0),
        .qkey = (uint32_t)number("qkey", END_QKEY),
    };
    if (word("inv"))
        w.imm = (uint32_t)number("inv", 0);
    if (text("to", to, sizeof(to)) && address(to, w.to))
        return -EINVAL;
    if (!inside(&w.off, &w.len))
        return -EINVAL;
    return plain(end_send(end, slot(), &w));
}

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static int do_poll(void)
{
    uint64_t n = number("n", 1), until = now_ms() + number("ms", 10000);
    struct end_wc wc;
    printf("ok");
    for (;;) {
        int got = n ? end_poll(end, &wc) : 0;
        if (got < 0) {
            printf(" gone=%d", -got);
            break;
        }
        if (got) {
            printf(" wc=%" PRIu64 ":%d:%d:%" PRIu32 ":%" PRIu32 ":%" PRIu32 ":%" PRIu32, wc.id,
                   wc.status, wc.opcode, wc.len, wc.flags, ntohl(wc.imm), wc.src_qpn);
            n--;
            continue;
        }
        if (!n || now_ms() >= until)
            break;
        usleep(100);
    }
    putchar('\n');
    return 0;
}

static int do_async(void)
{
    int type, got;
    uint32_t qpn;
    printf("ok");
    while ((got = end_async(end, &type, &qpn)) > 0)
        printf(" ev=%d:%" PRIu32, type, qpn);
    if (got < 0)
        printf(" gone=%d", -got);
    putchar('\n');
    return 0;
}

static int do_fill(void)
{
    uint32_t off, len, seed = (uint32_t)number("seed", 0);
    if (!inside(&off, &len))
        return -EINVAL;
    for (uint32_t i = 0; i < len; i++)
        end_memory(end)[off + i] = word("zero") ? 0 : octet(seed, i);
    return plain(0);
}

static int do_check(void)
{
    uint32_t off, len, seed = (uint32_t)number("seed", 0);
    int64_t bad = -1;
    if (!inside(&off, &len))
        return -EINVAL;
    for (uint32_t i = 0; i < len && bad < 0; i++)
        if (end_memory(end)[off + i] != (word("zero") ? 0 : octet(seed, i)))
            bad = i;
    printf("ok bad=%" PRId64 "\n", bad);
    return 0;
}

static int do_poke(void)
{
    uint64_t off = number("off", 0), value = number("value", 0);
    if (off > REGION - 8)
        return -EINVAL;
    memcpy(end_memory(end) + off, &value, 8);
    return plain(0);
}

static int do_peek(void)
{
    uint64_t off = number("off", 0), value;
    if (off > REGION - 8)
        return -EINVAL;
    memcpy(&value, end_memory(end) + off, 8);
    printf("ok value=%" PRIu64 "\n", value);
    return 0;
}

static void print_event(const struct end_event *e)
{
    printf("ok event=%d status=%d rd=%u depth=%u text=", e->event, e->status, e->rd_atomic,
           e->depth);
    for (unsigned i = 0; i < e->private_len && i < sizeof(e->private_data); i++)
        printf("%02x", e->private_data[i]);
    putchar('\n');
}

static int timeout_ms(void)
{
    return (int)number("ms", 15000);
}

static int do_event(void)
{
    struct end_event e;
    int rc = end_event(end, &e, timeout_ms());
    if (!rc)
        print_event(&e);
    return rc;
}

static int do_listen(void)
{
    return plain(end_listen(end, (uint16_t)number("port", 0)));
}

static int do_answer(void)
{
    struct end_event e;
    int rc = end_answer(end, slot(), &e, timeout_ms());
    if (!rc)
        print_event(&e);
    return rc;
}

static struct end_offer offer(char *data, size_t size)
{
    return (struct end_offer){
        .private_len = (uint8_t)text("text", data, size),
        .private_data = data,
        .rd_atomic = (uint8_t)number("rd", 8),
        .retry = (uint8_t)number("retry", 6),
        .rnr_retry = (uint8_t)number("rnr_retry", 6),
    };
}

static int do_accept(void)
{
    char data[197];
    struct end_offer o = offer(data, sizeof(data));
    return plain(end_accept(end, slot(), &o));
}

static int do_connect(void)
{
    char data[57];
    struct end_offer o = offer(data, sizeof(data));
    return plain(end_connect(end, slot(), &o));
}

static int do_reject(void)
{
    char data[149];
    size_t n = text("text", data, sizeof(data));
    return plain(end_reject(end, slot(), data, (uint8_t)n));
}

static int do_dial(void)
{
    char to[64];
    uint16_t port = htons((uint16_t)number("port", 0));
    struct sockaddr_in a4 = {.sin_family = AF_INET, .sin_port = port};
    struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_port = port};
    text("to", to, sizeof(to));
    bool v4 = inet_pton(AF_INET, to, &a4.sin_addr) == 1;
    if (!v4 && inet_pton(AF_INET6, to, &a6.sin6_addr) != 1)
        return -EINVAL;
    return plain(end_dial(end, slot(), v4 ? (void *)&a4 : (void *)&a6, timeout_ms()));
}

static int do_hangup(void)
{
    return plain(end_hangup(end, slot()));
}

static const struct {
    const char *verb;
    int (*run)(void); /* prints its answer and returns 0, or returns -errno */
} verbs[] = {
    {"qp", do_qp},           {"join", do_join},       {"modify", do_modify}, {"state", do_state},
    {"destroy", do_destroy}, {"recv", do_recv},       {"send", do_send},     {"poll", do_poll},
    {"fill", do_fill},       {"check", do_check},     {"poke", do_poke},     {"peek", do_peek},
    {"listen", do_listen},   {"answer", do_answer},   {"accept", do_accept}, {"reject", do_reject},
    {"dial", do_dial},       {"connect", do_connect}, {"event", do_event},   {"hangup", do_hangup},
    {"async", do_async},
};

static int obey(void)
{
    size_t n = strcspn(line, " ");
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
        if (n == strlen(verbs[i].verb) && !memcmp(line, verbs[i].verb, n))
            return verbs[i].run();
    return -ENOTSUP;
}

int main(int argc, char **argv)
{
    uint8_t addr[16];
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc < 2 || address(argv[1], addr)) {
        fprintf(stderr, "usage: peer ADDRESS [ACCESS]\n");
        return 2;
    }
    int rc =
        end_open(&end, addr, REGION, argc > 2 ? (unsigned)strtoul(argv[2], NULL, 0) : ALL_ACCESS);
    if (rc) {
        printf("error open: %s\n", strerror(-rc));
        return 1;
    }
    printf("ok addr=%" PRIu64 " rkey=%" PRIu32 "\n", end_address(end), end_rkey(end));
    while (fgets(line, sizeof(line), stdin)) {
        line[strcspn(line, "\n")] = '\0';
        rc = obey();
        if (rc)
            printf("error %s: %s\n", line, strerror(-rc));
    }
    return 0;
}
