/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The control thread: accepts connections, reads requests one at a time, notices deaths. It never
 * waits for a client: sockets are non-blocking, and a client whose answers don't fit is dropped.
 */
#include "control.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "ask.h"
#include "client_capture.h"
#include "clock.h"
#include "foreign.h"
#include "log.h"
#include "pace.h"
#include "quota.h"
#include "reclaim.h"
#include "request.h"
#include "seal.h"
#include "settle.h"

#define CONTROL_EVENTS    64
#define CONTROL_PAUSE_NS  (10 * CLOCK_MS) /* pause when not even the spare descriptor helps */
#define CONTROL_SETTLE_MS 1               /* longest time between two looks at programs' frames */
#define CONTROL_LEAST     2u   /* most connections of a user, while there are free ones */
#define CONTROL_FDS       320u /* descriptors of the daemon itself, and of one message */
#define CONTROL_EARLY     ".new"
#define CONTROL_LOCK_MS   1000u /* longest wait for another daemon to start */
#define CONTROL_PIDFD     1     /* added to a client's address: the event is about its process */

/* ---- the socket ---- */

static int control_fail(char *err, const char *path, const char *what)
{
    int rc = -errno;
    snprintf(err, CONFIG_ERR,
             "socket=%s: %s: %s: choose another with --socket, or run as a user with the right to "
             "write there",
             path, what, strerror(-rc));
    return rc;
}

/* An error that is not about a path. */
static int control_lacks(char *err, const char *what)
{
    int rc = -errno;
    snprintf(err, CONFIG_ERR, "%s: %s", what, strerror(-rc));
    return rc;
}

/* Make the socket's directory, if only its last part is missing. */
static void control_make_dir(const char *path)
{
    char dir[sizeof(((struct sockaddr_un *)0)->sun_path)];
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path || (size_t)(slash - path) >= sizeof(dir))
        return;
    memcpy(dir, path, (size_t)(slash - path));
    dir[slash - path] = '\0';
    mkdir(dir, 0755); /* bind() reports a failure */
}

/* Lock the socket's folder: of two daemons that start at the same moment, the second checks the
 * path after the first. After CONTROL_LOCK_MS it goes on without the lock. Returns a descriptor,
 * whose closing unlocks; -1: the folder can't be opened, and nothing is locked. */
static int control_lock(const char *path)
{
    char dir[sizeof(((struct sockaddr_un *)0)->sun_path)] = ".";
    const char *slash = strrchr(path, '/');
    if (slash)
        snprintf(dir, sizeof(dir), "%.*s", slash == path ? 1 : (int)(slash - path), path);
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (unsigned ms = 0; fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && ms < CONTROL_LOCK_MS; ms++)
        nanosleep(&(struct timespec){.tv_nsec = (long)CLOCK_MS}, NULL);
    return fd;
}

/* Does a program serve at the path? 0, -EADDRINUSE: a daemon, which may have no time for us
 * (EAGAIN), or -EPROTOTYPE: another program, whose sockets are of another type. */
static int control_in_use(const struct sockaddr_un *sa)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc = 0;
    if (fd < 0)
        return 0; /* without a path the daemon can't serve either */
    if (connect(fd, (const struct sockaddr *)sa, sizeof(*sa)) == 0 || errno == EAGAIN)
        rc = -EADDRINUSE;
    else if (errno == EPROTOTYPE)
        rc = -EPROTOTYPE;
    close(fd);
    return rc;
}

/* Remove the socket of a daemon that was killed; files of another kind stay. */
static void control_remove(const char *path)
{
    struct stat st;
    if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode))
        unlink(path);
}

/* The socket has another name until it listens, if the path leaves room for one. So a client that
 * waits for the socket to appear can connect at once. */
static int control_listen(int fd, const char *path, char *err)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    bool early = strlen(path) + sizeof(CONTROL_EARLY) <= sizeof(sa.sun_path);
    memcpy(sa.sun_path, path, strlen(path) + 1);
    if (early)
        memcpy(sa.sun_path + strlen(path), CONTROL_EARLY, sizeof(CONTROL_EARLY));
    control_remove(sa.sun_path);
    mode_t old = umask(0117); /* 0660 from the first moment */
    int rc = bind(fd, (const struct sockaddr *)&sa, sizeof(sa));
    umask(old);
    if (rc < 0)
        return control_fail(err, sa.sun_path, "bind");
    const struct group *g = geteuid() == 0 ? getgrnam("urnic") : NULL;
    if (!g && strcmp(path, IPC_SOCKET_SYSTEM) == 0)
        log_info("control",
                 "%s: for root only, as there is no group urnic: "
                 "`systemd-sysusers` or `groupadd -r urnic` makes it",
                 path);
    if (g && chown(sa.sun_path, (uid_t)-1, g->gr_gid) < 0)
        log_warn("control", "%s: can't give it to group urnic: %s", path, strerror(errno));
    if (listen(fd, 128) < 0)
        rc = control_fail(err, path, "listen");
    else if (early && rename(sa.sun_path, path) < 0)
        rc = control_fail(err, path, "rename");
    if (rc < 0)
        unlink(sa.sun_path);
    return rc;
}

/* At its end the daemon removes this socket, not one that another made in its place. */
static void control_remember(struct urnicd *d)
{
    struct stat st;
    if (lstat(d->conf.socket, &st) == 0) {
        d->socket_dev = st.st_dev;
        d->socket_ino = st.st_ino;
    }
}

static void control_unlink(const struct urnicd *d)
{
    struct stat st;
    if (d->socket_ino != 0 && lstat(d->conf.socket, &st) == 0 && st.st_dev == d->socket_dev &&
        st.st_ino == d->socket_ino)
        unlink(d->conf.socket);
}

static int control_socket_locked(struct urnicd *d, char *err)
{
    const char *path = d->conf.socket;
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    memcpy(sa.sun_path, path, strlen(path) + 1);
    struct stat st;
    if (lstat(path, &st) == 0 && !S_ISSOCK(st.st_mode)) {
        snprintf(err, CONFIG_ERR, "socket=%s: there is a file of another kind: choose another path",
                 path);
        return -EEXIST;
    }
    int rc = control_in_use(&sa);
    if (rc < 0) {
        snprintf(err, CONFIG_ERR,
                 "socket=%s: another %s serves there: stop it, or choose another with --socket",
                 path, rc == -EPROTOTYPE ? "program" : "urnicd");
        return rc;
    }
    d->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (d->listen_fd < 0)
        return control_lacks(err, "socket");
    rc = control_listen(d->listen_fd, path, err);
    if (rc == 0)
        control_remember(d);
    return rc;
}

/* SEC-34: where others can move the socket away, a program of theirs can serve in its place. */
static int control_check_dir(const struct config *c, char *err)
{
    const char *slash = strrchr(c->socket, '/');
    int len = slash && slash > c->socket ? (int)(slash - c->socket) : 1, rc;
    uid_t owner = geteuid();
    rc = ipc_socket_folder(c->socket, &owner);
    if (rc == 0 || (rc != -EPERM && rc != -ENOTDIR))
        return 0; /* bind() tells */
    if (!c->socket_default) {
        if (owner != geteuid() && owner != 0)
            log_warn("control", "%.*s belongs to user %u, which can take the socket away", len,
                     slash ? c->socket : ".", (unsigned)owner);
        return 0;
    }
    if (owner != geteuid())
        snprintf(err, CONFIG_ERR,
                 "socket=%s: %.*s belongs to user %u: remove it, or choose another path with "
                 "--socket",
                 c->socket, len, c->socket, (unsigned)owner);
    else
        snprintf(err, CONFIG_ERR,
                 "socket=%s: %.*s %s: `rm -r` it, or choose another path with --socket", c->socket,
                 len, c->socket,
                 rc == -EPERM ? "can be written by other users" : "is not a folder");
    return rc;
}

static int control_socket(struct urnicd *d, char *err)
{
    control_make_dir(d->conf.socket);
    int checked = control_check_dir(&d->conf, err);
    if (checked < 0)
        return checked;
    int lock = control_lock(d->conf.socket), rc = control_socket_locked(d, err);
    if (lock >= 0)
        close(lock);
    return rc;
}

static int control_watch(struct urnicd *d, int fd, void *what)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = what};
    return epoll_ctl(d->epfd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

/* Compute the limits for clients. */
static void control_shares(struct urnicd *d)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur / 2 > CONTROL_FDS)
        d->nic.clients.share.limit[SHARE_FDS] = d->nic.clients.share.limit[SHARE_UNREAD] =
            files.rlim_cur - CONTROL_FDS;
    nic_memory(&d->nic);
    d->nic.clients.share.limit[SHARE_MAPPINGS] = LIMIT_MAPPINGS;
}

int control_open(struct urnicd *d, char *err)
{
    sigset_t set;
    d->nic.started_at = clock_now();
    d->nic.clients.answer = request_answer;
    d->nic.more = request_admin;
    control_shares(d);
    FILE *subuid = fopen("/etc/subuid", "re");
    if (subuid) {
        subuids_read(&d->nic.clients.subuids, subuid);
        fclose(subuid);
    }
    d->epfd = epoll_create1(EPOLL_CLOEXEC);
    d->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP); /* SIGHUP is blocked only if there is a log to open anew */
    d->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    d->nic.clients.captures_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    d->nic.seals_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (d->epfd < 0 || d->signal_fd < 0 || d->nic.clients.captures_fd < 0 || d->nic.seals_fd < 0)
        return control_lacks(err, "epoll, signalfd or eventfd");
    int rc = control_socket(d, err);
    if (rc < 0)
        return rc;
    if (control_watch(d, d->listen_fd, &d->listen_fd) < 0 ||
        control_watch(d, d->signal_fd, &d->signal_fd) < 0 ||
        control_watch(d, d->nic.clients.captures_fd, &d->nic.clients.captures_fd) < 0 ||
        control_watch(d, d->nic.seals_fd, &d->nic.seals_fd) < 0)
        return control_lacks(err, "epoll");
    if (d->conf.parent >= 0 && control_watch(d, d->conf.parent, &d->conf.parent) < 0) {
        snprintf(err, CONFIG_ERR, "parent=%d: want a socket or a pipe", d->conf.parent);
        return -EINVAL;
    }
    return 0;
}

/* ---- clients ---- */

/* Refuse a client: send it the answer to its hello, even before the hello has arrived. */
static void control_send_away(struct urnicd *d, int fd)
{
    const struct ipc_hdr no = {.type = IPC_HELLO, .flags = IPC_F_REPLY, .status = -EDQUOT};
    ipc_send(fd, &no, sizeof(no), NULL, 0, MSG_DONTWAIT);
    foreign_hang_up(foreign_user(fd), fd);
    d->refused++;
}

/* Out of descriptors, or of memory for one: a connection in the queue would wake us for ever. The
 * spare descriptor serves to refuse it. */
static void control_no_room(struct urnicd *d)
{
    close(d->spare_fd);
    int fd = accept4(d->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0) {
        control_send_away(d, fd);
    } else {
        nanosleep(&(struct timespec){.tv_nsec = (long)CONTROL_PAUSE_NS}, NULL);
    }
    d->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    log_warn("control", "no descriptor left for another client, or no memory for it");
}

/* The connections that one user may have while the others have `others` (QUOTA_CLIENTS). */
unsigned control_share(unsigned own, unsigned others)
{
    unsigned left = others < QUOTA_CLIENTS ? QUOTA_CLIENTS - others : 0, most = left / 8;
    if (own + others < QUOTA_CLIENTS - QUOTA_CLIENTS / 8)
        most = left / 2;
    if (most < CONTROL_LEAST)
        most = CONTROL_LEAST;
    return most < left ? most : left;
}

/* Administrators have no limit: they must be able to connect and see which user has taken all. */
static bool control_has_room(const struct urnicd *d, const struct client *newcomer)
{
    unsigned own = 0;
    if (foreign_waiting(newcomer->uid) >= FOREIGN_WAITING)
        return false;
    if (client_is_admin(newcomer))
        return d->nic.clients.n < QUOTA_CLIENTS + QUOTA_CLIENTS_RESERVE;
    for (const struct client *c = d->nic.clients.first; c; c = c->next)
        own += c->account == newcomer->account && !client_is_admin(c);
    unsigned most = control_share(own, d->nic.clients.n - own);
    if (own < most)
        return true;
    if (!share_may_log(newcomer->share, clock_now()))
        return false;
    log_warn(
        "client",
        "%s[%d] of uid %u gets no connection: uid %u has %u, others %u, of %u: end programs of "
        "that user (`urnic stat --qps` shows some), or ask the administrator",
        newcomer->comm, (int)newcomer->pid, (unsigned)newcomer->uid, (unsigned)newcomer->account,
        own, d->nic.clients.n - own, QUOTA_CLIENTS);
    return false;
}

static void control_accept(struct urnicd *d)
{
    int fd = accept4(d->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct client *c;
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            control_no_room(d);
        return;
    }
    c = client_new(&d->nic.clients, fd);
    if (!c || !control_has_room(d, c) || control_watch(d, fd, c) < 0) {
        if (c)
            client_forget(c);
        control_send_away(d, fd);
        return;
    }
    if (c->pidfd >= 0)
        control_watch(d, c->pidfd, (char *)c + CONTROL_PIDFD);
    c->next = d->nic.clients.first;
    d->nic.clients.first = c;
    d->nic.clients.n++;
    d->accepted++;
    log_debug("client", "%s[%d] uid %u connects", c->comm, (int)c->pid, (unsigned)c->uid);
}

/* The first message must be a matching hello (then the table allows others). */
static int control_greet(struct client *c, const struct request *r)
{
    struct ipc_hello theirs;
    if (c->greeted)
        return 0;
    if (ipc_msg_unpack(&theirs, sizeof(theirs), sizeof(theirs), r->in, r->in_len, false) < 0)
        return -EPROTO;
    return ipc_hello_check(&theirs);
}

/* A hello that doesn't match is answered with our values, so that the client can name the
 * difference. */
static void control_turn_away(struct client *c, const struct request *r, int status)
{
    struct ipc_hello ours;
    struct ipc_hdr theirs = {0};
    if (r->in_len >= sizeof(theirs))
        memcpy(&theirs, r->in, sizeof(theirs));
    ipc_hello_fill(&ours, 0);
    theirs.type = IPC_HELLO;
    request_answer(c, &theirs, status, &ours, sizeof(ours));
    c->gone = true;
}

static void control_refuse(struct client *c, const struct request *r, int status)
{
    struct ipc_hdr theirs, ours;
    memcpy(&theirs, r->in, sizeof(theirs));
    request_answer(c, &theirs, status, &ours, sizeof(ours));
}

/* Take one request, then it is the other clients' turn. A further request of this client is a new
 * event, so there is no check for it here. */
static void control_serve(struct urnicd *d, struct client *c)
{
    static struct request r;
    if (c->gone)
        return;
    if (foreign_waiting(c->uid) >= FOREIGN_WAITING && foreign_comes(c->fd)) {
        c->gone = true; /* descriptors that its user has passed are not closed yet */
        return;
    }
    r.nic = &d->nic;
    r.client = c;
    r.sealings = 0;
    r.settled = false;
    memset(r.in, 0, sizeof(struct ipc_hdr));
    ssize_t n = ipc_recv_all(c->fd, r.in, IPC_MSG_MAX, r.fd, &r.nfd, MSG_DONTWAIT);
    if (n == -EAGAIN || n == -EINTR)
        return;
    if (n == -EMFILE && c->greeted) { /* the daemon has no descriptor left */
        control_refuse(c, &r, (int)n);
        request_close_fds(&r);
        return;
    }
    if (n < (ssize_t)sizeof(struct ipc_hdr)) {
        c->gone = true; /* end of file, an error, or not even a header */
        request_close_fds(&r);
        return;
    }
    r.in_len = (size_t)n;
    int rc = control_greet(c, &r);
    if (rc < 0) {
        control_turn_away(c, &r, rc);
        request_close_fds(&r);
    } else {
        request_serve(&r);
    }
}

/* A child of the process may still hold the socket. */
static void control_process_ended(void *tagged)
{
    struct client *c = (struct client *)(void *)((char *)tagged - CONTROL_PIDFD);
    c->gone = true;
}

void control_end(struct urnicd *d, struct client *c)
{
    seal_forget(c);
    settle_forget(c);
    ask_forget(c);
    epoll_ctl(d->epfd, EPOLL_CTL_DEL, c->fd, NULL); /* the close may take a while */
    client_free(c);
}

/* Returns whether clients that end have frames yet to be sent (QP-11). */
static bool control_reap(struct urnicd *d)
{
    bool later = false;
    for (struct client **p = &d->nic.clients.first; *p;) {
        struct client *c = *p;
        if (!c->gone || !settle_ended(c)) {
            later |= c->gone;
            p = &c->next;
            continue;
        }
        *p = c->next;
        d->nic.clients.n--;
        log_debug("client", "%s[%d] is gone", c->comm, (int)c->pid);
        control_end(d, c);
    }
    return later;
}

/* ---- the loop ---- */

/* After an answer a client often sends the next request at once, and a wake-up costs more than the
 * answer. worked: the last wait brought an event. settles: requests wait for frames of their
 * programs, so return soon. */
static int control_wait(const struct urnicd *d, struct pace *pace, struct epoll_event *ev,
                        bool worked, bool settles)
{
    const struct pace_seen nothing = {.due = UINT64_MAX};
    uint64_t now = clock_now();
    if (worked)
        (void)pace_next(pace, &(struct pace_seen){.work = true}, now);
    while (pace_next(pace, &nothing, now).how != PACE_BLOCK) {
        int n = epoll_wait(d->epfd, ev, CONTROL_EVENTS, 0);
        if (n != 0)
            return n;
        uint64_t before = clock_now();
        sched_yield();
        now = clock_now();
        pace_yielded(pace, before, now);
        if (settles)
            return 0;
    }
    return epoll_wait(d->epfd, ev, CONTROL_EVENTS, settles ? CONTROL_SETTLE_MS : -1);
}

/* Does the signal end the daemon? */
static bool control_signal(const struct urnicd *d)
{
    struct signalfd_siginfo info;
    if (read(d->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return false;
    if (info.ssi_signo == SIGHUP)
        log_reopen();
    return info.ssi_signo != SIGHUP;
}

void control_run(struct urnicd *d)
{
    struct epoll_event ev[CONTROL_EVENTS];
    struct pace pace;
    bool stop = false, worked = true, settles = false;
    pace_init(&pace, PACE_CALL_NS, 0);
    while (!stop) {
        int n = control_wait(d, &pace, ev, worked, settles);
        worked = n > 0;
        for (int i = 0; i < n; i++) {
            if (ev[i].data.ptr == &d->listen_fd)
                control_accept(d);
            else if (ev[i].data.ptr == &d->signal_fd)
                stop = control_signal(d) || stop;
            else if (ev[i].data.ptr == &d->conf.parent)
                stop = true; /* the starting program has ended */
            else if (ev[i].data.ptr == &d->nic.clients.captures_fd)
                client_capture_service(&d->nic.clients);
            else if (ev[i].data.ptr == &d->nic.seals_fd) {
                seal_service(&d->nic);
                ask_service(&d->nic);
            } else if ((uintptr_t)ev[i].data.ptr & CONTROL_PIDFD)
                control_process_ended(ev[i].data.ptr);
            else
                control_serve(d, ev[i].data.ptr);
        }
        /* Free clients after all events of this round, so that no event refers to a freed client.
         */
        settles = settle_service(&d->nic);
        settles |= control_reap(d);
        unread_service(&d->nic.clients.unread);
        reclaim_service();
    }
    log_info("daemon", "stopping");
}

void control_close(struct urnicd *d)
{
    for (struct client *c = d->nic.clients.first; c; c = c->next)
        c->gone = true;
    for (unsigned i = 0; i < d->nic.nworker; i++) {
        if (d->nic.worker[i].shared)
            atomic_store_explicit(&d->nic.worker[i].shared->gone, 1, memory_order_release);
    }
    while (control_reap(d))
        nanosleep(&(struct timespec){.tv_nsec = (long)(CLOCK_MS / 10)}, NULL);
    client_capture_fini(&d->nic.clients);
    unread_fini(&d->nic.clients.unread);
    subuids_free(&d->nic.clients.subuids);
    if (d->listen_fd >= 0) {
        control_unlink(d);
        close(d->listen_fd);
    }
    if (d->spare_fd >= 0)
        close(d->spare_fd);
    if (d->signal_fd >= 0)
        close(d->signal_fd);
    if (d->nic.clients.captures_fd >= 0 && !d->nic.clients.captures)
        close(d->nic.clients.captures_fd);
    if (d->epfd >= 0)
        close(d->epfd);
}
