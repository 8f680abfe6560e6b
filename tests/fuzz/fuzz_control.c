/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The daemon's requests under arbitrary messages (SHM-01, SEC-03, SEC-22): a whole daemon without
 * threads, two devices on an emulated link, and a client of its own for each input.
 *
 * The input is a list of messages: two octets of length, one octet that picks a request type, then
 * the message's octets behind the header. Small numbers in the right places are handles of objects
 * that earlier messages made, so that a mutated list still builds queue pairs and takes them down.
 */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "control.h"
#include "fuzz.h"
#include "memory.h"
#include "request.h"
#include "stats.h"

static struct urnicd daemon_state;

static void start_daemon(void)
{
    static const char *const devices[] = {
        "name=urn0,port=mem:fuzz_control,addr=10.0.0.1/24",
        "name=urn1,port=mem:fuzz_control,addr=10.0.0.2/24",
    };
    struct urnicd *d = &daemon_state;
    char err[CONFIG_ERR];
    d->epfd = d->listen_fd = d->signal_fd = -1;
    FUZZ_CHECK(memory_init() == 0);
    FUZZ_CHECK(worker_init(&d->worker[0], 0, -1, IDLE_AUTO) == 0);
    d->nworker = 1;
    for (unsigned i = 0; i < 2; i++) {
        config_device_init(&d->conf.dev[i]);
        FUZZ_CHECK(config_device_parse(&d->conf.dev[i], devices[i], err) == 0);
        d->conf.ndev++;
    }
    FUZZ_CHECK(config_check(&d->conf, err) == 0);
    for (unsigned i = 0; i < 2; i++) {
        FUZZ_CHECK(device_open(&d->device[i], &d->conf.dev[i], i, &d->worker[0], i, err) == 0);
        d->ndevice++;
    }
}

/* Take every answer and close what came with it, as a client would. */
static void drain(int sock)
{
    static uint8_t buf[IPC_MSG_MAX];
    int fd[IPC_FD_MAX];
    for (;;) {
        unsigned nfd = IPC_FD_MAX;
        ssize_t n = ipc_recv(sock, buf, sizeof(buf), fd, &nfd, MSG_DONTWAIT);
        if (n <= 0)
            return;
        for (unsigned i = 0; i < nfd; i++)
            close(fd[i]);
    }
}

static void serve(struct client *c, unsigned type, const uint8_t *body, size_t len)
{
    static struct request r;
    struct ipc_hdr hdr = {.type = (uint16_t)type, .id = 1};
    r.daemon = &daemon_state;
    r.client = c;
    r.nfd = 0;
    memcpy(r.in, &hdr, sizeof(hdr));
    memcpy(r.in + sizeof(hdr), body, len);
    r.in_len = sizeof(hdr) + len;
    request_serve(&r);
}

static uint64_t live(void)
{
    static struct stats_entry e[STATS_MAX];
    uint64_t sum = 0;
    for (unsigned i = 0; i < 2; i++) {
        unsigned n = stats_collect(daemon_state.device[i], e);
        for (unsigned k = 0; k < n; k++)
            if (!strcmp(e[k].name, "qps") || !strcmp(e[k].name, "cqs") ||
                !strcmp(e[k].name, "pds") || !strcmp(e[k].name, "mrs") ||
                !strcmp(e[k].name, "srqs") || !strcmp(e[k].name, "contexts"))
                sum += e[k].value;
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint64_t at_rest;
    int sock[2];
    if (!daemon_state.nworker) {
        start_daemon();
        at_rest = live();
    }
    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sock) == 0);
    struct client *c = client_new(&daemon_state, sock[0]);
    FUZZ_CHECK(c);
    c->greeted = true;
    for (unsigned i = 0; i < 64 && size >= 3 && !c->gone; i++) {
        size_t len = (size_t)(data[0] | data[1] << 8) % 1024;
        unsigned type = data[2] % IPC_TYPE_MAX;
        data += 3;
        size -= 3;
        if (len > size)
            len = size;
        serve(c, type, data, len);
        drain(sock[1]);
        data += len;
        size -= len;
    }
    c->gone = true;
    client_free(c);
    close(sock[1]);
    /* The client's objects went with it. */
    FUZZ_CHECK(live() == at_rest);
    return 0;
}
