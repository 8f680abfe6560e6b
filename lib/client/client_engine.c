/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See client_engine.h. A thread waits for the end of the control connection: the program may only
 * poll, or wait for events that come from its own engine, and is to learn of it (SHM-09).
 */
#include "client_engine.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Windows of 512 packets: REQ_WINDOW_DEFAULT. */
#define SLOTS_CONNECTED 1024u

/* The options after the word, "" = none; NULL = another word. */
static const char *options_of(const char *env, const char *word)
{
    const size_t len = strlen(word);
    if (strncmp(env, word, len) != 0 || (env[len] != '\0' && env[len] != ','))
        return NULL;
    return env + len + (env[len] == ',');
}

const char *client_engine_wanted(enum client_place place, int *err)
{
    const char *env = secure_getenv("URNIC_ENGINE");
    *err = 0;
    if (place == CLIENT_PLACE_DAEMON)
        return NULL;
    if (env == NULL || *env == '\0' || strcmp(env, "daemon") == 0)
        return place == CLIENT_PLACE_PROGRAM ? "" : NULL;
    const char *options = options_of(env, "application");
    if (options == NULL)
        *err = -EINVAL;
    return options;
}

#define WATCH_MS 1000 /* period of the look at the control socket */

/* ---- opening ---- */

static int get_block(struct client_conn *c, uint16_t type, uint32_t *block, uint64_t key[2])
{
    struct ipc_hdr req = {.type = type};
    struct ipc_engine_block reply;
    int err = client_conn_call(c, &req, sizeof(req), &reply, sizeof(reply), NULL, NULL);
    if (err == 0) {
        *block = reply.block;
        key[0] = reply.key[0];
        key[1] = reply.key[1];
    }
    return err;
}

static int mapped(void *arg, uint32_t *block, uint64_t key[2])
{
    return get_block(arg, IPC_ENGINE_MAPPED, block, key);
}

static int one_more_block(void *arg, uint32_t *block, uint64_t key[2])
{
    return get_block(arg, IPC_ENGINE_BLOCK, block, key);
}

static int give_socket(void *arg, uint32_t index, struct ipc_engine_socket_given *out, int *fd,
                       int *bell)
{
    struct ipc_engine_socket req = {.hdr.type = IPC_ENGINE_SOCKET, .index = index};
    int fds[IPC_FD_MAX];
    unsigned nfds = IPC_FD_MAX;
    int err = client_conn_call(arg, &req, sizeof(req), out, sizeof(*out), fds, &nfds);
    if (err < 0)
        return err;
    if (index == IPC_ENGINE_NO_SOCKET && nfds == 0)
        return 0;
    if (nfds != (index == 0 ? 2u : 1u)) {
        client_close_fds(fds, 0, nfds);
        return -EPROTO;
    }
    *fd = fds[0];
    *bell = index == 0 ? fds[1] : -1;
    return 0;
}

static int more_rings(void *arg, uint32_t slots, struct ipc_engine_opened *out, int *fd)
{
    struct ipc_engine_open req = {.hdr.type = IPC_ENGINE_GROW, .slots = slots};
    int fds[IPC_FD_MAX];
    unsigned nfds = IPC_FD_MAX;
    int err = client_conn_call(arg, &req, sizeof(req), out, sizeof(*out), fds, &nfds);
    if (err < 0)
        return err;
    if (nfds != 1) {
        client_close_fds(fds, 0, nfds);
        return -EPROTO;
    }
    *fd = fds[0];
    return 0;
}

static int open_program(struct client_conn *c, const struct ipc_engine *engine, const char *device,
                        const char *options, struct program **out)
{
    struct ipc_engine_open req = {.hdr.type = IPC_ENGINE_OPEN};
    struct ipc_engine_opened reply;
    char why[IPC_ENGINE_WHY];
    int fds[IPC_FD_MAX];
    unsigned nfds = IPC_FD_MAX;
    int err = client_conn_call(c, &req, sizeof(req), &reply, sizeof(reply), fds, &nfds);
    if (err < 0)
        return err;
    struct ipc_engine_channel ch = {
        .device = device,
        .options = options,
        .memory_fd = nfds == 3 ? fds[0] : -1,
        .event_fd = nfds == 3 ? fds[1] : -1,
        .facts_fd = nfds == 3 ? fds[2] : -1,
        .slots = reply.slots,
        .frame_max = reply.frame_max,
        .mapped = mapped,
        .socket = give_socket,
        .grow = more_rings,
        .block = one_more_block,
        .arg = c,
    };
    err = nfds == 3 ? engine->open_channel(&ch, out, why) : -EPROTO;
    client_close_fds(fds, 0, nfds);
    return err;
}

/* Pass this library's features to the engine, too. */
static int greet(const struct ipc_engine *engine, struct program *program, uint64_t features)
{
    struct ipc_hello ours, theirs;
    ipc_hello_fill(&ours, features);
    ours.hdr.type = IPC_HELLO;
    ssize_t n =
        engine->call(program, &ours, sizeof(ours), NULL, 0, &theirs, sizeof(theirs), NULL, NULL);
    if (n < 0)
        return (int)n;
    return n == (ssize_t)sizeof(theirs) ? ipc_hello_check(&theirs) : -EPROTO;
}

static void *watch(void *arg)
{
    struct client_conn *c = arg;
    struct pollfd p = {.fd = c->sock, .events = POLLRDHUP};
    /* The program may have closed the socket, which lives until poll returns. */
    int n;
    do
        n = poll(&p, 1, WATCH_MS);
    while ((n == 0 || (n < 0 && errno == EINTR)) && client_is(c->sock, &c->mark));
    if (!atomic_load_explicit(&c->dead, memory_order_relaxed))
        client_conn_hang_up(c);
    return NULL;
}

static int start_watch(struct client_conn *c)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = pthread_create(&c->watch, NULL, watch, c);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -err;
}

int client_engine_open(struct client_conn *c, const char *device, const char *options)
{
    const struct ipc_engine *engine;
    struct program *program = NULL;
    char why[IPC_ENGINE_WHY];
    if (c->minor < IPC_ENGINE_MINOR)
        return -ENOTSUP;
    int err = client_engine_load(&engine, why, sizeof(why));
    if (err == 0)
        err = open_program(c, engine, device, options, &program);
    if (err < 0)
        return err;
    err = greet(engine, program, c->features);
    if (err == 0) {
        c->program = program;
        c->engine = engine;
        err = start_watch(c);
    }
    if (err < 0) {
        c->engine = NULL;
        engine->close(program);
    }
    return err;
}

/* ---- growing ---- */

/* Slots each way for this many connected queue pairs. A queue pair's window is half of them. */
static uint32_t slots_for(uint32_t ready)
{
    return ready == 0 ? 0 : SLOTS_CONNECTED;
}

void client_engine_grow(struct urnic_context *ctx, uint32_t ready)
{
    struct client_conn *c = &ctx->conn;
    uint32_t had = atomic_load_explicit(&ctx->slots, memory_order_relaxed);
    const uint32_t want = slots_for(ready);
    if (!client_has_channel(c) || want <= had ||
        !atomic_compare_exchange_strong_explicit(&ctx->slots, &had, want, memory_order_relaxed,
                                                 memory_order_relaxed))
        return;
    int err = -EBUSY;
    if (client_port_enter()) {
        err = c->engine->grow(c->program, want);
        client_port_leave();
    }
    if (err == -EBUSY || err == -EDQUOT) /* the next queue pair tries again */
        atomic_store_explicit(&ctx->slots, had, memory_order_relaxed);
    else if (err == -ENODEV)
        client_conn_hang_up(c);
}

/* ---- all of the process ---- */

/* The contexts whose engine runs in this process, and of its parents at the time of their forks. */
static struct urnic_context *engines; /* under `holder` */
static _Atomic pid_t holder;          /* the process whose thread changes or reads the list */

/* A child that was forked while a thread of its parent had the list doesn't wait for that thread.
 */
static void take(void)
{
    const pid_t own = getpid();
    pid_t is = 0;
    while (!atomic_compare_exchange_strong_explicit(&holder, &is, own, memory_order_acquire,
                                                    memory_order_relaxed)) {
        if (is == own) {
            sched_yield();
            is = 0;
        }
    }
}

static void give(void)
{
    atomic_store_explicit(&holder, 0, memory_order_release);
}

void client_engine_join(struct urnic_context *ctx)
{
    take();
    ctx->next_engine = engines;
    engines = ctx;
    give();
}

void client_engine_leave(struct urnic_context *ctx)
{
    take();
    for (struct urnic_context **at = &engines; *at != NULL; at = &(*at)->next_engine) {
        if (*at == ctx) {
            *at = ctx->next_engine;
            break;
        }
    }
    give();
}

static unsigned type_in(struct urnic_context *ctx, uint32_t qpn)
{
    unsigned type = 0;
    pthread_mutex_lock(&ctx->lock);
    for (uint32_t slot = 0; slot < ctx->refs.used && type == 0; slot++) {
        const struct client_ref_page *page =
            atomic_load_explicit(&ctx->refs.page[slot / CLIENT_REF_SLOTS], memory_order_relaxed);
        const struct client_obj *obj =
            atomic_load_explicit(&page->obj[slot % CLIENT_REF_SLOTS], memory_order_relaxed);
        if (obj != NULL && obj->kind == CLIENT_QP && ((const struct urnic_qp *)obj)->qpn == qpn)
            type = ((const struct urnic_qp *)obj)->type;
    }
    pthread_mutex_unlock(&ctx->lock);
    return type;
}

unsigned client_engine_qp_type(uint32_t qpn)
{
    unsigned type = 0;
    take();
    for (struct urnic_context *ctx = engines; ctx != NULL && type == 0; ctx = ctx->next_engine)
        type = client_forked(ctx) ? 0 : type_in(ctx, qpn);
    give();
    return type;
}
