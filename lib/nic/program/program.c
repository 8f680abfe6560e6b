/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See program.h.
 */
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "cmgr.h"
#include "config_device.h"
#include "contexts.h"
#include "crc.h"
#include "device.h"
#include "forked.h"
#include "guard.h"
#include "guard_signal.h"
#include "ipc_engine.h"
#include "ipc_map.h"
#include "log.h"
#include "nic.h"
#include "program_asked.h"
#include "program_channel.h"
#include "reclaim.h"
#include "request.h"
#include "spec.h"

#define PROGRAM_DRAIN_NS (200 * CLOCK_MS) /* time for the last messages to the peers */
#define PROGRAM_LOOK_NS  (1 * CLOCK_MS)   /* interval between checks in that time */

/* A request that is answered later; on the caller's stack. */
struct program_wait {
    struct program_wait *next;
    uint32_t id;
    _Atomic uint32_t done;
    ssize_t result; /* octets of the answer, or -errno */
    void *reply;
    size_t cap;
};

struct program {
    struct nic nic;
    struct program_channel channel; /* unused on a port of the program's own */
    struct config_device conf;
    enum spec_progress progress;
    pthread_mutex_t lock; /* protects the members below, and all requests */
    struct client *client;
    uint32_t last_id;
    struct request request;
    pthread_mutex_t waiting; /* protects `waits`, since answers come from the worker; innermost */
    struct program_wait *waits;
};

/* A thread that is cancelled in the middle of a round or of a request would keep the token, or
 * the lock, for ever. */
static void enter(int *state)
{
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, state);
}

static void leave(int state)
{
    pthread_setcancelstate(state, NULL);
}

/* Lines of the log are written by a thread that holds no lock: the port's thread, or the polling
 * threads where there is none. */
static void flush(const struct program *p)
{
    if (p->progress == SPEC_POLL && log_kept())
        log_flush();
}

/* ---- answers that come later ---- */

static void wait_add(struct program *p, struct program_wait *w)
{
    pthread_mutex_lock(&p->waiting);
    w->next = p->waits;
    p->waits = w;
    pthread_mutex_unlock(&p->waiting);
}

/* Take the request off the list. NULL = no request waits for this answer. */
static struct program_wait *wait_take(struct program *p, uint32_t id)
{
    struct program_wait **at = &p->waits;
    while (*at && (*at)->id != id)
        at = &(*at)->next;
    struct program_wait *w = *at;
    if (w)
        *at = w->next;
    return w;
}

static void wait_forget(struct program *p, uint32_t id)
{
    pthread_mutex_lock(&p->waiting);
    (void)wait_take(p, id);
    pthread_mutex_unlock(&p->waiting);
}

/* *w is gone as soon as its owner sees that it is done. */
static void wait_done(struct program_wait *w, ssize_t result)
{
    _Atomic uint32_t *done = &w->done;
    w->result = result;
    atomic_store_explicit(done, 1, memory_order_release);
    syscall(SYS_futex, done, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static ssize_t wait_for(struct program *p, struct program_wait *w)
{
    const struct timespec nap = {.tv_nsec = (long)PROGRAM_LOOK_NS};
    while (atomic_load_explicit(&w->done, memory_order_acquire) == 0) {
        if (p->progress == SPEC_POLL)
            program_poll(p);
        syscall(SYS_futex, &w->done, FUTEX_WAIT_PRIVATE, 0, p->progress == SPEC_POLL ? &nap : NULL,
                NULL, 0);
    }
    return w->result;
}

/* clients.answer: any thread. */
static void program_answer(struct client *c, const struct ipc_hdr *request, int status, void *msg,
                           size_t len)
{
    struct nic *nic = (struct nic *)(void *)((char *)c->all - offsetof(struct nic, clients));
    struct program *p = (struct program *)(void *)((char *)nic - offsetof(struct program, nic));
    struct ipc_hdr hdr = {
        .type = request->type, .flags = IPC_F_REPLY, .id = request->id, .status = status};
    memcpy(msg, &hdr, sizeof(hdr));
    pthread_mutex_lock(&p->waiting);
    struct program_wait *w = wait_take(p, request->id);
    pthread_mutex_unlock(&p->waiting);
    if (!w)
        return;
    ssize_t result = status < 0 ? status : len > w->cap ? -EMSGSIZE : (ssize_t)len;
    if (result > 0)
        memcpy(w->reply, msg, len);
    wait_done(w, result);
}

/* ---- requests ---- */

/* The answer's descriptors become the caller's: descriptors that stay ours are duplicated. -EMFILE.
 */
static int give_fds(struct request *r, int *out, unsigned *nout)
{
    unsigned room = nout ? *nout : 0, n = 0;
    int rc = 0;
    for (; n < r->nout && n < room && rc == 0; n++) {
        out[n] = ipc_object_is_stand_in(r->out_fd[n]) ? r->out_fd[n]
                                                      : fcntl(r->out_fd[n], F_DUPFD_CLOEXEC, 0);
        if (out[n] == -1) {
            rc = -EMFILE;
            break;
        }
    }
    for (; rc < 0 && n > 0; n--) {
        if (!ipc_object_is_stand_in(out[n - 1]))
            close(out[n - 1]);
    }
    if (nout)
        *nout = n;
    return rc;
}

static ssize_t program_act(struct program *p, struct program_wait *w, const int *fds, unsigned nfds,
                           int *out_fds, unsigned *nout)
{
    struct request *r = &p->request;
    r->nic = &p->nic;
    r->client = p->client;
    r->sealings = 0;
    for (r->nfd = 0; r->nfd < nfds; r->nfd++) {
        r->fd[r->nfd] = fcntl(fds[r->nfd], F_DUPFD_CLOEXEC, 0);
        if (r->fd[r->nfd] < 0) {
            int rc = -errno;
            request_close_fds(r);
            return rc;
        }
    }
    int status = request_act(r);
    ssize_t n = status < 0 ? status : (ssize_t)r->out_len;
    if (r->deferred)
        n = 0;
    else if (n > (ssize_t)w->cap)
        n = -EMSGSIZE;
    int given = n > 0 ? give_fds(r, out_fds, nout) : 0;
    if (n > 0)
        memcpy(w->reply, r->out,
               given < 0 && (size_t)n > sizeof(struct ipc_handle) ? sizeof(struct ipc_handle)
                                                                  : (size_t)n);
    request_end(r, status >= 0);
    return given < 0 ? given : n;
}

ssize_t program_call(struct program *p, const void *req, size_t len, const int *fds, unsigned nfds,
                     void *reply, size_t cap, int *out_fds, unsigned *nout)
{
    struct program_wait w = {.reply = reply, .cap = cap};
    struct ipc_hdr hdr;
    ssize_t n = -ENODEV;
    int state;
    if (len < sizeof(hdr) || len > IPC_MSG_MAX || nfds > IPC_FD_MAX)
        return -EMSGSIZE;
    enter(&state);
    pthread_mutex_lock(&p->lock);
    if (p->client && worker_check(&p->nic.worker[0])) {
        memcpy(p->request.in, req, len);
        p->request.in_len = len;
        memcpy(&hdr, req, sizeof(hdr));
        hdr.id = w.id = ++p->last_id;
        memcpy(p->request.in, &hdr, sizeof(hdr));
        wait_add(p, &w);
        n = program_act(p, &w, fds, nfds, out_fds, nout);
        if (n != 0)
            wait_forget(p, w.id);
    } else if (p->client) {
        worker_await_end(&p->nic.worker[0]);
    }
    pthread_mutex_unlock(&p->lock);
    if (n == 0)
        n = wait_for(p, &w);
    log_flush();
    leave(state);
    return n;
}

void *program_map(int object, size_t len, int prot)
{
    return ipc_map(object, 0, len, prot);
}

/* ---- progress ---- */

void program_poll(struct program *p)
{
    int state;
    if (p->progress == SPEC_THREAD)
        return;
    enter(&state);
    (void)worker_poll(&p->nic.worker[0]);
    flush(p);
    leave(state);
}

void program_posted(struct program *p)
{
    struct worker *w = &p->nic.worker[0];
    int state;
    enter(&state);
    if (p->progress != SPEC_THREAD)
        worker_posted(w);
    else
        worker_kick(w);
    leave(state);
}

void program_waits(struct program *p)
{
    int state;
    enter(&state);
    worker_waits(&p->nic.worker[0]);
    leave(state);
}

bool program_needs_polls(const struct program *p)
{
    return p->progress == SPEC_POLL;
}

/* ---- children ---- */

/* The programs that have a port of their own. Slots, so that the child of a fork at any moment can
 * read them. */
static _Atomic(struct program *) owners[GUARD_FRAMES];

/* In a child. The program's memory is a copy, of any moment: only the port's sockets are read. */
static void forget_ports(void)
{
    for (unsigned i = 0; i < GUARD_FRAMES; i++) {
        struct program *p = atomic_exchange(&owners[i], NULL);
        if (p)
            io_forked(p->nic.device[0]->io);
    }
}

static void know_forks(void)
{
    (void)pthread_atfork(NULL, NULL, forget_ports);
}

static void own(struct program *p)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, know_forks);
    for (unsigned i = 0; i < GUARD_FRAMES; i++) {
        struct program *none = NULL;
        if (atomic_compare_exchange_strong(&owners[i], &none, p))
            return;
    }
}

static void disown(struct program *p)
{
    for (unsigned i = 0; i < GUARD_FRAMES; i++) {
        struct program *it = p;
        if (atomic_compare_exchange_strong(&owners[i], &it, NULL))
            return;
    }
}

/* ---- opening ---- */

/* Signals of the program are for the program's threads. */
static int start_worker(struct worker *w)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigset_t all, before;
    sigfillset(&all);
    for (unsigned i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        sigdelset(&all, own[i]);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = worker_start(w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

/* Memory of this process may be gone when a round needs it. */
static int guard_memory(struct worker *w, char *why)
{
    w->frame = guard_frame_take();
    if (!w->frame) {
        snprintf(why, IPC_ENGINE_WHY, "%u ports of this program are open", GUARD_FRAMES);
        return -EMFILE;
    }
    if (guard_signal_on_top() < 0)
        log_warn("memory", "no fault handler: the program has had too many of its own");
    return 0;
}

static int open_nic(struct program *p, char *why)
{
    struct nic *nic = &p->nic;
    uint64_t seed = 0;
    (void)!getrandom(&seed, sizeof(seed), 0);
    int rc = worker_init(&nic->worker[0], 0, -1, IDLE_AUTO, &context_ops);
    if (rc < 0) {
        snprintf(why, IPC_ENGINE_WHY, "its worker: %s", strerror(-rc));
        return rc;
    }
    nic->nworker = 1;
    rc = guard_memory(&nic->worker[0], why);
    if (rc < 0)
        return rc;
    if (p->channel.page) {
        p->channel.given = true;
        p->channel.uplink.asked = program_asked;
        p->channel.uplink.asked_arg = &nic->device[0];
        rc =
            device_open_uplink(&nic->device[0], &p->conf, &nic->worker[0], &p->channel.uplink, why);
    } else {
        rc = device_open(&nic->device[0], &p->conf, 0, &nic->worker[0], seed, why);
    }
    if (rc < 0)
        return rc;
    nic->ndevice = 1;
    if (!p->channel.page)
        own(p);
    if (p->channel.page || cmgr_create(nic->device[0]))
        p->client = client_new_own(&nic->clients);
    if (!p->client) {
        snprintf(why, IPC_ENGINE_WHY, "out of memory");
        return -ENOMEM;
    }
    nic->clients.first = p->client;
    nic->clients.n = 1;
    if (p->progress == SPEC_POLL) {
        nic->worker[0].inline_only = true;
        return 0;
    }
    rc = start_worker(&nic->worker[0]);
    if (rc < 0)
        snprintf(why, IPC_ENGINE_WHY, "its thread: %s", strerror(-rc));
    return rc;
}

/* The environment's choice; urnic and urnicd read it, too. */
static int choose_crc(char *why)
{
    return crc_choose(secure_getenv(CRC_ENV), why, IPC_ENGINE_WHY) < 0 ? -EINVAL : 0;
}

static int open_with(struct program *p, const struct spec *s, struct program **out, char *why)
{
    pthread_mutex_init(&p->lock, NULL);
    pthread_mutex_init(&p->waiting, NULL);
    ipc_object_stand_ins();
    log_set_level(s->log);
    log_keep();
    p->progress = s->progress;
    p->nic.clients.answer = program_answer;
    p->nic.clients.captures_fd = p->nic.seals_fd = -1;
    p->nic.started_at = clock_now();
    int rc = choose_crc(why);
    if (rc == 0)
        rc = open_nic(p, why);
    if (rc < 0) {
        program_close(p);
        return rc;
    }
    *out = p;
    return 0;
}

int program_open(const char *spec, struct program **out, char *why)
{
    _Static_assert(IPC_ENGINE_WHY >= CONFIG_ERR, "a sentence fits");
    struct program *p = calloc(1, sizeof(*p));
    if (!p)
        return -ENOMEM;
    struct spec s = {.conf = &p->conf};
    int rc = spec_parse(&s, spec, why);
    if (rc < 0) {
        free(p);
        return rc;
    }
    return open_with(p, &s, out, why);
}

int program_open_channel(const struct ipc_engine_channel *ch, struct program **out, char *why)
{
    struct program *p = calloc(1, sizeof(*p));
    if (!p)
        return -ENOMEM;
    struct spec s = {.conf = &p->conf};
    int rc = spec_parse_channel(&s, ch->device, ch->options, why);
    p->channel.no_sockets = s.no_sockets;
    if (rc == 0)
        rc = program_channel_open(&p->channel, ch, &p->conf, why);
    if (rc < 0) {
        free(p);
        return rc;
    }
    return open_with(p, &s, out, why);
}

int program_grow(struct program *p, uint32_t slots)
{
    int state;
    enter(&state);
    int rc =
        p->channel.page ? program_channel_grow(&p->channel, p->nic.device[0], slots) : -ENOTSUP;
    leave(state);
    return rc;
}

void program_numbers(struct program *p)
{
    int state;
    enter(&state);
    if (p->channel.page)
        program_channel_numbers(&p->channel, p->nic.device[0]);
    leave(state);
}

/* ---- closing ---- */

struct program_look {
    struct device *device;
    bool busy;
};

static void look_busy(void *arg, uint64_t now)
{
    struct program_look *look = arg;
    (void)now;
    look->busy = cmgr_live(cmgr_of(look->device)) > 0;
}

/* Tell the peers that their connections end, and repeat it until they have answered. */
static void drain(struct program *p)
{
    if (p->channel.page) /* the daemon tells the peers */
        return;
    struct program_look look = {.device = p->nic.device[0]};
    const struct timespec nap = {.tv_nsec = (long)PROGRAM_LOOK_NS};
    uint64_t until = clock_now() + PROGRAM_DRAIN_NS;
    do {
        worker_call(&p->nic.worker[0], look_busy, &look);
        if (look.busy && p->progress == SPEC_POLL)
            program_poll(p);
        if (look.busy)
            nanosleep(&nap, NULL);
    } while (look.busy && clock_now() < until);
}

void program_hang_up(struct program *p)
{
    int state;
    enter(&state);
    pthread_mutex_lock(&p->lock);
    struct client *c = p->client;
    p->client = NULL;
    p->nic.clients.first = NULL;
    p->nic.clients.n = 0;
    if (c && worker_check(&p->nic.worker[0]))
        client_free(c);
    pthread_mutex_unlock(&p->lock);
    /* Nothing answers the requests that still wait for a neighbour. */
    pthread_mutex_lock(&p->waiting);
    struct program_wait *w = p->waits;
    p->waits = NULL;
    pthread_mutex_unlock(&p->waiting);
    while (w) {
        struct program_wait *next = w->next;
        wait_done(w, -ENODEV);
        w = next;
    }
    leave(state);
}

/* It has lost descriptors, and to free its parts would close files of the program's: their memory
 * is not freed. */
static void abandon(struct program *p)
{
    worker_stop(&p->nic.worker[0]);
    guard_frame_give(p->nic.worker[0].frame);
    log_flush();
}

/* The engine's counters outlive it in the daemon. */
static void last_words(void *arg, uint64_t now)
{
    (void)now;
    uplink_last(arg);
}

void program_close(struct program *p)
{
    struct nic *nic = &p->nic;
    int state;
    enter(&state);
    disown(p);
    program_hang_up(p);
    if (nic->nworker > 0 && worker_lost(&nic->worker[0])) {
        abandon(p);
        leave(state);
        return;
    }
    if (nic->nworker > 0 && (nic->worker[0].started || nic->worker[0].inline_only))
        drain(p);
    if (nic->ndevice > 0 && p->channel.page)
        worker_call(&nic->worker[0], last_words, nic->device[0]);
    if (nic->nworker > 0)
        worker_stop(&nic->worker[0]);
    if (nic->ndevice > 0)
        device_close(nic->device[0]);
    if (nic->nworker > 0)
        worker_fini(&nic->worker[0]);
    guard_frame_give(nic->worker[0].frame);
    program_channel_close(&p->channel);
    reclaim_finish(&nic->clients.share);
    share_fini(&nic->clients.share);
    log_flush();
    pthread_mutex_destroy(&p->lock);
    pthread_mutex_destroy(&p->waiting);
    free(p);
    leave(state);
}
