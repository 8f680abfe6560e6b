/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A daemon without threads for fuzz targets, and a client of it whose requests are calls.
 */
#ifndef URNIC_TESTS_FUZZ_DAEMON_H
#define URNIC_TESTS_FUZZ_DAEMON_H

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cmgr.h"
#include "contexts.h"
#include "control.h"
#include "fuzz.h"
#include "memory.h"
#include "request.h"
#include "stats.h"
#include "team.h"

static struct urnicd fuzz_daemon;

/* Worker k, which is there already or the next one. */
static inline struct worker *fuzz_worker(unsigned k)
{
    struct nic *nic = &fuzz_daemon.nic;
    if (k == nic->nworker) {
        FUZZ_CHECK(worker_init(&nic->worker[k], k, -1, IDLE_AUTO, &context_ops) == 0);
        nic->nworker++;
    }
    return &nic->worker[k];
}

static inline void fuzz_open_device(unsigned i)
{
    struct urnicd *d = &fuzz_daemon;
    char err[CONFIG_ERR];
    FUZZ_CHECK(device_open(&d->nic.device[i], &d->conf.dev[i], i, fuzz_worker(0), i, err) == 0);
    struct team *t = d->nic.device[i]->team;
    for (unsigned k = 1; k < t->n; k++)
        FUZZ_CHECK(device_open_member(d->nic.device[i], fuzz_worker(k), err) == 0);
    for (unsigned k = 0; k < t->n; k++)
        FUZZ_CHECK(cmgr_create(t->member[k]));
    d->nic.ndevice++;
}

/* As many workers as a device asks for, and a device for each of these, as --device has them. */
static inline void fuzz_daemon_start(const char *const *devices, unsigned n)
{
    struct urnicd *d = &fuzz_daemon;
    char err[CONFIG_ERR];
    d->epfd = d->listen_fd = d->signal_fd = d->nic.clients.captures_fd = -1;
    d->nic.clients.answer = request_answer;
    d->nic.more = request_admin;
    FUZZ_CHECK(memory_init() == 0);
    for (unsigned i = 0; i < n; i++) {
        config_device_init(&d->conf.dev[i]);
        FUZZ_CHECK(config_device_parse(&d->conf.dev[i], devices[i], err) == 0);
        d->conf.ndev++;
    }
    FUZZ_CHECK(config_check(&d->conf, err) == 0);
    for (unsigned i = 0; i < n; i++)
        fuzz_open_device(i);
}

/* A client that has said hello; *sock is its end. */
static inline struct client *fuzz_client(int *sock)
{
    int pair[2];
    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
    struct client *c = client_new(&fuzz_daemon.nic.clients, pair[0]);
    FUZZ_CHECK(c);
    c->greeted = true;
    *sock = pair[1];
    return c;
}

static inline void fuzz_client_end(struct client *c, int sock)
{
    c->gone = true;
    control_end(&fuzz_daemon, c);
    close(sock);
}

/* Take every answer and close its descriptors, as a client would. */
static inline void fuzz_drain(int sock)
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

/* Send a message with these octets after its header. The answer stays valid until the next one. */
static inline const void *fuzz_serve(struct client *c, unsigned type, const void *body, size_t len)
{
    static struct request r;
    struct ipc_hdr hdr = {.type = (uint16_t)type, .id = 1};
    r.nic = &fuzz_daemon.nic;
    r.client = c;
    r.nfd = 0;
    memcpy(r.in, &hdr, sizeof(hdr));
    memcpy(r.in + sizeof(hdr), body, len);
    r.in_len = sizeof(hdr) + len;
    request_serve(&r);
    return r.out;
}

/* Everything that clients have on the devices. */
static inline uint64_t fuzz_live(void)
{
    static const char *const names[] = {"qps", "cqs", "pds", "mrs", "srqs", "contexts"};
    static struct stats_entry e[STATS_MAX];
    uint64_t sum = 0;
    for (unsigned i = 0; i < fuzz_daemon.nic.ndevice; i++) {
        const struct team *t = fuzz_daemon.nic.device[i]->team;
        for (unsigned j = 0; j < t->n; j++) {
            unsigned n = stats_collect(t->member[j], e);
            for (unsigned k = 0; k < n; k++)
                for (unsigned m = 0; m < sizeof(names) / sizeof(names[0]); m++)
                    if (!strcmp(e[k].name, names[m]))
                        sum += e[k].value;
        }
    }
    return sum;
}

#endif
