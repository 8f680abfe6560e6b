/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The program at the other end of `urnic drill --port`: it accepts connections, tells where its
 * memory is, posts the receives that the script wants, and otherwise leaves the device alone.
 * Built on liburnic and on librdmacm, see end.h.
 *
 *     drill_target ADDRESS PORT [flush]
 *
 * It ends when its standard input does.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../app/urnic/drill/drill_hello.h"
#include "end.h"

#define REGION       (64u << 10)
#define RECVS        256u
#define RECV_LEN     1024u
#define ACCESS       0x0Fu
#define ACCESS_FLUSH 0x100u /* FLUSH_GLOBAL, which a device may not have */
#define DISCONNECTED 10     /* RDMA_CM_EVENT_DISCONNECTED */

static int address(const char *text, uint8_t out[16])
{
    memset(out, 0, 16);
    out[10] = out[11] = 0xff;
    if (inet_pton(AF_INET, text, out + 12) == 1)
        return 0;
    return inet_pton(AF_INET6, text, out) == 1 ? 0 : -EINVAL;
}

static int stopped(void)
{
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    char c;
    return poll(&p, 1, 0) > 0 && read(STDIN_FILENO, &c, 1) <= 0;
}

/* One connection from its request to its end. */
static int serve(struct end *e, const struct end_event *request)
{
    struct drill_hello hello = {0};
    struct end_event ev;
    struct end_wc wc;
    uint8_t text[DRILL_HELLO_LEN];
    int rc = 0;
    drill_hello_unpack(&hello, request->private_data, request->private_len);
    hello.recvs = hello.recvs < RECVS ? hello.recvs : RECVS;
    for (uint32_t i = 0; !rc && i < hello.recvs; i++)
        rc = end_recv(e, 0, i, REGION + i * RECV_LEN, RECV_LEN, 0);
    hello.va = end_address(e);
    hello.rkey = end_rkey(e);
    hello.len = REGION;
    hello.recv_len = RECV_LEN;
    drill_hello_pack(text, &hello);
    struct end_offer offer = {.private_data = text,
                              .private_len = sizeof(text),
                              .rd_atomic = 4,
                              .retry = 7,
                              .rnr_retry = 7};
    if (!rc)
        rc = end_accept(e, 0, &offer);
    for (int i = 0; !rc && i < 600 && !stopped(); i++) {
        while (end_poll(e, &wc) > 0)
            ;
        if (end_event(e, &ev, 100) == 0 && ev.event == DISCONNECTED)
            break;
    }
    end_destroy(e, 0);
    return rc;
}

int main(int argc, char **argv)
{
    struct end *e;
    struct end_event request;
    uint8_t addr[16];
    char *rest = NULL;
    bool flush = argc == 4 && !strcmp(argv[3], "flush");
    unsigned long port = argc == 3 || flush ? strtoul(argv[2], &rest, 10) : 0;
    if (!port || port > 65535 || *rest || address(argv[1], addr)) {
        fprintf(stderr, "usage: drill_target ADDRESS PORT [flush]\n");
        return 2;
    }
    int rc = end_open(&e, addr, REGION + RECVS * RECV_LEN, ACCESS | (flush ? ACCESS_FLUSH : 0));
    if (!rc)
        rc = end_listen(e, (uint16_t)port);
    if (rc) {
        fprintf(stderr, "drill_target: %s: %s\n", argv[1], strerror(-rc));
        return 1;
    }
    printf("ready\n");
    fflush(stdout);
    while (!stopped()) {
        rc = end_answer(e, 0, &request, 200);
        if (!rc)
            rc = serve(e, &request);
        if (rc && rc != -ETIMEDOUT)
            fprintf(stderr, "drill_target: a connection failed: %s\n", strerror(-rc));
    }
    return 0;
}
