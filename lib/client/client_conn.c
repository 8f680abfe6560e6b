/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The control socket, on the application's side. Requests of several threads are in flight at the
 * same time, and their answers come in any order. One of the waiting threads receives for all, and
 * passes this task on when it has its own reply.
 *
 * A daemon that dies shows as end of file, which ends the connection. A daemon that is silent for a
 * minute while a thread waits counts as dead.
 */
#include "client_engine.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* Static in each thread's memory: finding it must not allocate. */
static _Thread_local volatile bool inside __attribute__((tls_model("initial-exec")));

#define SILENCE_S 60
#define HOME_SIZE 4096u

/* A request and the room for its reply; on the caller's stack, guarded by conn.lock. */
struct client_call {
    struct client_call *next;
    uint32_t id;
    pthread_cond_t wake; /* answered, or no thread receives any more */
    bool waiting;        /* the thread waits for `wake` */
    bool answered;
    ssize_t result; /* result: octets of the reply, or -errno */
    void *reply;
    size_t cap;
    int *fds;
    unsigned room, nfds; /* descriptors that fit; that arrived */
};

static int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* A connect to a full backlog blocks. A signal would end the wait early, so a restarted connect
 * gets only the rest of the socket's time-out. 0 or an errno. */
static int connect_in_time(int sock, const struct sockaddr_un *sa)
{
    struct timeval all = {0};
    socklen_t len = sizeof(all);
    int err;
    getsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &all, &len);
    const int64_t end = now_us() + (int64_t)all.tv_sec * 1000000 + all.tv_usec;
    while ((err = connect(sock, (const struct sockaddr *)sa, sizeof(*sa)) < 0 ? errno : 0) ==
           EINTR) {
        int64_t us = end - now_us();
        if (us <= 0) {
            err = EAGAIN;
            break;
        }
        struct timeval left = {.tv_sec = us / 1000000, .tv_usec = us % 1000000};
        setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &left, sizeof(left));
    }
    setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &all, sizeof(all));
    return err;
}

static int connect_socket(const char *path)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    if (ipc_socket_path(path, sa.sun_path, sizeof(sa.sun_path)) < 0)
        return -ENAMETOOLONG;
    int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (sock < 0)
        return -errno;
    struct timeval tv = {.tv_sec = SILENCE_S};
    setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
    setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
    int err = connect_in_time(sock, &sa);
    if (err == 0)
        return sock;
    close(sock);
    return err == ENOENT || err == ECONNREFUSED || err == EAGAIN ? -ENODEV : -err;
}

#define FEATURES                                                                                   \
    (IPC_FEAT_CM | IPC_FEAT_SRQ | IPC_FEAT_MW | IPC_FEAT_UD | IPC_FEAT_DRIVE | IPC_FEAT_REG_MR |   \
     IPC_FEAT_CLASS | IPC_FEAT_UNMAP)

static int say_hello(struct client_conn *c)
{
    struct ipc_hello ours, theirs = {0};
    ipc_hello_fill(&ours, FEATURES);
    int err = ipc_send(c->sock, &ours, sizeof(ours), NULL, 0, 0);
    if (err < 0 && err != -EPIPE)
        return err;
    /* A daemon that refuses us has closed the socket already; its answer follows the error. */
    ssize_t n = ipc_recv(c->sock, &theirs, sizeof(theirs), NULL, NULL, 0);
    if (n == -ECONNRESET)
        n = ipc_recv(c->sock, &theirs, sizeof(theirs), NULL, NULL, 0);
    if (n == 0 || n == -ECONNRESET || n == -EAGAIN)
        return -ENODEV;
    if (n < 0)
        return n == -EMSGSIZE ? -EPROTO : (int)n;
    if (n >= (ssize_t)sizeof(struct ipc_hdr) && theirs.hdr.status < 0)
        return theirs.hdr.status;
    if (n < (ssize_t)sizeof(theirs))
        return -EPROTO;
    c->features = theirs.features;
    c->minor = theirs.minor;
    return ipc_hello_check(&theirs);
}

/* A page that fork clears in the child: each call checks for a fork, and where system calls are
 * slow getpid would be most of its time. NULL = not available. */
static const uint8_t *make_home(void)
{
    uint8_t *page =
        mmap(NULL, HOME_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return NULL;
    if (madvise(page, HOME_SIZE, MADV_WIPEONFORK) < 0) {
        munmap(page, HOME_SIZE);
        return NULL;
    }
    *page = 1;
    return page;
}

int client_conn_open(struct client_conn *c, const char *path)
{
    *c = (struct client_conn){.pid = getpid()};
    c->sock = client_fd(connect_socket(path));
    if (c->sock < 0)
        return c->sock;
    int err = say_hello(c);
    if (err < 0) {
        close(c->sock);
        return err;
    }
    c->mark = client_mark(c->sock);
    pthread_mutex_init(&c->lock, NULL);
    c->home = make_home();
    return 0;
}

int client_conn_open_program(struct client_conn *c, const struct ipc_engine *engine,
                             struct program *program)
{
    struct ipc_hello ours, theirs;
    *c = (struct client_conn){.pid = getpid(), .sock = -1, .engine = engine, .program = program};
    pthread_mutex_init(&c->lock, NULL);
    c->home = make_home();
    ipc_hello_fill(&ours, FEATURES);
    ours.hdr.type = IPC_HELLO;
    int err = client_conn_call(c, &ours, sizeof(ours), &theirs, sizeof(theirs), NULL, NULL);
    if (err == 0)
        err = ipc_hello_check(&theirs);
    if (err == 0)
        c->features = theirs.features;
    else
        client_conn_close(c);
    return err;
}

void client_conn_hang_up(struct client_conn *c)
{
    atomic_store_explicit(&c->dead, true, memory_order_relaxed);
    if (c->engine != NULL)
        c->engine->hang_up(c->program);
    if (c->sock >= 0 && client_is(c->sock, &c->mark))
        shutdown(c->sock, SHUT_RDWR);
}

/* The thread that waits for the daemon's end. The daemon doesn't notice this: for it the program
 * ends with the socket, after the engine's last frames. */
static void end_watch(struct client_conn *c)
{
    atomic_store_explicit(&c->dead, true, memory_order_relaxed);
    if (client_is(c->sock, &c->mark))
        shutdown(c->sock, SHUT_RD);
    pthread_join(c->watch, NULL);
}

void client_conn_close(struct client_conn *c)
{
    if (client_has_channel(c))
        end_watch(c);
    if (c->engine != NULL)
        c->engine->close(c->program);
    if (c->home != NULL)
        munmap((void *)(uintptr_t)c->home, HOME_SIZE);
    client_close_own(c->sock, &c->mark);
    pthread_mutex_destroy(&c->lock);
}

bool client_port_enter(void)
{
    if (inside)
        return false;
    inside = true;
    return true;
}

void client_port_leave(void)
{
    inside = false;
}

static void close_fds(const int *fds, unsigned n)
{
    while (n > 0)
        close(fds[--n]);
}

static struct client_call *call_take(struct client_conn *c, uint32_t id)
{
    for (struct client_call **p = &c->calls; *p != NULL; p = &(*p)->next) {
        struct client_call *call = *p;
        if (call->id == id) {
            *p = call->next;
            return call;
        }
    }
    return NULL;
}

static void call_answer(struct client_call *call, ssize_t result)
{
    call->result = result;
    call->answered = true;
    pthread_cond_signal(&call->wake);
}

static void fail_all(struct client_conn *c, int err)
{
    while (c->calls != NULL)
        call_answer(call_take(c, c->calls->id), err);
}

/* The call that the message in c->msg answers; NULL = none. */
static struct client_call *call_of_msg(struct client_conn *c, struct ipc_hdr *hdr)
{
    memcpy(hdr, c->msg, sizeof(*hdr));
    return hdr->flags & IPC_F_REPLY ? call_take(c, hdr->id) : NULL;
}

/* Deliver the message in c->msg to the call that it answers. */
static void deliver(struct client_conn *c, size_t len, const int *fds, unsigned nfds)
{
    struct ipc_hdr hdr;
    struct client_call *call = call_of_msg(c, &hdr);
    if (call == NULL || hdr.status < 0 || len > call->cap) {
        close_fds(fds, nfds);
        if (call != NULL)
            call_answer(call, hdr.status < 0 ? hdr.status : -EMSGSIZE);
        return;
    }
    memcpy(call->reply, c->msg, len);
    call->nfds = nfds < call->room ? nfds : call->room;
    for (unsigned i = 0; i < call->nfds; i++)
        call->fds[i] = fds[i];
    close_fds(fds + call->nfds, nfds - call->nfds);
    call_answer(call, (ssize_t)len);
}

/* The daemon has been silent for so long that the fate of the requests is unknown. It may still
 * carry them out, and the resulting objects could not be freed. Hanging up makes it discard all of
 * them. */
static void give_up(struct client_conn *c)
{
    atomic_store_explicit(&c->dead, true, memory_order_relaxed);
    shutdown(c->sock, SHUT_RDWR);
    fail_all(c, -ENODEV);
}

/* Receive one message, for any of the calls; the lock is free meanwhile. */
static void receive(struct client_conn *c)
{
    int fds[IPC_FD_MAX];
    unsigned nfds = IPC_FD_MAX;
    c->receiving = true;
    pthread_mutex_unlock(&c->lock);
    ssize_t n = ipc_recv(c->sock, c->msg, sizeof(c->msg), fds, &nfds, 0);
    pthread_mutex_lock(&c->lock);
    c->receiving = false;
    if (n == 0 || n == -ECONNRESET) {
        atomic_store_explicit(&c->dead, true, memory_order_relaxed);
        fail_all(c, -ENODEV);
    } else if (n >= (ssize_t)sizeof(struct ipc_hdr)) {
        deliver(c, (size_t)n, fds, nfds);
    } else if (n == -EMFILE) { /* no room for its descriptors here: that request fails */
        struct ipc_hdr hdr;
        struct client_call *call = call_of_msg(c, &hdr);
        if (call != NULL && call->cap >= sizeof(struct ipc_handle))
            memcpy(call->reply, c->msg, sizeof(struct ipc_handle));
        if (call != NULL)
            call_answer(call, n);
    } else if (n == -EAGAIN) {
        give_up(c);
    } else {
        close_fds(fds, nfds);
        fail_all(c, n < 0 ? (int)n : -EPROTO);
    }
}

/* Wait until the call is answered. Only the receiving thread measures time: an application that was
 * stopped finds its answers when it continues. */
static void await_reply(struct client_conn *c, struct client_call *call)
{
    while (!call->answered) {
        if (!c->receiving) {
            receive(c);
        } else {
            call->waiting = true;
            pthread_cond_wait(&call->wake, &c->lock);
            call->waiting = false;
        }
    }
}

/* The receiving thread leaves: a waiting thread takes over. Threads that are still sending check
 * for themselves. */
static void pass_on(struct client_conn *c)
{
    struct client_call *call = c->receiving ? NULL : c->calls;
    while (call != NULL && !call->waiting)
        call = call->next;
    if (call != NULL)
        pthread_cond_signal(&call->wake);
}

ssize_t client_conn_engine(struct client_conn *c, const void *req, size_t req_len,
                           const int *send_fds, unsigned nsend, void *reply, size_t cap, int *fds,
                           unsigned *nfds)
{
    if (!client_port_enter())
        return -EDEADLK;
    ssize_t n = c->engine->call(c->program, req, req_len, send_fds, nsend, reply, cap, fds, nfds);
    client_port_leave();
    return n;
}

ssize_t client_conn_raw(struct client_conn *c, void *req, size_t req_len, const int *send_fds,
                        unsigned nsend, void *reply, size_t cap, int *fds, unsigned *nfds)
{
    struct ipc_hdr *hdr = req;
    struct client_call call = {.wake = PTHREAD_COND_INITIALIZER,
                               .reply = reply,
                               .cap = cap,
                               .fds = fds,
                               .room = nfds != NULL ? *nfds : 0};
    if (client_conn_forked(c))
        return client_conn_fork_error(c);
    if (atomic_load_explicit(&c->dead, memory_order_relaxed))
        return -ENODEV;
    if (c->engine != NULL && (c->sock < 0 || client_engine_serves(hdr->type)))
        return client_conn_engine(c, req, req_len, send_fds, nsend, reply, cap, fds, nfds);

    pthread_mutex_lock(&c->lock);
    hdr->id = call.id = ++c->next_id;
    call.next = c->calls;
    c->calls = &call;
    pthread_mutex_unlock(&c->lock);
    int err = !client_is(c->sock, &c->mark) ? -EPIPE
                                            : ipc_send(c->sock, req, req_len, send_fds, nsend, 0);
    pthread_mutex_lock(&c->lock);
    if (err == 0) {
        await_reply(c, &call);
        pass_on(c);
    } else if (!call.answered) {
        bool gone =
            err == -EPIPE || err == -ECONNRESET || err == -EAGAIN; /* the peer reads nothing */
        if (gone)
            atomic_store_explicit(&c->dead, true, memory_order_relaxed);
        call_take(c, call.id);
        call.result = gone ? -ENODEV : err;
    }
    pthread_mutex_unlock(&c->lock);
    pthread_cond_destroy(&call.wake);
    if (call.result >= 0 && nfds != NULL)
        *nfds = call.nfds;
    return call.result;
}

int client_conn_call(struct client_conn *c, void *req, size_t req_len, void *reply, size_t size,
                     int *fds, unsigned *nfds)
{
    _Alignas(8) uint8_t buf[1024];
    memset(buf, 0, sizeof(struct ipc_handle));
    ssize_t n = client_conn_raw(c, req, req_len, NULL, 0, buf, sizeof(buf), fds, nfds);
    if (n == -EMFILE && size >= sizeof(struct ipc_handle))
        memcpy(reply, buf, sizeof(struct ipc_handle));
    if (n < 0)
        return (int)n;
    return ipc_msg_unpack(reply, size, sizeof(struct ipc_hdr), buf, (size_t)n, false);
}

int client_conn_handle(struct client_conn *c, enum ipc_type type, uint32_t handle)
{
    struct ipc_handle req = {.hdr.type = (uint16_t)type, .handle = handle};
    struct ipc_hdr reply;
    return client_conn_call(c, &req, sizeof(req), &reply, sizeof(reply), NULL, NULL);
}
